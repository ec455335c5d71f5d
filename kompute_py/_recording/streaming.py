"""Streaming: one recording, run over many frames of data, with several frames in flight.

The model. A stream takes the recording as it is and makes `depth` copies of it, its *slots*: frame n runs in
slot n % depth. Each slot has its own memory for everything that a frame writes afresh. Frame n + 1 can
therefore be uploaded while n computes and n - 1 is downloaded. The recorded operations determine the role of
each tensor (for dispatches, the shaders' code does):

- *inputs* are uploaded before the frame, *outputs* downloaded after it. Sync operations of them are left out.
- a tensor that a frame writes before it reads it is *owned*: each slot has a copy, with the tensor's contents
  at first.
- a tensor that a frame reads before it writes it, and then writes, *carries state* from frame to frame. There
  is only the user's tensor, and frames use it in order. The same holds for memory in sync operations, `host`
  and `deviceAndHost` memory (the host uses it in place), images, tensors with a streamed view, memory
  with an address that shaders hold, and memory in `shared=`.
- a tensor that is only read is the user's tensor.

No work is needed here for ordering: streams that share memory order each other (core/run/queue_order.hpp).
A shared input or output is copied from or to the slot's own memory within the frame, so that transfers use
only that memory.

If the host sees the device's memory as its own (CPUs, integrated GPUs), nothing is moved: the host writes
inputs in the memory that shaders read, and reads outputs from the memory that shaders write. With a transfer
queue, a frame has three submissions: upload and download on that queue, compute on the sequence's queue. The
download of frame n is submitted after the upload of n + 1, because the upload would otherwise wait behind it.
Without a transfer queue, a frame is one submission, and it overlaps with the host's part: reading items,
copying them in, and using results.

Results are in a ring of 2 x depth: `depth` frames in flight, and as many results that were returned and stay
unchanged.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from collections.abc import Sequence as Seq
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from .. import _native
from .._base.arrays import as_index, matching, records, to_array
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.plain_arguments import refuse_unordered
from .._memory.making import new_tensor
from .._memory.memory import SINGLE, Memory, memory_list
from .._memory.tensor import Tensor
from .._sync.fence import Fence
from .._sync.ordered import NO_ORDER, Order, check_signals, fence_of, order_of

if TYPE_CHECKING:
    from .._device.device import Device
    from .operations import OpBase
    from .split_stream import SplitStream

_NO_LIMIT = -1.0


class Streamed(Protocol):
    """A sequence, as a stream uses it."""

    _manager: Device
    _native: _native.Stream | SplitStream
    _hooked: list[tuple[OpBase, Any]]

    @property
    def queue_index(self) -> int:
        """The queue that it runs on."""


_Result = TypeVar("_Result", covariant=True)


class FrameStream(Generic[_Result]):
    """The results of a sequence that runs over many frames. Created by `Sequence.stream`.

    Can be iterated once, with ``for``, ``next(stream)`` or ``async for``.

    >>> a, b = mgr.zeros(2), mgr.zeros(2)
    >>> seq = mgr.sequence().record(kp.OpMult([a, a, b]))
    >>> frames = (np.full(2, n, np.float32) for n in range(3))
    >>> [result.tolist() for result in seq.stream(frames, inputs=a, outputs=b)]
    [[0.0, 0.0], [1.0, 1.0], [4.0, 4.0]]
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = ("_items", "_pipeline", "_results")

    def __init__(
        self,
        sequence: Streamed,
        items: Any,
        inputs: Any,
        outputs: Any,
        depth: int,
        shared: Any,
        transfer_queue: int | None,
        wait: Any,
        signal: Any,
    ) -> None:
        self._items = items
        self._results: Iterator[_Result] | None = None
        self._pipeline: _Pipeline | None = _Pipeline(
            sequence, inputs, outputs, depth, shared, transfer_queue, order_of(wait, signal) or NO_ORDER
        )

    def _take(self) -> _Pipeline:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is None:
            raise FailedPreconditionError("A stream can be iterated only once: call seq.stream(...) again")
        return pipeline

    def __iter__(self) -> Iterator[_Result]:
        """Iterates over the results in order, from the next one on.

        Raises FailedPreconditionError if it was iterated before, ArgumentTypeError if `items` cannot be
        iterated.
        """
        if self._results is not None:
            results, self._results = self._results, None
            return results
        refuse_unordered(self._items, "items", "an iterable of frames")
        try:
            source = iter(self._items)
        except TypeError:
            hint = ": iterate with async for" if isinstance(self._items, AsyncIterable) else ""
            raise ArgumentTypeError(
                f"items is {kind_of(self._items)}, which cannot be iterated{hint}"
            ) from None
        return _run(self._take(), source)

    def __next__(self) -> _Result:
        """The next result. Raises StopIteration after the last one, and what iterating raises."""
        if self._results is None:
            self._results = iter(self)
        return next(self._results)

    def __aiter__(self) -> AsyncIterator[_Result]:
        """Iterates over the results in order, without blocking the event loop while the device works.

        Raises FailedPreconditionError if it was iterated before, ArgumentTypeError if `items` cannot be
        iterated.
        """
        refuse_unordered(self._items, "items", "an iterable of frames")
        if not isinstance(self._items, (AsyncIterable, Iterable)):
            raise ArgumentTypeError(f"items is {kind_of(self._items)}, which cannot be iterated")
        source = self._items.__aiter__() if isinstance(self._items, AsyncIterable) else _later(self._items)
        return _run_async(self._take(), source)

    def __repr__(self) -> str:
        return f"<kp.FrameStream {'taken' if self._pipeline is None else 'ready'}>"


