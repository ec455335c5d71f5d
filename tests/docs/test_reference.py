"""Every public name, option, variable, command and magic has its place in the documentation."""

from __future__ import annotations

import builtins
import doctest
import inspect
import re
import sys

import numpy as np
import pytest

import kompute_py as kp
from tests.conftest import ROOT

sys.path.append(str(ROOT / "docs" / "_ext"))
import form  # noqa: F401 - test_docstrings takes it from here, with the folder on the path
import public
import synonyms  # noqa: F401
import tables

pytestmark = pytest.mark.own_driver

REFERENCE = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md")}
NAMES = dict(public.public_objects())
CLASSES = {
    name: thing
    for name, thing in NAMES.items()
    if inspect.isclass(thing) and not public.is_alias(name, thing)
}
GUIDES = ROOT / "docs" / "guides"


def entries() -> list[tuple[str, str, str]]:
    """Kind, name and options of each entry of the reference: ("autoclass", "kompute_py.Tensor", "")."""
    pattern = r"^\.\. (auto\w+|py:\w+):: (\S+)\n((?:   :[^\n]*\n)*)"
    return [found for text in REFERENCE.values() for found in re.findall(pattern, text, re.M)]


def test_each_public_name_has_one_entry():
    described = [name for _, name, _ in entries()]
    assert sorted(described) == sorted(NAMES)


def test_entries_are_of_the_right_kind():
    for kind, name, _ in entries():
        thing = NAMES[name]
        error = inspect.isclass(thing) and issubclass(thing, BaseException)
        right = (
            "py:class"
            if public.is_alias(name, thing)
            else "autoexception"
            if error
            else "autoclass"
            if name in CLASSES
            else "autofunction"
        )
        assert kind == right, name


def test_members_are_left_out_of_no_entry():
    """The site shows all members of a class; those that an entry leaves out have an entry elsewhere."""
    for _, name, options in entries():
        assert not re.search(r"exclude-members|:members: \w", options), name
        if "no-inherited-members" in options:
            own = vars(NAMES[name])
            assert all(member in own for member, _ in public.members(NAMES[name])), name


def test_each_name_and_member_has_a_docstring():
    assert not [name for name, thing in NAMES.items() if not inspect.getdoc(thing)]
    for name, kind in CLASSES.items():
        without = [
            member for member, value in public.members(kind) if not public.is_documented(member, value, kind)
        ]
        assert not without, f"{name}: no docstring for {', '.join(without)}"


def test_attributes_that_only_arrays_have_are_no_members():
    """`t.setflags` raises an error that says what tensors have instead: the reference has no entry for it."""
    for kind in CLASSES.values():
        if issubclass(kind, kp.Tensor):
            assert not dict(public.members(kind)).keys() & {"setflags", "partition", "ctypes"}, kind


def test_a_missing_docstring_is_found():
    class Thing:
        """A class."""

        plain = 3

        def method(self):
            pass

        @property
        def size(self):
            """The size in bytes."""

    assert [public.is_documented(name, vars(Thing)[name], Thing) for name in ("plain", "method", "size")] == [
        False,
        False,
        True,
    ]


def members_with_examples():
    for name, thing in NAMES.items():
        if public.is_alias(name, thing):
            continue
        yield name, thing
        for member, value in public.members(thing) if name in CLASSES else ():
            if inspect.isroutine(value) or isinstance(value, (property, staticmethod, classmethod)):
                yield f"{name}.{member}", value


EXAMPLES = [
    (name, thing) for name, thing in members_with_examples() if ">>>" in (inspect.getdoc(thing) or "")
]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("name", "thing"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples_in_docstrings(name, thing, clean, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    globs = {"kp": kp, "np": np, "mgr": kp.manager()}
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), globs, name, None, None)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags).run(example, out=report.append)
    vars(builtins).pop("_", None)  # the last value that an example showed
    example.globs.clear()
    globs.clear()
    kp.manager().destroy()
    assert result.attempted and not result.failed, "".join(report)


# --------------------------------------------------------------------- options, variables, commands, magics


