"""Intrinsics of HLSL, through DXC, and of Slang, over their scalar, vector and matrix types, against NumPy;
what a compiler makes other numbers of is refused by name. HLSL's integers: test_hlsl_integers.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import COMPILERS, dxc_is_old, needs_dxc, needs_slang
from tests.support.sampling import sampled

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
    ("(T)sign(x)", lambda x, y: np.sign(x), "i", (16, 32, 64)),
    ("(T)countbits(x)", each(lambda v, n: v.bit_count()), "u", (16, 32)),
    ("(T)countbits(x)", each(lambda v, n: v.bit_count()), "i", (32,)),
    ("reversebits(x)", each(lambda v, n: int(format(v, f"0{n}b")[::-1], 2)), "iu", (32,)),
    ("(T)firstbitlow(x)", each(lambda v, n: (v & -v).bit_length() - 1), "iu", (32,)),
    ("(T)firstbithigh(x)", highest, "iu", (32,)),
    ("x * y - y", lambda x, y: x * y - y, "iu", (16, 32, 64)),
    ("x << (y & (T)7)", lambda x, y: x << (y & x.dtype.type(7)), "iu", (16, 32, 64)),
    ("x >> (y & (T)7)", lambda x, y: x >> (y & x.dtype.type(7)), "iu", (16, 32, 64)),
    ("(x & y) ^ (x | ~y)", lambda x, y: (x & y) ^ (x | ~y), "iu", (16, 32, 64)),
]
ALL, NO_DOUBLE, SINGLE = (16, 32, 64), (16, 32), (32,)
FLOATS = [
    ("abs(x)", lambda x, y: np.abs(x), ALL),
    ("min(x, y)", np.minimum, ALL),
    ("max(x, y)", np.maximum, ALL),
    ("(T)sign(x)", lambda x, y: np.sign(x), ALL),
    ("floor(x)", lambda x, y: np.floor(x), ALL),
    ("ceil(x)", lambda x, y: np.ceil(x), ALL),
    ("trunc(x)", lambda x, y: np.trunc(x), ALL),
    ("round(x)", lambda x, y: np.rint(x), ALL),
    ("frac(x)", lambda x, y: x - np.floor(x), ALL),
    ("sqrt(abs(x))", lambda x, y: np.sqrt(np.abs(x)), ALL),
    ("rsqrt(y)", lambda x, y: 1 / np.sqrt(y), ALL),
    ("rcp(y)", lambda x, y: 1 / y, ALL),
    ("saturate(x)", lambda x, y: np.clip(x, 0, 1), ALL),
    ("lerp(x, y, (T)0.25)", lambda x, y: x + (y - x) / 4, ALL),
    ("step(x, y)", lambda x, y: y >= x, ALL),
    ("mad(x, y, x)", lambda x, y: x * y + x, ALL),
    ("fmod(x, y)", np.fmod, ALL),
    ("smoothstep((T)0, (T)8, x)", lambda x, y: (t := np.clip(x / 8, 0, 1)) * t * (3 - 2 * t), ALL),
    ("degrees(x)", lambda x, y: np.degrees(x), NO_DOUBLE),
    ("radians(x)", lambda x, y: np.radians(x), NO_DOUBLE),
    ("exp(x / (T)8)", lambda x, y: np.exp(x / 8), NO_DOUBLE),
    ("exp2(x / (T)8)", lambda x, y: np.exp2(x / 8), NO_DOUBLE),
    ("log(y)", lambda x, y: np.log(y), NO_DOUBLE),
    ("log2(y)", lambda x, y: np.log2(y), NO_DOUBLE),
    ("log10(y)", lambda x, y: np.log10(y), NO_DOUBLE),
    ("pow(y, (T)0.5)", lambda x, y: y**0.5, NO_DOUBLE),
    ("sin(x)", lambda x, y: np.sin(x), NO_DOUBLE),
    ("cos(x)", lambda x, y: np.cos(x), NO_DOUBLE),
    ("tan(x / (T)8)", lambda x, y: np.tan(x / 8), NO_DOUBLE),
    ("asin(saturate(x))", lambda x, y: np.arcsin(np.clip(x, 0, 1)), NO_DOUBLE),
    ("acos(saturate(x))", lambda x, y: np.arccos(np.clip(x, 0, 1)), NO_DOUBLE),
    ("atan(x)", lambda x, y: np.arctan(x), NO_DOUBLE),
    ("atan2(x, y)", np.arctan2, NO_DOUBLE),
    ("sinh(x / (T)8)", lambda x, y: np.sinh(x / 8), NO_DOUBLE),
    ("cosh(x / (T)8)", lambda x, y: np.cosh(x / 8), NO_DOUBLE),
    ("tanh(x)", lambda x, y: np.tanh(x), NO_DOUBLE),
    ("ldexp(x, (T)3)", lambda x, y: x * 8, SINGLE),
    ("clamp(x, (T)-2, y)", lambda x, y: np.clip(x, -2, y), ALL),
    ("sines(x)", lambda x, y: np.sin(x) + 2 * np.cos(x), NO_DOUBLE),
    ("split(x)", lambda x, y: x - np.trunc(x) + 8 * np.trunc(x), SINGLE),
    ("parts(y)", lambda x, y: np.frexp(y)[0] + 4 * np.frexp(y)[1], SINGLE),
    ("(T)isnan(z)", lambda x, y: np.isnan(special(x)), NO_DOUBLE),
    ("(T)isinf(z)", lambda x, y: np.isinf(special(x)), NO_DOUBLE),
    ("(T)isfinite(z)", lambda x, y: np.isfinite(special(x)), NO_DOUBLE),
    ("asfloat(asuint(x) ^ 0x80000000u)", lambda x, y: -x, SINGLE),
    ("asfloat(asint(x))", lambda x, y: x, SINGLE),
    # Doubled as bits between: Mesa 26.1 takes the two conversions together for none.
    ("(T)f16tof32(f32tof16(x) + 0x400u)", lambda x, y: 2 * x.astype(np.float16), SINGLE),
    ("fma(x, y, x)", lambda x, y: x * y + x, (64,)),
]
# Of rows of vectors. What gives one number is in all elements of T.
VECTORS = [
    ("(T)dot(x, y)", lambda x, y: dot(x, y), ALL),
    ("(T)length(x)", lambda x, y: np.sqrt(dot(x, x)), ALL),
    ("(T)distance(x, y)", lambda x, y: np.sqrt(dot(x - y, x - y)), ALL),
    ("normalize(y)", lambda x, y: unit(y), ALL),
    ("reflect(x, normalize(y))", lambda x, y: x - 2 * dot(x, unit(y)) * unit(y), ALL),
    (
        "refract(normalize(y), normalize(x + y), half_of)",
        lambda x, y: refracted(unit(y), unit(x + y)),
        NO_DOUBLE,
    ),
    ("faceforward(x, y, x)", lambda x, y: np.where(dot(x, y) < 0, x, -x), ALL),
    ("(T)any(x > (T)0)", lambda x, y: (x > 0).any(1, keepdims=True), ALL),
    ("(T)all(x > (T)0)", lambda x, y: (x > 0).all(1, keepdims=True), ALL),
    ("cross(x, y)", np.cross, ALL),
    (
        "dst(x, y)",
        lambda x, y: np.stack([x[:, 0] * 0 + 1, x[:, 1] * y[:, 1], x[:, 2], y[:, 3]], 1),
        SINGLE,
    ),
]
WIDTHS = {"cross(x, y)": 3, "dst(x, y)": 4}
# With results by way of variables; E is the type of frexp's exponent.
HELPERS = """T sines(T x) { T s, c; sincos(x, s, c); return s + (T)2 * c; }
T split(T x) { T whole; T rest = modf(x, whole); return rest + (T)8 * whole; }
T parts(T x) { E e; T m = frexp(x, e); return m + (T)4 * (T)e; }
"""
# What DXC has for doubles. All else it makes a float of, and warns.
OF_DOUBLES = (
    "abs", "min", "max", "clamp", "saturate", "(T)sign", "rcp", "mad", "fma", "(T)dot", "(T)any", "(T)all",
)  # fmt: skip


def dot(x, y):
    return (x * y).sum(1, keepdims=True)


def unit(x):
    return x / np.sqrt(dot(x, x))


def refracted(x, y):
    k = 1 - 0.25 * (1 - dot(x, y) ** 2)
    return 0.5 * x - (0.5 * dot(x, y) + np.sqrt(k)) * y


def special(x):
    """Of the size of x, where a third are ordinary numbers."""
    return np.resize(np.array([np.nan, 1, np.inf, -np.inf, 0, 2.5], x.dtype), x.size)


def in_language(compiler, source, **options):
    if compiler == "slang":
        return {"source": source, "language": "slang", **options}
    return {"source": source, "language": "hlsl", "compiler": compiler, "hlsl_16bit_types": True, **options}


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


def by_rows(function, width):
    def applied(x, y):
        x, y = x.reshape(-1, width), y.reshape(-1, width)
        return np.broadcast_to(function(x, y), x.shape).ravel()

    return applied


def table_of(compiler, dtype, width):
    size = dtype.itemsize * 8
    if dtype.kind != "f":
        return [(code, of) for code, of, kinds, widths in INTEGERS if dtype.kind in kinds and size in widths]
    found = [(code, of) for code, of, widths in FLOATS if size in widths]
    if width > 1:
        found += [
            (code, by_rows(of, width))
            for code, of, widths in VECTORS
            if size in widths and WIDTHS.get(code, width) == width
        ]
    if compiler == "dxc" and size == 64:
        found = [each for each in found if each[0].startswith(OF_DOUBLES)]
    return [each for each in found if compiler == "dxc" or not each[0].startswith("dst")]


@pytest.mark.parametrize("width", sampled([1, 3], [1, 2, 3, 4]))
@pytest.mark.parametrize(
    ("compiler", "name"),
    [pytest.param("slang", name, marks=needs_slang) for name in TYPES]
    + [pytest.param("dxc", name, marks=needs_dxc) for name in TYPES if name.startswith("float")],
)
@pytest.mark.sampled
def test_intrinsics(mgr, compiler, name, width):
    dtype = np.dtype(name)
    kind, table = TYPES[name], table_of(compiler, dtype, width)
    if name == "float16" and compiler == "dxc" and dxc_is_old():
        table = [each for each in table if "log10" not in each[0]]  # invalid SPIR-V, which is refused
    used = N // width * width
    vector = f"vector<{kind}, {width}>" if width > 1 else kind
    exponent = vector.replace(kind, "int") if compiler == "slang" else vector
    loaded = {n: f"T({', '.join(f'{n}s[i * {width} + {c}]' for c in range(width))})" for n in "xyz"}
    stores = "".join(
        f"{{ T r = (T)({code}); "
        + "".join(f"o[{place * N} + i * {width} + {c}] = r{f'[{c}]' * (width > 1)}; " for c in range(width))
        + "}\n"
        for place, (code, _) in enumerate(table)
    )
    helpers = HELPERS if dtype == np.float32 else HELPERS.splitlines()[0] if dtype == np.float16 else ""
    source = f"""
