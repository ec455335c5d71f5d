"""Hazards: operations that follow each other on the same memory, with nothing said about synchronization.

Results alone prove little, since CPU drivers run dispatches one after the other whatever the barriers. So
random programs also run under both synchronization validators of `tests.drivers`, which must stay silent, and
operations that lie about what they use must make each of them speak.
"""

from __future__ import annotations

import functools
import logging
import os
import random
from types import SimpleNamespace

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import LAYERS, PROFILES
from tests.support.child import run_child

COUNT = 4096
ADD = """
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Params { float factor; };
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < b.length()) b[i] = b[i] * factor + a[i]; }
"""
REVERSE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x, n = b.length(); if (i < n) b[i] = a[n - 1 - i] + 1.0; }
"""
GROUPS = (COUNT // 64, 1, 1)
# Not from conftest: a child that imported it would be given the tests' own driver and layer.
DRIVER = os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe")
compiled = functools.cache(kp.compile)


# -- right results -------------------------------------------------------------------------------------------


@pytest.mark.capability("K62", "order without barriers of one's own", "Manager.sequence", "concepts/ordering")
def test_a_chain_of_dispatches(mgr):
    """Each dispatch reads what the one before wrote at other places: any overlap in time would show."""
    data = np.arange(COUNT, dtype=np.float32)
    a, b = mgr.tensor(data), mgr.zeros(COUNT)
    there, back = (mgr.algorithm(pair, compiled(REVERSE), GROUPS) for pair in ([a, b], [b, a]))
    seq = mgr.sequence().record(kp.OpSyncDevice([a]))
    for _ in range(50):
        seq.record(kp.OpAlgoDispatch(there)).record(kp.OpAlgoDispatch(back))
    seq.record(kp.OpSyncLocal([a])).eval()
    np.testing.assert_array_equal(a.data(), data + 100)


def test_a_chain_that_adds_up(mgr):
    """Fibonacci by turns: read-after-write, write-after-read and write-after-write on both tensors."""
    a, b = mgr.tensor(np.ones(COUNT)), mgr.tensor(np.ones(COUNT))
    forth, back = (mgr.algorithm(pair, compiled(ADD), GROUPS, [], [1.0]) for pair in ([a, b], [b, a]))
    seq = mgr.sequence().record(kp.OpSyncDevice([a, b]))
    for _ in range(10):
        seq.record(kp.OpAlgoDispatch(forth)).record(kp.OpAlgoDispatch(back))
    seq.eval()
    first, second = 1, 1
    for _ in range(10):
        second += first
        first += second
    assert set(a.read()) == {first} and set(b.read()) == {second}


def test_copies_fills_and_dispatches_in_turn(mgr):
    a, b, c = (mgr.zeros(COUNT, memory_type=kind) for kind in ("device", "storage", "host"))
    add = mgr.algorithm([a, c], compiled(ADD), GROUPS, [], [2.0])
    seq = mgr.sequence()
    expected_c = 0.0
    seq.record(kp.OpFill([c], 0.0))
    for step in range(20):
        seq.record(kp.OpFill([a, b], step)).record(kp.OpAlgoDispatch(add)).record(kp.OpCopy([c, b, a]))
        expected_c = expected_c * 2 + step
    seq.eval()
    assert set(a.read()) == set(b.read()) == set(c.read()) == {np.float32(expected_c)}


@pytest.mark.capability(
    "S41", "work in order, whichever sequence it is in", "Manager.sequence", "concepts/ordering"
)
def test_chains_across_sequences(mgr):
    """Submissions follow each other with no wait in between, on one queue or several of them."""
    data = np.arange(COUNT, dtype=np.float32)
    a, b = mgr.tensor(data), mgr.zeros(COUNT)
    sequences = []
    for pair in ([a, b], [b, a]):
        sequences.append(
            mgr.sequence().record(kp.OpAlgoDispatch(mgr.algorithm(pair, compiled(REVERSE), GROUPS)))
        )
    mgr.sequence().eval(kp.OpSyncDevice([a]))
    for _ in range(10):
        for seq in sequences:
            seq.eval_async()
        for seq in sequences:
            seq.eval_await()
    np.testing.assert_array_equal(a.read(), data + 20)


def test_only_what_conflicts_is_ordered(mgr):
    """Independent operations need no barrier: the recording of reads and of separate tensors has none between
    them.
    """
    tensors = [mgr.zeros(16) for _ in range(6)]
    fan_out = [kp.OpCopy([tensors[0], *tensors[1:4]]), kp.OpCopy([tensors[0], *tensors[4:]])]
    apart = [kp.OpCopy(tensors[:2]), kp.OpCopy(tensors[2:4])]
    chain = [kp.OpCopy(tensors[:2]), kp.OpCopy(tensors[1:3])]
    barriers = []
    for first, second in (fan_out, apart, chain):
        seq = mgr.sequence().record(first).record(second).eval()
        barriers.append(sum(before == 1 for before, *_ in seq._native.barriers()))
    assert barriers == [0, 0, 1]


# -- under the validators ------------------------------------------------------------------------------------


class Recorder(logging.Handler):
    """Collects the validation layer's messages; `hazards` are those of synchronization validation."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []
        logging.getLogger("kompute_py").addHandler(self)

    def emit(self, record):
        if hasattr(record, "validation_id"):
            self.texts.append(record.getMessage())

    @property
    def hazards(self):
        return [text for text in self.texts if "SYNC-HAZARD" in text]


