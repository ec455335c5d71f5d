"""Makes tensors of a shape and a dtype, for `Manager.empty`, `zeros`, `full` and the rooms below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import misplaced
from .._base.arrays import as_shape, to_element
from .._base.errors import ArgumentTypeError, InvalidArgumentError, OutOfMemoryError, shown
from .memory import DEVICE, to_memory_type
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
) -> Tensor:
    """A Tensor of a checked shape and dtype, filled with `fill`, repeated; None: with undefined contents.

    Raises InvalidArgumentError for an unknown memory type or flag, UnimplementedError if no memory has the
    flags, OutOfMemoryError, FailedPreconditionError if the Manager is destroyed.
    """
    where = DEVICE if memory_type is None else to_memory_type(memory_type, None, misplaced.BEFORE)
    count = math.prod(shape)
    nbytes = count * dtype.itemsize
    if nbytes > _MOST_BYTES:
        raise OutOfMemoryError(
            f"A tensor of shape {shape}, {dtype} would have {nbytes} bytes; "
            "no device has buffers of that size"
        )
    native = manager._buffer(
        None,
        nbytes,
        where,
        fill if count else None,
        _required(memory_flags) if memory_flags is not NO_FLAGS else 0,
    )
    tensor = buffer_tensor(native, manager, shape, dtype, count, where)
    manager._after(where)
    return tensor


def _required(names: Any) -> int:
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
