"""Names in kernels, sizes that are known when the kernels run, and signatures that must be refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._custom.expressions import two_axes
from kompute_py.errors import ArgumentTypeError, InvalidArgumentError, SignatureError

numbers = itertools.count()


def _operation(signature: str, select=None, generate=None) -> kp.Operation:
    """An operation of this signature: one result with the shape of its first tensor."""
    name = f"made{next(numbers)}"

    class Made(kp.CustomOp):
        def select(self, ksel: kp.FunctionSelection) -> None:
            x = ksel.arg_tensor("x")
            if select is not None:
                select(ksel)
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            generate(kb) if generate is not None else kb.yield_results("x_load(i)")

    Made.signature = name + signature
    return kp.CustomOp.register(Made)


SIZES = {
    "largest": lambda kb, n: kb.largest(n - 20, 1),
    "smallest": lambda kb, n: kb.smallest(n + 5, 9),
    "difference": lambda kb, n: (n - 10) // 4 + 10,
    "product": lambda kb, n: n * 70000 * 70000 // (70000 * 70000),
    "ceil_div": lambda kb, n: kb.ceil_div(n + (2**32 - 9), 4096) - 1048570,
    "remainder": lambda kb, n: (n - 9) % 7 + 3,
    "plain": lambda kb, n: n,
    "number": lambda kb, n: 12,
}


@pytest.mark.parametrize("name", SIZES)
def test_kernels_get_the_size_that_was_allocated(mgr: kp.Manager, name: str) -> None:
    """The host counts exactly, uint wraps: the kernels get the host's number."""

    def generate(kb: kp.FunctionBuilder) -> None:
        n = kb.arg_value("x").size
        kb.scratch("memory", SIZES[name](kb, n))
        kb.grid(n)
        kb.emit("uint i = gl_GlobalInvocationID.x; if (i < x_size) {")
        kb.emit("memory_store(i % memory_size, 1.0); result_store(i, float(memory_size)); }")

    operation = _operation("(Tensor x) -> Tensor", None, generate)
    for n in (8, 30, 8, 17):
        x = mgr.zeros(n)
        expected = SIZES[name](kp.FunctionBuilder, n)
        assert operation(x).read().tolist() == [expected] * n
        made = operation.op(x)
        mgr.sequence().eval(made)
        assert made.results[0].read().tolist() == [expected] * n


def test_ceil_div_does_not_wrap() -> None:
    size = kp.FunctionBuilder.ceil_div(kp.typing.Size.named("n"), 4096)
    assert size.value({"n": 2**32 - 1}) == 2**20
    assert size.text == "(n / 4096u + uint(n % 4096u != 0u))"


@pytest.mark.parametrize("groups", [0, 1, 65535, 65536, 2**18, 10**7 + 1, 2**26])
def test_workgroups_on_two_axes_are_few_more_than_are_needed(groups: int) -> None:
    columns, rows = (each.value({"n": groups}) for each in two_axes(kp.typing.Size.named("n")))
    assert (columns, rows) == two_axes(groups)
    assert columns <= 65535 and groups <= columns * rows < groups + max(rows, 1)


def test_a_size_that_is_negative_is_refused(mgr: kp.Manager) -> None:
    def generate(kb: kp.FunctionBuilder) -> None:
        kb.scratch("memory", kb.arg_value("x").size - 10)
        kb.yield_results("x_load(i) + float(memory_size)")

    operation = _operation("(Tensor x) -> Tensor", None, generate)
    assert operation(mgr.zeros(12)).read().tolist() == [2] * 12
    with pytest.raises(InvalidArgumentError, match="-2 elements"):
        operation(mgr.zeros(8))