class Machine:
    """A Manager with validation on, tensors of all kinds, and random operations over them."""

    def __init__(self, seed, queues=(0,)):
        self.random = random.Random(seed)
        self.mgr = kp.Manager(0, queues, validation=True)
        assert self.mgr.validation
        self.tensors = [
            self.mgr.tensor(np.ones(COUNT), kind)
            for kind in ("device", "device", "host", "storage", "deviceAndHost")
        ]
        self.images = [self.mgr.image(np.ones((64, 64), np.float32)) for _ in range(2)]
        self.groups = self.mgr.tensor_t(np.ones(6, np.uint32))
        pairs = [(a, b) for a in self.tensors for b in self.tensors if a is not b]
        self.algorithms = [
            self.mgr.algorithm(list(pair), compiled(code), GROUPS, [], [0.5] if code == ADD else [])
            for pair in self.random.sample(pairs, 6)
            for code in (ADD, REVERSE)
        ]

    def operation(self):
        pick = self.random
        some = pick.sample(self.tensors, pick.randint(2, 4))
        return pick.choice(
            [
                lambda: kp.OpSyncDevice(some + pick.sample(self.images, pick.randint(0, 2))),
                lambda: kp.OpSyncLocal(some + pick.sample(self.images, pick.randint(0, 2))),
                self.repeat,
                *[self.on_the_device] * 6,
            ]
        )()

    def on_the_device(self):
        pick = self.random
        some = pick.sample(self.tensors, pick.randint(2, 4))
        return pick.choice(
            [
                lambda: kp.OpCopy(some),
                lambda: kp.OpCopy(pick.sample(self.images, 2)),
                lambda: kp.OpFill(some, pick.random()),
                lambda: kp.OpFill([self.groups[: pick.choice((3, 6))]], 1),
                lambda: self.indirect(),
                lambda: kp.OpAlgoDispatch(pick.choice(self.algorithms)),
                lambda: kp.OpAlgoDispatch(pick.choice(self.algorithms)),
                lambda: kp.OpAlgoDispatch(pick.choice(self.algorithms)),
            ]
        )()

    def indirect(self):
        pick = self.random
        return kp.OpAlgoDispatch(
            pick.choice(self.algorithms), indirect=self.groups, offset=pick.choice((0, 1, 3))
        )

    def repeat(self):
        pick = self.random
        a, b, c, d = pick.sample(self.tensors, 4)
        swap = pick.choice(([], [(a, b)], [(a, b), (c, d)]))
        operations = [self.on_the_device() for _ in range(pick.randint(1, 4))]
        return kp.OpRepeat(operations, pick.choice((0, 1, 2, 5, 40)), swap=swap)

    def program(self, queue=0):
        seq = self.mgr.sequence(queue)
        for _ in range(self.random.randint(1, 8)):
            seq.record(self.operation())
        return seq


