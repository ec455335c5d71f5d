"""``python -m tests.differential``: see `./dev random --help`."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from tests.drivers import PROFILES, SYSTEM, DriverUnavailableError, environment

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORIES = ("discrete", "noncoherent", "exotic", "unified")
NULL = tuple(f"memory={each}" for each in MEMORIES) + tuple(f"profile={each}" for each in PROFILES)
DEVICES = ("lavapipe", "swiftshader", *NULL)
STEPS = 60  # of a program
PROGRAMS_A_MANAGER = 25
SECONDS = 120  # that a program may take, on a busy machine, too; then it hangs


class HangError(Exception):
    """A program waited for what never comes."""


def _hangs(*_: object) -> None:
    raise HangError(f"no end after {SECONDS} s")


def explore(
    device: str, operations: int, seed: str, first: int = 0, programs: int | None = None, fault: str = ""
) -> dict[str, Any]:
    """Runs programs in this process until they did `operations` operations; what was done, and the first
    mismatch.
    """
    import kompute_py as kp

    from . import faults
    from .program import Program

    kind: type[Program] = getattr(faults, fault) if fault else Program
    kind.seed()

    logging.getLogger("kompute_py").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", ResourceWarning)  # sequences that are dropped while running
    warnings.simplefilter("ignore", kp.KomputeWarning)  # held work that is cancelled
    null = device not in ("lavapipe", "swiftshader", SYSTEM)
    loop = asyncio.new_event_loop()
    began = time.monotonic()
    done = 0
    count = 0
    kinds: Counter[str] = Counter()
    mgr: kp.Manager | None = None
    trace: list[str] = []
    found: dict[str, Any] | None = None
    while done < operations if programs is None else count < programs:
        number = first + count
        if mgr is None or number % PROGRAMS_A_MANAGER == 0:
            if mgr is not None:
                mgr.destroy()
            options = ({}, {"memory_debug": True}, {"force_staging": True}, {"force_non_coherent": True})
            mgr = kp.Manager(
                0,
                [0, 0, 1] if null else [0, 0],
                **options[number // PROGRAMS_A_MANAGER % len(options)],
                memory_block_size="1 MiB",
            )
        trace.clear()
        program = kind(mgr, (seed, number), dispatch=not null, loop=loop, trace=trace)
        count += 1
        signal.alarm(SECONDS)
        try:
            program.run(STEPS)
        except Exception as error:
            done += program.operations
            found = {"program": number, "error": f"{type(error).__name__}: {error}", "trace": list(trace)}
            if not isinstance(error, AssertionError):
                import traceback

                found["traceback"] = traceback.format_exc()
            break
        finally:
            signal.alarm(0)
        done += program.operations
        kinds += program.kinds
        del program
    seconds = time.monotonic() - began
    if found is None and mgr is not None:
        mgr.destroy()
    del mgr
    loop.close()
    gc.collect()
    violations: list[str] = []
    if null:
        from tests.drivers import null_control

        violations = [str(each) for each in null_control().violations()]
    return {
        "device": device, "programs": count, "operations": done, "seconds": seconds, "kinds": kinds,
        "mismatch": found, "violations": violations, "left": kp.alive() if found is None else 0,
    }  # fmt: skip


def environment_of(device: str, gpu_us: int) -> dict[str, str]:
    """The variables with which a process sees that device only."""
    if device in ("lavapipe", "swiftshader", SYSTEM):
        return environment(device)
    return environment("null", config=f"{device},gpu_us={gpu_us}")


def explore_in_child(device: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """`explore` in a process of its own."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("VK_", "KP_NULL"))}
    variables |= environment_of(device, arguments.gpu_us)
    variables |= {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each) + os.pathsep + str(ROOT)}
    options = {
        "device": device, "operations": arguments.operations, "seed": arguments.seed,
        "first": arguments.first, "programs": arguments.programs, "fault": arguments.fault,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-m", "tests.differential", "--child", json.dumps(options)],
            cwd=scratch,
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    for line in done.stdout.splitlines():
        if line.startswith("result:"):
            result: dict[str, Any] = json.loads(line.removeprefix("result:"))
            return result
    return {"device": device, "ended": done.returncode, "output": done.stdout}


def report(result: dict[str, Any], arguments: argparse.Namespace) -> bool:
    """Prints a line for a device, and what went wrong; whether nothing did."""
    device = result["device"]
    if "ended" in result:
        print(f"{device:24s} the process ended with status {result['ended']}\n{result['output']}")
        return False
    mismatch = result["mismatch"]
    wrong = mismatch or result["violations"] or result["left"]
    rate = result["operations"] / max(result["seconds"], 1e-9)
    print(
        f"{device:24s} {result['operations']:9,} operations, {result['programs']:6,} programs, "
        f"{result['seconds']:6.1f} s ({rate:,.0f}/s): {'FAILED' if wrong else '0 mismatches'}",
        flush=True,
    )
    if mismatch:
        print(f"  program {mismatch['program']}: {mismatch['error']}")
        for line in mismatch["trace"][-arguments.trace :]:
            print(f"    {line}")
        print(mismatch.get("traceback", ""), end="")
        print(
            f"  again: ./dev random --driver {device} --seed {arguments.seed} --first {mismatch['program']} "
            "--programs 1"
        )
    for violation in result["violations"][:8]:
        print(f"  violation: {violation}")
    if result["left"]:
        print(f"  {result['left']} native objects are left alive")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev random",
        description="Random programs on every driver and null-driver profile, against a NumPy model "
        "(tests/differential).",
    )
    parser.add_argument(
        "--operations", type=int, default=20_000, help="how many, on each device (default: 20,000)"
    )
    parser.add_argument(
        "--driver",
        action="append",
        help=f"a device, or several: {', '.join(DEVICES)}; null: all but the first two (default: all)",
    )
    parser.add_argument("--seed", default="0", help="any text; the same seed gives the same programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--programs", type=int, help="how many programs, whatever their operations")
    parser.add_argument(
        "--gpu-us", type=int, default=20, help="microseconds that the null driver takes for a submission"
    )
    parser.add_argument(
        "--trace", type=int, default=60, help="how many of the last operations a mismatch shows"
    )
    parser.add_argument(
        "--fault", default="", help="one of tests/differential/faults.py, put back on purpose"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        faulthandler.enable()
        signal.signal(signal.SIGALRM, _hangs)  # every wait hears signals
        print("result:" + json.dumps(explore(**json.loads(arguments.child))))
        return 0
    chosen = [
        device for each in arguments.driver or DEVICES for device in (NULL if each == "null" else (each,))
    ]
    total = 0
    good = True
    for device in chosen:
        try:
            result = explore_in_child(device, arguments)
        except DriverUnavailableError as error:
            print(f"{device:24s} is not here: {error}")
            good = good and not os.environ.get("CI")
            continue
        total += result.get("operations", 0)
        good = report(result, arguments) and good
    print(f"{total:,} operations in all")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
