"""Values: what each operation read and wrote, looked at after each submission.

The core copies the memory that operations use (native/core/device/value_copies.hpp). `Values` takes the
copies after each call of the Manager, makes arrays of them, and hands them to its lookers.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .. import _native
from .._base.errors import InvalidArgumentError
from .._base.texels import ImageSize, parse_format
from .._base.warn import warn
from .._memory.image import Image
from .._memory.memory import Memory
from .._memory.tensor import Tensor
from .._shaders.layout import block_dtype, tail_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .._base.annotations import Array
    from .._device.device import Device


class Snapshot(NamedTuple):
    """A range of a tensor, or an Image, that an operation used: one of `OperationValues.snapshots`.

    >>> seen = []
    >>> with kp.Manager(debug="values") as debugged, debugged.watch(seen.append):
    ...     kp.ops.add(debugged.tensor([1, 2]), 1)
    <kp.Tensor ...>
    >>> [(each.read, each.written) for each in seen[0].snapshots]
    [(True, False), (False, True)]
    """

    tensor: Tensor | Image | None
    """None: memory that a call has for an array, or for an Image or a part that its kernels cannot bind; and
    memory between the dispatches of a call.
    """
    name: str
    """The tensor's name; of tensors without one, "tensor 1" and so on, in the order in which they came up;
    "array" without a tensor. Images are numbered likewise, as "image 2".
    """
    shape: tuple[int, ...]
    """The shape of the whole tensor."""
    first: int
    """The number of the tensor's element at which the range begins."""
    before: Array
    """The elements before the operation."""
    after: Array
    """... and after it."""
    read: bool
    """Whether the operation reads it."""
    written: bool
    """Whether the operation writes it."""
    format: str = ""
    """The format of an Image, such as "rgba16f"; "" of other memory."""
    whole: bool | None = None
    """Whether nothing of it is left from before the operation, or the call of a function that it is one of;
    None if that is not known, as of kernels.
    """


class OperationValues(NamedTuple):
    """The memory that one operation read and wrote: `mgr.watch` calls back with it.

    >>> seen = []
    >>> with kp.Manager(debug="values") as debugged, debugged.watch(seen.append):
    ...     kp.ops.add(debugged.tensor([1, 2]), 1)
    <kp.Tensor ...>
    >>> [values.tolist() for values in seen[0].inputs.values()]
    [[1.0, 2.0]]
    >>> [values.tolist() for values in seen[0].outputs.values()]
    [[2.0, 3.0]]
    """

    operation: str
    """The operation's name."""
    number: int
    """Its place in the submitted recording, from 0."""
    sequence: str
    """The name of what was submitted."""
    submission: int
    """The number of the submission, from 0."""
    line: str
    """The line that recorded it, else the line of the submission: "file.py:12"; "" if unknown."""
    inputs: dict[str, Array]
    """The contents that it read, by the tensors' names."""
    outputs: dict[str, Array]
    """Those that it wrote."""
    snapshots: tuple[Snapshot, ...]
    """The same with the tensors, and where their ranges begin."""

    def place(self) -> str:
        """The operation for messages: its name, where it was, and the line."""
        where = f"{self.operation}, operation {self.number + 1} of the {self.sequence}"
        return f"{where} ({self.line})" if self.line else where


class Looker(Protocol):
    """Is handed the values."""

    def look(self, values: OperationValues) -> None:
        """Looks at an operation's values. The call that ran the operation raises its errors."""


class RunLooker(Protocol):
    """Is handed whole submissions."""

    def look(self, run: dict[str, Any], tensors: Tensors) -> None:
        """Looks at a submission, as `ValueReader.take` describes it, with its contents."""


