"""JupyterLab's part: what JupyterLab needs to find it. `./dev shots --check` tests it in a browser."""

from __future__ import annotations

import json
import re

import pytest

from kompute_py.notebook.magics import KomputeMagics
from tests.conftest import ROOT

FOLDER = ROOT / "jupyter" / "labextensions" / "kompute-py"

pytestmark = pytest.mark.own_driver


def test_jupyterlab_finds_the_extension():
    package = json.loads((FOLDER / "package.json").read_text())
    # JupyterLab looks for the folder and the container by the package's name.
    assert package["name"] == FOLDER.name
    built = package["jupyterlab"]["_build"]
    code = (FOLDER / built["load"]).read_text()
    assert f'window._JUPYTERLAB["{package["name"]}"] =' in code
    assert built["extension"] == "./extension" and package["jupyterlab"]["extension"] is True
    assert 'DESTINATION "${SKBUILD_DATA_DIR}/share/jupyter"' in (ROOT / "CMakeLists.txt").read_text()


def test_every_magic_of_cells_has_colours():
    code = (FOLDER / "static" / "cells.js").read_text()
    (languages,) = re.findall(r"const MAGIC = /\^%%\(([a-z|]+)\)", code)
    assert set(languages.split("|")) == set(KomputeMagics.magics["cell"])
