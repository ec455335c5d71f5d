"""Kernels serve other calls than the one that they are written for, and calls run beside each other."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.errors import FailedPreconditionError
from tests.support.threads import on_threads

numbers = itertools.count()


def _operation(
    select, generate, *, parts: bool = False, signature: str = "(Tensor x) -> Tensor"
) -> kp.Operation:
    name = f"other{next(numbers)}"

    class Made(kp.CustomOp):
        reads_parts = parts

        def select(self, ksel: kp.FunctionSelection) -> None:
            x = ksel.arg_tensor("x")
            select(ksel, x)
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            generate(ksel, kb)

    Made.signature = name + signature
    return kp.CustomOp.register(Made)


def _nothing(ksel: kp.FunctionSelection, x: object) -> None:
    pass


OUT_OF_REACH = {
    "strides": lambda x: x.strides, "offset": lambda x: x.offset, "t": lambda x: x.t, "v": lambda x: x.v,
    "spec": lambda x: x.maybe_tensor_value,
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_facts_of_one_call_are_out_of_reach(mgr: kp.Manager, name: str) -> None:
    def generate(ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        OUT_OF_REACH[name](ksel.arg_descs[0])
        kb.yield_results("x_load(i)")

    operation = _operation(_nothing, generate, parts=True)
    with pytest.raises(FailedPreconditionError, match="of one call, and generate writes kernels for others"):
        operation(mgr.zeros(8)[::2])


def test_numbers_of_one_call_are_out_of_reach(mgr: kp.Manager) -> None:
    operation = _operation(
        lambda ksel, x: ksel.arg_float("f"),
        lambda ksel, kb: kb.yield_results(f"x_load(i) * {ksel.arg_descs[1].v}"),
        signature="(Tensor x, float f) -> Tensor",
    )
    with pytest.raises(FailedPreconditionError, match="a number when the kernels run"):
        operation(mgr.zeros(8), 2.0)


def test_shapes_in_generate_are_sizes(mgr: kp.Manager) -> None:
    operation = _operation(
        _nothing,
        lambda ksel, kb: kb.yield_results(
            f"float({ksel.arg_descs[0].size} * 10u + {ksel.arg_descs[0].shape[0]})"
        ),
    )
    for n in (3, 70, 3):
        assert operation(mgr.zeros(n)).read().tolist() == [11.0 * n] * n
    assert operation.cache_info().specializations == 1
    specialized = _operation(
        lambda ksel, x: x.specialize_all_dims(),
        lambda ksel, kb: kb.yield_results(f"{ksel.arg_descs[0].t.size + ksel.arg_descs[0].shape[0]}.0"),
    )
    for n in (3, 70, 3):
        assert specialized(mgr.zeros(n)).read().tolist() == [2 * n] * n


@pytest.mark.capability(
    "W29", "a kernel selected by the arguments", "CustomOp.select", "guides/generated_operations"
)
def test_notes_are_part_of_the_specialization(mgr: kp.Manager) -> None:
    def select(ksel: kp.FunctionSelection, x: kp.typing.TensorArg) -> None:
        ksel.specialize(n=x.size)

    operation = _operation(select, lambda ksel, kb: kb.yield_results(f"{ksel.special['n']}.0"))
    for n in (3, 70, 3):
        assert operation(mgr.zeros(n)).read().tolist() == [n] * n


def test_parts_of_tensors(mgr: kp.Manager) -> None:
    """As the guide says: `select` passes the numbers of a part on."""

    def select(ksel: kp.FunctionSelection, x: kp.typing.TensorArg) -> None:
        if x.is_part:
            ksel.value("first", x.offset, "uint32")
            ksel.value("step", x.strides[0] % 2**32, "uint32")

    def generate(ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.yield_results("x_load(first + i * step)" if ksel.arg_descs[0].is_part else "x_load(i)")

    operation = _operation(select, generate, parts=True)
    values = np.arange(12, dtype=np.float32)
    x = mgr.tensor(values)
    for _ in range(3):
        for part in (np.s_[::2], np.s_[1::2], np.s_[::3], np.s_[::-1], np.s_[:], np.s_[9:2:-2]):
            np.testing.assert_array_equal(operation(x[part]).read(), values[part])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "float16", "float32"])
@pytest.mark.parametrize("count", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("made", [False, True])
def test_tables_of_small_elements(mgr: kp.Manager, dtype: str, count: int, made: bool) -> None:
    table = (np.arange(count) % 2 + 1).astype(dtype)

    def generate(ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        if made:
            kb.constant("table", lambda manager: manager.tensor_t(table), size=count, dtype=dtype)
        else:
            kb.constant("table", table)
        kb.yield_results("float(table_load(i))")

    found = _operation(_nothing, generate)(mgr.zeros(count))
    np.testing.assert_array_equal(found.read(), table.astype(np.float32))


@pytest.mark.parametrize("calls", [1, 4])
@pytest.mark.parametrize("two", [False, True])
def test_a_waiting_call_holds_up_no_other(mgr: kp.Manager, calls: int, two: bool) -> None:
    """A call that waits for a semaphore, and another one that must end before it is signalled."""
    other = kp.Manager() if two else mgr
    operation = kp.ops.elementwise("x + 1")
    x, y, out = mgr.zeros(100), other.zeros(100), other.zeros(100)
    first = mgr.zeros(100)
    for _ in range(calls - 1):
        operation(x, out=first)
        operation(y, out=out)
    semaphore = mgr.semaphore()
    # Other queues of this Manager would not wait; the call does, for what writes its argument.
    running = mgr.sequence().record(kp.OpFill([x], 5.0)).eval_async(wait=(semaphore, 1))
    thread = threading.Thread(target=operation, args=(x,), kwargs={"out": first})
    thread.start()
    try:
        thread.join(0.2)
        assert thread.is_alive()
        operation.cache_info()
        if two:
            np.testing.assert_array_equal(operation(y, out=out).read(), 1)
        else:
            operation.op(y, out=out)
    finally:
        semaphore.signal(1)
        thread.join()
    running.eval_await()
    np.testing.assert_array_equal(first.read(), 6)
    if two:
        other.destroy()


def test_threads_with_arrays_of_one_shape(mgr: kp.Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has memory of its own while it runs."""
    monkeypatch.setattr("kompute_py._functions.preparing.default_manager", lambda: mgr)
    operation = kp.ops.elementwise("x * 2 + y")

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            x, y = rng.random((2, 1000), dtype=np.float32)
            np.testing.assert_array_equal(operation(x, y), x * 2 + y)

    on_threads(run, range(6))


