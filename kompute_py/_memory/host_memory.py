"""Memory of the process that the device uses in place: arrays for this purpose, and Tensors over them."""

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
    `IMMUTABLE_UNTIL_TRANSFER_COMPLETES`: the memory must not change before `on_done` is called. Here the call
    itself completes the copy and calls `on_done` before it returns, so this is the same as
    `IMMUTABLE_ONLY_DURING_CALL`. `IMMUTABLE_ZERO_COPY`: the tensor uses the memory in place; the memory must
    not change, and the tensor is read-only. `MUTABLE_ZERO_COPY`: the tensor uses the memory in place; the
    host and the device may write it.
    """

    IMMUTABLE_ONLY_DURING_CALL = 0
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    IMMUTABLE_ZERO_COPY = 2
    MUTABLE_ZERO_COPY = 3


class _Pages(mmap.mmap):
    """Pages that contain a single array."""


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
    """A writable array with undefined contents that `mgr.from_host` and `kp.from_dlpack` share without a
    copy.

    It begins at a multiple of `alignment` bytes, and the space behind it up to the next multiple belongs to
    it. `alignment` is a power of two; None means the system's page size, which nearly all devices require
    (see ``mgr.host_import_alignment``). Raises InvalidArgumentError for a negative axis or another alignment,
    ArgumentTypeError for a dtype that devices do not have, OutOfMemoryError if the system has no such memory.
    """
    made = as_shape(shape)
    element = to_dtype(dtype)
    step = mmap.PAGESIZE if alignment is None else as_index(alignment, "alignment")
    if step <= 0 or step & (step - 1):
        raise InvalidArgumentError(f"alignment is {step}; give a power of two, such as {mmap.PAGESIZE}")
    step = max(step, mmap.PAGESIZE)
    count = math.prod(made)
    size = max(1, -(-count * element.itemsize // step)) * step  # at least one step, even without elements
    try:
        # Separate new pages, which the system zeroes at the first access.
        pages = _Pages(-1, size if step == mmap.PAGESIZE else size + step)
    except (OSError, OverflowError) as error:
        raise OutOfMemoryError(f"There is no memory for an array of {size} bytes: {error}") from None
    first = -_address(np.frombuffer(pages, np.uint8, 1)) % step
    return np.frombuffer(pages, element, count, first).reshape(made)


def aligned_zeros(
    shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, alignment: int | None = None
) -> np.ndarray[Any, Any]:
    """Like `aligned_empty`, filled with zeros. Raises the errors of `aligned_empty`."""
    # Anonymous pages are zero already. Not writing them keeps them cheap.
    return aligned_empty(shape, dtype, alignment)


def _room(array: np.ndarray[Any, Any]) -> int:
    """The number of bytes, from the array's first byte, that belong only to the array.

    This is `array.nbytes`, or more for arrays of `aligned_empty`, with unused bytes at the end of their
    pages.
    """
    root: np.ndarray[Any, Any] = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    pages: Any = root.base
    while isinstance(pages, memoryview):
        pages = pages.obj
    # If this is a part of the array, another part may follow it.
    if not isinstance(pages, _Pages) or _address(array) + array.nbytes != _address(root) + root.nbytes:
        return array.nbytes
    return _address(np.frombuffer(pages, np.uint8)) + len(pages) - _address(array)


def from_host(
    manager: Manager, array: Any, copy: str, semantics: Any, on_done: Callable[[], object] | None
) -> Tensor:
    """Implements `Manager.from_host`; see there."""
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"from_host takes an ndarray, not {type(array).__name__}; use kp.from_dlpack for objects with "
            "DLPack, mgr.tensor_t for anything else"
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
            # Imported here: the import costs milliseconds, and most programs never log a message.
            from logging import getLogger

            getLogger("kompute_py").debug(
                "from_host copies: %s", str(error)
            )  # only the text: a record with the error itself would keep the error's frames alive
    data = converted(array, check_dtype(array.dtype))
    tensor = Tensor(manager, data, MemoryTypes.host)
    # The call itself writes memory of type host, so the caller's memory is free now for all semantics.
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
            f"{what} is not C-contiguous, but tensors are: use np.ascontiguousarray, which copies"
        )
    if not array.dtype.isnative:
        raise InvalidArgumentError(
            f"{what} has the other byte order, which no device can read: it must be copied"
        )
    native = manager._native.import_array(array, _room(array), read_only, on_done)
    tensor = buffer_tensor(native, manager, array.shape, array.dtype, array.size, MemoryTypes.host)
    manager._after(MemoryTypes.host)
    return tensor
