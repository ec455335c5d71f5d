"""Arguments that are a tensor or a number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from kompute_py._formulas.functions import ARITY, CASTS
from kompute_py.errors import InvalidArgumentError
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")


@kp.CustomOp.register
class filled(kp.CustomOp):
    """`x` where there is no number, else the number, in the dtype of `x`."""

    signature = "filled(Tensor x, Tensor|Scalar a=1, Tensor|Scalar b=0) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        for name in ("a", "b"):
            arg = ksel.arg_tensor_or_value(name)
            if isinstance(arg, kp.typing.ValueArg):
                arg.cast(x.dtype)
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        a, b = (
            name if isinstance(ksel.arg_descs[k], kp.typing.ValueArg) else f"{name}_load(i)"
            for k, name in ((1, "a"), (2, "b"))
        )
        kb.yield_results(f"i % 2 == 0 ? {a} : {b}")


def expected(x, a, b):
    found = np.empty_like(x)
    found[0::2], found[1::2] = (v[k::2] if isinstance(v, np.ndarray) else v for k, v in ((0, a), (1, b)))
    return found


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        ("float32", [0.1, -3, True, 1e300, -np.inf, np.float32(0.1), np.float16(0.1), np.int8(-3)]),
        ("float64", [0.1, 1e300, 2**60, np.float64(0.1)]),
        ("float16", [0.1, 65504, -3]),
        ("int32", [-(2**31), 2**31 - 1, True, np.uint8(255)]),
        ("uint32", [0, 2**32 - 1, np.uint32(2**31)]),
        ("int64", [-(2**63), 2**63 - 1, np.int64(-5)]),
        ("uint64", [2**64 - 1, False]),
        ("int8", [-128, 127]),
        ("uint8", [0, 255]),
        ("uint16", [2**16 - 1, 0]),
        ("bool", [True, False, np.bool_(True)]),
        ("complex64", [0.5 + 2j, 3, True, -0.25, np.complex64(1j)]),
    ],
)
def test_numbers_of_each_kind(mgr, needs, dtype, numbers):
    feature = {"float64": "shaderFloat64", "int64": "shaderInt64", "uint64": "shaderInt64"}.get(dtype)
    if feature is not None:
        needs(mgr, feature)
    x = np.ones(5, dtype)
    with np.errstate(over="ignore"):
        for a in numbers:
            for b in (numbers[0], x[0], x):
                found = filled(x, a, b)
                np.testing.assert_array_equal(found, expected(x, a, b))
                np.testing.assert_array_equal(filled(mgr.tensor_t(x), a, b).read(), found)
    before = filled.cache_info().misses
    for number in numbers:
        filled(x, number, numbers[0])  # its dtype is that of x, and its value is none of the kernel's
    assert filled.cache_info().misses == before


@examples(25)
@given(st.floats(width=32), st.integers(-(2**31), 2**31 - 1))
def test_any_number(a, b):
    x = np.zeros(4, np.float32)
    np.testing.assert_array_equal(filled(x, a, b), np.array([a, b, a, b], np.float32))
    np.testing.assert_array_equal(filled(x.astype(np.int32), b), np.array([b, 0, b, 0], np.int32))


def test_what_a_number_is_in_select(mgr):
    seen = []

    @kp.CustomOp.register
    class looks(kp.CustomOp):
        signature = "looks(Tensor|Scalar a) -> Tensor"

        def select(self, ksel):
            arg = ksel.arg_tensor_or_value("a")
            if isinstance(arg, kp.typing.ValueArg):
                seen.append((arg.weak, arg.dtype.name, arg.glsl_type, arg.v))
            ksel.return_new_tensor((), "float32")

        def generate(self, ksel, kb):
            kb.yield_results("0.0")

    for a in (True, 3, 2**40, 2**63, 0.5, 2j, np.float64(2), np.int8(4)):
        looks.meta(a)
    assert seen == [
        ("bool", "bool", "bool", True), ("int", "int32", "int", 3), ("int", "int64", "int64_t", 2**40),
        ("int", "uint64", "uint64_t", 2**63), ("float", "float32", "float", 0.5),
        ("complex", "complex64", "vec2", 2j), ("", "float64", "double", 2.0), ("", "int8", "int", 4),
    ]  # fmt: skip
    seen.clear()
    assert looks.meta(kp.TensorSpec((3,))) == kp.TensorSpec(()) == looks.meta(np.zeros(()))
    assert seen == []
    with pytest.raises(kp.InvalidArgumentError, match=r"a is 18446744073709551616; no dtype has it"):
        looks.meta(2**64)
    with pytest.raises(kp.UnimplementedError, match="datetime64"):
        looks.meta(np.datetime64("2020-01-01"))
    with pytest.raises(kp.ArgumentTypeError, match="looks: a is a str"):
        looks.meta("3")


def test_numbers_that_do_not_fit():
    spec = kp.TensorSpec((3,), "int8")
    with pytest.raises(kp.InvalidArgumentError, match="a is 300, out of bounds for int8"):
        filled.meta(spec, 300)
    with pytest.raises(kp.InvalidArgumentError, match=r"a is 0\.5, which is no int8"):
        filled.meta(spec, 0.5)
    with pytest.raises(kp.InvalidArgumentError, match="b is 1j, which is no float32"):
        filled.meta(kp.TensorSpec((3,)), 1, 1j)
    with pytest.raises(kp.errors.SignatureError, match=r"'Tensor\|Scalar', not|wants 'Scalar'"):

        @kp.CustomOp.register
        class wrong(kp.CustomOp):
            signature = "wrong(Tensor|float x) -> Tensor"


def test_the_block_of_values_is_in_a_program():
    spec = kp.TensorSpec((3,), "int64")
    program = kp.Program.record(filled, spec, 5, spec, portable=True)
    (step,) = program._core.parts[""].entries[0].recordings[0].steps
    assert step.push[:12] == b"\5\0\0\0\0\0\0\0\3\0\0\0"  # a: int64, result_size: uint


HUGE = [("x - a ** b", {"a": 2**40, "b": 2**40}), ("x - (a << b)", {"a": 1, "b": 2**40}),
        ("x + 9 ** 9 ** 9", {}),
        ("x + (1 << 10 ** 12)", {}), ("x + a ** b", {"a": -3, "b": 10**5}), ("x + a * a", {"a": 10**4000}),
        ("x + a", {"a": 10**5000})]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(("formula", "numbers"), HUGE)
def test_numbers_beyond_all_dtypes_are_refused_at_once(mgr, dtype, formula, numbers):
    """Python computes 2**40 ** 2**40 for days, and writes no int of more than 4,300 digits."""
    with pytest.raises(InvalidArgumentError, match=r"beyond the ints|out of bounds"):
        kp.ops.elementwise(formula)(x=mgr.zeros(2, dtype), **numbers)


@pytest.mark.parametrize("numbers", [{"a": 1, "b": 2**40}, {"a": 0, "b": 2**40}, {"a": -1, "b": 2**40 + 1}])
def test_large_powers_of_small_numbers(mgr, numbers):
    found = kp.ops.elementwise("x + a ** b")(x=mgr.zeros(2), **numbers)
    assert found.read().tolist() == [numbers["a"] ** (numbers["b"] % 2 + 2)] * 2
    assert kp.ops.elementwise("x + (a << b)")(mgr.zeros(1), 0, 2**40).read().tolist() == [0]


@pytest.mark.parametrize("name", [name for name, count in ARITY.items() if count == 1 and name not in CASTS])
def test_every_function_of_a_number_alone(mgr, name):
    """Python computes it: of a number alone, and of one that a tensor of float32 meets."""
    for number in (1, 0.5):
        try:
            each = kp.ops.elementwise(f"{name}(a)")(np.float32([number]))
        except kp.ArgumentTypeError:  # of ints only
            continue
        alone = kp.ops.elementwise(f"{name}(a) + 0 * x")(a=number, x=mgr.zeros(1)).read()
        np.testing.assert_allclose(alone, each, rtol=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_ints_of_thousands_of_digits(mgr, sign):
    number = sign * 10**5000
    x = mgr.tensor_t(np.arange(3, dtype=np.int32))
    for _ in range(2):
        assert kp.ops.elementwise("x < a")(x, number).read().tolist() == [number > 0] * 3
    with pytest.raises(InvalidArgumentError, match="n is an int"):
        _repeated(x, number)
    with pytest.raises(InvalidArgumentError, match="n is 2147483648"):
        _repeated(x, 2**31)
    listed = kp.CustomOp.register(
        type("Listed", (_Listed,), {"signature": "listed(Tensor x, int[] n) -> Tensor"})
    )
    for each in (number, 1, number):
        assert listed(x, [each]).read().tolist() == [each % 7] * 3


class _Listed(kp.CustomOp):
    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.attr_list_int("n")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        kb.yield_results(ksel.attribute("n")[0] % 7)


@kp.CustomOp.register
class _repeated(kp.CustomOp):
    signature = "repeated(Tensor x, int n) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.arg_int("n")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        kb.yield_results("x_load(i) + n")


@pytest.mark.parametrize("number", [1e300, -1e300, 1e300j, -1e300 + 2j, 1e39 - 1e39j, 1.5 - 2j])
def test_complex_numbers_beyond_float32(mgr, number):
    """As NumPy's complex64, which has infinite parts for them."""
    x = np.array([1 + 1j, -2], np.complex64)
    with np.errstate(over="ignore"):
        expected = x + np.complex64(number)
    for formula in ("x + a", "x + a * b"):
        found = kp.ops.elementwise(formula)(
            x=mgr.tensor_t(x), a=number, **({"b": 1} if "b" in formula else {})
        )
        assert np.array_equal(found.read(), expected)


