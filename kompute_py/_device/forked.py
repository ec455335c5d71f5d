"""Drivers that do not work in the child of a fork, because their threads serve all devices of a process.

SwiftShader has such threads: a device that a child makes takes those of the parent's, which are gone, and
its first dispatch would wait for ever.
"""

from __future__ import annotations

import os
from typing import Any

from .._base.errors import FailedPreconditionError

_SHARE_THREADS = ("SwiftShader",)
_opened: set[str] = set()
"""Of these drivers, those that this process has opened."""
_inherited: set[str] = set()
"""And those that a process had opened when it forked this one."""


def check_driver(info: Any) -> None:
    """Notes the driver of an open device. Raises FailedPreconditionError if it cannot work in this one."""
    driver = next((each for each in _SHARE_THREADS if each in info["driver_name"]), None)
    if driver is None:
        return
    if driver in _inherited:
        raise FailedPreconditionError(
            f"{info['device_name']!r} cannot be used here: this process was forked from one that used it, "
            f"and {driver}'s threads did not come along. Start the process by multiprocessing's 'spawn', "
            "fork it before the first Manager is made, or use another device"
        )
    _opened.add(driver)


def _after_fork() -> None:
    _inherited.update(_opened)
    _opened.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
