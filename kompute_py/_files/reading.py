"""Reads the bytes that tensors lie in: of a file by its path, of an open file, or of memory."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    kind_of,
)
from .._base.file_access import NotRegularError, as_path, current_folder, open_regular

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Bytes per piece. Large enough that a transfer through the staging ring mostly overlaps with the host's copy;
# small enough that Ctrl-C and the progress bar react promptly.
PIECE = 16 << 20
_HUGE_PAGE = 2 << 20
# Reads at an offset let several threads share one file.
_READS_AT = hasattr(os, "preadv")
_READERS = 4


Readable = str | os.PathLike[str] | BinaryIO | bytes | bytearray | memoryview
"""A path, a file that is open for reading bytes, or the bytes themselves."""


class _Version(NamedTuple):
    """Facts that change if another program writes to a file."""

    size: int
    changed: int


def _version(file: BinaryIO) -> _Version:
    status = os.fstat(file.fileno())
    return _Version(status.st_size, status.st_mtime_ns)


class Source:
    """Where bytes are: a path (opened for each use), an open file (read from its first byte), or memory.

    `release` is called once nothing needs the source any more. Raises ArgumentTypeError for anything else.
    """

    def __init__(self, given: Any, release: Callable[[], object] | None = None) -> None:
        self._path: str | None = None
        self._file: Any = None
        self._memory: memoryview | None = None
        self._seen: _Version | None = None
        self._lock = threading.Lock()
        if isinstance(given, str) or hasattr(given, "__fspath__"):
            self._path = as_path(given)
        elif hasattr(given, "read") and hasattr(given, "seek"):
            if "b" not in getattr(given, "mode", "b") or hasattr(given, "encoding"):
                raise ArgumentTypeError(f'The file {given!r} is open for text; open it with mode "rb"')
            self._file = given
        else:
            self._memory = _bytes_of(given)
        if release is not None:
            if not callable(release):
                raise ArgumentTypeError(f"release is {kind_of(release)}; give a function without arguments")
            weakref.finalize(self, release)

    @property
    def what(self) -> str:
        """The source in the middle of a message."""
        if self._path is not None:
            return f"the file {self._path!r}"
        if self._file is not None:
            return f"the file {self._file!r}"
        return "the given bytes"

    @property
    def title(self) -> str:
        """A short name for the progress bar."""
        return "parameters" if self._path is None else os.path.basename(self._path)

    @contextmanager
    def opened(self) -> Iterator[Pieces]:
        """The bytes, open. Raises NotFoundError, InvalidArgumentError and UnavailableError if that fails, or
        if the file has changed since it was first opened.
        """
        with ExitStack() as stack:
            if self._path is not None:
                pieces: Pieces = _FilePieces(self.what, stack.enter_context(_open(self._path)))
            elif self._file is not None:
                pieces = _StreamPieces(self.what, self._file, self._lock)
            else:
                assert self._memory is not None
                pieces = _MemoryPieces(self.what, self._memory)
            stack.callback(pieces.close)
            if self._seen is None:
                self._seen = pieces.version
            pieces.version = self._seen
            pieces.require_unchanged()
            yield pieces


def hold_open(path: str, sources: Iterable[Any]) -> None:
    """Lets those of `sources` that lie in the file at `path` read on when another file replaces it."""
    try:
        there = os.stat(path)
    except OSError:
        return
    held = [
        each
        for each in sources
        if isinstance(each, Source)
        and each._path is not None
        and os.path.exists(each._path)
        and os.path.samestat(os.stat(each._path), there)
    ]
    if held:
        file, lock = open(path, "rb"), threading.Lock()  # noqa: SIM115 the sources keep it
        for each in held:
            with each.opened():  # it has not changed
                each._lock, each._file = lock, file
                each._path = None  # the last, for threads that read now


def _bytes_of(given: Any) -> memoryview:
    try:
        view = memoryview(given)
    except TypeError:
        raise ArgumentTypeError(
            f"path is {kind_of(given)}; give a str, a pathlib.Path, a file that is open for reading bytes, "
            "or bytes"
        ) from None
    if view.nbytes == 0:  # cast refuses shapes with zeros
        return memoryview(b"")
    try:
        return view.cast("B")
    except TypeError:  # not contiguous, or elements of another byte order
        raise ArgumentTypeError("The given bytes are not plain contiguous bytes; give bytes(data)") from None


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    try:
        # Unbuffered, because all reads are large.
        file = open(open_regular(path), "rb", buffering=0)  # noqa: SIM115
    except NotRegularError:
        raise InvalidArgumentError(
            f"{path!r} is not a regular file; give the path of a parameter file"
        ) from None
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no file {path!r} (in {current_folder()!r})") from error
    except OSError as error:
        raise refused(f"the file {path!r}", "read", error) from error
    with file:
        yield file


def beginning(what: str) -> str:
    """`what` at the beginning of a sentence."""
    return what[:1].upper() + what[1:]


def refused(what: str, verb: str, error: Exception) -> UnavailableError:
    """The error for `what`, a file that the system refuses to have `verb`: "read" or "written"."""
    kind = PermissionDeniedError if isinstance(error, PermissionError) else UnavailableError
    return kind(f"{beginning(what)} cannot be {verb}: {error}")


class Pieces:
    """Reads a file piece by piece and notices if another program changes it.

    The file is not mapped: reading a mapped page beyond the end of a shortened file would kill the process.
    """

    readers = 1
    """How many threads read at once."""

    def __init__(self, what: str, size: int, version: _Version | None) -> None:
        self.what = what
        self.size = size
        """The bytes that there are."""
        self.version = version
        self._room: np.ndarray[Any, Any] | None = None
        self._first = self._end = 0  # the range of the file in the room
        self._threads: ThreadPoolExecutor | None = None

    def head(self, offset: int, count: int) -> bytes:
        """`count` bytes from `offset`. Raises InvalidArgumentError if there are fewer."""
        if offset + count > self.size:
            raise InvalidArgumentError(
                f"The file has {self.size} bytes, and ends before byte {offset + count}"
            )
        room = bytearray(count)
        self._fill(memoryview(room), offset)
        return bytes(room)

    def read(self, offset: int, nbytes: int, end: int) -> np.ndarray[Any, Any]:
        """`nbytes` bytes from `offset`, as uint8, valid until the next call.

        The bytes up to `end` are read along, as far as a piece has room. Raises UnavailableError if the file
        changed.
        """
        if self._room is None or len(self._room) < nbytes:
            self._room = np.empty(min(PIECE, self.size), np.uint8)
            self._first = self._end = 0
        if not self._first <= offset <= offset + nbytes <= self._end:
            self._first = self._end = offset  # nothing, until all is read
            size = min(len(self._room), end - offset)
            self.fill(self._room[:size].data, offset)
            self.require_unchanged()
            self._end = offset + size
        return self._room[offset - self._first : offset - self._first + nbytes]

    def read_into(self, data: np.ndarray[Any, Any], offset: int) -> Iterator[int]:
        """Fills `data`, memory of a new tensor, with the bytes from `offset`. Yields the bytes done after
        each piece.

        The system zeroes a huge page from its far end towards the address that is touched first. Touching the
        end first takes a third of the time, and the page is in the cache when the file's bytes arrive (see
        the core's base/first_touch.hpp).
        """
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            share = -(-len(piece) // (self.readers * _HUGE_PAGE)) * _HUGE_PAGE
            parts = range(0, len(piece), share)
            others: list[Future[None]] = []
            try:
                for first in parts[1:]:
                    try:
                        others.append(self._pool().submit(self._fill_pages, piece, first, share, offset + at))
                    except RuntimeError:  # no thread can be started, as at the end of the program
                        self._fill_pages(piece, first, share, offset + at)
                self._fill_pages(piece, 0, share, offset + at)
            finally:
                for each in others:  # they write into the piece, so all must end before an error is raised
                    each.exception()
            for each in others:
                each.result()
            self.require_unchanged()
            yield at + len(piece)

    def _pool(self) -> ThreadPoolExecutor:
        """Threads for all parts of a piece but the first: one processor alone does not reach the memory's
        bandwidth.
        """
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self.readers - 1, "kompute_py reading a file")
        return self._threads

    def close(self) -> None:
        """Ends the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def _fill_pages(self, piece: np.ndarray[Any, Any], first: int, size: int, offset: int) -> None:
        """Fills `size` bytes of `piece` from `first`, one huge page at a time.

        `offset` is the piece's offset in the file.
        """
        address, end = piece.ctypes.data, min(first + size, len(piece))
        while first < end:
            page = min(_HUGE_PAGE - (address + first) % _HUGE_PAGE, end - first)
            piece[first + page - 1] = 0
            self.fill(piece.data[first : first + page], offset + first)
            first += page

    def fill(self, rest: memoryview, offset: int) -> None:
        """Fills `rest` with the bytes from `offset`. Raises UnavailableError if that fails."""
        self._fill(rest, offset)

    def _fill(self, rest: memoryview, offset: int) -> None:
        try:
            while rest:
                count = self._read_into(rest, offset)
                if not count:
                    raise UnavailableError(
                        f"Another program shortened {self.what} while it was loaded; load it again"
                    )
                rest = rest[count:]
                offset += count
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            raise refused(self.what, "read", error) from error

    def _read_into(self, rest: memoryview, offset: int) -> int:
        """Fills the beginning of `rest`. Returns the number of bytes; 0 at the end of the file."""
        raise NotImplementedError

    def require_unchanged(self) -> None:
        """Raises UnavailableError if another program has written to the file since it was first opened."""


