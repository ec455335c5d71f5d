"""Fence: tells when submitted work is done."""

from __future__ import annotations

import functools
import math
import time
import weakref
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

from .. import _native
from .._base.arrays import as_index
from .._base.errors import (
    AbortedError,
    ArgumentTypeError,
    EvalTimeoutError,
    InvalidArgumentError,
    not_copyable,
    shown,
)
from .._base.plain_arguments import as_text

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Generator

    from .._device.device import Device

_NO_LIMIT = -1.0
_LONGEST = 10**18  # nanoseconds


@functools.cache
def wait_in_loop() -> Callable[[_native.Fence, tuple[Device, ...]], Generator[Any, None, None]]:
    """`waiting.wait_in_loop`. Imports asyncio only if it is used.

    Cached, because the import's look-up would be a good part of an await's cost.
    """
    from . import waiting

    return waiting.wait_in_loop


class Collected(Protocol):
    """A sequence with hooks that are due when its work is done."""

    def _collect(self) -> None: ...


class Failure:
    """The error of a step of the host. Waits for its submission raise it."""

    __slots__ = ("_context", "_message", "error", "fence", "told")

    def __init__(self, context: _native.Context, error: Exception, message: str) -> None:
        self._context = context
        self._message = message
        self.error = error
        # True if a wait has raised it.
        self.told = False
        # Its waits raise AbortedError(message).
        semaphore = _native.Semaphore(context, 0)
        self.fence = semaphore.at(1)
        semaphore.fail(message)

    def cancel(self, streams: list[_native.Stream], signals: list[tuple[_native.Semaphore, int]]) -> None:
        """Submits streams and signals as cancelled work: waits for them raise AbortedError(message)."""
        # The core refuses to submit work that waits for a semaphore that has failed before.
        semaphore = _native.Semaphore(self._context, 0)
        _native.submit(self._context, streams, [], [(semaphore, 1)], signals)
        semaphore.fail(self._message)


