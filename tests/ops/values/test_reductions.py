"""Reductions by NumPy's names, against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.child import run_child
from tests.support.sampling import examples, sampled

pytestmark = pytest.mark.usefixtures("current")

ROUNDING = 2.0**-24
EXACT = ("min", "max", "any", "all", "argmin", "argmax", "count_nonzero")
FLOATING = ("sum", "mean", "var", "std", "vector_norm")
PLACES = ("argmin", "argmax")


def numpy_of(name, x, axis=None, keepdims=False):
    """NumPy's result, in float64 where rounding decides."""
    if name == "vector_norm":
        return np.sqrt(np.sum(x.astype(np.float64) ** 2, axis, keepdims=keepdims))
    if name in FLOATING:
        return getattr(np, name)(x.astype(np.float64), axis, keepdims=keepdims)
    if name == "count_nonzero":
        axis = axis if axis is None or isinstance(axis, int) else tuple(axis)
    return getattr(np, name)(x, axis, keepdims=keepdims)


def bound(name, x, axis, keepdims):
    """The documented error of a floating result."""
    x = x.astype(np.float64)
    if name in ("sum", "mean"):
        return 800 * ROUNDING * getattr(np, name)(np.abs(x), axis, keepdims=keepdims)
    if name == "vector_norm":
        return 800 * ROUNDING * numpy_of("vector_norm", x, axis, keepdims)
    exact = np.var(x, axis, keepdims=keepdims)
    of_var = 2000 * ROUNDING * (exact + np.mean(x, axis, keepdims=keepdims) ** 2 * 2000 * ROUNDING)
    if name == "var":
        return of_var
    return np.sqrt(exact + of_var) - np.sqrt(np.maximum(exact - of_var, 0))


def check(name, x, axis=None, keepdims=False, call=None):
    named = {"keepdims": keepdims}
    got = np.asarray((call or getattr(kp.ops, name))(x, axis=axis, **named))
    expected = numpy_of(name, x, axis, keepdims)
    assert got.shape == np.shape(expected)
    if name in EXACT:
        np.testing.assert_array_equal(got, expected)
    else:
        assert got.dtype == np.float32
        assert (np.abs(got - expected) <= bound(name, x, axis, keepdims)).all()


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("variant", ["run", "shared"])
@pytest.mark.parametrize("name", [*EXACT, *FLOATING])
def test_any_shape_and_axes(name, variant, data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=7))
    one = st.none() | st.integers(-len(shape), len(shape) - 1) if shape else st.none()
    several = st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1).map(tuple) if shape else one
    axis = data.draw(one if name in PLACES else one | several)
    x = data.draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([-3, -1.5, 0, 0, 0.25, 2, 7])))
    call = getattr(kp.ops, name).variant(variant)
    check(name, x, axis, data.draw(st.booleans()), call)


@pytest.mark.parametrize("variant", ["run", "shared"])
@pytest.mark.parametrize("name", ["mean", "var", "vector_norm", "argmax", "argmin"])
def test_long_lines_in_several_runs(name, variant):
    x = np.random.default_rng(3).normal(5, 2, (3, 40_009)).astype(np.float32)
    call = getattr(kp.ops, name).variant(variant)
    for axis in (None, 1):
        check(name, x, axis, call=call)


def test_a_variance_far_from_zero_keeps_its_digits():
    x = (10_000 + np.random.default_rng(0).normal(size=9_999)).astype(np.float32)
    assert abs(kp.ops.var(x) - np.var(x.astype(np.float64))) < 1e-3


