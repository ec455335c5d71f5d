"""Tensors: what goes in, what comes out, views, and life after destroy()."""

from __future__ import annotations

import array
import gc
import typing
import weakref

import numpy as np
import pytest

import kompute_py as kp

MEMORY_TYPES = list(kp.MemoryTypes.__members__.values())
DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "int64", "uint64",
    "float64",
]  # fmt: skip


def values(dtype, count=13):
    if np.dtype(dtype).kind == "b":
        return np.arange(count) % 3 == 0
    return (np.arange(count) * 5 % 113).astype(dtype)


@pytest.mark.capability("K18", "a float32 tensor of numbers", "Manager.tensor", "guides/tensors")
def test_tensor_is_float32_and_keeps_the_shape(mgr):
    t = mgr.tensor([[1, 2, 3], [4, 5, 6]])
    assert t.dtype == np.float32 and t.shape == (2, 3) and t.size() == 6 == len(t)
    assert t.data_type() is kp.DataTypes.float and t.nbytes == 24 and t.ndim == 2 and t.itemsize == 4
    np.testing.assert_array_equal(t.data(), [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(t.numpy(), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.capability(
    "K19 P21 P35", "a tensor with the array's dtype and shape", "Manager.tensor_t", "guides/tensors"
)
@pytest.mark.parametrize("memory_type", MEMORY_TYPES, ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_tensor_t_keeps_the_dtype_through_the_device(mgr, dtype, memory_type):
    data = values(dtype)
    t = mgr.tensor_t(data, memory_type)
    assert t.dtype == data.dtype and t.memory_type() is memory_type and t.tensor_type() is memory_type
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    np.testing.assert_array_equal(t.read(), data)
    seq.destroy()


def test_structured_dtype(mgr):
    data = np.zeros(4, dtype=[("position", "f4", 3), ("id", "u4")])
    data["id"] = np.arange(4)
    t = mgr.tensor_t(data, "host")
    assert t.data_type() is kp.DataTypes.custom
    np.testing.assert_array_equal(t.data()["id"], np.arange(4))


@pytest.mark.capability(
    "K45 K52", "dtypes by Kompute's names", "Tensor.data_type, kp.DataTypes", "reference/memory"
)
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bool", 0), ("int32", 1), ("uint32", 2), ("float32", 3), ("float64", 4), ("float16", 10),
        ("int16", 6), ("uint16", 7), ("int8", 8), ("uint8", 9), ("int64", 11),
    ],
)  # fmt: skip
def test_data_type(mgr, dtype, expected):
    assert mgr.tensor_t(values(dtype)).data_type().value == expected


@pytest.mark.parametrize(
    "data",
    [
        5, 2.5, (1, 2, 3), range(4), array.array("d", [1.0, 2.0]), np.float64(3),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(4, dtype=">f4"), memoryview(b"\x01\x02"),
        np.array([True, False]),
    ],
    ids=lambda d: type(d).__name__,
)  # fmt: skip
def test_tensor_accepts(mgr, data):
    expected = np.asarray(data, dtype=np.float32)
    t = mgr.tensor(data)
    assert t.shape == expected.shape
    np.testing.assert_array_equal(t.numpy(), expected)


def test_byte_swapped_data_is_converted(mgr):
    t = mgr.tensor_t(np.array([1, 256], dtype=">i4"))
    assert t.dtype.isnative
    np.testing.assert_array_equal(t.data(), [1, 256])


@pytest.mark.capability(
    "K20 I11", "data is copied once, from any array or buffer", "Manager.tensor_t", "guides/tensors"
)
def test_the_data_is_copied(mgr):
    data = np.ones(4, np.float32)
    t = mgr.tensor(data)
    data[:] = 7
    np.testing.assert_array_equal(t.data(), np.ones(4))


@pytest.mark.parametrize("make", ["tensor", "tensor_t"])
def test_empty_data(mgr, make):
    t = getattr(mgr, make)([])
    assert t.shape == t.data().shape == t.read().shape == (0,)


@pytest.mark.parametrize(
    "data",
    [np.array(["a"]), np.array([object()]), np.array(["2020"], "M8[D]"), np.zeros(2, np.longdouble)],
    ids=str,
)
def test_unsupported_dtypes_are_named(mgr, data):
    with pytest.raises(kp.ArgumentTypeError, match=str(data.dtype).split("[")[0].replace("|", "")):
        mgr.tensor_t(data)


def test_tensor_refuses_what_is_no_number(mgr):
    with pytest.raises(kp.ArgumentTypeError, match="<U1"):
        mgr.tensor(["a"])
    with pytest.raises(kp.ArgumentTypeError, match="complex128"):
        mgr.tensor([1j])
    with pytest.raises(kp.InvalidArgumentError):
        mgr.tensor([[1, 2], [3]])


@pytest.mark.capability(
    "K46 K49",
    "memory types by name, number or member; `device` unless told",
    "Tensor.memory_type, kp.MemoryTypes",
    "concepts/memory_types",
)
def test_memory_type_forms(mgr):
    host = kp.MemoryTypes.host
    for t in (
        mgr.tensor([1], kp.TensorTypes.host),
        mgr.tensor([1], memory_type="host"),
        mgr.tensor([1], tensor_type=host),
        mgr.tensor_t(np.ones(1), tensor_type="host"),
        mgr.tensor([1], kp.host),
        mgr.tensor([1], 1),
    ):
        assert t.memory_type() is host
    assert mgr.tensor([1]).memory_type() is kp.MemoryTypes.device
    with pytest.raises(kp.InvalidArgumentError, match="not both"):
        mgr.tensor([1], memory_type="host", tensor_type="host")
    with pytest.raises(kp.InvalidArgumentError, match="deviceAndHost"):
        mgr.tensor([1], "hots")
    with pytest.raises(kp.ArgumentTypeError):
        mgr.tensor([1], 1.5)


@pytest.mark.capability(
    "I10 S18 S19", "tensors without data, in any memory", "Manager.empty, Manager.zeros", "guides/tensors"
)
@pytest.mark.parametrize("memory_type", MEMORY_TYPES, ids=lambda m: m.name)
def test_zeros_and_empty(mgr, memory_type):
    z = mgr.zeros((3, 4), np.int32, memory_type)
    e = mgr.empty(5, "float64", memory_type)
    assert z.shape == (3, 4) and z.dtype == np.int32 and e.shape == (5,) and e.nbytes == 40
    mgr.sequence().record(kp.OpSyncDevice([z])).eval()
    np.testing.assert_array_equal(z.read(), np.zeros((3, 4), np.int32))


@pytest.mark.parametrize("shape", [0, (), (3, 0), (-1,)])
def test_shapes_without_elements(mgr, shape):
    if shape == ():
        assert mgr.zeros(shape).size() == 1
        return
    if shape == (-1,):
        with pytest.raises(kp.InvalidArgumentError, match="negative"):
            mgr.zeros(shape)
        return
    assert mgr.zeros(shape).size() == 0


@pytest.mark.capability(
    "K42 P28", "the host's memory as an array, without a copy", "Tensor.data", "concepts/host_and_device"
)
def test_data_is_a_writable_view_of_the_tensor(mgr):
    t = mgr.tensor(np.arange(6).reshape(2, 3))
    view = t.data()
    assert view.base is t and view.ndim == 1 and view.flags.writeable and view.dtype == np.float32
    assert t.data() is view
    view[0] = 42
    assert t.numpy()[0, 0] == 42


def test_a_view_keeps_the_tensor_and_makes_no_cycle(mgr):
    t = mgr.tensor([1, 2, 3])
    alive = weakref.ref(t)
    part = t.data()[1:]
    del t
    assert alive() is not None
    np.testing.assert_array_equal(part, [2, 3])
    gc.disable()
    try:
        del part
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.capability("K51", "memory of the device alone", "kp.MemoryTypes", "concepts/memory_types")
def test_storage_has_no_host_copy(mgr):
    t = mgr.tensor([1, 2, 3], "storage")
    with pytest.raises(kp.FailedPreconditionError, match="storage"):
        t.data()
    np.testing.assert_array_equal(t.read(), [1, 2, 3])
    t.write([4, 5, 6])
    np.testing.assert_array_equal(np.asarray(t), [4, 5, 6])


def test_device_memory_moves_only_by_sync(mgr):
    t = mgr.tensor([1, 2, 3])
    mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    t.data()[:] = 9
    np.testing.assert_array_equal(t.read(), [1, 2, 3])
    mgr.sequence().record(kp.OpSyncLocal([t])).eval()
    np.testing.assert_array_equal(t.data(), [1, 2, 3])


@pytest.mark.capability(
    "K50 K68 K72", "memory that host and device share in place", "kp.MemoryTypes", "concepts/memory_types"
)
@pytest.mark.parametrize("memory_type", ["host", "deviceAndHost"])
def test_single_memory_needs_no_sync(mgr, memory_type):
    t = mgr.tensor([1, 2, 3], memory_type)
    t.data()[:] = [7, 8, 9]
    np.testing.assert_array_equal(t.read(), [7, 8, 9])
    assert np.shares_memory(np.asarray(t), t.data())
    assert not np.shares_memory(np.array(t), t.data())


@pytest.mark.capability(
    "I26 P26 P27",
    "contents read into new or given arrays, and written",
    "Tensor.read, Tensor.write",
    "concepts/host_and_device",
)
@pytest.mark.parametrize("memory_type", MEMORY_TYPES, ids=lambda m: m.name)
def test_read_and_write(mgr, memory_type):
    t = mgr.zeros((4, 3), np.float32, memory_type)
    data = np.arange(12, dtype=np.float64).reshape(4, 3)
    t.write(data)
    got = t.read()
    assert got.shape == (4, 3) and got.dtype == np.float32
    np.testing.assert_array_equal(got, data)
    if memory_type is kp.MemoryTypes.device:
        assert not t.data().any()  # the host copy changes only by sync operations
    elif memory_type is not kp.MemoryTypes.storage:
        np.testing.assert_array_equal(t.numpy(), data)
    out = np.zeros((4, 6), np.float32)
    assert t.read(out[:, ::2]) is not None
    np.testing.assert_array_equal(out[:, ::2].ravel(), np.arange(12))
    np.testing.assert_array_equal(np.asarray(t, dtype=np.int64), data)


def test_read_and_write_check(mgr):
    t = mgr.tensor_t(np.zeros(4, np.int32))
    for bad in (np.zeros(3, np.int32), np.zeros((5,), np.int32)):
        with pytest.raises(kp.InvalidArgumentError, match="4"):
            t.read(bad)
        with pytest.raises(kp.InvalidArgumentError, match="4"):
            t.write(bad)
    with pytest.raises(kp.ArgumentTypeError, match="float32"):
        t.read(np.zeros(4, np.float32))
    frozen = np.zeros(4, np.int32)
    frozen.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match="read-only"):
        t.read(frozen)
    with pytest.raises(kp.ArgumentTypeError, match="float64"):
        t.write([1.5, 2, 3, 4])
    with pytest.raises(kp.InvalidArgumentError, match="range"):
        t.write([2**31, 0, 0, 0])
    t.write([1, -2, 3, 2**31 - 1])
    np.testing.assert_array_equal(t.read(), [1, -2, 3, 2**31 - 1])


def test_read_asks_for_the_parts_own_shape(mgr):
    t = mgr.tensor_t(np.arange(12, dtype=np.int32).reshape(3, 4), "host")
    i = mgr.image_t(np.arange(12, dtype=np.int32).reshape(3, 4), memory_type="host")
    for what in (t, i):
        what.write(np.arange(12))
        for wrong in ((4, 3), (12,), (1, 3, 4), (3, 4, 1), (3, 5), ()):
            out = np.full(wrong, -1, np.int32)
            with pytest.raises(kp.InvalidArgumentError) as error:
                what.read(out)
            assert f"out has shape {wrong}" in str(error.value) and "one of shape (3, 4)" in str(error.value)
            assert ("out.reshape((3, 4))" in str(error.value)) is (out.size == 12)
            with pytest.raises(kp.InvalidArgumentError, match=r"shape \(3, 4\)"):
                what.copy_to(out)
            assert (out == -1).all()
        for region, wrong in (
            (np.s_[1:3], (8,)),
            (np.s_[2], (1, 4)),
            (np.s_[1, 2:4], (1, 2)),
            (np.s_[0, 1], (1,)),
        ):
            out = np.zeros(np.empty((3, 4))[region].shape, np.int32)
            assert what.read(out, region) is out
            np.testing.assert_array_equal(out, np.arange(12).reshape(3, 4)[region])
            with pytest.raises(kp.InvalidArgumentError, match=r"out has shape .* reads into one of shape"):
                what.read(np.zeros(wrong, np.int32), region)
    frozen = np.zeros((2, 4), np.int32)
    frozen.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match="read-only"):
        i.read(frozen, np.s_[:2])
    with pytest.raises(kp.ArgumentTypeError, match="out is a list"):
        i.read([0] * 8, np.s_[:2])


