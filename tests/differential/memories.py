"""What a tensor or an image holds, and what is known of the work that uses it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import kompute_py as kp

Span = tuple[int, int]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Before = tuple[
    np.ndarray[Any, Any], Span, np.ndarray[Any, Any]
]  # some bytes of the model, and what they were


NOT, PERHAPS, SURELY = range(3)


class MismatchError(AssertionError):
    """The device, or what the host sees of it, differs from the model."""


class _Gone:
    """In place of what the program has let go of."""

    @staticmethod
    def is_init() -> bool:
        return False


GONE: Any = _Gone()


def meets(spans: Iterable[Span], begin: int, end: int) -> bool:
    """Whether one of `spans` overlaps the bytes from `begin` to `end`."""
    return any(first < end and begin < last for first, last in spans)


class Item:
    """A tensor or an image, its two sides in NumPy, and the work that may still run on it."""

    _numbers = itertools.count()

    def __init__(
        self,
        thing: kp.Tensor | kp.Image,
        data: Bytes,
        array: np.ndarray[Any, Any] | None = None,
        choice: Callable[[list[kp.Tensor]], kp.Tensor] = lambda tensors: tensors[0],
    ) -> None:
        """`array`: the memory of the process that `thing` is over; `choice` takes one of several tensors over
        bytes of it.
        """
        self.array = array
        self.imports: list[tuple[kp.Tensor, Span]] = []  # further tensors over bytes of the array
        self._choice = choice
        self.number = next(self._numbers)
        self.thing = thing
        self.is_image = isinstance(thing, kp.Image)
        self.memory_type: kp.MemoryTypes = thing.memory_type()
        self.nbytes = data.size
        self._device = data.copy()
        self.has_copy = self.memory_type is kp.MemoryTypes.device or (
            # An image whose texels the host does not address has a host copy, whatever its type.
            self.is_image
            and self.memory_type is not kp.MemoryTypes.storage
            and not thing._native.host_visible
        )
        # Of a `host` image with padded rows, a write replaces both sides.
        self.one_memory = self.has_copy and self.memory_type is not kp.MemoryTypes.device
        self.in_place = not self.has_copy and self.memory_type is not kp.MemoryTypes.storage
        self.host: Bytes | None = data.copy() if self.has_copy else self._device if self.in_place else None
        # The first use of the device's side uploads the host copy, with all edits until then.
        self.fresh = self.has_copy
        self.work: list[Work] = []  # unlearned, that uses it
        # Bytes of the device's side that were written (SURELY, PERHAPS) since a sync operation, or the first
        # upload, moved them.
        self.newer = np.zeros(data.size, np.uint8)
        # ... of these, those that the host wrote last: sending the host copy over them warns.
        self.left = np.zeros(data.size, np.uint8)
        self.parts: kp.Tensor | None = None if self.is_image else thing.view(np.uint8)

    @property
    def device(self) -> Bytes:
        """The device's side, which is used with this."""
        if self.fresh:
            self.fresh = False
            assert self.host is not None
            self._device[:] = self.host
        return self._device

    def part(self, begin: int, end: int) -> kp.Tensor | kp.Image:
        """The bytes of a tensor as a view of bytes; an image itself."""
        if self.parts is None:
            return self.thing
        over = [
            tensor.view(np.uint8)[begin - first : end - first]
            for tensor, (first, last) in self.imports
            if first <= begin and end <= last
        ]
        return self._choice([self.parts[begin:end], *over]) if over else self.parts[begin:end]

    def all_things(self) -> list[Any]:
        """The tensor or image, and the further tensors over its memory."""
        return [self.thing, *(tensor for tensor, _ in self.imports)]

    def words(self, begin: int, end: int) -> kp.Tensor | kp.Image:
        """Whole words, as a view of words; of all, and of an image, the thing itself."""
        if self.parts is None or (begin == 0 and end == self.nbytes and not self.imports):
            return self.thing
        part = self.part(begin, end)
        assert isinstance(part, kp.Tensor)
        return part.view(np.uint32)

    def write(self, begin: int, end: int) -> None:
        """The host has written these bytes of the device's side."""
        self.newer[begin:end] = self.left[begin:end] = NOT if self.one_memory else SURELY

    def host_bytes(self) -> Bytes:
        """What the host sees, as bytes: an array over the memory itself."""
        return self.thing.data().reshape(-1).view(np.uint8)

    def may_look(self, begin: int, end: int) -> bool:
        """Whether no unlearned work writes these bytes of the host's side."""
        return not any(meets(work.host_writes.get(self, ()), begin, end) for work in self.work)

    def may_edit(self, begin: int, end: int, atom: int) -> bool:
        """Whether no unlearned work touches these bytes of the host's side; in place, their atoms."""
        if self.in_place:
            begin, end = begin // atom * atom, -(-end // atom) * atom
        return not any(
            meets(work.host_writes.get(self, ()), begin, end)
            or meets(work.host_reads.get(self, ()), begin, end)
            for work in self.work
        )

    def __repr__(self) -> str:
        kind = "image" if self.is_image else "tensor"
        return f"{kind} {self.number} ({self.memory_type.name}, {self.nbytes} bytes)"


