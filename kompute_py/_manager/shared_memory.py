"""Tensors over memory that other Managers and processes use too, by a file descriptor."""

from __future__ import annotations

import math
import os
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base import misplaced
from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, kind_of
from .._base.types import DEVICE, MemoryTypes, to_memory_type
from .._memory.making import form_of
from .._memory.memory import seen_by_others
from .._memory.memory_handle import MemoryHandle, identity_of, keys
from .._memory.tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from .._base.annotations import MemoryTypeLike
    from .._device.device import Device

_FIRST_KEY = 1 << 63  # as native/core/resource/shared_memory.hpp has it
_KEY_STEP = 40  # bits: keys are further apart than memory is large


def _made(
    manager: Device, shape: tuple[int, ...], dtype: np.dtype[Any], where: MemoryTypes, key: int, *source: int
) -> Tensor:
    count = math.prod(shape)
    native = _native.share_buffer(manager._native, count * dtype.itemsize, where, key, *source)
    tensor = buffer_tensor(native, manager, shape, dtype, count, where)
    keys[tensor] = key
    seen_by_others.add(tensor)
    manager._after(where)
    return tensor


def new_shared(manager: Device, shape: Any, dtype: Any, memory_type: Any) -> Tensor:
    """A Tensor over new memory that can be shared. See `Manager.shared`."""
    axes, element = form_of(shape, dtype)
    where = to_memory_type(memory_type, None, misplaced.BEFORE)
    if where is DEVICE:
        raise InvalidArgumentError(
            'Shared memory has no host copy, which memory_type="device" means: use "storage", "host" or '
            '"deviceAndHost"'
        )
    if math.prod(axes) * element.itemsize == 0:
        raise InvalidArgumentError(
            f"A shared tensor of shape {axes} has no elements: there is no memory to share"
        )
    if os.name != "posix":
        raise UnimplementedError("Memory is shared by file descriptors, which this system does not have")
    return _made(manager, axes, element, where, _FIRST_KEY | secrets.randbits(63 - _KEY_STEP) << _KEY_STEP)


def imported_memory(manager: Device, handle: Any, memory_type: MemoryTypeLike | None) -> Tensor:
    """A Tensor over the memory of a handle. See `Manager.import_memory`."""
    if not isinstance(handle, MemoryHandle):
        raise ArgumentTypeError(f"import_memory takes a kp.MemoryHandle, of t.share(), not {kind_of(handle)}")
    where = handle.memory_type if memory_type is None else to_memory_type(memory_type)
    if where is DEVICE:
        raise InvalidArgumentError(
            'Shared memory has no host copy, which memory_type="device" means: use "storage", "host" or '
            '"deviceAndHost"'
        )
    if identity_of(manager) != handle._device:
        raise InvalidArgumentError(
            f"{handle!r} is of another device or driver than {manager!r}: open the Manager on the same "
            "device, or copy the contents"
        )
    source = os.dup(handle.fileno()), handle._size, handle._type
    return _made(manager, handle.shape, handle.dtype, where, handle._key, *source)
