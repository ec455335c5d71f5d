"""From the arguments of a function's call to the form that runs it: select, generate, compile, prepare."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError, shown
from .._custom.arguments import check_outs, checked, spec_of
from .._custom.declaration import Declaration
from .._custom.program import Program, compile_program
from .._custom.selection import FunctionSelection
from .._custom.special import unchanged
from .._device.kept import make_room
from .._device.transfers import Guard, on_host
from .._manager.default import manager as default_manager
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .forming import make_form, tried_out
from .forms import Calls, Facts, Form, packed, table_for
from .given import bases, flat, look_at_parts, manager_of, overlapping, surely_apart
from .op_custom import CacheInfo
from .tuning import Tuning, check_variants, choices_of

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._memory.needs import Plan
    from .custom_op import CustomOp

_MOST_PROGRAMS = 256
"""Specializations that a function keeps for each Manager."""


class Prepared(NamedTuple):
    """A call that is ready to run."""

    form: Form
    push: list[bytes]
    """The numbers of its dispatches."""
    manager: Manager
    calls: Calls


class Preparing:
    """The forms and programs of a function, for each Manager."""

    def __init__(self, op: CustomOp, declaration: Declaration, forced: str) -> None:
        """`forced` is the only variant, "" for a choice."""
        self.op = op
        self.name = declaration.name
        self.declaration = declaration
        self.written = [n for n, each in enumerate(declaration.parameters) if each.alias]
        """The places of the parameters that the function writes."""
        self.has_variants: bool = op._has_variants
        self.forced = forced
        self.calls: dict[int, Calls] = {}
        """By the Manager's id."""
        self.hits = self.misses = 0
        self.lock = threading.RLock()
        self.current: Calls | None = None
        """For the Manager of the last call that was prepared."""
        self._tensors = [
            (place, each.type == "Tensor[]")
            for place, each in enumerate(declaration.parameters)
            if each.is_tensor
        ]
        """The places of the parameters that take tensors, and whether they take lists."""

    def form(self, values: list[Any], outs: tuple[Any, ...]) -> Prepared:
        """A form for a call. The lock is held."""
        manager = manager_of(self.name, (*values, *outs))
        if manager is None:
            manager = default_manager()
        if manager._guard is not None:
            self._guarded(manager._guard, values, outs)
        shared: tuple[int, ...] = ()
        extra: tuple[Any, ...] = ()
        count = len(outs) + len(self.written)
        if count and not (count == 1 and surely_apart(values, outs)):
            shared = self.shared(values, outs)
            parts = look_at_parts((*outs, *[values[place] for place in self.written]))
            extra = (shared, *parts) if shared or parts else ()
        calls = self.calls_of(manager)
        self.current, table = calls, calls.table
        form: Form | None = table.find_form(values, outs, extra)
        push = None if form is None else packed(form.blocks, values)
        if form is None or push is None:  # or a number of another dtype
            # The device copies parts of tensors if the host must not; such a form is for these parts alone.
            gathers = manager._guard is not None and StridedView in map(type, flat(values))
            form, decisive = self.made(values, outs, shared, manager, calls, gathers)
            push = form.pushes(values)
            kept = not gathers and make_room(manager, form.nbytes, 1)
            form.repeats = form.repeats and kept and not self.op._eager
            if kept:
                table.keep(values, outs, extra, sorted(decisive), form)
        return Prepared(form, push, manager, calls)

    def _guarded(self, guard: Guard, values: list[Any], outs: tuple[Any, ...]) -> None:
        """The guard's word on the arrays of a call (see `transfers`). A number is not an array."""
        named = [(each.name, value) for each, value in zip(self.declaration.parameters, values, strict=True)]
        for name, value in (*named, *(("out", out) for out in outs)):
            for each in value if type(value) is list else (value,):
                if isinstance(each, np.ndarray) and each.ndim:
                    on_host(guard, f"{self.name}: {name}", each.nbytes)

    def made(
        self,
        values: list[Any],
        outs: tuple[Any, ...],
        shared: tuple[int, ...],
        manager: Manager,
        calls: Calls,
        gathers: bool = False,
    ) -> tuple[Form, set[int]]:
        """A new form for a call, and the places of the numbers that it depends on. `shared` is what the
        method of this name found; `gathers` is as in `make_form`.
        """
        selection, program = self._selected(values, outs, manager, calls)
        if self.op.reads_parts:
            values = bases(values, self.written)
        form = make_form(program, selection, manager, calls, values, outs, shared, gathers)
        return form, selection._decisive() | program.decisive(selection)

    def _selected(
        self,
        values: list[Any],
        outs: tuple[Any, ...],
        manager: Manager,
        calls: Calls,
        may_measure: bool = True,
    ) -> tuple[FunctionSelection, Program]:
        """The selection of a call, and its compiled kernels."""
        for parameter, value in zip(self.declaration.parameters, values, strict=True):
            if isinstance(value, (Tensor, np.ndarray)):  # `_bind` did not check its dtype
                checked(f"{self.name}: {parameter.name}", parameter, value, False)
        selection = self.select(values, calls.facts)
        check_outs(self.declaration, selection.results, outs)
        if self.has_variants:
            selection._variant = self._choice(selection, values, manager, calls, may_measure)
        if selection._writes_nothing():  # nothing to compute, so generators need not think of it
            return selection, Program(self.name, (), ())
        return selection, self.program(selection, manager, calls)

    def planned(self, plan: Plan, values: list[Any], outs: tuple[Any, ...]) -> list[Any]:
        """The results of a call that does not run, but tells the plan what it takes. The lock is held."""
        from .needs import plan_call

        manager = manager_of(self.name, (*values, *outs)) or default_manager()
        calls = self.calls_of(manager)
        selection, program = self._selected(values, outs, manager, calls, False)
        return plan_call(plan, program, selection, calls, values, outs)

    def shared(self, values: list[Any], outs: tuple[Any, ...]) -> tuple[int, ...]:
        """The places of arguments to copy, because they share memory with what is written."""
        written: list[int] = []
        if self.written:
            place = 0
            for number, value in enumerate(values):
                count = len(value) if type(value) is list else 1
                written += range(place, place + count) if number in self.written else ()
                place += count
        return overlapping(self.name, values, outs, self.op.in_place, written)

    def memory(self, values: list[Any], outs: tuple[Any, ...]) -> list[Any]:
        """All that a form is given, lists one by one; of parts that kernels read, the tensors."""
        if self.op.reads_parts and StridedView in map(type, values):
            values = bases(values, self.written)
        return flat((*values, *outs))

    # -- variants -------------------------------------------------------------------------------------------

    def variants(self, selection: FunctionSelection) -> list[str]:
        """The variants for a call. Raises InvalidArgumentError if the forced one is not among them."""
        found = check_variants(self.name, self.op.variants(selection))
        if not self.forced:
            return found
        if self.forced not in found:
            raise InvalidArgumentError(
                f"{self.name} has no variant {shown(self.forced)} for this call on this device; it has "
                f"{', '.join(found)}"
            )
        return [self.forced]

    def _choice(
        self,
        selection: FunctionSelection,
        values: list[Any],
        manager: Manager,
        calls: Calls,
        may_measure: bool = True,
    ) -> str:
        found = self.variants(selection)
        if len(found) == 1:
            return found[0]
        mode = manager._setting("tuning")
        tried = [each for each in self.op.trials(selection) if each in found]
        if mode == "off" or len(tried) < 2:
            return (tried or found)[0]
        choices = choices_of(calls.facts.properties, manager._setting("tuning_dir"))
        key = self._tuning_key(selection)
        kept = choices.find(key, found)
        # A trial reads the arguments: it would wait for held work, and the caller may be the one to signal.
        may_try = may_measure and mode == "auto" and not manager._native.holds_work()
        if kept is None and may_try and all(each.size for each in selection.tensors):
            kept = self._measured(selection, tried, values, manager, calls, False).variant
            choices.keep(key, kept)
        return kept or found[0]

    def _tuning_key(self, selection: FunctionSelection) -> str:
        """The calls that share a choice: those of one specialization and about one size."""
        owner = type(self.op)
        size = sum(each.size for each in selection.tensors).bit_length()
        return f"{owner.__module__}.{owner.__qualname__}: {selection.spec_key} 2^{size}"

    def _measured(
        self,
        selection: FunctionSelection,
        variants: list[str],
        values: list[Any],
        manager: Manager,
        calls: Calls,
        thorough: bool,
    ) -> Tuning:
        def program_of(chosen: FunctionSelection) -> Program:
            return self.program(chosen, manager, calls)

        return tried_out(program_of, selection, variants, values, manager, calls, thorough)

    def tuned(self, values: list[Any]) -> Tuning:
        """Measures all variants for a call, and keeps the choice."""
        if not self.has_variants or self.forced:
            raise InvalidArgumentError(
                f"{self.name} is bound to the variant {self.forced!r}"
                if self.forced
                else f"{self.name} declares no variants"
            )
        with self.lock:
            manager = manager_of(self.name, values) or default_manager()
            calls = self.calls_of(manager)
            selection = self.select(values, calls.facts)
            found = self.variants(selection)
            if not all(each.size for each in selection.tensors):
                raise InvalidArgumentError(f"{self.name}: tune measures nothing for an empty tensor")
            tuning = self._measured(selection, found, values, manager, calls, True)
            choices = choices_of(calls.facts.properties, manager._setting("tuning_dir"))
            choices.keep(self._tuning_key(selection), tuning.variant)
            self.forget()  # prepared calls have made their choice
        return tuning

    # -- kernels --------------------------------------------------------------------------------------------

    def calls_of(self, manager: Manager) -> Calls:
        """Calls and programs that are kept for a Manager."""
        found = self.calls.get(id(manager))
        if found is None:
            this = weakref.ref(self)

            def ended(number: int) -> None:
                preparing = this()
                if preparing is not None:
                    preparing.calls.pop(number, None)
                    preparing.current = None

            table = table_for(self.declaration, self.op.reads_parts, manager)
            found = self.calls[id(manager)] = Calls(manager, ended, table)
        return found

    def select(self, values: list[Any], facts: Facts | None) -> FunctionSelection:
        """What `select` decides for a call; without `facts` for no device."""
        parts = self.op.reads_parts
        specs: list[Any] = list(values)
        for place, several in self._tensors:
            value = values[place]
            if several:
                specs[place] = [spec_of(each, parts) for each in value]
            elif hasattr(value, "shape") and not isinstance(value, np.generic):
                specs[place] = spec_of(value, parts and place not in self.written)
        device, features = (None, None) if facts is None else facts[:2]
        selection = FunctionSelection(self.op, self.declaration, specs, device, features)
        with unchanged(self.name, "select", self.op):
            self.op.select(selection)
        selection._finish()
        return selection

    def program(self, selection: FunctionSelection, manager: Manager, calls: Calls) -> Program:
        """The compiled kernels of a selection."""
        programs = calls.programs
        key = selection.spec_key
        found = programs.get(key)
        if found is not None:
            self.hits += 1
            if programs.pop(key, None) is not None:
                programs[key] = found  # the newest is the last
            return found
        self.misses += 1
        found = compile_program(self.op, selection, manager._setting)
        while len(programs) >= _MOST_PROGRAMS:
            calls.drop_program(next(iter(programs)))
        calls.keep_program(manager, key, found)
        return found

    # -- what is kept ---------------------------------------------------------------------------------------

    def info(self) -> CacheInfo:
        """The size and use of its caches."""
        with self.lock:
            kept = sum(len(calls.programs) for calls in self.calls.values())
            prepared = sum(calls.table.forms for calls in self.calls.values())
            return CacheInfo(self.hits, self.misses, kept, prepared)

    def forget(self) -> None:
        """Drops prepared calls, and their memory."""
        # Without the lock: another thread may have it and wait for the memory.
        for calls in list(self.calls.values()):
            calls.forget()

    def clear(self) -> None:
        """Drops compiled specializations and prepared calls, and counts from zero."""
        with self.lock:
            self.calls.clear()
            self.current = None
            self.hits = self.misses = 0
