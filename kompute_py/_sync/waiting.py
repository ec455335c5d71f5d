"""The thread that waits for fences for event loops and futures: one per Manager, started on first use.

The native waiter sleeps without the interpreter lock until some of its watched fences are done. The thread
then calls the callback of each. The thread refers to the native waiter, not to the Manager. The Manager is
therefore destroyed with its last reference, and this ends the thread.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import _native

if TYPE_CHECKING:
    from .._manager.manager import Manager

_lock = threading.Lock()
_services: weakref.WeakKeyDictionary[Manager, _Service] = weakref.WeakKeyDictionary()
_running: set[_Service] = set()
# The most awaits that one turn of an event loop starts or ends: a thousand at once must not block other
# tasks.
_A_TURN = 64


class _Service:
    """A Manager's waiting thread."""

    def __init__(self, manager: Manager) -> None:
        self._native = _native.Waiter(manager._native)
        self._lock = threading.Lock()
        self._calls: dict[int, Callable[[], object]] = {}
        # For each loop, the futures that are not yet watched. Only the loop's own thread touches its queue.
        self._asked: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, collections.deque[_Wake]] = (
            weakref.WeakKeyDictionary()
        )
        # A daemon thread: the interpreter would wait for any other thread before it calls _end.
        self._thread = threading.Thread(
            target=self._run, name=f"kompute_py waiting for {manager._device_name}", daemon=True
        )
        self._thread.start()

    def watch(self, fence: _native.Fence, call: Callable[[], object]) -> int:
        """Makes the thread call `call` when the part of `fence` on this device is done.

        Returns a number for `forget`.
        """
        with self._lock:
            number = self._native.watch(fence)
            self._calls[number] = call
        return number

    def watch_soon(self, wake: _Wake) -> None:
        """Watches for a future of the running event loop, in one of the loop's next turns."""
        loop = wake.loop
        queue = self._asked.get(loop)
        if queue is None:
            with self._lock:
                queue = self._asked[loop] = collections.deque()
        if not queue:
            loop.call_soon(self._watch_some, loop, queue)
        queue.append(wake)

    def _watch_some(self, loop: asyncio.AbstractEventLoop, queue: collections.deque[_Wake]) -> None:
        for _ in range(min(len(queue), _A_TURN)):
            wake = queue[0]
            if not wake.future.done():
                try:
                    wake.number = self.watch(wake.fence, wake)
                    # The thread may have ended. If the Manager was destroyed, the watched work was waited for
                    # first. If the program ends, unfinished fences are never reported.
                    if self._native.closed() and wake.fence.done() and not wake.future.done():
                        wake.future.set_result(None)
                except Exception as error:
                    wake.future.set_exception(error)
            queue.popleft()
        if queue:
            loop.call_soon(self._watch_some, loop, queue)

    def drop(self, wake: _Wake) -> None:
        """Stops watching after the await was cancelled."""
        if wake.number is not None:
            self.forget(wake.number)

    def forget(self, number: int) -> None:
        with self._lock:
            self._calls.pop(number, None)
        self._native.forget(number)

    def close(self) -> None:
        self._native.close()
        _running.discard(self)

    def join(self) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        native = self._native
        while True:
            closed = native.closed()
            numbers = native.wait()
            if not numbers:
                if closed:
                    return
                continue
            with self._lock:
                calls = [self._calls.pop(number, None) for number in numbers]
            loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
            for call in calls:
                if isinstance(call, _Wake):
                    loops.setdefault(call.loop, []).append(call.future)
                elif call is not None:
                    call()
            # One call into each loop, even if many of its tasks continue.
            for loop, futures in loops.items():
                try:
                    loop.call_soon_threadsafe(_resolve, loop, futures)
                except RuntimeError:
                    continue  # the loop was closed: none of its tasks waits
            del calls, loops


class _Wake:
    """A callback for a future of an event loop. The thread groups these by loop instead of calling each."""

    __slots__ = ("fence", "future", "loop", "number")

    def __init__(self, loop: asyncio.AbstractEventLoop, fence: _native.Fence) -> None:
        self.loop = loop
        self.fence = fence
        self.future: asyncio.Future[None] = loop.create_future()
        self.number: int | None = None

    def __call__(self) -> None:
        raise AssertionError("the thread resolves grouped futures itself")


def _resolve(loop: asyncio.AbstractEventLoop, futures: list[asyncio.Future[None]]) -> None:
    for future in futures[:_A_TURN]:
        if not future.done():
            future.set_result(None)
    if len(futures) > _A_TURN:
        loop.call_soon(_resolve, loop, futures[_A_TURN:])


def service_of(manager: Manager) -> _Service:
    if (known := _services.get(manager)) is not None:
        return known
    with _lock:
        service = _services.get(manager)
        if service is None:
            service = _Service(manager)
            _services[manager] = service
            _running.add(service)
            weakref.finalize(manager, service.close).atexit = False
        return service


def end(manager: Manager) -> None:
    """Ends the Manager's thread, if any, after it has reported the fences that are done."""
    with _lock:
        service = _services.pop(manager, None)
    if service is not None:
        service.close()
        service.join()


async def wait_in_loop(fence: _native.Fence, managers: tuple[Manager, ...]) -> None:
    """Returns when the fence is done on the devices of all `managers`."""
    loop = asyncio.get_running_loop()
    for manager in managers:
        service = service_of(manager)
        wake = _Wake(loop, fence)
        service.watch_soon(wake)
        try:
            await wake.future
        finally:
            # The await was cancelled; otherwise the thread has already removed the entry.
            if not wake.future.done() or wake.future.cancelled():
                service.drop(wake)


def _forget() -> None:
    # Runs in a child process after fork(): the threads exist only in the parent.
    global _lock
    _lock = threading.Lock()
    _services.clear()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _end() -> None:
    # Runs before the interpreter ends: a daemon thread that takes the interpreter lock later is killed.
    with _lock:
        services = list(_running)
    for service in services:
        service.close()
    for service in services:
        service.join()
