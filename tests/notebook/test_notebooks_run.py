"""The example notebooks run from top to bottom, and are kept without outputs."""

from __future__ import annotations

import os

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_both_are_there():
    assert [path.stem for path in NOTEBOOKS] == ["matrix_product", "reaction_diffusion"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.slow
@pytest.mark.own_driver
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)]),
    }
    environment |= {"KOMPUTE_PY_VALIDATION": "1", "IPYTHONDIR": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    client = NotebookClient(
        notebook, timeout=500, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env=environment)
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    # A message of the validation layer is logged, which a notebook shows on stderr.
    errors = [output.text for output in shown if output.output_type == "stream" and output.name == "stderr"]
    assert errors == []
    data = [output.data for output in shown if "data" in output]
    html = [each["text/html"] for each in data if "text/html" in each]
    assert any('<img src="data:image/png;base64,' in each and 'alt="' in each for each in html)
    if path.stem == "reaction_diffusion":
        assert any("text/vnd.mermaid" in each for each in data)
        assert any("application/vnd.jupyter.widget-view+json" in each for each in data)
