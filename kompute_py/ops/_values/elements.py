"""Elementwise functions, by NumPy's names: each is an expression of `kp.ops.elementwise`.

They are made when they are first used: the table below has all of them.
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ..._base.errors import InvalidArgumentError
from ..._builders.elementwise import Elementwise, ElementwiseOp, elementwise
from ..._builders.in_parts import ElementsInParts
from ..._custom.declaration import parse
from ..._formulas.conversions import conversion
from ..._formulas.formula import Formula
from ..._formulas.typed import Typed
from ..._functions.function import Function

if TYPE_CHECKING:
    from ..._custom.selection import FunctionSelection

_NUMBERS = "all"
_REAL = "all but complex"
_ORDERED = "all; complex numbers by real parts, then by imaginary ones"
_INTS = "bool and ints"
_SINGLE = "floats up to 32 bits; ints and bools with such a result"
_FLOATS = "floats, float64 too; ints and bools, some of which give float64"
_COMPLEX = "floats and complex numbers; ints and bools, some of which give float64"
_ROUNDED = "all but complex"
_EXACT = "exact"
_OF_COMPLEX = "; complex: 16 roundings of the absolute value"
"""Those that grow, too, are in the guide's table "Complex numbers"."""


class _Function(NamedTuple):
    formula: str
    summary: str
    example: str
    shown: str
    dtypes: str = _NUMBERS
    error: str = _EXACT
    more: str = ""


def _one(name: str, summary: str, given: Any, shown: str, *facts: str, **more: str) -> tuple[str, _Function]:
    call = f"kp.ops.{name}(mgr.tensor({given}))"
    return name, _Function(more.pop("formula", f"{name}(x)"), summary, call, shown, *facts, **more)


def _part(
    name: str, summary: str, shown: str, error: str = _EXACT, formula: str = ""
) -> tuple[str, _Function]:
    call = f"kp.ops.{name}(mgr.tensor_t(np.array([3 + 4j], np.complex64)))"
    return name, _Function(formula or f"{name}(x)", summary, call, shown, _NUMBERS, error)


def _two(name: str, summary: str, text: str, given: str, shown: str, *facts: str) -> tuple[str, _Function]:
    return name, _Function(text, summary, f"kp.ops.{name}({given})", shown, *facts)


