"""Injected failures, counts of live objects, violations."""

from __future__ import annotations

from collections.abc import Callable

import vulkan as vk

from ..control import Result, null_control
from ..rig import COHERENT, Rig
from .registry import raises, scenario, violated


def _whole_application() -> None:
    with Rig() as rig:
        todo: list[Callable[[], None]] = []
        try:
            host = rig.allocate(256, COHERENT)
            todo.append(host.destroy)
            done = rig.timeline()
            todo.append(lambda: vk.vkDestroySemaphore(rig.device, done, None))
            with rig.record() as commands:
                vk.vkCmdFillBuffer(commands, host.buffer, 0, 256, 1)
            rig.submit(commands, signals=[(done, 1)])
            rig.wait((done, 1))
        finally:
            vk.lib.vkDeviceWaitIdle(rig.device)
            for undo in reversed(todo):
                undo()


@scenario()
def failures() -> None:
    control = null_control()
    with Rig() as rig:
        control.clear()
        control.fail("vkCreateBuffer", nth=2, result=Result.ERROR_OUT_OF_HOST_MEMORY)
        info = vk.VkBufferCreateInfo(size=64, usage=32)
        first = vk.vkCreateBuffer(rig.device, info, None)
        assert control.live("VkBuffer") == 1
        raises(vk.VkErrorOutOfHostMemory, lambda: vk.vkCreateBuffer(rig.device, info, None))
        assert control.live("VkBuffer") == 1 and control.last_failed == "vkCreateBuffer"
        assert control.armed_failures == 0
        third = vk.vkCreateBuffer(rig.device, info, None)  # once only
        assert control.calls("vkCreateBuffer") == 3 and "vkCreateBuffer" in control.called()
        for buffer in (first, third):
            vk.vkDestroyBuffer(rig.device, buffer, None)
        # An injected submission does nothing.
        done = rig.timeline()
        control.fail("vkQueueSubmit", result=Result.ERROR_DEVICE_LOST)
        raises(vk.VkErrorDeviceLost, lambda: rig.submit(signals=[(done, 1)]))
        assert rig.value(done) == 0
        vk.vkDestroySemaphore(rig.device, done, None)
    raises(ValueError, lambda: control.fail("vkCreateBufer"))
    raises(ValueError, lambda: control.live("VkBufer"))
    # Every call of a whole application fails once, and each time nothing is left: a failed call has made
    # nothing.
    control.clear()
    _whole_application()
    total = control.total_calls
    assert total > 15
    named = set()
    for n in range(1, total + 1):
        control.clear()
        control.fail("*", n, Result.ERROR_OUT_OF_HOST_MEMORY)
        try:
            _whole_application()
        except Exception as error:
            assert type(error).__name__ in ("VkErrorOutOfHostMemory", "VkErrorInitializationFailed"), error
        assert control.armed_failures == 0, n
        assert control.live() == 0 and not control.violations(), (
            n,
            control.last_failed,
            control.live_report(),
        )
        named.add(control.last_failed)
    assert {
        "vkCreateInstance", "vkCreateDevice", "vkAllocateMemory", "vkMapMemory", "vkWaitSemaphores",
    } <= named, named  # fmt: skip
    control.clear()


@scenario()
def violations() -> dict[str, str]:
    control = null_control()
    with Rig() as rig:
        one, two = rig.allocate(64, COHERENT), rig.allocate(64, COHERENT)
        with rig.record() as commands:
            rig.copy(commands, one.buffer, two.buffer, (0, 0, 64))
        vk.vkDestroyBuffer(rig.device, one.buffer, None)
        assert not control.violations()
        rig.run(commands)
        violated("which it uses is destroyed")
        vk.vkFreeMemory(rig.device, one.memory, None)
        vk.vkFreeMemory(rig.device, two.memory, None)
        violated("freed with 1 live resource")
        vk.vkDestroyBuffer(rig.device, two.buffer, None)
        # Two live buffers in one place.
        memory = vk.vkAllocateMemory(
            rig.device, vk.VkMemoryAllocateInfo(allocationSize=4096, memoryTypeIndex=0), None
        )
        buffers = [
            vk.vkCreateBuffer(rig.device, vk.VkBufferCreateInfo(size=128, usage=32), None) for _ in range(2)
        ]
        vk.vkBindBufferMemory(rig.device, buffers[0], memory, 0)
        vk.vkBindBufferMemory(rig.device, buffers[1], memory, 64)
        violated("overlaps live VkBuffer")
        for buffer in buffers:
            vk.vkDestroyBuffer(rig.device, buffer, None)
        vk.vkFreeMemory(rig.device, memory, None)
        with rig.record(flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) as once:
            pass
        rig.run(once)
        assert not control.violations()
        rig.run(once)
        violated("is not executable")
        with rig.record(family=1) as commands:
            pass
        rig.run(commands)
        violated("of queue family 1 is submitted to family 0")
        assert rig.timeline() and control.live_report()["VkSemaphore"] == "1"
    violated("is destroyed with 1 live VkSemaphore")
    return {"VkSemaphore": "1"}
