"""A call of each function of `kp.ops`, on about a million elements, and NumPy's function for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Made = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """How a function is called."""

    make: Callable[[np.random.Generator, int], Made]
    """Positional arguments, arrays among them, and named ones, for a number of elements."""
    numpy: Callable[..., Any] | None = None
    """NumPy's function, or None if it has none."""
    same_names: bool = True
    """Whether NumPy's takes the named arguments too."""
    elements: int = 0
    """How many elements count; 0: those of the largest argument."""


def _floats(count: int, **named: Any) -> Callable[[np.random.Generator, int], Made]:
    """A maker of vectors of normal numbers."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        return tuple(rng.normal(size=elements).astype(np.float32) for _ in range(count)), named

    return make


def _segments(rng: np.random.Generator, elements: int) -> Made:
    """Keys in segments of 100, and where these begin."""
    keys = rng.normal(size=elements).astype(np.float32)
    return (keys, np.arange(0, elements, 100, dtype=np.int32)), {}


def _whole(most: int, *rest: Any) -> Callable[[np.random.Generator, int], Made]:
    """A maker of a vector of ints from 0 to below `most`."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        return (rng.integers(0, most, elements, dtype=np.int32), *rest), {}

    return make


def _chosen(rng: np.random.Generator, elements: int) -> Made:
    """A condition that holds for half of the elements, and these."""
    return (rng.random(elements) < 0.5, rng.normal(size=elements).astype(np.float32)), {}


def _edges(rng: np.random.Generator, elements: int) -> Made:
    """Numbers, and the edges of 100 bins."""
    return (rng.normal(size=elements).astype(np.float32), np.linspace(-3, 3, 101, dtype=np.float32)), {}


def _places(rng: np.random.Generator, elements: int) -> Made:
    """A thousand sorted numbers, and numbers to find."""
    return tuple(reversed([*_floats(1)(rng, elements)[0], np.linspace(-3, 3, 1000, dtype=np.float32)])), {}


def _cube(axes: int, kind: type[Any], half: bool) -> Callable[[np.random.Generator, int], Made]:
    """A maker of an array with sides of a power of two; `half` of the last one, and one."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        side = 2 ** ((elements.bit_length() - 1) // axes)
        shape = (*(side,) * (axes - 1), side // 2 + 1 if half else side)
        x = rng.normal(size=shape)
        return ((x + 1j * rng.normal(size=shape) if kind is np.complex64 else x).astype(kind),), {}

    return make


CALLS: dict[str, Call] = {
    **{
        name: Call(_floats(1), getattr(np, name))
        for name in [
            "sum",
            "prod",
            "mean",
            "var",
            "std",
            "min",
            "max",
            "argmin",
            "argmax",
            "any",
            "all",
            "count_nonzero",
        ]
    },
    **{
        f"{before}fft{after}": Call(
            _cube(axes, np.float32 if before == "r" else np.complex64, before == "ir"),
            getattr(np.fft, f"{before}fft{after}"),
        )
        for before in ("", "i", "r", "ir")
        for after, axes in (("", 1), ("2", 2), ("n", 3))
    },
    "norm": Call(_floats(1), np.linalg.norm),
    "dot": Call(_floats(2), np.dot),
    "sort": Call(_floats(1), np.sort),
    "argsort": Call(_floats(1), np.argsort),
    "topk": Call(_floats(1, k=100)),
    "sort_by_key": Call(_floats(2)),
    "segmented_sort": Call(_segments),
    "cumsum": Call(_floats(1), np.cumsum),
    "cumprod": Call(_floats(1), np.cumprod),
    "cummax": Call(_floats(1), np.maximum.accumulate),
    "cummin": Call(_floats(1), np.minimum.accumulate),
    "searchsorted": Call(_places, np.searchsorted),
    "int_counts": Call(_whole(1000, 1000)),
    "bin_counts": Call(_edges, np.histogram),
    "nonzero_places": Call(_whole(2)),
    "selected": Call(_chosen),
    "run_starts": Call(_whole(1000)),
    "bincount": Call(_whole(1000), np.bincount),
    "histogram": Call(_floats(1), np.histogram),
    "nonzero": Call(_whole(2), np.nonzero),
    "flatnonzero": Call(_whole(2), np.flatnonzero),
    "compress": Call(_chosen, np.compress),
    "extract": Call(_chosen, np.extract),
    "unique": Call(_whole(1000), np.unique),
}
