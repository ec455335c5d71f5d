"""Other lengths of axes: pictures that grow and shrink.

Element d of m, of an axis that had n, has its centre at ``(d + 0.5) * n / m - 0.5`` of the old elements. All
places are computed with ints, so that they are exact. Each axis is a pass of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.errors import InvalidArgumentError, UnimplementedError
from ..._builders.walks import check_sizes, filled, named, one_each
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder
    from ..._functions.function import Function

_METHODS = ("nearest", "linear", "area")
_MOST_SHRINK = 2**15
"""Elements that one takes the mean of: llvmpipe ends loops after 65,535 turns."""


_LINEAR = """
    uint p = (2u * d + 1u) * n, q = p < m ? 0u : p - m, k = min(q / (2u * m), n - 1u);
    NUMBER part = NUMBER(q - k * 2u * m) / NUMBER(2u * m), v = kp_at(first, step, k);
    if (part != NUMBER(0) && k + 1u < n) v = v * (NUMBER(1) - part) + kp_at(first, step, k + 1u) * part;
"""
_AREA = """
    uint low = d * n, high = low + n;
    NUMBER v = NUMBER(0);
    for (uint k = low / m; k * m < high; ++k)
        v += kp_at(first, step, k) * (NUMBER(min(high, k * m + m) - max(low, k * m)) / NUMBER(n));
"""


def _rounded(value: str, dtype: np.dtype[Any]) -> str:
    """A float as an element."""
    kind = element_of(dtype).type
    if dtype.kind not in "iu":
        return f"{kind}({value})"
    limits = np.iinfo(dtype)
    return f"{kind}(clamp(kp_rint_float({value}), {limits.min}.0, {limits.max}.0))"


class _Resize(CustomOp):
    """`x` with another shape: each axis with another length is resampled.

    `shape` has a length for each axis of `x`: for a picture of shape (height, width, channels), the channels
    stay. The methods are "nearest"; "linear", between the two nearest centres along each axis, as OpenCV and
    PyTorch (``align_corners=False``) do without filtering before; and "area", the mean over the part of `x`
    that an element covers, which is right to shrink. Elements beyond the ends are those at the ends. The
    result has the dtype of `x`; "linear" and "area" round ints to the nearest, of two to the even one.

    Raises InvalidArgumentError for another number of lengths, a length below 1, an axis without elements,
    another method, and for axes if twice the product of both lengths passes 2**32, or that shrink by
    more than 2**15; UnimplementedError for bools, complex numbers and ints of 32 bits or more by other
    methods than "nearest".

    >>> kp.ops.resize(mgr.tensor([[0, 4], [8, 12]]), (2, 4), "linear").tolist()
    [[0.0, 1.0, 3.0, 4.0], [8.0, 9.0, 11.0, 12.0]]
    >>> kp.ops.resize(np.uint8([1, 3, 10, 20]), 2, "area").tolist()
    [2, 15]

    :dtypes: all by "nearest", else floats and ints of up to 16 bits
    :axes: any
    :error: "nearest" is exact; 4 roundings for each axis by "linear", 3 for each element of a mean by "area"
    """

    makes_images = True
    signature = "resize(Tensor x, int[]? shape, str method='linear') -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the axes, those that shrink most first."""
        x, method = ksel.arg_tensor("x"), ksel.attr_str("method").v
        given = ksel.attr_list_int("shape").v
        shape = tuple([given] if isinstance(given, int) else given or [])
        if method not in _METHODS:
            raise InvalidArgumentError(
                f"{ksel.name}: method is {method!r}; the methods are {', '.join(_METHODS)}"
            )
        if len(shape) != x.ndim or min(shape, default=1) < 1 or not x.size:
            raise InvalidArgumentError(
                f"{ksel.name}: x has the shape {x.shape} and shape is {shape}; give a length of 1 or more "
                "for each axis, and an x with elements"
            )
        simple = x.dtype.kind == "f" or element_of(x.dtype).type == "float" or x.dtype.itemsize <= 2
        if method != "nearest" and (not simple or x.dtype.kind in "bc"):
            raise UnimplementedError(
                f"{ksel.name}: x is of {x.dtype}; {method!r} takes floats and ints of up to 16 bits: "
                "kp.ops.astype(x, 'float32')"
            )
        changed = [axis for axis, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m]
        changed.sort(key=lambda axis: shape[axis] / x.shape[axis])
        lengths, passes = list(x.shape), []
        for number, axis in enumerate(changed):
            n, m = lengths[axis], shape[axis]
            if 2 * n * m >= 2**32 or (method == "area" and n > _MOST_SHRINK * m):
                raise InvalidArgumentError(
                    f"{ksel.name}: axis {axis} has {n} elements and gets {m}: resize it in several steps"
                )
            lengths[axis] = m
            step = int(np.prod(lengths[axis + 1 :], dtype=object))
            total = int(np.prod(lengths, dtype=object))
            if total >= 2**32:
                raise InvalidArgumentError(f"{ksel.name}: {total} elements; kernels count with 32 bits")
            for name, value in (("n", n), ("m", m), ("step", step), ("total", total)):
                ksel.value(f"kp_{name}{number}", value, "uint32")
            passes.append(total)
        ksel.specialize(passes=len(changed))
        ksel.return_new_tensor(shape, x.dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes a kernel for each axis; between them the elements are floats."""
        method, dtype, passes = ksel.attribute("method"), ksel.results[0].dtype, ksel.special["passes"]
        if not passes:
            kb.yield_results("x_load(i)")
            return
        number = "double" if dtype == np.float64 else "float"
        between = dtype if method == "nearest" else np.dtype(np.float64 if number == "double" else np.float32)
        source = "x"
        for each in range(passes):
            last = each == passes - 1
            target = "result" if last else f"pass{each}"
            if not last:
                kb.scratch(target, named(f"kp_total{each}"), between)
            kb.begin_dispatch(f"axis{each}")
            one_each(kb, named(f"kp_total{each}"), "i")
            kb.emit(f"""
                uint n = kp_n{each}, m = kp_m{each}, step = kp_step{each};
                uint inner = i % step, rest = i / step, d = rest % m, first = rest / m * n * step + inner;
            """)
            if method == "nearest":
                kb.emit(f"{target}_store(i, {source}_load(first + (2u * d + 1u) * n / (2u * m) * step));")
            else:
                kb.declare(
                    f"{number} kp_at(uint first, uint step, uint k) "
                    f"{{ return {number}({source}_load(first + k * step)); }}"
                )
                kb.emit(filled(_LINEAR if method == "linear" else _AREA, NUMBER=number))
                rounded = _rounded("v", dtype) if last else "v"
                kb.declare("\n\n".join(functions_in(rounded).values()))
                kb.emit(f"{target}_store(i, {rounded});")
            source = target


resize: Function = CustomOp.register(_Resize)
