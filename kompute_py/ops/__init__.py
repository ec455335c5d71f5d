"""Operations, and the builders that make them from a line of text.

``kp.ops.NAME`` is the library that `kp.op_library` made with that name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._custom.library import libraries

if TYPE_CHECKING:
    from .._builders.elementwise import elementwise
    from .._builders.reduction import reduction
    from .._builders.scan import scan

__all__ = ["elementwise", "reduction", "scan"]

_HOMES = {name: name for name in __all__}
"""The builders, and their modules."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(f".._builders.{_HOMES[name]}", __name__), name)
        return found
    found = libraries.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, and no library has that name")
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *libraries})
