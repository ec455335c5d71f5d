"""Valid modules that some drivers do not take: copies of structs in another layout, hints to unroll loops,
large local variables.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child
from tests.support.languages import needs_slang

pytestmark = pytest.mark.each_driver

# One struct in two layouts: copying it whole is OpCopyLogical from SPIR-V 1.4 on.
COPY = """#version 450
layout(local_size_x = 1) in;
struct Inner { vec2 v; float f[3]; };
struct Outer { mat3x2 m; Inner inner[2]; int k; float tail[%d]; };
layout(std140, binding = 0) buffer A { Outer a[]; };
layout(std430, binding = 1) buffer B { Outer b[]; };
void main() { uint i = gl_GlobalInvocationID.x; b[i] = a[i]; }
"""


@pytest.mark.parametrize("length", [1, 300])
@pytest.mark.parametrize("optimize", ["none", "performance"])
def test_a_struct_copied_to_another_layout(mgr, length, optimize):
    kernel = mgr.kernel(COPY % length, optimize=optimize)
    assert "OpCopyLogical" in kernel.module.disassembly()
    made = {}
    for name in "ab":
        made[name] = np.zeros(3, kp.struct_dtype(kernel, name))
    random = np.random.default_rng(1)
    given = made["a"]
    for path in (("m",), ("inner", "v"), ("inner", "f"), ("k",), ("tail",)):
        part = given
        for name in path:
            part = part[name]
        part[...] = random.integers(1, 1000, part.shape)
    kernel(given, made["b"], groups=3)
    taken = made["b"]
    np.testing.assert_array_equal(taken["m"][..., :2], given["m"][..., :2])
    np.testing.assert_array_equal(taken["inner"]["v"], given["inner"]["v"])
    # std140 pads the elements of arrays to 16 bytes.
    np.testing.assert_array_equal(taken["inner"]["f"], given["inner"]["f"][..., 0])
    np.testing.assert_array_equal(taken["tail"], given["tail"][..., 0])
    np.testing.assert_array_equal(taken["k"], given["k"])


@needs_slang
def test_an_atomic_exchange_beside_a_copied_struct(mgr):
    kernel = mgr.kernel(
        """
