"""Calls that are prepared once: native/bindings/call_table.hpp runs them with no Python code.

The first call of a kind goes through all checks of `Kernel._run`, and `teach` tells the table what they
found. What the checks look at is part of the table's key: shapes, dtypes, names, the grid. Only the values of
push constants are not; if a check depends on them, the table asks a `PushCheck` before new ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import _native
from .._base.errors import KomputeError
from .._memory.lending import Lending
from .._memory.making import new_tensor
from .._memory.memory import Memory
from .._memory.sampler import Bindable
from .._memory.stand_ins import Fresh, made_natively
from .._memory.tensor import Tensor
from .._shaders.signature import MISSING, Signature
from .call import Call
from .version import Version

_MOST_ENTRIES = 16384
"""Descriptor sets that a kernel keeps, some 3 KiB of host memory each."""
_RESERVED = ("grid", "groups", "indirect", "uses", "bind", "push", "wait", "signal", "donate")


def table_for(version: Version) -> _native.CallTable:
    """An empty table for calls of a kernel."""
    signature, name = version.signature, version.name
    push = signature.push
    bindings = dict.fromkeys(p.name for p in signature.parameters if p.name not in _RESERVED)
    references = () if push is None else push.reference_names
    bindings.update(dict.fromkeys(("out", "indirect", "uses", *references)))
    constants = () if push is None else [each for each in push.names if each not in references]
    return _native.CallTable(
        tensor_type=Tensor,
        bindings=list(bindings),
        counts=["grid", "groups"],
        constants=[each for each in constants if each not in _RESERVED],
        manager=version.manager,
        fields=[] if push is None else push.numbers,
        push_size=0 if push is None else push.size,
        pack=None if push is None else partial(push.pack_named, who=name),
        parameters=len(signature.parameters),
        missing=MISSING,
        most_entries=_MOST_ENTRIES,
    )


def sources(signature: Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[int, int]:
    """For each parameter that is given, the number of its value: positional ones first, then by keyword."""
    found = {i: i for i in range(len(args))}
    for number, name in enumerate(keywords, len(args)):
        position = signature.position(name)
        if position is None and name == "out":
            position = signature.position(signature.written[0].name)
        if position is not None and name not in _RESERVED:
            found[position] = number
    return found


class Described:
    """The facts of a call's memory that its checks look at, without the memory itself."""

    __slots__ = ("_count", "_dtype", "_format", "_is_image", "_shape", "_size", "nbytes")

    def __init__(self, memory: Any) -> None:
        memory = getattr(memory, "_image", memory)  # of a sampled image
        self._is_image = memory._is_image
        if isinstance(memory, Memory):
            self._shape, self._dtype, self._count = memory._shape, memory._dtype, memory._count
            self.nbytes = memory.nbytes
        if self._is_image:
            self._size, self._format = memory._size, memory._format


def _described(memory: Any) -> Any:
    if type(memory) is tuple:
        return tuple(map(_described, memory))
    return memory if memory is MISSING else Described(memory)


class PushCheck:
    """Repeats the checks of a call for other push constants."""

    __slots__ = ("_bound", "_launch", "_outputs", "_version")

    def __init__(self, call: Call) -> None:
        self._version = call.version
        self._bound = tuple(map(_described, call.bound))
        self._launch = call.launch
        self._outputs = call.outputs

    def __call__(self, push: bytes) -> bool:
        """Whether the call passes with these push constants. The longer way raises the error if not."""
        version, launch = self._version, self._launch._replace(push=push)
        places = tuple([each.position for each in self._outputs])
        try:
            if places:
                maker = version.launches.outputs
                given = tuple(MISSING if i in places else each for i, each in enumerate(self._bound))
                chosen = None if launch.by_default else launch
                if maker.shapes(version.name, places, given, chosen) != self._outputs:
                    return False
                maker.check(version.name, self._outputs, self._bound, launch)
            version.check(self._bound, launch, places)
        except KomputeError:
            return False
        return True


