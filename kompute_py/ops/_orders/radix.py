"""A stable radix sort by digits of 8 bits, from the lowest on.

Lines of up to 256 elements are sorted by rank: an invocation for each element counts those before it. Longer
ones take three dispatches for each digit. Runs of a line count their digits; the counts become the places
where each run's elements with each digit go; each run moves its elements in their order. In the variant
"run" an invocation has a run, and its counters are in memory; in "subgroup" a workgroup has one, its
invocations find equal digits by ballots, and other workgroups add up the counts of 64 runs each, if there are
more (D. Merrill and A. Grimshaw, "High performance and scalable radix sorting", 2011; A. Adinets and
D. Merrill, "Onesweep", 2022, without its look-back, which needs more than Vulkan's promises of progress). In
"run", many lines of up to 4,096 elements are merged instead, each by an invocation (`_merging`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..._base.errors import InvalidArgumentError
from ..._builders.walks import (
    IN_PARTS,
    ON_HOST,
    axes_of,
    check_sizes,
    filled,
    group_of,
    named,
    one_each,
    spread,
)
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._functions.custom_op import CustomOp
from .keys import Key, key_of
from .merging import MOST_MERGED, merge, scratch_for_merge

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_SHORT = 256
"""Elements of a line that is sorted by rank."""
_MANY = 16
"""Lines that keep the invocations of a processor busy."""
_MOST = 2**16
"""Elements of a run: each invocation's turns stay below 65,535, after which llvmpipe ends loops."""
_RUNS = 256
"""Runs that a processor is busy with."""
_SEVERAL_SIZES = (0x8086, 0x5143)
"""The vendors of GPUs that run kernels with smaller subgroups than they name, unless a size is asked for:
Intel and Qualcomm."""
ITEMS = 16
"""Elements that an invocation of a workgroup takes."""
BLOCK = 64
"""Runs of workgroups that are added up by one, if there are more. One alone would read all counters."""
_AT_ONCE = 16
"""Counters that an invocation loads before it needs them."""


def in_fours(load: str, use: str) -> str:
    """Statements for the elements from ``kp_k`` to ``kp_e``: four are loaded, then used. In them ``K`` is
    the element's number, and ``R`` and ``P`` are names of its own.
    """
    every = [{"K": f"kp_k + {n}u", "R": f"r{n}", "P": f"p{n}"} for n in range(4)]
    return f"""
        for (; kp_e - kp_k >= 4u; kp_k += 4u) {{
            {" ".join(filled(load, **each) for each in every)}
            {" ".join(filled(use, **each) for each in every)}
        }}
        for (; kp_k < kp_e; ++kp_k) {{ {filled(load, **every[0])} {filled(use, **every[0])} }}
    """


def _each_digit(group: int) -> str:
    """Begins what a group does for each digit ``d``; a small group does it several times."""
    first = "uint d = gl_LocalInvocationID.x;"
    return f"{{ {first}" if group == 256 else f"for ({first} d < 256u; d += {group}u) {{"


def add_digits(kb: FunctionBuilder, counts: str, runs: str, group: int, use: str) -> None:
    """The dispatch, begun, with a workgroup for each line: `use` is for each digit ``d``. There, ``own`` is
    how often its runs have the digit, and ``sum`` is that of all digits up to it.
    """
    kb.declare(f"shared uint kp_sums[{group}];")
    several = group < 256
    kb.emit(f"""
        if (kp_group >= kp_lines) return;
        {"uint kp_lower = 0u;" * several}
        {_each_digit(group)}
            {filled(_DIGITS, COUNTS_load=f"{counts}_load", RUNS=runs, GROUP=f"{group}u")}
            {"sum += kp_lower;" * several}
            {use}
            {filled(_LOWER, GROUP=f"{group}u") * several}
        }}
    """)


def blocks_of(runs: str) -> str:
    """The number of blocks of so many runs, in kernels."""
    return f"(({runs} + {BLOCK - 1}u) / {BLOCK}u)"


