"""Calls of kernels: with other push constants, arrays, tensors, grids and shapes than the last one."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np

from . import calls
from .bench import SHADER, Bench
from .calls import Work, timed
from .figures import DRIVERS, figure

_NULL = ("null",)


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


for _name, _title, _must, _aim, _drivers, _prepare, _times in (
    ("new-push", ", another push constant each time", 5, 2.5, DRIVERS, calls.kernel_of_new_values, None),
    ("arrays", " with three NumPy arrays of 256 B", 8, 3, DRIVERS, calls.kernel_of_arrays, None),
    ("sets-1000", ", 1,000 sets of tensors in turn", 8, 3, _NULL, calls.kernel_of_sets, 1_000),
    ("new-shape", ", arrays of a new shape each time", 30, 12, _NULL, _new_shapes, 200),
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
