"""Arguments that are seldom meant: numbers beyond every type, arrays of every odd kind, and objects with
methods that raise or lie.
"""

from __future__ import annotations

import array
import ctypes
import functools
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kompute_py as kp


class OddError(Exception):
    """What the odd objects raise. It may reach the caller as it is."""


def _raise(*_: Any, **__: Any) -> Any:
    raise OddError("odd")


class Raises:
    """Raises in every method that Python calls by itself."""

    __array__ = __index__ = __len__ = __iter__ = __float__ = __int__ = __getitem__ = __fspath__ = _raise
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __call__ = __repr__ = __str__ = __bool__ = (
        _raise
    )
    __add__ = __radd__ = __mul__ = __rmul__ = __buffer__ = __dlpack__ = __dlpack_device__ = _raise
    __hash__ = object.__hash__


class Unhashable:
    """Is no key of a dict."""

    __hash__ = _raise  # type: ignore[assignment]


class RaisesAtAttributes:
    """Has no attribute that can be looked up."""

    def __getattr__(self, name: str) -> Any:
        raise OddError(name)


class HugeIndex:
    """An int by its methods, beyond every int of C."""

    def __index__(self) -> int:
        return 2**200

    __int__ = __index__


class LyingIndex:
    """Another int at each look."""

    _next = 0

    def __index__(self) -> int:
        self._next += 1
        return self._next

    __int__ = __index__


class NoIndex:
    """Gives no int for an int."""

    def __index__(self) -> Any:
        return "1"

    __int__ = __float__ = __bool__ = __fspath__ = __len__ = __index__


class LyingLength:
    """Says that it is long, and has nothing."""

    def __len__(self) -> int:
        return 2**40

    def __iter__(self) -> Iterator[int]:
        return iter(())


class ShortLength:
    """Says that it is empty, and has three elements."""

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2, 3))

    def __getitem__(self, at: int) -> int:
        return (1, 2, 3)[at]


class EqualToAll:
    """Is equal to everything, so also to every key and to every known word."""

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("auto")


