"""Taichi: ndarrays on its Vulkan back end."""

# No `from __future__ import annotations`: taichi reads the kernel's annotations as objects.
from collections.abc import Callable

import numpy as np
import taichi as ti
from base import Additions, Library, Multiplication, NotOfferedError, Operation, Transfer

_Number, _Array, _Matrix = (ti.types.ndarray(ti.f32, ndim=ndim) for ndim in range(3))


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


@ti.kernel
def _matmul(a: _Matrix, b: _Matrix, c: _Matrix):
    for y, x in ti.ndrange(c.shape[0] // 4, c.shape[1] // 4):
        total = ti.Matrix.zero(ti.f32, 4, 4)
        for k in range(a.shape[1]):
            for j, i in ti.static(ti.ndrange(4, 4)):
                total[j, i] += a[4 * y + j, k] * b[k, 4 * x + i]
        for j, i in ti.static(ti.ndrange(4, 4)):
            c[4 * y + j, 4 * x + i] = total[j, i]


@ti.kernel
def _normal(numbers: _Array):
    for i in numbers:
        numbers[i] = ti.randn()


@ti.kernel
def _sum(numbers: _Array, total: _Number):
    total[None] = 0.0
    for i in numbers:
        total[None] += numbers[i]


@ti.kernel
def _sum_of_field(numbers: ti.template(), total: ti.template()):
    total[None] = 0.0
    for i in numbers:
        total[None] += numbers[i]  # of a field, the threads make sums of their own first


class Taichi(Library):
    """One runtime for the process."""

    arch = ti.vulkan

    def __init__(self, caches: bool = False) -> None:
        ti.init(arch=self.arch, offline_cache=caches)
        if ti.lang.impl.current_cfg().arch != self.arch:
            raise RuntimeError("taichi found no such device and fell back to another")

    def about(self) -> str:
        where = "Vulkan" if self.arch == ti.vulkan else "its own back end for the CPU"
        return f"taichi {'.'.join(map(str, ti.__version__))}, {where}"

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

    def call(self, left: np.ndarray, right: np.ndarray) -> Callable[[], np.ndarray]:
        out = np.zeros_like(left)

        def multiply() -> np.ndarray:
            _multiply(left, right, out)
            return out

        return multiply

    def additions(self, array: np.ndarray, count: int) -> Additions:
        inside = ti.ndarray(ti.f32, array.shape)
        inside.from_numpy(array)

        def run() -> None:
            for _ in range(count):
                _add(inside)
            ti.sync()

        return Additions(run, inside.to_numpy)

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                _frame(frame, result)

        return run

    def operation(self, name: str, arrays: list[np.ndarray]) -> Operation:
        if name not in ("sort", "matmul", "normal", "sum"):
            raise NotOfferedError  # its prefix sums are of ints
        if name == "sort" and self.arch == ti.vulkan:
            # Some of its threads take 2**19 turns in a loop; lavapipe ends loops after 65,535.
            raise NotOfferedError
        if name == "sort":
            keys, out = (ti.field(ti.i32, arrays[0].shape) for _ in range(2))
            keys.from_numpy(arrays[0])

            def sort() -> None:
                out.copy_from(keys)  # it is sorted in place
                ti.algorithms.parallel_sort(out)
                ti.sync()

            return Operation(sort, out.to_numpy)
        # A kernel over a field of so many numbers has too many groups for Vulkan.
        is_field = name == "sum" and self.arch != ti.vulkan
        make = ti.field if is_field else ti.ndarray
        function = {"matmul": _matmul, "normal": _normal, "sum": _sum_of_field if is_field else _sum}[name]
        given = [] if name == "normal" else [make(ti.f32, array.shape) for array in arrays]
        for inside, array in zip(given, arrays):  # noqa: B905 - nothing of it for "normal"
            inside.from_numpy(array)
        result = make(ti.f32, () if name == "sum" else arrays[0].shape)

        def run() -> None:
            function(*given, result)
            ti.sync()

        return Operation(run, result.to_numpy)


LIBRARY = Taichi
