"""HLSL means with either compiler what the language says: intrinsics, matrices, packing, bindings, whole
programs.
"""

from __future__ import annotations

import functools
import logging
import math
import operator
import warnings

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._compilers import languages as shader_languages
from tests.support.languages import COMPILERS, dxc_is_old, needs_dxc, needs_slang, skipping_missing_waves
from tests.support.programs import PROGRAMS, USES_WAVES, in_language

HEAD = "RWStructuredBuffer<float> o : register(u0);\n"


@pytest.fixture(params=COMPILERS)
def compiler(request):
    return request.param


@pytest.fixture
def evaluate(mgr, compiler):
    """The values of HLSL expressions in floats x (bits of 8 numbers) and n = 0..."""

    def values(expressions, optimize, x=(0.0,), before="", locals_=""):
        body = locals_ + "".join(f"    o[{i}] = {each};\n" for i, each in enumerate(expressions))
        source = (
            f"{HEAD}StructuredBuffer<float> x : register(t1);\n{before}\n"
            f"[numthreads(1, 1, 1)] void main() {{\n{body}}}"
        )
        kernel = mgr.kernel(source, language="hlsl", compiler=compiler, optimize=optimize)
        inputs = {"x": np.array(x, np.float32)} if "float[] x" in kernel.signature.text("k") else {}
        return kernel(o=np.zeros(len(expressions), np.float32), groups=1, **inputs)

    return values


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("constant", [True, False])
def test_arithmetic_intrinsics(evaluate, compiler, optimize, constant):
    """Of constants, which front ends fold, and of values that are known at run time alone."""
    x = [-5.5, 3.0, 0.0, 0.5, 2.0, 7.25]
    a, b, zero, half, two, c = [f"{v!r}f" for v in x] if constant else [f"x[{i}]" for i in range(len(x))]
    want = {
        f"fmod({a}, {b})": -2.5,
        f"{a} % {b}": -2.5,
        f"fmod({c}, -{b})": 1.25,
        f"(float2({a}, {c}) % {b}).x": -2.5,
        f"any(float2({zero}, {half})) ? 1 : 0": 1,
        f"any(float3({zero}, {zero}, {zero})) ? 1 : 0": 0,
        f"all(float2({half}, {half})) ? 1 : 0": 1,
        f"all(float2({half}, {zero})) ? 1 : 0": 0,
        f"any(float2({zero}, {half}) != 0) ? 1 : 0": 1,
        f"any(int2(0, (int){two})) ? 1 : 0": 1,
        f"all(int2(1, (int){two})) ? 1 : 0": 1,
        f"any(bool2(false, {two} > 1)) ? 1 : 0": 1,
        f"all(bool2(true, {two} < 1)) ? 1 : 0": 0,
        f"((bool2)float2({zero}, {half})).y ? 1 : 0": 1,
        f"frac({a})": 0.5,
        f"floor({a})": -6,
        f"ceil({a})": -5,
        f"trunc({a})": -5,
        f"round({c})": 7,
        f"sign({a})": -1,
        f"abs({a})": 5.5,
        f"lerp({b}, {c}, {half})": 5.125,
        f"saturate({c})": 1,
        f"saturate({a})": 0,
        f"clamp({c}, {zero}, {b})": 3,
        f"step({b}, {c})": 1,
        f"step({b}, {two})": 0,
        f"mad({two}, {b}, {half})": 6.5,
        f"rcp({two})": 0.5,
        f"dot(float3({a}, {b}, {half}), float3({two}, {two}, {two}))": -4,
        f"cross(float3({two}, {zero}, {zero}), float3({zero}, {b}, {zero})).z": 6,
        f"length(float2({b}, {two} + {two}))": 5,
        f"(int){a}": -5,
        f"(uint)({c})": 7,
        f"asint({two}) == 0x40000000 ? 1 : 0": 1,
        f"asfloat(asuint({c}))": 7.25,
        f"firstbithigh((uint){c})": 2,
        f"firstbitlow((uint){two} * 4)": 3,
        f"countbits((uint){c})": 3,
        f"reversebits((uint){two}) == 0x40000000 ? 1 : 0": 1,
        f"-7 / (int){two}": -3,
        f"-7 % (int){b}": -1,
        f"7 % -(int){b}": 1,
        f"(-8) >> (int){two}": -2,
        f"(int)(0xFFFFFFF8u >> (uint)({two} + 26))": 15,
        f"{two} > 1 ? {b} : {a}": 3,
        f"mul(float2({two}, {b}), float2x2(1, 2, 3, 4)).x": 11,
        f"mul(float2x2(1, 2, 3, 4), float2({two}, {b})).x": 8,
        f"transpose(float2x2(1, 2, 3, {two}))[0][1]": 3,
        f"determinant(float2x2({two}, 1, 1, {two}))": 3,
        f"mul(float2x3(1, 2, 3, 4, 5, 6), float3(1, 1, {zero})).y": 9,
        f"float2x3(1, 2, 3, 4, 5, {two})[1][0]": 4,
        f"float2x3(1, 2, 3, 4, 5, {two})._m12": 2,
    }
    want |= {f"any({half}) ? 1 : 0": 1, f"all({zero}) ? 1 : 0": 0, f"ldexp({b}, {two})": 12}
    got = evaluate(list(want), optimize, x)
    wrong = {e: (float(g), w) for (e, w), g in zip(want.items(), got, strict=True) if abs(g - w) > 1e-5}
    assert not wrong


