"""Programs in files: a zip with `program.json`, SPIR-V by its digest, and `parameters.safetensors`.

Members are read one by one, each up to a limit, and checked: checksums by the zip, code by its digest, data
by its checksum and its header. The data is not compressed, so it is streamed from its place in the file when
it is needed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, BinaryIO

from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    KomputeError,
    NotFoundError,
    kind_of,
    shown,
)
from .._base.file_access import as_path, open_regular
from .._base.warn import warn
from .._files import safetensors
from .._files.index import TensorIndex
from .._files.progress import ByteProgress, Progress
from .._files.reading import PIECE, Readable, hold_open, refused
from .._files.tensors import save_tensors
from .._files.writing import replacing
from . import content as c

DESCRIPTION, DATA = "program.json", "parameters.safetensors"
_MOST = 64 << 20  # bytes of a shader, which is read at once
_MOST_TEXT = 32 << 20  # bytes of the description: some 100,000 dispatches
_MOST_ITEMS = 1 << 22  # of the description; each takes a hundred bytes of Python's memory
_MOST_CODE = 64 << 20  # bytes of all shaders
_MOST_MEMBERS = 1 << 16
_SPIRV = (0x07230203).to_bytes(4, "little")
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
    RuntimeError,
    LookupError,
)
"""The standard library's errors for damaged files; RecursionError is a RuntimeError."""
_HEADER = struct.Struct("<26xHH")
"""Of a member: the sizes of the name and of the other fields that follow it."""
_PLAIN_DATE = (1980, 1, 1, 0, 0, 0)


_Progress = Progress | bool | None


