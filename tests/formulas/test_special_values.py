"""Every function of formulas over every dtype at special values, against NumPy.

The guide's table "Errors of functions" says which functions are not exact, and by how much: this reads it.
"""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import kompute_py as kp
from kompute_py._formulas.formula import _BINARY, _COMPARE, _UNARY, Formula
from kompute_py._formulas.functions import ARITY, CASTS, REAL, SYNONYMS
from kompute_py._formulas.small_floats import SMALL_FLOATS
from tests.support.sampling import groups, sampled
from tests.support.subnormals import flushed, flushes

pytestmark = [pytest.mark.sampled, pytest.mark.usefixtures("current")]

GUIDE = Path(__file__).parents[2] / "docs/reference/operation_rules.md"
INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", *INTS, *FLOATS]
LONG = np.longdouble
EDGES = [2**k + d for k in (7, 8, 15, 16, 24, 31, 32, 53, 62, 63) for d in (-1, 0, 1)]
"""Ints; and with a half added, numbers where roundings change."""


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if name in SMALL_FLOATS else np.dtype(name)


def errors():
    """The table of the guide: for each function that is not exact the error of float32 and of float64."""
    found = {}
    for names, *cells in re.findall(
        r"^\| `([a-z0-9 ]+)` \| `([^|]+)` \| `([^|]+)` \|$", GUIDE.read_text(), re.M
    ):
        found.update(dict.fromkeys(names.split(), cells))
    return found


ERRORS = errors()
SIGNS = ("minimum", "maximum", "fmin", "fmax", "clip")
"""Of 0.0 and -0.0 they give either, as NumPy."""
REFUSED = {("reciprocal", True)}
"""Functions of ints that NumPy has and formulas refuse."""


def specials(name):
    """Ties, limits, neighbours of powers of two, the largest and least, zeros with signs, infinities, NaN."""
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        every = {0, 1, 2, 3, 5, 7, 9, 10, 31, 63, 100, *EDGES, limits.max, limits.max - 1}
        every |= {limits.min, limits.min + 1}
        every |= {-each for each in every}
        return np.array(sorted(each for each in every if limits.min <= each <= limits.max), dtype)
    info = ml_dtypes.finfo(dtype)
    one = dtype.type(1)
    some = [0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 7, 10, 0.1, 1e-3, 88.5, 100, 0.7071, np.pi, np.pi / 2]
    some += [float(each) + half for each in EDGES for half in (0, 0.5)]
    some += [float(info.max), float(info.smallest_normal), float(info.smallest_subnormal), float(info.eps)]
    some += [float(info.smallest_normal) * 0.75, float(info.smallest_normal) * 2, float(info.max) / 2]
    with np.errstate(all="ignore"):
        found = np.array(some).astype(dtype)
        near = [np.nextafter(found[1:24], dtype.type(0)), np.nextafter(found[1:24], dtype.type(100))]
        found = np.concatenate([found, *near, [one / dtype.type(3)]]).astype(dtype)
    found = np.unique(found[np.isfinite(found)])
    return np.concatenate([found, -found, np.array([np.inf, -np.inf, np.nan]).astype(dtype)]).astype(dtype)


