"""The cache of compiled shaders on disk: a second process that compiles the same source reads its SPIR-V instead.

An entry is found by a digest of everything that a compilation is told (the source, its name, all options, the texts of
virtual includes) and of the compiler itself. What it is not told, it looks up: the entry lists every path at which an
include was sought, with a digest of what was there. The entry holds while each of these files has the same content and
none has appeared where there was none, since a file that comes earlier on the search path would win.

Writers put a temporary file beside and rename it, so readers see an entry whole or not at all; a checksum finds what a
crash or a full disk left, and an entry under another's name. Folders and files are made for this user alone, and only what
no other user can have written is believed (`file_access`). Whatever else lies in the folder is no error: the compiler runs.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from .. import _native
from .._base.digest import DIGEST_SIZE, digest, marks, pack, unpack
from .._base.file_access import create_temporary, delete_abandoned, own_folder, read_own, read_regular
from .settings import Lookup, of_process

_MAGIC = b"kpshad\r\n"
_FORMAT = 8
_SUFFIX = ".kpsh"
_KEPT_BY_PRUNING = 0.75  # of the limit, so that not every store prunes
_TOUCH_AFTER = 3600.0  # seconds; a use within them does not count again
_MOST_ENTRY = 1 << 30  # bytes
_MOST_INCLUDE = 1 << 28  # bytes; the compiler itself reads less

Warnings = list[tuple[str, int, int, str, str, str]]
"""What the native compiler warns about: the fields of `Diagnostic`."""


class CachedShader(NamedTuple):
    """What a compilation gave."""

    spirv: bytes
    warnings: Warnings
    included: list[str]
    """The files that it included."""
    sought: Sequence[tuple[str, bytes]] = ()
    """Every path where an include was sought, with the digest of what was there; b"" for nothing."""
    declared: bytes = b""
    """The module before it was optimized, which says what the source declares; b"" where that is the same."""
    compiler: str = "glslang"
    """What compiled it: "glslang", "Slang 2026.12"."""


class CacheEntry(NamedTuple):
    """One file of the cache."""

    path: str
    size: int
    """Bytes on disk."""
    used: float
    """When it was last used, in seconds since the epoch; exact to an hour."""


class ShaderCache:
    """The entries in one folder, which is made when the first is stored."""

    def __init__(self, directory: str, limit: int = 128 << 20) -> None:
        self.directory = directory
        self.limit = limit
        """Bytes that the entries may have together; beyond it those that were used least recently go."""
        self._written: int | None = None  # since the last look at the folder; None before the first
        self._lock = threading.Lock()

    def path(self, key: bytes) -> str:
        """Where the entry of a key is, or would be."""
        return os.path.join(self.directory, digest(key).hex() + _SUFFIX)

    def load(self, key: bytes) -> CachedShader | None:
        """The shader of a key; None where there is none, or where a file that it was made from has changed."""
        path = self.path(key)
        try:
            content, changed = read_own(path, self.limit)
            shader = _decode(content, path)
        except (OSError, ValueError):
            return None
        if not all(_unchanged(place, expected) for place, expected in shader.sought):
            return None
        if time.time() - changed > _TOUCH_AFTER:
            try:
                os.utime(path)
            except OSError:
                pass  # a cache that is read-only serves all the same
        return shader

    def store(
        self, key: bytes, shader: CachedShader, probes: Sequence[tuple[str, bytes | None]], name: str
    ) -> None:
        """Keeps a shader. `probes` are the paths where includes were sought, with what was read there or None.

        `name` is what the source is called. Nothing happens where the disk is full or the folder cannot be written.
        """
        path = self.path(key)
        content = _encode(shader, probes, name, path)
        if len(content) > self.limit:
            return
        try:
            own_folder(self.directory)
            descriptor, temporary = create_temporary(self.directory, os.path.basename(path), 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                _write(file, content, temporary, path)
        except (OSError, ValueError):  # ValueError: a folder's name with a NUL
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
        """Deletes what was used least recently where the limit is exceeded, and what dead writers left."""
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
        """Deletes all entries; how many there were."""
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
                        continue  # not ours
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # another process deleted it
                    yield CacheEntry(entry.path, status.st_size, status.st_mtime)
        except (OSError, ValueError):
            return


def source_name(path: str) -> str:
    """What the source of an entry was called: its path, or "<source>".

    Raises ValueError for a damaged entry, OSError for one that cannot be read or believed.
    """
    return os.fsdecode(_parts(read_own(path, _MOST_ENTRY)[0], path)[0])


def compiler_key() -> bytes:
    """A name for the compiler: another version, or other libraries, have another."""
    global _compiler_key
    if _compiler_key is None:
        _compiler_key = f"{_native.__version__}; {_native.compiler_id()}; {sys.byteorder}".encode()
    return _compiler_key


_compiler_key: bytes | None = None


def shader_cache(setting: Lookup = of_process) -> ShaderCache | None:
    """The cache that the settings ask for; None if it is turned off. Raises what `setting` raises."""
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
    places = []
    for place, mark in marks(probes):
        places += [os.fsencode(place), mark]
    fields = []
    for file, line, column, severity, message, source_line in shader.warnings:
        numbers = struct.pack("<QQ", line, column)
        fields += [numbers, *(text.encode() for text in (file, severity, message, source_line))]
    body = pack(
        [
            os.fsencode(name),
            shader.spirv,
            shader.declared,
            pack(os.fsencode(file) for file in shader.included),
            pack(places),
            pack(fields),
            shader.compiler.encode(),
        ]
    )
    return b"".join((_MAGIC, struct.pack("<Q", _FORMAT), _checksum(path, body), body))


def _checksum(path: str, body: bytes) -> bytes:
    # With the entry's name: a file that was copied or renamed to another entry's is none.
    return digest(os.fsencode(os.path.basename(path)) + body)


def _parts(content: bytes, path: str) -> list[bytes]:
    head = len(_MAGIC) + 8
    body = content[head + DIGEST_SIZE :]
    if content[:head] != _MAGIC + struct.pack("<Q", _FORMAT) or content[
        head : head + DIGEST_SIZE
    ] != _checksum(path, body):
        raise ValueError("the entry is damaged")
    parts = unpack(body)
    if len(parts) != 7:
        raise ValueError("the entry is of another format")
    return parts


def _decode(content: bytes, path: str) -> CachedShader:
    _, spirv, declared, included, places, fields, compiler = _parts(content, path)
    listed = unpack(places)
    found: Warnings = []
    texts = unpack(fields)
    for i in range(0, len(texts), 5):
        if len(texts[i]) != 16:
            raise ValueError("the entry is of another format")
        line, column = struct.unpack("<QQ", texts[i])
        file, severity, message, source_line = (text.decode() for text in texts[i + 1 : i + 5])
        found.append((file, line, column, severity, message, source_line))
    sought = tuple((os.fsdecode(path), mark) for path, mark in zip(listed[::2], listed[1::2], strict=True))
    return CachedShader(
        spirv, found, [os.fsdecode(path) for path in unpack(included)], sought, declared, compiler.decode()
    )


def _unchanged(path: str, expected: bytes) -> bool:
    """Whether an include that was sought at `path` would find what it found: content of a digest, or b"" for nothing."""
    if not expected:
        return not os.path.isfile(path)
    try:
        return digest(read_regular(path, _MOST_INCLUDE)) == expected
    except (OSError, ValueError):
        return False


def _write(file: BinaryIO, content: bytes, temporary: str, path: str) -> None:
    """Writes `temporary`, which is open, and renames it. Raises OSError, and leaves no file then."""
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[file.write(rest) :]
        if os.name != "posix":
            file.close()
        os.replace(temporary, path)
    except BaseException:
        file.close()
        _remove(temporary)
        raise


def _is_temporary(name: str) -> bool:
    return f"{_SUFFIX}." in name


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except (OSError, ValueError):
        pass  # another process was faster, or the folder is read-only
