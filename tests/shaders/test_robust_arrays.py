"""Indices beyond arrays in shared and private memory, among push constants and of descriptors: none ends the
process.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.each_driver

HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : enable
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint LENGTH = 16;
layout(push_constant) uniform Push { %s k; float table[8]; };
layout(binding = 0) buffer A { float a[]; };
"""

# What is declared, the array, its length.
SIXTEEN = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16"
ARRAYS = {
    "shared": ("shared float s[64];", "s", 64),
    "shared, length by a constant": ("shared float s[LENGTH];", "s", 16),
    "shared, in a struct": ("struct S { float head; float x[8]; float tail; }; shared S s[4];", "s[2].x", 8),
    "shared, of structs": ("struct S { float x[4]; }; shared S s[5];", "s[K].x[2]", 5),
    "private": ("float p[64];", "p", 64),
    "private, of vectors": ("vec4 p[3];", "p[2]", 4),
    "private, of matrices": ("mat3x4 p;", "p[K].y", 3),
}
INDICES = (0, 7, 63, 64, 100, 1 << 20, 1 << 30, -1, -(1 << 30), (1 << 31) - 1)


def expected(index, length):
    """The element that an index reaches: a negative one is beyond all lengths."""
    return min(index & 0xFFFFFFFF, length - 1)


def at(array):
    return array if "K" in array else array + "[K]"


@pytest.mark.parametrize("optimize", ["none", "performance"])
@pytest.mark.parametrize("name", ARRAYS)
def test_an_index_beyond_the_array_reaches_its_last_element(mgr, name, optimize):
    declared, array, length = ARRAYS[name]
    each = at(array)
    write = "".join(f"{each.replace('K', str(i))} = float({i}) + a[0]; " for i in range(length))
    source = (
        HEAD % "int"
        + declared
        + f"void main() {{ if (gl_LocalInvocationIndex == 0u) {{ {write} a[1] = {each.replace('K', 'k')}; "
        f"{each.replace('K', 'k')} = 1000.0; "
        + "".join(f"a[{2 + i}] = {each.replace('K', str(i))}; " for i in range(length))
        + "} }"
    )
    kernel = mgr.kernel(source, optimize=optimize)
    for k in INDICES:
        a = np.zeros(length + 2, np.float32)
        kernel(a, k=k, table=np.zeros(8, np.float32), groups=1)
        want = np.arange(length, dtype=np.float32)
        assert a[1] == want[expected(k, length)], k
        want[expected(k, length)] = 1000
        np.testing.assert_array_equal(a[2:], want, str(k))


@pytest.mark.parametrize("optimize", ["none", "performance"])
def test_tables_and_push_constants(mgr, optimize):
    kernel = mgr.kernel(
        HEAD % "int"
        + f"const float T[16] = float[]({SIXTEEN});"
        + "void main() { if (gl_LocalInvocationIndex == 0u) { a[0] = T[k]; a[1] = table[k]; vec3 v = "
        "vec3(gl_WorkGroupSize); "
        "a[2] = v[k]; } }",
        optimize=optimize,
    )
    for k in INDICES:
        a = np.zeros(3, np.float32)
        kernel(a, k=k, table=np.arange(8, dtype=np.float32), groups=1)
        assert a[0] == 1 + expected(k, 16) and a[1] == expected(k, 8), k
        if k < 3 and k >= 0:
            assert a[2] == (64, 1, 1)[k]


@pytest.mark.parametrize(
    ("kind", "feature", "indices"),
    [
        ("int8_t", "shaderInt8", (0, 63, 64, 127, -1, -128)),
        ("uint8_t", "shaderInt8", (0, 63, 64, 255)),
        ("int16_t", "shaderInt16", (0, 63, 64, 32767, -1, -32768)),
        ("uint16_t", "shaderInt16", (0, 63, 64, 65535)),
        ("uint", "robustBufferAccess", (0, 63, 64, 1 << 31, (1 << 32) - 1)),
        ("int64_t", "shaderInt64", (0, 63, 64, 1 << 32, (1 << 32) + 5, -1, -(1 << 62))),
        ("uint64_t", "shaderInt64", (0, 63, 64, (1 << 32) + 5, (1 << 64) - 1)),
    ],
)
@pytest.mark.parametrize("length", ["64", "LENGTH"])
def test_indices_of_all_widths(mgr, needs, kind, feature, indices, length):
    needs(mgr, feature)
    push = {"8": "storagePushConstant8", "1": "storagePushConstant16"}.get(kind.strip("uint_")[:1])
    if push:
        needs(mgr, push)
    wide = kind.endswith("64_t")
    index = {"int64_t": "int(k)", "uint64_t": "uint(k)"}.get(kind, "k")
    source = (
        HEAD
        % kind
        + f"shared float s[{length}]; void main() {{ uint i = gl_LocalInvocationIndex; s[i] = float(i); "
        f"barrier(); if (i == 0u) {{ a[0] = s[{index}]; a[1] = table[0]; }} }}"
    )
    code = source
    if wide:  # SPIR-V takes indices of 64 bits, GLSL does not: leave the conversion out
        code = kp.disassemble(kp.compile(source, optimize="none"), friendly_names=False)
        made, given = re.search(r"(%\d+) = Op[SU]Convert %\d+ (%\d+)", code).groups()
        code = re.sub(rf"(OpAccessChain .*) {made}\b", rf"\1 {given}", code)
        assert re.search(rf"OpAccessChain .* {given}\b", code)
    kernel = mgr.kernel(code, optimize="none").specialize({3: 64})
    for k in indices:
        a = np.zeros(2, np.float32)
        kernel(a, k=k, table=np.zeros(8, np.float32), groups=1)
        assert a[0] == (k if 0 <= k < 64 else 63), k


