"""An operation as files, for programs without Python."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, kind_of, shown
from .._custom.builder import Indirect
from .._custom.program import Block, Program, check_numbers, groups_of, numbers_of
from .._custom.selection import KernelSelection


def write_files(path: str | os.PathLike[str], program: Program, selection: KernelSelection) -> Path:
    """Writes a description of a program for certain shapes, and its modules, into a folder. Returns the path
    of the description.

    Raises InvalidArgumentError if the path is a file's, ArgumentTypeError if it is not a path,
    UnimplementedError for kernels with tables, and OSError if the files cannot be written.
    """
    description, modules = _as_files(program, selection)
    try:
        folder = Path(path)
    except TypeError:
        raise ArgumentTypeError(f"{program.name}: path is {kind_of(path)}; give a path") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InvalidArgumentError(
            f"{program.name}: aot writes into a folder; {shown(str(folder))} is a file, or is in one"
        ) from None
    for dispatch, module in zip(description["dispatches"], modules, strict=True):
        (folder / dispatch["module"]).write_bytes(module)
    target = folder / f"{program.name}.json"
    target.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return target


def _as_files(program: Program, selection: KernelSelection) -> tuple[dict[str, Any], Sequence[bytes]]:
    """All that a program without this package needs to run it for these shapes: a description, and a SPIR-V
    module for each dispatch.
    """
    if program.tables:
        raise UnimplementedError(
            f"{program.name}: its kernels read tables ({', '.join(each.name for each in program.tables)}), "
            "which files for programs without Python do not have"
        )
    check_numbers(program, selection)
    numbers = numbers_of(program, selection)
    dispatches, modules = [], []
    for number, step in enumerate(program.steps):
        block = Block(step.source, numbers, selection).fixed
        dispatches.append(
            {
                "module": f"{program.name}-{number}.spv",
                "entry": step.module.signature.entry,
                "bindings": step.source.tensors + ([] if step.source.pushed else ["parameters"]),
                "groups": None if step.indirect else list(groups_of(step, numbers)),
                "groups_in": _indirect_file(step.indirect),
                "local_size": list(step.local_size),
                "subgroup_size": step.module._subgroups[0] or None,
                "full_subgroups": step.module._subgroups[1],
                "parameters": [
                    {"name": name, "type": kind, "offset": offset}
                    for (name, kind), offset in zip(
                        step.source.parameters, step.source.offsets(), strict=True
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
        for t in selection.tensors
    ]
    scratch = [
        {"name": name, "elements": numbers[f"{name}_size"], "dtype": dtype.name}
        for name, _, dtype in program.scratch
    ]
    return {
        "operation": program.name,
        "spec_key": selection.spec_key,
        "tensors": tensors,
        "scratch": scratch,
        "dispatches": dispatches,
    }, modules


def _indirect_file(indirect: Indirect | None) -> dict[str, Any] | None:
    return None if indirect is None else {"tensor": indirect.tensor, "offset": 4 * indirect.offset}
