"""The representation of a tensor or an image in notebooks.

It waits for no work and creates no host copy. The numbers and pictures are those of the device if its
contents are newer than the host copy, or if there is no host copy. While work that writes them is pending,
they are those of the host copy. The card says which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import KomputeError
from .._base.text import binary_size
from .._base.types import MemoryTypes
from .._display import drawings
from .._display.cards import card, times

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
_READ_NOTES = {
    "none": "From the device. There is no host copy yet.",
    "storage": "From the device.",
    "behind": f"From the device. Its contents are newer than the host copy, which {_OLD}",
    "unknown": f"From the device. Its contents may be newer than the host copy, which {_OLD}",
}
_MOST_READ = 1 << 26
"""Larger device memory, in bytes, is not read for a card."""


def memory_title(memory: Any) -> str:
    """The kind and the name, if it has one."""
    kind, name = type(memory).__name__, memory._native.name
    return f"{kind} {name!r}" if name else kind


def memory_card(memory: Any) -> str:
    """A tensor or an image."""
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
    if freshness in _READ_NOTES and native.on_device and memory.nbytes <= _MOST_READ and native.idle:
        try:
            return memory.read(), _READ_NOTES[freshness]
        except KomputeError:  # a mapping that writes is open, or earlier work failed
            pass
    if kept:
        return memory.numpy(), _NOTES[freshness]
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
