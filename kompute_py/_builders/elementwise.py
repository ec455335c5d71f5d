"""Elementwise operations, from one line of text."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from .._base.arrays import to_dtype
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._custom.arg_descs import TensorArg
from .._custom.declaration import parse
from .._custom.formula_calls import declare_values, declared_args, types_of
from .._custom.selection import FunctionSelection
from .._formulas.formula import Formula
from .._formulas.typed import Typed, declarations_of
from .._functions.called import called
from .._functions.custom_op import CustomOp
from .in_parts import ElementsInParts
from .walks import broadcast, check_sizes, group_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._custom.builder import FunctionBuilder

_MOST_GROUPS = 65535  # every device has as many
_MOST_TEXT = 2000
"""Characters of functions that are computed four times: those of sines, remainders and powers have more."""
_FOUR = {"float32": "vec4", "int32": "ivec4", "uint32": "uvec4"}


class Layout(NamedTuple):
    """Where the elements of arguments are for the elements of a result, over as few axes as possible."""

    lengths: tuple[int, ...]
    """Of the axes, without the first."""
    strides: dict[str, tuple[int, ...]]
    """For each argument the elements from one to the next on each axis."""
    offsets: dict[str, int]
    dense: tuple[str, ...]
    """The arguments with element i at i."""

    @property
    def pattern(self) -> Layout:
        """What kernels depend on: a layout with 2 for other lengths, steps and offsets."""
        if len(self.dense) == len(self.strides):
            return Layout((), {}, {}, self.dense)
        return Layout(
            (2,) * len(self.lengths),
            {name: tuple(s if s in (0, 1) else 2 for s in steps) for name, steps in self.strides.items()},
            {name: 2 if offset else 0 for name, offset in self.offsets.items()},
            self.dense,
        )


def layout_of(shape: tuple[int, ...], tensors: list[TensorArg]) -> Layout:
    """The layout for tensors that broadcast to `shape`."""
    every = []
    for each in tensors:
        steps = (0,) * (len(shape) - each.ndim) + strides_of(each)
        kept = (1,) * (len(shape) - each.ndim) + each.shape
        every.append([0 if n == 1 else step for n, step in zip(kept, steps, strict=True)])
    axes: list[tuple[int, list[int]]] = []
    for axis, length in enumerate(shape):
        moves = [each[axis] for each in every]
        if length == 1:
            continue
        if axes and all(outer == step * length for outer, step in zip(axes[-1][1], moves, strict=True)):
            axes[-1] = (axes[-1][0] * length, moves)  # the two are one
        else:
            axes.append((length, moves))
    lengths = [length for length, _ in axes]
    dense_steps = tuple(math.prod(lengths[n + 1 :]) for n in range(len(lengths)))
    strides, offsets, dense = {}, {}, []
    for number, each in enumerate(tensors):
        along = tuple(part[number] for _, part in axes)
        strides[each.name], offsets[each.name] = along, each.offset
        if along == dense_steps and each.offset == 0:
            dense.append(each.name)
    return Layout(tuple(lengths[1:]), strides, offsets, tuple(dense))


def strides_of(tensor: TensorArg) -> tuple[int, ...]:
    """Elements from one to the next on each axis."""
    if tensor.strides is not None:
        return tensor.strides
    found, step = [], 1
    for length in reversed(tensor.shape):
        found.append(step)
        step *= length
    return tuple(reversed(found))


class ElementwiseOp(CustomOp):
    """The custom operation of a formula."""

    reads_parts = True
    makes_images = True
    in_place = True
    formula: ClassVar[Formula]
    dtype: ClassVar[np.dtype[Any] | None] = None

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the results' shape and dtypes, and where the arguments' elements are."""
        formula = self.formula_of(ksel)
        tensors, types = declared_args(ksel, formula.names)
        shape = broadcast(ksel, tensors)
        typed = declare_values(ksel, lambda: self.typed(ksel, types))
        layout = layout_of(shape, tensors)
        if len(layout.dense) < len(tensors):
            for number, length in enumerate(layout.lengths, 1):
                ksel.value(f"kp_n{number}", length, "uint32")
            for place, tensor in enumerate(tensors):
                if tensor.name in layout.dense:
                    continue
                for number, step in enumerate(layout.strides[tensor.name]):
                    if step not in (0, 1):
                        ksel.value(f"kp_s{place}_{number}", step % 2**32, "uint32")
                if tensor.offset:
                    ksel.value(f"kp_o{place}", tensor.offset, "uint32")
        ksel.specialize(layout=layout.pattern)
        for name in formula.results:
            ksel.return_new_tensor(shape, typed.dtypes[name])
        check_sizes(ksel)

    def formula_of(self, ksel: FunctionSelection) -> Formula:
        """The formula for this call; its names are among those of `formula`."""
        return self.formula

    def typed(self, ksel: FunctionSelection, types: dict[str, Any]) -> Typed:
        """The formula for arguments of these types."""
        beyond = ksel.special.get("beyond", False)
        return self.formula_of(ksel).typed(types, ksel.features, self.dtype, beyond)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel: each invocation computes some elements."""
        typed = self.typed(ksel, types_of(ksel, self.formula_of(ksel).names))
        layout: Layout = ksel.special["layout"]
        for extension in typed.extensions:
            kb.extension(extension)
        kb.declare(declarations_of(typed))
        group = group_of(ksel)
        kb.workgroup(group)
        size = kb.result(0).size
        tensors = [a for a in ksel.arg_descs if isinstance(a, TensorArg)]
        four = _by_four(typed, layout, [*(t.dtype for t in tensors), *typed.dtypes.values()])
        formula = self.formula_of(ksel)
        loads = {name: name for name in formula.names}
        for place, tensor in enumerate(tensors):
            loads[tensor.name] = f"{tensor.name}_load({_index(place, tensor.name, layout)})"
        statements, results = typed.glsl(loads)
        coordinates = []
        if any(f"kp_c{n}" in text for text in loads.values() for n in range(len(layout.lengths) + 1)):
            coordinates.append("uint kp_c0 = i;")
            for number in range(len(layout.lengths), 0, -1):
                coordinates.append(f"uint kp_c{number} = kp_c0 % kp_n{number}; kp_c0 /= kp_n{number};")
        made = dict(zip(formula.results, (each.name for each in ksel.results), strict=True))
        stores = [f"{made[name]}_store(i, {results[name]});" for name in formula.results]
        each = " ".join((*coordinates, *statements, *stores))
        if not four:
            kb.groups(kb.smallest(kb.ceil_div(size, group), _MOST_GROUPS))
            kb.emit(f"""
                uint i = gl_GlobalInvocationID.x, kp_size = {size}, kp_all = gl_NumWorkGroups.x * {group}u;
                if (i >= kp_size) return;
                for (;;) {{
                    {each}
                    if (kp_size - i <= kp_all) break;
                    i += kp_all;
                }}
            """)
            return
        dense = [(t.name, _FOUR[t.dtype.name]) for t in tensors if t.name in layout.dense]
        reads = " ".join(f"{kind} kp_{name}_ = {name}_load4(kp_q);" for name, kind in dense)
        makes = " ".join(f"{_FOUR[typed.dtypes[name].name]} kp_{made[name]}_;" for name in made)
        parts = []
        for k in range(4):
            inner = {**loads, **{name: f"kp_{name}_[{k}]" for name, _ in dense}}
            statements, results = typed.glsl(inner)
            sets = (f"kp_{made[name]}_[{k}] = {results[name]};" for name in made)
            parts.append(f"{{ {' '.join((*statements, *sets))} }}")
        writes = " ".join(f"{name}_store4(kp_q, kp_{name}_);" for name in made.values())
        kb.groups(kb.smallest(kb.ceil_div(size, 4 * group), _MOST_GROUPS))
        newline = "\n                        "
        kb.emit(f"""
            uint kp_q = gl_GlobalInvocationID.x, kp_size = {size}, kp_all = gl_NumWorkGroups.x * {group}u;
            uint kp_whole = kp_size / 4u;
            if (kp_q < kp_whole)
                for (;;) {{
                    {reads}
                    {makes}
                    {newline.join(parts)}
                    {writes}
                    if (kp_whole - kp_q <= kp_all) break;
                    kp_q += kp_all;
                }}
            if (gl_GlobalInvocationID.x < (kp_size & 3u)) {{
                uint i = kp_size - 1u - gl_GlobalInvocationID.x;
                {each}
            }}
        """)


def _by_four(typed: Typed, layout: Layout, dtypes: list[np.dtype[Any]]) -> bool:
    """Whether invocations compute four elements that follow each other: unless the formula or its functions
    are so long that drivers take longer to compile them four times than memory takes.
    """
    plain = all(
        name in layout.dense or (not any(steps) and not layout.offsets[name])
        for name, steps in layout.strides.items()
    )
    return (
        plain
        and bool(layout.dense)
        and len(typed.declarations) <= _MOST_TEXT
        and len(typed.lines) <= 12
        and all(each.name in _FOUR for each in dtypes)
    )


def _index(place: int, name: str, layout: Layout) -> str:
    if name in layout.dense:
        return "i"
    parts = [f"kp_o{place}"] if layout.offsets[name] else []
    for number, step in enumerate(layout.strides[name]):
        if step == 1:
            parts.append(f"kp_c{number}")
        elif step:
            parts.append(f"kp_c{number} * kp_s{place}_{number}")
    return " + ".join(parts) or "0u"


class Elementwise(ElementsInParts, named=True):
    """An elementwise operation, made by `kp.ops.elementwise`: a `Function` that others can be fused into.

    Called with tensors, arrays and numbers, it computes. Called with other elementwise operations, it gives a
    new one, which computes all in one kernel: the parameters that get none keep their names.

    Raises the errors of `Function`, and ArgumentTypeError for operations together with tensors or numbers.

    >>> line = kp.ops.elementwise("a * x + y")
    >>> root = kp.ops.elementwise("sqrt(abs(z))")(line)
    >>> root
    <kp.Function elementwise(Tensor|Scalar a, Tensor|Scalar x, Tensor|Scalar y) -> Tensor>
    >>> root(2, mgr.tensor([1, 4]), -6.0).tolist()
    [2.0, 1.4142135381698608]
    """

    __module__ = "kompute_py"  # public; imported when first used

    def __init__(self, op: ElementwiseOp, signature: str) -> None:
        if not isinstance(op, ElementwiseOp):
            raise ArgumentTypeError("An Elementwise is made by kp.ops.elementwise")
        super().__init__(op, parse(signature))
        self.formula: Formula = op.formula
        """The expression that it computes."""
        self._dtype = op.dtype

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        for each in args:
            if isinstance(each, Elementwise):
                return self._fused(args, named)
        for each in named.values():
            if isinstance(each, Elementwise):
                return self._fused(args, named)
        return super().__call__(*args, **named)

    def _fused(self, args: tuple[Any, ...], named: dict[str, Any]) -> Elementwise:
        if len(args) > len(self._names):
            raise ArgumentTypeError(
                f"{self.__name__} has {len(self._names)} parameters; {len(args)} operations are given"
            )
        parts = dict(zip(self._names, args, strict=False))
        for name, value in named.items():
            if name in parts:
                raise ArgumentTypeError(f"{self.__name__}: the argument {shown(name)} is given twice")
            parts[name] = value
        formulas = {}
        for name, part in parts.items():
            if not isinstance(part, Elementwise):
                raise ArgumentTypeError(
                    f"{self.__name__}: {name} is {kind_of(part)}, and others are operations: give operations "
                    "only, and call the result with tensors and numbers"
                )
            formula = part.formula
            if part._dtype is not None:
                cast = "bool_" if part._dtype == np.bool_ else part._dtype.name
                formula = Formula(f"{cast}(kp)").of(kp=formula)
            formulas[name] = formula
        fused = elementwise_of(self.formula.of(**formulas), self.__name__, None, self._dtype)
        return fused._made_by(self, args, named)


@called
def elementwise(
    formula: str,
    *,
    name: str = "elementwise",
    doc: str | None = None,
    dtype: DTypeLike | None = None,
    preamble: str = "",
) -> Elementwise:
    """An operation that computes `formula` for each element, with NumPy's broadcasting and dtypes.

    `formula` is an expression of Python with NumPy's functions. Its names become parameters, in the order in
    which they first appear in the text; each takes a tensor, a view, an array or a number. The result has the
    shape that they broadcast to, and NumPy's dtype; `dtype` converts it. With assignments,
    ``"s = x + y; d = x - y"``, each name is a result, but those that begin with "_"; if an expression stands
    at the end, it is the only one.

    `name` and `doc` are the operation's. `preamble` has functions in GLSL, which the formula calls by name.

    Raises FormulaError for a text that cannot be read, with the column, InvalidArgumentError for a wrong
    name, and ArgumentTypeError for a wrong type or dtype. Calls raise ArgumentTypeError for dtypes that do
    not fit, InvalidArgumentError for shapes that do not broadcast, and UnimplementedError for what the device
    or GLSL lacks.

    >>> axpy = kp.ops.elementwise("a * x + y", name="axpy")
    >>> axpy(2.0, mgr.tensor([1, 2]), mgr.tensor([[0], [10]])).tolist()
    [[2.0, 4.0], [12.0, 14.0]]
    >>> total, difference = kp.ops.elementwise("s = x + y; d = x - y")(np.arange(3), 1)
    >>> difference
    array([-1,  0,  1])
    """
    given = dict(locals())
    made = Formula(formula, preamble)
    if doc is not None and not isinstance(doc, str):
        raise ArgumentTypeError(f"doc is a str, not {kind_of(doc)}")
    if not isinstance(name, str):
        raise ArgumentTypeError(f"name is a str, not {kind_of(name)}")
    operation = elementwise_of(made, name, doc, None if dtype is None else to_dtype(dtype))
    return operation._made_by(elementwise, (), given)


@functools.cache
def formula(text: str, dtype: str | None = None) -> Elementwise:
    """The operation that computes a formula for each element, made once."""
    return elementwise(text, dtype=dtype)


def elementwise_of(formula: Formula, name: str, doc: str | None, dtype: np.dtype[Any] | None) -> Elementwise:
    """The operation that computes a formula for each element."""
    if not name.isidentifier():
        raise InvalidArgumentError(f"An operation is named by an identifier; {shown(name)} is not one")
    parameters = ", ".join(f"Tensor|Scalar {each}" for each in formula.names)
    results = formula.results
    made = "Tensor" if results == ("result",) else f"({', '.join(f'Tensor {each}' for each in results)})"
    text = "; ".join(line.strip() for line in formula.text.strip().splitlines())
    members = {
        "formula": formula,
        "dtype": dtype,
        "signature": f"{name}({parameters}) -> {made}",
        "__doc__": doc or f"Computes ``{text}`` for each element.",
    }
    return Elementwise(type(name, (ElementwiseOp,), members)(), members["signature"])  # type: ignore[arg-type]
