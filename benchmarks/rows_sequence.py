"""Recording and evaluating: what lies between a Python statement and vkQueueSubmit."""

from __future__ import annotations

import time

import numpy as np

import kompute_py as kp

from . import calls
from .bench import Bench
from .figures import TIMES, Measured, figure
from .timing import Side, side


@figure(
    "eval", "eval of a recorded one-dispatch sequence", "us", "null", 0.8, 0.3,
    baseline="C submit and wait"
)  # fmt: skip
def evaluate(bench: Bench) -> Measured:
    def sides(on: Bench) -> tuple[Side, Side]:
        return side(calls.evaluate(on)), on.floor.eval

    return bench.compare_submissions(sides)


# 3 us beyond what is aimed at for eval
@figure(
    "kernel", "call a kernel on prepared tensors, k(a, b, out)", "us", "null", 3.3, 2,
    baseline="eval of the same dispatch"
)  # fmt: skip
def kernel(bench: Bench) -> Measured:
    def sides(on: Bench) -> tuple[Side, Side]:
        call, arguments = on.manager.kernel(on.spirv), on.tensors
        call(*arguments)  # what was never on the device is uploaded once
        recorded = on.manager.sequence().record(call.bind(*arguments))
        return side(lambda: call(*arguments)), side(recorded.eval)

    return bench.compare_submissions(sides)


@figure("record", "record one OpAlgoDispatch (object and record)", "us", "null", 1.2, 0.5)
def record(bench: Bench) -> Measured:
    sequence = bench.manager.sequence()
    algorithm = bench.algorithm

    def run(times: int) -> float:
        sequence.clear()
        clock = time.perf_counter
        start = clock()
        for _ in range(times):
            sequence.record(kp.OpAlgoDispatch(algorithm))
        return clock() - start

    return bench.compare(run, times=1000)


@figure(
    "clear-record-eval", "clear, record 3 operations, eval", "us", "null", 12, 5,
    baseline="C record, submit and wait"
)  # fmt: skip
def clear_record_eval(bench: Bench) -> Measured:
    def sides(on: Bench) -> tuple[Side, Side]:
        return side(calls.clear_record_eval(on)), on.floor.rerecorded_roundtrip

    return bench.compare_submissions(sides)


@figure(
    "roundtrip", "upload 2 x 4 KiB, dispatch, download", TIMES, "lavapipe", 1.10, 1.02,
    baseline="the same commands in C"
)  # fmt: skip
def roundtrip(bench: Bench) -> Measured:
    def sides(on: Bench) -> tuple[Side, Side]:
        left, right, product = on.tensors
        sequence = (
            on.manager.sequence()
            .record(kp.OpSyncDevice([left, right]))
            .record(kp.OpAlgoDispatch(on.algorithm))
            .record(kp.OpSyncLocal([product]))
        )
        on.floor.host(0)[:], on.floor.host(1)[:] = left.data(), right.data()
        sequence.eval()
        on.floor.roundtrip(1)
        if on.driver != "null":  # which runs no shaders
            expected = left.data() * right.data()
            for who, result in (("kompute_py", product.data()), ("the C floor", on.floor.host(2))):
                if not np.array_equal(result, expected):
                    raise AssertionError(f"{who} computed a wrong product on {on.driver}")
        return side(sequence.eval), on.floor.roundtrip

    return bench.compare_submissions(sides)
