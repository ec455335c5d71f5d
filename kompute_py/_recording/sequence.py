"""Sequence: operations that are recorded once and evaluated many times.

Nearly all of it is the native stream's work. Python adds two things, and both are off the path of a plain evaluation:
operations with code in Python (kept alive here, since the stream only borrows their callables, and with hooks to call),
and validation messages. `_slow` says that one of them is in play.
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import as_index, as_name, require_manager, to_flag
from .._base.errors import (
    ArgumentTypeError,
    EvalTimeoutError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    not_copyable,
)
from .._base.plain_arguments import as_list
from .._base.warn import warn, warn_of_cancelled
from .._memory.memory import Memory
from .._memory.peer import PeerCopies
from .._sync.fence import Fence, to_seconds
from .._sync.semaphore import to_signals, to_waits
from .operations import OpBase
from .split_stream import SplitStream, fence_of_streams, managers_of, submit_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from .._manager.manager import Manager
    from .._sync.semaphore import Semaphore, Waitable
    from .streaming import FrameStream

_MOST_TIMESTAMPS = (1 << 63) - 1  # what the core counts; queries are made as operations need them
# The one empty tuple that there is: arrays among the arguments cannot be compared with it.
_NOTHING: tuple[()] = ()
_AS_MANY_AS_NEEDED = -1


class Sequence:
    """Operations recorded for one queue.

    Made by ``mgr.sequence(queue_index, total_timestamps)``, or as ``kp.Sequence(mgr, ...)``. `queue_index` counts the
    Manager's queues. `total_timestamps` is how many operations can be timed; ``timestamps=True`` times all, whatever their
    number. Raises OutOfRangeError for a queue that the Manager has not opened; UnimplementedError for timestamps if the queue
    has none, or only moves memory and the device lacks the feature ``hostQueryReset``.

    Sequences of several queues that share memory are ordered where one of them writes it. `disjoint` lists tensors and images of which
    this one touches other parts than they do: it then neither waits for them nor they for it, and what is right is the caller's to see to.

    A `record` after an evaluation starts a fresh recording; `eval()` with nothing recorded since runs the same again.

    One thread at a time records and evaluates it: a call that meets another thread's raises FailedPreconditionError and changes
    nothing. Give each thread sequences of its own; they are ordered by the memory that they share. Any thread may wait, ask and destroy.
    """

    __slots__ = (
        "__weakref__",
        "_eval",
        "_hooked",
        "_manager",
        "_native",
        "_pending",
        "_record",
        "_slow",
        "_timed",
        "_watch",
    )

    # The process ends: what ran was waited for, and what was held is told of.
    _ended = False

    def __init__(
        self,
        manager: Manager,
        queue_index: int = 0,
        total_timestamps: int = 0,
        *,
        timestamps: bool = False,
        disjoint: Memory | Iterable[Memory] = (),
    ) -> None:
        require_manager(manager)
        index = as_index(queue_index, "queue_index")
        timestamps = to_flag(timestamps, "timestamps")
        count = _AS_MANY_AS_NEEDED if timestamps else as_index(total_timestamps, "total_timestamps")
        if not timestamps and count < 0:
            raise InvalidArgumentError(f"total_timestamps is {count}; it cannot be negative")
        if not timestamps and count > _MOST_TIMESTAMPS:
            raise InvalidArgumentError(
                f"total_timestamps is {count}; at most {_MOST_TIMESTAMPS} are counted: timestamps=True takes as many as are needed"
            )
        queues = manager._native.queue_count
        if not 0 <= index < queues:
            raise OutOfRangeError(
                f"queue_index is {index}; {manager!r} opened {queues} queue{'s' if queues != 1 else ''} "
                f"(0 to {queues - 1}): give more family_queue_indices to kp.Manager for more"
            )
        self._manager = manager
        self._native: _native.Stream | SplitStream
        self._eval: Callable[[], None]
        self._record: Callable[[Any], None]
        self._use(
            manager._native.stream(
                index, count, _roots(disjoint, manager) if disjoint is not _NOTHING else ()
            )
        )
        self._timed = count != 0
        self._watch = manager._watch
        # (operation, the callable that its native part borrows) of each operation with Python code in it.
        self._hooked: list[tuple[OpBase, Any]] = []
        # Operations whose post_eval is due when the running submission ends.
        self._pending: tuple[OpBase, ...] = ()
        self._slow = self._watch is not None

    # -- recording -----------------------------------------------------------------------------------------------------

    def record(self, op: OpBase, *more: OpBase) -> Sequence:
        """Appends operations, in order; after an evaluation it starts a fresh recording. Returns the sequence.

        Raises ArgumentTypeError for what is no operation, FailedPreconditionError while running or when an operation uses
        something destroyed, InvalidArgumentError for another Manager's objects, OutOfMemoryError when more operations are
        recorded than `total_timestamps`. The recording stays as it was then.
        """
        try:
            if self._slow or op._hooked:
                self._record_slow(op)
            else:
                self._record(op._native)
        except AttributeError:
            # Not _require_operation first: the check would cost as much as the rest.
            _require_operation(op)
            if getattr(op, "_native", None) is None:
                op._bind(self._manager)  # raises, saying what is missing
            raise
        except TypeError:
            # A class of operations has the attributes, too, but no native operation in them.
            if isinstance(op, type):
                _require_operation(op)
            # A copy between Managers is none that one stream can hold.
            if type(getattr(op, "_native", None)) is not PeerCopies or isinstance(self._native, SplitStream):
                raise
            self._split()
            return self.record(op, *more)
        for other in more:
            self.record(other)
        return self

    def _split(self) -> None:
        """From here on the recording may stop for copies between Managers."""
        if not isinstance(self._native, SplitStream):
            self._use(SplitStream(self._manager, self._native, self._timed))

    def _use(self, native: _native.Stream | SplitStream) -> None:
        self._native = native
        self._eval = native.eval
        self._record = native.record

    def _record_slow(self, op: OpBase) -> None:
        _require_operation(op)
        native, borrowed = op._bind(self._manager)
        if type(native) is PeerCopies:
            self._split()
        fresh = not self._native.is_recording()
        self._record(native)
        if fresh:
            self._hooked = []
        if op._hooked:
            self._hooked.append((op, borrowed))
        self._update_slow()
        self._report()

    def _update_slow(self) -> None:
        self._slow = self._watch is not None or bool(self._hooked)

    def clear(self) -> None:
        """Drops all operations. Raises FailedPreconditionError while running."""
        self._clear()

    def _clear(self) -> None:
        self._native.clear()
        if isinstance(self._native, SplitStream):
            self._use(self._native.whole)
        self._hooked = []
        self._update_slow()

    def rerecord(self) -> None:
        """Records the current operations anew. Raises FailedPreconditionError while running."""
        self._native.rerecord()
        self._report()

    # -- evaluating ----------------------------------------------------------------------------------------------------

    def eval(self, op: OpBase | None = None) -> Sequence:
        """Submits the recording and waits until the device is done. Returns the sequence.

        With `op`: drops what was recorded, records `op` and evaluates that. Other threads run while it waits, and Ctrl-C
        raises KeyboardInterrupt; the work then goes on, and `eval_await` collects it.
        Raises FailedPreconditionError while running or when the recording uses something destroyed, DeviceLostError
        where the device fails, and what hooks of custom operations raise.
        """
        if op is None and not self._slow:
            self._eval()
            return self
        if op is not None:
            self._replace(op)
        if not self._slow:
            self._eval()
        else:
            hooks = self._start()
            try:
                self._eval()
            except BaseException:
                if self._native.is_due():
                    self._pending = hooks
                self._report(can_raise=False)
                raise
            self._finish(hooks)
        return self

    def eval_async(
        self,
        op: OpBase | None = None,
        *,
        wait: Waitable | Iterable[Waitable] = (),
        signal: tuple[Semaphore, int] | Iterable[tuple[Semaphore, int]] = (),
    ) -> Sequence:
        """Submits the recording and returns at once. Returns the sequence; `eval_await`, or `fence.wait()`, must follow.

        With `op`: drops what was recorded, records `op` and submits that. The work starts when all of `wait` are reached: fences,
        sequences (their last submission) and (semaphore, value) pairs. At its end it raises `signal`'s semaphores to their
        values. Nothing goes through the host, and what signals may be submitted after what waits; work on the same memory is
        ordered without being asked. Where a semaphore fails, the work is not done, and waiting for it raises AbortedError.

        Raises what `eval` raises; FailedPreconditionError if the sequence is still running, or holds a copy between Managers that
        would come after held work (the host does a part of such a copy); InvalidArgumentError for a value
        that its semaphore cannot take any more, for work that waits for itself, and for another Manager's fences.
        """
        if op is not None:
            self._replace(op)
        ordered = wait is not _NOTHING or signal is not _NOTHING
        if not self._slow and not ordered:
            self._native.submit()
            return self
        fences, waits = to_waits(wait)
        signals = to_signals(signal)
        hooks = self._start()
        try:
            if ordered:
                submit_streams(self._manager, [self._native], fences, waits, signals)
            else:
                self._native.submit()
        except BaseException:
            self._report(can_raise=False)
            raise
        self._pending = hooks
        self._report()
        return self

    def eval_await(self, wait_for: int | float | None = None, *, timeout: float | None = None) -> Sequence:
        """Waits until the submitted work is done. Returns the sequence.

        `wait_for` is milliseconds (Kompute's argument), `timeout` seconds; neither: no limit. With nothing running it warns.
        Raises EvalTimeoutError when the time is over: the sequence stays running, and a later `eval_await` collects the
        work. Raises DeviceLostError where the device fails, and what hooks of custom operations raise.
        """
        seconds = _seconds(wait_for, timeout)
        native = self._native
        if not self._is_due():
            if not native.is_init():
                raise FailedPreconditionError("The sequence is destroyed: there is nothing to wait for")
            native.wait(0.0)  # on a lost device, what was refused is never done
            warn("eval_await with nothing running: call eval_async before it")
            return self
        if not native.wait(seconds):
            raise EvalTimeoutError(
                f"{self!r} is still running after {seconds:g} s; call eval_await again to collect it"
            )
        if self._slow or self._pending:
            hooks, self._pending = self._pending, ()
            self._finish(hooks)
        return self

    def __await__(self) -> Generator[Any, None, Sequence]:
        """In asyncio: waits for the last submission without blocking the event loop; never submits. Returns the sequence.

        Raises FailedPreconditionError where nothing is running, and what `eval_await` raises. A cancelled await leaves the
        sequence running.
        """
        if not self._is_due():
            raise FailedPreconditionError(
                f"{self!r} is not running: await waits for what eval_async submitted, as in `await seq.eval_async()`"
            )
        yield from self.fence.__await__()
        return self

    def _is_due(self) -> bool:
        return self._native.is_due()

    def stream(
        self,
        items: Any,
        *,
        inputs: Any,
        outputs: Any,
        depth: int = 3,
        shared: Any = (),
        transfer_queue: int | None = None,
    ) -> FrameStream:
        """Runs the recording once for each of `items`, several frames at a time; iterate over the results, with for or async for.

        ::

            for out in seq.stream(frames, inputs=[src], outputs=[dst], depth=3):
                ...

        `inputs` and `outputs` are Tensors, views of them, and Images. Each item is an array of the input's shape and dtype; for several inputs a tuple, list or dict (by tensor or its name) of
        them. A result is an array, or a tuple of them for several outputs; results come in order, and each stays as it is
        for the next `depth` yields. A last item that is shorter along its first axis is padded with zeros; results of the inputs' length are
        cut to its length. Up to `depth` items are taken before the first result.

        The recording is taken as it is when `stream` is called. Sync operations of `inputs` and `outputs` in it are left out. Tensors
        that a frame writes before it reads them are copied for each frame in flight, so those the sequence was recorded with,
        `inputs` and `outputs` among them, are not written. Tensors that a frame reads before it writes them carry state: there
        is one, and frames use it in order. So it is with images and with tensors of which a view is streamed (frames are copied from and to
        them on the device), `host` and `deviceAndHost` memory, what sync operations name, and what `shared` lists. Uploads and downloads run on `transfer_queue`, by default another queue that the Manager opened, best one of
        another family; else on the sequence's.

        Where an item is wrong or `items` raises, the results before it come first, then the error. Leaving the loop ends the
        stream and does not wait for the frames in flight, whose memory goes when the device is done with them; so does Ctrl-C, which
        raises KeyboardInterrupt at once. Raises InvalidArgumentError for memory that the recording does not use so, inputs that overlap or an item that does not fit,
        ArgumentTypeError for what is no memory or an item of another dtype, UnimplementedError for operations that record their
        own commands, FailedPreconditionError while running or with nothing recorded, OutOfRangeError for a queue that is not open.
        """
        from .streaming import stream_frames

        return stream_frames(self, items, inputs, outputs, depth, shared, transfer_queue)

    def _replace(self, op: OpBase) -> None:
        _require_operation(op)
        self._clear()
        self.record(op)

    def _start(self) -> tuple[OpBase, ...]:
        """Runs pre_eval of all operations that have Python code; returns them."""
        if not self._hooked:
            return ()
        if self._native.is_running():
            raise FailedPreconditionError(f"{self!r} is running: call eval_await before the next evaluation")
        self._collect()
        hooks = tuple(op for op, _ in self._hooked)
        for op in hooks:
            op.pre_eval()
        return hooks

    def _finish(self, hooks: tuple[OpBase, ...]) -> None:
        self._report()
        for op in hooks:
            op.post_eval()

    def _collect(self) -> None:
        """What is due when somebody else has waited for the last submission."""
        if self._pending and not self._native.is_running():
            self._native.wait(0.0)
            hooks, self._pending = self._pending, ()
            self._finish(hooks)

    def _report(self, can_raise: bool = True) -> None:
        watch = self._watch
        if watch is not None:
            watch(can_raise)

    # -- timing --------------------------------------------------------------------------------------------------------

    def get_timestamps(self) -> list[int]:
        """The last evaluation's raw device ticks: one before the first operation and one after each.

        Raises FailedPreconditionError where the sequence was made without timestamps.
        """
        if not self._timed:
            raise FailedPreconditionError(
                "The sequence takes no timestamps: make it with mgr.sequence(timestamps=True), "
                "or mgr.sequence(total_timestamps=n) for up to n operations"
            )
        return self._native.timestamps()

    def timings(self) -> list[tuple[str, float]]:
        """(operation's name, seconds on the device) of the last evaluation, in order.

        The first operation's time begins when the work that was submitted to the queue before is done.

        Raises FailedPreconditionError where the sequence was made without timestamps.
        """
        ticks = self.get_timestamps()
        # Ticks wrap at the queue's count of valid bits.
        mask = (1 << self._native.timestamp_bits) - 1
        scale = self._manager._info["timestamp_period"] * 1e-9
        return [
            (name, ((end - start) & mask) * scale)
            for name, start, end in zip(self._native.timed_names(), ticks, ticks[1:], strict=False)
        ]

    # -- state ---------------------------------------------------------------------------------------------------------

    def is_recording(self) -> bool:
        """Whether operations were recorded since the last evaluation or clear."""
        return self._native.is_recording()

    def is_running(self) -> bool:
        """Whether work was submitted that is not known to be done; does not wait, and does not ask the device.

        Every wait that tells of the work's end ends this: `eval_await`, its fence, an await, `mgr.synchronize()`, and waiting for later
        work of the same queue. `is_complete` asks the device. Work that was cancelled stays running until `eval_await`, its fence or an
        await has raised the AbortedError: `mgr.synchronize()` does not, so that what did not run is not overlooked.
        """
        return self._native.is_running()

    def is_complete(self) -> bool:
        """Whether the device is done with the last submission; does not wait. True if there was none.

        Once it is True, the results are visible to the host: `data()` shows them.
        """
        return self._native.is_complete()

    def is_init(self) -> bool:
        """False after `destroy()` of this object or of its Manager."""
        return self._native.is_init()

    def destroy(self) -> None:
        """Gives the device's resources back, at any time and any number of times; running work is waited for.

        Work that is held, since nobody has signalled what it waits for, is cancelled: a KomputeWarning says what did not run, and
        waiting for its fence raises AbortedError.
        """
        told = self._native.destroy()
        self._hooked = []
        self._pending = ()
        self._update_slow()
        self._report()
        warn_of_cancelled(told)

    @property
    def fence(self) -> Fence:
        """The end of the last submission, as a Fence: to wait for, to join with others, to give as `wait=`, to await.

        When it is waited for, the sequence is collected, as by `eval_await`. Done at once where nothing was submitted.
        """
        return fence_of([self], self._manager)

    @property
    def manager(self) -> Manager:
        """The Manager that it belongs to."""
        return self._manager

    @property
    def queue_index(self) -> int:
        """Which of the Manager's queues it submits to."""
        return self._native.queue_index

    @property
    def name(self) -> str:
        """A name for error messages, validation messages and profiles; "" by default."""
        return self._native.name

    @name.setter
    def name(self, value: str) -> None:
        self._native.name = as_name(value)

    def mermaid(self) -> str:
        """The operations and the barriers that order them, as a flowchart in Mermaid's language.

        Barriers are known once the recording was evaluated. Builds and submits nothing.
        """
        from .._display.graph import graph_of, mermaid

        return mermaid(graph_of(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """For notebooks: the operations and what orders them."""
        from .._display.cards import sequence_bundle

        return sequence_bundle(self)

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError) that says what to do instead."""
        raise not_copyable(self, "record the operations into a new mgr.sequence()")

    def __repr__(self) -> str:
        native = self._native
        name = f" {native.name!r}" if native.name else ""
        if not native.is_init():
            return f"<kp.Sequence{name} destroyed>"
        state = "running" if native.is_running() else "recording" if native.is_recording() else "idle"
        try:
            operations = f"[{', '.join(native.operation_names())}]"
        except FailedPreconditionError:
            operations = "(another thread is recording it)"
        return f"<kp.Sequence{name} queue {native.queue_index} {state} {operations}>"

    def __del__(self, warn: Any = warnings.warn) -> None:
        # No wait here: the native side keeps what the device uses until it is done. (`warn` is a default argument since
        # module globals may be gone at interpreter exit; a sequence whose __init__ failed has no _native.)
        native = getattr(self, "_native", None)
        if native is None or type(self)._ended:
            return
        if native.is_init() and native.is_running():
            warn(
                "A kp.Sequence was dropped while running: call eval_await() before",
                ResourceWarning,
                source=self,
            )

    # -- raw Vulkan: of a destroyed sequence they raise FailedPreconditionError ----------------------------------------

    def _alive(self) -> _native.Stream | SplitStream:
        if not self._native.is_init():
            raise FailedPreconditionError("The sequence is destroyed: it has no Vulkan handles to give")
        return self._native

    @property
    def vk_command_buffer(self) -> int:
        """The VkCommandBuffer of the current recording, as an integer; 0 before the first evaluation."""
        return self._alive().vk_command_buffer

    @property
    def vk_semaphore(self) -> int:
        """The queue's timeline VkSemaphore, as an integer."""
        return self._alive().vk_semaphore

    @property
    def last_value(self) -> int:
        """The value of `vk_semaphore` that the last submission signals."""
        return self._native.last_value


def fence_of(sequences: list[Sequence], manager: Manager) -> Fence:
    """The end of the last submissions of a Manager's sequences."""
    streams = [each._native for each in sequences]
    return Fence(
        fence_of_streams(streams),
        managers_of(streams, manager),
        tuple(weakref.ref(each) for each in sequences if each._hooked),
    )


def submit_together(manager: Manager, sequences: list[Sequence], wait: Any, signal: Any) -> Fence:
    """See `Manager.submit`."""
    fences, waits = to_waits(wait)
    signals = to_signals(signal)
    for each in sequences:
        if not isinstance(each, Sequence):
            raise ArgumentTypeError(f"submit takes sequences, not {type(each).__name__}")
    hooks = [each._start() for each in sequences]
    try:
        native = submit_streams(manager, [each._native for each in sequences], fences, waits, signals)
    finally:
        for each, due in zip(sequences, hooks, strict=True):
            if each._native.is_due():
                each._pending = due
        if manager._watch is not None:
            manager._watch()
    ends = managers_of([each._native for each in sequences], manager)
    return Fence(native, ends, tuple(weakref.ref(each) for each in sequences if each._hooked))


def _require_operation(op: Any) -> None:
    if not isinstance(op, OpBase):
        hint = ""
        if isinstance(op, type) and issubclass(op, OpBase):
            hint = f"; make one: kp.{op.__name__}(...)"
        elif type(op).__name__ == "Kernel":
            hint = "; make one: kernel.bind(...)"
        raise ArgumentTypeError(f"A sequence records operations (kp.OpBase), not {type(op).__name__}{hint}")


def _seconds(wait_for: Any, timeout: Any) -> float:
    if wait_for is None:
        return to_seconds(timeout)
    if timeout is not None:
        raise InvalidArgumentError(
            "Give eval_await either milliseconds (positional) or timeout= in seconds, not both"
        )
    return to_seconds(wait_for, "wait_for", "milliseconds")


def _roots(given: Any, manager: Manager) -> list[_native.Memory]:
    """The native memory behind tensors, views and images, for `disjoint`."""
    if isinstance(given, Memory):
        given = (given,)
    memories = as_list(given, "disjoint", "a list of Tensors and Images")
    roots: list[Any] = []
    for memory in memories:
        if not isinstance(memory, Memory):
            raise ArgumentTypeError(f"disjoint takes Tensors and Images, not {type(memory).__name__}")
        if memory._manager is not manager:
            raise InvalidArgumentError(f"disjoint: {memory._describe()} belongs to another Manager")
        if not memory._is_init():
            memory._require_init("be listed as disjoint")
        while (base := getattr(memory, "base", None)) is not None:
            memory = base
        roots.append(memory._native)
    return roots
