"""The elements of arrays and images that a shader's invocations use, as sums of the digits of their numbers.

`sizes` compares arrays by the elements that every invocation certainly uses. This module covers all accesses,
including conditional ones and indices that divide, mask or shift the number; `grid_check` compares them with
the default grid.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import digits
from .digits import Digit, Sum
from .sizes import Launch, Reached, SizeRules

_NARROWING = frozenset(("divide", "modulo", "shift_right", "bit_and", "bit_or", "bit_xor"))
_LEAVES = frozenset(("constant", "push_constant", "length", "groups"))
_PLAIN = frozenset(("add", "multiply", "minimum", "maximum", "shift_left"))
_BINARY = _NARROWING | _PLAIN | {"subtract", "either"}


class Write(NamedTuple):
    """What invocations do that write the same element (native/core/spirv/dependence.hpp)."""

    same: str
    """"yes" if they write the same value, if `required` holds; "no"; "unknown" if it was not judged."""
    holding: tuple[tuple[int, int], ...]
    """Pairs of expressions: for each that writes, the first is less than the second. Only those that may
    differ between invocations with the same element.
    """
    required: tuple[tuple[int, int], ...]
    """Some of `holding`."""
    reads: frozenset[int]
    """Positions of the parameters that the value is computed from."""


class Access(NamedTuple):
    """An element of an array, or a texel of an image, that invocations use."""

    position: int
    """Of the parameter."""
    offset: int
    stride: int
    """Bytes from one element to the next; 0 for an image."""
    length: int
    """The declared number of elements; 0 if there is none."""
    indices: tuple[int, ...]
    """The numbers of the expressions: one, or one for each axis of an image, x first."""
    guards: tuple[tuple[int, int], ...]
    """Pairs of expressions: if the access happens, the first is less than the second."""
    written: bool
    certain: bool
    """Whether every invocation that passes the guards makes the access."""
    write: Write

    def elements(self, bound: tuple[Any, ...]) -> int:
        """The argument's number of elements."""
        if self.stride == 0:
            return math.prod(axes_of(bound[self.position]))
        if self.length:
            return self.length
        count: int = (bound[self.position].nbytes - self.offset) // self.stride
        return count


def axes_of(image: Any) -> tuple[int, ...]:
    """The lengths of an image's axes, x last."""
    axes: tuple[int, ...] = getattr(image, "_image", image)._size.axes  # also of a sampled image
    return axes


class Accesses:
    """All accesses of a shader's code."""

    __slots__ = ("_counted", "_rules", "_varying", "all", "narrow", "plain", "push")

    def __init__(self, rules: SizeRules) -> None:
        self._rules = rules
        self._varying: dict[int, bool] = {}
        self._counted: dict[tuple[int, int], bool] = {}
        self.all = [Access(*each[:-1], _write(rules, each[-1])) for each in rules.accesses]
        self.narrow = {a for a in range(len(self.all)) if any(map(self.narrows, self.all[a].indices))}
        """Accesses, by number, with an index that divides or masks the invocation's number: several may share
        an element.
        """
        written: dict[int, bool] = {}
        for access in self.all:
            if access.written:
                plain = len(access.indices) == 1 and self._is_plain(access.indices[0])
                written[access.position] = plain and written.get(access.position, True)
        self.plain = {position for position, plain in written.items() if plain}
        """Parameters written only at sums and products of the number: the last invocation has the last
        element.
        """
        expressions = rules.expressions
        self.push = sorted({value for term, value, _, _ in expressions if term == "push_constant"})
        """Offsets in the push-constant space of numbers that influence an index or guard."""

    def varies(self, index: int) -> bool:
        """Whether an expression differs between invocations."""
        known = self._varying.get(index)
        if known is None:
            term, _, a, b = self._rules.expressions[index]
            known = term in ("invocation", "group", "local", "derived")
            if term in _BINARY:
                known = self.varies(a) or self.varies(b)
            self._varying[index] = known
        return known

    def counts(self, index: int, axis: int) -> bool:
        """Whether an expression contains the invocation's number on `axis`, or may contain it."""
        known = self._counted.get((index, axis))
        if known is None:
            term, value, a, b = self._rules.expressions[index]
            known = term == "derived" or (term in ("invocation", "group", "local") and value == axis)
            if term in _BINARY:
                known = self.counts(a, axis) or self.counts(b, axis)
            self._counted[(index, axis)] = known
        return known

    def narrows(self, index: int) -> bool:
        """Whether an expression divides or masks the invocation's number, or is unknown."""
        term, _, a, b = self._rules.expressions[index]
        if not self.varies(index):
            return False
        if term == "derived" or (term in _NARROWING and (term != "shift_right" or self.varies(a))):
            return True
        return term in _BINARY and (self.narrows(a) or self.narrows(b))

    def _is_plain(self, index: int) -> bool:
        term, value, a, b = self._rules.expressions[index]
        if term in ("invocation", "groups", "length", "unknown") or (term == "constant" and value >= 0):
            return True
        if term == "multiply" and "push_constant" in (
            self._rules.expressions[a][0],
            self._rules.expressions[b][0],
        ):
            return self._is_plain(a) or self._is_plain(b)
        return term in _PLAIN and self._is_plain(a) and self._is_plain(b)


def _write(rules: SizeRules, found: tuple[str, Any, Any, Any]) -> Write:
    same, holding, required, reads = found
    positions = (rules.position(group, binding) for group, binding in reads)
    return Write(
        same, tuple(holding), tuple(required), frozenset(each for each in positions if each is not None)
    )


