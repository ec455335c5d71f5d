"""Elements at indices combined with values: the greatest, the least, the product; sums of float64.

Atomic operations find the greatest and the least of numbers of up to 32 bits. Other values are sorted by
their places, which keeps the order of those that go to one place; a scan combines each run of them, and the
last of a run has them all. So the result does not depend on which invocation comes first, and every dtype
that can be sorted and combined will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.arrays import as_index
from ..._base.errors import InvalidArgumentError, UnimplementedError
from ..._builders.elementwise import formula
from ..._builders.scan import scan
from ..._builders.walks import axes_of
from ..._formulas.dtypes import castable, converted
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of
from ..._functions.function import Function
from .._places.composed import Composed, Run, Widened, dense
from .._places.given import beside, shape_of
from .._places.indexing import _ScatterAdd, put
from .._places.moving import take
from .._places.raising import RaisingOperation
from .sorting import sort_by_key

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

Array = Any

_SCANS = {name: scan("x", name, segments="ids", name=name) for name in ("max", "min", "prod", "sum")}
_BOTH = {"max": "maximum(x, y)", "min": "minimum(x, y)", "prod": "x * y", "sum": "x + y"}


def _scattered(run: Run, how: str, x: Array, indices: Array, values: Array, axis: int, mode: str) -> Array:
    x, indices, values = dense(run, x), dense(run, indices), dense(run, values)
    shape, dtype = shape_of(x), np.dtype(x.dtype)
    (axis,) = axes_of("x", [as_index(axis, "axis")], len(shape))
    n, inner = shape[axis], math.prod(shape[axis + 1 :])
    wanted = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    if tuple(values.shape) != wanted:
        raise InvalidArgumentError(
            f"values has the shape {tuple(values.shape)}; with x {shape}, indices "
            f"{tuple(indices.shape)} and axis {axis} it is {wanted}"
        )
    if dtype.kind == "c":
        raise UnimplementedError(f"x is of {dtype}; it takes real numbers: kp.ops.real, kp.ops.imag")
    if not castable(values.dtype, dtype):
        raise InvalidArgumentError(
            f"values is of {values.dtype}, and x of {dtype}; convert them: "
            f"kp.ops.astype(values, {dtype.name!r})"
        )
    if dtype == np.bool_:
        how = {"prod": "min", "sum": "max"}.get(how, how)  # the same, and bools
    if math.prod(shape) >= 2**31:
        raise InvalidArgumentError(f"x has {math.prod(shape)} elements, 2**31 or more")
    if not math.prod(wanted):
        return run(formula("x"), x)
    numbers = run(take, beside(x, np.arange(n, dtype=np.int32)), indices, 0, mode)
    outer, lines = math.prod(shape[:axis]), math.prod(indices.shape)
    places = run(
        formula("outer + k * step + inner"),
        beside(x, np.arange(outer, dtype=np.int32).reshape(outer, 1, 1) * np.int32(n * inner)),
        numbers.reshape((1, lines, 1)),
        inner,
        beside(x, np.arange(inner, dtype=np.int32)),
    )
    if np.dtype(values.dtype) != dtype:
        values = run(formula("x", dtype.name), values)
    places, ordered = run(sort_by_key, places.reshape(-1), values.reshape(-1), -1)
    own = run(take, x.reshape(-1), places, 0, "clip")
    both = run(formula(_BOTH[how], dtype.name), own, run(_SCANS[how], ordered, places))
    return run(put, x, places, both, "clip")


_KEYS = {
    "float": """
