"""Numbers, conversions and promotion of dtypes, in GLSL's terms."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from .._base.errors import InvalidArgumentError, UnimplementedError
from .._base.types import dtype_text, is_small_float
from .functions import CASTS
from .glsl_elements import element_of
from .small_floats import SMALL_FLOATS

Dtype = np.dtype[Any]
Kind = Dtype | str
"""A dtype, or the kind of a number without one: "bool", "int", "float" or "complex"."""

WEAK = ("bool", "int", "float", "complex")
"""The kinds of numbers without dtypes, each higher than those before it."""
BOOL, INT64, FLOAT16, FLOAT32, FLOAT64 = map(np.dtype, ("?", "i8", "f2", "f4", "f8"))
COMPLEX64, UINT64, INT8 = np.dtype(np.complex64), np.dtype(np.uint64), np.dtype(np.int8)
INT32, COMPLEX128 = np.dtype(np.int32), np.dtype(np.complex128)
PART_OF = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
"""The dtype of the real and the imaginary part."""


def promoted(values: list[Kind]) -> Dtype:
    """NumPy 2's dtype for these: numbers without dtypes take that of the others, but for their kind."""
    dtypes = [each for each in values if not isinstance(each, str)]
    if any(each.names for each in dtypes):  # NumPy's common dtype of structs has no padding
        others = [each for each in dtypes if each != dtypes[0]]
        if others:
            raise InvalidArgumentError(
                f"{dtype_text(dtypes[0])} and {dtype_text(others[0])} have no common dtype: structs "
                "are joined with structs of the same fields at the same places"
            )
        return dtypes[0]
    if any(map(is_small_float, dtypes)) and len(set(dtypes)) > 1:
        # They have no common dtype with most others; where they have, NumPy's depends on their package.
        dtypes = [FLOAT32 if is_small_float(each) else each for each in dtypes]
    strong: Dtype = np.result_type(*dtypes) if dtypes else BOOL
    weak = max((WEAK.index(each) for each in values if isinstance(each, str)), default=0)
    if weak == 1 and strong == BOOL:
        return INT64
    if weak == 2 and strong.kind in "biu":
        return FLOAT64
    if weak == 3 and strong.kind != "c":
        small = strong.kind not in "biu" and strong.itemsize <= 4
        return COMPLEX64 if small or not dtypes else COMPLEX128
    return strong


def cast_dtype(name: str) -> Dtype:
    """The dtype of a function that converts. Raises UnimplementedError if its package is missing."""
    if name in SMALL_FLOATS:
        try:
            import ml_dtypes
        except ImportError:
            raise UnimplementedError(f"{name} is a dtype of ml_dtypes: pip install ml_dtypes") from None
        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(CASTS[name])


def castable(given: Dtype, wanted: Dtype) -> bool:
    """Whether values are converted so unasked: to the same kind of numbers or a higher one."""
    if given.names or wanted.names:
        return bool(given == wanted)
    given, wanted = (FLOAT16 if is_small_float(each) else each for each in (given, wanted))
    return np.can_cast(given, wanted, "same_kind")


def rounded_to(text: str, dtype: Dtype) -> str:
    """A float expression as the nearest number of a smaller dtype."""
    if dtype == FLOAT16:
        return f"kp_half({text})"
    if is_small_float(dtype):
        name = dtype.name.replace("float8_", "")
        return f"kp_from_{name}(kp_to_{name}({text}))"
    return text


def real_of(dtype: Dtype) -> Dtype:
    """The dtype of functions such as sin for arguments of `dtype`."""
    if dtype.kind in "biu":
        return {1: FLOAT16, 2: FLOAT32}.get(dtype.itemsize, FLOAT64)
    return dtype


def real_promoted(values: list[Kind]) -> Dtype:
    """The dtype of such functions for arguments of these: the smallest that each of them casts to."""
    weak = {each for each in values if isinstance(each, str)}
    if "int" in weak and all(each == BOOL for each in values if not isinstance(each, str)):
        values = [*values, INT64]  # an int with bools is int64
    if not weak & {"float", "complex"}:
        values = [each if isinstance(each, str) else real_of(each) for each in values]
    return real_of(promoted(values))


def literal(value: Any, dtype: Dtype) -> str:
    """A number as GLSL. Raises OverflowError if the dtype has none such."""
    kind = element_of(dtype).type
    if kind == "bool":
        return "true" if value else "false"
    if kind == "vec2":
        single = complex(value)
        return f"vec2({_float(single.real)}, {_float(single.imag)})"
    if kind == "dvec2":
        wide = complex(value)
        return f"dvec2({_double(wide.real)}, {_double(wide.imag)})"
    if dtype.kind in "iu":
        return _whole(int(value), dtype, kind)
    if kind == "double":
        return _double(float(value))
    if dtype == FLOAT16 or is_small_float(dtype):
        with np.errstate(over="ignore"):
            return _float(float(dtype.type(value)))
    return _float(float(value))


