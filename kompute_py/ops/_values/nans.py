"""Reductions and scans that leave NaN out, by NumPy's names.

For ints and bools, which have no NaN, they give what the functions without "nan" give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.errors import InvalidArgumentError
from ..._base.types import is_small_float
from ..._builders.elementwise import formula
from ..._builders.reduction import reduction
from ..._custom.arguments import dtype_named
from ..._formulas.dtypes import PART_OF
from ..._functions.function import Function
from .._places.composed import Composed, Run, records
from .._places.given import given, known
from .reductions import (
    _AXES,
    _MANY,
    _SUM_ERROR,
    _TYPED_TAIL,
    ArgOp,
    _doc,
    _Pair,
    _reduced,
    _Typed,
    operation_of,
)
from .reductions import mean as mean_of
from .reductions import std as std_of
from .reductions import var as var_of
from .scans import _running

Array = Any

numbers_of = reduction("not isnan(a)", "sum", name="numbers")
"""How many elements over axes are not NaN."""
_all_nan = reduction("isnan(a)", "all")


def has_nan(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype has NaN."""
    return dtype.kind in "fc" or is_small_float(dtype)


def _sum(name: str, of: str, none: str, example: str, dtypes: str, error: str) -> Function:
    return _reduced(
        f"nan{name}",
        f"where(isnan(a), {bool(int(none))}, a)",  # a bool keeps the dtype, also that of bools
        name,
        None,
        _doc(
            f"The {of} of the elements over axes that are not NaN; {none} if there are none.",
            f"The dtype is that of `{name}`; `dtype` names another one.",
            f""">>> kp.ops.nan{name}(mgr.tensor([2, np.nan, 3])).item()
            {example}""",
            dtypes,
            error,
        ),
        kind=_Typed,
        tail=_TYPED_TAIL,
    )


def _extreme(name: str, which: str, example: str) -> Function:
    return _reduced(
        f"nan{name}",
        "a",
        f"f{name}(a, b)",
        None,
        _doc(
            f"The {which} element over axes that is not NaN; NaN if all are.",
            "",
            f""">>> kp.ops.nan{name}(mgr.tensor([2, np.nan, 3])).item()
            {example}""",
            _MANY,
            "exact",
        ),
    )


nansum: Function = _sum("sum", "sum", "0", "5.0", "all", f"{_SUM_ERROR}; exact for ints")
nanprod: Function = _sum("prod", "product", "1", "6.0", "all", "a rounding for each element; exact for ints")
nanmin: Function = _extreme("min", "least", "2.0")
nanmax: Function = _extreme("max", "greatest", "3.0")


def _quotient(
    run: Run, total: Array, numbers: Array, dtype: np.dtype[Any], less: float | None = None
) -> Array:
    """The total by the numbers, less `less` if it is given; NaN where nothing is left."""
    wide = "float64" if np.dtype(total.dtype).name in ("float64", "complex128") else "float32"
    if less is None:
        return run(formula(f"s / {wide}(n)", dtype.name), total, numbers)
    text = f"_d = {wide}(n) - ddof; where(_d <= 0, nan, s / _d)"
    return run(formula(text, dtype.name), numbers, less, total)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which floats are summed."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


