"""`python -m benchmarks.peers`: the same work by kompute_py, NumPy and other libraries, in turns on one
Vulkan driver.

Prints how long each takes, and how many times as long as kompute_py. The peers are installed from PyPI on
first use.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.drivers import DriverUnavailableError

from ..drivers import driver_environment
from ..machine import describe
from ..table import duration
from .environments import OURS, PEERS, Peer, PeerError
from .processes import FULL, QUICK, TASKS, Plan, Task, Worker, take_turns

_DRIVERS = ("lavapipe", "swiftshader")

LEGEND = """\
Lower quartiles over blocks that the libraries' processes did in turns; the processes were started
{generations} times. In parentheses: times as long as kompute_py. Each library is used in the fastest way
that its documentation shows, and each task's numbers are checked before its time is taken."""


@dataclass
class Report:
    """All that was measured."""

    machine: dict[str, str]
    driver: str
    about: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """By task and library: one value for each block."""
    failures: list[str] = field(default_factory=list)

    def typical(self, task: str, library: str) -> float | None:
        """Seconds of `library` for the task; None where it was not measured."""
        values = self.seconds.get(task, {}).get(library, [])
        if len(values) < 2:
            return values[0] if values else None
        return statistics.quantiles(values, n=4, method="inclusive")[0]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def compare(report: Report, peers: list[Peer], tasks: list[Task], plan: Plan) -> None:
    """Measures; what fails is noted in the report, once, and the rest goes on."""
    environment = driver_environment(report.driver)
    lost: set[tuple[str, str]] = set()

    def note(name: str, task: str, error: PeerError) -> None:
        if (name, task) not in lost:
            lost.add((name, task))
            report.failures.append(f"{error}" + (f" ({TASKS[task].title})" if task else ""))

    for generation in range(plan.generations):
        workers = []
        for peer in peers:
            if (peer.name, "") in lost:
                continue
            try:
                workers.append(Worker(peer, environment))
            except PeerError as error:
                note(peer.name, "", error)
            else:
                report.about[peer.name] = workers[-1].about
        try:
            for task in tasks:
                _say(f"{task.title}, {generation + 1} of {plan.generations} ...")
                able = [worker for worker in workers if (worker.name, task.name) not in lost]
                taken = take_turns(
                    able, task, plan, lambda worker, error, task=task: note(worker.name, task.name, error)
                )
                of_task = report.seconds.setdefault(task.name, {})
                for name, values in taken.items():
                    of_task.setdefault(name, []).extend(values)
        finally:
            for worker in workers:
                worker.close()


def lines(report: Report, tasks: list[Task], names: list[str]) -> list[list[str]]:
    """The table's cells, the header first."""
    made = [["", *names]]
    for task in tasks:
        ours = report.typical(task.name, OURS.name)
        cells = [task.title]
        for name in names:
            seconds = report.typical(task.name, name)
            if seconds is None:
                cells.append("failed")
            elif name == OURS.name or ours is None:
                cells.append(duration(seconds))
            else:
                cells.append(f"{duration(seconds)} ({seconds / ours:.{2 if seconds < 10 * ours else 0}f} x)")
        made.append(cells)
    return made


def aligned(table: list[list[str]], as_markdown: bool) -> str:
    """The table as text or as Markdown."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    rows = [
        [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in table
    ]
    if not as_markdown:
        return "\n".join("  ".join(row).rstrip() for row in rows)
    rule = ["-" * width if not i else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=TASKS,
        metavar="TASK",
        help=f"only this task: {', '.join(TASKS)}",
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        choices=PEERS,
        metavar="NAME",
        help=f"only this library, beside {OURS.name}: {', '.join(PEERS)}",
    )
    parser.add_argument("--driver", default=_DRIVERS[0], choices=_DRIVERS)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument(
        "--markdown", action="store_true", help="print Markdown, as docs/inside/performance.md has it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a library could not be measured."""
    options = _parse(arguments)
    plan = QUICK if options.quick else FULL
    peers = [peer for name, peer in PEERS.items() if not options.peer or name in options.peer or peer is OURS]
    tasks = [task for name, task in TASKS.items() if not options.only or name in options.only]
    report = Report(describe(), options.driver)
    try:
        compare(report, peers, tasks, plan)
    except DriverUnavailableError as error:
        print(f"{options.driver} is not available: {error}", file=sys.stderr)
        return 1
    machine = report.machine
    heading = [
        f"{machine['date']}, {machine['processor']}, {machine['memory']} of memory, {machine['system']}, "
        f"Python {machine['python']}, {options.driver}",
        *report.about.values(),
    ]
    if options.quick:
        heading.append("A quick run: too short for figures to be relied on.")
    mark = "- " if options.markdown else ""
    print("\n".join(mark + line for line in heading), end="\n\n")
    print(aligned(lines(report, tasks, [peer.name for peer in peers]), options.markdown), end="\n\n")
    print(LEGEND.format(generations=plan.generations))
    if report.failures:
        print("\nNot measured:\n" + "\n".join(f"- {failure}" for failure in report.failures))
    if options.json:
        options.json.write_text(json.dumps(dataclasses.asdict(report), indent=2) + "\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
