"""Numbers without dtypes in formulas, such as Python's: as what they are combined with, and compared.

By NumPy's rules, a number takes the dtype of what it is combined with, and is refused if that dtype does not
have it. Comparisons have an answer for each int, and the bounds of `clip` may be beyond the dtype: they then
change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import InvalidArgumentError, NumberRangeError, shown
from .._base.types import is_small_float
from .dtypes import BOOL, FLOAT32, INT32, Dtype, converted, fitting, literal, opaque, opaque_int
from .glsl_elements import element_of
from .host_values import HostValue, NotConstant, Value, evaluated
from .nodes import Node, marked, nodes_of

COMPARE = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_LIMITED = {"least": max, "most": min}
"""What keeps a bound of `clip` within the dtype: "least" of a lower bound, "most" of an upper one."""


class Numbers:
    """The part of a formula's typing that knows of numbers without dtypes."""

    values: dict[tuple[Node, Dtype, str], HostValue]
    beyond: bool
    """Whether numbers that are compared may be beyond the dtype that they are compared with."""

    def new(self, node: Node, dtype: Dtype, text: str) -> Value:
        """A temporary."""
        raise NotImplementedError

    def both(self, node: Node, args: list[Value]) -> tuple[Dtype, list[str]]:
        """The operands in their common dtype."""
        raise NotImplementedError

    def constant(self, node: Node) -> Any:
        """The value of a part of constants only; raises NotConstant for others."""
        try:
            value = evaluated(node, None)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise InvalidArgumentError(
                marked(f"The formula cannot be computed: {error}", node.text, node.column)
            ) from None
        return value

    def operand(self, value: Value, dtype: Dtype, node: Node, limit: str = "") -> str:
        """A part as `dtype`, in GLSL; `limit` is a key of `_LIMITED` for a bound of `clip`."""
        if value.dtype is not None:
            text = value.text
            if value.dtype.kind in "iu" and dtype.kind not in "biu" and value.node.op != "name":
                text = opaque_int(text, value.dtype)
            return converted(text, value.dtype, dtype)
        if limit and (dtype.kind not in "iu" or value.weak != "int"):
            limit = ""
        try:
            number = self.constant(value.node)
        except NotConstant:
            return self.host_value(value.node, dtype, limit)
        try:
            return opaque(literal(fitting(_limited(number, dtype, limit), dtype), dtype))
        except OverflowError:
            error: type[InvalidArgumentError] = NumberRangeError
        except (ValueError, TypeError):
            error = InvalidArgumentError
        raise error(
            marked(
                f"The formula does not fit its arguments: {shown(number)} is out of bounds for {dtype}",
                value.node.text,
                value.node.column,
            )
        )

    def host_value(self, node: Node, dtype: Dtype, limit: str = "") -> str:
        """The name of a run-time value of a part of numbers only, as `dtype`."""
        small = is_small_float(dtype)

        def fit(number: Any) -> Any:
            value = fitting(_limited(number, dtype, limit), dtype)
            if small:
                return float(dtype.type(value))
            if dtype.kind in "iu":
                literal(value, dtype)
            return value

        return self.computed(node, dtype, limit, FLOAT32 if small else dtype, fit)

    def computed(
        self, node: Node, dtype: Dtype, way: str, own: Dtype, fit: Any, compared: bool = False
    ) -> str:
        """The name of a run-time value: `fit` of the part's number, of the dtype `own` in the kernels."""
        found = self.values.get((node, dtype, way))
        if found is None:
            names = tuple(dict.fromkeys(each.value for each in nodes_of([node]) if each.op == "name"))

            def compute(*numbers: Any) -> Any:
                error: type[InvalidArgumentError] = InvalidArgumentError
                try:
                    number = evaluated(node, dict(zip(names, numbers, strict=True)))
                    try:
                        return fit(number)
                    except OverflowError:
                        error, message = NumberRangeError, f"{shown(number)} is out of bounds for {dtype}"
                except (ArithmeticError, ValueError, TypeError) as fault:
                    message = str(fault)
                raise error(
                    marked(f"The formula does not fit its arguments: {message}", node.text, node.column)
                )

            found = self.values[node, dtype, way] = HostValue(
                f"kp_v{len(self.values)}", own, names, compute, compared
            )
        return found.name

    # -- comparisons -----------------------------------------------------------------------------------------

    def compare(self, node: Node, args: list[Value]) -> Value:
        """A comparison; those of ints are exact."""
        sign = COMPARE[node.op]
        a, b = args
        if a.dtype is not None and b.dtype is not None and {a.dtype.kind, b.dtype.kind} == {"i", "u"}:
            return self.new(node, BOOL, self.mixed(a, b, sign, node))
        for weak, other, own in ((b, a, sign), (a, b, _MIRRORED[sign])):
            if weak.dtype is None and weak.weak == "int" and other.dtype is not None:
                if other.dtype.kind in "iu" or other.dtype == BOOL:
                    return self.new(node, BOOL, self.with_int(other, weak.node, own, node))
        dtype, (x, y) = self.both(node, args)
        if dtype.kind == "c" and sign not in ("==", "!="):
            name = "less_equal" if "=" in sign else "less"
            x, y = (y, x) if ">" in sign else (x, y)
            return self.new(node, BOOL, f"kp_c{name}_{element_of(dtype).type}({x}, {y})")
        if dtype == BOOL and sign not in ("==", "!="):
            x, y = f"uint({x})", f"uint({y})"
        return self.new(node, BOOL, f"{x} {sign} {y}")

    def with_int(self, value: Value, number: Node, sign: str, node: Node) -> str:
        """A comparison of an int or bool with an int that may be beyond its dtype."""
        assert value.dtype is not None
        dtype = value.dtype
        limits = (0, 1) if dtype == BOOL else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        if dtype.itemsize <= 2:  # an int of 32 bits has the numbers next to the limits, too
            value, dtype = Value(node, INT32, "", converted(value.text, dtype, INT32)), INT32
            limits = (limits[0] - 1, limits[1] + 1)
        elif not self.beyond:
            try:
                known = self.constant(number)
            except NotConstant:
                name = self.computed(number, dtype, "compared", dtype, lambda n: n, True)
                return f"{value.text} {sign} {name}"
            if not limits[0] <= known <= limits[1]:
                return _holds(sign, known > 0)

        def within(given: int) -> int:
            return max(limits[0], min(given, limits[1]))

        try:
            return f"{value.text} {sign} {literal(within(self.constant(number)), dtype)}"
        except NotConstant:
            name = self.computed(number, dtype, f"within {limits}", dtype, within)
        if dtype == INT32 and limits != (-(2**31), 2**31 - 1):
            return f"{value.text} {sign} {name}"
        side = self.computed(number, dtype, "side", INT32, lambda n: (n > limits[1]) - (n < limits[0]))
        above, below = _holds(sign, True), _holds(sign, False)
        return f"{side} > 0 ? {above} : {side} < 0 ? {below} : {value.text} {sign} {name}"

    def mixed(self, a: Value, b: Value, sign: str, node: Node) -> str:
        """Signed with unsigned, by their numbers."""
        assert a.dtype is not None and b.dtype is not None
        signed = a if a.dtype.kind == "i" else b
        width = 8 if 8 in (a.dtype.itemsize, b.dtype.itemsize) else 4
        wide = np.dtype(f"u{width}")
        x, y = (self.operand(each, wide, node) for each in (a, b))
        assert signed.dtype is not None
        negative = f"{signed.text} < {literal(0, signed.dtype)}"
        # A negative number is below each unsigned one.
        holds = (sign in ("<", "<=")) == (signed is a) if sign not in ("==", "!=") else sign == "!="
        return f"{negative} ? {'true' if holds else 'false'} : {x} {sign} {y}"


def _limited(number: Any, dtype: Dtype, limit: str) -> Any:
    if not limit or type(number) is not int:
        return number
    bound = np.iinfo(dtype)
    return _LIMITED[limit](number, int(bound.min if limit == "least" else bound.max))


def _holds(sign: str, above: bool) -> str:
    """Whether a comparison holds of each element with a number that is above all of them, or below."""
    return "true" if sign == "!=" or sign in (("<", "<=") if above else (">", ">=")) else "false"
