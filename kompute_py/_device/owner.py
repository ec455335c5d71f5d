"""The class of what users read as `manager`, as in ``tensor.manager.sequence()``.

Rooms below `_manager` use `Device`. Users need the type `Manager` there, and its methods name the types of
tensors and sequences in turn. So this is the one typing import that goes upwards; pyproject.toml names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._manager.manager import Manager as Manager


def owner(device: Any) -> Manager:
    """A `Device` as what it always is, a Manager."""
    made: Manager = device
    return made
