"""Prints a comparison, and the options that all parts have for their past."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import sys
from collections.abc import Callable
from pathlib import Path

from ..machine import describe
from ..table import Row, aligned, duration
from .kind import MachineKind
from .moves import Comparison, Move, compare
from .records import PUBLISHED, PastError, Record, commit_here, default_folders, find, save

SLOWER = 3
"""The exit status if something became slower."""
_TRIES = 2
"""Further measurements of what seems slower."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """--save, --publish and --compare."""
    parser.add_argument(
        "--save",
        action="store_true",
        help="keep the figures for this kind of machine, in .cache/benchmarks/past",
    )
    parser.add_argument(
        "--publish", action="store_true", help="keep them in benchmarks/past/published, which git tracks"
    )
    parser.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="FILE|COMMIT",
        help="tell what moved beyond noise since the records of FILE or COMMIT; by default since the commit "
        f"saved last. The exit status is {SLOWER} if something is slower",
    )


def made_record(
    part: str,
    *,
    drivers: dict[str, str] | None = None,
    yardstick: float | None = None,
    rows: list[Row] | None = None,
    counts: dict[str, float] | None = None,
) -> Record:
    """A record of the commit that is checked out, as of now."""
    commit, subject, changed = commit_here()
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return Record(
        part,
        commit,
        subject,
        changed,
        date,
        describe(),
        drivers or {},
        yardstick,
        tuple(rows or ()),
        counts or {},
    )


def compare_and_save(
    options: argparse.Namespace,
    record: Record,
    title: Callable[[str], str],
    show: Callable[[float], str] = duration,
    folders: tuple[Path, Path] | None = None,
    again: Callable[[list[Move]], list[Row]] | None = None,
) -> int:
    """Does what --compare, --save and --publish ask for, and gives the exit status: 0, or `SLOWER`.

    `again` measures what seems slower once more: other programs may have been busy just then. Only what is
    slower each time is called so. Records keep what was measured first.
    Raises PastError if there is nothing to compare with.
    """
    kind, status = MachineKind.here(), 0
    local, published = folders or default_folders()
    if options.compare is not None:
        before = "" if record.changed else record.commit
        found_kind, records = find(record.part, options.compare, kind, (local, published), before=before)
        made, judged = compare(records, [record], (found_kind, kind)), record
        for _ in range(_TRIES if again else 0):
            if again and (slower := made.of("slower")):
                judged = _with_the_fastest(judged, again(slower))
                made = compare(records, [judged], (found_kind, kind))
        if options.only or getattr(options, "driver", None):
            made.only_before.clear()  # nobody asked for them
        print("\n" + text(made, records, [judged], title, show))
        status = SLOWER if made.of("slower") else 0
    for wanted, folder in ((options.save, local), (options.publish, published)):
        if wanted:
            print(f"saved in {save(record, kind, folder)}", file=sys.stderr)
    return status


def _with_the_fastest(record: Record, rows: list[Row]) -> Record:
    """The record with those of these rows that took less time than its own."""
    faster = {(row.figure, row.driver): row for row in rows}
    kept = [
        min(row, faster.get((row.figure, row.driver), row), key=lambda each: each.ours) for row in record.rows
    ]
    return dataclasses.replace(record, rows=tuple(kept))


def text(
    made: Comparison,
    before: list[Record],
    after: list[Record],
    title: Callable[[str], str],
    show: Callable[[float], str] = duration,
) -> str:
    """What moved, a line each; how many figures did not; and what was not compared."""
    runs = f", {len(before)} runs" if len(before) > 1 else ""
    lines = [f"Since {before[-1].text()}{runs}, now {after[-1].name}:"]
    moved = [*made.of("slower"), *made.of("faster")]
    cells = [("", "figure", "driver", "before", "now", "change", "noise")]
    cells += [_cells(move, title, show) for move in moved]
    if moved:
        lines.append(aligned(cells, False, range(3, 7)))
    level = len(made.of("level"))
    lines.append(f"{len(made.of('slower'))} slower, {len(made.of('faster'))} faster, {level} level")
    for what, names in (("New", made.only_after), ("No longer measured", made.only_before)):
        if names:
            lines.append(f"{what}: {', '.join(names)}")
    lines += [f"Note: {note}" for note in made.notes]
    return "\n".join(lines)


def _cells(move: Move, title: Callable[[str], str], show: Callable[[float], str]) -> tuple[str, ...]:
    change = f"{(move.factor - 1) * 100:+.1f}%"
    noise = f"{move.noise * 100:.0f}%"
    return move.verdict, title(move.name), move.driver, show(move.before), show(move.after), change, noise


def main(arguments: list[str] | None = None) -> int:
    """`python -m benchmarks past`: lists the records of this kind of machine, or compares two commits'."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks past", description=main.__doc__)
    parser.add_argument(
        "records", nargs="*", metavar="FILE|COMMIT", help="two: compare these; none: list all"
    )
    parser.add_argument("--part", choices=("rows", "instructions"), help="only these")
    options = parser.parse_args(arguments)
    parts = (options.part,) if options.part else ("rows", "instructions")
    if len(options.records) not in (0, 2):
        parser.error("give two records to compare, or none")
    from ..callgrind.works import WORKS
    from ..rows import REGISTRY

    titles = {name: figure.title for name, figure in REGISTRY.figures.items()}
    names = {"rows": titles, "instructions": {name: work.title for name, work in WORKS.items()}}
    status = 0
    kind = MachineKind.here()
    found_any, errors = False, []
    for part in parts:
        if not options.records:
            _list(part, kind)
            continue
        try:
            sides = [find(part, asked, kind) for asked in options.records]
        except PastError as error:
            errors.append(str(error))
            continue
        found_any = True
        made = compare(sides[0][1], sides[1][1], (sides[0][0], sides[1][0]))
        shown = text(
            made, sides[0][1], sides[1][1], lambda name, part=part: names[part].get(name, name), shows(part)
        )
        print(f"{part}. {shown}\n")
        status = SLOWER if made.of("slower") else status
    if options.records and not found_any:
        print("error: " + "\n".join(errors), file=sys.stderr)
        return 2
    return status


def shows(part: str) -> Callable[[float], str]:
    """How a part's numbers are written."""
    return duration if part == "rows" else lambda count: f"{count:,.0f}"


def _list(part: str, kind: MachineKind) -> None:
    print(f"{part}, {kind.text()}:")
    for folder in default_folders():
        path = folder / kind.file_name
        if not path.exists():
            continue
        from .records import read

        for record in (each for each in read(path)[1] if each.part == part):
            figures = len(record.rows) or len(record.counts)
            where = "published" if folder == PUBLISHED else "local"
            print(f"  {record.text()}, {figures} figures, {where}")
