"""debug="races": accesses of different invocations that are in no order, at least one of them a write."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._debugging.races import race_of
from tests.support.languages import needs_dxc, needs_slang

DEBUG = "races"
HEAD = """#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
"""


def run(mgr, body, n=32, head=HEAD, **options):
    kernel = mgr.kernel(head + body, name="planted", **options)
    x, y = mgr.tensor_t(np.arange(1, n + 1, dtype=np.float32)), mgr.zeros(n)
    kernel(x=x, y=y, grid=n)
    return x.read(), y.read()


def races(messages):
    return {(m.line, m.text.split()[0], m.values[2]) for m in messages if m.kind == "races"}


@pytest.mark.capability(
    "",
    "accesses outside of arrays, races, barriers under conditions and endless loops, found in shaders",
    "kp.Manager",
    "guides/debugging",
)
def test_a_missing_barrier(debugged, messages):
    run(
        debugged,
        "shared float pool[16];\nvoid main() { uint i = gl_GlobalInvocationID.x, l = "
        "gl_LocalInvocationIndex;\n"
        "pool[l] = x[i];\n\ny[i] = pool[15 - l]; }",
    )
    found = races(messages)
    assert found and found <= {(7, "writes", 9), (9, "reads", 7)}
    for message in messages:
        if message.kind == "races":
            (index,), other, _ = message.values
            # The elements are those of the other half, and of the same workgroup.
            mine, theirs = message.invocation[0], other[0]
            assert mine // 16 == theirs // 16 and mine % 16 == 15 - theirs % 16
            assert index in (mine % 16, 15 - mine % 16)
            assert "no barrier is between" in message.text


@pytest.mark.parametrize("barrier", ["barrier();", "memoryBarrierShared(); barrier();"])
def test_a_barrier_orders(debugged, messages, barrier):
    _, y = run(
        debugged,
        "shared float pool[16];\nvoid main() { uint i = gl_GlobalInvocationID.x, l = "
        "gl_LocalInvocationIndex;\n"
        f"pool[l] = x[i]; {barrier} y[i] = pool[15 - l]; }}",
    )
    assert y[:3].tolist() == [16, 15, 14]
    assert messages == []


def test_a_reduction_with_its_barrier_outside_of_the_loop(debugged, messages):
    body = (
        "shared float pool[16];\nvoid main() { uint i = gl_GlobalInvocationID.x, l = "
        "gl_LocalInvocationIndex;\n"
        "pool[l] = x[i];\n%s for (uint s = 8; s > 0; s /= 2) { %s if (l < s) pool[l] += pool[l + s]; }\n"
        "barrier(); if (l == 0) y[gl_WorkGroupID.x] = pool[0]; }"
    )
    run(debugged, body % ("", "barrier();"))
    assert messages == []
    run(debugged, body % ("barrier();", ""))
    assert {line for line, _, _ in races(messages)} == {8}


def test_a_neighbour_in_place(debugged, messages):
    """Also across workgroups, in a buffer."""
    run(
        debugged,
        "void main() { uint i = gl_GlobalInvocationID.x;\nfloat next = x[(i + 1) % 32];\nx[i] += next; "
        "y[i] = 0; }",
    )
    # On GPUs accesses note themselves at the same time: of the two that read before, either's line is told.
    assert races(messages) & {(7, "writes", 6), (7, "writes", 7), (6, "reads", 7)}
    across = [m for m in messages if "another workgroup" in m.text]
    assert {m.values[0][0] for m in across} <= {0, 16}
    assert across and all("workgroups are in no order" in m.text for m in across)


@pytest.mark.parametrize(
    "value",
    [
        "x[i] > 3 ? 1.0 : 2.0",
        "x[i] > 3 ? sin(x[i]) : x[i] * 2",
        "x[i] > 3 && y[n + 1] < 1 ? y[n] : 2.0",
        "x[i] > 3 ? (x[i] > 9 ? 1.0 : y[n]) : 2.0",
    ],
)
def test_both_places_of_a_store_under_a_condition(debugged, messages, value):
    run(
        debugged,
        "void main() { uint i = gl_GlobalInvocationID.x;\nuint n = i / 2;\n"
        f"if (i < 16) {{\ny[n] = {value};\n}} }}",
    )
    found = races(messages)
    assert found and {(line, other) for line, _, other in found} == {(8, 8)}


def test_sums_into_one_element(debugged, messages):
    body = "void main() { uint i = gl_GlobalInvocationID.x;\n%s; y[i + 2] = x[i]; }"
    head = HEAD.replace("float y[]", "uint bins[2]; float y[]")
    kernel = debugged.kernel(head + body % "bins[i % 2] += 1", name="planted")
    kernel(x=debugged.zeros(16), Y=debugged.zeros(20), grid=16)
    assert {line for line, _, _ in races(messages)} == {6}
    assert {m.values[0] for m in messages if m.kind == "races"} == {(0,), (1,)}
    messages.clear()
    kernel = debugged.kernel(head + body % "atomicAdd(bins[i % 2], 1u)", name="planted")
    kernel(x=debugged.zeros(16), Y=debugged.zeros(20), grid=16)
    assert messages == []


def test_atomics_and_plain_reads(debugged, messages):
    body = (
        "shared uint bins[4];\nvoid main() { uint l = gl_LocalInvocationIndex; if (l < 4) bins[l] = "
        "0;\nbarrier();\n"
        "atomicAdd(bins[l %% 4], 1u);\n%s\nif (l < 4) y[l] = float(bins[3 - l]) + x[0]; }"
    )
    _, y = run(debugged, body % "barrier();", n=16)
    assert y[:4].tolist() == [5, 5, 5, 5]
    assert messages == []
    run(debugged, body % "", n=16)
    assert races(messages) <= {(10, "reads", 8), (8, "changes", 10)}
    assert races(messages)


@pytest.mark.parametrize("writer", [0, 9, 15])
@pytest.mark.parametrize("name", ["total", "bins[3]"])
def test_a_first_value_without_a_barrier(debugged, messages, writer, name):
    """Also if the invocation that writes it takes part in the sum itself."""
    head = HEAD.replace("float y[]", "uint bins[]")
    body = (
        f"shared uint total; void main() {{ uint l = gl_LocalInvocationIndex;\n"
        f"if (l == {writer}) {name} = 0;\n%s\n"
        f"atomicAdd({name}, uint(x[l]));\nbarrier(); bins[4 + l] = {name}; }}"
    )
    for barrier, expected in (("barrier();", set()), ("", {(8, "changes", 6), (6, "writes", 8)})):
        bins = debugged.tensor_t(np.zeros(20, np.uint32))
        debugged.kernel(head + body % barrier, name="planted")(x=debugged.full(16, 1.0), bins=bins, grid=16)
        found = races(messages)
        assert bool(found) == bool(expected) == bool(messages)
        assert found <= expected
        assert (bins.read()[4:] == 16).all() or not barrier


@pytest.mark.parametrize(
    ("first", "then", "verb"),
    [
        ("atomicAdd(bins[0], 1u);", "if (l == 15) bins[0] = 0;", "writes"),
        ("atomicAdd(bins[0], 1u);", "if (l == 15) y[l] = bins[0];", "reads"),
        ("bins[0] = 7;", "if (l == 15) atomicAdd(bins[0], 1u);", "changes"),
    ],
)
def test_an_own_access_hides_none_of_others(debugged, messages, first, then, verb):
    """The last access before the invocation's second is its own."""
    body = (
        "shared uint bins[4]; void main() { uint l = gl_LocalInvocationIndex; y[l] = x[l];\n"
        "if (l < 4) bins[l] = 0; barrier();\n%s\n%s\n%s\nbarrier(); y[l] += float(bins[0]); }"
    )
    run(debugged, body % (first, "barrier();", then), n=16)
    assert messages == []
    run(debugged, body % (first, "", then), n=16)
    assert {(line, said) for line, said, _ in races(messages)} == {(9, verb)}