@pytest.mark.parametrize(
    "call",
    [
        "(a * b)[0][1]", "(a * transpose(b))[0][1]", "(s.m * a)[0][1]", "(several[1] * a)[0][1]",
        "(float2x2(1, 2, 3, 4) * a)[0][1]", "(mul(a, b) * a)[0][1]", "((a + b) * a)[0][1]", "(a *= b)[0][1]",
        "all(a) ? 1 : 0", "mul(a, b)[0][1]", "(a * 2)[0][1]", "(2 * a)[0][1]", "a[0][1] * b[1][0]",
        "(a[0] * b[1]).x", "(several[1][0] * a[0]).x", "a._m01 * b._m10", "mul(a, b[0]).x * mul(a, b[1]).y",
    ],
)  # fmt: skip
def test_products_of_matrices(evaluate, call):
    """By * they are component by component."""
    before = "struct S { float2x2 m; };"
    locals_ = (
        "float2x2 a = float2x2(x[0], x[1], x[2], x[3]), b = float2x2(5, 6, 7, 8); float2x2 several[2] = { a, "
        "b }; "
        "S s; s.m = b; "
    )
    a, b = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])
    python = call.replace("transpose(b)", "b.T").replace("float2x2(1, 2, 3, 4)", "a").replace("s.m", "b")
    python = (
        python.replace("a *= b", "a * b")
        .replace("all(a) ? 1 : 0", "1")
        .replace("_m01", "item(1)")
        .replace("_m10", "item(2)")
    )
    python = (
        python.replace("(several[1] * a)", "(b * a)")
        .replace("several[1]", "b")
        .replace(").x", ")[0]")
        .replace(").y", ")[1]")
    )
    want = eval(python, {"a": a, "b": b, "mul": np.dot})
    assert evaluate([call], True, [1, 2, 3, 4], before, locals_)[0] == want


def test_its_own_any_and_all_stay(evaluate):
    """A source that has macros of these names keeps them."""
    assert evaluate(
        ["any(3)", "all(4) + x[0]"], True, before="#define any(v) ((v) + 1)\n#define all(v) ((v) + 2)"
    ) == (pytest.approx([4, 6]))


def test_remainders_of_specialization_constants(mgr, compiler):
    source = (
        "[[vk::constant_id(0)]] const int A = 5;\n"
        f"{HEAD}[numthreads(1, 1, 1)] void main() {{ o[0] = A % 3; }}"
    )
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    assert kernel(np.zeros(1, np.float32), groups=1).tolist() == [2]
    assert kernel.specialize(A=-7)(np.zeros(1, np.float32), groups=1).tolist() == [-1]


@pytest.mark.parametrize("optimize", [True, False])
def test_mad(evaluate, compiler, optimize):
    """Of floats, integers and vectors of them. Slang's of integers is no SPIR-V."""
    if compiler == "slang":
        with pytest.raises(kp.ShaderCompileError, match="fault of the compiler"):
            evaluate(["(float)mad((int)x[0], -7, 3)"], optimize)
        return
    got = evaluate(
        [
            "mad(i, -7, 3)", "(float)mad(u, 7u, 5u)", "mad(int2(i, 2), int2(2, i), int2(1, -1)).y",
            "mad(x[0], -5.5, 0.5)", "mad(float2(x[0], 2), 2, float2(1, 2)).y",
        ],
        optimize,
        [1.25],
        locals_="int i = (int)x[0] + 4; uint u = (uint)i; ",
    )  # fmt: skip
    assert got.tolist() == [-32, 40, 9, -6.375, 6]


def test_uniforms_that_are_in_no_block(mgr, compiler):
    """Their block has one name with both compilers, by which it can be passed."""
    source = (
        "uniform int m; uniform int n;\n"
        + HEAD.replace("u0", "u1")
        + "[numthreads(1, 1, 1)] void main() { o[0] = m - n; }"
    )
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    assert [p.name for p in kernel.signature.parameters if p.kind == "uniform buffer"] == ["GlobalParams"]
    assert kernel(o=np.zeros(1, np.float32), GlobalParams=np.array([9, 4], np.int32), groups=1).tolist() == [
        5
    ]


