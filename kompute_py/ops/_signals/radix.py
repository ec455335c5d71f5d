"""Transforms of lengths with small prime factors.

A dispatch transforms lines of L numbers in shared memory, in stages: one for each factor r of L, its radix. A
stage has L / r butterflies, transforms of r numbers in registers. Between stages, the numbers lie in the
order that needs no sorting at the end (T. G. Stockham, 1966). A longer length is a product of several L, and
each has its dispatch (J. W. Cooley and J. W. Tukey, 1965): it transforms one digit of the places and
multiplies by roots of unity. The last one writes the frequencies in their order.

A run takes as long as invocations access memory, and drivers for CPUs compile a kernel for about as long as
it has accesses. A large radix makes the former fewer and the latter more: a length has the fastest stages
whose kernels do not have too many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np

PRIMES = (2, 3, 5, 7, 11, 13)
"""The prime factors of the lengths that are transformed here."""
MOST_GROUPS = 65535
"""Workgroups that every device takes on an axis: others are spread over two, with a surplus."""
SIDE_BY_SIDE = 8
"""The lines of a workgroup with numbers that are not neighbours: together they fill the rows of caches."""
_GPU_ROW = 128
"""Bytes that neighbours fill on a GPU, or a quarter of them, the least that it reads."""
MOST_NUMBERS = 4096
"""In a workgroup's memory."""
LEAST_GROUP = 64
"""Invocations of a workgroup."""
_RADICES = (*range(2, 16),)
_MOST_REGISTERS = 16
"""Numbers of an invocation."""
_MOST_ACCESSES = (51, 90, 100)
"""Of the kernels of a length that has one, two, more: lavapipe compiles an access for 2.7 ms."""
_MOST_OF_LONG_LINES = (512, 80)
"""Of the only kernel of a longer line: it would take longer with fewer."""
_Planned = TypeVar("_Planned", bound=tuple[Any, ...])

HELPERS = """\
VEC product(VEC a, VEC b) { return VEC(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
VEC turned(VEC a) { return VEC(a.y, -a.x); }
uint at(uint i) { return i ^ (i >> 3 & 15u); }  // numbers a power of two apart lie in different banks"""
_HEAD = """\
#version 450
layout(local_size_x = GROUP) in;
layout(binding = 0) readonly buffer Parameters { uint lines, swap_given, swap_result; };
layout(binding = 1) readonly buffer Roots { VEC factor, roots[]; };  // of order LENGTH
layout(binding = 2) readonly buffer Input { VEC given[]; };
layout(binding = 3) writeonly buffer Output { VEC result[]; };
TABLE
shared VEC numbers[ROOM];

HELPERS
VEC swapped(VEC a, uint is_swapped) { return is_swapped != 0u ? a.yx : a; }

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, t = gl_LocalInvocationID.x;
    SURPLUS
    uint line = PLACE;
    // Invocations beyond the last line do its work once more: they read it before the first barrier, too.
    uint here = min(group * LINESu + line, lines - 1u), i = here % INNERu, outer = here / INNERu, k;
    VEC p, q, v[REGISTERS], w[REGISTERS];
"""


class Pass(NamedTuple):
    """A dispatch. Its bindings are the parameters, the roots, what it reads and writes, and the tables."""

    source: str
    groups: int
    parameters: np.ndarray[Any, Any]
    roots: np.ndarray[Any, Any]
    tables: list[np.ndarray[Any, Any]]
    starts: bool
    """It reads the argument."""
    ends: bool
    """It writes the result."""


class Stages(NamedTuple):
    """How a line is transformed."""

    cost: float
    """Accesses to memory of all invocations, for each number."""
    accesses: int
    """In the kernel."""
    threads: int
    """The invocations of a line. One has several butterflies of a stage with more; in a stage with fewer,
    some do the work of another once more."""
    radices: tuple[int, ...]


class Split(NamedTuple):
    """A length as a product of those of lines."""

    cost: float
    accesses: int
    """Of all kernels."""
    lengths: tuple[int, ...]
    stages: tuple[Stages, ...]
    lines: tuple[int, ...]
    """The lines of a workgroup, for each length."""

    def times(self, other: Split) -> Split:
        """The product of two lengths."""
        return Split(
            self.cost + other.cost,
            self.accesses + other.accesses,
            self.lengths + other.lengths,
            self.stages + other.stages,
            self.lines + other.lines,
        )


