"""Enumerations of memory types and element types, with Kompute's names and numbers."""

from __future__ import annotations

import operator
from enum import Enum, IntEnum, IntFlag
from typing import Any

import numpy as np

from .errors import ArgumentTypeError, InvalidArgumentError, UnavailableError, kind_of, shown

__all__ = [
    "DataTypes",
    "MemoryTypes",
    "SemaphoreCompatibility",
    "TensorDataTypes",
    "TensorTypes",
    "data_type_of",
    "to_memory_type",
]


def dtype_text(dtype: np.dtype[Any]) -> str:
    """``str(dtype)``, which also works at interpreter exit, when NumPy cannot import the module it needs."""
    found = _TEXTS.get(dtype)
    if found is not None:
        return found
    try:
        return str(dtype)
    except ImportError:
        return dtype.type.__name__


class DeviceMemoryObject:
    """Marks tensors and images for code without access to their classes, such as the packing of pointers."""

    __slots__ = ()

    _is_image: bool

    def _describe(self) -> str:
        raise NotImplementedError


class _Enumeration(IntEnum):
    # Prints as pybind11's enumerations do in Kompute: "MemoryTypes.device". IntEnum prints this or the bare
    # number, depending on the Python version.
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class MemoryTypes(_Enumeration):
    """The location of a Tensor's or Image's memory.

    `device`: device memory and a host copy; OpSyncDevice and OpSyncLocal copy between them. `host`: only
    host-visible memory. `storage`: only device memory. `deviceAndHost`: one memory that both access. On GPUs
    with host-visible memory that is not cached, its ``data()`` is fast to write and slow to read: read it
    with ``t.read()`` or ``t.map(read=True)``.

    >>> print(mgr.zeros(3, memory_type="host").memory_type())
    MemoryTypes.host
    """

    device = 0
    host = 1
    storage = 2
    deviceAndHost = 3


