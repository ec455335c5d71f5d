"""Things that others can put where the package expects a file or a folder of its own."""

from __future__ import annotations

import os
import socket
from pathlib import Path

KINDS = [
    "pipe", "folder", "link", "dangling", "endless", "socket", "huge", "unreadable", "writable", "foreign",
    "garbage", "empty",
    "truncated", "version",
]  # fmt: skip
FOLDER_KINDS = ["pipe", "file", "dangling", "endless", "unreadable", "foreign"]


def needs_root(kind: str) -> bool:
    """Whether only root can make it."""
    return kind == "foreign"


def make_hostile(path: Path, kind: str, content: bytes) -> None:
    """Puts something at `path` that the package did not write there; `content` is a valid file's."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_bytes(b"file")
    elif kind == "link":
        other = path.parent.parent / f"elsewhere-{path.name}"
        other.write_bytes(content)
        path.symlink_to(other)
    elif kind == "dangling":
        path.symlink_to(path.parent.parent / "nothing")
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        # Bound by a relative name: a socket's address is short.
        here = os.getcwd()
        os.chdir(path.parent)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "huge":
        path.touch(0o600)
        os.truncate(path, 1 << 42)
    elif kind in ("unreadable", "writable", "foreign"):
        path.write_bytes(content)
        path.chmod({"unreadable": 0, "writable": 0o666, "foreign": 0o644}[kind])
        if kind == "foreign":
            os.chown(path, 12345, 12345)
    else:
        changed = {
            "garbage": bytes(range(256)) * 16,
            "empty": b"",
            "truncated": content[: len(content) // 2],
            # All files of the package begin with a magic of 8 bytes and the number of their format, or with a
            # length.
            "version": content[:8]
            + bytes([(content[8] + 1) % 256] if len(content) > 8 else b"")
            + content[9:],
        }[kind]
        path.write_bytes(changed)
        path.chmod(0o600)


def make_hostile_folder(path: Path, kind: str) -> None:
    """Puts something in the place of a folder that the package made, or changes whose it is."""
    if kind == "unreadable":
        path.mkdir(0o000)
    elif kind == "foreign":
        path.mkdir(0o700)
        os.chown(path, 12345, 12345)
    else:
        make_hostile(path, kind, b"")