def test_exchanges(mgr, compiler):
    """They give the value before, of all memory that has atomics."""
    source = """RWStructuredBuffer<uint> o : register(u0), u : register(u1);
RWByteAddressBuffer b : register(u2);
RWStructuredBuffer<int> n : register(u3);
groupshared uint g;
[numthreads(1, 1, 1)] void main() {
    uint old; int signed_old;
    InterlockedExchange(u[1], 42u, old); o[0] = old;
    b.InterlockedExchange(4, 7u, old); o[1] = old;
    InterlockedExchange(n[0], -3, signed_old); o[2] = (uint)signed_old;
    g = 3; InterlockedExchange(g, 5u, old); o[3] = old; o[4] = g;
}"""
    for optimize in (True, False):
        kernel = mgr.kernel(source, language="hlsl", compiler=compiler, optimize=optimize)
        u, b, n = np.array([1, 2], np.uint32), np.array([11, 12], np.uint32), np.array([5], np.int32)
        got = kernel(np.zeros(5, np.uint32), u=u, b=b, n=n, groups=1)
        out = got["o"] if isinstance(got, dict) else got[0] if isinstance(got, tuple) else got
        assert np.asarray(out).tolist() == [2, 12, 5, 3, 5]
        assert (u.tolist(), b.tolist(), n.tolist()) == ([1, 42], [11, 7], [-3])


@needs_slang
def test_exchanges_need_a_version_of_spirv():
    source = (
        "RWStructuredBuffer<uint> o; [numthreads(1, 1, 1)] void main() { InterlockedExchange(o[0], 1u, "
        "o[1]); }"
    )
    for options, told in (
        ({"spirv_version": "1.3"}, r"writes SPIR-V 1\.4 of it, not 1\.3"),
        ({"target": "vulkan1.1"}, r"needs SPIR-V 1\.4, which vulkan1\.1 lacks"),
    ):
        with pytest.raises(kp.ShaderCompileError, match=told):
            kp.compile(source, language="hlsl", compiler="slang", **options)
    assert kp.ShaderModule(source, language="slang").compiler is not None


def test_a_byte_address_buffer_that_no_code_uses(mgr, compiler):
    source = f"{HEAD}RWByteAddressBuffer b : register(u1);\n[numthreads(1, 1, 1)] void main() {{ o[0] = 5; }}"
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    assert kernel(np.zeros(1, np.float32), groups=1).tolist() == [5]


def _quad(i, flip):
    return [i[k ^ flip] for k in range(len(i))]


def _before(values):
    return [sum(values[:k]) for k in range(len(values))]


# What each lane of a wave gets, whose lanes are the invocations i.
WAVES = {
    "WavePrefixSum(1u)": lambda i: _before([1] * len(i)),
    "WavePrefixSum(i)": _before,
    "(uint)WavePrefixSum((float)i)": _before,
    "(uint)WavePrefixSum((int)i)": _before,
    "WavePrefixProduct(2u)": lambda i: [2**k for k in range(len(i))],
    "(uint)WavePrefixProduct(2.0f)": lambda i: [2**k for k in range(len(i))],
    "WavePrefixCountBits(i & 1)": lambda i: _before([k & 1 for k in i]),
    "WaveActiveSum(i)": lambda i: [sum(i)] * len(i),
    "WaveActiveProduct(i + 1)": lambda i: [math.prod(k + 1 for k in i)] * len(i),
    "WaveActiveMin(i + 3)": lambda i: [min(i) + 3] * len(i),
    "WaveActiveMax(i)": lambda i: [max(i)] * len(i),
    "WaveActiveBitAnd(i | 8)": lambda i: [functools.reduce(operator.and_, (k | 8 for k in i))] * len(i),
    "WaveActiveBitOr(1u << i)": lambda i: [sum(1 << k for k in i)] * len(i),
    "WaveActiveBitXor(1u << (i / 4))": lambda i: [0] * len(i),
    "WaveActiveCountBits((i & 1) == 1)": lambda i: [sum(k & 1 for k in i)] * len(i),
    "WaveActiveBallot((i & 1) == 1).x": lambda i: [sum((k & 1) << n for n, k in enumerate(i))] * len(i),
    "WaveActiveAllTrue(i < 6) ? 1 : 0": lambda i: [int(max(i) < 6)] * len(i),
    "WaveActiveAnyTrue(i == 5) ? 1 : 0": lambda i: [int(5 in i)] * len(i),
    "WaveActiveAllEqual(i / 8) ? 1 : 0": lambda i: [1] * len(i),
    "WaveActiveAllEqual(i / 2) ? 1 : 0": lambda i: [0] * len(i),
    "WaveReadLaneAt(i * 10, 3)": lambda i: [i[3] * 10] * len(i),
    "WaveReadLaneFirst(i + 7)": lambda i: [i[0] + 7] * len(i),
    "WaveIsFirstLane() ? 1 : 0": lambda i: [1, *[0] * (len(i) - 1)],
    "WaveGetLaneIndex()": lambda i: range(len(i)),
    "QuadReadAcrossX(i)": lambda i: _quad(i, 1),
    "QuadReadAcrossY(i)": lambda i: _quad(i, 2),
    "QuadReadAcrossDiagonal(i)": lambda i: _quad(i, 3),
}


