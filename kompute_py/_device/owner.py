"""The Manager that users read from its objects, as in ``tensor.manager.sequence()``.

Rooms below `_manager` use `Device`. Only users' checkers of types need the class `Manager` there, whose
methods name the types of tensors and sequences in turn: owner.pyi tells them.
"""

from __future__ import annotations

from typing import Any

from .._base.arrays import as_name


def owner(device: Any) -> Any:
    """A `Device` as the Manager that it always is."""
    return device


class Owned:
    """Base of the objects of a Manager."""

    __slots__ = ()

    _manager: Any

    @property
    def manager(self) -> Any:
        """The Manager that it belongs to."""
        return self._manager


class Named(Owned):
    """Base of those whose name the core keeps."""

    __slots__ = ()

    _native: Any

    @property
    def name(self) -> str:
        """A name for error messages, validation messages and profiles; "" by default."""
        return self._native.name  # type: ignore[no-any-return]

    @name.setter
    def name(self, value: str) -> None:
        self._native.name = as_name(value)
