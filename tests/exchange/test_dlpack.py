"""DLPack both ways, with NumPy and a reader of the capsules made of ctypes alone;
test_torch.py has PyTorch."""

from __future__ import annotations

import ctypes
import datetime
import gc
from typing import ClassVar

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child
from tests.support.threads import beside

pytestmark = pytest.mark.each_driver

HOST_TYPES = ["host", "deviceAndHost"]
DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


# -- an independent consumer ---------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype, _api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Taken:
    """What a capsule holds, taken from it as the protocol says; `drop` gives it back."""

    USED: ClassVar = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}

    def __init__(self, capsule) -> None:
        self.name = _api.PyCapsule_GetName(capsule)
        kind = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}[self.name]
        self.address = _api.PyCapsule_GetPointer(capsule, self.name)
        self.managed = kind.from_address(self.address)
        _api.PyCapsule_SetName(capsule, self.USED[self.name])
        tensor = self.managed.tensor
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
        self.device = (tensor.device_type, tensor.device_id)
        self.type = (tensor.code, tensor.bits, tensor.lanes)
        self.flags = getattr(self.managed, "flags", None)

    def bytes(self, count: int):
        return (ctypes.c_uint8 * count).from_address(
            self.managed.tensor.data + self.managed.tensor.byte_offset
        )

    def drop(self) -> None:
        # A plain C call: without the interpreter lock, as a consumer's own thread would.
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.managed.deleter)(self.address)


def shared_everywhere(mgr) -> bool:
    return mgr.zeros(1).__dlpack_device__() == (1, 0)


# -- giving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", kp.MemoryTypes.__members__)
def test_numpy_shares_the_devices_contents(mgr, where):
    t = mgr.tensor_t(np.arange(6, dtype=np.float32).reshape(2, 3), where)
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    if not shared_everywhere(mgr) and where not in HOST_TYPES:
        pytest.skip("this driver's device memory is not the host's")
    a = np.from_dlpack(t)
    assert a.shape == (2, 3) and a.dtype == np.float32
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]
    t.write(np.full(6, 7.0))
    assert (a == 7).all()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # before, NumPy calls all of DLPack's read-only
        a[1, 2] = -1
        assert t.read().tolist() == [[7, 7, 7], [7, 7, -1]]


@pytest.mark.parametrize("where", HOST_TYPES)
def test_work_on_both_sides_without_a_copy(mgr, where):
    a, b, out = (mgr.tensor(np.zeros(100), where) for _ in range(3))
    x, y, z = (Taken(t.__dlpack__()) for t in (a, b, out))
    for view, values in ((x, np.arange(100)), (y, np.full(100, 3))):
        np.frombuffer(view.bytes(400), np.float32)[:] = values
    mgr.sequence().eval(kp.OpMult([a, b, out]))
    np.testing.assert_array_equal(np.frombuffer(z.bytes(400), np.float32), np.arange(100) * 3.0)
    for view in (x, y, z):
        view.drop()


def test_the_memory_outlives_tensor_and_manager(make_manager):
    mgr = make_manager()
    data = np.arange(1000, dtype=np.int64)
    kept = []
    for where in HOST_TYPES:
        t = mgr.tensor_t(data, where)
        kept += [np.from_dlpack(t), np.from_dlpack(t[10:]), Taken(t.__dlpack__())]
        t.destroy()
    # New tensors would lie where the destroyed ones' memory was, had that been given back.
    others = [mgr.tensor_t(np.zeros(1000, np.int64), "host") for _ in range(8)]
    for array, view, taken in (kept[:3], kept[3:]):
        assert (array == data).all() and (view == data[10:]).all()
        assert (np.frombuffer(taken.bytes(8000), np.int64) == data).all()
    del others, t
    mgr.destroy()
    del mgr
    gc.collect()
    assert kp.alive(detail=True)["context"] >= 1
    for array, view, taken in (kept[:3], kept[3:]):
        assert (array == data).all() and (view == data[10:]).all()
        taken.drop()


def test_threads_drop_capsules_after_the_manager(make_manager):
    mgr = make_manager()
    taken = [Taken(mgr.tensor(np.arange(50), "host").__dlpack__(max_version=(1, 0))) for _ in range(40)]
    unused = [mgr.tensor(np.arange(50), "host").__dlpack__() for _ in range(10)]
    mgr.destroy()
    del mgr
    with beside(lambda part: [t.drop() for t in part], [taken[i::4] for i in range(4)]):
        unused.clear()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_what_a_capsule_says(mgr, dtype, version):
    code = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}[np.dtype(dtype).kind]
    data = np.ones((2, 3, 4), dtype)
    t = mgr.tensor_t(data, "host")
    for tensor, shape, strides in (
        (t, (2, 3, 4), (12, 4, 1)),
        (t[1], (3, 4), (4, 1)),
        (t.reshape(24), (24,), (1,)),
    ):
        taken = Taken(tensor.__dlpack__(max_version=version))
        assert taken.name == (b"dltensor" if version is None else b"dltensor_versioned")
        assert taken.device == (1, 0) and taken.shape == shape and taken.strides == strides
        assert taken.type == (code, data.itemsize * 8, 1)
        assert taken.flags == (None if version is None else 0)
        if version is not None:
            assert (taken.managed.major, taken.managed.minor) >= (1, 0)
        assert bytes(taken.bytes(tensor.nbytes)) == tensor.read().tobytes()
        taken.drop()


