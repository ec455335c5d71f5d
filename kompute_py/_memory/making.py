"""Makes tensors of a shape and a dtype, for `Manager.empty`, `zeros`, `full` and the rooms below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base import misplaced
from .._base.arrays import as_shape, to_element
from .._base.errors import ArgumentTypeError, InvalidArgumentError, OutOfMemoryError, shown
from .._base.types import DEVICE, MemoryTypes, to_memory_type
from .tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from .._device.device import Device

_FLAGS: dict[str, int] = {"device_local": 1, "host_visible": 2, "host_coherent": 4, "host_cached": 8}
"""VkMemoryPropertyFlagBits by the names of `Memory.memory_flags`."""
NO_FLAGS: tuple[()] = ()
# The largest size of a NumPy array; the core's sizes have 64 bits.
_MOST_BYTES = 2**63 - 1


def form_of(shape: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The axes and the element of a tensor of `shape` and `dtype` (None: float32). Raises the errors of
    ``mgr.empty``.
    """
    if dtype is None:
        dtype = np.float32
    try:
        element, axes = to_element(dtype)
        return as_shape(shape) + axes, element
    except ArgumentTypeError as error:
        raise misplaced.in_allocation(shape, dtype, error) from None


def new_tensor(
    manager: Device,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    memory_type: Any = None,
    fill: bytes | None = None,
    memory_flags: Any = NO_FLAGS,
    priority: Any = None,
) -> Tensor:
    """A Tensor of a checked shape and dtype, filled with `fill`, repeated; None: with undefined contents.

    Raises InvalidArgumentError for an unknown memory type, flag or priority, UnimplementedError if no memory
    has the flags, OutOfMemoryError, FailedPreconditionError if the Manager is destroyed.
    """
    where = DEVICE if memory_type is None else to_memory_type(memory_type, None, misplaced.BEFORE)
    count = math.prod(shape)
    nbytes = count * dtype.itemsize
    if nbytes > _MOST_BYTES:
        raise OutOfMemoryError(
            f"A tensor of shape {shape}, {dtype} would have {nbytes} bytes; "
            "no device has buffers of that size"
        )
    wishes = None
    if memory_flags is not NO_FLAGS or priority is not None:
        wishes = flag_bits(memory_flags), None if priority is None else _to_priority(priority)
    native = manager._buffer(None, nbytes, where, fill if count else None, wishes)
    tensor = buffer_tensor(native, manager, shape, dtype, count, where)
    manager._after(where)
    return tensor


class MemoryPlace(NamedTuple):
    """The memory that a tensor would get, from `Manager.memory_place`; sizes are in bytes.

    >>> place = mgr.memory_place("host")
    >>> place.mappable and place.room > 0
    True
    """

    memory_flags: tuple[str, ...]
    """Vulkan's properties of the memory, as in `Tensor.memory_flags`."""
    memory_type: int
    """Vulkan's number of the memory type."""
    heap: int
    """Vulkan's number of the heap: the one in `mgr.memory.heaps`. If it is full, another may serve."""
    largest: int
    """The largest size of one tensor there."""
    largest_binding: int
    """The most bytes that a shader sees through one storage buffer: maxStorageBufferRange."""
    room: int
    """The bytes that are left: of the heap, of the driver's budget and of `memory_limit`."""
    mappable: bool
    """True if the host addresses it: `Tensor.map` and `Tensor.read` need no staging."""
    importable: bool
    """True if memory of the process can become such a tensor: `Manager.from_host`."""
    shareable: bool
    """True if `Manager.shared` makes it, for other Managers and processes."""
    priorities: bool
    """True if the device heeds ``priority=``."""


MemoryPlace.__module__ = "kompute_py"  # imported when first used


def memory_place(manager: Device, memory_type: Any, memory_flags: Any) -> MemoryPlace:
    """See `Manager.memory_place`."""
    where = to_memory_type(memory_type)
    native, info = manager._native, manager._info
    types, largest = native.memory_place(where, flag_bits(memory_flags))
    kind = info["memory_types"][types[0]]
    heaps = native.memory_statistics()
    heap = heaps[kind["heap"]]
    room = (heap["size"] if heap["budget"] is None else heap["budget"]) - heap["reserved"]
    largest = min(largest, heap["size"])
    if limit := int(manager._setting("memory_limit")):
        largest = min(largest, limit)
        room = min(room, limit - sum(each["reserved"] for each in heaps))
    return MemoryPlace(
        memory_flags=tuple(name for name in _FLAGS if kind[name]),
        memory_type=types[0],
        heap=kind["heap"],
        largest=largest,
        largest_binding=info["limits"]["maxStorageBufferRange"],
        room=max(0, room),
        mappable=kind["host_visible"] and not (where is DEVICE and manager._setting("force_staging")),
        importable=where is MemoryTypes.host and native.host_import_alignment != 0,
        shareable=where is not DEVICE and native.shares_memory(),
        priorities="memoryPriority" in manager.enabled_features,
    )


def _to_priority(given: Any) -> float:
    try:
        if isinstance(given, str | bytes):
            raise TypeError
        number = float(given)
    except Exception:  # the object's own __float__ failed
        raise ArgumentTypeError(f"priority is {shown(given)}; give a number from 0 to 1") from None
    if not 0 <= number <= 1:
        raise InvalidArgumentError(
            f"priority is {number:g}; give a number from 0 to 1 (Vulkan's default: 0.5)"
        )
    return number


def flag_bits(names: Any) -> int:
    """The bits of flags by name: one, or several in a list or tuple."""
    bits = 0
    listed = names if isinstance(names, (list, tuple)) else (names,)
    for name in listed:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"memory_flags is {shown(names)}; give names of flags, such as ['host_cached']"
            )
        if name not in _FLAGS:
            raise InvalidArgumentError(f"There is no memory flag {name!r}; there are {', '.join(_FLAGS)}")
        bits |= _FLAGS[name]
    return bits
