"""Tensors by name, wherever their bytes are: in files, in memory, on devices, or in no place (splats)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_index, as_shape, converted, element_bytes, to_array, to_dtype
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.plain_arguments import as_list, as_text
from .._memory.tensor import Tensor
from . import gguf, irpa, safetensors
from .entries import BLOCKS, Header, TensorFileEntry, byte_size, dtype_name, named
from .other_formats import LONGEST_MARK, other_format
from .reading import PIECE, Pieces, Readable, Source, beginning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

__all__ = ["TensorIndex"]

Names = str | Iterable[str] | Mapping[str, str] | None
"""The argument `names` of `load_tensors`."""
Place = Source | np.ndarray | Tensor | None
"""Where a tensor's bytes are; None for a splat."""

READERS: dict[str, Callable[[Callable[[int, int], bytes], int], Header]] = {
    "safetensors": safetensors.read_header,
    "irpa": irpa.read_header,
    "gguf": gguf.read_header,
}
_MARKS = {irpa.MAGIC: "irpa", gguf.MAGIC: "gguf"}  # safetensors has none
_WILD = frozenset("*?[")
# difflib compares with every name. The limit keeps errors fast for files with a million names.
_COMPARED_NAMES = 5000


class TensorIndex(Mapping[str, TensorFileEntry]):
    """A list of tensors by name, without their data: a mapping of names to `TensorFileEntry`.

    `kp.tensor_file_info` returns the index of a file. An index that you put together yourself may name
    tensors of several files, parts of files, arrays, Tensors and splats. `kp.load_tensors` makes Tensors of
    it, and `kp.save_tensors` a file. It reads data only then, piece by piece. `metadata` is that of the
    files.

    `tensors` is a mapping of names to arrays, Tensors and entries of `add`. Raises the errors of `add`.

    >>> index = kp.TensorIndex({"weight": np.ones((2, 3), np.float32)})
    >>> index.add_splat("bias", 0.5, shape=3)
    >>> [(entry.name, entry.shape, entry.is_splat) for entry in index.values()]
    [('weight', (2, 3), False), ('bias', (3,), True)]
    """

    __module__ = "kompute_py"  # public; imported when first used

    metadata: dict[str, Any]
    """The files' own metadata: str by str in safetensors, values of many types in GGUF."""

    def __init__(
        self,
        tensors: Mapping[str, ArrayLike | Tensor] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._entries: dict[str, TensorFileEntry] = {}
        self._places: dict[str, Place] = {}
        for what, given in (("tensors", tensors), ("metadata", metadata)):
            if given is not None and not isinstance(given, Mapping):
                raise ArgumentTypeError(f"{what} is {kind_of(given)}; give a dict by name")
        self.metadata = dict(metadata or {})
        for name, value in (tensors or {}).items():
            self.add(name, value)

    def add(self, name: str, value: ArrayLike | Tensor, *, metadata: bytes = b"") -> None:
        """Adds an array or a Tensor. Neither is copied: saving and loading take what it then contains.

        `metadata` are bytes that an IRPA archive keeps with this tensor, instead of its dtype and shape;
        without them the tensor loads with both. Raises ArgumentTypeError for dtypes that parameter files lack
        and for other values and names, InvalidArgumentError for a name that the index has,
        FailedPreconditionError for a destroyed Tensor, OutOfMemoryError for a broadcast array that the host
        cannot hold in one piece.
        """
        if isinstance(value, Tensor):
            if not value.is_init():
                value._require_init(f"be saved as {shown(name)}")
            place: np.ndarray[Any, Any] | Tensor = value
        else:
            array = to_array(value, shown(name))
            place = converted(array, array.dtype.newbyteorder("="), shown(name))
        kind = dtype_name(place.dtype, lambda: named(name))
        self._put(TensorFileEntry(name, kind, place.shape, 0, place.nbytes, None, _kept(metadata)), place)

    def add_splat(
        self, name: str, value: Any, shape: Any, dtype: DTypeLike = np.float32, *, metadata: bytes = b""
    ) -> None:
        """Adds a tensor in which each element is `value`. It takes no memory of the host, and a few bytes
        in an IRPA archive; the device fills it when it is loaded.

        Raises the errors of `add` and `Manager.full`.
        """
        element, extent = to_dtype(dtype), as_shape(shape)
        kind = dtype_name(element, lambda: named(name))
        pattern = element_bytes(value, element, lambda: f"The splat {shown(name)}")
        nbytes = byte_size(name, kind, extent)
        self._put(TensorFileEntry(name, kind, extent, 0, nbytes, pattern, _kept(metadata)), None)

    def add_range(
        self,
        name: str,
        source: Readable,
        offset: int,
        shape: Any,
        dtype: DTypeLike = np.float32,
        *,
        metadata: bytes = b"",
        release: Callable[[], object] | None = None,
    ) -> None:
        """Adds a part of a file that has no format: a tensor of `shape`, row-major and little-endian, from
        byte `offset` on.

        `source` and `release` are as in `kp.tensor_file_info`. `dtype` may be a quantised type of GGUF, such
        as "Q4_K". Raises the errors of `add`, those of opening the file, and InvalidArgumentError if the file
        ends before the tensor does.
        """
        extent, first = as_shape(shape), as_index(offset, "offset")
        kind = dtype if isinstance(dtype, str) and dtype in BLOCKS else None
        kind = kind or dtype_name(to_dtype(dtype), lambda: named(name))
        nbytes = byte_size(name, kind, extent)
        place = Source(source, release)
        with place.opened() as pieces:
            if first < 0 or first + nbytes > pieces.size:
                raise InvalidArgumentError(
                    f"{named(name)} would be bytes {first} to {first + nbytes} of {place.what}, which has "
                    f"{pieces.size}"
                )
        self._put(TensorFileEntry(name, kind, extent, first, nbytes, None, _kept(metadata)), place)

    def add_file(
        self,
        source: Readable | TensorIndex,
        *,
        scope: str = "",
        names: Names = None,
        format: str | None = None,
        release: Callable[[], object] | None = None,
    ) -> None:
        """Adds the tensors of a file or of another index; with a `scope`, under the names "scope::name".

        `source`, `format` and `release` are as in `kp.tensor_file_info`, `names` as in `kp.load_tensors`. The
        metadata of the file joins `metadata`. Raises the errors of these functions and of `add`; nothing is
        added then.
        """
        if not isinstance(scope, str):
            raise ArgumentTypeError(f"scope is {kind_of(scope)}; give a str")
        if isinstance(source, TensorIndex):
            other = source
        else:
            other = TensorIndex()
            place = Source(source, release)
            with place.opened() as pieces:
                other._read(pieces, place, format)
        head = f"{scope}::" if scope else ""
        chosen = [(head + name, entry) for name, entry in other._choose(names)]
        for name, _ in chosen:
            self._require_new(name)
        for name, entry in chosen:
            self._put(entry._replace(name=name), other._places[entry.name])
        self.metadata.update(other.metadata)

    def scoped(self, scope: str) -> TensorIndex:
        """The tensors of a scope, by their names without it. Raises NotFoundError if there are none.

        >>> index = kp.TensorIndex({"encoder::weight": np.ones(3, np.float32)})
        >>> list(index.scoped("encoder"))
        ['weight']
        """
        part, head = TensorIndex(metadata=self.metadata), f"{as_text(scope, 'scope')}::"
        for name, entry in self._entries.items():
            if name.startswith(head):
                part._put(entry._replace(name=name[len(head) :]), self._places[name])
        if not part:
            scopes = sorted({name.partition("::")[0] for name in self if "::" in name})
            raise NotFoundError(
                f"The index has no tensor of the scope {shown(scope)}; its scopes: "
                f"{', '.join(scopes) or 'none'}"
            )
        return part

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """The data of one tensor as a new array of `numpy_shape` and `numpy_dtype`. It needs no device,
        except for a Tensor.

        Raises NotFoundError if there is no such tensor, ArgumentTypeError if `name` is not a str,
        UnimplementedError for elements of less than 8 bits, UnavailableError if the file cannot be read or
        has changed.
        """
        if name not in self:
            raise NotFoundError(_lacks(name, self._entries))
        entry = self[name]
        array = np.empty(entry.numpy_shape, entry.numpy_dtype)
        data, place = array.reshape(-1).view(np.uint8), self._places[name]
        if isinstance(place, Source):
            with place.opened() as pieces:
                for at in range(0, entry.nbytes, PIECE):
                    fill(data[at : at + PIECE], at, entry, pieces)
                pieces.require_unchanged()
        else:
            fill(data, 0, entry, place)
        return array

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(entry.nbytes for entry in self._entries.values())

    def __getitem__(self, name: str) -> TensorFileEntry:
        """The entry of this name. Raises KeyError if there is none, ArgumentTypeError for other types."""
        if not isinstance(name, str):
            raise ArgumentTypeError(f"The name of a tensor is a str, not {kind_of(name)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<TensorIndex of {len(self)} tensors, {self.nbytes} bytes>"

    def _require_new(self, name: str) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"The name of a tensor is a str, not {type(name).__name__}: {shown(name)}"
            )
        if name in self._entries:
            raise InvalidArgumentError(
                f"The index has a tensor {shown(name)} already; give another name or a scope"
            )

    def _put(self, entry: TensorFileEntry, place: Place) -> None:
        self._require_new(entry.name)
        self._entries[entry.name] = entry
        self._places[entry.name] = place

    def _read(self, pieces: Pieces, place: Source, format: str | None) -> None:
        """Takes the tensors of an open file. For a new index."""
        check_format(format)
        found = _MARKS.get(pieces.head(0, min(4, pieces.size)), "safetensors")
        try:
            header = READERS[format or found](pieces.head, pieces.size)
        except (InvalidArgumentError, UnimplementedError) as error:
            other = None
            if format is None and found == "safetensors":
                other = other_format(pieces.head(0, min(LONGEST_MARK, pieces.size)))
            what = beginning(place.what)
            raise type(error)(f"{what}{f' {other}' if other else f': {error}'}") from None
        self._entries, self.metadata = header.entries, header.metadata
        self._places = dict.fromkeys(header.entries, place)
        self._places.update((name, None) for name, entry in header.entries.items() if entry.splat is not None)

    def _choose(self, names: Names) -> list[tuple[str, TensorFileEntry]]:
        """The entries that `names` selects, in the order of the file, with the names that they get."""
        return _chosen(self._entries, names)


def check_format(format: Any) -> None:
    """Raises ArgumentTypeError or InvalidArgumentError unless `format` is None or the name of a format."""
    if format is not None and not isinstance(format, str):
        raise ArgumentTypeError(f"format is {kind_of(format)}; give a str")
    if format is not None and format not in READERS:
        raise InvalidArgumentError(f"format is {shown(format)}; known: {', '.join(READERS)}")


def fill(
    data: np.ndarray[Any, Any], at: int, entry: TensorFileEntry, place: Pieces | np.ndarray | Tensor | None
) -> None:
    """Fills `data`, bytes, with those of a tensor from `at` on."""
    if isinstance(place, Pieces):
        place.fill(data.data, entry.offset + at)
    elif isinstance(place, Tensor):
        place._native.read(data, at)
    elif place is not None:
        data[:] = place.reshape(-1).view(np.uint8)[at : at + len(data)]
    elif len(data):
        assert entry.splat is not None
        pattern = np.frombuffer(entry.splat, np.uint8)
        data[:] = np.resize(np.roll(pattern, -(at % len(pattern))), len(data))


def _kept(metadata: Any) -> bytes:
    if not isinstance(metadata, (bytes, bytearray)):
        raise ArgumentTypeError(f"metadata is {kind_of(metadata)}; give bytes")
    return bytes(metadata)


def _chosen(entries: dict[str, TensorFileEntry], names: Names) -> list[tuple[str, TensorFileEntry]]:
    if names is None:
        return list(entries.items())
    if isinstance(names, Mapping):
        return _renamed(entries, names)
    if not isinstance(names, (str, Iterable)):
        raise ArgumentTypeError(
            f"names is {kind_of(names)}; give a str, an iterable of str, a dict, or None for all tensors"
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
        raise NotFoundError("; ".join(_lacks(name, entries) for name in missing[:5]))
    return [(name, entry) for name, entry in entries.items() if name in wanted]


def _renamed(
    entries: dict[str, TensorFileEntry], names: Mapping[str, str]
) -> list[tuple[str, TensorFileEntry]]:
    """The entries by new names, in which each ``*`` is what that of the file's name matches."""
    found: dict[str, TensorFileEntry] = {}
    for new, old in names.items():
        if not isinstance(new, str) or not isinstance(old, str):
            raise ArgumentTypeError(f"names contains {shown(new)}: {shown(old)}; give a str for a str")
        if old in entries:
            pairs = [(new, entries[old])]
        else:
            stars = old.count("*")
            if new.count("*") != stars:
                raise InvalidArgumentError(
                    f"names has {shown(new)}: {shown(old)}; give both the same number of *, which stand for "
                    "the same text"
                )
            match = re.compile("(.*)".join(map(re.escape, old.split("*"))), re.DOTALL).fullmatch
            parts = new.split("*")
            pairs = []
            for name, entry in entries.items():
                hit = match(name) if stars else None
                if hit is not None:
                    texts = (*hit.groups(), "")
                    pairs.append(
                        ("".join(part + text for part, text in zip(parts, texts, strict=True)), entry)
                    )
            if not pairs:
                raise NotFoundError(_lacks(old, entries))
        for name, entry in pairs:
            if name in found:
                raise InvalidArgumentError(f"names gives two tensors the name {shown(name)}")
            found[name] = entry
    return list(found.items())


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    from fnmatch import translate

    matches = re.compile(translate(pattern)).match
    return [name for name in names if matches(name)]


def _lacks(name: object, entries: Mapping[str, TensorFileEntry]) -> str:
    from difflib import get_close_matches
    from itertools import islice

    text = str(name)
    what = f"There is no tensor {'matching ' if _WILD.intersection(text) else ''}{shown(name)}"
    near = get_close_matches(text, islice(entries, _COMPARED_NAMES), n=3, cutoff=0.5)
    if near:
        return f"{what}; similar names: {', '.join(map(shown, near))}"
    some = ", ".join(map(shown, islice(entries, 5)))
    if not some:
        return f"{what}: the file has no tensors"
    return f"{what}; its {len(entries)} tensors are {some}{', ...' if len(entries) > 5 else ''}"
