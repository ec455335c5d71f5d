"""The part `advice`: a figure for each advice of docs/guides/performance.md, on lavapipe.

Prints the page's tables: the least processor time of all threads, over rounds in which the ways take turns.
`--write` puts them into the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from tests.drivers import DriverUnavailableError

from ..drivers import driver_environment
from ..machine import describe
from ..pages import GUIDE, put
from ..paths import ROOT
from .measuring import Table

_DRIVERS = ("lavapipe", "swiftshader")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks advice", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this table; may be repeated"
    )
    parser.add_argument("--driver", default=_DRIVERS[0], choices=_DRIVERS)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/guides/performance.md")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.driver != _DRIVERS[0]):
        parser.error("the page has figures of a full run on lavapipe")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if a table could not be measured."""
    from .tables import TABLES

    options = _parse(arguments)
    names = options.only or list(TABLES)
    if unknown := [name for name in names if name not in TABLES]:
        print(f"error: there is no table {unknown[0]!r}; there are: {', '.join(TABLES)}", file=sys.stderr)
        return 2
    try:
        environment = driver_environment(options.driver)
    except DriverUnavailableError as error:
        print(f"error: {options.driver} is not available: {error}", file=sys.stderr)
        return 1
    machine = describe()
    print(f"{machine['date']}, {machine['processor']}, {machine['system']}, {options.driver}")
    if options.quick:
        print("A quick run: too short for figures to be relied on.")
    command = [sys.executable, "-m", "benchmarks.advice.worker", "quick" if options.quick else "full", *names]
    measured = 0
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            answer = json.loads(line)
            table = Table(tuple(answer["header"]), tuple(map(tuple, answer["rows"])))
            print(
                f"\n{answer['name']}:\n" + (table.markdown() if options.markdown else table.text()),
                flush=True,
            )
            if options.write:
                put(GUIDE, f"advice {answer['name']}", table.markdown())
            measured += 1
    if measured < len(names):
        print(f"error: {names[measured]} was not measured", file=sys.stderr)
    return 0 if measured == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
