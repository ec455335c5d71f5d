"""debug="bounds": accesses outside of arrays are reported, and do nothing."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import python
from tests.support.languages import needs_dxc, needs_slang

DEBUG = "bounds"
HEAD = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
"""


def run(mgr, body, x, y, head=HEAD, **options):
    kernel = mgr.kernel(head + body, name="planted", **options)
    t, u = mgr.tensor(x), mgr.tensor(y)
    kernel(x=t, y=u)
    return t.read(), u.read()


def test_reads_and_writes_of_buffers(debugged, messages):
    x, y = run(
        debugged,
        "void main() { uint i = gl_GlobalInvocationID.x;\ny[i] = x[i + 1];\ny[i + 2] = 9.0; }",
        [1, 2, 3, 4],
        [7, 7, 7, 7],
    )
    assert y.tolist()[:2] == [2, 3]
    assert x.tolist() == [1, 2, 3, 4]
    by_line = sorted((m.line, m.invocation, m.values, m.text) for m in messages)
    assert [each[:3] for each in by_line] == [
        (6, (3, 0, 0), (4, 4)),
        (7, (2, 0, 0), (4, 4)),
        (7, (3, 0, 0), (5, 4)),
    ]
    assert by_line[0][3] == "reads element 4 of x[], which has 4: the read gives 0"
    assert by_line[1][3] == "writes element 4 of y[], which has 4: the write is skipped"
    assert {(m.kind, m.name, m.operation) for m in messages} == {("bounds", "planted", 0)}


OUTSIDE = HEAD + "void main() { uint i = gl_GlobalInvocationID.x;\ny[i] = x[i + 1]; }"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("how", ["destroy", "with", "recording"])
def test_work_that_nobody_waits_for_is_reported_at_the_end(make_manager, strict, how):
    mgr = make_manager(debug=DEBUG, strict=strict)
    got = []
    mgr.on_message(got.append)
    kernel, t, u = mgr.kernel(OUTSIDE), mgr.tensor([1, 2, 3, 4]), mgr.zeros(4)
    sequence = mgr.sequence().record(kernel.bind(t, u))
    error = pytest.raises(kp.ValidationError, match="reads element 4") if strict else contextlib.nullcontext()
    with error:  # also by the call that submits, if the work is done by then
        if how == "recording":
            sequence.eval_async()
        else:
            kernel.submit(t, u)
        if how == "with":
            with mgr:
                pass
        mgr.destroy()
    mgr.destroy()
    assert [m.line for m in got] == [6] and not mgr.is_init()


def test_the_end_of_a_script_reports(debugged):
    script = f"""
import kompute_py as kp
mgr = kp.Manager(debug="bounds")
kernel = mgr.kernel({OUTSIDE!r})
kernel.submit(mgr.tensor([1, 2, 3, 4]), mgr.zeros(4))
"""
    done = python("-c", script)
    assert "reads element 4 of x[]" in done.stderr


def test_a_write_far_outside_ends_nothing(debugged, messages):
    x, _ = run(
        debugged,
        "void main() { x[gl_GlobalInvocationID.x + 1000000000u] = 1.0; y[0] = 2.0; }",
        [1, 2, 3, 4],
        [0],
    )
    assert x.tolist() == [1, 2, 3, 4]
    assert sorted(m.values[0] for m in messages) == [10**9 + i for i in range(4)]


def test_negative_indices(debugged, messages):
    run(debugged, "void main() { y[0] = x[int(gl_LocalInvocationIndex) - 2]; }", [1, 2], [0])
    assert sorted(m.values[0] for m in messages) == [-2, -1]


def test_shared_local_and_constant_arrays(debugged, messages):
    _, y = run(
        debugged,
        "shared float pool[3];\nconst float table[2] = float[](5.0, 6.0);\n"
        "void main() { uint i = gl_LocalInvocationIndex; float own[2]; own[0] = 1.0; own[1] = 2.0;\n"
        "pool[i] = 1.0;\nbarrier(); vec2 v = vec2(3.0 * pool[0], 4.0);\n\n"
        "y[i] = own[i];\ny[i] += table[i];\ny[i] += v[i]; }",
        [0],
        [0, 0, 0, 0],
    )
    assert y.tolist() == [9, 12, 0, 0]
    places = {(m.line, m.values) for m in messages}
    assert {(8, (3, 3)), (11, (2, 2)), (11, (3, 2))} <= places


