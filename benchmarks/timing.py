"""Takes times on a machine that others use too.

Both sides of a comparison run in turns, in blocks of a few milliseconds, in one process: what slows the machine down
slows both. A figure is the median over the blocks, a ratio the median over the ratios of neighbouring blocks. Python's
garbage collector is off while a block runs, as timeit has it.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Side = Callable[[int], float]
"""Does the work n times and returns the seconds for all of them."""


@dataclass(frozen=True)
class Sample:
    """Seconds for one piece of work: one value for each block."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def spread(self) -> float:
        """Half of the middle half's width over the median: 0.05 is plus or minus 5 percent."""
        if len(self.values) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / 2 / self.median if self.median else 0.0


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    blocks: int
    """Blocks of each side."""
    block_seconds: float
    """How long a block takes, where its work is shorter than that."""

    def scaled(self, factor: float) -> Plan:
        """The same with another number of blocks, for work that takes long or varies much."""
        return Plan(max(3, round(self.blocks * factor)), self.block_seconds)


FULL = Plan(blocks=101, block_seconds=4e-3)
QUICK = Plan(blocks=5, block_seconds=1e-3)


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection inside."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def side(work: Callable[[], object]) -> Side:
    """A side that calls `work`; the loop itself costs some 10 ns a call and is part of the time."""

    def run(times: int) -> float:
        clock = time.perf_counter
        start = clock()
        for _ in itertools.repeat(None, times):
            work()
        return clock() - start

    return run


def prepared(prepare: Callable[[], object], work: Callable[[], object]) -> Side:
    """A side that calls `work` and throws its result away after the clock stopped; `prepare` runs before it started."""

    def run(times: int) -> float:
        clock = time.perf_counter
        seconds = 0.0
        for _ in range(times):
            prepare()
            start = clock()
            result = work()
            seconds += clock() - start
            del result
        return seconds

    return run


def repetitions(run: Side, seconds: float) -> int:
    """How often the work fits into `seconds`, from trying; at least once."""
    times = 1
    while True:
        # The least of three: one that another process interrupted would make all blocks too short.
        taken = min(run(times) for _ in range(3))
        if taken >= seconds / 4 or times >= 1 << 20:
            return max(1, round(times * seconds / max(taken, 1e-9)))
        times *= 4


def alternate(plan: Plan, *sides: Side, times: int | None = None) -> list[Sample]:
    """Blocks of all sides in turns, the order reversed each round; a sample for each side.

    `times` is how often the work is done in a block; by default as often as `plan` gives time for.
    """
    with collector_off():
        counts = [times or repetitions(run, plan.block_seconds) for run in sides]
        for run, count in zip(sides, counts, strict=True):
            run(count)
        values: list[list[float]] = [[] for _ in sides]
        order = list(range(len(sides)))
        for _ in range(plan.blocks):
            for i in order:
                values[i].append(sides[i](counts[i]) / counts[i])
            order.reverse()
    return [Sample(tuple(each)) for each in values]


def ratio(ours: Sample, theirs: Sample) -> Sample:
    """Ours over theirs, block by block."""
    return Sample(tuple(a / b for a, b in zip(ours.values, theirs.values, strict=True)))
