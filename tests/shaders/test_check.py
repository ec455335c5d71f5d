"""kp.check against devices that are described; that it says what making an algorithm says; SPIR-V to text and
back.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

HEAD = "#version 450\nlayout(local_size_x = 64) in;\n"
PLAIN = (
    HEAD + "layout(binding = 0) buffer A { float a[]; };\nvoid main() { a[gl_GlobalInvocationID.x] = 1.0; }\n"
)
INT64 = (
    HEAD
    + "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
    + "layout(binding = 0) buffer A { int64_t a[]; };\nvoid main() { a[0] += 5; }\n"
)
GRAPHICS = """OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint Fragment %main "main"
OpExecutionMode %main OriginUpperLeft
%void = OpTypeVoid
%function = OpTypeFunction %void
%main = OpFunction %void None %function
%label = OpLabel
OpReturn
OpFunctionEnd
"""


@pytest.fixture(scope="module")
def generous():
    """A device that refuses nothing of the shaders here."""
    info = json.loads(json.dumps(kp.list_devices()[0]))  # as `kompute-py info --json` would bring it
    info["device_name"] = "Generous"
    info["api_version"] = "1.3.0"
    info["features"] = dict.fromkeys(info["features"], True)
    info["subgroup_operations"] = ["basic", "vote", "arithmetic", "ballot", "shuffle", "quad"]
    info["max_work_group_size"] = [1024, 1024, 64]
    limits = info["limits"]
    limits.update({name: 1 << 20 for name in limits if name.startswith(("maxPerStage", "maxDescriptorSet"))})
    limits.update(maxComputeWorkGroupInvocations=1024, maxComputeSharedMemorySize=1 << 20)
    limits.update(maxPushConstantsSize=256, maxBoundDescriptorSets=8)
    return info


def poorer(info, **changes):
    """The device with other limits (by their names) or keys."""
    limits = {name: value for name, value in changes.items() if name in info["limits"]}
    keys = {name: value for name, value in changes.items() if name in info}
    assert len(limits) + len(keys) == len(changes)
    return {**info, **keys, "limits": {**info["limits"], **limits}}


def test_a_shader_that_runs_has_no_findings(mgr):
    spirv = kp.compile(PLAIN)
    name = mgr.get_device_properties().device_name
    for device in (None, 0, name, name[2:9].upper(), mgr, kp.list_devices()[0]):
        for shader in (spirv, PLAIN, np.frombuffer(spirv, np.uint32), kp.ShaderModule(PLAIN)):
            assert kp.check(shader, device) == []


USES = {
    "maxPerStageDescriptorStorageBuffers": (2, 1), "maxDescriptorSetStorageBuffers": (2, 1),
    "maxPerStageDescriptorUniformBuffers": (1, 0), "maxDescriptorSetUniformBuffers": (1, 0),
    "maxPerStageDescriptorStorageImages": (2, 1), "maxDescriptorSetStorageImages": (2, 1),
    "maxPerStageDescriptorSampledImages": (4, 3), "maxDescriptorSetSampledImages": (4, 3),
    "maxPerStageDescriptorSamplers": (3, 2), "maxDescriptorSetSamplers": (3, 2),
    "maxPerStageResources": (9, 8), "maxBoundDescriptorSets": (4, 3),
    "maxComputeSharedMemorySize": (400, 399), "maxPushConstantsSize": (20, 19),
    "maxComputeWorkGroupInvocations": (192, 191),
}  # fmt: skip
GREEDY = """#version 450
layout(local_size_x = 64, local_size_y = 3) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 1, binding = 0) buffer B { float b[]; };
layout(set = 1, binding = 1) uniform C { float c; };
layout(set = 2, binding = 0, r32f) uniform image2D d[2];
layout(set = 2, binding = 1) uniform sampler2D e[2];
layout(set = 3, binding = 0) uniform texture2D f;
layout(set = 3, binding = 1) uniform sampler g;
layout(set = 3, binding = 2) uniform samplerBuffer h;
layout(push_constant) uniform P { vec4 p; float q; };
shared float s[100];
void main() {
    s[gl_LocalInvocationIndex % 100] = p.x + q + c;
    barrier();
    a[0] = s[1] + b[0] + texture(e[1], vec2(0)).x + texture(sampler2D(f, g), vec2(0)).x + texelFetch(h, 0).x;
    imageStore(d[1], ivec2(0), vec4(a[0]));
}
"""


@pytest.fixture(scope="module")
def greedy():
    return kp.compile(GREEDY)


@pytest.mark.parametrize("name", USES)
def test_each_limit_is_found_by_itself(generous, greedy, name):
    needed, has = USES[name]
    assert kp.check(greedy, poorer(generous, **{name: needed})) == []
    (finding,) = kp.check(greedy, poorer(generous, **{name: has}))
    assert finding[:4] == ("limit", name, needed, has)
    assert name in str(finding) and str(needed) in str(finding) and "'Generous'" in str(finding)


UNUSED = (
    HEAD
    + "layout(binding = 0) buffer A { float a[]; };\nlayout(set = 3, binding = 1) buffer B { float b[]; } "
    "x[40];\n" + "void main() { a[gl_GlobalInvocationID.x] = 1.0; }\n"
)


def test_what_the_code_does_not_use_has_no_place(generous):
    """Neither in an algorithm's layout, nor in the counts."""
    device = poorer(generous, maxPerStageDescriptorStorageBuffers=1, maxBoundDescriptorSets=1)
    assert kp.check(UNUSED, device) == []


