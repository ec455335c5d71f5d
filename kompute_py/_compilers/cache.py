"""The cache of compiled shaders on disk: compiling the same source again reads its SPIR-V, in any process.

The key of an entry is a digest of all inputs of a compilation (the source, its name, all options, the texts
of virtual includes) and of the compiler itself. Include files on disk are checked separately: the entry lists
every path that was tried for an include, with a digest of its content. The entry is valid as long as each of
these files has the same content and none of the missing ones has appeared, because a file earlier on the
search path would take precedence.

Writers create a temporary file beside the entry and rename it, so readers see a complete entry or none. A
checksum detects remains of a crash or a full disk, and an entry under another entry's name. Folders and files
are created for this user only, and a file is trusted only if no other user can have written it
(`file_access`). Any other content of the folder is not an error: the shader is compiled.
"""

from __future__ import annotations

import functools
import marshal
import math
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.digest import DIGEST_SIZE, digest
from .._base.errors import UnavailableError
from .._base.file_access import delete_abandoned, read_own, read_regular, replace_own
from .settings import Lookup, of_process

if TYPE_CHECKING:
    from .._base.annotations import Language
    from .request import Request

_HEAD = b"kpshad\r\n\x0b"  # the last byte is the format's number
_SUFFIX = ".kpsh"
_KEPT_BY_PRUNING = 0.75  # the part of the limit to keep, so that not every store prunes
_TOUCH_AFTER = 3600.0  # seconds; another use within this time is not recorded
_MOST_ENTRY = 1 << 30  # bytes
_MOST_INCLUDE = 1 << 28  # bytes; more than the compiler reads
_DUMP_SUFFIXES = {"glsl": "comp", "hlsl": "hlsl", "slang": "slang"}
_MOST_OF_NAME = 60


class Compiled(NamedTuple):
    """The result of a compilation."""

    spirv: bytes
    declared: bytes
    """The module before optimization, with all declarations of the source; b"" if it is the same."""
    files: list[str]
    """The files that it was made from; in the cache the included ones."""
    sought: list[tuple[str, bytes]]
    """Every path on which it depends, with the digest of its content; b"" if there was no file."""
    language: Language | None = None
    """None: it was SPIR-V already."""
    compiler: str | None = None
    """"glslang", "Slang 2026.12"."""
    warnings: Sequence[tuple[str, int, int, str, str, str]] = ()
    """The fields of a `Diagnostic` for each."""


class CacheEntry(NamedTuple):
    """One file of the cache."""

    path: str
    size: int
    """Its size on disk in bytes."""
    used: float
    """The time of its last use in seconds since the epoch, accurate to an hour."""


class ShaderCache:
    """The entries in one folder, which is created with the first entry."""

    def __init__(self, directory: str, limit: int = 128 << 20) -> None:
        self.directory = directory
        self.limit = limit
        """The most bytes of all entries; beyond it the least recently used ones are deleted."""
        self._written: int | None = None  # bytes since the last scan of the folder; None before the first
        self._lock = threading.Lock()

    def path(self, key: bytes) -> str:
        """The path for the entry of a key, even if there is none."""
        return os.path.join(self.directory, digest(key).hex() + _SUFFIX)

    def load(self, key: bytes) -> Compiled | None:
        """The shader of a key; None if there is none, or if a file that it was compiled from has changed."""
        path = self.path(key)
        try:
            content, changed = read_own(path, self.limit)
            _, shader = _decode(content, path)
        except (OSError, ValueError):
            return None
        if not all(_unchanged(place, expected) for place, expected in shader.sought):
            return None
        if time.time() - changed > _TOUCH_AFTER:
            with suppress(OSError):  # a read-only cache works too
                os.utime(path)
        return shader

    def store(self, key: bytes, shader: Compiled, name: str) -> None:
        """Stores a shader from the source `name`, or nothing if the disk is full or the folder read-only."""
        path = self.path(key)
        fields: tuple[Any, ...] = (name, *shader)
        body = marshal.dumps(fields)
        content = b"".join((_HEAD, _checksum(path, body), body))
        if len(content) > self.limit:
            return
        try:
            replace_own(path, content)
        except (OSError, ValueError):  # ValueError: the folder's name contains a NUL
            return
        with self._lock:
            self._written = None if self._written is None else self._written + len(content)
            if self._written is not None and self._written < self.limit // 16:
                return
            self._written = 0
        self.prune()

    def entries(self) -> list[CacheEntry]:
        """The entries, the least recently used first."""
        return sorted(self._scan(), key=lambda entry: entry.used)

    def prune(self) -> None:
        """Deletes the least recently used entries beyond the limit, and files of ended writers."""
        entries = self.entries()
        excess = sum(entry.size for entry in entries) - self.limit
        self._delete(entries, excess + self.limit * (1 - _KEPT_BY_PRUNING) if excess > 0 else 0)

    def clear(self) -> int:
        """Deletes all entries and returns their number."""
        entries = self.entries()
        self._delete(entries, math.inf)
        return len(entries)

    def _delete(self, entries: list[CacheEntry], size: float) -> None:
        """Deletes the first entries, at least `size` bytes of them, and files of ended writers."""
        for entry in entries:
            if size <= 0:
                break
            with suppress(
                OSError, ValueError
            ):  # another process deleted it first, or the folder is read-only
                os.remove(entry.path)
            size -= entry.size
        delete_abandoned(self.directory, lambda name: f"{_SUFFIX}." in name)

    def _scan(self) -> Iterator[CacheEntry]:
        with suppress(OSError, ValueError), os.scandir(self.directory) as found:
            for entry in found:
                if entry.name.endswith(_SUFFIX) and not entry.is_dir(follow_symlinks=False):
                    with suppress(OSError):  # another process deleted it
                        status = entry.stat(follow_symlinks=False)
                        yield CacheEntry(entry.path, status.st_size, status.st_mtime)


