"""From one value to the bytes of a shader's scalar: the rules for numbers, the same for all constants.

A number is converted to the type that the shader declares. An integer type takes integers and floats without
a fraction, within its range. A float type rounds; a finite number beyond its range is refused, infinity and
NaN are taken. A bool takes 0, 1, False and True, and has 32 bits. A NumPy array of one element counts as that
element. Text, bytes, complex numbers, dates and masked arrays are not numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from .._base.arrays import refuse_mask, to_array
from .._base.errors import ArgumentTypeError, InvalidArgumentError, KomputeError, UnimplementedError, shown
from .._base.types import is_small_float
from .dtype_rules import beyond_both, differ_in_sign, kind_of

MOST_VALUES = 1 << 20  # more than any shader has; an endless generator stops here
_BYTES = ("B", "b", "c")  # formats of memoryviews of raw bytes


class Scalar(NamedTuple):
    """How a scalar type of a shader is packed."""

    name: str
    code: str
    size: int
    low: int
    high: int

    @property
    def kind(self) -> tuple[str, int]:
        """As `dtype_rules.kind_of` has it."""
        return "float" if self.code in "efd" else "int", self.size


def _integer(name: str, code: str, size: int) -> Scalar:
    bits = 8 * size
    signed = code.islower()
    return Scalar(name, code, size, -(1 << (bits - 1)) if signed else 0, (1 << (bits - signed)) - 1)


# A bool is a VkBool32 in specialization data. A buffer reference ("pointer") is its 64-bit address.
SCALARS: dict[str, Scalar] = {
    s.name: s
    for s in (
        Scalar("bool", "I", 4, 0, 1),
        _integer("int8", "b", 1),
        _integer("uint8", "B", 1),
        _integer("int16", "h", 2),
        _integer("uint16", "H", 2),
        _integer("int32", "i", 4),
        _integer("uint32", "I", 4),
        _integer("int64", "q", 8),
        _integer("uint64", "Q", 8),
        _integer("pointer", "Q", 8),
        Scalar("float16", "e", 2, 0, 0),
        Scalar("float32", "f", 4, 0, 0),
        Scalar("float64", "d", 8, 0, 0),
    )
}


def constant_scalar(name: str) -> Scalar:
    """The scalar of a constant. Raises UnimplementedError for bfloat16."""
    if name == "bfloat16":
        raise UnimplementedError(
            "The shader has a push or specialization constant of bfloat16, which kompute_py cannot pack: "
            "declare it as float and convert it in the shader"
        )
    return SCALARS[name]


def pack_scalar(value: Any, scalar: Scalar, what: str) -> bytes:
    """One `value` as `scalar`. `what` names the constant in errors.

    Raises InvalidArgumentError if the value does not fit the type, ArgumentTypeError if it is not a number.
    """
    refuse_mask(value, what)
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise InvalidArgumentError(
                f"{what} is an array of shape {value.shape}; the shader declares one {scalar.name}: give one "
                "number"
            )
        value = value.reshape(())[()]
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        value = value.item()
    try:
        return _packed(value, scalar, what)
    except KomputeError:
        raise
    except Exception as error:  # of the object's own __float__ or __index__
        raise ArgumentTypeError(
            f"{what} is {shown(value)} of type {type(value).__name__}, which is not a number ({error}); the "
            "shader declares "
            f"{scalar.name}"
        ) from error


def _packed(value: Any, scalar: Scalar, what: str) -> bytes:
    if isinstance(value, (str, bytes, complex, np.datetime64, np.timedelta64)) or not (
        hasattr(value, "__float__") or hasattr(value, "__index__")
    ):
        raise ArgumentTypeError(
            f"{what} is {shown(value)} of type {type(value).__name__}; the shader declares {scalar.name}"
        )
    if scalar.code in "efd":
        try:
            return struct.pack("<" + scalar.code, float(value))
        except OverflowError:
            raise InvalidArgumentError(
                f"{what} is {shown(value)}, out of range of the shader's {scalar.name}"
            ) from None
    if isinstance(value, float) or not hasattr(value, "__index__"):
        number = float(value)
        if not math.isfinite(number) or number != int(number):
            raise InvalidArgumentError(
                f"{what} is {shown(value)}; the shader declares {scalar.name}, which holds integers only"
            )
        value = int(number)
    whole = value.__index__()
    if not scalar.low <= whole <= scalar.high:
        raise InvalidArgumentError(
            f"{what} is {whole}, out of range of the shader's {scalar.name} ({scalar.low} to {scalar.high})"
        )
    return struct.pack("<" + scalar.code, whole)


def typed(values: Any, what: str) -> Any:
    """A memoryview of typed elements and a record as a NumPy array, an array of ctypes as a list of its
    numbers; anything else as it is. `what` names the values in errors.

    Raises ArgumentTypeError for a memoryview that was released.
    """
    if isinstance(values, (list, tuple, np.ndarray, bytes)):
        return values
    if isinstance(values, memoryview):
        try:
            return values if values.format in _BYTES else np.asarray(values)
        except ValueError as error:  # it was released
            raise ArgumentTypeError(f"{what}: a memoryview without memory is given: {error}") from None
    if isinstance(values, np.void):
        return np.asarray(values)
    if hasattr(values, "_type_") and hasattr(values, "_length_"):
        return to_array(values, "The array of ctypes").tolist()
    return values


def is_sequence(value: Any) -> bool:
    """Whether `value` has elements in an order, and is not text or bytes.

    A mapping is by name, and a set has no order.
    """
    return (
        getattr(value, "__iter__", None) is not None
        and not isinstance(value, (str, bytes, bytearray, Mapping, set, frozenset))
        and getattr(value, "ndim", 1) != 0
    )


def listed(values: Iterable[Any], most: int, what: str) -> list[Any]:
    """The elements of an iterable; of more than `most`, the first ``most + 1``.

    Raises ArgumentTypeError for masked arrays, and for arrays of elements that are not numbers.
    """
    if isinstance(values, np.ndarray):
        refuse_mask(values, what)
        require_numbers(values.dtype, what)
        first = values[: most + 1]
        return first.tolist() if values.dtype.kind in "biuf" and values.ndim == 1 else list(first)
    return list(islice(values, most + 1))


def require_numbers(dtype: np.dtype[Any], what: str) -> None:
    """Raises ArgumentTypeError if elements of `dtype` are not real numbers."""
    if dtype.kind not in "biufO" and not is_small_float(dtype) and dtype.names is None:
        raise ArgumentTypeError(f"{what}: an array of {dtype} is given; give numbers")


def reads_others(scalar: Scalar, dtype: np.dtype[Any], number: Any) -> tuple[bool, bool]:
    """(whether a shader that declares `scalar` reads another number in the bits of `number`, whether that
    depends on the number).

    `number` is an element of `dtype`. Signed and unsigned integers of one size have the same bits for the
    numbers that both hold.
    """
    if kind_of(dtype) != scalar.kind:
        return True, False
    if scalar.name in ("bool", "pointer") or not differ_in_sign(dtype, np.dtype(scalar.name)):
        return False, False
    return beyond_both(number), True
