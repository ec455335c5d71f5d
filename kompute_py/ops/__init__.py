"""Operations. ``kp.ops.NAME`` is the library that `kp.op_library` made with that name."""

from __future__ import annotations

from typing import Any

from .._custom.library import libraries

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    found = libraries.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, and no library has that name")
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *libraries])