def _whole(value: int, dtype: Dtype, kind: str) -> str:
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError
    end = {"int": "", "uint": "u", "int64_t": "l", "uint64_t": "ul"}[kind]
    if value < 0:
        return f"(-{-value - 1}{end} - 1{end})"  # the lowest one has no positive
    return f"{value}{end}"


def _float(value: float) -> str:
    with np.errstate(over="ignore"):
        single = np.float32(value)
    bits = int(single.view(np.uint32))
    if not np.isfinite(single) or 0 < abs(single) < 1e-30 or abs(single) > 1e30:
        return f"uintBitsToFloat({hex(bits)}u)"
    text = repr(float(single))
    return f"({text})" if text[0] == "-" else text


def _double(value: float) -> str:
    if not np.isfinite(value) or 0 < abs(value) < 1e-200 or abs(value) > 1e200:
        low, high = struct.unpack("<II", struct.pack("<d", value))
        return f"packDouble2x32(uvec2({hex(low)}u, {hex(high)}u))"
    text = repr(value)
    return f"({text}lf)" if text[0] == "-" else f"{text}lf"


def fitting(number: Any, dtype: Dtype) -> Any:
    """A number of Python for a dtype. Raises ValueError or OverflowError if it has none such."""
    if dtype == BOOL:
        return bool(number)
    if isinstance(number, complex) and dtype.kind != "c":
        raise ValueError(f"{number} is complex")
    if dtype.kind in "iu":
        if isinstance(number, float):
            raise ValueError(f"{number} is no {dtype}")
        return int(number)
    if dtype.kind == "c":
        return complex(number)
    value = float(number)
    return value


_RUN_TIME_ZERO = "(gl_NumWorkGroups.x >> 31)"
"""A uint that is 0, as compilers do not know."""
_ZERO = re.compile(r"(?<![\w.])0\.0(lf)?(?![\w.])")


def opaque(text: str) -> str:
    """A number as an operand. Some drivers give a product with a zero that they know as zero, also of NaN and
    infinities, the other operand for a sum with one, also -0.0, anything for a quotient by it, and -0.0 for a
    choice of -1.0 and 0.0. So a zero is one that they learn when they run.
    """
    if text.startswith(("vec2(", "dvec2(")):
        return _ZERO.sub(f"float{_RUN_TIME_ZERO}", text)
    if text.strip("(-)") in ("0.0", "0.0lf"):
        kind = "double" if "lf" in text else "float"
        return f"({'-' if '-' in text else ''}{kind}{_RUN_TIME_ZERO})"
    return text


def opaque_int(text: str, dtype: Dtype) -> str:
    """An int that becomes a float; compilers may find that it is 0."""
    return f"({text} | {element_of(dtype).type}{_RUN_TIME_ZERO})"


def wrapped(text: str, dtype: Dtype) -> str:
    """The value of an int expression in its own width."""
    if dtype.kind == "i" and dtype.itemsize < 4:
        return f"bitfieldExtract({text}, 0, {dtype.itemsize * 8})"
    if dtype.kind == "u" and dtype.itemsize < 4:
        return f"({text}) & {'0xffu' if dtype.itemsize == 1 else '0xffffu'}"
    return text


def converted(text: str, given: Dtype, wanted: Dtype) -> str:
    """An expression of one dtype as another, by C's rules as NumPy's `astype`."""
    if given == wanted:
        return text
    source, target = element_of(given).type, element_of(wanted).type
    if wanted == BOOL:
        return f"({text} != {literal(0, given)})"
    if given == BOOL:
        return f"({text} ? {literal(1, wanted)} : {opaque(literal(0, wanted))})"
    if target == "vec2":
        if source == "dvec2":
            return f"kp_cfloat({text})"
        return opaque(f"vec2({converted(text, given, FLOAT32)}, 0.0)")
    if target == "dvec2":
        return f"dvec2({text})" if source == "vec2" else opaque(f"dvec2(double({text}), 0.0lf)")
    made = text if source == target else f"{target}({text})"
    if given == FLOAT64 and target == "float":
        return f"{'kp_dodd' if wanted == FLOAT16 else 'kp_dfloat'}({text})"  # the first is rounded once more
    if source == "int" and target in ("int64_t", "uint64_t"):
        # By parts: Mesa before 23.1 compares int64_t(int) with constants wrongly.
        made = f"packInt2x32(ivec2({text}, {text} >> 31))"
        made = made if target == "int64_t" else f"uint64_t({made})"
    if wanted.kind in "iu" and wanted.itemsize < 4 and not np.can_cast(given, wanted):
        return f"({wrapped(made, wanted)})"
    return made
