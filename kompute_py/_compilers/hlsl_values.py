"""The constants that integers of an HLSL source can hold: remainders that are folded by the divisor's sign,
and shifts by too much.

A reading of tokens, not a parser: a name stands for all variables that are called so, and all branches of
`#if` count. An expression is *at run time* if no compiler can know its value (it reads a buffer, a uniform or
the invocation's number). It is *fair* if it cannot be folded to a negative number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .hlsl_text import _closed, _primary_begin

Node = tuple[Any, ...]

_TOKEN = re.compile(
    r"[A-Za-z_]\w*|0[xX][0-9a-fA-F]+\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\w*|<<=|>>=|<<|>>|[<>=!]=|&&|\|\||\+\+|--|[-+*/%&|^]=|\S"
)
_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^)]*\))?(.*)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_TYPE = re.compile(
    r"(float|half|double|min16float|min10float|u?int|dword|bool|min16u?int|u?int(?:16|32|64)_t)([1-4](?:x[1-4])?)?"
)
_FLOATS = ("float", "half", "double", "min16float", "min10float")
_UNSIGNED = ("uint", "dword", "min16uint", "uint16_t", "uint32_t", "uint64_t")
_RESOURCE = re.compile(r"(?:RW|RasterizerOrdered|Globally)?\w*(?:Buffer|Texture\w+)")
_MODIFIERS = frozenset(
    [
        "in",
        "out",
        "inout",
        "const",
        "static",
        "uniform",
        "groupshared",
        "precise",
        "row_major",
        "column_major",
        "volatile",
    ]
)
_WORDS = _MODIFIERS | frozenset(
    [
        "return",
        "else",
        "if",
        "for",
        "while",
        "do",
        "switch",
        "case",
        "break",
        "continue",
        "struct",
        "cbuffer",
        "typedef",
    ]
)
_ASSIGNS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_LEVELS = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_LOGICAL = frozenset(["||", "&&", "==", "!=", "<", ">", "<=", ">="])
_UNKNOWN: Node = ("unknown",)
_AT_RUN_TIME: Node = ("run",)
_MOST_TOKENS = 400_000  # of a source with its macros expanded
_MOST_VALUES = 64
_MOST_LOOKS = 5000
_DEEPEST = 24


def remainder_misread(code: str, defines: Iterable[tuple[str, str]]) -> str | None:
    """A remainder of integers in `code`, which has no comments, that may be folded by the divisor's sign;
    None where there is none.
    """
    if "%" not in code and not any("%" in value for _, value in defines):
        return None
    values = _Values(code, defines)
    tokens = values.tokens
    for i, token in enumerate(tokens):
        if token not in ("%", "%="):
            continue
        begin = values.operand_begin(i)
        right, end = values.parse(i + 1, 0 if token == "%=" else 11)
        left, _ = values.parse(begin, 10, i)
        both = (left, right)
        if token == "%" and all(values.is_constant(each) for each in both):
            continue  # the front end itself folds it, and rightly
        if any(values.is_unsigned(each) or values.is_float(each) or values.runs(each) for each in both):
            continue
        if not all(values.is_fair(each) for each in both):
            return " ".join(tokens[begin:end])
    return None


def shift_misread(code: str, defines: Iterable[tuple[str, str]], folded: bool) -> str | None:
    """A shift by a constant that is not below the number of bits; None where there is none.

    `folded`: the compiler folds it to 0 even of values that are known at run time alone.
    """
    if not any(
        operator in code or any(operator in value for _, value in defines) for operator in ("<<", ">>")
    ):
        return None
    values = _Values(code, defines)
    tokens = values.tokens
    limit = 64 if re.search(r"\bu?int64_t", code) else 32
    for i, token in enumerate(tokens):
        if token not in ("<<", ">>", "<<=", ">>="):
            continue
        amount, end = values.parse(i + 1, 0 if token.endswith("=") else 9)
        values.look_anew()
        known = values.constants(amount)
        if known and not all(0 <= each < limit for each in known):
            begin = values.operand_begin(i, sums=True)
            if folded or not values.runs(values.parse(begin, 9, i)[0]):
                return " ".join(tokens[begin:end])
    return None


class _Values:
    def __init__(self, code: str, defines: Iterable[tuple[str, str]]) -> None:
        self.tokens = _expanded(code.replace("\\\n", " "), defines)
        self._kinds: dict[str, set[str]] = {}  # of names: "int", "uint", "float", "other"
        self._roots: set[str] = set()  # names of what is known at run time alone
        self._others: set[str] = set()  # names of other variables
        self._parameters: dict[
            str, list[tuple[str, bool]]
        ] = {}  # of functions: name, whether it is given back
        self._given: dict[str, list[Node]] = {}
        self._const: set[str] = set()
        self._looks = 0
        self._declare()
        self._roots -= self._others  # of two variables with one name the worse one counts
        self._parse_all()
        self._running = self._greatest(self._node_runs)
        self._fair = self._greatest(self._node_is_fair)

    # -- declarations and assignments

    def _declare(self) -> None:
        tokens = self.tokens
        depth, uniform_until = 0, -1
        i = 0
        statics = False
        while i < len(tokens):
            token = tokens[i]
            if token in "{}":
                depth += 1 if token == "{" else -1
            if token in (";", "{", "}"):
                statics = False
            elif token == "static":
                statics = True
            if token in ("cbuffer", "tbuffer") and "{" in tokens[i : i + 12]:
                uniform_until = _closed(tokens, tokens.index("{", i))
            elif _RESOURCE.fullmatch(token):
                k, kind = i + 1, "uint" if "ByteAddress" in token else "other"
                if tokens[k : k + 1] == ["<"]:
                    close = tokens.index(">", k) if ">" in tokens[k : k + 40] else k
                    kind = _kind(tokens[k + 1 : close])
                    k = close + 1
                if k < len(tokens) and _NAME.fullmatch(tokens[k]):
                    self._kinds.setdefault(tokens[k], set()).add(kind)
                    self._roots.add(tokens[k])
            elif (_NAME.fullmatch(token) and token not in _WORDS) and (
                i + 1 < len(tokens) and _NAME.fullmatch(tokens[i + 1]) and tokens[i + 1] not in _WORDS
            ):
                self._declare_list(i, depth, i < uniform_until, statics)
            i += 1

    def _declare_list(self, i: int, depth: int, uniform: bool, static: bool) -> None:
        """A type at `i` and the names behind it."""
        tokens = self.tokens
        kind, k = _kind([tokens[i]]), i + 1
        if tokens[k + 1 : k + 2] == ["("]:
            self._kinds.setdefault(tokens[k], set()).add(kind)
            if depth == 0:
                self._function(k)
            return
        shared = "groupshared" in tokens[max(0, i - 2) : i]
        if "const" in tokens[max(0, i - 2) : i] and tokens[k + 1 : k + 2] == ["="]:
            self._const.add(tokens[k])
        in_parameters = False
        while k < len(tokens) and _NAME.fullmatch(tokens[k]):
            name = tokens[k]
            self._kinds.setdefault(name, set()).add(kind)
            k += 1
            while k < len(tokens) and tokens[k] == "[":
                k = _closed(tokens, k)
            is_root = uniform or shared
            if (
                tokens[k : k + 1] == [":"]
                and depth == 0
                and tokens[k + 1 : k + 2]
                and tokens[k + 1].startswith("SV_")
            ):
                is_root = in_parameters = True
            elif depth == 0 and not static and tokens[k : k + 1] == [";"] and not in_parameters:
                is_root = True
            (self._roots if is_root else self._others).add(name)
            while k < len(tokens) and tokens[k] not in (",", ";", ")", "}"):
                k = _closed(tokens, k) if tokens[k] in ("(", "[", "{") else k + 1
            if tokens[k : k + 1] != [","]:
                break
            k += 1

    def _function(self, name_at: int) -> None:
        """The parameters of a function, and what it returns."""
        tokens, name = self.tokens, self.tokens[name_at]
        end = _closed(tokens, name_at + 1)
        parameters: list[tuple[str, bool]] = []
        for begin, stop in _list(tokens, name_at + 2, end - 1):
            part = tokens[begin:stop]
            part = part[: part.index(":")] if ":" in part else part
            part = part[: part.index("=")] if "=" in part else part
            names = [each for each in part if _NAME.fullmatch(each) and each not in _MODIFIERS]
            parameters.append((names[-1] if len(names) > 1 else "", "out" in part or "inout" in part))
        known = self._parameters.setdefault(name, parameters)
        for k, each in enumerate(parameters):  # overloads
            if k >= len(known):
                known.append(each)
            elif known[k] != each:
                for merged, _ in (known[k], each):
                    self._given.setdefault(merged, []).append(_UNKNOWN)
        while end < len(tokens) and tokens[end] not in ("{", ";"):
            end += 1
        if tokens[end : end + 1] == ["{"]:
            for k in range(end, min(_closed(tokens, end), len(tokens))):
                if tokens[k] == "return":
                    self._given.setdefault(f"{name}()", []).append(self.parse(k + 1)[0])

    def _parse_all(self) -> None:
        tokens = self.tokens
        for i, token in enumerate(tokens):
            if token in _ASSIGNS or token in ("++", "--"):
                back = i
                after = token in ("++", "--") and (i == 0 or not re.match(r"[\w)\]]", tokens[i - 1]))
                if after:
                    begin = i + 1
                else:
                    while (
                        back > 0
                        and tokens[back - 1] == "]"
                        and token == "="
                        and self._is_declared_array(back - 1)
                    ):
                        back = self._opening(back - 1)
                    begin = _primary_begin(tokens, back)
                if begin >= len(tokens) or not _NAME.fullmatch(tokens[begin]):
                    continue
                own: Node = ("name", tokens[begin])
                if token in ("++", "--"):
                    value: Node = ("binary", token[0], own, ("literal", 1, False))
                else:
                    value = self.parse(i + 1)[0]
                    if token != "=":
                        value = ("binary", token[:-1], own, value)
                self._given.setdefault(tokens[begin], []).append(value)
            elif tokens[i + 1 : i + 2] == ["("] and _NAME.fullmatch(token):
                parts = list(_list(tokens, i + 2, _closed(tokens, i + 1) - 1))
                declared = (
                    i > 0 and _NAME.fullmatch(tokens[i - 1]) and tokens[i - 1] not in ("return", "else")
                )
                if token in self._parameters and not declared:
                    for (name, back_again), (begin, _) in zip(self._parameters[token], parts, strict=False):
                        if name:
                            self._given.setdefault(name, []).append(self.parse(begin)[0])
                        if back_again:
                            self._given.setdefault(tokens[begin], []).append(_UNKNOWN)
                elif token.startswith("Interlocked") and len(parts) > 2:
                    self._given.setdefault(tokens[parts[-1][0]], []).append(_AT_RUN_TIME)
                elif token == "GetDimensions":
                    for begin, stop in parts:
                        if stop == begin + 1:
                            self._given.setdefault(tokens[begin], []).append(_AT_RUN_TIME)
                elif token in ("modf", "sincos", "frexp"):
                    for begin, _ in parts[1:]:
                        self._given.setdefault(tokens[begin], []).append(_UNKNOWN)

    def _opening(self, close: int) -> int:
        depth = 0
        for k in range(close, -1, -1):
            depth += (self.tokens[k] == "]") - (self.tokens[k] == "[")
            if depth == 0:
                return k
        return 0

    def _is_declared_array(self, close: int) -> bool:
        opening = self._opening(close)
        return (
            opening > 1
            and bool(_NAME.fullmatch(self.tokens[opening - 1]))
            and bool(_NAME.fullmatch(self.tokens[opening - 2]))
        )

    # -- expressions

    def operand_begin(self, at: int, sums: bool = False) -> int:
        """Where the left operand of the operator at `at` begins."""
        tokens = self.tokens
        operators = ("*", "/", "%", "+", "-") if sums else ("*", "/", "%")
        while True:
            at = _primary_begin(tokens, at)
            while (
                at > 2 and tokens[at - 1] == ")" and tokens[at - 3] == "(" and _TYPE.fullmatch(tokens[at - 2])
            ):
                at -= 3
            while (
                at > 0
                and tokens[at - 1] in ("-", "~", "!", "+")
                and (at < 2 or tokens[at - 2] == "return" or not re.match(r"[\w)\]]", tokens[at - 2]))
            ):
                at -= 1
            if at <= 1 or tokens[at - 1] not in operators:
                return at
            at -= 1

    def parse(self, at: int, level: int = 0, end: int | None = None) -> tuple[Node, int]:
        """The expression that begins at `at` with operators of `level` and above, and what follows it."""
        return self._binary(at, level, len(self.tokens) if end is None else end, 0)

    def _binary(self, at: int, level: int, end: int, depth: int) -> tuple[Node, int]:
        if depth > _DEEPEST:
            return _UNKNOWN, at
        node, at = self._unary(at, end, depth + 1)
        while at < end:
            operator = self.tokens[at]
            own = _LEVELS.get(operator)
            if own is not None and own >= level and own > 0:
                right, at = self._binary(at + 1, own + 1, end, depth + 1)
                node = ("binary", operator, node, right)
            elif operator == "?" and level == 0:
                yes, at = self._binary(at + 1, 0, end, depth + 1)
                if self.tokens[at : at + 1] != [":"]:
                    return _UNKNOWN, at
                no, at = self._binary(at + 1, 0, end, depth + 1)
                node = ("either", yes, no)
            else:
                break
        return node, at

    def _unary(self, at: int, end: int, depth: int) -> tuple[Node, int]:
        tokens = self.tokens
        if at >= end or depth > _DEEPEST:
            return _UNKNOWN, at
        token = tokens[at]
        if token in ("-", "+", "~", "!", "++", "--"):
            inner, at = self._unary(at + 1, end, depth + 1)
            return ("unary", token, inner), at
        if token == "(" and tokens[at + 2 : at + 3] == [")"] and _TYPE.fullmatch(tokens[at + 1]):
            inner, stop = self._unary(at + 3, end, depth + 1)
            return ("call", tokens[at + 1], [inner]), stop
        if token == "(":
            node, _ = self._binary(at + 1, 0, end, depth + 1)
            at = _closed(tokens, at)
        elif token == "{":
            stop = _closed(tokens, at)
            node = (
                "call",
                "{}",
                [self.parse(begin, 0, last)[0] for begin, last in _list(tokens, at + 1, stop - 1)],
            )
            at = stop
        elif literal := _LITERAL.fullmatch(token):
            text = literal[1]
            number = int(
                text,
                16
                if text[:2].lower() == "0x"
                else 8
                if len(text) > 1 and text[0] == "0" and text.isdigit() and not set(text) & set("89")
                else 10,
            )
            node, at = ("literal", number, "u" in literal[2].lower()), at + 1
        elif token[0].isdigit() or token[0] == ".":
            node, at = ("float",), at + 1
        elif _NAME.fullmatch(token):
            if tokens[at + 1 : at + 2] == ["("]:
                stop = _closed(tokens, at + 1)
                arguments = [
                    self._binary(begin, 0, last, depth + 1)[0]
                    for begin, last in _list(tokens, at + 2, stop - 1)
                ]
                node, at = ("call", token, arguments), stop
            else:
                node, at = ("name", token), at + 1
        else:
            return _UNKNOWN, at
        while at < end:
            if tokens[at] == "[":
                at = _closed(tokens, at)
            elif tokens[at] == "." and at + 1 < end:
                at += 2
                if tokens[at : at + 1] == ["("]:  # a method
                    at = _closed(tokens, at)
                    node = node if node[0] == "name" and node[1] in self._roots else _UNKNOWN
            elif tokens[at] in ("++", "--"):
                at += 1
            else:
                break
        return node, at

    # -- what an expression is

    def is_unsigned(self, node: Node) -> bool:
        """Whether it has an unsigned type for certain."""
        return self._has_kind(node, "uint")

    def is_float(self, node: Node) -> bool:
        """Whether it is of floats for certain."""
        return self._has_kind(node, "float")

    def is_constant(self, node: Node, depth: int = 0) -> bool:
        """Whether the front end itself knows it: a literal, or a name that is declared const with such a
        value.
        """
        what = node[0]
        if what == "name":
            values = self._given.get(node[1], [])
            own = node[1] in self._const and len(values) == 1 and depth < _DEEPEST
            return own and self.is_constant(values[0], depth + 1)
        if what == "call" and not _TYPE.fullmatch(node[1]):
            return False
        parts = node[2:] if what in ("unary", "binary") else node[2] if what == "call" else ()
        return what in ("literal", "float", "unary", "binary", "call") and all(
            self.is_constant(each, depth + 1) for each in parts
        )

    def _has_kind(self, node: Node, kind: str) -> bool:
        what = node[0]
        if what == "literal":
            return kind == "uint" and bool(node[2])
        if what == "float":
            return kind == "float"
        if what == "name":
            return self._kinds.get(node[1]) == {kind}
        if what == "unary":
            return node[1] != "!" and self._has_kind(node[2], kind)
        if what == "either":
            return self._has_kind(node[1], kind) and self._has_kind(node[2], kind)
        if what == "binary":
            if node[1] in ("<<", ">>"):
                return self._has_kind(node[2], kind)
            return node[1] not in _LOGICAL and (
                self._has_kind(node[2], kind) or self._has_kind(node[3], kind)
            )
        if what == "call":
            return (
                _kind([node[1]]) == kind
                or (node[1] == "asuint" and kind == "uint")
                or self._kinds.get(node[1]) == {kind}
            )
        return False

    def runs(self, node: Node) -> bool:
        """Whether no compiler knows it."""
        return self._node_runs(node, self._running)

    def is_fair(self, node: Node) -> bool:
        """Whether no compiler can fold it to a negative number."""
        return self._node_is_fair(node, self._fair)

    def _greatest(self, holds: Any) -> set[str]:
        """The names with only allowed values, including names that depend on each other."""
        names = {name for name in self._given if name not in self._roots}
        while True:
            kept = {name for name in names if all(holds(value, names) for value in self._given[name])}
            if kept == names:
                return names
            names = kept

    def _node_runs(self, node: Node, names: set[str]) -> bool:
        what = node[0]
        if what == "run":
            return True
        if what == "name":
            return node[1] in self._roots or node[1] in names
        if what == "unary":
            return node[1] != "!" and self._node_runs(node[2], names)
        if what == "binary":
            left, right = self._node_runs(node[2], names), self._node_runs(node[3], names)
            if node[1] in ("+", "-"):
                return left != right
            if node[1] in ("*", "/", "&", "%", "<<", ">>"):
                other = node[3] if left else node[2]
                small = 2 if node[1] in ("/", "%") else 1
                enough = other[0] == "literal" and other[1] >= (small if node[1] == "%" else 1)
                return (left or (right and node[1] in ("*", "&"))) and enough and left != right
            return False
        if what == "call":
            single = node[1] in ("asint", "asuint", "WaveReadLaneFirst") or _TYPE.fullmatch(node[1])
            if single:
                return bool(node[2]) and all(self._node_runs(each, names) for each in node[2])
            return f"{node[1]}()" in names
        return False

    def _node_is_fair(self, node: Node, names: set[str]) -> bool:
        if self._node_runs(node, self._running):
            return True
        what = node[0]
        if what in ("literal", "float"):
            return what == "float" or bool(node[1] < 1 << 31)
        if what == "name":
            return node[1] in names or node[1] in ("true", "false")
        if what == "unary":
            return bool(node[1] == "!" or (node[1] in ("+", "++") and self._node_is_fair(node[2], names)))
        if what == "either":
            return self._node_is_fair(node[1], names) and self._node_is_fair(node[2], names)
        if what == "binary":
            left, right = self._node_is_fair(node[2], names), self._node_is_fair(node[3], names)
            if node[1] in _LOGICAL:
                return True
            if node[1] == "&":
                return left or right
            if node[1] == ">>":
                return left
            return node[1] in ("+", "*", "/", "%", "|", "^") and left and right
        if what == "call":
            fair = [self._node_is_fair(each, names) for each in node[2]]
            if node[1] in ("min", "{}", "sign", "countbits") or _TYPE.fullmatch(node[1]):
                return all(fair)
            if node[1] in ("max", "abs", "clamp"):
                return node[1] == "abs" or any(fair[:2])
            return f"{node[1]}()" in names
        return False

    def look_anew(self) -> None:
        """Before `constants`: it looks at so many expressions, since names that depend on each other have
        very many.
        """
        self._looks = _MOST_LOOKS

    def constants(self, node: Node, names: tuple[str, ...] = ()) -> set[int] | None:
        """The numbers that it can be; None where they are not known."""
        what = node[0]
        self._looks -= 1
        if self._looks < 0:
            return None
        if what == "literal":
            return {node[1]}
        if what == "unary" and node[1] in ("-", "~", "+"):
            inner = self.constants(node[2], names)
            sign = {"-": -1, "~": -1, "+": 1}[node[1]]
            return None if inner is None else {sign * each - (node[1] == "~") for each in inner}
        if what == "either":
            parts = [self.constants(each, names) for each in node[1:]]
        elif (
            what == "name" and node[1] in self._given and node[1] not in names and node[1] not in self._roots
        ):
            if len(names) > _DEEPEST:
                return None
            parts = [self.constants(each, (*names, node[1])) for each in self._given[node[1]]]
            if len(parts) > _MOST_VALUES:
                return None
            # A constant among values that are not known is one that the shift may get.
            known = {number for each in parts if each is not None for number in each}
            simple = all(each[0] != "binary" for each in self._given[node[1]])
            return known if known and (simple or None not in parts) else None
        elif what == "call" and _TYPE.fullmatch(node[1]) and _kind([node[1]]) in ("int", "uint"):
            parts = [self.constants(each, names) for each in node[2]]
        elif what == "binary":
            return self._combined(node[1], self.constants(node[2], names), self.constants(node[3], names))
        else:
            return None
        if not parts or any(each is None for each in parts):
            return None
        return {number for each in parts if each is not None for number in each}

    @staticmethod
    def _combined(operator: str, left: set[int] | None, right: set[int] | None) -> set[int] | None:
        if left is None or right is None or len(left) * len(right) > _MOST_VALUES**2:
            return None
        made = set()
        for a in left:
            for b in right:
                if operator == "+":
                    made.add(a + b)
                elif operator == "-":
                    made.add(a - b)
                elif operator == "*":
                    made.add(a * b)
                elif operator == "&":
                    made.add(a & b)
                elif operator in ("/", "%") and b > 0 and a >= 0:
                    made.add(a // b if operator == "/" else a % b)
                else:
                    return None
        return made


def _kind(tokens: list[str]) -> str:
    """The kind of a type's numbers."""
    found = _TYPE.fullmatch(tokens[0]) if len(tokens) == 1 else None
    if found is None:
        return "other"
    return (
        "float"
        if found[1] in _FLOATS
        else "uint"
        if found[1] in _UNSIGNED
        else "other"
        if found[1] == "bool"
        else "int"
    )