_TABLE: dict[str, _Function] = dict(
    [
        # -- arithmetic --
        _two("add", "`x1` plus `x2`.", "x1 + x2", "mgr.tensor([1, 2]), 10", "[11.0, 12.0]"),
        _two("subtract", "`x1` minus `x2`.", "x1 - x2", "mgr.tensor([1, 2]), 10", "[-9.0, -8.0]"),
        _two("multiply", "`x1` times `x2`.", "x1 * x2", "mgr.tensor([1, 2]), 10", "[10.0, 20.0]"),
        _two(
            "divide",
            "`x1` divided by `x2`; ints give floats.",
            "x1 / x2",
            "mgr.tensor([1, 2]), 4",
            "[0.25, 0.5]",
            _NUMBERS,
            "3 ulp (Vulkan allows 2.5); exact on CPU drivers",
        ),
        _two(
            "floor_divide",
            "The largest whole number that is not above `x1` divided by `x2`.",
            "x1 // x2",
            "mgr.tensor([7, -7]), 2",
            "[3.0, -4.0]",
            _REAL,
        ),
        _two(
            "remainder",
            "The remainder of `x1 // x2`, with the sign of `x2`.",
            "x1 % x2",
            "mgr.tensor([7, -7]), 3",
            "[1.0, 2.0]",
            _REAL,
        ),
        _two(
            "fmod",
            "The remainder of `x1` divided by `x2` toward zero, with the sign of `x1`.",
            "fmod(x1, x2)",
            "mgr.tensor([7, -7]), 3",
            "[1.0, -1.0]",
            _REAL,
        ),
        _two(
            "power",
            "`x1` to the power of `x2`. Negative powers of ints, which NumPy refuses, are cut off to ints.",
            "power(x1, x2)",
            "mgr.tensor([2, 3]), 2.0",
            "[4.0, 9.0]",
            "all but bool",
            f"exact for ints; 16 ulp; float64: 4 ulp{_OF_COMPLEX} and 8 for each unit of "
            "`x2 * (1 + abs(log(x1)))`",
        ),
        _one("negative", "Minus `x`.", [1, -2], "[-1.0, 2.0]"),
        _one("positive", "`x` itself, copied.", [1, -2], "[1.0, -2.0]"),
        _one("absolute", "The absolute value of `x`.", [1, -2], "[1.0, 2.0]"),
        _part("real", "The real part of `x`; a real `x` copied.", "[3.0]"),
        _part("imag", "The imaginary part of `x`; zeros for a real `x`.", "[4.0]"),
        _part("conjugate", "`x` with minus the imaginary part.", "[(3-4j)]"),
        _part(
            "angle",
            "The angle of `x` in radians; that of bools is float16, NumPy's float64.",
            "[0.9272952079772949]",
            "8 ulp",
            formula="arctan2(imag(x), real(x))",
        ),
        _one(
            "sign",
            "-1, 0 or 1: the sign of `x`; NaN of NaN. Of a complex `x`, `x` divided by its absolute value.",
            [3, 0, -2],
            "[1.0, 0.0, -1.0]",
            "all but bool",
        ),
        _one("square", "`x` times `x`.", [1, -2], "[1.0, 4.0]"),
        _one("reciprocal", "1 divided by `x`.", [1, -2], "[1.0, -0.5]", "floats, complex", "3 ulp"),
        _one(
            "sqrt",
            "The square root of `x`; NaN of negative numbers, but for complex ones.",
            [4, 9],
            "[2.0, 3.0]",
            "all; ints give floats",
            f"3 ulp{_OF_COMPLEX}",
        ),
        _one("cbrt", "The cube root of `x`.", [8, -27], "[2.0, -3.0]", _FLOATS, "4 ulp"),
        _two(
            "minimum",
            "The smaller of `x1` and `x2`; NaN if one is.",
            "minimum(x1, x2)",
            "mgr.tensor([1, 5]), 3",
            "[1.0, 3.0]",
            _ORDERED,
        ),
        _two(
            "maximum",
            "The larger of `x1` and `x2`; NaN if one is.",
            "maximum(x1, x2)",
            "mgr.tensor([1, 5]), 3",
            "[3.0, 5.0]",
            _ORDERED,
        ),
        _two(
            "fmin",
            "The smaller of `x1` and `x2`; the other one if one is NaN.",
            "fmin(x1, x2)",
            "mgr.tensor([1, 5]), 3",
            "[1.0, 3.0]",
            _ORDERED,
        ),
        _two(
            "fmax",
            "The larger of `x1` and `x2`; the other one if one is NaN.",
            "fmax(x1, x2)",
            "mgr.tensor([1, 5]), 3",
            "[3.0, 5.0]",
            _ORDERED,
        ),
        _two(
            "copysign",
            "`x1` with the sign of `x2`.",
            "copysign(x1, x2)",
            "mgr.tensor([1, 5]), -3",
            "[-1.0, -5.0]",
            _REAL,
        ),
        _two(
            "nextafter",
            "The next number of the dtype from `x1` towards `x2`.",
            "nextafter(x1, x2)",
            "np.array([2048, 4096], np.float16), 0",
            "[2047.0, 4094.0]",
            _REAL,
        ),
        _two(
            "hypot",
            "The root of `x1 * x1 + x2 * x2`, without overflow.",
            "hypot(x1, x2)",
            "mgr.tensor([3, 5]), 4",
            "[5.0, 6.4031243324279785]",
            _FLOATS,
            "8 ulp",
        ),
        _two(
            "gcd",
            "The greatest common divisor of `x1` and `x2`.",
            "gcd(x1, x2)",
            "np.array([12, 7]), 8",
            "[4, 1]",
            "ints",
        ),
        # -- rounding --
        _one(
            "floor", "The largest whole number that is not above `x`.", [1.5, -1.5], "[1.0, -2.0]", _ROUNDED
        ),
        _one(
            "ceil", "The smallest whole number that is not below `x`.", [1.5, -1.5], "[2.0, -1.0]", _ROUNDED
        ),
        _one("trunc", "`x` without its fraction.", [1.5, -1.5], "[1.0, -1.0]", _ROUNDED),
        _one("rint", "The nearest whole number; of two, the even one.", [0.5, 1.5], "[0.0, 2.0]", _ROUNDED),
        # -- comparisons --
        *(
            _two(
                name,
                f"Whether `x1` is {words} `x2`, element by element.",
                f"x1 {sign} x2",
                "mgr.tensor([1, 2, 3]), 2",
                shown,
                dtypes,
            )
            for name, words, sign, shown, dtypes in (
                ("equal", "equal to", "==", "[False, True, False]", _NUMBERS),
                ("not_equal", "not equal to", "!=", "[True, False, True]", _NUMBERS),
                ("less", "less than", "<", "[True, False, False]", _ORDERED),
                ("less_equal", "less than or equal to", "<=", "[True, True, False]", _ORDERED),
                ("greater", "greater than", ">", "[False, False, True]", _ORDERED),
                ("greater_equal", "greater than or equal to", ">=", "[False, True, True]", _ORDERED),
            )
        ),
        _one("isnan", "Whether `x` is NaN.", "[1, np.nan]", "[False, True]"),
        _one("isinf", "Whether `x` is infinite.", "[1, -np.inf]", "[False, True]"),
        _one("isfinite", "Whether `x` is neither infinite nor NaN.", "[1, -np.inf]", "[True, False]"),
        _one(
            "signbit",
            "Whether the sign of `x` is minus; -0.0 has it.",
            "[1, -0.0]",
            "[False, True]",
            _REAL,
        ),
        # -- logic --
        _two(
            "logical_and",
            "Whether `x1` and `x2` are both not zero.",
            "logical_and(x1, x2)",
            "mgr.tensor([0, 2]), 1",
            "[False, True]",
        ),
        _two(
            "logical_or",
            "Whether `x1` or `x2` is not zero.",
            "logical_or(x1, x2)",
            "mgr.tensor([0, 2]), 0",
            "[False, True]",
        ),
        _two(
            "logical_xor",
            "Whether one of `x1` and `x2` is zero and the other is not.",
            "logical_xor(x1, x2)",
            "mgr.tensor([0, 2]), 1",
            "[True, False]",
        ),
        _one("logical_not", "Whether `x` is zero.", [0, 2], "[True, False]"),
        _two(
            "bitwise_and",
            "The bits that `x1` and `x2` both have.",
            "x1 & x2",
            "np.array([12, 10]), 6",
            "[4, 2]",
            _INTS,
        ),
        _two(
            "bitwise_or",
            "The bits that `x1` or `x2` has.",
            "x1 | x2",
            "np.array([12, 10]), 6",
            "[14, 14]",
            _INTS,
        ),
        _two(
            "bitwise_xor",
            "The bits that one of `x1` and `x2` has.",
            "x1 ^ x2",
            "np.array([12, 10]), 6",
            "[10, 12]",
            _INTS,
        ),
        _two("invert", "All bits of `x` inverted.", "invert(x)", "np.array([1, 2])", "[-2, -3]", _INTS),
        _two(
            "left_shift",
            "`x1` with its bits `x2` places to the left.",
            "x1 << x2",
            "np.array([1, 3]), 2",
            "[4, 12]",
            "ints",
        ),
        _two(
            "right_shift",
            "`x1` with its bits `x2` places to the right; the sign stays.",
            "x1 >> x2",
            "np.array([9, -9]), 2",
            "[2, -3]",
            "ints",
        ),
        # -- choice --
        (
            "where",
            _Function(
                "where(condition, x, y)",
                "`x` where `condition` is not zero, else `y`.",
                "kp.ops.where(mgr.tensor([0, 1]), 5.0, mgr.tensor([7, 8]))",
                "[7.0, 5.0]",
            ),
        ),
        # -- exponentials and logarithms --
        _one(
            "exp",
            "e to the power of `x`.",
            [0, 1],
            "[1.0, 2.7182817459106445]",
            _COMPLEX,
            "8 ulp and one for each unit of `x`",
        ),
        _one("exp2", "2 to the power of `x`.", [0, 3], "[1.0, 8.0]", _COMPLEX, "8 ulp"),
        _one(
            "expm1",
            "e to the power of `x`, less 1, also near 0.",
            [0, 1],
            "[0.0, 1.718281865119934]",
            _COMPLEX,
            "8 ulp and one for each unit of `x`",
        ),
        _one(
            "log",
            "The natural logarithm of `x`.",
            [1, 8],
            "[0.0, 2.0794415473937988]",
            _COMPLEX,
            "5 ulp",
        ),
        _one(
            "log2",
            "The logarithm of `x` to base 2.",
            [1, 8],
            "[0.0, 3.0]",
            _COMPLEX,
            "5 ulp",
        ),
        _one(
            "log10",
            "The logarithm of `x` to base 10.",
            [1, 100],
            "[0.0, 2.0]",
            _COMPLEX,
            "5 ulp",
        ),
        _one(
            "log1p",
            "The natural logarithm of 1 plus `x`, also near 0.",
            [0, 1],
            "[0.0, 0.6931471824645996]",
            _COMPLEX,
            "8 ulp",
        ),
        _two(
            "logaddexp",
            "The logarithm of the sum of the exponentials of `x1` and `x2`.",
            "logaddexp(x1, x2)",
            "mgr.tensor([0, 5]), 0",
            "[0.6931471824645996, 5.006715297698975]",
            _FLOATS,
            "2^-20 of the larger of 1 and the result",
        ),
        # -- trigonometry --
        _one(
            "sin",
            "The sine of `x`, in radians.",
            [0, 1],
            "[0.0, 0.8414709568023682]",
            _COMPLEX,
            "2^-20 for x to 1e4",
        ),
        _one(
            "cos",
            "The cosine of `x`, in radians.",
            [0, 1],
            "[1.0, 0.5403022766113281]",
            _COMPLEX,
            "2^-20 for x to 1e4",
        ),
        _one(
            "tan",
            "The tangent of `x`, in radians.",
            [0, 1],
            "[0.0, 1.5574077367782593]",
            _COMPLEX,
            "2^-18 of 1 + tan(x)**2, for x to 1e4",
        ),
        _one(
            "sinc",
            "The sine of pi times `x`, divided by that; 1 at 0.",
            [0, 0.5, 1.5],
            "[1.0, 0.6366197466850281, -0.21220658719539642]",
            _COMPLEX,
            "2^-20 for x to 1e3",
            formula="where(x == 0, 1, sin(3.141592653589793 * x) / (3.141592653589793 * x))",
        ),
        _one(
            "arcsin",
            "The angle in radians with the sine `x`.",
            [0, 1],
            "[0.0, 1.5707963705062866]",
            _COMPLEX,
            "8 ulp",
        ),
        _one(
            "arccos",
            "The angle in radians with the cosine `x`.",
            [0, 1],
            "[1.5707963705062866, 0.0]",
            _COMPLEX,
            "8 ulp",
        ),
        _one(
            "arctan",
            "The angle in radians with the tangent `x`.",
            [0, 1],
            "[0.0, 0.7853981852531433]",
            _COMPLEX,
            "8 ulp",
        ),
        _two(
            "arctan2",
            "The angle in radians of the point (`x2`, `x1`).",
            "arctan2(x1, x2)",
            "mgr.tensor([0, 1]), 1",
            "[0.0, 0.7853981852531433]",
            _FLOATS,
            "8 ulp",
        ),
        _one(
            "sinh",
            "The hyperbolic sine of `x`.",
            [0, 1],
            "[0.0, 1.175201177597046]",
            _COMPLEX,
            "8 ulp and one for each unit of `x`",
        ),
        _one(
            "cosh",
            "The hyperbolic cosine of `x`.",
            [0, 1],
            "[1.0, 1.5430806875228882]",
            _COMPLEX,
            "8 ulp and one for each unit of `x`",
        ),
        _one(
            "tanh", "The hyperbolic tangent of `x`.", [0, 1], "[0.0, 0.7615941762924194]", _COMPLEX, "16 ulp"
        ),
        _one(
            "arcsinh",
            "The number with the hyperbolic sine `x`.",
            [0, 1],
            "[0.0, 0.8813735842704773]",
            _COMPLEX,
            "16 ulp",
        ),
        _one(
            "arccosh",
            "The number from 0 with the hyperbolic cosine `x`.",
            [1, 2],
            "[0.0, 1.316957950592041]",
            _COMPLEX,
            "2^-20 of the larger of 1 and the result",
        ),
        _one(
            "arctanh",
            "The number with the hyperbolic tangent `x`.",
            [0, 0.5],
            "[0.0, 0.5493061542510986]",
            _COMPLEX,
            "16 ulp",
        ),
        _one(
            "radians",
            "`x` degrees in radians.",
            [180, 90],
            "[3.1415927410125732, 1.5707963705062866]",
            "floats",
        ),
        _one("degrees", "`x` radians in degrees.", [0, 1], "[0.0, 57.295780181884766]", "floats"),
        # -- special functions --
        _one(
            "erf",
            "The error function of `x`: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to `x`.",
            [0, 1],
            "[0.0, 0.8427007794380188]",
            _FLOATS,
            "8 ulp",
        ),
        _one(
            "sigmoid",
            "1 divided by 1 + exp(-`x`).",
            [0, 1],
            "[0.5, 0.7310585975646973]",
            _FLOATS,
            "8 ulp and one for each unit of `x`",
            formula="_e = exp(-fabs(x)); where(x < 0, _e, 1) / (1 + _e)",
        ),
    ]
)


