"""Capabilities, extensions, execution modes and float controls of SPIR-V: each is judged, and what lacks is
named.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import _native
from tests.support.languages import dxc_is_old, needs_dxc, needs_slang

pytestmark = pytest.mark.each_driver

MODULE = """; Version: 1.3
OpCapability Shader
{capability}{extension}OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
{modes}%void = OpTypeVoid
%fn = OpTypeFunction %void
%main = OpFunction %void None %fn
%entry = OpLabel
OpReturn
OpFunctionEnd
"""
FLOAT_MODES = {
    "DenormPreserve": 4464, "DenormFlushToZero": 4465, "SignedZeroInfNanPreserve": 4466,
    "RoundingModeRTE": 4467, "RoundingModeRTZ": 4468,
}  # fmt: skip


def module(capability="", extension="", modes=()):
    return MODULE.format(
        capability="".join(f"OpCapability {each}\n" for each in capability.split()),
        extension="".join(f'OpExtension "{each}"\n' for each in extension.split()),
        modes="".join(f"OpExecutionMode %main {each}\n" for each in modes),
    )


def with_capability(number):
    """A module that declares a capability by its number, which the assembler need not know."""
    words = np.frombuffer(kp.ShaderModule(module("Int8")).to_spirv(), np.uint32).copy()
    at = next(i for i in range(5, len(words)) if words[i] == 2 << 16 | 17 and words[i + 1] == 39)
    words[at + 1] = number
    return words.tobytes()


@pytest.fixture(scope="module")
def device():
    """A device of Vulkan 1.3 with all features, as another machine describes it."""
    info = json.loads(json.dumps(kp.list_devices()[0]))
    info["api_version"] = "1.3.0"
    info["features"] = dict.fromkeys(info["features"], True)
    controls = {name: True for name in info["float_controls"] if name.startswith("shader")}
    info["float_controls"] = {
        **controls,
        "denormBehaviorIndependence": "all",
        "roundingModeIndependence": "all",
    }
    return info


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("mode", FLOAT_MODES)
def test_float_controls(device, mode, width):
    text = module(mode, "SPV_KHR_float_controls", [f"{mode} {width}"])
    assert kp.check(text, device) == []
    lacks = f"shader{mode}Float{width}"
    poorer = {**device, "float_controls": {**device["float_controls"], lacks: False}}
    (finding,) = kp.check(text, poorer)
    assert finding.kind == "mode" and f"the device property '{lacks}'" in str(finding)
    old = {key: value for key, value in device.items() if key != "float_controls"}
    found = kp.check(text, old)
    assert [each.kind for each in found] == ["capability", "mode"] and lacks in str(found[0])


def test_float_controls_of_several_widths(device):
    text = module(
        "RoundingModeRTE RoundingModeRTZ",
        "SPV_KHR_float_controls",
        ["RoundingModeRTE 16", "RoundingModeRTZ 64"],
    )
    assert kp.check(text, device) == []
    for rule in ("32 bits only", "none"):
        controls = {**device["float_controls"], "roundingModeIndependence": rule}
        (finding,) = kp.check(text, {**device, "float_controls": controls})
        assert "'roundingModeIndependence'" in str(finding) and rule in str(finding)
    with_32 = text.replace("RoundingModeRTZ 64", "RoundingModeRTZ 32")
    controls = {**device["float_controls"], "roundingModeIndependence": "32 bits only"}
    assert kp.check(with_32, {**device, "float_controls": controls}) == []


@pytest.mark.parametrize("mode", FLOAT_MODES)
def test_a_device_runs_the_float_controls_that_it_has(mgr, mode):
    has = mgr.get_device_properties().float_controls
    for width in (16, 32, 64):
        text = module(mode, "SPV_KHR_float_controls", [f"{mode} {width}"])
        if has[f"shader{mode}Float{width}"]:
            assert kp.check(text, mgr) == []
            mgr.algorithm([], kp.ShaderModule(text), (1, 1, 1))
        else:
            with pytest.raises(kp.UnimplementedError, match=f"shader{mode}Float{width}"):
                mgr.kernel(text)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (2, "Geometry needs a graphics pipeline"),
        (6, "Kernel needs OpenCL"),
        (4472, "RayQueryKHR needs the device feature 'rayQuery' of the extension VK_KHR_ray_query"),
        (4479, "RayTracingKHR needs a ray-tracing pipeline"),
        (
            5394,
            "CooperativeVectorNV needs the device feature 'cooperativeVector' of the extension "
            "VK_NV_cooperative_vector",
        ),
        (9999, "capability 9999 needs a newer kompute_py"),
    ],
)
def test_capabilities_that_no_device_gives(mgr, device, number, says):
    spirv = with_capability(number)
    assert says in str(kp.check(spirv, device)[0])
    with pytest.raises(kp.UnimplementedError, match=says):
        mgr.kernel(spirv)


@pytest.mark.parametrize(
    ("number", "named"), [(5394, r"5394 \(CooperativeVectorNV\)|CooperativeVectorNV"), (60000, "60000")]
)
def test_every_validator_names_the_capability(mgr, tmp_path, number, named):
    path = tmp_path / "vector.spv"
    path.write_bytes(with_capability(number))
    for use in (
        lambda: kp.compile(path),
        lambda: kp.ShaderModule(path, target="vulkan1.2"),
        lambda: mgr.kernel(path),
        lambda: _native.finish_spirv(with_capability(number), "vector", "performance", "vulkan1.2"),
    ):
        # A validator that knows it says which version or extension it belongs to.
        with pytest.raises((kp.UnimplementedError, kp.InvalidArgumentError), match=named):
            use()


DERIVATIVES = {
    "glsl": """#version 450
