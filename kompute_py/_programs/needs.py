"""The memory of entries of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._memory.needs import MemoryNeeds, Plan
from . import content as c


def needs_of(files: Mapping[str, bytes], entries: Iterable[tuple[c.Part, c.Entry]]) -> MemoryNeeds:
    """The needs of the recordings of entries, and the code of all. `files` are those of the program."""
    plan = Plan()
    inputs: dict[int, c.Block] = {}
    outputs: dict[int, c.Block] = {}
    others: dict[int, c.Block] = {}
    for part, entry in entries:
        if entry.kernel is not None:
            plan.runs(files[part.shaders[entry.kernel.shader].file])
        for recording in entry.recordings:
            for numbers, found in (
                ({part.values[each].block for each in recording.inputs}, inputs),
                ({part.values[each].block for each in recording.outputs}, outputs),
                (c.blocks_of(recording.steps), others),
            ):
                found.update({id(part.blocks[each]): part.blocks[each] for each in numbers})
            for step in c.every(recording.steps):
                if step.shader is not None:
                    plan.runs(files[part.shaders[step.shader].file])
    for key, block in {**others, **inputs, **outputs}.items():
        if key in inputs or key in outputs:
            plan.gives(block, block.nbytes)
        else:
            plan.keeps(block, block.nbytes)
        if key in outputs:
            plan.writes(block)
    return plan.needs()
