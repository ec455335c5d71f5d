"""The end of the program: cancels held work and waits for all other work before the interpreter and the
driver are torn down.

docs/reference/ends_and_waits.md has the rules.
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
from .current import lock, process

if TYPE_CHECKING:
    from .._device.device import Device

_hook_set = False
# The live Managers. At interpreter exit, global variables are deleted only after the exit hooks run.
_managers: weakref.WeakSet[Device] = weakref.WeakSet()


def watch_over(manager: Device) -> None:
    """Ends the work of `manager` at the end of the program, if the Manager is still alive."""
    global _hook_set
    _managers.add(manager)
    if not _hook_set:
        _hook_set = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    """Cancels held work, which can no longer be signalled, and waits for all other work.

    Without the wait, threads of a CPU driver would use memory that is freed.
    """
    import signal

    # Python handles no signals during this wait, so Ctrl-C ends the process.
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:
        before = None  # not the main thread
    told: list[str] = []
    for manager in list(_managers):
        if manager._native.is_init():
            told += manager._native.cancel_held()
            with suppress(KomputeError):  # a lost device has no running work
                manager._native.wait_submitted()
            if manager._watch is not None:
                manager._watch(can_raise=False)
    Sequence._ended = True
    _native.shutdown()
    _native.release_arrays()
    # They go with the program's last reference, as other Managers do: what modules hold may never go, and
    # then validation layers find an open device when they are torn down.
    with lock:
        process.default = None
        process.by_device.clear()
    if before is not None:
        signal.signal(signal.SIGINT, before)
    warn_of_cancelled(told)
