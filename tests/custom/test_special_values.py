"""Every function of formulas over every dtype at special values, against NumPy.

The guide's table "Errors of functions" says which functions are not exact, and by how much: this test reads it.
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
from kompute_py._formulas.functions import ARITY, CASTS, SYNONYMS
from kompute_py._formulas.small_floats import SMALL_FLOATS
from tests.support.sampling import WHOLE, groups

pytestmark = [pytest.mark.shared, pytest.mark.sampled]

GUIDE = Path(__file__).parents[2] / "docs/guides/generated_operations.md"
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
    for names, *cells in re.findall(r"^\| `([a-z0-9 ]+)` \| `([^|]+)` \| `([^|]+)` \|$", GUIDE.read_text(), re.M):
        found.update(dict.fromkeys(names.split(), cells))
    return found


ERRORS = errors()
SIGNS = ("minimum", "maximum", "fmin", "fmax", "clip")
"""Of 0.0 and -0.0 they give either, as NumPy."""
ZERO_FOR_NONE = ("floor_divide", "remainder", "fmod")


def specials(name):
    """Ties, limits, neighbours of powers of two, the largest and least, zeros with signs, infinities, NaN."""
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        every = {0, 1, 2, 3, 5, 7, 9, 10, 31, 63, 100, *EDGES, limits.max, limits.max - 1, limits.min, limits.min + 1}
        every |= {-each for each in every}
        return np.array(sorted(each for each in every if limits.min <= each <= limits.max), dtype)
    info = ml_dtypes.finfo(dtype)
    one = dtype.type(1)
    some = [0.0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 7, 10, 0.1, 1e-3, 88.5, 100, 0.7071, 3.14159265, 1.5707963267948966]
    some += [float(each) + half for each in EDGES for half in (0, 0.5)]
    some += [float(info.max), float(info.smallest_normal), float(info.smallest_subnormal), float(info.eps)]
    some += [float(info.smallest_normal) * 0.75, float(info.smallest_normal) * 2, float(info.max) / 2]
    with np.errstate(all="ignore"):
        found = np.array(some).astype(dtype)
        near = [np.nextafter(found[1:24], dtype.type(0)), np.nextafter(found[1:24], dtype.type(100))]
        found = np.concatenate([found, *near, [one / dtype.type(3)]]).astype(dtype)
    found = np.unique(found[np.isfinite(found)])
    return np.concatenate([found, -found, np.array([np.inf, -np.inf, np.nan]).astype(dtype)]).astype(dtype)


def pairs(name, most=3000):
    x = specials(name)
    a, b = (each.ravel() for each in np.meshgrid(x, x))
    return (a, b) if a.size <= most else (a[:: a.size // most + 1], b[:: a.size // most + 1])


def numpys(function, *args):
    """NumPy's result of its function; of floats of 16 bits that of float32, rounded."""
    dtype = args[0].dtype
    small = dtype.name in ("float16", *SMALL_FLOATS)
    wide = [each.astype(np.float32) if small and each.dtype == dtype else each for each in args]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if function == "erf":
            found = np.vectorize(math.erf, otypes=[np.float64])(wide[0].astype(np.float64)).astype(np.exp(wide[0]).dtype)
        elif function == "nextafter":
            return np.nextafter(*args)
        elif function in SMALL_FLOATS:
            return wide[0].astype(dtype_of(function))
        elif function in CASTS:
            return wide[0].astype(CASTS[function])
        elif function in ("real", "conj"):
            found = wide[0]
        elif function == "imag":
            found = np.zeros_like(wide[0])
        else:
            found = np.asarray(getattr(np, function)(*wide))
        if small and found.dtype == np.float32:
            found = found.astype(dtype)
    return found


def exact(function, *args):
    """The result in more digits than those of the dtype."""
    dtype = real_dtype(args[0].dtype)
    wide = [each.astype(dtype).astype(LONG if dtype == np.float64 else np.float64) for each in args]
    if function == "power" and args[0].dtype.kind in "iu":
        return None
    with np.errstate(all="ignore"):
        if function == "erf":
            return np.vectorize(math.erf, otypes=[np.float64])(wide[0].astype(np.float64))
        return getattr(np, function)(*wide)