def test_all_limits_at_once(generous, greedy):
    device = poorer(generous, **{name: has for name, (_, has) in USES.items()})
    assert sorted(finding.what for finding in kp.check(greedy, device)) == sorted(USES)


def test_local_sizes(generous, greedy):
    (finding,) = kp.check(greedy, poorer(generous, max_work_group_size=[64, 2, 64]))
    assert finding[:4] == ("limit", "maxComputeWorkGroupSize", 3, 2) and "axis y" in str(finding)
    by_constant = "#version 450\nlayout(local_size_x_id = 3) in;\nlayout(constant_id = 3) const int N = 1;\n"
    by_constant += "shared float s[N];\nvoid main() { s[gl_LocalInvocationIndex] = 1.0; }\n"
    assert kp.check(by_constant, generous) == []
    assert kp.check(by_constant, generous, spec_consts={3: 1024}) == []
    found = kp.check(by_constant, generous, spec_consts={"N": 1 << 20}, optimize="none")
    assert {f.what: f.needed for f in found} == {
        "maxComputeSharedMemorySize": 1 << 22,
        "maxComputeWorkGroupSize": 1 << 20,
        "maxComputeWorkGroupInvocations": 1 << 20,
    }
    empty, zero = kp.check(by_constant, generous, spec_consts={3: 0}, optimize=False)
    assert zero.what == "maxComputeWorkGroupSize" and zero.needed == 0
    assert empty.kind == "validation" and "array 's' has the length 0" in str(empty)
    with pytest.raises(kp.InvalidArgumentError, match="9"):
        kp.check(by_constant, generous, spec_consts={9: 1})


def test_capabilities_and_features_are_named(generous):
    without = {**generous["features"], "shaderInt64": False}
    (finding,) = kp.check(INT64, poorer(generous, features=without))
    assert finding[:2] == ("capability", "Int64") and "shaderInt64" in str(finding.needed)
    assert kp.check(INT64, generous) == []

    subgroups = HEAD + "#extension GL_KHR_shader_subgroup_clustered : require\n"
    subgroups += (
        "layout(binding = 0) buffer A { float a[]; };\n"
        "void main() { a[0] = subgroupClusteredAdd(a[0], 4); }\n"
    )
    (finding,) = kp.check(subgroups, generous)
    assert finding.what == "GroupNonUniformClustered" and "'clustered'" in str(finding)

    scalar = HEAD + "#extension GL_EXT_scalar_block_layout : require\n"
    scalar += "layout(scalar, binding = 0) buffer A { vec3 a[]; };\nvoid main() { a[0] = vec3(1); }\n"
    without = {**generous["features"], "scalarBlockLayout": False}
    (finding,) = kp.check(scalar, poorer(generous, features=without))
    assert finding[:2] == ("feature", "scalarBlockLayout") and "std430" in str(finding)

    atomic = HEAD + "#extension GL_EXT_shader_atomic_float : require\n"
    atomic += "layout(binding = 0) buffer A { float a[]; };\nvoid main() { atomicAdd(a[0], 1.0); }\n"
    without = {name: has and "Float32Atomic" not in name for name, has in generous["features"].items()}
    (finding,) = kp.check(atomic, poorer(generous, features=without))
    assert "shaderBufferFloat32AtomicAdd" in str(finding) and "VK_EXT_shader_atomic_float" in str(finding)

    # The capability stands for atomics anywhere; a device may have them in buffers alone.
    without = {
        name: has and name != "shaderSharedFloat32AtomicAdd" for name, has in generous["features"].items()
    }
    buffers_only = poorer(generous, features=without)
    assert kp.check(atomic, buffers_only) == []
    shared = atomic.replace("void main", "shared float s;\nvoid main").replace(
        "atomicAdd(a[0]", "atomicAdd(s"
    )
    (finding,) = kp.check(shared, buffers_only)
    assert finding[:2] == ("feature", "shaderSharedFloat32AtomicAdd")
    assert "'shaderSharedFloat32AtomicAdd' of the extension VK_EXT_shader_atomic_float" in str(finding)


