"""Signatures of custom operations: what they say, and where a fault is."""

from __future__ import annotations

import random
import re
import sys

import pytest

import kompute_py as kp
from kompute_py._custom.declaration import parse
from kompute_py._custom.names import tensor_of_name
from kompute_py._shaders.signature import MISSING
from kompute_py.errors import ArgumentTypeError, SignatureError
from tests.support.operations import Like

pytestmark = pytest.mark.own_driver

PART = r"_(?:load4?|store4?|size|at|dim\d+|stride\d+)"


@pytest.mark.capability("W28", "signatures as text", "kp.CustomOp", "reference/operation_rules")
def test_all_types_and_defaults():
    text = (
        "norm(Tensor x, Tensor? weight, Tensor[] more, Tensor(a!) state, int axis=-1, float eps=1e-5, "
        "bool keepdims=False, str mode='it\\'s', int[] pads=[0, -1], float[] taps=[1, .5], *, float top=inf) "
        "-> (Tensor, Tensor second, Tensor(a!))"
    )
    found = parse(text)
    assert found.name == "norm" and not found.single
    assert [(p.type, p.name, p.alias, p.by_name) for p in found.parameters] == [
        ("Tensor", "x", "", False), ("Tensor?", "weight", "", False), ("Tensor[]", "more", "", False),
        ("Tensor", "state", "a", False), ("int", "axis", "", False), ("float", "eps", "", False),
        ("bool", "keepdims", "", False), ("str", "mode", "", False), ("int[]", "pads", "", False),
        ("float[]", "taps", "", False), ("float", "top", "", True),
    ]  # fmt: skip
    assert [p.default for p in found.parameters[:4]] == [MISSING] * 4
    assert [p.default for p in found.parameters[4:]] == [
        -1, 1e-5, False, "it's", [0, -1], [1.0, 0.5], float("inf"),
    ]  # fmt: skip
    assert [tuple(r) for r in found.results] == [("result", ""), ("second", ""), ("state", "a")]


def test_few():
    assert parse("f() -> ()").results == () and parse("f() -> Tensor").single
    assert [r.name for r in parse("f(Tensor result) -> (Tensor, Tensor)").results] == ["result1", "result2"]


def test_unique_names():
    one, two = parse("f_@UNIQUE@() -> ()"), parse("f_@UNIQUE@() -> ()")
    assert one.name != two.name and one.name.startswith("f_")


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("", 1, "the operation's name is missing"),
        ("f", 2, r"wants '\('"),
        ("f(", 3, "a type is missing"),
        ("f(Tensor)", 9, "the name of a parameter of type Tensor is missing"),
        ("f(Tensor x -> Tensor", 12, "wants ','"),
        ("f(Tensor x) Tensor", 13, "wants '->'"),
        ("f(Tensor x) ->", 15, "a type is missing"),
        ("f(Tensor x) -> int", 16, "a result is a Tensor, not int"),
        ("f(tensor x) -> Tensor", 3, "'tensor' is not a type"),
        ("f(str[] x) -> Tensor", 3, "no lists of str"),
        ("f(dtype[] x) -> Tensor", 3, "no lists of dtype"),
        ("f(dtype x=3) -> ()", 11, "cannot be 3"),
        ("f(dtype x=None) -> ()", 11, "cannot be None"),
        ("f(int x=1.5) -> ()", 9, "cannot be 1.5"),
        ("f(int[] x=[1.5]) -> ()", 11, r"cannot be \[1.5\]"),
        ("f(bool x=1) -> ()", 10, "cannot be 1"),
        ("f(Tensor x=3) -> ()", 12, "cannot be 3"),
        ("f(int x=) -> ()", 9, r"'\)' is not a value"),
        ("f(Tensor(a!) x) -> Tensor(b!)", 20, "no argument has the letter 'b'"),
        ("f(Tensor(a!) x) -> (Tensor(a!), Tensor(a!))", 33, "twice"),
        ("f(Tensor(a!) x, Tensor(a!) y) -> ()", 28, "two arguments"),
        ("f(Tensor(a) x) -> ()", 11, "wants '!'"),
        ("f(Tensor x, Tensor x) -> Tensor", 20, "two parameters"),
        ("f(int a=1, int b) -> ()", 16, "follows one that has"),
        ("f(*, *) -> ()", 6, "twice"),
        ("f(int a, *) -> ()", 13, "no parameter follows"),
        ("f(Tensor x) -> Tensor y z", 25, "'z' stands after"),
        ("f(Tensor x, $) -> ()", 13, r"'\$' has no meaning"),
        ("f(Tensor input) -> Tensor", 10, "GLSL reserves it"),
        ("f(Tensor gl_x) -> Tensor", 10, "GLSL reserves it"),
        ("f(Tensor x) -> Tensor buffer", 23, "GLSL reserves it"),
        ("f(Tensor out) -> Tensor", 10, "an argument of every call"),
        ("f(Tensor x) -> Tensor x", 23, "names something else"),
    ],
)
def test_faults_have_a_column(text, column, part):
    with pytest.raises(kp.errors.SignatureError, match=part) as caught:
        parse(text)
    error = caught.value
    assert isinstance(error, SyntaxError) and isinstance(error, kp.InvalidArgumentError)
    assert (error.offset, error.text) == (column, text)
    assert str(error).splitlines()[-1].index("^") == 4 + column - 1


