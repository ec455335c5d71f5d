"""Checks that a default grid agrees with the elements that the shader's code uses.

`grid` takes the default grid from the shape of one array. The elements that invocations use (`sizes`) may
contradict it. The call then raises an error that names both grids:

* The code's x may count the array's first axis (``c[x * width + y]``, a transposition, ``rows[x][y]``). That
  is certain if the bounds checks hold for the shape's axes in another order, or if only another order reaches
  the last element.
* The size of the first written array may differ from the amount of work: a status of one element, a target of
  scattered writes. The grid is in doubt if none of the array's elements belongs to an invocation, and another
  array has one for each invocation.
* The code may divide, mask or shift the number, or subtract from it: ``b[i / 2]``, ``b[i & 3]``, ``b[i -
  1]``. Then the array may have more elements than the default grid reaches, or a size unrelated to the work.
  With the index as a sum of digits (`digits`), the rule is:

  - The default grid is right if no invocation beyond it uses an element of the array, by the index or by a
    bounds check, or if its invocations use all elements (``c * n + p`` of ``c = i % 3`` and ``p = i / 3``).
  - If the code uses more of another array with more invocations (``b[i & 3] += a[i]``), that array is
    counted: the call raises.
  - The default grid is right if another array has one element for each of its invocations.
  - Otherwise the call raises, and names the grid that reaches all elements, if there is one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from .._base.arrays import Counts
from .._base.errors import InvalidArgumentError
from .._shaders.signature import MISSING
from . import digits
from .accesses import Access, Accesses, Numbers
from .digits import Sum
from .grid import Choice, GridRule, Spelling, as_keywords, settled, short
from .sizes import Launch, Reached, SizeRules, Use
from .spill import SpillCheck

if TYPE_CHECKING:
    from .._shaders.constants import Specialization
    from .._shaders.module import ShaderModule
    from .._shaders.signature import Signature

_MOST_PASSED = 256


class GridCheck:
    """Compares the default grids of a shader with the elements that its invocations use."""

    __slots__ = ("_accesses", "_beside", "_own", "_passed", "_rules", "_settings", "spill")

    def __init__(self, rules: SizeRules, settings: frozenset[int] = frozenset()) -> None:
        """`rules` belong to the optimized code. `settings`: parameters with sizes unrelated to the work."""
        self._rules = rules
        self._accesses = Accesses(rules)
        self._settings = settings
        plain = [(index, uses) for index, uses in rules.all if not self._accesses.narrows(index)]
        self._own: dict[int, list[tuple[int, Use]]] = {}  # by position
        for index, uses in rules.all:
            for use in uses:
                self._own.setdefault(use.position, []).append((index, use))
        self._passed: set[tuple[Any, ...]] = set()
        """Sizes and values of calls that passed, because calls repeat."""
        self._beside = [(index, use) for index, uses in plain for use in uses]
        self.spill = SpillCheck(rules, self._accesses)
        """The check of the invocations that fill up the last workgroups."""

    @property
    def rules(self) -> SizeRules:
        """The relations among the arrays, of the optimized code."""
        return self._rules

    @property
    def accesses(self) -> Accesses:
        """All accesses of the optimized code."""
        return self._accesses

    @property
    def looks_at_push(self) -> bool:
        """Whether push constants are among what it looks at."""
        return bool(self._accesses.push)

    def needed(self, source: int | None, axes: str) -> bool:
        """Whether the default grid of this shader can be in doubt."""
        if source is not None and len(axes) == 1 and source in self._accesses.plain:
            return False
        return bool(axes and (self._rules.all or self._accesses.all))

    def judge(
        self,
        kernel: str,
        bound: tuple[Any, ...],
        rule: GridRule,
        launch: Launch,
        spell: Spelling = as_keywords,
    ) -> None:
        """Raises InvalidArgumentError if the default grid `launch.extent`, from `rule`, is in doubt."""
        source = rule.source(bound)
        known = source is not None or rule.has_source(bound)
        if known and all(launch.groups) and self.needed(source, rule.axes):
            self._check(kernel, bound, source, rule.axes, launch, spell)

    def _check(
        self,
        kernel: str,
        bound: tuple[Any, ...],
        source: int | None,
        axes: str,
        launch: Launch,
        spell: Spelling,
    ) -> None:
        """As `judge`. The grid follows parameter `source`, None for a counter; the code counts `axes`."""
        # Samplers and arrays of bindings have neither.
        sizes = [(getattr(each, "nbytes", None), getattr(each, "shape", None)) for each in bound]
        push, start = launch.push, launch.push_offset
        values = [push[at - start : at - start + 4] for at in self._accesses.push if at >= start]
        looked_at = (source, launch.extent, *values, *sizes)
        if looked_at in self._passed:
            return
        own = None if source is None else self._own.get(source)
        if len(axes) > 1:
            if source is not None and own is not None:
                self._check_order(kernel, bound, source, own, axes, launch, spell)
        elif source is not None and own is None and self._beside and axes:
            self._check_count(kernel, bound, source, "xyz".index(axes), launch, spell)
        if axes and self._accesses.all:
            _Doubt(self._rules, self._accesses, kernel, bound, axes, launch, spell).check(
                source, self._settings
            )
        if len(self._passed) >= _MOST_PASSED:
            self._passed.clear()
        self._passed.add(looked_at)

    def several(self, bound: tuple[Any, ...], axes: str, local_size: Counts, position: int) -> int | None:
        """The number of invocations that use the elements of an argument, if several use one and push
        constants do not
        change it."""
        launch = Launch((1, 1, 1), (1, 1, 1), local_size, b"", 0, True)
        return _Doubt(self._rules, self._accesses, "", bound, axes, launch, as_keywords).several(position)

    def _check_order(
        self,
        kernel: str,
        bound: tuple[Any, ...],
        source: int,
        own: list[tuple[int, Use]],
        axes: str,
        launch: Launch,
        spell: Spelling,
    ) -> None:
        assert launch.extent is not None
        counted = ["xyz".index(axis) for axis in axes]
        extent = tuple(launch.extent[axis] for axis in counted)
        others = set(itertools.permutations(extent)) - {extent}
        if not others:
            return
        for index, use in own:
            count = use.elements(bound)
            reached = Reached(self._rules, bound, launch)
            limits = reached.limits(use.guards)
            bounds = tuple(limits.get(axis) for axis in counted)
            need = reached.needed(index, use.guards)
            for other in others:
                turned = list(launch.extent)
                for axis, invocations in zip(counted, other, strict=True):
                    turned[axis] = invocations
                meant: Counts = (turned[0], turned[1], turned[2])
                # This order reaches the whole array; the default one does not.
                fills = need not in (None, count) and count == self._needed(index, use, bound, launch, meant)
                if bounds != other and not fills:
                    continue
                name = self._rules.names[source]
                why = (
                    f"counts the axes of {name!r} in another order than its shape, "
                    "by its indices and bounds checks"
                )
                choices = [
                    Choice("grid", short(meant), "as the code counts"),
                    Choice("grid", short(launch.extent), "for the reversed shape"),
                ]
                settled(kernel, why, choices, launch.local_size, spell)
                return

    def _check_count(
        self, kernel: str, bound: tuple[Any, ...], source: int, axis: int, launch: Launch, spell: Spelling
    ) -> None:
        assert launch.extent is not None
        invocations = launch.extent[axis]
        slack = launch.local_size[0] * launch.local_size[1] * launch.local_size[2]
        for index, use in self._beside:
            if bound[use.position] is MISSING:
                continue
            plain = self._needed(index, use._replace(guards=()), bound, launch, launch.extent)
            if plain is None or not invocations <= plain < invocations + slack:
                continue  # not one element for each invocation
            count = use.elements(bound)
            if count == invocations or not count:
                continue
            counts = [1, 1, 1]
            counts[axis] = count
            meant: Counts = (counts[0], counts[1], counts[2])
            need = self._needed(index, use, bound, launch, launch.extent)
            wanted = self._needed(index, use, bound, launch, meant)
            if need is None or wanted is None:
                continue
            left = min(wanted, count) > min(need, count)
            if not left and need < count + slack:
                continue
            name, other = self._rules.names[source], self._rules.names[use.position]
            size = launch.extent[axis]
            why = (
                f"writes {name!r} first, but not one element for each invocation; {name!r} has {size} "
                f"element{'' if size == 1 else 's'}, and {other!r}, of which each invocation uses one, has "
                f"{count}"
            )
            choices = [
                Choice("grid", short(meant), f"as {other!r} has"),
                Choice("grid", short(launch.extent), f"as {name!r} has"),
            ]
            settled(kernel, why, choices, launch.local_size, spell)

    def _needed(
        self, index: int, use: Use, bound: tuple[Any, ...], launch: Launch, extent: Counts
    ) -> int | None:
        i, j, k = launch.local_size
        groups = (-(-extent[0] // i), -(-extent[1] // j), -(-extent[2] // k))
        return Reached(self._rules, bound, launch._replace(extent=extent, groups=groups)).needed(
            index, use.guards
        )


def grid_check(module: ShaderModule, signature: Signature, special: Specialization) -> GridCheck:
    """The check of a module with these constants and this signature."""
    # The optimized code: without dead code, with functions inlined.
    rules = SizeRules(signature, module, special, optimized=True)
    return GridCheck(
        rules, frozenset(i for i, p in enumerate(signature.parameters) if p.kind == "uniform buffer")
    )


class _Doubt:
    """Compares the default grid of one call with indices that are sums of the digits of an invocation's
    number.
    """

    def __init__(
        self,
        rules: SizeRules,
        accesses: Accesses,
        kernel: str,
        bound: tuple[Any, ...],
        axes: str,
        launch: Launch,
        spell: Spelling,
    ) -> None:
        assert launch.extent is not None
        self._names = rules.names
        self._accesses = accesses
        self._numbers = Numbers(rules, accesses, bound, launch)
        self._kernel, self._bound, self._launch, self._spell = kernel, bound, launch, spell
        self._counted = ["xyz".index(axis) for axis in axes]
        self._default = launch.extent
        run = [
            launch.extent[axis] if axis in self._counted else launch.groups[axis] * launch.local_size[axis]
            for axis in range(3)
        ]
        self._extent: Counts = (run[0], run[1], run[2])

    def check(self, source: int | None, settings: frozenset[int]) -> None:
        """Raises InvalidArgumentError if the grid is in doubt; `settings` as in `GridCheck`."""
        ends: list[dict[int, int | None]] = []  # of accesses in doubt: the invocations they need on each axis
        followed = False
        if source is not None:
            mine = [(n, a) for n, a in enumerate(self._accesses.all) if a.position == source and a.written]
            for number, access in mine:
                found = self._numbers.element(access)
                if found is None and number not in self._accesses.narrow:
                    continue  # it comes from memory or a loop
                followed = True
                need = self._beyond(access, found)
                if need:
                    ends.append(need)
            if followed and (not ends or any(self._fills(access) for _, access in mine)):
                if ends and len(self._counted) == 1:
                    self._count_others(source, settings, False)
                return
        if len(self._counted) == 1:
            if self._count_others(source, settings, not followed) or not followed:
                return
        elif not ends or self._filled_beside(source, settings):
            return
        assert source is not None
        self._refuse(source, ends)

    def several(self, position: int) -> int | None:
        """As `GridCheck.several`."""
        found = None
        for number, access in enumerate(self._accesses.all):
            element = self._numbers.element(access) if access.position == position else None
            if element is None or number not in self._accesses.narrow or len(self._counted) != 1:
                continue
            end = digits.end(element, self._counted[0], self._extent, access.elements(self._bound))
            if end is not None:
                found = max(end, found or 0)
        return found

    # -- one access ------------------------------------------------------------------------------------------

    def _beyond(self, access: Access, found: Sum | None) -> dict[int, int | None]:
        """The axes on which invocations beyond the grid may use elements, and the end of these, if known."""
        count = access.elements(self._bound)
        need: dict[int, int | None] = {}
        run = list(self._extent)
        for axis in self._from_the_slowest(found):
            limit = self._numbers.limit(access, axis, self._extent)
            if limit is not None and limit <= self._extent[axis]:
                continue
            end = None if found is None else digits.end(found, axis, run, count)
            if end is not None and end <= self._extent[axis]:
                continue
            if len(self._counted) > 1 and found is not None:
                own = found.on(axis)
                if not own or (found.whole(axis) and found.constant >= 0):
                    continue  # rows may be longer than their written part
            meant = limit if end is None else end if limit is None else min(end, limit)
            need[axis] = meant
            if meant is not None:
                run[axis] = meant  # a column ends at the last of all rows
        return need

    def _from_the_slowest(self, found: Sum | None) -> list[int]:
        """The counted axes, ordered by step: larger steps first."""
        if found is None:
            return self._counted
        return sorted(self._counted, key=lambda axis: -max(map(abs, found.on(axis).values()), default=0))

    def _reaching(self, access: Access) -> Counts:
        """The invocations of the default grid that pass the guards."""
        run = list(self._extent)
        for axis in self._counted:
            limit = self._numbers.limit(access, axis, self._extent)
            if limit is not None:
                run[axis] = min(run[axis], max(limit, 0))
        return run[0], run[1], run[2]

    def _fills(self, access: Access) -> bool:
        """Whether the default grid uses every element."""
        found = self._numbers.element(access)
        if found is None or not digits.covers(found, self._reaching(access), access.elements(self._bound)):
            return False
        # An access under unknown conditions may wrap around the array.
        return access.certain or all(
            any(not digit.radix for digit in found.on(axis)) for axis in self._counted
        )

    # -- other arrays ----------------------------------------------------------------------------------------

    def _others(self, source: int | None, settings: frozenset[int]) -> list[tuple[int, Access, Sum]]:
        found = []
        for number, access in enumerate(self._accesses.all):
            if access.position == source or access.position in settings:
                continue
            if self._bound[access.position] is MISSING:
                continue
            element = self._numbers.element(access)
            if element is not None and not element.loose and element.constant == 0:
                found.append((number, access, element))
        return found

    def _filled_beside(self, source: int | None, settings: frozenset[int]) -> bool:
        return any(
            digits.covers(element, self._reaching(access), access.elements(self._bound))
            and all(element.whole(axis) for axis in self._counted)
            for _, access, element in self._others(source, settings)
        )

    def _count_others(self, source: int | None, settings: frozenset[int], narrow: bool) -> bool:
        """Whether another array has one element for each invocation. Raises if more invocations use more of
        another array.

        `narrow`: only arrays with an index that divides or masks the number.
        """
        axis = self._counted[0]
        run = self._extent[axis]
        agreed = False
        for number, access, element in self._others(source, settings):
            if narrow and number not in self._accesses.narrow:
                continue
            count = access.elements(self._bound)
            own = element.on(axis)
            if not own or min(own.values()) < 0 or all(digit.radix for digit in own):
                continue
            reaching = self._reaching(access)
            used = 1 + sum(f * d.most(reaching[d.axis]) for d, f in element.digits.items())
            end = digits.end(element, axis, self._extent, count)
            limit = self._numbers.limit(access, axis, self._extent)
            if end is None:
                continue
            end = end if limit is None else min(end, limit)
            step = min(digit.step for digit in own)
            if used >= count:
                agreed = agreed or run <= end or run - end < step
                too_many = access.certain and end <= run - step and limit is None and not narrow
                if not too_many:
                    continue
            elif end <= run:
                continue
            self._settle_for(access, count, end, source)
        return agreed

    def _settle_for(self, access: Access, count: int, end: int, source: int | None) -> None:
        name = self._names[access.position]
        meant = self._with({self._counted[0]: end})
        if source is None:
            why = (
                f"writes no array whose elements could be counted; {end} invocations use the "
                f"{_elements(count)} of {name!r}"
            )
            default = Choice("grid", short(self._default), "as by default")
        else:
            first = self._names[source]
            size = self._default[self._counted[0]]
            why = (
                f"writes {first!r} first, but not one element for each invocation; {first!r} has "
                f"{_elements(size)}, and "
                f"{end} invocations use the {_elements(count)} of {name!r}"
            )
            default = Choice("grid", short(self._default), f"as {first!r} has")
        choices = [Choice("grid", short(meant), f"for all of {name!r}"), default]
        settled(self._kernel, why, choices, self._launch.local_size, self._spell)

    # -- refusals --------------------------------------------------------------------------------------------

    def _with(self, ends: dict[int, int]) -> Counts:
        grid = list(self._default)
        for axis, end in ends.items():
            grid[axis] = end
        return grid[0], grid[1], grid[2]

    def _refuse(self, source: int, ends: list[dict[int, int | None]]) -> None:
        name = self._names[source]
        why = f"divides, masks or shifts its invocation's number for the index of {name!r}"
        default = Choice("grid", short(self._default), f"as {name!r} has elements")
        furthest: dict[int, int] = {}
        for need in ends:
            for axis, end in need.items():
                if end is None:
                    raise self._open(why, default)
                furthest[axis] = max(end, furthest.get(axis, 0))
        choices = [Choice("grid", short(self._with(furthest)), f"to write all of {name!r}"), default]
        settled(self._kernel, why, choices, self._launch.local_size, self._spell)

    def _open(self, why: str, default: Choice) -> InvalidArgumentError:
        letters = (
            ("n",) if self._counted == [0] else ("x", "y") if self._counted == [0, 1] else ("x", "y", "z")
        )
        return InvalidArgumentError(
            f"{self._kernel} {why}, and no array defines the number of invocations. Choose the grid: "
            f"{self._spell('grid', letters)} as the "
            f"code counts, or {self._spell('grid', default.counts)} {default.meaning}"
        )


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
