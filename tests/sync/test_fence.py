"""Fences and one-shot operations: work that is only submitted."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import kompute_py as kp


@pytest.mark.capability(
    "I41 S5 S15",
    "fills and copies in queue order, without waiting",
    "Tensor.copy_from, Tensor.copy_to",
    "guides/asynchronous",
)
def test_one_shots_are_ordered(mgr):
    a, b, c = mgr.tensor_t(np.arange(64)), mgr.zeros(64, np.int64, "storage"), mgr.zeros(64, np.int64, "host")
    mgr.sequence().eval(kp.OpSyncDevice([a]))
    b.fill(1)
    b[0:32].copy_from(a[16:48])
    fence = b.copy_to(c)
    b.fill(0)
    assert fence.wait() is fence and fence.done()
    assert c.numpy().tolist() == [*range(16, 48), *[1] * 32]
    mgr.synchronize()
    assert set(b.read()) == {0}


def test_arrays(mgr):
    t = mgr.zeros((2, 3))
    assert t.copy_from(np.arange(6)).done()
    out = np.empty((2, 3), np.float32)
    assert t.copy_to(out).done()
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_images(mgr):
    picture = np.arange(12, dtype=np.float32).reshape(3, 4)
    image, t = mgr.image(np.zeros((3, 4), np.float32)), mgr.tensor(picture)
    mgr.sequence().eval(kp.OpSyncDevice([t, image]))
    image.copy_from(t).wait()
    np.testing.assert_array_equal(image.read(), picture)


@pytest.mark.capability("I47 I48", "several fences as one", "Fence.join", "guides/asynchronous")
def test_join(mgr):
    tensors = [mgr.zeros(1 << 16, np.uint8) for _ in range(4)]
    fence = kp.Fence.join(*[t.fill(i) for i, t in enumerate(tensors)])
    fence.wait(10)
    assert [t.read()[-1] for t in tensors] == [0, 1, 2, 3]
    assert kp.Fence.join().wait(0).done() and kp.Fence.join(fence, fence).done()
    with pytest.raises(kp.ArgumentTypeError):
        kp.Fence.join(fence, 3)


def test_timeouts(mgr):
    t = mgr.zeros(1 << 24, np.uint8)
    fences = [t.fill(i % 256) for i in range(30)]
    try:
        fences[-1].wait(0)
    except kp.EvalTimeoutError as error:
        assert isinstance(error, TimeoutError) and "wait again" in str(error)
    assert fences[-1].wait(timeout=60).done() and fences[0].done()
    for wrong, error in (
        (-1, kp.InvalidArgumentError),
        ("x", kp.ArgumentTypeError),
        (float("nan"), kp.InvalidArgumentError),
    ):
        with pytest.raises(error, match="timeout"):
            fences[0].wait(wrong)
    assert "done" in repr(fences[0]) and fences[0].wait(float("inf"))


def test_what_the_work_uses_may_go(mgr):
    t = mgr.zeros(1 << 20, np.uint8, "storage")
    fence = t.fill(1)
    t.destroy()
    del t
    gc.collect()
    fence.wait()
    fence = mgr.zeros(1 << 20, np.uint8).fill(3)
    gc.collect()
    fence.wait()
    assert kp.alive(detail=True)["buffer"] == 0 == kp.alive(detail=True)["stream"]


def test_fences_outlive_their_manager(make_manager):
    mgr = make_manager()
    fence = mgr.zeros(1 << 20).fill(1)
    mgr.destroy()
    assert fence.done() and fence.wait()
    del mgr
    gc.collect()
    assert kp.Fence.join(fence).done()


def test_errors_of_one_shots(mgr):
    t = mgr.zeros(4)
    with pytest.raises(kp.InvalidArgumentError, match="equal sizes"):
        t.copy_from(mgr.zeros(5))
    with pytest.raises(kp.ArgumentTypeError, match="dtype"):
        t.copy_to(mgr.zeros(4, np.int32))
    t.destroy()
    for use in (t.fill, lambda: t.copy_from(np.zeros(4)), lambda: mgr.zeros(4).copy_from(t)):
        with pytest.raises(kp.FailedPreconditionError):
            use()


@pytest.mark.capability("W23", "kernels that do not wait", "Kernel.submit", "guides/asynchronous")
def test_kernels_are_submitted(mgr):
    k = mgr.kernel(
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer A { float a[]; };\n"
        "layout(push_constant) uniform P { float by; };\n"
        "void main() { if (gl_GlobalInvocationID.x < a.length()) a[gl_GlobalInvocationID.x] += by; }\n"
    )
    t = mgr.tensor(np.arange(100))
    fences = [k.submit(t, by=float(i)) for i in range(20)]
    kp.Fence.join(*fences).wait()
    np.testing.assert_array_equal(t.read(), np.arange(100) + 190)
    with pytest.raises(kp.ArgumentTypeError, match="ndarray"):
        k.submit(np.zeros(4, np.float32), by=1.0)


def test_submit_of_kernels_and_operations_waits_and_signals_and_leaves_nothing_behind(mgr):
    add = mgr.kernel("""
    layout(local_size_x = 4) in;
    layout(binding = 0) buffer X { float x[]; };
    layout(push_constant) uniform P { float n; };
    void main() { x[gl_GlobalInvocationID.x] += n; }""")
    t = mgr.zeros(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for submit in (
            lambda **order: add.submit(t, n=1, **order),
            lambda **order: kp.ops.add.submit(t, t, out=t, **order),
        ):
            t.fill(2)
            submit().wait(30)
            once = t.read().tolist()
            sem = mgr.semaphore()
            t.fill(2)
            fence = submit(wait=(sem, 1), signal=[(sem, 2)])
            gc.collect()  # what was recorded for it goes, while it is held
            assert not fence.done() and sem.query() == 0
            sem.signal(1)
            sem.wait(2, timeout=30)
            assert fence.wait(30).done() and t.read().tolist() == once
        add.submit(t, n=1)
        kp.ops.add.submit(t, t, out=t)
        gc.collect()  # while they run
    with pytest.raises(kp.ArgumentTypeError, match="wait takes fences"):
        add.submit(t, n=1, wait=3)


def test_submit_takes_one_sequence_or_several(mgr):
    tensor = mgr.tensor(np.arange(4, dtype=np.float32))
    seq = mgr.sequence().record(kp.OpSyncDevice([tensor]))
    mgr.submit(seq).wait()
    mgr.submit([seq]).wait()
    for wrong in (None, 3):
        with pytest.raises(kp.ArgumentTypeError, match="takes sequences"):
            mgr.submit(wrong)
