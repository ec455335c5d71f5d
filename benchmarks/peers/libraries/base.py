"""What every library is measured by.

This folder is run by each library's own interpreter: it imports NumPy and no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

Call = Callable[[], np.ndarray]
"""What is timed: it ends when all is done, and gives the result in an array of the caller's: one made before,
or a new one where the library has no other way."""

LOCAL_SIZE = 64
"""Invocations in a group of the kernels."""
ROW = 32768
"""Groups in the first dimension, of which devices take 65,535 at most; larger grids have several rows."""

_HEAD = """#version 450
layout(local_size_x = 64) in;
"""
ADD_GLSL = (
    _HEAD
    + """layout(set = 0, binding = 0) buffer Data { float data[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] += 1.0; }
"""
)
FRAME_GLSL = (
    _HEAD
    + """layout(set = 0, binding = 0) readonly buffer Source { float source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { float target[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < target.length()) target[i] = 2.0 * source[i] + 1.0; }
"""
)


def groups_of(count: int) -> tuple[int, int]:
    """Groups for so many elements, in rows of `ROW`."""
    groups = -(-count // LOCAL_SIZE)
    return (groups, 1) if groups <= ROW else (ROW, -(-groups // ROW))


class Library(ABC):
    """A library, opened on the Vulkan device that the process sees, used in the fastest way that its
    documentation shows. `caches`: with the caches on disk that it has by default; without them, nothing is
    taken from earlier processes.
    """

    @abstractmethod
    def __init__(self, caches: bool = False) -> None: ...

    @abstractmethod
    def about(self) -> str:
        """Its version and the device that it runs on."""

    @abstractmethod
    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        """The product of two float32 arrays in a third, as a user would call a kernel; where the library has
        no kernels that take arrays, with buffers that are kept.
        """

    @abstractmethod
    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        """`count` dispatches that each add 1 to the float32 `array` on the device, and the array there."""

    @abstractmethod
    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        """Computes 2 x + 1 of each frame into the results, in turn, as if they came from a file."""
