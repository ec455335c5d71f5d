"""What the native table of prepared calls knows of a function: its parameters, and the forms of its calls."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _native
from .._custom.arguments import plain_types
from .._memory.memory import DEVICE, seen_by_others
from .._memory.tensor import Tensor, buffer_tensor
from .._shaders.signature import MISSING
from .forms import FRESH, Form, packed
from .given import facts

if TYPE_CHECKING:
    from .._custom.declaration import Declaration
    from .._device.device import Device

_MOST_REPEATED = 512
"""Calls with the same tensors that a function keeps recorded."""


def table_for(declaration: Declaration, parts_differ: bool, manager: object) -> _native.CallTable:
    """An empty table for calls of a function. `parts_differ` is as for `facts`."""
    parameters = declaration.parameters
    return _native.CallTable.of_function(
        tensor_type=Tensor,
        manager=manager,
        missing=MISSING,
        parameters=[*(each.name for each in parameters), "out"],
        defaults=[each.left_out for each in parameters],
        plain=[list(plain_types(each)) for each in parameters],
        by_position=sum(not each.by_name for each in parameters),
        writes=any(each.alias for each in parameters),
        facts=functools.partial(facts, parts_differ),
        shared=seen_by_others,
        most_entries=_MOST_REPEATED,
    )


def native_form(form: Form, manager: Device, several: bool) -> _native.CallForm | None:
    """A form that the table can run; None for one with stand-ins, or if nothing runs. `several`: the call
    returns a tuple.
    """
    if form.stand_ins or form.line is None:
        return None
    new = [-2 - number for number in range(len(form.fresh))]
    results = [new[number] if what == FRESH else number for what, number in form.results]
    facts = [(each.shape, each.dtype, math.prod(each.shape), each.where) for each in form.fresh]
    return _native.CallForm(
        program=form.line,
        slots=[(place, None, 0) for place in (*form.slots, *new)] + [(-1, own, 0) for own in form.own],
        results=[(value, None, None) for value in results],
        several=several,
        push=form.push or [],
        pack=functools.partial(packed, form.blocks) if form.push is None else None,
        fresh=[(count * dtype.itemsize, int(where)) for _, dtype, count, where in facts],
        tensors=functools.partial(_tensors, facts, weakref.ref(manager)),
        after=manager._watch,
    )


def _tensors(facts: Sequence[Any], manager: weakref.ref[Device], natives: Sequence[Any]) -> list[Tensor]:
    """The new results of a call, in this memory."""
    owner = manager()
    assert owner is not None  # the tensors among the arguments have it
    made = []
    for number, (shape, dtype, count, where) in enumerate(facts):
        made.append(buffer_tensor(natives[number], owner, shape, dtype, count, where))
    if where is not DEVICE:
        owner._after(where)
    return made