COMPARISONS = {
    "equal": lambda n: n == 8, "not equal": lambda n: n != 8, "less": lambda n: n < 8,
    "least": lambda n: n <= 8, "greater": lambda n: n > 8, "most": lambda n: n >= 8,
    "in": lambda n: n in (8, 9), "bool": bool, "int": int, "range": range, "float": float,
    "shape": lambda n: (n,) == (8,),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_sizes_are_not_compared(mgr: kp.Manager, name: str) -> None:
    """What is false for each size would choose a wrong kernel."""

    def generate(kb: kp.FunctionBuilder) -> None:
        COMPARISONS[name](kb.arg_value("x").shape[0])
        kb.yield_results("x_load(i)")

    with pytest.raises(ArgumentTypeError, match="specialize_dims"):
        _operation("(Tensor x) -> Tensor", None, generate)(mgr.zeros(8))
    specialized = _operation(
        "(Tensor x) -> Tensor", lambda ksel: ksel.arg_descs[0].specialize_dims(0), generate
    )
    assert specialized(mgr.zeros(8)).size() == 8


PARTS = ["load", "store", "load4", "store4", "size", "at", "dim0", "dim12", "stride0"]


@pytest.mark.own_driver
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("how", ["(Tensor x, int {0}=1) -> Tensor", "(int {0}, Tensor x) -> Tensor",
                                 "(Tensor x, Tensor {0}) -> Tensor", "(Tensor x) -> Tensor {0}",
                                 "(Tensor? x, float {0}=1.0) -> Tensor",
                                 "(Tensor[] x, int {0}=1) -> Tensor"])  # fmt: skip
def test_names_of_a_tensor_in_kernels_are_taken(part: str, how: str) -> None:
    name = f"x0_{part}" if "[]" in how else f"x_{part}"
    with pytest.raises(SignatureError, match=rf"'{name}'.*belongs to 'x'"):
        _operation(how.format(name))


def test_names_of_results_and_items_are_taken() -> None:
    for text, name in (
        ("(Tensor[] x, Tensor x0) -> Tensor", "x0"),
        ("(Tensor x10, Tensor[] x) -> Tensor", "x10"),
        ("(Tensor x, int result_size=1) -> Tensor", "result_size"),
        ("(Tensor x, int y_dim0=1) -> (Tensor y, Tensor z)", "y_dim0"),
    ):
        with pytest.raises(SignatureError, match=f"'{name}'"):
            _operation(text)
    for text in (
        "(Tensor x, Tensor x0) -> Tensor",
        "(Tensor x, int x_sizes=1) -> Tensor",
        "(Tensor x, int dim0) -> Tensor",
    ):
        _operation(text)


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "name", ["lambda", "None", "True", "def", "is", "pass", "float", "main", "out", "a__b", "gl_x"]
)
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(SignatureError) as caught:
        _operation(f"(Tensor {name}) -> Tensor")
    assert "column" in str(caught.value)


@pytest.mark.parametrize("text", ["float a=1e999", "int a=99999999999999999999999", "float a=-1e400"])
def test_defaults_beyond_numbers_are_refused(text: str) -> None:
    with pytest.raises(SignatureError, match="beyond"):
        _operation(f"(Tensor x, {text}) -> Tensor")
    assert _operation("(Tensor x, float a=inf) -> Tensor").__signature__.parameters["a"].default == np.inf


@pytest.mark.parametrize(
    "name", ["float", "main", "x", "x_load", "x_size", "result_store", "gl_a", "a__b", "1a", 3]
)
def test_names_of_memory_are_checked(mgr: kp.Manager, name: object) -> None:
    for make in (lambda kb: kb.scratch(name, 4), lambda kb: kb.constant(name, [1.0])):

        def generate(kb: kp.FunctionBuilder, make=make) -> None:
            make(kb)
            kb.yield_results("x_load(i)")

        with pytest.raises(InvalidArgumentError, match="name"):
            _operation("(Tensor x) -> Tensor", None, generate)(mgr.zeros(3))


def test_memory_brings_names_too(mgr: kp.Manager) -> None:
    def generate(kb: kp.FunctionBuilder) -> None:
        kb.scratch("a", 4)
        kb.scratch("a_size", 4)
        kb.yield_results("x_load(i)")

    with pytest.raises(InvalidArgumentError, match="already"):
        _operation("(Tensor x) -> Tensor", None, generate)(mgr.zeros(3))
    with pytest.raises(InvalidArgumentError, match="already"):
        _operation("(Tensor x) -> Tensor", lambda ksel: ksel.value("x_size", 3, "uint32"))(mgr.zeros(3))


