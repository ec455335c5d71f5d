"""Runs one library for `benchmarks.peers`: `python serve.py LIBRARY`. Reads a JSON object a line, answers
with one.

Asked {"prepare": TASK, "seconds": S}, it makes what the task needs, checks that the task gives the right
numbers, and finds how often it fits into S seconds. Asked {"measure": TASK}, it does it so often and answers
{"seconds": for each}.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable

import numpy as np
from base import Library

_WARM = 3
_LONG = 0.2  # seconds; work that takes so long needs no further try
_MOST = 2000


def _numbers(count: int) -> np.ndarray:
    return (np.arange(count) % 1021).astype(np.float32)


def _check(got: np.ndarray, wanted: np.ndarray) -> None:
    if not np.array_equal(np.asarray(got).reshape(-1), wanted):
        raise RuntimeError("the library gives wrong numbers")


def _upload(library: Library, nbytes: int) -> Callable[[], object]:
    array = _numbers(nbytes // 4)
    transfer = library.transfer(array)
    transfer.upload()
    _check(transfer.download(), array)
    return transfer.upload


def _download(library: Library, nbytes: int) -> Callable[[], object]:
    array = _numbers(nbytes // 4)
    transfer = library.transfer(array)
    transfer.upload()
    _check(transfer.download(), array)
    return transfer.download


def _operands(nbytes: int) -> tuple[np.ndarray, np.ndarray]:
    left = _numbers(nbytes // 4)
    return left, np.full_like(left, 3)


def _round_trip(library: Library, nbytes: int) -> Callable[[], object]:
    left, right = _operands(nbytes)
    multiplication = library.multiplication(left, right)
    _check(multiplication.round_trip(), left * right)
    left += 1  # what is uploaded is the array as it is at each call
    _check(multiplication.round_trip(), left * right)
    return multiplication.round_trip


def _dispatch(library: Library, nbytes: int) -> Callable[[], object]:
    left, right = _operands(nbytes)
    multiplication = library.multiplication(left, right)
    multiplication.round_trip()
    multiplication.dispatch()
    _check(multiplication.product(), left * right)
    return multiplication.dispatch


_TASKS = {"upload": _upload, "download": _download, "roundtrip": _round_trip, "dispatch": _dispatch}


def _timed(work: Callable[[], object], times: int) -> float:
    clock = time.perf_counter
    start = clock()
    for _ in range(times):
        work()
    return (clock() - start) / times


def _prepare(library: Library, task: str, nbytes: int, seconds: float) -> tuple[Callable[[], object], int]:
    work = _TASKS[task](library, nbytes)
    took = _timed(work, 1)
    for _ in range(_WARM - 1):
        if took < _LONG:
            took = min(took, _timed(work, 1))
    return work, max(1, min(_MOST, round(seconds / max(took, 1e-9))))


def main() -> None:
    """Answers until its input ends."""
    # Libraries print what they like: the answers have a channel of their own.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**content: object) -> None:
        print(json.dumps(content), file=channel, flush=True)

    try:
        library: Library = importlib.import_module(f"with_{sys.argv[1]}").LIBRARY()
        answer(about=library.about())
    except Exception as error:
        answer(failed=f"{type(error).__name__}: {error}")
        return
    work: Callable[[], object] | None = None
    times = 1
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "prepare" in request:
                work = None  # the task before gives its memory back first
                gc.collect()
                work, times = _prepare(library, request["prepare"], request["nbytes"], request["seconds"])
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
