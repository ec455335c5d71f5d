"""The safetensors file format: the header that describes the rest of the file.

A file is eight bytes (the header's length, little-endian), the header (a JSON object) and the data. The
header has one entry for each tensor, ``"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}``,
with offsets counted from the end of the header, and optionally ``"__metadata__"``, an object of strings. The
tensors' bytes cover the data exactly: no gaps, no overlaps, nothing after them.

Files come from untrusted sources, so every field is checked. This module is pure: it takes bytes and returns
entries, opens no file and needs no device. Entries that `parse_header` returns can be indexed and allocated
without further checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from .._base.collector import collector_off
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._base.text import binary_size
from .entries import (
    BITS,
    MOST_BYTES,
    MOST_HEADER_BYTES,
    Header,
    Read,
    TensorFileEntry,
    byte_size,
    check_text,
    named,
    require_known,
)

PREFIX_BYTES = 8
"""Bytes of the header's length, which precedes the header."""
METADATA = "__metadata__"
"""The only key of the header that does not name a tensor."""

# Aligns the data, and so each tensor in it, to its elements.
_ALIGNMENT = 8
_LACKED = "C128"
_KNOWN = tuple(name for name in BITS if name != _LACKED)


def read_header(read: Read, file_bytes: int) -> Header:
    """The header of a file of `file_bytes` bytes. Raises InvalidArgumentError if it violates the format."""
    length = header_bytes(read(0, min(PREFIX_BYTES, file_bytes)), file_bytes)
    start = PREFIX_BYTES + length
    return parse_header(read(PREFIX_BYTES, length), file_bytes - start, start)


def header_bytes(prefix: bytes, file_bytes: int) -> int:
    """The length of the header of a file of `file_bytes` bytes that begins with `prefix`.

    Raises InvalidArgumentError if the file is shorter than that length, or the length is above the limit.
    """
    if len(prefix) < PREFIX_BYTES:
        raise InvalidArgumentError(
            f"The file has {len(prefix)} bytes; a safetensors file begins with {PREFIX_BYTES} bytes that "
            "give the "
            "length of its header"
        )
    length = int.from_bytes(prefix[:PREFIX_BYTES], "little")
    if length > MOST_HEADER_BYTES:
        raise InvalidArgumentError(
            f"The file gives its header a length of {length} bytes, above the limit of {MOST_HEADER_BYTES}: "
            "it is damaged or not a safetensors file"
        )
    if length > file_bytes - PREFIX_BYTES:
        raise InvalidArgumentError(
            f"The file gives its header a length of {length} bytes, but only {file_bytes - PREFIX_BYTES} "
            "bytes follow: "
            "it is truncated or not a safetensors file"
        )
    return length


