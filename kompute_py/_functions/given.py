"""What a call of a function is given: the memory that it shares, and all that a prepared call depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base.errors import InternalError, InvalidArgumentError
from .._custom.arguments import NUMPY_NUMBERS
from .._custom.names import text_of
from .._memory.image import Image
from .._memory.memory import seen_by_others
from .._memory.reach import extent_of, extents_meet, place_of
from .._memory.strided import StridedView
from .._memory.tensor import Tensor

if TYPE_CHECKING:
    from .._manager.manager import Manager

_ALIGNMENT = 256  # the largest minStorageBufferOffsetAlignment that Vulkan allows
_NUMBERS = (int, float, bool, complex, np.generic)
_VIEW = _native.BufferView
_SCALARS = frozenset((float, int, bool, complex, *NUMPY_NUMBERS))
_MEMORYLESS = frozenset((np.ndarray, int, float, bool, complex, str, type(None)))


def flat(values: Sequence[Any]) -> list[Any]:
    """`values` with the items of lists in their places."""
    if list not in map(type, values):
        return list(values)
    found: list[Any] = []
    for value in values:
        if type(value) is list:
            found += value
        else:
            found.append(value)
    return found


def bases(values: Sequence[Any], written: Sequence[int] = ()) -> list[Any]:
    """`values` with the tensors of parts in their places, except for those at the places `written`."""
    return [
        each
        if place in written
        else each._base
        if type(each) is StridedView
        else bases(each)
        if type(each) is list
        else each
        for place, each in enumerate(values)
    ]


def overlapping(
    who: str, values: Sequence[Any], outs: Sequence[Any], in_place: bool, written: Sequence[int] = ()
) -> tuple[int, ...]:
    """The places of tensors that share memory with `outs`, or with the arguments at the places `written`, so
    that kernels would read what they have written.

    With `in_place`, memory that is the same for the same elements does no harm. Raises InvalidArgumentError,
    beginning with `who`, if two that are written share memory.
    """
    given = flat(values)
    targets = [each for each in (*outs, *(given[place] for place in written)) if each is not None]
    if len(targets) > 1:
        require_separate(who, targets)
    memory = [each for each in targets if isinstance(each, Tensor)]
    if not memory or surely_apart(given, outs):
        return ()
    found = []
    extents = [(out, extent_of(out)) for out in memory if out.nbytes]
    for place, value in enumerate(given):
        base = value._base if type(value) is StridedView else value
        if place in written or not isinstance(base, Tensor) or not base.nbytes:
            continue
        own = extent_of(base)
        for out, theirs in extents:
            if not extents_meet(own, theirs):
                continue
            same = own[1] == theirs[1] and value.shape == out.shape and value.itemsize == out.itemsize
            if not (in_place and same and base is value):
                found.append(place)
                break
    return tuple(found)


def surely_apart(values: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Whether all tensors have memory of their own: the common case."""
    seen: list[Any] = []
    others = len(seen_by_others)
    for each in (*values, *outs):
        kind = type(each)
        if kind is Tensor:
            native = each._native
            if type(native) is _VIEW or native in seen or (others and each in seen_by_others):
                return False
            seen.append(native)
        elif kind in _MEMORYLESS:
            continue
        elif kind is StridedView or isinstance(each, Tensor) or (kind is list and not _of_ints(each)):
            return False
    return True


def _of_ints(values: list[Any]) -> bool:
    return all(type(each) is int for each in values)


def require_separate(who: str, targets: Sequence[Any]) -> None:
    for number, one in enumerate(targets):
        for other in targets[:number]:
            if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
                apart = not np.may_share_memory(one, other) or not np.shares_memory(one, other)
            elif isinstance(one, (Tensor, StridedView)) and isinstance(other, (Tensor, StridedView)):
                apart = not _share_elements(one, other)
            else:
                apart = one is not other
            if not apart:
                raise InvalidArgumentError(
                    f"{who}: two of the tensors that it writes share memory, so one would be lost; give each "
                    "memory of its own"
                )


