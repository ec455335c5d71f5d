"""Reductions and scans that leave NaN out, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = [
    pytest.mark.usefixtures("current"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

ops = kp.ops
SUMS = ("nansum", "nanprod", "nanmean")
ORDERED = ("nanvar", "nanstd", "nanmin", "nanmax", "nanargmin", "nanargmax")


def numbers(dtype, holes=True):
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(4, 5, 6)) * 4).astype("F" if dtype == "F" else "f4")
    x = (np.abs(x) if dtype[0] == "u" else x).astype(dtype)
    if x.dtype.kind in "fc" and holes:
        x[rng.random(x.shape) < 0.3] = np.nan
        x[:, 2, 3] = np.nan
        x[1, 1, 1] = 3  # a line with some
    return x


def close(got, expected, dtype):
    got, expected = np.asarray(got.read() if isinstance(got, kp.Tensor) else got), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(
        got.astype(complex),
        expected.astype(complex),
        1e-2 if dtype == "f2" else 1e-5,
        2e-2 if dtype == "f2" else 1e-4,
    )


@pytest.mark.parametrize(
    "dtype, axis",
    [("f4", None), ("f4", 1), ("f4", (0, 2)), *((each, 1) for each in ("f8", "f2", "i4", "?", "F"))],
)
def test_reductions(mgr, needs, dtype, axis):
    needs(mgr, "shaderInt64")
    if dtype not in ("f4", "f2", "F"):
        needs(mgr, "shaderFloat64")
    x = numbers(dtype)
    t = mgr.tensor_t(x)
    for name in SUMS if dtype == "F" else (*SUMS, *ORDERED):
        if "arg" in name:
            if isinstance(axis, tuple):
                continue
            if x.dtype.kind == "f" and axis is not None:
                x = np.where(np.isnan(x).all(axis, keepdims=True), np.ones_like(x), x)
                t = mgr.tensor_t(x)
        expected = getattr(np, name)(x.astype("f8") if dtype == "f2" else x, axis=axis)
        expected = expected if "arg" in name or dtype != "f2" else expected.astype(dtype)
        close(getattr(ops, name)(x, axis), expected, dtype)
        operation = getattr(ops, name).op(t, axis, keepdims=True)
        mgr.sequence().record(operation).eval()
        assert operation.results[0].shape == getattr(np, name)(x, axis=axis, keepdims=True).shape
        close(operation.results[0].reshape(np.shape(expected)), expected, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4"])
@pytest.mark.parametrize("axis", [None, 1])
def test_running(mgr, needs, dtype, axis):
    needs(mgr, "shaderInt64")
    x = numbers(dtype)
    close(ops.nancumsum(mgr.tensor_t(x), axis), np.nancumsum(x, axis), dtype)
    x = x[:2, :2, :2]
    close(ops.nancumprod(mgr.tensor_t(x), axis), np.nancumprod(x, axis), dtype)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nancumsum", "nancumprod", "nanmean", "nanvar"])
def test_bools_need_no_longer_ints(mgr, name):
    """Sums of bools have 64 bits, or 32 on devices without longer ints."""
    x = np.array([[True, False, True], [True, True, True]])
    found, expected = getattr(ops, name)(x, axis=1), getattr(np, name)(x, axis=1)
    assert found.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_special_values(mgr):
    nan, inf = np.nan, np.inf
    assert ops.nanargmin(np.float32([nan, inf, inf])) == 1  # NumPy's gives 0, the place of a NaN
    assert ops.nanargmax(np.float32([nan, -inf, nan])) == 1
    for name in ("nanargmin", "nanargmax"):
        with pytest.raises(kp.InvalidArgumentError, match="all elements are NaN along an axis"):
            getattr(ops, name)(np.float32([[nan, nan], [1, 2]]), 1)
        operation = getattr(ops, name).op(mgr.tensor([[nan, nan], [nan, 2]]), 1)
        mgr.sequence().record(operation).eval()
        assert operation.results[0].tolist() == [0, 1]
    row = np.float32([[nan] * 3, [1, nan, inf], [-inf, inf, nan]])
    for name in ("nansum", "nanmean", "nanmin", "nanmax", "nanvar", "nanstd"):
        close(getattr(ops, name)(row, 1), getattr(np, name)(row, 1), "f4")
    assert ops.nansum(np.zeros(0, np.float32)) == 0 and np.isnan(ops.nanmean(np.zeros(0, np.float32)))
    close(ops.nanvar(np.float32([1, nan, 2]), ddof=2), np.float32(nan), "f4")
    close(ops.nanmean(np.full(4096, 60000, np.float16)), np.float16(60000), "f2")  # the sum is beyond float16
    with pytest.raises(kp.InvalidArgumentError):
        ops.nanmin(np.zeros((0, 2), np.float32), 0)


def test_dtype_out_and_parts(mgr):
    x = numbers("f4")
    t = mgr.tensor_t(x)
    close(ops.nansum(t, 1, np.float32), np.nansum(x, 1), "f4")
    out = mgr.zeros((4, 6))
    assert ops.nanmean(t, 1, out=out) is out
    close(out, np.nanmean(x, 1), "f4")
    close(ops.nanvar(t[::2, :, 1], 1, ddof=1), np.nanvar(x[::2, :, 1], 1, ddof=1), "f4")
    with pytest.raises(kp.ArgumentTypeError, match="nanmean: dtype"):
        ops.nanmean(x, dtype="no dtype")
