"""From the values of a block to the bytes that the shader declares: push constants by name and by position,
and uniform blocks.

The shader's reflected layout is the truth. `leaves` walks it, through structs, arrays and matrices down to
scalars, and takes a value
along: each scalar gets its part of the value. Everything is packed by that walk:

- By name: a value for each member. A scalar takes a number; a vector a sequence of its length; a matrix of R
  rows and C columns a sequence of R rows, whatever its order in memory; an array a sequence of its length; a
  struct a mapping of all its members, or a sequence in their order; a buffer reference a Tensor, or an
  address as an int.
- By position, lists in lists: the members' values in their order. For a block of one member, that member's
  value, too.
- By position, flat numbers: the block's scalars in the order of their offsets (a column-major matrix column
  by column). Arrays are memory, so they count as flat, whatever their shape.
- By position, bytes or an array with exactly the block's bytes: bit by bit. A structured dtype must have the
  block's layout then.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from .._base.arrays import refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._base.text import nearest
from .._base.types import DeviceMemoryObject
from .._base.warn import warn
from .layout import check_push
from .scalars import (
    MOST_VALUES,
    Scalar,
    constant_scalar,
    is_sequence,
    listed,
    pack_scalar,
    reads_others,
    require_numbers,
    typed,
)
from .type_text import type_text

# Types of numbers that `struct` packs by the same rules as `pack_scalar`, or refuses.
_NUMBERS = frozenset({int, float, bool, *(np.dtype(code).type for code in "bBhHiIqQefd")})
_CANNOT = (struct.error, OverflowError, TypeError)


class _Flat:
    """Stands for a value that is not looked into: the walk gives the scalars alone."""


_FLAT: Any = _Flat()


class Leaf(NamedTuple):
    """One scalar of a block: bytes from the block's start, its type, its name for errors, and the value for
    it.

    Without a value, the name of the type that a buffer reference leads to.
    """

    offset: int
    scalar: Scalar
    name: str
    value: Any


def leaves(
    layout: Mapping[str, Any], offset: int, what: str, value: Any = _FLAT, axis: int = 0
) -> Iterator[Leaf]:
    """The scalars of a reflected layout that starts at `offset`, each with its part of `value`. `what` names
    the layout.

    Raises InvalidArgumentError if a part of the value has another length or lacks a member, ArgumentTypeError
    if it is of another kind.
    """
    lengths = layout["array"]
    if axis < len(lengths):
        n, stride = lengths[axis], layout["array_strides"][axis]
        for i, each in enumerate(_parts(value, n, what, f"an array of {n}", "elements")):
            yield from leaves(layout, offset + i * stride, f"{what}[{i}]", each, axis + 1)
        return
    if layout["kind"] == "struct":
        members = named_members(layout)
        dot = f"{what}." if what else ""
        for member, each in zip(members, _of_members(value, members, what), strict=True):
            yield from leaves(member, offset + member["offset"], dot + member["name"], each)
        return
    scalar = constant_scalar(layout["kind"])
    rows, columns = max(1, layout["rows"]), max(1, layout["columns"])
    if columns > 1:
        stride = layout["matrix_stride"]
        for r, row in enumerate(
            _parts(value, rows, what, f"a matrix of {rows} rows and {columns} columns", "rows")
        ):
            for c, each in enumerate(_parts(row, columns, f"{what}[{r}]", f"a row of {columns} numbers")):
                at = r * stride + c * scalar.size if layout["row_major"] else c * stride + r * scalar.size
                # As it is indexed: in the value by row and column, in GLSL by column and row.
                name = f"{what}[{c}][{r}]" if each is _FLAT else f"{what}[{r}][{c}]"
                yield Leaf(offset + at, scalar, name, each)
    elif rows > 1:
        for r, each in enumerate(_parts(value, rows, what, f"a vector of {rows}", "numbers")):
            yield Leaf(offset + r * scalar.size, scalar, f"{what}[{r}]", each)
    else:
        if layout["kind"] == "pointer" and value is not _FLAT:
            _check_reference(value, layout["type_name"], what)
        yield Leaf(offset, scalar, what, layout["type_name"] if value is _FLAT else value)


def named_members(layout: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The members of a struct. One without a name is called by its position: ``member1``."""
    return tuple(
        member if member["name"] else {**member, "name": f"member{i}"}
        for i, member in enumerate(layout["members"])
    )


