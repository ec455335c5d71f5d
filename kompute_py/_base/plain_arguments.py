"""Checks of text and list arguments.

This module does not import NumPy: the shader compiler process imports it and runs without NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, MappingView, Set
from typing import Any

from .errors import ArgumentTypeError, InvalidArgumentError, OutOfMemoryError, shown


def as_text(value: Any, what: str) -> str:
    """`value`, a str, unchanged.

    Raises ArgumentTypeError, naming `what`, if it is not a str, and InvalidArgumentError if it cannot be
    encoded because it contains half of a surrogate pair (``os.fsdecode`` makes these from undecodable bytes).
    """
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} is {shown(value)} of type {type(value).__name__}; give a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} is {shown(value):.100}, which is not valid text: character {error.start} is half of a "
            "surrogate pair"
        ) from None
    return value


def refuse_unordered(values: Any, what: str, takes: str) -> None:
    """Raises ArgumentTypeError, naming `what` and what it `takes`, if `values` is a mapping, which has names,
    or a set, which has no order.
    """
    if isinstance(values, Mapping):
        raise ArgumentTypeError(
            f"{what} takes {takes}, not {shown(values)}; give its values: list(d.values())"
        )
    if isinstance(values, Set) and not isinstance(values, MappingView):
        raise ArgumentTypeError(
            f"{what} takes {takes}, not {shown(values)}: a set has no order. Give a list or a tuple"
        )


def as_list(values: Any, what: str, takes: str, *, sets: bool = False) -> list[Any]:
    """`values`, any iterable, as a list; a generator is consumed. A set is accepted if `sets` is True.

    Raises ArgumentTypeError, naming `what` and what it `takes`, if `values` is text, bytes, a mapping, a set
    or not iterable, and OutOfMemoryError if memory cannot hold the elements. Errors from the body of a
    generator are passed on.
    """
    if type(values) is list or type(values) is tuple:
        return list(values)
    if isinstance(values, (str, bytes, bytearray)):
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}")
    if not sets or isinstance(values, Mapping):
        refuse_unordered(values, what, takes)
    try:
        iterator = iter(values)
    except TypeError:
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}") from None
    except Exception as error:  # from its own __iter__
        raise ArgumentTypeError(
            f"{what} takes {takes}, not {shown(values)}, which does not iterate: {error}"
        ) from error
    try:
        return list(iterator)
    except NotImplementedError:  # from memoryviews with elements that Python cannot read
        raise ArgumentTypeError(f"{what} takes {takes}, not {shown(values)}") from None
    except MemoryError:
        raise OutOfMemoryError(
            f"{what} takes {takes}; {shown(values)} has more elements than memory holds"
        ) from None
