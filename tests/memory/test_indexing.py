"""Indexing a tensor as NumPy does: what ``t[key]`` is, reads and writes of every part against NumPy."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._memory.regions import runs_of
from tests.drivers import PROFILES, null_control
from tests.support.child import run_child
from tests.support.kernel_sources import COPY

SHAPE = (4, 5, 6)
KEYS = {
    "column": np.s_[:, 0], "last": np.s_[..., -1], "middle": np.s_[1, :, 2], "steps": np.s_[::2],
    "back": np.s_[::-1], "all back": np.s_[::-1, ::-1, ::-1], "back with steps": np.s_[3:0:-2, :, 5::-3],
    "box": np.s_[1:3, 2:4, 1:5], "inner": np.s_[:, 1:4], "new axes": np.s_[None, :, None, 1, ..., None],
    "ellipsis between": np.s_[1:, ..., ::4], "dense": np.s_[1:3], "dense row": np.s_[2, 3],
    "one": np.s_[2, 3, 4], "one of a step": np.s_[::9, ::9, ::9], "all": np.s_[...],
    "none of it": np.s_[3:3, ::2], "empty back": np.s_[0:3:-1], "negative": np.s_[-2, -3:, ::-2],
    "single axis kept": np.s_[2:3, :, 1:2],
}  # fmt: skip
DTYPES = ["u1", "i2", "f4", "f8", "c8", "?", "i8", "V3", "f4,u1", "f2"]
MEMORY = ["device", "storage", "host", "deviceAndHost"]


def data_of(dtype, shape=SHAPE, start=0):
    count = int(np.prod(shape))
    numbers = np.arange(start, start + count) % 251
    dtype = np.dtype(dtype)
    if dtype.kind == "V":
        raw = np.arange(start, start + count * dtype.itemsize).astype(np.uint8)
        raw = raw if dtype.names is None else np.repeat(numbers.astype(np.uint8), dtype.itemsize)
        return raw.view(dtype).reshape(shape)
    return numbers.astype(dtype).reshape(shape)


def same(found, wanted):
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes()


# -- the axes reversed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", MEMORY)
@pytest.mark.parametrize("name", KEYS)
def test_a_part_with_its_axes_reversed_is_numpys(mgr, name, where):
    key, data = KEYS[name], data_of("f4")
    t = mgr.tensor_t(data, where)
    t.write(data + 1)
    part, wanted = t[key].T, (data + 1)[key].T
    dense = wanted.flags.c_contiguous or not wanted.size
    assert type(part) is (kp.Tensor if dense else kp.StridedView) and part.base is t
    for found in (part.read(), np.asarray(part), part.T.T.read(), mgr.tensor_t(part).read()):
        same(found, wanted)
    same(part.T.read(), wanted.T)
    same(kp.ops.add(part, 1).read(), wanted + 1)
    part.write(wanted * 2)
    data += 1
    data[key] *= 2
    same(t.read(), data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_axes_reversed(mgr, dtype):
    data = data_of(dtype)
    t = mgr.tensor_t(data)
    same(t.T.read(), data.T)
    same(t.T[1:, ::-2].read(), data.T[1:, ::-2])
    t.T.write(data_of(dtype, SHAPE[::-1], 3))
    same(t.read(), data_of(dtype, SHAPE[::-1], 3).T)


def test_a_matrix_meets_itself_transposed(mgr):
    data = np.arange(400, dtype=np.float32).reshape(20, 20)
    t = mgr.tensor_t(data)
    same(kp.ops.add(t, t.T, out=t).read(), data + data.T)
    kp.ops.matmul(t, mgr.tensor_t(data).T, out=t.T)
    np.testing.assert_allclose(t.read(), ((data + data.T) @ data.T).T, rtol=1e-5)
    vector = t[0]
    assert type(vector.T) is kp.Tensor and vector.T.shape == (20,)
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        _ = t.T


def test_a_transposed_read_is_one_run():
    shape = (64, 48)
    strides = (1, 64)
    runs = runs_of(0, shape, strides, 4)
    assert (runs.axes, runs.length) == ([], 64 * 48 * 4)


# -- reads ---------------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "S21", "parts read and written by index", "Tensor.read, Tensor.write", "guides/tensors"
)
@pytest.mark.parametrize("where", MEMORY)
@pytest.mark.parametrize("name", KEYS)
def test_each_way_to_read_a_part_gives_numpys(mgr, name, where):
    key, data = KEYS[name], data_of("f4")
    t = mgr.tensor_t(data, where)
    t.write(data + 1)  # the host copy of `device` memory differs
    part, wanted = t[key], (data + 1)[key]
    assert part.shape == wanted.shape and part.dtype == wanted.dtype and part.base is t
    assert part.ndim == wanted.ndim and part.nbytes == wanted.nbytes and len(part) == wanted.size
    for found in (part.read(), t.read(region=key), np.asarray(part), np.array(part), part.read(region=...)):
        same(found, wanted)
    out = np.zeros_like(wanted)
    assert t.read(out, key) is out
    same(out, wanted)
    spaced = np.zeros((*wanted.shape, 2), np.float32)[..., 0]
    same(part.read(spaced), wanted)
    other = np.zeros(wanted.shape, ">f4")
    np.testing.assert_array_equal(part.read(other), wanted)
    assert part.tolist() == wanted.tolist()
    same(part.astype(np.int16), wanted.astype(np.int16))
    if wanted.size == 1:
        assert part.item() == float(part) == int(part) == wanted.item() and bool(part)


@pytest.mark.capability(
    "S25", "parts that are not dense are read, converted or refused", "kp.StridedView", "reference/memory"
)
@pytest.mark.parametrize("name", KEYS)
def test_a_part_is_a_tensor_if_and_only_if_it_is_dense(mgr, name):
    data = data_of("f4")
    part = mgr.tensor_t(data)[KEYS[name]]
    dense = data[KEYS[name]].flags.c_contiguous if data[KEYS[name]].size else True
    assert type(part) is (kp.Tensor if dense else kp.StridedView)


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_every_dtype(mgr, dtype):
    data = data_of(dtype)
    t = mgr.tensor_t(data)
    for key in KEYS.values():
        wanted = data.copy()
        same(t[key].read(), data[key])
        new = data_of(dtype, data[key].shape, 7)
        t[key] = new
        wanted[key] = new
        same(t.read(), wanted)
        t.write(data)


def test_parts_of_parts(mgr):
    data = data_of("i4")
    t = mgr.tensor_t(data)
    keys = [KEYS[k] for k in ("steps", "back", "box", "inner", "dense", "ellipsis between", "all")]
    for first, second in itertools.product(
        keys, [np.s_[1:], np.s_[..., 0], np.s_[::-1], np.s_[-1, ..., None]]
    ):
        same(t[first][second].read(), data[first][second])
        same(t[1:][first][second].read(), data[1:][first][second])
    assert type(t[:, 0][2]) is kp.Tensor and type(t[::2][1]) is kp.Tensor
    assert t[:, ::2][..., ::-1][1:, 1].read().tolist() == data[:, ::2][..., ::-1][1:, 1].tolist()
    same(t.reshape(-1).view(np.int16)[3::5].read(), data.reshape(-1).view(np.int16)[3::5])
    same(t.view(slice(None), 0).read(), data[:, 0])


def test_random_parts(mgr):
    generator = np.random.default_rng(3)

    def some(n):
        kind = generator.integers(4)
        if kind == 0:
            return int(generator.integers(-n, n))
        low, high = sorted(generator.integers(-n - 1, n + 2, 2).tolist())
        step = int(generator.choice([-3, -2, -1, 1, 1, 2, 3]))
        return slice(low, high, step) if step > 0 else slice(high, low, step)

    for _ in range(150):
        shape = tuple(generator.integers(1, 7, generator.integers(1, 5)).tolist())
        data = data_of("u2", shape)
        key = tuple(some(n) for n in shape[: generator.integers(1, len(shape) + 1)])
        t = mgr.tensor_t(data, str(generator.choice(MEMORY)))
        same(t[key].read(), data[key])
        t[key] = value = int(generator.integers(1000))
        data[key] = value
        same(t.read(), data)


def test_pending_work_is_waited_for(mgr):
    t = mgr.zeros((64, 64), np.uint32)
    fill = mgr.sequence().record(kp.OpFill([t], 7))
    fill.eval_async()
    assert (t[:, 3].read() == 7).all()
    fill.eval_async()
    t[:, 5] = 9
    wanted = np.full((64, 64), 7, np.uint32)
    wanted[:, 5] = 9
    same(t.read(), wanted)


def test_initial_data_is_uploaded_before_a_part_is_used(mgr):
    data = data_of("f4")
    t = mgr.tensor(data)
    same(t[:, 0].read(), data[:, 0])
    t = mgr.tensor(data)
    t[::2] = 5
    wanted = data.copy()
    wanted[::2] = 5
    same(t.read(), wanted)
    same(t.numpy(), data)  # the host copy is what it was, as with write()
    assert "may be newer" in repr(t)  # it was, in a part of the elements


def check_kinds_of_memory():
    """Through the staging ring, in place, not coherent: no byte beside the part moves."""
    for options in ({}, {"force_staging": True}):
        with kp.Manager(**options) as mgr:
            data = data_of("u1", (64, 63))
            for where in MEMORY:
                t, wanted = mgr.tensor_t(data, where), data.copy()
                for key in (np.s_[:, 1], np.s_[::3, ::-2], np.s_[5:7, 3:60], np.s_[::-1]):
                    value = wanted[key][::-1] + 3
                    t[key] = value
                    wanted[key] = value
                    same(t[key].read(), wanted[key])
                    same(t.read(), wanted)
                mgr.sequence().eval(kp.OpFill([t[1]], 9))
                wanted[1] = 9
                t[0, ::2] = 5
                wanted[0, ::2] = 5
                same(t[:3, ::2].read(), wanted[:3, ::2])
                same(t.read(), wanted)
    assert not null_control().violations()


@pytest.mark.sampled(every=2)
@pytest.mark.own_driver
@pytest.mark.parametrize(
    "config",
    [
        "memory=discrete",
        "memory=noncoherent",
        "memory=unified",
        *(f"profile={profile}" for profile in PROFILES),
    ],
)
def test_kinds_of_memory(config):
    run_child(check_kinds_of_memory, driver="null", config=config)


def test_more_runs_than_one_submission_holds(mgr):
    data = data_of("u2", (70_001, 3))
    for options in ({}, {"force_staging": True}):
        with kp.Manager(**options) as own:
            t = own.tensor_t(data, "storage")
            same(t[::-1, 1].read(), data[::-1, 1])
            t[:, 2] = data[::-1, 0]
            wanted = data.copy()
            wanted[:, 2] = data[::-1, 0]
            same(t.read(), wanted)


# -- writes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", MEMORY)
@pytest.mark.parametrize("name", KEYS)
def test_values_are_broadcast_as_in_numpy(mgr, name, where):
    key, data = KEYS[name], data_of("f4")
    t, wanted = mgr.tensor_t(data, where), data.copy()
    shape = data[key].shape
    values = [3, 2.5, np.float64(0.1), np.array(7), True, data_of("f4", shape, 9)]
    values += [np.broadcast_to(np.float32(4), shape)]
    if shape:
        values += [
            data_of("i2", (1, 1, *shape)),
            *([data_of("f4", shape, 2).tolist()] if 0 not in shape else []),
        ]
        values += [
            data_of("f8", shape[-1:]) / 4,
            data_of("f4", (*shape[:-1], 1)),
            data_of("f4", shape)[..., ::-1],
        ]
    for value in values:
        t[key] = value
        wanted[key] = value
        same(t.read(), wanted)
    t.write(data_of("f4", shape, 3), region=key)
    wanted[key] = data_of("f4", shape, 3)
    same(t.read(), wanted)


def test_a_large_part_is_filled_on_the_device(mgr):
    for dtype in ("f4", "i8", "c16", "V3"):
        t = mgr.zeros((512, 1024), dtype)
        value = np.arange(1, 1 + t.itemsize, dtype=np.uint8).view(t.dtype)[0]
        t[:] = value
        assert (t.read() == np.full(t.shape, value, t.dtype)).all()
        t[3:, :4] = np.zeros((), t.dtype)
        wanted = np.full(t.shape, value, t.dtype)
        wanted[3:, :4] = np.zeros((), t.dtype)
        assert (t.read() == wanted).all()


def test_assigning_with_an_operator_reads_and_writes(mgr):
    t = mgr.tensor(data_of("f4"))
    t[1:, 2] += np.ones(6)
    wanted = data_of("f4")
    wanted[1:, 2] += 1
    same(t.read(), wanted)
    with pytest.raises(kp.ArgumentTypeError, match="no operator"):
        t[1] += 1
    same(t.read(), wanted)


def test_tensors_are_assigned_by_their_device_contents(mgr):
    other = kp.Manager()
    t = mgr.tensor(data_of("f4"))
    source = other.tensor(np.zeros((4, 5)))
    source.write(np.arange(20))
    t[..., 0] = source
    t[:, 1] = t[:, 2]
    wanted = data_of("f4")
    wanted[..., 0] = np.arange(20).reshape(4, 5)
    wanted[:, 1] = wanted[:, 2]
    same(t.read(), wanted)
    t[::-1] = t  # the value is read before anything is written
    same(t.read(), wanted[::-1])
    other.destroy()


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (300, kp.InvalidArgumentError),
        (-1, kp.InvalidArgumentError),
        (2.5, kp.ArgumentTypeError),
        ([1.0, 2.0], kp.ArgumentTypeError),
        (1j, kp.ArgumentTypeError),
        ("five", kp.ArgumentTypeError),
        (b"five", kp.ArgumentTypeError),
        (None, kp.KomputeError),
        ({}, kp.KomputeError),
        ({1, 2}, kp.KomputeError),
        ([[1], [2, 3]], kp.InvalidArgumentError),
        (np.ones(5, np.uint8), kp.InvalidArgumentError),
        (np.ones((2, 4, 6), np.uint8), kp.InvalidArgumentError),
        (np.ma.masked_array([1] * 6, [1] * 6), kp.ArgumentTypeError),
        (float("nan"), kp.ArgumentTypeError),
    ],
    ids=str,
)
def test_what_does_not_fit_changes_nothing(mgr, value, error):
    data = data_of("u1")
    t = mgr.tensor_t(data)
    for key in (np.s_[1:3], np.s_[:, 0], np.s_[1, 2, 3:5]):
        with pytest.raises(error):
            t[key] = value
        same(t.read(), data)


def test_whole_floats_are_integers_for_one_value_only(mgr):
    t = mgr.zeros((3, 4), np.int32)
    t[:, 0] = 2.0
    assert t.read()[:, 0].tolist() == [2, 2, 2]
    with pytest.raises(kp.ArgumentTypeError, match="does not convert"):
        t[:, 0] = [2.0, 3.0, 4.0]


def test_records_are_assigned_as_tuples(mgr):
    t = mgr.zeros((3, 2), "f4,i4")
    t[:, 1] = (1.5, 2)
    t[0] = [(3, 4), (5, 6)]
    assert t.tolist() == [[(3, 4), (5, 6)], [(0, 0), (1.5, 2)], [(0, 0), (1.5, 2)]]
    with pytest.raises(kp.KomputeError):
        t[0, 0] = (1, 2.5)


# -- refusals ------------------------------------------------------------------------------------------------


MASK = np.ones(4, bool)


@pytest.mark.parametrize("key", ["x", 1.5, {0}], ids=str)
def test_other_keys_are_refused_with_the_copy_that_takes_them(mgr, key):
    t = mgr.tensor(data_of("f4"))
    for use in (
        lambda: t[key],
        lambda: t.__setitem__(key, 1),
        lambda: t[::2][key],
        lambda: t.read(region=key),
    ):
        with pytest.raises(kp.ArgumentTypeError, match=r"t\.read\(\)\[\.\.\.\]"):
            use()


@pytest.mark.parametrize("key", [[0, 2], MASK, (MASK, 0), np.array([1, 2])], ids=str)
def test_regions_are_no_copies(mgr, key):
    """Else what is written to them would be lost (test_picking.py has these keys in brackets)."""
    t = mgr.tensor(data_of("f4"))
    for use in (
        lambda: t.read(region=key),
        lambda: t.write(1, key),
        lambda: t[::2].read(region=key),
        lambda: t[::2].write(1, key),
        lambda: t.view(key),
    ):
        with pytest.raises(kp.ArgumentTypeError, match="indexed with ints and slices"):
            use()


@pytest.mark.parametrize("key", [4, -5, (0, 0, 0, 0), (..., 6), (slice(None), 5)], ids=str)
def test_indices_beyond_an_axis(mgr, key):
    t = mgr.tensor(data_of("f4"))
    for use in (lambda: t[key], lambda: t.__setitem__(key, 1)):
        with pytest.raises(kp.OutOfRangeError):
            use()


def test_a_strided_view_is_not_bound_and_says_so(mgr):
    t = mgr.tensor(data_of("f4"))
    view = t[:, 0]
    for call in (
        lambda: kp.OpSyncDevice([view]),
        lambda: kp.OpCopy([t[0, 0], view]),
        lambda: kp.OpFill([view], 1),
        lambda: mgr.algorithm([view], kp.compile(COPY)),
    ):
        with pytest.raises(
            kp.ArgumentTypeError, match=r"not dense; make a tensor of it, mgr\.tensor_t\(view\)"
        ):
            call()
    same(mgr.tensor_t(view).read(), view.read())
    with pytest.raises(kp.UnimplementedError, match="not dense"):
        t.view(slice(None), 0, dtype=np.int32)


def test_a_kernel_reads_a_strided_view_and_refuses_to_write_one(mgr):
    copied, t = mgr.kernel(COPY), mgr.tensor(data_of("f4"))
    wanted = data_of("f4")[:, 0]
    same(copied(t[:, 0], np.zeros((4, 6), np.float32)), wanted)
    with pytest.raises(kp.ArgumentTypeError, match="takes dense memory"):
        copied(np.zeros(24, np.float32), t[:, 0])


def test_strided_views_have_the_habits_of_tensors(mgr):
    view = mgr.tensor(data_of("f4"))[:, 0]
    for code in ("view + 1", "-view", "1 in view", "view < 2"):
        with pytest.raises(kp.ArgumentTypeError, match="contents are on the device"):
            eval(code)
    with pytest.raises(AttributeError, match=r"t\.read\(\)\.sum"):
        view.sum()
    for use in (iter, list, reversed):
        with pytest.raises(TypeError):
            use(view)
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(kp.ArgumentTypeError, match=r"view\.read\(\)"):
            use(view)
    with pytest.raises(kp.ArgumentTypeError):
        kp.StridedView(3, 0, (1,), (1,))
    assert view == view and view != view.base and len({view, view}) == 1
    assert (np.add(view, 1) == view.read() + 1).all() and (view + np.ones(6) == view.read() + 1).all()
    assert view.strides == (120, 4) and view.manager is mgr and "shape=(4, 6)" in repr(view)


def test_a_destroyed_tensor_ends_its_strided_views(mgr):
    t = mgr.tensor(data_of("f4"))
    view = t[:, 0]
    t.destroy()
    assert not view.is_init() and len(view) == 0 and "destroyed" in repr(view)
    for use in (
        view.read,
        view.tolist,
        view.numpy,
        view.fill,
        lambda: view[0],
        lambda: view.write(1),
        lambda: np.asarray(view),
        lambda: float(view),
        lambda: view.__setitem__(0, 1),
        lambda: t.__setitem__(0, 1),
        t.tolist,
        lambda: t.astype("f8"),
    ):
        with pytest.raises(kp.FailedPreconditionError):
            use()


def test_a_view_keeps_the_tensor(mgr):
    view = mgr.tensor(data_of("f4"))[:, 0]
    same(view.read(), data_of("f4")[:, 0])


def test_a_mapping_holds_parts_back(mgr):
    t = mgr.tensor(data_of("f4"))
    with t.map(write=True):
        for use in (t[:, 0].read, lambda: t.__setitem__(np.s_[:, 0], 1)):
            with pytest.raises(kp.FailedPreconditionError):
                use()


def test_read_only_memory_is_not_written(mgr):
    array = kp.aligned_zeros((64, 64), np.float32)
    try:
        t = mgr.from_host(array, copy="never", semantics=kp.HostBufferSemantics.IMMUTABLE_ZERO_COPY)
    except kp.UnimplementedError as error:
        pytest.skip(str(error))
    for key in (np.s_[:, 0], 0, np.s_[::-1]):
        with pytest.raises(kp.FailedPreconditionError, match="read-only"):
            t[key] = 1
    assert not array.any()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(t[:, 0])[0] = 1


# -- conversions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", MEMORY)
def test_conversions_read_the_device(mgr, where):
    data = data_of("f4")
    t = mgr.tensor_t(data, where)
    t.write(data + 0.75)
    assert t.tolist() == (data + 0.75).tolist() and t[0, 0, 0].tolist() == 0.75
    for dtype in (np.int32, "f8", np.float16, np.complex64, bool, "<i2", ">i4"):
        same(t.astype(dtype), (data + 0.75).astype(dtype))
    one = t[1, 2, 3]
    assert float(one) == one.item() == complex(one).real == data[1, 2, 3] + 0.75
    assert int(one) == int(data[1, 2, 3]) and bool(one)
    new = t.astype("f4")
    new[:] = 0
    assert t.read().any(), "astype copies"
    assert t.astype(object)[0, 0, 0] == 0.75
    for wrong in ("nonsense", 7):
        with pytest.raises(kp.ArgumentTypeError):
            t.astype(wrong)


def test_images_convert_too(mgr):
    image = mgr.image(np.arange(6.0).reshape(2, 3))
    image.write(np.arange(6.0) + 1)
    assert image.tolist() == [[1, 2, 3], [4, 5, 6]]
    same(image.astype(np.uint8), np.arange(1, 7, dtype=np.uint8).reshape(2, 3))
    with pytest.raises(kp.InvalidArgumentError, match=r"t\.read\(\)\[0, 0\]\.item\(\)"):
        image.item()
    assert float(mgr.image(np.full((1, 1), 2.5))) == 2.5
    with pytest.raises(kp.ArgumentTypeError, match=r"t\.write\(value, region\)"):
        image[0] = 1


def test_the_array_interface_of_memory_that_the_host_addresses(mgr):
    data = data_of("u1", (6, 5))
    for where in ("host", "deviceAndHost"):
        t = mgr.tensor_t(data, where)

        class Holder:
            __array_interface__ = t[2:].__array_interface__
            keeps = t

        shown = np.asarray(Holder())
        same(shown, data[2:])
        t.write(data + 1)
        same(shown, (data + 1)[2:])
        t.destroy()
        same(np.asarray(Holder()), (data + 1)[2:])
    for where in ("device", "storage"):
        t = mgr.tensor_t(data, where)
        with pytest.raises(AttributeError, match=r"t\.read\(\)"):
            _ = t.__array_interface__
        with pytest.raises(ValueError):
            t.__array__(copy=False)
    assert not hasattr(mgr.zeros(3, "V2", "host"), "__array_interface__")
    same(np.asarray(mgr.zeros(3, "V2", "host")), np.zeros(3, "V2"))


def test_pillow_takes_tensors(mgr):
    pillow = pytest.importorskip("PIL.Image")
    data = data_of("u1", (6, 5, 4))
    for where in MEMORY:
        t = mgr.tensor_t(data, where)
        t.write(data + 1)
        same(np.asarray(pillow.fromarray(t.read())), data + 1)
        same(np.asarray(pillow.fromarray(np.asarray(t[::-1, :, :3]))), (data + 1)[::-1, :, :3])
    same(np.asarray(pillow.fromarray(mgr.tensor_t(data, "host"))), data)
    with pytest.raises(AttributeError, match=r"t\.read\(\)"):
        pillow.fromarray(mgr.tensor_t(data))


def test_dask_takes_tensors(mgr):
    array = pytest.importorskip("dask.array")
    data = data_of("f4", (40, 50))
    t = mgr.tensor(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kp.KomputeWarning)
        lazy = array.from_array(t, chunks=(16, 16))
        same(lazy.compute(scheduler="threads"), data)
        np.testing.assert_array_equal(
            lazy[::3, 7:20].sum(axis=0).compute(scheduler="threads"), data[::3, 7:20].sum(0)
        )


BODY = np.dtype(
    [
        ("position", "f4", (3,)), ("mass", "f4"), ("id", "i4"), ("pair", [("x", "f4"), ("y", "f4")]),
        ("byte", "u1"),
    ],
    align=True,
)  # fmt: skip


def bodies():
    array = np.zeros((3, 4), BODY)
    array["position"] = np.arange(36).reshape(3, 4, 3)
    array["mass"] = np.arange(12).reshape(3, 4)
    array["id"] = -array["mass"]
    return array


@pytest.mark.parametrize("name", ["position", "mass", "id", "byte"])
@pytest.mark.parametrize(
    "where", [np.s_[...], np.s_[1:], np.s_[::-2, 1:], np.s_[1, 2], np.s_[:, 3], np.s_[2:2]], ids=str
)
def test_a_field_of_structs_is_numpys(mgr, name, where):
    array, t = bodies(), mgr.tensor_t(bodies())
    part, wanted = t[where][name], array[where][name]
    assert part.shape == wanted.shape and part.dtype == wanted.dtype and part.base is t
    np.testing.assert_array_equal(part.read(), wanted)
    np.testing.assert_array_equal(part.numpy(), wanted)
    np.testing.assert_array_equal(kp.ops.add(part, part).read(), wanted + wanted)
    part[...] = 3
    if wanted.ndim:
        wanted[...] = 3
    else:
        array[where][name] = 3
    np.testing.assert_array_equal(t.read(), array)


def test_fields_are_assigned_by_name(mgr):
    array, t = bodies(), mgr.tensor_t(bodies())
    for each in (array, t):
        each["position"] = [1, 2, 3]
        each.T["mass"] = 5
    np.testing.assert_array_equal(t.read(), array)
    assert t["position"].T.shape == (3, 4, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("masses", "its fields are position, mass.*mean 'mass'"),
        ("pair", "'pair' begins 20 bytes .* t.read"),
        ("", "no field"),
    ],
)
def test_fields_without_a_view_say_so(mgr, name, text):
    for t in (mgr.tensor_t(bodies()), mgr.tensor_t(bodies())[::2]):
        with pytest.raises(kp.InvalidArgumentError, match=text):
            t[name]


# -- copies of parts on the device ---------------------------------------------------------------------------


def test_a_part_is_copied_to_a_tensor_of_any_manager(mgr, make_manager):
    other = make_manager()
    t = mgr.tensor(np.arange(12).reshape(3, 4))
    for part in (t[:, 0], t[::-2, 1::2], t.T[1:, 2], t[:, 3:3]):
        for to in (mgr, other):
            made = part.to(to)
            assert type(made) is kp.Tensor and made.manager is to and made.shape == part.shape
            np.testing.assert_array_equal(made.read(), part.read())
    assert t[:, 0].to(mgr, "host").memory_type() is kp.MemoryTypes.host


def test_copies_from_and_to_parts(mgr, make_manager):
    other = make_manager()
    t = mgr.zeros((2, 3))
    sources = {
        1: mgr.tensor([1, 1]), 2: other.tensor([[2], [2]]), 3: mgr.tensor([[3, 0], [3, 0]])[:, 0],
        4: np.full(2, 4, np.float32), 5: mgr.image(np.full((2, 1), 5)),
    }  # fmt: skip
    for value, source in sources.items():
        t[:, 1].copy_from(source)
        assert t.tolist() == [[0, value, 0]] * 2
        if isinstance(source, kp.Tensor):
            t[:, 1].fill(0)
            source.copy_to(t[:, 1])
            assert t.tolist() == [[0, value, 0]] * 2
    targets = [
        mgr.zeros(2), other.zeros((1, 2)), mgr.zeros((2, 2))[:, 1], np.zeros(2, np.float32),
        mgr.image(np.zeros((2, 1))),
    ]  # fmt: skip
    for target in targets:
        t[:, 1].copy_to(target)
        assert np.asarray(target).reshape(-1).tolist() == [5, 5]
    assert mgr.zeros(2).copy_from(t[:, 1]).done()
    with pytest.raises(kp.InvalidArgumentError, match="cannot be copied"):
        t[:, 1].copy_from(mgr.zeros(3))
    with pytest.raises(kp.ArgumentTypeError, match="not None"):
        t[:, 1].copy_to(None)


def test_what_tensors_images_and_parts_lack_says_what_to_write(mgr):
    t, image = mgr.tensor([[1, 2], [3, 4]]), mgr.image(np.ones((2, 3)))
    things = (t, t.T, image)
    for thing in things:
        for name in {name for each in things for name in dir(each) if name[0] != "_"} - set(dir(thing)):
            with pytest.raises(AttributeError) as raised:
                getattr(thing, name)
            assert raised.value.name == name
            (code,) = re.findall(
                r"[:;] (kp\.ops\.ascontiguousarray\(t\)|t\.manager\.image\(t\.read\(\)\)|t.read\(\).strides)",
                str(raised.value),
            )
            eval(code, {"t": thing, "kp": kp})
