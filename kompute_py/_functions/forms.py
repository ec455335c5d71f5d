"""Forms: calls of a function that were prepared for certain shapes, dtypes and attributes.

A call is looked up by what its kernels, grids and results depend on, and a form runs it over whatever memory
the call has: the native `ProgramLine` binds it, records, submits, waits and lets go of it. Run-time numbers
are not in the key, unless `select` looked at them.
"""

from __future__ import annotations

import itertools
import random
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._custom.names import text_of
from .._custom.program import Block, Program
from .._device.kept import make_room
from .._memory.stand_ins import Fresh, StandIn

if TYPE_CHECKING:
    from .._manager.manager import Manager

_MOST_KEYS = 1 << 14
"""Kinds of calls that a function knows for a Manager."""

GIVEN, FRESH, HOST = range(3)  # where a result of a form comes from


class Form:
    """A prepared call. It holds no Python object that holds its Manager, and nothing of the caller's."""

    def __init__(self) -> None:
        self.line: _native.ProgramLine | None = None
        """None if nothing runs."""
        self.blocks: list[Block] = []
        """Of the dispatches."""
        self.push: list[bytes] | None = None
        """The push constants of the dispatches, if all are the same in each call."""
        self.slots: list[int] = []
        """The places of tensors among what is given."""
        self.fresh: list[Fresh] = []
        self.own: list[Any] = []
        """Native memory of the form. The line's memory is slots, fresh, own."""
        self.own_bytes = 0
        """Bytes of memory that no other form has, with host copies."""
        self.private = False
        """Whether it has memory that recordings cannot share with it."""
        self.stand_ins: list[StandIn] = []
        self.moving: list[StandIn] = []
        """Those whose copies depend on the memory of a call."""
        self.before: list[Any] = []
        """Native operations before the dispatches, and after them, that are the same in each call."""
        self.after: list[Any] = []
        self.results: list[tuple[int, Any]] = []
        """(GIVEN or FRESH, its number) of each result, or (HOST, its Host)."""
        self.busy: threading.Lock = threading.Lock()
        """Held from the moment that a call has it to the end of its run: its memory is that call's."""
        self.beside: list[Form] = []
        """Forms for the same calls, which threads have used while this one was busy."""
        self.kept = False
        """Whether later calls find it."""

    def free(self) -> Form | None:
        """Returns an idle form (this one or a spare) and marks it as busy; None if all are busy."""
        for form in (self, *self.beside):
            if form.busy.acquire(False):
                return form
        return None

    def pushes(self, given: Sequence[Any]) -> list[bytes]:
        """The push constants of the dispatches for these arguments; a list is one argument. Raises
        struct.error for a number that the kernels of this form do not take.
        """
        if self.push is not None:
            return self.push
        found = []
        for block in self.blocks:
            if block.table is None:
                found.append(block.of(given))
            else:
                if block.fields:
                    block.table.write(np.frombuffer(block.of(given), np.uint32))
                found.append(b"")
        return found

    def memory(self, given: Sequence[Any], fresh: Sequence[Any]) -> list[Any]:
        """The native memory of a call."""
        found = []
        for place in self.slots:
            found.append(given[place]._native)
        for tensor in fresh:
            found.append(tensor._native)
        return found + self.own

    def around(self, given: Sequence[Any], fresh: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The operations before and after the dispatches."""
        if not self.moving:
            return self.before, self.after
        before, after = list(self.before), []
        for each in self.moving:
            first, last = each.around(given[each.place] if each.place >= 0 else fresh[-1 - each.place])
            before += first
            after += last
        return before, [*after, *self.after]

    def reused(self, given: Sequence[Any], donated: Sequence[int]) -> dict[int, int]:
        """For results of `fresh` the places of the arguments that give them their memory, of those `donated`
        to which nothing else refers.
        """
        found: dict[int, int] = {}
        for number, each in enumerate(self.fresh):
            for place in donated:
                if place not in found.values() and each.fits(place, given):
                    found[number] = place
                    break
        return found

    def run(
        self,
        given: Sequence[Any],
        manager: Manager,
        push: list[bytes],
        reused: Mapping[int, int] | None = None,
    ) -> list[Any]:
        """Runs it and waits. Returns the results."""
        fresh: list[Any] = []
        for number, result in enumerate(self.fresh):
            place = reused.get(number) if reused else None
            fresh.append(result.made(manager) if place is None else result.over(given[place]))
        for each in self.stand_ins:
            each.bring(given)
        if self.line is not None:
            self.line.run(self.memory(given, fresh), push, *self.around(given, fresh))
            watch = manager._watch
            if watch is not None:
                watch()
        for each in self.stand_ins:
            each.give_back(given)
        results = []
        for what, number in self.results:
            if what == HOST:
                results.append(number.array.copy())
            else:
                results.append(given[number] if what == GIVEN else fresh[number])
        return results

    def warm_up(self, given: Sequence[Any], manager: Manager) -> None:
        """Dispatches each kernel with no groups, and waits: some drivers compile then."""
        if self.line is None:
            return
        fresh = [each.made(manager) for each in self.fresh]
        for fence in [_native.submit_once(each) for each in self.line.warm_up(self.memory(given, fresh))]:
            fence.wait(-1.0)

    def over(self, natives: Sequence[Any]) -> list[Any]:
        """The native operations of a form without numbers of calls over this memory for its arguments."""
        assert self.line is not None and self.push is not None
        memory = [natives[place] for place in self.slots] + self.own
        return self.line.bind(memory, self.push)

    def operations(
        self, given: Sequence[Any], fresh: Sequence[Any], push: list[bytes], title: str = ""
    ) -> list[Any]:
        """The native operations of a call, to be recorded. `title` comes before the names of dispatches."""
        if self.line is None:
            return []
        before, after = self.around(given, fresh)
        return [*before, *self.line.bind(self.memory(given, fresh), push, title), *after]


class Facts(NamedTuple):
    """Facts of a device that selections and forms ask for."""

    properties: Any
    features: frozenset[str]
    alignment: int


class Calls:
    """The forms and programs of one operation for one Manager, which it does not hold."""

    def __init__(
        self, manager: Manager, ended: Callable[[int], None], dropped: Callable[[Form], None]
    ) -> None:
        number = id(manager)
        self._dropped = dropped
        manager._families.add(self)
        self.reference = weakref.ref(manager, lambda _: ended(number))
        properties = manager.get_device_properties()
        self.facts = Facts(
            properties,
            frozenset(manager.enabled_features),
            properties["limits"]["minStorageBufferOffsetAlignment"],
        )
        self.programs: dict[str, Program] = {}
        self.decisive: dict[tuple[Any, ...], tuple[int, tuple[int, ...]]] = {}
        """For what `look` finds: a number of its own, and the places of the numbers that decide."""
        self.forms: dict[Any, Form] = {}
        """By that number, with the numbers of the call that decide: cheap to look up."""
        self._serials = itertools.count()
        self._changing = threading.Lock()
        """Held for a few instructions, in which nothing is made and nothing ends: other threads make room."""
        self._kept_bytes = 0
        self._beside = 0
        """The number of forms beside others."""

    def find(self, key: tuple[Any, ...], given: Sequence[Any]) -> Form | None:
        """The form for a call."""
        known = self.decisive.get(key)
        if known is None:
            return None
        serial, places = known
        return self.forms.get((serial, *[text_of(given[place]) for place in places]) if places else serial)

    @property
    def kept_bytes(self) -> int:
        """See `Keeper`."""
        return self._kept_bytes

    @property
    def kept_calls(self) -> int:
        """See `Keeper`."""
        return len(self.forms) + self._beside

    def trim(self) -> None:
        """Lets go of all forms, and of programs with tables."""
        self.forget()
        for name in [name for name, each in list(self.programs.items()) if each.tables]:
            self.drop_program(name)

    def drop_some(self) -> None:
        """See `Keeper`."""
        forms = list(self.forms)
        if forms:
            self._drop(random.choice(forms))
        else:
            self.trim()

    def forget(self) -> None:
        """Drops all forms."""
        for each in list(self.forms):
            self._drop(each)
        self.decisive.clear()

    def keep(
        self, manager: Manager, key: tuple[Any, ...], given: Sequence[Any], decisive: set[int], form: Form
    ) -> None:
        """Keeps a form, if there is room. `decisive` are the places of the numbers that it depends on."""
        serial, before = self.decisive.get(key) or (next(self._serials), ())
        places = tuple(sorted(decisive.union(before)))
        if len(self.decisive) >= _MOST_KEYS:
            self.forget()
        self.decisive[key] = serial, places
        whole = (serial, *[text_of(given[place]) for place in places]) if places else serial
        self._drop(whole)
        if make_room(manager, form.own_bytes, 1):
            with self._changing:
                form.kept = True
                self._kept_bytes += form.own_bytes
                self.forms[whole] = form

    def keep_beside(self, manager: Manager, found: Form, form: Form) -> None:
        """Keeps a form beside another one for the same calls, if there is room."""
        if make_room(manager, form.own_bytes, 1):
            with self._changing:
                if found.kept:
                    self._kept_bytes += form.own_bytes
                    self._beside += 1
                    found.beside.append(form)

    def keep_program(self, manager: Manager, key: str, program: Program) -> None:
        """Keeps a program; its tables, if there is room for them."""
        size = program.table_bytes
        if size and not make_room(manager, size):
            return
        with self._changing:
            self._kept_bytes += size
            self.programs[key] = program

    def drop_program(self, key: str) -> None:
        """Drops a program."""
        with self._changing:
            dropped = self.programs.pop(key, None)
            if dropped is not None:
                self._kept_bytes -= dropped.table_bytes

    def _drop(self, key: Any) -> None:
        with self._changing:
            dropped = self.forms.pop(key, None)
            if dropped is not None:
                dropped.kept = False
                self._kept_bytes -= dropped.own_bytes + sum([each.own_bytes for each in dropped.beside])
                self._beside -= len(dropped.beside)
        if dropped is not None:  # without the lock, because memory ends with it
            self._dropped(dropped)
