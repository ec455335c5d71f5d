"""Tells a child process which calls to make, and watches it: a call that ends or blocks the child is a fault
of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from .values import ODD

_ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 10.0  # seconds after which a call hangs
_START = 120.0  # seconds that the child has to begin

PROGRAM = (
    f"import runpy, sys; sys.path.append({str(_ROOT)!r}); "
    "runpy.run_module('tests.fuzz_api.calling', run_name='__main__')"
)

Call = tuple[str, dict[str, str], str]


class Ended(Exception):
    """The child ended, or had to be ended."""


class Watched:
    """A child process, and what it says."""

    def __init__(self, patience: float) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._patience = patience
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=self._scratch.name,
            env={
                **os.environ,
                "KOMPUTE_PY_COMPILE_TIMEOUT": "15",
                "KOMPUTE_PY_SHADER_CACHE_DIR": "",
                "KOMPUTE_PY_PIPELINE_CACHE_DIR": "",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._buffer = b""
        self.callables: list[list[Any]] = self._answer(_START)

    def _answer(self, patience: float) -> Any:
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            if not select.select([self._process.stdout], [], [], patience)[0]:
                self._process.send_signal(signal.SIGABRT)
                self._process.wait()
                raise Ended(f"hangs: it ran for more than {patience:g} s\n{self._said()}")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                status = self._process.wait()
                raise Ended(f"ends the process with status {status}\n{self._said()}")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-3000:].decode(errors="replace")

    def make(self, call: Call) -> str:
        """Makes a call; "" or the fault."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(call).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        fault: str = self._answer(self._patience)
        return fault

    def close(self) -> str:
        """Ends the child; "" or how it failed to end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            try:
                status = self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGABRT)
                status = self._process.wait()
            return f"the end has status {status}\n{self._said()}" if status else ""
        finally:
            self._process.stdout.close()
            self._errors.close()
            self._scratch.cleanup()


def all_calls(callables: list[list[Any]], seed: int) -> Iterator[Call]:
    """Each parameter of each callable with each odd value."""
    for name, kind, parameters in callables:
        if kind == "read":
            yield name, {}, f"{seed}"
        for parameter in parameters:
            for odd in ODD:
                yield name, {parameter: odd}, f"{seed} {name} {parameter} {odd}"


def random_calls(callables: list[list[Any]], count: int, seed: int) -> Iterator[Call]:
    """`count` calls of all callables in turn, each with one odd argument or more."""
    chance = random.Random(seed)
    odd = list(ODD)
    order = list(callables)
    made = 0
    while made < count:
        chance.shuffle(order)
        for name, _, parameters in order:
            if made == count:
                break
            chosen = [p for p in parameters if chance.random() < 0.15]
            if parameters and not chosen:
                chosen = [chance.choice(parameters)]
            yield name, {p: chance.choice(odd) for p in chosen}, f"{seed} {made}"
            made += 1


def _kind(name: str, fault: str) -> str:
    """Faults of one place are one."""
    head = fault.split(": ")[0]
    return head if " at " in head else f"{name} {head}"


def run(
    count: int,
    seed: int,
    only: str = "",
    told: bool = False,
    patience: float = PATIENCE,
    kinds: Collection[str] = (),
    every: int = 1,
) -> tuple[int, list[str]]:
    """Makes `count` calls, or all for 0: how many calls there were, and the faults as text.

    Of all calls, those with the odd values `kinds`, if any are given, and one of `every`.
    """
    faults: dict[str, str] = {}
    child: Watched | None = Watched(patience)
    assert child is not None
    callables = [each for each in child.callables if only in each[0]]
    queue: Iterator[Call] = random_calls(callables, count, seed) if count else all_calls(callables, seed)
    if kinds:
        queue = (call for call in queue if not call[1] or not kinds.isdisjoint(call[1].values()))
    queue = itertools.islice(queue, 0, None, every)
    made = 0
    last = ""
    for call in queue:
        if child is None:
            child = Watched(patience)
        made += 1
        if told and call[0] != last:
            last = call[0]
            print(f"{made} {last}", file=sys.stderr, flush=True)
        try:
            fault = child.make(call)
        except Ended as ended:
            fault, child = str(ended), None
        if fault:
            given = ", ".join(f"{parameter}={odd}" for parameter, odd in call[1].items())
            faults.setdefault(
                _kind(call[0], fault), f"{call[0]}: {fault}\n    with {given} (seed {call[2]!r})"
            )
    if child is not None and (fault := child.close()):
        faults.setdefault(fault, fault)
    return made, list(faults.values())
