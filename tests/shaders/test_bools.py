"""Bools of blocks are uints in GLSL and HLSL: 0 is false, all else true. Slang's are refused."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import needs_dxc, needs_slang, shape

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
    c[i] = e5[1];
    c[i].v.x = y;
    d[i] = bool4(d[i].w, e6.xyz);
}
"""
OTHERS = [
    pytest.param({"language": "hlsl", "compiler": "dxc", **options}, marks=needs_dxc, id=f"HLSL {options}")
    for options in ({}, {"spirv_version": "1.5"}, {"debug_info": True, "optimize": False})
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
def test_one_result_in_all_languages(mgr, options, invert):
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


@pytest.mark.own_driver
@needs_slang
@pytest.mark.parametrize("language", ["slang", "hlsl"])
@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("RWStructuredBuffer<bool> a;", "a"),
        ("RWStructuredBuffer<bool3> a[2];", "a"),
        ("struct S { int x; bool2 y[3]; }; StructuredBuffer<S> a;", "a.y"),
        ("cbuffer C { int n; bool on; };", "C.on"),
        ("struct S { bool x; }; [[vk::push_constant]] ConstantBuffer<S> p;", "p.x"),
    ],
)
def test_slang_refuses_bools_in_buffers(declared, name, language):
    source = f"{declared}\nRWStructuredBuffer<int> o; [numthreads(1, 1, 1)] void main() {{ o[0] = 1; }}"
    with pytest.raises(kp.ShaderCompileError, match=rf"{name} is a bool in a buffer.*declare it uint"):
        kp.compile(source, language=language, compiler="slang")


@needs_slang
def test_slang_takes_bools_elsewhere(mgr):
    source = """[[vk::constant_id(3)]] const bool INVERT = false;
groupshared bool g[2]; struct S { bool b; };
RWStructuredBuffer<int> o;
[numthreads(1, 1, 1)] void main() { S s; s.b = !INVERT; g[1] = s.b; o[0] = g[1] ? 5 : 6; }"""
    kernel = mgr.kernel(source, language="slang")
    assert kernel(np.zeros(1, np.int32), groups=1).tolist() == [5]
    assert kernel.specialize(INVERT=True)(np.zeros(1, np.int32), groups=1).tolist() == [6]