def parse_header(text: bytes, data_bytes: int, start: int = 0) -> Header:
    """Parses the header `text` of a file with `data_bytes` bytes of data after it, from byte `start` on.

    Raises InvalidArgumentError, naming the tensor and the field, if anything violates the format.
    """
    from json import loads

    if text[:1] != b"{":
        raise InvalidArgumentError(
            'The header does not begin with "{": the file is damaged or not a safetensors file'
        )
    try:
        # The format is UTF-8; json alone would also accept UTF-16 and others.
        with collector_off():
            content = loads(text.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise InvalidArgumentError("The header's JSON is nested too deeply") from None
    except InvalidArgumentError:
        raise
    except ValueError as error:  # invalid UTF-8 or JSON, or integers with thousands of digits
        raise InvalidArgumentError(f"The header is not valid JSON in UTF-8: {error}") from None
    metadata = _metadata(content.pop(METADATA, {}))
    with collector_off():
        entries = sorted(
            [_entry(name, fields, start) for name, fields in content.items()], key=itemgetter(3, 4)
        )
    position = 0
    previous = ""
    for entry in entries:
        if entry.offset - start != position:
            what = "overlaps" if entry.offset - start < position else "leaves a gap behind"
            before = f"the tensor {shown(previous)}" if previous or position else "the start of the data"
            raise InvalidArgumentError(
                f"The tensor {shown(entry.name)} begins at byte {entry.offset - start} of the data and "
                f"{what} {before}, which ends at byte {position}"
            )
        position += entry.nbytes
        previous = entry.name
    if position != data_bytes:
        problem = "is cut off" if position > data_bytes else "has bytes that no tensor uses"
        raise InvalidArgumentError(
            f"The file {problem}: its tensors have {position} bytes of data, the file has {data_bytes}"
        )
    return Header({entry.name: entry for entry in entries}, metadata)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        # json would take the last of them, other readers the first.
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidArgumentError(f"The header has the key {shown(twice)} twice")
    return made


def _constant(name: str) -> Any:
    raise InvalidArgumentError(f"The header contains {name}, which is not valid JSON")


def _metadata(content: Any) -> dict[str, str]:
    if type(content) is not dict or any(type(value) is not str for value in content.values()):
        raise InvalidArgumentError(f"The header's {METADATA} is not an object of strings")
    for key, value in content.items():
        check_text(key, f"The header's {METADATA} has a key that")
        check_text(value, f"The header's {METADATA} has under {shown(key)} a text that")
    return content


def _entry(name: str, fields: Any, start: int) -> TensorFileEntry:
    check_text(name, "The name of a tensor")
    if type(fields) is not dict:
        raise InvalidArgumentError(f"{named(name)} is described by {_kind(fields)}, not by an object")
    for key in ("dtype", "shape", "data_offsets"):
        if key not in fields:
            raise InvalidArgumentError(f"{named(name)} has no {key}")
    dtype = fields["dtype"]
    if type(dtype) is not str or dtype not in _KNOWN:
        given = shown(dtype) if type(dtype) is str else _kind(dtype)
        raise InvalidArgumentError(f"{named(name)} has the dtype {given}; known: {', '.join(_KNOWN)}")
    shape = _integers(fields["shape"], name, "has a shape that")
    nbytes = byte_size(name, dtype, shape)
    offsets = _integers(fields["data_offsets"], name, "has data_offsets that")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise InvalidArgumentError(
            f"{named(name)} has data_offsets that are not a range [begin, end]: {list(offsets[:3])}"
        )
    begin, end = offsets
    if end - begin != nbytes:
        raise InvalidArgumentError(
            f"{named(name)} of shape {shape}, {dtype}, has {nbytes} bytes, but its data_offsets "
            f"{begin} to {end} are {end - begin} bytes"
        )
    return TensorFileEntry(name, dtype, shape, start + begin, nbytes)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _integers(value: Any, name: str, what: str) -> tuple[int, ...]:
    if type(value) is not list:
        raise InvalidArgumentError(f"{named(name)} {what} is {_kind(value)}, not an array")
    for number in value:
        if type(number) is not int or not 0 <= number <= MOST_BYTES:  # a boolean is an int for isinstance
            given = shown(number) if type(number) in (int, float) else _kind(number)
            raise InvalidArgumentError(
                f"{named(name)} {what} has {given}; give integers from 0 to {MOST_BYTES}"
            )
    return tuple(value)


def build_header(
    tensors: Iterable[TensorFileEntry], metadata: Mapping[str, str]
) -> tuple[bytes, list[TensorFileEntry]]:
    """The bytes before the data (length and header), and the entries with their places, in that order.

    Tensors with large elements come first, which aligns each tensor to its elements. Raises ArgumentTypeError
    if the format lacks a dtype or metadata is not a str; InvalidArgumentError if the format cannot hold a
    text or metadata of an entry, or the header exceeds its limit.
    """
    from json import dumps
    from json.encoder import encode_basestring as quoted

    unplaced = []
    for entry in tensors:
        if entry.name == METADATA:
            raise InvalidArgumentError(
                f"{METADATA!r} is reserved: give the tensor another name, or pass metadata="
            )
        if entry.metadata:
            raise InvalidArgumentError(
                f"{named(entry.name)} has metadata of its own, which safetensors files lack; "
                'save an IRPA archive: format="irpa"'
            )
        check_text(entry.name, "The name of a tensor")
        require_known(entry, _KNOWN, "safetensors")
        unplaced.append((-BITS[entry.dtype], entry.name, entry))
    unplaced.sort()  # by the bits of their elements, then by name; names differ
    members = []
    if metadata:
        for key, value in metadata.items():
            if type(key) is not str or type(value) is not str:
                raise ArgumentTypeError(
                    f"Metadata maps str to str; it contains {shown(key)}: {shown(value)}. Convert values "
                    "with json.dumps"
                )
        strings = dumps(_metadata(dict(metadata)), ensure_ascii=False, separators=(",", ":"))
        members.append(f"{quoted(METADATA)}:{strings}")
    position = 0
    for _, name, entry in unplaced:
        end = position + entry.nbytes
        lengths = ",".join(map(str, entry.shape))
        members.append(
            f'{quoted(name)}:{{"dtype":"{entry.dtype}","shape":[{lengths}],"data_offsets":[{position},{end}]}}'
        )
        position = end
    text = f"{{{','.join(members)}}}".encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > MOST_HEADER_BYTES:
        raise InvalidArgumentError(
            f"The header would have {binary_size(len(text))}, above the format's limit of "
            f"{MOST_HEADER_BYTES} bytes: save fewer tensors or less metadata in one file"
        )
    placed, at = [], PREFIX_BYTES + len(text)
    for _, _, entry in unplaced:
        # Not _replace, which takes longer than all else for a small tensor.
        placed.append(TensorFileEntry(entry.name, entry.dtype, entry.shape, at, entry.nbytes, entry.splat))
        at += entry.nbytes
    return len(text).to_bytes(PREFIX_BYTES, "little") + text, placed
