"""Filters of several axes by windows: in passes along one axis each, or by the rank of an element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.walks import axes_of, check_sizes, named, one_each
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from .._orders.keys import key_of
from .borders import (
    BLOCK,
    MODES,
    Body,
    Lines,
    check_count,
    check_mode,
    check_order,
    declare_border,
    float_filter,
    gaussian_weights,
)

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_MOST_TURNS = 60000
"""Of an invocation's loops: llvmpipe ends them after 65,535."""
_MOST_SORTED = 25
"""Elements of a window that an invocation sorts; it searches the keys of larger ones bit by bit."""
_MOST_KEPT = 256
"""Keys that it holds for that; else it loads the elements for each bit."""
_AXES = """`axes` are the axes that it filters, None for all: (0, 1) for a picture with channels."""
_WINDOW = """`size` is the number of elements along each axis, or one for all. The window of element i begins
    ``size // 2`` before it."""
_RAISES = """Raises InvalidArgumentError for axes that `x` does not have, an unknown mode, and a filter of no
    or of too many elements"""


class Pass(NamedTuple):
    """A filter along one axis."""

    axis: int
    length: int
    left: int
    """Elements of the window before the one that it is for."""

    def blocks(self, x: TensorArg) -> int:
        """How many sizes of blocks a long window is put together from; 0: it is walked through."""
        n = x.shape[self.axis]
        if self.length < 2 * BLOCK or not x.size:
            return 0
        if x.size // n * (n + self.length) > max(4 * x.size, 2**20):  # it would take too much memory
            return 0
        return (self.length.bit_length() - 1) // (BLOCK.bit_length() - 1)


def per_axis(
    ksel: FunctionSelection, x: TensorArg, *given: tuple[str, Sequence[Any] | None]
) -> list[list[Any]]:
    """Of each attribute that is `given`, by name, a number for each axis of `x` that `axes` has; else None.

    The numbers decide no kernels: None takes their place in `axes`.
    """
    chosen = ksel.attr_list_int("axes")
    axes = axes_of(ksel.name, chosen.v, x.ndim)
    order = list(axes) if chosen.v is None else [axis % x.ndim for axis in chosen.v]
    found = []
    for what, numbers in given:
        if numbers is None or not numbers:
            raise InvalidArgumentError(f"{ksel.name}: {what} is missing; give a number, or one for each axis")
        if len(numbers) not in (1, len(axes)):
            raise InvalidArgumentError(
                f"{ksel.name}: {what} has {len(numbers)} numbers for {len(axes)} axes; give one, or one for "
                "each"
            )
        each: list[Any] = [None] * x.ndim
        for axis in axes:
            each[axis] = numbers[0 if len(numbers) == 1 else order.index(axis)]
        found.append(each)
    chosen.v = None
    return found


def declare_passes(ksel: FunctionSelection, x: TensorArg, passes: Sequence[Pass]) -> None:
    """Declares the numbers of the passes."""
    if x.size >= 2**31:
        raise InvalidArgumentError(f"{ksel.name}: x has {x.size} elements; give fewer than 2**31")
    for number, each in enumerate(passes):
        check_count(ksel, "the filter", each.length)
        for name, value in (
            ("n", x.shape[each.axis]),
            ("step", math.prod(x.shape[each.axis + 1 :])),
            ("count", each.length),
            ("left", each.left),
        ):
            ksel.value(f"kp_{name}{number}", value, "int32")
    ksel.specialize(passes=len(passes))