class Values:
    """The values of one Manager's operations, while somebody looks at them."""

    __slots__ = (
        "_contents",
        "_context",
        "_handing",
        "_lock",
        "_lookers",
        "_raised",
        "_reader",
        "_runs",
        "_tensors",
    )

    def __init__(self, manager: Device) -> None:
        self._context = manager._native
        self._tensors = Tensors()
        self._lookers: list[Looker] = []
        self._runs: list[RunLooker] = []
        self._contents = False
        """Whether one of them asks for the recorded operations."""
        self._reader: _native.ValueReader | None = None
        self._lock = threading.RLock()
        self._handing = False
        self._raised: list[BaseException] = []
        """Errors of lookers that no call has raised yet."""
        manager._tensors = self._tensors
        manager._diagnostics.more = self.report

    def add(self, looker: Looker) -> None:
        """Begins to hand values to `looker`. Raises FailedPreconditionError if the Manager is profiled."""
        self._read()
        self._lookers.append(looker)

    def look_at_runs(self, looker: RunLooker, contents: bool = False) -> None:
        """Hands whole submissions to `looker`, with the operations as they were recorded if it asks for
        `contents`, until the Manager ends. Raises what `add` raises.
        """
        self._read()
        self._runs.append(looker)
        self._contents = self._contents or contents

    def _read(self) -> None:
        if self._reader is None:
            self._reader = _native.ValueReader(self._context)

    def remove(self, looker: Looker) -> None:
        """Ends it, after the values that there are."""
        self._hand_over()
        self._lookers.remove(looker)
        if not self._lookers and not self._runs and self._reader is not None:
            self._reader.end()
            self._reader = None

    def report(self, can_raise: bool = True) -> None:
        """Hands over the values since the last call. Raises the error of a looker."""
        self._hand_over()
        if can_raise and self._raised:
            errors, self._raised = self._raised, []
            for other in errors[1:]:
                warn(f"Another operation's values raised, too: {other}")
            raise errors[0]

    def _hand_over(self) -> None:
        if self._reader is None:
            return
        with self._lock:  # values are handed over in the order of the submissions
            runs = [] if self._handing else self._reader.take(self._contents)
            if not runs:
                return  # or a looker itself has submitted: its values are for the next call
            self._handing = True
            try:
                with self._tensors.looking():
                    self._hand(runs)
            finally:
                self._handing = False

    def _hand(self, runs: list[dict[str, Any]]) -> None:
        for run in runs:
            for each in self._runs:
                try:
                    each.look(run, self._tensors)
                except Exception as error:
                    self._raised.append(error)
            if not self._lookers:
                continue
            for values in _operations(run, self._tensors):
                for looker in tuple(self._lookers):
                    try:
                        looker.look(values)
                    except Exception as error:
                        self._raised.append(error)
                        return  # the operations after it only carry the fault on


_MOST_VIEWS = 64
"""Of one memory of plain bytes, so many dtypes and shapes are remembered."""


