"""The contents of a parameter file's header, in one form for all formats.

Every format's reader is a pure module: it takes a function that reads bytes (`Read`) and returns a `Header`.
It opens no file and needs no device. Files come from untrusted sources, so every field is checked there:
the entries of a `Header` can be indexed and allocated without further checks.

The names of dtypes are those of safetensors ("F32", "BF16", "I64"), and the block types of GGUF ("Q4_K").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, shown
from .._base.text import Told, told
from .._base.types import is_small_float

Read = Callable[[int, int], bytes]
"""``read(offset, count)``: `count` bytes of a file. Raises InvalidArgumentError if the file is shorter."""

MOST_HEADER_BYTES = 100_000_000
"""The largest header, as in other readers of safetensors: a header must not exhaust memory."""
# The limit of NumPy before 2.0. A tensor of larger rank would load and then fail in numpy().
MOST_DIMENSIONS = 32
MOST_BYTES = 2**63 - 1

BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E8M0": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
    "C128": 128,
}
"""Bits of one element, by dtype."""
BLOCKS = {
    "Q1_0": (128, 18),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q8_1": (32, 40),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "Q8_K": (256, 292),
    "IQ1_S": (256, 50),
    "IQ1_M": (256, 56),
    "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74),
    "IQ2_S": (256, 82),
    "IQ3_XXS": (256, 98),
    "IQ3_S": (256, 110),
    "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136),
    "TQ1_0": (256, 54),
    "TQ2_0": (256, 66),
    "MXFP4": (32, 17),
    "NVFP4": (64, 36),
}
"""Elements and bytes of one block, for each quantised type of GGUF. Blocks lie along the last axis."""

# NumPy's kind and item size, for the dtypes that NumPy has.
_NUMPY = {
    "BOOL": "b1",
    "U8": "u1",
    "I8": "i1",
    "U16": "u2",
    "I16": "i2",
    "F16": "f2",
    "U32": "u4",
    "I32": "i4",
    "F32": "f4",
    "U64": "u8",
    "I64": "i8",
    "F64": "f8",
    "C64": "c8",
    "C128": "c16",
}
_DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(code) for name, code in _NUMPY.items()}
_OF_DTYPE: dict[np.dtype[Any], str] = {dtype: name for name, dtype in _DTYPES.items()}
_BYTES = np.dtype(np.uint8)
# ml_dtypes' names of the floats that NumPy lacks.
SMALL_FLOATS = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
_OF_SMALL_FLOATS = {ours: name for name, ours in SMALL_FLOATS.items()}


class TensorFileEntry(NamedTuple):
    """One tensor of a parameter file, or of a `TensorIndex`.

    >>> kp.save_tensors("model.safetensors", {"weight": np.ones(2, np.float32)}, {"epoch": "3"})
    >>> entry = kp.tensor_file_info("model.safetensors")["weight"]
    >>> entry.dtype, entry.shape, entry.nbytes
    ('F32', (2,), 8)
    """

    name: str
    """The tensor's name in the file."""
    dtype: str
    """The name of the dtype: "F32", "BF16", "I64" and so on, or a quantised type of GGUF such as "Q4_K"."""
    shape: tuple[int, ...]
    """The number of elements on each axis; () for a scalar."""
    offset: int
    """Bytes from the start of the file; 0 for splats and for tensors in memory."""
    nbytes: int
    """Its size in bytes; of a splat, the size that it has on a device."""
    splat: bytes | None = None
    """For a splat, the bytes of the element that all its elements have; else None."""
    metadata: bytes = b""
    """The bytes that an IRPA archive keeps with this entry."""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of the Tensor that `kp.load_tensors` creates from it.

        BF16 and the 8-bit floats become dtypes of ml_dtypes, or their bits (uint16, uint8) if that package is
        missing or too old to have them. Quantised types are bytes (uint8). Raises UnimplementedError for
        floats of 4 and 6 bits, which have no NumPy dtype.
        """
        found = _DTYPES.get(self.dtype)
        return tensor_dtype(self.dtype, f"The tensor {shown(self.name)}") if found is None else found

    @property
    def numpy_shape(self) -> tuple[int, ...]:
        """The shape of the Tensor that `kp.load_tensors` creates from it: `shape`, but for quantised types:
        their last axis has the bytes of its blocks.
        """
        block = BLOCKS.get(self.dtype)
        if block is None:
            return self.shape
        return (*self.shape[:-1], self.shape[-1] // block[0] * block[1])

    @property
    def is_splat(self) -> bool:
        """Whether all its elements have one value, which the file stores once."""
        return self.splat is not None

    @property
    def is_raw(self) -> bool:
        """Whether `numpy_dtype` holds only the bits of a float, as unsigned integers."""
        return self.dtype in SMALL_FLOATS and self.numpy_dtype.kind == "u"


TensorFileEntry.__module__ = "kompute_py"  # public; imported when first used


class Header(NamedTuple):
    """The contents of a checked header."""

    entries: dict[str, TensorFileEntry]
    """Entries by name, in the order of the file."""
    metadata: dict[str, Any]
    """The file's own metadata: str by str in safetensors, values of many types in GGUF."""