class _Stopped(BaseException):
    """What a function of progress raised: no fault of the file."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _apart(progress: _Progress) -> _Progress:
    if not callable(progress):
        return progress

    def report(*state: Any) -> None:
        try:
            progress(*state)
        except Exception as error:
            raise _Stopped(error) from None

    return report


def save(
    target: str | os.PathLike[str] | BinaryIO,
    content: c.Content,
    files: Mapping[str, bytes],
    contents: Mapping[str, TensorIndex],
    parameters: bool,
    progress: _Progress,
) -> None:
    """Writes a program. `contents` are those of each part; without `parameters`, named ones are left out."""
    index = TensorIndex()
    for part in content.parts:
        referred = set()
        if not parameters:
            referred = {part.blocks[number].contents for number in c.parameters_of(part)}
        names = [name for name in contents[part.name] if name not in referred]
        index.add_file(contents[part.name], scope=part.name, names=names)
    described = json.dumps(c.encoded(content), separators=(",", ":")).encode()
    _check_size(described)
    _check_code(sum(map(len, files.values())))
    if hasattr(target, "write"):
        opened: Any = nullcontext(target)
        path = repr(target)
    else:
        path = as_path(target)
        hold_open(path, [each for found in contents.values() for each in found._places.values()])
        opened = replacing(os.path.realpath(path))
    with opened as file:
        try:
            with zipfile.ZipFile(file, "w") as made:
                for name, data in [(DESCRIPTION, described), *((_spirv(n), files[n]) for n in sorted(files))]:
                    made.writestr(zipfile.ZipInfo(name, _PLAIN_DATE), data, zipfile.ZIP_DEFLATED)
                if index:
                    with made.open(zipfile.ZipInfo(DATA, _PLAIN_DATE), "w", force_zip64=True) as member:
                        save_tensors(member, index, {}, format="safetensors", progress=_apart(progress))  # type: ignore[arg-type]
        except OSError as error:
            raise refused(f"the file {path!r}", "written", error) from error
        except _Stopped as stopped:
            raise stopped.error from None


def load(source: Readable, progress: _Progress) -> tuple[c.Content, dict[str, bytes], dict[str, TensorIndex]]:
    """The content of a program, its code by digests, and what the blocks of each part begin with.

    Raises NotFoundError if there is no such file, UnavailableError if the system refuses to read it,
    InvalidArgumentError if it is not a program or damaged, UnimplementedError if it is of a later version.
    """
    place: Any
    if isinstance(source, (str, os.PathLike)):
        place = as_path(source)
        what = f"the file {place!r}"
    else:
        given = source.read() if hasattr(source, "read") else source
        if not isinstance(given, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError(
                f"source is {kind_of(given)}; give a path, a file that is open for reading bytes, or bytes"
            )
        place = bytes(given)
        what = "the given bytes"
    try:
        with (
            io.BytesIO(place) if isinstance(place, bytes) else open(open_regular(place), "rb") as file,
            zipfile.ZipFile(file) as members,
        ):
            return _read(file, members, place, _apart(progress))
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no file {place!r}") from error
    except OSError as error:
        raise refused(what, "read", error) from error
    except _Stopped as stopped:
        raise stopped.error from None
    except KomputeError as error:
        error.args = (f"{what}: {error}", *error.args[1:])
        raise
    except _DAMAGED as error:
        raise InvalidArgumentError(f"{what} is not a program, or it is damaged: {error}") from error


def _read(
    file: Any, members: zipfile.ZipFile, place: Any, progress: _Progress
) -> tuple[c.Content, dict[str, bytes], dict[str, TensorIndex]]:
    listed = members.infolist()
    infos = {info.filename: info for info in listed}
    if len(infos) != len(listed) or len(listed) > _MOST_MEMBERS:
        raise InvalidArgumentError(f"it has {len(listed)} members with {len(infos)} names")
    text = _member(members, infos, DESCRIPTION)
    _check_size(text)
    content = c.described(json.loads(text))
    files = {}
    size = 0
    for digest in {d for part in content.parts for s in part.shaders for d in (s.file, s.declared) if d}:
        data = _member(members, infos, _spirv(digest))
        size += len(data)
        _check_code(size)
        if hashlib.sha256(data).hexdigest() != digest or not data.startswith(_SPIRV):
            raise InvalidArgumentError(f"{_spirv(digest)} is not the code that its name says")
        files[digest] = data
    index = _data(file, members, infos[DATA], place, progress) if DATA in infos else TensorIndex()
    contents = contents_of(index, content)
    for part in content.parts:
        check_contents(part, contents[part.name])
    return content, files, contents


def _check_size(text: bytes) -> None:
    """Raises InvalidArgumentError if a description takes more memory than programs need."""
    items = sum(map(text.count, (b"[", b"{", b",")))  # a kilobyte of a file may hold a million of them
    for number, most, what in ((len(text), _MOST_TEXT, "bytes"), (items, _MOST_ITEMS, "items")):
        if number > most:
            raise InvalidArgumentError(
                f"{DESCRIPTION} has {number} {what}; {most} is the most that is read: make several programs "
                "of shorter recordings, or repeat operations by OpRepeat"
            )


def _check_code(size: int) -> None:
    """Raises InvalidArgumentError if all shaders together have more bytes than are read."""
    if size > _MOST_CODE:
        raise InvalidArgumentError(
            f"its shaders have {size} bytes or more; {_MOST_CODE} is the most that is read: "
            "make several programs"
        )


def check_contents(part: c.Part, index: TensorIndex) -> None:
    """Raises InvalidArgumentError if the contents do not fit the blocks, NotFoundError if they are not there.

    Named parameters may be missing: they are given when the program is loaded.
    """
    parameters = c.parameters_of(part)
    for number, block in enumerate(part.blocks):
        for name in filter(None, (block.contents, block.host)):
            value = parameters.get(number)
            if name not in index and value is not None and name == block.contents:
                continue
            if name not in index:
                raise InvalidArgumentError(f"block {number} begins with {shown(name)}, which is not there")
            entry = index[name]
            if value is not None and (
                entry.shape != value.shape or entry.numpy_dtype != c.dtype_of(value.dtype)
            ):
                raise InvalidArgumentError(
                    f"the parameter {shown(name)} has shape {entry.shape} and dtype {entry.dtype}; the "
                    f"program was recorded for {value.shape} and {value.dtype}"
                )
            if entry.nbytes != block.nbytes:
                raise InvalidArgumentError(
                    f"{shown(name)} has {entry.nbytes} bytes; block {number} has {block.nbytes}"
                )


def contents_of(index: TensorIndex, content: c.Content) -> dict[str, TensorIndex]:
    """The tensors of each part, by their names there."""
    names: dict[str, dict[str, str]] = {part.name: {} for part in content.parts}
    for name in index:
        part, _, own = name.rpartition("::")
        if part in names:
            names[part][own] = name
    found = {part: TensorIndex() for part in names}
    for part, chosen in names.items():
        if chosen:
            found[part].add_file(index, names=chosen)
    return found


def with_parameters(
    content: c.Content, contents: Mapping[str, TensorIndex], index: TensorIndex, exact: bool
) -> dict[str, TensorIndex]:
    """The contents of each part, with those of `index` for its named parameters.

    Raises InvalidArgumentError if they do not fit, if `index` has none of the names, and with `exact` if it
    has others. Warns of those that it lacks.
    """
    made: dict[str, TensorIndex] = {}
    known: dict[str, bool] = {}
    for name, given in contents_of(index, content).items():
        part = next(each for each in content.parts if each.name == name)
        own = [part.blocks[number].contents for number in c.parameters_of(part)]
        known.update((f"{name}::{each}" if name else each, each in contents[name]) for each in own)
        names = {each: each for each in own if each in given}
        made[name] = TensorIndex()
        made[name].add_file(contents[name], names=[each for each in contents[name] if each not in names])
        made[name].add_file(given, names=names)
        check_contents(part, made[name])
    further = sorted(index.keys() - known.keys())
    if further and (exact or len(further) == len(index)):
        has = ", ".join(map(repr, sorted(known))) or "none"
        raise InvalidArgumentError(
            f"parameters has {', '.join(map(repr, further[:8]))}{', ...' if further[8:] else ''}, and the "
            f"program has {has}"
        )
    kept = sorted(name for name, has in known.items() if has and name not in index)
    if kept and not exact:
        warn(f"parameters lacks {', '.join(map(repr, kept))}: the program's own contents stay for these")
    return made


def _spirv(digest: str) -> str:
    return f"shaders/{digest}.spv"


def _member(members: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], name: str) -> bytes:
    info = infos.get(name)
    if info is None:
        raise InvalidArgumentError(f"it has no {name}")
    if info.file_size > _MOST or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidArgumentError(f"{name} has {info.file_size} bytes, or is compressed in an unknown way")
    with members.open(info) as member:
        data = member.read(_MOST + 1)
    if len(data) != info.file_size:
        raise InvalidArgumentError(f"{name} has {len(data)} bytes instead of {info.file_size}")
    return data


def _data(
    file: Any, members: zipfile.ZipFile, info: zipfile.ZipInfo, place: Any, progress: _Progress
) -> TensorIndex:
    """The tensors of the data, at their places in the file."""
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise InvalidArgumentError(f"{DATA} is compressed, or damaged")
    title = "checking a program" if isinstance(place, bytes) else f"checking {os.path.basename(place)}"
    with members.open(info) as member, ByteProgress(title, info.file_size, progress) as bar:
        while member.read(PIECE):  # which raises an error at the end if the checksum is another one
            bar.at(member.tell(), DATA)
    with members.open(info) as member:

        def read(offset: int, size: int) -> bytes:
            member.seek(offset)
            return member.read(size)

        header = safetensors.read_header(read, info.file_size)
    file.seek(info.header_offset)
    begin = info.header_offset + _HEADER.size + sum(_HEADER.unpack(file.read(_HEADER.size)))
    index = TensorIndex()
    for entry in header.entries.values():
        index.add_range(entry.name, place, begin + entry.offset, entry.shape, entry.numpy_dtype)
    return index
