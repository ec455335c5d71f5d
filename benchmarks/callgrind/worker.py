"""What runs under valgrind: `python -m benchmarks.callgrind.worker MARKS TIMES NAME...`.

Starting Python and importing the library takes most of the time under valgrind, so that happens once: each
piece of work runs in a fork of the process, which begins with the same state whatever else is counted. A fork
has a profile of its own, named after its process.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import sys
import traceback

from ..bench import Bench
from ..calls import WORKS

_WARM_UP = 100


def _work(marks: ctypes.CDLL, name: str, times: int) -> None:
    """Does the work so many times, with callgrind's counting on."""
    work = WORKS[name].prepare(Bench("null", quick=True))
    for _ in range(_WARM_UP):  # blocks are allocated, lazy things are made
        work()
    gc.collect()
    gc.disable()
    repeat = itertools.repeat(None, times)
    marks.marks_start()
    for _ in repeat:
        work()
    marks.marks_stop()


def main(arguments: list[str]) -> None:
    """Prints "NAME PROCESS STATUS" for each piece of work, when it is done."""
    marks, times = ctypes.CDLL(arguments[0]), int(arguments[1])
    for name in arguments[2:]:
        process = os.fork()
        if not process:
            status = 1
            os.dup2(2, 1)  # what the library prints is no answer
            try:
                _work(marks, name, times)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                # Taking the interpreter down is slow under valgrind and measures nothing.
                os._exit(status)
        _, ended = os.waitpid(process, 0)
        print(name, process, os.waitstatus_to_exitcode(ended), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
