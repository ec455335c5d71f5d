"""Matrix products, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")


@kp.CustomOp.register
class matmul_in_tiles(kp.ops.matmul.__wrapped__):
    """The variant for GPUs, on processors, too."""

    def variants(self, ksel):
        return ["tile"]


WAYS = {"run": kp.ops.matmul, "tile": matmul_in_tiles}
WIDE = {"int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64"}


def numbers(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.2
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def check(got, a, b):
    """The documented error; ints and bools exactly."""
    got, expected = np.asarray(got), np.matmul(a, b)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    exact = np.matmul(a.astype(wide), b.astype(wide))
    most = np.matmul(np.abs(a.astype(wide)), np.abs(b.astype(wide)))
    result = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-53}.get(got.dtype.name, 2.0**-24)
    summed = 2.0**-53 if got.dtype == np.float64 else 2.0**-24
    terms = a.shape[-1] * (4 if wide is np.complex128 else 1)
    assert (np.abs(got.astype(wide) - exact) <= (terms + 1) * summed * most + result * np.abs(exact)).all()


@examples(25)
@given(data=st.data())
@pytest.mark.parametrize("way", WAYS)
def test_any_shapes(way, data):
    rows, n, columns = (data.draw(st.sampled_from([0, 1, 2, 7, 17, 64, 67])) for _ in range(3))
    batch = data.draw(st.sampled_from([((), ()), ((3,), (3,)), ((), (2, 3)), ((2, 1), (3,)), ((0,), (1,))]))
    a, b = numbers("float32", (*batch[0], rows, n)), numbers("float32", (*batch[1], n, columns), 1)
    given, named = [a, b], {}
    if data.draw(st.booleans()):
        given[0], named["transpose_a"] = np.swapaxes(a, -1, -2).copy(), True
    if data.draw(st.booleans()):
        given[1], named["transpose_b"] = np.swapaxes(b, -1, -2).copy(), True
    check(WAYS[way](*given, **named), a, b)


@pytest.mark.parametrize("way", WAYS)
def test_vectors_are_rows_and_columns(way):
    v, m, many = numbers("float32", 33), numbers("float32", (33, 5), 1), numbers("float32", (2, 3, 33, 4), 2)
    for a, b in ((v, v), (v, m), (m.T.copy(), v), (v, many), (np.swapaxes(many, -1, -2).copy(), v)):
        check(WAYS[way](a, b), a, b)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint32", "float16", "complex64", *WIDE])
@pytest.mark.parametrize("way", WAYS)
def test_dtypes(mgr, needs, way, dtype):
    if dtype in WIDE:
        needs(mgr, WIDE[dtype])
    a, b = numbers(dtype, (20, 37)), numbers(dtype, (37, 21), 1)
    check(WAYS[way](a, b), a, b)


def test_bfloat16_is_summed_in_float32():
    a, b = numbers(ml_dtypes.bfloat16, (9, 300)), numbers(ml_dtypes.bfloat16, (300, 8), 1)
    got = kp.ops.matmul(a, b, dtype="float32")
    assert got.dtype == np.float32
    check(got, a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(kp.ops.matmul(a, b), got.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_are_summed_with_32_bits(dtype):
    a, b = numbers(dtype, (5, 90)), numbers(dtype, (90, 6), 1)
    got = kp.ops.matmul(a, b, dtype="int32")
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32))


def test_mixed_dtypes_take_that_of_numpy():
    a, b = numbers("int16", (3, 4)), numbers("float32", (4, 5))
    check(kp.ops.matmul(a, b), a.astype(np.float32), b)


THIN = [
    ((1024,), (1024,)), ((8195,), (8195,)), ((40_009,), (40_009,)), ((4, 8200), (8200, 4)),
    ((2, 8200), (8200, 7)), ((3, 5000), (5000, 3)), ((1, 3000), (3000, 130)), ((70, 3000), (3000,)),
    ((9, 900), (900, 9)), ((2, 3, 2000), (2, 2000, 2)), ((4, 1, 2000), (2000, 1)),
    ((100, 1, 64), (100, 64, 1)),
]  # fmt: skip
"""Few rows or columns, and sums of 1,023 products and more."""


@pytest.mark.parametrize(("left", "right"), THIN, ids=str)
def test_thin_products(left, right):
    for dtype in ("float32", "int32"):
        a, b = numbers(dtype, left), numbers(dtype, right, 1)
        for product in WAYS.values():
            check(product(a, b), a, b)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64"])
def test_long_sums_of_dtypes(dtype):
    a, b = numbers(dtype, (2, 9001)), numbers(dtype, (9001, 2), 1)
    check(kp.ops.matmul(a, b), a, b)


def test_long_sums_are_the_same_each_time(mgr):
    a, b = (mgr.tensor_t(numbers("float32", 100_000, seed)) for seed in range(2))
    assert len({kp.ops.matmul(a, b).read().tobytes() for _ in range(5)}) == 1


def test_long_sums_of_parts_of_tensors(mgr):
    t = mgr.tensor_t(numbers("float32", (5000, 3)))
    x = t.read()
    check(kp.ops.matmul(t[:, 1], t[:, 2]).read(), x[:, 1], x[:, 2])
    check(kp.ops.matmul(t[1::2], t[::2], transpose_a=True).read(), x[1::2].T, x[::2])


@pytest.mark.parametrize("way", WAYS)
def test_sums_of_several_parts(way):
    a, b = numbers("float32", (3, 40_009)), numbers("float32", (40_009, 2), 1)
    check(WAYS[way](a, b), a, b)
    check(WAYS[way](b.T.copy(), a, transpose_b=True), b.T, a.T)


@pytest.mark.parametrize("way", WAYS)
def test_parts_of_tensors(mgr, way):
    x, y = numbers("float32", (40, 30)), numbers("float32", (40, 60), 1)
    s, t = mgr.tensor_t(x), mgr.tensor_t(y)
    for a, b, transposed in (
        (np.s_[::2, :], np.s_[10:40, ::3], False),
        (np.s_[:, ::-1], np.s_[::-1, 5:25], True),
        (np.s_[3:7, 4:9], np.s_[5:10, 7:8], False),
    ):
        left, right = x[a], y[b]
        if transposed:
            check(WAYS[way](s[a], t[b], transpose_a=True), left.T, right)
        else:
            check(WAYS[way](s[a], t[b]), left, right)
    check(WAYS[way](s[:, 3], t), x[:, 3], y)


def test_recorded_and_into_given_memory(mgr):
    a, b = mgr.tensor_t(numbers("float32", (17, 19))), mgr.tensor_t(numbers("float32", (19, 23), 1))
    out = mgr.empty((17, 23))
    assert kp.ops.matmul(a, b, out=out) is out
    check(out.read(), a.read(), b.read())
    out.fill(0)
    mgr.sequence().record(kp.ops.matmul.op(a, b, out=out)).eval()
    check(out.read(), a.read(), b.read())
    square = mgr.tensor_t(numbers("float32", (9, 9), 2))
    before = square.read().copy()
    kp.ops.matmul(square, square, out=square)
    check(square.read(), before, before)
    assert kp.ops.matmul.meta(kp.TensorSpec((2, 3)), kp.TensorSpec((3, 4))) == kp.TensorSpec((2, 4))


def test_staging(make_manager):
    with make_manager(force_staging=True):
        for dtype in ("float32", "int8"):
            a, b = numbers(dtype, (3, 31, 7)), numbers(dtype, (7, 13), 1)
            check(kp.ops.matmul(a, b), a, b)


def test_wrong_calls(mgr):
    a, b = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="3 columns and 2 rows"):
        kp.ops.matmul(a, b)
    with pytest.raises(kp.InvalidArgumentError, match="b is a scalar"):
        kp.ops.matmul(a, np.float32(2).reshape(()))
    with pytest.raises(kp.InvalidArgumentError, match="transpose_b exchanges two"):
        kp.ops.matmul(a, a[0].copy(), transpose_b=True)
    with pytest.raises(kp.InvalidArgumentError, match="do not broadcast"):
        kp.ops.matmul(np.zeros((2, 3, 3), np.float32), np.zeros((4, 3, 3), np.float32))
    with pytest.raises(kp.ArgumentTypeError, match="dtype is 'number'"):
        kp.ops.matmul(a, b, transpose_a=True, dtype="number")
    for dtype in ("int32", "float16"):
        with pytest.raises(kp.InvalidArgumentError, match="dtype is"):
            kp.ops.matmul(a, b, transpose_a=True, dtype=dtype)
    if "shaderFloat64" not in mgr.enabled_features:
        with pytest.raises(kp.UnimplementedError, match="shaderFloat64"):
            kp.ops.matmul(a.astype(np.float64), b.astype(np.float64), transpose_a=True)
