"""Forms: calls of an operation that were prepared for certain shapes, dtypes and attributes.

A call is looked up by what its kernels, grids and results depend on, and a form runs it over whatever memory
the call has: the native `ProgramLine` binds it, records, submits, waits and lets go of it. Run-time numbers
are not in the key, unless `select` looked at them.
"""

from __future__ import annotations

import itertools
import math
import random
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._base.errors import InternalError, InvalidArgumentError
from .._device.kept import make_room
from .._memory.image import Image
from .._memory.memory import seen_by_others
from .._memory.strided import StridedView
from .._memory.tensor import Tensor, buffer_tensor
from .arguments import NUMPY_NUMBERS
from .names import text_of
from .parts import Reach, bytes_of, place_of, root_of
from .pictures import Picture
from .program import Block, Program

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._memory.donation import Donated

_MOST_KEYS = 1 << 14
"""Kinds of calls that an operation knows for a Manager."""
_ALIGNMENT = 256  # the largest minStorageBufferOffsetAlignment that Vulkan allows
_VIEW = _native.BufferView
_NUMBERS = (int, float, bool, complex, np.generic)
_BASES = (Tensor, Image, np.ndarray, StridedView, np.generic)
"""Of what `look` gets, the types that may have subclasses."""
_SCALARS = frozenset((float, int, bool, complex, *NUMPY_NUMBERS))
_MEMORYLESS = frozenset((np.ndarray, int, float, bool, complex, str, type(None)))
_KNOWN = frozenset((Tensor, np.ndarray, int, float, bool, complex, str, type(None), list, StridedView, Image))


def flat(values: Sequence[Any]) -> list[Any]:
    """`values` with the items of lists in their places."""
    if list not in map(type, values):
        return list(values)
    found: list[Any] = []
    for value in values:
        if type(value) is list:
            found += value
        else:
            found.append(value)
    return found


def bases(values: Sequence[Any], written: Sequence[int] = ()) -> list[Any]:
    """`values` with the tensors of parts in their places, except for those at the places `written`."""
    return [
        each
        if place in written
        else each._base
        if type(each) is StridedView
        else bases(each)
        if type(each) is list
        else each
        for place, each in enumerate(values)
    ]


def overlapping(
    who: str, values: Sequence[Any], outs: Sequence[Any], in_place: bool, written: Sequence[int] = ()
) -> tuple[int, ...]:
    """The places of tensors that share memory with `outs`, or with the arguments at the places `written`, so
    that kernels would read what they have written.

    With `in_place`, memory that is the same for the same elements does no harm. Raises InvalidArgumentError,
    beginning with `who`, if two that are written share memory.
    """
    given = flat(values)
    targets = [each for each in (*outs, *(given[place] for place in written)) if each is not None]
    if len(targets) > 1:
        _require_apart(who, targets)
    memory = [each for each in targets if isinstance(each, Tensor)]
    if not memory or surely_apart(given, outs):
        return ()
    found = []
    extents = [(out, _extent(out)) for out in memory if out.nbytes]
    for place, value in enumerate(given):
        base = value._base if type(value) is StridedView else value
        if place in written or not isinstance(base, Tensor) or not base.nbytes:
            continue
        own = _extent(base)
        for out, theirs in extents:
            if not _meet(own, theirs):
                continue
            same = own[1] == theirs[1] and value.shape == out.shape and value.itemsize == out.itemsize
            if not (in_place and same and base is value):
                found.append(place)
                break
    return tuple(found)


def surely_apart(values: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Whether all tensors have memory of their own: the common case."""
    seen: list[Any] = []
    others = len(seen_by_others)
    for each in (*values, *outs):
        kind = type(each)
        if kind is Tensor:
            native = each._native
            if type(native) is _VIEW or native in seen or (others and each in seen_by_others):
                return False
            seen.append(native)
        elif kind in _MEMORYLESS:
            continue
        elif kind is StridedView or isinstance(each, Tensor) or (kind is list and not _of_ints(each)):
            return False
    return True


def _of_ints(values: list[Any]) -> bool:
    return all(type(each) is int for each in values)


def _require_apart(who: str, targets: Sequence[Any]) -> None:
    for number, one in enumerate(targets):
        for other in targets[:number]:
            if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
                apart = not np.may_share_memory(one, other) or not np.shares_memory(one, other)
            elif isinstance(one, (Tensor, StridedView)) and isinstance(other, (Tensor, StridedView)):
                apart = not _share_elements(one, other)
            else:
                apart = one is not other
            if not apart:
                raise InvalidArgumentError(
                    f"{who}: two of the tensors that it writes share memory, so one would be lost; give each "
                    "memory of its own"
                )


def refuse_donated(who: str, tensors: Sequence[Tensor], written: Sequence[Any]) -> None:
    """Raises InvalidArgumentError, beginning with `who`, if a tensor to donate shares memory with one
    that the call writes: that would end with it.
    """
    for tensor in tensors:
        for each in written:
            if isinstance(each, StridedView):
                each = each._base
            if isinstance(each, Tensor) and (tensor is each or _meet(_extent(tensor), _extent(each))):
                raise InvalidArgumentError(
                    f"{who}: the donated {tensor._describe()} shares memory with a result, which would "
                    "end with it: donate nothing, the result is in its memory already"
                )


def _share_elements(one: Tensor | StridedView, other: Tensor | StridedView) -> bool:
    """Whether two tensors or parts of tensors share an element."""
    if not one.nbytes or not other.nbytes:
        return False
    bases = [each._base if isinstance(each, StridedView) else each for each in (one, other)]
    extents = [_extent(each) for each in bases]
    if not _meet(*extents):
        return False
    arrays = []
    for each, base, (_, begin, _) in zip((one, other), bases, extents, strict=True):
        first = each._first * each.itemsize if isinstance(each, StridedView) else 0
        strides = each.strides if isinstance(each, StridedView) else None
        arrays.append(_Addressed(begin + first + 1, each.shape, strides, base.itemsize))
    try:
        share: Any = np.shares_memory  # its type allows only two numbers for the work
        return bool(share(np.asarray(arrays[0]), np.asarray(arrays[1]), max_work=1 << 20))
    except getattr(np, "exceptions", np).TooHardError:  # older versions of NumPy have it at the top
        return True


class _Addressed:
    """Elements at addresses for NumPy's arithmetic alone: nothing is there."""

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
    ) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


