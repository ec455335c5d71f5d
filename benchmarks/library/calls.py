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
}
