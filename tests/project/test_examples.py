"""Every example runs, is right, and notices a wrong result."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import kompute_py as kp
from kompute_py_gallery.__main__ import NAMES
from kompute_py_gallery.__main__ import main as run_gallery

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

from count_code import code_lines  # noqa: E402

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
GALLERY = [ROOT / "kompute_py_gallery" / f"{name}.py" for name in NAMES]
PAGES = ROOT / "docs" / "gallery"
# Smaller than a person would want them.
SMALL = {
    "denoise": ["--size", "64"], "digits_network": ["--size", "256"],
    "digits_operations": ["--size", "640", "--epochs", "25"], "heat": ["--size", "40"],
    "histogram_equalisation": ["--size", "120"], "kmeans": ["--size", "48"], "life": ["--size", "64"],
    "logistic_regression": ["--size", "150"], "mandelbrot": ["--size", "60"],
    "matrix_products": ["--size", "52"], "monte_carlo": ["--size", "2000", "--rounds", "16"],
    "nbody": ["--size", "48"], "particle_grid": ["--size", "400", "--steps", "60"],
    "path_tracer": ["--size", "40", "--passes", "1"], "principal_axes": ["--size", "120"],
    "raymarch": ["--size", "80"], "reaction_diffusion": ["--size", "32", "--steps", "400"],
    "separable_filters": ["--size", "60"],
}  # fmt: skip
# A small mistake in each program's shaders. The program must find it.
MISTAKES = {
    "denoise": ("width - x - px", "width - x + px"),
    "digits_network": ("c[i] > 0.0 ? sum : 0.0", "sum"),
    "digits_operations": ("where(hidden > 0, error, 0)", "where(hidden > 0, -error, 0)"),
    "heat": ("at(x, y - 1)", "at(x, y)"),
    "histogram_equalisation": ("local >= step ?", "local > step ?"),
    "kmeans": ("k = 1; k < COLORS", "k = 1; k < COLORS - 1"),
    "life": ("neighbours == 2 && value == 255", "neighbours == 2"),
    "logistic_regression": ("half_size = 32", "half_size = 16"),
    "mandelbrot": ("2.0 * z.x * z.y", "1.99 * z.x * z.y"),
    "matrix_products": ("k < TILE; ++k", "k < TILE - 1; ++k"),
    "monte_carlo": ("VOLATILITY**2 / 2) * step", "VOLATILITY**2) * step"),
    "nbody": ("nearness * nearness * nearness", "nearness * nearness"),
    "particle_grid": ("1.0 - d / radius", "1.0 - 0.9 * d / radius"),
    "path_tracer": ("b - sqrt(h) > 0.001 ? b - sqrt(h)", "b - sqrt(h) > 0.001 ? b - 0.9 * sqrt(h)"),
    "principal_axes": ("a / length", "0.9 * a / length"),
    "raymarch": ("- 0.23;", "- 0.2;"),
    "reaction_diffusion": ("here.x * here.y * here.y", "here.x * here.x * here.y"),
    "separable_filters": ("i <= radius", "i < radius"),
}


@pytest.fixture(autouse=True)
def validated(mgr, monkeypatch, tmp_path):
    """A driver that runs shaders, and validation that raises in the examples' own Managers."""
    monkeypatch.setenv("KOMPUTE_PY_VALIDATION", "1")
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "1")
    monkeypatch.chdir(tmp_path)


def load(path, edit=None):
    if edit is None:
        spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.main
    source, (right, wrong) = path.read_text(), edit
    assert source.count(right) >= 1
    names = {"__name__": f"example_{path.stem}", "__doc__": source.split('"""')[1]}
    exec(compile(source.replace(right, wrong, 1), str(path), "exec"), names)
    return names["main"]


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@named(SCRIPTS)
def test_example(path, tmp_path, capsys):
    status = load(path)([])
    text = capsys.readouterr().out
    assert status == 0, text
    assert "WRONG" not in text and len(text.splitlines()) >= 2
    assert not list(tmp_path.iterdir())


