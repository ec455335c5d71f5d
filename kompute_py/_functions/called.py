"""Errors of a call begin with the name of the function that was called, also those of what it calls itself.

Arguments that do not fit the signature raise ArgumentTypeError with the signature. It says so if the function
of that name in NumPy has a parameter that is not taken here.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from .._base.errors import ArgumentTypeError, KomputeError, shown
from .._base.text import nearest
from .._sync.ordered import in_order

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)
_OF_UFUNCS = ("where", "casting", "order", "dtype", "subok", "signature")
_WAYS = {
    "min": ": it is a_min here",
    "max": ": it is a_max here",
    "where": ": choose elements with kp.ops.where(condition, x, y)",
    "dtype": ": convert with kp.ops.astype(x, dtype)",
    "correction": ": it is ddof here",
    "stable": ": the order is always stable, so leave it out",
    "kind": ": the order is always stable, so leave it out",
    "initial": ": combine the result with it",
}
"""Advice about parameters of NumPy's functions."""
_ON_THE_HOST = ": call that one, with t.read() for Tensors"


def begun(error: KomputeError, name: str) -> KomputeError:
    """`error` with a message that begins with the function's name, and not with that of one that it calls."""
    text = str(error).removeprefix(f"{getattr(error, '_function', name)}: ")
    if not re.match(rf"{re.escape(name)}\b", text):
        text = f"{name}: {text}"
    error.args = (text, *error.args[1:])
    error._function = name  # type: ignore[attr-defined]
    return error


def unknown(name: str, parameter: object, known: Iterable[str], signature: str) -> ArgumentTypeError:
    """The error for a keyword that the function `name` does not have."""
    if parameter == "donate":
        why = ": a call takes it, f(x, donate='x'), and so does submit. Recorded work runs more than once."
    elif _numpy_has(name, parameter):
        why = f", which NumPy's function has{_WAYS.get(str(parameter), _ON_THE_HOST)}."
    else:
        why = nearest(parameter, known)
    return ArgumentTypeError(f"{name} has no parameter {shown(parameter)}{why} The signature is {signature}")


def _numpy_has(name: str, parameter: object) -> bool:
    for module in (np, np.fft, np.linalg, np.random.Generator):
        found = getattr(module, name, None)
        if isinstance(found, np.ufunc):
            return parameter in _OF_UFUNCS
        try:
            if found is not None and parameter in inspect.signature(found).parameters:
                return True
        except (TypeError, ValueError):  # a module, or written in C
            pass
    return False


def explained(
    error: Exception, name: str, signature: inspect.Signature, args: tuple[Any, ...], named: Mapping[str, Any]
) -> Exception:
    """The error of a call with these arguments, for its caller."""
    if isinstance(error, KomputeError):
        return begun(error, name)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    text = f"{name}{inspect.Signature(bare)}"
    try:
        signature.bind(*args, **named)
        return error
    except TypeError as misfit:
        extra = [each for each in named if each not in signature.parameters]
        made = (
            unknown(name, extra[0], signature.parameters, text)
            if extra
            else ArgumentTypeError(f"{name}: {misfit}. The signature is {text}")
        )
    made.__suppress_context__ = True
    return made


def called(function: _Function, name: str = "") -> _Function:
    """`function` with errors that are `explained`. Signatures of methods are shown without ``self``."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except (KomputeError, TypeError) as error:
            signature = inspect.signature(function)
            parameters = [*signature.parameters.values()]
            if parameters and parameters[0].name == "self":
                signature, args = signature.replace(parameters=parameters[1:]), args[1:]
            raise explained(error, name or function.__name__, signature, args, named)  # noqa: B904

    return call  # type: ignore[return-value]


def called_methods(cls: _Class) -> _Class:
    """A class with public methods that are `called`, and `in_order` if they declare ``**options``; and its
    making by its own name.
    """
    for name, each in [*vars(cls).items()]:
        if isinstance(each, FunctionType) and (name == "__init__" or not name.startswith("_")):
            made = in_order(each) if each.__code__.co_flags & inspect.CO_VARKEYWORDS else each
            setattr(cls, name, called(made, cls.__name__ if name == "__init__" else name))
    return cls