def over_digits(kb: FunctionBuilder, runs: str, group: int, use: str) -> None:
    """The dispatch, begun, with a workgroup for each block of runs, ``kp_group``: `use` is for each digit
    ``d``. There, its counters are from ``at`` on, for the runs from ``run`` to ``end``.
    """
    parts = blocks_of(runs)
    begun = filled(_BLOCK_RUNS, PARTS=parts, RUNS=runs)
    kb.emit(f"""
        uint line = kp_group / {parts};
        if (line >= kp_lines) return;
        {_each_digit(group)} {begun} {use} }}
    """)


def add_blocks(kb: FunctionBuilder, counts: str, runs: str, blocks: str, group: int) -> None:
    """The dispatch, begun, that adds up the runs of each block, as `add_digits` takes them, into `blocks`."""
    sums = " + ".join(f"{counts}_load(at + {n * 256}u)" for n in range(_AT_ONCE))
    use = f"""
        uint sum = 0u;
        for (; end - run >= {_AT_ONCE}u; run += {_AT_ONCE}u, at += {_AT_ONCE * 256}u) sum += {sums};
        for (; run < end; ++run, at += 256u) sum += {counts}_load(at);
        {blocks}_store(kp_group * 256u + d, sum);
    """
    over_digits(kb, runs, group, use)


_BLOCK_RUNS = f"""
    uint run = kp_group % PARTS * {BLOCK}u, end = min(RUNS, run + {BLOCK}u);
    uint at = (line * RUNS + run) * 256u + d;
"""
_DIGITS = """
    uint first = kp_group * RUNS * 256u + d, sum = 0u, run = 0u;
    for (; RUNS - run >= 4u; run += 4u) {
        uint at = first + run * 256u;
        sum += COUNTS_load(at) + COUNTS_load(at + 256u) + COUNTS_load(at + 512u) + COUNTS_load(at + 768u);
    }
    for (; run < RUNS; ++run) sum += COUNTS_load(first + run * 256u);
    uint own = sum;
    for (uint step = 1u, l = gl_LocalInvocationID.x; step < GROUP; step *= 2u) {
        kp_sums[l] = sum;
        barrier();
        if (l >= step) sum += kp_sums[l - step];
        barrier();
    }
"""
_LOWER = """
    if (gl_LocalInvocationID.x == GROUP - 1u) kp_sums[0] = sum;
    barrier();
    kp_lower = kp_sums[0];
    barrier();
"""