def run_random_programs(seeds, queues):
    """Programs one by one, replayed, and in flight together; returns what was logged."""
    recorder = Recorder()
    for seed in seeds:
        machine = Machine(seed, queues)
        sequences = [machine.program(queue) for queue in range(len(queues)) for _ in range(3)]
        for seq in sequences:
            seq.eval()
        for _ in range(3):
            for seq in machine.random.sample(sequences, len(sequences)):
                seq.eval_async()
            for seq in machine.random.sample(sequences, len(sequences)):
                seq.eval_await()
            replaced = machine.random.randrange(len(sequences))
            sequences[replaced] = machine.program(replaced % len(queues))
        for memory in machine.tensors + machine.images:
            memory.write(memory.read() + 1)
        machine.mgr.destroy()
    return recorder.texts


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("queues", [(0,), (0, 0)], ids=["one queue", "two sequences' queues"])
def test_validators_are_silent_about_random_programs(layer, queues):
    assert run_child(run_random_programs, list(range(16)), queues, driver=DRIVER, layer=layer) == []


@pytest.mark.own_driver
@pytest.mark.parametrize("layer", LAYERS)
def test_validators_are_silent_on_several_queue_families(layer):
    """The null driver has families and queues enough; it runs no shader, which validation does not need."""
    assert run_child(run_random_programs, list(range(20, 36)), (0, 0, 1), driver="null", layer=layer) == []


@pytest.mark.own_driver
@pytest.mark.parametrize("profile", PROFILES)
def test_validators_are_silent_on_every_kind_of_device(profile):
    seeds, config = list(range(40, 44)), f"profile={profile}"
    assert run_child(run_random_programs, seeds, (0, 0, 1), driver="null", layer="newer", config=config) == []


# -- seeded hazards ------------------------------------------------------------------------------------------


class Lie(kp.OpBase):
    """Says that it uses nothing, and runs `commands(vk, command buffer)`: no barrier stands before or after
    it.
    """

    def __init__(self, commands):
        self.commands = commands
        self.reads, self.writes = [], []

    def record(self, cmd):
        import vulkan as vk

        self.commands(vk, cmd.vk_command_buffer)


def lying_copy(source, target):
    def commands(vk, command_buffer):
        region = vk.VkBufferCopy(srcOffset=source.vk_offset, dstOffset=target.vk_offset, size=source.nbytes)
        vk.vkCmdCopyBuffer(command_buffer, source.vk_buffer, target.vk_buffer, 1, [region])

    return Lie(commands)


def lying_dispatch(algorithm):
    def commands(vk, command_buffer):
        point = vk.VK_PIPELINE_BIND_POINT_COMPUTE
        vk.vkCmdBindPipeline(command_buffer, point, algorithm.vk_pipeline)
        sets = algorithm.vk_descriptor_sets
        vk.vkCmdBindDescriptorSets(
            command_buffer, point, algorithm.vk_pipeline_layout, 0, len(sets), sets, 0, None
        )
        vk.vkCmdDispatch(command_buffer, *algorithm.workgroup)

    return Lie(commands)