class NoArray:
    """Converts to no array."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return "no array"


class LyingInterface:
    """Says where its memory is, and lies about its form."""

    __array_interface__ = {"shape": (2**40, -1), "typestr": "<f4", "data": None, "version": 3}  # noqa: RUF012


class NoCapsule:
    """Speaks DLPack badly."""

    def __dlpack_device__(self) -> Any:
        return ("cpu", None)

    def __dlpack__(self, **_: Any) -> Any:
        return None


class StrangeStr(str):
    """A str that raises where strs do not."""

    __eq__ = __len__ = __getitem__ = _raise  # type: ignore[assignment]
    __hash__ = str.__hash__


class StrangeInt(int):
    """An int that raises where ints do not."""

    __eq__ = __lt__ = __gt__ = __index__ = _raise  # type: ignore[assignment]
    __hash__ = int.__hash__


class StrangePath:
    """A path by its methods, with a NUL."""

    def __fspath__(self) -> str:
        return "a\0b"


class StrangeArray(np.ndarray):
    """An array of a class of its own, with other operators."""

    __getitem__ = _raise


def _deep(kind: Callable[..., Any], depth: int = 5000) -> Any:
    made: Any = kind()
    for _ in range(depth):
        made = kind([made])
    return made


def _recursive() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def _cycle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


def _read_only() -> Any:
    made = np.arange(8, dtype=np.float32)
    made.flags.writeable = False
    return made


def _pipe() -> str:
    if not os.path.exists("pipe"):
        os.mkfifo("pipe")
    return "pipe"


_INTS = [2**31, 2**32, 2**63, 2**64, 2**200, -1, -(2**31), -(2**63), -(2**200), 0]

# Each is made anew for every call, because some are used up by one.
ODD: dict[str, Callable[[], Any]] = {
    **{f"int {value:.3g}" if abs(value) < 2**65
    else f"int {'-' * (value < 0)}2**200": (lambda value=value: value)
       for value in _INTS},  # type: ignore[misc]
    "int of 5000 digits": lambda: 10**5000,
    "True": lambda: True,
    "None": lambda: None,
    "Ellipsis": lambda: Ellipsis,
    "NotImplemented": lambda: NotImplemented,
    "0.5": lambda: 0.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "1e308": lambda: 1e308,
    "1j": lambda: 1j,
    "str empty": lambda: "",
    "str NUL": lambda: "a\0b",
    "str surrogate": lambda: "\ud800",
    "str long": lambda: "x" * 100_000,
    "str newline": lambda: "\n",
    "str format": lambda: "%s{}{0.a}",
    "str endless file": lambda: "/dev/zero",
    "str missing file": lambda: "no/such.comp",
    "str pipe": _pipe,
    "path endless": lambda: pathlib.Path("/dev/zero"),
    "path NUL": lambda: pathlib.Path("no\0where"),
    "path folder": lambda: pathlib.Path("."),
    "path pipe": lambda: pathlib.Path(_pipe()),
    "path by methods": StrangePath,
    "bytes empty": lambda: b"",
    "bytes": lambda: b"\0\xff",
    "bytes magic": lambda: b"\x03\x02\x23\x07",
    "bytes noise": lambda: b"\x03\x02\x23\x07" + bytes(range(256)),
    "bytearray": lambda: bytearray(b"abc"),
    "memoryview": lambda: memoryview(b"abcd"),
    "memoryview strided": lambda: memoryview(bytearray(8))[::-2],
    "memoryview released": lambda: _released(),
    "array.array": lambda: array.array("d", [1.0]),
    "array.array empty": lambda: array.array("f"),
    "ctypes floats": lambda: (ctypes.c_float * 4)(1, 2, 3, 4),
    "ctypes pointers": lambda: (ctypes.c_char_p * 2)(),
    "ctypes int": lambda: ctypes.c_int(3),
    "ctypes none": lambda: (ctypes.c_float * 0)(),
    "list empty": list,
    "tuple empty": tuple,
    "dict empty": dict,
    "set": lambda: {1, "a"},
    "frozenset": lambda: frozenset({1}),
    "range empty": lambda: range(0),
    "range huge": lambda: range(2**62),
    "slice": lambda: slice(None),
    "slice huge": lambda: slice(0, 2**70),
    "slice of nothing": lambda: slice("a", object()),
    "iterator": lambda: iter([1]),
    "generator": lambda: (i for i in (1, 2)),
    "generator that raises": lambda: (_raise() for _ in (1,)),
    "map that raises": lambda: map(_raise, [1]),
    "list ragged": lambda: [[1, 2], [3]],
    "list mixed": lambda: [1, "a", None],
    "list nested": lambda: [[[]]],
    "list deep": lambda: _deep(list),
    "tuple deep": lambda: _deep(tuple),
    "list recursive": _recursive,
    "dict recursive": _cycle,
    "dict": lambda: {"a": 1},
    "dict of ints": lambda: {1: 2},
    "dict surrogate": lambda: {"\ud800": object()},
    "list of None": lambda: [None],
    "list of a NUL": lambda: ["a\0"],
    "list of a huge int": lambda: [2**70],
    "list of nan": lambda: [math.nan],
    "list that raises": lambda: [Raises()],
    "dict that raises": lambda: {"f": Raises()},
    "object": object,
    "type": lambda: int,
    "function": lambda: _raise,
    "raises": Raises,
    "raises at attributes": RaisesAtAttributes,
    "unhashable": Unhashable,
    "index huge": HugeIndex,
    "index lying": LyingIndex,
    "index none": NoIndex,
    "length lying": LyingLength,
    "length short": ShortLength,
    "equal to all": EqualToAll,
    "array none": NoArray,
    "array interface lying": LyingInterface,
    "capsule none": NoCapsule,
    "str strange": lambda: StrangeStr("auto"),
    "int strange": lambda: StrangeInt(1),
    "np.float32": lambda: np.float32(1),
    "np.int64": lambda: np.int64(-1),
    "np.uint64": lambda: np.uint64(2**64 - 1),
    "np.bool": lambda: np.bool_(True),
    "np.str": lambda: np.str_("a"),
    "np.bytes": lambda: np.bytes_(b"a"),
    "np.datetime64": lambda: np.datetime64("now"),
    "array empty": lambda: np.array([]),
    "array 0-d": lambda: np.array(3),
    "array of ints": lambda: np.array([1, 2]),
    "array of str": lambda: np.array(["a"]),
    "array of objects": lambda: np.array([None, object()]),
    "array of what raises": lambda: _of_objects(Raises(), Raises()),
    "array no elements": lambda: np.zeros((2, 0, 3)),
    "array structured": lambda: np.zeros(3, "f4,i4"),
    "array big-endian": lambda: np.arange(2, dtype=">f4"),
    "array longdouble": lambda: np.zeros(2, np.longdouble),
    "array of 20 axes": lambda: np.zeros((1,) * 20),
    "array of nan": lambda: np.array([math.nan, math.inf]),
    "array masked": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "masked": lambda: np.ma.masked,
    "list of masked arrays": lambda: [np.ma.masked_array([1.0, 2.0], [True, False])],
    "tensor destroyed": lambda: _destroyed(),
    "tensor donated": lambda: _donated(),
    "tensor of another Manager": lambda: _another().tensor([1.0, 2.0]),
    "tensor empty": lambda: kp.manager().zeros((0, 3)),
    "tensor 0-d": lambda: kp.manager().zeros(()),
    "matrix": lambda: np.matrix([[1.0]]),
    "array class strange": lambda: np.zeros(2).view(StrangeArray),
    "array huge": lambda: np.broadcast_to(np.float32(1), (2**40,)),
    "array of huge many ints": lambda: np.broadcast_to(np.int32(1), (2**40,)),
    "array of huge many bools": lambda: np.broadcast_to(np.bool_(True), (2**20, 2**20)),
    "array zero stride": lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (2**20,), (0,)),
    "array overlapping": lambda: np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (8, 2), (4, 4)),
    "array negative stride": lambda: np.arange(8, dtype=np.float32)[::-1],
    "array read-only": _read_only,
    "array unaligned": lambda: np.frombuffer(bytearray(33), np.float32, 8, 1),
    "recarray": lambda: np.recarray(2, dtype="f4"),
    "dtype O": lambda: np.dtype("O"),
    "dtype f4": lambda: np.dtype("f4"),
    "dtype huge": lambda: np.dtype([("a", "f4", (2**20,))]),
    "dtype text": lambda: ">f8",
    "dtype text O": lambda: "O",
    "dtype text time": lambda: "M8[s]",
}  # fmt: skip


TABLE = frozenset(
    (
        "array masked", "array no elements", "array 0-d", "array read-only", "array big-endian",
        "array structured", "array huge", "array of huge many ints", "array of huge many bools",
        "tensor destroyed", "tensor donated", "tensor of another Manager", "tensor empty", "tensor 0-d",
    )
)  # fmt: skip
"""Kinds of arrays and tensors: each callable takes them or refuses them with a typed error, and does not walk
2**40 elements.
"""
NEVER_TAKEN = frozenset(("array masked", "tensor destroyed", "tensor donated"))
"""Of these, no callable may use the elements: whoever takes one has missed a check."""


@functools.cache
def _another() -> kp.Manager:
    return kp.Manager()


def _destroyed() -> kp.Tensor:
    made = kp.manager().tensor([1.0, 2.0])
    made.destroy()
    return made


def _donated() -> kp.Tensor:
    made = kp.manager().tensor([1.0, 2.0])
    kp.ops.negative(made, donate=True)
    return made


def _of_objects(*items: Any) -> Any:
    made = np.empty(len(items), object)
    for at, each in enumerate(items):
        made[at] = each
    return made


def _released() -> memoryview:
    made = memoryview(bytearray(4))
    made.release()
    return made
