"""The functions of `kp.ops` on millions of elements: which come first, and their arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import parts
from .calls import CALLS

_FIRST = """
add divide sqrt exp sin power sum max argmax mean var cumsum sort argsort topk unique histogram bincount
nonzero searchsorted matmul fft rfft transpose roll repeat take put concatenate where astype softmax
layer_norm convolve gaussian_filter median einsum flip triu linspace
"""
COUNT = 1 << 24


class Tiled(np.random.Generator):
    """Random numbers of which a million is repeated: large arrays at once."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))

    def _tiled(self, draw: Callable[[Any], Any], size: Any) -> Any:
        total = int(np.prod(size)) if size is not None else 1
        if size is None or total <= 1 << 20:
            return draw(size)
        return np.resize(draw(1 << 20), size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._tiled(lambda n: super(Tiled, self).normal(loc, scale, n), size)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._tiled(lambda n: super(Tiled, self).random(n, dtype), size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        return self._tiled(lambda n: super(Tiled, self).integers(low, high, n, dtype, endpoint), size)


def options_of(name: str, about: str | None, page: str = "") -> argparse.ArgumentParser:
    """The options of a part that calls these functions."""
    parser = parts.options_of(name, about, "function", page=page, markdown=False)
    parser.add_argument("--count", type=int, default=COUNT, help="elements (default: 2**24)")
    return parser


def functions(asked: list[str]) -> list[str]:
    """The functions that are asked for, or all, the most used first. Raises Stopped for an unknown one."""
    return parts.chosen("function", dict.fromkeys([*_FIRST.split(), *CALLS]), asked)


def made(thing: Any, make: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    """What `make` makes of arrays, also of those in lists; anything else as it is."""
    if isinstance(thing, np.ndarray) and thing.ndim:
        return make(thing)
    if isinstance(thing, (list, tuple)):
        return type(thing)(made(each, make) for each in thing)
    return thing


def size(thing: Any, unit: str = "nbytes") -> int:
    """The bytes of an array or tensor, or of all those of a list; or its elements, with "size"."""
    if isinstance(thing, (list, tuple)):
        return sum(size(each, unit) for each in thing)
    return int(getattr(thing, unit, 0))
