"""Transforms of lengths with large prime factors: a few kernels serve all of them.

With c[j] = exp(-pi i j^2 / n), the transform of x is c[k] times the sums of (x[j] c[j]) / c[k - j]: a
convolution, which transforms of m >= 2 n - 1 numbers compute, m a power of two (L. I. Bluestein, 1970). A
kernel reads n, and how the numbers lie, as data. So all lengths with the same m share their kernels, and the
driver's compiler, which takes most of the time of a first call, runs for the first of them only.

A dispatch transforms lines of L numbers in shared memory. A longer m is a product of several L, and each has
its dispatch (J. W. Cooley and J. W. Tukey, 1965): it transforms one digit of the places, leaves the
frequencies where that digit was, and multiplies them by roots of unity. The last L's dispatch has all
frequencies, in the order of reversed digits. It multiplies them by the transform of 1 / c in that order, and
transforms back at once. The others follow in reverse; the conjugates of all numbers make the way back like
the way there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_SIDE_BY_SIDE = 8
"""The lines of a workgroup with numbers that are not neighbours: together they fill the rows of caches."""
_MOST_BITS = 12
"""Of the numbers in a workgroup's memory: 2**12."""
_LEAST_GROUP = 64
"""Invocations of a workgroup."""

_HEAD = """\
#version 450
layout(local_size_x = GROUP) in;
// Numbers are arrays of (blocks, rows, inner); each line has every 2**step_bits-th row of a block.
layout(binding = 0) readonly buffer Parameters {
    uint lines, PARAMETER, step_bits, rows_in, rows_out, before_mask, between_mask, after_mask, conjugate;
};
layout(binding = 1) readonly buffer Roots { VEC roots[]; };  // of order LENGTH
layout(binding = 2) readonly buffer Input { VEC given[]; };
layout(binding = 3) writeonly buffer Output { VEC result[]; };
TABLES
shared VEC numbers[ROOM];

VEC product(VEC a, VEC b) { return VEC(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
VEC turned(VEC a) { return VEC(a.y, -a.x); }
uint at(uint i) { return i ^ (i >> 4 & 15u); }  // numbers a power of two apart lie in different banks

void main() {
    INNER
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, t = gl_LocalInvocationID.x;
    if (group * LINESu >= lines)  // or its lines would be transformed again, in place
        return;
    bool is_dense = step_bits == 0u && inner == 1u;
    uint line = is_dense ? t / EIGHTHu : t % LINESu, b = is_dense ? t % EIGHTHu : t / LINESu;
    // Invocations beyond the last line do its work once more: they read it before the first barrier, too.
    uint here = min(group * LINESu + line, lines - 1u);
    uint i = here % inner, outer = here / inner, block = outer >> step_bits;
    uint row = (b << step_bits) + (outer & (1u << step_bits) - 1u), apart = EIGHTHu << step_bits;
    uint place = block * (LENGTHu << step_bits) + row;
    line *= LENGTHu;
    VEC p, w1, w2, w4, v[8], c[8];
"""


class Split(NamedTuple):
    """The number m as a product of powers of two."""

    bits: tuple[int, ...]
    """The exponent of each factor."""
    lines: tuple[int, ...]
    """The lines of a workgroup, for each factor."""


