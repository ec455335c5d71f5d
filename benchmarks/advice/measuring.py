"""Processor time of several ways to do the same thing, in turns.

The system places the threads of a driver's device on processors as it happens, where they stay: the same
small submissions then take twice as long, or five times, for as long as that device lives. So each table is
measured several times, on devices that are made anew, and the least counts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

from kompute_py._base.collector import collector_off

from ..table import aligned, duration

Way = Callable[[], object]
_BLOCK = 2e-3  # seconds; shorter work is repeated
_ROUNDS, _QUICK_ROUNDS = 12, 2
_LIMIT = 2.0  # seconds for all ways of one table on one device
_DEVICES, _QUICK_DEVICES = 4, 1


@dataclass(frozen=True)
class Table:
    """What the page shows."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self, as_markdown: bool = False) -> str:
        """Aligned, for a terminal or for a page."""
        return aligned([self.header, *self.rows], as_markdown)


class Measuring:
    """Measures; `quick` only shows that all works."""

    def __init__(self, quick: bool = False) -> None:
        self._rounds = _QUICK_ROUNDS if quick else _ROUNDS
        self._devices = _QUICK_DEVICES if quick else _DEVICES
        self._earlier: list[dict[str, float]] = []
        self._later: list[dict[str, float]] = []

    def repeated(self, measure: Callable[[Measuring], Table]) -> Table:
        """The table of `measure`, which makes its own Managers, from several of its runs."""
        self._earlier = []
        for _ in range(self._devices):
            self._later = []
            table = measure(self)
            gc.collect()  # Managers end here
            self._earlier = self._later
        return table

    def least(self, ways: dict[str, Way]) -> dict[str, float]:
        """By way: the least seconds of the process's processor time for one call, all threads, over rounds in
        which the ways take turns, here and in the runs before.
        """
        with collector_off():
            counts = {name: _repetitions(way) for name, way in ways.items()}
            best = dict.fromkeys(ways, float("inf"))
            end = time.monotonic() + _LIMIT
            for number in range(self._rounds):
                if number > 2 and time.monotonic() > end:
                    break
                for name in reversed(ways) if number % 2 else ways:
                    best[name] = min(best[name], _used(ways[name], counts[name]))
        if self._earlier:
            before = self._earlier[len(self._later)]
            best = {name: min(seconds, before[name]) for name, seconds in best.items()}
        self._later.append(best)
        return best

    def table(self, first: str, ways: dict[str, Way], what: str = "processor time") -> Table:
        """A row for each way."""
        best = self.least(ways)
        return Table((first, what), tuple((name, duration(best[name])) for name in ways))


def _used(way: Way, times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        way()
    return (time.process_time() - start) / times


def _repetitions(way: Way) -> int:
    way()  # pipelines are built
    return max(1, min(500, round(_BLOCK / max(_used(way, 1), 1e-6))))
