"""Runs one phase in this process, and says what it held after each tenth."""

from __future__ import annotations

import gc
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import kompute_py as kp

from .phases import PHASES

GROWTH = 1.10  # most that the resident memory at the end may be of that after the first tenth
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE


def run(name: str, scale: float) -> dict[str, Any]:
    """A phase at that part of its size: the seconds, the resident bytes and the counts after each tenth."""
    warnings.simplefilter("ignore", ResourceWarning)
    phase = PHASES[name]
    turns = max(20, round(phase.turns * scale))
    # What is kept by intention is kept before the first tenth is over.
    options: dict[str, Any] = {} if scale >= 1 else {"recent_pipelines": min(128, turns // 40)}
    began = time.monotonic()
    marks: list[int] = []
    counts: list[dict[str, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        # Of this process, which ends after it. Beside other work, at a low priority, a compilation may take its time.
        os.environ |= {"KOMPUTE_PY_SHADER_CACHE_DIR": folder, "KOMPUTE_PY_COMPILE_TIMEOUT": "3600"}
        with kp.Manager(pipeline_cache_dir=folder, **options) as mgr:
            turn = phase.begin(mgr, Path(folder), turns)
            done = 0
            for tenth in range(1, 11):
                end = turns * tenth // 10
                for n in range(done, end):
                    turn(n + 1)
                done = end
                mgr.synchronize()
                gc.collect()
                marks.append(resident())
                counts.append({**mgr.memory.pipelines._asdict(), "alive": kp.alive()})
    return {
        "phase": name,
        "turns": turns,
        "seconds": time.monotonic() - began,
        "resident": marks,
        "counts": counts,
    }


def judge(result: dict[str, Any]) -> str:
    """What is wrong with it; "" if nothing is."""
    first, last = result["resident"][0], result["resident"][-1]
    grown = last / first
    if grown > GROWTH:
        return f"{result['phase']}: resident memory grew from {first >> 20} to {last >> 20} MiB ({grown:.2f})"
    for name, count in result["counts"][-1].items():
        before = result["counts"][0][name]
        if count > before * GROWTH + 2:
            return f"{result['phase']}: {before} {name} after the first tenth are {count} at the end"
    return ""
