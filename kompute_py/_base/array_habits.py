"""Operators and attributes of arrays that tensors lack: each raises an error with code to use instead.

A tensor's contents are on the device. Python's operators would have to read them and compute on the host,
so tensors do not have these operators. Tensors compare by identity. NumPy functions (``np.add(t, 1)``,
``np.sum(t)``) and expressions with an array (``t + np.ones(3)``) read the tensor, as ``np.asarray(t)`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentTypeError, ErrorCode, KomputeError, shown
from .warn import warn

_NUMBERS = (int, float, complex, list, tuple)
_READ = "t.read()"


def _code(value: Any) -> str:
    """`value` as code if it is a short number, else a name that stands for it."""
    if isinstance(value, ArrayHabits):
        return "other.read()"
    text = shown(value)
    return text if isinstance(value, (int, float, complex)) and len(text) < 30 else "other"


def _refuse(thing: Any, doing: str, code: str) -> ArgumentTypeError:
    kind = type(thing).__name__
    return ArgumentTypeError(
        f"{'An' if kind[0] in 'AEIOU' else 'A'} {kind} has no {doing}: its contents are on the device. "
        f"Write a kernel, or compute on the host with a copy: {code}"
    )


def _binary(symbol: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, (*_NUMBERS, ArrayHabits)):
            return NotImplemented  # arrays then read the tensor; other types may support it
        left, right = (_code(other), _READ) if reflected else (_READ, _code(other))
        raise _refuse(self, f"operator {symbol}", f"{left} {symbol} {right}")

    return operate


def _unary(code: str, doing: str) -> Callable[[Any], Any]:
    def operate(self: Any) -> Any:
        raise _refuse(self, doing, code)

    return operate


class ArrayAttributeError(KomputeError, AttributeError):
    """A tensor or image lacks an attribute that arrays have."""

    __module__ = "kompute_py.errors"

    code = ErrorCode.NOT_FOUND

    def __init__(self, message: str, name: str = "", obj: object = None) -> None:
        super().__init__(message)
        self.name: str = name
        self.obj: object = obj


class ArrayHabits:
    """Base of Memory: the operators and attributes of arrays. Each error says what to write instead."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Whether the only element is nonzero, as in NumPy. Waits for pending work that writes it.

        With any other number of elements: True if there are any, as in Kompute, with a KomputeWarning,
        because NumPy raises an error there. Write ``t is not None`` or ``t.read().any()``.
        """
        memory: Any = self
        count: int = memory.size()
        if count == 1 and memory.dtype.type is not np.void:
            return bool(memory.read().reshape(-1)[0])
        if memory.is_init():
            warn(
                f"The truth of {memory._describe()} only says that it has {count or 'no'} elements. "
                "Write len(t) > 0 or t is not None if that is meant; "
                "t.read().any() or t.read().all() for the elements"
            )
        return count != 0

    def __eq__(self, other: object) -> Any:
        """Compares by identity, as in Kompute.

        A number or a list never equals a tensor: a KomputeWarning shows how to compare the elements.
        """
        if isinstance(other, _NUMBERS):
            warn(
                f"A {type(self).__name__} is compared by identity, so it never equals {shown(other):.60}. "
                f"To compare its elements: {_READ} == {_code(other)}"
            )
        return NotImplemented

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:  # for checkers of types, tensors lack the operators: they find `t + 1`
        __hash__ = object.__hash__

        __add__, __radd__ = _binary("+", False), _binary("+", True)
        __sub__, __rsub__ = _binary("-", False), _binary("-", True)
        __mul__, __rmul__ = _binary("*", False), _binary("*", True)
        __truediv__, __rtruediv__ = _binary("/", False), _binary("/", True)
        __floordiv__, __rfloordiv__ = _binary("//", False), _binary("//", True)
        __mod__, __rmod__ = _binary("%", False), _binary("%", True)
        __pow__, __rpow__ = _binary("**", False), _binary("**", True)
        __matmul__, __rmatmul__ = _binary("@", False), _binary("@", True)
        __and__, __rand__ = _binary("&", False), _binary("&", True)
        __or__, __ror__ = _binary("|", False), _binary("|", True)
        __xor__, __rxor__ = _binary("^", False), _binary("^", True)
        __lshift__, __rlshift__ = _binary("<<", False), _binary("<<", True)
        __rshift__, __rrshift__ = _binary(">>", False), _binary(">>", True)
        __lt__, __le__ = _binary("<", False), _binary("<=", False)
        __gt__, __ge__ = _binary(">", False), _binary(">=", False)
        __neg__, __pos__ = _unary("-t.read()", "operator -"), _unary("+t.read()", "operator +")
        __invert__, __abs__ = _unary("~t.read()", "operator ~"), _unary("abs(t.read())", "abs()")

    def __contains__(self, value: object) -> bool:
        """Raises ArgumentTypeError with code that looks for a value."""
        raise _refuse(self, "operator in", f"{_code(value)} in {_READ}")

    def __setitem__(self, key: object, value: object) -> None:
        """Raises ArgumentTypeError with code that writes a part."""
        raise ArgumentTypeError(
            f"A {type(self).__name__} has no item assignment: its contents are on the device. "
            "Use t.write(value, region) with the index from the brackets as region, "
            "or t[region].fill(value) to set all its elements to one value"
        )

    def __dir__(self) -> list[str]:
        """The attributes that work. Those of arrays that only raise an error are left out."""
        from inspect import getattr_static  # only for completion

        kind = type(self)
        return [
            name for name in super().__dir__() if type(getattr_static(kind, name, None)) is not _OnlyOfArrays
        ]


class _OnlyOfArrays:
    """An attribute that arrays have and tensors lack. Reading it raises ArrayAttributeError.

    Each attribute has its own descriptor, because a `__getattr__` would slow down all existing attributes.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._advice = f"t.read().{name}{'(...)' if callable(getattr(np.ndarray, name)) else ''}"
        self.__doc__ = f"Only arrays have this attribute: {self._advice}."

    def __get__(self, thing: Any, kind: type) -> Any:
        text = f"{kind.__name__!r} object has no attribute {self._name!r}"
        text += f": its contents are on the device. A copy on the host has it: {self._advice}"
        raise ArrayAttributeError(text, self._name, thing)


for _name in dir(np.ndarray):
    if not _name.startswith("_"):
        setattr(ArrayHabits, _name, _OnlyOfArrays(_name))
del _name
