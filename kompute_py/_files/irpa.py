"""The IRPA file format, IREE's parameter archives: a table of entries, their names and their data.

A file is one or more archives. Each begins with a header (offsets are from the header's start, numbers are
little-endian):

====== ======================================================================================
bytes  field
====== ======================================================================================
4      ``IRPA``
2, 2   major version (0), minor version
8      size of the header
8      offset of the next archive's header, 0 if there is none
8      flags
8      number of entries
8, 8   offset and length of the table of entries
8, 8   offset and length of the metadata: names and what is kept with entries
8, 8   offset and length of the data
====== ======================================================================================

An entry of the table begins at a multiple of 16 bytes: its size (8 bytes), its type (4), flags (8), the
offset and length of its name (8, 8) and of its metadata (8, 8) in the metadata segment, and its alignment
(8). Then a splat (type 1) has its length (8), a pattern of 16 bytes and the number of bytes that count (1);
a tensor with data (type 2) has the offset and length of its data (8, 8) in the data segment. Type 0 is
skipped. Type 3 names another file, which is refused: a file must not choose the files that are read.

The format knows no dtypes and shapes. IREE's Python package writes them into the metadata, as
``TENSORv0:`` and JSON, and so does this module; ``PYTORCH:`` is the older mark. Other metadata is kept as it
is, and the tensor is an array of bytes. The layout is that of ``iree/schemas/parameter_archive.h``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from .._base.errors import InvalidArgumentError, UnimplementedError, shown
from .._base.text import binary_size
from .entries import (
    BITS,
    MOST_BYTES,
    MOST_HEADER_BYTES,
    SMALL_FLOATS,
    Header,
    Read,
    TensorFileEntry,
    byte_size,
    check_text,
    named,
    require_known,
)

MAGIC = b"IRPA"
_HEADER = struct.Struct("<4sHHQQQQQQQQQQ")
_PREFIX = struct.Struct("<4sHHQQQ")
_ENTRY = struct.Struct("<QIQQQQQQ")
_SPLAT = struct.Struct("<Q16sB")
_DATA = struct.Struct("<QQ")
_SKIPPED, _IS_SPLAT, _HAS_DATA, _IS_EXTERNAL = range(4)
_ALIGNMENT = 16  # of headers and entries
_DATA_ALIGNMENT = 64
_PATTERNS = (1, 2, 4, 8, 16)
_MARKS = (b"TENSORv0:", b"PYTORCH:")
_OPAQUE = "U8"

# The names of dtypes in the metadata: NumPy's and ml_dtypes'.
_NAMES = {
    "BOOL": "bool",
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"C{bits}": f"complex{bits}" for bits in (64, 128)},
    **SMALL_FLOATS,
}  # fmt: skip
_OF_NAMES = {name: ours for ours, name in _NAMES.items()}


def read_header(read: Read, file_bytes: int) -> Header:
    """The entries of all archives of a file of `file_bytes` bytes, in the order of their tables.

    Raises InvalidArgumentError, naming the tensor and the field, if anything violates the format;
    UnimplementedError for versions and kinds of entries that are not read.
    """
    entries: dict[str, TensorFileEntry] = {}
    budget = MOST_HEADER_BYTES
    base = 0
    while True:
        length = min(_HEADER.size, file_bytes - base)
        if length < _PREFIX.size:
            raise InvalidArgumentError(
                f"The file has {length} bytes for the archive's header at byte {base}, which has "
                f"{_HEADER.size}: it is truncated or not an IRPA file"
            )
        head = read(base, length)
        magic, major, minor, header_size, following, _ = _PREFIX.unpack_from(head)
        if magic != MAGIC:
            raise InvalidArgumentError(f"The archive at byte {base} begins with {magic!r}, not {MAGIC!r}")
        if major != 0:
            raise UnimplementedError(
                f"The archive at byte {base} has version {major}.{minor} of the IRPA format; "
                "version 0 is read"
            )
        if header_size < _HEADER.size or length < _HEADER.size:
            raise InvalidArgumentError(
                f"The header of the archive at byte {base} has {min(header_size, length)} bytes, not "
                f"{_HEADER.size}"
            )
        count, *ranges = _HEADER.unpack(head)[6:]
        what = ("table of entries", "metadata", "data")
        segments = [_segment(what[at // 2], base, ranges[at], ranges[at + 1], file_bytes) for at in (0, 2, 4)]
        (table_at, table_size), (words_at, words_size), data = segments
        budget -= table_size + words_size + _HEADER.size
        if budget < 0:
            raise InvalidArgumentError(
                f"The file's tables and metadata have more than {MOST_HEADER_BYTES} bytes: it is damaged"
            )
        _parse(count, read(table_at, table_size), read(words_at, words_size), data, entries)
        if following == 0:
            return Header(entries, {})
        base += following
        if following < _HEADER.size or following % _ALIGNMENT or base > file_bytes:
            raise InvalidArgumentError(
                f"The next archive is {following} bytes further, which is not a place for a header in this "
                "file"
            )


def _segment(what: str, base: int, offset: int, length: int, file_bytes: int) -> tuple[int, int]:
    """The offset in the file, and the length, of a part of the archive at `base`."""
    if base + offset + length > file_bytes:
        raise InvalidArgumentError(
            f"The archive's {what} ends at byte {base + offset + length}, but the file has {file_bytes} "
            "bytes: it is cut off or damaged"
        )
    return base + offset, length


def _parse(
    count: int, table: bytes, words: bytes, data: tuple[int, int], entries: dict[str, TensorFileEntry]
) -> None:
    at = 0
    for number in range(count):
        if at + _ENTRY.size > len(table):
            raise InvalidArgumentError(
                f"The table of entries ends before entry {number} of {count}: the file is damaged"
            )
        size, kind, _, name_at, name_size, kept_at, kept_size, _ = _ENTRY.unpack_from(table, at)
        if size < _ENTRY.size or size > len(table) - at:
            raise InvalidArgumentError(f"Entry {number} has a size of {size} bytes, which its table has not")
        body, end = at + _ENTRY.size, at + size
        at += -(-size // _ALIGNMENT) * _ALIGNMENT
        if kind == _SKIPPED:
            continue
        text = _words(words, name_at, name_size, f"the name of entry {number}")
        try:
            name = text.decode()
        except UnicodeDecodeError:
            raise InvalidArgumentError(f"The name of entry {number} is not UTF-8: {shown(text)}") from None
        if name in entries:
            raise InvalidArgumentError(f"The file has the tensor {shown(name)} twice")
        kept = _words(words, kept_at, kept_size, f"the metadata of {shown(name)}")
        if kind == _IS_SPLAT:
            entries[name] = _splat(name, kept, _fields(_SPLAT, table, body, end, name))
        elif kind == _HAS_DATA:
            entries[name] = _stored(name, kept, _fields(_DATA, table, body, end, name), data)
        elif kind == _IS_EXTERNAL:
            raise UnimplementedError(
                f"{named(name)} refers to data in another file, and such references are not followed; repack "
                "the archive with iree-convert-parameters"
            )
        else:
            raise UnimplementedError(f"{named(name)} is an entry of type {kind}; types 0, 1 and 2 are read")


def _words(words: bytes, offset: int, length: int, what: str) -> bytes:
    if offset + length > len(words):
        raise InvalidArgumentError(
            f"The archive's metadata ends at byte {len(words)}, before {what} does ({offset + length})"
        )
    return words[offset : offset + length]


def _fields(form: struct.Struct, table: bytes, at: int, end: int, name: str) -> tuple[Any, ...]:
    if end - at < form.size:
        raise InvalidArgumentError(
            f"{named(name)} has an entry that is {form.size - end + at} bytes too short"
        )
    return form.unpack_from(table, at)


def _splat(name: str, kept: bytes, fields: tuple[Any, ...]) -> TensorFileEntry:
    nbytes, pattern, count = fields
    if count not in _PATTERNS or nbytes % count or nbytes > MOST_BYTES:
        raise InvalidArgumentError(
            f"{named(name)} repeats a pattern of {count} bytes over {nbytes} bytes; patterns have 1, 2, 4, "
            "8 or 16 bytes, and fit a whole number of times"
        )
    dtype, shape = _described(name, kept, nbytes)
    return TensorFileEntry(name, dtype, shape, 0, nbytes, pattern[:count], kept)


def _stored(name: str, kept: bytes, fields: tuple[Any, ...], data: tuple[int, int]) -> TensorFileEntry:
    offset, nbytes = fields
    if offset + nbytes > data[1]:
        raise InvalidArgumentError(
            f"{named(name)} ends at byte {offset + nbytes} of the archive's data, which has {data[1]} bytes"
        )
    dtype, shape = _described(name, kept, nbytes)
    return TensorFileEntry(name, dtype, shape, data[0] + offset, nbytes, None, kept)


def describes(metadata: bytes) -> bool:
    """Whether an entry's metadata is only its dtype and shape, as written by this module and IREE's."""
    return metadata.startswith(_MARKS)


def _described(name: str, kept: bytes, nbytes: int) -> tuple[str, tuple[int, ...]]:
    """The dtype and shape from an entry's metadata; bytes if the metadata does not tell."""
    if not describes(kept):
        return _OPAQUE, (nbytes,)
    try:
        said = json.loads(kept.partition(b":")[2].decode())
        kind, dtype, shape = said["type"], said["dtype"], said["shape"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidArgumentError(
            f"{named(name)} has metadata that does not give its type, dtype and shape: {shown(kept)}"
        ) from None
    if kind != "Tensor" or type(dtype) is not str or dtype not in _OF_NAMES:
        raise InvalidArgumentError(
            f"{named(name)} has the type {shown(kind)} and the dtype {shown(dtype)}; known are the type "
            f"'Tensor' and {', '.join(_OF_NAMES)}"
        )
    if type(shape) is not list or any(type(n) is not int or not 0 <= n <= MOST_BYTES for n in shape):
        raise InvalidArgumentError(f"{named(name)} has the shape {shown(shape)}; give integers of at least 0")
    found, extent = _OF_NAMES[dtype], tuple(shape)
    if byte_size(name, found, extent) != nbytes:
        raise InvalidArgumentError(
            f"{named(name)} of shape {extent}, {dtype}, has {byte_size(name, found, extent)} bytes, but its "
            f"entry has {nbytes}"
        )
    return found, extent


def build_header(
    tensors: Iterable[TensorFileEntry], metadata: Mapping[str, Any]
) -> tuple[bytes, list[TensorFileEntry]]:
    """The bytes before the data (header, table, metadata), and the entries that have data, with their
    places: splats have none.

    Data begins at multiples of 64 bytes. Raises ArgumentTypeError if the format lacks a dtype;
    InvalidArgumentError for metadata of the file, which the format lacks, and a header above the limit.
    """
    if metadata:
        raise InvalidArgumentError(
            f"IRPA files have metadata for each tensor, none for the file, and {shown(next(iter(metadata)))} "
            "is metadata of the file: leave it out with metadata={}, or add it to tensors with "
            "kp.TensorIndex.add(metadata=)"
        )
    words, table, placed = bytearray(), bytearray(), []
    count = position = 0
    for entry in tensors:
        check_text(entry.name, "The name of a tensor")
        require_known(entry, _NAMES, "IRPA")
        text, kept = entry.name.encode(), entry.metadata or _description(entry)
        places = (len(words), len(text), len(words) + len(text), len(kept))
        words += text + kept
        if entry.splat is None:
            position = -(-position // _DATA_ALIGNMENT) * _DATA_ALIGNMENT
            placed.append(entry._replace(offset=position))
            kind, alignment, body = _HAS_DATA, _DATA_ALIGNMENT, _DATA.pack(position, entry.nbytes)
            position += entry.nbytes
        else:
            body = _SPLAT.pack(entry.nbytes, entry.splat, len(entry.splat))
            kind, alignment = _IS_SPLAT, 0
        table += _ENTRY.pack(_ENTRY.size + len(body), kind, 0, *places, alignment) + body
        table += bytes(-len(table) % _ALIGNMENT)
        count += 1
    table_at = -(-_HEADER.size // _ALIGNMENT) * _ALIGNMENT
    words_at = table_at + len(table)
    start = -(-(words_at + len(words)) // _DATA_ALIGNMENT) * _DATA_ALIGNMENT
    if start > MOST_HEADER_BYTES:
        raise InvalidArgumentError(
            f"The header would have {binary_size(start)}, above the limit of {MOST_HEADER_BYTES} bytes: save "
            "fewer tensors or less metadata in one file"
        )
    head = _HEADER.pack(
        MAGIC, 0, 0, _HEADER.size, 0, 0, count,
        table_at, len(table), words_at, len(words), start, position,
    )  # fmt: skip
    text = head.ljust(table_at, b"\0") + table + words
    return text.ljust(start, b"\0"), [entry._replace(offset=start + entry.offset) for entry in placed]


def _description(entry: TensorFileEntry) -> bytes:
    """The metadata by which IREE's Python package knows a dtype and a shape."""
    name, kind = _NAMES[entry.dtype], entry.dtype
    about = {
        "class_name": f"{name.capitalize()}DType",
        "is_complex": kind[0] == "C",
        "is_floating_point": kind[0] == "F" or kind == "BF16",
        "is_signed": kind[0] in "IF" or kind == "BF16",
        "itemsize": BITS[kind] // 8,
    }
    said = {"type": "Tensor", "dtype": name, "shape": list(entry.shape), "dtype_desc": about}
    return _MARKS[0] + json.dumps(said).encode()
