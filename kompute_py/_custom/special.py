"""What `select` gives to `specialize`, as text: calls with equal texts share their kernels. `generate` gets
nothing else from it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from types import MemberDescriptorType
from typing import Any, TypeVar

import numpy as np

from .._base.arrays import refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of
from .._memory.memory import Memory
from .._memory.strided import StridedView
from .names import text_of

_PLAIN = (int, float, bool, complex, str, bytes, type(None))
_T = TypeVar("_T")
_ABSENT = object()
_ATTRIBUTES: dict[type, frozenset[str]] = {}
"""The attributes of a selection and of its arguments."""


def known(made: _T) -> _T:
    """`made`, a new selection or argument, to which `select` may add no attributes."""
    if type(made) not in _ATTRIBUTES:
        _ATTRIBUTES[type(made)] = frozenset(vars(made))
    return made


def refuse_others(who: str, each: Any) -> None:
    """Raises InvalidArgumentError, beginning with `who`, if `select` added attributes to a selection or an
    argument.
    """
    if each is None or len(vars(each)) == len(_ATTRIBUTES[type(each)]):
        return
    name = min(vars(each).keys() - _ATTRIBUTES[type(each)])
    what = f"{kind_of(each)} {each.name!r}" if hasattr(each, "name") else "the selection"
    raise _not_found_by(who, "select", what, name)


def _state(op: Any) -> dict[str, Any]:
    """The attributes of an instance, also those in slots."""
    slots = [
        name
        for each in type(op).__mro__
        for name, member in vars(each).items()
        if isinstance(member, MemberDescriptorType) and hasattr(op, name)
    ]
    return {**vars(op), **{name: getattr(op, name) for name in slots}}


@contextlib.contextmanager
def unchanged(who: str, method: str, op: Any) -> Iterator[None]:
    """Runs a method of an operation's class. Raises InvalidArgumentError, beginning with `who`, if it has set
    attributes of the instance, and takes them back.
    """
    before = _state(op)
    yield
    after = _state(op)
    changed = [
        name for name in {**before, **after} if before.get(name, _ABSENT) is not after.get(name, _ABSENT)
    ]
    for name in changed:
        if name in before:
            object.__setattr__(op, name, before[name])
        else:
            object.__delattr__(op, name)
    if changed:
        raise _not_found_by(who, method, "the operation", min(changed))


def _not_found_by(who: str, method: str, what: str, name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{who}: {method} sets the attribute {name!r} of {what}, which tells no kernels apart, so another "
        f"call would get those generated for this one. In select, call ksel.specialize({name}=...), and in "
        f"generate read ksel.special[{name!r}]; what is the same for all calls belongs to __init__"
    )


def refuse_untold(value: Any) -> None:
    """Raises ArgumentTypeError for masked arrays and memory of a device, which no text tells apart."""
    if isinstance(value, (Memory, StridedView)):
        raise ArgumentTypeError(
            f"specialize: {kind_of(value)} is memory, whose contents change: declare it as an argument, or "
            "give its numbers, t.read()"
        )
    refuse_mask(value, "specialize: a value")


def in_full(special: Mapping[str, Any]) -> str:
    """A text that differs for values that differ, and that is the same in each process.

    NumPy's ``repr`` rounds numbers and leaves out those in the middle of long arrays, as its print options
    say. That of a plain object is its address, which another one has later. Raises ArgumentTypeError for such
    an object, InvalidArgumentError for values that contain themselves.
    """
    try:
        return ", ".join([f"{name}={_text(value)}" for name, value in special.items()])
    except RecursionError:
        raise InvalidArgumentError("specialize: a value contains itself, or is nested too deeply") from None


def _text(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return text_of(value)
    refuse_untold(value)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            return f"{kind.__name__}({value.shape}, {_text(value.tolist())})"
        contents = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{kind.__name__}({value.dtype}, {value.shape}, {contents})"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_text(name)}: {_text(each)}" for name, each in value.items())
        return f"{kind.__name__}({{{inner}}})"
    if isinstance(value, list | tuple):
        return f"{kind.__name__}({', '.join(_text(each) for each in value)})"
    if isinstance(value, set | frozenset):
        return f"{kind.__name__}({', '.join(sorted(_text(each) for each in value))})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{kind.__name__}({_text(members)})"
    text = repr(value)
    if " at 0x" in text:
        raise ArgumentTypeError(
            f"specialize: {kind_of(value)}, {text}, says nothing of its contents, so kernels for one "
            "might serve another: keep its numbers, or give its class a __repr__ that has them"
        )
    return text