def test_asarray_of_device_memory_is_a_copy(mgr):
    t = mgr.tensor([1, 2])
    t.write([3, 4])
    got = np.asarray(t)
    assert not np.shares_memory(got, t.data())
    np.testing.assert_array_equal(got, [3, 4])
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="copy"):
            np.asarray(t, copy=False)


def test_identity_and_no_arithmetic(mgr):
    a, b = mgr.tensor([1]), mgr.tensor([1])
    assert a != b and a == a and len({a, b}) == 2
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        iter(a)


def test_repr(mgr):
    t = mgr.tensor(np.arange(100).reshape(10, 10))
    t.name = "weights"
    text = repr(t)
    for part in ("weights", "(10, 10)", "float32", "device", "0., 1., 2.", "..."):
        assert part in text
    assert "storage" in repr(mgr.tensor([1], "storage"))
    t.destroy()
    assert "destroyed" in repr(t)


@pytest.mark.capability(
    "K47 K48 P30",
    "memory given back before its last reference ends",
    "Tensor.destroy, Tensor.is_init",
    "reference/memory",
)
@pytest.mark.parametrize("memory_type", ["device", "host", "deviceAndHost"])
@pytest.mark.parametrize("whole", [False, True], ids=["tensor", "manager"])
def test_after_destroy(mgr, memory_type, whole):
    t = mgr.tensor(np.arange(1000), memory_type)
    view = t.data()
    (mgr if whole else t).destroy()
    (mgr if whole else t).destroy()
    assert not t.is_init() and t.size() == 0 and len(t) == 0
    for use in (t.data, t.numpy, t.read, lambda: t.write(view), lambda: np.asarray(t)):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            use()
    np.testing.assert_array_equal(view, np.arange(1000))
    view[:] = 1
    if not whole:
        others = [mgr.tensor(np.full(1000, 5)) for _ in range(20)]
        np.testing.assert_array_equal(view, np.ones(1000))
        assert all((o.data() == 5).all() for o in others)
    else:
        del t
        gc.collect()
        np.testing.assert_array_equal(view, np.ones(1000))


