"""Calls that are made again with exactly the same arguments."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .._memory.tensor import Tensor

CallArguments = tuple[tuple[Any, ...], dict[str, Any]]
Place = tuple["int | str", "int | None"]
"""The position or name of an argument of a call, and the position in it if it is a tuple."""


class Repeated(NamedTuple):
    """A call that was made twice with the same tensors."""

    evaluate: Callable[[], None]
    places: tuple[Place, ...]
    """Where its results stand among its arguments."""
    references: tuple[weakref.ref[Any], ...]


def exactly_key(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A key for a call with Tensors, numbers and texts; None for any other. It holds while the tensors
    live.
    """
    key: list[Any] = []
    for each in args:
        kind = type(each)
        if kind is Tensor:
            key.append(id(each))
        elif kind is int or kind is str or (kind is float and each):
            key.append((kind, each))
        else:
            return None
    for name, each in named.items():
        kind = type(each)
        if name == "donate":
            return None
        if kind is Tensor:
            key += (name, id(each))
        elif kind is int or kind is str or (kind is float and each):
            key += (name, (kind, each))
        elif kind is tuple and name == "out" and all(type(one) is Tensor for one in each):
            key += (name, tuple(map(id, each)))
        else:
            return None
    return tuple(key)


def at_place(place: Place, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    where, number = place
    found = args[where] if isinstance(where, int) else named[where]
    return found if number is None else found[number]
