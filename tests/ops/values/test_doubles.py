"""Functions of float64, against NumPy's long doubles, and against decimals where an argument is huge."""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext

import numpy as np
import pytest

import kompute_py as kp
from tests.support.subnormals import flushed, flushes

pytestmark = pytest.mark.each_driver

ops = kp.ops
LONG = np.longdouble
ODD = [0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 0.5, -0.5, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308, 1e-300]
ODD += [709.7, -745.0, -740.0, 710.0, 1e22, np.pi, np.pi / 2, 1e5, 99999.9, 2.0**53, 1e-9, 1.4142135623730951]
N = 4000


@pytest.fixture(autouse=True)
def default(mgr, needs):
    """The test's Manager is the one that calls with arrays use."""
    needs(mgr, "shaderFloat64")
    if np.finfo(LONG).nmant < 60:
        pytest.skip("long doubles are no more exact than doubles here")
    with mgr.current():
        yield


def arguments(kind):
    rng = np.random.default_rng(4)
    if kind == "any":
        parts = [rng.normal(size=N) * 10.0 ** rng.integers(-12, 12, N), rng.uniform(-800, 800, N)]
        parts.append(rng.uniform(-2, 2, N))
    elif kind == "positive":
        parts = [10.0 ** rng.uniform(-320, 308, N), rng.uniform(0, 3, N), 1 + rng.normal(size=N) * 1e-8]
        parts += [10.0 ** np.arange(-20, 20), 2.0 ** np.arange(-1070, 1000, 7)]
    elif kind == "unit":
        parts = [rng.uniform(-1, 1, N), 1 - 10.0 ** rng.uniform(-16, 0, N), 10.0 ** rng.uniform(-20, 0, N)]
    else:  # angles that long doubles reduce exactly enough
        parts = [rng.uniform(-2e5, 2e5, N), np.round(rng.uniform(0, 1e4, N)) * np.pi / 2, rng.normal(size=N)]
    found = np.concatenate([ODD, *parts])
    return np.where(np.abs(found) < 1e6, found, 0.25) if kind == "angle" else found


def beyond(found, expected, most, scale):
    """The places that are more than `most` ulp off, or have not NumPy's NaN, infinity or sign."""
    with np.errstate(all="ignore"):
        near = expected.astype(np.float64)
        step = np.spacing(np.abs(near if scale is None else scale)).astype(LONG)
        off = np.abs(found.astype(LONG) - expected) / np.where(np.isfinite(step) & (step > 0), step, 1)
    right = (found == near) | (off <= most)
    if scale is None:
        right &= np.signbit(found) == np.signbit(near)
    return ~np.where(np.isnan(near), np.isnan(found), right)


def check(mgr, found, function, args, most, scale=None):
    """`function` of long doubles tells what is right; where the device flushes subnormals, they may be 0."""
    found = np.asarray(found)
    assert found.dtype == np.float64
    with np.errstate(all="ignore"):
        expected = function(*(each.astype(LONG) for each in args))
        bad = beyond(found, expected, most, scale)
        if bad.any() and flushes(mgr):
            zero = (flushed(found, True) == 0) & (flushed(expected.astype(np.float64), True) == 0)
            low = function(*(flushed(each).astype(LONG) for each in args))
            bad &= ~zero & beyond(found, low, most, scale)
    assert not bad.any(), [each[bad][:5] for each in (found, expected, *args)]


KINDS = {
    "any": "exp exp2 expm1 sinh cosh tanh arcsinh arctan cbrt",
    "positive": "log log2 log10 log1p arccosh",
    "unit": "arcsin arccos arctanh",
    "angle": "sin cos tan",
}


@pytest.mark.parametrize(
    "name, kind", [(name, kind) for kind, names in KINDS.items() for name in names.split()]
)
def test_one_argument(mgr, name, kind):
    x = arguments(kind)
    ours = kp.ops.elementwise("cbrt(x)") if name == "cbrt" else getattr(ops, name)
    check(mgr, ours(x), getattr(np, name), [x], 4)


def test_two_arguments(mgr):
    rng = np.random.default_rng(5)
    x = np.concatenate([arguments("any"), arguments("positive")])
    y = rng.permutation(x)
    for name in ("arctan2", "hypot", "logaddexp"):
        largest = np.maximum(np.maximum(np.abs(x), np.abs(y)), 1)
        function = hypot if name == "hypot" else getattr(np, name)
        check(mgr, getattr(ops, name)(x, y), function, [x, y], 4, largest if name == "logaddexp" else None)


