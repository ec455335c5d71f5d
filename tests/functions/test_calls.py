"""Calls that were prepared for shapes: what belongs to their key, and what does not."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._functions import forming
from kompute_py._recording import preload
from tests.support.operations import Like

pytestmark = pytest.mark.each_driver


@kp.CustomOp.register
class ramp(kp.CustomOp):
    """`x` plus `first`, and `n` elements more."""

    signature = "ramp(Tensor x, int n=0, int first=0, float scale=1.0) -> Tensor"
    selected = 0

    def select(self, ksel):
        ramp.__wrapped__.selected += 1
        x, n = ksel.arg_tensor("x"), ksel.arg_int("n").v
        ksel.arg_int("first")
        ksel.arg_float("scale")
        ksel.return_new_tensor((x.size + n,), x.dtype)

    def generate(self, ksel, kb):
        kb.yield_results("scale * x_load(i % x_size) + first")


@pytest.fixture(autouse=True)
def default(mgr):
    with mgr.current():
        yield
    ramp.cache_clear()
    ramp.__wrapped__.selected = 0


def test_only_numbers_that_select_looks_at_are_in_the_key(mgr):
    x = np.arange(5, dtype=np.float32)
    t = mgr.tensor_t(x)
    for first in range(5):
        for scale in (1.0, -2.5, float("inf"), 0.0, -0.0, 1e300):
            with np.errstate(all="ignore"):
                expected = np.float32(scale) * x + np.float32(first)
            np.testing.assert_array_equal(ramp(t, 0, first, scale).read(), expected)
            np.testing.assert_array_equal(ramp(x, 0, first, scale), expected)
    assert ramp.__wrapped__.selected == 2
    for n in (3, 0, 7, 3):
        expected = np.resize(x, 5 + n) + 1
        np.testing.assert_array_equal(ramp(t, n, 1).read(), expected)
        np.testing.assert_array_equal(ramp(x, n, 1), expected)
    assert ramp.__wrapped__.selected == 6
    with pytest.raises(kp.InvalidArgumentError, match="first is 4294967296; the kernels take ints of 32"):
        ramp(t, 0, 2**32)
    assert ramp.cache_info().misses == 1


def test_memory_is_no_part_of_the_key(mgr):
    for step in range(200):
        t, out = mgr.full(6, step, np.float32), mgr.zeros(6)
        assert ramp(t, first=1, out=out) is out
        assert ramp(t, scale=2.0).read().tolist() == [2 * step] * 6
        assert out.read().tolist() == [step + 1] * 6
    assert ramp.cache_info().prepared == 2 and ramp.__wrapped__.selected == 2


def test_parts_at_any_offset(mgr):
    x = np.random.default_rng(0).random(500, np.float32)
    t, out = mgr.tensor_t(x), mgr.zeros(500)
    for repeat in range(2):
        for first in (0, 1, 3, 64, 65, 128):
            part, target = t[first : first + 100], out[first + repeat : first + repeat + 100]
            np.testing.assert_array_equal(ramp(part, first=2).read(), x[first : first + 100] + 2)
            ramp(part, first=3, out=target)
            np.testing.assert_array_equal(target.read(), x[first : first + 100] + 3)
            np.testing.assert_array_equal(ramp(t[first : first + 200 : 2]).read(), x[first : first + 200 : 2])


@pytest.mark.each_driver
def test_weak_numbers_choose_their_dtype_anew(mgr, needs):
    needs(mgr, "shaderInt64")

    @kp.CustomOp.register
    class number(kp.CustomOp):
        signature = "number(Tensor x, Tensor|Scalar a) -> Tensor"

        def select(self, ksel):
            x, a = ksel.arg_tensor("x"), ksel.arg_tensor_or_value("a")
            ksel.return_new_tensor(x.shape, a.dtype)

        def generate(self, ksel, kb):
            kb.yield_results("a")

    x = mgr.zeros(3)
    for _ in range(2):
        for a, dtype in ((5, "int32"), (2**40, "int64"), (-7, "int32"), (2**63, "uint64"), (0.5, "float32")):
            found = number(x, a)
            assert found.dtype == dtype and found.tolist() == [a] * 3
            found = number(x, np.dtype(dtype).type(a))
            assert found.dtype == dtype and found.tolist() == [a] * 3


def test_lists_take_part(mgr):
    @kp.CustomOp.register
    class total(kp.CustomOp):
        signature = "total(Tensor[] terms, float scale=1.0, int[] taps=[1]) -> Tensor"

        def select(self, ksel):
            terms = ksel.arg_tensor_list("terms")
            ksel.arg_float("scale")
            ksel.attr_list_int("taps")
            ksel.return_new_tensor(terms[0].shape, terms[0].dtype)

        def generate(self, ksel, kb):
            terms = " + ".join(f"{t}_load(i)" for t in kb.arg_value("terms"))
            kb.yield_results(f"scale * {sum(ksel.arg_descs[2].v)} * ({terms})")

    rng = np.random.default_rng(0)
    for scale in (1.0, 2.0, 3.0):
        for taps in ([1], [2, 3]):
            for count in (1, 2, 3):
                arrays = [rng.integers(0, 9, 7).astype(np.float32) for _ in range(count)]
                expected = scale * sum(taps) * sum(arrays)
                np.testing.assert_array_equal(total(arrays, scale, taps), expected)
                tensors = [mgr.tensor_t(a) for a in arrays]
                np.testing.assert_array_equal(total(tensors, scale, taps).read(), expected)
                np.testing.assert_array_equal(total([tensors[0], *arrays[1:]], scale, taps).read(), expected)
    assert total.cache_info().misses == 6
    assert total.cache_info().prepared == 16  # a mixed list of one is a list of Tensors
    with pytest.raises(kp.InvalidArgumentError, match="two Managers"):
        total([mgr.zeros(3), kp.Manager(0).zeros(3)])


@pytest.mark.each_driver
def test_memory_beyond_a_binding(mgr):
    most = mgr.get_device_properties()["limits"]["maxStorageBufferRange"]
    if most > 2**28:
        pytest.skip("a binding takes more than the test may allocate")
    large = mgr.empty(most // 4 + 64, np.float32, "storage")
    with pytest.raises(
        kp.InvalidArgumentError, match=rf"ramp: x has {most + 256} bytes.*{most} bytes.*x\[a:b\]"
    ):
        ramp(large, out=large)
    assert ramp(large[: 1 << 10]).shape == (1 << 10,)

    @kp.CustomOp.register
    class greedy(Like):
        signature = "greedy(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.scratch("room", most // 4 + 4)
            kb.begin_dispatch()
            kb.yield_results("x_load(i) + room_load(i)")

    with pytest.raises(kp.InvalidArgumentError, match=r"greedy: room needs .* Call it with smaller tensors"):
        greedy(mgr.zeros(3))
    mgr.memory.trim()


@pytest.mark.capability(
    "W44", "the shader that an operation wrote", "Function.sources", "reference/operations"
)
def test_sources_are_whole_shaders(mgr):
    (text,) = ramp.sources(kp.TensorSpec((7,)), 3)
    x = np.arange(7, dtype=np.float32)
    # The block of the call: sizes, then the numbers, as the text declares them.
    members = text.partition("kp_parameters { ")[2].partition(" }")[0].rstrip(";").split("; ")
    values = {"uint x_size": 7, "uint result_size": 10, "int first": 2, "float scale": 0.5}
    assert set(members) == set(values)
    push = b"".join(np.array(values[m], np.float32 if "float" in m else np.uint32).tobytes() for m in members)
    out = mgr.zeros(10)
    algorithm = mgr.algorithm([mgr.tensor_t(x), out], kp.compile(text), (1, 1, 1), push_consts=push)
    mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_array_equal(out.read(), ramp(x, 3, 2, 0.5))


def test_more_elements_than_one_axis_of_a_grid_has(mgr):
    """65,535 groups of 64: `yield_results` takes the next axis for more."""
    x = mgr.tensor_t(np.arange(11, dtype=np.float32))
    found = ramp(x, 65_536 * 64, 1).read()
    np.testing.assert_array_equal(found, np.resize(x.read(), 11 + 65_536 * 64) + 1)


def test_preload_prepares_calls_and_computes_nothing(mgr, caplog):
    caplog.set_level("INFO", "kompute_py")
    x, out = mgr.tensor_t(np.arange(5, dtype=np.float32)), mgr.full(5, 7, np.float32)
    ramp.preload(x, out=out)
    assert (out.read() == 7).all() and ramp.cache_info().misses == 1
    caplog.clear()
    assert ramp(x, out=out).tolist() == [0, 1, 2, 3, 4]
    assert ramp.cache_info() == (0, 1, 1, 1) and not caplog.messages
    ramp.cache_clear()
    for spec in (kp.TensorSpec((5,)), kp.TensorSpec((9,))):
        ramp.preload(spec)
    assert ramp(x).tolist() == [0, 1, 2, 3, 4]
    ramp(mgr.tensor_t(np.zeros(9, np.float32)))
    assert ramp.cache_info().misses == 1 and not caplog.messages


def test_calls_that_build_say_so(mgr, caplog):
    caplog.set_level("INFO", "kompute_py")
    x = mgr.tensor_t(np.arange(5, dtype=np.float32))
    ramp(x)
    (line,) = caplog.messages
    assert line.startswith("ramp: its pipeline was built first, in ") and "its first run took" in line
    caplog.clear()
    ramp(x)
    assert not caplog.messages
    ramp.cache_clear()
    ramp.op(x)
    (line,) = caplog.messages
    assert "may compile more in its first run" in line


def test_kernels_of_a_call_are_built_side_by_side(monkeypatch):
    """Those that the device does not have yet: of two or more, two are in the making at once."""
    began, two = [], threading.Event()
    real = forming._Maker._algorithm

    def algorithm(*args):
        began.append(args)
        if len(began) > 1:
            two.set()
        assert two.wait(60)
        return real(*args)

    monkeypatch.setattr(preload.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(forming._Maker, "_algorithm", algorithm)
    x = np.arange(100_000, dtype=np.float32)
    with kp.Manager(pipeline_cache_dir="") as manager:
        assert abs(kp.ops.var(manager.tensor(x)).item() / np.var(x.astype(np.float64)) - 1) < 1e-5
        assert len(began) > 1
        monkeypatch.delattr(forming, "in_parallel")  # all are known: no thread is begun
        assert kp.ops.var(manager.tensor(x[::2])).item() > 0


def test_a_system_without_more_threads_builds_one_after_another(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(preload.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert preload.in_parallel(lambda each: each * 2, range(5)) == [0, 2, 4, 6, 8]


def test_preload_refuses_what_a_call_refuses(mgr):
    with pytest.raises(kp.ArgumentTypeError, match="takes 4 arguments by position"):
        ramp.preload(kp.TensorSpec((5,)), 0, 0, 1.0, 2)
    with pytest.raises(kp.ArgumentTypeError, match="ramp: x is a str"):
        ramp.preload("five")
    with pytest.raises(kp.InvalidArgumentError, match="out has shape"):
        ramp.preload(kp.TensorSpec((5,)), out=mgr.zeros(4))


@kp.CustomOp.register
class stored_as(kp.CustomOp):
    """`x` in a dtype, that of `x` by default."""

    signature = "stored_as(Tensor x, dtype? dtype=None, dtype unused='int8') -> Tensor"

    def select(self, ksel):
        x, dtype = ksel.arg_tensor("x"), ksel.attr_dtype("dtype").v
        assert ksel.attr_dtype("unused").v == np.dtype(np.int8)
        ksel.return_new_tensor(x.shape, x.dtype if dtype is None else dtype)

    def generate(self, ksel, kb):
        kb.yield_results(f"{'int' if ksel.results[0].dtype.kind == 'i' else 'float'}(x_load(i))")


def test_dtypes_as_arguments(mgr):
    x = mgr.tensor_t(np.array([1.5, 2], np.float32))
    assert stored_as(x).dtype == np.float32
    for dtype in (np.int32, "int32", np.dtype("int32"), "i4"):
        assert stored_as(x, dtype).tolist() == [1, 2]
    assert stored_as.cache_info().misses == 2
    assert stored_as(x, "bfloat16").dtype.name == "bfloat16"
    for wrong in ("floaty", object, 3, "U3"):
        with pytest.raises(kp.ArgumentTypeError, match=r"stored_as: dtype is .*; give a dtype of numbers"):
            stored_as(x, wrong)
    with pytest.raises(kp.ArgumentTypeError, match="stored_as: unused is None"):
        stored_as(x, unused=None)


@kp.CustomOp.register
class of_any_names(kp.CustomOp):
    signature = "of_any_names(Tensor args, int exactly=1, int key=2, int title=3) -> Tensor"

    def select(self, ksel):
        args = ksel.arg_tensor("args")
        for name in ("exactly", "key", "title"):
            ksel.arg_int(name)
        ksel.return_new_tensor(args.shape, args.dtype)

    def generate(self, ksel, kb):
        kb.yield_results("args_load(i) + exactly + 10 * key + 100 * title")


def test_parameters_have_any_names(mgr):
    t, out = mgr.zeros(3, np.int32), mgr.empty(3, np.int32)
    for n in range(3):
        assert of_any_names(args=t, exactly=n, key=1, title=1).tolist() == [110 + n] * 3
        of_any_names.submit(args=t, exactly=n, key=1, title=2, out=out).wait()
        assert out.read().tolist() == [210 + n] * 3
        operation = of_any_names.op(args=t, exactly=n, key=2, title=2)
        mgr.sequence().record(operation).eval()
        assert operation.results[0].read().tolist() == [220 + n] * 3


def test_an_operation_without_set_says_what_changes_a_number(mgr):
    operation = kp.ops.add.bind(mgr.zeros(3), 1)
    with pytest.raises(AttributeError, match="has no attribute 'set': a number that changes is a tensor"):
        operation.set(x2=2)
    assert not hasattr(operation, "other")
