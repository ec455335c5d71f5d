"""The part `instructions`, also `python -m benchmarks.callgrind`: instructions per eval, per record and per
tensor, on the null driver.

They are the same in every run to within a few, however busy the machine is, so that a change that costs a
hundred of them shows. `--profile NAME` keeps callgrind's output, for callgrind_annotate or KCachegrind.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.drivers import DriverUnavailableError

from ..build import BuildError
from ..pages import INSIDE, put
from ..past import PastError, add_options, compare_and_save, find
from ..paths import cache_directory
from .counting import CountError, count_all
from .works import WORKS, Work

_MARKDOWN = ("| instructions | at most | for one of |", "| -----------: | ------: | ---------- |")
_LIMITED = (3, 11)
"""The version of Python that the limits are for: others take more or fewer in the interpreter."""


def _row(counted: float, work: Work) -> str:
    return f"| {counted:,.0f} | {work.most:,} | {work.title} |"


def _beyond(counts: dict[str, float]) -> list[str]:
    """The names of works that take more than they may."""
    if sys.version_info[:2] != _LIMITED:
        return []
    return [name for name, counted in counts.items() if counted > WORKS[name].most]


def main(arguments: list[str] | None = None) -> int:
    """Prints the instructions for one of each piece of work.

    Returns 1 where something could not be counted, 2 where there is nothing to compare with, 3 where
    --compare found something that takes more, and 4 if something takes more than its limit.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks instructions", description=__doc__)
    parser.add_argument("--only", action="append", default=[], choices=WORKS, help="may be repeated")
    parser.add_argument("--profile", choices=WORKS, help="keep callgrind's output of this one")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    parser.add_argument("--write", action="store_true", help="put the table into docs/inside/performance.md")
    add_options(parser)
    options = parser.parse_args(arguments)
    if options.write and (options.only or options.profile):
        parser.error("the page has all counts")
    names = options.only or ([options.profile] if options.profile else list(WORKS))
    counts: dict[str, float] = {}
    try:
        if options.compare is not None:
            find(options.compare)  # before minutes are spent
        print("\n".join(_MARKDOWN) if options.markdown else f"{'instructions':>12}  for one of")
        keep = {}
        if options.profile:
            keep[options.profile] = cache_directory() / f"callgrind.out.{options.profile}"
        for name, counted in count_all(names, keep):
            counts[name] = counted
            work = WORKS[name]
            line = f"{counted:12,.0f}  {work.title} (at most {work.most:,})"
            print(_row(counted, work) if options.markdown else line, flush=True)
        for path in keep.values():
            print(f"{'':12}  profile: {os.path.relpath(path)}")
        if options.write:
            rows = [_row(counted, WORKS[name]) for name, counted in counts.items()]
            put(INSIDE, "instructions", "\n".join([*_MARKDOWN, *rows]))
        for name in _beyond(counts):
            print(f"error: {name} takes more than {WORKS[name].most:,} instructions", file=sys.stderr)
        compared = compare_and_save(options, counts, {name: work.title for name, work in WORKS.items()})
        return compared or (4 if _beyond(counts) else 0)
    except PastError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (BuildError, CountError, DriverUnavailableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
