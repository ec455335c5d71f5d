"""Sets of elements, and the indices of those that are not zero, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

RNG = np.random.default_rng(11)


@pytest.fixture(params=[False, True], ids=["arrays", "tensors"])
def place(request, mgr):
    """Arrays as they are, or as tensors."""
    return mgr.tensor_t if request.param else lambda array: array


@pytest.mark.sampled
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("i4", "i4"), ("u1", "i2"), ("f4", "i2"), ("?", "?")])
def test_sets(place, dtypes):
    a, b = RNG.integers(-9, 9, (6, 7)).astype(dtypes[0]), RNG.integers(-4, 14, 30).astype(dtypes[1])
    for name in ("union1d", "intersect1d", "setdiff1d"):
        got, want = getattr(kp.ops, name)(place(a), place(b)), getattr(np, name)(a, b)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
        empty = getattr(kp.ops, name)(place(a), place(b[:0]))
        np.testing.assert_array_equal(empty, getattr(np, name)(a, b[:0]))
    for got, want in zip(
        kp.ops.intersect1d(place(a), place(b), return_indices=True),
        np.intersect1d(a, b, return_indices=True),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)
    b = RNG.permutation(np.unique(b))
    np.testing.assert_array_equal(kp.ops.setdiff1d(place(b), place(a), True), b[~np.isin(b, a)])


def test_nan_is_in_no_set(place):
    a, b = np.float32([np.nan, 1, -0.0, np.nan, np.inf]), np.float32([0.0, np.nan, np.inf])
    for name in ("union1d", "intersect1d", "setdiff1d"):
        np.testing.assert_array_equal(getattr(kp.ops, name)(place(a), place(b)), getattr(np, name)(a, b))


def test_argwhere(place):
    x = RNG.integers(0, 2, (4, 5, 3)).astype(np.float32)
    for each in (x, x[0], x[:, 0, 0], x[:0]):
        got, want = kp.ops.argwhere(place(each)), np.argwhere(each)
        np.testing.assert_array_equal(got, want)
    with pytest.raises(kp.InvalidArgumentError, match="without axes"):
        kp.ops.argwhere(5.0)
