"""Reductions and scans of elements with several values, and of what is not associative."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

FIRST = "_first = a.value > b.value or (a.value == b.value and a.index < b.index); "
GREATEST = kp.ops.reduction(
    "value = x; index = k",
    FIRST + "value = a.value if _first else b.value; index = a.index if _first else b.index",
    (-np.inf, -1),
)
RECURRENCE = ("slope = f; y = x", "slope = a.slope * b.slope; y = a.y * b.slope + b.y")
MOMENTS = (
    "count = a.count + b.count; _d = b.mean - a.mean; mean = a.mean + _d * b.count / count; "
    "squares = a.squares + b.squares + _d * _d * a.count * b.count / count"
)
SIZES = (1, 1000, 3000, 200_003)


@pytest.mark.parametrize("variant", ["run", "shared"])
def test_the_greatest_and_its_place(mgr, variant):
    operation = GREATEST.variant(variant)
    for n in SIZES:
        x = np.random.default_rng(n).integers(0, n, n).astype(np.float32)
        value, index = operation(mgr.tensor_t(x), np.arange(n, dtype=np.int32))
        assert (value.item(), index.item()) == (x.max(), x.argmax())
        assert (value.dtype, index.dtype) == (np.float32, np.int32)
    x = np.random.default_rng(2).integers(0, 9, (7, 1, 50)).astype(np.float32)
    value, index = operation(x, np.arange(50, dtype=np.int32), axis=2, keepdims=True)
    assert np.array_equal(index[..., 0], x.argmax(2)) and value.shape == (7, 1, 1)
    value, index = operation(np.zeros((0, 2), np.float32), np.int32(3), axis=0)
    assert value.tolist() == [-np.inf] * 2 and index.tolist() == [-1] * 2


def recurrence_of(f, x, start=0.0):
    found = np.empty(len(x))
    for k in range(len(x)):
        start = found[k] = float(f[k]) * start + float(x[k])
    return found


@pytest.mark.parametrize("variant", ["run", "shared"])
def test_recurrences(mgr, variant):
    made = kp.ops.scan(*RECURRENCE, (1, 0)).variant(variant)
    before = kp.ops.scan(*RECURRENCE, (1, 0), exclusive=True).variant(variant)
    rng = np.random.default_rng(3)
    for n in SIZES:
        f, x = rng.uniform(-1, 1, n).astype(np.float32), rng.normal(size=n).astype(np.float32)
        wanted = recurrence_of(f, x)
        found = made(mgr.tensor_t(f), mgr.tensor_t(x))[1].read()
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        np.testing.assert_allclose(before(f, x)[1], np.append(0, wanted[:-1]), atol=1e-5)
    f, x = rng.integers(-2, 3, (2, 90, 3)), rng.integers(-2, 3, (2, 90, 3))
    back = kp.ops.scan(*RECURRENCE, reverse=True, segments="starts", dtype="int32").variant(variant)
    cuts = np.arange(90)[:, None] % 10 == 9
    found = back(f.astype(np.int32), x.astype(np.int32), cuts, axis=1)[1]
    for line in np.ndindex(2, 9, 3):
        at = line[0], slice(line[1] * 10, line[1] * 10 + 10), line[2]
        assert np.array_equal(found[at][::-1], recurrence_of(f[at][::-1], x[at][::-1]))


@pytest.mark.parametrize("variant", ["run", "shared"])
def test_moments_in_one_pass(mgr, variant):
    operation = kp.ops.reduction(
        "count = float32(1); mean = x; squares = float32(0)",
        MOMENTS,
        (0, 0, 0),
        finish="mean = a.mean; variance = a.squares / n",
    ).variant(variant)
    for n in SIZES[1:]:
        x = (1000 + np.random.default_rng(n).normal(size=(n, 3))).astype(np.float32)
        mean, variance = operation(mgr.tensor_t(x), axis=0)
        np.testing.assert_allclose(mean.read(), x.mean(0, np.float64), rtol=1e-6)
        np.testing.assert_allclose(variance.read(), x.var(0, dtype=np.float64), rtol=1e-4)
    mean, variance = operation(np.zeros((0, 3), np.float32), axis=0)
    assert mean.tolist() == [0] * 3 and np.isnan(variance).all()


def test_values_of_all_kinds_and_one_finish(mgr):
    x = np.random.default_rng(4).normal(size=5000).astype(np.float16)
    z = np.arange(5000, dtype=np.uint8) % 7
    operation = kp.ops.reduction(
        "most = x; small = z; odd = z == 6; turn = complex64(z)",
        "most = max(a.most, b.most); small = min(a.small, b.small); odd = a.odd or b.odd; "
        "turn = a.turn + b.turn",
    )
    results = operation(mgr.tensor_t(x), mgr.tensor_t(z))
    assert [each.read().tolist() for each in results] == [x.max(), 0, True, z.sum()]
    assert [str(each.dtype) for each in results] == ["float16", "uint8", "bool", "complex64"]
    width = kp.ops.reduction(
        "low = x; high = x", "low = min(a.low, b.low); high = max(a.high, b.high)", finish="a.high - a.low"
    )
    assert width(np.arange(9, dtype=np.int32)).item() == 8


def test_what_does_not_fit_is_refused():
    made = kp.ops.reduction
    two = "u = x; v = x"
    for call, text in (
        (lambda: made(two, "sum"), "u = ...; v = ..."),
        (lambda: made(two, "u = a.u + b.u"), "give the same"),
        (lambda: made(two, "u = a + b; v = a.v"), "a.u, a.v, b.u, b.v"),
        (lambda: made(two, "u = a.u; v = b.w"), "there are .u, .v, .real, .imag"),
        (lambda: made(two, "u = a.u + b.u; v = a.v + b.v", finish="a.u + b.u"), "a.u, a.v"),
        (lambda: made(two, "u = a.u + b.u; v = a.v + b.v", 0), "a tuple of numbers, for u, v"),
        (lambda: made("x", "u = a + b; v = a"), "map has one"),
        (lambda: made("x", "a + b", associative=1), "give a bool"),
    ):
        with pytest.raises(kp.KomputeError) as caught:
            call()
        assert text in str(caught.value)


def told(make, *args, **named):
    """What the warning says, "" if there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(*args, **named)
    return str(caught[0].message) if caught else ""