def _list(tokens: list[str], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts between commas."""
    k = first = begin
    while k < end:
        if tokens[k] in ("(", "[", "{"):
            k = _closed(tokens, k)
            continue
        if tokens[k] == ",":
            yield first, k
            first = k + 1
        k += 1
    if first < end:
        yield first, end


def _expanded(code: str, defines: Iterable[tuple[str, str]]) -> list[str]:
    """The tokens of a source with its macros expanded."""
    macros: dict[str, tuple[list[str] | None, list[str]]] = {}

    def define(name: str, parameters: str, body: str) -> None:
        own = re.findall(r"\w+", parameters) if parameters else None
        macros[name] = (own, _TOKEN.findall(body))

    for head, value in defines:
        name, bracket, parameters = head.partition("(")
        define(name, bracket + parameters, value)
    for name, parameters, body in _MACRO.findall(code):
        define(name, parameters, body)
    count = 0

    def expand(tokens: list[str], inside: tuple[str, ...]) -> list[str]:
        nonlocal count
        out: list[str] = []
        i = 0
        while i < len(tokens):
            token = tokens[i]
            parameters, body = macros.get(token, (None, []))
            count += 1
            if token not in macros or token in inside or len(inside) > _DEEPEST or count > _MOST_TOKENS:
                out.append(token)
            elif parameters is None:
                out += expand(body, (*inside, token))
            elif tokens[i + 1 : i + 2] == ["("]:
                end = _closed(tokens, i + 1)
                given = [expand(tokens[begin:stop], inside) for begin, stop in _list(tokens, i + 2, end - 1)]
                named = dict(zip(parameters, given, strict=False))
                filled = [each for word in body for each in named.get(word, [word])]
                out += expand(filled, (*inside, token))
                i = end - 1
            else:
                out.append(token)
            i += 1
        return out

    return expand(_TOKEN.findall(_DIRECTIVE.sub("", code)), ())