class ClipOp(ElementwiseOp):
    """Keeps elements within bounds. Each bound may be left out."""

    formula = Formula("clip(a, a_min, a_max)")
    formulas: ClassVar[dict[tuple[bool, bool], Formula]] = {
        (True, True): formula,
        (True, False): Formula("clip(a, a_min, None)"),
        (False, True): Formula("clip(a, None, a_max)"),
        (False, False): Formula("a"),
    }
    signature = "clip(Tensor|Scalar a, Tensor|Scalar? a_min=None, Tensor|Scalar? a_max=None) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        for place in (1, 2):
            if not ksel.is_given(place):
                ksel.arg_optional_tensor_or_value(place)
        super().select(ksel)

    def formula_of(self, ksel: FunctionSelection) -> Formula:
        """That of the bounds that are given."""
        return self.formulas[ksel.is_given(1), ksel.is_given(2)]


class AsTypeOp(ElementwiseOp):
    """Converts to a dtype that an argument names."""

    formula = Formula("x")
    signature = "astype(Tensor|Scalar x, dtype dtype) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        ksel.attr_dtype("dtype")
        super().select(ksel)

    def typed(self, ksel: FunctionSelection, types: dict[str, Any]) -> Typed:
        return conversion(types["x"], ksel.attribute("dtype"), "x").typed(types, ksel.features)


