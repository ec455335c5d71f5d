"""Sequences of different queues that use the same bytes of memory that one of them has declared disjoint."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.warn import warn

if TYPE_CHECKING:
    from .._base.annotations import Array
    from .values import Tensors

_MOST_BYTES = 1 << 30
"""Of marks: two for each byte of a memory and each operation that uses it."""


class _Marks:
    """The bytes of a memory that an operation of a sequence uses, over all of its submissions."""

    def __init__(self, queue: int, text: str, declared: bool, nbytes: int) -> None:
        self.queue = queue
        self.text = text
        self.declared = declared
        """Whether the sequence declares the memory disjoint."""
        self.written = np.zeros(nbytes, bool)
        self.used = np.zeros(nbytes, bool)
        """With those that are written."""


class DisjointLooker:
    """Warns of each pair of operations once.

    An operation uses the bytes of each range that it is given, unless that is all of the memory: then its
    shader may choose, and it uses those that it changes.
    """

    def __init__(self) -> None:
        self._marks: weakref.WeakKeyDictionary[Any, dict[tuple[str, bool], _Marks]] = (
            weakref.WeakKeyDictionary()
        )
        """By the memory, while a tensor has it, then by the operation."""
        self._told: set[tuple[str, str]] = set()
        self._full = False

    def look(self, run: dict[str, Any], tensors: Tensors) -> None:
        """Looks at a submission."""
        declared = {memory.identity for memory in run["disjoint"]}
        for name, line, uses in run["operations"]:
            text = f"{name} of the {run['label']} on queue {run['queue']}"
            if line or run["line"]:
                text += f" ({line or run['line']})"
            for before, after, *_ in uses:
                memory, begin, end, old = run["parts"][before]
                used = np.frombuffer(old, np.uint8) != np.frombuffer(run["parts"][after][3], np.uint8)
                if end - begin < memory.nbytes:
                    used[:] = True
                elif not used.any():
                    continue
                marks = self._of(memory, run["queue"], text, memory.identity in declared)
                if marks is None:
                    continue
                marks.used[begin:end] |= used
                if after != before:
                    marks.written[begin:end] |= used
                self._compare(memory, marks, tensors)

    def _of(self, memory: Any, queue: int, text: str, declared: bool) -> _Marks | None:
        known = self._marks.setdefault(memory, {})
        marks = known.get((text, declared))
        if marks is None:
            taken = sum(2 * each.used.size for held in list(self._marks.values()) for each in held.values())
            if taken + 2 * memory.nbytes > _MOST_BYTES:
                if not self._full:
                    warn('debug="disjoint" has marked 1 GiB, and looks at no further memory', again=True)
                self._full = True
                return None
            marks = known[text, declared] = _Marks(queue, text, declared, memory.nbytes)
        return marks

    def _compare(self, memory: Any, marks: _Marks, tensors: Tensors) -> None:
        for other in self._marks[memory].values():
            pair = (other.text, marks.text)
            if other.queue == marks.queue or not (other.declared or marks.declared) or pair in self._told:
                continue
            both = (marks.written & other.used) | (marks.used & other.written)
            if both.any():
                self._told |= {pair, pair[::-1]}
                warn(
                    f"{_place(memory, both, tensors)}, which disjoint= denies: {' and '.join(pair)}. Nothing "
                    "orders them, unless the script waits in between. Leave disjoint= out, or give them "
                    "parts that do not meet",
                    again=True,
                )


def _place(memory: Any, both: Array, tensors: Tensors) -> str:
    """The elements that are used twice, for the message."""
    places = np.flatnonzero(both)
    begin, end = int(places[0]), int(places[-1]) + 1
    for each in tensors.of(memory, begin, end):
        item = each.dtype.itemsize
        first, last = (begin - each.start) // item, (end - 1 - each.start) // item
        return f"Two queues use elements {first} to {last} of {tensors.name(each.tensor)}"
    return f"Two queues use bytes {begin} to {end - 1} of {memory.name or 'a memory'}"
