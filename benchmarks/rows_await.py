"""Awaits in an event loop, streams of small frames, and the first use in a process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import DRIVERS, TIMES, Measured, figure
from .rows_start import fresh
from .timing import Side, gather, side

_MANY = 1000
_FRAMES = 200


@contextlib.contextmanager
def _loop() -> Iterator[Callable[[Callable[[int], Awaitable[float]]], Side]]:
    """Makes sides of functions that do something so often in an event loop, and return the seconds."""
    loop = asyncio.new_event_loop()

    def in_loop(run: Callable[[int], Awaitable[float]]) -> Side:
        return lambda times: loop.run_until_complete(asyncio.ensure_future(run(times), loop=loop))

    try:
        yield in_loop
    finally:
        loop.close()


@figure(
    "await", "await seq.eval_async(), one by one", TIMES, "lavapipe", 1.6, 1.2, drivers=DRIVERS,
    baseline="eval"
)  # fmt: skip
def awaits(bench: Bench) -> Measured:
    with _loop() as in_loop:

        def sides(on: Bench) -> tuple[Side, Side]:
            sequence = on.manager.sequence().record(kp.OpAlgoDispatch(on.algorithm))

            async def one_by_one(times: int) -> float:
                clock, submit = time.perf_counter, sequence.eval_async
                start = clock()
                for _ in itertools.repeat(None, times):
                    await submit()
                return clock() - start

            return in_loop(one_by_one), side(sequence.eval)

        return bench.compare_submissions(sides)


# SwiftShader takes seconds for each block
@figure(
    "gather", "asyncio.gather of 1,000 awaits", TIMES, "lavapipe", 1.5, 1.2, drivers=("lavapipe", "null"),
    baseline="1,000 x eval_async, then 1,000 x eval_await"
)  # fmt: skip
def gather_of_many(bench: Bench) -> Measured:
    with _loop() as in_loop:

        def sides(on: Bench) -> tuple[Side, Side]:
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

            return in_loop(together), side(plainly)

        return bench.compare_submissions(sides, scale=0.03, times=1)


@figure(
    "frame", "stream a frame of 256 B, three in flight", "us", "null", 4, 3, drivers=DRIVERS,
    baseline="data()[:] = frame; eval"
)  # fmt: skip
def frame(bench: Bench) -> Measured:
    def sides(on: Bench) -> tuple[Side, Side]:
        source, target = on.manager.zeros(64), on.manager.zeros(64)
        algorithm = on.manager.algorithm([source, source, target], on.spirv, (1, 1, 1))
        sequence = (
            on.manager.sequence()
            .record(kp.OpSyncDevice([source]))
            .record(kp.OpAlgoDispatch(algorithm))
            .record(kp.OpSyncLocal([target]))
        )
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

    return bench.compare_submissions(sides, times=_FRAMES)


@figure(
    "first-use", "import after NumPy, Manager, kernel compiled before, one call", "ms", "lavapipe", 120, 80,
    drivers=DRIVERS
)  # fmt: skip
def first_use(bench: Bench) -> Measured:
    fresh("first")  # writes bytecode, compiles, warms the caches

    def measure_round(_: bool) -> tuple[list[float], bool]:
        seconds, interrupted = fresh("first")
        return [seconds], interrupted and not bench.threaded

    return Measured(*gather(bench.plan.scaled(0.15), measure_round, threaded=bench.threaded))
