"""One library's process, and rounds in which all of them take turns."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..paths import ROOT
from .environments import Peer, PeerError, interpreter

_SERVER = Path(__file__).resolve().parent / "libraries" / "serve.py"
_PATIENCE = 180.0  # seconds for one answer


FIRST = "first"
"""The action that starts a process each time."""


@dataclass(frozen=True)
class Task:
    """What is measured: `action` is one of libraries/serve.py's, `what` the size of each array in bytes."""

    name: str
    title: str
    action: str
    what: int


class Worker:
    """A library at work in its process."""

    def __init__(self, peer: Peer, environment: dict[str, str], *arguments: str) -> None:
        """Starts it. Raises PeerError where it cannot be installed or does not start."""
        self._peer, self._environment = peer, environment
        self.name = peer.name
        python = interpreter(peer)
        variables = os.environ | environment
        # Ours comes from this repository; a peer's environment has all that it needs, and no other module of
        # ours.
        variables.pop("PYTHONPATH", None)
        if not peer.requirements:
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(python), str(_SERVER), peer.name, *arguments], env=variables, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip
        try:
            self.about: str = self._answer()["about"]
        except PeerError:
            self.close()
            raise

    def prepare(self, task: Task, seconds: float) -> None:
        """Makes what the task needs and checks its numbers; a block is to take about so many seconds.

        Raises PeerError.
        """
        self._first = task.action == FIRST
        if self._first:
            self.measure()  # fills the caches
        else:
            self._ask(prepare=task.action, what=task.what, seconds=seconds)

    def measure(self) -> float:
        """Seconds for the task, over one block."""
        if self._first:
            start = time.perf_counter()
            worker = Worker(self._peer, self._environment, "--first")
            seconds = time.perf_counter() - start
            worker.close()
            return seconds
        return float(self._ask(measure=True)["seconds"])

    def _ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except OSError:
            raise self._ended() from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        # A read has no time limit on every system; a process that is no more ends it.
        watch = threading.Timer(_PATIENCE, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise self._ended()
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise PeerError(f"{self.name}: {answer['failed']}")
        return answer

    def _ended(self) -> PeerError:
        status = self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-3:]
        return PeerError(f"{self.name}: its process ended with status {status}: {' / '.join(last)}")

    def close(self) -> None:
        """Ends the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # of input that a dead process has not read
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    generations: int
    """Times that all processes are started anew: a driver's threads stay where the system once placed them.
    """
    rounds: int
    """Blocks of each library in each generation."""
    block_seconds: float
    limit: float
    """Seconds for one task in a generation, after which no further round is begun."""


_FIRST_ROUNDS = 3  # each takes a second or two for each library
SHORT = Plan(generations=1, rounds=2, block_seconds=0.005, limit=5.0)


def take_turns(
    workers: list[Worker], task: Task, plan: Plan, failed: Callable[[Worker, PeerError], None]
) -> dict[str, list[float]]:
    """Seconds by library: a block of each in turns, the order reversed every other round.

    Libraries that fail are missing.
    """
    ready = []
    for worker in workers:
        try:
            worker.prepare(task, plan.block_seconds)
        except PeerError as error:
            failed(worker, error)
        else:
            ready.append(worker)
    taken: dict[str, list[float]] = {worker.name: [] for worker in ready}
    end = time.monotonic() + plan.limit
    for number in range(min(plan.rounds, _FIRST_ROUNDS) if task.action == FIRST else plan.rounds):
        if number > 1 and time.monotonic() > end:
            break
        for worker in reversed(ready) if number % 2 else list(ready):
            try:
                taken[worker.name].append(worker.measure())
            except PeerError as error:
                failed(worker, error)
                ready.remove(worker)
    return taken
