"""The memory of entries of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._memory.needs import MemoryNeeds, Plan
from . import content as c


def needs_of(files: Mapping[str, bytes], parts: Iterable[c.Part]) -> MemoryNeeds:
    """The needs of the recordings of parts, and the code of all. `files` are those of the program."""
    plan = Plan()
    for part in parts:
        for number, _ in part.special():
            plan.runs(files[part.shaders[number].file])
        recordings = [each for entry in part.entries for each in entry.recordings]
        inputs, outputs = (
            {part.values[number].block for each in recordings for number in numbers(each)}
            for numbers in (lambda each: each.inputs, lambda each: each.outputs)
        )
        for number in inputs | outputs | {place.block for step in part.steps for place in c.ranges_of(step)}:
            block = part.blocks[number]
            (plan.gives if number in inputs | outputs else plan.keeps)(block, block.nbytes)
            if number in outputs:
                plan.writes(block)
    return plan.needs()
