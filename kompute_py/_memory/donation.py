"""The end of tensors that were donated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native
from .memory import takers

if TYPE_CHECKING:
    from .tensor import Tensor


def sole_owner(tensor: Tensor) -> bool:
    """Whether nothing but this tensor refers to its memory: no view, recording, prepared call or array."""
    view = tensor._view
    return (
        type(tensor._native) is _native.Buffer
        and _native.buffer_owners(tensor._native) == 1
        and (view is None or view() is None)
        and tensor._host is None
    )


def end(tensor: Tensor, taker: str, reused: bool) -> None:
    """Ends a donated tensor. `reused`: its memory is a result's now; else it is freed."""
    takers[tensor] = taker
    if not reused:
        tensor.destroy()
        return
    # A destroyed buffer in its place: any use of it gets the error of destroyed memory.
    gone: Any = tensor._manager._native.buffer(None, 0, 0, None)
    gone.name = tensor._native.name
    gone.destroy()
    tensor._native = gone
    tensor._is_init = gone.is_init
    tensor._view = None
