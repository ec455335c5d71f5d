"""Formulas that convert to a dtype, as NumPy's `astype`."""

from __future__ import annotations

import functools

import numpy as np

from .._base.types import is_small_float
from .dtypes import Dtype, Kind
from .formula import Formula


def conversion(given: Kind, dtype: Dtype, name: str) -> Formula:
    """The argument `name`, which is of the type `given`, as `dtype`. Floats become the nearest end of the
    range of ints if they are beyond it, and 0 if they are NaN.
    """
    if isinstance(given, str):
        return _conversion(dtype, given == "float", 4, name)
    return _conversion(dtype, given.kind == "f" or is_small_float(given), given.itemsize, name)


@functools.lru_cache(512)
def _conversion(dtype: Dtype, from_float: bool, size: int, name: str) -> Formula:
    cast = "bool_" if dtype == np.bool_ else dtype.name
    if dtype.kind not in "iu" or not from_float:
        return Formula(f"{cast}({name})")
    x, limits = name if size >= 4 else f"float32({name})", np.iinfo(dtype)
    inside = f"where({x} >= {limits.max + 1}.0, {limits.max}, {cast}({x}))"
    return Formula(f"where(isnan({name}), 0, where({x} <= {limits.min}.0, {limits.min}, {inside}))")