class Recorded:
    """One operation of a recording: what it does to the model, and which bytes it touches."""

    def __init__(
        self, what: str, effect: Callable[[], None], *ops: kp.OpBase, kinds: Iterable[str] = ()
    ) -> None:
        self.what = what
        self.ops = ops
        self.kinds = tuple(kinds)  # of KINDS
        self._effect = effect
        self._newer: list[tuple[Item, Span, int]] = []
        self.syncs: list[tuple[Item, Span, bool]] = []  # whether to the host
        self.algorithm: Rebuilt | None = None
        self.counted: list[np.ndarray[Any, Any]] = []  # numbers of the model that it changes
        self.one_shot: Callable[[], kp.Fence] | None = None  # the same without a sequence
        self.call: Callable[[], object] | None = None  # ... and as a call
        self.uses: dict[Item, bool] = {}  # whether it writes
        self.touches: set[Item] = set()  # those with bytes that it reads or writes
        self.changes: set[Item] = set()  # those whose device's side it writes
        self.host_reads: list[tuple[Item, Span]] = []
        self.host_writes: list[tuple[Item, Span]] = []
        self._device_writes: list[tuple[Item, Span]] = []

    def on_device(self, item: Item, begin: int, end: int, writes: bool, bound: int | None = None) -> Recorded:
        """It touches the device's side of these bytes. Its kernels could touch those from `bound` on."""
        self.touches.add(item)
        if writes:
            self.changes.add(item)
        self.uses[item] = self.uses.get(item, False) or writes
        if item.in_place:
            (self.host_writes if writes else self.host_reads).append((item, (begin, end)))
        if writes:
            self._newer.append((item, (begin, end), SURELY))
            self._newer.append((item, (begin if bound is None else bound, begin), PERHAPS))
            self._device_writes.append((item, (begin, end)))
        return self

    def synced(self, item: Item, begin: int, end: int, down: bool) -> None:
        """It leaves both sides of these bytes the same: the device's side comes `down`, or goes up."""
        self.syncs.append((item, (begin, end), down))
        self._newer.append((item, (begin, end), NOT))

    def effect(self) -> list[Before]:
        """Does it to the model; returns what was there before, in case that it is cancelled."""
        places: list[tuple[np.ndarray[Any, Any], Span]] = [
            (item.device, span) for item, span in self._device_writes
        ]
        places += [(item.host, span) for item, span in self.host_writes if item.host is not None]
        places += [(of, span) for item, span, _ in self._newer for of in (item.newer, item.left)]
        places += [(numbers, (0, numbers.size)) for numbers in self.counted]
        before = [(array, span, array[slice(*span)].copy()) for array, span in places]
        self._effect()
        for item, (begin, end), newer in self._newer:
            if newer == PERHAPS:
                item.newer[begin:end] = np.maximum(item.newer[begin:end], PERHAPS)
                item.left[begin:end] = np.minimum(item.left[begin:end], PERHAPS)
            else:
                item.newer[begin:end] = newer
                item.left[begin:end] = NOT
        return before

    def on_host(self, item: Item, begin: int, end: int, writes: bool) -> Recorded:
        """It touches these bytes of the host copy."""
        self.touches.add(item)
        self.uses[item] = self.uses.get(item, False) or writes
        if item.has_copy:
            (self.host_writes if writes else self.host_reads).append((item, (begin, end)))
        return self

    def mention(self, item: Item) -> None:
        """It names the item and moves nothing of it: a sync of the one memory.

        Who waits for work on the item may pass over it.
        """
        self.uses.setdefault(item, False)


