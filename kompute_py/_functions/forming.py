"""The making of a form: the first call of its kind."""

from __future__ import annotations

import copy
import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError
from .._base.types import is_small_float
from .._custom.arg_descs import TensorArg, TensorListArg
from .._custom.program import (
    Block,
    Program,
    Step,
    check_indirect,
    check_numbers,
    groups_of,
    numbers_of,
    scratch_of,
)
from .._custom.selection import FunctionSelection
from .._custom.specs import TensorSpec
from .._formulas.glsl_elements import element_of
from .._manager.default import manager as default_manager
from .._memory.image import Image
from .._memory.lending import Lending
from .._memory.making import new_tensor
from .._memory.reach import bytes_of, reach_of, whole_words
from .._memory.scratch import is_shared
from .._memory.stand_ins import Copied, Fresh, Lent, Numbers, Spread, StandIn
from .._memory.strided import StridedView
from .._memory.tensor import Tensor, buffer_tensor
from .._recording.preload import in_parallel, unreported
from .._shaders.constants import NO_SPECIALIZATION
from .forms import Calls, Form
from .given import flat
from .parts import copying
from .pictures import first_image, picture_like, tensor_of
from .tuning import Tuning, measured, report

if TYPE_CHECKING:
    from .._manager.manager import Manager


_BYTES: np.dtype[Any] = np.dtype(np.uint8)


def make_form(
    program: Program,
    selection: FunctionSelection,
    manager: Manager,
    calls: Calls,
    values: Sequence[Any],
    outs: Sequence[Any],
    shared: Sequence[int] = (),
    gathers: bool = False,
) -> Form:
    """A form for the call with these arguments and this memory of results. `shared` are the places of
    arguments to copy. `gathers`: the device copies parts of tensors that the kernels only read, too; in calls
    the host does, so that one form is for all parts of a shape.

    Raises InvalidArgumentError for arguments that the kernels write and cannot, and for a grid beyond the
    device's limits; and the errors of `kp.Algorithm`.
    """
    check_numbers(program, selection)
    with calls.lending(manager) as lending:
        return _Maker(program, selection, manager, calls, values, outs, shared, gathers, lending).made()


def spare(
    selection: FunctionSelection, values: Sequence[Any], manager: Manager
) -> tuple[list[Any], list[Tensor]]:
    """Arguments for a trial: Tensors instead of arrays, and copies of those that the kernels write; and
    memory for the results.
    """
    written = {each.name for each in selection.inplace_tied_arg_descs}
    kind = memory_type_of(flat(values))

    def tensor(name: str, value: Any) -> Any:
        if isinstance(value, StridedView) and selection.op.reads_parts and name not in written:
            value = value._base
        if isinstance(value, Image):
            return tensor_of(value)
        if isinstance(value, Tensor):
            return value.to(manager, copy=True) if name in written else value
        return manager.tensor_t(value.read() if isinstance(value, StridedView) else value, kind)

    given: list[Any] = []
    for desc, value in zip(selection.arg_descs, values, strict=True):
        if isinstance(desc, TensorArg):
            given.append(tensor(desc.name, value))
        elif isinstance(desc, TensorListArg):
            given.append([tensor(item.name, v) for item, v in zip(desc.items, value, strict=True)])
        else:
            given.append(value)
    outs = [manager.empty(each.shape, each.dtype, kind) for each in selection.results if each.is_result]
    return given, outs


def tried_out(
    program_of: Callable[[FunctionSelection], Program],
    selection: FunctionSelection,
    variants: Sequence[str],
    values: Sequence[Any],
    manager: Manager,
    calls: Calls,
    thorough: bool,
) -> Tuning:
    """The best of the variants for a call, and the times of all, on copies of what it writes."""
    began = time.perf_counter()
    given, outs = spare(selection, values, manager)
    memory = flat((*given, *outs))

    def prepare(name: str) -> Callable[[], None]:
        chosen = copy.copy(selection)
        chosen._variant = name
        form = make_form(program_of(chosen), chosen, manager, calls, given, outs)
        push = form.pushes(given)

        def run() -> None:
            form.call(memory, manager, push, calls, form.new_results(memory, manager))

        return run

    seconds, _ = measured({name: functools.partial(prepare, name) for name in variants}, thorough)
    best = min(seconds, key=lambda name: seconds[name])
    report(selection.name, seconds, best, time.perf_counter() - began)
    return Tuning(best, seconds)


