"""Products of arrays as vectors and as blocks, covariances, and norms of matrices."""

from __future__ import annotations

import math
from typing import Any

from ..._base.arrays import as_index, to_flag
from ..._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from ..._builders.elementwise import elementwise
from ..._builders.reduction import combination
from .._places.composed import Composed, Run, dense
from .._places.given import given, shape_of
from .._places.joining import concatenate, stack
from .._places.moving import diagonal, transpose
from .._values.elements import conjugate, divide, multiply, subtract
from .._values.reductions import DotOp, mean, operation_of, vector_norm
from .._values.reductions import max as max_of
from .._values.reductions import min as min_of
from .matrices import matmul

Array = Any


@Composed
def kron(run: Run, a: Array, b: Array) -> Array:
    """Blocks of `b`, each times an element of `a`, as ``np.kron``.

    The lengths of the result are the products of those of `a` and `b`; the one with fewer axes gets axes of
    length 1 in front. It is one `multiply`. Raises its errors.

    >>> kp.ops.kron(np.array([1, 10]), np.array([1, 2, 3])).tolist()
    [1, 2, 3, 10, 20, 30]

    :dtypes: all
    :axes: all
    :error: one rounding; ints exact
    """
    a, b = dense(run, a), dense(run, b)
    ndim = max(len(a.shape), len(b.shape))
    ours, theirs = ((1,) * (ndim - len(each.shape)) + tuple(each.shape) for each in (a, b))
    first = tuple(n for each in ours for n in (each, 1))
    second = tuple(n for each in theirs for n in (1, each))
    product = run(multiply, a.reshape(first), b.reshape(second))
    return product.reshape(tuple(n * m for n, m in zip(ours, theirs, strict=True)))


_vdot = operation_of(
    DotOp,
    "vdot",
    "",
    "Tensor|Scalar a, Tensor|Scalar b",
    **{**combination("kp.ops.vdot", "conj(a) * b", "a + b", 0, None, ""), "wide": False},
)


@Composed
def vdot(run: Run, a: Array, b: Array) -> Array:
    """The sum of products of all elements of `a`, conjugated, with those of `b`, as ``np.vdot``.

    Both are taken as vectors, in row-major order. Raises InvalidArgumentError for different numbers of
    elements.

    >>> kp.ops.vdot(np.array([1 + 2j], np.complex64), np.array([3 + 4j], np.complex64)).item()
    (11-2j)

    :dtypes: all
    :axes: all, as one
    :error: 800 roundings of the sum of absolute products; exact for ints
    """
    return run(_vdot, dense(run, a).reshape(-1), dense(run, b).reshape(-1))


_minor = elementwise("a * d - b * c", name="cross")
_scaled = elementwise("clip(c / sqrt(a) / sqrt(b), -1, 1)", name="corrcoef")


