"""The bytes over which a part of a tensor that is not dense reaches, as kernels bind them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from .strided import StridedView
from .tensor import Tensor

_UNITS: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, ("u4", "u1", "u2", "u1")))
"""The unit of elements by the bytes that they have beyond whole words."""


def whole_words(count: int) -> int:
    """The least number of elements from `count` on that fills whole words, whatever bytes an element has:
    shaders of some devices bind words only.
    """
    return -(-count // 4) * 4


class Reach(NamedTuple):
    """The elements of a part, in units of the bytes that it reaches over."""

    unit: np.dtype[Any]
    moved: int
    """The units of its elements."""
    axes: tuple[tuple[int, int], ...]
    """(length, units from one to the next), merged where they follow each other."""
    begin: int
    """The first byte that is bound, from the first one of the tensor that it is a part of."""
    first: int
    """The unit in which its first element begins, from `begin` on."""
    nbytes: int
    """The bytes that are bound."""
    bindable: bool
    """Whether shaders can bind these bytes where they are. Else they are copied, too."""

    @property
    def units(self) -> int:
        """The units that are bound: those that a copy has, if it takes their place."""
        units = self.nbytes // self.unit.itemsize
        return units if self.bindable else whole_words(units)


def root_of(tensor: Tensor) -> Tensor:
    """The tensor that has the memory of a view."""
    while (base := tensor.base) is not None:
        tensor = base
    return tensor


def extents_meet(one: tuple[Any, int, int], other: tuple[Any, int, int]) -> bool:
    """Whether two extents share bytes."""
    return bool(one[0] == other[0]) and one[1] < other[2] and other[1] < one[2]


def extent_of(tensor: Tensor) -> tuple[Any, int, int]:
    """An address space, the first byte in it and that after the last. Two tensors over the same memory of the
    process, such as two imports of an array, differ in all but these.
    """
    address = tensor._native.host_address
    if address:
        return "host", address, address + tensor.nbytes
    offset = tensor._native.vk_offset
    return id(root_of(tensor)), offset, offset + tensor.nbytes


def meet(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors share bytes."""
    return extents_meet(extent_of(one), extent_of(other))


def place_of(view: StridedView) -> tuple[Any, ...]:
    """All that the reach of a part depends on, besides the device."""
    root, offset = root_of(view._base), view._base.vk_offset
    return view._first, view._strides, offset - root.vk_offset, offset % 256, root.nbytes


def reach_of(view: StridedView, alignment: int) -> Reach:
    """The reach of a part; shaders bind ranges that begin at multiples of `alignment` bytes."""
    unit = _UNITS[view.itemsize % 4]
    several = view.itemsize // unit.itemsize
    axes: list[tuple[int, int]] = []
    for length, stride in zip(view.shape, view._strides, strict=True):
        _add_axis(axes, length, stride * several)
    _add_axis(axes, several, 1)
    first = view._first * several
    least = first + sum(min((n - 1) * step, 0) for n, step in axes)
    most = first + sum(max((n - 1) * step, 0) for n, step in axes)
    root, offset = root_of(view._base), view._base.vk_offset
    here, behind = offset + least * unit.itemsize, offset + (most + 1) * unit.itemsize
    alignment = max(alignment, 4)
    begin, end = here // alignment * alignment, -(-behind // 4) * 4
    bindable = (
        begin >= root.vk_offset
        and end <= root.vk_offset + root.nbytes
        and (here - begin) % unit.itemsize == 0
    )
    if not bindable:
        begin, end = here, behind
    return Reach(
        unit,
        math.prod(view.shape) * several,
        tuple(axes),
        begin - offset,
        (here - begin) // unit.itemsize + first - least,
        end - begin,
        bindable,
    )


def _add_axis(axes: list[tuple[int, int]], length: int, step: int) -> None:
    """Adds an inner axis."""
    if length == 1:
        return
    if axes and axes[-1][1] == length * step:
        length *= axes.pop()[0]
    axes.append((length, step))


def bytes_of(view: StridedView, reach: Reach) -> Any:
    """The native memory that a part reaches over."""
    root = root_of(view._base)
    begin = view._base.vk_offset - root.vk_offset + reach.begin
    return _native.view(root._native, begin, reach.nbytes)
