"""The pieces of work whose instructions are counted. Each makes what it needs and gives a function to call many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import kompute_py as kp

from ..bench import Bench


class Work(NamedTuple):
    """One piece of work."""

    title: str
    prepare: Callable[[Bench], Callable[[], object]]


def _nothing(bench: Bench) -> Callable[[], object]:
    return lambda: None


def _floor(bench: Bench) -> Callable[[], object]:
    floor = bench.floor
    return lambda: floor.eval(1)


def _eval(bench: Bench) -> Callable[[], object]:
    return bench.manager.sequence().record(kp.OpAlgoDispatch(bench.algorithm)).eval


def _record(bench: Bench) -> Callable[[], object]:
    sequence, algorithm = bench.manager.sequence(), bench.algorithm
    return lambda: sequence.record(kp.OpAlgoDispatch(algorithm))


def _clear_record_eval(bench: Bench) -> Callable[[], object]:
    sequence, algorithm = bench.manager.sequence(), bench.algorithm
    inputs, outputs = bench.tensors[:2], bench.tensors[2:]

    def work() -> None:
        sequence.clear()
        sequence.record(kp.OpSyncDevice(inputs))
        sequence.record(kp.OpAlgoDispatch(algorithm))
        sequence.record(kp.OpSyncLocal(outputs))
        sequence.eval()

    return work


def _tensor(bench: Bench) -> Callable[[], object]:
    data, make = np.ones(256, np.float32), bench.manager.tensor
    return lambda: make(data)


def _algorithm(bench: Bench) -> Callable[[], object]:
    make, tensors, spirv, groups = bench.manager.algorithm, bench.tensors, bench.spirv, (bench.GROUPS, 1, 1)
    return lambda: make(tensors, spirv, groups)


WORKS: dict[str, Work] = {
    "nothing": Work("call an empty Python function (the others include such a call)", _nothing),
    "floor": Work("submit and wait in C, called through ctypes", _floor),
    "eval": Work("eval of a recorded one-dispatch sequence", _eval),
    "record": Work("record one OpAlgoDispatch (object and record)", _record),
    "clear-record-eval": Work("clear, record 3 operations, eval", _clear_record_eval),
    "tensor": Work("make and drop a 1 KiB tensor", _tensor),
    "algorithm": Work("make and drop an algorithm from SPIR-V seen before", _algorithm),
}
