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
    "norm": Call(_floats(1), np.linalg.norm),
    "dot": Call(_floats(2), np.dot),
    "sort": Call(_floats(1), np.sort),
    "argsort": Call(_floats(1), np.argsort),
    "topk": Call(_floats(1, k=100)),
    "sort_by_key": Call(_floats(2)),
    "segmented_sort": Call(_segments),
}