def test_the_last_reader_is_the_writer_itself(debugged, messages):
    run(
        debugged,
        "void main() { uint i = gl_GlobalInvocationID.x; float v = 0; if (i == 3)\n"
        "v = x[4];\n\nx[i] += v + 1; y[i] = 0; }",
        n=16,
    )
    (message,) = (m for m in messages if m.kind == "races" and m.line == 8)
    assert message.text == (
        "writes x[4], which another invocation read (the last read is at <planted>:8): no barrier is between"
    )


def test_the_first_guess_of_a_compare_and_swap(debugged, messages):
    """A sum of floats without an atomic for them."""
    head = HEAD.replace("float y[]", "uint y[]")
    body = (
        "void main() { uint old = y[0], seen;\n"
        "do { seen = old; old = atomicCompSwap(y[0], seen, seen + uint(x[gl_GlobalInvocationID.x])); }\n"
        "while (old != seen); }"
    )
    y = debugged.tensor_t(np.zeros(4, np.uint32))
    debugged.kernel(head + body)(x=debugged.tensor_t(np.ones(32, np.float32)), y=y, grid=32)
    assert y.read()[0] == 32
    assert messages == []


def test_the_same_value_harms_nobody(debugged, messages):
    _, y = run(debugged, "void main() { if (x[gl_GlobalInvocationID.x] > 3.0) y[0] = 1.0; }")
    assert y[0] == 1
    assert messages == []
    run(debugged, "void main() { uint i = gl_GlobalInvocationID.x; if (x[i] > 3.0) y[0] = x[i]; }")
    assert races(messages) == {(5, "writes", 5)}


