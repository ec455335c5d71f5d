"""Medians, quantiles and percentiles: of sorted elements, those at the places that the host computes.

The places depend on the number of elements only, which is the same for all lines. Without NaN, lines have
numbers of their own: a call reads them, and what is recorded looks the places up in a table of all numbers.
For one fraction of a long line nothing is sorted: a partition has the element below in place, and the one
above is the least of those after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._base.arrays import as_indices, to_flag
from ..._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from ..._builders.elementwise import formula
from ..._builders.walks import axes_of
from ..._formulas.dtypes import promoted
from ..._manager.default import manager as default_manager
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .._places.composed import Composed, Run, dense, records
from .._places.given import beside, countable, host, known, shape_of
from .._places.indexing import take_along_axis
from .._places.moving import take, transpose
from .._values.elements import divide
from .._values.nans import has_nan, nanmin, numbers_of
from .._values.reductions import min as least_of
from .selecting import LEAST
from .sorting import partition, sort

Array = Any


def _fraction(places: Any) -> Any:
    return places - np.floor(places)


def _above_half(places: Any) -> Any:
    part = _fraction(places)
    return (part > 0.5) | ((part == 0.5) & (np.floor(places) % 2 == 1))


def _hyndman_fan(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


_MOST_FRACTIONS = 2**20
"""The most numbers of `q`: the host computes their places."""


class _Method(NamedTuple):
    """A method of NumPy."""

    place: Callable[[Any, Any], Any]
    """The place among n sorted elements for the fraction q: between two of them, unless it is whole."""
    weight: Callable[[Any], Any]
    """The share of the upper one, by the place."""
    takes: bool = False
    """Whether it takes one of them."""


def _linear(n: Any, q: Any) -> Any:
    return (n - 1) * q


_METHODS = {
    "linear": _Method(_linear, _fraction),
    "lower": _Method(_linear, np.zeros_like, True),
    "higher": _Method(_linear, lambda place: _fraction(place) > 0, True),
    "nearest": _Method(_linear, _above_half, True),
    "midpoint": _Method(_linear, lambda place: (_fraction(place) > 0) * 0.5),
    "inverted_cdf": _Method(_hyndman_fan(0, 1), lambda place: _fraction(place) > 0, True),
    "averaged_inverted_cdf": _Method(
        _hyndman_fan(0, 1), lambda place: np.where(_fraction(place) > 0, 1.0, 0.5)
    ),
    "closest_observation": _Method(
        lambda n, q: n * q - 1.5, lambda place: (_fraction(place) > 0) | (np.floor(place) % 2 == 0), True
    ),
    "interpolated_inverted_cdf": _Method(_hyndman_fan(0, 1), _fraction),
    "hazen": _Method(_hyndman_fan(0.5, 0.5), _fraction),
    "weibull": _Method(_hyndman_fan(0, 0), _fraction),
    "median_unbiased": _Method(_hyndman_fan(1 / 3, 1 / 3), _fraction),
    "normal_unbiased": _Method(_hyndman_fan(3 / 8, 3 / 8), _fraction),
}
"""By the definitions of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", 1996."""


class _Places(NamedTuple):
    """For numbers of elements (rows) and fractions (columns)."""

    below: Any
    above: Any
    weight: Any
    """The share of the elements above."""


def _places(numbers: Any, q: Any, method: _Method) -> _Places:
    n = numbers.astype(np.float64)[:, np.newaxis]
    place = method.place(n, q)
    most = np.maximum(n - 1, 0)
    below, above = (np.clip(np.floor(place) + more, 0, most).astype(np.int32) for more in (0, 1))
    weight = np.broadcast_to(method.weight(place), place.shape).astype(np.float64)
    if method.takes:
        below = np.where(weight != 0, above, below)
    return _Places(below, above, weight)


_BETWEEN = "where(w == 0, lo, minimum(maximum(lo * (1 - w) + hi * w, lo), hi))"


