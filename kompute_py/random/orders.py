"""The kernels that make random orders, and those that choose by probabilities.

An order is that of random keys of 64 bits, two words of Philox for each element. The upper words are sorted
by the radix sort of `kp.ops.sort`, with the places of the elements as payload. Elements with the same upper
word stand next to each other then, and the kernel that writes the places sorts these few by the lower word.
So the order is that of a stable sort by the whole keys, in half of its passes, on devices without ints of 64
bits, too.

With probabilities, the key of an element is an exponential number divided by its probability: the elements
with the least keys are a sample without replacement (P. Efraimidis and P. Spirakis, "Weighted random sampling
with a reservoir", 2006, in logarithms; an "exponential race"). The exponential numbers are those of J. von
Neumann, "Various techniques used in connection with random digits" (1951), which takes comparisons only.
Drivers differ in logarithms and quotients; here all is in whole numbers, so the order is the same on every
driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._builders.walks import named, one_each
from .._functions.custom_op import CustomOp
from .._functions.function import Function
from ..ops._orders.keys import Key, key_of
from ..ops._orders.radix import SortOp
from .philox import KEYS, PHILOX

if TYPE_CHECKING:
    from .._custom.builder import FunctionBuilder
    from .._custom.selection import FunctionSelection

# The state of a stream: the counter, and whether the second half of its words comes next. Each number has 64
# bits, the upper word first.
_RACE = """
struct Stream { uvec4 counter; uvec4 words; bool half_used; };
uvec2 next(inout Stream s, uvec2 key) {
    s.half_used = !s.half_used;
    if (!s.half_used) return s.words.zw;
    s.words = philox(s.counter, key);
    ++s.counter.z;
    return s.words.xy;
}
bool less(uvec2 a, uvec2 b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }

// An exponential number is k + u / 2**64. It is a run of descending numbers that begins with u: one of odd
// length has the probability exp(-u), and each of even length adds one to k.
uvec3 exponential(uvec4 counter, uvec2 key) {
    Stream s = Stream(counter, uvec4(0u), false);
    uvec2 first = next(s, key), last = first, t = next(s, key);
    uint k = 0u;
    bool odd = true;
    while (less(t, last) || !odd) {
        if (less(t, last)) {
            last = t;
            odd = !odd;
        } else {
            ++k;
            first = last = next(s, key);
            odd = true;
        }
        t = next(s, key);
    }
    return uvec3(k, first);
}

