"""The content of a program as plain data, and what a file must say to be one.

A program has parts, one for each module. A part has *shaders*, *blocks* (pieces of memory), *values* (named
tensors and images that lie in blocks) and *entries*. An entry is a kernel, which takes any shapes, or a list
of *recordings*: steps over the part's blocks, with the values that a call gives and gets. A block begins with
`contents`, by name, or with zeros.

Files come from anywhere. `decoded` accepts only JSON of exactly these types, of which `Annotated` ones have a
test and its text for errors; `check` refuses whatever refers to something that is not there. Facts of a
device (sizes of push constants, alignments, limits) are checked when the steps are made, by the same code
that checks what scripts make.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from .._base.arrays import check_dtype
from .._base.errors import InvalidArgumentError, KomputeError, UnimplementedError, shown
from .._base.texels import parse_format
from .._base.types import MemoryTypes

FORMAT = "kompute_py program"
VERSION = 1
INPUT, OUTPUT, STATE, PARAMETER = "input", "output", "state", "parameter"
OPTIONS = ("out", "donate", "wait", "signal")
_INNER = ("dispatch", "copy", "copy region", "fill")
"""The kinds of steps that may be repeated."""
_KINDS = (*_INNER, "sync device", "sync local", "repeat", "host")
_MOST = 2**63 - 1


def identifiers(name: str) -> bool:
    """Whether a name is one that Python code can write, with dots between parts."""
    return all(part.isidentifier() for part in name.split("."))


def _is_module(name: str) -> bool:
    return not name or identifiers(name)


def _one_of(names: Collection[str]) -> Callable[[str], bool]:
    return lambda name: name in names


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


Count = Annotated[int, lambda number: number < 2**32, "a number of 32 bits"]
Digest = Annotated[str, _is_digest, "a digest"]
Dotted = Annotated[str, identifiers, "an identifier, or several with dots between them"]
Kind = Annotated[str, _one_of(_KINDS), f"one of {', '.join(_KINDS)}"]
Role = Annotated[str, _one_of((INPUT, OUTPUT, STATE, PARAMETER)), "a role"]
Place = Annotated[str, _one_of(MemoryTypes.__members__), "a memory type"]
Size = tuple[Count, Count, Count, Count]
Region = tuple[Count, Count, Count, Count, Count, Count, Count, Count]


class Shader(NamedTuple):
    """A module and its entry point. `declared` is the module before it was optimized, if that differs."""

    file: Digest
    entry: str
    name: str
    declared: Digest | None = None
    subgroup_size: int = 0
    full_subgroups: bool = False
    generated: bool = False
    """Whether it runs without the modes for floats that a device lacks, as functions do."""


class Constants(NamedTuple):
    """Specialization constants: bytes, and (id, offset, size) of each."""

    data: bytes = b""
    places: tuple[tuple[Count, int, int], ...] = ()


class ImageForm(NamedTuple):
    """An image: `size` is (width, height, depth, layers)."""

    dims: int
    arrayed: bool
    size: Size
    format: str


class Block(NamedTuple):
    """A piece of memory: a buffer, or an image."""

    nbytes: int
    memory_type: Place
    image: ImageForm | None = None
    contents: str = ""
    """The name of what it begins with; "" for zeros."""
    host: str = ""
    """The same of its host copy, if that differs and is uploaded; "" if it does not."""


class Value(NamedTuple):
    """A named tensor or image in a block."""

    name: str
    role: Role
    block: int
    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def text(self) -> str:
        """Its name, dtype and shape."""
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Range(NamedTuple):
    """Bytes of a block."""

    block: int
    offset: int
    nbytes: int


class SamplerForm(NamedTuple):
    """The arguments of `Manager.sampler`."""

    filter: str
    address: tuple[str, str, str]
    border: str
    integer: bool
    unnormalized: bool


class Argument(NamedTuple):
    """The memory or the sampler for a descriptor of a dispatch."""

    set: Count
    binding: Count
    element: Count
    range: Range | None = None
    sampler: SamplerForm | None = None
    texels: str | None = None


class Step(NamedTuple):
    """An operation of a recording. `kind` is that of `_native.recorded`, or "host"."""

    kind: Kind
    name: str
    ranges: tuple[Range, ...] = ()
    patterns: tuple[bytes, ...] = ()
    regions: tuple[Region, ...] = ()
    shader: int | None = None
    constants: Constants = Constants()
    arguments: tuple[Argument, ...] = ()
    groups: tuple[Count, Count, Count] = (0, 0, 0)
    push: bytes = b""
    indirect: Range | None = None
    steps: tuple[Step, ...] = ()
    times: Count = 0
    swaps: tuple[tuple[Range, Range], ...] = ()
    reads: tuple[Value, ...] = ()
    writes: tuple[Value, ...] = ()
    """The memory of a step of the host."""


class Recording(NamedTuple):
    """Steps, with the numbers of the values that a call gives and gets."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: tuple[Step, ...]


