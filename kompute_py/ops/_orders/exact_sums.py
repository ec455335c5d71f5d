"""Sums of weights as ints of 96 bits, which are the same in any order.

Atomic additions come in any order, and sums of floats depend on it. So a weight is added as a multiple of a
power of two that the largest weight and their number choose: no sum overflows, and what is below that power
is rounded off. A sum is three words, and each atomic addition tells by the word before it whether it carries.
A fourth word notes infinities and NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.errors import ArgumentTypeError
from ..._builders.walks import filled, named, spread
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

WORDS = 4
"""Of each sum."""
_RUN = 256
"""Weights of an invocation that looks for the largest."""
_ADD = """
void kp_add(uint n, uvec2 m, int s, bool negative) {
    uint at = 4u * n, w0, w1, w2 = 0u;
    if (s <= -64) return;
    if (s < 0) {
        uint r = uint(-s), carry;
        uvec2 half_ = r > 32u ? uvec2(0u, 1u << (r - 33u)) : uvec2(1u << (r - 1u), 0u);
        m.x = uaddCarry(m.x, half_.x, carry);
        m.y += half_.y + carry;
        m = r > 31u ? uvec2(m.y >> (r - 32u), 0u) : uvec2((m.x >> r) | (m.y << (32u - r)), m.y >> r);
        s = 0;
    }
    uint b = uint(s) & 31u;
    w0 = m.x << b;
    w1 = m.y << b;
    if (b != 0u) { w1 |= m.x >> (32u - b); w2 = m.y >> (32u - b); }
    if (s >= 32) { w2 = w1; w1 = w0; w0 = 0u; }
    if (s >= 64) { w2 = w1; w1 = 0u; }
    if (negative) {
        w0 = ~w0 + 1u;
        w1 = ~w1 + (w0 == 0u ? 1u : 0u);
        w2 = ~w2 + (w0 == 0u && w1 == 0u ? 1u : 0u);
    }
    uint carry = 0u;
    if (w0 != 0u && atomicAdd(counts[at], w0) > ~w0) carry = 1u;
    w1 += carry;
    carry = carry > w1 ? 1u : 0u;
    if (w1 != 0u && atomicAdd(counts[at + 1u], w1) > ~w1) ++carry;
    w2 += carry;
    if (w2 != 0u) atomicAdd(counts[at + 2u], w2);
}"""
_FLOAT = """
void kp_count(uint n, uint i) {
    uint u = floatBitsToUint(weights_load(i)), e = (u >> 23) & 0xffu, m = u & 0x7fffffu;
    if (e == 255u) { atomicOr(counts[4u * n + 3u], m != 0u ? 4u : (u >> 31) + 1u); return; }
    if (e != 0u) m |= 0x800000u;
    int shift = int(max(e, 1u)) - int(counts[4u * result_size]) + 71 - kp_digits;
    kp_add(n, uvec2(m, 0u), shift, (u >> 31) != 0u);
}"""
_DOUBLE = """
void kp_count(uint n, uint i) {
    uvec2 u = unpackDouble2x32(weights_load(i)), m = uvec2(u.x, u.y & 0xfffffu);
    uint e = (u.y >> 20) & 0x7ffu;
    if (e == 2047u) { atomicOr(counts[4u * n + 3u], (m.x | m.y) != 0u ? 4u : (u.y >> 31) + 1u); return; }
    if (e != 0u) m.y |= 0x100000u;
    kp_add(n, m, int(max(e, 1u)) - int(counts[4u * result_size]) + 42 - kp_digits, (u.y >> 31) != 0u);
}"""
_EXPONENT = {
    "float": "uint e = (floatBitsToUint(weights_load(k)) >> 23) & 0xffu; if (e == 255u) e = 0u;",
    "double": "uint e = (unpackDouble2x32(weights_load(k)).y >> 20) & 0x7ffu; if (e == 2047u) e = 0u;",
}
_TOTAL = """
T kp_total(uint n) {
    uint at = 4u * n, w0 = counts[at], w1 = counts[at + 1u], w2 = counts[at + 2u], odd = counts[at + 3u];
    if (odd != 0u) return odd == 1u ? INF : odd == 2u ? -INF : NAN;
    bool negative = (w2 >> 31) != 0u;
    if (negative) {
        w0 = ~w0 + 1u;
        w1 = ~w1 + (w0 == 0u ? 1u : 0u);
        w2 = ~w2 + (w0 == 0u && w1 == 0u ? 1u : 0u);
    }
    T y = (T(w2) * T(4294967296.0) + T(w1)) * T(4294967296.0) + T(w0);
    int k = SHIFT, half_ = k / 2;
    y = y * HALF * REST;
    return negative ? -y : y;
}"""
_POWER = {
    "float": "uintBitsToFloat(uint({} + 127) << 23)",
    "double": "packDouble2x32(uvec2(0u, uint({} + 1023) << 20))",
}
_BITS = {"float": (149, 71), "double": (1074, 42)}
"""Of the least number the power of two, and how far the largest weight is shifted, less the logarithm."""


def is_float(weights: TensorArg) -> bool:
    """Whether weights are added as floats."""
    return element_of(weights.dtype).type in ("float", "double")


def declare_weights(ksel: FunctionSelection, x: TensorArg) -> TensorArg | None:
    """Declares the optional argument `weights`, which has the shape of `x`, and the numbers of the kernels.

    Raises ArgumentTypeError for complex numbers.
    """
    weights = ksel.arg_optional_tensor("weights")
    if weights is None:
        return None
    if weights.dtype.kind == "c":
        raise ArgumentTypeError(f"{ksel.name}: weights is of {weights.dtype}; give real numbers")
    if is_float(weights):
        ksel.value("kp_digits", max(x.size, 1).bit_length(), "int32")
        ksel.value("kp_finders", max(-(-x.size // _RUN), 1), "uint32")
    return weights


def find_largest(kb: FunctionBuilder, weights: TensorArg) -> None:
    """Writes the dispatch that finds the exponent of the largest weight."""
    if not is_float(weights):
        return
    kb.begin_dispatch("largest")
    spread(kb, kb.ceil_div(named("kp_finders"), 64))
    kb.emit(f"""
        uint kp_run = kp_group * 64u + gl_LocalInvocationID.x, most = 1u;
        if (kp_run >= kp_finders) return;
        uint k = kp_run * {_RUN}u, end = min(k + {_RUN}u, weights_size);
        for (; k < end; ++k) {{
            {_EXPONENT[element_of(weights.dtype).type]}
            most = max(most, e);
        }}
        atomicMax(counts[4u * result_size], most);
    """)


def declare_count(kb: FunctionBuilder, weights: TensorArg) -> None:
    """Adds ``kp_count(n, i)``, which adds weight `i` to sum `n`."""
    kb.declare(_ADD)
    kind = element_of(weights.dtype).type
    if is_float(weights):
        kb.declare(_FLOAT if kind == "float" else _DOUBLE)
        return
    lines = [f"{kind} w = weights_load(i);"]
    if kind in ("bool", "uint"):
        lines.append("kp_add(n, uvec2(uint(w), 0u), 0, false);")
    elif kind == "int":
        lines.append("kp_add(n, uvec2(w < 0 ? 0u - uint(w) : uint(w), 0u), 0, w < 0);")
    elif kind == "uint64_t":
        lines.append("kp_add(n, unpackUint2x32(w), 0, false);")
    else:
        lines.append("uint64_t a = w < 0l ? 0ul - uint64_t(w) : uint64_t(w);")
        lines.append("kp_add(n, unpackUint2x32(a), 0, w < 0l);")
    kb.declare(f"void kp_count(uint n, uint i) {{ {' '.join(lines)} }}")


def total(kb: FunctionBuilder, weights: TensorArg, dtype: np.dtype[Any]) -> str:
    """Adds what the expression calls that it returns: sum `kp_i` as an element of `dtype`."""
    kind = element_of(dtype).type
    if dtype.kind in "iu":
        low, high = "counts[4u * kp_i]", "counts[4u * kp_i + 1u]"
        if dtype.itemsize == 8:
            return f"{kind}(packUint2x32(uvec2({low}, {high})))"
        return f"{kind}({low})"
    given = element_of(weights.dtype).type
    shift = "0"
    if is_float(weights):
        least, room = _BITS[given]
        shift = f"int(counts[4u * result_size]) - {least} - 1 - {room} + kp_digits"
    powers = {"HALF": _POWER[kind].format("half_"), "REST": _POWER[kind].format("k - half_")}
    text = filled(_TOTAL, T=kind, INF=f"kp_inf_{kind}()", NAN=f"kp_nan_{kind}()", SHIFT=shift, **powers)
    kb.declare("\n\n".join((*functions_in(text).values(), text)))
    return "kp_total(kp_i)"