def raise_again(error: Exception) -> NoReturn:
    """Raises `error`, which keeps its own context if another error is being handled."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context


@not_copyable("wait for this one, from any thread, or use its future()")
class Fence:
    """The completion of submitted work on one or several queues. Keeps no other object alive than `results`.

    Calls that only submit return a fence: ``t.fill(0)``, ``t.copy_from(other)``, ``kernel.submit(...)`` and
    ``mgr.submit([...])``. ``seq.fence`` and ``semaphore.at(value)`` return one too. Later work on the same
    memory is ordered automatically. Wait only if the host needs to know: call `wait`, ``await`` the fence in
    asyncio, or use its `future`.

    As soon as the host learns by any call, here or elsewhere, that the work is done, `data()` shows its
    results.

    >>> fence = mgr.zeros(3).fill(5)
    >>> fence.wait().done()
    True
    """

    __slots__ = {
        "__weakref__": "",
        "_failures": "",
        "_managers": "",
        "_native": "",
        "_sequences": "",
        "results": "The Tensors and Images that `submit` of a kernel, a function or an entry of a program "
        "has made, as the call left them out. `read` and whatever else looks at them waits for the work.",
    }

    def __init__(
        self,
        native: _native.Fence,
        managers: tuple[Device, ...],
        sequences: tuple[weakref.ref[Collected], ...] = (),
        failures: tuple[Failure, ...] = (),
        results: tuple[Any, ...] = (),
    ) -> None:
        self._native = native
        # The Managers of the devices that run the work.
        self._managers = managers
        # Sequences with hooks to call when the work is done.
        self._sequences = sequences
        # Errors of host steps. The native fence fails if there are any.
        self._failures = failures
        self.results: tuple[Any, ...] = results

    def wait(self, timeout: float | None = None, *, deadline: int | None = None) -> Fence:
        """Waits until the work is done, at most `timeout` seconds, or until the time `deadline` of
        ``time.monotonic_ns()``. Returns the fence.

        Other threads run during the wait. Ctrl-C raises KeyboardInterrupt; the work continues. Raises
        EvalTimeoutError if the time runs out (the fence stays usable), DeviceLostError if the device failed,
        AbortedError if a semaphore that the work waited for failed, the exception of an OpHostCall,
        InvalidArgumentError for a negative `timeout` or if both limits are given, ArgumentTypeError if
        `timeout` is not a number or `deadline` not an int.
        """
        seconds = _NO_LIMIT if timeout is None and deadline is None else to_seconds(timeout, deadline)
        try:
            done = self._native.wait(seconds)
        except AbortedError:
            self._tell()
            raise
        if not done:
            raise EvalTimeoutError(f"The work is not done after {seconds:g} s; call wait again later")
        self._settle()
        return self

    def signal(self) -> None:
        """Signals a fence of ``semaphore.at(value)`` from the host, or each of several that were joined: each
        semaphore that is below its value is raised to it.

        Raises FailedPreconditionError, and signals nothing, if the fence is also the end of submitted work,
        which alone signals it. Raises the errors of `Semaphore.signal`.
        """
        for semaphore, value in self._native.signals():
            if semaphore.query() < value:
                semaphore.signal(value)

    def fail(self, message: str) -> None:
        """Fails a fence of ``semaphore.at(value)``, or each of several that were joined: as `Semaphore.fail`
        for each semaphore that is below its value.

        Raises FailedPreconditionError, and fails nothing, if the fence is also the end of submitted work.
        Raises ArgumentTypeError if `message` is not a str.
        """
        text = as_text(message, "message")
        for semaphore, value in self._native.signals():
            if not semaphore.at(value).look(0.0):
                semaphore.fail(text)

    @property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The points that the fence waits for: the timeline VkSemaphore, as an integer, and the value."""
        return tuple(self._native.points())

    @property
    def timepoint_count(self) -> int:
        """How many points the fence waits for: ``len(fence.points)``. 0 for a fence that is done at once."""
        return len(self._native.points())

    def done(self) -> bool:
        """True if the work is done. Does not wait. Raises the error of the work, as `wait` does."""
        try:
            done = self._native.done()
        except AbortedError:
            self._tell()
            raise
        if done:
            self._settle()
        return done

    def __await__(self) -> Generator[Any, None, Fence]:
        """In asyncio: waits without blocking the event loop, then returns the fence. Raises as `wait` does.

        For work that ends soon, the await itself looks at the device. Looks take at most 0.2 ms in a turn of
        the event loop, and only if no other task is ready to run. For longer work, one thread per Manager
        waits for all fences. If an await is cancelled, the work continues and stays tracked, so the memory
        that it uses remains valid.
        """
        if not self.done():
            yield from wait_in_loop()(self._native, self._managers)
            self.wait(0)
        return self

    def future(self) -> concurrent.futures.Future[Fence]:
        """A concurrent.futures.Future with this fence, or the work's error, as its result.

        Its callbacks run on the Manager's waiting thread. Cancelling the future stops the waiting, not the
        work.
        """
        import concurrent.futures

        from .waiting import service_of

        result: concurrent.futures.Future[Fence] = concurrent.futures.Future()
        managers = list(self._managers)

        def go_on() -> None:
            if managers and not result.cancelled():
                try:
                    service = service_of(managers.pop(0))
                    number = service.watch(self._native, go_on)
                except Exception as error:
                    if result.set_running_or_notify_cancel():
                        result.set_exception(error)
                    return
                result.add_done_callback(lambda done: service.forget(number) if done.cancelled() else None)
            elif result.set_running_or_notify_cancel():
                try:
                    result.set_result(self.wait(0))
                except BaseException as error:
                    result.set_exception(error)

        go_on()
        return result

    def export_fd(self) -> int:
        """A new file descriptor, the caller's, which becomes readable when the work is done. If the work
        fails, or this process ends before, its other end is closed and nothing can be read (POLLHUP).

        For select, event loops, other libraries and processes, and for `Manager.import_fence`. Do not read
        from it if others wait for it, too. Raises UnimplementedError on Windows.
        """
        from .sharing import descriptor_when

        return descriptor_when(self.future())

    @staticmethod
    def join(*fences: Fence) -> Fence:
        """A fence that is done when all of `fences` are done; without arguments, it is done at once.

        Raises ArgumentTypeError if an argument is not a Fence.
        """
        for fence in fences:
            if not isinstance(fence, Fence):
                raise ArgumentTypeError(f"Fence.join takes fences, not {type(fence).__name__}")
        managers = dict.fromkeys(manager for fence in fences for manager in fence._managers)
        return Fence(
            _native.Fence.join([fence._native for fence in fences]),
            tuple(managers),
            tuple(reference for fence in fences for reference in fence._sequences),
            tuple(failure for fence in fences for failure in fence._failures),
        )

    def _tell(self) -> None:
        """Raises the first error of a host step, if there is one."""
        for failure in self._failures:
            failure.told = True
        if self._failures:
            raise_again(self._failures[0].error)

    def _settle(self) -> None:
        for reference in self._sequences:
            sequence = reference()
            if sequence is not None:
                sequence._collect()
        for manager in self._managers:
            if manager._watch is not None:
                manager._watch()

    def __repr__(self) -> str:
        try:
            state = "done" if self._native.done() else "pending"
        except RuntimeError as error:
            state = f"failed: {error}"
        return f"<kp.Fence {state}>"

    def _repr_html_(self) -> str:
        """For notebooks: shows whether the work is done."""
        from .._display.cards import card

        return card("Fence", [], repr(self).removeprefix("<kp.Fence ").removesuffix(">"))


def to_seconds(
    timeout: Any,
    deadline: Any = None,
    name: str = "timeout",
    unit: Literal["seconds", "milliseconds"] = "seconds",
) -> float:
    """Converts the argument `name`, in `unit`, or the time of `deadline` to seconds for the core; without
    both, negative: no limit.

    `deadline` is an int: nanoseconds of ``time.monotonic_ns()``. A deadline that is over is 0 seconds: the
    wait looks once.

    Raises ArgumentTypeError if `timeout` is not a number or `deadline` not an int, InvalidArgumentError if
    `timeout` is negative or not a number (NaN), or if both are given.
    """
    if deadline is not None:
        if timeout is not None:
            raise InvalidArgumentError(
                f"Give {name}, which counts from now, or deadline, a time of time.monotonic_ns(), not both"
            )
        left = as_index(deadline, "deadline (nanoseconds of time.monotonic_ns())") - time.monotonic_ns()
        return min(max(left, 0), _LONGEST) * 1e-9
    if timeout is None:
        return _NO_LIMIT
    try:
        if isinstance(timeout, str | bytes):
            raise TypeError
        seconds = float(timeout) * (1e-3 if unit == "milliseconds" else 1.0)
    except Exception:  # the object's own __float__ failed, or an int is beyond the range of floats
        raise ArgumentTypeError(f"{name} is {shown(timeout)}; give {unit} as a number, or None") from None
    if seconds == math.inf:
        return _NO_LIMIT
    if not seconds >= 0.0:
        raise InvalidArgumentError(f"{name} is {shown(timeout)}; a time to wait is not negative")
    return seconds
