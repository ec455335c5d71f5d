"""Forms: calls of a function that were prepared for certain shapes, dtypes and attributes.

The native table finds a form by what the kernels, grids and results depend on. A form runs over whatever
memory the call has: it binds it, records, submits, waits and lets go of it. Run-time numbers are not in the
key, unless `select` looked at them.
"""

from __future__ import annotations

import functools
import struct
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._custom.arguments import plain_types
from .._custom.program import Block, Program
from .._device.kept import make_room
from .._formulas.glsl import EXACT_DIVISION
from .._memory.lending import Lending
from .._memory.making import new_tensor
from .._memory.memory import seen_by_others
from .._memory.stand_ins import Fresh, Lent, StandIn, made_natively
from .._memory.tensor import Tensor
from .._shaders.signature import MISSING
from .given import facts, places_of

if TYPE_CHECKING:
    from .._custom.declaration import Declaration
    from .._kernels.donation import Donated
    from .._manager.manager import Manager

_BYTES: np.dtype[Any] = np.dtype(np.uint8)
_MOST_REPEATED = 512
"""Calls with the same tensors that a function keeps recorded."""


class Form(_native.CallForm):
    """A function's prepared call. It holds no Python object that holds its Manager, nothing of the caller's,
    and no memory that a call changes: calls and recordings share it. The table runs it again without Python
    if it has no stand-ins.
    """

    def __init__(
        self,
        manager: Manager,
        blocks: list[Block],
        fresh: list[Fresh],
        stand_ins: list[StandIn],
        results: list[int],
        **native: Any,
    ) -> None:
        """`blocks` are those of the dispatches; none if nothing runs. `results`, as in a CallForm, may have
        the memory of stand-ins, which follows that of `fresh`. `native` is told to the CallForm alone.
        """
        numbers = any(each.fields for each in blocks)
        super().__init__(
            results=[(each, None, None) for each in results],
            push=[] if numbers else [each.of(()) for each in blocks],
            pack=functools.partial(packed, blocks) if numbers else None,
            repeats=bool(blocks) and not stand_ins,
            after=manager._watch,
            **made_natively(fresh, manager),
            **native,
        )
        self.blocks = blocks
        self.fresh = fresh
        self.stand_ins = stand_ins
        self.results = results

    def pushes(self, given: Sequence[Any]) -> list[bytes]:
        """The numbers of the dispatches for these arguments; a list is one argument. Raises struct.error for
        a number that the kernels of this form do not take.
        """
        return [block.of(given) for block in self.blocks]

    def _bound(
        self, given: Sequence[Any], fresh: Sequence[Any], lent: Sequence[Tensor], push: Sequence[bytes]
    ) -> tuple[list[Any], list[bytes], list[Any], list[Any]]:
        """Of a call the memory that it makes, the push constants, and the operations before and after the
        dispatches.
        """
        made = [*fresh]
        before: list[Any] = []
        after: list[Any] = []
        for each, memory in zip(self.stand_ins, lent, strict=True):
            if memory._manager._tensors is not None:
                memory._manager._tensors.stands(each.tensor(memory))
            each.bring(memory, given, push)
            place = each.place
            value = given[place] if place >= 0 else fresh[-2 - place] if place < -1 else None
            first, last = each.around(memory, value)
            before += first
            after += last
            made.append(each.bound(memory))
        pushed = [b"" if block.in_memory else each for block, each in zip(self.blocks, push, strict=True)]
        return made, pushed, before, after

    def new_results(
        self,
        given: Sequence[Any],
        manager: Manager,
        taken: Sequence[Donated] = (),
        reused: list[Tensor] | None = None,
    ) -> list[Any]:
        """The memory of `fresh`. Of the donated tensors `taken`, those to which nothing else refers may give
        theirs; those that do are added to `reused`.
        """
        places = places_of(given, [each.taken for each in taken if each.alone]) if taken else []
        made: list[Any] = []
        for each in self.fresh:
            place = next((place for place in places if each.fits(place, given)), None)
            if place is None or reused is None:
                made.append(each.made(manager))
                continue
            places.remove(place)
            reused.append(given[place])
            made.append(each.over(given[place]))
        return made

    def call(
        self,
        given: Sequence[Any],
        manager: Manager,
        push: list[bytes],
        calls: Calls,
        fresh: list[Any],
    ) -> list[Any]:
        """Runs it and waits. Returns the results. `fresh` is what `new_results` made."""
        with calls.lending(manager) as lending:
            lent = [lending.bytes(number, each.nbytes) for number, each in enumerate(self.stand_ins)]
            bound = self._bound(given, fresh, lent, push)
            if self.blocks:
                self.run(given, *bound)
                if manager._watch is not None:
                    manager._watch()
            for stand_in, memory in zip(self.stand_ins, lent, strict=True):
                stand_in.give_back(memory, given)
            results = []
            for each in self.results:
                host = -2 - each - len(fresh)
                if host >= 0:
                    made = self.stand_ins[host]
                    assert isinstance(made, Lent)
                    results.append(made.tensor(lent[host]).read())
                else:
                    results.append(given[each] if each >= 0 else fresh[-2 - each])
            return results

    def warm_up(self, given: Sequence[Any], manager: Manager) -> None:
        """Dispatches each kernel with no groups, and waits: some drivers compile then."""
        made = [each.made(manager) for each in self.fresh]
        made += [
            each.bound(memory) for each, memory in zip(self.stand_ins, self._new_memory(manager), strict=True)
        ]
        for fence in [_native.submit_once(each) for each in self.without_groups(given, made)]:
            fence.wait(-1.0)

    def _new_memory(self, manager: Manager) -> list[Tensor]:
        return [new_tensor(manager, (each.nbytes,), _BYTES, "storage") for each in self.stand_ins]

    def over(self, natives: Sequence[Any]) -> list[Any]:
        """The native operations of a form without numbers of calls over this memory for its arguments."""
        return self.bind(natives, (), self.pushes(()))

    def operations(
        self, manager: Manager, given: Sequence[Any], fresh: Sequence[Any], push: list[bytes], title: str = ""
    ) -> list[Any]:
        """The native operations of a call, to be recorded, with memory of their own. `title` comes before the
        names of dispatches.
        """
        if not self.blocks or not self.stand_ins:
            return self.bind(given, fresh, push, title)
        made, pushed, before, after = self._bound(given, fresh, self._new_memory(manager), push)
        return [*before, *self.bind(given, made, pushed, title), *after]


def packed(blocks: Sequence[Block], given: Sequence[Any]) -> list[bytes] | None:
    """The numbers of these dispatches for the arguments; None for a number that the kernels do not take."""
    try:
        return [block.of(given) for block in blocks]
    except struct.error:
        return None


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
        manager._keepers.add(self)
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
