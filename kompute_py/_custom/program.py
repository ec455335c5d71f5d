"""The kernels that an operation's generator wrote: compiled, and made ready for certain tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import Diagnostic, InvalidArgumentError, ShaderCompileError
from .._recording.operations import OpAlgoDispatch, OpBase, OpCopy
from .._shaders.module import ShaderModule
from .builder import VALUES, Dispatch, KernelBuilder, Source, source_of
from .expressions import IntOrSize, evaluate
from .selection import KernelSelection, ValueArg
from .specs import element_of

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._memory.tensor import Tensor

_MOST_ELEMENTS = 2**32 - 1


class Step(NamedTuple):
    """One compiled dispatch."""

    module: ShaderModule
    source: Source
    grid: tuple[IntOrSize, IntOrSize, IntOrSize]


class Program(NamedTuple):
    """The compiled dispatches of one specialization."""

    name: str
    steps: tuple[Step, ...]
    scratch: tuple[tuple[str, IntOrSize, np.dtype[Any]], ...]
    """(name, number of elements, dtype) of the memory that the dispatches share."""


def compile_program(op: Any, selection: KernelSelection, setting: Any) -> Program:
    """Generates and compiles the kernels of a selection.

    Raises what `generate` raises, InvalidArgumentError for a missing grid or result, and ShaderCompileError,
    which names the generator's lines.
    """
    builder = KernelBuilder(selection, op.single_dispatch)
    op.generate(selection, builder)
    name = selection._who()
    dispatches = builder._finish()
    steps = []
    for number, dispatch in enumerate(dispatches):
        title = f"{name}.{dispatch.name or number}" if len(dispatches) > 1 else dispatch.name or name
        steps.append(_compiled(builder, dispatch, title, setting))
    scratch = tuple((value.name, size, value.dtype) for value, size in builder._scratch.values())
    return Program(name, tuple(steps), scratch)


def _compiled(builder: KernelBuilder, dispatch: Dispatch, title: str, setting: Any) -> Step:
    source = source_of(builder, dispatch)
    try:
        module = ShaderModule(source.text, name=title, language="glsl", _setting=setting)
    except ShaderCompileError as error:
        raise _at_the_generator(error, source, title) from None
    assert dispatch.grid is not None
    return Step(module, source, dispatch.grid)


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


def parameter_bytes(source: Source, numbers: Mapping[str, int], values: Mapping[str, Any]) -> bytes:
    """The block of run-time values, in std430."""
    packed = bytearray()
    for name, kind in source.parameters:
        value = values[name] if name in values else numbers[name]
        if kind == "vec2":
            packed += VALUES[kind].pack(value.real, value.imag)
        elif kind == "float":
            try:
                packed += VALUES[kind].pack(value)
            except OverflowError:
                packed += VALUES[kind].pack(math.copysign(math.inf, value))
        else:
            packed += VALUES[kind].pack(value)
    return bytes(packed)


class Ready(NamedTuple):
    """Dispatches over certain tensors, to be recorded in this order."""

    operations: tuple[OpBase, ...]
    kept: tuple[Tensor, ...]
    """Scratch memory and blocks of run-time values, which the operations use."""


def prepare(
    program: Program, selection: KernelSelection, manager: Manager, memory: Mapping[str, Tensor]
) -> Ready:
    """The dispatches of `program` for the tensors of `memory`, by their names in the kernels.

    Raises InvalidArgumentError for a tensor with 2**32 elements or more, and the errors of `kp.Algorithm`.
    """
    numbers = selection._numbers()
    values = {d.name: d._rounded for d in selection.arg_descs if isinstance(d, ValueArg)}
    for name, count in numbers.items():
        if count > _MOST_ELEMENTS and name not in values:
            raise InvalidArgumentError(
                f"{program.name}: {name} is {count}; generated kernels count elements with 32 bits"
            )
    used: dict[str, Tensor] = dict(memory)
    kept: list[Tensor] = []
    if selection.results and not any(result.size for result in selection.results):
        return Ready((), ())  # no element to compute; generators need not think of this
    before: list[OpBase] = []
    after: list[OpBase] = []
    features = selection._features
    alignment = manager.get_device_properties()["limits"]["minStorageBufferOffsetAlignment"]
    written = {each.name for each in (*selection.results, *selection.inplace_tied_arg_descs)}
    for name, tensor in memory.items():
        if not tensor.size():
            # Vulkan binds no empty buffer; kernels know the size from elsewhere.
            used[name] = manager.empty(4, tensor.dtype, "storage")
            kept.append(used[name])
        elif tensor.vk_offset % alignment or (tensor.nbytes % 4 and element_of(tensor.dtype, features).words):
            # Shaders cannot use a part that begins there or ends within a word: a copy takes its place.
            whole = manager.empty(-(-tensor.size() // 4) * 4, tensor.dtype, "storage")
            copy, flat = whole[: tensor.size()], tensor.reshape(-1)
            before.append(OpCopy([flat, copy]))
            if name in written:
                after.append(OpCopy([copy, flat]))
            used[name] = whole
            kept.append(whole)
    for name, size, dtype in program.scratch:
        count = _evaluated(size, numbers, f"{program.name}: {name}")
        used[name] = manager.empty(max(-(-count // 4) * 4, 4), dtype, "storage")
        kept.append(used[name])
    operations: list[OpBase] = before
    for step in program.steps:
        grid = _grid_of(step, numbers)
        if min(grid) < 0:
            raise InvalidArgumentError(f"{step.module.name}: the grid is {grid}; it cannot be negative")
        if 0 in grid:
            continue
        bound: list[Any] = [_as_bound(used[name], name in step.source.words) for name in step.source.tensors]
        block = parameter_bytes(step.source, numbers, values)
        if not step.source.pushed:
            table = manager.tensor_t(np.frombuffer(block, np.uint32))
            kept.append(table)
            bound.append(table)
            block = b""
        algorithm = manager.algorithm(bound, step.module, (1, 1, 1), (), block)
        algorithm.name = step.module.name
        operations.append(OpAlgoDispatch(algorithm, grid=grid))
    return Ready((*operations, *after), tuple(kept))


def _as_bound(tensor: Tensor, words: bool) -> Tensor:
    if words:
        return tensor.reshape(-1).view(np.uint32)
    return tensor.view(np.uint8) if tensor.dtype == np.bool_ else tensor  # a bool has one byte in both


def _evaluated(size: IntOrSize, numbers: Mapping[str, int], what: str) -> int:
    try:
        return evaluate(size, numbers)
    except ZeroDivisionError:
        zeros = sorted(n for n in getattr(size, "uses", ()) if numbers[n] == 0)
        raise InvalidArgumentError(
            f"{what} is {size}, which divides by zero: {', '.join(zeros)} is 0 in this call"
        ) from None


def _grid_of(step: Step, numbers: Mapping[str, int]) -> tuple[int, int, int]:
    what = f"{step.module.name}: the grid"
    x, y, z = (_evaluated(size, numbers, what) for size in step.grid)
    return x, y, z


def as_files(program: Program, selection: KernelSelection) -> tuple[dict[str, Any], Sequence[bytes]]:
    """All that a program without this package needs to run it for these shapes: a description, and a SPIR-V
    module for each dispatch.
    """
    numbers = selection._numbers()
    values = {d.name: d._rounded for d in selection.arg_descs if isinstance(d, ValueArg)}
    dispatches, modules = [], []
    for number, step in enumerate(program.steps):
        grid = _grid_of(step, numbers)
        local = step.module.signature.local_size
        block = parameter_bytes(step.source, numbers, values)
        dispatches.append(
            {
                "module": f"{program.name}-{number}.spv",
                "entry": "main",
                "bindings": step.source.tensors + ([] if step.source.pushed else ["parameters"]),
                "groups": [-(-n // size) for n, size in zip(grid, local, strict=True)],
                "local_size": list(local),
                "parameters": [
                    {"name": name, "type": kind, "offset": offset}
                    for (name, kind), offset in zip(
                        step.source.parameters,
                        itertools.accumulate(
                            (VALUES[kind].size for _, kind in step.source.parameters[:-1]), initial=0
                        ),
                        strict=False,
                    )
                ],
                "parameters_in": "push constants" if step.source.pushed else "buffer",
                "parameter_bytes": block.hex(),
            }
        )
        modules.append(step.module.to_spirv())
    tensors = [
        {
            "name": t.name,
            "shape": list(t.shape),
            "dtype": t.dtype.name,
            "bound_as": "uint32" if any(t.name in s.source.words for s in program.steps) else t.dtype.name,
            "result": t.is_result,
        }
        for t in selection._tensors()
    ]
    scratch = [
        {"name": name, "elements": _evaluated(size, numbers, name), "dtype": dtype.name}
        for name, size, dtype in program.scratch
    ]
    return {
        "operation": program.name,
        "spec_key": selection.spec_key,
        "tensors": tensors,
        "scratch": scratch,
        "dispatches": dispatches,
    }, modules
