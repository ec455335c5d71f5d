"""Operations, and the builders that make them from a line of text.

``kp.ops.NAME`` is the library that `kp.op_library` made with that name. ``__init__.pyi`` lists the functions
by module; a module is imported when one of its names is first used.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from .._base.text import nearest
from .._functions.library import libraries

_LISTED = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULES = {
    module: list(dict.fromkeys(re.findall(r"^(?:def |from .+ as )?(\w+)(?:[:(]|$)", names, re.MULTILINE)))
    for module, names in re.findall(r"^# (\.[\w.]+)\n((?:.+\n)+)", _LISTED, re.MULTILINE)
}
"""The public names by module."""
_ALIASES = dict(re.findall(r"^(\w+) = (\w+)$", _LISTED, re.MULTILINE))
"""NumPy's other names, with those of the functions."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
        return found
    if name in _ALIASES:
        found = globals()[name] = __getattr__(_ALIASES[name])
        return found
    found = libraries.get(name)
    if found is None:
        from .._memory.array_habits import CALLS, OPERATIONS

        near = f": use {CALLS[name]}." if name in CALLS else nearest(OPERATIONS.get(name, name), __dir__())
        raise AttributeError(f"kp.ops has no function and no library {name!r}{near}", name=name)
    return found


def _indexing() -> Any:
    """The module that ``t[key]`` of tensors uses for arrays in the key."""
    return import_module("._orders.picking", __name__)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ALIASES, *libraries})
