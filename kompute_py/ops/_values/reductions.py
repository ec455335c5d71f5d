"""Reductions by NumPy's names: sums, extremes and their places, means and deviations, norms."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._base.errors import InvalidArgumentError
from ..._builders.elementwise import formula
from ..._builders.in_parts import LinesInParts
from ..._builders.reduction import Lines, ReductionOp, TakesDtype, combination, made
from ..._builders.walks import Elements, Reducer, axes_of, named
from ..._custom.arg_descs import TensorArg
from ..._custom.declaration import parse
from ..._custom.expressions import IntOrSize
from ..._custom.selection import FunctionSelection
from ..._formulas.conversions import conversion
from ..._formulas.dtypes import PART_OF
from ..._formulas.formula import Formula
from ..._formulas.glsl_elements import element_of
from ..._functions.function import Function

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_TAIL = "int[]? axis=None, *, bool keepdims=False"
_TYPED_TAIL = "int[]? axis=None, dtype? dtype=None, *, bool keepdims=False"
_ERRORS = """
    Raises InvalidArgumentError for an axis that the shape does not have or for arguments beyond what shaders
    of the device reach, ArgumentTypeError for dtypes without such values."""
_AXES = ":axes: any, several, None for all; ``keepdims=``"
_REAL = "(a - 0.0)"
"""Elements as they are, ints as floats. A quotient by 1 would be a function of many instructions on GPUs."""
_SUM_ERROR = "800 roundings of the sum of absolute values"


def _doc(summary: str, more: str, example: str, dtypes: str, error: str, axes: str = _AXES) -> str:
    lines = [summary, more, _ERRORS, example, f":dtypes: {dtypes}\n{axes}\n:error: {error}"]
    return "\n\n".join(
        "\n".join(line.strip() for line in part.strip().splitlines()) for part in lines if part
    )


def _reduced(
    name: str,
    map_: str,
    reduce: str,
    neutral: Any,
    doc: str,
    finish: str | None = None,
    empty: Any = None,
    *,
    kind: type[ReductionOp] = ReductionOp,
    tail: str = _TAIL,
) -> Function:
    attributes = combination(f"kp.ops.{name}", map_, reduce, neutral, None, "", finish)
    return made(kind, name, doc, tail, {**attributes, "empty": empty}, f"kp.ops.{name}")


def operation_of(kind: type[ReductionOp], name: str, doc: str, signature: str, **attributes: Any) -> Function:
    """The operation of a class of reductions."""
    text = f"{name}({signature}) -> Tensor"
    members = {**attributes, "signature": text, "__doc__": doc, "__qualname__": f"kp.ops.{name}"}
    return LinesInParts(type(name, (kind,), members)(), parse(text))


class _Typed(TakesDtype, ReductionOp):
    """A reduction that takes a dtype."""


class _Mean(_Typed):
    """The sum by the number of elements; means that are ints lose their fraction, as NumPy's."""

    elements = Formula("a")

    def ending(self, dtype: np.dtype[Any]) -> Formula | None:
        """The quotient; of longer ints one of float64, which has their digits."""
        if dtype.kind not in "biu":
            return self.finish
        quotient = Formula("a / n" if dtype.itemsize < 4 else "float64(a) / n")
        return conversion("float", dtype, "a").of(a=quotient)