class _Element(_Enumeration):
    # Apart from DataTypes: its members shadow the built-ins of these names inside its body.
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype; `np.dtype` asks for it, so that a member is taken wherever a dtype is.

        Raises ArgumentTypeError for `custom` (only a dtype tells its bytes), UnavailableError for a small
        float without the package ml_dtypes.
        """
        if self.name == "custom":
            raise ArgumentTypeError(
                "DataTypes.custom is any structured dtype or raw bytes; give a NumPy dtype"
            )
        found = next((each for each, member in _OF_DTYPE.items() if member is self), None)
        if found is not None:
            return found
        try:
            import ml_dtypes
        except ImportError:
            raise UnavailableError(f"{self} needs the package ml_dtypes: pip install ml_dtypes") from None
        return np.dtype(getattr(ml_dtypes, self.name))

    @property
    def itemsize(self) -> int:
        """Bytes of one element. Raises as `dtype` does."""
        return self.dtype.itemsize

    @property
    def bits(self) -> int:
        """Bits of one element, which devices store: 8 for a bool. Raises as `dtype` does."""
        return 8 * self.itemsize


class DataTypes(_Element):
    """The element types. Numbers 0 to 9 are Kompute's. `custom` is a structured dtype or raw bytes.

    `bfloat16` and the float8 types are dtypes of the optional package ml_dtypes. A member is taken wherever a
    dtype is.

    >>> print(mgr.zeros(3, np.uint32).data_type())
    DataTypes.uint
    >>> mgr.zeros(3, kp.DataTypes.half).dtype, kp.DataTypes.double.itemsize
    (dtype('float16'), 8)
    """

    # The members shadow the built-ins inside this class body, so the body cannot use those.
    bool = 0
    int = 1
    uint = 2
    float = 3
    double = 4
    custom = 5
    short = 6
    ushort = 7
    char = 8
    uchar = 9
    half = 10
    long = 11
    ulong = 12
    bfloat16 = 13
    complex64 = 14
    complex128 = 15
    # One byte each, with ml_dtypes' names.
    float8_e3m4 = 16
    float8_e4m3 = 17
    float8_e4m3b11fnuz = 18
    float8_e4m3fn = 19
    float8_e4m3fnuz = 20
    float8_e5m2 = 21
    float8_e5m2fnuz = 22
    float8_e8m0fnu = 23


class SemaphoreCompatibility(IntFlag):
    """The sides that can wait for a semaphore's values and signal them: the host, submissions, or both.

    >>> mgr.semaphore().compatibility is kp.SemaphoreCompatibility.ALL
    True
    """

    NONE = 0
    HOST_WAIT = 1
    DEVICE_WAIT = 2
    HOST_SIGNAL = 4
    DEVICE_SIGNAL = 8
    HOST_ONLY = 5
    DEVICE_ONLY = 10
    ALL = 15


TensorTypes = MemoryTypes
TensorDataTypes = DataTypes

# Compared by identity in the hot paths, because an enumeration's own hash and .value are Python functions.
DEVICE: MemoryTypes = MemoryTypes.device
_MEMORY_TYPES = {name.lower(): member for name, member in MemoryTypes.__members__.items()}
_KNOWN_MEMORY_TYPES = ", ".join(MemoryTypes.__members__)

# Keys are kind and item size, so that NumPy's several names of one type share an entry.
_DATA_TYPES: dict[str, DataTypes] = {
    "b1": DataTypes.bool,
    "i1": DataTypes.char,
    "u1": DataTypes.uchar,
    "i2": DataTypes.short,
    "u2": DataTypes.ushort,
    "i4": DataTypes.int,
    "u4": DataTypes.uint,
    "i8": DataTypes.long,
    "u8": DataTypes.ulong,
    "f2": DataTypes.half,
    "f4": DataTypes.float,
    "f8": DataTypes.double,
    "c8": DataTypes.complex64,
    "c16": DataTypes.complex128,
}
# The same by dtype, in the host's byte order. NumPy computes the kind, the name and the text of a dtype in
# Python each time.
_OF_DTYPE: dict[np.dtype[Any], DataTypes] = {np.dtype(code): member for code, member in _DATA_TYPES.items()}
_TEXTS: dict[np.dtype[Any], str] = {dtype: str(dtype) for dtype in _OF_DTYPE}
NUMBERS = tuple(_OF_DTYPE)
"""NumPy's dtypes that devices have, in the host's byte order."""
# NumPy's own dtypes have smaller numbers than those of other packages.
_FIRST_OF_OTHERS = 256


# float4 and float6 types and integers below 8 bits take a byte each in NumPy and less on devices: refused.
_SMALL_FLOATS: frozenset[str] = frozenset(
    n for n in DataTypes.__members__ if n == "bfloat16" or n.startswith("float8_")
)


def dtype_code(value: Any) -> str | None:
    """Code for the NumPy dtype that `value` means: "np.int32" for np.int32, "int32" and DataTypes.int.

    None if `value` does not mean a dtype that devices support.
    """
    if isinstance(value, DataTypes):
        value = next((code for code, member in _DATA_TYPES.items() if member is value), value.name)
    if not isinstance(value, (np.dtype, type, str)):
        return None
    try:
        made = np.dtype(value)
        data_type_of(made)
    except Exception:  # a class may have a broken attribute `dtype`
        return None
    if made.kind == "b":
        return "np.bool_"
    if is_small_float(made):
        return f"ml_dtypes.{made.name}"
    return "dtype" if made.kind == "V" else f"np.{made.name}"


def to_memory_type(value: Any, older: Any = None, instead: str = "") -> MemoryTypes:
    """The MemoryTypes member for a member, its name in any case, or its number; None means `device`.

    `older` is the value of the older keyword `tensor_type`. Raises InvalidArgumentError for an unknown name
    or number or if both keywords are given, and ArgumentTypeError for another type. If `value` is a dtype,
    the error says so and ends with `instead`, with DTYPE replaced by it.
    """
    if older is not None:
        if value is not None:
            raise InvalidArgumentError(
                "tensor_type= is the older name of memory_type=: give one of them, not both"
            )
        value = older
    if value is None:
        return DEVICE
    if isinstance(value, MemoryTypes):
        return value
    if isinstance(value, str):
        found = _MEMORY_TYPES.get(value.lower())
        if found is not None:
            return found
        if (code := dtype_code(value)) is not None:
            raise _is_a_dtype(value, code, instead)
        raise InvalidArgumentError(f"There is no memory type {shown(value)}; known: {_KNOWN_MEMORY_TYPES}")
    # Integers by type, but not by meaning: memory_type(True), memory_type(DataTypes.float).
    if not isinstance(value, (bool, Enum)):
        try:
            number = operator.index(value)
        except Exception:  # from the object's own __index__
            pass
        else:
            try:
                return MemoryTypes(number)
            except ValueError:
                raise InvalidArgumentError(
                    f"There is no memory type {shown(number)}; known: {_KNOWN_MEMORY_TYPES}"
                ) from None
    if (code := dtype_code(value)) is not None:
        raise _is_a_dtype(value, code, instead)
    what = str(value) if isinstance(value, Enum) else f"{kind_of(value)}"
    raise ArgumentTypeError(
        f"The memory type is {what}; use a member of kp.MemoryTypes ({_KNOWN_MEMORY_TYPES}) or its name"
    )


def _is_a_dtype(value: Any, code: str, instead: str) -> ArgumentTypeError:
    shown = repr(value) if isinstance(value, str) else str(value) if isinstance(value, Enum) else code
    return ArgumentTypeError(
        f"The memory type is {shown}, a dtype, and not a member of kp.MemoryTypes"
        f"{instead and '. '}{instead.replace('DTYPE', code)}"
    )


def data_type_of(dtype: np.dtype[Any]) -> DataTypes:
    """The DataTypes of a NumPy dtype; `custom` for structured dtypes and other raw bytes.

    Raises ArgumentTypeError, naming the dtype and the field, if devices have no such element: objects, text,
    dates, long double, numbers of less than a byte.
    """
    found = _OF_DTYPE.get(dtype)
    if found is not None:
        return found
    small = is_small_float(dtype)
    found = DataTypes[dtype.name] if small else _DATA_TYPES.get(f"{dtype.kind}{dtype.itemsize}")
    if found is not None:
        return found
    if dtype.names is not None and dtype.itemsize > 0 and not dtype.hasobject:
        for name in dtype.names:
            _check_field(dtype, name)
        return DataTypes.custom
    if dtype.type is np.void and dtype.itemsize > 0 and dtype.names is None:
        return DataTypes.custom  # raw bytes; the shader decides their meaning
    raise ArgumentTypeError(f"The dtype {dtype} is not supported on a device; {_fix(dtype)}")


def _check_field(dtype: np.dtype[Any], name: str) -> None:
    try:
        data_type_of(dtype[name].base)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"Field {name!r} of a structured dtype: {error}") from None


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is bfloat16 or a float8 type.

    These are numbers, but NumPy treats most of them as raw bytes.
    """
    return (
        not 0 <= dtype.num < _FIRST_OF_OTHERS
        and dtype.name in _SMALL_FLOATS
        and dtype.type.__module__ == "ml_dtypes"
    )


def _fix(dtype: np.dtype[Any]) -> str:
    if dtype.hasobject:
        return "its elements are Python objects; convert them to numbers"
    if dtype.type.__module__ == "ml_dtypes":
        if "complex" in dtype.name:
            return "convert it: data.astype(np.complex64)"
        kind = "np.int8" if dtype.name.startswith("int") else "np.uint8"
        kind = "np.float16" if dtype.name.startswith("float") else kind
        packed = "pack its bits into np.uint8 yourself"
        if dtype.name in ("int4", "uint4"):
            packed = f"pack it, kp.ops.pack_int4(data.astype({kind}))"
        return (
            "NumPy stores one such number in each byte and devices pack several, so shaders would read wrong "
            f"numbers: convert it, data.astype({kind}), or {packed}"
        )
    if dtype.kind in "mM":
        return "pass its integers: data.view(np.int64)"
    if dtype.kind == "f":
        return "convert it: data.astype(np.float64)"
    if dtype.kind == "c":
        return "convert it: data.astype(np.complex128)"
    if dtype.kind in "SU" and dtype.itemsize > 0:
        return f"pass its bytes: data.view(np.{'uint8' if dtype.kind == 'S' else 'uint32'})"
    return "convert it to numbers"
