"""Representations of objects in notebooks, as HTML in the colours of the theme."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import KomputeError
from .._base.text import binary_size
from .._base.types import MemoryTypes
from . import drawings, graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._device.device import Device
    from .._shaders.signature import Signature

# The remark about the numbers on a card.
_SHOWN = "From the host copy, as data() returns it"
_TO_SEE = "read() waits for them, OpSyncLocal copies them to the host copy."
_OLD = "data() returns, until an OpSyncLocal."
_NOTES = {
    "shared": "From the memory that host and device share.",
    "unsent": f"{_SHOWN}. The data is not on the device yet: the first use uploads it.",
    "matches": f"{_SHOWN}. Later edits are not tracked: OpSyncDevice or write() uploads them.",
    "behind": f"{_SHOWN}. The device's contents are newer: {_TO_SEE}",
    "unknown": f"{_SHOWN}. The device's contents may be newer: {_TO_SEE}",
}
_NOTES["partly"] = _NOTES["unknown"]
_READ_NOTES = {
    "none": "From the device. There is no host copy yet.",
    "storage": "From the device.",
    "behind": f"From the device. Its contents are newer than the host copy, which {_OLD}",
    "unknown": f"From the device. Its contents may be newer than the host copy, which {_OLD}",
}
_READ_NOTES["partly"] = _READ_NOTES["unknown"]
_MOST_READ = 1 << 26
"""Larger device memory, in bytes, is not read for a card."""


def manager_card(manager: Device) -> str:
    """The device, and how much of it the Manager uses."""
    info = manager._info
    rows = [
        ("type", info["type"]),
        ("vendor", info["vendor_name"]),
        ("driver", f"{info['driver_name']} {info['driver_version']}"),
        ("Vulkan", info["api_version"]),
        ("device memory", binary_size(info["device_local_bytes"])),
        ("subgroups of", str(info["subgroup_size"])),
        (
            "largest workgroup",
            f"{info['max_work_group_invocations']} invocations, {times(info['max_work_group_size'])}",
        ),
    ]
    title = f"Manager: device {info['index']}, {info['device_name']}"
    if not manager.is_init():
        return card(title, rows, "destroyed")
    native = manager._native
    rows.append(("queues", str(native.queue_count)))
    rows.append(("validation", "on" if native.validation else "off"))
    heaps = manager.memory.heaps
    rows.append(("memory used", binary_size(sum(heap.used for heap in heaps))))
    rows.append(("memory reserved", binary_size(sum(heap.reserved for heap in heaps))))
    return card(title, rows)


def kernel_card(
    name: str, signature: Signature, constants: Mapping[str, Any], error: Exception | None
) -> str:
    """A kernel's signature, with bindings, push constants and the values of specialization constants."""
    bindings = [
        (f"{p.set}.{p.binding}", p.name, p.type, p.kind, p.access if p.used else "unused")
        for p in signature.parameters
    ]
    table = _table(("binding", "name", "type", "kind", "access"), bindings) if bindings else ""
    rows = [("local size", times(signature.local_size))]
    if signature.push is not None:
        rows.append(("push constants", f"{', '.join(signature.push.names)} ({signature.push.size} bytes)"))
    rows.extend((f"constant {name}", str(value)) for name, value in constants.items())
    needs = [c for c in signature.capabilities if c != "Shader"]
    if needs:
        rows.append(("needs", ", ".join(needs)))
    if error is not None:
        rows.append(("error", str(error)))
    return card(f"Kernel {signature.text(name)}", rows, "", table)


def sequence_bundle(native: graph.Recorded) -> dict[str, str]:
    """The graph by MIME type. HTML is left out, because front ends that draw Mermaid would prefer it.

    JupyterLab 4.1 and newer, nbconvert and GitHub draw Mermaid in Markdown; others show it as a block of
    code.
    """
    drawn = graph.graph_of(native)
    return {
        "text/plain": graph.as_text(drawn),
        "text/markdown": graph.as_markdown(drawn),
        "text/vnd.mermaid": graph.mermaid(drawn),
    }


def memory_title(memory: Any) -> str:
    """The kind and the name, if it has one."""
    kind, name = type(memory).__name__, memory._native.name
    return f"{kind} {name!r}" if name else kind


