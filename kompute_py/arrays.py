"""From what callers pass as data to the C-contiguous arrays that the core copies from."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentTypeError, InvalidArgumentError
from .types import data_type_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

FLOAT32 = np.dtype(np.float32)


def check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype` in native byte order. Raises ArgumentTypeError, naming it, where a device has no such element."""
    data_type_of(dtype)
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def to_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype` as a checked np.dtype."""
    try:
        made = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(f"{dtype!r} is not a dtype: {error}") from None
    return check_dtype(made)


def to_array(data: ArrayLike) -> np.ndarray[Any, Any]:
    """`data` as an array. Raises InvalidArgumentError for nested lists of uneven length."""
    try:
        return np.asarray(data)
    except ValueError as error:
        raise InvalidArgumentError(f"The data is no array: {error}") from None


def _not_empty(array: np.ndarray[Any, Any], empty_like: str) -> np.ndarray[Any, Any]:
    if array.size == 0:
        raise InvalidArgumentError(
            f"The data is empty (shape {array.shape}), and Vulkan has no buffer of 0 bytes; "
            f"pass at least one element, or reserve room with {empty_like}"
        )
    return array


def as_float32(data: ArrayLike, empty_like: str = "mgr.zeros(n)") -> np.ndarray[Any, Any]:
    """`data` as a C-contiguous float32 array of the same shape."""
    array = _not_empty(to_array(data), empty_like)
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"dtype {array.dtype} does not convert to float32; "
            + ("take .real and .imag, or use tensor_t" if array.dtype.kind == "c" else "pass numbers")
        )
    return array.astype(FLOAT32, order="C", copy=False)


def as_typed(data: ArrayLike, empty_like: str = "mgr.zeros(n, dtype)") -> np.ndarray[Any, Any]:
    """`data` as a C-contiguous array of its own dtype, in native byte order."""
    array = to_array(data)
    dtype = check_dtype(array.dtype)
    return _not_empty(array, empty_like).astype(dtype, order="C", copy=False)


def as_name(value: Any) -> str:
    """`value` as the name of an object. Raises ArgumentTypeError for anything but a str."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f'A name is a str, not {type(value).__name__}; "" for none')
    return value


def as_index(value: Any, what: str) -> int:
    """`value` as an int. Raises ArgumentTypeError, naming `what`, for anything but an integer."""
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{what} is {value!r}; give an int")
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{what} is {value!r}; give an int") from None


def as_indices(values: Any, what: str) -> tuple[int, ...]:
    """`values`, one integer or several, as a tuple. Raises ArgumentTypeError, naming `what`, for anything else."""
    try:
        each = iter(values)
    except TypeError:
        each = iter((values,))
    try:
        return tuple(map(operator.index, each))
    except TypeError:
        raise ArgumentTypeError(f"{what} is {values!r}; give an int or a tuple of ints") from None


def as_shape(shape: int | Iterable[int]) -> tuple[int, ...]:
    """`shape` as a tuple. Raises InvalidArgumentError where it has no element."""
    made = as_indices(shape, "The shape")
    if any(n <= 0 for n in made):
        raise InvalidArgumentError(f"The shape {made} has no element; every axis needs at least 1")
    return made


def matching(data: ArrayLike, dtype: np.dtype[Any], count: int, what: str) -> np.ndarray[Any, Any]:
    """`data` as a C-contiguous array of `count` elements of `dtype`, for an object that `what` names.

    Floats and complex numbers round; integers must be in range, and a float is never cut to an integer.
    """
    array = to_array(data)
    if array.size != count:
        raise InvalidArgumentError(
            f"{what} holds {count} elements; the data has {array.size} (shape {array.shape})"
        )
    if array.dtype != dtype:
        integers = array.dtype.kind in "biu" and dtype.kind in "iu"
        if integers:
            limits = np.iinfo(dtype)
            low, high = int(array.min()), int(array.max())
            if low < limits.min or high > limits.max:
                raise InvalidArgumentError(
                    f"{what} has dtype {dtype}; the data's range {low} to {high} does not fit"
                )
        elif not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ArgumentTypeError(
                f"{what} has dtype {dtype}; the data's {array.dtype} does not convert to it without loss. "
                f"Convert it first: data.astype(np.{dtype.name})"
            )
    return array.astype(dtype, order="C", copy=False)


def element_bytes(value: Any, dtype: np.dtype[Any], what: str) -> bytes:
    """The bytes of one `value` as an element of `dtype`; raises where it does not fit."""
    if dtype.kind in "iu" and isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    return matching([value], dtype, 1, what).tobytes()
