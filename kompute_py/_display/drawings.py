"""Arrays as pictures, and numbers as small drawings: PNG, SVG and statistics, with NumPy only.

The cost is bounded: statistics use a sample of a large array, pictures every n-th pixel.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import Any, NamedTuple

import numpy as np

_Array = np.ndarray[Any, Any]

MOST_SAMPLED = 1 << 16
"""The most elements that statistics use."""
_MOST_PIXELS = 256  # per side
_LEAST_PIXELS = 8  # smaller arrays are not shown as pictures
_SHOWN_SIDE = 192  # small pictures are enlarged to about this
_BINS = 32


class Statistics(NamedTuple):
    """Statistics of an array's elements, or of the magnitudes of complex elements."""

    sampled: int
    """The number of sampled elements."""
    total: int
    """The number of elements."""
    nan: int
    infinite: int
    low: float
    high: float
    mean: float
    deviation: float
    bins: tuple[int, ...]
    """A histogram of the finite elements from `low` to `high`."""


def statistics(array: _Array) -> Statistics | None:
    """Statistics of at most `MOST_SAMPLED` evenly spaced elements; None if the elements are not numbers."""
    flat = array.reshape(-1)
    step = -(-flat.size // MOST_SAMPLED) if flat.size else 1
    values = _numbers(flat[::step])
    if values is None or not values.size:
        return None
    nan = int(np.isnan(values).sum())
    finite = values[np.isfinite(values)]
    infinite = values.size - nan - finite.size
    if not finite.size:
        return Statistics(values.size, flat.size, nan, infinite, np.nan, np.nan, np.nan, np.nan, ())
    low, high = float(finite.min()), float(finite.max())
    # Scaled, so that sums and squares of large numbers do not overflow.
    scale = max(abs(low), abs(high)) or 1.0
    unit = finite / scale
    mean, deviation = float(unit.mean()) * scale, float(unit.std()) * scale
    bins = (
        np.histogram(unit, _BINS, (low / scale, high / scale))[0] if high > low else np.array([finite.size])
    )
    return Statistics(
        values.size, flat.size, nan, infinite, low, high, mean, deviation, tuple(int(n) for n in bins)
    )


def _numbers(array: _Array) -> _Array | None:
    if array.dtype.names is not None:
        return None
    try:
        return np.abs(array).astype(np.float64) if array.dtype.kind == "c" else array.astype(np.float64)
    except (TypeError, ValueError):
        return None  # raw bytes


def histogram(stats: Statistics) -> str:
    """The histogram as inline SVG, in the text's own colour. Its alternative text has the numbers."""
    tallest = max(stats.bins, default=0)
    if not tallest:
        return ""
    bars = []
    width = 240 / len(stats.bins)
    for i, n in enumerate(stats.bins):
        height = 0.0 if n == 0 else max(1.0, 48 * n / tallest)
        bars.append(
            f'<rect x="{i * width:.2f}" y="{48 - height:.2f}" width="{max(width - 1, 1):.2f}" '
            f'height="{height:.2f}"/>'
        )
    return (
        f'<svg role="img" aria-label="{escape(_told(stats))}" width="240" height="50" '
        'viewBox="0 0 240 50" fill="currentColor" opacity="0.65">'
        f'{"".join(bars)}<rect x="0" y="49" width="240" height="1" opacity="0.5"/></svg>'
    )


def _told(stats: Statistics) -> str:
    tallest = max(range(len(stats.bins)), key=stats.bins.__getitem__)
    width = (stats.high / len(stats.bins) - stats.low / len(stats.bins)) if len(stats.bins) > 1 else 0.0
    low = stats.low + tallest * width
    return (
        f"histogram of {sum(stats.bins)} elements from {stats.low:.4g} to {stats.high:.4g}; "
        f"{stats.bins[tallest]} of them are between {low:.4g} and {low + width:.4g}"
    )


def line(values: _Array) -> str:
    """One-dimensional numbers as a line, in inline SVG; "" if the elements are not numbers."""
    flat = values.reshape(-1)
    numbers = _numbers(flat[:: -(-flat.size // 512)] if flat.size else flat)
    if numbers is None or numbers.size < 2 or not np.isfinite(numbers).any():
        return ""
    finite = numbers[np.isfinite(numbers)]
    low, high = float(finite.min()), float(finite.max())
    middle, span = low / 2 + high / 2, high / 2 - low / 2 or 1.0
    points = " ".join(
        f"{480 * i / (numbers.size - 1):.1f},{80 - 76 * (v - middle) / span / 2:.1f}"
        for i, v in enumerate(numbers)
        if np.isfinite(v)
    )
    return (
        f'<svg role="img" aria-label="line through {flat.size} numbers from {low:.4g} to {high:.4g}" '
        'width="480" height="160" viewBox="0 0 480 160" '
        'style="max-width:100%">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def is_picture(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether an array is shown as a picture: (height, width), or with 3 or 4 channels of bytes or floats."""
    if len(shape) not in (2, 3) or dtype.names is not None or dtype.kind not in "biuf":
        return False
    if min(shape[:2]) < _LEAST_PIXELS or max(shape[:2]) > 64 * min(shape[:2]):
        return False
    return (
        len(shape) == 2 or shape[2] == 1 or (shape[2] in (3, 4) and (dtype == np.uint8 or dtype.kind == "f"))
    )


class Picture(NamedTuple):
    """A PNG, a note on how its brightness was chosen, and the array's size."""

    png: bytes
    width: int
    height: int
    note: str
    rows: int
    columns: int

    def alternative(self, name: str) -> str:
        """The text for those who do not see the picture. `name`: what it shows."""
        text = f"{name} as a picture, {self.columns} columns by {self.rows} rows"
        return f"{text}; {self.note}" if self.note else text

    def html(self, name: str = "array") -> str:
        """The picture as a self-contained HTML element. `name`: what it shows, for the alternative text."""
        zoom = max(1, _SHOWN_SIDE // max(self.width, self.height))
        data = base64.b64encode(self.png).decode("ascii")
        return (
            f'<img src="data:image/png;base64,{data}" alt="{escape(self.alternative(name))}" '
            f'width="{self.width * zoom}" height="{self.height * zoom}" '
            'style="image-rendering:pixelated;max-width:100%">'
        )


def picture(array: _Array) -> Picture:
    """The picture of an array for which `is_picture` is true.

    Bytes, bools and floats from 0 to 1 keep their values; other numbers are scaled from lowest to highest.
    """
    step = -(-max(array.shape[:2]) // _MOST_PIXELS)
    small = array[::step, ::step]
    if small.ndim == 3 and small.shape[2] == 1:
        small = small[..., 0]
    note = f"every {step}th pixel" if step > 1 else ""
    if small.dtype == np.uint8:
        pixels = small
    elif small.dtype.kind == "b":
        pixels = small.astype(np.uint8) * np.uint8(255)
    else:
        values = small.astype(np.float64)
        finite = np.isfinite(values)
        low, high = (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
        if small.dtype.kind != "f" or low < 0 or high > 1:
            # Halved first, because the span of the largest floats would overflow.
            span = high / 2 - low / 2
            values = (values / 2 - low / 2) / span if span > 0 else np.zeros_like(values)
            note = ", ".join(part for part in (note, f"black {low:.4g}, white {high:.4g}") if part)
        pixels = (np.clip(np.where(finite, values, 0), 0, 1) * 255 + 0.5).astype(np.uint8)
    return Picture(encode_png(pixels), pixels.shape[1], pixels.shape[0], note, array.shape[0], array.shape[1])


def encode_png(pixels: _Array) -> bytes:
    """A PNG of an array of uint8, (height, width) or (height, width, 3 or 4)."""
    height, width = pixels.shape[:2]
    kind = 0 if pixels.ndim == 2 else {3: 2, 4: 6}[pixels.shape[2]]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(raw, 6))
        + chunk(b"IEND", b"")
    )
