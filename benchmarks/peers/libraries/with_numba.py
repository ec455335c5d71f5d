"""numba: loops that it compiles for the CPU; `parallel=True` where an array is so large that it gains."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from base import Additions, Library, Multiplication, Transfer

_LARGE = 1 << 16  # elements


def _compiled(work: Callable[..., None]) -> Callable[[int], Callable[..., None]]:
    """The function for arrays of a size: compiled twice, when first called, and kept on disk."""
    one, several = numba.njit(cache=True)(work), numba.njit(cache=True, parallel=True)(work)
    return lambda size: several if size >= _LARGE else one


@_compiled
def _copy(source, target):
    for i in numba.prange(target.size):
        target[i] = source[i]


@_compiled
def _multiply(left, right, product):
    for i in numba.prange(product.size):
        product[i] = left[i] * right[i]


@_compiled
def _add(data):
    for i in numba.prange(data.size):
        data[i] += np.float32(1)


@_compiled
def _frame(source, target):
    for i in numba.prange(target.size):
        target[i] = np.float32(2) * source[i] + np.float32(1)


class Numba(Library):
    """Compiled functions."""

    def __init__(self, caches: bool = False) -> None: ...

    def about(self) -> str:
        return f"numba {numba.__version__}, CPU, {numba.get_num_threads()} threads"

    def transfer(self, array: np.ndarray) -> Transfer:
        inside, out, copy = np.zeros_like(array), np.zeros_like(array), _copy(array.size)

        def download() -> np.ndarray:
            copy(inside, out)
            return out

        return Transfer(lambda: copy(array, inside), download)

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        product, multiply = np.zeros_like(left), _multiply(left.size)

        def run() -> np.ndarray:
            multiply(left, right, product)
            return product

        return Multiplication(run, run, lambda: product)

    def additions(self, array: np.ndarray, count: int) -> Additions:
        inside, add = array.copy(), _add(array.size)

        def run() -> None:
            for _ in range(count):
                add(inside)

        return Additions(run, lambda: inside)

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        compute = _frame(frames[0].size)

        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                compute(frame, result)

        return run


LIBRARY = Numba
