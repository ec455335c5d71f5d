"""What a source declares stays in the signature, whatever the optimizer finds that no code reaches."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import _native
from tests.support.child import run_child

# All but `live` is named by code that never runs.
DEAD = """
#version 450
layout(local_size_x_id = 7) in;
layout(constant_id = 3) const float GAIN = 2.0;
layout(constant_id = 4) const int TAPS = 5;
layout(set = 0, binding = 0) buffer Live { float live[]; };
layout(set = 0, binding = 1) buffer Dead { float dead[]; };
layout(set = 1, binding = 5) uniform Table { vec4 table[TAPS]; };
layout(push_constant) uniform P { float scale; layout(offset = 16) ivec2 at; };
shared float room[64];
void main() {
    live[gl_GlobalInvocationID.x] += 1.0;
    if (false) {
        room[gl_LocalInvocationID.x] = scale; barrier();
        dead[at.x] = room[at.y] * GAIN + table[TAPS - 1].x;
    }
}
"""
HLSL = """
RWStructuredBuffer<float> live : register(u0);
struct Settings { float scale; int2 at; };
[[vk::push_constant]] Settings settings;
float unused() { return settings.scale; }
[numthreads(4, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { live[id.x] += 1.0; }
"""


def arguments(module: kp.ShaderModule) -> dict[str, object]:
    """What the optimizer has no say in: all but capabilities and the like."""
    r = module.reflection
    names = ("entry", "entry_points", "bindings", "push_constants", "spec_constants", "local_size")
    return {name: r[name] for name in (*names, "local_size_spec_ids")}


@pytest.mark.own_driver
@pytest.mark.parametrize("level", ["performance", "size"])
@pytest.mark.parametrize("source", [DEAD, HLSL], ids=["glsl", "hlsl"])
def test_the_signature_is_the_same_at_all_levels(source, level):
    language = "hlsl" if source is HLSL else "glsl"
    optimized = kp.ShaderModule(source, language=language, optimize=level)
    plain = kp.ShaderModule(source, language=language, optimize="none")
    assert optimized.to_spirv() != plain.to_spirv()
    assert arguments(optimized) == arguments(plain)
    assert optimized.signature.text("k") == plain.signature.text("k")


def test_what_only_dead_code_uses_is_an_argument(mgr):
    kernel = mgr.kernel(DEAD, name="dead")
    assert kernel.signature.text("dead") == (
        "dead(inout float[] live, out float[] dead, vec4[5] table, *, float scale, ivec2 at)"
    )
    assert [c["name"] for c in kernel.signature.spec_constants] == ["GAIN", "TAPS", ""]
    live, dead = mgr.tensor(np.zeros(4, np.float32)), mgr.zeros(4)
    table = mgr.tensor(np.zeros((5, 4), np.float32))
    kernel(live, dead, table, scale=2.0, at=(1, 2), groups=4)
    kernel.specialize(GAIN=0.5)(live, dead, table, scale=2.0, at=(1, 2), groups=4)
    np.testing.assert_array_equal(live.read(), 2)
    np.testing.assert_array_equal(dead.read(), 0)
    with pytest.raises(kp.InvalidArgumentError, match="dead: missing push constant scale"):
        kernel(live, dead, table, at=(1, 2))
    # What runs decides what is waited for: no dispatch writes `dead`.
    assert {b["binding"]: b["access"] for b in kernel._version.native.reflection["bindings"]} == {
        0: "read_write", 1: "none", 5: "none",
    }  # fmt: skip


def test_an_algorithm_of_a_module_has_its_constants(mgr):
    module = kp.ShaderModule(
        """
        #version 450
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer A { float a[]; };
        layout(push_constant) uniform P { float scale; };
        void main() { a[0] += 1.0; if (false) a[0] = scale; }
        """
    )
    a = mgr.tensor([1.0])
    algorithm = mgr.algorithm([a], module, (1, 1, 1), [], [2.5])
    mgr.sequence().record(kp.OpSyncDevice([a])).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpSyncLocal([a])
    ).eval()
    assert a.data() == [2.0]
    # Its bytes alone cannot tell.
    with pytest.warns(kp.KomputeWarning, match="no push constants"):
        mgr.algorithm([a], module.to_spirv(), (1, 1, 1), [], [2.5])


def test_another_module_and_dtypes_know_as_much():
    module = kp.ShaderModule(DEAD)
    assert kp.ShaderModule(module).reflection == module.reflection
    assert kp.struct_dtype(module, "dead") == kp.struct_dtype(DEAD, "dead") == np.dtype(np.float32)


def reflected_by_another_process(source):
    def refuse(*arguments):
        raise AssertionError("the compiler ran")

    _native.compile = refuse
    return arguments(kp.ShaderModule(source))


def test_it_comes_out_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path))
    expected = arguments(kp.ShaderModule(DEAD))
    assert expected["push_constants"]["size"] == 24
    assert run_child(reflected_by_another_process, DEAD) == json.loads(json.dumps(expected))


def test_an_edit_of_dead_code_alone_is_another_version(mgr, tmp_path):
    path = tmp_path / "edited.comp"
    path.write_text(DEAD)
    kernel = mgr.kernel(path)
    path.write_text(DEAD.replace("float scale;", "float strength;").replace("= scale", "= strength"))
    assert kernel.reload()
    assert kernel.signature.push.names == ("strength", "at")


def test_the_command_line_shows_it(tmp_path):
    path = tmp_path / "dead.comp"
    path.write_text(DEAD)
    command = [sys.executable, "-m", "kompute_py", "reflect", str(path), "--json"]
    shown = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=500).stdout
    )
    assert [m["name"] for m in shown["push_constants"]["layout"]["members"]] == ["scale", "at"]


def test_assembly_may_need_a_newer_version_than_its_comments_say(mgr):
    # Its storage class came with SPIR-V 1.3: whoever edited the text kept the comments.
    text = """; SPIR-V
; Version: 1.0
               OpCapability Shader
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %out
               OpExecutionMode %main LocalSize 1 1 1
               OpDecorate %block Block
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %out DescriptorSet 0
               OpDecorate %out Binding 0
       %void = OpTypeVoid
       %uint = OpTypeInt 32 0
      %block = OpTypeStruct %uint
    %pointer = OpTypePointer StorageBuffer %block
        %out = OpVariable %pointer StorageBuffer
   %function = OpTypeFunction %void
       %main = OpFunction %void None %function
      %label = OpLabel
               OpReturn
               OpFunctionEnd
"""
    assert mgr.kernel(text).reflection["version"] > (1, 3)
    older = text.replace("StorageBuffer", "Uniform").replace(" %out\n", "\n")
    assert kp.ShaderModule(older).reflection["version"] == (1, 0)


def test_scalar_layout_of_shared_blocks_is_a_feature_by_name(mgr):
    source = """
    #version 450
    #extension GL_EXT_scalar_block_layout : enable
    #extension GL_EXT_shared_memory_block : enable
    layout(local_size_x = 1) in;
    layout(scalar) shared S { float a; vec3 b; vec2 c; vec4 d; } s;
    void main() { s.b = vec3(1); s.d = vec4(1); }
    """
    if "workgroupMemoryExplicitLayoutScalarBlockLayout" in mgr.enabled_features:
        mgr.kernel(source)
        return
    with pytest.raises(
        kp.UnimplementedError,
        match=r"WorkgroupMemoryExplicitLayoutKHR needs.*workgroupMemoryExplicitLayoutScalarBlockLayout",
    ):
        mgr.kernel(source)
