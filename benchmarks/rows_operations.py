"""Custom operations: calls, recordings, and the first call of a specialization."""

from __future__ import annotations

import itertools

import numpy as np

import kompute_py as kp

from .bench import Bench
from .calls import scale
from .figures import TIMES, Measured, figure
from .timing import side


@figure(
    "operation-recorded", "eval of a recorded custom operation", TIMES, "null", 1.05, 1.0,
    baseline="the same shader in an OpAlgoDispatch"
)  # fmt: skip
def operation_recorded(bench: Bench) -> Measured:
    def make(bench: Bench) -> tuple:
        x, y = bench.tensors[:2]
        ours = bench.manager.sequence().record(scale.op(x, out=y))
        algorithm = bench.manager.algorithm([x, y], kp.compile(scale.sources(x)[0]), (16, 1, 1))
        push = np.array([x.size(), 0], np.uint32).tobytes()
        theirs = bench.manager.sequence().record(kp.OpAlgoDispatch(algorithm, push))
        return side(ours.eval), side(theirs.eval)

    return bench.compare_submissions(make)


@figure(
    "operation-new", "first call of a specialization of a custom operation, nothing in the caches", TIMES,
    "null", 1.2, 1.1, baseline="compile the same shader, make the algorithm, record, eval"
)  # fmt: skip
def operation_new(bench: Bench) -> Measured:
    mgr, (x, y) = bench.manager, bench.tensors[:2]
    # Other numbers than in earlier runs, whose modules may be on disk.
    numbers = itertools.count(int.from_bytes(np.random.default_rng().bytes(3), "little") * 64)
    push = np.array([x.size(), 0], np.uint32).tobytes()
    (text,) = scale.sources(x, number=77777)

    def theirs() -> None:
        spirv = kp.compile(text.replace("77777.0", f"{next(numbers)}.0"))
        algorithm = mgr.algorithm([x, y], spirv, (16, 1, 1), push_consts=push)
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()

    theirs()
    scale.cache_clear()
    return bench.compare(
        side(lambda: scale(x, number=next(numbers), out=y)), side(theirs), times=10, submits=True
    )
