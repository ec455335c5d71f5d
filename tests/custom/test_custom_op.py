"""Custom operations: calls, recordings, results, caches, and what is refused."""

from __future__ import annotations

import contextvars
import gc
import inspect
import pydoc
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.operations import Like
from tests.support.sampling import examples
from tests.support.threads import on_threads

from .operations import bilateral, compact, softmax

pytestmark = pytest.mark.usefixtures("current")


def softmax_of(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def compacted(x, keep):
    values = np.zeros_like(x)
    values[: keep.sum()] = x[keep]
    return values


def bilateral_of(x, radius, space, value):
    padded = np.pad(x.astype(np.float64), radius, mode="edge")
    total, weights = np.zeros(x.shape), np.zeros(x.shape)
    for dy in range(2 * radius + 1):
        for dx in range(2 * radius + 1):
            v = padded[dy : dy + x.shape[0], dx : dx + x.shape[1]]
            near = np.exp(-((dx - radius) ** 2 + (dy - radius) ** 2) / (2 * space**2))
            w = near * np.exp(-((v - x) ** 2) / (2 * value**2))
            total, weights = total + w * v, weights + w
    return total / weights


# -- three operations against NumPy --------------------------------------------------------------------------


@pytest.mark.capability(
    "W26", "operations that write their kernels", "kp.CustomOp", "guides/generated_operations"
)
@examples(25)
@given(data=st.data())
def test_softmax(data):
    x = data.draw(
        hnp.arrays(
            np.float32,
            hnp.array_shapes(min_dims=1, max_dims=4, max_side=9),
            elements=st.floats(-20, 20, width=32),
        )
    )
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    np.testing.assert_allclose(softmax(x, axis), softmax_of(x, axis), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 5000])
def test_compaction(mgr, n):
    rng = np.random.default_rng(n)
    x, keep = rng.integers(0, 1000, n).astype(np.int32), rng.random(n) < 0.3
    values, count = compact(x, keep)
    assert count == keep.sum() and count.shape == () and count.dtype == np.uint32
    np.testing.assert_array_equal(values, compacted(x, keep))
    values, count = compact(mgr.tensor_t(x), mgr.tensor_t(keep))
    assert isinstance(values, kp.Tensor) and int(count) == keep.sum()
    np.testing.assert_array_equal(values.read(), compacted(x, keep))


@pytest.mark.parametrize(("shape", "radius"), [((1, 1), 2), ((17, 9), 1), ((8, 40), 3)])
def test_bilateral(shape, radius):
    x = np.random.default_rng(3).random(shape, np.float32)
    found = bilateral(x, radius, sigma_space=1.5, sigma_value=0.3)
    np.testing.assert_allclose(found, bilateral_of(x, radius, 1.5, 0.3), rtol=1e-4, atol=1e-6)


# -- arguments and results -----------------------------------------------------------------------------------