def test_versions(generous):
    spirv = kp.compile(PLAIN, target="vulkan1.3")
    assert kp.check(spirv, generous) == []
    older = poorer(generous, api_version="1.2.189")
    (finding,) = kp.check(spirv, older)
    assert finding[:4] == ("version", "SPIR-V", "SPIR-V 1.6", "SPIR-V 1.5")
    assert 'target="vulkan1.2"' in str(finding)
    assert kp.check(PLAIN, older) == []  # source is compiled for what the device has
    (finding,) = kp.check(PLAIN, poorer(generous, api_version="1.1.0"))
    assert finding[:4] == ("device", "Vulkan", "1.2", "1.1")


def test_what_is_no_compute_shader(generous, tmp_path):
    for content in (b"", b"123", b"#version 450\n   ", bytes(64), kp.compile(PLAIN)[:-8]):
        (finding,) = kp.check(content, generous)
        assert finding.kind == "validation"
    (finding,) = kp.check(kp.compile(PLAIN), generous, entry="blur")
    assert finding.kind == "validation" and "'blur'" in str(finding) and "main" in str(finding)
    (finding,) = kp.check(GRAPHICS, generous)
    assert finding.kind == "validation" and "compute" in str(finding)
    broken = kp.disassemble(kp.compile(PLAIN)).replace("OpReturn\n", "")
    (finding,) = kp.check(broken, generous)
    assert finding.kind == "validation" and "Vulkan 1.3" in str(finding)
    file = tmp_path / "broken.spvasm"
    file.write_text(broken)
    assert kp.check(file, generous) == kp.check(str(file), generous) == [finding]
    file = tmp_path / "plain.spv"
    file.write_bytes(kp.compile(PLAIN))
    assert kp.check(file, generous) == kp.check(str(file), generous) == []


def test_arguments_that_cannot_be(generous, tmp_path):
    with pytest.raises(kp.ShaderCompileError, match="nothing"):
        kp.check(PLAIN.replace("1.0", "nothing"), generous)
    for error, arguments, options in (
        (kp.NotFoundError, (PLAIN, "no such device"), {}),
        (kp.NotFoundError, (PLAIN, 99), {}),
        (kp.NotFoundError, (tmp_path / "none.comp", generous), {}),
        (kp.NotFoundError, (tmp_path / "none.spv", generous), {}),
        (kp.NotFoundError, (tmp_path / "none.spvasm", generous), {}),
        (kp.ArgumentTypeError, (PLAIN, 1.5), {}),
        (kp.ArgumentTypeError, (5, generous), {}),
        (kp.InvalidArgumentError, (PLAIN, generous), {"optimise": True}),
        (kp.InvalidArgumentError, (PLAIN, {}), {}),
        (kp.InvalidArgumentError, (PLAIN, {**generous, "api_version": "new"}), {}),
        (kp.InvalidArgumentError, (PLAIN, {**generous, "limits": {}}), {}),
        (kp.InvalidArgumentError, (PLAIN, {**generous, "features": None}), {}),
        (kp.InvalidArgumentError, (PLAIN, {**generous, "max_work_group_size": 5}), {}),
    ):
        with pytest.raises(error):
            kp.check(*arguments, **options)


