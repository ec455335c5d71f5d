"""Work that goes on while the host does something else."""

from __future__ import annotations

import os
import subprocess
import sys

from .bench import Bench
from .figures import TIMES, Measured, figure
from .paths import ROOT
from .timing import Sample, ratio


@figure(
    "overlap", "20 x eval_async beside as much host work", TIMES, "lavapipe", 1.1, drivers=("lavapipe",),
    baseline="the longer of the two alone"
)  # fmt: skip
def overlap(bench: Bench) -> Measured:
    # A driver for the CPU with all its threads leaves no core for the host; how many it has is read once.
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.overlap", "3" if bench.quick else "21"],
        cwd=ROOT,
        env=dict(os.environ) | {"LP_NUM_THREADS": "1", "KOMPUTE_PY_VALIDATION": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"benchmarks.overlap failed:\n{done.stderr.strip()}")
    rounds = [[float(part) for part in line.split()] for line in done.stdout.splitlines()]
    both = Sample(tuple(both for _, _, both in rounds))
    longer = Sample(tuple(max(device, host) for device, host, _ in rounds))
    return Measured(both, longer, ratio(both, longer))
