"""Windows of elements along axes, and how arrays go on beyond their ends: for the filters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.elementwise import elementwise
from ..._builders.walks import named, one_each
from ..._custom.arg_descs import TensorArg, ValueArg
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import converted
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder
    from ..._custom.expressions import IntOrSize

MOST = 2**15
"""Weights: llvmpipe ends loops after 65,535 turns."""
_MOST_TURNS = 60000
LENGTHS = ("full", "same", "valid")
BORDERS = {
    "reflect": "m = 2 * n; i = i < 0 ? m - 1 - (-1 - i) % m : i % m; return i < n ? i : m - 1 - i;",
    "mirror": "m = max(2 * n - 2, 1); i = i < 0 ? m - 1 - (-1 - i) % m : i % m; return i < n ? i : m - i;",
    "nearest": "return clamp(i, 0, n - 1);",
    "wrap": "return i < 0 ? n - 1 - (-1 - i) % n : i % n;",
    "constant": "return i < 0 || i >= n ? -1 : i;",
}
_exp = elementwise("exp(x)")
MODES = """`mode` says how `x`, a b c, goes on beyond its ends: "reflect" (c b a a b c c b a), "mirror"
    (c b a b c b a), "nearest" (a a a b c c c), "wrap" (a b c a b c a b c) or "constant" (cval). It is one for
    all axes: for several, filter one axis after the other. The result has the shape of `x` and its dtype, or
    float32 if `x` has ints: they are not rounded. float16 is computed in float32."""


def check_count(ksel: FunctionSelection, name: str, count: int, most: int = MOST) -> None:
    if not 0 < count <= most:
        raise InvalidArgumentError(f"{ksel.name}: {name} has {count} elements; give 1 to {most}")


def check_mode(ksel: FunctionSelection) -> None:
    """Declares the attribute `mode`. Raises InvalidArgumentError for an unknown mode."""
    mode = ksel.attr_str("mode").v
    if mode not in BORDERS:
        raise InvalidArgumentError(f"{ksel.name}: mode is {mode!r}; give one of {', '.join(BORDERS)}")


def float_filter(ksel: FunctionSelection, x: TensorArg) -> np.dtype[Any]:
    """The dtype of filters that give floats. Raises ArgumentTypeError for ints of more than 16 bits."""
    kind = x.dtype.kind
    small = element_of(x.dtype, ksel.features).type in ("float", "double")
    if not small and not (kind in "biu" and x.dtype.itemsize <= 2):
        raise ArgumentTypeError(
            f"{ksel.name}: x is of {x.dtype}; give floats or ints of up to 16 bits: x.astype(np.float32)"
        )
    return np.dtype(np.float32) if kind in "biu" else x.dtype


def declare_border(kb: FunctionBuilder, mode: str) -> None:
    """Adds ``kp_border(i, n)``: the source index for position `i` on an axis of `n`, or -1 outside."""
    kb.declare(f"int kp_border(int i, int n) {{ if (i >= 0 && i < n) return i; int m; {BORDERS[mode]} }}")


MOST_ORDER = 10
"""Of derivatives; the polynomials of higher ones have numbers that float32 does not tell apart."""
BLOCK = 16
"""Elements of the least block that long windows are put together from; the next has as many blocks."""


class Body(NamedTuple):
    """What a filter along an axis does with the elements of a window."""

    start: str
    """Statements before them."""
    step: str
    """Those for each "{value}"; its number is ``j``."""
    found: str
    """The expression of the result."""
    merge: str = ""
    """Statements for the result "{value}" of a block of elements."""


class Lines(NamedTuple):
    """Writes a filter along an axis.

    The run-time values of the axis end with `number`: its length ``kp_n``, the elements from one of it to the
    next ``kp_step``, those of the window ``kp_count`` and those before the one that it is for, ``kp_left``.
    """

    number: str
    mode: str
    load: str
    """The function that loads an element."""
    value: str
    """The expression of an element "{}" in the type of the filter."""
    border: str
    """The expression of an element beyond the ends, for the mode "constant"."""

    def _names(self, kb: FunctionBuilder, count: IntOrSize, length: str, body: Body) -> str:
        """An invocation for each of so many elements of lines of this length: ``i`` is the place of ``kp_e``
        in its line, ``first`` the number of the line's first element among those of `load`."""
        declare_border(kb, self.mode)
        one_each(kb, count, "kp_e")
        return f"""
            int step = kp_step{self.number}, n = kp_n{self.number}, left = kp_left{self.number};
            int count = kp_count{self.number}, i = int(kp_e) / step % {length};
            int line = int(kp_e) / step / {length}, first = line * n * step + int(kp_e) % step;
            {body.start}
        """

    def _walk(self, begin: str, count: str, body: Body) -> str:
        """The steps for so many elements from a place on, which may lie beyond the ends."""

        def step(element: str) -> str:
            return body.step.format(value=self.value.format(element))

        return f"""
            if ({begin} >= 0 && {begin} + {count} <= n) {{
                int at = first + ({begin}) * step;
                for (int j = 0; j < {count}; ++j, at += step) {{ {step(f"{self.load}(uint(at))")} }}
            }} else {{
                for (int j = 0; j < {count}; ++j) {{
                    int k = kp_border({begin} + j, n);
                    if (k < 0) {{ {step(self.border)} }}
                    else {{ {step(f"{self.load}(uint(first + k * step))")} }}
                }}
            }}
        """

    def write(self, kb: FunctionBuilder, levels: int, body: Body, finish: str) -> None:
        """Walks through the window of each element, or takes it from as few blocks as it has, the largest
        first, and the rest; `finish` are the statements for the result."""
        text = self._names(kb, kb.result(0).size, "n", body)
        text += f"int from = (line * kp_wide{self.number} + i) * step + int(kp_e) % step;" if levels else ""
        text += "int begin = i - left;"
        for level in reversed(range(levels)):
            size = BLOCK ** (level + 1)
            text += f"""
                for (; count >= {size}; count -= {size}, from += {size} * step, begin += {size}) {{
                    {body.merge.format(value=f"{self.block(level)}_load(uint(from))")}
                }}
            """
        kb.emit(text + self._walk("begin", "count", body) + finish)

    def block(self, level: int) -> str:
        """The name of the memory for blocks of ``BLOCK ** (level + 1)`` elements."""
        return f"blocks{self.number}_{level}"

    def write_blocks(self, kb: FunctionBuilder, level: int, body: Body) -> None:
        """Computes the blocks that begin at each place of the line and of what windows meet beyond its ends:
        ``kp_wide`` of them, the first `left` before the line."""
        inner, size = BLOCK**level, BLOCK ** (level + 1)
        text = self._names(kb, named(f"kp_begins{self.number}"), f"kp_wide{self.number}", body)
        if level == 0:
            text += self._walk("i - left", str(BLOCK), body)
        else:
            value = f"{self.block(level - 1)}_load(kp_e + uint(j * {inner} * step))"
            text += f"""
                if (i + {size} > kp_wide{self.number} + {BLOCK - 1}) return;
                for (int j = 0; j < {BLOCK}; ++j) {{ {body.merge.format(value=value)} }}
            """
        kb.emit(f"{text} {self.block(level)}_store(kp_e, {body.found});")


