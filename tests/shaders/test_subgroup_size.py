"""The size of subgroups that a shader asks for, and full ones."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

SOURCE = """#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(binding = 0) writeonly buffer Sizes { uint sizes[]; };
void main() { sizes[gl_GlobalInvocationID.x] = gl_SubgroupSize + 1000 * gl_NumSubgroups; }
"""


@pytest.fixture
def sizes(mgr):
    """The range of sizes; skips the test if the device does not let shaders choose."""
    if not {"subgroupSizeControl", "computeFullSubgroups"} <= set(mgr.enabled_features):
        pytest.skip("the device lacks subgroupSizeControl or computeFullSubgroups")
    return mgr.get_device_properties()["subgroup_sizes"]


def result(kernel, mgr, count=64):
    out = mgr.zeros(count, np.uint32)
    kernel(out)
    return set(out.tolist())


@pytest.mark.capability("", "chosen subgroup sizes", "Manager.kernel", "guides/performance")
def test_a_kernel_gets_the_size_that_it_asks_for(mgr, sizes):
    least, most = sizes
    assert 1 <= least <= mgr.get_device_properties()["subgroup_size"] <= most
    for size in {least, most}:
        for full in (False, True):
            kernel = mgr.kernel(SOURCE, subgroup_size=size, full_subgroups=full)
            assert result(kernel, mgr) == {size + 1000 * (64 // size)}
            wide = kernel.specialize({0: 4 * most})
            assert result(wide, mgr, 4 * most) == {size + 1000 * (4 * most // size)}


def test_an_algorithm_gets_it_from_its_module(mgr, sizes):
    module = kp.ShaderModule(SOURCE, subgroup_size=sizes[1], full_subgroups=True)
    for source in (module, kp.ShaderModule(module), mgr.kernel(module)):
        out = mgr.zeros(64, np.uint32)
        mgr.sequence().record(kp.OpAlgoDispatch(mgr.algorithm([out], source, (1, 1, 1)))).eval()
        assert out[0].read() == sizes[1] + 1000 * (64 // sizes[1])


def test_sizes_are_part_of_the_pipeline(mgr, sizes):
    before = mgr.memory.pipelines.pipelines
    kernels = [mgr.kernel(SOURCE), mgr.kernel(SOURCE, subgroup_size=sizes[1])]
    kernels.append(mgr.kernel(SOURCE, subgroup_size=sizes[1]))
    for kernel in kernels:
        result(kernel, mgr)
    assert mgr.memory.pipelines.pipelines <= before + 2


def test_sizes_that_the_device_lacks_are_refused(mgr, sizes):
    least, most = sizes
    for size in (least // 2, 2 * most):
        if 1 <= size <= 128:
            with pytest.raises(kp.InvalidArgumentError, match=f"subgroups of {size}, and subgroups of"):
                mgr.kernel(SOURCE, subgroup_size=size)


def test_workgroups_that_cannot_have_full_subgroups_are_refused(mgr, sizes):
    kernel = mgr.kernel(SOURCE, full_subgroups=True).specialize({0: sizes[1] + 1})
    with pytest.raises(
        kp.InvalidArgumentError, match=r"full only if local_size_x is a multiple of \d+; it is"
    ):
        result(kernel, mgr)


@pytest.mark.parametrize("wrong", [0, 3, -4, 256, 2**40])
def test_what_is_no_size(mgr, wrong):
    with pytest.raises(kp.InvalidArgumentError, match=f"subgroup_size is {wrong}; it is a power of two"):
        mgr.kernel(SOURCE, subgroup_size=wrong)
    with pytest.raises(kp.ArgumentTypeError, match="subgroup_size"):
        kp.ShaderModule(SOURCE, subgroup_size=16.5)
    with pytest.raises(kp.ArgumentTypeError, match="full_subgroups"):
        kp.ShaderModule(SOURCE, full_subgroups=np.zeros(2))


def on_a_device(least, most):
    """What happens for each size, and for full subgroups; the device has sizes from `least` to `most`."""
    found = []
    with kp.Manager() as mgr:
        assert mgr.get_device_properties()["subgroup_sizes"] == (least, most)
        for options in [{"subgroup_size": n} for n in (8, 16, 32, 64)] + [{"full_subgroups": True}]:
            try:
                mgr.kernel(SOURCE, **options).preload()
            except kp.KomputeError as error:
                found.append(type(error).__name__)
            else:
                found.append("")
    return found


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "config, sizes, expected",
    [
        ("subgroup=32", (16, 32), ["InvalidArgumentError", "", "", "InvalidArgumentError", ""]),
        ("subgroup=32,api=1.2", (16, 32), ["InvalidArgumentError", "", "", "InvalidArgumentError", ""]),
        (
            "subgroup=32,disable=subgroupSizeControl",
            (16, 32),
            [*["UnimplementedError"] * 4, ""],
        ),
        (
            "subgroup=32,disable=computeFullSubgroups",
            (16, 32),
            ["InvalidArgumentError", "", "", "InvalidArgumentError", "UnimplementedError"],
        ),
    ],
)
def test_each_device_has_its_sizes(config, sizes, expected):
    assert run_child(on_a_device, *sizes, driver="null", config=config) == expected


@kp.CustomOp.register
class sizes_of_subgroups(kp.CustomOp):
    """For each element the size of its invocation's subgroup."""

    signature = "sizes_of_subgroups(Tensor x, int size) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.attr_int("size")
        ksel.return_new_tensor(x.shape, np.uint32)

    def generate(self, ksel, kb):
        kb.subgroups(ksel.arg_descs[1].v)
        kb.extension("GL_KHR_shader_subgroup_basic")
        kb.yield_results("gl_SubgroupSize")


def test_generated_kernels_ask_for_it(mgr, sizes):
    with mgr:
        for size in sizes:
            assert set(sizes_of_subgroups(mgr.zeros(100), size).tolist()) == {size}
        with pytest.raises(kp.InvalidArgumentError, match="subgroup_size is 3"):
            sizes_of_subgroups(mgr.zeros(100), 3)
    program = kp.Program.record(sizes_of_subgroups, kp.TensorSpec((4,)), 8, portable=True)
    (shader,) = program._core.parts[""].shaders
    assert (shader.subgroup_size, shader.full_subgroups) == (8, True)
