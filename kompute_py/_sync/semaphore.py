"""Semaphore: a counter that orders work of the device and of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import as_index, as_name, require_manager
from .._base.errors import (
    ArgumentTypeError,
    EvalTimeoutError,
    InvalidArgumentError,
    OutOfRangeError,
    not_copyable,
)
from .._base.plain_arguments import as_text
from .fence import Fence, to_seconds

if TYPE_CHECKING:
    from typing import TypeAlias

    from .._manager.manager import Manager
    from .._recording.sequence import Sequence

    Waitable: TypeAlias = "Fence | Sequence | tuple[Semaphore, int]"

_MOST = 2**64 - 2


class Semaphore:
    """A timeline semaphore: a 64-bit counter that only goes up. Made by ``mgr.semaphore(initial=0)``.

    ``seq.eval_async(wait=[(sem, 1)], signal=[(sem, 2)])`` starts when the counter is at 1 or more, and raises it to 2 at its
    end; `signal` and `wait` do the same on the host. Once the host has seen the value that work signals, by `wait`, `query` or
    `at`, the work's results are visible: `data()` shows them. What waits may be submitted before what signals, on the same queue,
    too. `fail` ends it instead: whoever waits for a value that did not come gets AbortedError, and work that was submitted
    to wait for one is not done.
    """

    __slots__ = ("__weakref__", "_manager", "_native")

    def __init__(self, manager: Manager, initial: int = 0) -> None:
        """Raises OutOfRangeError for a negative or too large `initial`, FailedPreconditionError for a destroyed Manager."""
        require_manager(manager)
        self._manager = manager
        self._native = _native.Semaphore(manager._native, to_value(initial, "initial"))

    def query(self) -> int:
        """The value now; does not wait. Raises AbortedError after `fail`, DeviceLostError where the device failed."""
        return self._native.query()

    def signal(self, value: int) -> None:
        """Raises the counter to `value`, from the host; work that waited for that starts.

        Raises InvalidArgumentError unless `value` is above the present one and those that submitted work is going to signal, and
        for one so far above that the device cannot count it (its maxTimelineSemaphoreValueDifference). Raises AbortedError
        after `fail`.
        """
        self._native.signal(to_value(value, "value"))

    def wait(self, value: int, timeout: float | None = None) -> Semaphore:
        """Waits until the counter is at `value` or more, at most `timeout` seconds. Returns the semaphore.

        Other threads run meanwhile, and Ctrl-C raises KeyboardInterrupt. Raises EvalTimeoutError when the time is over,
        AbortedError with its message after `fail`, DeviceLostError where the device failed.
        """
        number, seconds = to_value(value, "value"), to_seconds(timeout)
        if not self._native.wait(number, seconds):
            raise EvalTimeoutError(
                f"{self!r} did not reach {number} in {seconds:g} s; call wait again to wait on"
            )
        return self

    def fail(self, message: str) -> None:
        """Says that the values not reached or on their way will never come: all who wait for one get AbortedError(message).

        Work that was submitted to wait for one is not done, and what it was to signal fails with the same message. Values that
        submitted work is going to signal still come. The first message stays.
        """
        self._native.fail(as_text(message, "message"))

    def at(self, value: int) -> Fence:
        """The moment when the counter reaches `value`, as a Fence: to wait for, to join with others, to await."""
        return Fence(self._native.at(to_value(value, "value")), (self._manager,))

    @property
    def manager(self) -> Manager:
        """The Manager that it belongs to."""
        return self._manager

    @property
    def name(self) -> str:
        """A name for error and validation messages; "" by default."""
        return self._native.name

    @name.setter
    def name(self, value: str) -> None:
        self._native.name = as_name(value)

    def is_init(self) -> bool:
        """False after its Manager's `destroy()`."""
        return self._native.is_init()

    @property
    def vk_semaphore(self) -> int:
        """The timeline VkSemaphore, as an integer; 0 when destroyed."""
        return self._native.vk_semaphore

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError)."""
        raise not_copyable(self, "make a new one with mgr.semaphore()")

    def __repr__(self) -> str:
        native = self._native
        name = f" {native.name!r}" if native.name else ""
        if not native.is_init():
            return f"<kp.Semaphore{name} destroyed>"
        try:
            return f"<kp.Semaphore{name} at {native.query()}>"
        except RuntimeError as error:
            return f"<kp.Semaphore{name} failed: {error}>"


def to_value(value: Any, name: str) -> int:
    """A counter's value; raises what is wrong with it."""
    number = as_index(value, name)
    if not 0 <= number <= _MOST:
        raise OutOfRangeError(f"{name} is {number}; a semaphore counts from 0 to 2**64 - 2")
    return number


def to_signals(signal: Any) -> list[tuple[_native.Semaphore, int]]:
    """(semaphore, value) pairs for the core."""
    return [_pair(each, "signal") for each in _listed(signal)]


def to_waits(wait: Any) -> tuple[list[_native.Fence], list[tuple[_native.Semaphore, int]]]:
    """Fences, sequences and (semaphore, value) pairs, sorted for the core."""
    fences: list[_native.Fence] = []
    pairs: list[tuple[_native.Semaphore, int]] = []
    for each in _listed(wait):
        if isinstance(each, Fence):
            fences.append(each._native)
        elif isinstance(getattr(type(each), "fence", None), property):  # a Sequence
            fences.append(each.fence._native)
        else:
            pairs.append(_pair(each, "wait"))
    return fences, pairs


def _listed(given: Any) -> list[Any]:
    # One thing need not stand in a list.
    if given is None:
        return []
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Semaphore):
        return [given]
    try:
        return list(given)
    except (TypeError, MemoryError):
        return [given]


def _pair(given: Any, name: str) -> tuple[_native.Semaphore, int]:
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Semaphore):
        return given[0]._native, to_value(given[1], f"the value to {name}")
    if isinstance(given, Semaphore):
        raise InvalidArgumentError(f"{name} has a semaphore without a value: give (semaphore, value)")
    kinds = (
        "(semaphore, value) pairs" if name == "signal" else "fences, sequences and (semaphore, value) pairs"
    )
    raise ArgumentTypeError(f"{name} takes {kinds}, not {type(given).__name__}")
