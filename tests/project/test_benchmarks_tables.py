"""Tables that the benchmarks print into pages: the places, the advice and the shaders."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

import kompute_py as kp
from benchmarks import measure, pages
from benchmarks.advice import __main__ as advice
from benchmarks.advice.measuring import Measuring, Table
from benchmarks.advice.tables import TABLES
from benchmarks.callgrind import __main__ as callgrind
from benchmarks.pages import GUIDE, INSIDE, places, put
from benchmarks.parts import DRIVERS
from benchmarks.peers import __main__ as peers
from benchmarks.peers.programs import PROGRAMS, Program
from benchmarks.table import HEADER
from tests.conftest import DRIVER

pytestmark = pytest.mark.own_driver


# ----------------------------------------------------------------------------------------------------- places

PAGE = """Text.

<!-- printed by ./dev bench one -->
old
<!-- end -->
<!-- printed by ./dev bench two three -->
<!-- end -->
More.
"""


def test_content_goes_into_its_place(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    put(page, "one", "| new |\n| --- |\n\n")
    put(page, "two three", "three")
    assert places(page) == {"one": "| new |\n| --- |\n", "two three": "three\n"}
    assert page.read_text() == PAGE.replace("old", "| new |\n| --- |").replace(
        "three -->", "three -->\nthree"
    )
    for wrong in ("two", "four"):
        with pytest.raises(ValueError, match=f"0 places for '{wrong}'"):
            put(page, wrong, "")
    page.write_text(PAGE * 2)
    with pytest.raises(ValueError, match="2 places"):
        put(page, "one", "")


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def table_in(text):
    """The cells of the one table."""
    return [cells(line) for line in text.splitlines() if line.startswith("|")]


def test_the_pages_have_a_place_for_each_table_and_it_is_filled():
    assert set(places(GUIDE)) == {f"advice {name}" for name in TABLES}
    inside = places(INSIDE)
    assert set(inside) == {"rows", "instructions", "peers", "operations", "shaders", "traffic"}
    for text in (*places(GUIDE).values(), *inside.values()):
        rows = table_in(text)
        assert len(rows) > 2 and len({len(row) for row in rows}) == 1
    assert table_in(inside["rows"])[0] == list(HEADER)
    for name, part in peers.PARTS.items():
        shown = table_in(inside[name])
        assert shown[0] == ["", *part.libraries], name
        assert [row[0] for row in shown[2:]] == [task.title for task in part.tasks], name
    assert "failed" not in inside["peers"] + inside["operations"] + inside["shaders"]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (measure, ["--quick"]), (measure, ["--only", "eval"]), (measure, ["--driver", "null"]),
        (callgrind, ["--only", "eval"]), (peers, ["--quick"]), (peers, ["--peer", "numpy"]),
        (peers, ["--only", "first"]), (advice, ["--quick"]), (advice, ["--driver", "swiftshader"]),
    ],
    ids=lambda what: getattr(what, "__name__", " ".join(what) if isinstance(what, list) else ""),
)  # fmt: skip
def test_a_part_of_the_figures_is_not_written_into_a_page(part, words, monkeypatch):
    monkeypatch.setattr(pages.Path, "write_text", lambda *given: pytest.fail("written"))
    with pytest.raises(SystemExit):
        part.main([*words, "--write"])


# ----------------------------------------------------------------------------------------------------- advice


@pytest.mark.slow
def test_every_advice_is_measured():
    """Each table checks that its kernels give right numbers."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "advice", "--quick", "--markdown", "--driver", DRIVER],
        cwd=pages.ROOT, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = dict(part.split(":\n", 1) for part in done.stdout.split("\n\n")[1:])
    assert set(printed) == set(TABLES)
    shown = {name.removeprefix("advice "): text for name, text in places(GUIDE).items()}
    for name, text in printed.items():  # the page has the rows that the command prints
        rows, wanted = ([row[0].strip("-") for row in table_in(each)] for each in (text, shown[name]))
        assert rows == wanted, name
        assert table_in(text)[0] == table_in(shown[name])[0], name


def test_unknown_advice_names_those_there_are(capsys):
    assert advice.main(["--only", "luck"]) == 2
    assert "'luck'" in capsys.readouterr().err


