"""The package's types, as users' checkers see them.

The files in `typed_code` are only type-checked. Mypy and pyright must report an error in each line
with the comment ``# error``, and in no other line.
"""

from __future__ import annotations

import ast
import doctest
import functools
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import _native
from kompute_py import typing as names
from kompute_py._compilers.compile import COMPILE_OPTIONS, TARGETS
from kompute_py._compilers.languages import LANGUAGES
from kompute_py._compilers.settings import COMPILERS
from kompute_py._device.options import _ALL

ROOT = Path(__file__).parents[2]
CODE = Path(__file__).parent / "typed_code"
PROGRAMS = (ROOT / "kompute_py_gallery", ROOT / "examples")
pytestmark = pytest.mark.own_driver

Places = set[tuple[str, int]]


def expected(folder: Path) -> Places:
    """The lines that are wrong."""
    return {
        (file.name, number)
        for file in folder.glob("*.py")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith("  # error")
    }


def run(*command: str) -> str:
    """The output of a checker, which fails if it finds errors."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@functools.cache
def mypy() -> dict[tuple[str, int], str]:
    """Mypy's errors by file and line."""
    # Without the project's own settings, as users run it; the package's own errors are not theirs. Libraries
    # that have no types (scikit-learn, scikit-image) give Any.
    output = run(
        "mypy", "--config-file=", "--follow-imports=silent", "--no-error-summary", "--hide-error-context",
        "--cache-dir", str(ROOT / "build/mypy-typed-code"), "--allow-redefinition",
        "--ignore-missing-imports",
        "--strict", "--allow-untyped-calls", "--allow-any-generics", "--no-warn-return-any",
        *(str(path) for folder in (CODE, *PROGRAMS) for path in sorted(folder.glob("*.py"))),
    )  # fmt: skip
    found = re.findall(r"^(?:.*[/\\])?(\w+\.py):(\d+): error: (.*)$", output, re.MULTILINE)
    return {(file, int(line)): text for file, line, text in found}


CALLS = "calls_of_examples.py"


@functools.cache
def reported() -> list[dict[str, Any]]:
    """What pyright says of all: the programs, and the calls of `examples`."""
    folder = ROOT / "build/pyright"
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath(CALLS).write_text("\n".join(calls()[0]), encoding="utf-8")
    # It would read all of libraries that have no types, for minutes.
    settings = {
        "include": [os.path.relpath(each, folder) for each in (CODE, *PROGRAMS, folder / CALLS)],
        "useLibraryCodeForTypes": False,
        "reportMissingModuleSource": False,
    }
    file = folder / "typed-code.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    output = run("pyright", "--pythonpath", sys.executable, "--outputjson", "--project", str(file))
    found: list[dict[str, Any]] = json.loads(output)["generalDiagnostics"]
    return found


def pyright() -> dict[tuple[str, int], str]:
    """Pyright's errors by file and line."""
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in reported()
        if each["severity"] == "error" and Path(each["file"]).name != CALLS
    }


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checkers_find_the_wrong_lines_and_no_others(clean, checker):
    """The wrong lines of `typed_code`, and none in the programs that users read. Of pyright, whose run knows
    the calls of `examples`, also the types of their results.
    """
    wrong = expected(CODE)
    assert len(wrong) > 100
    found = checker()
    assert {place: text for place, text in found.items() if place not in wrong} == {}
    assert sorted(wrong - found.keys()) == []
    if checker is pyright:
        results_have_the_types_that_pyright_says()


def test_the_types_of_functions_are_their_declarations():
    done = subprocess.run(
        [sys.executable, "tools/ops_stub.py", "--check"], cwd=ROOT, timeout=100, check=False
    )
    assert done.returncode == 0


def examples() -> Iterator[tuple[str, str]]:
    """The last line of each example of a function of `kp.ops`, with what it needs before it."""
    for name in kp.ops.__all__:
        before = ""
        for each in doctest.DocTestParser().get_examples(inspect.getdoc(getattr(kp.ops, name)) or ""):
            if "kp.ops." in each.source and not re.match(r"[\w, ()]+ = |for |with |@", each.source):
                yield before, each.source.strip()
            before += each.source


KINDS = {"Tensor", "Image", "StridedView", "ndarray"}


@functools.cache
def calls() -> tuple[list[str], dict[int, str]]:
    """A program with the first call of `kp.ops` in each example, and by line the kind of its result."""
    lines = ["import numpy as np", "import kompute_py as kp", "mgr = kp.manager()"]
    wanted: dict[int, str] = {}
    for before, source in examples():
        call = ast.parse(source).body[-1]
        found = [
            each
            for each in ast.walk(call)
            if isinstance(each, ast.Call) and re.fullmatch(r"kp\.ops\.\w+", ast.unparse(each.func))
        ]
        scope = {"np": np, "kp": kp, "mgr": kp.manager()}
        exec(before, scope)
        lines += before.splitlines()
        for each in found[:1]:
            text = re.sub(r"np\.\w+\((\[.*?\])\)", r"np.array(\1)", ast.unparse(each))
            kind = type(eval(ast.unparse(each), scope)).__name__
            lines.append(f"reveal_type({text})")
            if kind in KINDS:
                wanted[len(lines)] = kind
        scope.clear()
    kp.manager().destroy()
    return lines, wanted