class RoundOp(ElementwiseOp):
    """Rounds to a number of decimals."""

    formula = Formula("a")
    signature = "round(Tensor|Scalar a, int decimals=0) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        ksel.attr_int("decimals")
        super().select(ksel)

    def typed(self, ksel: FunctionSelection, types: dict[str, Any]) -> Typed:
        decimals, given = ksel.attribute("decimals"), types["a"]
        whole = given in ("bool", "int") if isinstance(given, str) else given.kind in "biu"
        if whole and decimals < 0:
            raise InvalidArgumentError(
                f"{ksel.name}: decimals is {decimals}, and a is of ints; convert it: "
                'kp.ops.astype(a, "float32")'
            )
        if abs(decimals) > 10:
            raise InvalidArgumentError(f"{ksel.name}: decimals is {decimals}; the most are 10, the least -10")
        scale = f"{10 ** abs(decimals)}.0"
        text = f"rint(a / {scale}) * {scale}" if decimals < 0 else f"rint(a * {scale}) / {scale}"
        return Formula(text if decimals and not whole else "round(a)").typed(types, ksel.features)


def _operation(kind: type[ElementwiseOp], doc: str) -> Function:
    members = {"__doc__": doc}
    declaration = parse(kind.signature)
    return ElementsInParts(type(declaration.name, (kind,), members)(), declaration)


