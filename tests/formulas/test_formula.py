"""Formulas against NumPy, which evaluates the same text."""

from __future__ import annotations

import inspect

import ml_dtypes
import numpy as np
import pytest

import kompute_py as kp
from kompute_py._formulas.formula import Formula
from kompute_py._formulas.small_floats import SMALL_FLOATS
from kompute_py._formulas.typed import declarations_of
from kompute_py.errors import InvalidArgumentError

pytestmark = pytest.mark.usefixtures("current")

REALS = ("float32", "float64", "float16")
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
EDGES = (0, 1, -1, 2, -2, 3, 7, -7, 8, 31, 63, 64, 100, 127, -128, 255, 2**15, 2**31 - 1, -(2**31), 2**63)


def operation_of(text, preamble=""):
    """The simplest operation of a formula: over tensors of one shape, and numbers."""
    formula = Formula(text, preamble)

    class operation(kp.CustomOp):
        names = ", ".join(f"Tensor|Scalar {name}" for name in formula.names)
        signature = f"of@UNIQUE@({names}) -> ({', '.join(f'Tensor {name}' for name in formula.results)})"

        def typed(self, ksel):
            types = {a.name: getattr(a, "weak", "") or a.dtype for a in ksel.arg_descs}
            return formula.typed(types, ksel.features)

        def select(self, ksel):
            args = [ksel.arg_tensor_or_value(name) for name in formula.names]
            shape = next(a.shape for a in args if isinstance(a, kp.typing.TensorArg))
            found = self.typed(ksel)
            for value in found.values:
                ksel.value(value.name, value.compute, value.dtype, of=value.names)
            for name in formula.results:
                ksel.return_new_tensor(shape, found.dtypes[name])

        def generate(self, ksel, kb):
            found = self.typed(ksel)
            for extension in found.extensions:
                kb.extension(extension)
            kb.declare(declarations_of(found))
            kb.grid(kb.result(0).size)
            kb.emit(f"uint i = gl_GlobalInvocationID.x; if (i >= {kb.result(0).size}) return;")
            tensors = {a.name for a in ksel.arg_descs if isinstance(a, kp.typing.TensorArg)}
            statements, results = found.glsl(
                {name: f"{name}_load(i)" if name in tensors else name for name in found.names}
            )
            kb.emit("\n".join(statements))
            for name in formula.results:
                kb.emit(f"{name}_store(i, {results[name]});")

    return kp.CustomOp.register(operation)


class Functions(dict):
    """NumPy's functions by name. Of Python's numbers they give Python's numbers, as formulas have it."""

    def __missing__(self, name):
        name = {"abs": "absolute", "pow": "power"}.get(name, name)
        function = getattr(np, name, None)
        if not callable(function):
            if function is None:
                raise KeyError(name)
            return function

        def call(*args):
            if all(type(each) in (bool, int, float, complex) for each in args):
                return function(*args).item()
            return function(*args)

        return call


def numpy_of(text, arguments):
    with np.errstate(all="ignore"):
        return eval(text, {}, Functions(arguments))


def without_float64(dtype):
    return np.dtype(np.float32) if dtype == np.float64 else dtype


def check(mgr, text, rtol=0.0, **arguments):
    """Runs the formula and compares."""
    (found,) = operation_of(text)(**arguments)
    agree(mgr, text, found, rtol, arguments)


def check_all(mgr, texts, **arguments):
    """Several formulas in one kernel: compiling takes the time of these tests."""
    texts = list(texts.items())
    for first in range(0, len(texts), 12):
        part = texts[first : first + 12]
        formula = "; ".join(f"r{n} = {text}" for n, (text, _) in enumerate(part))
        names = Formula(formula).names
        results = operation_of(formula)(**{name: arguments[name] for name in names})
        for (text, rtol), found in zip(part, results, strict=True):
            agree(mgr, text, found, rtol, arguments)


def agree(mgr, text, found, rtol, arguments):
    expected = np.asarray(numpy_of(text, arguments))
    dtype = expected.dtype
    if "shaderFloat64" not in mgr.enabled_features:
        if dtype == np.float64 and any(part in text for part in ("fmod", "/", "%")):
            return  # rounding to float32 before decides the result
        rtol = max(rtol, 1e-6) if dtype == np.float64 else rtol
        dtype = without_float64(dtype)
    assert found.dtype == dtype, text
    if any(getattr(a, "dtype", None) == np.float16 for a in arguments.values()):
        # float16 is computed in float32 and rounded once.
        wide = {
            n: a.astype(np.float32) if getattr(a, "dtype", None) == np.float16 else a
            for n, a in arguments.items()
        }
        with np.errstate(all="ignore"):
            expected = np.asarray(numpy_of(text, wide))
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(expected, found.shape).astype(dtype)
    if found.dtype == np.float16:
        rtol = max(rtol, 1e-3) if rtol else 0.0
    if rtol:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * 1e-3, err_msg=text)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=text)


