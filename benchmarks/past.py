"""Counts of instructions of earlier commits, and what has moved since.

`./dev bench instructions --save` keeps a record in the repository's cache; `--compare` tells what takes more
or fewer instructions than in the record of a commit. Counts are steady, on other machines, too: a hundredth
and 20 instructions are noise. Of several records of one commit the least count is taken: a lazy thing that
was made in one run is no part of the work. Counts of another Python are not compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .machine import describe
from .parts import Stopped
from .paths import ROOT, cache_directory
from .table import aligned

KEPT = 60
"""Records that are kept: the newest."""
SLOWER = 3
"""The exit status if something takes more."""
SHARE, LEAST = 0.01, 20.0
"""What is noise: a share, and so many in any case."""
# What decides the counts; a change elsewhere, as in the documentation, leaves the commit's counts its own.
_ENGINE = ("kompute_py", "native", "shaders", "benchmarks", "tests/drivers", "CMakeLists.txt")


class PastError(Stopped):
    """There is no such record, or a file is damaged; the message says what there is."""

    def __init__(self, text: str) -> None:
        super().__init__(text, 2)


@dataclass(frozen=True)
class Record:
    """What one run counted."""

    commit: str
    """The commit's hash; empty outside a repository."""
    subject: str
    changed: bool
    """Whether the engine or the benchmarks had changes that were in no commit."""
    date: str
    python: str
    numpy: str
    counts: dict[str, float]
    """Instructions by piece of work."""

    @staticmethod
    def of_now(counts: dict[str, float]) -> Record:
        """A record of the commit that is checked out."""
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
        about = describe()
        return Record(*commit_here(), date, about["python"], about["numpy"], counts)

    @property
    def name(self) -> str:
        """The commit, and whether more than it was counted."""
        return (self.commit[:10] or "no commit") + (" with changes" if self.changed else "")


def folder() -> Path:
    """Where records are kept, a file for each."""
    return cache_directory() / "past"


def commit_here() -> tuple[str, str, bool]:
    """The commit that is checked out, its subject, and whether what decides the counts has changes."""
    try:
        commit, subject = _git("log", "-1", "--format=%H%n%s").splitlines()
        return commit, subject, bool(_git("status", "--porcelain", "--", *_ENGINE))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return "", "", False


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def save(record: Record) -> Path:
    """Keeps the record, and drops the oldest beyond `KEPT`. Returns its file."""
    folder().mkdir(parents=True, exist_ok=True)
    for old in sorted(folder().glob("counts-*.json"))[: 1 - KEPT]:
        old.unlink(missing_ok=True)
    path = folder() / f"counts-{record.date[:26].replace(':', '')}-{record.commit[:10]}.json"
    path.write_text(json.dumps(dataclasses.asdict(record)))
    return path


def read(path: Path) -> Record:
    """The record of a file that `save` wrote.

    Raises PastError.
    """
    try:
        return Record(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise PastError(f"{path} holds no record of benchmarks: {type(error).__name__}: {error}") from None


def find(asked: str, *, before: str = "") -> list[Record]:
    """The records of one commit to compare with.

    `asked` is a file that `--save` wrote, or a commit as git names it; empty means the newest commit saved,
    other than `before` where there is one.
    Raises PastError.
    """
    if asked and Path(asked).is_file():
        return [read(Path(asked))]
    records = [read(path) for path in sorted(folder().glob("counts-*.json"))]
    if not records:
        raise PastError(
            "there are no records. Save one of the commit that you want to compare with: "
            "./dev bench instructions --save"
        )
    if asked:
        try:
            commit = _git("rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}").strip()
        except (OSError, subprocess.CalledProcessError):
            commit = asked  # git knows nothing of it
        found = [each for each in records if each.commit.startswith(commit)]
        if not found:
            have = ", ".join(dict.fromkeys(each.name for each in reversed(records)))
            raise PastError(f"there are no records of {asked!r}; there are: {have}")
        # Those of the commit itself, where there are some.
        newest = ([each for each in found if not each.changed] or found)[-1]
    else:
        newest = ([each for each in records if each.commit != before or each.changed] or records)[-1]
    if newest.changed or not newest.commit:
        return [newest]  # other changes may differ
    return [each for each in records if each.commit == newest.commit and not each.changed]


@dataclass(frozen=True)
class Move:
    """The counts of one piece of work, before and after."""

    name: str
    before: float
    after: float

    @property
    def verdict(self) -> str:
        """ "more", "fewer" or "level"."""
        noise = max(SHARE * self.before, LEAST)
        more = self.after - self.before
        return "level" if abs(more) <= noise else "more" if more > 0 else "fewer"


def compare(before: list[Record], after: Record) -> list[Move]:
    """What both sides counted. Raises PastError if they ran on different Pythons."""
    was, now = (".".join(each.python.split(".")[:2]) for each in (before[-1], after))
    if was != now:
        raise PastError(f"nothing is compared: Python was {was}, is {now}")
    least: dict[str, float] = {}
    for record in before:
        for name, count in record.counts.items():
            least[name] = min(count, least.get(name, count))
    return [Move(name, least[name], count) for name, count in after.counts.items() if name in least]


def text(before: list[Record], after: Record, moves: list[Move], titles: dict[str, str]) -> str:
    """What moved, a line each; how many did not; and what only one side counted."""
    old = before[-1]
    lines = [f"Since {old.name} ({old.subject}), {old.date}, now {after.name}:"]
    cells = [("", "work", "before", "now", "change")]
    for verdict in ("more", "fewer"):
        for move in sorted(moves, key=lambda each: -abs(each.after / each.before - 1)):
            if move.verdict == verdict:
                change = f"{(move.after / move.before - 1) * 100:+.1f}%"
                counts = f"{move.before:,.0f}", f"{move.after:,.0f}"
                cells.append((verdict, titles.get(move.name, move.name), *counts, change))
    if len(cells) > 1:
        lines.append(aligned(cells, False, range(2, 5)))
    verdicts = [move.verdict for move in moves]
    lines.append(", ".join(f"{verdicts.count(each)} {each}" for each in ("more", "fewer", "level")))
    if fresh := sorted(set(after.counts) - {move.name for move in moves}):
        lines.append(f"New: {', '.join(fresh)}")
    if old.numpy != after.numpy:
        lines.append(f"Note: NumPy was {old.numpy}, is {after.numpy}")
    return "\n".join(lines)


def add_options(parser: argparse.ArgumentParser) -> None:
    """--save and --compare."""
    parser.add_argument("--save", action="store_true", help="keep the counts, in .cache/benchmarks/past")
    parser.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="FILE|COMMIT",
        help="tell what moved since the records of FILE or COMMIT; by default since the commit saved last. "
        f"The exit status is {SLOWER} if something takes more",
    )


def compare_and_save(options: argparse.Namespace, counts: dict[str, float], titles: dict[str, str]) -> int:
    """Does what --compare and --save ask for, and gives the exit status: 0, or `SLOWER`.

    Raises PastError if there is nothing to compare with.
    """
    record, status = Record.of_now(counts), 0
    if options.compare is not None:
        before = find(options.compare, before="" if record.changed else record.commit)
        moves = compare(before, record)
        print("\n" + text(before, record, moves, titles))
        status = SLOWER if any(move.verdict == "more" for move in moves) else 0
    if options.save:
        print(f"saved in {save(record)}", file=sys.stderr)
    return status
