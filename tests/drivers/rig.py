"""A small Vulkan application for the checks of the null driver: instance, device, buffers, submissions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import vulkan as vk

from .control import NullControl, null_control

DEVICE_ONLY, COHERENT, CACHED, LOCAL_VISIBLE = range(4)  # memory types of the default layout
ENDLESS = 2**64 - 1
BUFFER_USAGE = (
    vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
    | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
    | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
    | vk.VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT
)


def spirv(*, local_size: tuple[int, int, int] = (64, 1, 1), entry: bytes = b"main") -> bytes:
    """A compute shader that does nothing, assembled by hand: the driver reads no more than its entry
    point."""
    name = np.frombuffer(entry + b"\0" * (4 - len(entry) % 4), "<u4").tolist()

    def op(code: int, *words: int) -> list[int]:
        return [(len(words) + 1) << 16 | code, *words]

    words = [0x07230203, 0x00010000, 0, 10, 0]
    words += op(17, 1)  # OpCapability Shader
    words += op(14, 0, 1)  # OpMemoryModel Logical GLSL450
    words += op(15, 5, 4, *name)  # OpEntryPoint GLCompute %4
    words += op(16, 4, 17, *local_size)  # OpExecutionMode LocalSize
    words += op(19, 2) + op(33, 3, 2)  # %2 = OpTypeVoid, %3 = OpTypeFunction
    words += op(54, 2, 4, 0, 3) + op(248, 5) + op(253) + op(56)  # the empty function %4
    return np.array(words, "<u4").tobytes()


class Allocation:
    """A buffer with memory of its own, mapped if the host can see it."""

    def __init__(self, rig: Rig, size: int, memory_type: int, usage: int = BUFFER_USAGE, mapped: bool = True):
        self.rig, self.size, self.words = rig, size, np.zeros(0, np.uint32)
        self.buffer = self.memory = vk.VK_NULL_HANDLE
        try:
            self.buffer = vk.vkCreateBuffer(rig.device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
            needs = vk.vkGetBufferMemoryRequirements(rig.device, self.buffer)
            info = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=memory_type)
            self.memory = vk.vkAllocateMemory(rig.device, info, None)
            vk.vkBindBufferMemory(rig.device, self.buffer, self.memory, 0)
            if mapped and memory_type != DEVICE_ONLY:
                view = vk.vkMapMemory(rig.device, self.memory, 0, needs.size, 0)
                self.words = np.frombuffer(view, np.uint32)[: size // 4]
        except BaseException:
            self.destroy()
            raise

    def _range(self, offset: int, size: int) -> Any:
        return vk.VkMappedMemoryRange(memory=self.memory, offset=offset, size=size)

    def flush(self, offset: int = 0, size: int = ENDLESS) -> None:
        vk.vkFlushMappedMemoryRanges(self.rig.device, 1, [self._range(offset, size)])

    def invalidate(self, offset: int = 0, size: int = ENDLESS) -> None:
        vk.vkInvalidateMappedMemoryRanges(self.rig.device, 1, [self._range(offset, size)])

    def destroy(self) -> None:
        self.words = np.zeros(0, np.uint32)
        vk.vkDestroyBuffer(self.rig.device, self.buffer, None)
        vk.vkFreeMemory(self.rig.device, self.memory, None)


class Rig:
    """An instance, and a device with all of its queues."""

    def __init__(self, *, api: int = vk.VK_MAKE_VERSION(1, 3, 0), extensions: Sequence[str] = ()) -> None:
        self.control: NullControl = null_control()
        self.device: Any = None
        self.instance = make_instance(api)
        try:
            self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
            self.families = vk.vkGetPhysicalDeviceQueueFamilyProperties(self.physical)
            self.device = self._make_device(extensions)
            self.queues = {
                (family, index): vk.vkGetDeviceQueue(self.device, family, index)
                for family, properties in enumerate(self.families)
                for index in range(properties.queueCount)
            }
            self.pools: dict[int, Any] = {}
            for family in range(len(self.families)):
                info = vk.VkCommandPoolCreateInfo(
                    flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queueFamilyIndex=family
                )
                self.pools[family] = vk.vkCreateCommandPool(self.device, info, None)
        except BaseException:
            self.destroy()
            raise

    def _make_device(self, extensions: Sequence[str]) -> Any:
        twelve = vk.VkPhysicalDeviceVulkan12Features(
            timelineSemaphore=1, hostQueryReset=1, bufferDeviceAddress=1
        )
        thirteen = vk.VkPhysicalDeviceVulkan13Features(pNext=twelve, synchronization2=1)
        queues = [
            vk.VkDeviceQueueCreateInfo(
                queueFamilyIndex=i, queueCount=f.queueCount, pQueuePriorities=[1.0] * f.queueCount
            )
            for i, f in enumerate(self.families)
        ]
        info = vk.VkDeviceCreateInfo(
            pNext=thirteen, pQueueCreateInfos=queues, ppEnabledExtensionNames=list(extensions)
        )
        return vk.vkCreateDevice(self.physical, info, None)

    def destroy(self) -> None:
        if self.device:
            for pool in getattr(self, "pools", {}).values():
                vk.vkDestroyCommandPool(self.device, pool, None)
            vk.vkDestroyDevice(self.device, None)
            self.device = None
        if self.instance:
            vk.vkDestroyInstance(self.instance, None)
            self.instance = None

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def allocate(self, size: int, memory_type: int, **options: Any) -> Allocation:
        return Allocation(self, size, memory_type, **options)

    def new_commands(self, family: int = 0, count: int = 1, level: int = 0) -> list[Any]:
        info = vk.VkCommandBufferAllocateInfo(
            commandPool=self.pools[family], level=level, commandBufferCount=count
        )
        buffers = vk.vkAllocateCommandBuffers(self.device, info)
        return [buffers[i] for i in range(count)]

    @contextlib.contextmanager
    def record(self, family: int = 0, flags: int = 0) -> Iterator[Any]:
        commands = self.new_commands(family)[0]
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(flags=flags))
        yield commands
        vk.vkEndCommandBuffer(commands)

    def copy(self, commands: Any, source: Any, target: Any, *regions: tuple[int, int, int]) -> None:
        copies = [vk.VkBufferCopy(srcOffset=s, dstOffset=d, size=n) for s, d, n in regions]
        vk.vkCmdCopyBuffer(commands, source, target, len(copies), copies)

    def timeline(self, value: int = 0) -> Any:
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=value)
        return vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(pNext=kind), None)

    def submit(
        self,
        *commands: Any,
        waits: Sequence[tuple[Any, int]] = (),
        signals: Sequence[tuple[Any, int]] = (),
        queue: tuple[int, int] = (0, 0),
    ) -> None:
        values = vk.VkTimelineSemaphoreSubmitInfo(
            pWaitSemaphoreValues=[v for _, v in waits], pSignalSemaphoreValues=[v for _, v in signals]
        )
        info = vk.VkSubmitInfo(
            pNext=values,
            pWaitSemaphores=[s for s, _ in waits],
            pWaitDstStageMask=[vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT] * len(waits),
            pCommandBuffers=list(commands),
            pSignalSemaphores=[s for s, _ in signals],
        )
        vk.vkQueueSubmit(self.queues[queue], 1, [info], vk.VK_NULL_HANDLE)

    def run(self, *commands: Any, queue: tuple[int, int] = (0, 0)) -> None:
        self.submit(*commands, queue=queue)
        vk.vkQueueWaitIdle(self.queues[queue])

    def value(self, semaphore: Any) -> int:
        return vk.vkGetSemaphoreCounterValue(self.device, semaphore)

    def wait(self, *pairs: tuple[Any, int], timeout: int = ENDLESS, any_of: bool = False) -> bool:
        """Whether the values were reached in time."""
        info = vk.VkSemaphoreWaitInfo(
            flags=vk.VK_SEMAPHORE_WAIT_ANY_BIT if any_of else 0,
            pSemaphores=[s for s, _ in pairs],
            pValues=[v for _, v in pairs],
        )
        try:
            vk.vkWaitSemaphores(self.device, info, timeout)
        except vk.VkTimeout:
            return False
        return True

    def signal(self, semaphore: Any, value: int) -> None:
        vk.vkSignalSemaphore(self.device, vk.VkSemaphoreSignalInfo(semaphore=semaphore, value=value))


class Pipeline:
    """A compute pipeline with one storage buffer at binding 0 and room for `sets` descriptor sets."""

    def __init__(self, rig: Rig, *, code: bytes | None = None, sets: int = 1, push_bytes: int = 16) -> None:
        self.rig, device = rig, rig.device
        code = spirv() if code is None else code
        self.module = vk.vkCreateShaderModule(
            device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None
        )
        storage = vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
        binding = vk.VkDescriptorSetLayoutBinding(
            binding=0, descriptorType=storage, descriptorCount=1, stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT
        )
        self.set_layout = vk.vkCreateDescriptorSetLayout(
            device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=[binding]), None
        )
        push = vk.VkPushConstantRange(stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=push_bytes)
        self.layout = vk.vkCreatePipelineLayout(
            device,
            vk.VkPipelineLayoutCreateInfo(pSetLayouts=[self.set_layout], pPushConstantRanges=[push]),
            None,
        )
        self.cache = vk.vkCreatePipelineCache(device, vk.VkPipelineCacheCreateInfo(), None)
        self.pipeline = self.make()
        size = vk.VkDescriptorPoolSize(type=storage, descriptorCount=sets)
        self.pool = vk.vkCreateDescriptorPool(
            device, vk.VkDescriptorPoolCreateInfo(maxSets=sets, pPoolSizes=[size]), None
        )

    def make(self, entry: str = "main") -> Any:
        stage = vk.VkPipelineShaderStageCreateInfo(
            stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=self.module, pName=entry
        )
        info = vk.VkComputePipelineCreateInfo(stage=stage, layout=self.layout)
        return vk.vkCreateComputePipelines(self.rig.device, self.cache, 1, [info], None)[0]

    def set_for(self, buffer: Any, offset: int = 0, size: int = ENDLESS) -> Any:
        info = vk.VkDescriptorSetAllocateInfo(descriptorPool=self.pool, pSetLayouts=[self.set_layout])
        made = vk.vkAllocateDescriptorSets(self.rig.device, info)[0]
        what = vk.VkDescriptorBufferInfo(buffer=buffer, offset=offset, range=size)
        write = vk.VkWriteDescriptorSet(
            dstSet=made, dstBinding=0, descriptorCount=1, descriptorType=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            pBufferInfo=[what],
        )  # fmt: skip
        vk.vkUpdateDescriptorSets(self.rig.device, 1, [write], 0, None)
        return made

    def bind(self, commands: Any, descriptor_set: Any) -> None:
        compute = vk.VK_PIPELINE_BIND_POINT_COMPUTE
        vk.vkCmdBindPipeline(commands, compute, self.pipeline)
        vk.vkCmdBindDescriptorSets(commands, compute, self.layout, 0, 1, [descriptor_set], 0, None)

    def destroy(self) -> None:
        device = self.rig.device
        vk.vkDestroyDescriptorPool(device, self.pool, None)
        vk.vkDestroyPipeline(device, self.pipeline, None)
        vk.vkDestroyPipelineCache(device, self.cache, None)
        vk.vkDestroyPipelineLayout(device, self.layout, None)
        vk.vkDestroyDescriptorSetLayout(device, self.set_layout, None)
        vk.vkDestroyShaderModule(device, self.module, None)


def make_instance(api: int = vk.VK_MAKE_VERSION(1, 3, 0)) -> Any:
    info = vk.VkInstanceCreateInfo(pApplicationInfo=vk.VkApplicationInfo(apiVersion=api))
    return vk.vkCreateInstance(info, None)
