"""Memory that stands for what a call was given, where a shader cannot use that, or not yet.

Each kind has the same shape: `bring` on the host before the work, `around` for what the device does before
and after the dispatches, `give_back` on the host after them. It knows how many bytes it needs, and has none:
each call is lent some (`lending.py`), and each recording gets its own. It finds what it stands for by the
place among all that is given, so that a prepared call holds nothing of a caller's.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .. import _native
from .._base.types import DEVICE, MemoryTypes
from .making import new_tensor
from .reach import Reach, bytes_of
from .scratch import aligned
from .strided import StridedView
from .tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from .._device.device import Device

Operations = list[Any]
"""Native operations, in order."""


class StandIn:
    """Memory that stands for what is given at a place; by itself it copies nothing."""

    def __init__(
        self,
        place: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        nbytes: int,
        read: bool = False,
        written: bool = False,
    ) -> None:
        self.place = place
        """-1 for what is not given, -2 - n for the new result n."""
        self.shape = shape
        self.dtype = dtype
        self.nbytes = nbytes
        """The bytes that it needs: those of its elements, and what kernels use beyond them."""
        self.read = read
        """Whether the kernels read what is given."""
        self.written = written

    def tensor(self, lent: Tensor) -> Tensor:
        """The elements of what it stands for, in what was lent."""
        return lent._part(0, self.shape, self.dtype)

    def bound(self, lent: Tensor) -> Any:
        """The native memory for the kernels, of what was lent."""
        return _native.view(lent._native, 0, self.nbytes)

    def bring(self, lent: Tensor, given: Any, numbers: Sequence[bytes]) -> None:
        """Copies what is `given`, by place, to the memory: on the host, before the work. `numbers` are the
        run-time numbers of the dispatches.
        """

    def around(self, lent: Tensor, given: Any) -> tuple[Operations, Operations]:
        """What the device does before and after the dispatches for what is `given` at the place."""
        return [], []

    def give_back(self, lent: Tensor, given: Any) -> None:
        """Copies the results to what is `given`, by place: on the host, after the work."""


class Lent(StandIn):
    """Memory for an array, or in a call for a part of a tensor that the host reads."""

    def bring(self, lent: Tensor, given: Any, numbers: Sequence[bytes]) -> None:
        if self.read:
            value = given[self.place]
            self.tensor(lent).write(value.read() if type(value) is StridedView else value)

    def give_back(self, lent: Tensor, given: Any) -> None:
        if self.written and self.place >= 0:
            self.tensor(lent).read(given[self.place])


class Numbers(StandIn):
    """Memory for run-time numbers of a dispatch, if push constants are too small for them."""

    def __init__(self, dispatch: int, nbytes: int) -> None:
        super().__init__(-1, (nbytes,), np.dtype(np.uint8), nbytes)
        self.dispatch = dispatch

    def bring(self, lent: Tensor, given: Any, numbers: Sequence[bytes]) -> None:
        self.tensor(lent).write(np.frombuffer(numbers[self.dispatch], np.uint8))


class Copied(StandIn):
    """Memory for what shaders cannot bind: an image, or a tensor that begins at an odd byte."""

    def around(self, lent: Tensor, given: Any) -> tuple[Operations, Operations]:
        native, copy = given._native, self.tensor(lent)._native
        return (
            [_native.op_copy([native, copy])] if self.read else [],
            [_native.op_copy([copy, native])] if self.written else [],
        )


class Copying(Protocol):
    """Kernels that copy between two pieces of native memory."""

    def over(self, natives: Sequence[Any]) -> Operations:
        """Their operations."""


class Spread(StandIn):
    """Dense memory for a part of a tensor that is not dense."""

    def __init__(
        self,
        place: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        reach: Reach,
        nbytes: int,
        gather: Copying | None,
        spread: Copying | None,
    ) -> None:
        """`nbytes` are those of the dense memory. Behind them is a copy of the bytes that the part reaches
        over, unless shaders bind these. `gather` copies the part to the dense memory before the dispatches,
        None if they do not read it; `spread` the other way, None if they do not write it.
        """
        self.dense = nbytes
        self.begin = aligned(nbytes)
        self.window = 0 if reach.bindable else reach.units * reach.unit.itemsize
        super().__init__(place, shape, dtype, self.begin + self.window)
        self.reach = reach
        self.gather = gather
        self.spread = spread

    def bound(self, lent: Tensor) -> Any:
        """The dense memory."""
        return _native.view(lent._native, 0, self.dense)

    def around(self, lent: Tensor, given: Any) -> tuple[Operations, Operations]:
        there, native = bytes_of(given, self.reach), self.bound(lent)
        if not self.window:
            before = [] if self.gather is None else self.gather.over([there, native])
            return before, [] if self.spread is None else self.spread.over([native, there])
        window = _native.view(lent._native, self.begin, self.window)
        copy = _native.view(lent._native, self.begin, self.reach.nbytes)
        fetch = _native.op_copy([there, copy])
        before = [] if self.gather is None else [fetch, *self.gather.over([window, native])]
        if self.spread is None:
            return before, []
        # Fetched again, because other results may lie between the elements of the part.
        return before, [fetch, *self.spread.over([native, window]), _native.op_copy([copy, there])]


class Makes(Protocol):
    """Facts of an Image that a call makes."""

    def made(self, manager: Device, shape: tuple[int, ...], memory_type: Any) -> Any:
        """A new image."""


class Fresh(NamedTuple):
    """A result that each call makes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory_type: Any
    may_reuse: tuple[int, ...]
    """The places of arguments that may give it their memory."""
    picture: Makes | None = None
    """If it is an Image."""
    zeros: bool = False
    """Whether it begins as zeros; else its contents are undefined."""

    @property
    def where(self) -> MemoryTypes:
        """Its memory type."""
        return self.memory_type or MemoryTypes.device

    def made(self, manager: Device) -> Any:
        """A new tensor for it, or an image."""
        if self.picture is not None:
            return self.picture.made(manager, self.shape, self.memory_type)
        return new_tensor(manager, self.shape, self.dtype, self.memory_type, b"\0" if self.zeros else None)

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


def made_natively(results: Sequence[Fresh], manager: Device) -> dict[str, Any]:
    """What a `_native.CallForm` is told of the results that its calls make: Tensors."""
    if not results:
        return {}
    facts = [(each.shape, each.dtype, math.prod(each.shape), each.where) for each in results]
    return {
        "fresh": [
            (count * dtype.itemsize, int(where), each.zeros)
            for each, (_, dtype, count, where) in zip(results, facts, strict=True)
        ],
        "tensors": functools.partial(_tensors, facts, weakref.ref(manager)),
    }


def _tensors(facts: Sequence[Any], manager: weakref.ref[Device], natives: Sequence[Any]) -> list[Tensor]:
    """The new results of a call, in this memory."""
    owner = manager()
    assert owner is not None  # the tensors among the arguments have it
    made = []
    for number, (shape, dtype, count, where) in enumerate(facts):
        made.append(buffer_tensor(natives[number], owner, shape, dtype, count, where))
    if where is not DEVICE:
        owner._after(where)
    return made
