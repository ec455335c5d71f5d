"""Which of some files have changed since they were read: a stat() of each, no thread.

A file's time, size and inode tell nearly always. They do not where an edit comes within the same tick of the file system's
clock as the reading and keeps the size, so a file that was young when it was read is read again until it is not. What was
read is known by its digest, taken by the reader itself: an edit between reading and the first look is seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from .._base.digest import digest
from .._base.file_access import read_regular

_YOUNG = 2.5  # seconds: the coarsest clock of a file system in use (FAT's) ticks every two
_SETTLING = 1.0  # seconds that a file may be missing or empty while an editor writes it

_MOST = 1 << 30  # bytes

_Stamp = tuple[int, int, int]  # time of change in ns, bytes, inode


class _File:
    """One path and what was there; `mark` is the digest of its content, b"" where there was no file."""

    __slots__ = ("_gone_since", "_stamp", "_young", "mark", "path")

    def __init__(self, path: str, mark: bytes) -> None:
        self.path = path
        self.mark = mark
        self._stamp: _Stamp | None = None
        self._young = True  # nobody has looked at the stamp yet
        self._gone_since: float | None = None

    def changed(self) -> bool:
        try:
            status = os.stat(self.path)
        except (OSError, ValueError):
            return self._gone()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp == self._stamp and not self._young:
            self._gone_since = None
            return False
        if status.st_size == 0 and self.mark:
            return self._gone()
        now = time.time()  # before reading: what changes later has a later time
        try:
            content = read_regular(self.path, _MOST)
        except OSError:
            return self._gone()
        if not self.mark or digest(content) != self.mark:
            return True
        self._gone_since = None
        self._stamp = stamp
        self._young = now - status.st_mtime < _YOUNG
        return False

    def _gone(self) -> bool:
        """Whether a file that is missing, empty or locked counts as changed: not for the moment that saving it takes."""
        if not self.mark:
            return False
        now = time.monotonic()
        if self._gone_since is None:
            self._gone_since = now
        return now - self._gone_since >= _SETTLING


class WatchedFiles:
    """Files as they were when something was made of them."""

    __slots__ = ("_files",)

    def __init__(self, files: Iterable[tuple[str, bytes]]) -> None:
        """`files`: (absolute path, digest of what was there, b"" for nothing)."""
        self._files = [_File(path, mark) for path, mark in dict(files).items()]

    def changed(self) -> bool:
        """Whether one of them is another now. About a microsecond for each; files younger than seconds are read."""
        # All of them, not up to the first: where one is missing for a moment, another may tell that the edit is done.
        found = False
        for file in self._files:
            found = file.changed() or found
        return found

    def __len__(self) -> int:
        return len(self._files)
