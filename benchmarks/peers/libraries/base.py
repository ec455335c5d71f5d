"""What every library is measured by.

This folder is run by each library's own interpreter: it imports NumPy and no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LOCAL_SIZE = 64
"""Invocations in a group of the kernels."""
ROW = 32768
"""Groups in the first dimension, of which devices take 65,535 at most; larger grids have several rows."""

_HEAD = """#version 450
layout(local_size_x = 64) in;
"""
_INDEX = "uint i = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * 2097152;"
GLSL = (
    _HEAD
    + """
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() {
    """
    + _INDEX
    + """
    if (i < product.length()) product[i] = left[i] * right[i];
}
"""
)
ADD_GLSL = (
    _HEAD
    + """
layout(set = 0, binding = 0) buffer Data { float data[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] += 1.0; }
"""
)
FRAME_GLSL = (
    _HEAD
    + """
layout(set = 0, binding = 0) readonly buffer Source { float source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { float target[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < target.length()) target[i] = 2.0 * source[i] + 1.0; }
"""
)


def groups_of(count: int) -> tuple[int, int]:
    """Groups for so many elements, in rows of `ROW`."""
    groups = -(-count // LOCAL_SIZE)
    return (groups, 1) if groups <= ROW else (ROW, -(-groups // ROW))


@dataclass(frozen=True)
class Transfer:
    """An array of the caller's and device memory of its size; each call ends when the data has arrived."""

    upload: Callable[[], object]
    download: Callable[[], np.ndarray]
    """What the device holds, in an array of the caller's: one made before, or a new one where the library has
    no other way.
    """


@dataclass(frozen=True)
class Multiplication:
    """product = left * right of two arrays of the caller's; each call ends when that is done."""

    round_trip: Callable[[], np.ndarray]
    """Uploads both, multiplies, and gives the product in an array of the caller's."""
    dispatch: Callable[[], object]
    """Multiplies what is on the device and leaves the product there."""
    product: Callable[[], np.ndarray]
    """The product that is on the device."""


@dataclass(frozen=True)
class Additions:
    """An array on the device, to which 1 is added so many times, in a dispatch each."""

    run: Callable[[], object]
    """All dispatches; ends when the last is done."""
    read: Callable[[], np.ndarray]


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
    def transfer(self, array: np.ndarray) -> Transfer:
        """Device memory for the float32 `array`."""

    @abstractmethod
    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        """Device memory and a kernel for two float32 arrays of one size."""

    def call(self, left: np.ndarray, right: np.ndarray) -> Callable[[], np.ndarray]:
        """The product of two NumPy arrays in a third, as a user would call a kernel; where the library has no
        kernels that take arrays, with buffers that are kept.
        """
        return self.multiplication(left, right).round_trip

    @abstractmethod
    def additions(self, array: np.ndarray, count: int) -> Additions:
        """`count` dispatches that each add 1 to the float32 `array` on the device."""

    @abstractmethod
    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        """Computes 2 x + 1 of each frame into the results, in turn, as if they came from a file."""
