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

import marshal
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .. import _native
from .._base.digest import DIGEST_SIZE, digest, marks
from .._base.file_access import delete_abandoned, read_own, read_regular, replace_own
from .settings import Lookup, of_process

_HEAD = b"kpshad\r\n\x0a"  # the last byte is the format's number
_SUFFIX = ".kpsh"
_KEPT_BY_PRUNING = 0.75  # the part of the limit to keep, so that not every store prunes
_TOUCH_AFTER = 3600.0  # seconds; another use within this time is not recorded
_MOST_ENTRY = 1 << 30  # bytes
_MOST_INCLUDE = 1 << 28  # bytes; more than the compiler reads

Warnings = list[tuple[str, int, int, str, str, str]]
"""A warning of the native compiler: the fields of `Diagnostic`."""


class CachedShader(NamedTuple):
    """The results of a compilation."""

    spirv: bytes
    warnings: Warnings
    included: list[str]
    """The included files."""
    sought: Sequence[tuple[str, bytes]] = ()
    """Every path tried for an include, with the digest of its content; b"" if there was no file."""
    declared: bytes = b""
    """The module before optimization, with all declarations of the source; b"" if it is the same."""
    compiler: str = "glslang"
    """The compiler: "glslang", "Slang 2026.12"."""


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
        self._written: int | None = (
            None  # bytes since the folder was last scanned; None before the first scan
        )
        self._lock = threading.Lock()

    def path(self, key: bytes) -> str:
        """The path for the entry of a key, even if there is none."""
        return os.path.join(self.directory, digest(key).hex() + _SUFFIX)

    def load(self, key: bytes) -> CachedShader | None:
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
            try:
                os.utime(path)
            except OSError:
                pass  # a read-only cache works too
        return shader

    def store(
        self, key: bytes, shader: CachedShader, probes: Sequence[tuple[str, bytes | None]], name: str
    ) -> None:
        """Stores a shader.

        `probes` are the paths tried for includes, with the content or None if there was no file.

        `name` is the name of the source. Stores nothing if the disk is full or the folder cannot be written.
        """
        path = self.path(key)
        content = _encode(shader, probes, name, path)
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
        total = sum(entry.size for entry in entries)
        if total > self.limit:
            for entry in entries:
                if total <= self.limit * _KEPT_BY_PRUNING:
                    break
                _remove(entry.path)
                total -= entry.size
        delete_abandoned(self.directory, _is_temporary)

    def clear(self) -> int:
        """Deletes all entries and returns their number."""
        entries = self.entries()
        for entry in entries:
            _remove(entry.path)
        delete_abandoned(self.directory, _is_temporary)
        return len(entries)

    def _scan(self) -> Iterator[CacheEntry]:
        try:
            with os.scandir(self.directory) as found:
                for entry in found:
                    if not entry.name.endswith(_SUFFIX) or entry.is_dir(follow_symlinks=False):
                        continue  # not a file of the cache
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # another process deleted it
                    yield CacheEntry(entry.path, status.st_size, status.st_mtime)
        except (OSError, ValueError):
            return


def source_name(path: str) -> str:
    """The name of an entry's source: its path, or "<source>".

    Raises ValueError if the entry is damaged, OSError if it cannot be read or trusted.
    """
    return _decode(read_own(path, _MOST_ENTRY)[0], path)[0]


def compiler_key() -> bytes:
    """Identifies the compiler: differs for each version and each set of libraries."""
    global _compiler_key
    if _compiler_key is None:
        _compiler_key = f"{_native.__version__}; {_native.compiler_id()}; {sys.byteorder}".encode()
    return _compiler_key


_compiler_key: bytes | None = None


def shader_cache(setting: Lookup = of_process) -> ShaderCache | None:
    """The cache of the settings; None if it is turned off. Raises the errors of `setting`."""
    place = directory, limit = setting("shader_cache_dir"), setting("shader_cache_size")
    if not directory or limit == 0:
        return None
    cache = _open.get(place)
    if cache is None:
        if len(_open) == _MOST_OPEN:
            _open.clear()
        cache = _open[place] = ShaderCache(directory, limit)
    return cache


_open: dict[tuple[str, int], ShaderCache] = {}
_MOST_OPEN = 16


def _encode(shader: CachedShader, probes: Sequence[tuple[str, bytes | None]], name: str, path: str) -> bytes:
    sought = marks(probes)
    parts = (
        name,
        shader.spirv,
        shader.warnings,
        shader.included,
        tuple(sought),
        shader.declared,
        shader.compiler,
    )
    body = marshal.dumps(parts)
    return b"".join((_HEAD, _checksum(path, body), body))


def _checksum(path: str, body: bytes) -> bytes:
    # The checksum includes the entry's name, so that a copied or renamed file is invalid.
    return digest(os.fsencode(os.path.basename(path)) + body)


def _decode(content: bytes, path: str) -> tuple[str, CachedShader]:
    """The name of the source, and the shader. Raises ValueError if the entry is damaged."""
    head = len(_HEAD)
    body = content[head + DIGEST_SIZE :]
    if content[:head] != _HEAD or content[head : head + DIGEST_SIZE] != _checksum(path, body):
        raise ValueError("the entry is damaged")
    try:
        name, *parts = marshal.loads(body)
        return name, CachedShader(*parts)
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


def _is_temporary(name: str) -> bool:
    return f"{_SUFFIX}." in name


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except (OSError, ValueError):
        pass  # another process deleted it first, or the folder is read-only
