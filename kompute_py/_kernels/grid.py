"""The default grid of a kernel: how many invocations run if a call gives no grid.

The rule. Reflection finds the components of the invocation's number that the code uses (`InvocationUse` in
native/core/spirv/invocation.hpp) and the stride of each binding's elements. The grid follows the first
written binding. Counters (blocks without an array, memory of atomic operations) are skipped if there is
another binding.

- One component: one invocation for each element, whatever the shape.
- x and y, or x, y and z: the reversed shape, in elements, if it has as many axes.
- x and y with gl_NumWorkGroups.x, a common way to spread one axis over two: enough rows for all elements.
- No component: one workgroup.
- Anything else raises an error that names the choices. A workgroup's number that is not multiplied by the
  group's size may count elements or tiles; a number within the group alone reaches only one group's elements;
  the size of a counter differs from the number of items that it counts.

`grid_check` refuses the resulting grid if it contradicts the elements that the code uses.

gl_WorkGroupID counts like gl_GlobalInvocationID if every use multiplies it by at least the group's size (or
the size is 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.arrays import Counts
from .._base.errors import InvalidArgumentError
from .._shaders.signature import MISSING, Parameter, Signature

if TYPE_CHECKING:
    from .._shaders.constants import Specialization
    from .._shaders.module import ShaderModule

Spelling = Callable[[str, tuple[object, ...]], str]
"""Spells ("grid" or "groups", counts) as the user writes them."""

Several = Callable[[tuple[Any, ...], int], int | None]
"""The number of invocations that use the elements of an argument, given all arguments and its position."""

_ROW = 65535  # groups per axis that every device supports
_XYZ = ("x", "y", "z")


def as_keywords(keyword: str, counts: tuple[object, ...]) -> str:
    """The counts as an argument of a call: ``grid=(64, 64)``."""
    return f"{keyword}=({', '.join(map(str, counts))}{',' * (len(counts) == 1)})"


class _Elements(NamedTuple):
    """The places of a binding's elements in its memory."""

    position: int
    """The parameter's position."""
    offset: int = 0
    stride: int = 1
    """Bytes from one element to the next."""
    length: int | None = None
    """The number of elements, if the shader declares it."""
    inner: tuple[int, ...] = ()
    """The declared lengths after the first one."""
    counts: bool = True
    """False for counters, because their size does not define the grid."""

    def number(self, memory: Any) -> int:
        """The number of elements in `memory`."""
        if memory._is_image:
            return math.prod(_texels(memory))
        if self.length is not None:
            return self.length
        count: int = (memory.nbytes - self.offset) // self.stride
        return count

    def left(self, memory: Any) -> int:
        """Bytes after the last whole element; raw bytes and records may end with padding."""
        if memory._is_image or self.length is not None or self.offset or self.stride == 1:
            return 0
        dtype = memory._dtype
        if dtype.names is not None or dtype.itemsize == 1:
            return 0
        left: int = memory.nbytes % self.stride
        return left

    def shape(self, memory: Any, axes: int) -> tuple[int, ...]:
        """The axes of the elements: those of the tensor, or those that the shader declares if only they have
        `axes` axes.
        """
        if memory._is_image:
            return _texels(memory)
        count = self.number(memory)
        shape = elements_shape(memory, self.stride, count, self.offset)
        if len(shape) != axes and len(self.inner) + 1 == axes:
            return count // max(1, math.prod(self.inner)), *self.inner
        return shape


def elements_shape(memory: Any, stride: int, count: int, offset: int = 0) -> tuple[int, ...]:
    """The axes of the `count` elements of `stride` bytes in a tensor: the tensor's axes without those of an
    element's components, or one axis.
    """
    shape = _without_components(memory._shape, memory._dtype.itemsize, stride) if offset == 0 else None
    return (count,) if shape is None or math.prod(shape) != count else shape


def _texels(image: Any) -> tuple[int, ...]:
    axes: tuple[int, ...] = getattr(image, "_image", image)._size.axes  # also of a sampled image
    return axes


