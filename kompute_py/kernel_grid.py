"""How many invocations a kernel runs where a call does not say, and how many of them make a workgroup."""

from __future__ import annotations

import math
from typing import Any

from .arrays import as_indices
from .errors import InvalidArgumentError
from .signature import MISSING, Signature


def counts_of(given: Any, what: str, counted: str) -> tuple[int, int, int]:
    """Up to three counts of what is `counted`, as three: what is left out is 1.

    Raises InvalidArgumentError for a count below 1, ArgumentTypeError for what is no int. `what` names them in errors.
    """
    counts = as_indices(given, what)
    if not 1 <= len(counts) <= 3:
        raise InvalidArgumentError(f"{what} has {len(counts)} numbers; give up to three: (x, y, z)")
    if min(counts) < 1:
        raise InvalidArgumentError(f"{what} is {given!r}; it counts {counted}, at least 1 on each axis")
    x, y, z = (*counts, 1, 1)[:3]
    return x, y, z


def default_grid(kernel: str, signature: Signature, bound: tuple[Any, ...]) -> tuple[int, int, int]:
    """The reversed shape of the first argument that is written. Raises InvalidArgumentError where there is none."""
    for parameter, memory in zip(signature.parameters, bound, strict=False):
        if not parameter.written or memory is MISSING:
            continue
        if parameter.descriptors != 1:
            memory = memory[0]
        if memory._is_image:
            shape: tuple[int, ...] = memory._size.axes
        else:
            shape = memory._shape
        if len(shape) > 3:
            raise InvalidArgumentError(
                f"{kernel}: {parameter.name!r} has shape {shape}, of more than three axes: say how many "
                f"invocations run, for example grid=({math.prod(shape)},)"
            )
        reversed_shape = (*reversed(shape), 1, 1, 1)
        return reversed_shape[0], reversed_shape[1], reversed_shape[2]
    raise InvalidArgumentError(
        f"{kernel} writes no argument whose shape could be the grid: give grid= (invocations) or groups="
    )
