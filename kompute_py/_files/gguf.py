"""The GGUF file format, in which llama.cpp keeps models: metadata, a list of tensors, and their data.

Numbers are little-endian. A file is ``GGUF``, the version (4 bytes; 2 and 3 are read), the number of tensors
and of pairs of metadata (8 bytes each), the pairs, the tensors, and, at the next multiple of the alignment
(the pair ``general.alignment``, else 32), the data. Strings are a length (8 bytes) and UTF-8. A pair is a
string, a type (4 bytes) and a value. A tensor is a string, the number of its axes (4 bytes), their lengths
(8 bytes each, the last axis first), its type (4 bytes) and the offset of its data (8 bytes).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .._base.errors import InvalidArgumentError, UnimplementedError, shown
from .entries import MOST_HEADER_BYTES, Header, Read, TensorFileEntry, byte_size, named

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = "general.alignment"
_MOST_AXES = 4  # as in ggml
_PIECE = 1 << 20

# ggml's numbers of the types of tensors.
_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K",
    11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
    19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32",
    27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
    41: "Q1_0",
}  # fmt: skip
_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", _BOOL: "?", 10: "<u8", 11: "<i8",
    12: "<f8",
}  # fmt: skip
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_COUNTS = struct.Struct("<4sIQQ")


class _Cursor:
    """Reads a header from its start to its end, a piece at a time."""

    def __init__(self, read: Read, file_bytes: int) -> None:
        self._read = read
        self._size = file_bytes
        self._piece = b""
        self._first = 0
        self.at = 0

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        begin = self.at - self._first
        if begin + count > len(self._piece):
            if self.at + count > self._size:
                raise InvalidArgumentError(
                    f"The file ends at byte {self._size}, within {what}: it is truncated or damaged"
                )
            if self.at + count > MOST_HEADER_BYTES:
                raise InvalidArgumentError(
                    f"The file's header has more than {MOST_HEADER_BYTES} bytes: it is damaged"
                )
            self._piece = self._read(self.at, min(max(count, _PIECE), self._size - self.at))
            self._first, begin = self.at, 0
        self.at += count
        return self._piece[begin : begin + count]

    def u32(self, what: str) -> int:
        """The next number of 4 bytes."""
        return _U32.unpack(self.take(4, what))[0]

    def u64(self, what: str) -> int:
        """The next number of 8 bytes."""
        return _U64.unpack(self.take(8, what))[0]

    def text(self, what: str) -> str:
        """The next string. Raises InvalidArgumentError if it is not UTF-8."""
        value = self.string(what)
        if isinstance(value, bytes):
            raise InvalidArgumentError(f"The file has {what} that is not UTF-8: {shown(value)}")
        return value

    def string(self, what: str) -> str | bytes:
        """The next string, or its bytes if they are not UTF-8: some files have tokens that are not."""
        text = self.take(self.u64(what), what)
        try:
            return text.decode()
        except UnicodeDecodeError:
            return text


def read_header(read: Read, file_bytes: int) -> Header:
    """The header of a file of `file_bytes` bytes; entries are in the order of their data.

    Raises InvalidArgumentError, naming the tensor and the field, if anything violates the format;
    UnimplementedError for versions, byte orders and types of tensors that are not read.
    """
    cursor = _Cursor(read, file_bytes)
    magic, version, tensors, pairs = _COUNTS.unpack(cursor.take(_COUNTS.size, "its first fields"))
    if magic != MAGIC:
        raise InvalidArgumentError(f"The file begins with {magic!r}, not {MAGIC!r}")
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "big"), "little")
        raise UnimplementedError(
            f"The file has version {version} of the GGUF format; versions 2 and 3 are read"
            if swapped not in _VERSIONS
            else "The file has the other byte order, big-endian; convert it with the gguf package: "
            "gguf-convert-endian FILE little"
        )
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = cursor.text("the name of a pair of metadata")
        if key in metadata:
            raise InvalidArgumentError(f"The file has the metadata {shown(key)} twice")
        metadata[key] = _value(cursor, cursor.u32(f"the type of {shown(key)}"), f"the metadata {shown(key)}")
    alignment = metadata.get(_ALIGNMENT, 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise InvalidArgumentError(f"The file's {_ALIGNMENT} is {shown(alignment)}, not a power of two")
    entries = [_entry(cursor, alignment) for _ in range(tensors)]
    start = -(-cursor.at // alignment) * alignment
    made: dict[str, TensorFileEntry] = {}
    for entry in sorted(entries, key=lambda each: each.offset):
        if entry.name in made:
            raise InvalidArgumentError(f"The file has the tensor {shown(entry.name)} twice")
        if start + entry.offset + entry.nbytes > file_bytes:
            raise InvalidArgumentError(
                f"{named(entry.name)} ends at byte {start + entry.offset + entry.nbytes}, but the file has "
                f"{file_bytes} bytes: it is cut off or damaged"
            )
        made[entry.name] = entry._replace(offset=start + entry.offset)
    return Header(made, metadata)


def _entry(cursor: _Cursor, alignment: int) -> TensorFileEntry:
    """The next tensor; its offset is that in the data."""
    name = cursor.text("the name of a tensor")
    axes = cursor.u32(f"the shape of {shown(name)}")
    if axes > _MOST_AXES:
        raise InvalidArgumentError(
            f"{named(name)} has {axes} dimensions; GGUF files have at most {_MOST_AXES}"
        )
    shape = tuple(cursor.u64(f"the shape of {shown(name)}") for _ in range(axes))[::-1]
    number = cursor.u32(f"the type of {shown(name)}")
    dtype = _TYPES.get(number)
    if dtype is None:
        raise UnimplementedError(f"{named(name)} has the type {number} of ggml, which is not known")
    offset = cursor.u64(f"the offset of {shown(name)}")
    if offset % alignment:
        raise InvalidArgumentError(
            f"{named(name)} begins at byte {offset} of the data, not at a multiple of the alignment, "
            f"{alignment}"
        )
    return TensorFileEntry(name, dtype, shape, offset, byte_size(name, dtype, shape))


def _value(cursor: _Cursor, kind: int, what: str) -> Any:
    """A number, a bool, a str, an ndarray of numbers, or a list of str."""
    if kind == _STRING:
        return cursor.string(what)
    if kind != _ARRAY:
        return _numbers(cursor, kind, 1, what)[0].item()
    of, count = cursor.u32(what), cursor.u64(what)
    if of == _ARRAY:
        raise UnimplementedError(f"The file has {what}, an array of arrays, which is not read")
    if of != _STRING:
        return _numbers(cursor, of, count, what).copy()
    strings = []
    for _ in range(count):  # ends with the file, whatever the count is
        strings.append(cursor.string(what))
    return strings


def _numbers(cursor: _Cursor, kind: int, count: int, what: str) -> np.ndarray[Any, Any]:
    code = _NUMBERS.get(kind)
    if code is None:
        raise InvalidArgumentError(f"The file has {what} of type {kind}, which the format lacks")
    dtype = np.dtype(code)
    found = np.frombuffer(cursor.take(count * dtype.itemsize, what), np.uint8)
    if kind == _BOOL and found.size and found.max() > 1:
        raise InvalidArgumentError(f"The file has {what} with a bool that is {found.max()}, not 0 or 1")
    return found.view(dtype)
