"""Processes that compile HLSL and Slang (worker.py). A compiler that crashes or hangs only ends one of them.

A process starts when the first source needs one, serves one compilation at a time and is kept for the next.
Several threads use several processes, up to `_MOST`. A process ends with its parent, even during a
compilation, because its standard input ends. After a fork the child starts its own processes.
"""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from .. import _native
from .worker import read, write

if TYPE_CHECKING:
    import subprocess

_MOST = max(1, min(4, os.cpu_count() or 1))
_TAIL = 400  # the most characters of a process's output in a message
_OPTIMIZES = "\0optimizer\0"  # the process prints it when the optimizer starts
_SLICE = 0.25  # seconds between checks for Ctrl-C during waits that cannot be interrupted


class Ended(Exception):
    """The process ended during a compilation; the text says how.

    `step` is "optimizer" if the compiler itself had finished.
    """

    step = ""


class TimedOut(Exception):
    """The compilation exceeded the time limit, in seconds: `args[0]`."""


class _Process:
    """One process and a thread that talks to it, because writing to or reading from a process may block."""

    def __init__(self) -> None:
        import subprocess
        import tempfile

        self.served = 0
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        to_child, self._write_end = os.pipe()
        self._read_end, from_child = os.pipe()
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
        try:
            # -I and -S keep the user's environment out. Its own session keeps the terminal's Ctrl-C away.
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable or "python3", "-I", "-S", worker, _native.__file__],
                stdin=to_child,
                stdout=from_child,
                stderr=self._printed,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._write_end)
            os.close(self._read_end)
            self._printed.close()
            raise
        finally:
            os.close(to_child)
            os.close(from_child)
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(
            target=_converse,
            args=(self._write_end, self._read_end, self._requests, self._answers),
            name="kompute_py shader compiler",
            daemon=True,
        ).start()

    def ask(self, request: tuple[Any, ...], seconds: float) -> dict[str, Any]:
        """The answer. Raises Ended or TimedOut; after either the process cannot be used again.

        A process that still starts and loads its compiler does so within the same limit.
        """
        self._requests.put(request)
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimedOut(seconds)
            try:
                answer = self._answers.get(timeout=min(left, _SLICE))
            except queue.Empty:
                continue
            if answer is None:
                how, step = self._end()
                ended = Ended(how)
                ended.step = step
                raise ended
            self.served += 1
            return answer

    def _end(self) -> tuple[str, str]:
        """How the process ended, and in which step."""
        try:
            code = self.process.wait(5)
        except Exception:  # it closed its output but still runs: the caller kills it
            return "it stopped answering", ""
        if code == 0:
            return "", ""
        step = ""
        try:
            self._printed.seek(0)
            text = self._printed.read().decode(errors="replace")
            if _OPTIMIZES in text:
                step = "optimizer"
            printed = " ".join(text.replace(_OPTIMIZES, " ").split())[-_TAIL:]
        except (OSError, ValueError):
            printed = ""
        if code < 0:
            import signal

            try:
                how = signal.Signals(-code).name
            except ValueError:
                how = f"signal {-code}"
        else:
            how = f"exit status {code}"
        return (f"{how}: {printed}" if printed else how), step

    def stop(self) -> None:
        """Ends the process and its thread."""
        try:
            self.process.kill()
            self.process.wait(5)
        except Exception:  # it has already ended
            pass
        self._requests.put(None)
        self._printed.close()

    def abandon(self) -> None:
        """In the child of a fork: closes the inherited pipes. The process stays with the parent."""
        self.process.returncode = 0  # so that nothing here waits for it
        for end in (self._write_end, self._read_end):
            try:
                os.close(end)
            except OSError:
                pass


def _converse(
    target: int,
    source: int,
    requests: queue.SimpleQueue[Any],
    answers: queue.SimpleQueue[Any],
) -> None:
    try:
        while (request := requests.get()) is not None:
            write(target, request)
            answers.put(read(source))
    except (OSError, EOFError, MemoryError, ValueError):
        pass
    finally:
        os.close(target)
        os.close(source)
        answers.put(None)


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
    global _pool
    for process in _pool.everyone():
        process.abandon()
        _inherited.append(process)
    _pool = _Pool()


_inherited: list[_Process] = []  # the parent's, kept so that their files are not closed again
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _stop_all() -> None:
    for process in _pool.everyone():
        process.stop()


def ask(request: tuple[Any, ...], seconds: float) -> dict[str, Any]:
    """The answer of a compiler process to a request (worker.py describes both).

    Raises Ended if the process crashes on it, TimedOut after `seconds`, and OSError if no process can be
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
