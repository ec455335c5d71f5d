"""The memory that something will need, before it runs: one sum for kernels, functions, recordings, programs.

A call under a `Plan` goes the way of every call, to the place where it would take memory. There it tells the
plan how much, and its results are `Imagined`, so that functions of several others add up with what lives at
the same time.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import UnimplementedError
from .._base.text import binary_size
from .._base.types import DEVICE
from .image import Image
from .lending import capacity
from .memory import Memory
from .scratch import pooled
from .strided import StridedView
from .tensor import Tensor

if TYPE_CHECKING:
    from .._base.types import MemoryTypes
    from .._device.device import Device


class MemoryNeeds(NamedTuple):
    """The memory that a call, a recording or a program needs, in bytes: the result of `memory_needs` of a
    Kernel, a Function, a Sequence, a Program and its entries. Its text is a line.

    >>> needs = kp.ops.add.memory_needs(kp.TensorSpec(1000), kp.TensorSpec(1000))
    >>> needs.inputs, needs.outputs, needs.scratch
    (8000, 4000, 0)
    """

    code: int
    """The shaders' SPIR-V, in the host's memory. Drivers make code of their own of it; Vulkan does not tell
    its size."""
    inputs: int
    """Device memory of arguments that are only read: of Tensors their own, of an array the buffer that stands
    for it."""
    outputs: int
    """Device memory of new results and of arguments that are written."""
    scratch: int
    """Device memory that is needed besides, at most at one time: what dispatches and functions pass to each
    other, tables, copies of what shaders cannot bind. Operations of a Manager share much of it and keep it;
    this counts as if there were none yet."""

    @property
    def total(self) -> int:
        """All of the device's memory: inputs, outputs and scratch."""
        return self.inputs + self.outputs + self.scratch

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {binary_size(getattr(self, name))}" for name in self._fields[1:])
        return f"{binary_size(self.total)} ({parts}), code {binary_size(self.code)}"


MemoryNeeds.__module__ = "kompute_py"  # public; imported when first used


class _Nothing:
    """Stands for native memory."""

    __slots__ = ("vk_offset",)

    name = taker = ""
    host_address = 0
    host_visible = shareable = False

    def __init__(self, offset: int) -> None:
        self.vk_offset = offset

    @staticmethod
    def is_init() -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        raise UnimplementedError(
            "The memory of this call follows from contents that it computes: it is known when it runs"
        )


