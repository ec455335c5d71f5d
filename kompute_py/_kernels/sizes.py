"""Checks that the arrays of a call have an element for every invocation that uses one.

On a device, reading beyond the end of an array gives zeros and writing there does nothing, so arrays of
different sizes would silently give wrong numbers. Reflection finds the element of a run-time array that each
invocation certainly uses, as an expression of its number (``a[gl_GlobalInvocationID.x]``, ``a[y * width +
x]``), and the bounds checks before the access. Arrays with the same index expression belong together:

* The call raises if one of them is too short for the invocations that use it.
* The call warns if no grid was given and one of them has elements that no invocation uses. Giving the grid
  states the intent.

Not checked: arrays that belong to no other array (the bins of a histogram, look-up tables, the matrices of a
product), accesses in loops or under conditions other than bounds checks, indices or bounds that depend on a
buffer's contents, and blocks of fixed size.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.errors import InvalidArgumentError
from .._base.warn import warn
from .._shaders.constants import Specialization
from .._shaders.signature import MISSING, Signature

if TYPE_CHECKING:
    from .._shaders.module import ShaderModule

_Interval = tuple[int, int]
_OF_TWO = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "minimum",
        "maximum",
        "divide",
        "modulo",
        "shift_left",
        "shift_right",
        "bit_and",
        "bit_or",
        "bit_xor",
        "either",
    ]
)


class Use(NamedTuple):
    """An array of a binding, and the element that an invocation uses."""

    position: int
    """Of the parameter."""
    offset: int
    stride: int
    guards: tuple[tuple[int, int], ...]
    alone: bool
    """Whether all uses of the array have this index."""

    def elements(self, bound: tuple[Any, ...]) -> int:
        """The number of elements of the argument's array."""
        count: int = (bound[self.position].nbytes - self.offset) // self.stride
        return count


class Launch(NamedTuple):
    """The facts of one launch that determine how far invocations reach."""

    extent: tuple[int, int, int] | None
    """Invocations, not rounded up to whole groups; None if groups were given."""
    groups: tuple[int, int, int]
    local_size: tuple[int, int, int]
    push: bytes
    push_offset: int
    """Byte of the push-constant space at which `push` begins."""
    by_default: bool
    """Whether the caller gave neither grid nor groups."""


def launch_of(
    signature: Signature,
    extent: tuple[int, int, int] | None,
    groups: tuple[int, int, int],
    push: bytes,
    by_default: bool,
) -> Launch:
    """The launch of a shader with this signature; the other arguments are the fields of `Launch`."""
    start = 0 if signature.push is None else signature.push.start
    return Launch(extent, groups, signature.local_size, push, start, by_default)


