"""The rules that `./dev lint` applies to the package's imports: rooms look downwards, the modules of a room
form no cycle.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.own_driver  # no device is used


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package's sources, with the project's settings."""
    shutil.copytree(
        ROOT / "kompute_py",
        tmp_path / "kompute_py",
        ignore=shutil.ignore_patterns("__pycache__", "_native*.so", "shaders"),
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


# The copy is found by its folder: an editable installation's own finder would lead to the sources.
LINT = """
import sys
from importlib import machinery
sys.meta_path[:] = [machinery.BuiltinImporter, machinery.FrozenImporter, machinery.PathFinder]
from importlinter.cli import lint_imports_command
lint_imports_command(["--no-cache", "--no-logo"])
"""


def check(project: Path) -> tuple[int, str]:
    """Exit status and output of import-linter."""
    done = subprocess.run(
        [sys.executable, "-c", LINT], cwd=project, capture_output=True, text=True, timeout=500, check=False
    )
    return done.returncode, done.stdout + done.stderr


def add_import(project: Path, module: str, line: str) -> None:
    """Makes `line` the first import of a module."""
    file = project / "kompute_py" / module
    head = "from __future__ import annotations\n"
    text = file.read_text(encoding="utf-8")
    assert text.count(head) == 1
    file.write_text(text.replace(head, f"{head}\n{line}\n"), encoding="utf-8")


def test_the_package_keeps_the_rules(copied):
    status, output = check(copied)
    assert status == 0, output
    assert "3 kept, 0 broken" in output


@pytest.mark.parametrize(
    ("module", "line", "names"),
    [
        (
            "_base/text.py",
            "from .._device import names",
            ("kompute_py._base.text", "kompute_py._device.names"),
        ),
        (
            "_memory/tensor.py",
            "from .._manager.manager import Manager",
            ("kompute_py._memory.tensor", "kompute_py._manager.manager"),
        ),
        (
            "_shaders/constants.py",
            "from ..cli import app",
            ("kompute_py._shaders.constants", "kompute_py.cli.app"),
        ),
        (
            "_memory/tensor.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .._manager.manager import Manager",
            ("kompute_py._memory.tensor", "kompute_py._manager.manager"),
        ),
        ("_memory/sampler.py", "from . import image", (".sampler", ".image")),
        (
            "ops/_places/moving.py",
            "from .._orders import sorting",
            ("kompute_py.ops._places.moving", "kompute_py.ops._orders.sorting"),
        ),
    ],
)
def test_an_import_of_a_room_above_or_in_a_circle_fails(copied, module, line, names):
    add_import(copied, module, line)
    status, output = check(copied)
    assert status != 0
    assert all(name in output for name in names), output


def test_a_late_import_counts(copied):
    file = copied / "kompute_py/_base/text.py"
    file.write_text(
        file.read_text(encoding="utf-8")
        + "\n\ndef late():\n    from .._sync import fence\n\n    return fence\n",
        encoding="utf-8",
    )
    status, output = check(copied)
    assert status != 0
    assert "kompute_py._base.text" in output


@pytest.mark.parametrize("room", ["_new", "ops/_new"])
def test_a_new_room_must_be_given_its_place(copied, room):
    (copied / "kompute_py" / room).mkdir()
    (copied / "kompute_py" / room / "__init__.py").write_text("", encoding="utf-8")
    status, output = check(copied)
    assert status != 0
    assert "_new" in output
