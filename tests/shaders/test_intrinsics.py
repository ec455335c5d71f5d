"""Slang's intrinsics, over its scalar and vector types, against NumPy; what it compiles to other numbers is
refused by name.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import needs_slang
from tests.support.sampling import sampled

pytestmark = needs_slang

TYPES = {
    "int16": "int16_t", "uint16": "uint16_t", "int32": "int", "uint32": "uint", "int64": "int64_t",
    "uint64": "uint64_t", "float16": "half", "float32": "float", "float64": "double",
}  # fmt: skip
N = 32


def bits(x):
    return x.dtype.itemsize * 8


def unsigned(x):
    return x.view(f"u{x.dtype.itemsize}")


def each(function):
    """By elements, of Python's numbers; what it gives counts modulo the dtype."""
    return lambda x, y: np.array(
        [function(int(v), bits(x)) & (1 << bits(x)) - 1 for v in unsigned(x)], unsigned(x).dtype
    ).view(x.dtype)


def highest(x, _):
    v = [~int(each) if each < 0 else int(each) for each in x]
    return np.array([each.bit_length() - 1 for each in v], np.int64).astype(x.dtype)


# Code with x and y of the type T, the same of arrays, and the kinds and widths that it is for.
INTEGERS = [
    ("abs(x)", lambda x, y: np.abs(x), "i", (16, 32, 64)),
    ("min(x, y)", np.minimum, "iu", (16, 32, 64)),
    ("max(x, y)", np.maximum, "iu", (16, 32, 64)),
    (
        "clamp(x, min(x, y), y)",
        lambda x, y: np.minimum(np.maximum(x, np.minimum(x, y)), y),
        "iu",
        (16, 32, 64),
    ),
    ("T(sign(x))", lambda x, y: np.sign(x), "i", (16, 32, 64)),
    ("T(countbits(x))", each(lambda v, n: v.bit_count()), "u", (16, 32)),
    ("T(countbits(x))", each(lambda v, n: v.bit_count()), "i", (32,)),
    ("reversebits(x)", each(lambda v, n: int(format(v, f"0{n}b")[::-1], 2)), "iu", (32,)),
    ("T(firstbitlow(x))", each(lambda v, n: (v & -v).bit_length() - 1), "iu", (32,)),
    ("T(firstbithigh(x))", highest, "iu", (32,)),
    ("x * y - y", lambda x, y: x * y - y, "iu", (16, 32, 64)),
    ("x << (y & T(7))", lambda x, y: x << (y & x.dtype.type(7)), "iu", (16, 32, 64)),
    ("x >> (y & T(7))", lambda x, y: x >> (y & x.dtype.type(7)), "iu", (16, 32, 64)),
    ("(x & y) ^ (x | ~y)", lambda x, y: (x & y) ^ (x | ~y), "iu", (16, 32, 64)),
]
ALL, NO_DOUBLE, SINGLE = (16, 32, 64), (16, 32), (32,)
FLOATS = [
    ("abs(x)", lambda x, y: np.abs(x), ALL),
    ("min(x, y)", np.minimum, ALL),
    ("max(x, y)", np.maximum, ALL),
    ("T(sign(x))", lambda x, y: np.sign(x), ALL),
    ("floor(x)", lambda x, y: np.floor(x), ALL),
    ("ceil(x)", lambda x, y: np.ceil(x), ALL),
    ("trunc(x)", lambda x, y: np.trunc(x), ALL),
    ("round(x)", lambda x, y: np.rint(x), ALL),
    ("frac(x)", lambda x, y: x - np.floor(x), ALL),
    ("sqrt(abs(x))", lambda x, y: np.sqrt(np.abs(x)), ALL),
    ("rsqrt(y)", lambda x, y: 1 / np.sqrt(y), ALL),
    ("rcp(y)", lambda x, y: 1 / y, ALL),
    ("saturate(x)", lambda x, y: np.clip(x, 0, 1), ALL),
    ("lerp(x, y, T(0.25))", lambda x, y: x + (y - x) / 4, ALL),
    ("step(x, y)", lambda x, y: y >= x, ALL),
    ("mad(x, y, x)", lambda x, y: x * y + x, ALL),
    ("fmod(x, y)", np.fmod, ALL),
    ("smoothstep(T(0), T(8), x)", lambda x, y: (t := np.clip(x / 8, 0, 1)) * t * (3 - 2 * t), ALL),
    ("degrees(x)", lambda x, y: np.degrees(x), NO_DOUBLE),
    ("radians(x)", lambda x, y: np.radians(x), NO_DOUBLE),
    ("exp(x / T(8))", lambda x, y: np.exp(x / 8), NO_DOUBLE),
    ("exp2(x / T(8))", lambda x, y: np.exp2(x / 8), NO_DOUBLE),
    ("log(y)", lambda x, y: np.log(y), NO_DOUBLE),
    ("log2(y)", lambda x, y: np.log2(y), NO_DOUBLE),
    ("log10(y)", lambda x, y: np.log10(y), NO_DOUBLE),
    ("pow(y, T(0.5))", lambda x, y: y**0.5, NO_DOUBLE),
    ("sin(x)", lambda x, y: np.sin(x), NO_DOUBLE),
    ("cos(x)", lambda x, y: np.cos(x), NO_DOUBLE),
    ("tan(x / T(8))", lambda x, y: np.tan(x / 8), NO_DOUBLE),
    ("asin(saturate(x))", lambda x, y: np.arcsin(np.clip(x, 0, 1)), NO_DOUBLE),
    ("acos(saturate(x))", lambda x, y: np.arccos(np.clip(x, 0, 1)), NO_DOUBLE),
    ("atan(x)", lambda x, y: np.arctan(x), NO_DOUBLE),
    ("atan2(x, y)", np.arctan2, NO_DOUBLE),
    ("sinh(x / T(8))", lambda x, y: np.sinh(x / 8), NO_DOUBLE),
    ("cosh(x / T(8))", lambda x, y: np.cosh(x / 8), NO_DOUBLE),
    ("tanh(x)", lambda x, y: np.tanh(x), NO_DOUBLE),
    ("ldexp(x, T(3))", lambda x, y: x * 8, SINGLE),
]


