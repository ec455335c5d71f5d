"""Memory: types, limits, flushes, transfers."""

from __future__ import annotations

import platform
import time

import numpy as np
import vulkan as vk

from ..rig import CACHED, COHERENT, DEVICE_ONLY, Rig
from .registry import raises, scenario, violated


@scenario()
def transfers() -> None:
    with Rig() as rig:
        host, local, back = (
            rig.allocate(4096, COHERENT),
            rig.allocate(4096, DEVICE_ONLY),
            rig.allocate(4096, COHERENT),
        )
        host.words[:] = np.arange(1024)
        with rig.record() as commands:
            rig.copy(commands, host.buffer, local.buffer, (0, 0, 4096))
            vk.vkCmdFillBuffer(commands, local.buffer, 16, 8, 0xDEADBEEF)
            rig.copy(commands, local.buffer, back.buffer, (0, 2048, 2048), (2048, 0, 2048))
        assert not back.words.any()  # recording executes nothing
        rig.run(commands)
        expected = np.arange(1024, dtype=np.uint32)
        expected[4:6] = 0xDEADBEEF
        np.testing.assert_array_equal(back.words, np.roll(expected, 512))
        raises(vk.VkErrorMemoryMapFailed, lambda: vk.vkMapMemory(rig.device, local.memory, 0, 16, 0))
        with rig.record() as commands:
            rig.copy(commands, host.buffer, back.buffer, (4000, 0, 128))
        before = back.words.copy()
        rig.run(commands)
        np.testing.assert_array_equal(back.words, before)
        violated("128 bytes at 4000")
        for allocation in (host, local, back):
            allocation.destroy()


@scenario()
def noncoherent() -> None:
    with Rig() as rig:
        source, cached, back = (
            rig.allocate(256, COHERENT),
            rig.allocate(256, CACHED),
            rig.allocate(256, COHERENT),
        )
        with rig.record() as download:
            rig.copy(download, cached.buffer, back.buffer, (0, 0, 256))
        with rig.record() as upload:
            rig.copy(upload, source.buffer, cached.buffer, (0, 0, 256))
        cached.words[:] = 5
        rig.run(download)
        assert not back.words.any(), "the device saw a write that was not flushed"
        cached.flush()
        rig.run(download)
        assert (back.words == 5).all()
        source.words[:] = 9
        rig.run(upload)
        assert (cached.words != 9).all(), "the host saw a device write without an invalidation"
        cached.flush()  # nothing was written by the host: the device's contents stay
        cached.invalidate()
        assert (cached.words == 9).all()
        # The host writes what its cache held before the device's write: that is a write all the same.
        source.words[:] = 1
        rig.run(upload)
        cached.words[:] = 9
        cached.flush()
        rig.run(download)
        assert (back.words == 9).all()
        # Only the flushed atoms move.
        cached.invalidate()
        cached.words[:] = 3
        cached.flush(64, 64)
        rig.run(download)
        assert (
            (back.words[16:32] == 3).all() and (back.words[:16] == 9).all() and (back.words[32:] == 9).all()
        )
        assert not rig.control.violations()
        cached.flush(4, 60)
        violated("offset 4 is not a multiple of nonCoherentAtomSize")
        cached.flush(0, 20)
        violated("ends at 20")
        cached.invalidate(0, 512)
        violated("outside the mapped range")
        for allocation in (source, cached, back):
            allocation.destroy()


@scenario("heap_mib=64,maxMemoryAllocationCount=8")
def memory_limits() -> None:
    with Rig() as rig:
        big = vk.VkMemoryAllocateInfo(allocationSize=40 << 20, memoryTypeIndex=DEVICE_ONLY)
        first = vk.vkAllocateMemory(rig.device, big, None)
        raises(vk.VkErrorOutOfDeviceMemory, lambda: vk.vkAllocateMemory(rig.device, big, None))
        vk.vkFreeMemory(rig.device, first, None)
        vk.vkFreeMemory(rig.device, vk.vkAllocateMemory(rig.device, big, None), None)
        small = vk.VkMemoryAllocateInfo(allocationSize=64, memoryTypeIndex=DEVICE_ONLY)
        all_of_them = [vk.vkAllocateMemory(rig.device, small, None) for _ in range(8)]
        raises(vk.VkErrorTooManyObjects, lambda: vk.vkAllocateMemory(rig.device, small, None))
        for memory in all_of_them:
            vk.vkFreeMemory(rig.device, memory, None)


@scenario()
def lazy_gigabyte() -> None:
    with Rig() as rig:
        start = time.perf_counter()
        for memory_type in (DEVICE_ONLY, COHERENT, CACHED):
            rig.allocate(1 << 30, memory_type).destroy()
        assert time.perf_counter() - start < 2


@scenario("memory=unified")
def unified() -> None:
    with Rig() as rig:
        properties = vk.vkGetPhysicalDeviceMemoryProperties(rig.physical)
        assert properties.memoryTypeCount == 1 and properties.memoryTypes[0].propertyFlags == 15
        assert (
            vk.vkGetPhysicalDeviceProperties(rig.physical).deviceType
            == vk.VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
        )


@scenario("memory=noncoherent")
def noncoherent_only() -> None:
    with Rig() as rig:
        properties = vk.vkGetPhysicalDeviceMemoryProperties(rig.physical)
        flags = [properties.memoryTypes[i].propertyFlags for i in range(properties.memoryTypeCount)]
        assert flags == [1, 10]


@scenario("profile=small_bar,trap_reads=1")
def trapped_reads() -> None:
    """Writing memory that the host does not cache is fine;
    reading it is noted, again after each submission."""
    if platform.machine() != "x86_64":
        return
    with Rig() as rig:
        bar = rig.allocate(1 << 16, 2)
        words = bar.words
        words[5:100] = 7
        assert not rig.control.violations()
        for value in (1, 2):
            with rig.record() as commands:
                vk.vkCmdFillBuffer(commands, bar.buffer, 0, 16, value)
            rig.run(commands)
            assert not rig.control.violations()
            assert words[:6].tolist() == [value] * 4 + [0, 7]
            violated("the host reads uncached device memory, 0 bytes into a mapping")
        del words
        bar.destroy()