def runs(mgr, *dtypes):
    features = mgr.enabled_features
    return ("shaderFloat64" in features or "float64" not in dtypes) and (
        "shaderInt64" in features or not {"int64", "uint64"} & set(dtypes)
    )


def values_of(dtype, seed=0, count=97):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(count) < 0.5
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        edges = [e for e in (*EDGES, limits.min, limits.max) if limits.min <= e <= limits.max]
        small = rng.integers(max(limits.min, -9), 10, count - len(edges))
        return rng.permutation(np.array([*edges, *map(int, small)], dtype))
    edges = np.array([0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-3, 1000])
    found = rng.permutation(np.concatenate([edges, rng.normal(scale=5, size=count - len(edges))]))
    if dtype == "complex64":
        return (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype)
    return found.astype(dtype)


TWO = ["x + y", "x * y", "x // y", "x % y", "fmod(x, y)", "minimum(x, y)", "maximum(x, y)", "x - y", "x / y",
       "x < y", "x >= y", "x == y", "x != y", "where(x > y, x, y)", "fmax(x, y)", "fmin(x, y)"]  # fmt: skip


@pytest.mark.parametrize("other", [*REALS, *WHOLE, "bool"])
@pytest.mark.parametrize("dtype", [*REALS, *WHOLE, "bool"])
def test_two_operands(mgr, dtype, other):
    x, y = values_of(dtype, 1), values_of(other, 2)
    needed = {dtype, other, str(np.promote_types(dtype, other))} & {"int64", "uint64"}
    if not runs(mgr, dtype, other, *needed):
        with pytest.raises(kp.UnimplementedError, match=r"shader(Int|Float)64"):
            operation_of("x + y")(x, y)
        return
    texts = []
    for text in TWO:
        try:
            numpy_of(text, {"x": x, "y": y})
            texts.append(text)
        except TypeError:
            with pytest.raises(kp.ArgumentTypeError, match="does not take"):
                operation_of(text)(x, y)
    check_all(mgr, dict.fromkeys(texts, 0.0), x=x, y=y)


ONE = ["-x", "+x", "~x", "abs(x)", "sign(x)", "x ** 2", "x ** 3", "square(x)", "floor(x)", "ceil(x)",
       "trunc(x)", "rint(x)", "round(x)", "isnan(x)", "isinf(x)", "isfinite(x)", "x + 1", "3 - x", "x < 2",
       "x * 2.5", "x // 3", "x % -3", "clip(x, 1, 3)", "x == 2.5", "x > -1", "x < 1000000", "float32(x)",
       "x << 3", "x >> 40", "x & 3", "-x | 1", "where(x > 0, 1, 0)", "where(x, x, 7)",
       "sqrt(abs(x))", "heaviside(x, 0.5)", "1 / x", "bool_(x)"]  # fmt: skip


@pytest.mark.parametrize("dtype", [*REALS, *WHOLE, "bool", "complex64"])
def test_one_operand(mgr, dtype):
    if not runs(mgr, dtype):
        pytest.skip(f"the device has no {dtype}")
    x, texts = values_of(dtype, 3), []
    for text in ONE:
        try:
            expected = np.asarray(numpy_of(text, {"x": x}))
        except (TypeError, OverflowError):
            with pytest.raises((kp.ArgumentTypeError, kp.InvalidArgumentError), match="column"):
                operation_of(text)(x)
            continue
        if dtype == "complex64" and any(part in text for part in ("rint", "round", "float")):
            continue  # parts dropped are refused
        if not runs(mgr, *({"int64", "uint64"} & {str(expected.dtype)})) or (
            dtype == "bool" and text == "x < 2"
        ):
            continue
        texts.append(text)
    check_all(mgr, {t: 1e-6 if dtype == "complex64" or t == "x ** 3" else 0.0 for t in texts}, x=x)


