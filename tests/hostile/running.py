"""Starts the processes, kills some, fills the disk, puts hostile files in the way, and judges what comes of
it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .files import FOLDER_KINDS, KINDS, make_hostile, make_hostile_folder, needs_root

_ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (
    f"import runpy, sys; sys.path.append({str(_ROOT)!r}); "
    "runpy.run_module('tests.hostile.work', run_name='__main__')"
)
FOLDERS = ("shaders", "pipelines", "models")
_OURS = {
    "shaders": (".kpsh",),
    "pipelines": (".bin", ".bin.lock"),
    "models": tuple(f"model-{n}.safetensors" for n in range(9)),
}


@dataclass
class Report:
    """What was done, and what went wrong."""

    started: int = 0
    killed: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder with what the processes share."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        prepare(folder)
        yield folder


def prepare(folder: Path) -> None:
    """Makes what must be there."""
    for name in ("includes", "models"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "includes" / "add.glsl").write_text("#define ADD 1.0\n")


def start(folder: Path, seed: int, rounds: int, refusals: bool, patience: float) -> subprocess.Popen[str]:
    """One process; 0 rounds for everything once.

    On a busy machine a compilation, too, takes what `patience` gives it.
    """
    environment = {
        **os.environ,
        "KOMPUTE_PY_SHADER_CACHE_DIR": str(folder / "shaders"),
        "KOMPUTE_PY_PIPELINE_CACHE_DIR": str(folder / "pipelines"),
        "KOMPUTE_PY_COMPILE_TIMEOUT": str(patience),
    }
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(seed), str(rounds), str(int(refusals))],
        env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], report: Report, what: str, patience: float) -> None:
    """Waits for a process, and judges it."""
    began = time.monotonic()
    try:
        said, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        report.faults.append(f"{what}: hangs for more than {patience:g} s\n{said[-1500:]}")
        return
    report.slowest = max(report.slowest, time.monotonic() - began)
    if process.returncode != 0 or not said.endswith("done\n"):
        report.faults.append(f"{what}: exit status {process.returncode}\n{said[-1500:]}")


def litter(folder: Path, put: Path | None = None) -> list[str]:
    """Names in the shared folders that are not to be there, and permissions that are too wide; `put` is what
    a test put there.
    """
    found = []
    for name in FOLDERS:
        place = folder / name
        if put == place or not place.is_dir():
            continue
        for each in sorted(place.iterdir()):
            if each == put:
                continue
            if not each.name.endswith(_OURS[name]):
                found.append(f"{name}/{each.name}")
            elif name != "models" and stat.S_IMODE(each.lstat().st_mode) != 0o600:
                found.append(f"{name}/{each.name} has mode {stat.S_IMODE(each.lstat().st_mode):o}")
    return found


def crowd(folder: Path, seconds: float, count: int, seed: int, patience: float, full: bool) -> Report:
    """`count` processes at a time for `seconds`, killed at random; then one that is not killed."""
    report, chance = Report(), random.Random(seed)
    running: list[subprocess.Popen[str]] = []
    end = time.monotonic() + seconds
    next_kill = time.monotonic() + 0.3
    try:
        while time.monotonic() < end:
            while len(running) < count:
                report.started += 1
                running.append(
                    start(folder, seed + report.started, chance.choice((2, 5, 20)), full, patience)
                )
            time.sleep(0.01)
            for process in [each for each in running if each.poll() is not None]:
                running.remove(process)
                finish(process, report, "a process of the crowd", patience)
            if running and time.monotonic() > next_kill:
                next_kill = time.monotonic() + chance.uniform(0.02, 0.4)
                victim = running.pop(chance.randrange(len(running)))
                victim.kill()
                victim.communicate()
                report.killed += 1
        for process in running:
            finish(process, report, "a process of the crowd", patience)
    except BaseException:  # such as a signal that ends the run
        for process in running:
            process.kill()
        for process in running:
            process.communicate()
        raise
    finish(start(folder, seed, 0, full, patience), report, "the last process", patience)
    report.started += 1
    report.faults += [f"litter: {each}" for each in litter(folder)]
    return report


def end_on_signals() -> None:
    """SIGTERM and SIGHUP end this process as an exception does: processes are killed, folders unmounted."""

    def end(number: int, frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


@contextmanager
def full_disk() -> Iterator[Path | None]:
    """A folder on a small file system that is nearly full; None if this user cannot mount one."""
    with tempfile.TemporaryDirectory() as made:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", made], capture_output=True, check=False
        )
        if mounted.returncode != 0:
            yield None
            return
        try:
            folder = Path(made)
            prepare(folder)
            (folder / "filler").write_bytes(bytes(60 << 10))
            yield folder
        finally:
            subprocess.run(["umount", "-l", made], check=False)


def places(folder: Path) -> list[Path]:
    """The paths at which a run makes files, relative to `folder`: one of each kind."""
    kinds = {}
    for name in FOLDERS:
        for each in sorted((folder / name).iterdir()):
            kinds.setdefault((name, each.suffix if name != "models" else ""), each.relative_to(folder))
    return list(kinds.values())


def hostile_cases(seed: int, count: int | None = None) -> list[tuple[int, str]]:
    """(number of the place, kind): all, or `count` at random. The last places are the folders."""
    cases = [(place, kind) for place in range(4) for kind in KINDS]
    cases += [(4 + place, kind) for place in range(len(FOLDERS)) for kind in FOLDER_KINDS]
    cases = [case for case in cases if os.geteuid() == 0 or not needs_root(case[1])]
    return cases if count is None else random.Random(seed).sample(cases, count)


def hostile(case: tuple[int, str], patience: float) -> Report:
    """Runs once, puts a hostile thing in one place, and runs again twice."""
    report = Report()
    number, kind = case
    with scratch() as folder:
        finish(start(folder, 0, 0, False, patience), report, "before", patience)
        found = places(folder)
        if report.faults or len(found) != 4:
            report.faults.append(f"the places are {[str(each) for each in found]}")
            return report
        if number < 4:
            path = folder / found[number]
            content = path.read_bytes()
            path.unlink()
            make_hostile(path, kind, content)
        else:
            path = folder / FOLDERS[number - 4]
            shutil.rmtree(path)
            make_hostile_folder(path, kind)
        what = f"{kind} at {path.relative_to(folder)}"
        outside = {each: each.read_bytes() for each in folder.glob("elsewhere-*")}
        # Only the files of the user's own are refused; a cache is not worth an error.
        refusals = FOLDERS[2] in (path.name, path.parent.name)
        for _ in range(2):
            finish(start(folder, 1, 0, refusals, patience), report, what, patience)
        report.started = 3
        report.faults += [f"{what}: litter: {each}" for each in litter(folder, path)]
        # A parameter file's path is the user's own: links in it are followed, as by open().
        if (folder / "nothing").exists() and not refusals:
            report.faults.append(f"{what}: wrote through a dangling link")
        for each, content in outside.items():
            if each.read_bytes() != content and not refusals:
                report.faults.append(f"{what}: wrote through a link")
    return report
