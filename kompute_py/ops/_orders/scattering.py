"""Elements at indices combined with values: the greatest, the least, the product; sums of float64.

The values are sorted by their places, which keeps the order of those that go to one place; a scan combines
each run of them, and the last of a run has them all. So the result does not depend on which invocation comes
first, and every dtype that can be sorted and combined will do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.arrays import as_index
from ..._base.errors import InvalidArgumentError, UnimplementedError
from ..._builders.elementwise import formula
from ..._builders.scan import scan
from ..._builders.walks import axes_of
from ..._formulas.dtypes import castable
from ..._functions.function import Function
from ..._memory.tensor import Tensor
from .._places.composed import Composed, Run, Widened, dense
from .._places.given import shape_of
from .._places.indexing import _ScatterAdd, put
from .._places.moving import take
from .._places.raising import RaisingOperation
from .sorting import sort_by_key

Array = Any

_SCANS = {name: scan("x", name, segments="ids", name=name) for name in ("max", "min", "prod", "sum")}
_BOTH = {"max": "maximum(x, y)", "min": "minimum(x, y)", "prod": "x * y", "sum": "x + y"}


def near(array: np.ndarray[Any, Any], x: Array) -> Array:
    """An array of the host where `x` is."""
    return x.manager.tensor_t(array) if isinstance(x, Tensor) else array


def _scattered(run: Run, how: str, x: Array, indices: Array, values: Array, axis: int, mode: str) -> Array:
    x, indices, values = dense(run, x), dense(run, indices), dense(run, values)
    shape, dtype = shape_of(x), np.dtype(x.dtype)
    (axis,) = axes_of("x", [as_index(axis, "axis")], len(shape))
    n, inner = shape[axis], math.prod(shape[axis + 1 :])
    wanted = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    if tuple(values.shape) != wanted:
        raise InvalidArgumentError(
            f"values has the shape {tuple(values.shape)}; with x {shape}, indices "
            f"{tuple(indices.shape)} and axis {axis} it is {wanted}"
        )
    if dtype.kind == "c":
        raise UnimplementedError(f"x is of {dtype}; it takes real numbers: kp.ops.real, kp.ops.imag")
    if not castable(values.dtype, dtype):
        raise InvalidArgumentError(
            f"values is of {values.dtype}, and x of {dtype}; convert them: "
            f"kp.ops.astype(values, {dtype.name!r})"
        )
    if dtype == np.bool_:
        how = {"prod": "min", "sum": "max"}.get(how, how)  # the same, and bools
    if math.prod(shape) >= 2**31:
        raise InvalidArgumentError(f"x has {math.prod(shape)} elements, 2**31 or more")
    if not math.prod(wanted):
        return run(formula("x"), x)
    numbers = run(take, near(np.arange(n, dtype=np.int32), x), indices, 0, mode)
    outer, lines = math.prod(shape[:axis]), math.prod(indices.shape)
    places = run(
        formula("outer + k * step + inner"),
        near(np.arange(outer, dtype=np.int32).reshape(outer, 1, 1) * np.int32(n * inner), x),
        numbers.reshape((1, lines, 1)),
        inner,
        near(np.arange(inner, dtype=np.int32), x),
    )
    if np.dtype(values.dtype) != dtype:
        values = run(formula("x", dtype.name), values)
    places, ordered = run(sort_by_key, places.reshape(-1), values.reshape(-1), -1)
    own = run(take, x.reshape(-1), places, 0, "clip")
    both = run(formula(_BOTH[how], dtype.name), own, run(_SCANS[how], ordered, places))
    return run(put, x, places, both, "clip")


@Composed
def scatter_max(run: Run, x: Array, indices: Array, values: Array, axis: int, mode: str = "raise") -> Array:
    """`x` with the greatest of each element and the `values` at its `indices` along `axis`, as
    ``np.maximum.at(x, indices, values)`` for the first axis.

    `values` has the shape of ``take(x, indices, axis)``: the axes of `indices` where `axis` was. `mode`
    is as for `kp.ops.take`. With ``out=x``, `x` itself changes. NaN among them gives NaN. The result is the
    same in each run: it sorts the values by their places, in their order, and scans each run of them.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for other shapes, an axis that `x` does
    not have, values that do not convert to the dtype of `x`, and another mode; ArgumentTypeError for indices
    that are not ints; UnimplementedError for complex numbers.

    >>> kp.ops.scatter_max(mgr.zeros(3), np.array([0, 2, 0]), np.float32([1, -4, 5]), 0).tolist()
    [5.0, 0.0, 0.0]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: exact
    """
    return _scattered(run, "max", x, indices, values, axis, mode)


@Composed
def scatter_min(run: Run, x: Array, indices: Array, values: Array, axis: int, mode: str = "raise") -> Array:
    """`x` with the least of each element and the `values` at its `indices` along `axis`, as
    ``np.minimum.at(x, indices, values)`` for the first axis.

    The rest is as for `kp.ops.scatter_max`, NaN too. Raises its errors.

    >>> kp.ops.scatter_min(mgr.zeros(3), np.array([0, 2, 0]), np.float32([1, -4, 5]), 0).tolist()
    [0.0, 0.0, -4.0]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: exact
    """
    return _scattered(run, "min", x, indices, values, axis, mode)


@Composed
def scatter_mul(run: Run, x: Array, indices: Array, values: Array, axis: int, mode: str = "raise") -> Array:
    """`x` times the product of the `values` at the `indices` of each element along `axis`, as
    ``np.multiply.at(x, indices, values)`` for the first axis.

    The values are multiplied first, in an order that depends on the sizes, the device and the variant of
    `kp.ops.scan`, and not on which invocation comes first. Ints wrap; NaN gives NaN, and so does 0 with an
    infinity. The rest is as for `kp.ops.scatter_max`. Raises its errors.

    >>> kp.ops.scatter_mul(mgr.full(3, 2), np.array([0, 2, 0]), np.float32([3, -4, 5]), 0).tolist()
    [30.0, 2.0, -8.0]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: a rounding for each value, and one; products of values beyond the dtype's range are inf or 0
    """
    return _scattered(run, "prod", x, indices, values, axis, mode)


def _scatter_add(run: Run, x: Array, indices: Array, values: Array, axis: int, mode: str = "raise") -> Array:
    return _scattered(run, "sum", x, indices, values, axis, mode)


class _Adding(Widened, RaisingOperation):
    """Kernels add ints and floats of up to 32 bits by atomic operations; other numbers are sorted."""


def _is_sorted(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return getattr(named.get("x"), "dtype", None) in (np.float64, np.bool_)


scatter_add: Function = _Adding(_ScatterAdd, _is_sorted, _scatter_add)
