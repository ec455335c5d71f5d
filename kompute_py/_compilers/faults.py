"""Code that DXC and Slang compile to other numbers than the source says: refused by name.

What the SPIR-V shows is looked for there (`of_module`). Folded constants and chosen functions are looked for
in DXC's syntax tree (`of_tree`), which has types and values, and in the source for Slang (`of_text`), which
shows no tree.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .spirv_words import EXTENDED, Module

Place = tuple[str, int, int]
"""A file, a line and a column."""
NOWHERE: Place = ("", 0, 0)

# -- in SPIR-V ---------------------------------------------------------------------------------------

_ABS, _HIGHEST = 5, 75  # SAbs and FindUMsb of GLSL.std.450
_COUNT = 205  # OpBitCount
_CONSTANTS = range(41, 53)  # OpConstantTrue to OpSpecConstantOp
_TO_FLOAT, _CONVERT = (111, 112), (113, 114)  # OpConvertSToF, UToF; OpUConvert, SConvert
_SIGNED_CONVERT = 114
NARROWED = "a float made of an integer with more bits has its low bits only"


def of_module(module: Module) -> str | None:
    """Names an operation that compilers turn into wrong numbers, and a form that is right."""
    words, ints = module.words, module.ints
    values: dict[int, tuple[int, bool]] = {}  # of integers, as `ints`
    widened: set[int] = set()
    narrowed: set[int] = set()
    for opcode, at, length in (*(each for each in module.head if each[0] in _CONSTANTS), *module.body):
        if opcode in _TO_FLOAT and words[at + 3] in narrowed:
            return NARROWED
        if length > 3 and words[at + 1] in ints:
            size, signed = values[words[at + 2]] = ints[words[at + 1]]
            from_size, from_signed = values.get(words[at + 3], (0, False))
            if opcode in _CONVERT and from_size > size:
                narrowed.add(words[at + 2])
            if opcode == _SIGNED_CONVERT and not signed and from_signed and from_size < 32:  # for countbits
                widened.add(words[at + 2])
            if opcode == EXTENDED and words[at + 4] == _ABS and not signed:
                return "abs of an unsigned integer is computed as of a signed one: leave it out"
            if opcode == EXTENDED and words[at + 4] == _HIGHEST and values.get(words[at + 5], (0, False))[1]:
                return (
                    "firstbithigh of a signed integer is computed as of an unsigned one: convert it to uint"
                )
            if opcode == _COUNT and words[at + 3] in widened:
                return "countbits of an int16_t counts its sign in 32 bits: convert it to uint16_t"
    return None


# -- in the source -----------------------------------------------------------------------------------

_NUMBER = r"(?:0[xX][0-9a-fA-F]+|\d+)(?:[uU]?[lL]?|[lL][uU])"  # of 32 bits, which one l leaves it
# At the beginning of an operand, and with an amount that is a number, too.
_SHIFT = re.compile(rf"(?:[=(,?:|&^;{{}}\[]|\breturn\b)\s*({_NUMBER})\s*<<\s*(\d+)[uU]?\b")
_NAMED = re.compile(
    rf"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+({_NUMBER})[ \t]*$"
    rf"|\bconst\s+(?:u?int|u?int32_t)\s+(\w+)\s*=\s*({_NUMBER})\s*;",
    re.MULTILINE,
)
_COUNTED = re.compile(r"\bcountbits\s*\(\s*(?:\(?\s*int(?:8|16)_t\d?\s*[()]|(\w+)\s*\))")
_SMALL = re.compile(r"\bconst\s+int(?:8|16)_t\d?\s+(\w+)")


def of_slang(module: Module, code: str) -> Iterator[tuple[Place, str]]:
    """The places in a source that Slang compiles to other numbers, with a sentence for each: ``1l << 40``.
    In `code`, its text without comments, a name that stands for one number, by a macro or as a constant, is
    that number.
    """
    if fault := of_module(module):
        yield NOWHERE, fault
    numbers = {first or second: a or b for first, a, second, b in _NAMED.findall(code)}
    if numbers and "<<" in code:
        names = "|".join(map(re.escape, numbers))
        code = re.sub(rf"(?<!define )\b(?:{names})\b(?!\s*=[^=])", lambda found: numbers[found[0]], code)
    for number, amount in _SHIFT.findall(code):
        if int(amount) >= 32:
            yield NOWHERE, f"{number} << {amount} is 0: {number} has 32 bits, write ll or ull for 64"
    small = set(_SMALL.findall(code))
    for name in _COUNTED.findall(code):
        if not name or name in small:
            yield NOWHERE, "countbits of an int16_t counts its sign in 32 bits: convert it to uint16_t"


_SUFFIXED = re.compile(r"\b((0[xX])[0-9a-fA-F]+|\d+)([uU][lL]?|[lL][uU]?)\b")


def _of_numbers(code: str) -> Iterator[str]:
    """A sentence for each number whose type does not have it: ``3000000000l`` is negative in DXC."""
    for number, hexadecimal, suffix in _SUFFIXED.findall(code):
        if int(number, 0 if hexadecimal else 10) >> (32 if hexadecimal or "u" in suffix.lower() else 31):
            yield f"{number}{suffix} has 32 bits, which are too few: write ll or ull for 64"


# -- in DXC's syntax tree ----------------------------------------------------------------------------

_LINE = re.compile(r"([ |`-]*)(\w+) (0x[0-9a-f]+) (.*)")
_PLACE = re.compile(r"([^\s,]*?):(\d+):(\d+)|col:(\d+)")
_TYPE = re.compile(r"'([^']*)'(?::'([^']*)')?")
_REFERRED = re.compile(r"(Var|EnumConstant|Function) (0x[0-9a-f]+) '([^']*)'")
_DECLARED = re.compile(r"(\w+) '[^']*'")
_ELEMENT = re.compile(r"(?:(?:vector|matrix)<)?([\w ]+?)(?:, \d+)*>?")
_BITS = {
    "literal int": 64, "long long": 64, "unsigned long long": 64, "int": 32, "unsigned int": 32, "long": 32,
    "unsigned long": 32, "short": 16, "unsigned short": 16, "int16_t": 16, "uint16_t": 16, "double": 64,
    "float": 32, "half": 16,
}  # fmt: skip
_THROUGH = {
    (64, 32): "write (float)(double)x",
    (64, 16): "write (half)(double)x",
    (32, 16): "write (half)(float)x",
}
_SHIFTED = (
    "a constant of {} bits shifted by {} is folded wrongly: shift it by {}, or write ll or ull for 64 bits"
)
_ROUNDED = {
    16: "an int16_t of a float is rounded to a half first: write (int16_t)(int)x",
    32: "an int of a double is rounded to a float first: write (int)(int64_t)x",
}
_CASTS = ("ParenExpr", "ImplicitCastExpr", "CStyleCastExpr", "CXXFunctionalCastExpr")
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63),
    "/": lambda a, b: int(a / b) if b else 0, "%": lambda a, b: a - b * int(a / b) if b else 0,
}  # fmt: skip


class _Node(NamedTuple):
    """A node of the tree that ``-ast-dump`` prints."""

    kind: str
    identity: str
    text: str
    """All after its identity."""
    place: Place
    parts: list[_Node]

    @property
    def type(self) -> str:
        """Without names that stand for others: "unsigned int", "vector<float, 3>"."""
        found = _TYPE.search(self.text)
        return "" if found is None else (found[2] or found[1]).removeprefix("const ").removesuffix(" &")

    @property
    def bits(self) -> int:
        """Those of a number, or of a vector's; 0 for all else."""
        found = _ELEMENT.fullmatch(self.type)
        return 0 if found is None else _BITS.get(found[1], 0)

    def below(self) -> Iterator[_Node]:
        """This node and all below it, but functions that nothing calls."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed([each for each in node.parts if not each.is_idle()])

    def is_idle(self) -> bool:
        """Whether this is a function that is not used, nor an entry point."""
        if not self.kind.startswith(("FunctionDecl", "CXXMethodDecl")):
            return False
        return " used " not in self.text and not any(each.kind == "HLSLNumThreadsAttr" for each in self.parts)

    def bare(self) -> _Node:
        """Numbers that the compiler has converted."""
        node = self
        while node.kind == "ImplicitCastExpr" and node.parts:
            node = node.parts[0]
        return node


def _parsed(tree: str) -> _Node:
    root = _Node("", "", "", NOWHERE, [])
    above = [root]
    file, line = "", 0
    for each in tree.splitlines():
        found = _LINE.fullmatch(each)
        if found is None:
            continue
        column = 0
        start = None
        for place in _PLACE.finditer(found[4]):
            if place[4]:
                column = int(place[4])
            else:
                if place[1].lstrip("<") != "line":
                    file = place[1].removeprefix("<")
                line, column = int(place[2]), int(place[3])
            start = start or (file, line, column)
        node = _Node(found[2], found[3], found[4], start or NOWHERE, [])
        depth = len(found[1]) // 2
        del above[depth + 1 :]
        above[-1].parts.append(node)
        above.append(node)
    return root


class _Constants:
    """The values of integers that DXC folds."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def learn(self, node: _Node) -> None:
        """Keeps the value of a declaration of a constant."""
        if node.kind == "EnumDecl":
            value = -1
            for each in node.parts:
                given = self.value(each.parts[0]) if each.parts else value + 1
                if given is None:
                    return
                value = self._known[each.identity] = given
        elif node.kind == "VarDecl" and "'const " in node.text and node.type in _BITS and node.parts:
            value_or_none = self.value(node.parts[-1])
            if value_or_none is not None:
                self._known[node.identity] = value_or_none

    def value(self, node: _Node) -> int | None:
        """The value of an expression; None if it is not constant or not an integer."""
        words = node.text.split()
        if node.kind == "IntegerLiteral":
            return int(words[-1])
        if node.kind == "CXXBoolLiteralExpr":
            return int(words[-1] == "true")
        if node.kind == "DeclRefExpr":
            found = _REFERRED.search(node.text)
            return None if found is None else self._known.get(found[2])
        values = [self.value(each) for each in node.parts]
        if not values or None in values:
            return None
        first, *rest = (int(each or 0) for each in values)
        if node.kind in _CASTS:
            return first if node.type in _BITS else None
        sign = words[-1].strip("'")
        if node.kind == "UnaryOperator":
            return {"-": -first, "~": ~first, "+": first, "!": int(not first)}.get(sign)
        if node.kind == "BinaryOperator" and sign in _OPERATORS:
            return _OPERATORS[sign](first, rest[0])
        if node.kind == "ConditionalOperator":
            return rest[0] if first else rest[1]
        return None


