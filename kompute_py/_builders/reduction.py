"""Reductions from one line of text."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from .._base.arrays import to_dtype
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._base.text import nearest
from .._base.types import is_small_float
from .._base.warn import warn_once
from .._custom.arg_descs import TensorArg
from .._custom.declaration import parse
from .._custom.expressions import IntOrSize
from .._custom.formula_calls import declare_values, declared_args, types_of
from .._custom.selection import FunctionSelection
from .._formulas.conversions import conversion
from .._formulas.dtypes import FLOAT32, FLOAT64, literal
from .._formulas.formula import Formula, preambles_of
from .._formulas.glsl_elements import element_of
from .._formulas.typed import declarations_of
from .._functions.called import called
from .._functions.custom_op import CustomOp
from .._functions.function import Function
from .associativity import check
from .elementwise import elementwise_of
from .in_parts import LinesInParts, arrays_of, new_like
from .walks import (
    MOST_RUN,
    Accs,
    Elements,
    Reducer,
    TooLargeError,
    Walk,
    as_formula,
    axes_of,
    broadcast,
    check_sizes,
    element_made,
    group_of,
    named,
    number_of,
    one_each,
    spread,
    tell,
    values_of,
    walk_of,
    walk_run,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._custom.builder import FunctionBuilder
    from .._formulas.typed import Typed

_FEW_LINES = 256
_FEW_ELEMENTS = 2**18
_SUBGROUPS = frozenset(("basic", "ballot", "shuffle_relative"))


class Combination(NamedTuple):
    """How values are combined, by name."""

    text: str
    neutral: Any
    """None if there is none."""
    map: str = ""
    """Each element becomes this before; "" for itself."""


NAMES = {
    "sum": Combination("a + b", 0),
    "prod": Combination("a * b", 1),
    "min": Combination("minimum(a, b)", None),
    "max": Combination("maximum(a, b)", None),
    "any": Combination("a or b", False, "bool_(kp)"),
    "all": Combination("a and b", True, "bool_(kp)"),
}
_WIDE = ("a+b", "b+a", "a*b", "b*a")
"""Of small ints, NumPy makes sums and products with 64 bits."""


class Plan(NamedTuple):
    """The runs of a reduction by a variant."""

    runs: int
    """For each result."""
    each: int
    """Elements in a run."""


def plan_of(walk: Walk, lines_wanted: int, least: int, most: int) -> Plan:
    """Runs of a multiple of 8 elements: so many that the device is busy, none longer than `most`."""
    count = max(walk.total, 1)
    runs = min(max(1, -(-lines_wanted // max(walk.lines, 1))), max(1, count // least))
    runs = max(runs, -(-count // most))
    each = -(-count // runs)
    each = -(-each // 8) * 8
    return Plan(-(-count // each), each)


class CombiningOp(CustomOp):
    """Reductions and scans have this in common."""

    formula: ClassVar[Formula]
    reduce: ClassVar[Formula]
    wide: ClassVar[bool]
    neutral: ClassVar[Any]
    dtype: ClassVar[np.dtype[Any] | None]
    finish: ClassVar[Formula | None] = None
    """Computes the result from the combined value, `a`, and the number of elements, `n`."""
    empty: ClassVar[Any] = None
    """The result of no elements, if it is not `neutral`."""

    def wanted(self, ksel: FunctionSelection) -> np.dtype[Any] | None:
        """The dtype of the result that the call asks for; None for that of the elements."""
        return self.dtype

    def mapped(self, types: dict[str, Any], wanted: np.dtype[Any] | None) -> Formula:
        """Computes the values that are combined, if the call asks for the dtype `wanted`."""
        return self.formula

    def acc_of(
        self, types: dict[str, Any], features: frozenset[str] | None, dtype: np.dtype[Any] | None
    ) -> tuple[Any, Any]:
        """The dtypes in which values are combined, and of the result: of each value, if there are several."""
        if len(self.formula.results) > 1:
            found = tuple(self.formula.typed(types, features, dtype).dtypes.values())
            return tuple(FLOAT32 if element_of(each).type == "float" else each for each in found), found
        if dtype is None:
            (dtype,) = self.formula.typed(types, features).dtypes.values()
            if self.wide and dtype.kind in "biu" and dtype.itemsize < 8:
                wide = features is None or "shaderInt64" in features
                dtype = np.dtype(("u" if dtype.kind == "u" else "i") + ("8" if wide else "4"))
        return (FLOAT32 if element_of(dtype).type == "float" else dtype), dtype

    def parts(self, ksel: FunctionSelection) -> tuple[Typed, Reducer, Any]:
        """The typed map, what combines, and the dtype for that, or those of several values."""
        types = types_of(ksel, self.formula.names)
        wanted = self.wanted(ksel)
        acc, _ = self.acc_of(types, ksel.features, wanted)
        map_ = self.mapped(types, wanted).typed(types, ksel.features, acc, ksel.special.get("beyond", False))
        both = self.reduce.typed(self.named(self.reduce, acc), ksel.features, acc)
        return map_, Reducer(both, acc, map_), acc

    def named(self, formula: Formula, dtype: Any, count: Any = None) -> dict[str, Any]:
        """The dtypes of the names in a formula of combined elements and their number, ``n``."""
        kinds = dict.fromkeys(formula.names, dtype)
        if isinstance(dtype, tuple):
            members = self.formula.results
            kinds = {f"{side}.{m}": each for m, each in zip(members, dtype, strict=True) for side in "ab"}
        return {name: kinds[name] if name != "n" else count for name in formula.names}

    def first_facts(self, ksel: FunctionSelection) -> tuple[list[TensorArg], tuple[int, ...], Any]:
        """Declares the arguments: the tensors, their common shape, the dtypes as in `acc_of`."""
        tensors, types = declared_args(ksel, self.formula.names)
        shape = broadcast(ksel, tensors)
        _, dtype = self.acc_of(types, ksel.features, self.wanted(ksel))
        declare_values(ksel, lambda: self.parts(ksel)[0])
        return tensors, shape, dtype

    def tell_of_wraps(self, ksel: FunctionSelection, dtype: np.dtype[Any], count: int) -> None:
        """Warns if results of `count` elements may wrap because the device has no longer ints."""
        if not self.wide or dtype.kind not in "iu" or ksel.may_have("shaderInt64") or self.wanted(ksel):
            return
        (given,) = self.formula.typed(types_of(ksel, self.formula.names), ksel.features).dtypes.values()
        if given == np.bool_:
            return
        limits = np.iinfo(given)
        most = max(int(limits.max), -int(limits.min))
        if (most * count if "+" in self.reduce.text else most ** min(count, 64)) > np.iinfo(dtype).max:
            name = ksel.device["device_name"] if ksel.device is not None else "the device"
            warn_once(
                f"{ksel.name}: {given} is combined in {dtype}, because {name} lacks shaderInt64, ints of "
                '64 bits: results beyond 32 bits wrap. Give dtype="float32", or '
                f'dtype="{dtype}" if that is meant'
            )

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """Long runs on processors, workgroups elsewhere."""
        found = ["run", "shared"]
        if ksel.device is None:
            return found
        _, reducer, _ = self.parts(ksel)
        if _SUBGROUPS.issubset(ksel.device["subgroup_operations"]) and reducer.kind in (
            "float",
            "int",
            "uint",
        ):
            found.append("subgroup")
        return found if ksel.device["type"] == "cpu" else found[::-1]

    def trials(self, ksel: FunctionSelection) -> list[str]:
        """On processors only runs, but for few and short lines: barriers take too long there."""
        lines, total = number_of(ksel, "kp_lines"), number_of(ksel, "kp_n")
        many = lines > _FEW_LINES or lines * total > _FEW_ELEMENTS
        if many and ksel.device is not None and ksel.device["type"] == "cpu":
            return ["run"]
        return self.variants(ksel)


class TakesDtype(CombiningOp):
    """Mixed into a reduction or scan with the parameter ``dtype? dtype``."""

    elements: ClassVar[Formula | None] = None
    """The part that is converted to a dtype that the call names; None: the formula."""

    def select(self, ksel: FunctionSelection) -> None:
        ksel.attr_dtype("dtype")
        super().select(ksel)

    def wanted(self, ksel: FunctionSelection) -> np.dtype[Any] | None:
        """The dtype that the call asks for."""
        found: np.dtype[Any] | None = ksel.attribute("dtype")
        return self.dtype if found is None else found

    def mapped(self, types: dict[str, Any], wanted: np.dtype[Any] | None) -> Formula:
        """The elements, converted before they are combined, as NumPy does."""
        if wanted is None:
            return self.formula
        elements = self.elements or self.formula
        (given,) = elements.typed(types).dtypes.values()
        return conversion(given, wanted, "kp").of(kp=elements)


class ReductionOp(CombiningOp):
    """The custom operation of a reduction."""

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the result's shape and dtype, and the runs of each variant."""
        tensors, shape, dtype = self.first_facts(ksel)
        axis, keep = self.axes(ksel)
        axes = axes_of(ksel.name, axis, len(shape))
        walk = walk_of(shape, tensors, axes)
        if keep:
            result = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
        else:
            result = walk.rest
        if not walk.total and self.neutral is None and self.empty is None and walk.lines:
            raise InvalidArgumentError(
                f"{ksel.name}: no elements have no such value; give elements, or make a reduction with a "
                "value for none: kp.ops.reduction(..., neutral=...)"
            )
        self.tell_of_wraps(ksel, dtype, walk.total)
        for each in self.result_dtypes(dtype, ksel.features):
            ksel.return_new_tensor(result, each)
        tell_runs(ksel, walk)
        check_sizes(ksel)

    def goes_along_first(self, named: dict[str, Any], ndim: int) -> bool:
        """Whether a call with these arguments combines elements along the first axis."""
        return 0 in axes_of(self.signature, named.get("axis"), ndim)

    def joined(
        self,
        operation: LinesInParts,
        named: dict[str, Any],
        parts: list[tuple[int, int, list[Any]]],
        outs: tuple[Any, ...],
        error: TooLargeError,
    ) -> None:
        """Combines what the parts of the first axis amount to. Raises `error` for operations with kernels of
        their own, for elements of several values and for small floats, which are combined as float32.
        """
        if type(self).generate is not ReductionOp.generate or len(self.formula.results) > 1:
            raise error
        names = operation._names
        wanted = None if named.get("dtype") is None else to_dtype(named["dtype"])
        types = {
            name: getattr(named[name], "dtype", type(named[name]).__name__) for name in self.formula.names
        }
        first_stage = _stage(self.mapped(types, wanted), self.reduce, self.wide, wanted)
        arrays = arrays_of([named[name] for name in self.formula.names])
        amounts: Any = None
        for number, (_, _, part) in enumerate(parts):
            given = {name: each for name, each in zip(names, part, strict=True) if name in self.formula.names}
            found = first_stage(**given, axis=named.get("axis"), keepdims=True)
            if amounts is None:
                if element_of(found.dtype).type == "float" and found.dtype != FLOAT32:
                    raise error
                amounts = new_like(operation.__name__, arrays, (len(parts), *found.shape[1:]), found.dtype)
            amounts[number : number + 1] = found
        last_stage = _stage(Formula("x"), self.reduce, False, np.dtype(amounts.dtype))
        result = outs[0]
        how = {"axis": named.get("axis"), "keepdims": named.get("keepdims", False)}
        ending = self.ending(amounts.dtype)
        if ending is None:
            last_stage(amounts, **how, out=result)
            return
        shape = np.broadcast_shapes(*(each.shape for each in arrays))
        axes = axes_of(self.signature, named.get("axis"), len(shape))
        both = {"a": last_stage(amounts, **how), "n": float(math.prod(shape[axis] for axis in axes))}
        end = elementwise_of(ending, "finish", None, np.dtype(result.dtype))
        end(**{name: both[name] for name in ending.names}, out=result)

    def axes(self, ksel: FunctionSelection) -> tuple[Sequence[int] | None, bool]:
        """Declares the arguments `axis` and `keepdims`, and gives them."""
        return ksel.attr_list_int("axis").v, ksel.attr_bool("keepdims").v

    def ending(self, dtype: Any) -> Formula | None:
        """The formula that computes the results from combined values; None: they are the results."""
        return self.finish

    def result_dtypes(self, dtype: Any, features: frozenset[str] | None) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the results if combined values have this one, or these."""
        ending = self.ending(dtype)
        if ending is None:
            return dtype if isinstance(dtype, tuple) else (dtype,)
        count = _count_dtype(dtype, features)
        if not isinstance(dtype, tuple) and (dtype.kind == "f" or is_small_float(dtype)):
            count = dtype
        return tuple(ending.typed(self.named(ending, dtype, count), features).dtypes.values())

    def finished(self, kb: FunctionBuilder, acc: Any) -> str:
        """Statements that keep ``kp_s`` as the results of the line ``kp_line``."""
        features, results = kb.selection.features, kb.selection.results
        names = (f"{each.name}_store" for each in results)
        values = values_of("kp_s", acc)
        ending = self.ending(acc)
        if ending is None:
            return " ".join(f"{store}(kp_line, {text});" for store, text in zip(names, values, strict=True))
        count = _count_dtype(acc, features)
        dtypes = tuple(each.dtype for each in results)
        typed = ending.typed(self.named(ending, acc, count), features, dtypes)
        for extension in typed.extensions:
            kb.extension(extension)
        members = [f"a.{each}" for each in self.formula.results] if isinstance(acc, tuple) else ["a"]
        loads = dict(zip(members, values, strict=True)) | {"n": f"{element_of(count).type}(kp_n)"}
        statements, found = typed.glsl(loads, "kp_f")
        kb.declare(declarations_of(typed))
        stores = (f"{store}(kp_line, {text});" for store, text in zip(names, found.values(), strict=True))
        return " ".join(("{", *statements, *stores, "}"))

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel, or two: one for runs, one that combines what they found."""
        map_, reducer, acc = self.parts(ksel)
        walk: Walk = ksel.special["walk"]
        if not walk.total:
            self._of_nothing(kb, reducer, acc)
            return
        elements = Elements(ksel, map_, acc, walk)
        lines = Lines(kb, reducer, acc)
        lines.write(
            elements.declare,
            elements.find(),
            elements.get,
            elements.four if elements.quads else None,
            lambda: self.finished(kb, acc),
        )

    def _of_nothing(self, kb: FunctionBuilder, reducer: Reducer, acc: Any) -> None:
        """A kernel that writes the results of no elements."""
        if self.empty is not None or self.finish is None:
            given = self.neutral if self.empty is None else self.empty
            values = given if isinstance(acc, tuple) else (given,)
            dtypes = [each.dtype for each in kb.selection.results]
            # NaN in both parts, as a quotient 0 / 0 has it.
            values = [
                complex(math.nan, math.nan) if dtype.kind == "c" and value != value else value
                for value, dtype in zip(values, dtypes, strict=True)
            ]
            kb.yield_results(
                *(neutral_text(kb.selection, *each) for each in zip(values, dtypes, strict=True))
            )
            return
        kb.begin_dispatch("nothing")
        reducer.declare(kb)
        one_each(kb, named("kp_lines"), "kp_line")
        kb.emit(f"{reducer.kind} kp_s = {neutral_text(kb.selection, self.neutral, acc)};")
        # Compilers may compute with a constant, and take 0 / n for 0: this 0 is a variable.
        for value, each in zip(
            values_of("kp_s", acc), acc if isinstance(acc, tuple) else (acc,), strict=True
        ):
            kind = element_of(each).type
            kb.emit(f"{value} = {value} {'|| kp_n != 0u' if kind == 'bool' else f'+ {kind}(kp_n)'};")
        kb.emit(self.finished(kb, acc))


