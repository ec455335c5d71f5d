"""Medians, quantiles and percentiles, against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import kompute_py as kp

pytestmark = [
    pytest.mark.usefixtures("current"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

ops = kp.ops
METHODS = [
    "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
]  # fmt: skip
TAKING = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def numbers(dtype, holes=False):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 4, 5)) * 9
    x = (np.abs(x) if dtype[0] == "u" else x).astype(dtype)
    if holes:
        x[rng.random(x.shape) < 0.3] = np.nan
        x[1, :, 2] = np.nan
    return x


def on_device(mgr, dtype):
    """`dtype`, or float32 for the float64 that the device lacks."""
    lacks = dtype == np.float64 and "shaderFloat64" not in mgr.enabled_features
    return np.dtype(np.float32) if lacks else dtype


def close(got, expected, dtype):
    got = np.asarray(got.read() if isinstance(got, kp.Tensor) else got)
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got.astype(float), expected, 2e-3 if dtype == "f2" else 1e-5, 1e-5)


def test_between_infinities(mgr):
    """As the docstring says; NumPy's own numbers depend on which neighbour is nearer."""
    inf = np.inf
    for pair, between in (([1, inf], inf), ([-inf, 1], -inf), ([inf, inf], inf), ([-inf, inf], np.nan)):
        x = mgr.tensor(pair)
        np.testing.assert_array_equal(
            ops.quantile(x, [0, 0.25, 0.5, 0.75, 1]), [pair[0], *[between] * 3, pair[1]]
        )
        np.testing.assert_array_equal(ops.median(x), between)


@pytest.mark.parametrize(
    "dtype, method",
    [("f4", each) for each in METHODS]
    + [(dtype, each) for dtype in ("f8", "f2", "i4", "u1") for each in ("linear", "nearest")],
)
def test_each_method(mgr, needs, dtype, method):
    if dtype not in ("f4", "f2"):
        needs(mgr, "shaderFloat64")
    x = numbers(dtype)
    exact = x.astype("f8") if x.dtype.kind == "f" else x
    for q, axis, keepdims in ((0.3, None, False), ([0, 0.25, 1], (0, 2), True), ([[0.1], [0.77]], 1, False)):
        got = ops.quantile(x, q, axis, method=method, keepdims=keepdims)
        close(got, np.quantile(exact, q, axis, method=method, keepdims=keepdims), dtype)
        numpys = on_device(mgr, np.quantile(x, q, axis, method=method).dtype)
        assert got.dtype == (x.dtype if method in TAKING else numpys)


