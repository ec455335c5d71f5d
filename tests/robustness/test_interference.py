"""What gets in each other's way: threads, operations that reach back into their sequence, calls that fail in
mid-flight.

The null driver takes as long for a submission as it is told to, fails on request, and notes what must not be
done to work in flight as a violation.
"""

from __future__ import annotations

import gc
import threading
import time
import warnings

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

STEP = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer V { float v[]; };
void main() { v[gl_GlobalInvocationID.x] += 1.0; }
"""


# -- an operation that reaches back into the sequence which records it ---------------------------------------


class Reaching(kp.OpBase):
    reads, writes = [], []

    def __init__(self, reach):
        self.reach = reach

    def record(self, cmd):
        self.reach()


@pytest.mark.parametrize("call", ["clear", "rerecord", "eval", "eval_async", "record"])
def test_a_sequence_refuses_changes_from_inside_its_recording(mgr, call):
    t = mgr.tensor([1, 2, 3])
    seq = mgr.sequence()
    arguments = (kp.OpSyncLocal([t]),) if call == "record" else ()
    refused = []

    def reach():
        with pytest.raises(kp.FailedPreconditionError, match="recording"):
            getattr(seq, call)(*arguments)
        refused.append(call)

    seq.record(kp.OpSyncDevice([t])).record(Reaching(reach)).record(kp.OpSyncLocal([t])).eval()
    assert refused == [call] and t.read().tolist() == [1, 2, 3]


@pytest.mark.parametrize("what", ["seq", "tensor", "mgr"])
def test_destroying_from_inside_a_recording(make_manager, what):
    mgr = make_manager()
    t = mgr.tensor([1, 2, 3])
    seq = mgr.sequence()
    things = {"seq": seq, "tensor": t, "mgr": mgr}
    seq.record(kp.OpSyncDevice([t])).record(Reaching(things[what].destroy)).record(kp.OpSyncLocal([t]))
    for _ in range(2):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            seq.eval()
    assert not things[what].is_init()


def test_a_recording_that_fails_half_way_can_be_tried_again(mgr):
    t = mgr.tensor([1, 2, 3])
    failures = [ValueError("half way")]

    def reach():
        if failures:
            raise failures.pop()

    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(Reaching(reach))
    with pytest.raises(ValueError, match="half way"):
        seq.eval()
    seq.eval()
    assert t.read().tolist() == [1, 2, 3]


def test_room_for_more_timestamps_than_32_bits_count(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.tensor([1])
    seq = mgr.sequence(0, 2**32).record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t])).eval()
    assert len(seq.get_timestamps()) == 3


def test_timings_are_of_what_was_evaluated(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.tensor([1])
    seq = mgr.sequence(timestamps=True).record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t])).eval()
    seq.record(kp.OpFill([t], 1))
    assert [name for name, _ in seq.timings()] == ["OpSyncDevice", "OpSyncLocal"]
    seq.eval()
    assert [name for name, _ in seq.timings()] == ["OpFill"]


# -- images that a shader cannot see as it declares them -----------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "store", "says"),
    [
        ("r32f) uniform image3D i", "ivec3(0), vec4(1)", "image2D"),
        ("r32f) uniform image2DArray i", "ivec3(0), vec4(1)", "image2D"),
        ("r32ui) uniform uimage2D i", "ivec2(0), uvec4(1)", "float32"),
        ("r32i) uniform iimage2D i", "ivec2(0), ivec4(1)", "float32"),
    ],
)
def test_an_image_of_another_kind_than_the_shader_declares(mgr, declared, store, says):
    source = f"#version 450\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0, {declared};\n"
    code = kp.compile(source + f"void main() {{ imageStore(i, {store}); }}")
    with pytest.raises(kp.InvalidArgumentError, match=says):
        mgr.algorithm([mgr.image(np.zeros((4, 4), np.float32))], code, (1, 1, 1))


# -- work in flight ------------------------------------------------------------------------------------------


def uploading(mgr):
    t = mgr.tensor(np.arange(1000))
    return t, mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t]))


def check_failed_question():
    """The driver has no answer to whether the work is done: then it is not done."""
    mgr = kp.Manager()
    t, seq = uploading(mgr)
    for call, end in (("vkGetSemaphoreCounterValue", t.destroy), ("vkWaitSemaphores", mgr.destroy)):
        if not t.is_init():
            t, seq = uploading(mgr)
        seq.eval_async()
        null_control().fail(call, nth=1)
        end()
        assert not null_control().violations(), call
        if mgr.is_init():
            seq.eval_await()


def test_a_failed_question_ends_no_work():
    run_child(check_failed_question, driver="null", config="gpu_us=200000")


def check_failed_upload():
    mgr = kp.Manager()
    null_control().fail("vkQueueSubmit", nth=2)
    with pytest.raises(kp.OutOfMemoryError):
        mgr.tensor_t(np.zeros(80 << 20, np.uint8), "storage")  # more than is sent off without waiting
    gc.collect()
    assert not null_control().violations()
    mgr.destroy()


def test_an_upload_that_fails_half_way():
    run_child(check_failed_upload, driver="null", config="gpu_us=100000")


def check_destroy_meets_eval():
    """One thread evaluates without end while another one destroys the Manager."""
    for _ in range(5):
        mgr = kp.Manager()
        _, seq = uploading(mgr)
        ends = []

        def work(seq=seq, ends=ends):
            try:
                while True:
                    seq.eval()
            except kp.FailedPreconditionError as error:
                ends.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.03)
        mgr.destroy()
        thread.join()
        assert len(ends) == 1 and "destroyed" in ends[0] and not null_control().violations()


def test_destroying_a_manager_that_another_thread_uses():
    run_child(check_destroy_meets_eval, driver="null", config="gpu_us=2000")


def check_destroy_meets_read():
    mgr = kp.Manager()
    t = mgr.tensor_t(np.ones(12 << 20, np.uint8), "storage")
    mgr.synchronize()
    got = []
    thread = threading.Thread(target=lambda: got.append(t.read()))
    thread.start()
    time.sleep(0.1)
    t.destroy()
    thread.join()
    assert got[0].all() and not t.is_init() and not null_control().violations()


def test_destroying_what_another_thread_reads():
    run_child(check_destroy_meets_read, driver="null", config="gpu_us=200000")


def check_small_storage():
    mgr = kp.Manager()
    _, seq = uploading(mgr)
    control = null_control()
    control.pause()
    seq.eval_async()
    control.clear()
    small = mgr.tensor([1, 2], "storage")
    assert control.calls("vkWaitSemaphores") == 0

    def let_go():
        for _ in range(5):
            time.sleep(0.001)  # takes the interpreter lock again
        control.pause(False)

    thread = threading.Thread(target=let_go)
    thread.start()
    assert small.read().tolist() == [1, 2]  # behind the work on the same queue
    thread.join()
    seq.eval_await()


def test_other_threads_run_while_a_small_tensor_is_uploaded():
    run_child(check_small_storage, driver="null", config="gpu_us=1")


def check_left_behind():
    """Work of a sequence that is gone, on another queue: the device waits for it, not the host."""
    mgr = kp.Manager(0, [0, 1])
    t = mgr.tensor(np.arange(1000))
    with null_control().pausing():
        seq = mgr.sequence(0).record(kp.OpSyncDevice([t])).eval_async()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del seq
            gc.collect()
        fetch = mgr.sequence(1).record(kp.OpCopy([t, mgr.zeros(1000)])).record(kp.OpSyncLocal([t]))
        fetch.eval_async()
    fetch.eval_await()
    assert t.data().tolist() == list(range(1000))
    fetch.eval()
    assert not null_control().violations()


def test_work_left_behind_on_another_queue():
    run_child(check_left_behind, driver="null", config="gpu_us=1")


def check_built_work_follows_what_was_dropped():
    with kp.Manager(0, [0, 0, 1]) as mgr:
        for queue in (1, 2):
            for drop in ("one-shot", "sequence"):
                a, b = mgr.full(4, 1, np.uint32), mgr.full(4, 2, np.uint32)
                later = mgr.sequence(queue).record(kp.OpFill([b], 9)).eval()
                # On queue 0 after that, and gone before it is done: what is built already must still come
                # after it.
                if drop == "one-shot":
                    fence = b.copy_from(a)
                else:
                    other = mgr.sequence().record(kp.OpCopy([a, b]))
                    fence = other.eval_async()
                    del other
                    gc.collect()
                del fence
                later.eval()
                assert b.read().tolist() == [9] * 4, (queue, drop)
                # Nothing is left to wait for; a third evaluation is as any other.
                later.eval()
                assert b.read().tolist() == [9] * 4
    assert null_control().violations() == []


@pytest.mark.own_driver
def test_built_work_follows_what_was_dropped_meanwhile():
    """A recording looks at the others of its memory that there are; those that are gone had left it nothing
    to wait for.
    """
    run_child(check_built_work_follows_what_was_dropped, driver="null", config="memory=discrete,gpu_us=50000")


def check_destroyed_in_flight():
    """Memory that the host would fetch results from is gone before the results are collected."""
    mgr = kp.Manager()
    big, small = mgr.empty(40 << 20, np.uint8), mgr.tensor([1, 2, 3])
    seq = (
        mgr.sequence().record(kp.OpSyncDevice([big, small])).record(kp.OpSyncLocal([big, small])).eval_async()
    )
    big.destroy()
    time.sleep(0.3)
    mgr.tensor([1])  # gives the memory back
    seq.eval_await()
    assert small.data().tolist() == [1, 2, 3] and not null_control().violations()


def test_what_was_destroyed_in_flight_is_not_fetched():
    run_child(check_destroyed_in_flight, driver="null", config="memory=noncoherent,gpu_us=100000")


# -- work that does not say what it uses, on one of several queues -------------------------------------------


def check_undeclared_work_is_ordered():
    import vulkan

    class Fill(kp.OpBase):  # declares nothing
        def __init__(self, tensor):
            self.tensor = tensor

        def record(self, cmd):
            vulkan.vkCmdFillBuffer(cmd.vk_command_buffer, self.tensor.vk_buffer, 0, self.tensor.nbytes, 7)

    mgr = kp.Manager(0, [0, 1])
    data = np.zeros(16, np.uint32)
    source, copy, other = (mgr.tensor_t(data) for _ in range(3))
    upload = mgr.sequence(0).record(kp.OpSyncDevice([source, copy, other])).eval()
    busy = mgr.sequence(0).record(kp.OpFill([other], 1))
    undeclared = mgr.sequence(0).record(Fill(source))
    reader = mgr.sequence(1).record(kp.OpCopy([source, copy])).record(kp.OpSyncLocal([copy]))
    for _ in range(2):  # as built, and as evaluated again
        upload.eval()
        busy.eval_async()
        undeclared.eval_async()
        reader.eval_async()
        reader.eval_await()
        np.testing.assert_array_equal(copy.data(), 7)
        undeclared.eval_await()
        busy.eval_await()
    mgr.destroy()
    assert not null_control().violations()


@pytest.mark.own_driver
def test_undeclared_work_is_ordered_with_other_queues():
    run_child(check_undeclared_work_is_ordered, driver="null", config="gpu_us=100000")


def test_a_second_thread_is_refused_while_the_first_records(mgr):
    """A sequence belongs to one thread at a time; the other one is told, and the first is not disturbed."""
    inside, go_on = threading.Event(), threading.Event()

    class Waits(kp.OpBase):
        reads, writes = (), ()

        def record(self, cmd):
            inside.set()
            assert go_on.wait(30)

    t = mgr.zeros(4)
    seq = mgr.sequence().record(Waits(), kp.OpFill([t], 3))
    first = threading.Thread(target=seq.eval)
    first.start()
    assert inside.wait(30)
    for call in (seq.clear, seq.rerecord, seq.eval, seq.eval_async, lambda: mgr.submit([seq])):
        with pytest.raises(kp.FailedPreconditionError, match="another thread"):
            call()
    with pytest.raises(kp.FailedPreconditionError, match="another thread"):
        seq.record(kp.OpFill([t], 4))
    go_on.set()
    first.join()
    assert t.read().tolist() == [3] * 4
