"""SPIR-V that is taken as valid: `unchecked=True`, and bfloat16, which needs it with an older validator."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.sampling import sampled

# Reads 16-bit floats and writes them as float32. `bfloat16` makes the former bfloat16.
WIDEN = """; Version: 1.3
OpCapability Shader
OpCapability Int8
OpCapability StorageBuffer16BitAccess
{extension}OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %id
OpExecutionMode %main LocalSize 32 1 1
OpName %xs "x"
OpName %ys "y"
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %halves ArrayStride 2
OpDecorate %floats ArrayStride 4
OpDecorate %X Block
OpDecorate %Y Block
OpMemberDecorate %X 0 Offset 0
OpMemberDecorate %Y 0 Offset 0
OpDecorate %xs DescriptorSet 0
OpDecorate %xs Binding 0
OpDecorate %ys DescriptorSet 0
OpDecorate %ys Binding 1
%void = OpTypeVoid
%fn = OpTypeFunction %void
%uint = OpTypeInt 32 0
%uvec3 = OpTypeVector %uint 3
%half = OpTypeFloat 16
%float = OpTypeFloat 32
%halves = OpTypeRuntimeArray %half
%floats = OpTypeRuntimeArray %float
%X = OpTypeStruct %halves
%Y = OpTypeStruct %floats
%in_uvec3 = OpTypePointer Input %uvec3
%in_uint = OpTypePointer Input %uint
%to_X = OpTypePointer StorageBuffer %X
%to_Y = OpTypePointer StorageBuffer %Y
%to_half = OpTypePointer StorageBuffer %half
%to_float = OpTypePointer StorageBuffer %float
%zero = OpConstant %uint 0
%id = OpVariable %in_uvec3 Input
%xs = OpVariable %to_X StorageBuffer
%ys = OpVariable %to_Y StorageBuffer
%main = OpFunction %void None %fn
%entry = OpLabel
%at = OpAccessChain %in_uint %id %zero
%i = OpLoad %uint %at
%from = OpAccessChain %to_half %xs %zero %i
%value = OpLoad %half %from
%wide = OpFConvert %float %value
%to = OpAccessChain %to_float %ys %zero %i
OpStore %to %wide
OpReturn
OpFunctionEnd
"""
INT8, BFLOAT16 = 39, 5116
FLOAT16 = [3 << 16 | 22, 16]  # OpTypeFloat without its result


def widen(bfloat16: bool) -> bytes:
    """The assembler need not know bfloat16: its capability and its encoding are words."""
    extension = 'OpExtension "SPV_KHR_bfloat16"\n' if bfloat16 else ""
    made = np.frombuffer(kp.assemble(WIDEN.format(extension=extension)), np.uint32).tolist()
    if bfloat16:
        made[made.index(INT8, 5)] = BFLOAT16
        at = next(i for i in range(5, len(made)) if [made[i], made[i + 2]] == FLOAT16)
        made[at : at + 3] = [4 << 16 | 22, made[at + 1], 16, 0]
    return np.array(made, np.uint32).tobytes()


HALVES = np.arange(100, dtype=np.float16)
INVALID = np.frombuffer(widen(bfloat16=False), np.uint32).tolist()
INVALID[INVALID.index(4 << 16 | 61) + 3] = INVALID[3] - 1  # OpLoad, but not of a pointer


@pytest.mark.capability(
    "W18", "SPIR-V that is taken as valid, unchecked", "kp.ShaderModule", "guides/kernels"
)
@pytest.mark.parametrize("checked_first", [False, True])
def test_unchecked_code_runs(mgr, needs, checked_first):
    """The same module, checked and not, is one; an unchecked one does not serve who wants a check."""
    for feature in ("storageBuffer16BitAccess", "shaderInt8"):
        needs(mgr, feature)
    spirv = widen(bfloat16=False)
    order = [{}, {"unchecked": True}] if checked_first else [{"unchecked": True}, {}]
    for options in order:
        found = mgr.kernel(spirv, **options)(HALVES, np.zeros(100, np.float32))
        assert (found == HALVES).all()


def test_invalid_code_is_refused_unless_it_is_unchecked(mgr):
    invalid = np.array(INVALID, np.uint32).tobytes()
    module = kp.ShaderModule(invalid, unchecked=True)
    for wrong in (kp.ShaderModule(invalid), invalid):
        with pytest.raises(kp.KomputeError):
            mgr.kernel(wrong)
        with pytest.raises(kp.KomputeError):
            mgr.algorithm([mgr.zeros(4)], wrong)
    assert module._unchecked
    assert pickle.loads(pickle.dumps(module))._unchecked
    assert kp.ShaderModule(module)._unchecked
    assert not kp.ShaderModule(invalid)._unchecked


def of_unchecked() -> list[str]:
    """The null driver takes any code: what is skipped, and in which order the two are asked for."""
    invalid = np.array(INVALID, np.uint32).tobytes()
    told = []
    control = null_control()
    with kp.Manager() as mgr:
        for unchecked in (False, True, False):
            try:
                mgr.kernel(kp.ShaderModule(invalid, unchecked=unchecked))
                told.append("taken")
            except kp.InvalidArgumentError as error:
                told.append(str(error))
        told.append(str(control.calls("vkCreateShaderModule")))
    return told


@pytest.mark.own_driver
def test_only_the_check_is_skipped():
    first, second, third, modules = run_child(of_unchecked, driver="null")
    assert "not valid" in first and third == first
    assert second == "taken" and modules == "1"


def of_bfloat16(ask: bool) -> dict[str, Any]:
    control = null_control()
    control.log(True)
    told: dict[str, Any] = {}
    spirv = widen(bfloat16=True)
    module = kp.ShaderModule(spirv, unchecked=True)
    told["signature"] = str(module.signature)
    with kp.Manager() as mgr:
        told["features"] = [name for name in mgr.enabled_features if "BFloat16" in name]
        told["enabled"] = control.devices()[-1]["features"].get("1000141000")
        info = mgr.get_device_properties()
        told["problems"] = [str(each) for each in kp.check(spirv, info)]
        try:
            mgr.kernel(spirv)
            told["checked"] = ""
        except kp.KomputeError as error:
            told["checked"] = f"{type(error).__name__}: {error}"
        if ask:
            kernel = mgr.kernel(module)
            halves = mgr.zeros(100, dtype=kp.DataTypes.bfloat16)
            kernel(halves, mgr.zeros(100))
            told["dispatches"] = control.dispatches
            for other in (np.float16, np.uint16):
                with pytest.raises(kp.KomputeError) as caught:
                    kernel(mgr.zeros(100, dtype=other), mgr.zeros(100))
                told[np.dtype(other).name] = str(caught.value)
    told["violations"] = control.violations()
    return told


@pytest.mark.own_driver
@pytest.mark.capability(
    "", "bfloat16 in shaders (VK_KHR_shader_bfloat16)", "kp.ShaderModule", "reference/kernel_rules"
)
def test_bfloat16_where_the_device_has_it():
    """The null driver runs no shader, but the declaration decides what may be given."""
    told = run_child(of_bfloat16, True, driver="null", config="bfloat16=1")
    assert told["features"] == ["shaderBFloat16Type", "shaderBFloat16DotProduct"]
    assert told["enabled"] == [1, 1, 0]
    assert "bfloat16_t[] x" in told["signature"]
    # SPIRV-Tools before 2025 does not know the capability: then the check cannot be done, and says so.
    assert told["checked"] == "" or re.search(
        r"BFloat16TypeKHR.* newer than .*validator.*unchecked=True", told["checked"]
    )
    assert told["dispatches"] >= 1 and not told["violations"]
    assert "bfloat16" in told["float16"] and "bfloat16" in told["uint16"]


@pytest.mark.own_driver
def test_bfloat16_names_what_a_device_lacks():
    told = run_child(of_bfloat16, False, driver="null")
    assert told["features"] == [] and told["enabled"] is None
    for text in (told["checked"], " ".join(told["problems"])):
        assert "'shaderBFloat16Type' of the extension VK_KHR_shader_bfloat16" in text
    assert told["checked"].startswith("UnimplementedError")


def test_constants_of_bfloat16_are_refused():
    text = WIDEN.format(extension="").replace("OpDecorate %id", "OpDecorate %c SpecId 3\nOpDecorate %id", 1)
    text = text.replace(
        "%float = OpTypeFloat 32", "%c = OpSpecConstant %half 1.5\n%float = OpTypeFloat 32", 1
    )
    made = np.frombuffer(kp.assemble(text.replace("Int8", "Float16")), np.uint32).tolist()
    at = next(i for i in range(5, len(made)) if [made[i], made[i + 2]] == FLOAT16)
    made[at : at + 3] = [4 << 16 | 22, made[at + 1], 16, 0]
    module = kp.ShaderModule(np.array(made, np.uint32), unchecked=True)
    constant = module.reflection["spec_constants"][0]
    # 0x3E00 is 1.5 as a float16, and another number as a bfloat16.
    assert constant["type"] == "bfloat16" and constant["default"] == 0.125
    with pytest.raises(kp.UnimplementedError, match="constant of bfloat16"):
        _ = module.signature


def of_garbage(turns: int, seed: int) -> dict[str, int]:
    """Mutated modules, taken as valid, by a driver that reads nothing."""
    random = np.random.default_rng(seed)
    source = """#version 450
