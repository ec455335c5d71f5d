"""Softmax, norms and activations, against NumPy in float64."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from kompute_py._builders import elementwise
from kompute_py._custom import expressions
from tests.ops.variants import only
from tests.support.sampling import examples, sampled

pytestmark = pytest.mark.usefixtures("current")

EPS = 2.0**-24
softmax_in_groups, layer_norm_in_groups = (
    only(each, "group") for each in (kp.ops.softmax, kp.ops.layer_norm)
)


def numbers(shape, seed=0, scale=5.0, dtype="float32"):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)


def softmax(x, axis):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x, axis=None, keepdims=False):
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(x.astype(np.float64), axis, keepdims=keepdims)


def logsumexp_of(x, axes, keepdims):
    x = np.moveaxis(x, axes, range(-len(axes), 0))
    want = logsumexp(x.reshape(*x.shape[: x.ndim - len(axes)], math.prod(x.shape[x.ndim - len(axes) :])), -1)
    return np.expand_dims(want, axes) if keepdims else want


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=19)


@examples(25)
@given(data=st.data())
def test_softmax_of_any_shape(data):
    shape = data.draw(shapes)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = numbers(shape, data.draw(st.integers(0, 99)), data.draw(st.sampled_from([1, 30, 1e4])))
    bound = 1e-5 + shape[axis] / 8 * EPS
    got = kp.ops.softmax(x, axis)
    assert got.dtype == x.dtype and got.shape == shape
    np.testing.assert_allclose(got, softmax(x, axis), bound, 1e-37)
    want = x - logsumexp(x, axis, True)
    got = kp.ops.log_softmax(x, axis)
    assert (abs(got - want) <= bound + 4 * EPS * (abs(want) + abs(x).max(initial=0))).all()


@examples(25)
@given(data=st.data())
def test_logsumexp_of_any_shape(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
    x = numbers(shape, data.draw(st.integers(0, 99)), data.draw(st.sampled_from([1, 1e3])))
    first = data.draw(st.integers(0, len(shape)))
    axes = tuple(range(first, data.draw(st.integers(first, len(shape)))))
    keepdims = data.draw(st.booleans())
    want = logsumexp_of(x, axes, keepdims)
    got = np.asarray(kp.ops.logsumexp(x, list(axes), keepdims=keepdims))
    assert got.shape == want.shape
    n = math.prod(shape[axis] for axis in axes)
    np.testing.assert_allclose(got, want, 4 * EPS, 1e-5 + n / 8 * EPS)
    if axes == tuple(range(len(shape))):
        np.testing.assert_array_equal(kp.ops.logsumexp(x, keepdims=keepdims), got)


def layer_norm(x, axes, weight=1.0, bias=0.0, eps=1e-5):
    """The result in float64, and what its bound is a part of."""
    x = x.astype(np.float64)
    mean, deviation = x.mean(axes, keepdims=True), np.sqrt(x.var(axes, keepdims=True) + eps)
    scale = (abs(x) + abs(x).mean(axes, keepdims=True)) / deviation * abs(weight) + abs(bias)
    return (x - mean) / deviation * weight + bias, scale


@examples(25)
@given(data=st.data())
def test_norms_of_any_shape(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=19))
    count = data.draw(st.integers(1, len(shape)))
    axes = tuple(range(-count, 0))
    seed = data.draw(st.integers(0, 99))
    x = numbers(shape, seed) + data.draw(
        st.sampled_from(
            [0, 100],
        )
    ) * np.float32(1)
    weight, bias = numbers(shape[-count:], seed + 1), numbers(shape[-count:], seed + 2)
    eps = data.draw(st.sampled_from([1e-5, 0.1]))
    n = math.prod(shape[-count:])
    want, scale = layer_norm(x, axes, weight, bias, eps)
    got = kp.ops.layer_norm(x, weight, bias, axis=list(axes), eps=eps)
    assert got.dtype == x.dtype and got.shape == shape
    assert (abs(got - want) <= (n / 8 + 16) * EPS * scale).all()
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(axes, keepdims=True) + eps) * weight
    got = kp.ops.rms_norm(x, weight, axis=list(axes), eps=eps)
    assert (abs(got - want) <= (n / 16 + 16) * EPS * abs(want)).all()


def test_defaults_of_norms():
    x = numbers((5, 40))
    np.testing.assert_allclose(kp.ops.layer_norm(x), layer_norm(x, -1)[0], 0, 1e-5)
    bias = numbers(40, 1)
    np.testing.assert_allclose(kp.ops.layer_norm(x, bias=bias), layer_norm(x, -1, 1.0, bias)[0], 0, 1e-5)
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 2.0**-23)
    np.testing.assert_allclose(kp.ops.rms_norm(x), want, 1e-6)
    assert kp.ops.layer_norm(x[:0]).shape == (0, 40) and kp.ops.rms_norm(x[:, :0]).shape == (5, 0)
    np.testing.assert_array_equal(kp.ops.layer_norm(np.ones((2, 3), np.float32)), np.zeros((2, 3)))


def test_norms_of_doubles(mgr, needs):
    needs(mgr, "shaderFloat64")
    x = numbers((7, 50), dtype="float64") + 1e6
    weight = numbers(50, 1)
    np.testing.assert_allclose(kp.ops.layer_norm(x, weight), layer_norm(x, -1, weight)[0], 0, 1e-8)
    np.testing.assert_allclose(
        kp.ops.rms_norm(x, weight), weight * x / np.sqrt((x * x).mean(-1, keepdims=True)), 1e-12
    )


@pytest.mark.parametrize("shape", [(2, 20001), (20001, 3), (70, 257), (1, 1)])
def test_long_lines_and_groups(shape):
    axis = int(np.argmax(shape))
    x = numbers(shape, 4)
    for operation in (kp.ops.softmax, softmax_in_groups):
        np.testing.assert_allclose(operation(x, axis), softmax(x, axis), 1e-5 + shape[axis] / 8 * EPS)
    n, axes = x.size if axis == 0 else shape[1], (0, 1) if axis == 0 else (1,)
    want, scale = layer_norm(x, axes)
    for operation in (kp.ops.layer_norm, layer_norm_in_groups):
        assert (abs(operation(x, axis=list(axes)) - want) <= (n / 8 + 16) * EPS * scale).all()


def check_few_long_lines(x, axis, bound):
    """All of these operations, against float64, then with special numbers."""
    for operation in (kp.ops.softmax, softmax_in_groups):
        np.testing.assert_allclose(operation(x, axis), softmax(x, axis), bound)
    np.testing.assert_allclose(kp.ops.log_softmax(x, axis), x - logsumexp(x, axis, True), bound, bound * 40)
    np.testing.assert_allclose(kp.ops.logsumexp(x, axis), logsumexp(x, axis), bound, bound * 20)
    x = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    want, scale = layer_norm(x, -1)
    for operation in (kp.ops.layer_norm, layer_norm_in_groups):
        assert (abs(operation(x) - want) <= bound * scale).all()
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True))
    np.testing.assert_allclose(kp.ops.rms_norm(x), want, bound, bound)
    for special, found in ((np.nan, np.nan), (np.inf, np.inf)):
        x[..., -1] = special
        np.testing.assert_array_equal(kp.ops.logsumexp(x, -1), np.full(x.shape[:-1], found))
        assert np.isnan(kp.ops.softmax(x)).all()
    x[...] = -np.inf
    np.testing.assert_array_equal(kp.ops.logsumexp(x, -1), np.full(x.shape[:-1], -np.inf))


@pytest.mark.each_driver
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("shape", [(1_100_003,), (3, 250_001), (250_001, 2)])
def test_few_long_lines_are_divided_among_workgroups(shape):
    axis = int(np.argmax(shape))
    check_few_long_lines(numbers(shape, 4), axis, 1e-5 + shape[axis] / 8 * EPS)


def test_long_lines_of_doubles_are_divided_among_workgroups(mgr, needs):
    needs(mgr, "shaderFloat64")
    x = numbers((2, 140_001), 4, dtype="float64")
    np.testing.assert_allclose(kp.ops.softmax(x), softmax(x, 1), 1e-11)
    np.testing.assert_allclose(kp.ops.logsumexp(x, 1), logsumexp(x, 1), 1e-11)
    np.testing.assert_allclose(kp.ops.layer_norm(x), layer_norm(x, -1)[0], 1e-9, 1e-9)


@pytest.mark.parametrize("n", [1, 63, 256, 513, 1024, 1025, 5000])
def test_lines_of_any_length_by_workgroups(n):
    x = numbers((5, n), n)
    np.testing.assert_allclose(softmax_in_groups(x, 1), softmax(x, 1), 1e-5 + n / 8 * EPS)
    want, scale = layer_norm(x, -1)
    assert (abs(layer_norm_in_groups(x) - want) <= (n / 8 + 16) * EPS * scale).all()


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_small_floats_are_computed_in_float32(dtype):
    x = numbers((9, 33), scale=2.0, dtype=dtype)
    half = 2.0**-11 if dtype == "float16" else 2.0**-8
    for operation, want in (
        (kp.ops.softmax, softmax(x, -1)),
        (kp.ops.layer_norm, layer_norm(x, -1)[0]),
        (kp.ops.gelu, gelu(x)),
        (kp.ops.silu, silu(x)),
    ):
        got = operation(x)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got.astype(np.float64), want, half, 1e-5)


def test_special_numbers():
    inf, nan = np.inf, np.nan
    x = np.float32(
        [[0, -inf, 0], [-inf, -inf, -inf], [inf, 0, 1], [nan, 0, 1], [1, 0, nan], [-200, -300, -200]]
    )
    got = kp.ops.softmax(x)
    np.testing.assert_allclose(got[[0, 5]], [[0.5, 0, 0.5], [0.5, 0, 0.5]], 1e-6, 1e-30)
    assert np.isnan(got[1:5]).all()
    sums = kp.ops.logsumexp(x, 1)
    np.testing.assert_allclose(sums, [np.log(2), -inf, inf, nan, nan, np.log(2) - 200], 1e-6)
    assert kp.ops.logsumexp(x[:0]) == -inf
    np.testing.assert_array_equal(kp.ops.relu(np.float32([nan, -inf, inf, -1, 2])), [nan, 0, inf, 0, 2])


def silu(x):
    x = x.astype(np.float64)
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def gelu(x):
    x = x.astype(np.float64)
    return x / 2 * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2))


def gelu_tanh(x):
    x = x.astype(np.float64)
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh"])
def test_activations(name):
    x = np.concatenate([np.linspace(-12, 12, 4001), [-1e4, -100, -80, 80, 1e4, 1e-30, 0]]).astype(np.float32)
    got = getattr(kp.ops, name)(x)
    assert got.dtype == np.float32
    assert (abs(got - globals()[name](x)) <= 4e-6 * abs(x)).all()


@pytest.mark.sampled
def test_more_than_65535_workgroups(monkeypatch):
    most = sampled(1023, 65535)  # of an axis: what fewer devices have is half of a minute's work
    for module in (elementwise, expressions):
        monkeypatch.setattr(module, "_MOST_GROUPS", most)
    kp.ops.silu.cache_clear(), kp.ops.softmax.cache_clear()
    x = np.full(most * 256 + 3, -3, ml_dtypes.float8_e5m2)
    x[-1] = 4
    got = kp.ops.silu(x)
    assert (got[:-1] == silu(x[:1]).astype(x.dtype)).all() and got[-1] == 4
    rows = np.ones((most * 64 + 3, 1), ml_dtypes.float8_e5m2)
    assert (kp.ops.softmax(rows) == 1).all()


def test_relu_and_leaky_relu():
    x = numbers((3, 50))
    np.testing.assert_array_equal(kp.ops.relu(x), np.maximum(x, 0))
    whole = np.arange(-5, 5, dtype=np.int16)
    np.testing.assert_array_equal(kp.ops.relu(whole), np.maximum(whole, 0))
    np.testing.assert_array_equal(kp.ops.leaky_relu(x, 0.01), np.where(x > 0, x, x * np.float32(0.01)))


def test_views_out_in_place_and_recorded(mgr):
    t = mgr.tensor_t(numbers((30, 20)))
    x = t.read()
    for part, array in ((t[::2], x[::2]), (t[:, 3:7], x[:, 3:7]), (t[3], x[3])):
        np.testing.assert_allclose(kp.ops.softmax(part).read(), softmax(array, -1), 1e-5)
        np.testing.assert_allclose(kp.ops.layer_norm(part).read(), layer_norm(array, -1)[0], 0, 1e-5)
        np.testing.assert_allclose(kp.ops.gelu(part).read(), gelu(array), 1e-5, 1e-5)
    out = mgr.empty((30, 20))
    assert kp.ops.log_softmax(t, 0, out=out) is out
    np.testing.assert_allclose(out.read(), x - logsumexp(x, 0), 0, 1e-4)
    sequence = mgr.sequence()
    sequence.record(kp.ops.softmax.op(t, out=t)).record(kp.ops.rms_norm.op(t, out=t)).eval()
    want = softmax(x, -1)
    np.testing.assert_allclose(t.read(), want / np.sqrt((want**2).mean(-1, keepdims=True) + 2.0**-23), 1e-5)
    assert kp.ops.logsumexp.meta(kp.TensorSpec((3, 4)), axis=1) == kp.TensorSpec((3,))


def test_errors():
    x = np.zeros((2, 3, 4), np.float32)
    with pytest.raises(kp.errors.InvalidArgumentError, match="axis is 3"):
        kp.ops.softmax(x, 3)
    with pytest.raises(kp.errors.InvalidArgumentError, match="follow each other"):
        kp.ops.logsumexp(x, [0, 2])
    with pytest.raises(kp.errors.InvalidArgumentError, match="the last axes"):
        kp.ops.layer_norm(x, axis=1)
    with pytest.raises(kp.errors.InvalidArgumentError, match=r"weight has the shape \(3,\)"):
        kp.ops.rms_norm(x, np.ones(3, np.float32))
    with pytest.raises(kp.errors.ArgumentTypeError, match="give floats"):
        kp.ops.softmax(x.astype(np.int32))


@pytest.mark.parametrize("shape", [(7, 9), (3, 3000)])
def test_softmax_of_doubles(mgr, needs, shape):
    needs(mgr, "shaderFloat64")
    x = np.random.default_rng(3).normal(size=shape) * 200
    x[0, :3] = -np.inf, 700, 700
    x[1, 1], x[2, 2] = np.nan, np.inf
    with np.errstate(all="ignore"):
        most = x.max(axis=1, keepdims=True)
        sums = np.exp(x - most).sum(axis=1, keepdims=True)
        want = np.exp(x - most) / sums
        logs = x - most - np.log(sums)
        whole = np.where(np.isinf(most), most, most + np.log(sums))
    rounds = 1e-14 + shape[1] / 8 * 2.0**-53
    found = kp.ops.softmax(x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, want, rounds, 1e-300)
    np.testing.assert_allclose(kp.ops.log_softmax(x), logs, rounds, rounds)
    np.testing.assert_allclose(kp.ops.logsumexp(x, axis=1, keepdims=True), whole, rounds, rounds)
    assert kp.ops.logsumexp(np.full(3, -np.inf)) == -np.inf


def test_activations_of_doubles(mgr, needs):
    needs(mgr, "shaderFloat64")
    x = np.concatenate([np.random.default_rng(4).normal(size=3000) * 4, [0.0, 30.0, -30.0, 700.0, np.inf]])
    erf = np.array([math.erf(each / math.sqrt(2)) for each in x])
    bound = 4e-15 * abs(x)
    tanh = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    for name, want in (
        ("gelu", x / 2 * (1 + erf)),
        ("gelu_tanh", x / 2 * (1 + tanh)),
        ("silu", x / (1 + np.exp(-x))),
    ):
        found = getattr(kp.ops, name)(x)
        assert found.dtype == np.float64 and found[-1] == np.inf
        assert (abs(found[:-1] - want[:-1]) <= bound[:-1]).all(), name