def real_dtype(dtype):
    return np.float64 if dtype.itemsize >= 4 and dtype.kind in "iu" or dtype == np.float64 else np.float32


def bound(function, found, wanted, args):
    """The error that the guide states, for each element."""
    text = ERRORS[function][real_dtype(args[0].dtype) == np.float64]
    wide = dict(zip("xy", (np.abs(each.astype(LONG)) if each.dtype.kind != "b" else each for each in args)))
    near = np.abs(wanted).astype(found.dtype)
    with np.errstate(all="ignore"):
        r = np.abs(wanted).astype(LONG)
        kind = np.float64 if found.dtype == np.float64 else np.float32
        u = np.spacing(np.minimum(np.abs(wanted).astype(kind), np.finfo(kind).max)).astype(LONG)
        error = eval(text, {"maximum": np.maximum, "tan": np.tan}, {"u": u, "r": r, **wide})
        if found.dtype.itemsize == 2:
            step = np.spacing(np.minimum(near, ml_dtypes.finfo(found.dtype).max).astype(found.dtype))
            error = error + np.abs(step.astype(LONG))
    return error


def flushed(array, dtype):
    """Subnormal numbers as the zeros that devices may take them for."""
    if array.dtype.kind in "biu" or array.dtype.itemsize == 2 and array.dtype.name == "float16":
        return array
    least = np.finfo(np.float64 if array.dtype == np.float64 else np.float32).smallest_normal
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        return np.where(np.abs(wide) <= least, np.copysign(0.0, wide), array.astype(np.float64)).astype(array.dtype)


def wrong(function, found, args):
    """The places where the result is neither NumPy's nor within the stated error."""
    wanted = numpys(function, *args)
    if found.dtype != wanted.dtype:
        return f"{found.dtype}, not {wanted.dtype}"
    right = same(function, found, wanted)
    if wanted.dtype.kind not in "biu" and function in ERRORS:
        more = exact(function, *args)
        if more is not None:
            with np.errstate(all="ignore"):
                off = np.where((found == 0) & ~right, np.inf, np.abs(found.astype(LONG) - more))
                off = np.where((found == 0) & (wanted != 0), np.abs(more), off)
                right |= np.isfinite(more) & (off <= bound(function, found, more, args))
                # next to the largest number
                largest = float(ml_dtypes.finfo(found.dtype).max)
                big = np.abs(more) > largest * (1 - 1e-4)
                right |= big & (np.abs(found.astype(np.float64)) > largest * (1 - 1e-4)) & (np.signbit(found) == np.signbit(more))
    if right.all():
        return None
    # Devices may take subnormal numbers for zeros, before and after.
    low = numpys(function, *(flushed(each, None) for each in args))
    near = flushed(found, None)
    right2 = right | same(function, near, flushed(wanted, None)) | same(function, near, flushed(low, None))
    if right2.all():
        return ("sub", np.nonzero(~right)[0])
    return ("bad", np.nonzero(~right2)[0])


def same(function, found, wanted):
    with np.errstate(all="ignore"):
        right = found == wanted
    if wanted.dtype.kind in "biu":
        return right
    right = right | (np.isnan(found) & np.isnan(wanted))
    if function not in SIGNS:
        right &= np.isnan(wanted) | (np.signbit(found) == np.signbit(wanted))
    return right


def given(function, dtype):
    if ARITY[function] == 1:
        x = specials(dtype)
        if function in CASTS and function not in SMALL_FLOATS and np.dtype(CASTS[function]).kind in "iu" and x.dtype.kind not in "biu":
            limits = np.iinfo(CASTS[function])  # beyond them the language leaves the result open
            wide = np.trunc(x.astype(LONG))
            x = x[np.isfinite(wide) & (wide >= limits.min) & (wide <= limits.max)]
        return (x,)
    if function == "where":
        x, y = pairs(dtype)
        return (np.arange(x.size) % 3 == 0, x, y)
    if function == "clip":
        x, y = pairs(dtype)
        return (x, y, np.roll(y, 7))
    x, y = pairs(dtype)
    if function == "power" and x.dtype.kind in "iu":
        x, y = x[y >= 0], y[y >= 0]
    return x, y


def refused(function, dtype):
    args = given(function, dtype)
    try:
        numpys(function, *(each[:3] for each in args))
    except (TypeError, ValueError):
        return True
    return False
