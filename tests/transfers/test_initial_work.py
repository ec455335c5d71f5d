"""What new objects ask of the device is collected: few submissions, no waiting, and nothing of it is lost or
left behind.

On the null driver's device-only memory, which carries the copies out.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

DATA = np.arange(1, 65, dtype=np.float32)
PIXELS = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
MIB = 1 << 20
KINDS = {
    "zeros": (lambda mgr: mgr.zeros(64), np.zeros(64, np.float32)),
    "full": (lambda mgr: mgr.full(64, 3.0), np.full(64, 3, np.float32)),
    # No pattern of whole words.
    "pattern": (lambda mgr: mgr.full((40, 3), np.array([1, 2, 3], np.float32)), np.tile([1, 2, 3], (40, 1))),
    "pattern of bytes": (
        lambda mgr: mgr.full((7, 3), np.array([1, 2, 3], np.uint8)),
        np.tile([1, 2, 3], (7, 1)),
    ),
    "storage": (lambda mgr: mgr.tensor(DATA, "storage"), DATA),
    "tensor": (lambda mgr: mgr.tensor(DATA), DATA),
    "image": (lambda mgr: mgr.image(PIXELS), PIXELS),
    "storage image": (lambda mgr: mgr.image(PIXELS, memory_type="storage"), PIXELS),
    "host image": (lambda mgr: mgr.image(PIXELS, memory_type="host"), PIXELS),
}


def check(objects: dict[str, Any]) -> None:
    for kind, made in objects.items():
        np.testing.assert_array_equal(made.read(), KINDS[kind][1], err_msg=kind)


def make_all(mgr: kp.Manager) -> dict[str, Any]:
    return {kind: make(mgr) for kind, (make, _) in KINDS.items()}


def count_submissions() -> dict[str, list[int]]:
    control = null_control()
    counts = {}
    for kind, (make, holds) in KINDS.items():
        mgr = kp.Manager()
        control.clear()
        made = [make(mgr) for _ in range(1000)]
        mgr.synchronize()
        counts[kind] = [control.calls(f"vk{call}") for call in ("QueueSubmit", "CreateCommandPool")]
        for each in (made[0], made[499], made[999]):
            np.testing.assert_array_equal(each.read(), holds)
        # First uses by one recording are one submission, too, or a few.
        made = [make(mgr) for _ in range(1000)]
        target = mgr.empty(1)
        seq = mgr.sequence()
        for each in made:
            if not isinstance(each, kp.Image) and each.dtype == np.float32:
                seq.record(kp.OpCopy([each.reshape(-1)[:1], target]))
        control.clear()
        seq.eval() if seq.is_recording() else mgr.synchronize()
        counts[kind] += [control.calls("vkQueueSubmit")]
        del made, seq
        mgr.destroy()
        assert not control.violations()
    return counts


def test_a_thousand_objects_are_few_submissions():
    for kind, counts in run_child(count_submissions, driver="null").items():
        assert max(counts) <= 10, (kind, counts)


def clear_many() -> list[int]:
    """Submissions for so many tensors of zeros, and what the first uses of them add."""
    control = null_control()
    counts = []
    for number in (1000, 4000, 10_000):
        mgr = kp.Manager()
        control.clear()
        made = [mgr.zeros(4, memory_type="storage") for _ in range(number)]
        mgr.synchronize()
        counts.append(control.calls("vkQueueSubmit"))
        for each in (made[0], made[number // 2], made[-1]):
            assert not each.read().any()
        mgr.destroy()
    assert not control.violations()
    return counts


def test_clears_share_submissions():
    assert run_child(clear_many, driver="null") == [1, 1, 3]


USERS = {
    "read": lambda mgr, t: t.read(),
    "read of a part": lambda mgr, t: t.read(region=np.s_[:]),
    "strided read": lambda mgr, t: np.repeat(t[::2].read(), 2),
    "asarray": lambda mgr, t: np.asarray(t),
    "write beside": lambda mgr, t: (t.write([1.0], region=np.s_[:1]), t.write([0.0], np.s_[:1]), t.read())[2],
    "fill beside": lambda mgr, t: (t[:1].fill(1.0), t[:1].fill(0.0), t.read())[2],
    "copy_to an array": lambda mgr, t: copied_to(t, np.full(64, 5, np.float32)),
    "copy": lambda mgr, t: copied_to(t, mgr.full(64, 5.0)).read(),
    "copy on another queue": lambda mgr, t: on_queue(mgr, 1, t),
    "copy on another family": lambda mgr, t: on_queue(mgr, 2, t),
    "map": lambda mgr, t: mapped(t),
    "map to write": lambda mgr, t: mapped(t, write=True),
    "another device": lambda mgr, t: t.to(kp.Manager(), copy=True).read(),
    "DLPack": lambda mgr, t: np.from_dlpack(t, device="cpu"),
    "custom operation": lambda mgr, t: custom(mgr, t, [t]),
    "custom operation without declarations": lambda mgr, t: custom(mgr, t, None),
}


def copied_to(t: kp.Tensor, out: Any) -> Any:
    fence = t.copy_to(out)
    fence.wait()
    return out


def on_queue(mgr: kp.Manager, queue: int, t: kp.Tensor) -> np.ndarray:
    out = mgr.full(64, 5.0)
    mgr.sequence(queue).record(kp.OpCopy([t, out])).eval()
    return out.read()


def mapped(t: kp.Tensor, **options: bool) -> np.ndarray:
    with t.map(read=True, **options) as array:
        return array.copy()


def custom(mgr: kp.Manager, t: kp.Tensor, reads: Any) -> np.ndarray:
    class Look(kp.OpBase):
        def record(self, cmd: kp.CommandRecorder) -> None:
            assert t.vk_buffer != 0

    Look.reads = reads
    mgr.sequence(1).record(Look()).eval()
    return t.read()


def see_cleared() -> None:
    control = null_control()
    mgr = kp.Manager(family_queue_indices=[0, 0, 1])
    kinds = {
        "zeros": (lambda: mgr.zeros(64), 0),
        "storage": (lambda: mgr.zeros(64, memory_type="storage"), 0),
    }
    for user, use in USERS.items():
        for kind, (make, holds) in kinds.items():
            # Memory that was in use: what was there before must not be seen.
            before = [mgr.full(64, 7.0, memory_type="storage") for _ in range(4)]
            mgr.synchronize()
            del before
            others = [make() for _ in range(3)]  # whose clears are in the same submission
            made = make()
            control.clear()
            seen = use(mgr, made)
            assert np.all(seen == holds), (user, kind, seen)
            assert control.calls("vkQueueSubmit") >= 1
            assert all(np.all(each.read() == holds) for each in others), (user, kind)
    # Handles and addresses as integers: the clear is with its queue when they are given out.
    for give in ("vk_buffer", "vk_memory", "device_address"):
        made = mgr.zeros(64, memory_type="storage")
        control.clear()
        assert getattr(made, give) != 0 and control.calls("vkQueueSubmit") == 1, give
    mgr.destroy()
    assert not control.violations()


def test_no_user_sees_memory_before_it_was_cleared():
    """The rule of device/initial_work.hpp, for each way to use a tensor."""
    run_child(see_cleared, driver="null", config="memory=discrete")


def order_of_kernels() -> None:
    """The clear comes before the dispatch, in an earlier submission or at an earlier place."""
    control = null_control()
    mgr = kp.Manager(family_queue_indices=[0, 0])
    source = "layout(binding = 0) buffer A { float a[]; }; void main() { a[gl_GlobalInvocationID.x] += 1; }"
    kernel = mgr.kernel("#version 450\nlayout(local_size_x = 64) in;\n" + source)
    kernel(mgr.empty(64))  # compiled
    for run in (
        lambda t: kernel(t),
        lambda t: kernel.submit(t).wait(),
        lambda t: mgr.sequence(1).record(kernel.bind(t)).eval(),
    ):
        made = mgr.zeros(64, memory_type="storage")
        with control.logging():
            run(made)
        ops = [each["op"] for each in control.commands()]
        assert "fill" in " ".join(ops) and "dispatch" in ops[-1], ops
        assert max(i for i, op in enumerate(ops) if "fill" in op) < ops.index(
            next(op for op in ops if "dispatch" in op)
        ), ops
    mgr.destroy()
    assert not control.violations()


def test_a_kernel_runs_after_the_clear():
    run_child(order_of_kernels, driver="null")


def make_behind_queued_work() -> None:
    mgr = kp.Manager(family_queue_indices=[0, 0, 1])
    data = np.arange(5 * MIB, dtype=np.float32)
    seq = mgr.sequence().record(kp.OpFill([mgr.empty(4)], 1.0))
    seq.eval_async()
    null_control().clear()
    made = make_all(mgr)
    cleared = [mgr.zeros(1, memory_type="storage") for _ in range(4200)]
    many = [mgr.tensor(DATA + i, "storage") for i in range(300)]
    large = mgr.tensor(data, "storage")
    assert null_control().calls("vkQueueSubmit") >= 2  # so much was made
    assert null_control().calls("vkWaitSemaphores") == 0
    del cleared
    out = [mgr.empty(64) for _ in many]
    last = mgr.empty(1)
    copies = mgr.sequence(2).record(kp.OpCopy([large[-1:], last]))
    for source, target in zip((*many, made["full"], made["storage"]), (*out, *out[:2]), strict=True):
        copies.record(kp.OpCopy([source, target]))
    copies.record(kp.OpSyncLocal([*out, last])).eval()
    for i, each in enumerate(out[2:], 2):
        np.testing.assert_array_equal(each.data(), DATA + i)
    assert np.all(out[0].data() == 3) and np.all(out[1].data() == DATA) and last.data()[0] == data[-1]
    check({kind: made[kind] for kind in ("pattern", "image")})
    mgr.destroy()
    assert not null_control().violations()


@pytest.mark.capability("P37", "creating tensors waits for nothing", "Manager.tensor_t", "guides/tensors")
def test_nothing_that_is_made_waits_for_the_queue():
    run_child(make_behind_queued_work, driver="null", config="gpu_us=100000")


def make_and_drop() -> None:
    control = null_control()
    mgr = kp.Manager()
    mgr.zeros(1).read()
    used = sum(heap.used for heap in mgr.memory.heaps)
    control.clear()
    for kind in ("zeros", "storage", "image"):
        for i in range(2000):
            made = KINDS[kind][0](mgr)
            if i % 2:
                made.destroy()
            del made
    # (Contents are handed over where a certain number of bytes is collected, dropped or not.)
    assert control.calls("vkQueueSubmit") <= 2
    assert control.live("VkBuffer") < 50 and control.live("VkImage") < 5
    mgr.synchronize()
    assert sum(heap.used for heap in mgr.memory.heaps) <= used
    # Some go before their work is handed over, some while it runs.
    kept = [mgr.tensor(DATA + i, "storage") for i in range(100)]
    for each in kept[::2]:
        each.destroy()
    seq = mgr.sequence().record(kp.OpFill([kept[1][:1], kept[3][:1]], 5.0))
    seq.eval_async()
    del kept[5::4]
    gc.collect()
    seq.eval_await()
    assert kept[1].read()[1] == 3 and kept[3].read()[0] == 5
    mgr.destroy()
    assert not control.violations() and control.live("VkBuffer") == 0 and control.live("VkDeviceMemory") == 0


def test_what_goes_before_it_is_used_leaves_nothing():
    run_child(make_and_drop, driver="null")


def fail_one_call(nth: int) -> tuple[bool, int]:
    """Whether there was such a call, and how often somebody was told."""
    control = null_control()
    mgr = kp.Manager(family_queue_indices=[0, 1])
    told = 0
    control.clear()
    control.fail("*", nth)

    def again(call: Any, *arguments: Any) -> Any:
        nonlocal told
        try:
            return call(*arguments)
        except kp.KomputeError:
            told += 1
            return call(*arguments)

    made = {kind: again(make, mgr) for kind, (make, _) in KINDS.items()}
    other = again(mgr.empty, 64)
    seq = again(mgr.sequence, 1).record(kp.OpCopy([made["tensor"], other]))
    try:
        seq.eval()
    except kp.KomputeError:  # before it was submitted, or while it was waited for
        told += 1
        seq.eval_await() if seq.is_running() else seq.eval()
    seen = {kind: again(each.read) for kind, each in made.items()}
    for kind, (_, holds) in KINDS.items():
        np.testing.assert_array_equal(seen[kind], holds, err_msg=f"call {nth}: {control.last_failed}, {kind}")
    np.testing.assert_array_equal(again(other.read), DATA)
    happened = control.armed_failures == 0
    control.clear()
    mgr.destroy()
    assert not control.violations()
    return happened, told


def fail_each_call() -> int:
    """The n-th call of the driver fails: whoever is told may try again, and what was made holds what it
    should.
    """
    told = 0
    for nth in range(1, 10_000):
        happened, by_this = fail_one_call(nth)
        told += by_this
        if not happened:
            return told
    raise AssertionError("it never ends")


def test_work_that_fails_is_not_counted_as_done():
    assert run_child(fail_each_call, driver="null") > 20


def failed_evaluations() -> None:
    control = null_control()
    for queue in (0, 1):
        mgr = kp.Manager(family_queue_indices=[0, 1])
        t = mgr.tensor(DATA)
        seq = mgr.sequence(queue).record(kp.OpSyncDevice([t])).record(kp.OpFill([t[:1]], 50.0))
        mgr.synchronize()
        control.fail("vkQueueSubmit", 1)
        with pytest.raises(kp.KomputeError):
            seq.eval()
        # It was built, and uploads nothing before it is submitted.
        np.testing.assert_array_equal(t.read(), DATA)
        t.data()[1] = 60
        np.testing.assert_array_equal(t.read(), DATA)
        seq.eval()
        np.testing.assert_array_equal(t.read()[:3], [50, 60, 3])
        mgr.destroy()
    assert not control.violations()


def test_a_recording_that_was_built_and_never_submitted_uploaded_nothing():
    run_child(failed_evaluations, driver="null")


def count_copies() -> None:
    control = null_control()
    mgr = kp.Manager()
    a, b = mgr.tensor(DATA), mgr.tensor(DATA * 2)
    image = mgr.image(PIXELS)
    mgr.synchronize()
    seq = mgr.sequence()
    seq.record(kp.OpSyncDevice([a, b, image])).record(kp.OpFill([a[:1]], 9.0)).record(
        kp.OpSyncLocal([a, b, image])
    )
    control.clear()
    with control.logging():
        seq.eval()
        seq.eval()
    copies = [each for each in control.commands() if "copy" in each["op"]]
    assert len(copies) == 2 * 6, copies
    assert control.calls("vkQueueSubmit") == 2
    assert a.data()[0] == 9 and np.array_equal(image.data(), PIXELS.reshape(-1))
    # Without a sync: one upload each, and later evaluations pay nothing.
    c, d = mgr.tensor(DATA), mgr.empty(64)
    seq = mgr.sequence().record(kp.OpCopy([c, d]))
    with control.logging():
        for _ in range(3):
            seq.eval()
        c.read()
    copies = [each for each in control.commands() if "copy" in each["op"]]
    assert len(copies) == 1 + 3 + 1, copies
    assert np.array_equal(d.read(), DATA)
    mgr.destroy()


def test_a_sync_is_the_first_upload():
    run_child(count_copies, driver="null")


def stay_in_bounds() -> None:
    mgr = kp.Manager()
    before = sum(heap.used for heap in mgr.memory.heaps if not heap.device_local)
    mgr.memory.reset_peak()
    large = [mgr.tensor(np.full(5 * MIB, i, np.float32), "storage") for i in range(12)]
    huge = mgr.tensor(np.arange(20 * MIB, dtype=np.uint32).view(np.float32), "storage")
    peak = sum(heap.peak for heap in mgr.memory.heaps if not heap.device_local)
    assert peak - before <= (64 + 20 + 8) * MIB, peak
    assert [each[7].item() for each in large] == list(range(12))
    assert huge.view(np.uint32)[-1].item() == 20 * MIB - 1
    mgr.synchronize()
    assert sum(heap.used for heap in mgr.memory.heaps if not heap.device_local) - before <= 8 * MIB
    mgr.destroy()
    # A limit leaves little room for what is on its way.
    mgr = kp.Manager(memory_limit="16 MiB")
    made = [mgr.tensor(np.full(MIB // 4, i, np.float32), "storage") for i in range(6)]
    assert [each[9].item() for each in made] == list(range(6))
    mgr.destroy()
    assert not null_control().violations()


def test_contents_on_their_way_take_bounded_memory():
    run_child(stay_in_bounds, driver="null")


def lose_the_device() -> None:
    mgr = kp.Manager()
    made = [*make_all(mgr).values()]
    null_control().lose_device()
    for each in made:
        with pytest.raises(kp.DeviceLostError):
            each.read()
    mgr.destroy()
    assert not null_control().violations()


def test_a_lost_device_says_so():
    run_child(lose_the_device, driver="null")
