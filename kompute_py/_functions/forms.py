"""Forms: calls of a function that were prepared for certain shapes, dtypes and attributes.

The native table finds a form by what the kernels, grids and results depend on. A form runs over whatever
memory the call has: its `Dispatches` bind it, record, submit, wait and let go of it. Run-time numbers are not
in the key, unless `select` looked at them.
"""

from __future__ import annotations

import struct
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._custom.program import Block, Program
from .._device.kept import make_room
from .._formulas.glsl import EXACT_DIVISION
from .._memory.lending import Lending
from .._memory.making import new_tensor
from .._memory.stand_ins import Fresh, Lent, StandIn

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._memory.tensor import Tensor

_BYTES: np.dtype[Any] = np.dtype(np.uint8)
GIVEN, FRESH, HOST = range(3)  # where a result of a form comes from


class Form:
    """A prepared call. It holds no Python object that holds its Manager, nothing of the caller's, and no
    memory that a call changes: calls and recordings share it.
    """

    def __init__(self) -> None:
        self.line: _native.Dispatches | None = None
        """None if nothing runs."""
        self.native: _native.CallForm | None = None
        """What the table knows of it; None if Python must run it."""
        self.blocks: list[Block] = []
        """Of the dispatches."""
        self.push: list[bytes] | None = None
        """The numbers of the dispatches, if all are the same in each call."""
        self.slots: list[int] = []
        """The places of tensors among what is given."""
        self.fresh: list[Fresh] = []
        self.own: list[Any] = []
        """Native memory that all calls share: tables, and scratch memory."""
        self.own_bytes = 0
        """The bytes of it that no other form has."""
        self.stand_ins: list[StandIn] = []
        """The line's memory is slots, fresh, own, and that of these."""
        self.results: list[tuple[int, int]] = []
        """(GIVEN, FRESH or HOST, the number of its place, of the new result or of the stand-in) of each."""

    def pushes(self, given: Sequence[Any]) -> list[bytes]:
        """The numbers of the dispatches for these arguments; a list is one argument. Raises struct.error for
        a number that the kernels of this form do not take.
        """
        if self.push is not None:
            return self.push
        return [block.of(given) for block in self.blocks]

    def memory(self, given: Sequence[Any], fresh: Sequence[Any], lent: Sequence[Tensor] = ()) -> list[Any]:
        """The native memory of a call."""
        found = []
        for place in self.slots:
            found.append(given[place]._native)
        for tensor in fresh:
            found.append(tensor._native)
        found += self.own
        if lent:
            found += [stand_in.bound(each) for stand_in, each in zip(self.stand_ins, lent, strict=True)]
        return found

    def _bound(
        self, given: Sequence[Any], fresh: Sequence[Any], lent: Sequence[Tensor], push: Sequence[bytes]
    ) -> tuple[list[Any], list[bytes], list[Any], list[Any]]:
        """The arguments of `line`: the memory, the push constants, and the operations before and after the
        dispatches.
        """
        before: list[Any] = []
        after: list[Any] = []
        for each, memory in zip(self.stand_ins, lent, strict=True):
            each.bring(memory, given, push)
            place = each.place
            value = given[place] if place >= 0 else fresh[-1 - place] if fresh else None
            first, last = each.around(memory, value)
            before += first
            after += last
        pushed = [b"" if block.in_memory else each for block, each in zip(self.blocks, push, strict=True)]
        return self.memory(given, fresh, lent), pushed, before, after

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
        calls: Calls,
        reused: Mapping[int, int] | None = None,
    ) -> list[Any]:
        """Runs it and waits. Returns the results."""
        fresh: list[Any] = []
        for number, result in enumerate(self.fresh):
            place = reused.get(number) if reused else None
            fresh.append(result.made(manager) if place is None else result.over(given[place]))
        with calls.lending(manager) as lending:
            lent = [lending.bytes(number, each.nbytes) for number, each in enumerate(self.stand_ins)]
            bound = self._bound(given, fresh, lent, push)
            if self.line is not None:
                self.line.run(*bound)
                if manager._watch is not None:
                    manager._watch()
            for stand_in, memory in zip(self.stand_ins, lent, strict=True):
                stand_in.give_back(memory, given)
            results = []
            for what, number in self.results:
                if what == HOST:
                    made = self.stand_ins[number]
                    assert isinstance(made, Lent)
                    results.append(made.tensor(lent[number]).read())
                else:
                    results.append(given[number] if what == GIVEN else fresh[number])
            return results

    def warm_up(self, given: Sequence[Any], manager: Manager) -> None:
        """Dispatches each kernel with no groups, and waits: some drivers compile then."""
        if self.line is None:
            return
        fresh = [each.made(manager) for each in self.fresh]
        memory = self.memory(given, fresh, self._new_memory(manager))
        for fence in [_native.submit_once(each) for each in self.line.warm_up(memory)]:
            fence.wait(-1.0)

    def _new_memory(self, manager: Manager) -> list[Tensor]:
        return [new_tensor(manager, (each.nbytes,), _BYTES, "storage") for each in self.stand_ins]

    def over(self, natives: Sequence[Any]) -> list[Any]:
        """The native operations of a form without numbers of calls over this memory for its arguments."""
        assert self.line is not None and self.push is not None
        memory = [natives[place] for place in self.slots] + self.own
        return self.line.bind(memory, self.push)

    def operations(
        self, manager: Manager, given: Sequence[Any], fresh: Sequence[Any], push: list[bytes], title: str = ""
    ) -> list[Any]:
        """The native operations of a call, to be recorded, with memory of their own. `title` comes before the
        names of dispatches.
        """
        if self.line is None:
            return []
        if not self.stand_ins:
            return self.line.bind(self.memory(given, fresh), push, title)
        memory, pushed, before, after = self._bound(given, fresh, self._new_memory(manager), push)
        return [*before, *self.line.bind(memory, pushed, title), *after]