# Relative errors of float32, and where.
FUNCTIONS = {
    "exp(x)": 4e-6, "exp2(x)": 4e-6, "expm1(x)": 4e-6, "log(abs(x))": 2e-6, "log2(abs(x))": 2e-6,
    "log10(abs(x))": 2e-6, "log1p(abs(x))": 2e-6, "sin(x)": 2e-6, "cos(x)": 2e-6, "tan(x)": 2e-6,
    "arcsin(x / 40)": 1e-6, "arccos(x / 40)": 1e-6, "arctan(x)": 1e-6, "sinh(x)": 4e-6, "cosh(x)": 4e-6,
    "tanh(x)": 1e-6, "arcsinh(x)": 4e-6, "arccosh(1 + abs(x))": 4e-6, "arctanh(x / 40)": 4e-6,
    "cbrt(x)": 1e-6, "arctan2(x, y)": 1e-6, "hypot(x, y)": 1e-6, "copysign(x, y)": 0.0,
    "logaddexp(x, y)": 4e-6,
    "abs(x) ** y": 2e-5, "x ** 2.0": 1e-6, "x ** 0.5": 1e-6, "radians(x)": 1e-6, "degrees(x)": 1e-6,
    "reciprocal(x)": 1e-6, "x ** -1": 1e-6, "x * 0": 0.0, "0.0 / x": 0.0, "-0.0 * x + 1": 0.0,
    "x / 0": 0.0, "x // 0.0": 0.0, "x % 0.0": 0.0, "fmod(x, 0.0)": 0.0, "x / -0.0": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int16"])
def test_functions(mgr, dtype):
    x, y = values_of(dtype, 5), values_of(dtype, 6)
    if dtype[0] == "i":
        x, y = np.clip(x, -40, 40), np.clip(y, -3, 3)
    else:
        x, y = (np.where(np.isfinite(v), np.clip(v, -40, 40), v).astype(dtype) for v in (x, y))
    texts = [t for t in FUNCTIONS if not (dtype[0] == "i" and ("**" in t or "reciprocal" in t or "/" in t))]
    check_all(mgr, {text: FUNCTIONS[text] for text in texts}, x=x, y=y)


def test_angles_of_any_size(mgr):
    rng = np.random.default_rng(0)
    x = (rng.choice([-1, 1], 4000) * 10 ** rng.uniform(-6, 38, 4000)).astype(np.float32)
    s, c, t = operation_of("s = sin(x); c = cos(x); t = tan(x)")(x)
    for found, expected in ((s, np.sin), (c, np.cos), (t, np.tan)):
        np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=4e-6, atol=1e-7)


def test_numbers_without_a_dtype(mgr):
    x = np.arange(5, dtype=np.float32)
    check(mgr, "a * x + b / 3", a=2.5, x=x, b=1)
    check(mgr, "x * (a * b)", a=1e-30, b=1e30, x=x)  # Python multiplies
    check(mgr, "where(flag, x, sqrt(a))", flag=True, x=x, a=2)
    check(mgr, "n + where(1, 2, 0.5)", n=np.arange(5, dtype=np.float32))
    assert Formula("n + where(1, 2, 0.5)").typed({"n": np.dtype(np.int8)}).dtypes["result"] == np.float64
    check(mgr, "x ** a + n", x=x, a=2.0, n=np.float32(3), rtol=1e-5)
    n = np.arange(5, dtype=np.int8)
    check(mgr, "n * a", n=n, a=100)
    with pytest.raises(kp.InvalidArgumentError, match=r"300 is out of bounds for int8 \(column 5"):
        operation_of("n * a")(n=n, a=300)
    with pytest.raises(kp.InvalidArgumentError, match="divi"):
        operation_of("x * (1 / a)")(x=x, a=0)


def test_logic_and_conditions(mgr):
    x, y = values_of("float32", 7), values_of("int32", 8)
    text = "a = x > 0 and y < 3; b = x or y; c = not (x < 1); d = 0 < y <= 5; e2 = y if x > 0 else -y"
    a, b, c, d, e = operation_of(text)(x, y)
    np.testing.assert_array_equal(a, (x > 0) & (y < 3))
    np.testing.assert_array_equal(b, np.logical_or(x, y))
    np.testing.assert_array_equal(c, ~(x < 1))
    np.testing.assert_array_equal(d, (y > 0) & (y <= 5))
    np.testing.assert_array_equal(e, np.where(x > 0, y, -y))