class _Elements(NamedTuple):
    """The elements that the bytes of a memory are, from one of them on."""

    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    tensor: Tensor | Image | None
    format: str = ""

    @property
    def end(self) -> int:
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def of(self, dtype: np.dtype[Any]) -> _Elements:
        """The same bytes with another dtype; what does not fill an element is left out."""
        if self.dtype.names is not None or not dtype.itemsize:
            return self
        return self._replace(dtype=dtype, shape=((self.end - self.start) // dtype.itemsize,))

    def overlaps(self, begin: int, end: int) -> bool:
        return self.start < end and begin < self.end


class Tensors:
    """The tensors and Images of a Manager, and the last tensors of memory that calls keep for arrays."""

    def __init__(self) -> None:
        self._living: weakref.WeakSet[Tensor | Image] = weakref.WeakSet()
        self._held: dict[int, list[_Elements]] = {}
        """By the identities of buffers, the newest last: the tensor that has the memory, then views of it if
        it holds plain bytes. A new buffer takes the place of an old one with the same identity.
        """
        self._records: dict[int, dict[int, np.dtype[Any]]] = {}
        """By the same identities and the byte at which it begins: the structs that a shader declares."""
        self._stands: dict[int, int] = {}
        """By the same identities: that of the memory which this one stands for."""
        self._names: dict[int, tuple[weakref.ref[Tensor | Image], str]] = {}
        self._numbers = itertools.count(1)
        self._on: dict[int, list[_Elements]] = {}

    def add(self, memory: Memory) -> None:
        """A new tensor or image."""
        if isinstance(memory, (Tensor, Image)):
            self._living.add(memory)
        if isinstance(memory, Tensor):
            native = memory._native
            elements = _Elements(native.vk_offset, memory._dtype, memory._shape, None)
            if type(native) is not _native.BufferView:
                self._held[native.identity] = [elements]
                self._stands.pop(native.identity, None)
                self._records.pop(native.identity, None)
                return
            held = self._held.setdefault(native.identity, [])
            if not held or held[0].dtype != np.uint8:
                return
            if elements in held[1:]:
                held.remove(elements)
            held.append(elements)
            del held[1:-_MOST_VIEWS]

    def stands(self, part: Tensor) -> None:
        """The memory of `part`, a new view, holds its elements until it is lent again, and is nobody's."""
        self._living.discard(part)
        if part.base is not None:
            self._living.discard(part.base)

    def stand_for(self, memory: Any, others: Iterable[Any]) -> None:
        """The memories `others`, as large, hold the elements of the tensors that `memory` does."""
        self._stands.update((other.identity, memory.identity) for other in others)

    def declared(self, memory: Memory, layout: Mapping[str, Any]) -> None:
        """A shader declares a block of structs, with this layout, over memory of plain numbers."""
        tail = tail_of(layout)
        length = None
        if tail is not None and len(layout["members"]) > 1:
            length = max(0, memory.nbytes - tail["offset"]) // tail["array_strides"][0]
        with contextlib.suppress(InvalidArgumentError):  # no dtype: its numbers stay what they were
            dtype = block_dtype(layout, length, "")
            native = memory._native
            self._records.setdefault(native.identity, {})[getattr(native, "vk_offset", 0)] = dtype

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """For `of`: finds the tensors that live now."""
        for tensor in self._alive():
            if tensor._is_init():
                native = tensor._native
                elements = _Elements(getattr(native, "vk_offset", 0), tensor._dtype, tensor._shape, tensor)
                self._on.setdefault(native.identity, []).append(elements)
        try:
            yield
        finally:
            self._on = {}  # it would keep the tensors alive

    def _alive(self) -> list[Tensor | Image]:
        while True:
            try:
                return list(self._living)
            except RuntimeError:  # another thread has added one meanwhile
                continue

    def of(self, memory: Any, begin: int, end: int) -> list[_Elements]:
        """The elements in a range of a memory: those of the tensor that has it, unless that holds plain
        bytes; then those of its views. An Image is one range. Where a shader declares structs, these are the
        elements.
        """
        handle = self._stands.get(memory.identity, memory.identity)
        found, records = self._numbers_of(memory, handle, begin, end), self._records.get(handle)
        if not records:
            return found
        return [each.of(records[each.start]) if each.start in records else each for each in found]

    def _numbers_of(self, memory: Any, handle: int, begin: int, end: int) -> list[_Elements]:
        living, held = self._on.get(handle, []), self._held.get(handle, [])
        if isinstance(memory, _native.Image):
            dims, arrayed, (width, height, depth, layers), text = memory.shape
            format = parse_format(text)
            axes = ImageSize(dims, width, height, depth, layers if arrayed else None).axes
            shape = axes if format.channels == 1 else (*axes, format.channels)
            image = living[0].tensor if living else None
            return [_Elements(0, np.dtype(format.component), shape, image, format.name)]
        if held and held[0].end != memory.nbytes:
            held = []  # of another buffer that was there
        for each in (*living, *held[:1]):
            if getattr(each.tensor, "base", None) is None and each.dtype != np.uint8:
                return [each]
        # The living ones first, then the newest views; plain bytes only in between.
        found: list[_Elements] = []
        for each in sorted((*living, *reversed(held)), key=lambda each: each.dtype == np.uint8):
            if each.overlaps(begin, end) and not any(
                each.overlaps(other.start, other.end) for other in found
            ):
                found.append(each)
        return found

    def name(self, tensor: Tensor | Image | None) -> str:
        """A tensor's name, or a number in its place."""
        if tensor is None:
            return "array"
        if tensor.name:
            return tensor.name
        # By number, because == of tensors compares their elements.
        reference, name = self._names.get(id(tensor), (None, ""))
        if reference is None or reference() is not tensor:
            kind = "image" if isinstance(tensor, Image) else "tensor"
            name = f"{kind} {next(self._numbers)}"
            self._names[id(tensor)] = weakref.ref(tensor), name
        return name


def _operations(run: dict[str, Any], tensors: Tensors) -> Iterator[OperationValues]:
    parts = run["parts"]
    for index, (name, line, uses) in enumerate(run["operations"]):
        snapshots: list[Snapshot] = []
        for before, after, read, whole in uses:
            memory, begin, end, old = parts[before]
            new = parts[after][3]
            for each in tensors.of(memory, begin, end):
                item, count = each.dtype.itemsize, math.prod(each.shape)
                first = max(0, -(-(begin - each.start) // item))
                last = min(count, (end - each.start) // item)
                if first >= last:
                    continue
                at = each.start + first * item - begin
                was, now = (np.frombuffer(data, each.dtype, last - first, at) for data in (old, new))
                if last - first == count:
                    was, now = was.reshape(each.shape), now.reshape(each.shape)
                writes = after != before
                named = tensors.name(each.tensor)
                facts = read, writes, each.format, whole
                snapshots.append(Snapshot(each.tensor, named, each.shape, first, was, now, *facts))
        yield OperationValues(
            name,
            index,
            run["label"],
            run["submission"],
            line or run["line"],
            _by_name((each.name, each.before) for each in snapshots if each.read),
            _by_name((each.name, each.after) for each in snapshots if each.written),
            tuple(snapshots),
        )


def _by_name(named: Iterable[tuple[str, Array]]) -> dict[str, Array]:
    """Several ranges of one name are told apart by a number."""
    found: dict[str, Array] = {}
    for name, array in named:
        key, number = name, 2
        while key in found:
            key, number = f"{name} ({number})", number + 1
        found[key] = array
    return found
