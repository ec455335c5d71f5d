"""The memory behind what a kernel is given in place of a Tensor: arrays, and everything that shares its
memory as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .. import _native
from .._base.arrays import keeps_finite, refuse_mask
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    KomputeError,
    instead_of,
    kind_of,
    shown,
)
from .._memory.dlpack import CPU_MEMORY, capsule_of, dtype_of
from .._memory.strided import StridedView
from .._shaders.layout import tail_of
from .._shaders.push import pack_struct
from .._shaders.signature import Parameter
from .._shaders.type_text import type_text

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
        return _pack_block(parameter, value, what)
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
    return _pack_block(parameter, {sole["name"]: array}, what)


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
        usual = (
            "give a Tensor, an Image, an array, or anything that shares its memory through the buffer "
            "protocol or DLPack"
        )
        raise ArgumentTypeError(f"{what} is {kind_of(value)}; {instead_of(value, usual)}")
    if parameter.written and isinstance(value, StridedView):
        raise ArgumentTypeError(
            f"{what} is written by the shader, which takes dense memory, and the view has strides "
            f"{value.strides}: part = kp.ops.ascontiguousarray(view) copies it; run the kernel with "
            "part, then view.copy_from(part)"
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
    return _array_of(parameter, value, what)


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


def _array_of(parameter: Parameter, value: Any, what: str) -> np.ndarray[Any, Any]:
    """A list, a number, or what converts itself to an array, as one.

    Numbers of Python take the binding's dtype; they must fit.
    """
    refuse_mask(value, what)
    try:
        array = np.array(value, subok=True)
    except FailedPreconditionError:  # of a part of a Tensor
        raise
    except (TypeError, ValueError, RuntimeError, BufferError) as error:  # RuntimeError: torch's
        raise ArgumentTypeError(f"{what} is not an array of numbers: {error}") from None
    refuse_mask(array, what)  # of its own __array__
    array = np.asarray(array)
    wanted = parameter.dtype
    own = hasattr(value, "__array__") and not isinstance(value, np.generic)
    if array.size == 0 and wanted is not None and not own:
        return array.astype(wanted)  # an empty list
    if own or wanted is None:
        return array  # of a dtype that was chosen: it is compared, not converted
    kind = array.dtype.kind
    # Integers beyond 64 bits are objects.
    if kind not in "biuf" and not (kind == "O" and all(isinstance(each, int) for each in array.flat)):
        raise ArgumentTypeError(
            f"{what} is {parameter.type}, which holds {wanted}; {shown(value):.60} is not made of such "
            "numbers"
        )
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            converted = array.astype(wanted)
        if wanted.kind == "f":  # rounds, and must not become infinite
            fits = bool(np.isfinite(converted).all()) if kind == "O" else keeps_finite(array, converted)
        else:
            fits = np.array_equal(converted, array)
    except OverflowError:
        fits = False
    if not fits:
        raise InvalidArgumentError(
            f"{what} is {parameter.type}, which holds {wanted}; {shown(value):.60} has other values"
        )
    return converted


def _pack_block(parameter: Parameter, value: Mapping[str, Any], what: str) -> np.ndarray[Any, Any]:
    """The bytes of a block from its members by name."""
    if parameter.written or tail_of(parameter.layout) is not None:
        why = "is written by the shader" if parameter.written else "ends with an array of run-time length"
        raise ArgumentTypeError(
            f"{what} {why}: give an array, np.zeros(..., kp.struct_dtype(kernel, {parameter.name!r})), not a "
            "dict"
        )
    packed = pack_struct(parameter.layout, value, what)
    # Of a sole member the caller may as well have given its numbers: so it has their dtype.
    return np.frombuffer(packed, np.uint8 if parameter.dtype is None else parameter.dtype)


def is_number_for_array(parameter: Parameter, value: Any) -> bool:
    """Whether `value` is one number and `parameter` an array that the shader reads."""
    number = isinstance(value, (int, float, np.generic)) and not isinstance(value, np.void)
    return number and not parameter.written and tail_of(parameter.layout) is not None


def refuse_number(
    parameter: Parameter, value: Any, what: str, others: Iterable[tuple[Parameter, Any]]
) -> None:
    """Raises for one number instead of an array: the shader would find one element, and zeros beyond it.

    `others` are parameters with what they are given: an array of as many elements as the first array has is
    what to give instead.
    """
    tail = tail_of(parameter.layout)
    assert tail is not None
    kind = type_text({**tail, "array": ()})
    _array_of(parameter, value, what)  # raises if the array's dtype lacks the number
    number = value.item() if isinstance(value, np.generic) else value
    code = repr(number) if not isinstance(number, float) or math.isfinite(number) else f"float('{number}')"
    dtype = parameter.dtype if parameter.dtype is not None else np.dtype(type(number))
    shape = next((each for p, given in others if (each := _shape_like(parameter, p, given)) is not None), "n")
    raise InvalidArgumentError(
        f"{what} is {parameter.type}, an array, and {code} is one number: beyond it the shader would read "
        "zeros. Declare a push constant "
        f"instead (layout(push_constant) uniform P {{ {kind} {parameter.name}; }};)"
        + ("" if parameter.is_record else f", or give an array: np.full({shape}, {code}, np.{dtype})")
    )


def _shape_like(parameter: Parameter, other: Parameter, given: Any) -> tuple[int, ...] | None:
    """The shape of an array for `parameter` with as many elements as `other` is `given`; None if it has none
    to be counted.
    """
    tail, counted = tail_of(parameter.layout), tail_of(other.layout)
    if tail is None or counted is None or not hasattr(given, "nbytes"):
        return None
    elements = given.nbytes // counted["array_strides"][-1]
    item = 1 if parameter.dtype is None else parameter.dtype.itemsize
    numbers = tail["array_strides"][-1] // item
    if given.ndim and given.shape[-1] * given.itemsize == counted["array_strides"][-1] and numbers > 1:
        return (*given.shape[:-1], numbers)
    if given.size == elements and numbers == 1:
        return tuple(given.shape)
    return (elements,) if numbers == 1 else (elements, numbers)
