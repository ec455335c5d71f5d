"""Profiles of whole scripts: the option `profile` of Managers, and so the variable KOMPUTE_PY_PROFILE.

All Managers with the same file share one trace, which is written when the script ends.
"""

from __future__ import annotations

import atexit
import os
import sys

from .._base.errors import KomputeError, NotFoundError
from .._base.warn import warn
from .._device.device import Device
from .profile import Profile
from .trace import write_trace

_profiles: dict[str, list[Profile]] = {}


def begin(manager: Device, path: str) -> None:
    """Profiles `manager` until it is destroyed or the script ends.

    Raises NotFoundError if there is no folder for the file.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise NotFoundError(
            f"The option profile= is {path!r}, and there is no folder {folder!r}: make it first"
        )
    profile = Profile(manager)
    profile.__enter__()
    if not _profiles:
        atexit.register(finish)
    _profiles.setdefault(path, []).append(profile)


def finish() -> list[Profile]:
    """Ends these profiles, writes their traces, and returns the profiles."""
    ended = []
    for path, profiles in _profiles.items():
        for profile in profiles:
            try:
                profile._finish()
            except KomputeError as error:
                warn(f"The trace of the option profile= lacks what had not ended: {error}")
        try:
            with open(path, "w", encoding="utf-8") as file:
                write_trace(file, [profile._ended() for profile in profiles])
        except OSError as error:
            warn(f"The trace of the option profile= was not written: {error}")
        else:
            print(f"kompute_py: wrote the trace {path}, for ui.perfetto.dev", file=sys.stderr)
        ended += profiles
    _profiles.clear()
    atexit.unregister(finish)
    return ended
