"""The floats of 8 and 16 bits of ml_dtypes in GLSL: from their bits to float, and to the nearest one's bits.

Each rounds as ml_dtypes does: to the nearest, ties to even, and for powers of two (e8m0fnu) ties up. A
number that is too large becomes infinite where the format has infinities, else NaN.
"""

from __future__ import annotations

from typing import NamedTuple


class _Format(NamedTuple):
    """A format with a sign, exponents and a mantissa. Its codes without the sign grow with its numbers."""

    mantissa: int
    """Bits."""
    bias: int
    """The exponent's code of 1.0."""
    largest: int
    """The code behind the largest number's: of infinity, of NaN, or 0x80."""
    nan: int
    """The code of NaN, with the number's sign but for 0x80."""

    @property
    def unsigned_zero(self) -> bool:
        """Whether NaN takes the place of -0.0 (the formats with names that end in fnuz)."""
        return self.nan == 0x80


# OCP's 8-bit floating point specification 1.0 (e4m3fn, e5m2) and the documentation of ml_dtypes.
_FORMATS = {
    "e3m4": _Format(4, 3, 0x70, 0x78),
    "e4m3": _Format(3, 7, 0x78, 0x7C),
    "e4m3b11fnuz": _Format(3, 11, 0x80, 0x80),
    "e4m3fn": _Format(3, 7, 0x7F, 0x7F),
    "e4m3fnuz": _Format(3, 8, 0x80, 0x80),
    "e5m2": _Format(2, 15, 0x7C, 0x7E),
    "e5m2fnuz": _Format(2, 16, 0x80, 0x80),
}
FLOAT8 = (*_FORMATS, "e8m0fnu")
"""The names of the formats of 8 bits: the dtypes are float8_ and these."""
SMALL_FLOATS = ("bfloat16", *(f"float8_{name}" for name in FLOAT8))
"""The names of the dtypes."""


def _from(name: str, form: _Format) -> str:
    finite = f"(m << {23 - form.mantissa}) + {hex((127 - form.bias) << 23)}u"
    least = 2.0 ** (1 - form.bias - form.mantissa)
    small = f"floatBitsToUint(float(m) * {least!r})"
    ieee = form.largest < form.nan
    nan = f"m {'>' if ieee else '>='} {hex(form.largest)}u"
    lines = [
        f"float kp_from_{name}(uint h) {{",
        "    uint s = (h & 0x80u) << 24, m = h & 0x7fu;",
        "    if (h == 0x80u) return uintBitsToFloat(0x7fc00000u);"
        if form.unsigned_zero
        else f"    if ({nan}) return uintBitsToFloat(s | 0x7fc00000u);",
        *([f"    if (m == {hex(form.largest)}u) return uintBitsToFloat(s | 0x7f800000u);"] if ieee else []),
        f"    if (m < {1 << form.mantissa}u) return uintBitsToFloat(s | {small});",
        f"    return uintBitsToFloat(s | ({finite}));",
        "}",
    ]
    return "\n".join(lines)


def _to(name: str, form: _Format) -> str:
    shift = 23 - form.mantissa
    magic = 2.0 ** (1 - form.bias + shift)  # its last place is the least number
    code = f"(m - {hex((127 - form.bias) << 23)}u + {hex((1 << (shift - 1)) - 1)}u + ((m >> {shift}) & 1u))"
    lines = [
        f"uint kp_to_{name}(float a) {{",
        "    uint u = floatBitsToUint(a), s = (u >> 24) & 0x80u, m = u & 0x7fffffffu, r;",
        f"    if (m > 0x7f800000u) return {'' if form.unsigned_zero else 's | '}{hex(form.nan)}u;",
        f"    if (m < {hex((128 - form.bias) << 23)}u) {{",
        f"        precise float t = uintBitsToFloat(m) + {magic!r};",
        f"        r = floatBitsToUint(t) - {hex((127 + 1 - form.bias + shift) << 23)}u;",
        f"    }} else r = {code} >> {shift};",
        f"    return r == 0u ? 0u : r >= {hex(form.largest)}u ? {hex(form.largest)}u : s | r;"
        if form.unsigned_zero
        else f"    return s | min(r, {hex(form.largest)}u);",
        "}",
    ]
    return "\n".join(lines)


_OTHERS = {
    "kp_from_bfloat16": """
float kp_from_bfloat16(uint h) { return uintBitsToFloat(h << 16); }""",
    "kp_to_bfloat16": """
uint kp_to_bfloat16(float a) {
    uint u = floatBitsToUint(a);
    if ((u & 0x7fffffffu) > 0x7f800000u) return ((u >> 16) & 0x8000u) | 0x7fc0u;
    return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}""",
    # Powers of two: 2 ** (code - 127), without a sign or zero.
    "kp_from_e8m0fnu": """
float kp_from_e8m0fnu(uint h) {
    return uintBitsToFloat(h == 0xffu ? 0x7fc00000u : h == 0u ? 0x400000u : h << 23);
}""",
    "kp_to_e8m0fnu": """
uint kp_to_e8m0fnu(float a) {
    uint u = floatBitsToUint(a);
    if (u == 0u || u > 0x7f800000u) return 0xffu;
    return u < 0x800000u ? uint(u >= 0x600000u) : (u + 0x400000u) >> 23;
}""",
}
SMALL_FLOAT_FUNCTIONS = {
    **_OTHERS,
    **{f"kp_from_{name}": _from(name, form) for name, form in _FORMATS.items()},
    **{f"kp_to_{name}": _to(name, form) for name, form in _FORMATS.items()},
}
"""Their GLSL by name."""
