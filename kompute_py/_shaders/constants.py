"""From what callers give as push and specialization constants to the bytes that the shader declares.

The shader's reflected layout is the truth: a block is flattened once to its scalar components in the order of their
offsets (through vectors, matrices, arrays and nested structs), and values are converted one by one to the component's
type. An array that already has the block's bytes goes in untouched, because then the caller has done the layout.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from .._base.arrays import as_index, refuse_mask, to_array
from .._base.dtype_rules import beyond_both, differ_in_sign, kind_of
from .._base.errors import ArgumentTypeError, InvalidArgumentError, KomputeError, shown
from .._base.warn import warn
from .layout import check_push

# Beyond what any shader has: how many numbers are taken as constants, and how deep in lists.
_MOST_VALUES = 1 << 20
_DEEPEST = 64
_BYTES = ("B", "b", "c")  # formats of memoryviews of raw bytes


class Scalar(NamedTuple):
    """How a scalar type of a shader is packed."""

    name: str
    code: str
    size: int
    low: int
    high: int

    @property
    def kind(self) -> tuple[str, int]:
        """As `dtype_rules.kind_of` has it."""
        return "float" if self.code in "efd" else "int", self.size


def _integer(name: str, code: str, size: int) -> Scalar:
    bits = 8 * size
    signed = code.islower()
    return Scalar(name, code, size, -(1 << (bits - 1)) if signed else 0, (1 << (bits - signed)) - 1)


# A bool is a VkBool32 in specialization data. A buffer reference ("pointer") is its 64-bit address.
SCALARS: dict[str, Scalar] = {
    s.name: s
    for s in (
        Scalar("bool", "I", 4, 0, 1),
        _integer("int8", "b", 1),
        _integer("uint8", "B", 1),
        _integer("int16", "h", 2),
        _integer("uint16", "H", 2),
        _integer("int32", "i", 4),
        _integer("uint32", "I", 4),
        _integer("int64", "q", 8),
        _integer("uint64", "Q", 8),
        _integer("pointer", "Q", 8),
        Scalar("float16", "e", 2, 0, 0),
        Scalar("float32", "f", 4, 0, 0),
        Scalar("float64", "d", 8, 0, 0),
    )
}


def pack_scalar(value: Any, scalar: Scalar, what: str) -> bytes:
    """One `value` as `scalar`. `what` names the constant in errors."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # dates would become numbers
        value = value.item()
    if isinstance(value, np.ndarray) and value.size != 1:
        raise InvalidArgumentError(
            f"{what} is an array of shape {value.shape}; the shader declares one {scalar.name}: give one number"
        )
    try:
        return _packed(value, scalar, what)
    except KomputeError:
        raise
    except Exception as error:  # of the object's own __float__ or __index__
        raise ArgumentTypeError(
            f"{what} is {shown(value)} of type {type(value).__name__}, which is no number ({error}); the shader declares {scalar.name}"
        ) from error


def _packed(value: Any, scalar: Scalar, what: str) -> bytes:
    refuse_mask(value, what)
    if isinstance(value, (str, bytes, complex)) or not (
        hasattr(value, "__float__") or hasattr(value, "__index__")
    ):
        raise ArgumentTypeError(
            f"{what} is {shown(value)} of type {type(value).__name__}; the shader declares {scalar.name}"
        )
    if scalar.code in "efd":
        try:
            return struct.pack("<" + scalar.code, float(value))
        except OverflowError:
            raise InvalidArgumentError(
                f"{what} is {shown(value)}, out of range of the shader's {scalar.name}"
            ) from None
    if isinstance(value, float) or not hasattr(value, "__index__"):
        number = float(value)
        if not math.isfinite(number) or number != int(number):
            raise InvalidArgumentError(
                f"{what} is {shown(value)}; the shader declares {scalar.name}, which holds integers only"
            )
        value = int(number)
    whole = value.__index__()
    if not scalar.low <= whole <= scalar.high:
        raise InvalidArgumentError(
            f"{what} is {whole}, out of range of the shader's {scalar.name} ({scalar.low} to {scalar.high})"
        )
    return struct.pack("<" + scalar.code, whole)


class Component(NamedTuple):
    """One scalar of a block: bytes from the block's start, its type, and its name for errors."""

    offset: int
    scalar: Scalar
    name: str


