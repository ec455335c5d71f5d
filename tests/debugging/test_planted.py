"""Bugs as people write them, one kernel each: all words of debug= at once name the kind, file and line.

Not found are arguments of one type that are swapped: that is a right program for other data.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import needs_slang

DEBUG = "bounds,races,barriers,loops"
N = 256
GLSL = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
shared float pool[64];
void main() {
    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationIndex;
"""
SLANG = """StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
groupshared float pool[64];
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint l : SV_GroupIndex) {
    uint i = id.x;
"""
# The body of each begins on line 8, in Slang on line 7; the line of the fault.
PLANTED = {
    "a read outside": ("y[i] = x[i + 1] - x[i];", "bounds", 8),
    "a write outside": ("y[2 * i] = x[i];", "bounds", 8),
    "a negative index": ("y[i] = x[int(i) - 1];", "bounds", 8),
    "groups counted as elements": ("y[i] = 2 * x[i];", "bounds", 8),
    "a sum into one place": ("y[0] += x[i];", "races", 8),
    "neighbours in place": ("if (i + 1 < y.length())\ny[i] = y[i + 1] + x[i];", "races", 9),
    "a missing barrier": ("pool[l] = x[i];\ny[i] = pool[63 - l];", "races", 9),
    "a barrier under a condition": (
        "pool[l] = x[i];\nif (x[i] < 100.0)\nbarrier();\ny[i] = pool[l];",
        "barriers",
        10,
    ),
    "a loop without an end": (
        "float v = x[i];\nfor (uint turn = 0; v != 0.5; ++turn) {\nv *= 0.9999;\n"
        "if (turn > 200000) break;\n}\ny[i] = v;",
        "loops",
        9,
    ),
}
IN_SLANG = {
    "a read outside": ("y[i] = x[i + 1];", "bounds", 7),
    "a missing barrier": ("pool[l] = x[i];\ny[i] = pool[63 - l];", "races", 8),
}


def check(mgr, messages, path, source, kind, line, **launch):
    path.write_text(source + "\n}\n")
    mgr.kernel(path)(x=mgr.tensor(np.arange(N)), y=mgr.zeros(N), **launch)
    found = [message for message in messages if message.kind == kind]
    assert found, messages
    for message in found:
        # A race names both lines; the later access comes first.
        lines = {message.line, message.values[2] if kind == "races" else message.line}
        assert message.file.endswith(path.name) and line in lines, message
    assert {message.kind for message in messages} <= {kind, "dropped"}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs(debugged, messages, tmp_path, name):
    body, kind, line = PLANTED[name]
    launch = {"groups": (N, 1, 1)} if name == "groups counted as elements" else {"grid": N}
    check(debugged, messages, tmp_path / "planted.comp", GLSL + body, kind, line, **launch)


@needs_slang
@pytest.mark.parametrize("name", IN_SLANG)
def test_planted_bugs_in_slang(debugged, messages, tmp_path, name):
    body, kind, line = IN_SLANG[name]
    check(debugged, messages, tmp_path / "planted.slang", SLANG + body, kind, line, grid=N)


def test_a_planted_nan(make_manager, tmp_path):
    mgr = make_manager(debug="nans")
    (tmp_path / "planted.comp").write_text(GLSL + "y[i] = sqrt(x[i] - 3.0);\n}\n")
    with pytest.raises(kp.errors.NonFiniteError) as caught:
        mgr.kernel(tmp_path / "planted.comp")(x=mgr.tensor(np.arange(N)), y=mgr.zeros(N), grid=N)
    error = caught.value
    assert (error.operation, error.index) == ("planted", (0,)) and "test_planted.py:" in error.line