def memory_card(memory: Any) -> str:
    """A tensor or an image. It waits for no work and creates no host copy.

    The numbers and pictures are the device's if its contents are newer than the host copy, or if there is no
    host copy. While work that writes them is pending, they are the host copy's. The card says which.
    """
    title = memory_title(memory)
    rows = [
        ("shape", times(memory.shape) or "scalar"),
        ("dtype", str(memory.dtype)),
        ("memory", f"{memory.memory_type().name}, {binary_size(memory.nbytes)}"),
    ]
    if memory._is_image:
        rows.append(("format", getattr(memory, "format", "")))
    if not memory.is_init():
        return card(title, rows, "destroyed")
    try:
        values, note = _contents(memory)
    except KomputeError:  # another thread destroyed it
        return card(title, rows, "destroyed")
    if values is None:
        return card(title, rows, note)
    drawing = ""
    stats = drawings.statistics(values)
    if stats is not None:
        rows.extend(_statistics_rows(stats))
        drawing = drawings.histogram(stats)
    if drawings.is_picture(values.shape, values.dtype):
        made = drawings.picture(values)
        drawing = made.html(title) + drawing
        if made.note:
            note = f"{note} Picture: {made.note}."
    return card(title, rows, note, drawing)


def _contents(memory: Any) -> tuple[np.ndarray[Any, Any] | None, str]:
    """The newest contents that can be had without a wait, and a remark that says which they are."""
    native = memory._native
    storage = memory.memory_type() is MemoryTypes.storage
    if not storage and native.host_copy_made and not native.has_host_copy:
        return memory.numpy(), _NOTES["shared"]
    kept = not storage and native.host_copy_made
    freshness = native.freshness if kept else "storage" if storage else "none"
    may_read = memory._manager._guard is None and memory.nbytes <= _MOST_READ
    if freshness in _READ_NOTES and native.on_device and may_read and native.idle:
        try:
            return memory.read(), _READ_NOTES[freshness]
        except KomputeError:  # a mapping that writes is open, or earlier work failed
            pass
    if kept:
        return memory.data().reshape(memory.shape), _NOTES[freshness]
    where = "only on the device" if native.on_device else "only on the device, which its first use fills"
    return None, f"The contents are {where}: read() returns them, show() draws them."


def _statistics_rows(stats: drawings.Statistics) -> list[tuple[str, str]]:
    rows = []
    if stats.bins:
        rows.append(("range", f"{stats.low:.6g} to {stats.high:.6g}"))
        rows.append(("mean ± deviation", f"{stats.mean:.6g} ± {stats.deviation:.4g}"))
    if stats.nan or stats.infinite:
        rows.append(("not finite", f"{stats.nan} NaN, {stats.infinite} infinite"))
    if stats.sampled < stats.total:
        rows.append(("sampled", f"{stats.sampled} of {stats.total} elements"))
    return rows


def card(title: str, rows: list[tuple[str, str]], note: str = "", body: str = "") -> str:
    """A box with a title, named values, a drawing (`body`, HTML) and a remark.

    Everything but `body` is escaped.
    """
    named = "".join(
        f'<div style="opacity:.7">{html.escape(name)}</div><div>{html.escape(value)}</div>'
        for name, value in rows
    )
    parts = [f'<div style="font-weight:600;margin-bottom:4px">{html.escape(title)}</div>']
    if named:
        parts.append(
            f'<div style="display:grid;grid-template-columns:max-content auto;column-gap:16px">{named}</div>'
        )
    if body:
        parts.append(f'<div style="margin-top:6px">{body}</div>')
    if note:
        parts.append(f'<div style="margin-top:4px;opacity:.7;font-size:85%">{html.escape(note)}</div>')
    box = (
        "display:inline-block;border:1px solid rgba(128,128,128,.4);border-radius:6px;"
        "padding:8px 12px;max-width:100%"
    )
    return f'<div style="{box}">{"".join(parts)}</div>'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        return (
            "<tr>"
            + "".join(f'<{tag} style="text-align:left">{html.escape(c)}</{tag}>' for c in cells)
            + "</tr>"
        )

    return f"<table>{row(head, 'th')}{''.join(row(r, 'td') for r in rows)}</table>"


def times(numbers: Any) -> str:
    return " × ".join(map(str, numbers))
