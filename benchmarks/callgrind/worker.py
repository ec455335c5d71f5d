"""What runs under valgrind: `python -m benchmarks.callgrind.worker MARKS NAME TIMES`."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import sys

from ..bench import Bench
from .works import WORKS

_WARM_UP = 100


def main(arguments: list[str]) -> None:
    """Does the work TIMES times, with callgrind's counting on."""
    marks = ctypes.CDLL(arguments[0])
    work = WORKS[arguments[1]].prepare(Bench("null", quick=True))
    for _ in range(_WARM_UP):  # blocks are allocated, lazy things are made
        work()
    gc.collect()
    gc.disable()
    repeat = itertools.repeat(None, int(arguments[2]))
    marks.marks_start()
    for _ in repeat:
        work()
    marks.marks_stop()
    # Taking the interpreter down is slow under valgrind and measures nothing.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