def operands(dtype):
    random = np.random.default_rng(5)
    if dtype.kind == "f":
        x, y = random.uniform(-8, 8, N).astype(dtype), random.uniform(1, 8, N).astype(dtype)
        x[:4] = 0, 2.5, -2.5, 8
        return x, y
    info = np.iinfo(dtype)
    x, y = (random.integers(info.min, info.max, N, dtype, endpoint=True) for _ in range(2))
    x[:5] = 0, 1, info.max, info.min, info.max - 1
    return x, y


@pytest.mark.parametrize("width", sampled([1, 3], [1, 2, 3, 4]))
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.sampled
def test_intrinsics(mgr, needs, name, width):
    needs(mgr, "dispatch")
    dtype = np.dtype(name)
    size = dtype.itemsize * 8
    kind = TYPES[name]
    table = (
        [(code, function) for code, function, widths in FLOATS if size in widths]
        if dtype.kind == "f"
        else [
            (code, function)
            for code, function, kinds, widths in INTEGERS
            if dtype.kind in kinds and size in widths
        ]
    )
    vector = f"vector<{kind}, {width}>" if width > 1 else kind
    loaded = {n: f"T({', '.join(f'{n}s[i * {width} + {c}]' for c in range(width))})" for n in "xy"}
    stores = "".join(
        f"{{ T r = T({code}); "
        + "".join(f"o[{place * N} + i * {width} + {c}] = r{f'[{c}]' * (width > 1)}; " for c in range(width))
        + "}\n"
        for place, (code, _) in enumerate(table)
    )
    source = f"""
StructuredBuffer<{kind}> xs; StructuredBuffer<{kind}> ys; RWStructuredBuffer<{kind}> o;
typealias T = {vector};
[shader("compute")] [numthreads({N // width}, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {{
    uint i = t.x; T x = {loaded["x"]}, y = {loaded["y"]};
{stores} }}"""
    x, y = operands(dtype)
    try:
        kernel = mgr.kernel(source, language="slang")
    except kp.UnimplementedError as error:
        pytest.skip(str(error))  # the device lacks the type
    out = kernel(x, y, np.zeros(N * len(table), dtype), groups=1).reshape(len(table), N)
    used = N // width * width
    tolerance = 0 if dtype.kind != "f" else {16: 4e-3, 32: 2e-4, 64: 1e-13}[size]
    for (code, function), got in zip(table, out, strict=True):
        with np.errstate(all="ignore"):
            wanted = np.asarray(function(x, y)).astype(dtype)
        np.testing.assert_allclose(got[:used], wanted[:used], tolerance, tolerance, err_msg=code)


@pytest.mark.parametrize("kind", ["uint16_t", "uint", "uint64_t", "uint3"])
def test_abs_of_unsigned_numbers_is_refused(kind):
    with pytest.raises(
        kp.ShaderCompileError, match="abs of an unsigned integer is computed as of a signed one"
    ):
        compiled("abs(x[0])", kind)


def test_mad_of_integers_is_named_as_slangs_fault():
    with pytest.raises(kp.ShaderCompileError, match=r"a fault of the compiler, .* Fma"):
        compiled("mad(x[0], x[1], x[2])", "int")


@pytest.mark.parametrize("kind", ["int16_t", "int16_t2"])
def test_countbits_of_small_signed_numbers_is_refused(kind):
    with pytest.raises(kp.ShaderCompileError, match="countbits of an int16_t counts its sign"):
        compiled("countbits(x[0])", kind)
    compiled("countbits((uint16_t)x[0].x)", kind)
    compiled("countbits((int)x[0].x)", kind)


def compiled(code, kind):
    return kp.compile(
        f"RWStructuredBuffer<{kind}> x;\n"
        f'[shader("compute")] [numthreads(1, 1, 1)] void main() {{ x[0] = ({kind}){code}; }}',
        language="slang",
    )


@pytest.mark.parametrize("code", ["(ONE << 36) >> 36", "1ll << 40", "int64_t(1) << 40", "(K << s) >> s"])
def test_shifts_of_64_bits(mgr, needs, code):
    needs(mgr, "dispatch")
    if "shaderInt64" not in mgr.enabled_features:
        pytest.skip("the device has no integers of 64 bits")
    kernel = mgr.kernel(
        f"""#define ONE 1ull
static const int64_t K = 1;
Optional<Optional<uint>> closing() {{ return none; }}
StructuredBuffer<uint> x; RWStructuredBuffer<uint64_t> o;
[shader("compute")] [numthreads(1, 1, 1)] void main() {{ uint s = x[0]; o[0] = uint64_t({code}); }}""",
        language="slang",
    )
    expected = 1 << 40 if code.endswith("40") else 1
    assert kernel(np.array([36], np.uint32), np.zeros(1, np.uint64), groups=1)[0] == expected


@pytest.mark.parametrize("code", ["(1l << 40)", "(1u << 32)", "int64_t(0x1ul << 33u)"])
def test_shifts_beyond_32_bits_are_refused(code):
    with pytest.raises(kp.ShaderCompileError, match=r"is 0 in Slang.*write ll or ull"):
        compiled(code, "int64_t")
    fine = "(1ull << 40) + (1 << 31) + ((int64_t)1l << 40) + (x[0] * 1u << 40) // 1l << 40\n"
    compiled(fine, "int64_t")
