"""The parts of formulas, with their types, and those that Python computes for each call."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import shown
from .dtypes import Dtype
from .nodes import Node, nodes_of

_TYPES = [bool, int, float, complex]
_MOST_BITS = 2**14
"""Of ints that Python computes: no dtype has 64, and Python takes forever for those with billions."""


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b * a.bit_length() > _MOST_BITS:
        raise OverflowError(f"{shown(a)} ** {shown(b)} is beyond the ints of all dtypes")
    return a**b


def _shifted(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a and b > _MOST_BITS:
        raise OverflowError(f"{shown(a)} << {shown(b)} is beyond the ints of all dtypes")
    return a << b


_PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": _power,
    "negative": operator.neg,
    "positive": operator.pos,
    "invert": lambda a: not a if isinstance(a, bool) else ~a,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": _shifted,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
    "logical_not": operator.not_,
    "absolute": abs,
    "erf": math.erf,  # NumPy has none
    # Of the higher kind of both, as NumPy's.
    "where": lambda c, a, b: max(type(a), type(b), key=_TYPES.index)(a if c else b),
}


class HostValue(NamedTuple):
    """A part of a formula of numbers without dtypes only: Python computes it for each call."""

    name: str
    """Its name in the kernels."""
    dtype: Dtype
    """Its dtype there."""
    names: tuple[str, ...]
    """The numbers that it depends on."""
    compute: Callable[..., Any]
    """Its value, from those of `names`. Raises NumberRangeError if the dtype has no such, unless `compared`,
    and InvalidArgumentError if there is none."""
    compared: bool = False
    """Whether a number that the dtype does not have has an answer, too: that of the formula made with
    ``beyond``."""


class Value(NamedTuple):
    """A typed part: a temporary of a dtype, or a number without one."""

    node: Node
    dtype: Dtype | None
    weak: str
    text: str

    @property
    def kind(self) -> str:
        return self.weak if self.dtype is None else str(self.dtype)


class NotConstant(Exception):
    pass


def evaluated(node: Node, numbers: Mapping[str, Any] | None) -> Any:
    """A part in Python. Without `numbers`, raises NotConstant at an argument."""
    found: dict[Node, Any] = {}
    for each in nodes_of([node]):
        found[each] = _evaluated(each, [found[part] for part in each.args], numbers)
    return found[node]


def _evaluated(node: Node, args: list[Any], numbers: Mapping[str, Any] | None) -> Any:
    if node.op == "number":
        return node.value
    if node.op == "name":
        if numbers is None or node.value not in numbers:
            raise NotConstant
        return numbers[node.value]
    if node.op == "call":
        raise NotConstant
    if node.op in _PYTHON:
        return _PYTHON[node.op](*args)
    with np.errstate(all="ignore"):
        found = getattr(np, node.op)(*args)
    return found.item() if isinstance(found, (np.generic, np.ndarray)) else found
