"""The end of the program: held work is cancelled, and all other work ends, before the interpreter and with it the driver are torn down.

docs/threads.md has the rules.
"""

from __future__ import annotations

import atexit
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from .. import _native
from .._base.errors import KomputeError
from .._base.warn import warn_of_cancelled
from .._recording.sequence import Sequence

if TYPE_CHECKING:
    from .manager import Manager

_hook_set = False
# Those that are alive: at interpreter exit, global variables go only after the exit hooks.
_managers: weakref.WeakSet[Manager] = weakref.WeakSet()


def watch_over(manager: Manager) -> None:
    """Ends this Manager's work at the end of the program, if it is still there."""
    global _hook_set
    _managers.add(manager)
    if not _hook_set:
        _hook_set = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    """Cancels what is held, which nobody will signal any more, and waits for all other work: threads of a driver for the CPU would go on
    in memory that is gone.
    """
    import signal

    # Waiting here answers no signal of Python's: whoever presses Ctrl-C now wants the process to end.
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:
        before = None  # not the main thread
    told: list[str] = []
    for manager in list(_managers):
        if manager._native.is_init():
            told += manager._native.cancel_held()
            with suppress(KomputeError):  # a lost device works on nothing
                manager._native.wait_submitted()
    Sequence._ended = True
    _native.shutdown()
    _native.release_arrays()
    if before is not None:
        signal.signal(signal.SIGINT, before)
    warn_of_cancelled(told)
