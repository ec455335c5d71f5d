"""The kernels that draw random numbers.

All of them use Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(2011): a function from a counter of four words and a key of two to four random words. A draw gives each group
of elements a counter of its own, so each element's number depends on its position alone, and not on the
device or on the grid.

The first two words of a counter are the generator's position, the third the attempt (numbers that are drawn
again), the fourth the generator's jump.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._functions.custom_op import CustomOp
from .._functions.function import Function

if TYPE_CHECKING:
    from .._custom.builder import FunctionBuilder
    from .._custom.selection import FunctionSelection

PHILOX = """
uvec4 philox(uvec4 c, uvec2 k) {
    for (int n = 0; n < 10; ++n) {
        uint high0, low0, high1, low1;
        umulExtended(0xD2511F53u, c.x, high0, low0);
        umulExtended(0xCD9E8D57u, c.z, high1, low1);
        c = uvec4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
        k += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}"""

# log(x) for x in (0, 1]: x is m * 2**e with m next to 1, and log(m) = 2 atanh(s) with s = (m - 1) / (m + 1).
# sin and cos of 2 pi a / 2**32: the angle to the nearest eighth of a turn is reduced exactly, in integers.
# Drivers' own functions differ from each other, and Vulkan lets sin and cos be wrong by 2**-11.
_NORMALS = """
float log_of(float x) {
    int e = int(floatBitsToUint(x) >> 23) - 127;
    precise float m = uintBitsToFloat((floatBitsToUint(x) & 0x7fffffu) | 0x3f800000u);
    if (m > 1.41421356) { m *= 0.5; e += 1; }
    precise float s = (m - 1.0) / (m + 1.0), z = s * s;
    precise float r = 1.0 + z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * 0.11111111)));
    precise float y = 2.0 * s * r + float(e) * 0.69314718;
    return y;
}
vec2 turn(uint a) {
    uint quarter = (a + 0x20000000u) >> 30;
    precise float t = float(int(a - (quarter << 30))) * 1.4629180792671596e-9, z = t * t;
    precise float s = 8.3333333e-3 + z * (-1.9841270e-4 + z * 2.7557319e-6);
    s = t * (1.0 + z * (-0.16666667 + z * s));
    precise float c = 1.0 + z * (-0.5 + z * (4.1666667e-2 + z * (-1.3888889e-3 + z * 2.4801587e-5)));
    vec2 p = (quarter & 1u) == 0u ? vec2(c, s) : vec2(-s, c);
    return (quarter & 2u) == 0u ? p : -p;
}
vec2 normals(uint a, uint b) {
    precise float u = (float(a) + 1.0) * 2.3283064365386963e-10;
    precise vec2 n = sqrt(max(-2.0 * log_of(u), 0.0)) * turn(b);
    return n;
}"""
_DOUBLE_NORMALS = """
double log_of(double x) {
    uvec2 bits = unpackDouble2x32(x);
    int e = int(bits.y >> 20) - 1023;
    precise double m = packDouble2x32(uvec2(bits.x, (bits.y & 0xfffffu) | 0x3ff00000u));
    if (m > 1.4142135623730951lf) { m *= 0.5lf; e += 1; }
    precise double s = (m - 1.0lf) / (m + 1.0lf), z = s * s, r = 1.0lf / 23.0lf;
    for (int k = 21; k > 0; k -= 2) r = r * z + 1.0lf / double(k);
    precise double y = 2.0lf * s * r + double(e) * 0.6931471805599453lf;
    return y;
}
dvec2 turn(uint a, uint b) {
    uint quarter = (a + 0x20000000u) >> 30;
    precise double whole = double(int(a - (quarter << 30))) + double(b) * 2.3283064365386963e-10lf;
    precise double t = whole * 1.4629180792671596e-9lf, z = t * t, s = 1.0lf, c = 1.0lf;
    for (int k = 18; k > 0; k -= 2) {
        s = 1.0lf - s * z / double(k * (k + 1));
        c = 1.0lf - c * z / double(k * (k - 1));
    }
    s *= t;
    dvec2 p = (quarter & 1u) == 0u ? dvec2(c, s) : dvec2(-s, c);
    return (quarter & 2u) == 0u ? p : -p;
}
dvec2 normals(uvec4 w) {
    precise double u = (double(w.x) * 4294967296.0lf + double(w.y) + 1.0lf) * 5.421010862427522e-20lf;
    precise dvec2 n = sqrt(max(-2.0lf * log_of(u), 0.0lf)) * turn(w.z, w.w);
    return n;
}"""

KEYS = "int key0, int key1, int low, int high, int jump"


class _Draw(CustomOp):
    """Base of the draws: `value` writes the elements' expressions from the words `w` of a counter."""

    recorded = False
    """Whether the position is read from memory, and moved on, in each run."""

    def select(self, ksel: FunctionSelection) -> None:
        out = ksel.arg_tensor("numbers", inplace_tied=True)
        if self.recorded:
            ksel.arg_tensor("state", inplace_tied=True)
        for name in ("key0", "key1", *(() if self.recorded else ("low", "high")), "jump"):
            ksel.arg_int(name)
        self.parameters(ksel, out.dtype.name)
        ksel.return_tensor(out)
        if self.recorded:
            ksel.return_tensor(ksel.inplace_tied_arg_descs[1])

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        """Declares the parameters of the distribution."""

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        """The elements of one counter in the kernels, from its words `w`."""
        raise NotImplementedError

    def blocks(self, count: int) -> str:
        """How many counters the numbers take, in the kernels: one for `count` elements."""
        return f"numbers_size / {count}u + (numbers_size % {count}u == 0u ? 0u : 1u)"

    def stores(self, kb: FunctionBuilder, values: list[str]) -> None:
        """Writes the elements of a counter."""
        for number, value in enumerate(values):
            kb.emit(f"if (first + {number}u < numbers_size) numbers_store(first + {number}u, {value});")

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        out = kb.arg_value("numbers")
        kb.begin_dispatch("draw")
        kb.declare(PHILOX)
        values = self.values(kb, out.dtype.name)
        count = max(len(values), 1)
        blocks = kb.ceil_div(out.size, count)
        kb.grid(kb.largest(blocks, 1) if self.recorded else blocks)
        place = ("state_load(0)", "state_load(1)") if self.recorded else ("uint(low)", "uint(high)")
        kb.emit(f"""
            uint block = gl_GlobalInvocationID.x;
            if (block >= {self.blocks(count)}) return;
            uvec2 key = uvec2(key0, key1);
            uvec4 counter = uvec4({place[0]} + block, {place[1]}, 0u, uint(jump));
            if (counter.x < block) ++counter.y;
            uvec4 w = philox(counter, key);
            uint first = block * {count}u;
        """)
        self.stores(kb, values)
        if self.recorded:
            kb.begin_dispatch("move on")
            kb.workgroup(1)
            kb.grid(1)
            kb.emit(f"""
                uint blocks = {self.blocks(count)};
                uint low = state_load(0) + blocks;
                if (low < blocks) state_store(1, state_load(1) + 1u);
                state_store(0, low);
            """)
        kb.yield_results()