def test_zeros_have_signs_and_numbers_have_dtypes(mgr: kp.Manager) -> None:
    """What is looked up by its arguments alone tells them apart."""
    x, out = mgr.zeros(4), mgr.zeros(4)
    add, copysign = kp.ops.add, kp.ops.copysign
    for _ in range(4):
        assert np.signbit(copysign(x, -0.0, out=out).read()).all()
        assert not np.signbit(copysign(x, 0.0, out=out).read()).any()
        assert add(x, np.float32(2), out=out).tolist() == [2] * 4
        assert add(x, np.float32(3), out=out).tolist() == [3] * 4
        assert add(x, True, out=out).tolist() == [1] * 4
        assert add(x, False, out=out).tolist() == [0] * 4
    y, rows = mgr.tensor(np.arange(6).reshape(2, 3)), mgr.zeros(2)
    columns, kept = mgr.zeros(3), mgr.zeros((1, 3))
    for _ in range(4):
        assert kp.ops.sum(y, (1,), out=rows).tolist() == [3, 12]
        assert kp.ops.sum(y, (0,), out=columns).tolist() == [3, 5, 7]
        assert kp.ops.sum(y, 0, keepdims=False, out=columns).tolist() == [3, 5, 7]
        assert kp.ops.sum(y, 0, keepdims=True, out=kept).tolist() == [[3, 5, 7]]


