"""Tensors behind each other: along an axis that they have, or on a new one.

One operation has a dispatch for each tensor. Many are joined in groups, and the groups in groups: each kernel
is written and prepared once for all groups alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._base.errors import InvalidArgumentError
from ..._builders.elementwise import formula
from ..._builders.walks import axes_of, check_sizes, one_each
from ..._custom.arguments import checked_tensor
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import converted, promoted
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from .composed import Run, Widened
from .given import shape_of

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_MOST = 64
"""Tensors that one operation takes: the time of preparing it grows with their square."""


def _check(name: str, shapes: Sequence[tuple[str, tuple[int, ...]]], axis: int, stacked: bool) -> int:
    """The axis, from 0 on. Raises InvalidArgumentError if tensors of these names and shapes do not fit."""
    if not shapes:
        raise InvalidArgumentError(f"{name}: arrays is empty; give one or more")
    first, shape = shapes[0]
    axis = axes_of(name, [axis], len(shape) + stacked)[0]
    wanted = shape if stacked else (*shape[:axis], *shape[axis + 1 :])
    for other, own in shapes:
        if len(own) != len(shape) or (own if stacked else (*own[:axis], *own[axis + 1 :])) != wanted:
            along = "" if stacked else f", but along axis {axis}"
            raise InvalidArgumentError(
                f"{name}: {first} has the shape {shape}, and {other} {own}; they must be the same{along}"
            )
    return axis


class _Joined(CustomOp):
    """Operations that put tensors behind each other along an axis."""

    takes_structs = True

    def join(self, ksel: FunctionSelection, stacked: bool) -> None:
        """Declares the arguments and the result."""
        given = ksel.arg_tensor_list("arrays").items
        shapes = [(each.name, each.shape) for each in given]
        axis = _check(ksel.name, shapes, ksel.attr_int("axis").v, stacked)
        first = given[0]
        lengths = [1 if stacked else each.shape[axis] for each in given]
        shape = (*first.shape[:axis], sum(lengths), *first.shape[axis + (not stacked) :])
        ksel.return_new_tensor(shape, promoted([each.dtype for each in given]))
        check_sizes(ksel)
        step = math.prod(shape[axis + 1 :])
        ksel.value("kp_all", sum(lengths) * step, "uint32")
        before = 0
        for number, length in enumerate(lengths):
            ksel.value(f"kp_n{number}", length * step, "uint32")
            ksel.value(f"kp_b{number}", before * step, "uint32")
            before += length

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        wanted = ksel.results[0].dtype
        for number, each in enumerate(kb.arg_value("arrays")):
            kb.begin_dispatch(f"part {number}")
            one_each(kb, each.size, "i")
            value = f"{each}_load(i)"
            if each.dtype != wanted:
                value = converted(value, each.dtype, wanted)
            for extension in (*element_of(each.dtype).extensions, *element_of(wanted).extensions):
                kb.extension(extension)
            kb.emit(f"""
                uint line = i / kp_n{number};
                result_store(line * kp_all + kp_b{number} + (i - line * kp_n{number}), {value});
            """)


class _Concatenate(_Joined):
    """Tensors behind each other along `axis`, as ``np.concatenate``. All take NumPy's common dtype.

    Raises InvalidArgumentError for shapes that differ on another axis, and for no arrays.

    >>> kp.ops.concatenate([mgr.tensor([1, 2]), mgr.tensor([3])]).tolist()
    [1.0, 2.0, 3.0]

    :dtypes: all
    :axes: one
    :error: exact
    """

    signature = "concatenate(Tensor[] arrays, int axis=0) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        self.join(ksel, False)


class _Stack(_Joined):
    """Tensors of one shape behind each other on a new axis, `axis` of the result, as ``np.stack``. All take
    NumPy's common dtype.

    Raises InvalidArgumentError for shapes that differ, and for no arrays.

    >>> kp.ops.stack([mgr.tensor([1, 2]), mgr.tensor([3, 4])], axis=1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]

    :dtypes: all
    :axes: one
    :error: exact
    """

    signature = "stack(Tensor[] arrays, int axis=0) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        self.join(ksel, True)


def _are_many(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    arrays = named.get("arrays")
    return isinstance(arrays, (list, tuple)) and len(arrays) > _MOST


def _joined(run: Run, arrays: Sequence[Any], axis: int, stacked: bool) -> Any:
    """More tensors than one operation takes."""
    name = "stack" if stacked else "concatenate"
    items = [checked_tensor(f"{name}: arrays[{i}]", each) for i, each in enumerate(arrays)]
    place = _check(name, [(f"arrays[{i}]", shape_of(each)) for i, each in enumerate(items)], axis, stacked)
    wanted = promoted([each.dtype for each in items])
    cast = formula("x", wanted.name)
    items = [each if each.dtype == wanted else run(cast, each) for each in items]
    join = _stack if stacked else _concatenate
    while len(items) > 1:
        items = [run(join, items[at : at + _MOST], place) for at in range(0, len(items), _MOST)]
        join = _concatenate
    return items[0]


def _concatenate_many(run: Run, arrays: Sequence[Any], axis: int = 0) -> Any:
    return _joined(run, arrays, axis, False)


def _stack_many(run: Run, arrays: Sequence[Any], axis: int = 0) -> Any:
    return _joined(run, arrays, axis, True)


_concatenate: Function = CustomOp.register(_Concatenate)
_stack: Function = CustomOp.register(_Stack)
concatenate: Function = Widened(_Concatenate, _are_many, _concatenate_many)
stack: Function = Widened(_Stack, _are_many, _stack_many)
