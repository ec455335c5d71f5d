"""Reductions from a line of text, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from kompute_py._custom import expressions
from tests.support.sampling import examples, sampled

SUM = kp.ops.reduction()
DOT = kp.ops.reduction("x * y", "a + b", 0, name="dot")
NAMED = {name: kp.ops.reduction(reduce=name) for name in ("sum", "prod", "min", "max", "any", "all")}
DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
)  # fmt: skip
ROUNDINGS = 800 * 2.0**-24


@pytest.fixture(autouse=True)
def default(mgr):
    """The test's Manager is the one that calls with arrays use."""
    with mgr.current():
        yield
    for operation in (SUM, DOT, *NAMED.values()):
        operation.cache_clear()


def variants(mgr):
    """The names of the variants that the device can run."""
    found = ["run", "shared"]
    try:
        SUM.variant("subgroup")(mgr.tensor_t(np.ones(5, np.float32)))
    except kp.InvalidArgumentError as error:
        assert "no variant" in str(error)
        return found
    return [*found, "subgroup"]


def close_to_sum(got, x, axis, keepdims=False):
    exact = np.sum(x, axis, np.float64, keepdims=keepdims)
    bound = ROUNDINGS * np.sum(np.abs(x), axis, np.float64, keepdims=keepdims)
    got = np.asarray(got)
    assert got.shape == exact.shape and got.dtype == np.float32
    assert (np.abs(got - exact) <= bound).all()


shapes = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=7)


@examples(12)
@given(data=st.data())
@pytest.mark.parametrize("variant", ["run", "shared"])
def test_sums_over_any_axes(variant, data):
    shape = data.draw(shapes)
    axis = data.draw(
        st.none()
        | st.lists(st.integers(0, len(shape) - 1), unique=True).map(tuple)
        | st.integers(-len(shape), len(shape) - 1)
        if shape
        else st.sampled_from([None, ()])
    )
    keep = data.draw(st.booleans())
    x = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(-8, 8, width=16)))
    close_to_sum(SUM.variant(variant)(x, axis=axis, keepdims=keep), x, axis, keep)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "shape",
    [(7,), (1024,), (4099,), (100_003,), (1 << 18,), (3, 9001), (2001, 3), (2, 3, 4099)],
)
def test_long_runs_by_each_variant(mgr, shape):
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    tensor = mgr.tensor_t(x)
    most = sampled(3000, x.size)  # SwiftShader takes a second for some thousand workgroups with barriers
    for variant in variants(mgr):
        for axis in (None, *range(len(shape))):
            if variant == "run" or axis is None or x.size // shape[axis] <= most:
                close_to_sum(SUM.variant(variant)(tensor, axis=axis).read(), x, axis)


@pytest.mark.parametrize("variant", ["run", "shared"])
def test_results_beyond_one_axis_of_a_grid(monkeypatch, variant):
    monkeypatch.setattr(expressions, "_MOST_GROUPS", 7)
    x = np.arange(2001 * 3, dtype=np.float32).reshape(-1, 3)
    np.testing.assert_array_equal(SUM.variant(variant)(x, axis=1), x.sum(1))


def test_an_invocation_takes_no_more_turns_than_drivers_make(mgr):
    # llvmpipe ends loops after 65,535 turns of an invocation.
    x = mgr.tensor_t(np.ones((1 << 19, 8), np.uint8))
    op = kp.ops.reduction(dtype="uint32").variant("run")
    assert (op(x, axis=0).read() == 1 << 19).all()
    long = kp.ops.reduction("x + y + 0 * sin(x)", "a + b", 0).variant("run")
    x, y = np.ones((1024, 1), np.float32), np.zeros(40_000, np.float32)
    assert (long(x, y, axis=1) == 40_000).all()


LONG = [
    ("complex64", "x / (1 + x) / (2 + 1j)", "a + b", 1),
    ("complex64", "x", "1 / (1 / a + 1 / b)", -1),
    ("float32", "x % 3 + x ** x", "a + b", 1),
    ("float32", "x", "(a ** 3.0 + b ** 3.0) ** (1 / 3)", 3),
]


@pytest.mark.parametrize("variant", ["run", "shared"])
@pytest.mark.parametrize(("dtype", "text", "reduce", "power"), LONG)
def test_long_functions(dtype, text, reduce, power, variant):
    """A kernel has them in few places: SwiftShader compiled twenty quotients or powers in a loop for ever."""
    parts = np.random.default_rng(3).uniform(0.5, 2, (2, 3, 4099))
    x = (parts[0] + 1j * parts[1] if dtype == "complex64" else parts[0]).astype(dtype)
    values = eval(text, {"x": x.astype(np.result_type(dtype, np.float64))}) ** power
    reduction, scan = (
        make(text, reduce, associative=True).variant(variant) for make in (kp.ops.reduction, kp.ops.scan)
    )
    for axis in (None, 1):
        np.testing.assert_allclose(reduction(x, axis=axis), values.sum(axis) ** (1 / power), rtol=1e-4)
    np.testing.assert_allclose(scan(x, axis=1), values.cumsum(1) ** (1 / power), rtol=1e-4)


