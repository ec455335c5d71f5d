"""Formulas: expressions written as in Python and NumPy, ``"a * x + y"``, parsed.

Their types are found in typed.py for certain dtypes of the names, and their GLSL with them.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from .._base.errors import ArgumentTypeError, FormulaError, InvalidArgumentError, kind_of, shown
from .._base.text import nearest
from .functions import ARITY, SYNONYMS, WRITTEN
from .nodes import Node, Own, marked, nodes_of
from .typed import Typed, typed
from .words import GLSL_WORDS

if TYPE_CHECKING:
    import numpy as np

    from .dtypes import Kind

CONSTANTS = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "euler_gamma": 0.5772156649015329,
}
_BINARY = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
_UNARY = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert", ast.Not: "logical_not"}
_COMPARE = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
MOST_NAMES = 256
"""Arguments and results of a formula. Drivers take seconds to compile more."""
_MODULES = ("np", "numpy", "math")
_PREAMBLE = re.compile(r"^[ \t]*(\w+)[ \t]+(\w+)\s*\(([^)]*)\)\s*\{", re.MULTILINE)


class Formula:
    """An expression over tensors and numbers, parsed: ``Formula("a * x + y")``.

    The language is Python's: numbers, ``+ - * / // % **``, comparisons, ``& | ^ ~ << >>``, ``and or not``,
    ``a if c else b``, and the functions and constants of NumPy by name. Names that are neither are arguments,
    in the order in which they first appear. Values are named by ``name = expression``, with ";" or a new
    line after each. If the text ends with an expression, this is the only result, named "result". Else each
    named value is a result, but those with "_" in front of their names.

    `preamble` has functions in GLSL; the expression calls them by name. With `members`, arguments are
    elements of several values with these names: ``a.value`` is the argument "a.value".

    Raises FormulaError, with the column of the fault, ArgumentTypeError if the texts are not str,
    InvalidArgumentError for more than 256 arguments and results.
    """

    def __init__(self, text: str, preamble: str = "", members: tuple[str, ...] = ()) -> None:
        for what, given in (("A formula", text), ("The preamble", preamble)):
            if not isinstance(given, str):
                raise ArgumentTypeError(f"{what} is a str, not {kind_of(given)}")
        self.text: str = text
        self.preambles: tuple[str, ...] = (preamble,) if preamble else ()
        self.own: dict[str, Own] = _functions_of(preamble)
        reader = _Reader(text, self.own, members)
        self.outputs: dict[str, Node] = reader.outputs
        """The results by name."""
        self.names: tuple[str, ...] = _used(reader.arguments, self.outputs)
        """The names of the arguments, in the order in which they first appear in the text."""
        self._typed: dict[Any, Typed] = {}
        self._check_names()

    def _check_names(self) -> None:
        count = len(self.names) + len(self.outputs)
        if count > MOST_NAMES:
            raise InvalidArgumentError(
                f"The formula has {len(self.names)} arguments and {len(self.outputs)} results; {MOST_NAMES} "
                "together are the most. Put arrays into one, as kp.ops.stack does, and combine along its axis"
            )

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(self.outputs)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    def of(self, **parts: Formula) -> Formula:
        """The formula with others in place of arguments. Names that both have are one argument; those of the
        others stand where the replaced ones were.

        Raises InvalidArgumentError for a name that is not an argument, a formula with several results, two
        preambles with different functions of one name, and more than 256 arguments and results.
        """
        names = self.names
        for name, part in parts.items():
            if name not in names:
                raise InvalidArgumentError(
                    f"The formula {self.text!r} has no argument {shown(name)}{nearest(name, names)}"
                )
            if len(part.outputs) != 1:
                raise InvalidArgumentError(
                    f"{part.text!r} has {len(part.outputs)} results; one takes the place of {name!r}"
                )
        made = Formula.__new__(Formula)
        made.text = self.text + "".join(f"; {name} = {part.text}" for name, part in parts.items())
        made.preambles = preambles_of(self, *parts.values())
        made.own = {name: own for each in (self, *parts.values()) for name, own in each.own.items()}
        inner = {name: next(iter(part.outputs.values())) for name, part in parts.items()}
        done: dict[Node, Node] = {}
        for node in nodes_of(self.outputs.values()):
            done[node] = _replaced(node, inner, done)
        made.outputs = {name: done[node] for name, node in self.outputs.items()}
        made.names = tuple(
            dict.fromkeys(
                each for name in names for each in (parts[name].names if name in parts else (name,))
            )
        )
        made._typed = {}
        made._check_names()
        return made

    def typed(
        self,
        types: Mapping[str, Kind],
        features: frozenset[str] | None = None,
        dtype: np.dtype[Any] | tuple[np.dtype[Any], ...] | None = None,
        beyond: bool = False,
    ) -> Typed:
        """The formula for arguments of these types, on a device with these features (None: with all).

        A type is a dtype, or for a number without one its kind: "bool", "int", "float" or "complex". `dtype`
        is that of the results instead of their own, a tuple that of each. With `beyond`, ints that are
        compared may be out of bounds of what they are compared with; this takes longer.

        Raises ArgumentTypeError if types do not fit, InvalidArgumentError for a number that does not,
        UnimplementedError for what the device or GLSL lacks; all name the column.
        """
        key = (tuple(types[name] for name in self.names), features, dtype, beyond)
        found = self._typed.get(key)
        if found is None:
            if len(self._typed) >= 256:
                self._typed.clear()
            found = self._typed[key] = typed(self.outputs, self.preambles, types, features, dtype, beyond)
        return found


def _used(arguments: Iterable[str], outputs: Mapping[str, Node]) -> tuple[str, ...]:
    """Those that the results depend on, in their order."""
    found = {node.value for node in nodes_of(outputs.values()) if node.op == "name"}
    return tuple(each for each in arguments if each in found)


def _replaced(node: Node, inner: Mapping[str, Node], done: Mapping[Node, Node]) -> Node:
    if node.op == "name":
        return inner.get(node.value, node)
    args = tuple(done[each] for each in node.args)
    same = all(a is b for a, b in zip(args, node.args, strict=True))
    return node if same else Node(node.op, args, node.value, node.text, node.column)


_OWN_TYPES = ("float", "double", "int", "uint", "int64_t", "uint64_t", "bool", "vec2", "dvec2")


def preambles_of(*formulas: Formula) -> tuple[str, ...]:
    """The preambles of formulas that stand in one kernel, each once.

    Raises InvalidArgumentError if two that differ have functions of one name.
    """
    found = tuple(dict.fromkeys(text for each in formulas for text in each.preambles))
    names: set[str] = set()
    for text in found:
        own = _functions_of(text).keys()
        twice = sorted(names & own)
        if twice:
            raise InvalidArgumentError(f"Two preambles define {twice[0]!r}; rename one")
        names |= own
    return found


def _functions_of(preamble: str) -> dict[str, Own]:
    found = {}
    for type_, name, parameters in _PREAMBLE.findall(preamble):
        if type_ in ("else", "return"):
            continue
        types = tuple(
            next(word for word in each.split() if word not in ("in", "const", "highp"))
            for each in parameters.split(",")
            if each.strip() and each.strip() != "void"
        )
        if all(each in _OWN_TYPES for each in (type_, *types)):
            found[name] = Own(name, type_, types)
    return found


class _Reader:
    def __init__(self, text: str, own: Mapping[str, Own], members: tuple[str, ...] = ()) -> None:
        self.text = text
        self.own = own
        self.members = members
        self.named: dict[str, Node] = {}
        self.arguments: dict[str, Node] = {}
        self.outputs: dict[str, Node] = {}
        self.done: dict[ast.AST, Node] = {}
        lines = text.split("\n")
        # Python wants statements to begin in the first column; blanks in front of them mean nothing here.
        self.indents = [len(line) - len(line.lstrip()) for line in lines]
        depth = 0
        for number, line in enumerate(lines):
            if depth > 0:
                self.indents[number] = 0
            depth += sum(line.count(c) for c in "([") - sum(line.count(c) for c in ")]")
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        code = "\n".join(line[indent:] for line, indent in zip(lines, self.indents, strict=True))
        try:
            tree = ast.parse(code)
        except SyntaxError as error:
            row, column = min(max(error.lineno or 1, 1), len(lines)), max(error.offset or 1, 1)
            conditional = "?" in lines[row - 1] and error.msg == "invalid syntax"
            message = "there is no c ? a : b; write a if c else b" if conditional else error.msg
            self.fail(message, self.position(row, column - 1))
        except (RecursionError, MemoryError):
            self.fail("it nests too deep for Python's parser: give parts of it names, t = ...", 0)
        except ValueError as error:
            self.fail(str(error), 0)
        if not tree.body:
            self.fail("there is no expression", 0)
        for number, statement in enumerate(tree.body):
            self.statement(statement, number == len(tree.body) - 1)
        if not self.outputs:
            self.outputs = {name: node for name, node in self.named.items() if name[0] != "_"}
        if not self.outputs:
            self.fail("there is no result: end with an expression, or name one without '_' in front", 0)

    def position(self, line: int, column: int) -> int:
        return min(self.starts[line - 1] + self.indents[line - 1] + column, max(len(self.text) - 1, 0))

    def fail(self, message: str, at: Any) -> NoReturn:
        column = at if isinstance(at, int) else self.column(at)
        if self.text.strip():
            message = marked(f"The formula cannot be read: {message}", self.text, column)
        else:
            message = f"The formula cannot be read: {message}"
        raise FormulaError(message, self.text, column + 1)

    def column(self, tree: Any) -> int:
        within = tree.col_offset  # in bytes
        if not self.text.isascii():
            line = self.text.split("\n")[tree.lineno - 1][self.indents[tree.lineno - 1] :]
            within = len(line.encode()[:within].decode(errors="ignore"))
        return self.position(tree.lineno, within)

    def statement(self, tree: ast.stmt, last: bool) -> None:
        if isinstance(tree, ast.Expr):
            if not last:
                self.fail("an expression without a name stands at the end only", tree)
            self.outputs = {"result": self.node(tree.value)}
        elif (
            isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name)
        ):
            name = tree.targets[0].id
            node = self.node(tree.value)
            if name in self.named:
                self.fail(f"{name!r} is assigned twice", tree)
            if name in self.arguments:
                self.fail(f"{name!r} is an argument, so it cannot be assigned", tree)
            self.check_name(name, tree)
            self.named[name] = node
        else:
            self.fail("formulas have expressions and 'name = expression'", tree)

    def check_name(self, name: str, tree: Any) -> None:
        if name in CONSTANTS or name in ARITY or name in SYNONYMS or name in self.own:
            self.fail(f"{name!r} is a function or constant, so it cannot name a value", tree)
        if name in GLSL_WORDS or name.startswith(("gl_", "kp_")) or "__" in name or not name.isascii():
            hint = f": call it {name}_" if name in GLSL_WORDS else ""
            self.fail(f"{name!r} cannot be a name, because kernels use it or GLSL reserves it{hint}", tree)

    def made(self, op: str, tree: Any, *args: Node, value: Any = None) -> Node:
        return Node(op, args, value, self.text, self.column(tree))

    def node(self, tree: ast.expr) -> Node:
        """The node of an expression. Its parts come before it, in the order of the text, which becomes that
        of the arguments. Without recursion: conditionals and sums may have thousands of parts.
        """
        waiting = [tree]
        while waiting:
            part = waiting[-1]
            missing = [each for each in self.parts(part) if each not in self.done]
            if missing:
                waiting += reversed(missing)
            else:
                if part not in self.done:
                    self.done[part] = self.of_parts(part)
                waiting.pop()
        return self.done[tree]

    def parts(self, tree: ast.expr) -> list[ast.expr]:
        """The expressions in an expression, in the order of the text."""
        if isinstance(tree, ast.BinOp):
            return [tree.left, tree.right]
        if isinstance(tree, ast.UnaryOp):
            return [tree.operand]
        if isinstance(tree, ast.BoolOp):
            return tree.values
        if isinstance(tree, ast.Compare):
            return [tree.left, *tree.comparators]
        if isinstance(tree, ast.IfExp):
            return [tree.body, tree.test, tree.orelse]
        if isinstance(tree, ast.Attribute):
            return [tree.value] if tree.attr in ("real", "imag") else []
        if isinstance(tree, ast.Call):
            return [] if self.is_odd(tree) else [each for each in tree.args if not self.is_none(each)]
        return []

    def is_odd(self, tree: ast.Call) -> bool:
        """Whether a call has what no function takes."""
        return bool(tree.keywords) or any(isinstance(each, ast.Starred) for each in tree.args)

    def is_none(self, tree: ast.expr) -> bool:
        return isinstance(tree, ast.Constant) and tree.value is None

    def of_parts(self, tree: ast.expr) -> Node:
        """The node of an expression whose parts have theirs."""
        if isinstance(tree, ast.Name):
            return self.name(tree)
        if isinstance(tree, ast.Constant):
            if type(tree.value) not in (bool, int, float, complex):
                self.fail(f"{tree.value!r} is not a number", tree)
            return self.made("number", tree, value=tree.value)
        if isinstance(tree, ast.BinOp):
            op = _BINARY.get(type(tree.op))
            if op is None:
                self.fail("formulas have no matrix products; '*' is elementwise", tree)
            return self.made(op, tree, self.done[tree.left], self.done[tree.right])
        if isinstance(tree, ast.UnaryOp):
            return self.made(_UNARY[type(tree.op)], tree, self.done[tree.operand])
        if isinstance(tree, ast.BoolOp):
            op = "logical_and" if isinstance(tree.op, ast.And) else "logical_or"
            return self.chain(op, tree, [self.done[each] for each in tree.values])
        if isinstance(tree, ast.Compare):
            return self.comparison(tree)
        if isinstance(tree, ast.IfExp):
            return self.made(
                "where", tree, *(self.done[each] for each in (tree.test, tree.body, tree.orelse))
            )
        if isinstance(tree, ast.Attribute):
            if isinstance(tree.value, ast.Name) and tree.value.id in _MODULES and tree.attr in CONSTANTS:
                return self.made("number", tree, value=CONSTANTS[tree.attr])
            if tree.attr in self.members and isinstance(tree.value, ast.Name):
                return self.name(tree.value, f".{tree.attr}")
            if tree.attr in ("real", "imag"):
                return self.made(tree.attr, tree, self.done[tree.value])
            there = ", ".join(f".{each}" for each in (*self.members, "real", "imag"))
            self.fail(f"values have no attribute {tree.attr!r} here; there are {there}", tree)
        if isinstance(tree, ast.Call):
            return self.call(tree)
        self.fail("formulas have numbers, names, operators and functions only", tree)

    def chain(self, op: str, tree: ast.expr, nodes: list[Node]) -> Node:
        whole = nodes[0]
        for each in nodes[1:]:
            whole = self.made(op, tree, whole, each)
        return whole

    def comparison(self, tree: ast.Compare) -> Node:
        nodes = [self.done[each] for each in (tree.left, *tree.comparators)]
        parts = []
        for op, left, right in zip(tree.ops, nodes[:-1], nodes[1:], strict=True):
            if type(op) not in _COMPARE:
                self.fail("formulas compare with < <= > >= == !=", tree)
            parts.append(self.made(_COMPARE[type(op)], tree, left, right))
        return self.chain("logical_and", tree, parts)

    def name(self, tree: ast.Name, member: str = "") -> Node:
        name = tree.id
        if name in self.named:
            if member:
                self.fail(f"{name!r} is one value, which has no {member}", tree)
            return self.named[name]
        if name + member in self.arguments:
            return self.arguments[name + member]
        if name == "e":
            self.fail("'e' may be Euler's number or an argument: write np.e, or give it another name", tree)
        if name in CONSTANTS:
            return self.made("number", tree, value=CONSTANTS[name])
        if name in self.own or name in ARITY or name in SYNONYMS:
            self.fail(f"{name!r} is a function: {name}(...)", tree)
        self.check_name(name, tree)
        if name.startswith("_"):
            self.fail(f"{name!r} has no value yet, and the names of arguments do not begin with '_'", tree)
        name += member
        node = self.arguments[name] = self.made("name", tree, value=name)
        return node

    def call(self, tree: ast.Call) -> Node:
        called = tree.func
        if (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id in _MODULES
        ):
            name = called.attr
        elif isinstance(called, ast.Name):
            name = called.id
        else:
            self.fail("a function is called by its name", tree)
        if self.is_odd(tree):
            self.fail(f"{name} takes arguments by position only", tree)
        if name == "clip" and name not in self.own:
            return self.clip(tree)
        for each in tree.args:
            if self.is_none(each):
                self.fail("None is not a number", each)
        args = [self.done[each] for each in tree.args]
        if name in self.own:
            own = self.own[name]
            self.count(name, len(own.parameters), len(args), tree)
            return self.made("call", tree, *args, value=own)
        op = SYNONYMS.get(name, name)
        if op not in ARITY:
            near = nearest(name, (*ARITY, *SYNONYMS, *self.own), 0.75)
            if name in WRITTEN:
                near = f": write {WRITTEN[name]}"
            elif near == ".":
                near = ": formulas have functions of single elements; others, as kp.ops.sum, take arrays"
            self.fail(f"there is no function {name!r}{near}", tree)
        self.count(name, ARITY[op], len(args), tree)
        return self.made(op, tree, *args)

    def clip(self, tree: ast.Call) -> Node:
        """A bound of None is left out."""
        self.count("clip", ARITY["clip"], len(tree.args), tree)
        if self.is_none(tree.args[0]):
            self.fail("None is not a number", tree.args[0])
        found = self.done[tree.args[0]]
        for op, bound in zip(("maximum", "minimum"), tree.args[1:], strict=True):
            if not self.is_none(bound):
                found = self.made(op, tree, found, self.done[bound], value="clip")
        return found

    def count(self, name: str, wanted: int, given: int, tree: Any) -> None:
        if wanted != given:
            self.fail(f"{name} takes {wanted} argument{'s' if wanted != 1 else ''}; {given} are given", tree)
