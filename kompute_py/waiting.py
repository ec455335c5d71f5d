"""The thread that waits for fences on behalf of event loops and futures: one a Manager, started when first needed.

The native waiter sleeps without the interpreter lock until some of the fences that it watches have passed. The thread then
calls what stands for each. It holds the native waiter and nothing else of the Manager, which therefore goes when its
last user does and ends the thread.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _native

if TYPE_CHECKING:
    from .fence import Fence
    from .manager import Manager

_lock = threading.Lock()
_services: weakref.WeakKeyDictionary[Manager, _Service] = weakref.WeakKeyDictionary()
_running: set[_Service] = set()


class _Service:
    """A Manager's waiting thread."""

    def __init__(self, manager: Manager) -> None:
        self._native = _native.Waiter(manager._native)
        self._lock = threading.Lock()
        self._calls: dict[int, Callable[[], object]] = {}
        # A daemon, since the interpreter would else wait for it before it calls what ends it.
        self._thread = threading.Thread(
            target=self._run, name=f"kompute_py waiting for {manager._device_name}", daemon=True
        )
        self._thread.start()

    def watch(self, fence: _native.Fence, call: Callable[[], object]) -> int:
        """Has the thread call `call` when the fence has passed, as far as it is this device's. The number is for `forget`."""
        with self._lock:
            number = self._native.watch(fence)
            self._calls[number] = call
        return number

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
            # One call into each loop, however many of its tasks go on.
            for loop, futures in loops.items():
                try:
                    loop.call_soon_threadsafe(_resolve, futures)
                except RuntimeError:
                    continue  # closed meanwhile: nobody waits in it
            del calls, loops


class _Wake:
    """Stands for a future of an event loop; the thread gathers them by loop instead of calling each."""

    __slots__ = ("future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
        self.loop = loop
        self.future = future

    def __call__(self) -> None:
        raise AssertionError("gathered by the thread")


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _service(manager: Manager) -> _Service:
    with _lock:
        service = _services.get(manager)
        if service is None:
            service = _Service(manager)
            _services[manager] = service
            _running.add(service)
            weakref.finalize(manager, service.close).atexit = False
        return service


def end(manager: Manager) -> None:
    """Ends the Manager's thread, if it has one, after it has told of what has passed."""
    with _lock:
        service = _services.pop(manager, None)
    if service is not None:
        service.close()
        service.join()


async def wait_in_loop(fence: _native.Fence, managers: tuple[Manager, ...]) -> None:
    """Returns when the fence has passed on the devices of all `managers`."""
    loop = asyncio.get_running_loop()
    for manager in managers:
        service = _service(manager)
        future: asyncio.Future[None] = loop.create_future()
        number = service.watch(fence, _Wake(loop, future))
        try:
            await future
        finally:
            # Where the await was cancelled; else it is forgotten already.
            if not future.done() or future.cancelled():
                service.forget(number)


def future(fence: Fence) -> concurrent.futures.Future[Fence]:
    """A future that the waiting threads of the fence's Managers fulfil."""
    result: concurrent.futures.Future[Fence] = concurrent.futures.Future()
    managers = list(fence._managers)

    def go_on() -> None:
        if managers and not result.cancelled():
            try:
                service = _service(managers.pop(0))
                number = service.watch(fence._native, go_on)
            except Exception as error:
                if result.set_running_or_notify_cancel():
                    result.set_exception(error)
                return
            result.add_done_callback(lambda done: service.forget(number) if done.cancelled() else None)
        elif result.set_running_or_notify_cancel():
            try:
                result.set_result(fence.wait(0))
            except BaseException as error:
                result.set_exception(error)

    go_on()
    return result


def _forget() -> None:
    # In a child process after fork(): the threads are the parent's.
    global _lock
    _lock = threading.Lock()
    _services.clear()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _end() -> None:
    # Before the interpreter ends: a daemon thread that wants its lock after that is stopped in the middle.
    with _lock:
        services = list(_running)
    for service in services:
        service.close()
    for service in services:
        service.join()
