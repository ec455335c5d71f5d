"""SPIR-V as bytes and as words: tells modules from anything else, in either byte order, iterates over
instructions and rewrites modules. All but `is_spirv` and `module_bytes` assume that modules are well-formed.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterator

from .. import _native
from .._base.errors import InvalidArgumentError

MAGIC = b"\x03\x02\x23\x07"
_SWAPPED = MAGIC[::-1]
HEADER = 5  # words before the first instruction

SOURCE, NAME, MEMBER_NAME, EXTENSION, IMPORT, EXTENDED, ENTRY_POINT, CAPABILITY = 3, 5, 6, 10, 11, 12, 15, 17
TYPE_INT, TYPE_VECTOR, TYPE_ARRAY, TYPE_RUNTIME_ARRAY, TYPE_POINTER = 21, 23, 28, 29, 32
FUNCTION, VARIABLE, DECORATE, MEMBER_DECORATE = 54, 59, 71, 72
TYPES = range(19, 40)
"""Opcodes that declare types."""
PASSES = (57, 80, 83, 169, 245, 254)
"""Calls, composites, copies, choices and returns: they pass pointers and images on. All words are ids."""
_BINDING, _SET = 33, 34  # decorations


def is_spirv(content: bytes) -> bool:
    """Whether `content` begins as a module does. No text does."""
    return content[:4] in (MAGIC, _SWAPPED)


def module_bytes(content: bytes, name: str = "") -> bytes:
    """`content`, a module, in this machine's byte order. The magic number says which one it has, as the
    SPIR-V specification wants it.

    Raises InvalidArgumentError, beginning with `name`, if `content` is empty, is not whole words, or begins
    with another number.
    """
    if content[:4] == MAGIC and not len(content) & 3:
        return content
    if content[:4] == _SWAPPED and not len(content) & 3:
        words = array.array("I", content)
        words.byteswap()
        return words.tobytes()
    raise InvalidArgumentError(f"{name}: {_reason(content)}" if name else _reason(content))


def _reason(content: bytes) -> str:
    if content and not is_spirv(content):
        try:
            # It says what the bytes are instead: text, a program, another format.
            _native.reflect_spirv(content + bytes(-len(content) % 4))
        except InvalidArgumentError as error:
            return str(error)
    return (
        f"these bytes are not SPIR-V: they are {len(content)}, "
        "and a module is a non-empty whole number of 4-byte words"
    )


def encoded(opcode: int, operands: list[int], text: str | None = None) -> array.array[int]:
    """An instruction with these operands, followed by a literal string if `text` is given."""
    tail = array.array("I")
    if text is not None:
        content = text.encode() + b"\0"
        tail.frombytes(content + b"\0" * (-len(content) % 4))
    return array.array("I", [opcode | (1 + len(operands) + len(tail)) << 16, *operands]) + tail


class Module:
    """A module that a compiler made: its words, which may be changed, its declarations, and instructions to
    add and to leave out.
    """

    def __init__(self, spirv: bytes) -> None:
        self.words = words = array.array("I", spirv)
        self.head: list[tuple[int, int, int]] = []
        """(opcode, index of its first word, number of words) of each instruction before the functions."""
        self.body: list[tuple[int, int, int]] = []
        """Those of the functions."""
        self.names: dict[int, str] = {}
        self.places: dict[int, int] = {}
        """The indices of types and of variables outside of functions."""
        self.ints: dict[int, tuple[int, bool]] = {}
        """Types of integers and of vectors of them: bits, and whether they are signed."""
        self.annotations: dict[int, list[int]] = {}
        """The indices of the instructions that name or decorate an id, the name first."""
        self._added: dict[int, array.array[int]] = {}
        self._replaced: dict[int, array.array[int]] = {}
        at, listed = HEADER, self.head
        while at < len(words):
            opcode, length = words[at] & 0xFFFF, words[at] >> 16
            if length == 0 or at + length > len(words):
                break
            if opcode == FUNCTION:
                listed = self.body
            listed.append((opcode, at, length))
            if listed is self.head:
                self._declare(opcode, at, length)
            at += length

    def _declare(self, opcode: int, at: int, length: int) -> None:
        words = self.words
        if opcode in (NAME, DECORATE):
            self.annotations.setdefault(words[at + 1], []).append(at)
        if opcode == NAME:
            self.names[words[at + 1]] = self.text(at + 2, at + length)
        elif opcode == VARIABLE:
            self.places[words[at + 2]] = at
        elif opcode in TYPES:
            self.places[words[at + 1]] = at
            if opcode == TYPE_INT:
                self.ints[words[at + 1]] = (words[at + 2], bool(words[at + 3]))
            elif opcode == TYPE_VECTOR and words[at + 2] in self.ints:
                self.ints[words[at + 1]] = self.ints[words[at + 2]]

    def kind(self, declared: int) -> int:
        """The opcode of a type or a variable; 0 for other ids."""
        return self.words[self.places[declared]] & 0xFFFF if declared in self.places else 0

    def inner(self, kind: int) -> int:
        """The type that a pointer points to, or an array consists of; 0 for other types."""
        place = {TYPE_POINTER: 3, TYPE_ARRAY: 2, TYPE_RUNTIME_ARRAY: 2}.get(self.kind(kind))
        return self.words[self.places[kind] + place] if place else 0

    def variables(self) -> Iterator[tuple[int, int]]:
        """Each variable outside of functions, and its index."""
        return ((each, at) for each, at in self.places.items() if self.words[at] & 0xFFFF == VARIABLE)

    def bindings(self) -> dict[int, tuple[int, int]]:
        """The set of each variable with a binding, and the index of the word with its number."""
        bound = {}
        for variable, _ in self.variables():
            found = {self.words[at + 2]: at + 3 for at in self.annotations.get(variable, ())[::-1]}
            if _BINDING in found:
                bound[variable] = (self.words[found[_SET]] if _SET in found else 0, found[_BINDING])
        return bound

    def text(self, at: int, end: int) -> str:
        """The literal string in words `at` to `end`."""
        return self.words[at:end].tobytes().split(b"\0", 1)[0].decode(errors="replace")

    def insert(self, at: int, *added: array.array[int]) -> None:
        """Puts instructions before the one at word `at`."""
        self._added[at] = sum(added, array.array("I"))

    def replace(self, at: int, instead: array.array[int] | None = None) -> None:
        """Replaces the instruction at word `at` with another, or leaves it out."""
        self._replaced[at] = instead or array.array("I")

    def rename(self, named: int, name: str) -> None:
        """Gives an id that has a name another one."""
        self.replace(self.annotations[named][0], encoded(NAME, [named], name))

    def fresh(self) -> int:
        """A new, unused id."""
        self.words[3] += 1
        return self.words[3] - 1

    def result(self) -> bytes:
        """The changed module."""
        words, parts, at = self.words, [], 0
        for place in sorted({*self._added, *self._replaced}):
            end = place + (words[place] >> 16)
            parts += [words[at:place], self._added.get(place), self._replaced.get(place, words[place:end])]
            at = end
        return b"".join(part.tobytes() for part in (*parts, words[at:]) if part)


assert sys.byteorder == "little", "SPIR-V is read as words of the machine, which must be little-endian"
