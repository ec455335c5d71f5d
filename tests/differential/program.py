"""One random program: what it does next, on the device and in the model.

About 890 lines because the steps share what is known of each other's work.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np

import kompute_py as kp

from . import arrays, giving, learning, library, warned
from .memories import (
    GONE,
    SURELY,
    Gate,
    Item,
    MismatchError,
    Rebuilt,
    Recorded,
    Work,
    cancelled_with,
    held_among,
    learned,
    submitted,
    undo,
)

Array = np.ndarray[Any, np.dtype[Any]]
WORDS = (1, 2, 3, 15, 16, 17, 31, 32, 33, 48, 64, 100, 256)
MEMORY_TYPES = tuple(kp.MemoryTypes)
_OFTEN_COPIED = (*MEMORY_TYPES, kp.MemoryTypes.device, kp.MemoryTypes.device)
SEQUENCES = 4
MOST_ITEMS = 8
MOST_UNLEARNED = 12


class Slot:
    """A sequence of the program and what is recorded in it."""

    _numbers = itertools.count()

    def __init__(self, sequence: kp.Sequence, queue: int) -> None:
        self.sequence = sequence
        self.sequence.name = f"sequence {next(self._numbers)}"
        self.queue = queue
        self.recorded: list[Recorded] = []
        self.work: Work | None = None  # its last submission
        self.warned: set[str] = set()  # of what it need not warn again
        self.built_before = False  # ... work was cancelled, of which it is not told


class Program:
    """A program in progress. `operations` counts what it has done."""

    def __init__(
        self,
        mgr: kp.Manager,
        seed: object,
        *,
        dispatch: bool,
        loop: asyncio.AbstractEventLoop,
        trace: list[str],
    ) -> None:
        self.mgr = mgr
        self.random = random.Random(repr(seed))
        self.dispatch = dispatch
        self.loop = loop
        self.trace = trace
        self.operations = 0
        self.said: Counter[str] = Counter()  # of host copies
        self.kinds: Counter[str] = Counter()  # of KINDS: what it has done
        limits = mgr.get_device_properties()["limits"]
        self.atom = max(1, int(limits["nonCoherentAtomSize"]))
        self.alignment = max(4, int(limits["minStorageBufferOffsetAlignment"]))
        self.items: list[Item] = []
        self.unlearned: list[Work] = []
        self.views: list[
            tuple[np.ndarray[Any, Any], Item]
        ] = []  # of what is gone, while work on it is unlearned
        self.page = mgr.host_import_alignment or 0
        self.queues = len(mgr.queues)
        self.slots = [self._slot() for _ in range(SEQUENCES)]
        self.scratches: dict[int, kp.Sequence] = {}
        self.shared = library.scratch_memory(mgr)
        self.results: list[tuple[kp.Tensor, Array]] = []  # of donations
        for _ in range(3):
            self.make()

    @staticmethod
    def seed() -> None:
        """Puts back what is wrong in a program of `faults`, for the whole process."""

    # -- the run ---------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Does `steps` steps, then looks at everything."""
        for _ in range(steps):
            kind = self.random.choices(_STEPS, _WEIGHTS)[0]
            kind(self)
        self.finish()

    def finish(self) -> None:
        """Lets everything end and compares all there is."""
        self.release()
        self.note("finish: synchronize")
        self.mgr.synchronize()
        self.note_learned(list(self.unlearned), "synchronize")
        for item in self.items:
            self.compare_freshness(item)
            self.compare_device(item)
        giving.compare(self)
        for slot in self.slots:
            slot.sequence.destroy()
        for sequence in self.scratches.values():
            sequence.destroy()

    def note(self, text: str, *kinds: str) -> None:
        self.operations += 1
        self.trace.append(text)
        self.kinds.update(kinds)

    # -- choices ---------------------------------------------------------------------------------------------

    def _slot(self) -> Slot:
        queue = self.random.randrange(self.queues)
        return Slot(self.mgr.sequence(queue), queue)

    def bytes(self, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return np.frombuffer(self.random.randbytes(count), np.uint8)

    def span(self, item: Item, unit: int = 1, align: int = 1) -> tuple[int, int]:
        """Some bytes: whole `unit`s, beginning at a multiple of `align`; often beside the edge of an atom."""
        if item.is_image or self.random.random() < 0.25:
            return 0, item.nbytes // unit * unit
        choose = self.random.random()
        if choose < 0.5:
            begin = self.random.randrange(item.nbytes)
        else:
            begin = self.random.randrange(0, item.nbytes, self.atom) + self.random.choice(
                (-4, -1, 0, 0, 1, 8)
            )
        begin = min(max(begin, 0), item.nbytes - 1) // align * align
        length = self.random.choice((1, 4, 8, 16, 63, 64, 65, 128, self.random.randint(1, item.nbytes)))
        end = min(begin + max(length, unit), item.nbytes)
        return begin, begin + (end - begin) // unit * unit

    def live(self, *, tensors: bool = False, free: bool = False) -> list[Item]:
        """Items; `free`: that no held work uses, so that the host may wait for work on them."""
        held = self.held() if free else ()
        return [
            item
            for item in self.items
            if not (tensors and item.is_image) and not any(work in held for work in item.work)
        ]

    def held(self) -> list[Work]:
        return held_among(self.unlearned)

    # -- memory ----------------------------------------------------------------------------------------------

    def make(self) -> None:
        """A tensor or an image of random data in any memory;
        uploaded, or left for its first use to upload."""
        if len(self.items) >= MOST_ITEMS:
            return
        kind = self.random.choice(_OFTEN_COPIED)
        words = self.random.choice(WORDS)
        if self.page and self.random.random() < 0.2:
            return arrays.make(self)
        if self.random.random() < 0.2:
            height = self.random.choice((1, 2, 4))
            data = self.bytes(4 * words * height)
            thing: Any = self.mgr.image_t(data.view(np.uint32).reshape(height, words), memory_type=kind)
        elif self.random.random() < 0.2:
            value = self.random.getrandbits(32)
            data = np.full(words, value, np.uint32).view(np.uint8)
            thing = self.mgr.full(words, value, np.uint32, memory_type=kind)
        else:
            data = self.bytes(4 * words)
            thing = self.mgr.tensor_t(data.view(np.uint32), kind)
        item = Item(thing, data)
        self.note(f"make {item}")
        self.items.append(item)
        if self.random.random() < 0.4:
            self.note(f"upload {item}")
            self.mgr.sequence().eval(kp.OpSyncDevice([thing]))
            assert item.device is not None  # used

    def array(self, nbytes: int) -> tuple[Array, Array]:
        """Memory of the process in whole pages, and the array that further tensors over it are made of."""
        made = kp.aligned_empty(nbytes // 4, np.uint32, self.page)
        return made, made

    def cannot_run_again(self, item: Item) -> None:
        """Something of the item is destroyed, so recordings of it have ended."""
        for slot in self.slots:
            if any(item in each.uses for each in slot.recorded):
                slot.recorded = []

    def drop(self) -> None:
        """Lets go of a tensor or an image, or destroys it; sometimes an array over it stays."""
        if len(self.items) <= 2:
            return
        item = self.items.pop(self.random.randrange(len(self.items)))
        how = self.random.choice(("drop", "destroy", "destroy, keep the array", "drop, keep the array"))
        self.note(f"{how} {item}")
        if how.endswith("array") and item.host is not None:
            self.views.append((item.host_bytes(), item))
        destroys = how.startswith("destroy")
        if destroys:
            self.cannot_run_again(item)  # one of what is dropped keeps it
            for thing in item.all_things():
                thing.destroy()
        else:
            item.thing = item.parts = GONE
        item.imports.clear()

    # -- recordings ------------------------------------------------------------------------------------------

    def recorded(self) -> Recorded | None:
        """A random operation, if the choice makes sense."""
        return self.random.choice(_OPERATIONS)(self)

    def _sync(self) -> Recorded | None:
        down = self.random.random() < 0.6
        chosen = [
            (item, *self.span(item)) for item in self.random.sample(self.items, min(2, len(self.items)))
        ]
        make = kp.OpSyncLocal if down else kp.OpSyncDevice

        def effect() -> None:
            for item, begin, end in chosen:
                if item.has_copy and item.host is not None:
                    if down:
                        item.host[begin:end] = item.device[begin:end]
                    else:
                        item.device[begin:end] = item.host[begin:end]

        made = Recorded(
            f"{make.__name__} {chosen}",
            effect,
            make([_whole_or_part(item, begin, end) for item, begin, end in chosen]),
        )
        for item, begin, end in chosen:
            if item.has_copy:
                made.on_host(item, begin, end, down).on_device(item, begin, end, not down)
                made.synced(item, begin, end, down)
            else:
                made.mention(item)
        return made

    def _copy(self) -> Recorded | None:
        pair = self._pair()
        if pair is None:
            return None
        (source, begin), (target, to), size = pair
        images = source.is_image or target.is_image
        first = source.words(begin, begin + size) if images else source.part(begin, begin + size)
        second = target.words(to, to + size) if images else target.part(to, to + size)
        made = Recorded(
            f"OpCopy {source} {begin} to {target} {to}, {size} bytes",
            lambda: np.copyto(target.device[to : to + size], source.device[begin : begin + size].copy()),
            kp.OpCopy([first, second]),
        )
        made.one_shot = lambda: second.copy_from(first)
        return made.on_device(source, begin, begin + size, False).on_device(target, to, to + size, True)

    def _pair(self) -> tuple[tuple[Item, int], tuple[Item, int], int] | None:
        """Two places of the same size: different items, or parts of one that do not overlap."""
        source, target = self.random.choice(self.items), self.random.choice(self.items)
        if source is target:
            if source.is_image or source.nbytes < 2:
                return None
            half = source.nbytes // 2
            size = self.random.randint(1, half)
            return (source, 0), (target, source.nbytes - size), size
        if source.is_image and target.is_image:
            fits = source.thing.shape == target.thing.shape
            return ((source, 0), (target, 0), source.nbytes) if fits else None
        if source.is_image or target.is_image:
            image, tensor = (source, target) if source.is_image else (target, source)
            if tensor.nbytes < image.nbytes:
                return None
            at = self.random.randrange(0, tensor.nbytes - image.nbytes + 1, 4)
            first, second = ((image, 0), (tensor, at))
            return (first, second, image.nbytes) if image is source else (second, first, image.nbytes)
        begin, end = self.span(source)
        to, last = self.span(target)
        size = min(end - begin, last - to)
        return ((source, begin), (target, to), size) if size > 0 else None

    def fill(self) -> Recorded | None:
        tensors = self.live(tensors=True)
        if not tensors:
            return None
        item = self.random.choice(tensors)
        pattern = self.random.randbytes(self.random.choice((1, 2, 4, 8)))
        begin, end = self.span(item, len(pattern))
        if end <= begin:
            return None
        part = item.part(begin, end)
        made = Recorded(
            f"OpFill {item} {begin}:{end} {pattern!r}",
            lambda: _fill_bytes(item, begin, end, pattern),
            kp.OpFill([part], pattern),
        )
        assert isinstance(part, kp.Tensor)
        made.one_shot = functools.partial(part.fill, pattern)
        return made.on_device(item, begin, end, True)

    def _dispatch(self) -> Recorded | None:
        tensors = self.live(tensors=True)
        if not self.dispatch or len(tensors) < 2:
            return self.fill()
        a, b = self.random.sample(tensors, 2)
        spans = [self.span(item, 4, self.alignment) for item in (a, b)]
        if any(end <= begin for begin, end in spans):
            return None
        (a0, a1), (b0, b1) = spans
        scale, offset = self.random.getrandbits(32), self.random.getrandbits(32)
        parts: Any = [item.words(*span) for item, span in zip((a, b), spans, strict=True)]
        count = min(a1 - a0, b1 - b0) // 4
        algorithm = Rebuilt(self.mgr.algorithm(parts, library.affine(), (-(-count // 32), 1, 1)))

        def effect() -> None:
            left, right = a.device[a0:a1].view(np.uint32), b.device[b0:b1].view(np.uint32)
            wide = right[:count].astype(np.uint64) * scale + left[:count][::-1] + offset + algorithm.recorded
            right[:count] = wide.astype(np.uint32)

        made = Recorded(
            f"dispatch {a} {a0}:{a1} to {b} {b0}:{b1}",
            effect,
            kp.OpAlgoDispatch(algorithm.algorithm, [scale, offset]),
        )
        made.algorithm = algorithm
        return made.on_device(a, a0, a1, False).on_device(b, b0, b1, True)

    def record(self, slot: Slot) -> bool:
        """A fresh recording of one to four operations."""
        made = [
            each for each in (self.recorded() for _ in range(self.random.randint(1, 4))) if each is not None
        ]
        if not made:
            return False
        slot.recorded = []
        if slot.sequence.is_recording():
            slot.sequence.clear()
        for each in made:
            self.note(f"record in {self.slots.index(slot)}: {each.what}")
            slot.sequence.record(*each.ops)
        slot.recorded = made
        slot.warned.discard(warned.REBUILT)
        slot.built_before = False
        return True

    def rebuild(self) -> None:
        """Rebuilds an algorithm of a recording, which runs the old one until it is recorded again."""
        found = [
            (slot, each.algorithm)
            for slot in self.slots
            for each in slot.recorded
            if each.algorithm is not None
        ]
        if not found:
            return
        slot, chosen = self.random.choice(found)
        chosen.now = self.random.randrange(4)
        self.note(f"rebuild an algorithm of {self.slots.index(slot)} with {chosen.now}", "rebuilt")
        chosen.algorithm.rebuild(spec_consts=[chosen.now])
        chosen.outdated = True
        if self.random.random() < 0.5:
            self.rerecord(slot)

    def rerecord(self, slot: Slot) -> None:
        """Records the operations of a sequence anew, with the algorithms as they are now."""
        if self.busy(slot):
            return
        self.note(f"rerecord {self.slots.index(slot)}", "recorded again")
        slot.sequence.rerecord()
        slot.warned.discard(warned.REBUILT)
        for each in slot.recorded:
            if each.algorithm is not None:
                each.algorithm.recorded = each.algorithm.now
                each.algorithm.outdated = False

    # -- submissions -----------------------------------------------------------------------------------------

    def idle(self) -> Slot | None:
        """A sequence to work with: one that does not run, or that is waited for."""
        slot = self.random.choice(self.slots)
        return None if self.busy(slot) else slot

    def busy(self, slot: Slot) -> bool:
        """Waits for a sequence; whether it is held, so that nobody can wait for it."""
        if slot.work is not None and not slot.work.learned:
            if slot.work in self.held():
                return True
            self.learn_of(slot.work, learning.SEQUENCE[0])
        if slot.sequence.is_running():
            # Learned of in another way: collecting it brings nothing twice.
            slot.sequence.eval_await(timeout=learning.LIMIT)
        slot.work = None
        return False

    def submit(self) -> None:
        """One sequence, or several together, with what they wait for and signal."""
        slots: list[Slot] = []
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            slot = self.idle()
            if slot is None or slot in slots:
                continue
            if (not slot.recorded or self.random.random() < 0.7) and not self.record(slot):
                continue
            slots.append(slot)
        slots = [slot for slot in slots if slot.recorded]
        if not slots:
            return
        wait: list[Any] = []
        gates: list[Gate] = []
        if self.random.random() < 0.15:
            gates.append(Gate(self.mgr.semaphore()))
            wait.append((gates[0].semaphore, 1))
        fences = [work for work in self.unlearned if work.fence is not None]
        behind = [self.random.choice(fences)] if fences and self.random.random() < 0.15 else []
        wait += [work.fence for work in behind]
        signal = Gate(self.mgr.semaphore()) if self.random.random() < 0.25 else None
        names = [self.slots.index(slot) for slot in slots]
        self.note(f"submit {names}{' held' if gates else ''}{' signals' if signal else ''} behind {behind}")
        together = len(slots) > 1 or self.random.random() < 0.2
        fence: kp.Fence | None = None
        options = {"wait": wait, "signal": [(signal.semaphore, 1)] if signal else []}
        try:
            with warned.listening(slots, self.held()):
                if together:
                    fence = self.mgr.submit([slot.sequence for slot in slots], **options)
                else:
                    slots[0].sequence.eval_async(**options)
        except kp.FailedPreconditionError as error:
            self._refused(slots, str(error))
            return
        self._submitted(slots, gates, behind)
        if together:
            works = [slot.work for slot in slots if slot.work is not None]
            for work in works:
                work.whole = works
            # Queues of a device with one only are that one.
            for _, group in itertools.groupby(works, key=lambda work: self.mgr.vk_queue(work.queue)):
                members = list(group)
                for work in members:
                    work.together = members
            works[-1].fence = fence
            works[-1].after += works[:-1]
        elif self.random.random() < 0.5 and slots[0].work is not None:
            slots[0].work.fence = slots[0].sequence.fence
        if signal is not None and slots[-1].work is not None:
            slots[-1].work.signal = signal

    def _submitted(self, slots: list[Slot], gates: list[Gate], behind: list[Work]) -> None:
        for slot in slots:
            before = [each for op in slot.recorded for each in op.effect()]
            for each in slot.recorded:
                self.kinds.update(each.kinds)
                self.kinds.update(["operation recorded"] if each.call is not None else ())
            slot.work = Work(slot.queue, slot.recorded)
            slot.work.before = before
            slot.work.waits = list(gates)
            submitted(slot.work, self.unlearned)
            slot.work.after += behind
            self.unlearned.append(slot.work)

    def _refused(self, slots: list[Slot], why: str) -> None:
        """Only what this memory cannot do: an upload of bytes that are still to land beside a part that the
        host may write.
        """
        if "nonCoherentAtomSize" not in why or (not self.held() and len(slots) == 1):
            raise MismatchError(f"refused without a reason: {why}")
        self.note("refused")  # all of them
        self.release()
        # Whether building them has uploaded what was fresh is not told.
        for item in {
            item: None for slot in slots for each in slot.recorded for item in each.touches if item.fresh
        }:
            self.compare_device(item)

    def evaluate(self) -> None:
        slot = self.idle()
        if slot is None or (not slot.recorded and not self.record(slot)):
            return
        if self.random.random() < 0.7 and not self.record(slot):
            return
        uses = {item for each in slot.recorded for item in each.uses}
        if any(work in self.held() for item in uses for work in item.work):
            self.release()
        self.note(f"eval {self.slots.index(slot)}")
        with warned.listening([slot], self.held()):
            slot.sequence.eval()
        self._submitted([slot], [], [])
        assert slot.work is not None
        self.note_learned([slot.work], "eval")

    def one_shot(self) -> None:
        """A fill, a copy or an operation of the library without a sequence; the last also as a plain call."""
        made = self.random.choice((self.fill, self._copy, functools.partial(library.operation, self)))()
        if made is None:
            return
        called = made.call is not None and self.random.random() < 0.5
        self.note(f"{'call' if called else 'one shot'}: {made.what}", *made.kinds)
        if made.call is not None:
            self.kinds[f"operation {'called' if called else 'submitted'}"] += 1
        if called:
            # A call may wait for itself.
            assert made.call is not None
            held = self.held()
            if any(work in held for item in made.uses for work in item.work):
                self.release()
            made.call()
            fence = None
        else:
            assert made.one_shot is not None
            fence = made.one_shot()
        before = made.effect()
        work = Work(0, [made])
        work.before = before
        work.fence = fence
        submitted(work, self.unlearned)
        self.unlearned.append(work)

    def release(self) -> None:
        """The host signals what held work waits for."""
        for gate in {
            id(gate): gate for work in self.unlearned for gate in work.waits if not gate.signalled
        }.values():
            self.note("signal")
            gate.signalled = True
            gate.semaphore.signal(1)

    def forget_sequence(self, work: Work) -> None:
        """The sequence of `work` was destroyed."""
        for number, slot in enumerate(self.slots):
            if slot.work is work:
                self.slots[number] = self._slot()

    def drop_sequence(self) -> None:
        """Lets go of a sequence, whatever it is doing; or destroys it, which waits."""
        number = self.random.randrange(SEQUENCES)
        slot = self.slots[number]
        held = slot.work is not None and slot.work in self.held()
        self.note(f"drop sequence {number}")
        self.slots[number] = self._slot()
        if not held and self.random.random() < 0.3:
            slot.sequence.destroy()
            if slot.work is not None:
                self.note_learned([slot.work], "destroy")

    def cancel(self) -> None:
        """Cancels held work, by destroying its sequence or by failing what it waits for; what comes after it
        goes with it.
        """
        works = [work for work in self.held() if any(not gate.signalled for gate in work.waits)]
        if not works:
            return
        work = self.random.choice(works)
        slot = next((slot for slot in self.slots if slot.work is work), None)
        destroys = slot is not None and self.random.random() < 0.5
        first = work.together if destroys else work.whole
        gone = cancelled_with(first, self.unlearned)
        if gone is None:
            return
        self.note(f"cancel {gone} by {'destroy' if destroys else 'fail'}")
        if destroys:
            assert slot is not None
            slot.sequence.destroy()
            self.forget_sequence(work)
        else:
            for gate in work.waits:
                gate.signalled = True
                gate.semaphore.fail("cancelled")
        undo(gone)
        for slot in self.slots:
            slot.built_before = True
        for each in gone:
            self.unlearned.remove(each)
        told = [slot for slot in self.slots if slot.work in gone]
        self._not_readable(told)
        for each in gone:
            self._told_of(each, [slot for slot in told if slot.work is each])
        for item in {item: None for each in gone for item in each.host_writes}:
            self.compare_host(item, "it was not written")

    def _not_readable(self, slots: list[Slot]) -> None:
        """Until somebody is told, reading what cancelled work was to write says that it did not."""
        held = self.held()
        for slot in slots:
            assert slot.work is not None
            for item in slot.work.changes:
                waits = any(work in held for work in item.work)  # for other work, which is still held
                if item.thing is GONE or not item.thing.is_init() or waits:
                    continue
                if self.random.random() < 0.3:
                    self._aborted(item.thing.read, f"read of {item}")

    def _told_of(self, work: Work, slots: list[Slot]) -> None:
        """Its sequences and its fence say that it was cancelled; then all may be used again."""
        if work.fence is not None:
            self._aborted(functools.partial(work.fence.wait, learning.LIMIT), f"the fence of {work}")
        for slot in slots:
            if slot.sequence.is_running():
                self._aborted(functools.partial(slot.sequence.eval_await, timeout=learning.LIMIT), f"{work}")
            if slot.sequence.is_running():
                raise MismatchError(f"the sequence of {work} runs after it has said that it was cancelled")
            slot.work = None

    def _aborted(self, call: Callable[[], object], what: str) -> None:
        try:
            call()
        except kp.AbortedError:
            return
        raise MismatchError(f"{what} does not say that the work was cancelled")

    def clear_sequence(self) -> None:
        slot = self.idle()
        if slot is None:
            return
        self.note(f"clear {self.slots.index(slot)}")
        slot.sequence.clear()
        slot.recorded = []

    # -- learning --------------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Learns in some way that some work is done."""
        if not self.unlearned:
            return
        work = self.random.choice(self.unlearned)
        self.learn_of(work, self.random.choice(learning.ways(self, work)))

    def learn_of(self, work: Work, way: learning.Way) -> None:
        if self.held():
            self.release()
        self.note(f"learn of {work} by {way.__name__}")
        self.note_learned(way(self, work), way.__name__)

    def note_learned(self, works: list[Work], how: str) -> None:
        new = learned(works)
        for work in new:
            self.unlearned.remove(work)
        for item in {item: None for work in new for item in work.host_writes}:
            self.compare_host(item, how)
        kept = []
        for array, item in self.views:
            self._compare(array, item, f"{how}, an array of what is gone")
            if item.work:
                kept.append((array, item))
        self.views = kept

    def has_sequence(self, work: Work) -> bool:
        return any(slot.work is work and slot.sequence.is_running() for slot in self.slots)

    def sequence_of(self, work: Work) -> kp.Sequence:
        return next(slot.sequence for slot in self.slots if slot.work is work)

    def in_loop(self, what: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(asyncio.wait_for(what, learning.LIMIT))

    def scratch(self, queue: int) -> kp.Sequence:
        """A sequence of that queue whose work shares memory with nothing."""
        if queue not in self.scratches:
            memory = self.mgr.empty(4, np.uint32, memory_type=kp.MemoryTypes.storage)
            self.scratches[queue] = self.mgr.sequence(queue).record(kp.OpFill([memory], 0))
        return self.scratches[queue]

    def read_elsewhere(self, item: Item) -> Work:
        """A copy of the item to memory of its own, on some queue, evaluated."""
        queue = self.random.randrange(self.queues)
        target = self.mgr.empty(item.nbytes // 4, np.uint32)
        made = Recorded("copy", lambda: None, kp.OpCopy([item.thing, target]))
        made.on_device(item, 0, item.nbytes, False)
        sequence = self.mgr.sequence(queue).record(*made.ops, kp.OpSyncLocal([target]))
        sequence.eval()
        work = Work(queue, [made])
        submitted(work, self.unlearned)
        self.unlearned.append(work)
        np.testing.assert_array_equal(target.data().view(np.uint8), item.device)
        return work

    # -- the host --------------------------------------------------------------------------------------------

    def compare_host(self, item: Item, how: str) -> None:
        if item.host is None or item.thing is GONE or not item.thing.is_init():
            return
        self._compare(item.host_bytes(), item, how)

    def _compare(self, seen: Any, item: Item, how: str) -> None:
        assert item.host is not None
        seen = seen.reshape(-1).view(np.uint8)
        if np.array_equal(seen, item.host):
            return
        known = np.ones(item.nbytes, bool)
        for work in item.work:
            for begin, end in work.host_writes.get(item, ()):
                known[begin:end] = False
        self.require(
            seen[known], item.host[known], np.flatnonzero(known), f"the host's side of {item} after {how}"
        )

    def require(self, seen: Any, wanted: Any, places: Any, what: str) -> None:
        wrong = np.flatnonzero(seen != wanted)
        if wrong.size:
            raise MismatchError(
                f"{what}: {wrong.size} of {seen.size} bytes differ, at {places[wrong][:8].tolist()}: "
                f"{seen[wrong][:8].tolist()}, not {wanted[wrong][:8].tolist()}"
            )

    def compare_freshness(self, item: Item) -> None:
        """What is said of the host copy: that it matches never where the device was written since, nor the
        other way round.
        """
        if not item.has_copy or item.thing is GONE:
            return
        begin, end = self.span(item)
        parts = [(item.thing, item.newer)]
        if not item.is_image and end > begin:
            parts.append((item.part(begin, end), item.newer[begin:end]))
        for part, newer in parts:
            said = part._native.freshness
            self.said[said] += 1
            wrong = newer.max(initial=0) == SURELY if said in ("matches", "unsent") else False
            wrong = wrong or (said == "behind" and not newer.any())
            # What is on its way may be told as it is before.
            if wrong and not (said == "behind" and item.work):
                raise MismatchError(
                    f"{item} {begin}:{end}: {said}, with {np.count_nonzero(newer)} newer bytes"
                )

    def compare_device(self, item: Item) -> None:
        seen = item.thing.read().reshape(-1).view(np.uint8)
        self.require(seen, item.device, np.arange(item.nbytes), f"the device's side of {item}")

    def read(self, item: Item) -> None:
        """Reads the device's side, which waits for what writes it."""
        self.compare_device(item)
        self.note_learned([work for work in item.work if item in work.changes], "read")

    def look(self) -> None:
        """Reads a part of the device's side of something."""
        free = self.live(free=True)
        if not free:
            return
        item = self.random.choice(free)
        self.note(f"read {item}")
        if item.is_image or self.random.random() < 0.3:
            self.read(item)
            return
        begin, end = self.span(item)
        part: Any = item.part(begin, end)
        assert item.parts is not None
        seen = part.read() if item.imports else item.parts.read(region=slice(begin, end))
        self.require(seen, item.device[begin:end], np.arange(begin, end), f"the device's side of {item}")
        self.note_learned([work for work in item.work if item in work.changes], "read of a part")

    def edit(self) -> None:
        """The host writes some bytes of its side that no unlearned work touches."""
        item = self.random.choice(self.items)
        if item.host is None:
            return
        begin, end = self.span(item)
        if not item.may_edit(begin, end, self.atom):
            return
        data = self.bytes(end - begin)
        self.note(f"edit {item} {begin}:{end}")
        item.host_bytes()[begin:end] = data
        item.host[begin:end] = data

    def peek(self) -> None:
        """The host looks at what it may look at, with work in flight beside it."""
        item = self.random.choice(self.items)
        self.note(f"look at {item}")
        self.compare_host(item, "nothing new")
        self.compare_freshness(item)

    def write(self) -> None:
        """Replaces the device's contents, or a part of them; waits for all work on it."""
        free = self.live(free=True)
        if not free:
            return
        item = self.random.choice(free)
        begin, end = self.span(item)
        data = self.bytes(end - begin)
        self.note(f"write {item} {begin}:{end}")
        if item.is_image:
            item.thing.write(data.view(np.uint32).reshape(item.thing.shape))
        else:
            self.store(item.part(begin, end), data)
        works = [work for work in item.work if item in work.touches]
        item.device[begin:end] = data
        item.write(begin, end)
        if item.one_memory and item.host is not None:
            item.host[begin:end] = data
        self.note_learned(works, "write")

    @staticmethod
    def store(part: Any, data: Array) -> None:
        """Writes the device's contents of a tensor or a part of it."""
        part.write(data)

    def map(self) -> None:
        """The host works in device memory."""
        free = self.live(tensors=True, free=True)
        if not free:
            return
        item = self.random.choice(free)
        begin, end = self.span(item)
        how = self.random.choice(
            ({"read": True}, {"write": True}, {"read": True, "write": True}, {"discard": True})
        )
        self.note(f"map {item} {begin}:{end} {list(how)}")
        # A mapping of a part waits for work on that part alone.
        whole = (begin, end) == (0, item.nbytes)
        waited = [
            work
            for work in item.work
            if whole and item in work.touches and (how != {"read": True} or item in work.changes)
        ]
        part = item.part(begin, end)
        assert isinstance(part, kp.Tensor)
        with part.map(**how) as array:
            if "read" in how:
                self.require(array, item.device[begin:end], np.arange(begin, end), f"a mapping of {item}")
            if "write" in how:
                array[::2] = data = self.bytes(len(array[::2]))
                item.device[begin:end][::2] = data
            elif "discard" in how:
                array[:] = data = self.bytes(end - begin)
                item.device[begin:end] = data
            if how != {"read": True}:
                item.write(begin, end)
        self.note_learned(waited, "a mapping")


def _whole_or_part(item: Item, begin: int, end: int) -> Any:
    return item.thing if (begin, end) == (0, item.nbytes) else item.part(begin, end)


def _fill_bytes(item: Item, begin: int, end: int, pattern: bytes) -> None:
    where = item.device[begin:end]
    where[:] = np.resize(np.frombuffer(pattern, np.uint8), where.size)


_OPERATIONS: tuple[Callable[[Program], Recorded | None], ...] = (
    Program._sync, Program._sync, Program._sync, Program._copy, Program.fill, Program._dispatch,
    library.operation, library.repetition, library.by_scratch, library.drawn,
)  # fmt: skip
_CHOICES: dict[Callable[[Program], None], int] = {
    Program.make: 3, arrays.import_again: 3, Program.drop: 3, Program.submit: 14, Program.evaluate: 4,
    Program.one_shot: 4, Program.release: 2, Program.drop_sequence: 2, Program.cancel: 5,
    Program.clear_sequence: 1, Program.learn: 14, Program.look: 4, Program.edit: 14, Program.peek: 4,
    Program.write: 3, Program.map: 3, library.assign: 3, Program.rebuild: 4, giving.donate: 2,
    giving.threads: 2,
}  # fmt: skip
_STEPS = tuple(_CHOICES)
_WEIGHTS = tuple(_CHOICES.values())
