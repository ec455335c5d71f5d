"""Starting up: importing, opening a device, making an algorithm."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from .bench import Bench
from .figures import DRIVERS, NO_DRIVER, TIMES, Measured, figure
from .paths import ROOT, cache_directory
from .timing import gather, ratio


def fresh(what: str) -> tuple[float, bool]:
    """Seconds that benchmarks.fresh measured in an interpreter of its own, and whether it was interrupted."""
    environment = dict(os.environ)
    # As after an installation: bytecode is on disk. A user's setting or a read-only source tree must not
    # decide that.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(cache_directory() / "bytecode")
    # The pipeline cache is part of what a Manager opens by default, but not the user's own one.
    environment["KOMPUTE_PY_PIPELINE_CACHE_DIR"] = str(cache_directory() / "pipelines")
    environment["KOMPUTE_PY_VALIDATION"] = "0"
    command = [sys.executable, "-m", "benchmarks.fresh", what]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what!r} in a fresh interpreter failed:\n{done.stderr.strip()}")
    seconds, interruptions = done.stdout.split()
    return float(seconds), interruptions != "0"


def _fresh_pairs(bench: Bench, ours: str, theirs: str, threaded: bool = False) -> Measured:
    for what in (ours, theirs):
        fresh(what)  # writes bytecode, warms the system's file cache

    def measure_round(reverse: bool) -> tuple[list[float], bool]:
        measured = {what: fresh(what) for what in ((theirs, ours) if reverse else (ours, theirs))}
        return [measured[ours][0], measured[theirs][0]], not threaded and (
            measured[ours][1] or measured[theirs][1]
        )

    mine, other = gather(bench.plan.scaled(0.15), measure_round, threaded=threaded)
    return Measured(mine, other, ratio(mine, other))


@figure(
    "algorithm", "algorithm from SPIR-V that this Manager has seen", "us", "lavapipe", 60, 15,
    drivers=DRIVERS
)  # fmt: skip
def seen_algorithm(bench: Bench) -> Measured:
    make, tensors, groups = bench.manager.algorithm, bench.tensors, (bench.GROUPS, 1, 1)
    # A copy, so that equal bytes are found, not the same object.
    spirv = bytes(bytearray(bench.spirv))
    kept = [make(tensors, bench.spirv, groups)]

    def run(times: int) -> float:
        made = []
        clock = time.perf_counter
        start = clock()
        for _ in range(times):
            made.append(make(tensors, spirv, groups))
        return clock() - start

    measured = bench.compare(run, times=100)
    del kept
    return measured


@figure(
    "import", "import kompute_py, after NumPy", "ms", drivers=(NO_DRIVER,), baseline="import numpy",
    must=25, aim=15
)  # fmt: skip
def import_package(bench: Bench) -> Measured:
    return _fresh_pairs(bench, "import", "numpy")


@figure(
    "manager", "make a Manager in a fresh process", TIMES, "lavapipe", 1.3, 1.1, drivers=DRIVERS,
    baseline="instance and device in C"
)  # fmt: skip
def make_manager(bench: Bench) -> Measured:
    return _fresh_pairs(bench, "manager", "floor", bench.threaded)
