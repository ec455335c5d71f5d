"""Scratch memory: shared among operations and recordings, seen and freed."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import kompute_py as kp
from tests.support.threads import on_threads

pytestmark = pytest.mark.usefixtures("current")


@kp.CustomOp.register
class turned(kp.CustomOp):
    """`x` backwards, by way of scratch memory, `times` an odd number."""

    signature = "turned(Tensor x, int pad=0) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.attr_int("pad")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        x = kb.arg_value("x")
        if ksel.arg_descs[1].v:
            kb.scratch("pad_memory", ksel.arg_descs[1].v, "uint8")
        kb.scratch("back", x.size, x.dtype)
        kb.scratch("ahead", x.size, "float64" if ksel.has("shaderFloat64") else "float32")
        kb.begin_dispatch()
        kb.grid(x.size)
        kb.emit("""
            uint k = gl_GlobalInvocationID.x;
            if (k < x_size) { back_store(k, x_load(x_size - 1 - k)); ahead_store(k, x_load(k)); }
        """)
        kb.begin_dispatch()
        kb.grid(x.size)
        kb.emit("""
            uint k = gl_GlobalInvocationID.x;
            if (k < x_size) result_store(k, back_load(k) + 0 * float(ahead_load(k)));
        """)


def scratch(mgr):
    return mgr.memory.labels().get("scratch", kp.MemoryLabel(0, 0))


def test_all_operations_share_one_piece(mgr):
    rng = np.random.default_rng(0)
    arrays = [rng.random(n, np.float32) for n in (10, 1000, 5000, 3000)]
    for x in arrays:
        np.testing.assert_array_equal(turned(x), x[::-1])
        np.testing.assert_array_equal(turned(mgr.tensor_t(x)).read(), x[::-1])
    assert scratch(mgr).objects == 1
    operations = [turned.op(mgr.tensor_t(x)) for x in arrays * 5]
    assert scratch(mgr).objects == 1
    sequence = mgr.sequence().record(*operations)
    for _ in range(3):
        sequence.eval()
        for x, operation in zip(arrays * 5, operations, strict=True):
            np.testing.assert_array_equal(operation.results[0].read(), x[::-1])


def test_one_that_needs_more_gets_a_larger_piece(mgr):
    x = np.random.default_rng(1).random(100, np.float32)
    small = turned.op(mgr.tensor_t(x))
    before = scratch(mgr).bytes
    large = turned.op(mgr.tensor_t(x), pad=10 * before)
    assert scratch(mgr).objects == 2 and scratch(mgr).bytes > 10 * before
    again = turned.op(mgr.tensor_t(x), pad=before)
    assert scratch(mgr).objects == 2
    mgr.sequence().record(small, large, again, small).eval()
    for each in (small, large, again):
        np.testing.assert_array_equal(each.results[0].read(), x[::-1])


def test_trim_frees_what_no_recording_uses(mgr):
    x = np.random.default_rng(2).random(20_000, np.float32)
    mgr.memory.trim()
    others = turned.cache_info().prepared  # on other Managers
    turned(x), turned(x)
    operation = turned.op(mgr.tensor_t(x))
    used = mgr.memory.used
    mgr.memory.trim()
    assert scratch(mgr).objects == 1 and turned.cache_info().prepared == others
    mgr.sequence().record(operation).eval()
    np.testing.assert_array_equal(operation.results[0].read(), x[::-1])
    del operation
    gc.collect()
    assert scratch(mgr).objects == 0 and mgr.memory.used < used
    np.testing.assert_array_equal(turned(x), x[::-1])
    mgr.memory.trim()
    assert scratch(mgr).objects == 0


def test_recordings_at_the_same_time(mgr):
    queues = len(mgr.queues)
    rng = np.random.default_rng(3)
    arrays = [rng.random(2000 + 100 * k, np.float32) for k in range(8)]
    operations = [turned.op(mgr.tensor_t(x)) for x in arrays]
    sequences = [mgr.sequence(k % queues).record(op) for k, op in enumerate(operations)]
    for _ in range(5):
        for sequence in sequences:
            sequence.eval_async()
        for sequence in sequences:
            sequence.eval_await()
        for x, op in zip(arrays, operations, strict=True):
            np.testing.assert_array_equal(op.results[0].read(), x[::-1])

    def work(seed):
        x = np.random.default_rng(seed).random(500 + seed, np.float32)
        for _ in range(10):
            np.testing.assert_array_equal(turned(mgr.tensor_t(x)).read(), x[::-1])

    on_threads(work, range(4))


@pytest.mark.capability(
    "I40 S53",
    "temporary memory that recordings share in the order of the queue",
    "Manager.scratch",
    "guides/generated_operations",
)
@pytest.mark.usefixtures("clean")  # a Manager of its own
def test_scratch_of_users(mgr):
    first, second = mgr.scratch(), mgr.scratch()
    a, b = first.empty(1000), first.empty((3, 5), np.int16)
    c = second.empty((2, 2, 2), np.float32)
    assert a.vk_buffer == b.vk_buffer == c.vk_buffer and a.vk_offset == c.vk_offset
    assert b.vk_offset >= a.vk_offset + a.nbytes and b.shape == (3, 5) and b.dtype == np.int16
    assert repr(first) == "<kp.Scratch, 4352 bytes in use>"
    x, out, other = mgr.tensor(np.arange(1000)), mgr.zeros(1000), mgr.zeros((2, 2, 2))
    sequence = mgr.sequence().record(
        kp.OpCopy([x, a]), kp.OpCopy([a, out]), kp.OpFill([c], 3.0), kp.OpCopy([c, other])
    )
    for _ in range(3):
        sequence.eval()
        assert out.read().tolist() == list(range(1000)) and other.read().ravel().tolist() == [3] * 8
    large = first.empty(10**6)  # beyond the piece
    assert large.vk_buffer != a.vk_buffer and scratch(mgr).objects == 2
    assert second.empty(10**5).vk_buffer == large.vk_buffer
    assert first.empty(0).shape == (0,) and first.empty(()).shape == ()
    with pytest.raises(kp.InvalidArgumentError, match="-1"):
        first.empty(-1)
    with pytest.raises(kp.ArgumentTypeError):
        first.empty(3, "nothing")
    with pytest.raises(kp.ArgumentTypeError):
        kp.Scratch(3)
    with kp.Manager(0) as gone:
        pass
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        gone.scratch()


def test_a_manager_does_not_stay_for_its_scratch(mgr):
    import weakref

    other = kp.Manager(0)
    turned(other.zeros(100))
    other.scratch().empty(10)
    reference = weakref.ref(other)
    del other
    gc.collect()
    assert reference() is None
