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

import math
from collections.abc import Iterable, Mapping
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, shown
from .._base.text import Told, binary_size, told
from .._base.types import is_small_float
from .collector import collector_off

PREFIX_BYTES = 8
"""Bytes of the header's length, which precedes the header."""
MOST_HEADER_BYTES = 100_000_000
"""The largest header, as in other implementations of the format: a header must not exhaust memory."""
METADATA = "__metadata__"
"""The only key of the header that does not name a tensor."""

# The limit of NumPy before 2.0. A tensor of larger rank would load and then fail in numpy().
_MOST_DIMENSIONS = 32
_MOST_BYTES = 2**63 - 1
# Aligns the data, and so each tensor in it, to its elements.
_ALIGNMENT = 8

# Bits of one element, for every dtype of the format.
_BITS = {
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
}
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
}
_DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(code) for name, code in _NUMPY.items()}
_OF_DTYPE: dict[np.dtype[Any], str] = {dtype: name for name, dtype in _DTYPES.items()}
# ml_dtypes' names of the floats that NumPy lacks.
_SMALL_FLOATS = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
_OF_SMALL_FLOATS = {ours: name for name, ours in _SMALL_FLOATS.items()}


class TensorFileEntry(NamedTuple):
    """One tensor of a parameter file.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> kp.tensor_file_info("model.safetensors").tensors["weight"]
    TensorFileEntry(name='weight', dtype='F32', shape=(2,), offset=0, nbytes=8)
    """

    name: str
    """The tensor's name in the file."""
    dtype: str
    """The format's name of the dtype: "F32", "BF16", "I64" and so on."""
    shape: tuple[int, ...]
    """The number of elements on each axis; () for a scalar."""
    offset: int
    """Bytes from the start of the file's data."""
    nbytes: int
    """Its size in bytes."""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of the Tensor that `kp.load_tensors` creates from it.

        BF16 and the 8-bit floats become dtypes of ml_dtypes, or their bits (uint16, uint8) if that package is
        missing or too old to have them. Raises UnimplementedError for floats of 4 and 6 bits, which have no
        NumPy dtype.
        """
        found = _DTYPES.get(self.dtype)
        return tensor_dtype(self.dtype, f"The tensor {shown(self.name)}") if found is None else found

    @property
    def is_raw(self) -> bool:
        """Whether `numpy_dtype` holds only the bits, as unsigned integers."""
        return self.dtype not in _NUMPY and self.numpy_dtype.kind == "u"


TensorFileEntry.__module__ = "kompute_py"  # public; imported when first used


class Header(NamedTuple):
    """The contents of a checked header."""

    entries: dict[str, TensorFileEntry]
    """Entries by name, in the order of their bytes in the file."""
    metadata: dict[str, str]


def tensor_dtype(name: str, what: str) -> np.dtype[Any]:
    """The NumPy dtype for the format's `name`; see `TensorFileEntry.numpy_dtype`.

    `what` begins the error message.
    """
    found = _DTYPES.get(name)
    if found is not None:
        return found
    if name in _SMALL_FLOATS:
        return _small_float(name)
    raise UnimplementedError(
        f"{what} has dtype {name}, which has {_BITS[name]} bits an element, and NumPy has no such dtype; "
        "select the other tensors with names="
    )


@cache
def _small_float(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _SMALL_FLOATS[name]))
    except (ImportError, AttributeError):
        return np.dtype(f"u{_BITS[name] // 8}")


def format_dtype(dtype: np.dtype[Any], what: Told) -> str:
    """The format's name of a NumPy dtype.

    Raises ArgumentTypeError, beginning with `what`, if the format lacks it.
    """
    found = _OF_DTYPE.get(dtype)
    if found is None and is_small_float(dtype):
        found = _OF_SMALL_FLOATS.get(dtype.name)
    elif found is None and not dtype.isnative:
        found = _OF_DTYPE.get(dtype.newbyteorder("="))
    if found is None:
        if dtype.kind == "c":
            fix = "save its real and imaginary parts: data.view(np.float64)"
        elif dtype.names:
            fix = "save each of its fields, or its bytes: data.view(np.uint8)"
        else:
            fix = "save its bytes: data.view(np.uint8)"
        raise ArgumentTypeError(f"{told(what)} has dtype {dtype}, which the safetensors format lacks; {fix}")
    return found


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


def parse_header(text: bytes, data_bytes: int) -> Header:
    """Parses the header `text` of a file with `data_bytes` bytes of data after it.

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
            [_entry(name, fields) for name, fields in content.items()], key=itemgetter(slice(3, None))
        )
    position = 0
    previous = ""
    for entry in entries:
        if entry.offset != position:
            what = "overlaps" if entry.offset < position else "leaves a gap behind"
            before = f"the tensor {shown(previous)}" if previous or position else "the start of the data"
            raise InvalidArgumentError(
                f"The tensor {shown(entry.name)} begins at byte {entry.offset} of the data and {what} "
                f"{before}, "
                f"which ends at byte {position}"
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
        _check_text(key, f"The header's {METADATA} has a key that")
        _check_text(value, f"The header's {METADATA} has under {shown(key)} a text that")
    return content


def _check_text(text: str, what: str) -> None:
    # JSON can contain half of a surrogate pair, which could be neither printed nor saved again.
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} is not Unicode: {shown(text)}") from None


