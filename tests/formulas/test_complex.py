"""Formulas of complex numbers against NumPy: stated errors, branch cuts, signed zeros, infinities, NaN."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._formulas.formula import Formula
from tests.support.sampling import groups

pytestmark = pytest.mark.usefixtures("current")

BOTH = ("complex64", "complex128")
GUIDE = Path(__file__).parents[2] / "docs/reference/operation_rules.md"
ERRORS = {
    name: error
    for names, error in re.findall(r"^\| `([a-z0-9 ]+)` \| `([^|]+)` \|$", GUIDE.read_text(), re.M)
    for name in names.split()
}
FUNCTIONS = (
    *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
    *("arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "sign"),
)
PARTS = pytest.mark.parametrize(
    "names", [FUNCTIONS[:8], FUNCTIONS[8:14], FUNCTIONS[14:]], ids=["exp", "sin", "sinh"]
)


@pytest.fixture(params=BOTH)
def dtype(request, mgr):
    if request.param == "complex128" and "shaderFloat64" not in mgr.enabled_features:
        with pytest.raises(kp.UnimplementedError, match="no shaderFloat64, and x is of complex128"):
            kp.ops.elementwise("x + x")(np.ones(2, complex))
        pytest.skip("the device has no float64")
    return np.dtype(request.param)


def all_of(names, x):
    """Several functions in one kernel: compiling takes the time of these tests."""
    return kp.ops.elementwise("; ".join(f"r_{name} = {name}(x)" for name in names))(x)


def exactly(name, x):
    """A function in more digits."""
    z = x.astype(np.clongdouble)
    if name == "log1p":
        return np.where(np.abs(z) < 0.5, 2 * np.arctanh(z / (2 + z)), np.log(1 + z))
    if name == "expm1":
        real = np.expm1(z.real) * np.cos(z.imag) - 2 * np.sin(z.imag / 2) ** 2
        return real + 1j * np.exp(z.real) * np.sin(z.imag)
    return getattr(np, name)(z)


@PARTS
def test_errors(dtype, names):
    rng = np.random.default_rng(0)
    turn = np.exp(1j * rng.uniform(-np.pi, np.pi, 3000))
    z = turn * np.concatenate([10 ** rng.uniform(-6, 1.3, 2500), 10 ** rng.uniform(-18, 12, 500)])
    near = 1e-3 * z[:500]  # branch points and zeros
    x = np.concatenate([z, turn[:500], 1 + near, -1 + near, 1j + near, near - 1j]).astype(dtype)
    for name, found in zip(names, all_of(names, x), strict=True):
        with np.errstate(all="ignore"):
            expected = exactly(name, x)
            allowed = eval(
                ERRORS[name], {"e": np.finfo(dtype).eps / 2, "r": np.abs(expected), "x": np.abs(x)}
            )
            usual = (np.abs(expected) > 1e-30) & (np.abs(expected) < 1e37) & (x != 0)
            if "x" in ERRORS[name]:
                usual &= (np.abs(x.real) < 80) & (np.abs(x.imag) < 1e4)
            off = np.where(usual, np.abs(found - expected) / np.where(usual, allowed, 1), 0)
        assert found.dtype == dtype
        worst = np.argmax(off)
        assert off[worst] <= 1, (name, x[worst], found[worst], expected[worst])


def edges(dtype):
    values = np.array([0, -0.0, 1, -1, 0.5, -2, 3, np.inf, -np.inf, np.nan, 1e30], dtype).real
    x = np.empty((values.size, values.size), dtype)
    x.real, x.imag = values[:, None], values
    return x.ravel()


@PARTS
def test_edges(dtype, names):
    """Both sides of branch cuts have their own values, which the signs of zeros tell. Annex G of C99 leaves
    the signs of zeros and infinities beside a NaN open, and of exp(-inf) in no direction.
    """
    x = edges(dtype)
    for name, found in zip(names, all_of(names, x), strict=True):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        for z, one, other in zip(x, found, expected, strict=True):
            open_ = np.isnan(other) or np.isnan(z) or (name[:3] == "exp" and not np.isfinite(z.imag))
            if name == "expm1" and (not np.isfinite(z.imag) or abs(z.real) > 100 or np.isnan(z.real)):
                continue  # NumPy multiplies infinities with zeros
            for part, wanted in ((one.real, other.real), (one.imag, other.imag)):
                where = f"{name}({z!r}) is {one!r}, not {other!r}"
                if np.isnan(wanted) or np.isinf(wanted) or wanted == 0:
                    assert np.isnan(part) if np.isnan(wanted) else abs(part) == abs(wanted), where
                    signed = not open_ and not (name == "expm1" and wanted == 0)
                    assert not signed or np.signbit(part) == np.signbit(wanted), where
                else:
                    scale = abs(other) if np.isfinite(other) else abs(wanted)
                    assert abs(part - wanted) <= 4e-6 * scale, where


def test_numbers_far_from_one(dtype):
    """Quotients and directions of numbers next to the ends of the range: nothing between may overflow, nor
    vanish, also where subnormal numbers do.
    """
    info, rng, n = np.finfo(dtype), np.random.default_rng(2), 3000
    least = float(info.smallest_normal)

    def drawn():
        parts = 2.0 ** rng.uniform(np.log2(least), np.log2(float(info.max)), (2, n)) * rng.choice(
            [-1, 1], (2, n)
        )
        parts[:, :9] = least * 2
        parts[:, 9:20] = float(info.max) * 0.9
        near = parts[0] * rng.normal(size=n)
        parts[1] = np.where(
            (abs(near) > least) & (abs(near) < float(info.max)) & (np.arange(n) % 2 == 0), near, parts[1]
        )
        return rng.permutation(parts.T).T[0] + 1j * parts[1]

    with np.errstate(all="ignore"):
        x, y = drawn().astype(dtype), drawn().astype(dtype)
        cases = {
            "x / y": x.astype(np.clongdouble) / y.astype(np.clongdouble),
            "reciprocal(y)": 1 / y.astype(np.clongdouble),
            "sign(x)": x.astype(np.clongdouble) / np.abs(x.astype(np.clongdouble)),
        }
    for text, expected in cases.items():
        operation = kp.ops.elementwise(text)
        found = operation(**{name: {"x": x, "y": y}[name] for name in operation.formula.names})
        with np.errstate(all="ignore"):
            inside = (np.abs(expected) > least) & (np.abs(expected) < float(info.max) / 2)
            off = np.abs(found - expected) - 8 * info.eps * np.abs(expected) - 4 * least
        bad = np.nonzero(inside & ~(off <= 0))[0][:3]
        assert inside.sum() > 500 and not bad.size, (text, x[bad], y[bad], found[bad], expected[bad])


def values(dtype, seed):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-4, 5, 200).astype(dtype)
    found = rng.choice([-1.5, -0.0, 0.0, 0.25, 1, 2, 3.5], 200).astype(dtype)
    if np.dtype(dtype).kind == "c":
        found.imag = rng.choice([-1.5, -0.0, 0.0, 0.5, 1, 2], 200)
        found[:3] = complex(np.nan, 1), complex(1, np.nan), complex(1, np.inf)
    return found


TEXTS = """x + y; x - y; x * y; x / y; x == y; x != y; x < y; x <= y; x > y; x >= y; minimum(x, y);
    maximum(x, y); fmin(x, y); fmax(x, y); clip(x, -1, y); where(x < y, x, y); -x; +x; abs(x); x.real;
    x.imag; conj(x); square(x); reciprocal(x); isnan(x); isinf(x); isfinite(x); not x; x and y; x **
    2; x ** 3; x ** -1; x + 1; x * 2.5; x + 1j; 3 - x; x < 1; x == 1j; bool_(x); where(x, y, 2j)"""


@pytest.mark.parametrize("other", ["self", "float32", "float64", "int32", "complex64"])
def test_operators(mgr, dtype, other):
    other = dtype if other == "self" else np.dtype(other)
    result = np.result_type(dtype, other)
    if "float64" in (other.name, result.name.replace("complex128", "float64")):
        if "shaderFloat64" not in mgr.enabled_features:
            return
    x, y = values(dtype, 1), values(other, 2)
    texts = [" ".join(each.split()) for each in TEXTS.split(";")]
    if other != dtype:
        texts = [each for each in texts if "y" in each]
    found = []
    for part in groups(texts, 20):
        formula = "; ".join(f"r{n} = {text}" for n, text in enumerate(part))
        found += kp.ops.elementwise(formula)(
            **{name: {"x": x, "y": y}[name] for name in Formula(formula).names}
        )
    for text, one in zip(texts, found, strict=True):
        python = {"not x": "~(x != 0)", "x and y": "(x != 0) & (y != 0)"}.get(text, text)
        with np.errstate(all="ignore"):
            expected = eval(python, {**vars(np), "x": x, "y": y, "abs": np.abs})
            finite = np.isfinite(expected) & np.isfinite(one)
        if text.startswith("bool_"):
            expected, finite = x != 0, True
        assert one.dtype == expected.dtype, text
        if "/" not in text and "recip" not in text and "-1" not in text:  # a quotient by zero or NaN
            np.testing.assert_array_equal(np.isnan(one), np.isnan(expected), err_msg=text)
        one, expected = np.where(finite, one, 0), np.where(finite, expected, 0)
        if one.dtype == bool:
            np.testing.assert_array_equal(one, expected, err_msg=text)
        else:
            np.testing.assert_allclose(one, expected, rtol=1e-6, atol=1e-6, err_msg=text)


def test_powers(dtype):
    """Small whole powers are products; others are exp(y log(x)), whose error grows with y log(x)."""
    rng = np.random.default_rng(4)
    x = (rng.normal(size=2000) + 1j * rng.normal(size=2000)).astype(dtype)
    y = (3 * rng.normal(size=2000) + 3j * rng.normal(size=2000)).astype(dtype)
    y[:500] = rng.integers(-12, 13, 500)
    y[500:600] = 0.5
    x[0], y[0], x[1], y[1], x[2], y[2] = 0, 0, 0, 2 + 1j, 0, -1
    texts = ["x ** y", "x ** 0.5", "2 ** x", "x ** n"][: 4 if dtype == np.complex64 else 1]
    formula = "; ".join(f"r{n} = {text}" for n, text in enumerate(texts))
    given = {"x": x, "y": y, "n": -3}
    results = kp.ops.elementwise(formula)(**{name: given[name] for name in Formula(formula).names})
    for text, found in zip(texts, results if len(texts) > 1 else [results], strict=True):
        with np.errstate(all="ignore"):
            wide = {"x": x.astype(np.clongdouble), "y": y.astype(np.clongdouble), "n": -3}
            expected = eval(text, wide)
            base, power = {"2": (2, x), "x": (x, -3 if "n" in text else y if "y" in text else 0.5)}[text[0]]
            scope = {"e": np.finfo(dtype).eps / 2, "r": np.abs(expected), "y": np.abs(power)}
            allowed = eval(ERRORS["power"], scope | {"l": np.abs(np.log(base))})
        whole = np.isfinite(expected) & np.isfinite(allowed)
        allowed = np.where(whole, allowed, 0)
        assert (np.abs(np.where(whole, found - expected, 0)) <= allowed).all()
    with np.errstate(all="ignore"):
        first = x[:3] ** y[:3]
    np.testing.assert_array_equal(kp.ops.power(x[:3], y[:3]), first)


@pytest.mark.parametrize(
    "sign", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)
def test_order(dtype, sign):
    x = edges(dtype)
    with np.errstate(all="ignore"):
        name = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.get(sign.__name__)
        name = name or {"eq": "equal", "ne": "not_equal"}[sign.__name__]
        np.testing.assert_array_equal(getattr(kp.ops, name)(x[:, None], x), sign(x[:, None], x))


def test_numbers_of_python(mgr):
    """A complex number of a call takes the dtype of what it is combined with."""
    line = kp.ops.elementwise("a * x + b")
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(line(1j, x, 2), 1j * x + 2)
    if "shaderFloat64" in mgr.enabled_features:
        x = np.arange(4) / 3
        found = line(0.1j, x, 1e-200 + 2j)  # not rounded to float32
        assert found.dtype == complex
        np.testing.assert_allclose(found, 0.1j * x + (1e-200 + 2j), rtol=1e-15)
        assert kp.ops.add(np.zeros(2, complex), np.complex128(0.1 + 0.2j)).tolist() == [0.1 + 0.2j] * 2
        assert kp.ops.astype(np.arange(2), "complex128").dtype == complex
        part = kp.ops.elementwise("turned(x)", preamble="dvec2 turned(dvec2 z) { return dvec2(-z.y, z.x); }")
        assert part(np.array([1 + 2j])).tolist() == [-2 + 1j]


def test_devices_without_float64():
    none = frozenset(("shaderInt64",))
    with pytest.raises(kp.UnimplementedError, match="no shaderFloat64, and x is of complex128"):
        Formula("exp(x)").typed({"x": np.dtype(complex)}, none)
    with pytest.raises(kp.UnimplementedError, match="no shaderFloat64, and complex128 needs it"):
        Formula("complex128(x)").typed({"x": np.dtype(np.float32)}, none)
    # As float64 of ints, it has half the width there.
    assert Formula("x * 1j").typed({"x": np.dtype(np.int32)}, none).dtypes == {"result": np.complex64}


@pytest.mark.parametrize("text", ["x // y", "x % y", "floor(x)", "arctan2(x, y)", "hypot(x, y)", "x & 1",
                                  "~x", "cbrt(x)", "float32(x)", "int32(x)", "signbit(x)"])  # fmt: skip
@pytest.mark.parametrize("kind", BOTH)
def test_what_numpy_refuses(text, kind):
    with pytest.raises(kp.ArgumentTypeError, match="column"):
        Formula(text).typed({"x": np.dtype(kind), "y": np.dtype(kind)})
