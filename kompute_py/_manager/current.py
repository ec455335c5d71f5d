"""Which Managers code that has none handed to it works with: those of ``with`` blocks, and the process's own."""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .manager import Manager

lock = threading.RLock()
"""Held to read or change the process's Managers."""
_entered: ContextVar[tuple[weakref.ref[Manager], ...]] = ContextVar("kompute_py_managers", default=())
# The Managers of the ``with`` blocks that the code is in, outermost first. Weak: contexts are copied, and may live long.


class ProcessManagers:
    """The Managers that belong to the process: the default one, and one for each device that was asked for."""

    __slots__ = ("by_device", "default")

    def __init__(self) -> None:
        self.default: Manager | None = None
        # By the device's UUIDs, which stay when the list of visible devices changes.
        self.by_device: dict[tuple[str, str], Manager] = {}


process = ProcessManagers()


def entered() -> Manager | None:
    """The Manager of the innermost ``with`` block around the call that is still open; None outside of blocks."""
    for reference in reversed(_entered.get()):
        found = reference()
        if found is not None and found.is_init():
            return found
    return None


def enter(manager: Manager) -> None:
    """A ``with`` block of this Manager begins."""
    _entered.set((*_entered.get(), weakref.ref(manager)))


def leave(manager: Manager) -> None:
    """It ends; in another context than it began in, there is nothing to take back."""
    around = _entered.get()
    for i in reversed(range(len(around))):
        if around[i]() is manager:
            _entered.set((*around[:i], *around[i + 1 :]))
            return


def forget(gone: Manager) -> None:
    """Drops a Manager that was destroyed from the process's Managers."""
    with lock:
        if process.default is gone:
            process.default = None
        for key in [key for key, known in process.by_device.items() if known is gone]:
            del process.by_device[key]