def tensor_dtype(name: str, what: str) -> np.dtype[Any]:
    """The NumPy dtype for the dtype `name`; see `TensorFileEntry.numpy_dtype`.

    `what` begins the error message.
    """
    found = _DTYPES.get(name)
    if found is not None:
        return found
    if name in SMALL_FLOATS:
        return _small_float(name)
    if name in BLOCKS:
        return _BYTES
    raise UnimplementedError(
        f"{what} has dtype {name}, which has {BITS[name]} bits an element, and NumPy has no such dtype; "
        "select the other tensors with names="
    )


@cache
def _small_float(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, SMALL_FLOATS[name]))
    except (ImportError, AttributeError):
        return np.dtype(f"u{BITS[name] // 8}")


def dtype_name(dtype: np.dtype[Any], what: Told) -> str:
    """The name of a NumPy dtype. Raises ArgumentTypeError, beginning with `what`, if no format has it."""
    found = _OF_DTYPE.get(dtype)
    if found is None and is_small_float(dtype):
        found = _OF_SMALL_FLOATS.get(dtype.name)
    elif found is None and not dtype.isnative:
        found = _OF_DTYPE.get(dtype.newbyteorder("="))
    if found is None:
        fix = "each of its fields, or its bytes" if dtype.names else "its bytes"
        raise ArgumentTypeError(
            f"{told(what)} has dtype {dtype}, which parameter files lack; save {fix}: data.view(np.uint8)"
        )
    return found


def require_known(entry: TensorFileEntry, known: Container[str], format: str) -> None:
    """Raises ArgumentTypeError if the dtype of `entry` is not among those that `format` has."""
    if entry.dtype not in known:
        parts = "its real and imaginary parts: data.view(np.float64)"
        is_complex = entry.dtype[0] == "C"
        raise ArgumentTypeError(
            f"{named(entry.name)} has dtype {entry.numpy_dtype if is_complex else entry.dtype}, which "
            f"{format} files lack; save {parts if is_complex else 'it in another format'}"
        )


def check_text(text: str, what: str) -> None:
    """Raises InvalidArgumentError, beginning with `what`, for a str that could not be printed or saved."""
    # JSON can contain half of a surrogate pair, which could be neither printed nor saved again.
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} is not Unicode: {shown(text)}") from None


def named(name: str) -> str:
    """How messages call the tensor `name`."""
    return f"The tensor {shown(name)}"


def byte_size(name: str, dtype: str, shape: tuple[int, ...]) -> int:
    """The size of a tensor in bytes.

    Raises InvalidArgumentError if it is not a whole number of bytes and blocks, has too many axes or is
    larger than any memory.
    """
    if len(shape) > MOST_DIMENSIONS:
        raise InvalidArgumentError(
            f"{named(name)} has {len(shape)} dimensions; at most {MOST_DIMENSIONS} are allowed"
        )
    elements, size = BLOCKS.get(dtype, (8, BITS.get(dtype, 0)))
    # With a 0 among them, the others may still be too large: their product overflows in other places.
    count = math.prod(shape)
    nbytes, rest = divmod(count * size, elements)
    if (count or math.prod(n for n in shape if n)) * size > MOST_BYTES * elements:
        raise InvalidArgumentError(f"{named(name)} has the shape {shape}, which is larger than any memory")
    if dtype in BLOCKS:
        if not shape or shape[-1] % elements:
            raise InvalidArgumentError(
                f"{named(name)} of shape {shape} is not a whole number of blocks on its last axis: "
                f"{dtype} has blocks of {elements}"
            )
    elif rest:
        raise InvalidArgumentError(
            f"{named(name)} has {count} elements of {BITS[dtype]} bits, which end within a byte"
        )
    return nbytes
