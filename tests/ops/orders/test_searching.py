"""Searches and counts, against NumPy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.ops.variants import only
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

NAMES = ("searchsorted", "int_counts", "bin_counts", "nonzero_places", "selected", "run_starts")


SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6)


@examples(15)
@given(data=st.data())
def test_nonzero(data):
    x = data.draw(hnp.arrays(np.float32, data.draw(SHAPES), elements=st.sampled_from([0, -0.0, 1, np.nan])))
    np.testing.assert_array_equal(kp.ops.flatnonzero(x), np.flatnonzero(x))
    got, want = kp.ops.nonzero(x), np.nonzero(x)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_of_long_tensors(mgr):
    rng = np.random.default_rng(0)
    x = (rng.random((701, 500)) < 0.3).astype(np.float32) * rng.normal(size=(701, 500)).astype(np.float32)
    given = mgr.tensor_t(x)
    for got, want in zip(kp.ops.nonzero(given), np.nonzero(x), strict=True):
        assert isinstance(got, kp.Tensor)
        np.testing.assert_array_equal(got.read(), want)
    np.testing.assert_array_equal(kp.ops.compress(given, given).read(), x[x != 0])
    np.testing.assert_array_equal(kp.ops.flatnonzero(given[:, 3]).read(), np.flatnonzero(x[:, 3]))
    places, count = kp.ops.nonzero_places(given)
    n = int(count.read())
    assert n == np.count_nonzero(x) and (places.read()[n:] == -1).all()


@examples(10)
@given(data=st.data())
def test_compress_and_extract(data):
    shape = data.draw(SHAPES)
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    condition = data.draw(hnp.arrays(np.bool_, shape))
    np.testing.assert_array_equal(kp.ops.extract(condition, x), np.extract(condition, x))
    short = condition.reshape(-1)[: x.size // 2]
    np.testing.assert_array_equal(kp.ops.compress(short, x), np.compress(short, x))


@examples(12)
@given(data=st.data())
def test_unique(data):
    x = data.draw(
        hnp.arrays(np.float32, data.draw(SHAPES), elements=st.sampled_from([3, -1, 0, 0.5, np.nan, np.inf]))
    )
    np.testing.assert_array_equal(kp.ops.unique(x), np.unique(x))
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    got = kp.ops.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def test_unique_of_a_long_tensor(mgr):
    x = np.random.default_rng(0).integers(-500, 500, 20_011).astype(np.int16)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    got = kp.ops.unique(mgr.tensor_t(x), return_index=True, return_inverse=True, return_counts=True)
    for a, b in zip(got, want, strict=True):
        assert isinstance(a, kp.Tensor)
        np.testing.assert_array_equal(a.read(), b)


@examples(15)
@given(data=st.data())
def test_searchsorted(data):
    values = st.sampled_from([-np.inf, -1.5, -0.0, 0, 1, 2, np.inf, np.nan])
    a = np.sort(data.draw(hnp.arrays(np.float32, st.integers(0, 20), elements=values)))
    v = data.draw(hnp.arrays(np.float32, data.draw(SHAPES), elements=values))
    for side in ("left", "right"):
        np.testing.assert_array_equal(kp.ops.searchsorted(a, v, side), np.searchsorted(a, v, side))


DTYPES = ("bool", "i1", "u1", "i2", "u4", "i4", "i8", "u8", "f2", "f4", "f8")


@pytest.mark.each_driver
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_searches_compare_in_the_common_dtype(mgr, dtype):
    features = {("i", 8): "shaderInt64", ("u", 8): "shaderInt64", ("f", 8): "shaderFloat64"}
    rng = np.random.default_rng(5)
    a = np.sort(rng.integers(0, 100, 40)).astype(dtype)
    for other in DTYPES:
        common = np.result_type(dtype, other)
        needed = {features.get((each.kind, each.itemsize)) for each in (a.dtype, np.dtype(other), common)}
        if not needed <= {*mgr.enabled_features, None}:
            with pytest.raises(kp.UnimplementedError, match="this device does not have"):
                kp.ops.searchsorted(a, np.ones(3, other))
            continue
        v = rng.integers(0, 100, (5, 9)).astype(other)
        if v.dtype.kind == "f":
            v = v + np.asarray(0.5, other)
        for side in ("left", "right"):
            np.testing.assert_array_equal(kp.ops.searchsorted(a, v, side), np.searchsorted(a, v, side))
        if common.kind != "f" or "f" in dtype + other:
            np.testing.assert_array_equal(kp.ops.isin(v, a), np.isin(v, a))
        if "bool" not in (dtype, other):
            np.testing.assert_array_equal(kp.ops.bin_counts(v, a), np.histogram(v, a)[0])


@pytest.mark.each_driver
@pytest.mark.parametrize("length", [0, 1, 7, 300, 2048, 2049])
def test_counts_by_workgroups(mgr, length):
    """In shared memory: up to 2,048 counters, several of each if they are few."""
    counted, binned = only(kp.ops.int_counts, "group"), only(kp.ops.bin_counts, "group")
    rng = np.random.default_rng(length)
    for n in (0, 5, 16_385, 70_001):
        x = rng.integers(-3, length + 3, n).astype(np.int32)
        got = counted(mgr.tensor_t(x), length).read()
        np.testing.assert_array_equal(got, np.bincount(x[(x >= 0) & (x < length)], minlength=length))
        if not length:
            continue
        y, edges = rng.normal(size=n).astype(np.float32), np.linspace(-2, 2, length + 1, dtype=np.float32)
        y[:3] = [np.nan, 2, -2][: min(n, 3)]
        got = binned(mgr.tensor_t(y), mgr.tensor_t(edges)).read()
        np.testing.assert_array_equal(got, np.histogram(y[y == y], edges)[0])


def test_sums_of_weights_by_workgroups(mgr):
    x, weights = np.array([0, 2, 2, 9], np.int32), np.float32([0.5, 1, 2, 4])
    got = only(kp.ops.int_counts, "group")(mgr.tensor_t(x), 3, mgr.tensor_t(weights))
    assert got.tolist() == [0.5, 0.0, 3.0]


@pytest.mark.each_driver
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_selections_by_workgroups(mgr, share):
    """Each takes up to 4,096 elements; one adds up what they have, of many some for each invocation."""
    places, selected = only(kp.ops.nonzero_places, "group"), only(kp.ops.selected, "group")
    rng = np.random.default_rng(7)
    for n in (0, 1, 4097, 1_200_001):
        condition, x = rng.random(n) < share, rng.normal(size=n).astype(np.float32)
        found, count = (each.read() for each in places(mgr.tensor_t(condition)))
        np.testing.assert_array_equal(found[:count], np.flatnonzero(condition))
        assert (found[count:] == -1).all()
        values, count = (each.read() for each in selected(mgr.tensor_t(condition), mgr.tensor_t(x)))
        np.testing.assert_array_equal(values[:count], x[condition])
        assert not values[count:].any()


@examples(10)
@given(data=st.data())
def test_bincount(data):
    x = data.draw(hnp.arrays(np.int32, st.integers(0, 50), elements=st.integers(0, 30)))
    least = data.draw(st.integers(0, 40))
    np.testing.assert_array_equal(kp.ops.bincount(x, minlength=least), np.bincount(x, minlength=least))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16"])
def test_counts_of_other_ints(mgr, dtype):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, 5003).astype(dtype)
    np.testing.assert_array_equal(kp.ops.bincount(mgr.tensor_t(x)).read(), np.bincount(x))


@examples(15)
@given(data=st.data())
def test_histogram(data):
    seed, n = data.draw(st.integers(0, 99)), data.draw(st.integers(0, 3000))
    x = np.random.default_rng(seed).normal(size=n).astype(np.float32).round(data.draw(st.integers(0, 3)))
    ways = [(10, None), (7, (-0.7, 1.1)), (np.array([-1, -0.1, 0.3, 2]), None), ([0, 1, 1, 2], None)]
    bins, bounds = data.draw(st.sampled_from(ways))
    got, edges = kp.ops.histogram(x, bins, bounds)
    want, wanted = np.histogram(x, bins, bounds)
    np.testing.assert_array_equal(edges, wanted)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_histograms_of_small_floats_are_those_of_float32(name):
    x = (np.random.default_rng(2).normal(size=200) * 3).astype(getattr(ml_dtypes, name))
    got, edges = kp.ops.histogram(x, 7)
    want, wanted = np.histogram(x.astype(np.float32), 7)
    np.testing.assert_array_equal(edges, wanted)
    np.testing.assert_array_equal(got, want)


def test_histograms_of_ints_beyond_floats(mgr, needs):
    needs(mgr, "shaderInt64")
    rng = np.random.default_rng(4)
    for dtype in (np.int64, np.uint64):
        info = np.iinfo(dtype)
        for high in (2**52, 2**53 + 9, 2**54 + 5, 2**60 + 1, info.max):
            low = max(info.min, -high)
            x = rng.integers(low, high, 40, dtype=dtype, endpoint=True)
            x[:4] = low, high, high - 1, 2**53
            for bins in (1, 6, np.sort(x[::5].astype(float)), np.array([-(2.0**70), 2.0**53, 2.0**70])):
                want, edges = np.histogram(x, bins)
                got, found = kp.ops.histogram(x, bins)
                np.testing.assert_array_equal(found, edges)
                np.testing.assert_array_equal(got, want, err_msg=f"{x} {edges}")


def test_histograms_of_ints_and_tensors(mgr):
    x = np.random.default_rng(0).integers(0, 256, (50, 60), dtype=np.uint8)
    for bins, bounds in ((10, None), (16, (0, 256)), (9, (-50, 400)), ([-3.5, 20.5, 30, 255], None)):
        got, edges = kp.ops.histogram(mgr.tensor_t(x), bins, bounds)
        want, wanted = np.histogram(x, bins, bounds)
        np.testing.assert_array_equal(edges, wanted)
        np.testing.assert_array_equal(got.read(), want)


def test_in_sequences(mgr):
    x = mgr.tensor_t(np.array([0, 3, 3, 1, 9], np.int32))
    counts = kp.ops.int_counts.op(x, 4)
    found = kp.ops.nonzero_places.op(x)
    sequence = mgr.sequence().record(counts, found)
    for _ in range(2):
        sequence.eval()
        assert counts.results[0].read().tolist() == [1, 1, 0, 2]
        assert found.results[0].read().tolist() == [1, 2, 3, 4, -1]


def test_memory_apart_from_the_hosts(make_manager):
    mgr = make_manager(force_staging=True)
    x = mgr.tensor_t(np.array([0, 5, 0, 7, 5], np.float32))
    assert kp.ops.unique(x).tolist() == [0, 5, 7]
    assert kp.ops.flatnonzero(x).tolist() == [1, 3, 4]
    assert kp.ops.flatnonzero(mgr.zeros(5)).read().shape == (0,)
    assert kp.ops.compress(mgr.zeros(3), x).tolist() == []


def test_errors():
    ones = np.ones(3, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="side is"):
        kp.ops.searchsorted(ones, ones, "up")
    with pytest.raises(kp.InvalidArgumentError, match="x has -1"):
        kp.ops.bincount(np.array([-1, 2], np.int32))
    with pytest.raises(kp.errors.ArgumentTypeError, match="give ints"):
        kp.ops.bincount(ones)
    with pytest.raises(kp.InvalidArgumentError, match="histogram"):
        kp.ops.histogram(ones, 0)
    with pytest.raises(kp.InvalidArgumentError, match="histogram"):
        kp.ops.histogram(ones, [2, 1])
    with pytest.raises(kp.InvalidArgumentError, match="beyond the numbers"):
        kp.ops.histogram(np.ones(3, np.int32), 4, (0, 2**40))
    with pytest.raises(kp.ArgumentTypeError, match="masked array"):
        kp.ops.histogram(ones, 4, np.ma.masked_array([0, 2], [False, True]))
    with pytest.raises(kp.InvalidArgumentError, match="without axes"):
        kp.ops.nonzero(np.float32(1))
    with pytest.raises(kp.InvalidArgumentError, match="only 3"):
        kp.ops.compress(np.ones(4, bool), ones)


def weights_of(dtype, count, seed=1):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=count) * 100
    if dtype == "float64":
        w *= 10.0 ** rng.uniform(-12, 3, count)
    return (abs(w) if np.dtype(dtype).kind in "ub" else w).astype(dtype)


def exact_sums(x, w, length):
    found = [math.fsum(float(each) for each in w[x == n]) for n in range(length)]
    return np.array(found)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint32", "int64", "bool"])
def test_sums_of_weights(mgr, needs, dtype):
    if dtype.endswith("64"):
        needs(mgr, "shaderInt64" if dtype[0] == "i" else "shaderFloat64")
    x = np.random.default_rng(0).integers(0, 40, 20_000, dtype=np.int32)
    w = weights_of(dtype, x.size)
    want = exact_sums(x, w, 40)
    got = kp.ops.bincount(x, w)
    assert got.dtype == (np.float64 if "shaderFloat64" in mgr.enabled_features else np.float32)
    ulp = np.spacing(abs(want).astype(got.dtype)).astype(np.float64)
    assert (abs(got - want) <= 2 * ulp).all()
    np.testing.assert_array_equal(kp.ops.bincount(x, w, 40), got)
    order = np.random.default_rng(2).permutation(x.size)
    np.testing.assert_array_equal(kp.ops.bincount(x[order], w[order]), got)  # in any order
    assert kp.ops.bincount(x, w, minlength=45).tolist() == [*got.tolist(), 0, 0, 0, 0, 0]
    if dtype != "bool":
        counts, _ = kp.ops.histogram(x, 7, (0, 35), weights=w)
        wanted = exact_sums(np.where(x == 35, 34, x) // 5, w, 7)
        assert counts.dtype == w.dtype
        if w.dtype.kind == "f":
            np.testing.assert_allclose(counts, wanted, 2 * np.finfo(w.dtype).eps)
        else:
            np.testing.assert_array_equal(counts, wanted.astype(np.int64).astype(w.dtype))


def test_odd_weights(mgr):
    inf, nan = np.inf, np.nan
    x = np.int32([0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 9, -1])
    w = np.float32([inf, 1, -inf, nan, 2.0**-60, -inf, inf, 2**50, 1, -(2.0**50), 3, 7])
    want = [inf, -inf, nan, 2.0**-60, nan, 2**50 + 1, -(2.0**50), 0, 0, 3, 0]
    assert kp.ops.int_counts(x, 11, w).astype(np.float32).tolist() == pytest.approx(
        np.float32(want).tolist(), rel=1e-7, nan_ok=True
    )
    tiny = np.float32([2.0**-126, 2.0**-126, 2.0**-125])
    assert kp.ops.bincount(np.int32([1, 1, 0]), tiny).tolist() == [2.0**-125, 2.0**-125]
    huge = np.float32([3e38, 3e38, -3e38])
    assert kp.ops.bincount(np.int32([0, 0, 0]), huge).tolist() == [huge[0]]
    assert kp.ops.bincount(x[:0], w[:0], 2).tolist() == [0, 0]
    ints = np.int32([2**31 - 1, 2**31 - 1, -(2**31)])
    assert kp.ops.histogram(np.float32([0, 0, 1]), 2, weights=ints)[0].tolist() == [-2, -(2**31)]  # they wrap
    t = mgr.tensor_t(np.float32([[1, 5], [2, 6]]))
    counted = kp.ops.int_counts.op(mgr.tensor_t(np.int32([1, 1])), 3, t[1])
    mgr.sequence().record(counted).eval()
    assert counted.results[0].tolist() == [0, 8, 0]


@examples(20)
@given(data=st.data())
def test_histograms_with_density_and_rules(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=20))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=shape).astype(np.float32)
    bins = data.draw(st.sampled_from([1, 5, [-1.0, 0.0, 0.5, 9.0], "auto", "fd"]))
    span = data.draw(st.sampled_from([None, (-1.0, 2.0)]))
    weights = data.draw(st.sampled_from([None, abs(x) + 1])) if not isinstance(bins, str) else None
    got, edges = kp.ops.histogram(x, bins, span, True, weights)
    with np.errstate(all="ignore"):
        want, theirs = np.histogram(x, bins, span, True, weights)
    np.testing.assert_array_equal(edges, theirs)
    np.testing.assert_allclose(got, want, 1e-5)


def test_errors_of_weights():
    x, w = np.zeros(4, np.int32), np.zeros(3, np.float32)
    wrong = kp.errors.InvalidArgumentError
    with pytest.raises(wrong, match=r"weights has the shape \(3,\), and x \(4,\)"):
        kp.ops.bincount(x, w)
    with pytest.raises(wrong, match="weights has the shape"):
        kp.ops.histogram(x, weights=w)
    with pytest.raises(wrong, match="no rules"):
        kp.ops.histogram(x, "auto", weights=x)
    for weights in (np.zeros(4, np.complex64), np.zeros(4, bool)):
        with pytest.raises(kp.errors.ArgumentTypeError, match="weights is of"):
            kp.ops.histogram(x, weights=weights)


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "?", "f2", "i8", "f8"])
def test_isin(mgr, needs, dtype):
    for each, feature in (("i8", "shaderInt64"), ("f8", "shaderFloat64")):
        if dtype == each:
            needs(mgr, feature)
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 9, (4, 5)).astype(dtype), rng.integers(0, 5, (2, 3)).astype(dtype)
    if a.dtype.kind == "f":
        a[0], b[0] = [np.nan, 0.0, -0.0, np.inf, 3], [np.nan, -0.0, np.inf]
    for invert in (False, True):
        expected = np.isin(a, b, invert=invert)
        for tests in (b, b[:0]):
            np.testing.assert_array_equal(
                kp.ops.isin(a, tests, invert=invert), np.isin(a, tests, invert=invert)
            )
        operation = kp.ops.isin.op(mgr.tensor_t(a), mgr.tensor_t(b), invert=invert)
        mgr.sequence().record(operation).eval()
        np.testing.assert_array_equal(operation.results[0].read(), expected)
        np.testing.assert_array_equal(
            kp.ops.isin(mgr.tensor_t(a)[:, ::2], mgr.tensor_t(b)[:, ::2], invert=invert).read(),
            np.isin(a[:, ::2], b[:, ::2], invert=invert),
        )


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("where", ["least", "most", "everywhere"])
def test_unique_of_ints(mgr, dtype, where):
    """Those near each other are counted, at both ends of their dtype, others sorted."""
    if np.dtype(dtype).itemsize == 8 and "shaderInt64" not in mgr.enabled_features:
        pytest.skip("the device has no such ints")
    ends = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    low = max(ends[0], ends[1] - 99) if where == "most" else ends[0]
    high = min(ends[1], ends[0] + 99) if where == "least" else ends[1]
    if dtype == "?":
        x = np.full((40, 25), where == "most")
        x[3] |= where == "everywhere"
    else:
        x = np.random.default_rng(3).integers(low, high, (40, 25), dtype, endpoint=True)
        x[0, :2] = low, high
    for each in (x, mgr.tensor_t(x), mgr.tensor_t(x)[:, ::2]):
        array = np.asarray(each)
        np.testing.assert_array_equal(kp.ops.unique(each), np.unique(array))
        got = kp.ops.unique(each, return_inverse=True, return_counts=True)
        wanted = np.unique(array, return_inverse=True, return_counts=True)
        for one, other in zip(got, wanted, strict=True):
            assert one.dtype.kind == other.dtype.kind
            np.testing.assert_array_equal(one, other)


def test_isin_of_two_dtypes(mgr, needs):
    needs(mgr, "shaderInt64")
    needs(mgr, "shaderFloat64")
    for a, b in (
        (np.int32([1, 2]), [2, 3]),
        (np.float32([0.5, 2]), np.int32([2])),
        (np.uint8([255]), np.int8([-1])),
    ):
        np.testing.assert_array_equal(kp.ops.isin(a, b), np.isin(a, b))
    with pytest.raises(kp.ArgumentTypeError, match="no common ints"):
        kp.ops.isin(np.uint64([2**63]), np.int64([-(2**63)]))
    with pytest.raises(kp.UnimplementedError):
        kp.ops.isin(np.complex64([1]), np.complex64([1]))
