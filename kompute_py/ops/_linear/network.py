"""Operations of neural networks: softmax and its kin, norms, activations.

Softmax and the norms walk through each line three times, in one dispatch. In the variant "run" an invocation
has a line, which suits processors; in "group" a workgroup has one, as have long lines on every device. Few
long lines are divided among workgroups, and each walk is a dispatch.
`relu` and `leaky_relu` are formulas, so they can be fused with others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.elementwise import Elementwise, elementwise
from ..._builders.walks import axes_of, check_sizes, group_of, named, one_each, spread
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_LONG = 2**14
"""Elements of a line that one invocation takes: llvmpipe ends loops after 65,535 turns."""
_MOST = 2**26
"""Elements of a line: for the same reason."""
_FEWEST = {"cpu": 2**16, "": 2**13}
"""Elements of a part of a line, by the type of the device, and of others."""
_GROUPS = {"cpu": 16, "": 1024}
"""Workgroups that a device is busy with."""
_exp = elementwise("exp(x)")
_log = elementwise("log(x)")


class LineOp(CustomOp):
    """Operations that take lines of a tensor have this in common."""

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """An invocation for each line on processors, workgroups elsewhere."""
        return ["run"] if ksel.device is not None and ksel.device["type"] == "cpu" else ["group", "run"]

    def lines(self, ksel: FunctionSelection, axis: Sequence[int] | None) -> tuple[TensorArg, tuple[int, ...]]:
        """Declares `x` and the numbers of its lines along the axes; gives it, and the axes from 0 on."""
        x = ksel.arg_tensor("x")
        kind = element_of(x.dtype, ksel.features).type
        if kind not in ("float", "double"):
            raise ArgumentTypeError(f"{ksel.name}: x is of {x.dtype}; give floats: x.astype(np.float32)")
        axes = axes_of(ksel.name, axis, x.ndim)
        if axes and axes != tuple(range(axes[0], axes[-1] + 1)):
            raise InvalidArgumentError(
                f"{ksel.name}: axis is {list(axis or ())}; give axes that follow each other, or transpose x"
            )
        n = math.prod(x.shape[each] for each in axes)
        step = math.prod(x.shape[axes[-1] + 1 :]) if axes else 1
        lines = math.prod(length for each, length in enumerate(x.shape) if each not in axes)
        if n > _MOST:
            raise InvalidArgumentError(
                f"{ksel.name}: a line of x has {n} elements; lines have up to 2**26. Compute it in parts"
            )
        for name, number in (("n", n), ("step", step), ("lines", lines)):
            ksel.value(f"kp_{name}", number, "uint32")
        long = n > _LONG or (lines < 64 and n > 1024)
        kind = "cpu" if ksel.device is not None and ksel.device["type"] == "cpu" else ""
        most = group_of(ksel)
        parts = max(1, min(-(-n // _FEWEST[kind]), _GROUPS[kind] // max(lines, 1), most))
        ksel.value("kp_parts", parts, "uint32")
        ksel.value("kp_each", -(-n // parts), "uint32")
        group = next(size for size in (64, 128, most) if size == most or n <= 8 * size)
        ksel.specialize(long=long, several=parts > 1, group=group)
        check_sizes(ksel)
        return x, axes

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kind = kb.arg_value("x").type
        self.body(_Walk(kb, kind, ksel.variant == "group" or ksel.special["long"]), ksel, kb)

    def body(self, walk: _Walk, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the statements for a line."""
        raise NotImplementedError