def of_dxc(module: Module, code: str, tree: str, old: bool) -> Iterator[tuple[Place, str]]:
    """The places in a source that DXC compiles to other numbers, with a sentence for each. `tree` is DXC's;
    `old` is True for DXC before 1.8.
    """
    yield from ((NOWHERE, each) for each in _of_numbers(code))
    root = _parsed(tree)
    constants = _Constants()
    explained = False
    found: list[tuple[_Node, str]] = list(_mistaken_calls(root))
    for node in root.below():
        constants.learn(node)
        if node.kind == "BinaryOperator" and node.text.endswith(("'<<'", "'>>'")) and node.type in _BITS:
            number, amount = map(constants.value, node.parts)
            if number is not None and amount is not None and not 0 <= amount < node.bits:
                found.append((node, _SHIFTED.format(node.bits, amount, amount % node.bits)))
        elif "IntegralToFloating>" in node.text and node.parts:
            of = node.parts[0]
            if of.bits > node.bits > 0 and "literal" not in of.type and constants.value(of) is None:
                explained = True
                if not _is_small(of):
                    found.append((node, f"{NARROWED}: {_THROUGH[of.bits, node.bits]}"))
            explained = explained or _is_narrowed(of)
        elif old and "FloatingToIntegral>" in node.text and 0 < node.bits < node.parts[0].bits:
            found.append((node, _ROUNDED[node.bits]))
        elif old and node.kind == "FieldDecl" and node.parts and constants.value(node.parts[0]) is not None:
            found.append((node, "a bit field has all bits of its type: use shifts, or DXC 1.8"))
    fault = of_module(module)
    if fault and not (fault == NARROWED and explained):  # it may be the source's own
        found.append((root, fault))
    for node, fault in found:
        yield node.place, fault