def split(length: int, shared_bytes: int, invocations: int, doubles: bool) -> Split:
    """The factors for a length: few, as equal as possible, and each fits into a workgroup."""
    room = min(shared_bytes // (16 if doubles else 8), 8 * invocations)
    most = min(room.bit_length() - 1, _MOST_BITS)
    bits = (2 * length - 2).bit_length()
    if bits <= most:
        return Split((bits,), (min(max(8 * _LEAST_GROUP >> bits, 1), 1 << most - bits),))
    strided = most - _SIDE_BY_SIDE.bit_length() + 1
    count = 1 + -(-(bits - most) // strided)
    found = [min(strided, (bits + k) // count) for k in range(count - 1)]
    found.append(bits - sum(found))
    return Split(tuple(found), tuple(min(_SIDE_BY_SIDE, 1 << most - each) for each in found))


class Pass(NamedTuple):
    """A dispatch."""

    source: str
    groups: int
    parameters: np.ndarray[Any, Any]
    roots: np.ndarray[Any, Any]
    tables: list[np.ndarray[Any, Any]]
    starts: bool
    """It reads the argument."""
    ends: bool
    """It writes the result."""


def passes(
    parts: Split, batches: int, length: int, inner: int, inverse: bool, factor: float, dtype: np.dtype[Any]
) -> list[Pass]:
    """The dispatches that transform the middle axis of (batches, length, inner), and multiply by `factor`.

    Between them the numbers have the shape (batches, m, inner).
    """
    bits, last = parts.bits, len(parts.bits) - 1
    m = 1 << sum(bits)
    chirp, spectrum = _convolved(length, bits, inverse, factor, dtype)
    circles = {each: _circle(each).astype(dtype) for each in bits}
    between = [_turns(bits[level], sum(bits[level + 1 :])).astype(dtype) for level in range(last)]
    one = np.ones(1, dtype)
    made: list[Pass] = []
    for level in (*range(last + 1), *reversed(range(last))):
        is_back = len(made) > last
        starts, ends = not made, len(made) == 2 * last
        outside = chirp if level == 0 else one
        if last == 0:
            tables = {"before": chirp, "between": spectrum}
        elif level == last:
            tables = {"between": spectrum}
        elif is_back:
            tables = {"before": between[level], "after": outside}
        else:
            tables = {"before": outside, "after": between[level]}
        step_bits = sum(bits[level + 1 :])
        rows = 1 << bits[level] + step_bits
        lines = batches * inner * (m >> bits[level])
        masks = [tables.get(name, one).size - 1 for name in ("before", "between", "after")]
        ways = [length if starts else rows, length if ends else rows, *masks, ends]
        made.append(
            Pass(
                _kernel(bits[level], parts.lines[level], inner > 1, dtype == np.complex128, tuple(tables)),
                -(-lines // parts.lines[level]),
                np.array([lines, inner, step_bits, *ways], np.uint32),
                circles[bits[level]],
                list(tables.values()),
                starts,
                ends,
            )
        )
    return made


def _convolved(
    length: int, bits: tuple[int, ...], inverse: bool, factor: float, dtype: np.dtype[Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """c with zeros up to m, and the conjugates of the transform of 1 / c in the order of reversed digits.
    They are the transform of c, because c is the same for j and -j.
    """
    m = 1 << sum(bits)
    j = np.arange(length, dtype=np.int64)
    wave = np.exp((1j if inverse else -1j) * np.pi / length * (j * j % (2 * length)))
    chirp, both = np.zeros(m, dtype), np.zeros(m, np.complex128)
    chirp[:length] = wave
    both[:length] = wave * (factor / m)
    both[m - length + 1 :] = both[length - 1 : 0 : -1]
    found = np.fft.fft(both).astype(dtype)
    return chirp, found.reshape([1 << each for each in reversed(bits)]).transpose().reshape(-1)


def _circle(bits: int) -> np.ndarray[Any, Any]:
    """The roots of order 2**bits: exp(-2 pi i k / 2**bits)."""
    return np.exp(-2j * np.pi / (1 << bits) * np.arange(1 << bits))


def _turns(bits: int, step_bits: int) -> np.ndarray[Any, Any]:
    """exp(-2 pi i q s / n) for all q below 2**bits and s below 2**step_bits; n is the bounds' product.
    Each is the product of those for the high and for the low bits of s, which are few.
    """
    angle, low_bits = -2j * np.pi / (1 << bits + step_bits), step_bits // 2
    q = np.arange(1 << bits)[:, None]
    high = np.exp(angle * (q * (np.arange(1 << step_bits - low_bits) << low_bits)))
    low = np.exp(angle * (q * np.arange(1 << low_bits)))
    return (high[:, :, None] * low[:, None, :]).reshape(-1)


# -- the kernel ----------------------------------------------------------------------------------------------


def _kernel(bits: int, lines: int, is_strided: bool, doubles: bool, tables: tuple[str, ...]) -> str:
    """GLSL that transforms as many lines of 2**bits numbers, and multiplies them by these tables: before the
    transform, between it and the one back, and after it. Without another one, `before` also serves after it.

    There are no loops: with the stages in loops, lavapipe compiles half as long, and each run takes twice as
    long. Conditions are around stores alone: drivers for CPUs run both sides of each.
    """
    text = [_HEAD]
    rows = [f"row + {e}u * apart" for e in range(8)]
    for e in range(8):
        text.append(f"v[{e}] = given[(block * rows_in + min({rows[e]}, rows_in - 1u)) * inner + i];")
        if "before" in tables:  # c has zeros for the numbers beyond the last row
            text.append(f"c[{e}] = before[place + {e}u * apart & before_mask];")
            text.append(f"v[{e}] = product(v[{e}], c[{e}]);")
    text += _transform(bits)
    if "between" in tables:
        for e in range(8):
            text.append(f"p = between[place + {e}u * apart & between_mask];")
            text.append(f"v[{e}] = product(VEC(v[{e}].x, -v[{e}].y), p);")
        text.append("barrier();")
        text += _transform(bits)
    text.append("p = VEC(1, conjugate != 0u ? -1 : 1);")
    for e in range(8):
        value = f"v[{e}]"
        if "before" in tables:
            factor = f"after[place + {e}u * apart & after_mask]" if "after" in tables else f"c[{e}]"
            value = f"product({value} * p, {factor})"
            text.append(f"if ({rows[e]} < rows_out)")
        text.append(f"result[(block * rows_out + {rows[e]}) * inner + i] = {value};")
    buffers = [
        f"layout(binding = {binding}) readonly buffer Table{binding} {{ VEC {name}[]; }};"
        for binding, name in enumerate(tables, 4)
    ]
    source = "\n    ".join(text) + "\n}\n"
    words: dict[str, object] = {
        "GROUP": lines << bits - 3,
        "ROOM": lines << bits,
        "LINES": lines,
        "LENGTH": 1 << bits,
        "EIGHTH": 1 << bits - 3,
        "TABLES": "\n".join(buffers),
        "PARAMETER": "inner" if is_strided else "one",
        "INNER": "" if is_strided else "const uint inner = 1u;",  # no divisions, which are slow
        "HALF_ROOT": "0.70710678118654752440" + ("lf" if doubles else ""),
        "VEC": "dvec2" if doubles else "vec2",
    }
    for word, meaning in words.items():
        source = source.replace(word, str(meaning))
    return source


def _transform(bits: int) -> list[str]:
    """The transform of a line. An invocation has the numbers b, b + L / 8, b + 2 L / 8, ... in ``v``, and at
    the end these frequencies.

    Each stage has radix 8, but the first may have 2 or 4: an invocation then has 4 or 2 butterflies. Between
    stages, the numbers lie in the order that needs no reversal of digits (T. G. Stockham, 1966).
    """
    text: list[str] = []
    done = 0
    while done < bits:
        taken = 3 if done else bits % 3 or 3
        if done:
            text.append("barrier();")
            text += [f"v[{e}] = numbers[at(line + b + {e << bits - 3}u)];" for e in range(8)]
            for k in range(3):
                text.append(f"w{1 << k} = roots[(b & {(1 << done) - 1}u) << {bits - done - 3 + k}];")
        text += _butterflies(taken, bool(done))
        if done + taken < bits:
            if done:
                text.append("barrier();")
            for e in range(8):
                first = f"(b + {(e & (8 >> taken) - 1) << bits - 3}u)"
                low = f" + ({first} & {(1 << done) - 1}u)" if done else ""
                place = f"({first} >> {done} << {done + taken}){low} + {_frequency(e, taken) << done}u"
                text.append(f"numbers[at(line + {place})] = v[{e}];")
        done += taken
    for a, b in ((1, 4), (3, 6)):  # from reversed bits
        text.append(f"p = v[{a}]; v[{a}] = v[{b}]; v[{b}] = p;")
    return text


def _butterflies(layers: int, is_turned: bool) -> list[str]:
    """Transforms of 2**layers of the numbers in ``v``, by layers of sums and differences: the highest bits of
    a number's place become its frequency, reversed.
    """
    text = []
    for layer in range(layers):
        span = 4 >> layer
        for a in (e for e in range(8) if not e & span):
            b = a + span
            eighths = _frequency(a, layer) << 2 - layer
            number = f"turned(v[{b}])" if eighths & 2 else f"v[{b}]"
            if eighths & 1:
                text.append(f"p = HALF_ROOT * {number};")
                number = "VEC(p.x + p.y, p.y - p.x)"
            if is_turned:
                number = f"product({number}, w{span})"
            text.append(f"p = {number}; v[{b}] = v[{a}] - p; v[{a}] += p;")
    return text


def _frequency(place: int, bits: int) -> int:
    """The highest `bits` of a place's three, reversed."""
    return sum((place >> 2 - k & 1) << k for k in range(bits))