def test_arrays_of_bindings(mgr, needs):
    needs(mgr, "shaderStorageBufferArrayDynamicIndexing")
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x = 1) in; layout(push_constant) uniform P { int k; };"
        "layout(binding = 0) buffer B { float x[]; } b[3]; void main() { b[k].x[0] = 5.0; }"
    )
    for k in (0, 2, 3, 1000, -1):
        tensors = [mgr.zeros(4) for _ in range(3)]
        kernel(tensors, k=k, groups=1)
        assert [float(t.read()[0]) for t in tensors] == [5.0 * (i == expected(k, 3)) for i in range(3)]


def test_a_write_beyond_a_buffer_is_still_dropped(mgr):
    """Buffers are the device's to guard: a clamped write would land in the last element."""
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x = 64) in; layout(binding = 0) buffer A { float a[]; }; shared "
        "float s[64];"
        "void main() { uint i = gl_GlobalInvocationID.x; s[i & 63u] = 1.0; barrier(); a[i] = float(i) * s[(i "
        "* 7u) & 63u]; }"
    )
    a = mgr.zeros(40)
    kernel(a, groups=1)
    np.testing.assert_array_equal(a.read(), np.arange(40, dtype=np.float32))


def test_atomics_on_shared_memory(mgr):
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x = 64) in; layout(binding = 0) buffer A { uint a[]; };"
        "layout(binding = 1) readonly buffer V { uint v[]; }; shared uint h[16];"
        "void main() { uint i = gl_LocalInvocationIndex; if (i < 16u) h[i] = 0u; barrier(); "
        "atomicAdd(h[v[i]], 1u);"
        "barrier(); if (i < 16u) a[i] = h[i]; }"
    )
    values = np.arange(64, dtype=np.uint32) * 3
    out = kernel(np.zeros(16, np.uint32), values, groups=1)
    np.testing.assert_array_equal(out, np.bincount(np.minimum(values, 15), minlength=16))


def test_without_robust_access_code_is_left_as_it_is(make_manager):
    fast = make_manager(robust_access=False)
    assert "robustBufferAccess" not in fast.enabled_features
    kernel = fast.kernel(
        HEAD % "int" + "shared float s[64]; void main() { s[k] = a[0]; barrier(); a[1] = s[k]; }"
    )
    a = np.array([3, 0], np.float32)
    kernel(a, k=5, table=np.zeros(8, np.float32), groups=1)
    assert a[1] == 3