@pytest.mark.capability(
    "W39", "declared results", "KernelSelection.return_new_tensor", "guides/generated_operations"
)
def test_results_are_where_the_arguments_are(mgr):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = softmax_of(x, 1)
    assert type(softmax(x)) is np.ndarray
    result = softmax(mgr.tensor_t(x, memory_type="host"))
    assert type(result) is kp.Tensor and result.memory_type() is kp.MemoryTypes.host
    np.testing.assert_allclose(result.read(), expected, rtol=1e-6)
    again = softmax(mgr.tensor_t(x))
    assert again is not softmax(mgr.tensor_t(x))
    out = np.empty_like(x)
    assert softmax(x, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    target = mgr.zeros((2, 3))
    assert softmax(x, out=target) is target and softmax(mgr.tensor_t(x), 0, out=out) is out
    np.testing.assert_allclose(target.read(), expected, rtol=1e-6)
    np.testing.assert_allclose(out, softmax_of(x, 0), rtol=1e-6)


def test_the_same_call_again_takes_new_contents(mgr):
    softmax.cache_clear()
    x, out = np.zeros(5, np.float32), np.empty(5, np.float32)
    t, target = mgr.tensor_t(x), mgr.zeros(5)
    for step in range(4):
        x[:] = np.arange(5) * step
        np.testing.assert_allclose(softmax(x, out=out), softmax_of(x, 0), rtol=1e-6)
        kept = softmax(x)
        t.write(x)
        softmax(t, out=target)
        np.testing.assert_allclose(target.read(), softmax_of(x, 0), rtol=1e-6)
        np.testing.assert_allclose(kept, softmax_of(x, 0), rtol=1e-6)
    assert softmax.cache_info().prepared == 3


def test_calls_that_are_repeated_exactly(mgr):
    rng = np.random.default_rng(8)
    x, y, out = mgr.zeros((3, 4)), mgr.zeros((3, 4)), mgr.zeros((3, 4))
    for _ in range(4):
        x.write(rng.random((3, 4)))
        y.write(rng.random((3, 4)))
        for axis in (0, 1, -1):
            assert softmax(x, axis, out=out) is out
            np.testing.assert_allclose(out.read(), softmax_of(x.read(), axis), rtol=1e-6)
            assert softmax(axis=axis, x=y, out=out) is out
            np.testing.assert_allclose(out.read(), softmax_of(y.read(), axis), rtol=1e-6)
    values, keep = mgr.tensor_t(np.arange(9, dtype=np.int32)), mgr.tensor_t(np.arange(9) % 2 == 0)
    outs = (mgr.zeros(9, np.int32), mgr.zeros((), np.uint32))
    for _ in range(4):
        assert compact(values, keep, out=outs) == outs
        assert int(outs[1]) == 5 and outs[0].read()[:5].tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(kp.ArgumentTypeError, match="axis is a bool"):
        softmax(x, True, out=out)
    x.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        softmax(x, 0, out=out)
    repeated = len(softmax._prepared.current.table)
    del y
    assert len(softmax._prepared.current.table) < repeated


@pytest.mark.parametrize("key", [np.s_[1:10], np.s_[::3], np.s_[::-1], np.s_[16:32], np.s_[5:5]])
def test_views(mgr, key):
    x = np.random.default_rng(0).random(64, np.float32)
    t = mgr.tensor_t(x)
    expected = softmax_of(x[key], 0) if x[key].size else x[key]
    np.testing.assert_allclose(softmax(t[key]).read(), expected, rtol=1e-6)
    t.write(x[::-1].copy())
    expected = softmax_of(x[::-1][key], 0) if x[key].size else x[key]
    np.testing.assert_allclose(softmax(t[key]).read(), expected, rtol=1e-6)


def test_a_result_into_a_part_of_a_tensor(mgr):
    target, x = mgr.zeros(64), mgr.tensor_t(np.arange(9, dtype=np.float32))
    softmax(x, out=target[3:12])
    expected = np.zeros(64, np.float32)
    expected[3:12] = softmax_of(np.arange(9, dtype=np.float32), 0)
    np.testing.assert_allclose(target.read(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    [
        "float32", "float64", "float16", "int32", "uint32", "int64", "uint64", "int16", "uint16", "int8",
        "uint8", "bool", "complex64",
    ],
)  # fmt: skip
def test_all_dtypes(mgr, needs, dtype):
    feature = {"float64": "shaderFloat64", "int64": "shaderInt64", "uint64": "shaderInt64"}.get(dtype)
    if feature is not None:
        needs(mgr, feature)

    @kp.CustomOp.register
    class same(Like):
        signature = "same(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i)")

    x = (np.random.default_rng(1).integers(-100, 100, (7, 9)) > 3).astype(dtype)
    if dtype not in ("bool",):
        x = np.random.default_rng(1).integers(0, 100, (7, 9)).astype(dtype)
    try:
        found = same(x)
    except kp.UnimplementedError as error:
        pytest.skip(f"the device has no {dtype}: {error}")
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(same(mgr.tensor_t(x)).read(), x)


@pytest.mark.capability(
    "W35-W38 W45",
    "lists, optional tensors, numbers and attributes as arguments",
    "KernelSelection.arg_tensor_list, KernelSelection.attr_int",
    "reference/operations",
)
def test_lists_optional_arguments_and_constants(mgr):
    @kp.CustomOp.register
    class combine(kp.CustomOp):
        signature = "combine(Tensor[] terms, Tensor? weight, *, float scale=1.0, int[] taps=[1]) -> Tensor"

        def select(self, ksel):
            terms = ksel.arg_tensor_list("terms")
            weight = ksel.arg_optional_tensor("weight")
            ksel.arg_float("scale")
            ksel.attr_list_int("taps")
            assert len(terms) == terms.ir_arity and [t.name for t in terms.items][:1] == ["terms0"]
            if weight is not None:
                weight.specialize_all_dims()
            ksel.return_new_tensor(terms[0].shape, "float32")

        def generate(self, ksel, kb):
            terms = " + ".join(f"{t}_load(i)" for t in kb.arg_value("terms"))
            given = any(d.name == "weight" for d in ksel.get_provided_arg_descs())
            weight = f"weight_load(i % {kb.arg_value('weight').size})" if given else "1.0"
            assert ksel.attribute("terms") is None and ksel.attribute("others", 3) == 3
            kb.yield_results(f"scale * {sum(ksel.attribute('taps'))} * {weight} * ({terms})")

    a, b = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    np.testing.assert_array_equal(combine([a, b]), a + b)
    np.testing.assert_array_equal(combine([a, b, a], scale=2.0, taps=[1, 2]), 6 * (2 * a + b))
    w = np.array([1, 0], np.float32)
    np.testing.assert_array_equal(combine([a], w), a * np.tile(w, 3))
    found = combine((mgr.tensor_t(a), b), w, scale=-1)
    np.testing.assert_array_equal(found.read(), -np.tile(w, 3) * (a + b))
    with pytest.raises(kp.ArgumentTypeError, match=r"terms is an? .*; give a list"):
        combine(a)
    with pytest.raises(kp.ArgumentTypeError, match=r"taps\[1\] is a float; give an int"):
        combine([a], taps=[1, 2.5])


@pytest.mark.capability("W34", "operations in place", "KernelSelection.arg_tensor", "reference/operations")
def test_arguments_that_are_written(mgr):
    @kp.CustomOp.register
    class add_to(kp.CustomOp):
        signature = "add_to(Tensor(a!) total, Tensor x) -> Tensor(a!)"

        def select(self, ksel):
            total = ksel.arg_tensor("total", inplace_tied=True)
            ksel.arg_tensor("x")
            assert ksel.inplace_tied_arg_descs == [total]
            ksel.return_tensor(total)

        def generate(self, ksel, kb):
            kb.grid(kb.arg_value("total").size)
            kb.emit("uint k = gl_GlobalInvocationID.x;")
            kb.emit("if (k < total_size) total_store(k, total_load(k) + x_load(k));")
            kb.yield_results()

    x, total = np.arange(70, dtype=np.float32), mgr.zeros(70)
    for count in range(1, 4):
        assert add_to(total, mgr.tensor_t(x)) is total
        np.testing.assert_array_equal(total.read(), count * x)
    array = np.ones(70, np.float32)
    assert add_to(array, x) is array
    np.testing.assert_array_equal(array, x + 1)
    part = mgr.zeros(100)
    add_to(part[1:71], x)
    np.testing.assert_array_equal(part.read(), np.pad(x, (1, 29)))
    frozen = np.ones(70, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match=r"total.*read-only"):
        add_to(frozen, x)
    apart = mgr.zeros(140)
    add_to(apart[::2], x)
    np.testing.assert_array_equal(apart.read(), np.stack([x, np.zeros(70)], 1).ravel())


def test_many_run_time_values_go_into_a_buffer(mgr):
    names = [f"p{k}" for k in range(40)]

    @kp.CustomOp.register
    class sums(kp.CustomOp):
        signature = f"sums(Tensor x, {', '.join(f'float {n}=0.0' for n in names)}, int last=0) -> Tensor"

        def select(self, ksel):
            x = ksel.arg_tensor("x")
            for name in names:
                ksel.arg_float(name)
            ksel.arg_int("last")
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i) + float(last) + " + " + ".join(names))

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(sums(x, 1.0, 2.0, p39=0.5, last=-3), x + 0.5)
    np.testing.assert_array_equal(sums(x, 1.0, 2.0, p39=0.25, last=4), x + 7.25)


