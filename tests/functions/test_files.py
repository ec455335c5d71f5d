"""Operations of the library as files: which features their modules need, and what they compute."""

from __future__ import annotations

import json
import pathlib

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


def _written(path: pathlib.Path) -> tuple[dict, set[str]]:
    """The description, and the capabilities of all modules."""
    made = json.loads(path.read_text())
    modules = [kp.ShaderModule((path.parent / each["module"]).read_bytes()) for each in made["dispatches"]]
    return made, {name for module in modules for name in module.signature.capabilities}


def _run(mgr: kp.Manager, path: pathlib.Path, **arguments: np.ndarray) -> np.ndarray:
    """The first result of a program for these arguments."""
    made = json.loads(path.read_text())
    tensors = {}
    for each in made["tensors"]:
        x = np.zeros(each["shape"], each["dtype"]) if each["result"] else arguments[each["name"]]
        tensors[each["name"]] = mgr.tensor_t(x)
    tensors |= {t["name"]: mgr.zeros(t["elements"], t["dtype"]) for t in made["scratch"]}
    sequence = mgr.sequence()
    for dispatch in made["dispatches"]:
        bound = [tensors[name] for name in dispatch["bindings"] if name != "parameters"]
        block = bytes.fromhex(dispatch["parameter_bytes"])
        if dispatch["parameters_in"] == "buffer":
            bound.append(mgr.tensor_t(np.frombuffer(block, np.uint32)))
            block = b""
        module = path.parent / dispatch["module"]
        algorithm = mgr.algorithm(bound, module, tuple(dispatch["groups"]), push_consts=block)
        sequence.record(kp.OpAlgoDispatch(algorithm))
    sequence.eval()
    return next(tensors[each["name"]] for each in made["tensors"] if each["result"]).read()


@pytest.mark.parametrize("name, dtype, result", ON_ALL_DEVICES)
def test_ints_of_32_bits_need_none_of_64(tmp_path, name, dtype, result):
    made, capabilities = _written(getattr(kp.ops, name).aot(tmp_path, kp.TensorSpec((1000,), dtype)))
    assert capabilities == {"Shader"}
    assert [each["dtype"] for each in made["tensors"] if each["result"]] == [result]


@pytest.mark.parametrize("name", ["cumsum", "sum", "cumprod"])
def test_they_compute_what_a_device_without_longer_ints_does(mgr, tmp_path, name):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 5000, np.int64).astype(np.int32)
    path = getattr(kp.ops, name).aot(tmp_path, kp.TensorSpec(x.shape, x.dtype))
    with np.errstate(over="ignore"):
        expected = getattr(np, name)(x, dtype=np.int32)
    argument = json.loads(path.read_text())["tensors"][0]["name"]
    np.testing.assert_array_equal(_run(mgr, path, **{argument: x}), expected)


@pytest.mark.parametrize("name", ["cumsum", "sum"])
def test_a_dtype_of_64_bits_is_had_by_asking(mgr, needs, tmp_path, name):
    needs(mgr, "shaderInt64")
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 5000, np.int64).astype(np.int32)
    path = getattr(kp.ops, name).aot(tmp_path, kp.TensorSpec(x.shape, x.dtype), dtype="int64")
    argument = json.loads(path.read_text())["tensors"][0]["name"]
    np.testing.assert_array_equal(_run(mgr, path, **{argument: x}), getattr(np, name)(x, dtype=np.int64))


@pytest.mark.parametrize(
    "dtype, capability", [("int64", "Int64"), ("uint64", "Int64"), ("float64", "Float64")]
)
@pytest.mark.parametrize("name", ["sum", "cumsum", "max", "add", "sort"])
def test_arguments_of_64_bits_need_their_feature_alone(tmp_path, name, dtype, capability):
    spec = kp.TensorSpec((100,), dtype)
    made, capabilities = _written(getattr(kp.ops, name).aot(tmp_path, *[spec] * (2 if name == "add" else 1)))
    assert {"Shader", capability} <= capabilities
    assert name == "sort" or capabilities == {"Shader", capability}
    assert made["tensors"][-1]["dtype"] == dtype
