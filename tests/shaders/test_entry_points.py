"""Modules with several entry points, with none, and with those of other stages."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp


def module(*entries: str) -> str:
    """Assembly of one module: each of `entries` is a compute shader of its own local size that stores its own
    number.
    """
    heads, modes, functions = "", "", ""
    for i, name in enumerate(entries):
        heads += f'OpEntryPoint GLCompute %f{i} "{name}" %id %data %block{i}\n'
        modes += f"OpExecutionMode %f{i} LocalSize {4 << i} 1 1\n"
        functions += f"""
            %f{i} = OpFunction %void None %fn
            %l{i} = OpLabel
            %v{i} = OpLoad %uvec3 %id
            %x{i} = OpCompositeExtract %uint %v{i} 0
            %c{i} = OpAccessChain %uniform_float %block{i} %zero
            %s{i} = OpLoad %float %c{i}
            %n{i} = OpFMul %float %s{i} %k{i}
            %p{i} = OpAccessChain %storage_float %data %zero %x{i}
            OpStore %p{i} %n{i}
            OpReturn
            OpFunctionEnd
        """
    blocks = "".join(
        f"OpDecorate %block{i} DescriptorSet 0\nOpDecorate %block{i} Binding {i + 1}\n"
        for i in range(len(entries))
    )
    return f"""
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        {heads}
        {modes}
        OpName %data "data"
        OpName %B "Data"
        OpMemberName %B 0 "values"
        {"".join(f'OpName %block{i} "of_{name}" ' + chr(10) for i, name in enumerate(entries))}
        OpName %P "Numbers"
        OpMemberName %P 0 "factor"
        OpDecorate %id BuiltIn GlobalInvocationId
        OpDecorate %runtime ArrayStride 4
        OpDecorate %B Block
        OpMemberDecorate %B 0 Offset 0
        OpDecorate %P Block
        OpMemberDecorate %P 0 Offset 0
        OpDecorate %data DescriptorSet 0
        OpDecorate %data Binding 0
        {blocks}
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %float = OpTypeFloat 32
        %uint = OpTypeInt 32 0
        %uvec3 = OpTypeVector %uint 3
        %input = OpTypePointer Input %uvec3
        %id = OpVariable %input Input
        %runtime = OpTypeRuntimeArray %float
        %B = OpTypeStruct %runtime
        %buffer = OpTypePointer StorageBuffer %B
        %storage_float = OpTypePointer StorageBuffer %float
        %data = OpVariable %buffer StorageBuffer
        %P = OpTypeStruct %float
        %uniform = OpTypePointer Uniform %P
        %uniform_float = OpTypePointer Uniform %float
        {"".join(f"%block{i} = OpVariable %uniform Uniform {chr(10)}" for i in range(len(entries)))}
        %zero = OpConstant %uint 0
        {"".join(f"%k{i} = OpConstant %float {i + 1} {chr(10)}" for i in range(len(entries)))}
        {functions}
    """


VERTEX = """
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint Vertex %main "main"
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %main = OpFunction %void None %fn
    %label = OpLabel
    OpReturn
    OpFunctionEnd
"""
LIBRARY = """
    OpCapability Shader
    OpCapability Linkage
    OpMemoryModel Logical GLSL450
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %main = OpFunction %void None %fn
    %label = OpLabel
    OpReturn
    OpFunctionEnd
