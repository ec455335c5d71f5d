"""Memory: making tensors and moving their contents, against memcpy and ndarray.copy()."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import TIMES, Measured, figure
from .floor import CopyPair
from .timing import Side, prepared, side

LARGE = 64 << 20
SMALL = 1 << 10
_AT_A_TIME = 1000
# Moving 64 MiB takes longer than a block has to: fewer of them.
_LARGE_SCALE = 0.3
# On each of several devices: where a block lies in memory changes its times, as the placement of threads
# does. Several in a row, so that a side's first copy, which finds the other's traces in the caches, is not
# all that is measured.
_SYNC_SCALE = 0.1
_SYNC_IN_A_ROW = 4
# The null driver keeps a second copy of memory to show a missing flush, so that its transfers are no measure.
_CPU_DRIVERS = ("lavapipe", "swiftshader")


def _sync(bench: Bench, operation: Callable[[list[kp.Tensor]], kp.OpBase]) -> Measured:
    with contextlib.ExitStack() as pairs:

        def sides(bench: Bench) -> tuple[Side, Side]:
            tensor = bench.manager.tensor(np.ones(LARGE // 4, np.float32))
            # Both ways once: each page is there before the clock starts.
            sequence = bench.manager.sequence()
            sequence.eval(kp.OpSyncDevice([tensor])).eval(kp.OpSyncLocal([tensor]))
            sequence.clear()
            sequence.record(operation([tensor]))
            pair = pairs.enter_context(contextlib.closing(CopyPair(LARGE)))
            return side(sequence.eval), pair.copy

        return bench.compare_submissions(sides, scale=_SYNC_SCALE, times=_SYNC_IN_A_ROW)


@figure(
    "sync-device-64m", "OpSyncDevice of 64 MiB", TIMES, "lavapipe", 1.05, drivers=_CPU_DRIVERS,
    baseline="memcpy"
)  # fmt: skip
def sync_device(bench: Bench) -> Measured:
    return _sync(bench, kp.OpSyncDevice)


@figure(
    "sync-local-64m", "OpSyncLocal of 64 MiB", TIMES, "lavapipe", 1.05, drivers=_CPU_DRIVERS,
    baseline="memcpy"
)  # fmt: skip
def sync_local(bench: Bench) -> Measured:
    return _sync(bench, kp.OpSyncLocal)


@figure("tensor-64m", "make a 64 MiB tensor", TIMES, "lavapipe", 1.3, 1.05, baseline="ndarray.copy()")
def large_tensor(bench: Bench) -> Measured:
    data = np.ones(LARGE // 4, np.float32)
    manager = bench.manager
    ours = prepared(lambda: None, lambda: manager.tensor(data))
    return bench.compare(ours, prepared(lambda: None, data.copy), times=1, scale=_LARGE_SCALE)


def _small_tensor(bench: Bench, alive: int) -> Measured:
    data = np.ones(SMALL // 4, np.float32)
    make = bench.manager.tensor
    kept = [make(data) for _ in range(alive)]

    def ours(times: int) -> float:
        made = []
        clock = time.perf_counter
        start = clock()
        for _ in range(times):
            made.append(make(data))
        return clock() - start

    def copies(times: int) -> float:
        made = []
        clock = time.perf_counter
        start = clock()
        for _ in range(times):
            made.append(data.copy())
        return clock() - start

    measured = bench.compare(ours, copies, times=_AT_A_TIME)
    del kept
    return measured


@figure(
    "tensor-1k-5000", "make a 1 KiB tensor with 5,000 alive", "us", "lavapipe", 4, 3,
    baseline="ndarray.copy()"
)  # fmt: skip
def few_tensors(bench: Bench) -> Measured:
    return _small_tensor(bench, 5_000)


@figure(
    "tensor-1k-100000", "make a 1 KiB tensor with 100,000 alive", "us", "lavapipe", 4, 3,
    baseline="ndarray.copy()"
)  # fmt: skip
def many_tensors(bench: Bench) -> Measured:
    return _small_tensor(bench, 100_000)
