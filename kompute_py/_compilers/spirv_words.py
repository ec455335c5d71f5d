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

SOURCE, NAME, MEMBER_NAME, EXTENSION, EXTENDED, ENTRY_POINT, CAPABILITY = 3, 5, 6, 10, 12, 15, 17
TYPE_BOOL, TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_MATRIX = 20, 21, 22, 23, 24
TYPE_ARRAY, TYPE_RUNTIME_ARRAY, TYPE_STRUCT, TYPE_POINTER = 28, 29, 30, 32
CONSTANT, FUNCTION, VARIABLE, ARRAY_LENGTH = 43, 54, 59, 68
DECORATE, MEMBER_DECORATE = 71, 72
TYPES = range(19, 40)
"""Opcodes that declare types."""


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


def words_of(spirv: bytes) -> array.array[int]:
    """The module's words."""
    words = array.array("I")
    words.frombytes(spirv)
    return words


def instructions(words: array.array[int]) -> Iterator[tuple[int, int, int]]:
    """(opcode, index of its first word, number of words) of each instruction."""
    at = HEADER
    while at < len(words):
        length = words[at] >> 16
        if length == 0 or at + length > len(words):
            return
        yield words[at] & 0xFFFF, at, length
        at += length


def text_at(words: array.array[int], at: int, end: int) -> str:
    """The literal string in words `at` to `end`."""
    return words[at:end].tobytes().split(b"\0", 1)[0].decode(errors="replace")


def encoded(opcode: int, operands: list[int], text: str | None = None) -> array.array[int]:
    """An instruction with these operands, followed by a literal string if `text` is given."""
    tail = array.array("I")
    if text is not None:
        content = text.encode() + b"\0"
        tail.frombytes(content + b"\0" * (-len(content) % 4))
    return array.array("I", [opcode | (1 + len(operands) + len(tail)) << 16, *operands]) + tail


class Rewriter:
    """A copy of a module with instructions replaced, dropped and added."""

    def __init__(self, words: array.array[int]) -> None:
        self._words = words
        self._changes: dict[int, array.array[int]] = {}
        self.bound = words[3]

    def replace(self, at: int, *instead: array.array[int]) -> None:
        """Replaces the instruction at word `at` with others, or removes it."""
        self._changes[at] = sum(instead, array.array("I"))

    def fresh(self) -> int:
        """A new, unused id."""
        self.bound += 1
        return self.bound - 1

    def result(self) -> bytes:
        """The changed module."""
        words, changes = self._words, self._changes
        parts = [words[:HEADER]]
        parts[0][3] = self.bound
        at = HEADER
        for change in sorted(changes):
            parts += [words[at:change], changes[change]]
            at = change + (words[change] >> 16)
        parts.append(words[at:])
        return b"".join(part.tobytes() for part in parts)


assert sys.byteorder == "little", "SPIR-V is read as words of the machine, which must be little-endian"
