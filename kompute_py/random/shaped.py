"""The kernels of distributions with a shape: exponential, gamma, beta, Poisson, binomial and others.

Each element has a counter of its own, so its number depends on its position, the key and its own parameters
alone. Methods that try again take the next attempt of that counter. All is computed with additions, products,
quotients and roots, which drivers round alike or nearly alike: between devices, numbers differ in the last
digits, and about one of a million is another number, because a rounded number decided what was tried again.

Sources: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); Hörmann, "The
transformed rejection method for generating Poisson random variables" and "The generation of binomial random
variates" (1993), with the probabilities of Loader, "Fast and accurate computation of binomial probabilities"
(2000).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .philox import _DOUBLE_NORMALS, _NORMALS, _Draw, _operation

if TYPE_CHECKING:
    from .._custom.builder import FunctionBuilder
    from .._custom.selection import FunctionSelection
    from .._functions.function import Function

MOST_COUNT = 2**24
"""The largest `n` of binomial: counts are computed with float32, which has all ints up to it."""
MOST_MEAN = 16_000_000
"""The largest `lam` of poisson. Counts are below 2**24 then: 2**24 is 194 deviations away."""
LEAST_CHANCE = 2.0**-20
"""The least `p` of geometric."""

_FLOAT_WORDS = """
float unit(uvec2 w) { return (float(w.x >> 8) + 0.5) * 5.9604644775390625e-8; }
float normal_of(uvec4 w) { return normals(w.x, w.y).x; }
float scaled(float x, int e) {
    int half_of = e / 2;
    return x * uintBitsToFloat(uint(half_of + 127) << 23) * uintBitsToFloat(uint(e - half_of + 127) << 23);
}
float exp_of(float x) {
    if (!(x < 89.0)) return x < 0.0 || x > 0.0 ? uintBitsToFloat(0x7f800000u) : x;
    if (x < -104.0) return 0.0;
    precise float k = floor(x * 1.44269504 + 0.5), r = x - k * 0.693359375 + k * 2.12194440e-4, y = 1.0;
    for (int n = 8; n > 0; --n) y = 1.0 + y * r / float(n);
    return scaled(y, int(k));
}
"""
_DOUBLE_WORDS = """
double unit(uvec2 w) {
    return (double(w.x >> 5) * 67108864.0lf + double(w.y >> 6) + 0.5lf) * 1.1102230246251565e-16lf;
}
double normal_of(uvec4 w) { return normals(w).x; }
double scaled(double x, int e) {
    int half_of = e / 2;
    return x * packDouble2x32(uvec2(0u, uint(half_of + 1023) << 20))
        * packDouble2x32(uvec2(0u, uint(e - half_of + 1023) << 20));
}
double exp_of(double x) {
    if (!(x < 710.0lf)) return x < 0.0lf || x > 0.0lf ? packDouble2x32(uvec2(0u, 0x7ff00000u)) : x;
    if (x < -746.0lf) return 0.0lf;
    precise double k = floor(x * 1.4426950408889634lf + 0.5lf);
    precise double r = x - k * 0.6931471803691238lf - k * 1.9082149292705877e-10lf, y = 1.0lf;
    for (int n = 16; n > 0; --n) y = 1.0lf + y * r / double(n);
    return scaled(y, int(k));
}
"""
_NEXT = """
uvec4 next(inout uvec4 c, uvec2 k) { uvec4 w = philox(c, k); ++c.z; return w; }
"""
# log(1 + x) - x for small x, without cancellation: with s = x / (2 + x), log(1 + x) = 2 atanh(s).
_LOG1P = """
REAL log1p_less(REAL x) {
    if (x > 1.0 || x < -0.5) return log_of(1.0 + x) - x;
    precise REAL s = x / (2.0 + x), z = s * s, r = 0.0;
    for (int n = 33; n > 1; n -= 2) r = r * z + 1.0 / REAL(n);
    precise REAL y = -2.0 * z / (1.0 - s) + 2.0 * s * z * r;
    return y;
}
"""
# Marsaglia and Tsang's v is (1 + y)**3 next to 0, and 1 + t elsewhere: each keeps its digits there.
_GAMMA = """
void gamma_parts(inout uvec4 c, uvec2 k, REAL a, out REAL value, out REAL log_value) {
    REAL boost = 0.0;
    if (a < 1.0) {
        boost = log_of(unit(next(c, k).xy)) / max(a, REAL(LEAST_SHAPE));
        a += 1.0;
    }
    REAL scale = a - 1.0 / 3.0, q = 1.0 / (3.0 * sqrt(scale));
    value = scale;
    log_value = log_of(scale) + boost;
    for (int n = 0; n < 1000; ++n) {
        precise REAL x = normal_of(next(c, k)), y = q * x;
        REAL u = unit(next(c, k).zw);
        if (y <= -1.0) continue;
        precise REAL t = y * (3.0 + y * (3.0 + y)), root = 1.0 + y;
        REAL less = y < -0.5 ? 3.0 * log_of(root) - t : log1p_less(t), x2 = x * x;
        if (u >= 1.0 - 0.0331 * x2 * x2 && log_of(u) >= 0.5 * x2 + scale * less) continue;
        precise REAL found = y < -0.5 ? scale * (root * root * root) : scale + scale * t;
        value = found;
        log_value += less + t;
        break;
    }
    if (boost != 0.0) value *= exp_of(boost);
}
bool has_gamma(REAL a) { return a > 0.0 && a <= MOST_SHAPE; }
REAL log_gamma(inout uvec4 c, uvec2 k, REAL a) {
    REAL value, log_value;
    gamma_parts(c, k, a, value, log_value);
    return has_gamma(a) ? log_value : NOT_A_NUMBER;
}
REAL gamma(inout uvec4 c, uvec2 k, REAL a) {
    REAL value, log_value;
    gamma_parts(c, k, a, value, log_value);
    return has_gamma(a) ? value : NOT_A_NUMBER;
}
"""
# A probability above 1/2 comes as minus that of the opposite, which has digits that 1 - p has lost; 1 as -1.
_COUNTS = (
    f"""
