"""The keys of a radix sort: the bits of an element, and whole numbers in the order of the elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._base.errors import UnimplementedError
from ..._custom.builder import FunctionBuilder
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl_elements import element_of, name_of

_INT64 = "GL_EXT_shader_explicit_arithmetic_types_int64"


# SwiftShader's packHalf2x16 makes finite numbers of infinities.
_HALF = """
uint kp_bits(float a) {
    uint u = floatBitsToUint(a), s = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
    if (m >= 0x7f800000u) return s | (m > 0x7f800000u ? 0x7e00u : 0x7c00u);
    if (m < 0x38800000u) return s | uint(uintBitsToFloat(m) * 16777216.0);
    return s | ((m >> 13) - 0x1c000u);
}
float kp_number(uint h) {
    uint s = (h & 0x8000u) << 16, m = h & 0x7fffu;
    if (m >= 0x7c00u) return uintBitsToFloat(s | ((m << 13) + 0x70000000u));
    if (m < 0x400u) return uintBitsToFloat(s | floatBitsToUint(float(m) * 5.9604644775390625e-8));
    return uintBitsToFloat(s | ((m << 13) + 0x38000000u));
}"""


class Key(NamedTuple):
    """How an element is moved and compared."""

    bits: int
    """8, 16, 32 or 64: those that the order depends on."""
    to_raw: str
    """The expression of an element's bits from the element "{}"."""
    from_raw: str
    """The expression of an element from its bits "{}"."""
    order: str
    """The body of the function from the bits ``r`` to the number in the order."""
    functions: str = ""
    """The functions that `to_raw` and `from_raw` call."""

    @property
    def type(self) -> str:
        """The type of the bits in GLSL."""
        return "uint64_t" if self.bits == 64 else "uint"

    @property
    def dtype(self) -> str:
        """The dtype of memory for the bits."""
        return "uint64" if self.bits == 64 else "uint32"

    @property
    def passes(self) -> int:
        """The digits of 8 bits."""
        return self.bits // 8

    def declare_bits(self, kb: FunctionBuilder) -> None:
        """Adds to the dispatch all that `to_raw` and `from_raw` need."""
        if self.bits == 64:
            kb.extension(_INT64)
        if self.functions:
            kb.declare(self.functions)

    def declare_order(self, kb: FunctionBuilder, descending: bool = False) -> None:
        """Adds ``kp_order(r)`` to the dispatch; equal elements have equal numbers. Descending, it is the
        complement."""
        if self.bits == 64:
            kb.extension(_INT64)
        body = self.order
        if descending:
            body = body.replace("return ", "return ~(").replace(";", ");")
            if self.bits < 32:
                body = body.replace("~(", f"{hex((1 << self.bits) - 1)}u ^ (")
        kb.declare(f"{self.type} kp_order({self.type} r) {{ {body} }}")


def _floating(bits: int, infinity: int) -> str:
    end = "ul" if bits == 64 else "u"
    sign, every = 1 << (bits - 1), (1 << bits) - 1
    kind = "uint64_t" if bits == 64 else "uint"
    flipped = f"(r ^ {hex(every)}{end})"
    value = f"(r & {hex(sign)}{end}) != {kind}(0) ? {flipped} : (r | {hex(sign)}{end})"
    size = f"(r & {hex(sign - 1)}{end})"
    return (
        f"return {size} > {hex(infinity)}{end} ? {hex(every)}{end} : "
        f"{size} == {kind}(0) ? {hex(sign)}{end} : {value};"
    )


def _whole(bits: int, signed: bool) -> str:
    if not signed:
        return "return r;"
    if bits == 64:
        return "return r ^ 0x8000000000000000ul;"
    return f"return (r ^ {hex(1 << (bits - 1))}u) & {hex((1 << bits) - 1)}u;"


def key_of(ksel: FunctionSelection, dtype: np.dtype[Any]) -> Key:
    """The key of elements of `dtype`.

    Raises UnimplementedError for complex numbers, and for float64 on a device without 64-bit ints.
    """
    kind = element_of(dtype).type
    name = name_of(dtype)
    bits = dtype.itemsize * 8
    if dtype.kind == "c":
        raise UnimplementedError(
            f"{ksel.name}: elements of {name} are not sorted; give real numbers: kp.ops.absolute(x), "
            "kp.ops.real(x)"
        )
    if dtype == np.bool_:
        return Key(8, "({} ? 1u : 0u)", "({} != 0u)", "return r;")
    if dtype.kind in "iu":
        wide = "uint64_t" if bits == 64 else "uint"
        return Key(bits, f"{wide}({{}})", f"{kind}({{}})", _whole(bits, dtype.kind == "i"))
    if name == "float64":
        if ksel.device is not None and not ksel.has("shaderInt64"):
            raise UnimplementedError(
                f"{ksel.name}: float64 is sorted by ints of 64 bits, which this device lacks "
                "(shaderInt64); convert to float32"
            )
        return Key(
            64,
            "packUint2x32(unpackDouble2x32({}))",
            "packDouble2x32(unpackUint2x32({}))",
            _floating(64, 0x7FF << 52),
        )
    if name == "float32":
        return Key(32, "floatBitsToUint({})", "uintBitsToFloat({})", _floating(32, 0x7F800000))
    if name == "float16":
        return Key(16, "kp_bits({})", "kp_number({})", _floating(16, 0x7C00), _HALF)
    # bfloat16 is the upper half of a float32, and has all numbers of the 8-bit floats.
    return Key(16, "(floatBitsToUint({}) >> 16)", "uintBitsToFloat({} << 16)", _floating(16, 0x7F80))
