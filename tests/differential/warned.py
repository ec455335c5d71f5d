"""What evaluations must warn of: older host copies that they send, and algorithms that were rebuilt."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import kompute_py as kp

from .memories import NOT, SURELY, Item, MismatchError, Work

if TYPE_CHECKING:
    from .program import Slot

OLDER = "over what write() or an item assignment put there"  # once for a sequence
REBUILT = "that was rebuilt since"  # ... for a recording


def _without(held: list[Work], item: Item) -> np.ndarray[Any, Any]:
    """The bytes that the host wrote last, as if held work were cancelled: it may be, and hides no warning."""
    left = item.left.copy()
    for work in reversed(held):
        for array, (begin, end), old in reversed(work.before):
            if array is item.left:
                left[begin:end] = old
    return left


def _due(slot: Slot, held: list[Work]) -> tuple[set[str], set[str]]:
    """What a sequence must warn of when it is evaluated now, and what it may."""
    found, perhaps = set(), set()
    refreshed: set[Item] = set()
    for each in slot.recorded:
        for item, (begin, end), down in each.syncs:
            if down:
                refreshed.add(item)
            elif item not in refreshed:
                left = item.left[begin:end].max(initial=NOT)
                if left == SURELY and not slot.built_before:
                    found.add(OLDER)
                elif max(left, _without(held, item)[begin:end].max(initial=NOT)) != NOT:
                    perhaps.add(OLDER)
        if each.algorithm is not None and each.algorithm.outdated:
            found.add(REBUILT)
    return found - slot.warned, (found | perhaps) - slot.warned


@contextlib.contextmanager
def listening(slots: list[Slot], held: list[Work]) -> Iterator[None]:
    """Sequences are evaluated: each warns of what it must, and of nothing else. One that is refused may."""
    due = [_due(slot, held) for slot in slots]
    refused = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", kp.KomputeWarning)
        try:
            yield
            refused = False
        finally:
            texts = [str(each.message) for each in caught]
            for slot, (must, may) in zip(slots, due, strict=True):
                said = {
                    what
                    for what in (OLDER, REBUILT)
                    if any(what in text and repr(slot.sequence.name) in text for text in texts)
                }
                slot.warned |= said
                if said - may or (must - said and not refused):
                    raise MismatchError(f"{slot.sequence.name} warns of {said}, not of {must}")
