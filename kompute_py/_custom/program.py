"""The kernels that an operation's generator wrote: compiled, and made ready for certain tensors."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import (
    Diagnostic,
    InvalidArgumentError,
    ShaderCompileError,
    shown,
)
from .._base.types import MemoryTypes
from .._memory.reach import whole_words
from .._memory.scratch import bytes_of_parts, parts_of
from .._memory.tensor import Tensor, buffer_tensor
from .._shaders.module import ShaderModule
from .arg_descs import TensorListArg, ValueArg
from .builder import Dispatch, FunctionBuilder, Indirect
from .expressions import IntOrSize, Size, evaluate
from .selection import FunctionSelection
from .source import VALUES, Source, alike, source_of
from .special import unchanged

if TYPE_CHECKING:
    from .._manager.manager import Manager

_MOST_ELEMENTS = 2**32 - 1
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class Step(NamedTuple):
    """One compiled dispatch."""

    module: ShaderModule
    source: Source
    grid: tuple[IntOrSize, IntOrSize, IntOrSize]
    local_size: tuple[int, int, int]
    indirect: Indirect | None
    """Where the device reads the workgroups. The grid is one group then."""


class Table:
    """What the kernels of a specialization read in each call. It does not hold the Manager."""

    def __init__(self, name: str, size: int, dtype: np.dtype[Any], contents: Any) -> None:
        self.name, self.size, self.dtype = name, size, dtype
        self._contents = contents
        self._made: tuple[Any, MemoryTypes] | None = None

    def tensor(self, manager: Manager) -> Tensor:
        """The tensor that has it, made when it is first asked for.

        Raises InvalidArgumentError if a function returns another tensor than was declared.
        """
        if self._made is None:
            if callable(self._contents):
                made = self._contents(manager)
                if not isinstance(made, Tensor) or made.size() != self.size or made.dtype != self.dtype:
                    raise InvalidArgumentError(
                        f"The function of the table {self.name!r} returned {shown(made)}; it returns a "
                        f"Tensor with {self.size} elements of {self.dtype}"
                    )
            else:
                made = None
            if made is None or made.nbytes % 4:
                whole = manager.empty(whole_words(self.size), self.dtype, "storage")
                if made is None:
                    whole[: self.size].write(self._contents)
                else:
                    whole[: self.size].copy_from(made)
                made = whole
            self._made = made._native, made.memory_type()
            self._contents = None
        native, memory_type = self._made
        count = native.nbytes // self.dtype.itemsize
        return buffer_tensor(native, manager, (count,), self.dtype, count, memory_type)


class Program(NamedTuple):
    """The compiled dispatches of one specialization."""

    name: str
    steps: tuple[Step, ...]
    scratch: tuple[tuple[str, IntOrSize, np.dtype[Any]], ...]
    """(name, number of elements, dtype) of the memory that the dispatches share."""
    tables: tuple[Table, ...] = ()
    """What the dispatches read that is the same in each call."""
    of_one_size: tuple[tuple[str, ...], ...] = ()
    """Names of tensors that have the same number of elements, which kernels compute together."""

    @property
    def table_bytes(self) -> int:
        """Bytes of device memory for the tables."""
        return sum(table.size * table.dtype.itemsize for table in self.tables)

    def decisive(self, selection: FunctionSelection) -> set[int]:
        """The places of the run-time ints that grids and sizes of scratch memory depend on."""
        uses: set[str] = set()
        for step in self.steps:
            for size in step.grid:
                if isinstance(size, Size):
                    uses |= size.uses
        for _, size, _ in self.scratch:
            if isinstance(size, Size):
                uses |= size.uses
        return {d.index for d in selection.arg_descs if isinstance(d, ValueArg) and d.name in uses}


def compile_program(op: Any, selection: FunctionSelection, setting: Any) -> Program:
    """Generates and compiles the kernels of a selection.

    Raises what `generate` raises, InvalidArgumentError for a missing grid or result, and ShaderCompileError,
    which names the generator's lines.
    """
    builder, dispatches = _generated(op, selection)
    name = selection.name
    steps = []
    for number, dispatch in enumerate(dispatches):
        part = dispatch.name or (str(number) if len(dispatches) > 1 else "")
        title = f"{name}.{part}" if part else name
        steps.append(_compiled(builder, dispatch, title, setting))
    scratch = tuple((value.name, size, value.dtype) for value, size in builder._scratch.values())
    tables = tuple(
        Table(each, size, builder._tensors[each].dtype, contents)
        for each, (contents, size) in builder._constants.items()
    )
    return Program(name, tuple(steps), scratch, tables, tuple(builder._of_one_size))


def written(op: Any, selection: FunctionSelection) -> tuple[str, ...]:
    """The GLSL of the dispatches; "" for a module of SPIR-V."""
    builder, dispatches = _generated(op, selection)
    return tuple(source_of(builder, dispatch).text for dispatch in dispatches)


def _generated(op: Any, selection: FunctionSelection) -> tuple[FunctionBuilder, list[Dispatch]]:
    builder = FunctionBuilder(selection, op.single_dispatch)
    selection._guard(True)
    try:
        with unchanged(selection.name, "generate", op):
            op.generate(selection, builder)
    finally:
        selection._guard(False)
    return builder, builder._finish()


def _compiled(builder: FunctionBuilder, dispatch: Dispatch, title: str, setting: Any) -> Step:
    source = source_of(builder, dispatch)
    assert dispatch.grid is not None
    _check_dtypes(builder, source)
    _check_bindings(builder, source, title)
    if dispatch.module is not None:
        return Step(dispatch.module, source, dispatch.grid, dispatch.local_size, dispatch.indirect)
    text = source.text
    if len(builder._dispatches) > 1:
        items = [
            each.name
            for desc in builder.selection.arg_descs
            if isinstance(desc, TensorListArg)
            for each in desc.items
        ]
        if items:
            text = alike(source, items)
    subgroups = dispatch.subgroup_size, dispatch.full_subgroups
    try:
        module = ShaderModule._of_generated(text, title, subgroups, setting)
    except ShaderCompileError:
        try:  # its names are those of the generator
            module = ShaderModule._of_generated(source.text, title, subgroups, setting)
        except ShaderCompileError as error:
            raise _at_the_generator(error, source, title) from None
    source = source._replace(text="", origins=[])  # hundreds of programs are kept, none for its text
    return Step(module, source, dispatch.grid, dispatch.local_size, dispatch.indirect)


def _check_bindings(builder: FunctionBuilder, source: Source, title: str) -> None:
    """Raises InvalidArgumentError if the kernel has more buffers than the device allows, before it is
    compiled: thousands of them would take a minute.
    """
    device = builder.selection.device
    if device is None:
        return
    count = len(source.tensors) + (not source.pushed)
    most = device["limits"]["maxPerStageDescriptorStorageBuffers"]
    if count > most:
        raise InvalidArgumentError(
            f"The kernel {title} uses {count} tensors, and {device['device_name']!r} allows {most} "
            "(maxPerStageDescriptorStorageBuffers): put several into one, as kp.ops.stack does"
        )


def _check_dtypes(builder: FunctionBuilder, source: Source) -> None:
    """Raises UnimplementedError if a tensor of the kernel has a dtype that the device lacks."""
    selection = builder.selection
    for name in source.tensors:
        dtype = builder._tensors[name].dtype
        title, advice = f"{name} is of", f"convert it: {name}.astype(np.{{}})"
        if any(name == result.name for result in selection.results):
            title, advice = "the result would be of", "give arguments of 32 bits"
        selection.require(dtype, title, f"{advice}, or use another device (kp.list_devices())")


def _at_the_generator(error: ShaderCompileError, source: Source, title: str) -> ShaderCompileError:
    """The error with the lines of the generator in place of those of the text that it wrote."""
    found = []
    for each in error.diagnostics:
        origin = source.origins[each.line - 1] if 0 < each.line <= len(source.origins) else None
        if origin is None:
            found.append(each)
        else:
            found.append(
                Diagnostic(origin.file, origin.line, 0, each.severity, each.message, each.source_line)
            )
    lines = [f"The kernel that the operation {title} generated does not compile:"]
    for each in found:
        lines.append(f"{each.file}:{each.line}: {each.severity}: {each.message}")
        if each.source_line.strip():
            lines.append(f"    {each.source_line.strip()}")
    lines.append("The generated source:")
    lines += [f"{number:4} | {line}" for number, line in enumerate(source.text.splitlines(), 1)]
    return type(error)("\n".join(lines), vk_result=error.vk_result or 0, diagnostics=found)


class Block:
    """The run-time values of a dispatch over certain shapes: numbers that are known, and fields for those of
    calls.
    """

    def __init__(self, source: Source, numbers: Mapping[str, int], selection: FunctionSelection) -> None:
        values = {d.name: d for d in selection.values}
        block = bytearray()
        self.fields: list[tuple[int, struct.Struct, ValueArg, bool]] = []
        """(offset, format, argument, whether floats of Python are packed as they are) of calls' numbers."""
        for name, kind in source.parameters:
            how = VALUES[kind]
            if beyond := len(block) % how.size:
                block += bytes(how.size - beyond)
            desc = values.get(name)
            if desc is None:
                block += how.pack(numbers[name])
            else:
                if not desc._fixed:
                    self.fields.append((len(block), how, desc, desc.dtype in _FLOATS))
                block += desc._packed(desc._value, how)
        self.fixed = bytes(block)
        """The block with the numbers of the call that it was made for."""
        self.in_memory: bool = not source.pushed
        """Whether it is in memory, because push constants are too small for it."""

    def of(self, given: Sequence[Any]) -> bytes:
        """The block, in std430, for these arguments; nothing of one in memory that is the same in all calls.
        Raises struct.error for a number that does not fit.
        """
        if not self.fields:
            return b"" if self.in_memory else self.fixed
        block = bytearray(self.fixed)
        for offset, how, desc, plain in self.fields:
            value = desc._of(given)
            if plain and type(value) is float:
                try:
                    how.pack_into(block, offset, value)
                    continue
                except OverflowError:
                    pass  # beyond float32
            packed = desc._packed(value, how)
            block[offset : offset + len(packed)] = packed
        return bytes(block)


