"""The result of a compiler in its own process, and the files that it reads.

Slang and DXC read every file through `Files`. It provides virtual includes, prevents source text from
including files of the current folder by chance, and records each tried path.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from .request import Request

_MOST_BYTES = 64 << 20  # the limit for one file
# Slang's message, and DXC's.
_MISSING = re.compile(r"failed to find include file '([^'\n]+)'|'([^'\n]+)' file not found")

# The compilers are told that a source without a file is in this folder.
NOWHERE = "kp-source"

_FUNCTION = re.compile(rb"\[\s*numthreads[^\]]*\][^;{}()]*?(\w+)\s*\(")

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)

OK = 0
NO_INTERFACE = -2147467262  # E_NOINTERFACE, 0x80004002

Message = tuple[str, int, int, str, str, str]
"""The fields of a `Diagnostic`."""


class Result(NamedTuple):
    """The result of a compilation."""

    spirv: bytes
    """b"" if it did not compile."""
    messages: list[Message]
    files: Files
    tree: Callable[[], str] = str
    """Makes the syntax tree, "" if the compiler shows none."""


def error_in(source: Request, message: str) -> list[Message]:
    """The messages of a source with an error that has no line."""
    return [(source.name, 0, 0, "error", message, "")]


def functions_in(text: bytes) -> list[str]:
    """The names of the functions with [numthreads] in HLSL or Slang: its entry points."""
    return [name.decode() for name in _FUNCTION.findall(_COMMENT.sub(b" ", text))]


def no_entry(source: Request) -> list[Message]:
    """The message for a source without its entry point. It names the first function that could be one."""
    message = f"the source has no entry point {source.entry!r}; give the name of a function with [numthreads]"
    if found := _FUNCTION.search(source.source):
        message += f": entry={found[1].decode()!r}"
    return error_in(source, message)


UNKNOWN = UUID("00000000-0000-0000-C000-000000000046").bytes_le
"""IUnknown, which every interface extends."""


class Methods:
    """An object that a compiler calls: a table of Python functions, the first three those of IUnknown.

    Python controls its lifetime: the compiler's reference counting has no effect.
    """

    def __init__(self, interfaces: set[bytes], methods: list[Any]) -> None:
        pointer = ctypes.c_void_p
        query = ctypes.CFUNCTYPE(
            ctypes.c_int32, pointer, ctypes.POINTER(ctypes.c_ubyte * 16), ctypes.POINTER(pointer)
        )
        count = ctypes.CFUNCTYPE(ctypes.c_uint32, pointer)

        def find(this: int, asked: Any, out: Any) -> int:
            known = bytes(asked.contents) in interfaces
            out[0] = this if known else None
            return OK if known else NO_INTERFACE

        self._kept = [query(find), count(lambda _: 1), count(lambda _: 1), *methods]
        self._table = (pointer * len(self._kept))(*(ctypes.cast(each, pointer) for each in self._kept))
        self._object = pointer(ctypes.addressof(self._table))
        self.address = ctypes.addressof(self._object)


class Files:
    """The files of one compilation."""

    def __init__(self, source: Request) -> None:
        self._on_disk = not source.name.startswith("<")
        self.main = source.name if self._on_disk else f"{NOWHERE}/{source.name}"
        """The path of the source that the compiler is given."""
        self._folders = dict.fromkeys(
            os.path.normpath(folder) for folder in (os.path.dirname(self.main), *source.include_dirs)
        )
        self._virtual = {os.path.normpath(name): text for name, text in source.includes.items()}
        self.probes: dict[str, bytes | None] = {}
        """Every tried path with its content, or None if there was no file."""
        self.texts: dict[str, bytes] = {self.main: source.source}
        """The source and its includes."""

    def read(self, path: str) -> bytes | None:
        """The text of an included file without a byte-order mark; None if there is no such file."""
        try:
            content = self._read(os.path.normpath(path))
        except Exception:  # exceptions must not pass through the compiler
            return None
        return None if content is None else content.removeprefix(b"\xef\xbb\xbf")

    def _read(self, path: str) -> bytes | None:
        for folder in self._folders:
            name = path if folder == "." or path in self._virtual else os.path.relpath(path, folder)
            if name in self._virtual:
                self.texts[path] = self._virtual[name]
                return self._virtual[name]
        if path.split(os.sep, 1)[0] == NOWHERE and not self._on_disk:
            return None
        if not os.path.isfile(path):
            if not os.path.exists(path):
                self.probes.setdefault(path, None)
            return None
        if os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, "rb") as file:
            content = file.read()
        self.probes[path] = content
        self.texts[path] = content
        self._folders.setdefault(os.path.dirname(path) or ".")
        return content

    def _looked_in(self, message: str) -> str:
        """Where an include was looked for that is not there, for the compiler's message about it."""
        missing = _MISSING.search(message)
        if missing is None:
            return ""
        tried = [
            os.path.dirname(path) or "."
            for path, content in self.probes.items()
            if content is None and os.path.basename(path) == os.path.basename(missing[1] or missing[2])
        ]
        listed = ", ".join(map(repr, dict.fromkeys(tried)))
        return f"; looked in {listed}" if listed else "; give include_dirs= or includes="

    def placed(self, messages: list[Message]) -> list[Message]:
        """The messages with the files' real names and the source's lines."""
        placed = []
        for file, line, column, severity, message, _ in messages:
            lines = self.texts.get(
                file, self.texts.get(os.path.normpath(file) if file else "", b"")
            ).splitlines()
            text = lines[line - 1].decode(errors="replace") if 0 < line <= len(lines) else ""
            message += self._looked_in(message)
            placed.append((file.removeprefix(f"{NOWHERE}/"), line, column, severity, message, text))
        return placed
