"""Opens files that other programs may have created, changed or replaced.

Three rules apply to every file that the package opens by itself:

- Only regular files up to a size limit are read. Opening never blocks (a pipe would) and has no side effect
  (a device might).
- A cache file is trusted only if the user (or root) owns it and no other user may write to it. Links are not
  followed.
- A written file appears complete: it is a temporary file first. The writer holds a lock on it. The system
  releases the lock if the process is killed, so that the next writer finds and deletes the file.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_CREATE = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
# Seconds after which a temporary file counts as abandoned, on file systems without locks.
_ABANDONED_AFTER = 3600.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class NotRegularError(OSError):
    """The path does not lead to a regular file, but to a folder, a pipe, a socket or a device."""


def as_path(path: Any) -> str:
    """`path` as a str. Raises ArgumentTypeError and InvalidArgumentError for anything else."""
    try:
        made = os.fspath(path)
    except TypeError:
        made = path
    if not isinstance(made, str):
        raise ArgumentTypeError(f"path is {kind_of(path)}; give a str or a pathlib.Path")
    if "\0" in made or not made:
        raise InvalidArgumentError(f"path is {shown(made)}; a path is not empty and has no null character")
    try:
        os.fsencode(made)
    except UnicodeError:
        raise InvalidArgumentError(
            f"path is {shown(made)}, which the file system's encoding cannot represent"
        ) from None
    return made


def open_regular(path: str | bytes, *, follow: bool = True) -> int:
    """A descriptor to read `path`.

    Raises NotRegularError if `path` is not a regular file, and OSError as `os.open` does.
    """
    # Checked before opening, because opening a device may have a side effect, and again after, because the
    # path may have been replaced in between.
    _require_regular(os.stat(path, follow_symlinks=follow), path)
    descriptor = os.open(path, _READ if follow else _READ | _NO_LINK)
    try:
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, path: str | bytes) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(errno.EINVAL, "It is not a regular file", path)


def read_regular(path: str | bytes, most: int) -> bytes:
    """The contents of a regular file of at most `most` bytes. Raises OSError (EFBIG if it is larger)."""
    with open(open_regular(path), "rb", buffering=0) as file:
        return _read(file.fileno(), path, most)


def read_own(path: str, most: int) -> tuple[bytes, float]:
    """The contents of a cache file and its modification time. Raises OSError if the file is not trusted."""
    with open(open_regular(path, follow=False), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not _is_own(status) or status.st_mode & _WRITABLE_BY_OTHERS:
            raise PermissionError(errno.EPERM, "Another user owns the file or may change it", path)
        return _read(file.fileno(), path, most), status.st_mtime


def current_folder() -> str:
    """The current folder; the root folder if the current one was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _read(descriptor: int, path: str | bytes, most: int) -> bytes:
    # The size is only a hint: the file may grow, and files in /proc report 0.
    parts = []
    size = os.fstat(descriptor).st_size
    left = most + 1
    if size <= most:
        while left and (part := os.read(descriptor, min(left, max(size + 1, 1 << 16)))):
            parts.append(part)
            left -= len(part)
    if size > most or not left:
        raise OSError(errno.EFBIG, f"It has more than {most} bytes", path)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid in (os.geteuid(), 0)


def own_folder(path: str) -> None:
    """Creates a cache folder and its missing parents, accessible to this user only.

    An existing folder keeps its mode. Raises OSError if creation fails or the folder belongs to another user.
    """
    missing = []
    above = path
    while above and not os.path.isdir(above):
        missing.append(above)
        if os.path.dirname(above) == above:
            break
        above = os.path.dirname(above)
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process created it first
            os.mkdir(each, 0o700)
    if not _is_own(os.stat(path)):
        raise PermissionError(errno.EPERM, "The folder belongs to another user", path)


def replace_own(path: str, content: bytes) -> None:
    """Writes a cache file, readable by this user only: readers see the old contents, or all of the new ones.

    Creates its folder. Raises OSError, or ValueError if the path contains a NUL; then it leaves no file.
    """
    folder, name = os.path.split(path)
    own_folder(folder)
    descriptor, temporary = create_temporary(folder, name, 0o600)
    with open(descriptor, "wb", buffering=0) as file:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            if os.name != "posix":
                file.close()
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.remove(temporary)
            raise


def create_temporary(beside: str, ours: str, mode: int) -> tuple[int, str]:
    """Creates a file in the folder `beside`. Its name is `ours`, random digits and ".tmp". Raises OSError.

    Returns its descriptor and path. The permissions are `mode`, less the umask, from the start. The file is
    locked as long as the descriptor is open.
    """
    while True:
        path = os.path.join(beside, f"{ours}.{os.urandom(6).hex()}.tmp")
        descriptor = os.open(path, _CREATE, mode)
        try:
            # Between the two calls another writer may have deleted it as abandoned.
            if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink > 0:
                return descriptor, path
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(path)
            raise
        os.close(descriptor)


def delete_abandoned(folder: str, is_ours: Callable[[str], bool]) -> None:
    """Deletes temporary files of ended writers in `folder`, if `is_ours` accepts the name."""
    try:
        with os.scandir(folder) as found:
            paths = [each.path for each in found if each.name.endswith(".tmp") and is_ours(each.name)]
    except (OSError, ValueError):
        return
    for path in paths:
        with suppress(OSError):
            _delete_abandoned(path)


def is_temporary(name: str, ours: str) -> bool:
    """Whether `name` is a name that `create_temporary` gives."""
    digits = name[len(ours) + 1 : -4]
    return (
        name == f"{ours}.{digits}.tmp" and len(digits) == 12 and all(c in "0123456789abcdef" for c in digits)
    )


def _delete_abandoned(path: str) -> None:
    descriptor = open_regular(path, follow=False)
    try:
        status = os.fstat(descriptor)
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return
        locked = _lock(descriptor)
        if locked or (locked is None and time.time() - status.st_mtime > _ABANDONED_AFTER):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether the file is now locked by this descriptor; None if this system or file system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
