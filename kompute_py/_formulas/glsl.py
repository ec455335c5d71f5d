"""GLSL functions for formulas: where NumPy's result differs from the language's operator or function.

Vulkan leaves open what functions give for NaN, infinities and arguments out of their domain, and compilers
may assume that there are none. So these test bits, and give what NumPy gives.
"""

from __future__ import annotations

import re
from functools import cache

from .complexes import COMPLEX
from .doubles import DOUBLES
from .small_floats import SMALL_FLOAT_FUNCTIONS

_NAME = re.compile(r"\bkp_\w+")

_ANY = {
    # Remainders and quotients as Python's: towards minus infinity; 0 for a divisor of 0.
    "kp_floordiv_{T}": """
{T} kp_floordiv_{T}({T} a, {T} b) {
    if (b == {T}(0)) return {T}(0);
    if (b == {T}(-1)) return -a;
    {T} q = a / b;
    return q * b != a && (a < {T}(0)) != (b < {T}(0)) ? q - {T}(1) : q;
}""",
    "kp_mod_{T}": """
{T} kp_mod_{T}({T} a, {T} b) {
    return b == {T}(0) ? {T}(0) : a - kp_floordiv_{T}(a, b) * b;
}""",
    "kp_fmod_{T}": """
{T} kp_fmod_{T}({T} a, {T} b) {
    if (b == {T}(0) || b == {T}(-1)) return {T}(0);
    return a - (a / b) * b;
}""",
}
_UNSIGNED = {
    "kp_floordiv_{T}": """
{T} kp_floordiv_{T}({T} a, {T} b) { return b == {T}(0) ? {T}(0) : a / b; }""",
    "kp_mod_{T}": """
{T} kp_mod_{T}({T} a, {T} b) { return b == {T}(0) ? {T}(0) : a % b; }""",
    "kp_fmod_{T}": """
{T} kp_fmod_{T}({T} a, {T} b) { return b == {T}(0) ? {T}(0) : a % b; }""",
}
_WHOLE = {
    # By squares. Negative exponents: 0, but for the bases 1 and -1.
    "kp_pow_{T}": """
{T} kp_pow_{T}({T} a, {T} b) {
    {T} r = {T}(1);
    if (b < {T}(0)) return a == {T}(1) ? r : a == {T}(-1) ? ((b & {T}(1)) == {T}(0) ? r : a) : {T}(0);
    for (; b > {T}(0); b >>= 1) {
        if ((b & {T}(1)) != {T}(0)) r *= a;
        a *= a;
    }
    return r;
}""",
    "kp_gcd_{T}": """
{T} kp_gcd_{T}({T} a, {T} b) {
    while (b != {T}(0)) { {T} r = kp_fmod_{T}(a, b); a = b; b = r; }
    return a < {T}(0) ? -a : a;
}""",
}
_FLOATS = {
    # Rounding, from bits and sums that are exact: drivers' own functions of doubles are wrong at ties and
    # beyond 2^24, and none need keep the sign of a zero.
    "kp_floor_{T}": """
{T} kp_floor_{T}({T} a) {
    {T} t = kp_trunc_{T}(a);
    return kp_signbit_{T}(a) && !kp_same_{T}(t, a) ? t - {T}(1) : t;
}""",
    "kp_ceil_{T}": """
{T} kp_ceil_{T}({T} a) {
    {T} t = kp_trunc_{T}(a);
    return kp_signbit_{T}(a) || kp_same_{T}(t, a) ? t : t + {T}(1);
}""",
    "kp_rint_{T}": """
{T} kp_rint_{T}({T} a) {
    {T} t = kp_trunc_{T}(a), h = t * {T}(0.5);
    if (kp_same_{T}(t, a)) return a;
    precise {T} d = abs(a - t);
    bool odd = !kp_same_{T}(kp_trunc_{T}(h), h);
    return d > {T}(0.5) || (d == {T}(0.5) && odd) ? t + (kp_signbit_{T}(a) ? {T}(-1) : {T}(1)) : t;
}""",
    # Lavapipe's compiler takes any value for a quotient by a zero that it has found in a computation.
    "kp_div_{T}": """
{T} kp_div_{T}({T} a, {T} b) {
    {T} over = kp_signbit_{T}(a) == kp_signbit_{T}(b) ? kp_inf_{T}() : -kp_inf_{T}();
    if (kp_isnan_{T}(a) || a == {T}(0)) over = kp_nan_{T}();
    return b == {T}(0) ? over : kp_quo_{T}(a, b);
}""",
    # fmod is exact; the rest is NumPy's npy_divmod. Of small divisors the remainder may be subnormal: all is
    # scaled, as devices may take it for 0. Beyond HUGE the quotient is infinite, whatever the remainder is.
    "kp_floordiv_{T}": """
{T} kp_floordiv_{T}({T} a, {T} b) {
    if (b == {T}(0)) return kp_div_{T}(a, b);
    {T} m = kp_fmod_{T}(a, b);
    if (abs(b) < {TINY} && abs(a) < {HUGE}) { m = kp_up_{T}(m); a *= {UP}; b *= {UP}; }
    precise {T} d = kp_quo_{T}(a - m, b);
    if (m != {T}(0) && (b < {T}(0)) != (m < {T}(0))) d -= {T}(1);
    {T} sign = kp_signbit_{T}(a) == kp_signbit_{T}(b) ? {T}(1) : {T}(-1);
    if (d == {T}(0)) return kp_copysign_{T}({T}(0), sign);
    {T} f = kp_floor_{T}(d);
    return d - f > {T}(0.5) ? f + {T}(1) : f;
}""",
    "kp_mod_{T}": """
{T} kp_mod_{T}({T} a, {T} b) {
    {T} m = kp_fmod_{T}(a, b);
    if (kp_isnan_{T}(m)) return m;
    if (kp_iszero_{T}(m)) return kp_copysign_{T}({T}(0), b);
    if (kp_signbit_{T}(b) == kp_signbit_{T}(m)) return m;
    return kp_copysign_{T}(abs(b) < {TINY} ? kp_quo_{T}(kp_up_{T}(m) + b * {UP}, {UP}) : m + b, b);
}""",
    "kp_min_{T}": """
{T} kp_min_{T}({T} a, {T} b) { return a <= b || kp_isnan_{T}(a) ? a : b; }""",
    "kp_max_{T}": """
{T} kp_max_{T}({T} a, {T} b) { return a >= b || kp_isnan_{T}(a) ? a : b; }""",
    "kp_fmin_{T}": """
{T} kp_fmin_{T}({T} a, {T} b) { return a <= b || kp_isnan_{T}(b) ? a : b; }""",
    "kp_fmax_{T}": """
{T} kp_fmax_{T}({T} a, {T} b) { return a >= b || kp_isnan_{T}(b) ? a : b; }""",
    "kp_sign_{T}": """
{T} kp_sign_{T}({T} a) {
    return kp_isnan_{T}(a) ? a : kp_iszero_{T}(a) ? {T}(0) : kp_copysign_{T}({T}(1), a);
}""",
    "kp_sqrt_{T}": """
{T} kp_sqrt_{T}({T} a) {
    return a >= {T}(0) && !kp_isinf_{T}(a) ? kp_root_{T}(a) : a > {T}(0) ? a : kp_nan_{T}();
}""",
    "kp_heaviside_{T}": """
{T} kp_heaviside_{T}({T} a, {T} b) {
    return kp_isnan_{T}(a) ? a : a < {T}(0) ? {T}(0) : a > {T}(0) ? {T}(1) : b;
}""",
}
# Quotients and square roots, where the device's own are correctly rounded.
_AS_THE_DEVICE = {
    "kp_quo_{T}": """
{T} kp_quo_{T}({T} a, {T} b) { return a / b; }""",
    "kp_root_{T}": """
{T} kp_root_{T}({T} a) { return sqrt(a); }""",
}
# And where they are not: Vulkan allows the quotients of float32 2.5 ulp, and promises nothing for divisors
# beyond 2^126. The device's result gives the first digits, a remainder of ints the others.
_BY_INTS = {
    # The mantissa with 24 bits; the number is it times 2^(e - 150).
    "kp_whole": """
uint kp_whole(uint u, out int e) {
    e = int(u >> 23);
    if (e > 0) return (u & 0x7fffffu) | 0x800000u;
    int up = 23 - findMSB(u);
    e = 1 - up;
    return u << up;
}""",
    "kp_quo_float": """
float kp_quo_float(float a, float b) {
    uint u = floatBitsToUint(a), v = floatBitsToUint(b), sign = (u ^ v) & 0x80000000u;
    u &= 0x7fffffffu; v &= 0x7fffffffu;
    if (u - 1u >= 0x7f7fffffu || v - 1u >= 0x7f7fffffu) {  // a zero, an infinity or NaN
        bool none = u > 0x7f800000u || v > 0x7f800000u || (u == v && (u == 0u || u == 0x7f800000u));
        bool large = u == 0x7f800000u || v == 0u;
        return none ? kp_nan_float() : uintBitsToFloat(sign | (large ? 0x7f800000u : 0u));
    }
    int e, f;
    uint m = kp_whole(u, e), n = kp_whole(v, f);
    e += 126 - f;
    if (m < n) { m <<= 1; --e; }
    // q is the quotient times 2^23, and r the remainder, of whose bits the lower ones suffice.
    uint q = uint(float(m) / float(n) * 8388608.0);
    int r = int((m << 23) - q * n), by = int(floor(float(r) / float(n)));
    q += uint(by); r -= by * int(n);
    if (r < 0) { --q; r += int(n); }
    if (r >= int(n)) { ++q; r -= int(n); }
    if (e >= 0) {
        if (2 * r > int(n) || (2 * r == int(n) && (q & 1u) != 0u)) ++q;
        return uintBitsToFloat(sign | (e > 253 ? 0x7f800000u : (uint(e) << 23) + q));
    }
    int down = min(-e, 25);
    uint odd = q & ((1u << down) - 1u), half_ = 1u << (down - 1);
    q >>= down;
    if (odd > half_ || (odd == half_ && (r > 0 || (q & 1u) != 0u))) ++q;
    return uintBitsToFloat(sign | q);
}""",
    "kp_root_float": """
float kp_root_float(float a) {
    uint u = floatBitsToUint(a);
    if ((u & 0x7fffffffu) == 0u || u == 0x7f800000u) return a;
    if (u > 0x7f800000u) return kp_nan_float();
    int e;
    uint m = kp_whole(u, e);
    if ((e & 1) == 0) m <<= 1;  // from 2^23 to 2^25, whose root times 2^11.5 has 24 bits
    uint q = uint(sqrt(float(m)) * 2896.309375740099);
    int r = int((m << 23) - q * q), by = int(floor(float(r) / float(2u * q)));
    q += uint(by);
    r = int((m << 23) - q * q);
    if (r < 0) { --q; r = int((m << 23) - q * q); }
    if (r > int(2u * q)) { ++q; r = int((m << 23) - q * q); }
    return uintBitsToFloat((uint((e + 127) / 2 - 1) << 23) + (r > int(q) ? q + 1u : q));
}""",
}
EXACT_DIVISION = "exactDivision"
"""Stands among the features of a CPU, which rounds quotients and square roots of float32 correctly."""
_SCALES = {
    "float": {"{TINY}": "1e-29", "{HUGE}": "1e27", "{UP}": "1073741824.0"},  # 2^30
    "double": {"{TINY}": "1e-290lf", "{HUGE}": "1e270lf", "{UP}": "1152921504606846976.0lf"},  # 2^60
}
_FIXED = {
    # A difference, because LLVM's code for AVX-512 (at least 14 to 21, so lavapipe's) mixes up the operands
    # where it chooses between `a` or `b` and a mix of their bits by `&` and `|`.
    "kp_copysign_float": """
float kp_copysign_float(float a, float b) {
    uint u = floatBitsToUint(a);
    return uintBitsToFloat(u - ((u ^ floatBitsToUint(b)) & 0x80000000u));
}""",
    # `a` times 2^30 or 2^60, of subnormal numbers by their bits.
    "kp_up_float": """
float kp_up_float(float a) {
    uint u = floatBitsToUint(a) & 0x7fffffffu;
    return u < 0x800000u ? kp_copysign_float(float(u) * 1.5046328e-36, a) : a * 1073741824.0;
}""",
    "kp_up_double": """
double kp_up_double(double a) {
    uvec2 u = unpackDouble2x32(a);
    u.y &= 0x7fffffffu;
    double m = double(u.y) * 4294967296.0lf + double(u.x);
    return u.y < 0x100000u ? kp_dsigned(m * 5.696189077778436e-306lf, a) : a * 1152921504606846976.0lf;
}""",
    "kp_copysign_double": """
double kp_copysign_double(double a, double b) { return kp_dsigned(a, b); }""",
    "kp_iszero_float": """
bool kp_iszero_float(float a) { return (floatBitsToUint(a) & 0x7fffffffu) == 0u; }""",
    "kp_iszero_double": """
bool kp_iszero_double(double a) {
    uvec2 u = unpackDouble2x32(a);
    return ((u.y & 0x7fffffffu) | u.x) == 0u;
}""",
    "kp_same_float": """
bool kp_same_float(float a, float b) { return floatBitsToUint(a) == floatBitsToUint(b); }""",
    "kp_same_double": """
bool kp_same_double(double a, double b) { return unpackDouble2x32(a) == unpackDouble2x32(b); }""",
    # Without the bits of the fraction.
    "kp_trunc_float": """
float kp_trunc_float(float a) {
    uint u = floatBitsToUint(a);
    int e = int((u >> 23) & 0xffu) - 127;
    return e >= 23 ? a : uintBitsToFloat(u & (e < 0 ? 0x80000000u : ~(0x7fffffu >> e)));
}""",
    "kp_trunc_double": """
double kp_trunc_double(double a) {
    uvec2 u = unpackDouble2x32(a);
    int e = int((u.y >> 20) & 0x7ffu) - 1023;
    if (e >= 52) return a;
    if (e >= 20) return packDouble2x32(uvec2(u.x & ~(0xffffffffu >> (e - 20)), u.y));
    return packDouble2x32(uvec2(0u, u.y & (e < 0 ? 0x80000000u : ~(0xfffffu >> e))));
}""",
    # The number next to the one with the bits `a` towards that of `b`; `sign_` is the bit of the sign.
    "kp_next": """
uint kp_next(uint a, uint b, uint sign_) {
    uint m = a & ~sign_, n = b & ~sign_;
    if (a == b || (m | n) == 0u) return b;
    if (m == 0u) return (b & sign_) | 1u;
    return ((a ^ b) & sign_) == 0u && n > m ? a + 1u : a - 1u;
}""",
    "kp_nextafter_float": """
float kp_nextafter_float(float a, float b) {
    if (kp_isnan_float(a) || kp_isnan_float(b)) return kp_nan_float();
    return uintBitsToFloat(kp_next(floatBitsToUint(a), floatBitsToUint(b), 0x80000000u));
}""",
    "kp_nextafter_double": """
double kp_nextafter_double(double a, double b) {
    uvec2 x = unpackDouble2x32(a), y = unpackDouble2x32(b);
    uint m = x.y & 0x7fffffffu, n = y.y & 0x7fffffffu, s = (x.y ^ y.y) & 0x80000000u;
    if (kp_isnan_double(a) || kp_isnan_double(b)) return kp_nan_double();
    if (x == y || (m | n | x.x | y.x) == 0u) return b;
    if ((m | x.x) == 0u) return packDouble2x32(uvec2(1u, y.y & 0x80000000u));
    bool away = s == 0u && (n > m || (n == m && y.x > x.x));
    if (away) return packDouble2x32(uvec2(x.x + 1u, x.y + uint(x.x == 0xffffffffu)));
    return packDouble2x32(uvec2(x.x - 1u, x.y - uint(x.x == 0u)));
}""",
    "kp_isnan_float": """
bool kp_isnan_float(float a) { return (floatBitsToUint(a) & 0x7fffffffu) > 0x7f800000u; }""",
    "kp_isinf_float": """
bool kp_isinf_float(float a) { return (floatBitsToUint(a) & 0x7fffffffu) == 0x7f800000u; }""",
    "kp_signbit_float": """
bool kp_signbit_float(float a) { return (floatBitsToUint(a) >> 31) != 0u; }""",
    "kp_nan_float": """
float kp_nan_float() { return uintBitsToFloat(0x7fc00000u); }""",
    "kp_inf_float": """
float kp_inf_float() { return uintBitsToFloat(0x7f800000u); }""",
    "kp_isnan_double": """
bool kp_isnan_double(double a) {
    uvec2 u = unpackDouble2x32(a);
    u.y &= 0x7fffffffu;
    return u.y > 0x7ff00000u || (u.y == 0x7ff00000u && u.x != 0u);
}""",
    "kp_isinf_double": """
bool kp_isinf_double(double a) {
    uvec2 u = unpackDouble2x32(a);
    return (u.y & 0x7fffffffu) == 0x7ff00000u && u.x == 0u;
}""",
    "kp_signbit_double": """
bool kp_signbit_double(double a) { return (unpackDouble2x32(a).y >> 31) != 0u; }""",
    "kp_nan_double": """
double kp_nan_double() { return packDouble2x32(uvec2(0u, 0x7ff80000u)); }""",
    "kp_inf_double": """
double kp_inf_double() { return packDouble2x32(uvec2(0u, 0x7ff00000u)); }""",
    # The remainder of the mantissas, eight binary digits at a time.
    "kp_fmod_float": """
float kp_fmod_float(float a, float b) {
    uint x = floatBitsToUint(a), y = floatBitsToUint(b) & 0x7fffffffu, s = x & 0x80000000u;
    x &= 0x7fffffffu;
    if (y == 0u || x >= 0x7f800000u || y > 0x7f800000u) return kp_nan_float();
    if (x < y) return a;
    int i = int(x >> 23), j = int(y >> 23);
    x = i == 0 ? x : (x & 0x7fffffu) | 0x800000u;
    y = j == 0 ? y : (y & 0x7fffffu) | 0x800000u;
    int n = max(i, 1) - max(j, 1);
    x %= y;
    while (n > 0 && x != 0u) {
        int k = min(n, 8);
        x = (x << k) % y;
        n -= k;
    }
    if (x == 0u) return uintBitsToFloat(s);
    j = max(j, 1);
    int k = min(23 - findMSB(x), j - 1);
    x <<= k;
    j -= k;
    return uintBitsToFloat(s | (x >= 0x800000u ? (uint(j) << 23) | (x & 0x7fffffu) : x));
}""",
    "kp_fmod_double": """
double kp_fmod_double(double a, double b) {
    uint64_t x = packUint2x32(unpackDouble2x32(a)), y = packUint2x32(unpackDouble2x32(b));
    const uint64_t top = 0x8000000000000000ul, one = 0x10000000000000ul, infinite = 0x7ff0000000000000ul;
    uint64_t s = x & top;
    x &= ~top;
    y &= ~top;
    if (y == 0ul || x >= infinite || y > infinite) return kp_nan_double();
    if (x < y) return a;
    int i = int(x >> 52), j = int(y >> 52);
    x = i == 0 ? x : (x & (one - 1ul)) | one;
    y = j == 0 ? y : (y & (one - 1ul)) | one;
    int n = max(i, 1) - max(j, 1);
    x %= y;
    while (n > 0 && x != 0ul) {
        int k = min(n, 11);
        x = (x << k) % y;
        n -= k;
    }
    if (x != 0ul) {
        j = max(j, 1);
        while (x < one && j > 1) { x <<= 1; --j; }
        if (x >= one) x = (uint64_t(j) << 52) | (x & (one - 1ul));
    }
    return packDouble2x32(unpackUint2x32(s | x));
}""",
    # The bits of a float16, and the nearest float16, ties to even. Some drivers' packHalf2x16 and float16_t()
    # cut off, and some drivers' unpackHalf2x16 has no infinities.
    "kp_from_half": """
float kp_from_half(uint h) {
    uint s = (h & 0x8000u) << 16, m = h & 0x7fffu;
    if (m >= 0x7c00u) return uintBitsToFloat(s | ((m << 13) + 0x70000000u));
    if (m < 0x400u) return uintBitsToFloat(s | floatBitsToUint(float(m) * 5.9604644775390625e-8));
    return uintBitsToFloat(s | ((m << 13) + 0x38000000u));
}""",
    "kp_to_half": """
uint kp_to_half(float a) {
    uint u = floatBitsToUint(a), s = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
    if (m > 0x7f800000u) return s | 0x7e00u;
    if (m >= 0x477ff000u) return s | 0x7c00u;
    if (m < 0x33000000u) return s;
    bool small = m < 0x38800000u;
    uint k = small ? 126u - (m >> 23) : 13u;
    m = small ? (m & 0x7fffffu) | 0x800000u : m - 0x38000000u;
    return s | ((m + (1u << (k - 1u)) - 1u + ((m >> k) & 1u)) >> k);
}""",
    # To the nearest float16, as a float.
    "kp_half": """
float kp_half(float a) { return kp_from_half(kp_to_half(a)); }""",
    # e to the power of r, from -0.35 to 0.35, times 2^k: by the polynomial of Cephes' expf (S. Moshier). The
    # drivers' exponentials have errors that grow with the argument, and no subnormal results.
    "kp_exp_of": """
float kp_exp_of(float r, float k) {
    float y = 1.0 + (r + r * r * (0.50000001201 + r * (0.16666665459 + r * (0.041665795894 +
        r * (0.0083334519073 + r * (0.0013981999507 + r * 0.00019875691500))))));
    int n = int(k), half_ = n / 2;
    return y * uintBitsToFloat(uint(half_ + 127) << 23) * uintBitsToFloat(uint(n - half_ + 127) << 23);
}""",
    # The logarithm of 2 in two parts, so that the product with the first is exact.
    "kp_exp": """
float kp_exp(float a) {
    if (kp_isnan_float(a)) return a;
    if (a > 88.8) return kp_inf_float();
    if (a < -104.0) return 0.0;
    precise float k = roundEven(a * 1.44269504), r = (a - k * 0.693359375) + k * 2.12194440e-4;
    return kp_exp_of(r, k);
}""",
    "kp_exp2": """
float kp_exp2(float a) {
    if (kp_isnan_float(a)) return a;
    if (a >= 128.0) return kp_inf_float();
    if (a < -150.0) return 0.0;
    float k = roundEven(a);
    return kp_exp_of((a - k) * 0.69314718, k);
}""",
    # The logarithm of 1 + a, for a from -0.5 to 1, by a series; the terms left out are below half an ulp.
    "kp_log_near": """
float kp_log_near(float a) {
    float s = a / (2.0 + a), z = s * s;
    return 2.0 * s + 2.0 * s * z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * (0.11111111 +
        z * (0.09090909 + z * (0.07692308 + z * 0.06666667))))));
}""",
    # a = 2^k f, for a > 0 and finite, with f from sqrt(1/2) to sqrt(2). By bits: devices may take subnormals
    # for zeros.
    "kp_split": """
float kp_split(float a, out int k) {
    uint u = floatBitsToUint(a);
    k = -127;
    if (u < 0x800000u) { u = floatBitsToUint(float(u)); k -= 149; }
    k += int(u >> 23);
    float f = uintBitsToFloat((u & 0x7fffffu) | 0x3f800000u);
    if (f > 1.41421356) { f *= 0.5; ++k; }
    return f;
}""",
    # The logarithms of what is not positive and finite, and what is.
    "kp_log_odd": """
float kp_log_odd(float a) {
    if (kp_iszero_float(a)) return -kp_inf_float();
    return kp_isnan_float(a) || !kp_signbit_float(a) ? a : kp_nan_float();
}""",
    "kp_log_plain": """
bool kp_log_plain(float a) { return floatBitsToUint(a) - 1u < 0x7f7fffffu; }""",
    # Vulkan allows the drivers' logarithms an error of 2^-21, which is more than they are near 1. The
    # logarithm of 2 in two parts, so that the product with the first is exact.
    "kp_log": """
float kp_log(float a) {
    if (!kp_log_plain(a)) return kp_log_odd(a);
    int k;
    precise float n = kp_log_near(kp_split(a, k) - 1.0), m = float(k);
    precise float r = m * 0.693359375 + (n - m * 2.12194440e-4);
    return r;
}""",
    "kp_log2": """
float kp_log2(float a) {
    if (!kp_log_plain(a)) return kp_log_odd(a);
    int k;
    precise float n = kp_log_near(kp_split(a, k) - 1.0) * 1.4426950409, r = float(k) + n;
    return r;
}""",
    "kp_log10": """
float kp_log10(float a) {
    if (!kp_log_plain(a)) return kp_log_odd(a);
    int k;
    precise float n = kp_log_near(kp_split(a, k) - 1.0), m = float(k);
    precise float r = m * 0.30078125 + (n * 0.4342944819 + m * 2.4874566398e-4);
    return r;
}""",
    # Near zero by series; the terms left out are below half an ulp. Up to 1.4 by that of a quarter: exp(a)
    # less 1 would lose places.
    "kp_expm1": """
float kp_expm1(float a) {
    if (abs(a) > 1.4) return kp_exp(a) - 1.0;
    if (kp_isnan_float(a) || abs(a) < 1e-8) return a;
    bool near = abs(a) <= 0.35;
    float q = near ? a : a * 0.25;
    float e = q + q * q * (0.5 + q * (0.16666667 + q * (0.041666667 + q * (0.0083333333 +
        q * (0.0013888889 + q * (0.00019841270 + q * 0.000024801587))))));
    if (near) return e;
    e = e * (e + 2.0);
    return e * (e + 2.0);
}""",
    # Kahan's: the error of 1 + a divides out.
    "kp_log1p": """
float kp_log1p(float a) {
    if (abs(a) < 1e-8) return a;
    return a >= -0.5 && a <= 1.0 ? kp_log_near(a) : kp_log(1.0 + a);
}""",
    "kp_cbrt": """
float kp_cbrt(float a) {
    if (kp_iszero_float(a) || kp_isnan_float(a) || kp_isinf_float(a)) return a;
    int k;
    float m = kp_split(uintBitsToFloat(floatBitsToUint(a) & 0x7fffffffu), k);
    int third = (k + 300) / 3 - 100, rest = k - 3 * third;
    m *= float(1 << rest);
    float r = exp2(log2(m) * 0.33333333);
    r -= (r * r * r - m) / (3.0 * r * r);
    return kp_copysign_float(r * uintBitsToFloat(uint(third + 127) << 23), a);
}""",
    "kp_hypot": """
float kp_hypot(float a, float b) {
    a = abs(a);
    b = abs(b);
    if (kp_isinf_float(a) || kp_isinf_float(b)) return kp_inf_float();
    if (kp_isnan_float(a) || kp_isnan_float(b)) return kp_nan_float();
    float m = max(a, b), n = min(a, b);
    if (m == 0.0) return m;
    n = kp_quo_float(n, m);
    return m * sqrt(1.0 + n * n);
}""",
    # x as a multiple of pi / 2 and a rest: by three parts of pi / 2, and where they do not suffice by the
    # digits of 2 / pi. Some drivers' own functions are off by 2e-4.
    "kp_quarter": """
float kp_quarter(float a, out int n) {
    if (abs(a) < 8000.0) {
        precise float k = roundEven(a * 0.63661975);
        n = int(k);
        precise float r = ((a - k * 1.5703125) - k * 4.837512969970703125e-4) - k * 7.54978995489e-8;
        return r;
    }
    const uint digits[6] =
        uint[6](0x3c439041u, 0xdb629599u, 0xf534ddc0u, 0xfc2757d1u, 0x4e441529u, 0xa2f9836eu);
    uint u = floatBitsToUint(a), m = (u << 8) | 0x80000000u, carry = 0u, whole[7];
    int e = int((u >> 23) & 0xffu) - 128;
    for (int q = 0; q < 6; ++q) {
        uint high, low;
        umulExtended(digits[q], m, high, low);
        whole[q] = low + carry;
        carry = high + (whole[q] < low ? 1u : 0u);
    }
    whole[6] = carry;
    int at = 4 - (e >> 5), s = e & 31;
    uint high = whole[at + 2], low = whole[at + 1];
    if (s != 0) {
        high = (high << s) | (low >> (32 - s));
        low = (low << s) | (whole[at] >> (32 - s));
    }
    n = int(high >> 30);
    high = (high << 2) | (low >> 30);
    low <<= 2;
    bool up = (high >> 31) != 0u, negative = (u >> 31) != 0u;
    if (up) {
        ++n;
        high = ~high + (low == 0u ? 1u : 0u);
        low = ~low + 1u;
    }
    float r = (float(high) + float(low) * 2.3283064365386963e-10) * 3.6572952e-10;
    if (negative) n = -n;
    return up != negative ? -r : r;
}""",
    "kp_sin_of": """
float kp_sin_of(float r) {
    float z = r * r;
    return r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 - z * 1.9515295891e-4));
}""",
    "kp_cos_of": """
float kp_cos_of(float r) {
    float z = r * r;
    return 1.0 - 0.5 * z + z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 +
        z * 2.443315711809948e-5));
}""",
    "kp_sin": """
float kp_sin(float a) {
    if (kp_isnan_float(a) || kp_isinf_float(a)) return kp_nan_float();
    if (abs(a) < 1e-4) return a;
    int n;
    float r = kp_quarter(a, n), v = (n & 1) == 0 ? kp_sin_of(r) : kp_cos_of(r);
    return (n & 2) == 0 ? v : -v;
}""",
    "kp_cos": """
float kp_cos(float a) {
    if (kp_isnan_float(a) || kp_isinf_float(a)) return kp_nan_float();
    int n;
    float r = kp_quarter(a, n), v = (n & 1) == 0 ? kp_cos_of(r) : kp_sin_of(r);
    return ((n + 1) & 2) == 0 ? v : -v;
}""",
    "kp_tan": """
float kp_tan(float a) {
    if (kp_isnan_float(a) || kp_isinf_float(a)) return kp_nan_float();
    if (abs(a) < 1e-4) return a;
    int n;
    float r = kp_quarter(a, n), s = kp_sin_of(r), c = kp_cos_of(r);
    return (n & 1) == 0 ? s / c : -c / s;
}""",
    # Arguments up to tan(pi / 8) by a polynomial, the others through differences of angles.
    "kp_atan": """
float kp_atan(float a) {
    if (kp_isnan_float(a)) return a;
    float m = abs(a), base = 0.0;
    if (m > 2.4142135) { base = 1.5707964; m = kp_isinf_float(m) ? 0.0 : -1.0 / m; }
    else if (m > 0.41421357) { base = 0.78539819; m = (m - 1.0) / (m + 1.0); }
    float z = m * m;
    float r = base + (m + m * z * (-0.333329491539 + z * (0.199777106478 + z * (-0.138776856032 +
        z * 0.0805374449538))));
    return kp_copysign_float(r, a);
}""",
    "kp_atan2": """
float kp_atan2(float y, float x) {
    if (kp_isnan_float(y)) return y;
    if (kp_isnan_float(x)) return x;
    bool back = kp_signbit_float(x);
    float r;
    if (kp_isinf_float(x)) r = kp_isinf_float(y) ? (back ? 2.3561945 : 0.78539819) : (back ? 3.1415927 : 0.0);
    else if (y == 0.0) r = back ? 3.1415927 : 0.0;
    else if (x == 0.0 || kp_isinf_float(y)) r = 1.5707964;
    else {
        float m = max(abs(x), abs(y)), s = m > 1e18 ? 1e-18 : m < 1e-18 ? 1e20 : 1.0;
        float u = abs(x) * s, v = abs(y) * s;
        r = v > u ? 1.5707964 - kp_atan(u / v) : kp_atan(v / u);
        if (back) r = 3.1415927 - r;
    }
    return kp_signbit_float(y) ? -r : r;
}""",
    "kp_asin": """
float kp_asin(float a) {
    float m = abs(a);
    if (!(m <= 1.0)) return kp_nan_float();
    float z = m > 0.5 ? 0.5 * (1.0 - m) : m * m, s = m > 0.5 ? sqrt(z) : m;
    float p = s + s * z * (0.16666752422 + z * (0.074953002686 + z * (0.045470025998 +
        z * (0.024181311049 + z * 0.042163199048))));
    return kp_copysign_float(m > 0.5 ? 1.5707964 - 2.0 * p : p, a);
}""",
    "kp_acos": """
float kp_acos(float a) {
    if (!(abs(a) <= 1.0)) return kp_nan_float();
    if (a > 0.5) return 2.0 * kp_asin(sqrt(0.5 * (1.0 - a)));
    return a < -0.5 ? 3.1415927 - 2.0 * kp_asin(sqrt(0.5 * (1.0 + a))) : 1.5707964 - kp_asin(a);
}""",
    "kp_sinh": """
float kp_sinh(float a) {
    float m = abs(a);
    if (kp_isnan_float(a)) return a;
    if (m > 80.0) {
        float h = kp_exp(m * 0.5);
        precise float half_ = h * 0.5, large = half_ * h;  // h * h may overflow
        return kp_copysign_float(large, a);
    }
    float e = kp_expm1(m);
    return kp_copysign_float(0.5 * (e + e / (e + 1.0)), a);
}""",
    "kp_cosh": """
float kp_cosh(float a) {
    if (kp_isnan_float(a)) return a;
    if (abs(a) <= 80.0) {
        float e = kp_exp(abs(a));
        return 0.5 * (e + 1.0 / e);
    }
    float e = kp_exp(abs(a) * 0.5);
    precise float half_ = e * 0.5, large = half_ * e;  // e * e may overflow
    return large;
}""",
    "kp_tanh": """
float kp_tanh(float a) {
    if (kp_isnan_float(a)) return a;
    float m = abs(a);
    if (m > 10.0) return kp_copysign_float(1.0, a);
    float e = kp_expm1(2.0 * m);
    return kp_copysign_float(e / (e + 2.0), a);
}""",
    "kp_asinh": """
float kp_asinh(float a) {
    float m = abs(a);
    if (kp_isnan_float(a) || kp_isinf_float(a)) return a;
    float r = m > 1e9 ? kp_log(m) + 0.69314718 : kp_log1p(m + m * m / (1.0 + sqrt(1.0 + m * m)));
    return kp_copysign_float(r, a);
}""",
    "kp_acosh": """
float kp_acosh(float a) {
    if (!(a >= 1.0)) return kp_nan_float();
    if (a > 1e9) return kp_log(a) + 0.69314718;
    float t = a - 1.0;
    return kp_log1p(t + sqrt(2.0 * t + t * t));
}""",
    "kp_atanh": """
float kp_atanh(float a) {
    float m = abs(a);
    if (!(m <= 1.0)) return kp_nan_float();
    return kp_copysign_float(m == 1.0 ? kp_inf_float() : 0.5 * kp_log1p(2.0 * m / (1.0 - m)), a);
}""",
    "kp_logaddexp": """
float kp_logaddexp(float a, float b) {
    if (a == b) return a + 0.69314718;
    float d = a - b;
    return kp_isnan_float(d) ? d : d > 0.0 ? a + kp_log1p(kp_exp(-d)) : b + kp_log1p(kp_exp(d));
}""",
    # C99's special cases around exp2(b * log2(|a|)).
    # The part of a * b that rounding took from p: by halves of the factors, whose products are exact.
    "kp_rest": """
float kp_rest(float a, float b, float p) {
    precise float c = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u), d = a - c;
    precise float e = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u), f = b - e;
    precise float r = ((c * e - p) + c * f + d * e) + d * f;
    return r;
}""",
    # The power by a logarithm of two floats, because its error is multiplied by b: log2(m) is the exponent
    # and 2 / log(2) * atanh(s), s = (f - 1) / (f + 1), of the fraction f next to 1.
    "kp_pow_log2": """
float kp_pow_log2(float m, float b) {
    int k;
    precise float f = kp_split(m, k), n = f - 1.0, d = f + 1.0, dd = f - (d - 1.0), s = n / d, p = s * d;
    precise float t = (((n - p) - kp_rest(s, d, p)) - s * dd) / d, z = s * s;
    precise float h = 2.885390043258667 * s;
    precise float l = kp_rest(2.885390043258667, s, h) + 2.885390043258667 * t + 3.851926e-8 * s;
    l += h * (z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * (0.11111111 + z * 0.09090909)))));
    precise float g = h + l, e = float(k), x = e + g, y = (k == 0 ? 0.0 : (e - x) + g) + ((h - g) + l);
    precise float q = b * x;
    if (!(abs(q) < 160.0)) return q > 0.0 ? kp_inf_float() : 0.0;
    precise float r = kp_rest(b, x, q) + b * y, w = roundEven(q), u = (q - w) + r;
    precise float v = 1.0 + u * (0.6931471805599453 + u * (0.24022650695910072 + u * (0.05550410866482158 +
        u * (0.009618129107628477 + u * (0.0013333558146428443 + u * (0.0001540353039338161 +
        u * 1.5252733804059841e-05))))));
    if (w > 128.0) return kp_inf_float();
    if (w < -150.0) return 0.0;
    int c = int(w), half_ = c / 2;
    v *= uintBitsToFloat(uint(half_ + 127) << 23);
    v *= uintBitsToFloat(uint(c - half_ + 127) << 23);
    return v;
}""",
    "kp_pow_float": """
float kp_pow_float(float a, float b) {
    if (b == 0.0 || a == 1.0) return 1.0;
    if (kp_isnan_float(a) || kp_isnan_float(b)) return kp_nan_float();
    float m = abs(a);
    if (kp_isinf_float(b)) return m == 1.0 ? 1.0 : (m > 1.0) == (b > 0.0) ? b * b : 0.0;
    bool whole = kp_trunc_float(b) == b, odd = whole && abs(b) < 16777216.0 && (int(b) & 1) != 0;
    float r;
    if (m == 0.0 || kp_isinf_float(m)) r = (m == 0.0) == (b > 0.0) ? 0.0 : kp_inf_float();
    else if (a < 0.0 && !whole) return kp_nan_float();
    else if (m == 1.0) r = 1.0;
    else if (whole && abs(b) <= 16.0) {
        float x = m;
        r = 1.0;
        for (int n = int(abs(b)); n > 0; n >>= 1, x *= x) r *= (n & 1) != 0 ? x : 1.0;
        // The power of the reciprocal may be among the numbers that devices take for 0.
        if (b < 0.0) r = r > 1.2e-38 && !kp_isinf_float(r) ? 1.0 / r : kp_pow_log2(m, b);
    } else r = kp_pow_log2(m, b);
    return odd && kp_signbit_float(a) ? -r : r;
}""",
    # Near 0, x times a polynomial of x * x; elsewhere 1 - exp(polynomial of |x|). The coefficients are
    # least-squares fits in Chebyshev nodes to erf(sqrt(s)) / sqrt(s) and to log(erfc(x)).
    "kp_erf": """
float kp_erf(float x) {
    float a = abs(x), s = x * x;
    if (a < 0.921875)
return x * ((((((8.392181916860864e-05 * s + -0.0008148385677486658) * s + 0.0052015813998878) *
        s + -0.026859642937779427) * s + 0.11283700168132782) * s + -0.37612634897232056) * s +
        1.128379225730896);
    if (a < 4.0)
return sign(x) * (1.0 - exp((((((((((-3.921425317798821e-08 * a + 2.481107685525785e-06) * a +
        -5.3901010687695816e-05) * a + 0.0006380006088875234) * a + -0.0048939744010567665) * a
        + 0.026702556759119034) * a + -0.11045720428228378) * a + -0.6315153241157532) * a +
        -1.130375862121582) * a + 0.0003476653073448688)));
    return a >= 4.0 ? sign(x) : x;
}""",
}


