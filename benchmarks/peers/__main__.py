"""The part `peers`: what users do, with kompute_py, NumPy and other libraries, in turns on one Vulkan driver.

Prints how long each takes, and how many times as long as kompute_py. The peers are installed from PyPI on
first use.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.drivers import DriverUnavailableError

from ..drivers import driver_environment
from ..machine import describe
from ..pages import INSIDE, put
from ..table import aligned, duration
from ..workers import DRIVERS, options_of
from .environments import OURS, PEERS, Peer, PeerError
from .processes import FULL, QUICK, TASKS, Plan, Task, Worker, take_turns

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
    blocks: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)
    """By task and library: seconds and processor time of each block."""
    failures: list[str] = field(default_factory=list)
    lost: set[tuple[str, str]] = field(default_factory=set)
    """Task and library of each failure; the task is empty where the library did not start."""

    def typical(self, task: str, library: str) -> float | None:
        """Seconds of `library` for the task, the lower quartile; None where it was not measured."""
        values = [seconds for seconds, _ in self.blocks.get(task, {}).get(library, [])]
        if len(values) < 2:
            return values[0] if values else None
        return statistics.quantiles(values, n=4, method="inclusive")[0]

    def processor(self, task: str, library: str) -> float | None:
        """Processor time of `library` for the task, the least; None where it was not measured."""
        return min((used for _, used in self.blocks.get(task, {}).get(library, [])), default=None)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def compare(report: Report, peers: list[Peer], tasks: list[Task], plan: Plan) -> None:
    """Measures; what fails is noted in the report, once, and the rest goes on."""
    environment = driver_environment(report.driver)
    titles = {task.name: task.title for task in tasks}
    lost = report.lost

    def note(name: str, task: str, error: PeerError) -> None:
        if (task, name) not in lost:
            lost.add((task, name))
            report.failures.append(f"{error}" + (f" ({titles[task]})" if task else ""))

    for generation in range(plan.generations):
        workers = []
        for peer in peers:
            if ("", peer.name) in lost:
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
                able = [worker for worker in workers if (task.name, worker.name) not in lost]
                taken = take_turns(
                    able, task, plan, lambda worker, error, task=task: note(worker.name, task.name, error)
                )
                of_task = report.blocks.setdefault(task.name, {})
                for name, values in taken.items():
                    of_task.setdefault(name, []).extend(values)
        finally:
            for worker in workers:
                worker.close()


def lines(
    tasks: list[Task], names: list[str], taken: Callable[[str, str], float | None], lost: set[tuple[str, str]]
) -> list[list[str]]:
    """The table's cells, the header first: times of the first library, and of the others how many times as
    long they took. A library that does not offer a task has a dash.
    """
    made = [["", *names]]
    for task in tasks:
        ours = taken(task.name, names[0])
        cells = [task.title]
        for name in names:
            seconds = taken(task.name, name)
            if seconds is None:
                cells.append("failed" if {(task.name, name), ("", name)} & lost else "-")
            elif name == names[0] or ours is None:
                cells.append(duration(seconds))
            else:
                cells.append(f"{duration(seconds)} ({times(seconds / ours)})")
        made.append(cells)
    return made


def times(ratio: float) -> str:
    """A ratio with two digits or three."""
    digits = 0 if ratio >= 10 else 2 if ratio >= 0.1 else 3 if ratio >= 0.01 else 4
    return f"{ratio:.{digits}f} x"


def parser_of(
    part: str, about: str | None, libraries: Iterable[str], only: Iterable[str] | None = None
) -> argparse.ArgumentParser:
    """The options of a part that compares libraries, the first of which is ours; `only`: as `options_of`."""
    names = list(libraries)[1:]
    parser = options_of(part, about, "task", "put the table into docs/inside/performance.md", only)
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        choices=names,
        metavar="NAME",
        help=f"only this library, beside {OURS.name}: {', '.join(names)}",
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    """The options. Ends the process for a part of the figures that the page would get."""
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.only or options.peer or options.driver != DRIVERS[0]):
        parser.error("the page has all figures, of a full run on lavapipe")
    return options


def measure(
    part: str,
    tasks: list[Task],
    libraries: Iterable[str],
    plan: Plan,
    options: argparse.Namespace,
    legend: str,
    figure: Callable[[Report, str, str], float | None],
) -> int:
    """Measures and shows the `figure` of each task and library, ours and those that the options name. Returns
    the exit status.
    """
    names = [name for name in libraries if name == OURS.name or not options.peer or name in options.peer]
    report = Report(describe(), options.driver)
    try:
        compare(report, [PEERS[name] for name in names], tasks, plan)
    except DriverUnavailableError as error:
        print(f"{options.driver} is not available: {error}", file=sys.stderr)
        return 1
    table = lines(tasks, names, lambda task, name: figure(report, task, name), report.lost)
    return show(report, table, legend.format(generations=plan.generations), options, part)


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a library could not be measured."""
    parser = parser_of("peers", __doc__, PEERS)
    options = parsed(parser, arguments)
    tasks = [task for name, task in TASKS.items() if name.startswith(tuple(options.only or ("",)))]
    if not tasks:
        print(f"there is no such task; there are: {', '.join(TASKS)}", file=sys.stderr)
        return 2
    plan = QUICK if options.quick else FULL
    return measure("peers", tasks, PEERS, plan, options, LEGEND, Report.typical)


def heading(report: Report, quick: bool, as_markdown: bool) -> list[str]:
    """Day, machine and versions, a line each."""
    machine = report.machine
    made = [
        f"{machine['date']}, {machine['processor']}, {machine['memory']} of memory, {machine['system']}, "
        f"Python {machine['python']}, {report.driver}",
        *report.about.values(),
    ]
    if quick:
        made.append("A quick run: too short for figures to be relied on.")
    return [("- " if as_markdown else "") + line for line in made]


def show(report: Report, table: list[list[str]], legend: str, options: argparse.Namespace, name: str) -> int:
    """Prints heading, table, legend and what failed; writes the file that was asked for, and the table into
    the page's place `name`; gives the exit status.
    """
    print("\n".join(heading(report, options.quick, options.markdown)), end="\n\n")
    print(aligned(table, options.markdown), end="\n\n")
    print(legend)
    if report.failures:
        print("\nNot measured:\n" + "\n".join(f"- {failure}" for failure in report.failures))
    if options.json:
        content = dataclasses.asdict(report)
        content["lost"] = sorted(content["lost"])
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if options.write and not report.failures:
        put(INSIDE, name, "\n".join([*heading(report, False, True), "", aligned(table, True)]))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