StructuredBuffer<{kind}> xs; StructuredBuffer<{kind}> ys; StructuredBuffer<{kind}> zs;
RWStructuredBuffer<{kind}> o;
typedef {vector} T; typedef {exponent} E;
{helpers}
[shader("compute")] [numthreads({N // width}, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {{
    uint i = t.x; T x = {loaded["x"]}, y = {loaded["y"]}, z = {loaded["z"]}; {kind} half_of = ({kind})0.5;
{stores} o[{len(table) * N}] = z{"[0]" * (width > 1)} + half_of; }}"""
    x, y = operands(dtype)
    try:
        kernel = mgr.kernel(**in_language(compiler, source))
    except kp.UnimplementedError as error:
        pytest.skip(str(error))  # the device lacks the type
    z = special(x) if dtype.kind == "f" else x
    out = kernel(x, y, z, np.zeros(N * len(table) + 1, dtype), groups=1)[:-1].reshape(len(table), N)
    tolerance = 0 if dtype.kind != "f" else {16: 8e-3, 32: 2e-4, 64: 1e-13}[dtype.itemsize * 8]
    exact = np.float64 if dtype.kind == "f" else dtype
    for (code, function), got in zip(table, out, strict=True):
        with np.errstate(all="ignore"):
            wanted = np.asarray(function(*(each[:used].astype(exact) for each in (x, y)))).astype(dtype)
        np.testing.assert_allclose(got[:used], wanted, tolerance, tolerance, err_msg=code)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.sampled
def test_matrices(mgr, compiler, name, rows):
    dtype, kind = np.dtype(name), TYPES[name]
    random = np.random.default_rng(rows)
    values = random.integers(-4, 5, 16).astype(dtype)
    sizes = ((1, 2, 3, 4) if compiler == "dxc" else (2, 3, 4)) if rows < 4 else (4,)
    stores, wanted = [], []

    def matrix(rows, columns, first=0):
        elements = ", ".join(f"x[{(first + k) % 16}]" for k in range(rows * columns))
        return f"matrix<{kind}, {rows}, {columns}>({elements})", np.resize(
            np.roll(values, -first), (rows, columns)
        )

    def vector(size):
        return f"vector<{kind}, {size}>({', '.join(f'x[{k + 5}]' for k in range(size))})", values[
            5 : size + 5
        ]

    def check(code, want):
        """Want of two dimensions is a matrix."""
        kept = f"kept{len(stores)}"
        shape = ", ".join(map(str, want.shape))
        text = f"{'matrix' if want.ndim == 2 else 'vector'}<{kind}, {shape}> {kept} = {code};\n"
        for place in np.ndindex(want.shape):
            text += f"o[{len(wanted)}] = {kept}{''.join(f'[{k}]' for k in place)}; "
            wanted.append(want[place])
        stores.append(text)

    for inner in sizes:
        (a, m), (v, n), (u, k) = matrix(rows, inner), vector(inner), vector(rows)
        if inner > 1:
            check(f"mul({a}, {v})", m @ n)
            check(f"mul({u}, {a})", k @ m)
        check(f"transpose({a})", m.T)
        for columns in sizes if inner > 1 else sizes[1:]:  # DXC makes no valid SPIR-V of a matrix of one
            b, other = matrix(inner, columns, 3)
            check(f"mul({a}, {b})", m @ other)
    if compiler == "slang" or name != "float64":
        a, m = matrix(rows, rows, 2)
        check(f"vector<{kind}, 2>(determinant({a}), 0)", np.array([np.linalg.det(m.astype(float)), 0]))
    source = (
        f"StructuredBuffer<{kind}> x; RWStructuredBuffer<{kind}> o;\n"
        f'[shader("compute")] [numthreads(1, 1, 1)] void main() {{\n{"".join(stores)} }}'
    )
    try:
        kernel = mgr.kernel(**in_language(compiler, source))
    except kp.UnimplementedError as error:
        pytest.skip(str(error))
    got = kernel(values, np.zeros(len(wanted), dtype), groups=1)
    np.testing.assert_allclose(got, np.array(wanted, dtype), 2e-3, 2e-3)


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize(
    "call", ["sqrt(x[0])", "floor(x[0])", "lerp(x[0], x[1], x[2])", "length(double2(x[0], 1))"]
)
def test_what_dxc_has_for_floats_alone_warns_about_doubles(call):
    source = f"RWStructuredBuffer<double> x; [numthreads(1, 1, 1)] void main() {{ x[0] = {call}; }}"
    with pytest.warns(kp.ShaderCompileWarning, match="conversion from larger type 'double"):
        kp.compile(source, language="hlsl", compiler="dxc")


@pytest.mark.own_driver
@needs_slang
@pytest.mark.parametrize("kind", ["uint16_t", "uint", "uint64_t", "uint3"])
def test_abs_of_unsigned_numbers_is_refused(kind):
    with pytest.raises(
        kp.ShaderCompileError, match="abs of an unsigned integer is computed as of a signed one"
    ):
        compiled("abs(x[0])", kind)


@needs_slang
def test_mad_of_integers_is_named_as_slangs_fault():
    with pytest.raises(kp.ShaderCompileError, match=r"a fault of the compiler, .* Fma"):
        compiled("mad(x[0], x[1], x[2])", "int")


@needs_slang
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


@needs_slang
@pytest.mark.parametrize("code", ["(ONE << 36) >> 36", "1ll << 40", "int64_t(1) << 40", "(K << s) >> s"])
def test_shifts_of_64_bits(mgr, code):
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


@needs_slang
@pytest.mark.parametrize("code", ["(1l << 40)", "(1u << 32)", "int64_t(0x1ul << 33u)"])
def test_shifts_beyond_32_bits_are_refused(code):
    with pytest.raises(kp.ShaderCompileError, match=r"is 0: .*write ll or ull"):
        compiled(code, "int64_t")
    fine = "(1ull << 40) + (1 << 31) + ((int64_t)1l << 40) + (x[0] * 1u << 40) // 1l << 40\n"
    compiled(fine, "int64_t")
