"""The comparison with other libraries: with NumPy alone, which needs no installation, and with libraries that
fail.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.parts import DRIVERS
from benchmarks.peers import __main__ as command
from benchmarks.peers import environments, processes
from benchmarks.peers.environments import OURS, PEERS, Peer, PeerError
from benchmarks.peers.processes import SHORT, Task, Worker, take_turns
from tests.conftest import DRIVER

pytestmark = pytest.mark.own_driver

TASKS = {task.name: task for task in command.TASKS}
SMALL = ["--quick", "--peer", "numpy", "--only", "call-4k", "--only", "stream-1m"]


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    """On the test's own driver, where peers can work on it."""
    if DRIVER not in DRIVERS:
        pytest.skip(f"{DRIVER} is no driver for this comparison")


def test_prints_both_and_what_they_are_and_writes_nothing_unless_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main([*SMALL, "--driver", DRIVER, "--markdown"]) == 0
    text = capsys.readouterr().out
    assert "kompute_py 0" in text and "NumPy" in text and "quick run" in text and "Not measured" not in text
    assert "| ------" in text
    for name in ("call-4k", "stream-1m"):
        assert TASKS[name].title in text
    assert list(tmp_path.iterdir()) == []


def test_what_users_do_is_measured(capsys):
    """serve.py checks the numbers before it takes times."""
    tasks = ["call-16", "many-4k", "first"]
    words = [word for task in tasks for word in ("--only", task)]
    assert command.main(["--quick", "--peer", "numpy", *words, "--driver", DRIVER]) == 0
    lines = capsys.readouterr().out.splitlines()
    for task in tasks:
        row = next(line for line in lines if line.startswith(TASKS[task].title))
        assert row.count("(") == 1 and row.endswith("x)")


def test_a_figure_that_is_missing_has_failed():
    task = TASKS["call-4k"]
    taken = {"kompute_py": None, "numpy": 1e-6}
    table = command.lines([task], list(taken), lambda task, name: taken[name])
    assert table == [["", *taken], [task.title, "failed", "1.00 us"]]


def test_ratios():
    assert [command.times(ratio) for ratio in (253.4, 9.436, 0.53, 0.0123, 0.00056)] == [
        "253 x", "9.44 x", "0.53 x", "0.012 x", "0.0006 x",
    ]  # fmt: skip


def test_the_systems_python_serves_if_it_has_the_module(monkeypatch):
    monkeypatch.setattr(environments, "_imports", lambda python, *modules: modules == ("numpy", "there"))
    assert environments.interpreter(Peer("one", ("one",), of_system="there")) == environments._SYSTEM
    assert environments._imports.__name__ == "<lambda>"


def test_whether_an_interpreter_has_modules(tmp_path):
    here = Path(sys.executable)
    assert environments._imports(here, "json", "numpy")
    assert not environments._imports(here, "json", "no_such_module_at_all")
    assert not environments._imports(tmp_path / "no-python", "json")


def test_a_library_that_does_not_start_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(command, "PEERS", {OURS.name: OURS, "broken": Peer("broken")})
    assert command.main(["--quick", "--only", "call-4k", "--driver", DRIVER]) == 1
    text = capsys.readouterr().out
    assert "Not measured:\n- broken: ModuleNotFoundError: No module named 'with_broken'" in text
    assert "failed" in text and "kompute_py 0" in text


def test_unknown_tasks_are_refused(capsys):
    assert command.main(["--only", "nothing-like-it"]) == 2
    assert "call-16" in capsys.readouterr().err


def test_a_library_that_cannot_be_installed_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "cache_directory", lambda: tmp_path)
    run = environments._run

    def without_venv(peer, command):  # this interpreter serves: an environment takes seconds
        if "venv" not in command:
            run(peer, command)
            return
        python = Path(command[-1], "bin/python")
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)

    monkeypatch.setattr(environments, "_run", without_venv)
    # No such folder: pip needs no network to say so.
    missing = Peer("missing", (str(tmp_path / "there-is-none"),))
    with pytest.raises(PeerError, match=r"missing cannot be installed: .*there-is-none"):
        environments.interpreter(missing)
    assert not list(tmp_path.glob("peers/*/ready"))


def test_a_task_that_fails_ends_only_itself():
    worker = Worker(PEERS["numpy"], {})
    failures = []
    try:
        wrong = Task("wrong", "no such action", "wrong", 4096)
        assert take_turns([worker], wrong, SHORT, lambda worker, error: failures.append(str(error))) == {}
        taken = take_turns([worker], TASKS["call-4k"], SHORT, lambda *what: failures.append(str(what)))
    finally:
        worker.close()
    assert failures == ["numpy: KeyError: 'wrong'"]
    assert len(taken["numpy"]) == SHORT.rounds
    assert all(0 < seconds < 60 for seconds in taken["numpy"])


def test_a_process_that_dies_is_shown():
    worker = Worker(PEERS["numpy"], {})
    worker._process.kill()
    worker._process.wait()
    with pytest.raises(PeerError, match="numpy: its process ended with status -9"):
        worker.prepare(TASKS["call-4k"], 0.001)
    worker.close()


def test_one_that_says_nothing_is_ended(monkeypatch):
    worker = Worker(PEERS["numpy"], {})
    monkeypatch.setattr(processes, "_PATIENCE", 0.2)
    with pytest.raises(PeerError, match="its process ended"):
        worker._answer()  # nothing was asked
    worker.close()


def test_wrong_numbers_are_found(tmp_path):
    source = (
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy as np, serve\n"
        "try: serve._check(np.zeros(3), np.ones(3))\n"
        "except RuntimeError as error: print(error)"
    )
    folder = str(processes._SERVER.parent)
    done = subprocess.run([sys.executable, "-c", source, folder], capture_output=True, text=True, check=True)
    assert "wrong numbers" in done.stdout
