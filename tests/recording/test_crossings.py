"""The order between queues, whatever becomes of the sequences that it is between.

On the null driver each submission takes as long as it is told to, asleep on a thread of its queue, and
executes its copies at the end of that time. So work that starts too early reads or writes too early, and the
contents at the end are others than those of the same steps one by one.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

QUEUES = [0, 0, 1, 1]
SIZE = 16
TENSORS = 5


class CopyRaw(kp.OpBase):
    """Copies a tensor through the PyPI package `vulkan`, and declares nothing."""

    def __init__(self, source, target):
        self.source, self.target = source, target

    def record(self, cmd):
        import vulkan as vk

        region = vk.VkBufferCopy(
            srcOffset=self.source.vk_offset, dstOffset=self.target.vk_offset, size=self.source.vk_size
        )
        vk.vkCmdCopyBuffer(cmd.vk_command_buffer, self.source.vk_buffer, self.target.vk_buffer, 1, [region])


class Program:
    """Random sequences of all queues that copy between few tensors; `model` has what they should hold."""

    def __init__(self, seed, undeclared):
        self.rng = np.random.default_rng(seed)
        self.undeclared = undeclared
        self.mgr = kp.Manager(family_queue_indices=QUEUES, validation=True)
        self.tensors = [self.mgr.tensor_t(np.full(SIZE, i, np.int32)) for i in range(TENSORS)]
        self.mgr.sequence().eval(kp.OpSyncDevice(self.tensors))
        self.model = [[i] * SIZE for i in range(TENSORS)]
        self.sequences = []  # with the copies that each has recorded
        self.gate, self.raised = self.mgr.semaphore(), 0

    def below(self, count):
        return int(self.rng.integers(count))

    def copies(self):
        """Copies for one recording: of a whole tensor, or of a half."""
        made = []
        for _ in range(1 + self.below(3)):
            source, target = (int(i) for i in self.rng.choice(len(self.tensors), 2, replace=False))
            part = [slice(0, SIZE), slice(0, SIZE // 2), slice(SIZE // 2, SIZE)][self.below(3)]
            made.append((source, target, part))
        return made

    def record(self, seq, copies):
        for source, target, part in copies:
            a, b = self.tensors[source], self.tensors[target]
            if self.undeclared and self.below(6) == 0:
                seq.record(CopyRaw(a[part], b[part]))
            else:
                seq.record(kp.OpCopy([a[part], b[part]]))

    def make(self, queue=None):
        seq, copies = self.mgr.sequence(self.below(len(QUEUES)) if queue is None else queue), self.copies()
        self.record(seq, copies)
        self.sequences.append((seq, copies))
        return self.sequences[-1]

    def ran(self, copies):
        for source, target, part in copies:
            self.model[target][part] = self.model[source][part]

    def idle(self):
        """A sequence that may be submitted or changed."""
        if not self.sequences or self.below(5) == 0:
            return self.make()
        entry = self.sequences[self.below(len(self.sequences))]
        self.finish(entry[0])
        return entry

    def finish(self, seq):
        self.open()
        if seq.is_running():
            seq.eval_await()

    def open(self):
        """Lets held work go."""
        if self.gate.query() < self.raised:
            self.gate.signal(self.raised)

    def step(self):
        kind = self.below(10)
        if kind < 5:
            seq, copies = self.idle()
            seq.eval_async()
            self.ran(copies)
        elif kind == 5:  # held until the gate opens; all that must come after it is held, too
            seq, copies = self.idle()
            self.raised = self.gate.query() + 1
            seq.eval_async(wait=(self.gate, self.raised))
            self.ran(copies)
        elif kind == 6:  # two in one submission
            queue = self.below(len(QUEUES))
            both = [self.make(queue), self.make(queue)]
            self.mgr.submit([seq for seq, _ in both])
            for _, copies in both:
                self.ran(copies)
        elif kind == 7:  # another recording in the same sequence
            seq, copies = self.idle()
            seq.clear()
            copies[:] = self.copies()
            self.record(seq, copies)
        elif kind == 8:  # dropped while its work is running
            self.open()
            seq, copies = self.make()
            seq.eval_async()
            self.ran(copies)
            self.sequences.pop()
            del seq
            if len(self.sequences) > 8:
                del self.sequences[self.below(len(self.sequences))]
        elif kind == 9 and self.below(2) == 0:
            self.open()

    def check(self):
        self.open()
        for seq, _ in self.sequences:
            self.finish(seq)
        assert [t.read().tolist() for t in self.tensors] == self.model
        assert not null_control().violations()


def check_random_lives(seed, undeclared):
    gc.disable()  # sequences end where the program drops them
    program = Program(seed, undeclared)
    for _ in range(6):
        for _ in range(25):
            program.step()
        program.check()


@pytest.mark.parametrize("undeclared", [False, True], ids=["declared", "undeclared"])
@pytest.mark.parametrize("seed", range(4))
def test_random_lives_hold_the_order(seed, undeclared):
    if undeclared:
        pytest.importorskip("vulkan")
    run_child(check_random_lives, seed, undeclared, driver="null", layer="newer", config="gpu_us=1500")


TIME = 0.05


def check_contents_pass_from_one_to_the_next():
    """The writer and the readers of one tensor, of two queues, come and go in all orders."""
    mgr = kp.Manager(family_queue_indices=[0, 1], validation=True)
    source, shared = mgr.tensor_t(np.zeros(SIZE, np.int32)), mgr.tensor_t(np.zeros(SIZE, np.int32))
    outs = [mgr.tensor_t(np.zeros(SIZE, np.int32)) for _ in range(3)]
    mgr.sequence().eval(kp.OpSyncDevice([source, shared, *outs]))

    # Work that the writer's comes after, on its queue: readers that do not wait are done before it.
    busy = mgr.sequence(0).record(kp.OpCopy([source, mgr.tensor_t(np.zeros(SIZE, np.int32))]))
    busy.eval()

    def writer():
        return mgr.sequence(0).record(kp.OpCopy([source, shared]))

    def reader(i):
        return mgr.sequence(1).record(kp.OpCopy([shared, outs[i]]))

    def written(value):
        source.write(np.full(SIZE, value, np.int32))
        busy.eval_async()
        return value

    # The reader is built while the writer is running.
    first = writer()
    value = written(1)
    first.eval_async()
    readers = [reader(0)]
    readers[0].eval_async().eval_await()
    assert outs[0].read()[0] == value

    # The writer is gone before its work, and the reader was built before.
    first.eval_await()
    value = written(2)
    first.eval_async()
    del first
    readers[0].eval_async().eval_await()
    assert outs[0].read()[0] == value

    # A writer comes while a reader that never had to wait for one is running.
    readers[0].eval()
    value, before = written(3), value
    readers[0].eval_async()
    second = writer()
    second.eval_async()
    readers[0].eval_await()
    assert outs[0].read()[0] == before
    readers.append(reader(1))
    readers[1].eval_async().eval_await()
    assert outs[1].read()[0] == value
    second.eval_await()

    # The same recording again, and one that no longer writes.
    value = written(4)
    second.eval_async()
    readers[1].eval_async().eval_await()
    assert outs[1].read()[0] == value
    second.eval_await()
    second.clear()
    second.record(kp.OpCopy([shared, outs[2]])).eval_async()
    for seq in (*readers, second):
        if seq is not second:
            seq.eval_async()
    for seq in (*readers, second):
        seq.eval_await()
    assert [int(out.read()[0]) for out in outs] == [value] * 3
    assert not null_control().violations()


def test_contents_pass_from_one_to_the_next():
    run_child(
        check_contents_pass_from_one_to_the_next,
        driver="null",
        layer="newer",
        config=f"gpu_us={int(TIME * 1e6)}",
    )


def check_what_a_submission_looks_at():
    """Beside how many other sequences a sequence stands changes nothing of what the driver is asked."""
    mgr = kp.Manager(family_queue_indices=[0, 1], validation=False)
    source, shared = mgr.zeros(SIZE), mgr.zeros(SIZE)
    control = null_control()
    asked = []
    sequences = []
    for count in (4, 64):
        while len(sequences) < count:
            sequences.append(mgr.sequence(len(sequences) % 2).record(kp.OpCopy([source, shared])))
            sequences[-1].eval()
        before = control.total_calls
        for seq in sequences[:4]:
            seq.eval()
        asked.append(control.total_calls - before)
    assert asked[0] == asked[1]


def test_a_submission_does_not_look_at_all_others():
    run_child(check_what_a_submission_looks_at, driver="null")
