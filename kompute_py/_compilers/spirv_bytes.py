"""Bytes that should be SPIR-V: how a module is told from anything else, in either byte order."""

from __future__ import annotations

import array

from .. import _native
from .._base.errors import InvalidArgumentError

MAGIC = b"\x03\x02\x23\x07"
_SWAPPED = MAGIC[::-1]


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