def packed(blocks: Sequence[Block], given: Sequence[Any]) -> list[bytes] | None:
    """The numbers of these dispatches for the arguments; None for a number that the kernels do not take."""
    try:
        return [block.of(given) for block in blocks]
    except struct.error:
        return None


class Facts(NamedTuple):
    """Facts of a device that selections and forms ask for."""

    properties: Any
    features: frozenset[str]
    alignment: int


class Calls:
    """The prepared calls and programs of one function for one Manager, which it does not hold."""

    def __init__(self, manager: Manager, ended: Callable[[int], None], table: _native.CallTable) -> None:
        number = id(manager)
        self.table = table
        self.watch: Callable[..., None] | None = manager._watch
        manager._families.add(self)
        self.reference: weakref.ref[Manager] = weakref.ref(manager, lambda _: ended(number))
        properties = manager.get_device_properties()
        self.facts: Facts = Facts(
            properties,
            frozenset((*manager.enabled_features, *[EXACT_DIVISION][: properties["type"] == "cpu"])),
            properties["limits"]["minStorageBufferOffsetAlignment"],
        )
        self.programs: dict[str, Program] = {}
        self._idle: list[Lending] = []
        """Memory to lend to a call. There are several if threads call at once."""
        self._changing = threading.Lock()
        """Held for a few instructions, in which nothing is made and nothing ends: other threads make room."""
        self._program_bytes = 0

    @contextmanager
    def lending(self, manager: Manager) -> Iterator[Lending]:
        """Memory for a call alone. After an error it is not lent again, because work may still run on it."""
        try:
            found = self._idle.pop()
        except IndexError:
            found = Lending(manager)
        yield found
        self._idle.append(found)

    @property
    def kept_bytes(self) -> int:
        """See `Keeper`."""
        return self._program_bytes + self.table.kept_bytes

    @property
    def kept_calls(self) -> int:
        """See `Keeper`."""
        return self.table.forms

    def trim(self) -> None:
        """Lets go of all forms, and of programs with tables."""
        self.forget()
        for name in [name for name, each in list(self.programs.items()) if each.tables]:
            self.drop_program(name)

    def drop_some(self) -> None:
        """See `Keeper`."""
        if self.table.forms:
            self.table.drop_a_form()
        else:
            self.trim()

    def forget(self) -> None:
        """Drops all forms."""
        self.table.clear()
        self._idle.clear()

    def keep_program(self, manager: Manager, key: str, program: Program) -> None:
        """Keeps a program; its tables, if there is room for them."""
        size = program.table_bytes
        if size and not make_room(manager, size):
            return
        with self._changing:
            self._program_bytes += size
            self.programs[key] = program

    def drop_program(self, key: str) -> None:
        """Drops a program."""
        with self._changing:
            dropped = self.programs.pop(key, None)
            if dropped is not None:
                self._program_bytes -= dropped.table_bytes