class _Pair(Reducer):
    """Combines values together with their places: the better value, of equal ones the first; NaN is best."""

    nan = "p && (first || !q)"
    """Whether a is taken if p or q, which say that a or b is NaN."""

    def __init__(self, dtype: np.dtype[Any], better: str) -> None:
        self.acc = dtype
        self.type = element_of(dtype).type
        self.better = better
        # The type of both together, the value of such a pair, and the pair of a value v and a place k.
        self.kind, self.value, self.pair = {
            "float": ("uvec2", "uintBitsToFloat(p.x)", "uvec2(floatBitsToUint(v), k)"),
            "double": ("dvec2", "p.x", "dvec2(v, double(k))"),
            "int": ("ivec2", "p.x", "ivec2(v, int(k))"),
            "int64_t": ("i64vec2", "p.x", "i64vec2(v, int64_t(k))"),
            "uint64_t": ("u64vec2", "p.x", "u64vec2(v, uint64_t(k))"),
            "vec2": ("uvec3", "uintBitsToFloat(p.xy)", "uvec3(floatBitsToUint(v), k)"),
            "dvec2": ("dvec3", "p.xy", "dvec3(v, double(k))"),
        }.get(self.type, ("uvec2", "p.x", "uvec2(uint(v), k)"))
        self.shown = "uint" if self.type == "bool" else self.type
        self.is_kept = False

    def keep(self, kb: FunctionBuilder, name: str, count: IntOrSize, acc: Any) -> None:
        kb.scratch(f"{name}_value", count, "uint32" if self.type == "bool" else acc)
        kb.scratch(f"{name}_place", count, "uint32")
        self.is_kept = True

    def declare(self, kb: FunctionBuilder) -> None:
        if self.kind in ("i64vec2", "u64vec2"):
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        is_complex = self.type in ("vec2", "dvec2")
        nan = "any(isnan(x))" if is_complex else "isnan(x)" if self.type in ("float", "double") else "false"
        better = (
            f"x.x == y.x ? x.y {self.better} y.y : x.x {self.better} y.x"
            if is_complex
            else f"x {self.better} y"
        )
        kb.declare(f"""
            {self.shown} kp_value({self.kind} p) {{ return {self.value}; }}
            uint kp_place({self.kind} p) {{ return uint(p.{"z" if is_complex else "y"}); }}
            {self.kind} kp_pair({self.type} v, uint k) {{ return {self.pair}; }}
            bool kp_nan({self.shown} x) {{ return {nan}; }}
            {self.kind} kp_r({self.kind} a, {self.kind} b) {{
                {self.shown} x = kp_value(a), y = kp_value(b);
                bool first = kp_place(a) < kp_place(b), p = kp_nan(x), q = kp_nan(y);
                if (p || q) return {self.nan} ? a : b;
                if (x == y) return first ? a : b;
                return ({better}) ? a : b;
            }}""")
        if self.is_kept:
            load = "parts_value_load(i) != 0u" if self.type == "bool" else "parts_value_load(i)"
            kb.declare(f"""
                {self.kind} parts_load(uint i) {{ return kp_pair({load}, parts_place_load(i)); }}
                void parts_store(uint i, {self.kind} p) {{
                    parts_value_store(i, kp_value(p));
                    parts_place_store(i, kp_place(p));
                }}""")


