"""Tensors made by their shape: what they hold, what they cost, when their host copies come to be."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child
from tests.support.threads import on_threads

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
KINDS = ("device", "host", "storage", "deviceAndHost")
RECORD = np.dtype([("a", "<i4"), ("b", "<f8")])
VALUES = [
    (7, np.int32), (-3, np.int8), (True, np.bool_), (1.5, np.float16), (1 + 2j, np.complex128),
    ((3, 0.25), RECORD), (2**63, np.uint64),
]  # fmt: skip


def used(mgr: kp.Manager) -> int:
    """Bytes in live allocations of device and host memory."""
    return sum(heap["used"] for heap in mgr._native.memory_statistics())


def sync_local(mgr: kp.Manager, *tensors: kp.Tensor) -> None:
    mgr.sequence().record(kp.OpSyncLocal(list(tensors))).eval()


@pytest.mark.parametrize("where", KINDS)
def test_zeros_are_zeros_on_both_sides(mgr, where):
    # After memory was used for something else: a driver hands out fresh memory cleared.
    mgr.full(4097, 9, np.uint8, where).destroy()
    t = mgr.zeros((17, 241), np.uint8, where)
    assert t.shape == (17, 241) and t.dtype == np.uint8
    np.testing.assert_array_equal(t.read(), np.zeros((17, 241), np.uint8))
    if where != "storage":
        np.testing.assert_array_equal(t.numpy(), np.zeros((17, 241), np.uint8))


@pytest.mark.parametrize("where", KINDS)
@pytest.mark.parametrize(("value", "dtype"), VALUES, ids=[np.dtype(d).name for _, d in VALUES])
def test_full_is_the_value_on_both_sides(mgr, where, value, dtype):
    t = mgr.full((3, 67), value, dtype, where)
    expected = np.full((3, 67), np.array(value, dtype), dtype)
    np.testing.assert_array_equal(t.read(), expected)
    if where != "storage":
        np.testing.assert_array_equal(t.numpy(), expected)
        assert t.data().dtype == dtype


@pytest.mark.parametrize("count", [1, 3, 4095, 300_001])
def test_full_repeats_long_elements_to_the_last_byte(mgr, count):
    dtype = np.dtype([("a", "<u2", (3,)), ("b", "u1")])  # 7 bytes: no word repeats it
    t = mgr.full(count, ([1, 2, 3], 4), dtype, "storage")
    np.testing.assert_array_equal(t.read(), np.full(count, np.array(([1, 2, 3], 4), dtype)))


def test_full_repeats_a_row(mgr):
    t = mgr.full((5, 2, 3), np.array([1, 2, 3], np.int16))
    assert t.dtype == np.int16 and t.read()[4, 1].tolist() == [1, 2, 3]
    assert mgr.full((2, 3), np.float64(0.5)).dtype == np.float64
    assert mgr.full(3, 2).dtype == np.float32


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (2.5, np.int32, kp.ArgumentTypeError), (300, np.uint8, kp.InvalidArgumentError),
        (-1, np.uint32, kp.InvalidArgumentError), (float("nan"), np.int32, kp.ArgumentTypeError),
        (1j, np.float32, kp.ArgumentTypeError), ([1, 2], np.float32, kp.InvalidArgumentError),
        (None, np.float32, kp.ArgumentTypeError), ("1", np.float32, kp.ArgumentTypeError),
        (b"\0", np.float32, kp.ArgumentTypeError), ((1, 2, 3), RECORD, kp.InvalidArgumentError),
        (1, "V8", kp.ArgumentTypeError),
    ],
)  # fmt: skip
def test_full_refuses_what_does_not_fit(mgr, value, dtype, error):
    with pytest.raises(error, match=r"dtype|element|fill|takes|The data is a str"):
        mgr.full(3, value, dtype)


def test_shapes_of_any_rank(mgr):
    assert mgr.zeros(()).shape == () and mgr.zeros(()).read().shape == () and mgr.zeros(()).size() == 1
    assert mgr.empty(5).shape == (5,) and mgr.empty((2, 1, 3, 1, 2, 1)).ndim == 6
    assert mgr.full((), 3, np.int32).numpy()[()] == 3
    t = mgr.tensor_t(np.float64(2.5), "storage")
    assert t.shape == () and t.read() == 2.5 and np.asarray(t) == 2.5
    pairs = mgr.zeros(4, "2i2")  # a dtype with axes, as NumPy's zeros takes it
    assert pairs.shape == (4, 2) and pairs.dtype == np.int16
    with pytest.raises(kp.ArgumentTypeError, match="axes"):
        pairs.view(np.dtype("2i2"))
    for shape in (0, (3, 0)):
        assert mgr.zeros(shape).size() == 0
    with pytest.raises(kp.InvalidArgumentError, match="negative"):
        mgr.zeros(-1)


@pytest.mark.parametrize("make", ["empty", "zeros"])
def test_sizes_beyond_any_memory_are_named(mgr, make):
    for shape in ((2**40, 2**40), (2**62, 4), 2**63):
        with pytest.raises(kp.OutOfMemoryError, match=r"shape .*bytes"):
            getattr(mgr, make)(shape)
    with pytest.raises(kp.OutOfMemoryError, match="bytes"):
        mgr.full(2**62, 1, np.complex128)
    assert mgr.zeros(3).read().tolist() == [0, 0, 0]


# -- host copies ---------------------------------------------------------------------------------------------


def test_a_host_copy_is_made_when_it_is_needed(mgr):
    mgr.zeros(3 << 20).read()  # both slots of the staging ring, where memory needs them
    before = used(mgr)
    t = mgr.full(1 << 20, 2.5)
    assert 4 << 20 <= used(mgr) - before < 5 << 20
    repr(t), t.shape, t.nbytes, t.read(), np.asarray(t), t[4:8].read(), repr(t[4:8])
    t.write(np.full(1 << 20, 1.0, np.float32))
    assert used(mgr) - before < 5 << 20
    assert (
        t.data()[0] == 2.5 and (t.data() == 2.5).all()
    )  # what it was made with, not what the device has now
    assert used(mgr) - before >= 8 << 20
    assert "2.5" in repr(t)
    t.destroy()
    assert used(mgr) == before


@pytest.mark.parametrize("op", [kp.OpSyncDevice, kp.OpSyncLocal])
def test_syncs_make_host_copies(mgr, op):
    before = used(mgr)
    t = mgr.zeros(1 << 18, np.uint32)
    sequence = mgr.sequence().record(op([t]))
    assert used(mgr) - before >= 2 << 20
    sequence.eval()
    assert not t.data().any() and not t.read().any()


def test_a_part_that_is_synced_leaves_the_rest_as_it_began(mgr):
    t = mgr.full(64, 3, np.int32)
    t.write(np.arange(64))
    sync_local(mgr, t[16:32])
    assert t.data().tolist() == [3] * 16 + list(range(16, 32)) + [3] * 32


def test_data_written_by_the_host_goes_to_the_device(mgr):
    t = mgr.empty(100)
    t.data()[:] = np.arange(100)
    mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    assert t.read().tolist() == list(range(100))


def test_threads_agree_on_one_host_copy(mgr):
    for _ in range(20):
        t = mgr.full(50_000, 5, np.uint8)
        views, start = [], threading.Barrier(4)

        def look(_, t=t, views=views, start=start):
            start.wait()
            views.append(t[100:200].data())

        on_threads(look, range(4))
        views[0][:] = 6
        assert all((view == 6).all() for view in views) and t.data()[99] == 5


def test_destroyed_tensors_make_no_host_copy(mgr):
    t = mgr.zeros(8)
    part = t[2:4]
    t.destroy()
    for refused in (t.data, part.data, lambda: kp.OpSyncLocal([t]), lambda: kp.OpSyncDevice([part])):
        with pytest.raises(kp.FailedPreconditionError):
            refused()
    assert "destroyed" in repr(t)


def test_views_of_a_late_host_copy_outlive_the_tensor(mgr):
    t = mgr.full(1000, 7, np.int64)
    view = t.data()
    t.destroy()
    assert (view == 7).all()


def peak_of_large_tensors() -> int:
    def peak() -> int:
        return int(re.search(r"VmHWM:\s+(\d+)", STATUS.read_text())[1]) >> 10

    with kp.Manager() as mgr:
        mgr.zeros(1000).read()
        mgr.full(1000, 1 + 2j, np.complex128, "storage").read()
        RESET.write_text("5")
        start = peak()
        zeros = mgr.zeros(64 << 20, np.uint8)
        full = mgr.full(4 << 20, 1 + 2j, np.complex128)
        empty = mgr.empty((64, 1 << 20), np.uint8)
        assert all(map(repr, (zeros, full, empty)))
        assert full[-1:].read()[0] == 1 + 2j and not zeros[-5:].read().any()
        return peak() - start


@pytest.mark.own_driver
@pytest.mark.skipif(not RESET.exists(), reason="this system does not count a process's peak anew")
def test_large_tensors_cost_their_device_memory_once():
    # Where device memory is the process's own. zeros and full touch their 64 MiB each; empty touches none,
    # and nothing is made of that size on the way.
    assert 120 <= run_child(peak_of_large_tensors, driver="lavapipe") <= 136


def contents_on_discrete_memory() -> list[bool]:
    with kp.Manager() as mgr:
        record = np.dtype([("a", "<u2", (3,)), ("b", "u1")])
        good = []
        for value, dtype in [(0, "u1"), (3, "u1"), (1.5, "f4"), (1 + 2j, "c16"), (((1, 2, 3), 4), record)]:
            for count in (1, 5, 100_003):
                t = mgr.full(count, value, dtype)
                assert not t._native.host_visible
                expected = np.full(count, np.array(value, dtype), dtype)
                good.append(bool((t.read() == expected).all()) and bool((t.data() == expected).all()))
        return good


@pytest.mark.own_driver
def test_the_device_fills_memory_that_the_host_does_not_see():
    assert all(run_child(contents_on_discrete_memory, driver="null", config="memory=discrete"))


# -- large tensors -------------------------------------------------------------------------------------------


def test_tensors_beyond_the_binding_limit_are_moved_and_bound_in_windows(mgr):
    limit = mgr.get_device_properties()["limits"]["maxStorageBufferRange"]
    if limit > 1 << 28:
        pytest.skip(f"this device binds {limit} bytes at once")
    count = limit // 4 + 1024
    t = mgr.zeros(count, np.uint32)
    other = mgr.empty(count, np.uint32, "storage")
    last = np.arange(1024, dtype=np.uint32)
    t[limit // 4 :].write(last)
    mgr.sequence().record(kp.OpCopy([t, other])).eval()
    np.testing.assert_array_equal(other[limit // 4 :].read(), last)
    spirv = kp.compile(
        """
        #version 450
        layout(local_size_x = 64) in;
        layout(binding = 0) buffer D { uint x[]; };
        void main() { x[gl_GlobalInvocationID.x] += 10; }
        """
    )
    with pytest.raises(kp.InvalidArgumentError, match=r"maxStorageBufferRange.*t\[a:b\].*buffer address"):
        mgr.algorithm([t], spirv, (1, 1, 1))
    algorithm = mgr.algorithm([t[limit // 4 :]], spirv, (16, 1, 1))
    mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_array_equal(t[limit // 4 :].read(), last + 10)
    assert not t[:1024].read().any()
