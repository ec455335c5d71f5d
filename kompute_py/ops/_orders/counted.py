"""Functions with results of a size that depends on the data.

They are Python functions and no operations: the host reads how long a result is before it makes it, so they
wait and cannot be recorded. Each names the operations that it runs, which have results of a fixed size.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.arrays import as_index, refuse_mask, to_flag
from ..._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from ..._base.types import is_small_float
from ..._builders.elementwise import formula
from ..._builders.reduction import reduction
from ..._manager.default import manager as default_manager
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .._places.composed import called_only
from .._places.given import beside, countable, given, host, known, shape_of
from .._places.joining import stack
from .._places.moving import ascontiguousarray, take
from .._values.scans import cumsum
from .searching import bin_counts, int_counts, nonzero_places, run_starts, selected
from .sorting import argsort, sort, sort_by_key

Array = Any


_MOST_BINS = 2**24
"""NumPy makes their edges in a second."""
_FEW_INTS = 1024
"""Counting so many is always less work than sorting."""


_lowest, _highest, _total = (reduction("x", each) for each in ("min", "max", "sum"))


def _first(x: Array, count: Array) -> Array:
    """The first elements of `x`, in memory of their own."""
    n = int(known(count))
    return formula("x")(x[:n]) if isinstance(x, Tensor) else x[:n].copy()


def _flat(x: Array) -> Array:
    x = countable(x)
    if isinstance(x, StridedView):
        x = ascontiguousarray(x)
    return x.reshape(-1)


@called_only("kp.ops.nonzero_places, which has a result of a fixed size")
def flatnonzero(x: Array) -> Array:
    """The places of the elements of `x` that are not zero, in row-major order, as ``np.flatnonzero``.

    The result has one axis and the dtype int64, or int32 on a device without 64-bit ints. It runs
    `kp.ops.nonzero_places`, which can be recorded.

    Raises ArgumentTypeError for complex numbers.

    >>> kp.ops.flatnonzero(np.array([0, 5, 0, 7])).tolist()
    [1, 3]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    return _first(*nonzero_places(_flat(x)))


@called_only("kp.ops.nonzero_places, which has a result of a fixed size")
def nonzero(x: Array) -> tuple[Array, ...]:
    """The places of the elements of `x` that are not zero: for each axis an array, as ``np.nonzero``.

    The dtype is that of `kp.ops.flatnonzero`, which finds them; its operation `kp.ops.nonzero_places` can be
    recorded.

    Raises InvalidArgumentError if `x` has no axes, ArgumentTypeError for complex numbers.

    >>> rows, columns = kp.ops.nonzero(np.array([[0, 5], [7, 0]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])

    :dtypes: all but complex
    :axes: all
    :error: exact
    """
    shape = shape_of(x)
    if not shape:
        raise InvalidArgumentError(
            "nonzero: x is one number, without axes to count places along; give x.reshape(1)"
        )
    places = flatnonzero(x)
    if not isinstance(places, Tensor):
        return tuple(each.astype(places.dtype) for each in np.unravel_index(places, shape))
    found, step = [], 1
    for length in reversed(shape):
        found.append(formula("x // step % length")(places, step, max(length, 1)))
        step *= max(length, 1)
    return tuple(found[::-1])


@called_only("kp.ops.nonzero_places, which has a result of a fixed size")
def argwhere(a: Array) -> Array:
    """The indices of the elements of `a` that are not zero, a row for each, as ``np.argwhere``.

    The rows are those of `kp.ops.nonzero`, as one array. Raises its errors.

    >>> kp.ops.argwhere(np.array([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]

    :dtypes: all but complex
    :axes: all
    :error: exact
    """
    return stack(nonzero(a), 1)


