"""Recordings that contain copies between Managers.

A queue of one device cannot wait for a queue of another. A copy between Managers therefore cannot be part of
one submission: the host works between its two halves. A sequence that records such a copy is split into a
list of parts, streams and copies, which are submitted in order. The machinery of each part's own device
orders the part with all other work on the same memory, so there are no needless waits: a copy waits for the
work that writes its source, and later work on the destination's device is ordered on that device.

`SplitStream` replaces the sequence's native stream and has the same methods, so that sequences without such
copies do not need this module.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.errors import FailedPreconditionError, InvalidArgumentError
from .._memory.peer import PeerCopies, refuse_held, report

if TYPE_CHECKING:
    from collections.abc import Generator
    from collections.abc import Sequence as Seq

    from .._device.device import Device


class SplitStream:
    """A stream that is split at copies between Managers: the same methods, over a list of parts."""

    __slots__ = ("_driving", "_due", "_manager", "_parts", "_peers", "_recording", "_timed", "whole")

    def __init__(self, manager: Device, whole: _native.Stream, timed: bool) -> None:
        self._manager = manager
        # The first part; `clear` on the sequence returns to it.
        self.whole = whole
        self._timed = timed
        self._recording = whole.is_recording()
        self._parts: list[_native.Stream | _native.PeerCopy] = [whole]
        self._peers: list[Device] = []
        # True if an evaluation was not yet waited for. All of its work may already be done, since the host
        # does much of it.
        self._due = False
        # Only one thread at a time, as the parts require. A lock is needed because copies let other threads
        # run.
        self._driving = threading.Lock()

    @contextlib.contextmanager
    def _drive(self, action: str) -> Generator[None, None, None]:
        if not self._driving.acquire(blocking=False):
            raise FailedPreconditionError(
                f"The sequence{self._quoted_name()} cannot be {action}: another thread is changing or "
                "evaluating it. Use a sequence in one thread at a time, or one for each thread"
            )
        try:
            self._require_idle(action)
            yield
        finally:
            self._driving.release()

    # -- recording -------------------------------------------------------------------------------------------

    def record(self, operation: Any) -> None:
        """Appends an operation; after an evaluation, starts a new list.

        If it raises, the recording is unchanged.
        """
        with self._drive("recorded into"):
            self._append(operation)

    def _append(self, operation: Any) -> None:
        if type(operation) is not PeerCopies:
            self._restart()
            last = self._parts[-1]
            if isinstance(last, _native.PeerCopy):
                last = self._manager._native.stream(self.whole.queue_index, 0)
                last.record(operation)
                self._parts.append(last)
            else:
                last.record(operation)
            return
        if self._timed:
            raise FailedPreconditionError(
                "A sequence with timestamps cannot hold a copy between Managers, because their clocks "
                "differ. Create it without timestamps"
            )
        if self._manager not in operation.managers:
            raise InvalidArgumentError(
                "OpCopy uses only objects of other Managers than the sequence's: "
                "record it into a sequence of one of their Managers"
            )
        copies = operation.make()
        self._restart()
        self._parts.extend(copies)
        self._peers.extend(each for each in operation.managers if each not in self._peers)

    def _restart(self) -> None:
        if self._recording:
            return
        self.whole.clear()
        self._parts = [self.whole]
        self._peers = []
        self._recording = True

    def clear(self) -> None:
        """Drops all parts."""
        with self._drive("cleared"):
            self._recording = False
            self.whole.clear()
            self._parts = [self.whole]
            self._peers = []

    def rerecord(self) -> None:
        """Rebuilds the streams at the next evaluation."""
        with self._drive("re-recorded"):
            for part in self._streams():
                part.rerecord()
            self._recording = True

    # -- evaluating ------------------------------------------------------------------------------------------

    def eval(self) -> None:
        """Submits and waits, also for held work."""
        with self._drive("evaluated"):
            self._submit(may_wait=True)
        self.wait(-1.0)

    def submit(self) -> None:
        """Returns when the last copy has left its source's device; then submits the parts after that copy.

        Raises FailedPreconditionError, and submits nothing, if a copy would follow held work.
        """
        with self._drive("evaluated"):
            self._submit()

    def _submit(self, may_wait: bool = False) -> None:
        if not self.whole.is_init():
            self.whole.submit()  # raises
        for part in self._parts:
            if isinstance(part, _native.PeerCopy):
                part.check()  # before anything is submitted
        if not may_wait:
            self.refuse_held([], [])
        self._recording = False
        try:
            for number, part in enumerate(self._parts):
                part.submit()
                if may_wait or isinstance(part, _native.PeerCopy) or number + 1 == len(self._parts):
                    continue
                # It is held because of memory that no copy uses; the copies after it would wait.
                if why := _native.Fence.of([part]).why_held():
                    part.cancel_held()
                    refuse_held(f"The sequence{self._quoted_name()}", why)
            self._due = True
        except BaseException as error:
            if isinstance(error, Exception):
                self._give_up()
            report(self._peers, can_raise=False)
            raise

    def _give_up(self) -> None:
        # A sequence with a failed evaluation must not be running, so the submitted work ends first.
        for part in self._parts:
            try:
                self._wait_part(part, math.inf)
            except Exception:
                continue  # the device is lost; the first error reports it

    def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds, without a limit if negative. True if everything has finished."""
        end = math.inf if timeout < 0 else time.monotonic() + timeout
        if not all(self._wait_part(part, end) for part in self._parts):
            return False
        self._due = False
        report(self._peers)
        return True

    @staticmethod
    def _wait_part(part: _native.Stream | _native.PeerCopy, end: float) -> bool:
        waited = part if isinstance(part, _native.Stream) else part.fence()
        left = -1.0 if end == math.inf else max(0.0, end - time.monotonic())
        if isinstance(part, _native.PeerCopy) and not part.is_running():
            return True
        if not waited.wait(left):
            return False
        return part.poll() if isinstance(part, _native.PeerCopy) else True

    def refuse_held(self, fences: list[_native.Fence], waits: list[Any]) -> None:
        """Raises FailedPreconditionError if these, or the work before a copy, wait for a signal that was not
        given.
        """
        reasons = [fence.why_held() for fence in fences]
        reasons += [semaphore.why_held(value) for semaphore, value in waits]
        reasons += [part.why_held() for part in self._parts if isinstance(part, _native.PeerCopy)]
        for why in reasons:
            refuse_held(f"The sequence{self._quoted_name()}", why)

    def submit_ordered(self, fences: list[_native.Fence], waits: list[Any], signals: list[Any]) -> None:
        """Submits after `waits` and before `signals`.

        The host does both, because no submission spans the copies.
        """
        context = self._manager._native
        self.refuse_held(fences, waits)
        _native.submit(context, [], fences, waits, []).wait(-1.0)
        self.submit()
        if signals:
            for part in self._parts:
                self._wait_part(part, math.inf)
            _native.submit(context, [], [], [], signals)

    def fence(self) -> _native.Fence:
        """The completion of the last evaluation, on all devices."""
        parts = [
            part.fence() if isinstance(part, _native.PeerCopy) else _native.Fence.of([part])
            for part in self._parts
        ]
        return _native.Fence.join(parts)

    # -- state -----------------------------------------------------------------------------------------------

    def _streams(self) -> list[_native.Stream]:
        return [part for part in self._parts if isinstance(part, _native.Stream)]

    def _require_idle(self, action: str) -> None:
        if self.is_running():
            raise FailedPreconditionError(
                f"The sequence{self._quoted_name()} is running and cannot be {action}. "
                "Call eval_await() first"
            )

    def _quoted_name(self) -> str:
        return f" {self.name!r}" if self.name else ""

    def is_recording(self) -> bool:
        """True if operations were recorded since the last evaluation."""
        return self._recording

    def is_running(self) -> bool:
        """True if a submitted part is not known to be done."""
        return any(part.is_running() for part in self._parts)

    def is_due(self) -> bool:
        """True if an evaluation was submitted and not waited for, even if all of it is done."""
        return self._due or any(part.is_due() for part in self._streams()) or self.is_running()

    def due(self) -> bool | _native.Fence:
        """As of a native stream."""
        if not self.is_due():
            return False
        return self.wait(0.0) or self.fence()

    def is_complete(self) -> bool:
        """True if all parts have finished. Does not wait."""
        return all(
            part.is_complete() if isinstance(part, _native.Stream) else part.poll() for part in self._parts
        )

    def is_init(self) -> bool:
        """False after `destroy`."""
        return self.whole.is_init()

    def destroy(self) -> list[str]:
        """Destroys the streams: waits for running work and cancels held work.

        Returns a message for each cancellation.
        """
        told = [line for part in self._streams() for line in part.destroy()]
        self._parts = [self.whole]
        self._recording = False
        return told

    def operation_names(self) -> list[str]:
        """The names of the operations of all parts, in order."""
        names: list[str] = []
        for part in self._parts:
            names += part.operation_names() if isinstance(part, _native.Stream) else ["OpCopy"]
        return names

    @property
    def name(self) -> str:
        """The sequence's name."""
        return self.whole.name

    @name.setter
    def name(self, value: str) -> None:
        for stream in self._streams():
            stream.name = value

    def __getattr__(self, name: str) -> Any:
        """Forwards timestamps, raw handles and other attributes to the first part."""
        return getattr(self.whole, name)


def submit_split(
    manager: Device,
    streams: Seq[_native.Stream | SplitStream],
    fences: list[_native.Fence],
    waits: list[Any],
    signals: list[Any],
) -> None:
    """Submits streams, split ones among them, one by one in order: after `fences` and `waits` and before
    `signals`.
    """
    context = manager._native
    for number, stream in enumerate(streams):
        if stream in streams[:number]:
            raise InvalidArgumentError("A sequence is given twice: one submission can run it only once")
        if isinstance(stream, SplitStream) and stream._manager is not manager:
            raise InvalidArgumentError("A sequence belongs to another Manager than the one that submits it")
    for stream in streams:
        if isinstance(stream, SplitStream):
            stream.refuse_held(fences, waits)
    first = fences
    for number, stream in enumerate(streams):
        last = signals if number + 1 == len(streams) else []
        if isinstance(stream, SplitStream):
            stream.submit_ordered(first, waits, last)
            first = []
            if number + 1 < len(streams):
                # It may end on another device, and queues of this device cannot wait for that.
                stream.wait(-1.0)
        else:
            first = [_native.submit(context, [stream], first, waits, last)]
        waits = []
