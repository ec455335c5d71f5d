"""The benchmarks run and print what they measured.

No time is judged here: the machine may be doing anything.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure, table, timing
from benchmarks.callgrind import __main__ as callgrind
from benchmarks.callgrind.__main__ import WORKS, count_all
from benchmarks.figures import NO_DRIVER, Figure, Measured, chosen_figures, figure
from benchmarks.pages import INSIDE, places
from benchmarks.parts import Stopped
from benchmarks.rows import FIGURES
from benchmarks.table import Row
from benchmarks.timing import Plan, Sample
from tests.conftest import DRIVER
from tests.support.sampling import sampled

pytestmark = pytest.mark.own_driver  # one pass of the suite is enough

ROOT = Path(__file__).resolve().parents[2]


def run_benchmarks(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run of three figures on the driver under test: (what it printed, its JSON)."""
    file = tmp_path_factory.mktemp("benchmarks") / "figures.json"
    names = ("eval", "record", "roundtrip")
    done = run_benchmarks(
        "--quick", "--driver", DRIVER, "--json", str(file),
        *(word for name in names for word in ("--only", name)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_quick_run_measures_each_figure_asked_for(quick):
    _, report = quick
    assert [(row["figure"], row["driver"]) for row in report["rows"]] == [
        ("eval", DRIVER),
        ("record", DRIVER),
        ("roundtrip", DRIVER),
    ]
    assert report["failures"] == []
    assert report["quick"] is True


def test_numbers_are_measured(quick):
    rows = {row["figure"]: row for row in quick[1]["rows"]}
    for row in rows.values():
        assert 0 < row["least"] <= row["ours"] < 60
        assert row["spread"] >= 0
    for name in ("eval", "roundtrip"):  # compared with C
        assert 0 < rows[name]["baseline"] < 60
        assert rows[name]["ratio"] > 0
    assert rows["record"]["baseline"] is None and rows["record"]["ratio"] is None
    assert rows["eval"]["value"] == pytest.approx(rows["eval"]["ours"] * 1e6)
    assert rows["roundtrip"]["value"] == rows["roundtrip"]["ratio"]


def test_report_says_when_and_where(quick):
    text, report = quick
    for part in ("date", "processor", "system", "python", "numpy", "kompute_py"):
        assert report["machine"][part] in text
    assert report["drivers"][DRIVER] in text
    assert "quick run" in text
    assert FIGURES["roundtrip"].title in text


def test_unknown_figure_names_those_there_are():
    done = run_benchmarks("--only", "evil")
    assert done.returncode == 2
    assert "'evil'" in done.stderr and "roundtrip" in done.stderr


def test_the_page_has_the_targets_of_every_figure():
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in places(INSIDE)["rows"].splitlines()]
    rows = [dict(zip(table.HEADER, row, strict=True)) for row in cells if len(row) == len(table.HEADER)][2:]
    wanted = [
        (
            figure.title if driver == figure.drivers[0] else "",
            "" if driver == NO_DRIVER else driver,
            table.target(figure, driver, figure.must),
            table.target(figure, driver, figure.aim),
        )
        for figure in FIGURES.values()
        for driver in figure.drivers
    ]
    assert [(row["figure"], row["driver"], row["must be"], row["aim"]) for row in rows] == wanted
    assert all(figure.judged_on in figure.drivers for figure in FIGURES.values())


# ----------------------------------------------------------------------------------------------------- timing


def test_sides_alternate_in_reversing_order(monkeypatch):
    monkeypatch.setattr(timing, "interruptions", lambda: 0)  # a real one would add a round
    calls = []

    def fake(name, seconds):
        def run(times):
            calls.append(name)
            return seconds * times

        return run

    ours, theirs = timing.alternate(
        Plan(blocks=4, block_seconds=1.0, limit=60.0), fake("a", 2.0), fake("b", 1.0), times=1
    )
    assert calls[2:] == ["a", "b", "b", "a", "a", "b", "b", "a"]  # after one round to warm up
    assert ours.values == (2.0,) * 4 and theirs.values == (1.0,) * 4
    assert timing.ratio(ours, theirs).typical == 2.0


def rounds(interrupted):
    """A round that gives its own number, and which rounds were asked for in reverse."""
    reversals = []

    def measure_round(reverse):
        reversals.append(reverse)
        number = len(reversals)
        return [float(number)], interrupted(number)

    return measure_round, reversals


def test_interrupted_rounds_are_measured_again():
    measure_round, reversals = rounds(lambda number: number % 2 == 0)
    (sample,) = timing.gather(Plan(5, 1.0, limit=60.0), measure_round)
    assert sample.values == (1.0, 3.0, 5.0, 7.0, 9.0) and not sample.disturbed
    assert reversals == [False, True] * 4 + [False]


def test_what_misses_its_target_is_measured_once_more(monkeypatch):
    """The better of two measurements stands; what meets its target is measured once."""
    figure = next(each for each in FIGURES.values() if each.must)
    plain = next(each for each in FIGURES.values() if not each.must)
    asked = []

    def row(of, value):
        return Row(of.name, of.judged_on or "null", 1e-6, 1e-6, 0.0, value)

    def again(report, driver, figures, quick):
        asked.append((driver, [each.name for each in figures]))
        report.rows.append(row(figure, second))

    monkeypatch.setattr(measure, "_measure", again)
    for first, second, kept in ((2.0, 0.5, 0.5), (2.0, 3.0, 2.0), (0.5, 9.0, 0.5)):
        rows = [row(plain, 1.0), row(figure, first * figure.must)]
        second *= figure.must
        found = measure._second_chance(rows, False)
        assert [each.value for each in found] == [1.0, kept * figure.must]
    assert asked == [(figure.judged_on, [figure.name])] * 2


def test_a_busy_machine_is_confessed():
    measure_round, _ = rounds(lambda number: True)
    (sample,) = timing.gather(Plan(5, 1.0, limit=60.0), measure_round)
    assert len(sample.values) == 15 and sample.disturbed
    assert timing.ratio(sample, sample).disturbed


def test_threads_of_the_driver_interrupt_no_round(monkeypatch):
    counter = iter(range(1000))
    monkeypatch.setattr(timing, "interruptions", lambda: next(counter))
    plan = Plan(4, 1.0, limit=60.0)
    (alone,) = timing.alternate(plan, lambda times: 1.0, times=1)
    assert alone.disturbed and len(alone.values) == 12
    (threaded,) = timing.alternate(plan, lambda times: 1.0, times=1, threaded=True)
    assert not threaded.disturbed and len(threaded.values) == 4


def test_pooled_samples_compare_lower_quartiles():
    ours = timing.pooled([Sample((2.0, 9.0)), Sample((3.0, 4.0, 9.0))])
    theirs = timing.pooled([Sample((1.0, 2.0, 8.0, 8.0, 8.0))])
    assert ours.typical == 3.0 and theirs.typical == 2.0
    assert timing.ratio(ours, theirs).values == (1.5,)
    assert (
        timing.ratio(Sample((4.0, 9.0, 9.0)), Sample((4.0, 3.0, 1.0))).typical == 3.0
    )  # not pooled: block by block


def test_rounds_end_at_the_limit():
    measure_round, _ = rounds(lambda number: False)
    (sample,) = timing.gather(Plan(1000, 1.0, limit=0.0), measure_round)
    assert len(sample.values) == 3


def test_busy_rows_are_marked():
    figure = made_figure()
    busy, calm = Sample((1.0, 1.0), disturbed=True), Sample((1.0, 1.0))
    marked = Row.of(figure, "lavapipe", Measured(busy, busy))
    plain = Row.of(figure, "lavapipe", Measured(calm, calm))
    assert marked.disturbed and "!0%" in table.table([figure], [marked])
    assert table.BUSY in table.legend([plain, marked])
    assert "!" not in table.table([figure], [plain]) and table.BUSY not in table.legend([plain])


def test_work_is_repeated_to_fill_a_block():
    per_call = 1e-3
    assert timing.repetitions(lambda times: per_call * times, 0.5) == pytest.approx(500, rel=0.05)
    assert timing.repetitions(lambda times: 10.0 * times, 0.5) == 1


def test_one_interruption_does_not_shorten_the_blocks():
    delays = iter([5.0])
    assert timing.repetitions(lambda times: 1e-3 * times + next(delays, 0.0), 0.5) == pytest.approx(
        500, rel=0.05
    )


def test_samples():
    sample = Sample((4.0, 1.0, 3.0, 2.0, 100.0))
    assert sample.typical == 3.0
    assert sample.least == 1.0
    assert sample.spread == pytest.approx((4.0 - 2.0) / 2 / 3.0)
    assert Sample((2.0,)).spread == 0.0


def test_what_is_made_is_kept_while_the_clock_runs():
    gone = []

    class Thing:
        def __del__(self):
            gone.append(len(made))

    made = []

    def make():
        made.append(1)
        return Thing()

    assert timing.making(make)(2) < 1.0
    assert gone == [2, 2]


# ------------------------------------------------------------------------------------------------------ table


def made_figure(unit="x", must=1.1, aim=1.02, baseline="C"):
    return Figure(
        "f", "the figure", unit, lambda bench: None, baseline=baseline, judged_on="lavapipe", must=must,
        aim=aim,
    )  # fmt: skip


def made_row(figure, driver, ours, baseline):
    mine, theirs = Sample((ours,) * 3), Sample((baseline,) * 3)
    return Row.of(figure, driver, Measured(mine, theirs))


@pytest.mark.parametrize(("ours", "word"), [(1.0, "aim"), (1.05, "yes"), (1.2, "NO")])
def test_targets(ours, word):
    figure = made_figure()
    assert table.met(figure, made_row(figure, "lavapipe", ours, 1.0)) == word
    assert table.met(figure, made_row(figure, "null", ours, 1.0)) == ""


def test_targets_in_microseconds():
    figure = made_figure(unit="us", must=4, aim=None)
    assert table.met(figure, made_row(figure, "lavapipe", 3.9e-6, 1.0)) == "yes"
    assert table.met(figure, made_row(figure, "lavapipe", 4.1e-6, 1.0)) == "NO"


def test_ratio_needs_a_baseline():
    with pytest.raises(ValueError, match="without a baseline"):
        Row.of(made_figure(), "lavapipe", Measured(Sample((1.0,))))


def test_text_and_markdown_hold_the_same_rows():
    figure = made_figure()
    rows = [made_row(figure, "lavapipe", 1.05e-3, 1e-3), made_row(figure, "null", 2e-6, 1e-6)]
    plain = table.table([figure], rows).splitlines()
    marked = table.table([figure], rows, as_markdown=True).splitlines()
    assert len(plain) == len(marked) == 4
    assert "the figure" in plain[2] and "1.05 x" in plain[2] and plain[2].endswith("yes")
    assert "the figure" not in plain[3] and "2.00 us" in plain[3]
    assert {line.count("|") for line in marked} == {len(table.HEADER) + 1}
    cells = [cell.strip() for cell in marked[2].strip("|").split("|")]
    assert cells[:3] == ["the figure", "lavapipe", "1.05 ms"] and cells[-3:] == [
        "≤ 1.10 x",
        "≤ 1.02 x",
        "yes",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.234, "1.23 s"), (0.0451, "45.1 ms"), (0.4, "400 ms"), (1.5e-6, "1.50 us"), (2.5e-7, "0.25 us"),
        (2.1e-8, "0.021 us"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert table.duration(seconds) == text


def test_figures_are_named_once_and_found_by_prefix(monkeypatch):
    monkeypatch.setattr("benchmarks.figures.FIGURES", {})
    figure("one", "One", "us")(lambda bench: None)
    figure("only", "Only", "us")(lambda bench: None)
    with pytest.raises(ValueError, match="two figures named 'one'"):
        figure("one", "Again", "us")(lambda bench: None)
    assert [each.name for each in chosen_figures(["on"])] == ["one", "only"]
    assert [each.name for each in chosen_figures([])] == ["one", "only"]
    with pytest.raises(KeyError, match="one, only"):
        chosen_figures(["two"])


# -------------------------------------------------------------------------------------------------- callgrind


def test_missing_valgrind_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Stopped, match="apt install valgrind"):
        next(count_all(["eval"]))


def test_unknown_work_is_named():
    with pytest.raises(Stopped, match="clear-record-eval"):
        next(count_all(["evil"]))


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_instructions_are_within_their_limits():
    names = sampled(["nothing", "kernel"], list(WORKS))
    counts = dict(count_all(names))
    assert 0 < counts["nothing"] < min(counted for name, counted in counts.items() if name != "nothing")
    beyond = {name: (counted, WORKS[name].most) for name, counted in counts.items()}
    if sys.version_info[:2] == (3, 11):  # the limits are for it
        assert not {name: each for name, each in beyond.items() if each[0] > each[1]}


@pytest.mark.parametrize(("most", "status"), [(99, 4), (100, 0)])
def test_more_instructions_than_the_limit_are_an_error(monkeypatch, capsys, most, status):
    monkeypatch.setitem(WORKS, "eval", WORKS["eval"]._replace(most=most))
    monkeypatch.setattr(callgrind, "_LIMITED", sys.version_info[:2])
    monkeypatch.setattr(callgrind, "count_all", lambda names, keep: [(name, 100.0) for name in names])
    assert callgrind.main(["--only", "eval"]) == status
    assert ("eval takes more than 99 instructions" in capsys.readouterr().err) == (status == 4)


def test_traffic_counts_what_a_call_moves():
    done = run_benchmarks("traffic", "--count=1048576", "--only=add", "--only=sum")
    assert done.returncode == 0, done.stderr
    rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:6] for line in done.stdout.splitlines()[2:]}
    assert rows["add"] == ["1", "1", "12.6", "12.6", "1.00"]
    assert rows["sum"] == ["2", "2", "4.2", "4.2", "1.00"]
