"""Parameter files: tensors by name in a file, in the safetensors format that other frameworks share.

A file can be larger than the memory that is free. So nothing here ever holds a tensor's bytes on the host: loading reads
the file and hands it to the device piece by piece, saving takes the device's contents piece by piece to the file. What
the process takes meanwhile is a piece and the device's staging ring.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    shown,
)
from .._base.file_access import (
    NotRegularError,
    create_temporary,
    delete_abandoned,
    is_temporary,
    open_regular,
)
from .._base.warn import warn
from .._memory.tensor import Tensor
from .progress import ByteProgress, Progress
from .safetensors import PREFIX_BYTES, Header, TensorFileEntry, build_header, header_bytes, parse_header

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from .._base.types import MemoryTypes
    from .._manager.manager import Manager

__all__ = [
    "TensorDict",
    "TensorFileEntry",
    "TensorFileInfo",
    "load_tensors",
    "save_tensors",
    "tensor_file_info",
]

# Of the bytes on their way: enough that a transfer through the staging ring mostly overlaps with the host's copy, and little
# enough that Ctrl-C and the progress are prompt.
_PIECE = 16 << 20
# Tensors from this size on are read straight into the device's memory, if the host addresses it, a huge page at a time.
_IN_PLACE = 4 << 20
_HUGE_PAGE = 2 << 20

# Reading at an offset lets several threads share a file.
_READS_AT = hasattr(os, "preadv")
_READERS = 4
# difflib compares with every name: in a file of a million of them, an error should not take minutes.
_COMPARED_NAMES = 5000
_WILD = frozenset("*?[")


class TensorDict(dict[str, Tensor]):
    """Tensors by name, as `load_tensors` gives them: a dict with the file's `metadata` (strings by name)."""

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
                f"A TensorDict is made of tensors by name, and metadata by name: {error}"
            ) from None


class TensorFileInfo(NamedTuple):
    """What is in a parameter file, without its data."""

    tensors: dict[str, TensorFileEntry]
    """By name, in the order of the file: each with `dtype` (the format's name), `numpy_dtype`, `shape`, `nbytes`, `offset`."""
    metadata: dict[str, str]
    """The strings that were saved with the tensors."""
    nbytes: int
    """Bytes of all tensors."""


def tensor_file_info(path: str | os.PathLike[str]) -> TensorFileInfo:
    """Names, shapes, dtypes and metadata of a safetensors file; reads its header only, and needs no device.

    Raises NotFoundError where there is no such file, InvalidArgumentError where it is damaged or no safetensors file,
    UnavailableError where the system does not let it be read.
    """
    path = _path(path)
    with _opened(path) as (_, header, _, data_bytes):
        return TensorFileInfo(header.entries, header.metadata, data_bytes)