def neutral_text(ksel: FunctionSelection, value: Any, dtype: Accs) -> str:
    """The element of nothing in GLSL. Raises InvalidArgumentError if a dtype has no such number."""
    if isinstance(dtype, tuple):
        numbers = (neutral_text(ksel, one, each) for one, each in zip(value, dtype, strict=True))
        return element_made(numbers, dtype)
    number = value.item() if isinstance(value, np.generic) else value
    try:
        if (isinstance(number, complex) and dtype.kind != "c") or (
            dtype.kind in "iu" and int(number) != number
        ):
            raise ValueError
        return literal(number, dtype)
    except (OverflowError, ValueError):
        raise InvalidArgumentError(
            f"{ksel.name}: neutral is {shown(value)}, and {dtype} has no such number; give another one, or "
            "dtype="
        ) from None


def _count_dtype(dtype: Accs, features: frozenset[str] | None) -> np.dtype[Any]:
    """That of a number of elements in a formula with values of `dtype`."""
    if isinstance(dtype, tuple):
        return max((_count_dtype(each, features) for each in dtype), key=lambda each: each.itemsize)
    wide = dtype.itemsize >= {"c": 16, "f": 8}.get(dtype.kind, 4)
    return FLOAT64 if wide and (features is None or "shaderFloat64" in features) else FLOAT32


