"""Parts of tensors along an axis: views, which take no time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.arrays import as_index
from ..._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .composed import called_only
from .given import given, shape_of

Array = Any

_MOST = 2**20
"""The most parts: each one is an object."""


@called_only("the parts themselves: t[a:b] is a view")
def array_split(x: Array, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """`x` in parts along `axis`, as ``np.array_split``: so many, or those that end and begin at indices.

    The parts are views: of Tensors views, of arrays NumPy's. If the axis has no equal parts, the first ones
    have an element more.

    Raises InvalidArgumentError for an axis that `x` does not have and fewer than one part, ArgumentTypeError
    for anything else than ints.

    >>> [each.tolist() for each in kp.ops.array_split(mgr.tensor([1, 2, 3, 4, 5]), 2)]
    [[1.0, 2.0, 3.0], [4.0, 5.0]]

    :dtypes: all
    :axes: one
    :error: exact
    """
    return _parts(x, indices_or_sections, axis, False)


@called_only("the parts themselves: t[a:b] is a view")
def split(x: Array, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """`x` in equal parts along `axis`, or those that end and begin at indices, as ``np.split``.

    The parts are views, as those of `kp.ops.array_split`. Raises its errors, and InvalidArgumentError if the
    axis has no equal parts.

    >>> [each.tolist() for each in kp.ops.split(mgr.tensor([1, 2, 3, 4]), [1, 3])]
    [[1.0], [2.0, 3.0], [4.0]]

    :dtypes: all
    :axes: one
    :error: exact
    """
    return _parts(x, indices_or_sections, axis, True)


@called_only("the parts themselves: t[a:b] is a view")
def hsplit(x: Array, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`x` in equal parts along the second axis, as ``np.hsplit``; a vector along its only one.

    The parts are views, as those of `kp.ops.array_split`. Raises what `kp.ops.split` raises.

    >>> [each.tolist() for each in kp.ops.hsplit(np.array([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]

    :dtypes: all
    :axes: second
    :error: exact
    """
    return _parts(x, indices_or_sections, 0 if len(shape_of(x)) == 1 else 1, True)


@called_only("the parts themselves: t[a:b] is a view")
def vsplit(x: Array, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`x` in equal parts along the first of several axes, as ``np.vsplit``.

    The parts are views, as those of `kp.ops.array_split`. Raises what `kp.ops.split` raises, and
    InvalidArgumentError for fewer than two axes.

    >>> [each.tolist() for each in kp.ops.vsplit(np.array([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]

    :dtypes: all
    :axes: first
    :error: exact
    """
    if len(shape_of(x)) < 2:
        raise InvalidArgumentError(f"x has the shape {shape_of(x)}; give two axes or more")
    return _parts(x, indices_or_sections, 0, True)


def _parts(x: Array, wanted: Any, axis: int, equal: bool) -> list[Array]:
    x = given(x)
    shape, place = shape_of(x), as_index(axis, "axis")
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(f"axis is {place}, and x has {len(shape)} axes")
    place %= len(shape)
    n = shape[place]
    if isinstance(wanted, (int, np.integer)) and not isinstance(wanted, bool):
        count = int(wanted)
        if not 1 <= count <= _MOST:
            raise InvalidArgumentError(f"there are {shown(count)} parts; give 1 to {_MOST}")
        if equal and n % count:
            raise InvalidArgumentError(
                f"axis {place} has {n} elements, which have no {count} equal parts; "
                "kp.ops.array_split makes others"
            )
        each, more = divmod(n, count)
        ends = [each * k + min(k, more) for k in range(count + 1)]
        bounds = list(itertools.pairwise(ends))
    else:
        if isinstance(wanted, np.ndarray) and wanted.size > _MOST:
            raise InvalidArgumentError(f"there are {wanted.size} indices; give {_MOST} at most")
        try:
            indices = [as_index(each, "an index") for each in wanted]
        except TypeError:
            raise ArgumentTypeError(f"the parts are {shown(wanted)}; give their number, or indices") from None
        bounds = [slice(a, b).indices(n)[:2] for a, b in zip([0, *indices], [*indices, None], strict=True)]
    before = (slice(None),) * place
    return [x[(*before, slice(low, max(low, high)))] for low, high in bounds]