def numbers_of(program: Program, selection: FunctionSelection) -> Mapping[str, int]:
    """The numbers that kernels get by name: those of the selection, and the sizes of scratch memory, which
    kernels do not compute themselves, because uint wraps.

    Raises InvalidArgumentError for a size that is negative or passes what kernels count with.
    """
    numbers = selection._numbers()
    if not program.scratch:
        return numbers
    found = dict(numbers)
    for name, size, _ in program.scratch:
        count = _evaluated(size, numbers, f"{program.name}: {name}")
        if not 0 <= count <= _MOST_ELEMENTS:
            raise InvalidArgumentError(
                f"{program.name}: {name} has {count} elements; "
                + ("it cannot be negative" if count < 0 else "generated kernels count elements with 32 bits")
            )
        found[f"{name}_size"] = count
    return found


def scratch_of(
    program: Program, numbers: Mapping[str, int], manager: Manager
) -> Iterator[tuple[str, Tensor]]:
    """Scratch memory of a program, by name. All operations of a Manager share it."""
    if not program.scratch:
        return
    parts = parts_of(manager, _scratch_sizes(program, numbers))
    for (name, _, _), tensor in zip(program.scratch, parts, strict=True):
        yield name, tensor


def _scratch_sizes(program: Program, numbers: Mapping[str, int]) -> list[tuple[int, np.dtype[Any]]]:
    return [(max(whole_words(numbers[f"{name}_size"]), 4), dtype) for name, _, dtype in program.scratch]