struct S { float3x3 m; float v[3]; int k; };
RWStructuredBuffer<S> a; RWStructuredBuffer<S> b; RWStructuredBuffer<uint> c;
[shader("compute")] [numthreads(1, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {
    uint old; InterlockedExchange(c[t.x], 7u, old);
    S s = a[t.x]; s.k += int(old); b[t.x] = s;
}
""",
        language="slang",
    )
    given = np.zeros(4, kp.struct_dtype(kernel, "a"))
    given["v"] = np.arange(12).reshape(4, 3)
    given["k"] = np.arange(4)
    counters = np.full(4, 5, np.uint32)
    taken = np.zeros_like(given)
    kernel(given, taken, counters, groups=4)
    np.testing.assert_array_equal(taken["v"], given["v"])
    np.testing.assert_array_equal(taken["k"], np.arange(4) + 5)
    np.testing.assert_array_equal(counters, 7)


UNROLLED = """
StructuredBuffer<uint> a; RWStructuredBuffer<uint> o;
[shader("compute")] [numthreads(64, 1, 1)] void main(uint3 g : SV_GroupID, uint3 t : SV_GroupThreadID) {
    uint n = 130, s = 0;
    if (g.x == a[0]) {
        [unroll] for (uint i = t.x, k = 0; k < 3u; i += 64, ++k) s += WaveActiveSum(i < n ? a[i] : 0);
    }
    o[g.x * 64 + t.x] = s;
}
"""


def unrolled() -> list[int]:
    mgr = kp.Manager()
    a = np.arange(130, dtype=np.uint32)
    kernel = mgr.kernel(UNROLLED, language="slang")
    first = kernel(a, np.zeros(128, np.uint32), groups=2)[:64]
    lanes = mgr.get_device_properties()["subgroup_size"]
    return [int(lanes), *map(int, first)]


@needs_slang
def test_an_unrolled_loop_around_a_subgroup_operation(mgr):
    """SwiftShader ended the process; in a child, so that it would end only that."""
    lanes, *first = run_child(unrolled)
    padded = np.zeros(192, np.int64)
    padded[:130] = np.arange(130)
    sums = padded.reshape(3, -1, lanes).sum(axis=(0, 2))
    np.testing.assert_array_equal(first, np.repeat(sums, lanes))


# lavapipe takes minutes for it.
LARGE_LOCAL = """#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer A { int a[]; };
struct S { int x[4096]; };
void main() {
    S s;
    for (int i = 0; i < 4096; ++i) s.x[i] = a[i] * 3;
    S t = s;
    t.x[a[0]] = 7;
    S u = t;
    int r = 0;
    for (int i = 0; i < 4096; ++i) r += u.x[(i * a[1]) & 4095];
    a[0] = r;
}
"""


def given_up() -> list[str]:
    mgr = kp.Manager(pipeline_timeout=0.2, pipeline_cache_dir="")
    kernel = mgr.kernel(LARGE_LOCAL)
    said = []
    for _ in range(2):
        try:
            kernel(np.zeros(4096, np.int32), groups=1)
        except kp.EvalTimeoutError as error:
            said.append(str(error))
    return said


def test_a_pipeline_that_takes_too_long(mgr):
    """The call raises, and so does the next; the process ends although the driver still works."""
    if "llvmpipe" not in mgr.get_device_properties()["device_name"]:
        pytest.skip("this driver is done with it at once")
    began = time.monotonic()
    said = run_child(given_up)
    assert len(said) == 2
    assert all("longer than 0.2 s" in each and "pipeline_timeout" in each for each in said)
    assert time.monotonic() - began < 60


def test_check_warns_of_large_local_variables(mgr):
    with pytest.warns(kp.KomputeWarning, match="local variables take 491.. bytes"):
        kp.check(LARGE_LOCAL, mgr, optimize=False)
    assert kp.config_report(pipeline_timeout="2").pipeline_timeout.value == 2
    with pytest.raises(kp.InvalidArgumentError, match="pipeline_timeout"):
        kp.config_report(pipeline_timeout=-1)


REMAINDERS = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { TYPE a[]; };
layout(binding = 1) readonly buffer B { TYPE b[]; };
layout(binding = 2) writeonly buffer C { TYPE c[]; };
layout(binding = 3) writeonly buffer D { TYPE d[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= a.length()) return;
    c[i] = a[i] % b[i];
    PAIR p = PAIR(a[i], b[i]) % PAIR(b[i], TYPE(7));
    d[i] = p.x ^ p.y;
}
"""
KINDS = {"int16_t": "i16vec2", "int": "ivec2", "int64_t": "i64vec2"}


def changed_to_c(words: bytes) -> bytes:
    """The module with OpSRem, which HLSL's compilers write, for OpSMod."""
    found, at = np.frombuffer(words, np.uint32).copy(), 5
    while at < found.size:
        if found[at] & 0xFFFF == 139:
            found[at] -= 1
        at += int(found[at] >> 16)
    return found.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["GLSL", "C"])
def test_remainders_of_negative_ints(mgr, needs, kind, language):
    """Vulkan leaves them open, and NVIDIA's driver gives neither sign's; here they are always these."""
    dtype = np.dtype(kind.removesuffix("_t") if kind != "int" else "int32")
    if dtype.itemsize != 4:
        needs(mgr, f"shaderInt{dtype.itemsize * 8}")
    text = REMAINDERS.replace("TYPE", kind).replace("PAIR", KINDS[kind])
    module = kp.compile(text)
    if language == "C":
        module = changed_to_c(module)
    ends = [np.iinfo(dtype).min + 1, np.iinfo(dtype).max]
    values = np.array([*ends, *range(-9, 10), 100, -100], dtype)
    a, b = (each.reshape(-1) for each in np.meshgrid(values, values[values != 0]))
    c, d = np.zeros_like(a), np.zeros_like(a)
    mgr.kernel(module)(a, b, c, d)
    rest = np.fmod if language == "C" else np.remainder
    np.testing.assert_array_equal(c, rest(a, b))
    np.testing.assert_array_equal(d, rest(a, b) ^ rest(b, dtype.type(7)))
