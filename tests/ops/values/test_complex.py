"""The library with complex numbers of both precisions, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import ops
from tests.support.sampling import spread

pytestmark = pytest.mark.usefixtures("current")


@pytest.fixture(params=["complex64", "complex128"])
def dtype(request, mgr):
    if request.param == "complex128" and "shaderFloat64" not in mgr.enabled_features:
        for call in (ops.sum, ops.exp, ops.fft):
            with pytest.raises(kp.UnimplementedError, match=r"shaderFloat64|float64"):
                call(np.ones(4, complex))
        pytest.skip("the device has no float64")
    return np.dtype(request.param)


def numbers(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def near(found, expected, size=1.0, roundings=3200.0):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    allowed = roundings * np.finfo(found.dtype).eps / 2 * np.maximum(np.abs(expected), size)
    assert (np.abs(found - expected) <= allowed).all()


@pytest.mark.parametrize("variant", ["run", "shared"])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "cumsum"])
def test_sums(dtype, name, variant):
    x = numbers(dtype, 3, 5000)
    call = getattr(ops, name).variant(variant)
    size = np.abs(x).sum() if "sum" in name else 1
    near(call(x, axis=1), getattr(np, name)(x, axis=1), size / 3)
    near(call(x[:, ::50], axis=0), getattr(np, name)(x[:, ::50], axis=0))


def test_products_and_extremes(dtype):
    x = numbers(dtype, 3, 40)
    for name in ("prod", "cumprod"):
        near(getattr(ops, name)(x, axis=1), getattr(np, name)(x, axis=1))
    x[1, 7], x[2, 5] = complex(np.nan, 1), complex(2, np.nan)
    x.real[0, ::3] = x.real[0].max()  # the imaginary parts decide
    for ours, theirs in (
        (ops.min, np.min), (ops.max, np.max), (ops.any, np.any), (ops.count_nonzero, np.count_nonzero),
        (ops.cummax, np.maximum.accumulate), (ops.cummin, np.minimum.accumulate),
    ):  # fmt: skip
        np.testing.assert_array_equal(ours(x, axis=1), theirs(x, axis=1))


@pytest.mark.sampled
def test_places(dtype):
    """By real parts, then by imaginary ones; the first of equal ones, or the first NaN."""
    rng = np.random.default_rng(3)
    x = (rng.integers(-2, 3, (4, 3000)) + 1j * rng.integers(-9, 9, (4, 3000))).astype(dtype)
    y = x.copy()
    y[1, 7], y[1, 2000], y[2, 5] = complex(np.nan, 1), np.nan, complex(2, np.nan)
    for name in ("argmin", "argmax"):
        ours, theirs, numbers_only = (
            getattr(*each) for each in ((ops, name), (np, name), (ops, f"nan{name}"))
        )
        for variant, axis, each in spread([*itertools.product(("run", "shared"), (0, 1, None), (x, y))], 5):
            found = ours.variant(variant)(each, axis=axis)
            np.testing.assert_array_equal(found, theirs(each, axis=axis))
        np.testing.assert_array_equal(numbers_only(y, axis=1), getattr(np, f"nan{name}")(y, axis=1))
        assert ours(x[0, :0:-3]) == theirs(x[0, :0:-3])


def test_moments(dtype):
    """Of complex numbers they are real."""
    x = numbers(dtype, 4, 300) + np.array(5 - 3j, dtype)
    near(ops.var(x, axis=0, ddof=1), np.var(x, axis=0, ddof=1))
    near(ops.std(x, keepdims=True), np.std(x, keepdims=True))
    near(ops.var(x.real.copy(), dtype=dtype), np.var(x.real))  # distances are real, too
    assert np.isnan(ops.var(x[:0]))
    for order in (2, 1, np.inf, -np.inf, 0):
        near(ops.norm(x, order, axis=1), np.linalg.norm(x, order, axis=1).astype(x.real.dtype))
    near(ops.matrix_norm(x, 1), np.linalg.norm(x, 1))
    weights = np.arange(300).astype(x.real.dtype)
    near(ops.average(x, 1, weights), np.average(x, 1, weights))


def test_without_nan(dtype):
    x = numbers(dtype, 4, 50)
    x[0, 3], x[1, ::7], x[2, 5] = complex(np.nan, 1), complex(1, np.nan), np.nan
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nancumsum", "nanmax"):
        near(getattr(ops, name)(x, axis=1), getattr(np, name)(x, axis=1), 8)


def test_products_of_arrays(dtype):
    a, b = numbers(dtype, 6, 30), numbers(dtype, 6, 30, seed=1)
    near(ops.dot(a[0], b[0]), np.dot(a[0], b[0]))
    near(ops.vdot(a, b), np.vdot(a, b), 30)
    near(ops.matmul(a, b, transpose_b=True), a @ b.T)
    near(ops.inner(a, b), np.inner(a, b))
    near(ops.outer(a[0], b[0]), np.outer(a[0], b[0]))
    for text in ("ij,ij->i", "ij,kj->ikj", "ij,kj->ik"):
        near(ops.einsum(text, a, b), np.einsum(text, a, b), 30)
    near(ops.einsum("ij->j", a), a.sum(0))
    near(ops.trace(a), np.trace(a))
    near(ops.kron(a[:2, :3], b[:, :2]), np.kron(a[:2, :3], b[:, :2]))
    near(ops.matmul(a, b.real.T.copy()), a @ b.real.T)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(dtype, name):
    """A correlation conjugates the second one, as NumPy's."""
    ours, theirs = getattr(ops, name), getattr(np, name)
    for n, m in ((50, 7), (7, 50), (600, 90)):
        a, v = numbers(dtype, n), numbers(dtype, m, seed=1)
        for mode in ("full", "same", "valid"):
            near(ours(a, v, mode), theirs(a, v, mode), 8)
        near(ours(a.real.copy(), v), theirs(a.real, v), 8)
        near(ours(a, np.arange(m, dtype=np.int16)), theirs(a, np.arange(m, dtype=np.int16)), 100)
    ndimage = pytest.importorskip("scipy.ndimage")
    a, v = numbers(dtype, 9, 11), numbers(dtype, 3, 2, seed=1)
    for mode in ("reflect", "constant"):
        near(ours(a, v, mode, 2.0), getattr(ndimage, name)(a, v, mode=mode, cval=2.0).astype(dtype), 8)


def test_what_a_transform_gives_is_computed_further(dtype):
    """A filter in the frequencies, without leaving the device."""
    x = numbers(dtype, 4, 64).real.copy()
    spectrum = ops.fft(x)
    assert spectrum.dtype == dtype
    damped = ops.multiply(spectrum, ops.exp(ops.multiply(ops.absolute(spectrum), -0.1j)))
    kept = ops.where(ops.less(ops.absolute(spectrum), 12.0), damped, 0.0)
    f = np.fft.fft(x)
    expected = np.where(np.abs(f) < 12, f * np.exp(-0.1j * np.abs(f)), 0)
    near(kept, expected.astype(dtype), 12)
    near(ops.real(ops.ifft(kept)), np.fft.ifft(expected).real.astype(x.dtype))
    power = ops.sum(ops.multiply(spectrum, ops.conjugate(spectrum)), axis=1)
    near(ops.real(power), (np.abs(f) ** 2).sum(1).astype(x.dtype))
    near(ops.angle(spectrum), np.angle(f).astype(x.dtype), 1)
    near(ops.diff(spectrum), np.diff(f).astype(dtype), 12)
