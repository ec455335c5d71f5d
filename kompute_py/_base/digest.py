"""Digests of contents, and lists of bytes packed into one bytes object."""

from __future__ import annotations

import struct
from collections.abc import Iterable

try:
    # The module behind hashlib.blake2b. Importing hashlib loads OpenSSL, which takes longer than a cache
    # access may.
    from _blake2 import blake2b
except ImportError:  # this Python was built without it
    from hashlib import blake2b

DIGEST_SIZE = 16
"""The size of a digest in bytes."""


def digest(content: bytes) -> bytes:
    """A digest that identifies `content`."""
    return blake2b(content, digest_size=DIGEST_SIZE).digest()


def pack(parts: Iterable[bytes]) -> bytes:
    """The parts in one bytes object. Different lists give different results."""
    listed = list(parts)
    lengths = [len(part) for part in listed]
    return struct.pack(f"<Q{len(listed)}Q", len(listed), *lengths) + b"".join(listed)


def unpack(packed: bytes) -> list[bytes]:
    """The parts given to `pack`. Raises ValueError if `packed` is not a result of `pack`."""
    try:
        (count,) = struct.unpack_from("<Q", packed)
        if count > len(packed) // 8:
            raise ValueError("the list is longer than its bytes")
        lengths = struct.unpack_from(f"<{count}Q", packed, 8)
    except struct.error as error:
        raise ValueError(str(error)) from None
    parts = []
    at = 8 * (1 + count)
    for length in lengths:
        parts.append(packed[at : at + length])
        at += length
    if at != len(packed):
        raise ValueError("the list ends before or after its bytes")
    return parts


def marks(probes: Iterable[tuple[str, bytes | None]]) -> list[tuple[str, bytes]]:
    """The digests of the contents that the compiler found at each path it tried for includes."""
    return [(path, b"" if content is None else digest(content)) for path, content in probes]
