"""Runs the scripts, and judges how they ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from tests.drivers import environment

from .states import PRELUDE, State

# What no end may say.
_BAD = re.compile(
    r"terminate called|Fatal Python error|Segmentation|double free|AssertionError|Exception ignored(?! in "
    r"atexit)"
)
# How long after `ready()` Ctrl-C is pressed.
_REACTION = 0.3


@dataclass(frozen=True)
class End:
    """How a script ended."""

    status: int | None  # None: it hung
    seconds: float
    out: str
    err: str


def variables(state: State, driver: str) -> dict[str, str]:
    """The environment of a script."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("VK_", "KP_NULL_DRIVER"))
    }
    kept |= environment(state.driver or driver, None, state.config)
    return kept | {"PYTHONFAULTHANDLER": "", "PYTHONUNBUFFERED": "1"}


def run(state: State, driver: str) -> End:
    """Runs the script once."""
    with tempfile.TemporaryDirectory() as scratch:
        script = os.path.join(scratch, "script.py")
        with open(script, "w") as file:
            file.write(PRELUDE + state.script)
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, script], cwd=scratch, env=variables(state, driver), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        head = ""
        for _ in range(state.interrupts):
            for line in process.stdout:
                head += line
                if line == "ready\n":
                    break
            time.sleep(_REACTION)
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=state.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return End(None, time.monotonic() - began, head + out, err)
        return End(process.returncode, time.monotonic() - began, head + out, err)


def judge(state: State, end: End) -> str:
    """What is wrong with how it ended; "" if nothing is."""
    if end.status is None:
        return f"hangs: it ran for more than {state.seconds:g} s"
    if end.status != state.status:
        return f"exit status {end.status}, not {state.status}"
    if bad := _BAD.search(end.err):
        return f"says {bad.group()!r}"
    if state.prints and not re.search(state.prints, end.out):
        return f"does not print {state.prints!r}"
    if state.says and not re.search(state.says, end.err):
        return f"does not say {state.says!r}"
    expected = state.tracebacks or state.status != 0 or "ignored in atexit" in end.err
    if "Traceback" in end.err and not expected:
        return "shows a traceback"
    return ""
