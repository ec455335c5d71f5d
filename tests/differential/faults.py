"""Faults put back on purpose, for which the random programs must find a mismatch."""

from __future__ import annotations

import mmap
import os

import numpy as np

from .program import Array, Program


class UnorderedImports(Program):
    """Tensors over one array do not know of each other: its memory has a second address (another mapping of
    one file), through which it is imported again.
    """

    def array(self, nbytes: int) -> tuple[Array, Array]:
        file = os.memfd_create("pages")
        try:
            os.ftruncate(file, nbytes)
            one, other = (np.frombuffer(mmap.mmap(file, nbytes), np.uint32) for _ in range(2))
        finally:
            os.close(file)
        return one, other
