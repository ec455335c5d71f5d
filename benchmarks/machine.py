"""Where and when it was measured: kind of machine, system, versions. No names of machines or users."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def _cpuinfo() -> dict[str, str]:
    """What the system says of the first processor."""
    found: dict[str, str] = {}
    try:
        for line in CPUINFO.read_text().splitlines():
            name, colon, value = line.partition(":")
            if colon:
                found.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    return found


def processor() -> str:
    """The processor's model and how many logical ones this process may use."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    model = _cpuinfo().get("model name") or platform.processor() or platform.machine()
    return f"{model}, {count} logical processor{'s' if count != 1 else ''}"


def memory() -> str:
    """The size of main memory; empty where the system does not say."""
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return ""


def system() -> str:
    """The distribution's name and release."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except (OSError, AttributeError):
        return f"{platform.system()} {platform.release()}"


def describe() -> dict[str, str]:
    """All of it, by what it is."""
    import numpy

    import kompute_py

    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "memory": memory(),
        "system": system(),
        "python": sys.version.split()[0],
        "numpy": numpy.__version__,
        "kompute_py": kompute_py.__version__,
    }


def driver_text() -> str:
    """The driver of the first device that the process sees, with its version."""
    import kompute_py as kp

    device = kp.list_devices()[0]
    version = device["driver_info"] or device["driver_version"]
    return f"{device['device_name']}; {device['driver_name']} {version}; Vulkan {device['api_version']}"