def side_by_side(on_gpu: bool, doubles: bool) -> int:
    """The lines of a workgroup with numbers that are not neighbours. On a processor they fill a row of its
    cache: twice as many in float64 take up to twice as long on lavapipe.
    """
    return SIDE_BY_SIDE // 2 if doubles and not on_gpu else SIDE_BY_SIDE


def is_smooth(number: int) -> bool:
    """Whether it has no other prime factors than `PRIMES`."""
    for prime in PRIMES:
        while number % prime == 0:
            number //= prime
    return number == 1


def _radices_of(length: int, most: int = max(_RADICES)) -> Iterator[tuple[int, ...]]:
    """All products of radices, the largest first."""
    if length == 1:
        yield ()
    for radix in _RADICES:
        if radix <= most and length % radix == 0:
            for others in _radices_of(length // radix, radix):
                yield (radix, *others)


@lru_cache(MOST_NUMBERS)
def stages(length: int) -> list[Stages]:
    """The stages that a line may have, the fastest first."""
    found: list[Stages] = []
    for radices in _radices_of(length):
        for threads in {length // radix for radix in radices}:
            times = [-(-length // (radix * threads)) for radix in radices]
            own = [n * radix for n, radix in zip(times, radices, strict=True)]
            if max(own) <= _MOST_REGISTERS:
                accesses = 2 * sum(own) + sum(times[1:])
                # Butterflies and addresses take a quarter of the time.
                cost = threads / length * (accesses + sum(own) / 2 + 2 * len(own))
                found.append(Stages(cost, accesses, threads, radices))
    return _useful(found)


def _useful(found: list[_Planned]) -> list[_Planned]:
    """The fastest, and of the others those with fewer accesses in kernels than all faster ones."""
    found.sort(key=lambda each: each[:2])
    fewest = accumulate((each[1] for each in found), min, initial=math.inf)
    return [each for each, least in zip(found, fewest, strict=False) if each[1] < least]


@lru_cache(1024)
def split(
    length: int, is_dense: bool, shared_bytes: int, invocations: int, on_gpu: bool, doubles: bool
) -> Split:
    """The factors of a length: few, and each fits into a workgroup. Numbers are neighbours if `is_dense`.

    A GPU reads neighbours together: two dispatches that read rows of numbers take 0.45 of the time of one
    that reads single ones. A processor keeps the rest of a row in its caches, and has one dispatch.
    """
    itemsize = 16 if doubles else 8
    strides = on_gpu and not is_dense
    side = _GPU_ROW // itemsize if strides else side_by_side(on_gpu, doubles)
    room = min(shared_bytes // itemsize, MOST_NUMBERS)
    factors = [n for n in range(2, min(room, math.isqrt(length)) + 1) if length % n == 0]

    def splits(n: int, count: int, least: int, lines: int) -> list[Split]:
        found: list[Split] = []
        for factor in (n,) if count == 1 else factors:
            if factor < least or factor * lines > room or n % factor or factor**count > n:
                continue
            others = splits(n // factor, count - 1, factor, lines) if count > 1 else [Split(0, 0, (), (), ())]
            for own in stages(factor):
                wanted = (
                    max(LEAST_GROUP // own.threads, 1)
                    if is_dense and factor == length
                    else max(side, 8 // own.threads)
                )
                most = min(room // factor, invocations // own.threads)
                if most >= lines:
                    mine = Split(own.cost, own.accesses, (factor,), (own,), (min(wanted, most),))
                    found += [each.times(mine) for each in others]
        return _useful(found)

    for count in range(1, length.bit_length() + 1):
        whole = (1,) if count == 1 else (side, SIDE_BY_SIDE // 2)
        for lines in (side, side // 2, side // 4) if strides else whole:
            if found := splits(length, count, 2, lines):
                is_long = count == 1 and length > _MOST_OF_LONG_LINES[0]
                most = _MOST_OF_LONG_LINES[1] if is_long else _MOST_ACCESSES[min(count, 3) - 1]
                few = [each for each in found if each.accesses <= most]
                return [*few, found[-1]][0]
    raise AssertionError(length)


def passes(
    parts: Split, batches: int, inner: int, inverse: bool, factor: float, dtype: np.dtype[Any]
) -> list[Pass]:
    """The dispatches that transform the middle axis of (batches, length, inner), and multiply by `factor`."""
    made: list[Pass] = []
    for level, length in enumerate(parts.lengths):
        starts, ends = level == 0, level == len(parts.lengths) - 1
        others, step = math.prod(parts.lengths) // length, math.prod(parts.lengths[level + 1 :])
        lines = batches * inner * others
        groups = -(-lines // parts.lines[level])
        first = length // parts.stages[level].radices[-1]
        made.append(
            Pass(
                _kernel(parts, level, inner, dtype == np.complex128, groups > MOST_GROUPS),
                groups,
                # Numbers with their parts exchanged make the way back like the way there.
                np.array([lines, inverse and starts, inverse and ends], np.uint32),
                np.append(factor if ends else 1, circle(length)).astype(dtype),
                [] if ends else [turns(length, step, first + 1).astype(dtype)],
                starts,
                ends,
            )
        )
    return made


def circle(length: int) -> np.ndarray[Any, Any]:
    """The roots of this order: exp(-2 pi i k / length)."""
    return np.exp(-2j * np.pi / length * np.arange(length))


def turns(length: int, step: int, count: int) -> np.ndarray[Any, Any]:
    """exp(-2 pi i q s / n) for all q below `count` and s below `step`; n is the product of `length` and
    `step`. Each is the product of those for a multiple of some number and for the rest of s, which are few.
    """
    part = math.isqrt(step)
    q = -2j * np.pi / (length * step) * np.arange(count)[:, None]
    high, low = np.exp(q * np.arange(0, step, part)), np.exp(q * np.arange(part))
    return (high[:, :, None] * low[:, None, :]).reshape(count, -1)[:, :step].reshape(-1)


# -- the kernel ----------------------------------------------------------------------------------------------


def _kernel(parts: Split, level: int, inner: int, doubles: bool, is_spread: bool) -> str:
    """GLSL that transforms lines. It multiplies by roots after the transform, but at the last level."""
    (_, _, threads, radices), length, lines = parts.stages[level], parts.lengths[level], parts.lines[level]
    step, ahead = math.prod(parts.lengths[level + 1 :]), math.prod(parts.lengths[:level])
    ends, is_dense = step == 1, inner == 1 and len(parts.lengths) == 1
    apart = (inner, ahead * inner) if ends else (step * inner, step * inner)
    text = [_HEAD]
    if ends:  # the digits of the line's place, and in reverse those of its frequencies
        text.append(
            f"uint rest = outer % {ahead}u, first = outer - rest, to = first * {length}u + rest, from = 0u;"
        )
        for each in parts.lengths[:-1]:
            text.append(f"from = from * {each}u + rest % {each}u; rest /= {each}u;")
        text.append(f"from = (first + from) * {length * inner}u + i; to = to * {inner}u + i;")
    else:
        text.append(
            f"uint s = outer % {step}u, from = (outer / {step}u * {length * step}u + s) * {inner}u + i;"
        )
        text.append("uint to = from;")
    number = f"numbers[at(line * {length}u + {{}})]" if is_dense else f"numbers[at(({{}}) * {lines}u + line)]"
    writer = _Butterflies(doubles)
    done, registers = 1, 2
    for stage, radix in enumerate(radices):
        count = length // radix
        stores: list[str] = []
        for first in range(0, count, threads):
            base = first // threads * radix
            own = range(base, base + radix)
            registers = max(registers, base + radix)
            b = f"b + {first}u" if first + threads <= count else f"min(b + {first}u, {count - 1}u)"
            text.append(f"k = {b};")
            stores.append(f"k = {b};")
            for e, place in enumerate(own):
                if stage:
                    text.append(f"v[{place}] = {number.format(f'k + {e * count}u')};")
                else:
                    where = f"from + (k + {e * count}u) * {apart[0]}u"
                    text.append(f"v[{place}] = swapped(given[{where}], swap_given);")
            if stage:
                text.append(f"w[1] = roots[k % {done}u * {count // done}u];")
                text += [f"w[{e}] = product(w[{e // 2}], w[{e - e // 2}]);" for e in range(2, radix)]
                text += [f"v[{base + e}] = product(v[{base + e}], w[{e}]);" for e in range(1, radix)]
            order = writer.transform(text, list(own))
            if done * radix < length:
                stores.append(f"k = k / {done}u * {done * radix}u + k % {done}u;")
                stores += [f"{number.format(f'k + {e * done}u')} = v[{order[e]}];" for e in range(radix)]
                continue
            if not ends:  # an invocation's frequencies are as far apart, so their roots have one ratio
                stores.append(f"p = between[k * {step}u + s]; w[1] = between[{count * step}u + s];")
                stores += [f"w[{e}] = product(w[{e // 2}], w[{e - e // 2}]);" for e in range(2, radix)]
            for e in range(radix):
                value = f"v[{order[e]}]"
                if not ends:
                    value = f"product({value}, {f'product(p, w[{e}])' if e else 'p'})"
                where = f"to + (k + {e * count}u) * {apart[1]}u"
                stores.append(f"result[{where}] = swapped({value} * factor.x, swap_result);")
        done *= radix
        if (stage > 0) != (done == length):  # after the last reads of what is overwritten
            text.append("barrier();")
        text += stores
        if done < length:
            text.append("barrier();")
    words: dict[str, object] = {
        "HELPERS": HELPERS,
        "GROUP": lines * threads,
        "ROOM": -(-lines * length // 16) * 16,
        "SURPLUS": f"if (group * {lines}u >= lines) return;" if is_spread else "",
        "PLACE": f"t / {threads}u, b = t % {threads}u" if is_dense else f"t % {lines}u, b = t / {lines}u",
        "LINES": lines,
        "INNER": inner,
        "LENGTH": length,
        "REGISTERS": registers,
        "TABLE": "" if ends else "layout(binding = 4) readonly buffer Table { VEC between[]; };",
        "VEC": "dvec2" if doubles else "vec2",
    }
    source = "\n    ".join(text) + "\n}\n"
    for word, meaning in words.items():
        source = source.replace(word, str(meaning))
    return source


class _Butterflies:
    """Writes transforms of the numbers in registers."""

    def __init__(self, doubles: bool) -> None:
        self.end = "lf" if doubles else ""

    def number(self, x: float) -> str:
        text = repr(float(x))
        return (text if "." in text or "e" in text else text + ".0") + self.end

    def transform(self, text: list[str], places: list[int]) -> list[int]:
        """Of the numbers ``v`` at these places; returns the place of each frequency."""
        n = len(places)
        radix = next((p for p in PRIMES if n % p == 0), 1)
        if n == 1:
            return places
        m = n // radix
        for b in range(m):
            self.prime(text, places[b::m])
            for f in range(1, radix):
                self.turn(text, places[f * m + b], f * b, n)
        found = [self.transform(text, places[f * m : (f + 1) * m]) for f in range(radix)]
        return [found[k % radix][k // radix] for k in range(n)]

    def turn(self, text: list[str], place: int, k: int, n: int) -> None:
        """Multiplies by exp(-2 pi i k / n)."""
        eighths, rest = divmod(8 * k % (8 * n), n)
        v = f"v[{place}]"
        if rest:
            angle = -2 * math.pi * k / n
            text.append(
                f"{v} = product({v}, VEC({self.number(math.cos(angle))}, {self.number(math.sin(angle))}));"
            )
            return
        if eighths & 4:
            text.append(f"{v} = -{v};")
        if eighths & 2:
            text.append(f"{v} = turned({v});")
        if eighths & 1:
            text.append(f"{v} = {self.number(math.sqrt(0.5))} * VEC({v}.x + {v}.y, {v}.y - {v}.x);")

    def prime(self, text: list[str], places: list[int]) -> None:
        n = len(places)
        v = [f"v[{place}]" for place in places]
        if n == 2:
            text.append(f"p = {v[1]}; {v[1]} = {v[0]} - p; {v[0]} += p;")
            return
        half = range(1, n // 2 + 1)
        text.append("{")
        for j in half:
            text.append(f"VEC s{j} = {v[j]} + {v[n - j]}, d{j} = {v[j]} - {v[n - j]};")
        for k in half:
            turns = [2 * math.pi * (j * k % n) / n for j in half]
            a = " + ".join(f"{self.number(math.cos(x))} * s{j}" for j, x in zip(half, turns, strict=True))
            b = " + ".join(f"{self.number(math.sin(x))} * d{j}" for j, x in zip(half, turns, strict=True))
            text.append(f"p = {v[0]} + {a}; q = {b};")
            text.append(f"{v[k]} = VEC(p.x + q.y, p.y - q.x); {v[n - k]} = VEC(p.x - q.y, p.y + q.x);")
        text.append(f"{v[0]} += {' + '.join(f's{j}' for j in half)};")
        text.append("}")
