"""The memory that a call of a function will need, by the rules with which `forming` takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._custom.program import Block, Program, numbers_of, scratch_bytes
from .._custom.selection import KernelSelection
from .._custom.specs import TensorSpec
from .._formulas.glsl_elements import element_of
from .._memory.image import Image
from .._memory.lending import capacity
from .._memory.needs import MemoryNeeds
from .._memory.reach import reach_of, whole_words
from .._memory.stand_ins import Spread
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .forming import host_bytes, places_by_name
from .given import flat

if TYPE_CHECKING:
    from .forms import Facts

_ON_DEVICE = (Tensor, StridedView, Image, TensorSpec)


def needs_of(
    program: Program, selection: KernelSelection, facts: Facts, values: Sequence[Any], outs: Sequence[Any]
) -> MemoryNeeds:
    """The needs of a call with these arguments and this memory of results."""
    given = flat((*values, *outs))
    places = places_by_name(selection, values, outs)
    written = {each.name for each in (*selection.results, *selection.inplace_tied_arg_descs)}
    on_device = any(isinstance(each, _ON_DEVICE) for each in given)
    numbers = numbers_of(program, selection)
    nbytes = {True: 0, False: 0}  # of what is written, and of what is only read
    scratch = scratch_bytes(program, numbers) + program.table_bytes
    seen: set[int] = set()
    for arg in selection.tensors:
        name, dense = arg.name, whole_words(arg.size) * arg.dtype.itemsize
        value = given[places[name]] if name in places else None
        if isinstance(value, np.ndarray) or (value is None and not on_device):
            nbytes[name in written] += capacity(host_bytes(arg, facts.features))
            continue
        own = arg.size * arg.dtype.itemsize if value is None else value.nbytes
        memory = getattr(value, "_native", value)
        if value is None or id(memory) not in seen:
            seen.add(id(memory))
            nbytes[name in written] += own
        words = element_of(arg.dtype, facts.features).words
        if isinstance(value, StridedView):
            if name in written:
                scratch += capacity(Spread(0, reach_of(value, facts.alignment), dense, None, None).nbytes)
            elif not selection.op.reads_parts:
                scratch += capacity(host_bytes(arg, facts.features))
        elif isinstance(value, Image) or (
            own and ((own % 4 and words) or (isinstance(value, Tensor) and value.vk_offset % facts.alignment))
        ):
            scratch += capacity(dense)
    for step in program.steps:
        block = Block(step.source, numbers, selection)
        scratch += capacity(len(block.fixed)) if block.in_memory else 0
    modules = {id(step.module): step.module for step in program.steps}
    code = sum(len(each.to_spirv()) for each in modules.values())
    return MemoryNeeds(code, nbytes[False], nbytes[True], scratch)
