"""Formats of `debugPrintfEXT` and `printf`, with the words that shaders wrote for their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

# %, flags, width, precision, components, and the conversion, which may say that a number has 64 bits.
_CONVERSION = re.compile(
    r"%(?:(?P<percent>%)|(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?(?:v(?P<count>[2-4]))?"
    r"(?P<conversion>ull?|l{0,2}[diouxXaAeEfFgGsp]|ll?))"
)
_DTYPES = {"i": "<i4", "u": "<u4", "l": "<i8", "m": "<u8", "f": "<f4", "d": "<f8", "b": "<u4"}
_INTS = "diouxXp"
_UNSIGNED = {"<i4": 32, "<i8": 64}


def values_of(arguments: str, strings: list[str], words: np.ndarray[Any, np.dtype[np.uint32]]) -> list[Any]:
    """The arguments: an int, float, bool or str, or a tuple of numbers for a vector; None if unknown."""
    values: list[Any] = []
    text = iter(strings)
    start = 0
    for letter, count in zip(arguments[::2], arguments[1::2], strict=True):
        if letter == "s":
            values.append(next(text))
            continue
        if letter not in _DTYPES:
            values.append(None)
            continue
        dtype = np.dtype(_DTYPES[letter])
        end = start + int(count) * dtype.itemsize // 4
        numbers = words[start:end].view(dtype).tolist()
        if letter == "b":
            numbers = [bool(each) for each in numbers]
        values.append(numbers[0] if count == "1" else tuple(numbers))
        start = end
    return values


def formatted(template: str, values: list[Any]) -> str:
    """The message. A conversion that does not fit its argument says so in the text; nothing is raised."""
    rest = iter(values)
    made = _CONVERSION.sub(lambda match: _converted(match, rest), template)
    left = list(rest)
    if left:
        made += f" <{len(left)} more arguments than conversions: {', '.join(map(str, left))}>"
    return made


def _converted(match: re.Match[str], rest: Iterator[Any]) -> str:
    if match["percent"]:
        return "%"
    try:
        value = next(rest)
    except StopIteration:
        return f"<{match[0]} has no argument>"
    conversion = match["conversion"][-1]
    if match["conversion"].startswith("ul"):
        conversion = "u"
    elif conversion == "l":
        conversion = "d"
    count = int(match["count"] or 1)
    parts = value if isinstance(value, tuple) else (value,)
    if len(parts) != count:
        return f"<{match[0]} takes {count} component{'s' * (count > 1)}, and the argument is {value}>"
    made = [_one(match, conversion, part) for part in parts]
    if None in made:
        return f"<{match[0]} does not fit the argument {value}>"
    return ", ".join(str(each) for each in made)


def _one(match: re.Match[str], conversion: str, value: Any) -> str | None:
    if conversion == "s":
        return value if isinstance(value, str) else None
    if isinstance(value, str) or value is None:
        return None
    if (conversion in _INTS) is not isinstance(value, int):
        return None
    precision = "" if match["precision"] is None else f".{match['precision'] or 0}"
    if conversion in _INTS:
        if conversion == "p":
            return f"{value:#x}"
        if conversion in "uoxX" and value < 0:
            value += 2**32 if value >= -(2**31) else 2**64
        return (
            f"%{match['flags']}{match['width']}{precision}{'d' if conversion in 'iu' else conversion}" % value
        )
    if conversion in "aA":
        made = float(value).hex()
        return made.upper() if conversion == "A" else made
    return f"%{match['flags']}{match['width']}{precision}{conversion}" % value