def scratch_bytes(program: Program, numbers: Mapping[str, int]) -> int:
    """The bytes of its scratch memory."""
    return bytes_of_parts(_scratch_sizes(program, numbers))


def groups_of(step: Step, numbers: Mapping[str, int]) -> tuple[int, int, int]:
    """The workgroups of a dispatch."""
    x, y, z = grid = _grid_of(step, numbers)
    if min(grid) < 0:
        raise InvalidArgumentError(f"{step.module.name}: the grid is {grid}; it cannot be negative")
    i, j, k = step.local_size
    return -(-x // i), -(-y // j), -(-z // k)


def check_indirect(program: Program, selection: FunctionSelection) -> None:
    """Raises InvalidArgumentError for an argument that is too small for numbers of workgroups."""
    if all(step.indirect is None for step in program.steps):
        return
    sizes = {tensor.name: tensor.size for tensor in selection.tensors}
    for step in program.steps:
        if step.indirect is None or step.indirect.tensor not in sizes:
            continue
        name, offset = step.indirect
        if sizes[name] < offset + 3:
            raise InvalidArgumentError(
                f"{program.name}: {name} has {sizes[name]} elements; {step.module.name} reads numbers of "
                f"workgroups in x, y and z there, from element {offset} on"
            )


def check_numbers(program: Program, selection: FunctionSelection) -> None:
    """Raises InvalidArgumentError for a tensor with 2**32 elements or more, and for results of several sizes
    with elements that are computed together.
    """
    for names in program.of_one_size:
        sizes = {each.name: each.size for each in selection.results if each.name in names}
        if len(set(sizes.values())) > 1:
            raise InvalidArgumentError(
                f"{program.name}: yield_results computes results of one size; they have "
                f"{', '.join(f'{size} ({name})' for name, size in sizes.items())} elements. Store them by "
                "kb.emit"
            )
    for tensor in selection.tensors:
        if tensor.size > _MOST_ELEMENTS:
            raise InvalidArgumentError(
                f"{program.name}: {tensor.name} has {tensor.size} elements; generated kernels count elements "
                "with 32 bits"
            )


def _evaluated(size: IntOrSize, numbers: Mapping[str, int], what: str) -> int:
    if type(size) is int:
        return size
    try:
        return evaluate(size, numbers)
    except ZeroDivisionError:
        zeros = sorted(n for n in getattr(size, "uses", ()) if numbers[n] == 0)
        raise InvalidArgumentError(
            f"{what} is {size}, which divides by zero: {', '.join(zeros) or 'a divisor'} is 0 in this call"
        ) from None


def _grid_of(step: Step, numbers: Mapping[str, int]) -> tuple[int, int, int]:
    what = f"{step.module.name}: the grid"
    x, y, z = step.grid
    return _evaluated(x, numbers, what), _evaluated(y, numbers, what), _evaluated(z, numbers, what)
