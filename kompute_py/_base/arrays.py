"""Converts the data that callers pass to C-contiguous arrays, which the core copies."""

from __future__ import annotations

import math
import operator
import os
import struct
import sys
from array import array as TypedArray
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
    OutOfRangeError,
    kind_of,
    shown,
)
from .plain_arguments import as_text, refuse_unordered
from .text import Told, told
from .types import NUMBERS, data_type_of, is_small_float

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

_MOST_INDICES = 1000
_MOST_AXES = 64
# Larger than every size, yet short enough to print: Python prints no int of more than 4300 digits.
_HUGE = 1 << 1024
# Twice the machine's memory: some systems promise any amount, and end the program that uses it.
_MOST_BYTES = 1 << 63
if hasattr(os, "sysconf"):
    _MOST_BYTES = 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

FLOAT32 = np.dtype(np.float32)
_OF_TYPE: dict[type, np.dtype[Any]] = {dtype.type: dtype for dtype in NUMBERS}  # np.float32 and so on


def check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype` in native byte order. Raises ArgumentTypeError, naming it, if devices have no such element."""
    data_type_of(dtype)
    if dtype.isnative:
        return dtype
    native = dtype.newbyteorder("=")
    # newbyteorder() gives one that does not count as builtin.
    return native if dtype.names is not None else np.dtype(native.str)


def to_element(dtype: DTypeLike) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """`dtype` as a checked np.dtype, and the axes that it adds: ``"3f4"`` gives float32 and (3,)."""
    if type(dtype) is type:
        found = _OF_TYPE.get(dtype)
        if found is not None:
            return found, ()
    try:
        made: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentTypeError(f"{shown(dtype)} is not a dtype: {error}") from None
    return check_dtype(made.base), made.shape


def to_dtype(dtype: Any) -> np.dtype[Any]:
    """`dtype` as a checked np.dtype of one element."""
    element, axes = to_element(dtype)
    if axes:
        raise ArgumentTypeError(
            f"The dtype {shown(dtype)} has axes of its own: use {element}, "
            f"and give the axes {axes} to the shape"
        )
    return element


def to_array(data: ArrayLike, what: str = "The data") -> np.ndarray[Any, Any]:
    """`data` as an array.

    Accepts everything that NumPy converts, such as ctypes arrays, memoryviews, array.array.

    `what` names the data in errors. Raises InvalidArgumentError for nested lists of uneven length, and
    ArgumentTypeError for bytes, text or a masked array, or if the conversion fails.
    """
    if type(data) is np.ndarray:
        return data
    if isinstance(data, (bytes, str)):
        # NumPy would convert them to one element, and drop zeros at the end of bytes.
        raise ArgumentTypeError(
            f"{what} is bytes, which does not say what its elements are: "
            "give np.frombuffer(data, dtype), such as np.uint8"
            if isinstance(data, bytes)
            else f"{what} is a str; give numbers (or the bytes of the text: "
            "np.frombuffer(data.encode(), np.uint8)). Open a file first: np.load(path), PIL.Image.open(path)"
        )
    refuse_mask(data, what)
    try:
        made = np.asanyarray(data)
    except ValueError as error:
        raise InvalidArgumentError(f"{what} is not an array: {error}") from None
    except FailedPreconditionError:  # of a Tensor
        raise
    except Exception as error:  # from the object's own methods, or the interpreter's limit to nesting
        raise ArgumentTypeError(
            f"{what} ({type(data).__name__}) is not an array: {type(error).__name__}: {error}"
        ) from error
    refuse_mask(made, what)  # an object's __array__ may return a masked array
    return np.asarray(made)


def refuse_mask(value: Any, what: Told) -> None:
    """Raises ArgumentTypeError if `value` is a masked array, or a sequence that contains one.

    Shaders do not see masks, so masked numbers would count like all others.
    """
    masks = sys.modules.get(
        "numpy.ma"
    )  # not imported here: the import is slow, and a fork during it would leave its lock taken
    if masks is not None and _has_mask(value, masks.MaskedArray):
        raise ArgumentTypeError(
            f"{told(what)} is a masked array, and shaders do not see the mask: "
            "give its numbers, as with filled(0) or .data"
        )


def _has_mask(value: Any, masked: type, depth: int = 0) -> bool:
    if isinstance(value, np.ndarray):
        return isinstance(value, masked)
    if depth > _MOST_AXES or not _is_sequence(type(value)):
        return False
    if not isinstance(value, (list, tuple)):
        try:
            value = list(value)
        except Exception:  # from its own methods: NumPy calls them too and reports the error
            return False
    kinds = set(map(type, value))  # few, even for a long list
    if any(issubclass(kind, masked) for kind in kinds):
        return True
    return any(map(_is_sequence, kinds)) and any(_has_mask(each, masked, depth + 1) for each in value)


_SHARE_MEMORY = ("__array__", "__array_interface__", "__array_struct__", "_type_")  # _type_: ctypes


def _is_sequence(kind: type) -> bool:
    """Whether NumPy reads the elements of such objects: lists, tuples, deques and similar classes."""
    return issubclass(kind, (list, tuple)) or (
        hasattr(kind, "__getitem__")
        and hasattr(kind, "__len__")
        and not issubclass(kind, (str, bytes, bytearray, memoryview, range, TypedArray, Mapping))
        and not any(hasattr(kind, name) for name in _SHARE_MEMORY)
    )


def as_float32(data: ArrayLike) -> np.ndarray[Any, Any]:
    """`data` as a C-contiguous float32 array of the same shape."""
    array = to_array(data)
    if array.dtype.kind not in "biuf" and not is_small_float(array.dtype):
        raise ArgumentTypeError(
            f"dtype {array.dtype} does not convert to float32; "
            + {"c": "take .real and .imag, or use tensor_t", "V": "pass numbers, or use tensor_t"}.get(
                array.dtype.kind, "pass numbers"
            )
        )
    return converted(array, FLOAT32)


def as_typed(data: ArrayLike) -> np.ndarray[Any, Any]:
    """`data` as a C-contiguous array of its own dtype, in native byte order."""
    array = to_array(data)
    return converted(array, check_dtype(array.dtype))


def converted(
    array: np.ndarray[Any, Any], dtype: np.dtype[Any], who: str = "The data, as a copy"
) -> np.ndarray[Any, Any]:
    """`array` if it is C-contiguous and has `dtype`, else a converted copy.

    Raises OutOfMemoryError, beginning with `who`, if memory cannot hold the copy.
    """
    if array.flags.c_contiguous and array.dtype == dtype:
        return array
    made = host_empty(array.shape, dtype, who)
    np.copyto(made, array, casting="unsafe")
    return made


def host_empty(shape: tuple[int, ...], dtype: np.dtype[Any], who: str) -> np.ndarray[Any, Any]:
    """A new array. Raises OutOfMemoryError, beginning with `who`, if memory cannot hold it."""
    try:
        if math.prod(shape) * dtype.itemsize > _MOST_BYTES:
            raise MemoryError(f"more than {_MOST_BYTES} bytes")
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than addresses
        raise OutOfMemoryError(f"{who}: an array of shape {shape}, {dtype} is too large: {error}") from None


def as_name(value: Any) -> str:
    """`value` as the name of an object.

    Raises ArgumentTypeError if it is not a str, and InvalidArgumentError as `as_text` does.
    """
    if not isinstance(value, str):
        raise ArgumentTypeError(f'A name is a str, not {type(value).__name__}; "" for none')
    return as_text(value, "A name")


def to_flag(value: Any, what: str) -> bool:
    """`value` as a bool.

    Raises ArgumentTypeError, naming `what`, if it has no truth value (an array, say).
    """
    if value is True or value is False:
        return bool(value)
    try:
        return bool(value)
    except Exception:
        raise ArgumentTypeError(f"{what} is {shown(value)}; give True or False") from None


def to_copy(value: Any, never: bool = True) -> bool | None:
    """The argument ``copy`` of a conversion: True, False or None.

    Raises ArgumentTypeError for all else: "never" is true, and would be a copy. `never` says
    that False forbids a copy.
    """
    if value is None or isinstance(value, (bool, np.bool_)):
        return value if value is None else bool(value)
    takes = "False (never a copy) or None (a copy only if needed)" if never else "False (only if needed)"
    raise ArgumentTypeError(f"copy is {shown(value)}; give True (a copy){', ' if never else ' or '}{takes}")


def as_index(value: Any, what: str) -> int:
    """`value` as an int. Raises ArgumentTypeError, naming `what`, for anything but an integer."""
    if isinstance(value, (bool, Enum)):  # integers by type, but not by meaning
        raise ArgumentTypeError(f"{what} is {shown(value)}; give an int")
    try:
        number = operator.index(value)
    except Exception:  # from the object's own __index__
        raise ArgumentTypeError(f"{what} is {shown(value)}; give an int") from None
    if not -_HUGE < number < _HUGE:
        raise OutOfRangeError(f"{what} is an int of {number.bit_length()} bits, which is out of range")
    return number


def as_indices(values: Any, what: str) -> tuple[int, ...]:
    """`values`, one integer or several, as a tuple.

    Raises ArgumentTypeError, naming `what`, if there are others, and for a mapping or a set.
    """
    if type(values) is int:
        values = (values,)
    elif type(values) is not tuple:
        refuse_unordered(values, what, "an int or a tuple of ints")
    try:
        each = iter(values)
    except TypeError:
        each = iter((values,))
    except Exception:
        raise ArgumentTypeError(f"{what} is {shown(values)}; give an int or a tuple of ints") from None
    try:
        some = values[: _MOST_INDICES + 1] if type(values) is tuple else islice(each, _MOST_INDICES + 1)
        made = tuple(map(operator.index, some))
    except Exception:  # from the objects' own methods
        raise ArgumentTypeError(f"{what} is {shown(values)}; give an int or a tuple of ints") from None
    if len(made) > _MOST_INDICES:
        raise InvalidArgumentError(f"{what} has more than {_MOST_INDICES} ints")
    if made and (max(made) > _HUGE or min(made) < -_HUGE):
        raise OutOfRangeError(
            f"{what} has an int of more than {_HUGE.bit_length()} bits, which is out of range"
        )
    return made


def as_shape(shape: int | Iterable[int]) -> tuple[int, ...]:
    """`shape` as a tuple of axes.

    Raises InvalidArgumentError if an axis is negative or there are too many.
    """
    if type(shape) is int and 0 <= shape < _HUGE:
        return (shape,)
    if type(shape) is tuple and len(shape) <= _MOST_AXES:
        for length in shape:
            if type(length) is not int or not 0 <= length < _HUGE:
                break
        else:
            return shape
    made = as_indices(shape, "The shape")
    if len(made) > _MOST_AXES:
        raise InvalidArgumentError(
            f"The shape has {len(made)} axes; NumPy's arrays have {_MOST_AXES} at most"
        )
    if made and min(made) < 0:
        raise InvalidArgumentError(f"The shape {made} has a negative axis; an axis has 0 elements or more")
    return made


def records(data: ArrayLike, dtype: np.dtype[Any], what: Told) -> np.ndarray[Any, Any]:
    """Tuples as elements of a structured `dtype`.

    Raises InvalidArgumentError if `data` is not made of such tuples, and the errors of `matching` for a
    field's numbers.
    """
    what = told(what)  # the checks of elements take far longer
    refuse_mask(data, what)
    try:
        with np.errstate(over="ignore"):  # the check of the fields finds infinite numbers
            made = np.asarray(data, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{what} takes elements of {dtype} as tuples: {error}") from None
    _check_fields(list(_tuples(data)), dtype, what)
    return made


def _tuples(data: Any) -> Iterator[tuple[Any, ...]]:
    """The tuples in nested lists. NumPy converts each tuple to one element."""
    if isinstance(data, tuple):
        yield data
    elif isinstance(data, list):
        for each in data:
            yield from _tuples(each)


def _check_fields(elements: list[tuple[Any, ...]], dtype: np.dtype[Any], what: str) -> None:
    """Raises an error if a number does not fit its field, because NumPy would cut floats to integers."""
    for number, name in enumerate(dtype.names or ()):
        field = dtype[name]
        values = [element[number] for element in elements if number < len(element)]
        if field.names is not None:
            _check_fields([each for each in values if isinstance(each, tuple)], field, f"{what}, {name!r}")
        elif values and field.base.kind in "biufc":
            numbers = to_array(values, f"{what}, {name!r},")
            matching(numbers, field.base, numbers.size, f"{what}, {name!r},")


def _converts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether numbers of `source` keep their meaning in `target`.

    Small floats have rules of their own here, because versions of ml_dtypes differ in what NumPy reports.
    """
    if is_small_float(target):
        return source.kind in "biuf" or is_small_float(source)
    if is_small_float(source):
        return target.kind in "fc"
    # NumPy would repeat a number over all fields, and cut or pad raw bytes.
    if target.type is np.void and (target.names is None or source.names is None):
        return False
    return bool(np.can_cast(source, target, "same_kind"))


def matching(data: ArrayLike, dtype: np.dtype[Any], count: int, what: Told) -> np.ndarray[Any, Any]:
    """`data` as a C-contiguous array of `count` elements of `dtype`, for an object that `what` names.

    Floats and complex numbers are rounded and must be in range. Integers must be in range (0 or 1 for bool).
    A float is never cut to an integer. For a structured `dtype`, tuples are elements, as in
    ``np.array([(1, 2.0)], dtype)``.
    """
    return fitted(counted(data, dtype, count, what), dtype, what)


def counted(data: ArrayLike, dtype: np.dtype[Any], count: int, what: Told) -> np.ndarray[Any, Any]:
    """The first half of `matching`: `data` as an array of `count` elements, not converted yet."""
    array = (
        to_array(data) if dtype.names is None or isinstance(data, np.ndarray) else records(data, dtype, what)
    )
    if array.size != count:
        raise InvalidArgumentError(
            f"{told(what)} holds {count} elements; the data has {array.size} (shape {array.shape})"
        )
    return array


def fitted(array: np.ndarray[Any, Any], dtype: np.dtype[Any], what: Told) -> np.ndarray[Any, Any]:
    """The second half of `matching`: the conversion to `dtype`."""
    if array.dtype == dtype:
        return converted(array, dtype)
    if array.size != 0:  # else there is nothing to convert: np.array([]) is always float64
        if array.dtype.kind in "biu" and dtype.kind in "biu":
            least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            low, high = int(array.min()), int(array.max())
            if low < least or high > most:
                raise InvalidArgumentError(
                    f"{told(what)} has dtype {dtype}; the data's range {low} to {high} does not fit"
                )
        elif not _converts(array.dtype, dtype):
            fix = (
                "Make the data with that dtype, field by field"
                if dtype.names is not None
                else f"Take its bytes: data.view({str(dtype)!r})"
                if dtype.type is np.void
                else f"Convert it first: data.astype({str(dtype)!r})"
            )
            raise ArgumentTypeError(
                f"{told(what)} has dtype {dtype}; the data's {array.dtype} does not convert to it without "
                f"loss. {fix}"
            )
    with np.errstate(over="ignore"):
        made = converted(array, dtype)
    if made is not array and not keeps_finite(array, made):
        raise InvalidArgumentError(
            f"{told(what)} has dtype {dtype}; the data has values beyond its range, which would become "
            "infinite"
        )
    return made


def keeps_finite(array: np.ndarray[Any, Any], converted: np.ndarray[Any, Any]) -> bool:
    """Whether all finite numbers of `array` are still finite after their conversion to `converted`."""
    if (
        array.dtype.kind == "V"
        or converted.dtype.kind not in "fcV"
        or np.can_cast(array.dtype, converted.dtype)
    ):
        return True
    wide = converted.astype(np.complex128 if converted.dtype.kind == "c" else np.float64)
    finite = np.isfinite(wide)
    return bool(finite.all() or not (~finite & np.isfinite(array)).any())


def spread(data: Any, dtype: np.dtype[Any], shape: tuple[int, ...], what: Told) -> np.ndarray[Any, Any]:
    """`data` as an array of `dtype` that is broadcast to `shape`, as ``array[...] = data`` does in NumPy.

    The numbers are converted as by `matching`; a single number also as by `element_bytes`, so that 2.0 is an
    integer. Raises InvalidArgumentError if the shape does not broadcast.
    """
    if type(data) is np.ndarray and data.ndim == 0:
        data = data[()]
    if isinstance(data, (bool, int, float, complex, np.generic)) or (
        dtype.names is not None and isinstance(data, tuple)
    ):
        made = np.frombuffer(element_bytes(data, dtype, what), dtype).reshape(())
    else:
        array = (
            to_array(data)
            if dtype.names is None or isinstance(data, np.ndarray)
            else records(data, dtype, what)
        )
        made = matching(array, dtype, array.size, what)
    # NumPy ignores leading axes of length 1 in assignments.
    given = made.shape
    extra = max(0, made.ndim - len(shape))
    if given[:extra] == (1,) * extra:
        made = made.reshape(given[extra:])
    try:
        return np.broadcast_to(made, shape)
    except ValueError:
        raise InvalidArgumentError(
            f"{told(what)} does not take data of shape {given}: it does not broadcast to {shape}"
        ) from None


def check_out(
    out: Any, dtype: np.dtype[Any], shape: tuple[int, ...], what: Callable[[], str]
) -> np.ndarray[Any, Any]:
    """`out`, an array to fill with elements of `dtype` and `shape`, like NumPy's ``out=``.

    Either byte order is accepted. Raises ArgumentTypeError if `out` is not an array or has another dtype, and
    InvalidArgumentError if it has another shape or is read-only.
    """
    if not isinstance(out, np.ndarray) or (out.dtype != dtype and out.dtype.newbyteorder("=") != dtype):
        is_index = isinstance(out, (int, np.integer, slice, tuple, type(...)))
        raise ArgumentTypeError(
            f"out is "
            f"{f'an array of {out.dtype}' if isinstance(out, np.ndarray) else kind_of(out)}; "
            f"{what()} reads into an ndarray of {dtype}"
            f"{'. For a part give region=' if is_index else ''}"
        )
    refuse_mask(out, "out")
    if out.shape != shape:
        fix = (
            f"; give out.reshape({shape})" if out.size == math.prod(shape) and out.flags.c_contiguous else ""
        )
        raise InvalidArgumentError(
            f"out has shape {out.shape}; {what()} reads into one of shape {shape}{fix}"
        )
    if not out.flags.writeable:
        raise InvalidArgumentError(f"out is read-only: {what()} cannot be read into it; give a writable one")
    return out


def element_bytes(value: Any, dtype: np.dtype[Any], what: Told) -> bytes:
    """The bytes of one `value` as an element of `dtype`. Raises an error if it does not fit."""
    made = packed(value, dtype)
    if made is not None:
        return made
    refuse_mask(value, lambda: f"The value for {told(what)}")
    if dtype.kind == "V":
        if dtype.names is not None:
            _check_fields([*_tuples(value)], dtype, told(what))
        try:
            element = np.array(value, dtype=dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentTypeError(
                f"{told(what)}: {shown(value)} is not an element of {dtype}: {error}"
            ) from None
        if element.shape != ():
            raise ArgumentTypeError(
                f"{told(what)}: {shown(value)} is not a single element of {dtype}; give a tuple"
            )
        return element.tobytes()
    if not isinstance(value, (int, float, complex)) and to_array(value).ndim != 0:
        raise ArgumentTypeError(
            f"{told(what)}: {shown(value):.60} is not a single element: give a scalar, or bytes for a "
            "pattern. write() takes arrays"
        )
    given = np.asarray(value) if not isinstance(value, int) else None
    if given is not None and given.dtype.kind == "O":
        raise ArgumentTypeError(
            f"{told(what)}: {shown(value):.60} is not a number: give one, or bytes for a pattern"
        )
    if given is not None and given.dtype.kind == "f" and dtype.kind in "iu":
        number = float(given)
        if not math.isfinite(number) or number != int(number):
            raise ArgumentTypeError(
                f"{told(what)}: {shown(value):.60} is not a whole number, but elements of {dtype} are: "
                "round it first"
            )
        value = int(number)
    return matching([value], dtype, 1, what).tobytes()


def fill_bytes(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The bytes to repeat through an array of `dtype` and `shape` that is filled with `value`.

    The shape of `value` must be the end of `shape`. Raises InvalidArgumentError if `value` does not fit, and
    ArgumentTypeError if it does not convert without loss.
    """
    made = packed(value, dtype)
    if made is not None:
        return made
    what = f"A tensor of shape {shape}, {dtype}"
    if dtype.names is not None and not isinstance(value, np.ndarray):
        return matching([value], dtype, 1, f"An element of {dtype}").tobytes()
    array = to_array(value)
    ends = array.shape == (shape[-array.ndim :] if array.ndim else ())
    if not ends:
        raise InvalidArgumentError(
            f"{what} cannot be filled with a value of shape {array.shape}: give one element, "
            "or a value of a shape that ends the tensor's shape"
        )
    if dtype.kind in "iu" and array.dtype.kind == "f" and np.isfinite(array).all() and (array % 1 == 0).all():
        # 2.0 means 2. Numbers out of range are reported as integers.
        array = np.array([int(each) for each in array.reshape(-1)])
    return matching(array, dtype, array.size, what).tobytes()


Counts = tuple[int, int, int]
"""The numbers along x, y and z."""


def counts_of(given: Any, what: str, counted: str) -> Counts:
    """One to three counts, filled up to three with 1.

    A 0 on any axis runs nothing. `what` names the counts in errors, `counted` the things that they count.
    Raises InvalidArgumentError for a negative count or another number of counts, ArgumentTypeError for other
    types.
    """
    counts = as_indices(given, what)
    if not 1 <= len(counts) <= 3:
        raise InvalidArgumentError(f"{what} has {len(counts)} numbers; give up to three: (x, y, z)")
    if min(counts) < 0:
        raise InvalidArgumentError(f"{what} is {shown(given)}; it counts {counted}, 0 or more on each axis")
    x, y, z = (*counts, 1, 1)[:3]
    return x, y, z


_Pack = Callable[[Any], bytes]


def _packers(codes: str) -> dict[np.dtype[Any], _Pack]:
    """By dtype, in the host's byte order."""
    return {np.dtype(code): struct.Struct(f"={code}").pack for code in codes}


# struct has NumPy's letters but for its "l", which is not 64 bits everywhere: "q" is.
_FLOATS = _packers("efd")
_INTS = _packers("bBhHiIqQ")
# Up to here, an int is a float64 without rounding, so that it is rounded once on its way to any float.
_EXACT = 1 << 53


def packed(value: Any, dtype: np.dtype[Any]) -> bytes | None:
    """The bytes of `value` as an element of `dtype`, in one step; None if the general rules must decide.

    It knows Python's ints and floats and NumPy's scalars, for dtypes of integers and floats, and only values
    that fit. For them it gives the bytes that the general rules give (tests compare the two).
    """
    kind = type(value)
    if kind is float:
        pack = _FLOATS.get(dtype)
        if pack is None or value != value:  # Python's float16 does not keep the bits of a NaN
            return None
    elif kind is int:
        pack = _INTS.get(dtype)
        if pack is None:
            pack = _FLOATS.get(dtype)
            if pack is None or not -_EXACT <= value <= _EXACT:
                return None
    elif isinstance(value, np.generic) and value.dtype == dtype and (dtype in _FLOATS or dtype in _INTS):
        return value.tobytes()
    else:
        return None
    try:
        return pack(value)
    except (struct.error, OverflowError):
        return None  # out of range