@pytest.mark.parametrize("name", ["quantile", "nanpercentile"])
def test_dtypes_are_numpys(mgr, needs, name):
    """For each kind of q. (Of ints, the ints 0 and 1 as q give float64, too.)"""
    needs(mgr, "shaderFloat64")
    ours, numpys = getattr(ops, name), getattr(np, name)
    kinds = [0.3, [0.3, 0.5], (0.3,), np.array(0.3), np.array([0.3], "f4")]
    kinds += [each(0.3) for each in (np.float16, np.float32, np.float64)]
    for dtype in ("f2", "f4", "f8", "i1", "u4"):
        x = np.arange(4).astype(dtype)
        for q in kinds + ([0, [0, 1], np.array([1])] if dtype[0] == "f" else []):
            expected = numpys(x, q)
            got = ours(x, q)
            assert got.dtype == expected.dtype, (dtype, q)
            np.testing.assert_allclose(got, expected, 4e-3)


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "f2", "f8"])
@pytest.mark.parametrize("n", [1024, 1501])
def test_one_fraction_of_long_lines(mgr, needs, dtype, n):
    """They are selected, not sorted."""
    rng = np.random.default_rng(n)
    x = np.abs(np.round(rng.normal(size=(3, n)) * 9)).astype(dtype)
    if x.dtype.kind == "f":
        x[1, n // 3] = np.nan
    feature = {"u1": "shaderInt8", "f2": "shaderFloat16", "f8": "shaderFloat64"}.get(dtype)
    if feature:
        needs(mgr, feature)
    t = mgr.tensor_t(x)
    for method in [*METHODS, "closest_observation"]:
        for q in (0, 0.37, [0.5], 1):
            expected = np.quantile(x, q, axis=1, method=method)
            close(ops.quantile(t, q, axis=1, method=method), expected, dtype)
    made = ops.median.bind(t, axis=1)
    mgr.sequence().record(made).eval()
    close(made.results[0], np.median(x, axis=1), dtype)
    np.testing.assert_array_equal(np.asarray(ops.nanmedian(t, axis=1)), np.nanmedian(x, axis=1))


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i4"])
@pytest.mark.parametrize("holes", ["none", "few", "most", "all but one", "all"])
def test_one_fraction_of_a_long_line_with_nan(mgr, needs, dtype, holes):
    """It is selected too: the host knows how many elements there are."""
    feature = {"f2": "shaderFloat16", "f8": "shaderFloat64"}.get(dtype)
    if feature:
        needs(mgr, feature)
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(size=(37, 41)) * 9).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 0] = -0.0
        share = {"none": 0, "few": 0.01, "most": 0.9}.get(holes, 1)
        x[rng.random(x.shape) < share] = np.nan
        if holes == "all but one":
            x[20, 20] = 7
    t = mgr.tensor_t(x)
    for q, method in ((0.5, "linear"), (0.37, "hazen"), (0, "linear"), (1, "midpoint"), (0.8, "nearest")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy: only NaN
            expected = np.nanquantile(x, q, method=method)
        close(ops.nanquantile(t, q, method=method), expected, dtype)
        close(ops.nanquantile(x, [q], method=method), np.reshape(expected, 1), dtype)
        made = ops.nanquantile.bind(t, q, method=method)  # recorded, it sorts
        mgr.sequence().record(made).eval()
        close(made.results[0], expected, dtype)
    if x.dtype.kind == "f":
        t.write(np.where(x > 9, np.inf, np.where(x < -9, -np.inf, x)).astype(dtype))
        for q in (0.01, 0.1, 0.5, 0.9, 1):
            made = ops.nanquantile.bind(t, q)
            mgr.sequence().record(made).eval()
            np.testing.assert_array_equal(ops.nanquantile(t, q).read(), made.results[0].read())


@pytest.mark.parametrize("method", ["linear", "nearest", "midpoint", "hazen"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_nan(mgr, method, axis):
    x = numbers("f4", holes=True)
    t = mgr.tensor_t(x)
    exact = x.astype("f8")
    for q in (0.4, [0.1, 0.9]):
        expected = np.nanquantile(exact, q, axis, method=method)
        close(ops.nanquantile(t, q, axis, method=method), expected, "f4")
        operation = ops.nanquantile.op(t, q, axis, method=method)
        mgr.sequence().record(operation).eval()
        close(operation.results[0], expected, "f4")
        close(ops.quantile(t, q, axis, method=method), np.quantile(exact, q, axis, method=method), "f4")


def test_names_out_and_parts(mgr):
    x = numbers("f4")
    t = mgr.tensor_t(x)
    for name, rest in (
        ("median", ()),
        ("nanmedian", ()),
        ("percentile", (30,)),
        ("nanpercentile", ([5, 95],)),
    ):
        expected = getattr(np, name)(x[::2, ::-1], *rest, axis=1)
        close(getattr(ops, name)(t[::2, ::-1], *rest, 1), expected, "f4")
        operation = getattr(ops, name).op(t[::2, ::-1], *rest, axis=1)
        mgr.sequence().record(operation).eval()
        close(operation.results[0], expected, "f4")
        out = mgr.zeros(expected.shape, on_device(mgr, expected.dtype))
        assert getattr(ops, name)(t[::2, ::-1], *rest, 1, out=out) is out
        close(out, expected, "f4")
    assert ops.median(np.array([True, False, True])) == 1


def test_special_values(mgr):
    inf, nan = np.inf, np.nan
    largest = np.finfo(np.float32).max
    for values, expected in (
        ([inf] * 4, inf),
        ([-inf, inf], nan),
        ([-inf, -inf, 5], -inf),
        ([5, inf], inf),
        ([largest, -largest], 0),
        ([largest, largest], largest),
        ([3], 3),
        ([nan, 1, 2], nan),
    ):
        np.testing.assert_equal(float(ops.median(np.float32(values))), float(expected), str(values))
    assert ops.quantile(np.float32([1, inf]), 0) == 1
    # The order statistic with an even number, of those at the same distance (R. J. Hyndman and Y. Fan).
    assert [
        int(ops.quantile(np.arange(1, 5, dtype=np.int32), q, method="closest_observation"))
        for q in (0.375, 0.625)
    ] == [
        2,
        2,
    ]
    assert np.isnan(ops.median(np.zeros(0, np.float32))) and ops.median(
        np.zeros((0, 2), np.float32), 0
    ).shape == (2,)
    assert ops.quantile(mgr.zeros((3, 2)), [], 0).shape == (0, 2)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: ops.quantile(x, 1.5), kp.InvalidArgumentError, "q is 1.5; give numbers from 0 to 1"),
        (lambda x: ops.percentile(x, [0, 101]), kp.InvalidArgumentError, "from 0 to 100"),
        (lambda x: ops.quantile(x, np.nan), kp.InvalidArgumentError, "q is nan"),
        (lambda x: ops.median(x, np.broadcast_to(1, (2**40,))), kp.InvalidArgumentError, "more than"),
        (lambda x: ops.quantile(x, np.broadcast_to(0.5, (2**40,))), kp.InvalidArgumentError, "the most are"),
        (lambda x: ops.quantile(x, "half"), kp.ArgumentTypeError, "is a str"),
        (lambda x: ops.quantile(x, 1j), kp.ArgumentTypeError, "q is 1j"),
        (
            lambda x: ops.quantile(x, 0.5, method="cubic"),
            kp.InvalidArgumentError,
            "the methods are linear, lower",
        ),
        (lambda x: ops.median(x, 3), kp.InvalidArgumentError, "axis is 3"),
        (lambda x: ops.median(x, (0, 0)), kp.InvalidArgumentError, "twice"),
        (lambda x: ops.median(x, "x"), kp.ArgumentTypeError, "axis"),
        (lambda x: ops.median(x.astype("F")), kp.UnimplementedError, "complex"),
        (
            lambda x: ops.quantile(x[:0].astype("i4"), 0.5, method="lower"),
            kp.InvalidArgumentError,
            "no elements",
        ),
        (
            lambda x: ops.median(np.broadcast_to(np.float32(1), (2**20, 2**20))),
            kp.InvalidArgumentError,
            "32 bits",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call(numbers("f4"))
