"""How reductions and scans walk through their arguments: axes merged, elements loaded, runs combined.

Loops in the kernels are short: llvmpipe ends all loops of an invocation, without a word, after 65,535 turns
in total, so an invocation takes at most `MOST_RUN` elements. What computes and combines them stands in the
kernel many times if it is short, for turns of four or eight, and once or twice if it is long: SwiftShader
would compile twenty logarithms in a loop for minutes, and as many complex quotients for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._custom.arg_descs import TensorArg
from .._custom.builder import FunctionBuilder
from .._custom.expressions import IntOrSize, Size, glsl, two_axes
from .._custom.selection import FunctionSelection
from .._custom.specs import PartSpec, TensorSpec
from .._formulas.formula import Formula
from .._formulas.glsl_elements import element_of
from .._formulas.typed import Typed, declarations_of

MOST_RUN = 2**15
"""Elements that one invocation takes: as many turns, and some around them."""
_LONG = 1500
"""Characters of GLSL from which on functions are long. A complex quotient has 1,700, a sine 2,500."""
_GROUP = 256
"""Invocations of a workgroup, if the device has so many."""
_LEAST_GROUP = 128
"""Those that every device has."""


QUADS = {"float32": "vec4", "int32": "ivec4", "uint32": "uvec4"}
"""The types of four elements that one load takes."""


class Axis(NamedTuple):
    """An axis of a walk, or several that are one in memory."""

    length: int
    steps: tuple[int, ...]
    """For each tensor the elements from one to the next."""


def group_of(ksel: FunctionSelection) -> int:
    """The invocations of a workgroup, a power of two; without a device, those of any."""
    if ksel.device is None:
        return _LEAST_GROUP
    limits = ksel.device["limits"]
    most = min(limits["maxComputeWorkGroupInvocations"], limits["maxComputeWorkGroupSize"][0])
    return _GROUP if most >= _GROUP else _LEAST_GROUP


class Walk(NamedTuple):
    """The elements of some tensors that broadcast: over the axes that stay, and along those that do not."""

    kept: tuple[Axis, ...]
    along: tuple[Axis, ...]
    rest: tuple[int, ...]
    """The lengths of the axes that stay, as the caller knows them."""

    @property
    def total(self) -> int:
        """Elements along the axes that do not stay."""
        return math.prod(axis.length for axis in self.along)

    @property
    def lines(self) -> int:
        """The number of those runs."""
        return math.prod(axis.length for axis in self.kept)

    @property
    def pattern(self) -> Walk:
        """What kernels depend on: a walk with 2 for longer lengths and steps."""
        kept, along = (
            tuple(Axis(min(axis.length, 2), tuple(min(step, 2) for step in axis.steps)) for axis in axes)
            for axes in (self.kept, self.along)
        )
        return Walk(kept, along, ())


def broadcast(ksel: FunctionSelection, tensors: Sequence[TensorArg]) -> tuple[int, ...]:
    """The common shape. Raises InvalidArgumentError if there is none."""
    try:
        return np.broadcast_shapes(*(each.shape for each in tensors))
    except ValueError:
        shapes = ", ".join(f"{each.name} {each.shape}" for each in tensors)
        raise InvalidArgumentError(
            f"{ksel.name}: the shapes do not broadcast, as NumPy's rule wants: {shapes}"
        ) from None


def axes_of(who: str, axis: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes in ascending order; None is all.

    Raises InvalidArgumentError for one that the shape does not have or that is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    for each in axis:
        if not -ndim <= each < ndim:
            raise InvalidArgumentError(f"{who}: axis is {shown(each)}, and there are {ndim} axes")
    found = sorted(each % ndim for each in axis)
    if len(set(found)) < len(found):
        raise InvalidArgumentError(f"{who}: axis has an axis twice: {shown(list(axis))}")
    return tuple(found)


def walk_of(shape: tuple[int, ...], tensors: Sequence[TensorArg], axes: Iterable[int]) -> Walk:
    """The walk along `axes` of tensors that broadcast to `shape`."""
    steps = [_steps(shape, each) for each in tensors]
    along = set(axes)
    every = [Axis(n, tuple(each[axis] for each in steps)) for axis, n in enumerate(shape)]
    rest = tuple(n for axis, n in enumerate(shape) if axis not in along)
    return Walk(
        merged(every[axis] for axis in range(len(shape)) if axis not in along),
        merged(every[axis] for axis in sorted(along)),
        rest,
    )


def _steps(shape: tuple[int, ...], tensor: TensorArg) -> list[int]:
    found, step = [], 1
    for n in reversed(tensor.shape):
        found.append(0 if n == 1 else step)
        step *= n
    return [0] * (len(shape) - tensor.ndim) + found[::-1]


def merged(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    found: list[Axis] = []
    for axis in axes:
        if axis.length == 1:
            continue
        last = found[-1] if found else None
        if last and all(a == b * axis.length for a, b in zip(last.steps, axis.steps, strict=True)):
            found[-1] = Axis(last.length * axis.length, axis.steps)
        else:
            found.append(axis)
    return tuple(found)


class TooLargeError(InvalidArgumentError):
    """Memory beyond what the device's shaders reach through one binding."""

    def __init__(self, message: str = "", results: tuple[TensorSpec, ...] = (), most: int = 0) -> None:
        super().__init__(message)
        self.results = results
        self.most = most