@examples(8)
@given(data=st.data())
@pytest.mark.parametrize("name", NAMED)
def test_names_and_dtypes(name, data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    wide = "shaderInt64" in kp.manager().enabled_features
    if dtype.itemsize == 8 and not wide:
        return
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=9))
    elements = st.integers(0, 3) if dtype.kind in "ub" else st.integers(-3, 3)
    if name == "prod":
        elements = st.sampled_from([0, 1, 1, 1] if dtype.kind in "ubf" else [1, -1, 2])
    x = np.array(data.draw(st.lists(elements, min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    x = x.astype(dtype).reshape(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    got = NAMED[name].variant("run")(x, axis=axis)
    want = getattr(np, name)(x, axis=axis)
    if not wide and want.dtype.itemsize == 8:
        want = want.astype(want.dtype.kind + "4")
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@examples(8)
@given(data=st.data())
def test_maps_broadcast(data):
    x = data.draw(
        hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=6), elements=st.integers(-9, 9))
    )
    rows = [n if data.draw(st.booleans()) else 1 for n in x.shape]
    y = np.arange(np.prod(rows), dtype=np.float32).reshape(rows)
    axis = data.draw(st.none() | st.integers(0, x.ndim - 1))
    np.testing.assert_array_equal(DOT.variant("run")(x, y, axis=axis), (x * y).sum(axis))
    np.testing.assert_array_equal(DOT.variant("run")(x, 3, axis=axis), (x * 3).sum(axis))


def test_numbers_change_without_a_new_kernel(mgr):
    op = kp.ops.reduction("a * x + y").variant("run")
    x = mgr.tensor_t(np.arange(10, dtype=np.float32))
    assert [float(op(a, x, y)) for a, y in ((1, 0.0), (2, 0.0), (3, 0.5))] == [45, 90, 140]
    assert op.cache_info().specializations == 1


def test_views(mgr):
    x = np.arange(60, dtype=np.float32).reshape(6, 10)
    t = mgr.tensor_t(x)
    for part in (np.s_[1:3], np.s_[:, 1], np.s_[::2, 3:8], np.s_[::-1]):
        np.testing.assert_array_equal(SUM.variant("run")(t[part], axis=0).read(), x[part].sum(0))


def test_nan_and_no_elements(mgr):
    x = np.array([[1, np.nan], [3, 2]], np.float32)
    for variant in ("run", "shared"):
        for name in ("min", "max"):
            got = NAMED[name].variant(variant)(x, axis=1)
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1))
    empty = np.zeros((3, 0), np.float32)
    np.testing.assert_array_equal(NAMED["prod"](empty, axis=1), [1, 1, 1])
    np.testing.assert_array_equal(NAMED["all"](empty, axis=1), [True] * 3)
    assert NAMED["max"](empty, axis=0).shape == (0,)
    with pytest.raises(kp.InvalidArgumentError, match="no elements have no such value"):
        NAMED["max"](empty, axis=1)
    lowest = kp.ops.reduction(reduce="max", neutral=-np.inf)
    np.testing.assert_array_equal(lowest(empty, axis=1), [-np.inf] * 3)


def test_dtype_and_float16(mgr):
    x = np.full(5000, 0.1, np.float16)
    got = SUM.variant("run")(x)
    assert got.dtype == np.float16 and got == x.astype(np.float64).sum().astype(np.float16)
    wide = kp.ops.reduction(dtype="float32")(x)
    assert wide.dtype == np.float32 and abs(wide - x.astype(np.float64).sum()) < 0.01


def test_an_expression_and_an_operation_recorded(mgr):
    largest = kp.ops.reduction("abs(x)", "a if a > b else b", 0).variant("shared")
    x = mgr.tensor_t(np.array([[1, -5], [2, 3]], np.float32))
    operation = largest.op(x, axis=1, keepdims=True)
    mgr.sequence().record(operation).eval()
    assert operation.results[0].tolist() == [[5.0], [3.0]]
    assert SUM.meta(kp.TensorSpec((4, 5), "int8"), axis=0) == kp.TensorSpec((5,), "int64")


def test_refusals(mgr):
    x = np.ones((2, 3), np.float32)
    for axis in (2, -3, (0, 5)):
        with pytest.raises(kp.InvalidArgumentError, match="there are 2 axes"):
            SUM(x, axis=axis)
    with pytest.raises(kp.InvalidArgumentError, match="twice"):
        SUM(x, axis=(0, -2))
    with pytest.raises(kp.InvalidArgumentError, match="do not broadcast"):
        DOT(x, np.ones(4, np.float32))
    for bad in ("a + c", "a", "summ"):
        with pytest.raises(kp.InvalidArgumentError):
            kp.ops.reduction(reduce=bad)
    with pytest.raises(kp.ArgumentTypeError):
        kp.ops.reduction(reduce=3)
    with pytest.raises(kp.ArgumentTypeError):
        kp.ops.reduction(3)
    with pytest.raises(kp.errors.FormulaError):
        kp.ops.reduction("x +")
    with pytest.raises(kp.InvalidArgumentError, match="no names"):
        kp.ops.reduction("1")
    with pytest.raises(kp.InvalidArgumentError, match="so reduce is an expression for each: s = "):
        kp.ops.reduction("s = x; t = x")


def test_staging(make_manager):
    mgr = make_manager(force_staging=True)
    x = np.random.default_rng(4).integers(-99, 99, (37, 211)).astype(np.int32)
    for axis in (None, 0, 1):
        got = SUM.variant("shared")(mgr.tensor_t(x), axis=axis).read()
        np.testing.assert_array_equal(got, x.sum(axis))
    with mgr.current():
        np.testing.assert_array_equal(DOT.variant("run")(x, x, axis=1), (x * x).sum(1))
