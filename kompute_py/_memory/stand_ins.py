"""Memory that stands for what a call was given, where a shader cannot use that, or not yet.

Each kind has the same shape: `bring` on the host before the work, `around` for what the device does before
and after the dispatches, `give_back` on the host after them. What it stands for is found by its place among
what is given, so that a prepared call holds nothing of a caller's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from .. import _native
from .making import new_tensor
from .reach import Reach, bytes_of
from .strided import StridedView
from .tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from .._device.device import Device

Operations = list[Any]
"""Native operations, in order."""


class StandIn:
    """Memory that stands for what is given at a place; by itself it copies nothing."""

    moves: ClassVar[bool] = False
    """Whether the device copies in each call, to or from the memory that is given."""

    def __init__(self, place: int) -> None:
        self.place = place
        """-1 for a result that the call makes on the host, -1 - n for the new result n."""

    def bring(self, given: Any) -> None:
        """Copies what is `given`, by place, to the memory: on the host, before the work."""

    def around(self, given: Any) -> tuple[Operations, Operations]:
        """What the device does before and after the dispatches for what is `given` at the place."""
        return [], []

    def give_back(self, given: Any) -> None:
        """Copies the results to what is `given`, by place: on the host, after the work."""


class Lent(StandIn):
    """A Tensor that stands for an array in one call."""

    def __init__(self, place: int, tensor: Tensor, written: bool) -> None:
        super().__init__(place)
        self.tensor = tensor
        self.written = written

    def bring(self, given: Any) -> None:
        """Copies the array in: also one that the shader only writes, because it may leave parts of it."""
        self.tensor.write(given[self.place])

    def give_back(self, given: Any) -> None:
        if self.written:
            self.tensor.read(given[self.place])


class Host(StandIn):
    """Memory with a host copy that stands for an array, or for a part of a tensor, in each call of a kind."""

    def __init__(self, place: int, array: np.ndarray[Any, Any], read: bool, written: bool) -> None:
        super().__init__(place)
        self.array = array
        """The host copy; what is recorded brings it to the device and back."""
        self.read = read
        self.written = written

    def bring(self, given: Any) -> None:
        if self.read:
            value = given[self.place]
            np.copyto(self.array, value.read() if type(value) is StridedView else value)

    def give_back(self, given: Any) -> None:
        if self.written and self.place >= 0:
            np.copyto(given[self.place], self.array)


class Copied(StandIn):
    """Memory for what shaders cannot bind: an image, or a tensor that begins at an odd byte."""

    moves = True

    def __init__(self, place: int, native: Any, read: bool, written: bool) -> None:
        super().__init__(place)
        self.native = native
        self.read = read
        self.written = written

    def around(self, given: Any) -> tuple[Operations, Operations]:
        native = given._native
        return (
            [_native.op_copy([native, self.native])] if self.read else [],
            [_native.op_copy([self.native, native])] if self.written else [],
        )


class Copying(Protocol):
    """Kernels that copy between two pieces of native memory."""

    def over(self, natives: Sequence[Any]) -> Operations:
        """Their operations."""


class Spread(StandIn):
    """Dense memory for a part of a tensor that is not dense."""

    moves = True

    def __init__(
        self,
        place: int,
        reach: Reach,
        native: Any,
        window: Any,
        gather: Copying | None,
        spread: Copying | None,
    ) -> None:
        """`native` is the dense memory. `window` stands for the bytes that the part reaches over, None if
        shaders bind these. `gather` copies the part to the dense memory before the dispatches, None if they
        do not read it; `spread` the other way, None if they do not write it.
        """
        super().__init__(place)
        self.reach = reach
        self.native = native
        self.window = window
        self.gather = gather
        self.spread = spread

    def around(self, given: Any) -> tuple[Operations, Operations]:
        there = bytes_of(given, self.reach)
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

    def made(self, manager: Device) -> Any:
        """A new tensor for it, or an image."""
        if self.picture is not None:
            return self.picture.made(manager, self.shape, self.memory_type)
        return new_tensor(manager, self.shape, self.dtype, self.memory_type)

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