def test_what_is_no_text_is_refused():
    with pytest.raises(kp.ArgumentTypeError, match="signature is a list; give a str"):
        parse(["f() -> ()"])


def test_any_text_is_read_or_refused_with_a_column():
    words = [
        "f", "x", "Tensor", "Tensor?", "Tensor[]", "(a!)", "int", "float[]", "=", "1", "-2.5e3", "'t'", "[",
        "]",
    ]  # fmt: skip
    words += ["(", ")", ",", "->", "*", "?", "!", "True", "None", " ", "\n", "é", "\0", '"', "nan"]
    choose = random.Random(7)
    read = 0
    for _ in range(3000):
        text = "f(" * choose.randrange(2) + "".join(choose.choices(words, k=choose.randrange(14)))
        text += choose.choice(["", ") -> Tensor", " -> ()"])
        try:
            parse(text)
            read += 1
        except kp.errors.SignatureError as error:
            assert 1 <= error.offset <= len(text) + 1
    assert read > 10


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (r"f(Tensor x, str s='\xzz') -> Tensor", 19), (r"f(Tensor x, str s='\N{no such}') -> Tensor", 19),
        (r"f(Tensor x, str s='\d') -> Tensor", 19), ("f(Tensor x, str s='a\nb') -> Tensor", 19),
        ("f(Tensor x, dtype d='zzz') -> Tensor", 21), ("f(Tensor x, dtype? d='O') -> Tensor", 22),
    ],
)  # fmt: skip
def test_defaults_that_are_none_are_refused(text: str, column: int) -> None:
    with pytest.raises(SignatureError) as caught:
        parse(text)
    assert f"(column {column})" in str(caught.value)


@pytest.mark.parametrize("text", ["'bfloat16'", "'float8_e5m2'", "'f4'", "'float'", "'?'"])
def test_default_dtypes(text: str) -> None:
    assert parse(f"f(Tensor x, dtype d={text}) -> Tensor").parameters[1].default == text[1:-1]


@pytest.mark.capability(
    "W47", "libraries of operations, by name", "kp.op_library", "reference/operation_rules"
)
def test_libraries() -> None:
    library = kp.op_library("tests_of_custom_ops")

    @kp.CustomOp.register(library=library)
    class same(Like):
        signature = "same(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i)")

    assert library.same is same and kp.ops.tests_of_custom_ops.same is same
    assert "tests_of_custom_ops" in dir(kp.ops) and dir(library) == ["name", "same"]
    with pytest.raises(kp.errors.AlreadyExistsError, match="has 'same' already"):
        kp.CustomOp.register(library=library)(same.__wrapped__)
    with pytest.raises(kp.errors.AlreadyExistsError, match="There is a library"):
        kp.op_library("tests_of_custom_ops")
    for wrong, error in (
        ("a b", kp.InvalidArgumentError),
        ("class", kp.InvalidArgumentError),
        (3, kp.ArgumentTypeError),
    ):
        with pytest.raises(error):
            kp.op_library(wrong)
    for taken in ("sum", "elementwise", "sort", "libraries"):  # also before they are first used
        with pytest.raises(kp.errors.AlreadyExistsError, match=rf"kp\.ops\.{taken} .*would hide"):
            kp.op_library(taken)
        assert callable(kp.ops.sum)
    with pytest.raises(AttributeError, match="did you mean 'same'"):
        _ = library.sane
    with pytest.raises(AttributeError, match="no function and no library"):
        _ = kp.ops.missing


def test_libraries_are_libraries() -> None:
    with pytest.raises(ArgumentTypeError, match="library is a str"):
        kp.CustomOp.register(library="mine")  # type: ignore[call-overload]


def test_twice_the_tensors_are_twice_the_work():
    """Names are looked up, not compared with each other."""

    def calls(count):
        tensors = ", ".join(f"Tensor x{i}y" for i in range(count))
        text = f"many({tensors}) -> ({', '.join(['Tensor'] * count)})"
        seen = [0]

        def count_one(*_):
            seen[0] += 1

        sys.setprofile(count_one)
        try:
            parse(text)
        finally:
            sys.setprofile(None)
        return seen[0]

    assert calls(1000) < 2.2 * calls(500)


def test_names_that_belong_to_tensors():
    """As a search through all of them finds, with names that end in digits and in names of parts."""
    tensors, lists = ["x", "x_dim0", "y1", "z2_load"], ["l", "l1", "m_"]
    names = [
        f"{each}{number}{part}"
        for each in (*tensors, *lists, "n")
        for number in ("", "0", "12")
        for part in ("", "_load", "_load4", "_dim0", "_dim", "_dimx", "_stride12", "_size_size", "_")
    ]
    for name in names:
        of_tensors = [each for each in tensors if re.fullmatch(rf"{each}{PART}", name)]
        of_lists = [each for each in lists if re.fullmatch(rf"{each}\d+({PART})?", name)]
        found = tensor_of_name(name, set(tensors), set(lists))
        assert found in (of_tensors or of_lists or [None]), name
