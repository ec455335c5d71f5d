"""Parameter files: tensors by name in a file, in the safetensors format that other frameworks share.

A file can be larger than the free memory. Loading therefore reads the file and passes it to the device piece
by piece, and saving writes the device's contents piece by piece. The process needs memory for one piece and
for the device's staging ring.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from .._base import misplaced
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    kind_of,
    shown,
)
from .._base.file_access import (
    NotRegularError,
    create_temporary,
    delete_abandoned,
    is_temporary,
    open_regular,
)
from .._base.plain_arguments import as_list
from .._base.types import MemoryTypes
from .._base.warn import warn
from .._memory.making import new_tensor
from .._memory.memory import to_memory_type
from .._memory.tensor import Tensor
from .collector import collector_off
from .other_formats import LONGEST_MARK, other_format
from .progress import ByteProgress, Progress
from .safetensors import PREFIX_BYTES, Header, TensorFileEntry, build_header, header_bytes, parse_header

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from .._base.annotations import MemoryTypeLike
    from .._manager.manager import Manager

__all__ = [
    "TensorDict",
    "TensorFileEntry",
    "TensorFileInfo",
    "load_tensors",
    "save_tensors",
    "tensor_file_info",
]

# Bytes per piece. Large enough that a transfer through the staging ring mostly overlaps with the host's copy;
# small enough that Ctrl-C and the progress bar react promptly.
_PIECE = 16 << 20
# Larger tensors are read directly into device memory if the host can address it, one huge page at a time.
_IN_PLACE = 4 << 20
_HUGE_PAGE = 2 << 20

# From this many tensors on, of this size together (which takes a moment), the garbage collector waits.
_MANY = 1000
_MANY_BYTES = 1 << 30

# Reads at an offset let several threads share one file.
_READS_AT = hasattr(os, "preadv")
_READERS = 4
# difflib compares with every name. The limit keeps errors fast for files with a million names.
_COMPARED_NAMES = 5000
_WILD = frozenset("*?[")
_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


class TensorDict(dict[str, Tensor]):
    """The result of `load_tensors`: a dict of Tensors by name, with the file's `metadata` (a dict of str by
    str).

    Raises ArgumentTypeError if `tensors` or `metadata` is not a mapping.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> kp.load_tensors("model.safetensors", mgr).metadata
    {'epoch': '3'}
    """

    __module__ = "kompute_py"  # public; imported when first used

    metadata: dict[str, str]

    def __init__(
        self,
        tensors: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        try:
            super().__init__(tensors)
            self.metadata = {} if metadata is None else dict(metadata)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                "TensorDict takes a mapping of names to tensors, and a mapping of str to str as metadata: "
                f"{error}"
            ) from None


class TensorFileInfo(NamedTuple):
    """The contents of a parameter file, without its data.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> info = kp.tensor_file_info("model.safetensors")
    >>> info.nbytes, info.metadata
    (8, {'epoch': '3'})
    """

    tensors: dict[str, TensorFileEntry]
    """Entries by name, in file order.

    Each has `dtype` (the format's name), `numpy_dtype`, `shape`, `nbytes`, `offset`.
    """
    metadata: dict[str, str]
    """The strings that were saved with the tensors."""
    nbytes: int
    """Bytes of all tensors."""


TensorFileInfo.__module__ = "kompute_py"  # public; imported when first used


def tensor_file_info(path: str | os.PathLike[str]) -> TensorFileInfo:
    """Names, shapes, dtypes and metadata of a safetensors file. Reads only the header and needs no device.

    Raises NotFoundError if the file does not exist, InvalidArgumentError if it is damaged or not a
    safetensors file, UnavailableError if the system refuses to read it (PermissionDeniedError because of its
    permissions), and ArgumentTypeError if `path` is not a path.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> list(kp.tensor_file_info("model.safetensors").tensors)
    ['weight']
    """
    path = _path(path)
    with _opened(path) as (_, header, _, data_bytes, _):
        return TensorFileInfo(header.entries, header.metadata, data_bytes)


def load_tensors(
    path: str | os.PathLike[str],
    manager: Manager | None = None,
    *,
    names: str | Iterable[str] | None = None,
    memory_type: MemoryTypeLike | None = None,
    progress: Progress | bool | None = None,
) -> TensorDict:
    """Loads tensors of a safetensors file to the device. Returns them by name, in file order.

    `manager` defaults to the process's Manager, ``kp.manager()``. `names` selects tensors: one name, several
    names, or patterns with ``*``, ``?`` and ``[...]`` such as ``"layers.0.*"``. An exact name takes
    precedence over a pattern. The `name` of each tensor is its name in the file. `memory_type` defaults to
    `MemoryTypes.device`. The data goes to device memory, as with `Tensor.write`; the host copy is not filled.
    dtypes: see `TensorFileEntry.numpy_dtype`; a KomputeWarning names the tensors that are loaded as bits in
    unsigned integers.

    The file is streamed; the host never holds a whole tensor. If loading takes more than a second, a progress
    bar appears (on a terminal, with rich installed). ``progress=False`` turns the bar off. A function is
    called with the bytes done, the total bytes and the tensor's name. If loading fails, the tensors created
    so far are destroyed.

    Raises NotFoundError if the file does not exist or a name matches no tensor (the error lists similar
    names); InvalidArgumentError if the file is damaged or not a safetensors file; UnimplementedError for
    elements of less than 8 bits; UnavailableError if the system refuses to read the file or another program
    changes it during loading (its size or modification time); OutOfMemoryError if the device has too little
    memory; ArgumentTypeError if `manager` is not a Manager; FailedPreconditionError if the Manager is
    destroyed.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> kp.load_tensors("model.safetensors", mgr)["weight"].read().tolist()
    [1.0, 2.0]
    """
    path = _path(path)
    if manager is None:
        from .._manager.default import manager as default_manager

        manager = default_manager()
    else:
        from .._manager.manager import Manager

        if not isinstance(manager, Manager):
            raise ArgumentTypeError(
                f"manager is {kind_of(manager)}; give a kp.Manager, or None for the default one"
            )
    with _opened(path) as (file, header, start, _, version):
        chosen = _choose(header.entries, names, path)
        _check_loadable(chosen, path)
        with ByteProgress(f"loading {os.path.basename(path)}", _total(chosen), progress) as bar:
            loaded = TensorDict(metadata=header.metadata)
            try:
                pieces = _Pieces(file, path, version, _total(chosen))
                # Looking for garbage among thousands of new tensors would take a third of the time.
                many = len(chosen) >= _MANY and _total(chosen) < _MANY_BYTES
                with closing(pieces), collector_off() if many else nullcontext():
                    _load(pieces, start, chosen, manager, memory_type, bar, loaded)
            except BaseException:
                for tensor in loaded.values():
                    tensor.destroy()
                raise
    return loaded


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    progress: Progress | bool | None = None,
) -> None:
    """Saves the device's contents of `tensors`, by name, to a safetensors file, after pending work on them.

    `metadata` is a mapping of str to str; None keeps the metadata of a `TensorDict`. The file is written
    completely or not at
    all: the data goes to a temporary file beside `path` with the permissions of the replaced file, is synced
    to disk, and then the temporary file replaces `path`. Temporary files left by killed processes are
    deleted. The host never holds a whole tensor. `progress` is as in `load_tensors`.

    Raises ArgumentTypeError if a value is not a Tensor, the format lacks a dtype, or a name or metadata is
    not a str; InvalidArgumentError if the format cannot hold a name, or `path` is a folder, a device, a pipe
    or a socket; FailedPreconditionError if a tensor is destroyed; NotFoundError if the folder does not exist;
    UnavailableError if the system refuses to write the file (full disk; PermissionDeniedError because of
    permissions); DeviceLostError if the pending work failed.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    """
    path = _path(path)
    if path.endswith(_SEPARATORS):  # realpath would drop it
        raise InvalidArgumentError(f"{path!r} is a folder's path; give a file's name in it")
    # The target of a symbolic link is replaced, not the link.
    path = os.path.realpath(path)
    if not isinstance(tensors, Mapping):
        raise ArgumentTypeError(
            f"tensors is {kind_of(tensors)}; give a dict of Tensors by name: "
            'kp.save_tensors(path, {"weight": tensor})'
        )
    if metadata is None:
        metadata = tensors.metadata if isinstance(tensors, TensorDict) else {}
    elif not isinstance(metadata, Mapping):
        raise ArgumentTypeError(f"metadata is {kind_of(metadata)}; give a dict of str by str")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"{shown(name)} is {kind_of(tensor)}, not a Tensor; make one of it with mgr.tensor_t(data)"
            )
        tensor._require_init(f"be saved as {shown(name)}")
    head, entries = build_header(
        ((name, tensor.dtype, tensor.shape) for name, tensor in tensors.items()), metadata
    )
    with (
        ByteProgress(f"saving {os.path.basename(path)}", _total(entries), progress) as bar,
        _replacing(path) as file,
    ):
        _write(file, head)
        _save(file, tensors, entries, bar)


# -- reading -------------------------------------------------------------------------------------------------


def _path(path: Any) -> str:
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


@contextmanager
def _opened(path: str) -> Iterator[tuple[BinaryIO, Header, int, int, _Version]]:
    """The file, its checked header, the offset of its data, the number of bytes of data, and its version
    before the header was read.
    """
    try:
        # Unbuffered, because all reads are large.
        file = open(open_regular(path), "rb", buffering=0)  # noqa: SIM115
    except NotRegularError:
        raise InvalidArgumentError(
            f"{path!r} is not a regular file; give the path of a safetensors file"
        ) from None
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no file {path!r} (in {os.getcwd()!r})") from error
    except OSError as error:
        raise _refused(path, "read", error) from error
    with file:
        try:
            version = _version(file)
            size = version.size
            length = header_bytes(file.read(PREFIX_BYTES) or b"", size)
            header = parse_header(_read(file, length), size - PREFIX_BYTES - length)
        except OSError as error:
            raise _refused(path, "read", error) from error
        except InvalidArgumentError as error:
            file.seek(0)
            other = other_format(file.read(LONGEST_MARK) or b"")
            raise InvalidArgumentError(f"{path!r}{f' {other}' if other else f': {error}'}") from None
        yield file, header, PREFIX_BYTES + length, size - PREFIX_BYTES - length, version


class _Version(NamedTuple):
    """Facts that change if another program writes to a file."""

    size: int
    changed: int


def _version(file: BinaryIO) -> _Version:
    status = os.fstat(file.fileno())
    return _Version(status.st_size, status.st_mtime_ns)


def _read(file: BinaryIO, count: int) -> bytes:
    parts = []
    while count:
        part = file.read(count)
        if not part:
            raise InvalidArgumentError(
                "The file ends within its header: another program shortened it while it was read"
            )
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _total(entries: Iterable[TensorFileEntry]) -> int:
    return sum(entry.nbytes for entry in entries)


def _choose(
    entries: dict[str, TensorFileEntry], names: str | Iterable[str] | None, path: str
) -> list[TensorFileEntry]:
    """The entries that `names` selects, in file order."""
    if names is None:
        return list(entries.values())
    if not isinstance(names, (str, Iterable)):
        raise ArgumentTypeError(
            f"names is {kind_of(names)}; give a str, an iterable of str, or None for all tensors"
        )
    wanted: set[str] = set()
    missing = []
    for name in (
        [names]
        if isinstance(names, str)
        else as_list(names, "names", "a str, several, or None for all", sets=True)
    ):
        if not isinstance(name, str):
            raise ArgumentTypeError(f"names contains {shown(name)} of type {type(name).__name__}; give str")
        if name in entries:
            wanted.add(name)
            continue
        matches = _matching(name, entries) if _WILD.intersection(name) else []
        if not matches:
            missing.append(name)
        wanted.update(matches)
    if missing:
        raise NotFoundError("; ".join(_lacks(name, entries, path) for name in missing[:5]))
    return [entry for entry in entries.values() if entry.name in wanted]


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    import re
    from fnmatch import translate

    matches = re.compile(translate(pattern)).match
    return [name for name in names if matches(name)]


def _lacks(name: str, entries: Mapping[str, TensorFileEntry], path: str) -> str:
    from difflib import get_close_matches
    from itertools import islice

    what = f"{path!r} has no tensor {'matching ' if _WILD.intersection(name) else ''}{shown(name)}"
    near = get_close_matches(name, islice(entries, _COMPARED_NAMES), n=3, cutoff=0.5)
    if near:
        return f"{what}; similar names: {', '.join(map(shown, near))}"
    some = ", ".join(map(shown, islice(entries, 5)))
    if not some:
        return f"{what}: the file has no tensors"
    return f"{what}; its {len(entries)} tensors are {some}{', ...' if len(entries) > 5 else ''}"


def _check_loadable(chosen: list[TensorFileEntry], path: str) -> None:
    """Raises errors before any memory is allocated, and warns about dtypes that load as bits."""
    raw = [entry for entry in chosen if entry.is_raw]
    if raw:
        kinds = sorted({f"{entry.dtype} as {entry.numpy_dtype}" for entry in raw})
        fix = "; install a recent ml_dtypes for these floats"
        warn(
            f"{path!r}: {_listed([entry.name for entry in raw])} a dtype that NumPy lacks, and "
            f"{'is' if len(raw) == 1 else 'are'} loaded as bits ({', '.join(kinds)}){fix}"
        )


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"the tensor {shown(names[0])} has"
    return (
        f"{len(names)} tensors ({', '.join(map(shown, names[:3]))}{', ...' if len(names) > 3 else ''}) have"
    )


def _load(
    pieces: _Pieces,
    start: int,
    chosen: list[TensorFileEntry],
    manager: Manager,
    memory_type: MemoryTypeLike | None,
    bar: ByteProgress,
    loaded: TensorDict,
) -> None:
    where = to_memory_type(memory_type, None, misplaced.BEFORE) if chosen else MemoryTypes.device
    ends = _ends(chosen)
    done = 0
    for entry, end in zip(chosen, ends, strict=True):
        bar.at(done, entry.name)
        tensor = new_tensor(manager, entry.shape, entry.numpy_dtype, where)
        loaded[entry.name] = tensor
        tensor._native.name = entry.name
        if entry.nbytes >= _IN_PLACE and tensor.mappable:
            with tensor.map(discard=True, staging=False) as array:
                data = np.asarray(array).reshape(-1).view(np.uint8)
                for at in pieces.read_into(data, start + entry.offset):
                    bar.at(done + at, entry.name)
                del data
            done += entry.nbytes
        else:
            for at in range(0, entry.nbytes, _PIECE):
                size = min(_PIECE, entry.nbytes - at)
                tensor._native.write(pieces.read(start + entry.offset + at, size, start + end), at)
                done += size
                bar.at(done, entry.name)
        tensor._report()
    pieces.require_unchanged()


def _ends(chosen: list[TensorFileEntry]) -> list[int]:
    """For each entry, the end of the bytes that it and the following ones have in a row."""
    ends = []
    end = following = -1
    for entry in reversed(chosen):
        large = entry.nbytes >= _IN_PLACE  # read by itself
        if large or entry.offset + entry.nbytes != following:
            end = entry.offset + entry.nbytes
        following = -1 if large else entry.offset
        ends.append(end)
    ends.reverse()
    return ends


class _Pieces:
    """Reads a file piece by piece and notices if another program changes it.

    The file is not mapped: reading a mapped page beyond the end of a shortened file would kill the process.
    """

    def __init__(self, file: BinaryIO, path: str, version: _Version, total: int) -> None:
        self._file = file
        self._path = path
        self._size = min(_PIECE, total)
        self._room: np.ndarray[Any, Any] | None = None
        self._first = self._end = 0  # the range of the file in the room
        self._readers = min(os.cpu_count() or 1, _READERS) if _READS_AT else 1
        self._threads: ThreadPoolExecutor | None = None
        self._version = version  # before the header was read

    def read(self, offset: int, nbytes: int, end: int) -> np.ndarray[Any, Any]:
        """`nbytes` bytes from `offset`, as uint8, valid until the next call.

        The bytes up to `end` are read along, as far as a piece has room. Raises UnavailableError if the file
        changed.
        """
        if self._room is None:
            self._room = np.empty(self._size, np.uint8)
        if not self._first <= offset <= offset + nbytes <= self._end:
            self._first = self._end = offset  # nothing, until all is read
            size = min(self._size, end - offset)
            self._fill(self._room[:size].data, offset)
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
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            share = -(-len(piece) // (self._readers * _HUGE_PAGE)) * _HUGE_PAGE
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

            self._threads = ThreadPoolExecutor(self._readers - 1, "kompute_py reading a file")
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
            self._fill(piece.data[first : first + page], offset + first)
            first += page

    def _fill(self, rest: memoryview, offset: int) -> None:
        try:
            while rest:
                if _READS_AT:
                    count = os.preadv(self._file.fileno(), [rest], offset)
                else:
                    self._file.seek(offset)
                    count = self._file.readinto(rest)  # type: ignore[attr-defined]
                if not count:
                    raise UnavailableError(
                        f"Another program shortened the file {self._path!r} while it was loaded; load it "
                        "again"
                    )
                rest = rest[count:]
                offset += count
        except OSError as error:
            raise _refused(self._path, "read", error) from error

    def require_unchanged(self) -> None:
        if _version(self._file) != self._version:
            raise UnavailableError(
                f"Another program changed the file {self._path!r} while it was loaded; load it again. "
                "Writers should replace "
                "such files as a whole, as kp.save_tensors does"
            )


# -- writing -------------------------------------------------------------------------------------------------


def _save(
    file: BinaryIO, tensors: Mapping[str, Tensor], entries: list[TensorFileEntry], bar: ByteProgress
) -> None:
    room = np.empty(min(_PIECE, _total(entries)), np.uint8)
    done = filled = 0
    for entry in entries:
        bar.at(done, entry.name)
        tensor = tensors[entry.name]
        at = 0
        while at < entry.nbytes:
            size = min(len(room) - filled, entry.nbytes - at)
            tensor._native.read(room[filled : filled + size], at)
            at += size
            filled += size
            if filled == len(room):
                _write(file, room.data)
                filled = 0
            done += size
            bar.at(done, entry.name)
        tensor._report()
    _write(file, room[:filled].data)


def _write(file: BinaryIO, data: memoryview | bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise _refused(file.name, "written", error) from error


def _refused(path: str, verb: str, error: OSError) -> UnavailableError:
    """The error for a file that the system refuses to have `verb`: "read" or "written"."""
    kind = PermissionDeniedError if isinstance(error, PermissionError) else UnavailableError
    return kind(f"The file {path!r} cannot be {verb}: {error}")


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
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
        raise _refused(path, "written", error) from error
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
                raise _refused(path, "written", error) from error
        if os.name != "posix":
            try:
                os.replace(temporary, path)
            except OSError as error:
                raise _refused(path, "written", error) from error
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