class Numbers:
    """The sums of indices in one launch."""

    def __init__(self, rules: SizeRules, accesses: Accesses, bound: tuple[Any, ...], launch: Launch) -> None:
        self._rules = rules
        self._expressions = rules.expressions
        self._accesses = accesses
        self._bound = bound
        self._launch = launch
        self._leaves = Reached(rules, bound, launch)
        self._sums: dict[int, Sum | None] = {}

    def element(self, access: Access) -> Sum | None:
        """The element that an invocation uses; None if unknown."""
        found = self.sum(access.indices[0])
        if access.stride or found is None:
            return found
        step = 1
        for axis, index in enumerate(access.indices[1:]):
            axes = axes_of(self._bound[access.position])
            if axis + 1 >= len(axes):
                break
            step *= axes[-1 - axis]
            part = self.sum(index)
            scaled = None if part is None else digits.scale(part, step)
            if scaled is None:
                return None
            found = digits.add(found, scaled)
        return found

    def limit(self, access: Access, axis: int, extent: tuple[int, int, int]) -> int | None:
        """The invocation on `axis` from which the guards exclude all others; None if they do not."""
        found: int | None = None
        for left, right in access.guards:
            bound = self.sum(right)
            index = self.sum(left)
            if bound is None or index is None or bound.known is None:
                continue
            end = digits.end(index, axis, extent, bound.known)
            if end is not None and (found is None or end < found):
                found = end
        return found

    def sum(self, index: int) -> Sum | None:
        """The sum of an expression; None if it is not a sum of digits."""
        if index not in self._sums:
            self._sums[index] = self._made(index)
        return self._sums[index]

    def steps(self, index: int) -> dict[int, int | None]:
        """By axis, how much an expression changes from one invocation to the next, apart from values that are
        the same for all; None if unknown.
        """
        term, value, a, b = self._expressions[index]
        if not self._accesses.varies(index):
            return {}
        if term == "invocation":
            return {value: 1}
        if term in ("add", "subtract"):
            left, right = self.steps(a), self.steps(b)
            sign = 1 if term == "add" else -1
            made: dict[int, int | None] = {}
            for axis in left.keys() | right.keys():
                one, two = left.get(axis, 0), right.get(axis, 0)
                made[axis] = None if one is None or two is None else one + sign * two
            return made
        if term == "multiply" and not (self._accesses.varies(a) and self._accesses.varies(b)):
            varying, other = (a, b) if self._accesses.varies(a) else (b, a)
            factor = self.sum(other)
            known = None if factor is None else factor.known
            return {
                axis: None if step is None or known is None else step * known
                for axis, step in self.steps(varying).items()
            }
        return {axis: None for axis in range(3) if self._accesses.counts(index, axis)}

    def _made(self, index: int) -> Sum | None:
        term, value, a, b = self._expressions[index]
        if term in _LEAVES:
            known = self._leaves.value(index)
            return Sum(0, None, True) if known is None else Sum(known)
        if term == "image_size":
            return self._image_size(a, b, value)
        if term in ("unknown", "memory"):
            return Sum(0, None, True)
        if term == "invocation":
            return Sum(0, {Digit(value, 1, 0): 1})
        if term == "group":
            return Sum(0, {Digit(value, self._launch.local_size[value], 0): 1})
        if term == "local":
            size = self._launch.local_size[value]
            return Sum(0, {Digit(value, 1, size): 1}) if size > 1 else Sum(0)
        if term == "derived":
            return None
        left, right = self.sum(a), self.sum(b)
        if term in ("minimum", "maximum", "either"):
            return self._chosen(term, a, b, left, right)
        if left is None or right is None:
            return None
        if not self._accesses.varies(index) and (left.loose or right.loose):
            return Sum(0, None, True)
        return _combined(term, left, right)

    def _image_size(self, group: int, binding: int, axis: int) -> Sum:
        position = self._rules.position(group, binding)
        if position is None or not getattr(self._bound[position], "_is_image", False):
            return Sum(0, None, True)
        axes = axes_of(self._bound[position])
        return Sum(axes[-1 - axis]) if axis < len(axes) else Sum(0, None, True)

    def _chosen(self, term: str, a: int, b: int, left: Sum | None, right: Sum | None) -> Sum | None:
        if left is not None and right is not None:
            one, two = left.known, right.known
            if one is not None and two is not None and term != "either":
                return Sum(min(one, two) if term == "minimum" else max(one, two))
        if self._accesses.varies(a) != self._accesses.varies(b):
            return (
                left if self._accesses.varies(a) else right
            )  # the other operand only keeps it within bounds
        return Sum(0, None, True) if not self._accesses.varies(a) else None


def _combined(term: str, left: Sum, right: Sum) -> Sum | None:
    if term == "add":
        return digits.add(left, right)
    if term == "subtract":
        return digits.subtract(left, right)
    if term == "multiply":
        return digits.multiply(left, right)
    known = right.known
    if term == "bit_or":
        return digits.bit_or(left, right)
    if term in ("bit_and", "bit_xor"):
        if known is None:
            left, known = right, left.known
        if known is None:
            return None
        return digits.bit_and(left, known) if term == "bit_and" else digits.bit_xor(left, known)
    if known is None:
        return None
    if term == "divide":
        return digits.divide(left, known)
    if term == "modulo":
        return digits.modulo(left, known)
    if not 0 <= known < 32:
        return None
    return digits.divide(left, 1 << known) if term == "shift_right" else digits.scale(left, 1 << known)
