"""The pieces of work whose instructions are counted.

Each makes what it needs and gives a function to call many times.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import kompute_py as kp

from ..bench import SHADER, Bench
from ..rows_operations import scale

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; float offset; uint count; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = factor * x[i] + offset; }
"""


class Work(NamedTuple):
    """One piece of work."""

    title: str
    prepare: Callable[[Bench], Callable[[], object]]
    most: int
    """The instructions that one may take with Python 3.11: a tenth more than when the limit was set."""


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


def _algorithm_of_constants(bench: Bench) -> Callable[[], object]:
    make, tensors, spirv = bench.manager.algorithm, bench.tensors[:2], kp.compile(SCALE)
    return lambda: make(tensors, spirv, (1, 1, 1), [], [2.0, 1.0, 4])


def _dispatch(bench: Bench) -> Callable[[], object]:
    algorithm = bench.manager.algorithm(bench.tensors[:2], kp.compile(SCALE), (1, 1, 1), [], [2.0, 1.0, 4])
    return lambda: kp.OpAlgoDispatch(algorithm, [0.5, 1.0, 4])


def _kernel(bench: Bench) -> Callable[[], object]:
    kernel, (x, y) = bench.manager.kernel(SCALE), bench.tensors[:2]
    return lambda: kernel(x, y, factor=2.0, offset=1.0, count=4)


def _kernel_of_new_values(bench: Bench) -> Callable[[], object]:
    kernel, (x, y), numbers = bench.manager.kernel(SCALE), bench.tensors[:2], itertools.count(1)
    return lambda: kernel(x, y, factor=2.0, offset=1.0, count=next(numbers))


def _zeros(bench: Bench) -> Callable[[], object]:
    make = bench.manager.zeros
    return lambda: make(256)


def _full(bench: Bench) -> Callable[[], object]:
    make = bench.manager.full
    return lambda: make(256, 1.0)


def _op_fill(bench: Bench) -> Callable[[], object]:
    tensors = bench.tensors[:1]
    return lambda: kp.OpFill(tensors, 1.0)


def _fill(bench: Bench) -> Callable[[], object]:
    tensor = bench.tensors[0]
    return lambda: tensor.fill(1.0)


def _await(bench: Bench) -> Callable[[], object]:
    submit = bench.manager.sequence().record(kp.OpAlgoDispatch(bench.algorithm)).eval_async

    async def one() -> None:
        await submit()

    def work() -> None:
        # The null driver's work is done at once, so that no event loop is needed.
        with contextlib.suppress(StopIteration):
            one().send(None)

    return work


def _kernel_of_arrays(bench: Bench) -> Callable[[], object]:
    kernel, arrays = bench.manager.kernel(SHADER), [np.ones(64, np.float32) for _ in range(3)]
    return lambda: kernel(*arrays)


def _kernel_of_new_shapes(bench: Bench) -> Callable[[], object]:
    kernel, arrays = bench.manager.kernel(SHADER), [np.ones(1 << 12, np.float32) for _ in range(3)]
    lengths = itertools.count(64)

    def work() -> None:
        length = next(lengths)
        kernel(*[array[:length] for array in arrays])

    return work


def _frame(bench: Bench) -> Callable[[], object]:
    source, target = bench.manager.zeros(64), bench.manager.zeros(64)
    algorithm = bench.manager.algorithm([source, source, target], bench.spirv, (1, 1, 1))
    sequence = bench.manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    items = itertools.repeat(np.ones(64, np.float32))
    return iter(sequence.stream(items, inputs=source, outputs=target)).__next__


def _sync_device(count: int) -> Callable[[Bench], Callable[[], object]]:
    def prepare(bench: Bench) -> Callable[[], object]:
        make = bench.manager.zeros
        tensors = [make(16) for _ in range(count)]
        return lambda: kp.OpSyncDevice(tensors)

    return prepare


def _eval_beside(count: int) -> Callable[[Bench], Callable[[], object]]:
    """One of `count` sequences of two queues that write one tensor."""

    def prepare(bench: Bench) -> Callable[[], object]:
        manager = kp.Manager(family_queue_indices=[0, 0], validation=False, pipeline_cache_dir="")
        operation = kp.OpCopy([manager.zeros(16), manager.zeros(16)])
        sequences = [manager.sequence(i % 2).record(operation) for i in range(count)]
        for sequence in sequences:
            sequence.eval()
        # The function keeps all of them.
        return lambda: sequences[0].eval()

    return prepare


def _write(bench: Bench) -> Callable[[], object]:
    tensor, array = bench.tensors[0], np.ones(1024, np.float32)
    return lambda: tensor.write(array)


def _view(bench: Bench) -> Callable[[], object]:
    tensor = bench.tensors[0]
    return lambda: tensor[8:16]


def _asarray(bench: Bench) -> Callable[[], object]:
    tensor = bench.tensors[0]
    return lambda: np.asarray(tensor)


def _kernel_of_sets(bench: Bench) -> Callable[[], object]:
    kernel = bench.manager.kernel(SHADER)
    sets = [[bench.manager.zeros(16) for _ in range(3)] for _ in range(1000)]
    for tensors in sets:
        kernel(*tensors)
    turn = itertools.cycle(sets)
    return lambda: kernel(*next(turn))


