"""Writes of the invocations that fill up the last workgroups.

A grid is rounded up to whole groups. With a grid of (20, 10) and groups of (16, 16), 32 invocations run in x:
without a check of x, ``c[y * 20 + x]`` of the invocation (20, 0) is the element of (0, 1). Both write it, in
any order. This is right if they write the same value: `native/core/spirv/dependence.hpp` tells whether the
value depends on the invocation only through the element. Otherwise the call is refused.

Elements of no other invocation do not count: those beyond the end of an array, where a write does nothing,
and those of longer rows. Images do not count either, since each axis has an end of its own.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from .._base.errors import InvalidArgumentError
from .._shaders.signature import MISSING
from . import digits
from .accesses import Access, Accesses, Numbers, axes_of
from .digits import Digit, Sum
from .sizes import Launch, SizeRules

if TYPE_CHECKING:
    from .._base.arrays import Counts

_MOST_PASSED = 256


def fills_up(extent: Counts | None, groups: Counts, local_size: Counts) -> bool:
    """Whether invocations beyond the grid run, on several axes in all."""
    if extent is None:
        return False
    run = [count * size for count, size in zip(groups, local_size, strict=True)]
    return run != list(extent) and sum(each > 1 for each in run) > 1


def spills(access: Access, numbers: Numbers, accesses: Accesses, launch: Launch, elements: int) -> int | None:
    """An axis on which invocations beyond the grid pass the bounds checks and write elements, among the
    first `elements`, of invocations within the grid. None if there is none or it is unknown.
    """
    found = numbers.element(access)
    if launch.extent is None or found is None:
        return None
    if found.loose and access.write.same == "unknown":
        return None
    factors = _factors(access, numbers, found, launch.extent, elements)
    run = [_running(access, numbers, accesses, launch, axis) for axis in range(3)]
    for axis, first in enumerate(launch.extent):
        last, factor = run[axis], factors[axis]
        if not factor or last is None or last <= first:
            continue
        for other in range(3):
            if other == axis or not factors[other]:
                continue
            # factor * across == factors[other] * along: so far apart are two with the same element.
            shared = math.gcd(factor, factors[other])
            across, along = abs(factors[other]) // shared, abs(factor) // shared
            reached = run[other]
            ahead = factor * factors[other] > 0
            rows = launch.extent[other] if ahead or reached is None else reached
            element = found.constant + factor * max(first - across, 0) + factors[other] * (along * ahead)
            if across < last and along < rows and element < elements:
                return axis
    return None


def _factors(access: Access, numbers: Numbers, found: Sum, extent: Counts, elements: int) -> list[int]:
    """How far apart the elements of neighbours on each axis are; 0 if unknown."""
    index = access.indices[0]
    if not found.loose:
        steps: dict[int, int | None] = {}
        for axis in range(3):
            own = found.on(axis)
            steps[axis] = own.get(Digit(axis, 1, 0), 0) if len(own) == 1 else 0
    else:
        steps = numbers.steps(index)
    factors: list[int] = []
    for axis in range(3):
        step = steps.get(axis, 0)
        if step is None:
            # y * w + x with w from memory: in an array of the grid's size, the rows are those of the grid.
            plain = all(factors[k] == math.prod(extent[:k]) for k in range(axis) if extent[k] > 1)
            step = math.prod(extent[:axis]) if plain and elements == math.prod(extent) else 0
        factors.append(step)
    return factors


def _running(access: Access, numbers: Numbers, accesses: Accesses, launch: Launch, axis: int) -> int | None:
    """How many invocations on an axis may pass the bounds checks; None if a check has an unknown bound."""
    run = [1, 1, 1]  # the others are zero: a check of a sum leaves them the most
    run[axis] = launch.groups[axis] * launch.local_size[axis]
    last = run[axis]
    for left, right in access.guards if access.write.same == "unknown" else access.write.holding:
        index, bound = numbers.sum(left), numbers.sum(right)
        if index is None or bound is None or bound.known is None:
            if accesses.counts(left, axis):
                return None
            continue
        end = digits.end(index, axis, (run[0], run[1], run[2]), bound.known)
        if end is not None:
            last = min(last, max(end, 0))
    return last


def same_values(access: Access, numbers: Numbers, launch: Launch, bound: Sequence[Any]) -> bool:
    """Whether invocations that write the same element write the same value."""
    write = access.write
    if write.same != "yes" or launch.extent is None:
        return False
    for left, right in write.required:
        index, limit = numbers.sum(left), numbers.sum(right)
        if index is None or index.loose or limit is None or limit.known is None:
            continue  # taken as a bounds check of the whole grid
        most = sum(f * d.most(launch.extent[d.axis]) for d, f in index.digits.items() if f > 0)
        if index.constant + most >= limit.known:
            return False  # not all within the grid write their elements
    return not any(
        each != access.position and _share(bound[each], bound[access.position]) for each in write.reads
    )


class SpillCheck:
    """The check of one shader."""

    __slots__ = ("_accesses", "_passed", "_rules", "_suspects")

    def __init__(self, rules: SizeRules, accesses: Accesses) -> None:
        """`rules` and `accesses` are of the optimized code."""
        self._rules = rules
        self._accesses = accesses
        self._suspects = [
            each
            for each in accesses.all
            if each.written
            and each.stride
            and (
                each.write.same == "no"
                or (each.write.same == "yes" and (each.write.required or each.write.reads))
            )
        ]
        self._passed: dict[tuple[Any, ...], bool] = {}
        """By sizes and values of calls that passed, because calls repeat: what `check` returned."""

    @property
    def any(self) -> bool:
        """Whether there is anything to check."""
        return bool(self._suspects)

    def check(self, kernel: str, bound: tuple[Any, ...], launch: Launch, but: Container[int] = ()) -> bool:
        """Whether other memory instead of `bound`, of the same sizes, could be refused: arguments that
        overlap are changed in place.

        Raises InvalidArgumentError if invocations that fill up the last workgroups change elements of
        others. Parameters in `but` are not checked.
        """
        if not self._suspects or launch.extent is None or not all(launch.groups):
            return False
        push, start = launch.push, launch.push_offset
        values = [push[at - start : at - start + 4] for at in self._accesses.push if at >= start]
        sizes = [_size(each) for each in bound]
        shared = [
            _share(bound[each], bound[access.position])
            for access in self._suspects
            for each in access.write.reads
        ]
        looked_at = (launch.extent, launch.groups, *values, *sizes, *shared)
        known = self._passed.get(looked_at)
        if known is not None:
            return known
        numbers = Numbers(self._rules, self._accesses, bound, launch)
        by_memory = False
        for access in self._suspects:
            memory = bound[access.position]
            if access.position in but or memory is MISSING or type(memory) is tuple:
                continue
            axis = spills(access, numbers, self._accesses, launch, access.elements(bound))
            if axis is None:
                continue
            if not same_values(access, numbers, launch, bound):
                raise _refusal(kernel, self._rules.names[access.position], axis, launch)
            by_memory = by_memory or bool(access.write.reads)
        if len(self._passed) >= _MOST_PASSED:
            self._passed.clear()
        if not but:
            self._passed[looked_at] = by_memory
        return by_memory


def _refusal(kernel: str, name: str, axis: int, launch: Launch) -> InvalidArgumentError:
    assert launch.extent is not None
    letter, first, size = "xyz"[axis], launch.extent[axis], launch.local_size[axis]
    last = launch.groups[axis] * size - 1
    others = f"{letter} = {first}" if last == first else f"{letter} = {first} to {last}"
    return InvalidArgumentError(
        f"{kernel}: {first} invocations in {letter} are filled up to whole groups of {size}, and those with "
        f"{others} write elements of {name!r} that belong to others, with other values. Check {letter} in "
        f"the shader (if ({letter} >= {first}) return;), or choose a local size that divides {first}, or a "
        f"grid with a multiple of {size}"
    )


def _size(memory: Any) -> Any:
    if getattr(memory, "_is_image", False):
        return axes_of(memory)
    return getattr(memory, "nbytes", None)  # samplers and arrays of bindings have none


def _share(one: Any, other: Any) -> bool:
    """Whether two arguments are, or are parts of, the same memory, and overlap."""
    if one is other:
        return one is not MISSING
    if type(one) is tuple:
        return any(_share(each, other) for each in one)
    if _root(one) is not _root(other) or getattr(one, "_is_image", True):
        return False
    first, second = one._native, other._native
    return bool(
        first.vk_offset < second.vk_offset + other.nbytes and second.vk_offset < first.vk_offset + one.nbytes
    )


def _root(memory: Any) -> Any:
    while (base := getattr(memory, "base", None)) is not None:
        memory = base
    return memory
