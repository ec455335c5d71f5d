"""Calls of kernels: with other push constants, arrays, tensors, grids and shapes than the last one."""

from __future__ import annotations

import itertools
import math
import random
from functools import partial

import numpy as np

from . import calls
from .bench import SHADER, Bench
from .calls import SCALE, Work, timed
from .figures import DRIVERS, figure

_NULL = ("null",)


def _grid(bench: Bench) -> Work:
    multiply, tensors = bench.manager.kernel(SHADER), bench.tensors
    return lambda: multiply(*tensors, grid=(1024,))


def _numpy_number(bench: Bench) -> Work:
    scale, (x, y), factor = bench.manager.kernel(SCALE), bench.tensors[:2], np.float32(0.5)
    return lambda: scale(x, y, factor=factor, offset=1.0, count=0)


def _zero(bench: Bench) -> Work:
    scale, (x, y) = bench.manager.kernel(SCALE), bench.tensors[:2]
    return lambda: scale(x, y, factor=0.0, offset=1.0, count=4)


def _new_shapes(bench: Bench) -> Work:
    multiply, arrays = bench.manager.kernel(SHADER), [np.ones(1 << 16, np.float32) for _ in range(3)]
    # 65,536 shapes of a few KiB, in no order: one axis that grows would measure ever larger copies.
    shapes = list(itertools.product(range(1, 5), repeat=8))
    random.Random(0).shuffle(shapes)
    turn = itertools.cycle(shapes)

    def work() -> None:
        shape = next(turn)
        length = math.prod(shape)
        multiply(*[array[:length].reshape(shape) for array in arrays])

    return work


def _nine_shapes(bench: Bench) -> Work:
    multiply = bench.manager.kernel(SHADER)
    turn = itertools.cycle([[np.ones(64 + i, np.float32) for _ in range(3)] for i in range(9)])
    return lambda: multiply(*next(turn))


for _name, _title, _must, _aim, _drivers, _prepare, _times in (
    ("new-push", ", another push constant each time", 5, 2.5, DRIVERS, calls.kernel_of_new_values, None),
    ("arrays", " with three NumPy arrays of 256 B", 8, 3, DRIVERS, calls.kernel_of_arrays, None),
    ("sets-100", ", 100 sets of tensors in turn", 8, 3, _NULL, partial(calls.kernel_of_sets, n=100), 300),
    ("sets-1000", ", 1,000 sets of tensors in turn", 8, 3, _NULL, calls.kernel_of_sets, 1_000),
    (
        "sets-10000",
        ", 10,000 sets of tensors in turn",
        8,
        3,
        _NULL,
        partial(calls.kernel_of_sets, n=10_000),
        10_000,
    ),
    ("grid", " with grid=", 4, 2, DRIVERS, _grid, None),
    ("numpy-number", " with a np.float32 and 0", 4, 2, DRIVERS, _numpy_number, None),
    ("zero", " with 0.0", 4, 2, _NULL, _zero, None),
    ("new-shape", ", arrays of a new shape each time", 30, 12, _NULL, _new_shapes, 200),
    ("shapes-9", ", arrays of 9 shapes in turn", 8, 3, _NULL, _nine_shapes, None),
):
    figure(f"kernel-{_name}", f"call a kernel{_title}", "us", "null", _must, _aim, drivers=_drivers)(
        timed(_prepare, times=_times)
    )

for _name, _title, _must, _aim, _prepare in (
    ("kernel-bind", "bind a kernel, k.bind(a, b, out)", 12, 6, calls.kernel_bind),
    ("kernel-submit", "submit a kernel and wait, k.submit(a, b, out).wait()", 15, 8, calls.kernel_submit),
    ("operation-call", "call a custom operation on prepared memory", 3, 1.5, calls.operation),
    (
        "operation-number", "call a custom operation, another number each time", 15, 8,
        calls.operation_of_new_numbers,
    ),
    ("operation-result", "call a custom operation that makes its result", 5, 3, calls.operation_of_results),
):  # fmt: skip
    figure(_name, _title, "us", "null", _must, _aim)(timed(_prepare))
