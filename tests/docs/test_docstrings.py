"""Docstrings name the errors that a call raises, and show an example of each public class and function."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

import pytest

import kompute_py as kp
from kompute_py import errors
from tests.docs.test_reference import NAMES, form, public, synonyms

pytestmark = pytest.mark.own_driver

ERRORS = frozenset(name for name in errors.__all__ if name.endswith("Error"))
# A docstring that refers to the errors of another call.
_REFERS = re.compile(
    r"[Rr]aises? (?:also )?(?:the errors of|what|as)\b|errors of [`a-z]|[Aa]s `[\w.]+`|Like `"
)
# Names without an example: a program cannot or should not bring them about, or another name shows them.
WITHOUT = {
    "CompileTimeoutError": "needs a compilation that takes too long",
    "DeviceLostError": "needs a device that fails",
    "InternalError": "needs a fault of the driver",
    "PipelineExecutable": "needs a device with pipelineExecutableInfo",
    "ShaderCompileWarning": "needs a source that the compiler warns of",
    "UnavailableError": "needs a machine without Vulkan",
    "ValidationError": "needs the validation layer",
    "errors.ArrayAttributeError": "attributes of arrays are named in the errors",
    "notebook.Sliders": "needs a notebook",
    "notebook.sliders": "needs a notebook",
    "notebook.play": "needs a notebook",
    "notebook.Play": "needs a notebook",
}


def calls() -> dict[str, tuple[Any, str]]:
    """Each public function, method and property: its function and its docstring."""
    found: dict[str, tuple[Any, str]] = {}
    for name, thing in NAMES.items():
        if public.is_alias(name, thing):
            continue
        items = [(name, thing, thing)]
        if inspect.isclass(thing):
            items = [(f"{name}.{member}", value, value) for member, value in public.members(thing)]
            if "__init__" in vars(thing):
                items.append((name, vars(thing)["__init__"], thing))
        for path, value, documented in items:
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if inspect.isfunction(inspect.unwrap(function)):
                found[path] = function, inspect.getdoc(documented) or ""
    return found


def raised(function: Any) -> set[str]:
    """The errors in the ``raise`` statements of a function's body."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    made = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    named = [each.func if isinstance(each, ast.Call) else each for each in made]
    return {each.id for each in named if isinstance(each, ast.Name)} & ERRORS


CALLS = calls()


def test_the_errors_that_a_call_raises_are_named():
    for path, (function, text) in CALLS.items():
        if not _REFERS.search(text):
            assert not [name for name in sorted(raised(function)) if name not in text], path


def test_a_missing_error_is_found():
    def call() -> None:
        """Does something. Raises OutOfRangeError for a wrong index."""
        if call:
            raise errors.KomputeError
        raise InvalidArgumentError("no")  # noqa: F821

    assert raised(call) == {"InvalidArgumentError"}
    assert not _REFERS.search(str(call.__doc__))


def test_the_errors_are_looked_for_in_many_calls():
    assert len([path for path, (function, _) in CALLS.items() if raised(function)]) > 50


def test_each_class_and_function_has_an_example():
    for name, thing in NAMES.items():
        if not public.is_alias(name, thing):
            has_example = ">>> " in (inspect.getdoc(thing) or "")
            assert has_example != (name.removeprefix("kompute_py.") in WITHOUT), name


def test_the_reference_has_the_errors_in_a_list():
    lines = form.in_form(
        inspect.cleandoc(
            """A call. Raises AError for `x`, and
            for `y`; BError, CError if not. More text.

            Raises the errors of `read`.

            >>> call()

            :dtypes: all
            """
        ).split("\n")
    )
    assert [line for line in lines if line] == [
        "A call. More text.", ":raises AError: for `x`, and for `y`", ":raises BError, CError: if not",
        ":raises: the errors of `read`", ":dtypes: all", ".. rubric:: Example", ">>> call()",
    ]  # fmt: skip


def test_each_error_that_a_docstring_names_is_in_its_list():
    for path, (_, text) in calls().items():
        if not text:
            continue
        lines = form.in_form(text.split("\n"))
        named = {error for error in ERRORS if re.search(rf"Raises (?:\w+, )*{error}\b", text)}
        listed = " ".join(line for line in lines if line.startswith(":raises"))
        assert {error for error in named if error not in listed} == set(), path


def test_the_names_that_have_other_words_are_public():
    known = {*NAMES, *(f"kompute_py.{path}" for path in calls()), *calls()}
    assert set(synonyms.SYNONYMS) - known == set()
    assert all(word == word.lower().strip() and word for each in synonyms.SYNONYMS.values() for word in each)


def test_fields_of_an_entry_have_one_order():
    given = ["dtypes", "raises ValueError", "returns", "type x", "param x", "rtype", "error"]
    assert sorted(given, key=form.place_of) == [
        *("type x", "param x", "returns", "rtype", "raises ValueError", "dtypes", "error"),
    ]


def test_types_of_operations_are_words():
    from kompute_py._custom.declaration import parse

    declared = {each.type for name in kp.ops.__all__ for each in _parameters(getattr(kp.ops, name))}
    assert parse("f(int[]? x) -> Tensor").parameters[0].type in declared
    for each in declared:
        shown = form.in_words("type x", each, True)
        assert not re.search(r"\?|\[\]|Scalar", shown), shown
    assert form.in_words("type x", "Tensor", False) == "Tensor"


def _parameters(function: Any) -> Any:
    return getattr(getattr(function, "_declaration", None), "parameters", ())
