"""Hidden counters of AppendStructuredBuffer and its like: made by the call, or given by name."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._compilers.spirv_words import Module
from kompute_py._compilers.tidy import tidy
from tests.support.languages import needs_dxc, needs_slang

ODD = """
AppendStructuredBuffer<uint> odd;
ConsumeStructuredBuffer<uint> given;
[shader("compute")] [numthreads(8, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {
    uint v = given.Consume();
    if ((v & 1u) != 0u) odd.Append(v);
}
"""
LANGUAGES = [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_append_and_consume(mgr, language):
    kernel = mgr.kernel(ODD, language=language)
    assert kernel.signature.text("k") == (
        "k(out uint[] odd, uint[] given, inout uint odd_counter, inout uint given_counter)"
    )
    numbers = np.arange(64, dtype=np.uint32)
    for _ in range(2):  # the call's counters begin anew
        count, odd = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
        kernel(odd, numbers, odd_counter=count, groups=8)
        assert count[0] == 32
        np.testing.assert_array_equal(np.sort(odd[:32]), numbers[1::2])
    left = np.array([16], np.uint32)  # only the first 16 elements are there
    odd = np.zeros(64, np.uint32)
    kernel(odd, numbers.tolist(), given_counter=left, groups=2)
    assert left[0] == 0
    np.testing.assert_array_equal(np.sort(odd[:8]), numbers[1:16:2])


@needs_dxc
def test_submitted_work_has_counters_of_its_own(mgr):
    kernel = mgr.kernel(ODD, language="hlsl")
    given = mgr.tensor_t(np.arange(64, dtype=np.uint32))
    for _ in range(3):
        odd = mgr.tensor_t(np.zeros(64, np.uint32))
        assert kernel.submit(odd, given, groups=8).results == ()
        np.testing.assert_array_equal(np.sort(odd.read()[:32]), np.arange(64)[1::2])


@needs_dxc
def test_increment_and_decrement(mgr):
    kernel = mgr.kernel(
        """
RWStructuredBuffer<uint> items;
RWStructuredBuffer<uint> seen;
[numthreads(8, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {
    items[items.IncrementCounter()] = t.x;
    seen[t.x] = 1;
}
""",
        language="hlsl",
    )
    items = mgr.tensor_t(np.zeros(16, np.uint32))
    seen = mgr.tensor_t(np.zeros(16, np.uint32))
    count = mgr.tensor_t(np.full(1, 8, np.uint32))
    kernel(items, seen, items_counter=count, groups=1)
    assert count.read()[0] == 16
    np.testing.assert_array_equal(np.sort(items.read()[8:]), np.arange(8))
    kernel(items, seen, groups=1)
    np.testing.assert_array_equal(np.sort(items.read()[:8]), np.arange(8))


@needs_dxc
def test_recordings_take_counters_by_name(mgr):
    kernel = mgr.kernel(ODD, language="hlsl")
    odd, given = mgr.tensor_t(np.zeros(8, np.uint32)), mgr.tensor_t(np.arange(8, dtype=np.uint32))
    with pytest.raises(kp.InvalidArgumentError, match="missing arguments 'odd_counter', 'given_counter'"):
        kernel.bind(odd, given, groups=1)
    counters = [mgr.tensor_t(np.array([n], np.uint32)) for n in (0, 8)]
    mgr.sequence().eval(kernel.bind(odd, given, *counters, groups=1))
    assert [int(each.read()[0]) for each in counters] == [4, 0]


@pytest.mark.own_driver
@pytest.mark.parametrize("counts", [False, True])
def test_lines_of_debug_information_are_no_uses_of_counters(counts):
    """DXC before 1.8 declares a counter of each buffer. The number of a line may be that of its variable."""
    use = "%at = OpAccessChain %ptr_int %counter %zero\nOpStore %at %zero" if counts else ""
    text = f"""OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
%file = OpString "a.hlsl"
OpName %counter "counter.var.o"
OpDecorate %counter DescriptorSet 0
OpDecorate %counter Binding 1
OpMemberDecorate %block 0 Offset 0
OpDecorate %block BufferBlock
%void = OpTypeVoid
%function = OpTypeFunction %void
%int = OpTypeInt 32 1
%zero = OpConstant %int 0
%block = OpTypeStruct %int
%ptr_block = OpTypePointer Uniform %block
%ptr_int = OpTypePointer Uniform %int
%counter = OpVariable %ptr_block Uniform
%main = OpFunction %void None %function
%label = OpLabel
OpLine %file 1 1
{use}
OpReturn
OpFunctionEnd
"""
    module = Module(kp._native.assemble_spirv(text.encode(), 1, b"<x>"))
    (counter,) = (each for each, name in module.names.items() if name == "counter.var.o")
    (line,) = (at for opcode, at, _ in module.body if opcode == 8)
    module.words[line + 2] = counter
    tidy(module)
    assert (counter in Module(module.result()).places) == counts