def _reach(ksel: FunctionSelection) -> int:
    """Bytes that the device's shaders reach through one binding."""
    return 2**64 if ksel.device is None else int(ksel.device["limits"]["maxStorageBufferRange"])


ON_HOST = "on the host, from t.read()"
IN_PARTS = f"Compute it in parts, t[:n] and t[n:], if they do not depend on each other, or {ON_HOST}"


def check_sizes(ksel: FunctionSelection, way: str = IN_PARTS) -> None:
    """Raises TooLargeError for memory beyond what the device's shaders reach through one binding; `way` says
    what to do about it.
    """
    most = _reach(ksel)
    for each in ksel.tensors:
        size = each.t.reach if isinstance(each.t, PartSpec) else each.t.nbytes
        if each.size and size > most:
            raise TooLargeError(
                f"{ksel.name}: the memory of {each.name} has {size} bytes; shaders of this device reach "
                f"{most} through one binding (maxStorageBufferRange). "
                f"{way}",
                tuple(result.t for result in ksel.results),
                most,
            )


def tell(ksel: FunctionSelection, walk: Walk) -> None:
    """Declares the walk's numbers as run-time values, and what the kernels depend on: `Walk.pattern`."""
    ksel.specialize(walk=walk.pattern)
    for letter, axes in (("k", walk.kept), ("a", walk.along)):
        for number, axis in enumerate(axes):
            if number:
                ksel.value(f"kp_{letter}{number}", axis.length, "uint32")
            for place, step in enumerate(axis.steps):
                if step > 1:
                    ksel.value(f"kp_{letter}{number}_{place}", step, "uint32")
    ksel.value("kp_n", walk.total, "uint32")
    ksel.value("kp_lines", walk.lines, "uint32")


Accs = np.dtype[Any] | tuple[np.dtype[Any], ...]
"""The dtype in which elements are combined; of elements with several values that of each."""


def kind_of_elements(acc: Accs) -> str:
    """The type of an element in GLSL; ``kp_Element`` has several values."""
    return "kp_Element" if isinstance(acc, tuple) else element_of(acc).type


def values_of(element: str, acc: Accs) -> list[str]:
    """The expressions of an element's values."""
    return [f"{element}.kp_m{n}" for n in range(len(acc))] if isinstance(acc, tuple) else [element]


def element_made(values: Iterable[str], acc: Accs) -> str:
    """The expression of an element with these values."""
    text = ", ".join(values)
    return f"kp_Element({text})" if isinstance(acc, tuple) else text