# -- recorded, submitted, donated ----------------------------------------------------------------------------


def test_recorded(mgr):
    rng = np.random.default_rng(5)
    x, keep = mgr.tensor_t(rng.random(1000, np.float32)), mgr.tensor_t(rng.random(1000) < 0.5)
    first = softmax.op(x)
    (y,) = first.results
    second = compact.op(y, keep)
    sequence = mgr.sequence().record(first).record(second).record(kp.OpSyncLocal(second.results))
    for _ in range(3):
        x.write(rng.random(1000, np.float32))
        sequence.eval()
        expected = compacted(softmax_of(x.read(), 0), keep.read())
        np.testing.assert_allclose(second.results[0].data(), expected, rtol=1e-5)
    with pytest.raises(kp.ArgumentTypeError, match="works on Tensors"):
        softmax.op(np.zeros(3, np.float32))
    assert repr(second) == "<kp.OpCustom compact, 3 dispatches>"


def test_donated_arguments_are_gone(mgr):
    x = mgr.tensor_t(np.arange(8, dtype=np.float32))
    expected = softmax_of(x.read(), 0)
    result = softmax(x, donate="x")
    np.testing.assert_allclose(result.read(), expected, rtol=1e-6)
    assert not x.is_init()
    with pytest.raises(kp.errors.DonatedTensorError, match="donated to softmax"):
        softmax(x)
    for donate in (True, 0, [0], ("x",)):
        t = mgr.zeros(3)
        softmax(t, donate=donate)
        assert not t.is_init()
    t = mgr.zeros(3)
    for wrong in ("y", 1, 7):
        with pytest.raises(kp.InvalidArgumentError, match="cannot be donated"):
            softmax(t, donate=wrong)
    assert t.is_init()