ATOMICS = {  # at index i of a buffer: the result within the buffer, the element after it
    "atomicAdd(x, 5u)": lambda x: (x, x + 5),
    "atomicMax(x, 100u)": lambda x: (x, max(x, 100)),
    "atomicMin(x, 2u)": lambda x: (x, min(x, 2)),
    "atomicAnd(x, 6u)": lambda x: (x, x & 6),
    "atomicOr(x, 64u)": lambda x: (x, x | 64),
    "atomicXor(x, 3u)": lambda x: (x, x ^ 3),
    "atomicExchange(x, 77u)": lambda x: (x, 77),
    "atomicCompSwap(x, 9u, 77u)": lambda x: (x, 77 if x == 9 else x),
    "atomicLoad(x, 1, 64, 2)": lambda x: (x, x),
    "0u; atomicStore(x, 55u, 1, 64, 4)": lambda x: (0, 55),
}
PLACES = {  # declared, the element at i, how many elements there are
    "run-time array": ("buffer A { uint a[]; };", "a[i]", 16),
    "run-time array of structs": ("struct S { uint p; uint q[3]; }; buffer A { uint head[4]; S a[]; };",
    "a[i].q[1]", 3),
    "array of structs, index within": ("struct S { uint p; uint q[3]; }; buffer A { uint head[4]; S a[]; };",
    "a[1].q[i]", 3),
    "array with a length": ("buffer A { uint a[10]; uint rest[6]; };", "a[i]", 10),
}  # fmt: skip
BEYOND = (1 << 16, 1 << 28, (1 << 30) + 3, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


def _element(place, i):
    """Where it lies in the buffer's 16 numbers."""
    return {"run-time array": i, "run-time array of structs": 4 + 4 * i + 2, "array with a length": i}.get(
        place, 9 + i
    )


def _drops(mgr):
    return "SwiftShader" in mgr.get_device_properties()["device_name"]


@pytest.mark.parametrize("optimize", ["none", "performance"])
@pytest.mark.parametrize("place", PLACES)
def test_atomics_beyond_a_buffer(mgr, place, optimize):
    """SwiftShader ends the process on these, so there they are left out, with the result 0.

    Others drop them or stay in the buffer.
    """
    declared, element, count = PLACES[place]
    dropped = _drops(mgr)
    for call, model in ATOMICS.items():
        vulkan = "atomicLoad" in call or "Store" in call
        source = (
            "#version 450\n"
            + ("#extension GL_KHR_memory_scope_semantics : enable\n" if vulkan else "")
            + "layout(local_size_x = 1) in; layout(push_constant) uniform P { uint i; };"
            f"{declared.replace('buffer A', 'layout(binding = 0) buffer A')} layout(binding = 1) buffer R {{ "
            "uint r[]; };"
            f"void main() {{ r[0] = {call.replace('(x', '(' + element)}; r[1] = 1u; }}"
        )
        kernel = mgr.kernel(source, optimize=optimize)
        before = np.arange(9, 25, dtype=np.uint32)
        for i in range(count):
            a, r = before.copy(), np.full(2, 99, np.uint32)
            kernel(a, r, i=i, groups=1)
            at = _element(place, i)
            result, after = model(int(before[at]))
            assert (r.tolist(), a[at]) == ([result, 1], after), (call, i)
            assert np.delete(a, at).tolist() == np.delete(before, at).tolist()
        for i in BEYOND if dropped else ():
            a, r = before.copy(), np.full(2, 99, np.uint32)
            kernel(a, r, i=i, groups=1)
            assert r.tolist() == [0, 1], (call, i)
            assert a.tolist() == before.tolist(), (call, i)


@pytest.mark.parametrize("optimize", ["none", "performance"])
def test_atomics_in_control_flow(mgr, optimize):
    """In conditions, loops of each kind, switches and functions, whose blocks are cut in two.

    As if the far ones were 0.
    """
    source = (
        "#version 450\nlayout(local_size_x = 32) in; layout(push_constant) uniform P { uint far; };"
        "layout(binding = 0) buffer A { uint a[]; }; layout(binding = 1) buffer R { uint r[]; };"
        "uint add(uint i) { return atomicAdd(a[i], 1u) + atomicAdd(a[far], 1u); }"
        "void main() { uint i = gl_LocalInvocationIndex; uint sum = far & 1u;"
        "while (atomicAdd(a[i], 1u) < 5u) sum += atomicAdd(a[far + i], 3u) + 1u;"
        "do { sum += 2u; } while (atomicAdd(a[i], 1u) < 8u && atomicOr(a[far], 1u) == 0u);"
        "for (uint k = 0u; k < atomicMax(a[i], 4u) && k < 9u; k += 1u + atomicAdd(a[far], 1u)) sum += add(i) "
        "> 9u ? 0u : 1u;"
        "if (i % 2u == 0u) sum += atomicExchange(a[i], 20u) * 1000u; else sum += atomicExchange(a[far + i], "
        "20u) + 7000u;"
        "switch (i & 3u) { case 1u: sum += add(i); case 2u: a[i] += 100u; break; default: atomicAdd(a[far], "
        "1u); }"
        "bool b = atomicAdd(a[i], 1u) > 30u && atomicAdd(a[far], 1u) == 0u; r[i] = b ? sum : sum + 50000u; }"
    )
    if not _drops(mgr):
        pytest.skip("only on SwiftShader have atomics beyond a buffer the result 0 for certain")
    nothing = re.sub(r"atomic(Add|Or|Exchange)\(a\[far[^\]]*\], \d+u\)", "0u", source)
    assert nothing.count("atomic") == source.count("atomic") - 7
    results = []
    for code in (source, nothing.replace("default: 0u;", "default: break;")):
        a, r = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
        mgr.kernel(code, optimize=optimize)(a, r, far=1 << 28, groups=1)
        results.append((a.tolist(), r.tolist()))
    assert results[0] == results[1]
    assert len(set(results[0][1])) > 2