def hypot(x, y):
    """With NumPy's result for an infinity and a NaN."""
    return np.where(np.isinf(x) | np.isinf(y), np.inf, np.hypot(x, y))


def test_powers(mgr):
    rng = np.random.default_rng(7)
    x = np.concatenate([arguments("any"), arguments("positive"), 1 + rng.normal(size=N) * 1e-9])
    some = [
        0.5, -0.5, 2, -1, 3, 1e300, -1e300, 1e10, 7, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-20, 1 / 3, 1023,
    ]  # fmt: skip
    some += [5, 2.0**53, 2.0**53 + 2, 2.0**62]
    for y in (rng.permutation(x), rng.choice(some, x.size), rng.uniform(-30, 30, x.size)):
        with np.errstate(all="ignore"):
            # Results near the ends of the range are as exact.
            y = np.where(rng.random(x.size) < 0.3, rng.uniform(-1080, 1030, x.size) / np.log2(abs(x)), y)
            y = np.where(np.isnan(y), 2.5, y)
        check(mgr, ops.power(x, y), np.power, [x, y], 4)
    odd = np.array([-np.inf, -2.0, -0.0, 0.0, 1.0, -1.0, np.inf, np.nan, 3.0])
    every, other = (each.ravel() for each in np.meshgrid(odd, [*odd, 0.5, -3.0, 5.0]))
    check(mgr, ops.power(every, other), np.power, [every, other], 4)
    np.testing.assert_allclose(ops.power(np.arange(1, 9), 0.7), np.arange(1, 9) ** 0.7, 1e-15)


@functools.cache
def half_pi():
    """Half of pi to 420 digits, by J. Machin's formula."""

    def inverse_tangent(x):
        term = total = Decimal(1) / x
        n = 1
        while abs(term) > Decimal(10) ** -419:
            n, term = n + 2, -term / (x * x)
            total += term / n
        return total

    with localcontext() as context:
        context.prec = 425
        return 2 * (4 * inverse_tangent(5) - inverse_tangent(239))


def sine(x):
    """The sine of a double as a decimal."""
    with localcontext() as context:
        context.prec = 420
        turns = (Decimal(x) / half_pi()).to_integral_value()
        rest = Decimal(x) - turns * half_pi()
    with localcontext() as context:
        context.prec = 50
        quadrant, rest = int(turns) % 4, +rest
        term, n = (rest, 1) if quadrant % 2 == 0 else (Decimal(1), 0)
        total = term
        while abs(term) > Decimal(10) ** -45 * abs(total):
            term, n = -term * rest * rest / ((n + 1) * (n + 2)), n + 2
            total += term
        return -total if quadrant >= 2 else total


def test_huge_angles():
    rng = np.random.default_rng(6)
    x = np.concatenate(
        [
            [
                5.319372648326541e255, -6381956970095103 * 2.0**797, 1e5, 1e22, 1.7976931348623157e308,
                413441.44719405076,
            ],
            rng.choice([-1, 1], 100) * 10.0 ** rng.uniform(5, 308, 100),
            np.round(rng.uniform(1e5, 1e6, 100)) * np.pi / 2,
        ]
    )  # fmt: skip
    exact = [sine(float(each)) for each in x]
    with localcontext() as context:
        context.prec = 425
        cosines = [(1 - each * each).sqrt() for each in exact]
    for name, expected in (("sin", exact), ("cos", cosines)):
        for got, wanted in zip(np.asarray(getattr(ops, name)(x)).tolist(), expected, strict=True):
            off = abs(abs(Decimal(got)) - abs(wanted))
            if name == "sin":
                off = abs(Decimal(got) - wanted)
            if name == "cos" and wanted < Decimal("1e-4"):
                continue  # 1 - sin^2 has too few digits
            assert off <= 4 * Decimal(float(np.spacing(abs(got))))


def test_ints_and_formulas(mgr):
    n = np.arange(-3, 4)
    np.testing.assert_allclose(ops.exp(n), np.exp(n), rtol=1e-15)
    t = mgr.tensor_t(np.linspace(-2, 2, 50))
    found = kp.ops.elementwise("sin(x) ** 2 + exp(-x * x) * log(2 + x * x)")(t).read()
    x = t.read()
    np.testing.assert_allclose(found, np.sin(x) ** 2 + np.exp(-x * x) * np.log(2 + x * x), rtol=1e-14)
    np.testing.assert_allclose(ops.sigmoid(t).read(), 1 / (1 + np.exp(-x)), rtol=1e-15)
