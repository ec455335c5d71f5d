"""Memory of the process that the device uses in place: arrays made for that, and Tensors over them."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_index, as_shape, check_dtype, converted, require_manager, to_dtype
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    OutOfMemoryError,
    UnimplementedError,
    shown,
)
from .._base.types import MemoryTypes
from .tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._manager.manager import Manager

_COPIES = ("auto", "never", "always")


class HostBufferSemantics(IntEnum):
    """How long the caller leaves the memory unchanged, as PJRT_HostBufferSemantics (same names and values).

    `IMMUTABLE_ONLY_DURING_CALL`: the call copies the memory; it may change as soon as the call returns.
    `IMMUTABLE_UNTIL_TRANSFER_COMPLETES`: the memory must not change before `on_done` is called. Here the call itself completes
    the copy and calls `on_done` before it returns, so this is the same as `IMMUTABLE_ONLY_DURING_CALL`.
    `IMMUTABLE_ZERO_COPY`: the tensor uses the memory in place; the memory must not change, and the tensor is read-only.
    `MUTABLE_ZERO_COPY`: the tensor uses the memory in place; the host and the device may write it.
    """

    IMMUTABLE_ONLY_DURING_CALL = 0
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    IMMUTABLE_ZERO_COPY = 2
    MUTABLE_ZERO_COPY = 3


class _Pages(mmap.mmap):
    """Pages that hold one array and nothing else."""


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _semantics(value: Any) -> HostBufferSemantics | None:
    if value is None or isinstance(value, HostBufferSemantics):
        return value
    try:
        return HostBufferSemantics[value] if isinstance(value, str) else HostBufferSemantics(value)
    except (KeyError, ValueError, TypeError):
        known = ", ".join(HostBufferSemantics.__members__)
        raise InvalidArgumentError(
            f"There are no host-buffer semantics {shown(value)}; known: {known}"
        ) from None


def aligned_empty(
    shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, alignment: int | None = None
) -> np.ndarray[Any, Any]:
    """A writable array with undefined contents that `mgr.from_host` and `kp.from_dlpack` share with a device, uncopied.

    It begins at a multiple of `alignment` bytes (a power of two; None: the system's page size, which is what nearly all
    devices ask for, see ``mgr.host_import_alignment``), and the room behind it up to the next multiple is its own.
    Raises InvalidArgumentError for a negative axis or another alignment, ArgumentTypeError for a dtype that devices
    do not have, OutOfMemoryError where the system has no such memory.
    """
    made = as_shape(shape)
    element = to_dtype(dtype)
    step = mmap.PAGESIZE if alignment is None else as_index(alignment, "alignment")
    if step <= 0 or step & (step - 1):
        raise InvalidArgumentError(f"alignment is {step}; give a power of two, such as {mmap.PAGESIZE}")
    step = max(step, mmap.PAGESIZE)
    count = math.prod(made)
    size = max(1, -(-count * element.itemsize // step)) * step  # also for no element
    try:
        # Fresh pages of its own, which the system zeroes when they are touched first.
        pages = _Pages(-1, size if step == mmap.PAGESIZE else size + step)
    except (OSError, OverflowError) as error:
        raise OutOfMemoryError(f"There is no memory for an array of {size} bytes: {error}") from None
    first = -_address(np.frombuffer(pages, np.uint8, 1)) % step
    return np.frombuffer(pages, element, count, first).reshape(made)


def aligned_zeros(
    shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, alignment: int | None = None
) -> np.ndarray[Any, Any]:
    """`aligned_empty` with zeros in it. Raises what that raises."""
    # Anonymous pages are zero: that they were not written is what makes them cheap.
    return aligned_empty(shape, dtype, alignment)


def _room(array: np.ndarray[Any, Any]) -> int:
    """Bytes from the array's first on that are its owner's and nobody else's: `array.nbytes`, but for those of
    `aligned_empty`, whose pages end with nothing in them.
    """
    root: np.ndarray[Any, Any] = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    pages: Any = root.base
    while isinstance(pages, memoryview):
        pages = pages.obj
    # A part of the array may be followed by another part.
    if not isinstance(pages, _Pages) or _address(array) + array.nbytes != _address(root) + root.nbytes:
        return array.nbytes
    return _address(np.frombuffer(pages, np.uint8)) + len(pages) - _address(array)


def from_host(
    manager: Manager, array: Any, copy: str, semantics: Any, on_done: Callable[[], object] | None
) -> Tensor:
    """What `Manager.from_host` does; see there."""
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"from_host takes an ndarray, not {type(array).__name__}; kp.from_dlpack takes what speaks DLPack, "
            "mgr.tensor_t anything"
        )
    if not isinstance(copy, str) or copy not in _COPIES:
        raise InvalidArgumentError(f'copy is {shown(copy)}; give "auto", "never" or "always"')
    if on_done is not None and not callable(on_done):
        raise ArgumentTypeError(f"on_done is {shown(on_done)}; give a function without arguments")
    meant = _semantics(semantics)
    in_place = meant is None or meant >= HostBufferSemantics.IMMUTABLE_ZERO_COPY
    if copy == "never" and not in_place:
        raise InvalidArgumentError(f'copy="never" and {shown(meant)} contradict each other: that one copies')
    check_dtype(array.dtype)
    as_shape(array.shape)

    if copy != "always" and in_place:
        try:
            return _imported(manager, array, meant, on_done)
        except (InvalidArgumentError, UnimplementedError, OutOfMemoryError) as error:
            if copy == "never":
                raise
            from logging import getLogger  # costs milliseconds, and most programs never have a message

            getLogger("kompute_py").debug(
                "from_host copies: %s", str(error)
            )  # a record that kept the error would keep its frames
    data = converted(array, check_dtype(array.dtype))
    tensor = Tensor(manager, data, MemoryTypes.host)
    # Memory of type host is written by the call itself, so for every one of the semantics the caller's memory is free now.
    if on_done is not None:
        on_done()
    return tensor


def _imported(
    manager: Manager,
    array: np.ndarray[Any, Any],
    meant: HostBufferSemantics | None,
    on_done: Callable[[], object] | None,
) -> Tensor:
    read_only = meant is HostBufferSemantics.IMMUTABLE_ZERO_COPY
    what = f"The array of shape {array.shape}, {array.dtype}"
    require_manager(manager)
    if not array.flags.writeable and not read_only:
        raise InvalidArgumentError(
            f"{what} is read-only: share it with semantics=kp.HostBufferSemantics.IMMUTABLE_ZERO_COPY"
        )
    if not array.flags.c_contiguous:
        raise InvalidArgumentError(
            f"{what} is not C-contiguous, and tensors are: use np.ascontiguousarray, which copies"
        )
    if not array.dtype.isnative:
        raise InvalidArgumentError(
            f"{what} has the other byte order, which no device reads: it must be copied"
        )
    native = manager._native.import_array(array, _room(array), read_only, on_done)
    tensor = buffer_tensor(native, manager, array.shape, array.dtype, array.size, MemoryTypes.host)
    manager._after(MemoryTypes.host)
    return tensor
