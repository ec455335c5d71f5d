"""The types of a formula by NumPy's promotion, and its GLSL, which computes what NumPy does."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError
from .dtypes import (
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    PART_OF,
    UINT64,
    WEAK,
    Dtype,
    Kind,
    cast_dtype,
    castable,
    literal,
    opaque,
    promoted,
    real_of,
    real_promoted,
    rounded_to,
    wrapped,
)
from .functions import CASTS, REAL
from .glsl import functions_in
from .glsl_elements import element_of
from .host_values import HostValue, NotConstant, Value
from .nodes import Node, marked, nodes_of
from .weak_numbers import COMPARE, Numbers

_TEMPORARY = re.compile(r"\bkp_t(?=\d+_)")
"""The beginning of a temporary's name, not that of a function: kp_tanh."""
_DEFAULT = {"bool": BOOL, "int": INT64, "float": FLOAT64, "complex": COMPLEX64}
_OWN_DTYPES = {
    "float": FLOAT32,
    "double": FLOAT64,
    "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32),
    "int64_t": INT64,
    "uint64_t": UINT64,
    "bool": BOOL,
    "vec2": COMPLEX64,
    "dvec2": COMPLEX128,
}


class Typed(NamedTuple):
    """A formula for arguments of certain types."""

    dtypes: dict[str, Dtype]
    """The dtypes of the results, by name."""
    names: tuple[str, ...]
    """The arguments that the kernel loads elements of."""
    values: tuple[HostValue, ...]
    """Run-time values that it needs besides the elements."""
    declarations: str
    """Functions that stand before ``main``. Those of several formulas may be the same: `declarations_of`."""
    extensions: tuple[str, ...]
    """The GLSL extensions that it needs."""
    loads: tuple[tuple[str, str, str], ...]
    """(type, temporary, argument)"""
    lines: tuple[tuple[str, str, str], ...]
    """(type, temporary, expression)"""
    outputs: dict[str, str]
    """The expression of each result."""

    def glsl(self, loads: Mapping[str, str], prefix: str = "kp_t") -> tuple[list[str], dict[str, str]]:
        """Statements, and the expression of each result after them, of the type of such elements.

        `loads` has an expression for each of `names`; values are called by their names. `prefix` begins the
        names of temporaries, which tells several formulas in one scope apart.
        """
        statements = [f"{type_} {name} = {loads[argument]};" for type_, name, argument in self.loads]
        for type_, name, text in self.lines:
            precise = "precise " if type_ in ("float", "double", "vec2", "dvec2") else ""
            statements.append(f"{precise}{type_} {name} = {text};")
        if prefix != "kp_t":
            statements = [_TEMPORARY.sub(prefix, each) for each in statements]
            return statements, {n: _TEMPORARY.sub(prefix, text) for n, text in self.outputs.items()}
        return statements, dict(self.outputs)


def declarations_of(*formulas: Typed) -> str:
    """The functions that formulas need, each once, to stand before ``main``."""
    parts = dict.fromkeys(part for each in formulas for part in each.declarations.split("\n\n") if part)
    return "\n\n".join(parts)


def typed(
    outputs: Mapping[str, Node],
    preambles: tuple[str, ...],
    types: Mapping[str, Kind],
    features: frozenset[str] | None,
    dtype: Dtype | tuple[Dtype, ...] | None,
    beyond: bool = False,
) -> Typed:
    """As `Formula.typed`."""
    return _Typer(outputs, preambles, types, features, beyond).whole(dtype)


def _guarded(preamble: str) -> str:
    """A preamble that may stand in a kernel several times, as functions of the library may. Its first line
    tells it from others. No line is empty: these stand between functions.
    """
    mark = f"kp_has_{hashlib.sha256(preamble.encode()).hexdigest()[:16]}"
    text = "\n".join(line for line in preamble.split("\n") if line.strip())
    return f"#ifndef {mark}\n#define {mark}\n{text}\n#endif"


