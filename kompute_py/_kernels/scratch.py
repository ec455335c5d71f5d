"""Device memory for the arrays that calls are given in place of Tensors.

Arrays of about the same size share a buffer; a call binds as many bytes of it as its array has. So calls
with a new shape each time make no buffers, and the memory does not grow with the number of shapes.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_dtype
from .._base.errors import ArgumentTypeError
from .._device.kept import make_room
from .._memory.making import form_of, new_tensor
from .._memory.tensor import Tensor

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


class Scratch:
    """The buffers of one kernel, by the number of the parameter and the capacity."""

    __slots__ = ("__weakref__", "_buffers", "_dtypes", "_manager", "_table", "beyond")

    def __init__(self, manager: Device, table: _native.CallTable) -> None:
        """`table` has what was recorded for the buffers, and refers to this object."""
        self._manager = manager
        self._table = weakref.ref(table)
        self._buffers: dict[tuple[int, int], Tensor] = {}
        self._dtypes: dict[np.dtype[Any], np.dtype[Any]] = {}  # in native byte order, of those seen
        self.beyond = False
        """Whether the current call has memory that is too large to be kept."""
        manager._families.add(self)

    def begin(self) -> None:
        """Begins a call."""
        self.beyond = False

    def tensor(self, index: int, array: np.ndarray[Any, Any]) -> Tensor:
        """A Tensor of the shape and dtype of `array`, the argument for parameter `index`; its contents are
        undefined.

        Raises ArgumentTypeError for a dtype that devices lack, OutOfMemoryError.
        """
        dtype = self._dtypes.get(array.dtype)
        if dtype is None:
            dtype = self._checked(array)
        if array.nbytes >= 1 << 40:
            new_tensor(self._manager, array.shape, dtype, "storage")  # a broadcast array; raises
        size = capacity(array.nbytes)
        buffer = self._buffer(index, size)
        if buffer is None:
            self.beyond = True
            buffer = new_tensor(self._manager, (size,), _BYTES, "storage")
        return buffer._part(0, array.shape, dtype)

    def memory(self, index: int, nbytes: int) -> Any:
        """A native buffer of at least `nbytes`, with undefined contents, for parameter `index`; None for more
        than is kept.

        Raises OutOfMemoryError.
        """
        buffer = self._buffer(index, capacity(nbytes))
        return None if buffer is None else buffer._native

    def _buffer(self, index: int, size: int) -> Tensor | None:
        buffer = self._buffers.get((index, size))
        if buffer is None or not buffer._is_init():
            if not make_room(self._manager, size):
                return None
            buffer = self._buffers[index, size] = new_tensor(self._manager, (size,), _BYTES, "storage")
        return buffer

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
        table = self._table()
        if table is not None:
            table.clear()  # what was recorded for them

    drop_some = trim
