"""Whole numbers that are known when an operation runs: sizes of axes, and what is computed from them.

A generator writes a kernel once for many shapes. The size of an axis is then a `Size`, an expression: in
GLSL it is its text, and for the grid, and for the sizes of scratch memory, its value for the shapes at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NoReturn, Union, overload

from .._base.errors import ArgumentTypeError, kind_of

IntOrSize = Union[int, "Size"]
_MOST_GROUPS = 65535  # every device has as many on an axis


class Size:
    """A whole number that depends on the arguments. Supports ``+ - * // %`` and `ceil_div`, `smallest` and
    `largest`, with ints and other sizes; ``str(size)`` is the expression in GLSL, of type uint.

    Differences below zero wrap around in GLSL, as unsigned numbers do there.
    """

    __module__ = "kompute_py.typing"  # where users find it

    __slots__ = {
        "_compute": "",
        "_text": "",
        "uses": "The names in it.",
    }

    def __init__(
        self,
        text: str | tuple[str, IntOrSize, IntOrSize],
        uses: frozenset[str],
        compute: Callable[[Mapping[str, int]], int],
    ) -> None:
        self._text = text  # a tuple until somebody asks: most sizes are only computed
        self.uses: frozenset[str] = uses
        self._compute = compute

    @staticmethod
    def named(name: str) -> Size:
        """The value of that name."""
        return Size(name, frozenset((name,)), itemgetter(name))

    @property
    def text(self) -> str:
        """The expression in GLSL, of type uint."""
        if type(self._text) is tuple:
            pattern, a, b = self._text
            self._text = pattern.format(glsl(a), glsl(b))
        return self._text  # type: ignore[return-value]

    def value(self, values: Mapping[str, int]) -> int:
        """The number for these values of the names."""
        return self._compute(values)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Size {self.text}>"

    def __add__(self, other: IntOrSize) -> Size:
        return _combined(self, other, "({} + {})", lambda a, b: a + b)

    def __radd__(self, other: IntOrSize) -> Size:
        return _combined(other, self, "({} + {})", lambda a, b: a + b)

    def __sub__(self, other: IntOrSize) -> Size:
        return _combined(self, other, "({} - {})", lambda a, b: a - b)

    def __rsub__(self, other: IntOrSize) -> Size:
        return _combined(other, self, "({} - {})", lambda a, b: a - b)

    def __mul__(self, other: IntOrSize) -> Size:
        return _combined(self, other, "({} * {})", lambda a, b: a * b)

    def __rmul__(self, other: IntOrSize) -> Size:
        return _combined(other, self, "({} * {})", lambda a, b: a * b)

    def __floordiv__(self, other: IntOrSize) -> Size:
        return _combined(self, other, "({} / {})", lambda a, b: a // b)

    def __rfloordiv__(self, other: IntOrSize) -> Size:
        return _combined(other, self, "({} / {})", lambda a, b: a // b)

    def __mod__(self, other: IntOrSize) -> Size:
        return _combined(self, other, "({} % {})", lambda a, b: a % b)

    def __rmod__(self, other: IntOrSize) -> Size:
        return _combined(other, self, "({} % {})", lambda a, b: a % b)

    def _unknown(self) -> NoReturn:
        raise ArgumentTypeError(
            f"The size {self.text} is not known when the kernel is generated, so Python cannot compare it "
            "or count with it. Write that in GLSL, or specialize the axis: arg.specialize_dims(...) in select"
        )

    def __eq__(self, other: object) -> bool:
        self._unknown()

    def __ne__(self, other: object) -> bool:
        self._unknown()

    def __lt__(self, other: object) -> bool:
        self._unknown()

    def __le__(self, other: object) -> bool:
        self._unknown()

    def __gt__(self, other: object) -> bool:
        self._unknown()

    def __ge__(self, other: object) -> bool:
        self._unknown()

    def __bool__(self) -> bool:
        self._unknown()

    def __int__(self) -> int:
        self._unknown()

    def __index__(self) -> int:
        self._unknown()

    def __float__(self) -> float:
        self._unknown()

    def __hash__(self) -> int:
        return id(self)


def ceil_div(a: IntOrSize, b: IntOrSize) -> IntOrSize:
    """`a` divided by `b`, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return _combined(a, b, "({0} / {1} + uint({0} % {1} != 0u))", lambda x, y: -(-x // y))


def smallest(a: IntOrSize, b: IntOrSize) -> IntOrSize:
    """The smaller of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return _combined(a, b, "min({}, {})", min)


def largest(a: IntOrSize, b: IntOrSize) -> IntOrSize:
    """The larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return _combined(a, b, "max({}, {})", max)


@overload
def two_axes(groups: int) -> tuple[int, int]: ...
@overload
def two_axes(groups: IntOrSize) -> tuple[IntOrSize, IntOrSize]: ...
def two_axes(groups: Any) -> tuple[Any, Any]:
    """So many workgroups on two axes, in rows as long as every device has them: none more than the last row
    lacks, because a GPU takes as long to begin one that has nothing to do."""
    rows = ceil_div(groups, _MOST_GROUPS)
    return ceil_div(groups, largest(rows, 1)), rows


def product(sizes: Any) -> IntOrSize:
    """The product of sizes; 1 for none."""
    total: IntOrSize = 1
    for each in sizes:
        if isinstance(total, int) and total == 1:
            total = each
        elif not (isinstance(each, int) and each == 1):
            total = total * each
    return total


def evaluate(size: IntOrSize, values: Mapping[str, int]) -> int:
    """The number that `size` is for these values."""
    return size.value(values) if isinstance(size, Size) else size


def glsl(size: IntOrSize) -> str:
    """The expression in GLSL, of type uint."""
    return str(size) if isinstance(size, Size) else f"{size}u"


def _combined(a: Any, b: Any, text: str, compute: Callable[[int, int], int]) -> Size:
    for each in (a, b):
        if type(each) is not int and not isinstance(each, Size):
            raise ArgumentTypeError(f"A size is combined with ints and sizes, not with {kind_of(each)}")
    if type(b) is int:
        first = a._compute
        return Size((text, a, b), a.uses, lambda values: compute(first(values), b))
    second = b._compute
    if type(a) is int:
        return Size((text, a, b), b.uses, lambda values: compute(a, second(values)))
    first = a._compute
    return Size((text, a, b), a.uses | b.uses, lambda values: compute(first(values), second(values)))
