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

Drivers for CPUs compile a kernel for about as long as it has accesses to memory. Most of them exchange
numbers between invocations, and none sorts numbers: the way there leaves the frequencies of a line in the
order of reversed bits, and the way back begins with it. All that an invocation stores takes the places of
numbers that it has read itself, so one barrier is enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .radix import HELPERS, LEAST_GROUP, MOST_GROUPS, MOST_NUMBERS, Pass, circle, side_by_side, turns

_LEAST_BITS = 6
"""Of the last factor of several: 2**6 numbers fill rows of caches."""
_SURPLUS = "if (group * LINESu >= lines) return;  // or its lines would be transformed again, in place"
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

HELPERS

void main() {
    INNER
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, t = gl_LocalInvocationID.x;
    SURPLUS
    uint line = PLACE;
    // Invocations beyond the last line do its work once more: they read it before the first barrier, too.
    uint here = min(group * LINESu + line, lines - 1u);
    uint i = here % inner, outer = here / inner, block = outer >> step_bits;
    uint row = (b << step_bits) + (outer & (1u << step_bits) - 1u), apart = EIGHTHu << step_bits;
    uint place = block * (LENGTHu << step_bits) + row, k;
    VEC p, w1, w2, w4, v[8], c[8];
"""


class Split(NamedTuple):
    """The number m as a product of powers of two."""

    bits: tuple[int, ...]
    """The exponent of each factor."""
    lines: tuple[int, ...]
    """The lines of a workgroup, for each factor."""


def split(
    length: int, is_dense: bool, shared_bytes: int, invocations: int, on_gpu: bool, doubles: bool
) -> Split:
    """The factors for a length: few, and each fits into a workgroup. The last one is the smallest, because
    its dispatch transforms there and back. Numbers are neighbours if `is_dense`; else a GPU has several lines
    side by side. One dispatch is the fastest all the same, because several access twice as many numbers."""
    room = min(shared_bytes // (16 if doubles else 8), 8 * invocations)
    most = min(room, MOST_NUMBERS).bit_length() - 1
    bits, side = (2 * length - 2).bit_length(), side_by_side(on_gpu, doubles)
    if bits <= most:
        least = side if on_gpu and not is_dense else 1
        return Split((bits,), (min(max(8 * LEAST_GROUP >> bits, least), 1 << most - bits),))
    strided = most - side.bit_length() + 1
    count = 1 + -(-(bits - most) // strided)
    last = min(max(bits - strided * (count - 1), min(_LEAST_BITS, most)), bits - 3 * (count - 1))
    found = [*((bits - last + k) // (count - 1) for k in range(count - 1)), last]
    return Split(tuple(found), tuple(min(side, 1 << most - each) for each in found))


def passes(
    parts: Split, batches: int, length: int, inner: int, inverse: bool, factor: float, dtype: np.dtype[Any]
) -> list[Pass]:
    """The dispatches that transform the middle axis of (batches, length, inner), and multiply by `factor`.

    Between them the numbers have the shape (batches, m, inner).
    """
    bits, last = parts.bits, len(parts.bits) - 1
    m = 1 << sum(bits)
    chirp, spectrum = _convolved(length, bits, inverse, factor, dtype)
    circles = {each: circle(1 << each).astype(dtype) for each in bits}
    between = [
        turns(1 << bits[level], 1 << sum(bits[level + 1 :]), 1 << bits[level]).astype(dtype)
        for level in range(last)
    ]
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
        groups = -(-lines // parts.lines[level])
        kind = (inner > 1, dtype == np.complex128, groups > MOST_GROUPS, tuple(tables))
        masks = [tables.get(name, one).size - 1 for name in ("before", "between", "after")]
        ways = [length if starts else rows, length if ends else rows, *masks, ends]
        made.append(
            Pass(
                _kernel(bits[level], parts.lines[level], *kind),
                groups,
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
    They are the transform of c, because c is the same for j and -j. Those of the last digit are in the order
    in which `_transform` leaves them, the b-th, (b + L / 8)-th, ... for an invocation.
    """
    m = 1 << sum(bits)
    j = np.arange(length, dtype=np.int64)
    wave = np.exp((1j if inverse else -1j) * np.pi / length * (j * j % (2 * length)))
    chirp, both = np.zeros(m, dtype), np.zeros(m, np.complex128)
    chirp[:length] = wave
    both[:length] = wave * (factor / m)
    both[m - length + 1 :] = both[length - 1 : 0 : -1]
    found = np.fft.fft(both).astype(dtype)
    turned = found.reshape([1 << each for each in reversed(bits)]).transpose()
    eighths = turned.reshape(-1, 8, 1 << bits[-1] - 3)
    return chirp, eighths[:, _reversed(3)][:, :, _reversed(bits[-1] - 3)].reshape(-1)


# -- the kernel ----------------------------------------------------------------------------------------------


def _kernel(
    bits: int, lines: int, is_strided: bool, doubles: bool, is_spread: bool, tables: tuple[str, ...]
) -> str:
    """GLSL that transforms as many lines of 2**bits numbers, and multiplies them by these tables: before the
    transform, between it and the one back, and after it. Without another one, `before` also serves after it.

    There are no loops: with the stages in loops, lavapipe compiles faster, and each run takes twice as long,
    because all variables of a loop with barriers lie in memory. Conditions are around stores alone: drivers
    for CPUs run both sides of each.
    """
    is_whole = tables == ("before", "between")
    is_dense = "between" in tables and not is_strided
    # The second half of a whole convolution's numbers are zeros, and that of its results is not stored.
    rows = [f"row + {e}u * apart" for e in range(4 if is_whole else 8)]
    text = [_HEAD]
    for e, row in enumerate(rows):
        if "before" in tables:  # c has zeros for the numbers beyond the last row
            text.append(f"v[{e}] = given[(block * rows_in + min({row}, rows_in - 1u)) * inner + i];")
            text.append(f"c[{e}] = before[place + {e}u * apart & before_mask];")
            text.append(f"v[{e}] = product(v[{e}], c[{e}]);")
        else:
            text.append(f"v[{e}] = given[(block * rows_in + {row}) * inner + i];")
    text += _transform(bits, lines, is_dense, is_whole)
    order = list(range(8))
    if "between" in tables:
        for e in range(8):
            text.append(f"p = between[place + {e}u * apart & between_mask];")
            text.append(f"v[{e}] = product(VEC(v[{e}].x, -v[{e}].y), p);")
        text += _transform_back(bits, lines, is_dense, is_whole)
    else:
        order = _reversed(3)
        text.append(f"k = (bitfieldReverse(b) >> {35 - bits}) - b << step_bits; row += k; place += k;")
    text.append("p = VEC(1, conjugate != 0u ? -1 : 1);")
    for e, row in enumerate(rows):
        value = f"v[{order[e]}]"
        if "before" in tables:
            factor = f"after[place + {e}u * apart & after_mask]" if "after" in tables else f"c[{e}]"
            value = f"product({value} * p, {factor})"
            text.append(f"if ({row} < rows_out)")
        text.append(f"result[(block * rows_out + {row}) * inner + i] = {value};")
    buffers = [
        f"layout(binding = {binding}) readonly buffer Table{binding} {{ VEC {name}[]; }};"
        for binding, name in enumerate(tables, 4)
    ]
    source = "\n    ".join(text) + "\n}\n"
    words: dict[str, object] = {
        "HELPERS": HELPERS,
        "GROUP": lines << bits - 3,
        "ROOM": lines << bits,
        "SURPLUS": _SURPLUS if is_spread else "",
        "PLACE": "t / EIGHTHu, b = t % EIGHTHu" if is_dense else "t % LINESu, b = t / LINESu",
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


def _stages(bits: int) -> list[tuple[int, int]]:
    """For each stage of the way there: the distance between the numbers that an invocation has, as an
    exponent of two, and its layers. All have three layers but the first one, which has the others.
    """
    layers = bits % 3 or 3
    return [(bits - 3, layers), *((step, 3) for step in range(bits - layers - 3, -1, -3))]


def _transform(bits: int, lines: int, is_dense: bool, is_half: bool) -> list[str]:
    """The transform of a line. An invocation has the numbers b, b + L / 8, b + 2 L / 8, ... in ``v``; at the
    end it has 8 b, 8 b + 1, ... of the frequencies in the order of reversed bits (W. M. Gentleman and
    G. Sande, 1966). If `is_half`, the second half of the numbers are zeros, and not in ``v``.
    """
    text: list[str] = []
    stages = _stages(bits)
    for number, (step, layers) in enumerate(stages):
        if number:
            text += _exchange(bits, stages[number - 1][0], step, lines, is_dense)
        text += _roots(bits, step)
        for span in (4, 2, 1)[:layers]:
            for a, b, eighths in _pairs(span):
                if is_half and not number and span == 4:
                    text += _turn(f"v[{a}]", eighths, step, span)
                else:
                    text.append(f"p = v[{a}] - v[{b}]; v[{a}] += v[{b}];")
                    text += _turn("p", eighths, step, span)
                text.append(f"v[{b}] = p;")
    return text


def _transform_back(bits: int, lines: int, is_dense: bool, is_half: bool) -> list[str]:
    """The transform of numbers in the order at the end of `_transform`, to that at its beginning. If
    `is_half`, only the first half of the results.
    """
    text: list[str] = []
    stages = _stages(bits)
    for number, (step, layers) in reversed([*enumerate(stages)]):
        text += _roots(bits, step)
        for span in reversed((4, 2, 1)[:layers]):
            for a, b, eighths in _pairs(span):
                text += _turn(f"v[{b}]", eighths, step, span)
                other = "" if is_half and not number and span == 4 else f"v[{b}] = v[{a}] - p; "
                text.append(f"{other}v[{a}] += p;")
        if number:
            text += _exchange(bits, step, stages[number - 1][0], lines, is_dense)
    return text


def _pairs(span: int) -> list[tuple[int, int, int]]:
    """The pairs of numbers in ``v`` that a layer adds and subtracts, and by how many eighths of a turn."""
    return [(e, e + span, e % span * (4 // span)) for e in range(8) if not e & span]


def _turn(number: str, eighths: int, step: int, span: int) -> list[str]:
    """Makes ``p`` the number, turned by the eighths and by the layer's root."""
    text: list[str] = []
    if eighths & 2:
        number = f"turned({number})"
    if eighths & 1:
        text.append(f"p = HALF_ROOT * {number};")
        number = "VEC(p.x + p.y, p.y - p.x)"
    if step:
        number = f"product({number}, w{4 // span})"
    return [*text, f"p = {number};"]


def _roots(bits: int, step: int) -> list[str]:
    """The roots of a stage's layers, if they are not 1."""
    root = f"roots[(b & {(1 << step) - 1}u) << {bits - step - 3}]"
    return [f"w1 = {root}; w2 = product(w1, w1); w4 = product(w2, w2);"] if step else []


def _exchange(bits: int, before: int, after: int, lines: int, is_dense: bool) -> list[str]:
    """Between numbers that are 2**before apart and others that are 2**after apart."""
    unit = 1 if is_dense else lines
    text: list[str] = []
    for step, access in ((before, "numbers[k ^ {}u] = v[{}];"), (after, "v[{1}] = numbers[k ^ {0}u];")):
        first = f"((b >> {step} << {step + 3}) + (b & {(1 << step) - 1}u))"
        text.append(f"k = at({f'line * LENGTHu + {first}' if is_dense else f'{first} * LINESu + line'});")
        text += [access.format(_at(unit * e << step), e) for e in range(8)]
        text.append("barrier();")
    return text[:-1]


def _at(place: int) -> int:
    """As in the kernel. The place of a sum without carries is the exclusive or of the places."""
    return place ^ (place >> 3 & 15)


def _reversed(bits: int) -> list[int]:
    """The numbers below 2**bits with their bits in reverse."""
    return [sum((n >> bits - 1 - k & 1) << k for k in range(bits)) for n in range(1 << bits)]
