"""The notes that `select` leaves for `generate`, as text: calls with equal texts share their kernels."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of
from .names import text_of

_PLAIN = (int, float, bool, complex, str, bytes, type(None))


def in_full(notes: Mapping[str, Any]) -> str:
    """A text that differs for notes that differ, and that is the same in each process.

    NumPy's ``repr`` rounds numbers and leaves out those in the middle of long arrays, as its print options
    say. That of a plain object is its address, which another one has later. Raises ArgumentTypeError for such
    an object, InvalidArgumentError for notes that contain themselves.
    """
    try:
        return _text(notes)
    except RecursionError:
        raise InvalidArgumentError("notes contains itself, or is nested too deeply") from None


def _text(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return text_of(value)
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
            f"notes has {kind_of(value)}, {text}, which says nothing of its contents, so kernels for one "
            "might serve another: keep its numbers, or give its class a __repr__ that has them"
        )
    return text