@called_only("kp.ops.selected, which has a result of a fixed size")
def compress(condition: Array, x: Array, axis: int | None = None) -> Array:
    """The elements of `x` at which `condition` is not zero, or its parts along `axis`, as ``np.compress``.

    Without an axis, both are taken in row-major order; with one, `condition` has one axis. It may be shorter
    than `x`. The result has one axis, or those of `x`, and the dtype of `x`. It runs `kp.ops.selected`, or
    `kp.ops.nonzero_places` and `kp.ops.take`, which can be recorded.

    Raises InvalidArgumentError for a condition that is longer and for an axis that `x` does not have,
    ArgumentTypeError for a complex condition.

    >>> kp.ops.compress(np.array([True, False, True]), np.array([5, 6, 7])).tolist()
    [5, 7]
    >>> kp.ops.compress([0, 1], np.array([[1, 2], [3, 4]]), axis=1).tolist()
    [[2], [4]]

    :dtypes: all, the condition all but complex
    :axes: one, None
    :error: exact
    """
    if axis is None:
        condition, x = _flat(condition), _flat(x)
        if x.dtype.names is None:
            return _first(*selected(condition, x))
        axis = 0  # structs are only moved, and `selected` writes zeros
    place, shape, lengths = as_index(axis, "compress: axis"), shape_of(x), shape_of(condition)
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(f"compress: axis is {place}, and x has {len(shape)} axes")
    if len(lengths) != 1 or lengths[0] > shape[place]:
        raise InvalidArgumentError(
            f"compress: condition has the shape {lengths}, and axis {place} of x {shape[place]} elements; "
            "give one axis that is no longer"
        )
    if not isinstance(condition, (Tensor, StridedView)):
        condition = _truth(condition)
    return take(given(x), flatnonzero(condition), place, "clip")


def _truth(condition: Any) -> Any:
    """A condition on the host as bools; complex ones are refused as on the device."""
    found = given(condition)
    return found != 0 if isinstance(found, np.ndarray) and found.dtype.kind in "biuf" else found


@called_only("kp.ops.selected, which has a result of a fixed size")
def extract(condition: Array, x: Array) -> Array:
    """The elements of `x` at which `condition` is not zero, as ``np.extract``: `kp.ops.compress` by another
    name.

    Raises InvalidArgumentError for a condition that is longer, ArgumentTypeError for a complex one.

    >>> x = np.arange(4).reshape(2, 2)
    >>> kp.ops.extract(x % 2 == 1, x).tolist()
    [1, 3]

    :dtypes: all, the condition all but complex
    :axes: None
    :error: exact
    """
    return compress(condition, x)


