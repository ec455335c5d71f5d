"""Push constants by the names of their members, packed by the shader's layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base.arrays import refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._base.text import nearest
from .._base.types import DeviceMemoryObject
from .constants import SCALARS, pack_scalar
from .type_text import type_text


class PushMembers:
    """Packs the members of one shader's push-constant block.

    A scalar takes a number; a vector a sequence of its length; a matrix of R rows and C columns a sequence of R rows (an
    array of shape (R, C)), whatever its order in memory; an array a sequence of its length; a struct a mapping of all its
    members, or a sequence in their order; a buffer reference a Tensor, or an address as an int. Numbers are converted to the declared type as `mgr.algorithm` does.
    """

    __slots__ = ("_fast", "_start", "has_references", "members", "name", "names", "size")

    def __init__(self, reflected: Mapping[str, Any]) -> None:
        self.name: str = reflected["block_name"] or reflected["name"] or "push constants"
        self.size: int = reflected["size"]
        self._start: int = reflected["offset"]
        self.members: tuple[Mapping[str, Any], ...] = tuple(
            _named(member, i) for i, member in enumerate(reflected["layout"]["members"])
        )
        self.names: tuple[str, ...] = tuple(member["name"] for member in self.members)
        self.has_references: bool = any(map(_has_reference, self.members))
        self._fast = self._plan()

    def _plan(self) -> struct.Struct | None:
        """One struct for blocks of plain numbers, which most are."""
        codes, at = ["<"], 0
        for member in sorted(self.members, key=lambda m: m["offset"]):
            plain = not member["array"] and member["rows"] <= 1 and member["columns"] <= 1
            if not plain or member["kind"] not in SCALARS or member["kind"] in ("bool", "pointer"):
                return None
            offset = member["offset"] - self._start
            if offset < at:
                return None
            scalar = SCALARS[member["kind"]]
            codes.append(f"{offset - at}x{scalar.code}")
            at = offset + scalar.size
        if [m["offset"] for m in self.members] != sorted(m["offset"] for m in self.members):
            return None
        codes.append(f"{self.size - at}x")
        return struct.Struct("".join(codes))

    def references(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The tensors among the values: those whose addresses `pack` puts into the block."""
        found: list[Any] = []
        if self.has_references:
            for name in self.names:
                _collect(values.get(name), found)
        return tuple(found)

    def pack(self, values: Mapping[str, Any], kernel: str) -> bytes:
        """The block's bytes from a value for every member.

        Raises InvalidArgumentError for a member that is missing, out of range or of another length, ArgumentTypeError for what
        is no number.
        """
        missing = [name for name in self.names if name not in values]
        if missing:
            raise InvalidArgumentError(
                f"{kernel} misses its push constant{'s' if len(missing) > 1 else ''} {', '.join(missing)}: "
                f"it has {', '.join(f'{type_text(member)} {name}' for member, name in zip(self.members, self.names, strict=True))}"
            )
        if self._fast is not None:
            try:
                given = [values[name] for name in self.names]
                for each in given:
                    if type(each) is not float and type(each) is not int:
                        refuse_mask(each, "A push constant")
                return self._fast.pack(*given)
            except (struct.error, OverflowError, TypeError):
                pass  # to complain about by name below, or a NumPy array of one number
        packed = bytearray(self.size)
        for member in self.members:
            _pack(
                packed,
                member,
                member["offset"] - self._start,
                values[member["name"]],
                f"{kernel}: {member['name']}",
            )
        return bytes(packed)


def _has_reference(layout: Mapping[str, Any]) -> bool:
    return layout["kind"] == "pointer" or any(map(_has_reference, layout["members"]))