// The quotient of the number e and the whole number w > 0, both rounded to floating numbers: 8 bits of the
// exponent, from 1 to 134, and 56 bits below the leading one.
uvec2 quotient(uvec3 e, uvec2 w) {
    if (e == uvec3(0u)) e.z = 1u;
    int exponent;
    uvec2 m;
    if (e.x != 0u) {
        exponent = findMSB(e.x);
        uint t = uint(exponent) + 1u;
        m = uvec2(e.x << (32u - t) | e.y >> t, e.y << (32u - t) | e.z >> t);
    } else {
        exponent = e.y != 0u ? findMSB(e.y) - 32 : findMSB(e.z) - 64;
        m = e.y != 0u ? e.yz : uvec2(e.z, 0u);
        uint t = 31u - uint(findMSB(m.x));
        if (t != 0u) m = uvec2(m.x << t | m.y >> (32u - t), m.y << t);
    }
    int place = w.x != 0u ? findMSB(w.x) + 32 : findMSB(w.y);
    if (w.x == 0u) w = uvec2(w.y, 0u);
    uint t = 31u - uint(findMSB(w.x));
    uint top = t == 0u ? w.x : w.x << t | w.y >> (32u - t);
    uint divisor = (top >> 8) + (top >> 7 & 1u);
    if (divisor == 0x1000000u) { divisor = 0x800000u; ++place; }
    uint rest = 0u;
    uvec2 q = uvec2(0u);
    for (int n = 0; n < 10; ++n) {
        uint digit = n < 4 ? m.x >> (24 - 8 * n) : n < 8 ? m.y >> (56 - 8 * n) : 0u;
        rest = rest << 8 | (digit & 255u);
        uint found = rest / divisor;
        rest -= found * divisor;
        q = uvec2(q.x << 8 | q.y >> 24, q.y << 8 | found);
    }
    exponent -= place;
    if (q.x < 0x1000000u) { q = uvec2(q.x << 1 | q.y >> 31, q.y << 1); --exponent; }
    return uvec2(uint(exponent + 128) << 24 | (q.x & 0xffffffu), q.y);
}"""


class _Order(SortOp):
    """The numbers below the length of `numbers` in random order, written to it."""

    keys = "upper"
    merges = False
    recorded = False
    """Whether the position is read from memory, and moved on, in each run."""
    weighted = False
    """Whether keys depend on probabilities. Elements without one come last, in their order."""

    def select(self, ksel: FunctionSelection) -> None:
        """Declares what the sort needs for one line."""
        numbers = ksel.arg_tensor("numbers", inplace_tied=True)
        if self.recorded:
            ksel.arg_tensor("position", inplace_tied=True)
        for name in ("key0", "key1", *(() if self.recorded else ("low", "high")), "jump"):
            ksel.arg_int(name)
        if self.weighted:
            ksel.arg_tensor("sums")
        for each in ksel.inplace_tied_arg_descs:
            ksel.return_tensor(each)
        self.tell(ksel, numbers, 0, numbers.size)

    def descending(self, ksel: FunctionSelection) -> bool:
        """The least keys come first."""
        return False

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        for name in ("upper", "lower"):
            kb.scratch(name, named("kp_n"), np.uint32)
        kb.begin_dispatch("draw")
        kb.declare(PHILOX)
        blocks = "kp_n" if self.weighted else "(kp_n / 2u + kp_n % 2u)"
        size = named("kp_n") if self.weighted else kb.ceil_div(named("kp_n"), 2)
        one_each(kb, size, "block")
        place = ("position_load(0)", "position_load(1)") if self.recorded else ("uint(low)", "uint(high)")
        kb.emit(f"""
            uvec2 key = uvec2(key0, key1);
            uvec4 counter = uvec4({place[0]} + block, {place[1]}, 0u, uint(jump));
            if (counter.x < block) ++counter.y;
        """)
        if self.weighted:
            kb.declare(_RACE)
            kb.emit("""
                uvec2 w = uvec2(sums_load(2u * block + 1u), sums_load(2u * block));
                if (block != 0u) {
                    uint before = sums_load(2u * block - 2u);
                    w.x -= sums_load(2u * block - 1u) + (w.y < before ? 1u : 0u);
                    w.y -= before;
                }
                uvec2 r = w == uvec2(0u) ? uvec2(0xffffffffu) : quotient(exponential(counter, key), w);
                upper_store(block, r.x);
                lower_store(block, r.y);
            """)
        else:
            kb.emit("""
                uvec4 w = philox(counter, key);
                uint first = 2u * block;
                upper_store(first, w.x);
                lower_store(first, w.y);
                if (first + 1u < kp_n) {
                    upper_store(first + 1u, w.z);
                    lower_store(first + 1u, w.w);
                }
            """)
        if self.recorded:
            kb.begin_dispatch("move on")
            kb.workgroup(1)
            kb.grid(1)
            kb.emit(f"""
                uint low = position_load(0) + {blocks};
                if (low < {blocks}) position_store(1, position_load(1) + 1u);
                position_store(0, low);
            """)
        self.write(ksel, kb, key_of(ksel, np.dtype(np.uint32)))
        kb.yield_results()

    def _by_rank(self, ksel: FunctionSelection, kb: FunctionBuilder, key: Key) -> None:
        kb.begin_dispatch("rank")
        kb.grid(named("kp_n"))
        kb.emit("""
            uint i = gl_GlobalInvocationID.x;
            if (i >= kp_n) return;
            uint a = upper_load(i), b = lower_load(i), rank = 0u;
            for (uint k = 0u; k < kp_n; ++k) {
                uint c = upper_load(k), d = lower_load(k);
                if (c < a || (c == a && (d < b || (d == b && k < i)))) ++rank;
            }
            numbers_store(rank, int(i));
        """)

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        """Stores the place: among equal upper words, where its lower word belongs. Elements without a
        probability have equal keys, and stay."""
        stays = " && a != 0xffffffffu" if self.weighted else ""
        return f"""
            uint a = {raw}, own = {place}, b = lower_load(own), first = {rank}, last = {rank} + 1u;
            while (first > 0u{stays} && keys0_load(first - 1u) == a) --first;
            while (last < kp_n{stays} && keys0_load(last) == a) ++last;
            uint to = first;
            for (uint k = first; k < last; ++k) {{
                uint other = places0_load(k), d = lower_load(other);
                if (d < b || (d == b && other < own)) ++to;
            }}
            numbers_store(to, int(own));
        """


def _operation(name: str, recorded: bool, weighted: bool) -> Function:
    place = "int key0, int key1, int jump" if recorded else KEYS
    members = {
        "__doc__": _Order.__doc__,
        "recorded": recorded,
        "weighted": weighted,
        "signature": f"random_{name}(Tensor(a!) numbers, {'Tensor(b!) position, ' if recorded else ''}{place}"
        f"{', Tensor sums' if weighted else ''}) -> "
        f"{'(Tensor(a!), Tensor(b!))' if recorded else 'Tensor(a!)'}",
    }
    return CustomOp.register(type(f"random_{name}", (_Order,), members))


ORDERS: dict[str, Function] = {
    name: _operation(name, False, weighted) for name, weighted in (("order", False), ("race", True))
}
"""The orders by name, from a position that the caller gives: "order" of equally likely ones, and "race" by
probabilities."""
RECORDED_ORDERS: dict[str, Function] = {
    name: _operation(name, True, weighted) for name, weighted in (("order", False), ("race", True))
}
"""The same from a position in memory, which each run moves on."""
