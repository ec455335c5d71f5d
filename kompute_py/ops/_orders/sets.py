"""Sets: the elements of both of two arrays, of one alone, of either."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.arrays import to_flag
from ..._base.errors import ArgumentTypeError
from ..._formulas.dtypes import promoted
from ..._formulas.glsl_elements import element_of
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .._places.composed import Composed, Run, called_only, dense
from .._places.given import beside, given, shape_of
from .._places.joining import concatenate
from .._values.elements import astype
from .counted import _flat, compress, unique
from .searching import in_sorted
from .sorting import sort

Array = Any


@Composed
def isin(
    run: Run, element: Array, test_elements: Array, assume_unique: bool = False, invert: bool = False
) -> Array:
    """Whether each of `element` is equal to one of `test_elements`, as ``np.isin``; with `invert`, to none.

    The result has the shape of `element`. Both have any shapes, and are compared in NumPy's common dtype: NaN
    is in no set. `assume_unique` changes nothing. It runs `sort` of `test_elements`, and
    a binary search for each element.

    Raises ArgumentTypeError for int64 with uint64, which have no common ints, and what `sort` raises.

    >>> kp.ops.isin(mgr.tensor([1, 2, 3, 2]), np.float32([2, 5])).tolist()
    [False, True, False, True]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    to_flag(assume_unique, "assume_unique")
    wanted = not to_flag(invert, "invert")
    element, tests = given(element), dense(run, test_elements)
    dtypes = [np.dtype(each.dtype) for each in (element, tests)]
    for each in dtypes:
        element_of(each)  # raises an error for others than those of kernels
    dtype = promoted(dtypes)
    if dtype.kind == "f" and all(each.kind in "iu" for each in dtypes):
        raise ArgumentTypeError(
            f"element is of {dtypes[0]} and test_elements of {dtypes[1]}, which have no common ints; "
            f"convert one: kp.ops.astype(x, {dtypes[0].name!r})"
        )
    shape = shape_of(element)
    if not tests.size if isinstance(tests, np.ndarray) else not tests.size():
        owner = element if isinstance(element, (Tensor, StridedView)) else tests
        return beside(owner, np.full(shape, not wanted))
    return run(in_sorted, run(sort, tests.reshape(-1), -1), element, wanted)


@called_only("kp.ops.isin, whose result has the shape of its argument")
def intersect1d(ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements that are both in `ar1` and in `ar2`, each once and in ascending order, as
    ``np.intersect1d``.

    The result has one axis and the common dtype; NaN is in no set. `assume_unique` changes nothing. With
    `return_indices`, a tuple has the places of the first of each in `ar1` and in `ar2`, too, in row-major
    order. It runs `unique` and `isin`. Raises their errors.

    >>> kp.ops.intersect1d(np.array([3, 1, 2, 3]), np.array([3, 5, 2])).tolist()
    [2, 3]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    to_flag(assume_unique, "intersect1d: assume_unique")
    wanted = to_flag(return_indices, "intersect1d: return_indices")
    ar1, ar2 = given(ar1), given(ar2)
    values, first = unique(ar1, return_index=True) if wanted else (unique(ar1), None)
    common = isin(values, ar2)
    found = astype(compress(common, values), promoted([np.dtype(each.dtype) for each in (ar1, ar2)]))
    if not wanted:
        return found
    others, second = unique(ar2, return_index=True)
    return found, compress(common, first), compress(isin(others, values), second)


@called_only("kp.ops.isin, whose result has the shape of its argument")
def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements of `ar1` that are not in `ar2`, each once and in ascending order, as ``np.setdiff1d``.

    The result has one axis and the dtype of `ar1`. With `assume_unique`, the elements stay in their order and
    as often as they are there. It runs `unique` and `isin`. Raises their errors.

    >>> kp.ops.setdiff1d(np.array([3, 1, 2, 3]), np.array([2, 5])).tolist()
    [1, 3]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    found = _flat(ar1) if to_flag(assume_unique, "setdiff1d: assume_unique") else unique(ar1)
    return compress(isin(found, ar2, invert=True), found)


@called_only("kp.ops.sort and kp.ops.run_starts")
def union1d(ar1: Array, ar2: Array) -> Array:
    """The elements of `ar1` and `ar2`, each once and in ascending order, as ``np.union1d``.

    The result has one axis and the common dtype. It runs `concatenate` and `unique`. Raises their errors.

    >>> kp.ops.union1d(np.array([3, 1]), np.array([2, 3])).tolist()
    [1, 2, 3]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    return unique(concatenate([_flat(ar1), _flat(ar2)]))
