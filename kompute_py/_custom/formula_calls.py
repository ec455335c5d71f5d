"""Formulas in kernels: their arguments and numbers, and elementwise operations as functions of others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .._base.arrays import to_dtype
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._base.text import nearest
from .._formulas.formula import Formula
from .._formulas.glsl_elements import element_of
from .arg_descs import BOUNDS, TensorArg, ValueArg

if TYPE_CHECKING:
    import numpy as np

    from .._formulas.dtypes import Dtype
    from .._formulas.typed import Typed
    from .selection import FunctionSelection

_LOAD = re.compile(r"\s*([A-Za-z]\w*)_load\s*\(")


class HasDtype(Protocol):
    """A tensor as code of kernels sees it."""

    dtype: np.dtype[Any]


class Caller(Protocol):
    """The builder of a function that calls formulas."""

    selection: FunctionSelection
    _calls: dict[str, int]
    """Numbers of the functions that are called, by their text."""
    _values: dict[str, ValueArg]

    @property
    def _tensors(self) -> Mapping[str, HasDtype]: ...


def called(
    builder: Caller, operation: Any, arguments: Mapping[str, Any]
) -> tuple[list[str], list[str], tuple[str, ...]]:
    """The functions that stand before ``main``, the extensions, and an expression for each result."""
    formula = getattr(operation, "formula", None)
    if not isinstance(formula, Formula):
        raise ArgumentTypeError(f"call takes an elementwise operation, not {kind_of(operation)}")
    names = formula.names
    for name in arguments:
        if name not in names:
            raise InvalidArgumentError(
                f"{operation.__name__} has no parameter {shown(name)}{nearest(name, names)}"
            )
    types, texts, numbers = {}, {}, {}
    for name in names:
        if name not in arguments:
            raise InvalidArgumentError(f"{operation.__name__}: call lacks an expression for {name!r}")
        given = arguments[name]
        if isinstance(given, (bool, int, float, complex)):
            numbers[name] = Formula(repr(given))
        else:
            texts[name], types[name] = _typed(builder, f"{operation.__name__}: {name}", given)
    if numbers:
        formula = formula.of(**numbers)
    typed = formula.typed(types, builder.selection.features, operation._dtype)
    parameters = ", ".join(f"{element_of(types[name]).type} {name}" for name in typed.names)
    given_texts = ", ".join(texts[name] for name in typed.names)
    statements, results = typed.glsl({name: name for name in typed.names})
    parts = [part for part in typed.declarations.split("\n\n") if part]
    found = []
    for name, dtype in typed.dtypes.items():
        body = "\n".join(f"    {line}" for line in (*statements, f"return {results[name]};"))
        head = f"{element_of(dtype).type} kp_call{{}}({parameters}) {{{{\n"
        made = head + body.replace("{", "{{").replace("}", "}}") + "\n}}"
        number = builder._calls.setdefault(made, len(builder._calls))
        parts.append(made.format(number))
        found.append(f"kp_call{number}({given_texts})")
    return parts, list(typed.extensions), tuple(found)


def _typed(builder: Caller, who: str, given: Any) -> tuple[str, Dtype]:
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        dtype = to_dtype(given[1])
        element_of(dtype)
        return given[0], dtype
    if not isinstance(given, str):
        raise ArgumentTypeError(f"{who} is {kind_of(given)}; give an expression, or (expression, dtype)")
    value = builder._values.get(given.strip())
    if value is not None:
        return given, value.dtype
    load = _LOAD.match(given)
    if load is not None and load.group(1) in builder._tensors and _closes(given, load.end()):
        return given, builder._tensors[load.group(1)].dtype
    raise InvalidArgumentError(
        f"{who} is {shown(given)}: an expression of more than one load or value needs its dtype: "
        f'({shown(given)}, "float32")'
    )


def _closes(text: str, start: int) -> bool:
    """Whether the parenthesis before `start` closes at the end of the text."""
    depth = 1
    for place, letter in enumerate(text[start:], start):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return not text[place + 1 :].strip()
    return False


def declared_args(ksel: FunctionSelection, names: Iterable[str]) -> tuple[list[TensorArg], dict[str, Any]]:
    """Declares the arguments of a formula: the tensors, and the type of each name."""
    args = [ksel._tensor_or_value(*ksel._parameter(name), any_int=True) for name in names]
    return [a for a in args if isinstance(a, TensorArg)], types_of(ksel, [a.name for a in args])


def types_of(ksel: FunctionSelection, names: Sequence[str]) -> dict[str, Any]:
    """The types of a formula's arguments, which are declared."""
    return {
        a.name: (a.weak or a.dtype) if isinstance(a, ValueArg) else a.dtype
        for a in ksel.arg_descs
        if isinstance(a, (TensorArg, ValueArg)) and a.name in names
    }


def declare_values(ksel: FunctionSelection, make: Callable[[], Typed]) -> Typed:
    """Declares the run-time values of the formula that `make` types. If a number that it compares is out of
    the bounds of the dtype, it is typed again, for such: `special` has "beyond".
    """
    typed = make()
    for value in typed.values:
        least, most = BOUNDS.get(value.dtype, (0, 0))
        if value.compared:
            number = value.compute(*(ksel._given[ksel._place(name)] for name in value.names))
            if not least <= number <= most:
                ksel.specialize(beyond=True)
                typed = make()
                break
    for value in typed.values:
        ksel.value(value.name, value.compute, value.dtype, of=value.names)
    return typed