class PassesOp(CustomOp):
    """Filters that are a filter along each axis, one after the other, have this in common."""

    makes_images = True
    in_blocks: ClassVar[bool] = False
    """Whether long windows are put together from blocks of elements."""

    def passes(self, ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
        """Declares the attributes, and gives the passes."""
        raise NotImplementedError

    def dtype_of(self, ksel: FunctionSelection, x: TensorArg) -> np.dtype[Any]:
        """The dtype of the result; declares `cval`."""
        dtype = float_filter(ksel, x)
        border = ksel.arg_float("cval")
        if dtype == np.float64:
            border.cast("float64")
        return dtype

    def begin(self, kb: FunctionBuilder, number: int) -> None:
        """Writes the dispatches that a pass needs before it."""

    def body(self, kb: FunctionBuilder, number: int, kind: str) -> Body:
        """What a pass does."""
        raise NotImplementedError

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        check_mode(ksel)
        dtype = self.dtype_of(ksel, x)
        passes = self.passes(ksel, x)
        declare_passes(ksel, x, passes)
        blocks = tuple(each.blocks(x) if self.in_blocks else 0 for each in passes)
        for number, each in enumerate(passes):
            if blocks[number]:
                wide = x.shape[each.axis] + each.length - BLOCK
                ksel.value(f"kp_wide{number}", wide, "int32")
                ksel.value(f"kp_begins{number}", x.size // x.shape[each.axis] * wide, "uint32")
        ksel.specialize(blocks=blocks)
        ksel.return_new_tensor(x.shape, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes a dispatch for each pass, and what it needs."""
        passes = ksel.special["passes"]
        result = kb.result(0)
        kind = inner_kind(ksel, result.dtype)
        held = {"float": "float32", "double": "float64", "int": "int32", "uint": "uint32"}
        source, take = "x", kb.arg_value("x").type
        for number, blocks in enumerate(ksel.special["blocks"]):
            target = "result" if number == passes - 1 else f"pass{number}"
            if target != "result":
                kb.scratch(target, result.size, held.get(kind, result.dtype))
            self.begin(kb, number)
            as_kind = f"({{}} ? {kind}(1) : {kind}(0))" if take == "bool" else f"{kind}({{}})"
            border = self.border(kind) + (f" != {kind}(0)" if take == "bool" else "")

            lines = Lines(str(number), ksel.attribute("mode"), f"{source}_load", as_kind, border)
            for level in range(blocks):
                kb.scratch(lines.block(level), named(f"kp_begins{number}"), held.get(kind, result.dtype))
                kb.begin_dispatch(lines.block(level))
                lines.write_blocks(kb, level, self.body(kb, number, kind))
            kb.begin_dispatch(f"axis{number}")
            body = self.body(kb, number, kind)
            truth = f" != {kind}(0)" if target == "result" and result.type == "bool" else ""
            finish = f"{target}_store(kp_e, {body.found}{truth});"
            lines.write(kb, blocks, body, finish)
            source, take = target, kind
        if not passes:
            one_each(kb, result.size, "kp_e")
            kb.emit(f"result_store(kp_e, {result.type}(x_load(kp_e)));")

    def border(self, kind: str) -> str:
        """The expression of an element beyond the ends, for the mode "constant"."""
        return f"{kind}(cval)"


def inner_kind(ksel: FunctionSelection, dtype: np.dtype[Any]) -> str:
    """The type in which elements are filtered."""
    kind = element_of(dtype, ksel.features).type
    return "uint" if kind == "bool" else kind


class _UniformFilter(PassesOp):
    __doc__ = f"""The mean of the elements of `x` near each, as ``scipy.ndimage.uniform_filter``: a filter of
    `kp.ops.uniform_filter1d` along each axis.

    {_WINDOW} {_AXES}

    {MODES}

    {_RAISES}; ArgumentTypeError for ints of more than 16 bits.

    >>> kp.ops.uniform_filter(np.float32([[0, 0, 0], [0, 9, 0], [0, 0, 0]]), 3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: several, None for all
    :error: the sum of size + 4 roundings for each axis of the mean of abs(x)
    """

    signature = (
        "uniform_filter(Tensor x, int[]? size=3, str mode='reflect', float cval=0.0, *, int[]? axes=None)"
        " -> Tensor"
    )
    in_blocks = True

    def passes(self, ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
        """An axis of size 1 has none."""
        return window_passes(ksel, x)

    def body(self, kb: FunctionBuilder, number: int, kind: str) -> Body:
        weight = f"({kind}(1) / {kind}(kp_count{number}))"
        return Body(f"{kind} sum = {kind}(0);", f"sum += {weight} * {{value}};", "sum", "sum += {value};")


class _UniformFilter1d(_UniformFilter):
    __doc__ = f"""The mean of `size` elements of `x` along `axis`, as ``scipy.ndimage.uniform_filter1d``:
    element i is that of ``x[i - size // 2]`` and those after it.

    {MODES}

    {_RAISES}; ArgumentTypeError for ints of
    more than 16 bits.

    >>> kp.ops.uniform_filter1d(np.float32([0, 3, 0, 3]), 3, mode="wrap").tolist()
    [2.0, 1.0, 2.0, 1.0]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: one
    :error: size + 3 roundings of the mean of abs(x)
    """

    signature = (
        "uniform_filter1d(Tensor x, int size, int axis=-1, str mode='reflect', float cval=0.0) -> Tensor"
    )

    def passes(self, ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
        """One."""
        size, axis = ksel.attr_int("size").v, ksel.attr_int("axis")
        check_count(ksel, "the filter", size)
        (along,) = axes_of(ksel.name, [axis.v], x.ndim)
        axis.v = 0
        return [Pass(along, size, size // 2)]


def window_passes(ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
    """The passes of the attribute `size`."""
    size = ksel.attr_list_int("size")
    (sizes,) = per_axis(ksel, x, ("size", size.v))
    for each in sizes:
        if each is not None:
            check_count(ksel, "the filter", each)
    size.v = None
    return [Pass(axis, n, n // 2) for axis, n in enumerate(sizes) if n is not None and n > 1]


class _GaussianFilter(PassesOp):
    __doc__ = f"""The mean of the elements of `x` near each, weighted by a normal curve, as
    ``scipy.ndimage.gaussian_filter``: a filter of `kp.ops.gaussian_filter1d` along each axis.

    `sigma` is the standard deviation along each axis, or one for all; an axis with 0 is not filtered.
    Elements count up to a distance of ``truncate * sigma``, rounded. `order` is that of the derivative along
    each axis, or one for all. {_AXES}

    {MODES}

    {_RAISES}, for a `sigma` or `truncate` that is negative or not finite, and for an `order` that is not from
    0 to 10; ArgumentTypeError for ints of more than 16 bits.

    >>> x = np.zeros((3, 3), np.float32)
    >>> x[1, 1] = 1
    >>> kp.ops.gaussian_filter(x, 0.5).round(3)[1].tolist()
    [0.08399999886751175, 0.6190000176429749, 0.08399999886751175]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: several, None for all
    :error: for each axis that of `kp.ops.gaussian_filter1d`
    """

    signature = (
        "gaussian_filter(Tensor x, float[] sigma, str mode='reflect', float cval=0.0, *, float truncate=4.0,"
        " int[]? axes=None, int[]? order=0) -> Tensor"
    )

    def passes(self, ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
        """An axis with a deviation of 0 has none."""
        sigma, truncate = ksel.attr_list_float("sigma"), ksel.attr_float("truncate")
        order = ksel.attr_list_int("order")
        deviations, every = per_axis(ksel, x, ("sigma", sigma.v), ("order", order.v))
        orders = []
        found: list[Pass] = []
        dtype = "float64" if x.dtype == np.float64 else "float32"
        for axis, each in enumerate(deviations):
            if each is None or each == 0:
                continue
            if not (0 < each < math.inf and 0 < truncate.v < math.inf):
                raise InvalidArgumentError(
                    f"{ksel.name}: sigma is {each}, and truncate {truncate.v}; give finite numbers, "
                    "none below 0"
                )
            radius = int(min(truncate.v * each + 0.5, 2**30))
            ksel.value(f"kp_sigma{len(found)}", float(each), dtype)
            found.append(Pass(axis, 2 * radius + 1, radius))
            orders.append(check_order(ksel, every[axis]))
        sigma.v, truncate.v, order.v = [], 0.0, []
        ksel.specialize(orders=orders)
        return found

    def begin(self, kb: FunctionBuilder, number: int) -> None:
        kind = inner_kind(kb.selection, kb.result(0).dtype)
        order = kb.selection.special["orders"][number]
        gaussian_weights(kb, str(number), kind, f"kp_sigma{number}", order)

    def body(self, kb: FunctionBuilder, number: int, kind: str) -> Body:
        return Body(f"{kind} sum = {kind}(0);", f"sum += weights{number}_load(uint(j)) * {{value}};", "sum")


class EdgesOp(PassesOp):
    """Differences along an axis, smoothed along the others."""

    smooth: ClassVar[str]

    def passes(self, ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
        axis = ksel.attr_int("axis")
        (first,) = axes_of(ksel.name, [axis.v], x.ndim)
        chosen = ksel.attr_list_int("axes")
        others = [each for each in axes_of(ksel.name, chosen.v, x.ndim) if each != first]
        axis.v, chosen.v = 0, None
        return [Pass(each, 3, 1) for each in (first, *others)]

    def body(self, kb: FunctionBuilder, number: int, kind: str) -> Body:
        weight = f"{kind}(j - 1)" if not number else f"{kind}({self.smooth})"
        return Body(f"{kind} sum = {kind}(0);", f"sum += {weight} * {{value}};", "sum")


class _Sobel(EdgesOp):
    __doc__ = f"""How `x` changes along `axis`, as ``scipy.ndimage.sobel``: the weights -1, 0, 1 along it, and
    1, 2, 1 along the others.

    {_AXES}

    {MODES}

    {_RAISES}; ArgumentTypeError for ints of more than 16 bits.

    >>> kp.ops.sobel(np.float32([[0, 0, 5], [0, 0, 5], [0, 0, 5]]))[1].tolist()
    [0.0, 20.0, 20.0]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: one; the others smoothed
    :error: 8 roundings of the sum of abs(x) times the weights
    """

    signature = (
        "sobel(Tensor x, int axis=-1, str mode='reflect', float cval=0.0, *, int[]? axes=None) -> Tensor"
    )
    smooth = "j == 1 ? 2 : 1"


class _Prewitt(EdgesOp):
    __doc__ = f"""How `x` changes along `axis`, as ``scipy.ndimage.prewitt``: the weights -1, 0, 1 along it,
    and 1, 1, 1 along the others.

    {_AXES}

    {MODES}

    {_RAISES}; ArgumentTypeError for ints of more than 16 bits.

    >>> kp.ops.prewitt(np.float32([[0, 0, 5], [0, 0, 5], [0, 0, 5]]))[1].tolist()
    [0.0, 15.0, 15.0]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: one; the others smoothed
    :error: 8 roundings of the sum of abs(x) times the weights
    """

    signature = (
        "prewitt(Tensor x, int axis=-1, str mode='reflect', float cval=0.0, *, int[]? axes=None) -> Tensor"
    )
    smooth = "1"


def declare_own_border(ksel: FunctionSelection, x: TensorArg) -> None:
    """Declares `cval` as a number of the dtype of `x`: ``kp_cval``."""
    cval = ksel.arg_float("cval").v
    if x.dtype.kind == "c":
        raise ArgumentTypeError(f"{ksel.name}: x is of {x.dtype}; complex numbers have no order")
    element_of(x.dtype, ksel.features)
    if x.dtype.kind in "biu":
        if ksel.attribute("mode") != "constant":
            cval = 0
        limits = (0, 1) if x.dtype == np.bool_ else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        if cval != cval // 1 or not limits[0] <= cval <= limits[1]:
            raise InvalidArgumentError(f"{ksel.name}: cval is {cval}, and x of {x.dtype}, which lacks it")
        wide = {"i": "int", "u": "uint", "b": "uint"}[x.dtype.kind] + (
            "64" if x.dtype.itemsize == 8 else "32"
        )
        ksel.value("kp_cval", int(cval), wide)
    else:
        ksel.value("kp_cval", float(cval), "float64" if x.dtype == np.float64 else "float32")


_KEPT = MODES.rpartition("The result")[0].rstrip() + " The result has the shape and dtype of `x`."


class ExtremeFilterOp(PassesOp):
    """The least or greatest elements of windows."""

    in_blocks = True
    least: ClassVar[bool]

    def dtype_of(self, ksel: FunctionSelection, x: TensorArg) -> np.dtype[Any]:
        declare_own_border(ksel, x)
        return x.dtype

    def passes(self, ksel: FunctionSelection, x: TensorArg) -> list[Pass]:
        """An axis of size 1 has none."""
        return window_passes(ksel, x)

    def border(self, kind: str) -> str:
        return f"{kind}(kp_cval)"

    def body(self, kb: FunctionBuilder, number: int, kind: str) -> Body:
        """A minimum or maximum, which is NaN if one is."""
        if kind in ("float", "double"):
            name = f"kp_{'min' if self.least else 'max'}_{kind}"
            kb.declare("\n\n".join(functions_in(name).values()))
            step = f"{name}(found, w)"
        else:
            sign = "<" if self.least else ">"
            step = f"(found {sign} w ? found : w)"
        each = f"{kind} w = {{value}}; found = any_ ? {step} : w; any_ = true;"
        return Body(f"{kind} found = {kind}(0); bool any_ = false;", each, "found", each)


class _MinimumFilter(ExtremeFilterOp):
    __doc__ = f"""The least of the elements of `x` in a window around each, as
    ``scipy.ndimage.minimum_filter``; NaN if one is.

    {_WINDOW} {_AXES}

    {_KEPT}

    {_RAISES}, and for a `cval` that the dtype lacks; ArgumentTypeError for complex numbers.

    >>> kp.ops.minimum_filter(np.array([[5, 3, 4], [9, 8, 7]]), 3).tolist()
    [[3, 3, 3], [3, 3, 3]]

    :dtypes: all but complex
    :axes: several, None for all
    :error: exact
    """

    signature = (
        "minimum_filter(Tensor x, int[]? size, str mode='reflect', float cval=0.0, *, int[]? axes=None)"
        " -> Tensor"
    )
    least = True


class _MaximumFilter(ExtremeFilterOp):
    __doc__ = f"""The greatest of the elements of `x` in a window around each, as
    ``scipy.ndimage.maximum_filter``; NaN if one is.

    {_WINDOW} {_AXES}

    {_KEPT}

    {_RAISES}, and for a `cval` that the dtype lacks; ArgumentTypeError for complex numbers.

    >>> kp.ops.maximum_filter(np.array([[5, 3, 4], [9, 8, 7]]), (1, 3)).tolist()
    [[5, 5, 4], [9, 9, 8]]

    :dtypes: all but complex
    :axes: several, None for all
    :error: exact
    """

    signature = (
        "maximum_filter(Tensor x, int[]? size, str mode='reflect', float cval=0.0, *, int[]? axes=None)"
        " -> Tensor"
    )
    least = False


class RankOp(CustomOp):
    """Filters that take the element of a rank from each window: by sorting a small one, bit by bit of the
    keys from a large one."""

    makes_images = True

    def rank(self, ksel: FunctionSelection, count: int) -> int:
        """The rank in a window of so many elements."""
        raise NotImplementedError

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        check_mode(ksel)
        declare_own_border(ksel, x)
        key = key_of(ksel, x.dtype)
        size = ksel.attr_list_int("size")
        (given,) = per_axis(ksel, x, ("size", size.v))
        sizes = [1 if n is None else n for n in given]
        count = math.prod(sizes)
        if min(sizes, default=1) < 1:
            raise InvalidArgumentError(f"{ksel.name}: size has {min(sizes)}; give 1 or more")
        most = _MOST_TURNS // ((key.bits + 1) * max(x.ndim, 1))
        if count > max(most, _MOST_SORTED):
            raise InvalidArgumentError(
                f"{ksel.name}: the window has {count} elements; the most for {x.dtype} and {x.ndim} axes "
                f"are {most}"
            )
        ksel.value("kp_rank", self.rank(ksel, count), "uint32")
        declare_passes(ksel, x, [Pass(axis, n, n // 2) for axis, n in enumerate(sizes)])
        way = "sorted" if count <= _MOST_SORTED else "kept" if count <= _MOST_KEPT else "by bits"
        ksel.specialize(way=way)
        size.v = None if way == "by bits" else sizes
        ksel.return_new_tensor(x.shape, x.dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        x = kb.arg_value("x")
        axes = x.ndim
        key = key_of(ksel, x.dtype)
        key.declare_bits(kb)
        key.declare_order(kb)
        declare_border(kb, ksel.attribute("mode"))
        one_each(kb, kb.result(0).size, "kp_e")
        border = f"{x.type}(kp_cval != 0u)" if x.type == "bool" else f"{x.type}(kp_cval)"
        lines = ["int base = int(kp_e);"]
        for axis in range(axes):
            lines.append(f"int i{axis} = int(kp_e) / kp_step{axis} % kp_n{axis};")
            lines.append(f"base -= i{axis} * kp_step{axis}; i{axis} -= kp_left{axis};")
        lines.append(f"{x.type} value;")

        def walk(body: str) -> str:
            """Statements that do this for each element of the window, `value`."""
            opened, at, inside = [], "base", []
            for axis in range(axes):
                opened.append(f"for (int j{axis} = 0; j{axis} < kp_count{axis}; ++j{axis}) {{")
                opened.append(f"int k{axis} = kp_border(i{axis} + j{axis}, kp_n{axis});")
                at += f" + k{axis} * kp_step{axis}"
                inside.append(f"k{axis} >= 0")
            load = f"if ({' && '.join(inside) or 'true'}) value = x_load(uint({at})); else value = {border};"
            return "\n".join([*opened, load, body, "}" * axes])

        order = f"kp_order({key.to_raw.format('value')})"
        count = math.prod(ksel.attribute("size") or ())
        way = ksel.special["way"]
        if way == "kept":
            lines.append(f"{key.type} keys[{count}]; int at_ = 0;")
            lines.append(walk(f"keys[at_] = {order}; ++at_;"))
        if way == "sorted":
            lines += [f"{key.type} q{number};" for number in range(count)]
            for number, place in enumerate(np.ndindex(*ksel.attribute("size"))):
                at, inside = "base", ["true"]
                lines.append("{")
                for axis, j in enumerate(place):
                    lines.append(f"int k{axis} = kp_border(i{axis} + {j}, kp_n{axis});")
                    at += f" + k{axis} * kp_step{axis}"
                    inside.append(f"k{axis} >= 0")
                lines.append(f"if ({' && '.join(inside)}) value = x_load(uint({at})); else value = {border};")
                lines.append(f"q{number} = {order}; }}")
            for one, other in _network(count):
                lines.append(
                    f"{{ {key.type} a = q{one}, b = q{other}; q{one} = min(a, b); q{other} = max(a, b); }}"
                )
            lines.append(f"{key.type} found = q0;")
            lines += [f"if (kp_rank == {number}u) found = q{number};" for number in range(1, count)]
        else:
            lines.append(f"{key.type} found = {key.type}(0); uint rank = kp_rank;")
            test = f"if ((({{}} ^ found) >> bit) == {key.type}(0)) ++below;"
            lines.append(f"for (int bit = {key.bits - 1}; bit >= 0; --bit) {{ uint below = 0u;")
            if way == "kept":
                lines.append(f"for (int k = 0; k < {count}; ++k) {test.format('keys[k]')}")
            else:
                lines.append(walk(test.format(order)))
            lines.append(f"if (rank >= below) {{ rank -= below; found |= {key.type}(1) << bit; }} }}")
        lines.append(f"{x.type} answer = {border};")
        lines.append(walk(f"if ({order} == found) answer = value;"))
        lines.append("result_store(kp_e, answer);")
        kb.emit("\n".join(lines))


def _network(count: int) -> list[tuple[int, int]]:
    """Pairs to put in order, so that all are: K. Batcher's odd-even mergesort for any number."""
    pairs = []
    p = 1
    while p < count:
        k = p
        while k >= 1:
            for j in range(k % p, count - k, 2 * k):
                for i in range(min(k, count - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        pairs.append((i + j, i + j + k))
            k //= 2
        p *= 2
    return pairs


class _MedianFilter(RankOp):
    __doc__ = f"""The median of the elements of `x` in a window around each, as
    ``scipy.ndimage.median_filter``; of an even number of elements the higher of the two. NaN count as above
    all.

    {_WINDOW} {_AXES}

    {_KEPT}

    {_RAISES} (for float32 and two axes 909, 30 x 30), and for a `cval` that the dtype lacks;
    ArgumentTypeError for complex numbers.

    >>> kp.ops.median_filter(np.float32([1, 2, 100, 3, 4]), 3).tolist()
    [1.0, 2.0, 3.0, 4.0, 4.0]

    :dtypes: all but complex
    :axes: several, None for all
    :error: exact
    """

    signature = (
        "median_filter(Tensor x, int[]? size, str mode='reflect', float cval=0.0, *, int[]? axes=None)"
        " -> Tensor"
    )

    def rank(self, ksel: FunctionSelection, count: int) -> int:
        """The middle."""
        return count // 2


class _RankFilter(RankOp):
    __doc__ = f"""The element with the rank `rank` of those of `x` in a window around each, as
    ``scipy.ndimage.rank_filter``: 0 is the least, -1 the greatest. NaN count as above all.

    {_WINDOW} {_AXES}

    {_KEPT}

    {_RAISES}, for a rank that the window does not have, and for a `cval` that the dtype lacks;
    ArgumentTypeError for complex numbers.

    >>> kp.ops.rank_filter(np.array([3, 1, 2, 9]), 1, 3).tolist()
    [3, 2, 2, 9]

    :dtypes: all but complex
    :axes: several, None for all
    :error: exact
    """

    signature = (
        "rank_filter(Tensor x, int rank, int[]? size, str mode='reflect', float cval=0.0, *,"
        " int[]? axes=None) -> Tensor"
    )

    def rank(self, ksel: FunctionSelection, count: int) -> int:
        """That of the caller."""
        rank = ksel.attr_int("rank")
        given, rank.v = rank.v, 0
        if not -count <= given < count:
            raise InvalidArgumentError(
                f"{ksel.name}: rank is {given}, and the window has {count} elements; give {-count} to "
                f"{count - 1}"
            )
        return given % count


uniform_filter1d: Function = CustomOp.register(_UniformFilter1d)
uniform_filter: Function = CustomOp.register(_UniformFilter)
gaussian_filter: Function = CustomOp.register(_GaussianFilter)
sobel: Function = CustomOp.register(_Sobel)
prewitt: Function = CustomOp.register(_Prewitt)
minimum_filter: Function = CustomOp.register(_MinimumFilter)
maximum_filter: Function = CustomOp.register(_MaximumFilter)
median_filter: Function = CustomOp.register(_MedianFilter)
rank_filter: Function = CustomOp.register(_RankFilter)
