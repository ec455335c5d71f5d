"""Copies between Managers: the host stands between their halves, because no queue of one device waits for a queue of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native
from .._base.errors import FailedPreconditionError
from .._sync.fence import Fence

if TYPE_CHECKING:
    from collections.abc import Sequence as Seq

    from .._manager.manager import Manager
    from .memory import Memory


class PeerCopies:
    """What ``OpCopy`` holds where its objects belong to several Managers. Immutable."""

    __slots__ = ("managers", "pairs")

    def __init__(self, memories: list[Memory]) -> None:
        source, *targets = memories
        self.pairs = [(source._native, target._native) for target in targets]
        self.managers = list({id(memory._manager): memory._manager for memory in memories}.values())
        for copy in self.make():  # raises what is wrong with them
            copy.check()

    def make(self) -> list[_native.PeerCopy]:
        """New copies: one is for one thread at a time."""
        return [_native.PeerCopy(source, target) for source, target in self.pairs]

    def run(self, may_wait: bool = False) -> Fence:
        """Copies now. The fence is of what still runs then, on the destinations' devices.

        Raises FailedPreconditionError behind held work, unless the caller waits anyway (`may_wait`).
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


def report(managers: Seq[Manager], can_raise: bool = True) -> None:
    """Logs the messages about the devices of `managers`; raises those of strict ones."""
    for manager in managers:
        if manager._watch is not None:
            manager._watch(can_raise)


def refuse_held(what: str, why: str) -> None:
    """The host copies: it would have to wait for the signal that its own thread may be about to give."""
    if why:
        raise FailedPreconditionError(
            f"{what} cannot be submitted behind held work, because the host does a part of the copy. {why}. Signal the "
            "semaphore first, or use eval() or to(), which wait, while another thread signals"
        )
