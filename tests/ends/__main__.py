"""`python -m tests.ends [TIMES] [PATTERN]`: runs each script so many times, and shows a table of how they
ended.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from .running import judge, run
from .states import STATES


def main() -> int:
    """Returns 1 if a script did not end as it is to."""
    parser = argparse.ArgumentParser(prog="./dev ends", description=__doc__)
    parser.add_argument("times", nargs="?", type=int, default=50, help="how often each script runs (50)")
    parser.add_argument("pattern", nargs="?", default="", help="only scripts with this text in their name")
    parser.add_argument("--driver", default=os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe"))
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    given = parser.parse_args()
    names = [name for name in STATES if given.pattern in name]
    width = max(map(len, names), default=0)
    failures = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for name in names:
            state = STATES[name]
            ends = list(pool.map(lambda _, state=state: run(state, given.driver), range(given.times)))
            wrong = Counter(problem for end in ends if (problem := judge(state, end)))
            failures += sum(wrong.values())
            slowest = max(end.seconds for end in ends)
            print(
                f"{name:{width}}  {len(ends) - sum(wrong.values()):3} of {len(ends)}  slowest {slowest:5.1f} "
                "s",
                flush=True,
            )
            for problem, count in wrong.items():
                print(f"    {count} x {problem}")
            if wrong:
                bad = next(end for end in ends if judge(state, end))
                print("    | " + (bad.out + bad.err).strip().replace("\n", "\n    | ")[-2000:], flush=True)
    print(f"{len(names)} states, {given.times} times each on {given.driver}: {failures} ends were wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
