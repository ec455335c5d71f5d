"""Parts of tensors along an axis, and windows on them: views, which take no time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.arrays import as_index
from ..._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from ..._memory.strided import StridedView
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


@called_only("the view, which functions take when they are recorded")
def sliding_window_view(
    x: Array, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """A view of all windows of `x`, as ``np.lib.stride_tricks.sliding_window_view``: nothing is copied.

    A window has `window_shape` elements along each of `axis`, or along all axes for None. The view has the
    axes of `x`, on which windows begin, then those of a window. Of a Tensor it is a StridedView to read:
    functions of `kp.ops` take it, and `[::n]` of an axis leaves only each n-th window. Windows that overlap
    cannot be written: InvalidArgumentError.

    Raises InvalidArgumentError for axes that `x` does not have, for another number of lengths than axes, and
    for windows that are longer than the axis or have no element.

    >>> kp.ops.sliding_window_view(mgr.tensor([1, 2, 3, 4]), 3).tolist()
    [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]

    :dtypes: all
    :axes: several, None for all
    :error: exact
    """
    x = given(x)
    shape = shape_of(x)
    sizes = window_shape if isinstance(window_shape, (tuple, list)) else [window_shape]
    lengths = [as_index(each, "sliding_window_view: window_shape") for each in sizes]
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, (tuple, list)) else [axis]
    places = [as_index(each, "sliding_window_view: axis") for each in axes]
    if len(lengths) != len(places):
        raise InvalidArgumentError(
            f"sliding_window_view: window_shape has {len(lengths)} lengths for {len(places)} axes; give one "
            "for each"
        )
    starts = list(shape)
    for place, length in zip(places, lengths, strict=True):
        if not -len(shape) <= place < len(shape):
            raise InvalidArgumentError(f"sliding_window_view: axis is {place}, and x has {len(shape)} axes")
        starts[place] -= length - 1
        if length < 1 or starts[place] < 1:
            raise InvalidArgumentError(
                f"sliding_window_view: a window has {length} elements, and axis {place} {shape[place]}; give "
                "1 to as many"
            )
    base, first, steps = (x._base, x._first, x._strides) if isinstance(x, StridedView) else (x, 0, None)
    if isinstance(x, np.ndarray):
        return np.lib.stride_tricks.sliding_window_view(x, lengths, tuple(places))
    if steps is None:
        steps = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
    return StridedView(base, first, (*starts, *lengths), (*steps, *(steps[place] for place in places)))


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