class KernelForm(NamedTuple):
    """A kernel."""

    shader: int
    constants: Constants = Constants()
    zero: bool = False
    """Whether its bounds are "zero"."""


class Entry(NamedTuple):
    """An entry: a kernel, or one of several recordings, chosen by the shapes and dtypes of a call."""

    name: str
    kernel: KernelForm | None = None
    recordings: tuple[Recording, ...] = ()
    source: str = ""
    """A text that goes with it, such as the shader's source."""


class Part(NamedTuple):
    """A module: entries that share memory."""

    name: Annotated[str, _is_module, "an identifier"]
    entries: tuple[Entry, ...]
    shaders: tuple[Shader, ...] = ()
    blocks: tuple[Block, ...] = ()
    values: tuple[Value, ...] = ()
    version: int = 0

    @property
    def steps(self) -> Iterator[Step]:
        """All steps of its entries, and those in them."""
        return every(step for entry in self.entries for each in entry.recordings for step in each.steps)

    def special(self) -> set[tuple[int, Constants]]:
        """The shaders that its entries run, by number, with their constants."""
        found = {(each.kernel.shader, each.kernel.constants) for each in self.entries if each.kernel}
        return found | {(each.shader, each.constants) for each in self.steps if each.shader is not None}


class Needed(NamedTuple):
    """A part of another program, which is given when the program is loaded."""

    name: Dotted
    version: int
    """The least one."""
    entries: tuple[Dotted, ...]


class Content(NamedTuple):
    """A program."""

    format: str
    version: int
    parts: tuple[Part, ...]
    needs: tuple[Needed, ...] = ()


# -- plain data ----------------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:
    """The value as JSON has it; fields with their defaults are left out."""
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "_fields"):
        defaults = value._field_defaults
        return {
            name: encoded(each)
            for name, each in value._asdict().items()
            if name not in defaults or each != defaults[name]
        }
    return [encoded(each) for each in value] if isinstance(value, tuple) else value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def decoded(kind: Any, value: Any, where: str) -> Any:
    """The value of a type, of its JSON. `where` names the place in errors.

    Raises InvalidArgumentError if the JSON is of other types.
    """
    options = () if type(kind) is type else get_args(kind)
    origin = options and get_origin(kind)
    if origin is Annotated:
        base, test, wanted = options
        made = decoded(base, value, where)
        if not test(made):
            raise _wrong(where, value, wanted)
        return made
    if origin is tuple:
        if type(value) is not list or (options[-1] is not ... and len(value) != len(options)):
            raise _wrong(where, value, "a list" if options[-1] is ... else f"a list of {len(options)}")
        kinds = [options[0]] * len(value) if options[-1] is ... else options
        return tuple(
            decoded(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True))
        )
    if options:  # X | None
        return None if value is None else decoded(options[0], value, where)
    if hasattr(kind, "_fields"):
        if type(value) is not dict:
            raise _wrong(where, value, "an object")
        for name in value:
            if name not in kind._fields:
                raise InvalidArgumentError(f"{where} has an unknown field {shown(name)}")
        for name in kind._fields:
            if name not in value and name not in kind._field_defaults:
                raise InvalidArgumentError(f"{where} lacks the field {name!r}")
        hints = _hints(kind)
        return kind(**{n: decoded(hints[n], v, f"{where}.{n}") for n, v in value.items()})
    if kind is bytes:
        try:
            return bytes.fromhex(value)
        except (TypeError, ValueError):
            raise _wrong(where, value, "bytes as hexadecimal digits") from None
    if type(value) is not kind:
        raise _wrong(where, value, {int: "a whole number", str: "a text", bool: "true or false"}[kind])
    if kind is int and not 0 <= value <= _MOST:
        raise InvalidArgumentError(f"{where} is {shown(value)}; it is 0 to {_MOST}")
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"{where} is not Unicode: {shown(value)}") from None
    return value


