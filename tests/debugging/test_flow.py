"""debug="barriers" and debug="loops": barriers that some invocations miss, loops with too many turns."""

from __future__ import annotations

import numpy as np

from tests.support.languages import needs_slang

DEBUG = "barriers,loops"
HEAD = """#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer X { float x[]; };
shared float pool[16];
"""


def run(mgr, body, n=32, head=HEAD, **options):
    x = mgr.zeros(n)
    mgr.kernel(head + body, name="planted", **options)(x=x, grid=n)
    return x.read()


def told(messages):
    return [(m.kind, m.line, m.values) for m in messages]


def test_a_barrier_under_a_condition(debugged, messages):
    run(
        debugged,
        "void main() { uint l = gl_LocalInvocationIndex; pool[l] = 1;\nif (l < 8) {\nbarrier(); }\n"
        "x[gl_GlobalInvocationID.x] = pool[l]; }",
    )
    assert told(messages) == [("barriers", 7, (8, 16))] * 2
    assert messages[0].text == "8 of 16 invocations of the workgroup reach this barrier"


def test_a_return_before_the_barrier(debugged, messages):
    run(
        debugged,
        "void main() { uint i = gl_GlobalInvocationID.x; if (i >= 20) return; pool[i % 16] = 1;\n"
        "barrier(); x[i] = pool[0]; }",
    )
    assert told(messages) == [("barriers", 6, (4, 16))]
    assert messages[0].invocation[0] in range(16, 20)


def test_barriers_in_a_loop(debugged, messages):
    body = (
        "void main() { uint l = gl_LocalInvocationIndex; pool[l] = 0;\n"
        "for (uint i = 0; i < %s; ++i) {\nbarrier(); pool[l] += 1; }\nbarrier(); "
        "x[gl_GlobalInvocationID.x] = pool[l]; }"
    )
    assert run(debugged, body % "5")[0] == 5
    assert messages == []
    run(debugged, body % "(l == 3 ? 6 : 5)")
    assert told(messages) == [("barriers", 7, (1, 16))] * 2


def test_barriers_of_specialized_sizes(debugged, messages):
    head = HEAD.replace("local_size_x = 16", "local_size_x_id = 3, local_size_y = 2")
    body = (
        "void main() { uint l = gl_LocalInvocationIndex; pool[l] = 1; barrier();\n"
        "if (l > 4) barrier(); x[l] = pool[l]; }"
    )
    head = head.replace("in;", "in;\nlayout(constant_id = 3) const uint WIDTH = 1;", 1)
    for size in (2, 8):
        kernel = debugged.kernel(head + body, name="planted").specialize(WIDTH=size)
        kernel(x=debugged.zeros(16), groups=1)
    assert told(messages) == [("barriers", 7, (11, 16))]


@needs_slang
def test_slang(debugged, messages):
    run(
        debugged,
        "RWStructuredBuffer<float> x;\ngroupshared float pool[16];\n"
        '[shader("compute")] [numthreads(16, 1, 1)]\n'
        "void main(uint3 id : SV_DispatchThreadID, uint l : SV_GroupIndex) {\n"
        "pool[l] = 1;\nif (l < 4)\nGroupMemoryBarrierWithGroupSync();\nx[id.x] = pool[l]; }",
        head="",
        language="slang",
    )
    assert told(messages) == [("barriers", 7, (4, 16))] * 2


def test_a_loop_with_too_many_turns(debugged, messages):
    body = (
        "void main() { float sum = x[0];\n\nfor (uint i = 0; i < %s; ++i)\n"
        "sum = sum * 0.5 + 1.0;\nx[0] = sum; }"
    )
    run(debugged, body % "60000u", n=1)
    assert messages == []
    run(debugged, body % "70000u", n=1)
    assert {(kind, values) for kind, _, values in told(messages) if kind == "loops"} == {("loops", (65535,))}
    assert {m.line for m in messages if m.kind == "loops"} <= {7, 8}
    assert messages[0].text.startswith("the loops of an invocation have made 65535 turns")


def test_all_loops_of_an_invocation_count(debugged, messages):
    run(
        debugged,
        "void main() { float sum = x[0];\nfor (uint i = 0; i < 300; ++i) for (uint j = 0; j < 300; ++j) "
        "sum += 1.0;\n"
        "x[0] = sum; }",
        n=1,
    )
    assert {m.kind for m in messages} == {"loops", "dropped"} or {m.kind for m in messages} == {"loops"}


def test_other_words_add_nothing(make_manager):
    mgr = make_manager(debug="printf")
    messages = []
    mgr.on_message(messages.append)
    run(mgr, "void main() { if (gl_LocalInvocationIndex < 3) barrier(); x[0] = 1.0; }")
    assert messages == []
    assert np.isfinite(mgr.zeros(1).read()).all()
