"""debug="printf": messages of shaders arrive in Python."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._debugging.printf import formatted
from tests.support.languages import needs_dxc, needs_slang

DEBUG = "printf"
HEAD = """#version 450
#extension GL_EXT_debug_printf : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
"""


def test_each_of_10_000_invocations_is_heard(debugged, messages):
    kernel = debugged.kernel(
        HEAD + "void main() { uint i = gl_GlobalInvocationID.x;\n"
        'if (i < x.length()) debugPrintfEXT("i %u x %f", i, x[i]); x[i] += 1.0; }',
        name="speaks",
    )
    kernel(np.arange(10_000, dtype=np.float32) / 2)
    assert len(messages) == 10_000
    assert {m.kind for m in messages} == {"printf"}
    by_place = sorted(messages, key=lambda m: m.invocation)
    assert [m.invocation for m in by_place] == [(i, 0, 0) for i in range(10_000)]
    assert [m.values for m in by_place] == [(i, i / 2) for i in range(10_000)]
    assert by_place[7].text == "i 7 x 3.500000"
    assert {(m.name, m.operation, m.line) for m in messages} == {("speaks", 0, 6)}
    assert str(by_place[7]).endswith(":6: i 7 x 3.500000 ('speaks', operation 1, invocation (7, 0, 0))"), str(
        by_place[7]
    )


def test_more_than_fit_are_counted(debugged, messages):
    kernel = debugged.kernel(
        HEAD + "void main() { uint i = gl_GlobalInvocationID.x;\n"
        'for (uint n = 0; n < 4; ++n) debugPrintfEXT("%u", i); x[i] = 1.0; }'
    )
    kernel(np.zeros(64 * 1024, np.float32))
    kept = [m for m in messages if m.kind == "printf"]
    assert len(kept) == 2**20 // 8
    assert messages[-1].kind == "dropped"
    assert messages[-1].text.startswith(f"{4 * 64 * 1024 - len(kept)} more messages")
    messages.clear()
    kernel(np.zeros(64, np.float32))  # the buffer begins anew
    assert [m.kind for m in messages] == ["printf"] * 256


@pytest.mark.capability("", "messages from shaders", "kp.Manager", "guides/debugging")
def test_all_types(debugged, messages, needs):
    needs(debugged, "shaderInt64")
    needs(debugged, "shaderFloat64")
    kernel = debugged.kernel(
        "#version 450\n#extension GL_EXT_debug_printf : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
        "layout(binding = 0) buffer X { float x[]; };\nvoid main() {\n"
        "float h = x[0]; int n = int(x[1]);\n"
        'debugPrintfEXT("%d %u %x|%5.2f|%1.1v3f %v2d %% %ul %lx %f %e", n, uint(n), uint(n), h, '
        "vec3(h, 2 * h, 3 * h), ivec2(n, -n), uint64_t(n) << 40, int64_t(255), double(h), h);\n"
        'debugPrintfEXT("nothing"); x[0] = 0.0; }'
    )
    kernel(np.array([0.5, -3], np.float32))
    assert [m.text for m in messages] == [
        f"-3 4294967293 fffffffd| 0.50|0.5, 1.0, 1.5 -3, 3 % {(-3 << 40) % 2**64} ff 0.500000 5.000000e-01",
        "nothing",
    ]
    assert messages[0].values[4] == (0.5, 1.0, 1.5)


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("%d", [], "<%d has no argument>"),
        ("%d", [1.5], "<%d does not fit the argument 1.5>"),
        ("%f", [1], "<%f does not fit the argument 1>"),
        ("%v3f", [(1.0, 2.0)], "<%v3f takes 3 components, and the argument is (1.0, 2.0)>"),
        ("%f", [(1.0, 2.0)], "<%f takes 1 component, and the argument is (1.0, 2.0)>"),
        ("a", [1, 2], "a <2 more arguments than conversions: 1, 2>"),
        ("%s %5d|%-5d|%05d|%+d", ["s", 1, 2, 3, 4], "s     1|2    |00003|+4"),
        ("%q 100% %", [], "%q 100% %"),
        ("%f %g", [float("nan"), float("inf")], "nan inf"),
        ("%a %o %X", [1.0, 8, 255], "0x1.0000000000000p+0 10 FF"),
        ("%d", [None], "<%d does not fit the argument None>"),
        ("%ld %lu %llu", [-1, 2**63, 3], "-1 9223372036854775808 3"),
    ],
)
def test_formats(template, values, text):
    assert formatted(template, values) == text


def test_sequences_name_the_operation(debugged, messages):
    t = debugged.zeros(1)
    source = HEAD.replace("64", "1") + 'void main() { debugPrintfEXT("%f", x[0]); x[0] += 1.0; }'
    first, second = debugged.kernel(source, name="first"), debugged.kernel(source, name="second")
    sequence = debugged.sequence().record(first.bind(t)).record(second.bind(t)).record(first.bind(t))
    for _ in range(2):
        sequence.eval()
    assert [(m.name, m.operation, m.values[0]) for m in messages] == [
        (name, i % 3, float(i)) for i, name in enumerate(["first", "second", "first"] * 2)
    ]


def test_algorithms_streams_and_await(debugged, messages):
    t = debugged.zeros(1)
    spirv = kp.compile(HEAD + 'void main() { debugPrintfEXT("x"); x[0] += 1.0; }')
    algorithm = debugged.algorithm([t], spirv, workgroup=(1, 1, 1))
    sequence = debugged.sequence().record(kp.OpAlgoDispatch(algorithm))
    sequence.eval_async()
    sequence.eval_await()
    assert len(messages) == 64
    fence = debugged.submit([sequence])
    fence.wait()
    assert len(messages) == 128
    assert messages[0].line == 0  # compiled without debug_info


def test_the_log_gets_lines(debugged, caplog):
    kernel = debugged.kernel(
        HEAD.replace("64", "1") + 'void main() { debugPrintfEXT("here"); x[0] = 1.0; }', name="talks"
    )
    with caplog.at_level(logging.WARNING, "kompute_py"):
        kernel(np.zeros(1, np.float32))
    assert [r.getMessage().partition(": ")[2] for r in caplog.records if "here" in r.getMessage()] == [
        "here ('talks', operation 1, invocation (0, 0, 0))"
    ]


@pytest.mark.parametrize(
    "language", [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]
)
def test_hlsl_and_slang(debugged, messages, language):
    kernel = debugged.kernel(
        'RWStructuredBuffer<float> x;\n[shader("compute")] [numthreads(2, 1, 1)]\n'
        "void main(uint3 id : SV_DispatchThreadID) {\n"
        'printf("%u: %f", id.x, x[id.x]); x[id.x] = 1; }',
        language=language,
        name="talk",
    )
    kernel(np.array([3, 4], np.float32))
    assert {m.file for m in messages} == {"<talk>"}
    assert sorted((m.text, m.invocation[0], m.line) for m in messages) == [
        ("0: 3.000000", 0, 4),
        ("1: 4.000000", 1, 4),
    ]


def test_off_is_off(make_manager):
    mgr = make_manager()
    kernel = mgr.kernel(HEAD + 'void main() { debugPrintfEXT("x"); x[0] = 1.0; }')
    kernel(np.zeros(1, np.float32))
    assert mgr._native.take_debug() is None
    with pytest.raises(kp.errors.FailedPreconditionError, match='debug="printf"'):
        mgr.on_message(print)


@pytest.mark.own_driver
def test_refusals(debugged):
    with pytest.raises(kp.errors.InvalidArgumentError, match="'prints'; it takes printf, bounds"):
        kp.Manager(debug="printf,prints")
    with pytest.raises(kp.errors.ArgumentTypeError, match="give a function of one kp"):
        debugged.on_message(3)


def test_all_queues_are_one(make_manager):
    mgr = make_manager(family_queue_indices=[0, 0], debug=["printf"])
    assert [queue["shared"] for queue in mgr.queues] == [False, True]


def test_what_a_callback_raises_the_call_raises(debugged):
    kernel = debugged.kernel(HEAD + 'void main() { debugPrintfEXT("x"); x[0] = 1.0; }')

    def refuse(message):
        raise ZeroDivisionError(message.text)

    debugged.on_message(refuse)
    with pytest.raises(ZeroDivisionError, match="x"):
        kernel(np.zeros(1, np.float32))
