"""What was measured earlier, and what has moved beyond noise since.

`./dev bench --save` keeps a record in the repository's cache: one run of one part, `rows` (times) or
`instructions` (counts). Several records of one commit are wanted: what differs between them is noise.
`--compare` measures, and tells which figures moved. `./dev bench past` lists the records and compares two.

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

import argparse
import dataclasses
import datetime
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .machine import describe, kind
from .paths import ROOT, cache_directory
from .table import Row, aligned, duration

PARTS = ("rows", "instructions")
KEPT = 60
"""Records of a part that are kept: the newest."""
SLOWER = 3
"""The exit status if something became slower."""
_TRIES = 2
"""Further measurements of what seems slower."""
FLOOR = 0.05
"""The least difference of times, as a share, that is more than noise."""
MOST = 0.5
"""Noise is taken for no more than that: what takes half as long again has moved, on any machine."""
COUNT_FLOOR, COUNT_LEAST = 0.01, 20.0
"""Of instruction counts: a share, and so many in any case."""
# What decides the figures; a change elsewhere, as in the documentation, leaves the commit's figures its own.
_ENGINE = ("kompute_py", "native", "shaders", "benchmarks", "tests/drivers", "CMakeLists.txt")


# -- records -------------------------------------------------------------------------------------------------


class PastError(RuntimeError):
    """There is no such record, or a file is damaged; the message says what there is."""


@dataclass(frozen=True)
class Record:
    """What one run of one part measured."""

    part: str
    """ "rows" or "instructions"."""
    commit: str
    """The commit's hash; empty outside a repository."""
    subject: str
    changed: bool
    """Whether the engine or the benchmarks had changes that were in no commit."""
    date: str
    kind: str
    """The kind of machine (machine.kind)."""
    machine: dict[str, str]
    """Versions of Python, NumPy and the system, as `machine.describe` tells them."""
    drivers: dict[str, str] = field(default_factory=dict)
    """By driver: the device and the driver's version."""
    yardstick: float | None = None
    """Seconds of a fixed piece of work that no commit changes: how fast the machine was at that time."""
    rows: tuple[Row, ...] = ()
    counts: dict[str, float] = field(default_factory=dict)
    """Instructions by piece of work."""

    @staticmethod
    def of_now(
        part: str,
        *,
        drivers: dict[str, str] | None = None,
        yardstick: float | None = None,
        rows: Sequence[Row] = (),
        counts: dict[str, float] | None = None,
    ) -> Record:
        """A record of the commit that is checked out."""
        commit, subject, changed = commit_here()
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        of_machine = kind(), describe(), drivers or {}, yardstick
        return Record(part, commit, subject, changed, date, *of_machine, tuple(rows), counts or {})

    @property
    def name(self) -> str:
        """The commit, and whether more than it was measured."""
        return (self.commit[:10] or "no commit") + (" with changes" if self.changed else "")

    def text(self) -> str:
        """For people: commit, subject and day."""
        return f"{self.name} ({self.subject}), {self.date}" if self.subject else f"{self.name}, {self.date}"


def folder() -> Path:
    """Where records are kept, a file for each."""
    return cache_directory() / "past"


def commit_here() -> tuple[str, str, bool]:
    """The commit that is checked out, its subject, and whether what decides the figures has changes."""
    try:
        commit, subject = _git("log", "-1", "--format=%H%n%s").splitlines()
        return commit, subject, bool(_git("status", "--porcelain", "--", *_ENGINE))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return "", "", False


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def save(record: Record) -> Path:
    """Keeps the record, and drops the oldest of its part beyond `KEPT`. Returns its file."""
    folder().mkdir(parents=True, exist_ok=True)
    same = sorted(folder().glob(f"{record.part}-*.json"))
    for old in same[: max(0, len(same) + 1 - KEPT)]:
        old.unlink(missing_ok=True)
    day = record.date[:19].replace(":", "")
    number = sum(path.name.startswith(f"{record.part}-{day}") for path in same)
    path = folder() / f"{record.part}-{day}-{number:03}-{record.commit[:10]}.json"
    path.write_text(json.dumps(dataclasses.asdict(record)))
    return path