@called_only("kp.ops.sort and kp.ops.run_starts")
def unique(
    x: Array, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """The different elements of `x` in ascending order, as ``np.unique``.

    The result has one axis. NaN count as equal. If asked for, a tuple follows with the place of the first of
    each in row-major order (`return_index`), for each element of `x` the place of its value in the result, in
    the shape of `x` (`return_inverse`), and how often each is in `x` (`return_counts`). These are int64, or
    int32 on a device without 64-bit ints. It runs `kp.ops.sort`, `kp.ops.run_starts` and `kp.ops.selected`,
    which can be recorded. If `return_index` is not asked for, ints that are few compared with the elements
    are counted instead: `kp.ops.int_counts`.

    Raises UnimplementedError for complex numbers.

    >>> values, counts = kp.ops.unique(np.array([3, 1, 3]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    flags = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    return_index, return_inverse, return_counts = (
        to_flag(flag, f"unique: {name}") for name, flag in flags.items()
    )
    shape = shape_of(x)
    flat = _flat(x)
    if not return_index:
        counted = _counted(flat)
        if counted is not None:
            return _unique_of_counts(*counted, shape, return_inverse, return_counts)
    order = None
    if return_index or return_inverse:
        order = argsort(flat)
        ordered = sort(flat)
    else:
        ordered = sort(flat)
    starts = run_starts(ordered)
    found = [compress(starts, ordered)]
    if return_index:
        found.append(compress(starts, order))
    if return_inverse:
        numbers = cumsum(starts)
        one = formula("x - 1", order.dtype.name if order is not None else None)(numbers)
        found.append(sort_by_key(order, one)[1].reshape(shape))
    if return_counts:
        places = flatnonzero(starts)
        found_at = known(places)
        counts = np.diff(found_at, append=found_at.dtype.type(int(np.prod(shape))))
        found.append(places.manager.tensor_t(counts) if isinstance(places, Tensor) else counts)
    return found[0] if len(found) == 1 else tuple(found)


def _counted(x: Array) -> tuple[Array, int, np.dtype[Any], Array] | None:
    """How often each int from the least one on is in `x`, that one, its dtype, and how far each is above it;
    None if the ints are no fewer than an eighth of the elements, or no ints."""
    dtype, n = np.dtype(x.dtype), x.shape[0]
    if dtype.kind not in "biu" or not n:
        return None
    ends = (
        [x.min(), x.max()] if isinstance(x, np.ndarray) else [known(each(x)) for each in (_lowest, _highest)]
    )
    least, most = (int(each) for each in ends)
    if most - least >= max(_FEW_INTS, min(n // 8, _MOST_BINS)):
        return None
    # Differences of short ints do not fit into their dtype.
    wide = dtype.name if dtype.itemsize >= 4 else "int32"
    above = formula(f"{wide}(x) - least", wide)(x, least)
    return int_counts(above, most - least + 1), least, dtype, above


def _unique_of_counts(
    counts: Array,
    least: int,
    dtype: np.dtype[Any],
    above: Array,
    shape: tuple[int, ...],
    return_inverse: bool,
    return_counts: bool,
) -> Any:
    places = flatnonzero(counts)
    wide = dtype.name if dtype.itemsize >= 4 else "int32"
    cast = "bool_" if dtype.kind == "b" else dtype.name
    found = [formula(f"{cast}({wide}(x) + least)")(places, least)]
    if return_inverse:
        ranks = formula("x - 1", places.dtype.name)(cumsum(formula("x != 0")(counts)))
        found.append(take(ranks, above, 0, "clip").reshape(shape))
    if return_counts:
        found.append(take(counts, places, 0, "clip"))
    return found[0] if len(found) == 1 else tuple(found)


@called_only("kp.ops.int_counts, which is given the length")
def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each int from 0 on is in `x`, or the sum of the weights of its elements, as ``np.bincount``.

    `x` has one axis of ints. The result has one element more than the highest int, and at least `minlength`.
    Its dtype is int64, or int32 on a device without 64-bit ints; with `weights`, of the shape of `x`, it is
    float64, or float32 on a device without it. It runs `kp.ops.int_counts`, which can be recorded.

    Raises InvalidArgumentError for negative ints, a negative `minlength` and another shape, ArgumentTypeError
    for other dtypes.

    >>> kp.ops.bincount(np.array([0, 2, 2])).tolist()
    [1, 0, 2]
    >>> kp.ops.bincount(np.array([0, 2, 2]), np.float32([0.5, 1, 2])).tolist()
    [0.5, 0.0, 3.0]

    :dtypes: ints and bool; weights all but complex
    :axes: None
    :error: exact; with weights that of `kp.ops.int_counts`
    """
    if type(minlength) is not int or minlength < 0:
        raise InvalidArgumentError(f"bincount: minlength is {shown(minlength)}; give an int from 0 on")
    x = given(x)
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"bincount: x has the shape {tuple(x.shape)}; give one axis")
    length = minlength
    if np.dtype(x.dtype).kind in "biu" and x.shape[0]:
        least, most = (int(known(each(x))) for each in (_lowest, _highest))
        if least < 0:
            raise InvalidArgumentError(f"bincount: x has {least}; it counts ints from 0 on")
        length = max(length, most + 1)
    return int_counts(x, length, None if weights is None else given(weights))