uint kp_key(float value) {
    uint bits = floatBitsToUint(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return NANu;
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
float kp_number(uint key) {
    if (key == NANu) return uintBitsToFloat(0x7FC00000u);
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key ^ 0x80000000u : ~key);
}""",
    "int": """
uint kp_key(int value) { return uint(value) ^ 0x80000000u; }
int kp_number(uint key) { return int(key ^ 0x80000000u); }""",
    "uint": """
uint kp_key(uint value) { return value; }
uint kp_number(uint key) { return key; }""",
}
"""Words in the order of numbers. NaN are before or after all others."""


class _ScatterMax(_ScatterAdd):
    """`x` with the greatest of each element and the `values` at its `indices` along `axis`, as
    ``np.maximum.at(x, indices, values)`` for the first axis.

    `values` has the shape of ``take(x, indices, axis)``: the axes of `indices` where `axis` was. `mode`
    is as for `kp.ops.take`. With ``out=x``, `x` itself changes. NaN among them gives NaN. The result is the
    same in each run. Elements of up to 32 bits are compared by atomic operations; those of 64 bits and bools
    are sorted by their places, in their order, and each run of them is scanned.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for other shapes, an axis that `x` does
    not have, values that do not convert to the dtype of `x`, and another mode; ArgumentTypeError for indices
    that are not ints; UnimplementedError for complex numbers.

    >>> kp.ops.scatter_max(mgr.zeros(3), np.array([0, 2, 0]), np.float32([1, -4, 5]), 0).tolist()
    [5.0, 0.0, 0.0]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: exact
    """

    signature = _ScatterAdd.signature.replace("scatter_add", "scatter_max")
    most, nan = "Max", "0xFFFFFFFF"

    def word(self, kb: FunctionBuilder, kind: str, value: str) -> str:
        kb.declare(_KEYS[kind].replace("NAN", self.nan))
        return f"kp_key({value})"

    def number(self, kb: FunctionBuilder, kind: str) -> str:
        kb.declare(_KEYS[kind].replace("NAN", self.nan))
        return "kp_number(sums[i])"

    def combine(self, kb: FunctionBuilder, kind: str) -> None:
        given, wanted = kb.arg_value("values").dtype, kb.result(0).dtype
        value = converted("values_load(i)", given, wanted)
        for extension in (*element_of(given).extensions, *element_of(wanted).extensions):
            kb.extension(extension)
        for function in functions_in(value).values():
            kb.declare(function)
        kb.emit(f"atomic{self.most}(sums[place], {self.word(kb, kind, value)});")


class _ScatterMin(_ScatterMax):
    """`x` with the least of each element and the `values` at its `indices` along `axis`, as
    ``np.minimum.at(x, indices, values)`` for the first axis.

    The rest is as for `kp.ops.scatter_max`, NaN too. Raises its errors.

    >>> kp.ops.scatter_min(mgr.zeros(3), np.array([0, 2, 0]), np.float32([1, -4, 5]), 0).tolist()
    [0.0, 0.0, -4.0]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: exact
    """

    signature = _ScatterAdd.signature.replace("scatter_add", "scatter_min")
    most, nan = "Min", "0"


@Composed
def scatter_mul(run: Run, x: Array, indices: Array, values: Array, axis: int, mode: str = "raise") -> Array:
    """`x` times the product of the `values` at the `indices` of each element along `axis`, as
    ``np.multiply.at(x, indices, values)`` for the first axis.

    The values are multiplied first, in an order that depends on the sizes, the device and the variant of
    `kp.ops.scan`, and not on which invocation comes first. Ints wrap; NaN gives NaN, and so does 0 with an
    infinity. The rest is as for `kp.ops.scatter_max`. Raises its errors.

    >>> kp.ops.scatter_mul(mgr.full(3, 2), np.array([0, 2, 0]), np.float32([3, -4, 5]), 0).tolist()
    [30.0, 2.0, -8.0]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: a rounding for each value, and one; products of values beyond the dtype's range are inf or 0
    """
    return _scattered(run, "prod", x, indices, values, axis, mode)


def _body(how: str, name: str) -> Callable[..., Array]:
    def body(run: Run, x: Array, indices: Array, values: Array, axis: int, mode: str = "raise") -> Array:
        return _scattered(run, how, x, indices, values, axis, mode)

    body.__name__ = name
    return body


class _Atomic(Widened, RaisingOperation):
    """Kernels combine ints and floats of up to 32 bits by atomic operations; other numbers are sorted."""


def _is_sorted(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return getattr(named.get("x"), "dtype", None) in (np.float64, np.bool_)


def _is_wide(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return getattr(named.get("x"), "dtype", None) in (np.float64, np.int64, np.uint64, np.bool_)


scatter_add: Function = _Atomic(_ScatterAdd, _is_sorted, _body("sum", "scatter_add"))
scatter_max: Function = _Atomic(_ScatterMax, _is_wide, _body("max", "scatter_max"))
scatter_min: Function = _Atomic(_ScatterMin, _is_wide, _body("min", "scatter_min"))
