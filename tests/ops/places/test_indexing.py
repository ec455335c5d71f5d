"""Elements by index, elements written at indices, padding and triangles, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def numbers(rng, shape, dtype=np.float32):
    return rng.integers(0, 20, shape).astype(dtype)


def check(got, expected):
    got = np.asarray(got)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(mgr, rng, axis):
    x = numbers(rng, (3, 4, 5))
    order = np.argsort(x, axis)
    check(ops.take_along_axis(x, order.astype(np.int32), axis, "clip"), np.take_along_axis(x, order, axis))
    t = mgr.tensor_t(x)
    few = rng.integers(-9, 9, (*x.shape[: axis % 3], 2, *x.shape[axis % 3 + 1 :])).astype(np.int32)
    n = x.shape[axis]
    for mode, within in (("clip", np.clip(few, 0, n - 1)), ("wrap", few % n)):
        check(ops.take_along_axis(t, few, axis, mode).read(), np.take_along_axis(x, within, axis))
    check(
        ops.take_along_axis(t[:, ::2], few[:, :2] if axis != 1 else few, axis, "wrap").read(),
        np.take_along_axis(x[:, ::2], (few[:, :2] if axis != 1 else few) % x[:, ::2].shape[axis], axis),
    )


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_put(mgr, rng, mode):
    x, values = numbers(rng, (3, 4)), numbers(rng, 5)
    for shape in ((3, 7), (0,), (500,)):  # many of them several times
        indices = rng.integers(-30, 30, shape).astype(np.int32)
        expected = x.copy()
        np.put(expected, indices, values, mode=mode)
        check(ops.put(x, indices, values, mode), expected)
        t = mgr.tensor_t(x)
        assert ops.put(t, indices, values, mode, out=t) is t
        check(t.read(), expected)


def test_results_in_the_place_of_any_argument(mgr, rng):
    for name, expected_of in (("put", np.put), ("put_along_axis", None), ("scatter_add", None)):
        for place in (0, 2):
            x, values = numbers(rng, 500), numbers(rng, 500)
            indices = rng.permutation(500).astype(np.int32)
            expected = x.copy()
            if expected_of is None and name == "scatter_add":
                np.add.at(expected, indices, values)
            else:
                expected[indices] = values
            given = [mgr.tensor_t(each) for each in (x, indices, values)]
            rest = ("clip",) if name == "put" else (0, "clip")
            getattr(ops, name)(*given, *rest, out=given[place])
            check(given[place].read(), expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_put_along_axis(rng, axis):
    x = numbers(rng, (3, 4, 5))
    indices = rng.integers(0, x.shape[axis], (*x.shape[:axis], 9, *x.shape[axis + 1 :])).astype(np.int32)
    for values in (numbers(rng, indices.shape), np.float32(77).reshape(1)):
        expected = x.copy()
        np.put_along_axis(expected, indices, values, axis)
        check(ops.put_along_axis(x, indices, values, axis, "clip"), expected)


@pytest.mark.parametrize(
    "dtype", ["float32", "int32", "uint8", "int16", "float16", "uint32", "float64", "bool"]
)
def test_scatter_add(mgr, rng, dtype):
    if dtype == "float64" and "shaderFloat64" not in mgr.enabled_features:
        pytest.skip("no float64")
    x, indices = numbers(rng, (3, 4, 5), dtype), rng.integers(0, 4, (2, 3)).astype(np.int32)
    values = numbers(rng, (3, 2, 3, 5), dtype)
    expected = x.copy()
    np.add.at(expected, (slice(None), indices), values)
    check(ops.scatter_add(x, indices, values, 1, "clip"), expected)


def test_many_at_one_place(mgr, rng):
    indices = rng.integers(0, 3, 100_000).astype(np.int32)
    ones = np.ones(indices.size, np.float32)
    check(
        ops.scatter_add(np.zeros(3, np.float32), indices, ones, 0, "clip"), np.bincount(indices).astype("f4")
    )
    t = mgr.zeros((3, 2))
    operation = ops.scatter_add.op(
        t, mgr.tensor_t(np.array([0, 2, 9], np.int32)), mgr.full((3, 2), 1.0), 0, "wrap", out=t
    )
    sequence = mgr.sequence().record(operation)
    sequence.eval()
    sequence.eval()
    check(t.read(), np.array([[4, 4], [0, 0], [2, 2]], np.float32))


@pytest.mark.parametrize("k", [-2, 0, 1, 9])
def test_triangles(mgr, rng, k):
    for shape, dtype in (((3, 4), np.float32), ((2, 5, 3), np.int8), ((4, 4), np.bool_)):
        x = numbers(rng, shape, dtype)
        check(ops.tril(x, k), np.tril(x, k))
        check(ops.triu(mgr.tensor_t(x), k).read(), np.triu(x, k))


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect", "symmetric"])
def test_pad(mgr, rng, mode):
    x = numbers(rng, (3, 4, 5))
    for given in (3, (1, 2), ((1, 0), (7, 9), (0, 11)), 0):
        expected = np.pad(x, given, mode)
        check(ops.pad(x, given if not isinstance(given, tuple) else list(given), mode), expected)
    check(ops.pad(mgr.tensor_t(x)[:, 1], 4, mode).read(), np.pad(x[:, 1], 4, mode))
    check(ops.pad(x[:1, :1, :1], 2, mode), np.pad(x[:1, :1, :1], 2, mode))


@pytest.mark.parametrize(
    "dtype, value", [("int32", -7), ("bool", 1), ("complex64", 2.5), ("float16", np.inf)]
)
def test_pad_with_a_number(rng, dtype, value):
    x = numbers(rng, (2, 3), dtype)
    check(ops.pad(x, 1, constant_values=value), np.pad(x, 1, constant_values=value))


def test_moveaxis_and_rot90(mgr, rng):
    x = numbers(rng, (2, 3, 4))
    for source, destination in ((0, -1), ([0, 1], [-1, -2]), ([2, 0], [0, 1])):
        check(ops.moveaxis(x, source, destination), np.moveaxis(x, source, destination))
    for k in range(-1, 5):
        check(ops.rot90(x, k), np.rot90(x, k))
        check(ops.rot90(mgr.tensor_t(x)[:, ::2], k, [2, 0]).read(), np.rot90(x[:, ::2], k, (2, 0)))
    check(ops.rot90(x[:0]), np.rot90(x[:0]))


VECTOR = np.ones(4, np.float32)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ops.put(VECTOR, np.array([1]), VECTOR, "all"), 'give "raise", "clip" or "wrap"'),
        (lambda: ops.put(VECTOR, np.array([1]), VECTOR[:0], "clip"), "values has no elements"),
        (lambda: ops.put(VECTOR[:0], np.array([1]), VECTOR, "clip"), "x has 0 elements"),
        (lambda: ops.put(VECTOR.astype("i4"), np.array([1]), VECTOR, "clip"), "kp.ops.astype"),
        (lambda: ops.take_along_axis(VECTOR, np.ones((2, 2), int), 0, "clip"), "may differ on axis 0 only"),
        (lambda: ops.put_along_axis(VECTOR, np.ones(2, int), VECTOR[:3], 0, "clip"), "give as many, or one"),
        (lambda: ops.scatter_add(VECTOR, np.ones(2, int), VECTOR, 0, "clip"), r"axis 0 it is \(2,\)"),
        (
            lambda: ops.scatter_add(VECTOR + 0j, np.ones(4, int), VECTOR, 0, "clip"),
            "it takes real numbers",
        ),
        (lambda: ops.tril(VECTOR), "a matrix has two axes"),
        (lambda: ops.pad(VECTOR, [1, 2, 3]), "two ints of 0 or more"),
        (lambda: ops.pad(VECTOR, -1), "two ints of 0 or more"),
        (lambda: ops.pad(VECTOR, 1, "linear"), "the modes are constant, edge"),
        (lambda: ops.pad(VECTOR[:0], 1, "edge"), "axis 0 of x has no elements"),
        (lambda: ops.pad(VECTOR.astype("u1"), 1, constant_values=np.nan), "give an int that it has"),
        (lambda: ops.moveaxis(np.ones((2, 3)), [0, 1], 0), "source has 2 axes and destination 1"),
        (lambda: ops.rot90(VECTOR), "axis is 1, and there are 1 axes"),
    ],
)
def test_refusals(call, words):
    with pytest.raises((kp.InvalidArgumentError, kp.UnimplementedError), match=words):
        call()
    with pytest.raises(kp.ArgumentTypeError, match="indices is of float32"):
        ops.put(VECTOR, VECTOR, VECTOR, "clip")


@pytest.mark.parametrize("dtype", ["f4", "i4", "f8", "u1", "?", "i8", "u8", "f2", "i2"])
@pytest.mark.parametrize("name, ufunc", [("max", np.maximum), ("min", np.minimum), ("mul", np.multiply)])
def test_scattered_and_combined(mgr, needs, rng, dtype, name, ufunc):
    if dtype in ("f8", "i8", "u8"):
        needs(mgr, "shaderInt64")
    if dtype == "f8":
        needs(mgr, "shaderFloat64")
    function = getattr(ops, f"scatter_{name}")
    places = np.int64 if "shaderInt64" in mgr.enabled_features else np.int32
    cases = (((3, 4, 5), 1, (2, 3)), ((7,), 0, (9,)), ((3, 4), -1, (6,)), ((2, 3), 0, ()))
    for shape, axis, lengths in cases if dtype == "f4" else cases[:1]:
        place = axis % len(shape)
        x = rng.integers(0, 4, shape).astype(dtype)
        indices = np.asarray(rng.integers(-shape[axis], shape[axis], lengths), places)
        values = np.asarray(rng.integers(0, 4, (*shape[:place], *lengths, *shape[place + 1 :])).astype(dtype))
        if dtype[0] == "f":
            values[rng.random(values.shape) < 0.1] = np.nan
        expected = np.moveaxis(x.copy(), axis, 0)
        along = range(place, place + len(lengths))
        ufunc.at(expected, indices, np.moveaxis(values, list(along), list(range(len(lengths)))))
        expected = np.moveaxis(expected, 0, axis)
        check(function(x, indices, values, axis), expected)
        t, theirs = mgr.tensor_t(x), mgr.tensor_t(values)
        operation = function.op(t, mgr.tensor_t(indices), theirs, axis, "wrap")
        mgr.sequence().record(operation).eval()
        check(operation.results[0].read(), expected)
        assert function(t, indices, theirs, axis, out=t) is t
        check(t.read(), expected)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "i2", "i4", "u1", "u2", "u4", "bfloat16"])
@pytest.mark.parametrize("name, ufunc", [("max", np.maximum), ("min", np.minimum)])
def test_the_greatest_and_least_of_all_numbers(mgr, rng, dtype, name, ufunc):
    """Many at one place, with infinities, NaN of both signs, the smallest and the largest ones."""
    if dtype == "bfloat16":
        kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    else:
        kind = np.dtype(dtype)
    bits = rng.integers(0, 1 << 8 * kind.itemsize, (2, 5000), f"u{kind.itemsize}").view(kind)
    if kind.kind in "fV":
        numbers = bits.astype(np.float32)
        subnormal = (numbers != 0) & (np.abs(numbers) < 2.0**-126)  # which devices may take for zeros
        bits[subnormal] = 1
        nan = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0], kind)
        bits[0, :5], bits[1, :5] = nan, nan[::-1]
    (x, values), indices = (bits[0, :600], bits[1]), rng.integers(0, 300, 5000).astype(np.int32)
    expected = x.copy()
    with np.errstate(invalid="ignore"):
        ufunc.at(expected, indices, values)
    function = getattr(ops, f"scatter_{name}")
    for found in (
        function(x, indices, values, 0),
        function(mgr.tensor_t(x), mgr.tensor_t(indices), mgr.tensor_t(values), 0, "clip").read(),
    ):
        assert found.dtype == kind
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    if kind.kind in "fV":
        assert np.isnan(expected.astype(np.float32)).any() and not np.isnan(expected.astype(np.float32)).all()


def test_values_are_converted_before_they_are_compared(mgr):
    x, values = np.int8([0, 0, 0]), np.int32([300, -300, 127])
    check(ops.scatter_max(x, np.int32([0, 1, 2]), values, 0), np.maximum(x, values.astype(np.int8)))
    check(
        ops.scatter_min(np.float16([0, 0]), np.int32([0, 1]), np.float32([-1e9, 1e9]), 0),
        np.float16([-np.inf, 0]),
    )


def test_scattered_without_elements_or_right_arguments(mgr):
    x = np.ones(3, np.float32)
    check(ops.scatter_max(x, np.zeros(0, np.int32), np.zeros(0, np.float32), 0), x)
    check(ops.scatter_mul(mgr.tensor_t(x)[::2], np.int32([0, 0]), x[:2] * 2, 0).read(), np.float32([4, 1]))
    for args, error, words in (
        ((x, np.int32([0, 3]), x[:2], 0), kp.OutOfRangeError, "index 3"),
        ((x, np.int32([0, 2]), x, 0), kp.InvalidArgumentError, "with x"),
        ((x, np.int32([0]), x[:1], 1), kp.InvalidArgumentError, "axis is 1"),
        ((x, x[:1], x[:1], 0), kp.ArgumentTypeError, "give ints"),
        ((x, np.int32([0]), x[:1].astype("F"), 0), kp.InvalidArgumentError, "convert them"),
        ((x.astype("F"), np.int32([0]), x[:1], 0), kp.UnimplementedError, "real numbers"),
    ):
        with pytest.raises(error, match=words):
            ops.scatter_min(*args)


def test_indices_that_broadcasting_made_longer_than_memory(mgr):
    """Nothing walks them."""
    x, huge = np.arange(4, dtype=np.float32), np.broadcast_to(np.int32(1), (2**40,))
    for call in (
        lambda: ops.take(x, huge),
        lambda: ops.take(x, np.broadcast_to(np.int32(-9), huge.shape)),
        lambda: ops.put(x, huge, x),
        lambda: ops.repeat(x, huge),
        lambda: ops.repeat(huge, huge),
        lambda: ops.sum(x, huge),
        lambda: ops.sort(np.broadcast_to(np.float32(1), (2**20, 2**20)), None),
        lambda: ops.unique(np.broadcast_to(np.float32(1), (2**20, 2**20))),
        lambda: ops.kron(np.zeros(2**20, np.float32), np.zeros(2**20, np.float32)),
    ):
        with pytest.raises((kp.InvalidArgumentError, kp.OutOfRangeError, kp.OutOfMemoryError)):
            call()