class SizeRules:
    """The relations among a shader's arrays."""

    __slots__ = (
        "_places",
        "_signature",
        "accesses",
        "all",
        "expressions",
        "groups",
        "positions",
        "written_elsewhere",
    )

    def __init__(
        self, signature: Signature, module: ShaderModule, special: Specialization, optimized: bool = False
    ) -> None:
        """`optimized`: use the code that runs, with functions inlined, rather than the code of the source."""
        self._signature = signature
        spirv = module.to_spirv() if optimized else module._declared or module.to_spirv()
        self.expressions, reaches, accesses, elsewhere = _native.reach_spirv(
            spirv, module.entry, special.data, special.entries, optimized
        )
        """(term, value, a, b): see native/core/spirv/reach.hpp."""
        self._places = {(p.set, p.binding): i for i, p in enumerate(signature.parameters)}
        groups: dict[int, list[Use]] = {}
        for group, binding, offset, stride, index, guards, alone in reaches:
            position = self._places.get((group, binding))
            if position is None or signature.parameters[position].descriptors != 1:
                continue
            groups.setdefault(index, []).append(Use(position, offset, stride, tuple(guards), alone))
        self.all = list(groups.items())
        """Arrays with one element per invocation, by the number of the index."""
        self.accesses = [
            (position, offset, stride, length, tuple(indices), tuple(guards), written, certain, write)
            for group, binding, offset, stride, length, indices, guards, written, certain, write in accesses
            if (position := self._places.get((group, binding))) is not None
            and signature.parameters[position].descriptors == 1
        ]
        """All accesses to arrays and images: the fields of `accesses.Access`."""
        places = set(elsewhere)
        self.written_elsewhere = {
            position
            for place, position in self._places.items()
            if place in places or (0xFFFFFFFF, 0xFFFFFFFF) in places
        }
        """Parameters with writes that `accesses` does not list."""
        self.positions = {use.position for uses in groups.values() for use in uses}
        self.groups = [(index, uses) for index, uses in self.all if len(uses) > 1]
        """Arrays that belong together, by the number of their index."""

    def position(self, group: int, binding: int) -> int | None:
        """The position of the parameter at a set and binding."""
        return self._places.get((group, binding))

    @property
    def names(self) -> list[str]:
        """The names of the parameters, by position."""
        return [parameter.name for parameter in self._signature.parameters]

    def tied_to(self, position: int) -> set[int]:
        """The parameters with arrays that belong together with that of parameter `position`."""
        tied = [{use.position for use in uses} for _, uses in self.groups]
        return {each for group in tied if position in group for each in group} - {position}

    def differing(self, bound: tuple[Any, ...]) -> list[tuple[int, list[Use], list[int]]]:
        """Arrays that belong together but have different numbers of elements, for `check`."""
        found = []
        for index, uses in self.groups:
            counts = [use.elements(bound) for use in uses]
            if counts.count(counts[0]) != len(counts):
                found.append((index, uses, counts))
        return found

    def check(self, kernel: str, bound: tuple[Any, ...], launch: Launch) -> None:
        """Raises InvalidArgumentError if an array is too short, and warns if a part of one is not used."""
        for index, uses, counts in self.differing(bound):
            self._compare(kernel, index, uses, counts, bound, launch)

    def _compare(
        self, kernel: str, index: int, uses: list[Use], counts: list[int], bound: Any, launch: Launch
    ) -> None:
        largest = max(counts)
        names = [self._signature.parameters[use.position].name for use in uses]
        longest = names[counts.index(largest)]
        needs = [Reached(self, bound, launch).needed(index, use.guards) for use in uses]
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
            if need is None or count <= need or self._asks_push(use.guards):
                continue
            beyond = launch.extent is not None and count > math.prod(launch.extent)
            if not use.alone and not (beyond and self._goes_to_its_end(index, use)):
                continue
            shorter = names[counts.index(min(counts))]
            warn(
                f"{kernel}: {name!r} has {_elements(count)}, {shorter!r} has {min(counts)}: the rest of "
                f"{name!r} is not used. "
                f"If you intend this, give grid=({need},)"
            )
            return

    def _goes_to_its_end(self, index: int, use: Use) -> bool:
        """Whether the code compares the index with the array's own length: ``if (i < y.length())``."""
        parameter = self._signature.parameters[use.position]
        own = ("length", 0, parameter.set, parameter.binding)
        return any(left == index and self.expressions[right] == own for left, right in use.guards)

    def _asks_push(self, guards: tuple[tuple[int, int], ...]) -> bool:
        """Whether a push constant limits the invocations that count."""
        return any(self._contains(right, "push_constant") for _, right in guards)

    def _contains(self, index: int, wanted: str) -> bool:
        term, _, a, b = self.expressions[index]
        if term in _OF_TWO:
            return self._contains(a, wanted) or self._contains(b, wanted)
        return term == wanted


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


