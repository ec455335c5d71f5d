"""What every library is measured by.

This folder is run by each library's own interpreter: it imports NumPy and no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LOCAL_SIZE = 64
"""Invocations in a group of the kernels; all sizes are multiples of it, and small enough for groups in one
dimension.
"""

GLSL = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = left[i] * right[i];
}
"""


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


class Library(ABC):
    """A library, opened on the Vulkan device that the process sees, used in the fastest way that its
    documentation shows.
    """

    @abstractmethod
    def about(self) -> str:
        """Its version and the device that it runs on."""

    @abstractmethod
    def transfer(self, array: np.ndarray) -> Transfer:
        """Device memory for the float32 `array`."""

    @abstractmethod
    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        """Device memory and a kernel for two float32 arrays of one size."""
