"""Other lengths of axes, against the definition and Pillow; YCbCr, against Pillow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops


def resized(x, shape, method):
    """The definition, in float64."""
    found = x if method == "nearest" else x.astype(np.float64)
    for axis, m in enumerate(shape):
        n = found.shape[axis]
        lines = np.moveaxis(found, axis, 0)
        out = np.zeros((m, *lines.shape[1:]), found.dtype)
        for d in range(m):
            if method == "nearest":
                out[d] = lines[(2 * d + 1) * n // (2 * m)]
            elif method == "linear":
                place = min(max((d + 0.5) * n / m - 0.5, 0), n - 1)
                k = math.floor(place)
                out[d] = lines[k] * (k + 1 - place) + lines[min(k + 1, n - 1)] * (place - k)
            else:
                low, high = d * n, (d + 1) * n  # in parts of m
                weights = [max(0, min(high, k * m + m) - max(low, k * m)) for k in range(n)]
                out[d] = np.tensordot(np.array(weights) / n, lines, 1)
        found = np.moveaxis(out, 0, axis)
    return found


SHAPES = [((5, 7, 3), (10, 3, 3)), ((8, 8), (3, 13)), ((1, 5), (4, 1)), ((6,), (6,)), ((4, 5, 6), (2, 9, 3))]


@pytest.mark.parametrize("method", ["nearest", "linear", "area"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int16])
def test_by_definition(mgr, method, dtype):
    rng = np.random.default_rng(1)
    for shape, wanted in SHAPES:
        x = rng.integers(0, 200, shape).astype(dtype)
        got, expected = ops.resize(x, wanted, method), resized(x, wanted, method)
        assert got.dtype == dtype and got.shape == wanted
        atol = 0 if method == "nearest" else 1e-3 if dtype == np.float32 else 0.5001
        np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=0, atol=atol)
        t = mgr.tensor_t(np.repeat(x, 2, 0))
        np.testing.assert_array_equal(ops.resize(t[::2], wanted, method).read(), got)


def test_other_dtypes_by_nearest():
    for dtype in (np.bool_, np.int32, np.complex64, np.float16):
        x = np.random.default_rng(2).integers(0, 2, (4, 6)).astype(dtype)
        np.testing.assert_array_equal(ops.resize(x, (6, 4), "nearest"), resized(x, (6, 4), "nearest"))


def test_infinities_stay_where_they_are():
    x = np.array([1, np.inf, 2, 3], np.float32)
    np.testing.assert_array_equal(ops.resize(x, 4, "linear"), x)
    assert ops.resize(x, 8, "linear").tolist()[:1] == [1] and ops.resize(x, 2, "area").tolist() == [
        np.inf,
        2.5,
    ]
    big = np.array([3e38, 3e38], np.float32)
    for method in ("linear", "area"):
        np.testing.assert_allclose(ops.resize(big, 5, method), 3e38, rtol=1e-6)
        np.testing.assert_allclose(ops.resize(big, 1, method), 3e38, rtol=1e-6)


def test_against_pillow():
    Image = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(3).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    for size, method, theirs, most in (
        ((20, 30), "area", Image.Resampling.BOX, 1),
        ((17, 91), "nearest", Image.Resampling.NEAREST, 0),
        ((80, 120), "linear", Image.Resampling.BILINEAR, 1),
    ):
        got = ops.resize(picture, (*size, 3), method).astype(int)
        expected = np.asarray(Image.fromarray(picture).resize(size[::-1], theirs))
        assert np.abs(got - expected).max() <= most
    got = ops.rgb_to_ycbcr(picture)
    expected = np.asarray(Image.fromarray(picture).convert("YCbCr"))
    assert np.abs(got.astype(int) - expected).max() <= 1
    back = np.asarray(Image.fromarray(expected, "YCbCr").convert("RGB"))
    assert np.abs(ops.ycbcr_to_rgb(expected.copy()).astype(int) - back).max() <= 1


def test_ycbcr_of_floats(mgr):
    x = np.random.default_rng(4).random((50, 4), np.float32)
    exact = x.astype(np.float64)
    y = exact[:, :3] @ [0.299, 0.587, 0.114]
    expected = np.stack(
        [y, 0.5 + (exact[:, 2] - y) / 1.772, 0.5 + (exact[:, 0] - y) / 1.402, exact[:, 3]], -1
    )
    got = ops.rgb_to_ycbcr(mgr.tensor_t(x))
    np.testing.assert_allclose(got.read(), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ops.ycbcr_to_rgb(got).read(), x, rtol=0, atol=2e-6)


PICTURE = np.zeros((4, 6, 3), np.float32)


@pytest.mark.parametrize(
    "x, shape, method, words",
    [
        (PICTURE, (2, 2), "linear", "give a length of 1 or more for each axis"),
        (PICTURE, (0, 2, 3), "linear", "give a length of 1 or more for each axis"),
        (PICTURE[:0], (1, 2, 3), "linear", "an x with elements"),
        (PICTURE, (2, 2, 3), "cubic", "the methods are nearest, linear, area"),
        (PICTURE > 0, (2, 2, 3), "area", "'area' takes floats and ints of up to 16 bits"),
        (PICTURE.astype(np.int32), (2, 2, 3), "linear", "'linear' takes floats and ints of up to 16 bits"),
        (np.zeros(2**15 + 1, np.float32), 1, "area", "resize it in several steps"),
        (np.zeros(2**16, np.float32), 2**15, "linear", "resize it in several steps"),
    ],
)
def test_refusals(x, shape, method, words):
    with pytest.raises((kp.InvalidArgumentError, kp.UnimplementedError), match=words):
        ops.resize(x, shape, method)