#extension GL_NV_compute_shader_derivatives : require
layout(local_size_x = {x}, local_size_y = {y}) in;
layout(derivative_group_{group}NV) in;
layout(binding = 0) buffer O {{ float o[]; }};
void main() {{ o[gl_LocalInvocationIndex] = dFdx(float(gl_LocalInvocationID.x) * 2); }}""",
    "hlsl": """RWStructuredBuffer<float> o;
Texture2D<float> a;
SamplerState s;
[numthreads({x}, {y}, 1)]
void main(uint3 id : SV_GroupThreadID, uint i : SV_GroupIndex) {{ o[i] = a.Sample(s, id.xy / 8.0); }}""",
    "slang": """RWStructuredBuffer<float> o;
[DerivativeGroup{group}] [numthreads({x}, {y}, 1)]
void main(uint3 id : SV_GroupThreadID, uint i : SV_GroupIndex) {{ o[i] = ddx(id.x * 2.0); }}""",
}


@pytest.mark.parametrize("group", ["Quads", "Linear"])
@pytest.mark.parametrize(
    ("language", "instruction"),
    [
        ("glsl", "OpDPdx"),
        pytest.param("hlsl", "OpImageSampleImplicitLod", marks=needs_dxc),
        pytest.param("slang", "OpDPdx", marks=needs_slang),
    ],
)
def test_compute_derivatives(device, language, instruction, group):
    """A device that has the feature takes them; another says which it is."""
    x, y = (8, 8) if group == "Quads" else (64, 1)  # by which DXC chooses
    name = {"glsl": group.lower(), "slang": group.rstrip("s")}.get(language)
    source = DERIVATIVES[language].format(x=x, y=y, group=name)
    if language == "hlsl" and dxc_is_old():
        with pytest.raises(kp.ShaderCompileError, match="implicit lod is only allowed in fragment shaders"):
            kp.ShaderModule(source, language=language)
        return
    module = kp.ShaderModule(source, language=language)
    assert instruction in module.disassembly()
    assert kp.check(module, device) == []
    lacking = {**device, "features": {**device["features"], f"computeDerivativeGroup{group}": False}}
    found = [str(each) for each in kp.check(module, lacking)]
    assert found and all(f"'computeDerivativeGroup{group}'" in each for each in found)


@needs_dxc
@pytest.mark.parametrize("call", ["ddx", "ddy_fine", "fwidth"])
def test_derivatives_that_dxc_drops_are_refused(call):
    source = f"""RWStructuredBuffer<float> o;
