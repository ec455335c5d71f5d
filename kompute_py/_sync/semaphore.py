"""Semaphore: a counter that orders work of the device and of the host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from .. import _native
from .._base.arrays import as_index, to_flag
from .._base.errors import (
    ArgumentTypeError,
    EvalTimeoutError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    kind_of,
    not_copyable,
)
from .._base.plain_arguments import as_text
from .._base.types import SemaphoreCompatibility
from .._base.warn import warn_of_cancelled
from .._device.device import require_manager
from .._device.owner import Named
from .fence import Fence, to_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias, TypedDict

    from .._device.device import Device
    from .sharing import SemaphoreHandle, Shared

    Waitable: TypeAlias = "Fence | HasFence | tuple[Semaphore, int]"
    Waits: TypeAlias = Waitable | Iterable[Waitable]
    Signals: TypeAlias = "tuple[Semaphore, int] | Iterable[tuple[Semaphore, int]]"

    class Ordering(TypedDict, total=False):
        """The options of calls that submit; for those that wait for the device, see `ordered`."""

        wait: Waits
        signal: Signals


_MOST = 2**64 - 2


class HasFence(Protocol):
    """A Sequence: it stands for the fence of its last submission."""

    @property
    def fence(self) -> Fence:
        """A Fence for the end of the last submission."""


class HasFileno(Protocol):
    """An object with a file descriptor."""

    def fileno(self) -> int:
        """The descriptor."""


@not_copyable("create another one with mgr.semaphore()")
class Semaphore(Named):
    """A timeline semaphore: a 64-bit counter that only goes up. Created by ``mgr.semaphore(initial=0)``.

    ``seq.eval_async(wait=[(sem, 1)], signal=[(sem, 2)])`` starts when the counter is at 1 or more, and raises
    it to 2 at its end; `signal` and `wait` do the same on the host. As soon as the host sees a signalled
    value through `wait`, `query` or `at`, `data()` shows the results of the work that signalled it. You may
    submit waiting work before the signalling work, also on the same queue. `fail` ends the semaphore: every
    wait for a value that was not reached raises AbortedError, and work submitted to wait for such a value
    does not run.

    Keep a semaphore as long as you want to signal it. When its last reference is gone, submitted work still
    raises it to its values; all higher values fail as by `fail`, and a KomputeWarning names the work that
    was held for one of them.

    Raises the errors of `Manager.semaphore`.

    >>> semaphore = mgr.semaphore()
    >>> semaphore.signal(3)
    >>> semaphore.wait(2, timeout=1).query()
    3
    """

    __slots__ = ("__weakref__", "_manager", "_native", "_shared")

    def __init__(self, manager: Device, initial: int = 0, *, shared: bool = False) -> None:
        """Raises OutOfRangeError if `initial` is negative or above 2**64 - 2, ArgumentTypeError if it is not
        an int or `shared` not a bool.

        Raises FailedPreconditionError if the Manager is destroyed, UnimplementedError for a shared one on
        Windows.
        """
        require_manager(manager)
        self._manager = manager
        self._shared: Shared | None = None
        self._native = _native.Semaphore(
            manager._native, to_value(initial, "initial"), to_flag(shared, "shared")
        )
        if shared:
            self._connect()

    def _connect(self, handle: SemaphoreHandle | None = None) -> None:
        from .sharing import Shared

        self._shared = Shared(self._native, self._manager, handle)

    def share(self) -> SemaphoreHandle:
        """A handle for one more holder of this counter, in this process or another: see `kp.SemaphoreHandle`.

        Each holder signals it and waits for it as if it were its own, on any device. As soon as one of them
        is gone (its process has ended, its Manager or its last reference), the semaphore fails for the
        others, as by `fail`; values that were signalled before still come.

        Raises FailedPreconditionError if the semaphore was not made with ``shared=True`` or imported, or is
        destroyed, AbortedError after `fail`.
        """
        return self._require_shared().share()

    def export_fd(self) -> int:
        """A new file descriptor of the timeline semaphore (Vulkan's OPAQUE_FD), for CUDA, HIP and other
        users of the same device: `cudaImportExternalSemaphore` takes it, and so does
        `Manager.import_semaphore`. The caller closes it, or gives it away.

        The host holds work that waits for values of others until they are reached, so no queue of this
        Manager waits for another program. But nothing tells when that program ends: set a timeout, or use
        `share` between programs of kompute_py.

        Raises UnimplementedError if the device has no such descriptors (VK_KHR_external_semaphore_fd),
        FailedPreconditionError if the semaphore was not made with ``shared=True`` or imported, or is
        destroyed.
        """
        self._require_shared()
        return self._native.descriptor()

    def _require_shared(self) -> Shared:
        if self._shared is None:
            raise FailedPreconditionError(f"{self!r} is not shared: make it with mgr.semaphore(shared=True)")
        return self._shared

    def query(self) -> int:
        """The current value. Does not wait.

        Raises AbortedError after `fail`, DeviceLostError if the device failed.
        """
        return self._native.query()

    def signal(self, value: int) -> None:
        """Raises the counter to `value` from the host and starts the work that waited for it.

        Raises InvalidArgumentError unless `value` is above the current value and every value that submitted
        work is going to signal, or if it is further above than the device can count (its
        maxTimelineSemaphoreValueDifference). Raises AbortedError after `fail`, OutOfRangeError for a value
        below 0 or above 2**64 - 2, ArgumentTypeError if `value` is not an int.
        """
        self._native.signal(to_value(value, "value"))
        if self._shared is not None:
            self._shared.look()

    def wait(self, value: int, timeout: float | None = None, *, deadline: int | None = None) -> Semaphore:
        """Waits until the counter is at `value` or more, at most `timeout` seconds, or until the time
        `deadline` of ``time.monotonic_ns()``. Returns the semaphore.

        Other threads run during the wait. Ctrl-C raises KeyboardInterrupt. Raises EvalTimeoutError if the
        time runs out, AbortedError with the message of `fail` after that, DeviceLostError if the device
        failed, OutOfRangeError for a value below 0 or above 2**64 - 2, InvalidArgumentError for a negative
        `timeout` or if both limits are given, ArgumentTypeError for arguments of other types.
        """
        number, seconds = to_value(value, "value"), to_seconds(timeout, deadline)
        if not self._native.wait(number, seconds):
            raise EvalTimeoutError(f"{self!r} did not reach {number} in {seconds:g} s; call wait again later")
        return self

    def fail(self, message: str) -> None:
        """Declares that no further value will be signalled: every wait for one raises AbortedError(message).

        Submitted work that waits for such a value does not run, and everything that it was to signal fails
        with the same message. Values that other submitted work is going to signal are still reached. The
        first message is kept.

        Raises ArgumentTypeError if `message` is not a str.
        """
        self._native.fail(as_text(message, "message"))
        if self._shared is not None:
            self._shared.look()

    def at(self, value: int) -> Fence:
        """A Fence that is done when the counter reaches `value`, to wait for, to join with others or to
        await.

        Raises OutOfRangeError for a value below 0 or above 2**64 - 2, ArgumentTypeError if `value` is not an
        int.
        """
        return Fence(self._native.at(to_value(value, "value")), (self._manager,))

    @property
    def compatibility(self) -> SemaphoreCompatibility:
        """The sides that can wait for its values and signal them: ALL, for each semaphore of a Manager."""
        return SemaphoreCompatibility.ALL

    def is_init(self) -> bool:
        """False after the Manager's `destroy()`."""
        return self._native.is_init()

    @property
    def vk_semaphore(self) -> int:
        """The timeline VkSemaphore, as an integer; 0 if destroyed."""
        return self._native.vk_semaphore

    def __del__(self, warn: Any = warn_of_cancelled) -> None:
        # If __init__ failed, there is no _native. Module globals may be gone at the interpreter's end.
        native = getattr(self, "_native", None)
        if native is not None and (told := native.abandon()):
            warn(told)
        if native is not None and self._shared is not None:
            self._shared.release()

    def __repr__(self) -> str:
        native = self._native
        name = f" {native.name!r}" if native.name else ""
        if not native.is_init():
            return f"<kp.Semaphore{name} destroyed>"
        try:
            return f"<kp.Semaphore{name} at {native.query()}>"
        except RuntimeError as error:
            return f"<kp.Semaphore{name} failed: {error}>"


def imported_semaphore(manager: Device, handle: Any) -> Semaphore:
    """The semaphore of a handle. See `Manager.import_semaphore`."""
    from .sharing import SemaphoreHandle, duplicate

    if isinstance(handle, SemaphoreHandle):
        handle.fileno()
        semaphore = Semaphore(manager, handle._value)
        semaphore._connect(handle)
        return semaphore
    if not hasattr(handle, "__index__"):
        raise ArgumentTypeError(
            "import_semaphore takes a kp.SemaphoreHandle, of semaphore.share(), or a file descriptor, of "
            f"semaphore.export_fd(), not {kind_of(handle)}"
        )
    fd = duplicate(as_index(handle, "handle"))
    try:
        native = _native.Semaphore.imported(manager._native, fd)
    except BaseException:
        os.close(fd)
        raise
    semaphore = Semaphore(manager)
    semaphore._native = native
    semaphore._connect()
    return semaphore


def imported_fence(manager: Device, fd: Any) -> Fence:
    """The fence of a descriptor. See `Manager.import_fence`."""
    from .sharing import fence_of_descriptor

    number = as_index(fd.fileno() if hasattr(fd, "fileno") else fd, "fd")
    return Fence(fence_of_descriptor(_native.Semaphore(manager._native, 0), number), (manager,))


def to_value(value: Any, name: str) -> int:
    """Checks a counter's value. Raises ArgumentTypeError or OutOfRangeError."""
    number = as_index(value, name)
    if not 0 <= number <= _MOST:
        raise OutOfRangeError(f"{name} is {number}; a semaphore counts from 0 to 2**64 - 2")
    return number


def to_signals(signal: Any) -> list[tuple[_native.Semaphore, int]]:
    """Converts `signal` to (semaphore, value) pairs for the core."""
    return [_pair(each, "signal") for each in listed(signal)]


def to_waits(wait: Any) -> tuple[list[_native.Fence], list[tuple[_native.Semaphore, int]]]:
    """Sorts `wait` for the core into the fences (those of sequences too) and the (semaphore, value) pairs."""
    fences: list[_native.Fence] = []
    pairs: list[tuple[_native.Semaphore, int]] = []
    for each in listed(wait):
        if isinstance(each, Fence):
            fences.append(each._native)
        elif isinstance(getattr(type(each), "fence", None), property):  # a Sequence
            fences.append(each.fence._native)
        else:
            pairs.append(_pair(each, "wait"))
    return fences, pairs


def listed(given: Any) -> list[Any]:
    """The items of `wait` or `signal`: a single one need not be in a list."""
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
    raise ArgumentTypeError(
        f"{name} takes {kinds}, not {type(given).__name__}; a shader's argument of this name goes into bind= "
        f'or push=, as in push={{"{name}": 1.0}}'
    )
