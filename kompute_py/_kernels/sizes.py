"""Whether the arrays of a call have an element for every invocation that uses one.

Reading beyond the end of an array gives zeros on a device, and writing there does nothing, so arrays of different sizes give
wrong numbers without a word. Reflection says which element of a run-time array each invocation certainly uses, as an expression of
its number (``a[gl_GlobalInvocationID.x]``, ``a[y * width + x]``), and which bounds checks stand before that. Arrays that
are indexed by the same expression belong together:

* If one of them ends before the invocations do that use it, the call raises.
* If the grid was left out and one of them has elements that no invocation uses, the call warns; a grid that was given says that this is meant.

Nothing is said of arrays that belong to no other (a histogram's bins, look-up tables, the matrices of a product), of those that are used
in loops or under conditions other than bounds checks, of an index or a bound that depends on a buffer's contents, and of blocks
of fixed size.
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
    """An array of a binding, and the element of it that an invocation uses."""

    position: int
    """Of the parameter."""
    offset: int
    stride: int
    guards: tuple[tuple[int, int], ...]
    alone: bool
    """Whether no code uses the array with another index."""

    def elements(self, bound: tuple[Any, ...]) -> int:
        """How many the argument's array has."""
        count: int = (bound[self.position].nbytes - self.offset) // self.stride
        return count


class Launch(NamedTuple):
    """What decides how far invocations reach."""

    extent: tuple[int, int, int] | None
    """Invocations, not rounded up to whole groups; None where groups were given."""
    groups: tuple[int, int, int]
    local_size: tuple[int, int, int]
    push: bytes
    push_offset: int
    """Byte of the push-constant space at which `push` begins."""
    by_default: bool
    """Whether the caller left out how many run."""


def launch_of(
    signature: Signature,
    extent: tuple[int, int, int] | None,
    groups: tuple[int, int, int],
    push: bytes,
    by_default: bool,
) -> Launch:
    """The launch of a shader with this signature; the rest is as in `Launch`."""
    start = 0 if signature.push is None else signature.push.start
    return Launch(extent, groups, signature.local_size, push, start, by_default)


class SizeRules:
    """What a shader's arrays have to do with each other."""

    __slots__ = ("_places", "_signature", "accesses", "all", "expressions", "groups", "positions")

    def __init__(
        self, signature: Signature, module: ShaderModule, special: Specialization, optimized: bool = False
    ) -> None:
        """`optimized`: of the code that runs, in which functions are inlined; else of what the source declares."""
        self._signature = signature
        spirv = module.to_spirv() if optimized else module._declared or module.to_spirv()
        self.expressions, reaches, accesses = _native.reach_spirv(
            spirv, module.entry, special.data, special.entries
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
        """Arrays of which each invocation uses an element, by the number of the element's index."""
        self.accesses = [
            (position, offset, stride, length, tuple(indices), tuple(guards), written, certain)
            for group, binding, offset, stride, length, indices, guards, written, certain in accesses
            if (position := self._places.get((group, binding))) is not None
            and signature.parameters[position].descriptors == 1
        ]
        """All accesses to arrays and images: the fields of `accesses.Access`."""
        self.positions = {use.position for uses in groups.values() for use in uses}
        self.groups = [(index, uses) for index, uses in self.all if len(uses) > 1]
        """Arrays that belong together, by the number of their index."""

    def position(self, group: int, binding: int) -> int | None:
        """Of the parameter of a set and binding."""
        return self._places.get((group, binding))

    @property
    def names(self) -> list[str]:
        """Of the parameters, by position."""
        return [parameter.name for parameter in self._signature.parameters]

    def tied_to(self, position: int) -> set[int]:
        """The parameters whose arrays belong together with that of parameter `position`."""
        tied = [{use.position for use in uses} for _, uses in self.groups]
        return {each for group in tied if position in group for each in group} - {position}

    def differing(self, bound: tuple[Any, ...]) -> list[tuple[int, list[Use], list[int]]]:
        """The arrays that belong together and have different numbers of elements: what `check` has to look at."""
        found = []
        for index, uses in self.groups:
            counts = [use.elements(bound) for use in uses]
            if counts.count(counts[0]) != len(counts):
                found.append((index, uses, counts))
        return found

    def check(self, kernel: str, bound: tuple[Any, ...], launch: Launch) -> None:
        """Raises InvalidArgumentError for an array that is too short, and warns of one that is partly left out."""
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
                f"{kernel}: {name!r} has {_elements(count)}, {longest!r} has {largest}, and {need} invocations use one of each: what "
                f"lies beyond the end of {name!r} would be read as zeros, or not be written. Give arrays of one size "
                f"(np.full and np.broadcast_to repeat a value), or say with grid= how many invocations run"
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
                f"{kernel}: {name!r} has {_elements(count)}, {shorter!r} has {min(counts)}: the rest of {name!r} is left out. "
                f"If this is meant, say how many invocations run: grid=({need},)"
            )
            return

    def _goes_to_its_end(self, index: int, use: Use) -> bool:
        """Whether the code compares the index with the array's own length: ``if (i < y.length())``."""
        parameter = self._signature.parameters[use.position]
        own = ("length", 0, parameter.set, parameter.binding)
        return any(left == index and self.expressions[right] == own for left, right in use.guards)

    def _asks_push(self, guards: tuple[tuple[int, int], ...]) -> bool:
        """Whether a push constant says how many invocations count."""
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
        self._most: dict[int, int] = {}  # of expressions that guards bound

    def needed(self, index: int, guards: tuple[tuple[int, int], ...]) -> int | None:
        """One more than the largest value of `index` among invocations that pass `guards`; None if that is not known."""
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
            # A bound on something else, which not every invocation keeps, makes the number of those that do unknown.
            if known is None or known[1] >= bound:
                return None
        found = self._interval(index)
        return None if found is None else max(found[1] + 1, 0)

    def value(self, index: int) -> int | None:
        """What an expression is that is the same for all invocations; None if that is not known."""
        found = self._interval(index)
        return None if found is None or found[0] != found[1] else found[0]

    def limits(self, guards: tuple[tuple[int, int], ...]) -> dict[int, int]:
        """How many invocations pass `guards` on each axis that one of them bounds alone, if all were run."""
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
