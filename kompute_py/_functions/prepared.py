"""Calls that are made again with exactly the same arguments: the native table of prepared calls runs them."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _native
from .._memory.memory import DEVICE
from .._memory.tensor import Tensor, buffer_tensor
from .._sync.ordered import stream_of
from .forms import FRESH, Form

if TYPE_CHECKING:
    from .._manager.manager import Manager

_MOST_REPEATED = 128
"""Calls with the same tensors that a function keeps recorded."""


def table_for(name: str, parameters: Sequence[str]) -> _native.CallTable:
    """An empty table for calls of a function."""
    return _native.CallTable(
        tensor_type=Tensor,
        bindings=[*parameters, "out"],
        counts=[],
        constants=[],
        manager=None,
        fields=[],
        push_size=0,
        pack=None,
        parameters=0,
        missing=None,
        name=name,
        most_entries=_MOST_REPEATED,
        values=True,
    )


def teach(
    table: _native.CallTable,
    form: Form,
    push: list[bytes],
    given: list[Any],
    manager: Manager,
    call: tuple[tuple[Any, ...], dict[str, Any]],
    single: bool,
    submits: bool = False,
) -> None:
    """Prepares a call that is made for the second time with the same tensors: from then on, not even its
    arguments are looked at. Calls that are submitted have recordings of their own, because others may wait
    for theirs.
    """
    if form.stand_ins or form.line is None or not form.kept:
        return
    for first in given:
        if isinstance(first, Tensor):
            break
    else:
        return  # of numbers only: its results are new, and the current Manager may be another one
    if not table.repeats(*call, submits, first):
        return
    results = _results(form, given, (*call[0], *call[1].values()))
    if results is None:
        return
    stream: _native.Stream | None = None
    make: Any = (threading.Lock(), weakref.ref(manager)) if submits else None
    after = manager._watch
    if form.fresh:
        make, after = _new_results(form, given, manager, push), None
    else:
        stream = stream_of(manager, form.operations(manager, given, (), push))
    tensors = [each for each in given if isinstance(each, Tensor)]
    table.repeat(*call, submits, stream, make, after, results, single, tensors, form)


def _new_results(
    form: Form, given: Sequence[Any], manager: Manager, push: list[bytes]
) -> Callable[[], Sequence[Tensor]]:
    """What runs a call with new results. They have new memory each time."""
    assert form.line is not None
    facts = [
        (number, each.shape, each.dtype, math.prod(each.shape), each.memory_type or DEVICE)
        for number, each in enumerate(form.fresh)
    ]
    sizes = [(count * dtype.itemsize, int(where)) for _, _, dtype, count, where in facts]
    manager_of, watch, notes = (
        weakref.ref(manager),
        manager._watch,
        any(each[-1] is not DEVICE for each in facts),
    )
    memory = form.memory(given, ())
    run = form.line.repeated(memory, len(form.slots), sizes, push)

    def evaluate() -> Sequence[Tensor]:
        owner = manager_of()
        assert owner is not None  # the tensors among the arguments have it
        natives = run(owner._native)
        made = []
        for number, shape, dtype, count, where in facts:
            made.append(buffer_tensor(natives[number], owner, shape, dtype, count, where))
        if notes or watch is not None:
            owner._after(where)
        return made

    return evaluate


def _results(form: Form, given: Sequence[Any], values: tuple[Any, ...]) -> list[tuple[int, int]] | None:
    """Where the results stand, as `CallTable.repeat` takes it; None if one is not among the values."""
    found = []
    for what, number in form.results:
        if what == FRESH:
            found.append((-1, number))
            continue
        place = next(
            (
                (at, item)
                for at, value in enumerate(values)
                for item, each in enumerate(value if type(value) is tuple else (value,))
                if each is given[number]
            ),
            None,
        )
        if place is None:
            return None
        found.append(place if type(values[place[0]]) is tuple else (place[0], -1))
    return found
