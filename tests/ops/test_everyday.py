"""Slopes, areas, lines, bins, cross products and covariances, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

RNG = np.random.default_rng(3)
SMALL = RNG.normal(size=(4, 5, 3)).astype(np.float32)
INTS = RNG.integers(-50, 50, (4, 5, 3)).astype(np.int8)
DTYPES = ("f4", "f2", "i1", "u2", "i4", "f8")
area = getattr(np, "trapezoid", None) or np.trapz  # its name before NumPy 2


def same(got, want, tolerance=1e-5):
    got, want = (each if isinstance(each, (tuple, list)) else [each] for each in (got, want))
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        scale = np.abs(b[np.isfinite(b)]).max(initial=1)
        np.testing.assert_allclose(np.asarray(a, np.float64), b, rtol=0, atol=tolerance * scale)


@pytest.fixture(params=[False, True], ids=["arrays", "tensors"])
def place(request, mgr):
    """Arrays as they are, or as tensors."""
    return mgr.tensor_t if request.param else lambda array: array


@pytest.fixture
def cast(mgr, needs):
    """`cast(dtype, x)`: `x` in the dtype; skips if the device lacks it."""

    def made(dtype, x=SMALL):
        if dtype == "f8":
            needs(mgr, "shaderFloat64")
        return (10 * x).astype(dtype) if dtype[0] in "iu" else x.astype(dtype)

    return made


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient(cast, place, dtype):
    x = cast(dtype, np.abs(SMALL))
    tolerance = 3e-3 if dtype == "f2" else 1e-5
    for axis, order in [(None, 1), (None, 2), (0, 1), (-1, 2), ((0, 1), 1)]:
        got = kp.ops.gradient(place(x), 0.5, axis=axis, edge_order=order)
        same(got, np.gradient(x, 0.5, axis=axis, edge_order=order), tolerance)
    uneven = np.array([0, 1, 3, 3.5], np.float32)
    for order in (1, 2):
        got = kp.ops.gradient(place(x), uneven, 2.0, axis=(0, 1), edge_order=order)
        same(got, np.gradient(x, uneven, 2.0, axis=(0, 1), edge_order=order), tolerance)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_trapezoid(cast, place, dtype):
    x = cast(dtype, np.abs(SMALL) / 4)
    tolerance = 3e-3 if dtype == "f2" else 1e-5
    same(kp.ops.trapezoid(place(x)), area(x), tolerance)
    same(kp.ops.trapezoid(place(x), dx=0.25, axis=0), area(x, dx=0.25, axis=0), tolerance)
    at = np.array([0, 1, 3, 3.5, 4], np.float32)
    same(kp.ops.trapezoid(place(x), at, axis=1), area(x, at, axis=1), tolerance)
    every = np.cumsum(np.abs(SMALL), 1)
    same(kp.ops.trapezoid(place(x), place(every), axis=1), area(x, every, axis=1), tolerance)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_interp_and_digitize(mgr, cast, place, dtype):
    x = cast(dtype)
    if dtype == "i4":  # with float32 they are compared in float64
        cast("f8")
    xp = np.sort(RNG.choice(np.arange(-40, 40), 9, replace=False)).astype(np.float32) / 4
    fp = RNG.normal(size=9).astype(np.float32)
    for given in ({}, {"left": -7.0}, {"left": -7.0, "right": 9.0}):
        same(kp.ops.interp(place(x), place(xp), fp, **given), np.interp(x, xp, fp, **given))
    same(kp.ops.interp(xp, xp, fp), fp)
    same(kp.ops.interp(place(x), xp[:1], fp[:1]), np.interp(x, xp[:1], fp[:1]))
    for right in (False, True):
        np.testing.assert_array_equal(kp.ops.digitize(place(x), place(xp), right), np.digitize(x, xp, right))
        for down in (xp[::-1], place(xp[::-1].copy()), mgr.tensor_t(xp)[::-1]):
            got = kp.ops.digitize(place(x), down, right)
            np.testing.assert_array_equal(got, np.digitize(x, xp[::-1], right))
            assert got.dtype == kp.ops.digitize(place(x), xp, right).dtype


def test_interp_of_special_values():
    x = np.array([np.nan, -np.inf, np.inf, -0.0, 2], np.float32)
    xp, fp = np.array([0, 1, 2], np.float32), np.array([5, 6, 8], np.float32)
    np.testing.assert_array_equal(kp.ops.interp(x, xp, fp), np.interp(x, xp, fp))
    assert kp.ops.interp(x[:0], xp, fp).shape == (0,)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i1", "c8"])
def test_cross(place, dtype):
    a, b = (INTS if dtype[0] == "i" else SMALL).astype(dtype), INTS[::-1].astype(dtype)
    for got, want in [
        (kp.ops.cross(place(a), place(b)), np.cross(a, b)),
        (kp.ops.cross(place(a), b[0, 0]), np.cross(a, b[0, 0])),
        (kp.ops.cross(place(a[0, 0]), b[0, 0]), np.cross(a[0, 0], b[0, 0])),
        (kp.ops.cross(place(a), b, axisc=0), np.cross(a, b, axisc=0)),
        (kp.ops.cross(place(a.T.copy()), b.T.copy(), axis=0), np.cross(a.T, b.T, axis=0)),
    ]:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
        assert got.dtype == want.dtype


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [*DTYPES[:1], *DTYPES[2:], "c8"])
def test_covariances(cast, place, dtype):
    x = (SMALL[..., 0] + 1j * SMALL[..., 1]).astype(dtype) if dtype == "c8" else cast(dtype, np.abs(SMALL))
    x = x.reshape(4, -1)
    for args in ({}, {"bias": True}, {"ddof": 2}, {"rowvar": False}):
        got, want = kp.ops.cov(place(x), **args), np.cov(x, **args)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
    same(kp.ops.cov(place(x[0])), np.cov(x[0]).real) if dtype != "c8" else None
    if dtype != "c8":
        same(kp.ops.cov(place(x[0]), place(x[1])), np.cov(x[0], x[1]))
        same(kp.ops.corrcoef(place(x)), np.corrcoef(x), 1e-4)
        same(kp.ops.corrcoef(place(x), x[1:], rowvar=True), np.corrcoef(x, x[1:]), 1e-4)
        same(kp.ops.corrcoef(place(x[0])), np.corrcoef(x[0]))


def test_they_are_recorded(mgr):
    x, at = mgr.tensor_t(SMALL[0]), mgr.tensor_t(np.array([0, 1, 3, 3.5, 4], np.float32))
    xp, fp = mgr.tensor([-1, 0, 1]), mgr.tensor([3, 2, 5])
    operations = [
        (kp.ops.gradient.bind(x, axis=0), np.gradient(SMALL[0], axis=0)),
        (kp.ops.gradient.bind(x, at, axis=0), np.gradient(SMALL[0], at.read(), axis=0)),
        (kp.ops.trapezoid.bind(x, at, axis=0), area(SMALL[0], at.read(), axis=0)),
        (kp.ops.interp.bind(x, xp, fp), np.interp(SMALL[0], xp.read(), fp.read())),
        (kp.ops.digitize.bind(x, xp), np.digitize(SMALL[0], xp.read())),
        (kp.ops.cross.bind(x, x[0]), np.cross(SMALL[0], SMALL[0, 0])),
        (kp.ops.cov.bind(x), np.cov(SMALL[0])),
        (kp.ops.corrcoef.bind(x), np.corrcoef(SMALL[0])),
    ]
    seq = mgr.sequence()
    for each, _ in operations:
        seq.record(each)
    seq.eval()
    for each, want in operations:
        same(each.results[0].read(), want, 1e-4)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: kp.ops.gradient(SMALL, axis=3), "axis is 3"),
        (lambda: kp.ops.gradient(SMALL[:1], axis=0), "takes 2 or more"),
        (lambda: kp.ops.gradient(SMALL, 1.0, 2.0), "2 spacings for 3 axes"),
        (lambda: kp.ops.gradient(SMALL, [0.0, 1.0], axis=0), "give one for each"),
        (lambda: kp.ops.gradient(SMALL, edge_order=3), "give 1 or 2"),
        (lambda: kp.ops.trapezoid(SMALL, [0.0, 1.0]), "give one for each"),
        (lambda: kp.ops.interp(SMALL, [1.0, 2.0], [1.0]), "of one length"),
        (lambda: kp.ops.interp(SMALL, np.ones(2, np.float32), np.ones(2, np.complex64)), "kp.ops.real"),
        (lambda: kp.ops.digitize(SMALL, np.float32([1, 3, 2])), "neither ascend nor descend"),
        (lambda: kp.ops.cross(SMALL[..., :2], SMALL), "give 3 elements on axis -1"),
        (lambda: kp.ops.cov(SMALL), "one axis or two"),
    ],
)
def test_errors(call, match):
    with pytest.raises(kp.InvalidArgumentError, match=match):
        call()


def test_one_struct_is_refused_as_an_array_of_them():
    structs = np.zeros(3, [("a", "f4"), ("b", "i4")])
    calls = [
        (kp.ops.add, (structs[0], 1)), (kp.ops.sum, (structs[0],)), (kp.ops.cross, (structs, structs)),
        (kp.ops.digitize, ([1.0], structs)), (kp.ops.elementwise("x + 1"), (structs[0],)),
    ]  # fmt: skip
    for function, args in calls:
        with pytest.raises(kp.UnimplementedError, match="it takes numbers"):
            function(*args)
    with pytest.raises(kp.InvalidArgumentError, match="f has no axis"):
        kp.ops.gradient(5.0)
    with pytest.raises(kp.ArgumentTypeError, match="edge_order"):  # compared with numbers, it takes 1 TiB
        kp.ops.gradient(SMALL, edge_order=np.broadcast_to(np.int8(1), (1 << 20, 1 << 20)))
