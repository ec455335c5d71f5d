"""What runs where: the suite takes samples of what is long, and its passes share the rest.

`./dev test` runs four passes, each a part of the tests:

- Tests with the mark `own_driver` are two passes, each of half of the files (`of_part`): no driver changes
  their subject (files, documents, tools, errors of arguments), or they choose a driver themselves.
- lavapipe and SwiftShader share the cases of a test with parameters. A case runs on one of them, and with the
  next commit on the other. So it is with tests without parameters, but for those in the rooms whose subject
  is the device itself (`_OF_DEVICES`): they run on both.
- Tests with the mark `each_driver` have cases that some driver cannot run: theirs run on both drivers.

Samples leave out repetitions, never a kind of case; `./dev whole` runs what they leave out:

- Of a test with several parameters, the suite takes as many cases as its longest parameter has values: each
  value of each parameter once or more, not each with each. The mark `sampled` comes by itself.
- Of one with the mark `sampled(every=3)`, the suite takes a third of the cases, with the next commit another:
  for many cases of one kind, as are the programs of the gallery. `sampled(every=2)` comes by itself where
  drivers share a test and a parameter has six values or more.
- Other tests with the mark `sampled` say how much they take: `sampled`, `spread`, `examples`.

A case may cost a second of processor time in the suite; what costs more takes a sample. A test that needs a
process of its own takes it from `tests.support.child`, in which Python has started and imported already.

`./dev test FILE` is not the suite: all cases run, on one driver.
"""

from __future__ import annotations

import collections
import functools
import os
import random
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import hypothesis
import pytest

_T = TypeVar("_T")

WHOLE = os.environ.get("KOMPUTE_PY_TEST_WHOLE", "") not in ("", "0")
"""Whether the samples are to be whole."""

_WIDE = re.compile(r"(int|float)64|complex128|double", re.IGNORECASE)
_MANY = 6
"""So many values of a parameter are taken by halves."""
_ROOMS = (
    "debugging", "device", "exchange", "images", "kernels", "manager", "memory", "profiling", "recording",
    "robustness", "shaders", "sync", "threads", "transfers",
)  # fmt: skip
_OF_DEVICES = tuple(f"tests/{room}/" for room in _ROOMS)


def sampled(sample: _T, whole: _T) -> _T:
    """What the suite takes, or all that there is: a number of examples, a list of cases."""
    return whole if WHOLE else sample


def examples(whole: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a test of random examples: the suite takes a tenth of `whole`, and at least four."""
    chosen = hypothesis.settings(
        max_examples=sampled(max(whole // 10, 4), whole),
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


def values(item: Any) -> list[Any]:
    """What stands for the value of each parameter of a case; names in one mark are one parameter.

    Not `callspec.indices`: with several marks, these are the number of the case for each of them.
    """
    if not hasattr(item, "callspec"):
        return []
    left = {name: id(value) for name, value in item.callspec.params.items()}
    found: list[Any] = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        found.append(tuple(left.pop(name.strip()) for name in names))
    return found + list(left.values())


@functools.cache
def _order(seed: str, count: int) -> list[int]:
    """The numbers below `count` in an order of their own."""
    return random.Random(seed).sample(range(count), count)


def _of_sample(test: str, place: Sequence[int], lengths: Sequence[int]) -> tuple[bool, int]:
    """Whether a case is of the sample, and its number in it: the place along the longest parameter.

    The values of each shorter parameter come again and again, each time in another order.
    """
    longest = max(range(len(place)), key=lambda n: lengths[n])
    turn = place[longest]

    def value(n: int) -> int:
        again, at = divmod(turn, lengths[n])
        return _order(f"{test} {n} {again}", lengths[n])[at]

    return all(place[n] == value(n) for n in range(len(place)) if n != longest), turn


def _placed(items: Iterable[Any]) -> list[tuple[Any, str, list[int], list[int]]]:
    """Each case, its test, its place along each parameter, and how many values each parameter has."""
    numbers: dict[tuple[str, int], dict[Any, int]] = collections.defaultdict(dict)
    found = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        place = []
        for n, value in enumerate(values(item)):
            of_value = numbers[test, n]
            place.append(of_value.setdefault(value, len(of_value)))
        found.append((item, test, place))
    return [
        (item, test, place, [len(numbers[test, n]) for n in range(len(place))]) for item, test, place in found
    ]


def shared(items: Iterable[Any], share: str) -> tuple[list[Any], list[Any]]:
    """The cases that a pass runs, and the others; "7/2" is the seventh turn of two drivers.

    Numbers of 64 bits are of every share: SwiftShader lacks them, and would leave its share of them out.
    """
    first, shares = map(int, share.split("/"))
    kept: list[Any] = []
    others: list[Any] = []
    for item, test, place, lengths in _placed(items):
        among, turn = _of_sample(test, place, lengths) if place else (True, zlib.crc32(test.encode()))
        everywhere = item.get_closest_marker("each_driver") or _WIDE.search(item.nodeid)
        everywhere = everywhere or (not place and test.startswith(_OF_DEVICES))
        one_of = (1 if everywhere else shares) * _every(item)
        (kept if among and (turn + first) % one_of == 0 else others).append(item)
    return kept, others


_turns: collections.Counter[tuple[str, ...]] = collections.Counter()


def next_variant(runs: Mapping[str, Callable[[], Any]], thorough: bool) -> tuple[dict[str, float], int]:
    """Stands for the measurement of an operation's variants, and gives the next one that the device can run.

    Measuring makes the kernels of all of them, which is half of the time of tests of numbers, and these then
    judge the fastest one alone.
    """
    names = tuple(runs)
    _turns[names] += 1
    for n in range(len(names)):
        name = names[(_turns[names] + n) % len(names)]
        try:
            runs[name]()()
        except NotImplementedError:
            if n == len(names) - 1:
                raise
        else:
            return {name: 0.0}, 1
    raise AssertionError("there are no variants")


def has_cases(source: str, marks: str) -> bool:
    """Whether a file may have cases of the pass that pytest's `-m` gets: of its own driver, or not."""
    if marks == "own_driver":
        return "own_driver" in source
    return not re.search(r"^pytestmark = .*\bown_driver\b", source, re.MULTILINE)


def of_part(file: str, part: str) -> bool:
    """Whether a file is of a part, such as "1/2"; "" has all."""
    number, _, parts = part.partition("/")
    return not part or zlib.crc32(file.encode()) % int(parts) == int(number) - 1


def _every(item: Any) -> int:
    mark = item.get_closest_marker("sampled")
    return mark.kwargs.get("every", 1) if mark and hasattr(item, "callspec") else 1


def mark_samples(items: Iterable[Any]) -> None:
    """Tests with several parameters or, on drivers, with many values get the mark `sampled`."""
    for item, _, place, lengths in _placed(items):
        many = max(lengths, default=0) >= _MANY and not item.get_closest_marker("own_driver")
        if (many or len(place) > 1) and not item.get_closest_marker("sampled"):
            item.add_marker(pytest.mark.sampled(every=2 if many else 1))
