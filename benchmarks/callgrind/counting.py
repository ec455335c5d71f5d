"""Counts instructions with valgrind: the work's alone, not those of starting Python and making a Manager."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from ..build import build_library
from ..drivers import driver_environment
from ..paths import ROOT, cache_directory
from .works import WORKS

TIMES = 500
_TOTAL = re.compile(r"^(?:totals|summary):\s*(\d+)", re.MULTILINE)


class CountError(RuntimeError):
    """The instructions cannot be counted; the message says what is missing or what failed."""


def count(name: str) -> float:
    """Instructions for one piece of work.

    Raises CountError or BuildError.
    """
    return next(count_all([name]))[1]


def count_all(names: Sequence[str], keep: dict[str, Path] | None = None) -> Iterator[tuple[str, float]]:
    """The name and the instructions of each piece of work, as it is done; `keep` says by name where a profile
    of callgrind's goes.

    Raises CountError or BuildError.
    """
    for name in names:
        if name not in WORKS:
            raise CountError(f"there is no work {name!r}; there are: {', '.join(WORKS)}")
    if not shutil.which("valgrind"):
        raise CountError("valgrind is not installed; on Debian and Ubuntu: apt install valgrind")
    needs = "it needs valgrind/callgrind.h, which Debian's package valgrind has"
    marks = build_library(Path(__file__).with_name("marks.cpp"), needs)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as folder, tempfile.TemporaryFile("w+") as errors:
        scratch = Path(folder)
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        command += [f"--callgrind-out-file={scratch}/%p"]
        command += [sys.executable, "-m", "benchmarks.callgrind.worker", str(marks), str(TIMES), *names]
        # The same hashes, so the same dictionaries, in every run. A compiler is slow under valgrind.
        variables = os.environ | driver_environment("null")
        variables |= {"PYTHONHASHSEED": "0", "KOMPUTE_PY_COMPILE_TIMEOUT": "600"}
        with subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdout is not None
            done = 0
            try:
                for line in process.stdout:
                    name, number, status = line.split()
                    if int(status):
                        raise CountError(_failure(f"counting {name!r} under valgrind", status, errors))
                    profile = scratch / number
                    yield name, _total(name, profile)
                    if keep and name in keep:
                        shutil.copyfile(profile, keep[name])
                    done += 1
            finally:
                if done < len(names):
                    process.kill()
        if done < len(names):
            raise CountError(_failure(f"counting {names[done]!r} under valgrind", process.returncode, errors))


def _total(name: str, profile: Path) -> float:
    found = _TOTAL.findall(profile.read_text(errors="replace"))
    if not found:
        raise CountError(f"callgrind wrote no total for {name!r}")
    return int(found[-1]) / TIMES


def _failure(what: str, status: object, errors: TextIO) -> str:
    errors.seek(0)
    tail = "\n".join(errors.read().strip().splitlines()[-20:])
    return f"{what} failed ({status}):\n{tail}"
