"""Notes of `select`, which decide what the kernels are: no two that differ share a kernel."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._custom.special import in_full
from kompute_py.errors import ArgumentTypeError, InvalidArgumentError


class Pair(NamedTuple):
    first: Any
    second: Any = 0


@dataclasses.dataclass
class Record:
    table: Any
    n: int = 1


class Mode(enum.Enum):
    A = 1
    B = 2


class Plain:
    pass


class Told:
    def __init__(self, n: int) -> None:
        self.n = n

    def __repr__(self) -> str:
        return f"Told({self.n})"


def _long(value: float, dtype: str = "f8") -> np.ndarray:
    array = np.zeros(5000, dtype)
    array[2500] = value
    return array


DIFFERENT = [
    1, 2, True, 1.0, "1", b"1", None, 0.0, -0.0, float("nan"), 1 + 0j, np.float32(1), np.float64(1),
    np.int8(1), 0.1234567890123, 0.1234567890124, np.float64(0.1234567890123),
    np.float64(0.1234567890124), np.array([0.1234567890123]), np.array([0.1234567890124]),
    np.array([[0.1234567890123]]), _long(1), _long(2), _long(1, "f4"), _long(1).reshape(50, 100),
    np.array(1.0), np.array([1, 2]), np.array([1, 2]).astype("i4"), np.array([1, None], object),
    np.array([2, None], object), np.zeros(0), np.zeros((0, 1)), [], (), {}, set(), [1, 2], (1, 2),
    {1: 2}, {1, 2}, frozenset((1, 2)), [[1], 2], [1, [2]], ["1, 2"], [_long(3)], [_long(4)],
    OrderedDict([(1, 2)]), Pair(1), Pair(1, 2), Pair(_long(3)), Pair(_long(4)), Record(_long(3)),
    Record(_long(4)), Record(_long(3), 2), Mode.A, Mode.B, np.dtype("f4"), np.dtype("f8"), np.float32,
    Told(1), Told(2), slice(1), len,
]  # fmt: skip


def test_values_that_differ_have_texts_that_differ() -> None:
    texts = [in_full({"n": each}) for each in DIFFERENT]
    for (one, text), (other, again) in itertools.combinations(zip(DIFFERENT, texts, strict=True), 2):
        assert text != again, (one, other)
    with np.printoptions(precision=1, threshold=3):
        assert [in_full({"n": each}) for each in DIFFERENT] == texts
    assert in_full({"n": _long(1)[::-1][::-1]}) == in_full({"n": _long(1)})


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "note", [Plain(), lambda: 1, Plain().__init__, (n for n in ()), [Plain()], {1: Plain()}]
)
def test_values_without_contents_are_refused(note: Any) -> None:
    """Another object has its address later."""
    with pytest.raises(ArgumentTypeError, match="keep its numbers"):
        in_full({"n": note})


def test_values_that_contain_themselves_are_refused() -> None:
    note: list[Any] = []
    note.append(note)
    with pytest.raises(InvalidArgumentError, match="contains itself"):
        in_full({"n": note})


def test_tables_are_those_of_the_call(mgr: kp.Manager) -> None:
    @kp.CustomOp.register
    class weighted(kp.CustomOp):
        signature = "weighted(Tensor x, Tensor|Scalar w=1.0) -> Tensor"

        def select(self, ksel: kp.FunctionSelection) -> None:
            x, w = ksel.arg_tensor("x"), ksel.arg_tensor_or_value("w")
            assert isinstance(w, kp.typing.ValueArg)
            table = np.zeros(3000)
            table[1500] = w.v + x.shape[0]
            ksel.specialize(table=table)
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.constant("table", ksel.special["table"].astype(np.float32))
            kb.yield_results("table_load(1500)")

    for n, w in itertools.product((2, 3), (0.5, 0.501, 0.5)):
        assert weighted(mgr.zeros(n), w).read().tolist() == [np.float32(w + n)] * n


def _columns(where: str) -> kp.typing.Operation | Any:
    """Its kernels depend on the length of the last axis, which `select` or `generate` keeps `where`."""

    class columns(kp.CustomOp):
        signature = "columns(Tensor x) -> Tensor"

        if where == "slot":
            __slots__ = ("n",)

        def __init__(self) -> None:
            self.limit = 100  # the same for all calls

        def select(self, ksel: kp.FunctionSelection) -> None:
            x = ksel.arg_tensor(0)
            result = ksel.return_new_tensor(x.shape, x.dtype)
            n = x.shape[-1]
            if where == "special":
                ksel.specialize(n=n)
            elif where == "value":
                ksel.value("n", n, "uint32").cols = n
            elif where != "generate":
                {"selection": ksel, "argument": x, "result": result}.get(where, self).n = n

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            if where == "generate":
                self.limit += 1
            kb.yield_results(f"float(i % {ksel.special.get('n', 3)})")

    return kp.CustomOp.register(columns)


def test_specialize_tells_calls_apart(mgr: kp.Manager) -> None:
    columns = _columns("special")
    for n in (3, 2, 3):
        assert columns(mgr.zeros((2, n))).tolist() == [list(range(n))] * 2


@pytest.mark.parametrize("where", ["selection", "argument", "result", "value", "self", "slot", "generate"])
def test_state_that_does_not_tell_calls_apart_is_refused(mgr: kp.Manager, where: str) -> None:
    """Kernels that were generated for one call would serve another."""
    columns = _columns(where)
    name = {"generate": "limit", "value": "cols"}.get(where, "n")
    for _ in range(2):
        with pytest.raises(
            InvalidArgumentError,
            match=rf"sets the attribute '{name}'.*ksel\.specialize\({name}=.*ksel\.special\['{name}'\]",
        ):
            columns(mgr.zeros((2, 3)))
    if where != "generate":
        with pytest.raises(InvalidArgumentError, match="sets the attribute"):
            columns.meta(kp.TensorSpec((2, 3)))


def test_select_may_look_at_a_value_that_it_computes(mgr: kp.Manager) -> None:
    """A prepared call does not serve other numbers then."""

    @kp.CustomOp.register
    class stepped(kp.CustomOp):
        signature = "stepped(Tensor x, float n) -> Tensor"

        def select(self, ksel: kp.FunctionSelection) -> None:
            x = ksel.arg_tensor("x")
            ksel.arg_float("n")
            twice = ksel.value("twice", lambda n: 2 * n, "float32", of=["n"])
            ksel.specialize(large=twice.v > 10)
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.yield_results("twice" if ksel.special["large"] else "-twice")

    assert [stepped(mgr.zeros(1), n).item() for n in (1.0, 50.0, 2.0, 50.0)] == [-2, 100, -4, 100]


def test_what_was_chosen_cannot_be_set(mgr: kp.Manager) -> None:
    @kp.CustomOp.register
    class early(kp.CustomOp):
        signature = "early(Tensor x) -> Tensor"

        def select(self, ksel: kp.FunctionSelection) -> None:
            x = ksel.arg_tensor("x")
            assert ksel.is_given("x") and ksel.spec_of("x") == kp.TensorSpec((1,)) and ksel.name == "early"
            with pytest.raises(AttributeError, match="variant"):
                ksel.variant = "other"  # type: ignore[misc]
            with pytest.raises(TypeError):
                ksel.special["n"] = 1  # type: ignore[index]
            ksel.return_new_tensor(x.shape, x.dtype)

        def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
            kb.yield_results("x_load(i)")

    assert early(mgr.zeros(1)).item() == 0
