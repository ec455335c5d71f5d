"""Runs the passes of the test suite side by side, each in a process of its own: `./dev test`.

Tests that choose their driver, or need none, are two passes, each of half of the files: they often wait, for
timers and other processes, and leave the processors to the others. The drivers share the other tests: one
half runs on lavapipe, the other on SwiftShader, and with the next commit it is the other way round
(tests/support/sampling.py says what runs on both, and what the suite takes samples of). Output comes as lines
that begin with the pass's name, and stands whole in build/logs/pytest-NAME.log. Exits with 1 if a pass fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "logs"
_OWN = {"own1": "1/2", "own2": "2/2"}
"""The passes of tests with drivers of their own, and which part of the files each has."""


class Pass:
    """One run of pytest."""

    def __init__(self, name: str, share: str, shaders: str) -> None:
        files = _OWN.get(name, "")
        self.name = name
        self.log = LOGS / f"pytest-{name}.log"
        self.status: int | None = None
        self.last_line = "did not run"
        marked = "own_driver" if files else "not own_driver"
        report = f"--junitxml={self.log.with_suffix('.xml')}"
        self.command = [sys.executable, "-m", "pytest", "-q", "--color=no", report, "-m", marked]
        self.environment = {
            **os.environ,
            "KOMPUTE_PY_TEST_DRIVER": "lavapipe" if files else name,
            "KOMPUTE_PY_TEST_FILES": files,
            "KOMPUTE_PY_TEST_SHARE": share,
            "KOMPUTE_PY_TEST_SHADERS": shaders,
        }

    def run(self, shown: threading.Lock) -> None:
        """Runs it; forwards its lines."""
        with (
            self.log.open("w") as log,
            subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
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

    The library's own key of an entry has the compilers' versions, not what someone is changing in them: here
    it is the room of compilers in Python, that in the core with the rooms below it, and what binds it.
    """
    sources = ["kompute_py/_compilers/*.py", "native/bindings/bind_shader_compile.*"]
    sources += [f"native/core/{room}/*" for room in ("compiler", "instruments", "spirv", "base")]
    files = [file for each in sources for file in sorted(ROOT.glob(each)) if file.is_file()]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = ROOT / ".cache" / "shaders" / key
    for each in folder.parent.glob("*"):
        if each != folder:
            shutil.rmtree(each)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def main(drivers: list[str]) -> int:
    """Runs the passes of the drivers, and those of tests with drivers of their own."""
    LOGS.mkdir(parents=True, exist_ok=True)
    first, compiled, shown = commits(), str(shaders()), threading.Lock()
    passes = [Pass(name, f"{first}/1", compiled) for name in _OWN]
    passes += [Pass(name, f"{first + n}/{len(drivers)}", compiled) for n, name in enumerate(drivers)]
    threads = [threading.Thread(target=each.run, args=(shown,), daemon=True) for each in passes]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # the passes got it, too
        return 130
    for each in passes:
        print(f"{each.name + ':':12} {each.last_line}", flush=True)
    return 1 if any(each.status != 0 for each in passes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
