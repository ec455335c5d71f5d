"""Scans from one line of text: running sums and their like."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._custom.arg_descs import TensorArg
from .._custom.selection import FunctionSelection
from .._formulas.glsl_elements import element_of
from .._functions.called import called
from .._functions.function import Function
from .elementwise import elementwise_of
from .in_parts import LinesInParts, arrays_of
from .reduction import CombiningOp, Plan, combination, made, neutral_text, tell_runs, try_samples, way_of
from .walks import (
    QUADS,
    Accs,
    Axis,
    Elements,
    Reducer,
    TooLargeError,
    Walk,
    axes_of,
    check_sizes,
    group_of,
    named,
    spread,
    values_of,
    walk_of,
    walk_run,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._custom.builder import FunctionBuilder

_SHORT = 16
"""Elements that each invocation of a workgroup takes."""
_MARKS = ("starts", "ids")


class ScanOp(CombiningOp):
    """The custom operation of a scan."""

    exclusive: ClassVar[bool]
    reverse: ClassVar[bool]
    segments: ClassVar[str]
    """The parameter that marks segments, "starts" or "ids"; "" for none."""

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the result's shape and dtype, and the runs of each variant."""
        tensors, shape, dtype = self.first_facts(ksel)
        marks = ksel.arg_tensor(self.segments) if self.segments else None
        axis = self.declare_axis(ksel)
        if marks is not None:
            self._check_marks(ksel, marks, shape)
        given = shape if axis is not None else math.prod(shape)
        for each in dtype if isinstance(dtype, tuple) else (dtype,):
            result = ksel.return_new_tensor(given, each)
        walk = self._walk(ksel, shape, [*tensors, *([marks] if marks else []), result], axis)
        self.tell_of_wraps(ksel, dtype, walk.total)
        short = group_of(ksel) * _SHORT
        tell_runs(ksel, walk, Plan(-(-max(walk.total, 1) // short), short))
        check_sizes(ksel)

    def goes_along_first(self, named: dict[str, Any], ndim: int) -> bool:
        """Whether a call with these arguments combines elements along the first axis."""
        axis = named.get("axis")
        found = axis[0] if isinstance(axis, (list, tuple)) else axis
        return found is None or found % ndim == 0

    def joined(
        self,
        operation: LinesInParts,
        named: dict[str, Any],
        parts: list[tuple[int, int, list[Any]]],
        outs: tuple[Any, ...],
        error: TooLargeError,
    ) -> None:
        """Puts the last result of each part in front of the next part's. Raises `error` if that is not kept
        (exclusive scans, segments, small floats, elements of several values), and for all axes as one.
        """
        result = outs[0]
        dtype = np.dtype(result.dtype)
        rounded = element_of(dtype).type == "float" and dtype != np.float32
        if self.exclusive or self.segments or rounded or len(outs) > 1:
            raise error
        if any(each.ndim > 1 for each in arrays_of(parts[0][2])) and named.get("axis") is None:
            raise error
        join = elementwise_of(self.reduce, "join", None, dtype)
        before: Any = None
        for start, end, part in parts[::-1] if self.reverse else parts:
            piece = result[start:end]
            operation._part(part, (piece,))
            if before is not None:
                join(a=before, b=piece, out=piece)
            before = result[start : start + 1] if self.reverse else result[end - 1 : end]

    def declare_axis(self, ksel: FunctionSelection) -> int | None:
        """Declares the axis; None scans all elements of dense tensors of one shape in a row."""
        return int(ksel.attr_int("axis").v)

    def _walk(
        self, ksel: FunctionSelection, shape: tuple[int, ...], tensors: list[TensorArg], axis: int | None
    ) -> Walk:
        if axis is None:
            count = math.prod(shape)
            return Walk((), (Axis(count, (1,) * len(tensors)),) if count != 1 else (), ())
        if not shape:
            raise InvalidArgumentError(f"{ksel.name}: a scan goes along an axis, and the arguments have none")
        return walk_of(shape, tensors, axes_of(ksel.name, [axis], len(shape)))

    def _check_marks(self, ksel: FunctionSelection, marks: TensorArg, shape: tuple[int, ...]) -> None:
        if marks.dtype.kind not in "biu":
            raise ArgumentTypeError(f"{ksel.name}: {marks.name} is of {marks.dtype}; give bools or ints")
        try:
            fits = np.broadcast_shapes(marks.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise InvalidArgumentError(
                f"{ksel.name}: {marks.name} has the shape {marks.shape}, which does not broadcast to {shape}"
            )

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel, or three: what each run amounts to, what stands before it, the scan of each."""
        map_, reducer, acc = self.parts(ksel)
        way = way_of(ksel)
        writer = _Writer(self, kb, ksel, Elements(ksel, map_, acc, ksel.special["walk"]), reducer, acc, way)
        if way not in ksel.special["several"]:
            writer.scans(False)
            return
        count = named(f"kp_runs_{way}") * named("kp_lines")
        reducer.keep(kb, "parts", count, acc)
        if self.segments:
            kb.scratch("ends", count, "uint32")
        writer.runs()
        writer.carries()
        writer.scans(True)


class _Writer:
    """The kernels of a scan. The value of what was combined so far is ``kp_s``; ``kp_some`` says whether
    there is one, and ``kp_cut`` whether a segment began within the run.
    """

    def __init__(
        self,
        op: ScanOp,
        kb: FunctionBuilder,
        ksel: FunctionSelection,
        elements: Elements,
        reducer: Reducer,
        acc: Accs,
        way: str,
    ) -> None:
        self.op, self.kb, self.variant = op, kb, ksel.variant
        self.elements, self.reducer, self.kind = elements, reducer, reducer.kind
        self.way = way
        self.group = group_of(ksel) if way == "group" else 0
        """The invocations of a workgroup that scans together; 0 for runs."""
        self.neutral = neutral_text(ksel, op.neutral, acc) if op.exclusive else reducer.zero
        self.marks = next((a for a in ksel.tensors if a.name == op.segments), None)
        every = [a for a in ksel.arg_descs if isinstance(a, TensorArg)]
        self.places = {a.name: number for number, a in enumerate([*every, ksel.results[0]])}
        self.result = ksel.results[0].name
        """They all lie in memory alike."""

    # -- pieces ----------------------------------------------------------------------------------------------

    def at(self, k: str) -> str:
        """The position along the axis of the element that comes as number `k`."""
        return f"(kp_n - 1u - ({k}))" if self.op.reverse else f"({k})"

    def get(self, k: str) -> str:
        return self.elements.get(self.at(k))

    def index(self, name: str, k: str) -> str:
        axes = self.elements.walk.along
        terms = self.elements._terms("a", axes, [self.at(k)] if axes else [], self.places[name])
        return " + ".join([f"kp_b_{name}", *terms])

    def cut(self, k: str) -> str:
        """Whether a segment begins at number `k`."""
        if self.marks is None:
            return "false"
        here = f"{self.marks.name}_load({self.index(self.marks.name, k)})"
        if self.op.segments == "ids":
            before = f"{self.marks.name}_load({self.index(self.marks.name, f'({k}) - 1u')})"
            return f"({k} == 0u || {here} != {before})"
        return here if self.marks.dtype == np.bool_ else f"({here} != 0)"

    def begin(self, name: str) -> None:
        """A dispatch over all runs, with the bounds ``kp_k`` and ``kp_e`` of each invocation."""
        kb, elements = self.kb, self.elements
        kb.begin_dispatch(name)
        self.functions()
        elements.declare(kb)
        total = named(f"kp_runs_{self.way}") * named("kp_lines")
        if self.group:
            kb.workgroup(self.group)
            spread(kb, total)
            kb.emit("uint kp_part = kp_group, kp_l = gl_LocalInvocationID.x;")
            inside = f" + kp_l * {_SHORT}u"
        else:
            kb.workgroup(64)
            spread(kb, kb.ceil_div(total, 64))
            kb.emit("uint kp_part = kp_group * 64u + gl_LocalInvocationID.x;")
            inside = ""
        kb.emit(f"if (kp_part >= {total}) return;")
        each = f"{_SHORT}u" if self.group else f"kp_each_{self.way}"
        kb.emit("uint kp_line = kp_part % kp_lines, kp_run = kp_part / kp_lines;")
        kb.emit(f"uint kp_k = min(kp_n, kp_run * kp_each_{self.way}{inside});")
        kb.emit(f"uint kp_e = min(kp_n, kp_k + {each});")
        kb.emit(elements.find())
        extra = [self.result, *([self.marks.name] if self.marks is not None else [])]
        kept = elements.walk.kept
        names = ["kp_k0", *(f"kp_k{n}_" for n in range(1, len(kept)))]
        for each_name in extra:
            terms = elements._terms("k", kept, names, self.places[each_name])
            kb.emit(f"uint kp_b_{each_name} = {' + '.join(terms) or '0u'};")

    def functions(self) -> None:
        """``kp_join`` puts what came before in front of what follows."""
        self.reducer.declare(self.kb)
        self.kb.declare(f"""
            void kp_join({self.kind} s, bool some, bool cut,
                         inout {self.kind} t, inout bool has, inout bool ends) {{
                if (some) {{
                    if (!has) t = s; else if (!ends) t = kp_r(s, t);
                    has = true;
                }}
                ends = ends || cut;
            }}""")

    def reduced(self) -> str:
        """Statements that combine the invocation's elements."""
        if self.marks is None and not self.op.reverse:
            four = self.elements.four if self.elements.quads else None
            return "bool kp_cut = false;\n" + walk_run(self.reducer, self.get, four)
        one = (
            f"{{ {self.kind} kp_v = {self.get('kp_k')}; "
            f"if ({self.cut('kp_k')}) {{ kp_some = false; kp_cut = true; }} "
            "if (kp_some) kp_s = kp_r(kp_s, kp_v); else kp_s = kp_v; kp_some = true; ++kp_k; }"
        )
        return (
            f"{self.kind} kp_s = {self.reducer.zero}; bool kp_some = false, kp_cut = false;\n"
            f"{self.turns(one)}"
        )

    def turns(self, one: str) -> str:
        """The loops over the elements of an invocation; `one` block of statements handles each."""
        four = "" if self.reducer.long else f"while (kp_e - kp_k >= 4u) {{ {one * 4} }}\n"
        return f"{four}while (kp_k < kp_e) {one}"

    def block(self) -> None:
        """The invocations of a workgroup put what their predecessors have in front of their own.
        ``kp_s0`` and ``kp_some0`` are what stands before an invocation in the workgroup.
        """
        kb, kind, group, zero = self.kb, self.kind, self.group, self.reducer.zero
        kb.declare(f"shared {kind} kp_sv[{group}]; shared bool kp_sh[{group}], kp_sc[{group}];")
        if self.variant == "subgroup":
            for name in ("basic", "ballot", "shuffle_relative"):
                kb.extension(f"GL_KHR_shader_subgroup_{name}")
            kb.emit(f"""
                for (uint d = 1u; d < gl_SubgroupSize; d *= 2u) {{
                    {kind} v = subgroupShuffleUp(kp_s, d);
                    uint state = subgroupShuffleUp((kp_some ? 1u : 0u) | (kp_cut ? 2u : 0u), d);
                    if (gl_SubgroupInvocationID >= d)
                        kp_join(v, (state & 1u) != 0u, (state & 2u) != 0u, kp_s, kp_some, kp_cut);
                }}
                kp_sv[kp_l] = kp_s; kp_sh[kp_l] = kp_some; kp_sc[kp_l] = kp_cut;
                barrier();
                // The last invocations of the subgroups before this one.
                {kind} before = {zero}; bool has = false, ends = false;
                uint own = kp_l - gl_SubgroupInvocationID;
                for (uint l = 0u; l < own; l += gl_SubgroupSize) {{
                    uint last = l + gl_SubgroupSize - 1u;
                    {kind} t = kp_sv[last]; bool th = kp_sh[last], tc = kp_sc[last];
                    kp_join(before, has, ends, t, th, tc);
                    before = t; has = th; ends = tc;
                }}
                kp_join(before, has, ends, kp_s, kp_some, kp_cut);
                barrier();
            """)
        else:
            kb.emit(f"""
                for (uint d = 1u; d < {group}u; d *= 2u) {{
                    kp_sv[kp_l] = kp_s; kp_sh[kp_l] = kp_some; kp_sc[kp_l] = kp_cut;
                    barrier();
                    if (kp_l >= d)
                        kp_join(kp_sv[kp_l - d], kp_sh[kp_l - d], kp_sc[kp_l - d], kp_s, kp_some, kp_cut);
                    barrier();
                }}
            """)
        kb.emit(f"""
            kp_sv[kp_l] = kp_s; kp_sh[kp_l] = kp_some; kp_sc[kp_l] = kp_cut;
            barrier();
            {kind} kp_s0 = {zero}; bool kp_some0 = false, kp_cut0 = false;
            if (kp_l > 0u) {{
                kp_s0 = kp_sv[kp_l - 1u]; kp_some0 = kp_sh[kp_l - 1u]; kp_cut0 = kp_sc[kp_l - 1u];
            }}
        """)

    # -- dispatches ------------------------------------------------------------------------------------------

    def runs(self) -> None:
        """Combines the elements of each run."""
        self.begin("runs")
        self.kb.emit(self.reduced())
        if self.group:
            self.block()
            self.kb.emit(f"if (kp_l < {self.group - 1}u) return;")
        ends = " ends_store(kp_part, kp_cut ? 1u : 0u);" if self.marks is not None else ""
        self.kb.emit(f"parts_store(kp_part, kp_s);{ends}")

    def carries(self) -> None:
        """Combines the runs before each run."""
        kb, kind, zero = self.kb, self.kind, self.reducer.zero
        kb.begin_dispatch("carries")
        self.functions()
        runs = f"kp_runs_{self.way}"
        at = "c * kp_lines + kp_line"
        cut = f"(ends_load({at}) != 0u)" if self.marks is not None else "false"
        if self.group:
            kb.workgroup(self.group)
            spread(kb, named("kp_lines"))
            kb.emit("uint kp_line = kp_group, kp_l = gl_LocalInvocationID.x;")
            kb.emit("if (kp_line >= kp_lines) return;")
            kb.emit(f"""
                uint each = ({runs} + {self.group - 1}u) / {self.group}u;
                uint first = min({runs}, kp_l * each), end = min({runs}, first + each);
                {kind} kp_s = {zero}; bool kp_some = false, kp_cut = false;
                for (uint c = first; c < end; ++c) {{
                    {kind} t = parts_load({at}); bool has = true, ends = {cut};
                    kp_join(kp_s, kp_some, kp_cut, t, has, ends);
                    kp_s = t; kp_some = true; kp_cut = ends;
                }}
            """)
            self.block()
        else:
            kb.workgroup(64)
            spread(kb, kb.ceil_div(named("kp_lines"), 64))
            kb.emit("uint kp_line = kp_group * 64u + gl_LocalInvocationID.x;")
            kb.emit(f"""
                if (kp_line >= kp_lines) return;
                uint first = 0u, end = {runs};
                {kind} kp_s0 = {zero}; bool kp_some0 = false, kp_cut0 = false;
            """)
        kb.emit(f"""
            for (uint c = first; c < end; ++c) {{
                {kind} t = parts_load({at}); bool has = true, ends = {cut};
                parts_store({at}, kp_s0);
                kp_join(kp_s0, kp_some0, kp_cut0, t, has, ends);
                kp_s0 = t; kp_some0 = true; kp_cut0 = ends;
            }}
        """)

    def scans(self, split: bool) -> None:
        """Writes the results, from what stands before each run."""
        kb, kind, zero = self.kb, self.kind, self.reducer.zero
        self.begin("scan")
        if self.group:
            kb.emit("uint kp_first = kp_k;")
            kb.emit(self.reduced())
            self.block()
            kb.emit("kp_k = kp_first;")
            if split:
                kb.emit(
                    "if (kp_run > 0u) kp_join(parts_load(kp_part), true, false, kp_s0, kp_some0, kp_cut0);"
                )
            kb.emit("kp_s = kp_s0; kp_some = kp_some0;")
        elif split:
            kb.emit(f"{kind} kp_s = parts_load(kp_part); bool kp_some = kp_run > 0u;")
        else:
            kb.emit(f"{kind} kp_s = {zero}; bool kp_some = false;")
        self.loop()

    def loop(self) -> None:
        """The walk that stores."""
        kb, kind = self.kb, self.kind
        quads = self.elements.quads and not self.op.reverse and not self.reducer.long
        kb.emit(f"{kind} kp_v; uint kp_j;")
        names = [each.name for each in kb.selection.results]

        def stored(k: str, element: str) -> str:
            values = values_of(element, self.reducer.acc)
            stores = (f"{name}_store(kp_j, {value});" for name, value in zip(names, values, strict=True))
            return f"kp_j = {self.index(self.result, k)}; {' '.join(stores)}"

        def step(value: str, k: str, target: str) -> str:
            """One element: `target` takes what is stored."""
            cut = "" if self.marks is None else f"if ({self.cut(k)}) kp_some = false; "
            before = f"{target} = kp_some ? kp_s : {self.neutral}; " if self.op.exclusive else ""
            after = "" if self.op.exclusive else f"{target} = kp_s; "
            some = f"if (kp_some) kp_s = kp_r(kp_s, {value}); else kp_s = {value}; kp_some = true; "
            return f"{cut}{before}{some}{after}"

        if quads:
            wide = self.result_quads()
            lines = [f"{kind} kp_p[4], kp_o[4];", "while (kp_even && kp_e - kp_k >= 4u) {"]
            lines.append(f"    {self.elements.four('kp_k', 'kp_p')}")
            lines += [f"    {step(f'kp_p[{n}]', f'kp_k + {n}u', f'kp_o[{n}]')}" for n in range(4)]
            if wide:
                lines.append(
                    f"    if ((kp_b_{self.result} & 3u) == 0u) "
                    f"{self.result}_store4((kp_b_{self.result} + kp_k) / 4u, "
                    f"{wide}(kp_o[0], kp_o[1], kp_o[2], kp_o[3]));"
                    "\n    else {"
                )
            else:
                lines.append("    {")
            lines += ["        " + stored(f"kp_k + {n}u", f"kp_o[{n}]") for n in range(4)]
            lines += ["    }", "    kp_k += 4u;", "}"]
            kb.emit("\n".join(lines))
        one = (
            f"{{ kp_v = {self.get('kp_k')}; {kind} kp_w; {step('kp_v', 'kp_k', 'kp_w')} "
            f"{stored('kp_k', 'kp_w')} ++kp_k; }}"
        )
        kb.emit(self.turns(one))

    def result_quads(self) -> str:
        """The type of four results, if one store takes them; else ""."""
        walk = self.elements.walk
        if not walk.along or walk.along[0].steps[self.places[self.result]] != 1:
            return ""
        return QUADS.get(self.kb.result(0).dtype.name, "")


@called
def scan(
    map: Any = "x",
    reduce: str = "sum",
    neutral: Any = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: str | None = None,
    associative: bool = False,
    dtype: DTypeLike | None = None,
    name: str = "scan",
    doc: str | None = None,
    preamble: str = "",
) -> Function:
    """An operation that combines each element with all before it along an axis: running sums.

    `map`, `reduce`, `neutral`, `associative` and `dtype` are as for `kp.ops.reduction`, but `reduce` need not
    be commutative, and there is a result for each value of elements with several. So recurrences are scans:
    y[n] = f[n] y[n - 1] + x[n] combines pairs of a slope and an offset (G. E. Blelloch, 1990). The operation
    takes ``axis=``, the last one by default. With `exclusive`, each result
    combines the elements before it only, and the first is `neutral`. `reverse` begins at the end of the axis.

    `segments` names how segments are marked; each is scanned by itself: with "starts", the
    operation has a last parameter `starts`, which is true where a segment begins; with "ids", a parameter
    `ids`, and a segment begins where the id is not that of the element before. Both are bools or ints that
    broadcast to the other arguments, and the order is that of the scan.

    A sum of n floats is off by no more than n roundings of the sum of the absolute values, as NumPy's cumsum.
    The variants are "run", "shared" and, for elements of one value where the device has arithmetic of
    subgroups, "subgroup".

    Raises what `kp.ops.reduction` raises, and InvalidArgumentError for an exclusive scan of a
    formula without `neutral` ("sum" and "prod" have their own).

    >>> kp.ops.scan()(np.arange(5))
    array([ 0,  1,  3,  6, 10])
    >>> kp.ops.scan("x", "max", 0, exclusive=True)(mgr.tensor([3, 1, 4, 1])).tolist()
    [0.0, 3.0, 3.0, 4.0]
    >>> recurrence = kp.ops.scan("slope = f; y = x", "slope = a.slope * b.slope; y = a.y * b.slope + b.y")
    >>> recurrence(mgr.tensor([0.5, 0.5, 0.5]), mgr.tensor([1, 1, 1]))[1].tolist()
    [1.0, 1.5, 1.75]
    >>> kp.ops.scan(segments="starts")(mgr.tensor([1, 1, 1, 1]), np.array([1, 0, 1, 0])).tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    given = dict(locals())
    for what, flag in (("exclusive", exclusive), ("reverse", reverse)):
        if not isinstance(flag, bool):
            raise ArgumentTypeError(f"scan: {what} is {shown(flag)}; give a bool")
    if segments is not None and not (isinstance(segments, str) and segments in _MARKS):
        raise InvalidArgumentError(f"scan: segments is {shown(segments)}; give 'starts' or 'ids'")
    attributes = combination("scan", map, reduce, neutral, dtype, preamble)
    try_samples("scan", reduce, attributes, associative)
    if exclusive and attributes["neutral"] is None:
        raise InvalidArgumentError(
            "scan: the first result of an exclusive scan is neutral=, which is not given"
        )
    attributes |= {"exclusive": exclusive, "reverse": reverse, "segments": segments or ""}
    if segments in attributes["formula"].names:
        raise InvalidArgumentError(f"scan: {segments} marks segments, so map cannot have it as a name")
    title = f"scan({attributes['formula'].text!r}, {reduce!r}, {exclusive}, {reverse}, {segments})"
    tail = f"{f'Tensor {segments}, ' if segments else ''}int axis=-1"
    return made(ScanOp, name, doc, tail, attributes, title)._made_by(scan, (), given)
