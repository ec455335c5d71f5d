"""Finds HLSL that glslang's front end computes wrongly without a trace in its result: remainders and dot
products of constants, which it folds, and products of matrices by ``*``, which are to be component by
component.

A reading of tokens, not a parser. An operand counts as constant if all its names are macros, `const`
variables, types or functions of the language; it counts as float if it has a literal with a point or an
exponent, or the name of such a constant. It counts as a matrix if it is a name that is declared as one, a
constructor or cast of one, transpose(), or mul() of two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TOKEN = re.compile(r"[A-Za-z_]\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\w*|\S")
_FLOAT = re.compile(r"\d*\.\d+.*|\d+\.\d*.*|\d+[eE][-+]?\d+.*|\d+[fFhH]", re.ASCII)
_TYPES = r"(?:float|half|double|min16float|min10float|u?int|dword|bool|min16u?int)(?:[1-4](?:x[1-4])?)?"
_TYPE = re.compile(_TYPES)
_FLOAT_TYPE = re.compile(r"(?:float|half|double|min16float|min10float)\w*")
_CONSTANT = re.compile(rf"\bconst\s+(?:\w+\s+)*?({_TYPES})\s+([^;(){{}}]*(?:[({{][^;]*)?);")
_DECLARED = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)?=")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^)]*\))?(.*)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_FUNCTIONS = frozenset(
    [
        "abs",
        "ceil",
        "floor",
        "frac",
        "trunc",
        "round",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "exp",
        "exp2",
        "log",
        "log2",
        "log10",
        "pow",
        "min",
        "max",
        "clamp",
        "saturate",
        "radians",
        "degrees",
        "sign",
        "fmod",
        "lerp",
        "step",
        "dot",
        "length",
        "rcp",
        "mad",
        "fma",
        "true",
        "false",
    ]
)
_CLOSING = {")": "(", "]": "["}
_OPENING = {"(": ")", "[": "]"}


def remainder_of_constants(code: str, defines: Iterable[tuple[str, str]]) -> str | None:
    """A remainder of constant floats, or a dot product of constant integers, in `code`, which has no
    comments; None where there is
    none."""
    code = code.replace("\\\n", " ")
    macros = {name: (parameters, body) for name, parameters, body in _MACRO.findall(code)}
    for head, value in defines:
        name, _, parameters = head.partition("(")
        macros[name] = (parameters, value)
    text = _DIRECTIVE.sub("", code)
    constants: dict[str, bool] = {}  # -> whether of floats
    for kind, declared in _CONSTANT.findall(text):
        for name in _DECLARED.findall(declared):
            constants[name] = _FLOAT_TYPE.fullmatch(kind) is not None
    for _ in range(8):  # macros of macros
        for name, (parameters, body) in macros.items():
            own = set(re.findall(r"\w+", parameters))
            tokens = [token for token in _TOKEN.findall(body) if token not in own]
            if _is_constant(tokens, constants):
                constants[name] = _is_float(tokens, constants)
    # What a macro expands to is found there.
    for part in (text, *(body for _, body in macros.values())):
        tokens = _TOKEN.findall(part)
        for left, right in _remainders(tokens):
            both = [*left, *right]
            if left and right and _is_constant(both, constants) and _is_float(both, constants):
                return f"{' '.join(left)} % {' '.join(right)}"
    tokens = _TOKEN.findall(text)
    for i, token in enumerate(tokens[:-1]):
        if token == "dot" and tokens[i + 1] == "(":
            both = tokens[i + 2 : _end(tokens, i) - 1]
            if _is_constant(both, constants) and not _is_float(both, constants):
                return f"dot({' '.join(both)})"
        parameters, body = macros.get(token, ("", ""))
        if parameters and tokens[i + 1] == "(" and any(_remainders(_TOKEN.findall(body))):
            given = tokens[i + 2 : _end(tokens, i) - 1]
            if _is_constant(given, constants) and _is_float([*given, *_TOKEN.findall(body)], constants):
                return f"{token}({' '.join(given)})"
    return None


_MATRIX = re.compile(r"(?:float|half|double|min16float|min10float)[1-4]x[1-4]|matrix")


def matrices_misread(code: str, products: bool) -> str | None:
    """A product of two matrices by ``*`` (where there are `products` of matrices at all), or any() or all()
    of one, in `code`, which has
    no comments; None where there is none."""
    types = {"matrix", *_MATRIX.findall(code)}
    types.update(re.findall(rf"\btypedef\s+(?:{_MATRIX.pattern})(?:\s*<[^>]*>)?\s+(\w+)", code))
    tokens = _TOKEN.findall(code)
    names = _declared(tokens, types)
    for i, token in enumerate(tokens):
        if token == "*" and products:
            begin = i + 2 if tokens[i + 1 : i + 2] == ["="] else i + 1
            left, right = tokens[_primary_begin(tokens, i) : i], tokens[begin : _end(tokens, begin)]
            if _is_matrix(left, names, types) and _is_matrix(right, names, types):
                return f"{' '.join(left)} * {' '.join(right)}"
        elif token in ("any", "all") and tokens[i + 1 : i + 2] == ["("]:
            given = tokens[i + 2 : _end(tokens, i) - 1]
            if _is_matrix(given, names, types):
                return f"{token}({' '.join(given)})"
    return None


def _declared(tokens: list[str], types: set[str]) -> dict[str, bool]:
    """The names that are declared with one of these types, functions among them; and whether each is an
    array.
    """
    names: dict[str, bool] = {}
    for i, token in enumerate(tokens):
        if token not in types:
            continue
        k = i + 1
        if tokens[k : k + 1] == ["<"]:
            while k < len(tokens) and tokens[k] != ">":
                k += 1
            k += 1
        begins = True
        while k < len(tokens) and tokens[k] not in (";", ")", "}"):
            if begins:
                if not re.match(r"[A-Za-z_]", tokens[k]):
                    break
                if tokens[k] not in types and not _TYPE.fullmatch(tokens[k]):
                    names[tokens[k]] = tokens[k + 1 : k + 2] == ["["]
                begins = False
            if tokens[k] == "{" and "=" not in tokens[i:k]:
                break  # a function's body
            if tokens[k] in _OPENING or tokens[k] == "{":
                k = _closed(tokens, k)
                continue
            begins = tokens[k] == ","
            k += 1
    return names


def _closed(tokens: list[str], k: int) -> int:
    """What follows the bracket that closes the one at `k`."""
    depth = 0
    while k < len(tokens):
        depth += (tokens[k] in "([{") - (tokens[k] in ")]}")
        k += 1
        if depth == 0:
            break
    return k


def _is_matrix(tokens: list[str], names: dict[str, bool], types: set[str]) -> bool:
    while tokens[:1] in (["-"], ["+"]):
        tokens = tokens[1:]
    if not tokens:
        return False
    if tokens[0] == "(":
        end = _end(tokens, 0)
        if tokens[1] in types and tokens[2:3] == [")"]:
            return True
        inner = tokens[1 : end - 1]
        return end == len(tokens) and any(
            _is_matrix(inner[k : _end(inner, k)], names, types)
            for k in range(len(inner))
            if k == 0 or inner[k - 1] in "+-*/"
        )
    if tokens[1:2] == ["("]:
        whole = _end(tokens, 0) == len(tokens) and tokens[-1] == ")"
        if tokens[0] == "mul":
            comma = _comma(tokens, 2, len(tokens) - 1)
            arguments = (tokens[2:comma], tokens[comma + 1 : -1])
            return whole and all(_is_matrix(each, names, types) for each in arguments)
        return whole and (tokens[0] in types or tokens[0] == "transpose" or tokens[0] in names)
    at = 0
    while tokens[at + 1 : at + 2] == ["."] and at + 2 < len(tokens):
        at += 2
    if tokens[at] not in names:
        return False
    indices, k = 0, at + 1
    while k < len(tokens) and tokens[k] == "[":
        k = _closed(tokens, k)
        indices += 1
    return k == len(tokens) and indices == int(names[tokens[at]])


def _comma(tokens: list[str], begin: int, end: int) -> int:
    """The first comma between these that is in no brackets; `end` where there is none."""
    depth = 0
    for k in range(begin, end):
        depth += (tokens[k] in _OPENING) - (tokens[k] in _CLOSING)
        if tokens[k] == "," and depth == 0:
            return k
    return end


def _is_constant(tokens: list[str], constants: dict[str, bool]) -> bool:
    names = [token for i, token in enumerate(tokens) if token[0].isalpha() or token[0] == "_"]
    return all(name in constants or name in _FUNCTIONS or _TYPE.fullmatch(name) for name in names)


def _is_float(tokens: list[str], constants: dict[str, bool]) -> bool:
    return any(_FLOAT.fullmatch(t) or constants.get(t) or _FLOAT_TYPE.fullmatch(t) for t in tokens)


def _remainders(tokens: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """The operands of every % and fmod."""
    for i, token in enumerate(tokens):
        if token == "%":
            end = i + 2 if tokens[i + 1 : i + 2] == ["="] else i + 1
            yield tokens[_begin(tokens, i) : i], tokens[end : _end(tokens, end)]
        elif token == "fmod" and tokens[i + 1 : i + 2] == ["("]:
            end = _end(tokens, i)
            comma = _comma(tokens, i + 2, end - 1)
            yield tokens[i + 2 : comma], tokens[comma + 1 : end - 1]


def _begin(tokens: list[str], at: int) -> int:
    """Where the product that ends before `at` begins."""
    while True:
        at = _primary_begin(tokens, at)
        if at <= 1 or tokens[at - 1] not in ("*", "/", "%"):
            return at
        at -= 1


def _primary_begin(tokens: list[str], at: int) -> int:
    k = at - 1
    while k >= 0:
        if tokens[k] in _CLOSING:
            depth = 0
            while k >= 0:
                depth += (tokens[k] in _CLOSING) - (tokens[k] in _OPENING)
                if depth == 0:
                    break
                k -= 1
            if k > 0 and re.match(r"[A-Za-z_]|[)\]]", tokens[k - 1]):
                k -= 1
                continue
            break
        if k > 0 and tokens[k - 1] == ".":
            k -= 2
            continue
        break
    return max(k, 0)


def _end(tokens: list[str], begin: int) -> int:
    """Where the operand that begins at `begin` ends."""
    k = begin
    while k < len(tokens) and tokens[k] in ("-", "+", "!", "~"):
        k += 1
    k += 1 if k < len(tokens) and tokens[k] not in _OPENING else 0
    while k < len(tokens):
        if tokens[k] in _OPENING:
            k = _closed(tokens, k)
        elif tokens[k] == "." and k + 1 < len(tokens):
            k += 2
        else:
            break
    return k
