"""NumPy on host memory: the floor of transfers, and what the processor does with no device at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from base import Call, Library


class NumPy(Library):
    """`np.copyto` and `np.multiply`."""

    def __init__(self, caches: bool = False) -> None: ...

    def about(self) -> str:
        return f"NumPy {np.__version__}, host memory"

    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        product = np.zeros_like(left)
        return lambda: np.multiply(left, right, out=product)

    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        inside = array.copy()

        def run() -> None:
            for _ in range(count):
                np.add(inside, 1, out=inside)

        return run, lambda: inside

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                np.multiply(frame, 2, out=result)
                np.add(result, 1, out=result)

        return run


LIBRARY = NumPy