class ArgOp(ReductionOp):
    """argmin and argmax: `better` is "<" or ">"."""

    better: ClassVar[str]
    pair: ClassVar[type[_Pair]] = _Pair
    best: ClassVar[Function]
    """Gives the values themselves."""
    formula = Formula("a")
    reduce = Formula("maximum(a, b)")
    wide, neutral, dtype = False, None, None

    def parts(self, ksel: FunctionSelection) -> tuple[Any, Reducer, np.dtype[Any]]:
        """The typed argument, the pairs, the dtype of the values."""
        map_, _, acc = super().parts(ksel)
        return map_, self.pair(acc, self.better), acc

    def first_facts(self, ksel: FunctionSelection) -> tuple[list[TensorArg], tuple[int, ...], np.dtype[Any]]:
        tensor = ksel.arg_tensor("a")
        wide = ksel.may_have("shaderInt64")
        return [tensor], tensor.shape, np.dtype(np.int64 if wide else np.int32)

    def select(self, ksel: FunctionSelection) -> None:
        """As other reductions, over one axis or all."""
        super().select(ksel)
        axis = ksel.attribute("axis")
        if axis is not None and len(axis) > 1:
            raise InvalidArgumentError(f"{ksel.name}: axis is {list(axis)}; give one axis, or None for all")

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the kernels of a reduction of pairs."""
        map_, reducer, acc = self.parts(ksel)
        elements = Elements(ksel, map_, acc, ksel.special["walk"])
        result = element_of(ksel.results[0].dtype).type
        Lines(kb, reducer, acc).write(
            elements.declare,
            elements.find(),
            lambda k: f"kp_pair({elements.get(k)}, {k})",
            None,
            lambda: f"result_store(kp_line, {result}(kp_place(kp_s)));",
        )

    def joined(
        self, operation: LinesInParts, named: dict[str, Any], parts: Any, outs: tuple[Any, ...], error: Any
    ) -> None:
        """The place in the first of the parts with the best value."""
        which = {"axis": named.get("axis"), "keepdims": named.get("keepdims", False)}
        step = math.prod(parts[0][2][0].shape[1:]) if which["axis"] is None else 1
        if parts[-1][1] * step > np.iinfo(outs[0].dtype).max:
            raise error
        for start, _, (a, *_) in parts:
            value, place = type(self).best(a, **which), operation(a, **which)
            if not start:
                most, at = value, place
                continue
            nan = "isnan(x) & ~isnan(y)" if self.pair.nan != _Pair.nan else "isnan(y) & ~isnan(x)"
            better = f"(y {self.better} x) | ({nan})"
            at = formula(f"where({better}, q + n, p)", at.dtype.name)(
                y=value, x=most, q=place, n=start * step, p=at
            )
            most = formula(f"where({better}, y, x)", most.dtype.name)(y=value, x=most)
        formula("p")(at, out=outs[0])


class MomentOp(_Typed):
    """Means of squared distances from the mean, in two passes; `root` for their square root. Those of complex
    numbers are real.
    """

    root: ClassVar[bool]
    formula, elements = Formula(_REAL), Formula("a")
    reduce = Formula("a + b")
    wide, neutral, dtype, empty = False, 0, None, math.nan

    def first_facts(self, ksel: FunctionSelection) -> tuple[list[TensorArg], tuple[int, ...], np.dtype[Any]]:
        ksel.arg_float("ddof")
        tensors, shape, dtype = super().first_facts(ksel)
        if dtype.kind in "biu":
            raise InvalidArgumentError(f"{ksel.name}: dtype is {dtype}; give one of floats")
        return tensors, shape, dtype

    def result_dtypes(self, dtype: Any, features: frozenset[str] | None) -> tuple[np.dtype[Any], ...]:
        return (PART_OF.get(dtype, dtype),)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the passes: the mean of each line, then the sum of squares."""
        map_, reducer, acc = self.parts(ksel)
        walk = ksel.special["walk"]
        if not walk.total:
            self._of_nothing(kb, reducer, acc)
            return
        elements = Elements(ksel, map_, acc, walk)
        kind = reducer.kind
        lines = Lines(kb, reducer, acc)
        kb.scratch("means", named("kp_lines"), acc)
        part = PART_OF.get(acc, acc)
        real = element_of(part).type
        sums = lines
        if part != acc:
            both = self.reduce.typed(dict.fromkeys("ab", part), ksel.features, part)
            sums = Lines(kb, Reducer(both, part), part, "distances")
        find = elements.find()
        four = elements.four if elements.quads else None
        mean = f"means_store(kp_line, kp_s / {real}(kp_n));"
        lines.write(elements.declare, find, elements.get, four, lambda: mean, "mean_")

        def declare(kb: FunctionBuilder) -> None:
            elements.declare(kb)
            product = "x * x" if part == acc else "x.x * x.x + x.y * x.y"
            kb.declare(f"{real} kp_square({kind} x) {{ return {product}; }}")

        def squares(k: str, into: str) -> str:
            each = " ".join(f"{into}[{n}] = kp_square({into}[{n}] - kp_mean);" for n in range(4))
            return f"{elements.four(k, into)} {each}"

        of = f"kp_s / max({real}(kp_n) - {real}(ddof), {real}(0))"
        sums.write(
            declare,
            f"{find}\n{kind} kp_mean = means_load(kp_line);",
            lambda k: f"kp_square({elements.get(k)} - kp_mean)",
            squares if four and part == acc else None,
            lambda: f"result_store(kp_line, {f'sqrt({of})' if self.root else of});",
            "square_",
        )

    def joined(
        self, operation: LinesInParts, named: dict[str, Any], parts: Any, outs: tuple[Any, ...], error: Any
    ) -> None:
        """Both passes in parts."""
        a, axis, result = named["a"], named.get("axis"), np.dtype(outs[0].dtype)
        middle = mean(a, axis, named.get("dtype"), keepdims=True)
        squares = _distances(a, middle, axis, keepdims=named.get("keepdims", False))
        count = math.prod(a.shape[each] for each in axes_of(operation.__name__, axis, len(a.shape)))
        left = builtins.max(count - named.get("ddof", 0.0), 0.0)
        formula("sqrt(s / n)" if self.root else "s / n", result.name)(squares, left, out=outs[0])