def test_use_of_a_destroyed_tensor(mgr):
    t = mgr.tensor([1])
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        seq.eval()
    with pytest.raises(kp.FailedPreconditionError):
        mgr.sequence().record(kp.OpSyncDevice([t]))


@pytest.mark.capability(
    "P29",
    "handles and addresses of Vulkan for other libraries",
    "Tensor.vk_buffer, Tensor.vk_device_address",
    "reference/memory",
)
def test_raw_handles(mgr):
    t = mgr.tensor([1, 2, 3])
    assert (
        t.vk_buffer > 0
        and t.vk_memory > 0
        and t.vk_offset >= 0
        and t.vk_size >= 12
        and t.vk_memory_offset >= 0
    )
    assert t.manager is mgr and isinstance(t.vk_device_address, int)


def test_a_tensor_made_directly(mgr):
    t = kp.Tensor(mgr, np.arange(3, dtype=np.int16), "host")
    assert isinstance(t, kp.Memory) and t.dtype == np.int16 and t.memory_type() is kp.MemoryTypes.host


@pytest.mark.capability("P24 S16", "the owner of an object", "Tensor.manager", "reference/memory")
def test_tensors_keep_their_manager():
    t = kp.Manager().tensor([1, 2])
    gc.collect()
    assert t.is_init()
    np.testing.assert_array_equal(t.data(), [1, 2])


