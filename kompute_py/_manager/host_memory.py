"""Memory of the process that the device uses in place: arrays for this purpose, and Tensors over them."""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_index, as_shape, check_dtype, converted, refuse_mask, to_dtype
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    OutOfMemoryError,
    UnimplementedError,
    shown,
)
from .._base.types import MemoryTypes
from .._device.device import require_manager
from .._memory.memory import Memory, seen_by_others
from .._memory.tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._base.annotations import CopyMode, HostBufferSemanticsName
    from .._device.device import Device


class HostBufferSemantics(IntEnum):
    """How long the caller leaves the memory unchanged, as PJRT_HostBufferSemantics (same names and values).

    `IMMUTABLE_ONLY_DURING_CALL`: the call copies the memory; it may change as soon as the call returns.
    `IMMUTABLE_UNTIL_TRANSFER_COMPLETES`: the memory must not change before `on_done` is called. Here the call
    itself completes the copy and calls `on_done` before it returns, so this is the same as
    `IMMUTABLE_ONLY_DURING_CALL`. `IMMUTABLE_ZERO_COPY`: the tensor uses the memory in place; the memory must
    not change, and the tensor is read-only. `MUTABLE_ZERO_COPY`: the tensor uses the memory in place; the
    host and the device may write it.

    >>> array = kp.aligned_zeros(4)
    >>> t = mgr.from_host(array, semantics=kp.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
    >>> array[:] = 1  # the tensor has a copy
    >>> t.read().tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    IMMUTABLE_ONLY_DURING_CALL = 0
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    IMMUTABLE_ZERO_COPY = 2
    MUTABLE_ZERO_COPY = 3


class _Pages(mmap.mmap):
    """Pages that contain a single array."""


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _to_semantics(value: Any) -> HostBufferSemantics | None:
    """The semantics that a name, a number or a member means; None stays None."""
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

    >>> array = kp.aligned_empty((2, 3), np.int32)
    >>> array.shape, array.ctypes.data % 4096
    ((2, 3), 0)
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
    """Like `aligned_empty`, filled with zeros. Raises the errors of `aligned_empty`.

    >>> kp.aligned_zeros(3).tolist()
    [0.0, 0.0, 0.0]
    """
    # Anonymous pages are zero already. Not writing them keeps them cheap.
    return aligned_empty(shape, dtype, alignment)


def _room(array: np.ndarray[Any, Any]) -> tuple[int, tuple[int, int]]:
    """The number of bytes, from the array's first byte, that belong only to the array; and the addresses of
    the pages that `aligned_empty` made for it and for other parts of the same array, (0, 0) for other arrays.

    The number is `array.nbytes`, or more for arrays of `aligned_empty`, with unused bytes at the end of their
    pages.
    """
    root: np.ndarray[Any, Any] = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    pages: Any = root.base
    while isinstance(pages, memoryview):
        pages = pages.obj
    if not isinstance(pages, _Pages):
        return array.nbytes, (0, 0)
    first = _address(np.frombuffer(pages, np.uint8))
    end = first + len(pages)
    # If this is a part of the array, another part may follow it.
    is_last = _address(array) + array.nbytes == _address(root) + root.nbytes
    return end - _address(array) if is_last else array.nbytes, (first, end)


def _whole_pages(manager: Device, array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """The bytes of the pages, of an array that begins with a page, which a part of it begins and ends in, and
    where it begins in them; the array itself and 0 if it begins with a page, or where no shader could use it.
    """
    root: np.ndarray[Any, Any] = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    page = manager.host_import_alignment or 1
    begin = _address(array) - _address(root)
    if begin % page == 0 or _address(root) % page or not root.flags.c_contiguous or root.dtype.hasobject:
        return array, 0
    if begin % manager.get_device_properties()["limits"]["minStorageBufferOffsetAlignment"]:
        return array, 0
    first, end = begin // page * page, -(-(begin + array.nbytes) // page) * page
    return root.reshape(-1).view(np.uint8)[first:end], begin - first


def _bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The addresses of the array's first byte and of that after its last."""
    if not array.size:
        return 0, 0
    reaches = [(count - 1) * stride for count, stride in zip(array.shape, array.strides, strict=True)]
    first = _address(array)
    end = first + array.itemsize + sum(each for each in reaches if each > 0)
    return first + sum(each for each in reaches if each < 0), end


