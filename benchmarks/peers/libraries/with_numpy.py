"""NumPy on host memory: the floor of transfers, and what the processor does with no device at all."""

from __future__ import annotations

import numpy as np
from base import Library, Multiplication, Transfer


class NumPy(Library):
    """`np.copyto` and `np.multiply`."""

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


LIBRARY = NumPy