def source_name(path: str) -> str:
    """The name of an entry's source: its path, or "<source>".

    Raises ValueError if the entry is damaged, OSError if it cannot be read or trusted.
    """
    return _decode(read_own(path, _MOST_ENTRY)[0], path)[0]


@functools.cache
def compiler_key() -> bytes:
    """Identifies the compiler: differs for each version and each set of libraries."""
    return f"{_native.__version__}; {_native.compiler_id()}; {sys.byteorder}".encode()


def shader_cache(setting: Lookup = of_process) -> ShaderCache | None:
    """The cache of the settings; None if it is turned off. Raises the errors of `setting`."""
    directory, limit = setting("shader_cache_dir"), setting("shader_cache_size")
    return _opened(directory, limit) if directory and limit else None


_opened = functools.lru_cache(16)(ShaderCache)


def _checksum(path: str, body: bytes) -> bytes:
    # The checksum includes the entry's name, so that a copied or renamed file is invalid.
    return digest(os.fsencode(os.path.basename(path)) + body)


def _decode(content: bytes, path: str) -> tuple[str, Compiled]:
    """The name of the source, and the shader. Raises ValueError if the entry is damaged."""
    head = len(_HEAD)
    body = content[head + DIGEST_SIZE :]
    if content[:head] != _HEAD or content[head : head + DIGEST_SIZE] != _checksum(path, body):
        raise ValueError("the entry is damaged")
    try:
        name, *fields = marshal.loads(body)
        return name, Compiled(*fields)
    except (EOFError, TypeError) as error:
        raise ValueError("the entry is of another format") from error


def _unchanged(path: str, expected: bytes) -> bool:
    """Whether `path` still has content with this digest, or no file if it is b""."""
    if not expected:
        return not os.path.isfile(path)
    try:
        return digest(read_regular(path, _MOST_INCLUDE)) == expected
    except (OSError, ValueError):
        return False


# -- the option `dump`, a folder that keeps each shader's source and SPIR-V


def dump_source(folder: str, request: Request) -> str:
    """Keeps the source of a request, also if it does not compile. Returns the path without its suffix."""
    # By content: the same source with the same options has one file, others do not replace it.
    name = request.name
    if not name.startswith("<"):  # a path
        name = os.path.splitext(os.path.basename(name))[0]
    name = re.sub(r"[^\w.-]+", "_", name).strip("_.")[:_MOST_OF_NAME] or "shader"
    path = os.path.join(folder, f"{name}-{digest(request.key()).hex()[:12]}")
    _write_dump(f"{path}.{_DUMP_SUFFIXES[request.language]}", request.source)
    return path


def dump_spirv(path: str, spirv: bytes) -> None:
    """Keeps a result beside its source: the module, and its text."""
    _write_dump(f"{path}.spv", spirv)
    _write_dump(f"{path}.spvasm", _native.disassemble_spirv(spirv, True).encode())


def _write_dump(path: str, content: bytes) -> None:
    try:
        replace_own(path, content)
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"The option dump (KOMPUTE_PY_DUMP) keeps shaders in a folder, and {path} cannot be written: "
            f'{error}. Give another folder, or "" for none'
        ) from None
