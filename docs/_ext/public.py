"""The public names of kompute_py: what the reference must contain. The site and the tests share this list."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kompute_py as kp
import kompute_py.dask
import kompute_py.errors
import kompute_py.notebook
import kompute_py.ops
import kompute_py.random
import kompute_py.testing
from kompute_py._memory.array_habits import OnlyOfArrays

PACKAGE = "kompute_py"


def public_objects() -> Iterator[tuple[str, Any]]:
    """The public names with their objects: "kompute_py.Tensor", "kompute_py.errors.Diagnostic"."""
    for module in (
        kp,
        kompute_py.dask,
        kompute_py.errors,
        kompute_py.notebook,
        kompute_py.ops,
        kompute_py.random,
        kompute_py.testing,
    ):
        for name in module.__all__:
            if module is kp or not hasattr(kp, name):
                yield f"{module.__name__}.{name}", getattr(module, name)


def is_alias(name: str, thing: Any) -> bool:
    """Whether this is a second name of a class, as `TensorTypes` is of `MemoryTypes`."""
    return inspect.isclass(thing) and thing.__name__ != name.rpartition(".")[2]


def foreign_bases() -> set[str]:
    """The names of the bases of public classes that are not kompute_py's own."""
    classes = [thing for _, thing in public_objects() if inspect.isclass(thing)]
    return {
        base.__name__ for kind in classes for base in kind.__mro__ if not base.__module__.startswith(PACKAGE)
    }


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods, properties and fields that a class has from kompute_py, as the class holds them."""
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith(PACKAGE):
            continue
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                if not is_refusal(value):
                    yield name, value


def is_refusal(value: Any) -> bool:
    """Whether a class attribute only raises an error: arrays have it, tensors lack it."""
    return isinstance(value, OnlyOfArrays)


def is_documented(name: str, value: Any, kind: type) -> bool:
    """Whether this member has a text of its own: a docstring, or one below its line."""
    if issubclass(kind, enum.Enum) and isinstance(value, kind):
        return True  # the class describes its members
    if field_text(kind, name):
        return True
    if (
        type(value).__module__ == "builtins"
        and not inspect.isroutine(value)
        and not inspect.isdatadescriptor(value)
    ):
        return False  # a plain value, which has the docstring of its type
    text = _own_doc(name, value, kind) or ""
    return bool(text) and not text.startswith("Alias for field number")  # what a named tuple says by itself


def _own_doc(name: str, value: Any, kind: type) -> str | None:
    for base in kind.__mro__:
        slots = vars(base).get("__slots__")
        if isinstance(slots, dict) and name in slots:
            return slots[name]
    return inspect.getdoc(value)


def field_text(kind: type, name: str) -> str:
    """The string below a field of a class or its bases: ``size: int`` and, on the next line, a text."""
    for base in kind.__mro__:
        text = _fields_of_package().get(base.__name__, {}).get(name)
        if text:
            return inspect.cleandoc(text)
    return ""


@functools.cache
def _fields_of_package() -> dict[str, dict[str, str]]:
    # From the files: a published class names the package as its module, not the file that holds it.
    found: dict[str, dict[str, str]] = {}
    for path in Path(kp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            for field, text in itertools.pairwise(node.body):
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    targets = (
                        field.targets if isinstance(field, ast.Assign) else [getattr(field, "target", None)]
                    )
                    for target in targets:
                        if isinstance(target, ast.Name):
                            found.setdefault(node.name, {})[target.id] = str(text.value.value)
    return found


def module_texts(module: ModuleType) -> dict[str, str]:
    """The strings below the assignments of a module, by the name that is assigned."""
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    return {
        target.id: inspect.cleandoc(str(text.value.value))
        for line, text in itertools.pairwise(body)
        if isinstance(line, ast.Assign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        for target in line.targets
        if isinstance(target, ast.Name)
    }


# Private names in signatures, and the text that readers can use instead.
_IN_SIGNATURES = {"_Kind": "Self", "_NOTHING": "()", "_EMPTY": "{}", "PREFIX": repr("KOMPUTE_PY_")}
_PRIVATE_NAMES = re.compile("|".join(rf"\b{name}\b" for name in _IN_SIGNATURES))


def readable(signature: str) -> str:
    """A signature without the package's private names."""
    return _PRIVATE_NAMES.sub(lambda found: _IN_SIGNATURES[found[0]], signature)