class _Words(_Draw):
    """The words themselves, for tests."""

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        return ["w.x", "w.y", "w.z", "w.w"]


class _Uniform(_Draw):
    """From `least` to `least` + `width`, and no further than `last` in its direction."""

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        for name in ("least", "width", "last"):
            value = ksel.arg_float(name)
            if dtype == "float64":
                value.cast("float64")

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        kind = "double" if dtype == "float64" else "float"
        kb.declare(
            f"{kind} placed({kind} u) {{ precise {kind} r = least + width * u; "
            "return width < 0.0 ? max(r, last) : min(r, last); }"
        )
        if dtype == "float64":
            kb.declare(
                "double unit(uint a, uint b) { return (double(a >> 5) * 67108864.0lf + double(b >> 6)) "
                "* 1.1102230246251565e-16lf; }"
            )
            return ["placed(unit(w.x, w.y))", "placed(unit(w.z, w.w))"]
        unit = (
            "float({} >> 21) * 4.8828125e-4"
            if dtype == "float16"
            else "float({} >> 8) * 5.9604644775390625e-8"
        )
        return [f"placed({unit.format('w.' + each)})" for each in "xyzw"]


class _Normal(_Draw):
    """`mean` + `deviation` * standard normal, by Box and Muller's transform (1958)."""

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        for name in ("mean", "deviation"):
            value = ksel.arg_float(name)
            if dtype == "float64":
                value.cast("float64")

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        kind = "double" if dtype == "float64" else "float"
        kb.declare(_DOUBLE_NORMALS if dtype == "float64" else _NORMALS)
        kb.declare(f"{kind} placed({kind} n) {{ precise {kind} r = mean + deviation * n; return r; }}")
        if dtype == "float64":
            return ["placed(normals(w).x)", "placed(normals(w).y)"]
        pairs = ("normals(w.x, w.y)", "normals(w.z, w.w)")
        return [f"placed({pair}.{part})" for pair in pairs for part in "xy"]


