"""Calls: recordings, kernels, custom operations, awaits, small frames; between Python and vkQueueSubmit."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable

import numpy as np

import kompute_py as kp

from .bench import SHADER, Bench
from .calls import WORKS, Prepare, Work, prepare, scale
from .figures import DRIVERS, TIMES, figure
from .timing import Side, making, side

_NULL = ("null",)
_MANY = 1000


@figure(
    "eval", "eval of a recorded one-dispatch sequence", "us", "null", 0.8, 0.3, devices=True,
    baseline="C submit and wait"
)  # fmt: skip
def evaluate(on: Bench) -> tuple[Side, Side]:
    return side(prepare("eval", on)), on.floor.eval


# 3 us beyond what is aimed at for eval
@figure(
    "kernel", "call a kernel on prepared tensors, k(a, b, out)", "us", "null", 3.3, 2, devices=True,
    baseline="eval of the same dispatch"
)  # fmt: skip
def kernel(on: Bench) -> tuple[Side, Side]:
    call, arguments = on.manager.kernel(on.spirv), on.tensors
    call(*arguments)  # what was never on the device is uploaded once
    recorded = on.manager.sequence().record(call.bind(*arguments))
    return side(lambda: call(*arguments)), side(recorded.eval)


@figure("record", "record one OpAlgoDispatch (object and record)", "us", "null", 1.2, 0.5, times=1000)
def record(bench: Bench) -> Side:
    sequence, algorithm = bench.manager.sequence(), bench.algorithm
    record = side(lambda: sequence.record(kp.OpAlgoDispatch(algorithm)))

    def run(times: int) -> float:
        sequence.clear()
        return record(times)

    return run


@figure(
    "clear-record-eval", "clear, record 3 operations, eval", "us", "null", 12, 5, devices=True,
    baseline="C record, submit and wait"
)  # fmt: skip
def clear_record_eval(on: Bench) -> tuple[Side, Side]:
    return side(prepare("clear-record-eval", on)), on.floor.rerecorded_roundtrip


@figure(
    "roundtrip", "upload 2 x 4 KiB, dispatch, download", TIMES, "lavapipe", 1.10, 1.02, devices=True,
    baseline="the same commands in C"
)  # fmt: skip
def roundtrip(on: Bench) -> tuple[Side, Side]:
    left, right, product = on.tensors
    sequence = on.manager.sequence().record(kp.OpSyncDevice([left, right]))
    sequence.record(kp.OpAlgoDispatch(on.algorithm)).record(kp.OpSyncLocal([product]))
    on.floor.host(0)[:], on.floor.host(1)[:] = left.data(), right.data()
    sequence.eval()
    on.floor.roundtrip(1)
    if on.driver != "null":  # which runs no shaders
        expected = left.data() * right.data()
        for who, result in (("kompute_py", product.data()), ("the C floor", on.floor.host(2))):
            if not np.array_equal(result, expected):
                raise AssertionError(f"{who} computed a wrong product on {on.driver}")
    return side(sequence.eval), on.floor.roundtrip


# ------------------------------------------------------------------------------------- kernels and operations


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


def _timed(prepare: Prepare) -> Callable[[Bench], Side]:
    def make(bench: Bench) -> Side:
        work = prepare(bench)
        work()
        return side(work)

    return make


for _name, _title, _must, _aim, _drivers, _work, _times in (
    ("kernel-new-push", "call a kernel, another push constant each time", 5, 2.5, DRIVERS,
     "kernel-new-values", None),
    ("kernel-arrays", "call a kernel with three NumPy arrays of 256 B", 8, 3, DRIVERS,
     "kernel-arrays", None),
    ("kernel-sets-1000", "call a kernel, 1,000 sets of tensors in turn", 8, 3, _NULL,
     "kernel-sets", 1_000),
    ("kernel-new-shape", "call a kernel, arrays of a new shape each time", 30, 12, _NULL, _new_shapes, 200),
    ("kernel-bind", "bind a kernel, k.bind(a, b, out)", 12, 6, DRIVERS, "kernel-bind", None),
    ("kernel-submit", "submit a kernel and wait, k.submit(a, b, out).wait()", 15, 8, DRIVERS,
     "kernel-submit", None),
    ("operation-call", "call a custom operation on prepared memory", 3, 1.5, DRIVERS, "operation", None),
    ("operation-number", "call a custom operation, another number each time", 15, 8, DRIVERS,
     "operation-number", None),
    ("operation-result", "call a custom operation that makes its result", 5, 3, DRIVERS,
     "operation-result", None),
):  # fmt: skip
    figure(
        _name, _title, "us", "null", _must, _aim, drivers=_drivers, times=_times, submits=True
    )(_timed(WORKS[_work].prepare if isinstance(_work, str) else _work))  # fmt: skip


def _generated(bench: Bench, **named: int) -> tuple[str, np.ndarray]:
    """The shader that the operation has for the first tensor, and the words of its push constants."""
    x = bench.tensors[0]
    return scale.sources(x, **named)[0], np.array([x.size(), 0], np.uint32)


@figure(
    "operation-recorded", "eval of a recorded custom operation", TIMES, "null", 1.05, 1.0, devices=True,
    baseline="the same shader in an OpAlgoDispatch"
)  # fmt: skip
def operation_recorded(on: Bench) -> tuple[Side, Side]:
    text, push = _generated(on)
    algorithm = on.manager.algorithm(on.tensors[:2], kp.compile(text), (16, 1, 1))
    theirs = on.manager.sequence().record(kp.OpAlgoDispatch(algorithm, push.tobytes()))
    return side(prepare("operation-recorded", on)), side(theirs.eval)


@figure(
    "operation-new", "first call of a specialization of a custom operation, nothing in the caches", TIMES,
    "null", 1.2, 1.1, baseline="compile the same shader, make the algorithm, record, eval", times=10,
    submits=True
)  # fmt: skip
def operation_new(bench: Bench) -> tuple[Side, Side]:
    mgr, (x, y) = bench.manager, bench.tensors[:2]
    # Other numbers than in earlier runs, whose modules may be on disk.
    numbers = itertools.count(int.from_bytes(np.random.default_rng().bytes(3), "little") * 64)
    text, push = _generated(bench, number=77777)

    def theirs() -> None:
        spirv = kp.compile(text.replace("77777.0", f"{next(numbers)}.0"))
        algorithm = mgr.algorithm([x, y], spirv, (16, 1, 1), push_consts=push.tobytes())
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()

    theirs()
    scale.cache_clear()
    return side(lambda: scale(x, number=next(numbers), out=y)), side(theirs)


# --------------------------------------------------------------------------------------------- in event loops


def _in_loop(on: Bench, run: Callable[[int], Awaitable[float]]) -> Side:
    """A side that does something so often in an event loop."""
    loop = asyncio.new_event_loop()
    on.ending.callback(loop.close)
    return lambda times: loop.run_until_complete(asyncio.ensure_future(run(times), loop=loop))


@figure(
    "await", "await seq.eval_async(), one by one", TIMES, "lavapipe", 1.6, 1.2, devices=True, baseline="eval"
)
def awaits(on: Bench) -> tuple[Side, Side]:
    sequence = on.manager.sequence().record(kp.OpAlgoDispatch(on.algorithm))

    async def one_by_one(times: int) -> float:
        clock, submit = time.perf_counter, sequence.eval_async
        start = clock()
        for _ in itertools.repeat(None, times):
            await submit()
        return clock() - start

    return _in_loop(on, one_by_one), side(sequence.eval)


# SwiftShader takes seconds for each block
@figure(
    "gather", "asyncio.gather of 1,000 awaits", TIMES, "lavapipe", 1.5, 1.2, drivers=("lavapipe", "null"),
    baseline="1,000 x eval_async, then 1,000 x eval_await", devices=True, scale=0.03, times=1
)  # fmt: skip
def gather_of_many(on: Bench) -> tuple[Side, Side]:
    sequences = [on.manager.sequence().record(kp.OpAlgoDispatch(on.algorithm)) for _ in range(_MANY)]

    async def one(sequence: kp.Sequence) -> None:
        await sequence.eval_async()

    async def together(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            await asyncio.gather(*map(one, sequences))
        return time.perf_counter() - start

    def plainly() -> None:
        for each in sequences:
            each.eval_async()
        for each in sequences:
            each.eval_await()

    return _in_loop(on, together), side(plainly)


@figure(
    "frame", "stream a frame of 256 B, three in flight", "us", "null", 4, 3, devices=True, times=200,
    baseline="data()[:] = frame; eval"
)  # fmt: skip
def frame(on: Bench) -> tuple[Side, Side]:
    source, target = on.manager.zeros(64), on.manager.zeros(64)
    algorithm = on.manager.algorithm([source, source, target], on.spirv, (1, 1, 1))
    sequence = on.manager.sequence().record(kp.OpSyncDevice([source]))
    sequence.record(kp.OpAlgoDispatch(algorithm)).record(kp.OpSyncLocal([target]))
    item = np.full(64, 3, np.float32)

    def streamed(times: int) -> float:
        start = time.perf_counter()
        for _ in sequence.stream(itertools.repeat(item, times), inputs=source, outputs=target):
            pass
        return time.perf_counter() - start

    def by_hand() -> None:
        source.data()[:] = item
        sequence.eval()
        target.data()

    return streamed, side(by_hand)


@figure("algorithm", "algorithm from SPIR-V that this Manager has seen", "us", "lavapipe", 60, 15, times=100)
def seen_algorithm(bench: Bench) -> Side:
    make, tensors, groups = bench.manager.algorithm, bench.tensors, (bench.GROUPS, 1, 1)
    bench.temporary(make(tensors, bench.spirv, groups))
    # A copy, so that equal bytes are found, not the same object.
    spirv = bytes(bytearray(bench.spirv))
    return making(lambda: make(tensors, spirv, groups))
