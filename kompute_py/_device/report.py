"""The machine as kompute_py sees it: as data, as text for bug reports, and after the loss of a device."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable
from typing import Any

from .. import __version__, _native
from .._base.errors import KomputeError
from .._base.file_access import replace_own
from .._base.settings import PREFIX, ConfigReport
from .._base.text import binary_size
from .._compilers.languages import describe_compilers
from .devices import choose
from .drivers import available_drivers
from .options import config_report

_SHOWN = (PREFIX, "VK_", "LP_", "MESA_", "GALLIUM_", "LIBGL_", "DISABLE_LAYER", "ENABLE_LAYER")
"""How names of environment variables begin that a report shows: ours, the loader's and Mesa's."""


def facts() -> dict[str, Any]:
    """The versions, the loader, the drivers, the options and the devices, ready for JSON.

    Without a driver, "devices" is empty and "error" says what to install.
    """
    import numpy as np

    devices: list[dict[str, Any]] = []
    error = None
    default = None
    passed_over: list[Any] = []
    try:
        choice, found = choose(None)
        devices = [dict(info) for info in found]
        default, passed_over, error = choice["index"], list(choice["passed_over"]), choice["error"] or None
    except KomputeError as problem:
        error = str(problem)
    options: list[dict[str, Any]] = []
    try:
        options = [each._asdict() | {"value": _plain(each.value)} for each in config_report()]
    except KomputeError as problem:
        error = error or str(problem)
    return {
        "kompute_py": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "loader": _native.loader_info(),
        "drivers": [driver._asdict() for driver in available_drivers()],
        "shader_compilers": describe_compilers(),
        "options": options,
        "devices": devices,
        "default_device": default,
        "passed_over": [
            {"index": index, "name": name, "reason": reason} for index, name, reason in passed_over
        ],
        "error": error,
    }


def _plain(value: Any) -> Any:
    """The value of an option for JSON, which has no infinity."""
    return str(value) if value == math.inf else value


def report() -> str:
    """The machine as kompute_py sees it, as text for a bug report: versions, loader, layers, drivers,
    compilers, options and environment variables that are set, and devices. Needs no device.

    The text has paths of this machine and the values of variables that concern Vulkan: look before you
    publish it.

    >>> kp.report().splitlines()[0].startswith("kompute_py ")
    True
    """
    found = facts()
    lines = [
        *software(),
        *(f"compiler of {language}: {text}" for language, text in found["shader_compilers"].items()),
        *(
            f"option {each['name']} = {each['value']!r}, from {each['source']}"
            for each in found["options"]
            if each["source"] != "default"
        ),
        *([f"no device can be used: {found['error']}"] if found["error"] else []),
        *(line for device in found["devices"] for line in _lines(device, found["default_device"])),
        *(f"not the default: {each['name']}: {each['reason']}" for each in found["passed_over"]),
    ]
    return "\n".join(lines)


def software() -> list[str]:
    """The versions, the loader, the drivers and the variables that concern Vulkan. Makes no Vulkan call."""
    import numpy as np

    loader = _native.loader_info()
    version = ".".join(map(str, loader["version"])) if loader["available"] else f"none: {loader['error']}"
    return [
        f"kompute_py {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.platform()}",
        f"Vulkan loader: {version}",
        f"layers: {', '.join(loader['layers']) or 'none'}",
        *(f"driver: {driver}" for driver in available_drivers()),
        *(f"variable {name}={os.environ[name]!r}" for name in sorted(os.environ) if name.startswith(_SHOWN)),
    ]


def _lines(device: dict[str, Any], default: int | None) -> list[str]:
    heaps = ", ".join(binary_size(heap["size"]) for heap in device["memory_heaps"])
    return [
        f"device {device['index']}: {device['device_name']} ({device['type']}, "
        f"Vulkan {device['api_version']}){', the default' if device['index'] == default else ''}",
        f"  driver {device['driver_id']} {device['driver_version']}, {device['driver_name']} "
        f"{device['driver_info']}, conformance {device['conformance_version']}",
        f"  {device['vendor_id']:#06x}:{device['device_id']:#06x}, UUID {device['uuid']}, "
        f"PCI {device['pci_address'] or 'unknown'}, memory {heaps}",
        f"  features: {', '.join(name for name, has in device['features'].items() if has)}",
        f"  extensions: {', '.join(device['extensions'])}",
    ]


def write_crash_report(
    folder: str, info: dict[str, Any], config: ConfigReport, error: Exception, messages: Iterable[str]
) -> str:
    """Writes what is known about the loss of the device to the folder of the option `dump`: the error, with
    the work and how far each queue came, the calls that led to it, the last messages of validation, the
    device, the versions and the options.

    Returns a sentence for the error.
    """
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
