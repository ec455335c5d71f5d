"""Taichi: ndarrays on its Vulkan back end."""

# No `from __future__ import annotations`: taichi reads the kernel's annotations as objects.
import numpy as np
import taichi as ti
from base import Library, Multiplication, Transfer

_Array = ti.types.ndarray(ti.f32, ndim=1)


@ti.kernel
def _multiply(left: _Array, right: _Array, product: _Array):
    for i in product:
        product[i] = left[i] * right[i]


class Taichi(Library):
    """One runtime for the process."""

    def __init__(self) -> None:
        ti.init(arch=ti.vulkan, offline_cache=False)
        if ti.lang.impl.current_cfg().arch != ti.vulkan:
            raise RuntimeError("taichi found no Vulkan device and fell back to another")

    def about(self) -> str:
        return f"taichi {'.'.join(map(str, ti.__version__))}, Vulkan"

    def transfer(self, array: np.ndarray) -> Transfer:
        inside = ti.ndarray(ti.f32, array.shape)
        return Transfer(lambda: inside.from_numpy(array), inside.to_numpy)

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        a, b, product = (ti.ndarray(ti.f32, left.shape) for _ in range(3))

        def round_trip() -> np.ndarray:
            a.from_numpy(left)
            b.from_numpy(right)
            _multiply(a, b, product)
            return product.to_numpy()

        def dispatch() -> None:
            _multiply(a, b, product)
            ti.sync()

        return Multiplication(round_trip, dispatch, product.to_numpy)


LIBRARY = Taichi
