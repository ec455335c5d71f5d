"""Probabilities as whole numbers, multiples of 2**-62: their sums are exact, and so the same on every driver.

The sums of the first 1, 2, ... elements are two words for each, the lower one first. Elements above 0 count
as 2**-62 at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._builders.walks import check_sizes, filled, named
from .._functions.custom_op import CustomOp
from .._functions.function import Function
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from ..ops._values.elements import astype

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._custom.builder import FunctionBuilder
    from .._custom.selection import FunctionSelection
    from .._manager.manager import Manager

_ONE = 2**62
"""The whole number of the probability 1."""
_TOLERANCE = 1e-6
"""Of the sum of float64 and of lists. That of other dtypes is the root of their epsilon, as NumPy's."""
_RUNS = 2**14
"""The most runs of elements that are added up at once."""

# The multiple of an element, the upper word first; 2**64 - 1 stands for 2 and more.
_MULTIPLE = """
uvec2 shifted(uvec2 m, int by) {
    if (by >= 32) return uvec2(m.y << (by - 32), 0u);
    if (by > 0) return uvec2(m.x << by | m.y >> (32 - by), m.y << by);
    if (by == 0) return m;
    if (by > -32) return uvec2(m.x >> -by, m.y >> -by | m.x << (32 + by));
    return by > -64 ? uvec2(0u, m.x >> (-by - 32)) : uvec2(0u);
}
uvec2 multiple(uint k, inout bool wrong) {
    BITS
    if ((bits.x & 0x7fffffffu) == 0u && bits.y == 0u) return uvec2(0u);
    if (bits.x >> 31 != 0u || exponent == SPECIAL) { wrong = true; return uvec2(0u); }
    if (exponent > SPECIAL / 2) return uvec2(0xffffffffu);
    uvec2 found = exponent == 0 ? uvec2(0u) : shifted(m, exponent - SHIFT);
    return found == uvec2(0u) ? uvec2(0u, 1u) : found;
}
uvec2 plus(uvec2 a, uvec2 b) {
    uint carry, more;
    uint low = uaddCarry(a.y, b.y, carry), high = uaddCarry(a.x, b.x, more);
    if (more != 0u || (high == 0xffffffffu && carry != 0u)) return uvec2(0xffffffffu);
    return uvec2(high + carry, low);
}"""
_SINGLE = """
    uvec2 bits = uvec2(floatBitsToUint(p_load(k)), 0u);
    int exponent = int(bits.x >> 23 & 0xffu);
    uvec2 m = uvec2(0u, (bits.x & 0x7fffffu) | 0x800000u);
"""
_DOUBLE = """
    uvec2 bits = unpackDouble2x32(p_load(k)).yx;
    int exponent = int(bits.x >> 20 & 0x7ffu);
    uvec2 m = uvec2((bits.x & 0xfffffu) | 0x100000u, bits.y);
"""


