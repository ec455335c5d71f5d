"""Fence: tells when submitted work is done."""

from __future__ import annotations

import functools
import math
import weakref
from typing import TYPE_CHECKING, Any, Literal

from .. import _native
from .._base.errors import ArgumentTypeError, EvalTimeoutError, InvalidArgumentError, not_copyable, shown

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine, Generator

    from .._manager.manager import Manager
    from .._recording.sequence import Sequence

_NO_LIMIT = -1.0


@functools.cache
def _wait_in_loop() -> Callable[[_native.Fence, tuple[Manager, ...]], Coroutine[object, object, None]]:
    # asyncio is imported by who uses it only, and the import's own look-up is a good part of an await's cost.
    from .waiting import wait_in_loop

    return wait_in_loop


class Fence:
    """The end of submitted work, of one or several queues. Immutable; it holds nothing that the work uses.

    Returned by what only submits: ``t.fill(0)``, ``t.copy_from(other)``, ``kernel.submit(...)``, ``mgr.submit([...])``; and by
    ``seq.fence`` and ``semaphore.at(value)``. Later work on the same memory is ordered after it without being asked; wait only
    if the host needs to know: `wait` for it, ``await`` it in asyncio, or take its `future`.

    Every way to learn that the work is done makes its results visible to the host, here and elsewhere: `data()` shows them.
    """

    __slots__ = ("__weakref__", "_managers", "_native", "_sequences")

    def __init__(
        self,
        native: _native.Fence,
        managers: tuple[Manager, ...],
        sequences: tuple[weakref.ref[Sequence], ...] = (),
    ) -> None:
        self._native = native
        # Those whose devices it waits for.
        self._managers = managers
        # Those with hooks that are due when the work is done.
        self._sequences = sequences

    def wait(self, timeout: float | None = None) -> Fence:
        """Waits until the work is done, at most `timeout` seconds. Returns the fence.

        Other threads run meanwhile, and Ctrl-C raises KeyboardInterrupt; the work goes on. Raises EvalTimeoutError when the time is
        over (the fence stays usable), DeviceLostError where the device failed, AbortedError where a semaphore that the work
        waited for did.
        """
        seconds = to_seconds(timeout)
        if not self._native.wait(seconds):
            raise EvalTimeoutError(f"The work is not done after {seconds:g} s; call wait again to wait on")
        self._settle()
        return self

    def done(self) -> bool:
        """Whether the work is done; does not wait. Raises the error of the work, as `wait` does."""
        if not self._native.done():
            return False
        self._settle()
        return True

    def __await__(self) -> Generator[Any, None, Fence]:
        """In asyncio: waits without blocking the event loop, then returns the fence. Raises what `wait` raises.

        One thread a Manager waits for all. A cancelled await leaves the work as it is: tracked, and what it uses safe.
        """
        if not self.done():
            yield from _wait_in_loop()(self._native, self._managers).__await__()
            self.wait(0)
        return self

    def future(self) -> concurrent.futures.Future[Fence]:
        """A concurrent.futures.Future of this fence, with the fence, or the work's error, as its result.

        Its callbacks run on the Manager's waiting thread. Cancelling it stops the waiting, not the work.
        """
        from .waiting import future

        return future(self)

    @staticmethod
    def join(*fences: Fence) -> Fence:
        """A fence that is done when all of `fences` are; of none, at once."""
        for fence in fences:
            if not isinstance(fence, Fence):
                raise ArgumentTypeError(f"Fence.join takes fences, not {type(fence).__name__}")
        managers = dict.fromkeys(manager for fence in fences for manager in fence._managers)
        return Fence(
            _native.Fence.join([fence._native for fence in fences]),
            tuple(managers),
            tuple(reference for fence in fences for reference in fence._sequences),
        )

    def _settle(self) -> None:
        for reference in self._sequences:
            sequence = reference()
            if sequence is not None:
                sequence._collect()
        for manager in self._managers:
            if manager._watch is not None:
                manager._watch()

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError) that says what to do instead."""
        raise not_copyable(self, "wait for this one, from any thread, or take its future()")

    def __repr__(self) -> str:
        try:
            state = "done" if self._native.done() else "pending"
        except RuntimeError as error:
            state = f"failed: {error}"
        return f"<kp.Fence {state}>"

    def _repr_html_(self) -> str:
        """For notebooks: whether the work is done."""
        from .._display.cards import fence_card

        return fence_card(self)


def to_seconds(
    time: Any, name: str = "timeout", unit: Literal["seconds", "milliseconds"] = "seconds"
) -> float:
    """The argument `name`, in `unit`, as seconds for the core: negative for none. Raises what is wrong with it."""
    if time is None:
        return _NO_LIMIT
    try:
        if isinstance(time, str | bytes):
            raise TypeError
        seconds = float(time) * (1e-3 if unit == "milliseconds" else 1.0)
    except Exception:  # of the object's own __float__, or an int beyond floats
        raise ArgumentTypeError(f"{name} is {shown(time)}; give {unit} as a number, or None") from None
    if seconds == math.inf:
        return _NO_LIMIT
    if not seconds >= 0.0:
        raise InvalidArgumentError(f"{name} is {shown(time)}; a time to wait is not negative")
    return seconds