@named(SCRIPTS)
def test_example_notices_a_wrong_result(path, monkeypatch, capsys):
    main = load(path)
    # Nothing is computed any more: all dispatches are left out.
    monkeypatch.setattr(
        kp, "OpAlgoDispatch", lambda algorithm, *_, **__: kp.OpFill([algorithm.get_tensors()[-1]], 0)
    )
    assert main([]) != 0
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.sampled(every=2)
@named(GALLERY)
def test_program_of_the_gallery(path, tmp_path, capsys):
    status = load(path)([*SMALL[path.stem], "--out", "folder/picture.png"])
    text = capsys.readouterr().out
    assert status == 0, text
    assert "right" in text and "WRONG" not in text
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["picture.png"]
    with Image.open("folder/picture.png") as picture:
        assert picture.width >= 48 and np.asarray(picture.convert("L")).std() > 5


@pytest.mark.sampled(every=3)
@pytest.mark.own_driver  # the checks are on the host: one driver is enough
@named(GALLERY)
def test_program_of_the_gallery_notices_a_mistake(path, capsys):
    assert load(path, MISTAKES[path.stem])([*SMALL[path.stem], "--out", "picture.png"]) != 0
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.own_driver
@named(GALLERY)
def test_program_of_the_gallery_is_short_and_has_a_page(path):
    assert len(code_lines(path.read_text())) < 100
    page = (PAGES / f"{path.stem}.md").read_text()
    assert f"../../kompute_py_gallery/{path.name}" in page and f"{path.stem}.webp" in page
    assert re.search(rf"\b{path.stem}\b", (PAGES / "index.md").read_text())
    with Image.open(PAGES / f"{path.stem}.webp") as picture:
        assert picture.width >= 400 and 1.4 < picture.width / picture.height < 1.6


def test_the_gallery_runs_by_name(tmp_path):
    """As from a wheel: the folder is not the sources'."""
    command = [sys.executable, "-m", "kompute_py_gallery", "heat", "--size", "40", "--out", "heat.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "right" in done.stdout, done.stdout + done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["heat.png"]


@pytest.mark.own_driver
def test_the_gallery_names_its_programs_and_what_they_need(capsys, monkeypatch):
    assert run_gallery([]) == 0
    assert ", ".join(sorted(SMALL)) in capsys.readouterr().out
    assert run_gallery(["heta"]) == 2
    assert "'heta'" in (said := capsys.readouterr().err) and "heat" in said
    monkeypatch.setitem(sys.modules, "scipy.fft", None)
    monkeypatch.delitem(sys.modules, "kompute_py_gallery.heat", raising=False)
    monkeypatch.setattr(sys, "argv", ["python"])
    assert run_gallery(["heat"]) == 1
    assert 'pip install "kompute-py[examples]"' in capsys.readouterr().err


@pytest.mark.own_driver
def test_lines_beside_the_peers(capsys, monkeypatch):
    """The table of the page is what the command counts now."""
    from benchmarks.gallery_peers.__main__ import main

    monkeypatch.setattr(sys, "argv", ["gallery_peers", "--count", "--markdown"])
    assert main() == 0
    assert capsys.readouterr().out in (PAGES / "peers.md").read_text()


@pytest.mark.own_driver
def test_extra_covers_what_the_examples_import():
    names = {"PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn"}
    imported = set()
    for path in [*SCRIPTS, *GALLERY]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.partition(".")[0])
    needed = {names.get(name, name) for name in imported - sys.stdlib_module_names - {"kompute_py"}}
    brought, wanted = set(), ["kompute_py[examples]"]
    while wanted:
        name, extras = re.fullmatch(r"([\w-]+)(?:\[([\w,-]+)\])?.*", wanted.pop()).groups()
        if name.replace("-", "_") != "kompute_py":
            brought.add(name)
            continue
        for line in importlib.metadata.requires("kompute_py"):
            requirement, _, marker = (part.strip() for part in line.partition(";"))
            extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
            if extra is None or extra[1] in (extras or "").split(","):
                wanted.append(requirement)
    assert needed <= brought, needed - brought


@pytest.mark.own_driver
def test_pictures_of_the_gallery_are_small():
    assert sum(path.stat().st_size for path in PAGES.iterdir()) < 600_000