@pytest.mark.capability(
    "S28", "the place of the greatest element", "kp.ops.argmax", "reference/ops_reductions"
)
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("variant", ["run", "shared"])
def test_ties_go_to_the_first_and_nan_wins(name, variant):
    rng = np.random.default_rng(2)
    call = getattr(kp.ops, name).variant(variant)
    for length in (9, 5000):
        x = rng.integers(0, 3, (4, length)).astype(np.float32)
        x[1, length // 3 :: 7] = np.nan
        x[2] = 1
        x[3, 5] = -np.inf if name == "argmin" else np.inf
        np.testing.assert_array_equal(call(x, axis=1), getattr(np, name)(x, 1))
        np.testing.assert_array_equal(call(x), getattr(np, name)(x))


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"],
)
def test_dtypes(mgr, dtype):
    dtype = np.dtype(dtype)
    wide = "shaderInt64" in mgr.enabled_features
    double = "shaderFloat64" in mgr.enabled_features
    if (dtype.itemsize == 8 and dtype.kind != "f" and not wide) or (dtype == np.float64 and not double):
        pytest.skip(f"the device has no {dtype}")
    low = 0 if dtype.kind in "bu" else -9
    x = np.random.default_rng(1).integers(low, 2 if dtype.kind == "b" else 9, (7, 11)).astype(dtype)
    if dtype.itemsize == 8 and dtype.kind in "iu":
        x[3, 4] = np.iinfo(dtype).max  # beyond float64's digits
        x[3, 5] = np.iinfo(dtype).max - 1
    for name in PLACES:
        got = getattr(kp.ops, name)(x, axis=1)
        assert got.dtype == (np.int64 if wide else np.int32)
        np.testing.assert_array_equal(got, getattr(np, name)(x, 1))
    for name in ("mean", "std"):
        got, expected = getattr(kp.ops, name)(x, axis=0), getattr(np, name)(x, 0)
        assert got.dtype == (expected.dtype if double or dtype == np.float16 else np.float32)
        tolerance = 4e-3 if dtype == np.float16 else 1e-4 if got.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=tolerance)
    got = kp.ops.sum(x, axis=0)
    if dtype.kind in "biu" and wide:
        np.testing.assert_array_equal(got, x.sum(0))
        assert got.dtype == x.sum(0).dtype


SPECIAL = ["sum", "prod", "mean", "min", "max", "ptp", "argmin", "argmax", "any", "all"]
SPECIAL += ["count_nonzero", "median", "nansum", "nanprod", "nanmean", "nanmin", "nanmax"]
SPECIAL += ["cumsum", "cumprod", "nancumsum", "nancumprod"]


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(mgr, needs, name, dtype):
    """Zeros with signs, infinities and NaN, few and many of them: all but means are exact."""
    if dtype == "float64":
        needs(mgr, "shaderFloat64")
    rng, (inf, nan) = np.random.default_rng(6), (np.inf, np.nan)
    pools = [
        [0.0, -0.0], [-inf], [nan], [inf, nan], [0.0, inf, -1], [-inf, inf, 1], [nan, -inf, 0.0, 1, -1, inf],
    ]  # fmt: skip
    for length in (1, 64, 2048):
        rows = np.array([rng.choice([*pool, *([1, -1] * n)], length) for pool in pools for n in (0, 9, 400)])
        rows[1::3, -1] = [pool[-1] for pool in pools]  # and at the end
        x = rows.astype(dtype)
        found, expected = getattr(kp.ops, name)(x, 1), getattr(np, name)(x, axis=1)
        rounded = 0 if "mean" not in name else 2e-3 if dtype == "float16" else 1e-6
        np.testing.assert_allclose(found, expected, rounded, err_msg=f"{length} elements")


NAMED = ["sum", "prod", "mean", "cumsum", "cumprod"]
INTS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
DTYPES = ["bool", *INTS, "float16", "float32", "float64", "complex64", "complex128"]
PAIRS = [(a, b) for a in DTYPES for b in DTYPES if b[0] == "c" or a[0] != "c"]


def numbers(dtype):
    """Small and large numbers, so that sums and products of small dtypes wrap and round."""
    rng = np.random.default_rng(2)
    x = rng.integers(-3, 4, (3, 40)) * rng.choice([1, 1, 1, 35], (3, 40))
    x = np.where(x == 0, 2, np.abs(x) if dtype[0] in "ub" else x)
    return (x * 1.25 if dtype[0] in "fc" else x).astype(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMED)