def test_the_least_of_all_devices_counts(monkeypatch):
    measuring = Measuring()
    times = iter([[3.0, 9.0], [2.0, 8.0], [4.0, 7.0], [5.0, 8.0]])
    made = []

    def measure_table(given):
        made.append(1)
        monkeypatch.setattr("benchmarks.advice.measuring._repetitions", lambda way: 1)
        taken = next(times)
        monkeypatch.setattr("benchmarks.advice.measuring._used", lambda way, count: taken[way()])
        return given.table("way", {"a": lambda: 0, "b": lambda: 1})

    assert measuring.repeated(measure_table).rows == (("a", "2.00 s"), ("b", "7.00 s"))
    assert len(made) == 4
    monkeypatch.undo()
    # The next table begins anew.
    assert measuring.repeated(lambda given: given.table("way", {"c": lambda: None})).rows[0][0] == "c"


def test_tables_as_text_and_markdown():
    table = Table(("way", "time"), (("first", "1 ms"), ("the second", "10 ms")))
    assert table.text().splitlines() == ["way          time", "first        1 ms", "the second  10 ms"]
    assert table_in(table.text(as_markdown=True))[1:3] == [["----------", "----:"], ["first", "1 ms"]]


# ------------------------------------------------------------------------------------ operations and shaders

comparable = pytest.mark.skipif(DRIVER not in DRIVERS, reason=f"{DRIVER} is no driver for this comparison")


@comparable
def test_operations_are_measured_beside_numpy(capsys):
    """serve.py checks the results before it takes times."""
    words = ["--quick", "--peer", "numpy", "--only", "rfft", "--driver", DRIVER]
    assert peers.main(words, "operations") == 0
    (title,) = (task.title for task in peers.PARTS["operations"].tasks if task.name == "rfft")
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(title))
    assert row.count("(") == 1 and row.endswith("x)")


@pytest.mark.parametrize("name", PROGRAMS)
def test_shaders_give_the_results_that_libraries_are_judged_by(name, mgr, needs, tmp_path):
    needs(mgr, "dispatch")
    program = PROGRAMS[name]
    buffers, results = program.make()
    tensors = [mgr.tensor_t(buffer) for buffer in buffers]
    sequence = mgr.sequence().record(kp.OpSyncDevice(tensors))
    for each in program.passes:
        used = [tensors[number] for number in each.buffers]
        sequence.record(kp.OpAlgoDispatch(mgr.algorithm(used, kp.compile(each.source), (*each.groups, 1))))
    for _ in range(2):
        sequence.eval()
    for number, wanted in results.items():
        np.testing.assert_allclose(tensors[number].read(), wanted, rtol=1e-4)
    program.write(tmp_path)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert [each["buffers"] for each in plan["passes"]] == [list(each.buffers) for each in program.passes]
    for number, wanted in plan["results"].items():
        np.testing.assert_array_equal(np.load(tmp_path / wanted), results[int(number)])


@pytest.fixture
def only_ours(monkeypatch):
    ours = dataclasses.replace(peers.PARTS["shaders"], libraries=("kompute_py",))
    monkeypatch.setitem(peers.PARTS, "shaders", ours)


@comparable
def test_shaders_run_through_our_library(capsys, only_ours):
    words = ["--quick", "--only", "scan", "--only", "histogram", "--driver", DRIVER]
    assert peers.main(words, "shaders") == 0
    text = capsys.readouterr().out
    assert "kompute_py 0" in text and PROGRAMS["scan"].title in text and "Not measured" not in text


@comparable
def test_wrong_numbers_of_a_shader_are_no_figure(capsys, only_ours, monkeypatch):
    whole = Program.write

    def spoiled(program, folder):
        whole(program, folder)
        np.save(folder / "result1.npy", np.load(folder / "result1.npy") + 1)

    monkeypatch.setattr(Program, "write", spoiled)
    assert peers.main(["--quick", "--only", "histogram", "--driver", DRIVER], "shaders") == 1
    text = capsys.readouterr().out
    assert "the library gives wrong numbers" in text and "failed" in text
