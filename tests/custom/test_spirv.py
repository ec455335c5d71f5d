"""Dispatches that are modules of SPIR-V."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.operations import Like

pytestmark = [pytest.mark.each_driver, pytest.mark.usefixtures("current")]

SCALE = """
layout(local_size_x = 32) in;
layout(binding = 0) buffer Y { float y[]; };
layout(binding = 1) readonly buffer X { float x[]; };
layout(push_constant) uniform P { uint count; float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = x[i] * factor; }
"""
WIDE = """
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer X { int64_t x[]; };
layout(binding = 1) buffer Y { int64_t y[]; };
layout(push_constant) uniform P { uint count; int64_t a; uint other; int64_t b; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) y[i] = x[i] * a + b + int64_t(other); }
"""


def made(module, write=None, **options):
    @kp.CustomOp.register
    class scaled(kp.CustomOp):
        signature = "scaled(Tensor x, float factor=2.0) -> Tensor"

        def select(self, ksel):
            x = ksel.arg_tensor("x")
            ksel.arg_float("factor")
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel, kb):
            kb.spirv(module, **options)
            kb.grid(kb.arg_value("x").size)
            if write is not None:
                write(kb)

    return scaled


@pytest.mark.parametrize("form", ["bytes", "words", "module", "text"])
def test_a_module(mgr, form, tmp_path):
    spirv = kp.compile(SCALE)
    given = {
        "bytes": spirv,
        "words": np.frombuffer(spirv, np.uint32),
        "module": kp.ShaderModule(spirv),
        "text": SCALE,
    }[form]
    scaled = made(given, bindings=("result", "x"), values=("x_size", "factor"))
    x = np.random.default_rng(0).random((7, 19), np.float32)
    for factor in (2.0, 0.5, 3.0):
        expected = x * np.float32(factor)
        np.testing.assert_array_equal(scaled(x, factor), expected)
        np.testing.assert_array_equal(scaled(mgr.tensor_t(x), factor).read(), expected)
    assert scaled.cache_info().misses == 1
    operation = scaled.op(mgr.tensor_t(x), 4.0)
    mgr.sequence().record(operation).eval()
    np.testing.assert_array_equal(operation.results[0].read(), x * 4)
    program = kp.Program.record(scaled, kp.TensorSpec((7, 19)), portable=True)
    (step,) = program._core.parts[""].entries[0].recordings[0].steps
    assert step.groups == (5, 1, 1)
    assert step.push == np.array([133, 0x40000000], np.uint32).tobytes()
    np.testing.assert_array_equal(program.on(mgr).main(x), x * 2)


@pytest.mark.each_driver
def test_numbers_are_aligned(mgr, needs):
    needs(mgr, "shaderInt64")

    @kp.CustomOp.register
    class wide(kp.CustomOp):
        signature = "wide(Tensor x, Tensor|Scalar a, int other, Tensor|Scalar b) -> Tensor"

        def select(self, ksel):
            x = ksel.arg_tensor("x")
            ksel.arg_tensor_or_value("a").cast(np.int64)
            ksel.arg_int("other")
            ksel.arg_tensor_or_value("b").cast(np.int64)
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel, kb):
            kb.spirv(kp.compile(WIDE), values=("x_size", "a", "other", "b"))
            kb.grid(kb.arg_value("x").size)

    x = np.arange(11, dtype=np.int64)
    np.testing.assert_array_equal(wide(x, 2**40, 5, -(2**50)), x * 2**40 + 5 - 2**50)


def test_beside_dispatches_of_lines(mgr):
    @kp.CustomOp.register
    class two(Like):
        signature = "two(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            n = kb.arg_value("x").size
            kb.scratch("half_way", n)
            kb.begin_dispatch()
            kb.emit("if (gl_GlobalInvocationID.x < x_size)")
            kb.emit("half_way_store(gl_GlobalInvocationID.x, x_load(gl_GlobalInvocationID.x) + 1);")
            kb.grid(n)
            kb.begin_dispatch()
            kb.spirv(
                SCALE.replace("* factor", "* 3"), bindings=("result", "half_way"), values=("x_size", "x_size")
            )
            kb.grid(n)

    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(two(x), (x + 1) * 3)


@pytest.mark.parametrize(
    ("module", "options", "error", "text"),
    [
        (b"no spirv", {}, kp.InvalidArgumentError, "SPIR-V"),
        (SCALE, {"bindings": ("y",)}, kp.InvalidArgumentError, r"bindings names 'y'.*There are x, result"),
        (
            SCALE,
            {"values": ("facto",)},
            kp.InvalidArgumentError,
            r"values names 'facto': did you mean 'factor'",
        ),
        (SCALE, {"bindings": "x"}, kp.ArgumentTypeError, "bindings is a list of names, not 'x'"),
        (SCALE, {"bindings": ("x",)}, kp.InvalidArgumentError, "no kernel writes the result"),
        (SCALE, {"values": ("factor",)}, kp.InvalidArgumentError, "push_consts have 4 bytes"),
        (3, {}, kp.ArgumentTypeError, "SPIR-V is"),
    ],
)
def test_wrong_modules(mgr, module, options, error, text):
    with pytest.raises(error, match=text):
        made(module, **options)(np.ones(3, np.float32))


def test_lines_and_a_module_are_two_dispatches(mgr):
    for write in (
        lambda kb: kb.emit("int a;"),
        lambda kb: kb.declare("int a;"),
        lambda kb: kb.yield_results("x_load(i)"),
        lambda kb: kb.spirv(SCALE),
    ):
        with pytest.raises(kp.FailedPreconditionError, match=r"kb\.begin_dispatch\(\)"):
            made(SCALE, write, bindings=("result", "x"), values=("x_size", "factor"))(np.ones(3, np.float32))
