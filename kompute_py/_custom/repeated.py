"""Calls that are made again with exactly the same arguments."""

from __future__ import annotations

import math
import random
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._memory.tensor import Tensor
from .._recording.streams import stream_of
from .forms import Form

if TYPE_CHECKING:
    from .._manager.manager import Manager

_MOST_REPEATED = 128
"""Calls with the same tensors that an operation keeps recorded."""

CallArguments = tuple[tuple[Any, ...], dict[str, Any]]
Place = tuple["int | str", "int | None"]
"""The position or name of an argument of a call, and the position in it if it is a tuple."""


class Repeated(NamedTuple):
    """A call that was made twice with the same tensors."""

    evaluate: Callable[[], None]
    stream: _native.Stream
    """The recording that `evaluate` runs."""
    places: tuple[Place, ...]
    """Where its results stand among its arguments."""
    references: tuple[weakref.ref[Any], ...]
    busy: threading.Lock
    """Held while it runs."""
    form: int
    """The id of the form that it came from, with which it ends: its memory counts there."""


class RepeatedCalls:
    """Calls with exactly the same arguments as before, and those that were made once."""

    def __init__(self) -> None:
        self.calls: dict[Any, Repeated] = {}
        self._once: set[Any] = set()

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
        if form.fresh or form.copied or form.spreads or form.line is None or not form.kept:
            return
        if exactly not in self._once:
            if len(self._once) >= 4 * _MOST_REPEATED:
                self._once.clear()
            self._once.add(exactly)
            return
        if not any(isinstance(each, Tensor) for each in given):
            return  # of numbers only: its results are new, and the current Manager may be another one
        if len(self.calls) >= _MOST_REPEATED:
            if random.random() > 1 / 64:
                return  # more calls in turn than are kept
            self.calls.pop(random.choice(list(self.calls)), None)
        if any(block.table is not None and block.fields for block in form.blocks):
            return  # its numbers are in memory that other calls change
        places = _result_places([given[number] for _, number in form.results], *call)
        if places is None:
            return
        stream = stream_of(manager, form.operations(given, (), push))
        this = weakref.ref(self)

        def forget(_: Any) -> None:
            calls = this()
            if calls is not None:
                calls.calls.pop(exactly, None)
                calls._once.discard(exactly)

        references = tuple(weakref.ref(each, forget) for each in given if isinstance(each, Tensor))
        watch = manager._watch

        def evaluate_and_report() -> None:
            stream.eval()
            if watch is not None:
                watch()

        evaluate = stream.eval if watch is None else evaluate_and_report
        self.calls[exactly] = Repeated(evaluate, stream, places, references, threading.Lock(), id(form))


def _result_places(
    results: list[Any], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Place, ...] | None:
    """Where the results stand among the arguments; None if one does not."""
    places: list[Place] = []
    for result in results:
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


def at_place(place: Place, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    where, number = place
    found = args[where] if isinstance(where, int) else named[where]
    return found if number is None else found[number]