class Reached:
    """The values that expressions take in one launch."""

    def __init__(self, rules: SizeRules, bound: tuple[Any, ...], launch: Launch) -> None:
        self._rules = rules
        self._bound = bound
        self._launch = launch
        self._most: dict[int, int] = {}  # of expressions with guards

    def needed(self, index: int, guards: tuple[tuple[int, int], ...]) -> int | None:
        """One more than the largest `index` of invocations that pass `guards`; None if unknown."""
        self._most = {}
        bounds = []
        for left, right in guards:
            limit = self._interval(right)
            if limit is None or limit[0] != limit[1]:
                return None
            bounds.append((left, limit[0]))
            if left == index or self._rules.expressions[left][0] == "invocation":
                self._most[left] = min(limit[0] - 1, self._most.get(left, limit[0] - 1))
        for left, bound in bounds:
            known = self._interval(left)
            # A bound on another value makes the number of passing invocations unknown.
            if known is None or known[1] >= bound:
                return None
        found = self._interval(index)
        return None if found is None else max(found[1] + 1, 0)

    def value(self, index: int) -> int | None:
        """The value of an expression that is the same for all invocations; None if unknown."""
        found = self._interval(index)
        return None if found is None or found[0] != found[1] else found[0]

    def limits(self, guards: tuple[tuple[int, int], ...]) -> dict[int, int]:
        """Invocations that pass `guards` on each axis with a bound of its own, if all were run."""
        found: dict[int, int] = {}
        for left, right in guards:
            term, axis, _, _ = self._rules.expressions[left]
            limit = self._interval(right)
            if term == "invocation" and limit is not None and limit[0] == limit[1]:
                found[axis] = min(limit[0], found.get(axis, limit[0]))
        return found

    def _interval(self, index: int) -> _Interval | None:
        known = self._plain(index)
        if known is None:
            return None
        low, high = known
        return (low, min(high, self._most[index])) if index in self._most else known

    def _plain(self, index: int) -> _Interval | None:
        term, value, a, b = self._rules.expressions[index]
        launch = self._launch
        if term == "constant":
            return value, value
        if term == "invocation":
            extent = launch.extent
            count = launch.groups[value] * launch.local_size[value] if extent is None else extent[value]
            return 0, count - 1
        if term == "group":
            return 0, launch.groups[value] - 1
        if term == "local":
            return 0, launch.local_size[value] - 1
        if term == "groups":
            return launch.groups[value], launch.groups[value]
        if term == "push_constant":
            at = value - launch.push_offset
            if not 0 <= at <= len(launch.push) - 4:
                return None
            if b == 0:
                number = int.from_bytes(launch.push[at : at + 4], "little", signed=True)
            else:
                (real,) = struct.unpack_from("<f", launch.push, at)
                if not abs(real) < 2**31:
                    return None
                number = int(real)
            return number, number
        if term == "length":
            return self._length(a, b)
        if term not in _OF_TWO:
            return None
        left, right = self._interval(a), self._interval(b)
        if left is None or right is None:
            return None
        if term == "add":
            return left[0] + right[0], left[1] + right[1]
        if term == "subtract":
            return left[0] - right[1], left[1] - right[0]
        if term == "minimum":
            return min(left[0], right[0]), min(left[1], right[1])
        if term == "maximum":
            return max(left[0], right[0]), max(left[1], right[1])
        if term == "divide":
            exact = left[0] >= 0 and right[0] == right[1] > 0
            return (left[0] // right[0], left[1] // right[0]) if exact else None
        if term != "multiply" or left[0] < 0 or right[0] < 0:
            return None
        return left[0] * right[0], left[1] * right[1]

    def _length(self, group: int, binding: int) -> _Interval | None:
        rules = self._rules
        position = rules._places.get((group, binding))
        if position is None or self._bound[position] is MISSING:
            return None
        members: list[Mapping[str, Any]] = rules._signature.parameters[position].layout["members"]
        if not members or not members[-1]["array"] or type(self._bound[position]) is tuple:
            return None
        count = (self._bound[position].nbytes - members[-1]["offset"]) // members[-1]["array_strides"][0]
        return count, count
