"""Functions of several operations, parts, indices that are refused, and norms, against NumPy."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.sampling import examples, spread

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6)


def numbers(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def read(x):
    return x.read() if hasattr(x, "read") else np.asarray(x)


def test_recorded_as_one(mgr):
    x = numbers((4, 5, 6))
    t = mgr.tensor_t(x)
    weights = np.arange(1, 6, dtype=np.float32)
    for function, args, want in (
        (ops.ptp, (t, 1), np.ptp(x, 1)),
        (ops.diff, (t, 2, 1), np.diff(x, 2, 1)),
        (ops.diff, (t, 0), x),
        (ops.trace, (t,), np.trace(x)),
        (ops.tensordot, (t, t, ([0], [0])), np.tensordot(x, x, ([0], [0]))),
        (ops.average, (t, 1, mgr.tensor_t(weights)), np.average(x, 1, weights)),
        (ops.average, (t, 2), np.mean(x, 2)),
        (ops.kron, (t[0], t[1]), np.kron(x[0], x[1])),
        (ops.vdot, (t, t), np.vdot(x, x)),
        (ops.matrix_norm, (t, -np.inf, (0, 2)), np.linalg.norm(x, -np.inf, (0, 2))),
    ):
        operation = function.op(*args)
        sequence = mgr.sequence().record(operation)
        gc.collect()
        taken = [mgr.full(1000, 7.0) for _ in range(8)]  # would take memory that nothing holds
        sequence.eval()
        sequence.eval()
        np.testing.assert_allclose(operation.results[0].read(), want, 2e-4, 1e-4)
        out = mgr.empty(want.shape)
        mgr.sequence().record(function.op(*args, out=out)).eval()
        np.testing.assert_allclose(out.read(), want, 2e-4, 1e-4)
        into = mgr.empty(want.shape)
        assert function(*args, out=into) is into
        np.testing.assert_array_equal(into.read(), out.read())
        del taken
    means, sums = ops.average.op(t, 1, mgr.tensor_t(weights), True).results
    assert means.shape == sums.shape == (4, 6)


@examples(25)
@given(data=st.data())
def test_products(data):
    dtype = data.draw(st.sampled_from(["int32", "complex64", "float32"]))
    a, b = (np.random.default_rng(seed).integers(-9, 9, data.draw(SHAPES)).astype(dtype) for seed in (1, 2))
    if dtype == "complex64":
        a = a + a[::-1] * np.complex64(1j)
    np.testing.assert_array_equal(ops.kron(a, b), np.kron(a, b))
    other = np.resize(b, a.shape)
    found = ops.vdot(a, other)
    assert found.dtype == a.dtype and found == np.vdot(a, other)
    np.testing.assert_array_equal(ops.vdot(a[::2], other[::2]), np.vdot(a[::2], other[::2]))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, -2.5, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_norms(order, kind):
    x = numbers((7, 300))
    if kind == "complex64":
        x = x + np.complex64(1j) * x[::-1]
    x[2, :5] = 0 if order >= 0 else 1
    for axis in (0, 1, None):
        want = np.linalg.norm(x.astype(np.complex128).ravel() if axis is None else x, order, axis)
        found = ops.vector_norm(x, order, axis)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, 5e-4 if order not in (0, 1, 2, np.inf) else 1e-5)


def test_norm_is_that_of_vectors_or_of_matrices(mgr):
    x = numbers((4, 5, 6))
    for order, axis in (
        (None, None),
        (None, (0, 2)),
        (None, 1),
        (1, (0, 2)),
        ("fro", (2, 1)),
        (3, 1),
        (-np.inf, -1),
    ):
        found = ops.norm(mgr.tensor_t(x), order, axis, keepdims=True).read()
        np.testing.assert_allclose(found, np.linalg.norm(x, order, axis, True), 1e-5)
    np.testing.assert_allclose(ops.norm(np.diag([3, 1]).astype(np.float32), 1), 3)
    out = mgr.zeros((4, 6))
    mgr.sequence().record(ops.norm.bind(mgr.tensor_t(x), None, 1, out=out)).eval()
    np.testing.assert_allclose(out.read(), np.linalg.norm(x, axis=1), 1e-5)


@pytest.mark.sampled
@pytest.mark.parametrize("order", ["fro", 1, -1, np.inf, -np.inf])
def test_norms_of_matrices(mgr, order):
    x = numbers((4, 5, 6))
    for axis, keep in spread([*itertools.product(((-2, -1), (0, 2), (2, 0)), (False, True))], 3):
        want = np.linalg.norm(x, order, axis, keep)
        found = ops.matrix_norm(mgr.tensor_t(x), order, axis, keepdims=keep).read()
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, 1e-5)


def test_means_of_complex_numbers(mgr):
    x = numbers((6, 50)) + np.complex64(1j) * numbers((6, 50), 1)
    for axis in (None, 0, 1):
        found = ops.mean(mgr.tensor_t(x), axis).read()
        assert found.dtype == np.complex64
        np.testing.assert_allclose(found, x.mean(axis), 1e-5, 1e-6)


@examples(30)
@given(data=st.data())
def test_parts(data):
    x = numbers(data.draw(SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    parts = data.draw(st.one_of(st.integers(1, 8), st.lists(st.integers(-7, 9), max_size=4)))
    for given_ in (x, kp.manager().tensor_t(x)):
        for ours, theirs in (
            (ops.array_split, np.array_split),
            (ops.split, np.split),
            (lambda x, n, axis: ops.hsplit(x, n), lambda x, n, axis: np.hsplit(x, n)),
            (lambda x, n, axis: ops.vsplit(x, n), lambda x, n, axis: np.vsplit(x, n)),
        ):
            try:
                want = theirs(x, parts, axis)
            except ValueError:
                with pytest.raises(kp.InvalidArgumentError):
                    ours(given_, parts, axis)
                continue
            found = ours(given_, parts, axis)
            assert len(found) == len(want)
            for one, other in zip(found, want, strict=True):
                np.testing.assert_array_equal(read(one), other)


def test_indices_that_are_refused(mgr):
    x = numbers((4, 5))
    t = mgr.tensor_t(x)
    indices = np.array([[0, -1], [2, -4]], np.int32)
    np.testing.assert_array_equal(ops.take(x, indices, 0), np.take(x, indices, 0))
    np.testing.assert_array_equal(ops.take(t, mgr.tensor_t(indices), 1).read(), np.take(x, indices, 1))
    np.testing.assert_array_equal(ops.take(x, indices), np.take(x, indices))
    np.testing.assert_array_equal(
        ops.take(x, indices + 99, mode="clip"), np.take(x, indices + 99, mode="clip")
    )
    assert ops.take(x, indices[:0], 0).shape == (0, 2, 5)
    want = x.copy()
    np.put(want, indices, [9, 8])
    np.testing.assert_array_equal(ops.put(x, indices, np.float32([9, 8])), want)
    order = np.argsort(x, 1).astype(np.int32)
    np.testing.assert_array_equal(ops.take_along_axis(x, order - 5, 1), np.sort(x, 1))
    np.testing.assert_array_equal(ops.put_along_axis(x, order - 5, x, 1).shape, x.shape)
    ones = np.ones((2, 5), np.float32)
    np.testing.assert_array_equal(ops.scatter_add(x, np.int32([-1, 0]), ones, 0)[[0, 3]], x[[0, 3]] + 1)
    value = np.float32([1])
    for bad in (4, -5):
        index = np.array([0, bad], np.int32)
        for given_ in (index, mgr.tensor_t(index)):
            with pytest.raises(
                IndexError, match=f"take: index {bad} is out of bounds for axis 0 of x with 4"
            ):
                ops.take(t, given_, 0)
            with pytest.raises(kp.OutOfRangeError, match="scatter_add"):
                ops.scatter_add(t, given_, mgr.tensor_t(ones), 0)
        with pytest.raises(kp.OutOfRangeError, match="take_along_axis"):
            ops.take_along_axis(x, np.full((2, 5), bad, np.int32), 0)
        with pytest.raises(kp.OutOfRangeError, match="put_along_axis"):
            ops.put_along_axis(x, np.full((2, 5), bad, np.int32), value, 0)
    with pytest.raises(kp.OutOfRangeError, match="put: index 20 is out of bounds for x with 20 elements"):
        ops.put(t, np.int32([20]), value)
    for refused in (ops.take.op, ops.take.meta):
        with pytest.raises(kp.InvalidArgumentError, match="cannot raise errors"):
            refused(t, mgr.tensor_t(indices), 0)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_long_ints_are_added(mgr, needs, dtype):
    needs(mgr, "shaderInt64")
    rng = np.random.default_rng(0)
    x, values = (rng.integers(-(2**63), 2**63 - 1, n).astype(dtype) for n in (50, 4000))
    places = rng.integers(0, 50, 4000)
    want = x.copy()
    np.add.at(want, places, values)
    np.testing.assert_array_equal(ops.scatter_add(x, places, values, 0), want)
    small = rng.integers(-9 if dtype == "int64" else 0, 9, 4000).astype(
        "int8" if dtype == "int64" else "uint8"
    )
    want = x.copy()
    np.add.at(want, places, small)
    np.testing.assert_array_equal(ops.scatter_add(x, places, small, 0, "clip"), want)


def test_all_axes_sorted(mgr):
    x = numbers((6, 7))
    t = mgr.tensor_t(x)
    np.testing.assert_array_equal(ops.sort(x, None), np.sort(x, None))
    np.testing.assert_array_equal(ops.argsort(x, axis=None), np.argsort(x, None, "stable"))
    np.testing.assert_array_equal(
        ops.sort(t[:, 1:3], None, descending=True).read(), np.sort(x[:, 1:3], None)[::-1]
    )
    assert ops.sort.meta(kp.TensorSpec((3, 4)), None) == kp.TensorSpec(12)
    out = mgr.zeros(42)
    for seed in range(4):  # one prepared call after the other
        t.write(numbers((6, 7), seed))
        assert ops.sort(t, None, out=out) is out
        np.testing.assert_array_equal(out.read(), np.sort(numbers((6, 7), seed), None))
    operation = ops.argsort.op(t, None)
    mgr.sequence().record(operation).eval()
    np.testing.assert_array_equal(operation.results[0].read(), np.argsort(t.read(), None, "stable"))


def test_parts_that_a_condition_selects(mgr):
    x = numbers((4, 5))
    t = mgr.tensor_t(x)
    for condition, axis in (([1, 0, 1], 0), ([True, False], 1), (np.float32([0, 2, 0, 1, 1]), -1), ([], 0)):
        want = np.compress(condition, x, axis)
        np.testing.assert_array_equal(ops.compress(condition, x, axis), want)
        np.testing.assert_array_equal(ops.compress(np.asarray(condition), t, axis).read(), want)
    part = t[:, 1:4]
    np.testing.assert_array_equal(ops.compress([0, 1, 1], part, 1).read(), x[:, 2:4])


def test_errors():
    x = numbers((4, 5))
    wrong = kp.errors.InvalidArgumentError
    for match, call in (
        ("condition has the shape", lambda: ops.compress([1] * 6, x, 1)),
        ("axis is 2", lambda: ops.compress([1], x, 2)),
        ("no 3 equal parts", lambda: ops.split(x, 3)),
        ("0 parts", lambda: ops.array_split(x, 0)),
        ("1180591620717411303424 parts; give 1 to", lambda: ops.array_split(x, 2**70)),
        ("axis is 5", lambda: ops.array_split(x, 2, 5)),
        ("two axes or more", lambda: ops.vsplit(x[0], 2)),
        ("ord is 2", lambda: ops.matrix_norm(x, 2)),
        ("ord is 'nuc'", lambda: ops.matrix_norm(x, "nuc")),
        ("axis is 3", lambda: ops.matrix_norm(x, axis=(0, 3))),
        ("two axes that differ", lambda: ops.matrix_norm(x, axis=(0, -2))),
        ("ord is nan", lambda: ops.vector_norm(x, np.nan)),
        ("ord is 2", lambda: ops.norm(x, 2)),
        ("vectors of one", lambda: ops.vdot(x, x[0])),
        ("mode is 'all'", lambda: ops.take(x, np.int32([0]), 0, "all")),
        ("give one axis", lambda: ops.take(x, np.int32([0]), (0, 1))),
        ("give one axis", lambda: ops.take(x, np.int32([0]), [])),
    ):
        with pytest.raises(wrong, match=match):
            call()
    with pytest.raises(kp.errors.ArgumentTypeError, match="mode"):
        ops.take(x, np.int32([0]), 0, np.zeros(0))
    for call in (lambda: ops.split(x, "ab"), lambda: ops.split(x, None), lambda: ops.matrix_norm(x, axis=1)):
        with pytest.raises(kp.errors.ArgumentTypeError):
            call()


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("histogram", "bin_counts"), ("bincount", "int_counts"), ("compress", "selected"),
        ("extract", "selected"), ("nonzero", "nonzero_places"), ("flatnonzero", "nonzero_places"),
        ("unique", "run_starts"),
    ],
)  # fmt: skip
def test_functions_that_are_only_called_name_what_is_recorded(mgr, name, instead):
    function = getattr(kp.ops, name)
    for verb in ("bind", "submit", "specialize", "preload"):
        with pytest.raises(
            AttributeError, match=rf"kp.ops.{name} .*{verb}.* use .*kp.ops.{instead}"
        ) as raised:
            getattr(function, verb)
        assert raised.value.name == verb and not hasattr(function, verb)
    assert hasattr(getattr(kp.ops, instead), "bind")
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        function.nonsense()
    assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
    with pytest.raises(kp.ArgumentTypeError, match=f"^{name}: missing a required argument"):
        function()


def test_every_function_can_be_recorded_or_says_what_can(mgr):
    builders = {"elementwise", "reduction", "scan"}
    for name in set(kp.ops.__all__) - builders:
        function = getattr(kp.ops, name)
        if not hasattr(function, "bind"):
            with pytest.raises(AttributeError, match="To record, use "):
                function.bind()
    with pytest.raises(kp.ArgumentTypeError, match="OpHostCall"):
        mgr.sequence().record(print)
