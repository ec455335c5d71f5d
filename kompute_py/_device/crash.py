"""The file that a lost device leaves in the folder of the option `dump`."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Iterable
from typing import Any

from .._base.file_access import replace_own
from .._base.settings import ConfigReport


def write_crash_report(
    folder: str, info: dict[str, Any], config: ConfigReport, error: Exception, messages: Iterable[str]
) -> str:
    """Writes what is known about the loss of the device: the error, with the work and how far each queue
    came, the calls that led to it, the last messages of validation, the device, the versions and the options.

    Returns a sentence for the error.
    """
    from .report import software

    path = os.path.join(folder, f"device-lost-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt")
    lines = [
        f"The device was lost, {time.strftime('%Y-%m-%d %H:%M:%S %z')}",
        f"command: {' '.join(sys.orig_argv)}",
        *_part("error", [str(error)]),
        *_part("calls", "".join(traceback.format_stack()).splitlines()),
        *_part("last messages of validation", messages),
        *_part("device", (f"{name}: {value}" for name, value in info.items())),
        *_part("options", (f"{each.name} = {each.value!r}, from {each.source}" for each in config)),
        *_part("machine", software()),
    ]
    try:
        replace_own(path, "\n".join(lines).encode(errors="backslashreplace"))
    except (OSError, ValueError) as problem:
        return f"The report {path} could not be written: {problem}"
    return f"A report is in {path}"


def _part(title: str, lines: Iterable[str]) -> list[str]:
    return ["", f"-- {title}", *(list(lines) or ["none"])]
