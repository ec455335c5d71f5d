"""The buffer protocol and np.asarray: what is a view, what is a copy, what is refused."""

from __future__ import annotations

import gc
import hashlib
import pickle
import struct
import sys
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

HOST_TYPES = ["host", "deviceAndHost"]


@pytest.mark.parametrize("where", HOST_TYPES)
def test_a_memoryview_shares_memory(mgr, where):
    t = mgr.tensor_t(np.arange(6, dtype=np.int32).reshape(2, 3), where)
    view = memoryview(t)
    assert (view.shape, view.format, view.itemsize, view.readonly) == ((2, 3), "i", 4, False)
    view[1, 2] = 77
    assert t.read()[1, 2] == 77
    flat = np.frombuffer(t, np.int32)
    t.write(np.full(6, 3))
    assert flat.tolist() == [3] * 6 and view.tolist() == [[3] * 3] * 2
    assert bytes(t) == t.read().tobytes() == struct.pack("6i", *[3] * 6)
    assert hashlib.sha256(t).digest() == hashlib.sha256(bytes(t)).digest()
    part = memoryview(t[1])
    assert part.shape == (3,)
    part[0] = 9
    assert t.read()[1, 0] == 9


@pytest.mark.parametrize("where", ["device", "storage"])
def test_other_memory_has_no_buffer(mgr, where):
    t = mgr.tensor([1, 2, 3], where)
    with pytest.raises(BufferError, match=rf"memory type {where}.*read\(\)"):
        memoryview(t)
    with pytest.raises(kp.ExchangeError):
        np.frombuffer(t, np.float32)


def test_a_destroyed_tensor_has_none(mgr):
    t = mgr.tensor([1], "host")
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        memoryview(t)


@pytest.mark.parametrize("where", HOST_TYPES)
def test_views_outlive_tensor_and_manager(make_manager, where):
    mgr = make_manager()
    t = mgr.tensor(np.arange(100), where)
    whole, part = memoryview(t), memoryview(t[90:])
    t.destroy()
    others = [mgr.tensor(np.full(100, -1), where) for _ in range(4)]
    assert whole[99] == 99 and part[0] == 90
    del t, others
    mgr.destroy()
    gc.collect()
    assert whole[99] == 99 and part[9] == 99


def test_waits_for_pending_work(mgr):
    n = 1 << 20
    a, out = mgr.tensor(np.arange(n), "host"), mgr.empty(n, memory_type="host")
    sequence = mgr.sequence().record(kp.OpMult([a, a, out]))
    sequence.eval_async()
    assert memoryview(out)[1000] == 1e6
    sequence.eval_await()


@pytest.mark.parametrize("where", kp.MemoryTypes.__members__)
def test_asarray_is_the_devices_contents(mgr, where):
    t = mgr.tensor_t(np.arange(6, dtype=np.float32).reshape(2, 3), where)
    t.write(np.full((2, 3), 5))
    a = np.asarray(t)
    assert a.shape == (2, 3) and a.dtype == np.float32 and (a == 5).all()
    t.write(np.full((2, 3), 6))
    assert (a == (6 if where in HOST_TYPES else 5)).all()
    assert np.array(t).tolist() == [[6] * 3] * 2
    copied = np.array(t, copy=True)
    t.write(np.zeros((2, 3)))
    assert (copied == 6).all()
    assert np.asarray(t, dtype=np.int64).dtype == np.int64


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="copy=False means it from NumPy 2 on"
)
@pytest.mark.parametrize("where", kp.MemoryTypes.__members__)
def test_copy_false_never_copies(mgr, where):
    t = mgr.tensor([1, 2, 3], where)
    if where in HOST_TYPES:
        a = np.asarray(t, copy=False)
        a[0] = 9
        assert t.read()[0] == 9
        assert t.__array__(copy=False).base is not None
        with pytest.raises(kp.InvalidArgumentError, match=r"without a copy; use astype"):
            t.__array__(np.float64, copy=False)
    else:
        with pytest.raises(kp.InvalidArgumentError, match=r"always a copy; use read"):  # a ValueError
            np.asarray(t, copy=False)
        with pytest.raises(kp.InvalidArgumentError, match=r"without a copy; use read"):
            t[::2].__array__(copy=False)


def test_dtypes_of_buffers(mgr):
    for dtype in ("bool", "int8", "uint64", "float16", "float64", "complex128"):
        t = mgr.tensor_t(np.ones(3, dtype), "host")
        assert np.asarray(memoryview(t)).dtype == np.dtype(dtype)
    points = np.zeros(2, [("x", "f4"), ("n", "i4")])
    points["n"] = 4
    assert np.asarray(mgr.tensor_t(points, "host"))["n"].tolist() == [4, 4]


def test_bfloat16_has_no_letter(mgr):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    t = mgr.tensor_t(np.ones(3, ml_dtypes.bfloat16), "host")
    with pytest.raises(kp.ExchangeError, match="as a buffer"):
        memoryview(t)
    a = np.asarray(t)
    assert a.dtype == ml_dtypes.bfloat16 and a.tolist() == [1, 1, 1]
    a[0] = 2
    assert t.read()[0] == 2


def test_tensors_stay_slim(mgr):
    t = mgr.tensor([1, 2], "host")
    assert not hasattr(t, "__dict__")
    with pytest.raises(AttributeError):
        t.anything = 1
    gone = weakref.ref(t)
    view = memoryview(t)
    del t
    assert gone() is not None
    del view
    assert gone() is None  # no cycle: it goes at once


def check_noncoherent():
    with kp.Manager() as mgr:
        t = mgr.tensor(np.arange(4), "deviceAndHost")
        mgr.sequence().eval(kp.OpFill([t], 2.0))
        assert memoryview(t).tolist() == [2.0] * 4
        memoryview(t)[0] = 5
        other = mgr.zeros(4, memory_type="deviceAndHost")
        mgr.sequence().eval(kp.OpCopy([t, other]))
        assert np.asarray(other).tolist() == [5, 2, 2, 2]


@pytest.mark.own_driver
def test_noncoherent_memory():
    run_child(check_noncoherent, driver="null", config="memory=noncoherent")


def test_numpy_gets_a_copy_of_device_memory_without_an_error(mgr):
    t = mgr.tensor([1, 2, 3])
    count = sys.getrefcount(t)
    for _ in range(100):
        assert np.asarray(t).tolist() == [1, 2, 3]
        assert np.array(t).tolist() == [1, 2, 3]
        assert getattr(t, "__array_interface__", None) is None
        assert not hasattr(t, "__array_interface__")
    assert sys.getrefcount(t) == count
    try:
        raise ValueError
    except ValueError:  # CPython makes errors at once while another one is handled
        assert np.asarray(t).tolist() == [1, 2, 3]


def test_the_errors_of_memory_that_is_not_shared(mgr):
    t = mgr.tensor([1, 2, 3])
    what = r"^Tensor of shape \(3,\), float32"
    with pytest.raises(
        kp.ExchangeError, match=f"{what} has memory type device, which has no buffer"
    ) as caught:
        memoryview(t)
    assert type(caught.value) is kp.ExchangeError
    assert caught.value.args == (str(caught.value),)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(AttributeError, match=f"{what}, device, has no '__array_interface__'") as caught:
        _ = t.__array_interface__
    assert isinstance(caught.value, kp.KomputeError)
    assert caught.value.name == "__array_interface__"
    assert caught.value.obj is t
    t.destroy()
    for look in (memoryview, lambda t: t.__array_interface__, np.asarray):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            look(t)
