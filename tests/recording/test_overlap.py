"""What overlaps and what never does: queues among each other, and the host with the device.

On the null driver each submission takes as long as it is told to, asleep on a thread of its queue, and
executes its copies and fills at the end of that time. So two queues that overlap take one such time, and what
is ordered takes two, on any machine.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import PROFILES, null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

TIME = 0.2  # seconds that each submission takes
CONFIG = f"gpu_us={int(TIME * 1e6)}"
FAMILIES = [0, 0, 1]


def took(call):
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def at_best(call, enough):
    """The least time of some calls, up to the first that took less than `enough`: the machine may be busy."""
    times = []
    while len(times) < 40 and min(times, default=enough) >= enough:
        times.append(took(call))
    return min(times)


def together(first, second):
    first.eval_async()
    second.eval_async()
    first.eval_await()
    second.eval_await()


def open_queues():
    mgr = kp.Manager(family_queue_indices=FAMILIES, validation=True)
    a, b, c = (mgr.tensor(np.full(64, i, np.float32)) for i in range(3))
    sync = mgr.sequence().eval(kp.OpSyncDevice([a, b, c]))
    return mgr, a, b, c, sync


def check_independent(first, second):
    mgr, a, b, c, _ = open_queues()
    one = mgr.sequence(first).record(kp.OpCopy([a, b]))
    # `a` is read by both, which is no reason to wait.
    other = mgr.sequence(second).record(kp.OpCopy([a, c]))
    together(one, other)
    best = at_best(lambda: together(one, other), 1.6 * TIME)
    assert best < 1.6 * TIME, f"{best:.3f} s for two that take {TIME} s each"
    host = at_best(lambda: (one.eval_async(), time.sleep(TIME), one.eval_await()), 1.6 * TIME)
    assert host < 1.6 * TIME, f"{host:.3f} s for a device and a host that take {TIME} s each"
    assert b.read()[0] == c.read()[0] == 0 and not null_control().violations()


@pytest.mark.parametrize("queues", [(0, 1), (0, 2), (2, 1)])
def test_independent_work_overlaps(queues):
    run_child(check_independent, *queues, driver="null", layer="newer", config=CONFIG)


def check_dependent(first, second):
    mgr, a, b, c, _ = open_queues()
    writes = mgr.sequence(first).record(kp.OpCopy([a, b]))
    reads = mgr.sequence(second).record(kp.OpCopy([b, c]))
    overwrites = mgr.sequence(second).record(kp.OpCopy([c, b]))
    sem = mgr.semaphore()
    unrelated = [mgr.sequence(q).record(kp.OpSyncDevice([mgr.zeros(4)])) for q in (first, second)]

    def declared():
        value = sem.query()
        unrelated[0].eval_async(signal=(sem, value + 1))
        unrelated[1].eval_async(wait=(sem, value + 1))
        for seq in unrelated:
            seq.eval_await()

    for name, run in {
        "a write, then a read": lambda: together(writes, reads),
        "a read, then a write": lambda: together(reads, writes),
        "two writes": lambda: together(writes, overwrites),
        "a semaphore": declared,
    }.items():
        # A sleep is never shorter than asked for, so this cannot fail by chance; once is as good as many
        # times.
        assert took(run) >= 1.99 * TIME, name
    assert not null_control().violations()


@pytest.mark.parametrize("queues", [(0, 1), (2, 0)])
def test_dependent_work_never_overlaps(queues):
    run_child(check_dependent, *queues, driver="null", layer="newer", config=CONFIG)


def check_disjoint_sequences_of_one_queue():
    """The other side of the first test: one queue takes one after the other."""
    mgr, a, b, c, _ = open_queues()
    one, other = mgr.sequence().record(kp.OpCopy([a, b])), mgr.sequence().record(kp.OpCopy([a, c]))
    assert took(lambda: together(one, other)) >= 1.99 * TIME


def test_one_queue_does_not_overlap_with_itself():
    run_child(check_disjoint_sequences_of_one_queue, driver="null", config=CONFIG)


def check_disjoint_parts(declared):
    """Two queues write parts of one tensor: one after the other, unless the script says that the parts do not
    meet.
    """
    mgr = kp.Manager(family_queue_indices=FAMILIES, validation=True)
    source, whole = mgr.full(64, 7.0), mgr.zeros(128)
    first = mgr.sequence(0, disjoint=[whole] if declared else ()).record(kp.OpCopy([source, whole[:64]]))
    second = mgr.sequence(2).record(kp.OpCopy([source, whole[64:]]))
    mgr.synchronize()
    together(first, second)
    least = at_best(lambda: together(first, second), 1.6 * TIME if declared else float("inf"))
    if declared:
        assert least < 1.6 * TIME
        # What waits for the tensor waits for both, and held work does not hold the other back.
        gate = mgr.semaphore()
        first.eval_async(wait=(gate, 1))
        second.eval()
        gate.signal(1)
    else:
        assert least >= 1.99 * TIME
    assert (whole.read() == 7).all()
    first.fence.wait()
    assert not null_control().violations()


@pytest.mark.parametrize("declared", [True, False])
def test_parts_that_are_said_to_be_disjoint_overlap(declared):
    run_child(check_disjoint_parts, declared, driver="null", config=CONFIG)


def test_disjoint_is_checked(mgr, make_manager):
    tensor = mgr.zeros(4)
    assert mgr.sequence(disjoint=tensor).record(kp.OpSyncDevice([tensor])).eval()
    with pytest.raises(kp.ArgumentTypeError, match="disjoint"):
        mgr.sequence(disjoint=3)
    with pytest.raises(kp.ArgumentTypeError, match="disjoint"):
        mgr.sequence(disjoint=[3])
    with pytest.raises(kp.InvalidArgumentError, match="another Manager"):
        mgr.sequence(disjoint=[make_manager().zeros(4)])
    tensor.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        mgr.sequence(disjoint=[tensor])


def check_random_orders(seed):
    """Copies between few tensors on all queues, all submitted before any is waited for, end as if done one by
    one.
    """
    rng = np.random.default_rng(seed)
    mgr = kp.Manager(family_queue_indices=[0, 0, 1, 1], validation=True)
    tensors = [mgr.tensor_t(np.full(16, i, np.int32)) for i in range(5)]
    mgr.sequence().eval(kp.OpSyncDevice(tensors))
    model = list(range(5))
    sequences = []
    for _ in range(60):
        source, target = (int(i) for i in rng.choice(5, 2, replace=False))
        sequences.append(
            mgr.sequence(int(rng.integers(4))).record(kp.OpCopy([tensors[source], tensors[target]]))
        )
        sequences[-1].eval_async()
        model[target] = model[source]
        if rng.random() < 0.1:
            sequences[int(rng.integers(len(sequences)))].fence.wait()
    for seq in sequences:
        seq.fence.wait()
    assert [t.read().tolist() for t in tensors] == [[value] * 16 for value in model]
    assert not null_control().violations()


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("seed", "device"),
    [(seed, "memory=discrete") for seed in range(3)] + [(3, f"profile={p}") for p in PROFILES],
)
def test_random_orders_hold(seed, device):
    run_child(check_random_orders, seed, driver="null", layer="newer", config=f"{device},gpu_us=3000")


def check_streaming():
    """Frames through a queue for transfers alone: uploads, computing and downloads of neighbours at once,
    each frame's in order.
    """
    mgr = kp.Manager(family_queue_indices=[0, 2], validation=True)
    src, dst = mgr.zeros(64), mgr.zeros(64)
    seq = mgr.sequence().record(kp.OpCopy([src, dst]))
    mgr.synchronize()
    frames = [np.full(64, i, np.float32) for i in range(16)]

    control = null_control()
    with control.logging():
        for i, out in enumerate(seq.stream(frames, inputs=[src], outputs=[dst], depth=3)):
            assert (out == i).all()
    families, copies = (
        [],
        [],
    )  # of each submission in the order of execution: its queue's family, (from, to) of its copies
    for command in control.commands():
        if command["op"] == "submit":
            families.append(command["family"])
            copies.append([])
        elif command["op"] == "copy_buffer":
            copies[-1].append((command["src"], command["dst"]))
    work = [(family, *each[0]) for family, each in zip(families, copies, strict=True) if len(each) == 1]
    computing = [i for i, (family, _, _) in enumerate(work) if family == 0]
    read, written = ({work[i][side] for i in computing} for side in (1, 2))
    uploads = [i for i, (family, _, to) in enumerate(work) if family == 2 and to in read]
    downloads = [i for i, (family, source, _) in enumerate(work) if family == 2 and source in written]
    assert len(uploads) == len(computing) == len(downloads) == len(frames), work
    for n in range(len(frames)):
        assert uploads[n] < computing[n] < downloads[n]
        if n + 1 < len(frames):
            assert uploads[n + 1] < downloads[n], (
                "the upload of a frame waits for the download of the one before"
            )
    assert not control.violations()


def test_streaming_moves_frames_beside_computing():
    run_child(check_streaming, driver="null", layer="newer", config="gpu_us=3000")


def check_least_busy():
    mgr, a, b, c, _ = open_queues()
    taken = [mgr.sequence([0, 1, 2]).queue_index for _ in range(6)]
    assert sorted(taken) == [0, 0, 1, 1, 2, 2]  # idle queues take turns
    with null_control().pausing():
        one = mgr.sequence(0).record(kp.OpCopy([a, b])).eval_async()
        assert {mgr.sequence([0, 1]).queue_index for _ in range(4)} == {1}
        two = mgr.sequence(1).record(kp.OpCopy([a, c])).eval_async()
        assert {mgr.sequence([0, 1, 2]).queue_index for _ in range(4)} == {2}
        assert mgr.sequence(range(1, 2)).queue_index == 1
    one.eval_await()
    two.eval_await()
    with pytest.raises(kp.OutOfRangeError, match="queue_index is 3"):
        mgr.sequence([0, 3])
    with pytest.raises(kp.InvalidArgumentError, match="queue_index is empty"):
        mgr.sequence([])
    with pytest.raises(kp.ArgumentTypeError, match="queue_index"):
        mgr.sequence(["0"])


@pytest.mark.capability("S33", "the least busy queue of a set", "Manager.sequence", "guides/several_devices")
def test_queue_sets():
    run_child(check_least_busy, driver="null", layer="newer", config=CONFIG)
