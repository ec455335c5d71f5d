"""Filters along one axis, and convolutions.

An invocation computes an element of a result. With many weights it computes eight in line: it keeps the
elements that they share in registers, so that it loads one element and one weight for eight products. Near
the ends, each element is summed by itself, so that only terms are multiplied: infinities and NaN
stay where they belong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.walks import axes_of, check_sizes, named, one_each, spread
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from .borders import (
    BORDERS,
    LENGTHS,
    MODES,
    MOST,
    check_count,
    check_mode,
    check_order,
    declare_border,
    declare_products,
    float_filter,
    gaussian_weights,
    loads_of,
    write_products,
)

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_MOST_SHORT = 2**18
"""Elements of the shorter argument of a convolution; eight take a turn."""
_MANY = 32
"""Weights that are worth eight elements in line."""
_LINE = 8


def _in_line(kind: str, weight: str, element: str, down: bool, product: str = "w * {}") -> str:
    """Statements that add the products of weights from ``j`` on to ``s0`` to ``s7``, eight at a time, while
    ``j`` is below ``last``.

    `weight` is the expression of weight "{}", and `element` that of the element that weight "{}" meets in the
    first sum. With `down` a next weight meets the element before, else the one after. `product` is that of
    the weight ``w`` and an element.
    """
    step = -1 if down else 1
    lines = []
    for n in range(1, _LINE) if down else range(_LINE - 1):
        lines.append(f"{kind} c{n} = {element.format('j', n)};")
    lines.append(f"{kind} c{0 if down else _LINE - 1};")
    lines.append(f"for (; j < last; j += {_LINE}u) {{")
    for turn in range(_LINE):
        new = 0 if down else _LINE - 1
        lines.append(f"c{(new + step * turn) % _LINE} = {element.format(f'j + {turn}u', new)};")
        lines.append(f"{{ {kind} w = {weight.format(f'j + {turn}u')};")
        lines += [f"s{n} += {product.format(f'c{(n + step * turn) % _LINE}')};" for n in range(_LINE)]
        lines.append("}")
    lines.append("}")
    return "\n".join(lines)


class FilterOp(CustomOp):
    """Filters along one axis have this in common: element i of the result is the sum of
    ``kp_weight(j) * x[i + j - kp_left]`` over `kp_count` weights."""

    makes_images = True

    def lines(self, ksel: FunctionSelection, count: int, left: int) -> None:
        """Declares `x`, the axis, the mode, and the numbers of the kernel."""
        x = ksel.arg_tensor("x")
        check_mode(ksel)
        if not x.ndim:
            raise InvalidArgumentError(f"{ksel.name}: x has no axes; give x.reshape(1)")
        dtype = float_filter(ksel, x)
        (axis,) = axes_of(ksel.name, [ksel.attr_int("axis").v], x.ndim)
        border = ksel.arg_float("cval")
        if dtype == np.float64:
            border.cast("float64")
        if x.size >= 2**31:
            raise InvalidArgumentError(f"{ksel.name}: x has {x.size} elements; give fewer than 2**31")
        for name, number in (
            ("n", x.shape[axis]),
            ("step", math.prod(x.shape[axis + 1 :])),
            ("count", count),
            ("left", left),
        ):
            ksel.value(f"kp_{name}", number, "int32")
        ksel.return_new_tensor(x.shape, dtype)
        blocks = -(-x.shape[axis] // _LINE)
        invocations = (x.size // x.shape[axis]) * blocks if x.size else 0
        ksel.value("kp_blocks", blocks, "int32")
        ksel.value("kp_invocations", invocations, "uint32")
        ksel.specialize(many=count >= _MANY)
        check_sizes(ksel)

    def write(self, kb: FunctionBuilder, weight: str) -> None:
        """Writes the dispatch; `weight` is the expression of weight "{}", a uint."""
        kb.begin_dispatch("filter")
        kind = element_of(kb.result(0).dtype, kb.selection.features).type
        declare_border(kb, kb.selection.attribute("mode"))
        if kb.selection.special["many"]:
            self._write_lines(kb, weight, kind)
            return
        weight = weight.format("uint(j)")
        one_each(kb, kb.result(0).size, "kp_e")
        kb.emit(f"""
            int i = int(kp_e) / kp_step % kp_n, first = int(kp_e) - i * kp_step;
            int count = kp_count, step = kp_step;
            {kind} sum = {kind}(0);
            if (i >= kp_left && i - kp_left + count <= kp_n) {{
                int at = first + (i - kp_left) * step;
                for (int j = 0; j < count; ++j, at += step) sum += {weight} * {kind}(x_load(uint(at)));
            }} else {{
                for (int j = 0; j < count; ++j) {{
                    int k = kp_border(i + j - kp_left, kp_n);
                    sum += {weight} * (k < 0 ? {kind}(cval) : {kind}(x_load(uint(first + k * step))));
                }}
            }}
            result_store(kp_e, sum);
        """)

    def _write_lines(self, kb: FunctionBuilder, weight: str, kind: str) -> None:
        """An invocation computes eight elements along the axis."""
        one_each(kb, named("kp_invocations"), "kp_e")
        element = f"{kind}(x_load(uint(at + (int({{}}) + {{}}) * step)))"
        sums = ", ".join(f"s{n} = {kind}(0)" for n in range(_LINE))
        kb.emit(f"""
            int step = kp_step, inner = int(kp_e) % step, block = int(kp_e) / step % kp_blocks;
            int first = int(kp_e) / step / kp_blocks * kp_n * step + inner, begin = block * {_LINE};
            int at = first + (begin - kp_left) * step;
            {kind} {sums};
            uint j = 0u, last = 0u, count = uint(kp_count);
            if (begin >= kp_left && begin - kp_left + {_LINE} - 1 + max(kp_count, kp_left + 1) <= kp_n)
                last = count - count % {_LINE}u;
            if (last > 0u) {{ {_in_line(kind, weight, element, False)} }}
        """)
        # One loop for all: the turns of an invocation's loops count together.
        lines = ["for (uint j = last; j < count; ++j) {", f"{kind} w = {weight.format('j')};"]
        for n in range(_LINE):
            lines.append(f"""
                if (begin + {n} < kp_n) {{
                    int k = kp_border(begin + {n} + int(j) - kp_left, kp_n);
                    s{n} += w * (k < 0 ? {kind}(cval) : {kind}(x_load(uint(first + k * step))));
                }}
            """)
        lines.append("}")
        for n in range(_LINE):
            lines.append(f"if (begin + {n} < kp_n) result_store(uint(first + (begin + {n}) * step), s{n});")
        kb.emit("\n".join(lines))


_RAISES = """Raises InvalidArgumentError for an axis that `x` does not have, an unknown mode, and a filter
    of more than 2**15 elements; ArgumentTypeError for ints of more than 16 bits."""


class _Weighted(FilterOp):
    """Filters with given weights."""

    turned: ClassVar[bool] = False

    def select(self, ksel: FunctionSelection) -> None:
        weights = ksel.arg_tensor("weights")
        if weights.ndim != 1:
            raise InvalidArgumentError(f"{ksel.name}: weights has the shape {weights.shape}; give one axis")
        if weights.dtype.kind not in "biuf" and element_of(weights.dtype, ksel.features).type != "float":
            raise ArgumentTypeError(f"{ksel.name}: weights is of {weights.dtype}; give floats")
        check_count(ksel, "weights", weights.size)
        self.lines(ksel, weights.size, (weights.size - 1 if self.turned else weights.size) // 2)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kind = element_of(kb.result(0).dtype, ksel.features).type
        place = "uint(kp_count) - 1u - ({})" if self.turned else "{}"
        self.write(kb, f"{kind}(weights_load({place}))")


class _Correlate1d(_Weighted):
    __doc__ = f"""The sums of the elements of `x` along `axis` times `weights`, as
    ``scipy.ndimage.correlate1d``: element i is the sum of ``weights[j] * x[i + j - len(weights) // 2]``.

    {MODES}

    {_RAISES}

    >>> kp.ops.correlate1d(np.float32([1, 2, 3]), np.float32([-1, 0, 1]), mode="nearest").tolist()
    [1.0, 2.0, 1.0]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: one
    :error: n + 1 roundings of the sum of abs(x * weights), n being the weights
    """

    signature = (
        "correlate1d(Tensor x, Tensor weights, int axis=-1, str mode='reflect', float cval=0.0) -> Tensor"
    )


class _Convolve1d(_Weighted):
    __doc__ = f"""The convolution of `x` along `axis` with `weights`, as ``scipy.ndimage.convolve1d``: as
    `kp.ops.correlate1d` with the weights in the opposite order.

    {MODES}

    {_RAISES}

    >>> kp.ops.convolve1d(np.float32([1, 2, 3]), np.float32([-1, 0, 1]), mode="nearest").tolist()
    [-1.0, -2.0, -1.0]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: one
    :error: n + 1 roundings of the sum of abs(x * weights), n being the weights
    """

    signature = (
        "convolve1d(Tensor x, Tensor weights, int axis=-1, str mode='reflect', float cval=0.0) -> Tensor"
    )
    turned = True


class _GaussianFilter1d(FilterOp):
    __doc__ = f"""The mean of the elements of `x` near each along `axis`, weighted by a normal curve with the
    standard deviation `sigma`, as ``scipy.ndimage.gaussian_filter1d``. Elements count up to a distance of
    ``truncate * sigma``, rounded. With `order`, it is the derivative of that order of the smoothed `x`.

    `kp.ops.gaussian_filter` filters several axes. {MODES}

    {_RAISES} InvalidArgumentError, too, for a `sigma` or `truncate` that is not positive and finite, and for
    an `order` that is not from 0 to 10.

    >>> kp.ops.gaussian_filter1d(np.float32([0, 0, 1, 0, 0]), 1.0).round(2).tolist()
    [0.05999999865889549, 0.23999999463558197, 0.4000000059604645, 0.23999999463558197, 0.05999999865889549]

    :dtypes: floats, bool, ints of 8 and 16 bits
    :axes: one
    :error: 1e-5 (float64: 1e-13) and 2 n roundings of the weighted mean of abs(x), n being the weights
    """

    signature = (
        "gaussian_filter1d(Tensor x, float sigma, int axis=-1, str mode='reflect', float cval=0.0,"
        " *, float truncate=4.0, int order=0) -> Tensor"
    )

    def select(self, ksel: FunctionSelection) -> None:
        check_order(ksel, ksel.attr_int("order").v)
        deviation, truncate = ksel.arg_float("sigma"), ksel.attr_float("truncate").v
        sigma = deviation.v
        if not (0 < sigma < math.inf and 0 < truncate < math.inf):
            raise InvalidArgumentError(
                f"{ksel.name}: sigma is {sigma}, and truncate {truncate}; give positive, finite numbers"
            )
        radius = int(min(truncate * sigma + 0.5, MOST))
        check_count(ksel, "the filter", 2 * radius + 1)
        self.lines(ksel, 2 * radius + 1, radius)
        if ksel.results[0].dtype == np.float64:
            deviation.cast("float64")

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Computes the weights, then writes the filter."""
        gaussian_weights(
            kb, "", element_of(kb.result(0).dtype, ksel.features).type, "sigma", ksel.attribute("order")
        )
        self.write(kb, "weights_load({})")


class ConvolveOp(CustomOp):
    """Convolutions have this in common."""

    makes_images = True
    turned: ClassVar[bool]
    """Whether the second one is taken from its end."""

    def select(self, ksel: FunctionSelection) -> None:
        a, v = ksel.arg_tensor("a"), ksel.arg_tensor("v")
        mode, border = ksel.attr_str("mode").v, ksel.arg_float("cval")
        if a.ndim != v.ndim or not a.ndim or not v.size or (not a.size and mode not in BORDERS):
            raise InvalidArgumentError(
                f"{ksel.name}: a has the shape {a.shape}, and v {v.shape}; give both as many axes, and "
                "elements"
            )
        if mode not in (*LENGTHS, *BORDERS):
            raise InvalidArgumentError(
                f"{ksel.name}: mode is {mode!r}; give full, same or valid, or a border: " + ", ".join(BORDERS)
            )
        for each in (a, v):
            if each.dtype.kind == "b":
                raise ArgumentTypeError(f"{ksel.name}: {each.name} is of {each.dtype}; give numbers")
        try:
            dtype = np.result_type(a.dtype, v.dtype)
        except TypeError:
            raise ArgumentTypeError(
                f"{ksel.name}: {a.dtype} and {v.dtype} have no common dtype; convert one"
            ) from None
        element_of(dtype, ksel.features)
        ksel.require(dtype, f"{a.dtype} and {v.dtype} give", "convert both to {}")
        if a.ndim > 1 or mode in BORDERS:
            declare_products(ksel, a, v, mode, dtype, border, self.turned)
            ksel.specialize(windows=True)
            return
        short, long = sorted((a.size, v.size))
        check_count(ksel, "the shorter one", short, _MOST_SHORT)
        lengths = {
            "full": (0, short + long - 1),
            "same": (short // 2 if self.turned and v.size > a.size else (short - 1) // 2, long),
            "valid": (short - 1, long - short + 1),
        }
        start, length = lengths[mode]
        if length >= 2**31:
            raise InvalidArgumentError(f"{ksel.name}: the result has {length} elements; give less")
        ksel.value("kp_start", start, "uint32")
        ksel.specialize(windows=False, swapped=a.size < v.size, many=short >= _MANY)
        ksel.return_new_tensor(length, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        if ksel.special["windows"]:
            write_products(ksel, kb, self.turned)
            return
        kind = kb.result(0).type
        loads = dict(zip("av", loads_of(ksel, kb, self.turned), strict=True))
        if self.turned:
            loads["v"] = loads["v"].format("v_size - 1u - ({})")
        short, long = ("a", "v") if ksel.special["swapped"] else ("v", "a")
        one, other = loads[short], loads[long]
        if ksel.special["many"]:
            self._in_lines(kb, kind, (short, long), (one, other))
            return
        one_each(kb, kb.result(0).size, "i")
        kb.emit(f"""
            uint f = i + kp_start, j = f < {long}_size ? 0u : f - {long}_size + 1u;
            uint end = min({short}_size - 1u, f);
            {kind} sum = {kind}(0);
            for (; j <= end; ++j) sum += kp_times({one.format("j")}, {other.format("f - j")});
            result_store(i, sum);
        """)

    def _in_lines(
        self, kb: FunctionBuilder, kind: str, names: tuple[str, str], loads: tuple[str, str]
    ) -> None:
        """An invocation computes eight elements in line. A workgroup takes those weights together that meet
        elements in all sums of it; the others are taken for each sum."""
        (short, long), (one, other) = names, loads
        size = 64 * _LINE
        kb.workgroup(64)
        spread(kb, kb.ceil_div(kb.result(0).size, size))
        element = other.format(f"min(f - ({{}}) + {{}}u, {long}_size - 1u)")
        sums = ", ".join(f"s{n} = {kind}(0)" for n in range(_LINE))
        kb.emit(f"""
            uint i = kp_group * {size}u + gl_LocalInvocationID.x * {_LINE}u;
            uint f = i + kp_start, begin = kp_group * {size}u + kp_start;
            uint end = min(begin + {size}u, result_size + kp_start);
            uint j = end <= {long}_size ? 0u : end - {long}_size, last = min({short}_size, begin + 1u);
            last = last > j ? j + (last - j) / {_LINE}u * {_LINE}u : j;
            uint from = j;
            {kind} {sums};
            if (i >= result_size) return;
            if (j < last) {{ {_in_line(kind, one, element, True, "kp_times(w, {})")} }}
        """)
        for n in range(_LINE):
            term = f"kp_times({one.format('k')}, {other.format('g - k')})"
            kb.emit(f"""
                if (i + {n}u < result_size) {{
                    uint g = f + {n}u, k = g < {long}_size ? 0u : g - {long}_size + 1u;
                    uint stop = min({short}_size, g + 1u);
                    for (; k < min(from, stop); ++k) s{n} += {term};
                    for (k = max(k, last); k < stop; ++k) s{n} += {term};
                    result_store(i + {n}u, s{n});
                }}
            """)


class _Convolve(ConvolveOp):
    """The convolution of two arrays with as many axes: of vectors as ``np.convolve``, of others as
    ``scipy.signal.convolve``.

    `mode` is "full" (the sum of the lengths less 1), "same" (the lengths of `a`; of vectors that of the
    longer one) or "valid" (where both overlap as a whole). Or it is a border of `kp.ops.correlate1d`,
    "reflect", "mirror", "nearest", "wrap" or "constant" (`cval`): then the result has the shape of `a`, which
    goes on so beyond its ends, as in ``scipy.ndimage.convolve``. The result has NumPy's dtype; float16 is
    computed in float32. All products are computed: for thousands of weights `kp.ops.fftconvolve` is faster,
    and its error is that of the largest results.

    Raises InvalidArgumentError for arrays without elements or with different numbers of axes, an unknown
    mode, vectors that both have more than 2**18 elements, and a `v` of several axes with more than 60,000
    elements by the number of axes; ArgumentTypeError for bools, UnimplementedError for a result of float64
    or complex128 on a device without float64.

    >>> kp.ops.convolve(np.array([1, 2, 3]), np.array([0, 1])).tolist()
    [0, 1, 2, 3]
    >>> kp.ops.convolve(np.eye(3, dtype=int), np.ones((2, 2), int), "same").tolist()
    [[1, 1, 0], [1, 2, 1], [0, 1, 2]]

    :dtypes: all but bool
    :axes: all
    :error: n + 1 roundings of the sum of abs(a * v), n being the shorter length (complex: 4 n); ints exact
    """

    signature = "convolve(Tensor a, Tensor v, str mode='full', float cval=0.0) -> Tensor"
    turned = False


class _Correlate(ConvolveOp):
    """The cross-correlation of two arrays with as many axes: of vectors as ``np.correlate``, of others as
    ``scipy.signal.correlate``, or with a border as ``scipy.ndimage.correlate``.

    `mode` is "full", "same" or "valid", or a border, as for `kp.ops.convolve`. The result has NumPy's dtype;
    float16 is computed in float32. Complex `v` are conjugated, as in both.

    Raises what `kp.ops.convolve` raises.

    >>> kp.ops.correlate(np.array([1, 2, 3]), np.array([0, 1])).tolist()
    [2, 3]
    >>> kp.ops.correlate(np.eye(3, dtype=int), np.array([[1, 2], [3, 4]]), "nearest").tolist()
    [[10, 4, 0], [3, 5, 3], [0, 2, 5]]

    :dtypes: all but bool
    :axes: all
    :error: n + 1 roundings of the sum of abs(a * v), n being the shorter length (complex: 4 n); ints exact
    """

    signature = "correlate(Tensor a, Tensor v, str mode='valid', float cval=0.0) -> Tensor"
    turned = True


correlate1d: Function = CustomOp.register(_Correlate1d)
convolve1d: Function = CustomOp.register(_Convolve1d)
gaussian_filter1d: Function = CustomOp.register(_GaussianFilter1d)
convolve: Function = CustomOp.register(_Convolve)
correlate: Function = CustomOp.register(_Correlate)
