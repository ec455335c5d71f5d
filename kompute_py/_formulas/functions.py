"""The functions of formulas, by NumPy's names: how many arguments they take, and their GLSL."""

from __future__ import annotations

from typing import NamedTuple

from .small_floats import SMALL_FLOATS


class Real(NamedTuple):
    """A function with results of a floating type."""

    float: str
    """For float; "{T}" is the type, "{0}" and "{1}" the arguments."""
    double: str | None = None
    """For double. None: GLSL has no such function of doubles."""
    complex: str | None = None
    """For complex numbers, if it has a meaning there; "{T}" is vec2 or dvec2."""


def _of_both(text: str, complex: str | None = None) -> Real:
    return Real(text, text, complex)


def _of_all(name: str) -> Real:
    """A function that GLSL has of none of the types."""
    short = name.replace("arc", "a")
    return Real(f"kp_{short}({{0}})", f"kp_d{short}({{0}})", f"kp_c{short}_{{T}}({{0}})")


REAL = {
    "sqrt": _of_both("kp_sqrt_{T}({0})", "kp_csqrt_{T}({0})"),
    "cbrt": Real("kp_cbrt({0})", "kp_dcbrt({0})"),
    **{
        name: _of_all(name)
        for name in (
            *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
            *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
        )
    },
    "exp2": Real("kp_exp2({0})", "kp_dexp2({0})", "kp_cexp_{T}({0} * 0.6931471805599453LF)"),
    "erf": Real("kp_erf({0})", "kp_derf({0})"),
    "log2": Real("kp_log2({0})", "kp_dlog2({0})", "(kp_clog_{T}({0}) * 1.4426950408889634LF)"),
    "log10": Real("kp_log10({0})", "kp_dlog10({0})", "(kp_clog_{T}({0}) * 0.4342944819032518LF)"),
    "arctan2": Real("kp_atan2({0}, {1})", "kp_datan2({0}, {1})"),
    "hypot": Real("kp_hypot({0}, {1})", "kp_dhypot({0}, {1})"),
    "logaddexp": Real("kp_logaddexp({0}, {1})", "kp_dlogaddexp({0}, {1})"),
    "copysign": _of_both("kp_copysign_{T}({0}, {1})"),
    "heaviside": _of_both("kp_heaviside_{T}({0}, {1})"),
    "nextafter": _of_both("kp_nextafter_{T}({0}, {1})"),
    "rint": _of_both("kp_rint_{T}({0})"),
    "fabs": _of_both("abs({0})"),
    # As NumPy, a product with the quotient of the dtype's pi and 180.
    "radians": Real("({0} * 0.017453292)", "({0} * 0.017453292519943295lf)"),
    "degrees": Real("({0} * 57.295776)", "({0} * 57.29577951308232lf)"),
}
BINARY_REAL = ("arctan2", "hypot", "logaddexp", "copysign", "heaviside", "nextafter")
CASTS = {
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool_": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
    **{name: name for name in SMALL_FLOATS},
}
_ONE = """negative positive invert logical_not absolute sign square reciprocal floor ceil trunc round isnan
    isinf isfinite signbit real imag conj"""
_TWO = """add subtract multiply divide floor_divide remainder fmod power minimum maximum fmin fmax gcd
    bitwise_and bitwise_or bitwise_xor left_shift right_shift less less_equal greater greater_equal equal
    not_equal logical_and logical_or logical_xor"""
ARITY = {
    **{name: 2 if name in BINARY_REAL else 1 for name in REAL},
    **dict.fromkeys(CASTS, 1),
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys(_ONE.split(), 1),
    "where": 3,
    "clip": 3,
}
SYNONYMS = {
    "abs": "absolute",
    "min": "minimum",
    "max": "maximum",
    "around": "round",
    "pow": "power",
    "mod": "remainder",
    "true_divide": "divide",
    "conjugate": "conj",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "deg2rad": "radians",
    "rad2deg": "degrees",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}

WRITTEN = {
    "erfc": "1 - erf(x)",
    "expit": "1 / (1 + exp(-x))",
    "float": "float32(x)",
    "fma": "a * b + c",
    "int": "int32(x)",
    "lerp": "a + (b - a) * t",
    "mix": "a + (b - a) * t",
    "relu": "maximum(x, 0)",
    "sigmoid": "1 / (1 + exp(-x))",
    "silu": "x / (1 + exp(-x))",
    "softplus": "logaddexp(x, 0)",
}
"""Replacements for functions that formulas lack."""