@called_only("kp.ops.bin_counts, which is given the edges")
def histogram(
    x: Array,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool | None = None,
    weights: Array | None = None,
) -> tuple[Array, np.ndarray[Any, Any]]:
    """How many elements of `x` are in each bin, and the edges of the bins, as ``np.histogram``.

    `bins` is the number of bins of equal width from ``range[0]`` to ``range[1]`` (by default the lowest and
    the highest element), or the edges, which ascend, or the name of one of NumPy's rules, which the host
    computes from all elements. A bin has the elements from its lower edge to below its upper one; the last
    bin has its upper edge, too. Other elements and NaN are not counted.

    The counts are int64, or int32 on a device without 64-bit ints. With `weights`, of the shape of `x`, each
    element counts as much as its weight, and the sums have the dtype of the weights. With `density` they are
    divided by their sum and the widths of the bins, as float64, or float32 on a device without it. The edges
    are an array of NumPy, on the host. It runs `kp.ops.bin_counts`, which can be recorded; each element takes
    a binary search.

    Raises InvalidArgumentError for bins or a range that NumPy refuses, for weights of another shape and for
    edges beyond the numbers of 32-bit or longer ints, and for more than 2**24 bins; ArgumentTypeError for
    complex numbers and bools.

    >>> counts, edges = kp.ops.histogram(np.float32([0, 1, 2, 2.5, 4]), 2)
    >>> counts.tolist(), edges.tolist()
    ([2, 3], [0.0, 2.0, 4.0])
    >>> kp.ops.histogram(np.float32([0, 1, 3]), 2, (0, 4), weights=np.array([5, 6, 7]))[0].tolist()
    [11, 7]

    :dtypes: all but complex and bool
    :axes: None
    :error: exact; with weights that of `kp.ops.bin_counts`; with density 4 roundings more
    """
    x, density = given(x), to_flag(density, "histogram: density")
    bins = bins if isinstance(bins, (int, np.integer, str)) else host(bins)
    refuse_mask(range, "histogram: range")
    number = bins if isinstance(bins, (int, np.integer)) else np.size(bins) - 1
    if number > _MOST_BINS:
        raise InvalidArgumentError(f"histogram: there are {number} bins; the most are {_MOST_BINS}")
    dtype = np.dtype(x.dtype)
    if is_small_float(dtype):
        x, dtype = formula("x", "float32")(x), np.dtype(np.float32)
    if dtype.kind not in "iuf":
        raise ArgumentTypeError(f"histogram: x is of {dtype}; give ints or floats: x.astype('uint8')")
    sample = np.zeros(0, dtype)
    if isinstance(bins, str):
        if weights is not None:
            raise InvalidArgumentError("histogram: NumPy has no rules for bins of weights; give their number")
        sample = host(x)
    elif np.ndim(bins) == 0 and range is None and int(np.prod(x.shape)):
        sample = np.array([known(each(x)) for each in (_lowest, _highest)], dtype)
    try:
        edges = np.histogram_bin_edges(sample, bins, range)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"histogram: {error}") from None
    if edges.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"histogram: the edges are of {edges.dtype}; give numbers")
    if dtype.kind in "iu" and dtype.itemsize < 4:  # edges may be beyond its numbers
        x, dtype = formula("x", "int32")(x), np.dtype(np.int32)
    rounded = _rounded(edges, dtype)
    counts = bin_counts(
        x, rounded if np.ndim(bins) else beside(x, rounded), None if weights is None else given(weights)
    )
    if density:
        manager = counts.manager if isinstance(counts, Tensor) else default_manager()
        wide = "shaderFloat64" in manager.enabled_features
        widths = np.diff(edges).astype(np.float64 if wide else np.float32)
        counts = formula("n / w / s")(counts, beside(counts, widths), _total(counts))
    return counts, edges


def _least(edge: Any) -> Any:
    """The lowest int that NumPy takes for no less than an edge: ints beyond 2**53 are compared as the floats
    next to them.
    """
    if isinstance(edge, int) or not math.isfinite(edge):
        return edge
    if abs(edge) < 2.0**53:
        return math.ceil(edge)
    middle = (int(math.nextafter(edge, -math.inf)) + int(edge)) // 2
    return middle if float(middle) >= edge else middle + 1


def _rounded(edges: Any, dtype: np.dtype[Any]) -> Any:
    """Edges of a smaller dtype between the same elements: each is the next one above, the last the next one
    below."""
    if np.isnan(edges).any():
        raise InvalidArgumentError("histogram: an edge is NaN")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        exact = [e.item() for e in edges]
        whole, last = [_least(e) for e in exact[:-1]], -_least(-exact[-1])
        if any(e > info.max for e in whole) or last < info.min:
            raise InvalidArgumentError(f"histogram: an edge is beyond the numbers of {dtype}; leave it out")
        return np.array([*(max(e, info.min) for e in whole), min(last, info.max)], dtype)
    with np.errstate(over="ignore"):
        near = edges.astype(dtype)
        up = np.where(near < edges, np.nextafter(near, dtype.type(np.inf)), near)
        down = np.where(near > edges, np.nextafter(near, dtype.type(-np.inf)), near)
    return np.concatenate([up[:-1], down[-1:]]).astype(dtype)