@pytest.mark.parametrize("made", ["tensor_t", "as_tensor", "zeros", "from_host"])
def test_what_came_in_the_other_byte_order_is_shared(mgr, made):
    """The tensor has the machine's order, and the same dtype as any other."""
    array = np.zeros(3, ">f4")
    t = getattr(mgr, made)(*((3, ">f4") if made == "zeros" else (array,)))
    assert t.dtype is np.dtype(np.float32)
    np.testing.assert_array_equal(np.from_dlpack(t), array)


def test_bfloat16(mgr):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    t = mgr.tensor_t(np.arange(4).astype(ml_dtypes.bfloat16), "host")
    taken = Taken(t.__dlpack__())
    assert taken.type == (4, 16, 1)
    taken.drop()
    back = kp.from_dlpack(t, mgr)
    assert back.dtype == ml_dtypes.bfloat16 and back.read().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("where", kp.MemoryTypes.__members__)
def test_copies_when_asked(mgr, where):
    t = mgr.tensor([1, 2, 3], where)
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    taken = Taken(t.__dlpack__(copy=True, max_version=(1, 0)))
    assert taken.flags == 2 and taken.device == (1, 0)  # IS_COPIED
    t.write([4, 5, 6])
    assert np.frombuffer(taken.bytes(12), np.float32).tolist() == [1, 2, 3]
    taken.drop()
    shared = Taken(t.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
    assert np.frombuffer(shared.bytes(12), np.float32).tolist() == [4, 5, 6]
    assert shared.flags == (0 if t.__dlpack_device__() == (1, 0) else 2)
    shared.drop()


def test_waits_for_pending_work(mgr):
    n = 1 << 20
    a, b = mgr.tensor(np.arange(n), "host"), mgr.tensor(np.full(n, 2), "host")
    out = mgr.empty(n, memory_type="host")
    sequence = mgr.sequence().record(kp.OpMult([a, b, out]))
    sequence.eval_async()
    assert np.from_dlpack(out)[-1] == (n - 1) * 2
    sequence.eval_await()


def test_what_cannot_be_shared_is_refused(mgr):
    t = mgr.tensor([1, 2], "host")
    with pytest.raises(kp.InvalidArgumentError, match="stream is 1"):
        t.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"cannot go to DLPack device \(2, 0\)"):
        t.__dlpack__(dl_device=(2, 0))
    points = mgr.tensor_t(np.zeros(3, [("x", "f4"), ("y", "i4")]), "host")
    with pytest.raises(kp.ExchangeError, match="DLPack has no name for"):
        points.__dlpack__()
    t.destroy()
    for use in (t.__dlpack__, t.__dlpack_device__):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            use()


def check_memory_that_the_host_does_not_see():
    with kp.Manager() as mgr:
        for where in ("device", "storage"):
            t = mgr.tensor([1, 2, 3], where)
            t.write([1, 2, 3])
            assert t.__dlpack_device__() == (7, 0)
            for options in ({}, {"copy": False}, {"copy": False, "dl_device": (1, 0)}):
                with pytest.raises(kp.ExchangeError, match=r"read\(\).*deviceAndHost"):
                    t.__dlpack__(**options)
            for options in ({"copy": True}, {"dl_device": (1, 0)}):
                taken = Taken(t.__dlpack__(max_version=(1, 0), **options))
                assert taken.flags == 2
                assert np.frombuffer(taken.bytes(12), np.float32).tolist() == [1, 2, 3]
                taken.drop()
        for where in HOST_TYPES:
            assert np.from_dlpack(mgr.tensor([1, 2], where)).tolist() == [1, 2]


@pytest.mark.own_driver
@pytest.mark.parametrize("memory", ["discrete", "noncoherent"])
def test_memory_that_the_host_does_not_see(memory):
    run_child(check_memory_that_the_host_does_not_see, driver="null", config=f"memory={memory}")


def check_capsules_at_exit():
    global left_over
    mgr = kp.Manager()
    t = mgr.tensor([1, 2, 3], "host")
    left_over = [np.from_dlpack(t), t.__dlpack__(), mgr.from_host(kp.aligned_zeros(100)), mgr, t]


def test_capsules_at_exit():
    run_child(check_capsules_at_exit)


# -- taking --------------------------------------------------------------------------------------------------


