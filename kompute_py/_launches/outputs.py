"""Outputs that a call leaves out: their shapes, from other arguments or the grid (rule 5 of the room).

A kernel makes an output itself if it knows how large the shader needs it. The rule:

- The shader only writes the argument, and its elements have a dtype (for images: a declared format).
- A block of fixed size has the size that the shader declares.
- If each write of the output uses the index at which the code reads another argument (``c[i] = a[i] + b[i]``,
  the same pixel of an image), the output has an element for each element of that argument, in its shape.
- Otherwise, if the call gives `grid` or `groups`, the output has an element for each invocation: the grid
  reversed, (h, w) for ``grid=(w, h)``. Each write must be at the invocation's own number in row-major order.
- Anything else raises an error that names the argument to give.

So that no result is lost or made up, the call is also refused in these cases: writes whose index is not
followed (in loops, from memory, at constants), bounds checks that stop before the output's last element,
arguments of different sizes or shapes with the same index, reads of such an argument beyond its end, and
invocations beyond the grid that write elements of others (`beyond`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError
from .._base.texels import ImageFormat, parse_format
from .._memory.image import Image
from .._memory.stand_ins import Fresh
from .._shaders.layout import element_dtype, tail_of
from .._shaders.signature import MISSING, Parameter
from .beyond import spills
from .code import Access, Code, Launch, axes_of
from .grid import elements_shape
from .values import Sum, Values

if TYPE_CHECKING:
    from .._device.device import Device
    from .._memory.memory import Memory

_DIMS = {"1D": 1, "2D": 2, "3D": 3}


class Output(NamedTuple):
    """An output to be made."""

    position: int
    shape: tuple[int, ...]
    """Of the array: that of the elements, and the components of each element."""
    dtype: np.dtype[Any]
    elements: int
    """Their number, or that of the texels."""
    format: ImageFormat | None = None
    """For images."""
    arrayed: bool = False
    declared: bool = False
    """Whether the shader declares the size."""

    @property
    def fresh(self) -> Fresh:
        """The output as a Tensor that each call makes."""
        return Fresh(self.shape, self.dtype, None, (), zeros=True)

    def made(self, manager: Device) -> Memory:
        """The output as a Tensor or an Image that holds zeros."""
        if self.format is None:
            return self.fresh.made(manager)
        dims: Any = len(self.shape) - (self.format.channels > 1) - self.arrayed
        return Image(
            manager,
            np.zeros(self.shape, self.dtype),
            format=self.format.name,
            dims=dims,
            layers=True if self.arrayed else None,
        )


class Outputs:
    """The rule for one shader."""

    __slots__ = ("_axes", "_code", "_signature")

    def __init__(self, code: Code, axes: str) -> None:
        """`axes` are those that the code counts, such as "xy"."""
        self._signature = code.signature
        self._code = code
        self._axes = ["xyz".index(axis) for axis in axes]

    def shapes(
        self, kernel: str, left_out: Sequence[int], bound: tuple[Any, ...], launch: Launch | None
    ) -> list[Output]:
        """The outputs at the positions `left_out`. `launch` is None if the call gives neither grid nor
        groups.

        Raises InvalidArgumentError, naming the argument to give, if a shape does not follow.
        """
        return [self._output(kernel, position, bound, launch) for position in left_out]

    def check(self, kernel: str, outputs: Sequence[Output], bound: tuple[Any, ...], launch: Launch) -> None:
        """Raises InvalidArgumentError if the invocations do not write the outputs to their ends, or read an
        argument of the same size beyond its end. `bound` has the outputs, and `launch` is the whole one.
        """
        values = Values(self._code, bound, launch)
        for output in outputs:
            if output.declared or not output.elements or not all(launch.groups):
                continue
            writes = self._code.writes(output.position)
            if output.format is not None:
                self._check_texels(kernel, output, writes, values)
                continue
            needs = [values.needed(access.indices[0], access.guards) for access in writes]
            known = [need for need in needs if need is not None]
            if len(known) == len(needs) and known and max(known) != output.elements:
                raise self._refusal(
                    kernel,
                    output.position,
                    f"the invocations write {max(known)} elements, but {output.elements} would follow from "
                    f"the arguments{_turned(output.shape, launch)}",
                )
            for access in writes:
                axis = spills(access, self._code, values, launch, self._axes)
                if axis is not None:
                    letter = "xyz"[axis]
                    raise self._refusal(
                        kernel,
                        output.position,
                        f"the grid {launch.extent} is filled up to whole groups of {launch.local_size}, and "
                        f"invocations beyond its {letter} write elements of others: check {letter} in the "
                        "shader",
                    )
            for tied in self._tied(output.position, bound):
                for access in self._code.accesses:
                    if access.position != tied or access.written or not access.stride:
                        continue
                    need = values.needed(access.indices[0], access.guards)
                    if need is not None and need > access.elements(bound):
                        raise self._refusal(
                            kernel,
                            output.position,
                            f"the code reads {self._code.names[tied]!r} beyond its end, so the sizes of "
                            "the two may differ",
                        )

    def _check_texels(self, kernel: str, output: Output, writes: list[Access], values: Values) -> None:
        channels = output.format is not None and output.format.channels > 1
        lengths = tuple(reversed(output.shape[:-1] if channels else output.shape))
        for access in writes:
            for index, length in zip(access.indices, lengths, strict=False):
                need = values.needed(index, access.guards)
                if need is not None and need != length:
                    raise self._refusal(
                        kernel,
                        output.position,
                        f"the invocations write {need} texels of an axis that would have {length}",
                    )

    # -- one output ------------------------------------------------------------------------------------------

    def _output(self, kernel: str, position: int, bound: tuple[Any, ...], launch: Launch | None) -> Output:
        parameter = self._signature.parameters[position]
        if parameter.descriptors != 1:
            raise self._refusal(kernel, position, "it is an array of bindings")
        if parameter.image is not None:
            return self._image(kernel, position, parameter, bound, launch)
        dtype = element_dtype(parameter.layout) if parameter.kind.startswith("storage") else None
        if dtype is None:
            raise self._refusal(kernel, position, "its block has no single dtype")
        members = parameter.layout["members"]
        if dtype.fields is not None and len(members) == 1 and not members[0]["array"]:
            if members[0]["kind"] != "struct":  # one number, vector or matrix: its own dtype
                dtype = dtype.fields[dtype.names[0]][0] if dtype.names else dtype
        base, inner = dtype.base, dtype.shape
        if tail_of(parameter.layout) is None:
            # The declared size: the length of the only array, else one block.
            sole = members[0] if len(members) == 1 and members[0]["array"] else None
            lengths = () if sole is None else (int(sole["array"][0]),)
            return Output(position, (*lengths, *inner), base, math.prod(lengths), declared=True)
        elements = self._shape(kernel, position, bound, launch)
        return Output(position, (*elements, *inner), base, math.prod(elements))

    def _image(
        self,
        kernel: str,
        position: int,
        parameter: Parameter,
        bound: tuple[Any, ...],
        launch: Launch | None,
    ) -> Output:
        image = parameter.image
        assert image is not None
        if parameter.kind != "storage image" or image["dim"] not in _DIMS or image["multisampled"]:
            raise self._refusal(kernel, position, "kompute_py makes no image of that kind")
        if not image["format"]:
            raise self._refusal(kernel, position, "the shader does not declare its format")
        chosen = parse_format(image["format"])
        arrayed = bool(image["arrayed"])
        shape = self._shape(kernel, position, bound, launch)
        if len(shape) != _DIMS[image["dim"]] + arrayed:
            raise self._refusal(kernel, position, f"an image has other axes than {len(shape)}")
        whole = (*shape, chosen.channels) if chosen.channels > 1 else shape
        return Output(position, whole, np.dtype(chosen.component), math.prod(shape), chosen, arrayed)

    def _shape(
        self, kernel: str, position: int, bound: tuple[Any, ...], launch: Launch | None
    ) -> tuple[int, ...]:
        writes = self._code.writes(position)
        if self._code.stray or not writes or not all(map(self._follows, writes)):
            raise self._refusal(
                kernel,
                position,
                "the elements that the code writes are not followed (in a loop, from memory)",
            )
        tied = self._tied(position, bound)
        shapes = {self._shape_of(access, bound) for access in self._uses(position, tied)}
        if len(shapes) == 1:
            return shapes.pop()
        names = [self._code.names[each] for each in tied]
        if shapes:
            found = " and ".join(f"{name!r}" for name in names)
            raise self._refusal(kernel, position, f"{found} have different shapes: {sorted(shapes, key=len)}")
        if self._code.counts_groups(position):
            why = "the code writes one element for each workgroup, not for each invocation"
            raise self._refusal(kernel, position, why)
        if launch is None:
            raise self._refusal(
                kernel,
                position,
                "no other argument is used at the index at which the code writes it",
                "give grid=, the number of invocations, or ",
            )
        return self._of_grid(kernel, position, writes, bound, launch)

    def _of_grid(
        self,
        kernel: str,
        position: int,
        writes: list[Access],
        bound: tuple[Any, ...],
        launch: Launch,
    ) -> tuple[int, ...]:
        extent = launch.invocations
        if any(extent[axis] > 1 for axis in range(3) if axis not in self._axes) or not self._axes:
            raise self._refusal(kernel, position, f"the code does not count all axes of the grid {extent}")
        values = Values(self._code, bound, launch._replace(extent=extent))
        whole = Sum(0)
        step = 1
        for axis in self._axes:
            whole = whole.plus(Sum(0, {("axis", axis): step}))
            step *= extent[axis]
        for access in writes:
            wanted = [whole] if access.stride else [Sum(0, {("axis", axis): 1}) for axis in self._axes]
            if len(wanted) != len(access.indices):
                raise self._refusal(kernel, position, "it has other axes than the grid")
            for index, own in zip(access.indices, wanted, strict=True):
                found = values.sum(index)
                if found is None or _counted(found, extent) != _counted(own, extent):
                    raise self._refusal(
                        kernel,
                        position,
                        "the code does not write one element for each invocation, row by row",
                    )
            for axis in self._axes:
                if not values.passes(access.guards, axis, extent[axis] - 1):
                    raise self._refusal(
                        kernel,
                        position,
                        f"a bounds check stops before the {extent[axis]} invocations in {'xyz'[axis]} end",
                    )
        return tuple(extent[axis] for axis in reversed(self._axes))

    def _follows(self, access: Access) -> bool:
        return all(self._code.axes(i) and not self._code.has(i, "unknown") for i in access.indices)

    # -- arguments of the same size --------------------------------------------------------------------------

    def _tied(self, position: int, bound: tuple[Any, ...]) -> list[int]:
        """The given arguments that the code uses at each index at which it writes the output."""
        indices = {access.indices for access in self._code.writes(position)}
        found = []
        for other in range(len(bound)):
            if other == position or bound[other] is MISSING or type(bound[other]) is tuple:
                continue
            own = {access.indices for access in self._code.accesses if access.position == other}
            if indices and indices <= own:
                found.append(other)
        return found

    def _uses(self, position: int, tied: list[int]) -> list[Access]:
        """One access of each tied argument, at an index of the output."""
        indices = {access.indices for access in self._code.writes(position)}
        return [
            next(a for a in self._code.accesses if a.position == other and a.indices in indices)
            for other in tied
        ]

    def _shape_of(self, access: Access, bound: tuple[Any, ...]) -> tuple[int, ...]:
        """The shape of the elements of an argument."""
        memory = bound[access.position]
        if not access.stride:
            return axes_of(memory)
        return elements_shape(memory, access.stride, access.elements(bound), access.offset)

    def _refusal(self, kernel: str, position: int, why: str, also: str = "") -> InvalidArgumentError:
        parameter = self._signature.parameters[position]
        written = self._signature.written
        keyword = "out" if len(written) == 1 else parameter.name
        thing = "an Image" if parameter.is_image else "an array or a Tensor"
        return InvalidArgumentError(
            f"{kernel}: {parameter.name!r} ({parameter.type}) was left out, and its shape does not follow: "
            f"{why}. To choose it, {also}give {thing}: {keyword}="
        )


def _turned(shape: Sequence[int], launch: Launch) -> str:
    """What to say of a grid in the order of the axes of arrays."""
    axes = tuple(shape)
    if launch.by_default or launch.extent is None or launch.extent[: len(axes)] != axes or axes == axes[::-1]:
        return ""
    return f"; grid= counts x, the last axis, first: grid={axes[::-1]}"


def _counted(found: Sum, extent: tuple[int, int, int]) -> object:
    """For comparisons: a sum without axes of one invocation."""
    return found.constant, {t: f for t, f in found.terms.items() if t[0] != "axis" or extent[t[1]] > 1}
