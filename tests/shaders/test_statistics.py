"""Kernel.statistics, beside the assembly of the same module."""

from __future__ import annotations

import re

import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

SOURCE = """
#version 450
layout(local_size_x = 32, local_size_x_id = 0) in;
layout(constant_id = 0) const uint WIDTH = 32;
layout(push_constant) uniform P { float factor; uint turns; };
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) buffer C { uint counts[]; };
layout(binding = 2, rgba8) uniform readonly image2D picture;
shared float row[WIDTH * 2];
void main() {
    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;
    vec4 colour = imageLoad(picture, ivec2(i, 0));
    row[l] = x[i] * factor + colour.x;
    barrier();
    float sum = 0.0;
    for (uint j = 0; j < turns; ++j) { sum += sin(row[j]) * float(j); if (sum > 9.0) break; }
    atomicAdd(counts[uint(sum) & 7u], 1u << (i & 3u));
    x[i] = sum;
}"""
# Patterns of names of SPIR-V's instructions, not of their numbers.
NAMES = {
    "loads and stores": r"Op(Load|Store|CopyMemory)",
    "addresses": r"Op(InBounds)?AccessChain",
    "arithmetic": r"Op([FIUS](Add|Sub|Mul|Div|Rem|Mod|Negate)|Dot|(Vector|Matrix)Times\w+)",
    "functions": r"OpExtInst",
    "conversions": r"Op(Convert\w+|[FSU]Convert|Bitcast)",
    "comparisons and choices": r"Op(Select|Logical\w+|[FIUS]\w*(Less|Greater|Equal)\w*)",
    "bits": r"Op(Bit(Field|wise|Count|Reverse)\w*|Shift\w+|Not)",
    "parts of vectors": r"Op(Composite\w+|VectorShuffle|CopyObject|VectorExtractDynamic|VectorInsertDynamic)",
    "images": r"OpImage\w*",
    "atomics": r"OpAtomic\w+",
    "barriers": r"Op(Control|Memory)Barrier",
    "loops": r"OpLoopMerge",
    "branches": r"Op(Branch|BranchConditional|Switch|FunctionCall)",
}


def counted(text: str) -> dict[str, int]:
    body = text[text.index("OpFunction ") :]
    found = {kind: len(re.findall(rf"\b{names}(?=\s|$)", body, re.M)) for kind, names in NAMES.items()}
    return {kind: count for kind, count in found.items() if count}


@pytest.mark.parametrize("optimize", [True, False])
def test_the_mix_is_that_of_the_assembly(mgr, optimize):
    kernel = mgr.kernel(SOURCE, optimize=optimize)
    found = kernel.statistics()
    assert found.instructions == counted(kernel.disassembly())
    assert found.instructions["barriers"] == 1 and found.instructions["functions"] >= 1
    assert list(found.instructions.values()) == sorted(found.instructions.values(), reverse=True)
    assert found.spirv_bytes == len(kernel.to_spirv()) and found.push_bytes == 8 and found.bindings == 3
    assert f"{found.instructions['images']:7,} images" in str(found)


def test_debug_information_does_not_count(mgr):
    plain, debug = (mgr.kernel(SOURCE, optimize=False, debug_info=on) for on in (False, True))
    assert plain.statistics().instructions == debug.statistics().instructions
    assert plain.statistics().spirv_bytes < debug.statistics().spirv_bytes


def test_sizes_follow_the_constants(mgr):
    kernel = mgr.kernel(SOURCE)
    assert (kernel.statistics().local_size, kernel.statistics().shared_bytes) == ((32, 1, 1), 256)
    wide = kernel.specialize(WIDTH=64).statistics()
    assert (wide.local_size, wide.shared_bytes) == ((64, 1, 1), 512)
    assert isinstance(wide, kp.ShaderStatistics)


def check_executables(told):
    control = null_control()
    mgr = kp.Manager()
    kernel = mgr.kernel(SOURCE)
    pipelines = control.live("VkPipeline")
    found = kernel.statistics().executables
    assert control.live("VkPipeline") == pipelines  # it is dropped
    assert control.calls("vkCreateComputePipelines") == told
    if not told:
        assert found == ()
        return
    (compute,) = found
    assert compute[:3] == ("Compute", "the null device's code", 32)
    assert compute.statistics == {"Registers": 24, "Spills": False, "Occupancy": 0.75, "Code size": 640}
    assert type(compute.statistics["Spills"]) is bool
    assert compute.representations == {"Assembly": "v_add_f32 v0, v1, v2"}  # the binary is not text
    assert "  Registers: 24\n  Spills: False\n" in str(kernel.statistics())
    control.fail("vkGetPipelineExecutableStatisticsKHR", nth=2)
    with pytest.raises(kp.KomputeError, match="vkGetPipelineExecutableStatisticsKHR"):
        kernel.statistics()
    assert control.live("VkPipeline") == pipelines and not control.violations(), control.violations()
    mgr.destroy()
    with pytest.raises(kp.errors.FailedPreconditionError):
        kernel.statistics()


@pytest.mark.own_driver
@pytest.mark.parametrize("told", [0, 1])
def test_executables_of_the_driver(told):
    """Registers, occupancy and code, if the device tells them."""
    run_child(check_executables, told, driver="null", config=f"executables={told}")
