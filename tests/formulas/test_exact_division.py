"""Quotients and roots of float32 are NumPy's bit by bit, also on devices whose own are up to 2.5 ulp off."""

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._formulas import glsl
from kompute_py._functions import forms
from tests.support.subnormals import flushed, flushes

COUNT = 200_000


@pytest.fixture(params=["exact", "low", "high"])
def inexact(request, monkeypatch):
    """A device that does not divide exactly; "low" and "high" put its quotients and roots four ulp off."""
    monkeypatch.setattr(forms, "EXACT_DIVISION", "none")
    factor = {"exact": 1.0, "low": 1 - 4 * 2.0**-24, "high": 1 + 4 * 2.0**-23}[request.param]
    functions = {}
    for name, text in glsl._BY_INTS.items():
        for own in ("float(m) / float(n)", "sqrt(float(m))"):
            text = text.replace(own, f"({own} * {factor!r})")
        functions[name] = text
    assert functions != glsl._BY_INTS or request.param == "exact"
    monkeypatch.setattr(glsl, "_BY_INTS", functions)
    glsl._all.cache_clear()
    yield
    glsl._all.cache_clear()


def _pairs():
    """Any bits; quotients next to 1; whole numbers; subnormal results and arguments."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**32, (2, COUNT), dtype=np.uint32)
    yield a, b
    yield a, a & 0x7F800000 | b & 0x807FFFFF
    yield (
        rng.integers(0, 2**24, COUNT).astype("f4").view("u4"),
        rng.integers(1, 2**12, COUNT).astype("f4").view("u4"),
    )
    yield a % 2**25, b % 2**31 | 0x40000000
    odd = np.float32([0, 1, 3, 1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38, np.inf, np.nan])
    odd = np.concatenate([odd, -odd]).view("u4")
    yield np.repeat(odd, odd.size), np.tile(odd, odd.size)


def test_any_bits(current, inexact):
    operation = kp.ops.elementwise("q = x / y; r = sqrt(x); o = 1 / y; f = x // y")
    for bits in _pairs():
        x, y = (each.astype(np.uint32).view(np.float32) for each in bits)
        with np.errstate(all="ignore"):
            wanted = x / y, np.sqrt(x), 1 / y, np.floor_divide(x, y)
        plain = (flushed(x) == x) & (flushed(y) == y)
        for name, want, found in zip("qrof", wanted, operation(x, y), strict=True):
            if name == "f" and flushes(current):  # a floored quotient takes them for 0, as the guide says
                x, y, found, want = (each[plain] for each in (x, y, found, want))
            wrong = (found.view("u4") != want.view("u4")) & ~(np.isnan(found) & np.isnan(want))
            assert not wrong.any(), (name, x[wrong][:3], y[wrong][:3], found[wrong][:3], want[wrong][:3])


def test_what_is_divided_by_itself_is_one(current, inexact):
    x = np.arange(1, COUNT, dtype=np.float32)
    assert (kp.ops.divide(x, x) == 1).all()
    assert (kp.ops.sqrt(x * x)[:4000] == x[:4000]).all()