@Composed
def cross(
    run: Run, a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross products of vectors of three elements, as ``np.cross``.

    They lie along `axisa` of `a` and `axisb` of `b`, those of the result along `axisc`; `axis` stands for all
    three. The other axes broadcast. Raises InvalidArgumentError for vectors of another length and for axes
    that are not there.

    >>> kp.ops.cross(np.array([1, 0, 0]), np.array([0, 1, 0])).tolist()
    [0, 0, 1]

    :dtypes: all but bool
    :axes: one
    :error: 2 roundings of the products; ints exact
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    first = _components(a, axisa, "a")
    second = _components(b, axisb, "b")
    made = [
        run(_minor, a=first[i], d=second[j], b=first[j], c=second[i]) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return run(stack, made, as_index(axisc, "cross: axisc"))


def _components(x: Array, axis: int, name: str) -> list[Array]:
    x = given(x)
    shape, place = shape_of(x), as_index(axis, f"cross: axis{name}")
    if not -len(shape) <= place < len(shape) or shape[place] != 3:
        raise InvalidArgumentError(f"cross: {name} has the shape {shape}; give 3 elements on axis {place}")
    return [x[(*(slice(None),) * (place % len(shape)), n)] for n in range(3)]


@Composed
def cov(
    run: Run,
    m: Array,
    y: Array | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
) -> Array:
    """The covariances of variables, as ``np.cov``: rows of `m` and of `y`, or columns without `rowvar`.

    Sums are divided by the number of observations less `ddof`, which is 1, or 0 with `bias`. Unlike NumPy's,
    the result of float32 is of float32. It runs `mean`, `subtract` and `matmul`. Raises InvalidArgumentError
    for more than two axes and for variables with other numbers of observations.

    >>> kp.ops.cov(np.float32([[0, 1, 2], [2, 1, 0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: one or two
    :error: 1,600 roundings of the product of two variables' norms
    """
    rows, biased = to_flag(rowvar, "cov: rowvar"), to_flag(bias, "cov: bias")
    x = _variables(run, m, rows)
    if y is not None:
        x = run(concatenate, [x, _variables(run, y, rows)])
    if x.dtype.kind in "biu":
        x = run(divide, x, 1)
    less = as_index(ddof, "cov: ddof") if ddof is not None else int(not biased)
    x = run(subtract, x, run(mean, x, axis=1, keepdims=True))
    other = run(conjugate, x) if x.dtype.kind == "c" else x
    found = run(divide, run(matmul, x, other.T), max(shape_of(x)[1] - less, 0))
    return found.reshape(()) if shape_of(found) == (1, 1) else found


def _variables(run: Run, x: Array, rows: bool) -> Array:
    x = dense(run, x)
    if len(shape_of(x)) > 2:
        raise InvalidArgumentError(f"cov: an argument has the shape {shape_of(x)}; give one axis or two")
    if len(shape_of(x)) < 2:
        return x.reshape((1, -1))
    return x if rows else run(transpose, x)


@Composed
def corrcoef(run: Run, x: Array, y: Array | None = None, rowvar: bool = True) -> Array:
    """The correlations of variables, as ``np.corrcoef``: `cov`, by the roots of the variances.

    Unlike NumPy's, the result of float32 is of float32. Raises the errors of `cov`.

    >>> kp.ops.corrcoef(np.float32([[0, 1, 2], [4, 2, 0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]

    :dtypes: all but complex; ints and bools give float64, float32 on devices without it
    :axes: one or two
    :error: 3,200 roundings of 1, if no variance is small beside the square of the mean
    """
    found = run(cov, x, y, rowvar)
    if not shape_of(found):
        return run(divide, found, found)
    variances = run(diagonal, found)
    return run(_scaled, c=found, a=variances.reshape((-1, 1)), b=variances)


@Composed
def matrix_norm(
    run: Run, x: Array, ord: Any = "fro", axis: tuple[int, int] = (-2, -1), *, keepdims: bool = False
) -> Array:
    """The norm of matrices, which are two axes of `x`, as ``np.linalg.norm`` with two axes.

    `ord` is "fro" (the root of the sum of squares), 1 or -1 (the greatest or least sum of absolute values of
    a column), inf or -inf (the same of a row). It runs `vector_norm`, and `max` or `min`.

    Raises InvalidArgumentError for another `ord` (2 and "nuc" need singular values) and for axes that `x`
    does not have; ArgumentTypeError for axes that are not a pair.

    >>> kp.ops.matrix_norm(np.float32([[1, -2], [3, 4]]), 1).item()
    6.0

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: two; ``keepdims=``
    :error: 800 roundings of the norm; squares beyond the dtype's range are inf
    """
    x = given(x)
    ndim = len(shape_of(x))
    if not isinstance(axis, (tuple, list)) or len(axis) != 2:
        raise ArgumentTypeError(f"matrix_norm: axis is {shown(axis)}; give a pair of axes: (-2, -1)")
    rows, columns = (as_index(each, "matrix_norm: axis") for each in axis)
    for each in (rows, columns):
        if not -ndim <= each < ndim:
            raise InvalidArgumentError(f"matrix_norm: axis is {each}, and x has {ndim} axes")
    rows, columns = rows % ndim, columns % ndim
    if rows == columns:
        raise InvalidArgumentError(f"matrix_norm: axis is {shown(axis)}; give two axes that differ")
    if ord is None or (isinstance(ord, str) and ord == "fro"):
        return run(vector_norm, x, 2.0, [rows, columns], keepdims=keepdims)
    if isinstance(ord, (int, float)) and abs(ord) in (1, math.inf):
        sums = run(vector_norm, x, 1.0, [rows if abs(ord) == 1 else columns], keepdims=True)
        return run(max_of if ord > 0 else min_of, sums, [rows, columns], keepdims=keepdims)
    raise InvalidArgumentError(f"matrix_norm: ord is {shown(ord)}; give 'fro', 1, -1, inf or -inf")


@Composed
def norm(run: Run, x: Array, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices, as ``np.linalg.norm``.

    With an `ord` and two axes (`axis`, or all of `x`), it is `matrix_norm`, else `vector_norm`, of the order
    2 if `ord` is None. It raises their errors.

    >>> kp.ops.norm(mgr.tensor([3, 4])).item()
    5.0

    :dtypes: all; ints and bools give float64, float32 on devices without it
    :axes: one, two, None for all; ``keepdims=``
    :error: those of `vector_norm` and `matrix_norm`
    """
    x = given(x)
    axes = tuple(range(len(shape_of(x)))) if axis is None else axis
    if ord is not None and isinstance(axes, (tuple, list)) and len(axes) == 2:
        return run(matrix_norm, x, ord, axes, keepdims=keepdims)
    return run(vector_norm, x, 2.0 if ord is None else ord, axis, keepdims=keepdims)