def read(path: Path) -> Record:
    """The record of a file that `save` wrote.

    Raises PastError.
    """
    try:
        content = json.loads(path.read_text())
        return Record(**{**content, "rows": tuple(Row(**row) for row in content["rows"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PastError(f"{path} holds no record of benchmarks: {type(error).__name__}: {error}") from None


def kept(part: str) -> list[Record]:
    """The records of the part on this kind of machine, the oldest first."""
    records = [read(path) for path in sorted(folder().glob(f"{part}-*.json"))]
    return [record for record in records if record.kind == kind()]


def find(part: str, asked: str, *, before: str = "") -> list[Record]:
    """The records of one commit to compare with: all of them, since they differ by noise alone.

    `asked` is a file that `--save` wrote, or a commit as git names it; empty means the newest commit saved on
    this kind of machine, other than `before` where there is one.
    Raises PastError.
    """
    if asked and Path(asked).is_file():
        record = read(Path(asked))
        if record.part != part:
            raise PastError(f"{asked} is no record of {part}")
        return [record]
    records = kept(part)
    if not records:
        raise PastError(
            f"there are no records of {part} for this kind of machine: {kind()}. Save one of the commit "
            f"that you want to compare with: ./dev bench {part} --save"
        )
    if not asked:
        others = [record for record in records if record.commit != before or record.changed]
        return _fitting(records, (others or records)[-1])
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}").strip()
    except (OSError, subprocess.CalledProcessError):
        commit = asked  # git knows nothing of it
    of_commit = [record for record in records if record.commit.startswith(commit)]
    if not of_commit:
        have = ", ".join(dict.fromkeys(record.name for record in reversed(records)))
        raise PastError(f"there are no records of {part} of {asked!r}; there are: {have}")
    # Those of the commit itself, where there are some.
    return _fitting(of_commit, min(reversed(of_commit), key=lambda record: record.changed))


def _fitting(records: Sequence[Record], wanted: Record) -> list[Record]:
    """Those of the same commit as `wanted`; of a tree with changes only itself: the changes may differ."""
    if wanted.changed or not wanted.commit:
        return [wanted]
    return [each for each in records if each.commit == wanted.commit and not each.changed]


# -- what moved ----------------------------------------------------------------------------------------------


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
        found = [move for move in self.moves if move.verdict == verdict]
        return sorted(found, key=lambda move: -abs(math.log(move.factor)))


def compare(before: Sequence[Record], after: Sequence[Record]) -> Comparison:
    """Compares the records of one commit with those of another, of one part."""
    made = Comparison()
    old, new = before[-1], after[-1]
    if old.kind != new.kind:
        made.notes.append(f"Not the same kind of machine: {old.kind}; here {new.kind}")
    for what in ("numpy", "system"):
        was, now = old.machine.get(what, ""), new.machine.get(what, "")
        if was != now:
            made.notes.append(f"{what} was {was}, is {now}")
    was, now = (".".join(record.machine.get("python", "").split(".")[:2]) for record in (old, new))
    if was != now:
        made.notes.append(f"nothing is compared: Python was {was}, is {now}")
        return made
    if old.counts or new.counts:
        _compare_counts(made, before, after)
    if old.rows or new.rows:
        if old.kind == new.kind:
            _compare_rows(made, before, after)
        else:
            made.notes.append("times are not compared")
    return made


def _compare_rows(made: Comparison, before: Sequence[Record], after: Sequence[Record]) -> None:
    def gathered(side: Sequence[Record]) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = {}
        for row in (row for record in side for row in record.rows):
            found.setdefault((row.figure, row.driver), []).append(row)
        return found

    old, new = gathered(before), gathered(after)
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
    times = [[row.ours for row in rows] for rows in (old, new)]
    between = max((max(each) - min(each)) / statistics.median(each) for each in times)
    return Move(*key, was, now, factor, noise=min(max(FLOOR, width, between), MOST))


def _compare_counts(made: Comparison, before: Sequence[Record], after: Sequence[Record]) -> None:
    # The least: a lazy thing that was made in one run is no part of the work.
    old, new = (
        {name: min(r.counts[name] for r in side if name in r.counts) for r in side for name in r.counts}
        for side in (before, after)
    )
    made.only_before += [name for name in old if name not in new]
    made.only_after += [name for name in new if name not in old]
    for name in (name for name in old if name in new):
        was, now = old[name], new[name]
        made.moves.append(Move(name, "", was, now, now / was, max(COUNT_FLOOR, COUNT_LEAST / was)))


# -- commands ------------------------------------------------------------------------------------------------


def add_options(parser: argparse.ArgumentParser) -> None:
    """--save and --compare."""
    parser.add_argument("--save", action="store_true", help="keep the figures, in .cache/benchmarks/past")
    parser.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="FILE|COMMIT",
        help="tell what moved beyond noise since the records of FILE or COMMIT; by default since the commit "
        f"saved last. The exit status is {SLOWER} if something is slower",
    )


def compare_and_save(
    options: argparse.Namespace,
    record: Record,
    titles: dict[str, str],
    again: Callable[[list[Move]], list[Row]] | None = None,
) -> int:
    """Does what --compare and --save ask for, and gives the exit status: 0, or `SLOWER`.

    `again` measures what seems slower once more: other programs may have been busy just then. Only what is
    slower each time is called so. Records keep what was measured first.
    Raises PastError if there is nothing to compare with.
    """
    status = 0
    if options.compare is not None:
        records = find(record.part, options.compare, before="" if record.changed else record.commit)
        made, judged = compare(records, [record]), record
        for _ in range(_TRIES if again else 0):
            if again and (slower := made.of("slower")):
                judged = _with_the_fastest(judged, again(slower))
                made = compare(records, [judged])
        if options.only or getattr(options, "driver", None):
            made.only_before.clear()  # nobody asked for them
        print("\n" + text(made, records, [judged], titles))
        status = SLOWER if made.of("slower") else 0
    if options.save:
        print(f"saved in {save(record)}", file=sys.stderr)
    return status


def _with_the_fastest(record: Record, rows: list[Row]) -> Record:
    """The record with those of these rows that took less time than its own."""
    faster = {(row.figure, row.driver): row for row in rows}
    best = [
        min(row, faster.get((row.figure, row.driver), row), key=lambda each: each.ours) for row in record.rows
    ]
    return dataclasses.replace(record, rows=tuple(best))


def text(made: Comparison, before: list[Record], after: list[Record], titles: dict[str, str]) -> str:
    """What moved, a line each; how many figures did not; and what was not compared."""
    runs = f", {len(before)} runs" if len(before) > 1 else ""
    lines = [f"Since {before[-1].text()}{runs}, now {after[-1].name}:"]
    show = duration if before[-1].part == "rows" else "{:,.0f}".format
    cells = [("", "figure", "driver", "before", "now", "change", "noise")]
    for move in (*made.of("slower"), *made.of("faster")):
        times = show(move.before), show(move.after)
        change = f"{(move.factor - 1) * 100:+.1f}%", f"{move.noise * 100:.0f}%"
        cells.append((move.verdict, titles.get(move.name, move.name), move.driver, *times, *change))
    if len(cells) > 1:
        lines.append(aligned(cells, False, range(3, 7)))
    level = len(made.of("level"))
    lines.append(f"{len(made.of('slower'))} slower, {len(made.of('faster'))} faster, {level} level")
    for what, names in (("New", made.only_after), ("No longer measured", made.only_before)):
        if names:
            lines.append(f"{what}: {', '.join(names)}")
    lines += [f"Note: {note}" for note in made.notes]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """`python -m benchmarks past`: lists the records of this kind of machine, or compares two commits'."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks past", description=main.__doc__)
    parser.add_argument(
        "records", nargs="*", metavar="FILE|COMMIT", help="two: compare these; none: list all"
    )
    parser.add_argument("--part", choices=PARTS, help="only these")
    options = parser.parse_args(arguments)
    if len(options.records) not in (0, 2):
        parser.error("give two records to compare, or none")
    from .callgrind.works import WORKS
    from .rows import REGISTRY

    titles = {each.name: each.title for each in REGISTRY.figures.values()}
    titles_of = {"rows": titles, "instructions": {name: work.title for name, work in WORKS.items()}}
    status, compared, errors = 0, False, []
    for part in (options.part,) if options.part else PARTS:
        if not options.records:
            print(f"{part}, {kind()}:")
            for record in kept(part):
                print(f"  {record.text()}, {len(record.rows) or len(record.counts)} figures")
            continue
        try:
            before, after = (find(part, asked) for asked in options.records)
        except PastError as error:
            errors.append(str(error))
            continue
        compared = True
        made = compare(before, after)
        print(f"{part}. {text(made, before, after, titles_of[part])}\n")
        status = SLOWER if made.of("slower") else status
    if options.records and not compared:
        print("error: " + "\n".join(errors), file=sys.stderr)
        return 2
    return status
