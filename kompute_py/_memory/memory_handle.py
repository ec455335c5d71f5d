"""The handle of a tensor's memory, for other Managers and processes."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.descriptors import Descriptor
from .._base.errors import ArgumentTypeError, FailedPreconditionError

if TYPE_CHECKING:
    import numpy as np

    from .._base.types import MemoryTypes
    from .._device.device import Device
    from .memory import Memory

# Of the tensors over shared memory. A key stands for the memory's address: all tensors of a Manager with one
# key are ordered like one tensor.
keys: weakref.WeakKeyDictionary[Memory, int] = weakref.WeakKeyDictionary()


class _Made(NamedTuple):
    fd: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory_type: MemoryTypes
    place: tuple[int, int, int]
    """The key, the size of the allocation in bytes, Vulkan's number of the memory type."""
    device: tuple[str, str]
    """The UUIDs of the device and the driver."""


class MemoryHandle(Descriptor):
    """A tensor's memory for another Manager or process: a file descriptor, and what it takes to use it.

    ``t.share()`` gives one, and ``mgr.import_memory(handle)`` makes a Tensor over the same memory. It can be
    sent to another process by `multiprocessing`: as an argument of a Process, through a Pipe or a Queue. The
    handle owns its descriptor: `close`, the end of a ``with`` block or its last reference closes it. Tensors
    do not need it once they are made.

    Raises ArgumentTypeError if it is called: a tensor makes its handle.

    >>> t = mgr.shared(4)
    >>> with t.share() as handle:
    ...     same = mgr.import_memory(handle)
    >>> t.write([1, 2, 3, 4])
    >>> same.read().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = ("_device", "_dtype", "_key", "_memory_type", "_shape", "_size", "_type")

    _anew = "take a new one with t.share()"

    def __init__(self, *given: Any, _made: _Made | None = None, **named: Any) -> None:
        """Raises ArgumentTypeError: handles are made by `Tensor.share`."""
        if _made is None:
            raise ArgumentTypeError("A MemoryHandle is made by a tensor: t.share()")
        self._fd, self._shape, self._dtype, self._memory_type, place, self._device = _made
        self._key, self._size, self._type = place

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The tensor's dtype."""
        return self._dtype

    @property
    def memory_type(self) -> MemoryTypes:
        """The tensor's memory type."""
        return self._memory_type

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return math.prod(self._shape) * self._dtype.itemsize

    @property
    def allocation_size(self) -> int:
        """The size of the whole VkDeviceMemory in bytes, which other APIs need to import it."""
        return self._size

    @property
    def memory_type_index(self) -> int:
        """Vulkan's number of the memory type, which another Vulkan program needs to import it."""
        return self._type

    def __reduce__(self) -> Any:
        """Sends a duplicate of the descriptor, as `multiprocessing` does with sockets."""
        place = self._key, self._size, self._type
        given = self._shape, self._dtype, self._memory_type, place, self._device
        return _received, (self._sent(), *given)

    def __repr__(self) -> str:
        return f"<kp.MemoryHandle of shape {self._shape}, {self._dtype}: {self._state()}>"


def _received(duplicate: Any, *given: Any) -> MemoryHandle:
    return MemoryHandle(_made=_Made(duplicate.detach(), *given))


def identity_of(manager: Device) -> tuple[str, str]:
    info = manager.get_device_properties()
    return info["uuid"], info["driver_uuid"]


def handle_of(tensor: Memory) -> MemoryHandle:
    """The handle of a tensor. See `Tensor.share`."""
    tensor._require_init("be shared")
    key = keys.get(tensor)
    if key is None:
        raise FailedPreconditionError(
            f"{tensor._describe()} has memory of its own, which cannot be shared: make the tensor with "
            "mgr.shared(shape, dtype), and share it whole"
        )
    native: Any = tensor._native
    native.wait()
    fd, size, kind = native.descriptor()
    place = key, size, kind
    device = identity_of(tensor._manager)
    made = _Made(fd, tensor.shape, tensor.dtype, tensor.memory_type(), place, device)
    return MemoryHandle(_made=made)
