"""Random programs over random tensors, against a NumPy model of what Kompute's operations mean.

The model: a `device` tensor is two arrays, the host's copy and the device's contents, that only OpSyncDevice and
OpSyncLocal carry over; `host` and `deviceAndHost` are one array seen from both sides; `storage` has the device's side
only. A submission happens at once, in the order of submission, whichever sequence it comes from. The host looks at its
copies, or changes them, only when nothing runs; `read()` and `write()` may come at any time.
"""

from __future__ import annotations

import functools
import gc
import logging
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import kompute_py as kp
from tests.child import run_child
from tests.drivers import null_control

# Not from conftest: a child that imported it would be given the tests' own driver.
RUNS_SHADERS = os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe") != "null"
AFFINE = """
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Params { uint scale; uint offset; };
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, n = min(a.length(), b.length());
    if (i < n) b[i] = b[i] * scale + a[n - 1 - i] + offset;
}
"""
MEMORY_TYPES = tuple(kp.MemoryTypes)
WORDS = st.integers(0, 2**32 - 1)
compiled = functools.cache(kp.compile)

sizes = st.sampled_from([1, 2, 3, 31, 32, 33, 100, 256, 1000])
tensors = st.lists(st.sampled_from(MEMORY_TYPES), min_size=2, max_size=6)
index = st.integers(0, 5)  # of a tensor, modulo how many there are
several = st.lists(index, min_size=1, max_size=4)
operations = st.one_of(
    st.tuples(st.just("upload"), several),
    st.tuples(st.just("download"), several),
    st.tuples(st.just("copy"), index, several),
    st.tuples(st.just("fill"), several, WORDS),
    st.tuples(st.just("dispatch"), index, index, WORDS, WORDS),
    st.tuples(st.just("dispatch"), index, index, WORDS, WORDS),
)
place = st.integers(0, 999)  # of an element, modulo how many there are
parts = st.tuples(index, place, st.integers(1, 1000))
operations = st.one_of(
    operations,
    st.tuples(st.just("upload part"), parts),
    st.tuples(st.just("download part"), parts),
    st.tuples(st.just("fill part"), parts, WORDS),
    st.tuples(st.just("fill halves"), parts, st.integers(0, 2**16 - 1)),
    st.tuples(st.just("copy part"), parts, index, place),
    st.tuples(st.just("dispatch parts"), index, index, st.integers(0, 1000), WORDS, WORDS),
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
    st.tuples(st.just("read part"), parts),
    st.tuples(st.just("write part"), parts, WORDS),
    st.tuples(st.just("map part"), parts, WORDS),
    st.tuples(st.just("fill now"), parts, WORDS),
    st.tuples(st.just("copy now"), parts, index, place),
)


class Model:
    """What one tensor holds, in NumPy."""

    def __init__(self, memory_type, data):
        self.memory_type = memory_type
        self.device = data.copy()
        if memory_type is kp.MemoryTypes.device:
            self.host = data.copy()
        else:
            self.host = None if memory_type is kp.MemoryTypes.storage else self.device

    def upload(self, part=slice(None)):
        if self.memory_type is kp.MemoryTypes.device:
            self.device[part] = self.host[part]

    def download(self, part=slice(None)):
        if self.memory_type is kp.MemoryTypes.device:
            self.host[part] = self.device[part]


def ramp(count, start):
    return (np.arange(count, dtype=np.uint64) * 2654435761 + start).astype(np.uint32)


