"""Libraries of operations: names of their own under `kp.ops`."""

from __future__ import annotations

import functools
import importlib
import keyword
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._base.errors import AlreadyExistsError, ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._base.text import nearest

if TYPE_CHECKING:
    from .function import Function


class OpLibrary:
    """Operations under one name: ``kp.ops.NAME.operation``. Made by `kp.op_library`.

    >>> library = kp.op_library("shapes")
    >>> @kp.CustomOp.register(library=library)
    ... class flat(kp.CustomOp):
    ...     signature = "flat(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor((x.size,), x.dtype)
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("x_load(i)")
    >>> library.flat(mgr.zeros((2, 3))).shape
    (6,)
    """

    __module__ = "kompute_py"

    def __init__(self, name: str) -> None:
        self.name: str = name
        """Its name."""
        self._operations: dict[str, Function] = {}

    def _add(self, operation: Function) -> None:
        name = operation.__name__
        if name in self._operations or name in type(self).__dict__ or name in self.__dict__:
            raise AlreadyExistsError(
                f"The library {self.name!r} has {shown(name)} already; give it another name"
            )
        self._operations[name] = operation

    def __getattr__(self, name: str) -> Function:
        found = self.__dict__.get("_operations", {}).get(name)
        if found is None:
            raise AttributeError(
                f"The library {self.__dict__.get('name', '')!r} has no operation {shown(name)}"
                f"{nearest(name, self.__dict__.get('_operations', {}))}"
            )
        return found  # type: ignore[no-any-return]

    def __dir__(self) -> list[str]:
        return sorted(["name", *self._operations])

    def __repr__(self) -> str:
        return f"<kp.OpLibrary {self.name}: {', '.join(sorted(self._operations)) or 'no operations'}>"


libraries: dict[str, OpLibrary] = {}
"""The libraries of the process, by name."""


def op_library(name: str) -> OpLibrary:
    """A new library of operations; its operations are ``kp.ops.NAME.operation``, too.

    Raises AlreadyExistsError if the process has a library of that name, or `kp.ops` a function, which would
    hide the library; InvalidArgumentError if `name` is not a Python identifier or begins with an underscore,
    ArgumentTypeError if it is not a str.

    >>> kp.op_library("signal").name
    'signal'
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"The name of a library is a str, not {kind_of(name)}")
    if not name.isidentifier() or name.startswith("_") or keyword.iskeyword(name):
        raise InvalidArgumentError(f"A library is named by a Python identifier; {shown(name)} is not one")
    if name in libraries:
        raise AlreadyExistsError(f"There is a library {shown(name)} already")
    # The room of kp.ops lies above this one, so the package is asked.
    if hasattr(sys.modules[__name__.partition(".")[0]].ops, name):
        raise AlreadyExistsError(
            f"kp.ops.{name} is a part of kompute_py, which would hide a library {shown(name)}: give it "
            f"another name, such as {shown(f'my_{name}')}"
        )
    library = libraries[name] = OpLibrary(name)
    return library


Recipe = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]
"""A function with its arguments."""


def recalled(operation: Any, module: str, recipe: Recipe | None = None) -> Any:
    """The value of ``__reduce_ex__`` for a part of `kp.ops`, a library or `module`, or what `recipe` makes.

    Raises ArgumentTypeError for any other operation.
    """
    name = operation.__name__
    package = __name__.partition(".")[0]
    for library in (None, *libraries.values()):
        held = getattr(sys.modules[package], "ops", None) if library is None else library._operations
        if (getattr(held, name, None) if library is None else library._operations.get(name)) is operation:
            return _of_library, ("" if library is None else library.name, name)
    if recipe is not None:
        make, args, named = recipe
        return functools.partial(make, *args, **named), ()
    for found, each in list(vars(sys.modules[module]).items()) if module in sys.modules else ():
        if each is operation:
            return _of_module, (module, found)
    raise ArgumentTypeError(
        f"{operation!r} cannot be pickled: no variable of the module {module!r} has it, by which another "
        "process would find it. Register the class at the top of a module, or put it into a library, "
        "kp.op_library(name)"
    )


def _of_library(library: str, name: str) -> Any:
    ops = sys.modules[__name__.partition(".")[0]].ops
    return getattr(getattr(ops, library) if library else ops, name)


def _of_module(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