@pytest.mark.parametrize("call", WAVES)
def test_wave_intrinsics(mgr, compiler, call):
    """Of eight invocations, in one wave or several."""
    lanes = min(8, mgr.get_device_properties()["subgroup_size"])
    source = (
        "RWStructuredBuffer<uint> o : register(u0);\n[numthreads(8, 1, 1)] void main(uint3 id : "
        "SV_GroupThreadID) "
        f"{{ uint i = id.x; uint value = {call}; o[i] = value; }}"
    )
    with skipping_missing_waves():
        got = mgr.kernel(source, language="hlsl", compiler=compiler)(np.zeros(8, np.uint32), groups=1)
    want = [each for first in range(0, 8, lanes) for each in WAVES[call](list(range(first, first + lanes)))]
    assert got.tolist() == want


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    ("language", "compiler"),
    [
        pytest.param("hlsl", "dxc", marks=needs_dxc),
        pytest.param("hlsl", "slang", marks=needs_slang),
        pytest.param("slang", None, marks=needs_slang),
        ("glsl", None),
    ],
)
def test_programs(mgr, language, compiler, name):
    """One form of each agrees with NumPy in every language, and so with each other."""

    def make(program):
        return mgr.kernel(in_language(program, language), language=language, compiler=compiler)

    if name in USES_WAVES:
        with skipping_missing_waves():
            PROGRAMS[name](mgr, make)
    else:
        PROGRAMS[name](mgr, make)


# -- matrices and packing ------------------------------------------------------------------------------------

_BLOCK = """cbuffer C : register(b1) {
    float2x3 m; row_major float2x3 r; float3x2 t; float4x4 full; float2x2 several[2]; float after;
}
"""


@pytest.mark.parametrize("optimize", [True, False])
def test_matrices_of_a_constant_buffer(mgr, compiler, optimize):
    """m[row][column] is the array's [row, column], however it lies in memory."""
    rng = np.random.default_rng(1)
    given = {
        "m": rng.normal(size=(2, 3)), "r": rng.normal(size=(2, 3)), "t": rng.normal(size=(3, 2)),
        "full": rng.normal(size=(4, 4)), "several": rng.normal(size=(2, 2, 2)), "after": np.float32(7),
    }  # fmt: skip
    given = {name: np.asarray(value, np.float32) for name, value in given.items()}
    places = [("m", i, j) for i in range(2) for j in range(3)] + [
        ("r", i, j) for i in range(2) for j in range(3)
    ]
    places += [("t", i, j) for i in range(3) for j in range(2)]
    places += [("full", i, j) for i in range(4) for j in range(4)]
    places += [("several", k, i, j) for k in range(2) for i in range(2) for j in range(2)]
    body = "".join(
        f"o[{n}] = {name}{''.join(f'[{i}]' for i in indices)};" for n, (name, *indices) in enumerate(places)
    )
    n = len(places)
    body += f"o[{n}] = after; float2 v = mul(m, float3(1, 2, 3)); o[{n + 1}] = v.x; o[{n + 2}] = v.y;"
    source = f"{HEAD}{_BLOCK}[numthreads(1, 1, 1)] void main() {{ {body} }}"
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler, optimize=optimize)
    text = kernel.signature.text("k")
    for each in ("float2x3 m", "float2x3 r", "float3x2 t", "float4x4 full", "float2x2[2] several"):
        assert each in text
    block = {name: value.item() if value.ndim == 0 else value for name, value in given.items()}
    got = kernel(np.zeros(n + 3, np.float32), groups=1, bind={"C": block})
    want = [given[name][tuple(indices)] for name, *indices in places]
    np.testing.assert_array_equal(got[:n], want)
    assert got[n] == 7
    np.testing.assert_allclose(got[n + 1 :], given["m"] @ np.float32([1, 2, 3]), rtol=1e-5)


