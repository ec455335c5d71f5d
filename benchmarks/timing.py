"""Takes times on a machine that others use too.

Both sides of a comparison run in turns, in blocks of about a millisecond, in one process: what slows the
machine down slows both. For work on one thread a round, one block of each side, counts only if the system
took the processor away from it at no time meanwhile (it counts such involuntary switches); others are
measured again. Where the machine is so busy that hardly any round is left alone, all count and the sample
says so. A figure is the median over the blocks, a ratio the median over the rounds' ratios. Python's garbage
collector is off while a block runs, as timeit has it.

Work that a driver's threads share with ours is another matter. They switch involuntarily among themselves, so
that all rounds count. And the system places the threads of a device on processors as it happens, where they
then stay: the same small submissions take 30, 60 or 100 us, in C as with us, for as long as that device
lives. Their blocks come from several devices, each made anew for both sides, and figure and ratio are those
of the lower quartiles over all of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from kompute_py._base.collector import collector_off

from .interruptions import interruptions

Side = Callable[[int], float]
"""Does the work n times and returns the seconds for all of them."""


@dataclass(frozen=True)
class Sample:
    """Seconds for one piece of work: one value for each block."""

    values: tuple[float, ...]
    disturbed: bool = False
    """Whether other processes interrupted so much that interrupted blocks had to count."""
    pooled: bool = False
    """Whether the blocks come from several devices of a driver with threads."""

    @property
    def typical(self) -> float:
        """The median; the lower quartile of pooled blocks."""
        if self.pooled and len(self.values) > 1:
            return statistics.quantiles(self.values, n=4, method="inclusive")[0]
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
        middle = statistics.median(self.values)
        return (high - low) / 2 / middle if middle else 0.0


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    blocks: int
    """Blocks of each side."""
    block_seconds: float
    """How long a block takes, where its work is shorter than that."""
    limit: float
    """Seconds after which no further round is begun, once there are three."""

    def scaled(self, factor: float) -> Plan:
        """The same with another number of blocks, for work that takes long or varies much."""
        return dataclasses.replace(self, blocks=max(3, round(self.blocks * factor)))


FULL = Plan(blocks=151, block_seconds=1e-3, limit=12.0)
QUICK = Plan(blocks=5, block_seconds=3e-4, limit=0.5)
# Rounds that may be measured for each that counts, and the share of them that is enough for a median.
_ATTEMPTS = 3
_ENOUGH = 0.1


def side(work: Callable[[], object]) -> Side:
    """A side that calls `work`; the loop itself costs some 10 ns a call and is part of the time."""

    def run(times: int) -> float:
        clock = time.perf_counter
        start = clock()
        for _ in itertools.repeat(None, times):
            work()
        return clock() - start

    return run


def making(make: Callable[[], object]) -> Side:
    """A side that calls `make` and throws what it makes away after the clock stopped."""

    def run(times: int) -> float:
        made: list[object] = []
        clock, keep = time.perf_counter, made.append
        start = clock()
        for _ in itertools.repeat(None, times):
            keep(make())
        return clock() - start

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


def gather(
    plan: Plan, measure_round: Callable[[bool], tuple[list[float], bool]], *, threaded: bool = False
) -> list[Sample]:
    """Samples of rounds that were left alone; of all rounds where too few were, or where the work is
    `threaded`.

    `measure_round(reverse)` gives the value of each side and whether the round was interrupted.
    """
    calm: list[list[float]] = []
    everything: list[list[float]] = []
    end = time.monotonic() + plan.limit
    while len(calm) < plan.blocks and len(everything) < _ATTEMPTS * plan.blocks:
        if time.monotonic() > end and len(everything) >= 3:
            break
        values, interrupted = measure_round(len(everything) % 2 == 1)
        everything.append(values)
        if threaded or not interrupted:
            calm.append(values)
    disturbed = len(calm) < max(3, _ENOUGH * len(everything))
    rounds = everything if disturbed else calm
    return [Sample(tuple(values), disturbed) for values in zip(*rounds, strict=True)]


def alternate(plan: Plan, *sides: Side, times: int | None = None, threaded: bool = False) -> list[Sample]:
    """Blocks of all sides in turns, the order reversed each round; a sample for each side.

    `times` is how often the work is done in a block; by default as often as `plan` gives time for. `threaded`
    says that other threads of this process take part in the work.
    """
    with collector_off():
        counts = [times or repetitions(run, plan.block_seconds) for run in sides]
        for run, count in zip(sides, counts, strict=True):
            run(count)

        def measure_round(reverse: bool) -> tuple[list[float], bool]:
            values = [0.0] * len(sides)
            before = interruptions()
            for i in reversed(range(len(sides))) if reverse else range(len(sides)):
                values[i] = sides[i](counts[i]) / counts[i]
            return values, interruptions() != before

        return gather(plan, measure_round, threaded=threaded)


def pooled(samples: list[Sample]) -> Sample:
    """One sample of the blocks of several devices."""
    values = tuple(value for sample in samples for value in sample.values)
    return Sample(values, any(sample.disturbed for sample in samples), pooled=True)


def ratio(ours: Sample, theirs: Sample) -> Sample:
    """Ours over theirs: block by block, or of what is typical of each where blocks are pooled."""
    if ours.pooled:
        return Sample((ours.typical / theirs.typical,), ours.disturbed, pooled=True)
    return Sample(tuple(a / b for a, b in zip(ours.values, theirs.values, strict=True)), ours.disturbed)