def _fused(kind: type[ElementwiseOp], doc: str) -> Elementwise:
    members = {"__doc__": doc}
    name = kind.signature.partition("(")[0]
    return Elementwise(type(name, (kind,), members)(), kind.signature)


clip: Elementwise = _fused(
    ClipOp,
    """`a`, but at least `a_min` and at most `a_max`, as ``np.clip``. A bound of None is left out.

    The arguments broadcast, and the result has NumPy's dtype. An int of Python as a bound may be beyond the
    dtype of `a`, so that no element is. Raises the errors of operations made by `kp.ops.elementwise`, and
    NumberRangeError, an OverflowError, if each element of the dtype is beyond the bound.

    >>> kp.ops.clip(mgr.tensor([0, 5, 9]), 1, 8).tolist()
    [1.0, 5.0, 8.0]
    >>> kp.ops.clip(np.uint8([1, 200]), None, 100).tolist()
    [1, 100]

    :dtypes: all; complex numbers by real parts, then by imaginary ones
    :axes: elementwise
    :error: exact
    """,
)

astype: Function = _operation(
    AsTypeOp,
    """`x` converted to `dtype`, the name of one: ``"int8"``.

    Floats lose their fraction as they become ints; beyond the range they become its nearest end, and NaN
    becomes 0. Ints wrap, as NumPy's. Floats are rounded to the nearest, ties to even.

    Raises UnimplementedError for a dtype that the device lacks, ArgumentTypeError for anything but a dtype,
    and the errors of operations made by `kp.ops.elementwise`.

    >>> kp.ops.astype(mgr.tensor([1.7, -300, np.nan]), "int8").tolist()
    [1, -128, 0]

    :dtypes: all
    :axes: elementwise
    :error: exact
    """,
)
round: Function = _operation(
    RoundOp,
    """`a` rounded to `decimals`, from -10 to 10; of two nearest numbers the even one.

    Raises InvalidArgumentError for other decimals, and for negative ones of ints; and the errors of
    operations made by `kp.ops.elementwise`.

    >>> kp.ops.round(mgr.tensor([0.5, 1.5, 2.5])).tolist()
    [0.0, 2.0, 2.0]
    >>> kp.ops.round(mgr.tensor([1234.0]), -2).tolist()
    [1200.0]

    :dtypes: all but complex
    :axes: elementwise
    :error: exact; 3 ulp with decimals, of float16 in float32: ties may go another way than NumPy's
    """,
)


