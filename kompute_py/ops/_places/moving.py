"""Elements in other places: transposed, turned, rolled, repeated.

Each result element comes from one place. `_Places` describes it by axes of the result: how many elements of
the argument's memory it moves by, and by how many places the axis is rolled. Axes that are one in memory are
merged, so the kernels depend on the number of axes that are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from ..._builders.elementwise import strides_of
from ..._builders.walks import axes_of, check_sizes, one_each
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from .raising import raising

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder


class _Axis(NamedTuple):
    length: int
    step: int
    """Elements of the argument's memory from one to the next; may be negative."""
    roll: int = 0
    """The first element comes to this place."""


def _merged(axes: Sequence[_Axis]) -> list[_Axis]:
    found: list[_Axis] = []
    for axis in axes:
        if axis.length == 1:
            continue
        last = found[-1] if found else None
        if last and not last.roll and not axis.roll and last.step == axis.step * axis.length:
            found[-1] = _Axis(last.length * axis.length, axis.step)
        else:
            found.append(axis)
    return found


def _axis(ksel: FunctionSelection, axis: int, ndim: int) -> int:
    """The axis from 0 on."""
    return axes_of(ksel.name, [axis], ndim)[0]


class _Places(CustomOp):
    """Operations that take result elements from places that steps of the axes give."""

    reads_parts = True
    takes_structs = True

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        """The result's shape, its axes, and the number of elements from the argument's first one to that of
        the result."""
        raise NotImplementedError

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        shape, axes, first = self.find(ksel, x)
        ksel.return_new_tensor(shape, x.dtype)
        check_sizes(ksel)
        kept = _merged(axes) if math.prod(shape) else []
        for number, axis in enumerate(kept):
            if number:
                ksel.value(f"kp_n{number}", axis.length, "uint32")
            ksel.value(f"kp_s{number}", axis.step % 2**32, "uint32")
            if axis.roll:
                ksel.value(f"kp_l{number}", axis.length, "uint32")
                ksel.value(f"kp_r{number}", axis.roll, "uint32")
        ksel.value("kp_first", (x.offset + first) % 2**32, "uint32")
        ksel.specialize(rolled=[bool(axis.roll) for axis in kept])

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel: an element for each invocation."""
        rolled = ksel.special["rolled"]
        one_each(kb, kb.result(0).size, "i")
        kb.emit("uint rest = i, place = kp_first, c;")
        if ksel.special.get("line"):  # the number of places by which all elements are rolled as one line
            kb.emit("rest = i < kp_line ? i + (result_size - kp_line) : i - kp_line;")
        for number in reversed(range(len(rolled))):
            kb.emit(f"c = rest % kp_n{number}; rest /= kp_n{number};" if number else "c = rest;")
            if rolled[number]:
                kb.emit(f"c = c >= kp_r{number} ? c - kp_r{number} : c + (kp_l{number} - kp_r{number});")
            kb.emit(f"place += c * kp_s{number};")
        kb.emit("result_store(i, x_load(place));")


def _of(x: TensorArg) -> list[_Axis]:
    return [_Axis(n, step) for n, step in zip(x.shape, strides_of(x), strict=True)]


def _shape(axes: Sequence[_Axis]) -> tuple[int, ...]:
    return tuple(axis.length for axis in axes)


class _Ascontiguousarray(_Places):
    """A dense copy of `x`, such as ``t[:, 0]``, as ``np.ascontiguousarray``: a scalar gets one axis.

    Raises InvalidArgumentError for memory beyond what shaders reach.

    >>> t = mgr.tensor([[1, 2], [3, 4]])
    >>> kp.ops.ascontiguousarray(t[:, 0]).tolist()
    [1.0, 3.0]

    :dtypes: all
    :axes: any
    :error: exact
    """

    signature = "ascontiguousarray(Tensor x) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        return x.shape or (1,), _of(x), 0


class _Transpose(_Places):
    """`x` with its axes in the order `axes`, or reversed, as ``np.transpose``. The result is a copy.

    Raises InvalidArgumentError unless `axes` has each axis once.

    >>> kp.ops.transpose(mgr.tensor([[1, 2], [3, 4]])).tolist()
    [[1.0, 3.0], [2.0, 4.0]]

    :dtypes: all
    :axes: any
    :error: exact
    """

    signature = "transpose(Tensor x, int[]? axes=None) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        given = ksel.attr_list_int("axes").v
        order = list(reversed(range(x.ndim))) if given is None else [int(each) for each in given]
        if len(axes_of(ksel.name, order, x.ndim)) != x.ndim:
            raise InvalidArgumentError(f"{ksel.name}: axes is {order}; give each of the {x.ndim} axes once")
        every = _of(x)
        axes = [every[each] for each in order]
        return _shape(axes), axes, 0


class _Moveaxis(_Places):
    """`x` with some axes moved to other places, as ``np.moveaxis``; the others keep their order. The result
    is a copy.

    Raises InvalidArgumentError for an axis that `x` does not have or that is given twice, and unless
    `destination` has as many axes as `source`.

    >>> kp.ops.moveaxis(mgr.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)

    :dtypes: all
    :axes: any
    :error: exact
    """

    signature = "moveaxis(Tensor x, int[]? source, int[]? destination) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        sides = []
        for name in ("source", "destination"):
            given = ksel.attr_list_int(name).v or []
            axes_of(f"{ksel.name}: {name}", given, x.ndim)
            sides.append([int(each) % x.ndim for each in given])
        source, destination = sides
        if len(source) != len(destination):
            raise InvalidArgumentError(
                f"{ksel.name}: source has {len(source)} axes and destination {len(destination)}; give as many"
            )
        order = [each for each in range(x.ndim) if each not in source]
        for to, each in sorted(zip(destination, source, strict=True)):
            order.insert(to, each)
        every = _of(x)
        axes = [every[each] for each in order]
        return _shape(axes), axes, 0


class _Rot90(_Places):
    """`x` turned by 90 degrees `k` times in the plane of two axes, from the first to the second, as
    ``np.rot90``.

    Raises InvalidArgumentError unless `axes` are two axes that `x` has.

    >>> kp.ops.rot90(mgr.tensor([[1, 2], [3, 4]])).tolist()
    [[2.0, 4.0], [1.0, 3.0]]

    :dtypes: all
    :axes: two
    :error: exact
    """

    signature = "rot90(Tensor x, int k=1, int[] axes=[0, 1]) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        turns, given = ksel.attr_int("k").v % 4, ksel.attr_list_int("axes").v
        axes_of(ksel.name, given, x.ndim)
        if len(given) != 2:
            raise InvalidArgumentError(f"{ksel.name}: axes is {given}; give two axes")
        a, b = (int(each) % x.ndim for each in given)
        axes, first = _of(x), 0
        back = {0: (), 1: (b,), 2: (a, b), 3: (a,)}[turns]
        for each in back:
            first += (x.shape[each] - 1) * axes[each].step
            axes[each] = _Axis(x.shape[each], -axes[each].step)
        if turns % 2:
            axes[a], axes[b] = axes[b], axes[a]
        return _shape(axes), axes, first if all(x.shape) else 0


class _Swapaxes(_Places):
    """`x` with two axes exchanged, as ``np.swapaxes``. The result is a copy.

    Raises InvalidArgumentError for an axis that `x` does not have.

    >>> kp.ops.swapaxes(mgr.tensor([[1, 2, 3]]), 0, 1).shape
    (3, 1)

    :dtypes: all
    :axes: two
    :error: exact
    """

    signature = "swapaxes(Tensor x, int axis1, int axis2) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        a = _axis(ksel, ksel.attr_int("axis1").v, x.ndim)
        b = _axis(ksel, ksel.attr_int("axis2").v, x.ndim)
        axes = _of(x)
        axes[a], axes[b] = axes[b], axes[a]
        return _shape(axes), axes, 0


class _Flip(_Places):
    """`x` with the order of elements reversed along `axis`, as ``np.flip``: an int, several, or None for all.

    Raises InvalidArgumentError for an axis that `x` does not have or that is given twice.

    >>> kp.ops.flip(mgr.tensor([1, 2, 3])).tolist()
    [3.0, 2.0, 1.0]

    :dtypes: all
    :axes: any, several, None
    :error: exact
    """

    signature = "flip(Tensor x, int[]? axis=None) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        """Negative steps, from the last element on."""
        axes, first = _of(x), 0
        for each in axes_of(ksel.name, ksel.attr_list_int("axis").v, x.ndim):
            first += (x.shape[each] - 1) * axes[each].step
            axes[each] = _Axis(x.shape[each], -axes[each].step)
        return x.shape, axes, first


class _Roll(_Places):
    """`x` with its elements moved by `shift` places along `axis`, as ``np.roll``: those that leave at the end
    come back at the start. Several axes take one shift, or one for each. Without an axis all elements are
    rolled as one line, and the shape stays.

    Raises InvalidArgumentError for an axis that `x` does not have or that is given twice, and for another
    number of shifts.

    >>> kp.ops.roll(mgr.tensor([1, 2, 3]), 1, axis=0).tolist()
    [3.0, 1.0, 2.0]

    :dtypes: all
    :axes: any, several, None
    :error: exact
    """

    signature = "roll(Tensor x, int[]? shift, int[]? axis=None) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        shift, given = ksel.attr_list_int("shift").v, ksel.attr_list_int("axis").v
        if shift is None:
            raise InvalidArgumentError(f"{ksel.name}: shift is None; give an int or several")
        if given is None:
            return self.as_one_line(ksel, x, shift)
        axes_of(ksel.name, given, x.ndim)  # checked
        shifts = list(shift) * len(given) if len(shift) == 1 else list(shift)
        if len(shifts) != len(given):
            raise InvalidArgumentError(
                f"{ksel.name}: {len(shifts)} shifts, and {len(given)} axes; give one for each"
            )
        axes = _of(x)
        for each, by in zip(given, shifts, strict=True):
            length, step, _ = axes[each]
            axes[each] = _Axis(length, step, by % max(length, 1))
        return x.shape, axes, 0

    def as_one_line(
        self, ksel: FunctionSelection, x: TensorArg, shift: Sequence[int]
    ) -> tuple[tuple[int, ...], list[_Axis], int]:
        """All elements as one axis."""
        if len(shift) != 1:
            raise InvalidArgumentError(f"{ksel.name}: {len(shift)} shifts and no axis; give one for each")
        line = shift[0] % max(x.size, 1)
        ksel.specialize(line=line > 0)
        ksel.value("kp_line", line, "uint32")
        return x.shape, _of(x), 0


class _Tile(_Places):
    """`x` again and again along each axis, as ``np.tile``: `reps` has a number for each of the last axes.

    Raises InvalidArgumentError for a negative number, or for None.

    >>> kp.ops.tile(mgr.tensor([1, 2]), 2).tolist()
    [1.0, 2.0, 1.0, 2.0]

    :dtypes: all
    :axes: any, several
    :error: exact
    """

    signature = "tile(Tensor x, int[]? reps) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        """For each axis one of the repetitions, which does not move, before it."""
        given = ksel.attr_list_int("reps").v
        if given is None or any(each < 0 for each in given):
            raise InvalidArgumentError(f"{ksel.name}: reps is {given}; give ints from 0 on")
        reps = [1] * (x.ndim - len(given)) + [int(each) for each in given]
        every = [_Axis(1, 0)] * (len(reps) - x.ndim) + _of(x)
        axes: list[_Axis] = []
        for times, axis in zip(reps, every, strict=True):
            axes += [_Axis(times, 0), axis]
        return tuple(n * axis.length for n, axis in zip(reps, every, strict=True)), axes, 0


class _BroadcastTo(_Places):
    """`x` broadcast to `shape`, as ``np.broadcast_to``. The result is a copy.

    Raises InvalidArgumentError unless `x` broadcasts to it.

    >>> kp.ops.broadcast_to(mgr.tensor([1, 2]), (2, 2)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]

    :dtypes: all
    :axes: any
    :error: exact
    """

    signature = "broadcast_to(Tensor x, int[]? shape) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        """Axes with one element do not move."""
        given = ksel.attr_list_int("shape").v
        shape = tuple(int(each) for each in given or ())
        wide = (1,) * (len(shape) - x.ndim) + x.shape
        fits = len(wide) == len(shape) and all(a in (1, b) for a, b in zip(wide, shape, strict=True))
        if given is None or not fits or any(n < 0 for n in shape):
            raise InvalidArgumentError(f"{ksel.name}: {x.shape} does not broadcast to {shown(given)}")
        steps = (0,) * (len(shape) - x.ndim) + strides_of(x)
        axes = [_Axis(n, 0 if a == 1 else step) for n, a, step in zip(shape, wide, steps, strict=True)]
        return shape, axes, 0


class _Diagonal(_Places):
    """The diagonals of `x` over two axes, as ``np.diagonal``, as the last axis. `offset` is above 0 for those
    above the main diagonal. The result is a copy.

    Raises InvalidArgumentError for axes that `x` does not have, and for one axis twice.

    >>> kp.ops.diagonal(mgr.tensor([[1, 2], [3, 4]])).tolist()
    [1.0, 4.0]

    :dtypes: all
    :axes: two
    :error: exact
    """

    signature = "diagonal(Tensor x, int offset=0, int axis1=0, int axis2=1) -> Tensor"

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        offset = ksel.attr_int("offset").v
        one, two = ksel.attr_int("axis1").v, ksel.attr_int("axis2").v
        axes_of(ksel.name, [one, two], x.ndim)  # checked
        one, two = one % x.ndim, two % x.ndim
        every = _of(x)
        rows, columns = every[one], every[two]
        count = max(0, min(rows.length + min(offset, 0), columns.length - max(offset, 0)))
        first = max(offset, 0) * columns.step - min(offset, 0) * rows.step
        axes = [axis for number, axis in enumerate(every) if number not in (one, two)]
        axes.append(_Axis(count, rows.step + columns.step))
        return _shape(axes), axes, first if count else 0


def check_indices(ksel: FunctionSelection, indices: TensorArg, n: int, title: str) -> None:
    """Declares `mode`. Raises InvalidArgumentError for another mode and for `n` elements that cannot be
    indexed, ArgumentTypeError for indices that are not ints.
    """
    mode = ksel.attr_str("mode").v
    if mode == "raise":
        raise InvalidArgumentError(
            f"{ksel.name}: mode is 'raise', and kernels cannot raise errors: what is recorded or submitted "
            "needs 'clip' or 'wrap'"
        )
    if mode not in ("clip", "wrap"):
        raise InvalidArgumentError(f'{ksel.name}: mode is {mode!r}; give "raise", "clip" or "wrap"')
    if indices.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{ksel.name}: indices is of {indices.dtype}; give ints")
    if n >= 2**31 or (not n and indices.size):
        raise InvalidArgumentError(f"{ksel.name}: {title} has {n} elements; it must have 1 to 2**31 - 1")


def within(kind: str, mode: str) -> str:
    """Statements that bring the index ``k`` of type `kind` to 0 to ``kp_n - 1``."""
    if mode == "wrap":
        return f"k -= k / {kind}(kp_n) * {kind}(kp_n); if (k < {kind}(0)) k += {kind}(kp_n);"
    if kind in ("int64_t", "uint64_t"):
        return f"if (k < {kind}(0)) k = {kind}(0); if (k >= {kind}(kp_n)) k = {kind}(kp_n - 1u);"
    return f"k = clamp(k, {kind}(0), {kind}(kp_n - 1u));"


class _Take(CustomOp):
    """The elements of `x` at `indices` along `axis`, as ``np.take``; with None `x` is taken as one axis.

    The result has the axes of `indices` where `axis` was. `mode` says what indices beyond the axis
    mean: "clip" takes the first or last element, also for negative ones; "wrap" goes round. "raise" takes
    negative indices from the end and refuses others: the host waits to see that, so what is recorded needs
    another mode.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for an axis that `x` does not have, one
    without elements or with 2**31 or more, and for another mode; ArgumentTypeError for indices that are no
    ints.

    >>> kp.ops.take(mgr.tensor([5, 6, 7]), np.array([2, 0, 9]), axis=0, mode="clip").tolist()
    [7.0, 5.0, 7.0]

    :dtypes: all; indices ints
    :axes: one
    :error: exact
    """

    takes_structs = True
    signature = "take(Tensor x, Tensor indices, int[]? axis=None, str mode='raise') -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, indices = ksel.arg_tensor("x"), ksel.arg_tensor("indices")
        given = ksel.attr_list_int("axis").v
        if given is not None and len(given) != 1:
            raise InvalidArgumentError(f"{ksel.name}: axis is {given}; give one axis, or None")
        shape, axis = ((x.size,), 0) if given is None else (x.shape, _axis(ksel, given[0], x.ndim))
        n = shape[axis]
        check_indices(ksel, indices, n, "x" if given is None else f"axis {axis} of x")
        ksel.return_new_tensor((*shape[:axis], *indices.shape, *shape[axis + 1 :]), x.dtype)
        check_sizes(ksel)
        ksel.value("kp_step", math.prod(shape[axis + 1 :]), "uint32")
        ksel.value("kp_n", n, "uint32")

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel: an element for each invocation."""
        mode = next(a.v for a in ksel.arg_descs if a is not None and a.name == "mode")
        kind = kb.arg_value("indices").type
        one_each(kb, kb.result(0).size, "i")
        kb.emit(f"""
            uint inner = i % kp_step, rest = i / kp_step;
            uint outer = rest / indices_size;
            {kind} k = indices_load(rest - outer * indices_size);
            {within(kind, mode)}
            result_store(i, x_load((outer * kp_n + uint(k)) * kp_step + inner));
        """)


ascontiguousarray: Function = CustomOp.register(_Ascontiguousarray)
transpose: Function = CustomOp.register(_Transpose)
moveaxis: Function = CustomOp.register(_Moveaxis)
rot90: Function = CustomOp.register(_Rot90)
swapaxes: Function = CustomOp.register(_Swapaxes)
flip: Function = CustomOp.register(_Flip)
roll: Function = CustomOp.register(_Roll)
tile: Function = CustomOp.register(_Tile)
broadcast_to: Function = CustomOp.register(_BroadcastTo)
diagonal: Function = CustomOp.register(_Diagonal)
take: Function = raising(_Take)