class Lines:
    """Writes the dispatches that combine the elements of each line: one, or two if a line has several runs.

    The second dispatch combines the runs' values, which scratch memory has.
    """

    def __init__(self, kb: FunctionBuilder, reducer: Reducer, acc: Accs, parts: str = "parts") -> None:
        self.kb, self.reducer, self.parts, self.variant = kb, reducer, parts, kb.selection.variant
        self.way = way_of(kb.selection)
        self.several = self.way in kb.selection.special["several"]
        if self.several:
            # The number of parts and its product with the lines are not constants of the kernels.
            reducer.keep(kb, parts, named(f"kp_runs_{self.way}") * named("kp_lines"), acc)

    def write(
        self,
        declare: Callable[[FunctionBuilder], None],
        find: str,
        get: Callable[[str], str],
        four: Callable[[str, str], str] | None,
        store: Callable[[], str],
        name: str = "",
    ) -> None:
        """Adds the dispatches. `declare` and `find` provide for `get` and `four`, which load elements;
        `store` gives, in the last dispatch, the statements that keep ``kp_s``, the value of ``kp_line``.
        """
        kb, reducer, several = self.kb, self.reducer, self.several
        parts = f"kp_runs_{self.way}", f"kp_each_{self.way}"
        kb.begin_dispatch(f"{name}runs")
        reducer.declare(kb)
        declare(kb)
        begin = f"""
            uint kp_line = kp_part % kp_lines;
            uint kp_k = kp_part / kp_lines * {parts[1]};
            uint kp_e = min(kp_n, kp_k + {parts[1]});
            {find}"""
        total = named(parts[0]) * named("kp_lines")
        if reducer.long:
            four = None
        keep = f"{self.parts}_store(kp_part, kp_s);"
        self._combine(total, begin, get, four, keep if several else store())
        if several:
            kb.begin_dispatch(f"{name}combine")
            reducer.declare(kb)
            begin = f"uint kp_line = kp_part, kp_k = 0u, kp_e = {parts[0]};"
            again = self.parts + "_load(({}) * kp_lines + kp_line)"
            self._combine(named("kp_lines"), begin, again.format, None, store())

    def _combine(self, total: IntOrSize, begin: str, get: Any, four: Any, target: str) -> None:
        """A kernel that combines the elements of `total` runs."""
        kb, reducer = self.kb, self.reducer
        if self.variant == "run":
            kb.workgroup(64)
            spread(kb, kb.ceil_div(total, 64))
            kb.emit("uint kp_part = kp_group * 64u + gl_LocalInvocationID.x;")
            kb.emit(f"if (kp_part >= {total}) return;")
            kb.emit(begin)
            kb.emit(walk_run(reducer, get, four))
            kb.emit(target)
            return
        group = group_of(kb.selection)
        kb.workgroup(group)
        spread(kb, total)
        kb.emit("uint kp_part = kp_group, kp_l = gl_LocalInvocationID.x;")
        kb.emit(f"if (kp_part >= {total}) return;")  # the whole workgroup
        kb.emit(begin)
        kb.emit(group_run(reducer, get, four, group))
        group_combine(kb, reducer, self.variant)
        kb.emit(f"if (kp_l == 0u) {{ {target} }}")


