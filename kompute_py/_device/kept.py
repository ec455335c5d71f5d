"""Device memory, host copies and recordings that calls keep for later ones, under one bound for a Manager."""

from __future__ import annotations

import random
import weakref
from typing import Any, Protocol

from .. import _native

MOST_KEPT = 1 << 29
"""Bytes; with the option `memory_limit` at most a quarter of that."""
MOST_CALLS = 2048
"""Prepared calls of operations: each is some 12 KiB of Python's objects."""


class Keeper(Protocol):
    """Keeps memory, or kernels, for later calls. It is called without locks, and takes none that another
    thread may hold while it allocates.
    """

    @property
    def kept_bytes(self) -> int:
        """Bytes of memory, with host copies."""

    @property
    def kept_calls(self) -> int:
        """Prepared calls."""

    def drop_some(self) -> None:
        """Lets go of a part, chosen at random, so that calls in turn do not drive each other out."""

    def trim(self) -> None:
        """Lets go of all."""


class Keeping(Protocol):
    """A device for which something is kept."""

    _keepers: weakref.WeakSet[Keeper]

    def _setting(self, name: str) -> Any: ...


devices: weakref.WeakSet[Keeping] = weakref.WeakSet()


def keepers_of(device: Keeping) -> list[Keeper]:
    """All that keep something for a device."""
    while True:
        try:
            return list(device._keepers)
        except RuntimeError:  # another thread has added one meanwhile
            continue


def most_kept(device: Keeping) -> int:
    """The bound of a Manager, in bytes."""
    limit = int(device._setting("memory_limit"))
    return min(MOST_KEPT, limit // 4) if limit else MOST_KEPT


def make_room(device: Keeping, nbytes: int, calls: int = 0) -> bool:
    """Whether so many bytes and prepared calls more may be kept, after others have let go of theirs."""
    most = most_kept(device)
    if nbytes > most:
        return False
    _let_go(device, "kept_bytes", most - nbytes)
    if calls:
        _let_go(device, "kept_calls", MOST_CALLS - calls)
    return True


def _let_go(device: Keeping, what: str, most: int) -> None:
    sizes = {each: size for each in keepers_of(device) if (size := getattr(each, what))}
    total = sum(sizes.values())
    while total > most and sizes:
        (chosen,) = random.choices(list(sizes), list(sizes.values()))
        chosen.drop_some()
        left = getattr(chosen, what)
        total += left - sizes.pop(chosen)
        if left:
            sizes[chosen] = left


def give_back() -> bool:
    """Lets go of all that is kept, for all Managers of the process; whether there was something."""
    found = False
    for device in list(devices):
        for each in keepers_of(device):
            if each.kept_bytes or each.kept_calls:
                found = True
                each.trim()
    return found


_native.before_out_of_memory(give_back)