def load_tensors(
    path: str | os.PathLike[str],
    manager: Manager | None = None,
    *,
    names: str | Iterable[str] | None = None,
    memory_type: MemoryTypes | str | None = None,
    progress: Progress | bool | None = None,
) -> TensorDict:
    """Loads the tensors of a safetensors file to the device; gives them by name, in the order of the file.

    `manager` is the process's default one, ``kp.manager()``, by default. `names` chooses: a name or several, or patterns with
    ``*``, ``?`` and ``[...]``, e.g. ``"layers.0.*"``; a name that is spelled exactly so comes before a pattern. Each tensor has
    its name in the file as its `name`. `memory_type` is `MemoryTypes.device` by default; the data goes to the device's memory,
    as `Tensor.write` does it, and a host copy is not filled. dtypes: see `TensorFileEntry.numpy_dtype`; a KomputeWarning says
    which tensors hold bits as unsigned integers.

    The file is streamed: no tensor is ever whole in host memory. A bar shows itself where that takes over a second
    (on a terminal, with rich installed); ``progress=False`` wants none, and a function is called with the bytes done, the
    bytes in all and the tensor's name. Where loading fails, the tensors made so far are destroyed.

    Raises NotFoundError where there is no such file, or no tensor of a name (it lists near ones); InvalidArgumentError where
    the file is damaged or no safetensors file; UnimplementedError for elements of less
    than 8 bits; UnavailableError where the system does not let it be read, or if another program changes the file meanwhile
    (its size or the time of its last change); OutOfMemoryError where the device has too little
    memory; ArgumentTypeError for what is no Manager; FailedPreconditionError where it is destroyed.
    """
    path = _path(path)
    if manager is None:
        from .._manager.default import manager as default_manager

        manager = default_manager()
    else:
        from .._manager.manager import Manager

        if not isinstance(manager, Manager):
            raise ArgumentTypeError(
                f"manager is a {type(manager).__name__}; give a kp.Manager, or None for the default one"
            )
    with _opened(path) as (file, header, start, _):
        chosen = _choose(header.entries, names, path)
        _check_loadable(chosen, path)
        with ByteProgress(f"loading {os.path.basename(path)}", _total(chosen), progress) as bar:
            loaded = TensorDict(metadata=header.metadata)
            try:
                _load(file, path, start, chosen, manager, memory_type, bar, loaded)
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
    """Saves the device's contents of `tensors` by name to a safetensors file, after pending work on them.

    `metadata` is strings by name; None keeps those of a `TensorDict`. The file is there whole or not at all: it is written
    beside `path` under another name, with the permissions of the file that it replaces, synced to the disk, and then takes the
    place of what was there. What a killed process left of its attempt is deleted. No tensor is ever whole in host memory. `progress` is as in `load_tensors`.

    Raises ArgumentTypeError for what is no Tensor, a dtype that the format does not have, names and metadata that are no str;
    InvalidArgumentError for names that the format cannot hold, and if `path` is a folder, a device, a pipe or a socket; FailedPreconditionError for a tensor that is destroyed;
    NotFoundError where the folder is missing; UnavailableError where the system does not let the file be written (the disk
    is full, permission is missing); DeviceLostError where the pending work failed.
    """
    # A link stays a link: what it points to is replaced.
    path = os.path.realpath(_path(path))
    if not isinstance(tensors, Mapping):
        raise ArgumentTypeError(
            f"tensors is a {type(tensors).__name__}; give a dict of Tensors by name: "
            'kp.save_tensors(path, {"weight": tensor})'
        )
    if metadata is None:
        metadata = tensors.metadata if isinstance(tensors, TensorDict) else {}
    elif not isinstance(metadata, Mapping):
        raise ArgumentTypeError(f"metadata is a {type(metadata).__name__}; give a dict of str by str")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"{shown(name)} is a {type(tensor).__name__}, not a Tensor; make one of it with mgr.tensor_t(data)"
            )
        if not tensor.is_init():
            raise FailedPreconditionError(f"The tensor {shown(name)} is destroyed: it cannot be saved")
    head, entries = build_header(
        ((name, tensor.dtype, tensor.shape) for name, tensor in tensors.items()), metadata
    )
    with (
        ByteProgress(f"saving {os.path.basename(path)}", _total(entries), progress) as bar,
        _replacing(path) as file,
    ):
        _write(file, head)
        _save(file, tensors, entries, bar)


# -- reading -----------------------------------------------------------------------------------------------------------


def _path(path: Any) -> str:
    try:
        made = os.fspath(path)
    except TypeError:
        made = path
    if not isinstance(made, str):
        raise ArgumentTypeError(f"path is a {type(path).__name__}; give a str or a pathlib.Path")
    if "\0" in made or not made:
        raise InvalidArgumentError(f"path is {shown(made)}, which no file is called")
    try:
        os.fsencode(made)
    except UnicodeError:
        raise InvalidArgumentError(f"path is {shown(made)}, which this system cannot spell") from None
    return made


@contextmanager
def _opened(path: str) -> Iterator[tuple[BinaryIO, Header, int, int]]:
    """The file, its checked header, where its data begins, and how many bytes of data it has."""
    try:
        # Unbuffered: large pieces of it are read.
        file = open(open_regular(path), "rb", buffering=0)  # noqa: SIM115
    except NotRegularError:
        raise InvalidArgumentError(
            f"{path!r} is no regular file, so that it is no safetensors file"
        ) from None
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no file {path!r} (in {os.getcwd()!r})") from error
    except OSError as error:
        raise UnavailableError(f"The file {path!r} cannot be read: {error}") from error
    with file:
        try:
            size = os.fstat(file.fileno()).st_size
            length = header_bytes(file.read(PREFIX_BYTES) or b"", size)
            header = parse_header(_read(file, length), size - PREFIX_BYTES - length)
        except OSError as error:
            raise UnavailableError(f"The file {path!r} cannot be read: {error}") from error
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{path!r}: {error}") from None
        yield file, header, PREFIX_BYTES + length, size - PREFIX_BYTES - length