@pytest.mark.parametrize(
    ("dtype", "neutral"),
    [("int32", 2.5), ("int32", 2**40), ("uint8", -1), ("int32", float("nan")), ("int16", float("inf")),
     ("float32", 1j), ("int32", 1j)],
)  # fmt: skip
def test_neutrals_that_the_dtype_does_not_have_are_refused(mgr, dtype, neutral):
    x = mgr.tensor_t(np.array([1, 2], dtype))
    with pytest.raises(InvalidArgumentError, match=rf"neutral is .*{dtype} has no such number"):
        kp.ops.scan("x", "max", neutral, exclusive=True)(x)
    with pytest.raises(InvalidArgumentError, match=rf"neutral is .*{dtype} has no such number"):
        kp.ops.reduction("x", "max", neutral)(mgr.zeros(0, dtype))
    assert kp.ops.reduction("x", "max", neutral)(x).read() == 2  # which need none
    assert kp.ops.scan("x", "max", neutral)(x).read().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("dtype", "neutral"),
    [("int32", 7.0), ("float32", 7), ("complex64", 7), ("uint8", np.float64(7)), ("int8", True)],
)
def test_neutrals_of_other_types(mgr, dtype, neutral):
    x = mgr.tensor_t(np.array([1, 2], dtype))
    assert kp.ops.scan("x", "sum", neutral, exclusive=True, dtype=dtype)(x).read()[0] == neutral
    assert kp.ops.reduction("x", "sum", neutral, dtype=dtype)(mgr.zeros(0, dtype)).read() == neutral
