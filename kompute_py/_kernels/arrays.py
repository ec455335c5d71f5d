"""The memory behind what a kernel is given in place of a Tensor: arrays, and everything that shares its
memory as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _native
from .._base.arrays import refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, KomputeError, kind_of
from .._memory.dlpack import CPU_MEMORY, capsule_of, dtype_of
from .._shaders.signature import Parameter
from .calls import array_of, pack_block

# The errors with which producers of DLPack, the buffer protocol or __array_interface__ refuse.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError, KomputeError)
_PLAIN = (list, tuple, int, float, complex, str, np.generic)


def array_for(parameter: Parameter, value: Any, what: str) -> np.ndarray[Any, Any]:
    """`value`, which is no Tensor, as an array of what `parameter` is given; of what the shader writes, over
    the same memory.

    Raises ArgumentTypeError if `value` is not an array of numbers, or has no memory for results;
    InvalidArgumentError if that memory is read-only or shared between elements.
    """
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, Mapping):
        return pack_block(parameter, value, what)
    else:
        refuse_mask(value, what)
        try:
            shared = None if isinstance(value, _PLAIN) else _shared(value, what)
        except ArgumentTypeError:
            if parameter.written or not hasattr(value, "__array__"):
                raise
            shared = None
        if shared is None:
            return _by_rows(parameter, _converted(parameter, value, what), what)
        array = shared
    if parameter.written:
        _require_written(array, value, what)
    return _by_rows(parameter, array, what) if parameter.kind == "uniform buffer" else array


def _by_rows(parameter: Parameter, array: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """The block's bytes, if `array` has the rows and columns of the matrix, or of the array of matrices, that
    is all a constant block
    has; else `array`, which is bytes already."""
    members = parameter.layout["members"]
    if parameter.kind != "uniform buffer" or len(members) != 1 or members[0]["columns"] <= 1:
        return array
    sole = members[0]
    if array.dtype != parameter.dtype or array.shape != (*sole["array"], sole["rows"], sole["columns"]):
        return array
    return pack_block(parameter, {sole["name"]: array}, what)


def _shared(value: Any, what: str) -> np.ndarray[Any, Any] | None:
    """An array over the memory of `value`; None if it shares none."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    try:
        buffer = memoryview(value)
    except (TypeError, BufferError, ValueError):
        buffer = None
    try:
        if buffer is not None:
            return np.asarray(buffer)
        if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            where = int(value.__dlpack_device__()[0])
            if where not in CPU_MEMORY:
                raise ArgumentTypeError(
                    f"it lies on DLPack device type {where}, not in the CPU's memory: move it there first "
                    "(torch: .cpu())"
                )
            return _native.dlpack_import(capsule_of(value, False), dtype_of)
        interface = getattr(value, "__array_interface__", None)
        if isinstance(interface, dict) and isinstance(interface.get("data"), tuple):
            return np.asarray(value)
    except _REFUSALS as error:
        raise ArgumentTypeError(f"{what} is {kind_of(value)} whose memory cannot be used: {error}") from None
    return None


def _converted(parameter: Parameter, value: Any, what: str) -> np.ndarray[Any, Any]:
    """A copy of `value` as an array: the results of a shader would be lost in it."""
    numbers = isinstance(value, _PLAIN) and not isinstance(value, (str, complex))
    if not numbers and not hasattr(value, "__array__"):
        raise ArgumentTypeError(
            f"{what} is {kind_of(value)}; give a Tensor, an Image, an array, or anything that shares "
            "its memory "
            "through the buffer protocol or DLPack"
        )
    if parameter.written:
        dtype = "np.float32" if parameter.dtype is None else f"np.{parameter.dtype}"
        try:
            shape = str(np.shape(value)) if numbers else "n"
        except ValueError:  # lists of uneven length
            shape = "n"
        raise ArgumentTypeError(
            f"{what} is written by the shader, and the results cannot be put into {kind_of(value)}"
            f"{'' if numbers else ', which converts to an array by a copy'}: give a Tensor or an array, such "
            "as "
            f"np.zeros({shape}, {dtype}), or anything whose memory the buffer protocol or DLPack shares"
        )
    return array_of(parameter, value, what)


def _require_written(array: np.ndarray[Any, Any], value: Any, what: str) -> None:
    noun = "array" if isinstance(value, np.ndarray) else type(value).__name__
    if not array.flags.writeable:
        raise InvalidArgumentError(f"{what} is written by the shader; the {noun} is read-only")
    if (
        array.size
        and 0 in array.strides
        and any(stride == 0 and n > 1 for stride, n in zip(array.strides, array.shape, strict=True))
    ):
        raise InvalidArgumentError(
            f"{what} is written by the shader; elements of the {noun} share memory (strides "
            f"{array.strides}): give a copy"
        )