def test_names_and_results():
    formula = Formula("""
        _d = sqrt(dx * dx + dy ** 2)
        u = dx / _d
        v = dy / (_d +
                  eps)
    """)
    assert formula.names == ("dx", "dy", "eps") and formula.results == ("u", "v")
    assert Formula("t = x + y; t * t").results == ("result",)
    inner = Formula("a * x")
    fused = Formula("sqrt(z) + a").of(z=inner)
    assert fused.names == ("a", "x") and fused.results == ("result",)
    with pytest.raises(kp.InvalidArgumentError, match="no argument 'zz': did you mean 'z'"):
        Formula("sqrt(z)").of(zz=inner)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x if k else -inf", "x k"), ("a if b else c if d else f", "a b c d f"),
        ("(a if b else c) if d < g else f", "a b c d g f"), ("t = y; s = x; s + t", "y x"),
        ("_t = z; x + y", "x y"), ("clip(x, low, high) // y % z", "x low high y z"),
        ("a < b <= c and not d or e2", "a b c d e2"),
        ("where(c, x.real, -y) ** (z if w else c)", "c x y z w"),
    ],
)  # fmt: skip
def test_names_are_in_the_order_of_the_text(text, names):
    assert Formula(text).names == tuple(names.split())
    assert kp.ops.elementwise(text).formula.names == tuple(names.split())
    assert list(inspect.signature(kp.ops.reduction(text, "max")).parameters)[: len(names.split())] == (
        names.split()
    )
    inner = Formula("p if q else r")
    assert Formula("a - z if z else y").of(z=inner).names == ("a", "p", "q", "r", "y")


def test_a_formula_has_at_most_256_arguments_and_results():
    def names(count):
        return [
            " + ".join(f"x{n}" for n in range(first, min(first + 50, count))) for first in range(0, count, 50)
        ]

    unused = "; ".join(f"_t{n} = {each}" for n, each in enumerate(names(400)))
    assert len(Formula(f"{unused}; r = _t0 * _t1").names) == 100
    sums = " + ".join(f"({each})" for each in names(255))
    assert len(Formula(sums).names) == 255
    whole = Formula("u + v").of(u=Formula(" + ".join(names(254))))
    with pytest.raises(InvalidArgumentError, match="256 arguments and 1 results; 256 together"):
        Formula(f"{sums} + y")
    with pytest.raises(InvalidArgumentError, match="256 arguments and 1 results"):
        whole.of(v=Formula("y + z"))
    with pytest.raises(InvalidArgumentError, match="1 arguments and 256 results"):
        kp.ops.elementwise("; ".join(f"r{n} = x + {n}" for n in range(256)))
    with pytest.raises(InvalidArgumentError, match="12000 arguments"):
        kp.ops.reduction(" + ".join(f"({each})" for each in names(12_000)), "sum")


def test_long_formulas(mgr):
    x = np.arange(-3, 500, dtype=np.float32)
    steps = "".join(f"{n * n}.0 if x == {n} else " for n in range(400)) + "-1"
    expected = np.where((x >= 0) & (x < 400), x * x, -1)
    np.testing.assert_array_equal(kp.ops.elementwise(steps, dtype="float32")(x), expected)
    (found,) = operation_of(" + ".join(["x"] * 500))(x)
    np.testing.assert_array_equal(found, x * 500)
    with pytest.raises(kp.errors.FormulaError, match="too deep") as caught:
        Formula(" + ".join(["x"] * 200_000))  # beyond what any parser of Python takes
    assert len(str(caught.value)) < 1000  # not the whole text


# Of these, compilers find that an operand is zero, or nearly: some then drop NaN, infinities and signs.
FOLDED = ["x * (y - y)", "x + 0.0", "0.0 - x", "x - -0.0", "where(x > 0, -1.0, 0.0)", "x * (x < x)",
          "(x < x) + x", "where(y != y, y, 0.0) * x", "x * float32(n - n)", "x + float32(n & 0)", "x * 0.0",
          "copysign(heaviside(x - x, -0.0), x)", "y // heaviside(x, -0.0)", "imag(n) * x", "x - (n != n)",
          "x / x", "x - x", "sign(x) * 0 * x", "fmod(x, x) * fmod(2.0, float32(x < x))"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_that_a_compiler_finds(mgr, dtype):
    if not runs(mgr, dtype):
        pytest.skip(f"the device has no {dtype}")
    x = np.array([np.inf, np.nan, 1, -0.0, 0.0, -3], dtype)
    given = {"x": x, "y": np.array([0, 1, 2, 3, -0.0, 5], dtype), "n": np.arange(6, dtype=np.int16)}
    for text in FOLDED:
        text = text.replace("float32", dtype)
        operation = kp.ops.elementwise(text)
        found = operation(**{name: given[name] for name in operation.formula.names})
        expected = np.asarray(numpy_of(text, given))
        np.testing.assert_array_equal(found, expected, text)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]), text)


