"""Semaphores, asynchronous execution, lost devices."""

from __future__ import annotations

import threading
import time

import vulkan as vk

from ..rig import COHERENT, Rig
from .registry import raises, scenario, violated


@scenario()
def timelines() -> None:
    with Rig() as rig:
        a, b, c = rig.timeline(3), rig.timeline(), rig.timeline()
        assert rig.value(a) == 3
        rig.submit(signals=[(a, 5)])
        assert rig.value(a) == 5 and rig.wait((a, 5)) and not rig.wait((a, 6), timeout=0)
        # A wait before its signal, on another queue: held until the host signals.
        rig.submit(waits=[(a, 6)], signals=[(b, 1)], queue=(0, 1))
        rig.submit(signals=[(b, 2)], queue=(0, 1))  # behind it on the same queue
        assert rig.value(b) == 0 and not rig.wait((b, 1), timeout=2_000_000)
        start = time.perf_counter()
        waker = threading.Timer(0.05, lambda: rig.signal(a, 6))
        waker.start()
        assert rig.wait((b, 2)) and time.perf_counter() - start > 0.04
        waker.join()
        # Released by a submission, and through a chain over three queues.
        rig.submit(waits=[(b, 10)], signals=[(c, 1)], queue=(1, 0))
        rig.submit(waits=[(a, 10)], signals=[(b, 10)], queue=(1, 1))
        assert rig.value(c) == 0
        rig.submit(signals=[(a, 10)])
        assert rig.value(b) == 10 and rig.value(c) == 1
        assert rig.wait((a, 99), (c, 1), any_of=True, timeout=0)
        assert not rig.wait((a, 99), (c, 1), timeout=0)
        vk.vkDeviceWaitIdle(rig.device)
        assert not rig.control.violations()
        rig.signal(a, 4)
        violated("not above its value")
        assert rig.value(a) == 10
        for semaphore in (a, b, c):
            vk.vkDestroySemaphore(rig.device, semaphore, None)


@scenario("gpu_us=300000")
def asynchronous() -> None:
    with Rig() as rig:
        host, back = rig.allocate(64, COHERENT), rig.allocate(64, COHERENT)
        host.words[:] = 4
        with rig.record() as commands:
            rig.copy(commands, host.buffer, back.buffer, (0, 0, 64))
        done = rig.timeline()
        start = time.perf_counter()
        rig.submit(commands, signals=[(done, 1)])
        assert time.perf_counter() - start < 0.28 and rig.value(done) == 0 and not back.words.any()
        assert rig.wait((done, 1)) and time.perf_counter() - start >= 0.29
        assert (back.words == 4).all()
        # Destroying what the device uses is noted, and harmless.
        rig.submit(commands, signals=[(done, 2)])
        vk.vkDestroyBuffer(rig.device, host.buffer, None)
        violated("is destroyed while 1 pending submission")
        assert rig.wait((done, 2))
        violated("which it uses is destroyed")
        vk.vkFreeMemory(rig.device, host.memory, None)
        back.destroy()
        vk.vkDestroySemaphore(rig.device, done, None)


@scenario("max_wait_ms=100")
def endless_wait() -> None:
    with Rig() as rig:
        never = rig.timeline()
        raises(vk.VkErrorDeviceLost, lambda: rig.wait((never, 1)))
        violated("nothing signals what it waits for")
        vk.vkDestroySemaphore(rig.device, never, None)


@scenario()
def lost_device() -> None:
    with Rig() as rig:
        done = rig.timeline()
        rig.control.lose_device(after_submits=1)
        rig.submit(signals=[(done, 1)])
        assert rig.wait((done, 1))
        raises(vk.VkErrorDeviceLost, lambda: rig.submit(signals=[(done, 2)]))
        raises(vk.VkErrorDeviceLost, lambda: rig.wait((done, 2)))
        raises(vk.VkErrorDeviceLost, lambda: vk.vkDeviceWaitIdle(rig.device))
        vk.vkDestroySemaphore(rig.device, done, None)
    with Rig() as rig:
        done = rig.timeline()
        rig.submit(waits=[(done, 1)], signals=[(done, 2)])
        breaker = threading.Timer(0.05, rig.control.lose_device)
        breaker.start()
        raises(vk.VkErrorDeviceLost, lambda: rig.wait((done, 2)))  # the blocked thread is woken
        breaker.join()
        vk.vkDestroySemaphore(rig.device, done, None)
