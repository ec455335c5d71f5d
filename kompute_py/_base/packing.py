"""The bytes of plain numbers, in one step.

`packed` knows Python's ints and floats and NumPy's scalars, for dtypes of integers and floats, and only
values that fit. For them it gives the bytes that the general rules of `arrays` give (tests compare the two).
Everything else is left to those rules, which convert it or say why it does not fit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

_Pack = Callable[[Any], bytes]


def _packers(codes: str) -> dict[np.dtype[Any], _Pack]:
    """By dtype, in the host's byte order."""
    return {np.dtype(code): struct.Struct(f"={code}").pack for code in codes}


# struct has NumPy's letters but for its "l", which is not 64 bits everywhere: "q" is.
_FLOATS = _packers("efd")
_INTS = _packers("bBhHiIqQ")
# Up to here, an int is a float64 without rounding, so that it is rounded once on its way to any float.
_EXACT = 1 << 53


def packed(value: Any, dtype: np.dtype[Any]) -> bytes | None:
    """The bytes of `value` as an element of `dtype`; None if the general rules must decide."""
    kind = type(value)
    if kind is float:
        pack = _FLOATS.get(dtype)
        if pack is None or value != value:  # Python's float16 does not keep the bits of a NaN
            return None
    elif kind is int:
        pack = _INTS.get(dtype)
        if pack is None:
            pack = _FLOATS.get(dtype)
            if pack is None or not -_EXACT <= value <= _EXACT:
                return None
    elif isinstance(value, np.generic) and value.dtype == dtype and (dtype in _FLOATS or dtype in _INTS):
        return value.tobytes()
    else:
        return None
    try:
        return pack(value)
    except (struct.error, OverflowError):
        return None  # out of range
