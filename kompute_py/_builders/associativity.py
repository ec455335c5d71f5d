"""Whether what combines two elements is associative: tried with samples on the host, before any kernel is.

Kernels combine the elements of runs, then what the runs amount to. So an expression that is not associative,
``0.9 * a + b``, gives other numbers as soon as there are several runs. NumPy computes the formulas for some
elements, which the map makes from numbers of each kind, and for combinations of these. Whatever it cannot
compute (GLSL of a preamble, dtypes that NumPy does not have) is not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.warn import warn
from .._formulas.dtypes import castable
from .._formulas.formula import Formula
from .._formulas.functions import CASTS
from .._formulas.nodes import nodes_of

Array = np.ndarray[Any, Any]
Element = list[Array]
"""The values of elements."""

_SAMPLES: dict[str, Array] = {
    "bools": np.array([True, False, True, True, False, False]),
    "ints": np.array([3, -2, 0, 7, 1, -5, 12, 2]),
    "floats": np.array([0.75, -2.5, 3.0, 0.0, 1.5, -0.125, 10.0, 1.0]),
    "complex numbers": np.array([1 + 2j, -0.5j, 3, 0.25 - 1.5j, -2 + 0.5j]),
}
_TOLERANCE = 1e-5
"""Of the largest number in a combination: beyond what rounding makes of them, far below other differences."""
_LARGE = 1e9
_ROUGH = 0.05
"""The same of formulas with conversions to the small floats."""


def check(what: str, formula: Formula, reduce: Formula, commutes: bool) -> None:
    """Gives a KomputeWarning if `reduce` is not associative, or not commutative though that is needed too."""
    for kind, samples in _SAMPLES.items():
        try:
            with np.errstate(all="ignore"):
                found = _counterexample(formula, reduce, samples, commutes)
        except (AttributeError, TypeError, ValueError, OverflowError):
            continue  # the formulas do not take this kind, or NumPy does not have a function
        if found is not None:
            property_, left, right = found
            way = (
                "take the last element of kp.ops.scan, whose reduce need not be commutative"
                if property_ == "commutative"
                else "write elements of several values (a recurrence is a slope and an offset)"
            )
            warn(
                f"{what}: reduce is {reduce.text!r}, which is not {property_}: for {kind}, {left}, and "
                f"{right}. The elements of an axis are combined in parts, so results of many elements are "
                f"wrong: {way}, or say associative=True if the difference does not matter"
            )
            return


def _computed(formula: Formula, values: dict[str, Array]) -> dict[str, Any]:
    """The results in NumPy."""
    done: dict[Any, Any] = {}
    for node in nodes_of(formula.outputs.values()):
        if node.op == "name":
            done[node] = values[node.value]
        elif node.op == "number":
            done[node] = node.value
        else:
            args = [done[each] for each in node.args]
            if node.op in CASTS and node.op[0] not in "cb" and np.iscomplexobj(args[0]):
                raise TypeError
            # NumPy has no function named as those of a preamble: AttributeError.
            done[node] = getattr(np, node.op)(*args)
    return {name: done[node] for name, node in formula.outputs.items()}


def _counterexample(
    formula: Formula, reduce: Formula, samples: Array, commutes: bool
) -> tuple[str, str, str] | None:
    """The property that does not hold, and two combinations that differ, as text."""
    several = len(formula.results) > 1
    # Each argument has other samples, and what they make is combined once: elements as kernels have them.
    given = {name: np.roll(samples, 3 * n) for n, name in enumerate(formula.names)}
    first = [np.broadcast_to(each, samples.shape) for each in _computed(formula, given).values()]
    dtypes = [each.dtype for each in first]

    def combined(a: Element, b: Element) -> Element:
        if several:
            members = zip(formula.results, a, b, strict=True)
            values = {f"{side}.{name}": x for name, *xy in members for side, x in zip("ab", xy, strict=True)}
        else:
            values = {"a": a[0], "b": b[0]}
        found = _computed(reduce, values).values()
        for each, dtype in zip(found, dtypes, strict=True):
            if not castable(np.asarray(each).dtype, dtype):
                raise TypeError
        return [
            np.broadcast_to(np.asarray(x, dtype), a[0].shape) for x, dtype in zip(found, dtypes, strict=True)
        ]

    more = combined([x[::2] for x in first], [np.roll(x, 1)[::2] for x in first])
    every = [np.concatenate(both) for both in zip(first, more, strict=True)]
    places = np.indices((every[0].size,) * 3).reshape(3, -1)
    a, b, c = ([x[place] for x in every] for place in places)
    ab, bc = combined(a, b), combined(b, c)
    casts = {node.op for node in nodes_of((*reduce.outputs.values(), *formula.outputs.values()))}
    tolerance = _ROUGH if "float16" in casts else _TOLERANCE
    ways = [("associative", combined(ab, c), combined(a, bc), [*ab, *bc], "(a b) c", "a (b c)")]
    if commutes:
        ways.append(("commutative", ab, combined(b, a), [], "a b", "b a"))
    for name, left, right, between, one, other in ways:
        place = _difference(left, right, [*a, *b, *c, *between], tolerance)
        if place is not None:
            which = "abc" if one == "(a b) c" else "ab"
            told = ", ".join(f"{n} = {_text(x, place)}" for n, x in zip(which, (a, b, c), strict=False))
            return name, f"{told} give {one} = {_text(left, place)}", f"{other} = {_text(right, place)}"
    return None


def _difference(left: Element, right: Element, others: Sequence[Array], tolerance: float) -> int | None:
    """Where combinations differ by more than rounding. Numbers that are not finite, or large because of a
    division by almost 0, have no part in it.
    """
    size = np.max([np.abs(x.astype(complex)) for x in (*left, *right, *others)], 0)
    for x, y in zip(left, right, strict=True):
        if x.dtype.kind in "fc":
            differ = np.abs(x - y) > tolerance * size
        else:
            differ = x != y
        found = np.flatnonzero(differ & (size < _LARGE))
        if found.size:
            return int(found[0])
    return None


def _text(element: Element, place: int) -> str:
    values = [f"{x[place].item():.6g}" if x.dtype.kind != "b" else str(x[place]) for x in element]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
