"""Runs one library for `benchmarks.peers`: `python serve.py LIBRARY`. Reads a JSON object a line, answers
with one.

Asked {"prepare": TASK, "seconds": S}, it makes what the task needs, checks that the task gives the right
numbers, and finds how often it fits into S seconds. Asked {"measure": TASK}, it does it so often and answers
{"seconds": for each}.

`python serve.py LIBRARY --first` is a fresh process: it multiplies two arrays once, answers and ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from base import Library

_WARM = 3
_LONG = 0.2  # seconds; work that takes so long needs no further try
_MOST = 2000
_DISPATCHES = 1000
_FRAMES = 32


class Work(NamedTuple):
    """What is timed, and for how many of what the time of a call stands."""

    run: Callable[[], object]
    share: int = 1


def _numbers(count: int) -> np.ndarray:
    return (np.arange(count) % 1021).astype(np.float32)


def _check(got: np.ndarray, wanted: np.ndarray) -> None:
    if not np.array_equal(np.asarray(got).reshape(-1), wanted):
        raise RuntimeError("the library gives wrong numbers")


def _operands(nbytes: int) -> tuple[np.ndarray, np.ndarray]:
    left = _numbers(nbytes // 4)
    return left, np.full_like(left, 3)


def _call(library: Library, nbytes: int) -> Work:
    left, right = _operands(nbytes)
    run = library.call(left, right)
    _check(run(), left * right)
    left += 1  # what is multiplied is the array as it is at each call
    _check(run(), left * right)
    return Work(run)


def _many(library: Library, nbytes: int) -> Work:
    array = _numbers(nbytes // 4)
    run, read = library.additions(array, _DISPATCHES)
    run()
    _check(read(), array + _DISPATCHES)
    return Work(run, _DISPATCHES)


def _stream(library: Library, nbytes: int) -> Work:
    frames = [_numbers(nbytes // 4) + number for number in range(_FRAMES)]
    results = [np.zeros_like(frame) for frame in frames]
    run = library.stream(frames, results)
    run()
    for frame, result in zip(frames, results):  # noqa: B905 - a peer's Python may be an older one
        _check(result, 2 * frame + 1)
    return Work(run, _FRAMES)


_TASKS = {"call": _call, "many": _many, "stream": _stream}


def _timed(work: Work, times: int) -> float:
    """Seconds for one."""
    run, start = work.run, time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / (times * work.share)


def _prepare(library: Library, task: str, what: int, seconds: float) -> tuple[Work, int]:
    work = _TASKS[task](library, what)
    took = _timed(work, 1) * work.share
    for _ in range(_WARM - 1):
        if took < _LONG:
            took = min(took, _timed(work, 1) * work.share)
    return work, max(1, min(_MOST, round(seconds / max(took, 1e-9))))


def main() -> None:
    """Answers until its input ends."""
    # Libraries print what they like: the answers have a channel of their own.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**content: object) -> None:
        print(json.dumps(content), file=channel, flush=True)

    first = sys.argv[2:] == ["--first"]
    try:
        library: Library = importlib.import_module(f"with_{sys.argv[1]}").LIBRARY(first)
        if first:
            left, right = _operands(4096)
            _check(library.call(left, right)(), left * right)
        answer(about=library.about())
    except Exception as error:
        answer(failed=f"{type(error).__name__}: {error}")
        return
    work: Work | None = None
    times = 1
    for line in sys.stdin if not first else ():
        request = json.loads(line)
        try:
            if "prepare" in request:
                work = None  # the task before gives its memory back first
                gc.collect()
                work, times = _prepare(library, request["prepare"], request["what"], request["seconds"])
                answer(times=times)
            elif work is None:
                answer(failed="nothing is prepared")
            else:
                gc.disable()
                seconds = _timed(work, times)
                gc.enable()
                answer(seconds=seconds)
        except Exception as error:
            work = None
            answer(failed=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