# -- what an operation says of itself ------------------------------------------------------------------------


@pytest.mark.capability(
    "W27", "a class registered as a function", "CustomOp.register", "guides/generated_operations"
)
def test_it_looks_like_a_function():
    assert softmax.__name__ == "softmax" and softmax.__doc__.startswith("The softmax of `x`")
    signature = inspect.signature(softmax)
    assert list(signature.parameters) == ["x", "axis", "out", "donate", "wait", "signal"]
    assert signature.parameters["axis"].default == -1
    assert repr(softmax) == "<kp.Function softmax(Tensor x, int axis=-1) -> Tensor>"
    for each in (softmax, kp.ops.sum, kp.ops.sort, kp.ops.unique, kp.ops.isin, kp.ops.take):
        # From Python 3.14 on, help() says how it sees an object of a class with `__get__`, and its name.
        seen = f"(Function|method descriptor {each.__name__})"
        shown = pydoc.plain(pydoc.render_doc(each))
        assert re.match(f"Python Library Documentation: {seen} in module kompute_py", shown)
    with pytest.raises(kp.ArgumentTypeError, match="A formula is a str, not a Function"):
        kp.ops.elementwise(kp.ops.sum)


@pytest.mark.capability(
    "W40",
    "shapes and dtypes of results without running",
    "Function.meta, kp.TensorSpec",
    "guides/generated_operations",
)
def test_meta_needs_no_device(monkeypatch):
    monkeypatch.setattr("kompute_py._functions.function.default_manager", None)
    monkeypatch.setattr("kompute_py._functions.preparing.default_manager", None)
    spec = kp.TensorSpec((3, 4), "float16")
    assert softmax.meta(spec) == spec and softmax.meta(np.zeros((2, 2), np.float32)).shape == (2, 2)
    assert compact.meta(kp.TensorSpec(5), kp.TensorSpec(5, bool)) == (
        kp.TensorSpec(5),
        kp.TensorSpec((), "uint32"),
    )
    with pytest.raises(kp.InvalidArgumentError, match=r"axis is 2"):
        softmax.meta(spec, 2)


