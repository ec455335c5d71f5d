"""The dispatches of Fourier transforms.

`radix` transforms one axis of complex numbers, or `chirp`, if the length has a prime factor above 13. What
surrounds a transform (padding, real numbers, factors) are dispatches before and after it.

An even number n of real numbers is taken as n / 2 complex ones, which costs half. If z[j] = x[2 j] +
i x[2 j + 1] has the transform Z, then those of the even and the odd numbers are E[k] = (Z[k] + Z*[-k]) / 2
and O[k] = (Z[k] - Z*[-k]) / 2i, and x has E[k] + exp(-2 pi i k / n) O[k] (J. W. Cooley, P. A. W. Lewis and
P. D. Welch, 1970). That is done after the other axes, so these also have half of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._builders.walks import one_each
from ..._compilers.compile import compile
from ..._custom.builder import FunctionBuilder, TensorValue
from ..._custom.expressions import two_axes
from ..._custom.selection import FunctionSelection
from . import chirp, radix

_LEAST = (16384, 128, False)
"""Facts of a device that is not known: what Vulkan guarantees, and as for a processor."""


class Geometry(NamedTuple):
    """A transform of several axes."""

    axes: tuple[int, ...]
    """The last one has half of the numbers in a transform of real numbers."""
    given: tuple[int, ...]
    """The shape of the argument."""
    full: tuple[int, ...]
    """The shape of all numbers."""
    half: tuple[int, ...]
    """The same, without those that are conjugates of others."""
    factor: float

    @property
    def is_even(self) -> bool:
        """Whether the last axis has pairs of numbers."""
        return self.full[self.axes[-1]] % 2 == 0

    @property
    def paired(self) -> tuple[int, ...]:
        """The shape of the pairs."""
        last = self.axes[-1]
        return tuple(n // 2 if axis == last else n for axis, n in enumerate(self.full))

    def is_innermost(self, axis: int) -> bool:
        """Whether the numbers of `axis` stand side by side."""
        return math.prod(self.full[axis + 1 :]) == 1


class Writer:
    """Writes the dispatches of a transform into numbers of `dtype`, or of the complex dtype like it."""

    def __init__(
        self, ksel: FunctionSelection, kb: FunctionBuilder, inverse: bool, dtype: np.dtype[Any]
    ) -> None:
        self.kb, self.inverse = kb, inverse
        self.doubles = dtype in (np.float64, np.complex128)
        self.dtype = np.dtype(np.complex128 if self.doubles else np.complex64)
        self.real_dtype = np.dtype(np.float64 if self.doubles else np.float32)
        self.vec, self.real = ("dvec2", "double") if self.doubles else ("vec2", "float")
        self.device = _LEAST if ksel.device is None else _facts(ksel.device)
        self.normalize = False
        """Each axis divides by its length."""
        self.tables = 0
        self.shared: dict[str, TensorValue] = {}
        """By name and size, and the tables of roots by the length."""

    # -- kinds of transforms ---------------------------------------------------------------------------------

    def whole(self, x: TensorValue, result: TensorValue, shape: Geometry) -> None:
        """Of real or complex numbers, all of the result."""
        axes = [axis for axis in reversed(shape.axes) if shape.full[axis] > 1]
        inverse = 1 / math.prod(shape.full[axis] for axis in shape.axes)
        self.normalize = self.inverse and shape.factor == inverse
        straight = (
            bool(axes)
            and shape.given == shape.full
            and (shape.factor == 1 or self.normalize)
            and x.dtype == self.dtype
        )
        if straight:
            self._axis(result, shape.full, axes.pop(0), x)
        else:
            self.normalize = False
            self._load(x, result, shape.given, shape.full, shape.factor)
        for axis in axes:
            self._axis(result, shape.full, axis)

    def from_real(self, x: TensorValue, result: TensorValue, shape: Geometry) -> None:
        """Of real numbers, half of the result."""
        if shape.is_even:
            self._from_pairs(x, result, shape)
            return
        work = self.scratch("work", math.prod(shape.full))
        self._load(x, work, shape.given, shape.full, shape.factor)
        self._axis(work, shape.full, shape.axes[-1])
        kb = self.kb
        kb.begin_dispatch("half")
        self._elements(shape.half)
        kb.emit(f"{result}_store(i, {work}_load({_index(shape.full)}));")
        for axis in reversed(shape.axes[:-1]):
            self._axis(result, shape.half, axis)

    def to_real(self, x: TensorValue, result: TensorValue, shape: Geometry) -> None:
        """Of half of the complex numbers, real ones."""
        if shape.is_even:
            self._to_pairs(x, result, shape)
            return
        kb = self.kb
        last = shape.axes[-1]
        work = self.scratch("work", math.prod(shape.full))
        source: TensorValue = x
        given, factor = shape.given, shape.factor
        if len(shape.axes) > 1:
            source = self.scratch("part", math.prod(shape.half))
            self._load(x, source, given, shape.half, factor)
            for axis in reversed(shape.axes[:-1]):
                self._axis(source, shape.half, axis)
            given, factor = shape.half, 1.0
        n, h = shape.full[last], shape.half[last]
        with_conjugates = f"""
            bool kp_other = c{last} >= {h}u;
            if (kp_other) c{last} = {n}u - c{last};
        """
        change = f"if (c{last} == 0u) v.y = 0; else if (kp_other) v.y = -v.y;"
        self._load(source, work, given, shape.full, factor, with_conjugates, change)
        self._axis(work, shape.full, last)
        kb.begin_dispatch("real")
        self._elements(shape.full, coordinates=False)
        kb.emit(f"{result}_store(i, {work}_load(i).x);")

    def product(self, *parts: tuple[TensorValue, tuple[int, ...]]) -> tuple[TensorValue, tuple[int, ...]]:
        """The products of two arrays of complex numbers, given with their shapes, which broadcast. One of the
        arrays has them afterwards, if it has their shape.
        """
        kb = self.kb
        shape = np.broadcast_shapes(*(each for _, each in parts))
        whole = [numbers for numbers, each in parts if each == shape]
        result = whole[0] if whole else self.scratch("product", math.prod(shape))
        kb.begin_dispatch("multiply")
        self._elements(shape)
        for name, (numbers, each) in zip("ab", parts, strict=True):
            repeated = {axis: "0u" for axis, n in enumerate(each) if n == 1}
            kb.emit(f"{self.vec} {name} = {numbers}_load({_index(each, repeated)});")
        kb.emit(f"{result}_store(i, {self.vec}(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x));")
        return result, shape

    def cut(
        self,
        numbers: TensorValue,
        shape: Sequence[int],
        result: TensorValue,
        kept: Sequence[int],
        first: Sequence[int],
    ) -> None:
        """The part of `shape` that begins at `first`, and has the shape `kept`."""
        self.kb.begin_dispatch("cut")
        self._elements(kept)
        places = {axis: f"(c{axis} + {n}u)" for axis, n in enumerate(first)}
        self.kb.emit(f"{result}_store(i, {numbers}_load({_index(shape, places)}));")

    # -- blocks that overlap ---------------------------------------------------------------------------------

    def split(
        self,
        x: TensorValue,
        pieces: TensorValue,
        given: Sequence[int],
        shape: Sequence[int],
        axis: int,
        overlap: int,
    ) -> None:
        """Writes an axis of `x` in blocks that overlap. `shape` has its axes, with the blocks and their
        numbers for `axis`. So many zeros come before the first number, and others follow the last one.
        """
        step = shape[axis + 1] - overlap
        self.kb.begin_dispatch("split")
        self._declare_at(x, given)
        self._elements(shape)
        places = [f"c{each + (each > axis)}" for each in range(len(given))]
        # It wraps around before the first number, and so lies beyond the last one.
        places[axis] = f"c{axis} * {step}u + c{axis + 1} - {overlap}u"
        part = ".x" if pieces.dtype.kind == "f" else ""
        self.kb.emit(f"{pieces}_store(i, kp_at({', '.join(places)}){part});")

    def join(
        self,
        pieces: TensorValue,
        shape: Sequence[int],
        result: TensorValue,
        kept: Sequence[int],
        axis: int,
        first: int,
        overlap: int,
    ) -> None:
        """Writes what the blocks have behind their overlaps, from number `first` of the axis on."""
        step = shape[axis + 1] - overlap
        self.kb.begin_dispatch("join")
        self._elements(kept)
        places = {each + (each > axis): f"c{each}" for each in range(len(kept))}
        places[axis], places[axis + 1] = f"(kp_place / {step}u)", f"(kp_place % {step}u + {overlap}u)"
        self.kb.emit(f"uint kp_place = c{axis} + {first}u;")
        self.kb.emit(f"{result}_store(i, {pieces}_load({_index(shape, places)}));")

    # -- pairs of real numbers -------------------------------------------------------------------------------

    def _from_pairs(self, x: TensorValue, result: TensorValue, shape: Geometry) -> None:
        kb, last, paired = self.kb, shape.axes[-1], shape.paired
        work = self.scratch("work", math.prod(paired))
        axes = [axis for axis in reversed(shape.axes) if paired[axis] > 1]
        in_line = axes[:1] == [last] and shape.is_innermost(last)
        if in_line and shape.given == shape.full and x.dtype == self.real_dtype:
            self._axis(work, paired, axes.pop(0), x)  # the pairs stand in `x` as complex numbers do
        else:
            self._load_pairs(x, work, shape)
        for axis in axes:
            self._axis(work, paired, axis)
        kb.begin_dispatch("real")
        h = paired[last]
        opposite = _opposite(shape, f"({h}u - k) % {h}u")
        self._frequencies(shape)
        kb.emit(f"""
            {self.vec} a = {work}_load({_index(paired)});
            {self.vec} b = {work}_load({_index(paired, opposite)});
            b.y = -b.y;
            {self.vec} d = a - b;
            {self.vec} o = {self.vec}(w.x * d.y + w.y * d.x, w.y * d.y - w.x * d.x);
        """)
        self._store_both(result, shape, shape.half, shape.factor / 2, f"2u * k != {h}u")

    def _to_pairs(self, x: TensorValue, result: TensorValue, shape: Geometry) -> None:
        kb, last, paired = self.kb, shape.axes[-1], shape.paired
        work = self.scratch("work", math.prod(paired))
        kb.begin_dispatch("pairs")
        h = paired[last]
        self._declare_at(x, shape.given)
        here = {axis: f"c{axis}" for axis in range(len(paired))}
        opposite = _opposite(shape, "")

        def at(k: str, places: dict[int, str]) -> str:
            return f"kp_at({', '.join({**here, **places, last: k}.values())})"

        # The first and the middle one are conjugates of themselves, after the other axes.
        ends = f"a = {at('0u', here)}; b = {at(f'{h}u', here)};"
        if len(opposite) > 1:
            ends += f"""
                {self.vec} a2 = {at("0u", opposite)}, b2 = {at(f"{h}u", opposite)};
                a = 0.5 * {self.vec}(a.x + a2.x, a.y - a2.y);
                b = 0.5 * {self.vec}(b.x + b2.x, b.y - b2.y);
            """
        else:
            ends += "a.y = 0; b.y = 0;"
        self._frequencies(shape)
        kb.emit(f"""
            {self.vec} a, b;
            if (k == 0u) {{
                {ends}
            }} else {{
                a = {at("k", here)};
                b = {at(f"{h}u - k", opposite)};
                b.y = -b.y;
            }}
            {self.vec} d = a - b;
            {self.vec} o = {self.vec}(w.y * d.x - w.x * d.y, w.x * d.x + w.y * d.y);
        """)
        self._store_both(work, shape, paired, shape.factor, f"k != 0u && 2u * k != {h}u")
        axes = [axis for axis in shape.axes if paired[axis] > 1]
        in_line = axes[-1:] == [last] and shape.is_innermost(last)
        for axis in axes[:-1] if in_line else axes:
            self._axis(work, paired, axis)
        if in_line:
            self._axis(result, paired, last, work)
            return
        kb.begin_dispatch("real")
        self._elements(shape.full)
        kb.emit(f"{self.vec} v = {work}_load({_index(paired, {last: f'(c{last} / 2u)'})});")
        kb.emit(f"{result}_store(i, c{last} % 2u == 0u ? v.x : v.y);")

    def _load_pairs(self, x: TensorValue, work: TensorValue, shape: Geometry) -> None:
        last = shape.axes[-1]
        self.kb.begin_dispatch("load")
        self._declare_at(x, shape.given)
        self._elements(shape.paired)
        both = [
            f"kp_at({', '.join(place if axis == last else f'c{axis}' for axis in range(len(shape.full)))}).x"
            for place in (f"2u * c{last}", f"2u * c{last} + 1u")
        ]
        self.kb.emit(f"{work}_store(i, {self.vec}({', '.join(both)}));")

    def _frequencies(self, shape: Geometry) -> None:
        """The invocation has the frequency ``k`` of the last axis, from 0 to a quarter of its length n, and
        those of the other axes; ``w`` is exp(-2 pi i k / n).
        """
        last, n = shape.axes[-1], shape.full[shape.axes[-1]]
        if f"roots{n}" not in self.shared:
            angles = np.arange(n // 4 + 1) * (-2 * np.pi / n)
            table = (np.cos(angles) + 1j * np.sin(angles)).astype(self.dtype)
            self.shared[f"roots{n}"] = self.kb.constant(f"roots_{len(self.shared)}", table)
        roots = self.shared[f"roots{n}"]
        self._elements([n // 4 + 1 if axis == last else each for axis, each in enumerate(shape.full)])
        self.kb.emit(f"uint k = c{last};")
        self.kb.emit(f"{self.vec} w = {roots}_load(k);")

    def _store_both(
        self, target: TensorValue, shape: Geometry, stored: Sequence[int], factor: float, other: str
    ) -> None:
        """Stores what follows from ``a``, ``b`` and ``o`` for the frequency, and for the opposite one if the
        condition `other` holds: else another invocation does.
        """
        opposite = _opposite(shape, f"({shape.paired[shape.axes[-1]]}u - k)")
        number = self._number(factor)
        self.kb.emit(f"""
            {self.vec} e = a + b, f = {self.vec}(e.x - o.x, o.y - e.y);
            {target}_store({_index(stored)}, {number} * (e + o));
            if ({other}) {target}_store({_index(stored, opposite)}, {number} * f);
        """)

    # -- elements --------------------------------------------------------------------------------------------

    def _elements(self, shape: Sequence[int], coordinates: bool = True) -> None:
        """The invocation has the element ``i`` of an array, with the coordinates ``c0``, ``c1``, ..."""
        count = math.prod(shape)
        one_each(self.kb, count, "i")
        if coordinates:
            self.kb.emit("uint kp_rest = i;")
            for axis in reversed(range(len(shape))):
                self.kb.emit(f"uint c{axis} = kp_rest % {shape[axis]}u; kp_rest /= {shape[axis]}u;")

    def _declare_at(self, x: TensorValue, given: Sequence[int]) -> None:
        """``kp_at(c0, c1, ...)``: an element of `x` as a complex number, or 0 beyond the shape."""
        loaded = f"{x}_load({_index(given)})"
        loaded = f"{self.vec}({loaded})" if x.dtype.kind == "c" else f"{self.vec}({self.real}({loaded}), 0)"
        body = f"{self.vec}(0)"
        if 0 not in given:
            inside = " && ".join(f"c{axis} < {n}u" for axis, n in enumerate(given)) or "true"
            body = f"{inside} ? {loaded} : {body}"
        parameters = ", ".join(f"uint c{axis}" for axis in range(len(given)))
        self.kb.declare(f"{self.vec} kp_at({parameters}) {{ return {body}; }}")

    def _load(
        self,
        x: TensorValue,
        target: TensorValue,
        given: Sequence[int],
        shape: Sequence[int],
        factor: float,
        before: str = "",
        after: str = "",
    ) -> None:
        """Writes `x` of shape `given` into `target` of `shape`: cut off or with zeros, times a factor."""
        kb = self.kb
        kb.begin_dispatch("load")
        self._declare_at(x, given)
        self._elements(shape)
        kb.emit(before)
        times = "" if factor == 1 else f" * {self._number(factor)}"
        kb.emit(f"{self.vec} v = kp_at({', '.join(f'c{axis}' for axis in range(len(shape)))}){times};")
        kb.emit(after)
        kb.emit(f"{target}_store(i, v);")

    def _number(self, number: float) -> str:
        """A number of the result's precision in GLSL."""
        text = repr(float(number))
        text = text if "." in text or "e" in text else text + ".0"
        return f"{self.real}({text}{'lf' if self.doubles else ''})"

    # -- axes ------------------------------------------------------------------------------------------------

    def _axis(
        self, numbers: TensorValue, shape: Sequence[int], axis: int, source: TensorValue | None = None
    ) -> None:
        """Transforms an axis in place, or from `source`: complex numbers of this precision in memory.
        With a source, `numbers` may be real: pairs of them are complex numbers.
        """
        length = shape[axis]
        if length == 1:
            return
        batches, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        factor = 1 / length if self.normalize else 1.0
        if radix.is_smooth(length):
            parts = radix.split(length, inner == 1, *self.device, self.doubles)
            passes = radix.passes(parts, batches, inner, self.inverse, factor, self.dtype)
            room = length
        else:
            split = chirp.split(length, inner == 1, *self.device, self.doubles)
            passes = chirp.passes(split, batches, length, inner, self.inverse, factor, self.dtype)
            room = 1 << sum(split.bits)
        work = self.scratch("passes", batches * room * inner) if len(passes) > 1 else numbers
        names: dict[int, str] = {}

        def table(contents: np.ndarray[Any, Any]) -> str:
            key = id(contents)
            if key not in names:
                self.tables += 1
                kind = np.uint32 if contents.dtype == np.uint32 else self.real_dtype
                names[key] = self.kb.constant(f"table_{self.tables}", contents.view(kind)).name
            return names[key]

        for each in passes:
            given = work if not each.starts else numbers if source is None else source
            target = numbers if each.ends else work
            before, after = [each.parameters, each.roots], each.tables
            self.kb.begin_dispatch("axis")
            self.kb.spirv(
                compile(each.source, optimize="none"),
                bindings=[*map(table, before), given.name, target.name, *map(table, after)],
            )
            self.kb.groups(*two_axes(each.groups))

    def scratch(self, name: str, count: int) -> TensorValue:
        """Scratch memory of complex numbers, which transforms use in their turn."""
        key = f"{name}{count}"
        if key not in self.shared:
            self.shared[key] = self.kb.scratch(f"{name}_{len(self.shared)}", count, self.dtype)
        return self.shared[key]


def _facts(device: Any) -> tuple[int, int, bool]:
    """The bytes of a workgroup's memory, its invocations, and whether the device is a GPU."""
    limits, on_gpu = device["limits"], device["type"] != "cpu"
    return limits["maxComputeSharedMemorySize"], limits["maxComputeWorkGroupInvocations"], on_gpu


def _index(shape: Sequence[int], instead: dict[int, str] | None = None) -> str:
    """The number of an element in row-major order by its coordinates: ``c0``, ``c1``, ..., or other names."""
    index = "0u"
    for axis, n in enumerate(shape):
        index = f"({index}) * {n}u + {(instead or {}).get(axis, f'c{axis}')}"
    return index


def _opposite(shape: Geometry, last: str) -> dict[int, str]:
    """The coordinates of the opposite frequency on axes with several; `last` is that on the last axis."""
    found = {a: f"(c{a} == 0u ? 0u : {shape.full[a]}u - c{a})" for a in shape.axes if shape.full[a] > 1}
    return {**found, shape.axes[-1]: last}
