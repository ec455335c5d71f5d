"""What `repr` and cards say of a host copy: whether the device's contents are newer.

Nothing is moved or waited for.
"""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import COPY

UNSENT, SAME, OLDER, UNKNOWN = (
    "; not on the device yet",
    "",
    "; the device's contents are newer",
    "; the device's contents may be newer",
)
NOTES = {UNSENT: "first use uploads it", SAME: "not tracked", OLDER: "are newer", UNKNOWN: "may be newer"}
ADD = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1; }
"""


def says(memory):
    """What `repr` says after the numbers; the card says the same in its own words."""
    text = repr(memory)
    assert ", host copy [" in text and text.endswith(">"), text
    said = text[text.rindex("]") + 1 : -1]
    assert said in NOTES, text
    assert NOTES[said] in memory._repr_html_().replace("&#x27;", "'"), (said, memory._repr_html_())
    return said


def test_the_page_lists_what_is_said():
    page = (Path(__file__).resolve().parents[2] / "docs/concepts/host_and_device.md").read_text()
    told = page.split("## Which copy is newer")[1].split("\n## ")[0]
    for said in NOTES:
        assert f"{said}>`" in told, said


def made(mgr, kind):
    if kind == "image":
        return mgr.image(np.ones((8, 8, 4), np.float32))
    return mgr.tensor(np.ones(256))


def run(mgr, *ops):
    seq = mgr.sequence()
    for op in ops:
        seq.record(op)
    return seq.eval()


@pytest.mark.parametrize("kind", ["tensor", "image", "result", "view", "strided", "host"])
def test_numpy_warns_of_an_older_copy(mgr, kind):
    """`data()` does not: it is there for edits."""
    whole = made(mgr, "image" if kind == "image" else "tensor")
    if kind == "result":
        whole = kp.ops.add(whole, 1)
    elif kind == "host":
        whole = mgr.tensor(np.ones(256), memory_type="host")
        run(mgr, kp.OpFill([whole], 3.0))
    else:
        assert whole.numpy().max() == 1
        whole.fill(2)
    looked_at = {"view": lambda: whole[:128], "strided": lambda: whole[::2]}.get(kind, lambda: whole)()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole.data(), repr(whole), whole._repr_html_(), whole.read()
        if kind == "host":
            mgr.synchronize()
            assert whole.numpy().max() == 3
            return
        with pytest.raises(kp.KomputeWarning, match=r"newer contents on the device .* read\(\) returns"):
            looked_at.numpy()
        run(mgr, kp.OpSyncLocal([whole]))
        assert looked_at.numpy().max() == 2


@pytest.mark.parametrize("kind", ["tensor", "image"])
def test_what_the_host_does(mgr, kind):
    t, other = made(mgr, kind), made(mgr, kind)
    assert says(t) == UNSENT
    t.data()[:] = 2
    assert says(t) == UNSENT
    assert t.read().max() == 2 and says(t) == SAME
    t.data()[:] = 3  # the host's own edits are not tracked
    assert says(t) == SAME
    t.write(np.full(t.shape, 4, np.float32))
    assert says(t) == OLDER
    run(mgr, kp.OpSyncLocal([t]))
    assert says(t) == SAME and t.data().max() == 4
    t.copy_from(other).wait()
    assert says(t) == OLDER and says(other) == SAME
    run(mgr, kp.OpSyncDevice([t]))
    assert says(t) == SAME and t.read().max() == 4
    made_of_it = t.to(mgr, copy=True)
    assert says(made_of_it) == SAME
    t.write(np.full(t.shape, 5, np.float32))
    assert says(t.to(mgr, copy=True)) == OLDER  # the host copy was copied as it is
    t.destroy()
    assert "host copy" not in repr(t) and "destroyed" in t._repr_html_()


def test_what_recordings_do(mgr):
    t, out = mgr.tensor(np.ones(256)), mgr.tensor(np.zeros(256))
    add, read = mgr.kernel(ADD), mgr.kernel(COPY)
    writes = mgr.sequence().record(add.bind(t))
    down, up = (mgr.sequence().record(op([t])) for op in (kp.OpSyncLocal, kp.OpSyncDevice))
    both = mgr.sequence().record(add.bind(t)).record(kp.OpSyncLocal([t]))
    after = mgr.sequence().record(kp.OpSyncLocal([t])).record(add.bind(t))
    reads = mgr.sequence().record(read.bind(t, out))
    assert says(t) == UNSENT  # what is only recorded did nothing
    for seq, expected in (
        (writes, OLDER),
        (down, SAME),
        (reads, SAME),
        (writes, OLDER),
        (reads, OLDER),
        (both, SAME),
        (after, OLDER),
        (up, SAME),
        (both, SAME),
        (writes, OLDER),
        (down, SAME),
        (after, OLDER),
    ):
        for _ in range(2):
            seq.eval()
            assert says(t) == expected
    assert says(out) == OLDER
    # What a recording did is known after it forgets the tensor.
    after.clear()
    assert says(t) == OLDER
    down.eval()
    down.destroy()
    del both, up, reads
    assert says(t) == SAME
    writes.eval()
    writes.record(add.bind(out))
    assert says(t) == OLDER
    add(t)
    assert says(t) == OLDER
    run(mgr, kp.OpSyncLocal([t]))
    add.submit(t).wait()
    assert says(t) == OLDER


def test_parts(mgr):
    t = mgr.tensor(np.ones(256))
    run(mgr, kp.OpSyncDevice([t]))
    low, high = t[:128], t[128:]
    seq = mgr.sequence().record(kp.OpFill([low], 5))
    seq.eval()
    assert (says(low), says(high), says(t)) == (OLDER, SAME, OLDER)
    part = mgr.sequence().record(kp.OpSyncLocal([low]))
    part.eval()
    assert (says(low), says(high)) == (SAME, SAME)
    whole = mgr.sequence().record(kp.OpSyncLocal([t]))
    whole.eval()
    assert (says(low), says(high), says(t)) == (SAME, SAME, SAME)
    run(mgr, kp.OpFill([t], 1), kp.OpSyncLocal([low]))
    assert (says(low), says(high), says(t)) == (SAME, OLDER, OLDER)
    whole.eval()
    with high.map(write=True) as array:
        array[:] = 9
        assert (says(low), says(high)) == (SAME, UNKNOWN)  # the array may be changed at any time
    assert (says(low), says(high)) == (SAME, OLDER)
    whole.eval()
    assert says(t) == SAME
    low.write(np.ones(128, np.float32))
    assert (says(low), says(high), says(t)) == (OLDER, SAME, OLDER)
    part.eval()
    assert says(t) == SAME
    # Two halves that are brought one by one make a whole, whatever was recorded with them.
    run(mgr, kp.OpFill([t], 2), kp.OpSyncLocal([low]), kp.OpSyncLocal([high]))
    assert says(t) == SAME
    run(mgr, kp.OpFill([t], 3))
    part.eval()
    assert (says(low), says(high), says(t), says(t[64:192])) == (SAME, OLDER, OLDER, OLDER)
    run(mgr, kp.OpSyncDevice([high]))
    assert says(t) == SAME


def test_more_parts_than_are_told_apart(mgr):
    t = mgr.tensor(np.ones(200 * 64))
    parts = [t[64 * i : 64 * (i + 1)] for i in range(200)]
    for part in parts[::2]:
        part.write(np.zeros(64, np.float32))
    assert all(says(part) in (OLDER, UNKNOWN) for part in parts[::2])
    assert all(says(part) in (SAME, UNKNOWN) for part in parts[1::2])
    assert says(t) == OLDER or says(t) == UNKNOWN
    run(mgr, kp.OpSyncLocal([t]))
    assert says(t) == SAME and says(parts[0]) == SAME


def test_undefined_contents(mgr):
    t = mgr.empty(16)
    t.read()
    t.data()
    assert says(t) in (UNKNOWN, SAME)  # memory_debug fills both with the same
    run(mgr, kp.OpSyncLocal([t]))
    assert says(t) == SAME
    used_first = mgr.empty(16)
    used_first.data()[:] = 1
    assert says(used_first) == UNSENT and used_first.read()[0] == 1 and says(used_first) == SAME


def test_several_queues(make_manager):
    mgr = make_manager(family_queue_indices=[0, 0])
    t = mgr.tensor(np.ones(64))
    fill = [mgr.sequence(q).record(kp.OpFill([t], q)) for q in range(2)]
    down = [mgr.sequence(q).record(kp.OpSyncLocal([t])) for q in range(2)]
    fill[0].eval()
    assert says(t) == OLDER
    down[1].eval()
    same_queue = mgr.sequence(0).queue_index == mgr.sequence(1).queue_index
    assert says(t) in ((SAME,) if same_queue else (SAME, UNKNOWN))
    down[0].eval()
    assert says(t) == SAME
    fill[0].eval()
    fill[1].eval()
    assert says(t) in (OLDER, UNKNOWN)
    t.write(np.zeros(64, np.float32))  # the host waits for all of them, so its work is the last
    assert says(t) == OLDER
    down[1].eval()
    assert says(t) == SAME


def test_sequences_of_one_submission(mgr):
    t = mgr.tensor(np.ones(64))
    fill = mgr.sequence().record(kp.OpFill([t], 2))
    down = mgr.sequence().record(kp.OpSyncLocal([t]))
    for _ in range(2):
        mgr.submit([fill, down]).wait()
        assert says(t) == SAME
        mgr.submit([down, fill]).wait()
        assert says(t) == OLDER
    down.eval()
    assert says(t) == SAME


def test_held_work(mgr):
    t = mgr.tensor(np.ones(64))
    run(mgr, kp.OpSyncDevice([t]))
    gate = mgr.semaphore()
    fill = mgr.sequence().record(kp.OpFill([t], 2))
    down = mgr.sequence().record(kp.OpSyncLocal([t]))
    fill.eval_async(wait=(gate, 1))
    assert says(t) == UNKNOWN  # it did nothing yet, but a read would wait for it
    gate.signal(1)
    fill.eval_await()
    assert says(t) == OLDER
    down.eval()
    assert says(t) == SAME
    # What is cancelled did nothing, and what ran before it is not forgotten.
    fill.eval()
    fill.eval_async(wait=(gate, 2))
    with pytest.warns(kp.KomputeWarning, match="did not run"):
        fill.destroy()
    assert says(t) == OLDER
    down.eval()
    assert says(t) == SAME
    other = mgr.sequence().record(kp.OpFill([t], 3))
    other.eval_async(wait=(gate, 2))
    assert says(t) == UNKNOWN
    with pytest.warns(kp.KomputeWarning, match="did not run"):
        other.destroy()
    assert says(t) == SAME


def test_work_that_fails_after_it_was_held(mgr):
    t = mgr.tensor(np.ones(64))
    run(mgr, kp.OpSyncDevice([t]))
    fill = mgr.sequence().record(kp.OpFill([t], 2))
    fill.eval()
    gate = mgr.semaphore()
    fill.eval_async(wait=(gate, 1))
    gate.fail("no more frames")
    with pytest.raises(kp.KomputeError):
        fill.eval_await()
    assert says(t) == OLDER  # from its first run


def test_handles_are_given_away(mgr):
    class Fills(kp.OpBase):
        def __init__(self, tensor):
            self.tensor, self.writes = tensor, [tensor]

        def record(self, cmd):
            assert self.tensor.vk_buffer  # for commands that are declared

    t = mgr.tensor(np.ones(16))
    run(mgr, kp.OpSyncDevice([t]))
    run(mgr, Fills(t))
    assert says(t) == OLDER
    run(mgr, kp.OpSyncLocal([t]))
    assert says(t) == SAME
    assert t.vk_buffer and says(t) == UNKNOWN


def test_what_others_may_have_written(mgr):
    class Anything(kp.OpBase):
        def record(self, cmd):
            pass

    t = mgr.tensor(np.ones(16))
    run(mgr, kp.OpSyncDevice([t]))
    run(mgr, Anything())
    assert says(t) == UNKNOWN
    run(mgr, kp.OpSyncLocal([t]))
    assert says(t) == SAME
    if t.__dlpack_device__() == (1, 0):
        shared = np.from_dlpack(t)
        assert says(t) == UNKNOWN and shared[0] == 1


def test_a_download_on_its_way_brought_nothing_yet(mgr):
    t = mgr.tensor(np.ones(16))
    t.fill(3).wait()
    assert says(t) == OLDER
    gate = mgr.semaphore()
    seq = mgr.sequence().record(kp.OpSyncLocal([t]))
    seq.eval_async(wait=(gate, 1))
    assert says(t) == OLDER
    gate.signal(1)
    seq.eval_await()
    assert t.data()[0] == 3 and says(t) in (SAME, UNKNOWN)


@pytest.mark.parametrize("where", ["storage", "host", "deviceAndHost"])
def test_other_memory_has_no_host_copy_to_be_told_of(mgr, where):
    t = mgr.tensor([1, 2, 3], where)
    t.write([4, 5, 6])
    assert "host copy" not in repr(t) and ("4." in repr(t)) == (where != "storage")
    note = t._repr_html_()
    assert ("host and device share" in note) == (where != "storage") and "newer" not in note


def test_looking_moves_nothing(mgr):
    t = mgr.zeros(16)
    assert "host copy" not in repr(t)  # none was made, and none is made to be shown
    t.fill(2)
    assert repr(t) == "<kp.Tensor shape=(16,) dtype=float32 device>"
    assert t.data()[0] == 0 and says(t) == OLDER


def test_what_is_said_to_be_the_same_is_the_same(mgr):
    """Random programs without host edits: where the two sides differ, nothing says that they do not."""
    rng = random.Random(8)
    other = mgr.tensor(np.full(256, 7))
    differed = same = 0
    for _ in range(60):
        t = mgr.tensor(np.full(256, 1))
        parts = [t, t[:128], t[128:], t[64:192]]
        kept = []
        for step in range(12):
            part = rng.choice(parts)
            choice = rng.randrange(7)
            if choice == 0:
                part.write(np.full(part.size(), rng.random(), np.float32))
            elif choice == 1:
                part.fill(rng.random())
            elif choice == 2 and part is t:
                t.copy_from(other)
            elif choice == 3:
                with part.map(write=True) as array:
                    array[:] = rng.random()
            elif choice == 4 and kept:
                rng.choice(kept).eval()
            elif choice == 5 and kept:
                kept.pop(rng.randrange(len(kept)))
            else:
                seq = mgr.sequence()
                for _ in range(rng.randrange(1, 4)):
                    at = rng.choice(parts)
                    make = rng.choice([kp.OpSyncLocal, kp.OpSyncDevice, lambda each: kp.OpFill(each, 3)])
                    seq.record(make([at]))
                kept.append(seq.eval())
            for each in parts:
                differs = not np.array_equal(each.data(), each.read())
                said = says(each)
                if differs:
                    differed += 1
                    assert said in (OLDER, UNKNOWN), (step, choice, each)
                else:
                    same += said == SAME
    assert differed > 200 and same > 200


OLD_COPY = "sends the host copy of the tensor 't' over what write.. or an item assignment put there"


def written(t, way):
    if way == "write":
        t.write([7, 8, 9, 10])
    elif way == "item":
        t[1:3] = [8, 9]
    elif way == "strided item":
        t[::2] = 8
    elif way == "view":
        t[1:3].write([8, 9])
    else:
        with t.map(write=True) as array:
            array[1] = 8


@pytest.mark.parametrize("way", ["item", "write", "view"])
def test_numpy_warns_of_a_part_that_is_newer(mgr, way):
    """Elements that lie apart: which of them the host copy lacks is not kept, that it lacks some is."""
    t = mgr.zeros((8, 8))
    part = (slice(None), slice(2, 4))
    if way == "item":
        t[part] = 5
    elif way == "write":
        t.write(np.full((8, 2), 5), part)
    else:
        t[part].write(np.full((8, 2), 5))
    with pytest.warns(kp.KomputeWarning, match=r"elements that are newer on the device .* read\(\) returns"):
        assert not t.numpy().any()
    assert says(t) == UNKNOWN
    run(mgr, kp.OpSyncLocal([t]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t.numpy()[0].tolist() == [0, 0, 5, 5, 0, 0, 0, 0]
    assert says(t) == SAME


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("kind", ["host", "deviceAndHost"])
def test_a_region_of_an_image_is_written_to_both_sides(kind, staged):
    """Images that were to have one memory, on devices that pad rows: the host copy follows, if it was new."""
    with kp.Manager(force_staging=staged) as mgr:
        image = mgr.image(np.zeros((8, 8, 4), np.float32), memory_type=kind)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            image.write(np.ones((2, 2, 4)), (slice(2), slice(2)))
            assert image.numpy().sum() == image.read().sum() == 16
            image.write(np.ones((2, 2, 4)), (slice(2, 4), slice(2)))
            assert image.numpy().sum() == image.read().sum() == 32
        if not image._native.host_visible:
            run(mgr, kp.OpFill([image], 2.0))
            image.write(np.ones((2, 2, 4)), (slice(2), slice(2)))
            with pytest.warns(kp.KomputeWarning, match="newer contents on the device"):
                image.numpy()


@pytest.mark.parametrize("recorded", ["built", "recorded", "made", "after"])
@pytest.mark.parametrize("way", ["write", "item", "strided item", "view", "map"])
def test_sending_an_older_host_copy_over_what_was_written_warns(mgr, recorded, way):
    """Once for a sequence, whenever its OpSyncDevice was made."""
    t = mgr.tensor([1, 2, 3, 4])
    t.name = "t"
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    sequence = mgr.sequence()
    if recorded in ("built", "recorded"):
        sequence.record(kp.OpSyncDevice([t[:3]]))
    if recorded == "built":
        sequence.eval()
    op = kp.OpSyncDevice([t]) if recorded == "made" else None
    written(t, way)
    if op is not None or recorded == "after":
        sequence.record(op or kp.OpSyncDevice([t[1:]]))
    with pytest.warns(kp.KomputeWarning, match=OLD_COPY) as told:
        sequence.eval()
    assert len(told) == 1 and t[1].item() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sequence.eval()
        written(t, way)
        sequence.eval()


@pytest.mark.parametrize("key", [[1, 2], np.arange(1 << 18) > 3, (slice(None, None, 2), None, [0]), ...])
def test_what_the_device_writes_for_an_assignment_counts_as_written(mgr, key):
    """Elements at arrays and masks, and one number for many elements."""
    t = mgr.zeros((1 << 18, 2) if isinstance(key, tuple) else 1 << 18)
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    t[key] = 5
    with pytest.warns(kp.KomputeWarning, match="or an item assignment put there"):
        mgr.sequence().eval(kp.OpSyncDevice([t]))
    t[key] = 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.sequence().eval(kp.OpSyncLocal([t]))
        mgr.sequence().eval(kp.OpSyncDevice([t]))
    assert np.count_nonzero(t.read()) > 1


def test_a_host_copy_that_is_as_new_as_what_was_written_is_sent_in_silence(mgr):
    t, other = mgr.tensor([1, 2, 3, 4]), mgr.zeros(4)
    sends = mgr.sequence().record(kp.OpSyncDevice([t]))
    sends.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t[0] = 5
        mgr.sequence().eval(kp.OpSyncLocal([t]))  # brings the host copy along
        sends.eval()
        t[0] = 6
        mgr.sequence().record(kp.OpSyncLocal([t]), kp.OpSyncDevice([t])).eval()
        t[0] = 7
        mgr.sequence().record(kp.OpSyncDevice([t[1:], other])).eval()  # other elements
        other.fill(1).wait()
        mgr.sequence().record(kp.OpSyncDevice([other])).eval()  # work on the device, as in Kompute's scripts
        shared = mgr.zeros(4, memory_type="host")
        shared[0] = 1
        mgr.sequence().eval(kp.OpSyncDevice([shared]))  # one memory
    assert t.read().tolist() == [7, 2, 3, 4]


def test_work_that_was_cancelled_wrote_nothing_over_what_was_written(mgr):
    """So a later OpSyncDevice still sends an older host copy."""
    t = mgr.tensor([1, 2, 3, 4])
    t.name = "t"
    t[1:3] = [8, 9]
    held, gate = mgr.sequence().record(kp.OpFill([t], 5)), mgr.semaphore()
    held.eval_async(wait=(gate, 1))
    with pytest.warns(kp.KomputeWarning, match="did not run"):
        held.destroy()
    with pytest.warns(kp.KomputeWarning, match=OLD_COPY):
        mgr.sequence().eval(kp.OpSyncDevice([t]))
    # The same for a sequence whose own last run was cancelled.
    sends = mgr.sequence().record(kp.OpSyncDevice([t]))
    sends.eval_async(wait=(gate, 1))
    gate.fail("no")
    with pytest.raises(kp.AbortedError):
        sends.eval_await()
    t[0] = 7
    with pytest.warns(kp.KomputeWarning, match=OLD_COPY):
        sends.eval()


def test_work_that_may_yet_be_cancelled_hides_no_warning(mgr):
    """A recording that was built meanwhile is not built again when it is cancelled."""
    t = mgr.tensor([1, 2, 3, 4])
    t.name = "t"
    t[1:3] = [8, 9]
    held, gate = mgr.sequence().record(kp.OpFill([t], 5)), mgr.semaphore()
    held.eval_async(wait=(gate, 1))
    sends = mgr.sequence().record(kp.OpSyncDevice([t]))
    with pytest.warns(kp.KomputeWarning, match=OLD_COPY):
        sends.eval_async()
    gate.fail("no")
    for each in (held, sends):
        with pytest.raises(kp.AbortedError):
            each.eval_await()
    sends.eval()
    assert t.read().tolist() == [1, 2, 3, 4]


def test_a_warning_that_is_an_error_leaves_the_sequence_usable(mgr):
    t = mgr.tensor([1, 2, 3, 4])
    t.name = "t"
    t[0] = 5
    sequence = mgr.sequence().record(kp.OpSyncDevice([t]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kp.KomputeWarning, match=OLD_COPY):
            sequence.eval()
        assert t.read().tolist() == [5, 2, 3, 4]
        sequence.eval()
    assert t.read().tolist() == [1, 2, 3, 4]
