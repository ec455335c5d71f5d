"""Running sums, products, maxima and minima, with NumPy's axes: by the builder of scans."""

from __future__ import annotations

from ..._base.errors import InvalidArgumentError
from ..._builders.reduction import TakesDtype, combination, made
from ..._builders.scan import ScanOp
from ..._custom.selection import FunctionSelection
from ..._functions.function import Function


class _AxisOrAll(ScanOp):
    """A scan along an axis, or for None through all elements in a row, as NumPy's."""

    def declare_axis(self, ksel: FunctionSelection) -> int | None:
        given = ksel.attr_list_int("axis").v
        if given is not None and len(given) != 1:
            raise InvalidArgumentError(f"{ksel.name}: axis is {given}; give one int, or None")
        return None if given is None else int(given[0])


class _Typed(TakesDtype, _AxisOrAll):
    """A scan that takes a dtype."""


def _running(name: str, reduce: str, doc: str, typed: bool = False, map_: str = "x") -> Function:
    attributes = combination(name, map_, reduce, None, None, "")
    attributes |= {"exclusive": False, "reverse": False, "segments": ""}
    kind, tail = (
        (_Typed, "int[]? axis=None, dtype? dtype=None") if typed else (_AxisOrAll, "int[]? axis=None")
    )
    return made(kind, name, doc, tail, attributes, name)


cumsum: Function = _running(
    "cumsum",
    "sum",
    """The sums of each element and all before it along `axis`, as ``np.cumsum``; None goes through all
    elements in row-major order, and the result has one axis.

    Ints and bools of fewer than 64 bits are summed with 64, or 32 if the device has no longer ones. float16
    is summed in float32. `dtype` names another dtype, to which elements are converted before, as `kp.ops.sum`
    has it. The algorithm is that of `kp.ops.scan`: sums of runs,
    then what stands before each.

    Raises InvalidArgumentError for an axis that `x` does not have.

    >>> kp.ops.cumsum(np.array([[1, 2], [3, 4]])).tolist()
    [1, 3, 6, 10]
    >>> kp.ops.cumsum(mgr.tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [[1.0, 2.0], [4.0, 6.0]]

    :dtypes: all
    :axes: one, None
    :error: n roundings of the sum of the absolute values, n being the elements before
    """,
    True,
)
cumprod: Function = _running(
    "cumprod",
    "prod",
    """The products of each element and all before it along `axis`, as ``np.cumprod``; None goes through all
    elements in row-major order, and the result has one axis.

    Dtypes and algorithm are those of `kp.ops.cumsum`; lavapipe may drop NaN and infinities behind a zero.

    Raises InvalidArgumentError for an axis that `x` does not have.

    >>> kp.ops.cumprod(np.array([2, 3, 4])).tolist()
    [2, 6, 24]

    :dtypes: all
    :axes: one, None
    :error: n roundings of the product, n being the elements before
    """,
    True,
)
cummax: Function = _running(
    "cummax",
    "max",
    """The highest of each element and all before it along `axis`, as ``np.maximum.accumulate``; None goes
    through all elements in row-major order, and the result has one axis. From the first NaN on it is NaN.

    Raises InvalidArgumentError for an axis that `x` does not have.

    >>> kp.ops.cummax(np.array([2, 5, 3, 7])).tolist()
    [2, 5, 5, 7]

    :dtypes: all; complex numbers by real parts, then by imaginary ones
    :axes: one, None
    :error: exact
    """,
)
cummin: Function = _running(
    "cummin",
    "min",
    """The lowest of each element and all before it along `axis`, as ``np.minimum.accumulate``; None goes
    through all elements in row-major order, and the result has one axis. From the first NaN on it is NaN.

    Raises InvalidArgumentError for an axis that `x` does not have.

    >>> kp.ops.cummin(np.array([5, 2, 3, 1])).tolist()
    [5, 2, 2, 1]

    :dtypes: all; complex numbers by real parts, then by imaginary ones
    :axes: one, None
    :error: exact
    """,
)
