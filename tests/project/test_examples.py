"""Every example runs, is right, and notices a wrong result."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import kompute_py as kp

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
# Files go to the test's folder; some are made smaller than a person would want them.
ARGUMENTS = {
    "photo_pipeline": ["--out", "{folder}/toned.png"],
    "mandelbrot": ["--out", "{folder}/mandelbrot.png", "--width", "320", "--height", "200"],
    "matrix_multiplication": ["--size", "100"],
}


@pytest.fixture(autouse=True)
def validated(mgr, needs, monkeypatch):
    """A driver that runs shaders, and validation that raises in the examples' own Managers."""
    needs(mgr, "dispatch")
    monkeypatch.setenv("KOMPUTE_PY_VALIDATION", "1")
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "1")


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(name, folder):
    return [text.format(folder=folder) for text in ARGUMENTS.get(name, [])]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    status = load(name).main(arguments(name, tmp_path))
    text = capsys.readouterr().out
    assert status == 0, text
    assert "WRONG" not in text and len(text.splitlines()) >= 2
    written = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert written == [Path(option).name for option in arguments(name, tmp_path) if option.endswith(".png")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_notices_a_wrong_result(name, tmp_path, monkeypatch, capsys):
    example = load(name)
    monkeypatch.chdir(tmp_path)
    # Nothing is computed any more: all dispatches are left out.
    monkeypatch.setattr(
        kp, "OpAlgoDispatch", lambda algorithm, *_, **__: kp.OpFill([algorithm.get_tensors()[-1]], 0)
    )
    assert example.main(arguments(name, tmp_path)) != 0
    assert "WRONG" in capsys.readouterr().out
