"""Runs two threads on one timeline semaphore, with nothing of kompute_py between them and Vulkan, and judges
what stalls.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.drivers import environment, manifest
from tests.drivers.locate import compile_program

SOURCE = Path(__file__).resolve().parent / "bare.cpp"
VALIDATION = "VK_LAYER_KHRONOS_validation"

# What a stall can be, from the driver's own counter while it lasts.
ABOVE = "above the driver"  # the value is there: a layer keeps the call
BELOW = "value not there"  # the driver's, or the program's that did not raise it


@dataclass
class Seen:
    """What one run of the bare program showed."""

    rounds: int = 0
    lengths: list[float] = field(default_factory=list)  # of calls longer than a second, in seconds
    calls: Counter[str] = field(default_factory=Counter)  # in which a thread was seen to stall
    verdicts: Counter[str] = field(default_factory=Counter)  # one for each look at a stalled thread
    messages: Counter[str] = field(default_factory=Counter)  # of the layer
    stacks: str = ""  # of all threads in the first stall


def without_vulkan() -> dict[str, str]:
    """The environment without what steers the loader and the layers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("VK_", "KP_NULL"))}


@functools.cache
def program() -> Path:
    """The bare program, compiled if its source is new."""
    return compile_program("stall", SOURCE, ["-lvulkan", "-ldl"])


def verdict(awaited: int, driver_has: int) -> str:
    """What keeps a call that waits for `awaited` while the driver's own counter is at `driver_has`."""
    return ABOVE if driver_has >= awaited else BELOW


def stacks(process: int) -> str:
    """The native stacks of a process's threads; "" if there is no gdb, or it may not look."""
    if not shutil.which("gdb"):
        return ""
    command = ["gdb", "-p", str(process), "-batch", "-nx", "-ex", "thread apply all backtrace 8"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=500, check=False)
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith(("Thread ", "#")))


def run(
    how: str,
    *,
    driver: str = "lavapipe",
    layer: str | None = None,
    checks: str = "sync",
    rounds: int = 3000,
    late_ms: int = 0,
    seconds: float = 30.0,
    look_inside: bool = False,
) -> Seen:
    """Runs the bare program for at most `seconds`.

    Args:
        how: "wait", "any", "query" or "apart": see bare.cpp.
        driver: the driver below.
        layer: the validation layer, "debian" or "newer"; None for none.
        checks: "sync" or "plain": with synchronization validation or without.
        rounds: how many values are raised.
        late_ms: so long before each, in milliseconds.
        look_inside: take the stacks of the threads in the first stall (with gdb).
    """
    variables = without_vulkan() | environment(driver)
    if layer is not None:
        variables["VK_LAYER_PATH"] = environment(driver, layer)["VK_LAYER_PATH"]
        variables["VK_INSTANCE_LAYERS"] = VALIDATION
    icd = manifest(driver)
    library = json.loads(icd.read_text())["ICD"]["library_path"]
    command = [str(program()), library, checks, how, str(rounds), str(late_ms)]
    seen = Seen()
    with (
        tempfile.TemporaryDirectory() as scratch,
        subprocess.Popen(
            command, cwd=scratch, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        began = time.monotonic()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                _take(seen, line.split())
                if look_inside and seen.verdicts and not seen.stacks:
                    seen.stacks = stacks(process.pid) or "no gdb"
            status = process.wait()
        finally:
            killer.cancel()
        if status != 0 and time.monotonic() - began < seconds:
            raise RuntimeError(f"{' '.join(command)} ended with {status}")
    return seen


def _take(seen: Seen, words: list[str]) -> None:
    match words:
        case ["stall", call, awaited, has]:
            seen.calls[call] += 1
            seen.verdicts[verdict(int(awaited), int(has))] += 1
        case ["long", _, length]:
            seen.lengths.append(float(length))
        case ["message", name]:
            seen.messages[name] += 1
        case ["rounds", count, _]:
            seen.rounds = int(count)
        case _:
            pass
