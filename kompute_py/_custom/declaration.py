"""The text that declares an operation: ``"softmax(Tensor x, int axis=-1) -> Tensor"``.

The grammar is that of PyTorch's operator schemas, without its aliases for views::

    declaration = NAME "(" [ parameter { "," parameter } ] ")" "->" results
    parameter   = type NAME [ "=" value ]  |  "*"
    type        = "Tensor" | "Tensor(a!)" | "Tensor?" | "Tensor[]" | "Tensor|Scalar"
                | "Tensor|Scalar?" | "int" | "float" | "bool" | "str" | "dtype" | "dtype?"
                | "int[]" | "int[]?" | "float[]"
    results     = "()" | result | "(" result { "," result } ")"
    result      = ( "Tensor" | "Tensor(a!)" ) [ NAME ]
    value       = a number | True | False | None | a quoted text | a list of numbers

``Tensor(a!)`` is an argument that the operation writes, and among the results the same argument; the letter
tells several of them apart. ``Tensor|Scalar`` takes a tensor or a number, with ``?`` also None. ``dtype``
takes all that NumPy takes as a dtype; its default is a name. Parameters after ``*`` are given by name only.
``@UNIQUE@`` in the name stands for a number that no other operation has.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import math
import re
import warnings
from typing import Any, NamedTuple, NoReturn

from .._base.arrays import to_dtype
from .._base.errors import ArgumentTypeError, SignatureError, kind_of
from .._formulas.dtypes import SMALL_FLOATS
from .._formulas.words import GLSL_WORDS
from .._shaders.signature import MISSING
from .names import tensor_of_name

_unique = itertools.count()
_TOKEN = re.compile(
    r"""\s*(?: (?P<word>[A-Za-z_]\w*)
            | (?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf\b|nan\b))
            | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
            | (?P<mark>->|[()\[\],=?!*|]) )""",
    re.VERBOSE,
)
SCALARS = ("int", "float", "bool", "str", "dtype")
_VALUES = {"True": True, "False": False, "None": None}


class Parameter(NamedTuple):
    """A parameter of a declaration."""

    name: str
    type: str
    """As written, without the letter: "Tensor", "Tensor?", "Tensor[]", "int", "int[]", ..."""
    alias: str
    """The letter of ``Tensor(a!)``; "" for others."""
    default: Any
    by_name: bool
    """Given by name only."""

    @property
    def is_tensor(self) -> bool:
        """Whether it takes tensors."""
        return self.type.startswith("Tensor")

    @property
    def left_out(self) -> Any:
        """Its value in a call that does not give it; MISSING if the call must."""
        if self.default is MISSING and self.type in ("Tensor?", "Tensor|Scalar?"):
            return None
        return self.default

    def __str__(self) -> str:
        type_ = f"Tensor({self.alias}!)" if self.alias else self.type
        return f"{type_} {self.name}{'' if self.default is MISSING else f'={self.default!r}'}"


class Result(NamedTuple):
    """A result of a declaration."""

    name: str
    alias: str
    """The letter of the argument that it is; "" for a new tensor."""


class Declaration(NamedTuple):
    """A signature that was read."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    single: bool
    """One result, without parentheses: a call returns it, not a tuple."""
    text: str