def test_destroyed_results_are_refused(mgr: kp.Manager) -> None:
    x = mgr.tensor([1, 2, 3])
    for calls in range(4):
        out, image = mgr.zeros(3), mgr.image_empty((1, 3), "r32f")
        for _ in range(calls):
            kp.ops.add(x, 1, out=out)
        out.destroy(), image.destroy()
        for call in (kp.ops.add, kp.ops.add.op, kp.ops.add.submit):
            with pytest.raises(FailedPreconditionError, match="destroyed"):
                call(x, 1, out=out)
            with pytest.raises(FailedPreconditionError, match="destroyed"):
                call(x.reshape(1, 3), 1, out=image)


def test_kernels_of_items_are_compiled_once() -> None:
    """Kernels that differ only by the item that they read are one module."""
    specs = [kp.TensorSpec((3 + n % 4, 2), "int32" if n % 5 == 0 else "float32") for n in range(40)]
    program = kp.Program.record(kp.ops.concatenate, specs, portable=True)
    (recording,) = program._core.parts[""].entries[0].recordings
    assert len(recording.steps) == 40 and len({step.shader for step in recording.steps}) == 2


def test_many_tensors_are_joined(mgr: kp.Manager) -> None:
    arrays = [np.full((1 + n % 3, 2), n, np.float32) for n in range(150)]
    for axis in (0, 1):
        given = [each if axis == 0 else each.T.copy() for each in arrays]
        found = kp.ops.concatenate([mgr.tensor_t(each) for each in given], axis=axis)
        np.testing.assert_array_equal(found.read(), np.concatenate(given, axis))


def test_errors_in_kernels_of_items_name_them(mgr: kp.Manager) -> None:
    class Wrong(kp.CustomOp):
        signature = "wrong@UNIQUE@(Tensor[] x) -> Tensor"

        def select(self, ksel: kp.FunctionSelection) -> None:
            ksel.return_new_tensor(ksel.arg_tensor_list("x")[0].shape, "float32")

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            for number, each in enumerate(kb.arg_value("x")):
                kb.begin_dispatch(f"part{number}")
                kb.grid(each.size)
                kb.emit(f"result_store(gl_GlobalInvocationID.x, {each}_load(0) + missing);")

    with pytest.raises(kp.errors.ShaderCompileError, match=r"x0_load\(0\) \+ missing"):
        kp.CustomOp.register(Wrong)([mgr.zeros(2), mgr.zeros(2)])


def test_kernels_and_functions_have_the_same_verbs(mgr):
    x, y = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    kernel = mgr.kernel("""
        layout(binding = 0) readonly buffer X { float x[]; };
        layout(binding = 1) writeonly buffer Y { float y[]; };
        layout(local_size_x = 64) in;
        void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = 2.0 * x[i]; }
    """)
    function = kp.ops.elementwise("2 * x")
    composed = kp.ops.quantile
    assert kp.Operation is kp.Function is type(kp.ops.roll) and kp.Function.op is kp.Function.bind
    assert composed.bind(x, 0.5).results[0].shape == ()
    function.preload(x, out=y)
    kernel.preload()
    for called in (kernel, function):
        done = mgr.semaphore()
        y.fill(0.0)
        assert called(x, out=y) in (None, y) and y.tolist() == [2, 4, 6]
        y.fill(0.0)
        mgr.sequence().record(called.bind(x, out=y)).eval()
        assert y.tolist() == [2, 4, 6]
        for _ in range(3):
            y.fill(0.0)
            called.submit(x, out=y, wait=called.submit(x, out=y), signal=(done, done.query() + 1)).wait()
            assert y.tolist() == [2, 4, 6]
        assert done.query() == 3
        with pytest.raises(kp.ArgumentTypeError, match=r"not \w+; make one: \w+\.bind"):
            mgr.sequence().record(called)