class SortOp(CustomOp):
    """Sorts have this in common."""

    moves_places = True
    """Whether the elements' places are wanted, too."""
    keys = "x"
    """The parameter that is sorted."""
    merges = True
    """Whether many short lines may be merged: `store` then uses nothing else of a sort's memory."""

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """Long runs on processors, workgroups elsewhere."""
        device = ksel.device
        if device is None or device["type"] == "cpu" or self._subgroup_size(ksel) is None:
            return ["run"]
        if not {"basic", "ballot"}.issubset(device["subgroup_operations"]):
            return ["run"]
        return ["subgroup", "run"]

    def begin(self, ksel: FunctionSelection, axis: int) -> tuple[TensorArg, int]:
        """Declares the keys: these, and the axis from 0 on."""
        x = ksel.arg_tensor(self.keys)
        if not x.ndim:
            raise InvalidArgumentError(
                f"{ksel.name}: {x.name} has no axes; a sort goes along an axis: give x.reshape(1)"
            )
        (axis,) = axes_of(ksel.name, [axis], x.ndim)
        key_of(ksel, x.dtype)
        return x, axis

    def tell(self, ksel: FunctionSelection, x: TensorArg, axis: int, stored: int, way: str = "") -> None:
        """Declares the numbers of the kernels. `stored` elements of each line are stored. `way` names the
        kernels, where they are others than those of `write`."""
        n = x.shape[axis]
        step = math.prod(x.shape[axis + 1 :])
        lines = x.size // n if n else 0
        if x.size >= 2**31:
            raise InvalidArgumentError(
                f"{ksel.name}: {x.name} has {x.size} elements; a sort takes fewer than 2**31"
            )
        most = 2**32 if ksel.device is None else ksel.device["limits"]["maxStorageBufferRange"]
        wanted = x.size * max(key_of(ksel, x.dtype).bits // 8, 4)
        short = n <= _SHORT and not way
        merged = self.merges and lines >= _MANY and n <= MOST_MERGED and 2 * wanted <= most
        way = way or f"{'merge or ' * merged}{'rank' if short else 'radix'}"
        ksel.specialize(sort=way)
        self.tell_runs(ksel, n, lines)
        for name, number in (("n", n), ("step", step), ("lines", lines), ("stored", stored)):
            ksel.value(f"kp_{name}", number, "uint32")
        by_lines = axis > 0 and lines > 1
        way = IN_PARTS if by_lines else f"A line is not sorted in parts: compute it {ON_HOST}"
        check_sizes(ksel, way)
        if wanted > most and not short:
            raise InvalidArgumentError(
                f"{ksel.name}: {x.name} has {x.size} elements; their keys take {wanted} bytes, and "
                f"shaders of this device reach {most} through one binding (maxStorageBufferRange). "
                f"{way}"
            )

    def tell_runs(self, ksel: FunctionSelection, n: int, lines: int, of: str = "") -> None:
        """Declares the runs of `lines` of `n` elements."""
        tile = self._group(ksel) * ITEMS
        each = {"run": max(512, min(_MOST, -(-n * lines // _RUNS))), "subgroup": tile}
        for name, count in each.items():
            count = -(-count // 4) * 4
            ksel.value(f"kp_each_{of}{name}", count, "uint32")
            ksel.value(f"kp_runs_{of}{name}", -(-n // count), "uint32")
        ksel.specialize(**{f"{of}blocks": n > tile * BLOCK})

    def _subgroup_size(self, ksel: FunctionSelection) -> int | None:
        """The invocations that subgroups have for certain; None if they differ. The variant shares out
        elements by that."""
        device = ksel.device
        if device is None:
            return 4
        least, most = device["subgroup_sizes"]
        if ksel.has("subgroupSizeControl") and ksel.has("computeFullSubgroups"):
            return min(max(device["subgroup_size"], least), most)
        return device["subgroup_size"] if device["vendor_id"] not in _SEVERAL_SIZES else None

    def _group(self, ksel: FunctionSelection) -> int:
        """Invocations of a workgroup: at most 16 subgroups."""
        return min(group_of(ksel), 16 * (self._subgroup_size(ksel) or 16))

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        """Statements that store the element that comes to `rank`."""
        raise NotImplementedError

    def descending(self, ksel: FunctionSelection) -> bool:
        """Whether the highest elements come first."""
        return bool(next(a.v for a in ksel.arg_descs if a is not None and a.name == "descending"))

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel for short lines, or those of each digit."""
        self.write(ksel, kb, key_of(ksel, kb.arg_value(self.keys).dtype))

    def write(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        """As `generate`. The keys may be scratch memory that earlier dispatches fill. Where `store` follows
        an even number of digits, the sorted bits are ``keys0`` and the elements' places ``places0``."""
        way = ksel.special["sort"]
        if ksel.variant != "subgroup" and "merge" in way:
            self._by_merge(ksel, kb, key)
        elif "rank" in way:
            self._by_rank(ksel, kb, key)
        else:
            Radix(self, ksel, kb, key, self.moves_places).write()

    def at(self, k: str, line: str = "kp_line", length: str = "kp_n") -> str:
        """The number of element `k` of a line."""
        return f"({line} / kp_step * kp_step * {length} + {line} % kp_step + ({k}) * kp_step)"

    def _by_merge(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        places = self.moves_places
        scratch_for_merge(kb, key, places, named("kp_lines") * named("kp_n"))
        kb.begin_dispatch("merge")
        key.declare_bits(kb)
        key.declare_order(kb, self.descending(ksel))
        kb.workgroup(8)
        spread(kb, kb.ceil_div(named("kp_lines"), 8))
        kb.emit(f"""
            uint kp_line = kp_group * 8u + gl_LocalInvocationID.x;
            if (kp_line >= kp_lines) return;
            uint kp_count = kp_n, kp_at = kp_line * kp_n, kp_first = {self.at("0u")};
        """)
        load = key.to_raw.format(f"{self.keys}_load(kp_first + ({{}}) * kp_step)")
        store = self.store(ksel, key, "kp_line", "kp_t", "kp_p", "kp_r")
        out = f"if (kp_t < kp_stored) {{ {store} }}"
        merge(kb, key, places, load, "kp_lines * kp_n", out)

    def _by_rank(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        total = named("kp_lines") * named("kp_n")
        x = self.keys
        key.declare_bits(kb)
        key.declare_order(kb, self.descending(ksel))
        one_each(kb, total, "kp_e")

        def load(k: str) -> str:
            return key.to_raw.format(f"{x}_load({self.at(k)})")

        before = (
            f"{{ {key.type} t = kp_order({load('k')}); "
            "rank += t < own || (t == own && k < kp_i) ? 1u : 0u; ++k; }"
        )
        kb.emit(f"""
            uint kp_line = kp_e / kp_n, kp_i = kp_e % kp_n, rank = 0u, k = 0u;
            {key.type} raw = {load("kp_i")}, own = kp_order(raw);
            while (kp_n - k >= 4u) {{ {before * 4} }}
            while (k < kp_n) {before}
            if (rank < kp_stored) {{ {self.store(ksel, key, "kp_line", "rank", "kp_i", "raw")} }}
        """)


class Radix:
    """The kernels of a radix sort of longer lines."""

    n = "kp_n"
    """The elements of a line that there is memory for, in the kernels and on the host."""
    length = "kp_n"
    """The elements of a line, in the kernels."""
    of = ""
    """The part of the names of the numbers of runs."""
    gathers = False
    """Whether `load` and `store` have dispatches of their own. Else the first digit is that of the arguments'
    elements, and the last one's move stores the results."""

    def __init__(
        self, op: SortOp, ksel: FunctionSelection, kb: FunctionBuilder, key: Key, places: bool, more: int = 0
    ) -> None:
        self.op, self.ksel, self.kb, self.key = op, ksel, kb, key
        self.way = ksel.variant or "run"
        self.more = more
        """Digits that come after those of the keys, of the numbers in ``segments``."""
        self.places = places or more > 0
        # With one digit, a move would read and write at once what may be the same memory.
        self.direct = op.merges and not self.gathers and key.passes > 1
        self.line_runs = f"kp_runs_{self.of}{self.way}"
        self.runs = named(self.line_runs) * named("kp_lines")
        self.blocks = kb.ceil_div(named(self.line_runs), BLOCK) * named("kp_lines")
        self.in_blocks = self.way != "run" and ksel.special[f"{self.of}blocks"]

    def write(self) -> None:
        """All dispatches. Those of every second digit are the same: the number of the digit is in memory."""
        kb = self.kb
        total = named("kp_lines") * named(self.n)
        count = self.key.passes + self.more
        for number in range(1, 2) if self.direct and count == 2 else range(2):
            kb.scratch(f"keys{number}", total, self.key.dtype)
            if self.places:
                kb.scratch(f"places{number}", total, "uint32")
        kb.scratch("counts", self.runs * 256, "uint32")
        kb.scratch("state", 4, "uint32")
        if self.in_blocks:
            kb.scratch("blocks", self.blocks * 256, "uint32")
        if not self.direct:
            self.load()
        for number in range(count):
            source, target = (str(each % 2) for each in (number, number + 1))
            if self.direct:
                source, target = source if number else "", target if number + 1 < count else ""
            if self.way == "run":
                self.count_run(source)
                self.carry()
                self.move_run(source, target)
            else:
                self.count_group(source)
                self.carry()
                self.move_group(source, target)
        if not self.direct:
            self.store(count % 2)

    def each(self, name: str, count: str) -> None:
        """A dispatch with an invocation for each of `lines` times `count`: ``kp_line`` and ``kp_i``."""
        kb = self.kb
        total = named("kp_lines") * named(count)
        kb.begin_dispatch(name)
        one_each(kb, total, "kp_e")
        kb.emit(f"uint kp_line = kp_e / {count}, kp_i = kp_e % {count};")

    def load(self) -> None:
        """The bits of each element, line after line."""
        self.each("load", "kp_n")
        raw = self.key.to_raw.format(f"{self.op.keys}_load({self.op.at('kp_i')})")
        self.key.declare_bits(self.kb)
        self.kb.emit(f"keys0_store(kp_e, {raw}); if (kp_e == 0u) state_store(0u, 0u);")

    def store(self, source: int) -> None:
        """The results, from the sorted keys."""
        self.each("store", "kp_stored")
        at = "kp_line * kp_n + kp_i"
        place = f"places{source}_load({at})" if self.places else "0u"
        text = self.op.store(self.ksel, self.key, "kp_line", "kp_i", place, f"keys{source}_load({at})")
        self.key.declare_bits(self.kb)
        self.kb.emit(text)

    def digit(self, raw: str, place: str) -> str:
        key = self.key
        found = f"(uint(kp_order({raw}) >> kp_shift) & 255u)"
        if self.more:
            found = (
                f"(kp_pass < {key.passes}u ? {found} : "
                f"segments_load({place}) >> ((kp_pass - {key.passes}u) * 8u) & 255u)"
            )
        return found

    def raw(self, source: str, k: str) -> str:
        """The bits of element `k` of the line."""
        if source:
            return f"keys{source}_load(kp_first + {k})"
        return self.key.to_raw.format(f"{self.op.keys}_load(kp_from + ({k}) * kp_step)")

    def place(self, source: str, k: str) -> str:
        """Where it was before the sort."""
        if not source:
            return k
        found = f"places{source}_load(kp_first + {k})"
        return found if self.direct else f"(kp_pass == 0u ? {k} : {found})"

    def put(self, target: str, raw: str, place: str) -> str:
        """Statements that store an element as number ``t`` of the line."""
        if not target:
            place = place if self.places else "0u"
            return (
                f"if (t < kp_stored) {{ {self.op.store(self.ksel, self.key, 'kp_line', 't', place, raw)} }}"
            )
        also = f" places{target}_store(t, {place});" if self.places else ""
        return f"t += kp_first; keys{target}_store(t, {raw});{also}"

    def begin(self, name: str, passed: bool, *sides: str) -> None:
        """A dispatch over all runs; `sides` are the memory that it reads, and that it writes."""
        kb = self.kb
        kb.begin_dispatch(name)
        if "" in sides:
            self.key.declare_bits(kb)
        self.key.declare_order(kb, self.op.descending(self.ksel))
        if self.way == "run":
            kb.workgroup(8)
            self.over_runs(8)
            kb.emit("uint kp_run = kp_group * 8u + gl_LocalInvocationID.x;")
        else:
            kb.workgroup(self.op._group(self.ksel))
            self.over_runs(1)
            kb.emit("uint kp_run = kp_group, kp_l = gl_LocalInvocationID.x;")
        way, n = f"{self.of}{self.way}", self.n
        kb.emit(f"if (kp_run >= {self.runs}) return;")
        kb.emit(f"""
            uint kp_pass = {f"state_load(0u){' - 1u' * passed}" if sides[0] else "0u"};
            uint kp_shift = (kp_pass * 8u) & {self.key.bits - 1}u, kp_counts = kp_run * 256u;
            uint kp_line = kp_run / kp_runs_{way}, kp_first = kp_line * {n};
            uint kp_k = min({self.length}, kp_run % kp_runs_{way} * kp_each_{way});
            uint kp_e = min({self.length}, kp_k + kp_each_{way});
        """)
        if not sides[0]:
            kb.emit(f"uint kp_from = {self.op.at('0u')};")
            if not passed:
                kb.emit("if (gl_LocalInvocationID.x == 0u && kp_run == 0u) state_store(0u, 0u);")

    def over_runs(self, each: int) -> None:
        """Sets the grid: a workgroup for so many runs."""
        spread(self.kb, self.kb.ceil_div(self.runs, each))

    def over_blocks(self) -> None:
        """Sets the grid: a workgroup for each block of runs."""
        spread(self.kb, self.blocks)

    def over_lines(self) -> None:
        """Sets the grid: a workgroup for each line."""
        spread(self.kb, named("kp_lines"))

    def count_run(self, source: str) -> None:
        """How often each digit is in a run."""
        kb = self.kb
        self.begin("count", False, source)
        digit = self.digit("R", self.place(source, "K"))
        kb.emit("for (uint d = 0u; d < 64u; ++d) counts_store4(kp_run * 64u + d, uvec4(0u));")
        kb.emit(
            in_fours(
                f"{self.key.type} R = {self.raw(source, 'K')};",
                f"{{ uint c = kp_counts + {digit}; counts_store(c, counts_load(c) + 1u); }}",
            )
        )

    def carry(self) -> None:
        """Where each run's elements with each digit go. Then the next digit's number is set."""
        kb = self.kb
        counts, runs, group = "counts", self.line_runs, group_of(self.ksel)
        if self.in_blocks:
            kb.begin_dispatch("blocks")
            kb.workgroup(group)
            self.over_blocks()
            add_blocks(kb, counts, runs, "blocks", group)
            counts, runs = "blocks", blocks_of(runs)
        kb.begin_dispatch("carry")
        kb.workgroup(group)
        self.over_lines()
        use = f"""
            if (kp_group == 0u && d == 0u) state_store(0u, state_load(0u) + 1u);
            uint to = sum - own;
            for (run = 0u; {runs} - run >= 4u; run += 4u) {{
                uint at = first + run * 256u;
                uint a = {counts}_load(at), b = {counts}_load(at + 256u), c = {counts}_load(at + 512u);
                uint e = {counts}_load(at + 768u);
                {counts}_store(at, to); to += a; {counts}_store(at + 256u, to); to += b;
                {counts}_store(at + 512u, to); to += c; {counts}_store(at + 768u, to); to += e;
            }}
            for (; run < {runs}; ++run) {{
                uint at = first + run * 256u, a = {counts}_load(at);
                {counts}_store(at, to); to += a;
            }}
        """
        add_digits(kb, counts, runs, group, use)
        if not self.in_blocks:
            return
        kb.begin_dispatch("places")
        kb.workgroup(group)
        self.over_blocks()
        loads = " ".join(f"own[{n}] = counts_load(at + {n * 256}u);" for n in range(_AT_ONCE))
        stores = " ".join(f"counts_store(at + {n * 256}u, sum); sum += own[{n}];" for n in range(_AT_ONCE))
        use = f"""
            uint sum = blocks_load(kp_group * 256u + d), own[{_AT_ONCE}];
            for (; end - run >= {_AT_ONCE}u; run += {_AT_ONCE}u, at += {_AT_ONCE * 256}u) {{
                {loads}
                {stores}
            }}
            for (; run < end; ++run, at += 256u) {{
                own[0] = counts_load(at); counts_store(at, sum); sum += own[0];
            }}
        """
        over_digits(kb, self.line_runs, group, use)

    def move_run(self, source: str, target: str) -> None:
        """Each run moves its elements, in their order."""
        kb = self.kb
        self.begin("move", True, source, target)
        load = f"{self.key.type} R = {self.raw(source, 'K')};"
        if self.places:
            load += f" uint P = {self.place(source, 'K')};"
        one = f"uint c = kp_counts + {self.digit('R', 'P')}; uint t = counts_load(c);"
        kb.emit(in_fours(load, f"{{ {one} counts_store(c, t + 1u); {self.put(target, 'R', 'P')} }}"))

    def count_group(self, source: str) -> None:
        """As `count_run`, by a workgroup."""
        kb, size = self.kb, self.op._group(self.ksel)
        self.begin("count", False, source)
        kb.declare("shared uint kp_sums[256];")
        digit = self.digit("r", self.place(source, "k"))
        kb.emit(f"""
            for (uint d = kp_l; d < 256u; d += {size}u) kp_sums[d] = 0u;
            barrier();
            for (uint k = kp_k + kp_l; k < kp_e; k += {size}u) {{
                {self.key.type} r = {self.raw(source, "k")};
                atomicAdd(kp_sums[{digit}], 1u);
            }}
            barrier();
            for (uint d = kp_l; d < 256u; d += {size}u) counts_store(kp_counts + d, kp_sums[d]);
        """)

    def move_group(self, source: str, target: str) -> None:
        """As `move_run`, by a workgroup. Each subgroup has a part of the run: in each turn its invocations
        take the next elements, and those with equal digits find each other by ballots."""
        kb, size = self.kb, self.op._group(self.ksel)
        each = self.op._subgroup_size(self.ksel) or 16
        subgroups = size // each
        self.begin("move", True, source, target)
        if self.ksel.has("subgroupSizeControl") and self.ksel.has("computeFullSubgroups"):
            kb.subgroups(each)
        for name in ("basic", "ballot"):
            kb.extension(f"GL_KHR_shader_subgroup_{name}")
        kb.declare(f"shared uint kp_sums[{subgroups * 256}];")
        load = f"r = {self.raw(source, 'k')};"
        put = self.put(target, "keys[n]", "own[n]")
        keep = "keys[n] = r;"
        if self.places:
            load += f" p = {self.place(source, 'k')};"
            keep += " own[n] = p;"
        kb.emit(f"""
            uint row = gl_SubgroupID * 256u;
            for (uint d = kp_l; d < {subgroups * 256}u; d += {size}u) kp_sums[d] = 0u;
            barrier();
            {self.key.type} keys[{ITEMS}];
            uint own[{ITEMS}], ranks[{ITEMS}], digits[{ITEMS}];
            uint begin = kp_k + gl_SubgroupID * gl_SubgroupSize * {ITEMS}u + gl_SubgroupInvocationID;
            for (uint n = 0u; n < {ITEMS}u; ++n) {{
                uint k = begin + n * gl_SubgroupSize, p = 0u, digit = 0u;
                {self.key.type} r = {self.key.type}(0);
                bool live = k < kp_e;
                if (live) {{
                    {load}
                    digit = {self.digit("r", "p")};
                }}
                uvec4 same = subgroupBallot(live);
                for (uint b = 0u; b < 8u; ++b) {{
                    bool set = (digit >> b & 1u) != 0u;
                    uvec4 those = subgroupBallot(set);
                    same &= set ? those : ~those;
                }}
                uint before = live ? kp_sums[row + digit] : 0u;
                uint under = subgroupBallotExclusiveBitCount(same);
                subgroupMemoryBarrierShared();
                subgroupBarrier();
                if (live && under == 0u) kp_sums[row + digit] = before + subgroupBallotBitCount(same);
                subgroupMemoryBarrierShared();
                subgroupBarrier();
                ranks[n] = before + under; digits[n] = digit; {keep}
            }}
            barrier();
            for (uint d = kp_l; d < 256u; d += {size}u) {{
                uint sum = counts_load(kp_counts + d);
                for (uint s = d; s < {subgroups * 256}u; s += 256u) {{
                    uint count = kp_sums[s]; kp_sums[s] = sum; sum += count;
                }}
            }}
            barrier();
            for (uint n = 0u; n < {ITEMS}u; ++n) {{
                if (begin + n * gl_SubgroupSize < kp_e) {{
                    uint t = kp_sums[row + digits[n]] + ranks[n];
                    {put}
                }}
            }}
        """)
