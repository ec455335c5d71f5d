"""Tensor: an array of any shape in device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrays import as_typed
from .memory import DEVICE, Memory, to_memory_type

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from . import _native as core
    from .manager import Manager
    from .types import MemoryTypes


class Tensor(Memory):
    """An array in device memory, with a shape and a dtype.

    Made by ``mgr.tensor`` (float32), ``mgr.tensor_t`` (the data's own dtype), ``mgr.empty`` and ``mgr.zeros``, or as
    ``kp.Tensor(mgr, data, memory_type)``, which keeps the dtype.
    """

    __slots__ = ()

    _native: core.Buffer

    def __init__(
        self, manager: Manager, data: ArrayLike, memory_type: MemoryTypes | str | None = None
    ) -> None:
        where = to_memory_type(memory_type)
        manager._adopt_buffer(self, as_typed(data), where)

    @property
    def vk_buffer(self) -> int:
        """The VkBuffer of the device's memory, as an integer. The tensor is `vk_size` bytes from `vk_offset` in it."""
        return self._native.vk_buffer

    @property
    def vk_offset(self) -> int:
        """Bytes from the start of `vk_buffer`."""
        return self._native.vk_offset

    @property
    def vk_size(self) -> int:
        """Bytes that the tensor takes in `vk_buffer`."""
        return self._native.vk_size

    @property
    def vk_device_address(self) -> int:
        """The address for shaders that use buffer references; 0 where the device has no such feature."""
        return self._native.vk_device_address


def buffer_tensor(
    native: Any,
    manager: Manager,
    shape: tuple[int, ...],
    dtype: Any,
    count: int,
    memory_type: MemoryTypes = DEVICE,
) -> Tensor:
    """A Tensor around a native buffer that was just made."""
    tensor = Tensor.__new__(Tensor)
    tensor._adopt(native, manager, shape, dtype, count, memory_type)
    return tensor
