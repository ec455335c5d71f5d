"""Numbers in place of NaN, angles without leaps, polynomials, cube roots, beside NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

RNG = np.random.default_rng(7)
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -3e4, 1e-7]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture
def able(mgr, needs):
    """Skips a test if the device lacks what a dtype needs."""

    def check(dtype):
        wide = {"f8": "shaderFloat64", "c16": "shaderFloat64", "i8": "shaderInt64", "u8": "shaderInt64"}
        if dtype in wide:
            needs(mgr, wide[dtype])

    return check


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "c8", "c16", "i4", "u1", "?", "i8"])
def test_nan_to_num(mgr, able, dtype):
    able(dtype)
    x = (np.array(SPECIAL) if dtype[0] in "fc" else np.arange(6)).astype(dtype)
    if dtype[0] == "c":
        x = np.concatenate([x, x[::-1]])
        x.imag = RNG.permutation(np.resize(np.array(SPECIAL), x.shape))
    for named in ({}, {"nan": 7.0}, {"posinf": 2.0, "neginf": -2.5}):
        want = np.nan_to_num(x, **named)
        for got in (kp.ops.nan_to_num(x, **named), kp.ops.nan_to_num(mgr.tensor_t(x), **named).read()):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
            if dtype[0] == "f":
                np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_nan_to_num_of_small_floats_and_in_place(mgr):
    x = np.array(SPECIAL).astype(BFLOAT16)
    most = float(ml_dtypes.finfo(BFLOAT16).max)
    assert kp.ops.nan_to_num(x)[:3].astype(np.float64).tolist() == [0, most, -most]
    t = mgr.tensor([np.nan, 1])
    assert kp.ops.nan_to_num(t, out=t) is t and t.tolist() == [0.0, 1.0]
    with pytest.raises(kp.InvalidArgumentError, match="give out=x"):
        kp.ops.nan_to_num(t, copy=False)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i2"])
def test_unwrap(mgr, able, dtype):
    able(dtype)
    angles = np.cumsum(RNG.normal(size=(3, 40, 2)) * 2, axis=1)
    x = (angles * 3 if dtype[0] == "i" else (angles + np.pi) % (2 * np.pi) - np.pi).astype(dtype)
    cases = [{"period": 4}, {"period": 5}, {"period": 6, "discont": 4}] if dtype[0] == "i" else [
        {}, {"axis": 1}, {"axis": 0, "period": 1.5}, {"discont": 4.0}, {"period": 2}
    ]  # fmt: skip
    for named in cases:
        want = np.unwrap(x, **named)
        for got in (kp.ops.unwrap(x, **named), kp.ops.unwrap(mgr.tensor_t(x), **named).read()):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=0, atol=0 if dtype[0] == "i" else 1e-4)


def test_unwrap_at_half_a_period_and_of_nothing():
    x = np.float32([0, 4, 0, -4, 0, 12, np.nan, 1])
    np.testing.assert_array_equal(kp.ops.unwrap(x, period=8), np.unwrap(x, period=8))
    whole = np.array([0, 2, 0, -2, 7], np.int32)
    np.testing.assert_array_equal(kp.ops.unwrap(whole, period=4), np.unwrap(whole, period=4))
    assert kp.ops.unwrap(x[:0]).shape == (0,) and kp.ops.unwrap(x[:1]).tolist() == [0.0]
    for call, match in [
        (lambda: kp.ops.unwrap(x, axis=1), "axis is 1, and p has 1 axes"),
        (lambda: kp.ops.unwrap(x, period=0), "a finite number above 0"),
        (lambda: kp.ops.unwrap(5.0), "p has 0 axes"),
    ]:
        with pytest.raises(kp.InvalidArgumentError, match=match):
            call()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4"])
@pytest.mark.parametrize("count", [1, 2, 8, 9, 20])
def test_polyval(mgr, able, dtype, count):
    able(dtype)
    p, x = RNG.normal(size=count), RNG.uniform(-1.2, 1.2, (5, 7))
    p, x = ((5 * each).astype(dtype) if dtype[0] == "i" else each.astype(dtype) for each in (p, x))
    want = np.polyval(p, x)
    for got in (
        kp.ops.polyval(p, x),
        kp.ops.polyval(mgr.tensor_t(p), mgr.tensor_t(x)).read(),
        kp.ops.polyval(p, mgr.tensor_t(x)[:, ::-1]).read()[:, ::-1],
    ):
        assert got.dtype == want.dtype
        terms = np.polyval(abs(p.astype("c16")), abs(x)).real
        allowed = 0 if dtype[0] == "i" else 2 * count * np.finfo(want.dtype).eps * terms
        assert (abs(got - want) <= allowed).all()


def test_polyval_of_special_values():
    x = np.float32([np.nan, np.inf, -np.inf, 0])
    got = kp.ops.polyval(np.float32([1, 0, 2]), x)
    np.testing.assert_array_equal(got, np.float32([np.nan, np.inf, np.inf, 2])[[0, 1, 1, 3]])
    assert kp.ops.polyval(np.array([1, 2], np.int32), np.int32(3)).item() == 5
    for p in (np.float32([]), np.ones((2, 2), np.float32)):
        with pytest.raises(kp.InvalidArgumentError, match="give one axis of coefficients"):
            kp.ops.polyval(p, x)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i1", "u1", "?", "i4"])
def test_cube_roots_and_sinc(able, dtype):
    able("f8" if dtype in ("f8", "i4", "i1", "u1", "?") else dtype)
    x = np.array([*SPECIAL[:-2], 27, -8, 1e-6] if dtype[0] == "f" else [0, 1, 2, 127]).astype(dtype)
    if dtype == "i1":
        x[-1] = -128
    half = {"rtol": 1e-3, "atol": 1e-3}
    with np.errstate(all="ignore"):
        for function, theirs in ((kp.ops.cbrt, np.cbrt), (kp.ops.sinc, np.sinc)):
            got, want = function(x), theirs(x)
            assert got.dtype == want.dtype
            close = half if want.dtype == np.float16 else {"rtol": 3e-7, "atol": 2.0**-20}
            np.testing.assert_allclose(got, want, **close)
    if dtype == "f4":
        every = (RNG.uniform(-9, 9, 20_000) * 10.0 ** RNG.integers(-32, 37, 20_000)).astype("f4")
        want = np.cbrt(every.astype("f8"))
        assert (abs(kp.ops.cbrt(every) - want) <= 2 * np.spacing(abs(want).astype("f4"))).all()


def test_they_are_recorded(mgr):
    x, p = mgr.tensor([0.5, np.nan, 3]), mgr.tensor([1, 2])
    made = [kp.ops.nan_to_num.bind(x), kp.ops.polyval.bind(p, x), kp.ops.unwrap.bind(x), kp.ops.cbrt.bind(x)]
    seq = mgr.sequence()
    for each in made:
        seq.record(each)
    seq.eval()
    want = [np.nan_to_num(x.read()), np.polyval([1, 2], x.read()), np.unwrap(x.read()), np.cbrt(x.read())]
    for each, expected in zip(made, want, strict=True):
        np.testing.assert_allclose(each.results[0].read(), expected, rtol=1e-6)