def group_run(reducer: Reducer, get: Any, four: Any, group: int) -> str:
    """As `walk_run`, by a workgroup: each invocation combines elements far from each other into ``kp_s``.
    ``kp_live`` is the number of invocations that have some.
    """
    kind = reducer.kind
    add = "if (kp_some) kp_s = kp_r(kp_s, kp_v); else kp_s = kp_v; kp_some = true;"
    lines = [
        f"{kind} kp_s = {reducer.zero}; bool kp_some = false;",
        f"uint kp_live = min({group}u, kp_e - kp_k), kp_i;",
    ]
    single = (
        f"for (kp_i = kp_k + kp_l; kp_i < kp_e; kp_i += {group}u) {{ {kind} kp_v = {get('kp_i')}; {add} }}"
    )
    if four is None:
        return "\n".join([*lines, single])
    lines += [
        f"if (kp_even && kp_e - kp_k >= {group * 4}u) {{",
        "    uint kp_whole = kp_k + (kp_e - kp_k) / 4u * 4u;",
        f"    for (kp_i = kp_k + kp_l * 4u; kp_i < kp_whole; kp_i += {group * 4}u) {{",
        f"        {kind} kp_p[4]; {four('kp_i', 'kp_p')}",
        f"        {kind} kp_v = {reducer.tree([f'kp_p[{n}]' for n in range(4)])}; {add}",
        "    }",
        f"    if (kp_whole + kp_l < kp_e) {{ {kind} kp_v = {get('kp_whole + kp_l')}; {add} }}",
        f"}} else {single}",
    ]
    return "\n".join(lines)


