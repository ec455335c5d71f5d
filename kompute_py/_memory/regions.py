"""Regions: computes which elements of a dense row-major array an index selects. Uses no device."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from .._base.arrays import to_array
from .._base.errors import ArgumentTypeError, InvalidArgumentError, OutOfRangeError, shown
from .._base.text import Told, nearest, told
from .array_habits import ArrayHabits

# The limit of the oldest supported NumPy.
_MOST_AXES = 32


Located = tuple[int, tuple[int, ...], tuple[int, ...] | None]
"""(number of the first element, shape, strides in elements) of a part of an array. The strides are None if
the part is dense and row-major: whole rows, or a part of one."""


def locate(shape: tuple[int, ...], key: Any, what: Told, strides: tuple[int, ...] | None = None) -> Located:
    """``array[key]`` for an array of `shape`, whose elements are `strides` elements apart.

    Without `strides`, the array is dense and row-major. `key` is an index of NumPy's basic indexing: an int,
    a slice, Ellipsis, None, or a tuple of these. `what` names the array in errors. The first element's number
    counts from the array's first element.

    Raises OutOfRangeError for an int beyond its axis or too many indices, and ArgumentTypeError for any other
    index (lists, arrays, masks).
    """
    if (
        type(key) is slice
        and len(shape) == 1
        and strides is None
        and (key.step is None or (type(key.step) is int and key.step == 1))
    ):
        try:
            start, stop, _ = key.indices(shape[0])  # the common case, without the general path below
        except Exception:  # from the __index__ of the bounds
            raise _no_slice(key, what) from None
        return start, (max(stop - start, 0),), None
    keys = tuple(_basic(each, what) for each in (key if isinstance(key, tuple) else (key,)))
    whole = _laid_out(shape, strides)
    # An Ellipsis makes the result an array even if every axis has an int.
    if not any(each is Ellipsis for each in keys):
        keys = (*keys, Ellipsis)
    try:
        part = whole[keys]
    except IndexError as error:
        raise OutOfRangeError(f"{told(what)} has no [{_show(key)}]: {error}") from None
    except OverflowError:
        raise OutOfRangeError(f"{told(what)} has no [{_show(key)}]: it exceeds every possible axis") from None
    except Exception:  # a bound that is not an int, or a step of zero
        raise _no_slice(key, what) from None
    if part.size == 0:
        return 0, part.shape, None
    first = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return first, part.shape, None if part.flags.c_contiguous else part.strides


def transposed(shape: tuple[int, ...], first: int, strides: tuple[int, ...] | None = None) -> Located:
    """``array.T`` for an array as in `locate`, whose first element has the number `first`."""
    whole = _laid_out(shape, strides).T
    if whole.size == 0:
        return 0, whole.shape, None
    return first, whole.shape, None if whole.flags.c_contiguous else whole.strides


def _laid_out(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> np.ndarray[Any, Any]:
    """An array of bytes without memory behind it. Only its strides are read: with it, NumPy's own
    rules apply.
    """
    if strides is None:
        steps = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            steps[axis] = steps[axis + 1] * shape[axis + 1]
        strides = tuple(steps)
    return np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), shape, strides)


class Field(NamedTuple):
    """Where the elements of a field lie in an array of structs, in elements of the field."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    """The axes of one struct's field."""
    first: int
    step: int
    """From one struct to the next."""

    def located(self, shape: tuple[int, ...], first: int, strides: tuple[int, ...] | None) -> Located:
        """The field of all structs of an array as in `locate`, whose first element has the number `first`."""
        structs = _laid_out(shape, strides).strides
        inner = _laid_out(self.shape, None).strides
        whole = _laid_out((*shape, *self.shape), (*[each * self.step for each in structs], *inner))
        if whole.size == 0:
            return 0, whole.shape, None
        strides = None if whole.flags.c_contiguous else whole.strides
        return first * self.step + self.first, whole.shape, strides