def _wrong(where: str, value: Any, wanted: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{where} is {shown(value)}; it has to be {wanted}")


# -- checks --------------------------------------------------------------------------------------------------


@functools.lru_cache(256)
def dtype_of(name: str, where: str = "The dtype") -> np.dtype[Any]:
    """The dtype of a value. Raises InvalidArgumentError for a name that values do not have."""
    try:
        if not name.isidentifier():
            raise ValueError(name)
        small = name.startswith(("bfloat", "float8"))
        found = check_dtype(np.dtype(getattr(import_module("ml_dtypes"), name) if small else name))
        if found.name == name and found.names is None and found.subdtype is None:
            return found
    except (TypeError, ValueError, ImportError, AttributeError):
        pass
    raise InvalidArgumentError(f"{where} is {shown(name)}, which is not a dtype of tensors")


def image_bytes(form: ImageForm, where: str) -> int:
    """The bytes of an image. Raises InvalidArgumentError if there are no such images."""
    try:
        format = parse_format(form.format)
    except KomputeError as error:
        raise InvalidArgumentError(f"{where}: {error}") from None
    _, height, depth, layers = form.size
    flat = (form.dims > 1 or height == 1) and (form.dims == 3 or depth == 1) and (form.arrayed or layers == 1)
    if not 1 <= form.dims <= 3 or not flat or not all(form.size):
        raise InvalidArgumentError(f"{where} has {form.dims} dimensions and the size {form.size}")
    return math.prod(form.size) * format.channels * np.dtype(format.component).itemsize


def described(value: Any) -> Content:
    """The program that a file's JSON describes. The version is read first: a later one may have other fields.

    Raises InvalidArgumentError if it does not describe one, UnimplementedError if it has another version.
    """
    format, version = (value.get("format"), value.get("version")) if type(value) is dict else (None, None)
    if type(format) is str and format != FORMAT:
        raise InvalidArgumentError(f"It is not a program: its format is {shown(format)}")
    if format == FORMAT and type(version) is int and version != VERSION:
        raise UnimplementedError(f"It has version {shown(version)}; this kompute_py reads version {VERSION}")
    content: Content = decoded(Content, value, "program")
    check(content)
    return content


def check(content: Content) -> None:
    """Raises InvalidArgumentError if the program refers to what it does not have."""
    _unique([*(part.name for part in content.parts), *(each.name for each in content.needs)], "parts")
    for part in content.parts:
        try:
            _check_part(part)
        except KomputeError as error:
            error.args = (f"{part.name}: {error}" if part.name else str(error), *error.args[1:])
            raise


def _check_part(part: Part) -> None:
    _unique([entry.name for entry in part.entries], "entries")
    _unique([value.name for value in part.values if value.role in (STATE, PARAMETER)], "values")
    for number, block in enumerate(part.blocks):
        where = f"blocks[{number}]"
        if block.image is not None and block.nbytes != image_bytes(block.image, where):
            raise InvalidArgumentError(f"{where} is an image of another size than {block.nbytes} bytes")
    for value in part.values:
        _check_value(part, value, f"The value {shown(value.name)}")
        if value.name and (not value.name.isidentifier() or value.name in OPTIONS):
            raise InvalidArgumentError(
                f"A value's name is {shown(value.name)}; give an identifier, but none of {', '.join(OPTIONS)}"
            )
    for entry in part.entries:
        where = f"The entry {shown(entry.name)}"
        if not identifiers(entry.name):
            raise InvalidArgumentError(f"An entry's name is {shown(entry.name)}; give an identifier")
        if (entry.kernel is None) == (not entry.recordings):
            raise InvalidArgumentError(f"{where} is neither a kernel nor recordings, or both")
        if entry.kernel is not None:
            _check_shader(part, entry.kernel.shader, entry.kernel.constants, where)
        for recording in entry.recordings:
            for numbers, role in ((recording.inputs, INPUT), (recording.outputs, OUTPUT)):
                for number in numbers:
                    if number >= len(part.values) or part.values[number].role != role:
                        raise InvalidArgumentError(f"{where} has no {role} {number}")
                _unique([part.values[number].name for number in numbers], where)
            for step in recording.steps:
                _check_step(part, step, where, True)
        taken = {
            tuple([(v.shape, v.dtype) for v in map(part.values.__getitem__, r.inputs)])
            for r in entry.recordings
        }
        if len(taken) < len(entry.recordings):
            raise InvalidArgumentError(
                f"{where} has two recordings for the same shapes and dtypes: make them entries of their own"
            )


def _unique(names: list[str], where: str) -> None:
    if len(set(names)) < len(names):
        ((twice, _),) = Counter(names).most_common(1)
        raise InvalidArgumentError(f"{where}: the name {shown(twice)} stands twice")


def _check_value(part: Part, value: Value, where: str) -> None:
    dtype_of(value.dtype, where)
    if len(value.shape) > 32 or math.prod(each for each in value.shape if each) > _MOST:
        raise InvalidArgumentError(f"{where} has the shape {shown(value.shape)}")
    _check_range(part, range_of(value), where)


def _check_range(part: Part, range: Range, where: str) -> None:
    if range.block >= len(part.blocks):
        raise InvalidArgumentError(f"{where} is in block {range.block}; there are {len(part.blocks)}")
    if range.offset + range.nbytes > part.blocks[range.block].nbytes:
        raise InvalidArgumentError(
            f"{where} ends at byte {range.offset + range.nbytes} of block {range.block}, which has "
            f"{part.blocks[range.block].nbytes}"
        )
    if part.blocks[range.block].image and (range.offset or range.nbytes != part.blocks[range.block].nbytes):
        raise InvalidArgumentError(f"{where} is a part of an image")


def _check_shader(part: Part, number: int | None, constants: Constants, where: str) -> None:
    if number is None or number >= len(part.shaders):
        raise InvalidArgumentError(f"{where} has the shader {number}; there are {len(part.shaders)}")
    for _, offset, size in constants.places:
        if size not in (1, 2, 4, 8) or offset + size > len(constants.data):
            raise InvalidArgumentError(f"{where}: a constant lies at byte {offset} of {len(constants.data)}")
    _unique([str(identity) for identity, _, _ in constants.places], f"{where}: constants")


def _check_step(part: Part, step: Step, where: str, outer: bool) -> None:
    where = f"{where}: {step.name}"
    if step.kind not in _INNER and not outer:
        raise InvalidArgumentError(f"{where} repeats a step {shown(step.kind)}")
    for value in (*step.reads, *step.writes):
        _check_value(part, value, where)
    for range in ranges_of(step):
        _check_range(part, range, where)
    if step.kind == "dispatch":
        _check_shader(part, step.shader, step.constants, where)
    least = {"copy": 2, "copy region": 2, "fill": 1, "sync device": 1, "sync local": 1}.get(step.kind, 0)
    if len(step.ranges) < least or (step.kind == "fill" and len(step.patterns) != len(step.ranges)):
        raise InvalidArgumentError(f"{where} has {len(step.ranges)} ranges and {len(step.patterns)} patterns")
    if step.kind == "copy region" and not len(step.regions) == len(step.ranges) == 2:
        raise InvalidArgumentError(f"{where} does not have two regions")
    if step.kind == "repeat" and not step.steps:
        raise InvalidArgumentError(f"{where} repeats 0 steps {step.times} times")
    for inner in step.steps:
        _check_step(part, inner, where, False)


def range_of(value: Value) -> Range:
    """The bytes of a value."""
    return Range(value.block, value.offset, math.prod(value.shape) * dtype_of(value.dtype).itemsize)


def every(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, and those in them."""
    for step in steps:
        yield step
        yield from every(step.steps)


def ranges_of(step: Step) -> Iterator[Range]:
    """All bytes that a step uses, but those of the steps in it."""
    yield from step.ranges
    yield from map(range_of, (*step.reads, *step.writes))
    for argument in step.arguments:
        if argument.range is not None:
            yield argument.range
    if step.indirect is not None:
        yield step.indirect
    for swap in step.swaps:
        yield from swap


def parameters_of(part: Part) -> dict[int, Value]:
    """The parameters that blocks hold under their names, by the number of the block."""
    found: dict[int, Value] = {}
    for value in part.values:
        if value.role == PARAMETER and value.name == part.blocks[value.block].contents:
            found.setdefault(value.block, value)
    return found


def blocks_of(steps: tuple[Step, ...]) -> set[int]:
    """The numbers of the blocks that steps use."""
    return {range.block for step in every(steps) for range in ranges_of(step)}