def _of_members(value: Any, members: tuple[Mapping[str, Any], ...], what: str) -> Iterable[Any]:
    """The members' values of a struct, given by name or in order."""
    if isinstance(value, np.ndarray) and value.dtype.names and value.size == 1:
        refuse_mask(value, what)
        value = value.reshape(())[()]
    if isinstance(value, np.void) and value.dtype.names:
        value = {name: value[name] for name in value.dtype.names}
    names = [member["name"] for member in members]
    if not isinstance(value, Mapping):
        return _parts(value, len(members), what, f"a struct of {', '.join(names)}", "values")
    # A name that is wrong before those that are missing: the one is mostly meant to be one of the others.
    says = ""
    if wrong := sorted(map(str, value.keys() - set(names))):
        says = f"{wrong[0]!r} is none of them{nearest(wrong[0], names)}"
    elif missing := [name for name in names if name not in value]:
        says = f"{', '.join(map(repr, missing))} {'is' if len(missing) == 1 else 'are'} missing"
    if says:
        raise InvalidArgumentError(f"{what} is a struct of {', '.join(names)}; {says}")
    return [value[name] for name in names]


def _parts(value: Any, length: int, what: str, kind: str, parts: str = "numbers") -> Iterable[Any]:
    """The `length` elements of `value`."""
    if value is _FLAT:
        return repeat(_FLAT, length)
    value = typed(value, what)
    refuse_mask(value, what)
    if not is_sequence(value):
        raise ArgumentTypeError(
            f"{what} is {kind}: give {length} {parts}, not {shown(value)} ({type(value).__name__})"
        )
    if isinstance(value, np.ndarray) and value.shape == (1, length):
        value = value[0]  # of a matrix of one row, as float1x3, which is a vector or an array in SPIR-V
    made = listed(value, length, what)
    if len(made) != length:
        given = f"{len(made)} {parts}" if len(made) < length else f"more than {length}"
        if isinstance(value, np.ndarray):
            given = f"an array of shape {value.shape}"
        elif hasattr(value, "__len__"):
            given = f"{len(value)} {parts}"
        raise InvalidArgumentError(f"{what} is {kind}: give {length} {parts}, not {given}")
    return made


def _check_reference(value: Any, type_name: str, what: str) -> None:
    """Raises ArgumentTypeError if `value` is neither a Tensor nor an address."""
    if isinstance(value, DeviceMemoryObject):
        if value._is_image:
            raise ArgumentTypeError(
                f"{what} is a buffer reference; {value._describe()} is an image: give a Tensor"
            )
    elif isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        hint = ": make one with mgr.tensor(array)" if isinstance(value, (np.ndarray, list, tuple)) else ""
        raise ArgumentTypeError(
            f"{what} is a buffer reference ({type_name or 'buffer'}): give a Tensor, or an address as an "
            "int, "
            f"not {type(value).__name__}{hint}"
        )


def _pack_leaves(found: Iterable[Leaf], size: int) -> bytes:
    packed = bytearray(size)
    for offset, scalar, name, value in found:
        if scalar.name == "pointer" and isinstance(value, DeviceMemoryObject):
            value = value.device_address  # type: ignore[attr-defined]
        packed[offset : offset + scalar.size] = pack_scalar(value, scalar, name)
    return bytes(packed)


def pack_struct(layout: Mapping[str, Any], value: Any, what: str) -> bytes:
    """The bytes of a struct of fixed size, such as a uniform block, from a mapping of its members or a
    sequence in their order.

    `what` names it in errors. Raises what `leaves` and `pack_scalar` raise.
    """
    return _pack_leaves(leaves(layout, 0, what, value), layout["size"])


