"""Pipelines, descriptors, the log of executed commands."""

from __future__ import annotations

import numpy as np
import vulkan as vk

from ..rig import COHERENT, DEVICE_ONLY, Pipeline, Rig, spirv
from .registry import raises, scenario, violated


@scenario()
def pipelines() -> None:
    with Rig() as rig:
        compute = Pipeline(rig, sets=1)
        # The cache's data begins with a correct header, and a second pipeline of the shader adds nothing.
        size = vk.ffi.new("size_t*")
        get = vk.lib.vkGetPipelineCacheData
        assert get(rig.device, compute.cache, size, vk.ffi.NULL) == 0 and size[0] == 40
        raw = vk.ffi.new("char[]", size[0])
        assert get(rig.device, compute.cache, size, raw) == 0
        header = bytes(vk.ffi.buffer(raw, 32))
        properties = vk.vkGetPhysicalDeviceProperties(rig.physical)
        np.testing.assert_array_equal(
            np.frombuffer(header[:16], "<u4"), [32, 1, properties.vendorID, properties.deviceID]
        )
        assert header[16:] == bytes(properties.pipelineCacheUUID)
        vk.vkDestroyPipeline(rig.device, compute.make(), None)
        assert get(rig.device, compute.cache, size, vk.ffi.NULL) == 0 and size[0] == 40
        live = rig.control.live()
        for garbage in (b"\0" * 64, spirv()[:-20], b"garbage!"):
            info = vk.VkShaderModuleCreateInfo(codeSize=len(garbage), pCode=garbage)
            raises(Exception, lambda info=info: vk.vkCreateShaderModule(rig.device, info, None))
            violated("not SPIR-V")
        raises(Exception, lambda: compute.make("nowhere"))
        violated("no compute entry point 'nowhere'")
        assert rig.control.live() == live
        buffer = rig.allocate(64, COHERENT)
        compute.set_for(buffer.buffer)
        # The vulkan package has no exception for this code and raises KeyError with it.
        raises(KeyError, lambda: compute.set_for(buffer.buffer))
        buffer.destroy()
        compute.destroy()


@scenario()
def log_of_commands() -> None:
    with Rig() as rig:
        compute = Pipeline(rig, sets=2)
        a, b = rig.allocate(256, DEVICE_ONLY), rig.allocate(256, DEVICE_ONLY)
        sets = [compute.set_for(a.buffer), compute.set_for(b.buffer, 64, 128)]
        with rig.record() as commands:
            compute.bind(commands, sets[0])
            push = np.array([1, 2], np.uint32)
            vk.vkCmdPushConstants(commands, compute.layout, 32, 0, 8, vk.ffi.from_buffer(push))
            vk.vkCmdDispatch(commands, 3, 2, 1)
            barrier = vk.VkBufferMemoryBarrier(
                srcAccessMask=64, dstAccessMask=32, srcQueueFamilyIndex=2**32 - 1,
                dstQueueFamilyIndex=2**32 - 1,
                buffer=a.buffer, offset=16, size=32,
            )  # fmt: skip
            vk.vkCmdPipelineBarrier(commands, 2048, 4096, 0, 0, None, 1, [barrier], 0, None)
            rig.copy(commands, a.buffer, b.buffer, (16, 0, 32))
            compute.bind(commands, sets[1])
            vk.vkCmdDispatch(commands, 1, 1, 1)
        with rig.control.logging():
            rig.run(commands)
        rig.run(commands)  # not logged
        log = rig.control.commands()
        assert [entry["op"] for entry in log] == ["submit", "dispatch", "barrier", "copy_buffer", "dispatch"]
        first, second = log[1], log[4]
        assert first["groups"] == [3, 2, 1] and first["push"] == "0100000002000000"
        assert first["bindings"][0]["offset"] == 0 and first["bindings"][0]["range"] == 256
        assert second["bindings"][0]["offset"] == 64 and second["bindings"][0]["range"] == 128
        assert (
            first["bindings"][0]["buffer"]
            == log[3]["src"]
            != second["bindings"][0]["buffer"]
            == log[3]["dst"]
        )
        assert rig.control.barriers() == [log[2]]
        found = log[2]["buffers"][0]
        wanted = {
            "src_stage": 2048, "src_access": 64, "dst_stage": 4096, "dst_access": 32, "offset": 16,
            "size": 32,
        }  # fmt: skip
        assert {key: found[key] for key in wanted} == wanted
        assert rig.control.dispatches == 4
        assert not rig.control.violations()
        for allocation in (a, b):
            allocation.destroy()
        compute.destroy()


@scenario("maxPushConstantsSize=128,groups=7,maxStorageBufferRange=4096")
def limits() -> None:
    with Rig() as rig:
        compute = Pipeline(rig, sets=2)
        bound = rig.allocate(8192, DEVICE_ONLY)
        compute.set_for(bound.buffer, 0, 4096)
        assert not rig.control.violations()
        allowed = compute.set_for(bound.buffer)
        violated("exceeds maxStorageBufferRange 4096")
        with rig.record() as commands:
            compute.bind(commands, allowed)
            vk.vkCmdDispatch(commands, 8, 1, 1)
        violated("exceed maxComputeWorkGroupCount 7")
        compute.destroy()
        Pipeline(rig, push_bytes=256).destroy()
        violated("exceed maxPushConstantsSize 128")
        bound.destroy()
