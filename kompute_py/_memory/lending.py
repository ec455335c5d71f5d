"""Device memory that calls are lent for what stands for arrays, images and parts of tensors.

Needs of about the same size share a buffer; a call binds as many bytes of it as it needs. So calls with a new
shape each time make no buffers, and the memory does not grow with the number of shapes.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_dtype
from .._base.errors import ArgumentTypeError
from .._base.types import MemoryTypes
from .._device.kept import make_room
from .making import form_of, new_tensor
from .tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from .. import _native
    from .._device.device import Device

_LEAST_BYTES = 256
_BYTES = np.dtype(np.uint8)


def capacity(nbytes: int) -> int:
    """The bytes of the buffer for an array of `nbytes`: four sizes between a power of two and the next."""
    if nbytes <= _LEAST_BYTES:
        return _LEAST_BYTES
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class Lending:
    """Buffers for one call at a time of a kernel or function, by the number of the need and the capacity. It
    does not hold the Manager.
    """

    __slots__ = ("__weakref__", "_buffers", "_dtypes", "_manager", "_table", "beyond")

    def __init__(self, manager: Device, table: _native.CallTable | None = None) -> None:
        """`table` has what was recorded for the buffers, and refers to this object."""
        self._manager = weakref.ref(manager)
        self._table = None if table is None else weakref.ref(table)
        self._buffers: dict[tuple[int, int], _native.Buffer | _native.BufferView] = {}
        self._dtypes: dict[np.dtype[Any], np.dtype[Any]] = {}  # in native byte order, of those seen
        self.beyond = False
        """Whether the current call has memory that is too large to be kept."""
        manager._keepers.add(self)

    def begin(self) -> None:
        """Begins a call."""
        self.beyond = False

    def bytes(self, index: int, nbytes: int) -> Tensor:
        """At least so many bytes for need `index`, with undefined contents. Raises OutOfMemoryError."""
        manager, size = self._device(), capacity(nbytes)
        native = self._buffer(index, size)
        if native is None:
            self.beyond = True
            return new_tensor(manager, (size,), _BYTES, "storage")
        return buffer_tensor(native, manager, (size,), _BYTES, size, MemoryTypes.storage)

    def tensor(self, index: int, array: np.ndarray[Any, Any]) -> Tensor:
        """A Tensor of the shape and dtype of `array`, the argument for parameter `index`; its contents are
        undefined.

        Raises ArgumentTypeError for a dtype that devices lack, OutOfMemoryError.
        """
        dtype = self.dtype_of(array)
        if array.nbytes >= 1 << 40:
            new_tensor(self._device(), array.shape, dtype, "storage")  # a broadcast array; raises
        return self.dense(index, array.shape, dtype)

    def dense(self, index: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """A Tensor for parameter `index`, with undefined contents. Raises OutOfMemoryError."""
        return self.bytes(index, math.prod(shape) * dtype.itemsize)._part(0, shape, dtype)

    def dtype_of(self, array: np.ndarray[Any, Any]) -> np.dtype[Any]:
        """The dtype of `array` on devices. Raises ArgumentTypeError if they lack it."""
        return self._dtypes.get(array.dtype) or self._checked(array)

    def made(self, output: Any) -> Any:
        """A new Tensor or Image for an output that a call leaves out."""
        return output.made(self._device())

    def memory(self, index: int, nbytes: int) -> Any:
        """A native buffer of at least `nbytes`, with undefined contents, for parameter `index`; None for more
        than is kept.

        Raises OutOfMemoryError.
        """
        return self._buffer(index, capacity(nbytes))

    def _device(self) -> Device:
        manager = self._manager()
        assert manager is not None  # whoever calls has it
        return manager

    def _buffer(self, index: int, size: int) -> _native.Buffer | _native.BufferView | None:
        native = self._buffers.get((index, size))
        if native is None or not native.is_init():
            manager = self._device()
            if not make_room(manager, size):
                return None
            native = self._buffers[index, size] = new_tensor(manager, (size,), _BYTES, "storage")._native
        return native

    def _checked(self, array: np.ndarray[Any, Any]) -> np.dtype[Any]:
        try:
            dtype = check_dtype(array.dtype)
        except ArgumentTypeError:
            form_of(array.shape, array.dtype)  # raises it with the array's shape
            raise
        if len(self._dtypes) >= 64:
            self._dtypes.clear()
        self._dtypes[array.dtype] = dtype
        return dtype

    @property
    def kept_calls(self) -> int:
        """None: the table bounds them."""
        return 0

    @property
    def kept_bytes(self) -> int:
        """The bytes of the buffers."""
        return sum([size for _, size in list(self._buffers)])

    def trim(self) -> None:
        """Lets go of all buffers; calls that run keep theirs."""
        self._buffers = {}
        table = None if self._table is None else self._table()
        if table is not None:
            table.clear()  # what was recorded for them

    drop_some = trim