CHOICES = [
    "where(x > 5, x, copysign(y, x))", "where(x > 5, y, copysign(y, x))", "where(x < 5, copysign(y, x), x)",
    "where(x > 5, x, copysign(abs(x) * 3, x))", "where(x > 5, x, copysign(where(x > 2, y * 2, y), x))",
    "where(x > 5, where(x > 2, y * 2, y), copysign(where(x > 2, y * 2, y), x))",
    "where(x > 5, x, where(x > 2, copysign(y * 2, x), copysign(y, x)))",
    "where(x > 5, 0 * x, copysign(y, x))",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs_are_copied_in_choices(mgr, dtype):
    """LLVM's code for AVX-512 mixes up operands of choices between numbers and mixes of their bits."""
    if not runs(mgr, dtype):
        pytest.skip(f"the device has no {dtype}")
    x = np.array([0.5, -0.25, 3, -7, 8, 1, -2, 9, -0.0, 6, 2.5], dtype)
    y = np.array([1, 2, -3, 4, -5, 6.3, 7.7, 8, -9, -0.0, 11], dtype)
    for text in CHOICES:
        operation = kp.ops.elementwise(text)
        given = {name: {"x": x, "y": y}[name] for name in operation.formula.names}
        expected = np.asarray(numpy_of(text, given))
        for n in (11, 3):  # kernels have code of its own for a rest of four
            found = operation(**{name: each[:n] for name, each in given.items()})
            bits, wanted = (each.view(f"u{x.itemsize}") for each in (found, expected[:n]))
            np.testing.assert_array_equal(bits, wanted, text)


def test_functions_in_glsl(mgr):
    preamble = "float smooth_step3(float t) { return t * t * (3.0 - 2.0 * t); }"
    x = np.linspace(0, 1, 9, dtype=np.float32)
    (found,) = operation_of("smooth_step3(x) + 1", preamble)(x)
    np.testing.assert_allclose(found, x * x * (3 - 2 * x) + 1, rtol=1e-6)
    with pytest.raises(kp.ArgumentTypeError, match="smooth_step3 takes float32, not complex64"):
        operation_of("smooth_step3(x)", preamble)(x.astype(np.complex64))


@pytest.mark.parametrize(
    ("text", "column", "match"),
    [
        ("x + sqr(y)", 5, "no function 'sqr': did you mean 'sqrt'"),
        ("x + ", 4, "invalid syntax"),
        ("", 1, "no expression"),
        ("sqrt(x, y)", 1, "sqrt takes 1 argument; 2 are given"),
        ("x; y", 1, "stands at the end only"),
        ("a = x; a = y", 8, "assigned twice"),
        ("a = x; x = y", 8, "is an argument"),
        ("_a = x", 1, "no result"),
        ("x + float", 5, "GLSL reserves"),
        ("sin + x", 1, "is a function"),
        ("x @ y", 1, "no matrix products"),
        ("x[0]", 1, "only"),
        ("x + 'a'", 5, "not a number"),
        ("x = lambda: 3", 5, "only"),
        ("x if y in z else 3", 6, "compare with"),
        ("_x + 1", 1, "do not begin with"),
        ("x.T", 1, "no attribute 'T'"),
        ("import os", 1, "formulas have"),
        ("x * e", 5, "Euler's number or an argument: write np.e"),
        ("sin(None)", 5, "None is not a number"),
        ("-" * 9000 + "x", 1, "too deep"),
        ("(" * 300 + "x" + ")" * 300, 201, "too many nested parentheses"),
        ("\n  x +\n y z", 7, "invalid syntax"),
    ],
)
def test_formulas_that_cannot_be_read(text, column, match):
    with pytest.raises(kp.errors.FormulaError, match=match) as caught:
        Formula(text)
    assert caught.value.offset == column and caught.value.text == text


@pytest.mark.parametrize(
    ("text", "dtype", "column"),
    [("x & y", "float32", 1), ("1 + (x - y)", "bool", 6), ("y + ~x", "float32", 5),
     ("cbrt(x)", "complex64", 1), ("x << y", "float32", 1), ("-x", "bool", 1), ("x // y", "complex64", 1),
     ("float32(x)", "complex64", 1)],
)  # fmt: skip
def test_types_that_do_not_fit(text, dtype, column):
    formula = Formula(text)
    with pytest.raises(kp.ArgumentTypeError, match=rf"column {column}\)"):
        formula.typed(dict.fromkeys(formula.names, np.dtype(dtype)))


def test_functions_of_doubles_say_what_to_do():
    assert Formula("exp(x)").typed({"x": np.dtype(np.int32)}).dtypes == {"result": np.float64}
    with pytest.raises(kp.UnimplementedError, match="no shaderInt64"):
        Formula("x + y").typed({"x": np.dtype(np.int32), "y": np.dtype(np.uint32)}, frozenset())
    found = Formula("x / y").typed(dict.fromkeys("xy", np.dtype(np.int32)), frozenset())
    assert found.dtypes == {"result": np.float32}


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_small_floats(mgr, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    every = np.arange(256 if dtype.itemsize == 1 else 65536, dtype=f"u{dtype.itemsize}").view(dtype)
    (same,) = operation_of("x")(every)
    number = ~np.isnan(every.astype(np.float32))
    np.testing.assert_array_equal(
        same[number].view(f"u{dtype.itemsize}"), every[number].view(f"u{dtype.itemsize}")
    )
    assert np.isnan(same[~number].astype(np.float32)).all()
    rng = np.random.default_rng(0)
    wide = (rng.normal(size=20000) * 10 ** rng.uniform(-9, 9, 20000)).astype(np.float32)
    wide[:3] = np.inf, -np.inf, np.nan
    # The numbers in the middle between two of the dtype, and their neighbours.
    values = np.sort(every[number].astype(np.float32))
    middle = (values[1:] / 2 + values[:-1] / 2)[:4000]
    near = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, -middle)])
    wide = np.concatenate([wide, values, near[np.abs(near) >= np.finfo(np.float32).tiny]])
    (found,) = operation_of(f"{name}(x)")(wide)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found.astype(np.float32), wide.astype(dtype).astype(np.float32))
    x, y = wide[:500].astype(dtype), wide[500:1000].astype(dtype)
    results = operation_of("a = x * y + 1; b = x + f; c = x * k; d = x < y; g = sqrt(x)")(
        x=x, y=y, f=wide[:500], k=0.3
    )
    u, v = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        k = np.float32(dtype.type(0.3))
        expected = [
            (u * v + 1).astype(dtype), u + wide[:500], (u * k).astype(dtype), u < v, np.sqrt(u).astype(dtype),
        ]  # fmt: skip
    for one, other in zip(results, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32))


