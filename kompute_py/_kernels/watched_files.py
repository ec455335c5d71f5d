"""Finds out which files have changed since they were read, with a stat() of each and without a thread.

A file's time, size and inode nearly always show a change. They do not if an edit keeps the size and falls
into the same tick of the file system's clock as the reading. A file that was young when it was read is
therefore read again until it is old enough. Contents are compared by the digest that the reader took, so that
an edit between reading and the first check is found.
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
    """One path; `mark` is the digest of its content, or b"" if there was no file."""

    __slots__ = ("_gone_since", "_stamp", "_young", "mark", "path")

    def __init__(self, path: str, mark: bytes) -> None:
        self.path = path
        self.mark = mark
        self._stamp: _Stamp | None = None
        self._young = True  # the stamp has not been read yet
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
        now = time.time()  # before reading: later changes have a later time
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
        """Whether a missing, empty or locked file counts as changed.

        While an editor saves it, it does not.
        """
        if not self.mark:
            return False
        now = time.monotonic()
        if self._gone_since is None:
            self._gone_since = now
        return now - self._gone_since >= _SETTLING


class WatchedFiles:
    """Files in the state in which they were used."""

    __slots__ = ("_files",)

    def __init__(self, files: Iterable[tuple[str, bytes]]) -> None:
        """`files`: (absolute path, digest of its content, or b"" if there was none)."""
        self._files = [_File(path, mark) for path, mark in dict(files).items()]

    def changed(self) -> bool:
        """Whether a file has changed. Takes about a microsecond per file; young files are read."""
        # Checks all files, even after a change: if one is missing for a moment, another may show that the
        # edit is done.
        found = False
        for file in self._files:
            found = file.changed() or found
        return found

    def __len__(self) -> int:
        return len(self._files)
