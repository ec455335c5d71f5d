"""Manager: one device and everything that is made on it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
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
    to_array,
    to_element,
    to_flag,
)
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
    not_copyable,
)
from .._base.plain_arguments import as_list
from .._base.texels import parse_format, size_of
from .._base.warn import warn_of_cancelled
from .._device.device import Device
from .._device.names import DeviceInfo
from .._device.options import PREFIX, to_prefix
from .._memory.host_memory import HostBufferSemantics, from_host
from .._memory.image import Image
from .._memory.memory import DEVICE, Memory, to_memory_type
from .._memory.sampler import Sampler
from .._memory.tensor import Tensor, buffer_tensor
from .._recording.algorithm import Algorithm
from .._recording.sequence import Sequence, submit_together
from .._sync.semaphore import Semaphore
from .program_end import watch_over

if TYPE_CHECKING:
    from types import TracebackType
    from uuid import UUID

    from numpy.typing import ArrayLike, DTypeLike

    from .._base.types import MemoryTypes
    from .._kernels.kernel import Kernel
    from .._sync.fence import Fence
    from .._sync.semaphore import Waitable

_ndarray = np.ndarray
# Beyond that, sizes do not fit the core's 64 bits, nor an array's.
_MOST_BYTES = 2**63 - 1


def _modes(address: Any) -> Any:
    """The axes' modes as a list, for any iterable of them."""
    try:
        return list(address)
    except Exception:
        return address  # which the Sampler complains about