# Programs over the tensors a, b, c: (operations, the hazard in them).
WAW, RAW, WAR = "WRITE-AFTER-WRITE", "READ-AFTER-WRITE", "WRITE-AFTER-READ"
SEEDED = {
    "copy, copy: write after write": (lambda t: [lying_copy(t.a, t.c), lying_copy(t.b, t.c)], WAW),
    "copy, copy: read after write": (lambda t: [lying_copy(t.a, t.b), lying_copy(t.b, t.c)], RAW),
    "copy, copy: write after read": (lambda t: [lying_copy(t.a, t.b), lying_copy(t.c, t.a)], WAR),
    "ours, then a lie": (lambda t: [kp.OpCopy([t.a, t.b]), lying_copy(t.c, t.b)], WAW),
    "a lie, then ours": (lambda t: [lying_copy(t.c, t.b), kp.OpCopy([t.a, t.b])], WAW),
    "copy, dispatch: read after write": (lambda t: [lying_copy(t.c, t.a), lying_dispatch(t.ab)], RAW),
    "dispatch, copy: read after write": (lambda t: [lying_dispatch(t.ab), lying_copy(t.b, t.c)], RAW),
    "dispatch, dispatch: read after write": (lambda t: [lying_dispatch(t.ab), lying_dispatch(t.bc)], RAW),
}
# What Debian's layer does not see.
SEEDED_FOR_THE_NEWER = {
    "dispatch, dispatch: write after write": (lambda t: [lying_dispatch(t.ac), lying_dispatch(t.bc)], WAW),
    "dispatch, dispatch: write after read": (lambda t: [lying_dispatch(t.ab), lying_dispatch(t.ba)], WAR),
    "across submissions": (lambda t: [[lying_copy(t.a, t.c)], [lying_copy(t.b, t.c)]], WAW),
}
TRUE = {
    "told truly": (
        lambda t: [
            kp.OpCopy([t.a, t.c]),
            kp.OpCopy([t.b, t.c]),
            kp.OpAlgoDispatch(t.ab),
            kp.OpAlgoDispatch(t.ba),
            kp.OpAlgoDispatch(t.bc),
        ],
        None,
    ),
    # The read orders the writes: the second needs no memory barrier behind the first.
    "two writes with a dispatch's read between": (
        lambda t: [
            kp.OpAlgoDispatch(t.ac), kp.OpAlgoDispatch(t.cb), kp.OpAlgoDispatch(t.ac), kp.OpCopy([t.c, t.b]),
            kp.OpAlgoDispatch(t.ba), kp.OpCopy([t.c, t.b]),
        ],
        None,
    ),
    "told truly across submissions": (
        lambda t: [[kp.OpCopy([t.a, t.c])], [kp.OpCopy([t.b, t.c])], [kp.OpAlgoDispatch(t.ac)]],
        None,
    ),
}  # fmt: skip
PROGRAMS = {"debian": {**TRUE, **SEEDED}, "newer": {**TRUE, **SEEDED, **SEEDED_FOR_THE_NEWER}}


def run_seeded(layer):
    """Runs each program on a Manager of its own; returns what the validator reported: {kind: names of
    hazards}.
    """
    recorder = Recorder()
    names = {}
    for kind, (program, _) in PROGRAMS[layer].items():
        recorder.texts.clear()
        with kp.Manager(0, validation=True) as mgr:
            a, b, c = (mgr.tensor(np.ones(COUNT), "storage") for _ in range(3))
            pairs = {"ab": [a, b], "ba": [b, a], "ac": [a, c], "bc": [b, c], "cb": [c, b]}
            algorithms = {
                name: mgr.algorithm(pair, compiled(REVERSE), GROUPS) for name, pair in pairs.items()
            }
            operations = program(SimpleNamespace(a=a, b=b, c=c, **algorithms))
            if not isinstance(operations[0], list):
                operations = [operations]
            sequences = [mgr.sequence().record(*submission).eval_async() for submission in operations]
            for seq in sequences:
                seq.eval_await()
        assert recorder.hazards == recorder.texts
        names[kind] = sorted({text.partition(":")[0] for text in recorder.texts})
    return names


@functools.cache
def reported(layer):
    return run_child(run_seeded, layer, driver="lavapipe", layer=layer)


@pytest.mark.own_driver
@pytest.mark.parametrize(("layer", "kind"), [(layer, kind) for layer in LAYERS for kind in PROGRAMS[layer]])
def test_what_validators_say_about_seeded_hazards(layer, kind):
    _, hazard = PROGRAMS[layer][kind]
    names = reported(layer)[kind]
    if hazard is None:
        assert names == []
    else:
        assert any(hazard in name for name in names), names