@cache
def _all(exact: bool) -> dict[str, str]:
    found = {**_FIXED, **DOUBLES, **SMALL_FLOAT_FUNCTIONS, **COMPLEX}
    groups = (
        (("int", "int64_t"), {**_ANY, **_WHOLE}),
        (("uint", "uint64_t"), {**_UNSIGNED, **_WHOLE}),
        (("float", "double"), {**_FLOATS, **_AS_THE_DEVICE}),
    )
    for types, functions in groups:
        for type_ in types:
            for name, text in functions.items():
                for mark, meant in ({"{T}": type_} | _SCALES.get(type_, {})).items():
                    name, text = name.replace(mark, meant), text.replace(mark, meant)
                found[name] = text
    if not exact:
        found |= _BY_INTS
    return {
        name: f"#ifndef kp_has_{name}\n#define kp_has_{name}\n{text.strip()}\n#endif"
        for name, text in found.items()
    }


def functions_in(text: str, features: frozenset[str] | None = None) -> dict[str, str]:
    """The functions that `text` calls, and those that they call: their GLSL by name, in order.

    `features` are the device's, `EXACT_DIVISION` among them; None: for any device.
    """
    found: dict[str, str] = {}
    _add(text, found, _all(features is not None and EXACT_DIVISION in features))
    return found


def _add(part: str, found: dict[str, str], known: dict[str, str]) -> None:
    for name in _NAME.findall(part):
        if name in known and name not in found:
            _add(known[name].partition("{")[2], found, known)
            found[name] = known[name]
