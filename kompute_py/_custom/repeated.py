"""Calls that are made again with exactly the same arguments."""

from __future__ import annotations

import math
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._memory.memory import DEVICE
from .._memory.tensor import Tensor, buffer_tensor
from .._recording.streams import stream_of
from .forms import FRESH, Form

if TYPE_CHECKING:
    from .._manager.manager import Manager

_MOST_REPEATED = 128
"""Calls with the same tensors that an operation keeps recorded."""

CallArguments = tuple[tuple[Any, ...], dict[str, Any]]
Place = tuple["int | str | None", "int | None"]
"""The position or name of an argument of a call, and the position in it if it is a tuple. A new result has
None and its number.
"""


class Repeated(NamedTuple):
    """A call that was made twice with the same tensors."""

    evaluate: Callable[[], Sequence[Tensor] | None]
    """Runs it, waits, and returns its new results."""
    stream: _native.Stream | None
    """The recording that `evaluate` runs; None if it makes new results."""
    places: tuple[Place, ...]
    """Where its results stand among its arguments and the new results."""
    references: tuple[weakref.ref[Any], ...]
    busy: threading.Lock
    """Held while it runs."""
    form: int
    """The id of the form that it came from, with which it ends: its memory counts there."""


class RepeatedCalls:
    """Calls with exactly the same arguments as before, and those that were made once."""

    def __init__(self) -> None:
        self.calls: dict[Any, Repeated] = {}
        self._once: dict[Any, weakref.ref[Tensor]] = {}
        """With the first tensor of each, because another one may have got its id."""

    def clear(self) -> None:
        """Forgets all."""
        self.calls.clear()
        self._once.clear()

    def end_with(self, form: Form) -> None:
        """Forgets the calls that came from a form."""
        for key, each in list(self.calls.items()):
            if each.form == id(form):
                self.calls.pop(key, None)

    def note(
        self,
        exactly: Any,
        form: Form,
        push: list[bytes],
        given: list[Any],
        manager: Manager,
        call: CallArguments,
    ) -> None:
        """Prepares a call that is made for the second time with the same tensors: from then on, not even its
        arguments are looked at.
        """
        if form.copied or form.spreads or form.line is None or not form.kept:
            return
        for first in given:
            if isinstance(first, Tensor):
                break
        else:
            return  # of numbers only: its results are new, and the current Manager may be another one
        seen = weakref.ref(first)
        if self._once.get(exactly) is not seen:
            if len(self._once) >= 4 * _MOST_REPEATED:
                self._once.clear()
            self._once[exactly] = seen
            return
        if len(self.calls) >= _MOST_REPEATED:
            if random.random() > 1 / 64:
                return  # more calls in turn than are kept
            self.calls.pop(random.choice(list(self.calls)), None)
        if any(block.table is not None and block.fields for block in form.blocks):
            return  # its numbers are in memory that other calls change
        places = _result_places(form, given, *call)
        if places is None:
            return
        evaluate: Callable[[], Sequence[Tensor] | None]
        if form.fresh:
            evaluate, stream = _new_results(form, given, manager, push), None
        else:
            stream = stream_of(manager, form.operations(given, (), push))
            evaluate = stream.eval if manager._watch is None else _watched(stream.eval, manager._watch)
        this = weakref.ref(self)

        def forget(_: Any) -> None:
            calls = this()
            if calls is not None:
                calls.calls.pop(exactly, None)
                calls._once.pop(exactly, None)

        references = tuple(weakref.ref(each, forget) for each in given if isinstance(each, Tensor))
        self.calls[exactly] = Repeated(evaluate, stream, places, references, threading.Lock(), id(form))


def _watched(evaluate: Callable[[], None], watch: Callable[[], None]) -> Callable[[], None]:
    def evaluate_and_report() -> None:
        evaluate()
        watch()

    return evaluate_and_report


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
    run = _native.RepeatedLine(form.line, memory, len(form.slots), sizes, push, form.before, form.after).run

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


def _result_places(
    form: Form, given: Sequence[Any], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Place, ...] | None:
    """Where the results stand among the arguments and the new results; None if one does not."""
    places: list[Place] = []
    for what, place in form.results:
        if what == FRESH:
            places.append((None, place))
            continue
        result = given[place]
        at = next((n for n, each in enumerate(args) if each is result), None)
        name = next((n for n, each in named.items() if each is result), None)
        if at is None and name is None:
            several = named["out"]
            if not isinstance(several, tuple):
                return None
            places.append(("out", next(n for n, each in enumerate(several) if each is result)))
        else:
            places.append((str(name) if at is None else at, None))
    return tuple(places)


def exactly_key(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A key for a call with Tensors, numbers and texts; None for any other. It holds while the tensors
    live.
    """
    key: list[Any] = []
    for each in args:
        kind = type(each)
        if kind is Tensor:
            key.append(id(each))
        elif kind is int or kind is str or (kind is float and each) or each is None or kind is bool:
            key.append((kind, each))
        else:
            plain = _plain_key(each)
            if plain is None:
                return None
            key.append(plain)
    for name, each in named.items():
        kind = type(each)
        if name == "donate":
            return None
        if kind is Tensor:
            key += (name, id(each))
        elif kind is int or kind is str or (kind is float and each) or each is None or kind is bool:
            key += (name, (kind, each))
        elif kind is tuple and name == "out" and all(type(one) is Tensor for one in each):
            key += (name, tuple(map(id, each)))
        else:
            plain = _plain_key(each)
            if plain is None:
                return None
            key += (name, plain)
    return tuple(key)


def _plain_key(value: Any) -> Any:
    """A key for a zero, a number of NumPy, or a tuple of ints; None for anything else."""
    kind = type(value)
    if kind is float:
        return kind, value, math.copysign(1.0, value)  # 0.0 equals -0.0
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if kind is tuple and all(type(each) is int for each in value):
        return kind, value
    return None


def at_place(
    place: Place, args: tuple[Any, ...], named: dict[str, Any], fresh: Sequence[Tensor] | None = None
) -> Any:
    """What stands there. `fresh` are the new results."""
    where, number = place
    if where is None:
        assert fresh is not None and number is not None
        return fresh[number]
    found = args[where] if isinstance(where, int) else named[where]
    return found if number is None else found[number]
