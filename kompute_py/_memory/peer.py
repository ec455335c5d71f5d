"""Steps of the host between submissions, and the first kind of them: copies between Managers.

The host works between the halves of such a copy, because no queue waits for one of another device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from .. import _native
from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from .._sync.fence import Fence
from .._sync.ordered import fence_of, order_of, ordered, stream_of, submit_stream
from .._sync.semaphore import listed

if TYPE_CHECKING:
    from collections.abc import Sequence as Seq

    from .._device.device import Device


class Side(Protocol):
    """A tensor or an image, as copies between Managers use it."""

    _manager: Device

    @property
    def _native(self) -> _native.Memory | _native.BufferView: ...


class HostStep(Protocol):
    """A part of a recording that the host does between two submissions."""

    @property
    def name(self) -> str:
        """The operation's name."""

    def check(self) -> None:
        """Raises FailedPreconditionError if it uses a destroyed object."""

    def why_held(self) -> str:
        """A sentence that names the semaphores to be signalled first; "" if it need not wait for any."""

    def submit(self) -> None:
        """Does the host's work, after the pending work that it depends on."""

    def is_running(self) -> bool:
        """True if work that it submitted is not known to be done."""

    def poll(self) -> bool:
        """Collects its finished work; True if all of it has finished. Raises the error of the work."""

    def fence(self) -> _native.Fence:
        """The end of its running work."""


class HostSteps:
    """The content of an operation that the host does between two submissions. Immutable."""

    __slots__ = ("managers",)

    managers: Seq[Device]
    """The Managers of its objects."""
    what: ClassVar[str]
    """A noun for errors."""
    untimed: ClassVar[str]
    """The reason why timestamps do not span it."""

    def steps(self, manager: Device) -> Seq[HostStep]:
        """Creates new steps for a recording of `manager`. Each may be used by one thread at a time.

        Raises InvalidArgumentError if its objects belong to other Managers.
        """
        raise NotImplementedError


class PeerCopies(HostSteps):
    """The content of ``OpCopy`` if its objects belong to several Managers. Immutable."""

    __slots__ = ("pairs",)

    what = "a copy between Managers"
    untimed = "their clocks differ"

    def __init__(self, memories: Seq[Side]) -> None:
        source, *targets = memories
        self.pairs = [(source._native, target._native) for target in targets]
        self.managers = list({id(memory._manager): memory._manager for memory in memories}.values())
        for copy in self.make():  # raises if the copies are not possible
            copy.check()

    def make(self) -> list[_native.PeerCopy]:
        """Creates new copies. Each may be used by one thread at a time."""
        return [_native.PeerCopy(source, target) for source, target in self.pairs]

    def steps(self, manager: Device) -> Seq[HostStep]:
        """Creates the copies for a recording of one of their Managers."""
        if manager not in self.managers:
            raise InvalidArgumentError(
                "OpCopy uses only objects of other Managers than the sequence's: "
                "record it into a sequence of one of their Managers"
            )
        return self.make()

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
    """Raises if the host's step is held: the host would wait for a signal that its own thread may have to
    give.
    """
    if why:
        raise FailedPreconditionError(
            f"{what} cannot be submitted behind held work, because the host does a part of it. {why}. "
            "Signal the semaphore first, or use eval() or to(), which wait, while another thread signals"
        )


def submitted(native: Any, manager: Device, wait: Any = (), signal: Any = ()) -> Fence:
    """Submits one native operation, or copies between Managers, without waiting for it."""
    if type(native) is not PeerCopies:
        order = order_of(wait, signal)
        if order is None:
            return fence_of(_native.submit_once(native), manager)
        return submit_stream(manager, stream_of(manager, (native,)), order)
    signals = listed(signal)
    with ordered(wait, signals):
        fence = native.run()
        if signals:  # which may be of either device
            fence.wait()
    return fence


def copy_of(memories: Seq[Any]) -> Any:
    """The native operation that copies the first of `memories` to the others, PeerCopies for several
    Managers. Raises the errors of OpCopy.
    """
    if len(memories) < 2:
        raise InvalidArgumentError(
            "OpCopy copies from the first to the rest: give at least two tensors or images"
        )
    source = memories[0]
    manager, alone = source._manager, True
    for target in memories[1:]:
        alone = alone and target._manager is manager
        if target._dtype != source._dtype:
            raise ArgumentTypeError(
                f"OpCopy copies bytes: {source._describe()} and {target._describe()} differ in dtype"
            )
        if target._count != source._count:
            raise InvalidArgumentError(
                f"OpCopy needs equal sizes: {source._describe()} has {source._count} elements, "
                f"{target._describe()} {target._count}"
            )
    return _native.op_copy([memory._native for memory in memories]) if alone else PeerCopies(memories)
