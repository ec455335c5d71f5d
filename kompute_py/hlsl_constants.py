"""Finds remainders of constant floats in HLSL: glslang's front end folds them wrongly, and its result does not show it.

A reading of tokens, not a parser. An operand counts as constant if all its names are macros, `const` variables, types or functions of
the language; it counts as float if it has a literal with a point or an exponent, or the name of such a constant.
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
    """A remainder of constant floats in `code`, which has no comments; None where there is none."""
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
        parameters, body = macros.get(token, ("", ""))
        if parameters and tokens[i + 1] == "(" and any(_remainders(_TOKEN.findall(body))):
            given = tokens[i + 2 : _end(tokens, i) - 1]
            if _is_constant(given, constants) and _is_float([*given, *_TOKEN.findall(body)], constants):
                return f"{token}({' '.join(given)})"
    return None


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
            depth, comma = 0, end
            for k in range(i + 2, end - 1):
                depth += (tokens[k] in _OPENING) - (tokens[k] in _CLOSING)
                if tokens[k] == "," and depth == 0:
                    comma = k
                    break
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
            depth = 0
            while k < len(tokens):
                depth += (tokens[k] in _OPENING) - (tokens[k] in _CLOSING)
                k += 1
                if depth == 0:
                    break
        elif tokens[k] == "." and k + 1 < len(tokens):
            k += 2
        else:
            break
    return k