@pytest.mark.parametrize("layout", ["", "row_major "])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 4), (2, 3, 2)])
def test_a_matrix_alone_in_its_constant_buffer(mgr, compiler, layout, shape):
    """Its array is passed by itself, and means what it means in a dict."""
    rows, columns = shape[-2:]
    several = f"[{shape[0]}]" if len(shape) == 3 else ""
    places = list(np.ndindex(shape))
    body = "".join(f"o[{n}] = m{''.join(f'[{i}]' for i in place)};" for n, place in enumerate(places))
    source = (
        f"{HEAD}cbuffer C : register(b1) {{ {layout}float{rows}x{columns} m{several}; }}\n"
        f"[numthreads(1, 1, 1)] void main() {{ {body} }}"
    )
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    array = np.arange(len(places), dtype=np.float32).reshape(shape)
    for given in (array, array.tolist(), {"m": array}):
        got = kernel(np.zeros(len(places), np.float32), m=given, groups=1)
        assert got.tolist() == list(range(len(places)))


@pytest.mark.parametrize("layout", ["", "row_major"])
def test_matrices_of_structured_buffers(mgr, compiler, layout):
    """Arrays are the memory: one of another order or without padding is refused."""
    source = f"""{f"#pragma pack_matrix({layout})" if layout else ""}
StructuredBuffer<float2x3> s : register(t1);
{HEAD}[numthreads(1, 1, 1)] void main() {{ o[0] = s[1][0][1]; o[1] = s[1][1][0]; o[2] = s[1][1][2]; }}"""
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    made = np.zeros(2, kp.struct_dtype(kernel.module, "s"))
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    if layout:
        made[:, :, :3] = values
    else:
        made[:, :, :2] = np.swapaxes(values, 1, 2)
    assert kernel(np.zeros(3, np.float32), made, groups=1).tolist() == [7, 9, 11]
    wrong = [each for each in (values, np.swapaxes(values, 1, 2).copy()) if each.shape != made.shape]
    assert wrong
    for each in wrong:
        with pytest.raises(kp.InvalidArgumentError, match=r"'s' is float2x3\[\]: in memory a matrix is its"):
            kernel(np.zeros(3, np.float32), each, groups=1)
        with pytest.raises(kp.InvalidArgumentError, match=r"kp\.struct_dtype"):
            kernel(np.zeros(3, np.float32), mgr.tensor_t(each), groups=1)


def test_matrices_of_structures(mgr, compiler):
    source = f"""struct S {{ float2x2 m; float weight; }};
StructuredBuffer<S> s : register(t1);
{HEAD}[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{
    for (uint i = 0; i < 3; ++i) {{ o[3 * i] = s[i].m[0][1]; o[3 * i + 1] = s[i].m[1][0];
    o[3 * i + 2] = s[i].weight; }}
}}"""
    module = kp.ShaderModule(source, language="hlsl", compiler=compiler)
    dtype = kp.struct_dtype(module, "s")
    data = np.zeros(3, dtype)
    for i in range(3):
        data["m"][i, :, :2] = (
            np.float32([[1, 2], [3, 4]]).T + 10 * i
        )  # column-major: its columns are the rows in memory
        data["weight"][i] = i
    got = mgr.kernel(module)(np.zeros(9, np.float32), data, groups=1)
    assert got.tolist() == [2, 3, 0, 12, 13, 1, 22, 23, 2]


def test_packing_of_constant_buffers(compiler):
    """HLSL's: vectors do not cross 16 bytes; arrays, matrices and structs begin at 16. What follows an array
    or a matrix fills its last row.
    """
    source = f"""{HEAD}struct Q {{ float a; float3 b; float2 c; float d[2]; float e; }};
cbuffer C : register(b1) {{
    float a; float2 b; float3 c; float d[3]; float e; float3x3 m; float f; float2x2 g; float h; Q q;
}}
[numthreads(1, 1, 1)] void main() {{ o[0] = a + q.e; }}"""
    module = kp.ShaderModule(source, language="hlsl", compiler=compiler)
    block = next(p for p in module.signature.parameters if p.kind == "uniform buffer")
    offsets = {m["name"]: m["offset"] for m in block.layout["members"]}
    assert offsets == {
        "a": 0, "b": 4, "c": 16, "d": 32, "e": 68, "m": 80, "f": 124, "g": 128, "h": 152, "q": 160,
    }  # fmt: skip
    inner = next(m for m in block.layout["members"] if m["name"] == "q")["members"]
    assert {m["name"]: m["offset"] for m in inner} == {"a": 0, "b": 4, "c": 16, "d": 32, "e": 52}


def test_push_constants_on_a_variable(mgr, compiler):
    source = f"""struct P {{ float2x2 m; float factor; }};
[[vk::push_constant]] P p;
{HEAD}[numthreads(1, 1, 1)] void main() {{ o[0] = p.m[0][1] * p.factor; o[1] = p.m[1][0]; }}"""
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    assert kernel(np.zeros(2, np.float32), groups=1, m=[[1, 2], [3, 4]], factor=10).tolist() == [20, 3]


