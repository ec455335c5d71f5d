"""Mapping: the host at work in a tensor's device memory, with no copy where the host addresses it."""

from __future__ import annotations

import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from .errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from .tensor import Tensor


class MappedArray(np.ndarray[Any, Any]):
    """An array over mapped memory, or a view of one: it ends with its mapping, and has no element then.

    Results of arithmetic are plain arrays. (A view that is cast to a plain ndarray outlives the mapping; the memory behind it
    stays, but what it holds is undefined.)
    """

    _mapping: weakref.ref[Mapping] | None = None
    _memory: Any = None

    def __array_finalize__(self, source: Any) -> None:
        # Copies and results have data of their own; only what looks at the mapped memory has to end with it.
        if source is None or self.flags.owndata:
            return
        reference = getattr(source, "_mapping", None)
        mapping = reference() if reference is not None else None
        if mapping is not None and mapping._begin <= self.ctypes.data < mapping._end:
            mapping._watch(self)

    def __array_wrap__(self, result: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if isinstance(result, MappedArray) and result._mapping is not None:
            return result  # an operation in place
        plain = np.asarray(result)
        return plain[()] if return_scalar or plain.ndim == 0 else plain

    def __reduce__(self) -> Any:
        return np.array(self, subok=False).__reduce__()

    def _end(self) -> None:
        """Makes it an array of no element. The memory stays for as long as it lives: others may look at it through it."""
        self._memory = self.base
        self._mapping = None
        np.ndarray.__setstate__(self, (1, (0,), self.dtype, False, b""))  # type: ignore[arg-type]


class Mapping:
    """A tensor's device memory as an array, until it is closed. Made by ``t.map(...)``; a context manager that gives the array.

    ::

        with t.map(write=True) as array:
            array[:] = 1
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_begin",
        "_end",
        "_native",
        "_staged",
        "_tensor",
        "_views",
        "_writes",
    )

    def __init__(self, tensor: Tensor, read: bool, write: bool, discard: bool, staging: bool) -> None:
        if not (read or write or discard):
            raise InvalidArgumentError(
                f"{tensor._describe()}: say what the mapping is for: map(read=True), map(write=True) or map(discard=True)"
            )
        tensor._require_init("be mapped")
        if not staging and not tensor.mappable:
            raise FailedPreconditionError(
                f"{tensor._describe()} is in memory that the host does not see: use memory type host or deviceAndHost, or "
                "map it with staging=True, which copies"
            )
        writes = write or discard
        self._views: dict[int, weakref.ref[MappedArray]] = {}
        self._tensor = tensor
        self._writes = writes
        self._staged: np.ndarray[Any, Any] | None = None
        native = _native.MappedMemory(tensor._native, not discard, writes)
        self._native: _native.MappedMemory | None = native
        try:
            flat = native.array(tensor._native, tensor._dtype, tensor._count)
            if flat is None:
                flat = self._staged = np.empty(tensor._count, tensor._dtype)
                if not discard:
                    native.read(flat)
            self._begin = flat.ctypes.data
            self._end = self._begin + flat.nbytes
            array = flat.reshape(tensor._shape).view(MappedArray)
        except BaseException:
            native.close()
            self._native = None
            raise
        array._mapping = weakref.ref(self)
        if not writes:
            array.flags.writeable = False
        self._watch(array)
        self._array: MappedArray | None = array
        tensor._report()

    def _watch(self, array: MappedArray) -> None:
        array._mapping = weakref.ref(self)
        key = id(array)
        views = self._views
        views[key] = weakref.ref(array, lambda _: views.pop(key, None))

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The memory in the tensor's shape and dtype; writable where the mapping writes. Raises FailedPreconditionError once closed."""
        if self._array is None:
            raise FailedPreconditionError(f"The mapping of {self._tensor._describe()} is closed")
        return self._array

    @property
    def valid(self) -> bool:
        """Whether it is open."""
        return self._native is not None

    def close(self) -> None:
        """Brings what was written to the device and ends the array and all its views. Again: nothing."""
        native, self._native = self._native, None
        if native is None:
            return
        self._array = None
        try:
            if self._staged is not None and self._writes and self._tensor._is_init():
                native.write(self._staged)
        finally:
            for view in list(self._views.values()):
                array = view()
                if array is not None:
                    array._end()
            self._views.clear()
            self._staged = None
            native.close()
        self._tensor._report()

    def __enter__(self) -> np.ndarray[Any, Any]:
        return self.array

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if getattr(self, "_native", None) is not None:
            warn(
                "A kp.Mapping was dropped while open: use it as a context manager, or close it",
                ResourceWarning,
                source=self,
            )
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self._native is None else "write" if self._writes else "read"
        return f"<kp.Mapping {state} of {self._tensor._describe()}>"