def teach(table: _native.CallTable, call: Call, dispatch: _native.BoundDispatch) -> None:
    """Tells `table` what a call has found, if calls of its kind can be recognized."""
    signature, launches, launch = call.version.signature, call.version.launches, call.launch
    parameters = signature.parameters
    decided = any(p.texels == "" for p in parameters)  # formats, by these tensors
    number_of = sources(signature, call.args, call.keywords)
    made = {output.position: output for output in call.outputs}
    places: list[tuple[int, int, int]] = []
    slots: list[Any] = []
    results: list[Any] = []
    fresh: list[Fresh] = []
    arrays, plain = False, True
    others: list[Any] = [*launch.references]
    """Memory that the form has for these tensors alone."""
    if launch.indirect is not None:
        others.append(call.keywords["indirect"])
    for i, (parameter, value, memory) in enumerate(zip(parameters, call.values, call.bound, strict=True)):
        if memory is MISSING:
            continue
        if parameter.descriptors != 1:
            others += memory
            continue
        number = number_of.get(i, -1)
        native = None
        if i in made:
            output = made[i]
            if output.format is not None or not output.elements:
                return  # an Image; a buffer cannot be empty
            if call.results[i] is memory:
                fresh.append(output.fresh)
                number = -1 - len(fresh)
                results.append((number, None, None))
            else:
                native = memory._native
                results.append((-1, native, partial(np.zeros, output.shape, output.dtype)))
        elif isinstance(value, (Memory, Bindable)):
            if memory is not value:
                return  # a part that begins at an odd byte
            plain = plain and type(value) is Tensor
        elif type(value) is not np.ndarray or value.dtype != memory._dtype or number < 0:
            return
        else:
            native = memory._native
            if parameter.written:
                results.append((number, native, None))
        arrays = arrays or native is not None
        places.append((parameter.set, parameter.binding, len(slots)))
        slots.append((number, native, i))
    differs = bool(launches.sizes.differing(call.bound))
    warns = differs and launch.by_default  # each call does, of what it leaves out
    known = plain and not warns and not decided and not others
    if (arrays and (warns or decided)) or (fresh and not known):
        return
    check = None
    if signature.push is not None and (call.outputs or launches.asks_push(call.bound, launch)):
        check = PushCheck(call)
    values = [*call.args, *call.keywords.values(), *others]
    slots += [(len(values) - 1 - number, None, 0) for number in range(len(others))]
    form = _native.CallForm(
        parts=[(dispatch.algorithm, places, launch.groups, None)],
        slots=slots,
        results=results,
        push=[launch.push],
        check=check,
        info=None if others else (launch.extent, launch.groups, launch.by_default),
        **made_natively(fresh, call.version.manager),
    )
    if known:
        family = None if check is not None or differs or call.outputs else _family(call)
        table.learn(call.args, call.keywords, form, family)
    else:
        table.remember(call.args, call.keywords, form, values, (), dispatch)


def teach_ahead(table: _native.CallTable, version: Version, lending: Lending) -> None:
    """Tells `table` of calls with a Tensor or an array for each binding, by position, and each push constant,
    by name, whatever their sizes and values; of none if more than that decides about them.
    """
    signature = version.signature
    dtypes = [each for each in signature.plain if each is not None]
    used = [each for each in signature.parameters if each.used and each.descriptors == 1]
    if not len(dtypes) == len(used) == len(signature.parameters):
        return
    numbers = {} if signature.push is None else dict.fromkeys(signature.push.names, 0)
    with contextlib.suppress(KomputeError):  # a call says it, of its own arguments
        given: list[tuple[Any, ...]] = [
            tuple([new_tensor(version.manager, (64,), dtype, "storage") for dtype in dtypes])
        ]
        if not version.manager._looks_at_arrays:
            given.append(tuple([np.zeros(64, dtype) for dtype in dtypes]))
        for args in given:
            call = Call(version, args, numbers, lending)
            teach(table, call, version.operation(call.bound, call.launch))


def _family(call: Call) -> tuple[int, int, int, int, list[list[tuple[int, int, int]]]] | None:
    """The `family` for `CallTable.learn`: what decides calls with other shapes. None if more decides than
    numbers of elements.
    """
    signature, launches = call.version.signature, call.version.launches
    bound, by_default = call.bound, call.launch.by_default
    for dtype, memory in zip(signature.plain, bound, strict=True):
        if memory is not MISSING and (dtype is None or memory._dtype != dtype):
            return None  # a shape that `check_argument` looks at
    line = launches.line(bound, by_default)
    if line is None:
        return None
    source, stride, axis = line
    local_size = signature.local_size[axis] if by_default else 1
    equal = [
        [(use.position, use.offset, use.stride) for use in uses]
        for _, uses in launches.sizes.groups
        if all(bound[use.position] is not MISSING for use in uses)
    ]
    return source, stride, axis, local_size, equal