class _Sums(CustomOp):
    """The running sums of `p`, and four words: how many elements are negative or not finite, how many are
    above 0, and the whole sum.

    An invocation has a run of elements; a workgroup adds up the runs.
    """

    signature = "random_sums(Tensor p) -> (Tensor sums, Tensor found)"

    def select(self, ksel: FunctionSelection) -> None:
        p = ksel.arg_tensor("p")
        ksel.return_new_tensor((p.size, 2), np.uint32)
        ksel.return_new_tensor(4, np.uint32)
        each = max(64, -(-p.size // _RUNS))
        ksel.value("kp_each", each, "uint32")
        ksel.value("kp_runs", -(-p.size // each), "uint32")
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        double = kb.arg_value("p").dtype == np.float64
        bits, special, shift = (_DOUBLE, 2047, 1013) if double else (_SINGLE, 255, 88)
        text = filled(_MULTIPLE, BITS=bits, SPECIAL=special, SHIFT=shift)
        kb.scratch("runs", named("kp_runs") * 4, np.uint32)
        self._each_run(kb, "sum", text)
        kb.emit("""
            uint wrong_ones = 0u, above = 0u;
            uvec2 sum = uvec2(0u);
            for (; k < end; ++k) {
                bool wrong = false;
                uvec2 one = multiple(k, wrong);
                wrong_ones += wrong ? 1u : 0u;
                above += one != uvec2(0u) ? 1u : 0u;
                sum = plus(sum, one);
            }
            runs_store(4u * run, wrong_ones);
            runs_store(4u * run + 1u, above);
            runs_store(4u * run + 2u, sum.y);
            runs_store(4u * run + 3u, sum.x);
        """)
        self._carry(kb, text)
        self._each_run(kb, "write", text)
        kb.emit("""
            uvec2 sum = uvec2(runs_load(4u * run + 3u), runs_load(4u * run + 2u));
            for (; k < end; ++k) {
                bool wrong = false;
                sum = plus(sum, multiple(k, wrong));
                sums_store(2u * k, sum.y);
                sums_store(2u * k + 1u, sum.x);
            }
        """)

    def _each_run(self, kb: FunctionBuilder, name: str, text: str) -> None:
        kb.begin_dispatch(name)
        kb.declare(text)
        kb.grid(named("kp_runs"))
        kb.emit("""
            uint run = gl_GlobalInvocationID.x;
            if (run >= kp_runs) return;
            uint k = run * kp_each, end = min(p_size, k + kp_each);
        """)

    def _carry(self, kb: FunctionBuilder, text: str) -> None:
        """The sums before each run, and the whole."""
        kb.begin_dispatch("carry")
        kb.declare(text)
        kb.declare("shared uvec4 kp_parts[256];")
        kb.workgroup(256)
        kb.groups(1)
        kb.emit("""
            uint own = gl_LocalInvocationID.x, each = (kp_runs + 255u) / 256u;
            uint first = min(kp_runs, own * each), end = min(kp_runs, first + each);
            uint wrong_ones = 0u, above = 0u;
            uvec2 sum = uvec2(0u);
            for (uint run = first; run < end; ++run) {
                wrong_ones += runs_load(4u * run);
                above += runs_load(4u * run + 1u);
                sum = plus(sum, uvec2(runs_load(4u * run + 3u), runs_load(4u * run + 2u)));
            }
            kp_parts[own] = uvec4(wrong_ones, above, sum);
            barrier();
            uvec4 before = uvec4(0u), all = uvec4(0u);
            for (uint n = 0u; n < 256u; ++n) {
                if (n == own) before = all;
                all = uvec4(all.xy + kp_parts[n].xy, plus(all.zw, kp_parts[n].zw));
            }
            sum = before.zw;
            for (uint run = first; run < end; ++run) {
                uvec2 next = plus(sum, uvec2(runs_load(4u * run + 3u), runs_load(4u * run + 2u)));
                runs_store(4u * run + 2u, sum.y);
                runs_store(4u * run + 3u, sum.x);
                sum = next;
            }
            if (own == 0u) {
                found_store(0u, all.x);
                found_store(1u, all.y);
                found_store(2u, all.w);
                found_store(3u, all.z);
            }
        """)


_sums: Function = CustomOp.register(_Sums)


def sums_of(p: Any, count: int, owner: Manager) -> tuple[Tensor, int]:
    """The running sums of the probabilities `p` of `count` elements, on `owner`'s device, and how many of the
    elements can occur. Of a Tensor, four words are read: whether its elements are probabilities.

    Raises ArgumentTypeError unless `p` has real numbers; InvalidArgumentError for another shape, for elements
    that are negative or not finite, for a sum that is not 1, and for a Tensor of another Manager.
    """
    if isinstance(p, (Tensor, StridedView)):
        return _on_device(p, count, owner)
    if isinstance(p, range):  # before its numbers take memory
        _check_shape((max(0, -((p.start - p.stop) // p.step)),), count)
    refuse_mask(p, "p")
    given = _converted(np.asarray, p, p)
    if given.dtype.kind in "cSU":
        raise ArgumentTypeError(f"p has a probability for each element, not {kind_of(p)}")
    _check_shape(given.shape, count)
    chances = _converted(lambda array: array.astype(np.float64), given, p)
    wrong = ~((chances >= 0) & (chances < np.inf))
    _check(int(wrong.sum()), 0.0 if wrong.any() else float(chances.sum()), given.dtype)
    multiples = np.floor(chances * _ONE).astype(np.uint64)
    sums = np.cumsum(np.maximum(multiples, chances > 0), dtype=np.uint64)
    words = sums.astype("<u8").view("<u4").astype(np.uint32).reshape(count, 2)
    return owner.tensor_t(words), int((chances > 0).sum())


def _converted(function: Callable[[Any], Any], value: Any, p: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(function(value))
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(f"p has a probability for each element, not {kind_of(p)}") from None


def _on_device(p: Tensor | StridedView, count: int, owner: Manager) -> tuple[Tensor, int]:
    if p.dtype.kind == "c":
        raise ArgumentTypeError(f"p has a probability for each element, not {shown(p.dtype.name)}")
    if p.manager is not owner:
        raise InvalidArgumentError("p is a Tensor of another Manager than the elements; give p.to(manager)")
    _check_shape(p.shape, count)
    given = p if p.dtype.name in ("float32", "float64") else astype(p, np.float32)
    sums, found = _sums(given)
    wrong, possible, low, high = found.read().tolist()
    _check(wrong, (high << 32 | low) / _ONE, p.dtype)
    return sums, possible


def _check_shape(shape: tuple[int, ...], count: int) -> None:
    if tuple(shape) != (count,):
        raise InvalidArgumentError(f"p has the shape {tuple(shape)}; give one number for each of {count}")


def _check(wrong: int, whole: float, dtype: np.dtype[Any]) -> None:
    if wrong:
        raise InvalidArgumentError(
            f"p has probabilities: finite numbers from 0; {wrong} of its elements are negative or not finite"
        )
    least = float(np.sqrt(np.finfo(dtype).eps)) if dtype.kind == "f" else 0.0
    if not abs(whole - 1) <= max(_TOLERANCE, least):
        found = f"{whole:.7g}" if whole < 3.9 else "4 or more"
        raise InvalidArgumentError(f"p has the sum {found}; probabilities have the sum 1")