def _without_components(shape: tuple[int, ...], item: int, stride: int) -> tuple[int, ...] | None:
    """`shape` without the axes, or the part of the last one, that one element of `stride` bytes fills."""
    axes = list(shape)
    if item > stride:
        if item % stride or not axes:
            return None
        axes[-1] *= item // stride
        return tuple(axes)
    if stride % item:
        return None
    left = stride // item
    while left > 1 and axes:
        last = axes.pop()
        if left % last == 0:
            left //= last
        elif last % left == 0:
            axes.append(last // left)
            left = 1
        else:
            return None
    return tuple(axes) if left == 1 else None


def _array_in(
    layout: Mapping[str, Any], start: int = 0
) -> tuple[int, int, int | None, tuple[int, ...]] | None:
    """(offset, stride, length, inner lengths) of a block's array: the one of run-time length, else the
    longest.
    """
    best: tuple[int, int, int | None, tuple[int, ...]] | None = None
    for member in layout["members"]:
        offset = start + member["offset"]
        found = None
        if member["array"]:
            lengths, stride = tuple(member["array"]), max(1, member["array_strides"][-1])
            if lengths[0] == 0:
                return offset, stride, None, lengths[1:]
            found = (offset, stride, math.prod(lengths), lengths[1:])
        elif member["kind"] == "struct":
            found = _array_in(member, offset)
        if found is not None and (best is None or (found[2] or 0) > (best[2] or 0)):
            best = found
    return best


def _elements_of(index: int, parameter: Parameter) -> _Elements | None:
    if parameter.image is not None:
        return _Elements(index, counts=not parameter.atomic)
    if not parameter.kind.endswith("buffer"):
        return None
    found = _array_in(parameter.layout)
    if found is None:
        return _Elements(index, 0, max(1, parameter.size), 1, (), False)
    return _Elements(index, *found, not parameter.atomic)


class Choice(NamedTuple):
    """The possible number of items."""

    keyword: str
    counts: tuple[int, ...]
    meaning: str

    def groups(self, local_size: Counts) -> Counts:
        """The workgroups of this choice."""
        x, y, z = (*self.counts, 1, 1)[:3]
        if self.keyword == "groups":
            return x, y, z
        i, j, k = (max(1, size) for size in local_size)
        return -(-x // i), -(-y // j), -(-z // k)


class GridRule:
    """The rule for a shader's default grid, derived once from its signature."""

    __slots__ = (
        "_alone",
        "_along",
        "_axes",
        "_block",
        "_local_size",
        "_numbers",
        "_others",
        "_over_rows",
        "_parameters",
        "_plain",
        "_reach",
        "_vague",
        "_written",
    )

    def __init__(self, signature: Signature, use: Mapping[str, Any]) -> None:
        """`use` is `_native.invocation_use` of the module, specialized like `signature`."""
        size = signature.local_size
        self._local_size = size
        self._parameters = signature.parameters
        axes = "".join(axis for axis in "xyz" if axis in use["global"] or axis in use["group"])
        self._axes = axes
        self._alone = use["group_alone"]
        self._vague = use["vague"]
        names = ["gl_GlobalInvocationID"] * bool(use["global"]) + ["gl_WorkGroupID"] * bool(use["group"])
        self._numbers = (
            f"{' and '.join(names)}.{axes}" if len(names) == 1 else f"{' and '.join(names)} in {axes}"
        )
        # The number of elements that the numbers within a group distinguish; 0 if none of them is used.
        self._reach = 0
        if use["local_index"]:
            self._reach = math.prod(size)
        elif use["local"]:
            self._reach = math.prod(size["xyz".index(axis)] for axis in use["local"])
        self._over_rows = axes == "xy" and "x" in use["group_count"]
        self._along = "xyz".index(axes) if len(axes) == 1 else None
        # gl_WorkGroupID.x * (all invocations of a group) + gl_LocalInvocationIndex
        self._block = 1
        if (
            len(axes) == 1
            and not use["global"]
            and use["local_index"]
            and not use["local"]
            and axes not in use["group_below_block"]
        ):
            self._block = math.prod(size) // max(1, size["xyz".index(axes)])
        found = [_elements_of(i, p) for i, p in enumerate(signature.parameters)]
        written = [e for e in found if e is not None and signature.parameters[e.position].written]
        self._written = sorted(written, key=lambda e: not e.counts)  # stable
        # Images and arrays with items that a counter may count; uniform buffers hold settings.
        self._others = [
            e
            for e in found
            if e is not None
            and e.counts
            and signature.parameters[e.position].used
            and signature.parameters[e.position].kind != "uniform buffer"
        ]
        self._plain = self._along is not None and not self._alone and not self._vague

    @property
    def axes(self) -> str:
        """The axes that the code counts, such as "xy"."""
        return self._axes

    def source(self, bound: tuple[Any, ...]) -> int | None:
        """The parameter that the grid follows; None if it is an array of bindings, or a counter."""
        for elements in self._written:
            if bound[elements.position] is not MISSING:
                single = type(bound[elements.position]) is not tuple
                return elements.position if single and elements.counts else None
        return None

    def line(self, bound: tuple[Any, ...]) -> tuple[int, int, int] | None:
        """(parameter, bytes of an element, axis) if one invocation runs for each element of an argument that
        is nothing but elements, whatever their number; else None.
        """
        source = self.source(bound)
        if source is None or not self._plain or self._block != 1:
            return None
        elements = next(each for each in self._written if each.position == source)
        if elements.offset or elements.length is not None or bound[source]._is_image:
            return None
        return source, elements.stride, self._along or 0

    def has_source(self, bound: tuple[Any, ...]) -> bool:
        """Whether the grid can follow an argument."""
        return any(bound[elements.position] is not MISSING for elements in self._written)

    def grid(
        self,
        kernel: str,
        bound: tuple[Any, ...],
        spell: Spelling = as_keywords,
        several: Several | None = None,
    ) -> Counts:
        """The default invocations. Raises InvalidArgumentError, naming the choices, if they are ambiguous.

        `several(bound, position)`: the number of invocations that use the elements of an argument, if several
        use one.
        """
        if not self._axes and not self._reach:
            return 1, 1, 1  # every group would do the same work
        for elements in self._written:
            memory = bound[elements.position]
            if memory is not MISSING:
                break
        else:
            raise InvalidArgumentError(
                f"{kernel} writes no argument that could define the grid. Give "
                f"{spell('grid', _XYZ)} invocations or {spell('groups', _XYZ)} workgroups"
            )
        if type(memory) is not tuple:
            if not memory._count:
                return 0, 1, 1  # no element to write
            if left := elements.left(memory):
                raise self._partial(kernel, elements, memory, left, spell)
        if self._plain and elements.counts and type(memory) is not tuple:
            return self._line(elements.number(memory))
        return self._carefully(kernel, elements, bound, spell, several)

    def _partial(
        self, kernel: str, elements: _Elements, memory: Any, left: int, spell: Spelling
    ) -> InvalidArgumentError:
        parameter = self._parameters[elements.position]
        count = elements.number(memory)
        return InvalidArgumentError(
            f"{kernel}: {parameter.name!r} is {parameter.type}, whose elements have {elements.stride} bytes; "
            "shape "
            f"{memory._shape}, {memory._dtype} makes {count} of them and leaves {left} bytes, which the "
            "shader cannot reach. "
            f"Give a whole number of elements, or {spell('grid', short(self._line(count)))}"
        )

    def _line(self, count: int) -> Counts:
        axis = self._along or 0
        if self._block > 1:
            size = self._local_size[axis]
            count = -(-count // (self._block * size)) * size
        return (count, 1, 1) if axis == 0 else (1, count, 1) if axis == 1 else (1, 1, count)

    def _carefully(
        self,
        kernel: str,
        elements: _Elements,
        bound: tuple[Any, ...],
        spell: Spelling,
        several: Several | None,
    ) -> Counts:
        parameter = self._parameters[elements.position]
        shape = self._shape(elements, bound)
        subject = f"{parameter.name!r} ({parameter.type}) has {_size_text(shape)}"
        count = math.prod(shape)
        if not self._axes:
            if count <= self._reach:
                return 1, 1, 1
            why = f"uses numbers within a workgroup alone, which tell {self._reach} elements apart; {subject}"
            choices = [
                Choice("groups", (1,), "for one group, whose code goes through all of them"),
                Choice("grid", (count,), "for groups that all do the same"),
            ]
            raise _error(kernel, why, choices, spell)
        if self._vague:
            why = f"may use other numbers of its invocation than gl_GlobalInvocationID.x; {subject}"
            choices = [Choice("grid", (count,), "to count all of them in x")]
            if 1 < len(shape) <= 3:
                choices.append(Choice("grid", tuple(reversed(shape)), "for the shape"))
            else:
                choices += self._shapes(shape, 2)[1:]
            return settled(kernel, why, choices, self._local_size, spell)
        own = self._extent(shape)
        if own is None:
            raise _error(
                kernel,
                f"uses {self._numbers}; {subject} on {len(shape)} ax{'i' if len(shape) == 1 else 'e'}s",
                self._shapes(shape, len(self._axes)),
                spell,
            )
        if self._alone:
            size = " x ".join(map(str, self._local_size))
            why = f"uses gl_WorkGroupID.{self._alone} as it is, with groups of {size}; {subject}"
            choices = [
                Choice("groups", short(own), "for one workgroup each"),
                Choice("grid", short(own), "for one invocation each"),
            ]
            return settled(kernel, why, choices, self._local_size, spell)
        if not elements.counts:
            choices = [Choice("grid", short(own), f"as {parameter.name!r} has")]
            for other in self._others:
                if other.position == elements.position or bound[other.position] is MISSING:
                    continue
                name = self._parameters[other.position].name
                all_of_it = None
                if several is not None and self._along is not None:
                    all_of_it = several(bound, other.position)
                if all_of_it is not None:
                    choices.append(Choice("grid", short(self._line(all_of_it)), f"for all of {name!r}"))
                    continue
                extent = self._extent(self._shape(other, bound))
                if extent is not None and extent != own:
                    choices.append(Choice("grid", short(extent), f"as {name!r} has"))
            why = f"writes only {parameter.name!r}, whose size need not be that of the work"
            return settled(kernel, why, choices, self._local_size, spell)
        return own

    def _shape(self, elements: _Elements, bound: tuple[Any, ...]) -> tuple[int, ...]:
        """The shape of the elements; for an array of bindings, the smallest shape that covers all of them."""
        memory = bound[elements.position]
        axes = len(self._axes)
        if type(memory) is not tuple:
            return elements.shape(memory, axes)
        shapes = [elements.shape(each, axes) for each in memory]
        if len({len(shape) for shape in shapes}) == 1:
            return tuple(max(lengths) for lengths in zip(*shapes, strict=True))
        return (max(math.prod(shape) for shape in shapes),)

    def _extent(self, shape: tuple[int, ...]) -> Counts | None:
        """Invocations for elements of this shape; None if the code counts other axes."""
        if self._along is not None:
            return self._line(math.prod(shape))
        axes = len(self._axes)
        if len(shape) != axes:
            longer = tuple(length for length in shape if length != 1)
            if len(longer) == axes:
                shape = longer
            elif self._over_rows:
                x = max(1, self._local_size[0])
                groups = max(1, -(-math.prod(shape) // x))
                across = min(groups, _ROW)
                return across * x, -(-groups // across), 1
            else:
                return None
        return self._placed(tuple(reversed(shape)))

    def _placed(self, counts: tuple[int, ...]) -> Counts:
        """These counts on the axes that the code counts, in their order."""
        along = dict(zip(self._axes, counts, strict=True))
        return along.get("x", 1), along.get("y", 1), along.get("z", 1)

    def _shapes(self, shape: tuple[int, ...], axes: int) -> list[Choice]:
        """Grids of `axes` axes for elements of another number of them."""
        choices = self._shapes_of(shape, axes)
        if self._axes not in ("xz", "yz") or axes != 2:
            return choices
        return [choice._replace(counts=self._placed(choice.counts)) for choice in choices]

    def _shapes_of(self, shape: tuple[int, ...], axes: int) -> list[Choice]:
        count = math.prod(shape)
        if axes == 2:
            if len(shape) <= 1:
                width = next((w for w in range(math.isqrt(count), 1, -1) if count % w == 0), 1)
                row, example = Choice("grid", (count, 1), "for one row"), (count // width, width)
                if width == 1:
                    return [row, Choice("grid", (1, count), "for one column")]
                return [row, Choice("grid", example, f"for rows of {example[0]}, if that is their length")]
            return [
                Choice("grid", (shape[-1], count // max(1, shape[-1])), "for rows of the last axis"),
                Choice("grid", (count // max(1, shape[0]), shape[0]), "for rows of all axes but the first"),
            ]
        if len(shape) <= 1:
            return [
                Choice("grid", (count, 1, 1), "for one row"),
                Choice("grid", (1, 1, count), "for one column in z"),
            ]
        if len(shape) == 2:
            return [
                Choice("grid", (shape[1], shape[0], 1), "for one layer"),
                Choice("grid", (shape[1], 1, shape[0]), "for layers of one row"),
            ]
        lead, last = shape[0], shape[-1]
        return [
            Choice(
                "grid",
                (last, shape[-2], count // max(1, last * shape[-2])),
                "for layers of the last two axes",
            ),
            Choice(
                "grid", (count // max(1, lead * shape[1]), shape[1], lead), "for layers of the first axis"
            ),
        ]


def grid_rule(module: ShaderModule, signature: Signature, special: Specialization) -> GridRule:
    """The rule of a module with these constants and this signature."""
    # The optimized code, which has no dead code.
    use = _native.invocation_use(module.to_spirv(), module.entry, special.data, special.entries)
    return GridRule(signature, use)


def settled(
    kernel: str, why: str, choices: list[Choice], local_size: Counts, spell: Spelling = as_keywords
) -> Counts:
    """The grid, if all choices run the same groups.

    Otherwise raises InvalidArgumentError with the choices.
    """
    if len({choice.groups(local_size) for choice in choices}) > 1:
        raise _error(kernel, why, choices, spell)
    chosen = next(choice for choice in choices if choice.keyword == "grid")
    x, y, z = (*chosen.counts, 1, 1)[:3]
    return x, y, z


def _error(kernel: str, why: str, choices: Iterable[Choice], spell: Spelling) -> InvalidArgumentError:
    said = ", or ".join(f"{spell(c.keyword, c.counts)} {c.meaning}" for c in choices)
    return InvalidArgumentError(f"{kernel} {why}. Choose the grid: {said}")


def short(counts: Counts) -> tuple[int, ...]:
    """The counts without trailing axes of 1."""
    return counts[: 3 if counts[2] != 1 else 2 if counts[1] != 1 else 1]


def _size_text(shape: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, shape)) or '1'} element{'' if math.prod(shape) == 1 else 's'}"
