"""Short names for contents, and lists of bytes as one."""

from __future__ import annotations

import struct
from collections.abc import Iterable

try:
    # The module behind hashlib.blake2b: hashlib would load OpenSSL, which takes longer than the shader cache may.
    from _blake2 import blake2b
except ImportError:  # a Python that was built without it
    from hashlib import blake2b

DIGEST_SIZE = 16
"""Bytes of a digest."""


def digest(content: bytes) -> bytes:
    """A short name for `content` that no other content has."""
    return blake2b(content, digest_size=DIGEST_SIZE).digest()


def pack(parts: Iterable[bytes]) -> bytes:
    """The parts as one, so that no two different lists give the same."""
    listed = list(parts)
    lengths = [len(part) for part in listed]
    return struct.pack(f"<Q{len(listed)}Q", len(listed), *lengths) + b"".join(listed)


def unpack(packed: bytes) -> list[bytes]:
    """The parts that `pack` was given. Raises ValueError for what it never wrote."""
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
        raise ValueError("the list does not end where its bytes do")
    return parts


def marks(probes: Iterable[tuple[str, bytes | None]]) -> list[tuple[str, bytes]]:
    """The digests of what the compiler found at the paths where it sought includes."""
    return [(path, b"" if content is None else digest(content)) for path, content in probes]
