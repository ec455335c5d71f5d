"""Running sums, products, maxima and minima, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

NUMPYS = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}


def wanted(name, x, axis):
    """NumPy's result; its accumulate takes no None."""
    if axis is None and name in ("cummax", "cummin"):
        return NUMPYS[name](x.reshape(-1))
    return NUMPYS[name](x, axis=axis)


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("name", NUMPYS)
def test_any_shape_and_axis(name, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    x = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(-3, 3)))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    got = getattr(kp.ops, name)(x, axis=axis)
    want = wanted(name, x, axis)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want.astype(got.dtype))


def test_nan_and_long_lines(mgr):
    x = np.random.default_rng(0).normal(size=10_007).astype(np.float32)
    x[5000] = np.nan
    given = mgr.tensor_t(x)
    for name in ("cummax", "cummin"):
        np.testing.assert_array_equal(getattr(kp.ops, name)(given).read(), NUMPYS[name](x))
    x[5000] = 0
    exact, bound = np.cumsum(x, dtype=np.float64), np.cumsum(np.abs(x), dtype=np.float64)
    got = kp.ops.cumsum(x)
    assert (np.abs(got - exact) <= bound * np.arange(1, x.size + 1) * 2.0**-24).all()


def test_products_of_floats():
    x = np.random.default_rng(0).uniform(0.9, 1.1, 4999).astype(np.float32)
    exact = np.cumprod(x, dtype=np.float64)
    assert (np.abs(kp.ops.cumprod(x) - exact) <= exact * np.arange(1, x.size + 1) * 2.0**-24).all()


def test_dtypes_views_out_and_recordings(mgr, needs):
    needs(mgr, "shaderInt64")
    for dtype in ("bool", "int8", "uint16", "int64"):
        x = np.ones(300, dtype)
        got = kp.ops.cumsum(x)
        assert got.dtype == np.cumsum(x).dtype and got[-1] == 300
    x = mgr.tensor_t(np.arange(12, dtype=np.float32).reshape(3, 4))
    y = mgr.empty(12)
    mgr.sequence().record(kp.ops.cumsum.op(x, out=y)).eval()
    np.testing.assert_array_equal(y.read(), np.cumsum(x.read()))
    np.testing.assert_array_equal(kp.ops.cumsum(x[:, 1]).read(), [1, 6, 15])
    kp.ops.cumsum(x, axis=0, out=x)
    np.testing.assert_array_equal(x.read()[-1], [12, 15, 18, 21])
    assert kp.ops.cumsum(np.float32(3).reshape(())).shape == (1,)


def test_errors():
    with pytest.raises(kp.InvalidArgumentError, match="axis is 1"):
        kp.ops.cumsum(np.ones(2, np.float32), axis=1)
    with pytest.raises(kp.InvalidArgumentError, match="one int, or None"):
        kp.ops.cumsum(np.ones((2, 2), np.float32), axis=[0, 1])