def test_elements_are_converted_before_they_are_combined(mgr, name):
    """As NumPy's: to a dtype that the call names. Floats become ints within their range here."""
    ours, numpys = getattr(kp.ops, name), getattr(np, name)
    absent = set() if "shaderInt64" in mgr.enabled_features else {"int64", "uint64"}
    absent |= set() if "shaderFloat64" in mgr.enabled_features else {"float64", "complex128"}
    for source, dtype in sampled(PAIRS[3 * NAMED.index(name) :: 32], PAIRS):
        whole_mean = name == "mean" and dtype in ("int32", "uint32") and "float64" in absent
        if {source, dtype} & absent or whole_mean:
            continue
        x = numbers(source)
        if "prod" in name:
            x = x[:, :6]
        if source[0] == "f" and dtype[0] in "iu":
            x = x[:, :5] % np.array(20, source)
        with np.errstate(all="ignore"):
            expected = numpys(x, axis=1, dtype=dtype)
        got = ours(x, axis=1, dtype=dtype)
        assert got.dtype == expected.dtype == dtype
        if got.dtype.kind in "biu":
            np.testing.assert_array_equal(got, expected, err_msg=f"{source} {dtype}")
        else:
            rtol = 2e-3 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(got, expected, rtol=rtol, err_msg=f"{source} {dtype}")


def test_dtypes_that_a_call_names(mgr, needs):
    x = np.float32([60000, 70000, -70000, 1 + 2**-11])
    with np.errstate(all="ignore"):
        expected = np.cumsum(x, dtype=np.float16)
    np.testing.assert_array_equal(kp.ops.cumsum(x, dtype="float16"), expected)  # 70000 is infinite there
    assert kp.ops.sum(x[3:], dtype="float16") == 1
    assert kp.ops.sum(np.float32([-1.9, 1.9, 300, np.nan]), dtype="int8") == 127
    assert kp.ops.mean(np.int8([1, 2, 5, 6]), dtype="int8") == 3 and kp.ops.sum(x, dtype=bool)
    with pytest.raises(kp.ArgumentTypeError, match=r"drops its imaginary part: take x\.real"):
        kp.ops.sum(np.complex64([1j]), dtype="float32")
    with pytest.raises(kp.ArgumentTypeError, match="dtype is 'floaty'; give a dtype of numbers"):
        kp.ops.sum(x, dtype="floaty")
    with pytest.raises(kp.InvalidArgumentError, match="var: dtype is int32; give one of floats"):
        kp.ops.var(x, dtype="int32")
    needs(mgr, "shaderFloat64")
    for name in ("var", "std"):
        got, expected = getattr(kp.ops, name)(x[1:], dtype=float), getattr(np, name)(x[1:], dtype=float)
        assert got.dtype == float
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def wraps():
    with warnings.catch_warnings(record=True) as told, kp.Manager() as mgr:
        warnings.simplefilter("always")
        x = mgr.tensor_t(np.arange(1000, dtype=np.int32))
        for name in ("sum", "prod", "cumsum"):
            getattr(kp.ops, name)(x)
            getattr(kp.ops, name)(x[:10])
        for short in (bool, np.int8):  # too few to wrap
            kp.ops.sum(mgr.tensor_t(np.ones(1000, short)))
        for dtype in ("int32", "float32"):
            kp.ops.sum(x, dtype=dtype)
        kp.ops.mean(x), kp.ops.dot(x, x), kp.ops.max(x), kp.ops.count_nonzero(x)
    return [str(each.message) for each in told if each.category is kp.KomputeWarning]


@pytest.mark.own_driver
def test_wraps_because_a_device_lacks_longer_ints_are_told_once():
    told = run_child(wraps, driver="null", config="int64=0")
    assert [each.partition(":")[0] for each in told] == ["sum", "prod", "cumsum"]
    assert all("lacks shaderInt64" in each and 'dtype="float32"' in each for each in told)
    assert not run_child(wraps, driver="null")


def test_no_elements():
    empty = np.zeros((0, 3), np.float32)
    assert np.isnan(kp.ops.mean(empty, axis=0)).all() and np.isnan(kp.ops.std(empty))
    assert kp.ops.sum(empty) == 0 and kp.ops.prod(empty) == 1 and kp.ops.norm(empty) == 0
    assert kp.ops.count_nonzero(empty) == 0 and not kp.ops.any(empty) and kp.ops.all(empty)
    assert kp.ops.mean(empty, axis=1).shape == (0,)
    for name in ("min", "argmax"):
        with pytest.raises(kp.InvalidArgumentError, match="no elements"):
            getattr(kp.ops, name)(empty, axis=0)