def test_structs_vectors_and_matrices(debugged, messages):
    """Neighbours in one struct or vector are no conflict; the same component is."""
    head = (
        "#version 450\nlayout(local_size_x = 16) in;\nstruct S { vec3 a; float b; mat2 m; };\n"
        "layout(binding = 0) buffer X { S s[]; };\n"
        "layout(binding = 1) buffer Y { vec4 v[]; };\n"
        "shared struct { float f[3]; vec2 w[2]; } pool[16];\n"
    )
    good = (
        "void main() { uint l = gl_LocalInvocationIndex, i = l / 2;\n"
        "if (l % 2 == 0) { s[i].a = vec3(l); s[i].m[0] = vec2(1); v[i].x = 1; pool[i].f[1] = 2; "
        "pool[i].w[1].x = 1; }\n"
        "else { s[i].b = 1; s[i].m[1] = vec2(2); v[i].y = 2; pool[i].f[2] = 2; pool[i].w[1].y = 1; }\n"
        "barrier(); v[l].z = pool[l].f[1] + pool[l].f[2] + pool[l].w[1].x + pool[l].w[1].y; }"
    )

    def call(body):
        kernel = debugged.kernel(head + body, name="planted")
        kernel(s=debugged.zeros(16 * 8), v=debugged.zeros(64), grid=16)
        found = {re.sub(r"\[\d+\]", "[]", m.text.partition(",")[0]) for m in messages if m.kind == "races"}
        messages.clear()
        assert found or body is good
        return found

    assert call(good) == set()
    assert call(good.replace("s[i].b = 1", "s[i].a.y = 77")) <= {"writes s[].a", "writes s[].a[]"}
    assert call(good.replace("s[i].m[1] = vec2(2)", "s[i].m[0] = vec2(2)")) == {"writes s[].m[]"}
    assert call(good.replace("v[i].y", "v[i].x")) == {"writes v[][]"}
    assert call(good.replace("pool[i].f[2] = 2", "pool[i].f[1] = l")) == {"writes pool[].f[]"}
    assert call(good.replace("pool[i].w[1].y = 1", "pool[i].w[1] = vec2(l)")) <= {
        "writes pool[].w[]",
        "writes pool[].w[][]",
    }


