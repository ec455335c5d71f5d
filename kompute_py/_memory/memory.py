"""Memory: the common base of Tensor and Image."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from .. import _native
from .._base.arrays import check_out, converted, counted, element_bytes, fitted, packed, to_copy
from .._base.errors import (
    ArgumentTypeError,
    DonatedTensorError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
    kind_of,
    not_copyable,
    shown,
)
from .._base.misplaced import KEPT_BY_TO
from .._base.plain_arguments import as_list
from .._base.types import (
    DEVICE,
    DataTypes,
    DeviceMemoryObject,
    MemoryTypes,
    data_type_of,
    dtype_text,
    to_memory_type,
)
from .._base.warn import warn
from .._device.device import Device
from .._device.owner import Named
from .._sync.fence import Fence
from .._sync.ordered import NOTHING, in_order, ordered
from .array_habits import ArrayHabits
from .peer import PeerCopies, copy_of, submitted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from typing_extensions import Unpack

    from .. import _native as core
    from .._base.annotations import MemoryTypeLike
    from .._sync.semaphore import Ordering, Signals, Waits

# The type of the elements, as in np.ndarray: Tensor[np.float32]. Without one, checkers of types take Any.
if TYPE_CHECKING:
    from .._base.annotations import Scalar
else:
    Scalar = TypeVar("Scalar")

_Kind = TypeVar("_Kind", bound="Memory[Any]")
PATTERNS = (1, 2, 4, 8)
"""The lengths of patterns for OpFill, in bytes."""
SINGLE = (MemoryTypes.host, MemoryTypes.deviceAndHost)
_SHOWN = 6
# From this many bytes on, data is converted while it is written, not before.
_CONVERTED = 1 << 20
# The remark that `repr` adds after the host copy.
_FRESHNESS = {
    "matches": "",
    "unsent": "; not on the device yet",
    "behind": "; the device's contents are newer",
    "partly": "; the device's contents may be newer",
    "unknown": "; the device's contents may be newer",
}


seen_by_others: weakref.WeakSet[Memory] = weakref.WeakSet()
"""Memory that was imported or exported."""


@not_copyable("keep t.read(), a NumPy array, and make a new one from it with mgr.tensor_t or mgr.image_t")
class Memory(ArrayHabits, Named, DeviceMemoryObject, Generic[Scalar]):
    """Base of Tensor and Image: memory on the device and, except for `storage`, a host copy of it.

    Created by a Manager. Compares and hashes by identity. It has no arithmetic: use shaders (see
    `array_habits`).

    `repr` and notebook cards show the host copy and say whether the device's contents are newer, as far as
    this is known without a transfer or a wait. docs/concepts/host_and_device.md describes every other way to
    look at the contents.

    >>> t = mgr.zeros(4)
    >>> t.write([1, 2, 3, 4])
    >>> t.read(region=np.s_[1:3]).tolist()
    [2.0, 3.0]
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_dtype",
        "_host",
        "_is_init",
        "_manager",
        "_memory_type",
        "_native",
        "_shape",
        "_view",
    )

    _native: core.Memory | core.BufferView
    _is_image = False

    def _adopt(
        self,
        native: core.Memory,
        manager: Device,
        shape: tuple[int, ...],
        dtype: np.dtype[Scalar],
        count: int,
        memory_type: MemoryTypes,
    ) -> None:
        """Initializes the object from a native object that the Manager has just created."""
        self._native = native
        self._is_init = native.is_init
        self._manager = manager
        self._shape = shape
        self._dtype = dtype
        self._count = count
        self._memory_type = memory_type
        # A weak reference: the view's base is this object, so a strong one would be a cycle.
        self._view: weakref.ref[np.ndarray[Any, np.dtype[Scalar]]] | None = None
        self._host: object = None
        if manager._tensors is not None:
            manager._tensors.add(self)

    def _describe(self) -> str:
        name = self._native.name
        shown_name = f" {name!r}" if name else ""
        return f"{type(self).__name__}{shown_name} of shape {self._shape}, {dtype_text(self._dtype)}"

    def _require_init(self, action: str) -> None:
        if not self._is_init():
            taker = self._native.taker
            if taker:
                raise DonatedTensorError(
                    f"{self._describe()} was donated to {taker}: it cannot {action}. Do not donate it, or "
                    "keep a copy: t.to(t.manager, copy=True)"
                )
            raise FailedPreconditionError(
                f"{self._describe()} is destroyed{_by_manager(self._manager)}: it cannot {action}"
            )

    # -- the host's copy -------------------------------------------------------------------------------------

    def data(self) -> np.ndarray[Any, np.dtype[Scalar]]:
        """The host copy as a flat, writable array of `size()` elements of `dtype`.

        The array's ``.base`` is this object. This method does not wait and transfers nothing. The host copy
        may be older than the device's contents; `repr` says whether it is. OpSyncLocal copies the device's
        contents here; `read` returns them in a new array. The first use of the device memory uploads the host
        copy, once. Later edits reach the device only by OpSyncDevice or `write`. The device uses `host` and
        `deviceAndHost` memory in place, so the array shows the device's contents and nothing is uploaded.
        Results of work are visible here as soon as the host has learned, by any call, that the work is done;
        until then, do not touch the bytes that the work uses.

        The initial data of an object is stored in its host copy. It is uploaded once, automatically, before
        anything uses the device's memory: a `read` or `write` of a part, a kernel's call, the building of a
        recording (at its first evaluation after a change), `map`, an export, ``to``, saving. The upload takes
        the contents that the host copy has at that time.

        Each call returns the same array as long as it is alive, and the array stays readable after
        `destroy()`. Raises FailedPreconditionError if the object is destroyed or has `storage` memory, which
        the host cannot see.

        >>> x = mgr.tensor([1, 2, 3])
        >>> x.data()[0] = 9.0  # the host copy: OpSyncDevice brings it to the device
        >>> x.data()
        array([9., 2., 3.], dtype=float32)
        """
        if not self._is_init():
            self._require_init("give data()")
        ref = self._view
        if ref is not None:
            view = ref()
            if view is not None:
                return view
        if self._memory_type is MemoryTypes.storage:
            raise FailedPreconditionError(
                f"{self._describe()} has memory type storage, which the host does not see; "
                "use read(), or create it with memory type device and record kp.OpSyncLocal"
            )
        view = self._native.host_array(self, self._dtype, self._count)
        self._view = weakref.ref(view)
        return view

    def numpy(self) -> np.ndarray[Any, np.dtype[Scalar]]:
        """The host copy in this object's shape: a view of `data()`. Does not wait or transfer.

        A result of work is on the device: `read()` returns it. So a host copy that is older than the device's
        contents comes with a KomputeWarning; `data()`, which is there for edits, gives none. Raises as
        `data()` does.
        """
        kept = self.data().reshape(self._shape)
        self._warn_of_age()
        return kept

    def _warn_of_age(self) -> None:
        freshness = self._native.freshness
        if freshness in ("behind", "partly"):
            newer = "newer contents" if freshness == "behind" else "elements that are newer"
            warn(
                f"{self._describe()} has {newer} on the device than in the host copy, which numpy() "
                "shows: read() returns those, and kp.OpSyncLocal copies them to the host"
            )

    # -- the device's contents -------------------------------------------------------------------------------

    def read(
        self,
        out: np.ndarray[Any, Any] | None = None,
        region: Any = None,
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> np.ndarray[Any, np.dtype[Scalar]]:
        """Waits for pending work that writes this object and copies the device's contents to `out` or a new
        array. If nothing has used the device's memory yet, the host copy is uploaded first (see `data`).

        `out` must be writable and have this object's shape and `dtype` (in either byte order). With `region`,
        an index as in ``t[region]``, only that part is copied, and the array (new or `out`) has the part's
        shape. The host waits for `wait` before and raises `signal` after the copy (see `Sequence.eval`).
        Raises InvalidArgumentError for an `out` of another shape, ArgumentTypeError for one of another dtype,
        FailedPreconditionError if the object is destroyed, DeviceLostError if the work failed.

        >>> x = mgr.tensor([1, 2, 3])
        >>> x.write([4, 5, 6])
        >>> x.read()
        array([4., 5., 6.], dtype=float32)
        """
        if wait is not NOTHING or signal is not NOTHING:
            with ordered(wait, signal):
                return self.read(out, region)
        self._require_init("be read")
        if region is not None:
            return self._region(region).read(out)
        if out is None:
            made = np.empty(self._shape, self._dtype)
            self._native.read(made)
            self._report()
            return made
        out = check_out(out, self._dtype, self._shape, self._describe)
        if out.flags.c_contiguous and out.dtype.isnative:
            self._native.read(out)
        else:
            made = np.empty(self._shape, self._dtype)
            self._native.read(made)
            out[...] = made
        self._report()
        return out

    def write(self, data: ArrayLike, region: Any = None, *, wait: Waits = (), signal: Signals = ()) -> None:
        """Waits for pending work on this object, then copies `data` to the device. Returns when the copy is
        done.

        With `region`, an index as in ``t[region]``, only that part is written. If nothing has used the
        device's memory yet, the initial data is uploaded before a part is written (see `data`).

        The host copy of a `device` object does not change, as with `read`: a sequence whose OpSyncDevice then
        sends the older host copy gives a KomputeWarning, once (also if you have edited `data()` since, which
        nothing sees). `data` has `size()` elements and any shape; it
        is converted to `dtype` (floats round, integers must fit). Floats that become smaller ones are
        converted while they are written: if one of more than 1 MiB of them is out of range, those before it
        may be written already. `wait` and `signal` are as in `read`.

        Raises InvalidArgumentError for another size or values out of range, ArgumentTypeError for a dtype
        that does not convert without loss, FailedPreconditionError if the object is destroyed.

        >>> x = mgr.zeros(3)
        >>> x.write(np.arange(3))
        >>> x.read()
        array([0., 1., 2.], dtype=float32)
        """
        if wait is not NOTHING or signal is not NOTHING:
            with ordered(wait, signal):
                return self.write(data, region)
        if not self._is_init():
            self._require_init("be written")
        if region is not None:
            self._region(region).write(data)
            return
        array = counted(data, self._dtype, self._count, self._describe)
        if array.dtype != self._dtype:
            if array.nbytes >= _CONVERTED and self._write_numbers(array):
                self._report()
                return
            array = fitted(array, self._dtype, self._describe)
        elif not array.flags.c_contiguous:
            array = converted(array, self._dtype)
        self._native.write(array)
        if self._memory_type in SINGLE and not self._native.host_visible:
            # An image that was to have one memory, on a device that pads its rows: write the data to both
            # sides.
            np.copyto(self.data(), array.reshape(-1))
            self._native.note_match()
        self._report()

    def _write_numbers(self, array: np.ndarray[Any, Any]) -> bool:
        """Writes `array` with conversion and without a copy of it; False if that is not possible, or if a
        number does not fit.
        """
        return False

    def _region(self, region: Any) -> Memory:
        raise UnimplementedError(f"{self._describe()} can be read and written only as a whole")

    # -- one-shots -------------------------------------------------------------------------------------------

    def copy_from(
        self,
        source: Memory | ArrayLike,
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Copies the device's contents of `source`, a tensor or image of this size and dtype, here. Does not
        wait.

        If `source` belongs to another Manager, the call waits until the contents have left the source's
        device. The copy is ordered automatically after earlier work and before later work on both. If
        `source` is an array, it is copied before the call returns, as by `write`. `wait` and `signal` are as
        in `Sequence.eval_async`; where the call waits, the host does. Raises the errors of OpCopy, `write`
        and `Manager.submit`.
        """
        if not isinstance(source, Memory):
            if isinstance(source, ArrayHabits):  # a part that is not dense
                return source.copy_to(self, wait=wait, signal=signal)
            with ordered(wait, signal):
                self.write(source)
            return Fence.join()
        return submitted(
            copy_of(memory_list((source, self), "OpCopy", across=True)), self._manager, wait, signal
        )

    def copy_to(
        self,
        target: Memory | np.ndarray[Any, Any],
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Copies the device's contents to `target`, a tensor or image of this size and dtype. Does not wait.

        If `target` is an array of this shape, it is filled before the call returns, as by
        ``read(out=target)``. `wait` and `signal` are as in `copy_from`. Raises the errors of OpCopy, `read`
        and `Manager.submit`.
        """
        if not isinstance(target, Memory):
            if isinstance(target, ArrayHabits):
                return target.copy_from(self, wait=wait, signal=signal)
            if target is None:  # `read` would return a new array
                raise ArgumentTypeError(
                    f"{self._describe()}: copy_to() takes a Tensor, an Image or an array, not None"
                )
            with ordered(wait, signal):
                self.read(target)
            return Fence.join()
        return submitted(
            copy_of(memory_list((self, target), "OpCopy", across=True)), self._manager, wait, signal
        )

    def fill(
        self,
        value: Any = 0,
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Fills the device's memory with `value`: see `OpFill`. Does not wait. `wait` and `signal` are as in
        `copy_from`. Raises the errors of OpFill and `Manager.submit`.

        >>> x, image = mgr.zeros(3), mgr.image_empty((2, 3), "rgba8")
        >>> fences = x.fill(5.0), image.fill([255, 128, 0, 255])
        >>> x.tolist(), image.read()[1, 2].tolist()
        ([5.0, 5.0, 5.0], [255, 128, 0, 255])
        """
        return submitted(fill_of([self], value), self._manager, wait, signal)

    def _pattern(self, value: Any) -> bytes:
        """The bytes that OpFill repeats for `value`."""

        def what() -> str:
            return f"OpFill of {self._describe()}"

        if isinstance(value, (bytes, bytearray, memoryview)):
            try:
                pattern = bytes(value)
            except (ValueError, BufferError) as error:  # a released memoryview
                raise ArgumentTypeError(f"{what()}: the pattern has no bytes: {error}") from None
            if len(pattern) not in PATTERNS:
                raise InvalidArgumentError(
                    f"{what()}: the pattern has {len(pattern)} bytes; "
                    f"give {', '.join(map(str, PATTERNS))} bytes, or a scalar"
                )
            return pattern
        return element_bytes(value, self._dtype, what)

    @in_order
    def to(
        self: _Kind,
        manager: Device,
        memory_type: MemoryTypeLike | None = None,
        *,
        copy: bool = False,
        **options: Unpack[Ordering],
    ) -> _Kind:
        """Copies this object to another Manager: a new one of the same shape and dtype, with the device's
        contents.

        If `manager` is this object's own Manager and the memory type is the same, this object itself is
        returned, unless `copy` is True. By default, the new object has this one's memory type. Its host copy,
        if any, has the contents of this object's host copy; if this object has none, they are undefined until
        an OpSyncLocal, as with ``mgr.empty``. Waits for pending work on this object and until the contents
        have arrived. `wait` and `signal` are as in `read`.

        Raises ArgumentTypeError if `manager` is not a Manager, InvalidArgumentError for an unknown memory
        type, OutOfMemoryError, FailedPreconditionError if this object or a Manager is destroyed,
        DeviceLostError if a device fails.
        """
        self._require_init("be copied to another Manager")
        if not isinstance(manager, Device):
            raise ArgumentTypeError(
                f"to() takes a kp.Manager, not {shown(manager)}: t.to(kp.Manager(device)) copies to another "
                "device, t.read() to the host, and kp.ops.astype(t, dtype) converts"
            )
        copied = to_copy(copy, never=False)
        where = self._memory_type if memory_type is None else to_memory_type(memory_type, None, KEPT_BY_TO)
        if manager is self._manager and where is self._memory_type and not copied:
            return self
        native = self._native
        on_host = native.host_copy_made and self._memory_type is not MemoryTypes.storage
        made = self._like(manager, where)
        PeerCopies([self, made]).run(may_wait=True).wait()
        if on_host and where is DEVICE:
            same = native.freshness == "matches"
            np.copyto(made.data(), self.data())
            if same:
                made._native.note_match()
        elif where in SINGLE and not made._is_single():
            np.copyto(made.data(), made.read().reshape(-1))
            made._native.note_match()
        self._report()
        made._report()
        return made

    def _like(self: _Kind, manager: Device, where: MemoryTypes) -> _Kind:
        """A new object of the same kind on another Manager, with undefined contents."""
        raise UnimplementedError(f"{self._describe()} cannot be copied to other Managers")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For ``np.asarray(t)``: the device's contents after pending work, in this object's shape.

        `host` and `deviceAndHost` memory is returned as a view, unless a copy is requested. ``copy=False``
        raises InvalidArgumentError, a ValueError, if the array must be a copy: for the other memory types,
        and for another dtype.
        """
        self._require_init("be read")
        copy = to_copy(copy)
        try:
            wanted = self._dtype if dtype is None else np.dtype(dtype)
        except Exception as error:
            raise ArgumentTypeError(f"dtype is {shown(dtype)}, which is not a dtype: {error}") from None
        if copy is False and wanted != self._dtype:
            raise InvalidArgumentError(
                f"{self._describe()} cannot become {wanted} without a copy; use astype(...)"
            )
        if self._is_single() and copy is not True:
            self._native.wait()
            self._report()
            return self.numpy().astype(wanted, copy=False)
        if copy is False:
            raise InvalidArgumentError(
                f"{self._describe()} has its contents on the device: an array of them is always a copy; "
                "use read()"
            )
        made = self._read_for("an array of it", "t.read()")
        return made if dtype is None else made.astype(wanted, copy=False)

    def _is_single(self) -> bool:
        """True if the host and the device use the same memory. Images of devices that pad rows have two."""
        return self._memory_type in SINGLE and self._native.host_visible

    def _report(self) -> None:
        watch = self._manager._watch
        if watch is not None:
            watch()

    # -- what it is ------------------------------------------------------------------------------------------

    def size(self) -> int:
        """The number of elements over all dimensions; 0 once destroyed."""
        return self._count if self._is_init() else 0

    __len__ = size

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the data that the object was created from."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def dtype(self) -> np.dtype[Scalar]:
        """The NumPy dtype of the elements."""
        return self._dtype

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self._count * self._dtype.itemsize

    def memory_type(self) -> MemoryTypes:
        """The memory type."""
        return self._memory_type

    tensor_type = memory_type

    @property
    def memory_flags(self) -> tuple[str, ...]:
        """Which of "device_local", "host_visible", "host_coherent" and "host_cached" Vulkan states of the
        device's memory of it. A separate host copy is other memory.

        Raises FailedPreconditionError if it is destroyed.

        >>> "device_local" in mgr.zeros(4, memory_type="storage").memory_flags
        True
        """
        kind = self._manager._info["memory_types"][self._alive().vk_memory_type]
        return tuple(name for name, has in kind.items() if has is True)

    def data_type(self) -> DataTypes:
        """The name of the element type; `DataTypes.custom` for a structured dtype and raw bytes (see
        `dtype`).
        """
        return data_type_of(self._dtype)

    # -- life ------------------------------------------------------------------------------------------------

    def is_init(self) -> bool:
        """True while its memory exists: False after `destroy()` of this object or of its Manager."""
        return self._is_init()

    def freeze(self: _Kind) -> _Kind:
        """Makes the contents read-only for good and returns this object: ``w = mgr.tensor(x).freeze()``.

        Initial data is uploaded first. From then on, every write to the device's contents is refused with a
        FailedPreconditionError, also through views and by recordings that were made before: by kernels,
        functions, `write`, `fill`, copies, OpSyncDevice and mappings. Work that was submitted before still
        ends. Arrays from `data()` are read-only, and so is what DLPack and the buffer protocol give out. It
        can be read, copied and destroyed, and not donated. Raw Vulkan handles and shaders that follow
        buffer addresses are not checked.

        Raises FailedPreconditionError for memory that others could write: a view (freeze its `base`), what
        was imported or exported, `host` and `deviceAndHost` memory after arrays over it were given out, and
        while a mapping that writes is open.

        >>> t = mgr.tensor([1, 2]).freeze()
        >>> t.read_only, t[:1].read_only
        (True, True)
        """
        self._require_init("be frozen")
        native: Any = self._native
        if native.read_only:
            return self
        base = getattr(self, "base", None)
        if base is not None or self in seen_by_others:
            raise FailedPreconditionError(
                f"{self._describe()} cannot be frozen: "
                + (
                    "it is a view. Freeze the tensor that has the memory: t.base.freeze()"
                    if base is not None
                    else "its memory was imported or exported, so others could write it. Freeze a copy: "
                    "t.to(t.manager, copy=True).freeze()"
                )
            )
        native.freeze()
        view = self._view() if self._view is not None else None
        if view is not None:
            view.flags.writeable = False
        return self

    @property
    def read_only(self) -> bool:
        """True if nothing may write it: it is frozen (`freeze`), a view of something frozen, or was imported
        as immutable. Raises FailedPreconditionError if it is destroyed.
        """
        return bool(self._alive().read_only)

    def destroy(self) -> None:
        """Frees the memory. Can be called at any time and repeatedly.

        Running work that uses it finishes first; recorded sequences that use it raise when evaluated again.
        Arrays from `data()` stay readable.
        """
        ref, self._view = self._view, None
        if ref is not None and ref() is not None and self._is_init():
            self._host = self._native.keep_host()
        self._native.destroy()
        self._report()

    def __repr__(self) -> str:
        kind = type(self).__name__
        name = f" {self._native.name!r}" if self._native.name else ""
        where = self._memory_type.name
        text = f"<kp.{kind}{name} shape={self._shape} dtype={dtype_text(self._dtype)} {where}"
        if not self._is_init():
            taker = self._native.taker
            return f"{text} donated to {taker}>" if taker else f"{text} destroyed>"
        # Do not create a host copy only to show it.
        if self._memory_type is MemoryTypes.storage or not self._native.host_copy_made:
            return f"{text}>"
        first = np.array2string(self.data()[:_SHOWN], separator=", ", threshold=_SHOWN)
        if self._count > _SHOWN:
            first = f"{first[:-1]}, ...]"
        if not self._native.has_host_copy:
            return f"{text} {first}>"
        return f"{text}, host copy {first}{_FRESHNESS[self._native.freshness]}>"

    def show(self, **options: Any) -> Any:
        """Draws the contents with matplotlib, as ``kp.plot(t, **options)``, and returns the Axes.

        Raises the errors of `kp.plot`, such as FailedPreconditionError if matplotlib (the extra ``plot``) is
        missing.
        """
        from .._display.plots import plot

        return plot(self, **options)

    def _plotted(self) -> tuple[str, np.ndarray[Any, Any]]:
        """The name, and the contents: those of the device, after pending work, if that memory was written."""
        self._require_init("be shown")
        native = self._native
        read = native.on_device or self._memory_type is MemoryTypes.storage or not native.host_copy_made
        return native.name, self.read() if read else self.data().reshape(self._shape)

    def _repr_html_(self) -> str:
        """For notebooks: describes the object, with numbers and a picture of the newest contents: those of
        the device if work wrote them and is done, else those of the host copy. Waits for no work.
        """
        from .._display.cards import memory_card

        return memory_card(self)

    # -- raw Vulkan: these raise FailedPreconditionError if the object is destroyed --------------------------

    def _alive(self) -> Any:
        if not self._is_init():
            self._require_init("give Vulkan handles")
        return self._native

    def _exposed(self) -> Any:
        """The same, for handles of its memory."""
        native = self._alive()
        seen_by_others.add(self)
        return native

    @property
    def vk_memory(self) -> int:
        """The VkDeviceMemory that contains it, as an integer."""
        return self._exposed().vk_memory

    @property
    def vk_memory_offset(self) -> int:
        """The offset in `vk_memory`, in bytes."""
        return self._alive().vk_memory_offset


def _by_manager(manager: Device) -> str:
    if manager._native.foreign:
        return (
            ", for this process: it belongs to the parent process, and no other process can use its "
            "device (create a new Manager here)"
        )
    return "" if manager.is_init() else " with its Manager"


def memory_list(
    given: Any,
    call: str,
    *,
    manager: Device | None = None,
    one: bool = False,
    empty: bool = False,
    across: bool = False,
    also: tuple[type, ...] = (),
    takes: str = "Tensor or Image",
) -> list[Any]:
    """Checks `given`, tensors and images, and returns it as a list.

    `given` is any iterable except text, bytes, a dict and an array; a generator is consumed once. `call` is
    the name of the call and its argument, for errors. If `one` is True, a single object is accepted as a list
    of one; if `empty` is True, the list may be empty. All objects must belong to one Manager (`manager`, if
    given), unless `across` is True. `also` lists further classes that the call accepts; `takes` is the text
    for all accepted classes in errors.

    Raises ArgumentTypeError for anything else, InvalidArgumentError for an empty list or an object of another
    Manager, FailedPreconditionError for a destroyed object.
    """
    if (type(given) is list or type(given) is tuple) and (given or empty):
        # The common case, without the texts that only errors need.
        owner = manager
        for memory in given:
            if not isinstance(memory, Memory) or not memory._is_init():
                break
            if memory._manager is not owner and not across:
                if owner is not None:
                    break
                owner = memory._manager
        else:
            return list(given)
    if isinstance(given, (Memory, *also)):
        if not one:
            kind = type(given).__name__
            example = (
                call.replace("...", f"[{kind.lower()}]") if "=..." in call else f"{call}([{kind.lower()}])"
            )
            raise ArgumentTypeError(f"{call} takes a list of {takes}, not one {kind}: {example}")
        given = (given,)
    wanted = f"{'one or ' if one else ''}a list of {takes}"
    if isinstance(given, np.ndarray):
        raise ArgumentTypeError(
            f"{call} takes {wanted}, not an array: make a tensor of it, mgr.tensor_t(array)"
        )
    memories = as_list(given, call, wanted)
    if not memories and not empty:
        raise InvalidArgumentError(f"{call} takes {wanted}: the list is empty, and at least one is needed")
    kinds: Any = (Memory, *also) if also else Memory
    for position, memory in enumerate(memories):
        if not isinstance(memory, kinds):
            fix = ": make a tensor of it, mgr.tensor_t(array)" if isinstance(memory, np.ndarray) else ""
            if isinstance(memory, ArrayHabits):
                fix = ": it is not dense; make a tensor of it, mgr.tensor_t(view)"
            raise ArgumentTypeError(
                f"{call} takes {wanted}; {_element(call, position)} is "
                f"{shown(memory):.80}, {kind_of(memory)}{fix}"
            )
        if memory._manager is not manager and not across:
            if manager is not None:
                raise InvalidArgumentError(
                    f"{call}: {_element(call, position)} ({memory._describe()}) belongs to another "
                    f"Manager ({memory._manager!r}, not {manager!r}); make both with one Manager, "
                    "or copy it over with .to(mgr)"
                )
            manager = memory._manager
        if not memory._is_init():
            memory._require_init(f"be {_element(call, position)} of {call.partition('(')[0]}")
    return memories


def _element(call: str, position: int) -> str:
    """The name of an element in errors; uses the argument if `call` names one, as in
    "algorithm(tensors=...)".
    """
    argument = call.rpartition("(")[2].removesuffix("=...)")
    return f"element {position}" if argument == call else f"{argument}[{position}]"


def fill_of(memories: Iterable[Memory], value: Any) -> _native.Operation:
    """The native operation that fills tensors and images with `value`. Raises the errors of OpFill."""
    filled = memory_list(memories, "OpFill")
    patterns = [packed(value, each._dtype) or each._pattern(value) for each in filled]
    return _native.op_fill([each._native for each in filled], patterns)
