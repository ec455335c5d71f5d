"""The suite takes samples of what is long; `./dev whole` does all of it.

A test that takes a sample has the mark `sampled`. Samples leave out repetitions, never a kind of case.

The drivers share the cases of a test with parameters: in the whole suite each case runs on one driver, and
each value of one of several parameters on all; with the next commit the drivers exchange their cases. They
share the tests without parameters, too, in the rooms that judge numbers. Tests with the mark `each_driver`
have cases that some driver cannot run: all of theirs run on all drivers. Without the suite (`./dev test
FILE`) all cases run.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import hypothesis
import pytest

_T = TypeVar("_T")

WHOLE = os.environ.get("KOMPUTE_PY_TEST_WHOLE", "") not in ("", "0")
"""Whether the samples are to be whole."""

_WIDE = re.compile(r"(int|float)64|complex128|double", re.IGNORECASE)
_OF_NUMBERS = ("tests/builders/", "tests/formulas/", "tests/ops/", "tests/random/")


def sampled(sample: _T, whole: _T) -> _T:
    """What the suite takes, or all that there is: a number of examples, a list of cases."""
    return whole if WHOLE else sample


def examples(whole: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a test of random examples: the suite takes a third of `whole`, and at least five."""
    chosen = hypothesis.settings(
        max_examples=sampled(max(whole // 3, 5), whole),
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    )
    return lambda test: pytest.mark.sampled(chosen(test))


def spread(cases: Sequence[_T], every: int) -> list[_T]:
    """The first and the last of `cases`, and one of `every` between; with `./dev whole` all of them."""
    if WHOLE:
        return list(cases)
    return [case for n, case in enumerate(cases) if n % every == 0 or n == len(cases) - 1]


def groups(cases: Sequence[_T], most: int) -> list[list[_T]]:
    """`cases` in their order, in groups of at most `most`."""
    return [list(cases[first : first + most]) for first in range(0, len(cases), most)]


def turn(item: Any) -> int:
    """A number of a test's case that alternates along its parameters.

    Along the second parameter and the next ones it goes 0 1 1 0: among pairs of dtypes of which every second
    has a sign, else all with one sign would be on one driver, and all with two signs on the other.
    """
    firsts = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        firsts.append(names.split(",")[0].strip() if isinstance(names, str) else names[0])
    first, *others = (item.callspec.indices[name] for name in firsts or [next(iter(item.callspec.indices))])
    return first + sum(index ^ (index >> 1) for index in others)


def is_mine(item: Any, share: str) -> bool:
    """Whether a case is of the share "0/2" or "1/2"; of "", each is.

    Numbers of 64 bits are of every share: SwiftShader lacks them, and would leave its share of them out.
    """
    if not share or _WIDE.search(item.nodeid):
        return True
    own, shares = map(int, share.split("/"))
    if hasattr(item, "callspec"):
        return turn(item) % shares == own
    return not item.nodeid.startswith(_OF_NUMBERS) or zlib.crc32(item.nodeid.encode()) % shares == own