def _example(each: _Function) -> str:
    """The call and its result; results that drivers round differently are shown with four digits."""
    if all(len(number.partition(".")[2]) < 6 for number in re.findall(r"[\d.]+", each.shown)):
        return f">>> {each.example}.tolist()\n{each.shown}"
    rounded = [builtins.round(float(number), 4) for number in re.findall(r"[-\d.]+", each.shown)]
    return f">>> [round(each, 4) for each in {each.example}.tolist()]\n{rounded}"


def _of_doubles(each: _Function) -> str:
    """The error of float64, for functions that have one of their own."""
    if each.dtypes not in (_FLOATS, _COMPLEX):
        return ""
    return "; float64: 4 ulp" + (" of the largest of 1, `x1` and `x2`" if "logaddexp" in each.formula else "")


def _of_complex(each: _Function) -> str:
    """The error of complex numbers, for functions that have one of their own."""
    if each.dtypes != _COMPLEX:
        return ""
    grows = each.formula.startswith(("exp", "sin", "cos"))
    return _OF_COMPLEX + (" and one for each unit of `x`" if grows else "")


def __getattr__(name: str) -> Elementwise:
    if name not in _TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    each = _TABLE[name]
    doc = "\n\n".join(
        (
            each.summary,
            "The arguments broadcast, and the result has NumPy's dtype. Raises the errors of operations\n"
            "made by `kp.ops.elementwise`.",
            _example(each),
            f":dtypes: {each.dtypes}\n:axes: elementwise\n"
            f":error: {each.error}{_of_doubles(each)}{_of_complex(each)}",
        )
    )
    made = elementwise(each.formula, name=name, doc=doc)
    globals()[name] = made
    return made
