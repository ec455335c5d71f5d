"""Ranges, weighted means, differences, slopes and areas.

They run several operations, and record them as one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.arrays import as_index, to_flag
from ..._base.errors import InvalidArgumentError
from ..._builders.elementwise import elementwise
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


_central = elementwise("(b - a) / (2 * h)", name="gradient")
_edge = elementwise("(b - a) / h", name="gradient")
_uneven = elementwise(
    "b * (v - u) / (u * v) - a * v / (u * (u + v)) + c * u / (v * (u + v))", name="gradient"
)
_curved = elementwise(
    "s * ((u + v) / (u * v) * b - (2 * u + v) / (u * (u + v)) * a - u / (v * (u + v)) * c)", name="gradient"
)
_area = elementwise("d * (a + b) / 2", name="trapezoid")


@Composed
def gradient(run: Run, f: Array, *spacing: Array, axis: Any = None, edge_order: int = 1) -> Any:
    """The slopes of `f` along axes by the differences of neighbours, as ``np.gradient``.

    Inside they are of the second order, at the ends of the first, or of the second with ``edge_order=2``.
    `spacing` is nothing, one number for all axes, or for each axis a number or the places of its elements.
    One axis gives an array of the shape of `f`, several a tuple of them.

    Raises InvalidArgumentError for `f` without axes, an axis with fewer than ``edge_order + 1`` elements or
    that `f` does not have, another `edge_order` than 1 and 2, another number of spacings, or places of
    another length; ArgumentTypeError unless `edge_order` is an int.

    >>> kp.ops.gradient(np.float32([1, 2, 4, 7]), axis=0).tolist()
    [1.0, 1.5, 2.5, 3.0]
    >>> kp.ops.gradient(np.float32([1, 2, 4]), np.float32([0, 1, 3]), axis=0).tolist()
    [1.0, 1.0, 1.0]

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: any, several, None for all
    :error: 8 roundings of the greatest slope between neighbours
    """
    f = given(f)
    shape = shape_of(f)
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    places = [as_index(each, "gradient: axis") for each in axes]
    if not places:
        raise InvalidArgumentError("gradient: f has no axis; give an array with one or more")
    for place in places:
        if not -len(shape) <= place < len(shape):
            raise InvalidArgumentError(f"gradient: axis is {place}, and f has {len(shape)} axes")
    order = as_index(edge_order, "gradient: edge_order")
    if order not in (1, 2):
        raise InvalidArgumentError(f"gradient: edge_order is {order}; give 1 or 2")
    steps = spacing or (1.0,)
    if len(steps) == 1 and not shape_of(steps[0]):
        steps *= len(places)
    if len(steps) != len(places):
        raise InvalidArgumentError(
            f"gradient: {len(steps)} spacings for {len(places)} axes; give one number, or one for each axis"
        )
    if f.dtype.kind in "biu":
        f = run(divide, f, 1)
    found = [
        _slopes(run, f, place % len(shape), step, order) for place, step in zip(places, steps, strict=True)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(run: Run, f: Array, axis: int, step: Any, order: int) -> Array:
    """The slopes along one axis."""
    length = shape_of(f)[axis]
    if length <= order:
        raise InvalidArgumentError(
            f"gradient: axis {axis} has {length} elements; edge_order={order} takes {order + 1} or more"
        )

    def part(x: Array, first: int, last: int | None = None) -> Array:
        return x[(*(slice(None),) * axis, slice(first, last))]

    uneven = bool(shape_of(step))
    widths = _widths(run, f, step, axis) if uneven else None

    def width(place: int) -> Any:
        return part(widths, place, place + 1 or None) if uneven else step

    parts = []
    if order == 1:
        parts.append(run(_edge, b=part(f, 1, 2), a=part(f, 0, 1), h=width(0)))
        end = run(_edge, b=part(f, -1), a=part(f, -2, -1), h=width(-1))
    else:
        first, second, third = (part(f, n, n + 1) for n in range(3))
        parts.append(run(_curved, s=1, a=first, b=second, c=third, u=width(0), v=width(1)))
        third, second, first = part(f, -3, -2), part(f, -2, -1), part(f, -1)
        end = run(_curved, s=-1, a=first, b=second, c=third, u=width(-1), v=width(-2))
    if length > 2:
        a, b, c = part(f, 0, -2), part(f, 1, -1), part(f, 2)
        if uneven:
            parts.append(run(_uneven, a=a, b=b, c=c, u=part(widths, 0, -1), v=part(widths, 1)))
        else:
            parts.append(run(_central, b=c, a=a, h=step))
    return run(concatenate, [*parts, end], axis)


def _widths(run: Run, f: Array, places: Any, axis: int) -> Array:
    """The differences of places along an axis, to broadcast to those of `f`."""
    shape = shape_of(f)
    if shape_of(places) != (shape[axis],):
        raise InvalidArgumentError(
            f"places of the shape {shape_of(places)} for axis {axis} of {shape[axis]} elements; give one for "
            "each"
        )
    places = given(places)
    if isinstance(places, np.ndarray):
        made = np.diff(places)
        places = made if isinstance(f, np.ndarray) else f.manager.tensor_t(made)
    else:
        places = run(diff, places)
    return places.reshape((shape[axis] - 1, *(1,) * (len(shape) - 1 - axis)))


@Composed
def trapezoid(run: Run, y: Array, x: Array | None = None, dx: float = 1.0, axis: int = -1) -> Array:
    """The area below `y` along `axis`, by trapezoids, as ``np.trapezoid``.

    `x` has the places of the elements: one axis, or the shape of `y`. If it is None, they lie `dx` apart.
    Raises InvalidArgumentError for an axis that `y` does not have, and places of another shape.

    >>> kp.ops.trapezoid(np.float32([1, 2, 4])).item()
    4.5
    >>> kp.ops.trapezoid(np.float32([1, 2, 4]), np.float32([0, 1, 3])).item()
    7.5

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: one
    :error: 1,600 roundings of the sum of absolute areas
    """
    y = given(y)
    shape, place = shape_of(y), as_index(axis, "trapezoid: axis")
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(f"trapezoid: axis is {place}, and y has {len(shape)} axes")
    place %= len(shape)
    if x is None:
        widths = dx
    elif shape_of(x) == shape and len(shape) > 1:
        widths = run(diff, x, 1, place)
    else:
        widths = _widths(run, y, x, place)
    before = (slice(None),) * place
    first, second = y[(*before, slice(None, -1))], y[(*before, slice(1, None))]
    return run(sum_of, run(_area, d=widths, a=first, b=second), axis=place)