def field_of(dtype: np.dtype[Any], name: str, what: Told) -> Field:
    """The field of structs of a dtype. Raises InvalidArgumentError, naming `what`, if they lack it, or if its
    elements are not at multiples of their size.
    """
    fields: Any = dtype.fields
    if name not in fields:
        near = nearest(name, fields)
        raise InvalidArgumentError(
            f"{told(what)} has no field {shown(name)}: its fields are {', '.join(fields)}{near}"
        )
    kind, offset = fields[name][:2]
    element, shape = kind.subdtype or (kind, ())
    size = element.itemsize
    if not size or dtype.itemsize % size or offset % size:
        raise InvalidArgumentError(
            f"{told(what)}: the field {name!r} begins {offset} bytes into structs of {dtype.itemsize} bytes, "
            f"and its elements have {size}: a view needs multiples of that. Read an array, "
            f"t.read()[{name!r}], or make the dtype with align=True"
        )
    return Field(element, shape, offset // size, dtype.itemsize // size)


def is_advanced(key: Any) -> bool:
    """Whether an index is one of NumPy's advanced ones: it has an array, a list, or a truth value."""
    return any(map(_is_array, key)) if isinstance(key, tuple) else _is_array(key)


def _is_array(key: Any) -> bool:
    if isinstance(key, np.ndarray):
        return bool(key.ndim) or key.dtype == np.bool_
    return isinstance(key, (list, tuple, range, bool, np.bool_, ArrayHabits))


def as_mask_or_indices(key: Any) -> Any:
    """A part of an index that `is_advanced`, with anything but a tensor, int, slice, Ellipsis or None as an
    array.

    Raises ArgumentTypeError if it is not an array, or is masked.
    """
    if not _is_array(key) or isinstance(key, ArrayHabits):
        return key
    array = to_array(key, "An index")
    return array.astype(np.intp) if not array.size and not isinstance(key, np.ndarray) else array


class Runs(NamedTuple):
    """A part of an array as runs of adjacent bytes, in increasing order."""

    offset: int
    """The first run's, in bytes."""
    length: int
    """Bytes of each run."""
    axes: list[tuple[int, int]]
    """(number, bytes from one to the next) for each axis of runs, the outermost first."""
    order: tuple[int, ...]
    """The axes of the part in the order in which the runs go through them."""
    flips: tuple[slice, ...]
    """Reverses the axes with negative strides, after `order`."""

    def sorted(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The elements of a part in the order of the runs."""
        return array.transpose(self.order)[self.flips]

    def unsorted(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The part of elements in the order of the runs: what `sorted` gives, the other way round."""
        return array[self.flips].transpose(np.argsort(self.order))


def runs_of(first: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Runs:
    """The runs of a part with elements of `itemsize` bytes; the other arguments are as in `Located`."""
    flips = []
    axes: list[tuple[int, int]] = []
    order = tuple(sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])))
    for axis in order:
        count, stride = shape[axis], strides[axis]
        back = stride < 0 and count > 1
        flips.append(slice(None, None, -1 if back else None))
        if back:
            first += stride * (count - 1)
        if count > 1:
            axes.append((count, abs(stride) * itemsize))
    length = itemsize
    while axes and axes[-1][1] == length:
        length *= axes.pop()[0]
    merged: list[tuple[int, int]] = []
    for count, stride in axes:
        if merged and merged[-1][1] == count * stride:
            count *= merged.pop()[0]
        merged.append((count, stride))
    return Runs(first * itemsize, length, merged, order, tuple(flips))


def reshaped(shape: tuple[int, ...], wanted: tuple[int, ...], count: int, what: Told) -> tuple[int, ...]:
    """`wanted` with its -1, if it has one, replaced by the length that gives `count` elements.

    Raises InvalidArgumentError if `wanted` has another number of elements.
    """
    if len(wanted) > _MOST_AXES:
        raise InvalidArgumentError(
            f"{told(what)} cannot be reshaped to {len(wanted)} axes: an array has at most {_MOST_AXES}"
        )
    unknown = [axis for axis, length in enumerate(wanted) if length == -1]
    known = 1
    for length in wanted:
        if length < -1:
            raise InvalidArgumentError(
                f"{told(what)} cannot be reshaped to {wanted}: an axis has {length} elements"
            )
        if length != -1:
            known *= length
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"{told(what)} cannot be reshaped to {wanted}: at most one axis can be -1, the length that is "
            "left"
        )
    if unknown and known == 0:
        raise InvalidArgumentError(
            f"{told(what)} cannot be reshaped to {wanted}: with an axis of 0 elements, -1 could be any length"
        )
    if (known and count % known) or (not unknown and known != count):
        raise InvalidArgumentError(f"{told(what)} has {count} elements; it cannot be reshaped to {wanted}")
    return tuple(count // known if length == -1 else length for length in wanted)


def retyped(shape: tuple[int, ...], old: np.dtype[Any], new: np.dtype[Any], what: Told) -> tuple[int, ...]:
    """The shape of a dense array of `shape` and dtype `old` viewed as `new`, as in ``ndarray.view(new)``.

    Raises InvalidArgumentError if the bytes of the last axis are not a multiple of the new element size.
    """
    if old.itemsize == new.itemsize:
        return shape
    if not shape:
        raise InvalidArgumentError(
            f"{told(what)} has no axis that could change its length: only a dtype of {old.itemsize} bytes "
            f"fits, and {new} has {new.itemsize}"
        )
    size = shape[-1] * old.itemsize
    if size % new.itemsize:
        raise InvalidArgumentError(
            f"{told(what)} has {size} bytes in its last axis, which is not a whole number of {new} "
            f"({new.itemsize} bytes)"
        )
    return (*shape[:-1], size // new.itemsize)


def _basic(key: Any, what: Told) -> int | slice | EllipsisType | None:
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if not isinstance(key, (bool, np.bool_)):
        try:
            return operator.index(key)
        except Exception:
            pass
    raise ArgumentTypeError(
        f"{told(what)} is indexed with ints and slices, which give views of its memory, not with "
        f"{shown(key)} ({type(key).__name__}). t[...] alone takes arrays of ints and masks, too, and gives a "
        "copy; else index an array: t.read()[...], or t.numpy()[...]"
    )


def _no_slice(key: Any, what: Told) -> ArgumentTypeError:
    return ArgumentTypeError(f"{told(what)} has no [{_show(key)}]: slices take ints, and steps other than 0")


def _show(key: Any) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(_show, key))
    if isinstance(key, slice):
        parts = ["" if each is None else shown(each) for each in (key.start, key.stop)]
        return ":".join(parts) + ("" if key.step is None else f":{shown(key.step)}")
    return "..." if key is Ellipsis else shown(key)
