"""Warnings that name the line of the user's program, not a line of this package."""

from __future__ import annotations

import os
import sys
import warnings

from .errors import KomputeWarning

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def outside() -> int:
    """The `stacklevel` for `warnings.warn` at which the caller names the line outside of this package that led to it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


# At its end, the interpreter has forgotten which file it runs.
_script = getattr(sys.modules.get("__main__"), "__file__", None) or "<sys>"


def warn(message: str, again: bool = False) -> None:
    """A KomputeWarning at the line outside of this package that led here, however deep the call is; if there is none, as when
    the interpreter ends, it names the script without a line.

    Python shows what it has shown for the same line only once; with `again` it does not look at that.
    """
    level = outside()
    frame = sys._getframe(level - 1)
    if frame.f_code.co_filename.startswith(_PACKAGE):
        # No code of the user's is running: the interpreter ends, or it is a thread of ours. The script is named without a line.
        warnings.warn_explicit(message, KomputeWarning, _script, 0, "__main__", registry={})
    elif again:
        warnings.warn_explicit(
            message, KomputeWarning, frame.f_code.co_filename, frame.f_lineno, registry={}, source=None
        )
    else:
        warnings.warn(message, KomputeWarning, stacklevel=level)


def warn_of_cancelled(told: list[str]) -> None:
    """Says what was held and did not run, in sentences of the core's."""
    if told:
        warn(". ".join(told) + ". Signal what held work waits for, or fail the semaphore", again=True)


def warn_of_wait(why: str, seconds: float) -> None:
    """Says what a wait that has lasted so long waits for, in a sentence of the core's."""
    warn(
        f"Waiting for {seconds:.0f} s. {why}. No submitted work signals that. Signal the semaphore from another thread, or fail it; "
        "Ctrl-C ends this wait",
        again=True,
    )
