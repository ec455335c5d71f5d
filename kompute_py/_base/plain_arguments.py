"""What callers give as text and as lists, checked. Without NumPy: the process that compiles shaders imports this, and has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ArgumentTypeError, InvalidArgumentError, OutOfMemoryError, shown


def as_text(value: Any, what: str) -> str:
    """`value`, a str, as it is. Raises ArgumentTypeError, naming `what`, for anything else, InvalidArgumentError for a str that no
    encoding has: one half of a surrogate pair, as ``os.fsdecode`` makes of bytes that are no text."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} is {shown(value)} of type {type(value).__name__}; give a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} is {shown(value):.100}, which is no text: character {error.start} is half of a surrogate pair"
        ) from None
    return value


def as_list(values: Any, what: str, takes: str) -> list[Any]:
    """`values`, any iterable, as a list; a generator is consumed.

    Raises ArgumentTypeError, naming `what` and what it `takes`, for text, bytes, a dict, and anything that does not iterate;
    OutOfMemoryError for more elements than memory holds. An error that a generator raises in its body is passed on.
    """
    if type(values) is list or type(values) is tuple:
        return list(values)
    if isinstance(values, (str, bytes, bytearray, Mapping)):
        fix = "; give its values: list(d.values())" if isinstance(values, Mapping) else ""
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}{fix}")
    try:
        iterator = iter(values)
    except TypeError:
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}") from None
    except Exception as error:  # of its own __iter__
        raise ArgumentTypeError(
            f"{what} takes {takes}, not {shown(values)}, which does not iterate: {error}"
        ) from error
    try:
        return list(iterator)
    except NotImplementedError:  # of memoryviews whose elements Python cannot read
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}") from None
    except MemoryError:
        raise OutOfMemoryError(
            f"{what} takes {takes}; {shown(values)} has more elements than memory holds"
        ) from None