layout(local_size_x = 32) in;
layout(constant_id = 0) const int TURNS = 3;
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) uniform U { vec4 u[4]; mat2 m; };
layout(binding = 2, r32f) uniform image2D image;
layout(push_constant) uniform P { uint n; vec3 p; };
shared float s[64];
float f(float a, uint i) { return a * u[i & 3].x + m[1][0]; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) return;
    s[gl_LocalInvocationID.x] = x[i];
    barrier();
    for (int k = 0; k < TURNS; ++k) x[i] += f(s[k], i) + imageLoad(image, ivec2(k, i)).x;
    imageStore(image, ivec2(i), vec4(p, atomicAdd(n_, 1u)));
}""".replace("atomicAdd(n_, 1u)", "float(n / uint(TURNS))")
    plain = np.frombuffer(kp.compile(source), np.uint32)
    ended = {"made": 0, "refused": 0}
    with kp.Manager(recent_pipelines=0) as mgr:
        for _ in range(turns):
            words = plain.copy()
            for _ in range(random.integers(1, 6)):
                at = random.integers(5, len(words))
                words[at] = random.choice(
                    [random.integers(0, 2**32), words[random.integers(5, len(words))], words[at] + 1]
                )
            if random.random() < 0.1:
                words = words[: random.integers(1, len(words))]
            try:
                kernel = mgr.kernel(kp.ShaderModule(words, unchecked=True))
                kernel.specialize(TURNS=5)
                ended["made"] += 1
            except kp.KomputeError:
                ended["refused"] += 1
    return ended


@pytest.mark.own_driver
def test_what_reads_unchecked_code_survives_garbage():
    ended = run_child(of_garbage, sampled(1000, 20000), 34, driver="null")
    assert min(ended.values()) > 100
