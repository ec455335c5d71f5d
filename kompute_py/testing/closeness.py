"""Comparison of numbers: tolerances by dtype, and the worst element in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentTypeError, kind_of
from .._base.types import is_small_float
from .._memory.memory import Memory
from .._memory.strided import StridedView

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.annotations import Array

_RELATIVE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
_EXACT = "biu"


def assert_allclose(
    actual: Memory[Any] | StridedView | ArrayLike,
    expected: Memory[Any] | StridedView | ArrayLike,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    name: str = "result",
) -> None:
    """Raises AssertionError if the numbers differ, and names the worst element: its index, both values, the
    difference in units in the last place (ulps), and where else numbers differ.

    Tensors, images and views are read from the device. Both have the same shape, or `expected` is one number.
    An element passes if ``abs(actual - expected) <= atol + rtol * abs(expected)``. A NaN equals a NaN alone,
    an infinity the same infinity alone. Of complex numbers the absolute value of the difference counts.

    `rtol` follows from the coarser of both dtypes: 1e-12 for float64, 1e-5 for float32, 2e-3 for float16,
    1.6e-2 for bfloat16, one step for float8, complex numbers as their parts, 0 for integers and bools.
    Python's numbers and lists of them follow the other side. Without `atol`, which is 0 then, all
    subnormal numbers of that dtype equal 0 and each other, because devices may take them as 0. `name` begins
    the message.

    Raises ArgumentTypeError if one of them is not numeric.

    >>> from kompute_py.testing import assert_allclose
    >>> assert_allclose(mgr.tensor([1, 2, 3]), [1, 2, 3.000001])
    """
    __tracebackhide__ = True
    found, wanted = _numbers(actual, "actual"), _numbers(expected, "expected")
    if wanted.shape not in ((), found.shape):
        raise AssertionError(f"{name} has shape {found.shape}, expected {wanted.shape}")
    dtype = _coarser(found, wanted, isinstance(expected, (bool, int, float, complex, list, tuple)))
    if dtype.kind in _EXACT and not rtol and not atol:
        bad = np.asarray(
            found.astype(object) != wanted.astype(object) if _mixed(found, wanted) else found != wanted
        )
        if bad.any():
            raise AssertionError(_message(name, found, wanted, bad, "exactly", None, dtype))
        return
    relative, smallest = _limits(dtype)
    relative, absolute = relative if rtol is None else rtol, 0.0 if atol is None else atol
    wide = np.complex128 if "c" in (found.dtype.kind, wanted.dtype.kind) else np.float64
    a, b = found.astype(wide), np.broadcast_to(wanted.astype(wide), found.shape)
    with np.errstate(all="ignore"):
        off = np.abs(a - b)
        allowed = absolute + relative * np.abs(b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if atol is None:
            same |= (np.abs(a) < smallest) & (np.abs(b) < smallest)
        bad = ~(same | ((off <= allowed) & np.isfinite(b)))
        if bad.any():
            excess = off / allowed if relative or absolute else off
            excess = np.where(bad, np.nan_to_num(excess, nan=np.inf, posinf=np.inf), -1.0)
            within = f"within rtol {relative:.3g} and atol {absolute:.3g} of {dtype}"
            raise AssertionError(_message(name, found, wanted, bad, within, (off, excess), dtype))


def _numbers(value: Any, what: str) -> Array:
    array = np.asarray(value.read() if isinstance(value, (Memory, StridedView)) else value)
    if array.dtype.kind not in "biufc" and not is_small_float(array.dtype):
        raise ArgumentTypeError(f"{what} is {kind_of(value)} with dtype {array.dtype}; give numbers")
    return array


def _mixed(a: Array, b: Array) -> bool:
    """Whether NumPy would compare these integers as floats."""
    return {a.dtype.kind, b.dtype.kind} == {"i", "u"} and 8 in (a.itemsize, b.itemsize)


def _coarser(found: Array, wanted: Array, is_weak: bool) -> np.dtype[Any]:
    """The dtype whose grain decides."""
    kinds = [found.dtype] if is_weak and found.dtype.kind not in _EXACT else [found.dtype, wanted.dtype]
    floats = [_part(each) for each in kinds if each.kind not in _EXACT]
    return max(floats, key=_step, default=found.dtype)


def _part(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _finfo(dtype: np.dtype[Any]) -> Any:
    if is_small_float(dtype):
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


def _step(dtype: np.dtype[Any]) -> float:
    return float(_finfo(dtype).eps)


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The relative tolerance, and the smallest normal number."""
    if dtype.kind in _EXACT:
        return 0.0, 0.0
    smallest = _finfo(dtype).smallest_normal
    return _RELATIVE.get(dtype.name, _step(dtype)), float(smallest)


def _message(
    name: str,
    found: Array,
    wanted: Array,
    bad: Array,
    within: str,
    floats: tuple[Array, Array] | None,
    dtype: np.dtype[Any],
) -> str:
    count = int(bad.sum())
    lines = [f"{name}: {count:,} of {bad.size:,} elements are not equal {within}"]
    spread = np.broadcast_to(wanted, found.shape)
    if floats is None:
        differences = [abs(int(a) - int(b)) for a, b in zip(found[bad], spread[bad], strict=True)]
        worst = np.argwhere(bad)[int(np.argmax(np.array(differences, object)))]
        detail = f"off by {max(differences):,}"
    else:
        off, excess = floats
        worst = np.array(np.unravel_index(int(np.argmax(excess)), excess.shape))
        amount = float(off[tuple(worst)])
        detail = f"off by {amount:.6g}{_ulps(amount, spread[tuple(worst)], dtype)}"
    at = tuple(int(i) for i in worst)
    lines.append(f"worst at {_place(at)}: {found[at]!s}, expected {spread[at]!s} ({detail})")
    places = np.argwhere(bad)
    if count > 1 and found.ndim:
        first, last = (tuple(int(i) for i in places[end]) for end in (0, -1))
        lines.append(f"first at {_place(first)}: {found[first]!s}, expected {spread[first]!s}")
        lines.append(f"last at {_place(last)}: {found[last]!s}, expected {spread[last]!s}")
        lines += _pattern(found, bad, places)
    return "\n".join(lines)


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else "the only element"


def _ulps(amount: float, expected: Any, dtype: np.dtype[Any]) -> str:
    size = abs(complex(expected))
    if dtype.kind in _EXACT or not np.isfinite(amount) or not np.isfinite(size):
        return ""
    info = _finfo(dtype)
    least = float(info.smallest_normal)
    exponent = float(np.frexp(max(size, least))[1]) - 1
    return f", {amount / (float(info.eps) * 2.0**exponent):.3g} ulps"


def _pattern(found: Array, bad: Array, places: Array) -> list[str]:
    """Says how the wrong elements are alike, if that tells the cause."""
    if bad.all():
        return ["every element is wrong"]
    lines = []
    flat = np.flatnonzero(bad)
    if bad.size - flat[0] == flat.size <= bad.size // 2:
        lines.append(f"the last {flat.size:,} elements are wrong, and no other: too few invocations?")
    values = found[bad]
    if not np.any(values != 0):
        lines.append("all wrong elements are 0: were they written?")
    elif found.dtype.kind not in _EXACT and np.isnan(values.astype(np.complex128)).all():
        lines.append("all wrong elements are NaN")
    return lines