def test_atomics_structs_and_matrices(debugged, messages):
    head = HEAD + "struct S { vec2 at; float w[2]; };\nlayout(binding = 2) buffer Z { uint count; S z[]; };\n"
    kernel = debugged.kernel(
        head
        + "layout(binding = 3) buffer U { uint u[]; };\nvoid main() { uint i = gl_LocalInvocationIndex;\n"
        "atomicAdd(u[i], 1u);\nz[i].w[i] = x[0]; y[0] = 1.0; }"
    )
    u = debugged.tensor_t(np.zeros(2, np.uint32))
    kernel(x=debugged.zeros(1), y=debugged.zeros(1), Z=debugged.zeros(18), u=u)
    assert u.read().tolist() == [1, 1]
    assert sorted((m.values) for m in messages if "changes" in m.text) == [(2, 2), (3, 2)]
    assert sorted(m.values for m in messages if "z" in m.text.partition(",")[0]) == [(2, 2), (3, 2)]


def test_a_loop_around_the_access(debugged, messages):
    """The access is in a loop's header after optimization; flow stays as it is."""
    _, y = run(
        debugged,
        "void main() { if (gl_LocalInvocationIndex != 0) return; float sum = 0.0;\n"
        "for (uint i = 0; x[i] > 0.0; ++i) { if (i == 6) break; sum += x[i]; }\n"
        "uint j = 0; do { sum += y[j]; } while (++j < 3); y[0] = sum; }",
        [1, 2, 3],
        [10, 20],
    )
    assert y[0] == 36
    assert sorted(m.values for m in messages) == [(2, 2), (3, 3)]


def test_specialization_push_constants_and_many_sites(debugged, messages):
    head = HEAD + (
        "layout(constant_id = 0) const uint N = 2;\nlayout(push_constant) uniform P { uint shift; };\n"
        "shared float pool[N];\n"
    )
    kernel = debugged.kernel(
        head + "void main() { uint i = gl_LocalInvocationIndex; pool[i] = 1.0; barrier();\n"
        "y[i] = x[i + shift] + pool[0]; }"
    )
    y = debugged.zeros(4)
    kernel(x=debugged.zeros(4), y=y, shift=0)
    assert sorted(m.values for m in messages) == [(2, 2), (3, 2)]
    messages.clear()
    kernel.specialize(N=4)(x=debugged.zeros(4), y=y, shift=1)
    assert [m.values for m in messages] == [(4, 4)]


def test_many_faults_of_one_place_are_counted(debugged, messages):
    run(debugged, "void main() { y[gl_GlobalInvocationID.x] = x[0] + 1e9 * x[9]; }", [1] * 3, [0] * 100)
    assert [m.kind for m in messages] == ["bounds"] * 10 + ["dropped"]
    assert messages[-1].text.endswith("90 more like this (x[])")


def test_repeated_faults_of_an_invocation_are_counted(debugged, messages):
    """It tells the first of each place, whatever else it does wrong."""
    body = "void main() { for (uint i = 0; i < 9; ++i) { y[i] = 1.0; if (i > 5) y[3 * i] = x[i + 1]; } }"
    kernel = debugged.kernel(HEAD.replace("local_size_x = 4", "local_size_x = 1") + body, name="planted")
    kernel(x=debugged.tensor([1] * 4), y=debugged.zeros(7), grid=1)
    faults = [(m.text.partition(" of")[0], m.values) for m in messages if m.kind == "bounds"]
    assert sorted(faults) == [
        ("reads element 7", (7, 4)),
        ("writes element 18", (18, 7)),
        ("writes element 7", (7, 7)),
    ]
    assert sorted(m.text for m in messages if m.kind == "dropped") == [
        "<planted>:5: 1 more like this (y[])",
        "<planted>:5: 2 more like this (x[])",
        "<planted>:5: 2 more like this (y[])",
    ]


def test_faults_before_a_loop_that_is_cut_off(debugged, messages):
    """llvmpipe grants a loop that comes later one turn."""
    body = (
        "void main() { y[9] = 1; float v = x[0]; "
        "for (uint i = 0; i < 100000 && v > 0.0; ++i) v *= 0.99999; y[0] = v; }"
    )
    kernel = debugged.kernel(HEAD.replace("local_size_x = 4", "local_size_x = 1") + body, name="planted")
    kernel(x=debugged.tensor([1]), y=debugged.zeros(1), grid=1)
    assert [m.values for m in messages] == [(9, 1)]


