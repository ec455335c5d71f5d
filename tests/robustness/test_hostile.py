"""A sample of ``./dev hostile``: processes that share all files give right numbers, end, and leave
nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hostile import running
from tests.hostile.running import crowd, full_disk, hostile, hostile_cases, scratch
from tests.support.sampling import sampled

pytestmark = [
    pytest.mark.own_driver,
    pytest.mark.skipif(sys.platform == "win32", reason="the files are those of POSIX"),
]
_PATIENCE = 120.0


@pytest.mark.sampled
def test_processes_that_are_killed_harm_no_others():
    with scratch() as folder:
        report = crowd(folder, sampled(1.5, 3), 4, seed=1, patience=_PATIENCE, full=False)
    assert report.faults == []
    assert report.killed > 0


@pytest.mark.sampled
def test_a_full_disk_harms_no_numbers():
    with full_disk() as folder:
        if folder is None:
            pytest.skip("this user cannot mount a file system")
        report = crowd(folder, sampled(1, 2), 4, seed=2, patience=_PATIENCE, full=True)
    assert report.faults == []


ENDED = """
import sys
from tests.hostile.running import crowd, end_on_signals, full_disk
end_on_signals()
with full_disk() as folder:
    print(folder, flush=True)
    crowd(folder, 3600, 2, 1, 3600, True)
"""


def test_a_signal_ends_the_run_and_leaves_nothing(tmp_path):
    with full_disk() as folder:
        if folder is None:
            pytest.skip("this user cannot mount a file system")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", ENDED], stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        folder = run.stdout.readline().strip()
        assert os.path.ismount(folder)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
    assert not os.path.exists(folder) and list(tmp_path.iterdir()) == []
    assert folder not in Path("/proc/mounts").read_text()
    # A killed process may be seen for a moment after its parent's end.
    until = time.monotonic() + 20
    while folder in "".join(_commands()) and time.monotonic() < until:
        time.sleep(0.05)
    assert folder not in "".join(_commands())


def _commands():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            pass  # it has ended


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("case", hostile_cases(3, 4), ids=str)
def test_hostile_files_are_ignored(case):
    assert hostile(case, _PATIENCE).faults == []


# What the processes become in the tests below; FOLDER is the first argument.
FAULTY = {
    "hangs for more than": "import time; time.sleep(3600)",
    "exit status 1": "assert 2 + 2 == 5",
    "exit status -6": "import os; os.abort()",
    "exit status 0": "print('not all of it')",
    "litter: shaders/abc.tmp": "import os; os.makedirs(F + '/shaders'); open(F + '/shaders/abc.tmp', 'w'); "
    "print('done')",
    "has mode 644": "import os; os.umask(0o022); os.makedirs(F + '/shaders'); open(F + '/shaders/a.kpsh', "
    "'w'); print('done')",
}


@pytest.mark.parametrize("says", FAULTY)
def test_faults_are_found(says, monkeypatch):
    monkeypatch.setattr(running, "PROGRAM", "import sys; F = sys.argv[1]\n" + FAULTY[says])
    with scratch() as folder:
        report = crowd(folder, 0, 1, seed=1, patience=2, full=False)
    assert any(says in fault for fault in report.faults), report.faults


def test_a_hostile_file_that_is_written_through_is_found(monkeypatch):
    """A package that followed links: the file that the link points to must not change."""
    program = """
import sys
from pathlib import Path
F = Path(sys.argv[1])
for name in ("shaders/a.kpsh", "pipelines/a.bin", "pipelines/a.bin.lock", "models/model-0.safetensors"):
    path = F / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sys.argv[2].encode() * 100)
    path.chmod(0o600)
print("done")
"""
    monkeypatch.setattr(running, "PROGRAM", program)
    for case, says in (
        ((0, "link"), "wrote through a link"),
        ((0, "dangling"), "wrote through a dangling link"),
    ):
        faults = hostile(case, _PATIENCE).faults
        assert any(says in fault for fault in faults), faults
