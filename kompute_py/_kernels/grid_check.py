"""Whether a default grid is the one that the shader's code counts.

`kernel_grid` takes the grid from the shape of one array. The elements that invocations use (`kernel_sizes`) may say that the code means
another one. Then the call raises, and the error names both:

* The code's x may count the array's first axis (``c[x * width + y]``, a transposition, ``rows[x][y]``). That is certain if the bounds
  checks hold for the shape's axes in another order, or if the last element is reached in another order only.
* The array that is written first may have another size than the work: a status of one element, a target of scattered
  writes. That is in doubt if no element of it belongs to an invocation, and another array has one for each invocation.
"""

from __future__ import annotations

import itertools
from typing import Any

from .._base.arrays import Counts
from .._shaders.signature import MISSING
from .grid import Choice, Spelling, settled, short
from .sizes import Launch, Reached, SizeRules, Use


class GridCheck:
    """Compares the default grids of a shader with the elements that its invocations use."""

    __slots__ = ("_beside", "_own", "_passed", "_rules")

    def __init__(self, rules: SizeRules) -> None:
        self._rules = rules
        self._own: dict[int, list[tuple[int, Use]]] = {}  # by position
        for index, uses in rules.all:
            for use in uses:
                self._own.setdefault(use.position, []).append((index, use))
        self._passed: tuple[Any, ...] | None = None
        """What the last call looked at that was right: calls repeat."""
        self._beside = [(index, use) for index, uses in rules.all for use in uses]

    def check(
        self, kernel: str, bound: tuple[Any, ...], source: int, axes: str, launch: Launch, spell: Spelling
    ) -> None:
        """Raises InvalidArgumentError if the default grid `launch.extent`, which follows parameter `source`, is in doubt.

        `axes` are those that the code counts.
        """
        sizes = [getattr(each, "nbytes", None) for each in bound]  # samplers and arrays of bindings have none
        looked_at = (source, launch.extent, launch.push, *sizes)
        if looked_at == self._passed:
            return
        own = self._own.get(source)
        if len(axes) > 1:
            if own is not None:
                self._check_order(kernel, bound, source, own, axes, launch, spell)
        elif own is None and self._beside and axes:
            self._check_count(kernel, bound, source, "xyz".index(axes), launch, spell)
        self._passed = looked_at

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
                # All of the array in this order, and not in the default one.
                fills = need not in (None, count) and count == self._needed(index, use, bound, launch, meant)
                if bounds != other and not fills:
                    continue
                name = self._rules.names[source]
                why = f"counts the axes of {name!r} in another order than its shape, by its indices and bounds checks"
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
                f"element{'' if size == 1 else 's'}, and {other!r}, of which each invocation uses one, has {count}"
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