def made_of_specs(
    values: Iterable[Any],
    kinds: tuple[Any, ...] = (TensorSpec,),
    otherwise: Callable[[], Manager] = default_manager,
) -> list[Any]:
    """The values with new tensors instead of specs, or of what is of other `kinds`: of the Manager that the
    tensors have, `otherwise` of another.
    """
    values = [list(each) if isinstance(each, tuple) else each for each in values]
    manager = next((each.manager for each in flat(values) if isinstance(each, (Tensor, Image))), None)

    def made(value: Any) -> Any:
        if isinstance(value, list):
            return [made(each) for each in value]
        return (manager or otherwise()).empty(value.shape, value.dtype) if isinstance(value, kinds) else value

    return [made(value) for value in values]


def places_by_name(
    selection: FunctionSelection, values: Sequence[Any], outs: Sequence[Any]
) -> dict[str, int]:
    """For each tensor that is given its place among all that is given, lists one by one."""
    found: dict[str, int] = {}
    at = 0
    for desc, value in zip(selection.arg_descs, values, strict=True):
        if isinstance(desc, TensorArg):
            found[desc.name] = at
        elif isinstance(desc, TensorListArg):
            found.update((item.name, at + number) for number, item in enumerate(desc.items))
        at += len(value) if type(value) is list else 1
    for number, result in enumerate(selection.results):
        if result.is_result and number < len(outs):
            found[result.name] = at + number
    return found


def host_bytes(arg: TensorArg, features: frozenset[str]) -> int:
    """The bytes of memory that stands for an array."""
    words = element_of(arg.dtype, features).words
    count = max(whole_words(arg.size) if words else arg.size, 4 if not arg.size else 1)
    return count * arg.dtype.itemsize


class _Part(NamedTuple):
    """A dispatch of a form."""

    step: Step
    names: list[str]
    """Of the memory by binding."""
    grid: tuple[int, int, int]
    push: bytes

    @property
    def bound(self) -> list[str]:
        """The names of all memory that it uses."""
        indirect = self.step.indirect
        return self.names if indirect is None else [*self.names, indirect.tensor]


