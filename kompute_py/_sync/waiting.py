"""The thread that waits for fences for event loops and futures: one per Manager, started on first use.

The native waiter sleeps without the interpreter lock until some of its watched fences are done. The thread
then calls the callback of each. An await comes here only if its work does not end soon: see turns.py. The
thread refers to the native waiter, not to the Manager. The Manager is therefore destroyed with its last
reference, and this ends the thread.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from .. import _native
from .turns import A_TURN, turns_of

if TYPE_CHECKING:
    from .._device.device import Device

_lock = threading.Lock()
_services: weakref.WeakKeyDictionary[Device, _Service] = weakref.WeakKeyDictionary()
_running: set[_Service] = set()


class _Service:
    """A Manager's waiting thread."""

    def __init__(self, manager: Device) -> None:
        self._native = _native.Waiter(manager._native)
        self._lock = threading.Lock()
        self._calls: dict[int, Callable[[], object]] = {}
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

    def closed(self) -> bool:
        """True if the thread has ended or is ending."""
        return self._native.closed()

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
            loops: dict[asyncio.AbstractEventLoop, list[Wake]] = {}
            for call in calls:
                if isinstance(call, Wake):
                    loops.setdefault(call.loop, []).append(call)
                elif call is not None:
                    call()
            # One call into each loop, even if many of its tasks continue.
            for loop, wakes in loops.items():
                try:
                    loop.call_soon_threadsafe(_go_on, loop, wakes)
                except RuntimeError:
                    continue  # the loop was closed: none of its tasks waits
            call = None
            del calls, loops


class Wake:
    """An await of a fence: ends a future of the event loop. The thread groups these by loop."""

    __slots__ = ("_fence", "_managers", "_number", "_service", "_watched", "future", "loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, fence: _native.Fence, managers: tuple[Device, ...]
    ) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()
        self._fence = fence
        self._managers = managers
        self._watched = 0  # of these, by their threads
        self._service: _Service | None = None
        self._number = 0

    def __call__(self) -> None:
        raise AssertionError("the thread ends grouped awaits itself")

    def look(self, seconds: float) -> bool | None:
        """True if the await is over, maybe cancelled; None if it is for work that waits for a signal."""
        if self.future.done():
            return True
        try:
            return self._fence.look(seconds)
        except Exception as error:
            self.future.set_exception(error)
            return True

    def end(self) -> None:
        """Lets the awaiting task run again."""
        if not self.future.done():
            self.future.set_result(None)

    def hand_over(self) -> None:
        """Lets the next Manager's thread watch; without one, ends the await."""
        self._service = None
        if self.future.done():
            return
        try:
            if self._watched == len(self._managers):
                return self.end()
            service = self._service = service_of(self._managers[self._watched])
            self._watched += 1
            self._number = service.watch(self._fence, self)
            # The thread may have ended. If the Manager was destroyed, the watched work was waited for first.
            # If the program ends, unfinished fences are never reported.
            if service.closed() and self._fence.look(0.0):
                self.end()
        except Exception as error:
            self.future.set_exception(error)

    def drop(self) -> None:
        """Stops watching after the await was cancelled."""
        if self._service is not None:
            self._service.forget(self._number)


def _go_on(loop: asyncio.AbstractEventLoop, wakes: list[Wake]) -> None:
    for wake in wakes[:A_TURN]:
        wake.hand_over()
    if len(wakes) > A_TURN:
        loop.call_soon(_go_on, loop, wakes[A_TURN:])


def service_of(manager: Device) -> _Service:
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


def end(manager: Device) -> None:
    """Ends the Manager's thread, if any, after it has reported the fences that are done."""
    with _lock:
        service = _services.pop(manager, None)
    if service is not None:
        service.close()
        service.join()


def wait_in_loop(fence: _native.Fence, managers: tuple[Device, ...]) -> Generator[Any, None, None]:
    """Returns when the fence is done on the devices of all `managers`. For `yield from` in a task."""
    loop = asyncio.get_running_loop()
    turns = turns_of(loop)
    if turns.look(fence, loop):
        return
    wake = Wake(loop, fence, managers)
    turns.add(wake, loop)
    try:
        yield from wake.future
    finally:
        # The await was cancelled; otherwise the thread has already removed the entry.
        if not wake.future.done() or wake.future.cancelled():
            wake.drop()


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
