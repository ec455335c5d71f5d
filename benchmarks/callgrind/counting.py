"""Counts instructions with valgrind: the work's alone, not those of starting Python and making a Manager."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..build import build_library
from ..drivers import driver_environment
from ..paths import ROOT, cache_directory
from .works import WORKS

TIMES = 500
_TOTAL = re.compile(r"^(?:totals|summary):\s*(\d+)", re.MULTILINE)


class CountError(RuntimeError):
    """The instructions cannot be counted; the message says what is missing or what failed."""


def count(name: str, keep: Path | None = None) -> float:
    """Instructions for one piece of work; `keep` receives callgrind's profile.

    Raises CountError or BuildError.
    """
    if name not in WORKS:
        raise CountError(f"there is no work {name!r}; there are: {', '.join(WORKS)}")
    if not shutil.which("valgrind"):
        raise CountError("valgrind is not installed; on Debian and Ubuntu: apt install valgrind")
    marks = build_library(
        "marks",
        [Path(__file__).with_name("marks.cpp")],
        [],
        "it needs valgrind/callgrind.h, which Debian's package valgrind has",
    )
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        output = Path(scratch) / "callgrind.out"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            f"--callgrind-out-file={output}",
            "--quiet",
        ]
        command += [sys.executable, "-m", "benchmarks.callgrind.worker", str(marks), name, str(TIMES)]
        # The same hashes, so the same dictionaries, in every run.
        variables = os.environ | driver_environment("null") | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            tail = "\n".join(done.stderr.strip().splitlines()[-20:])
            raise CountError(f"counting {name!r} under valgrind failed ({done.returncode}):\n{tail}")
        found = _TOTAL.findall(output.read_text(errors="replace"))
        if keep is not None:
            shutil.copyfile(output, keep)
    if not found:
        raise CountError(f"callgrind wrote no total for {name!r}")
    return int(found[-1]) / TIMES
