"""Checks that the arrays of a call have an element for every invocation that uses one (rule 4 of the room).

On a device, reading beyond the end of an array gives zeros and writing there does nothing, so arrays of
different sizes would silently give wrong numbers. Arrays that every invocation uses at the same index
(``a[i]``, ``a[y * width + x]``), behind bounds checks alone, belong together:

* The call raises if one of them is too short for the invocations that use it.
* The call warns if no grid was given and one of them has elements that no invocation uses. Giving the grid
  states the intent.

Not checked: arrays that belong to no other array (the bins of a histogram, look-up tables, the matrices of a
product), accesses in loops or under other conditions, indices or bounds from memory, blocks of fixed size.
"""

from __future__ import annotations

import math
from typing import Any

from .._base.errors import InvalidArgumentError
from .._base.warn import warn
from .code import Access, Code, Launch
from .values import Values


class SizeRules:
    """The arrays of a shader that belong together."""

    __slots__ = ("_alone", "_code", "groups")

    def __init__(self, code: Code) -> None:
        self._code = code
        uses: dict[int, dict[tuple[int, int], Access]] = {}  # by index, and by array
        for access in code.accesses:
            followed = access.certain and access.stride and not access.length and code.axes(access.indices[0])
            if followed and code.signature.parameters[access.position].descriptors == 1:
                mine = uses.setdefault(access.indices[0], {})
                known = mine.setdefault((access.position, access.offset), access)
                if len(access.guards) < len(known.guards):
                    mine[(access.position, access.offset)] = access
        self.groups = [(index, list(mine.values())) for index, mine in uses.items() if len(mine) > 1]
        """Arrays that belong together, by the number of their index."""
        self._alone = {
            access.position
            for access in code.accesses
            if all(
                each.certain and (each.indices, each.offset) == (access.indices, access.offset)
                for each in code.accesses
                if each.position == access.position
            )
        }

    def tied_to(self, position: int) -> set[int]:
        """The parameters with arrays that belong together with that of parameter `position`."""
        tied = [{use.position for use in uses} for _, uses in self.groups]
        return {each for group in tied if position in group for each in group} - {position}

    def differing(self, bound: tuple[Any, ...]) -> list[tuple[int, list[Access], list[int]]]:
        """Arrays that belong together but have different numbers of elements, for `check`."""
        found = []
        for index, uses in self.groups:
            counts = [use.elements(bound) for use in uses]
            if counts.count(counts[0]) != len(counts):
                found.append((index, uses, counts))
        return found

    def check(self, kernel: str, bound: tuple[Any, ...], launch: Launch) -> None:
        """Raises InvalidArgumentError if an array is too short, and warns if a part of one is not used."""
        values = Values(self._code, bound, launch)
        for index, uses, counts in self.differing(bound):
            self._compare(kernel, index, uses, counts, values, launch)

    def _compare(
        self, kernel: str, index: int, uses: list[Access], counts: list[int], values: Values, launch: Launch
    ) -> None:
        largest = max(counts)
        names = [self._code.names[use.position] for use in uses]
        longest = names[counts.index(largest)]
        needs = [values.needed(index, use.guards) for use in uses]
        for name, count, need in zip(names, counts, needs, strict=True):
            if need is None or count >= min(need, largest):
                continue
            raise InvalidArgumentError(
                f"{kernel}: {name!r} has {_elements(count)}, {longest!r} has {largest}, and {need} "
                "invocations use one of each. Beyond "
                f"the end of {name!r}, reads would give zeros and writes would do nothing. Give arrays of "
                "one size "
                "(np.full and np.broadcast_to repeat a value), or choose the number of invocations with "
                "grid="
            )
        if not launch.by_default:
            return
        for use, name, count, need in zip(uses, names, counts, needs, strict=True):
            if (
                need is None
                or count <= need
                or any(self._code.has(right, "push_constant") for _, right in use.guards)
            ):
                continue
            beyond = launch.extent is not None and count > math.prod(launch.extent)
            if use.position not in self._alone and not (beyond and self._goes_to_its_end(index, use)):
                continue
            shorter = names[counts.index(min(counts))]
            warn(
                f"{kernel}: {name!r} has {_elements(count)}, {shorter!r} has {min(counts)}: the rest of "
                f"{name!r} is not used. "
                f"If you intend this, give grid=({need},)"
            )
            return

    def _goes_to_its_end(self, index: int, use: Access) -> bool:
        """Whether the code compares the index with the array's own length: ``if (i < y.length())``."""
        parameter = self._code.signature.parameters[use.position]
        own = ("length", 0, parameter.set, parameter.binding)
        return any(left == index and self._code.expressions[right] == own for left, right in use.guards)


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
