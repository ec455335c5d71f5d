"""What the parts that measure on one driver have in common: their options, and the driver."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from tests.drivers import DriverUnavailableError

from .drivers import driver_environment
from .machine import describe

DRIVERS = ("lavapipe", "swiftshader")


def options_of(part: str, about: str | None, kind: str, written: str) -> argparse.ArgumentParser:
    """The options of a part that measures things of a `kind`; `written` says what `--write` does."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {part}", description=about)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help=f"only this {kind}; may be repeated"
    )
    parser.add_argument("--driver", default=DRIVERS[0], choices=DRIVERS)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    parser.add_argument("--write", action="store_true", help=written)
    return parser


def parsed(
    parser: argparse.ArgumentParser, arguments: list[str] | None, whole: Iterable[str] = ()
) -> argparse.Namespace:
    """The options. Ends the process for a short run, another driver's, or one with an option of `whole`, that
    a page would get.
    """
    options = parser.parse_args(arguments)
    partly = options.quick or any(getattr(options, name) for name in whole)
    if options.write and (partly or options.driver != DRIVERS[0]):
        parser.error("the page has figures of a full run on lavapipe")
    return options


def chosen(kind: str, known: Iterable[str], asked: list[str]) -> list[str]:
    """The names that are asked for; all if there are none.

    Raises KeyError for one that is unknown, listing all.
    """
    names = list(known)
    if unknown := [name for name in asked if name not in names]:
        raise KeyError(f"there is no {kind} {unknown[0]!r}; there are: {', '.join(names)}")
    return asked or names


def take_driver(options: argparse.Namespace) -> bool:
    """Lets this process see the chosen driver alone, before it loads Vulkan, and prints what is measured
    where. Returns whether the driver is there.
    """
    try:
        os.environ.update(driver_environment(options.driver))
    except DriverUnavailableError as error:
        print(f"error: {options.driver} is not available: {error}", file=sys.stderr)
        return False
    print(when(options.driver))
    if options.quick:
        print("A quick run: too short for figures to be relied on.")
    return True


def when(driver: str) -> str:
    """Day, machine and driver."""
    machine = describe()
    return f"{machine['date']}, {machine['processor']}, {machine['system']}, {driver}"