class Elements:
    """The GLSL that loads mapped elements of a walk: of type `kind`, by ``kp_get(k, ...)``.

    That of the `Reducer` stands before it: it declares the type of elements with several values.
    """

    def __init__(self, ksel: FunctionSelection, map_: Typed, acc: Accs, walk: Walk) -> None:
        self.acc = acc
        self.kind = kind_of_elements(acc)
        self.walk = walk
        self.map = map_
        self.tensors = [a for a in ksel.arg_descs if isinstance(a, TensorArg) and a.name in map_.names]
        every = [a for a in ksel.arg_descs if isinstance(a, TensorArg)]
        self.places = {a.name: number for number, a in enumerate(every)}
        self.bases = [f"kp_b{self.places[a.name]}" for a in self.tensors]
        steps = [walk.along[0].steps[self.places[a.name]] if walk.along else 0 for a in self.tensors]
        self.quads = (
            len(walk.along) == 1
            and 1 in steps
            and all(
                s == 0 or (s == 1 and a.dtype.name in QUADS) for s, a in zip(steps, self.tensors, strict=True)
            )
        )
        """Whether four elements may stand in line in memory, so that one load takes them."""
        # Loads of run-time values in a loop take llvmpipe as long as those of elements: once is enough.
        self.values = [
            (element_of(a.dtype).type, a.name)
            for a in ksel.values
            if element_of(a.dtype).type != "bool" and (a.name in map_.names or a.name in _names(map_))
        ]
        self.inline = [base for base, step in zip(self.bases, steps, strict=True) if step == 1]

    def declare(self, kb: FunctionBuilder) -> None:
        """Adds the functions to the dispatch."""
        for extension in self.map.extensions:
            kb.extension(extension)
        types = {a.name: element_of(a.dtype).type for a in self.tensors}
        scalars = {name: name for name in self.map.names if name not in types}
        statements, results = self.map.glsl({**scalars, **{name: f"kp_v_{name}" for name in types}})
        taken = "".join(f", {kind} {name}" for kind, name in self.values)
        passed = "".join(f", {name}" for _, name in self.values)
        parameters = "uint kp_none" + "".join(f", {kind} kp_v_{name}" for name, kind in types.items()) + taken
        lines = [declarations_of(self.map), f"{self.kind} kp_map({parameters}) {{"]
        lines += [f"    {each}" for each in statements]
        lines += [f"    return {element_made(results.values(), self.acc)};", "}"]
        where = "".join(f", uint {base}" for base in self.bases) + taken
        lines.append(f"{self.kind} kp_get(uint k{where}) {{")
        axes = self.walk.along
        if len(axes) > 1:
            lines.append("    uint kp_c0 = k;")
            lines += [
                f"    uint kp_c{n} = kp_c0 % kp_a{n}; kp_c0 /= kp_a{n};" for n in range(len(axes) - 1, 0, -1)
            ]
        names = [f"kp_c{n}" for n in range(len(axes))] if len(axes) > 1 else ["k"]
        loads = []
        for tensor, base in zip(self.tensors, self.bases, strict=True):
            parts = [base, *self._terms("a", axes, names, self.places[tensor.name])]
            loads.append(f"{tensor.name}_load({' + '.join(parts)})")
        lines.append(f"    return kp_map({', '.join(['0u', *loads])}{passed});\n}}")
        if self.quads:
            lines.append(f"void kp_four(uint k, out {self.kind} kp_o[4]{where}) {{")
            rows: list[list[str]] = [[], [], [], []]
            for tensor, base in zip(self.tensors, self.bases, strict=True):
                if base in self.inline:
                    lines.append(
                        f"    {QUADS[tensor.dtype.name]} kp_q_{tensor.name} = "
                        f"{tensor.name}_load4(({base} + k) / 4u);"
                    )
                else:
                    lines.append(f"    {types[tensor.name]} kp_q_{tensor.name} = {tensor.name}_load({base});")
                for number, row in enumerate(rows):
                    row.append(f"kp_q_{tensor.name}" + (f"[{number}]" if base in self.inline else ""))
            lines += [
                f"    kp_o[{number}] = kp_map({', '.join(['0u', *row])}{passed});"
                for number, row in enumerate(rows)
            ]
            lines.append("}")
        kb.declare("\n".join(lines))

    def find(self) -> str:
        """Statements that find the first elements of the line ``kp_line``."""
        axes = self.walk.kept
        lines = ["uint kp_k0 = kp_line;"]
        lines += [f"uint kp_k{n}_ = kp_k0 % kp_k{n}; kp_k0 /= kp_k{n};" for n in range(len(axes) - 1, 0, -1)]
        lines += [f"{kind} kp_h_{name} = {name};" for kind, name in self.values]
        names = ["kp_k0", *(f"kp_k{n}_" for n in range(1, len(axes)))]
        for tensor, base in zip(self.tensors, self.bases, strict=True):
            terms = self._terms("k", axes, names, self.places[tensor.name])
            lines.append(f"uint {base} = {' + '.join(terms) or '0u'};")
        if self.quads:
            lines.append(f"bool kp_even = (({' | '.join(self.inline)}) & 3u) == 0u;")
        return "\n".join(lines)

    def _terms(self, letter: str, axes: Sequence[Axis], names: Sequence[str], place: int) -> list[str]:
        terms = []
        for number, (axis, name) in enumerate(zip(axes, names, strict=False)):
            if axis.steps[place] == 1:
                terms.append(name)
            elif axis.steps[place]:
                terms.append(f"{name} * kp_{letter}{number}_{place}")
        return terms

    def get(self, k: str) -> str:
        """The expression of an element."""
        return f"kp_get({', '.join([k, *self.bases, *self._held()])})"

    def four(self, k: str, into: str) -> str:
        """The statement that loads four elements in line."""
        return f"kp_four({', '.join([k, into, *self.bases, *self._held()])});"

    def _held(self) -> list[str]:
        return [f"kp_h_{name}" for _, name in self.values]


