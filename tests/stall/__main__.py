"""`python -m tests.stall`: which calls stall under which validation layer, and what holds them; then
kompute_py's own waits.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter

from tests.drivers import DriverUnavailableError, environment

from .running import ABOVE, Seen, run, without_vulkan

_LAYERS = (None, "debian", "newer")
_LAYER_LIBRARY = "libVkLayer_khronos_validation.so"


def bare(given: argparse.Namespace) -> bool:
    """The bare program under each layer.

    Returns whether each stall was the layer's: the driver had the value.
    """
    print("Two threads on one timeline semaphore, without kompute_py (stalls: calls longer than a second)")
    sound = True
    shown = False
    for layer in _LAYERS:
        for checks, how in [
            ("sync", "wait"),
            ("sync", "query"),
            ("sync", "any"),
            ("sync", "apart"),
            ("plain", "wait"),
        ]:
            try:
                seen = run(
                    how, driver=given.driver, layer=layer, checks=checks, rounds=given.rounds,
                    seconds=given.seconds, look_inside=not shown,
                )  # fmt: skip
            except DriverUnavailableError as error:
                print(f"  {layer}: {error}")
                break
            print(f"  layer {layer or 'none':6} {checks:5} {how:5}  {describe(seen)}", flush=True)
            sound = sound and set(seen.verdicts) <= {ABOVE}
            if seen.stacks and not shown:
                shown = True
                for thread in holders(seen.stacks):
                    print("    | " + thread.replace("\n", "\n    | "))
    return sound


def describe(seen: Seen) -> str:
    """One line on what a run showed."""
    if not seen.verdicts:
        return f"{seen.rounds} values, no stall"
    lengths = ", ".join(f"{length:.2f}" for length in sorted(seen.lengths)) or "not over when the run ended"
    calls = " and ".join(sorted(seen.calls))
    looks = ", ".join(f"{count} looks: {what}" for what, count in seen.verdicts.items())
    said = ", ".join(f"{count} x {name}" for name, count in seen.messages.items() if "timeout" in name)
    return f"stalls in {calls}, of {lengths} s; {looks}" + (f"; {said}" if said else "")


def holders(stacks: str) -> list[str]:
    """The threads that stand inside the layer, with their innermost frames."""
    threads = re.split(r"(?m)^(?=Thread )", stacks)
    return [
        "\n".join(line[:110] for line in thread.strip().splitlines()[:8])
        for thread in threads
        if _LAYER_LIBRARY in thread
    ]


def ours(given: argparse.Namespace) -> bool:
    """kompute_py's awaits and waits under each layer. Returns whether none stalled."""
    print(
        f"kompute_py: {given.runs} runs of {given.count} awaits, and of as many values between three threads"
    )
    sound = True
    for layer in _LAYERS:
        try:
            variables = without_vulkan() | environment(given.driver, layer)
        except DriverUnavailableError as error:
            print(f"  {layer}: {error}")
            continue
        if layer is None:
            variables["VK_LAYER_PATH"] = "/nonexistent"
        command = [sys.executable, "-m", "tests.stall.awaits", str(given.runs), str(given.count)]
        began = time.monotonic()
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
        longest: Counter[str] = Counter()
        stalls: Counter[str] = Counter()
        for kind, value in (line.split(maxsplit=1) for line in done.stdout.splitlines()):
            if kind == "message":
                stalls[value] += 1
            else:
                longest[kind] = max(longest[kind], float(value))  # type: ignore[assignment]
                stalls["stalls"] += float(value) > 5
        slowest = ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in longest.items())
        print(
            f"  layer {layer or 'none':6}  {dict(stalls)}; longest run: {slowest}; "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
        sound = sound and not any(stalls.values())
    return sound


def main() -> int:
    """Returns 1 if a wait of kompute_py stalled, or a bare one for another cause than the layer."""
    parser = argparse.ArgumentParser(prog="./dev stall", description=__doc__)
    parser.add_argument("--driver", default="lavapipe")
    parser.add_argument("--rounds", type=int, default=5000, help="values that the bare program raises (5000)")
    parser.add_argument("--seconds", type=float, default=25.0, help="at most, for each of its runs (25)")
    parser.add_argument("--runs", type=int, default=50, help="of kompute_py under each layer (50)")
    parser.add_argument("--count", type=int, default=1000, help="awaits in each run (1000)")
    given = parser.parse_args()
    layers_alone = bare(given)
    no_stall = ours(given)
    if not layers_alone:
        print("A bare call stalled before the driver had the value: that is no fault of the layer.")
    return 0 if layers_alone and no_stall else 1


if __name__ == "__main__":
    sys.exit(main())