@pytest.mark.capability("W31", "calls that Python answers", "CustomOp.eager_execute", "reference/operations")
def test_eager_execution():
    @kp.CustomOp.register
    class double(Like):
        signature = "double(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.yield_results("2 * x_load(i)")

        def eager_execute(self, x):
            return np.full_like(x, 99) if x.size < 4 else NotImplemented

    assert double(np.ones(2, np.float32)).tolist() == [99, 99]
    assert double(np.ones(4, np.float32)).tolist() == [2, 2, 2, 2]
    out = np.empty(3, np.float32)
    assert double(np.ones(3, np.float32), out=out) is out and out.tolist() == [99] * 3


@pytest.mark.capability(
    "W30 W41",
    "kernels generated once for each kind of call",
    "CustomOp.generate, Function.cache_info",
    "reference/operation_rules",
)
def test_specializations_are_counted_and_kept(mgr):
    softmax.cache_clear()
    x = np.zeros((4, 6), np.float32)
    softmax(x)
    assert softmax.cache_info()[:3] == (0, 1, 1)
    softmax(x)  # the prepared call: not even looked up
    softmax(np.zeros((5, 3), np.float32))  # another shape, the same kernels
    assert softmax.cache_info()[:3] == (1, 1, 1)
    softmax(x, 0)
    softmax(x.astype(np.float16))
    assert softmax.cache_info() == (1, 3, 3, 4)
    softmax.cache_clear()
    assert softmax.cache_info()[2:] == (0, 0)


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"in": value}])
def test_masked_arrays_and_memory_specialize_nothing(mgr, wrap):
    """Two that differ in their masks or contents alone would share kernels."""
    tensor = mgr.tensor([1, 2])
    value = np.ma.masked_array([1.0, 2.0], [True, False])

    @kp.CustomOp.register
    class masked(kp.CustomOp):
        signature = "masked(Tensor x) -> Tensor"

        def select(self, ksel):
            x = ksel.arg_tensor("x")
            ksel.specialize(way=wrap(value))
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i)")

    with pytest.raises(kp.ArgumentTypeError, match=r"specialize: .* is a masked array"):
        masked(np.zeros(3, np.float32))
    for memory in (tensor, tensor[1:], tensor[::-1]):
        value = memory
        with pytest.raises(kp.ArgumentTypeError, match=r"specialize: .* is memory"):
            masked(np.zeros(3, np.float32))


@pytest.mark.capability(
    "W42", "axes that specialize a kernel", "KernelSelection.arg_tensor", "reference/operation_rules"
)
def test_specialized_axes_are_constants():
    seen = []

    @kp.CustomOp.register
    class rows(kp.CustomOp):
        signature = "rows(Tensor x) -> Tensor"

        def select(self, ksel):
            x = ksel.arg_tensor("x").specialize_dims(-1)
            ksel.specialize(way="plain")
            ksel.return_new_tensor(x.shape[:1], x.dtype)

        def generate(self, ksel, kb):
            seen.append((ksel.spec_key, kb.arg_value("x").shape[1]))
            n = kb.arg_value("x").shape[1]
            kb.yield_results(" + ".join(f"x_load(x_at(i, {k}))" for k in range(n)))

    for shape in ((2, 3), (5, 3), (2, 4)):
        x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
        np.testing.assert_array_equal(rows(x), x.sum(1))
    assert seen == [
        ("rows(x=float32[?,3])->float32[?]{way='plain'}", 3),
        ("rows(x=float32[?,4])->float32[?]{way='plain'}", 4),
    ]