def _names(map_: Typed) -> set[str]:
    return {value.name for value in map_.values}


class Reducer:
    """The GLSL of what combines two elements: ``kp_r(a, b)``. `map_` computes the elements."""

    long = False
    """Whether a kernel has elements and their combination in few places."""

    def __init__(self, typed: Typed, acc: Accs, map_: Typed | None = None) -> None:
        self.typed = typed
        every = (typed,) if map_ is None else (typed, map_)
        self.long = isinstance(acc, tuple) or len(declarations_of(*every)) > _LONG
        self.acc = acc
        self.kind = kind_of_elements(acc)
        self.kept: list[str] = []
        """Scratch memory for elements with several values, by name: an array for each."""

    @property
    def zero(self) -> str:
        """An element in GLSL."""
        if not isinstance(self.acc, tuple):
            return f"{self.kind}(0)"
        return element_made((f"{element_of(each).type}(0)" for each in self.acc), self.acc)

    def declare(self, kb: FunctionBuilder) -> None:
        """Adds the type of elements with several values and the functions to the dispatch."""
        for extension in self.typed.extensions:
            kb.extension(extension)
        if isinstance(self.acc, tuple):
            for each in self.acc:
                for extension in element_of(each).extensions:
                    kb.extension(extension)
            members = " ".join(f"{element_of(each).type} kp_m{n};" for n, each in enumerate(self.acc))
            kb.declare(f"struct {self.kind} {{ {members} }};")
        loads = {"a": "kp_a_", "b": "kp_b_"}
        for side in "ab" if isinstance(self.acc, tuple) else "":
            texts = values_of(f"kp_{side}_", self.acc)
            loads |= {f"{side}.{name}": text for name, text in zip(self.typed.dtypes, texts, strict=True)}
        statements, results = self.typed.glsl(loads, "kp_u")
        body = "\n".join(f"    {each}" for each in statements)
        kb.declare(
            f"{declarations_of(self.typed)}\n{self.kind} kp_r({self.kind} kp_a_, {self.kind} kp_b_) {{\n"
            f"{body}\n    return {element_made(results.values(), self.acc)};\n}}"
        )
        for name in self.kept:
            texts = values_of("v", self.acc)
            loaded = element_made((f"{name}{n}_load(i)" for n in range(len(texts))), self.acc)
            stores = " ".join(f"{name}{n}_store(i, {text});" for n, text in enumerate(texts))
            kb.declare(f"{self.kind} {name}_load(uint i) {{ return {loaded}; }}")
            kb.declare(f"void {name}_store(uint i, {self.kind} v) {{ {stores} }}")

    def keep(self, kb: FunctionBuilder, name: str, count: IntOrSize, acc: Accs) -> None:
        """Scratch memory for `count` elements: ``NAME_load`` and ``NAME_store``."""
        if not isinstance(acc, tuple):
            kb.scratch(name, count, acc)
            return
        self.kept.append(name)
        for number, each in enumerate(acc):
            kb.scratch(f"{name}{number}", count, each)

    def tree(self, values: Sequence[str]) -> str:
        """The expression that combines values in pairs, in their order."""
        values = list(values)
        while len(values) > 1:
            pairs = [f"kp_r({a}, {b})" for a, b in zip(values[::2], values[1::2], strict=False)]
            values = pairs + ([values[-1]] if len(values) % 2 else [])
        return values[0]


