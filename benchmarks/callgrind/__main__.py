"""`python -m benchmarks.callgrind`: instructions per eval, per record and per tensor, on the null driver.

They are the same in every run to within a few, however busy the machine is, so that a change that costs a
hundred of them shows. `--profile NAME` keeps callgrind's output, for callgrind_annotate or KCachegrind.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.drivers import DriverUnavailableError

from ..build import BuildError
from ..paths import cache_directory
from .counting import CountError, count
from .works import WORKS


def main(arguments: list[str] | None = None) -> int:
    """Prints the instructions for one of each piece of work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.callgrind", description=__doc__)
    parser.add_argument("--only", action="append", default=[], choices=WORKS, help="may be repeated")
    parser.add_argument("--profile", choices=WORKS, help="keep callgrind's output of this one")
    options = parser.parse_args(arguments)
    names = options.only or ([options.profile] if options.profile else list(WORKS))
    try:
        print(f"{'instructions':>12}  for one of")
        for name in names:
            keep = cache_directory() / f"callgrind.out.{name}" if name == options.profile else None
            print(f"{count(name, keep):12,.0f}  {WORKS[name].title}", flush=True)
            if keep is not None:
                print(f"{'':12}  profile: {os.path.relpath(keep)}")
    except (BuildError, CountError, DriverUnavailableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