class NormOp(ReductionOp):
    """Norms of vectors: `ord` is known when the kernel is written."""

    wide, dtype = False, None
    formula = Formula("a")
    reduce = Formula("a + b")
    neutral = 0

    def select(self, ksel: FunctionSelection) -> None:
        self._of(ksel, ksel.attr_float("ord").v).select(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        self._of(ksel, ksel.attribute("ord")).generate(ksel, kb)

    def variants(self, ksel: FunctionSelection) -> list[str]:
        return self._of(ksel, ksel.attribute("ord")).variants(ksel)

    def joined(
        self, operation: LinesInParts, named: dict[str, Any], parts: Any, outs: tuple[Any, ...], error: Any
    ) -> None:
        """As the reduction of this order."""
        of_complex = np.dtype(named["a"].dtype).kind == "c"
        _norm_of(named["ord"], of_complex).joined(operation, named, parts, outs, error)

    def _of(self, ksel: FunctionSelection, order: float) -> ReductionOp:
        if math.isnan(order):
            raise InvalidArgumentError(f"{ksel.name}: ord is {order}; give a number")
        given = ksel.spec_of("a")
        return _norm_of(order, given is not None and given.dtype.kind == "c")


def _norm(map_: str, reduce: str, finish: str | None) -> ReductionOp:
    attributes = combination("kp.ops.vector_norm", map_, reduce, 0, None, "", finish)
    return type(
        "vector_norm", (ReductionOp,), {**attributes, "signature": "vector_norm(Tensor|Scalar a) -> Tensor"}
    )()


_NORMS = {
    2.0: (f"{_REAL} * {_REAL}", "a + b", "sqrt(a)"),
    1.0: (f"absolute({_REAL})", "a + b", None),
    math.inf: (f"absolute({_REAL})", "maximum(a, b)", None),
    -math.inf: (f"absolute({_REAL})", "minimum(a, b)", None),
    0.0: (f"where(a != 0, 1, absolute({_REAL}))", "a + b", None),
}


@functools.lru_cache(64)
def _norm_of(order: float, of_complex: bool) -> ReductionOp:
    """The norm of an order."""
    found = _NORMS.get(order)
    map_, reduce, finish = found or (f"absolute({_REAL}) ** {order!r}", "a + b", f"a ** {1 / order!r}")
    if of_complex:  # they are floats already
        map_ = "_r = absolute(a); _r * _r" if order == 2 else map_.replace(_REAL, "a")
    return _norm(map_, reduce, finish)


class DotOp(ReductionOp):
    """The product of vectors."""

    def axes(self, ksel: FunctionSelection) -> tuple[Sequence[int] | None, bool]:
        return None, False

    def first_facts(self, ksel: FunctionSelection) -> tuple[list[TensorArg], tuple[int, ...], np.dtype[Any]]:
        """Declares the arguments: vectors of one length."""
        shapes = {name: getattr(ksel.spec_of(name), "shape", ()) for name in "ab"}
        if len(set(shapes.values())) > 1 or len(shapes["a"]) != 1:
            raise InvalidArgumentError(
                f"{ksel.name}: the shapes are a {shapes['a']} and b {shapes['b']}; give vectors of one "
                "length. kp.ops.matmul multiplies matrices"
            )
        return super().first_facts(ksel)


_MANY = "all; complex numbers by real parts, then by imaginary ones"
_FLOATS = "all; ints and bools give float64, float32 on devices without it"

sum: Function = _reduced(
    "sum",
    "a",
    "sum",
    None,
    _doc(
        "The sum of elements over axes.",
        """Ints and bools with fewer than 64 bits are summed in int64 or uint64 (32 bits on devices without),
        float16 in float32. The sum of no elements is 0; that of zeros is 0.0 or -0.0.

        `dtype` names another dtype. Elements are converted to it before they are added, as in NumPy: ints
        wrap, float32 to float16 is rounded, floats to ints lose their fraction (beyond the range they become
        its nearest end, as `astype` has it). Complex numbers are not converted to real ones unasked. On a
        device without ints of 64 bits, a KomputeWarning names sums and products of ints that may wrap.""",
        """>>> kp.ops.sum(mgr.tensor([[1, 2], [3, 4]]), axis=0).tolist()
        [4.0, 6.0]""",
        "all",
        f"{_SUM_ERROR}; exact for ints",
    ),
    kind=_Typed,
    tail=_TYPED_TAIL,
)
prod: Function = _reduced(
    "prod",
    "a",
    "prod",
    None,
    _doc(
        "The product of elements over axes.",
        """Small ints and bools are multiplied as `sum` adds them; `dtype` names another dtype, as there. The
        product of no elements is 1.""",
        """>>> kp.ops.prod(mgr.tensor([1, 2, 3])).item()
        6.0""",
        "all",
        "a rounding for each element (complex: 4); exact for ints",
    ),
    kind=_Typed,
    tail=_TYPED_TAIL,
)
min: Function = _reduced(
    "min",
    "a",
    "min",
    None,
    _doc(
        "The least element over axes; NaN if there is one.",
        "Of 0.0 and -0.0, and of several complex numbers with NaN, it is either.",
        """>>> kp.ops.min(mgr.tensor([[1, 5], [7, 2]]), axis=1).tolist()
        [1.0, 2.0]""",
        _MANY,
        "exact",
    ),
)
max: Function = _reduced(
    "max",
    "a",
    "max",
    None,
    _doc(
        "The greatest element over axes; NaN if there is one.",
        "Of 0.0 and -0.0, and of several complex numbers with NaN, it is either.",
        """>>> kp.ops.max(mgr.tensor([[1, 5], [7, 2]]), axis=1).tolist()
        [5.0, 7.0]""",
        _MANY,
        "exact",
    ),
)
any: Function = _reduced(
    "any",
    "a",
    "any",
    None,
    _doc(
        "Whether an element over axes is not zero. NaN is not zero.",
        "",
        """>>> bool(kp.ops.any(mgr.tensor([0, 2])))
        True""",
        "all",
        "exact",
    ),
)
all: Function = _reduced(
    "all",
    "a",
    "all",
    None,
    _doc(
        "Whether no element over axes is zero. NaN is not zero.",
        "",
        """>>> bool(kp.ops.all(mgr.tensor([0, 2])))
        False""",
        "all",
        "exact",
    ),
)
count_nonzero: Function = _reduced(
    "count_nonzero",
    "bool_(a)",
    "sum",
    None,
    _doc(
        "How many elements over axes are not zero: int64, or int32 on devices without.",
        "",
        """>>> int(kp.ops.count_nonzero(mgr.tensor([0, 2, 3])))
        2""",
        "all",
        "exact",
    ),
)
mean: Function = _reduced(
    "mean",
    _REAL,
    "sum",
    None,
    _doc(
        "The mean of elements over axes; NaN of no elements.",
        """`dtype` names the dtype of the sum and the result, as for `sum`. Means that are ints lose their
        fraction, as NumPy's; those of 32 bits or more need a device with float64.""",
        """>>> kp.ops.mean(mgr.tensor([[1, 2], [3, 4]]), axis=0).tolist()
        [2.0, 3.0]""",
        "all; ints and bools give float64, float32 on devices without it",
        "800 roundings of the mean of absolute values",
    ),
    "a / n",
    math.nan,
    kind=_Mean,
    tail=_TYPED_TAIL,
)


def _moment(name: str, summary: str, root: bool, error: str) -> Function:
    doc = _doc(
        f"{summary} over axes; NaN of no elements.",
        """Two passes: the mean, then the mean of squared distances from it. They are divided by the number of
        elements less `ddof`. `dtype` names a dtype of floats or complex numbers, to which elements are
        converted before. The variance of complex numbers is real, also where NumPy gives it a complex dtype
        that the call names.""",
        f""">>> kp.ops.{name}(mgr.tensor([1, 3]), ddof=1).item()
        {"1.4142135381698608" if root else "2.0"}""",
        _FLOATS,
        error,
    )
    return operation_of(
        MomentOp,
        name,
        doc,
        "Tensor|Scalar a, int[]? axis=None, dtype? dtype=None, *, float ddof=0.0, bool keepdims=False",
        root=root,
    )


_distances = _reduced("distances", "_d = absolute(a - m); _d * _d", "sum", None, "")
var: Function = _moment(
    "var", "The variance of elements", False, "2,000 roundings of the variance and of the mean's square"
)
std: Function = _moment(
    "std", "The standard deviation of elements", True, "half of the relative error of `var`"
)


def _place(name: str, which: str, better: str, best: Function, shown: str) -> Function:
    doc = _doc(
        f"The position of the {which} element along an axis, or among all elements.",
        """The first of equal ones; the first NaN if there is one. Complex numbers are ordered by real parts,
        then by imaginary ones. The result is int64, int32 on devices without.""",
        f""">>> int(kp.ops.{name}(mgr.tensor([3, 1, 4, 1, 4])))
        {shown}""",
        "all",
        "exact",
        ":axes: one, None for all; ``keepdims=``",
    )
    tail = "Tensor a, int[]? axis=None, *, bool keepdims=False"
    return operation_of(ArgOp, name, doc, tail, better=better, best=best)


argmin: Function = _place("argmin", "least", "<", min, "1")
argmax: Function = _place("argmax", "greatest", ">", max, "2")
vector_norm: Function = operation_of(
    NormOp,
    "vector_norm",
    _doc(
        "The norm of vectors along axes, as ``np.linalg.vector_norm``.",
        """The sum of absolute values to the power of `ord`, to the power of ``1 / ord``: 2 is the root of the
        sum of squares. inf is the greatest absolute value, -inf the least, and 0 the number of elements that
        are not 0. Several axes are one vector; `kp.ops.matrix_norm` has norms of matrices.""",
        """>>> kp.ops.vector_norm(mgr.tensor([3, 4])).item()
        5.0""",
        "all; ints and bools give float64, float32 on devices without it",
        "800 roundings of the norm (other orders than 0, 1, 2, inf: 5e-4, float64 1e-12); powers beyond the "
        "dtype's range are inf",
    ),
    "Tensor|Scalar a, float ord=2.0, int[]? axis=None, *, bool keepdims=False",
)
dot: Function = operation_of(
    DotOp,
    "dot",
    _doc(
        "The sum of products of two vectors of one length.",
        "",
        """>>> kp.ops.dot(mgr.tensor([1, 2]), mgr.tensor([3, 4])).item()
        11.0""",
        "all",
        "800 roundings of the sum of absolute products; exact for ints",
        ":axes: vectors",
    ),
    "Tensor|Scalar a, Tensor|Scalar b",
    **{**combination("kp.ops.dot", "a * b", "a + b", 0, None, ""), "wide": False},  # as np.dot
)