class _Typer(Numbers):
    def __init__(
        self,
        outputs: Mapping[str, Node],
        preambles: tuple[str, ...],
        types: Mapping[str, Kind],
        features: frozenset[str] | None,
        beyond: bool,
    ) -> None:
        self.beyond = beyond
        self.roots = outputs
        self.preambles = preambles
        self.types = types
        self.features = features
        self.loads: list[tuple[str, str, str]] = []
        self.lines: list[tuple[str, str, str]] = []
        self.same: dict[str, str] = {}
        self.values: dict[tuple[Node, Dtype, str], HostValue] = {}
        self.done: dict[Node, Value] = {}
        self.extensions: dict[str, None] = {}
        self.count = 0
        self.owned = False

    def whole(self, wanted: Dtype | tuple[Dtype, ...] | None) -> Typed:
        for node in nodes_of(self.roots.values()):
            self.done[node] = self.value(node)
        dtypes, outputs = {}, {}
        each = wanted if isinstance(wanted, tuple) else (wanted,) * len(self.roots)
        for (name, node), dtype in zip(self.roots.items(), each, strict=True):
            value = self.done[node]
            own = dtype or value.dtype or self.available(_DEFAULT[value.weak], node)
            if dtype is not None and value.dtype is not None and not castable(value.dtype, dtype):
                cast = "bool_" if dtype.kind == "b" else dtype
                remedy = f" unasked: {cast}(...)"
                if isinstance(wanted, tuple):  # a conversion here would cut
                    remedy = f", the dtype that map gives {name}: convert there, {name} = {value.dtype}(...)"
                self.misfit(node, f"a result of {value.dtype} is not converted to {dtype}{remedy}")
            text = self.operand(value, own, node)
            dtypes[name] = own
            outputs[name] = text  # stores of floats of 8 and 16 bits round by themselves
        written = "\n".join([*(text for _, _, text in self.lines), *outputs.values()])
        parts = list(functions_in(written, self.features).values())
        if self.owned:
            parts += map(_guarded, self.preambles)
        if "kp_fmod_double" in functions_in(written, self.features):
            self.need_int64(next(iter(self.roots.values())), "remainders of float64")
        return Typed(
            dtypes,
            tuple(argument for _, _, argument in self.loads),
            tuple(self.values.values()),
            "\n\n".join(parts),
            tuple(self.extensions),
            tuple(self.loads),
            tuple(self.lines),
            outputs,
        )

    # -- errors ----------------------------------------------------------------------------------------------

    def misfit(self, node: Node, message: str) -> NoReturn:
        raise ArgumentTypeError(
            marked(f"The formula does not fit its arguments: {message}", node.text, node.column)
        )

    def lacking(self, node: Node, message: str) -> NoReturn:
        raise UnimplementedError(marked(f"The formula cannot run here: {message}", node.text, node.column))

    def available(self, dtype: Dtype, node: Node) -> Dtype:
        """`dtype`, or what the device has in its place."""
        if self.features is not None and "shaderFloat64" not in self.features:
            dtype = {FLOAT64: FLOAT32, COMPLEX128: COMPLEX64}.get(dtype, dtype)
        if dtype in (INT64, UINT64):
            self.need_int64(node, f"{dtype}, which NumPy's promotion gives here,")
        return dtype

    def need_int64(self, node: Node, what: str) -> None:
        if self.features is not None and "shaderInt64" not in self.features:
            self.lacking(node, f"the device has no shaderInt64, and {what} needs it; convert: int32(...)")
        self.extensions["GL_EXT_shader_explicit_arithmetic_types_int64"] = None

    # -- parts -----------------------------------------------------------------------------------------------

    def new(self, node: Node, dtype: Dtype, text: str) -> Value:
        kind = element_of(dtype).type
        if kind in ("int64_t", "uint64_t"):
            self.need_int64(node, str(dtype))
        name = self.same.get(f"{kind} {text}")
        if name is None:
            name = self.same[f"{kind} {text}"] = f"kp_t{self.count}_"
            self.count += 1
            self.lines.append((kind, name, text))
        return Value(node, dtype, "", name)

    def value(self, node: Node) -> Value:
        if node.op == "name":
            return self.argument(node)
        if node.op == "number":
            return Value(node, None, type(node.value).__name__, "")
        args = [self.done[each] for each in node.args]
        if node.op != "call" and node.op not in CASTS and all(each.dtype is None for each in args):
            return Value(node, None, self.weak(node, args), "")
        method: Any = getattr(self, f"on_{node.op}", None)
        if method is None:
            if node.op in REAL:
                method = self.real
            elif node.op in CASTS:
                method = self.cast
            elif node.op in COMPARE:
                method = self.compare
            else:
                method = {"b": self.bits, "l": self.logic}[node.op[0]]
        found: Value = method(node, args)
        return found

    def argument(self, node: Node) -> Value:
        kind = self.types[node.value]
        if isinstance(kind, str):
            return Value(node, None, kind, "")
        if kind in (INT64, UINT64):
            self.need_int64(node, f"{node.value} of {kind}")
        doubles = self.features is None or "shaderFloat64" in self.features
        if kind.name in ("float64", "complex128") and not doubles:
            self.lacking(node, f"the device has no shaderFloat64, and {node.value} is of {kind}")
        name = f"kp_t{self.count}_"
        self.count += 1
        element = element_of(kind)
        self.loads.append((element.type, name, node.value))
        # In kernels, float16 and smaller floats are float32, which holds each of their values.
        return Value(node, kind, "", name)

    def weak(self, node: Node, args: list[Value]) -> str:
        """The kind of a part of numbers without dtypes."""
        try:
            return type(self.constant(node)).__name__
        except NotConstant:
            pass
        if node.op in COMPARE or node.op[:5] in ("logic", "isnan", "isinf", "isfin", "signb"):
            return "bool"
        kinds = [WEAK.index(each.weak) for each in args]
        if node.op == "where":
            return WEAK[max(kinds[1:])]
        if node.op.startswith("bitwise") or node.op == "invert":
            if max(kinds) > 1:
                self.misfit(node, f"{node.op} takes ints, not {', '.join(each.weak for each in args)}")
            return WEAK[max(kinds)]
        most = max(*kinds, 1)
        if node.op in REAL or node.op in ("divide", "reciprocal"):
            most = max(most, 2)
        if node.op in ("real", "imag", "absolute") and most == 3:
            most = 2
        return WEAK[most]

    def both(self, node: Node, args: list[Value]) -> tuple[Dtype, list[str]]:
        dtype = self.available(promoted([a.weak or a.dtype for a in args]), node)  # type: ignore[misc]
        return dtype, [self.operand(each, dtype, node) for each in args]

    # -- operators -------------------------------------------------------------------------------------------

    def no_bool(self, node: Node, dtype: Dtype, instead: str) -> None:
        if dtype == BOOL:
            self.misfit(node, f"{node.op} does not take bools, as in NumPy; {instead}")

    def no_complex(self, node: Node, dtype: Dtype) -> None:
        if dtype.kind == "c":
            self.misfit(node, f"{node.op} does not take complex numbers; take x.real, x.imag or abs(x)")

    def on_add(self, node: Node, args: list[Value]) -> Value:
        dtype, (a, b) = self.both(node, args)
        if dtype == BOOL:
            return self.new(node, dtype, f"{a} || {b}")
        return self.new(node, dtype, wrapped(f"{a} + {b}", dtype))

    def on_subtract(self, node: Node, args: list[Value]) -> Value:
        dtype, (a, b) = self.both(node, args)
        self.no_bool(node, dtype, "use a ^ b")
        return self.new(node, dtype, wrapped(f"{a} - {b}", dtype))

    def on_multiply(self, node: Node, args: list[Value]) -> Value:
        dtype, (a, b) = self.both(node, args)
        if dtype == BOOL:
            return self.new(node, dtype, f"{a} && {b}")
        if dtype.kind == "c":
            return self.new(node, dtype, f"kp_cmul_{element_of(dtype).type}({a}, {b})")
        return self.new(node, dtype, wrapped(f"{a} * {b}", dtype))

    def on_divide(self, node: Node, args: list[Value]) -> Value:
        dtype = promoted([a.weak or a.dtype for a in args])  # type: ignore[misc]
        dtype = self.available(FLOAT64 if dtype.kind in "biu" else dtype, node)
        a, b = (self.operand(each, dtype, node) for each in args)
        return self.quotient(node, dtype, a, b)

    def quotient(self, node: Node, dtype: Dtype, a: str, b: str) -> Value:
        if dtype.kind == "c":
            return self.new(node, dtype, f"kp_cdiv_{element_of(dtype).type}({a}, {b})")
        if node.args[-1].op in ("name", "number"):
            return self.new(node, dtype, f"kp_quo_{element_of(dtype).type}({a}, {b})")
        return self.new(node, dtype, f"kp_div_{element_of(dtype).type}({a}, {b})")

    def division(self, node: Node, args: list[Value], name: str) -> Value:
        dtype = promoted([a.weak or a.dtype for a in args])  # type: ignore[misc]
        dtype = self.available(INT8 if dtype == BOOL else dtype, node)
        self.no_complex(node, dtype)
        a, b = (self.operand(each, dtype, node) for each in args)
        return self.new(node, dtype, wrapped(f"{name}_{element_of(dtype).type}({a}, {b})", dtype))

    def on_floor_divide(self, node: Node, args: list[Value]) -> Value:
        return self.division(node, args, "kp_floordiv")

    def on_remainder(self, node: Node, args: list[Value]) -> Value:
        return self.division(node, args, "kp_mod")

    def on_fmod(self, node: Node, args: list[Value]) -> Value:
        return self.division(node, args, "kp_fmod")

    def on_gcd(self, node: Node, args: list[Value]) -> Value:
        dtype, _ = self.both(node, args)
        if dtype.kind not in "iu":
            self.misfit(node, f"gcd takes ints, not {dtype}")
        return self.division(node, args, "kp_gcd")

    def on_power(self, node: Node, args: list[Value]) -> Value:
        base, power = args
        number = None
        if power.dtype is None:
            try:
                number = self.constant(power.node)
            except NotConstant:
                pass
        dtype = promoted([a.weak or a.dtype for a in args])  # type: ignore[misc]
        small = dtype == BOOL or (base.dtype == BOOL and number == 2)  # as NumPy's square
        dtype = self.available(INT8 if small else dtype, node)
        a = self.operand(base, dtype, node)
        if number is not None and dtype.kind in "iu" and number < 0:
            raise InvalidArgumentError(
                marked(
                    "The formula cannot be computed: ints have no negative powers, as in NumPy; "
                    "convert: float32(x)",
                    node.text,
                    node.column,
                )
            )
        if number in (1, 2, 3, 4) and not isinstance(number, complex):
            value = self.new(node, dtype, a)
            if number == 1:
                return value
            square = self.new(node, dtype, self.product(value.text, value.text, dtype))
            if number == 2:
                return square
            other = value if number == 3 else square
            return self.new(node, dtype, self.product(square.text, other.text, dtype))
        if number == 0.5 and dtype.kind not in "biu":
            root = "kp_csqrt" if dtype.kind == "c" else "kp_sqrt"
            return self.new(node, dtype, f"{root}_{element_of(dtype).type}({a})")
        if number == -1 and dtype.kind not in "biu":
            return self.quotient(node, dtype, literal(1, dtype), a)
        b = self.operand(power, dtype, node)
        return self.new(node, dtype, wrapped(f"kp_pow_{element_of(dtype).type}({a}, {b})", dtype))

    def product(self, a: str, b: str, dtype: Dtype) -> str:
        if dtype.kind == "c":
            return f"kp_cmul_{element_of(dtype).type}({a}, {b})"
        return wrapped(f"{a} * {b}", dtype)

    def on_negative(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        self.no_bool(node, dtype, "use ~a")
        zero = (
            "0u - " if dtype.name in ("uint8", "uint16", "uint32") else "0ul - " if dtype == UINT64 else "-"
        )
        return self.new(node, dtype, wrapped(f"{zero}{a}", dtype))

    def on_positive(self, node: Node, args: list[Value]) -> Value:
        self.no_bool(node, args[0].dtype or INT64, "leave it out")
        return args[0]

    def on_invert(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        if dtype == BOOL:
            return self.new(node, dtype, self.negated(a))
        if dtype.kind not in "iu":
            self.misfit(node, f"~ takes ints and bools, not {dtype}")
        return self.new(node, dtype, wrapped(f"~{a}", dtype))

    def negated(self, text: str) -> str:
        # As a number: compilers turn !(a < b) into a >= b, which differs for NaN.
        return f"((({text}) ? 1u : 0u) ^ 1u) != 0u"

    def bits(self, node: Node, args: list[Value]) -> Value:
        dtype, (a, b) = self.both(node, args)
        sign = {"and": "&", "_or": "|", "xor": "^"}[node.op[-3:]]
        if dtype == BOOL:
            return self.new(node, dtype, f"{a} {sign * 2} {b}")
        if dtype.kind not in "iu":
            self.misfit(node, f"{sign} takes ints and bools, not {args[0].kind} and {args[1].kind}")
        return self.new(node, dtype, f"{a} {sign} {b}")

    def shift(self, node: Node, args: list[Value], sign: str) -> Value:
        dtype = promoted([a.weak or a.dtype for a in args])  # type: ignore[misc]
        dtype = self.available(INT8 if dtype == BOOL else dtype, node)
        if dtype.kind not in "iu":
            self.misfit(node, f"{sign} takes ints, not {args[0].kind} and {args[1].kind}")
        a, b = (self.operand(each, dtype, node) for each in args)
        zero, bits = literal(0, dtype), dtype.itemsize * 8
        low = f"{b} >= {zero} && " if dtype.kind == "i" else ""
        beyond = (
            f"({a} < {zero} ? {literal(-1, dtype)} : {zero})" if sign == ">>" and dtype.kind == "i" else zero
        )
        fits = f"{low}{b} < {literal(bits, dtype)}"
        return self.new(node, dtype, f"{fits} ? {wrapped(f'{a} {sign} int({b})', dtype)} : {beyond}")

    def on_left_shift(self, node: Node, args: list[Value]) -> Value:
        return self.shift(node, args, "<<")

    def on_right_shift(self, node: Node, args: list[Value]) -> Value:
        return self.shift(node, args, ">>")

    def truth(self, value: Value, node: Node) -> str:
        return self.operand(value, BOOL, node)

    def logic(self, node: Node, args: list[Value]) -> Value:
        sign = {"logical_and": "&&", "logical_or": "||", "logical_xor": "^^"}[node.op]
        a, b = (self.truth(each, node) for each in args)
        return self.new(node, BOOL, f"{a} {sign} {b}")

    def on_logical_not(self, node: Node, args: list[Value]) -> Value:
        return self.new(node, BOOL, self.negated(self.truth(args[0], node)))

    def on_where(self, node: Node, args: list[Value]) -> Value:
        condition = self.truth(args[0], node)
        if args[1].dtype is None and args[2].dtype is None:
            kind = WEAK[max(WEAK.index(args[1].weak), WEAK.index(args[2].weak))]
            dtype = self.available(_DEFAULT[kind], node)
            texts = [self.operand(each, dtype, node) for each in args[1:]]
        else:
            dtype, texts = self.both(node, args[1:])
        return self.new(node, dtype, f"{condition} ? {texts[0]} : {texts[1]}")

    # -- functions -------------------------------------------------------------------------------------------

    def real(self, node: Node, args: list[Value]) -> Value:
        found = REAL[node.op]
        dtype = self.available(real_promoted([a.weak or a.dtype for a in args]), node)  # type: ignore[misc]
        text: str | None
        if dtype.kind == "c":
            text = found.complex
            if text is None:
                self.no_complex(node, dtype)
        else:
            text = found.double if dtype == FLOAT64 else found.float
        if text is None:
            self.lacking(
                node,
                f"GLSL has no {node.op} of doubles, and the argument is {', '.join(a.kind for a in args)}; "
                f"convert: {node.op}(float32(...))",
            )
        kind = element_of(dtype).type
        texts = [self.operand(each, dtype, node) for each in args]
        end = "lf" if kind in ("double", "dvec2") else ""
        return self.new(node, dtype, text.replace("{T}", kind).format(*texts).replace("LF", end))

    def on_nextafter(self, node: Node, args: list[Value]) -> Value:
        dtype = self.available(real_promoted([a.weak or a.dtype for a in args]), node)  # type: ignore[misc]
        if dtype.itemsize > 2:
            return self.real(node, args)
        # By the codes of its numbers, which have the sign in front, but for float8_e8m0fnu.
        name = "half" if dtype == FLOAT16 else dtype.name.replace("float8_", "")
        sign = 0 if name == "e8m0fnu" else 1 << dtype.itemsize * 8 - 1
        a, b = (self.operand(each, dtype, node) for each in args)
        code = f"kp_next(kp_to_{name}({a}), kp_to_{name}({b}), {sign}u)"
        if name.endswith("fnuz"):  # these have no -0.0
            code = f"{code} & (({code} & 127u) == 0u ? 127u : 255u)"
        odd = f"kp_isnan_float({a}) || kp_isnan_float({b})"
        return self.new(node, dtype, f"{odd} ? kp_nan_float() : kp_from_{name}({code})")

    def cast(self, node: Node, args: list[Value]) -> Value:
        dtype = cast_dtype(node.op)
        if self.available(dtype, node) != dtype:
            self.lacking(node, f"the device has no shaderFloat64, and {dtype} needs it")
        (value,) = args
        if value.dtype is not None and value.dtype.kind == "c" and dtype.kind not in "cb":
            self.misfit(node, f"{node.op} of a complex number drops its imaginary part: take x.real")
        text = self.operand(value, dtype, node)
        if value.dtype is not None:
            text = rounded_to(text, dtype)
        return self.new(node, dtype, text)

    def extreme(self, node: Node, args: list[Value], name: str) -> Value:
        least = name.endswith("min")
        limit = ("most" if least else "least") if node.value == "clip" else ""
        dtype = self.available(promoted([a.weak or a.dtype for a in args]), node)  # type: ignore[misc]
        a, b = (self.operand(each, dtype, node, limit if each is args[1] else "") for each in args)
        if dtype == BOOL:
            return self.new(node, dtype, f"{a} {'&&' if least else '||'} {b}")
        if dtype.kind in "iu":
            return self.new(node, dtype, f"{a} {'<' if least else '>'} {b} ? {a} : {b}")
        return self.new(node, dtype, f"{name}_{element_of(dtype).type}({a}, {b})")

    def on_minimum(self, node: Node, args: list[Value]) -> Value:
        return self.extreme(node, args, "kp_min")

    def on_maximum(self, node: Node, args: list[Value]) -> Value:
        return self.extreme(node, args, "kp_max")

    def on_fmin(self, node: Node, args: list[Value]) -> Value:
        return self.extreme(node, args, "kp_fmin")

    def on_fmax(self, node: Node, args: list[Value]) -> Value:
        return self.extreme(node, args, "kp_fmax")

    def on_absolute(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        if dtype.kind == "c":
            hypot = "kp_hypot" if dtype == COMPLEX64 else "kp_dhypot"
            return self.new(node, PART_OF[dtype], f"{hypot}({a}.x, {a}.y)")
        if dtype.kind in "bu":
            return args[0]
        return self.new(
            node,
            dtype,
            wrapped(f"abs({a})" if dtype.kind != "i" else f"{a} < {literal(0, dtype)} ? -{a} : {a}", dtype),
        )

    def on_sign(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        self.no_bool(node, dtype, "use the value itself")
        if dtype.kind == "c":
            return self.new(node, dtype, f"kp_csign_{element_of(dtype).type}({a})")
        if dtype.kind in "iu":
            zero, one = literal(0, dtype), literal(1, dtype)
            negative = f"{a} < {zero} ? {literal(-1, dtype)} : " if dtype.kind == "i" else ""
            return self.new(node, dtype, f"{a} > {zero} ? {one} : {negative}{zero}")
        return self.new(node, dtype, f"kp_sign_{element_of(dtype).type}({a})")

    def on_square(self, node: Node, args: list[Value]) -> Value:
        value = self._of_bool_int8(node, args[0])
        return self.on_multiply(node, [value, value])

    def _of_bool_int8(self, node: Node, value: Value) -> Value:
        """A value that is not a bool: NumPy has no such function of bools, and takes int8."""
        return self.new(node, INT8, self.operand(value, INT8, node)) if value.dtype == BOOL else value

    def on_reciprocal(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        if dtype.kind in "biu":
            self.misfit(
                node,
                f"the reciprocal of {dtype} would be cut off to an int; use kp.ops.divide(1, x)",
            )
        return self.quotient(node, dtype, literal(1, dtype), a)

    def rounded(self, node: Node, args: list[Value], name: str) -> Value:
        dtype, (a,) = self.both(node, args)
        self.no_complex(node, dtype)
        if dtype.kind in "biu":
            return args[0]
        return self.new(node, dtype, f"kp_{name}_{element_of(dtype).type}({a})")

    def on_floor(self, node: Node, args: list[Value]) -> Value:
        return self.rounded(node, args, "floor")

    def on_ceil(self, node: Node, args: list[Value]) -> Value:
        return self.rounded(node, args, "ceil")

    def on_trunc(self, node: Node, args: list[Value]) -> Value:
        return self.rounded(node, args, "trunc")

    def on_round(self, node: Node, args: list[Value]) -> Value:
        """As `rint`, which NumPy has give floats of ints; round leaves these as they are."""
        dtype, _ = self.both(node, args)
        if dtype.kind in "iu":
            return args[0]
        return self.real(Node("rint", node.args, node.value, node.text, node.column), args)

    def classified(self, node: Node, args: list[Value], name: str, join: str) -> Value:
        dtype, (a,) = self.both(node, args)
        if dtype.kind == "c":
            test = f"{name}_{element_of(PART_OF[dtype]).type}"
            return self.new(node, BOOL, f"{test}({a}.x) {join} {test}({a}.y)")
        if dtype.kind in "biu":
            return self.new(node, BOOL, "false")
        return self.new(node, BOOL, f"{name}_{element_of(dtype).type}({a})")

    def on_isnan(self, node: Node, args: list[Value]) -> Value:
        return self.classified(node, args, "kp_isnan", "||")

    def on_isinf(self, node: Node, args: list[Value]) -> Value:
        return self.classified(node, args, "kp_isinf", "||")

    def on_isfinite(self, node: Node, args: list[Value]) -> Value:
        nan, inf = self.on_isnan(node, args), self.on_isinf(node, args)
        return self.new(node, BOOL, f"!({nan.text} || {inf.text})")

    def on_signbit(self, node: Node, args: list[Value]) -> Value:
        dtype = real_of(args[0].dtype or FLOAT64)
        self.no_complex(node, dtype)
        dtype = self.available(dtype, node)
        return self.new(
            node, BOOL, f"kp_signbit_{element_of(dtype).type}({self.operand(args[0], dtype, node)})"
        )

    def on_real(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        return self.new(node, PART_OF[dtype], f"{a}.x") if dtype.kind == "c" else args[0]

    def on_imag(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        return (
            self.new(node, PART_OF[dtype], f"{a}.y")
            if dtype.kind == "c"
            else self.new(node, dtype, opaque(literal(0, dtype)))
        )

    def on_conj(self, node: Node, args: list[Value]) -> Value:
        dtype, (a,) = self.both(node, args)
        if dtype.kind != "c":
            return self._of_bool_int8(node, args[0])
        return self.new(node, dtype, f"{element_of(dtype).type}({a}.x, -{a}.y)")

    def on_call(self, node: Node, args: list[Value]) -> Value:
        own = node.value
        self.owned = True
        texts = []
        for value, type_ in zip(args, own.parameters, strict=True):
            dtype = _OWN_DTYPES[type_]
            given = value.dtype if value.dtype is not None else _DEFAULT[value.weak]
            if not castable(given, dtype):
                self.misfit(node, f"{own.name} takes {dtype}, not {value.kind}; convert: {dtype}(...)")
            texts.append(self.operand(value, dtype, node))
        dtype = _OWN_DTYPES[own.type]
        if self.available(dtype, node) != dtype:
            self.lacking(node, f"the device has no shaderFloat64, and {own.name} gives a {own.type}")
        return self.new(node, dtype, f"{own.name}({', '.join(texts)})")
