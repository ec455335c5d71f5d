"""Integers of HLSL: shifts count their amount modulo the bits, remainders have the dividend's sign."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import COMPILERS, dxc_is_old, needs_dxc

HEAD = "RWStructuredBuffer<int> a : register(u0); cbuffer C : register(b1) { int n; uint u; };\n"
MAIN = "[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { uint i = id.x; "


def source(body, before=""):
    return f"{HEAD}{before}\n{MAIN}{body} a[63] = n + u; }}"


def run(mgr, code, n=0, u=0, **options):
    return called(mgr.kernel(code, **options), n, u)


def called(kernel, n=0, u=0):
    constants = np.array([(n, u)], [("n", np.int32), ("u", np.uint32)])
    return kernel(a=np.zeros(64, np.int32), C=constants, groups=1)


def signed(number):
    return int(np.uint32(number & 0xFFFFFFFF).view(np.int32))


@pytest.mark.parametrize("optimize", ["none", "performance"])
@needs_dxc
def test_amounts_of_shifts(mgr, optimize):
    body = (
        "a[0] = n << 33; a[1] = u >> 33; a[2] = n >> 40; uint s = 35; a[3] = n << s; int x = n; x <<= 34; "
        "a[4] = x; "
        "a[5] = (int2(n, n) << int2(32, 33)).y; for (uint k = 0; k < 40; k += 13) a[6 + k / 13] = n << k;"
        "a[10] = n << -1; a[11] = 1u << u; a[12] = (uint2(1, 3) << u).y; a[13] = sh(n, 36);"
    )
    n, u = -5, 4000000037  # & 31 is 5
    got = run(
        mgr, source(body, "int sh(int x, int k) { return x << k; }"), n, u, language="hlsl", compiler="dxc",
        optimize=optimize,
    )  # fmt: skip
    want = [
        n << 1, u >> 1, n >> 8, n << 3, n << 2, n << 1, n, n << 13, n << 26, n << 7, n << 31, 1 << 5, 3 << 5,
        n << 4,
    ]  # fmt: skip
    assert got[: len(want)].tolist() == [signed(each) for each in want]


@needs_dxc
@pytest.mark.parametrize("amount", [31, 32, 37, 64])
def test_amounts_that_are_known_at_run_time_alone(mgr, amount):
    code = source("a[0] = n << u; a[1] = n >> u; a[2] = u >> (u + 1); a[3] = (int2(7, n) << int2(u, 2)).x;")
    got = run(mgr, code, -1234567, amount, language="hlsl", compiler="dxc")
    k = amount & 31
    want = [-1234567 << k, -1234567 >> k, amount >> ((amount + 1) & 31), 7 << k]
    assert got[:4].tolist() == [signed(each) for each in want]


@needs_dxc
def test_shifts_by_specialization_constants(mgr):
    code = "[[vk::constant_id(0)]] const uint K = 33;\n" + source("a[0] = n << K;")
    kernel = mgr.kernel(code, language="hlsl", compiler="dxc")
    assert called(kernel, 3)[0] == 6
    assert called(kernel.specialize(K=36), 3)[0] == 48


FOLDED = {
    "uint f = 5; a[0] = f >> 35;": ("", 0),
    "a[0] = (uint2(3, 4) << uint2(32, 33)).y;": ("", 8),
    "a[0] = int((ONE << 36) >> 34);": ("#define ONE 1ull", 4),
    "a[0] = int((1ll << 40) >> 39);": ("", 2),
}


@needs_dxc
@pytest.mark.parametrize("body", FOLDED)
def test_shifts_of_constants(mgr, body):
    before, want = FOLDED[body]
    assert run(mgr, source(body, before), language="hlsl", compiler="dxc")[0] == want


@pytest.mark.own_driver
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "body",
    [
        "a[0] = n << 31;", "for (uint s = 0; s < 32; s += 4) a[s] = n >> s;",
        "a[0] = (u << i) | (u >> (32 - i));", "uint s = 64; a[0] = n << (s & 31);", "a[0] = n >> a[1];",
    ],
)  # fmt: skip
def test_shifts_that_are_right_are_taken(compiler, body):
    assert kp.compile(source(body), language="hlsl", compiler=compiler)


NEGATIVE = {  # remainders of what may be folded, and what they are
    "a[0] = wrap(-7, 3);": ("int wrap(int a, int n) { return a % n; }", -1),
    "a[0] = wrap(7, -3);": ("int wrap(int a, int n) { return a % n; }", 1),
    "int z = -7; a[0] = z % 3;": ("", -1),
    "int z = 5; z -= 9; a[0] = z % 3;": ("", -1),
    "int z = 5; a[0] = (3 - z) % 3;": ("", -2),
    "int z = n == 0 ? -1 : -2; a[0] = z % 3;": ("", -1),
    "a[0] = f(3) % 4;": ("int f(int x) { return x - 5; }", -2),
    "S s; s.m = -7; a[0] = s.m % 3;": ("struct S { int m; };", -1),
    "int t[2] = { -7, 3 }; a[0] = t[0] % t[1];": ("", -1),
    "int k = -7; a[0] = M(k, 3);": ("#define M(a, b) ((a) % (b))", -1),
    "int z; g(z); a[0] = z % 3;": ("void g(out int r) { r = -7; }", -1),
    "[unroll] for (int k = -3; k < 2; k++) a[0] += k % 3;": ("", -2),
    "int x = n; x = x * 0 - 7; a[0] = x % 3;": ("", -1),
    "int z = asint(0xfffffff9u); a[0] = z % 3;": ("", -1),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("body", NEGATIVE)
def test_remainders_of_negative_constants(mgr, compiler, body):
    before, want = NEGATIVE[body]
    code = source(body, before)
    assert run(mgr, code, language="hlsl", compiler=compiler)[0] == want


POSITIVE = {
    "a[0] = n % 3;": -2,
    "a[0] = (n - 4) % 5;": -2,
    "int z = n; z -= 5; a[0] = z % 3;": -1,
    "a[0] = 7 % int(u);": 1,
    "for (int k = 0; k < 5; k++) a[0] += k % 3;": 4,
    "int o; InterlockedAdd(a[1], 1, o); a[0] = (o - 5) % 3;": -2,
    "const int c = -7; a[0] = c % 3;": -1,
    "int k = n + 100; while (k > 0) { a[0] += k % 10; k /= 10; }": 11,
    "uint s = i + 7; s ^= s << 13; a[0] = int(s % 100);": (7 ^ 7 << 13) % 100,
    "a[0] = wrap(n, 3);": -2,
    "a[0] = odd(9u, 4);": 1,
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("body", POSITIVE)
def test_remainders_that_cannot_be_folded_wrongly_are_taken(mgr, compiler, body):
    before = "".join(
        text
        for name, text in (
            ("wrap", "int wrap(int a, int m) { return a % m; }"),
            ("odd", "uint odd(uint a, uint m) { return a % m; }"),
        )
        if name in body
    )
    assert run(mgr, source(body, before), -8, 3, language="hlsl", compiler=compiler)[0] == POSITIVE[body]


def _bits(x):
    size = 8 * x.dtype.itemsize
    return [format(int(value) & ((1 << size) - 1), f"0{size}b") for value in x]


INTRINSICS = {  # of x and y, which is x in reverse
    "abs(x)": np.abs,
    "min(x, y)": lambda x: np.minimum(x, x[::-1]),
    "max(x, y)": lambda x: np.maximum(x, x[::-1]),
    "clamp(x, (T)3, (T)100)": lambda x: np.clip(x, 3, 100),
    "x << (T)5": lambda x: x << x.dtype.type(5),
    "x >> (T)5": lambda x: x >> x.dtype.type(5),
    "x % (T)7": lambda x: np.fmod(x, x.dtype.type(7)),
    "(T)((T)1 << (x * 0 + (T)9))": lambda x: np.full_like(x, 512),
    "x * y + ~x - (-y)": lambda x: x * x[::-1] + ~x + x[::-1],
    "sign(x)": np.sign,
    "countbits(x)": lambda x: [each.count("1") for each in _bits(x)],
    "reversebits(x)": lambda x: [int(each[::-1], 2) for each in _bits(x)],
    "firstbitlow(x)": lambda x: [len(each) - 1 - each.rfind("1") if "1" in each else -1 for each in _bits(x)],
    "firstbithigh(x)": lambda x: [(~int(v) if v < 0 else int(v)).bit_length() - 1 for v in x],
}


@pytest.mark.parametrize("language", ["hlsl", "slang"])
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_every_intrinsic_is_right_or_refused(mgr, needs, language, bits, kind):
    for feature in {16: ("shaderInt16", "storageBuffer16BitAccess"), 64: ("shaderInt64",)}.get(bits, ()):
        needs(mgr, feature)
    scalar = kind if bits == 32 else f"{kind}{bits}_t"
    dtype = np.dtype(f"{kind}{bits}")
    info = np.iinfo(dtype)
    x = np.array([1, 2, 3, 5, info.max, info.min, info.max // 2 + 1, *range(info.max - 9, info.max)], dtype)
    x = x if bits < 64 else x[x != 0]  # of 0 Slang gives the -1 of 32 bits
    refused = set()
    for call, meant in INTRINSICS.items():
        for size in (1, 3):
            form = scalar if size == 1 else f"vector<{scalar}, 3>"
            source = f"""#define T {form}
StructuredBuffer<{scalar}> a, b; RWStructuredBuffer<{scalar}> o;
[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{
    T x = (T)a[id.x], y = (T)b[id.x], r = (T)({call});
    o[id.x] = r{".z" if size == 3 else ""};
}}"""
            options = {"hlsl_16bit_types": bits == 16} if language == "hlsl" else {}
            try:
                kernel = mgr.kernel(source, language=language, **options)
            except kp.UnimplementedError:  # Slang's sign of uint needs 64 bits
                continue
            except kp.ShaderCompileError as error:
                bitwise = call.startswith(("sign", "countbits", "reversebits", "firstbit"))
                assert "wrong numbers" in str(error) or bitwise, error
                refused.add(call)
                continue
            got = kernel(x, x[::-1].copy(), np.zeros_like(x), groups=len(x))
            with np.errstate(all="ignore"):
                want = np.array(meant(x), object) % (1 << bits)
            assert (got.astype(object) % (1 << bits) == want).all(), (call, size)
    assert ("abs(x)" in refused) == (kind == "uint")
    if bits == 32:
        old = language == "hlsl" and dxc_is_old()
        assert refused <= {"abs(x)", "sign(x)", *(["firstbithigh(x)"] if old else [])}
