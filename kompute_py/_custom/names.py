"""Names that a tensor brings into kernels: with `x` come ``x_load``, ``x_size``, ``x_dim0`` and others; and
numbers as text, by which calls are told apart."""

from __future__ import annotations

import re
from collections.abc import Container

from .._base.errors import ArgumentTypeError

_PART = re.compile(r"_(?:load4?|store4?|size|at|dim\d+|stride\d+)")


def text_of(value: object) -> str:
    """A number, a text or a list of numbers, as text: its repr, which Python refuses for ints of thousands of
    digits. Raises ArgumentTypeError for lists in lists so deep that Python cannot write them.
    """
    try:
        return repr(value)
    except RecursionError:
        raise ArgumentTypeError("Lists are nested too deeply here: give numbers, or a list of them") from None
    except ValueError:
        each = value if isinstance(value, list) else [value]
        return ", ".join(hex(number) if isinstance(number, int) else repr(number) for number in each)


def tensor_of_name(name: str, tensors: Container[str], lists: Container[str] = ()) -> str | None:
    """The tensor that brings `name` into kernels, or the list of tensors; None if none does.

    The tensors of a list `x` are ``x0``, ``x1`` and so on.
    """
    base, mark, part = name.rpartition("_")
    owner = base if mark and _PART.fullmatch(mark + part) else ""
    if owner in tensors and owner:
        return owner
    for item in (name, owner):
        while item[-1:].isdigit() and item.isascii():
            item = item[:-1]
            if item in lists and item:
                return item
    return None