class Run:
    """A program in progress, on the device and in the model."""

    def __init__(self, mgr, size, memory_types, dispatch):
        self.mgr = mgr
        self.dispatch = dispatch
        self.size = size
        data = [ramp(size, 1000 * i) for i in range(len(memory_types))]
        self.tensors = [mgr.tensor_t(d, kind) for d, kind in zip(data, memory_types, strict=True)]
        self.models = [Model(kind, d) for d, kind in zip(data, memory_types, strict=True)]
        # As Kompute leaves it, the device's side of a tensor is undefined before the first upload.
        mgr.sequence().eval(kp.OpSyncDevice(self.tensors))
        self.sequences = [mgr.sequence(number % len(mgr.queues)) for number in range(3)]
        self.recorded = [[] for _ in range(3)]
        self.running = [False] * 3
        self.fences = []

    def pick(self, indices):
        """Positions of different tensors, in order."""
        return list(dict.fromkeys(i % len(self.tensors) for i in indices))

    def part(self, chosen):
        """Which tensor, and which of its elements."""
        position, start, count = chosen
        start %= self.size
        return position % len(self.tensors), slice(start, min(start + count, self.size))

    def room(self, chosen, target, place):
        """Two parts of one length, in different tensors or apart from each other; None where there is no room."""
        source, part = self.part(chosen)
        target, place = target % len(self.tensors), place % self.size
        count = min(part.stop - part.start, self.size - place)
        if source == target:
            if place <= part.start:
                count = min(count, part.start - place)
            else:
                count = min(count, place - part.start)
        if count < 1:
            return None
        return source, slice(part.start, part.start + count), target, slice(place, place + count)

    def translate_part(self, name, rest):
        if name == "dispatch parts":
            pair, (start, scale, offset) = self.pick(rest[:2]), rest[2:]
            # Parts that are bound begin where the device lets descriptors begin; 64 elements suit every driver here.
            start = start % self.size // 64 * 64
            if len(pair) < 2 or not self.dispatch:
                return None
            a, b = (self.models[i] for i in pair)
            part = slice(start, self.size)
            return self.affine([self.tensors[i][part] for i in pair], a, b, part, scale, offset)
        if name == "copy part":
            room = self.room(*rest)
            if room is None:
                return None
            source, part, target, other = room
            copied = kp.OpCopyRange(
                self.tensors[source], self.tensors[target], source_offset=part.start, target_offset=other.start,
                count=part.stop - part.start,
            )  # fmt: skip
            return copied, lambda: np.copyto(
                self.models[target].device[other], self.models[source].device[part]
            )
        position, part = self.part(rest[0])
        tensor, model = self.tensors[position][part], self.models[position]
        if name == "upload part":
            return kp.OpSyncDevice([tensor]), lambda: model.upload(part)
        if name == "download part":
            return kp.OpSyncLocal([tensor]), lambda: model.download(part)
        if name == "fill halves":
            halves = np.uint16(rest[1])
            value = int(halves) << 16 | int(halves)
            return kp.OpFill([tensor], halves.tobytes()), lambda: model.device[part].fill(value)
        return kp.OpFill([tensor], rest[1]), lambda: model.device[part].fill(rest[1])

    def affine(self, tensors, a, b, part, scale, offset):
        algorithm = self.mgr.algorithm(tensors, compiled(AFFINE), (-(-tensors[0].size() // 32), 1, 1))

        def effect():
            wide = b.device[part].astype(np.uint64) * scale + a.device[part][::-1] + offset
            b.device[part] = wide.astype(np.uint32)

        return kp.OpAlgoDispatch(algorithm, [scale, offset]), effect

    def translate(self, operation):
        """(the operation, its effect on the models), or None where the choice makes no sense."""
        name, *rest = operation
        if "part" in name or "halves" in name:
            return self.translate_part(name, rest)
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
        pair, (scale, offset) = self.pick(rest[:2]), rest[2:]
        if len(pair) < 2 or not self.dispatch:
            return None
        a, b = (self.models[i] for i in pair)
        return self.affine([self.tensors[i] for i in pair], a, b, slice(None), scale, offset)

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
        for fence in self.fences:
            fence.wait()
        self.fences.clear()
        for number in numbers:
            if self.running[number]:
                self.sequences[number].eval_await()
                self.running[number] = False

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
        elif name == "copy now":
            room = self.room(*rest)
            if room is not None:
                source, part, target, other = room
                self.fences.append(self.tensors[target][other].copy_from(self.tensors[source][part]))
                self.models[target].device[other] = self.models[source].device[part]
        elif "part" in name or name == "fill now":
            self.part_step(name, *rest)
        else:
            position = rest[0] % len(self.tensors)
            self.host_step(name, self.tensors[position], self.models[position], *rest[1:])

    def part_step(self, name, chosen, *rest):
        position, part = self.part(chosen)
        tensor, model, count = self.tensors[position], self.models[position], part.stop - part.start
        if name == "read part":
            np.testing.assert_array_equal(tensor.read(region=part), model.device[part])
        elif name == "write part":
            tensor.write(ramp(count, rest[0]), region=part)
            model.device[part] = ramp(count, rest[0])
        elif name == "fill now":
            self.fences.append(tensor[part].fill(rest[0]))
            model.device[part] = rest[0]
        else:
            with tensor[part].map(read=True, write=True) as array:
                np.testing.assert_array_equal(array, model.device[part])
                array[:] = ramp(count, rest[0])
            model.device[part] = ramp(count, rest[0])

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

    def check(self):
        self.finish()
        for number, (tensor, model) in enumerate(zip(self.tensors, self.models, strict=True)):
            note(f"tensor {number}: {tensor!r}")
            if model.host is not None:
                np.testing.assert_array_equal(tensor.data(), model.host)
            np.testing.assert_array_equal(tensor.read(), model.device)


def explore(mgr, dispatch, examples):
    """Lets hypothesis look for a program that goes wrong on `mgr`."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(size=sizes, memory_types=tensors, program=st.lists(steps, min_size=1, max_size=12))
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
    explore(make_manager(0, [0, 0]), RUNS_SHADERS, 200)


def explore_null():
    logging.getLogger("kompute_py").setLevel(logging.ERROR)
    mgr = kp.Manager(0, [0, 1])
    explore(mgr, False, 200)
    mgr.destroy()
    del mgr
    gc.collect()
    control = null_control()
    return control.violations(), control.live(), kp.alive()


@pytest.mark.own_driver
@pytest.mark.parametrize("memory", ["discrete", "noncoherent", "exotic", "unified"])
def test_programs_on_other_memory(memory):
    """Memory that lavapipe does not have: not visible to the host, or carried over by flush and invalidate alone.

    The null driver copies and fills; each submission takes a while, on one of two queue families.
    """
    assert run_child(explore_null, driver="null", config=f"memory={memory},gpu_us=20") == [[], 0, 0]
