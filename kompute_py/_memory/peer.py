"""Copies between Managers.

The host works between their halves, because no queue waits for one of another device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .. import _native
from .._base.errors import FailedPreconditionError
from .._sync.fence import Fence

if TYPE_CHECKING:
    from collections.abc import Sequence as Seq

    from .._device.device import Device


class Side(Protocol):
    """A tensor or an image, as copies between Managers use it."""

    _manager: Device

    @property
    def _native(self) -> _native.Memory | _native.BufferView: ...


class PeerCopies:
    """The content of ``OpCopy`` if its objects belong to several Managers. Immutable."""

    __slots__ = ("managers", "pairs")

    def __init__(self, memories: Seq[Side]) -> None:
        source, *targets = memories
        self.pairs = [(source._native, target._native) for target in targets]
        self.managers = list({id(memory._manager): memory._manager for memory in memories}.values())
        for copy in self.make():  # raises if the copies are not possible
            copy.check()

    def make(self) -> list[_native.PeerCopy]:
        """Creates new copies. Each may be used by one thread at a time."""
        return [_native.PeerCopy(source, target) for source, target in self.pairs]

    def run(self, may_wait: bool = False) -> Fence:
        """Copies now. Returns a fence for the work that is still running on the destinations' devices.

        Raises FailedPreconditionError behind held work, unless `may_wait` is True because the caller waits
        anyway.
        """
        copies = self.make()
        if not may_wait:
            for copy in copies:
                refuse_held("The copy between Managers", copy.why_held())
        try:
            for copy in copies:
                copy.submit()
        except BaseException:
            report(self.managers, can_raise=False)
            raise
        report(self.managers)
        return Fence(_native.Fence.join([copy.fence() for copy in copies]), tuple(self.managers))


def report(managers: Seq[Device], can_raise: bool = True) -> None:
    """Logs the messages about the devices of `managers`; raises the errors of strict Managers."""
    for manager in managers:
        if manager._watch is not None:
            manager._watch(can_raise)


def refuse_held(what: str, why: str) -> None:
    """Raises if the copy is held: the host copies, and would wait for a signal that its own thread may have
    to give.
    """
    if why:
        raise FailedPreconditionError(
            f"{what} cannot be submitted behind held work, because the host does a part of the copy. {why}. "
            "Signal the semaphore first, or use eval() or to(), which wait, while another thread signals"
        )
