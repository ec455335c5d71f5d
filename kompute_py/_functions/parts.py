"""Parts of tensors that are not dense, as memory that kernels write.

Kernels write dense memory. Another kernel then copies its elements to the part, one invocation for each. It
moves bits, as unsigned ints of 1, 2 or 4 bytes, and is written for the number of axes alone, so that views of
one kind share it: steps and lengths are run-time values. It binds the bytes that the part reaches over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import InvalidArgumentError
from .._custom.builder import FunctionBuilder
from .._custom.declaration import parse
from .._custom.expressions import two_axes
from .._custom.program import Program, compile_program
from .._custom.selection import FunctionSelection
from .._custom.specs import TensorSpec
from .._memory.reach import Reach, whole_words

_MOST_PROGRAMS = 64
_UINT: np.dtype[Any] = np.dtype(np.uint32)
_DECLARED = parse("copy_part(Tensor source, Tensor(a!) target, int axes, bool spreads) -> ()")


class _CopyPart:
    """Copies dense memory to a part, its reach in bytes, or the other way."""

    single_dispatch = True
    reads_parts = makes_images = in_place = takes_structs = False

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        spreads, axes = ksel.attribute("spreads"), ksel.attribute("axes")
        kb.groups(*two_axes(kb.ceil_div(kb.arg_value("source" if spreads else "target").size, 64)))
        kb.emit("uint i = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 64u;")
        kb.emit("if (i >= count) return;")
        kb.emit("uint rest = i, place = first;")
        for axis in reversed(range(axes)):
            kb.emit(f"place += rest % length{axis} * step{axis}; rest /= length{axis};")
        source, target = ("i", "place") if spreads else ("place", "i")
        kb.emit(f"target_store({target}, source_load({source}));")


_COPY_PART = _CopyPart()
_programs: dict[Any, Program] = {}


def copying(
    who: str, reach: Reach, spreads: bool, device: Any, features: frozenset[str], setting: Any
) -> tuple[Program, FunctionSelection]:
    """The kernel that copies dense memory to a part of this reach, or the other way.

    Raises InvalidArgumentError, beginning with `who`, for a part that reaches too far.
    """
    if reach.units >= 2**32:
        raise InvalidArgumentError(
            f"{who}: a part to write reaches over {reach.units} elements of {reach.unit}; kernels count "
            "elements with 32 bits"
        )
    # Dense memory is a number of whole words, and may be longer than the part.
    specs = [
        TensorSpec._of((whole_words(reach.moved),), reach.unit),
        TensorSpec._of((reach.units,), reach.unit),
    ]
    values: list[Any] = [*(specs if spreads else reversed(specs)), len(reach.axes), spreads]
    ksel = FunctionSelection(_COPY_PART, _DECLARED, values, device, features)
    ksel.arg_tensor("source")
    ksel.arg_tensor("target", inplace_tied=True)
    ksel.attr_int("axes")
    ksel.attr_bool("spreads")
    ksel.value("count", reach.moved, _UINT)
    ksel.value("first", reach.first, _UINT)
    for axis, (length, step) in enumerate(reach.axes):
        ksel.value(f"length{axis}", length, _UINT)
        ksel.value(f"step{axis}", step % 2**32, _UINT)  # uint wraps, so a step back is a long one on
    ksel._finish()
    key = ksel.spec_key, features
    program = _programs.get(key)
    if program is None:
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()
        program = _programs[key] = compile_program(_COPY_PART, ksel, setting)
    return program._replace(name=who), ksel
