"""Calls of the engine that are timed (`rows`) and whose instructions are counted (`instructions`).

Each function makes what a call needs and gives a function to call many times.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import numpy as np

import kompute_py as kp

from .bench import SHADER, Bench
from .figures import Measured
from .timing import side

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


def nothing(bench: Bench) -> Work:
    return lambda: None


def floor(bench: Bench) -> Work:
    floor = bench.floor
    return lambda: floor.eval(1)


def evaluate(bench: Bench) -> Work:
    return bench.manager.sequence().record(kp.OpAlgoDispatch(bench.algorithm)).eval


def record(bench: Bench) -> Work:
    sequence, algorithm = bench.manager.sequence(), bench.algorithm
    return lambda: sequence.record(kp.OpAlgoDispatch(algorithm))


def clear_record_eval(bench: Bench) -> Work:
    sequence, algorithm = bench.manager.sequence(), bench.algorithm
    inputs, outputs = bench.tensors[:2], bench.tensors[2:]

    def work() -> None:
        sequence.clear()
        sequence.record(kp.OpSyncDevice(inputs))
        sequence.record(kp.OpAlgoDispatch(algorithm))
        sequence.record(kp.OpSyncLocal(outputs))
        sequence.eval()

    return work


def tensor(bench: Bench) -> Work:
    data, make = np.ones(256, np.float32), bench.manager.tensor
    return lambda: make(data)


def algorithm(bench: Bench) -> Work:
    make, tensors, spirv, groups = bench.manager.algorithm, bench.tensors, bench.spirv, (bench.GROUPS, 1, 1)
    return lambda: make(tensors, spirv, groups)


def algorithm_of_constants(bench: Bench) -> Work:
    make, tensors, spirv = bench.manager.algorithm, bench.tensors[:2], kp.compile(SCALE)
    return lambda: make(tensors, spirv, (1, 1, 1), [], [2.0, 1.0, 4])


def dispatch(bench: Bench) -> Work:
    algorithm = bench.manager.algorithm(bench.tensors[:2], kp.compile(SCALE), (1, 1, 1), [], [2.0, 1.0, 4])
    return lambda: kp.OpAlgoDispatch(algorithm, [0.5, 1.0, 4])


def kernel(bench: Bench) -> Work:
    kernel, (x, y) = bench.manager.kernel(SCALE), bench.tensors[:2]
    return lambda: kernel(x, y, factor=2.0, offset=1.0, count=4)


def program_kernel(bench: Bench) -> Work:
    entry, (x, y) = kp.Program.record(bench.manager.kernel(SCALE)).main, bench.tensors[:2]
    return lambda: entry(x, y, factor=2.0, offset=1.0, count=4)


def program_recording(bench: Bench) -> Work:
    (x, y), kernel = bench.tensors[:2], bench.manager.kernel(SCALE)
    sequence = bench.manager.sequence().record(kernel.bind(x, y, factor=2.0, offset=1.0, count=4))
    entry = kp.Program.record(sequence, inputs={"x": x}, outputs={"y": y}).main
    return lambda: entry(x, out=y)


def kernel_of_new_values(bench: Bench) -> Work:
    kernel, (x, y), numbers = bench.manager.kernel(SCALE), bench.tensors[:2], itertools.count(1)
    return lambda: kernel(x, y, factor=2.0, offset=1.0, count=next(numbers))


def zeros(bench: Bench, n: int = 256) -> Work:
    make = bench.manager.zeros
    return lambda: make(n)


def full(bench: Bench, n: int = 256) -> Work:
    make = bench.manager.full
    return lambda: make(n, 1.0)


def op_fill(bench: Bench) -> Work:
    tensors = bench.tensors[:1]
    return lambda: kp.OpFill(tensors, 1.0)


def fill(bench: Bench, n: int = 1024) -> Work:
    tensor = bench.manager.empty(n)
    return lambda: tensor.fill(1.0)


def awaited(bench: Bench) -> Work:
    submit = bench.manager.sequence().record(kp.OpAlgoDispatch(bench.algorithm)).eval_async

    async def one() -> None:
        await submit()

    def work() -> None:
        # The null driver's work is done at once, so that no event loop is needed.
        with contextlib.suppress(StopIteration):
            one().send(None)

    return work


def kernel_of_arrays(bench: Bench) -> Work:
    kernel, arrays = bench.manager.kernel(SHADER), [np.ones(64, np.float32) for _ in range(3)]
    return lambda: kernel(*arrays)


def kernel_of_new_shapes(bench: Bench) -> Work:
    kernel, arrays = bench.manager.kernel(SHADER), [np.ones(1 << 12, np.float32) for _ in range(3)]
    lengths = itertools.count(64)

    def work() -> None:
        length = next(lengths)
        kernel(*[array[:length] for array in arrays])

    return work


def frame(bench: Bench) -> Work:
    source, target = bench.manager.zeros(64), bench.manager.zeros(64)
    algorithm = bench.manager.algorithm([source, source, target], bench.spirv, (1, 1, 1))
    sequence = bench.manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    items = itertools.repeat(np.ones(64, np.float32))
    return iter(sequence.stream(items, inputs=source, outputs=target)).__next__


def sync_device(bench: Bench, n: int = 100) -> Work:
    make = bench.manager.zeros
    tensors = [make(16) for _ in range(n)]
    return lambda: kp.OpSyncDevice(tensors)


def eval_beside(bench: Bench, n: int = 10) -> Work:
    """one of `n` sequences of two queues that write one tensor."""
    manager = kp.Manager(family_queue_indices=[0, 0], validation=False, pipeline_cache_dir="")
    operation = kp.OpCopy([manager.zeros(16), manager.zeros(16)])
    sequences = [manager.sequence(i % 2).record(operation) for i in range(n)]
    for sequence in sequences:
        sequence.eval()
    # The function keeps all of them.
    return lambda: sequences[0].eval()


def _written(bench: Bench, n: int) -> tuple[kp.Tensor, np.ndarray]:
    array = np.ones(n, np.float32)
    tensor = bench.manager.tensor(array)
    tensor.write(array)  # brings the initial contents
    return tensor, array


def write(bench: Bench, n: int = 1024) -> Work:
    tensor, array = _written(bench, n)
    return lambda: tensor.write(array)


def view(bench: Bench) -> Work:
    tensor = bench.tensors[0]
    return lambda: tensor[8:16]


def asarray(bench: Bench, n: int = 1024) -> Work:
    tensor, _ = _written(bench, n)
    return lambda: np.asarray(tensor)


def kernel_of_results(bench: Bench) -> Work:
    """The output is left out."""
    kernel, tensors = bench.manager.kernel(SHADER), bench.tensors[:2]
    return lambda: kernel(*tensors)


def kernel_of_uses(bench: Bench) -> Work:
    """With a tensor that the shader reaches by its address."""
    kernel, tensors, uses = bench.manager.kernel(SHADER), bench.tensors, [bench.manager.zeros(16)]
    return lambda: kernel(*tensors, uses=uses)


def kernel_of_sets(bench: Bench, n: int = 1000) -> Work:
    """So many sets of tensors in turn."""
    kernel = bench.manager.kernel(SHADER)
    sets = [[bench.manager.zeros(16) for _ in range(3)] for _ in range(n)]
    for tensors in sets:
        kernel(*tensors)
    turn = itertools.cycle(sets)
    return lambda: kernel(*next(turn))


def kernel_bind(bench: Bench) -> Work:
    kernel, tensors = bench.manager.kernel(SHADER), bench.tensors
    return lambda: kernel.bind(*tensors)


def kernel_submit(bench: Bench) -> Work:
    kernel, tensors = bench.manager.kernel(SHADER), bench.tensors
    return lambda: kernel.submit(*tensors).wait()


def operation(bench: Bench) -> Work:
    x, y = bench.tensors[:2]
    return lambda: scale(x, out=y)


def operation_of_new_numbers(bench: Bench) -> Work:
    (x, y), numbers = bench.tensors[:2], itertools.count(1)
    return lambda: scale(x, next(numbers) / 7, out=y)


def operation_of_results(bench: Bench) -> Work:
    x = bench.tensors[0]
    return lambda: scale(x)


def operation_of_sets(bench: Bench) -> Work:
    turn = itertools.cycle([tuple(bench.manager.zeros(16) for _ in range(2)) for _ in range(100)])

    def work() -> None:
        x, y = next(turn)
        scale(x, out=y)

    return work


def operation_submit(bench: Bench) -> Work:
    x, y = bench.tensors[:2]
    return lambda: scale.submit(x, out=y)


def operation_recorded(bench: Bench) -> Work:
    x, y = bench.tensors[:2]
    return bench.manager.sequence().record(scale.op(x, out=y)).eval


def operation_made(bench: Bench) -> Work:
    x, y = bench.tensors[:2]
    return lambda: scale.op(x, out=y)


def timed(
    prepare: Prepare, theirs: Work | None = None, times: int | None = None
) -> Callable[[Bench], Measured]:
    """Measures a call beside `theirs`, on a driver to which it may submit."""

    def measure(bench: Bench) -> Measured:
        work = prepare(bench)
        work()
        baseline = side(theirs) if theirs else None
        return bench.compare(side(work), baseline, times=times, submits=True)

    return measure
