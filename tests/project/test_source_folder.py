"""An import from the source folder, which has no compiled core, says what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.own_driver


@pytest.fixture
def sources(tmp_path):
    """A folder with the package's sources alone."""
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "kompute_py", tmp_path / "kompute_py", ignore=ignored)
    return tmp_path


def imported(folder):
    command = [sys.executable, "-S", "-c", "import sys; sys.path[:0] = sys.argv[1:]; import kompute_py"]
    places = [str(folder), *(path for path in sys.path if path.endswith("site-packages"))]
    done = subprocess.run([*command, *places], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_without_a_core(sources):
    said = imported(sources)
    assert said.startswith("ImportError: ") and "without its compiled core" in said
    assert "start Python in another folder" in said and "pip install -e ." in said


def test_with_the_core_of_another_python(sources):
    (sources / "kompute_py" / "_native.cpython-27-x86_64-linux-gnu.so").touch()
    assert "built for another Python" in imported(sources)


def test_a_core_that_does_not_load_says_why(sources):
    digits = f"{sys.version_info.major}{sys.version_info.minor}"
    (sources / "kompute_py" / f"_native.cpython-{digits}-x86_64-linux-gnu.so").touch()
    assert "file too short" in imported(sources)
