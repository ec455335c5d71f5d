"""Functions of the library in portable programs: which features their modules need, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.each_driver

ON_ALL_DEVICES = [
    ("sum", "int32", "int32"), ("sum", "uint8", "uint32"), ("cumsum", "int32", "int32"),
    ("cumsum", "int16", "int32"), ("cumprod", "uint32", "uint32"), ("prod", "bool", "int32"),
    ("argmax", "float32", "int32"), ("argsort", "float32", "int32"), ("count_nonzero", "int32", "int32"),
    ("mean", "int32", "float32"), ("exp", "int32", "float32"),
]  # fmt: skip


def portable(function, *specs: kp.TensorSpec) -> tuple[kp.Program, np.dtype]:
    """The program, and the dtype of its first result."""
    program = kp.Program.record(function, *specs, portable=True)
    part = program._core.parts[""]
    return program, np.dtype(part.values[part.entries[0].recordings[0].outputs[0]].dtype)


@pytest.mark.parametrize("name, dtype, result", ON_ALL_DEVICES)
def test_ints_of_32_bits_need_none_of_64(name, dtype, result):
    program, found = portable(getattr(kp.ops, name), kp.TensorSpec((1000,), dtype))
    assert program.needs == ()
    assert found == result


@pytest.mark.parametrize("name", ["cumsum", "sum", "cumprod"])
def test_they_compute_what_a_device_without_longer_ints_does(mgr, tmp_path, name):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 5000, np.int64).astype(np.int32)
    program, _ = portable(getattr(kp.ops, name), kp.TensorSpec(x.shape, x.dtype))
    with np.errstate(over="ignore"):
        expected = getattr(np, name)(x, dtype=np.int32)
    program.save(tmp_path / "made.kpp")
    np.testing.assert_array_equal(kp.load_program(tmp_path / "made.kpp").on(mgr).main(x), expected)


@pytest.mark.parametrize("name", ["cumsum", "sum"])
def test_a_dtype_of_64_bits_is_had_by_asking(mgr, needs, name):
    needs(mgr, "shaderInt64")
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 5000, np.int64).astype(np.int32)
    function = getattr(kp.ops, name).specialize(dtype="int64")
    program, _ = portable(function, kp.TensorSpec(x.shape, x.dtype))
    np.testing.assert_array_equal(program.on(mgr).main(x), getattr(np, name)(x, dtype=np.int64))


@pytest.mark.parametrize(
    "dtype, capability", [("int64", "Int64"), ("uint64", "Int64"), ("float64", "Float64")]
)
@pytest.mark.parametrize("name", ["sum", "cumsum", "max", "add", "sort"])
def test_arguments_of_64_bits_need_their_feature_alone(name, dtype, capability):
    spec = kp.TensorSpec((100,), dtype)
    program, found = portable(getattr(kp.ops, name), *[spec] * (2 if name == "add" else 1))
    assert capability in program.needs
    assert name == "sort" or program.needs == (capability,)
    assert found == dtype
