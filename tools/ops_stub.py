"""Writes the types of `kp.ops`, as checkers and editors see them, from the declarations of its functions, and
the table of their names in docs/reference/library.md.

::

    python tools/ops_stub.py            # rewrites kompute_py/ops/__init__.pyi and _types.pyi, and the page
    python tools/ops_stub.py --check    # fails if they are not what the code says

The order of modules and names in ``__init__.pyi`` is kept: to add a function, write ``name: Function`` under
its module, and run this.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import re
import sys
from pathlib import Path
from typing import Any

from kompute_py import ops
from kompute_py._custom.declaration import Declaration, Parameter
from kompute_py._functions.function import Function
from kompute_py._shaders.signature import MISSING
from kompute_py.ops._places.composed import Composed

FOLDER = Path(ops.__file__).parent
LISTED, TYPES = FOLDER / "__init__.pyi", FOLDER / "_types.pyi"
PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGE = PAGES / "library.md"
_BY_NAME = "## All names\n\n"

_OF = {
    "int": "Int",
    "float": "Float",
    "bool": "bool",
    "str": "str",
    "dtype": "DTypeLike",
    "dtype?": "DTypeLike | None",
    "int[]": "Ints",
    "int[]?": "Ints | None",
    "float[]": "Floats",
}
"""The types of parameters that take no tensor."""
_PLACES = {
    "array": {"Tensor": "Host", "Scalar": "Host"},
    "tensor": {"Tensor": "Memory", "Scalar": "Memory"},
    "any": {"Tensor": "Given", "Scalar": "Given"},
    "recorded": {"Tensor": "Recorded", "Scalar": "Recorded | complex"},
}
"""The types of parameters that take tensors, by what all of them are: arrays, no images, anything, or what
sequences record."""
_WIDER = {
    ("linspace", "start"): "complex",
    ("linspace", "stop"): "complex",
    ("repeat", "repeats"): "Given",
    ("argsort", "axis"): "Int | None",
    ("sort", "axis"): "Int | None",
}
"""Parameters that take more than the declaration says."""
_OPEN = {
    "axis": "Ints | None",
    "axes": "Ints",
    "bins": "Int | str | Sequence[Float] | Array",
    "dtype": "DTypeLike | None",
    "ord": "str | Float | None",
    "q": "Floats | Sequence[Sequence[Float]]",
}
"""The types of parameters that the code of several operations takes as Any, by their names."""
_FLAGS = {"average": ("returned",), "unique": ("return_index", "return_inverse", "return_counts")}
"""Parameters that each add a result."""
_SEVERAL = ("gradient",)
"""Functions that give a result for each axis, and for one axis one."""
_ANY_AXIS = "axis: Ints | None = ..."
_ORDERING = ", **options: _types.Unpack[_types.Ordering]"
_VIEWS = ("sliding_window_view",)
"""Functions that give a view of a Tensor which is not dense."""
_NAMES = {"absolute": "Unary", "add": "Binary", "ascontiguousarray": "OfTensor", "all": "Reduction"}
"""Names of types that many functions have; others are named after the first function."""


def _of_tensors(kind: str, where: str) -> str:
    several = kind.endswith("[]")
    text = _PLACES[where]["Scalar" if "Scalar" in kind else "Tensor"]
    return f"Sequence[{text}]" if several else f"{text} | None" if kind.endswith("?") else text


def _parameters(name: str, parameters: tuple[Parameter, ...], where: str) -> str:
    parts: list[str] = []
    by_name = False
    for each in parameters:
        if each.by_name and not by_name:
            parts.append("*")
            by_name = True
        text = _WIDER.get((name, each.name)) or (
            _of_tensors(each.type, where) if each.is_tensor else _OF[each.type]
        )
        parts.append(f"{each.name}: {text}" + ("" if each.left_out is MISSING else " = ..."))
    if name == "einsum":  # more operands follow by position
        at = parts.index("*") if "*" in parts else len(parts)
        parts[at : at + 1] = [f"*more: {_PLACES[where]['Tensor']}"]
        by_name = True
    return ", ".join(parts) + ("" if by_name else ", *")


def _results(declaration: Declaration, result: str) -> str:
    if declaration.single:
        return result
    return f"tuple[{', '.join([result] * len(declaration.results))}]"


def _overloads(calls: list[str]) -> list[str]:
    return (
        [line for call in calls for line in ("    @overload", f"    {call}")]
        if calls[1:]
        else [f"    {calls[0]}"]
    )


def class_of(name: str, function: Function) -> str:
    """The members of the type of an operation."""
    declaration, options = function._declaration, "**options: Unpack[Options]"
    given = _parameters(name, declaration.parameters, "any")
    out = "_Out" if declaration.single else "_Outs"
    calls = [f"def __call__(self, {given}, out: {out}, {options}) -> {out}: ..."]
    if any(each.is_tensor for each in declaration.parameters):
        arrays = _parameters(name, declaration.parameters, "array")
        result = _results(declaration, "Array")
        calls.append(f"def __call__(self, {arrays}, out: None = ..., {options}) -> {result}: ...")
    result = _results(declaration, "Tensor")
    if function._op.makes_images:
        tensors = _parameters(name, declaration.parameters, "tensor")
        calls.append(f"def __call__(self, {tensors}, out: None = ..., {options}) -> {result}: ...")
        result = _results(declaration, "Tensor | Image")
    calls.append(f"def __call__(self, {given}, out: None = ..., {options}) -> {result}: ...")
    recorded = f"{_parameters(name, declaration.parameters, 'recorded')}, out: Any = ..."
    return "\n".join(
        [
            *_overloads(calls),
            f"    def bind(self, {recorded}) -> OpCustom: ...",
            f"    def submit(self, {recorded}, **options: Unpack[Ordering]) -> Fence: ...",
        ]
    )


def _python_parameters(signature: inspect.Signature, where: str) -> str:
    parts, by_name = [], False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not by_name:
            parts.append("*")
            by_name = True
        text = re.sub(r"\bArray\b", f"{_PLACES[where]['Tensor']} | Numbers", str(each.annotation))
        text = _OPEN[each.name] if text == "Any" else text
        if each.kind is each.VAR_POSITIONAL:
            parts.append(f"*{each.name}: {text}")
            by_name = True
            continue
        parts.append(f"{each.name}: {text}" + ("" if each.default is each.empty else " = ..."))
    return ", ".join(parts) + ("" if by_name else ", *")


def _calls(name: str, parameters: str, result: str) -> list[tuple[str, str]]:
    """The parameters and the results of each kind of call: one, or one for each choice of `_FLAGS`."""
    calls = []
    flags = _FLAGS.get(name, ())
    for chosen in itertools.product((False, True), repeat=len(flags)):
        text = parameters
        for flag, on in zip(flags, chosen, strict=True):
            text = text.replace(f", {flag}: bool = ...", f", {flag}: Literal[False] = ...")
            if on:  # by name, because parameters with defaults may stand before it
                text = text.replace(f", {flag}: Literal[False] = ...", "")
                text += f"{'' if '*, ' in text or text.endswith('*') else ', *'}, {flag}: Literal[True]"
        calls.append((text, f"tuple[{', '.join([result] * (1 + sum(chosen)))}]" if any(chosen) else result))
    if flags:
        calls.append((parameters, f"{result} | tuple[{result}, ...]"))
    return calls


def class_of_composed(name: str, function: Composed) -> str:
    """The members of the type of a function of several operations."""
    body = inspect.signature(function._body)
    signature = body.replace(parameters=list(body.parameters.values())[1:])
    options = "**options: Unpack[Ordering]"
    arrays, given = (_python_parameters(signature, where) for where in ("array", "any"))  # equal: makes one
    calls = [f"def __call__(self, {given}, out: _Out, {options}) -> _Out: ..."]
    for parameters, one in ((arrays, "Array"), (given, "Tensor"))[arrays == given :]:
        parameters = parameters.replace(_ANY_AXIS, "axis: Int") if name in _SEVERAL else parameters
        for text, result in _calls(name, parameters, one):
            calls.append(f"def __call__(self, {text}, out: None = ..., {options}) -> {result}: ...")
    if name in _SEVERAL:
        calls.append(f"def __call__(self, {given}, out: None = ..., {options}) -> Any: ...")
    recorded = _python_parameters(signature, "recorded")
    return "\n".join([*_overloads(calls), f"    def bind(self, {recorded}, out: Any = ...) -> OpCustom: ..."])


def defs_of(name: str, function: Any) -> list[str]:
    """A function that looks at contents, which only runs."""
    whole = inspect.signature(function)
    own = [each for each in whole.parameters.values() if each.name not in ("wait", "signal")]
    signature = whole.replace(parameters=own)
    made = str(signature.return_annotation)
    if "Array" not in made and name not in _FLAGS:
        parameters = _in_types(_python_parameters(signature, "any").removesuffix(", *"))
        return [f"def {name}({parameters}{_ORDERING}) -> {made}: ..."]
    found = []
    memory = "kompute_py.StridedView" if name in _VIEWS else "kompute_py.Tensor[Any]"
    for where, result in (("array", "_types.Array"), ("any", memory)):
        made = "Array" if name in _FLAGS else str(signature.return_annotation)
        parameters = _python_parameters(signature, where).removesuffix(", *")
        for text, results in _calls(name, parameters, re.sub(r"\bArray", result, made)):
            found += ["@overload", f"def {name}({_in_types(text)}{_ORDERING}) -> {results}: ..."]
    return found


def _in_types(text: str) -> str:
    """The annotations with the names of ``_types.pyi``."""
    return re.sub(r"\b(Array|Given|Host|Numbers|Ints?|Floats?|DTypeLike)\b", r"_types.\1", text)


_HEAD = '''"""The types of the functions of `kp.ops` for checkers and editors; tools/ops_stub.py writes it."""

# ruff: noqa
# fmt: off
# mypy: disable-error-code="overload-overlap, override"
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike
from typing_extensions import Buffer, Unpack as Unpack

from .._base.annotations import Array as Array
from .._functions.function import Function
from .._functions.op_custom import OpCustom
from .._memory.image import Image
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._sync.fence import Fence
from .._sync.semaphore import Ordering as Ordering
from ._places.composed import Composed

Int = int | np.integer[Any]
Float = float | np.integer[Any] | np.floating[Any]
Ints = Int | Sequence[Int] | Sequence[Sequence[Int]] | Array
Floats = Float | Sequence[Float] | Array
Numbers = complex | Sequence[Any]
Row = Sequence[complex | np.generic]
Host = Array | np.generic | Buffer | complex | Row | Sequence[Row] | Sequence[Sequence[Row]]
Memory = Host | Tensor[Any] | StridedView
Given = Memory | Image
Recorded = Tensor[Any] | StridedView | Image
_Out = TypeVar("_Out", bound=Tensor[Any] | StridedView | Image | Array)
_Outs = TypeVar("_Outs", bound=tuple[Tensor[Any] | StridedView | Image | Array, ...])

class Options(Ordering, total=False):
    donate: bool | str | int | Sequence[str | int] | None

'''


def stubs() -> tuple[str, str]:
    """The text of ``__init__.pyi`` and of ``_types.pyi``."""
    listed = LISTED.read_text(encoding="utf-8")
    classes: dict[str, str] = {}  # by their members
    blocks: list[str] = []
    for module, names in ops._MODULES.items():
        lines = [f"# {module}"]
        for name in names:
            function = getattr(ops, name)
            if isinstance(function, Function):
                base, members = "Function", class_of(name, function)
            elif isinstance(function, Composed):
                base, members = "Composed", class_of_composed(name, function)
            elif module.startswith(".._builders"):
                lines.append(f"from {module} import {name} as {name}")
                continue
            else:
                lines += defs_of(name, function)
                continue
            kind = classes.setdefault(f"({base}):\n{members}", _NAMES.get(name, _camel(name)))
            lines.append(f"{name}: _types.{kind}")
            summary = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
            lines.append(repr_doc(summary))
        blocks.append("\n".join(lines) + "\n")
    head, _, rest = listed.partition("\n# .")
    tail = rest[rest.index("def __getattr__") :]
    body = "".join(f"class {name}{members}\n\n" for members, name in classes.items())
    return head + "\n" + "\n".join(blocks) + "\n" + tail, _HEAD + body.rstrip("\n") + "\n"


def page() -> str:
    """The page, with all functions by name: what each does, and the page that describes it."""
    places = {
        name: path.name
        for path in sorted(PAGES.glob("ops_*.md"))
        for name in re.findall(r"^## (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    rows = ["| function | what it gives |", "|---|---|"]
    for name, place in sorted(places.items()):
        text = " ".join((inspect.getdoc(getattr(ops, name)) or "").partition("\n\n")[0].split())
        text = re.sub(r"``(.+?)``", r"`\1`", re.split(r"\. |:(?= )", text)[0].rstrip(".")).replace("|", "\\|")
        rows.append(f"| [{name}]({place}#{name}) | {text} |")
    before = PAGE.read_text(encoding="utf-8").partition(_BY_NAME)[0]
    return before + _BY_NAME + "\n".join(rows) + "\n"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def repr_doc(text: str) -> str:
    """A docstring of one line."""
    return f'r"""{text}"""' if "\\" in text else f'"""{text}"""'


def main() -> int:
    """Writes or compares. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wrong = 0
    for path, text in zip((LISTED, TYPES, PAGE), (*stubs(), page()), strict=True):
        if check and path.read_text(encoding="utf-8") != text:
            print(f"{path} is not what the code says: run python tools/ops_stub.py", file=sys.stderr)
            wrong = 1
        elif not check:
            path.write_text(text, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