def _is_small(node: _Node) -> bool:
    """Whether the low bits are all of the number."""
    called = _REFERRED.search(node.parts[0].bare().text) if node.kind == "CallExpr" else None
    return called is not None and called[3] in ("sign", "countbits", "firstbitlow", "firstbithigh")


def _is_narrowed(node: _Node) -> bool:
    """Whether the source itself takes the low bits of an integer."""
    while node.kind in _CASTS and node.parts:
        if "IntegralCast>" in node.text and node.parts[0].bits > node.bits:
            return True
        node = node.parts[0]
    return False


def _mistaken_calls(scope: _Node) -> Iterator[tuple[_Node, str]]:
    """Calls of an intrinsic where the source has a function of this name for these arguments, in the file or
    in a namespace around the call: DXC prefers the intrinsic.
    """
    own: dict[str, list[list[str]]] = {}
    known: set[str] = set()
    for node in scope.parts:
        if node.kind in ("TranslationUnitDecl", "NamespaceDecl"):
            yield from _mistaken_calls(node)
        template = node.kind == "FunctionTemplateDecl"
        generic = {each.text.split()[-1] for each in node.parts if each.kind == "TemplateTypeParmDecl"}
        for function in node.parts if template else (node,):
            if (
                function.kind == "FunctionDecl"
                and " implicit " not in function.text  # an intrinsic's
                and (named := _DECLARED.search(function.text))
            ):
                known.add(function.identity)
                types = [each.type for each in function.parts if each.kind == "ParmVarDecl"]
                own.setdefault(named[1], []).append(
                    ["" if generic & set(re.findall(r"\w+", each)) else each for each in types]
                )
    for node in scope.below() if own else ():
        if node.kind != "CallExpr" or not (called := _REFERRED.search(node.parts[0].bare().text)):
            continue
        given = [each.bare().type for each in node.parts[1:]]
        if called[2] not in known and any(_fit(types, given) for types in own.get(called[3], ())):
            yield (
                node,
                f"{called[3]} of these arguments is the intrinsic, not your function: name it otherwise",
            )


def _fit(parameters: list[str], given: list[str]) -> bool:
    """Whether arguments of these types are a function's; "" is any type."""
    return len(parameters) == len(given) and all(
        wanted in ("", kind) or (wanted in _BITS and kind.startswith("literal "))
        for wanted, kind in zip(parameters, given, strict=True)
    )