def test_prepared_calls_keep_no_memory_and_no_manager(mgr):
    x = mgr.zeros(4)
    softmax(x), softmax(mgr.zeros(4), out=mgr.zeros(4))
    mgr.synchronize()
    before = mgr.memory.used
    for _ in range(3):
        out = mgr.zeros(1000)
        for _ in range(3):
            softmax(mgr.zeros(1000)[:4])
            softmax(out, out=out)
    assert mgr.memory.used > before
    del out
    assert mgr.memory.used <= before
    other = kp.Manager(0)
    softmax(other.zeros(4))
    assert len(softmax._prepared.calls) == 2
    del other
    gc.collect()
    assert len(softmax._prepared.calls) == 1
    out = mgr.zeros(4)
    softmax(x, out=out)
    x.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        softmax(x, out=out)


def test_portable_programs_run_without_the_operation(mgr, tmp_path):
    x = np.random.default_rng(2).random(700, np.float32)
    keep = x > 0.5
    specs = kp.TensorSpec(x.shape), kp.TensorSpec(x.shape, bool)
    kp.Program.record(compact, *specs, portable=True).save(tmp_path / "made.kpp")
    program = kp.load_program(tmp_path / "made.kpp").on(mgr)
    assert program.needs == ()
    values, count = program.main(x, keep)
    np.testing.assert_array_equal(values, compacted(x, keep))
    assert int(count) == keep.sum()


def test_threads():
    contexts = [contextvars.copy_context() for _ in range(6)]

    def work(seed):
        x = np.random.default_rng(seed).random((3, 4 + seed), np.float32)
        for _ in range(20):
            np.testing.assert_allclose(softmax(x), softmax_of(x, 1), rtol=1e-5)

    on_threads(lambda number: contexts[number].run(work, number % 3), range(6))


# -- what is refused -----------------------------------------------------------------------------------------


def made(signature="f(Tensor x, int n=1) -> Tensor", select=None, generate=None, **more):
    def default_select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.attr_int("n")
        ksel.return_new_tensor(x.shape, x.dtype)

    def default_generate(self, ksel, kb):
        kb.yield_results("x_load(i)")

    body = {
        "signature": signature,
        "select": select or default_select,
        "generate": generate or default_generate,
    }
    return kp.CustomOp.register(type("f", (kp.CustomOp,), body | more))


X = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: softmax(), kp.ArgumentTypeError, "lacks the argument 'x'"),
        (lambda: softmax(X, 0, 1), kp.ArgumentTypeError, "takes 2 arguments by position; 3"),
        (lambda: softmax(X, axes=1), kp.ArgumentTypeError, "no parameter 'axes': did you mean 'axis'"),
        (lambda: softmax(X, x=X), kp.ArgumentTypeError, "'x' is given twice"),
        (lambda: softmax(X, 1.0), kp.ArgumentTypeError, "axis is a float; give an int"),
        (lambda: softmax(X, True), kp.ArgumentTypeError, "axis is a bool; give an int"),
        (lambda: softmax([[1.0], [1.0, 2.0]]), kp.ArgumentTypeError, "x is not an array of numbers"),
        (lambda: softmax(["1"]), kp.ArgumentTypeError, "x is .'1'., not numbers"),
        (lambda: softmax([np.ma.ones(2)]), kp.ArgumentTypeError, "masked"),
        (lambda: softmax("x"), kp.ArgumentTypeError, "x is a str; give a Tensor, an Image or an array"),
        (lambda: softmax(X.astype("U")), kp.UnimplementedError, "do not take"),
        (
            lambda: softmax(X, out=np.zeros(4, np.float32)),
            kp.InvalidArgumentError,
            r"result has|has shape \(3,\)",
        ),
        (
            lambda: softmax(X, out=np.zeros(3)),
            kp.InvalidArgumentError,
            r"kp.ops.astype\(softmax\(...\), 'float64', out=out\)",
        ),
        (lambda: softmax(X, out=[1, 2]), kp.InvalidArgumentError, "makes 1 results; out gives 2"),
        (lambda: softmax(X, out="x"), kp.ArgumentTypeError, "out is a str"),
    ],
)
def test_wrong_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_tensors_of_two_managers(mgr, make_manager):
    other = make_manager()
    with pytest.raises(kp.InvalidArgumentError, match="two Managers"):
        softmax(mgr.zeros(3), out=other.zeros(3))


