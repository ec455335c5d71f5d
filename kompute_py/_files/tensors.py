"""Parameter files: tensors by name, in the formats that other frameworks share.

A file can be larger than the free memory. Loading therefore reads the file and passes it to the device piece
by piece, and saving writes the device's contents piece by piece. The process needs memory for one piece and
for the device's staging ring. The formats are pure modules: safetensors, irpa, gguf.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from .._base import misplaced
from .._base.collector import collector_off
from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, kind_of, shown
from .._base.file_access import as_path
from .._base.types import MemoryTypes, to_memory_type
from .._base.warn import warn
from .._memory.making import new_tensor
from .._memory.tensor import Tensor
from . import irpa, reading, safetensors
from .entries import BLOCKS, TensorFileEntry
from .index import READERS, Names, Place, TensorIndex, check_format, fill
from .progress import ByteProgress, Progress
from .quantized import KINDS, Decoder, require_kind
from .reading import Pieces, Readable, Source
from .writing import replacing, write

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.annotations import MemoryTypeLike
    from .._manager.manager import Manager

__all__ = ["TensorDict", "load_tensors", "save_tensors", "tensor_file_info"]

# Larger tensors are read directly into device memory if the host can address it, one huge page at a time.
_IN_PLACE = 4 << 20
# From this many tensors on, of this size together (which takes a moment), the garbage collector waits.
_MANY = 1000
_MANY_BYTES = 1 << 30
_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
_WRITERS: dict[str, Callable[..., tuple[bytes, list[TensorFileEntry]]]] = {
    "safetensors": safetensors.build_header,
    "irpa": irpa.build_header,
}


class TensorDict(dict[str, Tensor]):
    """The result of `load_tensors`: a dict of Tensors by name, with the file's `metadata` (a dict by str).

    Raises ArgumentTypeError if `tensors` or `metadata` is not a mapping.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> kp.load_tensors("model.safetensors", mgr).metadata
    {'epoch': '3'}
    """

    __module__ = "kompute_py"  # public; imported when first used

    metadata: dict[str, Any]

    def __init__(
        self,
        tensors: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            super().__init__(tensors)
            self.metadata = {} if metadata is None else dict(metadata)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"TensorDict takes a mapping of names to tensors, and a mapping as metadata: {error}"
            ) from None


def tensor_file_info(
    source: Readable, *, format: str | None = None, release: Callable[[], object] | None = None
) -> TensorIndex:
    """Names, shapes, dtypes and metadata of a parameter file. Reads only the header and needs no device.

    `source` is a path, a file that is open for reading bytes (it is read from its first byte), or bytes. The
    format follows from the contents; `format` ("safetensors", "irpa", "gguf") requires one. The result can be
    loaded and saved: it opens the file again, and refuses one that has changed. `release` is called without
    arguments once nothing needs `source` any more.

    Raises NotFoundError if the file does not exist, InvalidArgumentError if it is damaged or of another
    format, UnimplementedError for versions of a format that are not read, UnavailableError if the system
    refuses to read it (PermissionDeniedError because of its permissions), and ArgumentTypeError for another
    `source`.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> list(kp.tensor_file_info("model.safetensors"))
    ['weight']
    """
    index = TensorIndex()
    place = Source(source, release)
    with place.opened() as pieces:
        index._read(pieces, place, format)
    return index


def load_tensors(
    source: Readable | TensorIndex,
    manager: Manager | None = None,
    *,
    names: Names = None,
    memory_type: MemoryTypeLike | None = None,
    format: str | None = None,
    dequantize: bool = False,
    progress: Progress | bool | None = None,
) -> TensorDict:
    """Loads tensors of a parameter file (safetensors, IRPA, GGUF) to the device. Returns them by name, in
    file order.

    `source` is a path, a file that is open for reading bytes (it is read from its first byte), bytes, or a
    `TensorIndex`. The format follows from the contents; `format` requires one. `manager` defaults to the
    process's Manager, ``kp.manager()``. `names` selects tensors: one name, several names, or patterns with
    ``*``, ``?`` and ``[...]`` such as ``"layers.0.*"``. An exact name takes precedence over a pattern. A dict
    binds new names to those of the file: ``{"blocks.*.w": "model.layers.*.weight"}``, where each ``*`` stands
    for the same text. The `name` of each tensor is its name in the result. `memory_type` defaults to
    `MemoryTypes.device`. The data goes to device memory, as with `Tensor.write`; the host copy is not filled.
    dtypes: see `TensorFileEntry.numpy_dtype`; a KomputeWarning names the tensors that are loaded as bits in
    unsigned integers. Splats are filled by the device.

    Quantised tensors of GGUF are loaded as the bytes of their blocks. With ``dequantize=True``, the device
    converts the types that `kp.dequantize` knows, and F16 and BF16, to float32 while they are loaded.

    The file is streamed; the host never holds a whole tensor. If loading takes more than a second, a progress
    bar appears (on a terminal, with rich installed). ``progress=False`` turns the bar off. A function is
    called with the bytes done, the total bytes and the tensor's name. If loading fails, the tensors created
    so far are destroyed.

    Raises NotFoundError if the file does not exist or a name matches no tensor (the error lists similar
    names); InvalidArgumentError if the file is damaged or of another format; UnimplementedError for elements
    of less than 8 bits, versions of a format that are not read, and quantised types that ``dequantize=True``
    lacks; UnavailableError if the system refuses to read the file or another program changes it during
    loading (its size or modification time); OutOfMemoryError if the device has too little memory;
    ArgumentTypeError if `manager` is not a Manager or `source` not one of the above; FailedPreconditionError
    if the Manager is destroyed.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> kp.load_tensors("model.safetensors", mgr)["weight"].read().tolist()
    [1.0, 2.0]
    """
    if manager is None:
        from .._manager.default import manager as default_manager

        manager = default_manager()
    else:
        from .._manager.manager import Manager

        if not isinstance(manager, Manager):
            raise ArgumentTypeError(
                f"manager is {kind_of(manager)}; give a kp.Manager, or None for the default one"
            )
    with ExitStack() as stack:
        readers = _Readers(stack)
        if isinstance(source, TensorIndex):
            index, title = source, "loading parameters"
        else:
            place = Source(source)
            index, title = TensorIndex(), f"loading {place.title}"
            index._read(readers[place], place, format)
        chosen = index._choose(names)
        entries = [entry for _, entry in chosen]
        _check_loadable(entries, dequantize)
        bar = stack.enter_context(ByteProgress(title, _total(entries), progress))
        loaded = TensorDict(metadata=index.metadata)
        try:
            # Looking for garbage among thousands of new tensors would take a third of the time.
            many = len(chosen) >= _MANY and _total(entries) < _MANY_BYTES
            with collector_off() if many else nullcontext():
                _load(index, chosen, manager, memory_type, dequantize, readers, bar, loaded)
        except BaseException:
            for tensor in loaded.values():
                tensor.destroy()
            raise
    return loaded


def save_tensors(
    target: str | os.PathLike[str] | BinaryIO,
    tensors: Mapping[str, ArrayLike | Tensor] | TensorIndex,
    metadata: Mapping[str, str] | None = None,
    *,
    format: str | None = None,
    progress: Progress | bool | None = None,
) -> None:
    """Saves `tensors`, by name, to a parameter file: Tensors, any views of them and Images (the device's
    contents, after pending work on them), arrays, lists, numbers, or a `TensorIndex` with tensors of other
    files.

    The format follows from the suffix of `target`, ".safetensors" or ".irpa", or from `format`, which a file
    that is open for writing bytes needs. `metadata` is a mapping of str to str, for safetensors files; None
    keeps the metadata of a `TensorDict` or a `TensorIndex`. Quantised tensors are saved as their bytes, and
    splats in safetensors files with all their elements.

    A file by its path is written completely or not at all: the data goes to a temporary file beside it with
    the permissions of the replaced file, is synced to disk, and then the temporary file replaces it.
    Temporary files left by killed processes are deleted. The host never holds a whole tensor. `progress` is
    as in `load_tensors`.

    Raises ArgumentTypeError if a value is none of these, the format lacks a dtype, or a name or
    metadata is not a str; InvalidArgumentError if the format does not follow from the suffix or cannot hold a
    name or metadata, or the path is that of a folder, a device, a pipe or a socket; UnimplementedError for
    GGUF files; FailedPreconditionError if a tensor is destroyed; NotFoundError if the folder does not exist;
    UnavailableError if the system refuses to write the file (full disk; PermissionDeniedError because of
    permissions) or a file of an index has changed; DeviceLostError if the pending work failed.

    >>> kp.save_tensors("model.safetensors", {"weight": mgr.tensor([1, 2])}, {"epoch": "3"})
    >>> kp.save_tensors("model.irpa", kp.tensor_file_info("model.safetensors"), metadata={})
    """
    if not isinstance(tensors, Mapping):
        raise ArgumentTypeError(
            f"tensors is {kind_of(tensors)}; give a dict of Tensors and arrays by name: "
            'kp.save_tensors(path, {"weight": tensor})'
        )
    if metadata is None:
        metadata = tensors.metadata if isinstance(tensors, (TensorDict, TensorIndex)) else {}
    elif not isinstance(metadata, Mapping):
        raise ArgumentTypeError(f"metadata is {kind_of(metadata)}; give a dict of str by str")
    path: str | None = None
    if not hasattr(target, "write"):
        path = as_path(target)
        if path.endswith(_SEPARATORS):  # realpath would drop it
            raise InvalidArgumentError(f"{path!r} is a folder's path; give a file's name in it")
    build = _writer(path, format)
    index = tensors if isinstance(tensors, TensorIndex) else TensorIndex(tensors)
    head, placed = build([_savable(entry) for entry in index.values()], metadata)
    with ExitStack() as stack:
        title = "saving parameters" if path is None else f"saving {os.path.basename(path)}"
        bar = stack.enter_context(ByteProgress(title, _total(placed), progress))
        readers = _Readers(stack)
        if path is None:
            file: Any = target
        else:
            # The target of a symbolic link is replaced, not the link.
            file = stack.enter_context(replacing(os.path.realpath(path)))
        write(file, head)
        _save(file, index, placed, len(head), readers, bar)


def _writer(path: str | None, format: str | None) -> Callable[..., tuple[bytes, list[TensorFileEntry]]]:
    check_format(format)
    wanted = format
    if wanted is None and path is not None:
        wanted = os.path.splitext(path)[1][1:].lower()
    if wanted in _WRITERS:
        return _WRITERS[wanted]
    if wanted in READERS:
        raise UnimplementedError(
            f"{str(wanted).upper()} files are read, not written; save as .safetensors or .irpa"
        )
    known = " or ".join(f'"{name}"' for name in _WRITERS)
    if path is None:
        raise InvalidArgumentError(f"An open file has no suffix that names the format; give format={known}")
    raise InvalidArgumentError(
        f"The suffix of {path!r} names no format of parameter files; write .safetensors or .irpa, or give "
        f"format={known}"
    )


def _savable(entry: TensorFileEntry) -> TensorFileEntry:
    """The entry without metadata that only describes it; quantised types are bytes."""
    if entry.metadata and irpa.describes(entry.metadata):
        entry = entry._replace(metadata=b"")
    return entry._replace(dtype="U8", shape=entry.numpy_shape) if entry.dtype in BLOCKS else entry


class _Readers:
    """The files that are open for one call: each is opened once."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._open: dict[Source, Pieces] = {}

    def __getitem__(self, source: Source) -> Pieces:
        found = self._open.get(source)
        if found is None:
            found = self._open[source] = self._stack.enter_context(source.opened())
        return found

    def require_unchanged(self) -> None:
        """Raises UnavailableError if another program has written to one of them."""
        for pieces in self._open.values():
            pieces.require_unchanged()