def _kernel_bind(bench: Bench) -> Callable[[], object]:
    kernel, tensors = bench.manager.kernel(SHADER), bench.tensors
    return lambda: kernel.bind(*tensors)


def _kernel_submit(bench: Bench) -> Callable[[], object]:
    kernel, tensors = bench.manager.kernel(SHADER), bench.tensors
    return lambda: kernel.submit(*tensors).wait()


def _operation(bench: Bench) -> Callable[[], object]:
    x, y = bench.tensors[:2]
    return lambda: scale(x, out=y)


def _operation_of_new_numbers(bench: Bench) -> Callable[[], object]:
    (x, y), numbers = bench.tensors[:2], itertools.count(1)
    return lambda: scale(x, next(numbers) / 7, out=y)


def _operation_of_results(bench: Bench) -> Callable[[], object]:
    x = bench.tensors[0]
    return lambda: scale(x)


def _operation_of_sets(bench: Bench) -> Callable[[], object]:
    turn = itertools.cycle([tuple(bench.manager.zeros(16) for _ in range(2)) for _ in range(100)])

    def work() -> None:
        x, y = next(turn)
        scale(x, out=y)

    return work


def _operation_submit(bench: Bench) -> Callable[[], object]:
    x, y = bench.tensors[:2]
    return lambda: scale.submit(x, out=y)


def _operation_recorded(bench: Bench) -> Callable[[], object]:
    x, y = bench.tensors[:2]
    return bench.manager.sequence().record(scale.op(x, out=y)).eval


def _operation_made(bench: Bench) -> Callable[[], object]:
    x, y = bench.tensors[:2]
    return lambda: scale.op(x, out=y)


WORKS: dict[str, Work] = {
    "nothing": Work("call an empty Python function (the others include such a call)", _nothing, 480),
    "floor": Work("submit and wait in C, called through ctypes", _floor, 9_000),
    "eval": Work("eval of a recorded one-dispatch sequence", _eval, 1_900),
    "record": Work("record one OpAlgoDispatch (object and record)", _record, 5_700),
    "clear-record-eval": Work("clear, record 3 operations, eval", _clear_record_eval, 39_000),
    "tensor": Work("make and drop a 1 KiB tensor", _tensor, 17_000),
    "algorithm": Work("make and drop an algorithm from SPIR-V seen before", _algorithm, 64_000),
    "algorithm-constants": Work("the same with push constants", _algorithm_of_constants, 71_000),
    "dispatch-constants": Work("make an OpAlgoDispatch with push constants", _dispatch, 17_000),
    "kernel": Work("call a kernel with the arguments of an earlier call", _kernel, 12_000),
    "kernel-new-values": Work("call a kernel with other push constants", _kernel_of_new_values, 21_000),
    "zeros": Work("make and drop mgr.zeros of 1 KiB", _zeros, 20_000),
    "full": Work("make and drop mgr.full of 1 KiB", _full, 25_000),
    "op-fill": Work("make an OpFill", _op_fill, 21_000),
    "fill": Work("t.fill(1.0), not waited for", _fill, 48_000),
    "await": Work("await a sequence's eval_async, whose work is done at once", _await, 15_000),
    "frame": Work("stream a frame of 256 B", _frame, 24_000),
    "sync-device-100": Work("make an OpSyncDevice of 100 tensors", _sync_device(100), 61_000),
    "sync-device-1000": Work("make an OpSyncDevice of 1,000 tensors", _sync_device(1000), 600_000),
    "eval-beside-10": Work(
        "eval of one of 10 sequences on two queues that write one tensor", _eval_beside(10), 3_400
    ),
    "eval-beside-1000": Work("eval of one of 1,000 such sequences", _eval_beside(1000), 3_400),
    "write": Work("write 4 KiB to a tensor", _write, 11_000),
    "view": Work("make and drop t[8:16]", _view, 18_000),
    "asarray": Work("np.asarray of 4 KiB on the device", _asarray, 25_000),
    "kernel-arrays": Work("call a kernel with three arrays of 256 B", _kernel_of_arrays, 14_000),
    "kernel-new-shape": Work("call a kernel with arrays of a new shape", _kernel_of_new_shapes, 100_000),
    "kernel-sets": Work("call a kernel with one of 1,000 sets of tensors in turn", _kernel_of_sets, 18_000),
    "kernel-bind": Work("bind a kernel", _kernel_bind, 37_000),
    "kernel-submit": Work("submit a kernel and wait", _kernel_submit, 18_000),
    "operation": Work("call a custom operation on prepared memory", _operation, 15_000),
    "operation-number": Work("the same with another number each time", _operation_of_new_numbers, 122_000),
    "operation-sets": Work("the same with one of 100 sets of tensors in turn", _operation_of_sets, 52_000),
    "operation-result": Work("call a custom operation that makes its result", _operation_of_results, 43_000),
    "operation-submit": Work("submit a custom operation on prepared memory", _operation_submit, 31_500),
    "operation-recorded": Work("eval of a recorded custom operation", _operation_recorded, 1_900),
    "operation-made": Work("make a custom operation's .op to record", _operation_made, 132_000),
}