def group_combine(kb: FunctionBuilder, reducer: Reducer, variant: str) -> None:
    """Combines ``kp_s`` of the first ``kp_live`` invocations into that of invocation 0."""
    kind, group = reducer.kind, group_of(kb.selection)
    kb.declare(f"shared {kind} kp_shared[{group}];")
    if variant == "subgroup":
        for name in ("basic", "ballot", "shuffle_relative"):
            kb.extension(f"GL_KHR_shader_subgroup_{name}")
        kb.emit(f"""
            kp_live = max(kp_live, 1u);
            bool kp_has = kp_l < kp_live;
            for (uint kp_d = 1u; kp_d < gl_SubgroupSize; kp_d *= 2u) {{
                {kind} kp_v = subgroupShuffleDown(kp_s, kp_d);
                uvec4 kp_full = subgroupBallot(kp_has);
                uint kp_other = gl_SubgroupInvocationID + kp_d;
                if (kp_other < gl_SubgroupSize && subgroupBallotBitExtract(kp_full, kp_other)) {{
                    if (kp_has) kp_s = kp_r(kp_s, kp_v);
                }}
            }}
            uvec4 kp_full = subgroupBallot(kp_has);
            bool kp_filled = subgroupBallotBitExtract(kp_full, 0u);
            if (gl_SubgroupInvocationID == 0u) {{
                kp_shared[gl_SubgroupID] = kp_s;
                kp_holds[gl_SubgroupID] = kp_filled;
            }}
            barrier();
            if (kp_l == 0u)
                for (uint kp_d = 1u; kp_d < gl_NumSubgroups; ++kp_d)
                    if (kp_holds[kp_d]) kp_s = kp_r(kp_s, kp_shared[kp_d]);
        """)
        kb.declare(f"shared bool kp_holds[{group}];")
        return
    kb.emit(f"""
        kp_shared[kp_l] = kp_s;
        for (uint kp_d = {group // 2}u; kp_d > 0u; kp_d /= 2u) {{
            barrier();
            if (kp_l < kp_d && kp_l + kp_d < kp_live)
                kp_shared[kp_l] = kp_r(kp_shared[kp_l], kp_shared[kp_l + kp_d]);
        }}
        kp_s = kp_shared[0];
    """)


