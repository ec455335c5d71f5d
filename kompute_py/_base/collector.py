"""Switches the garbage collector off: during measurements, and while many objects are made that all stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_blocks = 0
_was_on = False


@contextmanager
def collector_off() -> Iterator[None]:
    """Disables garbage collection inside the block, as timeit does, and enables it again if it was enabled.

    Blocks may be nested, and run on several threads: the last one to end enables it.
    """
    global _blocks, _was_on
    with _lock:
        if _blocks == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0 and _was_on:
                gc.enable()