# -- bindings ------------------------------------------------------------------------------------------------


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("declared", "numbers"),
    [
        (("{} a;", "{} b;", "{} c;"), (0, 1, 2)),
        (("{} a : register(u5);", "{} b;", "{} c : register(u1);"), (5, 0, 1)),
        (("[[vk::binding(3)]] {} a : register(u1);", "{} b : register(u1);", "{} c;"), (3, 1, 0)),
        (("{} a : register(u2);", "[[vk::binding(0)]] {} b;", "{} c;"), (2, 0, 1)),
        (("[[vk::binding(4, 1)]] {} a;", "{} b : register(u4, space2);", "{} c;"), ((1, 4), (2, 4), 0)),
    ],
)
def test_binding_numbers(compiler, declared, numbers):
    lines = "\n".join(each.format("RWStructuredBuffer<float>") for each in declared)
    source = f"{lines}\n[numthreads(1, 1, 1)] void main() {{ a[0] = 1; b[0] = 2; c[0] = 3; }}"
    module = kp.ShaderModule(source, language="hlsl", compiler=compiler)
    found = {p.name: (p.set, p.binding) for p in module.signature.parameters}
    wanted = {n: v if isinstance(v, tuple) else (0, v) for n, v in zip("abc", numbers, strict=True)}
    if compiler == "dxc" and dxc_is_old():  # it leaves numbers out for counters
        given = [n for n, line in zip("abc", declared, strict=True) if "(" in line]
        assert len(set(found.values())) == 3
        assert {n: found[n] for n in given} == {n: wanted[n] for n in given}
    else:
        assert found == wanted


def test_register_bases(compiler):
    source = """StructuredBuffer<float> a : register(t0); RWStructuredBuffer<float> b : register(u0);
cbuffer C : register(b1) { float c; }
[numthreads(1, 1, 1)] void main() { b[0] = a[0] * c; }"""
    module = kp.ShaderModule(source, language="hlsl", compiler=compiler, register_bases={"u": 8, "b": 4})
    assert {p.name: p.binding for p in module.signature.parameters} == {"a": 0, "b": 8, "c": 5}


def test_registers_that_would_share_a_binding_are_shifted_apart(mgr, compiler):
    source = """StructuredBuffer<float> x : register(t0), z : register(t1);
RWStructuredBuffer<float> y : register(u0); cbuffer C : register(b0) { float c; }
[[vk::binding(7)]] StructuredBuffer<float> seven;
[numthreads(1, 1, 1)] void main() { y[0] = x[0] * c + z[0] + seven[0]; }"""
    if compiler == "slang":
        with pytest.raises(kp.ShaderCompileError, match=r"shift registers together with \[\[vk::binding\]\]"):
            kp.compile(source, language="hlsl", compiler=compiler)
        source = source.replace("[[vk::binding(7)]] ", "").replace("seven;", "seven : register(t7);")
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    numbers = {p.name: p.binding for p in kernel.signature.parameters}
    assert numbers == {"x": 0, "z": 1, "seven": 7, "y": 8, "c": 9}
    if compiler == "dxc":
        first = source.replace("binding(7)", "binding(1)").replace("register(t1)", "register(t3)")
        module = kp.ShaderModule(first, language="hlsl", compiler=compiler)
        numbers = {p.name: p.binding for p in module.signature.parameters}
        assert numbers == {"x": 0, "seven": 1, "z": 3, "y": 4, "c": 5}
        module = kp.ShaderModule(first.replace("(t3)", "(t1)"), language="hlsl", compiler=compiler)
        numbers = {p.name: p.binding for p in module.signature.parameters}
        assert numbers == {"seven": 1, "x": 2, "z": 3, "y": 4, "c": 5}
    alone = "RWStructuredBuffer<float> y : register(u0); [numthreads(1, 1, 1)] void main() { y[0] = 1; }"
    module = kp.ShaderModule(alone, language="hlsl", compiler=compiler)
    assert [p.binding for p in module.signature.parameters] == [0]
    one, two = np.ones(1, np.float32), np.full(1, 2, np.float32)
    assert kernel(one, two, one, np.zeros(1, np.float32), two, groups=1).tolist() == [5]


@needs_dxc
def test_bindings_that_are_shared_by_number_warn():
    source = """[[vk::binding(0)]] RWStructuredBuffer<float> a; [[vk::binding(0)]] StructuredBuffer<float> b;
[numthreads(1, 1, 1)] void main() { a[0] = b[1]; }"""
    with pytest.warns(kp.ShaderCompileWarning, match="both binding 0") as found:
        kp.compile(source, language="hlsl", compiler="dxc", cache=False)
    assert len(found) == 1


# -- byte-address buffers ------------------------------------------------------------------------------------


