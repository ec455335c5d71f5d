"""The first operation that writes a NaN or an infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import NonFiniteError
from .._base.types import dtype_text

if TYPE_CHECKING:
    from .._base.annotations import Array
    from .values import OperationValues, Snapshot


_PACKED = "r11f_g11f_b10f"
"""The format with three floats in one uint32; those of rgb9_e5 are always finite."""


class NanLooker:
    """Raises NonFiniteError for an operation that wrote a NaN or an infinity.

    Of memory that is known to be written whole, such as the results of functions, each element counts. Of
    other memory, an element that has the same bytes after the operation may not have been written. Until an
    operation has written a NaN, those that are there come from the host, so a kernel is not blamed for them.
    From then on they may be those of earlier runs, so a kernel that only writes is blamed.
    """

    def __init__(self) -> None:
        self._found = False

    def look(self, values: OperationValues) -> None:
        """Looks at the results."""
        for snapshot in values.snapshots:
            if not snapshot.written:
                continue
            wrong = ~(_finite_texels if snapshot.format == _PACKED else _finite)(snapshot.after)
            partly = snapshot.read or not self._found if snapshot.whole is None else not snapshot.whole
            if partly:
                wrong &= ~_same(snapshot.before, snapshot.after)
            if wrong.any():
                self._found = True
                raise _error(values, snapshot, np.flatnonzero(wrong))


def _error(values: OperationValues, snapshot: Snapshot, places: Array) -> NonFiniteError:
    tensor, place = snapshot.tensor, int(places[0])
    index = _index(snapshot, place)
    value = _shown(snapshot.after.reshape(-1)[place])
    inputs = {}
    for each in values.snapshots:
        if each.read and each.before.size > place:
            inputs[each.name] = each.before.reshape(-1)[place].item()
    there = ", ".join(f"{name} {number}" for name, number in inputs.items())
    shape = "x".join(map(str, snapshot.shape)) or "scalar"
    kind = snapshot.format or dtype_text(snapshot.after.dtype)
    more = len(places) - 1
    several = f", and {more} more element{'s' if more > 1 else ''} like it" if more else ""
    return NonFiniteError(
        f"{values.place()} wrote {value} to {snapshot.name} ({kind}, {shape}) at "
        f"{list(index)}{several}."
        + (f" At that place it read: {there}." if there else " It read no tensor at that place.")
        + ' Correct what leads to it, or open the Manager without debug="nans"',
        operation=values.operation,
        tensor=tensor,
        index=index,
        inputs=inputs,
        line=values.line,
    )


def _index(snapshot: Snapshot, place: int) -> tuple[int, ...]:
    return tuple(int(each) for each in np.unravel_index(snapshot.first + place, snapshot.shape))


def _shown(value: Any) -> str:
    """The value; of a struct, the first member that is not finite."""
    for name in value.dtype.names or ():
        member = np.asarray(value[name])
        places = np.argwhere(~_finite(member))
        if len(places):
            place = tuple(places[0].tolist())
            return f"{name}{list(place) if place else ''} = {_shown(member[place])}"
    return str(value)


def _finite(array: Array) -> Array:
    """Whether each element is finite; integers are."""
    if array.dtype.kind in "fc":
        return np.isfinite(array)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize <= 2:
        return np.isfinite(array.astype(np.float32))  # bfloat16 and its kin
    if array.dtype.names is not None:
        finite = np.ones(array.shape, bool)
        for name in array.dtype.names:
            inner = _finite(array[name])
            finite &= inner.reshape(*array.shape, -1).all(axis=-1)
        return finite
    return np.ones(array.shape, bool)


def _finite_texels(array: Array) -> Array:
    """Whether each texel has finite numbers: an exponent of five ones says that one is not."""
    exponents = [array >> shift & 31 for shift in (6, 17, 27)]
    return np.all([each != 31 for each in exponents], axis=0)


def _same(one: Array, other: Array) -> Array:
    """Whether each element has the same bytes."""
    item = one.dtype.itemsize
    bytes_of = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other)]
    return (bytes_of[0].reshape(-1, item) == bytes_of[1].reshape(-1, item)).all(axis=1).reshape(one.shape)
