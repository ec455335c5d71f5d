"""Arrays of bindings of run-time length, with indices that differ between invocations."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import needs_dxc, needs_slang

GLSL = """#version 450
#extension GL_EXT_nonuniform_qualifier : enable
layout(local_size_x = 8) in;
layout(set = 1, binding = 0) readonly buffer A { float v[]; } a[];
layout(binding = 0) buffer O { float o[]; };
layout(set = 2, binding = 0, r32f) uniform imageBuffer texels[];
void main() {
    uint i = gl_GlobalInvocationID.x;
    o[i] = a[nonuniformEXT(i % 3)].v[0] * 10 + imageLoad(texels[nonuniformEXT(i % 2)], 0).x;
}"""
HLSL = """
StructuredBuffer<float> a[] : register(t0, space1);
RWBuffer<float> texels[] : register(u0, space2);
RWStructuredBuffer<float> o : register(u0);
[shader("compute")] [numthreads(8, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {
    o[t.x] = a[NonUniformResourceIndex(t.x % 3)][0] * 10 + texels[NonUniformResourceIndex(t.x % 2)][0];
}"""


@pytest.mark.capability(
    "",
    "arrays of bindings of any length, with indices that differ between invocations",
    "Manager.kernel",
    "reference/kernel_rules",
)
@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("glsl", GLSL),
        pytest.param("hlsl", HLSL, marks=needs_dxc),
        pytest.param("slang", HLSL, marks=needs_slang),
    ],
)
def test_indices_that_differ(mgr, language, source):
    try:
        kernel = mgr.kernel(source, language=language)
    except kp.UnimplementedError as error:
        assert "runtimeDescriptorArray" in str(error) or "NonUniform" in str(error)
        pytest.skip("the device has no such arrays")
    a = [mgr.tensor([float(n)]) for n in range(3)]
    texels = [mgr.tensor([float(n)]) for n in range(2)]
    o = np.zeros(8, np.float32)
    kernel(a=a, texels=texels, o=o, groups=1)
    np.testing.assert_array_equal(o, [10 * (i % 3) + i % 2 for i in range(8)])