def pairs(x, most=3000):
    a, b = (each.ravel() for each in np.meshgrid(x, x))
    return (a, b) if a.size <= most else (a[:: a.size // most + 1], b[:: a.size // most + 1])


def numpys(function, *args):
    """NumPy's result of its function; of floats of 16 bits that of float32, rounded."""
    dtype = args[-1].dtype
    small = dtype.name in ("float16", *SMALL_FLOATS)
    wide = [each.astype(np.float32) if small and each.dtype == dtype else each for each in args]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if function == "nextafter":
            return np.nextafter(*args)
        if function in SMALL_FLOATS or function in CASTS:
            return wide[0].astype(dtype_of(function) if function in SMALL_FLOATS else CASTS[function])
        if function == "erf":
            found = _erf(wide[0]).astype(np.exp(wide[0]).dtype)
        elif function == "real":
            found = wide[0]
        elif function == "imag":
            found = np.zeros_like(wide[0])
        else:
            found = np.asarray(getattr(np, function)(*wide))
        return found.astype(dtype) if small and found.dtype == np.float32 else found


_erf = np.vectorize(math.erf, otypes=[np.float64])


def real_dtype(dtype):
    """In what the device computes functions such as sin."""
    whole = dtype.kind in "iu" and dtype.itemsize >= 4
    return np.dtype(np.float64 if whole or dtype == np.float64 else np.float32)


def exact(function, args):
    """The result in more digits than those of the dtype."""
    dtype = real_dtype(args[0].dtype)
    wide = [each.astype(dtype).astype(LONG if dtype == np.float64 else np.float64) for each in args]
    with np.errstate(all="ignore"):
        return _erf(wide[0]) if function == "erf" else getattr(np, function)(*wide)


def stated(function, found, wanted, args):
    """The error that the guide states, for each element."""
    kind = real_dtype(args[0].dtype)
    with np.errstate(all="ignore"):
        r = np.abs(wanted).astype(LONG)
        names = {name: np.abs(each.astype(LONG)) for name, each in zip("xy", args, strict=False)}
        names["u"] = np.spacing(np.minimum(r.astype(kind), np.finfo(kind).max)).astype(LONG)
        error = eval(ERRORS[function][kind == np.float64], {"maximum": np.maximum}, {"r": r, **names})
        if found.dtype.itemsize == 2:  # and a rounding to the result's dtype
            most = ml_dtypes.finfo(found.dtype).max
            error = error + np.abs(np.spacing(np.minimum(r.astype(found.dtype), most)).astype(LONG))
    return error


def same(function, found, wanted):
    if wanted.dtype.kind == "c":
        return same(function, found.real, wanted.real) & same(function, found.imag, wanted.imag)
    with np.errstate(all="ignore"):
        right = found == wanted
    if wanted.dtype.kind in "biu":
        return right
    if function not in SIGNS:
        right &= np.signbit(found) == np.signbit(wanted)
    return right | (np.isnan(found) & np.isnan(wanted))


def within(function, found, wanted, args):
    """Whether results are within the error that the guide states."""
    more = exact(function, args)
    largest = float(ml_dtypes.finfo(found.dtype).max)
    with np.errstate(all="ignore"):
        off = np.abs(found.astype(LONG) - more)
        right = np.isfinite(more) & (off <= stated(function, found, more, args))
        # Next to the largest number a result may be infinite, or not yet.
        right |= (np.abs(more) > largest * (1 - 1e-4)) & (np.abs(found.astype(LONG)) > largest * (1 - 1e-4))
        return right & ((found != 0) | (wanted != 0) | (np.signbit(found) == np.signbit(wanted)))


def wrong(function, found, args, flushing=False):
    """The places where the result is neither NumPy's nor within the stated error. A device with `flushing`
    may take 0 for subnormal arguments and results.
    """
    wanted = numpys(function, *args)
    right = same(function, found, wanted)
    if function in ERRORS and wanted.dtype.kind not in "biu":
        right |= within(function, found, wanted, args)
    if flushing and not right.all():
        low = numpys(function, *map(flushed, args))
        right |= same(function, flushed(found, True), flushed(wanted, True))
        right |= same(function, flushed(found, True), flushed(low, True))
    return np.nonzero(~right)[0]


def in_range(x, dtype):
    """Without what a conversion to `dtype` leaves open: floats beyond ints."""
    limits = np.iinfo(dtype)
    wide = np.trunc(x.astype(LONG))
    return x[np.isfinite(wide) & (wide >= limits.min) & (wide <= limits.max)]


def cases(dtype):
    """(function, names of its arguments) that NumPy has for the dtype, and arrays of one size by name."""
    x = specials(dtype)
    first, second = pairs(x)
    arrays = {"u": x, "x": first, "y": second, "z": np.roll(second, 7)}
    arrays["c"] = np.arange(first.size) % 3 == 0
    found = []
    for function, count in ARITY.items():
        names = ["u"] if count == 1 else ["x", "y"] if count == 2 else ["x", "y", "z"]
        if function == "where":
            names[0] = "c"
        elif function == "power" and x.dtype.kind in "iu":
            names[1] = "p"
            arrays["p"] = second[second >= 0]
        elif function in CASTS and function not in SMALL_FLOATS and np.dtype(CASTS[function]).kind in "iu":
            if x.dtype.kind not in "biu":
                names = [f"u_{function}"]
                arrays[names[0]] = in_range(x, CASTS[function])
        try:
            result = numpys(function, *(arrays[name][:2] for name in names))
        except (TypeError, ValueError):
            continue
        if (function, x.dtype.kind in "biu") not in REFUSED:
            found.append((function, names, result.dtype))
    size = max(each.size for each in arrays.values()) | 3  # kernels have code of its own for a rest of four
    return found, {name: np.resize(each, size) for name, each in arrays.items()}


def check(found, arrays, wrong):
    """Computes `found`, as `cases` gives them; `wrong(function, result, args)` gives the wrong places."""
    for group in groups(found, 10):
        texts = [f"r{n} = {function}({', '.join(names)})" for n, (function, names, _) in enumerate(group)]
        operation = kp.ops.elementwise("; ".join(texts))
        results = operation(**{name: arrays[name] for name in operation.formula.names})
        for (function, names, wanted), result in zip(group, results, strict=True):
            args = [arrays[name] for name in names]
            assert result.dtype == wanted, function
            bad = wrong(function, result, args)[:5]
            assert not bad.size, (
                f"{function} of {args[-1].dtype}: {[each[bad].tolist() for each in args]} "
                f"gives {result[bad].tolist()}, not {numpys(function, *args)[bad].tolist()}"
            )


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_at_special_values(mgr, dtype):
    needs = {
        "float64": "shaderFloat64", "complex128": "shaderFloat64",
        "int64": "shaderInt64", "uint64": "shaderInt64",
    }  # fmt: skip
    lacking = {name for name, feature in needs.items() if feature not in mgr.enabled_features}
    if dtype in lacking:
        pytest.skip(f"the device has no {dtype}")
    found, arrays = cases(dtype)
    found = [each for each in found if each[2].name not in lacking]
    if dtype == "float64" and "int64" in lacking:
        found = [each for each in found if each[0] not in ("fmod", "remainder", "floor_divide")]
    if dtype in INTS:  # these become floats, of which all are taken
        mine = sampled([*REAL][INTS.index(dtype) :: len(INTS)], [*REAL])
        found = [each for each in found if each[0] not in REAL or each[0] in mine]
    assert len(found) > 40
    flushing = flushes(mgr)
    check(sampled(found[DTYPES.index(dtype) % 3 :: 3], found), arrays, lambda *case: wrong(*case, flushing))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_as_exact_where_subnormals_are_not(mgr, dtype):
    """Arguments next to both ends of the range: nothing between may vanish or overflow."""
    if dtype == "float64" and "shaderFloat64" not in mgr.enabled_features:
        pytest.skip("the device has no float64")
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    n = sampled(800, 40_000)
    ends = np.log2(float(info.smallest_normal)), np.log2(float(info.max))
    powers = [
        rng.uniform(*ends, n),
        rng.uniform(ends[0], ends[0] + 60, n),
        rng.uniform(ends[1] - 60, ends[1], n),
    ]
    sizes = [2.0 ** np.concatenate(powers) * (1 - 1e-9), float(info.smallest_normal) * np.arange(1, 35)]
    x = np.concatenate(sizes) * rng.choice([-1, 1], 3 * n + 34)
    x = np.where(np.abs(x) < info.smallest_normal, info.smallest_normal, x).astype(dtype)
    with np.errstate(all="ignore"):
        near = (x * rng.normal(size=x.size)).astype(dtype)
    y = np.where(np.isfinite(near) & (np.abs(near) >= info.smallest_normal), near, rng.permutation(x))
    y = np.where(rng.random(x.size) < 0.5, y, rng.permutation(x)).astype(dtype)
    arrays = {"x": x, "y": y}
    functions = sorted({*ERRORS, "sqrt", "reciprocal", "divide", "floor_divide", "remainder", "fmod"})
    if dtype == "float64" and "shaderInt64" not in mgr.enabled_features:
        functions = [each for each in functions if each not in ("fmod", "remainder", "floor_divide")]
    found = [(each, ["x", "y"][: ARITY[each]], np.dtype(dtype)) for each in functions]

    def bad(function, result, args):
        wanted = numpys(function, *args)
        normal = np.abs(wanted) > info.smallest_normal
        return np.nonzero(np.isin(np.arange(x.size), wrong(function, result, args)) & normal)[0]

    check(found, arrays, bad)


def test_operators_and_synonyms_are_functions():
    signs = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
             "remainder": "%", "power": "**", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
             "left_shift": "<<", "right_shift": ">>", "less": "<", "less_equal": "<=",
             "greater": ">", "greater_equal": ">=", "equal": "==",
             "not_equal": "!=", "logical_and": "and", "logical_or": "or"}  # fmt: skip
    assert {*_BINARY.values(), *_COMPARE.values(), "logical_and", "logical_or"} == set(signs)
    for name, sign in signs.items():
        assert Formula(f"x {sign} y").outputs["result"].op == name
    for name, sign in {"negative": "-", "positive": "+", "invert": "~", "logical_not": "not "}.items():
        assert name in _UNARY.values() and Formula(f"{sign}x").outputs["result"].op == name
    for name, function in SYNONYMS.items():
        assert Formula(f"{name}({', '.join('xyz'[: ARITY[function]])})").outputs["result"].op == function
    assert set(ERRORS) <= set(ARITY)


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_next_numbers_of_small_floats(name):
    dtype = dtype_of(name)
    every = np.arange(256, dtype=np.uint8).view(dtype) if dtype.itemsize == 1 else specials(name)
    for other in (0, 1, -1, np.inf, -np.inf, np.nan, 3):
        with np.errstate(all="ignore"):
            towards = np.full(every.shape, other).astype(dtype)
            expected = np.nextafter(every, towards)
        found = kp.ops.nextafter(every, towards)
        assert found.dtype == dtype
        number = ~np.isnan(expected.astype(np.float32))
        kind = f"u{dtype.itemsize}"
        np.testing.assert_array_equal(found[number].view(kind), expected[number].view(kind), str(other))
        assert np.isnan(found[~number].astype(np.float32)).all()
