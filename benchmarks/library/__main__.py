"""The part `library`: time per element of each function of `kp.ops`, beside NumPy's, on lavapipe.

Prints the least time of a call on tensors, and of NumPy's on arrays, in turns, over a million elements. The
table of docs/reference/library.md takes them from benchmarks/library/measured.json, which `--write` writes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kompute_py as kp
from kompute_py._base.collector import collector_off

from ..parts import DRIVERS, chosen, options_of, parsed, part, take_driver, when
from .calls import CALLS
from .large import made, size

MEASURED = Path(__file__).with_name("measured.json")
"""By area: when it was measured, and by function our time and NumPy's. An area a line."""
_COUNT, _QUICK_COUNT = 1 << 20, 1 << 12
_ROUNDS, _QUICK_ROUNDS = 9, 1
_LIMIT = 1.0  # seconds for the rounds of one function


@part
def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if the driver is missing, 2 for a function that there is not."""
    parser = options_of(
        "library", __doc__, "function", page="the reference of kp.ops", markdown=False, drivers=DRIVERS
    )
    options = parsed(parser, arguments, "quick", driver=DRIVERS[0])
    names = chosen("function", CALLS, options.only)
    take_driver(options)
    count, rounds = (_QUICK_COUNT, _QUICK_ROUNDS) if options.quick else (_COUNT, _ROUNDS)
    found: dict[str, list[str]] = {}
    with kp.Manager() as mgr, mgr:
        for name in names:
            sides, elements = _prepared(mgr, name, count)
            times = [_shown(seconds * 1e9 / elements) for seconds in _least(sides, rounds)]
            ours, numpy = found[name] = [*times, ""][:2]
            print(f"{name:24} {ours:>9} ns per element, NumPy {numpy or '-'}", flush=True)
    if options.write:
        _keep(when(options.driver), found)
    return 0


def measured() -> dict[str, list[str]]:
    """The kept times of our call and of NumPy's, by function."""
    areas = json.loads(MEASURED.read_text()).values()
    return {name: times for area in areas for name, times in area.items() if name != "when"}


def _keep(moment: str, found: dict[str, list[str]]) -> None:
    """Writes the areas that `found` has functions of; those that it lacks keep their times."""
    areas, times = json.loads(MEASURED.read_text()), {**measured(), **found}
    for module, names in kp.ops._MODULES.items():
        if set(names) & set(found):
            kept = {name: times[name] for name in sorted(names) if name in times}
            areas[module.rpartition(".")[2]] = {"when": moment, **kept}
    lines = (f"{json.dumps(name)}: {json.dumps(area)}" for name, area in areas.items())
    MEASURED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _shown(nanoseconds: float) -> str:
    """Two digits, or all before the point."""
    digits = 2 if nanoseconds < 1 else 1 if nanoseconds < 100 else 0
    return f"{nanoseconds:.{digits}f}"


def _prepared(mgr: kp.Manager, name: str, count: int) -> tuple[list[Callable[[], Any]], int]:
    """The call on tensors and NumPy's on arrays, if it has one, and the elements that they work on."""
    call = CALLS[name]
    args, named = call.make(np.random.default_rng(0), count)
    tensors = made(args, mgr.tensor_t)
    function, theirs = getattr(kp.ops, name), call.numpy
    sides: list[Callable[[], Any]] = [lambda: function(*tensors, **named)]
    if theirs is not None:
        sides.append(lambda: theirs(*args, **named))
    return sides, call.elements or max((size(each, "size") for each in args), default=0) or count


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
    sys.exit(main())
