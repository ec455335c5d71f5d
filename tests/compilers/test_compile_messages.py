"""What is said of sources that are nearly right, and where it is said: in the exception alone, not on the
standard output.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child
from tests.support.languages import COMPILERS

BODY = (
    "\nlayout(local_size_x = 1) in; layout(binding = 0) buffer A { float a[]; }; void main() { a[0] = 1.0; }"
)


def typos():
    """Lines that differ from a #version by one character."""
    found = {
        "#version;450",
        "#version 45O",
        "#version 4500",
        "#version 450core",
        "#version 310",
        "#version 450 es",
    }
    for line in ("#version 450", "#version 310 es", "#version 460 core"):
        for i in range(len(line) + 1):
            found.add(line[:i] + line[i + 1 :])
            for c in "\t\x0b ;:.,-+'\"()[]{}#\\/*eEfFuUxX_09é":
                found |= {line[:i] + c + line[i:], line[:i] + c + line[i + 1 :]}
    chosen = random.Random(1).sample(sorted(found), 400)
    return [*chosen, "#version;450", "#version 45O", "#version 0", "#version -450", "#version 4294967746"]


def compile_typos():
    """How many were refused, and how many bytes came out at the standard output and the standard error."""
    os.environ["KOMPUTE_PY_SHADER_CACHE_SIZE"] = "0"
    import tempfile

    refused = 0
    with tempfile.TemporaryFile() as output:
        kept = [os.dup(1), os.dup(2)]
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        try:
            for line in typos():
                try:
                    kp.compile(line + BODY, cache=False)
                except kp.ShaderCompileError:
                    refused += 1
        finally:
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
        return refused, output.seek(0, os.SEEK_END)


@pytest.mark.own_driver
def test_typos_in_the_version_print_nothing():
    refused, printed = run_child(compile_typos, env={"PYTHONWARNINGS": "ignore"})
    assert refused > 300 and printed == 0


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("#version;450", "<source>:1:1: error: #version needs a number, as in '#version 450'"),
        ("#version 450core", "#version needs a number"),
        ("#version 4500", "there is no GLSL 4500"),
        ("#version 450 cor", "'cor' is not a profile of GLSL 450; choose core or compatibility"),
        ("#version 450 es", "'es' is not a profile of GLSL 450"),
        ("#version 310", "GLSL 310 has the profile es: '#version 310 es'"),
        ("#version 450 core;", "a number and a profile, as in '#version 450 core', and nothing else"),
        ("#version 330", "compute shaders need version 430 or later"),
    ],
)
def test_versions_that_there_are_not(line, says):
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(line + BODY)
    assert says in str(caught.value)


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "line", ["#version 450", " # version 450 // usual", "#version /* */ 460 core", "#version 310 es\t"]
)
def test_versions_that_there_are(line, recwarn):
    kp.compile(line + BODY.replace("float a[]", "highp float a[]") if "es" in line else line + BODY)
    assert not recwarn.list


@pytest.mark.parametrize("compiler", COMPILERS)
def test_hlsl_errors_of_the_compiler_are_shader_errors(compiler):
    with pytest.raises(kp.ShaderCompileError, match=r"2:.*foo"):
        kp.compile(
            "RWStructuredBuffer<float> d;\n[numthreads(1, 1, 1)] void main() { d[0] = foo; }",
            language="hlsl",
            compiler=compiler,
        )


PUSH = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer A { float a[]; };
struct S { float x; int y; };
layout(push_constant) uniform P { mat4x3 m; vec3 v; bool b; S s; float t[3]; };
void main() { a[0] = m[1].y + v.x + float(b) + s.x + float(s.y) + t[1]; }
"""


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (
            "m",
            np.zeros((4, 3)),
            "m is a matrix of 3 rows and 4 columns: give 3 rows, not an array of shape (4, 3)",
        ),
        ("m", np.zeros((3, 3)), "m[0] is a row of 4 numbers: give 4 numbers, not an array of shape (3,)"),
        ("m", 1.0, "m is a matrix of 3 rows and 4 columns: give 3 rows, not 1.0"),
        ("v", (1, 2), "v is a vector of 3: give 3 numbers, not 2 numbers"),
        ("v", np.float32(1), "v is a vector of 3: give 3 numbers, not"),
        ("s", (1,), "s is a struct of x, y: give 2 values, not 1 values"),
        ("t", (1, 2), "t is an array of 3: give 3 elements, not 2 elements"),
    ],
)
def test_push_constants_of_a_wrong_shape(mgr, name, value, says):
    values = {"m": np.ones((3, 4)), "v": (1, 2, 3), "b": True, "s": (1, 2), "t": (1, 2, 3)}
    kernel = mgr.kernel(PUSH, name="k")
    with pytest.raises(kp.KomputeError) as caught:
        kernel(np.zeros(4, np.float32), push={**values, name: value}, groups=1)
    assert says in str(caught.value)


def test_a_struct_goes_in_as_a_record(mgr):
    kernel = mgr.kernel(PUSH)
    record = np.zeros((), np.dtype([("y", "i4"), ("x", "f4")]))
    record["x"], record["y"] = 0.5, 3
    for value in (record, record[()], record.reshape(1)):
        a = np.zeros(4, np.float32)
        kernel(a, m=np.ones((3, 4)), v=(1, 2, 3), b=True, s=value, t=(1, 2, 3), groups=1)
        assert a[0] == 1 + 1 + 1 + 0.5 + 3 + 2
