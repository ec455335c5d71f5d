"""Images and queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import vulkan as vk

from ..rig import COHERENT, DEVICE_ONLY, Rig
from .registry import raises, scenario, violated


@scenario()
def images() -> None:
    with Rig() as rig:
        back = rig.allocate(4096, COHERENT)
        usage = (
            vk.VK_IMAGE_USAGE_STORAGE_BIT
            | vk.VK_IMAGE_USAGE_TRANSFER_SRC_BIT
            | vk.VK_IMAGE_USAGE_TRANSFER_DST_BIT
        )
        made = []
        for tiling in (vk.VK_IMAGE_TILING_OPTIMAL, vk.VK_IMAGE_TILING_LINEAR):
            info = vk.VkImageCreateInfo(
                imageType=vk.VK_IMAGE_TYPE_2D, format=vk.VK_FORMAT_R8G8B8A8_UNORM, extent=(5, 4, 1),
                mipLevels=1, arrayLayers=1, samples=1, tiling=tiling, usage=usage,
            )  # fmt: skip
            image = vk.vkCreateImage(rig.device, info, None)
            needs = vk.vkGetImageMemoryRequirements(rig.device, image)
            memory_type = DEVICE_ONLY if tiling == vk.VK_IMAGE_TILING_OPTIMAL else COHERENT
            allocate = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=memory_type)
            memory = vk.vkAllocateMemory(rig.device, allocate, None)
            vk.vkBindImageMemory(rig.device, image, memory, 0)
            made.append((image, memory))
        optimal, linear = made[0][0], made[1][0]
        whole = vk.VkImageSubresourceRange(aspectMask=1, levelCount=1, layerCount=1)
        layers = vk.VkImageSubresourceLayers(aspectMask=1, layerCount=1)
        general = vk.VK_IMAGE_LAYOUT_GENERAL

        def discard(commands: Any, image: Any) -> None:
            barrier = vk.VkImageMemoryBarrier(
                oldLayout=0, newLayout=general, srcQueueFamilyIndex=2**32 - 1, dstQueueFamilyIndex=2**32 - 1,
                image=image, subresourceRange=whole,
            )  # fmt: skip
            vk.vkCmdPipelineBarrier(commands, 1, 4096, 0, 0, None, 0, None, 1, [barrier])

        def download(commands: Any, image: Any) -> None:
            region = vk.VkBufferImageCopy(imageSubresource=layers, imageExtent=(5, 4, 1), bufferRowLength=8)
            vk.vkCmdCopyImageToBuffer(commands, image, general, back.buffer, 1, [region])

        back.words[:20] = 0xFF8000FF
        with rig.record() as commands:
            discard(commands, optimal)
            discard(commands, linear)
            filling = vk.VkBufferImageCopy(imageSubresource=layers, imageExtent=(5, 4, 1))
            vk.vkCmdCopyBufferToImage(commands, back.buffer, optimal, general, 1, [filling])
            vk.vkCmdFillBuffer(commands, back.buffer, 0, 4096, 0)
            region = vk.VkImageCopy(
                srcSubresource=layers, dstSubresource=layers, srcOffset=(0, 0, 0), dstOffset=(1, 1, 0),
                extent=(4, 3, 1),
            )  # fmt: skip
            vk.vkCmdCopyImage(commands, optimal, general, linear, general, 1, [region])
            download(commands, linear)
        rig.run(commands)
        grid = back.words[:32].reshape(4, 8)
        assert (grid[1:, 1:5] == 0xFF8000FF).all(), grid
        assert (grid[0, :5] == 0xCDCDCDCD).all(), "a transition from UNDEFINED must not keep contents"
        assert not grid[:3, 5:].any()
        layout = vk.vkGetImageSubresourceLayout(rig.device, linear, vk.VkImageSubresource(aspectMask=1))
        assert layout.rowPitch == 256
        view = vk.vkMapMemory(rig.device, made[1][1], 0, 1024, 0)
        pixels = np.frombuffer(view, np.uint32)
        assert pixels[layout.rowPitch // 4 + 1] == 0xFF8000FF
        pixels[0] = 0x01020304
        with rig.record() as commands:
            download(commands, linear)
        rig.run(commands)
        assert back.words[0] == 0x01020304
        assert not rig.control.violations()
        rgb = vk.vkGetPhysicalDeviceFormatProperties(rig.physical, vk.VK_FORMAT_R8G8B8_UNORM)
        assert rgb.optimalTilingFeatures == 0
        for image, memory in made:
            vk.vkDestroyImage(rig.device, image, None)
            vk.vkFreeMemory(rig.device, memory, None)
        back.destroy()


@scenario()
def queries() -> None:
    with Rig() as rig:
        pool = vk.vkCreateQueryPool(
            rig.device, vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=4), None
        )
        wide = vk.VK_QUERY_RESULT_64_BIT
        with rig.record() as commands:
            vk.vkCmdResetQueryPool(commands, pool, 0, 4)
            for i in range(3):
                vk.vkCmdWriteTimestamp(commands, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, i)
        rig.run(commands)
        data = np.zeros(8, np.uint64)
        target = vk.ffi.from_buffer(data)
        vk.vkGetQueryPoolResults(rig.device, pool, 0, 3, 24, target, 8, wide)
        assert 0 < data[0] < data[1] < data[2]
        raises(vk.VkNotReady, lambda: vk.vkGetQueryPoolResults(rig.device, pool, 3, 1, 8, target, 8, wide))
        available = wide | vk.VK_QUERY_RESULT_WITH_AVAILABILITY_BIT
        raises(
            vk.VkNotReady, lambda: vk.vkGetQueryPoolResults(rig.device, pool, 2, 2, 32, target, 16, available)
        )
        assert data[1] == 1 and data[3] == 0
        assert not rig.control.violations()
        with rig.record() as again:
            vk.vkCmdWriteTimestamp(again, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 0)
        rig.run(again)
        violated("was not reset")
        vk.vkDestroyQueryPool(rig.device, pool, None)
