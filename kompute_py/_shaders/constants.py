"""Specialization constants: from values by position, by id or by name to the data that a pipeline is made
with.

Each constant is one scalar, packed by the rules of `scalars`. An array with elements of the constant's size
is passed bit by bit.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._base.arrays import as_index, refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._base.types import is_small_float
from .._base.warn import warn
from .scalars import (
    MOST_VALUES,
    Scalar,
    constant_scalar,
    is_sequence,
    listed,
    pack_scalar,
    reads_others,
    typed,
)


def is_given(values: Any) -> bool:
    """Whether `values` hold any constant: None, [] and empty arrays do not."""
    if values is None:
        return False
    if isinstance(values, (np.ndarray, np.generic)):
        return values.size > 0
    try:
        # The length of a destroyed tensor is 0; it is refused like other tensors.
        return len(values) > 0 or hasattr(values, "is_init")
    except (TypeError, ValueError):  # no length, or a memoryview that was released
        return True


class Specialization(NamedTuple):
    """Packed specialization constants: the data, (id, offset, size) of each, and how many values had no
    constant.
    """

    data: bytes
    entries: tuple[tuple[int, int, int], ...]
    surplus: int


NO_SPECIALIZATION = Specialization(b"", (), 0)


class SpecConstants:
    """Packs specialization constants for one shader."""

    __slots__ = ("_by_id", "_by_name", "_conflicts", "_defaults", "_last", "_warned")

    def __init__(self, reflected: list[Mapping[str, Any]]) -> None:
        self._by_id: dict[int, tuple[Scalar, str]] = {
            c["id"]: (constant_scalar(c["type"]), c["name"]) for c in reflected
        }
        # SPIR-V does not promise unique names: None stands for one that several constants have.
        self._by_name: dict[str, int | None] = {}
        for c in reflected:
            if c["name"]:
                self._by_name[c["name"]] = None if c["name"] in self._by_name else c["id"]
        self._defaults: dict[int, bool | int | float] = {c["id"]: c["default"] for c in reflected}
        # Ids that two declarations share with different defaults: what each declares, as text.
        self._conflicts: dict[int, str] = {c["id"]: c["conflict"] for c in reflected if c.get("conflict")}
        self._last = max(self._by_id, default=-1)
        self._warned: set[int] = set()

    def _known(self) -> str:
        if not self._by_id:
            return "the shader has no specialization constants"
        listed = ", ".join(
            f"{i} ({name})" if name else str(i) for i, (_, name) in sorted(self._by_id.items())
        )
        return f"the shader has the ids {listed}"

    def pack(self, values: Any) -> Specialization:
        """`values` by position (element i is constant id i) or as ``{id or name: value}``.

        Array elements of the constant's size go in bit by bit; other numbers are converted to the declared
        type and raise InvalidArgumentError if they do not fit. An id or a name that the shader lacks
        raises InvalidArgumentError; positional values beyond the last id are counted as surplus.
        """
        if isinstance(values, Mapping):
            items = [(self._find(key), value) for key, value in values.items()]
            if len({identity for identity, _ in items}) < len(items):
                self.labelled(values)  # raises, and names it
            return self._pack_items(items, 0)
        values = typed(values, "spec_consts")
        bitwise = 0
        if isinstance(values, (int, float, np.generic)):
            values = [values]
        elif isinstance(values, (bytearray, memoryview)) or not is_sequence(values):
            raise ArgumentTypeError(
                f"spec_consts are {kind_of(values)}; give a list of numbers, an array, or {{id: value}}"
            )
        if isinstance(values, np.ndarray):
            refuse_mask(values, "spec_consts")
            if values.dtype.kind not in "biufO" and not is_small_float(values.dtype):
                raise ArgumentTypeError(
                    f"spec_consts have dtype {values.dtype}; give numbers, or {{name: value}}: "
                    f"{self._known()}"
                )
            bitwise = values.dtype.itemsize if values.dtype.kind in "biuf" else 0
            # Of more, nothing is copied: a broadcast array may stand for more than there is memory.
            few = values if values.size <= MOST_VALUES else values.flat[: MOST_VALUES + 1]
            flat = list(np.ravel(few).astype(values.dtype.newbyteorder("="), copy=False))
        else:
            flat = listed(values, MOST_VALUES, "spec_consts")
        if len(flat) > MOST_VALUES:
            raise InvalidArgumentError(
                f"spec_consts have more than {MOST_VALUES} values; no shader takes that many"
            )
        surplus = max(0, len(flat) - self._last - 1)
        items = []
        for position, value in enumerate(flat[: self._last + 1]):
            if position not in self._by_id:
                raise InvalidArgumentError(
                    f"spec_consts[{position}] is specialization constant id {position}, but {self._known()}; "
                    "give {id: value} to name the ids"
                )
            items.append((position, value))
        return self._pack_items(items, surplus, bitwise)

    def unpack(self, special: Specialization) -> dict[int, bool | int | float]:
        """The value of each constant, by id: what was packed, else the shader's default."""
        values = dict(self._defaults)
        for identity, offset, size in special.entries:
            scalar = self._by_id[identity][0]
            (value,) = struct.unpack("<" + scalar.code, special.data[offset : offset + size])
            values[identity] = bool(value) if scalar.name == "bool" else value
        return values

    def _find(self, key: Any) -> int:
        if isinstance(key, str):
            identity = self._by_name.get(key)
            if identity is None and key in self._by_name:
                ids = [str(i) for i, (_, name) in sorted(self._by_id.items()) if name == key]
                raise InvalidArgumentError(
                    f"{len(ids)} specialization constants are named {shown(key)}, ids {', '.join(ids)}: give "
                    "the id"
                )
            if identity is None and key.isdecimal() and key.isascii():
                identity = int(key)  # one that has no name is called by its number: specialize(**{"3": 16})
        elif isinstance(key, bool) or not hasattr(key, "__index__"):
            raise ArgumentTypeError(
                f"A specialization constant is named by its id, an int, or its name, not by {shown(key)} of "
                "type "
                f"{type(key).__name__}"
            )
        else:
            identity = as_index(key, "The id of a specialization constant")
        if identity is None or identity not in self._by_id:
            import difflib  # for the message alone

            near = difflib.get_close_matches(key if isinstance(key, str) else "", self._by_name, 1)
            hint = f", did you mean {near[0]!r}?" if near else ":"
            raise InvalidArgumentError(
                f"There is no specialization constant {shown(key)}{hint} {self._known()}"
            )
        return identity

    def label(self, identity: int) -> str | int:
        """The unique label of a constant: its name, or its id if it has no name or shares it."""
        name = self._by_id[identity][1]
        return name if name and self._by_name[name] is not None else identity

    def labelled(self, values: Mapping[Any, Any]) -> dict[str | int, Any]:
        """`values` by `label`.

        InvalidArgumentError for what pack() refuses, and for a constant that is given twice.
        """
        found: dict[str | int, Any] = {}
        for key, value in values.items():
            identity = self._find(key)
            label = self.label(identity)
            if label in found:
                raise InvalidArgumentError(
                    f"Specialization constant {identity}{f' ({label})' if isinstance(label, str) else ''} is "
                    "given twice"
                )
            found[label] = value
        return found

    def refuse_defaults(self, special: Specialization, what: str, how: str) -> None:
        """Refuses constants without a value that are declared with different defaults. `how` says how to give
        one, with the constant's label and its default in place of ``{}``.
        """
        if not self._conflicts:
            return
        given = {identity for identity, _, _ in special.entries}
        for identity, conflict in self._conflicts.items():
            if identity not in given:
                label, default = self.label(identity), self._defaults[identity]
                raise InvalidArgumentError(
                    f"{what}: specialization constant {identity} is declared with two defaults, {conflict}, "
                    f"and no value is given. Give one, {how.format(label, default)}, or declare the same: a "
                    f"local size by layout(local_size_x = {default}, local_size_x_id = {identity})"
                )

    def _pack_items(self, items: list[tuple[int, Any]], surplus: int, bitwise: int = 0) -> Specialization:
        data = bytearray()
        entries = []
        for identity, value in items:
            scalar, name = self._by_id[identity]
            called = f"{identity}{f' ({name})' if name else ''}"
            # A NumPy bool has one byte, VkBool32 four: it never goes in bit by bit.
            if bitwise == scalar.size:
                raw: bytes = value.tobytes()
                if identity not in self._warned and reads_others(scalar, value.dtype, value)[0]:
                    self._warned.add(identity)
                    warn(
                        f"spec_consts are an array of {value.dtype}, whose elements go in bit by bit; the "
                        "shader declares constant "
                        f"{called} as {scalar.name}. Give a list, which is converted"
                    )
            else:
                raw = pack_scalar(value, scalar, f"Specialization constant {called}")
            data += bytes(-len(data) % len(raw))
            entries.append((identity, len(data), len(raw)))
            data += raw
        return Specialization(bytes(data), tuple(entries), surplus)