def way_of(ksel: FunctionSelection) -> str:
    """Who takes a run by the chosen variant: an invocation, "run", or a workgroup, "group"."""
    return "run" if ksel.variant == "run" else "group"


def tell_runs(ksel: FunctionSelection, walk: Walk, group: Plan | None = None) -> None:
    """Declares the numbers of a walk and of its runs; `group` is the plan of those of workgroups."""
    tell(ksel, walk)
    group = group or plan_of(walk, 1024, 4096, MOST_RUN)
    plans = {"run": plan_of(walk, 1024, 1024, MOST_RUN), "group": group}
    for name, plan in plans.items():
        ksel.value(f"kp_runs_{name}", plan.runs, "uint32")
        ksel.value(f"kp_each_{name}", plan.each, "uint32")
    ksel.specialize(several=[name for name, plan in plans.items() if plan.runs > 1])


def combination(
    what: str,
    map_: Any,
    reduce: Any,
    neutral: Any,
    dtype: DTypeLike | None,
    preamble: str,
    finish: Any = None,
) -> dict[str, Any]:
    """The attributes of the operation's class.

    Raises what `reduction` raises.
    """
    mapped = as_formula(f"{what}: map", map_, preamble, several=True)
    members = mapped.results if len(mapped.results) > 1 else ()
    if not isinstance(reduce, str):
        raise ArgumentTypeError(
            f"{what}: reduce is {shown(reduce)}; give an expression of a and b, or a name"
        )
    known = NAMES.get(reduce)
    if known is not None and members:
        raise InvalidArgumentError(
            f"{what}: map has the values {', '.join(members)}, so reduce is an expression for each: "
            f"{'; '.join(f'{each} = ...' for each in members)}"
        )
    if known is not None:
        neutral = known.neutral if neutral is None else neutral
        if known.map:
            mapped = Formula(known.map).of(kp=mapped)
    elif reduce.isidentifier():
        raise InvalidArgumentError(
            f"{what}: reduce is {reduce!r}{nearest(reduce, NAMES)} The names are {', '.join(NAMES)}; or "
            "give an expression of a and b"
        )
    both = as_formula(f"{what}: reduce", known.text if known else reduce, preamble, members, several=True)
    if members:
        _check_members(what, both, members, neutral)
    elif len(both.results) > 1:
        raise InvalidArgumentError(
            f"{what}: reduce has {len(both.results)} results, and map has one; give as many, by the same "
            "names"
        )
    elif set(both.names) != {"a", "b"}:
        raise InvalidArgumentError(
            f"{what}: reduce is {reduce!r}, with the names {', '.join(both.names)}; combine a and b, "
            "which are values of map"
        )
    for each in neutral if members and neutral is not None else (neutral,):
        if each is not None and not isinstance(each, (bool, int, float, complex, np.generic)):
            raise ArgumentTypeError(f"{what}: neutral is {shown(neutral)}; give a number")
    if not mapped.names:
        raise InvalidArgumentError(
            f"{what}: map has no names, so there is nothing to combine: {mapped.text!r}"
        )
    ended = _finish(what, finish, preamble, members)
    preambles_of(mapped, both, *([ended] if ended else []))
    return {
        "formula": mapped,
        "reduce": both,
        "wide": "".join(both.text.split()) in _WIDE,
        "neutral": neutral,
        "dtype": None if dtype is None else to_dtype(dtype),
        "finish": ended,
    }


