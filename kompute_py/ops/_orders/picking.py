"""Elements of tensors at arrays of indices and masks: ``t[key]`` and ``t[key] = value``, as NumPy's advanced
indexing.

What is basic in a key gives a view. Of the rest, each array becomes places along one axis of it, or, if it is
a mask, along as many as it has. All places of one element add up to its place in row-major order.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ..._base.arrays import spread
from ..._base.errors import ArgumentTypeError, InvalidArgumentError, OutOfRangeError
from ..._builders.elementwise import formula
from ..._memory.image import Image
from ..._memory.regions import as_mask_or_indices
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .._places.given import host, known
from .._places.indexing import put
from .._places.moving import ascontiguousarray, broadcast_to, take
from .._places.raising import _least, _most
from .counted import flatnonzero

_MEMORY = (Tensor, StridedView, Image)


class _Index(NamedTuple):
    """An array of a key."""

    axis: int
    """The first axis of the view that it is for."""
    span: int
    """The number of axes."""
    places: Any
    """Along them in row-major order, as int32: an array or a Tensor."""


class _Key(NamedTuple):
    view: Any
    """A Tensor or StridedView; its elements are taken."""
    indices: list[_Index]
    shape: tuple[int, ...]
    """That of all indices together."""
    front: bool
    """Whether its axes come first in the result: something stands between the arrays of the key."""

    @property
    def first(self) -> int:
        """The axis of the view at which the indices begin."""
        return self.indices[0].axis

    @property
    def behind(self) -> int:
        """The axis behind them."""
        return self.indices[-1].axis + self.indices[-1].span

    @property
    def rest(self) -> list[int]:
        """The other axes of the view."""
        taken = {axis for each in self.indices for axis in range(each.axis, each.axis + each.span)}
        return [axis for axis in range(len(self.view.shape)) if axis not in taken]

    @property
    def before(self) -> int:
        """How many of these stand before those of the indices in the result."""
        return 0 if self.front else sum(axis < self.first for axis in self.rest)

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the result."""
        rest = [self.view.shape[axis] for axis in self.rest]
        return (*rest[: self.before], *self.shape, *rest[self.before :])


def _read(t: Any, key: Any) -> _Key:
    """The parts of a key."""
    keys = [as_mask_or_indices(each) for each in (key if isinstance(key, tuple) else (key,))]
    spans = [_span(each) for each in keys]
    free = t.ndim - sum(spans)
    if free < 0:
        raise OutOfRangeError(f"{t._describe()} has {t.ndim} axes, and the index is for {sum(spans)}")
    if not any(each is Ellipsis for each in keys):
        keys.append(Ellipsis)
        spans.append(0)
    basic: list[Any] = []
    found: list[tuple[int, int, Any]] = []
    runs, before = 0, False
    for each, span in zip(keys, spans, strict=True):
        here = _is_array(each)
        runs += here and not before
        before = here
        if each is Ellipsis:
            basic += [slice(None)] * free
        elif not here:
            basic.append(each)
        else:
            none = hasattr(each, "ndim") and not each.ndim and each.dtype == np.bool_
            found.append((len(basic), 1 if none else span, each))
            basic += [None] if none else [slice(None)] * span
    view = t._basic(tuple(basic))
    indices = [
        _Index(axis, span, _places(t, each, view.shape[axis : axis + span])) for axis, span, each in found
    ]
    try:
        shape = np.broadcast_shapes(*(each.places.shape for each in indices))
    except ValueError:
        shapes = ", ".join(str(tuple(each.places.shape)) for each in indices)
        raise InvalidArgumentError(
            f"{t._describe()}: the arrays of the index do not broadcast: {shapes}"
        ) from None
    read = _Key(view, indices, shape, runs > 1)
    if math.prod(read.result) >= 2**32:
        raise InvalidArgumentError(
            f"{t._describe()}: the index selects {math.prod(read.result)} elements, 2**32 or more"
        )
    return read


def _is_array(key: Any) -> bool:
    return key is not None and key is not Ellipsis and not isinstance(key, slice)


def _span(key: Any) -> int:
    """The axes that a part of a key is for."""
    if key is None or key is Ellipsis:
        return 0
    mask = hasattr(key, "dtype") and key.dtype == np.bool_
    return len(key.shape) if mask else 1