@pytest.mark.parametrize("values", ["vec2(1, 2)", "vec2(i, 1 - i)", "vec2(1, i)"])
def test_vectors_that_are_written_as_a_whole(debugged, messages, values):
    """Slots are those of the vectors; all numbers of one count."""
    head = (
        "#version 450\nlayout(local_size_x = 2) in;\nlayout(binding = 0) buffer X { vec2 x[]; };\n"
        "shared vec2 pool[2];\n"
    )
    body = (
        "void main() { uint i = gl_LocalInvocationIndex;\npool[i] = vec2(i);\nbarrier();\n"
        f"x[0] = {values};\nx[1 + i] = pool[1 - i]; }}"
    )
    debugged.kernel(head + body, name="planted")(x=debugged.zeros(6), grid=2)
    found = set() if "i" not in values else {(8, "writes", 8)}
    assert races(messages) == found


def test_two_names_for_the_same_memory(debugged, messages):
    whole = debugged.tensor_t(np.zeros(96, np.float32))
    body = "void main() { uint i = gl_GlobalInvocationID.x;\nx[i] = 1.0 + i;\nif (i < 16) y[i] = 9.0; }"
    debugged.kernel(HEAD + body, name="planted")(x=whole[:16], y=whole[64:80], grid=16)
    assert messages == []
    debugged.kernel(HEAD + body, name="planted")(x=whole[:80], y=whole[64:80], grid=80)
    assert races(messages) and races(messages) <= {(6, "writes", 7), (7, "writes", 6)}
    assert {m.invocation[0] for m in messages if m.text.startswith("writes x")} <= set(range(64, 80))


def test_what_others_order_is_left_alone(debugged, messages):
    """Coherent memory and fences with flags: the last workgroup sums what the others wrote."""
    head = HEAD + "layout(binding = 2) coherent buffer Z { uint done; float part[]; };\nshared bool last;\n"
    kernel = debugged.kernel(
        head + "void main() { if (gl_LocalInvocationIndex == 0) { part[gl_WorkGroupID.x] = x[0];\n"
        "memoryBarrierBuffer();\n"
        "last = atomicAdd(done, 1u) == gl_NumWorkGroups.x - 1; }\nbarrier();\n"
        "if (last && gl_LocalInvocationIndex == 0) y[0] = part[0] + part[1]; }"
    )
    y = debugged.zeros(1)
    kernel(x=debugged.tensor([3]), y=y, Z=debugged.zeros(3), grid=32)
    assert y.read()[0] == 6
    assert messages == []


def test_small_types(debugged, messages):
    """Bytes of one word are different elements."""
    if not debugged.supports("storageBuffer8BitAccess"):
        return
    head = (
        "#version 450\n#extension GL_EXT_shader_8bit_storage : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\nlayout(local_size_x = 16) in;\n"
        "layout(binding = 0) buffer X { uint8_t x[]; };\n"
    )
    for index, found in (("i", set()), ("i / 2", {f"writes x[{i}]" for i in range(8)})):
        kernel = debugged.kernel(
            head + f"void main() {{ uint i = gl_GlobalInvocationID.x; x[{index}] = uint8_t(i); }}",
            name="planted",
        )
        kernel(x=debugged.tensor_t(np.zeros(16, np.uint8)), grid=16)
        assert {m.text.partition(",")[0] for m in messages if m.kind == "races"} == found
        assert bool(messages) == bool(found)
        messages.clear()