@pytest.mark.parametrize(
    ("page", "directives"),
    [
        ("options.md", ["kp-options", "kp-variables"]),
        ("command_line.md", ["kp-commands"]),
        ("notebooks.md", ["kp-magics"]),
        ("../reference/errors.md", ["kp-errors"]),
    ],
)
def test_page_has_its_generated_tables(page, directives):
    text = (GUIDES / page).read_text()
    for directive in directives:
        assert f"```{{{directive}}}" in text, f"docs/guides/{page} lacks ```{{{directive}}}"


def test_the_page_of_errors_has_an_action_for_each():
    text = REFERENCE["errors.md"]
    listed = re.findall(r"^\| `(\w+)` \|", text, re.M)
    kinds = [getattr(kp.errors, name) for name in kp.errors.__all__]
    assert sorted(listed) == sorted(kind.__name__ for kind in kinds if issubclass(kind, Exception))


def test_every_option_is_in_the_table():
    shown = tables.options()
    with kp.Manager(pipeline_cache_dir="") as mgr:
        names = [setting.name for setting in mgr.config if setting.name != "device"]
    assert len(names) > 15
    for name in names:
        variable = f"KOMPUTE_PY_{name.upper()}"
        row = next(line for line in shown.splitlines() if line.startswith(f"| `{name}`<br>`{variable}`"))
        assert len(row.split(" | ")[1]) > 20, f"{name} has no text"


def test_every_variable_of_the_code_is_in_a_table():
    shown = tables.options() + tables.variables()
    found = set()
    for folder, suffixes in (("kompute_py", (".py",)), ("native", (".cpp", ".hpp"))):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in suffixes:
                found |= set(re.findall(r"\bKOMPUTE_PY_[A-Z][A-Z_]+[A-Z]\b", path.read_text()))
    # Of the build, not of the environment: macros.
    found -= {"KOMPUTE_PY_VERSION"}
    assert len(found) > 5
    assert not {name for name in found if f"`{name}`" not in shown}


def test_every_command_and_option_is_in_the_table(capsys):
    from kompute_py.cli import main

    shown = tables.commands()
    assert main(["--help"]) == 0
    commands = re.findall(r"^[│| ] (\w+)  ", capsys.readouterr().out, re.M)
    assert {"run", "info", "compile", "demo"} <= set(commands)
    for command in commands:
        assert f"### `kompute-py {command}`" in shown
        part = shown.partition(f"### `kompute-py {command}`")[2].partition("###")[0]
        assert main([command, "--help"]) == 0
        options = set(
            re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out.partition("Options")[2])
        )
        listed = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", part))
        assert options - {"--help"} <= listed, command


def test_every_magic_and_option_is_in_the_table(capsys):
    from IPython.core.interactiveshell import InteractiveShell

    from kompute_py.notebook.magics import KomputeMagics

    shown = tables.magics()
    names = [name for kind in ("cell", "line") for name in KomputeMagics.magics[kind]]
    assert names == [name for name, _ in tables.magic_names()]
    magics = KomputeMagics(InteractiveShell.instance())
    try:
        for name in names:
            assert re.search(rf"### .*`%{{1,2}}{name}`", shown), name
            call = getattr(magics, name)
            call("--help", "") if name in KomputeMagics.magics["cell"] else call("--help")
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out):
                assert option in shown, (name, option)
    finally:
        InteractiveShell.clear_instance()


def test_every_type_of_arguments_has_a_text():
    import kompute_py.typing

    assert "```{kp-types}" in REFERENCE["typing.md"]
    shown = tables.types()
    for name in kompute_py.typing.__all__:
        text = shown.partition(f"kompute_py.typing.{name}\n")[2].partition("```")[0].strip()
        if f".. autoclass:: kompute_py.typing.{name}\n" in shown:
            text = inspect.getdoc(getattr(kompute_py.typing, name)) or ""
        assert len(text) > 15, f"kompute_py.typing.{name} has no text below it"


def test_every_error_is_in_the_table():
    shown = tables.errors()
    for name in kp.errors.__all__:
        if issubclass(getattr(kp.errors, name), BaseException):
            assert f"kompute_py.errors.{name}`" in shown


def test_signatures_show_no_private_names():
    shown = public.readable("(self: _Kind, push: Any = _NOTHING, prefix: str = PREFIX, m=_EMPTY) -> _Kind")
    assert shown == "(self: Self, push: Any = (), prefix: str = 'KOMPUTE_PY_', m={}) -> Self"
    assert public.readable("_Kinds(A_PREFIX)") == "_Kinds(A_PREFIX)"