def _meet(one: tuple[Any, int, int], other: tuple[Any, int, int]) -> bool:
    """Whether two extents share bytes."""
    return bool(one[0] == other[0]) and one[1] < other[2] and other[1] < one[2]


def _extent(tensor: Tensor) -> tuple[Any, int, int]:
    """An address space, the first byte in it and that after the last. Two tensors over the same memory of the
    process, such as two imports of an array, differ in all but these.
    """
    address = tensor._native.host_address
    if address:
        return "host", address, address + tensor.nbytes
    offset = tensor._native.vk_offset
    return id(root_of(tensor)), offset, offset + tensor.nbytes


def look(
    who: str, given: Sequence[Any], parts_differ: bool = False
) -> tuple[tuple[Any, ...], Manager | None]:
    """All that a prepared call depends on, with the types instead of numbers; and the Manager.

    Raises InvalidArgumentError, beginning with `who`, for tensors of two Managers.
    """
    parts: list[Any] = []
    add = parts.append
    manager: Manager | None = None
    for each in given:
        kind: Any = type(each)
        if kind in _SCALARS:
            add(kind)
            continue
        if kind is not Tensor and kind not in _KNOWN:
            kind = next((base for base in _BASES if isinstance(each, base)), kind)
        if kind is Tensor:
            own = each._manager
            if manager is None:
                manager = own
                add(each._memory_type._value_)
            elif own is not manager:
                raise _of_two_managers(who)
            add(each._shape)
            add(each._dtype)
            native = each._native
            if type(native) is _VIEW:
                add(native.vk_offset % _ALIGNMENT)
        elif kind is np.ndarray:
            parts.append((each.shape, each.dtype, each.flags.writeable))
        elif kind is str or each is None:
            parts.append(each)
        elif kind is list:
            if not each or not isinstance(each[0], (Tensor, np.ndarray, StridedView, Image)):
                parts.append(("list", text_of(each)))
                continue
            inner, own = look(who, each, parts_differ)
            parts.append(("list", inner))
            if own is not None and manager is not None and own is not manager:
                raise _of_two_managers(who)
            manager = own if manager is None else manager
        elif kind is StridedView:
            if manager is not None and each.manager is not manager:
                raise _of_two_managers(who)
            manager = each.manager
            base = each._base
            parts.append(("part", each.shape, each.dtype, base._memory_type._value_))
            if parts_differ:
                at = base.vk_offset % _ALIGNMENT
                parts.append((each._first, each._strides, base._shape, at))
        elif kind is Image:
            if manager is not None and each._manager is not manager:
                raise _of_two_managers(who)
            manager = each._manager
            parts.append(("image", each.shape, each.dtype, each._format.name, each._size))
            parts.append(each._memory_type._value_)
        elif kind in _NUMBERS:
            parts.append(type(each))
        else:
            raise InternalError(f"{who}: {kind} among the arguments of a prepared call")
    return tuple(parts), manager


def look_at_parts(written: Sequence[Any]) -> tuple[Any, ...]:
    """All that a prepared call depends on of parts that it writes."""
    return tuple([place_of(each) for each in written if type(each) is StridedView])


