"""Custom operations: calls, recordings, and the first call of a specialization."""

from __future__ import annotations

import itertools

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import REGISTRY, TIMES, Measured
from .timing import side


@kp.CustomOp.register
class scale(kp.CustomOp):
    """`x` times `factor`. Each `number` is a kernel of its own."""

    signature = "scale(Tensor x, float factor=2.0, int number=0) -> Tensor"

    def select(self, ksel: kp.KernelSelection) -> None:
        x = ksel.arg_tensor("x")
        ksel.arg_float("factor")
        ksel.attr_int("number")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel: kp.KernelSelection, kb: kp.KernelBuilder) -> None:
        kb.yield_results(f"x_load(i) * factor + {ksel.arg_descs[2].v}.0")


_SAME = """#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint x_size; float factor; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
float x_load(uint i) { return x[i]; }
void y_store(uint i, float v) { y[i] = v; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= x_size) return;
    y_store(i, x_load(i) * factor + NUMBER.0);
}
"""


@REGISTRY.figure(
    "operation-call",
    "call a custom operation on prepared memory",
    "us",
    judged_on="null",
    must=3,
    aim=1.5,
)
def operation_call(bench: Bench) -> Measured:
    x, y = bench.tensors[:2]
    for _ in range(3):
        scale(x, out=y)
    return bench.compare(side(lambda: scale(x, out=y)), submits=True)


@REGISTRY.figure(
    "operation-number",
    "call a custom operation, another number each time",
    "us",
    judged_on="null",
    must=15,
    aim=8,
)
def operation_number(bench: Bench) -> Measured:
    (x, y), numbers = bench.tensors[:2], itertools.count(1)
    scale(x, out=y)
    return bench.compare(side(lambda: scale(x, next(numbers) / 7, out=y)), submits=True)


@REGISTRY.figure(
    "operation-result",
    "call a custom operation that makes its result",
    "us",
    judged_on="null",
    must=15,
    aim=10,
)
def operation_result(bench: Bench) -> Measured:
    x = bench.tensors[0]
    scale(x)
    return bench.compare(side(lambda: scale(x)), submits=True)


@REGISTRY.figure(
    "operation-recorded",
    "eval of a recorded custom operation",
    TIMES,
    baseline="the same shader in an OpAlgoDispatch",
    judged_on="null",
    must=1.05,
    aim=1.0,
)
def operation_recorded(bench: Bench) -> Measured:
    def make(bench: Bench) -> tuple:
        x, y = bench.tensors[:2]
        ours = bench.manager.sequence().record(scale.op(x, out=y))
        algorithm = bench.manager.algorithm([x, y], kp.compile(_SAME.replace("NUMBER", "0")), (16, 1, 1))
        push = np.array([x.size(), 0], np.uint32).tobytes()
        theirs = bench.manager.sequence().record(kp.OpAlgoDispatch(algorithm, push))
        return side(ours.eval), side(theirs.eval)

    return bench.compare_submissions(make)


@REGISTRY.figure(
    "operation-new",
    "first call of a specialization of a custom operation, nothing in the caches",
    TIMES,
    baseline="compile the same shader, make the algorithm, record, eval",
    judged_on="null",
    must=1.2,
    aim=1.1,
)
def operation_new(bench: Bench) -> Measured:
    mgr, (x, y) = bench.manager, bench.tensors[:2]
    # Other numbers than in earlier runs, whose modules may be on disk.
    numbers = itertools.count(int.from_bytes(np.random.default_rng().bytes(3), "little") * 64)
    push = np.array([x.size(), 0], np.uint32).tobytes()

    def theirs() -> None:
        spirv = kp.compile(_SAME.replace("NUMBER", str(next(numbers))))
        algorithm = mgr.algorithm([x, y], spirv, (16, 1, 1), push_consts=push)
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()

    theirs()
    scale.cache_clear()
    return bench.compare(
        side(lambda: scale(x, number=next(numbers), out=y)), side(theirs), times=10, submits=True
    )
