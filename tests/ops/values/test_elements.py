"""Elementwise functions, against NumPy: values, dtypes and the stated errors."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.ops._values import elements as _elements

pytestmark = pytest.mark.usefixtures("current")

TWO = [name for name, each in _elements._TABLE.items() if "x2" in each.formula]
ONE = [name for name in _elements._TABLE if name not in (*TWO, "where")]
FLOATS = np.array(
    [0.0, -0.0, 1, -1, 0.5, 2.5, -3.75, 1e-15, 7e8, np.inf, -np.inf, np.nan, 100.25, -0.001], np.float32
)
INTS = np.array([0, 1, -1, 2, 7, -8, 30, 2**31 - 1, -(2**31)], np.int32)
# For functions of floats that are not defined, or not exact, everywhere.
DOMAINS = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "log1p"), (0.0, 30.0)),
    **dict.fromkeys(("arcsin", "arccos"), (-1.0, 1.0)),
    "arctanh": (-0.999, 0.999),
    "arccosh": (1.0, 500.0),
    **dict.fromkeys(("sin", "cos", "tan"), (-1e4, 1e4)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid"), (-60.0, 60.0)),
    "power": (0.1, 10.0),
}


def exact(name):
    return _elements._TABLE[name].error == "exact"


def numpy_of(name):
    if name == "erf":
        return pytest.importorskip("scipy.special").erf
    if name == "sigmoid":
        return lambda x: 1 / (1 + np.exp(-x))
    return getattr(np, name)


def allowed(name, expected, arguments):
    """The stated error, for float64 results `expected`."""
    text = _elements._TABLE[name].error
    ulp = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    if text.endswith("each unit of `x`"):
        return (8 + np.abs(arguments[0])) * ulp
    if text == "2^-20 of the larger of 1 and the result":
        return 2.0**-20 * np.maximum(1, np.abs(expected))
    if text.startswith("2^-18 of 1 + tan(x)**2"):
        return 2.0**-18 * (1 + expected**2)
    if text.startswith("2^-20 for x"):
        return np.full(expected.shape, 2.0**-20)
    return float(re.search(r"(\d+) ulp", text)[1]) * ulp


@pytest.mark.parametrize("name", [name for name in (*ONE, *TWO) if not exact(name)])
def test_stated_errors(name):
    low, high = DOMAINS.get(name, (-30.0, 30.0))
    rng = np.random.default_rng(5)
    count = 2 if name in TWO else 1
    given = [rng.uniform(low, high, 20_000) for _ in range(count)]
    given[0][::2] *= 10.0 ** rng.uniform(-5, 0, 10_000)  # also near 0
    given[0][1::4] = rng.uniform(-1.5, 1.5, 5_000)  # the ends of series
    arguments = [np.clip(each, low, high).astype(np.float32) for each in given]
    if name == "power":
        arguments[1] = rng.uniform(-5, 5, 20_000).astype(np.float32)
        arguments[0][:6000:3] = 1 + rng.normal(size=2000) * 0.01  # and long ones of numbers near 1
        arguments[1][:6000:3] = rng.uniform(-4000, 4000, 2000)
        arguments[0][1:6000:3] = 10 ** rng.uniform(-37, 38, 2000)
        arguments[1][1:6000:3] = rng.integers(-16, 17, 2000)
    found = getattr(kp.ops, name)(*arguments)
    wide = [each.astype(np.float64) for each in arguments]
    with np.errstate(all="ignore"):
        expected = numpy_of(name)(*wide)
    usual = (np.abs(expected) < 3.4e38) & (np.abs(expected) > 1e-30)
    assert found.dtype == np.float32
    off = np.abs(found - expected)[usual]
    assert (off <= allowed(name, expected, wide)[usual]).all(), off.max()


def narrow(name, values):
    """Whether the device computes with float32 for ints, as it has no float64, and rounds otherwise."""
    inexact = ("degrees", "radians", "nextafter")
    return values is INTS and name in inexact and "shaderFloat64" not in kp.manager().enabled_features


@pytest.mark.parametrize("name", [name for name in ONE if exact(name)])
def test_one_argument_exactly(name):
    function = getattr(kp.ops, name)
    for values in (FLOATS, INTS):
        if (values is FLOATS and name == "invert") or narrow(name, values):
            continue
        with np.errstate(all="ignore"):
            expected = numpy_of(name)(values)
        found = function(values)
        if expected.dtype == np.float64:  # rint of ints, on a device that may lack it
            expected, found = expected.astype(np.float32), found.astype(np.float32)
        np.testing.assert_array_equal(found, expected)
        if name != "sign":
            signed = ~np.isnan(values)
            np.testing.assert_array_equal(np.signbit(found)[signed], np.signbit(expected)[signed])


@pytest.mark.parametrize("name", [name for name in TWO if exact(name)])
def test_two_arguments_exactly(name):
    function = getattr(kp.ops, name)
    of_ints = name in ("gcd", "left_shift", "right_shift") or name.startswith("bitwise")
    for values in (INTS,) if of_ints else (FLOATS, INTS):
        if narrow(name, values):
            continue
        x, y = values[:, None], values[None, :]
        if name.endswith("shift"):
            y = np.abs(y[:, :7])  # NumPy's shifts by negative numbers are undefined
        if name == "gcd":
            x, y = x[:7], y[:, :7]
        if name in ("floor_divide", "remainder", "fmod") and values is FLOATS:
            # Their cases with infinities and zeros have tests of their own (tests/formulas/test_formula.py).
            x, y = x[2:7], y[:, 2:7]
        with np.errstate(all="ignore"):
            expected = numpy_of(name)(x, y)
        if values is INTS and name in ("floor_divide", "remainder", "fmod"):
            expected = np.where(y == 0, 0, expected)
        found = function(x, y)
        if expected.dtype == np.float64:
            expected, found = expected.astype(np.float32), found.astype(np.float32)
        np.testing.assert_array_equal(found, expected)


def test_where_and_clip(mgr):
    t = mgr.tensor([-3.0, 0, 2, 9])
    assert kp.ops.where(t, t, 7.0).tolist() == [-3, 7, 2, 9]
    assert kp.ops.clip(t, -1, 5, out=t) is t
    assert t.read().tolist() == [-1, 0, 2, 5]


@pytest.mark.capability(
    "I24",
    "conversion to another dtype on the device",
    "Tensor.astype, kp.ops.astype",
    "reference/ops_elements",
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("given", [np.float32, np.float16])
def test_floats_become_ints_within_their_range(dtype, given):
    with np.errstate(over="ignore"):
        x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 0.5, 1.5, -1.5, 127.9, 65504, 255, 256], given)
        limits = np.iinfo(dtype)
        expected = np.clip(np.trunc(np.nan_to_num(x.astype(np.float64), posinf=1e30)), limits.min, limits.max)
    found = kp.ops.astype(x, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.astype(dtype))


def test_ints_wrap_and_floats_round():
    x = np.array([300, -129, 2**31 - 1, 255], np.int32)
    for dtype in ("int8", "uint8", "int16", "uint32", "float32", "bool"):
        np.testing.assert_array_equal(kp.ops.astype(x, dtype), x.astype(dtype))
    y = np.array([2049, 1e5, -3.14159, 1e-7], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(kp.ops.astype(y, "float16"), y.astype(np.float16))
    with pytest.raises(kp.ArgumentTypeError, match="nothing"):
        kp.ops.astype(y, "nothing")


def test_round():
    x = np.array([0.5, 1.5, 2.345, -7.125, 1234.5678, np.inf, np.nan], np.float32)
    for decimals in (0, 1, 2, -2):
        np.testing.assert_allclose(kp.ops.round(x, decimals), np.round(x, decimals), rtol=4e-7)
    np.testing.assert_array_equal(kp.ops.round(INTS, 1), INTS)
    with pytest.raises(kp.InvalidArgumentError, match="a is of ints; convert it"):
        kp.ops.round(INTS, -1)
    with pytest.raises(kp.InvalidArgumentError, match="the most are 10"):
        kp.ops.round(x, 11)


def test_views_broadcasting_and_recording(mgr):
    x = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32)
    t, out = mgr.tensor_t(x), mgr.empty((4, 3))
    np.testing.assert_array_equal(kp.ops.add(t[:, ::2], t[0, 3:]).read(), x[:, ::2] + x[0, 3:])
    sequence = mgr.sequence().record(kp.ops.maximum.op(t[:, :3], 0.25, out=out), kp.OpSyncLocal([out]))
    sequence.eval()
    np.testing.assert_array_equal(out.numpy(), np.maximum(x[:, :3], np.float32(0.25)))
    t[:] = -x
    sequence.eval()
    np.testing.assert_array_equal(out.read(), np.maximum(-x[:, :3], np.float32(0.25)))


@pytest.mark.own_driver
def test_parameters_have_numpys_names():
    for name in (*ONE, *TWO):
        found = list(inspect.signature(getattr(kp.ops, name)).parameters)[: 2 if name in TWO else 1]
        assert found == (["x1", "x2"] if name in TWO else ["x"]), name


BOUNDS = [
    0, 5, -1, 127, 128, -128, -129, 255, 256, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32,
]  # fmt: skip
BOUNDS += [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, -(2**70), 2**70]


def of_dtype(dtype):
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.max, 0, 5, 100], dtype)


def same(name, *args):
    """NumPy's result, or an OverflowError as NumPy's."""
    try:
        expected = getattr(np, name)(*args)
    except OverflowError:
        with pytest.raises(OverflowError) as caught:
            getattr(kp.ops, name)(*args)
        assert type(caught.value) is kp.errors.NumberRangeError and "out of bounds" in str(caught.value)
        return
    found = np.asarray(getattr(kp.ops, name)(*args))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "uint32", "int64", "uint64"])
def test_comparisons_with_ints_beyond_the_dtype(mgr, needs, dtype):
    if dtype.endswith("64"):
        needs(mgr, "shaderInt64")
    x = of_dtype(dtype)
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        for bound in BOUNDS:
            same(name, x, bound)
            same(name, bound, x)
    assert kp.ops.less(np.array([True, False]), 2**70).tolist() == [True, True]
    between = kp.ops.elementwise("(x < a * b) & (x > 2 - a)")
    for a in (3, 2**40, -(2**40), 7):  # one prepared call after the other
        number = [int(each) for each in x]
        assert between(x, a, 1).tolist() == [each < a and each > 2 - a for each in number]
        below = kp.ops.reduction("x < n", "a + b", dtype="int32")(x, a)
        assert below == sum(each < a for each in number)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64"])
def test_ints_beyond_the_dtype_elsewhere(mgr, needs, dtype):
    if dtype == "int64":
        needs(mgr, "shaderInt64")
    x = of_dtype(dtype)
    for bound in BOUNDS:
        same("clip", x, bound, None)
        same("clip", x, None, bound)
        same("clip", x, 3, bound)
        same("minimum", x, bound)
        same("maximum", bound, x)
        same("add", x, bound)
    with pytest.raises(OverflowError, match="out of bounds"):
        kp.ops.where(x, x, 2**70)
    with pytest.raises(OverflowError, match="column 9"):
        kp.ops.elementwise("clip(x, 2 ** 65, None)")(x)
    assert kp.ops.elementwise("clip(x, None, 2 ** 65)")(x).tolist() == x.tolist()


def test_ints_beyond_all_with_floats():
    x = np.float32([1, 2.0**70])
    assert kp.ops.less(x, 2**71).tolist() == [True, True] and kp.ops.equal(x, 2**70).tolist() == [False, True]
    assert kp.ops.add(x, 2**130).tolist() == [np.inf, np.inf]
    same("less", x, 10**400)


def test_clip_with_one_bound(mgr):
    t = mgr.tensor([-3.0, 0, 2, 9])
    assert kp.ops.clip(t, 1).tolist() == [1, 1, 2, 9]
    assert kp.ops.clip(t, a_max=1).tolist() == kp.ops.clip(t, None, 1).tolist() == [-3, 0, 1, 1]
    assert kp.ops.clip(t).tolist() == t.tolist()
    assert kp.ops.clip(t[::2], mgr.tensor([1, 1]), None).tolist() == [1, 2]
    assert np.isnan(kp.ops.clip(t, None, np.nan).read()).all()
    operation = kp.ops.clip.op(t, None, 2, out=t)
    mgr.sequence().record(operation).eval()
    assert t.tolist() == [-3, 0, 2, 2]
    scaled = kp.ops.clip(kp.ops.elementwise("2 * x"), kp.ops.elementwise("low"), kp.ops.elementwise("high"))
    assert scaled(t, -1, 3).tolist() == [-1, 0, 3, 3]
    with pytest.raises(kp.errors.ArgumentTypeError):
        kp.ops.clip(None, 1, 2)
    assert kp.ops.clip(np.array([1j, 3], np.complex64), 1, 2j + 2).tolist() == [1, 2 + 2j]


@pytest.mark.parametrize("name", ["hypot", "arctan2", "copysign", "logaddexp"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float32"])
def test_dtypes_of_real_functions_of_an_int(mgr, needs, name, dtype):
    if dtype != "float32":
        needs(mgr, "shaderFloat64")
    x = np.array([1, 0], dtype)
    for number in (3, 2**40 if dtype in ("bool", "float32") else 100, 2.5, True):
        expected = getattr(np, name)(x, number)
        found = getattr(kp.ops, name)(x, number)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-3 if expected.dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p"])
def test_logarithms_near_1(name):
    rng = np.random.default_rng(9)
    near = rng.normal(size=20_000) * 10.0 ** rng.uniform(-7, -0.3, 20_000)
    x = np.concatenate([near, rng.uniform(-0.6, 1.1, 20_000), [2.0**-24, -(2.0**-24), 2.0**-23, 0, -0.5, 1]])
    x = (x if name == "log1p" else 1 + x).astype(np.float32)
    x = x[(x > -1) & (x != 0)] if name == "log1p" else x[x > 0]
    expected = getattr(np, name)(x.astype(np.float64))
    found = getattr(kp.ops, name)(x)
    ulps = np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert ulps.max() <= (8 if name == "log1p" else 5)
