"""The values of a shader's expressions in one launch, as sums of products.

A `Sum` is a constant and terms with whole factors. A term is the invocation's number on an axis, a quotient
``sum / n``, or an unknown number of 0 or more. A remainder is ``a - a / n * n``, so ``(i / w) * w + i % w``
becomes ``i``. The group's number is ``i / size``, the number within the group ``i % size``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from .._shaders.signature import MISSING
from .code import Access, Code, Guards, Launch, axes_of

Term = tuple[Any, ...]
Range = tuple[int | None, int | None]
_FURTHEST = 1 << 40
_DEEPEST = 4


class Sum:
    """A constant, and terms with their factors."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: Mapping[Term, int] | None = None) -> None:
        self.constant = constant
        self.terms = {term: factor for term, factor in (terms or {}).items() if factor}

    def __repr__(self) -> str:
        return f"Sum({self.constant}, {self.terms})"

    @property
    def known(self) -> int | None:
        """The value, if the host knows it."""
        return None if self.terms else self.constant

    @property
    def exact(self) -> bool:
        """Whether all terms are the invocation's numbers."""
        return all(term[0] == "axis" for term in self.terms)

    def on(self, axis: int) -> int:
        """The factor of the number on an axis."""
        return self.terms.get(("axis", axis), 0)

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """self + times * other."""
        terms = dict(self.terms)
        for term, factor in other.terms.items():
            terms[term] = terms.get(term, 0) + times * factor
        return Sum(self.constant + times * other.constant, terms)

    def over(self, by: int) -> Sum | None:
        """self / by, rounded down; None if it may be negative, or has quotients in quotients."""
        whole = {term: factor // by for term, factor in self.terms.items() if factor % by == 0}
        rest = Sum(self.constant % by, {term: f for term, f in self.terms.items() if f % by})
        low, high = rest.span()
        depth = 1 + max((term[3] for term in rest.terms if term[0] == "quotient"), default=0)
        if low is None or low < 0 or by <= 0 or self.constant < 0 or depth > _DEEPEST:
            return None
        made = Sum(self.constant // by, whole)
        if high is not None and high < by:
            return made
        if not rest.constant and len(rest.terms) == 1:
            ((term, factor),) = rest.terms.items()
            if by % factor == 0:
                by //= factor
                if term[0] == "quotient":
                    return made.plus(Sum(0, {("quotient", term[1], term[2] * by, term[3]): 1}))
                rest = Sum(0, {term: 1})
        return made.plus(Sum(0, {("quotient", rest.key, by, depth): 1}))

    @property
    def key(self) -> tuple[int, frozenset[tuple[Term, int]]]:
        """For comparisons."""
        return self.constant, frozenset(self.terms.items())

    def span(self, ranges: Mapping[int, tuple[int, int | None]] = {}) -> Range:  # not changed
        """The least and the largest value if the numbers have these `ranges` by axis (0 and more for others);
        None for no limit.
        """
        return _span(self.constant, self.terms, ranges)


def _span(constant: int, terms: Mapping[Term, int], ranges: Mapping[int, tuple[int, int | None]]) -> Range:
    low: int | None = constant
    high: int | None = constant
    for term, factor in terms.items():
        least: int | None = 0
        most: int | None = None
        if term[0] == "axis":
            least, most = ranges.get(term[1], (0, None))
        elif term[0] == "quotient":
            (start, inner), by = term[1], term[2]
            least, most = _span(start, dict(inner), ranges)
            least, most = (None if each is None else each // by for each in (least, most))
        if factor < 0:
            least, most = most, least
        low = None if low is None or least is None else low + factor * least
        high = None if high is None or most is None else high + factor * most
    return low, high


class Values:
    """The values of a shader's expressions in one launch."""

    def __init__(
        self, code: Code, bound: tuple[Any, ...], launch: Launch, counted: Iterable[int] = (0, 1, 2)
    ) -> None:
        """Numbers on axes that are not `counted` stay within the launch in questions of what lies beyond."""
        self._fixed = {axis: (0, count - 1) for axis, count in enumerate(launch.run) if axis not in counted}
        self._code = code
        self._bound = bound
        self._launch = launch
        self._made: list[Sum | None] = []  # by number of the expression; operands come first

    def sum(self, index: int) -> Sum | None:
        """The value of an expression; None if it is not followed."""
        for number in range(len(self._made), index + 1):
            self._made.append(self._make(number))
        return self._made[index]

    def known(self, index: int) -> int | None:
        """The value, if the host knows it."""
        made = self.sum(index)
        return None if made is None else made.known

    def passes(self, guards: Guards, axis: int, first: int) -> bool:
        """Whether an invocation from number `first` on, on an axis, may pass the guards."""
        for left, right in guards:
            made, bound = self.sum(left), self.known(right)
            if made is not None and bound is not None:
                low, _ = made.span({**self._fixed, axis: (first, None)})
                if low is not None and low >= bound:
                    return False
        return True

    def uses(self, access: Access, axis: int, first: int) -> bool:
        """Whether an invocation from number `first` on, on an axis, may use an element of the argument."""
        if not self.passes(access.guards, axis, first):
            return False
        lengths = access.lengths(self._bound)
        if lengths is None:
            return True
        for index, length in zip(access.indices, lengths, strict=False):
            made = self.sum(index)
            low, high = (None, None) if made is None else made.span({**self._fixed, axis: (first, None)})
            if (low is not None and low >= length) or (high is not None and high < 0):
                return False
        return True

    def end(self, access: Access, axis: int) -> int | None:
        """The invocation on an axis from which none uses an element; None if there is none."""
        if self.uses(access, axis, _FURTHEST):
            return None
        low, high = -1, _FURTHEST
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.uses(access, axis, middle) else (low, middle)
        return high

    def needed(self, index: int, guards: Guards) -> int | None:
        """One more than the largest `index` of the invocations that pass `guards`; None if unknown."""
        ranges = {axis: (0, count - 1) for axis, count in enumerate(self._launch.invocations)}
        most = None
        others = []
        for left, right in guards:
            made, bound = self.sum(left), self.known(right)
            if bound is None or made is None:
                return None
            if left == index:
                most = bound - 1 if most is None else min(most, bound - 1)
            elif made.exact and len(made.terms) == 1 and min(made.terms.values()) > 0:
                (((_, axis), factor),) = made.terms.items()
                ranges[axis] = (0, min(ranges[axis][1], (bound - 1 - made.constant) // factor))
            else:
                others.append((made, bound))
        for made, bound in others:
            # A bound on another value makes the number of passing invocations unknown.
            _, high = made.span(ranges)
            if high is None or high >= bound:
                return None
        found = self.sum(index)
        if found is None or any(f < 0 for term, f in found.terms.items() if term[0] != "axis"):
            return None
        _, high = found.span(ranges)
        if high is None:
            return None
        return max((high if most is None else min(high, most)) + 1, 0)

    # -- one expression --------------------------------------------------------------------------------------

    def _make(self, index: int) -> Sum | None:
        term, value, a, b = self._code.expressions[index]
        launch = self._launch
        unknown = Sum(0, {("unknown", index): 1})
        if term == "constant":
            return Sum(value)
        if term in ("invocation", "group", "local"):
            whole, size = Sum(0, {("axis", value): 1}), launch.local_size[value]
            group = whole.over(size)
            if term == "invocation" or group is None:
                return whole
            return group if term == "group" else whole.plus(group, -size)
        if term == "groups":
            return Sum(launch.groups[value])
        if term == "push_constant":
            return self._pushed(value, bool(b)) or unknown
        if term == "length":
            return self._length(a, b) or unknown
        if term == "image_size":
            return self._image_size(a, b, value) or unknown
        if term in ("unknown", "memory"):
            return None if term == "unknown" and b else unknown
        if term == "derived":
            return None
        left, right = self._made[a], self._made[b]
        if left is None or right is None:
            return None
        if term == "add":
            return left.plus(right)
        if term == "subtract":
            return left.plus(right, -1)
        if term == "multiply":
            return self._product(index, left, right)
        if left.known is not None and right.known is not None and term in ("minimum", "maximum"):
            return Sum(min(left.known, right.known) if term == "minimum" else max(left.known, right.known))
        if term not in ("divide", "modulo") or not right.known or right.known < 0:
            return None if self._code.axes(index) else unknown
        quotient = left.over(right.known)
        return quotient if quotient is None or term == "divide" else left.plus(quotient, -right.known)

    def _product(self, index: int, left: Sum, right: Sum) -> Sum | None:
        if left.known is not None:
            left, right = right, left
        if right.known is not None:
            return Sum(0).plus(left, right.known)
        if any((low := each.span()[0]) is None or low < 0 for each in (left, right)):
            return None
        axes = self._code.axes(index)
        return Sum(0, {("unknown", index, *axes): 1})

    def _pushed(self, offset: int, is_float: bool) -> Sum | None:
        at = offset - self._launch.push_offset
        if not 0 <= at <= len(self._launch.push) - 4:
            return None
        if not is_float:
            return Sum(int.from_bytes(self._launch.push[at : at + 4], "little", signed=True))
        (real,) = struct.unpack_from("<f", self._launch.push, at)
        return Sum(int(real)) if abs(real) < 2**31 else None

    def _length(self, group: int, binding: int) -> Sum | None:
        position = self._code.places.get((group, binding))
        if position is None or self._bound[position] is MISSING or type(self._bound[position]) is tuple:
            return None
        members = self._code.signature.parameters[position].layout["members"]
        if not members or not members[-1]["array"]:
            return None
        return Sum((self._bound[position].nbytes - members[-1]["offset"]) // members[-1]["array_strides"][0])

    def _image_size(self, group: int, binding: int, axis: int) -> Sum | None:
        position = self._code.places.get((group, binding))
        if position is None or not getattr(self._bound[position], "_is_image", False):
            return None
        axes = axes_of(self._bound[position])
        return Sum(axes[-1 - axis]) if axis < len(axes) else None