def test_dimensions_of_buffers(mgr, compiler):
    """Bytes of a byte-address buffer, elements of a structured one."""
    source = f"""{HEAD}ByteAddressBuffer one : register(t1), two : register(t2);
    // not StructuredBuffer<uint> one
RWByteAddressBuffer three : register(u3);
StructuredBuffer<uint> four : register(t4);
StructuredBuffer<float2> five : register(t5);
[numthreads(1, 1, 1)] void main() {{
    uint n, stride;
    one.GetDimensions(n); o[0] = n;
    two.GetDimensions(n); o[1] = n;
    three.Store(0, 9); three.GetDimensions(n); o[2] = n;
    four.GetDimensions(n, stride); o[3] = n; o[4] = stride;
    five.GetDimensions(n, stride); o[5] = n; o[6] = stride;
}}"""
    arrays = [np.zeros(n, np.uint32) for n in (3, 5, 7, 11)]
    pairs = np.zeros((13, 2), np.float32)
    result = np.zeros(7, np.float32)
    kernel = mgr.kernel(source, language="hlsl", compiler=compiler)
    tensor = mgr.tensor_t(result)
    kernel(tensor, *arrays, pairs, groups=1)
    assert tensor.read().tolist() == [12, 20, 28, 11, 4, 13, 8]


@needs_dxc
@pytest.mark.parametrize("version", ["1.3", "1.5"])
def test_counters_that_no_code_uses_are_no_parameters(version):
    source = f"{HEAD}RWStructuredBuffer<float> p;\n[numthreads(1, 1, 1)] void main() {{ o[0] = p[1]; }}"
    module = kp.ShaderModule(source, language="hlsl", compiler="dxc", spirv_version=version)
    assert [parameter.name for parameter in module.signature.parameters] == ["o", "p"]
    assert "counter" not in module.disassembly()


@needs_dxc
def test_invalid_spirv_is_the_compilers_fault():
    source = f"{HEAD}[numthreads(1, 1, 1)] void main(float3 id : SV_DispatchThreadID) {{ o[0] = id.x; }}"
    with pytest.raises(kp.ShaderCompileError, match=r"(DispatchThreadID|fault of the compiler)[^$]*DXC 1\."):
        kp.compile(source, language="hlsl", compiler="dxc")


# -- which compiler ------------------------------------------------------------------------------------------

SOURCE = f"{HEAD}[numthreads(1, 1, 1)] void main() {{ o[0] = 7; }}"


def test_the_compiler_is_seen(compiler):
    module = kp.ShaderModule(SOURCE, language="hlsl", compiler=compiler)
    assert module.language == "hlsl"
    assert module.compiler.startswith("Slang 20" if compiler == "slang" else "DXC 1.")
    assert kp.ShaderModule(module).compiler == module.compiler
    assert kp.ShaderModule(module.to_spirv()).compiler is None
    with pytest.raises(kp.ShaderCompileError, match=f"\ncompiler: {module.compiler}"):
        kp.compile("void main( {", language="hlsl", compiler=compiler)


def test_glsl_names_its_compiler():
    source = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}"
    assert kp.ShaderModule(source).compiler == "glslang"


@needs_slang
@needs_dxc
def test_the_environment_chooses(monkeypatch):
    monkeypatch.delenv("KOMPUTE_PY_COMPILER", raising=False)
    assert kp.ShaderModule(SOURCE, language="hlsl").compiler.startswith("DXC")
    monkeypatch.setenv("KOMPUTE_PY_COMPILER", "slang")
    assert kp.ShaderModule(SOURCE, language="hlsl").compiler.startswith("Slang")
    assert kp.ShaderModule(SOURCE, language="hlsl", compiler="dxc").compiler.startswith("DXC")
    monkeypatch.setenv("KOMPUTE_PY_COMPILER", "glslang")
    with pytest.raises(kp.InvalidArgumentError, match="KOMPUTE_PY_COMPILER is 'glslang'"):
        kp.compile(SOURCE, language="hlsl")


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("language", "wrong"), [("glsl", "slang"), ("slang", "dxc"), ("hlsl", "glslang"), ("hlsl", "fxc")]
)
def test_compilers_that_cannot_be(language, wrong):
    with pytest.raises(kp.InvalidArgumentError, match=f"compiler is '{wrong}'"):
        kp.compile(SOURCE, language=language, compiler=wrong)


