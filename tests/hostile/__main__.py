"""`python -m tests.hostile`: processes that share all files, killed at random; the same on a full disk;
hostile files at every path.

It holds if every number is right, nothing hangs, no process fails, and nothing is left that no process needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.drivers import environment

from .running import Report, crowd, end_on_signals, full_disk, hostile, hostile_cases, scratch


def _tell(name: str, report: Report) -> int:
    print(
        f"{name}: {report.started} processes, {report.killed} killed, slowest wait {report.slowest:.1f} s, "
        f"{len(report.faults)} faults",
        flush=True,
    )
    for fault in report.faults[:10]:
        print("    " + fault.replace("\n", "\n    "), flush=True)
    return len(report.faults)


def main() -> int:
    """Returns 1 if there are faults."""
    parser = argparse.ArgumentParser(prog="./dev hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long each crowd runs (120)")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--patience",
        type=float,
        default=60,
        help="seconds that a process may take; more on a busy machine (60)",
    )
    parser.add_argument("--driver", default=os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe"))
    given = parser.parse_args()
    os.environ.update(environment(given.driver))
    end_on_signals()
    faults = 0
    with scratch() as folder:
        faults += _tell(
            "shared folders", crowd(folder, given.seconds, given.processes, given.seed, given.patience, False)
        )
    with full_disk() as folder:
        if folder is None:
            print("full disk: left out, because this user cannot mount a file system")
        else:
            faults += _tell(
                "full disk", crowd(folder, given.seconds, given.processes, given.seed, given.patience, True)
            )
    whole = Report()
    cases = hostile_cases(given.seed)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        try:
            for report in pool.map(lambda case: hostile(case, given.patience), cases):
                whole.started += report.started
                whole.slowest = max(whole.slowest, report.slowest)
                whole.faults += report.faults
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    faults += _tell(f"hostile files, {len(cases)} cases", whole)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