def _check_members(what: str, both: Formula, members: tuple[str, ...], neutral: Any) -> None:
    """Checks `reduce` of elements with several values, and puts its results in the map's order."""
    if set(both.results) != set(members):
        raise InvalidArgumentError(
            f"{what}: reduce has the results {', '.join(both.results)}, and map has {', '.join(members)}; "
            "give the same"
        )
    names = {f"{side}.{each}" for side in "ab" for each in members}
    if not set(both.names) <= names:
        raise InvalidArgumentError(
            f"{what}: reduce is {both.text!r}, with the names {', '.join(both.names)}; combine the values "
            f"{', '.join(sorted(names))}"
        )
    if neutral is not None and (not isinstance(neutral, (tuple, list)) or len(neutral) != len(members)):
        raise ArgumentTypeError(
            f"{what}: neutral is {shown(neutral)}; give a tuple of numbers, for {', '.join(members)}"
        )
    both.outputs = {each: both.outputs[each] for each in members}


def _finish(what: str, finish: Any, preamble: str, members: tuple[str, ...]) -> Formula | None:
    if finish is None:
        return None
    found = as_formula(f"{what}: finish", finish, preamble, members, several=True)
    values = {f"a.{each}" for each in members} or {"a"}
    if not set(found.names) <= values | {"n"} or not values & set(found.names):
        raise InvalidArgumentError(
            f"{what}: finish is {found.text!r}, with the names {', '.join(found.names) or 'none'}; it "
            f"computes the result from {', '.join(sorted(values))}, the combined value, and n, the number of "
            "elements"
        )
    return found


def try_samples(what: str, reduce: str, attributes: dict[str, Any], associative: bool) -> None:
    """Warns of a combination whose order matters, unless it is said to be associative."""
    if not isinstance(associative, bool):
        raise ArgumentTypeError(f"{what}: associative is {shown(associative)}; give a bool")
    if not associative and reduce not in NAMES:
        check(what, attributes["formula"], attributes["reduce"], what == "reduction")


@functools.lru_cache(64)
def _stage(formula: Formula, reduce: Formula, wide: bool, dtype: np.dtype[Any] | None) -> Function:
    """The reduction of parts, or of what they amount to."""
    attributes = {
        "formula": formula,
        "reduce": reduce,
        "wide": wide,
        "neutral": None,
        "dtype": dtype,
        "finish": None,
    }
    tail = "*, int[]? axis=None, bool keepdims=False"
    return made(ReductionOp, "reduction", None, tail, attributes, "reduction")