class _Maker:
    def __init__(
        self,
        program: Program,
        selection: FunctionSelection,
        manager: Manager,
        calls: Calls,
        values: Sequence[Any],
        outs: Sequence[Any],
        shared: Sequence[int],
        gathers: bool,
        lending: Lending,
    ) -> None:
        self.shared = shared
        """The places of arguments that share memory with results: they are copied."""
        self.gathers = gathers
        self.lending = lending
        """Memory to make the form with; a call is lent its own."""
        self.program, self.selection = program, selection
        self.manager, self.calls, self.facts = manager, calls, calls.facts
        self.given = flat((*values, *outs))
        takes_tensors = any(each.is_tensor for each in selection._declaration.parameters)
        self.arrays = takes_tensors and not any(
            isinstance(value, (Tensor, StridedView, Image)) for value in self.given
        )
        self.results = {each.name for each in selection.results if each.is_result}
        self.written = {each.name for each in (*selection.results, *selection.inplace_tied_arg_descs)}
        self.places = places_by_name(selection, values, outs)
        """For each tensor that is given its place."""
        self.used: dict[str, Tensor] = {}
        """The tensors that are bound, by name."""
        self.lent: dict[str, StandIn] = {}
        self.fresh: dict[str, Fresh] = {}
        self.common: set[str] = set()
        """The names of the memory that all calls share."""
        self.blocks: list[Block] = []
        """Of the dispatches."""
        self.nbytes = 0
        """Of the common memory, what no other form has."""

    def made(self) -> Form:
        """The form."""
        self._take_memory()
        parts: list[_Part] = []
        if not self.selection._writes_nothing():  # else generators need not think of it
            self._make_bindable()
            parts = self._parts()
            # The program has the tables, too, and may be dropped first.
            self.nbytes += self.program.table_bytes
        made = [*self.fresh, *self.lent]
        results = [
            self.places[name] if name in self.places else -2 - made.index(name)
            for name in (each.name for each in self.selection.results)
        ]
        # A copy takes the place of what is given, and of a new result.
        numbers = {**self.places, **{name: -2 - number for number, name in enumerate(made)}}
        bound = dict.fromkeys(name for part in parts for name in part.bound)
        at = {name: number for number, name in enumerate(bound)}
        return Form(
            self.manager,
            self.blocks,
            list(self.fresh.values()),
            list(self.lent.values()),
            results,
            parts=[
                (
                    native,
                    [(0, binding, at[name]) for binding, name in enumerate(names)],
                    grid,
                    None if step.indirect is None else (at[step.indirect.tensor], 4 * step.indirect.offset),
                )
                for native, (step, names, grid, _) in zip(self._algorithms(parts), parts, strict=True)
            ],
            slots=[
                (-1, self.used[name]._native, 0) if name in self.common else (numbers[name], None, 0)
                for name in bound
            ],
            several=not self.selection._declaration.single,
            whole=[at[name] for name in self.results & bound.keys()],
            nbytes=self.nbytes,
        )

    def _lend(self, name: str, made: StandIn, dtype: np.dtype[Any], nbytes: int) -> Tensor:
        """Uses what is lent to a stand-in as the memory of `name`: so many bytes of it. Returns all of it."""
        lent = self.lending.bytes(len(self.lent), made.nbytes)
        self.lent[name] = made
        self.used[name] = lent._part(0, (nbytes // dtype.itemsize,), dtype)
        return lent

    # -- memory ----------------------------------------------------------------------------------------------

    def _take_memory(self) -> None:
        """The memory of each argument and result, as the caller knows it."""
        kind = None if self.arrays else memory_type_of(self.given)
        in_place = self.selection.op.in_place
        image = first_image(self.given) if self.selection.op.makes_images else None
        for arg in self.selection.tensors:
            name = arg.name
            place = self.places.get(name, -1)
            value = self.given[place] if place >= 0 else None
            if place < 0 and not self.arrays:
                reusable = tuple(
                    self.places[each.name]
                    for each in self.selection.tensors
                    if each.name in self.places
                    and (
                        each.name in arg._may_reuse
                        or (in_place and each.shape == arg.shape and each.strides is None)
                    )
                )
                picture = None if image is None else picture_like(image, arg.shape, arg.dtype)
                made = self.fresh[name] = Fresh(arg.shape, arg.dtype, kind, reusable, picture)
                if picture is None:
                    self.used[name] = made.made(self.manager)
                else:
                    self._copy(name, -1 - len(self.fresh), arg.shape, arg.dtype, False)
            elif isinstance(value, Image):
                self._copy(name, place, arg.shape, arg.dtype, name not in self.results)
            elif isinstance(value, Tensor):
                self.used[name] = value
            else:
                if name in self.written and isinstance(value, np.ndarray) and not value.flags.writeable:
                    raise InvalidArgumentError(f"{name} is written by the kernels and is a read-only array")
                if name in self.written and isinstance(value, StridedView):
                    value._require_apart()
                if isinstance(value, StridedView) and (self.gathers or name in self.written):
                    self._spread(name, place, arg, value)
                else:
                    self._host(name, place, arg)

    def _copy(self, name: str, place: int, shape: tuple[int, ...], dtype: np.dtype[Any], read: bool) -> None:
        """Memory that the kernels use as if it were what is given."""
        nbytes = whole_words(math.prod(shape)) * dtype.itemsize
        made = Copied(place, shape, dtype, nbytes, read, name in self.written)
        self._lend(name, made, dtype, nbytes)

    def _spread(self, name: str, place: int, arg: TensorArg, view: StridedView) -> None:
        """Dense memory for a part."""
        if not arg.size:
            self.used[name] = new_tensor(self.manager, arg.shape, arg.dtype, "storage")
            return
        nbytes = whole_words(arg.size) * arg.dtype.itemsize
        reach = reach_of(view, self.facts.alignment)
        made = Spread(place, arg.shape, arg.dtype, reach, nbytes, None, None)
        lent = self._lend(name, made, arg.dtype, nbytes)
        units = self.used[name].view(reach.unit)
        if reach.bindable:
            where = view.base._memory_type
            bound = buffer_tensor(
                bytes_of(view, reach), self.manager, (reach.units,), reach.unit, reach.units, where
            )
        else:
            bound = lent._part(made.begin, (reach.units,), reach.unit)

        def copying_form(spreads: bool) -> Form:
            device, features, _ = self.facts
            program, selection = copying(
                self.program.name, reach, spreads, device, features, self.manager._setting
            )
            given = [units, bound] if spreads else [bound, units]
            values = [*given, len(reach.axes), spreads]
            return make_form(program, selection, self.manager, self.calls, values, ())

        made.gather = None if name in self.results else copying_form(False)
        made.spread = copying_form(True) if name in self.written else None

    def _host(self, name: str, place: int, arg: TensorArg) -> None:
        """Memory for an array, or for a part that the host reads."""
        nbytes = host_bytes(arg, self.facts.features)
        read, written = name not in self.results, name in self.written
        self._lend(name, Lent(place, arg.shape, arg.dtype, nbytes, read, written), arg.dtype, nbytes)

    def _make_bindable(self) -> None:
        """Replaces tensors that shaders cannot bind by other memory."""
        for name, tensor in list(self.used.items()):
            if name in self.lent:
                continue
            if not tensor._count:
                # Vulkan binds no empty buffer; kernels know the size from elsewhere.
                self.used[name] = new_tensor(self.manager, (4,), tensor.dtype, "storage")
                self.common.add(name)
            elif (
                self.places.get(name) in self.shared
                or tensor._native.vk_offset % self.facts.alignment
                or (tensor.nbytes % 4 and element_of(tensor.dtype, self.facts.features).words)
            ):
                # Shaders cannot use a part that begins there or ends within a word: a copy takes its place.
                place = self.places[name] if name in self.places else -2 - list(self.fresh).index(name)
                self._copy(name, place, tensor._shape, tensor.dtype, place >= 0)

    def _check_ranges(self) -> None:
        """Raises InvalidArgumentError for memory beyond what a shader sees of one binding."""
        most = self.facts.properties["limits"]["maxStorageBufferRange"]
        for name, tensor in self.used.items():
            if tensor.nbytes <= most:
                continue
            scratch = name in self.common
            raise InvalidArgumentError(
                f"{self.program.name}: {name} {'needs' if scratch else 'has'} {tensor.nbytes} bytes, and "
                f"shaders of this device see at most {most} bytes of one binding "
                "(limits['maxStorageBufferRange']). "
                + (
                    "Call it with smaller tensors"
                    if scratch
                    else "Call it for parts, x[a:b], one after another"
                )
            )

    # -- dispatches ------------------------------------------------------------------------------------------

    def _parts(self) -> list[_Part]:
        numbers = numbers_of(self.program, self.selection)
        for name, tensor in scratch_of(self.program, numbers, self.manager):
            self.used[name] = tensor
            self.common.add(name)
            if not is_shared(self.manager, tensor):
                self.nbytes += tensor.nbytes
        for constant in self.program.tables:
            self.used[constant.name] = constant.tensor(self.manager)
            self.common.add(constant.name)
        self._check_ranges()
        check_indirect(self.program, self.selection)
        parts: list[_Part] = []
        for step in self.program.steps:
            grid = groups_of(step, numbers)
            if 0 in grid:
                continue
            names = list(step.source.tensors)
            block = Block(step.source, numbers, self.selection)
            if block.in_memory:
                name = f"kp_parameters{len(parts)}"
                nbytes = len(block.fixed)
                if block.fields:
                    self._lend(name, Numbers(len(self.blocks), nbytes), _BYTES, nbytes)
                    self.used[name] = self.used[name].view(np.uint32)
                else:
                    self.used[name] = self.manager.tensor_t(np.frombuffer(block.fixed, np.uint32))
                    self.common.add(name)
                names.append(name)
            self.blocks.append(block)
            parts.append(_Part(step, names, grid, b"" if block.in_memory else block.fixed))
        return parts

    def _algorithms(self, parts: list[_Part]) -> list[Any]:
        """The native algorithms of the dispatches. Pipelines that the device lacks are built side by side."""
        native = self.manager._native
        modules = {part.step.module for part in parts}
        new = [each for each in modules if not native.knows_pipeline(each._on(native), b"", [])]
        if len(new) < 2:
            return [self._algorithm(*each) for each in parts]
        return in_parallel(lambda each: self._algorithm(*each), parts)

    def _algorithm(self, step: Step, names: list[str], grid: tuple[int, int, int], push: bytes) -> Any:
        """The native algorithm of a dispatch."""
        manager, module = self.manager, step.module
        if step.source.known:  # needs no reflection in Python
            shader = module._on(manager._native)
            manager._check_groups(grid, "workgroup", shader, NO_SPECIALIZATION)
            natives = [self.used[name]._native for name in names]
            try:
                native = manager._native.algorithm(shader, natives, grid, b"", [], push)
            except InvalidArgumentError:
                pass  # the other way says it in terms of the shader
            else:
                native.name = module.name
                return native
        bound = [_as_bound(self.used[name], name in step.source.words) for name in names]
        with unreported():
            algorithm = manager.algorithm(bound, module, grid, (), push)
        algorithm.name = module.name
        return algorithm._built("run")


def _as_bound(tensor: Tensor, words: bool) -> Tensor:
    if words:
        return tensor.reshape(-1).view(np.uint32)
    if tensor.dtype == np.bool_ or is_small_float(tensor.dtype):
        return tensor.view(np.uint8 if tensor.dtype.itemsize == 1 else np.uint16)  # as kernels have them
    return tensor


def memory_type_of(given: Sequence[Any]) -> Any:
    """The memory type of new results: that of the first tensor."""
    for value in given:
        if isinstance(value, (Tensor, Image)):
            return value.memory_type()
        if isinstance(value, StridedView):
            return value.base.memory_type()
    return None
