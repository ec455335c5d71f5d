"""Creation: tensors without data, fills, memory that running work still uses, long arrays of descriptors."""

from __future__ import annotations

import contextlib
import time

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import TIMES, Measured, figure
from .timing import Side, side

_NULL = ("null",)  # the driver executes what it is given: on others, the clears would be measured
_AT_A_TIME = 1000

ARRAY = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Part { float part[]; } parts[];
void main() { parts[nonuniformEXT(gl_GlobalInvocationID.x)].part[0] += 1; }
"""
FEW = 1_000
MANY = 60_000


@figure(
    "zeros-device-only", "each of 1,000 x mgr.zeros on device-only memory, with their clears", "us",
    drivers=_NULL, must=4, aim=3
)  # fmt: skip
def zeros_on_device(bench: Bench) -> Measured:
    with contextlib.closing(_Closed(force_staging=True)) as closed:
        manager = closed.manager

        def make(times: int) -> float:
            made = []
            start = time.perf_counter()
            for _ in range(times):
                made.append(manager.zeros(16))
            manager.synchronize()
            return time.perf_counter() - start

        return bench.compare(make, times=_AT_A_TIME)


def _beside(bench: Bench, retired: int) -> Measured:
    """A new tensor while work that is held back uses so many destroyed ones."""
    with contextlib.closing(_Closed()) as closed:
        manager = closed.manager
        data = np.ones(256, np.float32)
        tensors = [manager.tensor(data) for _ in range(retired)]
        semaphore = manager.semaphore()
        sequence = manager.sequence().record(kp.OpFill(tensors, 1.0))
        sequence.eval_async(wait=(semaphore, 1))
        for tensor in tensors:
            tensor.destroy()

        def make(times: int) -> float:
            made = []
            start = time.perf_counter()
            for _ in range(times):
                made.append(manager.tensor(data))
            return time.perf_counter() - start

        measured = bench.compare(make, times=_AT_A_TIME)
        semaphore.signal(1)
        sequence.eval_await()
        return measured


@figure("tensor-1k-retired", "make a 1 KiB tensor while work uses 10,000 destroyed ones", "us", "null", 4, 2)
def beside_retired(bench: Bench) -> Measured:
    return _beside(bench, 10_000)


@figure(
    "descriptor-array", f"an array of {MANY:,} descriptors under validation, each", TIMES, drivers=_NULL,
    baseline=f"in one of {FEW:,}", must=1.5, aim=1.1
)  # fmt: skip
def descriptor_array(bench: Bench) -> Measured:
    with contextlib.closing(_Closed(validation=True)) as closed:
        kernel = closed.manager.kernel(ARRAY)

        def bind(count: int) -> Side:
            tensors = [closed.manager.empty(1) for _ in range(count)]
            return side(lambda: kernel.bind(tensors, grid=1))

        few, many = bind(FEW), bind(MANY)
        return bench.compare(
            lambda times: many(times) / MANY, lambda times: few(times) / FEW, times=1, scale=0.1
        )


class _Closed:
    """A Manager of a figure's own, with options."""

    def __init__(self, validation: bool = False, force_staging: bool = False) -> None:
        self.manager = kp.Manager(validation=validation, force_staging=force_staging, pipeline_cache_dir="")

    def close(self) -> None:
        self.manager.destroy()
