"""The current Managers: those of open ``with`` blocks, and those of the process."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from .._base.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._device.device import Device

_Kind = TypeVar("_Kind", bound="Device")
lock = threading.RLock()
"""Protects the process's Managers."""
# The Managers of the enclosing ``with`` blocks, outermost first. Weak references, because copies of contexts
# may live long.
_entered: ContextVar[tuple[weakref.ref[Device], ...]] = ContextVar("kompute_py_managers", default=())


class ProcessManagers:
    """The process's Managers: the default one, and one for each requested device."""

    __slots__ = ("by_device", "default")

    def __init__(self) -> None:
        self.default: Device | None = None
        # By the device's UUIDs and a URI's options; UUIDs do not depend on the list of visible devices.
        self.by_device: dict[tuple[str, ...], Device] = {}


process = ProcessManagers()


def present() -> Device | None:
    """The Manager of the innermost enclosing ``with`` block, else the process's default one, that is not
    destroyed; None if there is none.
    """
    around = _entered.get()
    if around:
        for reference in reversed(around):
            found = reference()
            if found is not None and found.is_init():
                return found
    found = process.default  # without the lock, which takes as long as the rest
    return found if found is not None and found._native.is_init() else None


def enter(manager: Device) -> None:
    """Records that a ``with`` block of `manager` begins.

    Raises FailedPreconditionError if it is destroyed.
    """
    if not manager.is_init():
        raise FailedPreconditionError(f"{manager!r} cannot be entered: make a new one")
    _entered.set((*_entered.get(), weakref.ref(manager)))


def leave(manager: Device) -> None:
    """Records that the block ends. Does nothing in another context than the one that entered it."""
    around = _entered.get()
    for i in reversed(range(len(around))):
        if around[i]() is manager:
            _entered.set((*around[:i], *around[i + 1 :]))
            return


def is_shared(manager: Device) -> bool:
    """Whether `manager` is one of the process's, or that of an enclosing ``with`` block."""
    if any(reference() is manager for reference in _entered.get()):
        return True
    with lock:
        return process.default is manager or any(known is manager for known in process.by_device.values())


@contextmanager
def current(manager: _Kind) -> Iterator[_Kind]:
    """The block of ``with mgr.current():``."""
    enter(manager)
    try:
        yield manager
    finally:
        leave(manager)


def forget(gone: Device) -> None:
    """Drops a destroyed Manager from the process's Managers."""
    with lock:
        if process.default is gone:
            process.default = None
        for key in [key for key, known in process.by_device.items() if known is gone]:
            del process.by_device[key]