def _read(file: BinaryIO, count: int) -> bytes:
    parts = []
    while count:
        part = file.read(count)
        if not part:
            raise InvalidArgumentError("The file ends within its header: it became shorter while it was read")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _total(entries: Iterable[TensorFileEntry]) -> int:
    return sum(entry.nbytes for entry in entries)


def _choose(
    entries: dict[str, TensorFileEntry], names: str | Iterable[str] | None, path: str
) -> list[TensorFileEntry]:
    """The entries that `names` wants, in the order of the file."""
    if names is None:
        return list(entries.values())
    if not isinstance(names, (str, Iterable)):
        raise ArgumentTypeError(f"names is a {type(names).__name__}; give a str, several, or None for all")
    wanted: set[str] = set()
    missing = []
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"names has {shown(name)} of type {type(name).__name__}; give str")
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

    what = f"{path!r} has no tensor {'like ' if _WILD.intersection(name) else ''}{shown(name)}"
    near = get_close_matches(name, islice(entries, _COMPARED_NAMES), n=3, cutoff=0.5)
    if near:
        return f"{what}; near: {', '.join(map(shown, near))}"
    some = ", ".join(map(shown, islice(entries, 5)))
    if not some:
        return f"{what}: it has none"
    return f"{what}; it has {len(entries)}: {some}{', ...' if len(entries) > 5 else ''}"


def _check_loadable(chosen: list[TensorFileEntry], path: str) -> None:
    """Raises before any memory is taken; warns of what loads as bits."""
    raw = [entry for entry in chosen if entry.is_raw]
    if raw:
        kinds = sorted({f"{entry.dtype} as {entry.numpy_dtype}" for entry in raw})
        fix = "; install ml_dtypes, a recent one, for these floats"
        warn(
            f"{path!r}: {_listed([entry.name for entry in raw])} a dtype that NumPy does not have, and "
            f"{'is' if len(raw) == 1 else 'are'} loaded as bits ({', '.join(kinds)}){fix}"
        )


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"the tensor {shown(names[0])} has"
    return (
        f"{len(names)} tensors ({', '.join(map(shown, names[:3]))}{', ...' if len(names) > 3 else ''}) have"
    )


def _load(
    file: BinaryIO,
    path: str,
    start: int,
    chosen: list[TensorFileEntry],
    manager: Manager,
    memory_type: MemoryTypes | str | None,
    bar: ByteProgress,
    loaded: TensorDict,
) -> None:
    if not chosen:
        return
    pieces = _Pieces(file, path, max((entry.nbytes for entry in chosen), default=0))
    with closing(pieces):
        done = 0
        for entry in chosen:
            bar.at(done, entry.name)
            tensor = manager.empty(entry.shape, entry.numpy_dtype, memory_type)
            loaded[entry.name] = tensor
            tensor.name = entry.name
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
                    tensor._native.write(pieces.read(start + entry.offset + at, size), offset=at)
                    done += size
                    bar.at(done, entry.name)
            tensor._report()
        pieces.require_unchanged()


