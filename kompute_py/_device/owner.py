"""The Manager that users read from its objects, as in ``tensor.manager.sequence()``.

Rooms below `_manager` use `Device`. Only users' checkers of types need the class `Manager` there, whose
methods name the types of tensors and sequences in turn: owner.pyi tells them.
"""

from __future__ import annotations

from typing import Any


def owner(device: Any) -> Any:
    """A `Device` as the Manager that it always is."""
    return device
