"""Views: tensors over a part of another tensor's memory, wherever a tensor can stand."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import PROFILES, null_control
from tests.support.child import run_child

ADD_ONE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] += 1; }
"""
COPY = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) writeonly buffer B { uint b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) b[i] = a[i]; }
"""
compiled = functools.cache(kp.compile)


def counting(*shape):
    return np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)


# -- what a view is ------------------------------------------------------------------------------------------


@pytest.mark.capability("S24", "parts of a tensor, without a copy", "Tensor.view", "guides/tensors")
@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_a_part_of_a_tensor(mgr, memory_type):
    data = counting(6, 8)
    t = mgr.tensor_t(data, memory_type)
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    part = t[2:4]
    assert type(part) is kp.Tensor and part.base is t and t.base is None
    assert (part.shape, part.dtype, part.size(), part.nbytes) == ((2, 8), np.uint32, 16, 64)
    assert part.memory_type() is memory_type and part.manager is mgr
    np.testing.assert_array_equal(part.read(), data[2:4])
    np.testing.assert_array_equal(np.asarray(part), data[2:4])
    part.write(data[:2] + 100)
    data[2:4] = data[:2] + 100
    np.testing.assert_array_equal(t.read(), data)
    np.testing.assert_array_equal(t[3, 2:5].read(), data[3, 2:5])
    np.testing.assert_array_equal(t[5, 7].read(), data[5, 7])
    np.testing.assert_array_equal(t[2:4][1][3:][0:2].read(), data[3, 3:5])
    # As in NumPy, the base is what owns the memory, however many views are between.
    for nested in (t[2:4][1][3:][0:2], t[1:].reshape(-1).view(np.float32), t[2:4][:, ::2], t[1:][:, 1][::2]):
        assert nested.base is t and nested[:1].base is t
    assert t[5, 7].shape == () and t[None, 1].shape == (1, 8) and t[...].shape == (6, 8)


def test_host_copies_are_shared(mgr):
    t = mgr.tensor_t(counting(4, 4))
    row = t[2]
    assert row.data().base is row and row.data() is row.data()
    row.data()[:] = 7
    row.numpy()[1] = 9
    assert t.numpy()[2].tolist() == [7, 9, 7, 7] and t.numpy()[1].tolist() == [4, 5, 6, 7]


@pytest.mark.capability("I25", "another shape, without a copy", "Tensor.reshape", "guides/tensors")
def test_reshape(mgr):
    t = mgr.tensor_t(counting(4, 6))
    for made in (t.reshape(3, 8), t.reshape((3, 8)), t.reshape(3, -1), t.reshape(-1, 8)):
        assert made.shape == (3, 8) and made.base is t
        made.numpy()[2, 7] += 1
    assert t.numpy()[3, 5] == 27
    assert t.reshape(-1).shape == (24,) and t[1].reshape(2, 3).numpy().tolist() == [[6, 7, 8], [9, 10, 11]]
    with pytest.raises(kp.InvalidArgumentError, match=r"24 elements.*\(5, 5\)"):
        t.reshape(5, 5)
    with pytest.raises(kp.ArgumentTypeError):
        t.reshape(2.5)


@pytest.mark.capability(
    "I16 S2-S4 S14 S23",
    "bytes as tensors of any dtype and shape, over the same memory",
    "Tensor.view",
    "guides/tensors",
)
def test_view_under_another_dtype(mgr):
    data = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    t = mgr.tensor_t(data)
    for made in (t.view(np.uint32), t.view(dtype="uint32"), t.view(np.dtype(np.uint32)), t.view("uint32")):
        np.testing.assert_array_equal(made.numpy(), data.view(np.uint32))
    np.testing.assert_array_equal(t.view(np.uint8).numpy(), data.view(np.uint8))
    np.testing.assert_array_equal(t.view(np.complex64).numpy(), data.view(np.complex64))
    np.testing.assert_array_equal(t.view(1, slice(2, 4), dtype=np.int16).numpy(), data[1, 2:4].view(np.int16))
    np.testing.assert_array_equal(t.view(1, slice(2, 4)).numpy(), data[1, 2:4])
    with pytest.raises(kp.InvalidArgumentError, match="not a whole number"):
        t[:, :].view(np.dtype("V12"))
    with pytest.raises(kp.ArgumentTypeError):
        t.view(object)


def test_nothing_iterates(mgr):
    t = mgr.tensor_t(counting(4))
    with pytest.raises(TypeError):
        iter(t)
    with pytest.raises(TypeError):
        1 in t  # noqa: B015


# -- in sequences --------------------------------------------------------------------------------------------


def test_partial_uploads_and_downloads(mgr):
    t = mgr.tensor_t(counting(64))
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    t.data()[:] = 1000
    mgr.sequence().eval(kp.OpSyncDevice([t[3:5], t[4:9], t[60:]]))
    wanted = counting(64)
    wanted[3:9] = wanted[60:] = 1000
    np.testing.assert_array_equal(t.read(), wanted)
    mgr.sequence().eval(kp.OpSyncLocal([t[0:2], t[3]]))
    assert t.data()[:6].tolist() == [0, 1, 1000, 1000, 1000, 1000]


def test_copies_between_parts(mgr):
    a, b = mgr.tensor_t(counting(32), "storage"), mgr.zeros(32, np.uint32, "host")
    (mgr.sequence().record(kp.OpFill([b], 0)).record(kp.OpCopy([a[8:12], b[1:5], b[20:24], a[0:4]])).eval())
    assert b.read()[1:5].tolist() == b.read()[20:24].tolist() == a.read()[:4].tolist() == [8, 9, 10, 11]
    assert b.read()[5] == b.read()[0] == 0
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpCopy([a[0:4], a[2:6]])
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpCopy([a[0:4], b[2:6], b[4:8]])
    with pytest.raises(kp.InvalidArgumentError, match="onto itself"):
        kp.OpCopy([a[0:4], a[0:4]])


def test_windows_bound_to_a_shader(mgr):
    t = mgr.tensor_t(counting(1024))
    window = t[256:512]
    add = mgr.algorithm([window], compiled(ADD_ONE), (4, 1, 1))
    assert add.get_tensors()[0] is window
    mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpAlgoDispatch(add)).record(
        kp.OpSyncLocal([t])
    ).eval()
    wanted = counting(1024)
    wanted[256:512] += 1
    np.testing.assert_array_equal(t.data(), wanted)


def test_two_parts_of_one_tensor_in_one_shader(mgr):
    t = mgr.tensor_t(counting(512))
    copy = mgr.algorithm([t[0:256], t[256:512]], compiled(COPY), (4, 1, 1))
    mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpAlgoDispatch(copy)).record(
        kp.OpSyncLocal([t])
    ).eval()
    np.testing.assert_array_equal(t.data()[256:], counting(256))


def test_a_window_at_a_place_that_no_descriptor_takes(mgr):
    alignment = mgr.get_device_properties()["limits"]["minStorageBufferOffsetAlignment"]
    t = mgr.tensor_t(np.zeros(1024, np.uint8))
    t.name = "bytes"
    if alignment > 1:
        with pytest.raises(
            kp.InvalidArgumentError,
            match=rf"byte 1 of the tensor 'bytes'.*multiple of {alignment}.*push constant",
        ):
            mgr.algorithm([t[1:]], compiled(ADD_ONE))
    mgr.algorithm([t[alignment:]], compiled(ADD_ONE), (1, 1, 1))


def test_hazards_are_by_byte_range(mgr):
    """Parts that do not meet need no barrier between them; parts that do have one."""
    t = mgr.tensor_t(counting(512))

    def barriers(first, second):
        seq = mgr.sequence()
        for part in (first, second):
            seq.record(kp.OpAlgoDispatch(mgr.algorithm([part], compiled(ADD_ONE), (4, 1, 1))))
        seq.eval()
        return sum(before == 1 for before, *_ in seq._native.barriers())

    assert barriers(t[0:256], t[256:512]) == 0
    assert barriers(t[0:256], t[0:256]) == 1
    assert barriers(t[0:256], t[192:512]) == 1
    assert barriers(t, t[256:512]) == 1
    np.testing.assert_array_equal(mgr.tensor_t(t.read()).read().shape, (512,))


def test_a_long_chain_over_overlapping_windows(mgr):
    """Against NumPy: random windows of one tensor are copied, filled, counted up and synchronized in one
    recording.
    """
    rng = np.random.default_rng(3)
    step = max(mgr.get_device_properties()["limits"]["minStorageBufferOffsetAlignment"] // 4, 1)
    count = step * 64
    t, model = mgr.tensor_t(counting(count)), counting(count)
    seq = mgr.sequence().record(kp.OpSyncDevice([t]))
    host = model.copy()
    for _ in range(200):
        begin, end = sorted(rng.integers(0, 65, 2) * step)
        if begin == end:
            continue
        part = t[int(begin) : int(end)]
        match rng.integers(4):
            case 0:
                seq.record(kp.OpFill([part], 5))
                model[begin:end] = 5
            case 1:
                groups = -(-int(end - begin) // 64)
                seq.record(kp.OpAlgoDispatch(mgr.algorithm([part], compiled(ADD_ONE), (groups, 1, 1))))
                model[begin:end] += 1
            case 2:
                seq.record(kp.OpSyncLocal([part]))
                host[begin:end] = model[begin:end]
            case 3:
                half = int(end - begin) // 2
                if half:
                    seq.record(kp.OpCopy([part[:half], part[half : 2 * half]]))
                    model[begin + half : begin + 2 * half] = model[begin : begin + half]
    seq.eval()
    np.testing.assert_array_equal(t.read(), model)
    np.testing.assert_array_equal(t.data(), host)


def check_partial_flushes():
    """The null driver's non-coherent memory: what is not flushed or invalidated does not arrive."""
    with kp.Manager() as mgr:
        t = mgr.tensor_t(counting(4096))
        mgr.sequence().record(kp.OpSyncDevice([t])).eval()
        t.data()[:] += 1
        seq = mgr.sequence().record(kp.OpSyncDevice([t[1001:1003]]))
        seq.record(kp.OpCopy([t[1000:1004], t[2000:2004]])).record(kp.OpSyncLocal([t[1999:2005]])).eval()
        assert t.data()[1998:2006].tolist() == [1999, 1999, 1000, 1002, 1003, 1003, 2004, 2006]
        one = mgr.tensor_t(counting(4096), "host")
        one.data()[1001:1003] = 7
        (
            mgr.sequence()
            .record(kp.OpSyncDevice([one[1001:1003]]))
            .record(kp.OpCopy([one[1000:1004], one[3000:3004]]))
            .record(kp.OpSyncLocal([one[3000:3004]]))
            .eval()
        )
        assert one.data()[3000:3004].tolist() == [1000, 7, 7, 1003]
    assert not null_control().violations()


