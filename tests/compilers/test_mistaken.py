"""Sources that are something else: another language, a mistyped path, [numthreads] on a helper.

And one name for each binding.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._compilers.libraries import find_library
from tests.support.languages import needs_slang

WGSL = """
@group(0) @binding(0) var<storage, read_write> d: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { d[id.x] *= 2.0; }
"""
HLSL = """
RWStructuredBuffer<float> x;
[numthreads(1, 1, 1)] void main(uint3 t : SV_DispatchThreadID) { x[t.x] = 1; }
"""
GLSL = "#version 450\nlayout(local_size_x = 1) in; void main() {}"


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (WGSL, 'looks like WGSL.*"Coming from wgpu"'),
        ("__global__ void f(float* x) { x[threadIdx.x] = 1; }", 'like CUDA.*"Coming from CuPy"'),
        ("__kernel void f(__global float* x) { x[get_global_id(0)] = 1; }", "like OpenCL C.*PyOpenCL"),
        (
            "kernel void f(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 1; }",
            "like Metal; kompute_py compiles GLSL",
        ),
        (HLSL, 'looks like HLSL or Slang, and is compiled as GLSL: give language="hlsl"'),
    ],
)
def test_another_language_is_named(source, said):
    with pytest.raises(kp.ShaderCompileError, match=said):
        kp.compile(source)


@needs_slang
def test_glsl_given_as_slang():
    with pytest.raises(kp.ShaderCompileError, match='looks like GLSL: give language="glsl"'):
        kp.compile(GLSL, language="slang")


def test_signs_in_sources_that_compile_say_nothing(recwarn):
    kp.compile("// @compute fn main, [numthreads(1, 1, 1)], threadIdx.x\n" + GLSL.partition("\n")[2])
    assert not recwarn.list
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile("layout(local_size_x = 1) in; void main() { y = 1; }")
    assert "looks like" not in str(caught.value)


def test_a_mistyped_path(mgr, tmp_path):
    for name in ("blur.cmp", "shaders/blur", str(tmp_path / "blur.wgsl")):
        with pytest.raises(kp.NotFoundError, match=f"no shader file '{re.escape(name)}'"):
            mgr.kernel(name)
    there = tmp_path / "blur.cmp"
    there.write_text(GLSL)
    with pytest.raises(kp.InvalidArgumentError, match=r"is a file, but .* \.comp.*pathlib\.Path"):
        mgr.kernel(str(there))
    assert mgr.kernel(there).name == "blur"


@needs_slang
@pytest.mark.parametrize("main", ["", "[numthreads(4, 1, 1)]"])
def test_numthreads_on_a_helper(main):
    source = f"""
RWStructuredBuffer<float> x;
[numthreads(8, 1, 1)] float help(uint i) {{ return i; }}
[shader("compute")] {main} void main(uint3 t : SV_DispatchThreadID) {{ x[t.x] = help(t.x); }}
"""
    with pytest.raises(
        kp.ShaderCompileError, match=r"\[numthreads\] belongs to the entry point alone.*'help'"
    ):
        kp.compile(source, language="slang")


@pytest.mark.parametrize("language", ["glsl", "hlsl", "slang"])
def test_a_missing_include_names_the_folders(tmp_path, language):
    if language != "glsl" and find_library({"hlsl": "dxc"}.get(language, language)) is None:
        pytest.skip("needs its compiler")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(
            '#include "none.h"\n' + (GLSL if language == "glsl" else HLSL),
            language=language,
            include_dirs=folders,
        )
    assert all(f"{str(folder)!r}" in str(caught.value) for folder in folders)
    assert "looked in" in str(caught.value)


def test_one_name_for_a_binding(mgr):
    """The signature's names are those that a call takes."""
    kernel = mgr.kernel(
        """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Alone { float t[]; };
layout(binding = 1) buffer Pair { float head; float rest[]; };
layout(binding = 2) buffer Named { float x[]; } named;
void main() { t[0] = head + named.x[0]; }"""
    )
    names = [each.name for each in kernel.signature.bindings]
    assert names == [each.name for each in kernel.signature.parameters] == ["t", "Pair", "named"]
    given = dict(
        zip(names, (np.zeros(1, np.float32), np.ones(2, np.float32), np.ones(1, np.float32)), strict=True)
    )
    kernel(**given, groups=1)
    assert given["t"][0] == 2