def _places(t: Any, key: Any, lengths: tuple[int, ...]) -> Any:
    """The places that an int, an array or a mask selects along axes of these lengths."""
    n = math.prod(lengths)
    if n >= 2**31:
        raise InvalidArgumentError(f"{t._describe()}: the index is for {n} elements, 2**31 or more")
    if not isinstance(key, (np.ndarray, *_MEMORY)):
        key = np.asarray(operator.index(key))
    kind = np.dtype(key.dtype).kind
    if kind == "b":
        if key.shape not in ((), lengths):
            raise OutOfRangeError(
                f"{t._describe()}: a mask has the shape {tuple(key.shape)}, and is for axes of {lengths}"
            )
        if not isinstance(key, _MEMORY) or not key.shape:
            return np.flatnonzero(host(key)).astype(np.int32)
        return formula("int32(x)")(flatnonzero(key))
    if kind == "U" and t._dtype.names:
        raise ArgumentTypeError(
            f"{t._describe()}: index one field at a time, t[{str(key.flat[0]) if key.size else 'a'!r}]"
        )
    if kind not in "iu":
        raise ArgumentTypeError(
            f"{t._describe()} is indexed with ints, slices, and arrays of ints or bools, not of {key.dtype}"
        )
    if not math.prod(key.shape):
        return np.zeros(key.shape, np.int32)
    # If broadcasting made an axis, its elements are one in memory, and one is enough.
    array = None if isinstance(key, _MEMORY) else key
    once = array if array is None else array[tuple(slice(None if step else 1) for step in array.strides)]
    ends = [each(key) for each in (_least, _most)] if once is None else [once.min(), once.max()]
    for end in (int(known(each)) for each in ends):
        if not -n <= end < n:
            raise OutOfRangeError(
                f"{t._describe()}: the index {end} is out of bounds for an axis of {n} elements"
            )
    if once is None or array is None:
        # `n` need not be a number of the key's dtype, but it is an int32.
        return formula("where(int32(k) < 0, int32(k) + n, int32(k))")(key, n)
    signed = once.astype(np.int64)
    return np.broadcast_to(np.where(signed < 0, signed + n, signed).astype(np.int32), array.shape)


def _sum(parts: list[tuple[Any, int]]) -> Any:
    """The sum of places times steps, which broadcast."""
    total: Any = np.zeros((), np.int32)
    here = [(places, step) for places, step in parts if isinstance(places, np.ndarray)]
    for places, step in here:
        total = total + places * np.int32(step)
    for places, step in parts:
        if not isinstance(places, np.ndarray):
            total = formula("x + y * step")(total, places, step)
    return total


def _steps(shape: tuple[int, ...]) -> list[int]:
    """Elements from one to the next on each axis of a dense array."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def pick(t: Any, key: Any) -> Any:
    """A Tensor with the elements of the Tensor or StridedView `t` at `key`."""
    read = _read(t, key)
    shape = read.view.shape
    if not math.prod(read.result):
        return t.manager.empty(read.result, t.dtype)
    flat = ascontiguousarray(read.view) if isinstance(read.view, StridedView) else read.view
    if read.front:
        return take(flat.reshape(-1), _everywhere(read), None, "clip").reshape(read.result)
    first, behind = read.first, read.behind
    steps = _steps(shape[first:behind])
    places = _sum([(each.places, steps[each.axis + each.span - 1 - first]) for each in read.indices])
    wide = flat.reshape(math.prod(shape[:first]), math.prod(shape[first:behind]), math.prod(shape[behind:]))
    return take(wide, places, 1, "clip").reshape(read.result)


def _everywhere(read: _Key) -> Any:
    """The place of each element of the result in the view, in row-major order; the sizes are below 2**31."""
    shape = tuple(read.view.shape)
    if math.prod(shape) >= 2**31:
        raise InvalidArgumentError(f"An index is for {math.prod(shape)} elements, 2**31 or more")
    steps = _steps(shape)
    rest = read.rest
    after = len(rest) - read.before
    parts = [
        (each.places.reshape((*each.places.shape, *(1,) * after)), steps[each.axis + each.span - 1])
        for each in read.indices
    ]
    for number, axis in enumerate(rest):
        behind = len(rest) - number - 1 + (len(read.shape) if number < read.before else 0)
        array = np.arange(shape[axis], dtype=np.int32).reshape(shape[axis], *(1,) * behind)
        parts.append((read.view.manager.tensor_t(array), steps[axis]))
    found = _sum(parts)
    return found if found.shape == read.result else broadcast_to(found, read.result)


def place(t: Any, key: Any, value: Any) -> None:
    """Writes `value` to the elements of the Tensor or StridedView `t` at `key`."""
    read = _read(t, key)
    if isinstance(value, _MEMORY):
        value._require_init("be read")
        extra = max(0, len(value.shape) - len(read.result))
        values: Any = value
        if value.shape != read.result and math.prod(value.shape) != 1:
            if extra and value.shape[:extra] == (1,) * extra:  # as NumPy in assignments
                values = ascontiguousarray(value).reshape(value.shape[extra:])
            values = broadcast_to(values, read.result)
    else:
        values = spread(value, t.dtype, read.result, t._describe)
        repeated = values.size and not any(values.strides)
        values = values.reshape(-1)[:1].reshape(()) if repeated else np.ascontiguousarray(values)
    if math.prod(read.result):
        put(read.view, _everywhere(read), values, "clip", out=read.view)
        written = read.view.base if isinstance(read.view, StridedView) else read.view
        written._native.note_host_write()
