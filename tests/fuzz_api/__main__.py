"""`python -m tests.fuzz_api [CALLS]`: odd arguments for every public callable, found by reflection.

Each call gets one odd argument, now and then more, and arguments that fit for the rest. It may succeed, raise
a KomputeError, raise what the odd object itself raised, or be refused by Python because its signature is
another. Anything else is a fault: a Python error from within, the end of the process, and a call that neither
returns nor hears signals within ten seconds.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.drivers import environment

from .running import PATIENCE, run
from .values import TABLE


def main() -> int:
    """Returns 1 if there are faults."""
    parser = argparse.ArgumentParser(prog="./dev fuzz --api", description=__doc__)
    parser.add_argument(
        "calls",
        nargs="?",
        type=int,
        default=0,
        help="how many calls, at random (each argument of each callable with each odd value)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only callables with this text in their name")
    parser.add_argument(
        "--table", action="store_true", help="only arrays and tensors of the kinds that rules are about"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=PATIENCE,
        help="seconds after which a call hangs; more on a busy machine (10)",
    )
    parser.add_argument("--driver", default=os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe"))
    given = parser.parse_args()
    os.environ.update(environment(given.driver))
    made, faults = run(
        given.calls, given.seed, given.only, told=True, patience=given.patience,
        kinds=TABLE if given.table else (),
    )  # fmt: skip
    print("\n".join(faults))
    print(f"{made} calls, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