def _seen_by_others() -> tuple[Memory, ...]:
    while True:
        try:
            return tuple(seen_by_others)
        except RuntimeError:  # another thread has just added one
            continue


def _owner(manager: Device, array: np.ndarray[Any, Any]) -> tuple[Tensor, int] | None:
    """The Manager's tensor that has the array in its own memory, and where; None if others own the memory.

    Raises UnimplementedError for an array over a host copy or an image, where tensors have no place.
    """
    root: Any = array
    while isinstance(root, (np.ndarray, memoryview)):
        root = root.base if isinstance(root, np.ndarray) else root.obj
    if root is None or isinstance(root, mmap.mmap):
        return None
    known = isinstance(root, Memory)
    begin, end = _bounds(array)
    for each in (root,) if known else _seen_by_others():
        tensor: Any = each
        while (base := getattr(tensor, "base", None)) is not None:
            tensor = base
        native = tensor._native
        if tensor._manager is not manager or native.imported:
            continue
        first = native.host_address
        if isinstance(tensor, Tensor) and first and first <= begin and end <= first + native.nbytes:
            return tensor, begin - first
        if not known:
            continue
        raise UnimplementedError(
            f"The array is over the host's side of {root._describe()}, where a tensor has no place: use that "
            "object, or let the array be copied"
        )
    return None


def _await_writers(manager: Device, array: np.ndarray[Any, Any]) -> None:
    """Waits for work that writes the array's memory through a tensor of the Manager."""
    try:
        own = _owner(manager, array)
    except UnimplementedError:
        return
    if own is not None:
        own[0]._native.wait()
    elif array.size:
        manager._native.await_writers(*_bounds(array))


def _imported(
    manager: Device,
    array: np.ndarray[Any, Any],
    meant: HostBufferSemantics | None,
    on_done: Callable[[], object] | None,
) -> Tensor:
    """A Tensor over the array's own memory, which the device imports; over memory of a tensor of the
    Manager, a view of that tensor.

    Raises InvalidArgumentError or UnimplementedError if it cannot.
    """
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
    own = _owner(manager, array) if array.size else None
    if own is not None:
        tensor, offset = own
        if read_only:
            raise UnimplementedError(
                f"{what} is memory of {tensor._describe()}, which may be written: it cannot be shared as "
                "immutable"
            )
        part = tensor._part(offset, array.shape, array.dtype)
        if on_done is not None:
            weakref.finalize(part, on_done)
        return part
    whole, offset = _whole_pages(manager, array)
    native = manager._native.import_array(whole, *_room(whole), read_only, on_done)
    tensor = buffer_tensor(native, manager, whole.shape, whole.dtype, whole.size, MemoryTypes.host)
    manager._after(MemoryTypes.host)
    seen_by_others.add(tensor)
    return tensor if whole is array else tensor._part(offset, array.shape, array.dtype)


def from_host(
    manager: Device,
    array: Any,
    copy: CopyMode,
    semantics: HostBufferSemantics | HostBufferSemanticsName | None,
    on_done: Callable[[], object] | None,
) -> Tensor:
    """A Tensor over the array's own memory, or over a copy of it. See `Manager.from_host`."""
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"from_host takes an ndarray, not {type(array).__name__}; use kp.from_dlpack for objects with "
            "DLPack, mgr.tensor_t for anything else"
        )
    refuse_mask(array, "The array")
    if not isinstance(copy, str) or copy not in ("auto", "never", "always"):
        raise InvalidArgumentError(f'copy is {shown(copy)}; give "auto", "never" or "always"')
    if on_done is not None and not callable(on_done):
        raise ArgumentTypeError(f"on_done is {shown(on_done)}; give a function without arguments")
    meant = _to_semantics(semantics)
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
    _await_writers(manager, array)
    data = converted(array, check_dtype(array.dtype))
    tensor = Tensor(manager, data, MemoryTypes.host)
    # The call itself writes memory of type host, so the caller's memory is free now for all semantics.
    if on_done is not None:
        on_done()
    return tensor
