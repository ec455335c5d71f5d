"""NumPy on host memory: the floor of transfers, and what the processor does with no device at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from base import Additions, Library, Multiplication, Transfer


class NumPy(Library):
    """`np.copyto` and `np.multiply`."""

    def __init__(self, caches: bool = False) -> None: ...

    def about(self) -> str:
        return f"NumPy {np.__version__}, host memory"

    def transfer(self, array: np.ndarray) -> Transfer:
        inside, out = np.zeros_like(array), np.zeros_like(array)

        def download() -> np.ndarray:
            np.copyto(out, inside)
            return out

        return Transfer(lambda: np.copyto(inside, array), download)

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        product = np.zeros_like(left)

        def multiply() -> np.ndarray:
            return np.multiply(left, right, out=product)

        return Multiplication(multiply, multiply, lambda: product)

    def additions(self, array: np.ndarray, count: int) -> Additions:
        inside = array.copy()

        def run() -> None:
            for _ in range(count):
                np.add(inside, 1, out=inside)

        return Additions(run, lambda: inside)

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                np.multiply(frame, 2, out=result)
                np.add(result, 1, out=result)

        return run


LIBRARY = NumPy
