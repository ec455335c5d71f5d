"""SPIR-V as words: iterates over instructions and rewrites modules. Assumes that modules are well-formed."""

from __future__ import annotations

import array
import sys
from collections.abc import Iterator

HEADER = 5  # words before the first instruction

SOURCE, NAME, MEMBER_NAME, EXTENSION, EXTENDED, ENTRY_POINT, CAPABILITY = 3, 5, 6, 10, 12, 15, 17
TYPE_BOOL, TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_MATRIX = 20, 21, 22, 23, 24
TYPE_ARRAY, TYPE_RUNTIME_ARRAY, TYPE_STRUCT, TYPE_POINTER = 28, 29, 30, 32
CONSTANT, FUNCTION, VARIABLE, ARRAY_LENGTH = 43, 54, 59, 68
DECORATE, MEMBER_DECORATE = 71, 72
TYPES = range(19, 40)
"""Opcodes that declare types."""


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
