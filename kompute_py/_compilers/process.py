"""Processes that compile HLSL and Slang (worker.py). A compiler that crashes or hangs only ends one of them.

A process starts when the first source needs one, serves one compilation at a time and is kept for the next.
Several threads use several processes, up to `_MOST`. A process ends with its parent, even during a
compilation, because its standard input ends. After a fork the child starts its own processes.
"""

from __future__ import annotations

import atexit
import marshal
import os
import queue
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .. import _native
from .worker import write

if TYPE_CHECKING:
    import subprocess

_MOST = max(1, min(4, os.cpu_count() or 1))
_TAIL = 400  # the most characters of a process's output in a message
_SLICE = 0.25  # seconds between checks for Ctrl-C during waits that cannot be interrupted


class Ended(Exception):
    """The process ended during a compilation: how, and "optimizer" if the compiler itself had finished."""


class _Process:
    """One process and a thread that talks to it, because writing to or reading from a process may block."""

    def __init__(self) -> None:
        import subprocess
        import tempfile

        self.served = 0
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
        try:
            # -I and -S keep the user's environment out. Its own session keeps the terminal's Ctrl-C away.
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable or "python3", "-I", "-S", worker, _native.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._printed,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._printed.close()
            raise
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._converse, name="kompute_py shader compiler", daemon=True).start()

    def ask(self, request: tuple[Any, ...], seconds: float) -> dict[str, Any]:
        """The answer. Raises Ended or TimeoutError; after either the process cannot be used again.

        A process that still starts and loads its compiler does so within the same limit.
        """
        self._requests.put(request)
        deadline = time.monotonic() + seconds
        step = ""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                answer = self._answers.get(timeout=min(left, _SLICE))
            except queue.Empty:
                continue
            if answer is None:
                raise Ended(self._how_it_ended(), step)
            if isinstance(answer, str):
                step = answer
                continue
            self.served += 1
            return answer

    def _how_it_ended(self) -> str:
        import signal

        try:
            code = self.process.wait(5)
        except Exception:  # it closed its output but still runs: the caller kills it
            return "it stopped answering"
        self._printed.seek(0)
        printed = " ".join(self._printed.read().decode(errors="replace").split())[-_TAIL:]
        how = next((each.name for each in signal.Signals if each == -code), f"exit status {code}")
        return f"{how}: {printed}" if printed else how

    def stop(self) -> None:
        """Ends the process and its thread."""
        with suppress(Exception):  # it has already ended
            self.process.kill()
            self.process.wait(5)
        self._requests.put(None)
        self._printed.close()

    def close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _converse(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        source = open(self.process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115
        try:
            while (request := self._requests.get()) is not None:
                write(self.process.stdin.fileno(), request)
                while isinstance(answer := marshal.load(source), str):
                    self._answers.put(answer)  # the step that begins
                self._answers.put(answer)
        except (OSError, EOFError, MemoryError, TypeError, ValueError):
            pass
        finally:
            self.close_pipes()
            self._answers.put(None)


class _Pool:
    """The compiler processes of this Python process."""

    def __init__(self) -> None:
        self._slots = threading.BoundedSemaphore(_MOST)
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()

    def take(self) -> _Process:
        while not self._slots.acquire(timeout=_SLICE):
            pass
        try:
            return self._idle.pop()  # the most recently used one
        except IndexError:
            pass
        try:
            process = _Process()
        except BaseException:
            self._slots.release()
            raise
        self._all.add(process)
        return process

    def give_back(self, process: _Process, usable: bool) -> None:
        if usable:
            self._idle.append(process)
        else:
            self._all.discard(process)
        self._slots.release()
        if not usable:
            process.stop()

    def everyone(self) -> list[_Process]:
        return list(self._all)


_pool = _Pool()


def _after_fork() -> None:
    """In the child: the processes stay with the parent."""
    global _pool
    for process in _pool.everyone():
        process.process.returncode = 0  # so that nothing here waits for it
        process.close_pipes()
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _stop_all() -> None:
    for process in _pool.everyone():
        process.stop()


def ask(request: tuple[Any, ...], seconds: float) -> dict[str, Any]:
    """The answer of a compiler process to a request (worker.py describes both).

    Raises Ended if the process crashes on it, TimeoutError after `seconds`, and OSError if no process can be
    started. Ctrl-C ends the wait and the process.
    """
    while True:
        process = _pool.take()
        fresh = process.served == 0
        usable = False
        try:
            answer = process.ask(request, seconds)
            usable = True
            return answer
        except Ended:
            # Earlier compilations or a long idle time may be the cause: a fresh process decides.
            if fresh:
                raise
        finally:
            _pool.give_back(process, usable)