def made(
    base: type[CombiningOp], name: str, doc: str | None, tail: str, attributes: dict[str, Any], title: str
) -> Function:
    """The operation of a class with these attributes."""
    if doc is not None and not isinstance(doc, str):
        raise ArgumentTypeError(f"{title}: doc is {shown(doc)}; give a str or None")
    parameters = ", ".join(f"Tensor|Scalar {each}" for each in attributes["formula"].names)
    ended = attributes["finish"] or attributes["formula"]
    results = ", ".join(f"Tensor {each}" for each in ended.results)
    signature = f"{name}({parameters}, {tail}) -> {f'({results})' if len(ended.results) > 1 else 'Tensor'}"
    declaration = parse(signature)
    body = {**attributes, "signature": signature, "__doc__": doc or title, "__qualname__": title}
    return LinesInParts(type(name, (base,), body)(), declaration)


@called
def reduction(
    map: Any = "x",
    reduce: str = "sum",
    neutral: Any = None,
    *,
    finish: Any = None,
    associative: bool = False,
    dtype: DTypeLike | None = None,
    name: str = "reduction",
    doc: str | None = None,
    preamble: str = "",
) -> Function:
    """An operation that combines elements over axes: ``reduction("x * y", "a + b", 0)``.

    `map` computes the values that are combined, from the arguments: an expression as in `kp.ops.elementwise`,
    with NumPy's broadcasting and dtypes, or such an operation. `reduce` combines two of its values, `a` and
    `b`: an expression, which must be associative and commutative, or "sum", "prod", "min", "max", "any" or
    "all". `neutral` is the combination of no elements. `finish` computes the result from the combined value
    `a` and the number of elements `n`, a float: the mean's is "a / n".

    Elements may have several values: `map` names them, ``"value = x; index = k"``. `reduce` then computes
    each of them from ``a.value``, ``b.value`` and so on, `neutral` is a tuple, and the results are tensors in
    the order of the names, or what `finish` computes from ``a.value``, ...: one result, or several with
    names. Such values have NumPy's dtypes, and `dtype` is that of all.

    Elements are combined in parts: with an expression that is not associative, results depend on how many
    elements and which device there are. So samples are tried when the operation is made, on the host, and a
    KomputeWarning shows numbers for which the order matters. With `associative`, nothing is tried.

    The operation takes ``axis=``, None for all (the default), an int or several, and ``keepdims=``. Its
    result has the dtype of `map`, but for sums and products of ints and bools with fewer than 64 bits: these
    have 64 if the device has such ints, else 32. float16 is combined in float32. `dtype` says another
    dtype, for values and result. "min" and "max" of elements with NaN are NaN.

    A sum of floats is off by no more than 800 roundings (each 2**-24 for float32) of the sum of the absolute
    values, however many they are. The order of combination depends on the shapes, the device and the variant.
    The variants are "run", "shared" and, for elements of one value where the device has arithmetic of
    subgroups, "subgroup".

    Raises FormulaError for a text that cannot be read, InvalidArgumentError for names that do not fit,
    ArgumentTypeError for wrong types. Calls raise InvalidArgumentError for an axis that the shape does not
    have, no elements without `neutral`, and arguments beyond what shaders of the device reach, and what calls
    of `kp.ops.elementwise` raise.

    >>> widest = kp.ops.reduction("low = x; high = x", "low = min(a.low, b.low); high = max(a.high, b.high)",
    ...     finish="a.high - a.low")
    >>> widest(np.array([3, -1, 4])).item()
    5
    >>> dot = kp.ops.reduction("x * y", "a + b", 0)
    >>> dot(np.arange(4.0, dtype=np.float32), np.float32(2))
    array(12., dtype=float32)
    >>> kp.ops.reduction(reduce="max")(mgr.tensor([[1, 5], [7, 2]]), axis=0).tolist()
    [7.0, 5.0]
    """
    given = dict(locals())
    attributes = combination("reduction", map, reduce, neutral, dtype, preamble, finish)
    try_samples("reduction", reduce, attributes, associative)
    title = f"reduction({attributes['formula'].text!r}, {reduce!r})"
    operation = made(ReductionOp, name, doc, "*, int[]? axis=None, bool keepdims=False", attributes, title)
    return operation._made_by(reduction, (), given)
