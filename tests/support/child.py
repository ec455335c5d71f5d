"""Runs a function of a test module in a process of its own.

For what cannot be had in the test's process: another driver (the loader reads its variables once), the null
driver's control of it, a missing loader, a signal, an interpreter that exits.

An interpreter that starts and imports NumPy, pytest and hypothesis takes half a second, most children far
less. So one process imports them, and forks the children. It loads nothing of Vulkan: a child has the loader,
driver and layers of its own variables, and its interpreter ends as any does.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import io
import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from tests.drivers import environment
from tests.support.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]
_AT_START = ("LD_", "PYTHON")
"""How the variables begin that a process reads when it starts."""
_OF_CHILDREN = {"PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": "default"}
# Not `python -m`: the repository stands last on the path, since the installed package must win over the
# sources.
_SERVE = "import sys; sys.path.append(sys.argv[1]); from tests.support.child import serve; serve()"
_one_at_a_time = threading.Lock()
_SPAWN = multiprocessing.get_context("spawn")


def run_child(
    function: Callable[..., Any],
    *arguments: Any,
    driver: str | None = None,
    layer: str | None = None,
    config: str | None = None,
    env: dict[str, str] | None = None,
    timeout: float = sampled(500, 1000),
) -> Any:
    """`function(*arguments)` in another interpreter; arguments and the result pass through JSON.

    `driver`, `layer` and `config` are those of `tests.drivers.environment`; without `driver`, the one of the
    tests. `env` comes on top. Fails with the child's output when it does not end with success.
    """
    variables = dict(os.environ)
    if driver is not None:
        # What the tests' own driver and layer need is not for the child's.
        of_another = ("VK_", "KP_NULL_DRIVER")
        variables = {name: value for name, value in variables.items() if not name.startswith(of_another)}
        variables |= environment(driver, layer, config)
    variables |= _OF_CHILDREN | (env or {})
    with tempfile.TemporaryDirectory() as scratch:
        # Not in the repository: Python puts the current directory first.
        here = Path(scratch, "here")
        here.mkdir()
        done = _ended(scratch, here, variables, function, arguments, timeout)
        output = (done.stdout + done.stderr).strip()
        assert done.returncode == 0, f"{function.__name__} in a child ended with {done.returncode}:\n{output}"
        result = Path(scratch, "result")
        assert result.exists(), f"{function.__name__} in a child gave no result:\n{output}"
        return json.loads(result.read_text())


def python(
    *arguments: str | os.PathLike[str],
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = sampled(500, 1000),
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """What `python -c CODE`, `python -m MODULE` or `python SCRIPT` would print and end with, in such a child.

    Its modules of the standard library and NumPy, pytest, hypothesis and kompute_py are imported already:
    what tests imports or the start of an interpreter takes `subprocess.run`. `env` comes on top of the
    variables of the tests.
    """
    words = [os.fspath(each) for each in arguments]
    with tempfile.TemporaryDirectory() as scratch:
        return _ended(scratch, Path(cwd or "."), os.environ | env, interpret, words, timeout)


def start(target: Callable[..., object], *given: Any) -> tuple[SpawnProcess, Connection]:
    """Runs `target(pipe, *given)` in an interpreter that starts; the process, and our end of the pipe."""
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=target, args=(there, *given))
    process.start()
    there.close()
    return process, here


def interpret(first: str, *words: str) -> None:
    """For a child: runs what an interpreter with this command line does."""
    if first == "-m":
        sys.argv[:] = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    code, *rest = words if first == "-c" else (Path(first).read_text(encoding="utf-8"), *words)
    sys.argv[:] = [first, *rest]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(code, "<string>" if first == "-c" else first, "exec"), vars(main))


def command(without: str, *arguments: str) -> dict[str, Any]:
    """For a child: the command line where a module cannot be imported; its status, and what it printed."""
    for name in [without, *(each for each in sys.modules if each.startswith(f"{without}."))]:
        sys.modules[name] = None  # type: ignore[assignment]
    from kompute_py.cli import main

    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        status = main(list(arguments))
    return {"returncode": status, "stdout": out.getvalue(), "stderr": errors.getvalue()}


def _ended(
    scratch: str,
    here: Path,
    variables: Mapping[str, str],
    function: Callable[..., Any],
    arguments: Sequence[Any],
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    """How the child ended, and what it printed; it is killed when the time is over."""
    place = str(here.resolve())
    wanted = json.dumps([scratch, place, dict(variables), function.__module__, function.__name__, arguments])
    with _one_at_a_time:
        server = _server(*((name, value) for name, value in variables.items() if name.startswith(_AT_START)))
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(wanted + "\n")
        server.stdin.flush()
        child = int(server.stdout.readline())
        timer = threading.Timer(timeout, os.kill, (child, signal.SIGKILL))
        timer.start()
        try:
            status = int(server.stdout.readline())
        except BaseException:  # the test's own time is over
            os.kill(child, signal.SIGKILL)
            server.stdout.readline()  # the next child's answers come after it
            raise
        finally:
            timer.cancel()
    printed, errors = (Path(scratch, name).read_text(errors="replace") for name in ("output", "errors"))
    return subprocess.CompletedProcess(arguments, status, printed, errors)


@functools.cache
def _server(*at_start: tuple[str, str]) -> subprocess.Popen[str]:
    """One for each set of variables `at_start`. It ends with this process, whose end of the pipe closes."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(_AT_START)}
    return subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(ROOT)], env=others | dict(at_start), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def serve() -> None:
    """Forks a child for each line of the input; says its number, then how it ended."""
    for module in ("numpy", "pytest", "hypothesis", "typer.rich_utils", "rich.progress", "kompute_py"):
        importlib.import_module(module)
    gc.freeze()
    try:
        wanted = _forked()
    except KeyboardInterrupt:
        return
    if wanted:
        _become(*json.loads(wanted))


def _forked() -> str:
    """The line for which this process is the child; "" in the server, when the input ends."""
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            return line
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return ""


def _become(
    scratch: str, here: str, variables: dict[str, str], module: str, function: str, arguments: list[Any]
) -> None:
    os.chdir(here)
    for number, name in enumerate((os.devnull, "output", "errors")):
        file = os.open(os.path.join(scratch, name), os.O_RDWR | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(variables)
    result = getattr(importlib.import_module(module), function)(*arguments)
    Path(scratch, "result").write_text(json.dumps(result))