def flatten(layout: Mapping[str, Any], base: int = 0, path: str = "") -> Iterator[Component]:
    """The scalars of a reflected layout that starts at `base`."""
    members = layout["members"]
    dimensions = list(zip(layout["array"], layout["array_strides"], strict=True))

    def element(offset: int, name: str) -> Iterator[Component]:
        if layout["kind"] == "struct":
            for member in members:
                yield from flatten(
                    member, offset + member["offset"], f"{name}.{member['name']}" if name else member["name"]
                )
            return
        scalar = SCALARS[layout["kind"]]
        rows, columns = max(1, layout["rows"]), max(1, layout["columns"])
        if columns == 1:
            for row in range(rows):
                yield Component(offset + row * scalar.size, scalar, f"{name}[{row}]" if rows > 1 else name)
            return
        stride = layout["matrix_stride"]
        for column in range(columns):
            for row in range(rows):
                step = (
                    row * stride + column * scalar.size
                    if layout["row_major"]
                    else column * stride + row * scalar.size
                )
                yield Component(offset + step, scalar, f"{name}[{column}][{row}]")

    def walk(axis: int, offset: int, name: str) -> Iterator[Component]:
        if axis == len(dimensions):
            yield from element(offset, name)
            return
        length, stride = dimensions[axis]
        for index in range(length):
            yield from walk(axis + 1, offset + index * stride, f"{name}[{index}]")

    yield from walk(0, base, path)


def _flat_values(values: Any, depth: int = 0) -> Iterator[Any]:
    if depth > _DEEPEST:
        raise InvalidArgumentError(f"The constants are lists in lists, deeper than {_DEEPEST}")
    for value in values:
        if isinstance(value, np.ndarray):
            yield from value.ravel().tolist()
        elif isinstance(value, (list, tuple)):
            yield from _flat_values(value, depth + 1)
        else:
            yield value


def _listed(values: Any, what: str) -> list[Any]:
    """The numbers in `values`, which may be lists in lists."""
    refuse_mask(values, what)
    made = list(islice(_flat_values(values), _MOST_VALUES + 1))
    if len(made) > _MOST_VALUES:
        raise InvalidArgumentError(f"{what} have more than {_MOST_VALUES} values; no shader takes so many")
    return made


def _typed(values: Any) -> Any:
    """A memoryview of typed elements as a NumPy array, an array of ctypes as a list of its numbers; anything else as it is."""
    if isinstance(values, (list, tuple, np.ndarray, bytes)):
        return values
    if isinstance(values, memoryview):
        try:
            return values if values.format in _BYTES else np.asarray(values)
        except ValueError as error:  # it was released
            raise ArgumentTypeError(f"The constants are a memoryview without memory: {error}") from None
    if hasattr(values, "_type_") and hasattr(values, "_length_"):
        return to_array(values, "The array of ctypes").ravel().tolist()
    return values


def is_given(values: Any) -> bool:
    """Whether `values` hold any constant: None, [] and empty arrays do not."""
    if values is None:
        return False
    if isinstance(values, (np.ndarray, np.generic)):
        return values.size > 0
    try:
        return len(values) > 0
    except (TypeError, ValueError):  # no length, or a memoryview that was released
        return True


def _bytes(values: Any, what: str) -> bytes:
    try:
        return bytes(values)
    except (ValueError, BufferError) as error:  # a memoryview that was released
        raise ArgumentTypeError(f"{what} have no bytes: {error}") from None


