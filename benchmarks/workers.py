"""Parts with figures of many names, which a worker takes on one driver: `python -m benchmarks.PART.worker`.

The worker prints a JSON object with a "name", a line, for each figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from tests.drivers import DriverUnavailableError

from .drivers import driver_environment
from .machine import describe
from .paths import ROOT

DRIVERS = ("lavapipe", "swiftshader")


def options_of(
    part: str, about: str | None, kind: str, written: str, only: Iterable[str] | None = None
) -> argparse.ArgumentParser:
    """The options of a part that measures things of a `kind`; `written` says what `--write` does, `only`
    which names `--only` takes; None: any.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {part}", description=about)
    parser.add_argument(
        "--only", action="append", default=[], choices=only, metavar="NAME",
        help=f"only this {kind}; may be repeated",
    )  # fmt: skip
    parser.add_argument("--driver", default=DRIVERS[0], choices=DRIVERS)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument("--write", action="store_true", help=written)
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    """The options. Ends the process for a short run, or another driver's, that a page would get."""
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.driver != DRIVERS[0]):
        parser.error("the page has figures of a full run on lavapipe")
    return options


def when(driver: str) -> str:
    """Day, machine and driver."""
    machine = describe()
    return f"{machine['date']}, {machine['processor']}, {machine['system']}, {driver}"


def measure(
    part: str,
    kind: str,
    known: Iterable[str],
    options: argparse.Namespace,
    each: Callable[[dict[str, Any]], None],
) -> int:
    """Gives each of the worker's answers to `each`. Returns the exit status: 2 for an unknown name, 1 if not
    all were measured.
    """
    names = list(known)
    if unknown := [name for name in options.only if name not in names]:
        print(f"error: there is no {kind} {unknown[0]!r}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    names = options.only or names
    try:
        environment = driver_environment(options.driver)
    except DriverUnavailableError as error:
        print(f"error: {options.driver} is not available: {error}", file=sys.stderr)
        return 1
    print(when(options.driver))
    if options.quick:
        print("A quick run: too short for figures to be relied on.")
    command = [sys.executable, "-m", f"benchmarks.{part}.worker", "quick" if options.quick else "full"]
    missing = dict.fromkeys(names)
    with subprocess.Popen(
        [*command, *names], cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            answer = json.loads(line)
            missing.pop(answer["name"], None)
            each(answer)
    for name in list(missing)[:1]:
        print(f"error: {name} was not measured", file=sys.stderr)
    return 1 if missing else 0