class _Walk:
    """Writes walks through the line ``kp_line``: its element k is ``kp_get(k, kp_first)``."""

    def __init__(self, kb: FunctionBuilder, kind: str, group: bool) -> None:
        self.kb, self.kind, self.group = kb, kind, group
        special = kb.selection.special
        self.several = group and special["several"]
        """Whether a workgroup has a part of a line."""
        self.step = special["group"] if group else 1
        self.turn = (16 if self.step > 128 else 4) if group else 8
        self.start, self.end = ("kp_begin + kp_l", "kp_end") if self.several else ("kp_l", "kp_n")
        self.declared: list[str] = []
        self.kept: list[str] = []
        """What the dispatches of later walks need, too."""
        self._begin()

    def _begin(self) -> None:
        """The beginning of a dispatch."""
        kb, kind = self.kb, self.kind
        kb.declare(f"{kind} kp_get(uint k, uint kp_first) {{ return x_load(kp_first + k * kp_step); }}")
        if self.group:
            kb.workgroup(self.step)
            spread(kb, named("kp_lines") * named("kp_parts") if self.several else named("kp_lines"))
            kb.declare(f"shared {kind} kp_all[{self.step}];")
            line = "kp_group / kp_parts" if self.several else "kp_group"
            kb.emit(f"uint kp_line = {line}, kp_l = gl_LocalInvocationID.x;")
        else:
            kb.workgroup(64)
            spread(kb, kb.ceil_div(named("kp_lines"), 64))
            kb.emit("uint kp_line = kp_group * 64u + gl_LocalInvocationID.x, kp_l = 0u;")
        kb.emit("if (kp_line >= kp_lines) return;")  # the whole workgroup
        kb.emit("uint kp_first = kp_line / kp_step * kp_step * kp_n + kp_line % kp_step, kp_k;")
        if self.several:
            kb.emit("uint kp_begin = min(kp_n, kp_group % kp_parts * kp_each);")
            kb.emit("uint kp_end = min(kp_n, kp_begin + kp_each);")
        for each in self.declared:
            kb.declare(each)
        for each in self.kept:
            kb.emit(each)

    def declare(self, text: str) -> None:
        """Adds functions to this dispatch and those of later walks."""
        self.declared.append(text)
        self.kb.declare(text)

    def emit(self, text: str) -> None:
        """Adds statements to this dispatch and those of later walks."""
        self.kept.append(text)
        self.kb.emit(text)

    def combine(self, name: str, neutral: str, element: str, pair: str) -> None:
        """Sets `name` to the combination of the expressions `element` of ``v``, an element; `pair` is that
        of the expressions {0} and {1}."""
        kb, kind, turn, step = self.kb, self.kind, self.turn, self.step
        self.declare(f"{kind} kp_{name}_2({kind} a, {kind} b) {{ return {pair.format('a', 'b')}; }}")
        values = [f"kp_v{number}" for number in range(turn)]
        loads = " ".join(
            f"v = kp_get(kp_k + {number * step}u, kp_first); {kind} {value} = {element};"
            for number, value in enumerate(values)
        )
        while len(values) > 1:
            values = [f"kp_{name}_2({a}, {b})" for a, b in zip(values[::2], values[1::2], strict=True)]
        kb.emit(f"""
            {kind} {name} = {neutral};
            for (kp_k = {self.start}; kp_k + {(turn - 1) * step}u < {self.end}; kp_k += {turn * step}u) {{
                {kind} v; {loads} {name} = kp_{name}_2({name}, {values[0]});
            }}
            for (; kp_k < {self.end}; kp_k += {step}u) {{
                {kind} v = kp_get(kp_k, kp_first); {name} = kp_{name}_2({name}, {element});
            }}
        """)
        if not self.group:
            return
        of_all = f"""
            barrier(); kp_all[kp_l] = {name}; barrier();
            for (uint half_ = {step // 2}u; half_ > 0u; half_ /= 2u) {{
                if (kp_l < half_) kp_all[kp_l] = kp_{name}_2(kp_all[kp_l], kp_all[kp_l + half_]);
                barrier();
            }}
            {name} = kp_all[0];
        """
        kb.emit(of_all)
        if not self.several:
            return
        dtype = "float64" if kind == "double" else "float32"
        kb.scratch(f"parts_{name}", named("kp_lines") * named("kp_parts"), dtype)
        kb.emit(f"if (kp_l == 0u) parts_{name}_store(kp_group, {name});")
        part = f"parts_{name}_load(kp_line * kp_parts + min(kp_l, kp_parts - 1u))"
        self.kept += [f"{kind} {name} = {neutral}; if (kp_l < kp_parts) {name} = {part};", of_all]
        kb.begin_dispatch(f"after {name}")
        self._begin()

    def store(self, element: str) -> None:
        """Stores the expression `element` of ``v`` and ``kp_i``, its place in the line, for each element."""
        turn, step = self.turn, self.step
        put = f"result_store(kp_first + kp_i * kp_step, {element});"
        each = f"v = kp_get(kp_i, kp_first); {put} kp_i += {step}u;"
        self.kb.emit(f"""
            {self.kind} v;
            uint kp_i = {self.start};
            while (kp_i + {(turn - 1) * step}u < {self.end}) {{ {each * turn} }}
            while (kp_i < {self.end}) {{ {each} }}
        """)