def test_each_dispatch_begins_anew(debugged, messages):
    """In one recording, a recording that runs again, and an indirect dispatch."""
    shift = debugged.kernel(
        HEAD + "void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[(i + 1) % 32]; }", name="shift"
    )
    x, y = debugged.tensor_t(np.arange(32, dtype=np.float32)), debugged.zeros(32)
    sequence = debugged.sequence().record(shift.bind(x=x, y=y)).record(shift.bind(x=y, y=x))
    sequence.eval()
    sequence.eval()
    assert x.read()[:3].tolist() == [4, 5, 6]
    groups = debugged.tensor_t(np.array([2, 1, 1], np.uint32))
    shift(x=x, y=y, indirect=groups)
    assert y.read()[0] == 5
    assert messages == []
    race = debugged.kernel(
        HEAD + "void main() { uint i = gl_GlobalInvocationID.x;\ny[i / 2] = x[i]; }", name="race"
    )
    race(x=x, y=y, indirect=groups)
    assert races(messages) == {(6, "writes", 6)}
    assert {m.values[1][0] for m in messages if m.kind == "races"} <= set(range(0, 32, 2))


class OwnDispatch(kp.OpBase):
    def __init__(self, algorithm, reads, writes):
        self.algorithm, self.reads, self.writes = algorithm, reads, writes

    def record(self, cmd):
        import vulkan as vk

        point, sets = vk.VK_PIPELINE_BIND_POINT_COMPUTE, self.algorithm.vk_descriptor_sets
        layout, commands = self.algorithm.vk_pipeline_layout, cmd.vk_command_buffer
        vk.vkCmdBindPipeline(commands, point, self.algorithm.vk_pipeline)
        vk.vkCmdBindDescriptorSets(commands, point, layout, 0, len(sets), sets, 0, None)
        vk.vkCmdDispatch(commands, *self.algorithm.workgroup)


def test_dispatches_by_commands_of_a_script(make_manager):
    """They have the shader's instruments: earlier dispatches are no part of theirs, and reports name them."""
    pytest.importorskip("vulkan")
    mgr, messages = make_manager(debug="races,printf"), []
    mgr.on_message(messages.append)
    x, y = mgr.tensor_t(np.arange(32, dtype=np.float32)), mgr.zeros(32)
    shift = kp.compile(HEAD + "void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[(i + 1) % 32]; }")
    back = kp.compile(
        HEAD.replace("450\n", "450\n#extension GL_EXT_debug_printf : require\n")
        + "void main() { uint i = gl_GlobalInvocationID.x; x[i] = y[31 - i];"
        'if (i == 3) debugPrintfEXT("three"); }'
    )
    first, second = (mgr.algorithm([x, y], each, (2, 1, 1)) for each in (shift, back))
    for _ in range(2):
        mgr.sequence().record(kp.OpAlgoDispatch(first)).record(OwnDispatch(second, [y], [x])).eval()
    assert x.read()[:3].tolist() == [0, 1, 2]  # there and back, twice
    assert [(m.kind, m.name, m.operation) for m in messages] == [("printf", "OwnDispatch", 1)] * 2


def test_specialized_sizes(debugged, messages):
    head = (
        HEAD
        + "layout(constant_id = 0) const uint N = 2;\nshared float first[N];\nshared float second[N][2];\n"
    )
    kernel = debugged.kernel(
        head + "void main() { uint l = gl_LocalInvocationIndex; first[l] = x[l];\n"
        "second[l][0] = 1; second[l][1] = 2;\n"
        "y[l] = first[l] + second[l][1]; }"
    ).specialize(N=16)
    y = debugged.zeros(16)
    kernel(x=debugged.tensor(np.arange(16)), y=y, grid=16)
    assert y.read()[3] == 5
    assert messages == []