@Composed
def nanmean(run: Run, a: Array, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The mean of the elements over axes that are not NaN, as ``np.nanmean``; NaN if there are none.

    `dtype` names the dtype of the result. Sums are made in float32 if it is shorter. It runs `nansum`, a
    count and a division, or `mean` for ints and bools. Raises their errors.

    >>> kp.ops.nanmean(mgr.tensor([[1, 2], [np.nan, 4]]), axis=0).tolist()
    [1.0, 3.0]

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: any, several, None for all; ``keepdims=``
    :error: 802 roundings of the mean of absolute values
    """
    own = np.dtype(given(a).dtype)
    if not has_nan(own):
        return run(mean_of, a, axis, dtype, keepdims=keepdims)
    wanted = own if dtype is None else dtype_named("nanmean: dtype", dtype)
    total = run(nansum, a, axis, _wide(wanted), keepdims=keepdims)
    return _quotient(run, total, run(numbers_of, a, axis=axis, keepdims=keepdims), wanted)


def _squares(run: Run, a: Array, axis: Any, ddof: float, keepdims: bool, root: bool) -> Array:
    own = np.dtype(given(a).dtype)
    if not has_nan(own):
        return run(std_of if root else var_of, a, axis, ddof=ddof, keepdims=keepdims)
    numbers = run(numbers_of, a, axis=axis, keepdims=True)
    total = run(nansum, a, axis, _wide(own), keepdims=True)
    mean = _quotient(run, total, numbers, np.dtype(total.dtype))
    squares = run(_distances, a, mean, axis, keepdims=keepdims)
    own = PART_OF.get(own, own)  # distances of complex numbers are real
    left = _quotient(
        run, squares, numbers.reshape(squares.shape), np.dtype(squares.dtype) if root else own, ddof
    )
    return run(formula("sqrt(x)", own.name), left) if root else left


_distances = _reduced("distances", "_d = where(isnan(a), 0, absolute(a - m)); _d * _d", "sum", None, "")


@Composed
def nanvar(run: Run, a: Array, axis: Any = None, *, ddof: float = 0.0, keepdims: bool = False) -> Array:
    """The variance of the elements over axes that are not NaN, as ``np.nanvar``.

    The mean of squared distances from the mean: their sum by their number less `ddof`, and NaN where that is
    not above 0. It runs `nanmean` and another sum, or `var` for ints and bools. Raises their errors.

    >>> kp.ops.nanvar(mgr.tensor([1, np.nan, 3]), ddof=1).item()
    2.0

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: any, several, None for all; ``keepdims=``
    :error: 2,000 roundings of the variance and of the mean's square
    """
    return _squares(run, a, axis, ddof, keepdims, False)


@Composed
def nanstd(run: Run, a: Array, axis: Any = None, *, ddof: float = 0.0, keepdims: bool = False) -> Array:
    """The square root of `nanvar`, as ``np.nanstd``. Raises its errors.

    >>> kp.ops.nanstd(mgr.tensor([1, np.nan, 3])).item()
    1.0

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: any, several, None for all; ``keepdims=``
    :error: half of the relative error of `nanvar`
    """
    return _squares(run, a, axis, ddof, keepdims, True)


class _NumbersFirst(_Pair):
    """NaN is worst."""

    nan = "!p || (q && first)"


def _place(name: str, better: str, best: Function) -> Function:
    tail = "Tensor a, int[]? axis=None, *, bool keepdims=False"
    doc = _doc("", "", "", _MANY, "exact", _AXES)
    return operation_of(ArgOp, name, doc, tail, better=better, best=best, pair=_NumbersFirst)


_nanargmin = _place("nanargmin", "<", nanmin)
_nanargmax = _place("nanargmax", ">", nanmax)


def _placed(run: Run, operation: Function, a: Array, axis: Any, keepdims: bool) -> Array:
    if (
        has_nan(np.dtype(given(a).dtype))
        and not records(run)
        and np.any(known(run(_all_nan, a, axis=axis), 0))
    ):
        raise InvalidArgumentError(
            f"{operation.__name__}: all elements are NaN{'' if axis is None else ' along an axis'}"
        )
    return run(operation, a, axis, keepdims=keepdims)


@Composed
def nanargmin(run: Run, a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The position of the least element along an axis, or among all elements, NaN left out, as
    ``np.nanargmin``.

    The first of equal ones, also of infinities. The result is int64, int32 on devices without.

    Raises InvalidArgumentError, as NumPy, if all elements of a line are NaN: the host waits to see that, and
    what is recorded gives 0 there. Else the errors of `argmin`.

    >>> int(kp.ops.nanargmin(mgr.tensor([np.nan, 4, 1, 4])))
    2

    :dtypes: all
    :axes: one, None for all; ``keepdims=``
    :error: exact
    """
    return _placed(run, _nanargmin, a, axis, keepdims)


@Composed
def nanargmax(run: Run, a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The position of the greatest element along an axis, or among all elements, NaN left out, as
    ``np.nanargmax``.

    As `nanargmin` otherwise. Raises its errors.

    >>> int(kp.ops.nanargmax(mgr.tensor([np.nan, 4, 1, 4])))
    1

    :dtypes: all
    :axes: one, None for all; ``keepdims=``
    :error: exact
    """
    return _placed(run, _nanargmax, a, axis, keepdims)


nancumsum: Function = _running(
    "nancumsum",
    "sum",
    """The sums of each element and all before it along `axis`, with 0 for NaN, as ``np.nancumsum``.

    The rest is as for `kp.ops.cumsum`. Raises its errors.

    >>> kp.ops.nancumsum(mgr.tensor([1, np.nan, 3])).tolist()
    [1.0, 1.0, 4.0]

    :dtypes: all
    :axes: one, None
    :error: n roundings of the sum of the absolute values, n being the elements before
    """,
    True,
    "where(isnan(x), False, x)",
)
nancumprod: Function = _running(
    "nancumprod",
    "prod",
    """The products of each element and all before it along `axis`, with 1 for NaN, as ``np.nancumprod``.

    The rest is as for `kp.ops.cumprod`. Raises its errors.

    >>> kp.ops.nancumprod(mgr.tensor([2, np.nan, 3])).tolist()
    [2.0, 2.0, 6.0]

    :dtypes: all but complex
    :axes: one, None
    :error: n roundings of the product, n being the elements before
    """,
    True,
    "where(isnan(x), True, x)",
)