def parse(text: str) -> Declaration:
    """The declaration that `text` is.

    Raises SignatureError, with the column of the fault, and ArgumentTypeError if `text` is not a str.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f'The signature is {kind_of(text)}; give a str, such as "scale(Tensor x, float factor) -> Tensor"'
        )
    return _Parser(text.replace("@UNIQUE@", str(next(_unique)))).declaration()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                column = at + len(text[at:]) - len(text[at:].lstrip())
                self.fail(f"{text[column]!r} has no meaning here", column)
            kind = str(found.lastgroup)
            self.tokens.append((kind, found[kind], found.start(kind)))
            at = found.end()
        self.tokens.append(("end", "", end))
        self.next = 0
        self.columns: dict[str, int] = {}
        """Where the names of arguments and results stand."""
        self.names: set[str] = set()
        self.letters: dict[str, str] = {}
        """The arguments that are written, by their letters."""
        self.returned: set[str] = set()
        """The letters of results."""
        self.unnamed = itertools.chain(["result"], (f"result{number}" for number in itertools.count(1)))

    def fail(self, message: str, column: int | None = None) -> NoReturn:
        if column is None:
            column = self.tokens[self.next][2]
        raise SignatureError(
            f"The signature cannot be read: {message} (column {column + 1})\n    {self.text}\n"
            f"    {' ' * column}^",
            self.text,
            column + 1,
        )

    # -- tokens ----------------------------------------------------------------------------------------------

    def peek(self) -> str:
        return self.tokens[self.next][1]

    def take(self, text: str) -> bool:
        if self.tokens[self.next][1] == text and self.tokens[self.next][0] != "text":
            self.next += 1
            return True
        return False

    def need(self, text: str, what: str) -> None:
        if not self.take(text):
            found = self.peek()
            self.fail(f"{what} wants {text!r}, not {found!r}" if found else f"{what} wants {text!r}")

    def word(self, what: str) -> str:
        kind, text, _ = self.tokens[self.next]
        if kind != "word":
            self.fail(f"{what} is missing" if kind in ("mark", "end") else f"{text} is not {what}")
        self.next += 1
        return text

    def check_name(self, name: str, column: int) -> None:
        """Names of arguments and results are names in the kernels, too."""
        if name in ("out", "donate", "wait", "signal"):
            self.fail(f"{name!r} is an argument of every call", column)
        if name in GLSL_WORDS or name.startswith(("gl_", "kp_")) or "__" in name:
            self.fail(f"{name!r} cannot be a name, because kernels use it and GLSL reserves it", column)
        if keyword.iskeyword(name):
            self.fail(f"{name!r} cannot be a name, because Python reserves it", column)
        self.columns[name] = column

    def check_kernel_names(self, parameters: list[Parameter], results: tuple[Result, ...]) -> None:
        """No name is one that a tensor brings into kernels."""
        lists = {each.name for each in parameters if each.type == "Tensor[]"}
        tensors = {each.name for each in parameters if each.is_tensor and each.name not in lists}
        tensors.update([each.name for each in results if not each.alias])
        for name in [*(each.name for each in parameters), *(each.name for each in results)]:
            tensor = tensor_of_name(name, tensors, lists)
            if tensor is not None:
                self.fail(
                    f"{name!r} cannot be a name, because it belongs to {tensor!r} in kernels",
                    self.columns.get(name, self.columns.get(tensor)),
                )

    # -- grammar ---------------------------------------------------------------------------------------------

    def declaration(self) -> Declaration:
        name = self.word("the operation's name")
        self.need("(", f"the operation {name!r}")
        parameters: list[Parameter] = []
        by_name = False
        if not self.take(")"):
            while True:
                if self.peek() == "*":
                    if by_name:
                        self.fail("'*' stands twice")
                    self.next += 1
                    by_name = True
                else:
                    parameters.append(self.parameter(parameters, by_name))
                if self.take(")"):
                    break
                self.need(",", "the list of parameters")
        if (by_name and not parameters[-1:]) or (by_name and not parameters[-1].by_name):
            self.fail("no parameter follows '*'")
        self.need("->", "the declaration, before its results,")
        results, single = self.results()
        if self.tokens[self.next][0] != "end":
            self.fail(f"{self.peek()!r} stands after the results")
        self.check_kernel_names(parameters, results)
        return Declaration(name, tuple(parameters), results, single, self.text)

    def type(self) -> tuple[str, str]:
        column = self.tokens[self.next][2]
        name = self.word("a type")
        if name == "Tensor":
            if self.take("("):
                alias = self.word("the letter of an argument that is written, as in Tensor(a!),")
                self.need("!", "an argument that is written, Tensor(a!),")
                self.need(")", "an argument that is written, Tensor(a!),")
                return "Tensor", alias
            if self.take("?"):
                return "Tensor?", ""
            if self.take("|"):
                self.need("Scalar", "a tensor or a number, Tensor|Scalar,")
                return "Tensor|Scalar?" if self.take("?") else "Tensor|Scalar", ""
        elif name not in SCALARS:
            self.fail(
                f"{name!r} is not a type; the types are Tensor, Tensor?, Tensor[], Tensor(a!), "
                "Tensor|Scalar, Tensor|Scalar?, int, float, bool, str, dtype, dtype?, int[], int[]? and "
                "float[]",
                column,
            )
        elif name == "dtype" and self.take("?"):
            return "dtype?", ""
        if self.take("["):
            self.need("]", f"the type {name}[]")
            if name in ("bool", "str", "dtype"):
                self.fail(f"there are no lists of {name}", column)
            if name == "int" and self.take("?"):
                return "int[]?", ""
            return f"{name}[]", ""
        return name, ""

    def parameter(self, before: list[Parameter], by_name: bool) -> Parameter:
        kind, alias = self.type()
        column = self.tokens[self.next][2]
        name = self.word(f"the name of a parameter of type {kind}")
        if name in self.names:
            self.fail(f"{name!r} is the name of two parameters", column)
        self.check_name(name, column)
        self.names.add(name)
        if alias in self.letters:
            self.fail(f"the letter {alias!r} stands for two arguments", column)
        if alias:
            self.letters[alias] = name
        default = MISSING
        if self.take("="):
            default = self.value(kind, name)
        elif not by_name and before and before[-1].default is not MISSING:
            self.fail(f"{name!r} has no default value and follows one that has", column)
        return Parameter(name, kind, alias, default, by_name)

    def value(self, kind: str, name: str) -> Any:
        column = self.tokens[self.next][2]
        if self.take("["):
            items = []
            while not self.take("]"):
                items.append(self.scalar())
                if self.peek() != "]":
                    self.need(",", "a list of numbers")
            value: Any = items
        else:
            value = self.scalar()
        if not _fits(value, kind):
            self.fail(f"the default of {kind} {name} cannot be {value!r}", column)
        return float(value) if kind == "float" else [float(v) for v in value] if kind == "float[]" else value

    def scalar(self) -> Any:
        kind, text, _ = self.tokens[self.next]
        self.next += 1
        if kind == "number":
            number = int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
            if abs(number) >= 2**64 if type(number) is int else math.isinf(number) and "inf" not in text:
                self.next -= 1
                self.fail(f"{text} is beyond the numbers of kernels")
            return number
        if kind == "text":
            return self.quoted(text)
        if kind == "word" and text in _VALUES:
            return _VALUES[text]
        if kind == "word" and text in ("inf", "nan"):
            return float(text)
        self.next -= 1
        self.fail(f"{text!r} is not a value" if text else "a value is missing")

    def quoted(self, text: str) -> Any:
        """The value of the quoted text that was just taken."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of unknown escapes
            try:
                return ast.literal_eval(text)
            except (SyntaxError, ValueError, Warning):
                self.next -= 1
                self.fail(f"{text} is not a valid string: it has an unknown escape")

    def results(self) -> tuple[tuple[Result, ...], bool]:
        if not self.take("("):
            return (self.result(),), True
        found: list[Result] = []
        if not self.take(")"):
            while True:
                found.append(self.result())
                if self.take(")"):
                    break
                self.need(",", "the list of results")
        return tuple(found), False

    def result(self) -> Result:
        column = self.tokens[self.next][2]
        type_, alias = self.type()
        if type_ != "Tensor":
            self.fail(f"a result is a Tensor, not {type_}", column)
        if alias:
            if alias not in self.letters:
                self.fail(f"no argument has the letter {alias!r}", column)
            if alias in self.returned:
                self.fail(f"the argument with the letter {alias!r} is a result twice", column)
            self.returned.add(alias)
        name = ""
        if self.tokens[self.next][0] == "word":
            column = self.tokens[self.next][2]
            name = self.word("a name")
            if name in self.names and name != self.letters.get(alias):
                self.fail(f"{name!r} names something else", column)
            self.check_name(name, column)
        elif alias:
            name = self.letters[alias]
        else:
            name = next(each for each in self.unnamed if each not in self.names)
        self.names.add(name)
        return Result(name, alias)


def _is_dtype(name: str) -> bool:
    if name in SMALL_FLOATS:
        return True
    try:
        to_dtype(name)
    except ArgumentTypeError:
        return False
    return True


def _fits(value: Any, kind: str) -> bool:
    if kind in ("Tensor?", "Tensor|Scalar?") and value is None:
        return True
    if kind in ("Tensor|Scalar", "Tensor|Scalar?"):
        return isinstance(value, (bool, int, float))
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str)
    if kind in ("dtype", "dtype?"):
        return (value is None and kind == "dtype?") or (isinstance(value, str) and _is_dtype(value))
    if kind == "int":
        return type(value) is int
    if kind == "float":
        return type(value) in (int, float)
    if kind == "int[]?" and (value is None or type(value) is int):
        return True
    if kind in ("int[]", "int[]?", "float[]"):
        allowed = (int,) if kind != "float[]" else (int, float)
        return isinstance(value, list) and all(type(each) in allowed for each in value)
    return False
