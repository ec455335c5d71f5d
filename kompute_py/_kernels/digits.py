"""Sums of the digits of an invocation's number, as shaders compute them by ``+ - * / % >> << & | ^``.

A digit is ``((i + shift) / step) % radix``, of the number i of an invocation on one axis; ``i``, ``i / 4``,
``i % width`` and ``(i >> 2) & 7`` are digits. A sum of digits with whole factors and a constant is closed
under addition and multiplication by a constant, and mostly under division and modulo: ``(i / w) * pitch + i %
w`` is one. Equal sums have one form, so ``(i / w) * w + i % w`` becomes ``i``. The group's number is ``i /
size``, the number within the group ``i % size``.

Two questions are answered without enumerating invocations: the invocation from which a sum lies beyond an
array (`end`), and whether a sum takes every index of an array (`covers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class Digit(NamedTuple):
    """``((i + shift) / step) % radix`` of the number i on `axis`."""

    axis: int
    step: int
    radix: int
    """The number of values; 0 for no limit."""
    shift: int = 0

    def most(self, invocations: int) -> int:
        """An upper bound of the values among so many invocations."""
        reached = max(0, invocations - 1 + self.shift) // self.step
        return min(self.radix - 1, reached) if self.radix else reached


class Sum:
    """A constant and digits with their factors. If `loose`, plus an unknown value of 0 or more."""

    __slots__ = ("constant", "digits", "loose")

    def __init__(self, constant: int, digits: Mapping[Digit, int] | None = None, loose: bool = False) -> None:
        self.constant = constant
        self.digits = dict(digits or {})
        self.loose = loose

    def __repr__(self) -> str:
        return f"Sum({self.constant}, {self.digits}, {self.loose})"

    @property
    def known(self) -> int | None:
        """The value, if it is the same for all invocations."""
        return None if self.digits or self.loose else self.constant

    def on(self, axis: int) -> dict[Digit, int]:
        """The digits of one axis."""
        return {digit: factor for digit, factor in self.digits.items() if digit.axis == axis}

    def range(self) -> tuple[int | None, int | None]:
        """The least and the largest value; None for no limit."""
        return _range(self.constant, self.digits, self.loose)

    def whole(self, axis: int) -> bool:
        """Whether the digits of an axis form its whole number, in any order."""
        at = 1
        for digit in sorted(self.on(axis)):
            if digit.step != at or digit.shift:
                return False
            if not digit.radix:
                return True
            at *= digit.radix
        return False


def _range(constant: int, digits: Mapping[Digit, int], loose: bool = False) -> tuple[int | None, int | None]:
    low: int | None = constant
    high: int | None = None if loose else constant
    for digit, factor in digits.items():
        if not digit.radix:
            if factor > 0:
                high = None
            else:
                low = None
            continue
        most = factor * (digit.radix - 1)
        if most > 0:
            high = None if high is None else high + most
        else:
            low = None if low is None else low + most
    return low, high


def _within(constant: int, digits: Mapping[Digit, int], end: int) -> bool:
    low, high = _range(constant, digits)
    return low is not None and high is not None and low >= 0 and high < end


# -- arithmetic ----------------------------------------------------------------------------------------------


def add(one: Sum, two: Sum) -> Sum:
    """one + two."""
    digits = dict(one.digits)
    for digit, factor in two.digits.items():
        digits[digit] = digits.get(digit, 0) + factor
    return Sum(one.constant + two.constant, _in_one_way(digits), one.loose or two.loose)


def scale(given: Sum, factor: int) -> Sum | None:
    """given * factor."""
    if factor == 0:
        return Sum(0)
    if factor < 0 and given.loose:
        return None
    return Sum(given.constant * factor, {d: f * factor for d, f in given.digits.items()}, given.loose)


def multiply(one: Sum, two: Sum) -> Sum | None:
    """one * two, if one of them is the same for all invocations; unknown values count as 1 or more."""
    for given, factor in ((one, two), (two, one)):
        known = factor.known
        if known is not None:
            return scale(given, known)
        if not factor.digits:
            low, _ = given.range()
            return None if low is None or low < 0 else Sum(given.constant, given.digits, True)
    return None


def subtract(one: Sum, two: Sum) -> Sum | None:
    """one - two."""
    negative = scale(two, -1)
    return None if negative is None else add(one, negative)


def divide(given: Sum, by: int) -> Sum | None:
    """given / by, rounded down; None if the result is not a sum of digits."""
    if by <= 0:
        return None
    if by == 1:
        return given
    low, _ = given.range()
    if given.loose and (low is None or low < 0):
        return None
    whole = {digit: factor // by for digit, factor in given.digits.items() if factor % by == 0}
    rest = {digit: factor for digit, factor in given.digits.items() if factor % by}
    constant, left = divmod(given.constant, by)
    made = Sum(constant, whole, given.loose)
    if _within(left, rest, by):
        return made
    if len(rest) != 1:
        return None
    ((digit, factor),) = rest.items()
    if factor <= 0 or by % factor:
        return None
    by //= factor
    plus = left // factor
    if not digit.radix:
        return add(made, _endless(digit.axis, digit.step * by, digit.shift + plus * digit.step))
    if plus or digit.radix % by:
        return None
    return add(made, _one(Digit(digit.axis, digit.step * by, digit.radix // by, digit.shift)))


def modulo(given: Sum, by: int) -> Sum | None:
    """given % by, as if `given` were not negative; None if the result is not a sum of digits."""
    if by <= 0 or given.loose:
        return None
    rest = {digit: factor % by for digit, factor in given.digits.items() if factor % by}
    constant = given.constant % by
    low, high = given.range()
    if low is not None and high is not None and low >= 0 and high < by:
        return given
    if _within(constant, rest, by):
        return Sum(constant, rest)
    if len(rest) != 1:
        return None
    ((digit, factor),) = rest.items()
    if by % factor:
        return None
    by //= factor
    plus, left = divmod(constant, factor)
    if digit.radix % by:  # 0 if there is no limit
        return None
    shift = (digit.shift + plus * digit.step) % (digit.step * by)
    made = scale(_one(Digit(digit.axis, digit.step, by, shift)), factor)
    return None if made is None else add(made, Sum(left))


def bit_and(given: Sum, mask: int) -> Sum | None:
    """given & mask, for a mask of adjacent ones; a negative mask continues to the left."""
    if mask == 0:
        return Sum(0)
    begin = (mask & -mask).bit_length() - 1
    upper = given if begin == 0 else divide(given, 1 << begin)
    if upper is None:
        return None
    ones = mask >> begin
    if ones != -1:
        if ones & (ones + 1):
            return None
        upper = modulo(upper, ones + 1)
        if upper is None:
            return None
    return scale(upper, 1 << begin)


def bit_or(one: Sum, two: Sum) -> Sum | None:
    """one | two, if they have no bit in common."""
    for high, low in ((one, two), (two, one)):
        least, most = low.range()
        if least is None or most is None or least < 0 or high.loose:
            continue
        place = 1 << most.bit_length()
        if high.constant % place == 0 and not any(factor % place for factor in high.digits.values()):
            return add(one, two)
    return None


def bit_xor(given: Sum, mask: int) -> Sum | None:
    """given ^ mask."""
    made: Sum | None = given
    while mask > 0:
        begin = (mask & -mask).bit_length() - 1
        ones = (mask >> begin) ^ ((mask >> begin) + 1)  # the first run of ones, and a zero
        ones >>= 1
        run = ones << begin
        part = bit_and(given, run)
        if part is None or made is None:
            return None
        turned = subtract(Sum(run), part)
        made = None if turned is None else subtract(add(made, turned), part)
        mask &= ~run
    return made if mask == 0 else None


def _one(digit: Digit) -> Sum:
    return Sum(0) if digit.radix == 1 else Sum(0, {digit: 1})


def _endless(axis: int, step: int, shift: int) -> Sum:
    constant, shift = divmod(shift, step)
    return Sum(constant, {Digit(axis, step, 0, shift): 1})


def _in_one_way(digits: dict[Digit, int]) -> dict[Digit, int]:
    """The same sum with disjoint digits, and adjacent digits joined."""
    made: dict[Digit, int] = {}
    for axis in {digit.axis for digit in digits}:
        mine = {d: f for d, f in digits.items() if d.axis == axis and f}
        plain = {d: f for d, f in mine.items() if not d.shift}
        made.update({d: f for d, f in mine.items() if d.shift})
        made.update(_split(axis, plain) if len(plain) > 1 else plain)
    return made


def _split(axis: int, digits: dict[Digit, int]) -> dict[Digit, int]:
    ends = {digit.step for digit in digits} | {digit.step * digit.radix for digit in digits if digit.radix}
    places = sorted(ends)
    if any(high % low for low, high in pairwise(places)):
        return digits
    factors = []
    for k, place in enumerate(places):
        last = k + 1 == len(places)
        factor = sum(
            f * (place // d.step)
            for d, f in digits.items()
            if d.step <= place and (not d.radix or place < d.step * d.radix)
        )
        factors.append((place, 0 if last else places[k + 1] // place, factor))
    joined: list[tuple[int, int, int]] = []
    for step, count, factor in factors:
        if not factor:
            continue
        if joined:
            before, length, first = joined[-1]
            if length and before * length == step and factor == first * length:
                joined[-1] = (before, length * count, first)
                continue
        joined.append((step, count, factor))
    return {Digit(axis, step, count): factor for step, count, factor in joined}


# -- questions -----------------------------------------------------------------------------------------------


def end(given: Sum, axis: int, extent: Sequence[int], count: int) -> int | None:
    """The invocation on `axis` from which no value is in 0 .. count - 1, if the other axes have `extent` and
    their last numbers. None if there is none or it is unknown.
    """
    base = given.constant
    for digit, factor in given.digits.items():
        if digit.axis != axis and factor > 0:
            base += factor * digit.most(extent[digit.axis])
    own = given.on(axis)
    endless = {digit: factor for digit, factor in own.items() if not digit.radix}
    bounded = [factor * (digit.radix - 1) for digit, factor in own.items() if digit.radix]
    if not endless:
        return None
    if all(factor > 0 for factor in endless.values()):
        base += sum(most for most in bounded if most < 0)

        def beyond(i: int) -> bool:
            return base + sum(f * ((i + d.shift) // d.step) for d, f in endless.items()) >= count

    elif all(factor < 0 for factor in endless.values()) and not given.loose:
        base += sum(most for most in bounded if most > 0)

        def beyond(i: int) -> bool:
            return base + sum(f * ((i + d.shift) // d.step) for d, f in endless.items()) < 0

    else:
        return None
    low, high = 0, 1
    while not beyond(high):
        low, high = high, 2 * high
        if high > 1 << 64:
            return None
    if beyond(0):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        if beyond(middle):
            high = middle
        else:
            low = middle
    return high


def covers(given: Sum, extent: Sequence[int], count: int) -> bool:
    """Whether the invocations of `extent` certainly take all values from 0 to count - 1."""
    if given.loose:
        return False
    lowest = given.constant
    lengths: list[tuple[int, int]] = []
    for axis in {digit.axis for digit in given.digits}:
        own = sorted(given.on(axis).items())
        for k, (digit, factor) in enumerate(own):
            above = own[k + 1][0] if k + 1 < len(own) else None
            values = _values(digit, extent[axis], len(own) == 1, above)
            if values is None:
                return False
            lengths.append((abs(factor), values))
            if factor < 0:
                lowest += factor * (values - 1)
    reached = 1  # consecutive values
    for factor, values in sorted(lengths):
        if factor > reached:
            return False
        reached += factor * (values - 1)
    return lowest <= 0 and lowest + reached >= count


def _values(digit: Digit, invocations: int, alone: bool, above: Digit | None) -> int | None:
    """The number of values, from 0, that a digit takes with each combination of its axis's other digits; None
    if unknown.
    """
    _, step, count, shift = digit
    if alone:
        if shift and count:
            return count if invocations >= step * count else None
        return digit.most(invocations) + 1
    if above is not None:
        size = step * count
        if not count or above.step % size or invocations % size or (shift and shift % step and step != 1):
            return None
        return count
    if shift or invocations % step:
        return None
    values = invocations // step
    return values if not count or values <= count else count if values % count == 0 else None