def _named(name: str) -> str:
    return f"The tensor {shown(name)}"


def _entry(name: str, fields: Any) -> TensorFileEntry:
    _check_text(name, "The name of a tensor")
    if type(fields) is not dict:
        raise InvalidArgumentError(f"{_named(name)} is described by {_kind(fields)}, not by an object")
    for key in ("dtype", "shape", "data_offsets"):
        if key not in fields:
            raise InvalidArgumentError(f"{_named(name)} has no {key}")
    dtype = fields["dtype"]
    if type(dtype) is not str or dtype not in _BITS:
        given = shown(dtype) if type(dtype) is str else _kind(dtype)
        raise InvalidArgumentError(f"{_named(name)} has the dtype {given}; known: {', '.join(_BITS)}")
    shape = _integers(fields["shape"], name, "has a shape that")
    if len(shape) > _MOST_DIMENSIONS:
        raise InvalidArgumentError(
            f"{_named(name)} has {len(shape)} dimensions; at most {_MOST_DIMENSIONS} are allowed"
        )
    # With a 0 among them, the others may still be too large: their product overflows in other places.
    count = math.prod(shape)
    bits = count * _BITS[dtype]
    if (bits or math.prod(n for n in shape if n) * _BITS[dtype]) > _MOST_BYTES * 8:
        raise InvalidArgumentError(f"{_named(name)} has the shape {shape}, which is larger than any memory")
    if bits % 8:
        raise InvalidArgumentError(
            f"{_named(name)} has {count} elements of {_BITS[dtype]} bits, which end within a byte"
        )
    offsets = _integers(fields["data_offsets"], name, "has data_offsets that")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise InvalidArgumentError(
            f"{_named(name)} has data_offsets that are not a range [begin, end]: {list(offsets[:3])}"
        )
    begin, end = offsets
    if end - begin != bits // 8:
        raise InvalidArgumentError(
            f"{_named(name)} of shape {shape}, {dtype}, has {bits // 8} bytes, but its data_offsets "
            f"{begin} to {end} are {end - begin} bytes"
        )
    return TensorFileEntry(name, dtype, shape, begin, end - begin)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _integers(value: Any, name: str, what: str) -> tuple[int, ...]:
    if type(value) is not list:
        raise InvalidArgumentError(f"{_named(name)} {what} is {_kind(value)}, not an array")
    for number in value:
        if type(number) is not int or not 0 <= number <= _MOST_BYTES:  # a boolean is an int for isinstance
            given = shown(number) if type(number) in (int, float) else _kind(number)
            raise InvalidArgumentError(
                f"{_named(name)} {what} has {given}; give integers from 0 to {_MOST_BYTES}"
            )
    return tuple(value)


def build_header(
    tensors: Iterable[tuple[str, np.dtype[Any], tuple[int, ...]]], metadata: Mapping[str, str]
) -> tuple[bytes, list[TensorFileEntry]]:
    """The bytes before the data (length and header), and the entries in the order of their data.

    Tensors with large elements come first, which aligns each tensor to its elements. Raises ArgumentTypeError
    if the format lacks a dtype or a name or metadata is not a str; InvalidArgumentError if the format cannot
    hold a text or the header exceeds its limit.
    """
    from json import dumps
    from json.encoder import encode_basestring as quoted

    unplaced = []
    for name, dtype, shape in tensors:
        if type(name) is not str:
            raise ArgumentTypeError(
                f"The name of a tensor is a str, not {type(name).__name__}: {shown(name)}"
            )
        if name == METADATA:
            raise InvalidArgumentError(
                f"{METADATA!r} is reserved: give the tensor another name, or pass metadata="
            )
        _check_text(name, "The name of a tensor")
        kind = format_dtype(dtype, partial(_named, name))
        unplaced.append((-_BITS[kind], name, kind, shape, math.prod(shape) * dtype.itemsize))
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
    placed = []
    for _, name, kind, shape, nbytes in unplaced:
        placed.append(TensorFileEntry(name, kind, shape, position, nbytes))
        end = position + nbytes
        lengths = ",".join(map(str, shape))
        members.append(
            f'{quoted(name)}:{{"dtype":"{kind}","shape":[{lengths}],"data_offsets":[{position},{end}]}}'
        )
        position = end
    text = f"{{{','.join(members)}}}".encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > MOST_HEADER_BYTES:
        raise InvalidArgumentError(
            f"The header would have {binary_size(len(text))}, above the format's limit of "
            f"{MOST_HEADER_BYTES} bytes: save fewer tensors or less metadata in one file"
        )
    return len(text).to_bytes(PREFIX_BYTES, "little") + text, placed
