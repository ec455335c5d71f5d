"""Texts about objects are made for errors only: no call that succeeds pays for one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import kompute_py as kp
from kompute_py._base.text import told
from kompute_py._base.types import data_type_of, dtype_text, is_small_float
from kompute_py._memory.memory import Memory
from kompute_py._memory.strided import StridedView
from tests.base import test_dtypes

SCALE = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float factor; };
void main() { x[gl_GlobalInvocationID.x] *= factor; }
"""
IMAGE = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0, rgba8ui) uniform uimage2D pixels;
void main() { imageStore(pixels, ivec2(0), uvec4(1)); }
"""


@pytest.fixture
def silent(monkeypatch):
    """Fails if an object is described."""

    def describe(self):
        raise AssertionError(f"a {type(self).__name__} was described")

    monkeypatch.setattr(Memory, "_describe", describe)
    monkeypatch.setattr(StridedView, "_describe", describe)


def test_no_call_that_succeeds_describes_an_object(mgr, silent):
    t = mgr.tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    t.write(np.ones(12))
    t.write([1] * 12, region=np.s_[:])
    t[1].write([1, 2, 3, 4])
    t[0, 1:3] = 5
    t[:, 0] = [7, 8, 9]
    assert t[:, 0].read().tolist() == [7, 8, 9]
    assert t.reshape(12)[0:3].read().tolist() == [7, 5, 5]
    assert t.view(np.uint32).reshape(-1, 6).shape == (2, 6)
    t[:, 1].fill(2)
    t[::2][:, 3:] = 1
    t.fill(3).wait()
    t.read(np.empty((3, 4), np.float32))
    mgr.sequence().eval(kp.OpFill([t], 2.0))
    assert np.asarray(t[:, 0]).tolist() == [2, 2, 2]

    image = mgr.image_t(np.zeros((2, 2, 4), np.uint8))
    image.write(np.ones((2, 2, 3), np.uint8))
    image.write(np.ones((1, 2, 4), np.uint8), region=np.s_[0:1])
    assert image.read(region=np.s_[0]).tolist() == [[1, 1, 1, 1]] * 2

    kernel = mgr.kernel(SCALE)
    kernel(t.reshape(12), factor=2.0)
    kernel(np.ones(12, np.float32), factor=2.0)
    mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([t], kp.compile(SCALE), (12, 1, 1), [], [2.0])))
    mgr.kernel(IMAGE)(image, groups=(1, 1, 1))
    assert t.tolist() == [[8.0] * 4] * 3


def test_errors_describe_the_object(mgr):
    t = mgr.tensor_t(np.zeros((2, 3), np.int32))
    t.name = "weights"
    name = r"Tensor 'weights' of shape \(2, 3\), int32"
    with pytest.raises(kp.InvalidArgumentError, match=f"^{name} holds 6 elements"):
        t.write([1])
    with pytest.raises(kp.InvalidArgumentError, match=f"^{name} has dtype int32; the data's range"):
        t.write([1 << 40] * 6)
    with pytest.raises(kp.ArgumentTypeError, match=f"^{name} has dtype int32; the data's float64"):
        t.write([0.5] * 6)
    with pytest.raises(kp.InvalidArgumentError, match=f"^{name} does not take data of shape"):
        t[...] = [1, 2]
    with pytest.raises(kp.OutOfRangeError, match=rf"^{name} has no \[5\]"):
        t[5]
    with pytest.raises(kp.ArgumentTypeError, match=f"^{name} is indexed with ints and slices"):
        t["a"]
    with pytest.raises(kp.OutOfRangeError, match=f"^{name}: the index 2 is out of bounds for an axis of 2"):
        t[[2]]
    with pytest.raises(kp.ArgumentTypeError, match=rf"^{name} has no \[::0\]"):
        t[::0]
    with pytest.raises(kp.InvalidArgumentError, match=f"^{name} has 6 elements; it cannot be reshaped"):
        t.reshape(7)
    with pytest.raises(kp.InvalidArgumentError, match=f"^{name} has 12 bytes in its last axis"):
        t.view(np.float64)
    with pytest.raises(kp.InvalidArgumentError, match=f"^OpFill of {name}: the pattern has 3 bytes"):
        kp.OpFill([t], b"abc")
    with pytest.raises(kp.ArgumentTypeError, match=f"^OpFill of {name}: 0.5 is not a whole number"):
        kp.OpFill([t], 0.5)
    with pytest.raises(kp.ArgumentTypeError, match=f"'x' is float.*; {name} has int32"):
        mgr.kernel(SCALE)(t, factor=1.0)
    part = f"^StridedView of shape .* of {name}"
    with pytest.raises(kp.InvalidArgumentError, match=f"{part} holds 2 elements"):
        t[:, 0].write([1])
    with pytest.raises(kp.OutOfRangeError, match=rf"{part} has no \[2\]"):
        t[:, 0][2]
    image = mgr.image_t(np.zeros((2, 2, 4), np.uint8))
    with pytest.raises(kp.InvalidArgumentError, match=r"^The region of Image of shape .* holds 8 elements"):
        image.write([1], region=np.s_[0])
    with pytest.raises(kp.OutOfRangeError, match=r"^Image of shape .*: index 9 is beyond an axis of 2"):
        image.read(region=np.s_[9])


def test_a_text_is_itself_or_made():
    assert told("a") == told(lambda: "a") == "a"


NAMES = {**test_dtypes.NAMES, "complex64": "complex64", "complex128": "complex128"}
DTYPES = [
    *map(np.dtype, "?bBhHiIlLqQefdFDgGSUVOMm"),
    *(np.dtype(each).newbyteorder() for each in ("i2", "f4", "c16")),
    *(np.dtype(each) for name in dir(ml_dtypes) if isinstance(each := getattr(ml_dtypes, name), type)
      if issubclass(each, np.generic)),
    np.dtype("V3"),
    np.dtype("f4,i4"),
    np.dtype("f4", metadata={"a": 1}),
    np.dtype((np.float32, (2,))),
]  # fmt: skip


@pytest.mark.own_driver
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_the_tables_of_dtypes_agree_with_numpy(dtype):
    assert dtype_text(dtype) == str(dtype)
    small = dtype.type.__module__ == "ml_dtypes" and dtype.name in kp.DataTypes.__members__
    assert is_small_float(dtype) is small
    name = dtype.name if small else NAMES.get(dtype.name)
    if name is not None:
        assert data_type_of(dtype) is kp.DataTypes[name]
    elif dtype.type is np.void and dtype.itemsize:
        assert data_type_of(dtype) is kp.DataTypes.custom
    else:
        with pytest.raises(kp.ArgumentTypeError, match="is not supported on a device"):
            data_type_of(dtype)
