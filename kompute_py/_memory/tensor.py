"""Tensor: an array of any shape in device memory."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base.arrays import as_indices, as_typed, spread, to_copy, to_dtype
from .._base.errors import (
    ArgumentTypeError,
    ArrayAttributeError,
    ExchangeError,
    InvalidArgumentError,
    KomputeError,
    UnimplementedError,
    shown,
)
from .._base.misplaced import KEPT_BY_TENSOR_T
from .._base.plain_arguments import refuse_unordered
from .._base.types import DEVICE, DataTypes, is_small_float, to_memory_type
from .._device.device import require_manager
from .array_habits import OnlyOfArrays, answer_for
from .dlpack import CPU, VULKAN, code_of
from .image import Image
from .memory import PATTERNS, Memory, Scalar, seen_by_others
from .regions import Field, field_of, is_advanced, locate, reshaped, retyped, transposed
from .strided import StridedView, indexing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from .. import _native as core
    from .._base.annotations import MemoryTypeLike
    from .._base.types import MemoryTypes
    from .._device.device import Device
    from .mapping import Mapping
    from .memory_handle import MemoryHandle

Refusal = tuple[type[KomputeError], tuple[Any, ...]]
"""A class of errors and the arguments to make one with (see `BufferExporter`)."""
# The numbers that the core converts (native/core/base/number_cast.hpp).
_CONVERTED_TO = frozenset(map(np.dtype, ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")))
_CONVERTED_KINDS = frozenset((kind, "f") for kind in "iuf") | {(a, b) for a in "iu" for b in "iu"}
_FILLED_FROM = 1 << 20  # bytes; the host writes a shorter part in less time than a submission takes


class Tensor(Memory[Scalar], _native.BufferExporter):
    """An array in device memory, with a shape and a dtype.

    Create one with ``mgr.tensor`` (float32), ``mgr.tensor_t`` (keeps the data's dtype), ``mgr.empty``,
    ``mgr.zeros`` or ``mgr.full``, or as ``kp.Tensor(mgr, data, memory_type)``, which keeps the dtype.

    `t[a:b]`, `view` and `reshape` return Tensors that share its memory. They can be synchronized, copied,
    filled and bound wherever a tensor can, and only their own bytes are moved and ordered. A part that is not
    dense, such as ``t[:, 0]``, is a `StridedView`.

    In annotations, ``kp.Tensor[np.float32]`` says the type of the elements, as ``NDArray[np.float32]`` does.

    Raises the errors of `Manager.tensor_t`.

    >>> t = mgr.tensor_t(np.arange(6, dtype=np.int32).reshape(2, 3))
    >>> t.shape, t.dtype
    ((2, 3), dtype('int32'))
    >>> t[1].read().tolist()
    [3, 4, 5]
    """

    __slots__ = ("_base",)

    _native: core.Buffer | core.BufferView
    _base: Tensor

    def __init__(self, manager: Device, data: ArrayLike, memory_type: MemoryTypeLike | None = None) -> None:
        require_manager(manager)
        where = to_memory_type(memory_type, None, KEPT_BY_TENSOR_T)
        array = as_typed(data)
        native = manager._native.buffer(array, array.nbytes, where)
        self._adopt(native, manager, array.shape, array.dtype, array.size, where)
        manager._after(where)

    # -- views -----------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor | Any:
        """A view of the part at `key`, which shares this tensor's memory. Nothing is transferred.

        `key` is an int, a slice, Ellipsis, None, or a tuple of these, as in NumPy's basic indexing; or the
        name of a field of structs, ``t["position"]``.

        If the part is dense and row-major (``t[2:8]``, ``t[3]``, ``t[1, 4:6]``), the view is a Tensor, on the
        device and on the host. If not (``t[:, 0]``, ``t[::2]``, ``t[::-1]``), it is a `StridedView`, which is
        read and written, and that functions take, also in recordings; shaders that write it do not, because
        they take dense memory. The memory lives as long as any view of
        it. Destroying the original tensor ends the view too.

        To be bound to a shader, a view must begin at a multiple of the device's
        minStorageBufferOffsetAlignment (16 to 256 bytes); a kernel's call copies others on the device, and
        everything else accepts any offset.

        With arrays of ints, masks of bools or lists of either in it, on the host or Tensors, it is as in
        NumPy's advanced indexing: a Tensor with a copy of these elements, in new memory of the device. The
        call waits: for the work that writes the tensor, to see that indices of the device are in bounds, and
        for the number of elements that a mask selects. ``kp.ops.take`` with ``mode="clip"`` can be recorded.

        Raises OutOfRangeError for an index beyond its axis, a mask of another shape or too many indices,
        InvalidArgumentError for arrays that do not broadcast, for an unknown field, and for one with elements
        that are not at multiples of their size; ArgumentTypeError for anything else,
        FailedPreconditionError if the tensor is destroyed.
        """
        shape = self._shape
        if type(key) is slice and key.step is None and len(shape) == 1 and self._is_init():
            # The common case, without the general path below.
            if type(key.start) in _PLAIN and type(key.stop) in _PLAIN:
                start, stop, _ = key.indices(shape[0])
                return self._at(start, (max(stop - start, 0),), None)
        self._require_init("be viewed")
        return indexing().pick(self, key) if is_advanced(key) else self._basic(key)

    def _basic(self, key: Any) -> Any:
        """The view at an index of ints and slices, or of a field."""
        if isinstance(key, str) and self._dtype.names:
            return self._field(field_of(self._dtype, key, self._describe), self._shape, 0, None)
        return self._at(*locate(self._shape, key, self._describe))

    def _at(self, first: int, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> Any:
        """The view that `locate` describes."""
        if strides is not None:
            return self._strided(first, shape, strides)
        return self._part(first * self._dtype.itemsize, shape, self._dtype)

    def _field(
        self, field: Field, shape: tuple[int, ...], first: int, strides: tuple[int, ...] | None
    ) -> Any:
        """The view of a field of a part of it."""
        elements = self._part(0, (self._count * field.step,), field.dtype)
        return elements._at(*field.located(shape, first, strides))

    def _strided(self, first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> StridedView:
        return StridedView(self, first, shape, strides)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes `value` to the part at `key` of the device's contents, as `write` does: ``t[:, 0] = 5``.

        `key` is as for ``t[key]``. `value` is a number or anything that converts to an array; it is broadcast
        to the part's shape and converted to `dtype`, as in NumPy, but numbers that do not fit raise an error.
        Waits for pending work on the tensor. The host copy of a `device` tensor does not change. If the
        tensor was never used on the device, its initial data is uploaded first.

        With arrays or masks in `key`, the device writes these elements, and `value` may be a Tensor of the
        same Manager; if an index stands several times, the last value counts. It takes time for the
        whole part that the key's ints and slices leave.

        Raises the errors of ``t[key]``; InvalidArgumentError if `value` does not broadcast to the part or has
        numbers out of range; ArgumentTypeError for a dtype that does not convert without loss.
        """
        advanced = is_advanced(key)
        self._before_assigned(value, advanced)
        if advanced:
            self._require_init("be written")
            indexing().place(self, key, value)
        else:
            self[key]._assign(value)

    def _assign(self, value: Any) -> None:
        array = spread(value, self._dtype, self._shape, self._describe)
        if array.size == 0:
            return
        if not any(array.strides) and self.nbytes >= _FILLED_FROM and self._dtype.itemsize in PATTERNS:
            self.fill(array.reshape(-1)[:1].tobytes()).wait()
            self._native.note_host_write()
        else:
            self.write(np.ascontiguousarray(array))

    def view(self, *key: Any, dtype: DTypeLike | None = None) -> Tensor | Any:
        """A view that shares this one's memory: over a part, with another dtype, or both.

        ``t.view(2, slice(0, 4))`` is ``t[2, 0:4]``. ``t.view(np.uint32)`` or ``t.view(dtype="uint32")`` reads
        the same bytes as elements of another dtype, as ``ndarray.view`` does: if the element sizes differ,
        the length of the last axis changes. Without arguments, it is a view of the whole tensor.

        Raises the errors of ``t[key]``, InvalidArgumentError if the last axis is not a whole number of new
        elements, ArgumentTypeError for an unsupported dtype or one of the other byte order,
        UnimplementedError for another dtype of a part that is not dense.
        """
        self._require_init("be viewed")
        keys: tuple[Any, ...] = key
        if dtype is None and len(keys) == 1 and isinstance(keys[0], (type, np.dtype, str, DataTypes)):
            dtype, keys = keys[0], ()
        first, shape, strides = locate(self._shape, keys, self._describe) if keys else (0, self._shape, None)
        element = self._dtype if dtype is None else to_dtype(dtype)
        if dtype is not None and not np.dtype(dtype).isnative:
            raise ArgumentTypeError(
                f"{self._describe()} cannot be viewed as {np.dtype(dtype)}: devices read the host's byte "
                f"order, which is {element}. For the other byte order, view an array: t.read().view(...)"
            )
        if strides is not None:
            if element != self._dtype:
                raise UnimplementedError(
                    f"A part of {self._describe()} that is not dense has no view as {element}: "
                    "view an array, t.read(region=...).view(...)"
                )
            return self._strided(first, shape, strides)
        shape = retyped(shape, self._dtype, element, self._describe)
        return self._part(first * self._dtype.itemsize, shape, element)

    @property
    def T(self) -> Tensor[Scalar] | StridedView:
        """A view with the axes in the reverse order, as in NumPy. It shares this one's memory.

        It is a `StridedView`, which the operations of `kp.ops` take; if its elements follow each other in
        memory, as those of one axis do, a Tensor. ``kp.ops.transpose`` makes a dense copy in any order.

        >>> t = mgr.tensor([[1, 2, 3], [4, 5, 6]])
        >>> t.T.shape, t.T[0].read()
        ((3, 2), array([1., 4.], dtype=float32))
        """
        self._require_init("be viewed")
        view: Tensor[Scalar] | StridedView = self._at(*transposed(self._shape, 0))
        return view

    def reshape(self, *shape: Any) -> Tensor[Scalar]:
        """A Tensor of another shape that shares this one's memory.

        One axis may be -1: its length is then computed. Accepts ``t.reshape(2, 3)`` and ``t.reshape((2,
        3))``. Raises InvalidArgumentError if the number of elements differs, ArgumentTypeError if an axis is
        not an int, FailedPreconditionError if the tensor is destroyed.

        >>> mgr.tensor([1, 2, 3, 4]).reshape(2, 2).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        self._require_init("be reshaped")
        given = shape[0] if len(shape) == 1 else shape
        wanted = reshaped(self._shape, as_indices(given, "The shape"), self._count, self._describe)
        return self._part(0, wanted, self._dtype)

    def _write_numbers(self, array: np.ndarray[Any, Any]) -> bool:
        wanted, flags = self._dtype, array.flags
        if not (
            self._native.host_visible
            and flags.c_contiguous
            and flags.aligned
            and array.dtype.isnative
            and (array.dtype.kind, wanted.kind) in _CONVERTED_KINDS
            and wanted in _CONVERTED_TO
            and array.dtype in _CONVERTED_TO
        ):
            return False
        return self._native.write_numbers(array, (wanted.kind, wanted.itemsize))

    def _like(self, manager: Device, where: MemoryTypes) -> Tensor:
        native = manager._native.buffer(None, self.nbytes, where, None)
        made = buffer_tensor(native, manager, self._shape, self._dtype, self._count, where)
        manager._after(where)
        return made

    def _region(self, region: Any) -> Any:
        return self._basic(region)

    def _part(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        count = math.prod(shape)
        native = _native.view(self._native, offset, count * dtype.itemsize)
        part = buffer_tensor(native, self._manager, shape, dtype, count, self._memory_type)
        part._base = self._base if type(self._native) is _native.BufferView else self
        return part

    @property
    def base(self) -> Tensor | None:
        """The tensor whose memory this view shows, however many views are between, as in NumPy; None for a
        tensor that has its own memory.
        """
        return getattr(self, "_base", None)

    @property
    def is_shared(self) -> bool:
        """True if others may see its memory, so that it cannot be donated to an operation: it is a view, was
        imported, or its memory was given out by DLPack, the buffer protocol, ``__array_interface__`` or
        Vulkan handles.

        >>> t = mgr.zeros(4)
        >>> t.is_shared, t[1:].is_shared
        (False, True)
        """
        return self.base is not None or self in seen_by_others

    # -- access ----------------------------------------------------------------------------------------------

    @property
    def mappable(self) -> bool:
        """True if the host can address the tensor's device memory.

        `map` then copies nothing, unless it reads memory that the CPU does not cache.
        """
        return self._native.host_visible

    def map(
        self, *, read: bool = False, write: bool = False, discard: bool = False, staging: bool = True
    ) -> Mapping:
        """The device's memory as an array: ``with t.map(write=True) as array: ...``.

        A mapping that reads waits for pending work that writes the tensor. One that writes waits for all
        pending work on it. While the mapping is open, evaluations that conflict with it raise, and so do
        `read` and `write` of the same bytes. `discard` writes without preserving the old contents, which are
        then undefined. The array, and every view of it, ends with the mapping.

        If the host cannot address the memory (see `mappable`), the contents are copied at the beginning (not
        with `discard`) and back at the end; ``staging=False`` refuses that. The same holds with ``read=True``
        for device memory that the CPU does not cache (GPUs with a resizable BAR, phones), because reading it
        in place takes a trip over the bus for each word; writing does not. With only ``write=True``, such
        memory is mapped in place: do not read the array then. If the block raises an exception, the data
        written so far is kept.

        Raises InvalidArgumentError without `read`, `write` and `discard`; FailedPreconditionError if another
        mapping of the same bytes conflicts, if staging is refused, or if the tensor is destroyed.
        """
        from .mapping import Mapping

        return Mapping(self, read, write, discard, staging)

    # -- sharing ---------------------------------------------------------------------------------------------

    def share(self) -> MemoryHandle:
        """The memory for another Manager or process, as a file descriptor: see `kp.MemoryHandle`.

        The tensor was made by `Manager.shared` or `Manager.import_memory`. Waits for pending work on it. From
        then on, others may write the memory: nothing orders their work with this Manager's.

        Raises FailedPreconditionError for other tensors, views and destroyed tensors.
        """
        from .memory_handle import handle_of

        return handle_of(self)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """For ``np.from_dlpack(t)`` and the like: shares the device's contents after pending work.

        A write on one side is visible on the other. The memory lives as long as the objects created from the
        capsule, also after ``t.destroy()`` and after the Manager's ``destroy()``. `host` and `deviceAndHost`
        memory is always shared; `device` and `storage` memory is shared if the device's own memory is
        coherent host memory, as with CPU drivers and unified memory. ``copy=True`` returns a copy in host
        memory, and so does ``dl_device=(1, 0)`` if sharing is not possible.

        Raises ExchangeError (a BufferError) if sharing is not possible, for structured dtypes and for other
        devices; FailedPreconditionError if the tensor is destroyed.
        """
        self._require_init("be shared")
        what = self._describe()
        copy = to_copy(copy)
        if stream is not None:
            raise InvalidArgumentError(
                f"stream is {shown(stream)}; {what} shares the CPU's memory, which has no streams: give None"
            )
        native = self._native
        device = self.__dlpack_device__()
        refuse_unordered(dl_device, "dl_device", "(device type, device id)")
        try:
            wanted = device if dl_device is None else tuple(map(int, islice(dl_device, 3)))
        except Exception:
            raise ArgumentTypeError(
                f"dl_device is {shown(dl_device)}; give (device type, device id)"
            ) from None
        if wanted not in (device, (CPU, 0)):
            raise ExchangeError(
                f"{what} cannot go to DLPack device {wanted}: only to the CPU's memory, dl_device=(1, 0)"
            )
        code, bits = code_of(self.dtype, what)
        try:
            versioned = max_version is not None and int(max_version[0]) >= 1
        except Exception:
            raise ArgumentTypeError(f"max_version is {shown(max_version)}; give (major, minor)") from None
        # Copy only if requested: copy=True, or the CPU's memory as dl_device if it cannot be shared.
        copied = copy is True or (
            copy is None and dl_device is not None and wanted == (CPU, 0) and device != wanted
        )
        if not copied:
            if device != (CPU, 0):
                slow = native.slow_to_read
                raise ExchangeError(
                    f"{what} is in memory of the device that the host "
                    f"{'reads a word at a time (not cached)' if slow else 'does not address'}, "
                    "so it cannot be shared. Copy it: t.read(), or t.__dlpack__(dl_device=(1, 0), "
                    "copy=None), as "
                    "np.from_dlpack(t, device='cpu') does; or create it with memory type "
                    f"{'host' if slow else 'deviceAndHost'}"
                )
            if native.read_only and not versioned:
                raise ExchangeError(
                    f"{what} is read-only, which DLPack before version 1 cannot express: "
                    "pass max_version=(1, 0) or copy=True"
                )
        native.wait()
        self._report()
        capsule = _native.dlpack_export(native, self.shape, code, bits, versioned, copied)
        self._report()
        if capsule is None:
            raise ExchangeError(f"{what} cannot be shared")
        if not copied:
            seen_by_others.add(self)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0), the CPU's memory, if the contents can be shared, else (7, the device's index), a Vulkan
        device.
        """
        self._require_init("be shared")
        if self._native.shareable:
            return CPU, 0
        return VULKAN, int(self._manager._info["index"])

    def _array_interface(self) -> dict[str, Any] | Refusal:
        """For `__array_interface__`, which `BufferExporter` has."""
        self._require_init("be shared")
        if not self._is_single() or self._dtype.kind not in "biufc" or is_small_float(self._dtype):
            return ArrayAttributeError, (self._no_interface, "__array_interface__", self)
        self._native.wait()
        self._report()
        described: dict[str, Any] = self.numpy().__array_interface__
        if self._host is None:
            self._host = self._native.keep_host()  # the address stays valid after destroy()
        seen_by_others.add(self)
        return described

    def _no_interface(self) -> str:
        return (
            f"{self._describe()}, {self._memory_type.name}, has no '__array_interface__': only numbers "
            "in memory that the host addresses (host, deviceAndHost) have one. Use t.read()"
        )

    def _memoryview(self) -> memoryview | Refusal:
        """The buffer protocol: ``memoryview(t)``, ``np.frombuffer(t)``."""
        self._require_init("be viewed")
        if not self._is_single():
            return ExchangeError, (self._no_buffer,)
        if self._dtype.kind == "V" and self._dtype.names is None:
            # Raw bytes would become a struct without fields, and np.asarray prefers a buffer to everything
            # else.
            raise ExchangeError(
                f"{self._describe()} cannot be given as a buffer: the protocol has no letter for its dtype"
            )
        self._native.wait()
        self._report()
        array: Any = self.numpy()  # the type of a buffer for type checkers differs between Python versions
        seen_by_others.add(self)
        try:
            return memoryview(array)
        except ValueError as error:  # the buffer protocol has no letter for this dtype
            raise ExchangeError(f"{self._describe()} cannot be given as a buffer: {error}") from None

    def _no_buffer(self) -> str:
        return (
            f"{self._describe()} has memory type {self._memory_type.name}, which has no buffer to share: "
            "use t.data() for the host copy, t.read() for the device's contents, or create it with "
            "deviceAndHost"
        )

    # -- raw Vulkan ------------------------------------------------------------------------------------------

    @property
    def device_address(self) -> int:
        """The address of the contents in the device's memory, for buffer references of shaders: an integer.

        A kernel accepts the tensor itself for a reference in its push constants, and keeps it alive. If you
        put addresses into memory yourself, list the tensors in the call: ``k(table, uses=[t])``. Raises
        UnimplementedError if the device lacks bufferDeviceAddress, FailedPreconditionError if the tensor is
        destroyed.
        """
        address = self._exposed().vk_device_address
        if address == 0:
            raise UnimplementedError(
                f"{self._manager._device_name} lacks the feature bufferDeviceAddress: shaders cannot use "
                "addresses of its memory. Bind the tensor instead, or use another device"
            )
        return address

    @property
    def priority(self) -> float | None:
        """Vulkan's priority of the device's memory of it, from 0 to 1; None if the device heeds none.

        Raises FailedPreconditionError if it is destroyed.

        >>> mgr.empty(4, priority=0.9).priority in (0.9, None)  # None on a device without priorities
        True
        """
        given = self._alive().priority
        return None if given is None else round(given, 6)  # of float32

    @property
    def vk_buffer(self) -> int:
        """The VkBuffer of the device's memory, as an integer.

        The tensor is `vk_size` bytes from `vk_offset` in it.
        """
        return self._exposed().vk_buffer

    @property
    def vk_offset(self) -> int:
        """The offset in `vk_buffer`, in bytes."""
        return self._alive().vk_offset

    @property
    def vk_size(self) -> int:
        """The size of the tensor in `vk_buffer`, in bytes."""
        return self._alive().vk_size

    @property
    def vk_device_address(self) -> int:
        """The address for shaders that use buffer references; 0 if the device lacks the feature."""
        return self._exposed().vk_device_address


def buffer_tensor(
    native: Any,
    manager: Device,
    shape: tuple[int, ...],
    dtype: Any,
    count: int,
    memory_type: MemoryTypes = DEVICE,
) -> Tensor:
    """Creates a Tensor around a native buffer that was just made."""
    tensor = Tensor.__new__(Tensor)
    tensor._adopt(native, manager, shape, dtype, count, memory_type)
    return tensor


_PLAIN = (int, type(None))  # bounds of slices that need no conversion

_OF_IMAGES = "Images have it; t.manager.image(t.read()) makes one, and t.shape has the axes of t"
answer_for(Tensor, Image, _OF_IMAGES)
answer_for(StridedView, Image, _OF_IMAGES)
answer_for(Image, Tensor, "Tensors have it; kp.ops.ascontiguousarray(t) makes one, a copy on the device")
answer_for(
    StridedView,
    Tensor,
    "t.base.{} is the whole tensor's; kp.ops.ascontiguousarray(t) makes a Tensor of the part, a copy "
    "on the device",
)
StridedView.__dlpack__ = OnlyOfArrays(  # type: ignore[attr-defined]
    "__dlpack__", "DLPack shares dense memory here; t.read() copies the part to the host"
)