def _total(entries: Iterable[TensorFileEntry]) -> int:
    return sum(entry.nbytes for entry in entries)


def _check_loadable(chosen: list[TensorFileEntry], decoded: bool) -> None:
    """Raises errors before any memory is allocated, and warns about dtypes that load as bits."""
    if decoded:
        for entry in chosen:
            if entry.dtype in BLOCKS:
                require_kind(entry.dtype, f"The tensor {shown(entry.name)}")
        chosen = [entry for entry in chosen if entry.dtype not in KINDS]
    raw = [entry for entry in chosen if entry.is_raw]
    if raw:
        kinds = sorted({f"{entry.dtype} as {entry.numpy_dtype}" for entry in raw})
        fix = "; install a recent ml_dtypes for these floats"
        warn(
            f"load_tensors: {_listed([entry.name for entry in raw])} a dtype that NumPy lacks, and "
            f"{'is' if len(raw) == 1 else 'are'} loaded as bits ({', '.join(kinds)}){fix}"
        )


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"the tensor {shown(names[0])} has"
    return (
        f"{len(names)} tensors ({', '.join(map(shown, names[:3]))}{', ...' if len(names) > 3 else ''}) have"
    )


def _load(
    index: TensorIndex,
    chosen: list[tuple[str, TensorFileEntry]],
    manager: Manager,
    memory_type: MemoryTypeLike | None,
    decoded: bool,
    readers: _Readers,
    bar: ByteProgress,
    loaded: TensorDict,
) -> None:
    where = to_memory_type(memory_type, None, misplaced.BEFORE) if chosen else MemoryTypes.device
    places = [index._places[entry.name] for _, entry in chosen]
    ends = _ends([entry for _, entry in chosen], places)
    decoder = Decoder(manager) if decoded else None
    done = 0
    for (name, entry), place, end in zip(chosen, places, ends, strict=True):
        bar.at(done, name)
        if decoder is not None and entry.dtype in KINDS:
            tensor = new_tensor(manager, entry.shape, np.dtype(np.float32), where)
        else:
            tensor = new_tensor(manager, entry.numpy_shape, entry.numpy_dtype, where, entry.splat)
        loaded[name] = tensor
        tensor._native.name = name
        if place is None or entry.nbytes == 0:
            done += entry.nbytes
            bar.at(done, name)
        elif decoder is not None and entry.dtype in KINDS:
            source = readers[place] if isinstance(place, Source) else place
            for count in decoder.decode(entry, source, tensor):
                done += count
                bar.at(done, name)
        elif isinstance(place, Tensor):
            tensor.copy_from(place).wait()
            done += entry.nbytes
        elif isinstance(place, np.ndarray):
            tensor._native.write(place)
            done += entry.nbytes
        elif entry.nbytes >= _IN_PLACE and tensor.mappable:
            with tensor.map(discard=True, staging=False) as array:
                data = np.asarray(array).reshape(-1).view(np.uint8)
                for at in readers[place].read_into(data, entry.offset):
                    bar.at(done + at, name)
                del data
            done += entry.nbytes
        else:
            pieces = readers[place]
            for at in range(0, entry.nbytes, reading.PIECE):
                size = min(reading.PIECE, entry.nbytes - at)
                tensor._native.write(pieces.read(entry.offset + at, size, end), at)
                done += size
                bar.at(done, name)
        tensor._report()
    readers.require_unchanged()


