"""What the parts have in common: their options, their errors, the one driver that a process sees."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable

from tests.drivers import DriverUnavailableError, environment

from .machine import describe

DRIVERS = ("lavapipe", "swiftshader")
# By default the null driver plays a discrete GPU with non-coherent host memory and compares every byte of a
# flush, some 6 us for 12 KiB that no real driver takes. With coherent memory what is left is the overhead of
# who calls it.
_NULL_CONFIG = "memory=unified"
QUICK = "A quick run: too short for figures to be relied on."


class Stopped(Exception):
    """A part ends with this text and exit status: 1 if something is missing, 2 for wrong arguments."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def part(main: Callable[..., int]) -> Callable[..., int]:
    """Decorates a part's function, which takes its arguments and returns its exit status."""

    @functools.wraps(main)
    def run(arguments: list[str] | None = None) -> int:
        try:
            return main(arguments)
        except Stopped as error:
            print(f"error: {error}", file=sys.stderr)
            return error.status

    return run


def driver_environment(driver: str) -> dict[str, str]:
    """Environment variables for "lavapipe", "swiftshader" or "null". Raises Stopped if it is not there."""
    try:
        return environment(driver, None, _NULL_CONFIG if driver == "null" else None)
    except DriverUnavailableError as error:
        raise Stopped(f"{driver} is not available: {error}") from None


def options_of(
    name: str,
    about: str | None,
    kind: str,
    *,
    page: str = "",
    markdown: bool = True,
    drivers: Collection[str] = (),
) -> argparse.ArgumentParser:
    """The options of a part that measures things of a `kind` on one of `drivers`, for a page."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=about)
    only = f"only this {kind}; may be repeated"
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=only)
    if drivers:
        parser.add_argument("--driver", default=DRIVERS[0], choices=drivers)
        parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    if page and markdown:
        parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    if page:
        parser.add_argument("--write", action="store_true", help=f"put the table into {page}")
    return parser


def parsed(
    parser: argparse.ArgumentParser, arguments: list[str] | None, *partly: str, driver: object = None
) -> argparse.Namespace:
    """The options. Ends the process if a page would get the figures of a short run, or of another driver than
    `driver`, or with one of the options `partly`.
    """
    options = parser.parse_args(arguments)
    if options.write and (
        any(getattr(options, name) for name in partly) or getattr(options, "driver", driver) != driver
    ):
        parser.error("the page has all figures, of a full run")
    return options


def chosen(kind: str, known: Iterable[str], asked: list[str]) -> list[str]:
    """The names that are asked for; all if there are none.

    Raises Stopped for one that is unknown, listing all.
    """
    names = list(known)
    if unknown := [name for name in asked if name not in names]:
        raise Stopped(f"there is no {kind} {unknown[0]!r}; there are: {', '.join(names)}", 2)
    return asked or names


def take_driver(options: argparse.Namespace) -> None:
    """Lets this process see the chosen driver alone, before it loads Vulkan, and prints what is measured
    where. Raises Stopped if the driver is not there.
    """
    os.environ.update(driver_environment(options.driver))
    print(when(options.driver))
    if options.quick:
        print(QUICK)


def when(driver: str) -> str:
    """Day, machine and driver."""
    machine = describe()
    return f"{machine['date']}, {machine['processor']}, {machine['system']}, {driver}"
