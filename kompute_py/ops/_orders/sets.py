"""Which elements are in a set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.arrays import to_flag
from ..._base.errors import ArgumentTypeError
from ..._formulas.dtypes import promoted
from ..._formulas.glsl_elements import element_of
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .._places.composed import Composed, Run, dense
from .._places.given import given, shape_of
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
        made = np.full(shape, not wanted)
        owner = next((each for each in (element, tests) if isinstance(each, (Tensor, StridedView))), None)
        return made if owner is None else owner.manager.tensor_t(made)
    return run(in_sorted, run(sort, tests.reshape(-1), -1), element, wanted)