def check_order(ksel: FunctionSelection, order: int) -> int:
    """The order of a derivative."""
    if not 0 <= order <= MOST_ORDER:
        raise InvalidArgumentError(f"{ksel.name}: order is {order}; give 0 to {MOST_ORDER}")
    return order


def gaussian_weights(kb: FunctionBuilder, number: str, kind: str, sigma: str, order: int) -> None:
    """Writes the dispatch that computes the weights of a normal curve, or of its derivative of this order:
    times Hermite's polynomial of the distance in deviations.
    """
    dtype = "float64" if kind == "double" else "float32"
    kb.scratch(f"weights{number}", named(f"kp_count{number}"), dtype)
    kb.begin_dispatch(f"weights{number}")
    kb.workgroup(64)
    kb.groups(kb.ceil_div(named(f"kp_count{number}"), 64))
    value = kb.call(_exp, x=(f"{kind}(-0.5) * d * d", dtype))
    kb.emit(f"""
        int j = int(gl_GlobalInvocationID.x);
        if (j >= kp_count{number}) return;
        {kind} total = {kind}(0);
        for (int k = kp_left{number}; k > 0; --k) {{
            {kind} d = {kind}(k) / {sigma};
            total += {kind}(2) * {value};
        }}
        {kind} d = {kind}(j - kp_left{number}) / {sigma}, before = {kind}(0), times = {kind}(1);
        for (int n = 0; n < {order}; ++n) {{
            {kind} next = (d * times - {kind}(n) * before) / {sigma};
            before = times / {sigma};
            times = next;
        }}
        weights{number}_store(uint(j), {value} / (total + {kind}(1)) * times);
    """)