def _ends(chosen: list[TensorFileEntry], places: list[Place]) -> list[int]:
    """For each entry, the end of the bytes that it and the following ones have in a row."""
    ends = []
    end = following = -1
    last: Place = None
    for entry, place in zip(reversed(chosen), reversed(places), strict=True):
        large = entry.nbytes >= _IN_PLACE  # read by itself
        if large or place is not last or entry.offset + entry.nbytes != following:
            end = entry.offset + entry.nbytes
        following = -1 if large else entry.offset
        last = place
        ends.append(end)
    ends.reverse()
    return ends


def _save(
    file: BinaryIO,
    index: TensorIndex,
    placed: list[TensorFileEntry],
    at: int,
    readers: _Readers,
    bar: ByteProgress,
) -> None:
    """Writes the data of `placed` from byte `at` of the file on, in full pieces."""
    end = placed[-1].offset + placed[-1].nbytes if placed else at
    room = np.empty(min(reading.PIECE, end - at), np.uint8)
    done = filled = 0
    for entry in placed:
        bar.at(done, entry.name)
        place = index._places[entry.name]
        source = readers[place] if isinstance(place, Source) else place
        origin = index._entries[entry.name]
        gap = entry.offset - at
        at = entry.offset + entry.nbytes
        for size, padding in ((gap, True), (entry.nbytes, False)) if gap else ((entry.nbytes, False),):
            first = 0
            while first < size:
                count = min(len(room) - filled, size - first)
                part = room[filled : filled + count]
                if padding:
                    part[:] = 0
                else:
                    fill(part, first, origin, source)
                    done += count
                first += count
                filled += count
                if filled == len(room):
                    write(file, room.data)
                    filled = 0
                if not padding:
                    bar.at(done, entry.name)
        if isinstance(place, Tensor):
            place._report()
    write(file, room[:filled].data)
    readers.require_unchanged()
