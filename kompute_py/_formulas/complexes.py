"""GLSL functions of complex numbers, for both precisions.

"{C}" is vec2 or dvec2, "{T}" float or double, "{d}" begins the names of real functions of doubles, and "LF"
ends literals.

Infinities, NaN and the signs of zeros give what Annex G of C99 says, on the sides of branch cuts too. The
inverse functions are those of W. Kahan ("Branch cuts for complex elementary functions", 1987).
"""

from __future__ import annotations

_GENERIC = {
    "kp_cmul_{C}": """
{C} kp_cmul_{C}({C} a, {C} b) {
    precise {C} r = {C}(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    return r;
}""",
    # Smith's division, as NumPy; operands far from 1 are scaled: nothing between overflows or vanishes.
    "kp_cdiv_{C}": """
{C} kp_cdiv_{C}({C} a, {C} b) {
    {T} f = kp_cscale_{C}(a), g = kp_cscale_{C}(b);
    a *= f;
    b *= g;
    precise {C} q;
    if (abs(b.x) >= abs(b.y)) {
        if (b.x == 0.0LF && b.y == 0.0LF)
            return {C}(kp_div_{T}(a.x, abs(b.x)), kp_div_{T}(a.y, abs(b.x)));
        precise {T} r = b.y / b.x, s = 1.0LF / (b.x + b.y * r);
        q = {C}((a.x + a.y * r) * s, (a.y - a.x * r) * s);
    } else {
        precise {T} r = b.x / b.y, s = 1.0LF / (b.y + b.x * r);
        q = {C}((a.x * r + a.y) * s, (a.y * r - a.x) * s);
    }
    return q * (g / f);
}""",
    # The power of two that brings a number far from 1 nearer to it.
    "kp_cscale_{C}": """
{T} kp_cscale_{C}({C} a) {
    {T} m = max(abs(a.x), abs(a.y));
    return m > {FAR} ? {NEAR} : m < {NEAR} ? {FAR} : 1.0LF;
}""",
    # NumPy's order: by real parts, then by imaginary ones.
    "kp_cless_{C}": """
bool kp_cless_{C}({C} a, {C} b) {
    return a.x == b.x ? a.y < b.y : a.x < b.x && !kp_isnan_{T}(a.y) && !kp_isnan_{T}(b.y);
}""",
    "kp_cless_equal_{C}": """
bool kp_cless_equal_{C}({C} a, {C} b) {
    return a.x == b.x ? a.y <= b.y : a.x < b.x && !kp_isnan_{T}(a.y) && !kp_isnan_{T}(b.y);
}""",
    "kp_cisnan_{C}": """
bool kp_cisnan_{C}({C} a) { return kp_isnan_{T}(a.x) || kp_isnan_{T}(a.y); }""",
    "kp_min_{C}": """
{C} kp_min_{C}({C} a, {C} b) { return kp_cisnan_{C}(a) || kp_cless_equal_{C}(a, b) ? a : b; }""",
    "kp_max_{C}": """
{C} kp_max_{C}({C} a, {C} b) { return kp_cisnan_{C}(a) || kp_cless_equal_{C}(b, a) ? a : b; }""",
    "kp_fmin_{C}": """
{C} kp_fmin_{C}({C} a, {C} b) { return kp_cisnan_{C}(b) || kp_cless_equal_{C}(a, b) ? a : b; }""",
    "kp_fmax_{C}": """
{C} kp_fmax_{C}({C} a, {C} b) { return kp_cisnan_{C}(b) || kp_cless_equal_{C}(b, a) ? a : b; }""",
    # The number divided by its absolute value, as NumPy 2; of an infinity its direction along an axis.
    "kp_csign_{C}": """
{C} kp_csign_{C}({C} a) {
    bool p = kp_isinf_{T}(a.x), q = kp_isinf_{T}(a.y);
    {T} nan = kp_nan_{T}();
    if (p != q) return p ? {C}(kp_copysign_{T}(1.0LF, a.x), 0.0LF) : {C}(0.0LF, kp_copysign_{T}(1.0LF, a.y));
    if (p || kp_cisnan_{C}(a)) return {C}(nan, nan);
    a *= kp_cscale_{C}(a);
    {T} m = kp_{d}hypot(a.x, a.y);
    return m == 0.0LF ? {C}(0.0LF) : {C}(a.x / m, a.y / m);
}""",
    # Where exp(x) alone may overflow, it is a product of two.
    "kp_cexp_{C}": """
{C} kp_cexp_{C}({C} a) {
    {C} t = kp_csincos_{C}(a.y);
    if (kp_isnan_{T}(t.x) && kp_isinf_{T}(a.x)) return a.x < 0.0LF ? {C}(0.0LF) : {C}(a.x, t.x);
    bool large = a.x > {LARGE};
    {T} m = kp_{d}exp(large ? a.x * 0.5LF : a.x), f = large ? m : 1.0LF;
    precise {C} r = {C}(m * t.y * f, m * t.x * f);
    return a.y == 0.0LF ? {C}(r.x, a.y) : r;
}""",
    "kp_cexpm1_{C}": """
{C} kp_cexpm1_{C}({C} a) {
    {C} t = kp_csincos_{C}(a.y);
    if (kp_isnan_{T}(t.x) && kp_isinf_{T}(a.x)) return a.x < 0.0LF ? {C}(-1.0LF, 0.0LF) : {C}(a.x, t.x);
    bool large = a.x > {LARGE};
    {T} e = kp_{d}expm1(large ? a.x * 0.5LF : a.x), m = e + 1.0LF;
    {T} less = t.y > 0.0LF ? t.x * t.x / (1.0LF + t.y) : 1.0LF - t.y;  // 1 less the cosine
    precise {C} r = large ? {C}(m * t.y * m, m * t.x * m) : {C}(e * t.y - less, m * t.x);
    return a.y == 0.0LF ? {C}(r.x, a.y) : r;
}""",
    # Near the unit circle by a difference from 1 without rounding.
    "kp_clog_{C}": """
{C} kp_clog_{C}({C} a) {
    {T} x = abs(a.x), y = abs(a.y), m = x > y ? x : y, n = x > y ? y : x, r;
    if (kp_isinf_{T}(x) || kp_isinf_{T}(y)) r = kp_inf_{T}();
    else if (kp_cisnan_{C}(a)) r = kp_nan_{T}();
    else if (m == 0.0LF) r = -kp_inf_{T}();
    else if (m >= 0.5LF && m <= 2.0LF) {
        precise {T} q = (m - 1.0LF) * (m + 1.0LF) + n * n;
        r = 0.5LF * kp_{d}log1p(q);
    } else {
        {T} q = kp_quo_{T}(n, m);
        r = kp_{d}log(m) + 0.5LF * kp_{d}log1p(q * q);
    }
    return {C}(r, kp_{d}atan2(a.y, a.x));
}""",
    "kp_clog1p_{C}": """
{C} kp_clog1p_{C}({C} a) {
    precise {T} u = 1.0LF + a.x;
    if (!(abs(a.x) <= 0.5LF && abs(a.y) <= 1.0LF)) return kp_clog_{C}({C}(u, a.y));
    precise {T} q = a.x * (2.0LF + a.x) + a.y * a.y;
    return {C}(0.5LF * kp_{d}log1p(q), kp_{d}atan2(a.y, u));
}""",
    "kp_csqrt_{C}": """
{C} kp_csqrt_{C}({C} a) {
    {T} nan = kp_nan_{T}();
    if (kp_isinf_{T}(a.y)) return {C}(kp_inf_{T}(), a.y);
    if (kp_isnan_{T}(a.x)) return {C}(nan, nan);
    if (kp_isinf_{T}(a.x)) {
        {T} rest = kp_isnan_{T}(a.y) ? nan : 0.0LF;
        return a.x > 0.0LF ? {C}(a.x, kp_copysign_{T}(rest, a.y)) : {C}(rest, kp_copysign_{T}(-a.x, a.y));
    }
    if (kp_isnan_{T}(a.y)) return {C}(nan, nan);
    {T} x = abs(a.x), y = abs(a.y), m = x > y ? x : y, back = 1.0LF;
    if (m == 0.0LF) return {C}(0.0LF, a.y);
    if (m > {HUGE}) { x *= 0.0625LF; y *= 0.0625LF; back = 4.0LF; }
    else if (m < {TINY}) { x *= {UP}; y *= {UP}; back = {BACK}; }
    {T} t = sqrt((x + kp_{d}hypot(x, y)) * 0.5LF), u = y / (2.0LF * t) * back;
    t *= back;
    return a.x < 0.0LF ? {C}(u, kp_copysign_{T}(t, a.y))
        : {C}(t, kp_copysign_{T}(u, a.y));
}""",
    # As NumPy: small whole powers by products, others by logarithms.
    "kp_pow_{C}": """
{C} kp_pow_{C}({C} a, {C} b) {
    const {C} one = {C}(1.0LF, 0.0LF);
    if (b.x == 0.0LF && b.y == 0.0LF) return one;
    if (a.x == 0.0LF && a.y == 0.0LF)
        return b.x > 0.0LF ? {C}(0.0LF) : {C}(kp_nan_{T}(), kp_nan_{T}());
    if (b.y == 0.0LF && abs(b.x) < 100.0LF && kp_trunc_{T}(b.x) == b.x) {
        {C} r = one, p = a;
        bool some = false;
        for (int n = int(abs(b.x)); n > 0; n >>= 1) {
            if ((n & 1) != 0) r = some ? kp_cmul_{C}(r, p) : p;
            some = some || (n & 1) != 0;
            if (n > 1) p = kp_cmul_{C}(p, p);
        }
        return b.x < 0.0LF ? kp_cdiv_{C}(one, r) : r;
    }
    return kp_cexp_{C}(kp_cmul_{C}(b, kp_clog_{C}(a)));
}""",
    # sinh(x) and cosh(x), both divided by f.
    "kp_csplit_{C}": """
{C} kp_csplit_{C}({T} x, out {T} f) {
    {T} m = abs(x);
    bool large = m > {LARGE};
    {T} e = kp_{d}expm1(large ? m * 0.5LF : m), g = e + 1.0LF;
    f = large ? g : 1.0LF;
    {T} s = large ? g * 0.5LF : 0.5LF * (e + e / g), c = large ? s : 1.0LF + e * (0.5LF * e / g);
    return {C}(kp_copysign_{T}(s, x), c);
}""",
    "kp_csinh_{C}": """
{C} kp_csinh_{C}({C} a) {
    {C} t = kp_csincos_{C}(a.y);
    if (kp_isnan_{T}(t.x)) return {C}(a.x == 0.0LF || kp_isinf_{T}(a.x) ? a.x : t.x, t.x);
    {T} f;
    {C} p = kp_csplit_{C}(a.x, f);
    precise {C} r = {C}(p.x * t.y * f, p.y * t.x * f);
    return a.y == 0.0LF ? {C}(r.x, a.y) : r;
}""",
    "kp_ccosh_{C}": """
{C} kp_ccosh_{C}({C} a) {
    {C} t = kp_csincos_{C}(a.y);
    if (kp_isnan_{T}(t.x)) return {C}(kp_isinf_{T}(a.x) ? kp_inf_{T}() : t.x, a.x == 0.0LF ? a.x : t.x);
    {T} f;
    {C} p = kp_csplit_{C}(a.x, f);
    precise {C} r = {C}(p.y * t.y * f, p.x * t.x * f);
    return a.y == 0.0LF ? {C}(r.x, kp_signbit_{T}(a.x) ? -a.y : a.y) : r;
}""",
    # By tanh(x), and the sine and cosine of y by cosh(x).
    "kp_ctanh_{C}": """
{C} kp_ctanh_{C}({C} a) {
    if (kp_isnan_{T}(a.x)) return {C}(a.x, a.y == 0.0LF ? a.y : a.x);
    {C} t = kp_csincos_{C}(a.y);
    if (kp_isnan_{T}(t.x)) {
        bool far = kp_isinf_{T}(a.x);
        return {C}(far ? kp_copysign_{T}(1.0LF, a.x) : a.x == 0.0LF ? a.x : t.x,
            far ? kp_copysign_{T}(0.0LF, a.y) : t.x);
    }
    {T} f;
    {C} p = kp_csplit_{C}(abs(a.x) > {LARGE} ? {LARGE} : abs(a.x), f);
    {T} u = p.x / p.y;
    t /= p.y;
    precise {T} d = u * u + t.y * t.y;
    precise {C} r = {C}(kp_copysign_{T}(u / d, a.x), t.x * t.y / d);
    return r;
}""",
    # log(2 |a|), of large numbers and infinities.
    "kp_clarge_{C}": """
{T} kp_clarge_{C}({C} a) {
    return kp_{d}log(kp_{d}hypot(a.x * 0.5LF, a.y * 0.5LF)) + 1.3862943611198906LF;
}""",
    "kp_casinh_{C}": """
{C} kp_casinh_{C}({C} a) {
    if (abs(a.x) > {HUGE} || abs(a.y) > {HUGE})
        return {C}(kp_copysign_{T}(kp_clarge_{C}(a), a.x), kp_{d}atan2(a.y, abs(a.x)));
    if (kp_cisnan_{C}(a)) return {C}(kp_nan_{T}(), a.y == 0.0LF ? a.y : kp_nan_{T}());
    {C} p = kp_csqrt_{C}({C}(1.0LF + a.y, -a.x)), q = kp_csqrt_{C}({C}(1.0LF - a.y, a.x));
    precise {T} u = p.x * q.y - q.x * p.y, v = p.x * q.x - p.y * q.y;
    return {C}(kp_copysign_{T}(kp_{d}asinh(u), a.x), kp_{d}atan2(a.y, v));
}""",
    "kp_cacos_{C}": """
{C} kp_cacos_{C}({C} a) {
    if (abs(a.x) > {HUGE} || abs(a.y) > {HUGE})
        return {C}(kp_{d}atan2(abs(a.y), a.x), kp_copysign_{T}(kp_clarge_{C}(a), -a.y));
    if (kp_cisnan_{C}(a)) return {C}(a.x == 0.0LF ? 1.5707963267948966LF : kp_nan_{T}(), kp_nan_{T}());
    {C} p = kp_csqrt_{C}({C}(1.0LF - a.x, -a.y)), q = kp_csqrt_{C}({C}(1.0LF + a.x, a.y));
    precise {T} v = q.x * p.y - q.y * p.x;
    return {C}(2.0LF * kp_{d}atan2(p.x, q.x), kp_copysign_{T}(kp_{d}asinh(v), -a.y));
}""",
    "kp_cacosh_{C}": """
{C} kp_cacosh_{C}({C} a) {
    {C} r = kp_cacos_{C}(a);
    return {C}(abs(r.y), kp_copysign_{T}(r.x, a.y));
}""",
    "kp_catanh_{C}": """
{C} kp_catanh_{C}({C} a) {
    {T} x = abs(a.x), y = abs(a.y), u, v;
    if (x > {ROOT} || y > {ROOT}) {
        {T} h = kp_{d}hypot(x * 0.5LF, y * 0.5LF);
        u = kp_isinf_{T}(h) ? 0.0LF : x * 0.25LF / h / h;
        v = kp_isnan_{T}(y) || kp_isnan_{T}(h) ? kp_nan_{T}() : 1.5707963267948966LF;
    } else if (kp_cisnan_{C}(a)) {
        u = x == 0.0LF ? x : kp_nan_{T}();
        v = kp_nan_{T}();
    } else if (x == 1.0LF && y * {ROOT} < 1.0LF) {
        u = y == 0.0LF ? kp_inf_{T}() : 0.5LF * (0.6931471805599453LF - kp_{d}log(y));
        v = y == 0.0LF ? y : 0.7853981633974483LF;
    } else {
        precise {T} w = 1.0LF - x, p = 4.0LF * x / (w * w + y * y), q = w * (1.0LF + x) - y * y;
        u = 0.25LF * kp_{d}log1p(p);
        v = 0.5LF * kp_{d}atan2(2.0LF * y, q);
    }
    return {C}(kp_copysign_{T}(u, a.x), kp_copysign_{T}(v, a.y));
}""",
    # The others are those of i a, turned back.
    "kp_csin_{C}": """
{C} kp_csin_{C}({C} a) { {C} r = kp_csinh_{C}({C}(-a.y, a.x)); return {C}(r.y, -r.x); }""",
    "kp_ccos_{C}": """
{C} kp_ccos_{C}({C} a) { return kp_ccosh_{C}({C}(-a.y, a.x)); }""",
    "kp_ctan_{C}": """
{C} kp_ctan_{C}({C} a) { {C} r = kp_ctanh_{C}({C}(-a.y, a.x)); return {C}(r.y, -r.x); }""",
    "kp_casin_{C}": """
{C} kp_casin_{C}({C} a) { {C} r = kp_casinh_{C}({C}(-a.y, a.x)); return {C}(r.y, -r.x); }""",
    "kp_catan_{C}": """
{C} kp_catan_{C}({C} a) { {C} r = kp_catanh_{C}({C}(-a.y, a.x)); return {C}(r.y, -r.x); }""",
}
_OWN = {
    "kp_cfloat": """
vec2 kp_cfloat(dvec2 a) { return vec2(kp_dfloat(a.x), kp_dfloat(a.y)); }""",
    "kp_csincos_vec2": """
vec2 kp_csincos_vec2(float a) {
    if (kp_isnan_float(a) || kp_isinf_float(a)) return vec2(kp_nan_float());
    int n;
    float r = kp_quarter(a, n), s = kp_sin_of(r), c = kp_cos_of(r);
    vec2 t = (n & 1) == 0 ? vec2(abs(a) < 1e-9 ? a : s, c) : vec2(c, s);
    return vec2((n & 2) == 0 ? t.x : -t.x, ((n + 1) & 2) == 0 ? t.y : -t.y);
}""",
    "kp_csincos_dvec2": """
dvec2 kp_csincos_dvec2(double a) {
    if (!kp_dfinite(a)) return dvec2(kp_dnan());
    uint q;
    dvec2 y = kp_dreduced(a, q);
    double s = kp_dsin_of(y), c = kp_dcos_of(y);
    dvec2 t = (q & 1u) == 0u ? dvec2(abs(a) < 1e-9lf ? a : s, c) : dvec2(c, s);
    return dvec2((q & 2u) == 0u ? t.x : -t.x, q == 1u || q == 2u ? -t.y : t.y);
}""",
}
_KINDS = {
    "vec2": {
        "{T}": "float",
        "{d}": "",
        "{LARGE}": "80.0",
        "{HUGE}": "1e37",
        "{TINY}": "1e-30",
        "{UP}": "281474976710656.0",  # 2^48
        "{BACK}": "5.9604644775390625e-8",  # 2^-24
        "{ROOT}": "1e18",
        "{FAR}": "9223372036854775808.0",  # 2^63
        "{NEAR}": "1.0842021724855044e-19",  # 2^-63
        "LF": "",
    },
    "dvec2": {
        "{T}": "double",
        "{d}": "d",
        "{LARGE}": "700.0lf",
        "{HUGE}": "1e307lf",
        "{TINY}": "1e-290lf",
        "{UP}": "3.24518553658426726783e32lf",  # 2^108
        "{BACK}": "5.5511151231257827e-17lf",  # 2^-54
        "{ROOT}": "1e153lf",
        "{FAR}": "6.703903964971298549787e153lf",  # 2^511
        "{NEAR}": "1.4916681462400413e-154lf",  # 2^-511
        "LF": "lf",
    },
}


def _of(text: str, kind: str) -> str:
    text = text.replace("{C}", kind)
    for mark, meant in _KINDS[kind].items():
        text = text.replace(mark, meant)
    return text


COMPLEX = _OWN | {_of(name, kind): _of(text, kind) for kind in _KINDS for name, text in _GENERIC.items()}
"""By name."""