[numthreads(8, 8, 1)] void main(uint i : SV_GroupIndex) {{ o[i] = {call}(i * 2.0); }}"""
    with pytest.raises(kp.ShaderCompileError, match=r"wrong numbers: it drops \w+, what ddx"):
        kp.compile(source, language="hlsl", compiler="dxc")


def test_a_compiler_that_makes_invalid_spirv_is_at_fault():
    spirv = with_capability(9)  # Float16
    broken = spirv.replace(
        np.uint32(1 << 16 | 253).tobytes(), np.uint32(1 << 16 | 0).tobytes()
    )  # no OpReturn
    assert broken != spirv
    for optimize in ("none", "performance"):
        with pytest.raises(
            kp.ShaderCompileError, match=r"blur\.hlsl: error: the compiler made SPIR-V .* not of the source"
        ):
            _native.finish_spirv(broken, "blur.hlsl", optimize, "vulkan1.2")


def test_every_named_capability_is_judged(device):
    """Those that a compute shader can have pass on a device that has all;
    each other one says what it needs."""
    passes = set()
    for number in (*range(72), *range(4160, 4500), *range(5008, 5440), *range(5568, 6470)):
        found = [f for f in kp.check(with_capability(number), device) if f.kind == "capability"]
        if not found:
            passes.add(number)
        else:
            assert " needs " in str(found[0]) and "list of compute features" not in str(found[0])
    assert {1, 9, 10, 11, 12, 22, 39, 4433, 5055, 5345, 5347, 6033} <= passes
    assert not {2, 3, 6, 4422, 4479} & passes


def test_execution_modes(mgr, device):
    source = (
        "#version 450\n#extension GL_EXT_subgroup_uniform_control_flow : enable\n"
        "#extension GL_KHR_shader_subgroup_basic : enable\nlayout(local_size_x = 64) in;\n"
        "layout(binding = 0) buffer D { float d[]; };\n"
        "void main() [[subgroup_uniform_control_flow]] { d[gl_GlobalInvocationID.x] = "
        "float(gl_SubgroupSize); }"
    )
    spirv = kp.compile(source)
    subgroups = {**device, "subgroup_operations": ["basic"]}
    assert kp.check(spirv, subgroups) == []
    features = {**device["features"], "shaderSubgroupUniformControlFlow": False}
    (finding,) = kp.check(spirv, {**subgroups, "features": features})
    assert finding[:2] == ("mode", "SubgroupUniformControlFlowKHR")
    assert "VK_KHR_shader_subgroup_uniform_control_flow" in str(finding)
    if "shaderSubgroupUniformControlFlow" not in mgr.enabled_features:
        with pytest.raises(
            kp.UnimplementedError, match="SubgroupUniformControlFlowKHR needs the device feature"
        ):
            mgr.kernel(spirv)


def test_extensions(device):
    assert (
        kp.check(module(extension="SPV_KHR_non_semantic_info SPV_KHR_storage_buffer_storage_class"), device)
        == []
    )
    (finding,) = kp.check(
        module(extension="SPV_KHR_non_semantic_info"), {**device, "api_version": "1.2.0", "extensions": []}
    )
    assert finding[:2] == ("extension", "SPV_KHR_non_semantic_info")
    assert "VK_KHR_shader_non_semantic_info or Vulkan 1.3" in str(finding)
    (finding,) = kp.check(module(extension="SPV_AMD_gcn_shader"), {**device, "extensions": []})
    assert "needs the extension VK_AMD_gcn_shader" in str(finding)
    found = kp.check(module(extension="SPV_ACME_anvil"), device)
    assert found[0][:2] == ("extension", "SPV_ACME_anvil") and "newer kompute_py" in str(found[0])


@pytest.mark.capability("", "explicit layouts of shared memory", "Manager.kernel", "guides/kernels")
def test_explicit_layouts_of_shared_memory_run_where_the_device_has_them(mgr, needs):
    needs(mgr, "workgroupMemoryExplicitLayout")
    kernel = mgr.kernel(
        "#version 450\n#extension GL_EXT_shared_memory_block : enable\nlayout(local_size_x = 64) in;\n"
        "layout(binding = 0) buffer D { float d[]; };\nshared S { float x[64]; } s;\n"
        "void main() { uint i = gl_LocalInvocationIndex; s.x[i] = float(i); barrier(); d[i] = s.x[63u - i]; }"
    )
    np.testing.assert_array_equal(kernel(np.zeros(64, np.float32), groups=1), np.arange(64)[::-1])


PRODUCTS = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { int a[]; };
layout(binding = 1) readonly buffer B { int b[]; };
layout(binding = 2) writeonly buffer C { int c[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] * b[i]; }"""


@pytest.mark.capability(
    "",
    "products of four bytes in one instruction (integer dot product)",
    "Manager.kernel",
    "reference/kernel_rules",
)
def test_products_of_packed_bytes_run_where_the_device_has_them(mgr, needs):
    text = kp.disassemble(kp.compile(PRODUCTS)).replace(
        "OpCapability Shader\n",
        "OpCapability Shader\nOpCapability DotProduct\nOpCapability DotProductInput4x8BitPacked\n"
        'OpExtension "SPV_KHR_integer_dot_product"\n',
    )
    text = re.sub(r"OpIMul (.*)", r"OpSDot \1 PackedVectorFormat4x8Bit", text)
    info = mgr.get_device_properties()
    without = {**info, "features": {**info.features, "shaderIntegerDotProduct": False}}
    lacks = {finding.what for finding in kp.check(text, without)}
    assert lacks == {"DotProduct", "DotProductInput4x8BitPacked"}
    needs(mgr, "shaderIntegerDotProduct")
    a, b = np.random.default_rng(1).integers(-128, 128, (2, 100, 4)).astype(np.int8)
    found = mgr.kernel(text)(a.view(np.int32)[:, 0], b.view(np.int32)[:, 0])
    np.testing.assert_array_equal(found, (a.astype(np.int32) * b).sum(1))


def test_local_arrays_have_a_limit(mgr):
    source = (
        "#version 450\nlayout(local_size_x = 1) in; layout(constant_id = 0) const int N = 4;\n"
        "layout(binding = 0) buffer A { float a[]; };\nvoid main() { float p[N]; p[int(a[0])] = 1.0; a[0] = "
        "p[int(a[1])]; }"
    )
    kernel = mgr.kernel(source)
    with pytest.raises(
        kp.InvalidArgumentError, match="local variables take 16000000 bytes for each invocation"
    ):
        kernel.specialize(N=4_000_000)(np.zeros(4, np.float32), groups=1)
    (finding,) = kp.check(kernel.to_spirv(), mgr, spec_consts=[4_000_000])
    assert finding[:2] == ("limit", "private memory") and finding.needed == 16_000_000
    assert kp.check(kernel.to_spirv(), mgr) == []


def test_assembly_gets_the_version_of_its_target(mgr):
    text = module().replace("; Version: 1.3\n", "")
    for target, version in (("vulkan1.0", (1, 0)), ("vulkan1.1", (1, 3)), ("vulkan1.2", (1, 5))):
        assert mgr.kernel(text, target=target).reflection["version"] == version
