"""Scratch memory: what operations pass from one dispatch to the next, shared among all recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base.arrays import as_shape, to_dtype
from .._base.errors import FailedPreconditionError
from .._base.types import MemoryTypes
from .._device.device import require_manager
from .._device.kept import Keeping, make_room, most_kept
from .making import new_tensor
from .tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import DTypeLike

    from .._device.device import Device

_ALIGNMENT = 256  # the largest minStorageBufferOffsetAlignment that Vulkan allows
_LEAST = 1 << 16
_NAME = "scratch"


def aligned(nbytes: int) -> int:
    """The bytes that a part takes up."""
    return -(-max(nbytes, 16) // _ALIGNMENT) * _ALIGNMENT


def pooled(manager: Keeping, nbytes: int, had: int) -> int:
    """The bytes of the piece for a request of `nbytes`, more than the `had` of the piece before."""
    return max(aligned(nbytes), _LEAST, min(2 * had, most_kept(manager) // 2))


class ScratchPool:
    """The scratch memory of a Manager, for one kind of users. It does not hold the Manager.

    Its users begin at its first byte: their work is ordered, because it is on the same memory. A
    request for more than there is gets a larger piece; earlier users keep theirs alive. A piece beyond what a
    Manager keeps belongs to those that use it alone. So does each piece if values are looked at, because
    bytes that several users share have no dtype; it begins as zeros, which are finite numbers.
    """

    def __init__(self) -> None:
        self._piece: tuple[Any, int] = (None, 0)
        """Native memory and its bytes: one reference, so that no lock is needed."""

    kept_calls = 0

    @property
    def kept_bytes(self) -> int:
        """The bytes of the piece."""
        return self._piece[1]

    def take(self, manager: Device, nbytes: int) -> Tensor:
        """A tensor of bytes with room for `nbytes`. Raises OutOfMemoryError if the device has too little."""
        native, size = self._piece
        if native is None or not native.is_init() or size < nbytes:
            size = pooled(manager, nbytes, size)
            self._piece = (None, 0)  # others make room for what is more
            looked_at = manager._tensors is not None
            shared = not looked_at and size <= most_kept(manager) // 2 and make_room(manager, size)
            contents = b"\0" if looked_at else None
            made = new_tensor(manager, (size,), np.dtype(np.uint8), "storage", contents)
            made.name = _NAME
            native = made._native
            if shared:
                self._piece = native, size
        return buffer_tensor(native, manager, (size,), np.dtype(np.uint8), size, MemoryTypes.storage)

    def trim(self) -> None:
        """Lets go of the memory; recordings that use it keep it."""
        self._piece = (None, 0)

    drop_some = trim


def pool_of(manager: Device, kind: str) -> ScratchPool:
    """The pool of a Manager for "operations" or "sequences"."""
    pools = manager._scratch
    found = pools.get(kind)
    if found is None:
        found = pools.setdefault(kind, ScratchPool())
        manager._keepers.add(found)
    return found


def is_shared(manager: Device, part: Tensor) -> bool:
    """Whether a part of scratch memory is in the piece that all operations share."""
    base = part._base
    while type(base._native) is _native.BufferView:
        base = base._base
    return pool_of(manager, "operations")._piece[0] is base._native


def bytes_of_parts(sizes: Iterable[tuple[int, np.dtype[Any]]]) -> int:
    """The bytes of the tensors of `parts_of`, with those between them."""
    return sum(aligned(count * dtype.itemsize) for count, dtype in sizes)


def parts_of(manager: Device, sizes: Iterable[tuple[int, np.dtype[Any]]]) -> list[Tensor]:
    """Scratch memory for an operation: one tensor for each (number of elements, dtype)."""
    wanted = list(sizes)
    whole = pool_of(manager, "operations").take(manager, bytes_of_parts(wanted))
    found = []
    at = 0
    for count, dtype in wanted:
        nbytes = count * dtype.itemsize
        found.append(whole[at : at + nbytes].view(dtype))
        at += aligned(nbytes)
    return found


class Scratch:
    """Memory for what operations pass on within a recording: made by ``mgr.scratch()``.

    The tensors of one Scratch do not overlap. Those of two share one piece of memory, so that recordings
    that do not run at the same time, or stages of one recording, need it only once. Their work is ordered
    automatically. A tensor's contents hold until a tensor of another Scratch is written, and are undefined at
    first. Custom operations have scratch memory of their own.

    ``mgr.memory`` shows it under the name "scratch", and ``mgr.memory.trim()`` frees what no tensor and no
    recording uses.

    Raises ArgumentTypeError if it is not given a Manager, FailedPreconditionError if that is destroyed.

    >>> first, second = mgr.scratch(), mgr.scratch()
    >>> a, b = first.empty(1000), first.empty((10, 10), np.int32)
    >>> c = second.empty(1000)
    >>> a.vk_offset == c.vk_offset, a.vk_offset == b.vk_offset
    (True, False)
    >>> mgr.sequence().record(kp.OpFill([a], 1.0), kp.OpFill([c], 2.0)).eval()
    <kp.Sequence ...>
    """

    __module__ = "kompute_py"

    __slots__ = ("_manager", "_used", "_whole")

    def __init__(self, manager: Device) -> None:
        require_manager(manager)
        if not manager.is_init():
            raise FailedPreconditionError("The Manager is destroyed: it cannot make scratch memory")
        self._manager = manager
        self._whole: Tensor | None = None
        self._used = 0

    def empty(self, shape: int | Iterable[int], dtype: DTypeLike = np.float32) -> Tensor:
        """A tensor of `storage` memory, which the host does not see, with undefined contents.

        Raises InvalidArgumentError for a negative axis, ArgumentTypeError for an unsupported dtype,
        OutOfMemoryError if the device has too little memory, FailedPreconditionError if the Manager is
        destroyed.
        """
        axes, element = as_shape(shape), to_dtype(dtype)
        count = int(np.prod(axes, dtype=object))
        nbytes = count * element.itemsize
        whole = self._whole
        if whole is None or not whole._is_init() or self._used + nbytes > whole.size():
            # A piece that is not used by this one yet; what it has stays.
            least = nbytes if whole is None else max(nbytes, whole.size() + 1)
            whole = self._whole = pool_of(self._manager, "sequences").take(self._manager, least)
            self._used = 0
        part = whole[self._used : self._used + nbytes].view(element).reshape(axes)
        self._used += aligned(nbytes)
        return part

    def __repr__(self) -> str:
        return f"<kp.Scratch, {self._used} bytes in use>"
