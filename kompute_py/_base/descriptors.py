"""File descriptors that objects own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import FailedPreconditionError

if TYPE_CHECKING:
    from typing_extensions import Self


class Descriptor:
    """Owns a file descriptor: `close`, the end of a ``with`` block or its last reference closes it."""

    __slots__ = ("__weakref__", "_fd")

    _fd: int  # -1: closed
    _anew = "make a new one"

    def fileno(self) -> int:
        """The file descriptor, which the handle keeps. Raises FailedPreconditionError if it is closed."""
        if self._fd < 0:
            raise FailedPreconditionError(f"{self!r}: {self._anew}")
        return self._fd

    def close(self) -> None:
        """Closes the descriptor. May be called any number of times."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    def _state(self) -> str:
        return "closed" if self._fd < 0 else f"descriptor {self._fd}"

    def _sent(self) -> Any:
        """What pickling sends in its place: a duplicate, as `multiprocessing` does with sockets."""
        from multiprocessing.reduction import DupFd

        return DupFd(self.fileno())
