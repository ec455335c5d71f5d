"""Mapping: host access to a tensor's device memory, without a copy if the host can address that memory."""

from __future__ import annotations

import sys
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import _native
from .._base.arrays import to_copy, to_flag
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    kind_of,
    not_copyable,
    shown,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .memory import Memory


class MappedArray(np.ndarray[Any, Any]):
    """An array over mapped memory, or a view of one. It ends with its mapping: it then has no elements, and
    using it raises.

    Results of arithmetic are plain arrays. (A view that is cast to a plain ndarray outlives the mapping. The
    memory behind it stays valid, but its contents are undefined.)
    """

    __module__ = "kompute_py"  # users see its name in errors

    _mapping: weakref.ref[Mapping] | None = None
    _memory: Any = None

    def __array_finalize__(self, source: Any) -> None:
        # Copies and results have their own data; only views of the mapped memory must end with it.
        if source is None or self.flags.owndata:
            return
        reference = getattr(source, "_mapping", None)
        mapping = reference() if reference is not None else None
        if mapping is not None and mapping._begin <= self.ctypes.data < mapping._end:
            mapping._watch(self)

    def __array_wrap__(self, result: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if isinstance(result, MappedArray) and result._mapping is not None:
            return result  # an in-place operation
        plain = np.asarray(result)
        return plain[()] if return_scalar or plain.ndim == 0 else plain

    def __reduce__(self) -> Any:
        return np.array(self, subok=False).__reduce__()

    def __buffer__(self, flags: int, /) -> memoryview:
        """The buffer protocol from Python 3.12 on.

        It is that of an array that does not end: when `__setstate__` changes an array, newer versions of
        NumPy free the format that they gave to its memoryviews.
        """
        plain: memoryview = self.view(np.ndarray).__buffer__(flags)  # type: ignore[attr-defined]
        return plain

    def _end(self) -> None:
        """Turns this into an array without elements.

        The memory lives as long as the array, because views may use it.
        """
        self._memory = self.base
        self._mapping = None
        np.ndarray.__setstate__(self, (1, (0,), self.dtype, False, b""))  # type: ignore[arg-type]
        self.__class__ = EndedArray


class EndedArray(MappedArray):
    """An array with an ended mapping.

    Without this class, sums and copies of it would be those of an empty array.
    """

    __module__ = "kompute_py"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise FailedPreconditionError(
            "The array belongs to a kp.Mapping that has ended (it was closed, or dropped): use it inside "
            "`with t.map(...) as array:`, and keep a copy, array.copy(), for later"
        )

    def __repr__(self) -> str:
        return f"<kp.MappedArray of {self.dtype}: its mapping has ended>"

    __str__ = __repr__

    __array_finalize__ = None  # type: ignore[assignment]
    __array_ufunc__ = __array_function__ = __array_wrap__ = _refuse  # type: ignore[assignment]
    __getitem__ = __setitem__ = __iter__ = __len__ = _refuse  # type: ignore[assignment]
    __bool__ = __contains__ = _refuse  # type: ignore[assignment]
    __int__ = __float__ = __complex__ = __index__ = _refuse  # type: ignore[assignment]
    __copy__ = __deepcopy__ = __reduce__ = _refuse  # type: ignore[assignment]
    astype = byteswap = choose = compress = copy = dot = dump = dumps = _refuse  # type: ignore[assignment]
    fill = flatten = item = nonzero = partition = put = ravel = repeat = _refuse  # type: ignore[assignment]
    reshape = resize = searchsorted = sort = argsort = sum = prod = mean = _refuse  # type: ignore[assignment]
    std = var = min = max = any = all = cumsum = cumprod = clip = round = _refuse  # type: ignore[assignment]
    argmax = argmin = trace = diagonal = conj = conjugate = squeeze = swapaxes = take = tobytes = tofile = (
        tolist
    ) = transpose = view = _refuse  # type: ignore[assignment]


def _follows_a_call(frame: Any) -> bool:
    """True if the frame is loading an attribute of the value just returned to it, as in
    ``t.map(read=True).array``.
    """
    from opcode import opname

    code, at = frame.f_code.co_code, frame.f_lasti
    if not opname[code[at]].startswith("LOAD_ATTR"):
        return False
    at -= 2
    while at >= 0 and (code[at] == 0 or opname[code[at]] == "EXTENDED_ARG"):  # 0: space for caches
        at -= 2
    return at >= 0 and opname[code[at]].startswith("CALL")


class _ArrayOf:
    """The attribute `array` of a Mapping.

    A data descriptor, because Python never inlines calls of it: reference counts are then the same for each
    access.
    """

    __doc__ = """The memory in the tensor's shape and dtype; writable if the mapping writes.

    The array ends with the mapping, so keep a reference to the mapping.

    Raises FailedPreconditionError if the mapping is closed, and for ``t.map(...).array``: without a name, the
    mapping would end with the expression.
    """

    def __get__(self, mapping: Mapping, owner: Any = None) -> np.ndarray[Any, Any]:
        if mapping is None:
            return self  # type: ignore[unreachable]
        if self.references(mapping) <= _ALONE and _follows_a_call(sys._getframe(1)):
            mapping.close()
            raise FailedPreconditionError(
                f"{mapping._tensor._describe()}: in t.map(...).array the mapping ends with the expression, "
                "and the array ends with the mapping. Use `with t.map(...) as array:`, "
                "or keep the mapping and close it: mapping = t.map(...)"
            )
        return mapping._open()

    def __set__(self, mapping: Mapping, value: Any) -> None:
        raise AttributeError("The array of a kp.Mapping cannot be replaced: write into it, array[:] = ...")

    @staticmethod
    def references(mapping: Any) -> int:
        """The number of references to `mapping`, including this call's."""
        return sys.getrefcount(mapping)


class _Counted:
    class _Count(_ArrayOf):
        def __get__(self, mapping: Any, owner: Any = None) -> Any:
            return self.references(mapping)

    array = _Count()


_ALONE: int = _Counted().array if hasattr(sys, "getrefcount") else -1
"""The result of `_ArrayOf.references` for a mapping without other references."""


@not_copyable("copy its array: mapping.array.copy()")
class Mapping:
    """A tensor's device memory as an array, until it is closed. Created by ``t.map(...)``.

    Use it as a context manager, which returns the array::

        with t.map(write=True) as array:
            array[:] = 1

    Raises the errors of `Tensor.map`.

    >>> t = mgr.zeros(3)
    >>> mapping = t.map(read=True)
    >>> mapping.array.tolist(), mapping.valid
    ([0.0, 0.0, 0.0], True)
    >>> mapping.close()
    """

    __module__ = "kompute_py"  # public; imported when first used

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

    def __init__(self, tensor: Memory, read: bool, write: bool, discard: bool, staging: bool) -> None:
        if isinstance(tensor, type) or not hasattr(tensor, "_part"):
            raise ArgumentTypeError(f"Mapping takes a Tensor, not {kind_of(tensor)}")
        read, write, discard, staging = (
            to_flag(value, name)
            for value, name in ((read, "read"), (write, "write"), (discard, "discard"), (staging, "staging"))
        )
        if not (read or write or discard):
            raise InvalidArgumentError(
                f"{tensor._describe()}: missing the purpose of the mapping: give map(read=True), "
                "map(write=True) or map(discard=True)"
            )
        tensor._require_init("be mapped")
        if not staging and not tensor._native.host_visible:
            raise FailedPreconditionError(
                f"{tensor._describe()} is in memory that the host does not see: use memory type host or "
                "deviceAndHost, or map it with staging=True, which copies"
            )
        # Reading memory that the CPU does not cache takes a trip over the bus for each word, so a copy is
        # read instead.
        in_place = not (read and tensor._native.slow_to_read)
        if not staging and not in_place:
            raise FailedPreconditionError(
                f"{tensor._describe()} is in device memory that the host reads a word at a time (not "
                "cached): map it only to write, use memory type host, or map it with staging=True, "
                "which copies"
            )
        writes = write or discard
        self._views: dict[int, weakref.ref[MappedArray]] = {}
        self._tensor = tensor
        self._writes = writes
        self._staged: np.ndarray[Any, Any] | None = None
        native = _native.MappedMemory(tensor._native, not discard, writes, in_place)
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

    array: _ArrayOf = _ArrayOf()

    def _open(self) -> np.ndarray[Any, Any]:
        if self._array is None:
            raise FailedPreconditionError(f"The mapping of {self._tensor._describe()} is closed")
        return self._array

    @property
    def valid(self) -> bool:
        """True if the mapping is open."""
        return self._native is not None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For ``np.array(mapping)``: a copy of the memory, which outlives the mapping.

        Raises ValueError for ``copy=False``.
        """
        if to_copy(copy) is False:
            raise ValueError(
                f"{self._tensor._describe()}: an array that outlives its mapping must be a copy; "
                "use the mapping's own array, mapping.array"
            )
        try:
            wanted = None if dtype is None else np.dtype(dtype)
        except Exception as error:
            raise ArgumentTypeError(f"dtype is {shown(dtype)}, which is not a dtype: {error}") from None
        return np.array(self._open(), dtype=wanted)

    def close(self) -> None:
        """Copies written data to the device and ends the array and all its views.

        Closing again does nothing.

        Raises DeviceLostError if the device fails while written data is copied to it.
        """
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
        return self._open()

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