@pytest.mark.parametrize(
    "language", [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]
)
def test_hlsl_and_slang(debugged, messages, language):
    source = (
        "RWStructuredBuffer<float> x;\nRWStructuredBuffer<float> y;\ngroupshared float pool[16];\n"
        '[shader("compute")] [numthreads(16, 1, 1)]\n'
        "void main(uint3 id : SV_DispatchThreadID, uint l : SV_GroupIndex) {\n"
        "pool[l] = x[id.x];\n%s\ny[id.x] = pool[15 - l]; }"
    )
    x = debugged.tensor_t(np.arange(32, dtype=np.float32))
    for barrier in ("GroupMemoryBarrierWithGroupSync();", "AllMemoryBarrierWithGroupSync();"):
        debugged.kernel(source % barrier, language=language)(x=x, y=debugged.zeros(32), grid=32)
    assert messages == []
    debugged.kernel(source % "", language=language)(x=x, y=debugged.zeros(32), grid=32)
    assert races(messages) and races(messages) <= {(6, "writes", 8), (8, "reads", 6)}


@pytest.mark.parametrize(
    ("call", "expected", "rtol"),
    [
        (kp.ops.sum, np.sum, 1e-5),
        (lambda a: kp.ops.cumsum(a.ravel()), np.cumsum, 1e-4),
        (lambda a: kp.ops.topk(a.ravel(), 5)[0], lambda a: np.sort(a.ravel())[:-6:-1], 0),
        (lambda a: kp.ops.bincount((a * 9).astype(np.int32).ravel()).sum(), np.size, 0),
    ],
    ids=["sum", "cumsum", "topk", "bincount"],
)
def test_correct_operations_of_the_library_report_nothing(make_manager, call, expected, rtol):
    mgr = make_manager(debug="races,barriers,loops")
    messages = []
    mgr.on_message(messages.append)
    with mgr.current():
        a = np.random.default_rng(1).random((67, 45), np.float32)
        np.testing.assert_allclose(call(a), expected(a), rtol)
    assert messages == []


def test_strict_raises(make_manager):
    mgr = make_manager(debug="races", strict=True)
    mgr.on_message(lambda message: None)
    with pytest.raises(kp.errors.ValidationError, match=r"workgroups are in no order|no barrier is between"):
        run(mgr, "void main() { uint i = gl_GlobalInvocationID.x; y[0] = x[i]; }")


@pytest.mark.own_driver
def test_the_words_of_a_record():
    """Group 5 of 3 x 2 with sizes 4 x 2: invocation 6 of it has read what invocation 1 writes."""
    words = [6 << 12 | 7, 1 << 31 | 1 << 30 | 6, 5, 1, 4, 2, 1, 3, 2, 9, 1]
    race = race_of(words, 2)
    assert (race.indices, race.site, race.earlier, race.same_group) == ((9, 1), 7, "read", True)
    assert race.other == (2 * 4 + 2, 1 * 2 + 1, 0)
    assert race.text("x[].y[]", "wb", "a.comp:3") == (
        "writes x[9].y[1], which invocation (10, 3, 0) read at a.comp:3: no barrier is between"
    )
    # Group 6 is the second layer: workgroups are 4 x 2 x 3.
    across = race_of([1 << 12, 1 << 31 | 23, 6, 8, 4, 2, 3, 3, 2], 0)
    assert (across.other, across.same_group, across.site) == ((3, 1, 2), False, 0)
    same = race_of([6 << 12, 1 << 31 | 1 << 30 | 1, 5, 1, 4, 2, 1, 3, 2], 0)
    assert same.other is None
    assert same.text("x[]", "ab", "a.comp:3") == (
        "changes x[], which another invocation read (the last read is at a.comp:3): no barrier is between"
    )
    # Only invocations of other groups: the last one is of the same group.
    far = race_of([6 << 12 | 7, 1 << 31 | 1 << 29 | 1 << 28 | 6, 5, 1, 4, 2, 1, 3, 2], 0)
    assert far.text("x[]", "ab", "a.comp:3") == (
        "changes x[], which another invocation of another workgroup wrote (the last write is at a.comp:3): "
        "workgroups are in no order"
    )
    assert same.text("x[]", "ab", "") == "changes x[], which another invocation read: no barrier is between"