def _share_elements(one: Tensor | StridedView, other: Tensor | StridedView) -> bool:
    """Whether two tensors or parts of tensors share an element."""
    if not one.nbytes or not other.nbytes:
        return False
    bases = [each._base if isinstance(each, StridedView) else each for each in (one, other)]
    extents = [extent_of(each) for each in bases]
    if not extents_meet(*extents):
        return False
    arrays = []
    for each, base, (_, begin, _) in zip((one, other), bases, extents, strict=True):
        first = each._first * each.itemsize if isinstance(each, StridedView) else 0
        strides = each.strides if isinstance(each, StridedView) else None
        arrays.append(_Addressed(begin + first + 1, each.shape, strides, base.itemsize))
    try:
        share: Any = np.shares_memory  # its type allows only two numbers for the work
        return bool(share(np.asarray(arrays[0]), np.asarray(arrays[1]), max_work=1 << 20))
    except getattr(np, "exceptions", np).TooHardError:  # older versions of NumPy have it at the top
        return True


class _Addressed:
    """Elements at addresses for NumPy's arithmetic alone: nothing is there."""

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
    ) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


def manager_of(who: str, given: Iterable[Any]) -> Manager | None:
    """The Manager of the memory among what is given. Raises InvalidArgumentError, beginning with `who`, for
    memory of two Managers.
    """
    found: Manager | None = None
    for each in given:
        if type(each) in _SCALARS or each is None:
            continue
        if type(each) is list:
            own = manager_of(who, each)
        else:
            own = each.manager if type(each) is StridedView else getattr(each, "_manager", None)
        if own is None or own is found:
            continue
        if found is not None:
            raise InvalidArgumentError(
                f"{who}: its tensors belong to two Managers, {found!r} and {own!r}; copy one, t.to(manager), "
                "or make both on one: results without a Tensor and draws of a Generator are on kp.manager(), "
                "unless another is given, Generator(seed, manager=mgr)"
            )
        found = own
    return found


def facts(parts_differ: bool, value: Any) -> tuple[Any, ...]:
    """All that a prepared call depends on of a value: what the table does not see itself."""
    if isinstance(value, Tensor):
        return value._shape, value._dtype, value._memory_type._value_, value._native.vk_offset % _ALIGNMENT
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.flags.writeable
    if isinstance(value, list):
        if not value or not isinstance(value[0], (Tensor, np.ndarray, StridedView, Image)):
            return "list", text_of(value)
        return "list", *[facts(parts_differ, each) for each in value]
    if isinstance(value, StridedView):
        base = value._base
        found = ("part", value.shape, value.dtype, base._memory_type._value_)
        if not parts_differ:
            return found
        return *found, value._first, value._strides, base._shape, base.vk_offset % _ALIGNMENT
    if isinstance(value, Image):
        kind = value._memory_type._value_
        return "image", value.shape, value.dtype, value._format.name, value._size, kind
    if isinstance(value, _NUMBERS):
        return (type(value),)
    raise InternalError(f"{type(value)} among the arguments of a prepared call")


def look_at_parts(written: Sequence[Any]) -> tuple[Any, ...]:
    """All that a prepared call depends on of parts that it writes."""
    return tuple([place_of(each) for each in written if type(each) is StridedView])


def require_alive(given: Sequence[Any]) -> None:
    """Raises the error that names the tensor if one is destroyed or donated."""
    for each in flat(given):
        if isinstance(each, (Tensor, StridedView, Image)):
            each._require_init("be used")


def places_of(given: Sequence[Any], tensors: Sequence[Tensor]) -> list[int]:
    """The places of `tensors` among all that is given, lists one by one."""
    return [place for place, each in enumerate(flat(given)) if any(each is tensor for tensor in tensors)]
