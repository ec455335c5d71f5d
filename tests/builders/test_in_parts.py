"""Calls with memory beyond what shaders reach through one binding: in parts, or refused with the way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._builders import walks
from tests.support.sampling import sampled, spread

pytestmark = pytest.mark.sampled


@pytest.fixture(autouse=True)
def default(mgr, monkeypatch):
    """Shaders reach 40,000 bytes."""
    monkeypatch.setattr(walks, "_reach", lambda ksel: 40_000)
    with mgr.current():
        yield


@pytest.fixture(params=sampled(None, ["arrays", "tensors"]))
def placed(request, mgr):
    """Arguments as they are, or as tensors; in the sample by turns."""
    ways = {"arrays": [np.asarray], "tensors": [mgr.tensor_t]}
    turns = itertools.cycle(ways.get(getattr(request, "param", None), [mgr.tensor_t, np.asarray]))
    return lambda array: next(turns)(array)


def check(got, expected, **error):
    got = got.read() if isinstance(got, kp.Tensor) else got
    assert got.shape == np.shape(expected)
    if error:
        np.testing.assert_allclose(got, expected, **error)
    else:
        np.testing.assert_array_equal(got, expected)


def test_reductions(placed):
    rng = np.random.default_rng(0)
    x = rng.normal(size=50_003).astype(np.float32)
    z = rng.integers(-9, 9, (301, 133)).astype(np.int16)
    u, v = placed(x), placed(z)
    check(kp.ops.sum(u), x.sum(dtype=np.float64), atol=1e-3)
    check(kp.ops.max(u), x.max())
    check(kp.ops.mean(u), x.mean(dtype=np.float64), atol=1e-6)
    check(kp.ops.dot(u, u), x.astype(np.float64) @ x, rtol=1e-6)
    check(kp.ops.any(placed(x > 9)), False)
    check(kp.ops.count_nonzero(v), np.count_nonzero(z))
    check(kp.ops.sum(v, dtype="int32"), z.sum())
    for axis, keep in spread([*itertools.product((None, 0, 1, (0, 1)), (False, True))], 3):
        check(kp.ops.sum(v, axis=axis, keepdims=keep), z.sum(axis, keepdims=keep))
    check(kp.ops.mean(v, axis=0), z.mean(0), atol=1e-6)
    check(kp.ops.reduction("a * x + y", "max")(2.0, u, np.float32(1)), (2 * x + 1).max())
    out = placed(np.zeros(133, kp.ops.sum(v, axis=0).dtype))  # int32 on devices without int64
    assert kp.ops.sum(v, axis=0, out=out) is out
    check(out, z.sum(0))


def test_counts(placed):
    x = np.random.default_rng(3).integers(0, 90, (301, 133)).astype(np.int32)
    check(kp.ops.bincount(placed(x.ravel())), np.bincount(x.ravel()))
    for got, expected in zip(kp.ops.histogram(placed(x), 7), np.histogram(x, 7), strict=True):
        check(got, expected)
    out = placed(np.zeros(5, kp.ops.int_counts(placed(x), 5).dtype))
    assert kp.ops.int_counts(placed(x), 5, out=out) is out
    check(out, np.bincount(x.ravel())[:5])
    weights = np.random.default_rng(4).normal(size=x.shape).astype(np.float32)
    check(
        kp.ops.bincount(placed(x.ravel()), placed(weights.ravel())),
        np.bincount(x.ravel(), weights.ravel()),
        rtol=1e-5,
        atol=1e-4,
    )
    got, _ = kp.ops.histogram(placed(x.astype(np.uint8)), 7, weights=placed(weights))  # these are larger
    check(got, np.histogram(x, 7, weights=weights)[0], rtol=1e-4, atol=1e-4)
    with pytest.raises(kp.InvalidArgumentError, match="one binding"):
        kp.ops.int_counts(placed(x), 90_000)


def test_norms(placed):
    x = np.random.default_rng(5).normal(size=(161, 133)).astype(np.float32)
    z = x + 1j * x[::-1]
    orders, places = (2, 1, 0, np.inf, -np.inf, 3), ((None, False), (0, True), (1, False))
    for order, (axis, keep), each in spread([*itertools.product(orders, places, (x, z))], 5):
        of = {"ord": order, "axis": axis, "keepdims": keep}
        flat = {**of, "axis": 0, "keepdims": False} if axis is None else of
        expected = np.linalg.norm(each.astype(complex).reshape(-1) if axis is None else each, **flat)
        check(kp.ops.vector_norm(placed(each), **of), expected, rtol=1e-4)


def test_scans_and_conversions(placed):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, 60_001).astype(np.uint8)
    z = rng.integers(-9, 9, (301, 133)).astype(np.int16)
    u, v = placed(x), placed(z)
    check(kp.ops.cumsum(u), np.cumsum(x))
    check(kp.ops.cummax(u), np.maximum.accumulate(x))
    check(kp.ops.scan(reverse=True)(u), np.cumsum(x[::-1])[::-1])
    for axis in (0, 1):
        check(kp.ops.cumsum(v, axis=axis), np.cumsum(z, axis))
    check(kp.ops.astype(u, "int32"), x.astype(np.int32))
    check(kp.ops.round(placed(x / np.float32(4)), 1), np.round(x / np.float32(4), 1), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_places(placed, dtype):
    """The first of equal values, in whichever part; the first NaN if there is one."""
    rng = np.random.default_rng(2)
    x = (rng.integers(-9, 9, (161, 133)) > (8 if dtype == "bool" else -99)) * rng.integers(-9, 9, (161, 133))
    for nans in (0, 40) if dtype == "float32" else (0,):
        x = x.astype(dtype)
        x.reshape(-1)[rng.integers(9_000, x.size, nans)] = np.nan if nans else x[0, 0]
        u = placed(x)
        names = ("argmin", "argmax", *(["nanargmin", "nanargmax"] if nans else []))
        for name, axis in spread([*itertools.product(names, (None, 0))], 3):
            check(getattr(kp.ops, name)(u, axis), getattr(np, name)(x, axis))
        kept = kp.ops.argmax(u, 0, keepdims=True)
        check(kept, np.argmax(x, 0, keepdims=True))
    out = placed(np.zeros(133, kp.ops.argmax(u, 0).dtype))
    assert kp.ops.argmax(u, 0, out=out) is out
    check(out, np.argmax(x, 0))


def test_deviations(placed):
    rng = np.random.default_rng(3)
    x = rng.normal(5, 2, (161, 133)).astype(np.float32)
    u = placed(x)
    ways = itertools.product(("var", "std", "nanstd"), ((None, 0, False), (0, 1.5, True), ((0, 1), 1, False)))
    for name, (axis, ddof, keep) in spread([*ways], 4):
        expected = getattr(np, name)(x.astype(float), axis, ddof=ddof, keepdims=keep)
        check(getattr(kp.ops, name)(u, axis, ddof=ddof, keepdims=keep), expected, rtol=1e-4)
    z = placed((x * 9).astype(np.int32))
    check(kp.ops.var(z, 0, dtype="float32"), (x * 9).astype(np.int32).var(0), rtol=1e-4)
    check(kp.ops.std(placed(x + 1j * x[::-1])), (x + 1j * x[::-1]).std(), rtol=1e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: kp.ops.sum(x.astype(np.float16)),
        lambda x: kp.ops.cumsum(x.reshape(3, -1)),
        lambda x: kp.ops.scan(segments="starts")(x, x > 0),
        lambda x: kp.ops.scan(neutral=0, exclusive=True)(x),
        lambda x: kp.ops.reduction("u = x; v = x", "u = a.u + b.u; v = a.v + b.v")(x),
        lambda x: kp.ops.sort(x.reshape(2, -1)),
        lambda x: kp.ops.flip(x),
        lambda x: kp.ops.sum.variant("run")(x),
    ],
)
def test_others_name_the_limit_and_the_way(call):
    with pytest.raises(
        kp.InvalidArgumentError, match=r"maxStorageBufferRange.*in parts, t\[:n\] and t\[n:\]"
    ):
        call(np.ones(60_000, np.float32))


def test_the_ways_that_refusals_name(mgr):
    """Rows of the first factor, and the sum over parts of the second one; lines of a sort."""
    rng = np.random.default_rng(4)
    tall, wide = rng.integers(-9, 9, (120, 100)).astype("f4"), rng.integers(-9, 9, (100, 120)).astype("f4")
    small = rng.integers(-9, 9, (3, 100)).astype("f4")
    a, b, few = mgr.tensor_t(tall), mgr.tensor_t(wide), mgr.tensor_t(small)
    for one, other in ((a, mgr.tensor_t(small.T.copy())), (few, b)):
        with pytest.raises(
            kp.InvalidArgumentError, match=r"48000 bytes.*40000.*matmul\(a\[:n\], b\).*t\.read\(\)"
        ):
            kp.ops.matmul(one, other)
    check(kp.ops.matmul(a[60:], mgr.tensor_t(small.T.copy())), tall[60:] @ small.T)
    parts = kp.ops.matmul(few[:, :50], b[:50]), kp.ops.matmul(few[:, 50:], b[50:])
    check(kp.ops.add(*parts), small @ wide)
    with pytest.raises(
        kp.InvalidArgumentError, match=r"median: .*48000 bytes.*40000.*t\[:n\] and t\[n:\], if"
    ):
        kp.ops.median(a, 1)
    for call in (kp.ops.sort, kp.ops.median):  # of one line
        with pytest.raises(
            kp.InvalidArgumentError, match=r"48000 bytes.*40000.*A line is not.*host, from t\.read\(\)"
        ):
            call(a.reshape(-1))
    check(kp.ops.median(a[60:], 1), np.median(tall[60:], 1))


def test_more_elements_than_memory_holds_are_refused():
    """One number that stands for 2**40: its parts would take hours."""
    ones, places = np.broadcast_to(np.float32(1), (2**20, 2**20)), np.broadcast_to(np.int32(1), (2**40,))
    for call in (
        lambda: kp.ops.sum(ones, axis=1),
        lambda: kp.ops.cumsum(ones, axis=1),
        lambda: kp.ops.int_counts(places, 3),
        lambda: kp.ops.bin_counts(ones, np.float32([0, 2])),
        lambda: kp.ops.histogram(ones, 3, (0, 2)),
    ):
        with pytest.raises(kp.OutOfMemoryError, match=r"array of shape .* is too large"):
            call()
