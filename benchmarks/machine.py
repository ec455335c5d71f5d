"""Where and when it was measured: kind of machine, system, versions. No names of machines or users."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import re
import sys
from pathlib import Path


def _processor() -> str:
    """The processor's model and how many logical ones this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    model = None
    with contextlib.suppress(OSError):
        model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    name = model[1] if model else platform.processor() or platform.machine()
    return f"{name}, {count} logical processor{'s' if count != 1 else ''}"


def _memory() -> str:
    """The size of main memory; empty where the system does not say."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    return ""


def _system() -> str:
    """The distribution's name and release."""
    with contextlib.suppress(OSError, AttributeError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return f"{platform.system()} {platform.release()}"


def describe() -> dict[str, str]:
    """All of it, by what it is."""
    import numpy

    import kompute_py

    return {
        "date": datetime.date.today().isoformat(), "processor": _processor(), "memory": _memory(),
        "system": _system(), "python": sys.version.split()[0], "numpy": numpy.__version__,
        "kompute_py": kompute_py.__version__,
    }  # fmt: skip


def driver_text() -> str:
    """The driver of the first device that the process sees, with its version."""
    import kompute_py as kp

    device = kp.list_devices()[0]
    version = device["driver_info"] or device["driver_version"]
    return f"{device['device_name']}; {device['driver_name']} {version}; Vulkan {device['api_version']}"
