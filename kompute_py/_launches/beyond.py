"""Writes of the invocations that fill up the last workgroups (rule 3 of the room).

A grid is rounded up to whole groups. With a grid of (20, 10) and groups of (16, 16), 32 invocations run in x:
without a check of x, ``c[y * 20 + x]`` of the invocation (20, 0) is the element of (0, 1). Both write it, in
any order.

Elements of no other invocation do not count: those beyond the end of an array, where a write does nothing,
and those of longer rows. Images do not count either, since each axis has an end of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import TYPE_CHECKING, Any

from .._base.errors import InvalidArgumentError
from .._shaders.signature import MISSING
from .code import Access, Code, Launch
from .values import Values

if TYPE_CHECKING:
    from .._base.arrays import Counts


def fills_up(extent: Counts | None, groups: Counts, local_size: Counts) -> bool:
    """Whether invocations beyond the grid run, on several axes in all."""
    if extent is None:
        return False
    run = [count * size for count, size in zip(groups, local_size, strict=True)]
    return run != list(extent) and sum(each > 1 for each in run) > 1


def spills(
    access: Access, code: Code, values: Values, launch: Launch, counted: Collection[int]
) -> int | None:
    """An axis that the code counts, on which invocations beyond the grid pass the bounds checks and write
    elements of invocations within the grid; None if there is none.
    """
    if launch.extent is None:
        return None
    axes = sorted(counted)
    inside = [axis for axis in axes if launch.extent[axis] > 1]
    found = values.sum(access.indices[0])
    run = {axis: _running(access, code, values, launch, axis) for axis in axes}
    over = [axis for axis in axes if run[axis] > launch.extent[axis]]
    for axis in over:
        if axis not in code.axes(access.indices[0]):
            return axis  # all invocations on it write one element
    if found is None or any(term[0] == "quotient" for term in found.terms):
        over = [axis for axis in over if inside not in ([], [axis])]
        return over[0] if over else None  # not followed: each axis needs a check
    together = [set(term[2:]) for term in found.terms if term[0] == "unknown" and len(term) > 3]
    factors = {axis: abs(found.on(axis)) for axis in axes if found.on(axis)}
    for axis in over:
        # Where one number counts backwards, rows beyond the grid meet those within it, too.
        turned = [other for other in axes if run[other] > 1 and found.on(axis) * found.on(other) < 0]
        for other in (*inside, *turned):
            if other != axis and any({axis, other} <= each for each in together):
                return axis
            # Rows of a length that is not known are taken to be those of the grid.
            if other == axis or axis not in factors or 0 < factors.get(other, 0) < factors[axis]:
                continue
            ahead = sum(
                factors[a] * (run[a] - 1) for a in factors if factors[a] < factors.get(other, 1 << 64)
            )
            if other not in factors or ahead >= factors[other] or factors[other] == factors[axis]:
                return axis
    return None


def _running(access: Access, code: Code, values: Values, launch: Launch, axis: int) -> int:
    """How many invocations on an axis may pass the bounds checks. A check with a bound from constant memory,
    which the host does not look at, is taken as one of the grid.
    """
    assert launch.extent is not None
    run = launch.run[axis]
    for guard in access.guards:
        left, right = guard
        if axis not in code.axes(left):
            continue
        if values.known(right) is None or values.sum(left) is None:
            return min(run, launch.extent[axis])
        while run > launch.extent[axis] and not values.passes((guard,), axis, run - 1):
            run -= 1
    return run


class Beyond:
    """The check of one shader."""

    __slots__ = ("_code", "_counted", "suspects")

    def __init__(self, code: Code, axes: str) -> None:
        """`axes` are those that the code counts, such as "xy"."""
        self._code = code
        self._counted = {"xyz".index(axis) for axis in axes}
        self.suspects = [
            access
            for access in code.accesses
            if access.written and access.stride and code.axes(access.indices[0]) and len(axes) > 1
        ]
        """The writes that some grid may spill."""

    def check(self, kernel: str, bound: tuple[Any, ...], launch: Launch, but: Container[int] = ()) -> None:
        """Raises InvalidArgumentError if invocations that fill up the last workgroups write elements of
        others. Parameters in `but` are not checked.
        """
        if not all(launch.groups):
            return
        values = Values(self._code, bound, launch)
        for access in self.suspects:
            if access.position in but or bound[access.position] is MISSING:
                continue
            axis = spills(access, self._code, values, launch, self._counted)
            if axis is not None:
                raise _refusal(kernel, self._code.names[access.position], axis, launch)


def _refusal(kernel: str, name: str, axis: int, launch: Launch) -> InvalidArgumentError:
    assert launch.extent is not None
    letter, first, size = "xyz"[axis], launch.extent[axis], launch.local_size[axis]
    last = launch.groups[axis] * size - 1
    others = f"{letter} = {first}" if last == first else f"{letter} = {first} to {last}"
    return InvalidArgumentError(
        f"{kernel}: {first} invocations in {letter} are filled up to whole groups of {size}, and those with "
        f"{others} write elements of {name!r} that belong to others. Check {letter} in "
        f"the shader (if ({letter} >= {first}) return;), or choose a local size that divides {first}, or a "
        f"grid with a multiple of {size}. If the shader is right as it is, as one that exchanges elements in "
        f"shared memory may be, give groups={tuple(launch.groups)} instead of a grid: that is not judged"
    )
