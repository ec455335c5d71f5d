"""GLSL functions of doubles, which the language lacks: exponentials, logarithms, trigonometry.

The algorithms and coefficients of erf, exp, log, log10, powers, sin, cos, arctan, sinh, cosh and tanh are
those of FDLIBM (Sun Microsystems, 1993). Large arguments of sine and cosine are reduced as M. Payne and R.
Hanek describe ("Radian reduction for trigonometric functions", 1983), with the bits of 2/pi that matter for
the argument. log1p and expm1 correct the rounding of 1 + x by W. Kahan's quotients.
"""

from __future__ import annotations

DOUBLES = {
    "kp_dbits": """
double kp_dbits(uint high, uint low) { return packDouble2x32(uvec2(low, high)); }""",
    "kp_dnan": """
double kp_dnan() { return kp_dbits(0x7FF80000u, 0u); }""",
    # Without the lower half of its bits: products of two such are exact.
    "kp_dtop": """
double kp_dtop(double x) { return kp_dbits(unpackDouble2x32(x).y, 0u); }""",
    # The logarithm to base 2 of a positive and finite number, as a sum.
    "kp_dlog2_sum": """
dvec2 kp_dlog2_sum(double m) {
    int n;
    m = kp_dsplit(m, n);
    uvec2 bits = unpackDouble2x32(m);
    n += int(bits.y >> 20) - 1023;
    uint rest = bits.y & 0x000FFFFFu, k = rest <= 0x3988Eu || rest >= 0xBB67Au ? 0u : 1u;
    bits.y = rest | 0x3FF00000u;
    if (rest >= 0xBB67Au) { ++n; bits.y -= 0x00100000u; }
    m = packDouble2x32(bits);
    double base = k == 0u ? 1.0lf : 1.5lf;
    precise double u = m - base, v = 1.0lf / (m + base), s = u * v;
    double sh = kp_dtop(s), th = kp_dbits(((bits.y >> 1) | 0x20000000u) + 0x00080000u + (k << 18), 0u);
    precise double tl = m - (th - base), sl = v * ((u - sh * th) - sh * tl), s2 = s * s;
    double r = s2 * s2 * (5.99999999999994648725e-01lf + s2 * (4.28571428578550184252e-01lf
        + s2 * (3.33333329818377432918e-01lf + s2 * (2.72728123808534006489e-01lf
        + s2 * (2.30660745775561754067e-01lf + s2 * 2.06975017800338417784e-01lf)))));
    r += sl * (sh + s);
    precise double h2 = sh * sh, sum = 3.0lf + h2 + r;
    th = kp_dtop(sum);
    precise double tl2 = r - ((th - 3.0lf) - h2), u2 = sh * th, v2 = sl * th + tl2 * s, p = u2 + v2;
    double ph = kp_dtop(p);
    precise double pl = v2 - (ph - u2), zh = 9.61796700954437255859e-01lf * ph;
    precise double zl = -7.02846165095275826516e-09lf * ph + pl * 9.61796693925975554329e-01lf
        + (k == 0u ? 0.0lf : 1.35003920212974897128e-08lf);
    double dh = k == 0u ? 0.0lf : 5.84962487220764160156e-01lf, t = double(n);
    precise double whole = ((zh + zl) + dh) + t;
    double high = kp_dtop(whole);
    precise double low = zl - (((high - t) - dh) - zh);
    return dvec2(high, low);
}""",
    "kp_pow_double": """
double kp_pow_double(double a, double b) {
    if (b == 0.0lf || a == 1.0lf) return 1.0lf;
    if (kp_disnan(a) || kp_disnan(b)) return kp_dnan();
    double m = abs(a);
    if (abs(b) > 1.7976931348623157e308lf) {
        return m == 1.0lf ? 1.0lf : (m > 1.0lf) == (b > 0.0lf) ? kp_dinf() : 0.0lf;
    }
    double half_ = b * 0.5lf;
    bool whole = kp_trunc_double(b) == b,
        odd = whole && abs(b) < 9007199254740992.0lf && kp_trunc_double(half_) != half_;
    double r;
    if (m == 0.0lf || m > 1.7976931348623157e308lf) r = (m == 0.0lf) == (b > 0.0lf) ? 0.0lf : kp_dinf();
    else if (a < 0.0lf && !whole) return kp_dnan();
    else if (m == 1.0lf) r = 1.0lf;
    else {
        dvec2 t = kp_dlog2_sum(m);
        // Any larger power of a number other than 1 overflows or vanishes, too.
        double y = clamp(b, -3.7e19lf, 3.7e19lf), y1 = kp_dtop(y);
        precise double pl = (y - y1) * t.x + y * t.y, ph = y1 * t.x, z = pl + ph;
        if (z > 1024.5lf) r = kp_dinf();
        else if (z < -1076.0lf) r = 0.0lf;
        else {
            double n = kp_rint_double(z);
            ph -= n;
            precise double w = pl + ph;
            double top = kp_dtop(w);
            precise double u = top * 6.93147182464599609375e-01lf;
            precise double v = (pl - (top - ph)) * 6.93147180559945286227e-01lf
                + top * -1.90465429995776804525e-09lf;
            precise double x = u + v, e = v - (x - u), x2 = x * x;
            precise double c = x - x2 * (1.66666666666666019037e-01lf + x2 * (-2.77777777770155933842e-03lf
                + x2 * (6.61375632143793436117e-05lf + x2 * (-1.65339022054652515390e-06lf
                + x2 * 4.13813679705723846039e-08lf))));
            precise double q = (x * c) / (c - 2.0lf) - (e + x * e), y2 = 1.0lf - (q - x);
            r = n > 1023.0lf ? kp_dscaled(y2 * 2.0lf, int(n) - 1) : kp_dscaled(y2, int(n));
        }
    }
    return odd && (unpackDouble2x32(a).y >> 31) != 0u ? -r : r;
}""",
    "kp_dinf": """
double kp_dinf() { return kp_dbits(0x7FF00000u, 0u); }""",
    "kp_dscaled": """
double kp_dscaled(double y, int k) {
    int half_ = k / 2, rest = k - half_;
    return y * kp_dbits(uint(half_ + 1023) << 20, 0u) * kp_dbits(uint(rest + 1023) << 20, 0u);
}""",
    # Whether it is NaN, by its bits.
    "kp_disnan": """
bool kp_disnan(double x) {
    uvec2 bits = unpackDouble2x32(x);
    uint high = bits.y & 0x7FFFFFFFu;
    return high > 0x7FF00000u || (high == 0x7FF00000u && bits.x != 0u);
}""",
    "kp_dsigned": """
double kp_dsigned(double x, double sign_) {
    uvec2 a = unpackDouble2x32(x), b = unpackDouble2x32(sign_);
    return packDouble2x32(uvec2(a.x, a.y - ((a.y ^ b.y) & 0x80000000u)));  // as kp_copysign_float
}""",
    # e to the power of high - low, times 2^k.
    "kp_dexp_of": """
double kp_dexp_of(double high, double low, int k) {
    precise double x = high - low, t = x * x;
    double c = x - t * (1.66666666666666019037e-01lf + t * (-2.77777777770155933842e-03lf
        + t * (6.61375632143793436117e-05lf + t * (-1.65339022054652515390e-06lf
        + t * 4.13813679705723846039e-08lf))));
    precise double y = 1.0lf - ((low - (x * c) / (2.0lf - c)) - high);
    return kp_dscaled(y, k);
}""",
    "kp_dexp": """
double kp_dexp(double x) {
    if (kp_disnan(x)) return x;
    if (x > 709.782712893383973096lf) return kp_dinf();
    if (x < -745.133219101941108420lf) return 0.0lf;
    double k = kp_rint_double(x * 1.44269504088896338700lf);
    precise double high = x - k * 6.93147180369123816490e-01lf, low = k * 1.90821492927058770002e-10lf;
    return kp_dexp_of(high, low, int(k));
}""",
    "kp_dexp2": """
double kp_dexp2(double x) {
    if (kp_disnan(x)) return x;
    if (x >= 1024.0lf) return kp_dinf();
    if (x < -1075.0lf) return 0.0lf;
    double k = kp_rint_double(x);
    return kp_dexp_of((x - k) * 6.93147180559945309417e-01lf, 0.0lf, int(k));
}""",
    # x = 2^k m, with m from sqrt(1/2) to sqrt(2), for x > 0 and finite.
    "kp_dsplit": """
double kp_dsplit(double x, out int k) {
    uvec2 bits = unpackDouble2x32(x);
    k = -1023;
    if (bits.y < 0x00100000u) {  // by bits: devices may take subnormals for 0
        bits = unpackDouble2x32(double(bits.y) * 4294967296.0lf + double(bits.x));
        k -= 1074;
    }
    k += int(bits.y >> 20);
    bits.y = (bits.y & 0x000FFFFFu) | 0x3FF00000u;
    double m = packDouble2x32(bits);
    if (m > 1.4142135623730951lf) { m *= 0.5lf; ++k; }
    return m;
}""",
    "kp_dlog_of": """
double kp_dlog_of(double m, double k) {
    precise double f = m - 1.0lf;
    double s = f / (2.0lf + f), z = s * s, w = z * z;
    double r = w * (3.999999999940941908e-01lf + w * (2.222219843214978396e-01lf
        + w * 1.531383769920937332e-01lf)) + z * (6.666666666666735130e-01lf
        + w * (2.857142874366239149e-01lf + w * (1.818357216161805012e-01lf
        + w * 1.479819860511658591e-01lf)));
    precise double h = 0.5lf * f * f;
    precise double y = k * 6.93147180369123816490e-01lf
        - ((h - (s * (h + r) + k * 1.90821492927058770002e-10lf)) - f);
    return y;
}""",
    # The logarithms of what is not positive and finite.
    "kp_dlog_odd": """
double kp_dlog_odd(double x) {
    if (kp_iszero_double(x)) return -kp_dinf();
    return kp_disnan(x) || !kp_signbit_double(x) ? x : kp_dnan();
}""",
    "kp_dlog_plain": """
bool kp_dlog_plain(double x) {
    uvec2 bits = unpackDouble2x32(x);
    return bits.y < 0x7FF00000u && (bits.y | bits.x) != 0u;
}""",
    "kp_dlog": """
double kp_dlog(double x) {
    if (!kp_dlog_plain(x)) return kp_dlog_odd(x);
    int k;
    double m = kp_dsplit(x, k);
    return kp_dlog_of(m, double(k));
}""",
    "kp_dlog2": """
double kp_dlog2(double x) {
    if (!kp_dlog_plain(x)) return kp_dlog_odd(x);
    int k;
    double m = kp_dsplit(x, k);
    return double(k) + kp_dlog_of(m, 0.0lf) * 1.44269504088896338700lf;
}""",
    "kp_dlog10": """
double kp_dlog10(double x) {
    if (!kp_dlog_plain(x)) return kp_dlog_odd(x);
    int k;
    double m = kp_dsplit(x, k);
    if (k < 0) { ++k; m *= 0.5lf; }
    precise double z = double(k) * 3.69423907715893078616e-13lf + 4.34294481903251816668e-01lf * kp_dlog(m);
    precise double y = z + double(k) * 3.01029995663611771306e-01lf;
    return y;
}""",
    "kp_dlog1p": """
double kp_dlog1p(double x) {
    if (kp_disnan(x)) return x;
    if (x < -1.0lf) return kp_dnan();
    if (x == -1.0lf) return -kp_dinf();
    precise double u = 1.0lf + x;
    if (u == 1.0lf || x > 1.0e300lf) return u == 1.0lf ? x : kp_dlog(x);
    precise double d = u - 1.0lf;
    return kp_dlog(u) * (x / d);
}""",
    "kp_dexpm1": """
double kp_dexpm1(double x) {
    if (kp_disnan(x)) return x;
    if (x > 50.0lf) return kp_dexp(x);
    if (x < -50.0lf) return -1.0lf;
    precise double u = kp_dexp(x), d = u - 1.0lf;
    if (u == 1.0lf) return x;
    if (d == -1.0lf) return d;
    return d * (x / kp_dlog(u));
}""",
    "kp_derf": """
double kp_derf(double x) {
    double m = abs(x), y;
    if (kp_disnan(x) || kp_iszero_double(x)) return x;
    if (m < 0.84375lf) {
        double z = x * x;
double p = ((((-2.37630166566501626084e-05lf * z + -5.77027029648944159157e-03lf) * z +
        -2.84817495755985104766e-02lf) * z + -3.25042107247001499370e-01lf) * z +
        1.28379167095512558561e-01lf);
double q = (((((-3.96022827877536812320e-06lf * z + 1.32494738004321644526e-04lf) * z +
        5.08130628187576562776e-03lf) * z + 6.50222499887672944485e-02lf) * z +
        3.97917223959155352819e-01lf) * z + 1.0lf);
        // An eighth of eight times the sum: a part of the least normal numbers is not, and may count as 0.
        if (m < 3.7252902984619140625e-09lf)
            return 0.125lf * (8.0lf * x + 1.02703333676410069053e+00lf * x);
        return x + x * (p / q);
    }
    if (m < 1.25lf) {
        double s = m - 1.0lf;
double p = ((((((-2.16637559486879084300e-03lf * s + 3.54783043256182359371e-02lf) * s +
        -1.10894694282396677476e-01lf) * s + 3.18346619901161753674e-01lf) * s +
        -3.72207876035701323847e-01lf) * s + 4.14856118683748331666e-01lf) * s +
        -2.36211856075265944077e-03lf);
double q = ((((((1.19844998467991074170e-02lf * s + 1.36370839120290507362e-02lf) * s +
        1.26171219808761642112e-01lf) * s + 7.18286544141962662868e-02lf) * s +
        5.40397917702171048937e-01lf) * s + 1.06420880400844228286e-01lf) * s + 1.0lf);
        return kp_dsigned(8.45062911510467529297e-01lf + p / q, x);
    }
    if (m >= 6.0lf) return kp_dsigned(1.0lf, x);
    double s = 1.0lf / (m * m), p, q;
    if (m < 2.857142857142857lf) {
p = (((((((-9.81432934416914548592e+00lf * s + -8.12874355063065934246e+01lf) * s +
        -1.84605092906711035994e+02lf) * s + -1.62396669462573470355e+02lf) * s +
        -6.23753324503260060396e+01lf) * s + -1.05586262253232909814e+01lf) * s +
        -6.93858572707181764372e-01lf) * s + -9.86494403484714822705e-03lf);
q = ((((((((-6.04244152148580987438e-02lf * s + 6.57024977031928170135e+00lf) * s +
        1.08635005541779435134e+02lf) * s + 4.29008140027567833386e+02lf) * s +
        6.45387271733267880336e+02lf) * s + 4.34565877475229228821e+02lf) * s +
        1.37657754143519042600e+02lf) * s + 1.96512716674392571292e+01lf) * s + 1.0lf);
    } else {
p = ((((((-4.83519191608651397019e+02lf * s + -1.02509513161107724954e+03lf) * s +
        -6.37566443368389627722e+02lf) * s + -1.60636384855821916062e+02lf) * s +
        -1.77579549177547519889e+01lf) * s + -7.99283237680523006574e-01lf) * s +
        -9.86494292470009928597e-03lf);
q = (((((((-2.24409524465858183362e+01lf * s + 4.74528541206955367215e+02lf) * s +
        2.55305040643316442583e+03lf) * s + 3.19985821950859553908e+03lf) * s +
        1.53672958608443695994e+03lf) * s + 3.25792512996573918826e+02lf) * s +
        3.03380607434824582924e+01lf) * s + 1.0lf);
    }
    double z = packDouble2x32(uvec2(0u, unpackDouble2x32(m).y));
    precise double a = -z * z - 0.5625lf, b = (z - m) * (z + m) + p / q;
    y = 1.0lf - kp_dexp(a) * kp_dexp(b) / m;
    return kp_dsigned(y, x);
}""",
    # The bits of the largest float up to |x|, and what is left of the step to the next one: nothing, less
    # than half of it, half, or more. By bits, because drivers may cut off or take subnormals for zeros.
    "kp_dcut": """
uint kp_dcut(double x, out uint rest) {
    uvec2 u = unpackDouble2x32(x);
    uint h = u.y & 0x7FFFFFFFu, e = h >> 20;
    rest = 0u;
    if (e == 0x7FFu) return kp_disnan(x) ? 0x7FC00000u : 0x7F800000u;
    if (e > 1150u) { rest = 3u; return 0x7F7FFFFFu; }
    if (e < 873u) { rest = uint((h | u.x) != 0u); return 0u; }
    uint k = e > 896u ? 29u : 926u - e;  // bits to leave out
    h = e > 896u ? h - 0x38000000u : (h & 0xFFFFFu) | 0x100000u;
    if (k <= 32u) {
        rest = ((u.x >> (k - 1u)) & 1u) * 2u + uint(u.x << (33u - k) != 0u);
        return k == 32u ? h : (h << (32u - k)) | (u.x >> k);
    }
    rest = ((h >> (k - 33u)) & 1u) * 2u + uint((u.x | (h & ((1u << (k - 33u)) - 1u))) != 0u);
    return h >> (k - 32u);
}""",
    # The nearest float, ties to even.
    "kp_dfloat": """
float kp_dfloat(double x) {
    uint rest, m = kp_dcut(x, rest);
    return uintBitsToFloat((m + uint(rest + (m & 1u) > 2u)) | (unpackDouble2x32(x).y & 0x80000000u));
}""",
    # To odd: a rounding to fewer bits after it is right.
    "kp_dodd": """
float kp_dodd(double x) {
    uint rest, m = kp_dcut(x, rest);
    return uintBitsToFloat(m | uint(rest != 0u) | (unpackDouble2x32(x).y & 0x80000000u));
}""",
    "kp_dsinh": """
double kp_dsinh(double x) {
    double m = abs(x), y;
    if (kp_disnan(x) || m == 0.0lf) return x;
    if (m < 22.0lf) {
        double t = kp_dexpm1(m);
        y = m < 1.0lf ? 0.5lf * (2.0lf * t - t * t / (t + 1.0lf)) : 0.5lf * (t + t / (t + 1.0lf));
    } else if (m < 709.0lf) {
        y = 0.5lf * kp_dexp(m);
    } else {
        double w = kp_dexp(0.5lf * m);
        precise double half_ = 0.5lf * w, large = half_ * w;  // w * w may overflow
        y = large;
    }
    return kp_dsigned(y, x);
}""",
    "kp_dcosh": """
double kp_dcosh(double x) {
    double m = abs(x);
    if (kp_disnan(x)) return x;
    if (m < 0.34657359027997264lf) {
        double t = kp_dexpm1(m), w = 1.0lf + t;
        return 1.0lf + t * t / (w + w);
    }
    if (m < 709.0lf) {
        double t = kp_dexp(m);
        return 0.5lf * t + 0.5lf / t;
    }
    double w = kp_dexp(0.5lf * m);
    precise double half_ = 0.5lf * w, large = half_ * w;  // w * w may overflow
    return large;
}""",
    "kp_dtanh": """
double kp_dtanh(double x) {
    double m = abs(x), y;
    if (kp_disnan(x) || m == 0.0lf) return x;
    if (m >= 22.0lf) {
        y = 1.0lf;
    } else if (m >= 1.0lf) {
        y = 1.0lf - 2.0lf / (kp_dexpm1(2.0lf * m) + 2.0lf);
    } else {
        double t = kp_dexpm1(-2.0lf * m);
        y = -t / (t + 2.0lf);
    }
    return kp_dsigned(y, x);
}""",
    "kp_dasinh": """
double kp_dasinh(double x) {
    double m = abs(x), y;
    if (kp_disnan(x) || m == 0.0lf) return x;
    if (m > 1.0e9lf) y = kp_dlog(m) + 6.93147180559945309417e-01lf;
    else y = kp_dlog1p(m + m * m / (1.0lf + sqrt(m * m + 1.0lf)));
    return kp_dsigned(y, x);
}""",
    "kp_dacosh": """
double kp_dacosh(double x) {
    if (kp_disnan(x)) return x;
    if (x < 1.0lf) return kp_dnan();
    if (x > 1.0e9lf) return kp_dlog(x) + 6.93147180559945309417e-01lf;
    precise double t = x - 1.0lf;
    return kp_dlog1p(t + sqrt(2.0lf * t + t * t));
}""",
    "kp_datanh": """
double kp_datanh(double x) {
    double m = abs(x);
    if (kp_disnan(x) || m == 0.0lf) return x;
    if (m > 1.0lf) return kp_dnan();
    double y = m == 1.0lf ? kp_dinf() : 0.5lf * kp_dlog1p(2.0lf * m / (1.0lf - m));
    return kp_dsigned(y, x);
}""",
    "kp_dtwo_over_pi": """
const uint kp_dtwo_over_pi[42] = uint[](
    0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu,
    0xDEBBC561u, 0xB7246E3Au, 0x424DD2E0u, 0x06492EEAu, 0x09D1921Cu, 0xFE1DEB1Cu, 0xB129A73Eu,
    0xE88235F5u, 0x2EBB4484u, 0xE99C7026u, 0xB45F7E41u, 0x3991D639u, 0x835339F4u, 0x9C845F8Bu,
    0xBDF9283Bu, 0x1FF897FFu, 0xDE05980Fu, 0xEF2F118Bu, 0x5A0A6D1Fu, 0x6D367ECFu, 0x27CB09B7u,
    0x4F463F66u, 0x9E5FEA2Du, 0x7527BAC7u, 0xEBE5F17Bu, 0x3D0739F7u, 0x8A5292EAu, 0x6BFB5FB1u,
    0x1F8D5D08u, 0x56033046u, 0xFC7B6BABu, 0xF0CFBC20u, 0x9AF4361Du, 0xA9E39161u, 0x5EE61B08u
);""",
    # 32 bits of 2/pi from the bit `at` on; bit 0 is that of 1/2.
    "kp_dpi_bits": """
uint kp_dpi_bits(uint at) {
    uint n = at / 32u, s = at % 32u;
    uint high = kp_dtwo_over_pi[n], low = kp_dtwo_over_pi[n + 1u];
    return s == 0u ? high : (high << s) | (low >> (32u - s));
}""",
    # x minus the nearest multiple of pi/2, as a sum, and the last bits of the multiple; x is finite.
    "kp_dreduced": """
dvec2 kp_dreduced(double x, out uint quadrant) {
    double m = abs(x);
    if (m < 0.78539816339744831lf) { quadrant = 0u; return dvec2(x, 0.0lf); }
    dvec2 y;
    uint q;
    if (m < 1.0e5lf) {
        // Three parts of pi/2 with 33 bits each, so that the products are exact.
        double n = kp_rint_double(m * 6.36619772367581382433e-01lf);
        precise double r = m - n * 1.57079632673412561417lf;
        precise double w = n * 6.07710050630396597660e-11lf, r2 = r - w, e = (r - r2) - w;
        precise double w3 = n * 2.02226624879595063154e-21lf;
        precise double high = r2 + (e - w3), low = (r2 - high) + (e - w3);
        y = dvec2(high, low);
        q = uint(n);
    } else {
        uvec2 bits = unpackDouble2x32(m);
        int e = int(bits.y >> 20) - 1075;  // m = (53 bits) 2^e
        uint m1 = (bits.y & 0x000FFFFFu) | 0x00100000u, m0 = bits.x;
        // Bits of 2/pi before these give multiples of 4 quarter turns.
        uint first = uint(max(e - 2, 0));
        uint p[8];
        for (int i = 0; i < 8; ++i) p[i] = 0u;
        // p = (m1 m0) times 192 bits of 2/pi; p[0] is the lowest part.
        for (int i = 0; i < 6; ++i) {
            uint w = kp_dpi_bits(first + uint(5 - i) * 32u), high, low, carry, c;
            umulExtended(w, m0, high, low);
            p[i] = uaddCarry(p[i], low, c);
            carry = high + c;
            p[i + 1] = uaddCarry(p[i + 1], carry, c);
            if (i + 2 < 8) p[i + 2] += c;
            umulExtended(w, m1, high, low);
            p[i + 1] = uaddCarry(p[i + 1], low, c);
            carry = high + c;
            if (i + 2 < 8) {
                p[i + 2] = uaddCarry(p[i + 2], carry, c);
                if (i + 3 < 8) p[i + 3] += c;
            }
        }
        // p has the point before the bit `point`: turns above it, their fraction below.
        uint point = uint(192 - e + int(first)), word = point / 32u, shift = point % 32u;
        uint above = p[word] >> shift;
        if (shift != 0u && word + 1u < 8u) above |= p[word + 1u] << (32u - shift);
        // The 160 bits below.
        uint f[5];
        for (int i = 0; i < 5; ++i) {
            int at = int(word) - 1 - i;
            uint high = p[at + 1], low = at < 0 ? 0u : p[at];
            f[i] = shift == 0u ? low : (high << (32u - shift)) | (low >> shift);
        }
        bool up = f[0] >= 0x80000000u;
        if (up) {
            ++above;
            for (int i = 0; i < 5; ++i) f[i] = ~f[i];
        }
        q = above;
        // 96 bits from the first that is not 0: no double is closer to a multiple of pi/2 than 2^-62 of it.
        uint zeros = 0u;
        for (int turn = 0; turn < 2; ++turn)
            if (f[0] == 0u) {
                for (int i = 0; i < 4; ++i) f[i] = f[i + 1];
                f[4] = 0u;
                zeros += 32u;
            }
        double scale = kp_dbits((1023u - 32u - zeros) << 20, 0u);
        // The fraction as a sum: 48 bits, and those after them.
        double a = (double(f[0]) + double(f[1] >> 16) * 1.52587890625e-05lf) * scale;
        double b = (double(f[1] & 0xFFFFu) + double(f[2]) * 2.3283064365386963e-10lf)
            * 2.3283064365386963e-10lf * scale;
        const double half_pi = 1.5707963267948966lf, rest = 6.123233995736766e-17lf;
        precise double high = (a + b) * half_pi;
        precise double low = fma(a, half_pi, -high) + b * half_pi + a * rest;
        y = up ? -dvec2(high, low) : dvec2(high, low);
    }
    if (x < 0.0lf) { y = -y; q = 0u - q; }
    quadrant = q & 3u;
    return y;
}""",
    "kp_dsin_of": """
double kp_dsin_of(dvec2 a) {
    double x = a.x, z = x * x, v = z * x;
    double r = 8.33333333332248946124e-03lf + z * (-1.98412698298579493134e-04lf
        + z * (2.75573137070700676789e-06lf + z * (-2.50507602534068634195e-08lf
        + z * 1.58969099521155010221e-10lf)));
    precise double y = x - ((z * (0.5lf * a.y - v * r) - a.y) - v * -1.66666666666666324348e-01lf);
    return y;
}""",
    "kp_dcos_of": """
double kp_dcos_of(dvec2 a) {
    double x = a.x, z = x * x;
    double r = z * (4.16666666666666019037e-02lf + z * (-1.38888888888741095749e-03lf
        + z * (2.48015872894767294178e-05lf + z * (-2.75573143513906633035e-07lf
        + z * (2.08757232129817482790e-09lf
        + z * -1.13596475577881948265e-11lf)))));
    precise double h = 0.5lf * z, w = 1.0lf - h;
    precise double y = w + (((1.0lf - w) - h) + (z * r - x * a.y));
    return y;
}""",
    "kp_dfinite": """
bool kp_dfinite(double x) { return (unpackDouble2x32(x).y & 0x7FF00000u) != 0x7FF00000u; }""",
    "kp_dsin": """
double kp_dsin(double x) {
    if (!kp_dfinite(x)) return kp_dnan();
    if (abs(x) < 1.0e-9lf) return x;
    uint q;
    dvec2 y = kp_dreduced(x, q);
    double r = (q & 1u) != 0u ? kp_dcos_of(y) : kp_dsin_of(y);
    return (q & 2u) != 0u ? -r : r;
}""",
    "kp_dcos": """
double kp_dcos(double x) {
    if (!kp_dfinite(x)) return kp_dnan();
    uint q;
    dvec2 y = kp_dreduced(x, q);
    double r = (q & 1u) != 0u ? kp_dsin_of(y) : kp_dcos_of(y);
    return q == 1u || q == 2u ? -r : r;
}""",
    "kp_dtan": """
double kp_dtan(double x) {
    if (!kp_dfinite(x)) return kp_dnan();
    if (abs(x) < 1.0e-9lf) return x;
    uint q;
    dvec2 y = kp_dreduced(x, q);
    double s = kp_dsin_of(y), c = kp_dcos_of(y);
    return (q & 1u) != 0u ? -c / s : s / c;
}""",
    # For x from 0 on.
    "kp_datan_of": """
double kp_datan_of(double x) {
    double high = 0.0lf, low = 0.0lf;
    if (x > 1.0e17lf) return 1.57079632679489655800lf;
    if (x >= 2.4375lf) { high = 1.57079632679489655800lf; low = 6.12323399573676603587e-17lf; x = -1.0lf /
        x; }
    else if (x >= 1.1875lf) { high = 9.82793723247329054082e-01lf; low = 1.39033110312309984516e-17lf;
        x = (x - 1.5lf) / (1.0lf + 1.5lf * x); }
    else if (x >= 0.6875lf) { high = 7.85398163397448278999e-01lf; low = 3.06161699786838301793e-17lf;
        x = (x - 1.0lf) / (x + 1.0lf); }
    else if (x >= 0.4375lf) { high = 4.63647609000806093515e-01lf; low = 2.26987774529616870924e-17lf;
        x = (2.0lf * x - 1.0lf) / (2.0lf + x); }
    double z = x * x, w = z * z;
    double s = z * (3.33333333333329318027e-01lf + w * (1.42857142725034663711e-01lf
        + w * (9.09088713343650656196e-02lf + w * (6.66107313738753120669e-02lf
        + w * (4.97687799461593236017e-02lf
        + w * 1.62858201153657823623e-02lf)))));
    double t = w * (-1.99999999998764832476e-01lf + w * (-1.11111104054623557880e-01lf
        + w * (-7.69187620504482999495e-02lf + w * (-5.83357013379057348645e-02lf
        + w * -3.65315727442169155270e-02lf))));
    precise double y = high - ((x * (s + t) - low) - x);
    return y;
}""",
    "kp_datan": """
double kp_datan(double x) {
    if (kp_disnan(x) || abs(x) < 1.0e-9lf) return x;
    return kp_dsigned(kp_datan_of(abs(x)), x);
}""",
    "kp_datan2": """
double kp_datan2(double y, double x) {
    if (kp_disnan(x) || kp_disnan(y)) return kp_dnan();
    double a = abs(y), b = abs(x), r;
    bool left = (unpackDouble2x32(x).y & 0x80000000u) != 0u;
    if (a == 0.0lf) r = 0.0lf;
    else if (b == 0.0lf) r = 1.57079632679489655800lf;
    else if (!kp_dfinite(a)) r = kp_dfinite(b) ? 1.57079632679489655800lf : 7.85398163397448278999e-01lf;
    else if (!kp_dfinite(b)) r = 0.0lf;
    else {
        // Scaled, so that the quotient's parts neither overflow nor vanish.
        double m = max(a, b);
        if (m > 1.0e300lf) { a *= 1.0e-10lf; b *= 1.0e-10lf; }
        else if (m < 1.0e-290lf) { a *= 1.0e30lf; b *= 1.0e30lf; }
        r = kp_datan_of(a / b);
    }
    if (left) {
        precise double turned = 3.14159265358979311600lf - (r - 1.22464679914735317723e-16lf);
        r = turned;
    }
    return kp_dsigned(r, y);
}""",
    "kp_dasin": """
double kp_dasin(double x) {
    if (kp_disnan(x) || abs(x) < 1.0e-9lf) return x;
    if (abs(x) > 1.0lf) return kp_dnan();
    return kp_datan2(x, sqrt((1.0lf - x) * (1.0lf + x)));
}""",
    "kp_dacos": """
double kp_dacos(double x) {
    if (kp_disnan(x)) return x;
    if (abs(x) > 1.0lf) return kp_dnan();
    return kp_datan2(sqrt((1.0lf - x) * (1.0lf + x)), x);
}""",
    "kp_dhypot": """
double kp_dhypot(double x, double y) {
    double a = max(abs(x), abs(y)), b = min(abs(x), abs(y));
    if (!kp_dfinite(x) || !kp_dfinite(y)) {
        bool any_ = (!kp_dfinite(x) && !kp_disnan(x)) || (!kp_dfinite(y) && !kp_disnan(y));
        return any_ ? kp_dinf() : kp_dnan();
    }
    if (b == 0.0lf) return a;
    double scale = a > 1.0e150lf ? 1.0e-160lf : a < 1.0e-140lf ? 1.0e160lf : 1.0lf;
    a *= scale;
    b *= scale;
    return sqrt(a * a + b * b) / scale;
}""",
    "kp_dlogaddexp": """
double kp_dlogaddexp(double x, double y) {
    if (kp_disnan(x) || kp_disnan(y)) return kp_dnan();
    if (x == y) return x + 6.93147180559945309417e-01lf;
    return max(x, y) + kp_dlog1p(kp_dexp(-abs(x - y)));
}""",
    "kp_dcbrt": """
double kp_dcbrt(double x) {
    if (!kp_dfinite(x) || kp_iszero_double(x)) return x;
    int k;
    double m = kp_dsplit(abs(x), k), third = kp_floor_double(double(k) / 3.0lf);
    m *= kp_dbits(uint(k - int(third) * 3 + 1023) << 20, 0u);
    double t = kp_dexp(kp_dlog(m) / 3.0lf);
    t -= (t * t * t - m) / (3.0lf * t * t);
    return kp_dsigned(kp_dscaled(t, int(third)), x);
}""",
}
"""By name."""
