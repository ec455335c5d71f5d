"""Recordings that contain steps of the host: functions, and copies between Managers.

A queue of one device cannot wait for a queue of another, nor for the host. Such a step therefore cannot be
part of one submission: the host works between two of them. A sequence that records one is split into a list
of parts, streams and steps, which are submitted in order. The machinery of each part's own device orders the
part with all other work on the same memory, so there are no needless waits: a copy waits for the work that
writes its source, and later work on the destination's device is ordered on that device. A function
(`host_call`) runs after all earlier parts, on the thread that submits.

`SplitStream` replaces the sequence's native stream and has the same methods, so that sequences without such
steps do not need this module.

An exception of a function ends the submission. As errors of the device do, it is raised by the next wait for
that submission (`Failure`), and cancels work that was submitted to follow it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.errors import AbortedError, FailedPreconditionError, InvalidArgumentError
from .._memory.peer import HostSteps, refuse_held, report
from .._sync.fence import Failure, raise_again
from .host_call import FunctionError, HostCall

if TYPE_CHECKING:
    from collections.abc import Generator
    from collections.abc import Sequence as Seq
    from typing import TypeAlias

    from typing_extensions import TypeIs

    from .._device.device import Device
    from .._memory.peer import HostStep

    Part: TypeAlias = "_native.Stream | HostStep"


def is_step(part: Part) -> TypeIs[HostStep]:
    """Whether a part is a step of the host."""
    return type(part) is not _native.Stream


class SplitStream:
    """A stream that is split at steps of the host: the same methods, over a list of parts."""

    __slots__ = (
        "_driving",
        "_due",
        "_manager",
        "_parts",
        "_peers",
        "_recording",
        "_submitter",
        "_timed",
        "failure",
        "whole",
    )

    def __init__(self, manager: Device, whole: _native.Stream, timed: bool) -> None:
        self._manager = manager
        # The first part; `clear` on the sequence returns to it.
        self.whole = whole
        self._timed = timed
        self._recording = whole.is_recording()
        self._parts: list[Part] = [whole]
        self._peers: list[Device] = []
        # True if an evaluation was not yet waited for. All of its work may already be done, since the host
        # does much of it.
        self._due = False
        # Only one thread at a time, as the parts require. A lock is needed because steps let other threads
        # run.
        self._driving = threading.Lock()
        # The thread that submits now; 0 for none.
        self._submitter = 0
        # The error of a host step in the last submission.
        self.failure: Failure | None = None

    @contextlib.contextmanager
    def _drive(self, action: str) -> Generator[None, None, None]:
        if not self._driving.acquire(blocking=False):
            self._refuse_in_function(action)
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
        if not isinstance(operation, HostSteps):
            self._restart()
            last = self._parts[-1]
            if is_step(last):
                last = self._manager._native.stream(self.whole.queue_index, 0)
                last.record(operation)
                self._parts.append(last)
            else:
                last.record(operation)
            return
        if self._timed:
            raise FailedPreconditionError(
                f"A sequence with timestamps cannot hold {operation.what}, because {operation.untimed}. "
                "Create it without timestamps"
            )
        steps = operation.steps(self._manager)
        self._restart()
        self._parts.extend(steps)
        self._peers.extend(each for each in operation.managers if each not in self._peers)

    def _restart(self) -> None:
        if self._recording:
            return
        self._drop()
        self._recording = True

    def clear(self) -> _native.Stream:
        """Drops all parts. Returns the stream for what is recorded then."""
        with self._drive("cleared"):
            self._recording = False
            self._drop()
        return self.whole

    def _drop(self) -> None:
        self.whole.clear()
        self._parts = [self.whole]
        self._peers = []
        self.failure = None

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
            failure = self.failure
        self.wait(-1.0)
        if failure is not None:  # another thread's wait has raised it, too
            raise failure.error

    def submit(self) -> None:
        """Returns when the last function has returned and the last copy has left its source's device; then
        submits the parts after that step.

        Raises FailedPreconditionError, and submits nothing, if a step would follow held work.
        """
        with self._drive("evaluated"):
            self._submit()

    def _submit(self, may_wait: bool = False) -> None:
        self._require_init()
        for part in self._parts:
            if is_step(part):
                part.check()  # before anything is submitted
        if not may_wait:
            self.refuse_held([], [])
        self._recording = False
        self.failure = None
        self._submitter = threading.get_ident()
        parts = tuple(self._parts)
        try:
            for number, part in enumerate(parts):
                self._require_init()  # a function may have destroyed it
                if isinstance(part, HostCall):
                    self._wait_parts(parts[:number], math.inf)
                part.submit()
                if may_wait or is_step(part) or number + 1 == len(parts):
                    continue
                # It is held because of memory that no step uses; the steps after it would wait.
                if why := _native.Fence.of([part]).why_held():
                    part.cancel_held()
                    refuse_held(f"The sequence{self._quoted_name()}", why)
            self._due = True
        except FunctionError as raised:
            if not self.whole.is_init():
                raise_again(raised.error)
            self._fail(raised.error, str(raised))
        except BaseException as error:
            if isinstance(error, Exception):
                self._give_up()
            report(self._peers, can_raise=False)
            raise
        finally:
            self._submitter = 0

    def _fail(self, error: Exception, message: str) -> None:
        """Ends the submission with `error`, which the next wait raises."""
        self._recording = False
        self.failure = Failure(self._manager._native, error, message)

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
        if self._submitter:
            self._refuse_in_function("waited for")
            if not self._driving.acquire(timeout=min(_left(end), threading.TIMEOUT_MAX)):
                return False
            self._driving.release()
        if not self._wait_parts(self._parts, end):
            return False
        self._due = False
        report(self._peers)
        self._tell()
        return True

    def _wait_parts(self, parts: Seq[Part], end: float) -> bool:
        return all(self._wait_part(part, end) for part in parts)

    @staticmethod
    def _wait_part(part: Part, end: float) -> bool:
        if not is_step(part):
            return part.wait(_left(end))
        return not part.is_running() or (part.fence().wait(_left(end)) and part.poll())

    def _tell(self) -> None:
        """Raises the error of a host step, once."""
        failure = self.failure
        if failure is not None and not failure.told:
            failure.told = True
            raise failure.error

    def refuse_held(self, fences: list[_native.Fence], waits: list[Any]) -> None:
        """Raises FailedPreconditionError if these, or the work before a step, wait for a signal that was not
        given.
        """
        reasons = [fence.why_held() for fence in fences]
        reasons += [semaphore.why_held(value) for semaphore, value in waits]
        reasons += [part.why_held() for part in self._parts if is_step(part)]
        for why in reasons:
            refuse_held(f"The sequence{self._quoted_name()}", why)

    def submit_ordered(self, fences: list[_native.Fence], waits: list[Any], signals: list[Any]) -> None:
        """Submits after `waits` and before `signals`.

        The host does both, because no submission spans the steps. If a wait or a step fails, so do
        `signals`.
        """
        context = self._manager._native
        self.refuse_held(fences, waits)
        try:
            if fences or waits:
                _native.submit(context, [], fences, waits, []).wait(-1.0)
        except AbortedError as error:
            with self._drive("evaluated"):
                self._fail(error, str(error))
        else:
            self.submit()
        if signals and self.failure is not None:
            self.failure.cancel([], signals)
        elif signals:
            self._wait_parts(self._parts, math.inf)
            _native.submit(context, [], [], [], signals)

    def failed_fences(self) -> list[_native.Fence]:
        """A fence that has failed, if a step of the host has; else nothing."""
        return [] if self.failure is None else [self.failure.fence]

    def fence(self) -> _native.Fence:
        """The completion of the last evaluation, on all devices.

        Raises FailedPreconditionError if a thread is submitting it.
        """
        if self._submitter:
            self._refuse_in_function("waited for")
            raise FailedPreconditionError(
                f"The sequence{self._quoted_name()} has no fence yet: another thread is submitting it. Take "
                "the fence when that call has returned"
            )
        parts = [part.fence() if is_step(part) else _native.Fence.of([part]) for part in self._parts]
        return _native.Fence.join([*parts, *self.failed_fences()])

    # -- state -----------------------------------------------------------------------------------------------

    def _streams(self) -> list[_native.Stream]:
        return [part for part in self._parts if not is_step(part)]

    def _require_init(self) -> None:
        if not self.whole.is_init():
            self.whole.submit()  # raises

    def _refuse_in_function(self, action: str) -> None:
        if self._submitter == threading.get_ident():
            raise FailedPreconditionError(
                f"The sequence{self._quoted_name()} cannot be {action} by the function of its own "
                "OpHostCall, because its evaluation goes on when the function returns. Use another sequence "
                "there"
            )

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
        """True if a submitted part is not known to be done, or no wait has raised the error of a step."""
        failed = self.failure is not None and not self.failure.told
        return failed or self._submitter != 0 or any(part.is_running() for part in self._parts)

    def is_due(self) -> bool:
        """True if an evaluation was submitted and not waited for, even if all of it is done."""
        return self._due or any(part.is_due() for part in self._streams()) or self.is_running()

    def due(self) -> bool | _native.Fence:
        """As of a native stream."""
        if not self.is_due():
            return False
        return self.wait(0.0) or self.fence()

    def is_complete(self) -> bool:
        """True if all parts have finished. Does not wait. Raises the error of a step."""
        if self._submitter:
            return False
        done = all(part.poll() if is_step(part) else part.is_complete() for part in self._parts)
        if done:
            self._tell()
        return done

    def is_init(self) -> bool:
        """False after `destroy`."""
        return self.whole.is_init()

    def destroy(self) -> list[str]:
        """Destroys the streams: waits for running work and cancels held work.

        Returns a message for each cancellation.
        """
        told = [line for part in self._streams() for line in part.destroy()]
        self._parts = [self.whole]
        self._recording = self._due = False
        self.failure = None
        return told

    def operation_names(self) -> list[str]:
        """The names of the operations of all parts, in order."""
        names: list[str] = []
        for part in self._parts:
            names += [part.name] if is_step(part) else part.operation_names()
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


def _left(end: float) -> float:
    """The seconds until `end`; -1 if it is infinite."""
    return -1.0 if end == math.inf else max(0.0, end - time.monotonic())


def submit_split(
    manager: Device,
    streams: Seq[_native.Stream | SplitStream],
    fences: list[_native.Fence],
    waits: list[Any],
    signals: list[Any],
) -> None:
    """Submits streams, split ones among them, one by one in order: after `fences` and `waits` and before
    `signals`. If a step of the host fails, the streams after it are cancelled.
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
    failure: Failure | None = None
    for number, stream in enumerate(streams):
        last = signals if number + 1 == len(streams) else []
        if isinstance(stream, SplitStream):
            stream.submit_ordered(first, waits, last)
            first, failure = stream.failed_fences(), stream.failure
            if number + 1 < len(streams) and failure is None:
                # It may end on another device, and queues of this device cannot wait for that.
                stream.wait(-1.0)
        elif failure is not None:
            failure.cancel([stream], last)
        else:
            first = [_native.submit(context, [stream], first, waits, last)]
        waits = []