WRONG = {
    "0.9*a + b": "for floats, a = 0.75", "a - b": "for ints", "rint(a + b)": "for floats",
    "a*31 + b": "for ints", "(a + b) / 2": "for floats", "0.999*a + b": "for floats", "a != b": "for ints",
}  # fmt: skip
RIGHT = """a + b; a * b; a + b - a*b; hypot(a, b); logaddexp(a, b); gcd(a, b); (a + b) % 7; a ^ b; a or b
    fmax(a, b); min(max(a, b), 5); log(exp(a) + exp(b)); a*b / (a + b); float32(a + b); float16(a) + b"""


@pytest.mark.parametrize("make", [kp.ops.reduction, kp.ops.scan])
def test_what_is_not_associative_is_told(make):
    for reduce, kind in WRONG.items():
        text = told(make, "x", reduce)
        assert "not associative" in text and kind in text, reduce
        assert not told(make, "x", reduce, associative=True)
    for reduce in RIGHT.replace("\n", ";").split(";"):
        assert not told(make, "x", reduce.strip()), reduce
    assert not told(make, "1 / x", "a*b / (a + b)")  # poles between elements
    # The values of an element count as the map makes them: a count is not 0.
    assert not told(make, "count = float32(1); mean = x; squares = float32(0)", MOMENTS)
    assert "not associative" in told(make, RECURRENCE[0], RECURRENCE[1].replace("b.slope +", "a.slope +"))


def test_only_reductions_exchange_elements():
    first = "a if a == a else b"
    assert not told(kp.ops.scan, "x", first) and not told(kp.ops.scan, *RECURRENCE)
    text = told(kp.ops.reduction, "x", first)
    assert "not commutative" in text and "take the last element of kp.ops.scan" in text
    assert "a = (" in told(kp.ops.reduction, *RECURRENCE)


@pytest.mark.parametrize("function", ["tan", "tanh", "trunc", "float16"])
def test_functions_whose_names_begin_like_temporaries(mgr, function):
    x = mgr.tensor(np.arange(7, dtype=np.float32))
    each = kp.ops.elementwise(f"{function}(x)")(x)
    assert kp.ops.reduction("x", "max", finish=f"{function}(a)")(x).item() == each[-1].item()
    reduce = f"a + b + 0 * {function}(b)"
    assert kp.ops.reduction("x", reduce, 0)(x).item() == 21
    assert kp.ops.scan("x", reduce, 0)(x).tolist() == np.cumsum(np.arange(7)).tolist()


def test_a_misfit_in_reduce_is_converted_in_map(mgr):
    text = "slope = a.slope * b.slope; y = b.slope * a.y + b.y"
    f, x = np.float32([0.5, 0.5]), np.int32([1, 2])
    with pytest.raises(kp.ArgumentTypeError, match=r"y: convert there, y = float(32|64)\(\.\.\.\)"):
        kp.ops.scan("slope = f; y = x", text)(f, x)
    assert kp.ops.scan("slope = f; y = float32(x)", text)(f, x)[1].tolist() == [1, 2.5]