def _found(
    run: Run,
    a: Array,
    q: Any,
    axis: Any,
    keepdims: bool,
    name: str,
    skips: bool,
    whole: float = 1.0,
) -> Array:
    """The quantiles; `skips` leaves NaN out."""
    keepdims = to_flag(keepdims, "keepdims")
    method = _METHODS.get(name) if isinstance(name, str) else None
    if method is None:
        raise InvalidArgumentError(f"method is {shown(name)}; the methods are {', '.join(_METHODS)}")
    fractions = np.asarray(host(q))
    if fractions.size > _MOST_FRACTIONS:
        raise InvalidArgumentError(f"q has {fractions.size} numbers; the most are {_MOST_FRACTIONS}")
    if fractions.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"q is {shown(q)}; give numbers from 0 to {whole:g}")
    if not ((fractions >= 0) & (fractions <= whole)).all():
        raise InvalidArgumentError(f"q is {shown(q)}; give numbers from 0 to {whole:g}")
    weak = type(q) in (int, float) or (whole == 1 and fractions.dtype.kind != "f")
    strong = [] if weak else [promoted([fractions.dtype, "float"])]
    fractions = fractions / whole
    a = countable(a)
    shape, dtype = shape_of(a), np.dtype(a.dtype)
    axes = axes_of("a", None if axis is None else as_indices(axis, "axis"), len(shape))
    rest = [each for each in range(len(shape)) if each not in axes]
    n, lines = (math.prod(shape[each] for each in some) for some in (axes, rest))
    kept = [1 if each in axes else shape[each] for each in range(len(shape)) if keepdims or each in rest]
    if not lines or not fractions.size or not n:
        return _of_nothing(a, (*fractions.shape, *kept), method, strong)
    order = [*rest, *axes]
    lined = dense(run, a) if order == sorted(order) else run(transpose, a, order)
    lined = lined.reshape((lines, n))
    skips = skips and has_nan(dtype)
    parts = fractions.size == 1 and n >= LEAST and dtype.kind != "c"
    # NaN come last: of one line it is enough to know how many elements are before them.
    one = skips and parts and lines == 1 and not records(run)
    own = skips and not one
    full = int(known(run(numbers_of, lined, axis=1), n)[0]) if one else n
    places = _places(np.array([full]), fractions.reshape(-1), method)
    at = int(places.below[0, 0]) if parts else n
    ordered = run(sort, lined, -1) if own or at == n else run(partition, lined, at, -1)
    numbers = run(numbers_of, ordered, axis=1) if own else None
    if own:
        counts = np.arange(n + 1) if records(run) else known(numbers, n)
        places = _places(counts, fractions.reshape(-1), method)
    after = None
    looks = has_nan(dtype) and not skips
    if not own and at + 1 < n and (looks or not method.takes):
        after = run(nanmin if one else least_of, ordered[:, at + 1 :], 1, keepdims=True)

    def row(values: Any) -> Array:
        """For each line its row, or one for all."""
        made = beside(ordered, values)
        return run(take, made, numbers, 0, "clip") if own and records(run) else made

    def pick(values: Any) -> Array:
        if not own:
            return run(take, ordered, beside(ordered, values[0]), 1, "clip")
        return run(take_along_axis, ordered, row(values), 1, "clip")

    found = pick(places.below)
    if not method.takes:
        above = pick(places.above) if after is None or places.above[0, 0] == at else after
        lo, hi = (run(divide, each, 1) if dtype.kind in "biu" else each for each in (found, above))
        result = _between(dtype, strong, ordered)
        wide = np.float64 if result == np.float64 else np.float32
        found = run(formula(_BETWEEN, result.name), row(places.weight.astype(wide)), lo, hi)
    if looks:
        last = pick(np.array([[n - 1]], np.int32)) if after is None else after
        found = run(formula("where(isnan(x), x, y)"), last, found)
    if fractions.ndim and fractions.size > 1 and lines > 1:
        found = run(transpose, found)
    return found.reshape((*fractions.shape, *kept))


def _between(dtype: np.dtype[Any], strong: list[np.dtype[Any]], a: Array) -> np.dtype[Any]:
    """The dtype of numbers between two of `dtype`; `strong` has the dtype of fractions that have one."""
    found = promoted([dtype, *strong, "float"])
    manager = a.manager if isinstance(a, (Tensor, StridedView)) else default_manager()
    known = manager is not None  # no device is asked for `meta`
    if found == np.float64 and known and "shaderFloat64" not in manager.enabled_features:
        return np.dtype(np.float32)
    return found


def _of_nothing(a: Array, shape: tuple[int, ...], method: _Method, strong: list[np.dtype[Any]]) -> Array:
    """NaN for each line without elements, or no results."""
    dtype = np.dtype(a.dtype)
    if not method.takes:
        dtype = _between(dtype, strong, a)
    if math.prod(shape) and not has_nan(dtype):
        raise InvalidArgumentError(f"no elements have no such value in {dtype}")
    nan = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    return beside(a, np.full(shape, nan if math.prod(shape) else 0, dtype))


