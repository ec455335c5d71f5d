"""Calls of kernels: with other push constants, arrays, tensors, grids and shapes than the last one."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import numpy as np

from .bench import SHADER, Bench
from .figures import Measured, figure
from .timing import side

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; uint count; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = factor * x[i]; }
"""
_FEW = 64
"""Elements of 256 bytes."""


def _measured(bench: Bench, work: Callable[[], object], times: int | None = None) -> Measured:
    work()
    return bench.compare(side(work), times=times, submits=True)


def _arrays(elements: int) -> list[np.ndarray]:
    return [np.ones(elements, np.float32) for _ in range(3)]


@figure("kernel-new-push", "call a kernel, another push constant each time", "us", "null", 5, 2.5)
def kernel_new_push(bench: Bench) -> Measured:
    scale, (x, y), numbers = bench.manager.kernel(SCALE), bench.tensors[:2], itertools.count(1)
    return _measured(bench, lambda: scale(x, y, factor=0.5, count=next(numbers)))


@figure("kernel-arrays", "call a kernel with three NumPy arrays of 256 B", "us", "null", 8, 3)
def kernel_arrays(bench: Bench) -> Measured:
    multiply, (a, b, c) = bench.manager.kernel(SHADER), _arrays(_FEW)
    return _measured(bench, lambda: multiply(a, b, c))


def _sets(bench: Bench, count: int) -> Measured:
    multiply = bench.manager.kernel(SHADER)
    sets = [[bench.manager.zeros(16) for _ in range(3)] for _ in range(count)]
    for tensors in sets:
        multiply(*tensors)
    turn = itertools.cycle(sets)
    return _measured(bench, lambda: multiply(*next(turn)), times=max(count, 300))


for _count, _text in ((100, "100"), (1_000, "1,000"), (10_000, "10,000")):

    @figure(
        f"kernel-sets-{_count}", f"call a kernel, {_text} sets of tensors in turn", "us", "null", 8, 3,
        drivers=("null",)
    )  # fmt: skip
    def kernel_sets(bench: Bench, count: int = _count) -> Measured:
        return _sets(bench, count)


@figure("kernel-grid", "call a kernel with grid=", "us", "null", 4, 2)
def kernel_grid(bench: Bench) -> Measured:
    multiply, tensors = bench.manager.kernel(SHADER), bench.tensors
    return _measured(bench, lambda: multiply(*tensors, grid=(1024,)))


@figure("kernel-numpy-number", "call a kernel with a np.float32 and 0", "us", "null", 4, 2)
def kernel_numpy_number(bench: Bench) -> Measured:
    scale, (x, y), factor = bench.manager.kernel(SCALE), bench.tensors[:2], np.float32(0.5)
    return _measured(bench, lambda: scale(x, y, factor=factor, count=0))


@figure("kernel-zero", "call a kernel with 0.0", "us", "null", 4, 2, drivers=("null",))
def kernel_zero(bench: Bench) -> Measured:
    scale, (x, y) = bench.manager.kernel(SCALE), bench.tensors[:2]
    return _measured(bench, lambda: scale(x, y, factor=0.0, count=4))


@figure(
    "kernel-new-shape", "call a kernel, arrays of a new shape each time", "us", "null", 30, 12,
    drivers=("null",)
)  # fmt: skip
def kernel_new_shape(bench: Bench) -> Measured:
    multiply = bench.manager.kernel(SHADER)
    # 65,536 shapes of a few KiB, in no order: one axis that grows would measure ever larger copies.
    shapes = list(itertools.product(range(1, 5), repeat=8))
    random.Random(0).shuffle(shapes)
    arrays, turn = _arrays(1 << 16), itertools.cycle(shapes)

    def work() -> None:
        shape = next(turn)
        length = math.prod(shape)
        multiply(*[array[:length].reshape(shape) for array in arrays])

    return _measured(bench, work, times=200)


@figure("kernel-shapes-9", "call a kernel, arrays of 9 shapes in turn", "us", "null", 8, 3, drivers=("null",))
def kernel_shapes(bench: Bench) -> Measured:
    multiply, turn = bench.manager.kernel(SHADER), itertools.cycle([_arrays(_FEW + i) for i in range(9)])
    return _measured(bench, lambda: multiply(*next(turn)))


@figure("kernel-bind", "bind a kernel, k.bind(a, b, out)", "us", "null", 12, 6)
def kernel_bind(bench: Bench) -> Measured:
    multiply, tensors = bench.manager.kernel(SHADER), bench.tensors
    return _measured(bench, lambda: multiply.bind(*tensors))


@figure("kernel-submit", "submit a kernel and wait, k.submit(a, b, out).wait()", "us", "null", 15, 8)
def kernel_submit(bench: Bench) -> Measured:
    multiply, tensors = bench.manager.kernel(SHADER), bench.tensors
    return _measured(bench, lambda: multiply.submit(*tensors).wait())
