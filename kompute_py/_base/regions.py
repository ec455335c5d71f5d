"""Regions: which elements of a dense row-major array an index names. Pure; no device is involved."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any

import numpy as np

from .errors import ArgumentTypeError, InvalidArgumentError, OutOfRangeError, UnimplementedError, shown

# What every NumPy that is supported can show.
_MOST_AXES = 32


def locate(shape: tuple[int, ...], key: Any, what: str, fix: str) -> tuple[int, tuple[int, ...]]:
    """(number of the first element, shape) of ``array[key]`` for a dense row-major array of `shape`.

    `key` is what NumPy's basic indexing takes: an int, a slice, Ellipsis, None, or a tuple of these. The result must be
    dense and row-major too: whole rows, or a part of one. `what` names the array in errors, `fix` says what to do instead
    of a part that is not dense.

    Raises OutOfRangeError for an int beyond its axis or too many indices, UnimplementedError for one that is not dense, ArgumentTypeError for any other index (lists, arrays, masks).
    """
    if (
        type(key) is slice
        and len(shape) == 1
        and (key.step is None or (type(key.step) is int and key.step == 1))
    ):
        try:
            start, stop, _ = key.indices(shape[0])  # the common case, without the detour below
        except Exception:  # of the bounds' own __index__
            raise _no_slice(key, what) from None
        return start, (max(stop - start, 0),)
    keys = tuple(_basic(each, what) for each in (key if isinstance(key, tuple) else (key,)))
    # NumPy's own rules, applied to an array of single bytes with no memory behind it: only its strides are looked at.
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    whole = np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), shape, strides)
    # With an Ellipsis the result is an array even where every axis has an int.
    if not any(each is Ellipsis for each in keys):
        keys = (*keys, Ellipsis)
    try:
        part = whole[keys]
    except IndexError as error:
        raise OutOfRangeError(f"{what} has no [{_show(key)}]: {error}") from None
    except OverflowError:
        raise OutOfRangeError(f"{what} has no [{_show(key)}]: it is beyond what any array has") from None
    except Exception:  # a bound that is no int, a step of zero
        raise _no_slice(key, what) from None
    if part.size == 0:
        return 0, part.shape
    if not part.flags.c_contiguous:
        raise UnimplementedError(
            f"[{_show(key)}] of {what} is not dense and row-major: its elements do not follow each other in memory. {fix}"
        )
    first = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return first, part.shape


def reshaped(shape: tuple[int, ...], wanted: tuple[int, ...], count: int, what: str) -> tuple[int, ...]:
    """`wanted` with its one -1, if any, replaced, for `count` elements.

    Raises InvalidArgumentError where it has another number of elements.
    """
    if len(wanted) > _MOST_AXES:
        raise InvalidArgumentError(
            f"{what} cannot be reshaped to {len(wanted)} axes: an array has at most {_MOST_AXES}"
        )
    unknown = [axis for axis, length in enumerate(wanted) if length == -1]
    known = 1
    for length in wanted:
        if length < -1:
            raise InvalidArgumentError(
                f"{what} cannot be reshaped to {wanted}: an axis has {length} elements"
            )
        if length != -1:
            known *= length
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"{what} cannot be reshaped to {wanted}: one axis at most can be -1, the length that is left"
        )
    if unknown and known == 0:
        raise InvalidArgumentError(
            f"{what} cannot be reshaped to {wanted}: beside an axis of 0 elements, -1 could be any length"
        )
    if (known and count % known) or (not unknown and known != count):
        raise InvalidArgumentError(f"{what} has {count} elements; it cannot be reshaped to {wanted}")
    return tuple(count // known if length == -1 else length for length in wanted)


def retyped(shape: tuple[int, ...], old: np.dtype[Any], new: np.dtype[Any], what: str) -> tuple[int, ...]:
    """The shape of a dense array of `shape` and `old` read as `new`, as ``ndarray.view(new)`` has it.

    Raises InvalidArgumentError where the bytes of the last axis are no whole number of the new elements.
    """
    if old.itemsize == new.itemsize:
        return shape
    if not shape:
        raise InvalidArgumentError(
            f"{what} has no axis that could change its length: only a dtype of {old.itemsize} bytes fits, and {new} has "
            f"{new.itemsize}"
        )
    size = shape[-1] * old.itemsize
    if size % new.itemsize:
        raise InvalidArgumentError(
            f"{what} has {size} bytes in its last axis, which is no whole number of {new} ({new.itemsize} bytes)"
        )
    return (*shape[:-1], size // new.itemsize)


def _basic(key: Any, what: str) -> int | slice | EllipsisType | None:
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if not isinstance(key, (bool, np.bool_)):
        try:
            return operator.index(key)
        except Exception:
            pass
    raise ArgumentTypeError(
        f"{what} is indexed with ints and slices, which give views of its memory, not with {shown(key)} "
        f"({type(key).__name__}). For other elements index an array: t.read()[...], or t.numpy()[...]"
    )


def _no_slice(key: Any, what: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"{what} has no [{_show(key)}]: slices take ints, and steps other than 0")


def _show(key: Any) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(_show, key))
    if isinstance(key, slice):
        parts = ["" if each is None else shown(each) for each in (key.start, key.stop)]
        return ":".join(parts) + ("" if key.step is None else f":{shown(key.step)}")
    return "..." if key is Ellipsis else shown(key)
