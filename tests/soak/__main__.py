"""Does the same things very often, each kind in a process of its own, and compares its resident memory with
that after a tenth.

A million evaluations, 20,000 specializations, 5,000 modules, 1,000 hot reloads, 200,000 tensors, 30,000
shapes and 30,000 sizes under a memory_limit, or a part (--scale). Fails if the memory at the end is more than
1.1 times that after the first tenth.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.support.child import run_child

from .phases import PHASES
from .running import judge, run

_SECONDS = 6 * 3600  # for the slowest phase on a slow machine


def main() -> int:
    """Returns 1 if a phase grew."""
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="part of the whole run: 0.01 takes a minute (1)"
    )
    parser.add_argument(
        "--phase", choices=list(PHASES), action="append", help="only this one; may be repeated"
    )
    parser.add_argument("--driver", default=os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe"))
    given = parser.parse_args()
    failed = []
    for name in given.phase or PHASES:
        result = run_child(run, name, given.scale, driver=given.driver, timeout=_SECONDS)
        mib = [mark / 2**20 for mark in result["resident"]]
        print(
            f"{name:16} {result['turns']:>9,} turns {result['seconds']:8.1f} s   resident MiB after each "
            "tenth: "
            f"{' '.join(f'{each:.1f}' for each in mib)}   {mib[-1] / mib[0]:.3f}",
            flush=True,
        )
        if wrong := judge(result):
            failed.append(wrong)
            print(f"    {wrong}", flush=True)
    print("resident memory did not grow" if not failed else "; ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