class PushBlock:
    """Packs push constants for one shader's block."""

    __slots__ = ("_components", "_has_bool", "_known", "_layout", "_struct", "name", "size", "zeros")

    def __init__(self, reflected: Mapping[str, Any]) -> None:
        self.name: str = reflected["block_name"] or reflected["name"] or "push constants"
        self.size: int = reflected["size"]
        self.zeros = bytes(self.size)
        self._known: set[np.dtype[Any]] = set()  # dtypes of arrays that were given
        start = reflected["offset"]
        layout = reflected["layout"]
        members = [{**member, "offset": member["offset"] - start} for member in layout["members"]]
        self._layout = {**layout, "members": members, "size": self.size}  # from the first byte that is given
        # Members that alias (merged blocks) keep the first; a value cannot be written to one place twice.
        components: list[Component] = []
        end = 0
        for component in sorted(flatten(reflected["layout"], -start), key=lambda c: c.offset):
            if component.offset >= end:
                components.append(component)
                end = component.offset + component.scalar.size
        self._components = components
        self._has_bool = any(c.scalar.name == "bool" for c in components)
        codes, at = ["<"], 0
        for component in components:
            codes.append(f"{component.offset - at}x" if component.offset > at else "")
            codes.append(component.scalar.code)
            at = component.offset + component.scalar.size
        codes.append(f"{self.size - at}x" if self.size > at else "")
        self._struct = struct.Struct("".join(codes))

    @property
    def component_names(self) -> list[str]:
        """Names of the scalars in the order in which a list of values fills them."""
        return [component.name for component in self._components]

    def pack(self, values: Any) -> bytes:
        """The block's bytes from a list of numbers, an array, or bytes.

        An array or bytes of exactly the block's size go in bit by bit; the fields of a structured array have to lie where the
        block's members do, else InvalidArgumentError names both layouts. Other numbers are converted one by one to the types
        that the shader declares: out of range, or a fraction for an integer, raises InvalidArgumentError, as does another
        count of values; what is no number raises ArgumentTypeError.
        """
        values = _typed(values)
        if isinstance(values, (list, tuple)):
            refuse_mask(values, "push_consts")
            if not self._has_bool:
                try:
                    return self._struct.pack(*values)
                except (struct.error, OverflowError, TypeError):
                    pass  # nested lists, or a value to complain about by name below
        elif isinstance(values, np.ndarray):
            if type(values) is not np.ndarray:
                refuse_mask(values, "push_consts")
            if values.nbytes == self.size and not values.dtype.hasobject:
                own = values.astype(values.dtype.newbyteorder("="), copy=False)
                if values.dtype not in self._known:
                    self._look_at(own)
                return own.tobytes()
            if values.size > _MOST_VALUES:
                raise InvalidArgumentError(
                    f"push_consts have {values.size} values; the shader's block {self.name} has {self.size} bytes"
                )
            if values.dtype.kind not in "biuf":
                raise InvalidArgumentError(
                    f"push_consts are an array of {values.dtype} with {values.nbytes} bytes; the shader's block "
                    f"{self.name} has {self.size} bytes"
                )
            values = values.ravel().tolist()
        elif isinstance(values, (bytes, bytearray, memoryview)):
            raw = _bytes(values, "push_consts")
            if len(raw) != self.size:
                raise InvalidArgumentError(
                    f"push_consts have {len(raw)} bytes; the shader's block {self.name} has {self.size} bytes"
                )
            return raw
        elif isinstance(values, (int, float, np.generic)):
            values = [values]
        elif not hasattr(values, "__iter__") or isinstance(values, (str, Mapping)):
            raise ArgumentTypeError(
                f"push_consts are a {type(values).__name__}; give a list of numbers, an array or bytes"
            )
        return self._pack_each(_listed(values, "push_consts"))

    def _look_at(self, values: np.ndarray[Any, Any]) -> None:
        """Warns, once, of an array that goes in bit by bit where the shader reads other numbers in its bits."""
        dtype = values.dtype
        depends = False
        if dtype.names is not None:
            check_push(self._layout, dtype, values.size, "push_consts are an array that")
        # Anything else is raw bytes.
        numbers = dtype.kind in "biuf" and (dtype.itemsize > 1 or dtype.kind == "b")
        for component in self._components if numbers else ():
            scalar = component.scalar
            if kind_of(dtype) == scalar.kind:
                if scalar.name in ("bool", "pointer") or not differ_in_sign(dtype, np.dtype(scalar.name)):
                    continue
                depends = True
                if not beyond_both(values.reshape(-1)[component.offset // dtype.itemsize]):
                    continue
            self._known.add(dtype)
            warn(
                f"push_consts are an array of {dtype} with the bytes of the shader's block {self.name}: they go in bit by bit, "
                f"and the shader reads {scalar.name} in {component.name!r}. Give a list, which is converted, or "
                "array.tobytes() if the bits are meant"
            )
            return
        if not depends:  # on the numbers that are given
            self._known.add(dtype)

    def unpack(self, packed: bytes) -> tuple[bool | int | float, ...]:
        """The values of the scalars in a block's bytes, in the order of `component_names`."""
        values = self._struct.unpack(packed)
        return tuple(
            bool(value) if component.scalar.name == "bool" else value
            for value, component in zip(values, self._components, strict=True)
        )

    def _pack_each(self, values: list[Any]) -> bytes:
        components = self._components
        if len(values) != len(components):
            # In bytes too, since Kompute's users think of the block so. A surplus value counts as 4 bytes.
            given = sum(c.scalar.size for c in components[: len(values)]) + 4 * max(
                0, len(values) - len(components)
            )
            raise InvalidArgumentError(
                f"push_consts have {len(values)} values ({given} bytes); the shader's block {self.name} has "
                f"{len(components)} ({self.size} bytes): {', '.join(self.component_names)}"
            )
        packed = bytearray(self.size)
        for value, (offset, scalar, name) in zip(values, components, strict=True):
            packed[offset : offset + scalar.size] = pack_scalar(value, scalar, f"Push constant {name!r}")
        return bytes(packed)


class Specialization(NamedTuple):
    """Packed specialization constants: the data, (id, offset, size) of each, and how many values had no constant."""

    data: bytes
    entries: tuple[tuple[int, int, int], ...]
    surplus: int


NO_SPECIALIZATION = Specialization(b"", (), 0)


class SpecConstants:
    """Packs specialization constants for one shader."""

    __slots__ = ("_by_id", "_by_name", "_conflicts", "_defaults", "_last", "_warned")

    def __init__(self, reflected: list[Mapping[str, Any]]) -> None:
        self._by_id: dict[int, tuple[Scalar, str]] = {
            c["id"]: (SCALARS[c["type"]], c["name"]) for c in reflected
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

        Array elements of the constant's size go in bit by bit; other numbers are converted to the declared type and raise
        InvalidArgumentError where they do not fit. An id or a name that the shader lacks raises InvalidArgumentError;
        positional values beyond the last id are counted as surplus.
        """
        if isinstance(values, Mapping):
            items = [(self._find(key), value) for key, value in values.items()]
            if len({identity for identity, _ in items}) < len(items):
                self.labelled(values)  # raises, and names it
            return self._pack_items(items, 0)
        values = _typed(values)
        if isinstance(values, (int, float, np.generic)):
            values = [values]
        elif isinstance(values, (bytes, bytearray, memoryview, str)) or not hasattr(values, "__iter__"):
            raise ArgumentTypeError(
                f"spec_consts are a {type(values).__name__}; give a list of numbers, an array, or {{id: value}}"
            )
        if isinstance(values, np.ndarray):
            refuse_mask(values, "spec_consts")
            if values.dtype.kind not in "biuf":
                raise ArgumentTypeError(
                    f"spec_consts have dtype {values.dtype}; give numbers, or {{name: value}}: {self._known()}"
                )
            if values.size > _MOST_VALUES:
                raise InvalidArgumentError(f"spec_consts have {values.size} values; no shader takes so many")
            flat: list[Any] = list(
                np.asarray(values).ravel().astype(values.dtype.newbyteorder("="), copy=False)
            )
            bitwise = values.dtype.itemsize
        else:
            flat, bitwise = _listed(values, "spec_consts"), 0
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
                    f"{len(ids)} specialization constants are named {shown(key)}, ids {', '.join(ids)}: give the id"
                )
            if identity is None and key.isdecimal() and key.isascii():
                identity = int(key)  # one that has no name is called by its number: specialize(**{"3": 16})
        elif isinstance(key, bool) or not hasattr(key, "__index__"):
            raise ArgumentTypeError(
                f"A specialization constant is named by its id, an int, or its name, not by {shown(key)} of type "
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
        """What tells the constant from all others: its name, or the id where it has none, or shares it."""
        name = self._by_id[identity][1]
        return name if name and self._by_name[name] is not None else identity

    def labelled(self, values: Mapping[Any, Any]) -> dict[str | int, Any]:
        """`values` by `label`. InvalidArgumentError for what pack() refuses, and for a constant that is given twice."""
        found: dict[str | int, Any] = {}
        for key, value in values.items():
            identity = self._find(key)
            label = self.label(identity)
            if label in found:
                raise InvalidArgumentError(
                    f"Specialization constant {identity}{f' ({label})' if isinstance(label, str) else ''} is given twice"
                )
            found[label] = value
        return found

    def warn_of_defaults(self, special: Specialization, what: str) -> None:
        """Warns of constants that were not given and whose declarations have different defaults."""
        if not self._conflicts:
            return
        given = {identity for identity, _, _ in special.entries}
        for identity, conflict in self._conflicts.items():
            if identity not in given:
                warn(
                    f"{what}: specialization constant {identity} is declared with two defaults, {conflict}. No value is given, so each "
                    "declaration uses its own. Give a value, or declare one default (for a local size of 8: "
                    f"layout(local_size_x = 8, local_size_x_id = {identity}))"
                )

    def _pack_items(self, items: list[tuple[int, Any]], surplus: int, bitwise: int = 0) -> Specialization:
        data = bytearray()
        entries = []
        for identity, value in items:
            scalar, name = self._by_id[identity]
            if (
                bitwise == scalar.size
                and (
                    kind_of(value.dtype) != scalar.kind
                    or (
                        scalar.name not in ("bool", "pointer")
                        and differ_in_sign(value.dtype, np.dtype(scalar.name))
                        and beyond_both(value)
                    )
                )
                and identity not in self._warned
            ):
                self._warned.add(identity)
                warn(
                    f"spec_consts are an array of {value.dtype}, whose elements go in bit by bit; the shader declares constant "
                    f"{identity}{f' ({name})' if name else ''} as {scalar.name}. Give a list, which is converted"
                )
            # A NumPy bool has one byte, VkBool32 four: it never goes in bit by bit.
            raw = (
                value.tobytes()
                if bitwise == scalar.size
                else pack_scalar(
                    value, scalar, f"Specialization constant {identity}{f' ({name})' if name else ''}"
                )
            )
            data += bytes(-len(data) % len(raw))
            entries.append((identity, len(data), len(raw)))
            data += raw
        return Specialization(bytes(data), tuple(entries), surplus)