class Imagined(Tensor):
    """A Tensor without memory. Calls look at all but its contents."""

    __slots__ = ("is_lent",)

    is_lent: bool
    """Whether it stands for an array."""

    @staticmethod
    def of(
        manager: Device,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        kind: MemoryTypes = DEVICE,
        offset: int = 0,
        is_lent: bool = False,
    ) -> Imagined:
        """A new one; `offset` is the byte where it begins."""
        made = Imagined.__new__(Imagined)
        native: Any = _Nothing(offset)
        made._native, made._is_init, made._manager = native, native.is_init, manager
        made._shape, made._dtype, made._count, made._memory_type = shape, dtype, math.prod(shape), kind
        made._view = made._host = None
        made.is_lent = is_lent
        return made

    def _part(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Imagined:
        at = self._native.vk_offset + offset
        part = Imagined.of(self._manager, shape, dtype, self._memory_type, at, self.is_lent)
        part._base = self if self.base is None else self.base
        return part

    def write(self, data: object, region: object = None, **options: object) -> None:
        """Writing takes no memory."""

    __setitem__ = write


class _Current(threading.local):
    plan: Plan | None = None


current = _Current()
"""Its `plan` is that of the call that this thread plans, or None."""


class Plan:
    """Adds up memory. ``with plan:`` makes calls of this thread tell it, instead of running."""

    def __init__(self, manager: Device | None = None) -> None:
        self._manager = manager
        self._given: dict[int, tuple[Any, int, bool]] = {}
        """The memory that is given: its root, its bytes, whether the sum of what is held has them."""
        self._imagined: dict[int, tuple[Any, Any]] = {}
        self._written: set[int] = set()
        self._code: dict[bytes, int] = {}
        self._kept: dict[tuple[int, ...], object] = {}
        self._pool = 0
        self._held = 0
        self._most = 0

    def __enter__(self) -> Plan:
        self._outer, current.plan = current.plan, self
        return self

    def __exit__(self, *error: object) -> None:
        current.plan = self._outer

    # -- what a call is given --------------------------------------------------------------------------------

    def imagine(self, value: Any) -> Any:
        """An argument: memory and specs without their memory, lists with theirs, anything else as it is."""
        if isinstance(value, (list, tuple)):
            found = [self.imagine(each) for each in value]
            return type(value)(found) if type(value) in (list, tuple) else value
        if isinstance(value, Mapping):
            return {name: self.imagine(each) for name, each in value.items()}
        known = self._imagined.get(id(value))
        if known is not None:
            return known[1]
        made: Imagined | StridedView
        if isinstance(value, Tensor):
            value._require_init("be used")
            made = self._of_tensor(value)
        elif isinstance(value, StridedView):
            value._require_init("be used")
            made = StridedView(self._of_tensor(value._base), value._first, value.shape, value._strides)
        elif isinstance(value, np.ndarray) and value.ndim:
            self.gives(value, capacity(value.nbytes), True)
            return value
        elif type(value).__name__ == "TensorSpec":
            assert self._manager is not None
            made = Imagined.of(self._manager, value.shape, value.dtype)
        else:
            image = getattr(value, "_image", value)  # of a sampled image
            if isinstance(image, Image):
                self.gives(image, image.nbytes)
            return value
        self._imagined[id(value)] = value, made
        self.gives(made, made.nbytes)
        return made

    def _of_tensor(self, tensor: Tensor) -> Imagined:
        base = tensor if tensor.base is None else tensor.base
        known = self._imagined.get(-id(base))
        if known is None:
            made = Imagined.of(
                base._manager, base._shape, base._dtype, base._memory_type, base._native.vk_offset
            )
            known = self._imagined[-id(base)] = base, made
        if base is tensor:
            return known[1]  # type: ignore[no-any-return]
        offset = tensor._native.vk_offset - base._native.vk_offset
        return known[1]._part(offset, tensor._shape, tensor._dtype)  # type: ignore[no-any-return]

    def gives(self, memory: Any, nbytes: int, is_lent: bool = False) -> None:
        """So many bytes are those of an argument, of one that is written if `writes` tells so. A part counts
        as itself, once."""
        self._given[id(memory)] = memory, nbytes, is_lent

    def writes(self, memory: Any) -> None:
        """The memory is written."""
        self._written.add(id(_root(memory)))

    # -- what it takes ---------------------------------------------------------------------------------------

    def takes(self, nbytes: int) -> None:
        """Holds so many bytes more; a negative number gives some back."""
        self._held += nbytes
        self._most = max(self._most, self._held)

    def keeps(self, owner: object, nbytes: int, *which: int) -> None:
        """Holds so many bytes of an owner until the end, once for each `which`."""
        key = (id(owner), *which)
        if key not in self._kept:
            self._kept[key] = owner
            self.takes(nbytes)

    def lends(self, owner: object, number: int, nbytes: int) -> None:
        """Memory that `Lending` lends to the calls of an owner, for the need `number`."""
        self.keeps(owner, capacity(nbytes), number, capacity(nbytes))

    def pools(self, nbytes: int) -> None:
        """So many bytes of the operations' common scratch memory."""
        if nbytes > self._pool:
            assert self._manager is not None
            self._pool = pooled(self._manager, nbytes, self._pool)
            self.takes(self._pool)

    def runs(self, spirv: bytes) -> None:
        """A shader."""
        self._code[spirv] = len(spirv)

    def makes(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], kind: MemoryTypes | None, is_lent: bool = False
    ) -> Imagined:
        """A new Tensor, held while it is alive; one that stands for an array has memory elsewhere."""
        assert self._manager is not None
        made = Imagined.of(self._manager, shape, dtype, kind or DEVICE, 0, is_lent)
        if not is_lent:
            self.counts(made)
        return made

    def counts(self, made: Memory) -> None:
        """Holds the bytes of new memory while it is alive."""
        self.takes(made.nbytes)
        weakref.finalize(made, self.takes, -made.nbytes).atexit = False

    # -- the sum ---------------------------------------------------------------------------------------------

    def needs(self, results: Any = ()) -> MemoryNeeds:
        """The sum; `results` are those of the call."""
        sums = {(written, lent): 0 for written in (True, False) for lent in (True, False)}
        for memory, nbytes, is_lent in self._given.values():
            sums[id(_root(memory)) in self._written, is_lent] += nbytes
        fresh = {id(_root(each)): _root(each) for each in _memories(results)}
        given = {id(_root(memory)) for memory, _, _ in self._given.values()}
        outputs = sum(
            capacity(each.nbytes) if getattr(each, "is_lent", False) else each.nbytes
            for key, each in fresh.items()
            if key not in given
        )
        scratch = self._most - outputs - sums[True, True] - sums[False, True]
        return MemoryNeeds(
            sum(self._code.values()),
            sums[False, False] + sums[False, True],
            sums[True, False] + sums[True, True] + outputs,
            max(scratch, 0),
        )


def _root(memory: Any) -> Any:
    base = memory.base if isinstance(memory, (Tensor, StridedView)) else None
    return memory if base is None else base


def _memories(results: Any) -> Iterable[Any]:
    listed = results if isinstance(results, (list, tuple)) else (results,)
    return [each for each in listed if isinstance(each, (Memory, StridedView))]


def planned(
    manager: Device, call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> MemoryNeeds:
    """The needs of a call, which does not run."""
    plan = Plan(manager)
    given, by_name = plan.imagine(args), plan.imagine(named)
    with plan:
        results = call(*given, **by_name)
    return plan.needs(results)
