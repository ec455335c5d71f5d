"""Fence: tells when submitted work is done."""

from __future__ import annotations

import math
from typing import Any

from . import _native
from .errors import ArgumentTypeError, EvalTimeoutError, InvalidArgumentError

_NO_LIMIT = -1.0


class Fence:
    """The end of submitted work, of one or several queues. Immutable; it holds nothing that the work uses.

    Returned by what only submits: ``t.fill(0)``, ``t.copy_from(other)``, ``kernel.submit(...)``. Later work on the same memory is
    ordered after it without being asked; wait only where the host needs to know.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.Fence) -> None:
        self._native = native

    def wait(self, timeout: float | None = None) -> Fence:
        """Waits until the work is done, at most `timeout` seconds. Returns the fence.

        Other threads run meanwhile, and Ctrl-C raises KeyboardInterrupt; the work goes on. Raises EvalTimeoutError when the time is
        over (the fence stays usable), DeviceLostError where the device failed.
        """
        seconds = to_seconds(timeout)
        if not self._native.wait(seconds):
            raise EvalTimeoutError(f"The work is not done after {seconds:g} s; call wait again to wait on")
        return self

    def done(self) -> bool:
        """Whether the work is done; does not wait. Raises DeviceLostError where the device failed."""
        return self._native.done()

    @staticmethod
    def join(*fences: Fence) -> Fence:
        """A fence that is done when all of `fences` are; of none, at once."""
        for fence in fences:
            if not isinstance(fence, Fence):
                raise ArgumentTypeError(f"Fence.join takes fences, not {type(fence).__name__}")
        return Fence(_native.Fence.join([fence._native for fence in fences]))

    def __repr__(self) -> str:
        try:
            state = "done" if self._native.done() else "pending"
        except RuntimeError:
            state = "of a lost device"
        return f"<kp.Fence {state}>"


def to_seconds(timeout: Any) -> float:
    """`timeout` in seconds for the core: negative for none. Raises what is wrong with it."""
    if timeout is None:
        return _NO_LIMIT
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"timeout is {timeout!r}; give seconds as a number, or None") from None
    if seconds == math.inf:
        return _NO_LIMIT
    if not seconds >= 0.0:
        raise InvalidArgumentError(f"timeout is {timeout!r}; a time to wait is not negative")
    return seconds