const float MOST_COUNT = {MOST_COUNT}.0, MOST_MEAN = {MOST_MEAN}.0, LEAST_CHANCE = {LEAST_CHANCE};
"""
    + """
float stirling_error(float n) {
    float z = 1.0 / (n * n);
    return (0.083333333 - z * (0.0027777778 - z * (7.9365079e-4 - z * 5.9523810e-4))) / n;
}
float deviance(float x, float m) {
    precise float d = x - m, v = d / (x + m), s = d * v, e = 2.0 * x * v;
    if (abs(v) > 0.1) return x * log_of(x / m) + m - x;
    v *= v;
    for (int n = 3; n < 17; n += 2) { e *= v; s += e / float(n); }
    return s;
}
float log_poisson(float k, float m) {
    if (k < 1.0) return -m;
    return -stirling_error(k) - deviance(k, m) - 0.5 * log_of(6.2831853 * k);
}
float poisson(inout uvec4 c, uvec2 key, float lam) {
    if (!(lam >= 0.0 && lam <= MOST_MEAN)) return -1.0;
    if (lam < 10.0) {
        float least = exp_of(-lam), p = 1.0;
        for (int k = 0; k < 400; k += 4) {
            uvec4 w = next(c, key);
            for (int n = 0; n < 4; ++n) {
                p *= unit(w.xx);
                if (p <= least) return float(k + n);
                w = w.yzwx;
            }
        }
        return 400.0;
    }
    float root = sqrt(lam), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b, start = floor(lam);
    float inverse = 1.1239 + 1.1328 / (b - 3.4), surely = 0.9277 - 3.6224 / (b - 2.0);
    for (int n = 0; n < 1000; ++n) {
        uvec4 w = next(c, key);
        float u = unit(w.xx) - 0.5, v = unit(w.yy), us = 0.5 - abs(u);
        float k = start + floor((2.0 * a / us + b) * u + (lam - start) + 0.43);
        if (us >= 0.07 && v <= surely) return k;
        if (k < 0.0 || k > 2.0e7 || (us < 0.013 && v > us)) continue;
        if (log_of(v * inverse) - log_of(a / (us * us) + b) <= log_poisson(k, lam)) return k;
    }
    return start;
}
float log_binomial(float k, float n, float p) {
    float left = n - k, q = 1.0 - p;
    if (k < 1.0) return n * (log1p_less(-p) - p);
    if (left < 1.0) return n * log_of(p);
    return stirling_error(n) - stirling_error(k) - stirling_error(left) - deviance(k, n * p)
        - deviance(left, n * q) + 0.5 * log_of(n / (6.2831853 * k * left));
}
float few(inout uvec4 c, uvec2 key, float n, float p) {
    float q = 1.0 - p, first = exp_of(n * (log1p_less(-p) - p));
    float most = min(n, n * p + 10.0 * sqrt(n * p * q + 1.0));
    for (int attempt = 0; attempt < 1000; ++attempt) {
        float u = unit(next(c, key).xx), k = 0.0, chance = first;
        while (u > chance && k <= most) {
            k += 1.0;
            u -= chance;
            chance *= (n - k + 1.0) * p / (k * q);
        }
        if (k <= most) return k;
    }
    return 0.0;
}
float binomial(inout uvec4 c, uvec2 key, float n, float given) {
    if (!(n >= 0.0 && n <= MOST_COUNT && n == floor(n) && given >= -1.0 && given <= 0.5)) return -1.0;
    bool flipped = given < 0.0;
    float p = given <= -1.0 ? 0.0 : abs(given), k = 0.0;
    if (n * p < 10.0) {
        k = p > 0.0 && n > 0.0 ? few(c, key, n, p) : 0.0;
    } else {
        float root = sqrt(n * p * (1.0 - p)), b = 1.15 + 2.53 * root, a = -0.0873 + 0.0248 * b + 0.01 * p;
        float alpha = (2.83 + 5.1 / b) * root, surely = 0.92 - 4.2 / b;
        float start = floor(n * p), part = n * p - start;
        float mode = floor((n + 1.0) * p), highest = log_binomial(mode, n, p);
        k = mode;
        for (int attempt = 0; attempt < 1000; ++attempt) {
            uvec4 w = next(c, key);
            float u = unit(w.xx) - 0.5, v = unit(w.yy), us = 0.5 - abs(u);
            float found = start + floor((2.0 * a / us + b) * u + part + 0.5);
            if (found < 0.0 || found > n) continue;
            if (!(us >= 0.07 && v <= surely)
                && log_of(v * alpha) - log_of(a / (us * us) + b) > log_binomial(found, n, p) - highest)
                continue;
            k = found;
            break;
        }
    }
    return flipped ? n - k : k;
}
float geometric(inout uvec4 c, uvec2 key, float p) {
    if (!(p >= LEAST_CHANCE && p <= 1.0)) return -1.0;
    if (p >= 1.0) return 1.0;
    uvec4 w = next(c, key);
    float none = abs(log_of((float(w.x) + 1.0) * 2.3283064365386963e-10));
    float each = p < 0.5 ? p - log1p_less(-p) : -log_of(1.0 - p);
    return max(1.0, ceil(none / each));
}
"""
)
# The expression of a number, by kind, and its parameters.
_CONTINUOUS = {
    "exponential": ("exponential(next(counter, key))", ()),
    "laplace": ("laplace(next(counter, key))", ()),
    "cauchy": ("cauchy(counter, key)", ()),
    "gamma": ("gamma(counter, key, {0})", ("alpha",)),
    "log_gamma": ("log_gamma(counter, key, {0})", ("alpha",)),
    "beta": ("beta_of(counter, key, {0}, {1})", ("alpha", "beta")),
}
_DISCRETE = {
    "poisson": ("poisson(counter, key, {0})", ("alpha",)),
    "binomial": ("binomial(counter, key, {0}, {1})", ("alpha", "beta")),
    "geometric": ("geometric(counter, key, {0})", ("alpha",)),
}
_SIMPLE = """
REAL exponential(uvec4 w) { return abs(log_of(UNIT)); }
REAL laplace(uvec4 w) { REAL e = exponential(w); return (w.z & 1u) == 0u ? e : -e; }
REAL cauchy(inout uvec4 c, uvec2 k) {
    REAL x = normal_of(next(c, k)), y = normal_of(next(c, k));
    return x / (y == 0.0 ? REAL(1.0) : y);
}
"""
_BETA = """
REAL beta_of(inout uvec4 c, uvec2 k, REAL a, REAL b) {
    if (a >= 1.0 && b >= 1.0) {
        // GPUs may give 0 for a quotient by more than 2^126.
        precise REAL x = 0.25 * gamma(c, k, a), y = 0.25 * gamma(c, k, b), ratio = y / x;
        return 1.0 / (1.0 + ratio);
    }
    REAL x = log_gamma(c, k, a), y = log_gamma(c, k, b);
    return x > y ? 1.0 / (1.0 + exp_of(y - x)) : exp_of(x - y) / (1.0 + exp_of(x - y));
}
"""


def _real(text: str, double: bool) -> str:
    """GLSL with the type REAL and numbers without a suffix, for float or double."""
    unit = "(double(w.x) * 4294967296.0 + double(w.y) + 1.0) * 5.421010862427522e-20"
    text = text.replace("UNIT", unit if double else "(float(w.x) + 1.0) * 2.3283064365386963e-10")
    nan = "packDouble2x32(uvec2(0u, 0x7ff80000u))" if double else "uintBitsToFloat(0x7fc00000u)"
    text = text.replace("NOT_A_NUMBER", nan).replace("LEAST_SHAPE", "1.0e-306" if double else "1.0e-37")
    text = text.replace("MOST_SHAPE", "1.7976931348623157e308" if double else "3.4028234663852886e38")
    text = text.replace("REAL", "double" if double else "float")
    return re.sub(r"\b(\d+\.\d+(?:e[-+]?\d+)?)\b(?!lf)", r"\1lf", text) if double else text


class _Shaped(_Draw):
    """A number for each element, from a counter of its own. Parameters are tensors of one element, or of as
    many as `numbers`.
    """

    kind = ""

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        for name in {**_CONTINUOUS, **_DISCRETE}[self.kind][1]:
            ksel.arg_tensor(name)

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        double = dtype == "float64"
        kb.declare(_DOUBLE_NORMALS if double else _NORMALS)
        for part in (_DOUBLE_WORDS if double else _FLOAT_WORDS, _NEXT, _real(_LOG1P, double)):
            kb.declare(part)
        text, names = {**_CONTINUOUS, **_DISCRETE}[self.kind]
        loaded = [f"{name}_load({name}_size == 1u ? 0u : first)" for name in names]
        if self.kind in _DISCRETE:
            kb.declare(_COUNTS)
            whole = "int64_t" if dtype == "int64" else "uint64_t" if dtype == "uint64" else ""
            number = f"int({text.format(*loaded)})"
            return [f"{whole}({number})" if whole else f"uint({number})" if dtype == "uint32" else number]
        for part in (_GAMMA, _SIMPLE, _BETA):
            kb.declare(_real(part, double))
        return [text.format(*loaded)]


class _Multinomial(_Draw):
    """For each row of `numbers` how often each of its columns is chosen in `n` choices: binomial numbers of
    what is left. `chances` has the probability of each column among those that follow it, as `binomial` takes
    them.
    """

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        ksel.arg_tensor("chances")
        ksel.arg_int("choices")

    def blocks(self, count: int) -> str:
        return "numbers_size / chances_size"

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        for part in (_NORMALS, _FLOAT_WORDS, _NEXT, _real(_LOG1P, False), _COUNTS):
            kb.declare(part)
        return []

    def stores(self, kb: FunctionBuilder, values: list[str]) -> None:
        dtype = kb.arg_value("numbers").dtype.name
        kind = {"int64": "int64_t(", "uint64": "uint64_t(", "uint32": "uint("}.get(dtype, "(")
        kb.emit(f"""
            float left = float(choices);
            for (uint column = 0u; column < chances_size; ++column) {{
                counter.z = column << 12;
                float k = left;
                if (column + 1u < chances_size) k = binomial(counter, key, left, chances_load(column));
                numbers_store(block * chances_size + column, {kind}int(k)));
                left -= k;
            }}
        """)


def _kind(name: str) -> tuple[type[_Draw], str]:
    found = {**_CONTINUOUS, **_DISCRETE}[name][1]
    return type(f"_{name}", (_Shaped,), {"kind": name, "__doc__": _Shaped.__doc__}), ", ".join(
        f"Tensor {each}" for each in found
    )


_KINDS = {name: _kind(name) for name in (*_CONTINUOUS, *_DISCRETE)}
_KINDS["multinomial"] = (_Multinomial, "Tensor chances, int choices")
SHAPED: dict[str, Function] = {
    name: _operation(base, name, parameters, False) for name, (base, parameters) in _KINDS.items()
}
"""The draws by name, from a position that the caller gives."""
RECORDED_SHAPED: dict[str, Function] = {
    name: _operation(base, name, parameters, True) for name, (base, parameters) in _KINDS.items()
}
"""The same from a position in memory, which each run moves on."""
