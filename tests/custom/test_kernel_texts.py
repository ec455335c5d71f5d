"""Generated kernels, whatever arguments, results and workgroups are called and look like."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._custom.float_modes import lines_of
from kompute_py.errors import FailedPreconditionError, FormulaError, InvalidArgumentError, SignatureError
from tests.support.operations import Like

DTYPES = ["float32", "int32", "float16", "int8", "uint16", "bool", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["v", "u", "value", "x_", "kp", "word"])
def test_results_of_any_name_are_stored(mgr: kp.Manager, name: str, dtype: str) -> None:
    x = np.arange(6).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # names with two underscores get none
        first, second = kp.ops.elementwise(f"{name} = y; other = {name}")(mgr.tensor_t(x))
    assert np.array_equal(first.read(), x) and np.array_equal(second.read(), x)


@pytest.mark.parametrize("name", ["v", "x_", "lambda_"])
def test_written_arguments_of_any_name_are_stored(mgr: kp.Manager, name: str) -> None:
    class Made(kp.CustomOp):
        signature = f"increased(Tensor(a!) {name}) -> Tensor(a!)"

        def select(self, ksel: kp.FunctionSelection) -> None:
            ksel.return_tensor(ksel.arg_tensor(name, inplace_tied=True))

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.yield_results(f"{name}_load(i) + 1")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kp.CustomOp.register(Made)(mgr.tensor([1, 2])).read().tolist() == [2, 3]


def _calls_with_a_name(mgr: kp.Manager, name: str) -> list[tuple[Any, Any]]:
    """(found, expected) of what builders make with a parameter of this name."""
    x = np.arange(2000, dtype=np.float32)
    given = mgr.tensor_t(x)
    mean = kp.ops.reduction(name, "sum", finish="a / n")
    found = [
        (kp.ops.elementwise(f"{name} + 1")(given), x + 1),
        (kp.ops.elementwise(f"arctan2({name}, 2) * 0")(given), x * 0),
        (kp.ops.elementwise(f"{name} + 1")(mgr.tensor_t(x.astype(np.int16))), x + 1),
        (mean(given), x.mean()),
        (mean(given.reshape(2, 1000), axis=0), x.reshape(2, 1000).mean(0)),
        (kp.ops.scan(f"{name} * 2")(given), np.cumsum(2 * x)),
    ]
    for variant in ("run", "shared"):
        found.append((kp.ops.reduction(name, "max").variant(variant)(given), x.max()))
        found.append((kp.ops.scan(name, "max").variant(variant)(given), x))
    return found


@pytest.mark.parametrize("name", ["result", "result1", "x_", "v"])
def test_parameters_of_builders_have_any_name(mgr: kp.Manager, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found, expected in _calls_with_a_name(mgr, name):
            np.testing.assert_allclose(found.read(), expected)


RESERVED = ["barrier", "float16_t", "int8_t", "u16vec2", "f16mat2x3", "mat2x3", "samplerShadow", "usampler3D",
            "texture2DMSArray", "subpassInput", "imageCube", "gl"]  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_words_that_kernels_need_are_refused(name: str) -> None:
    with pytest.raises(FormulaError, match=rf"{name}.*cannot be a name"):
        kp.ops.elementwise(f"{name} + 1")
    with pytest.raises(SignatureError, match=rf"{name}.*cannot be a name.*column 14"):
        _in_place(f"f(Tensor(a!) {name}) -> Tensor(a!)", (8, 8, 1))


@pytest.mark.parametrize(("kind", "width"), [("float", 32), ("double", 64)])
def test_kernels_ask_for_the_float_modes_that_a_device_offers(kind: str, width: int) -> None:
    offered = {
        f"shader{name}Float{bits}": True
        for name in ("SignedZeroInfNanPreserve", "DenormPreserve", "RoundingModeRTZ")
        for bits in (16, 32, 64)
    }
    described = json.loads(json.dumps(kp.list_devices()[0])) | {"float_controls": offered}
    described["features"] = dict.fromkeys(described["features"], True)

    def lacking(controls: dict[str, bool]) -> list[str]:
        lines = lines_of(controls, width)
        extension = "#extension GL_EXT_spirv_intrinsics : require" if lines else ""
        text = "\n".join(["#version 450", extension, *lines, f"void main() {{ {kind} x = 0.0; }}"])
        assert kp.check(kp.compile(text), described) == []
        return [str(each) for each in kp.check(kp.compile(text), described | {"float_controls": {}})]

    found = "".join(lacking(offered))
    for name in ("SignedZeroInfNanPreserve", "DenormPreserve"):
        assert f"shader{name}Float{width}" in found
        assert lacking({**offered, f"shader{name}Float{width}": False}) != lacking(offered)
    assert "RTZ" not in found and lacking({}) == []


def _in_place(signature: str, workgroup: tuple[int, int, int]) -> kp.Operation:
    class Made(kp.CustomOp):
        def select(self, ksel: kp.FunctionSelection) -> None:
            ksel.return_tensor(ksel.arg_tensor("x", inplace_tied=True))

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.workgroup(*workgroup)
            kb.yield_results("x_load(i) + float(i)")

    Made.signature = signature
    return kp.CustomOp.register(Made)


@pytest.mark.capability(
    "W43", "results yielded by a kernel", "KernelBuilder.yield_results", "guides/generated_operations"
)
@pytest.mark.parametrize("workgroup", [(64, 1, 1), (8, 8, 1), (1, 4, 4), (1, 1, 1), (3, 5, 2), (1, 64, 1)])
@pytest.mark.parametrize("size", [1, 7, 1000, 70000])
def test_one_invocation_yields_each_element(
    mgr: kp.Manager, workgroup: tuple[int, int, int], size: int
) -> None:
    """Each element of an argument that is written must be read and written once."""
    x = mgr.tensor_t(np.full(size, 5, np.float32))
    _in_place("increased(Tensor(a!) x) -> Tensor(a!)", workgroup)(x)
    assert np.array_equal(x.read(), np.arange(size, dtype=np.float32) + 5)


class TwoResults(kp.CustomOp):
    signature = "two(Tensor x, int a, int b) -> (Tensor first, Tensor second)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        for name in ("a", "b"):
            ksel.return_new_tensor(ksel.attr_int(name).v, x.dtype)

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.yield_results("x_load(0)", "x_load(0) + 1")


def test_yielded_results_have_one_size(mgr: kp.Manager) -> None:
    two = kp.CustomOp.register(TwoResults)
    x = mgr.tensor([3])
    first, second = two(x, 5, 5)
    assert first.read().tolist() == [3] * 5 and second.read().tolist() == [4] * 5
    for sizes in [(5, 6), (6, 5), (0, 5), (5, 0)]:
        for call in (two, two.op, lambda *args: kp.Program.record(two, *args, portable=True)):
            with pytest.raises(InvalidArgumentError, match=rf"{sizes[0]} \(first\), {sizes[1]} \(second\)"):
                call(x, *sizes)
    assert [each.size() for each in two(x, 0, 0)] == [0, 0]


def test_a_workgroup_after_its_count_is_refused(mgr: kp.Manager) -> None:
    def made(generate: Any) -> kp.Operation:
        class Made(Like):
            signature = "made(Tensor x) -> Tensor"

        Made.generate = lambda self, ksel, kb: generate(kb)  # type: ignore[method-assign]
        return kp.CustomOp.register(Made)

    def groups(kb: kp.FunctionBuilder) -> None:
        kb.groups(10)
        kb.workgroup(128)

    def results(kb: kp.FunctionBuilder) -> None:
        kb.yield_results("x_load(i)")
        kb.workgroup(128)

    def same(kb: kp.FunctionBuilder) -> None:
        kb.yield_results("x_load(i)")
        kb.workgroup(64)

    def grid(kb: kp.FunctionBuilder) -> None:
        kb.grid(kb.arg_value("x").size)
        kb.workgroup(128)
        kb.emit("uint i = gl_GlobalInvocationID.x; if (i < x_size) result_store(i, x_load(i));")

    x = mgr.tensor([1, 2, 3])
    for generate, call in ((groups, "groups"), (results, "yield_results")):
        with pytest.raises(FailedPreconditionError, match=rf"kb.{call} has counted"):
            made(generate)(x)
    for generate in (same, grid):
        assert made(generate)(x).read().tolist() == [1, 2, 3]


@pytest.mark.parametrize("how", ["call", "op", "submit"])
def test_arguments_are_written_also_if_results_are_empty(mgr: kp.Manager, how: str) -> None:
    class Counted(kp.CustomOp):
        signature = "counted(Tensor x, Tensor(a!) count) -> Tensor"

        def select(self, ksel: kp.FunctionSelection) -> None:
            x = ksel.arg_tensor("x")
            ksel.arg_tensor("count", inplace_tied=True)
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.groups(1)
            kb.emit("if (gl_LocalInvocationIndex > 0) return; count_store(0, float(x_size));")
            kb.emit("for (uint k = 0; k < x_size; ++k) result_store(k, x_load(k));")

    counted = kp.CustomOp.register(Counted)
    for n in (3, 0, 2, 0):
        x, count, out = mgr.zeros(n), mgr.tensor([-1]), mgr.zeros(n)
        if how == "call":
            assert counted(x, count).shape == (n,)
        elif how == "op":
            mgr.sequence().record(counted.op(x, count)).eval()
        else:
            counted.submit(x, count, out=out).wait()
        assert count.read().tolist() == [n]
    empty = mgr.zeros(0)
    assert counted(empty, empty).shape == (0,)  # nothing to write


NUMBERS = [
    ("float32", float("nan")), ("float32", float("inf")), ("float32", -1e-20), ("float32", 3),
    ("float32", True), ("float64", 0.1), ("float16", -0.1), ("int64", 2**40), ("int64", -(2**63)),
    ("uint64", 2**64 - 1), ("int32", -(2**31)), ("uint32", 2**32 - 1), ("int8", -128), ("bool", True),
    ("bool", 2), ("complex64", 1 - 2j), ("complex64", 1.5), ("float32", np.float64(0.1)),
    ("uint8", np.int64(7)), ("bool", np.False_),
]  # fmt: skip


def _constant(dtype: str, value: Any) -> kp.Operation:
    class Made(kp.CustomOp):
        signature = "constant(Tensor x) -> Tensor"

        def select(self, ksel: kp.FunctionSelection) -> None:
            ksel.return_new_tensor(ksel.arg_tensor("x").shape, dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.yield_results(value)

    return kp.CustomOp.register(Made)


@pytest.mark.parametrize(("dtype", "value"), NUMBERS)
def test_numbers_are_yielded_as_the_result_has_them(mgr: kp.Manager, dtype: str, value: Any) -> None:
    need = {"float64": "shaderFloat64", "int64": "shaderInt64", "uint64": "shaderInt64"}.get(dtype)
    if need and need not in mgr.enabled_features:
        with pytest.raises(kp.errors.UnimplementedError, match=need):
            _constant(dtype, value)(mgr.zeros(3))
        return
    found = _constant(dtype, value)(mgr.zeros(3)).read()
    np.testing.assert_array_equal(found, np.full(3, value, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"), [("int32", 2.5), ("int32", 2**31), ("uint8", -1), ("float32", 1j), ("int8", 1e9)]
)
def test_numbers_that_the_result_does_not_have_are_refused(mgr: kp.Manager, dtype: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"'result' (is )?of {dtype}"):
        _constant(dtype, value)(mgr.zeros(3))
