"""Results into parts of tensors that are not dense: ``t[::2]``, ``t[:, 1]``, ``t[::-1]``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from kompute_py.errors import ArgumentTypeError, InvalidArgumentError
from tests.support.operations import Like
from tests.support.sampling import examples

from .operations import softmax

pytestmark = pytest.mark.each_driver

DTYPES = ["float32", "float16", "int32", "uint8", "int16", "bool", "complex64", "float64", "int64"]


@kp.CustomOp.register
class same(Like):
    """A copy of `x`."""

    signature = "same(Tensor x) -> Tensor"

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.yield_results("x_load(i)")


@kp.CustomOp.register
class halves(kp.CustomOp):
    """The first and the second of each two elements."""

    signature = "halves(Tensor x) -> (Tensor even, Tensor odd)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        for _ in range(2):
            ksel.return_new_tensor(x.size // 2, x.dtype)

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.yield_results("x_load(2 * i)", "x_load(2 * i + 1)")


@kp.CustomOp.register
class doubled(kp.CustomOp):
    """`x` gets twice its elements."""

    signature = "doubled(Tensor(a!) x) -> Tensor(a!)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        ksel.return_tensor(ksel.arg_tensor("x", inplace_tied=True))

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.yield_results("2 * x_load(i)")


def _data(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


def _copies(
    function: kp.Operation, manager: kp.Manager, view: kp.StridedView, x: kp.Tensor, way: str
) -> None:
    """The function of x into the part, in one of the ways to run it."""
    if way == "call":
        assert function(x, out=view) is view
    elif way == "record":
        operation = function.op(x, out=view)
        assert operation.results == (view,)
        manager.sequence().record(operation).eval()
    else:
        function.submit(x, out=view).wait()


@examples(60)
@given(st.data())
def test_any_part_of_any_tensor(mgr: kp.Manager, data: st.DataObject) -> None:
    """Elements beside the part stay as they are; also in views that begin anywhere."""
    dtype = data.draw(st.sampled_from(DTYPES))
    if dtype in ("float64", "int64") and "shaderInt64" not in mgr.enabled_features:
        dtype = "int8"
    whole = _data(data.draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=7)), dtype)
    begin = data.draw(st.integers(0, whole.shape[0] - 1))
    outer, inner = whole[begin:], mgr.tensor_t(whole)[begin:]
    key = data.draw(hnp.basic_indices(outer.shape, allow_newaxis=True, allow_ellipsis=True))
    view = inner[key]
    x = _data(view.shape, dtype)[..., ::-1].copy() if view.shape else _data((), dtype)
    expected = whole.copy()
    expected[begin:][key] = x
    way = data.draw(st.sampled_from(["call", "record", "submit"]))
    for _ in range(2):  # a prepared call, too
        _copies(same, mgr, view, mgr.tensor_t(x), way)
        np.testing.assert_array_equal(inner.base.read() if inner.base is not None else inner.read(), expected)
        np.testing.assert_array_equal(view.read(), x)


@pytest.mark.parametrize("way", ["call", "record", "submit"])
@pytest.mark.parametrize(
    "name, key",
    [("exp", np.s_[::2]), ("cumsum", np.s_[::-1]), ("sort", np.s_[1::3]), ("flip", np.s_[90:3:-2])],
)
def test_operations_of_the_library(mgr: kp.Manager, name: str, key: slice, way: str) -> None:
    whole = np.random.default_rng(0).random(100, dtype=np.float32)
    t = mgr.tensor_t(whole)
    x = np.random.default_rng(1).random(whole[key].shape, dtype=np.float32)
    _copies(getattr(kp.ops, name), mgr, t[key], mgr.tensor_t(x), way)
    whole[key] = getattr(np, name)(x)
    np.testing.assert_allclose(t.read(), whole, rtol=1e-5)


def test_reductions_and_arrays_as_arguments(mgr: kp.Manager) -> None:
    x = np.random.default_rng(0).random((5, 7), dtype=np.float32)
    t = mgr.zeros((5, 3))
    kp.ops.sum(x, axis=1, out=t[:, 1])
    kp.ops.max(mgr.tensor_t(x), axis=1, out=t[::-1, 2])
    expected = np.stack([np.zeros(5), x.sum(1), x.max(1)[::-1]], 1)
    np.testing.assert_allclose(t.read(), expected, rtol=1e-6)


@pytest.mark.parametrize("key", [np.s_[::-1], np.s_[1::2], np.s_[:, ::-1], np.s_[:, 1:9:3]])
def test_arguments_that_share_memory_with_the_part(mgr: kp.Manager, key: object) -> None:
    """As NumPy: results do not change what is read."""
    whole = np.random.default_rng(0).random((10, 10), dtype=np.float32)
    for way in ("call", "record", "submit"):
        t = mgr.tensor_t(whole)
        part = t[key]
        read = t[: part.shape[0], : part.shape[1]]
        expected = whole.copy()
        expected[key] = softmax_of(whole[: part.shape[0], : part.shape[1]])
        if way == "call":
            softmax(read, 0, out=part)
        elif way == "record":
            dense = read if isinstance(read, kp.Tensor) else mgr.tensor_t(read)
            mgr.sequence().record(softmax.op(dense, 0, out=part)).eval()
        else:
            softmax.submit(mgr.tensor_t(read), 0, out=part).wait()
        np.testing.assert_allclose(t.read(), expected, rtol=1e-5)


def softmax_of(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def test_two_results_into_parts_of_one_tensor(mgr: kp.Manager) -> None:
    x = np.arange(20, dtype=np.float32)
    t = mgr.zeros(20)
    even, _ = halves(mgr.tensor_t(x), out=(t[1::2], t[::2]))
    np.testing.assert_array_equal(t.read(), x.reshape(10, 2)[:, ::-1].ravel())
    np.testing.assert_array_equal(even.read(), x[::2])
    halves(mgr.tensor_t(x), out=(t[::2], t[1:20:2]))  # prepared for other parts
    np.testing.assert_array_equal(t.read(), x)
    dense = mgr.zeros(10)
    halves(mgr.tensor_t(x), out=(dense, t[::-2]))
    np.testing.assert_array_equal(dense.read(), x[::2])
    with pytest.raises(InvalidArgumentError, match="two of the tensors that it writes share memory"):
        halves(t, out=(t[::2], t[10:]))
    with pytest.raises(InvalidArgumentError, match="two of the tensors that it writes share memory"):
        halves(t, out=(t[::2], t[18::-2]))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32"])
@pytest.mark.parametrize("key", [np.s_[1::2], np.s_[::-1], np.s_[9:2:-3]])
def test_parts_of_arguments_that_are_written(mgr: kp.Manager, dtype: str, key: slice) -> None:
    whole = _data((11,), dtype)
    t = mgr.tensor_t(whole)
    expected = whole.copy()
    expected[key] *= 2
    assert doubled(t[key]).shape == expected[key].shape
    np.testing.assert_array_equal(t.read(), expected)
    mgr.sequence().record(doubled.op(t[key])).eval()
    expected[key] *= 2
    np.testing.assert_array_equal(t.read(), expected)


def test_parts_of_memory_that_shaders_cannot_bind(mgr: kp.Manager) -> None:
    """Views that begin within a word, and memory that ends in one."""
    whole = np.arange(23, dtype=np.uint8)
    t = mgr.tensor_t(whole)
    for begin in range(6):
        for step in (2, 3, -1, -4):
            x = _data(whole[begin:][::step].shape, "uint8")
            expected = t.read()
            expected[begin:][::step] = x
            same(mgr.tensor_t(x), out=t[begin:][::step])
            np.testing.assert_array_equal(t.read(), expected)


@kp.CustomOp.register
class swapped(kp.CustomOp):
    """The elements of `x` and `y` change places."""

    signature = "swapped(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))"

    def select(self, ksel: kp.FunctionSelection) -> None:
        for name in ("x", "y"):
            ksel.return_tensor(ksel.arg_tensor(name, inplace_tied=True))

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.grid(kb.result().size)
        kb.emit("uint i = gl_GlobalInvocationID.x; if (i >= x_size) return;")
        kb.emit("uint t = x_load(i); x_store(i, y_load(i)); y_store(i, t);")


@pytest.mark.parametrize("length", [21, 24])
def test_parts_between_the_elements_of_each_other(mgr: kp.Manager, length: int) -> None:
    for begin in range(4):
        whole = np.arange(length, dtype=np.uint8)
        t = mgr.tensor_t(whole)
        count = len(whole[begin + 1 :: 2])
        x, y = t[begin:][::2][:count], t[begin:][1::2]
        swapped(x, y)
        mgr.sequence().record(swapped.op(y, x)).eval()
        swapped(x, y)
        whole[begin:][::2][:count] += 1
        whole[begin:][1::2] -= 1
        np.testing.assert_array_equal(t.read(), whole)


def test_many_axes_and_many_rows(mgr: kp.Manager) -> None:
    shape = (2,) * 16
    whole = np.zeros(shape, np.float32)
    t = mgr.zeros(shape)
    key = tuple(slice(None, None, -1 if axis % 2 else None) for axis in range(16))
    x = np.arange(2**16, dtype=np.float32).reshape(shape)
    same(mgr.tensor_t(x), out=t[key])
    whole[key] = x
    np.testing.assert_array_equal(t.read(), whole)


def test_empty_parts_and_single_elements(mgr: kp.Manager) -> None:
    t = mgr.zeros((4, 3))
    kp.ops.exp(mgr.zeros((0, 3)), out=t[3:1:2])
    kp.ops.exp(mgr.zeros((0,)), out=t[:0, 1])
    kp.ops.exp(mgr.zeros((1, 1)), out=t[2::5, 1::5])
    expected = np.zeros((4, 3))
    expected[2, 1] = 1
    np.testing.assert_array_equal(t.read(), expected)


def test_the_part_must_fit(mgr: kp.Manager) -> None:
    t = mgr.zeros(10)
    with pytest.raises(InvalidArgumentError, match=r"has shape \(4,\).*out has shape \(5,\)"):
        kp.ops.exp(mgr.zeros(4), out=t[::2])
    with pytest.raises(InvalidArgumentError, match="dtype"):
        kp.ops.exp(mgr.zeros(5), out=t.view(np.int32)[::2])
    with pytest.raises(ArgumentTypeError, match="give a Tensor, a part of one, an Image or an array"):
        kp.ops.exp(mgr.zeros(5), out=object())
    with pytest.raises(ArgumentTypeError, match=r"what is recorded works on Tensors, and .+ is an ndarray"):
        softmax.op(np.zeros(5, np.float32), 0, out=mgr.zeros(5))
    part = t[::2]
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        kp.ops.exp(mgr.zeros(5), out=part)


def test_donated_memory_is_not_that_of_a_part(mgr: kp.Manager) -> None:
    x = mgr.zeros((4, 4))
    with pytest.raises(InvalidArgumentError, match="shares memory with a result"):
        kp.ops.exp(x, out=x[:, ::-1], donate="x")
    kp.ops.exp(mgr.zeros(4), out=x[:, 1], donate="x")
    assert x.read()[:, 1].tolist() == [1, 1, 1, 1]


def test_random_numbers(mgr: kp.Manager) -> None:
    t = mgr.zeros((8, 3))
    generator = kp.random.Generator(3)
    assert generator.normal(out=t[:, 1]).shape == (8,)
    again = kp.random.Generator(3).normal(out=mgr.zeros(8)).read()
    np.testing.assert_array_equal(t.read(), np.stack([np.zeros(8), again, np.zeros(8)], 1))
    mgr.sequence().record(generator.uniform_op(t[::2, 0], 5, 6)).eval()
    assert ((t.read()[::2, 0] >= 5) & (t.read()[::2, 0] < 6)).all() and not t.read()[1::2, 0].any()
    order = mgr.tensor_t(np.arange(10, dtype=np.int32))
    kp.random.Generator(1).shuffle(order[::2])
    assert sorted(order.read().tolist()) == list(range(10)) and order.read()[1::2].tolist() == [1, 3, 5, 7, 9]


def test_answers_of_python(mgr: kp.Manager) -> None:
    @kp.CustomOp.register
    class answered(kp.CustomOp):
        signature = "answered_@UNIQUE@(Tensor x) -> Tensor"

        def eager_execute(self, x):
            return np.asarray(x) + 1

    t = mgr.zeros(6)
    answered(mgr.zeros(3), out=t[1::2])
    assert t.tolist() == [0, 1, 0, 1, 0, 1]


READS = [np.s_[::2], np.s_[:, 3], np.s_[::-1, 1::3], np.s_[2:2, ::2], np.s_[4, ::-2], np.s_[1:3, 1:8]]


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "complex64", "float64"])
def test_recordings_read_parts(mgr, needs, dtype):
    if dtype == "float64":
        needs(mgr, "shaderFloat64")
    array = np.arange(63).reshape(7, 9).astype(dtype)
    t = mgr.tensor_t(array)
    for key in READS:
        one, sorted_ = same.op(t[key]), kp.ops.flip.op(t[key], 0)
        joined = kp.ops.concatenate.op([t[key], t[key]])
        sequence = mgr.sequence().record(one, sorted_, joined)
        for more in (0, 3):
            t.write(array + np.array(more, dtype))
            sequence.eval()
            expected = (array + np.array(more, dtype))[key]
            np.testing.assert_array_equal(one.results[0].read(), expected)
            np.testing.assert_array_equal(sorted_.results[0].read(), expected[::-1])
            np.testing.assert_array_equal(joined.results[0].read(), np.concatenate([expected] * 2))
        out = mgr.empty(expected.shape, dtype)
        same.submit(t[key], out=out).wait()
        np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("out", [np.s_[1, :4], np.s_[0:4, 0], np.s_[1:5, 0], np.s_[6:2:-1, 8]])
def test_a_recording_reads_a_part_before_it_writes_there(mgr, out):
    array = np.random.default_rng(0).permutation(63).reshape(7, 9).astype(np.float32)
    t = mgr.tensor_t(array)
    for op, function in ((kp.ops.sort, np.sort), (kp.ops.flip, np.flip), (same, np.copy)):
        t.write(array)
        mgr.sequence().record(op.op(t[0:4, 0], out=t[out])).eval()
        expected = array.copy()
        expected[out] = function(array[0:4, 0])
        np.testing.assert_array_equal(t.read(), expected)
