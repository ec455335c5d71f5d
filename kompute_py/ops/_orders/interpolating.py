"""Functions of one variable by their values at sorted places, and the bins of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.arrays import to_flag
from ..._base.errors import InvalidArgumentError
from ..._builders.elementwise import elementwise
from ..._builders.walks import check_sizes, one_each
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import FLOAT32, FLOAT64, converted, promoted
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .._places.composed import Composed, Run
from .._places.given import given
from .searching import Keys, bound, require_common, searchsorted

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

Array = Any


class _Lines(CustomOp):
    """The values at `x` on the lines between the points `xp` and `fp`; outside, those at the ends."""

    signature = "interp(Tensor x, Tensor xp, Tensor fp) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, xp, fp = (ksel.arg_tensor(name) for name in ("x", "xp", "fp"))
        if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
            raise InvalidArgumentError(
                f"interp: xp has the shape {xp.shape}, and fp {fp.shape}; give each one axis, of one length "
                "and not empty"
            )
        require_common(ksel, x, xp)
        dtype = promoted([x.dtype, xp.dtype, fp.dtype])
        if dtype.kind == "c":
            raise InvalidArgumentError(
                "interp: fp is complex; give its parts: kp.ops.real(fp), kp.ops.imag(fp)"
            )
        if dtype.kind in "biu":
            dtype = FLOAT64 if ksel.may_have("shaderFloat64") else FLOAT32
        ksel.require(dtype, "x, xp and fp give")
        ksel.return_new_tensor(x.shape, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        keys = Keys(ksel, kb, "x", "xp")
        dtype = FLOAT64 if ksel.results[0].dtype == FLOAT64 else FLOAT32
        kind = element_of(dtype).type

        def at(name: str, place: str) -> str:
            return converted(f"{name}_load({place})", kb.arg_value(name).dtype, dtype)

        one_each(kb, kb.arg_value("x").size, "kp_i")
        kb.emit(f"{keys.type} own = {keys.of('x', 'kp_i')};")
        kb.emit(bound(keys.of("xp", "middle"), "xp_size", True))
        kb.emit(f"""
            {kind} v = {at("x", "kp_i")}, found = {at("fp", "min(max(low, 1u), xp_size) - 1u")};
            if (low > 0u && low < xp_size) {{
                {kind} x0 = {at("xp", "low - 1u")}, width = {at("xp", "low")} - x0;
                found += ({at("fp", "low")} - found) / width * (v - x0);
            }}
            result_store(kp_i, v == v ? found : v);
        """)


_lines = CustomOp.register(_Lines)
_below = elementwise("where(x < end, value, found)")
_above = elementwise("where(x > end, value, found)")


@Composed
def interp(
    run: Run, x: Array, xp: Array, fp: Array, left: float | None = None, right: float | None = None
) -> Array:
    """The piecewise linear function through the points (`xp`, `fp`) at `x`, as ``np.interp``.

    `xp` and `fp` have one axis of one length, and `xp` ascends; `x` has any shape. `left` stands for places
    before the first point, `right` for those behind the last; the values of these points if they are None.
    The result has the common float dtype of all three; NaN in `x` give NaN. Each element takes a binary
    search.

    Raises InvalidArgumentError for other shapes and for complex numbers.

    >>> kp.ops.interp(np.float32([0, 1.5, 9]), np.float32([1, 2, 4]), np.float32([10, 20, 0])).tolist()
    [10.0, 15.0, 0.0]

    :dtypes: all but complex; ints and bools give float64, float32 on devices without it
    :axes: None
    :error: 6 roundings of the larger of two neighbours
    """
    found = run(_lines, x, xp, fp)
    for end, value, outside in ((0, left, _below), (-1, right, _above)):
        if value is not None:
            found = run(outside, x, given(xp)[end], value, found)
    return found


@Composed
def digitize(run: Run, x: Array, bins: Array, right: bool = False) -> Array:
    """The numbers of the bins that the elements of `x` lie in, as ``np.digitize``.

    Bin ``i`` goes from ``bins[i - 1]`` to below ``bins[i]``, with `right` from above the first to the second.
    `bins` has one axis and ascends or descends. It runs `searchsorted`. Raises its errors, and
    InvalidArgumentError for an array that does neither; a Tensor is not looked at, but for its ends.

    >>> kp.ops.digitize(np.float32([0.5, 1, 7]), np.float32([0, 1, 2])).tolist()
    [1, 2, 3]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """
    to_flag(right, "digitize: right")
    bins = given(bins)
    side = "left" if right else "right"
    if bins.ndim != 1 or bins.dtype.names or not bins.shape[0]:
        return run(searchsorted, bins, x, side)  # which refuses what is not numbers in one axis
    if isinstance(bins, (Tensor, StridedView)):
        ends = {"first": bins[0], "last": bins[-1]}
        turned = run(_ascending, **ends, bins=bins, back=bins[::-1])
        return run(_bins, **ends, count=bins.shape[0], found=run(searchsorted, turned, x, side))
    if np.all(bins[:-1] <= bins[1:]):
        return run(searchsorted, bins, x, side)
    if not np.all(bins[:-1] >= bins[1:]):
        raise InvalidArgumentError("digitize: bins neither ascend nor descend; sort them: np.sort(bins)")
    turned = np.ascontiguousarray(bins[::-1])
    return run(_rest, count=len(bins), found=run(searchsorted, turned, x, side))


_rest = elementwise("count - found", name="digitize")
_ascending = elementwise("where(first > last, back, bins)", name="digitize")
_bins = elementwise("where(first > last, count - found, found)", name="digitize")
