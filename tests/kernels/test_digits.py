"""Sums of digits against NumPy: random expressions of an invocation's number, evaluated for every
invocation."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kompute_py._kernels import digits
from kompute_py._kernels.digits import Digit, Sum

LIMIT = 3000


def values(given, numbers):
    """The values of a sum for arrays of numbers, one for each axis."""
    total = np.full(numbers[0].shape, given.constant, np.int64)
    for digit, factor in given.digits.items():
        part = (numbers[digit.axis] + digit.shift) // digit.step
        total += factor * (part % digit.radix if digit.radix else part)
    return total


def made(rng, numbers, depth):
    """(sum or None, its values) of a random expression."""
    if depth == 0 or rng.random() < 0.15:
        axis = rng.randrange(len(numbers))
        return Sum(0, {Digit(axis, 1, 0): 1}), numbers[axis]
    operation = rng.choice("+-*/%&|^rcd")
    one, first = made(rng, numbers, depth - 1)
    by = rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 16, 64])
    if operation in "+-|":
        two, second = made(rng, numbers, depth - 1)
        if one is None or two is None:
            return None, first
        if operation == "|":
            return digits.bit_or(one, two), first | second
        if operation == "+":
            return digits.add(one, two), first + second
        return digits.subtract(one, two), first - second
    if one is None:
        return None, first
    if operation == "*":
        return digits.scale(one, by), first * by
    if operation == "/":
        return digits.divide(one, by), first // by
    if operation == "%":
        return digits.modulo(one, by), first % by
    if operation == "c":
        return digits.add(one, Sum(by)), first + by
    if operation == "d":  # put together again, or in another order
        upper, lower = digits.divide(one, by), digits.modulo(one, by)
        if upper is None or lower is None:
            return None, first
        pitch = rng.choice([by, by + 1, 16])
        return digits.add(digits.scale(upper, pitch), lower), first // by * pitch + first % by
    mask = rng.choice([1, 3, 7, 12, 16, 48, 5, -4, -1, 0])
    if operation == "&":
        return digits.bit_and(one, mask), first & mask
    mask = abs(mask)
    return digits.bit_xor(one, mask), first ^ mask


@pytest.mark.parametrize("axes", [1, 2])
def test_sums_have_the_values_of_the_expressions(axes):
    rng = random.Random(axes)
    if axes == 1:
        numbers = [np.arange(LIMIT, dtype=np.int64)]
    else:
        numbers = [each.reshape(-1) for each in np.meshgrid(np.arange(70), np.arange(60))]
    followed = 0
    for _ in range(3000):
        given, right = made(rng, numbers, rng.randrange(1, 5))
        if given is None or right.min() < 0:
            continue
        followed += 1
        np.testing.assert_array_equal(values(given, numbers), right, str(given))
    assert followed > 1500


def test_the_end_and_the_cover_of_sums_are_right():
    rng = random.Random(5)
    numbers = np.arange(LIMIT, dtype=np.int64)
    ends = covered = 0
    for _ in range(6000):
        given, right = made(rng, [numbers], rng.randrange(1, 5))
        if given is None:
            continue
        invocations, count = rng.choice([(60, 60), (64, 64), (48, 24), (96, 96), (7, 7), (12, 48)])
        end = digits.end(given, 0, (1, 1, 1), count)
        if end is not None and end < LIMIT:
            ends += 1
            assert not ((right[end:] >= 0) & (right[end:] < count)).any(), str(given)
        if digits.covers(given, (invocations, 1, 1), count):
            covered += 1
            assert set(range(count)) <= set(right[:invocations].tolist()), str(given)
    assert ends > 1000 and covered > 300


@pytest.mark.parametrize(
    "given",
    [
        lambda i: digits.add(digits.scale(digits.divide(i, 7), 7), digits.modulo(i, 7)),
        lambda i: digits.subtract(i, Sum(0)),
        lambda i: digits.bit_or(digits.scale(digits.divide(i, 8), 8), digits.bit_and(i, 7)),
        lambda i: digits.add(digits.bit_and(i, -4), digits.bit_and(i, 3)),
        lambda i: (
            digits.modulo(digits.bit_and(i, 15), 16)
            and digits.add(digits.bit_and(i, 15), digits.bit_and(i, -16))
        ),
    ],
)
def test_what_is_put_together_again_is_the_number(given):
    i = Sum(0, {Digit(0, 1, 0): 1})
    again = given(i)
    assert again.digits == i.digits and again.constant == 0


def test_permutations_cover_and_parts_do_not():
    i = Sum(0, {Digit(0, 1, 0): 1})
    planes = digits.add(digits.scale(digits.modulo(i, 3), 100), digits.divide(i, 3))
    assert digits.covers(planes, (300, 1, 1), 300) and not digits.covers(planes, (299, 1, 1), 299)
    assert digits.end(planes, 0, (300, 1, 1), 300) == 900
    assert digits.end(digits.divide(i, 2), 0, (1, 1, 1), 300) == 600
    assert digits.end(digits.bit_and(i, 3), 0, (1, 1, 1), 300) is None
    assert digits.end(digits.subtract(i, Sum(1)), 0, (1, 1, 1), 300) == 301
    assert digits.end(digits.subtract(Sum(299), i), 0, (1, 1, 1), 300) == 300
    assert digits.covers(digits.subtract(Sum(299), i), (300, 1, 1), 300)
    assert digits.covers(digits.modulo(digits.add(i, Sum(17)), 300), (300, 1, 1), 300)
