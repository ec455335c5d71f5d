"""Writes files that appear complete: a temporary file is written, and then replaces the old one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from .._base.errors import InvalidArgumentError, NotFoundError, shown
from .._base.file_access import create_temporary, delete_abandoned, is_temporary
from .reading import refused


def write(file: BinaryIO, data: memoryview | bytes) -> None:
    """Writes all of `data`. Raises UnavailableError if the system refuses."""
    rest = memoryview(data)
    try:
        while rest:
            count = file.write(rest)
            rest = rest[len(rest) if count is None else count :]  # files of other libraries may return None
    except (OSError, ValueError) as error:  # ValueError: the file is closed
        raise refused(f"the file {getattr(file, 'name', file)!r}", "written", error) from error


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` at the end; after an exception, `path` is unchanged."""
    folder, name = os.path.split(path)
    ours = f".{name[:40]}"
    try:
        target = _replaceable(path)
        delete_abandoned(folder, lambda found: is_temporary(found, ours))
        descriptor, temporary = create_temporary(folder, ours, 0o666 if target is None else 0o600)
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no folder {folder!r} to save {shown(name)} in") from error
    except OSError as error:
        raise refused(f"the file {path!r}", "written", error) from error
    try:
        # The opener returns the open descriptor, so that errors name the requested file.
        with open(path, "wb", buffering=0, opener=lambda *_: descriptor) as file:
            if target is not None:
                _permit_as(file.fileno(), temporary, target)
            yield file
            try:
                os.fsync(file.fileno())
                _replaceable(path)  # it may have changed
                # The open file is locked, so that no other writer deletes it as abandoned. Windows cannot
                # rename open files.
                if os.name == "posix":
                    os.replace(temporary, path)
            except OSError as error:
                raise refused(f"the file {path!r}", "written", error) from error
        if os.name != "posix":
            try:
                os.replace(temporary, path)
            except OSError as error:
                raise refused(f"the file {path!r}", "written", error) from error
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _replaceable(path: str) -> os.stat_result | None:
    """The status of `path`; None if it does not exist.

    Raises InvalidArgumentError unless it is a regular file.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise InvalidArgumentError(f"{path!r} is a folder; give the path of a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidArgumentError(
            f"{path!r} is a device, a pipe or a socket, which saving would replace; give the path of a "
            "regular file"
        )
    return status


def _permit_as(descriptor: int, path: str, target: os.stat_result) -> None:
    """Gives a new file, so far readable by its owner only, the owner and permissions of the file that it
    replaces, without the bits that let it run as that owner or group.
    """
    mode = stat.S_IMODE(target.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    if hasattr(os, "fchown"):
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (target.st_uid, target.st_gid):
            try:
                os.fchown(descriptor, target.st_uid, target.st_gid)
            except OSError:
                if status.st_gid != target.st_gid:
                    mode &= ~stat.S_IRWXG  # these permissions were meant for another group
        with suppress(OSError):  # not every file system has permissions
            os.fchmod(descriptor, mode)
    else:
        os.chmod(path, mode)


def _sync_folder(folder: str) -> None:
    # Without this, a loss of power could undo the renaming. Not every system can open folders.
    if not hasattr(os, "O_DIRECTORY"):
        return
    # The file is in place, so a file system that cannot sync folders is not an error.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
