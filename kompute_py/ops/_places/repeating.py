"""Elements several times in a row: as many times each, or as numbers say."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.arrays import as_index
from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._functions.function import Function
from ..._memory.image import Image
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .composed import Run, Widened, dense, records
from .given import countable, host, shape_of
from .moving import _Axis, _axis, _of, _Places, take


class _Repeat(_Places):
    """Each element of `x` `repeats` times in a row along `axis`, as ``np.repeat``. Without an axis the result
    has one: that of all elements as one line.

    `repeats` is an int, or an array, a list or a Tensor of ints: a number for each element of the axis, or
    one for all. The host computes the places from such numbers, and reads those of a Tensor, also when it is
    recorded: what is recorded keeps them.

    Raises InvalidArgumentError for an axis that `x` does not have, for negative `repeats`, for another number
    of them, and for more elements than kernels count; ArgumentTypeError unless they are ints.

    >>> kp.ops.repeat(mgr.tensor([1, 2]), 2, axis=0).tolist()
    [1.0, 1.0, 2.0, 2.0]
    >>> kp.ops.repeat(mgr.tensor([1, 2, 3]), [2, 0, 1]).tolist()
    [1.0, 1.0, 3.0]

    :dtypes: all
    :axes: one, None
    :error: exact
    """

    signature = "repeat(Tensor x, int repeats, int[]? axis=None) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        """An axis of the repetitions, which does not move, after the axis."""
        repeats = ksel.attr_int("repeats").v
        given = ksel.attr_list_int("axis").v
        if repeats < 0:
            raise InvalidArgumentError(f"{ksel.name}: repeats is {repeats}; give an int from 0 on")
        axes = _of(x)
        if given is None:
            return (x.size * repeats,), [*axes, _Axis(repeats, 0)], 0
        if len(given) != 1:
            raise InvalidArgumentError(f"{ksel.name}: axis is {given}; give one axis, or None")
        axis = _axis(ksel, given[0], x.ndim)
        axes.insert(axis + 1, _Axis(repeats, 0))
        return (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]), axes, 0


def _by_numbers(args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether there is a number for each element."""
    return isinstance(given.get("repeats"), (list, tuple, np.ndarray, Tensor, StridedView, Image))


def _repeat_by_numbers(run: Run, x: Any, repeats: Any, axis: Any = None) -> Any:
    """Takes the elements from the places that the numbers give."""
    x = countable(x) if axis is not None else dense(run, x).reshape(-1)
    shape = shape_of(x)
    place = 0 if axis is None else as_index(axis, "repeat: axis")
    if not -len(shape) <= place < len(shape):
        raise InvalidArgumentError(f"repeat: axis is {place}, and x has {len(shape)} axes")
    lengths, n = shape_of(repeats), shape[place]
    if lengths not in ((), (1,), (n,)):
        raise InvalidArgumentError(
            f"repeat: repeats has the shape {lengths}, and the axis {n} elements; give a number "
            "for each, or one"
        )
    numbers = host(repeats)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise ArgumentTypeError(f"repeat: repeats is of {numbers.dtype}; give ints")
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(f"repeat: repeats has {numbers.min()}; give ints from 0 on")
    # Floats do not wrap.
    total = float(np.sum(numbers, dtype=np.float64)) * (n if numbers.size == 1 else 1)
    if total >= 2**32:
        raise InvalidArgumentError(f"repeat: the axis gets {total:.0f} elements, 2**32 or more")
    places = np.repeat(np.arange(n, dtype=np.int32), numbers.astype(np.int64))
    if records(run):
        places = x.manager.tensor_t(places)
    return run(take, x, places, place, "clip")


repeat: Function = Widened(_Repeat, _by_numbers, _repeat_by_numbers)