def test_takes_from_numpy(mgr):
    data = np.arange(12, dtype=np.int16).reshape(3, 4)
    for source in (data, data.T, data[:, ::2], data[1:]):
        t = kp.from_dlpack(source, mgr)
        assert t.shape == source.shape and t.dtype == np.int16 and t.memory_type() == kp.MemoryTypes.host
        np.testing.assert_array_equal(t.read(), source)
    t = kp.from_dlpack(data, mgr, copy=True)
    data[0, 0] = 99
    assert t.read()[0, 0] == 0


def test_shares_aligned_memory(mgr):
    if mgr.host_import_alignment is None:
        pytest.skip("this device does not import memory of the process")
    data = kp.aligned_zeros((10, 10))
    t = kp.from_dlpack(data, mgr, copy=False)
    data[3, 3] = 5
    assert t.read()[3, 3] == 5
    t.write(np.ones(100))
    assert (data == 1).all()
    copied = kp.from_dlpack(data, mgr, copy=True)
    data[:] = 2
    assert (copied.read() == 1).all()
    data.flags.writeable = False
    immutable = kp.from_dlpack(data, mgr, copy=False)
    with pytest.raises(kp.FailedPreconditionError, match="read-only"):
        immutable.write(np.zeros(100))
    assert kp.from_dlpack(data, mgr).data().flags.writeable  # copied


def test_refuses_what_it_cannot_take(mgr):
    class Elsewhere:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            raise AssertionError("not asked")

    class Odd(Elsewhere):
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            return 5

    with pytest.raises(kp.ExchangeError, match="device type 2"):
        kp.from_dlpack(Elsewhere(), mgr)
    with pytest.raises(kp.ExchangeError, match="not a DLPack capsule"):
        kp.from_dlpack(Odd(), mgr)
    with pytest.raises(kp.ArgumentTypeError, match="does not support DLPack"):
        kp.from_dlpack([1, 2], mgr)
    with pytest.raises(kp.ExchangeError, match="copy=False"):
        kp.from_dlpack(np.arange(10)[1:], mgr, copy=False)


def test_a_capsule_is_for_one_consumer(mgr):
    class Once:
        def __init__(self, t):
            self.capsule = t.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            return self.capsule

    once = Once(mgr.tensor([1, 2], "host"))
    assert kp.from_dlpack(once, mgr).read().tolist() == [1, 2]
    with pytest.raises(kp.ExchangeError, match="used already"):
        kp.from_dlpack(once, mgr)


def test_between_managers(make_manager):
    one, other = make_manager(), make_manager()
    t = kp.from_dlpack(one.tensor([1, 2, 3], "deviceAndHost"), other)
    one.destroy()
    assert t.manager is other and t.read().tolist() == [1, 2, 3]


@pytest.mark.capability("I34", "DLPack both ways", "kp.from_dlpack", "guides/exchange")
def test_capsules_as_objects(mgr):
    array = kp.aligned_zeros(4)
    if mgr.host_import_alignment:
        shared = kp.from_dlpack(array.__dlpack__(), mgr, copy=False)
        shared.write([1, 2, 3, 4])
        assert array.tolist() == [1, 2, 3, 4]
    else:
        with pytest.raises(kp.ExchangeError, match="does not import memory of the process"):
            kp.from_dlpack(array.__dlpack__(), mgr, copy=False)
    capsule = mgr.tensor([5, 6], "host").__dlpack__()
    assert kp.from_dlpack(capsule, mgr, copy=True).read().tolist() == [5, 6]
    with pytest.raises(kp.ExchangeError, match="used already"):
        kp.from_dlpack(capsule, mgr)
    with pytest.raises(kp.ExchangeError, match="not a DLPack capsule"):
        kp.from_dlpack(datetime.datetime_CAPI, mgr)


def test_copy_takes_its_values_alone(mgr):
    # "never" is true: as a truth value it would copy.
    t = mgr.tensor([[1, 2], [3, 4]])
    with t.map(read=True) as mapped:
        calls = [
            lambda copy: kp.from_dlpack(np.arange(3), mgr, copy=copy), lambda copy: t.__dlpack__(copy=copy),
            lambda copy: t.__array__(copy=copy), lambda copy: t[:, 0].__array__(copy=copy),
            lambda copy: t.to(mgr, copy=copy), lambda copy: t[:, 0].to(mgr, copy=copy),
            lambda copy: mapped.__array__(copy=copy),
        ]  # fmt: skip
        for call in calls[:-1] if isinstance(mapped, np.ndarray) else calls:
            for copy in ("never", 1, 0):
                with pytest.raises(kp.ArgumentTypeError, match=r"copy is .*; give True"):
                    call(copy)
    with pytest.raises(kp.ArgumentTypeError, match=r"'never'.*False \(never a copy\)"):
        kp.from_dlpack(np.arange(3), mgr, copy="never")


def test_a_part_that_is_not_dense_says_how_to_copy_it(mgr):
    part = mgr.zeros((4, 4))[:, ::2]
    assert not hasattr(part, "__dlpack__")
    with pytest.raises(AttributeError, match=r"t\.read\(\)"):
        np.from_dlpack(part)
