"""The pointers of a module: those into variables are no addresses, and point to something."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

MODULE = """; Version: 1.3
OpCapability Shader
{capability}
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpName %x "x"
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%zero = OpConstant %uint 0
%seven = OpConstant %uint 7
%block = OpTypeStruct %uint
%whole = OpTypePointer StorageBuffer %block
%part = OpTypePointer StorageBuffer %uint
%local = OpTypePointer Function %uint
%other = OpTypePointer Function %float
%out = OpVariable %whole StorageBuffer
{null}
%undefined = OpUndef %local
%missing = OpUndef %whole
%takes = OpTypeFunction %void %local
%main = OpFunction %void None %fn
%entry = OpLabel
%x = OpVariable %local Function
%at = OpAccessChain %part %out %zero
{used}
OpStore %at %seven
OpReturn
OpFunctionEnd
%called = OpFunction %void None %takes
%given = OpFunctionParameter %local
%begin = OpLabel
OpReturn
OpFunctionEnd
"""
REFUSED = {
    "a local variable as a number": ("%n = OpBitcast %uint %x\nOpStore %at %n", "OpBitcast converts 'x'"),
    "a part of a buffer as a number": (
        "%n = OpBitcast %uint %at\nOpStore %at %n",
        "OpBitcast converts the id",
    ),
    "a buffer as a number": ("%n = OpBitcast %uint %out", "OpBitcast converts the id"),
    "a pointer as another": ("%p = OpBitcast %other %x", "OpBitcast converts 'x'"),
    "a number as a pointer": ("%p = OpBitcast %local %seven", "OpBitcast makes a pointer"),
    "a null pointer": ("%p = OpCopyObject %local %null\nOpStore %p %zero", "is a null pointer"),
    "an undefined one's copy": (
        "%p = OpCopyObject %local %undefined\nOpStore %p %seven",
        "undefined pointer",
    ),
    "a part of an undefined one": (
        "%p = OpAccessChain %part %missing %zero\nOpStore %p %seven",
        "undefined pointer",
    ),
    "an undefined argument": ("%r = OpFunctionCall %void %called %undefined", "undefined pointer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_pointers_that_are_refused(mgr, name):
    used, says = REFUSED[name]
    null = "%null = OpConstantNull %local" if "null" in used else ""
    text = MODULE.format(used=used, capability="", null=null)
    found = kp.check(text, mgr)
    assert any(f.kind == "validation" and says in f.message for f in found), found
    module = kp.ShaderModule(text)
    for make in (lambda: mgr.kernel(text), lambda: mgr.algorithm([mgr.zeros(4)], module, (1, 1, 1))):
        with pytest.raises(kp.InvalidArgumentError):
            make()


TAKEN = {
    "none": "",
    "a copy": "%p = OpCopyObject %local %x\nOpStore %p %zero",
    "an argument": "%r = OpFunctionCall %void %called %x",
    "a number as another": "%n = OpBitcast %float %seven",
    "names that nothing uses": "%u = OpUndef %local",
}


@pytest.mark.parametrize("name", TAKEN)
def test_pointers_that_are_taken(mgr, needs, name):
    needs(mgr, "dispatch")
    text = MODULE.format(used=TAKEN[name], capability="", null="")
    assert kp.check(text, mgr) == []
    out = mgr.tensor_t(np.full(4, 9, np.uint32))
    mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([out], kp.ShaderModule(text), (1, 1, 1))))
    assert out.read()[0] == 7


VARIABLE = {
    ("", "part"): False,
    ("VariablePointersStorageBuffer", "part"): True,
    ("VariablePointersStorageBuffer", "tile"): False,
    ("VariablePointers", "part"): True,
    ("VariablePointers", "tile"): True,
    ("VariablePointers", "local"): False,
}


@pytest.mark.parametrize(("capability", "kind"), VARIABLE)
def test_null_pointers_where_pointers_are_variable(mgr, capability, kind):
    """With the capability of its storage class a pointer may be null until the shader gives it another
    value."""
    declared = f"OpCapability {capability}" if capability else ""
    null = f"%tile = OpTypePointer Workgroup %uint\n%null = OpConstantNull %{kind}"
    text = MODULE.format(used="", capability=declared, null=null)
    found = [each.message for each in kp.check(text, mgr) if each.what == "SPIR-V"]
    assert (found == []) == VARIABLE[capability, kind]
    assert all("is a null pointer" in each for each in found)
