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
from ..past.kind import MachineKind
from ..past.records import PastError, find
from ..past.report import add_options, compare_and_save, made_record, shows
from ..paths import cache_directory
from .counting import CountError, count_all
from .works import WORKS


def main(arguments: list[str] | None = None) -> int:
    """Prints the instructions for one of each piece of work.

    Returns 1 where something could not be counted, 2 where there is nothing to compare with, and 3 where
    --compare found something that takes more.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks instructions", description=__doc__)
    parser.add_argument("--only", action="append", default=[], choices=WORKS, help="may be repeated")
    parser.add_argument("--profile", choices=WORKS, help="keep callgrind's output of this one")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    add_options(parser)
    options = parser.parse_args(arguments)
    names = options.only or ([options.profile] if options.profile else list(WORKS))
    counts: dict[str, float] = {}
    edge = "|" if options.markdown else ""
    try:
        if options.compare is not None:
            find("instructions", options.compare, MachineKind.here())  # before minutes are spent
        print(f"{edge} {'instructions':>12} {edge} for one of {edge}".rstrip())
        if options.markdown:
            print("| -----------: | ---------- |")
        keep = (
            {options.profile: cache_directory() / f"callgrind.out.{options.profile}"}
            if options.profile
            else {}
        )
        for name, counted in count_all(names, keep):
            counts[name] = counted
            print(f"{edge} {counted:12,.0f} {edge} {WORKS[name].title} {edge}".rstrip(), flush=True)
        for path in keep.values():
            print(f"{'':12}  profile: {os.path.relpath(path)}")
        record = made_record("instructions", counts=counts)
        return compare_and_save(options, record, lambda name: WORKS[name].title, shows("instructions"))
    except PastError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (BuildError, CountError, DriverUnavailableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