def _run(pipeline: _Pipeline, source: Iterator[Any]) -> Generator[Any, None, None]:
    error: Exception | None = None
    ended = False
    try:
        if before := pipeline.before():
            before.wait()
        while True:
            while not ended and pipeline.has_room():
                try:
                    pipeline.submit(next(source))
                except StopIteration:
                    ended = True
                except Exception as raised:
                    # The frames in flight come first, as if frames were evaluated one by one.
                    error, ended = raised, True
            if not pipeline.in_flight():
                break
            yield pipeline.take()
        if error is not None:
            raise error
        pipeline.after()
    finally:
        pipeline.close()


async def _run_async(pipeline: _Pipeline, source: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    error: Exception | None = None
    ended = False
    try:
        if before := pipeline.before():
            await before
        while True:
            while not ended and pipeline.has_room():
                try:
                    pipeline.submit(await source.__anext__())
                except StopAsyncIteration:
                    ended = True
                except Exception as raised:
                    error, ended = raised, True
            if not pipeline.in_flight():
                break
            fence = pipeline.fence()
            if fence is not None:
                await fence
            yield pipeline.take()
        if error is not None:
            raise error
        pipeline.after()
    finally:
        pipeline.close()


async def _later(items: Iterable[Any]) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item


class _Pipeline:
    """The slots and the frames in them."""

    def __init__(
        self,
        sequence: Streamed,
        inputs: Any,
        outputs: Any,
        depth: int,
        shared: Any,
        transfer_queue: int | None,
        order: Order,
    ) -> None:
        self._order = order
        manager = getattr(sequence, "_manager", None)
        if manager is None or not hasattr(sequence, "stream"):
            raise ArgumentTypeError(
                f"sequence is {shown(sequence)}; give a kp.Sequence: sequence.stream(...) makes the stream"
            )
        self._manager = manager
        self._watch = manager._watch
        self._depth = as_index(depth, "depth")
        if not 1 <= self._depth <= 64:
            raise InvalidArgumentError(f"depth is {depth}; give 1 to 64 frames")
        self._inputs = _streamed(inputs, "inputs", sequence)
        self._outputs = _streamed(outputs, "outputs", sequence)
        _require_apart(self._inputs)
        parts = [each for each in (*self._inputs, *self._outputs) if _is_part(each)]
        kept = _kept(shared, sequence) | _kept(parts, sequence)
        self._hooks: tuple[OpBase, ...] = tuple(op for op, _ in sequence._hooked)
        for op in self._hooks:
            if op._custom:
                raise UnimplementedError(
                    f"{type(op).__name__} records its own Vulkan commands for fixed memory, "
                    "so it cannot be streamed. Evaluate the sequence for each frame instead"
                )
            op.pre_eval()  # so that the new version of a watched kernel is copied
        queue = sequence.queue_index
        transfers = self._transfer_queue(queue, transfer_queue)
        native = sequence._native
        if not isinstance(native, _native.Stream):
            raise UnimplementedError(
                f"{sequence!r} has steps of the host (OpHostCall, or a copy between Managers), so it cannot "
                "be streamed. Evaluate the sequence for each frame instead"
            )
        roots = dict.fromkeys(map(_root, (*self._inputs, *self._outputs)))
        streamed: list[Any] = [each._native for each in roots]
        # A transfer queue that was asked for is used with any memory.
        self._in_place = transfer_queue is None and _host_is_near(
            manager, (each._native for each in roots if not each._is_image)
        )
        uses = _native.frame_uses(native, [each._native for each in self._inputs], streamed)
        if not uses or not native.operation_names():
            raise FailedPreconditionError(f"{sequence!r} has nothing recorded to stream")
        by_memory = {id(use["memory"]): use for use in uses}
        self._check_use(by_memory)
        self._make_slots(uses, kept)
        self._make_streams(native, streamed, queue, transfers)
        # The numbers of submitted and returned frames; the last download, which is held for the next upload;
        # the lengths of short frames.
        self._submitted = 0
        self._taken = 0
        self._held: Any = None
        self._lengths: dict[int, int] = {}
        self._short: int | None = None

    # -- making ----------------------------------------------------------------------------------------------

    def _transfer_queue(self, queue: int, asked: int | None) -> int:
        queues = self._manager.queues
        if asked is not None:
            index = as_index(asked, "transfer_queue")
            if not 0 <= index < len(queues):
                raise OutOfRangeError(
                    f"transfer_queue is {index}; {self._manager!r} opened {len(queues)} "
                    f"queue{'s' if len(queues) != 1 else ''}: "
                    "give kp.Manager more family_queue_indices to open more"
                )
            return index
        own = queues[queue]
        others = [
            i for i, q in enumerate(queues) if (q["family"], q["index"]) != (own["family"], own["index"])
        ]
        # Another family first, because a device's copy engines are there.
        others.sort(key=lambda i: queues[i]["family"] == own["family"])
        return others[0] if others else queue

    def _check_use(self, by_memory: dict[int, dict[str, Any]]) -> None:
        # A tensor without elements is not read or written.
        opaque = any(use["fixed"] for use in by_memory.values())
        for tensor in self._inputs:
            use = by_memory.get(id(_root(tensor)._native))
            if tensor._count and not opaque and (use is None or not use["read"]):
                raise InvalidArgumentError(f"inputs: no recorded operation reads {tensor._describe()}")
        for tensor in self._outputs:
            use = by_memory.get(id(_root(tensor)._native))
            unwritten = use is None or not (use["written"] or tensor in self._inputs)
            if tensor._count and not opaque and unwritten:
                raise InvalidArgumentError(f"outputs: no recorded operation writes {tensor._describe()}")

    def _make_slots(self, uses: list[dict[str, Any]], kept: set[int]) -> None:
        manager, depth = self._manager, self._depth
        # Inputs in place need no upload; `host` memory is the same memory for shaders.
        near = "host" if self._in_place else "device"
        names = {id(each._native): each for each in (*self._inputs, *self._outputs)}
        self._in_slots = [[_like(each, near) for each in self._inputs] for _ in range(depth)]
        self._out_slots: list[list[Any]] = [[] for _ in range(depth)]
        self._results = [[_like(each, "host") for each in self._outputs] for _ in range(2 * depth)]
        # The host's side of both.
        self._filled, self._shown = (
            [[tensor.data().reshape(tensor._shape) for tensor in slot] for slot in slots]
            for slots in (self._in_slots, self._results)
        )
        # Indexed by the frame's number in the ring of results, because outputs in place are part of that
        # ring.
        self._pairs: list[list[tuple[Any, Any]]] = [[] for _ in range(2 * depth)]
        owned: dict[int, list[Any]] = {}
        by_memory = {id(use["memory"]): use for use in uses}
        for use in uses:
            memory = use["memory"]
            known = names.get(id(memory))
            if id(memory) in kept or use["fixed"] or use["carried"] or not isinstance(memory, _native.Buffer):
                continue
            if known is not None and known in self._inputs:
                position = self._inputs.index(known)
                owned[id(memory)] = [slot[position]._native for slot in self._in_slots]
            elif use["written"] and (
                known is not None
                or not (use["uploaded"] or use["downloaded"] or memory.memory_type in _SEEN_IN_PLACE)
            ):
                if known is not None and self._in_place:
                    position = self._outputs.index(known)
                    copies = [results[position]._native for results in self._results]
                else:
                    copies = [
                        new_tensor(manager, (memory.nbytes,), _BYTES, "storage")._native for _ in range(depth)
                    ]
                owned[id(memory)] = copies
                self._begin_with(memory, known, use, copies)
            else:
                continue
            copies = owned[id(memory)]
            if manager._tensors is not None:
                manager._tensors.stand_for(memory, copies)
            for number, pairs in enumerate(self._pairs):
                pairs.append((memory, copies[number % len(copies)]))
        parts = [_root(each) for each in self._inputs if _is_part(each)]
        for memory in dict.fromkeys((*parts, *map(_root, self._outputs))):
            touched = by_memory.get(id(memory._native))
            if id(memory._native) not in owned and touched is not None and touched["uploaded"]:
                # Its upload is left out of the frames, so upload its contents once here.
                memory._native.write(memory.data())
        self._owned = owned

    def _begin_with(self, memory: Any, tensor: Memory | None, use: dict[str, Any], copies: list[Any]) -> None:
        if tensor is not None and use["uploaded"]:
            memory.write(tensor.data())
        _native.submit_once(_native.op_copy([memory, *copies])).wait(_NO_LIMIT)

    def _make_streams(self, native: Any, streamed: list[Any], queue: int, transfers: int) -> None:
        depth = self._depth
        context = self._manager._native
        self._uploads: list[Any] = []
        self._frames: list[Any] = []
        self._downloads: list[Any] = []
        apart = transfers != queue and not self._in_place
        bodies = [
            _native.substituted(native, pairs, streamed)
            for pairs in (self._pairs[:depth] if apart else self._pairs)
        ]
        for number, body in enumerate(bodies):
            slot = number % depth
            frame = context.stream(queue, 0)
            loads = [_native.op_sync_device([each._native for each in self._in_slots[slot]])]
            if apart:
                self._uploads.append(context.stream(transfers, 0))
                self._uploads[slot].record(loads.pop())
            for op in loads:
                frame.record(op)
            for tensor, own in zip(self._inputs, self._in_slots[slot], strict=True):
                if id(tensor._native) not in self._owned:
                    frame.record(_native.op_copy([own._native, tensor._native]))
            for op in body:
                frame.record(op)
            sources = [self._source(tensor, number) for tensor in self._outputs]
            if apart:
                for position, tensor in enumerate(self._outputs):
                    if id(tensor._native) not in self._owned:
                        copy = new_tensor(self._manager, (tensor.nbytes,), _BYTES, "storage")._native
                        frame.record(_native.op_copy([sources[position], copy]))
                        sources[position] = copy
                self._out_slots[slot] = sources
            else:
                self._record_download(frame, sources, number)
            self._frames.append(frame)
        for number in range(2 * depth if apart else 0):
            down = context.stream(transfers, 0)
            self._record_download(down, self._out_slots[number % depth], number)
            self._downloads.append(down)

    def _source(self, tensor: Memory, number: int) -> Any:
        copies = self._owned.get(id(tensor._native))
        return tensor._native if copies is None else copies[number % len(copies)]

    def _record_download(self, stream: Any, sources: list[Any], number: int) -> None:
        results = [each._native for each in self._results[number]]
        for source, result in zip(sources, results, strict=True):
            if source is not result:  # in place
                stream.record(_native.op_copy([source, result]))
        stream.record(_native.op_sync_local(results))

    # -- running ---------------------------------------------------------------------------------------------

    def before(self) -> Fence | None:
        """A fence for what the first frame waits for. Raises the errors of `check_signals`."""
        fences, waits, signals = self._order
        check_signals(signals)
        if not fences and not waits:
            return None
        return fence_of(_native.submit(self._manager._native, (), fences, waits, ()), self._manager)

    def after(self) -> None:
        """Signals what follows the last frame."""
        for semaphore, value in self._order[2]:
            semaphore.signal(value)

    def has_room(self) -> bool:
        """True if another frame may be submitted."""
        return self._submitted - self._taken < self._depth

    def in_flight(self) -> int:
        """The number of frames that were submitted and not taken."""
        return self._submitted - self._taken

    def submit(self, item: Any) -> None:
        """Runs the next frame on `item`."""
        number = self._submitted
        if self._short is not None:
            raise InvalidArgumentError(
                f"items[{self._short}] is shorter than the inputs; only the last item may be, "
                f"and items[{number}] follows it"
            )
        slot = number % self._depth
        length = self._fill(item, number, slot)
        for op in self._hooks:
            op.pre_eval()
        if self._downloads:
            self._uploads[slot].submit()
            self._frames[slot].submit()
            self._submit_held()
            self._held = self._downloads[number % (2 * self._depth)]
        else:
            self._frames[number % (2 * self._depth)].submit()
        if length is not None:
            self._short = number
            self._lengths[number] = length
        self._submitted += 1
        if self._watch is not None:
            self._watch()

    def _submit_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.submit()

    def _last(self) -> Any:
        """The stream that completes the frame to be taken next."""
        ring = self._downloads or self._frames
        last = ring[self._taken % (2 * self._depth)]
        if last is self._held:
            self._submit_held()
        return last

    def fence(self) -> Fence | None:
        """The completion of the frame to be taken next; None if it is done."""
        due = self._last().due()
        return None if isinstance(due, bool) else Fence(due, (self._manager,))

    def take(self) -> Any:
        """Waits for the next frame; returns its results."""
        number = self._taken
        self._last().wait(_NO_LIMIT)
        if self._downloads:
            slot = number % self._depth
            self._uploads[slot].wait(_NO_LIMIT)
            self._frames[slot].wait(_NO_LIMIT)
        self._taken += 1
        if self._watch is not None:
            self._watch()
        for op in self._hooks:
            op.post_eval()
        shown = self._shown[number % (2 * self._depth)]
        length = self._lengths.pop(number, None) if self._lengths else None
        if length is not None:
            whole = self._inputs[0]._shape[0]
            shown = [array[:length] if array.shape[:1] == (whole,) else array for array in shown]
        # New views, because the caller may change the shape of what it gets.
        return shown[0][...] if len(shown) == 1 else tuple([array[...] for array in shown])

    def close(self) -> None:
        """Releases all slots; returned results stay valid.

        Never waits: the device keeps running work until it is done.
        """
        self._held = None
        for each in (self._uploads, self._frames, self._downloads, self._in_slots, self._out_slots):
            each.clear()
        self._pairs.clear()
        self._owned.clear()
        self._results.clear()
        self._filled.clear()
        self._shown.clear()
        if self._watch is not None:
            self._watch(False)

    # -- items -----------------------------------------------------------------------------------------------

    def _fill(self, item: Any, number: int, slot: int) -> int | None:
        """Copies the item into the slot.

        Returns its length along the first axis if it is short, else None.
        """
        parts, targets = self._parts(item, number), self._filled[slot]
        for part, target in zip(parts, targets, strict=True):
            if type(part) is not np.ndarray or part.shape != target.shape or part.dtype != target.dtype:
                return self._convert(parts, number, targets)
            target[...] = part
        return None

    def _convert(self, parts: Seq[Any], number: int, targets: list[np.ndarray[Any, Any]]) -> int | None:
        """Copies an item that is not made of arrays like the inputs, which needs no more than a copy."""
        arrays = [
            _array(part, tensor, f"items[{number}]" + (f", input {i}" if len(parts) > 1 else ""))
            for i, (part, tensor) in enumerate(zip(parts, self._inputs, strict=True))
        ]
        length = self._short_length(arrays, number)
        for array, target in zip(arrays, targets, strict=True):
            if length is None:
                target[...] = array
            else:
                target[:length] = array
                target[length:] = np.zeros((), target.dtype)
        return length

    def _short_length(self, arrays: list[np.ndarray[Any, Any]], number: int) -> int | None:
        lengths = {
            array.shape[0] if array.shape != tensor._shape else None
            for array, tensor in zip(arrays, self._inputs, strict=True)
        }
        if len(lengths) > 1:
            raise InvalidArgumentError(
                f"items[{number}] has parts of different lengths: {', '.join(str(a.shape) for a in arrays)}"
            )
        length = lengths.pop()
        if length is not None and len({tensor._shape[0] for tensor in self._inputs}) > 1:
            raise InvalidArgumentError(
                f"items[{number}] is short, and the inputs differ in length: a short item cannot be padded"
            )
        return length

    def _parts(self, item: Any, number: int) -> Seq[Any]:
        inputs = self._inputs
        if type(item) not in _PLAIN and isinstance(item, Mapping):
            parts = []
            for tensor in inputs:
                name = tensor._native.name
                if tensor in item:
                    parts.append(item[tensor])
                elif name and name in item:
                    parts.append(item[name])
                else:
                    raise InvalidArgumentError(
                        f"items[{number}]: missing {tensor._describe()}; "
                        "the keys are the input tensors or their names"
                    )
            if len(item) != len(inputs):
                raise InvalidArgumentError(
                    f"items[{number}] has {len(item)} entries for {len(inputs)} inputs"
                )
            return parts
        if len(inputs) == 1:
            return item if isinstance(item, tuple) and len(item) == 1 else (item,)
        if not isinstance(item, (tuple, list)):
            raise ArgumentTypeError(
                f"items[{number}] is {kind_of(item)}; for {len(inputs)} inputs, "
                "each item must be a tuple, list or dict of arrays"
            )
        if len(item) != len(inputs):
            raise InvalidArgumentError(f"items[{number}] has {len(item)} arrays for {len(inputs)} inputs")
        return item


# Types of items that are not mappings: asking an abstract class costs more than copying a small frame.
_PLAIN = frozenset((np.ndarray, tuple, list))


def _host_is_near(manager: Device, memories: Iterable[Any]) -> bool:
    """True if host-visible memory is as near to shaders as other memory, and is cached for the host."""
    near = manager.get_device_properties()["type"] in ("cpu", "integrated")
    return near and all(memory.host_visible for memory in memories)


_BYTES = np.dtype(np.uint8)
_SEEN_IN_PLACE = tuple(each.value for each in SINGLE)


def _like(tensor: Memory, memory_type: str) -> Tensor:
    return new_tensor(tensor._manager, tensor._shape, tensor._dtype, memory_type)


def _array(part: Any, tensor: Memory, what: str) -> np.ndarray[Any, Any]:
    dtype, shape = tensor._dtype, tensor._shape
    listed = isinstance(part, (list, tuple, range))
    array = records(part, dtype, what) if listed and dtype.names is not None else to_array(part, what)
    if listed:  # Python's numbers take the dtype if they fit
        array = matching(array, dtype, array.size, f"{what} is for {tensor._describe()}, which")
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype != dtype:
        raise ArgumentTypeError(
            f"{what} has dtype {array.dtype}; {tensor._describe()} needs {dtype}. Convert it with astype(...)"
        )
    if array.shape == shape:
        return array
    if shape and array.ndim == len(shape) and array.shape[1:] == shape[1:] and 0 < array.shape[0] < shape[0]:
        return array
    raise InvalidArgumentError(
        f"{what} has shape {array.shape}; {tensor._describe()} needs {shape} "
        "(the last item may be shorter along its first axis)"
    )


def _root(memory: Memory) -> Memory:
    """The tensor that a view belongs to; other memory itself."""
    while (base := getattr(memory, "base", None)) is not None:
        memory = base
    return memory


def _is_part(memory: Memory) -> bool:
    """True if slots cannot own the memory: frames are then copied from and to the user's memory, in order."""
    return memory._is_image or _root(memory) is not memory


def _require_apart(inputs: list[Memory]) -> None:
    for number, one in enumerate(inputs):
        for other in inputs[:number]:
            if _root(one) is not _root(other):
                continue
            parts: list[Any] = [one._native, other._native]
            begins = [part.vk_offset for part in parts]
            if begins[0] < begins[1] + other._native.nbytes and begins[1] < begins[0] + one._native.nbytes:
                raise InvalidArgumentError(
                    f"inputs: {other._describe()} and {one._describe()} overlap, "
                    "so one would overwrite the other: stream views that do not overlap, or the whole tensor"
                )


def _streamed(given: Any, what: str, sequence: Streamed) -> list[Memory]:
    memories = memory_list(given, f"stream({what}=...)", manager=sequence._manager, one=True)
    if len(set(map(id, memories))) != len(memories):
        raise InvalidArgumentError(f"{what} lists the same memory twice")
    return memories


def _kept(given: Any, sequence: Streamed) -> set[int]:
    """The memory that all frames share, by the identity of its native object."""
    memories = memory_list(given, "stream(shared=...)", manager=sequence._manager, one=True, empty=True)
    return {id(_root(memory)._native) for memory in memories}
