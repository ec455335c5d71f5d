"""``kompute-py info``: the machine as kompute_py sees it."""

from __future__ import annotations

import math
import platform
from typing import TYPE_CHECKING, Any

from .. import __version__, _native
from .._base.errors import KomputeError
from .._base.text import binary_size
from .._compilers.languages import describe_compilers
from .._device.devices import list_devices, visible_list
from .._device.options import config_report
from .capabilities import VALIDATION, missing, validation_advice

if TYPE_CHECKING:
    from rich.console import Console

# The limits that scripts are most likely to reach.
_SHOWN_LIMITS = (
    ("maxStorageBufferRange", "largest buffer a shader sees", True),
    ("maxComputeSharedMemorySize", "shared memory of a group", True),
    ("maxPushConstantsSize", "push constants", True),
    ("maxPerStageDescriptorStorageBuffers", "tensors of one algorithm", False),
    ("maxImageDimension2D", "largest image side", False),
)


def collect() -> dict[str, Any]:
    """All results of `info`, ready for JSON.

    Without a driver, "devices" is empty and "error" says what to install.
    """
    import numpy as np

    loader = _native.loader_info()
    devices: list[dict[str, Any]] = []
    error = None
    default = None
    passed_over: list[Any] = []
    try:
        devices = [dict(info) for info in list_devices()]
        choice = _native.select_device(None, "", visible_list())
        default, passed_over = choice["index"], list(choice["passed_over"])
    except KomputeError as problem:
        error = str(problem)
    options: list[dict[str, Any]] = []
    try:
        options = [each._asdict() | {"value": _plain(each.value)} for each in config_report()]
    except KomputeError as problem:
        error = error or str(problem)
    for device in devices:
        device["missing"] = missing(device, loader["layers"])
    return {
        "kompute_py": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "loader": loader,
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


def print_info(found: dict[str, Any], console: Console) -> None:
    """Prints the results of `collect` as text."""
    from rich.markup import escape

    loader = found["loader"]
    console.print(
        f"[bold]kompute_py {found['kompute_py']}[/bold], Python {found['python']}, NumPy {found['numpy']}, "
        f"{escape(found['platform'])}",
        highlight=False,
    )
    if loader["available"]:
        version = ".".join(str(part) for part in loader["version"])
        layers = ", ".join(loader["layers"]) or "none"
        console.print(f"Vulkan loader {version}; layers: {escape(layers)}", highlight=False)
        validation = loader["layer_versions"].get(VALIDATION)
        if validation is not None and (advice := validation_advice(validation)):
            console.print(f"[yellow]Note:[/yellow] {escape(advice)}", highlight=False)
    else:
        console.print(f"[yellow]No Vulkan loader:[/yellow] {escape(loader['error'])}", highlight=False)
    compilers = found["shader_compilers"]
    console.print(f"HLSL is compiled by {escape(compilers['hlsl'])}", highlight=False)
    console.print(f"Slang: {escape(compilers['slang'])}", highlight=False)
    for option in found["options"]:
        if option["source"] != "default":
            console.print(
                f"{option['name']} = {escape(repr(option['value']))}, from {escape(option['source'])}",
                highlight=False,
            )
    if found["error"]:
        console.print(
            f"[bold yellow]No device can be used:[/bold yellow] {escape(found['error'])}", highlight=False
        )
    reasons = {entry["index"]: entry["reason"] for entry in found["passed_over"]}
    for device in found["devices"]:
        _print_device(device, found["default_device"], reasons.get(device["index"]), console)


def _print_device(device: dict[str, Any], default: int | None, reason: str | None, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    chosen = "  [green]used by default[/green]" if device["index"] == default else ""
    if reason:
        chosen = f"  not the default: {escape(reason)}"
    console.print()
    console.print(f"[bold]{device['index']}  {escape(device['device_name'])}[/bold]{chosen}", highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")

    def row(name: str, text: str) -> None:
        table.add_row(f"   {name}", escape(text))

    row(
        "type",
        f"{device['type']}, {device['vendor_name']} ({device['vendor_id']:#06x}:{device['device_id']:#06x})",
    )
    details = f" ({device['driver_info']})" if device["driver_info"] else ""
    row("driver", f"{device['driver_name']} {device['driver_version']}{details}")
    row("Vulkan", device["api_version"])
    row("UUID", device["uuid"])
    row("queues", "; ".join(_queue_text(family) for family in device["queue_families"]))
    row("memory", "; ".join(_heap_text(i, device) for i in range(len(device["memory_heaps"]))))
    groups, local = device["max_work_group_count"], device["max_work_group_size"]
    row("groups", f"at most {' × '.join(map(str, groups))}")
    row(
        "local size",
        f"at most {' × '.join(map(str, local))}, {device['max_work_group_invocations']} invocations; "
        f"subgroups of {device['subgroup_size']}",
    )
    limits = device["limits"]
    row(
        "limits",
        "; ".join(
            f"{meaning} {binary_size(limits[name]) if is_size else limits[name]}"
            for name, meaning, is_size in _SHOWN_LIMITS
            if name in limits
        ),
    )
    row(
        "timestamps",
        f"{device['timestamp_period']:g} ns a tick" if device["timestamps_supported"] else "none",
    )
    row("features", ", ".join(name for name, has in device["features"].items() if has))
    row("extensions", f"{len(device['extensions'])} (--json lists them)")
    for number, sentence in enumerate(device["missing"]):
        row("missing" if number == 0 else "", sentence)
    console.print(table, highlight=False)


def _queue_text(family: dict[str, Any]) -> str:
    kinds = [kind for kind in ("compute", "transfer", "graphics") if family[kind]]
    bits = family["timestamp_valid_bits"]
    return (
        f"family {family['index']}: {family['count']} of {', '.join(kinds) or 'other work'}"
        f"{f', timestamps of {bits} bits' if bits else ', no timestamps'}"
    )


def _heap_text(number: int, device: dict[str, Any]) -> str:
    heap = device["memory_heaps"][number]
    types = [kind for kind in device["memory_types"] if kind["heap"] == number]
    seen = " seen by the host" if any(kind["host_visible"] for kind in types) else ""
    where = "of the device" if heap["device_local"] else "of the host"
    return f"{binary_size(heap['size'])} {where}{seen if heap['device_local'] else ''}"
