"""Measures functions on the one driver that this process sees; prints a JSON object for each, a line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kompute_py as kp
from kompute_py._base.collector import collector_off

from .calls import CALLS

_COUNT, _QUICK_COUNT = 1 << 20, 1 << 12
_ROUNDS, _QUICK_ROUNDS = 9, 1
_LIMIT = 1.0  # seconds for the rounds of one function


def main(arguments: list[str]) -> None:
    """ARGUMENTS: `quick` or `full`, then names of functions."""
    quick = arguments[0] == "quick"
    with kp.Manager() as mgr, mgr:
        for name in arguments[1:]:
            ours, numpy, elements = _prepared(mgr, name, _QUICK_COUNT if quick else _COUNT)
            times = _least([ours] if numpy is None else [ours, numpy], _QUICK_ROUNDS if quick else _ROUNDS)
            each = [seconds * 1e9 / elements for seconds in times]
            print(
                json.dumps({"name": name, "ours": each[0], "numpy": each[1] if numpy else None}), flush=True
            )


def _prepared(
    mgr: kp.Manager, name: str, count: int
) -> tuple[Callable[[], Any], Callable[[], Any] | None, int]:
    """The call on tensors, NumPy's on arrays, and the elements that they work on."""
    call = CALLS[name]
    args, named = call.make(np.random.default_rng(0), count)
    tensors = [_on_device(mgr, each) for each in args]
    function = getattr(kp.ops, name)
    theirs = call.numpy
    return (
        lambda: function(*tensors, **named),
        None if theirs is None else lambda: theirs(*args, **(named if call.same_names else {})),
        call.elements or max(map(_size, args), default=0) or count,
    )


def _on_device(mgr: kp.Manager, thing: Any) -> Any:
    """Arrays as tensors, also those of lists; anything else as it is."""
    if isinstance(thing, np.ndarray):
        return mgr.tensor_t(thing)
    if isinstance(thing, (list, tuple)):
        return type(thing)(_on_device(mgr, each) for each in thing)
    return thing


def _size(thing: Any) -> int:
    """The elements of an array, or of all arrays of a list."""
    if isinstance(thing, (list, tuple)):
        return sum(map(_size, thing))
    return thing.size if isinstance(thing, np.ndarray) else 0


def _least(sides: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least seconds of each side; they take turns."""
    for each in sides:
        each()
        each()
    least = [float("inf")] * len(sides)
    began = time.perf_counter()
    with collector_off(), np.errstate(all="ignore"):
        for _ in range(rounds):
            for place, each in enumerate(sides):
                start = time.perf_counter()
                each()
                least[place] = min(least[place], time.perf_counter() - start)
            if time.perf_counter() - began > _LIMIT:
                break
    return least


if __name__ == "__main__":
    main(sys.argv[1:])
