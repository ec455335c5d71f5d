"""Random programs over random tensors, against a NumPy model of what Kompute's operations mean.

The model: a `device` tensor is two arrays, the host's copy and the device's contents. The first use of the
device's takes over what the host's copy holds; from then on only OpSyncDevice and OpSyncLocal carry over;
`host` and `deviceAndHost` are one array seen from both sides; `storage` has the device's side only. A
submission happens at once, in the order of submission, whichever sequence it comes from. The host looks at
its copies, or changes them, only when nothing runs; `read()`, `write()`, mappings and one-shots may come at
any time.

Parts of tensors are ranges of bytes, so that they begin and end anywhere: beside words, atoms and pages.
"""

from __future__ import annotations

import functools
import gc
import logging
import platform

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import kompute_py as kp
from tests.differential.library import AFFINE
from tests.drivers import PROFILES, null_control
from tests.support.child import run_child
from tests.support.sampling import sampled

MEMORY_TYPES = tuple(kp.MemoryTypes)
WORDS = st.integers(0, 2**32 - 1)
compiled = functools.cache(kp.compile)

sizes = st.sampled_from([1, 2, 3, 31, 32, 33, 100, 256, 1000])
tensors = st.lists(st.sampled_from(MEMORY_TYPES), min_size=2, max_size=6)
index = st.integers(0, 5)  # of a tensor, modulo how many there are
several = st.lists(index, min_size=1, max_size=4)
# Of a part: its tensor, its first byte and its number of bytes, each modulo what there is.
part = st.tuples(index, st.integers(0, 4000), st.integers(0, 4000))
parts = st.lists(part, min_size=1, max_size=4)
patterns = st.sampled_from([1, 2, 4, 8]).flatmap(lambda n: st.binary(min_size=n, max_size=n))
operations = st.one_of(
    st.tuples(st.just("upload"), several),
    st.tuples(st.just("download"), several),
    st.tuples(st.just("upload parts"), parts),
    st.tuples(st.just("download parts"), parts),
    st.tuples(st.just("copy part"), part, parts),
    st.tuples(st.just("copy range"), part, part),
    st.tuples(st.just("fill parts"), parts, patterns),
    st.tuples(st.just("dispatch parts"), part, part, WORDS, WORDS),
    st.tuples(st.just("copy"), index, several),
    st.tuples(st.just("fill"), several, WORDS),
    st.tuples(st.just("dispatch"), index, index, WORDS, WORDS),
    st.tuples(st.just("dispatch"), index, index, WORDS, WORDS),
)
sequence = st.integers(0, 2)
steps = st.one_of(
    st.tuples(st.just("eval"), sequence, st.lists(operations, min_size=1, max_size=6)),
    st.tuples(st.just("start"), sequence, st.lists(operations, min_size=1, max_size=6)),
    st.tuples(st.just("again"), sequence),
    st.tuples(st.just("restart"), sequence),
    st.tuples(st.just("rerecord"), sequence),
    st.tuples(st.just("clear"), sequence),
    st.tuples(st.just("set"), index, WORDS),
    st.tuples(st.just("look"), index),
    st.tuples(st.just("read"), index),
    st.tuples(st.just("write"), index, WORDS),
    st.tuples(st.just("read part"), part),
    st.tuples(st.just("write part"), part, WORDS),
    st.tuples(st.just("map"), part, st.sampled_from(["read", "write", "both", "discard"]), WORDS),
    st.tuples(st.just("fill part"), part, patterns, st.booleans()),
    st.tuples(st.just("copy from"), part, part, st.booleans()),
)


class Model:
    """What one tensor holds, in NumPy."""

    def __init__(self, memory_type, data):
        self.memory_type = memory_type
        self.contents = data.copy()
        self.fresh = memory_type is kp.MemoryTypes.device
        if self.fresh:
            self.host = data.copy()
        else:
            self.host = None if memory_type is kp.MemoryTypes.storage else self.contents

    @property
    def device(self):
        """What the device's memory holds; whoever looks uses it."""
        if self.fresh:
            self.fresh = False
            self.contents[:] = self.host
        return self.contents

    def upload(self, where=slice(None)):
        if self.memory_type is kp.MemoryTypes.device:
            self.device.view(np.uint8)[where] = self.host.view(np.uint8)[where]

    def download(self, where=slice(None)):
        if self.memory_type is kp.MemoryTypes.device:
            self.host.view(np.uint8)[where] = self.device.view(np.uint8)[where]

    def bytes_at(self, where):
        return self.device.view(np.uint8)[where]


