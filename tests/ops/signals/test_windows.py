"""Filters of several axes, against NumPy's windows."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.ops.signals.test_filters import EPS, PADS, filtered, numbers, windows
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops


def normal(sigma, truncate=4.0):
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return weights / weights.sum()


def passed(x, passes, mode, cval=0.0):
    """Filters along axes, (axis, weights, left) each, one after the other, and the sum of absolute values."""
    some = abs(x.astype(np.float64)) + abs(cval)
    for axis, weights, left in passes:
        x, _ = filtered(x, weights, left, axis, mode, cval)
        _, some = filtered(some, weights, left, axis, mode, abs(cval))
    return x, some


@examples(25)
@given(data=st.data())
@pytest.mark.parametrize("mode", PADS)
def test_weighted_windows(mode, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
    x = numbers(shape, data.draw(st.integers(0, 99)))
    cval = data.draw(st.sampled_from([0.0, -2.5])) if mode == "constant" else 0.0
    sizes = [data.draw(st.integers(1, 6)) for _ in shape]
    sigmas = [data.draw(st.sampled_from([0.0, 0.6, 1.5])) for _ in shape]
    axis = data.draw(st.integers(0, len(shape) - 1))
    step, steep = np.array([-1.0, 0, 1]), np.array([1.0, 2, 1])
    others = [n for n in range(len(shape)) if n != axis]
    for got, passes in (
        (
            ops.uniform_filter(x, sizes, mode, cval),
            [(a, np.full(n, 1 / n), n // 2) for a, n in enumerate(sizes)],
        ),
        (
            ops.gaussian_filter(x, sigmas, mode, cval, truncate=3.0),
            [(a, normal(s, 3.0), len(normal(s, 3.0)) // 2) for a, s in enumerate(sigmas) if s],
        ),
        (ops.gaussian_filter(x, 1.2, mode, cval, axes=[axis]), [(axis, normal(1.2), 5)]),
        (ops.uniform_filter(x, 3, mode, cval, axes=(-1,)), [(-1, np.full(3, 1 / 3), 1)]),
        (ops.sobel(x, axis, mode, cval), [(axis, step, 1), *((n, steep, 1) for n in others)]),
        (ops.prewitt(x, axis, mode, cval), [(axis, step, 1), *((n, np.ones(3), 1) for n in others)]),
    ):
        want, some = passed(x, passes, mode, cval)
        assert got.shape == shape and got.dtype == np.float32
        assert (abs(got - want) <= (1e-5 * len(passes) + 40 * EPS) * some).all()


@examples(25)
@given(data=st.data())
@pytest.mark.parametrize("mode", PADS)
def test_ranks_of_windows(mode, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
    dtype = data.draw(st.sampled_from(["float32", "int32", "uint8", "int16", "bool"]))
    x = numbers(shape, data.draw(st.integers(0, 99)), dtype)
    cval = 1 if mode == "constant" else 0
    sizes = tuple(data.draw(st.integers(1, 7)) for _ in shape)
    rank = data.draw(st.integers(-np.prod(sizes), np.prod(sizes) - 1))
    seen = windows(x, [n // 2 for n in sizes], sizes, mode, cval).reshape(*shape, -1)
    ordered = np.sort(seen, axis=-1)
    for got, want in (
        (ops.minimum_filter(x, sizes, mode, cval), ordered[..., 0]),
        (ops.maximum_filter(x, list(sizes), mode, cval), ordered[..., -1]),
        (ops.median_filter(x, sizes, mode, cval), ordered[..., ordered.shape[-1] // 2]),
        (ops.rank_filter(x, int(rank), sizes, mode, cval), ordered[..., rank]),
    ):
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("sigma", [0.8, 2.5])
def test_derivatives_of_smoothed(order, sigma):
    x = numbers((21, 30))
    radius = int(4 * sigma + 0.5)
    d = np.arange(-radius, radius + 1) / sigma
    weights = normal(sigma) * np.polynomial.hermite_e.hermeval(d, [0] * order + [1]) / sigma**order
    want, some = filtered(x, weights, radius, 1, "mirror")
    got = ops.gaussian_filter1d(x, sigma, 1, "mirror", order=order)
    assert (abs(got - want) <= (1e-5 + 2 * len(weights) * EPS) * some).all()
    got = ops.gaussian_filter(x, [0, sigma], "mirror", order=[4, order])
    assert (abs(got - want) <= (1e-5 + 2 * len(weights) * EPS) * some).all()
    got = ops.gaussian_filter(x, sigma, "mirror", axes=[1], order=order)
    assert (abs(got - want) <= (1e-5 + 2 * len(weights) * EPS) * some).all()
    want, some = passed(x, [(0, normal(0.8), 3), (1, weights, radius)], "wrap")
    got = ops.gaussian_filter(x, [sigma, 0.8], "wrap", axes=[1, 0], order=[order, 0])
    assert (abs(got - want) <= (2e-5 + 4 * len(weights) * EPS) * some).all()
    with pytest.raises(kp.InvalidArgumentError, match="order is 11; give 0 to 10"):
        ops.gaussian_filter(x, sigma, order=11)


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("mode", PADS)
def test_long_windows(mode, data):
    """They are put together from blocks; infinities and NaN stay in the windows that have them."""
    n, size = data.draw(st.sampled_from([150, 600])), data.draw(st.sampled_from([32, 47, 255, 256, 300, 561]))
    shape = data.draw(st.permutations([n, *data.draw(st.lists(st.integers(1, 3), max_size=2))]))
    axis, dtype = shape.index(n), data.draw(st.sampled_from(["float32", "int16", "uint8", "bool", "float16"]))
    x, cval = numbers(shape, n, dtype), 1.0 if mode == "constant" else 0.0
    whole, left = [size if a == axis else 1 for a in range(x.ndim)], [0] * x.ndim
    left[axis] = size // 2
    seen = windows(x, left, whole, mode, cval).reshape(*shape, -1)
    np.testing.assert_array_equal(ops.maximum_filter(x, size, mode, cval, axes=axis), seen.max(-1))
    np.testing.assert_array_equal(ops.minimum_filter(x, whole, mode, cval), seen.min(-1))
    want, some = seen.mean(-1, np.float64), abs(seen.astype(np.float64)).mean(-1)
    got = ops.uniform_filter1d(x, size, axis, mode, cval)
    last = 2.0**-11 if dtype == "float16" else 0  # of the result
    assert (abs(got - want) <= (60 * EPS + last) * some).all()  # 16 roundings a size of block, and the rest
    if x.dtype.kind == "f":
        x.flat[0], x.flat[x.size // 2], x.flat[-1] = np.inf, np.nan, -np.inf
        seen = windows(x, left, whole, mode, cval).reshape(*shape, -1)
        np.testing.assert_array_equal(ops.maximum_filter(x, whole, mode, cval), seen.max(-1))
        with np.errstate(invalid="ignore"):
            want = seen.sum(-1, np.float64)
        got = ops.uniform_filter(x, whole, mode, cval)
        np.testing.assert_array_equal(
            np.where(np.isfinite(got), 0, got), np.where(np.isfinite(want), 0, want)
        )


def test_long_windows_of_several_axes(mgr, needs):
    x = numbers((70, 90))
    want, some = passed(x, [(0, np.full(40, 1 / 40), 20), (1, np.full(35, 1 / 35), 17)], "mirror")
    assert (abs(ops.uniform_filter(x, (40, 35), "mirror") - want) <= 100 * EPS * some).all()
    seen = windows(x, [20, 17], [40, 35], "mirror").reshape(*x.shape, -1)
    np.testing.assert_array_equal(ops.maximum_filter(x, (40, 35), "mirror"), seen.max(-1))
    wide = numbers((2, 5))  # so much longer than the axis that it is walked through
    want, some = filtered(wide, np.full(30_001, 1 / 30_001), 15_000, 1, "reflect")
    assert (abs(ops.uniform_filter1d(wide, 30_001) - want) <= 30_004 * EPS * some).all()
    assert ops.uniform_filter1d(np.zeros((3, 0), np.float32), 99).shape == (3, 0)
    needs(mgr, "shaderFloat64")
    double = x.astype(np.float64)
    want, some = passed(double, [(1, np.full(80, 1 / 80), 40)], "wrap")
    assert (abs(ops.uniform_filter1d(double, 80, mode="wrap") - want) <= 1e-13 * some).all()


@pytest.mark.parametrize("function", [ops.uniform_filter1d, ops.maximum_filter])
def test_the_time_of_long_windows_hardly_grows(mgr, function):
    x = mgr.tensor_t(numbers(2**16))

    def least(size):
        times = []
        for _ in range(4):
            start = time.perf_counter()
            function(x, size)
            times.append(time.perf_counter() - start)
        return min(times[1:])

    assert least(30_001) < 30 * least(101)  # 297 times the elements


@pytest.mark.parametrize("size", [5, 7, 17])
def test_ways_to_find_a_rank(size):
    """Sorted, from keys that it holds, from elements that it loads for each bit."""
    x = numbers((19, 23))
    x[3, 4], x[5, 5], x[6, 6], x[7, 7] = np.inf, -np.inf, 0.0, -0.0
    seen = windows(x, [size // 2] * 2, (size, size), "wrap").reshape(*x.shape, -1)
    want = np.sort(seen, axis=-1)[..., size * size // 2]
    np.testing.assert_array_equal(ops.median_filter(x, size, "wrap"), want)
    x[9, 9] = np.nan
    assert np.isnan(ops.rank_filter(x, -1, size)[9, 9]) and not np.isnan(ops.median_filter(x, size)).any()
    assert np.isnan(ops.minimum_filter(x, size)[9, 9]) and np.isnan(ops.maximum_filter(x, size)[9, 9])


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_wide_dtypes(mgr, needs, dtype):
    needs(mgr, "shaderInt64")
    needs(mgr, "shaderFloat64")
    x = np.random.default_rng(0).integers(0, 2**60, (9, 8)).astype(dtype)
    for size in (3, 6):
        seen = np.sort(windows(x, [size // 2] * 2, (size, size), "nearest").reshape(9, 8, -1))
        np.testing.assert_array_equal(ops.minimum_filter(x, size, "nearest"), seen[..., 0])
        np.testing.assert_array_equal(ops.maximum_filter(x, size, "nearest"), seen[..., -1])
        np.testing.assert_array_equal(ops.median_filter(x, size, "nearest"), seen[..., size * size // 2])
    if dtype == "float64":
        x /= 2**60
        want, _ = passed(x, [(0, normal(1.5), 6), (1, normal(1.5), 6)], "mirror")
        np.testing.assert_allclose(ops.gaussian_filter(x, 1.5, "mirror"), want, 1e-13)
        np.testing.assert_allclose(
            ops.sobel(x),
            passed(x, [(1, np.array([-1.0, 0, 1]), 1), (0, np.array([1.0, 2, 1]), 1)], "reflect")[0],
        )


def test_small_dtypes():
    x = numbers((12, 9), dtype="float16")
    want, _ = passed(x, [(0, normal(1.0), 4), (1, normal(1.0), 4)], "reflect")
    got = ops.gaussian_filter(x, 1.0)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float64), want, 2.0**-10, 1e-3)
    assert ops.median_filter(x, 3).dtype == np.float16
    for dtype in ("uint8", "bool"):
        x = numbers((12, 9), dtype=dtype)
        got = ops.uniform_filter(x)
        want, _ = passed(x, [(0, np.full(3, 1 / 3), 1), (1, np.full(3, 1 / 3), 1)], "reflect")
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, 1e-5)


def test_views_images_and_recorded(mgr):
    t = mgr.tensor_t(numbers((30, 20)))
    x = t.read()
    seen = windows(x[::2, 3:9], [1, 1], (3, 3), "reflect").reshape(15, 6, -1)
    np.testing.assert_array_equal(ops.median_filter(t[::2, 3:9], 3).read(), np.median(seen, axis=-1))
    want, _ = passed(x, [(0, normal(2.0), 8), (1, normal(2.0), 8)], "reflect")
    out = mgr.zeros((30, 20))
    sequence = mgr.sequence().record(ops.gaussian_filter.op(t, 2.0, out=out))
    sequence.record(ops.maximum_filter.op(out, 3, out=out)).eval()
    highest = windows(want, [1, 1], (3, 3), "reflect").max(axis=(2, 3))
    np.testing.assert_allclose(out.read(), highest, 1e-4, 1e-4)
    misses = ops.gaussian_filter.cache_info().misses
    for sigma in (0.5, 1.0, 7.5):
        ops.gaussian_filter(t, sigma)
    assert ops.gaussian_filter.cache_info().misses == misses  # one kernel for all deviations
    pixels = np.random.default_rng(0).integers(0, 255, (16, 12, 4), dtype=np.uint8)
    image = mgr.image_t(pixels)
    lowest = ops.minimum_filter(image, 3, axes=(0, 1))
    assert type(lowest) is type(image)
    want = windows(pixels, [1, 1, 0], (3, 3, 1), "reflect").min(axis=(3, 4, 5))
    np.testing.assert_array_equal(lowest.read(), want)
    assert ops.sobel(x[:0]).shape == (0, 20)
    assert ops.median_filter.meta(kp.TensorSpec((5, 6)), 3) == kp.TensorSpec((5, 6))


def test_errors():
    x = np.zeros((4, 5), np.float32)
    wrong = kp.errors.InvalidArgumentError
    for match, call in (
        ("size has 3 numbers for 2 axes", lambda: ops.uniform_filter(x, (3, 3, 3))),
        ("the filter has 0", lambda: ops.minimum_filter(x, 0)),
        ("size is missing", lambda: ops.median_filter(x, None)),
        ("size has -1", lambda: ops.median_filter(x, (3, -1))),
        ("the window has 10000 elements; the most", lambda: ops.median_filter(x, 100)),
        ("sigma is -1", lambda: ops.gaussian_filter(x, -1.0)),
        ("sigma is nan", lambda: ops.gaussian_filter(x, (np.nan, 1.0))),
        ("the filter has", lambda: ops.gaussian_filter(x, 1e30)),
        ("axis is 2", lambda: ops.sobel(x, 2)),
        ("axis is 7", lambda: ops.uniform_filter(x, 3, axes=(0, 7))),
        ("mode is 'edge'", lambda: ops.maximum_filter(x, 3, "edge")),
        ("cval is 300", lambda: ops.minimum_filter(x.astype(np.uint8), 3, "constant", 300)),
        ("rank is 9", lambda: ops.rank_filter(x, 9, 3)),
    ):
        with pytest.raises(wrong, match=match):
            call()
    with pytest.raises(kp.errors.ArgumentTypeError, match="16 bits"):
        ops.gaussian_filter(x.astype(np.int32), 1.0)
    with pytest.raises(kp.errors.ArgumentTypeError, match="complex"):
        ops.minimum_filter(x.astype(np.complex64), 3)
