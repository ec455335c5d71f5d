"""Things that calls keep for later ones: device memory, host copies and recordings, under one bound for a Manager."""

from __future__ import annotations

import random
import weakref
from typing import TYPE_CHECKING, Protocol

from .. import _native

if TYPE_CHECKING:
    from .device import Device

MOST_KEPT = 1 << 29
"""Bytes; with the option `memory_limit` at most a quarter of that."""


class Keeper(Protocol):
    """Keeps memory, or kernels, for later calls. It is called without locks, and takes none that another
    thread may hold while it allocates.
    """

    @property
    def kept_bytes(self) -> int:
        """Bytes that count."""

    def drop_some(self) -> None:
        """Lets go of a part, chosen at random, so that calls in turn do not drive each other out."""

    def trim(self) -> None:
        """Lets go of all."""


devices: weakref.WeakSet[Device] = weakref.WeakSet()


def keepers_of(device: Device) -> list[Keeper]:
    """All that keep something for a device."""
    while True:
        try:
            return list(device._families)
        except RuntimeError:  # another thread has added one meanwhile
            continue


def most_kept(device: Device) -> int:
    """The bound of a Manager, in bytes."""
    limit = int(device._setting("memory_limit"))
    return min(MOST_KEPT, limit // 4) if limit else MOST_KEPT


def make_room(device: Device, nbytes: int) -> bool:
    """Whether so many bytes more may be kept, after others have let go of theirs."""
    most = most_kept(device)
    if nbytes > most:
        return False
    sizes = {each: size for each in keepers_of(device) if (size := each.kept_bytes)}
    total = sum(sizes.values())
    while total + nbytes > most and sizes:
        (chosen,) = random.choices(list(sizes), list(sizes.values()))
        chosen.drop_some()
        left = chosen.kept_bytes
        total += left - sizes.pop(chosen)
        if left:
            sizes[chosen] = left
    return True


def give_back() -> bool:
    """Lets go of all that is kept, for all Managers of the process; whether there was something."""
    found = False
    for device in list(devices):
        for each in keepers_of(device):
            if each.kept_bytes:
                found = True
                each.trim()
    return found


_native.before_out_of_memory(give_back)
