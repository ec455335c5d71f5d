"""What callers give as text and as lists, checked. Without NumPy: the process that compiles shaders imports this, and has none."""

from __future__ import annotations

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
    """`values` as a list. Raises ArgumentTypeError, naming `what` and what it `takes`, if they are none, OutOfMemoryError if they
    are more than memory holds. An error of their own iteration is passed on."""
    try:
        return list(values)
    except (
        TypeError,
        NotImplementedError,
    ):  # NotImplementedError: of memoryviews whose elements Python cannot read
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}") from None
    except MemoryError:
        raise OutOfMemoryError(
            f"{what} takes {takes}; {shown(values)} has more elements than memory holds"
        ) from None
