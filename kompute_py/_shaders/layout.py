"""Structured dtypes and the blocks of shaders: the dtype that fits a block, and a check of a given dtype.

The model. A block is a run of bytes; some belong to scalars and the rest is padding. Both a shader's
reflection (offsets, strides) and a NumPy dtype (offsets, itemsize) describe them. Both are *painted*: each
byte gets a code for its scalar's kind and its place in the scalar; padding is 0. A dtype fits if it has the
same code at every byte for which the shader's painting has one. So the grouping and the names of fields do
not matter, and the dtype may use the shader's padding.

Signed and unsigned integers of one size share a code, as does a shader's bool (32 bits), because the bits are
the same. Raw bytes and ml_dtypes' floats, which shaders treat as bits, match anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError
from .._base.text import Told, told
from .._base.types import DataTypes, is_small_float
from .type_text import type_text

Layout = Mapping[str, Any]

_SCALARS = {
    name: np.dtype(name)
    for name in (
        *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "float32", "float64"),
    )
} | {"bool": np.dtype("uint32"), "pointer": np.dtype("uint64")}
BUFFERS = ("storage buffer", "uniform buffer")
_KINDS = {"b": 1, "i": 1, "u": 1, "f": 2}
_ANY = 0xFFFF
_NONE: Mapping[str, Any] = {}
# Bytes of a block that are painted. The rest repeats the pattern or belongs to one long array.
_MOST_PAINTED = 1 << 20
_MOST_ROWS = 64


def scalar_dtype(kind: str) -> np.dtype[Any]:
    """Raises UnavailableError for bfloat16 without the package ml_dtypes, which has it."""
    return DataTypes.bfloat16.dtype if kind == "bfloat16" else _SCALARS[kind]


class _Misfit(Exception):
    """The block has no dtype; the message gives the reason."""


# -- from a block to a dtype ---------------------------------------------------------------------------------


def tail_of(block: Layout) -> Layout | None:
    """The member that is an array of run-time length; None if the block has a fixed size."""
    members = block["members"]
    last = members[-1] if members else None
    return last if last is not None and last["array"] and last["array"][0] == 0 else None


def element_dtype(block: Layout) -> np.dtype[Any] | None:
    """The dtype of one element of a block: of the array's elements if the block is one array, else of all
    members.

    None if NumPy cannot express it, or if an array of run-time length follows other members; then
    `block_dtype` needs the array's length.
    """
    try:
        return _element(block)
    except (_Misfit, ValueError, OverflowError, MemoryError, RecursionError):
        return None


def block_dtype(block: Layout, length: int | None, what: str) -> np.dtype[Any]:
    """`element_dtype`; with `length`, the dtype of the whole block with that many elements in its array of
    run-time length.

    `what` names the block in errors. Raises InvalidArgumentError if the block needs a length, has no such
    array, or has no dtype.
    """
    tail = tail_of(block)
    if length is not None and tail is None:
        raise InvalidArgumentError(f"{what} has no array of run-time length: omit length")
    if length is None and tail is not None and len(block["members"]) > 1:
        raise InvalidArgumentError(
            f"{what} ends with the array {_name(tail, 0)!r} of run-time length, after other members: give "
            "its "
            "number of elements, length=n"
        )
    try:
        return _element(block) if length is None else _struct(block, length)
    except _Misfit as error:
        raise InvalidArgumentError(f"{what} has no dtype: {error}") from None
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise InvalidArgumentError(f"{what} has no dtype in NumPy: {error}") from None


def _element(block: Layout) -> np.dtype[Any]:
    tail = tail_of(block)
    members = block["members"]
    if not members:
        raise _Misfit("it has no members")
    if len(members) == 1 and members[0]["array"] and members[0]["offset"] == 0:
        return _array(members[0], 1)
    if tail is not None:
        raise _Misfit("an array of run-time length follows other members")
    return _struct(block, None)


def _name(member: Layout, position: int) -> str:
    return member["name"] or f"member{position}"


def _struct(layout: Layout, length: int | None, size: int = 0) -> np.dtype[Any]:
    names: list[str] = []
    formats: list[np.dtype[Any]] = []
    offsets: list[int] = []
    end = 0
    for position, member in enumerate(layout["members"]):
        name = _name(member, position)
        while name in names:
            name += "_"
        if member["array"] and member["array"][0] == 0:
            member = {**member, "array": [length or 0, *member["array"][1:]]}
        formats.append(_array(member, 0))
        names.append(name)
        offsets.append(member["offset"])
        end = max(end, member["offset"] + formats[-1].itemsize)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": max(end, size)})


def _array(member: Layout, axis: int) -> np.dtype[Any]:
    """The dtype of `member` without its first `axis` array axes. An element is as long as its stride."""
    lengths, strides = member["array"], member["array_strides"]
    if not lengths:
        return _single(member, 0)
    made = _single(member, strides[-1])
    # From the inside out.
    for i in range(len(lengths) - 1, axis - 1, -1):
        made = _stretched(made, strides[i])
        made = np.dtype((made.base, (lengths[i], *made.shape)))
    if axis:
        made = _stretched(made, strides[axis - 1])
    return made


def _stretched(dtype: np.dtype[Any], stride: int) -> np.dtype[Any]:
    if dtype.itemsize == stride:
        return dtype
    if dtype.itemsize > stride:
        raise _Misfit(f"its elements of {dtype.itemsize} bytes lie {stride} bytes apart")
    return np.dtype({"names": ["value"], "formats": [dtype], "offsets": [0], "itemsize": stride})


def _single(member: Layout, stride: int) -> np.dtype[Any]:
    """One element of `member`, `stride` bytes long.

    If that is more than it needs, padding extends the last axis.
    """
    if member["kind"] == "struct":
        if not member["members"]:
            raise _Misfit(f"the type of {member['name']!r} has no layout")
        return _struct(member, None, stride)
    scalar = scalar_dtype(member["kind"])
    rows, columns = max(1, member["rows"]), max(1, member["columns"])
    shape: tuple[int, ...]
    if columns > 1:
        lines = rows if member["row_major"] else columns
        line = member["matrix_stride"]
        if line % scalar.itemsize:
            raise _Misfit(f"the matrix {member['name']!r} has a stride of {line} bytes")
        # The last line includes its padding. A member that begins in the padding overlaps it, which NumPy
        # allows.
        shape = (lines, line // scalar.itemsize)
    else:
        padded = stride // scalar.itemsize if stride % scalar.itemsize == 0 else 0
        length = max(rows, padded)
        shape = (length,) if length > 1 else ()
    return np.dtype((scalar, shape)) if shape else scalar


# -- painting ------------------------------------------------------------------------------------------------


def _codes(scalar: np.dtype[Any]) -> np.ndarray[Any, np.dtype[np.uint16]]:
    kind, size, repeat = scalar.kind, scalar.itemsize, 1
    if is_small_float(scalar) or kind not in "biufc":
        return np.full(size, _ANY, np.uint16)
    if kind == "c":
        kind, size, repeat = "f", size // 2, 2
    base = (_KINDS[kind] << 12) | (size << 6)
    return np.tile(np.arange(base, base + size, dtype=np.uint16), repeat)


def _paint_dtype(dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[np.uint16]]:
    if dtype.subdtype is not None:
        return np.tile(_paint_dtype(dtype.base), math.prod(dtype.shape))
    if dtype.fields is None:
        return _codes(dtype)
    painted = np.zeros(dtype.itemsize, np.uint16)
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]
        painted[offset : offset + field.itemsize] = _paint_dtype(field)
    return painted


def _paint_layout(layout: Layout, into: np.ndarray[Any, Any], offset: int, axis: int = 0) -> None:
    """Paints a member that starts at byte `offset`; bytes beyond the end of `into` are ignored."""
    if offset >= into.size:
        return
    lengths = layout["array"]
    if axis < len(lengths):
        stride = layout["array_strides"][axis]
        if stride == 0:
            return
        count = lengths[axis] or -(-(into.size - offset) // stride)
        count = min(count, -(-(into.size - offset) // stride))
        one = np.zeros(stride, np.uint16)
        _paint_layout(layout, one, 0, axis + 1)
        repeated = np.tile(one, count)[: into.size - offset]
        region = into[offset : offset + repeated.size]
        np.copyto(region, repeated, where=repeated != 0)
        return
    if layout["kind"] == "struct":
        for member in layout["members"]:
            _paint_layout(member, into, offset + member["offset"])
        return
    codes = _codes(scalar_dtype(layout["kind"]))
    rows, columns = max(1, layout["rows"]), max(1, layout["columns"])
    lines, line = (rows, columns) if layout["row_major"] and columns > 1 else (columns, rows)
    run = np.tile(codes, line)
    for i in range(lines):
        at = offset + i * layout["matrix_stride"]
        room = into[at : at + run.size]
        room[:] = run[: room.size]


# -- comparing -----------------------------------------------------------------------------------------------


def _misfits(block: Layout, dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    """The first bytes at which `count` elements of the structured `dtype` do not fit `block`.

    A buffer shorter than a fixed-size block does not fit; a longer one does.
    """
    none = np.zeros(0, np.intp)
    if not block["members"]:
        return none  # the shader has no layout to compare with
    nbytes = count * dtype.itemsize
    tail = tail_of(block)
    # If both repeat, the pattern repeats after the least common multiple of the two steps.
    steps = math.lcm(dtype.itemsize, tail["array_strides"][0] or 1) if tail is not None else 0
    begin = tail["offset"] if tail is not None else block["size"]
    length = min(nbytes, begin + 2 * steps, _MOST_PAINTED)
    wanted = np.zeros(length, np.uint16)
    for member in block["members"]:
        _paint_layout(member, wanted, member["offset"])
    one = _paint_dtype(dtype)
    given = np.tile(one, -(-length // one.size))[:length]
    wrong = np.flatnonzero((wanted != 0) & (given != wanted) & (given != _ANY))
    if misplaced := _misplaced(block, dtype, count):
        wrong = np.union1d(wrong, np.array(misplaced))
    if not wrong.size and nbytes < block["size"]:
        return np.array([nbytes])
    return wrong


def _misplaced(block: Layout, dtype: np.dtype[Any], count: int) -> list[int]:
    """The bytes of fields with the name of a member that lies elsewhere.

    Bytes of one kind, such as floats only, do not show this. Fields with other names are not compared.
    """
    sole = _sole_array(block)
    if sole is None:
        return _misnamed(block["members"], dtype, 0)
    if len(sole["array"]) > 1 or sole["kind"] != "struct":
        return []
    wrong = _misnamed(sole["members"], dtype, 0)
    named = {member["name"] for member in sole["members"]}.intersection(dtype.names or ())
    step = sole["array_strides"][0]
    if named and count > 1 and dtype.itemsize != step:
        wrong.append(max(dtype.itemsize, step))  # beyond the first element, which the message shows
    return wrong


def _misnamed(members: Sequence[Layout], dtype: np.dtype[Any], offset: int) -> list[int]:
    """The offsets of the fields of `dtype` with the name of a member that has another offset or padding."""
    by_name = {member["name"]: member for member in members if member["name"]}
    wrong: list[int] = []
    for name in dtype.names or ():
        field, start = (dtype.fields or _NONE)[name][:2]
        member = by_name.get(name)
        if member is None:
            continue
        base, last = field.base, field.shape[-1] if field.shape else 1
        if start != member["offset"]:
            wrong.append(offset + start)
        elif member["kind"] == "struct" and base.names is not None:
            if member["array"] and last > 1 and member["array_strides"][-1] != base.itemsize:
                wrong.append(offset + start + base.itemsize)
            wrong += _misnamed(member["members"], base, offset + start)
        elif member["kind"] != "struct" and base.names is None and last > 1:
            step = _padded_step(member)
            if step and last * base.itemsize != step:
                wrong.append(offset + start)
    return wrong


def _padded_step(member: Layout) -> int:
    """The bytes from line to line of a matrix, or from element to element of an array, if padding is between
    them; else 0.
    """
    scalar = scalar_dtype(member["kind"]).itemsize
    rows, columns = max(1, member["rows"]), max(1, member["columns"])
    if columns > 1:
        natural, step = scalar * (columns if member["row_major"] else rows), member["matrix_stride"]
    elif member["array"]:
        natural, step = scalar * rows, member["array_strides"][-1]
    else:
        return 0
    return step if step != natural else 0


def check(block: Layout, dtype: np.dtype[Any], count: int, what: Told, number: int) -> None:
    """Raises InvalidArgumentError if `count` elements of the structured `dtype` do not fit the block of
    binding `number`.

    The message begins with `what` and shows both layouts side by side and the dtype that fits.
    """
    wrong = _misfits(block, dtype, count)
    if wrong.size:
        raise InvalidArgumentError(f"{told(what)} {_explain(block, dtype, count, wrong, number)}")


def check_push(block: Layout, dtype: np.dtype[Any], count: int, what: str) -> None:
    """Raises InvalidArgumentError if `count` elements of the structured `dtype` do not fit a block of push
    constants.

    A field with the name of another member does not fit either. The message shows both layouts side by side.
    """
    wrong = _misfits(block, dtype, count)
    if wrong.size:
        table = _table(block, dtype, count, wrong)
        raise InvalidArgumentError(
            f"{what} does not have the layout of the shader's block:\n    {table}\nGive the values as a "
            "list, or an "
            "array with the fields at the offsets of the shader's members"
        )


class _Row(NamedTuple):
    offset: int
    type: str
    name: str


def _leaves(layout: Layout, offset: int, name: str) -> Iterator[_Row]:
    if layout["kind"] == "struct":
        inner = f"{name}[0]" if layout["array"] else name
        for position, member in enumerate(layout["members"]):
            member_name = _name(member, position)
            yield from _leaves(
                member, offset + member["offset"], f"{inner}.{member_name}" if inner else member_name
            )
        return
    text = type_text(layout)
    natural = scalar_dtype(layout["kind"]).itemsize * max(1, layout["rows"])
    if layout["columns"] > 1:
        text += f" (a line each {layout['matrix_stride']} bytes)"
    elif layout["array"] and layout["array_strides"][-1] != natural:
        text += f" (one each {layout['array_strides'][-1]} bytes)"
    yield _Row(offset, text, name)


def _fields(dtype: np.dtype[Any], offset: int, name: str) -> Iterator[_Row]:
    base = dtype.base
    if base.names is None:
        yield _Row(offset, f"{base}{list(dtype.shape) if dtype.shape else ''}", name)
        return
    inner = name + "[0]" * len(dtype.shape)
    for each in base.names:
        field, start = (base.fields or _NONE)[each][:2]
        yield from _fields(field, offset + start, f"{inner}.{each}" if inner else each)


def _sole_array(block: Layout) -> Layout | None:
    """The only member of a block, if it is an array."""
    members = block["members"]
    return members[0] if len(members) == 1 and members[0]["array"] and members[0]["offset"] == 0 else None


def _explain(
    block: Layout, dtype: np.dtype[Any], count: int, wrong: np.ndarray[Any, Any], number: int
) -> str:
    needs_length = tail_of(block) is not None and _sole_array(block) is None
    fitting = None if needs_length else element_dtype(block)
    return (
        f"does not have the layout of the shader's block:\n    {_table(block, dtype, count, wrong)}"
        "\nMake the data with dtype=kp.struct_dtype(shader, "
        f"{number}{', length=n' if needs_length else ''}), of the kernel or its SPIR-V"
        + (f", which is\n    {fitting!r}" if fitting is not None else "")
    )


def _table(block: Layout, dtype: np.dtype[Any], count: int, wrong: np.ndarray[Any, Any]) -> str:
    """Both layouts side by side, with marks at the bytes that are `wrong`."""
    members = block["members"]
    sole = _sole_array(block)
    if sole is not None:
        one = {**sole, "array": sole["array"][1:], "array_strides": sole["array_strides"][1:]}
        shader = list(_leaves(one, 0, "" if one["kind"] == "struct" else _name(sole, 0)))
        step = sole["array_strides"][0]
        sizes = (step, dtype.itemsize, step != dtype.itemsize)
    else:
        shader = [row for i, m in enumerate(members) for row in _leaves(m, m["offset"], _name(m, i))]
        step = 0
        nbytes = count * dtype.itemsize
        sizes = (block["size"], nbytes, nbytes < block["size"])
    left = {row.offset: row for row in reversed(shader)}
    right = {row.offset: row for row in reversed(list(_fields(dtype, 0, "")))}
    # Only the first element of an array is shown; later ones differ only if the sizes do.
    first = wrong[wrong < step] if step else wrong
    offsets = sorted(left.keys() | right.keys())[:_MOST_ROWS]
    table = [("byte", "shader", "dtype", "")]
    for offset, end in zip(offsets, [*offsets[1:], math.inf], strict=True):
        a, b = left.get(offset), right.get(offset)
        table.append(
            (
                str(offset),
                f"{a.type} {a.name}".rstrip() if a else "",
                f"{b.type} {b.name}".rstrip() if b else "",
                "<-" if np.any((first >= offset) & (first < end)) else "",
            )
        )
    table.append(("bytes", str(sizes[0]), str(sizes[1]), "<-" if sizes[2] else ""))
    widths = [max(len(row[i]) for row in table) for i in range(4)]
    lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n    ".join(lines)
