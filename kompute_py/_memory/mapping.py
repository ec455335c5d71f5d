"""Mapping: the host at work in a tensor's device memory, with no copy where the host addresses it."""

from __future__ import annotations

import sys
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import _native
from .._base.arrays import to_flag
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    not_copyable,
    shown,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .tensor import Tensor


class MappedArray(np.ndarray[Any, Any]):
    """An array over mapped memory, or a view of one: it ends with its mapping. It has no element then, and using it raises.

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
        self.__class__ = EndedArray


class EndedArray(MappedArray):
    """An array whose mapping has ended. Without this, sums and copies of it would be those of an empty array."""

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
    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __contains__ = _refuse  # type: ignore[assignment]
    __int__ = __float__ = __complex__ = __index__ = __copy__ = __deepcopy__ = __reduce__ = _refuse  # type: ignore[assignment]
    astype = byteswap = choose = compress = copy = dot = dump = dumps = fill = flatten = item = _refuse  # type: ignore[assignment]
    nonzero = partition = put = ravel = repeat = reshape = resize = searchsorted = sort = argsort = _refuse  # type: ignore[assignment]
    sum = prod = mean = std = var = min = max = any = all = cumsum = cumprod = clip = round = _refuse  # type: ignore[assignment]
    argmax = argmin = trace = diagonal = conj = conjugate = squeeze = swapaxes = take = tobytes = tofile = (
        tolist
    ) = transpose = view = _refuse  # type: ignore[assignment]


def _follows_a_call(frame: Any) -> bool:
    """Whether the frame is loading an attribute of what it has just been returned, as in ``t.map(read=True).array``."""
    from opcode import opname

    code, at = frame.f_code.co_code, frame.f_lasti
    if not opname[code[at]].startswith("LOAD_ATTR"):
        return False
    at -= 2
    while at >= 0 and (code[at] == 0 or opname[code[at]] == "EXTENDED_ARG"):  # 0: the room of caches
        at -= 2
    return at >= 0 and opname[code[at]].startswith("CALL")


class _ArrayOf:
    """The attribute `array` of a Mapping. A data descriptor, whose calls Python never inlines: counts of references are the same
    for each access then.
    """

    __doc__ = """The memory in the tensor's shape and dtype; writable if the mapping writes. It ends with the mapping, so keep that.

    Raises FailedPreconditionError once closed, and for ``t.map(...).array``, with no name for the mapping, which would end with
    the expression.
    """

    def __get__(self, mapping: Mapping, owner: Any = None) -> np.ndarray[Any, Any]:
        if mapping is None:
            return self  # type: ignore[unreachable]
        if self.references(mapping) <= _ALONE and _follows_a_call(sys._getframe(1)):
            mapping.close()
            raise FailedPreconditionError(
                f"{mapping._tensor._describe()}: in t.map(...).array the mapping ends with the expression, and the array with it. Use "
                "`with t.map(...) as array:`, or keep the mapping and close it: mapping = t.map(...)"
            )
        return mapping._open()

    def __set__(self, mapping: Mapping, value: Any) -> None:
        raise AttributeError("The array of a kp.Mapping cannot be replaced: write into it, array[:] = ...")

    @staticmethod
    def references(mapping: Any) -> int:
        """How often `mapping` is referred to, by this call too."""
        return sys.getrefcount(mapping)


class _Counted:
    class _Count(_ArrayOf):
        def __get__(self, mapping: Any, owner: Any = None) -> Any:
            return self.references(mapping)

    array = _Count()


_ALONE: int = _Counted().array if hasattr(sys, "getrefcount") else -1
"""What `_ArrayOf.references` gives for a mapping that nothing else refers to."""


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
        if isinstance(tensor, type) or not hasattr(tensor, "_part"):
            raise ArgumentTypeError(f"A Mapping is of a Tensor, not of a {type(tensor).__name__}")
        read, write, discard, staging = (
            to_flag(value, name)
            for value, name in ((read, "read"), (write, "write"), (discard, "discard"), (staging, "staging"))
        )
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
        # Reading memory that the CPU does not cache takes a trip over the bus for each word: such a mapping reads a copy.
        in_place = not (read and tensor._native.slow_to_read)
        if not staging and not in_place:
            raise FailedPreconditionError(
                f"{tensor._describe()} is in device memory that the host reads a word at a time (not cached): map it to "
                "write alone, use memory type host, or map it with staging=True, which copies"
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

    array = _ArrayOf()

    def _open(self) -> np.ndarray[Any, Any]:
        if self._array is None:
            raise FailedPreconditionError(f"The mapping of {self._tensor._describe()} is closed")
        return self._array

    @property
    def valid(self) -> bool:
        """Whether it is open."""
        return self._native is not None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For ``np.array(mapping)``: a copy of the memory, which outlives the mapping. Raises ValueError for ``copy=False``."""
        if copy is False:
            raise ValueError(
                f"{self._tensor._describe()}: an array that outlives its mapping is a copy; use the mapping's own, mapping.array"
            )
        try:
            wanted = None if dtype is None else np.dtype(dtype)
        except Exception as error:
            raise ArgumentTypeError(f"dtype is {shown(dtype)}, which is no dtype: {error}") from None
        return np.array(self._open(), dtype=wanted)

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

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError) that says what to do instead."""
        raise not_copyable(self, "copy its array: mapping.array.copy()")

    def __repr__(self) -> str:
        state = "closed" if self._native is None else "write" if self._writes else "read"
        return f"<kp.Mapping {state} of {self._tensor._describe()}>"