class _FilePieces(Pieces):
    """The bytes of a file that is open by its path."""

    version: _Version

    def __init__(self, what: str, file: BinaryIO) -> None:
        version = _version(file)
        super().__init__(what, version.size, version)
        self._file = file
        self.readers = min(os.cpu_count() or 1, _READERS) if _READS_AT else 1

    def _read_into(self, rest: memoryview, offset: int) -> int:
        if _READS_AT:
            return os.preadv(self._file.fileno(), [rest], offset)
        self._file.seek(offset)
        return self._file.readinto(rest)  # type: ignore[attr-defined]

    def require_unchanged(self) -> None:
        if _version(self._file) != self.version:
            raise UnavailableError(
                f"Another program changed {self.what} while it was loaded; load it again. Writers should "
                "replace such files as a whole, as kp.save_tensors does"
            )


class _StreamPieces(Pieces):
    """The bytes of a file that its owner has opened."""

    def __init__(self, what: str, file: Any, lock: threading.Lock) -> None:
        self._file = file
        self._lock = lock  # its place is one for all threads
        try:
            with lock:
                size = file.seek(0, os.SEEK_END)
        except (OSError, ValueError) as error:
            raise refused(what, "read", error) from error
        super().__init__(what, size, None)

    def _read_into(self, rest: memoryview, offset: int) -> int:
        with self._lock:
            self._file.seek(offset)
            if hasattr(self._file, "readinto"):
                return self._file.readinto(rest)
            found = self._file.read(len(rest))
        rest[: len(found)] = found
        return len(found)


class _MemoryPieces(Pieces):
    """The bytes of memory of this process."""

    def __init__(self, what: str, memory: memoryview) -> None:
        super().__init__(what, len(memory), None)
        self._memory = memory

    def _read_into(self, rest: memoryview, offset: int) -> int:
        found = self._memory[offset : offset + len(rest)]
        rest[: len(found)] = found
        return len(found)