def test_views_and_given_results(mgr):
    x = np.random.default_rng(5).normal(size=(6, 8)).astype(np.float32)
    t, out = mgr.tensor_t(x), mgr.empty((3,), np.float32)
    assert kp.ops.max(t[1:4, ::2], axis=1, out=out) is out
    np.testing.assert_array_equal(out.read(), x[1:4, ::2].max(1))
    np.testing.assert_array_equal(np.asarray(kp.ops.argmin(t[:, 3])), x[:, 3].argmin())
    check("mean", x[::2], 0, call=lambda _, **named: kp.ops.mean(t[::2], **named))


def test_recorded(mgr):
    t, place, spread = mgr.tensor([3.0, 1, 4, 1, 5]), kp.ops.argmax(mgr.tensor([0.0])), mgr.zeros(())
    sequence = mgr.sequence().record(kp.ops.argmax.op(t, out=place), kp.ops.std.op(t, out=spread))
    sequence.record(kp.OpSyncLocal([place, spread])).eval()
    assert int(place) == 4
    assert float(spread) == pytest.approx(np.std([3, 1, 4, 1, 5]), rel=1e-6)
    t[:] = [9, 1, 4, 1, 5]
    sequence.eval()
    assert int(place) == 0


@pytest.mark.parametrize("order", [1, 2, np.inf, -np.inf])
def test_norms(order):
    x = np.random.default_rng(7).normal(size=(5, 6)).astype(np.float32)
    np.testing.assert_allclose(kp.ops.norm(x, order, axis=1), np.linalg.norm(x, order, 1), rtol=1e-6)


def test_dot():
    x, y = np.random.default_rng(8).normal(size=(2, 1001)).astype(np.float32)
    exact = np.dot(x.astype(np.float64), y)
    assert abs(kp.ops.dot(x, y) - exact) <= 800 * ROUNDING * np.abs(x * y).sum()
    np.testing.assert_array_equal(kp.ops.dot(np.arange(5, dtype=np.int32), np.arange(5, dtype=np.int32)), 30)
    for other in (y[:3], y.reshape(7, 143), y[:1]):
        with pytest.raises(kp.InvalidArgumentError, match=r"give vectors of one length. kp\.ops\.matmul"):
            kp.ops.dot(x, other)


def test_wrong_axes():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="axis is 2, and there are 2 axes"):
        kp.ops.mean(x, 2)
    with pytest.raises(kp.InvalidArgumentError, match="give one axis, or None"):
        kp.ops.argmax(x, (0, 1))


def test_finish_of_a_reduction():
    """`finish` has the combined value and the number of elements."""
    rms = kp.ops.reduction("x * x", "a + b", 0, finish="sqrt(a / n)")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(rms(x, axis=1), np.sqrt((x * x).mean(1)), rtol=1e-6)
    assert np.isnan(rms(x[:0]))
    halved = kp.ops.reduction("x", "maximum(a, b)", 7, finish="a // 2")
    assert halved(np.array([3, 9, 4], np.int32)) == 4 and halved(np.zeros(0, np.int32)) == 3
    for finish in ("b / n", "n", "a + x"):
        with pytest.raises(kp.InvalidArgumentError, match="a, the combined value, and n"):
            kp.ops.reduction(finish=finish)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_elements_become_floats_without_a_quotient(name, dtype):
    """On GPUs a quotient is a function of many instructions, which would be called for each element."""
    formula = getattr(kp.ops, name).__wrapped__.formula
    lines, _ = formula.typed({"a": np.dtype(dtype)}, frozenset()).glsl({"a": "x_load(i)"})
    assert lines and not [line for line in lines if "kp_quo" in line or "div" in line]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*FLOATING[:4], "prod", "median", "nansum", "nanmean", "nanvar"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "F", "D"])
def test_of_no_elements_as_numpy(mgr, needs, name, dtype):
    if dtype in ("f8", "D"):
        needs(mgr, "shaderFloat64")
    if name.startswith("nan"):
        needs(mgr, "shaderInt64")
    for shape, axis in (((0,), None), ((3, 0), 1), ((0, 3), 0), ((0, 3), 1)):
        x = np.zeros(shape, dtype)
        expected = np.asarray(getattr(np, name)(x, axis=axis))
        got = np.asarray(getattr(kp.ops, name)(mgr.tensor_t(x), axis=axis))
        for part in ("real", "imag"):
            np.testing.assert_array_equal(getattr(got, part), getattr(expected, part))