@Composed
def quantile(
    run: Run, a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """The element below which the fraction `q` of the elements over axes lies, as ``np.quantile``.

    `q` is a number from 0 to 1, or an array of them: its axes are then the first of the result. The host
    computes the places from it, also when it is recorded: what is recorded keeps them. `method` is one of
    NumPy's: "linear" (the default), "lower", "higher", "nearest" or "midpoint" of the two neighbours, or
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
    "weibull", "median_unbiased" or "normal_unbiased".

    The result has the common dtype of `a` and `q`, as NumPy's: numbers of Python and ints have none in `q`,
    and a list of floats is float64. Ints and bools alone give float64. On a device without it, float32 stands
    for it. Methods that take an element keep the dtype of `a`. The result is NaN if there is a NaN, and of no
    elements. Between a number and an infinity, or between two infinities of one sign, it is that infinity;
    between -inf and inf it is NaN. (NumPy gives NaN for some of the former.) It runs `partition` for
    one fraction of lines of 1,024 elements or more, else `sort`.

    Raises InvalidArgumentError for `q` beyond 0 to 1, another method, an axis that the shape does not have or
    that is given twice; ArgumentTypeError if `q` is not a number; and what `sort` raises.

    >>> kp.ops.quantile(mgr.tensor([4, 1, 2, 3]), [0.25, 0.5]).tolist()
    [1.75, 2.5]

    :dtypes: all but complex
    :axes: any, several, None for all; ``keepdims=``
    :error: 3 roundings of the larger of two neighbours; exact for methods that take an element
    """
    return _found(run, a, q, axis, keepdims, method, False)


@Composed
def percentile(
    run: Run, a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """The element below which `q` of a hundred elements over axes lie, as ``np.percentile``.

    It is `quantile` with ``q / 100``, and its dtype counts unless `q` is a number of Python. Raises its
    errors, for `q` beyond 0 to 100.

    >>> kp.ops.percentile(mgr.tensor([4, 1, 2, 3]), 75, method="lower").item()
    3.0

    :dtypes: all but complex
    :axes: any, several, None for all; ``keepdims=``
    :error: 3 roundings of the larger of two neighbours; exact for methods that take an element
    """
    return _found(run, a, q, axis, keepdims, method, False, 100.0)


@Composed
def median(run: Run, a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The element in the middle of the sorted elements over axes, or the mean of both, as ``np.median``.

    It is `quantile` with 0.5. Raises its errors.

    >>> kp.ops.median(mgr.tensor([4, 1, 2, 3])).item()
    2.5

    :dtypes: all but complex
    :axes: any, several, None for all; ``keepdims=``
    :error: 3 roundings of the larger of two neighbours; exact for methods that take an element
    """
    return _found(run, a, 0.5, axis, keepdims, "linear", False)


@Composed
def nanquantile(
    run: Run, a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """`quantile` of the elements that are not NaN, as ``np.nanquantile``; NaN if there are none.

    A call waits for their numbers, and runs `partition` for one fraction of one line of 1,024 elements or
    more, else `sort`. Recordings sort, and keep a table for each number that a line may have, which takes
    memory for as many elements. Raises the errors of `quantile`.

    >>> kp.ops.nanquantile(mgr.tensor([4, np.nan, 2, 3]), 0.25).item()
    2.5

    :dtypes: all but complex
    :axes: any, several, None for all; ``keepdims=``
    :error: 3 roundings of the larger of two neighbours; exact for methods that take an element
    """
    return _found(run, a, q, axis, keepdims, method, True)


@Composed
def nanpercentile(
    run: Run, a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """`percentile` of the elements that are not NaN, as ``np.nanpercentile``; NaN if there are none.

    The rest is as for `nanquantile`. Raises its errors, for `q` beyond 0 to 100.

    >>> kp.ops.nanpercentile(mgr.tensor([4, np.nan, 2, 3]), 25).item()
    2.5

    :dtypes: all but complex
    :axes: any, several, None for all; ``keepdims=``
    :error: 3 roundings of the larger of two neighbours; exact for methods that take an element
    """
    return _found(run, a, q, axis, keepdims, method, True, 100.0)


@Composed
def nanmedian(run: Run, a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """`median` of the elements that are not NaN, as ``np.nanmedian``; NaN if there are none.

    The rest is as for `nanquantile`. Raises its errors.

    >>> kp.ops.nanmedian(mgr.tensor([4, np.nan, 2, 3])).item()
    3.0

    :dtypes: all but complex
    :axes: any, several, None for all; ``keepdims=``
    :error: 3 roundings of the larger of two neighbours; exact for methods that take an element
    """
    return _found(run, a, 0.5, axis, keepdims, "linear", True)
