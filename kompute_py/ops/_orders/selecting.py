"""Selection: the element that a sort would put at a place, without the sort.

Runs of a line count the digits of its elements, the highest digit first; a workgroup for each line finds the
digit of the element that is sought. The next digit is counted among the elements that share those before
(H. Mahmoud, "Sorting: A Distribution Theory", 2000, chapter 7; T. Alabi et al., "Fast k-selection algorithms
for graphics processing units", 2012). The counters also tell how many elements of each run come before, so
one more pass over the elements stores them in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._builders.walks import group_of, named, one_each, spread
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from .keys import Key
from .merging import MOST_MERGED, merge, scratch_for_merge
from .radix import BLOCK, ITEMS, Radix, SortOp, add_blocks, add_digits, blocks_of, in_fours

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

LEAST = 1024
"""Elements of a line that is worth a selection."""
_MOST_FOUND = {"run": MOST_MERGED, "subgroup": 1024}
"""Elements that are sorted by one dispatch after a selection. More are sorted by digits."""


class SelectOp(SortOp):
    """An operation that needs a part of a sorted line only."""

    sorts = True
    """Whether the elements up to the sought one are stored in their order: `store` gets each of them. Else
    all elements are stored, those before it first."""

    def tell_selection(
        self, ksel: FunctionSelection, x: TensorArg, axis: int, count: int, stored: int
    ) -> None:
        """Declares the numbers of the kernels; the sought element is number `count`, from 1 on."""
        n = x.shape[axis]
        lines = x.size // n if n else 0
        ways = []
        for way, most in _MOST_FOUND.items():
            worth = n >= LEAST and (not self.sorts or 4 * count <= n)
            merged = way == "run" and lines >= 16 and n <= MOST_MERGED
            if worth and count and not merged:
                ways.append(way if count <= most or not self.sorts else f"{way}_many")
        ksel.specialize(selects=ways)
        self.tell(ksel, x, axis, stored)
        ksel.value("kp_count", count, "uint32")
        self.tell_runs(ksel, count, lines, "found_")

    def write(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        way = ksel.variant or "run"
        if {way, f"{way}_many"} & set(ksel.special["selects"]):
            _Selection(self, ksel, kb, key).write()
        else:
            super().write(ksel, kb, key)


class _Selection:
    """The kernels of a selection."""

    def __init__(self, op: SelectOp, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        self.op, self.ksel, self.kb, self.key = op, ksel, kb, key
        self.way = ksel.variant or "run"
        self.size = 8 if self.way == "run" else op._group(ksel)
        self.runs = named(f"kp_runs_{self.way}") * named("kp_lines")
        self.blocks = kb.ceil_div(named(f"kp_runs_{self.way}"), BLOCK) * named("kp_lines")
        self.in_blocks = self.way != "run" and ksel.special["blocks"]

    def write(self) -> None:
        """All dispatches."""
        kb, key = self.kb, self.key
        lines = named("kp_lines")
        kb.scratch("digits", self.runs * 256, "uint32")
        kb.scratch("before", self.runs * 2, "uint32")
        kb.scratch("prefixes", lines, key.dtype)
        kb.scratch("needs", lines * 2, "uint32")
        kb.scratch("pass", 4, "uint32")
        if self.in_blocks:
            kb.scratch("digit_blocks", self.blocks * 256, "uint32")
        if self.op.sorts:
            kb.scratch("found", lines * named("kp_count"), key.dtype)
            kb.scratch("spots", lines * named("kp_count"), "uint32")
        kb.begin_dispatch("begin")
        one_each(kb, lines, "line")
        kb.emit(f"""
            if (line == 0u) pass_store(0u, 0u);
            prefixes_store(line, {key.type}(0));
            needs_store(line * 2u, kp_count);
        """)
        if key.bits == 64:
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        for _ in range(key.passes):
            self.count()
            self.choose()
        self.tally()
        self.add_up()
        if self.way == "run":
            self.collect_run()
        else:
            self.collect_group()
        if f"{self.way}_many" in self.ksel.special["selects"]:
            _OfFound(self.op, self.ksel, kb, key, True).write()
        elif self.op.sorts:
            self.sort()

    def begin(self, name: str, bits: bool = True) -> None:
        """A dispatch over all runs: ``kp_run``, its line, and its elements from ``kp_k`` to ``kp_e``."""
        kb, way = self.kb, self.way
        kb.begin_dispatch(name)
        if bits:
            self.key.declare_bits(kb)
            self.key.declare_order(kb, self.op.descending(self.ksel))
        elif self.key.bits == 64:
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        kb.workgroup(self.size)
        if way == "run":
            spread(kb, kb.ceil_div(self.runs, self.size))
            kb.emit(f"uint kp_run = kp_group * {self.size}u + gl_LocalInvocationID.x;")
        else:
            spread(kb, self.runs)
            kb.emit("uint kp_run = kp_group, kp_l = gl_LocalInvocationID.x;")
        kb.emit(f"""
            if (kp_run >= {self.runs}) return;
            uint kp_line = kp_run / kp_runs_{way}, kp_counts = kp_run * 256u;
            uint kp_first = {self.op.at("0u")};
            uint kp_k = min(kp_n, kp_run % kp_runs_{way} * kp_each_{way});
            uint kp_e = min(kp_n, kp_k + kp_each_{way});
        """)

    def load(self, k: str) -> str:
        """The bits of element `k` of the line."""
        return self.key.to_raw.format(f"{self.op.keys}_load(kp_first + ({k}) * kp_step)")

    def count(self) -> None:
        """How often each digit is in a run, among the elements with the digits that are found. Those below
        the digit that was found last are added up before their counters are cleared."""
        kb, kind, bits = self.kb, self.key.type, self.key.bits
        self.begin("count")
        kb.emit(f"""
            uint kp_pass = pass_load(0u), kp_shift = {bits - 8}u - kp_pass * 8u;
            {kind} kp_prefix = prefixes_load(kp_line);
        """)
        match = f"(kp_pass == 0u || (o >> ((kp_shift + 8u) & {bits - 1}u)) == kp_prefix)"
        digit = "uint(o >> kp_shift) & 255u"
        if self.way == "subgroup":
            kb.declare("shared uint kp_sums[256], kp_below;")
            kb.emit(f"""
                if (kp_l == 0u) kp_below = 0u;
                barrier();
                for (uint d = kp_l; d < 256u; d += {self.size}u) {{
                    kp_sums[d] = 0u;
                    if (kp_pass > 0u && d < (uint(kp_prefix) & 255u))
                        atomicAdd(kp_below, digits_load(kp_counts + d));
                }}
                barrier();
                if (kp_l == 0u)
                    before_store(kp_run * 2u, kp_below + (kp_pass == 0u ? 0u : before_load(kp_run * 2u)));
                for (uint k = kp_k + kp_l; k < kp_e; k += {self.size}u) {{
                    {kind} o = kp_order({self.load("k")});
                    if ({match}) atomicAdd(kp_sums[{digit}], 1u);
                }}
                barrier();
                for (uint d = kp_l; d < 256u; d += {self.size}u) digits_store(kp_counts + d, kp_sums[d]);
            """)
            return
        add = f"uint c = kp_counts + ({digit}); digits_store(c, digits_load(c) + 1u);"
        kb.emit("""
            uint below = kp_pass == 0u ? 0u : before_load(kp_run * 2u);
            uint last = kp_pass == 0u ? 0u : uint(kp_prefix) & 255u;
            for (uint d = 0u; d < last; ++d) below += digits_load(kp_counts + d);
            before_store(kp_run * 2u, below);
            for (uint d = 0u; d < 64u; ++d) digits_store4(kp_run * 64u + d, uvec4(0u));
        """)
        use = f"{{ {kind} o = kp_order(R); if ({match}) {{ {add} }} }}"
        kb.emit(in_fours(f"{kind} R = {self.load('K')};", use))

    def choose(self) -> None:
        """The digit of each line's sought element, and its number among those with that digit."""
        kb, kind = self.kb, self.key.type
        counts, runs, group = "digits", f"kp_runs_{self.way}", group_of(self.ksel)
        if self.in_blocks:
            kb.begin_dispatch("blocks")
            kb.workgroup(group)
            spread(kb, self.blocks)
            add_blocks(kb, counts, runs, "digit_blocks", group)
            counts, runs = "digit_blocks", blocks_of(runs)
        kb.begin_dispatch("choose")
        if self.key.bits == 64:
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        kb.workgroup(group)
        spread(kb, named("kp_lines"))
        kb.emit("uint need = needs_load(min(kp_group, kp_lines - 1u) * 2u);")
        use = f"""
            if (kp_group == 0u && d == 0u) pass_store(0u, pass_load(0u) + 1u);
            if (sum >= need && sum - own < need) {{
                needs_store(kp_group * 2u, need - (sum - own));
                prefixes_store(kp_group, prefixes_load(kp_group) << 8 | {kind}(d));
            }}
        """
        add_digits(kb, counts, runs, group, use)  # all have read `need` before one of them writes it

    def tally(self) -> None:
        """How many elements of each run come before the sought one, and how many are equal."""
        kb = self.kb
        self.begin("tally", bits=False)
        one = "if (kp_l != 0u) return;" if self.way == "subgroup" else ""
        kb.emit(f"""
            {one}
            uint last = uint(prefixes_load(kp_line)) & 255u, below = before_load(kp_run * 2u);
            for (uint d = 0u; d < last; ++d) below += digits_load(kp_counts + d);
            before_store(kp_run * 2u, below);
            before_store(kp_run * 2u + 1u, digits_load(kp_counts + last));
        """)

    def add_up(self) -> None:
        """The same of all runs before each, and of the line."""
        kb, group = self.kb, group_of(self.ksel)
        kb.begin_dispatch("add up")
        kb.workgroup(group)
        spread(kb, named("kp_lines"))
        kb.declare(f"shared uint kp_low[{group}], kp_same[{group}];")
        runs = f"kp_runs_{self.way}"
        kb.emit(f"""
            if (kp_group >= kp_lines) return;
            uint d = gl_LocalInvocationID.x, first = kp_group * {runs};
            uint each = ({runs} + {group - 1}u) / {group}u;
            uint begin = min({runs}, d * each), end = min({runs}, begin + each), low = 0u, same = 0u;
            for (uint run = begin; run < end; ++run) {{
                low += before_load((first + run) * 2u);
                same += before_load((first + run) * 2u + 1u);
            }}
            uint own = low, mine = same;
            for (uint step = 1u; step < {group}u; step *= 2u) {{
                kp_low[d] = low; kp_same[d] = same;
                barrier();
                if (d >= step) {{ low += kp_low[d - step]; same += kp_same[d - step]; }}
                barrier();
            }}
            if (d == {group - 1}u) needs_store(kp_group * 2u + 1u, same);
            low -= own; same -= mine;
            for (uint run = begin; run < end; ++run) {{
                uint at = (first + run) * 2u, some = before_load(at), equal = before_load(at + 1u);
                before_store(at, low); before_store(at + 1u, same);
                low += some; same += equal;
            }}
        """)

    def put(self, k: str, raw: str) -> str:
        """Statements that store element `k`, after `low` ones that come before the sought one and `same` ones
        that are equal to it, and count it."""
        op = self.op
        if op.sorts:
            return f"""
                if (o < kth || (o == kth && same < need)) {{
                    uint to = kp_line * kp_count + (o < kth ? low : kp_count - need + same);
                    found_store(to, {raw}); spots_store(to, {k});
                }}
                if (o < kth) ++low; else if (o == kth) ++same;
            """
        to = f"(o < kth ? low : o == kth ? under + same : under + every + {k} - low - same)"
        return f"""
            {{ uint to = {to}; {op.store(self.ksel, self.key, "kp_line", "to", k, raw)} }}
            if (o < kth) ++low; else if (o == kth) ++same;
        """

    def known(self) -> str:
        """Statements that load what is known of the line, and of the runs before."""
        return f"""
            {self.key.type} kth = prefixes_load(kp_line);
            uint need = needs_load(kp_line * 2u), every = needs_load(kp_line * 2u + 1u);
            uint under = kp_count - need;
            uint low = before_load(kp_run * 2u), same = before_load(kp_run * 2u + 1u);
        """

    def collect_run(self) -> None:
        """Each run stores its elements."""
        kb, kind = self.kb, self.key.type
        self.begin("collect")
        kb.emit(self.known())
        put = f"{{ uint k = K; {kind} o = kp_order(R); {self.put('k', 'R')} }}"
        kb.emit(in_fours(f"{kind} R = {self.load('K')};", put))

    def collect_group(self) -> None:
        """As `collect_run`, by a workgroup: each invocation has some of the run's elements in line."""
        kb, kind, size = self.kb, self.key.type, self.size
        self.begin("collect")
        kb.declare(f"shared uint kp_low[{size}], kp_same[{size}];")
        kb.emit(f"""
            {self.known()}
            uint begin = min(kp_e, kp_k + kp_l * {ITEMS}u), end = min(kp_e, begin + {ITEMS}u);
            uint some = 0u, equal = 0u;
            for (uint k = begin; k < end; ++k) {{
                {kind} o = kp_order({self.load("k")});
                if (o < kth) ++some; else if (o == kth) ++equal;
            }}
            uint own = some, mine = equal;
            for (uint step = 1u; step < {size}u; step *= 2u) {{
                kp_low[kp_l] = some; kp_same[kp_l] = equal;
                barrier();
                if (kp_l >= step) {{ some += kp_low[kp_l - step]; equal += kp_same[kp_l - step]; }}
                barrier();
            }}
            low += some - own; same += equal - mine;
            for (uint k = begin; k < end; ++k) {{
                {kind} r = {self.load("k")}, o = kp_order(r);
                {self.put("k", "r")}
            }}
        """)

    def sort(self) -> None:
        """Sorts what was found."""
        kb, key, op = self.kb, self.key, self.op
        total = named("kp_lines") * named("kp_count")
        if self.way == "run":
            scratch_for_merge(kb, key, True, total)
        kb.begin_dispatch("sort")
        key.declare_bits(kb)
        key.declare_order(kb, op.descending(self.ksel))

        def store(rank: str, number: str, raw: str) -> str:
            place = f"spots_load(kp_line * kp_count + {number})"
            return op.store(self.ksel, key, "kp_line", rank, place, raw)

        if self.way == "run":
            kb.workgroup(8)
            spread(kb, kb.ceil_div(named("kp_lines"), 8))
            kb.emit("""
                uint kp_line = kp_group * 8u + gl_LocalInvocationID.x, kp_at = kp_line * kp_count;
                if (kp_line >= kp_lines) return;
            """)
            merge(
                kb,
                key,
                True,
                "found_load(kp_at + ({}))",
                "kp_lines * kp_count",
                store("kp_t", "kp_p", "kp_r"),
            )
            return
        one_each(kb, total, "e")
        kb.emit(f"""
            uint kp_line = e / kp_count, i = e % kp_count, rank = 0u;
            {key.type} raw = found_load(e), own = kp_order(raw);
            for (uint k = 0u; k < kp_count; ++k) {{
                {key.type} t = kp_order(found_load(kp_line * kp_count + k));
                if (t < own || (t == own && k < i)) ++rank;
            }}
            {store("rank", "i", "raw")}
        """)


class _OfFound(Radix):
    """The radix sort of what was found."""

    n = "kp_count"
    length = "kp_count"
    of = "found_"
    gathers = True

    def load(self) -> None:
        self.each("load", self.n)
        if self.key.bits == 64:
            self.kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        self.kb.emit("keys0_store(kp_e, found_load(kp_e)); if (kp_e == 0u) state_store(0u, 0u);")

    def store(self, source: int) -> None:
        """The results, with the places in the whole line."""
        self.each("store", self.n)
        self.key.declare_bits(self.kb)
        place = f"spots_load(kp_line * kp_count + places{source}_load(kp_e))"
        raw = f"keys{source}_load(kp_e)"
        self.kb.emit(self.op.store(self.ksel, self.key, "kp_line", "kp_i", place, raw))
