"""``mgr.as_tensor``: Tensors pass through, everything else becomes one."""

from __future__ import annotations

import array

import numpy as np
import pytest

import kompute_py as kp


@pytest.mark.capability(
    "I28", "tensors pass through, all else becomes one", "Manager.as_tensor", "guides/tensors"
)
def test_tensors_and_views_pass_through(mgr):
    t = mgr.tensor_t(np.arange(6, dtype=np.int32))
    part = t[2:4]
    assert mgr.as_tensor(t) is t and mgr.as_tensor(part) is part
    assert mgr.as_tensor(t, np.int32) is t and mgr.as_tensor(t, "int32") is t


@pytest.mark.capability("I29", "Python's numbers and lists as tensors", "Manager.as_tensor", "guides/tensors")
@pytest.mark.parametrize(
    "data, dtype, wanted",
    [
        ([1, 2, 3], np.float32, np.float32([1, 2, 3])),
        ([1.0, 2.0], None, np.float64([1, 2])),
        (np.arange(6, dtype=np.int16).reshape(2, 3), None, np.arange(6, dtype=np.int16).reshape(2, 3)),
        (np.arange(6)[::2], np.uint8, np.uint8([0, 2, 4])),
        (array.array("f", [1, 2]), None, np.float32([1, 2])),
        (3, np.int32, np.int32(3)),
        (2.0, np.int32, np.int32(2)),
        ([], np.float32, np.zeros(0, np.float32)),
    ],
)
def test_everything_else_is_converted(mgr, data, dtype, wanted):
    t = mgr.as_tensor(data, dtype)
    assert t.manager is mgr and t.memory_type() == kp.MemoryTypes.device
    assert (t.dtype, t.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(t.read(), wanted)


def test_a_strided_view_becomes_a_tensor(mgr):
    t = mgr.tensor_t(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert mgr.as_tensor(t[:, 1]).read().tolist() == [1, 4]


@pytest.mark.parametrize(
    "make, dtype, error, part",
    [
        (
            lambda m: m.zeros(3),
            np.float64,
            kp.ArgumentTypeError,
            r"dtype float32, not float64.*kp.ops.astype",
        ),
        (lambda m: [300], np.uint8, kp.InvalidArgumentError, "300"),
        (lambda m: [1.5], np.int32, kp.ArgumentTypeError, "float64"),
        (lambda m: "text", None, kp.ArgumentTypeError, "give numbers"),
        (lambda m: m.image_t(np.zeros((2, 2), np.float32)), None, kp.ArgumentTypeError, "not a Tensor"),
    ],
)
def test_refuses(mgr, make, dtype, error, part):
    with pytest.raises(error, match=part):
        mgr.as_tensor(make(mgr), dtype)


def test_tensors_of_other_managers_and_destroyed_ones_are_refused(mgr, make_manager):
    other = make_manager()
    with pytest.raises(kp.InvalidArgumentError, match=r"belongs to .* copy it, t\.to\(mgr\)"):
        mgr.as_tensor(other.zeros(3))
    t = mgr.zeros(3)
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        mgr.as_tensor(t)