def _of_two_managers(who: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{who}: its tensors belong to two Managers; copy one: t.to(manager)")


class Fresh(NamedTuple):
    """A result that each call makes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory_type: Any
    may_reuse: tuple[int, ...]
    """The places of arguments that may give it their memory."""
    picture: Picture | None = None
    """If it is an Image."""

    def made(self, manager: Manager) -> Any:
        """A new tensor for it, or an image."""
        if self.picture is not None:
            return self.picture.made(manager, self.shape, self.memory_type)
        return manager._made(self.shape, self.dtype, self.memory_type, None)

    def fits(self, place: int, given: Sequence[Any]) -> bool:
        """Whether it can have the memory of the argument there."""
        tensor = given[place]
        return (
            place in self.may_reuse
            and self.picture is None
            and 0 < tensor.nbytes == math.prod(self.shape) * self.dtype.itemsize
            and (self.memory_type is None or tensor._memory_type is self.memory_type)
            and sum(each is tensor for each in given) == 1
        )

    def over(self, tensor: Tensor) -> Tensor:
        """A tensor for it with the memory of another."""
        count = math.prod(self.shape)
        return buffer_tensor(
            tensor._native, tensor._manager, self.shape, self.dtype, count, tensor._memory_type
        )


class Host(NamedTuple):
    """Memory of the form that stands for an array, or for a part of a tensor that is not dense."""

    place: int
    """The array's place among what is given; -1 for a result that the call makes."""
    native: Any
    array: np.ndarray[Any, Any]
    """Its host copy."""


class Copied(NamedTuple):
    """Memory that stands for what shaders cannot bind: an image, or a tensor that begins at an odd byte."""

    place: int
    """Its place among what is given; -1 - n for result n of `Form.fresh`."""
    native: Any
    """The memory that the shaders bind."""
    read: bool
    """Whether it is copied before the dispatches."""
    written: bool
    """Whether it is copied back after them."""


class Spread(NamedTuple):
    """Dense memory that stands for a part of a tensor that is not dense."""

    place: int
    reach: Reach
    native: Any
    """The dense memory."""
    window: Any
    """Native memory that stands for the bytes that the part reaches over; None if shaders bind these."""
    gather: Form | None
    """Copies the part to the dense memory before the dispatches; None if they do not read it."""
    spread: Form | None
    """Copies the dense memory to the part after them; None if they do not write it."""

    def operations(self, view: StridedView) -> tuple[list[Any], list[Any]]:
        """The native operations before and after the dispatches."""
        there = bytes_of(view, self.reach)
        if self.window is None:
            before = [] if self.gather is None else self.gather.over([there, self.native])
            return before, [] if self.spread is None else self.spread.over([self.native, there])
        copy = _native.view(self.window, 0, self.reach.nbytes)
        fetch = _native.op_copy([there, copy])
        before = [] if self.gather is None else [fetch, *self.gather.over([self.window, self.native])]
        if self.spread is None:
            return before, []
        # Fetched again, because other results may lie between the elements of the part.
        return before, [
            fetch,
            *self.spread.over([self.native, self.window]),
            _native.op_copy([copy, there]),
        ]


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
        self.inputs: list[Host] = []
        self.outputs: list[Host] = []
        self.before: list[Any] = []
        """Native operations before the dispatches, and after them."""
        self.after: list[Any] = []
        self.copied: list[Copied] = []
        self.spreads: list[Spread] = []
        self.results: list[tuple[int, int]] = []
        """(GIVEN, FRESH or HOST, its number) of each result."""
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
        if not self.copied and not self.spreads:
            return self.before, self.after
        before, after = list(self.before), []
        for each in self.spreads:
            first, last = each.operations(given[each.place])
            before += first
            after += last
        for place, copy, read, written in self.copied:
            native = (given[place] if place >= 0 else fresh[-1 - place])._native
            if read:
                before.append(_native.op_copy([native, copy]))
            if written:
                after.append(_native.op_copy([copy, native]))
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
        for number, each in enumerate(self.fresh):
            place = reused.get(number) if reused else None
            fresh.append(each.made(manager) if place is None else each.over(given[place]))
        for host in self.inputs:
            value = given[host.place]
            np.copyto(host.array, value.read() if type(value) is StridedView else value)
        if self.line is not None:
            self.line.run(self.memory(given, fresh), push, *self.around(given, fresh))
            watch = manager._watch
            if watch is not None:
                watch()
        for host in self.outputs:
            if host.place >= 0:
                np.copyto(given[host.place], host.array)
        results = []
        for what, number in self.results:
            if what == HOST:
                results.append(self.outputs[number].array.copy())
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


def require_alive(given: Sequence[Any]) -> None:
    """Raises the error that names the tensor if one is destroyed or donated."""
    for each in flat(given):
        if isinstance(each, (Tensor, StridedView, Image)):
            each._require_init("be used")


def places_of(given: Sequence[Any], tensors: Sequence[Tensor]) -> list[int]:
    """The places of `tensors` among all that is given, lists one by one."""
    return [place for place, each in enumerate(flat(given)) if any(each is tensor for tensor in tensors)]


def with_taken(values: Sequence[Any], donated: Sequence[Donated]) -> list[Any]:
    """`values` with what the call has taken instead of donated tensors, in lists and parts, too."""
    return [_with_taken(each, {id(one.given): one.taken for one in donated}) for each in values]


def _with_taken(value: Any, instead: Mapping[int, Tensor]) -> Any:
    if type(value) is list:
        return [_with_taken(each, instead) for each in value]
    if type(value) is StridedView and id(value.base) in instead:
        return StridedView(instead[id(value.base)], value._first, value._shape, value._strides)
    return instead.get(id(value), value)


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
