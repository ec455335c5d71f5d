"""Calls of the engine that are timed (`rows`) and whose instructions are counted (`instructions`).

As with `timeit`, each is a text: what is made before, and the call that is done many times.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import kompute_py as kp

from .bench import SHADER, Bench  # noqa: F401 - of the table

Work = Callable[[], object]
Prepare = Callable[[Bench], Work]

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; float offset; uint count; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = factor * x[i] + offset; }
"""


@kp.CustomOp.register
class scale(kp.CustomOp):
    """`x` times `factor`. Each `number` is a kernel of its own."""

    signature = "scale(Tensor x, float factor=2.0, int number=0) -> Tensor"

    def select(self, ksel: kp.FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        ksel.arg_float("factor")
        ksel.attr_int("number")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.yield_results(f"x_load(i) * factor + {ksel.attribute('number')}.0")


def _completed(submit: Callable[[], object]) -> Work:
    """Awaits what `submit` gives. The null driver's work is done at once, so no event loop is needed."""

    async def one() -> None:
        await submit()

    def work() -> None:
        with contextlib.suppress(StopIteration):
            one().send(None)

    return work


def _rerecorded(sequence: kp.Sequence, bench: Bench) -> Work:
    algorithm, inputs, outputs = bench.algorithm, bench.tensors[:2], bench.tensors[2:]

    def work() -> None:
        sequence.clear()
        sequence.record(kp.OpSyncDevice(inputs))
        sequence.record(kp.OpAlgoDispatch(algorithm))
        sequence.record(kp.OpSyncLocal(outputs))
        sequence.eval()

    return work


def _of_lengths(kernel: kp.Kernel) -> Work:
    arrays, lengths = [np.ones(1 << 12, np.float32) for _ in range(3)], itertools.count(64)

    def work() -> None:
        length = next(lengths)
        kernel(*[array[:length] for array in arrays])

    return work


def _of_sets(sets: list[tuple[kp.Tensor, ...]]) -> Work:
    turn = itertools.cycle(sets)

    def work() -> None:
        x, y = next(turn)
        scale(x, out=y)

    return work


_TABLE = """
nothing: call an empty Python function (the others include such a call) <= 480
    None
floor: submit and wait in C, called through ctypes <= 9_000
    floor = bench.floor
    floor.eval(1)
eval: eval of a recorded one-dispatch sequence <= 1_900
    = mgr.sequence().record(kp.OpAlgoDispatch(bench.algorithm)).eval
record: record one OpAlgoDispatch (object and record) <= 5_700
    sequence, algorithm = mgr.sequence(), bench.algorithm
    sequence.record(kp.OpAlgoDispatch(algorithm))
clear-record-eval: clear, record 3 operations, eval <= 39_000
    = _rerecorded(mgr.sequence(), bench)
tensor: make and drop a 1 KiB tensor <= 17_000
    data, make = np.ones(256, np.float32), mgr.tensor
    make(data)
algorithm: make and drop an algorithm from SPIR-V seen before <= 64_000
    make, tensors, spirv, groups = mgr.algorithm, bench.tensors, bench.spirv, (bench.GROUPS, 1, 1)
    make(tensors, spirv, groups)
algorithm-constants: the same with push constants <= 71_000
    make, tensors, spirv = mgr.algorithm, bench.tensors[:2], kp.compile(SCALE)
    make(tensors, spirv, (1, 1, 1), [], [2.0, 1.0, 4])
dispatch-constants: make an OpAlgoDispatch with push constants <= 17_000
    algorithm = mgr.algorithm(bench.tensors[:2], kp.compile(SCALE), (1, 1, 1), [], [2.0, 1.0, 4])
    kp.OpAlgoDispatch(algorithm, [0.5, 1.0, 4])
kernel: call a kernel with the arguments of an earlier call <= 12_000
    kernel, (x, y) = mgr.kernel(SCALE), bench.tensors[:2]
    kernel(x, y, factor=2.0, offset=1.0, count=4)
kernel-new-values: call a kernel with other push constants <= 21_000
    kernel, (x, y), numbers = mgr.kernel(SCALE), bench.tensors[:2], itertools.count(1)
    kernel(x, y, factor=2.0, offset=1.0, count=next(numbers))
zeros: make and drop mgr.zeros of 1 KiB <= 20_000
    make, n = mgr.zeros, 256
    make(n)
full: make and drop mgr.full of 1 KiB <= 25_000
    make, n = mgr.full, 256
    make(n, 1.0)
op-fill: make an OpFill <= 21_000
    tensors = bench.tensors[:1]
    kp.OpFill(tensors, 1.0)
fill: t.fill(1.0), not waited for <= 48_000
    tensor = mgr.empty(1024)
    tensor.fill(1.0)
await: await a sequence's eval_async, whose work is done at once <= 15_000
    = _completed(mgr.sequence().record(kp.OpAlgoDispatch(bench.algorithm)).eval_async)
frame: stream a frame of 256 B <= 24_000
    source, target, items = mgr.zeros(64), mgr.zeros(64), itertools.repeat(np.ones(64, np.float32))
    algorithm = mgr.algorithm([source, source, target], bench.spirv, (1, 1, 1))
    sequence = mgr.sequence().record(kp.OpAlgoDispatch(algorithm))
    = iter(sequence.stream(items, inputs=source, outputs=target)).__next__
sync-device-100: make an OpSyncDevice of 100 tensors <= 61_000
    tensors = [mgr.zeros(16) for _ in range(100)]
    kp.OpSyncDevice(tensors)
sync-device-1000: make an OpSyncDevice of 1,000 tensors <= 600_000
    tensors = [mgr.zeros(16) for _ in range(1000)]
    kp.OpSyncDevice(tensors)
eval-beside-10: eval of one of 10 sequences on two queues that write one tensor <= 3_400
    sequences = _beside(10)
    sequences[0].eval()
eval-beside-1000: eval of one of 1,000 such sequences <= 3_400
    sequences = _beside(1000)
    sequences[0].eval()
write: write 4 KiB to a tensor <= 11_000
    tensor, array = _written(mgr)
    tensor.write(array)
view: make and drop t[8:16] <= 18_000
    tensor = bench.tensors[0]
    tensor[8:16]
asarray: np.asarray of 4 KiB on the device <= 25_000
    tensor, _ = _written(mgr)
    np.asarray(tensor)
kernel-arrays: call a kernel with three arrays of 256 B <= 14_000
    kernel, arrays = mgr.kernel(SHADER), [np.ones(64, np.float32) for _ in range(3)]
    kernel(*arrays)
kernel-new-shape: call a kernel with arrays of a new shape <= 100_000
    = _of_lengths(mgr.kernel(SHADER))
kernel-results: call a kernel that leaves its output out <= 53_000
    kernel, tensors = mgr.kernel(SHADER), bench.tensors[:2]
    kernel(*tensors)
kernel-uses: call a kernel with `uses=` <= 10_000
    kernel, tensors, uses = mgr.kernel(SHADER), bench.tensors, [mgr.zeros(16)]
    kernel(*tensors, uses=uses)
kernel-sets: call a kernel with one of 1,000 sets of tensors in turn <= 18_000
    kernel, sets = mgr.kernel(SHADER), _sets(mgr, 1000, 3)
    for tensors in sets: kernel(*tensors)
    turn = itertools.cycle(sets)
    kernel(*next(turn))
kernel-bind: bind a kernel <= 20_000
    kernel, tensors = mgr.kernel(SHADER), bench.tensors
    kernel.bind(*tensors)
kernel-submit: submit a kernel and wait <= 18_000
    kernel, tensors = mgr.kernel(SHADER), bench.tensors
    kernel.submit(*tensors).wait()
program-kernel: call a kernel of a program <= 16_000
    entry, (x, y) = kp.Program.record(mgr.kernel(SCALE)).main, bench.tensors[:2]
    entry(x, y, factor=2.0, offset=1.0, count=4)
program-arrays: the same with arrays, on the current Manager <= 26_500
    entry, (x, y) = kp.Program.record(mgr.kernel(SCALE)).main, np.ones((2, 16), np.float32)
    entry(x, y, factor=2.0, offset=1.0, count=4)
program-nothing: call a recording of a program without arguments, on the current Manager <= 8_500
    filled = mgr.zeros(16)
    entry = kp.Program.record(mgr.sequence().record(kp.OpFill([filled], 1.0)), state={"filled": filled}).main
    entry()
program-recording: call a recording of a program over its tensors <= 8_800
    entry, x, y = _recording(bench)
    entry(x, out=y)
program-names: the same with its input by name <= 9_600
    entry, x, y = _recording(bench)
    entry(x=x, out=y)
program-results: call a recording of a program that makes its result <= 42_000
    entry, x, _ = _recording(bench)
    entry(x)
program-submit: submit a recording of a program and wait <= 29_000
    entry, x, y = _recording(bench)
    entry.submit(x, out=y).wait()
operation: call a custom operation on prepared memory <= 7_500
    x, y = bench.tensors[:2]
    scale(x, out=y)
operation-number: the same with another number each time <= 42_000
    (x, y), numbers = bench.tensors[:2], itertools.count(1)
    scale(x, next(numbers) / 7, out=y)
operation-sets: the same with one of 100 sets of tensors in turn <= 20_000
    = _of_sets(_sets(mgr, 100, 2))
operation-result: call a custom operation that makes its result <= 40_000
    x = bench.tensors[0]
    scale(x)
operation-submit: submit a custom operation on prepared memory <= 13_500
    x, y = bench.tensors[:2]
    scale.submit(x, out=y)
operation-recorded: eval of a recorded custom operation <= 1_900
    x, y = bench.tensors[:2]
    = mgr.sequence().record(scale.op(x, out=y)).eval
operation-made: make a custom operation's .op to record <= 132_000
    x, y = bench.tensors[:2]
    scale.op(x, out=y)
"""
"""Name, title and the instructions that one may take with Python 3.11: a tenth more than when the limit was
set. Below: what is made, and the call; after "=" a function that is called itself."""


def _recording(bench: Bench) -> tuple[kp.ProgramEntry, kp.Tensor, kp.Tensor]:
    (x, y), kernel = bench.tensors[:2], bench.manager.kernel(SCALE)
    sequence = bench.manager.sequence().record(kernel.bind(x, y, factor=2.0, offset=1.0, count=4))
    return kp.Program.record(sequence, inputs={"x": x}, outputs={"y": y}).main, x, y


def _sets(mgr: kp.Manager, count: int, each: int) -> list[tuple[kp.Tensor, ...]]:
    return [tuple(mgr.zeros(16) for _ in range(each)) for _ in range(count)]


def _written(mgr: kp.Manager) -> tuple[kp.Tensor, np.ndarray]:
    array = np.ones(1024, np.float32)
    tensor = mgr.tensor(array)
    tensor.write(array)  # brings the initial contents
    return tensor, array


def _beside(count: int) -> list[kp.Sequence]:
    """So many sequences of two queues that write one tensor."""
    manager = kp.Manager(family_queue_indices=[0, 0], validation=False, pipeline_cache_dir="")
    operation = kp.OpCopy([manager.zeros(16), manager.zeros(16)])
    return [manager.sequence(i % 2).record(operation).eval() for i in range(count)]


class CountedWork(NamedTuple):
    """One piece of work."""

    title: str
    prepare: Prepare
    most: int


def _prepare(text: str) -> Prepare:
    *before, call = text.rstrip().splitlines()
    last = call.strip().removeprefix("= ") if call.strip().startswith("= ") else f"lambda: {call.strip()}"
    lines = ["def prepare(bench):", "    mgr = bench.manager", *before, f"    return {last}"]
    made: dict[str, Prepare] = {}
    exec("\n".join(lines), globals(), made)
    return made["prepare"]


WORKS = {
    name: CountedWork(title, _prepare(text), int(most))
    for name, title, most, text in re.findall(r"(?m)^([\w-]+): (.+) <= (\w+)\n((?: {4}.*\n)+)", _TABLE)
}
"""The pieces of work by name."""


def prepare(name: str, bench: Bench) -> Work:
    """What does the piece of work of this name once."""
    return WORKS[name].prepare(bench)