class _Integers(_Draw):
    """Integers from `least` to `least` + `span`, all alike.

    Up to 32 bits by Lemire's multiplication, "Fast random integer generation in an interval" (2019); above by
    drawing again until the number is in the span.
    """

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        for name in ("least0", "least1", "span0", "span1"):
            ksel.arg_int(name)

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        if dtype in ("int64", "uint64"):
            kb.declare("""
uvec2 within(uvec4 counter, uvec2 key, uvec2 given, uint lane, uvec2 span) {
    if (span == uvec2(0xffffffffu)) return given;
    uint top = span.y != 0u ? findMSB(span.y) : findMSB(span.x);
    uint bits = span == uvec2(0u) ? 0u : 0xffffffffu >> (31u - top);
    uvec2 mask = span.y != 0u ? uvec2(0xffffffffu, bits) : uvec2(bits, 0u);
    uvec2 w = given & mask;
    while (w.y > span.y || (w.y == span.y && w.x > span.x)) {
        ++counter.z;
        uvec4 next = philox(counter, key);
        w = (lane == 0u ? next.xy : next.zw) & mask;
    }
    return w;
}
uvec2 placed(uvec2 w) {
    uint low = uint(least0) + w.x;
    return uvec2(low, uint(least1) + w.y + (low < w.x ? 1u : 0u));
}""")
            kind = "int64_t" if dtype == "int64" else "uint64_t"
            span = "uvec2(span0, span1)"
            return [
                f"{kind}(packUint2x32(placed(within(counter, key, w.{part}, {lane}u, {span}))))"
                for lane, part in enumerate(("xy", "zw"))
            ]
        kb.declare("""
uint within(uvec4 counter, uvec2 key, uint w, uint lane, uint span) {
    uint count = span + 1u, high, low;
    if (count == 0u) return w;
    umulExtended(w, count, high, low);
    if (low < count) {
        uint least = (0u - count) % count;
        while (low < least) {
            ++counter.z;
            umulExtended(philox(counter, key)[lane], count, high, low);
        }
    }
    return high;
}""")
        number = "uint(least0) + within(counter, key, w.{}, {}u, uint(span0))"
        kind = "bool" if dtype == "bool" else "uint" if dtype.startswith("u") else "int"
        return [f"{kind}({number.format(part, lane)})" for lane, part in enumerate("xyzw")]


class _Categories(_Draw):
    """For each element a number of 64 bits below the last of `sums`: how many of these are at most as large.

    `sums` has two words for each category, the lower one first.
    """

    def parameters(self, ksel: FunctionSelection, dtype: str) -> None:
        ksel.arg_tensor("sums")

    def values(self, kb: FunctionBuilder, dtype: str) -> list[str]:
        kb.declare("""
uvec2 below(uvec2 u, uvec2 end) {
    uint none, carry, more, a, b, c, d, e, f, middle;
    umulExtended(u.y, end.y, middle, none);
    umulExtended(u.x, end.y, b, a);
    umulExtended(u.y, end.x, d, c);
    umulExtended(u.x, end.x, f, e);
    middle = uaddCarry(middle, a, carry);
    middle = uaddCarry(middle, c, more);
    carry += more;
    e = uaddCarry(e, b, more); f += more;
    e = uaddCarry(e, d, more); f += more;
    e = uaddCarry(e, carry, more); f += more;
    return uvec2(f, e);
}
int category(uint word, uint next) {
    uint from = 0u, to = sums_size / 2u;
    uvec2 r = below(uvec2(word, next), uvec2(sums_load(2u * to - 1u), sums_load(2u * to - 2u)));
    while (from < to) {
        uint middle = from + (to - from) / 2u;
        uvec2 t = uvec2(sums_load(2u * middle + 1u), sums_load(2u * middle));
        if (t.x < r.x || (t.x == r.x && t.y <= r.y)) from = middle + 1u; else to = middle;
    }
    return int(from);
}""")
        return ["category(w.x, w.y)", "category(w.z, w.w)"]


def _operation(base: type[_Draw], name: str, parameters: str, recorded: bool) -> Function:
    place = "int key0, int key1, int jump" if recorded else KEYS
    members = {
        "__doc__": base.__doc__,
        "recorded": recorded,
        "signature": f"random_{name}(Tensor(a!) numbers, {'Tensor(b!) state, ' if recorded else ''}{place}"
        f"{', ' + parameters if parameters else ''}) -> "
        f"{'(Tensor(a!), Tensor(b!))' if recorded else 'Tensor(a!)'}",
    }
    return CustomOp.register(type(f"random_{name}", (base,), members))


_KINDS: dict[str, tuple[type[_Draw], str]] = {
    "words": (_Words, ""),
    "uniform": (_Uniform, "float least, float width, float last"),
    "normal": (_Normal, "float mean, float deviation"),
    "integers": (_Integers, "int least0, int least1, int span0, int span1"),
    "categories": (_Categories, "Tensor sums"),
}
DRAWS: dict[str, Function] = {
    kind: _operation(base, kind, parameters, False) for kind, (base, parameters) in _KINDS.items()
}
"""The draws by name, from a position that the caller gives."""
RECORDED: dict[str, Function] = {
    kind: _operation(base, kind, parameters, True) for kind, (base, parameters) in _KINDS.items()
}
"""The same from a position in memory, which each run moves on."""