def test_sizes_beyond_all_devices(mgr):
    for shape, dtype in ((2**62, np.float32), ((2**40, 2**40), np.uint8)):
        with pytest.raises(kp.OutOfMemoryError, match="bytes; no device has"):
            mgr.empty(shape, dtype)


def test_a_name_is_a_str(mgr):
    for named in (mgr.zeros(1), mgr.sequence()):
        with pytest.raises(kp.ArgumentTypeError, match="A name is a str, not NoneType"):
            named.name = None


@pytest.mark.parametrize("memory_type", ["host", "deviceAndHost"])
def test_a_tensor_is_written_and_read_over_its_own_memory(mgr, memory_type):
    values = np.arange(3 << 20, dtype=np.int32)
    tensor = mgr.tensor_t(values, memory_type)
    tensor.write(tensor.numpy())
    np.testing.assert_array_equal(tensor.read(), values)
    tensor.read(out=tensor.data())
    np.testing.assert_array_equal(tensor.data(), values)


# -- what looks as if it could work --------------------------------------------------------------------------


@pytest.mark.capability("P22", "one element as a number", "Tensor.item", "reference/memory")
def test_one_element_is_a_number(mgr):
    t = mgr.tensor_t(np.arange(4, dtype=np.int32))
    t.write([1, 2, 3, 4])
    assert int(t[2]) == 3 and float(t[1:2]) == 2.0 and complex(t[0]) == 1 and type(float(t[3])) is float
    assert int(mgr.tensor_t(np.int64(2**60), "host")) == 2**60
    assert complex(mgr.tensor_t(np.complex64(1 + 2j), "storage")) == 1 + 2j
    with pytest.raises(TypeError):
        [0, 1, 2][t[0]]  # an index would be read from the device without a word


