"""StridedView: a part of a tensor whose elements do not follow each other in memory."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_out, matching, spread, to_copy
from .._base.errors import ArgumentTypeError, InvalidArgumentError, not_copyable, shown
from .._base.types import dtype_text
from .._sync.fence import Fence
from .._sync.ordered import in_order, ordered
from .array_habits import ArrayHabits, OnlyOfArrays
from .regions import field_of, is_advanced, locate, runs_of, transposed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from typing_extensions import Unpack

    from .._base.annotations import MemoryTypeLike
    from .._device.device import Device
    from .._device.owner import Manager
    from .._sync.semaphore import Ordering, Signals, Waits
    from .memory import Memory
    from .tensor import Tensor


def _ops() -> Any:
    """`kp.ops`: its room lies above this one, so the package is asked."""
    return sys.modules[__name__.partition(".")[0]].ops


def indexing() -> Any:
    """The module of `kp.ops` that indexes tensors with arrays."""
    return _ops()._indexing()


@not_copyable("keep view.read(), a NumPy array")
class StridedView(ArrayHabits):
    """A view of a part of a tensor that is not dense: ``t[:, 0]``, ``t[::2]``, ``t[::-1]``, ``t.T``.

    It shares the tensor's memory and transfers nothing until it is read or written. `read`, ``np.asarray``,
    `tolist` and `astype` give the device's contents after pending work. `write`, `fill` and ``view[key] =
    value`` write there. Only the bytes of the part are moved. It can be indexed further; a dense part of it
    is a Tensor.

    Shaders take dense memory, so it cannot be bound: ``t[:, 0].to(mgr)`` makes a Tensor with a copy. A
    kernel that only reads an argument also takes the view, as it takes an array: the part is copied in. The
    operations of `kp.ops`, and custom ones, take it as an argument and as ``out=``.

    Only indexing and ``t.T`` make one: calling the class raises ArgumentTypeError.

    >>> t = mgr.tensor([[1, 2], [3, 4]])
    >>> t[:, 0].read()
    array([1., 3.], dtype=float32)
    >>> t[:, 0] = 5
    >>> t.tolist()
    [[5.0, 2.0], [5.0, 4.0]]
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = ("__weakref__", "_base", "_count", "_first", "_shape", "_strides")

    if not TYPE_CHECKING:  # Pillow asks for it: the error names `read`
        __array_interface__ = OnlyOfArrays("__array_interface__")

    def __init__(self, base: Tensor, first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        whole = [first, *shape, *strides] if isinstance(shape, tuple) and isinstance(strides, tuple) else [()]
        if not hasattr(base, "_native") or not all(type(each) is int for each in whole):
            raise ArgumentTypeError("A StridedView is made by indexing a tensor: t[:, 0]")
        self._base = base
        self._first = first  # the number of the first element in the tensor
        self._shape = shape
        self._strides = strides  # in elements
        self._count = math.prod(shape)

    def _describe(self) -> str:
        return f"StridedView of shape {self._shape} of {self._base._describe()}"

    def _require_init(self, action: str) -> None:
        self._base._require_init(action)

    @property
    def _manager(self) -> Device:
        return self._base._manager

    def _is_single(self) -> bool:
        return self._base._is_single()

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def base(self) -> Tensor:
        """The tensor whose memory this shows, however many views are between, as in NumPy."""
        root = self._base.base
        return self._base if root is None else root

    @property
    def manager(self) -> Manager:
        """The Manager of the tensor."""
        return self._base.manager

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next on each axis, as in NumPy."""
        return tuple(stride * self._base._dtype.itemsize for stride in self._strides)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self._base._dtype

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self._base._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of its elements in bytes, without those between them."""
        return self._count * self._base._dtype.itemsize

    @property
    def T(self) -> Tensor | StridedView:
        """The view with its axes in the reverse order, as in NumPy: a Tensor if that is dense."""
        self._require_init("be viewed")
        located = transposed(self._shape, self._first, self._strides)
        view: Tensor | StridedView = self._base._at(*located)
        return view

    def size(self) -> int:
        """The number of elements over all axes; 0 if the tensor is destroyed."""
        return self._count if self._base.is_init() else 0

    __len__ = size

    def is_init(self) -> bool:
        """True while the tensor's memory exists."""
        return self._base.is_init()

    # -- the device's contents -------------------------------------------------------------------------------

    @in_order
    def read(
        self, out: np.ndarray[Any, Any] | None = None, region: Any = None, **options: Unpack[Ordering]
    ) -> np.ndarray[Any, Any]:
        """Waits for pending work that writes the tensor and copies the part's contents to `out` or a new
        array of this shape and dtype.

        `region` is an index as in ``view[region]``. Raises the errors of ``Tensor.read``.
        """
        self._require_init("be read")
        if region is not None:
            return self._basic(region).read(out)
        base = self._base
        if out is not None:
            out = check_out(out, base._dtype, self._shape, self._describe)
        runs = runs_of(self._first, self._shape, self._strides, base._dtype.itemsize)
        made = np.empty([self._shape[axis] for axis in runs.order], base._dtype)
        base._native.read_runs(made, runs.offset, runs.length, runs.axes)
        base._report()
        if out is None:
            return np.ascontiguousarray(runs.unsorted(made)).reshape(self._shape)
        out[...] = runs.unsorted(made)
        return out

    @in_order
    def write(self, data: ArrayLike, region: Any = None, **options: Unpack[Ordering]) -> None:
        """Waits for pending work on the tensor, then copies `data` to the part on the device.

        `data` has `size()` elements and any shape. `region` is an index as in ``view[region]``. The elements
        between the part's are not touched. Raises the errors of ``Tensor.write``.
        """
        self._require_init("be written")
        if region is not None:
            self._basic(region).write(data)
            return
        array = matching(data, self.dtype, self._count, self._describe).reshape(self._shape)
        self._store(array)

    def fill(
        self,
        value: Any = 0,
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Writes one `value` to all elements, like ``view[...] = value``, between `wait` and `signal` (see
        `Sequence.eval_async`). Returns a Fence that has ended.
        """
        with ordered(wait, signal):
            self._assign(value)
        return Fence.join()

    def _assign(self, value: Any) -> None:
        self._require_init("be written")
        self._store(spread(value, self.dtype, self._shape, self._describe))

    def _require_apart(self) -> None:
        """Refuses writes to elements that share memory, as overlapping windows do. Others lie apart: the step
        of each axis is longer than all within the step.
        """
        within = 0
        for step, length in sorted(zip(map(abs, self._strides), self._shape, strict=True)):
            if length > 1 and step <= within:
                raise InvalidArgumentError(
                    f"{self._describe()} cannot be written: some elements, {self.strides} bytes apart, "
                    "are the same memory. Write to its base, or to parts that do not overlap"
                )
            within += step * (length - 1)

    def _store(self, array: np.ndarray[Any, Any]) -> None:
        self._require_apart()
        base = self._base
        runs = runs_of(self._first, self._shape, self._strides, base._dtype.itemsize)
        base._native.write_runs(np.ascontiguousarray(runs.sorted(array)), runs.offset, runs.length, runs.axes)
        base._report()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For ``np.asarray(view)``: the device's contents after pending work. The rules are ``Tensor``'s:
        `host` and `deviceAndHost` memory is returned as a view, and ``copy=False`` raises
        InvalidArgumentError, a ValueError, if the array must be a copy.
        """
        base = self._base
        self._require_init("be read")
        copy = to_copy(copy)
        try:
            wanted = base._dtype if dtype is None else np.dtype(dtype)
        except Exception as error:
            raise ArgumentTypeError(f"dtype is {shown(dtype)}, which is not a dtype: {error}") from None
        if copy is False and (wanted != base._dtype or not self._is_single()):
            raise InvalidArgumentError(
                f"{self._describe()} cannot become an array of {wanted} without a copy; use read()"
            )
        if self._is_single() and copy is not True:
            base._native.wait()
            base._report()
            return self.numpy().astype(wanted, copy=False)
        return self._read_for("an array of it", "t.read()").astype(wanted, copy=False)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The part of the tensor's host copy, as a strided view. Does not wait or transfer.

        Warns and raises as ``Tensor.numpy()`` does.
        """
        kept = self._base.data()[self._first :]
        self._base._warn_of_age()
        return np.lib.stride_tricks.as_strided(kept, self._shape, self.strides)

    # -- copies on the device --------------------------------------------------------------------------------

    @in_order
    def to(
        self,
        manager: Device,
        memory_type: MemoryTypeLike | None = None,
        *,
        copy: bool = False,
        **options: Unpack[Ordering],
    ) -> Tensor:
        """A Tensor of `manager` with a copy of the part, in memory of the tensor's type or of `memory_type`.

        A part is not dense, so it is always copied. Raises the errors of ``Tensor.to``.
        """
        to_copy(copy, never=False)
        self._require_init("be copied to another Manager")
        dense: Tensor = _ops().ascontiguousarray(self).reshape(self._shape)
        return dense.to(manager, self._base.memory_type() if memory_type is None else memory_type)

    def copy_from(
        self,
        source: Memory | StridedView | ArrayLike,
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Copies `source`, of this size and dtype, to the part, between `wait` and `signal` (see
        `Sequence.eval_async`). Returns a Fence that has ended. Raises the errors of ``Tensor.copy_from``.

        >>> t = mgr.zeros((2, 2))
        >>> t[:, 0].copy_from(mgr.tensor([1, 2]))
        <kp.Fence done>
        >>> t.tolist()
        [[1.0, 0.0], [2.0, 0.0]]
        """
        self._require_init("be written")
        with ordered(wait, signal):
            if not isinstance(source, ArrayHabits):
                self.write(source)
                return Fence.join()
            if source.dtype != self.dtype or source.size() != self._count:
                raise InvalidArgumentError(
                    f"{source._describe()} cannot be copied to {self._describe()}: give as many elements of "
                    "this dtype; kp.ops.astype converts"
                )
            made = source if source.manager is self.manager else source.to(self.manager)
            if made.shape != self._shape:
                made = _ops().ascontiguousarray(made).reshape(self._shape)
            _ops().ascontiguousarray(made, out=self)
        return Fence.join()

    def copy_to(
        self,
        target: Memory | StridedView | np.ndarray[Any, Any],
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Copies the part to `target`, of this size and dtype, between `wait` and `signal`. Returns a Fence
        that has ended. Raises the errors of ``Tensor.copy_to``.
        """
        self._require_init("be read")
        with ordered(wait, signal):
            if isinstance(target, ArrayHabits):
                target.copy_from(self.to(self.manager)).wait()
            elif target is None:  # `read` would return a new array
                raise ArgumentTypeError(
                    f"{self._describe()}: copy_to() takes a Tensor, an Image or an array, not None"
                )
            else:
                self.read(target)
        return Fence.join()

    # -- parts -----------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """A view of the part at `key`: a Tensor if it is dense, else a StridedView; with arrays or masks in
        `key` a Tensor with a copy. `key` and the errors are as for ``Tensor``.
        """
        self._require_init("be viewed")
        return indexing().pick(self, key) if is_advanced(key) else self._basic(key)

    def _basic(self, key: Any) -> Any:
        """The view at an index of ints and slices, or of a field."""
        if isinstance(key, str) and self.dtype.names:
            field = field_of(self.dtype, key, self._describe)
            return self._base._field(field, self._shape, self._first, self._strides)
        first, shape, strides = locate(self._shape, key, self._describe, self._strides)
        return self._base._at(self._first + first if math.prod(shape) else 0, shape, strides)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes `value` to the part at `key`, as ``Tensor`` does."""
        advanced = is_advanced(key)
        self._before_assigned(value, advanced)
        if advanced:
            self._require_init("be written")
            indexing().place(self, key, value)
        else:
            self[key]._assign(value)

    def __repr__(self) -> str:
        state = "" if self._base.is_init() else " destroyed"
        return (
            f"<kp.StridedView shape={self._shape} strides={self.strides} dtype={dtype_text(self.dtype)}"
            f"{state} of a Tensor of shape {self.base._shape}>"
        )
