"""The variables of a module, and pointers to them.

A compute shader has no inputs but built-ins of their own types, no outputs, and six storage classes. Pointers
into variables are no addresses, and point to something.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

MODULE = """OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" {listed}
OpExecutionMode %main LocalSize 1 1 1
OpName %x "x"
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
{decorated}
%void = OpTypeVoid
%fn = OpTypeFunction %void
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%v3uint = OpTypeVector %uint 3
%v4float = OpTypeVector %float 4
{types}
%zero = OpConstant %uint 0
%block = OpTypeStruct %uint
%outer = OpTypePointer StorageBuffer %block
%inner = OpTypePointer StorageBuffer %uint
%out = OpVariable %outer StorageBuffer
%pointer = OpTypePointer {storage} %{type}
%x = OpVariable %pointer {storage}
%main = OpFunction %void None %fn
%entry = OpLabel
{used}
OpReturn
OpFunctionEnd
"""


# By name, for variables that the module does not need otherwise.
TYPES = {
    "v2uint": "%v2uint = OpTypeVector %uint 2",
    "v4uint": "%v4uint = OpTypeVector %uint 4",
    "v3float": "%v3float = OpTypeVector %float 3",
    "array": "%three = OpConstant %uint 3\n%array = OpTypeArray %uint %three",
    "ulong": "%ulong = OpTypeInt 64 0",
    "int": "%int = OpTypeInt 32 1",
    "v3int": "%int = OpTypeInt 32 1\n%v3int = OpTypeVector %int 3",
}


def module(storage, kind="uint", decorated="", used="", listed="%x"):
    if listed:  # from SPIR-V 1.4 on all variables are
        listed += " %out"
    return "; Version: 1.3\n" + MODULE.format(
        storage=storage, type=kind, types=TYPES.get(kind, ""), decorated=decorated, used=used, listed=listed
    )


LOAD = "%value = OpLoad %uint %x\n%at = OpAccessChain %inner %out %zero\nOpStore %at %value"

REFUSED = {
    "input": (module("Input", used=LOAD), "'x' is an Input without the decoration BuiltIn"),
    "input with a location": (
        module("Input", decorated="OpDecorate %x Location 0", used=LOAD),
        "'x' is an Input without the decoration BuiltIn",
    ),
    "input that is not used": (module("Input"), "'x' is an Input without the decoration BuiltIn"),
    "input that is not listed": (module("Input", listed=""), "'x' is an Input without"),
    "output": (module("Output", used="OpStore %x %zero"), "'x' is an Output"),
    "output with a location": (
        module("Output", "v4float", decorated="OpDecorate %x Location 0"),
        "'x' is an Output, and a compute shader has none",
    ),
    "a built-in of the fragment stage": (
        module("Input", "v4float", decorated="OpDecorate %x BuiltIn FragCoord"),
        "FragCoord",
    ),
    "a built-in of the vertex stage": (
        module("Input", "uint", decorated="OpDecorate %x BuiltIn VertexIndex", used=LOAD),
        "VertexIndex",
    ),
    "AtomicCounter": (module("AtomicCounter", listed=""), "AtomicCounter"),
    "CrossWorkgroup": (module("CrossWorkgroup", listed=""), "CrossWorkgroup"),
    "Image": (module("Image", listed=""), "Image"),
}


LIKE = "OpDecorate %x BuiltIn LocalInvocationIndex"
VECTOR = "OpDecorate %x BuiltIn GlobalInvocationId"
for kind in ("v2uint", "v3uint", "v4uint", "float", "array", "block"):
    REFUSED[f"a scalar built-in as {kind}"] = (module("Input", kind, LIKE), "one 32-bit integer")
for kind in ("uint", "v2uint", "v4uint", "v3float", "array"):
    REFUSED[f"a vector built-in as {kind}"] = (module("Input", kind, VECTOR), "a vector of 3 32-bit integers")
for storage in ("Private", "Workgroup"):
    for name, kind, decorated in (("scalar", "uint", LIKE), ("vector", "v3uint", VECTOR)):
        REFUSED[f"a {name} built-in that is {storage}"] = (
            module(storage, kind, decorated),
            "its storage class is not Input",
        )
# With 64-bit integers, which the module then declares.
REFUSED["a scalar built-in of 64 bits"] = (
    module("Input", "ulong", LIKE).replace("OpCapability Shader", "OpCapability Shader\nOpCapability Int64"),
    "one 32-bit integer",
)


def refused(mgr, text):
    """The errors of a kernel and of an algorithm."""
    module, errors = kp.ShaderModule(text), []
    for make in (lambda: mgr.kernel(text), lambda: mgr.algorithm([mgr.zeros(4)], module, (1, 1, 1))):
        with pytest.raises(kp.KomputeError) as caught:
            make()
        errors.append(type(caught.value))
    return errors


def ran(mgr, text):
    """The number that a module, in which nothing is wrong, writes."""
    assert kp.check(text, mgr) == []
    out = mgr.tensor_t(np.full(4, 9, np.uint32))
    mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([out], kp.ShaderModule(text), (1, 1, 1))))
    return out.read()[0]


@pytest.mark.parametrize("name", REFUSED)
def test_variables_that_a_compute_shader_cannot_have(mgr, name):
    text, says = REFUSED[name]
    found = kp.check(text, mgr)
    assert found and all(f.kind in ("validation", "capability") for f in found)
    assert any(says in str(f) for f in found), found
    assert set(refused(mgr, text)) <= {kp.InvalidArgumentError, kp.UnimplementedError}


BUILT_INS = ("NumWorkgroups", "WorkgroupId", "LocalInvocationId", "GlobalInvocationId")


@pytest.mark.parametrize("name", [*BUILT_INS, "LocalInvocationIndex"])
def test_built_ins_of_compute_shaders(mgr, name):
    vector = name in BUILT_INS
    used = LOAD
    if vector:
        used = LOAD.replace("OpLoad %uint %x", "OpCompositeExtract %uint %all 0")
        used = "%all = OpLoad %v3uint %x\n" + used
    text = module(
        "Input", "v3uint" if vector else "uint", decorated=f"OpDecorate %x BuiltIn {name}", used=used
    )
    assert ran(mgr, text) == (1 if name == "NumWorkgroups" else 0)


@pytest.mark.parametrize(("name", "kind"), [("LocalInvocationIndex", "int"), ("WorkgroupId", "v3int")])
def test_built_ins_may_be_signed(mgr, name, kind):
    text = module("Input", kind, decorated=f"OpDecorate %x BuiltIn {name}", used=f"%all = OpLoad %{kind} %x")
    assert kp.check(text, mgr) == []
    mgr.kernel(text)


def test_variables_of_another_stage_do_not_matter(mgr):
    """A module may hold a fragment shader, too, with its inputs and outputs."""
    text = module("Output", "v4float", "OpDecorate %x Location 0", listed="")
    text = text.replace(
        "OpExecutionMode %main",
        'OpEntryPoint Fragment %draw "draw" %x\nOpExecutionMode %draw OriginUpperLeft\nOpExecutionMode %main',
    )
    text += "%draw = OpFunction %void None %fn\n%begin = OpLabel\nOpReturn\nOpFunctionEnd\n"
    assert kp.check(text, mgr) == []
    mgr.kernel(text, entry="main")


def test_the_name_of_the_entry_is_utf8(mgr):
    """Drivers find the entry by the bytes of its name."""
    words = np.frombuffer(kp.compile("#version 450\nvoid main() {}"), np.uint32).tobytes()
    for name, found in ((b"m\xc3\xa4n", "m\u00e4n"), (b"mai\xf7", None)):
        changed = words.replace(b"main", name)
        if found is not None:
            assert mgr.kernel(changed).signature.entry == found
            continue
        assert "is not UTF-8" in str(kp.check(changed, mgr))
        for make in (mgr.kernel, lambda code: kp.ShaderModule(code).signature):
            with pytest.raises(kp.InvalidArgumentError, match=r"the name of the entry 'mai.*is not UTF-8"):
                make(changed)


def test_columns_of_a_matrix_do_not_lie_on_each_other(mgr):
    source = """#version 450
        layout(set = 0, binding = 0) buffer B { float first; mat4 m; };
        void main() { m[1].x = first; }"""
    words = np.frombuffer(kp.compile(source), np.uint32).copy()
    member_decorate, matrix_stride = 5 << 16 | 72, 7
    at = next(
        i for i in range(5, len(words)) if words[i] == member_decorate and words[i + 3] == matrix_stride
    )
    assert words[at + 4] == 16
    words[at + 4] = 0
    assert "has MatrixStride 0" in str(kp.check(words.tobytes(), mgr))
    for make in (mgr.kernel, lambda code: kp.ShaderModule(code).signature):
        with pytest.raises(kp.InvalidArgumentError, match=r"member 1 of type .*'B' has MatrixStride 0"):
            make(words.tobytes())


# --------------------------------------------------------------------------------------------------- pointers

POINTERS = """; Version: 1.3
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
REFUSED_POINTERS = {
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


@pytest.mark.parametrize("name", REFUSED_POINTERS)
def test_pointers_that_are_refused(mgr, name):
    used, says = REFUSED_POINTERS[name]
    null = "%null = OpConstantNull %local" if "null" in used else ""
    text = POINTERS.format(used=used, capability="", null=null)
    found = kp.check(text, mgr)
    assert any(f.kind == "validation" and says in f.message for f in found), found
    assert refused(mgr, text) == [kp.InvalidArgumentError] * 2


TAKEN_POINTERS = {
    "none": "",
    "a copy": "%p = OpCopyObject %local %x\nOpStore %p %zero",
    "an argument": "%r = OpFunctionCall %void %called %x",
    "a number as another": "%n = OpBitcast %float %seven",
    "names that nothing uses": "%u = OpUndef %local",
}


@pytest.mark.parametrize("name", TAKEN_POINTERS)
def test_pointers_that_are_taken(mgr, name):
    text = POINTERS.format(used=TAKEN_POINTERS[name], capability="", null="")
    assert ran(mgr, text) == 7


VARIABLE = {
    ("", "part"): False, ("VariablePointersStorageBuffer", "part"): True,
    ("VariablePointersStorageBuffer", "tile"): False, ("VariablePointers", "part"): True,
    ("VariablePointers", "tile"): True, ("VariablePointers", "local"): False,
}  # fmt: skip


@pytest.mark.parametrize(("capability", "kind"), VARIABLE)
def test_null_pointers_where_pointers_are_variable(mgr, capability, kind):
    """With the capability of its storage class a pointer may be null until the shader gives it another
    value."""
    declared = f"OpCapability {capability}" if capability else ""
    null = f"%tile = OpTypePointer Workgroup %uint\n%null = OpConstantNull %{kind}"
    text = POINTERS.format(used="", capability=declared, null=null)
    found = [each.message for each in kp.check(text, mgr) if each.what == "SPIR-V"]
    assert (found == []) == VARIABLE[capability, kind]
    assert all("is a null pointer" in each for each in found)
