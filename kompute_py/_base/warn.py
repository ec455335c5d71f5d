"""Warnings that point at a line of the user's program, not of this package."""

from __future__ import annotations

import os
import sys
import warnings

from .errors import KomputeWarning

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of this package, with a separator at its end."""


def outside() -> int:
    """The `stacklevel` at which the caller's `warnings.warn` names the first line outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


# Read now, because the interpreter forgets the name of its script at exit.
_script = getattr(sys.modules.get("__main__"), "__file__", None) or "<sys>"


def warn(message: str, again: bool = False) -> None:
    """Raises a KomputeWarning at the first line outside this package, however deep the call is.

    If there is no such line (at interpreter exit, for example), the warning names the script without a line.
    Python shows each warning once for each line; with `again` it is shown every time.
    """
    level = outside()
    frame = sys._getframe(level - 1)
    if frame.f_code.co_filename.startswith(PACKAGE):
        # No user code is running: the interpreter exits, or this is one of the package's threads.
        warnings.warn_explicit(message, KomputeWarning, _script, 0, "__main__", registry={})
    elif again:
        warnings.warn_explicit(
            message, KomputeWarning, frame.f_code.co_filename, frame.f_lineno, registry={}, source=None
        )
    else:
        warnings.warn(message, KomputeWarning, stacklevel=level)


_told: set[str] = set()


def warn_once(message: str) -> None:
    """As `warn`, but once in a process."""
    if message not in _told:
        _told.add(message)
        warn(message)


def warn_of_cancelled(told: list[str]) -> None:
    """Warns of held work that did not run. `told` has sentences from the core."""
    if told:
        warn(
            ". ".join(told) + ". Signal the semaphore that held work waits for, or fail it",
            again=True,
        )


def warn_of_wait(why: str, seconds: float) -> None:
    """Warns of a wait that has lasted `seconds`. `why` is a sentence from the core with the reason."""
    warn(
        f"Waiting for {seconds:.0f} s. {why}. No submitted work signals that. "
        "Signal the semaphore from another thread, or fail it; Ctrl-C ends this wait",
        again=True,
    )
