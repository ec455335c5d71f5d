"""The page that lists all functions of `kp.ops` has each of them, whole."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import kompute_py as kp
from benchmarks.library.calls import CALLS
from kompute_py import ops
from tests.conftest import ROOT

pytestmark = pytest.mark.own_driver
sys.path.append(str(ROOT / "docs" / "_ext"))

import tables  # noqa: E402

NAMES = [
    name for module, names in ops._MODULES.items() if not module.startswith(".._builders") for name in names
]


@pytest.mark.capability("", "a library by NumPy's names", "kp.ops", "reference/library")
def test_every_function_is_public_and_in_an_area():
    assert set(NAMES) < set(ops.__all__) and len(NAMES) == len(set(NAMES))
    modules = [module for module in ops._MODULES if not module.startswith(".._builders")]
    assert {module.rpartition(".")[2] for module in modules} == set(tables.AREAS)


@pytest.mark.parametrize("module", [each for each in ops._MODULES if not each.startswith(".._builders")])
def test_every_function_of_an_area_is_listed(module):
    area = import_module(module, "kompute_py.ops")
    made = {each.__name__ for name, each in vars(area).items() if name[0] != "_" and tables.facts_of(each)}
    table = {*area._TABLE, "astype", "clip", "round"} if module == "._values.elements" else set()
    assert made | table <= set(NAMES) and set(ops._MODULES[module]) <= made | table
    assert ops._MODULES[module] == sorted(ops._MODULES[module])


def test_functions_say_their_dtypes_axes_and_error():
    for name in NAMES:
        assert set(tables.facts_of(getattr(kp.ops, name))) == set(tables.FACTS), name
    assert set(NAMES) <= set(CALLS)  # of benchmarks/library/calls.py


def test_only_what_looks_at_contents_or_gives_views_cannot_be_recorded():
    assert {name for name in NAMES if not hasattr(getattr(kp.ops, name), "bind")} == {
        *("argwhere", "bincount", "compress", "extract", "flatnonzero", "histogram", "nonzero", "unique"),
        *("intersect1d", "setdiff1d", "union1d"),
        *("array_split", "hsplit", "sliding_window_view", "split", "vsplit"),
    }


def test_page_lists_them_all():
    page = tables.library()
    for name in NAMES:
        assert f"{{py:obj}}`~kompute_py.ops.{name}`" in page


def test_benchmark_measures_beside_numpy():
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "library", "--quick", "--only", "sum", "--only", "argmax"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "sum " in run.stdout and "argmax " in run.stdout and run.stdout.count(", NumPy ") == 2, run.stdout
