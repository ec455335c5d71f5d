"""The default grid of a kernel: how many invocations run if a call gives no grid (rules 1 and 2 of the room).

The grid follows the first written binding. Counters (blocks without an array, memory of atomic operations)
are skipped if there is another binding.

- One component: one invocation for each element, whatever the shape.
- x and y, or x, y and z: the reversed shape, in elements, if it has as many axes.
- x and y with gl_NumWorkGroups.x, a common way to spread one axis over two: enough rows for all elements.
- No component: one workgroup.
- Anything else raises an error that names the choices. A workgroup's number that is not multiplied by the
  group's size may count elements or tiles; a number within the group alone reaches only one group's elements.

gl_WorkGroupID counts like gl_GlobalInvocationID if every use multiplies it by at least the group's size (or
the size is 1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .._base.arrays import Counts
from .._base.errors import InvalidArgumentError
from .._shaders.signature import MISSING, Parameter, Signature
from .code import Access, Code, Launch, axes_of
from .values import Sum, Values

Spelling = Callable[[str, tuple[object, ...]], str]
"""Spells ("grid" or "groups", counts) as the user writes them."""

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
            return math.prod(axes_of(memory))
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
            return axes_of(memory)
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
        "_axes",
        "_block",
        "_code",
        "_local_size",
        "_numbers",
        "_over_rows",
        "_parameters",
        "_reach",
        "_written",
    )

    def __init__(self, signature: Signature, use: Mapping[str, Any], code: Code) -> None:
        """`use` is `_native.invocation_use` of the module, specialized like `signature`."""
        self._code = code
        size = signature.local_size
        self._local_size = size
        self._parameters = signature.parameters
        axes = "".join(axis for axis in "xyz" if axis in use["global"] or axis in use["group"])
        self._axes = axes
        self._alone = use["group_alone"]
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
        if source is None or len(self._axes) != 1 or self._alone or self._block != 1:
            return None
        elements = next(each for each in self._written if each.position == source)
        if elements.offset or elements.length is not None or bound[source]._is_image:
            return None
        return source, elements.stride, "xyz".index(self._axes)

    def first(self, bound: tuple[Any, ...]) -> int:
        """The first parameter that is written and given."""
        return next(each.position for each in self._written if bound[each.position] is not MISSING)

    def has_source(self, bound: tuple[Any, ...]) -> bool:
        """Whether the grid can follow an argument."""
        return any(bound[elements.position] is not MISSING for elements in self._written)

    def grid(self, kernel: str, bound: tuple[Any, ...], spell: Spelling = as_keywords) -> Counts:
        """The default invocations. Raises InvalidArgumentError, naming the choices, if they are ambiguous."""
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
        return self._of_shape(kernel, elements, self._shape(elements, bound), spell)

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
        axis = "xyz".index(self._axes or "x")
        if self._block > 1:
            size = self._local_size[axis]
            count = -(-count // (self._block * size)) * size
        return (count, 1, 1) if axis == 0 else (1, count, 1) if axis == 1 else (1, 1, count)

    def _of_shape(self, kernel: str, elements: _Elements, shape: tuple[int, ...], spell: Spelling) -> Counts:
        parameter = self._parameters[elements.position]
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
            raise refusal(kernel, why, choices, spell)
        own = self._extent(shape)
        if own is None:
            raise refusal(
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
            by_group = [each.name for i, each in enumerate(self._parameters) if self._code.counts_groups(i)]
            if by_group and parameter.name not in by_group:
                names = " and ".join(map(repr, by_group))
                why = (
                    f"writes {names} at gl_WorkGroupID.{self._alone}, one element for each group of {size}, "
                    f"and {subject}"
                )
                choices.reverse()
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
        if len(self._axes) == 1:
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


def judge(
    kernel: str,
    code: Code,
    rule: GridRule,
    bound: tuple[Any, ...],
    launch: Launch,
    spell: Spelling = as_keywords,
) -> None:
    """Raises InvalidArgumentError if the default grid `launch.extent` of `rule` may be wrong: see rule 2."""
    axes = ["xyz".index(axis) for axis in rule.axes]
    if not axes or not all(launch.groups) or not rule.has_source(bound):
        return
    _Judgement(kernel, code, rule.first(bound), axes, bound, launch, spell).check()


class _Judgement:
    """Compares the default grid of one call with the elements that its code writes."""

    def __init__(
        self,
        kernel: str,
        code: Code,
        source: int,
        axes: list[int],
        bound: tuple[Any, ...],
        launch: Launch,
        spell: Spelling,
    ) -> None:
        assert launch.extent is not None
        self._kernel, self._code, self._source, self._axes = kernel, code, source, axes
        self._bound, self._launch, self._extent, self._spell = bound, launch, launch.extent, spell
        self._values = Values(code, bound, launch, axes)

    def check(self) -> None:
        writes = self._code.writes(self._source)
        others = [a for a in self._code.accesses if a.written and self._is_bounded(a)]
        if writes and all(self._is_right(access, self._extent) for access in (*writes, *others)):
            return
        name = self._code.names[self._source]
        default = Choice("grid", short(self._extent), f"as {name!r} has elements")
        if len(self._axes) > 1:
            for turned in self._permutations():
                if all(self._is_right(access, turned) for access in writes):
                    why = (
                        f"counts the axes of {name!r} in another order than its shape, "
                        "by its indices and bounds checks"
                    )
                    choices = [Choice("grid", short(turned), "as the code counts"), default]
                    return self._settle(why, choices)
        fitting = self._others()
        if fitting:
            other, count = max(fitting, key=lambda each: each[1])
            meant = self._extent if len(self._axes) > 1 else self._line(count)
            why = (
                f"writes {name!r} first, but not one element for each invocation; {name!r} has "
                f"{_elements(math.prod(self._extent))}, and {other!r}, of which each invocation uses one, "
                f"has {_elements(count)}"
            )
            self._settle(why, [Choice("grid", short(meant), f"as {other!r} has"), default])
            return self._check_filled(writes, meant)
        if not any(map(self._counts, writes)):
            why = f"writes {name!r} at places that do not follow from the number of the invocation"
            self._settle(why, [Choice("groups", (1,), "for one workgroup"), default])
            return self._check_filled(writes, self._extent)
        why = f"divides, masks or changes its invocation's number for the index of {name!r}"
        ends = [self._values.end(access, self._axes[0]) for access in writes]
        known = [end for end in ends if end is not None]
        if len(self._axes) == 1 and len(known) == len(ends):
            meant = self._line(max(known))
            return self._settle(why, [Choice("grid", short(meant), f"to write all of {name!r}"), default])
        letters = ("n",) if self._axes == [0] else _XYZ[: self._axes[-1] + 1]
        raise InvalidArgumentError(
            f"{self._kernel} {why}, and no array defines the number of invocations. Choose the grid: "
            f"{self._spell('grid', letters)} as the code counts, or "
            f"{self._spell('grid', default.counts)} {default.meaning}"
        )

    def _check_filled(self, writes: list[Access], meant: Counts) -> None:
        """Refuses writes by invocations that only fill up the last groups."""
        for axis in self._axes:
            first, last = max(meant[axis], self._extent[axis]), self._launch.run[axis]
            if last > first and any(self._values.uses(access, axis, first) for access in writes):
                letter = "xyz"[axis]
                raise InvalidArgumentError(
                    f"{self._kernel}: {first} invocations in {letter} are filled up to whole groups of "
                    f"{self._launch.local_size[axis]}, and those beyond write "
                    f"{self._code.names[self._source]!r}, too. Check {letter} in the shader "
                    f"(if ({letter} >= {first}) return;)"
                )

    def _counts(self, access: Access) -> bool:
        return any(axis in self._code.axes(index) for index in access.indices for axis in self._axes)

    def _is_bounded(self, access: Access) -> bool:
        """Whether an array besides the first is written behind a comparison of a counted number with a known
        bound, which tells how many invocations have work.
        """
        return access.position != self._source and any(
            self._values.known(right) is not None and self._code.axes(left) & set(self._axes)
            for left, right in access.guards
        )

    def _is_right(self, access: Access, extent: Counts) -> bool:
        """Whether no invocation beyond `extent` writes the array, or each of its own elements has one."""
        if not any(self._values.uses(access, axis, extent[axis]) for axis in self._axes):
            return True
        # Rows may be those of the grid, or of the whole groups.
        several = len(self._axes) > 1 and self._counts(access)
        return several and any(self._is_rows(access, run) for run in (extent, self._launch.run))

    def _is_rows(self, access: Access, extent: Counts) -> bool:
        """Whether the invocations of `extent` use each element of the array once, by rows in any order."""
        found = self._values.sum(access.indices[0])
        if found is None or not access.stride:
            return False
        unknown = {axis for term in found.terms if term[0] == "unknown" for axis in term[2:]}
        factors = {axis: found.on(axis) for axis in self._axes if extent[axis] > 1 and axis not in unknown}
        strange = any(
            factor < 0 or term[0] == "quotient" for term, factor in found.terms.items() if term[0] != "axis"
        )
        lowest = found.constant + sum(min(0, f * (extent[axis] - 1)) for axis, f in factors.items())
        # Numbers that count backwards reach what lies before the first row, too.
        if strange or lowest < 0 or (lowest and min(factors.values(), default=0) < 0):
            return False
        if not all(factors.values()):
            return False
        step = 1  # from one row to the next
        for factor, length in sorted((abs(f), extent[axis]) for axis, f in factors.items()):
            if factor != step:
                return False
            step *= length
        return bool(unknown) or lowest + step >= access.elements(self._bound)

    def _others(self) -> list[tuple[str, int]]:
        """Other arrays with an element for each invocation, by the code, and their numbers of elements."""
        found = []
        for access in self._code.accesses:
            parameter = self._code.signature.parameters[access.position]
            if access.position == self._source or self._bound[access.position] is MISSING:
                continue
            made = self._values.sum(access.indices[0])
            if parameter.kind == "uniform buffer" or made is None or not made.exact or made.constant:
                continue
            count = access.elements(self._bound)
            if len(self._axes) == 1:
                fits = access.stride and made.terms == {("axis", self._axes[0]): 1}
            elif access.stride:
                fits = self._is_rows(access, self._extent) and count == math.prod(self._extent)
            else:
                sums = [self._values.sum(index) for index in access.indices]
                own = [
                    each is not None and each.key == Sum(0, {("axis", axis): 1}).key
                    for axis, each in zip(self._axes, sums, strict=False)
                ]
                fits = all(own) and access.lengths(self._bound) == tuple(
                    self._extent[axis] for axis in self._axes
                )
            if fits:
                found.append((parameter.name, count))
        return found

    def _line(self, count: int) -> Counts:
        grid = list(self._extent)
        grid[self._axes[0]] = count
        return grid[0], grid[1], grid[2]

    def _permutations(self) -> Iterable[Counts]:
        own = tuple(self._extent[axis] for axis in self._axes)
        for other in sorted(set(itertools.permutations(own)) - {own}):
            turned = list(self._extent)
            for axis, count in zip(self._axes, other, strict=True):
                turned[axis] = count
            yield turned[0], turned[1], turned[2]

    def _settle(self, why: str, choices: list[Choice]) -> None:
        settled(self._kernel, why, choices, self._launch.local_size, self._spell)


def settled(
    kernel: str, why: str, choices: list[Choice], local_size: Counts, spell: Spelling = as_keywords
) -> Counts:
    """The grid, if all choices run the same groups.

    Otherwise raises InvalidArgumentError with the choices.
    """
    if len({choice.groups(local_size) for choice in choices}) > 1:
        raise refusal(kernel, why, choices, spell)
    chosen = next(choice for choice in choices if choice.keyword == "grid")
    x, y, z = (*chosen.counts, 1, 1)[:3]
    return x, y, z


def refusal(kernel: str, why: str, choices: Iterable[Choice], spell: Spelling) -> InvalidArgumentError:
    said = ", or ".join(f"{spell(c.keyword, c.counts)} {c.meaning}" for c in choices)
    return InvalidArgumentError(f"{kernel} {why}. Choose the grid: {said}")


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


def short(counts: Counts) -> tuple[int, ...]:
    """The counts without trailing axes of 1."""
    return counts[: 3 if counts[2] != 1 else 2 if counts[1] != 1 else 1]


def _size_text(shape: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, shape)) or '1'} element{'' if math.prod(shape) == 1 else 's'}"
