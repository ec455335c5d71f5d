"""MemoryMaker: the part of `Manager` that makes tensors, images and samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .._base import misplaced
from .._base.arrays import (
    FLOAT32,
    as_float32,
    as_index,
    as_shape,
    as_typed,
    fill_bytes,
    spread,
    to_array,
    to_dtype,
    to_flag,
)
from .._base.errors import ArgumentTypeError, InvalidArgumentError
from .._base.plain_arguments import refuse_unordered
from .._base.texels import parse_format, refuse_palette, size_of
from .._base.types import DEVICE, MemoryTypes, to_memory_type
from .._device.device import Device
from .._memory.image import Image
from .._memory.making import form_of, memory_place, new_tensor
from .._memory.memory import Memory, Scalar
from .._memory.sampler import Sampler
from .._memory.tensor import Tensor, buffer_tensor
from .host_memory import from_host

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from typing_extensions import Unpack

    from .._base.annotations import (
        AddressMode,
        CopyMode,
        FilterName,
        FormatName,
        HasArray,
        HostBufferSemanticsName,
        ImageOptions,
        MemoryFlags,
        MemoryTypeLike,
        Numbers,
        OtherDType,
        SamplerOptions,
        ScalarType,
    )
    from .._memory.making import MemoryPlace
    from .._memory.memory_handle import MemoryHandle
    from .host_memory import HostBufferSemantics

_ndarray = np.ndarray


def _modes(address: Any) -> Any:
    """The modes of the axes as a list, from any iterable."""
    refuse_unordered(address, "address", "one mode, or one for each axis")
    try:
        return list(address)
    except Exception:
        return address  # the Sampler raises the error


class MemoryMaker(Device):
    """The base of `Manager` with the methods that make tensors, images and samplers."""

    __slots__ = ()

    # -- tensors ---------------------------------------------------------------------------------------------

    def tensor(
        self,
        data: ArrayLike,
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor[np.float32]:
        """A Tensor of `data`, converted to float32, in the data's shape. The data is copied.

        `data` is an array, nested lists, a number, or an object with the buffer protocol. `memory_type`
        defaults to `MemoryTypes.device`; `tensor_type` is its older name. The data goes to the tensor's host
        copy (for `storage`: to the device). It is uploaded once, before the first use of the device memory,
        with or without an OpSyncDevice. After that, OpSyncDevice and `write` upload changes (see
        `Memory.data`). Empty data gives a Tensor with no elements.

        Raises InvalidArgumentError for an unknown memory type, ArgumentTypeError if the data is not real
        numbers, OutOfMemoryError if the device has too little memory, FailedPreconditionError if the Manager
        is destroyed.

        >>> mgr.tensor([1, 2, 3]).tolist()
        [1.0, 2.0, 3.0]
        """
        if type(data) is not _ndarray or data.dtype is not FLOAT32 or not data.flags.c_contiguous:
            data = as_float32(data)
        if dtype is not None:
            raise misplaced.keyword(dtype, misplaced.KEPT_BY_TENSOR)
        if memory_type is None and tensor_type is None:
            where, code = DEVICE, 0
        else:
            where = to_memory_type(memory_type, tensor_type, misplaced.KEPT_BY_TENSOR)
            code = where
        tensor = buffer_tensor(
            self._buffer(data, data.nbytes, code), self, data.shape, FLOAT32, data.size, where
        )
        if self._watch is not None:
            self._watch()
        return tensor

    @overload
    def tensor_t(
        self,
        data: HasArray[Scalar],
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor[Scalar]: ...
    @overload
    def tensor_t(
        self,
        data: Numbers,
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor: ...
    @overload
    def tensor_t(
        self,
        data: ArrayLike,
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor[np.generic]: ...
    def tensor_t(
        self,
        data: ArrayLike,
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor:
        """A Tensor of `data` in the data's own dtype and shape. The data is copied. See `tensor`.

        dtypes: bool (one byte an element), integers of 8 to 64 bits, float16, float32, float64, complex64,
        complex128, structured dtypes (see `kp.struct_dtype`), raw bytes, and bfloat16 and float8 types if
        ml_dtypes is installed. Byte-swapped data is converted. Raises ArgumentTypeError, naming the dtype,
        for other dtypes.

        >>> mgr.tensor_t(np.array([1, 2, 3], np.int32)).dtype
        dtype('int32')
        """
        if dtype is not None:
            raise misplaced.keyword(dtype, misplaced.KEPT_BY_TENSOR_T)
        array = as_typed(data)
        where = to_memory_type(memory_type, tensor_type, misplaced.KEPT_BY_TENSOR_T)
        native = self._buffer(array, array.nbytes, where)
        tensor = buffer_tensor(native, self, array.shape, array.dtype, array.size, where)
        self._after(where)
        return tensor

    @overload
    def as_tensor(self, data: Tensor[Scalar] | HasArray[Scalar], dtype: None = None) -> Tensor[Scalar]: ...
    @overload
    def as_tensor(self, data: ArrayLike | Tensor, dtype: ScalarType[Scalar]) -> Tensor[Scalar]: ...
    @overload
    def as_tensor(self, data: ArrayLike | Tensor, dtype: OtherDType) -> Tensor: ...
    @overload
    def as_tensor(self, data: Numbers, dtype: None = None) -> Tensor: ...
    @overload
    def as_tensor(self, data: ArrayLike | Tensor, dtype: None = None) -> Tensor[np.generic]: ...
    def as_tensor(self, data: ArrayLike | Tensor, dtype: DTypeLike | OtherDType | None = None) -> Tensor:
        """`data` as a Tensor of this Manager: a Tensor is returned as it is, anything else becomes a new one.

        New tensors have the memory type `device`. They keep the dtype of the data, as with `tensor_t`;
        `dtype` converts it, and numbers that it cannot hold raise an error. Nothing is transferred from one
        device to another or back to the host.

        Raises InvalidArgumentError for a Tensor of another Manager and for numbers out of range;
        ArgumentTypeError for a Tensor of another dtype than `dtype` and for an Image;
        FailedPreconditionError for a destroyed Tensor; and the errors of `tensor_t`.

        >>> t = mgr.as_tensor([1, 2, 3], np.float32)
        >>> mgr.as_tensor(t) is t
        True
        """
        if not isinstance(data, Memory):
            if dtype is None:
                return self.tensor_t(data)
            array = to_array(data)
            return self.tensor_t(spread(array, to_dtype(dtype), array.shape, "as_tensor"))
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(
                f"{data!r} is not a Tensor: make one of its pixels, mgr.tensor_t(image.read())"
            )
        data._require_init("be used")
        if data.manager is not self:
            raise InvalidArgumentError(
                f"{data!r} belongs to {data.manager!r}, not to {self!r}: copy it, t.to(mgr)"
            )
        if dtype is not None and to_dtype(dtype) != data.dtype:
            raise ArgumentTypeError(
                f"{data!r} has dtype {data.dtype}, not {to_dtype(dtype)}: convert it on the device, "
                f'kp.ops.astype(t, "{to_dtype(dtype)}")'
            )
        return data

    @overload
    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor[np.float32]: ...
    @overload
    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: ScalarType[Scalar],
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor[Scalar]: ...
    @overload
    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: OtherDType | None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor: ...
    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | OtherDType | None = np.float32,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor:
        """A Tensor of `shape` and `dtype` (None: float32) with undefined contents.

        `shape` is an int or a tuple, () for a scalar; an axis may be 0. No host array is allocated. A
        `device` tensor gets its host copy when it is first needed: by `data`, `numpy`, or an OpSyncDevice or
        OpSyncLocal.

        `memory_flags` are Vulkan's properties that its memory must have beyond its memory type: some of
        "device_local", "host_visible", "host_coherent" and "host_cached". `memory_flags` of the tensor tells
        what it got; ``mgr.memory_place`` says it before.

        `priority`, from 0 to 1, says which tensors shall stay in device memory when there is too little for
        all programs; Vulkan's default is 0.5. A tensor with another one has a Vulkan allocation of its own.
        A device without VK_EXT_memory_priority ignores it: `priority` of the tensor is None then.

        Raises InvalidArgumentError for a negative axis, an unknown memory type, an unknown flag or a priority
        outside of 0 to 1, ArgumentTypeError for an unsupported dtype, UnimplementedError if no memory of the
        device has the flags, OutOfMemoryError if the device has too little memory, FailedPreconditionError if
        the Manager is destroyed.

        >>> mgr.empty(100, memory_type="host", memory_flags="host_visible").memory_flags
        (...'host_visible'...)
        """
        made, element = form_of(shape, dtype)
        return new_tensor(self, made, element, memory_type, None, memory_flags, priority)

    @overload
    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor[np.float32]: ...
    @overload
    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: ScalarType[Scalar],
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor[Scalar]: ...
    @overload
    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: OtherDType | None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor: ...
    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | OtherDType | None = np.float32,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor:
        """A Tensor of `shape` and `dtype` with zeros, on the device and in its host copy.

        Otherwise as `empty`.

        Raises InvalidArgumentError for a negative axis or an unknown memory type, ArgumentTypeError for an
        unsupported dtype, OutOfMemoryError if the device has too little memory, FailedPreconditionError if
        the Manager is destroyed.

        >>> mgr.zeros((2, 3), np.int32).tolist()
        [[0, 0, 0], [0, 0, 0]]
        """
        made, element = form_of(shape, dtype)
        return new_tensor(self, made, element, memory_type, b"\0", memory_flags, priority)

    @overload
    def full(
        self,
        shape: int | tuple[int, ...],
        fill_value: Any,
        dtype: ScalarType[Scalar],
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor[Scalar]: ...
    @overload
    def full(
        self,
        shape: int | tuple[int, ...],
        fill_value: Any,
        dtype: OtherDType | None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor: ...
    def full(
        self,
        shape: int | tuple[int, ...],
        fill_value: Any,
        dtype: DTypeLike | OtherDType | None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor:
        """A Tensor of `shape` with `fill_value` in each element, on the device and in its host copy.
        Otherwise as `empty`.

        `dtype` defaults to float32, or to the dtype of a `fill_value` that is a NumPy scalar or array. For a
        structured dtype, `fill_value` is a tuple or a record. It is one element, or an array that broadcasts
        over the last axes: shape (n, 3) takes 3 values.

        Raises the errors of `empty`; InvalidArgumentError if the value does not fit `dtype` or `shape`;
        ArgumentTypeError if it does not convert to `dtype` without loss (integers take floats that are
        whole).

        >>> mgr.full(3, 7.0).tolist()
        [7.0, 7.0, 7.0]
        """
        own = isinstance(fill_value, (np.generic, np.ndarray)) and dtype is None
        made, element = form_of(shape, fill_value.dtype if own else dtype)
        try:
            fill = fill_bytes(fill_value, element, made)
        except ArgumentTypeError as error:
            raise misplaced.of_fill(fill_value, error) from None
        return new_tensor(self, made, element, memory_type, fill, memory_flags, priority)

    def memory_place(
        self, memory_type: MemoryTypeLike | None = None, *, memory_flags: MemoryFlags = ()
    ) -> MemoryPlace:
        """The memory that a tensor of this type, with these `memory_flags`, would get: see `kp.MemoryPlace`.
        Allocates nothing.

        Raises InvalidArgumentError for an unknown memory type or flag, UnimplementedError if no memory has
        the flags, FailedPreconditionError if the Manager is destroyed.

        >>> mgr.memory_place("storage").memory_flags == mgr.empty(1, memory_type="storage").memory_flags
        True
        """
        return memory_place(self, memory_type, memory_flags)

    def from_host(
        self,
        array: np.ndarray[Any, np.dtype[Scalar]],
        *,
        copy: CopyMode = "auto",
        semantics: HostBufferSemantics | HostBufferSemanticsName | None = None,
        on_done: Callable[[], object] | None = None,
    ) -> Tensor[Scalar]:
        """A Tensor of memory type `host` that uses the array's own memory: the host and the device read each
        other's writes.

        The device imports the memory (VK_EXT_external_memory_host) if the array is C-contiguous and writable,
        begins at a multiple of `host_import_alignment` and has a multiple of 4 bytes; `kp.aligned_empty`
        creates such arrays. A part of such an array may also begin at a multiple of the device's
        minStorageBufferOffsetAlignment (16 to 256 bytes) in it. The Tensor and its views keep the array
        alive. You must order your own writes with the device's work.

        An array may be given several times, whole or in parts: work on all Tensors of this Manager over it is
        ordered as work on one Tensor. The parts of an array of `kp.aligned_empty` come in any order, as all
        of it is imported; of another array, the first Tensor must contain the others: give the whole first.
        The memory counts as used until all of them are gone. An array over the memory of a Tensor of this
        Manager gives a view of that Tensor. Another Manager does not know of this one's work: wait for it in
        between.

        Args:
            array: The array; its shape and dtype become the Tensor's.
            copy: "auto" copies if the memory cannot be imported (a debug line in the log gives the reason);
                "never" raises instead; "always" copies.
            semantics: How long the caller leaves the memory unchanged, see `kp.HostBufferSemantics`; None is
                MUTABLE_ZERO_COPY. A read-only array is shared under IMMUTABLE_ZERO_COPY only, and then the
                Tensor cannot be written. The two semantics without ZERO_COPY always copy.
            on_done: Called once, without arguments, when the caller may reuse the memory: before the return
                if the data was copied, else after the device releases the memory, on the interpreter's main
                thread.

        Raises InvalidArgumentError or UnimplementedError, naming the reason, if ``copy="never"`` and the
        memory cannot be imported, or the array has no elements; ArgumentTypeError if `array` is not an
        ndarray or has an unsupported dtype; OutOfMemoryError; FailedPreconditionError if the Manager is
        destroyed, or if living Tensors over some bytes of the array do not contain the others.
        """
        return from_host(self, array, copy, semantics, on_done)

    @overload
    def shared(
        self,
        shape: int | tuple[int, ...],
        dtype: None = None,
        memory_type: MemoryTypeLike = MemoryTypes.deviceAndHost,
    ) -> Tensor[np.float32]: ...
    @overload
    def shared(
        self,
        shape: int | tuple[int, ...],
        dtype: ScalarType[Scalar],
        memory_type: MemoryTypeLike = MemoryTypes.deviceAndHost,
    ) -> Tensor[Scalar]: ...
    @overload
    def shared(
        self,
        shape: int | tuple[int, ...],
        dtype: OtherDType | None,
        memory_type: MemoryTypeLike = MemoryTypes.deviceAndHost,
    ) -> Tensor: ...
    def shared(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | OtherDType | None = np.float32,
        memory_type: MemoryTypeLike = MemoryTypes.deviceAndHost,
    ) -> Tensor:
        """A Tensor of zeros in memory that other Managers and processes can use in place: ``t.share()`` gives
        the handle, and their `import_memory` takes it.

        Work of this Manager on all its tensors over the memory is ordered as on one tensor. Nothing orders it
        with the work of other Managers and processes: wait for the work, then tell them.

        Raises UnimplementedError if the device does not export memory as file descriptors
        (VK_KHR_external_memory_fd), InvalidArgumentError for the memory type `device`, an unknown one, and a
        shape without elements; the other errors of `empty`.
        """
        from .shared_memory import new_shared  # late, because few scripts need it

        return new_shared(self, shape, dtype, memory_type)

    def import_memory(self, handle: MemoryHandle, memory_type: MemoryTypeLike | None = None) -> Tensor:
        """A Tensor over the memory of a `kp.MemoryHandle`, which another Manager or process shares.

        Nothing is copied, and the memory lives as long as a tensor over it, here or elsewhere. The handle may
        be closed afterwards. `memory_type` defaults to that of the shared tensor. About order, see `shared`.

        Raises InvalidArgumentError if the handle is of another device or driver, if the driver does not know
        the descriptor, for the memory type `device`, and for `host` and `deviceAndHost` if the host cannot
        address the memory; FailedPreconditionError if the handle is closed or the Manager is destroyed;
        ArgumentTypeError for anything but a handle; UnimplementedError if the device imports no memory.
        """
        from .shared_memory import imported_memory

        return imported_memory(self, handle, memory_type)

    # -- images ----------------------------------------------------------------------------------------------

    def image(
        self,
        data: ArrayLike,
        width: int | None = None,
        height: int | None = None,
        num_channels: int | None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        format: FormatName | None = None,
        **options: Unpack[ImageOptions],
    ) -> Image:
        """An Image of `data`, converted to float32; uint8 data stays uint8, and with `format` the data keeps
        its dtype.

        `width`, `height` and `num_channels` (1 to 4) default to those of an (h, w) or (h, w, c) array or a
        Pillow image. Three channels, as of an RGB photograph, become four with an opaque alpha: 1.0, or 255
        for uint8 (see `kp.Image`). uint8 gives the integer format (``rgba8ui``), as in Kompute;
        ``format="rgba8"`` gives unorm. Other GLSL and Vulkan names of formats work too (`image_formats` lists
        them).

        Options: `dims` (1, 2 or 3 dimensions), `depth`, `layers` (the number of layers of an image array;
        True takes the first axis of the data), and `tensor_type`, the older name of `memory_type`. The axes
        of the data are (layers,) (depth,) height, width (, c).

        Raises InvalidArgumentError if the sizes do not fit the data, the format has another number of
        channels, or the format is unknown; UnimplementedError if the device lacks the format;
        ArgumentTypeError if the format lacks the data's dtype, and for Pillow's pictures with a palette.

        >>> picture = mgr.image(np.zeros((4, 6, 4), np.uint8))
        >>> picture.shape
        (4, 6, 4)
        """
        refuse_palette(data)
        array = to_array(data)
        keep = format is not None or array.dtype == np.uint8
        return self._make_image(
            array, width, height, num_channels, memory_type, as_float=not keep, format=format, **options
        )

    def image_t(
        self,
        data: ArrayLike,
        width: int | None = None,
        height: int | None = None,
        num_channels: int | None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        format: FormatName | None = None,
        **options: Unpack[ImageOptions],
    ) -> Image:
        """An Image of `data` in the data's own dtype: integers of 8 to 64 bits, float16 or float32.

        See `image`.

        Raises InvalidArgumentError if the sizes do not fit the data or the format is unknown,
        ArgumentTypeError for another dtype or if the format lacks it, UnimplementedError if the device lacks
        the format, FailedPreconditionError if the Manager is destroyed.
        """
        return self._make_image(data, width, height, num_channels, memory_type, format=format, **options)

    def image_empty(
        self,
        shape: int | tuple[int, ...],
        format: FormatName = "rgba32f",
        memory_type: MemoryTypeLike | None = None,
        *,
        dims: Literal[1, 2, 3] = 2,
        layers: bool = False,
    ) -> Image:
        """An Image of `shape`, which excludes the channels, with undefined contents. No data is copied.

        `shape` is (height, width) by default, width with ``dims=1``, and (depth, height, width) with
        ``dims=3``. If `layers` is True, it begins with the number of layers. Raises the errors of `image`.
        """
        wanted = as_shape(shape)
        axes, layers = as_index(dims, "dims"), to_flag(layers, "layers")
        size = size_of(wanted, axes, None, None, None, True if layers else None)
        if len(wanted) != len(size.axes):
            raise InvalidArgumentError(
                f"shape {wanted} has {len(wanted)} axes; an image with "
                f"dims={axes}{', layers=True' if layers else ''} has "
                f"{len(size.axes)}, without its channels"
            )
        return Image._empty(self, size, parse_format(format), to_memory_type(memory_type))

    def sampler(
        self,
        filter: FilterName = "nearest",
        address: AddressMode | Iterable[AddressMode] = "clamp_to_edge",
        **options: Unpack[SamplerOptions],
    ) -> Sampler:
        """A Sampler, which defines how shaders read images between texels and beyond the edge.

        See `kp.Sampler`.

        Raises InvalidArgumentError for unknown names or combinations that Vulkan does not allow,
        ArgumentTypeError for arguments of other types, FailedPreconditionError if the Manager is destroyed.
        """
        return Sampler(
            self, filter, address if isinstance(address, (str, list)) else _modes(address), **options
        )

    def _make_image(
        self,
        data: Any,
        width: Any,
        height: Any,
        num_channels: Any,
        memory_type: Any,
        *,
        tensor_type: Any = None,
        **options: Any,
    ) -> Image:
        if "dtype" in options:
            raise misplaced.keyword(options["dtype"], misplaced.KEPT_BY_IMAGES)
        where = to_memory_type(memory_type, tensor_type, misplaced.KEPT_BY_IMAGES)
        return Image(self, data, width, height, num_channels, where, **options)