@needs_slang
def test_without_dxc_hlsl_goes_to_slang(monkeypatch, caplog):
    """With one note; without both, the error names what to install."""
    monkeypatch.setenv("KOMPUTE_PY_DXC_LIBRARY", "")
    monkeypatch.delenv("KOMPUTE_PY_COMPILER", raising=False)
    shader_languages._note_fallback.cache_clear()
    with caplog.at_level(logging.WARNING, logger="kompute_py"):
        assert kp.ShaderModule(SOURCE, language="hlsl").compiler.startswith("Slang")
        kp.compile(SOURCE, language="hlsl")
    notes = [r.getMessage() for r in caplog.records if "HLSL is compiled by Slang" in r.getMessage()]
    assert len(notes) == 1 and "kompute_py[hlsl]" in notes[0]
    monkeypatch.setenv("KOMPUTE_PY_SLANG_LIBRARY", "")
    for extra, arguments in (
        ("slang", {"language": "slang"}),
        ("slang", {"language": "hlsl", "compiler": "slang"}),
        ("hlsl", {"language": "hlsl"}),
    ):
        with pytest.raises(kp.UnavailableError, match=rf"pip install 'kompute_py\[{extra}\]'"):
            kp.compile(SOURCE, **arguments)


def test_small_types_have_32_bits_unless_asked_for(compiler):
    source = """RWStructuredBuffer<half2> o : register(u0);
[numthreads(1, 1, 1)] void main() { half x = 1; o[0] = half2(x, 2); }"""
    wide = kp.ShaderModule(source, language="hlsl", compiler=compiler)
    assert wide.signature.parameters[0].dtype == np.float32
    narrow = kp.ShaderModule(source, language="hlsl", compiler=compiler, hlsl_16bit_types=True)
    assert narrow.signature.parameters[0].dtype == np.float16


def test_an_unknown_entry_point_names_those_that_exist(compiler):
    source = SOURCE.replace("main", "fill")
    with pytest.raises(kp.ShaderCompileError, match=r"has no entry point 'main'.*entry='fill'"):
        kp.compile(source, language="hlsl", compiler=compiler)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kp.compile(source, language="hlsl", compiler=compiler, entry="fill")


@needs_dxc
@pytest.mark.parametrize(
    ("parameters", "index", "before"),
    [
        ("uint3 id : SV_DispatchThreadID", "id.x", ""),
        ("uint id : SV_DispatchThreadID", "id", ""),
        ("uint2 id : SV_DispatchThreadID", "id.x", ""),
        ("uint3 g : SV_GroupID, uint3 t : SV_GroupThreadID", "g.x * 8 + t.x", ""),
        ("uint3 g : SV_GroupID, uint i : SV_GroupIndex", "g.x * 8 + i", ""),
        ("In input", "input.id.x", "struct In { uint3 id : SV_DispatchThreadID; uint i : SV_GroupIndex; };"),
    ],
)
def test_the_grid_follows_the_numbers_of_invocations(mgr, parameters, index, before):
    source = f"{HEAD}{before} [numthreads(8, 1, 1)] void main({parameters}) {{ o[{index}] = 1; }}"
    for optimize in ("none", "size", "performance"):
        kernel = mgr.kernel(source, language="hlsl", compiler="dxc", optimize=optimize)
        assert kernel(np.zeros(24, np.float32)).tolist() == [1] * 24


@pytest.mark.parametrize(
    ("kind", "rows", "columns"), [("float3x1", 3, 1), ("float1x3", 1, 3), ("float1x1", 1, 1)]
)
def test_matrices_of_one_row_or_column(mgr, kind, rows, columns):
    kernel = mgr.kernel(
        f"StructuredBuffer<{kind}> a; RWStructuredBuffer<{kind}> o; StructuredBuffer<{kind}> m;\n"
        f"[numthreads(1, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {{ {kind} r = a[t.x] * 2 + m[0];\n"
        f"  r[{rows - 1}][{columns - 1}] += 100; o[t.x] = r; }}",
        language="hlsl",
        compiler="dxc",
    )
    a = np.arange(4 * rows * columns, dtype=np.float32).reshape(4, -1)
    m = np.full((1, rows * columns), 0.5, np.float32)
    expected = 2 * a + 0.5
    expected[:, -1] += 100
    np.testing.assert_array_equal(kernel(a, np.zeros_like(a), m, groups=4), expected)


@needs_dxc
@pytest.mark.parametrize("order", ["row_major", "column_major"])
@pytest.mark.parametrize(("rows", "columns"), [(3, 1), (1, 3), (1, 1)])
def test_matrices_of_one_row_or_column_in_a_constant_buffer(mgr, rows, columns, order):
    kernel = mgr.kernel(
        f"RWStructuredBuffer<float> o; cbuffer C {{ {order} float{rows}x{columns} m; float z; }}\n"
        f"[numthreads(1, 1, 1)] void main() {{ for (int i = 0; i < {rows}; ++i)\n"
        f"  for (int j = 0; j < {columns}; ++j) o[i * {columns} + j] = m[i][j] + z; }}",
        language="hlsl",
        compiler="dxc",
    )
    m = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    got = kernel(np.zeros(m.size, np.float32), {"m": m, "z": 10}, groups=1)
    np.testing.assert_array_equal(got, m.ravel() + 10)