def results_have_the_types_that_pyright_says() -> None:
    """Of each call: its result, and the type that pyright reveals."""
    lines, wanted = calls()
    assert len(wanted) > 150
    said = {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in reported()
        if each["severity"] == "information" and Path(each["file"]).name == CALLS
    }
    wrong = {
        lines[at - 1]: said[at]
        for at, kind in wanted.items()
        if not re.search(rf'is "({kind}\b|Tensor\[Any\] \| Image")', said[at])
    }
    # Unknown: arguments that NumPy's types leave open.
    assert {text for text in wrong.values() if not re.search(r'is "(Any|Unknown)"', text)} == set()
    assert len(wrong) < 3, wrong


def literals(alias: object) -> set[str]:
    return set(typing.get_args(alias))


def test_the_options_of_a_manager_have_types():
    assert set(names.ManagerOptions.__annotations__) == set(_ALL)
    assert names.ManagerOptions.__required_keys__ == set()


def test_the_options_of_the_compiler_have_types():
    accepted = inspect.signature(kp.compile).parameters.keys() - {"source"}
    assert accepted == set(COMPILE_OPTIONS)
    assert set(names.CompileOptions.__annotations__) == accepted - {"entry"}
    of_modules = {"subgroup_size", "full_subgroups", "unchecked"}
    assert set(names.KernelOptions.__annotations__) == accepted | of_modules
    module = inspect.signature(kp.ShaderModule).parameters
    others = set(names.ResultOptions.__annotations__)
    assert others | (module.keys() & accepted) == accepted
    assert not others & module.keys()


def test_the_options_of_images_and_samplers_have_types():
    sampler = inspect.signature(kp.Sampler).parameters.keys()
    assert set(names.SamplerOptions.__annotations__) == sampler - {"manager", "filter", "address"}
    image = inspect.signature(kp.Image).parameters.keys() | {"tensor_type"}
    assert set(names.ImageOptions.__annotations__) < image
    explicit = {"format", *inspect.signature(kp.Manager.image).parameters} - {"self"}
    assert image - {"manager", "as_float"} == (explicit - {"options"}) | set(
        names.ImageOptions.__annotations__
    )


def test_names_are_those_that_run_time_accepts(mgr):
    assert literals(names.MemoryTypeName) == set(kp.MemoryTypes.__members__)
    assert literals(names.HostBufferSemanticsName) == set(kp.HostBufferSemantics.__members__)
    assert literals(names.Language) == set(LANGUAGES)
    assert literals(names.Target) == set(TARGETS)
    assert literals(names.CompilerName) == set(COMPILERS)
    formats = _native.image_formats()
    assert literals(names.FormatName) == {name for each in formats for name in (each["name"], each["vulkan"])}
    for value in literals(names.Optimization):
        kp.compile("void main() {}", optimize=value, cache=False)
    for value in literals(names.TextLanguage):
        kp.decompile(kp.compile("layout(local_size_x = 1) in; void main() {}"), value)
    for value in literals(names.WaitMode):
        assert kp.config_report(wait_mode=value).wait_mode.value == value
    for value in literals(names.FilterName):
        mgr.sampler(value)
    for value in literals(names.AddressMode):
        mgr.sampler("nearest", value)
    for value in literals(names.BorderColor):
        mgr.sampler("nearest", "clamp_to_border", border=value)
    for value in literals(names.CopyMode) - {"never"}:
        assert mgr.from_host(kp.aligned_zeros(4), copy=value).size() == 4


@pytest.mark.parametrize(
    ("alias", "wrong", "call"),
    [
        (names.Optimization, "speed", lambda m, v: kp.compile("void main() {}", optimize=v)),
        (names.WaitMode, "sleep", lambda m, v: kp.config_report(wait_mode=v)),
        (names.FilterName, "cubic", lambda m, v: m.sampler(v)),
        (names.AddressMode, "wrap", lambda m, v: m.sampler("nearest", v)),
        (names.BorderColor, "red", lambda m, v: m.sampler("nearest", "clamp_to_border", border=v)),
        (names.CopyMode, "maybe", lambda m, v: m.from_host(kp.aligned_zeros(4), copy=v)),
    ],
)
def test_errors_list_the_names_that_the_types_have(mgr, alias, wrong, call):
    with pytest.raises(kp.InvalidArgumentError) as caught:
        call(mgr, wrong)
    assert [name for name in literals(alias) if name not in str(caught.value)] == []


def test_every_name_of_the_module_is_public_and_resolves():
    assert sorted(names.__all__) == names.__all__
    for name in names.__all__:
        thing = getattr(names, name)
        if typing.is_typeddict(thing):
            assert typing.get_type_hints(thing)
            assert thing.__module__ == "kompute_py.typing"


INCOMPLETE = '''
"""A package."""


def known() -> int:
    """One."""
    return 1


unknown = [].copy()
'''


def test_incomplete_types_are_counted(tmp_path, monkeypatch, capsys):
    tool = runpy.run_path(str(ROOT / "tools/check_types.py"))
    package = tmp_path / "seeded"
    package.mkdir()
    package.joinpath("py.typed").touch()
    package.joinpath("__init__.py").write_text(INCOMPLETE, encoding="utf-8")
    report = tool["completeness"](package)
    monkeypatch.setitem(tool["main"].__globals__, "completeness", lambda given: report)
    for least, status in (("51", 1), ("49", 0)):
        monkeypatch.setattr(sys, "argv", ["check_types.py", str(package), "--least", least])
        assert tool["main"]() == status
        said = capsys.readouterr().out
        assert "seeded.unknown: " in said and "50.00 %" in said