def _dtype(walk: _Walk) -> str:
    return "float64" if walk.kind == "double" else "float32"


def _highest(walk: _Walk) -> None:
    """Finds the highest element, ``most``; it is NaN if there is one."""
    kind = walk.kind
    walk.declare("\n\n".join(functions_in(f"kp_isnan_{kind} kp_isinf_{kind} kp_inf_{kind}").values()))
    walk.emit(f"{kind} kp_low = -kp_inf_{kind}();")
    walk.combine("most", "kp_low", "v", f"kp_isnan_{kind}({{0}}) || {{0}} >= {{1}} ? {{0}} : {{1}}")


def _sum_of_exp(walk: _Walk, kb: FunctionBuilder) -> None:
    """Finds the sum of exp(element - most)."""
    walk.combine("sum", f"{walk.kind}(0)", kb.call(_exp, x=("v - most", _dtype(walk))), "{0} + {1}")


class _Softmax(LineOp):
    """exp of each element of `x`, over their sum along `axis`, as ``scipy.special.softmax``.

    The result has the shape and the dtype of `x`; smaller floats are computed in float32. The highest element
    is subtracted first, so nothing overflows. A line with NaN or +infinity is NaN, as is one of -infinity
    only.

    Raises InvalidArgumentError for an axis that `x` does not have or that has more than 2**26 elements,
    ArgumentTypeError for ints.

    >>> kp.ops.softmax(mgr.tensor([[0, 0], [1, 1]])).tolist()
    [[0.5, 0.5], [0.5, 0.5]]

    :dtypes: floats
    :axes: one
    :error: 1e-5 (float64: 1e-14) of the element, and n / 8 roundings of it
    """

    signature = "softmax(Tensor x, int axis=-1) -> Tensor"
    in_place = True  # a line is read before it is written

    def select(self, ksel: FunctionSelection) -> None:
        x, _ = self.lines(ksel, [ksel.attr_int("axis").v])
        ksel.return_new_tensor(x.shape, x.dtype, may_reuse="x")

    def body(self, walk: _Walk, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        _highest(walk)
        _sum_of_exp(walk, kb)
        walk.store(f"{kb.call(_exp, x=('v - most', _dtype(walk)))} / sum")


class _LogSoftmax(_Softmax):
    """The logarithm of the softmax of `x` along `axis`, as ``scipy.special.log_softmax``.

    The result has the shape and the dtype of `x`; smaller floats are computed in float32. It is
    ``x - max - log(sum(exp(x - max)))``, so it is finite where the softmax is 0.

    Raises InvalidArgumentError for an axis that `x` does not have or that has more than 2**26 elements,
    ArgumentTypeError for ints.

    >>> kp.ops.log_softmax(mgr.tensor([1000, 0])).tolist()
    [0.0, -1000.0]

    :dtypes: floats
    :axes: one
    :error: 1e-5 (float64: 1e-14), 4 roundings of the element, and n / 8 roundings
    """

    signature = "log_softmax(Tensor x, int axis=-1) -> Tensor"

    def body(self, walk: _Walk, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        _highest(walk)
        _sum_of_exp(walk, kb)
        kb.emit(f"sum = {kb.call(_log, x=('sum', _dtype(walk)))};")
        walk.store("(v - most) - sum")


class _Logsumexp(LineOp):
    """The logarithm of the sum of exp of the elements along `axis`, as ``scipy.special.logsumexp``.

    `axis` is None for all axes, an int, or several that follow each other; with `keepdims` they stay with
    length 1. The result has the dtype of `x`; smaller floats are computed in float32. No elements give
    -infinity.

    Raises InvalidArgumentError for axes that `x` does not have, that do not follow each other, or that have
    more than 2**26 elements, ArgumentTypeError for ints.

    >>> kp.ops.logsumexp(mgr.tensor([[1000, -1000], [5, -90]]), axis=1).tolist()
    [1000.0, 5.0]

    :dtypes: floats
    :axes: any, several, None
    :error: 1e-5 (float64: 1e-14), 4 roundings of the result, and n / 8 roundings
    """

    signature = "logsumexp(Tensor x, int[]? axis=None, *, bool keepdims=False) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, axes = self.lines(ksel, ksel.attr_list_int("axis").v)
        keep = ksel.attr_bool("keepdims").v
        ksel.return_new_tensor(
            [1 if n in axes else length for n, length in enumerate(x.shape) if keep or n not in axes], x.dtype
        )

    def body(self, walk: _Walk, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        _highest(walk)
        walk.emit(f"if (kp_isinf_{walk.kind}(most)) most = {walk.kind}(0);")
        _sum_of_exp(walk, kb)
        value = f"sum == {walk.kind}(0) ? kp_low : most + {kb.call(_log, x=('sum', _dtype(walk)))}"
        one = "if (kp_l == 0u) " if walk.group else ""
        one = "if (kp_l == 0u && kp_begin == 0u) " if walk.several else one
        kb.emit(f"{one}result_store(kp_line, {value});")


class _Norm(LineOp):
    """Norms have this in common."""

    optional: ClassVar[tuple[str, ...]] = ("weight",)

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the lines, which are last, and looks at the weight and its like."""
        x, axes = self.lines(ksel, ksel.attr_list_int("axis").v)
        if axes and axes[-1] != x.ndim - 1:
            raise InvalidArgumentError(
                f"{ksel.name}: axis is {list(axes)} of {x.ndim} axes; give the last axes, or transpose x"
            )
        kind = element_of(x.dtype, ksel.features).type
        shape = tuple(x.shape[each] for each in axes)
        for name in self.optional:
            given = ksel.arg_optional_tensor(name)
            if given is None:
                continue
            if given.shape != shape:
                raise InvalidArgumentError(
                    f"{ksel.name}: {name} has the shape {given.shape}; give that of the axes, {shape}"
                )
            if element_of(given.dtype, ksel.features).type not in ("float", kind):
                raise ArgumentTypeError(f"{ksel.name}: {name} is of {given.dtype}; give {x.dtype}")
        eps = ksel.arg_float("eps")
        if kind == "double":
            eps.cast("float64")
        ksel.return_new_tensor(x.shape, x.dtype)
        check_sizes(ksel)

    def scaled(self, value: str, kind: str, ksel: FunctionSelection) -> str:
        """The expression times the weight, plus the bias, as far as they are given."""
        given = [a.name for a in ksel.arg_descs if isinstance(a, TensorArg)]
        if "weight" in given:
            value = f"{value} * {kind}(weight_load(kp_i))"
        return f"{value} + {kind}(bias_load(kp_i))" if "bias" in given else value


class _LayerNorm(_Norm):
    """`x` less its mean, over its standard deviation, along the last axes, as PyTorch's ``layer_norm``::

        (x - mean) / sqrt(var + eps) * weight + bias

    `axis` is the last axis or several last ones. `weight` and `bias` have the shape of these axes, or are
    None. The result has the shape and the dtype of `x`; smaller floats are computed in float32. `var` divides
    by the number of elements, and is the mean of the squares of (x - mean): if these pass the range of the
    dtype, for float32 beyond 1.8e19, the result is 0 or NaN.

    Raises InvalidArgumentError for axes that are not the last and for other shapes of `weight` and `bias`,
    ArgumentTypeError for ints.

    >>> kp.ops.layer_norm(mgr.tensor([1, 3]), eps=0.0).tolist()
    [-1.0, 1.0]

    :dtypes: floats
    :axes: the last ones
    :error: n / 8 + 16 roundings of (abs(x) + mean of abs(x)) / deviation * abs(weight) + abs(bias)
    """

    signature = (
        "layer_norm(Tensor x, Tensor? weight=None, Tensor? bias=None, *, int[]? axis=-1, float eps=1e-05)"
        " -> Tensor"
    )
    optional = ("weight", "bias")

    def body(self, walk: _Walk, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kind = walk.kind
        walk.combine("mean", "0", "v", "{0} + {1}")
        walk.emit(f"mean /= {kind}(kp_n);")
        walk.combine("var", "0", "(v - mean) * (v - mean)", "{0} + {1}")
        kb.emit(f"{kind} kp_scale = sqrt(var / {kind}(kp_n) + eps);")
        walk.store(self.scaled("(v - mean) / kp_scale", kind, ksel))


class _RmsNorm(_Norm):
    """`x` over the root of the mean of its squares along the last axes, as PyTorch's ``rms_norm``::

        x / sqrt(mean(x * x) + eps) * weight

    `axis` is the last axis or several last ones. `weight` has the shape of these axes, or is None. The result
    has the shape and the dtype of `x`; smaller floats are computed in float32. `eps` is that of float32
    unless given. Squares that overflow give 0.

    Raises InvalidArgumentError for axes that are not the last and for another shape of `weight`,
    ArgumentTypeError for ints.

    >>> kp.ops.rms_norm(mgr.tensor([3, -3]), eps=0.0).tolist()
    [1.0, -1.0]

    :dtypes: floats
    :axes: the last ones
    :error: n / 16 + 16 roundings of the element
    """

    signature = (
        "rms_norm(Tensor x, Tensor? weight=None, *, int[]? axis=-1, float eps=1.1920928955078125e-07)"
        " -> Tensor"
    )

    def body(self, walk: _Walk, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """The mean of the squares, the result."""
        kind = walk.kind
        walk.combine("squares", "0", "v * v", "{0} + {1}")
        kb.emit(f"{kind} kp_scale = sqrt(squares / {kind}(kp_n) + eps);")
        walk.store(self.scaled("v / kp_scale", kind, ksel))


class ActivationOp(CustomOp):
    """Elementwise operations that compute in float32, also with constants, and in float64 for such."""

    formula: ClassVar[Elementwise]
    of_doubles: ClassVar[Elementwise | None] = None
    """The formula for float64, if it is another one."""

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        if element_of(x.dtype, ksel.features).type not in ("float", "double"):
            raise ArgumentTypeError(f"{ksel.name}: x is of {x.dtype}; give floats: x.astype(np.float32)")
        ksel.return_new_tensor(x.shape, x.dtype, may_reuse="x")
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        wide = kb.arg_value("x").type == "double"
        formula, dtype = (self.of_doubles or self.formula, "float64") if wide else (self.formula, "float32")
        one_each(kb, kb.result(0).size, "i")
        kb.emit(f"result_store(i, {kb.call(formula, x=('x_load(i)', dtype))});")


class _Silu(ActivationOp):
    """`x` times its logistic function, ``x / (1 + exp(-x))``, as PyTorch's ``silu``.

    The result has the shape and the dtype of `x`; smaller floats are computed in float32. -infinity
    gives NaN. Raises ArgumentTypeError for ints.

    >>> kp.ops.silu(np.float32([0, 100])).tolist()
    [0.0, 100.0]

    :dtypes: floats
    :axes: elementwise
    :error: 4e-6 of abs(x); float64: 4e-15
    """

    signature = "silu(Tensor x) -> Tensor"
    formula = elementwise("x / (1 + exp(-x))")


# erfc by W. H. Press and others, "Numerical Recipes in C", 2nd ed., 6.2: a fractional error of 1.2e-7.
class _Gelu(ActivationOp):
    """`x` times the normal distribution's share below it, ``x / 2 * (1 + erf(x / sqrt(2)))``, as
    PyTorch's ``gelu``.

    The result has the shape and the dtype of `x`; smaller floats are computed in float32. -infinity
    gives NaN. Its erfc of float32 is that of Press and others, "Numerical Recipes in C", 6.2. Raises
    ArgumentTypeError for ints.

    >>> kp.ops.gelu(np.float32([0, 10])).tolist()
    [0.0, 10.0]

    :dtypes: floats
    :axes: elementwise
    :error: 4e-6 of abs(x); float64: 4e-15
    """

    signature = "gelu(Tensor x) -> Tensor"
    formula = elementwise(
        "_z = abs(x) * 0.7071067811865476; _t = 1 / (1 + 0.5 * _z);"
        "_c = _t * exp(_t * (1.00002368 + _t * (0.37409196 + _t * (0.09678418 + _t * (-0.18628806 + _t * ("
        "0.27886807 + _t * (-1.13520398 + _t * (1.48851587 + _t * (-0.82215223 + _t * 0.17087277))))))))"
        " - 1.26551223 - _z * _z);"
        "x * 0.5 * (_c if x < 0 else 2 - _c)"
    )
    of_doubles = elementwise("x * 0.5 * (1 + erf(x * 0.7071067811865476))")


class _GeluTanh(ActivationOp):
    """The approximation of `gelu` by tanh, as PyTorch's ``gelu(x, approximate="tanh")``::

        x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))

    The result has the shape and the dtype of `x`; smaller floats are computed in float32. It differs
    from `gelu` by up to 5e-4. Raises ArgumentTypeError for ints.

    >>> kp.ops.gelu_tanh(np.float32([0, 10])).tolist()
    [0.0, 10.0]

    :dtypes: floats
    :axes: elementwise
    :error: 4e-6 of abs(x); float64: 4e-15
    """

    signature = "gelu_tanh(Tensor x) -> Tensor"
    formula = elementwise("x / (1 + exp(x * (-1.5957691216057308 - 0.07135481627260025 * x * x)))")


softmax: Function = CustomOp.register(_Softmax)
log_softmax: Function = CustomOp.register(_LogSoftmax)
logsumexp: Function = CustomOp.register(_Logsumexp)
layer_norm: Function = CustomOp.register(_LayerNorm)
rms_norm: Function = CustomOp.register(_RmsNorm)
silu: Function = CustomOp.register(_Silu)
gelu: Function = CustomOp.register(_Gelu)
gelu_tanh: Function = CustomOp.register(_GeluTanh)

relu: Elementwise = elementwise(
    "maximum(x, 0)",
    name="relu",
    doc="""`x` where it is above 0, else 0: ``np.maximum(x, 0)``. NaN stays.

    The result has the shape and the dtype of `x`. Raises ArgumentTypeError for complex numbers.

    >>> kp.ops.relu(np.float32([-1, 2])).tolist()
    [0.0, 2.0]

    :dtypes: all but complex and bool
    :axes: elementwise
    :error: exact
    """,
)
leaky_relu: Elementwise = elementwise(
    "x if x > 0 else x * slope",
    name="leaky_relu",
    doc="""`x` where it is above 0, else ``x * slope``, as PyTorch's ``leaky_relu``.

    `x` and `slope` broadcast, and the dtype is NumPy's of ``x * slope``: with a number, that of `x`. Raises
    ArgumentTypeError for complex numbers, InvalidArgumentError for shapes that do not broadcast.

    >>> kp.ops.leaky_relu(np.float32([-1, 2]), 0.5).tolist()
    [-0.5, 2.0]

    :dtypes: floats, or an int slope
    :axes: elementwise
    :error: exact
    """,
)
