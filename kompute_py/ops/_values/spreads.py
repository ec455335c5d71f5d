"""Ranges, weighted means and differences.

They run several operations, and record them as one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.arrays import as_index, to_flag
from ..._base.errors import InvalidArgumentError
from ..._memory.tensor import Tensor
from .._places.composed import Composed, Run, dense, records
from .._places.given import given, known, shape_of
from .._places.joining import concatenate
from .._places.moving import broadcast_to
from .elements import divide, multiply, not_equal, subtract
from .reductions import max as max_of
from .reductions import mean
from .reductions import min as min_of
from .reductions import sum as sum_of

Array = Any


@Composed
def ptp(run: Run, a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The greatest element less the least over axes, as ``np.ptp``; NaN if there is one.

    Ints wrap as in NumPy. It runs `max`, `min` and `subtract`. Raises their errors.

    >>> kp.ops.ptp(np.array([[1, 5], [7, 2]]), axis=1).tolist()
    [4, 5]

    :dtypes: all but bool; complex numbers by real parts, then by imaginary ones
    :axes: any, several, None for all; ``keepdims=``
    :error: one rounding
    """
    most = run(max_of, a, axis=axis, keepdims=keepdims)
    return run(subtract, most, run(min_of, a, axis=axis, keepdims=keepdims))


@Composed
def average(
    run: Run,
    a: Array,
    axis: Any = None,
    weights: Array | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The weighted mean over axes, as ``np.average``: the sum of `a` times `weights`, by that of `weights`.

    `weights` has the shape of `a`, or one axis if `axis` is one; None is the mean. With `returned`, the sum
    of the weights follows, in the shape of the result. It runs `multiply`, `sum` and `divide`, or `mean`.

    Raises InvalidArgumentError for weights of another shape, and, as NumPy, if their sum is zero anywhere:
    the host waits to see that. A recorded operation gives infinities and NaN there.

    >>> kp.ops.average(np.array([1.0, 2.0, 4.0], np.float32), weights=np.array([3, 1, 1], np.float32)).item()
    1.7999999523162842

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: any, several, None for all; ``keepdims=``
    :error: 1,600 roundings of the weighted mean of absolute values
    """
    shape, returned = shape_of(a), to_flag(returned, "average: returned")
    if weights is None:
        found = run(mean, a, axis=axis, keepdims=keepdims)
        if not returned:
            return found
        count = math.prod(shape) / max(math.prod(shape_of(found)), 1)
        if isinstance(found, Tensor):
            return found, found.manager.full(found.shape, count, found.dtype)
        return found, np.full(found.shape, count, found.dtype)
    lengths = shape_of(weights)
    along = weights if lengths == shape else _along(run, weights, lengths, shape, axis)
    # Products of ints would wrap.
    floats = run(divide, a, 1) if given(a).dtype.kind in "biu" else a
    products = run(multiply, floats, along)
    if lengths == shape:
        scale = run(sum_of, weights, axis=axis, dtype=products.dtype, keepdims=keepdims)
    else:
        scale = run(sum_of, weights, dtype=products.dtype)
    if not records(run) and not np.all(known(scale, 1)):
        raise InvalidArgumentError("average: the weights add up to zero, so there is no mean")
    found = run(divide, run(sum_of, products, axis=axis, keepdims=keepdims), scale)
    return (found, run(broadcast_to, scale, found.shape)) if returned else found


def _along(run: Run, weights: Array, lengths: tuple[int, ...], shape: tuple[int, ...], axis: Any) -> Array:
    """Weights of one axis as an array that broadcasts along `axis`."""
    if axis is None or np.ndim(axis) or len(lengths) != 1:
        raise InvalidArgumentError(
            f"average: a has the shape {shape} and weights {lengths}; give weights of that shape, or of one "
            "axis with the axis that they are for"
        )
    place = as_index(axis, "average: axis")
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(f"average: axis is {place}, and a has {len(shape)} axes")
    if lengths[0] != shape[place]:
        raise InvalidArgumentError(
            f"average: weights has {lengths[0]} elements, and axis {place} of a {shape[place]}"
        )
    return dense(run, weights).reshape((lengths[0], *(1,) * (len(shape) - 1 - place % len(shape))))


@Composed
def diff(
    run: Run, a: Array, n: int = 1, axis: int = -1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """The differences of neighbours along `axis`, `n` times over, as ``np.diff``.

    The axis gets shorter by `n`, and is empty if it has no more. Ints wrap as in NumPy; of bools it tells
    which neighbours differ. `prepend` and `append` stand before and behind `a` along the axis: arrays or
    Tensors, or a number, which stands there once. All take NumPy's common dtype, to which Python's numbers
    count as int64 or float64. It runs `concatenate` if they are given, and `subtract` of two parts.

    Raises InvalidArgumentError for a negative `n`, a scalar, an axis that the shape does not have, and other
    shapes of `prepend` and `append`.

    >>> kp.ops.diff(np.array([1, 4, 9, 16])).tolist()
    [3, 5, 7]
    >>> kp.ops.diff(np.array([1, 4, 9]), prepend=0).tolist()
    [1, 3, 5]

    :dtypes: all
    :axes: one
    :error: a rounding for each time
    """
    times, place = as_index(n, "diff: n"), as_index(axis, "diff: axis")
    if times < 0:
        raise InvalidArgumentError(f"diff: n is {times}; give an int from 0 on")
    found = given(a)
    shape = shape_of(found)
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(
            f"diff: axis is {place}, and a has {len(shape)} axes" if shape else "diff: a is a scalar"
        )
    parts = [_beside(run, each, found, place % len(shape)) for each in (prepend, append) if each is not None]
    if parts and times:
        parts.insert(prepend is not None, found)
        found = run(concatenate, parts, place)
        shape = shape_of(found)
    between = not_equal if found.dtype == np.bool_ else subtract
    before = (slice(None),) * (place % len(shape))
    for _ in range(min(times, shape[place])):  # then it is empty
        found = run(between, found[(*before, slice(1, None))], found[(*before, slice(None, -1))])
    return found


def _beside(run: Run, x: Array, a: Array, axis: int) -> Array:
    """A neighbour of `a` along an axis: a number is there once."""
    x = given(x)
    if not shape_of(x):
        wanted = tuple(1 if n == axis else length for n, length in enumerate(shape_of(a)))
        x = np.broadcast_to(x, wanted) if isinstance(x, np.ndarray) else run(broadcast_to, x, wanted)
    return a.manager.tensor_t(x) if records(run) and isinstance(x, np.ndarray) else x
