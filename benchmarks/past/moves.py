"""What moved between two commits, beyond noise.

Times of one program differ from run to run: other programs interrupt it, the system places its memory and its
threads elsewhere. So a figure counts as slower only if everything that was measured of it says so:

- what is typical of its blocks rose, and so did its fastest block: a busy machine makes the first rise alone,
  one lucky block changes the second alone;
- it rose beside its baseline, which ran in turns with it (work in C, `memcpy`): a machine that is slower
  today slows both. Figures without one are held against the yardstick, fixed work in Python.

Each must rise by more than the noise: twice the width of both runs' blocks, or what the saved runs of one
commit differ by, and five per cent at least. Times of another kind of machine, driver or Python are not
compared. The command measures again what seems slower, and calls slower only what is so each time.

Counts of instructions are steady: a hundredth and 20 instructions are noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..table import Row
from .kind import MachineKind
from .records import Record

FLOOR = 0.05
"""The least difference of times, as a share, that is more than noise."""
MOST = 0.5
"""Noise is taken for no more than that: what takes half as long again has moved, on any machine."""
COUNT_FLOOR, COUNT_LEAST = 0.01, 20.0
"""Of instruction counts: a share, and so many in any case."""


@dataclass(frozen=True)
class Move:
    """One figure on one driver, before and after."""

    name: str
    driver: str
    before: float
    after: float
    """Seconds, or instructions."""
    factor: float
    """After over before, of the measure that moved least."""
    noise: float
    """A share: 0.05 is five per cent."""

    @property
    def verdict(self) -> str:
        """ "slower", "faster" or "level"."""
        if self.factor > 1 + self.noise:
            return "slower"
        return "faster" if self.factor < 1 / (1 + self.noise) else "level"


@dataclass
class Comparison:
    """All figures of two commits."""

    moves: list[Move] = field(default_factory=list)
    only_before: list[str] = field(default_factory=list)
    only_after: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was not compared and why, and what else differs."""

    def of(self, verdict: str) -> list[Move]:
        """The moves of one verdict, the largest first."""
        return sorted(
            (move for move in self.moves if move.verdict == verdict),
            key=lambda move: -abs(math.log(move.factor)),
        )


def compare(
    before: Sequence[Record], after: Sequence[Record], kinds: tuple[MachineKind, MachineKind] | None = None
) -> Comparison:
    """Compares the records of one commit with those of another, of one part; `kinds` are their machines."""
    made = Comparison()
    old, new = before[-1], after[-1]
    same_kind = kinds is None or kinds[0] == kinds[1]
    if not same_kind and kinds is not None:
        made.notes.append(f"Not the same kind of machine: {kinds[0].text()}; here {kinds[1].text()}")
    for what in ("numpy", "system"):
        was, now = old.machine.get(what, ""), new.machine.get(what, "")
        if was != now:
            made.notes.append(f"{what} was {was}, is {now}")
    was, now = (_minor(record.machine.get("python", "")) for record in (old, new))
    if was != now:
        made.notes.append(f"nothing is compared: Python was {was}, is {now}")
        return made
    if old.counts or new.counts:
        _compare_counts(made, before, after)
    if old.rows or new.rows:
        if same_kind:
            _compare_rows(made, before, after)
        else:
            made.notes.append("times are not compared")
    return made


def _compare_rows(made: Comparison, before: Sequence[Record], after: Sequence[Record]) -> None:
    old, new = _by_figure(before), _by_figure(after)
    pace = _pace(made, before, after)
    for driver in sorted({driver for _, driver in [*old, *new]}):
        texts = [{r.drivers[driver] for r in side if driver in r.drivers} for side in (before, after)]
        if all(texts) and texts[0] != texts[1]:
            was, now = (" or ".join(sorted(each)) for each in texts)
            made.notes.append(f"{driver} is not compared: it was {was}, is {now}")
            old, new = ({key: rows for key, rows in each.items() if key[1] != driver} for each in (old, new))
    made.only_before += [f"{name} on {driver}" for name, driver in old if (name, driver) not in new]
    made.only_after += [f"{name} on {driver}" for name, driver in new if (name, driver) not in old]
    made.moves += [_move(key, old[key], new[key], pace) for key in old if key in new]


def _by_figure(records: Sequence[Record]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for record in records:
        for row in record.rows:
            found.setdefault((row.figure, row.driver), []).append(row)
    return found


def _pace(made: Comparison, before: Sequence[Record], after: Sequence[Record]) -> float:
    """How many times as long the machine takes for fixed work; 1 where that was not measured."""
    old, new = ([r.yardstick for r in side if r.yardstick] for side in (before, after))
    if not old or not new:
        return 1.0
    pace = statistics.median(new) / statistics.median(old)
    if abs(math.log(pace)) > math.log(1.1):
        made.notes.append(
            f"this machine took {pace:.2f} x as long for fixed work as when the record was saved"
        )
    return pace


def _move(key: tuple[str, str], old: list[Row], new: list[Row], pace: float) -> Move:
    was, now = (statistics.median(row.ours for row in rows) for rows in (old, new))
    typical = now / was
    least = min(row.least for row in new) / min(row.least for row in old)
    ratios = [[row.ratio for row in rows if row.ratio is not None] for rows in (old, new)]
    beside = statistics.median(ratios[1]) / statistics.median(ratios[0]) if all(ratios) else typical / pace
    factors = (typical, least, beside)
    # What moved least, and 1 where they disagree on the direction.
    factor = max(min(factors), 1.0) if typical > 1 else min(max(factors), 1.0)
    width = 2 * math.hypot(*(statistics.median(row.spread for row in rows) for rows in (old, new)))
    between = max(_range([row.ours for row in rows]) for rows in (old, new))
    noise = min(max(FLOOR, width, between), MOST)
    return Move(*key, was, now, factor, noise)


def _compare_counts(made: Comparison, before: Sequence[Record], after: Sequence[Record]) -> None:
    def gathered(side: Sequence[Record]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for record in side:
            for name, count in record.counts.items():
                found.setdefault(name, []).append(count)
        return found

    old, new = gathered(before), gathered(after)
    made.only_before += [name for name in old if name not in new]
    made.only_after += [name for name in new if name not in old]
    for name in (name for name in old if name in new):
        # The least: a lazy thing that was made in one run is no part of the work.
        was, now = min(old[name]), min(new[name])
        noise = max(COUNT_FLOOR, COUNT_LEAST / was)
        made.moves.append(Move(name, "", was, now, now / was, noise))


def _range(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