"""


@pytest.mark.capability(
    "I67 S39", "modules with several entry points", "ShaderModule.entry_points", "reference/shaders"
)
def test_a_kernel_for_each_entry_point(mgr):
    source = module("blur", "sharpen")
    one, factor = mgr.zeros(8), mgr.tensor(np.array([3], np.float32))
    blur = mgr.kernel(source, entry="blur")
    sharpen = mgr.kernel(blur, entry="sharpen")
    assert blur.entry_points == sharpen.entry_points == ("blur", "sharpen")
    assert (blur.name, sharpen.name) == ("blur", "sharpen")
    assert blur.local_size == (4, 1, 1) and sharpen.local_size == (8, 1, 1)
    # What the other one binds is in the module, and no argument that must be given.
    blur(one, of_blur=factor)
    assert np.array_equal(one.read(), np.full(8, 3))
    sharpen(one, of_sharpen=factor)
    assert np.array_equal(one.read(), np.full(8, 6))
    blur(one, of_blur=factor)
    assert np.array_equal(one.read(), np.full(8, 3))
    sequence = mgr.sequence().record(sharpen.bind(one, of_sharpen=factor), kp.OpSyncLocal([one])).eval()
    assert np.array_equal(one.data(), np.full(8, 6))
    assert "kernel" not in repr(sequence)


def test_an_algorithm_takes_an_entry_point(mgr):
    spirv = kp.ShaderModule(module("blur", "sharpen"), entry="blur").to_spirv()
    data, factor = mgr.tensor(np.zeros(8, np.float32)), mgr.tensor(np.array([1], np.float32))
    results = []
    for entry in ("blur", "sharpen", "blur"):
        algorithm = mgr.algorithm([data, factor, factor], spirv, (2, 1, 1), entry=entry)
        mgr.sequence().record(
            kp.OpSyncDevice([factor]), kp.OpAlgoDispatch(algorithm), kp.OpSyncLocal([data])
        ).eval()
        results.append(data.data()[0])
    assert results == [1, 2, 1]
    chosen = kp.ShaderModule(spirv, entry="sharpen")
    assert mgr.algorithm([data, factor, factor], chosen, (1, 1, 1)).local_size == (8, 1, 1)
    assert mgr.algorithm([data, factor, factor], chosen, (1, 1, 1), entry="blur").local_size == (4, 1, 1)
    with pytest.raises(kp.InvalidArgumentError, match="'blur', 'sharpen'"):
        mgr.algorithm([data], spirv)


def test_the_choice_is_made_by_name(mgr):
    with pytest.raises(
        kp.InvalidArgumentError,
        match=r"has 2 compute entry points: 'blur', 'sharpen': choose one with entry=",
    ):
        mgr.kernel(module("blur", "sharpen"))
    with pytest.raises(
        kp.InvalidArgumentError, match=r"no compute entry point 'blurr'; it has 'blur', 'sharpen'"
    ):
        mgr.kernel(module("blur", "sharpen"), entry="blurr")
    with pytest.raises(kp.ArgumentTypeError, match="entry is an int"):
        mgr.kernel(module("blur", "sharpen"), entry=1)
    # One that is called main needs no choice, nor does the only one.
    assert mgr.kernel(module("blur", "main")).module.entry == "main"
    assert mgr.kernel(module("blur")).module.entry == "blur"
    assert [p["name"] for p in mgr.kernel(module("blur")).reflection["entry_points"]] == ["blur"]


def test_the_module_of_a_file_too(mgr, tmp_path):
    path = tmp_path / "filters.spv"
    path.write_bytes(kp.ShaderModule(module("blur", "sharpen"), entry="blur").to_spirv())
    assert mgr.kernel(path, entry="sharpen").local_size == (8, 1, 1)
    with pytest.raises(kp.InvalidArgumentError, match=r"^filters: .*'blur', 'sharpen'"):
        mgr.kernel(path)
    assert kp.ShaderModule(path, entry="blur").disassembly()
    assert "main" in kp.ShaderModule(path, entry="blur").to("glsl")


def test_what_is_no_compute_shader(mgr, tmp_path):
    with pytest.raises(
        kp.InvalidArgumentError,
        match=r"no compute entry point; it has 'main' \(Vertex\): compile it as a compute",
    ):
        mgr.kernel(VERTEX)
    with pytest.raises(kp.InvalidArgumentError, match="no entry point; is it a library"):
        mgr.kernel(LIBRARY)
    path = tmp_path / "triangle.spvasm"
    path.write_text(VERTEX)
    with pytest.raises(kp.InvalidArgumentError, match=r"^triangle: .*Vertex"):
        mgr.kernel(path)
    with pytest.raises(kp.InvalidArgumentError, match=r"named: .*library"):
        mgr.kernel(LIBRARY, name="named")
    with pytest.raises(kp.InvalidArgumentError, match="Vertex"):
        mgr.algorithm([mgr.zeros(1)], kp.ShaderModule(module("a")).to_spirv()[:0] or _assembled(VERTEX))


def _assembled(text: str) -> bytes:
    from kompute_py import _native

    return _native.assemble_spirv(text)
