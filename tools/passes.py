"""Runs the passes of the test suite, a few at a time, each in a process of its own: `./dev test`.

Tests that choose their driver, or need none, are a pass of their own. The drivers share the others: one half
runs on lavapipe, the other on SwiftShader, and with the next commit it is the other way round
(tests/support/sampling.py says what runs on both, and what the suite takes samples of). Output comes as lines
that begin with the pass's name, and stands whole in build/logs/pytest-NAME.log. Exits with 1 if a pass fails.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "logs"
AT_A_TIME = (os.cpu_count() or 1) + 1
"""One more than there are processors: a pass waits for a part of its time, for timers and other processes."""
_MARKED = {"own": "own_driver"}
"""The pass of tests with this mark; the passes of drivers have the others."""


class Pass:
    """One run of pytest."""

    def __init__(self, name: str, share: str, shaders: str) -> None:
        self.name = name
        self.share = share
        self.shaders = shaders
        self.log = LOGS / f"pytest-{name}.log"
        self.status: int | None = None
        self.seconds = 0.0
        self.last_line = "did not run"

    def command(self) -> list[str]:
        """The command of the pass."""
        own = _MARKED.get(self.name)
        chosen = ["-m", own or " and ".join(f"not {mark}" for mark in _MARKED.values())]
        report = f"--junitxml={LOGS / f'pytest-{self.name}.xml'}"
        return [sys.executable, "-m", "pytest", "-q", "--color=no", report, *chosen]

    def run(self, shown: threading.Lock) -> None:
        """Runs it; forwards its lines."""
        began = time.monotonic()
        driver = "lavapipe" if self.name in _MARKED else self.name
        environment = {
            **os.environ,
            "KOMPUTE_PY_TEST_DRIVER": driver,
            "KOMPUTE_PY_TEST_SHARE": self.share,
            "KOMPUTE_PY_TEST_SHADERS": self.shaders,
        }
        with (
            self.log.open("w") as log,
            subprocess.Popen(
                self.command(),
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                log.write(line)
                log.flush()
                self.last_line = line.strip() or self.last_line
                with shown:
                    print(f"{self.name:10} | {line}", end="", flush=True)
        self.status = process.returncode
        self.seconds = time.monotonic() - began


def commits() -> int:
    """How many commits there are; 0 without git. By it drivers exchange their shares, and samples move on."""
    try:
        counted = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(counted.stdout)


def shaders() -> Path:
    """A cache of what these compilers made of shaders; what others made is removed.

    The library's own key of an entry has the compilers' versions, not what someone is changing in them.
    """
    native = importlib.util.find_spec("kompute_py._native")
    assert native is not None and native.origin is not None
    files = [Path(native.origin), *sorted(ROOT.glob("kompute_py/_compilers/*.py"))]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = ROOT / ".cache" / "shaders" / key
    for each in folder.parent.glob("*"):
        if each != folder:
            shutil.rmtree(each)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def main(names: list[str]) -> int:
    """Runs the passes `names`: of drivers, and "own"."""
    LOGS.mkdir(parents=True, exist_ok=True)
    drivers = [name for name in names if name not in _MARKED]
    first = commits()
    shares = {name: f"{first + n}/{len(drivers)}" for n, name in enumerate(drivers)}
    compiled = str(shaders())
    passes = [Pass(name, shares.get(name, f"{first}/1"), compiled) for name in names]
    waiting = list(passes)
    shown = threading.Lock()

    def work() -> None:
        while True:
            try:
                each = waiting.pop(0)
            except IndexError:
                return
            each.run(shown)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(AT_A_TIME)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # the passes got it, too
        waiting.clear()
        return 130
    for each in passes:
        print(f"{each.name + ':':12} {each.last_line}", flush=True)
    return 1 if any(each.status != 0 for each in passes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