@pytest.mark.sampled(every=2)
@pytest.mark.own_driver
@pytest.mark.parametrize("config", ["memory=discrete", *(f"profile={profile}" for profile in PROFILES)])
def test_parts_of_memory_that_only_flushes_carry_over(config):
    run_child(check_partial_flushes, driver="null", config=config)


# -- life ----------------------------------------------------------------------------------------------------


def test_a_view_keeps_the_memory(mgr):
    t = mgr.tensor_t(counting(16))
    part = t[4:8]
    gone = weakref.ref(t.data())
    del t
    gc.collect()
    assert gone() is None and part.data().tolist() == [4, 5, 6, 7]
    mgr.sequence().eval(kp.OpSyncDevice([part]))
    assert part.read().tolist() == [4, 5, 6, 7]


def test_destroying_the_tensor_ends_its_views(mgr):
    t = mgr.tensor_t(counting(16))
    part = t[4:8]
    array = part.data()
    seq = mgr.sequence().record(kp.OpSyncDevice([part]))
    t.destroy()
    assert not part.is_init() and part.size() == 0
    assert array.tolist() == [4, 5, 6, 7]
    for use in (part.data, part.read, lambda: part[0:1], lambda: kp.OpSyncDevice([part]), seq.eval):
        with pytest.raises(kp.FailedPreconditionError):
            use()