@pytest.mark.parametrize(
    ("select", "match"),
    [
        (lambda s, k: None, r"does not declare the argument 'x': ksel.arg_tensor\('x'\)"),
        (lambda s, k: k.arg_tensor("x"), r"does not declare the argument 'n': ksel.attr_int\('n'\)"),
        (lambda s, k: (k.arg_tensor("x"), k.attr_int("n")), "does not declare the result 'result'"),
        (lambda s, k: (k.arg_tensor("x"), k.arg_tensor("x")), "declares the argument 'x' twice"),
        (lambda s, k: k.arg_tensor("y"), "no parameter 'y'"),
        (lambda s, k: k.arg_tensor(5), "has 2 parameters; select asked for number 5"),
        (lambda s, k: k.arg_tensor("n"), "the signature says int n=1, and arg_tensor is for Tensor"),
        (lambda s, k: k.attr_str("n"), "attr_str is for str"),
        (lambda s, k: k.arg_tensor("x", inplace_tied=True), "is not written"),
        (lambda s, k: (k.return_new_tensor(1, "f4"), k.return_new_tensor(1, "f4")), "declares 2 results"),
        (lambda s, k: k.return_tensor(k.arg_tensor("x")), "is declared by return_new_tensor"),
        (lambda s, k: k.arg_tensor("x").specialize_dims(1), "x has 1 axes; specialize_dims was given 1"),
        (lambda s, k: k.return_new_tensor(-1, "f4"), "negative"),
    ],
)
def test_wrong_selections(select, match):
    operation = made(select=select)
    with pytest.raises(kp.KomputeError, match=match):
        operation.meta(X)


def test_results_without_tensors_are_of_the_current_manager(mgr):
    with mgr.current():
        assert [kp.ops.add(1.5, 2.0).item() for _ in range(4)] == [3.5] * 4
        recorded = kp.ops.add.op(1.5, 2.0)
        mgr.sequence().record(recorded).eval()
        assert recorded.results[0].manager is mgr and recorded.results[0].read() == 3.5


@pytest.mark.parametrize(
    ("generate", "match"),
    [
        (lambda s, k, b: None, "generate wrote no kernel"),
        (lambda s, k, b: b.emit("result_store(0, 1.0);"), "dispatch 0 has no grid"),
        (lambda s, k, b: (b.grid(1), b.emit("float y = 1;")), "no kernel writes the result 'result'"),
        (lambda s, k, b: b.yield_results("1", "2"), "has 1 results; yield_results was given 2"),
        (lambda s, k, b: b.arg_value("n"), r"it is an attribute: its value is ksel.attribute\('n'\)"),
        (lambda s, k, b: b.arg_value("z"), "no argument 'z'; it has x, n"),
        (lambda s, k, b: b.result(1), "has 1 results; result was given 1"),
        (lambda s, k, b: b.workgroup(0), "ints from 1"),
        (lambda s, k, b: b.grid("x"), "int or a size"),
        (lambda s, k, b: b.grid(-1), "not negative"),
        (lambda s, k, b: b.scratch("x", 3), "names something else"),
        (lambda s, k, b: b.scratch("a b", 3), "cannot name scratch memory"),
        (lambda s, k, b: b.emit(3), "written as text"),
        (lambda s, k, b: bool(b.result(0).size), "not known when the kernel is generated"),
        (lambda s, k, b: b.result(0).size + 1.5, "combined with ints and sizes"),
        (
            lambda s, k, b: (b.yield_results("x_load(i)"), b.yield_results("x_load(i)")),
            "sets the grid itself",
        ),
    ],
)
def test_wrong_generators(generate, match):
    with pytest.raises(kp.KomputeError, match=match):
        made(generate=generate)(X)