@pytest.mark.parametrize(
    "text",
    ["x / (y - y)", "x // (y - y)", "x % (y - y)", "1 / (y * 0)", "reciprocal(y - y)", "(x - x) / (y - y)"],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_quotients_by_zeros_that_a_compiler_finds(text, dtype, mgr):
    """Lavapipe's compiler takes any value for such a quotient."""
    x = np.array([1, -1, 0, 5, -7, 2], dtype)
    if dtype == "float32":
        x[3:5] = np.nan, np.inf
    elif "/" in text.replace("//", "") and "shaderFloat64" not in mgr.enabled_features:
        return  # the quotient of ints is float32 there
    if text.startswith("reciprocal") and dtype == "int32":
        return  # refused
    given = {"x": x, "y": np.arange(6).astype(dtype)}
    operation = kp.ops.elementwise(text)
    found = operation(*[given[name] for name in operation.formula.names])
    with np.errstate(all="ignore"):
        expected = eval(text, {"reciprocal": np.reciprocal, **given})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("sigmoid(x)", r"write 1 / \(1 \+ exp\(-x\)\)"),
        ("softmax(x)", r"kp\.ops\.sum, take arrays"),
        ("x + sqr(y)", "did you mean 'sqrt'"),
        ("x > 0 ? 1 : 2", "write a if c else b"),
    ],
)
def test_what_to_write_instead(text, advice):
    with pytest.raises(kp.errors.FormulaError, match=advice):
        Formula(text)


def test_round_keeps_ints_and_rint_makes_floats(needs, mgr):
    """As NumPy: ints of 64 bits lose no digit, and short ones wrap."""
    short = np.uint8([255, 3])
    for text, want in (
        ("round(x)", short),
        ("around(x) + 1", short + np.uint8(1)),
        ("rint(x)", np.rint(short)),
    ):
        got = kp.ops.elementwise(text)(short)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
    assert kp.ops.round(np.array([True, False])).dtype == np.round(np.array([True])).dtype
    needs(mgr, "shaderInt64")
    wide = np.array([2**53 + 1, 5])
    np.testing.assert_array_equal(kp.ops.elementwise("np.round(x)")(wide), wide)
