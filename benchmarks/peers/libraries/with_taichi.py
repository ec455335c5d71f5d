"""Taichi: ndarrays on its Vulkan back end."""

# No `from __future__ import annotations`: taichi reads the kernel's annotations as objects.
from collections.abc import Callable

import numpy as np
import taichi as ti
from base import Call, Library

_Array = ti.types.ndarray(ti.f32, ndim=1)


@ti.kernel
def _multiply(left: _Array, right: _Array, product: _Array):
    for i in product:
        product[i] = left[i] * right[i]


@ti.kernel
def _add(data: _Array):
    for i in data:
        data[i] += 1.0


@ti.kernel
def _frame(source: _Array, target: _Array):
    for i in target:
        target[i] = 2.0 * source[i] + 1.0


class Taichi(Library):
    """One runtime for the process."""

    def __init__(self, caches: bool = False) -> None:
        ti.init(arch=ti.vulkan, offline_cache=caches)
        if ti.lang.impl.current_cfg().arch != ti.vulkan:
            raise RuntimeError("taichi found no such device and fell back to another")

    def about(self) -> str:
        return f"taichi {'.'.join(map(str, ti.__version__))}, Vulkan"

    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        out = np.zeros_like(left)

        def multiply() -> np.ndarray:
            _multiply(left, right, out)
            return out

        return multiply

    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        inside = ti.ndarray(ti.f32, array.shape)
        inside.from_numpy(array)

        def run() -> None:
            for _ in range(count):
                _add(inside)
            ti.sync()

        return run, inside.to_numpy

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                _frame(frame, result)

        return run


LIBRARY = Taichi