def walk_run(reducer: Reducer, get: Any, four: Any) -> str:
    """Statements that combine the elements from ``kp_k`` to ``kp_e`` into ``kp_s``, and set ``kp_some``.

    Eight elements in pairs, 32 of these in a row, and these blocks in a row: the error of a sum grows with
    the roots of long runs only. Where that is long, 256 elements in a row, and these blocks in a row.
    """
    kind = reducer.kind
    lines = [f"{kind} kp_s = {reducer.zero}; bool kp_some = false;"]
    one = f"{kind} kp_w = {get('kp_k')};"
    if reducer.long:
        return "\n".join([*lines, *_blocks("", 1, one, reducer)])
    if four is not None:
        pairs = reducer.tree([*(f"kp_p[{n}]" for n in range(4)), *(f"kp_q[{n}]" for n in range(4))])
        load = f"{kind} kp_p[4], kp_q[4]; {four('kp_k', 'kp_p')} {four('kp_k + 4u', 'kp_q')}"
        lines += _blocks("kp_even && ", 8, f"{load} {kind} kp_w = {pairs};", reducer)
    pairs = reducer.tree([f"kp_p{n}" for n in range(8)])
    load = " ".join(f"{kind} kp_p{n} = {get(f'kp_k + {n}u')};" for n in range(8))
    lines += _blocks("", 8, f"{load} {kind} kp_w = {pairs};", reducer)
    lines.append(
        f"for (; kp_k < kp_e; ++kp_k) {{ {one} "
        "if (kp_some) kp_s = kp_r(kp_s, kp_w); else kp_s = kp_w; kp_some = true; }"
    )
    return "\n".join(lines)


def _blocks(condition: str, step: int, load: str, reducer: Reducer) -> list[str]:
    """Blocks of 256 elements, `step` in a turn, that `load` combines into ``kp_w``."""
    kind = reducer.kind
    return [
        f"while ({condition}kp_e - kp_k >= {step}u) {{",
        "    uint kp_m = min(kp_e, kp_k + 256u);",
        f"    {kind} kp_t = {reducer.zero}; bool kp_any = false;",
        f"    for (; kp_m - kp_k >= {step}u; kp_k += {step}u) {{",
        f"        {load}",
        "        if (kp_any) kp_t = kp_r(kp_t, kp_w); else kp_t = kp_w;",
        "        kp_any = true;",
        "    }",
        "    if (kp_some) kp_s = kp_r(kp_s, kp_t); else kp_s = kp_t;",
        "    kp_some = true;",
        "}",
    ]


def spread(kb: FunctionBuilder, groups: IntOrSize) -> None:
    """Sets the grid to so many workgroups, in two axes; ``kp_group`` is the number of each."""
    kb.groups(*two_axes(groups))
    kb.emit("uint kp_group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;")


def one_each(kb: FunctionBuilder, count: IntOrSize, name: str) -> None:
    """Sets the grid to an invocation for each of so many elements; `name` is the element's number."""
    group = group_of(kb.selection)
    kb.workgroup(group)
    spread(kb, kb.ceil_div(count, group))
    kb.emit(f"uint {name} = kp_group * {group}u + gl_LocalInvocationID.x;")
    kb.emit(f"if ({name} >= {glsl(count)}) return;")


def filled(text: str, **words: object) -> str:
    """A text of GLSL with names replaced: ``filled("T x = T(0);", T="float")``."""
    return re.sub(rf"\b({'|'.join(words)})\b", lambda found: str(words[found[0]]), text)


def named(name: str) -> Size:
    """A run-time value of the selection in grids."""
    return Size.named(name)


def number_of(ksel: FunctionSelection, name: str) -> int:
    """A run-time value of this call: for `variants` and `trials`."""
    return int(next(each.v for each in ksel.values if each.name == name))


def as_formula(
    what: str, given: Any, preamble: str = "", members: tuple[str, ...] = (), *, several: bool = False
) -> Formula:
    """A formula from a text, over elements with `members` if there are some, or from an operation by
    elements.

    Raises FormulaError for a text that cannot be read, ArgumentTypeError for anything else,
    InvalidArgumentError if it has several results, unless it may.
    """
    found = getattr(given, "formula", None)
    if not isinstance(found, Formula):
        if not isinstance(given, str):
            raise ArgumentTypeError(
                f"{what} is {shown(given)}; give an expression as text, or an elementwise operation"
            )
        found = Formula(given, preamble, members)
    elif getattr(given, "_dtype", None) is not None:
        cast = "bool_" if given._dtype == np.bool_ else given._dtype.name
        found = Formula(f"{cast}(kp)").of(kp=found)
    if len(found.results) != 1 and not several:
        raise InvalidArgumentError(f"{what} has {len(found.results)} results; give one: {found.text!r}")
    return found
