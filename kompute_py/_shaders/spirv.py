"""SPIR-V from what the caller gave: one rule for every call that takes a shader.

SPIR-V is given as

- bytes, a bytearray, or a memoryview of any format: the memory as it is;
- an array of integers (NumPy, array.array, ctypes, mmap; in any byte order and layout). 8-bit integers are
  bytes; wider ones are words, one for each element. int32 counts as its bits;
- a list or tuple of ints: words from 0 to 2**32 - 1;
- a file: a path object, or a str on one line that ends in ``.spv``;
- a `ShaderModule`, a `Kernel`, or any object with a method ``to_spirv()`` that returns one of these, a file
  excepted.

A module in the other byte order is converted.
"""

from __future__ import annotations

import array
import os
from typing import Any

import numpy as np

from .._base.arrays import refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._base.types import DeviceMemoryObject
from .._compilers.spirv_words import module_bytes

_MOST_BYTES = 1 << 30  # of a module
_TAKEN = "bytes, an array of uint32, a list of ints, the path of a .spv file, or an object with to_spirv()"


def to_spirv(given: Any) -> bytes:
    """The module that `given` is or names, in this machine's byte order.

    Raises InvalidArgumentError if the content is not SPIR-V, ArgumentTypeError if `given` is of another type
    or source text, NotFoundError for a path with no file. Errors of an object's own ``to_spirv()`` are passed
    on.
    """
    if type(given) is bytes:
        return module_bytes(given)
    if isinstance(given, str | os.PathLike):
        return module_bytes(bytes_of(given), os.fsdecode(given))
    return module_bytes(bytes_of(given))


def bytes_of(given: Any) -> bytes:
    """The bytes alone, whatever they are. Raises what `to_spirv` raises, but not for what the bytes are."""
    if isinstance(given, str | os.PathLike):
        return _content(given)
    plain = _plain(given)
    if plain is not None:
        return plain
    convert = None if isinstance(given, type) else getattr(given, "to_spirv", None)
    if not callable(convert):
        raise ArgumentTypeError(f"A shader as SPIR-V is {_TAKEN}, not {type(given).__name__}")
    made = convert()
    plain = _plain(made)
    if plain is None:
        raise ArgumentTypeError(f"to_spirv() returned {kind_of(made)}; it must return bytes")
    return plain


def chosen_entry(given: Any, entry: str | None) -> str | None:
    """`entry`, or else the entry point that `given`, a ShaderModule or Kernel, has selected, or None."""
    if entry is not None:
        return entry
    chosen = getattr(getattr(given, "module", given), "entry", None)
    return chosen if isinstance(chosen, str) else None


def _content(given: str | os.PathLike[str]) -> bytes:
    # Only files need the compilers' part of the package.
    from .._compilers.compile import is_source_file, path_of
    from .._compilers.limits import read_file

    path = path_of(given)
    if path is None:
        raise ArgumentTypeError(
            "The shader is a str, and this call takes SPIR-V. Compile the source first: kp.compile(source)"
        )
    if is_source_file(path):
        raise InvalidArgumentError(
            f"{os.fspath(path)!r} is a file of source by its name, and this call takes SPIR-V. Compile it "
            "first: kp.compile(path)"
        )
    return read_file(path, "SPIR-V")


def _plain(given: Any) -> bytes | None:
    """The bytes of memory, arrays and lists of ints; None for anything else."""
    if isinstance(given, bytes | bytearray):
        return bytes(given)
    if isinstance(given, memoryview):
        try:
            return given.tobytes()
        except ValueError as error:
            raise InvalidArgumentError(f"The shader is a memoryview that cannot be read: {error}") from None
    if isinstance(given, list | tuple):
        try:
            return array.array("I", given).tobytes()
        except TypeError:
            raise ArgumentTypeError(f"A shader as a list has ints; this one is {shown(given):.100}") from None
        except (ValueError, OverflowError):
            raise InvalidArgumentError(
                f"A shader as a list has ints from 0 to 2**32 - 1; this one is {shown(given):.100}"
            ) from None
    if not isinstance(given, np.ndarray):
        if isinstance(given, DeviceMemoryObject):
            return None
        try:
            given = np.asarray(memoryview(given))
        except (TypeError, ValueError, BufferError):
            return None
    refuse_mask(given, "The shader")
    return _of_integers(given)


def _of_integers(words: np.ndarray[Any, Any]) -> bytes:
    dtype = words.dtype
    if dtype.kind not in "ui":
        raise ArgumentTypeError(f"A shader as an array has dtype uint32; this one has {dtype}")
    if words.nbytes > _MOST_BYTES:
        raise InvalidArgumentError(
            f"A shader as an array of {words.nbytes} bytes is larger than any module: {_MOST_BYTES} at most"
        )
    if dtype.itemsize == 8 and words.size and not 0 <= int(words.min()) <= int(words.max()) < 2**32:
        raise InvalidArgumentError(
            f"A shader as an array has words from 0 to 2**32 - 1; this one, of {dtype}, has {words.min()} to "
            f"{words.max()}"
        )
    return (words if dtype.itemsize == 1 else words.astype(np.uint32)).tobytes()
