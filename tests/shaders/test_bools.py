"""Bools of blocks are uints in every language, with every compiler: 0 is false, all else true."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import needs_slang, shape

GLSL = """
#version 450
layout(local_size_x = 4) in;
layout(constant_id = 3) const bool INVERT = false;
struct In { bool f; uint x; bvec2 v; };
layout(std430, binding = 0) buffer A { bool a[]; };
layout(std430, binding = 1) buffer B { bvec2 b[]; };
layout(std430, binding = 2) buffer C { In c[]; };
layout(std430, binding = 3) buffer D { bvec4 d[]; };
layout(std140, binding = 4) uniform E { bvec2 e0; bool e1; int e2; bool e3[2]; In e4; In e5[2]; bvec4 e6; };
layout(std430, binding = 5) buffer O { uint o[]; };
layout(push_constant) uniform P { bvec2 p0; bool p1; int p2; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    o[i] = uint(a[i]) | uint(b[i].y) << 1 | uint(c[i].f) << 2 | uint(c[i].v.x) << 3 | uint(d[i].z) << 4
        | uint(e0.y) << 5 | uint(e1) << 6 | uint(e3[1]) << 7 | uint(e4.v.y) << 8 | uint(e5[1].f) << 9
        | uint(e6.w) << 10 | uint(p.p0.x) << 11 | uint(p.p1) << 12 | uint(INVERT) << 13
        | uint(e2 + p.p2) << 16;
    a[i] = !a[i];
    b[i].x = b[i].y != INVERT;
    bool y = c[i].v.y;
    c[i] = e5[1];
    c[i].v.x = y;
    d[i] = bvec4(d[i].w, e6.xyz);
}
"""
HLSL = """
[[vk::constant_id(3)]] const bool INVERT = false;
struct In { bool f; uint x; bool2 v; };
struct P { bool2 p0; bool p1; int p2; };
[[vk::binding(0)]] RWStructuredBuffer<bool> a;
[[vk::binding(1)]] RWStructuredBuffer<bool2> b;
[[vk::binding(2)]] RWStructuredBuffer<In> c;
[[vk::binding(3)]] RWStructuredBuffer<bool4> d;
[[vk::binding(4)]] cbuffer E { bool2 e0; bool e1; int e2; bool e3[2]; In e4; In e5[2]; bool4 e6; };
[[vk::binding(5)]] RWStructuredBuffer<uint> o;
[[vk::push_constant]] ConstantBuffer<P> p;
[numthreads(4, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint i = id.x;
    o[i] = uint(a[i]) | uint(b[i].y) << 1 | uint(c[i].f) << 2 | uint(c[i].v.x) << 3 | uint(d[i].z) << 4
        | uint(e0.y) << 5 | uint(e1) << 6 | uint(e3[1]) << 7 | uint(e4.v.y) << 8 | uint(e5[1].f) << 9
        | uint(e6.w) << 10 | uint(p.p0.x) << 11 | uint(p.p1) << 12 | uint(INVERT) << 13
        | uint(e2 + p.p2) << 16;
    a[i] = !a[i];
    b[i].x = b[i].y != INVERT;
    bool y = c[i].v.y;
    c[i].f = e5[1].f;  // glslang's front end refuses to copy a whole struct with bools
    c[i].x = e5[1].x;
    c[i].v = e5[1].v;
    c[i].v.x = y;
    d[i] = bool4(d[i].w, e6.xyz);
}
"""
OTHERS = [
    pytest.param({"language": "hlsl", "compiler": "slang"}, marks=needs_slang, id="HLSL by Slang"),
    pytest.param({"language": "hlsl", "compiler": "glslang"}, id="HLSL by glslang"),
    pytest.param({"language": "slang"}, marks=needs_slang, id="Slang"),
    pytest.param({"language": "slang", "spirv_version": "1.5"}, marks=needs_slang, id="Slang to SPIR-V 1.5"),
    pytest.param(
        {"language": "slang", "debug_info": True, "optimize": False}, marks=needs_slang, id="unoptimized"
    ),
]


@pytest.mark.parametrize("options", OTHERS)
def test_one_signature_in_all_languages(options):
    expected, module = kp.ShaderModule(GLSL, name="k"), kp.ShaderModule(HLSL, name="k", **options)
    assert shape(module.signature) == shape(expected.signature)
    block = "{ uvec2 e0; uint e1; int e2; uint[2] e3; struct In e4; struct In[2] e5; uvec4 e6 }"
    assert module.signature.text("k") == (
        f"k(inout uint[] a, inout uvec2[] b, inout struct In[] c, inout uvec4[] d, E {block} E, "
        "out uint[] o, *, uvec2 p0, uint p1, int p2)"
    )
    again = kp.ShaderModule(module.to_spirv(), name="k")  # no knowledge beside the SPIR-V
    assert again.signature.text("k") == module.signature.text("k")


@pytest.mark.parametrize("options", [pytest.param({}, id="GLSL"), *OTHERS])
@pytest.mark.parametrize("invert", [False, True])
def test_one_result_in_all_languages(mgr, needs, options, invert):
    needs(mgr, "dispatch")
    kernel = mgr.kernel(HLSL if options else GLSL, **options).specialize(INVERT=invert)
    random = np.random.default_rng(12)
    scale = np.uint32([1, 2, 0x80000000, 0xFFFFFFFF])  # all of them are true

    def truths(*lengths):
        return random.integers(0, 2, lengths, dtype=np.uint32) * random.choice(scale, lengths)

    a, b, d = truths(8), truths(8, 2), truths(8, 4)
    record = kp.struct_dtype(kernel, "c")
    assert record == np.dtype([("f", "u4"), ("x", "u4"), ("v", "u4", (2,))])
    c = np.zeros(8, record)
    c["f"], c["v"], c["x"] = truths(8), truths(8, 2), np.arange(8)
    e = np.zeros(1, kp.struct_dtype(kernel, "E"))
    assert e.dtype["e3"].shape == (2, 4) and e.dtype.fields["e6"][1] == 96
    for name in ("e0", "e1", "e6"):
        e[name] = truths(*e[name].shape)
    e["e2"], e["e3"] = -7, truths(1, 2, 4)
    for part in (e["e4"], e["e5"]):
        part["f"], part["v"], part["x"] = truths(*part.shape), truths(*part.shape, 2), 9
    given = [each.copy() for each in (a, b, c, d)]
    o = np.zeros(8, np.uint32)
    kernel(a, b, c, d, e, o, p0=(1, 0), p1=True, p2=8, groups=2)

    block = e[0]
    bits = [
        given[0], given[1][:, 1], given[2]["f"], given[2]["v"][:, 0], given[3][:, 2],
        block["e0"][1], block["e1"], block["e3"][1, 0], block["e4"]["v"][1], block["e5"][1]["f"],
        block["e6"][3], 1, 1, invert,
    ]  # fmt: skip
    expected = sum((np.asarray(bit) != 0) * np.uint32(1 << i) for i, bit in enumerate(bits)) + (1 << 16)
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(a, given[0] == 0)
    np.testing.assert_array_equal(b[:, 0], (given[1][:, 1] != 0) != invert)
    np.testing.assert_array_equal(b[:, 1], given[1][:, 1])
    np.testing.assert_array_equal(c["f"] != 0, block["e5"][1]["f"] != 0)
    np.testing.assert_array_equal(c["x"], 9)
    np.testing.assert_array_equal(c["v"][:, 0], given[2]["v"][:, 1] != 0)
    np.testing.assert_array_equal(c["v"][:, 1] != 0, block["e5"][1]["v"][1] != 0)
    np.testing.assert_array_equal(d[:, 0], given[3][:, 3] != 0)
    np.testing.assert_array_equal(d[:, 1:], np.broadcast_to(block["e6"][:3] != 0, (8, 3)))


@pytest.mark.parametrize("options", [pytest.param({}, id="GLSL"), *OTHERS])
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32])
def test_one_refusal_in_all_languages(mgr, options, dtype):
    others = {"b": (8, 2), "c": (8, 4), "d": (8, 4), "E": 28, "o": 8}
    arrays = {name: np.zeros(shape, np.uint32) for name, shape in others.items()} | {"a": np.zeros(8, dtype)}
    said = []
    for kernel in (mgr.kernel(HLSL if options else GLSL, name="k", **options), mgr.kernel(GLSL, name="k")):
        with pytest.raises(kp.ArgumentTypeError, match=r"a.*uint32") as caught:
            kernel(**arrays, p0=(1, 0), p1=True, p2=8, groups=2)
        said.append(str(caught.value))
    assert said[0] == said[1]


ALL_SHAPES = """
struct In { bool f; int x; bool3 v; bool2 a[2]; bool2x2 m; };
struct Pair<T> { T first; T rest[3]; };
struct Resources { RWStructuredBuffer<bool> flags; RWStructuredBuffer<int> numbers; bool loose; };
RWStructuredBuffer<int> numbers;
RWStructuredBuffer<bool> flags;
RWStructuredBuffer<bool> several[2];
RWStructuredBuffer<bool3> threes;
RWStructuredBuffer<In> records;
RWStructuredBuffer<Pair<bool>> truths;
RWStructuredBuffer<Pair<int>> counts;
ParameterBlock<Resources> block;
Resources plain;
uniform bool loose;
uniform int number;
cbuffer Constants { bool xs[3]; int ys[3]; In record; bool2x2 matrix; };
void flip(inout bool b) { b = !b; }
[numthreads(1, 1, 1)]
void main(uniform bool entered, uniform int limit, uniform In last) {
    numbers[0] = number + limit + ys[2] + counts[0].rest[1] + plain.numbers[0] + block.numbers[0];
    flags[1] = entered && flags[0];
    several[1][0] = several[0][0];
    flip(several[1][1]);
    threes[1] = threes[0].zxy;
    flip(threes[2][number]); // a component by a number that is not constant
    In copy = records[0];
    copy.v.zx = copy.v.yy;
    flip(copy.a[number].y);
    copy.m[1][number] = loose;
    records[1] = copy;
    records[2] = record;
    records[3] = last;
    records[4].a = record.a;
    records[4].m = matrix;
    records[5] = {
        true, 7, bool3(true, false, true), { bool2(true, false), bool2(false, true) },
        bool2x2(false, true, true, false)
    };
    truths[1] = truths[0];
    truths[0].first = truths[0].rest[2];
    block.flags[0] = block.loose;
    plain.flags[0] = plain.loose;
    flags[2] = xs[2];
}
"""


@needs_slang
@pytest.mark.filterwarnings(
    "ignore::kompute_py.ShaderCompileWarning"
)  # of Slang: it moves members of Resources
@pytest.mark.parametrize(
    "options", [{}, {"spirv_version": "1.4"}, {"spirv_version": "1.5", "optimize": False}], ids=str
)
def test_every_shape_of_slang(mgr, needs, options):
    """Types that Slang shares between bool and int, types that it makes, and values that move as a whole."""
    needs(mgr, "dispatch")
    kernel = mgr.kernel(ALL_SHAPES, language="slang", name="k", **options)
    types = {p.name: p.type for p in kernel.signature.parameters}
    names = (
        "numbers",
        "flags",
        "several",
        "threes",
        "globalParams.plain.flags",
        "block.numbers",
        "block.flags",
    )
    assert [types[name] for name in names] == [
        "int[]",
        "uint[]",
        "uint[][2]",
        "uvec3[]",
        "uint[]",
        "int[]",
        "uint[]",
    ]
    dtypes = {name: kp.struct_dtype(kernel, name) for name in ("records", "Constants", "truths", "counts")}
    assert [dtypes["records"][i].base for i in range(5)] == [np.uint32, np.int32, *[np.uint32] * 3]
    assert [dtypes["Constants"][i].base for i in (0, 1, 3)] == [np.uint32, np.int32, np.uint32]
    assert [dtypes[name]["rest"].base for name in ("truths", "counts")] == [np.uint32, np.int32]

    random = np.random.default_rng(7)

    def filled(array):
        words = array.view(np.uint32).reshape(-1)
        words[:] = random.integers(0, 2, words.size) * random.integers(1, 2**32, words.size)
        return array

    records, constants = filled(np.zeros(6, dtypes["records"])), filled(np.zeros(1, dtypes["Constants"]))
    truths, flags = filled(np.zeros(2, dtypes["truths"])), filled(np.zeros(3, np.uint32))
    threes = filled(np.zeros((3, 4), np.uint32))
    several = [mgr.tensor_t(filled(np.zeros(2, np.uint32))) for _ in range(2)]
    last = filled(np.zeros(1, dtypes["records"]))[0]
    constants["ys"] = 30
    uniforms = np.array([((1,), 0, 1)], kp.struct_dtype(kernel, "GlobalParams"))
    pair = np.array([(1, (2, 3, 4))], dtypes["counts"])
    given = {"records": records, "truths": truths, "flags": flags, "threes": threes}
    was = {name: array.copy() for name, array in given.items()}
    loose = {name: np.zeros(1, np.uint32) for name in ("block.flags", "globalParams.plain.flags")}
    added = {name: np.int32([7]) for name in ("block.numbers", "globalParams.plain.numbers")}
    numbers = np.zeros(1, np.int32)
    arguments = {
        **given, **loose, **added, "numbers": numbers, "several": several, "counts": pair,
        "Constants": constants, "GlobalParams": uniforms, "block": np.uint32([8]),
        "entered": True, "limit": 100, "last": last,
    }  # fmt: skip
    kernel(**arguments, groups=1)

    def equal(found, expected):
        np.testing.assert_array_equal(np.asarray(found) != 0, np.asarray(expected) != 0)

    assert numbers[0] == 1 + 100 + 30 + 3 + 7 + 7
    fixed = constants[0]
    equal(flags, [was["flags"][0], was["flags"][0], fixed["xs"][2, 0]])
    old = was["threes"]
    equal(threes[:, :3], [old[0, :3], old[0, [2, 0, 1]], [old[2, 0], not old[2, 1], old[2, 2]]])
    first = was["records"][0]
    equal(
        records["f"], [first["f"], first["f"], fixed["record"]["f"], last["f"], was["records"]["f"][4], True]
    )
    assert (
        records["x"][1:4].tolist() == [first["x"], fixed["record"]["x"], last["x"]] and records["x"][5] == 7
    )
    y = first["v"][1]
    equal(records["v"][[1, 2, 3, 5]], [[y, y, y], fixed["record"]["v"], last["v"], [1, 0, 1]])
    flipped = first["a"].copy()
    flipped[1, 1] = not flipped[1, 1]
    of_constants = fixed["record"]["a"][:, :2]
    equal(records["a"][1:], [flipped, of_constants, last["a"], of_constants, [[1, 0], [0, 1]]])
    turned = first["m"].copy()
    turned[1, 1] = 0
    of_record, matrix = fixed["record"]["m"][:, :2], fixed["matrix"][:, :2]
    equal(records["m"][1:], [turned, of_record, last["m"], matrix, [[0, 1], [1, 0]]])
    equal(truths["first"], [was["truths"]["rest"][0, 2], was["truths"]["first"][0]])
    equal(truths["rest"], was["truths"]["rest"][[0, 0]])
    assert [each[0] for each in loose.values()] == [1, 1]
    assert set(np.unique(np.concatenate([flags[1:], threes[1, :3], records["v"][5]]))) <= {0, 1}  # true is 1