class Manager(Device):
    """Opens a device and makes tensors, images, algorithms and sequences on it.

    `device`: Vulkan's enumeration index, a part of a device's name, a vendor ("nvidia"), a type ("discrete", "integrated",
    "virtual", "cpu", or "gpu": no CPU), a UUID, or a `DeviceInfo`; a list of these, or text with commas ("nvidia,amd,cpu"), is
    tried in order. None takes the best device (discrete, integrated, virtual, CPU), or what the environment variable
    KOMPUTE_PY_DEVICE prefers. `family_queue_indices`: one queue for each entry, of that Vulkan queue family; without, one compute queue. The
    first computes; others may be for transfers alone, where sequences move tensors and do not dispatch (see `Sequence.stream`).
    `desired_extensions`: device extensions to enable where the device has them; those that are missing are logged.

    `validation` turns the validation layer on (messages go to ``logging.getLogger("kompute_py")``), and `strict` raises its
    errors. More options: `robust_access` (default True), `pipeline_cache_dir` (a folder, "" for none),
    `required_extensions`, `debug_layers`; for memory `memory_limit` (bytes, or text such as "512 MiB": the most to take from
    the driver), `memory_block_size`, and for debugging `memory_debug` (guard bytes, see `memory`), `force_staging` and
    `force_non_coherent` (take the paths of other GPUs). `recent_pipelines` (128): how many pipelines and shader modules that nothing
    uses any more are kept, the most recently used ones (see `kp.DeviceMemory.pipelines`). `wait_mode`: "spin" looks at the device's counter for up to 0.1 ms before a
    wait sleeps, which is quicker to see the end of short work and keeps a core busy; "block" sleeps at once; "auto" (default)
    measures which is faster here (see `waits`). `visible_devices` hides and orders devices (see `kp.list_devices`). Each is taken
    from the keyword, else from the environment variable ``KOMPUTE_PY_<NAME>``, else from its default. `env_prefix` is another
    prefix of the variables, for programs that embed this package; None looks at none. `config` says what each is and where it
    comes from.

    Raises UnavailableError with no Vulkan loader, driver or suitable device, NotFoundError where the device that was asked
    for is not there or does not fit (both say why each device was passed over), InvalidArgumentError for an unknown
    option or a first queue family that does not compute, OutOfRangeError for one that the device lacks.

    Objects made by a Manager keep it alive. ``with kp.Manager() as mgr:`` destroys it at the end; inside, ``kp.manager()`` is it.
    """

    __slots__ = ("__weakref__", "_buffer")

    def __init__(
        self,
        device: int | str | UUID | DeviceInfo | Iterable[int | str | UUID | DeviceInfo] | None = None,
        family_queue_indices: Iterable[int] = (),
        desired_extensions: Iterable[str] = (),
        *,
        validation: bool | None = None,
        strict: bool | None = None,
        env_prefix: str | None = PREFIX,
        **options: Any,
    ) -> None:
        super().__init__(
            device,
            family_queue_indices,
            desired_extensions,
            prefix=to_prefix(env_prefix),
            options={"validation": validation, "strict": strict, **options},
        )
        self._buffer = self._native.buffer
        watch_over(self)

    # -- tensors -------------------------------------------------------------------------------------------------------

    def tensor(
        self,
        data: ArrayLike,
        memory_type: MemoryTypes | str | None = None,
        *,
        tensor_type: MemoryTypes | str | None = None,
        dtype: None = None,
    ) -> Tensor:
        """A Tensor of `data` converted to float32, in the data's shape; the data is copied.

        `data` is an array, nested lists, a number, or anything with the buffer protocol. `memory_type` is
        `MemoryTypes.device` by default; `tensor_type` is its older name. The data is in the tensor's host copy (for `storage`: on
        the device). It is uploaded once, before anything uses the device's memory, whether OpSyncDevice is recorded or not; from
        then on OpSyncDevice and `write` bring over what changes (see `Memory.data`).
        Empty data makes a Tensor with no element.

        Raises InvalidArgumentError for an unknown memory type, ArgumentTypeError where the data is not real
        numbers, OutOfMemoryError where the device has too little memory, FailedPreconditionError when destroyed.
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

    def tensor_t(
        self,
        data: ArrayLike,
        memory_type: MemoryTypes | str | None = None,
        *,
        tensor_type: MemoryTypes | str | None = None,
        dtype: None = None,
    ) -> Tensor:
        """A Tensor of `data` in the data's own dtype and shape; the data is copied. See `tensor`.

        dtypes: bool (one byte an element), integers of 8 to 64 bits, float16, float32, float64, complex64, complex128,
        structured dtypes (see `kp.struct_dtype`), raw bytes, and bfloat16 and float8 types where ml_dtypes is installed;
        byte-swapped data is converted. Raises ArgumentTypeError, naming the dtype, for any other.
        """
        if dtype is not None:
            raise misplaced.keyword(dtype, misplaced.KEPT_BY_TENSOR_T)
        array = as_typed(data)
        where = to_memory_type(memory_type, tensor_type, misplaced.KEPT_BY_TENSOR_T)
        tensor = Tensor.__new__(Tensor)
        self._adopt_buffer(tensor, array, where)
        return tensor

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | None = np.float32,
        memory_type: MemoryTypes | str | None = None,
    ) -> Tensor:
        """A Tensor of `shape`, an int or a tuple, () for a scalar, and `dtype` (None: float32) with undefined contents.

        No array of that size is made. A `device` tensor gets its host copy when something first needs it: `data`, `numpy`,
        or an OpSyncDevice or OpSyncLocal of it.

        An axis may be 0: the Tensor then has no element. Raises InvalidArgumentError for a negative axis,
        ArgumentTypeError for an unsupported dtype, OutOfMemoryError where the device has too little memory.
        """
        return self._allocate(shape, dtype, memory_type, None)

    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | None = np.float32,
        memory_type: MemoryTypes | str | None = None,
    ) -> Tensor:
        """A Tensor of `shape` and `dtype` that holds zeros, on the device and in its host copy. As `empty` otherwise."""
        return self._allocate(shape, dtype, memory_type, b"\0")

    def full(
        self,
        shape: int | tuple[int, ...],
        fill_value: Any,
        dtype: DTypeLike | None = None,
        memory_type: MemoryTypes | str | None = None,
    ) -> Tensor:
        """A Tensor of `shape` with `fill_value` in each element, on the device and in its host copy. As `empty` otherwise.

        `dtype` is float32 by default, and `fill_value`'s own where that is a NumPy scalar or array; for a structured one,
        `fill_value` is a tuple or a record. It is one element, or an array that ends every row: shape (n, 3) takes three.

        Raises what `empty` raises, InvalidArgumentError for a value that does not fit `dtype` or `shape`, ArgumentTypeError
        for one that does not convert to it without loss.
        """
        own = isinstance(fill_value, (np.generic, np.ndarray)) and dtype is None
        wanted = fill_value.dtype if own else np.float32 if dtype is None else dtype
        try:
            element, axes = to_element(wanted)
            made = as_shape(shape) + axes
        except ArgumentTypeError as error:
            raise misplaced.in_allocation(shape, wanted, error) from None
        try:
            fill = fill_bytes(fill_value, element, made)
        except ArgumentTypeError as error:
            raise misplaced.of_fill(fill_value, error) from None
        return self._allocate(shape, wanted, memory_type, fill)

    def from_host(
        self,
        array: np.ndarray[Any, Any],
        *,
        copy: Literal["auto", "never", "always"] = "auto",
        semantics: HostBufferSemantics | str | int | None = None,
        on_done: Callable[[], object] | None = None,
    ) -> Tensor:
        """A Tensor of memory type `host` that uses the array's own memory: what one side writes, the other reads.

        The device takes the memory as it is (VK_EXT_external_memory_host) where the array is C-contiguous, writable, begins at
        a multiple of `host_import_alignment` and has a multiple of 4 bytes; `kp.aligned_empty` makes arrays that fit. The
        Tensor and its views keep the array alive. The caller orders what it writes itself with what the device does.

        copy: "auto" copies where the memory cannot be used as it is (a debug line in the log says why); "never" raises then;
            "always" copies.
        semantics: who may touch the memory when, see `kp.HostBufferSemantics`; None is MUTABLE_ZERO_COPY. A read-only array is
            shared under IMMUTABLE_ZERO_COPY only, and then the Tensor cannot be written. The other two always copy.
        on_done: called without arguments, once, when the caller may reuse the memory: before the return where it was copied;
            else when the device's hold on it is gone, on the interpreter's main thread.

        Raises InvalidArgumentError or UnimplementedError with ``copy="never"`` where the memory cannot be used, naming what is
        missing, and for an array with no element; ArgumentTypeError for what is no ndarray or for an
        unsupported dtype; OutOfMemoryError; FailedPreconditionError when destroyed.
        """
        return from_host(self, array, copy, semantics, on_done)

    def _allocate(self, shape: Any, dtype: Any, memory_type: Any, fill: bytes | None) -> Tensor:
        try:
            element, axes = to_element(np.float32 if dtype is None else dtype)
            made = as_shape(shape) + axes
        except ArgumentTypeError as error:
            raise misplaced.in_allocation(shape, dtype, error) from None
        where = to_memory_type(memory_type, None, misplaced.BEFORE)
        count = math.prod(made)
        if count * element.itemsize > _MOST_BYTES:
            raise OutOfMemoryError(
                f"A tensor of shape {made}, {element} would have {count * element.itemsize} bytes; "
                "no device has buffers of that size"
            )
        native = self._native.buffer(None, count * element.itemsize, where, fill if count else None)
        tensor = buffer_tensor(native, self, made, element, count, where)
        self._after(where)
        return tensor

    def _adopt_buffer(self, tensor: Tensor, array: np.ndarray[Any, Any], where: MemoryTypes) -> None:
        native = self._buffer(array, array.nbytes, where)
        tensor._adopt(native, self, array.shape, array.dtype, array.size, where)
        self._after(where)

    # -- images --------------------------------------------------------------------------------------------------------

    def image(
        self,
        data: ArrayLike,
        width: int | None = None,
        height: int | None = None,
        num_channels: int | None = None,
        memory_type: MemoryTypes | str | None = None,
        *,
        format: str | None = None,
        **options: Any,
    ) -> Image:
        """An Image of `data`; converted to float32, but uint8 data stays uint8, and `format` keeps the data's dtype.

        `width`, `height` and `num_channels` (1, 2 or 4) default from an (h, w) or (h, w, c) array; a Pillow image is one. uint8
        gives the integer format (``rgba8ui``), as in Kompute; ``format="rgba8"`` gives unorm, and other GLSL and Vulkan
        names work likewise (`image_formats` lists them).

        Options: `dims` (1, 2 or 3 dimensions), `depth`, `layers` (an array of so many layers; True takes the array's first
        axis), and `tensor_type`, the older name of `memory_type`. The array's axes are (layers,) (depth,) height, width (, c).

        Raises InvalidArgumentError where the sizes do not fit the data, there are three channels, or the format is unknown;
        UnimplementedError where the device does not have the format; ArgumentTypeError for a dtype that the format does not have.
        """
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
        memory_type: MemoryTypes | str | None = None,
        **options: Any,
    ) -> Image:
        """An Image of `data` in the data's own dtype: integers of 8, 16 or 32 bits, float16 or float32. See `image`."""
        return self._make_image(data, width, height, num_channels, memory_type, **options)

    def image_empty(
        self,
        shape: int | tuple[int, ...],
        format: str = "rgba32f",
        memory_type: MemoryTypes | str | None = None,
        *,
        dims: int = 2,
        layers: bool = False,
    ) -> Image:
        """An Image of `shape`, its axes without the channels, with undefined contents: no data is copied.

        `shape` is (height, width) by default, width with ``dims=1``, (depth, height, width) with ``dims=3``, and begins with
        the number of layers where `layers` is True. Raises what `image` raises.
        """
        wanted = as_shape(shape)
        dims, layers = as_index(dims, "dims"), to_flag(layers, "layers")
        size = size_of(wanted, dims, None, None, None, True if layers else None)
        if len(wanted) != len(size.axes):
            raise InvalidArgumentError(
                f"shape {wanted} has {len(wanted)} axes; an image with dims={dims}{', layers=True' if layers else ''} has "
                f"{len(size.axes)}, without its channels"
            )
        return Image._empty(self, size, parse_format(format), to_memory_type(memory_type))

    def sampler(
        self, filter: str = "nearest", address: str | Iterable[str] = "clamp_to_edge", **options: Any
    ) -> Sampler:
        """A Sampler: how shaders read images between texels and beyond the edge. See `kp.Sampler` for the arguments."""
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

    def _after(self, where: MemoryTypes) -> None:
        if where is not DEVICE:
            self._diagnostics.log_notes()  # the core notes where it could not give the memory asked for
        if self._watch is not None:
            self._watch()

    # -- algorithms and sequences ------------------------------------------------------------------------------------------

    def algorithm(
        self,
        tensors: Iterable[Memory] = (),
        spirv: Any = None,
        workgroup: Any = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
        *,
        entry: str | None = None,
    ) -> Algorithm:
        """An Algorithm: a shader bound to `tensors` in order. See `kp.Algorithm` for the arguments and what is raised."""
        return Algorithm(self, tensors, spirv, workgroup, spec_consts, push_consts, entry=entry)

    def sequence(
        self,
        queue_index: int = 0,
        total_timestamps: int = 0,
        *,
        timestamps: bool = False,
        disjoint: Memory | Iterable[Memory] = (),
    ) -> Sequence:
        """A Sequence on one of the Manager's queues. See `kp.Sequence` for the arguments and what is raised."""
        return Sequence(self, queue_index, total_timestamps, timestamps=timestamps, disjoint=disjoint)

    def kernel(self, source: Any, *, watch: bool = False, **options: Any) -> Kernel:
        """A Kernel: a shader that is called like a function.

        `source` is GLSL, HLSL or Slang text, a path, SPIR-V as bytes or assembly, a `ShaderModule`, or any object with ``to_spirv()``.
        Options: `name`, and what `kp.compile` takes (`language`, `entry`, `defines`, `include_dirs`, `optimize`, `debug_info`,
        `target`), and `includes`, texts by name that ``#include`` finds before any file.

        With `watch` the kernel, and what is recorded of it, goes on with the new version when the file or one that it includes
        changes (see `Kernel`).

        Raises ShaderCompileError where the source does not compile, InvalidArgumentError for what is no SPIR-V or an unknown
        option, UnimplementedError where the device lacks what the shader needs, NotFoundError for a path with no file.
        """
        from .._kernels.kernel import (
            Kernel,  # with the compiler's side of the package, which not every script needs
        )

        return Kernel(self, source, watch=watch, **options, stacklevel=3)

    def semaphore(self, initial: int = 0) -> Semaphore:
        """A Semaphore, a counter for orders between submissions and the host, that begins at `initial`."""
        return Semaphore(self, initial)

    def submit(
        self,
        sequences: Sequence | Iterable[Sequence],
        *,
        wait: Waitable | Iterable[Waitable] = (),
        signal: tuple[Semaphore, int] | Iterable[tuple[Semaphore, int]] = (),
    ) -> Fence:
        """Submits one or several recorded sequences at once, in their order; returns the Fence of their end.

        Those of one queue, one after another in the list, are one submission to the driver. `wait` and `signal` are those of
        `Sequence.eval_async`: all of them start after `wait`, and `signal` comes after the last one. With no sequence it only
        orders the one after the other. Waiting for the fence collects the sequences. If one of them is refused, none is submitted.

        Raises FailedPreconditionError where one is running or uses something destroyed, InvalidArgumentError for one that is
        given twice or is another Manager's, and what `eval_async` raises.
        """
        if isinstance(sequences, Sequence):
            sequences = (sequences,)
        given = as_list(sequences, "submit", "sequences, as in mgr.submit([seq, ...])")
        return submit_together(self, given, wait, signal)

    def synchronize(self) -> None:
        """Waits until the device is done with everything that was submitted, and its results are visible to the host.

        Raises DeviceLostError if the device fails.
        """
        self._native.wait_idle()
        if self._watch is not None:
            self._watch()

    # -- life ----------------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Waits for the device's work, then destroys all that was made from this Manager; any number of times.

        Tensors, images, algorithms and sequences are not init after it and raise FailedPreconditionError; arrays that
        `data()` gave stay readable. Work that is held, since nobody has signalled what it waits for, is cancelled, and a
        KomputeWarning says what did not run. Ctrl-C raises KeyboardInterrupt while it waits; nothing is destroyed then.
        """
        told = self._native.destroy()
        waiting = sys.modules.get("kompute_py._sync.waiting")
        if waiting is not None:
            waiting.end(self)
        _native.release_arrays()
        from .current import forget

        forget(self)
        self._diagnostics.log_notes()
        warn_of_cancelled(told)
        if self._watch is not None:
            self._watch()

    def __enter__(self) -> Manager:
        if not self._native.is_init():
            raise FailedPreconditionError(f"{self!r} cannot be entered: make a new one")
        from .current import enter

        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from .current import leave

        leave(self)
        self.destroy()

    def __del__(self, warn: Any = warn_of_cancelled) -> None:
        # Never waits: what the device still works on is released when it is done. (A Manager whose __init__ failed has
        # no _native; globals of the module may be gone at the interpreter's end.)
        native = getattr(self, "_native", None)
        if native is not None and (told := native.abandon()):
            warn(told)

    def _repr_html_(self) -> str:
        """For notebooks: the device."""
        from .._display.cards import manager_card

        return manager_card(self)

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError) that says what to do instead."""
        raise not_copyable(self, "make a new kp.Manager where it is needed, in each process")

    def __repr__(self) -> str:
        state = "" if self._native.is_init() else " destroyed"
        # The address tells Managers of one device apart.
        return f"<kp.Manager device {self._info['index']}: {self._device_name} at {id(self):#x}{state}>"


@overload
def alive(detail: Literal[False] = False) -> int: ...
@overload
def alive(detail: Literal[True]) -> dict[str, int]: ...
@overload
def alive(detail: bool) -> int | dict[str, int]: ...
def alive(detail: bool = False) -> int | dict[str, int]:
    """How many native objects are alive in the process; with `detail`, a dict of the counts by kind.

    Kinds: "context" (a Manager's device), "buffer", "image", "shader", "algorithm", "stream" (a sequence's recording), "semaphore".
    """
    counts = _native.alive()
    return dict(counts) if to_flag(detail, "detail") else sum(counts.values())
