"""Numbers in place of NaN and infinities, angles without leaps, polynomials."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._base.arrays import as_index, to_flag
from ..._base.errors import InvalidArgumentError, shown
from ..._base.types import is_small_float
from ..._builders.elementwise import elementwise
from .._places.composed import Composed, Run
from .._places.given import given, shape_of
from .._places.indexing import pad
from .elements import add, imag, real
from .scans import cumsum
from .spreads import diff

Array = Any

_same = elementwise("x", name="nan_to_num")
_finite = elementwise(
    "where(x != x, nan_, where(x == inf, high, where(x == -inf, low, x)))", name="nan_to_num"
)
_complex = elementwise("re + im * 1j", name="nan_to_num")
_near = "(d - low) % period + low"
_turns = elementwise(
    f"where(abs(d) < least, d - d, where(((d - low) % period == 0) & (d > 0), high, {_near}) - d)",
    name="unwrap",
)
_odd_turns = elementwise(f"where(abs(d) < least, d - d, {_near} - d)", name="unwrap")
_MOST_COEFFICIENTS = 8
"""Of a polynomial, in one operation: each may be a tensor."""


@Composed
def nan_to_num(
    run: Run,
    x: Array,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """`x` with numbers in place of NaN and infinities, as ``np.nan_to_num``.

    `nan` stands for NaN, `posinf` and `neginf` for infinities: the highest and the lowest number of the dtype
    if they are None. Of complex numbers, both parts are such. Ints and bools are copied. In place it is
    ``out=x``, not ``copy=False``: that raises InvalidArgumentError.

    >>> kp.ops.nan_to_num(np.float32([np.nan, 1, np.inf]), posinf=9.0).tolist()
    [0.0, 1.0, 9.0]

    :dtypes: all
    :axes: elementwise
    :error: exact
    """
    if not to_flag(copy, "nan_to_num: copy"):
        raise InvalidArgumentError("nan_to_num: copy is False; give out=x to write in place")
    x = given(x)
    if x.dtype.kind == "c":
        parts = (run(each, x) for each in (real, imag))
        re, im = (run(nan_to_num, part, True, nan, posinf, neginf) for part in parts)
        return run(_complex, re, im)
    if x.dtype.kind != "f" and not is_small_float(x.dtype):
        return run(_same, x)
    most = _most(x.dtype)
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    return run(_finite, x=x, nan_=nan, high=high, low=low)


def _most(dtype: np.dtype[Any]) -> float:
    """The highest number of a dtype of floats."""
    if not is_small_float(dtype):
        return float(np.finfo(dtype).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).max)


@Composed
def unwrap(
    run: Run, p: Array, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Array:
    """`p` with whole periods added along `axis`, so that neighbours differ by half a period at most, as
    ``np.unwrap``: angles without leaps.

    Differences of less than `discont`, by default half of the period, are left as they are. It runs `diff`,
    `pad`, `cumsum` and `add`.

    Raises InvalidArgumentError for an axis that `p` does not have, and for a period that is not above 0.

    >>> kp.ops.unwrap(np.float32([0, 3, 6, 1]), period=8).tolist()
    [0.0, 3.0, 6.0, 9.0]

    :dtypes: all but complex and bool
    :axes: one
    :error: n + 2 roundings of the greatest sum, n being the elements before
    """
    p = given(p)
    shape, place = shape_of(p), as_index(axis, "unwrap: axis")
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(f"unwrap: axis is {place}, and p has {len(shape)} axes")
    if not isinstance(period, (int, float, np.integer, np.floating)) or not 0 < period < math.inf:
        raise InvalidArgumentError(f"unwrap: period is {shown(period)}; give a finite number above 0")
    d = run(diff, p, 1, place)
    if not shape[place]:
        return d
    whole = p.dtype.kind in "iu" and isinstance(period, (int, np.integer))
    high = period // 2 if whole else period / 2
    least = period / 2 if discont is None else discont
    if whole and period % 2:
        turns = run(_odd_turns, d=d, least=least, low=-high, period=period)
    else:
        turns = run(_turns, d=d, least=least, low=-high, high=high, period=period)
    turns = run(
        pad, turns, [(int(n == place % len(shape)), 0) for n in range(len(shape))]
    )  # the first has none
    return run(add, p, run(cumsum, turns, place, turns.dtype))


@functools.cache
def _horner(count: int, begin: bool) -> Any:
    """A polynomial of so many coefficients more, or the first ones."""
    names = [f"c{n}" for n in range(count)]
    text = "where(x == x, c0, x)" if begin else "y"
    for name in names[begin:]:
        text = f"({text}) * x + {name}"
    return elementwise(text, name="polyval")


@Composed
def polyval(run: Run, p: Array, x: Array) -> Array:
    """The polynomial with the coefficients `p`, the highest power first, at `x`, as ``np.polyval``.

    `p` has one axis. The result has the shape of `x` and NumPy's common dtype. It is Horner's rule, eight
    coefficients at a time. At an infinite `x` it is the limit, not NumPy's NaN.

    Raises InvalidArgumentError if `p` has another shape or no coefficients.

    >>> kp.ops.polyval(np.float32([2, 0, 1]), np.float32([0, 1, 3])).tolist()
    [1.0, 3.0, 19.0]

    :dtypes: all but bool
    :axes: elementwise
    :error: 2 n roundings of the sum of the absolute values of the terms, n being the coefficients; ints exact
    """
    p, x = given(p), given(x)
    if len(shape_of(p)) != 1 or not shape_of(p)[0]:
        raise InvalidArgumentError(f"polyval: p has the shape {shape_of(p)}; give one axis of coefficients")
    found = None
    for at in range(0, shape_of(p)[0], _MOST_COEFFICIENTS):
        count = min(_MOST_COEFFICIENTS, shape_of(p)[0] - at)
        values = {f"c{n}": p[at + n] for n in range(count)}
        begin = found is None
        values |= {"x": x} if begin else {"x": x, "y": found}
        found = run(_horner(count, begin), **values)
    return found
