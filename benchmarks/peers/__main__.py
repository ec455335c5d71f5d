"""The part `peers`: what kompute_py and other libraries take, in turns on one Vulkan driver.

Prints how long each takes, and how many times as long as kompute_py. The peers are installed from PyPI on
first use.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from ..machine import describe
from ..pages import INSIDE, put
from ..parts import DRIVERS, QUICK, chosen, driver_environment, options_of, parsed, part
from ..table import aligned, duration
from .environments import OURS, PEERS, PeerError
from .processes import FIRST, SHORT, Plan, Task, Worker, take_turns

LEGEND = """\
Lower quartiles, over blocks that the libraries' processes did in turns; the processes were started
{generations} times. In parentheses: times as long as kompute_py. Each library is used in the fastest way that
its documentation shows, and the numbers are checked before times are taken."""


@dataclass
class Report:
    """All that was measured."""

    driver: str
    about: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """By task and library: seconds of each block."""
    failures: list[str] = field(default_factory=list)
    lost: set[tuple[str, str]] = field(default_factory=set)
    """Task and library of each failure; the task is empty where the library did not start."""

    def typical(self, task: str, library: str) -> float | None:
        """Seconds of `library` for the task, the lower quartile; None where it was not measured."""
        values = self.blocks.get(task, {}).get(library, [])
        if len(values) < 2:
            return values[0] if values else None
        return statistics.quantiles(values, n=4, method="inclusive")[0]


TASKS = (
    Task("first", "first product in a fresh process, caches warm", FIRST, 4 << 10),
    Task("call-16", "call with NumPy arrays of 16 B", "call", 16),
    Task("call-4k", "call with NumPy arrays of 4 KiB", "call", 4 << 10),
    Task("call-64k", "call with NumPy arrays of 64 KiB", "call", 64 << 10),
    Task("call-1m", "call with NumPy arrays of 1 MiB", "call", 1 << 20),
    Task("call-64m", "call with NumPy arrays of 64 MiB", "call", 64 << 20),
    Task("many-4k", "1,000 dispatches over 4 KiB, one after the other: each", "many", 4 << 10),
    Task("stream-1m", "stream of frames of 1 MiB, NumPy to NumPy: each", "stream", 1 << 20),
)
_FULL = Plan(generations=2, rounds=7, block_seconds=0.02, limit=2.0)


def compare(report: Report, names: list[str], tasks: list[Task], plan: Plan) -> None:
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
        for name in names:
            if ("", name) in lost:
                continue
            try:
                workers.append(Worker(PEERS[name], environment))
            except PeerError as error:
                note(name, "", error)
            else:
                report.about[name] = workers[-1].about
        try:
            for task in tasks:
                turn = f"{generation + 1} of {plan.generations}"
                print(f"{task.title}, {turn} ...", file=sys.stderr, flush=True)
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


def lines(tasks: list[Task], names: list[str], taken: Callable[[str, str], float | None]) -> list[list[str]]:
    """The table's cells, the header first: times of the first library, and of the others how many times as
    long they took.
    """
    made = [["", *names]]
    for task in tasks:
        ours = taken(task.name, names[0])
        cells = [task.title]
        for name in names:
            seconds = taken(task.name, name)
            if seconds is None:
                cells.append("failed")
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


@part
def main(arguments: list[str] | None = None) -> int:
    """Measures and prints.

    Returns 1 where a library could not be measured, 2 for a task that there is not.
    """
    parser = options_of("peers", __doc__, "task", page=INSIDE.name, drivers=DRIVERS)
    peers = list(PEERS)[1:]
    text = f"only this library, beside {OURS.name}: {', '.join(peers)}"
    parser.add_argument("--peer", action="append", default=[], choices=peers, metavar="NAME", help=text)
    options = parsed(parser, arguments, "quick", "only", "peer", driver=DRIVERS[0])
    wanted = chosen("task", [task.name for task in TASKS], options.only)
    tasks = [task for task in TASKS if task.name in wanted]
    names = [OURS.name, *(options.peer or peers)]
    report, plan = Report(options.driver), SHORT if options.quick else _FULL
    compare(report, names, tasks, plan)
    cells = lines(tasks, names, report.typical)
    text = _text(report, cells, options.markdown)
    print(text.replace("\n", f"\n{QUICK}\n", 1) if options.quick else text)
    print("\n" + LEGEND.format(generations=plan.generations))
    if report.failures:
        print("\nNot measured:\n" + "\n".join(f"- {failure}" for failure in report.failures))
    elif options.write:
        put(INSIDE, "peers", _text(report, cells, True))
    return 1 if report.failures else 0


def _text(report: Report, cells: list[list[str]], as_markdown: bool) -> str:
    """Day, machine and versions, a line each, and the table."""
    machine = describe()
    heading = [
        f"{machine['date']}, {machine['processor']}, {machine['memory']} of memory, {machine['system']}, "
        f"Python {machine['python']}, {report.driver}",
        *report.about.values(),
    ]
    return "\n".join(
        [("- " if as_markdown else "") + line for line in heading] + ["", aligned(cells, as_markdown)]
    )


if __name__ == "__main__":
    sys.exit(main())
