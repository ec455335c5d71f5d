"""Tables that the benchmarks print into pages: the places and the advice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import measure, pages
from benchmarks.advice import __main__ as advice
from benchmarks.advice.measuring import Measuring, Table
from benchmarks.advice.tables import TABLES
from benchmarks.callgrind import __main__ as callgrind
from benchmarks.pages import ADVICE, INSIDE, places, put
from benchmarks.peers import __main__ as peers
from benchmarks.peers.environments import PEERS
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
    assert set(places(ADVICE)) == {f"advice {name}" for name in TABLES}
    inside = places(INSIDE)
    assert set(inside) == {"rows", "instructions", "peers", "traffic"}
    for text in (*places(ADVICE).values(), *inside.values()):
        rows = table_in(text)
        assert len(rows) > 2 and len({len(row) for row in rows}) == 1
    assert table_in(inside["rows"])[0] == list(HEADER)
    shown = table_in(inside["peers"])
    assert shown[0] == ["", *PEERS]
    assert [row[0] for row in shown[2:]] == [task.title for task in peers.TASKS]
    assert "failed" not in inside["peers"]


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
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("names", [list(TABLES)[::2], list(TABLES)[1::2]], ids=["even", "odd"])
def test_every_advice_is_measured(names):
    """Each table checks that its kernels give right numbers."""
    command = [sys.executable, "-m", "benchmarks", "advice", "--quick", "--markdown", "--driver", DRIVER]
    done = subprocess.run(
        [*command, *(f"--only={name}" for name in names)],
        cwd=pages.ROOT, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = dict(part.split(":\n", 1) for part in done.stdout.split("\n\n")[1:])
    assert set(printed) == set(names)
    shown = {name.removeprefix("advice "): text for name, text in places(ADVICE).items()}
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