def declare_products(
    ksel: FunctionSelection,
    a: TensorArg,
    v: TensorArg,
    mode: str,
    dtype: np.dtype[Any],
    border: ValueArg,
    turned: bool,
) -> None:
    """Declares a convolution of several axes, or with a border; `turned` is a correlation."""
    most = _MOST_TURNS // a.ndim
    if v.size > most:
        raise InvalidArgumentError(
            f"{ksel.name}: v has {v.size} elements; the most for {a.ndim} axes are {most}, and "
            "kp.ops.fftconvolve has no limit"
        )
    shape = []
    for n, m in zip(a.shape, v.shape, strict=True):
        if mode == "valid" and m > n:
            raise InvalidArgumentError(
                f"{ksel.name}: v {v.shape} is longer than a {a.shape}, so no part is valid; give the "
                "longer one first"
            )
        shape.append(n + m - 1 if mode == "full" else n - m + 1 if mode == "valid" else n)
        left = {"full": m - 1, "valid": 0, "same": m - 1 - (m - 1) // 2}
        axis = len(shape) - 1
        ksel.value(f"kp_left{axis}", left.get(mode, m // 2 if turned else (m - 1) // 2), "int32")
    if math.prod(shape) >= 2**31 or a.size >= 2**31:
        raise InvalidArgumentError(f"{ksel.name}: the result has {math.prod(shape)} elements; give less")
    if mode == "constant":
        if dtype.kind in "iu":
            if border.v != border.v // 1:
                raise InvalidArgumentError(f"{ksel.name}: cval is {border.v}, and the result of {dtype}")
            ksel.value("kp_cval", int(border.v), dtype)
        else:
            wide = dtype in (np.float64, np.complex128)
            ksel.value("kp_cval", float(border.v), "float64" if wide else "float32")
    ksel.return_new_tensor(shape, dtype)


def loads_of(ksel: FunctionSelection, kb: FunctionBuilder, turned: bool) -> tuple[str, str]:
    """The expressions of an element of `a` and of `v`, at "{}", as numbers of the result. Those of a
    correlation have `v` conjugated. Declares ``kp_times``, their product.
    """
    kind, dtype = kb.result(0).type, np.dtype(kb.result(0).dtype)
    found = []
    for name in ("a", "v"):
        text, given = f"{name}_load({{}})", np.dtype(kb.arg_value(name).dtype)
        found.append(converted(text, given, dtype) if dtype.kind == "c" else f"{kind}({text})")
    if dtype.kind == "c":
        product = f"kp_cmul_{kind}(x, y)"
        kb.declare("\n".join(functions_in(product).values()))
        kb.declare(f"{kind} kp_conjugate({kind} x) {{ return {kind}(x.x, -x.y); }}")
        found[1] = f"kp_conjugate({found[1]})" if turned else found[1]
    else:
        product = "x * y"
    kb.declare(f"{kind} kp_times({kind} x, {kind} y) {{ return {product}; }}")
    return found[0], found[1]


def write_products(ksel: FunctionSelection, kb: FunctionBuilder, turned: bool) -> None:
    """Writes its kernel."""
    a, result = kb.arg_value("a"), kb.result(0)
    mode, kind = ksel.attribute("mode"), result.type
    declare_border(kb, mode if mode in BORDERS else "constant")
    one_each(kb, result.size, "kp_e")
    lines = ["uint rest = kp_e;"]
    for axis in reversed(range(a.ndim)):
        lines.append(f"int i{axis} = int(rest % uint(result_dim{axis})) - kp_left{axis};")
        lines.append(f"rest /= uint(result_dim{axis});")
    beyond = "kp_cval" if mode == "constant" else "0"
    beyond += ", 0" if kind in ("vec2", "dvec2") else ""
    lines.append(f"{kind} sum = {kind}(0), outside = {kind}({beyond});")
    element, weigher = loads_of(ksel, kb, turned)
    at, weight, inside = "0", "0", []
    for axis in range(a.ndim):
        lines.append(f"for (int j{axis} = 0; j{axis} < int(v_dim{axis}); ++j{axis}) {{")
        lines.append(f"int k{axis} = kp_border(i{axis} + j{axis}, int(a_dim{axis}));")
        at = f"({at} * int(a_dim{axis}) + k{axis})"
        weight = f"({weight} * int(v_dim{axis}) + j{axis})"
        inside.append(f"k{axis} >= 0")
        if mode in LENGTHS:
            lines.append(f"if (k{axis} < 0) continue;")
    place = f"uint({weight})" if turned else f"v_size - 1u - uint({weight})"
    load = element.format(f"uint({at})")
    if mode == "constant":
        load = f"({' && '.join(inside)} ? {load} : outside)"
    lines.append(f"sum += kp_times({weigher.format(place)}, {load});")
    lines.append("}" * a.ndim)
    lines.append("result_store(kp_e, sum);")
    kb.emit("\n".join(lines))
