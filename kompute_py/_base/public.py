"""Public modules: the names that they offer, and the module that tracebacks, help() and pickles name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .text import nearest

if TYPE_CHECKING:
    from typing_extensions import Self


def publish(cls: type, module: str) -> None:
    """Makes `module` the one that `cls` names, and from Python 3.13 on its functions: help() shows theirs for
    inherited methods.
    """
    cls.__module__ = module
    if sys.version_info < (3, 13):
        return
    for each in vars(cls).values():
        function = getattr(each, "__func__", None) or getattr(each, "fget", None) or each
        if isinstance(function, FunctionType) and function.__module__.startswith("kompute_py._"):
            function.__module__ = module
            if "<locals>" in function.__qualname__:
                function.__qualname__ = f"{cls.__qualname__}.{function.__name__}"


def offer(
    module: str, names: Sequence[str], load: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module: completion offers `names`, and another name is an
    AttributeError with the nearest one. `load` imports a name that the module does not have yet.
    """

    def find(name: str) -> Any:
        if load is not None and name in names:
            return load(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{nearest(name, names)}", name=name)

    return find, lambda: sorted(names)


class Routine:
    """Base of callables with a signature of their own: help() shows it whole, as a function's. Of other
    callables, help() shows a shortened `repr`.
    """

    __slots__ = ()

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        return self  # `inspect.isroutine` asks for this method; in a class, the callable stays what it is

    def __copy__(self) -> Self:
        return self  # as functions do

    def __deepcopy__(self, memo: object) -> Self:
        return self