def test_generators_that_do_anything_raise_typed_errors():
    """Random steps of generators: a result, or an error of kompute_py that is no InternalError."""
    choose = random.Random(3)
    anything = [
        None, 0, 1, -1, 2**40, 1.5, float("nan"), True, "", "x", "parts", "n", "result", "a b", "é", b"x",
    ]  # fmt: skip
    anything += [
        "x_load(i)", "}", "float", np.float32, object(), [], ["x"], {}, (1, 2), np.int64(3), np.ones(2),
    ]  # fmt: skip
    steps = ["arg_value", "result", "workgroup", "grid", "groups", "scratch", "emit", "declare", "extension"]
    steps += ["begin_dispatch", "yield_results", "ceil_div", "smallest", "largest", "call", "spirv"]
    outcomes = set()

    def generate(self, ksel, kb):
        known = [*anything, kb.result(0), kb.result(0).size, kb.arg_value("x"), kb.arg_value("x").size]
        for _ in range(choose.randrange(5)):
            step = getattr(kb, choose.choice(steps))
            found = step(*choose.choices(known, k=choose.choice([0, 1, 1, 1, 2, 3])))
            known += [found, found, found]
        if choose.random() < 0.7:
            kb.yield_results("x_load(i)")

    for _ in range(400):
        try:
            made(generate=generate)(X)
            outcomes.add("ran")
        except kp.InternalError:
            raise
        except kp.KomputeError as error:
            outcomes.add(type(error).__name__)
        except TypeError as error:  # Python's own: too many or too few arguments
            assert "positional argument" in str(error), error
    assert {"ran", "ArgumentTypeError", "InvalidArgumentError", "ShaderCompileError"} <= outcomes


@pytest.mark.capability("W32", "one dispatch required", "CustomOp.single_dispatch", "reference/operations")
def test_one_dispatch_can_be_required():
    def generate(self, ksel, kb):
        kb.yield_results("x_load(i)")
        kb.begin_dispatch()

    with pytest.raises(kp.FailedPreconditionError, match="single_dispatch"):
        made(generate=generate, single_dispatch=True)(X)


def test_faults_in_kernels_name_the_generators_lines():
    def generate(self, ksel, kb):
        kb.grid(kb.result(0).size)
        kb.emit("""
            uint k = gl_GlobalInvocationID.x;
            result_store(k, missing);  // this line
        """)

    with pytest.raises(kp.ShaderCompileError, match="missing") as caught:
        made(generate=generate)(X)
    (diagnostic,) = [d for d in caught.value.diagnostics if "missing" in d.message]
    assert diagnostic.file == __file__
    with open(__file__) as lines:
        assert "// this line" in list(lines)[diagnostic.line - 1]


def test_sizes_that_divide_by_zero_are_named():
    def generate(self, ksel, kb):
        kb.grid(100 // kb.arg_value("x").size)
        kb.emit("result_store(0, 1.0);")

    def select(self, ksel):
        ksel.arg_tensor("x")
        ksel.attr_int("n")
        ksel.return_new_tensor(1, "float32")

    with pytest.raises(kp.InvalidArgumentError, match=r"divides by zero: x_size is 0"):
        made(select=select, generate=generate)(np.zeros(0, np.float32))


@pytest.mark.parametrize("given", [3, int, kp.CustomOp, softmax])
def test_only_classes_are_registered(given):
    with pytest.raises(kp.ArgumentTypeError, match="decorates a class that derives"):
        kp.CustomOp.register(given)


def test_a_class_without_a_signature_is_refused():
    with pytest.raises(kp.ArgumentTypeError, match="nothing has no signature"):
        kp.CustomOp.register(type("nothing", (kp.CustomOp,), {}))
