"""Sequence: operations that are recorded once and evaluated many times.

The native stream does nearly all the work. Python adds two things: operations with Python code, and
validation messages. The sequence keeps such operations alive, because the stream only borrows their
callables, and calls their hooks. A plain evaluation does not touch this code. `_slow` is True if one of the
two is in use.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from .. import _native
from .._base.arrays import as_index, to_flag
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
from .._device.device import require_manager
from .._device.owner import Named
from .._memory.memory import Memory, memory_list
from .._memory.peer import HostSteps
from .._sync.fence import Fence, to_seconds, wait_in_loop
from .._sync.ordered import NOTHING, ordered
from .._sync.semaphore import to_signals, to_waits
from .operations import OpBase
from .streams import failures_of, fence_of_streams, is_split, managers_of, submit_streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Generator

    from typing_extensions import Unpack

    from .._base.annotations import Array
    from .._device.device import Device
    from .._memory.needs import MemoryNeeds
    from .._sync.semaphore import Ordering, Signals, Waits
    from .split_stream import SplitStream
    from .streaming import FrameStream

_MOST_TIMESTAMPS = (1 << 63) - 1  # the core's limit; it creates queries as operations need them
_AS_MANY_AS_NEEDED = -1


def _queue_of(manager: Device, queue_index: Any) -> int:
    """The index of the queue to take: that one, or the least busy of several."""
    several = isinstance(queue_index, Iterable) and not isinstance(queue_index, str)
    given: Iterable[Any] = queue_index if several else (queue_index,)
    if several:
        given = as_list(given, "queue_index", "an index of a queue, or a list of them: [0, 1]")
    among = [as_index(each, "queue_index") for each in given]
    if not among:
        raise InvalidArgumentError(
            "queue_index is empty; give an index of a queue, or a list of them: [0, 1]"
        )
    queues = manager._native.queue_count
    for index in among:
        if not 0 <= index < queues:
            raise OutOfRangeError(
                f"queue_index is {index}; {manager!r} opened {queues} queue{'s' if queues != 1 else ''} "
                f"(0 to {queues - 1}): give kp.Manager more family_queue_indices to open more"
            )
    return manager._native.least_busy(among) if several else among[0]


@not_copyable("record the operations into a new mgr.sequence()")
class Sequence(Named):
    """Operations recorded for one queue.

    Create one with ``mgr.sequence(queue_index, total_timestamps)`` or ``kp.Sequence(mgr, ...)``.
    `queue_index` is an index into the Manager's queues, or several: the sequence then takes, once, the queue
    with the fewest submissions that are not done, in turn among equal ones. `total_timestamps` is the
    number of operations that can be timed; ``timestamps=True`` times any number. Raises OutOfRangeError if
    the Manager has not opened that queue; InvalidArgumentError for a negative number of timestamps or objects
    of another Manager in `disjoint`; ArgumentTypeError for arguments of other types; UnimplementedError for
    timestamps if the queue has none, or if it only moves memory and the device lacks the feature
    ``hostQueryReset``.

    If sequences of several queues share memory and one of them writes it, they are ordered. `disjoint` lists
    tensors and images that this sequence shares with others but uses different parts of. No ordering is
    inserted for them; you must ensure that the parts do not overlap.

    A `record` after an evaluation starts a new recording; `eval()` without new operations runs the same one
    again.

    One thread at a time may record and evaluate a sequence. A call that meets another thread's call raises
    FailedPreconditionError and changes nothing. Give each thread its own sequences; shared memory orders
    them. Any thread may wait, query the state and destroy.

    >>> a, b, product = mgr.tensor([1, 2, 3]), mgr.tensor([4, 5, 6]), mgr.zeros(3)
    >>> seq = mgr.sequence().record(kp.OpMult([a, b, product]), kp.OpSyncLocal([product]))
    >>> seq.eval()
    <kp.Sequence ...>
    >>> product.numpy().tolist()
    [4.0, 10.0, 18.0]
    """

    __slots__ = (
        "__weakref__",
        "_eval",
        "_fenced",
        "_hooked",
        "_kept",
        "_manager",
        "_native",
        "_pending",
        "_record",
        "_slow",
        "_slow_record",
        "_timed",
        "_watch",
    )

    # Set at the end of the process, after running work was waited for and held work was reported.
    _ended = False

    def __init__(
        self,
        manager: Device,
        queue_index: int | Iterable[int] = 0,
        total_timestamps: int = 0,
        *,
        timestamps: bool = False,
        disjoint: Memory | Iterable[Memory] = (),
    ) -> None:
        require_manager(manager)
        index = _queue_of(manager, queue_index)
        timestamps = to_flag(timestamps, "timestamps")
        count = as_index(total_timestamps, "total_timestamps")
        if count < 0:
            raise InvalidArgumentError(f"total_timestamps is {count}; it cannot be negative")
        if count > _MOST_TIMESTAMPS:
            raise InvalidArgumentError(
                f"total_timestamps is {count}; at most {_MOST_TIMESTAMPS}. timestamps=True times any number"
            )
        if timestamps:
            count = _AS_MANY_AS_NEEDED
        self._manager = manager
        self._native: _native.Stream | SplitStream
        self._eval: Callable[[], None]
        self._record: Callable[[Any], None]
        self._use(
            manager._native.stream(index, count, _roots(disjoint, manager) if disjoint is not NOTHING else ())
        )
        self._timed = count != 0
        self._watch = manager._watch
        # (operation, the callable that its native part borrows) for each operation with Python code.
        self._hooked: list[tuple[OpBase, Any]] = []
        # Operations without such code that must live as long as the recording.
        self._kept: list[OpBase] = []
        # Operations with a post_eval to call when the running submission ends.
        self._pending: tuple[OpBase, ...] = ()
        # Whether a Fence was given for the last submission.
        self._fenced = False
        self._update_slow()

    # -- recording -------------------------------------------------------------------------------------------

    def record(self, op: OpBase, *more: OpBase) -> Sequence:
        """Appends operations in order; after an evaluation, starts a new recording. Returns the sequence.

        Raises ArgumentTypeError if an argument is not an operation, FailedPreconditionError if the sequence
        is running or an operation uses a destroyed object, InvalidArgumentError for objects of another
        Manager, OutOfRangeError if the recording would have more operations than `total_timestamps`. The
        operation that raises is not recorded.

        >>> x = mgr.tensor([1, 2, 3])
        >>> seq = mgr.sequence().record(kp.OpFill([x], 1.0), kp.OpSyncLocal([x]))
        >>> seq.eval() is seq
        True
        """
        try:
            if self._slow_record or not op._plain:
                self._record_slow(op)
            else:
                self._record(op._native)
        except AttributeError:
            # Checked only after a failure: calling _require_operation first would cost as much as the rest.
            _require_operation(op)
            if getattr(op, "_native", None) is None:
                op._bind(self._manager)  # raises an error that names the missing part
            raise
        except TypeError:
            # A class of operations also has the attributes, but no native operation.
            if isinstance(op, type):
                _require_operation(op)
            # A single stream cannot hold a step of the host.
            if not isinstance(getattr(op, "_native", None), HostSteps) or is_split(self._native):
                raise
            self._split()
            return self.record(op, *more)
        if more:
            for other in more:
                self.record(other)
        return self

    def _split(self) -> None:
        """Prepares the recording for steps of the host, which divide it into parts."""
        if not is_split(self._native):
            from .split_stream import SplitStream

            self._use(SplitStream(self._manager, self._native, self._timed))

    def _use(self, native: _native.Stream | SplitStream) -> None:
        self._native = native
        self._eval = native.eval
        self._record = native.record

    def _record_slow(self, op: OpBase) -> None:
        _require_operation(op)
        parts = getattr(op, "_parts", None)
        if parts is not None:
            if any(isinstance(part, HostSteps) for part in parts):
                self._split()
            for part in parts:
                self._record(part)
            return
        native, borrowed = op._bind(self._manager)
        if isinstance(native, HostSteps):
            self._split()
        fresh = not self._native.is_recording()
        self._record(native)
        if fresh:
            self._hooked, self._kept = [], []
        if op._hooked:
            self._hooked.append((op, borrowed))
        elif not op._plain:
            self._kept.append(op)
        self._update_slow()
        self._report()

    def _update_slow(self) -> None:
        self._slow = self._watch is not None or bool(self._hooked)
        self._slow_record = self._slow or bool(self._kept)

    def clear(self) -> None:
        """Drops all operations. Raises FailedPreconditionError if the sequence is running."""
        whole = self._native.clear()
        if whole is not None:  # it was split
            self._use(whole)
        if self._slow_record:
            self._hooked, self._kept = [], []
            self._update_slow()

    def rerecord(self) -> None:
        """Records the current operations anew. Raises FailedPreconditionError if the sequence is running."""
        self._native.rerecord()
        self._report()

    # -- evaluating ------------------------------------------------------------------------------------------

    def eval(self, op: OpBase | None = None, *, wait: Waits = (), signal: Signals = ()) -> Sequence:
        """Submits the recording and waits until the device is done. Returns the sequence.

        With `op`: drops the recording, records `op` and evaluates that. With `wait` and `signal`, the host
        waits for everything in `wait` first, and raises the semaphores of `signal` after the work; for what
        they may be, see `eval_async`. If the call raises, it signals nothing. Other threads run during the
        wait. Ctrl-C raises KeyboardInterrupt; the work continues, and `eval_await` collects it. Raises
        ArgumentTypeError if `op` is not an operation, FailedPreconditionError if the sequence is running or
        the recording uses a destroyed object, DeviceLostError if the device fails, and the exceptions of
        custom operations' hooks and of OpHostCall's functions.

        >>> x = mgr.tensor([1, 2, 3])
        >>> seq = mgr.sequence().eval(kp.OpFill([x], 4.0))
        >>> x.tolist()
        [4.0, 4.0, 4.0]
        """
        if wait is not NOTHING or signal is not NOTHING:
            with ordered(wait, signal):
                return self.eval(op)
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
        wait: Waits = (),
        signal: Signals = (),
    ) -> Sequence:
        """Submits the recording and returns the sequence at once. Call `eval_await` or `fence.wait()` later.

        With `op`: drops the recording, records `op` and submits that. The work starts when everything in
        `wait` is reached: fences, sequences (their last submission) and (semaphore, value) pairs. At its end,
        the work raises the semaphores of `signal` to their values. The device does the waiting, not the host.
        You may submit waiting work before the signalling work. Work on the same memory is ordered
        automatically. If a semaphore in `wait` fails, the work does not run, and waiting for it raises
        AbortedError.

        A recording with an OpHostCall is submitted up to its last one: its functions run during this call,
        after the device has reached them. `eval_await` raises their exceptions.

        Raises the errors of `eval`; FailedPreconditionError if the sequence is still running, or holds an
        OpHostCall or a copy between Managers that would follow held work (the host does a part of these);
        InvalidArgumentError for a value that its semaphore can no longer take, for work that waits for
        itself, and for fences of another Manager.

        >>> x = mgr.tensor([1, 2, 3])
        >>> seq = mgr.sequence().record(kp.OpFill([x], 4.0)).eval_async()
        >>> seq.eval_await().is_running()  # it waits
        False
        """
        if op is not None:
            self._replace(op)
        in_order = wait is not NOTHING or signal is not NOTHING
        self._fenced = False
        if not self._slow and not in_order:
            self._native.submit()
            return self
        fences, waits = to_waits(wait)
        signals = to_signals(signal)
        hooks = self._start()
        try:
            if in_order:
                submit_streams(self._manager, [self._native], fences, waits, signals)
            else:
                self._native.submit()
        except BaseException:
            self._report(can_raise=False)
            raise
        self._expect(hooks)
        self._report()
        return self

    def eval_await(
        self,
        wait_for: int | float | None = None,
        *,
        timeout: float | None = None,
        deadline: int | None = None,
    ) -> Sequence:
        """Waits until the submitted work is done. Returns the sequence.

        `wait_for` is in milliseconds (Kompute's argument), `timeout` in seconds, `deadline` a time of
        ``time.monotonic_ns()``; without any, there is no limit. Warns if nothing is running. Raises
        EvalTimeoutError if the time runs out: the sequence stays running, and a later `eval_await` collects
        the work. Raises InvalidArgumentError if two limits are
        given or one is negative, FailedPreconditionError if the sequence is destroyed, DeviceLostError if the
        device fails, and the exceptions of custom operations' hooks and of OpHostCall's functions.
        """
        seconds = _seconds(wait_for, timeout, deadline)
        native = self._native
        if not self._is_due():
            if not native.is_init():
                raise FailedPreconditionError("The sequence is destroyed: there is nothing to wait for")
            native.wait(0.0)  # raises on a lost device, because refused work is never done
            warn("eval_await with nothing running: call eval_async first")
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
        """In asyncio: waits for the last submission without blocking the event loop. Returns the sequence.

        Never submits work. Raises FailedPreconditionError if nothing is running, and the errors of
        `eval_await`. If the await is cancelled, the sequence stays running.
        """
        due = self._native.due()
        if due is False:
            raise FailedPreconditionError(
                f"{self!r} is not running: await waits for eval_async's work, as in `await seq.eval_async()`"
            )
        if due is not True:
            yield from wait_in_loop()(due, managers_of([self._native], self._manager))
            due.wait(0.0)  # collects the work, or raises its error
        if self._pending:
            self._collect()
        else:
            self._report()
        return self

    def _is_due(self) -> bool:
        return self._native.is_due()

    @overload
    def stream(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        inputs: Memory | Iterable[Memory],
        outputs: Memory | tuple[Memory],
        depth: int = ...,
        shared: Memory | Iterable[Memory] = ...,
        transfer_queue: int | None = ...,
        **options: Unpack[Ordering],
    ) -> FrameStream[Array]: ...
    @overload
    def stream(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        inputs: Memory | Iterable[Memory],
        outputs: tuple[Memory, Memory],
        depth: int = ...,
        shared: Memory | Iterable[Memory] = ...,
        transfer_queue: int | None = ...,
        **options: Unpack[Ordering],
    ) -> FrameStream[tuple[Array, Array]]: ...
    @overload
    def stream(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        inputs: Memory | Iterable[Memory],
        outputs: tuple[Memory, Memory, Memory],
        depth: int = ...,
        shared: Memory | Iterable[Memory] = ...,
        transfer_queue: int | None = ...,
        **options: Unpack[Ordering],
    ) -> FrameStream[tuple[Array, Array, Array]]: ...
    @overload
    def stream(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        inputs: Memory | Iterable[Memory],
        outputs: Iterable[Memory],
        depth: int = ...,
        shared: Memory | Iterable[Memory] = ...,
        transfer_queue: int | None = ...,
        **options: Unpack[Ordering],
    ) -> FrameStream[Any]: ...
    def stream(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        inputs: Memory | Iterable[Memory],
        outputs: Memory | Iterable[Memory],
        depth: int = 3,
        shared: Memory | Iterable[Memory] = (),
        transfer_queue: int | None = None,
        wait: Waits = (),
        signal: Signals = (),
    ) -> FrameStream[Any]:
        """Runs the recording once for each of `items`, with several frames in flight.

        ::

            for out in seq.stream(frames, inputs=[src], outputs=[dst], depth=3):
                ...

        Iterate over the results with ``for`` or ``async for``. `inputs` and `outputs` are Tensors, views of
        them, and Images. Each item is an array of the input's shape and dtype; for several inputs, it is a
        tuple, a list or a dict (by tensor or its name) of arrays. A result is an array; for several outputs,
        it is a tuple of arrays. Results come in order, and each stays unchanged for the next `depth` results.
        If the last item is shorter along its first axis, it is padded with zeros, and results of the inputs'
        length are cut to its length. Up to `depth` items are taken before the first result.

        `stream` takes the recording as it is at the call. Sync operations of `inputs` and `outputs` in it are
        left out. Tensors that a frame writes before it reads them are copied for each frame in flight. The
        original tensors, those among `inputs` and `outputs` included, are then not written. Tensors that a
        frame reads before it writes them carry state: there is one copy, and frames use it in order. The same
        holds for images and tensors with a streamed view (frames are copied from and to them on the device),
        `host` and `deviceAndHost` memory, memory in sync operations, and `shared`, a list of tensors and
        images. Uploads and downloads run on `transfer_queue`. By default, this is another queue of the
        Manager, preferably of another family; if there is none, it is the sequence's queue.

        The first frame starts after everything in `wait` is reached; `signal` follows the last one. Both are
        as in `eval_async`. A stream that ends early signals nothing.

        If an item is wrong or `items` raises, the earlier results come first, then the error. Leaving the
        loop ends the stream without waiting for the frames in flight; their memory is freed when the device
        is done with it. Ctrl-C does the same and raises KeyboardInterrupt at once.

        Raises InvalidArgumentError if the recording does not read an input or write an output (an output
        that is an input, too, gives the items back), inputs overlap, or an item does not fit;
        ArgumentTypeError if an argument is not memory or an item has another dtype; UnimplementedError for
        operations that record their own commands; FailedPreconditionError if the sequence is running or
        nothing is recorded; OutOfRangeError if `transfer_queue` is not open.
        """
        from .streaming import FrameStream  # late, because few scripts stream

        return FrameStream(self, items, inputs, outputs, depth, shared, transfer_queue, wait, signal)

    def _replace(self, op: OpBase) -> None:
        _require_operation(op)
        self.clear()
        self.record(op)

    def _start(self) -> tuple[OpBase, ...]:
        """Runs pre_eval of all operations with Python code. Returns these operations."""
        if not self._hooked:
            return ()
        if self._native.is_running():
            raise FailedPreconditionError(f"{self!r} is running: call eval_await before the next evaluation")
        self._collect()
        hooks = tuple(op for op, _ in self._hooked)
        for op in hooks:
            op.pre_eval()
        return hooks

    def _expect(self, hooks: tuple[OpBase, ...]) -> None:
        """Calls post_eval of `hooks` when the work that was just submitted is done, unless it has failed."""
        self._pending = () if failures_of([self._native]) else hooks

    def _finish(self, hooks: tuple[OpBase, ...]) -> None:
        self._report()
        for op in hooks:
            op.post_eval()

    def _collect(self) -> None:
        """Calls the due hooks after someone else has waited for the last submission."""
        if self._pending and not self._native.is_running():
            self._native.wait(0.0)
            hooks, self._pending = self._pending, ()
            self._finish(hooks)

    def _report(self, can_raise: bool = True) -> None:
        watch = self._watch
        if watch is not None:
            watch(can_raise)

    # -- timing ----------------------------------------------------------------------------------------------

    def get_timestamps(self) -> list[int]:
        """The raw device ticks of the last evaluation: one before the first operation and one after each.

        Raises FailedPreconditionError if the sequence was created without timestamps.
        """
        if not self._timed:
            raise FailedPreconditionError(
                "The sequence takes no timestamps: create it with mgr.sequence(timestamps=True), "
                "or mgr.sequence(total_timestamps=n) for up to n operations"
            )
        return self._native.timestamps()

    def timings(self) -> list[tuple[str, float]]:
        """(operation name, seconds on the device) for each operation of the last evaluation, in order.

        The first operation's time starts when the work that was submitted to the queue before is done.

        Raises FailedPreconditionError if the sequence was created without timestamps.
        """
        ticks = self.get_timestamps()
        # Ticks have `timestamp_bits` valid bits and wrap around.
        mask = (1 << self._native.timestamp_bits) - 1
        scale = self._manager._info["timestamp_period"] * 1e-9
        return [
            (name, ((end - start) & mask) * scale)
            for name, start, end in zip(self._native.timed_names(), ticks, ticks[1:], strict=False)
        ]

    # -- state -----------------------------------------------------------------------------------------------

    def is_recording(self) -> bool:
        """True if operations were recorded since the last evaluation or clear."""
        return self._native.is_recording()

    def is_running(self) -> bool:
        """True if submitted work is not known to be done. Does not wait and does not query the device.

        It becomes False after any wait that covers the work: `eval_await`, its fence, an await,
        `mgr.synchronize()`, or a wait for later work of the same queue. `is_complete` queries the device. If
        the work was cancelled, it stays True until `eval_await`, its fence or an await has raised the
        AbortedError. `mgr.synchronize()` does not raise it, so that cancelled work is not overlooked.
        """
        return self._native.is_running()

    def is_complete(self) -> bool:
        """True if the device is done with the last submission, or there was none. Does not wait.

        After it returns True, `data()` shows the results.
        """
        return self._native.is_complete()

    def is_init(self) -> bool:
        """False after `destroy()` of this object or of its Manager."""
        return self._native.is_init()

    def destroy(self) -> None:
        """Frees the device's resources. Can be called at any time and repeatedly; waits for running work.

        Held work, which waits for a value that nothing has signalled, is cancelled: a KomputeWarning names
        the operations that did not run, and waiting for its fence raises AbortedError.
        """
        told = self._native.destroy()
        self._hooked, self._kept = [], []
        self._pending = ()
        self._update_slow()
        self._report()
        warn_of_cancelled(told)

    @property
    def fence(self) -> Fence:
        """A Fence for the end of the last submission, to wait for, join, pass as `wait=` or await.

        Waiting for it collects the sequence, as `eval_await` does. If nothing was submitted, it is done at
        once. Raises FailedPreconditionError while a thread runs an OpHostCall of the sequence.
        """
        streams = [self._native]
        return Fence(
            fence_of_streams(streams),
            managers_of(streams, self._manager),
            (weakref.ref(self),) if self._hooked else (),
            failures_of(streams),
        )

    @property
    def queue_index(self) -> int:
        """The index of the Manager's queue that the sequence submits to."""
        return self._native.queue_index

    def memory_needs(self) -> MemoryNeeds:
        """The memory of the recording, which its tensors hold already: what it only reads, what it writes,
        and what operations pass to each other. Host copies do not count. Builds and submits nothing.

        Raises UnimplementedError for operations that record Vulkan commands by code of their own, and for
        copies between Managers; FailedPreconditionError if the sequence is running.

        >>> x, y = mgr.zeros(1000), mgr.zeros(1000)
        >>> needs = mgr.sequence().record(kp.ops.exp.bind(x, out=y)).memory_needs()
        >>> needs.inputs, needs.outputs
        (4000, 4000)
        """
        from .needs import needs_of

        native = self._alive()
        return needs_of(self._manager, native._parts if is_split(native) else (native,))

    def mermaid(self) -> str:
        """The operations and the barriers that order them, as a flowchart in the Mermaid language.

        Barriers are known after an evaluation. Builds and submits nothing.
        """
        from .._display.graph import graph_of, mermaid

        return mermaid(graph_of(self._native))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """For notebooks: shows the operations and their order."""
        from .._display.cards import sequence_bundle

        return sequence_bundle(self._native)

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
        # Does not wait: the native side keeps the memory that the device uses until the work is done. `warn`
        # is a default argument because module globals may be gone at interpreter exit. If __init__ failed,
        # there is no _native.
        native = getattr(self, "_native", None)
        if native is None or type(self)._ended:
            return
        if self._fenced and not self._pending:  # dropped on purpose; nothing is left to call
            return
        if native.is_init() and native.is_running():
            warn(
                "A kp.Sequence was dropped while running: call eval_await() first",
                ResourceWarning,
                source=self,
            )

    # -- raw Vulkan: these raise FailedPreconditionError if the sequence is destroyed ------------------------

    def _alive(self) -> _native.Stream | SplitStream:
        if not self._native.is_init():
            raise FailedPreconditionError("The sequence is destroyed")
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


def _require_operation(op: Any) -> None:
    if not isinstance(op, OpBase):
        hint = ""
        if isinstance(op, type) and issubclass(op, OpBase):
            hint = f"; make one: kp.{op.__name__}(...)"
        elif hasattr(type(op), "bind"):
            hint = f"; make one: {getattr(op, '__name__', 'kernel')}.bind(...)"
        elif callable(op):
            hint = "; OpHostCall records a function of the host"
        raise ArgumentTypeError(f"A sequence records operations (kp.OpBase), not {type(op).__name__}{hint}")


def _seconds(wait_for: Any, timeout: Any, deadline: Any) -> float:
    if wait_for is None:
        return to_seconds(timeout, deadline)
    if timeout is not None:
        raise InvalidArgumentError(
            "Give eval_await either milliseconds (positional) or timeout= in seconds, not both"
        )
    return to_seconds(wait_for, deadline, "wait_for", "milliseconds")


def _roots(given: Any, manager: Device) -> list[_native.Memory]:
    """The native memory behind tensors, views and images, for `disjoint`."""
    roots: list[Any] = []
    for memory in memory_list(given, "sequence(disjoint=...)", manager=manager, one=True, empty=True):
        while (base := getattr(memory, "base", None)) is not None:
            memory = base
        roots.append(memory._native)
    return roots
