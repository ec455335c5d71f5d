"""Folds repeated parts of a list of operations into loops, so that long sequences can be drawn.

Each operation has the barriers before it. A loop is a body that comes `times` times. The barriers before the
first repetition may differ from those between repetitions: nothing has to be waited for at first.

Repetitions are sought from short bodies to long ones, so inner loops fold before the loops around them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_LONGEST_BODY = 256
"""The most elements that a loop's body may have."""
_LEAST_SAVED = 4
"""A body that comes twice only is folded if that hides so many operations."""


class Element(NamedTuple):
    """An operation or a loop, with the barriers before it."""

    before: tuple[str, ...]
    """The barriers before the operation, or before the first repetition of the loop."""
    name: str = ""
    """The operation's name; "" for a loop."""
    body: tuple[Element, ...] = ()
    """The elements of a loop's body. The first has the barriers between two repetitions."""
    times: int = 1
    """How often the body comes."""

    @property
    def operations(self) -> int:
        """The number of operations that the element stands for."""
        return self.times * sum(each.operations for each in self.body) if self.body else 1


def fold(elements: list[Element]) -> list[Element]:
    """`elements` with repeated parts as loops. Expanding the loops gives `elements` again (see `unfold`)."""
    length = 1
    numbers = _numbered(elements)
    while length <= min(len(elements) // 2, _LONGEST_BODY):
        folded = _fold_bodies(elements, length) if _may_repeat(numbers, length) else elements
        if len(folded) == len(elements):
            length += 1
            continue
        # A new loop may be a part of a body of any length.
        elements, numbers, length = folded, _numbered(folded), 1
    return elements


def unfold(elements: list[Element]) -> list[Element]:
    """The operations that `elements` stand for."""
    found: list[Element] = []
    for each in elements:
        if not each.body:
            found.append(each)
            continue
        once = unfold(list(each.body))
        found.append(once[0]._replace(before=each.before))
        found += once[1:] + once * (each.times - 1)
    return found


def _numbered(elements: list[Element]) -> np.ndarray[Any, Any]:
    """A number for each element; equal ones have the same."""
    known: dict[Element, int] = {}
    return np.array([known.setdefault(each, len(known)) for each in elements], np.int64)


def _may_repeat(numbers: np.ndarray[Any, Any], length: int) -> bool:
    """Whether a body of `length` elements may come twice in a row; its first element need not be equal."""
    if length == 1:
        return True
    differ = np.flatnonzero(numbers[:-length] != numbers[length:])
    ends = np.concatenate([[-1], differ, [len(numbers) - length]])
    return bool(np.diff(ends).max() >= length)


def _fold_bodies(elements: list[Element], length: int) -> list[Element]:
    found: list[Element] = []
    # How many elements from here on equal those `length` later, barriers included.
    same = [0] * (len(elements) + 1)
    for i in range(len(elements) - length - 1, -1, -1):
        same[i] = same[i + 1] + 1 if elements[i] == elements[i + length] else 0
    i = 0
    while i < len(elements):
        count = 1
        if i + length < len(elements) and elements[i][1:] == elements[i + length][1:]:
            # The barriers before the first element may differ.
            count += (1 + same[i + 1]) // length
        if count > 1:
            body = (elements[i + length], *elements[i + 1 : i + length])
            saved = sum(each.operations for each in body) * (count - 1)
            if count > 2 or saved >= _LEAST_SAVED:
                found.append(Element(elements[i].before, body=body, times=count))
                i += length * count
                continue
        found.append(elements[i])
        i += 1
    return found
