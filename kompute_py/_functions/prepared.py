"""What the native table of prepared calls knows of a function: its parameters, and the forms of its calls."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .. import _native
from .._custom.arguments import plain_types
from .._memory.memory import seen_by_others
from .._memory.stand_ins import made_natively
from .._memory.tensor import Tensor
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
    return _native.CallForm(
        program=form.line,
        slots=[(place, None, 0) for place in (*form.slots, *new)] + [(-1, own, 0) for own in form.own],
        results=[(value, None, None) for value in results],
        several=several,
        push=form.push or [],
        pack=functools.partial(packed, form.blocks) if form.push is None else None,
        after=manager._watch,
        **made_natively(form.fresh, manager),
    )
