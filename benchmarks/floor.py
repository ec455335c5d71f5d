"""The C floor: what the same work costs a careful C++ program, with no Python and no engine in between.

floor.cpp is built when it is needed, and called through ctypes. Each call takes its times inside, so ctypes
adds nothing to them.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np

from .build import build_library


class FloorError(RuntimeError):
    """One of the C floor's Vulkan calls failed; the message says which."""


def build() -> Path:
    """The floor's library, compiled when its sources have changed. Raises BuildError."""
    needs = "it needs a C++20 compiler and the Vulkan headers, libvulkan-dev on Debian"
    return build_library(Path(__file__).with_suffix(".cpp"), needs)


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build()))
    pointer, u64, seconds = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_double
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "error": (ctypes.c_char_p, []),
        "open": (pointer, [ctypes.c_char_p, u64, ctypes.c_uint32]),
        "close": (None, [pointer]),
        "host": (ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_uint32]),
        "eval": (seconds, [pointer, u64]),
        "roundtrip": (seconds, [pointer, u64]),
        "rerecorded_roundtrip": (seconds, [pointer, u64]),
        "create": (seconds, []),
        "copy_open": (pointer, [u64]),
        "copy_close": (None, [pointer]),
        "copy": (seconds, [pointer, u64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"floor_{name}")
        function.restype, function.argtypes = result, arguments
    return library


def _call(name: str, *arguments: Any) -> Any:
    result = getattr(_library(), f"floor_{name}")(*arguments)
    if result is None or (isinstance(result, float) and result < 0):
        raise FloorError(f"The C floor: {_library().floor_error().decode(errors='replace')}")
    return result


def load() -> None:
    """Build the library where needed and open it, before a time is taken."""
    _library()


def create_device() -> float:
    """Seconds to make an instance and a device with one queue."""
    return _call("create")


class Floor:
    """A device with `product = left * right` over 1,024 floats recorded on it, each buffer 4 KiB.

    The methods do the work `times` times and return the seconds for all of them.
    """

    ELEMENTS = 1024

    def __init__(self, spirv: bytes, groups: int) -> None:
        self._handle = _call("open", spirv, len(spirv), groups)

    def host(self, index: int) -> np.ndarray:
        """The host memory that is uploaded (0: left, 1: right) or downloaded to (2: product)."""
        return np.ctypeslib.as_array(_call("host", self._handle, index), (self.ELEMENTS,))

    def eval(self, times: int) -> float:
        """Submit the recorded dispatch and wait for its end."""
        return _call("eval", self._handle, times)

    def roundtrip(self, times: int) -> float:
        """Submit the recorded upload of two buffers, dispatch and download of one, and wait."""
        return _call("roundtrip", self._handle, times)

    def rerecorded_roundtrip(self, times: int) -> float:
        """Record upload, dispatch and download anew, submit and wait."""
        return _call("rerecorded_roundtrip", self._handle, times)

    def close(self) -> None:
        """Destroy the device."""
        _library().floor_close(self._handle)
        self._handle = None


class CopyPair:
    """Two blocks of host memory, in huge pages and touched before, and memcpy between them."""

    def __init__(self, nbytes: int) -> None:
        self._handle = _call("copy_open", nbytes)

    def copy(self, times: int) -> float:
        """Seconds for memcpy from the one block to the other, `times` times."""
        return _call("copy", self._handle, times)

    def close(self) -> None:
        """Free both blocks."""
        _library().floor_copy_close(self._handle)
        self._handle = None
