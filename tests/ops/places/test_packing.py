"""Bits and ints of four bits in bytes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from tests.support.sampling import examples

SHAPES = st.lists(st.integers(0, 11), max_size=4).map(tuple)
some = examples(30)
ORDERS = st.sampled_from(["big", "little"])


@st.composite
def arrays(draw, dtypes):
    """An array of small numbers, and an axis of it or None."""
    shape, dtype = draw(SHAPES), draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    made = rng.integers(0, 256, shape).astype(dtype)
    if draw(st.booleans()):
        made = made * (rng.random(shape) < 0.5).astype(made.dtype)
    axis = draw(st.none() | st.integers(-len(shape), len(shape) - 1)) if shape else None
    return made, axis


def same(found, expected):
    found = found.read() if isinstance(found, kp.Tensor) else found
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


@some
@given(arrays(["?", "u1", "i1", "i2", "i4", "u4"]), ORDERS)
def test_packbits(mgr, given_, order):
    array, axis = given_
    same(kp.ops.packbits(mgr.tensor_t(array), axis=axis, bitorder=order), np.packbits(array, axis, order))


@some
@given(arrays(["u1"]), ORDERS, st.none() | st.integers(-8, 100))
def test_unpackbits(mgr, given_, order, count):
    array, axis = given_
    length = 8 * (array.size if axis is None else array.shape[axis])
    if count is not None and (count < -length or not array.size):
        count = None  # NumPy leaves memory as it was if there is nothing to unpack
    found = kp.ops.unpackbits(mgr.tensor_t(array), axis=axis, count=count, bitorder=order)
    same(found, np.unpackbits(array, axis, count, order))


@some
@given(arrays(["u1", "i1", "i4"]))
def test_ints_of_four_bits(mgr, given_):
    array, axis = given_
    length = array.size if axis is None else array.shape[axis]
    packed = kp.ops.pack_int4(mgr.tensor_t(array), axis=axis)
    lines = np.moveaxis(array.reshape(-1) if axis is None else array, axis or 0, -1).astype(np.int64) & 15
    lines = np.concatenate([lines, np.zeros((*lines.shape[:-1], length % 2), np.int64)], -1)
    expected = (lines[..., ::2] | lines[..., 1::2] << 4).astype(np.uint8)
    same(packed, np.moveaxis(expected, -1, axis or 0))
    low = (array.reshape(-1) if axis is None else array).astype(np.int64) & 15
    same(kp.ops.unpack_int4(packed, axis=axis, count=length, signed=False), low.astype(np.uint8))
    same(kp.ops.unpack_int4(packed, axis=axis, count=length), ((low ^ 8) - 8).astype(np.int8))


def test_views_out_and_recordings(mgr):
    array = np.arange(60, dtype=np.uint8).reshape(6, 10)
    x, out = mgr.tensor_t(array), mgr.zeros((6, 5), np.uint8)
    same(kp.ops.packbits(x[::2, ::-1], axis=1), np.packbits(array[::2, ::-1], axis=1))
    sequence = mgr.sequence().record(kp.ops.pack_int4.op(x, axis=1, out=out))
    for more in (0, 3):
        x.write(array + more)
        sequence.eval()
        same(out, ((array[:, ::2] + more) & 15) | ((array[:, 1::2] + more) & 15) << 4)


@pytest.mark.capability(
    "I32",
    "floats of 8 bits and ints of 4, stored and converted",
    "kp.ops.pack_int4, kp.ops.unpack_int4",
    "reference/ops_moving",
)
def test_numbers_of_ml_dtypes_come_back(mgr):
    int4 = pytest.importorskip("ml_dtypes").int4
    weights = np.array([-8, -1, 0, 7, 3], int4)
    packed = kp.ops.pack_int4(mgr.tensor_t(weights.astype(np.int8)))
    same(kp.ops.unpack_int4(packed, count=5), weights.astype(np.int8))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: kp.ops.packbits(x("f4")), kp.ArgumentTypeError, "x is of float32; give ints or bools"),
        (lambda x: kp.ops.unpackbits(x("i1")), kp.ArgumentTypeError, "x is of int8; give uint8"),
        (lambda x: kp.ops.unpack_int4(x("i4")), kp.ArgumentTypeError, "x is of int32; give uint8"),
        (lambda x: kp.ops.packbits(x(), axis=1), kp.InvalidArgumentError, "axis is 1, and there are 1 axes"),
        (lambda x: kp.ops.packbits(x(), bitorder="x"), kp.InvalidArgumentError, 'give "big" or "little"'),
        (lambda x: kp.ops.unpackbits(x(), count=-25), kp.InvalidArgumentError, "count is -25, and .* 24"),
        (lambda x: kp.ops.unpackbits(x(), count=2**40), kp.InvalidArgumentError, "unpackbits"),
        (lambda x: kp.ops.packbits(x(), axis=(0, 1)), kp.InvalidArgumentError, "give one"),
    ],
)
def test_errors(mgr, call, error, said):
    with pytest.raises(error, match=said):
        call(lambda dtype="u1": mgr.tensor_t(np.ones(3, dtype)))