def same_as_an_algorithm():
    mgr = kp.Manager()
    said = []
    for source in (INT64, PLAIN, PLAIN.replace("64", "8"), PLAIN.replace("64", "1, local_size_y = 64")):
        found = kp.check(source, mgr)
        try:
            mgr.algorithm([mgr.zeros(64, np.int64)], kp.compile(source), (1, 1, 1))
        except kp.KomputeError as error:
            said.append((str(error), [str(finding) for finding in found]))
        else:
            assert found == []
            said.append(None)
    return said


def test_algorithms_are_refused_with_the_same_words():
    said = run_child(same_as_an_algorithm, driver="null", config="int64=0,invocations=32")
    assert [entry is None for entry in said] == [False, False, True, False]
    for refused in (entry for entry in said if entry):
        message, sentences = refused
        assert sentences and sentences[0] in message


# -- text and back -------------------------------------------------------------------------------------------


def test_assembly_and_back(tmp_path):
    spirv = kp.compile(PLAIN)
    again = kp.assemble(kp.disassemble(spirv, friendly_names=False))
    assert len(again) == len(spirv) and kp.ShaderModule(again).reflection == kp.ShaderModule(spirv).reflection
    file = tmp_path / "plain.spv"
    file.write_bytes(spirv)
    for same in (spirv, bytearray(spirv), np.frombuffer(spirv, np.uint32), file, kp.ShaderModule(spirv)):
        assert kp.disassemble(same) == kp.disassemble(spirv)
    assert kp.assemble(kp.disassemble(kp.compile(PLAIN, target="vulkan1.0")), target="vulkan1.0")[
        4:8
    ] == bytes((0, 0, 1, 0))
    with pytest.raises(kp.ShaderCompileError, match=r"<source>:2:\d+"):
        kp.assemble("OpCapability Shader\nOpBackflip\n")
    with pytest.raises(kp.InvalidArgumentError, match=r"not valid.*vulkan1\.2"):
        kp.assemble(kp.disassemble(spirv).replace("OpReturn\n", ""))
    with pytest.raises(kp.InvalidArgumentError, match="vulkan9"):
        kp.assemble("", target="vulkan9")
    with pytest.raises(kp.ArgumentTypeError):
        kp.assemble(spirv)
    for wrong, error in ((b"text", kp.InvalidArgumentError), (5, kp.ArgumentTypeError)):
        with pytest.raises(error):
            kp.disassemble(wrong)


@pytest.mark.parametrize("language", ["glsl", "hlsl"])
def test_decompiled_source_compiles_to_the_same_reflection(language):
    source = kp.decompile(kp.compile(PLAIN), language)
    module = kp.ShaderModule(source, language=language)
    assert module.reflection["local_size"] == (64, 1, 1)
    assert [b["kind"] for b in module.reflection["bindings"]] == ["storage buffer"]
    with pytest.raises(kp.InvalidArgumentError, match=r"wgsl.*glsl, hlsl"):
        kp.decompile(kp.compile(PLAIN), "wgsl")
    with pytest.raises(kp.NotFoundError, match="blur"):
        kp.decompile(kp.compile(PLAIN), language, entry="blur")
    assert kp.decompile(kp.compile(PLAIN, entry="blur"), language)


# -- errors with colour --------------------------------------------------------------------------------------


def compile_error(source):
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(source)
    return caught.value


def test_errors_in_colour(monkeypatch):
    error = compile_error(PLAIN.replace("1.0", "foo"))
    plain, colored = str(error), error.format(color=True)
    assert error.format(color=False) == plain and "\x1b[1;31merror: \x1b[0m" in colored
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    assert "\x1b[1;32m^\x1b[0m" in colored and "\x1b[1m<source>:4:" in colored

    class Terminal:
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert error.format() == plain  # pytest's stderr is none
    monkeypatch.setattr("sys.stderr", Terminal())
    assert error.format() == colored
    monkeypatch.setenv("NO_COLOR", "1")
    assert error.format() == plain


def test_errors_in_a_notebook():
    text = compile_error(PLAIN.replace("1.0", "foo<b>&1"))._repr_html_()
    assert "foo&lt;b&gt;&amp;1" in text and "<b>" not in text
    assert text.startswith("<pre") and text.count("<span") == text.count("</span>") >= 4


def test_escapes_in_a_source_do_not_reach_the_terminal():
    error = compile_error(PLAIN.replace("1.0", "foo /* \x1b[2J */"))
    assert "\x1b[2J" not in error.format(color=True)
