"""Parts of tensors that are not dense, as memory that kernels write.

Kernels write dense memory. Another kernel then copies its elements to the part, one invocation for each. It
moves bits, as unsigned ints of 1, 2 or 4 bytes, and is written for the number of axes alone, so that views of
one kind share it: steps and lengths are run-time values. It binds the bytes that the part reaches over.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from .._base.errors import InvalidArgumentError
from .._formulas.elements import whole_words
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .builder import KernelBuilder
from .declaration import parse
from .program import Program, compile_program
from .selection import KernelSelection
from .specs import TensorSpec

_MOST_GROUPS = 65535  # every device has as many on an axis
_MOST_PROGRAMS = 64
_UNITS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}
_UINT: np.dtype[Any] = np.dtype(np.uint32)
_DECLARED = parse("copy_part(Tensor source, Tensor(a!) target, int axes, bool spreads) -> ()")


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


def place_of(view: StridedView) -> tuple[Any, ...]:
    """All that the reach of a part depends on, beside the device."""
    root, offset = root_of(view._base), view._base.vk_offset
    return view._first, view._strides, offset - root.vk_offset, offset % 256, root.nbytes


def reach_of(view: StridedView, alignment: int) -> Reach:
    """The reach of a part; shaders bind ranges that begin at multiples of `alignment` bytes."""
    unit = _UNITS.get(view.itemsize, _UINT)
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


class _CopyPart:
    """Copies dense memory to a part, its reach in bytes, or the other way."""

    single_dispatch = True
    reads_parts = makes_images = in_place = False

    def generate(self, ksel: KernelSelection, kb: KernelBuilder) -> None:
        spreads, axes = ksel.attribute("spreads"), ksel.attribute("axes")
        groups = kb.ceil_div(kb.arg_value("source" if spreads else "target").size, 64)
        kb.groups(kb.smallest(groups, _MOST_GROUPS), kb.ceil_div(groups, _MOST_GROUPS))
        kb.emit("uint i = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 64u;")
        kb.emit("if (i >= count) return;")
        kb.emit("uint rest = i, place = first;")
        for axis in reversed(range(axes)):
            kb.emit(f"place += rest % length{axis} * step{axis}; rest /= length{axis};")
        source, target = ("i", "place") if spreads else ("place", "i")
        kb.emit(f"target_store({target}, source_load({source}));")


_COPY_PART = _CopyPart()
_programs: dict[Any, Program] = {}


def copying(
    who: str, reach: Reach, spreads: bool, device: Any, features: frozenset[str], setting: Any
) -> tuple[Program, KernelSelection]:
    """The kernel that copies dense memory to a part of this reach, or the other way.

    Raises InvalidArgumentError, beginning with `who`, for a part that reaches too far.
    """
    if reach.units >= 2**32:
        raise InvalidArgumentError(
            f"{who}: a part to write reaches over {reach.units} elements of {reach.unit}; kernels count "
            "elements with 32 bits"
        )
    # Dense memory is a number of whole words, and may be longer than the part.
    specs = [
        TensorSpec._of((whole_words(reach.moved),), reach.unit),
        TensorSpec._of((reach.units,), reach.unit),
    ]
    values: list[Any] = [*(specs if spreads else reversed(specs)), len(reach.axes), spreads]
    ksel = KernelSelection(_COPY_PART, _DECLARED, values, device, features)
    ksel.arg_tensor("source")
    ksel.arg_tensor("target", inplace_tied=True)
    ksel.attr_int("axes")
    ksel.attr_bool("spreads")
    ksel.value("count", reach.moved, _UINT)
    ksel.value("first", reach.first, _UINT)
    for axis, (length, step) in enumerate(reach.axes):
        ksel.value(f"length{axis}", length, _UINT)
        ksel.value(f"step{axis}", step % 2**32, _UINT)  # uint wraps, so a step back is a long one on
    ksel._finish()
    key = ksel.spec_key, features
    program = _programs.get(key)
    if program is None:
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()
        program = _programs[key] = compile_program(_COPY_PART, ksel, setting)
    return program._replace(name=who), ksel
