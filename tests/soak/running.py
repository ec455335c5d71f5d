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
        # Of this process, which ends after it. Beside other work, at a low priority, a compilation may take
        # its time.
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
                use = mgr.memory.pipelines
                counts.append({"alive": kp.alive() - use.unused_modules, **use._asdict()})
            recent = mgr.config.recent_pipelines.value
    return {
        "phase": name, "growth": phase.growth, "turns": turns, "seconds": time.monotonic() - began,
        "resident": marks, "counts": counts, "recent": recent,
    }  # fmt: skip


def judge(result: dict[str, Any]) -> str:
    """What is wrong with it; "" if nothing is."""
    first, last = result["resident"][0], result["resident"][-1]
    grown = last / first
    if grown > result["growth"]:
        return f"{result['phase']}: resident memory grew from {first >> 20} to {last >> 20} MiB ({grown:.2f})"
    before, after = result["counts"][0], result["counts"][-1]
    for name in ("modules", "pipelines"):
        # A pipeline that is kept keeps its module.
        if after[f"unused_{name}"] > 2 * result["recent"]:
            return f"{result['phase']}: {after[f'unused_{name}']} {name} are kept that nothing uses"
        for each in (before, after):
            each[name] -= each[f"unused_{name}"]
    for name in ("alive", "modules", "pipelines", "layouts", "set_layouts", "descriptor_pools", "samplers"):
        if after[name] > before[name] * result["growth"] + 2:
            return (
                f"{result['phase']}: {before[name]} {name} after the first tenth are {after[name]} at the end"
            )
    return ""
