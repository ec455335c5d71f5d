"""Filters along an axis, and convolutions, against NumPy in float64."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

EPS = 2.0**-24
PADS = {
    "reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant",
}  # fmt: skip
NAMES = ("correlate1d", "convolve1d", "uniform_filter1d", "gaussian_filter1d", "convolve", "correlate")


def numbers(shape, seed=0, dtype="float32"):
    x = np.random.default_rng(seed).normal(size=shape) * 20 + 5
    return (abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)


def filtered(x, weights, left, axis, mode, cval=0.0):
    """The sum, and that of absolute values."""
    x, weights = np.moveaxis(x.astype(np.float64), axis, -1), weights.astype(np.float64)
    more = {"constant_values": cval} if mode == "constant" else {}
    pads = [(0, 0)] * (x.ndim - 1) + [(left, len(weights) - 1 - left)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, pads, PADS[mode], **more), len(weights), -1)
    return np.moveaxis(windows @ weights, -1, axis), np.moveaxis(abs(windows) @ abs(weights), -1, axis)


@examples(40)
@given(data=st.data())
@pytest.mark.parametrize("mode", PADS)
def test_filters_of_any_shape(mode, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = numbers(shape, data.draw(st.integers(0, 99)))
    n = data.draw(st.integers(1, 25))
    weights = numbers(n, 3)
    cval = data.draw(st.sampled_from([0.0, -2.5]))
    for operation, want, some in (
        (kp.ops.correlate1d, *filtered(x, weights, n // 2, axis, mode, cval)),
        (kp.ops.convolve1d, *filtered(x, weights[::-1], (n - 1) // 2, axis, mode, cval)),
    ):
        got = operation(x, weights, axis, mode, cval)
        assert got.shape == shape and got.dtype == np.float32
        assert (abs(got - want) <= (n + 1) * EPS * some).all()
    want, some = filtered(x, np.full(n, 1 / n), n // 2, axis, mode, cval)
    assert (abs(kp.ops.uniform_filter1d(x, n, axis, mode, cval) - want) <= (n + 3) * EPS * some).all()


@pytest.mark.parametrize(("sigma", "truncate"), [(0.1, 4.0), (0.8, 4.0), (3.0, 2.5), (40.0, 4.0)])
def test_gaussian_filter(sigma, truncate):
    x = numbers((3, 211))
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    want, some = filtered(x, weights / weights.sum(), radius, 1, "mirror")
    got = kp.ops.gaussian_filter1d(x, sigma, mode="mirror", truncate=truncate)
    assert (abs(got - want) <= (1e-5 + 2 * len(weights) * EPS) * some).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool", "float16", ml_dtypes.bfloat16])
def test_small_dtypes(dtype):
    x, weights = numbers((20, 30), dtype=dtype), numbers(5, 1)
    want, some = filtered(x, weights, 2, 0, "reflect")
    got = kp.ops.correlate1d(x, weights, 0)
    assert got.dtype == (x.dtype if np.dtype(dtype).kind not in "biu" else np.float32)
    bound = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(x.dtype.name, 0) * abs(want)
    assert (abs(got.astype(np.float64) - want) <= 6 * EPS * some + bound).all()


def test_doubles(mgr, needs):
    needs(mgr, "shaderFloat64")
    x, weights = numbers((9, 8), dtype="float64"), numbers(4, 1, "float64")
    want, _ = filtered(x, weights, 2, 0, "constant", 0.1)
    np.testing.assert_allclose(kp.ops.correlate1d(x, weights, 0, "constant", 0.1), want, 1e-12, 1e-10)
    k = np.arange(-8, 9)
    w = np.exp(-0.5 * (k / 2.0) ** 2)
    want = filtered(x, w / w.sum(), 8, 1, "reflect")[0]
    np.testing.assert_allclose(kp.ops.gaussian_filter1d(x, 2.0), want, 1e-13, 1e-12)


@examples(60)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(["full", "same", "valid"]))
def test_convolve_and_correlate(n, m, mode):
    a, v = numbers(n), numbers(m, 1)
    some = (min(n, m) + 1) * EPS
    for ours, theirs in ((kp.ops.convolve, np.convolve), (kp.ops.correlate, np.correlate)):
        got, want = ours(a, v, mode), theirs(a.astype(np.float64), v.astype(np.float64), mode)
        assert got.dtype == np.float32 and got.shape == want.shape
        bound = theirs(abs(a).astype(np.float64), abs(v).astype(np.float64), mode)
        assert (abs(got - want) <= some * bound).all()
        a8, v8 = a.astype(np.int32), v.astype(np.int32)
        np.testing.assert_array_equal(ours(a8, v8, mode), theirs(a8, v8, mode))


LENGTHS = st.sampled_from([1, 31, 32, 33, 40, 255, 500, 513, 1100])


@examples(30)
@given(LENGTHS, LENGTHS, st.sampled_from(["full", "same", "valid"]))
def test_long_convolutions(n, m, mode):
    test_convolve_and_correlate.hypothesis.inner_test(n, m, mode)


@examples(12)
@given(data=st.data())
@pytest.mark.parametrize("mode", PADS)
def test_many_weights(mode, data):
    n, count = data.draw(st.sampled_from([5, 64, 131, 400])), data.draw(st.sampled_from([32, 33, 63, 120]))
    shape = data.draw(st.permutations([n, *data.draw(st.lists(st.integers(1, 3), max_size=2))]))
    axis = shape.index(n)
    x, weights = numbers(shape, n), numbers(count, 3)
    for operation, want, some in (
        (kp.ops.correlate1d, *filtered(x, weights, count // 2, axis, mode, 1.5)),
        (kp.ops.convolve1d, *filtered(x, weights[::-1], (count - 1) // 2, axis, mode, 1.5)),
    ):
        assert (abs(operation(x, weights, axis, mode, 1.5) - want) <= (count + 1) * EPS * some).all()
    want, some = filtered(x, np.full(count, 1 / count), count // 2, axis, mode)
    assert (abs(kp.ops.uniform_filter1d(x, count, axis, mode) - want) <= (count + 3) * EPS * some).all()


def test_more_weights_than_turns_beyond_the_ends():
    x, weights = numbers(40), numbers(2**15, 1)  # all loops of an invocation count together
    want, some = filtered(x, weights, 2**14, 0, "wrap")
    assert (abs(kp.ops.correlate1d(x, weights, mode="wrap") - want) <= 2**15 * EPS * some).all()


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_many_weights_of_small_dtypes(dtype):
    x = numbers((3, 301), 1, dtype)
    weights = numbers(50, 2)
    want, some = filtered(x, weights, 25, 1, "reflect")
    result = EPS if dtype == "uint8" else 2.0**-11
    got = kp.ops.correlate1d(x, weights, 1)
    assert (abs(got - want) <= (51 * EPS + result) * some).all()


def test_infinities_and_nan_stay_where_they_belong():
    a, v, ones = np.zeros(2000, np.float32), np.ones(700, np.float32), np.ones(2000, np.float32)
    a[[100, 1500]] = np.inf, np.nan
    want = np.zeros(2699, np.float32)
    want[100:800], want[1500:2200] = np.inf, np.nan
    np.testing.assert_array_equal(kp.ops.convolve(a, v), want)
    np.testing.assert_array_equal(kp.ops.convolve(v, a, "valid"), want[699:2000])
    np.testing.assert_array_equal(kp.ops.correlate1d(a, v, mode="constant"), want[349:2349])
    v[[0, -1]] = np.inf
    want = np.convolve(np.ones(2000), np.isinf(v)) > 0  # those with an infinite weight
    np.testing.assert_array_equal(np.isinf(kp.ops.convolve(ones, v)), want)
    assert not np.isnan(kp.ops.correlate(ones, v, "full")).any()


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint16", "int16"), ("float16", "float32")])
def test_dtypes_of_long_convolutions(dtypes):
    a, v = (numbers(n, n, dtype) for n, dtype in zip((900, 70), dtypes, strict=True))
    got, want = kp.ops.convolve(a, v), np.convolve(a, v)
    assert got.dtype == want.dtype
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-3)
    else:
        np.testing.assert_array_equal(got, want)


def test_more_weights_than_turns():
    a, v = np.arange(70_000) % 7, np.zeros(66_000, np.int32)  # all loops of an invocation count together
    v[::1000] = np.arange(66)
    a = a.astype(np.int32)
    got = kp.ops.convolve(a, v, "valid")
    want = sum(int(v[j]) * a[65_999 - j : 70_000 - j].astype(np.int64) for j in range(0, 66_000, 1000))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint16", "int16"), ("float16", "float32")])
def test_dtypes_of_convolutions(dtypes):
    a, v = numbers(30, 0, dtypes[0]), numbers(7, 1, dtypes[1])
    got, want = kp.ops.convolve(a, v), np.convolve(a, v)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, 1e-5)


def test_views_out_and_recorded(mgr):
    t = mgr.tensor_t(numbers((30, 20)))
    x, weights = t.read(), numbers(3, 1)
    for part, array in ((t[::2], x[::2]), (t[:, 3:7], x[:, 3:7]), (t[3], x[3])):
        np.testing.assert_allclose(
            kp.ops.correlate1d(part, weights).read(),
            filtered(array, weights, 1, -1, "reflect")[0],
            1e-4,
            1e-3,
        )
    np.testing.assert_allclose(kp.ops.convolve(t[:, 2], t[3]).read(), np.convolve(x[:, 2], x[3]), 1e-4, 1e-2)
    sequence = mgr.sequence()
    sequence.record(kp.ops.uniform_filter1d.op(t, 3, 0, out=t)).record(
        kp.ops.uniform_filter1d.op(t, 3, 1, out=t)
    )
    sequence.eval()
    want = filtered(filtered(x, np.full(3, 1 / 3), 1, 0, "reflect")[0], np.full(3, 1 / 3), 1, 1, "reflect")[0]
    np.testing.assert_allclose(t.read(), want, 1e-4, 1e-4)
    assert kp.ops.correlate1d(x[:0], weights).shape == (0, 20)
    assert kp.ops.convolve.meta(kp.TensorSpec(5), kp.TensorSpec(3)) == kp.TensorSpec(7)


def test_errors():
    x, weights = np.zeros((4, 5), np.float32), np.ones(3, np.float32)
    wrong = kp.errors.InvalidArgumentError
    for match, call in (
        ("axis is 2", lambda: kp.ops.correlate1d(x, weights, 2)),
        ("mode is 'edge'", lambda: kp.ops.correlate1d(x, weights, mode="edge")),
        ("give one axis", lambda: kp.ops.correlate1d(x, x)),
        ("the filter has 0", lambda: kp.ops.uniform_filter1d(x, 0)),
        ("sigma is nan", lambda: kp.ops.gaussian_filter1d(x, math.nan)),
        ("the filter has", lambda: kp.ops.gaussian_filter1d(x, 1e30)),
        ("and elements", lambda: kp.ops.convolve(weights, weights[:0])),
        ("as many axes", lambda: kp.ops.convolve(x, weights)),
        ("longer than a", lambda: kp.ops.correlate(x, np.ones((5, 5), np.float32), "valid")),
        ("fftconvolve", lambda: kp.ops.convolve(x, np.ones((200, 200), np.float32))),
        ("full, same or valid", lambda: kp.ops.correlate(weights, weights, "all")),
        ("give 1 to 262144", lambda: kp.ops.convolve(np.ones(300_000, np.int8), np.ones(300_000, np.int8))),
    ):
        with pytest.raises(wrong, match=match):
            call()
    with pytest.raises(kp.errors.ArgumentTypeError, match="16 bits"):
        kp.ops.correlate1d(x.astype(np.int32), weights)


def windows(a, left, sizes, mode, cval=0):
    """The windows of each element, over the last axes."""
    more = {"constant_values": cval} if mode == "constant" else {}
    pads = [(low, n - 1 - low) for low, n in zip(left, sizes, strict=True)]
    return np.lib.stride_tricks.sliding_window_view(np.pad(a, pads, PADS[mode], **more), sizes)


@examples(40)
@given(data=st.data())
def test_convolutions_of_several_axes(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7))
    sizes = tuple(data.draw(st.integers(1, 4)) for _ in shape)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(["int32", "int8", "float32"]))
    x, w = (rng.integers(-9, 9, size).astype(dtype) for size in (shape, sizes))
    turned = w[(slice(None, None, -1),) * w.ndim]
    axes = tuple(range(x.ndim, 2 * x.ndim))
    mode = data.draw(st.sampled_from(list(PADS)))
    cval = data.draw(st.sampled_from([0, 3]))
    for ours, weights, left in (
        (kp.ops.correlate, w, [n // 2 for n in sizes]),
        (kp.ops.convolve, turned, [(n - 1) // 2 for n in sizes]),
    ):
        found = ours(x, w, mode, cval)
        assert found.dtype == x.dtype and found.shape == x.shape
        want = (windows(x.astype(np.int64), left, sizes, mode, cval) * weights).sum(axes)
        np.testing.assert_array_equal(found, want.astype(dtype))
    if x.ndim == 1:
        return
    whole = np.pad(x.astype(np.int64), [(n - 1, n - 1) for n in sizes])
    for ours, weights in ((kp.ops.correlate, w), (kp.ops.convolve, turned)):
        full = (np.lib.stride_tricks.sliding_window_view(whole, sizes) * weights).sum(axes)
        same = full[tuple(slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in zip(shape, sizes, strict=True))]
        np.testing.assert_array_equal(ours(x, w, "full"), full.astype(dtype))
        np.testing.assert_array_equal(ours(x, w, "same"), same.astype(dtype))
        if all(m <= n for n, m in zip(shape, sizes, strict=True)):
            valid = full[tuple(slice(m - 1, n) for n, m in zip(shape, sizes, strict=True))]
            np.testing.assert_array_equal(ours(x, w, "valid"), valid.astype(dtype))