def ramp(count, start):
    return (np.arange(count, dtype=np.uint64) * 2654435761 + start).astype(np.uint32)


class Run:
    """A program in progress, on the device and in the model."""

    def __init__(self, mgr, size, memory_types, dispatch):
        self.mgr = mgr
        self.dispatch = dispatch
        self.size = size
        data = [
            ramp(size, 1000 * i) if i % 3 else np.zeros(size, np.uint32) for i in range(len(memory_types))
        ]
        self.tensors = [
            mgr.tensor_t(d, kind) if i % 3 else mgr.zeros(size, np.uint32, kind)
            for i, (d, kind) in enumerate(zip(data, memory_types, strict=True))
        ]
        self.models = [Model(kind, d) for d, kind in zip(data, memory_types, strict=True)]
        self.sequences = [mgr.sequence(number % len(mgr.queues)) for number in range(3)]
        self.recorded = [[] for _ in range(3)]
        self.running = [False] * 3
        self.fences = []
        limits = mgr.get_device_properties()["limits"]
        self.alignment = limits["minStorageBufferOffsetAlignment"]

    def pick(self, indices):
        """Positions of different tensors, in order."""
        return list(dict.fromkeys(i % len(self.tensors) for i in indices))

    def place(self, part, unit=1, alignment=1):
        """(position of its tensor, slice of bytes); whole units, beginning at a multiple of `alignment`."""
        number, begin, length = part
        nbytes = 4 * self.size
        first = begin % nbytes // alignment * alignment
        count = (1 + length % (nbytes - first)) // unit * unit
        if count == 0 and first + unit <= nbytes:
            count = unit
        return number % len(self.tensors), slice(first, first + count)

    def places(self, parts, unit=1, alignment=1):
        """The places of those parts that no earlier one overlaps, and that are not empty."""
        chosen = []
        for each in parts:
            number, where = self.place(each, unit, alignment)
            if where.start < where.stop and not any(
                number == other and where.start < range_.stop and range_.start < where.stop
                for other, range_ in chosen
            ):
                chosen.append((number, where))
        return chosen

    def part(self, place):
        return self.tensors[place[0]].view(np.uint8)[place[1]]

    def bytes_of(self, place):
        return self.models[place[0]].bytes_at(place[1])

    def shortened(self, parts):
        """The places of parts that do not overlap, all as long as the shortest of them."""
        chosen = self.places(parts)
        count = min(where.stop - where.start for _, where in chosen)
        return [(number, slice(where.start, where.start + count)) for number, where in chosen]

    def translate_parts(self, name, *rest):
        if name in ("upload parts", "download parts"):
            make, effect = (
                (kp.OpSyncDevice, "upload") if name == "upload parts" else (kp.OpSyncLocal, "download")
            )
            # These may overlap: they move the same bytes then.
            chosen = [self.place(each) for each in rest[0]]
            return make([self.part(each) for each in chosen]), lambda: [
                getattr(self.models[number], effect)(where) for number, where in chosen
            ]
        if name == "copy part":
            source, *targets = self.shortened([rest[0], *rest[1]])
            if not targets:
                return None
            copied = kp.OpCopy([self.part(each) for each in (source, *targets)])
        elif name == "copy range":
            if len(chosen := self.shortened(rest)) < 2:
                return None
            source, *targets = chosen
            copied = kp.OpCopyRange(
                *(self.tensors[number].view(np.uint8) for number, _ in chosen),
                source_offset=source[1].start,
                target_offset=targets[0][1].start,
                count=source[1].stop - source[1].start,
            )
        elif name == "fill parts":
            pattern = rest[1]
            if not (chosen := self.places(rest[0], len(pattern))):
                return None
            fill = kp.OpFill([self.part(each) for each in chosen], pattern)
            return fill, lambda: [self.fill_bytes(each, pattern) for each in chosen]
        else:
            return self.dispatch_parts(*rest)
        return copied, lambda: [
            np.copyto(self.bytes_of(each), self.bytes_of(source).copy()) for each in targets
        ]

    def fill_bytes(self, place, pattern):
        where = self.bytes_of(place)
        where[:] = np.resize(np.frombuffer(pattern, np.uint8), where.size)

    def dispatch_parts(self, first, second, scale, offset):
        chosen = self.places([first, second], 4, max(4, self.alignment))
        if len(chosen) < 2 or not self.dispatch:
            return None
        tensors = [self.part(each).view(np.uint32) for each in chosen]
        algorithm = self.mgr.algorithm(tensors, compiled(AFFINE), (-(-self.size // 32), 1, 1))

        def effect():
            a, b = (self.bytes_of(each).view(np.uint32) for each in chosen)
            n = min(a.size, b.size)
            b[:n] = (b[:n].astype(np.uint64) * scale + a[:n][::-1] + offset).astype(np.uint32)

        return kp.OpAlgoDispatch(algorithm, [scale, offset]), effect

    def translate(self, operation):
        """(the operation, its effect on the models), or None where the choice makes no sense."""
        name, *rest = operation
        if name in ("upload", "download"):
            chosen = self.pick(rest[0])
            make = kp.OpSyncDevice if name == "upload" else kp.OpSyncLocal
            return make([self.tensors[i] for i in chosen]), lambda: [
                getattr(self.models[i], name)() for i in chosen
            ]
        if name == "copy":
            source, *targets = self.pick([rest[0], *rest[1]])
            if not targets:
                return None
            copied = kp.OpCopy([self.tensors[i] for i in (source, *targets)])
            return copied, lambda: [
                np.copyto(self.models[i].device, self.models[source].device) for i in targets
            ]
        if name == "fill":
            chosen, value = self.pick(rest[0]), rest[1]
            fill = kp.OpFill([self.tensors[i] for i in chosen], value)
            return fill, lambda: [self.models[i].device.fill(value) for i in chosen]
        if name != "dispatch":
            return self.translate_parts(name, *rest)
        pair, (scale, offset) = self.pick(rest[:2]), rest[2:]
        if len(pair) < 2 or not self.dispatch:
            return None
        algorithm = self.mgr.algorithm(
            [self.tensors[i] for i in pair], compiled(AFFINE), (-(-self.size // 32), 1, 1)
        )
        a, b = (self.models[i] for i in pair)

        def effect():
            wide = b.device.astype(np.uint64) * scale + a.device[::-1] + offset
            b.device[:] = wide.astype(np.uint32)

        return kp.OpAlgoDispatch(algorithm, [scale, offset]), effect

    def record(self, number, operations):
        made = [translated for translated in map(self.translate, operations) if translated is not None]
        for op, _ in made:
            self.sequences[number].record(op)
        if made:  # a record after an evaluation drops what was there
            self.recorded[number] = [effect for _, effect in made]

    def submit(self, number, wait):
        seq = self.sequences[number]
        if wait:
            seq.eval()
        else:
            seq.eval_async()
            self.running[number] = bool(self.recorded[number])
            assert seq.is_running() == self.running[number]
        for effect in self.recorded[number]:
            effect()

    def finish(self, numbers=(0, 1, 2)):
        for number in numbers:
            if self.running[number]:
                self.sequences[number].eval_await()
                self.running[number] = False
        if numbers == (0, 1, 2):
            for fence in self.fences:
                assert fence.wait()
            self.fences = []

    def step(self, step):
        name, *rest = step
        if name in ("eval", "start"):
            number, operations = rest
            self.finish([number])
            self.record(number, operations)
            self.submit(number, name == "eval")
        elif name in ("again", "restart"):
            self.finish(rest)
            self.submit(rest[0], name == "again")
        elif name in ("rerecord", "clear"):
            self.finish(rest)
            getattr(self.sequences[rest[0]], name)()
            if name == "clear":
                self.recorded[rest[0]] = []
            else:  # the current operations are recorded anew, as an evaluation leaves them
                self.submit(rest[0], True)
        elif isinstance(rest[0], tuple):
            self.part_step(name, *rest)
        else:
            position = rest[0] % len(self.tensors)
            self.host_step(name, self.tensors[position], self.models[position], *rest[1:])

    def host_step(self, name, tensor, model, *rest):
        if name == "read":
            np.testing.assert_array_equal(tensor.read(), model.device)
        elif name == "write":
            tensor.write(ramp(self.size, rest[0]))
            model.device[:] = ramp(self.size, rest[0])
        elif model.host is not None:
            self.finish()
            if name == "set":
                tensor.data()[:] = model.host[:] = ramp(self.size, rest[0])
            np.testing.assert_array_equal(tensor.data(), model.host)

    def part_step(self, name, part, *rest):
        if name == "copy from":
            if len(chosen := self.shortened([part, rest[0]])) < 2:
                return
            target, source = chosen
            fence = self.part(target).copy_from(self.part(source))
            self.bytes_of(target)[:] = self.bytes_of(source)
        elif name == "fill part":
            if not (chosen := self.places([part], len(rest[0]))):
                return
            fence = self.part(chosen[0]).fill(rest[0])
            self.fill_bytes(chosen[0], rest[0])
        else:
            self.host_part_step(name, self.place(part), *rest)
            return
        self.fences.append(fence)
        if rest[1]:
            assert fence.wait()

    def host_part_step(self, name, place, *rest):
        tensor, model = self.part(place), self.bytes_of(place)
        if name == "read part":
            np.testing.assert_array_equal(tensor.read(), model)
            np.testing.assert_array_equal(self.tensors[place[0]].view(np.uint8).read(region=place[1]), model)
            return
        data = ramp(model.size, rest[-1]).astype(np.uint8)
        if name == "write part":
            tensor.write(data)
            model[:] = data
            return
        kind = rest[0]
        how = {"both": {"read": True, "write": True}}.get(kind, {kind: True})
        with tensor.map(**how) as array:
            if kind in ("read", "both"):
                np.testing.assert_array_equal(array, model)
            if kind == "write":  # what it does not write stays
                array[::2] = data[::2]
                model[::2] = data[::2]
            elif kind != "read":
                array[:] = data
                model[:] = data

    def check(self):
        self.finish()
        for number, (tensor, model) in enumerate(zip(self.tensors, self.models, strict=True)):
            note(f"tensor {number}: {tensor!r}")
            if model.host is not None:
                np.testing.assert_array_equal(tensor.data(), model.host)
            np.testing.assert_array_equal(tensor.read(), model.device)


def explore(mgr, dispatch, examples, memory_types=tensors):
    """Lets hypothesis look for a program that goes wrong on `mgr`."""

    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        print_blob=True,
    )  # fmt: skip
    @given(size=sizes, memory_types=memory_types, program=st.lists(steps, min_size=1, max_size=12))
    def programs(size, memory_types, program):
        run = Run(mgr, size, memory_types, dispatch)
        try:
            for step in program:
                run.step(step)
            run.check()
        finally:
            for seq in run.sequences:
                seq.destroy()

    programs()


def test_programs(make_manager):
    explore(make_manager(0, [0, 0]), True, 200)


def explore_null(without=None):
    logging.getLogger("kompute_py").setLevel(logging.ERROR)
    mgr = kp.Manager(0, [0, 0, 1])
    kinds = [kind for kind in MEMORY_TYPES if kind.name != without]
    explore(mgr, False, sampled(60, 200), st.lists(st.sampled_from(kinds), min_size=2, max_size=6))
    mgr.destroy()
    del mgr
    gc.collect()
    control = null_control()
    return control.violations(), control.live(), kp.alive()


@pytest.mark.sampled(every=4)
@pytest.mark.own_driver
@pytest.mark.parametrize(
    "device",
    [f"memory={each}" for each in ("discrete", "noncoherent", "exotic", "unified")]
    + [f"profile={each}" for each in PROFILES],
)
def test_programs_on_other_memory(device):
    """Memory that lavapipe does not have: not visible to the host, or carried over by flush and invalidate
    alone.

    The null driver copies and fills; each submission takes a while, on one of three queues of two families.
    """
    assert run_child(explore_null, driver="null", config=f"{device},gpu_us=20") == [[], 0, 0]


@pytest.mark.sampled(every=3)
@pytest.mark.own_driver
@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the null driver tells reads from writes on x86-64 alone"
)
@pytest.mark.parametrize("profile", ["small_bar", "large_bar", "mobile"])
def test_programs_never_read_uncached_memory(profile):
    """Such a read is a violation here.

    (What `data()` of a deviceAndHost tensor shows is that memory itself.)
    """
    config = f"profile={profile},trap_reads=1"
    assert run_child(explore_null, "deviceAndHost", driver="null", config=config) == [[], 0, 0]