class Rebuilt:
    """An algorithm with a constant: as it was recorded, and as it was rebuilt since."""

    def __init__(self, algorithm: kp.Algorithm) -> None:
        self.algorithm = algorithm
        self.recorded = self.now = 0
        self.outdated = False


class Gate:
    """A semaphore that work waits for, or that it signals: to 1, once."""

    def __init__(self, semaphore: kp.Semaphore) -> None:
        self.semaphore = semaphore
        self.signalled = False  # or its signal is on its way


class Work:
    """One submission of a recording, until the program has learned that it is done."""

    _numbers = itertools.count()

    def __init__(self, queue: int, recorded: Iterable[Recorded]) -> None:
        self.number = next(self._numbers)
        self.queue = queue
        self.learned = False
        self.uses: dict[Item, bool] = {}
        self.touches: set[Item] = set()
        self.changes: set[Item] = set()
        self.host_reads: dict[Item, list[Span]] = {}
        self.host_writes: dict[Item, list[Span]] = {}
        self.waits: list[Gate] = []
        self.after: list[Work] = []  # it begins when these are done
        self.perhaps_after: list[Work] = []  # it may begin when these are done
        self.together = [self]  # those of one queue, one after another in one `submit`, are one submission
        self.fence: kp.Fence | None = None
        self.signal: Gate | None = None
        self.whole = [self]  # those of one `submit`
        self.before: list[Before] = []  # what its effects replaced
        for each in recorded:
            self.touches |= each.touches
            self.changes |= each.changes
            for item, writes in each.uses.items():
                self.uses[item] = self.uses.get(item, False) or writes
            for item, span in each.host_reads:
                self.host_reads.setdefault(item, []).append(span)
            for item, span in each.host_writes:
                self.host_writes.setdefault(item, []).append(span)

    def __repr__(self) -> str:
        return f"work {self.number} on queue {self.queue}"


def held_among(works: Iterable[Work]) -> list[Work]:
    """Those that wait for a signal that is not on its way; `works` in the order of submission."""
    held: list[Work] = []
    for work in works:
        if any(
            any(not gate.signalled for gate in each.waits)
            or any(earlier in held for earlier in each.after + each.perhaps_after)
            for each in work.together
        ):
            held.append(work)
    return held


def submitted(work: Work, earlier: list[Work]) -> None:
    """Notes what `work` comes after: earlier work on its queue, and work that shares memory which one of the
    two writes.
    """
    held = held_among(earlier)
    for each in earlier:
        shared = [
            item for item, writes in work.uses.items() if item in each.uses and (writes or each.uses[item])
        ]
        if (each.queue == work.queue and each not in held) or any(
            item in work.touches and item in each.touches for item in shared
        ):
            work.after.append(each)
        elif shared:
            work.perhaps_after.append(each)
    for item in work.uses:
        item.work.append(work)


def learned(works: Iterable[Work]) -> list[Work]:
    """Notes that these are done, and with them all that they came after; those that were not known to be."""
    new: list[Work] = []
    todo = list(works)
    while todo:
        work = todo.pop()
        if work.learned:
            continue
        work.learned = True
        new.append(work)
        todo += work.after
        work.after = []
        work.perhaps_after = []
        for item in work.uses:
            item.work.remove(work)
    return new


def cancelled_with(first: list[Work], works: Iterable[Work]) -> list[Work] | None:
    """What is cancelled when `first` is, in the order of submission: itself, and all that comes after it.
    None: the documentation leaves it open.

    `works` are all unlearned ones, in the order of submission.
    """
    gone = list(first)
    for work in works:
        if work in gone:
            continue
        behind = [earlier for each in work.together for earlier in each.after if earlier not in work.whole]
        if any(earlier in gone for earlier in behind):
            gone += [each for each in work.together if each not in gone]
        elif any(earlier in gone for each in work.together for earlier in each.perhaps_after):
            return None
    # The parts of one `submit` on different queues end in one fence.
    if any(each not in gone for work in gone for each in work.whole):
        return None
    return sorted(gone, key=lambda work: work.number)


def undo(works: list[Work]) -> None:
    """Takes back what cancelled works did to the model: nothing else has touched these bytes since."""
    for work in reversed(works):
        for array, (begin, end), old in reversed(work.before):
            array[begin:end] = old
        work.learned = True
        for item in work.uses:
            item.work.remove(work)