class Block:
    """Packs the push constants of one shader, by name (a Kernel's) and by position (an Algorithm's)."""

    __slots__ = (
        "_by_number", "_components", "_known", "_layout", "_struct", "has_references", "members",
        "name", "names", "plain", "size", "start", "zeros",
    )  # fmt: skip

    def __init__(self, reflected: Mapping[str, Any]) -> None:
        self.name: str = reflected["block_name"] or reflected["name"] or "push constants"
        self.size: int = reflected["size"]
        self.start: int = reflected["offset"]
        """Bytes that the shader's block begins after; offsets here count from there."""
        self.zeros: bytes = bytes(self.size)
        self.members: tuple[Mapping[str, Any], ...] = named_members(reflected["layout"])
        self.names: tuple[str, ...] = tuple(member["name"] for member in self.members)
        at_zero = [{**member, "offset": member["offset"] - self.start} for member in self.members]
        self._layout: Mapping[str, Any] = {**reflected["layout"], "members": at_zero, "size": self.size}
        self._known: set[np.dtype[Any]] = set()  # dtypes of arrays that were given
        # Members that alias (merged blocks) keep the first; a value cannot be written to one place twice.
        components: list[Leaf] = []
        end = 0
        for leaf in sorted(leaves(self._layout, 0, ""), key=lambda each: each.offset):
            if leaf.offset >= end:
                components.append(leaf)
                end = leaf.offset + leaf.scalar.size
        self._components = components
        codes, at = ["<"], 0
        for offset, scalar, _, _ in components:
            codes.append(f"{offset - at}x{scalar.code}" if offset > at else scalar.code)
            at = offset + scalar.size
        codes.append(f"{self.size - at}x" if self.size > at else "")
        self._struct = struct.Struct("".join(codes))
        kinds = {each.scalar.name for each in components}
        self.has_references: bool = "pointer" in kinds
        # Whether `_struct` packs numbers as `pack_scalar` does, and whether each member is one of them.
        self.plain: bool = not kinds & {"bool", "pointer"}
        self._by_number: bool = self.plain and self.names == tuple(self.component_names)

    @property
    def numbers(self) -> list[tuple[str, int]]:
        """(code of `struct`, offset) of each member if all are plain numbers, else none."""
        if not self._by_number:
            return []
        return [(component.scalar.code, component.offset) for component in self._components]

    @property
    def reference_names(self) -> list[str]:
        """The members with buffer references."""
        return [
            each["name"]
            for each in self.members
            if any(leaf.scalar.name == "pointer" for leaf in leaves(each, 0, ""))
        ]

    @property
    def component_names(self) -> list[str]:
        """Names of the scalars in the order in which a flat list fills them."""
        return [component.name for component in self._components]

    # -- by name ---------------------------------------------------------------------------------------------

    def pack_named(self, values: Mapping[str, Any], who: str) -> bytes:
        """The block's bytes from a value for every member; names of other things are ignored. `who`
        begins errors.

        Raises InvalidArgumentError if a member is missing, out of range or of another length,
        ArgumentTypeError for a value that is not a number.
        """
        if self._by_number:
            try:
                given = [values[name] for name in self.names]
                if _NUMBERS.issuperset(map(type, given)):
                    return self._struct.pack(*given)
            except (KeyError, *_CANNOT):
                pass  # the same below, by name
        return _pack_leaves(self._leaves_of(values, who), self.size)

    def references(self, values: Mapping[str, Any], who: str) -> tuple[Any, ...]:
        """The tensors among the values; `pack_named` puts their addresses into the block.

        Raises what it raises.
        """
        if not self.has_references:
            return ()
        return tuple(
            leaf.value for leaf in self._leaves_of(values, who) if isinstance(leaf.value, DeviceMemoryObject)
            and leaf.scalar.name == "pointer"
        )  # fmt: skip

    def _leaves_of(self, values: Mapping[str, Any], who: str) -> Iterator[Leaf]:
        missing = [name for name in self.names if name not in values]
        if missing:
            raise InvalidArgumentError(
                f"{who}: missing push constant{'s' if len(missing) > 1 else ''} {', '.join(missing)}: "
                "it has "
                + ", ".join(
                    f"{type_text(m)} {name}" for m, name in zip(self.members, self.names, strict=True)
                )
            )
        for member in self._layout["members"]:
            yield from leaves(member, member["offset"], f"{who}: {member['name']}", values[member["name"]])

    # -- by position -----------------------------------------------------------------------------------------

    def pack(self, values: Any) -> bytes:
        """The block's bytes from numbers by position, values by name, an array, or bytes: see the module for
        the rules.

        Raises InvalidArgumentError for another count, size or layout, for names that the block has not, and
        for a number that does not fit; ArgumentTypeError for a value that is not a number. Warns, once for
        each dtype, if an array goes in bit by bit and the shader reads other numbers in its bits.
        """
        if (
            (type(values) is list or type(values) is tuple)
            and self.plain
            and _NUMBERS.issuperset(map(type, values))
        ):
            try:
                return self._struct.pack(*values)
            except _CANNOT:
                pass  # the same below, by name
        if isinstance(values, Mapping):
            return self._by_name(values)
        values = typed(values, "push_consts")
        if isinstance(values, (bytes, bytearray, memoryview)):
            return self._raw(values)
        if isinstance(values, np.ndarray):
            return self._array(values)
        if isinstance(values, (int, float, np.generic)):
            values = [values]
        elif not is_sequence(values):
            raise ArgumentTypeError(
                f"push_consts are {kind_of(values)}; give a list of numbers, an array or bytes"
            )
        made = listed(values, MOST_VALUES, "push_consts")
        if any(map(_is_part, made)):
            if len(self.names) == 1 and len(made) != 1:
                made = [made]
            if len(made) != len(self.names):
                raise InvalidArgumentError(
                    f"push_consts are values for {len(made)} members; the shader's block {self.name} has "
                    f"{len(self.names)}: "
                    f"{', '.join(self.names)}"
                )
            return self._by_name(dict(zip(self.names, made, strict=True)))
        return self._flat(made, len(made))

    def _by_name(self, values: Mapping[str, Any]) -> bytes:
        unknown = [name for name in values if name not in self.names]
        if unknown:
            raise InvalidArgumentError(
                f"push_consts: {', '.join(map(shown, unknown))} cannot be set: the shader's block "
                f"{self.name} has {', '.join(self.names)}"
            )
        found = self._leaves_of(values, "push_consts")
        return _pack_leaves(map(_addressed, found) if self.has_references else found, self.size)

    def _raw(self, values: bytes | bytearray | memoryview) -> bytes:
        try:
            raw = bytes(values)
        except (ValueError, BufferError) as error:  # a memoryview that was released
            raise ArgumentTypeError(f"push_consts have no bytes: {error}") from None
        if len(raw) != self.size:
            raise InvalidArgumentError(
                f"push_consts have {len(raw)} bytes; the shader's block {self.name} has {self.size} bytes"
            )
        return raw

    def _array(self, values: np.ndarray[Any, Any]) -> bytes:
        if type(values) is not np.ndarray:
            refuse_mask(values, "push_consts")
        if values.nbytes == self.size and not values.dtype.hasobject:
            own = values.astype(values.dtype.newbyteorder("="), copy=False)
            if values.dtype not in self._known:
                self._look_at(own)
            return own.tobytes()
        if values.dtype.names is not None:
            raise InvalidArgumentError(
                f"push_consts are a record of {values.nbytes} bytes; the shader's block {self.name} has "
                f"{self.size} bytes"
            )
        require_numbers(values.dtype, "push_consts")
        # Of another number, nothing is copied: a broadcast array may stand for more than there is memory.
        return self._flat(
            values.ravel().tolist() if values.size == len(self._components) else [], values.size
        )

    def _flat(self, values: list[Any], count: int) -> bytes:
        """Packs numbers in the order of the offsets. `count` says how many were given."""
        components = self._components
        if count != len(components):
            # In bytes too, since Kompute's users think of the block so. A surplus value counts as 4 bytes.
            given = sum(each.scalar.size for each in components[:count]) + 4 * max(0, count - len(components))
            raise InvalidArgumentError(
                f"push_consts have {count} values ({given} bytes); the shader's block {self.name} has "
                f"{len(components)} ({self.size} bytes): {', '.join(self.component_names)}"
            )
        found = []
        for (offset, scalar, name, type_name), value in zip(components, values, strict=True):
            what = f"push_consts: {name}"
            if scalar.name == "pointer":
                _check_reference(value, type_name, what)
            found.append(Leaf(offset, scalar, what, value))
        return _pack_leaves(found, self.size)

    def _look_at(self, values: np.ndarray[Any, Any]) -> None:
        """Raises if an array that goes in bit by bit has fields elsewhere than the block; warns, once, if the
        shader reads other
        numbers in its bits."""
        dtype = values.dtype
        if dtype.names is not None:
            check_push(self._layout, dtype, values.size, "push_consts are an array that")
        depends = False
        # Anything else is raw bytes.
        numbers = dtype.kind in "biuf" and (dtype.itemsize > 1 or dtype.kind == "b")
        for offset, scalar, name, _ in self._components if numbers else ():
            number = values.reshape(-1)[offset // dtype.itemsize] if scalar.size == dtype.itemsize else None
            others, on_number = reads_others(scalar, dtype, number)
            depends |= on_number
            if others:
                self._known.add(dtype)
                warn(
                    f"push_consts are an array of {dtype} with the bytes of the shader's block {self.name}: "
                    "they go in bit by bit, "
                    f"and the shader reads {scalar.name} in {name!r}. Give a list, which is converted, or "
                    "array.tobytes() if the bits are meant"
                )
                return
        if not depends:  # on the numbers that are given
            self._known.add(dtype)

    def unpack(self, packed: bytes) -> tuple[bool | int | float, ...]:
        """The values of the scalars in a block's bytes, in the order of `component_names`."""
        return tuple(
            bool(value) if component.scalar.name == "bool" else value
            for value, component in zip(self._struct.unpack(packed), self._components, strict=True)
        )


def _addressed(leaf: Leaf) -> Leaf:
    """Raises ArgumentTypeError for a Tensor as a buffer reference: an algorithm's constants would not keep it
    alive.
    """
    if leaf.scalar.name == "pointer" and isinstance(leaf.value, DeviceMemoryObject):
        raise ArgumentTypeError(
            f"{leaf.name} is a buffer reference; push_consts are numbers: give tensor.device_address and "
            "keep the tensor, or use "
            "mgr.kernel, which takes the Tensor"
        )
    return leaf


def _is_part(value: Any) -> bool:
    """Whether `value` is the value of several scalars, so that the list with it is not flat."""
    return is_sequence(value) or isinstance(value, (Mapping, np.void, DeviceMemoryObject))
