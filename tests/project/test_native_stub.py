"""`_native.pyi` declares the native module as it is: names, parameters, defaults, read-only attributes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kompute_py import _native

ROOT = Path(__file__).parents[2]
STUB = ROOT / "kompute_py/_native.pyi"
pytestmark = pytest.mark.own_driver


def test_stubtest_finds_no_difference(tmp_path):
    """Names, read-only attributes, base classes."""
    # The stub alone: its package and NumPy take two thirds of the time, and `./dev lint` checks the package.
    settings = tmp_path / "mypy.ini"
    settings.write_text(
        "[mypy]\n[mypy-kompute_py.*]\nfollow_imports=skip\n[mypy-numpy.*]\nfollow_imports=skip\n"
    )
    command = ["-m", "mypy.stubtest", "kompute_py._native", "--concise", "--mypy-config-file", str(settings)]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


Parameters = list[tuple[str, bool]]


def parameters(function: ast.FunctionDef) -> Parameters:
    """(name, whether there is a default) of each parameter but self."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [False] * (len(positional) - len(given.defaults)) + [True] * len(given.defaults)
    found = [(arg.arg, default) for arg, default in zip(positional, defaults, strict=True)]
    found += [(arg.arg, d is not None) for arg, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [each for each in found if each[0] != "self"]


def declared(body: list[ast.stmt], path: str = "") -> dict[str, Parameters]:
    """The parameters of the stub's functions and methods, by path."""
    found: dict[str, Parameters] = {}
    private: dict[str, list[ast.stmt]] = {}  # what the stub alone has as bases of several classes
    for node in body:
        if isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            members = [each for base in bases for each in private.get(base, ())] + node.body
            if node.name.startswith("_"):
                private[node.name] = [each for each in members if getattr(each, "name", "") != "__init__"]
            else:
                found |= declared(members, f"{path}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            if not any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
                found[path + node.name] = parameters(node)
    return found


def bound(path: str) -> Parameters:
    """The parameters of the module's function, from the signature that pybind11 writes into its docstring."""
    function: object = _native
    for name in path.split("."):
        function = getattr(function, name)
    signature = str(function.__doc__).splitlines()[0]
    # Classes that pybind11 met before their own binding have their C++ names there.
    signature = re.sub(r"^\w*", "def f", signature).replace("::", ".")
    parsed = ast.parse(f"{signature}: ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    return parameters(parsed)


def test_parameters_agree():
    # Stubtest cannot see them: functions of pybind11 have no __signature__.
    for path, stub in declared(ast.parse(STUB.read_text(encoding="utf-8")).body).items():
        module = bound(path)
        assert [default for _, default in stub] == [default for _, default in module], path
        for (name, _), (own, _) in zip(stub, module, strict=True):
            assert name == own or own.startswith("arg"), path  # pybind11's name for one without a name


def test_every_native_name_is_declared():
    names = {
        node.name
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
    }
    assert names == {name for name in dir(_native) if not name.startswith("_")}