def _collect(value: Any, found: list[Any]) -> None:
    if isinstance(value, DeviceMemoryObject):
        found.append(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            _collect(each, found)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _collect(each, found)


def _address(value: Any, layout: Mapping[str, Any], what: str) -> Any:
    """What a buffer reference is given, as its address."""
    if isinstance(value, DeviceMemoryObject):
        if value._is_image:
            raise ArgumentTypeError(
                f"{what} is a buffer reference; {value._describe()} is an image: give a Tensor"
            )
        return value.device_address  # type: ignore[attr-defined]
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return value
    hint = ": make one with mgr.tensor(array)" if isinstance(value, (np.ndarray, list, tuple)) else ""
    raise ArgumentTypeError(
        f"{what} is a buffer reference ({layout['type_name'] or 'buffer'}): give a Tensor, or an address as an int, "
        f"not {type(value).__name__}{hint}"
    )


def _named(member: Mapping[str, Any], position: int) -> Mapping[str, Any]:
    return member if member["name"] else {**member, "name": f"member{position}"}


def _pack(
    into: bytearray, layout: Mapping[str, Any], offset: int, value: Any, what: str, axis: int = 0
) -> None:
    lengths = layout["array"]
    if axis < len(lengths):
        stride = layout["array_strides"][axis]
        for i, each in enumerate(
            _sequence(value, lengths[axis], what, f"an array of {lengths[axis]}", "elements")
        ):
            _pack(into, layout, offset + i * stride, each, f"{what}[{i}]", axis + 1)
        return
    if layout["kind"] == "struct":
        pack_struct(into, layout, offset, value, what)
        return
    if layout["kind"] == "pointer":
        value = _address(value, layout, what)
    scalar = SCALARS[layout["kind"]]
    rows, columns = max(1, layout["rows"]), max(1, layout["columns"])
    if columns > 1:
        stride = layout["matrix_stride"]
        for r, row in enumerate(
            _sequence(value, rows, what, f"a matrix of {rows} rows and {columns} columns", "rows")
        ):
            for c, each in enumerate(_sequence(row, columns, f"{what}[{r}]", f"a row of {columns} numbers")):
                step = r * stride + c * scalar.size if layout["row_major"] else c * stride + r * scalar.size
                into[offset + step : offset + step + scalar.size] = pack_scalar(
                    each, scalar, f"{what}[{r}][{c}]"
                )
    elif rows > 1:
        for r, each in enumerate(_sequence(value, rows, what, f"a vector of {rows}", "numbers")):
            at = offset + r * scalar.size
            into[at : at + scalar.size] = pack_scalar(each, scalar, f"{what}[{r}]")
    else:
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(())
        into[offset : offset + scalar.size] = pack_scalar(value, scalar, what)


def pack_struct(into: bytearray, layout: Mapping[str, Any], offset: int, value: Any, what: str) -> None:
    """Packs a struct's members, by name or in order, into the bytes from `offset` on. `what` names it in errors."""
    members = [_named(member, i) for i, member in enumerate(layout["members"])]
    if isinstance(value, np.ndarray) and value.dtype.names and value.size == 1:
        value = value.reshape(())[()]
    if isinstance(value, np.void) and value.dtype.names:
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, Mapping):
        names = {member["name"] for member in members}
        # A name that is wrong before one that is missing: the one is mostly meant to be the other.
        wrong = sorted(set(value) - names) or sorted(names - set(value))
        if wrong:
            known = ", ".join(m["name"] for m in members)
            is_what = " is missing" if wrong[0] in names else f" is none of them{nearest(wrong[0], names)}"
            raise InvalidArgumentError(f"{what} is a struct of {known}; {wrong[0]!r}{is_what}")
        each = [value[member["name"]] for member in members]
    else:
        each = list(
            _sequence(
                value, len(members), what, f"a struct of {', '.join(m['name'] for m in members)}", "values"
            )
        )
    for member, item in zip(members, each, strict=True):
        _pack(into, member, offset + member["offset"], item, f"{what}.{member['name']}")


def _sequence(value: Any, length: int, what: str, kind: str, parts: str = "numbers") -> Sequence[Any]:
    refuse_mask(value, what)
    if isinstance(value, memoryview) or (
        hasattr(value, "_type_") and hasattr(value, "_length_")
    ):  # or of ctypes
        try:
            value = np.asarray(value)
        except ValueError as error:  # it was released
            raise ArgumentTypeError(f"{what} is a memoryview without memory: {error}") from None
    if (
        isinstance(value, (str, bytes, Mapping))
        or not hasattr(value, "__len__")
        or not hasattr(value, "__iter__")
        or (isinstance(value, np.ndarray) and not value.ndim)
    ):
        raise ArgumentTypeError(
            f"{what} is {kind}: give {length} {parts}, not {shown(value)} ({type(value).__name__})"
        )
    if len(value) != length:
        given = (
            f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"{len(value)} {parts}"
        )
        raise InvalidArgumentError(f"{what} is {kind}: give {length} {parts}, not {given}")
    return value
