"""Elements in other places, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from kompute_py.ops._places import joining as _joining
from kompute_py.ops._places import moving as _moving
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

NAMES = [
    name
    for module in (_moving, _joining)
    for name, each in vars(module).items()
    if isinstance(each, kp.Operation) and name[0] != "_"
]
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=7)


def numbers(shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


def calls(data, shape):
    """Arguments for each function that NumPy has with the same."""
    ndim, axis = len(shape), data.draw(st.integers(-len(shape), len(shape) - 1))
    yield "ascontiguousarray", ()
    yield "transpose", (data.draw(st.none() | st.permutations(range(ndim))),)
    yield "swapaxes", (axis, data.draw(st.integers(-ndim, ndim - 1)))
    yield "flip", (data.draw(st.none() | st.just(axis) | st.just(tuple(range(ndim)))),)
    yield "roll", (data.draw(st.integers(-9, 9)), axis)
    yield "tile", (data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)),)
    yield "repeat", (data.draw(st.integers(0, 3)), axis)
    yield "broadcast_to", ((2, *shape),)
    if ndim > 1:
        yield "diagonal", (data.draw(st.integers(-4, 4)), axis, (axis + 1) % ndim)


@examples(25)
@given(data=st.data())
def test_any_shapes_and_parts(mgr, data):
    shape = data.draw(SHAPES)
    whole = numbers(tuple(2 * n + 1 for n in shape))
    key = tuple(
        data.draw(st.sampled_from([slice(1, n + 1), slice(0, 2 * n, 2), slice(n - 1, None, -1)]))
        if n
        else slice(0, 0)
        for n in shape
    )
    part, tensor = whole[key], mgr.tensor_t(whole)[key]
    assert part.shape == shape
    for name, args in calls(data, shape):
        got, expected = getattr(kp.ops, name)(tensor, *args), getattr(np, name)(part, *args)
        assert got.shape == expected.shape, name
        np.testing.assert_array_equal(got.read(), expected, err_msg=name)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "complex64"])
def test_dtypes(dtype):
    x = numbers((5, 7), dtype)
    for name, args in (("transpose", ()), ("roll", ((2, -3), (0, 1))), ("stack", ()), ("concatenate", (1,))):
        given_ = [x, x[::-1].copy()] if name in ("stack", "concatenate") else x
        got, expected = getattr(kp.ops, name)(given_, *args), getattr(np, name)(given_, *args)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    got = kp.ops.take(x, np.array([3, 0], np.int8), 0, "wrap")
    np.testing.assert_array_equal(got, x[[3, 0]])


@examples(20)
@given(data=st.data())
def test_joined(data):
    shape = data.draw(SHAPES)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    parts = []
    for number, length in enumerate(lengths):
        own = list(shape)
        own[axis] = length
        parts.append(numbers(own, [np.float32, np.int16][number % 2]) * (number + 1))
    for name, arrays in (("concatenate", parts), ("stack", [numbers(shape), numbers(shape) + 5])):
        got, expected = getattr(kp.ops, name)(arrays, axis=axis), getattr(np, name)(arrays, axis=axis)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("axis", "count"), [(0, 64), (1, 65), (-1, 65), (0, 4097)])
@pytest.mark.parametrize("name", ["concatenate", "stack"])
def test_many_tensors_are_joined_in_groups(mgr, name, axis, count):
    x = numbers((2, 3, 2), np.float32)
    kinds = [np.int16, np.uint16, np.float16]  # whose common dtype depends on no order
    arrays = [(x + i % 50).astype(kinds[i % 3]) for i in range(count)]
    got, expected = getattr(kp.ops, name)(arrays, axis), getattr(np, name)(arrays, axis)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    tensors = [mgr.tensor_t(each) for each in arrays[:70]]
    operation = getattr(kp.ops, name).bind(tensors, axis=axis)
    mgr.sequence().record(operation).eval()
    np.testing.assert_array_equal(operation.results[0].read(), getattr(np, name)(arrays[:70], axis))
    if count < 100:
        out = mgr.empty(expected.shape, np.float32)
        assert getattr(kp.ops, name)(arrays, axis, out=out) is out
        np.testing.assert_array_equal(out.read(), expected)


def test_of_many_tensors_the_one_that_does_not_fit_is_named():
    arrays = [np.zeros((2, 3))] * 70 + [np.zeros((2, 4))]
    for name, axis in (("concatenate", 0), ("stack", 1)):
        with pytest.raises(kp.InvalidArgumentError, match=rf"{name}: arrays\[0\] .* arrays\[70\] \(2, 4\)"):
            getattr(kp.ops, name)(arrays, axis)
        with pytest.raises(kp.InvalidArgumentError, match=rf"{name}: arrays\[0\] .* arrays\[64\] \(1,\)"):
            getattr(kp.ops, name)([*arrays[:64], [0.0]], axis)
        with pytest.raises(kp.ArgumentTypeError, match=rf"{name}: arrays\[64\] is None"):
            getattr(kp.ops, name)([*arrays[:64], None], axis)
    with pytest.raises(kp.InvalidArgumentError, match="axis"):
        kp.ops.concatenate(arrays[:70], 2)


@examples(25)
@given(data=st.data())
def test_take(data):
    x = numbers(data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=7)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    dtype = data.draw(st.sampled_from(["int32", "uint32", "int8"]))
    least, most = (
        (0, 2**32 - 1) if dtype == "uint32" else (-(2**31), 2**31 - 1) if dtype == "int32" else (-128, 127)
    )
    near = st.integers(max(least, -20), 20)
    indices = data.draw(
        hnp.arrays(
            dtype,
            data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5)),
            elements=near | st.integers(least, most),
        )
    )
    for mode in ("clip", "wrap"):
        got, expected = (
            kp.ops.take(x, indices, axis, mode),
            np.take(x, indices.astype(np.int64), axis, mode=mode),
        )
        assert np.shape(got) == expected.shape
        np.testing.assert_array_equal(got, expected)


def test_many_elements_recorded_and_staged(make_manager):
    for named in ({}, {"force_staging": True}):
        mgr = make_manager(**named)
        x = numbers((700, 333), np.int32)
        t, out = mgr.tensor_t(x), mgr.empty((333, 700), dtype=np.int32)
        assert kp.ops.transpose(t, out=out) is out
        np.testing.assert_array_equal(out.read(), x.T)
        out.fill(0)
        mgr.sequence().record(kp.ops.transpose.op(t, out=out)).eval()
        np.testing.assert_array_equal(out.read(), x.T)
        kp.ops.flip(t, 1, out=t)
        np.testing.assert_array_equal(t.read(), x[:, ::-1])


def test_all_elements_as_one_line(mgr):
    for shape in ((), (7,), (3, 4), (2, 0, 3), (2, 1, 5)):
        x = numbers(shape)
        t = mgr.tensor_t(x)
        for number in (0, 1, 3, -5, 100):
            np.testing.assert_array_equal(kp.ops.roll(t, number).read(), np.roll(x, number))
        for number in (0, 1, 3):
            np.testing.assert_array_equal(kp.ops.repeat(t, number).read(), np.repeat(x, number))
    x = numbers((4, 6))
    t = mgr.tensor_t(x)
    np.testing.assert_array_equal(kp.ops.repeat(t[::2, ::-1], 2).read(), np.repeat(x[::2, ::-1], 2))
    np.testing.assert_array_equal(kp.ops.roll(t[1, ::-2], 1).read(), np.roll(x[1, ::-2], 1))
    for part in (np.s_[:, ::-1], np.s_[::2, 1:4], np.s_[::-1, ::3]):
        for number in (1, -2, 17):
            np.testing.assert_array_equal(kp.ops.roll(t[part], number).read(), np.roll(x[part], number))


def test_repeated_as_numbers_say(mgr):
    x = numbers((2, 3, 4))
    t = mgr.tensor_t(x)
    for repeats, axis in (
        ([1, 2, 0], 1),
        (np.array([3]), 0),
        ((1, 2, 0, 4), -1),
        (np.arange(24), None),
        (np.uint8([0, 0]), 0),
        (np.array(2), 1),
        (mgr.tensor_t(np.int32([0, 2])), 0),
    ):
        expected = np.repeat(x, np.asarray(repeats), axis)
        np.testing.assert_array_equal(kp.ops.repeat(x, repeats, axis), expected)
        operation = kp.ops.repeat.op(t, repeats, axis=axis)
        mgr.sequence().record(operation).eval()
        np.testing.assert_array_equal(operation.results[0].read(), expected)
    part = t[:, ::2, ::-1]
    expected = np.repeat(x[:, ::2, ::-1], [2, 0, 1, 3], 2)
    np.testing.assert_array_equal(kp.ops.repeat(part, [2, 0, 1, 3], 2).read(), expected)
    out = mgr.zeros(expected.shape)
    assert kp.ops.repeat(part, [2, 0, 1, 3], 2, out=out) is out
    np.testing.assert_array_equal(out.read(), expected)


def test_wrong_calls():
    x = numbers((2, 3))
    for name, args, message in (
        ("transpose", ((0,),), "each of the 2 axes"),
        ("swapaxes", (0, 2), "axis is 2"),
        ("flip", ((0, 0),), "twice"),
        ("roll", ((1, 2), (0,)), "2 shifts"),
        ("roll", (None,), "give an int or several"),
        ("roll", ((1, 2),), "no axis; give one for each"),
        ("repeat", (2, (0, 1)), "give one axis, or None"),
        ("tile", (-1,), "reps is"),
        ("repeat", (-1, 0), "repeats is -1"),
        ("repeat", ([1, -1], 0), "repeats has -1"),
        ("repeat", ([1, 2], 1), "a number for each, or one"),
        ("repeat", ([1, 2], 2), "axis is 2"),
        ("repeat", ([2**40, 1], 0), "1099511627777 elements"),
        ("broadcast_to", ((3, 3),), "does not broadcast"),
        ("broadcast_to", ((3,),), "does not broadcast"),
        ("diagonal", (0, 1, 1), "twice"),
        ("take", (np.array([1]), 0, "all"), "mode is"),
        ("take", (np.array([1]), 2, "clip"), "axis is 2"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=message):
            getattr(kp.ops, name)(x, *args)
    for call in (lambda: kp.ops.take(x, x, 0, "clip"), lambda: kp.ops.repeat(x, [1.0, 2], 0)):
        with pytest.raises(kp.ArgumentTypeError, match="give ints"):
            call()
    with pytest.raises(kp.InvalidArgumentError, match="1 to"):
        kp.ops.take(x[:0], np.array([0], np.int32), 0, "clip")
    for name, arrays in (("concatenate", [x, x[:, :2].copy()]), ("stack", [x, x[:1]])):
        with pytest.raises(kp.InvalidArgumentError, match="must be the same"):
            getattr(kp.ops, name)(arrays)
        with pytest.raises(kp.InvalidArgumentError, match="arrays is empty"):
            getattr(kp.ops, name)([])


STRUCTS = [
    np.dtype([("a", "f4"), ("b", "i4")]),
    np.dtype([("a", "f8"), ("b", "u2", (3,))], align=True),
    np.dtype([("a", "f4", (3,)), ("b", "u1")]),  # 13 bytes
    np.dtype([("a", "i2"), ("b", "u1", (4,))]),
    np.dtype([("a", "f4"), ("b", [("c", "f4"), ("d", "f4", (24,))])]),
]
INDICES = np.array([3, 0, 5, 5], np.int32)
MASK = np.array([True, False, True, True, False, True])
MOVES = {
    "take": (lambda f, x, c: f.take(x, c(INDICES), 0)),
    "take of all": (lambda f, x, c: f.take(x, c(INDICES))),
    "take_along_axis": (
        lambda f, x, c: f.take_along_axis(
            x, c(np.argsort(np.arange(12).reshape(6, 2) % 5, 0).astype(np.int32)), 0
        )
    ),
    "compress": (lambda f, x, c: f.compress(c(MASK), x, 0)),
    "compress of all": (lambda f, x, c: f.compress(c(MASK), x)),
    "repeat": (lambda f, x, c: f.repeat(x, 2, 0)),
    "roll": (lambda f, x, c: f.roll(x, 2, 0)),
    "flip": (lambda f, x, c: f.flip(x)),
    "tile": (lambda f, x, c: f.tile(x, (2, 1))),
    "transpose": (lambda f, x, c: f.transpose(x)),
    "rot90": (lambda f, x, c: f.rot90(x)),
    "diagonal": (lambda f, x, c: f.diagonal(x)),
    "broadcast_to": (lambda f, x, c: f.broadcast_to(x, (3, 6, 2))),
    "concatenate": (lambda f, x, c: f.concatenate([x, x[:2], x[::-1]], 0)),
    "stack": (lambda f, x, c: f.stack([x, x], 1)),
    "ascontiguousarray": (lambda f, x, c: f.ascontiguousarray(x[::2, 1:])),
    "an index": (lambda f, x, c: x[c(INDICES)]),
    "a mask": (lambda f, x, c: x[c(MASK)]),
}


def is_moved(mgr, dtype):
    """Whether the device moves such structs; if not, it says what it lacks."""
    width = 4 if dtype.itemsize % 4 == 0 else 2 - dtype.itemsize % 2
    if width == 4 or f"storageBuffer{8 * width}BitAccess" in mgr.enabled_features:
        return True
    with pytest.raises(
        kp.UnimplementedError, match=rf"structs of {dtype.itemsize} bytes .* lacks .*Pad them"
    ):
        kp.ops.flip(mgr.tensor_t(structs(dtype)))
    return False


def structs(dtype, shape=(6, 2)):
    bits = np.random.default_rng(31).integers(0, 256, dtype.itemsize * math.prod(shape), np.uint8)
    return bits.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", STRUCTS, ids=str)
def test_structs_are_moved_whole(mgr, dtype):
    if not is_moved(mgr, dtype):
        return
    array = structs(dtype)
    x = mgr.tensor_t(array)
    for name, move in MOVES.items():
        found, wanted = move(kp.ops, x, mgr.tensor_t), move(np, array, np.asarray)
        assert found.dtype == dtype and found.shape == wanted.shape, name
        for field in "ab":  # NumPy leaves out the padding
            assert found.read()[field].tobytes() == wanted[field].tobytes(), name


@pytest.mark.parametrize("dtype", STRUCTS, ids=str)
def test_structs_are_written_to_parts(mgr, dtype):
    if not is_moved(mgr, dtype):
        return
    array, other = structs(dtype), structs(dtype)[::-1]
    x, y = mgr.tensor_t(array), mgr.tensor_t(np.ascontiguousarray(other))
    kp.ops.flip(y[::2], out=x[::-2])
    array[::-2] = other[::2][::-1, ::-1]
    for field in "ab":
        assert x.read()[field].tobytes() == array[field].tobytes()


def test_structs_of_one_size_keep_their_own_dtypes(mgr):
    for dtype in (np.dtype([("a", "f4"), ("b", "i4")]), np.dtype([("a", "i4"), ("b", "f4")])):
        assert kp.ops.flip(mgr.tensor_t(structs(dtype))).dtype == dtype


def test_structs_are_put(mgr):
    array = structs(STRUCTS[0], (6,))
    wanted = array.copy()
    wanted[[4, 1]] = array[:2]
    x = mgr.tensor_t(array)
    found = kp.ops.put(x, mgr.tensor_t(np.array([4, 1], np.int32)), mgr.tensor_t(array[:2]))
    assert found.read().tobytes() == wanted.tobytes()
    x[np.array([4, 1], np.int32)] = mgr.tensor_t(array[:2])
    assert x.read().tobytes() == wanted.tobytes()


def test_structs_of_different_fields_do_not_mix(mgr):
    x, other = (mgr.tensor_t(np.zeros(4, [(a, "f4"), (b, "f4")])) for a, b in ("ab", "ba"))
    with pytest.raises(kp.InvalidArgumentError, match="no common dtype"):
        kp.ops.concatenate([x, other])
    with pytest.raises(kp.InvalidArgumentError, match="structs of one dtype"):
        kp.ops.put(x, mgr.tensor_t(np.array([0], np.int32)), other)


@pytest.mark.parametrize("name", ["negative", "sum", "sort", "unique", "astype", "pad"])
def test_operations_that_compute_say_how_to_give_structs(mgr, name):
    x = mgr.tensor_t(structs(STRUCTS[0], (6,)))
    arguments = {"astype": ("float32",), "pad": (1,)}.get(name, ())
    with pytest.raises(kp.UnimplementedError, match=r"\['a'\].*view\('uint32'\)"):
        getattr(kp.ops, name)(x, *arguments)
    # The advice works.
    assert kp.ops.max(x["b"]).item() == x.read()["b"].max()
    words = x.view("uint32").reshape(*x.shape, -1)
    assert kp.ops.where(MASK[:, None], words, words[:1]).view(x.dtype).shape == (6, 1)


def test_windows_are_views(mgr):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    t, theirs = mgr.tensor_t(x), np.lib.stride_tricks.sliding_window_view
    for part, window, axis in [
        (np.s_[:], 3, 1), (np.s_[:], (2, 2), (0, -1)), (np.s_[:], (1, 2, 5), None), (np.s_[:, ::2], 2, 2),
        (np.s_[0, :, 1], 4, None), (np.s_[:, ::-1], (2, 2), (1, 1)),
    ]:  # fmt: skip
        got, want = kp.ops.sliding_window_view(t[part], window, axis), theirs(x[part], window, axis)
        assert got.manager is mgr and got.shape == want.shape
        np.testing.assert_array_equal(got.read(), want)
        np.testing.assert_array_equal(kp.ops.sum(got, axis=-1).read(), want.sum(-1))
        np.testing.assert_array_equal(kp.ops.sliding_window_view(x[part], window, axis), want)
    every = kp.ops.sliding_window_view(t.reshape(-1), 8)[::4]
    np.testing.assert_array_equal(every.read(), theirs(x.reshape(-1), 8)[::4])
    t[0, 0, 0] = 99
    assert every[0, 0].item() == 99  # nothing was copied


def test_windows_that_overlap_are_not_written(mgr):
    """And those that do not are, in whatever order their axes are."""
    x = np.arange(24, dtype=np.float32)
    t = mgr.tensor(x)
    view = kp.ops.sliding_window_view(t, 3)
    ways = (
        lambda windows: windows.write(np.zeros(windows.shape, np.float32)),
        lambda windows: windows.fill(7),
        lambda windows: windows.__setitem__(..., 5),
        lambda windows: windows.copy_from(mgr.zeros(windows.shape)),
        lambda windows: kp.ops.add(windows, 1, out=windows),
        lambda windows: mgr.sequence().record(kp.ops.add.bind(windows, 1, out=windows)),
    )
    for way in ways:
        for windows in (view, view[::2], view.T[::-1], view[1:4, ::2]):
            with pytest.raises(kp.InvalidArgumentError, match="the same memory"):
                way(windows)
    np.testing.assert_array_equal(t.read(), x)
    for windows in (view[::4], view[::-3].T, view[::2, ::2][::2]):
        want = windows.read() + 1
        kp.ops.add(windows, 1, out=windows)
        np.testing.assert_array_equal(windows.read(), want)


def test_windows_that_do_not_fit(mgr):
    t = mgr.zeros((3, 4))
    for args, match in [
        ((5, 1), "5 elements, and axis 1 4"), ((0, 1), "0 elements"), ((2,), "1 lengths for 2 axes"),
        ((2, 2), "axis is 2"), (((2, 2), (0, 0, 1)), "2 lengths for 3"), (((2, 3), (0, 0)), "axis 0 3"),
    ]:  # fmt: skip
        with pytest.raises(kp.InvalidArgumentError, match=match):
            kp.ops.sliding_window_view(t, *args)
