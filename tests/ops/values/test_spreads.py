"""Ranges, weighted means and differences, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops


def numbers(shape, dtype=np.float32):
    return np.random.default_rng(3).integers(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_ptp(mgr, dtype, axis):
    x = numbers((3, 4, 5), dtype)
    for keepdims in (False, True):
        got = ops.ptp(x, axis, keepdims=keepdims)
        expected = np.ptp(x, axis, keepdims=keepdims)
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
    np.testing.assert_array_equal(ops.ptp(mgr.tensor_t(x)[::2], axis).read(), np.ptp(x[::2], axis))


def test_average(mgr):
    x, w = numbers((4, 5)), numbers((4, 5)) + 1
    t, tw = mgr.tensor_t(x), mgr.tensor_t(w)
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            expected, total = np.average(x, axis, w, True, keepdims=keepdims)
            got, scale = ops.average(t, axis, tw, True, keepdims=keepdims)
            assert got.shape == expected.shape and scale.shape == total.shape
            np.testing.assert_allclose(got.read(), expected, rtol=1e-6)
            np.testing.assert_array_equal(scale.read(), total)
    for axis, weights in ((1, w[0]), (0, w[:, 0]), (-2, tw[:, 1])):
        host = weights.read() if isinstance(weights, kp.StridedView) else weights
        expected, total = np.average(x, axis, host, True)
        got, scale = ops.average(x if weights is not host else t, axis, weights, True)
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
        np.testing.assert_array_equal(np.asarray(scale), total)
    mean, count = ops.average(t, 1, returned=True)
    np.testing.assert_allclose(mean.read(), x.mean(1), rtol=1e-6)
    assert count.tolist() == [5] * 4
    np.testing.assert_allclose(ops.average(x), x.mean(), rtol=1e-6)


@pytest.mark.parametrize(
    "dtype, of_weights",
    [
        *((each, "uint8") for each in ("bool", "int8", "uint8", "int32", "uint32", "float16", "float32")),
        ("int32", "int32"),
        ("int32", "float32"),
        ("float16", "float16"),
        ("float32", "bool"),
    ],
)
def test_average_of_ints_does_not_wrap(mgr, dtype, of_weights):
    rng = np.random.default_rng(3)
    most = {"float16": 100, "float32": 1000}.get(dtype) or (
        2 if dtype == "bool" else int(np.iinfo(dtype).max) + 1
    )
    x = rng.integers(0, most, (3, 6)).astype(dtype)
    w = np.ones((3, 6)).astype(of_weights) if of_weights == "bool" else rng.integers(1, 100, (3, 6))
    w = w.astype(of_weights)
    for axis, weights in ((0, w), (1, w[0])):
        expected, total = np.average(x, axis, weights, True)
        got, scale = (np.asarray(each) for each in ops.average(x, axis, weights, True))
        if "shaderFloat64" in mgr.enabled_features:
            assert got.dtype == expected.dtype and scale.dtype == total.dtype
        small = "float16" in (dtype, of_weights) and expected.dtype == np.float16
        np.testing.assert_allclose(got, expected, rtol=3e-3 if small else 1e-6)
        np.testing.assert_allclose(scale, total, rtol=3e-3 if small else 1e-6)


@pytest.mark.parametrize(
    "axis, weights, words",
    [
        (None, np.ones(4, np.float32), "give weights of that shape, or of one axis"),
        (0, np.ones(3, np.float32), "weights has 3 elements, and axis 0 of a 4"),
        (5, np.ones(4, np.float32), "axis is 5, and a has 2 axes"),
        (0, np.zeros((4, 5), np.float32), "add up to zero"),
    ],
)
def test_average_refuses(axis, weights, words):
    with pytest.raises(kp.InvalidArgumentError, match=words):
        ops.average(numbers((4, 5)), axis, weights)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_])
def test_diff(mgr, dtype):
    x = numbers((4, 6), dtype)
    for n, axis in ((1, -1), (2, 0), (0, 1), (6, 1), (9, 1)):
        expected = np.diff(x, n, axis)
        got = ops.diff(x, n, axis)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.asarray(ops.diff(mgr.tensor_t(x), n, axis)), expected)
    np.testing.assert_array_equal(ops.diff(mgr.tensor_t(x)[:, ::2]).read(), np.diff(x[:, ::2]))
    with pytest.raises(kp.InvalidArgumentError, match="n is -1"):
        ops.diff(x, -1)
    with pytest.raises(kp.InvalidArgumentError, match="axis is 2, and a has 2 axes"):
        ops.diff(x, axis=2)
    with pytest.raises(kp.InvalidArgumentError, match="a is a scalar"):
        ops.diff(np.float32(3))


@pytest.mark.parametrize("dtype", [np.float32, np.bool_])
def test_diff_of_nothing_ends(dtype):
    for n in (6, 7, 2**70):
        found = ops.diff(np.ones((2, 6), dtype), n)
        assert found.shape == (2, 0) and found.dtype == dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.average(np.ones(2, np.float32), returned=np.ones(2)),
        lambda: ops.unique(np.ones(2), return_index=np.ones(2)),
        lambda: ops.unique([[1], [2, 3]]),
        lambda: ops.nonzero([[1], [2, 3]]),
        lambda: ops.histogram(np.ones(2, np.float32), density=np.ones(2)),
        lambda: ops.histogram(np.ones(2, np.float32), np.array(["2020", "2021"], "M8[D]")),
        lambda: ops.histogram(np.ones(2, np.float32), 2**31 - 1),
        lambda: ops.transpose(np.ones((2, 2), np.float32), np.array("s")),
        lambda: ops.sum(np.ones(2, np.float32), axis=np.array(1.5)),
        lambda: ops.reduction("x", doc=np.ones(2)),
        lambda: ops.scan("x", doc=np.ones(2)),
    ],
)
def test_odd_arguments_are_refused_by_name(call):
    with pytest.raises((kp.ArgumentTypeError, kp.InvalidArgumentError), match=r"is\b|are\b"):
        call()


def test_axes_of_arrays_without_axes():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(ops.sum(x, axis=np.array(1)), x.sum(1))


def test_diff_with_what_stands_beside(mgr):
    x = numbers((3, 4)) ** 2
    t = mgr.tensor_t(x)
    for named in (
        {"prepend": np.float32(0)},
        {"append": np.float32(3)},
        {"prepend": np.zeros((3, 2), np.float32), "append": x[:, :1]},
        {"prepend": np.zeros((1, 4), np.float32), "axis": 0, "n": 2},
        {"prepend": np.float32(1), "n": 0},
        {"append": np.float32(7), "n": 9},
    ):
        expected = np.diff(x, **named)
        theirs = {
            name: mgr.tensor_t(each) if isinstance(each, np.ndarray) else each for name, each in named.items()
        }
        operation = ops.diff.op(t, **theirs)
        mgr.sequence().record(operation).eval()
        for got in (ops.diff(x, **named), ops.diff(t, **theirs).read(), operation.results[0].read()):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)
    part = t[:, ::2]
    np.testing.assert_array_equal(
        ops.diff(part, prepend=mgr.tensor_t(np.float32(4))).read(), np.diff(x[:, ::2], prepend=np.float32(4))
    )
    flags = np.array([True, False, False])
    np.testing.assert_array_equal(ops.diff(flags, prepend=True), np.diff(flags, prepend=True))
    ints = np.array([3, 1], np.int32)
    assert ops.diff(ints, prepend=ints[:1]).tolist() == [0, -2]
    with pytest.raises(kp.InvalidArgumentError, match="must be the same"):
        ops.diff(t, prepend=np.zeros((2, 1), np.float32))