def test_destroying_a_view_leaves_the_tensor(mgr):
    t = mgr.tensor_t(counting(16))
    part, other = t[4:8], t[4:8]
    array = part.data()
    seq = mgr.sequence().record(kp.OpSyncDevice([part]))
    part.destroy()
    part.destroy()
    assert not part.is_init() and t.is_init() and other.is_init()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        part.data()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        kp.OpSyncDevice([part])
    seq.eval()
    assert array.tolist() == t.data()[4:8].tolist()


def test_arrays_of_views_outlive_everything(make_manager):
    mgr = make_manager()
    part = mgr.tensor_t(counting(16), "deviceAndHost")[4:8]
    array = part.data()
    mgr.destroy()
    assert not part.is_init() and array.tolist() == [4, 5, 6, 7]
    del part, mgr
    gc.collect()
    assert array.tolist() == [4, 5, 6, 7]


def test_names_and_messages(mgr):
    t = mgr.tensor_t(counting(4, 4))
    t.name = "weights"
    part = t[1]
    assert part.name == "weights"
    part.name = "row"
    assert t.name == "weights" and "'row'" in repr(part)
    with pytest.raises(kp.InvalidArgumentError, match=r"'weights' \(bytes 16 to 32\)"):
        kp.OpCopy([part, mgr.zeros(4, np.uint32), t[1]])


def test_raw_handles_of_a_view(mgr):
    t = mgr.tensor_t(counting(16), "storage")
    part = t[4:8]
    assert part.vk_buffer == t.vk_buffer and part.vk_memory == t.vk_memory
    assert (part.vk_offset, part.vk_size) == (t.vk_offset + 16, 16)
    assert part.vk_memory_offset == t.vk_memory_offset + 16
    if t.vk_device_address:
        assert part.vk_device_address == t.vk_device_address + 16


def test_a_field_names_the_tensor_that_the_user_has(mgr):
    t = mgr.tensor_t(np.zeros(5, [("price", "f4"), ("count", "i4")]))
    assert repr(t["price"]).endswith("of a Tensor of shape (5,)>")