class _Pieces:
    """Reads a file a piece at a time, and sees when another program changes it meanwhile.

    The file is not mapped: if another program makes it shorter, to look at a mapped page beyond its end ends this process.
    """

    def __init__(self, file: BinaryIO, path: str, largest: int) -> None:
        self._file = file
        self._path = path
        self._size = min(_PIECE, largest)
        self._room: np.ndarray[Any, Any] | None = None
        self._readers = min(os.cpu_count() or 1, _READERS) if _READS_AT else 1
        self._threads: ThreadPoolExecutor | None = None
        self._version = self._seen()

    def read(self, offset: int, nbytes: int) -> np.ndarray[Any, Any]:
        """`nbytes` bytes from `offset` on, as uint8, until the next call. Raises UnavailableError if the file has changed."""
        if self._room is None:
            self._room = np.empty(self._size, np.uint8)
        piece = self._room[:nbytes]
        self._fill(piece.data, offset)
        self.require_unchanged()
        return piece

    def read_into(self, data: np.ndarray[Any, Any], offset: int) -> Iterator[int]:
        """Fills `data`, memory of a new tensor, with what is from `offset` on; gives the bytes done after each piece.

        The system zeroes a huge page from its far end towards the address that is touched first. Touched at its end, a page takes a
        third of the time, and is in the cache when the file's bytes come (as the core's base/first_touch.hpp has it).
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
                    except RuntimeError:  # no thread is to be had, as at the end of the program
                        self._fill_pages(piece, first, share, offset + at)
                self._fill_pages(piece, 0, share, offset + at)
            finally:
                for each in others:  # they write into the piece: all end before an error leaves
                    each.exception()
            for each in others:
                each.result()
            self.require_unchanged()
            yield at + len(piece)

    def _pool(self) -> ThreadPoolExecutor:
        """Threads for all but one of the parts of a piece: the system copies no faster than one processor does."""
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._readers - 1, "kompute_py reading a file")
        return self._threads

    def close(self) -> None:
        """Ends the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def _fill_pages(self, piece: np.ndarray[Any, Any], first: int, size: int, offset: int) -> None:
        """Fills `size` bytes of `piece` from `first` on, a huge page at a time; `offset`: where the file has the piece."""
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
                    raise UnavailableError(f"The file {self._path!r} became shorter while it was loaded")
                rest = rest[count:]
                offset += count
        except OSError as error:
            raise UnavailableError(f"The file {self._path!r} cannot be read: {error}") from error

    def require_unchanged(self) -> None:
        if self._seen() != self._version:
            raise UnavailableError(
                f"Another program changed the file {self._path!r} while it was loaded; load it again, and replace files "
                "that others read as a whole (as kp.save_tensors does)"
            )

    def _seen(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns


# -- writing -----------------------------------------------------------------------------------------------------------


def _save(
    file: BinaryIO, tensors: Mapping[str, Tensor], entries: list[TensorFileEntry], bar: ByteProgress
) -> None:
    largest = max((entry.nbytes for entry in entries), default=0)
    room = np.empty(min(_PIECE, largest), np.uint8)
    done = 0
    for entry in entries:
        bar.at(done, entry.name)
        tensor = tensors[entry.name]
        for at in range(0, entry.nbytes, _PIECE):
            piece = room[: min(_PIECE, entry.nbytes - at)]
            tensor._native.read(piece, at)
            _write(file, piece.data)
            done += piece.nbytes
            bar.at(done, entry.name)
        tensor._report()


def _write(file: BinaryIO, data: memoryview | bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise _not_written(file.name, error) from error


def _not_written(path: str, error: OSError) -> UnavailableError:
    return UnavailableError(f"The file {path!r} cannot be written: {error}")


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` at the end; after an exception nothing has changed."""
    folder, name = os.path.split(path)
    ours = f".{name[:40]}"
    try:
        target = _replaceable(path)
        delete_abandoned(folder, lambda found: is_temporary(found, ours))
        descriptor, temporary = create_temporary(folder, ours, 0o666 if target is None else 0o600)
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no folder {folder!r} to save {shown(name)} in") from error
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        # The opener gives what is open already: so errors name the file that was asked for.
        with open(path, "wb", buffering=0, opener=lambda *_: descriptor) as file:
            if target is not None:
                _permit_as(file.fileno(), temporary, target)
            yield file
            try:
                os.fsync(file.fileno())
                _replaceable(path)  # it may be another by now
                # Still open and so locked: another writer does not take it for abandoned. Windows cannot rename what is open.
                if os.name == "posix":
                    os.replace(temporary, path)
            except OSError as error:
                raise _not_written(path, error) from error
        if os.name != "posix":
            try:
                os.replace(temporary, path)
            except OSError as error:
                raise _not_written(path, error) from error
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _replaceable(path: str) -> os.stat_result | None:
    """What is at `path` now; None if nothing is. Raises InvalidArgumentError if it is no file that another may replace."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise InvalidArgumentError(f"{path!r} is a folder; give a file's name in it")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidArgumentError(
            f"{path!r} is no regular file but a device, a pipe or a socket, which saving would replace; "
            "give the path of a file"
        )
    return status


def _permit_as(descriptor: int, path: str, target: os.stat_result) -> None:
    """Gives a new file, which only its owner may read so far, the owner and the permissions of the file that it replaces."""
    mode = stat.S_IMODE(target.st_mode)
    if hasattr(os, "fchown"):
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (target.st_uid, target.st_gid):
            try:
                os.fchown(descriptor, target.st_uid, target.st_gid)
            except OSError:
                if status.st_gid != target.st_gid:
                    mode &= ~stat.S_IRWXG  # they were another group's
        with suppress(OSError):  # not every file system has permissions
            os.fchmod(descriptor, mode)
    else:
        os.chmod(path, mode)


def _sync_folder(folder: str) -> None:
    # So that the new name, too, outlives a loss of power. Not every system opens folders.
    if not hasattr(os, "O_DIRECTORY"):
        return
    # The file is in place by now: a file system that cannot sync a folder is no reason to say otherwise.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