def test_a_division_by_zero_is_named(mgr: kp.Manager) -> None:
    for size in (lambda n: n // 0, lambda n: n // (n - 8), lambda n: n % (n - 8)):

        def generate(kb: kp.FunctionBuilder, size=size) -> None:
            kb.grid(size(kb.arg_value("x").size))
            kb.emit("result_store(gl_GlobalInvocationID.x, 1.0);")

        with pytest.raises(InvalidArgumentError, match="divides by zero: a divisor is 0"):
            _operation("(Tensor x) -> Tensor", None, generate)(mgr.zeros(8))


def test_nothing_is_generated_for_empty_results(mgr: kp.Manager) -> None:
    def generate(kb: kp.FunctionBuilder) -> None:
        raise AssertionError("it has nothing to write")

    operation = _operation("(Tensor x) -> Tensor", None, generate)
    for _ in range(3):
        assert operation(mgr.zeros(0)).size() == 0


class _Eager(kp.CustomOp):
    signature = "eager@UNIQUE@(Tensor x, int count) -> (Tensor a, Tensor b)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        raise AssertionError

    def eager_execute(self, x, count: int):
        return tuple(np.asarray(x.read()) * n for n in range(1, count + 1))


def test_eager_answers_are_checked(mgr: kp.Manager) -> None:
    operation = kp.CustomOp.register(_Eager)
    x, a, b = mgr.tensor([1, 2]), mgr.zeros(2), mgr.zeros(2)
    assert [each.tolist() for each in operation(x, 2)] == [[1, 2], [2, 4]]
    for count in (1, 3):
        with pytest.raises(InvalidArgumentError, match="tuple of 2 results"):
            operation(x, count)
        with pytest.raises(InvalidArgumentError, match="tuple of 2 results"):
            operation(x, count, out=(a, b))
    operation(x, 2, out=(a, b))
    assert b.tolist() == [2, 4]
    with pytest.raises(InvalidArgumentError, match="shape"):
        operation(x, 2, out=(a, mgr.zeros(3)))
    for wrong in (mgr.zeros(2, "int32"), np.zeros(2, np.int32)):
        with pytest.raises(ArgumentTypeError, match="a result of float32; out is of int32"):
            operation(x, 2, out=(a, wrong))


def test_names_that_only_comments_have_bind_nothing_else(mgr: kp.Manager) -> None:
    """The compiler drops the block of values and the buffers that no code uses."""

    def generate(kb: kp.FunctionBuilder) -> None:
        kb.constant("table", np.float32([1, 2]))
        kb.grid(8)
        kb.emit("// x_size, x_load and table_load")
        kb.emit("uint i = gl_GlobalInvocationID.x; if (i < 8) result_store(i, float(i));")

    assert _operation("(Tensor x) -> Tensor", None, generate)(mgr.zeros(8)).tolist() == list(range(8))


@pytest.mark.parametrize(
    "line",
    ["layout(binding = 7) buffer Own { float own[]; };", "layout(constant_id = 0) const float own = 1.0;"],
)
def test_generators_that_declare_more_than_tensors(mgr: kp.Manager, line: str) -> None:
    def generate(kb: kp.FunctionBuilder) -> None:
        kb.declare(line)
        kb.yield_results("own[i]" if "own[]" in line else "own")

    operation = _operation("(Tensor x) -> Tensor", None, generate)
    if "own[]" in line:
        with pytest.raises(InvalidArgumentError, match="needs 8 tensors; 2 were given"):
            operation(mgr.zeros(3))
    else:
        assert operation(mgr.zeros(3)).tolist() == [1, 1, 1]


@pytest.mark.capability(
    "W33",
    "tensors as arguments, of any shape and dtype",
    "KernelSelection.arg_tensor",
    "guides/generated_operations",
)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_strides_and_lengths_of_every_axis(mgr: kp.Manager, axes: int) -> None:
    """``x_at`` and the strides use lengths that are named nowhere else."""

    def generate(kb: kp.FunctionBuilder) -> None:
        kb.grid(kb.result().size)
        places = ", ".join(f"(i / x_stride{axis}) % x_dim{axis}" for axis in range(axes))
        kb.emit("uint i = gl_GlobalInvocationID.x;")
        kb.emit(f"if (i < result_size) result_store(i, x_load(x_at({places})));")

    data = np.random.default_rng(0).random((2, 3, 5)[3 - axes :], dtype=np.float32)
    x = mgr.tensor_t(data)
    np.testing.assert_array_equal(_operation("(Tensor x) -> Tensor", None, generate)(x).read(), data)


def test_a_dispatch_is_named_by_a_str(mgr: kp.Manager) -> None:
    def generate(kb: kp.FunctionBuilder) -> None:
        kb.begin_dispatch(3)  # type: ignore[arg-type]
        kb.yield_results("x_load(i)")

    with pytest.raises(ArgumentTypeError, match="the name of a dispatch is a str, not an int"):
        _operation("(Tensor x) -> Tensor", None, generate)(mgr.zeros(3))