@pytest.mark.parametrize("make", ["tensor", "tensor_t", "image", "image_t"])
def test_bytes_and_text_are_no_numbers(mgr, make):
    with pytest.raises(
        kp.ArgumentTypeError, match=r"is bytes, which does not say .*np\.frombuffer\(data, dtype\)"
    ):
        getattr(mgr, make)(b"\1\2\0\0")
    with pytest.raises(kp.ArgumentTypeError, match=r"is a str; give numbers"):
        getattr(mgr, make)("1234")
    if make.startswith("tensor"):
        assert getattr(mgr, make)(bytearray(b"\1\2\0\0")).data().tolist() == [1, 2, 0, 0]
        t = mgr.zeros(4, np.uint8)
        with pytest.raises(kp.ArgumentTypeError, match="is bytes"):
            t.write(b"1234")


@pytest.mark.capability("P23", "dtypes in annotations, for type checkers", "kp.Tensor", "reference/memory")
def test_annotations_name_the_dtype(mgr):
    assert kp.Tensor[np.float32].__origin__ is kp.Tensor  # tests/project/test_types.py has what checkers say
    namespace = {"kp": kp, "np": np}
    exec("def f(t: kp.Tensor[np.int32] | None = None) -> kp.Tensor[np.float32]: ...", namespace)
    assert typing.get_type_hints(namespace["f"])["return"] == kp.Tensor[np.float32]
    assert type(mgr.zeros(3)) is kp.Tensor