def test_strict_raises(make_manager):
    mgr = make_manager(debug="bounds", strict=True)
    mgr.on_message(lambda message: None)
    with pytest.raises(kp.errors.ValidationError, match="reads element 9 of x") as error:
        run(mgr, "void main() { y[0] = x[9]; }", [1], [2])
    assert error.value.messages[0][1] == "bounds"


@pytest.mark.parametrize(
    "language", [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]
)
def test_hlsl_and_slang(debugged, messages, language):
    kernel = debugged.kernel(
        "RWStructuredBuffer<float> x;\nRWStructuredBuffer<float> y;\ngroupshared float pool[2];\n"
        '[shader("compute")] [numthreads(4, 1, 1)]\nvoid main(uint3 id : SV_DispatchThreadID) {\n'
        "pool[id.x] = 1;\nGroupMemoryBarrierWithGroupSync();\n"
        "y[id.x] = x[id.x + 2] + pool[0]; }",
        language=language,
    )
    y = debugged.zeros(4)
    kernel(x=debugged.tensor([1, 2, 3, 4]), y=y)
    assert y.read().tolist() == [4, 5, 1, 1]
    assert sorted((m.line, m.values) for m in messages) == [
        (6, (2, 2)), (6, (3, 2)), (8, (4, 4)), (8, (5, 4)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype", "count"),
    [
        ("uint8_t", np.uint8, 1), ("u8vec4", np.uint8, 4), ("int8_t", np.int8, 1), ("uint16_t", np.uint16, 1),
        ("int16_t", np.int16, 1), ("float16_t", np.float16, 1), ("f16vec4", np.float16, 4),
    ],
)  # fmt: skip
def test_small_numbers_that_the_shader_only_stores(debugged, messages, needs, name, dtype, count):
    """Without shaderInt8 and its kin, no function may take or return them."""
    size = np.dtype(dtype).itemsize
    needs(debugged, f"storageBuffer{8 * size}BitAccess")
    every = np.arange(2 ** (8 * size), dtype=f"<u{size}").view(dtype)
    kernel = debugged.kernel(
        "#version 450\n#extension GL_EXT_shader_8bit_storage : require\n"
        "#extension GL_EXT_shader_16bit_storage : require\nlayout(local_size_x = 64) in;\n"
        f"layout(binding = 0) buffer X {{ {name} x[]; }};\nlayout(binding = 1) buffer Y {{ {name} y[]; }};\n"
        "void main() { uint i = gl_GlobalInvocationID.x;\ny[i] = x[i];\n"
        "if (i == 5) y[i - 1] = x[i + 65536]; }"
    )
    y = debugged.tensor_t(np.ones_like(every))
    kernel(x=debugged.tensor_t(every), y=y, grid=every.size // count)
    expected = every.copy()
    expected[4 * count : 5 * count] = 0
    np.testing.assert_array_equal(y.read(), expected)
    assert [(m.line, m.values) for m in messages] == [(9, (65541, every.size // count))]


@pytest.mark.parametrize(
    ("call", "expected", "rtol"),
    [
        (kp.ops.sum, np.sum, 1e-5),
        (lambda a: kp.ops.sort(a.ravel()), lambda a: np.sort(a.ravel()), 0),
        (lambda a: kp.ops.matmul(a, a.T), lambda a: a @ a.T, 1e-4),
        (lambda a: kp.ops.cumsum(a.ravel()), np.cumsum, 1e-4),
    ],
    ids=["sum", "sort", "matmul", "cumsum"],
)
def test_correct_operations_of_the_library_report_nothing(debugged, messages, call, expected, rtol):
    with debugged.current():
        a = np.random.default_rng(1).random((67, 45), np.float32)
        np.testing.assert_allclose(call(a), expected(a), rtol)
    assert messages == []


def test_all_sets_are_taken(debugged):
    most = debugged.get_device_properties()["limits"]["maxBoundDescriptorSets"]
    source = "#version 450\n" + "".join(
        f"layout(set = {i}, binding = 0) buffer X{i} {{ float x{i}[]; }};\n" for i in range(most)
    )
    with pytest.raises(kp.errors.UnimplementedError, match=f"uses all {most} descriptor sets"):
        debugged.kernel(
            source + "void main() { x0[0] = " + " + ".join(f"x{i}[1]" for i in range(most)) + "; }"
        )
