"""Sorts within segments, which the device finds in a list of offsets.

One dispatch looks at the segments in chunks of the list, and one sums up. Each short segment is then sorted
by one invocation (`_merging`). The elements of the longer ones are gathered, and sorted together by a radix
sort whose last digits are those of the segments' numbers; without long ones, its dispatches have no
workgroups.
If the offsets do not ascend, all elements count as one segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.walks import group_of, named, spread
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from .keys import Key
from .merging import MOST_MERGED, merge, scratch_for_merge
from .radix import Radix, SortOp, blocks_of

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder, ScratchValue
    from ..._custom.expressions import IntOrSize

_SHORT = {"run": MOST_MERGED, "subgroup": 64}
"""Elements of a segment that one invocation sorts."""
_CHUNK = 2**14
"""Segments that one invocation looks at, at most."""
_CHUNKS = 1024
"""Invocations that look at them, unless there are more segments."""
_BAD, _ELEMENTS, _SEGMENTS = range(3)
"""In ``facts``: whether the offsets do not ascend, and how much is in long segments."""
_GROUPS = {"elements": 0, "runs": 3, "lines": 6, "blocks": 9}
"""In ``groups``: the workgroups of dispatches over what is in long segments."""


class SegmentOp(SortOp):
    """A sort of `keys` within the segments that begin at each of `offsets`."""

    keys = "keys"
    moves_places = False

    def segments(self, ksel: FunctionSelection) -> TensorArg:
        """Declares the offsets, the result and the numbers of the kernels; returns the keys."""
        x, axis = self.begin(ksel, 0)
        offsets = ksel.arg_tensor("offsets")
        if x.ndim != 1 or offsets.ndim != 1:
            raise InvalidArgumentError(
                f"{ksel.name}: keys has the shape {x.shape}, and offsets {offsets.shape}; give one axis each"
            )
        if offsets.dtype.kind not in "iu":
            raise ArgumentTypeError(f"{ksel.name}: offsets is of {offsets.dtype}; give ints")
        ksel.attr_bool("descending")
        ksel.return_new_tensor(x.shape, x.dtype)
        count = offsets.size + 1
        chunk = min(_CHUNK, max(64, -(-count // _CHUNKS)))
        kinds = []
        for way, short in _SHORT.items():
            most = max(1, min(count, x.size // (short + 1)))  # of long segments
            ksel.value(f"kp_most_{way}", most, "uint32")
            kinds.append(f"{-(-(most - 1).bit_length() // 8)}" if x.size > short else "none")
        ksel.specialize(digits=kinds)
        self.tell(ksel, x, axis, x.size, "segments")
        ksel.value("kp_chunk", chunk, "uint32")
        ksel.value("kp_chunks", -(-count // chunk), "uint32")
        return x

    def write(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        way = ksel.variant or "run"
        digits = dict(zip(_SHORT, ksel.special["digits"], strict=True))[way]
        kb.scratch("chunks", named("kp_chunks") * 3, "uint32")
        kb.scratch("facts", 4, "uint32")
        groups = kb.scratch("groups", 12, "uint32")
        self._measure(kb, _SHORT[way])
        if digits == "none":
            self._add_up(ksel, kb, None)
        else:
            radix = _OfSegments(self, ksel, kb, key, groups, int(digits))
            self._add_up(ksel, kb, radix)
            self._list(kb, _SHORT[way], named(f"kp_most_{way}"))
            radix.write()
        self._merge(ksel, kb, key, _SHORT[way])

    def _bounds(self, kb: FunctionBuilder) -> None:
        """Adds ``kp_end(s)`` to the dispatch: the end of segment `s`."""
        kind = kb.arg_value("offsets").type
        below = f"x < {kind}(0) ? 0u : " if kind in ("int", "int64_t") else ""
        kb.declare(f"""
            uint kp_end(uint s) {{
                if (s >= offsets_size) return kp_n;
                {kind} x = offsets_load(s);
                return {below}x > {kind}(kp_n) ? kp_n : uint(x);
            }}
        """)

    def _chunk(self, kb: FunctionBuilder, name: str) -> None:
        """A dispatch with an invocation for each chunk of segments, from ``s`` to ``last``."""
        kb.begin_dispatch(name)
        self._bounds(kb)
        spread(kb, kb.ceil_div(named("kp_chunks"), 64))
        kb.emit("""
            uint chunk = kp_group * 64u + gl_LocalInvocationID.x;
            if (chunk >= kp_chunks) return;
            uint s = chunk * kp_chunk, last = min(offsets_size + 1u, s + kp_chunk);
            uint begin = s == 0u ? 0u : kp_end(s - 1u);
        """)

    def _measure(self, kb: FunctionBuilder, short: int) -> None:
        """How many long segments each chunk has, and elements in them."""
        self._chunk(kb, "measure")
        kb.emit(f"""
            uint bad = 0u, count = 0u, elements = 0u;
            for (; s < last; ++s) {{
                uint end = kp_end(s);
                if (end < begin) bad = 1u;
                if (end - begin > {short}u) {{ ++count; elements += end - begin; }}
                begin = end;
            }}
            chunks_store(chunk * 3u, bad);
            chunks_store(chunk * 3u + 1u, elements);
            chunks_store(chunk * 3u + 2u, count);
        """)

    def _add_up(self, ksel: FunctionSelection, kb: FunctionBuilder, radix: _OfSegments | None) -> None:
        """Sums up the chunks before each, and sets the workgroups for all."""
        group = group_of(ksel)
        kb.begin_dispatch("add up")
        kb.workgroup(group)
        kb.groups(1)
        kb.declare(f"shared uint kp_bad[{group}], kp_some[{group}], kp_most[{group}];")
        kb.emit(f"""
            uint d = gl_LocalInvocationID.x, each = (kp_chunks + {group - 1}u) / {group}u;
            uint c = min(kp_chunks, d * each), last = min(kp_chunks, c + each);
            uint bad = 0u, elements = 0u, count = 0u;
            for (uint k = c; k < last; ++k) {{
                bad |= chunks_load(k * 3u);
                elements += chunks_load(k * 3u + 1u);
                count += chunks_load(k * 3u + 2u);
            }}
            uint own = elements, mine = count;
            for (uint step = 1u; step < {group}u; step *= 2u) {{
                kp_bad[d] = bad; kp_some[d] = elements; kp_most[d] = count;
                barrier();
                if (d >= step) {{
                    bad |= kp_bad[d - step];
                    elements += kp_some[d - step];
                    count += kp_most[d - step];
                }}
                barrier();
            }}
            uint before = elements - own, sooner = count - mine;
            for (uint k = c; k < last; ++k) {{
                uint some = chunks_load(k * 3u + 1u), more = chunks_load(k * 3u + 2u);
                chunks_store(k * 3u + 1u, before);
                chunks_store(k * 3u + 2u, sooner);
                before += some;
                sooner += more;
            }}
            if (d != {group - 1}u) return;
            facts_store({_BAD}u, bad);
        """)
        if radix is None:
            return
        each = 8 if radix.way == "run" else 1
        kb.emit(f"""
            if (bad != 0u) {{ elements = kp_n; count = 1u; }}
            facts_store({_ELEMENTS}u, elements);
            facts_store({_SEGMENTS}u, count);
            uint runs = elements / kp_each_{radix.way} + (elements % kp_each_{radix.way} == 0u ? 0u : 1u);
            uint a = elements / 64u + (elements % 64u == 0u ? 0u : 1u), b = (runs + {each - 1}u) / {each}u;
            groups_store({_GROUPS["elements"]}u, min(a, 65535u));
            groups_store({_GROUPS["elements"] + 1}u, (a + 65534u) / 65535u);
            groups_store({_GROUPS["elements"] + 2}u, 1u);
            groups_store({_GROUPS["runs"]}u, min(b, 65535u));
            groups_store({_GROUPS["runs"] + 1}u, (b + 65534u) / 65535u);
            groups_store({_GROUPS["runs"] + 2}u, 1u);
            for (uint k = 0u; k < 3u; ++k) groups_store({_GROUPS["lines"]}u + k, min(elements, 1u));
            groups_store({_GROUPS["blocks"]}u, {blocks_of("runs")});  // fewer than 65,535
            for (uint k = 1u; k < 3u; ++k) groups_store({_GROUPS["blocks"]}u + k, 1u);
        """)

    def _list(self, kb: FunctionBuilder, short: int, most: IntOrSize) -> None:
        """Where each long segment begins, and where its elements are gathered."""
        kb.scratch("begins", most, "uint32")
        kb.scratch("gathered", most, "uint32")
        self._chunk(kb, "list")
        kb.emit(f"""
            if (facts_load({_BAD}u) != 0u) {{
                if (chunk == 0u) {{ begins_store(0u, 0u); gathered_store(0u, 0u); }}
                return;
            }}
            uint at = chunks_load(chunk * 3u + 1u), number = chunks_load(chunk * 3u + 2u);
            for (; s < last; ++s) {{
                uint end = kp_end(s);
                if (end - begin > {short}u) {{
                    begins_store(number, begin);
                    gathered_store(number, at);
                    ++number;
                    at += end - begin;
                }}
                begin = end;
            }}
        """)

    def _merge(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key, short: int) -> None:
        """Sorts each short segment."""
        scratch_for_merge(kb, key, False, named("kp_n"))
        kb.begin_dispatch("merge")
        key.declare_bits(kb)
        key.declare_order(kb, self.descending(ksel))
        self._bounds(kb)
        kb.workgroup(8)
        spread(kb, kb.ceil_div(kb.arg_value("offsets").size + 1, 8))
        kb.emit(f"""
            uint s = kp_group * 8u + gl_LocalInvocationID.x;
            if (s > offsets_size) return;
            bool bad = facts_load({_BAD}u) != 0u;
            if (bad && s != 0u) return;
            uint kp_at = s == 0u ? 0u : kp_end(s - 1u), kp_count = bad ? kp_n : kp_end(s) - kp_at;
            if (kp_count > {short}u) return;
        """)
        load = key.to_raw.format("keys_load(kp_at + ({}))")
        merge(kb, key, False, load, "kp_n", f"result_store(kp_at + kp_t, {key.from_raw.format('kp_r')});")


class _OfSegments(Radix):
    """The radix sort of what is in long segments, gathered."""

    length = "kp_long"
    gathers = True

    def __init__(
        self,
        op: SegmentOp,
        ksel: FunctionSelection,
        kb: FunctionBuilder,
        key: Key,
        groups: ScratchValue,
        digits: int,
    ) -> None:
        super().__init__(op, ksel, kb, key, False, digits)
        self.groups = groups
        self.line_runs = "kp_live"

    def write(self) -> None:
        if self.more:
            self.kb.scratch("segments", named("kp_n"), "uint32")
        super().write()

    def over(self, what: str) -> None:
        """Sets the grid, and ``kp_long`` and ``kp_live``: elements, and runs of them."""
        kb = self.kb
        each = f"kp_each_{self.way}"
        kb.groups(indirect=self.groups, offset=_GROUPS[what])
        kb.emit(f"""
            uint kp_group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
            uint kp_long = facts_load({_ELEMENTS}u);
            uint kp_live = kp_long / {each} + (kp_long % {each} == 0u ? 0u : 1u);
        """)

    def over_runs(self, each: int) -> None:
        """A workgroup for so many runs."""
        self.over("runs")

    def over_blocks(self) -> None:
        """A workgroup for each block of runs."""
        self.over("blocks")

    def over_lines(self) -> None:
        """One workgroup."""
        self.over("lines")

    def each(self, name: str, count: str) -> None:
        """A dispatch with an invocation for each element: ``kp_e``."""
        self.kb.begin_dispatch(name)
        self.over("elements")
        self.kb.emit("uint kp_e = kp_group * 64u + gl_LocalInvocationID.x;")
        self.kb.emit("if (kp_e >= kp_long) return;")

    def load(self) -> None:
        self.each("load", "")
        self.key.declare_bits(self.kb)
        raw = self.key.to_raw.format("keys_load(begins_load(low) + kp_e - gathered_load(low))")
        self.kb.emit(f"""
            uint low = 0u, high = facts_load({_SEGMENTS}u);
            while (high - low > 1u) {{
                uint middle = low + (high - low) / 2u;
                if (gathered_load(middle) <= kp_e) low = middle; else high = middle;
            }}
            keys0_store(kp_e, {raw});
            if (kp_e == 0u) state_store(0u, 0u);
        """)
        if self.more:
            self.kb.emit("segments_store(kp_e, low);")

    def store(self, source: int) -> None:
        """Moves the sorted keys to their segments."""
        self.each("store", "")
        number = f"segments_load(places{source}_load(kp_e))" if self.more else "0u"
        self.key.declare_bits(self.kb)
        self.kb.emit(f"""
            uint number = {number};
            uint at = begins_load(number) + kp_e - gathered_load(number);
            result_store(at, {self.key.from_raw.format(f"keys{source}_load(kp_e)")});
        """)
