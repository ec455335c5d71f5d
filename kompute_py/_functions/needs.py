"""The memory that a call of a function will need, by the rules with which `forming` takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._custom.program import Block, Program, numbers_of, scratch_bytes
from .._custom.selection import FunctionSelection
from .._formulas.glsl_elements import element_of
from .._memory.image import Image
from .._memory.needs import Imagined, Plan
from .._memory.reach import reach_of, whole_words
from .._memory.stand_ins import Spread
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .forming import host_bytes, memory_type_of, places_by_name
from .given import flat
from .pictures import first_image, picture_like

if TYPE_CHECKING:
    from .forms import Calls


def plan_call(
    plan: Plan,
    program: Program,
    selection: FunctionSelection,
    calls: Calls,
    values: Sequence[Any],
    outs: Sequence[Any],
) -> list[Any]:
    """Tells the plan what a call with these arguments and this memory of results takes. Returns its
    results."""
    facts = calls.facts
    given = flat((*values, *outs))
    places = places_by_name(selection, values, outs)
    written = {each.name for each in (*selection.results, *selection.inplace_tied_arg_descs)}
    arrays = any(each.is_tensor for each in selection._declaration.parameters) and not any(
        isinstance(each, (Tensor, StridedView, Image)) and not getattr(each, "is_lent", False)
        for each in given
    )
    kind = None if arrays else memory_type_of(given)
    image = first_image(given) if selection.op.makes_images else None
    found = {name: given[place] for name, place in places.items()}
    lent = 0

    def lend(nbytes: int) -> None:
        nonlocal lent
        plan.lends(calls, lent, nbytes)
        lent += 1

    for arg in selection.tensors:
        name, dense = arg.name, whole_words(arg.size) * arg.dtype.itemsize
        value = found.get(name)
        if value is None:
            value = found[name] = plan.makes(arg.shape, arg.dtype, kind, arrays)
            if image is not None and picture_like(image, arg.shape, arg.dtype) is not None:
                lend(dense)
        elif name in written:
            plan.writes(value)
        if isinstance(value, np.ndarray) or getattr(value, "is_lent", False):
            lend(host_bytes(arg, facts.features))
        elif isinstance(value, StridedView):
            if name in written:
                reach = reach_of(value, facts.alignment)
                lend(Spread(0, arg.shape, arg.dtype, reach, dense, None, None).nbytes)
            elif not selection.op.reads_parts:
                lend(host_bytes(arg, facts.features))
        elif isinstance(value, Image) or (
            value.nbytes
            and (
                value._native.vk_offset % facts.alignment
                or (value.nbytes % 4 and element_of(arg.dtype, facts.features).words)
            )
        ):
            lend(dense)
        if isinstance(value, Tensor) and not isinstance(value, Imagined):  # that a body has made
            plan.keeps(value, value.nbytes)
    numbers = numbers_of(program, selection)
    plan.pools(scratch_bytes(program, numbers))
    plan.keeps(program, program.table_bytes)
    for step in program.steps:
        block = Block(step.source, numbers, selection)
        if block.in_memory:
            lend(len(block.fixed))
        plan.runs(step.module.to_spirv())
    return [found[each.name] for each in selection.results]
