"""Manager: opens a device and creates every object on it.

Some 1,100 lines because each method has a docstring of its own, and some have overloads.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _native
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
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    kind_of,
    not_copyable,
    shown,
)
from .._base.plain_arguments import as_list, refuse_unordered
from .._base.settings import PREFIX
from .._base.texels import parse_format, refuse_palette, size_of
from .._base.types import MemoryTypes
from .._base.warn import warn_of_cancelled
from .._device.device import Device, require_manager
from .._device.handles import VkHandles
from .._device.options import to_prefix
from .._memory.array_habits import MAKERS, OnlyOfArrays, WithAnswers
from .._memory.image import Image, SampledImage
from .._memory.making import form_of, memory_place, new_tensor
from .._memory.memory import DEVICE, Memory, Scalar, to_memory_type
from .._memory.sampler import Sampler
from .._memory.tensor import Tensor, buffer_tensor
from .._recording.algorithm import Algorithm
from .._recording.preload import preload
from .._recording.sequence import Sequence
from .._recording.streams import failures_of, managers_of, submit_streams
from .._sync.fence import Fence
from .._sync.semaphore import Semaphore, imported_fence, imported_semaphore, to_signals, to_waits
from .current import current, enter, forget, is_shared, leave
from .host_memory import from_host
from .program_end import watch_over

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import ArrayLike, DTypeLike
    from typing_extensions import Unpack

    from .._base.annotations import (
        AddressMode,
        Array,
        CopyMode,
        FilterName,
        FormatName,
        HostBufferSemanticsName,
        ImageOptions,
        KernelOptions,
        MemoryFlags,
        MemoryTypeLike,
        SamplerOptions,
        ShaderSource,
    )
    from .._debugging.messages import ShaderMessage
    from .._debugging.values import OperationValues, RunLooker
    from .._device.annotations import DeviceLike, ManagerOptions
    from .._kernels.kernel import Kernel
    from .._memory.making import MemoryPlace
    from .._memory.memory import ScalarType
    from .._memory.memory_handle import MemoryHandle
    from .._memory.scratch import Scratch
    from .._profiling.profile import Profile
    from .._sync.semaphore import HasFileno, Waitable
    from .._sync.sharing import SemaphoreHandle
    from .host_memory import HostBufferSemantics

_ndarray = np.ndarray


def _modes(address: Any) -> Any:
    """The modes of the axes as a list, from any iterable."""
    refuse_unordered(address, "address", "one mode, or one for each axis")
    try:
        return list(address)
    except Exception:
        return address  # the Sampler raises the error


class Manager(Device, WithAnswers):
    """Opens a device and creates tensors, images, algorithms and sequences on it.

    `device` selects the device: Vulkan's enumeration index, a part of a device's name, a vendor ("nvidia"), a
    type ("discrete", "integrated", "virtual", "cpu", or "gpu" for all but CPUs), a UUID, a PCI address, or a
    `DeviceInfo`. A list of these, or text with commas ("nvidia,amd,cpu"), is tried in order. A URI also has
    options: ``"vulkan://nvidia?queues=2&validation=1"``; keywords win. None selects the device that the
    environment variable KOMPUTE_PY_DEVICE prefers, or else the best device (discrete, integrated, virtual,
    CPU).

    `family_queue_indices` has one entry for each queue: its Vulkan queue family. The default is one compute
    queue. The first family must support compute; the others may support transfers only, and sequences on them
    cannot dispatch (see `Sequence.stream`). `desired_extensions` lists device extensions to enable if the
    device has them; missing ones are logged. A mapping gives features that this package does not know, too:
    ``{"VK_KHR_shader_subgroup_rotate": (1000416000, [True, False])}`` has the number (sType) of the
    extension's feature struct and one bool for each of its features, in order; None in place of the pair
    enables the extension alone. Shaders that need such features take ``unchecked=True``.

    Each option is a keyword, else the environment variable ``KOMPUTE_PY_<NAME>``, else its default:

    - `validation` turns the validation layer on; its messages go to ``logging.getLogger("kompute_py")``.
      `strict` raises its errors.
    - `robust_access` (default True), `required_extensions`, `debug_layers`.
    - `pipeline_cache_dir`: the folder of the pipeline cache, "" for none.
    - `memory_limit`: the most memory to take from the driver; `memory_idle_limit`: the most of it to keep
      when nothing uses it; `memory_block_size`. A size is an int of bytes,
      or text: "128 MiB" or "128M" (binary), "128 MB" (decimal), "1.5 GiB".
    - `memory_debug` puts guard bytes around memory (see `memory`); `force_staging` and `force_non_coherent`
      take the code paths of other GPUs. These three are for debugging.
    - `recent_pipelines` (default 128): how many unused pipelines and shader modules are kept, the most
      recently used ones (see `kp.DeviceMemory.pipelines`).
    - `pipeline_timeout` (default 300): the seconds that a call waits for the driver to make a pipeline; then
      it raises EvalTimeoutError. The driver goes on, and a later call finds what it made.
    - `watchdog` (default inf): the seconds that the system lets a submission run, such as 2; recordings, and
      dispatches that take longer, are submitted in parts of half of that.
    - `wait_mode`: "spin" polls the device's counter for up to 0.1 ms before a wait sleeps, which notices the
      end of short work sooner and keeps a core busy; "block" sleeps at once; "auto" (default) measures which
      is faster (see `waits`).
    - `tuning`: "auto" (default) lets custom operations measure their variants at a first call of a kind,
      "stored" takes only choices that were kept, "off" always the first variant; `tuning_dir`: the folder of
      the choices, "" for none (see `kp.tune`).
    - `debug` looks at operations and shaders while they run: "printf", "bounds", "races", "barriers",
      "loops" (see `on_message`), "nans", "disjoint", "values", "record=FOLDER" (see `watch`), "wait" (each
      call waits for what it submits), separated by commas.
    - `queue_priorities`: a number from 0 to 1 for each queue; drivers may run work of a higher one first.
    - `capture`: the file for a program that repeats what the Manager submits, "" for none; `capture_limit`
      (default 1 GiB): the most data in it (see the guide on programs).
    - `profile`: the file for a trace of all that the Manager runs, "" for none (see `profile`).
    - `transfers`: "raise" forbids copies between the host and the device that no call names, such as
      ``np.asarray(t)`` and kernels with arrays, "warn" reports them, "allow" (default) says nothing (see
      docs/concepts/host_and_device.md).
    - `visible_devices` hides and orders devices (see `kp.list_devices`).
    - `shader_cache_dir` ("" for none) and `shader_cache_size` (default 128 MiB, 0 for none): the cache of
      compiled shaders; `compile` ("auto", or "never": sources must be in the cache, else NotFoundError names
      the missing file); `compile_timeout` (default 20, in seconds); `dump` (a folder that keeps each
      shader's source, SPIR-V and assembly, recordings as text, and a report if the device is lost, "" for
      none); `compiler` ("dxc" or "slang", for HLSL); `dxc_library` and `slang_library` (a file or folder, ""
      for none). They hold for this Manager's kernels. `kp.compile` and `kp.ShaderModule`, which have no
      Manager, use the variables under ``KOMPUTE_PY_``.

    `env_prefix` changes the prefix of the variables, for programs that embed this package; None ignores the
    environment. `config` shows the value and the source of each option.

    Raises UnavailableError if there is no Vulkan loader, driver or suitable device; NotFoundError if the
    requested device does not exist or is not suitable (both errors give the reason for each device);
    InvalidArgumentError for an unknown option, an unknown value of one, if the first queue family does not
    support compute, or for a struct of features that the driver does not know; UnimplementedError if the
    device lacks features of such a struct; ArgumentTypeError for values of other types; OutOfRangeError if
    the device lacks a queue family.

    Objects keep their Manager alive. ``with kp.Manager() as mgr:`` destroys it at the end of the block;
    inside the block, ``kp.manager()`` returns it. The end of a block does not destroy a Manager that others
    share: one of the process (``with kp.manager(0):``), or that of a block around it. See `current`.

    >>> with kp.Manager(memory_limit="1 GiB") as own:
    ...     t = own.tensor([1, 2, 3])
    ...     print(own.config.memory_limit.source, t.read().tolist())
    keyword [1.0, 2.0, 3.0]
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        device: DeviceLike | Iterable[DeviceLike] | None = None,
        family_queue_indices: Iterable[int] = (),
        desired_extensions: Iterable[str] | Mapping[str, tuple[int, Iterable[bool]] | None] = (),
        *,
        env_prefix: str | None = PREFIX,
        **options: Unpack[ManagerOptions],
    ) -> None:
        super().__init__(
            device,
            family_queue_indices,
            desired_extensions,
            prefix=to_prefix(env_prefix),
            options=options,
        )
        self._begin()

    @classmethod
    def from_handles(
        cls,
        instance: int,
        physical_device: int,
        device: int,
        queues: Iterable[tuple[int, int]],
        extensions: Iterable[str] = (),
        features: Iterable[str] = (),
        *,
        owner: object = None,
        env_prefix: str | None = PREFIX,
        **options: Unpack[ManagerOptions],
    ) -> Manager:
        """A Manager on a device that another library or Manager made, which it never destroys.

        The handles are integers: a VkInstance for Vulkan 1.2 or newer, one of its physical devices, and a
        VkDevice of it. `queues` lists (family, index) of queues that the device was made with, the first one
        with compute; nobody else may submit to them at the same time. `extensions` and `features` name what
        the device was made with, by Vulkan's names: Vulkan cannot be asked. "timelineSemaphore" must be among
        the features; what is not named is not used, so shaders that need it are refused.
        ``*mgr.vk_handles`` gives all of these for the device of a Manager.

        `owner` is an object that keeps the device alive. It is kept until nothing of this Manager needs the
        device any more: its tensors' views of memory outlive `destroy`. Without an owner, drop all of that
        before the device is destroyed.

        The handles must be of the Vulkan loader that this package uses (KOMPUTE_PY_VULKAN_LIBRARY names
        another one). Numbers that are not handles end the process, as everywhere in Vulkan.

        Raises InvalidArgumentError if the physical device is not the instance's, for extensions and features
        that it does not have, without "timelineSemaphore", and for options that say how a device is made;
        OutOfRangeError for queues that it does not have; UnavailableError if it is too old;
        ArgumentTypeError for values of other types.

        >>> with kp.Manager.from_handles(*mgr.vk_handles, owner=mgr) as same:
        ...     same.vk_device == mgr.vk_device
        True
        """
        made = cls.__new__(cls)
        given = VkHandles(instance, physical_device, device, queues, extensions, features)  # type: ignore[arg-type]
        Device.__init__(
            made, None, (), (), prefix=to_prefix(env_prefix), options=options, handles=given, owner=owner
        )
        made._begin()
        return made

    def _begin(self) -> None:
        watch_over(self)
        if trace := self._setting("profile"):
            from .._profiling.scripts import begin

            begin(self, trace)
        words, path = self._setting("debug"), self._setting("capture")
        if words or path:
            from .._debugging.messages import begin_messages
            from .._debugging.watching import begin_debugging

            begin_debugging(self, words, self._begin_capture(path) if path else None)
            begin_messages(self, words)

    def _begin_capture(self, path: str) -> RunLooker:
        """The looker at submissions. The package sets this method: programs stand above Managers."""
        raise NotImplementedError

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
        data: np.ndarray[Any, np.dtype[Scalar]],
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor[Scalar]: ...
    @overload
    def tensor_t(
        self,
        data: ArrayLike,
        memory_type: MemoryTypeLike | None = None,
        *,
        tensor_type: MemoryTypeLike | None = None,
        dtype: None = None,
    ) -> Tensor: ...
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

    def as_tensor(self, data: ArrayLike | Tensor, dtype: DTypeLike | None = None) -> Tensor:
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
        dtype: DTypeLike | None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor: ...
    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | None = np.float32,
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
        what it got; ``mgr.memory.query`` says it before.

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
        dtype: DTypeLike | None,
        memory_type: MemoryTypeLike | None = None,
        *,
        memory_flags: MemoryFlags = (),
        priority: float | None = None,
    ) -> Tensor: ...
    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | None = np.float32,
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

    def full(
        self,
        shape: int | tuple[int, ...],
        fill_value: Any,
        dtype: DTypeLike | None = None,
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
        array: Array,
        *,
        copy: CopyMode = "auto",
        semantics: HostBufferSemantics | HostBufferSemanticsName | None = None,
        on_done: Callable[[], object] | None = None,
    ) -> Tensor:
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

    def shared(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | None = np.float32,
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

    # -- algorithms and sequences ----------------------------------------------------------------------------

    def algorithm(
        self,
        tensors: Iterable[Memory | SampledImage | Sampler] = (),
        spirv: ShaderSource | None = None,
        workgroup: Any = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
        *,
        entry: str | None = None,
    ) -> Algorithm:
        """An Algorithm: a shader bound to `tensors` in order. See `kp.Algorithm` for arguments and errors.

        Raises InvalidArgumentError, ArgumentTypeError, NotFoundError, UnimplementedError and
        FailedPreconditionError, for the reasons that `kp.Algorithm` lists.

        >>> spirv = kp.compile('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1.0; }
        ... ''')
        >>> x = mgr.tensor([1, 2, 3])
        >>> increment = mgr.algorithm([x], spirv, (1, 1, 1))
        >>> seq = mgr.sequence().eval(kp.OpSyncDevice([x])).eval(kp.OpAlgoDispatch(increment))
        >>> x.tolist()
        [2.0, 3.0, 4.0]
        """
        return Algorithm(self, tensors, spirv, workgroup, spec_consts, push_consts, entry=entry)

    def sequence(
        self,
        queue_index: int | Iterable[int] = 0,
        total_timestamps: int = 0,
        *,
        timestamps: bool = False,
        disjoint: Memory | Iterable[Memory] = (),
    ) -> Sequence:
        """A Sequence on one of the Manager's queues, or on the least busy of several. See `kp.Sequence` for
        arguments and errors.

        Raises OutOfRangeError if the Manager has not opened that queue, InvalidArgumentError for a negative
        number of timestamps or objects of another Manager in `disjoint`, UnimplementedError if the queue has
        no timestamps, FailedPreconditionError if the Manager is destroyed.

        >>> x = mgr.tensor([1, 2, 3])
        >>> sequence = mgr.sequence().record(kp.OpFill([x], 5.0)).record(kp.OpSyncLocal([x]))
        >>> sequence.eval().is_init()
        True
        >>> x.data()
        array([5., 5., 5.], dtype=float32)
        """
        return Sequence(self, queue_index, total_timestamps, timestamps=timestamps, disjoint=disjoint)

    def kernel(
        self,
        source: ShaderSource,
        *,
        name: str | None = None,
        watch: bool = False,
        bounds: Literal["check", "zero"] = "check",
        **options: Unpack[KernelOptions],
    ) -> Kernel:
        """A Kernel: a shader that is called like a function.

        `source` is GLSL, HLSL or Slang text, a path, SPIR-V assembly, or SPIR-V: bytes, an array of uint32, a
        list of ints, a `ShaderModule`, or an object with ``to_spirv()``.
        Options: `name`; the options of `kp.compile` (`language`, `entry`, `defines`, `include_dirs`,
        `optimize`, `debug_info`, `target`); `includes`, texts by name that ``#include`` finds before any
        file; `subgroup_size`, `full_subgroups` and `unchecked`, as in `kp.ShaderModule`.

        With ``bounds="zero"``, arrays may end before the invocations of a `grid` or `groups` that a call
        gives: reads beyond them give zeros, and writes do nothing.

        With ``watch=True``, the kernel and recordings of it pick up edits to the shader file and to the files
        that it includes (see `Kernel`).

        Raises ShaderCompileError if the source does not compile, InvalidArgumentError for invalid SPIR-V or
        an unknown option, UnimplementedError if the device lacks a feature that the shader or `bounds` needs,
        NotFoundError if a path does not exist.

        >>> double = mgr.kernel('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }
        ... ''')
        >>> double(np.array([1, 2, 3], np.float32))
        array([2., 4., 6.], dtype=float32)
        """
        from .._kernels.kernel import (
            Kernel,  # late, because not every script needs the compilers
        )

        return Kernel(self, source, name=name, watch=watch, bounds=bounds, **options, stacklevel=3)

    def preload(self, items: Iterable[Kernel | Algorithm]) -> None:
        """Builds the pipelines of kernels and algorithms ahead, in parallel, and waits for them. Their first
        use then takes no longer than later ones.

        Drivers compile shaders when a pipeline is built or first dispatched, which takes milliseconds to
        seconds. Both happen here; no group runs. A shader with images or samplers is not dispatched: a driver
        that compiles at the first dispatch (lavapipe) still does so at its first use. The pipeline of a
        kernel with an array of bindings of run-time length depends on that length, and is not built. Other
        threads of Python run meanwhile.

        Raises ArgumentTypeError for anything but kernels and algorithms, InvalidArgumentError for those of
        another Manager and for sizes beyond the device's limits, FailedPreconditionError for a destroyed
        algorithm and one that was made without a shader.
        """
        preload(self, items)

    def scratch(self) -> Scratch:
        """A Scratch: memory for what operations pass on within a recording. It shares its memory with others
        that do not run at the same time; see `kp.Scratch`.

        Raises FailedPreconditionError if the Manager is destroyed.
        """
        from .._memory.scratch import Scratch  # late, because few scripts need it

        return Scratch(self)

    def semaphore(self, initial: int = 0, *, shared: bool = False) -> Semaphore:
        """A Semaphore: a counter that starts at `initial` and orders submissions and the host. With `shared`,
        other Managers and processes can hold it, too: see `Semaphore.share`.

        Raises OutOfRangeError if `initial` is negative or above 2**64 - 2, ArgumentTypeError if it is not an
        int or `shared` not a bool, FailedPreconditionError if the Manager is destroyed, UnimplementedError
        for a shared one on Windows.
        """
        return Semaphore(self, initial, shared=shared)

    def import_semaphore(self, handle: SemaphoreHandle | int) -> Semaphore:
        """A Semaphore that counts with the one of a `kp.SemaphoreHandle`, of another Manager or process. The
        handle is used up.

        `handle` may also be a file descriptor of a timeline semaphore (Vulkan's OPAQUE_FD): that of
        `Semaphore.export_fd`, or of another user of the same device. It stays the caller's.

        Raises FailedPreconditionError if the handle was used or closed, or the Manager is destroyed,
        InvalidArgumentError for another descriptor, UnimplementedError if the device imports none,
        ArgumentTypeError for anything else.
        """
        return imported_semaphore(self, handle)

    def import_fence(self, fd: int | HasFileno) -> Fence:
        """A Fence that is done when a file descriptor is readable: the one of `Fence.export_fd` of any
        process, an eventfd, a timerfd, a sync_file of a kernel driver, a socket. Work waits for it by
        ``wait=``.

        The descriptor is duplicated, and nothing is read from it. If its other end is closed before it is
        readable, the fence fails with AbortedError. The host does the waiting, so the work begins a moment
        later.

        Raises InvalidArgumentError if the number is not an open descriptor, ArgumentTypeError if it is not an
        int and has no ``fileno()``, FailedPreconditionError if the Manager is destroyed, UnimplementedError
        on Windows.
        """
        return imported_fence(self, fd)

    def submit(
        self,
        sequences: Sequence | Iterable[Sequence],
        *,
        wait: Waitable | Iterable[Waitable] = (),
        signal: tuple[Semaphore, int] | Iterable[tuple[Semaphore, int]] = (),
    ) -> Fence:
        """Submits one or several recorded sequences at once, in order. Returns a Fence for their end.

        Consecutive sequences of one queue form one submission to the driver. `wait` and `signal` are as in
        `Sequence.eval_async`: all sequences start after `wait`, and `signal` follows the last one. Without
        sequences, `signal` follows `wait`. Waiting for the fence collects the sequences. They need not be
        kept, unless they have operations with a `post_eval`. If one sequence is refused, none is submitted.

        ``mgr.submit([])``, without `wait` and `signal`, submits nothing: its Fence is done when all work is
        that was submitted to this Manager so far, held work included. ``await mgr.submit([])`` is
        `synchronize` for asyncio.

        Raises FailedPreconditionError if a sequence is running or uses a destroyed object,
        InvalidArgumentError if a sequence is given twice or belongs to another Manager, ArgumentTypeError if
        `sequences` holds anything else, and the errors of `eval_async`.
        """
        if isinstance(sequences, Sequence):
            sequences = (sequences,)
        given = as_list(sequences, "submit", "sequences, as in mgr.submit([seq, ...])")
        fences, waits = to_waits(wait)
        signals = to_signals(signal)
        for position, each in enumerate(given):
            if not isinstance(each, Sequence):
                raise ArgumentTypeError(
                    f"submit takes sequences, as in mgr.submit([seq, ...]); element {position} is "
                    f"{shown(each):.80}, {kind_of(each)}"
                )
        hooks = [each._start() for each in given]
        try:
            native = submit_streams(self, [each._native for each in given], fences, waits, signals)
        finally:
            for each, due in zip(given, hooks, strict=True):
                if each._native.is_due():
                    each._expect(due)
                    each._fenced = True
            if self._watch is not None:
                self._watch()
        streams = [each._native for each in given]
        hooked = tuple(weakref.ref(each) for each in given if each._hooked)
        return Fence(native, managers_of(streams, self), hooked, failures_of(streams))

    def synchronize(self) -> None:
        """Waits until all submitted work is done and its results are visible to the host.

        Raises DeviceLostError if the device fails.
        """
        self._native.wait_idle()
        if self._watch is not None:
            self._watch()

    def profile(self, *, operations: bool = True) -> Profile:
        """For ``with mgr.profile() as p:``, notes all that the device runs inside of the block: times, bytes,
        lines of the script. ``print(p)`` shows a table. See `kp.Profile`.

        With ``operations=False``, whole sequences are timed instead of operations. Raises
        FailedPreconditionError if the Manager is destroyed, ArgumentTypeError if `operations` is not a bool.

        >>> t = mgr.zeros(1000)
        >>> sequence = mgr.sequence().record(kp.OpSyncLocal([t]))
        >>> with mgr.profile() as p:
        ...     _ = sequence.eval()
        >>> p.submissions, p.records["name"].tolist()
        (1, ['OpSyncLocal'])
        """
        from .._profiling.profile import Profile  # late, because few scripts need it

        return Profile(self, operations)

    def watch(
        self,
        sink: Callable[[OperationValues], object] | str | os.PathLike[str],
        tensors: Iterable[Tensor] | None = None,
    ) -> AbstractContextManager[None]:
        """For ``with mgr.watch(print):``: looks at what each operation inside of the block reads and writes.

        `sink` is called with a `kp.OperationValues` for each operation, after the call that ran it, in the
        order of the operations; what it raises, that call raises. Or `sink` is a folder, which is made: each
        operation's results are written there, for ``kompute-py diff``. With `tensors`, only operations that
        use one of them are looked at.

        The Manager must have been opened with ``debug="values"`` (or another word of `debug`), which lists
        the price. Memory that an operation does not declare is not seen; of an `OpRepeat`, the values after
        the last repetition.

        Raises FailedPreconditionError if the Manager was opened otherwise, is destroyed, or is profiled;
        ArgumentTypeError if `sink` or `tensors` are something else; OSError if the folder cannot be made.

        >>> with kp.Manager(debug="values") as debugged:
        ...     t = debugged.zeros(3)
        ...     with debugged.watch(lambda values: print(values.operation, values.outputs)):
        ...         _ = debugged.sequence().record(kp.OpFill([t], 1)).eval()
        OpFill {'tensor 1': array([1., 1., 1.], dtype=float32)}
        """
        from .._debugging.watching import watching

        return watching(self, sink, tensors)

    def on_message(self, callback: Callable[[ShaderMessage], object] | None) -> None:
        """Calls `callback` with each message that shaders write, in place of logging it; None: logs again.

        The Manager must have been opened with ``debug=`` "printf", "bounds", "races", "barriers" or "loops".
        The messages of work arrive in the call that waits for it, on that thread, unless other work still
        runs; what `callback` raises, that call raises. See `kp.ShaderMessage`.

        Raises FailedPreconditionError if the Manager was opened without these, ArgumentTypeError if
        `callback` cannot be called.
        """
        from .._debugging.messages import set_callback

        set_callback(self, callback)

    # -- life ------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Waits for the device's work, then destroys all objects of this Manager. May be called any number of
        times.

        Afterwards, ``is_init()`` of tensors, images, algorithms and sequences is False, and using them raises
        FailedPreconditionError; arrays from `data()` stay readable. Held work, which waits for a signal that
        was not given, is cancelled, and a KomputeWarning names it. Ctrl-C during the wait raises
        KeyboardInterrupt and destroys nothing.
        """
        told = self._native.destroy()
        waiting = sys.modules.get("kompute_py._sync.waiting")
        if waiting is not None:
            waiting.end(self)
        _native.release_arrays()
        forget(self)
        self._diagnostics.log_notes()
        warn_of_cancelled(told)
        if self._watch is not None:
            self._watch()

    def __enter__(self) -> Manager:
        enter(self)
        return self

    def current(self) -> AbstractContextManager[Manager]:
        """For ``with mgr.current():``: inside the block, ``kp.manager()`` returns this Manager, which stays
        open at the end.

        As with ``with kp.Manager() as mgr:``, the choice holds for the code of the block and the asyncio
        tasks that it makes, not for other threads. Raises FailedPreconditionError if the Manager is
        destroyed.

        >>> own = kp.Manager()
        >>> with own.current():
        ...     kp.manager() is own
        True
        >>> own.is_init(), own.destroy()
        (True, None)
        """
        return current(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave(self)
        # Others use the Manager beyond this block: the process, or the code of a block around this one.
        if not is_shared(self):
            self.destroy()

    def __del__(self, warn: Any = warn_of_cancelled) -> None:
        # Never waits: objects in use are released when the device is done with them. (If __init__ failed,
        # there is no _native. At the interpreter's end, the module's globals may be gone, hence the default
        # argument.)
        native = getattr(self, "_native", None)
        if native is not None and (told := native.abandon()):
            warn(told)

    def _repr_html_(self) -> str:
        """Shows the device in notebooks."""
        from .._display.cards import manager_card

        return manager_card(self)

    def __reduce_ex__(self, protocol: object) -> Any:
        """Raises ArgumentTypeError (a TypeError): Managers are not copied or pickled."""
        raise not_copyable(self, "make a new kp.Manager where it is needed, in each process")

    def __repr__(self) -> str:
        state = "" if self._native.is_init() else " destroyed"
        # The address distinguishes Managers of one device.
        return f"<kp.Manager device {self._info['index']}: {self._device_name} at {id(self):#x}{state}>"


@overload
def alive(detail: Literal[False] = False, *, manager: Manager | None = None) -> int: ...
@overload
def alive(detail: Literal[True], *, manager: Manager | None = None) -> dict[str, int]: ...
@overload
def alive(detail: bool, *, manager: Manager | None = None) -> int | dict[str, int]: ...
def alive(detail: bool = False, *, manager: Manager | None = None) -> int | dict[str, int]:
    """The number of native objects alive in the process, or of one Manager; with `detail`, a dict of counts
    by kind.

    Kinds: "context" (a Manager's device), "buffer", "image", "shader", "algorithm", "stream" (a sequence's
    recording), "semaphore", "host_pages" (memory of the process). Raises ArgumentTypeError if `detail` is
    not a bool or `manager` not a Manager.

    >>> t = mgr.zeros(3)
    >>> kp.alive(detail=True)["buffer"] >= 1
    True
    """
    if manager is not None:
        require_manager(manager)
    if isinstance(detail, Device):
        raise ArgumentTypeError("detail is a Manager; write kp.alive(manager=mgr)")
    counts = _native.alive(None if manager is None else manager._native)
    return dict(counts) if to_flag(detail, "detail") else sum(counts.values())


for _name, _code in MAKERS.items():
    if not hasattr(Manager, _name):
        setattr(Manager, _name, OnlyOfArrays(_name, f"use {_code}"))
del _name, _code
