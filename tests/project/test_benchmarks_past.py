"""Benchmarks know their past: what --save keeps, and what --compare calls slower, on made-up figures."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import subprocess
import sys

import pytest

from benchmarks import __main__ as command
from benchmarks import machine, measure, past
from benchmarks.callgrind import __main__ as callgrind
from benchmarks.past import FLOOR, KEPT, MOST, PastError, Record, compare, find, kept, read, save
from benchmarks.paths import ROOT
from benchmarks.rows import REGISTRY
from benchmarks.table import Row

pytestmark = pytest.mark.own_driver

HERE = machine.kind()
MACHINE = {"python": "3.11.7", "numpy": "2.1.0", "system": "A System 1"}


def row(figure="eval", ours=1e-6, least=None, *, driver="null", spread=0.01, baseline=None, ratio=None):
    if baseline is not None and ratio is None:
        ratio = ours / baseline
    return Row(figure, driver, ours, least or 0.9 * ours, spread, ours * 1e6, baseline, ratio)


def record(*rows, commit="a" * 40, changed=False, day=1, **more):
    more.setdefault("machine", MACHINE)
    part = "instructions" if "counts" in more else "rows"
    date = f"2026-01-{day:02}T00:00:00+00:00"
    return Record(part, commit, "a subject", changed, date, **{"kind": HERE, "rows": rows, **more})


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    """The folder of records, which is empty."""
    monkeypatch.setattr(past, "folder", lambda: tmp_path / "past")
    return tmp_path / "past"


def verdict(before, after):
    """Of one row against another."""
    (move,) = compare([record(before)], [record(after)]).moves
    return move.verdict


# ------------------------------------------------------------------------------------------------- what moved


@pytest.mark.parametrize(
    ("factor", "said"), [(1.0, "level"), (1.04, "level"), (0.97, "level"), (1.08, "slower"), (0.9, "faster")]
)
def test_a_steady_figure_moves_beyond_five_per_cent(factor, said):
    assert FLOOR == 0.05
    assert verdict(row(ours=2e-6), row(ours=2e-6 * factor)) == said


def test_noise_is_the_width_of_both_runs_blocks():
    for spread, said in ((0.01, "slower"), (0.06, "slower"), (0.08, "level")):
        assert verdict(row(spread=spread), row(ours=1.2e-6, spread=spread)) == said
    # What takes far longer has moved, however much its blocks differ.
    assert verdict(row(spread=0.9), row(ours=(1.02 + MOST) * 1e-6, spread=0.9)) == "slower"


def test_noise_is_what_saved_runs_of_one_commit_differ_by():
    runs = [record(row(ours=value)) for value in (1.0e-6, 1.3e-6, 1.15e-6)]
    (move,) = compare(runs, [record(row(ours=1.35e-6))]).moves
    assert move.before == 1.15e-6 and move.noise == pytest.approx(0.3 / 1.15) and move.verdict == "level"
    (move,) = compare(runs[:1], [record(row(ours=1.35e-6))]).moves
    assert move.verdict == "slower"


def test_a_busy_machine_is_no_slower_commit():
    # The typical block rose, the fastest one did not.
    assert verdict(row(ours=1e-6, least=0.9e-6), row(ours=1.5e-6, least=0.91e-6)) == "level"
    # One lucky block, the rest as before.
    assert verdict(row(ours=1e-6, least=0.9e-6), row(ours=1.01e-6, least=0.3e-6)) == "level"


def test_a_slower_machine_slows_the_baseline_too():
    assert verdict(row(ours=1e-6, baseline=2e-6), row(ours=1.3e-6, baseline=2.6e-6)) == "level"
    assert verdict(row(ours=1e-6, baseline=2e-6), row(ours=1.3e-6, baseline=2e-6)) == "slower"
    # A baseline that became faster makes the ratio larger, and us no slower.
    assert verdict(row(ours=1e-6, baseline=2e-6), row(ours=1e-6, baseline=1e-6)) == "level"


def test_a_figure_without_a_baseline_is_held_against_the_yardstick():
    for yardstick, said in ((1e-3, "slower"), (1.3e-3, "level")):
        made = compare([record(row(), yardstick=1e-3)], [record(row(ours=1.3e-6), yardstick=yardstick)])
        assert made.moves[0].verdict == said
        assert any("fixed work" in note for note in made.notes) == (yardstick != 1e-3)


def test_measures_that_disagree_have_not_moved():
    (move,) = compare([record(row(ours=1e-6, least=0.5e-6))], [record(row(ours=2e-6, least=0.2e-6))]).moves
    assert move.factor == 1.0 and move.verdict == "level"


def test_instruction_counts_move_by_a_hundredth_and_twenty():
    def said(before, after):
        made = compare([record(counts={"eval": before})], [record(counts={"eval": after})])
        return made.moves[0].verdict

    assert said(10000.0, 10090.0) == "level" and said(10000.0, 10110.0) == "slower"
    assert said(10000.0, 9800.0) == "faster"
    assert said(430.0, 448.0) == "level" and said(430.0, 452.0) == "slower"


def test_the_least_of_several_counts_is_compared():
    runs = [record(counts={"eval": value}) for value in (2000.0, 2500.0)]
    assert compare(runs, [record(counts={"eval": 2400.0})]).moves[0].verdict == "slower"


def test_figures_that_only_one_side_has():
    made = compare([record(row("old"), row("both"))], [record(row("both"), row("new"))])
    assert (made.only_before, made.only_after) == (["old on null"], ["new on null"])
    assert [move.name for move in made.moves] == ["both"]


# ----------------------------------------------------------------------------------------- what is comparable


def test_another_driver_is_not_compared_and_the_others_are():
    before = record(row(), row(driver="lavapipe"), drivers={"lavapipe": "Mesa 1", "null": "null"})
    after = record(
        row(ours=9e-6), row(ours=9e-6, driver="lavapipe"), drivers={"lavapipe": "Mesa 2", "null": "null"}
    )
    made = compare([before], [after])
    assert [(move.driver, move.verdict) for move in made.moves] == [("null", "slower")]
    assert made.notes == ["lavapipe is not compared: it was Mesa 1, is Mesa 2"]


def test_another_python_is_not_compared():
    made = compare(
        [record(row(), machine=MACHINE)], [record(row(ours=9e-6), machine=MACHINE | {"python": "3.12.0"})]
    )
    assert made.moves == [] and made.notes == ["nothing is compared: Python was 3.11, is 3.12"]
    made = compare([record(row())], [record(row(ours=9e-6), machine=MACHINE | {"python": "3.11.9"})])
    assert made.moves[0].verdict == "slower"


def test_times_of_another_kind_of_machine_are_not_compared():
    made = compare([record(row(), kind="B")], [record(row(ours=9e-6))])
    assert made.moves == [] and "times are not compared" in made.notes
    made = compare([record(counts={"a": 100.0}, kind="B")], [record(counts={"a": 200.0})])
    assert made.of("slower")  # instructions are the same on both


def test_kind_tells_models_apart_that_a_hypervisor_names_alike(monkeypatch, tmp_path):
    text = "model name\t: Xeon\ncpu family: 6\nmodel\t: {}\nstepping: 1\ncache size: 64 KB\nflags\t: {}\n"
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    for model, flags, said in ((85, "sse hypervisor", "virtual machine, "), (143, "sse", "")):
        (tmp_path / "cpuinfo").write_text(text.format(model, flags))
        assert f", 6-{model}-1, 64 KB, {said}{machine.system()}, " in machine.kind()
        assert machine.kind().startswith("Xeon, ")
    (tmp_path / "cpuinfo").unlink()
    assert machine.kind()
    monkeypatch.undo()
    assert machine.kind() == HERE


# ---------------------------------------------------------------------------------------------------- records


def test_what_is_saved_is_read_again(records):
    first = record(row(), row(driver="lavapipe", baseline=2e-6), drivers={"null": "n"}, yardstick=1e-3)
    second = record(counts={"eval": 2197.5}, commit="b" * 40)
    third = record(row(ours=3e-6))  # in the same second as the first
    paths = [save(each) for each in (first, second, third)]
    assert [read(path) for path in paths] == [first, second, third]
    assert sorted(records.iterdir()) == sorted(paths)
    assert kept("rows") == [first, third] and kept("instructions") == [second]


def test_the_oldest_records_of_a_part_go():
    save(record(counts={"eval": 1.0}))
    for number in range(KEPT + 2):
        save(record(row(), commit=f"{number:040}", day=number // 40 + 1))
    assert [each.commit for each in kept("rows")] == [f"{n:040}" for n in range(2, KEPT + 2)]
    assert [each.counts for each in kept("instructions")] == [{"eval": 1.0}]


@pytest.fixture
def saved():
    """Records: commit a twice, then b, then b with changes; c on another kind of machine."""
    for made in (
        record(row(ours=1e-6), commit="a" * 40, day=1),
        record(row(ours=2e-6), commit="a" * 40, day=2),
        record(row(ours=3e-6), commit="b" * 40, day=3),
        record(row(ours=4e-6), commit="b" * 40, day=4, changed=True),
        record(row(ours=5e-6), commit="c" * 40, day=5, kind="another"),
    ):
        save(made)


@pytest.mark.parametrize(
    ("asked", "before", "times"),
    [
        ("a" * 12, "", [1e-6, 2e-6]),  # all runs of a commit
        ("b" * 12, "", [3e-6]),  # the commit itself, not what had changes
        ("", "", [4e-6]),  # the newest of this kind of machine
        ("", "b" * 40, [4e-6]),  # a commit's changes are not the commit
    ],
)  # fmt: skip
def test_a_commit_is_found(saved, asked, before, times):
    assert [each.rows[0].ours for each in find("rows", asked, before=before)] == times


def test_by_default_the_newest_other_commit_is_found(records):
    for day, commit in enumerate("ab", 1):
        save(record(row(), commit=commit * 40, day=day))
    assert find("rows", "", before="b" * 40)[0].commit == "a" * 40
    assert find("rows", "", before="c" * 40)[0].commit == "b" * 40
    min(records.iterdir()).unlink()  # b is the only one that there is
    assert find("rows", "", before="b" * 40)[0].commit == "b" * 40


def test_a_file_is_found_whatever_kind_it_is_of():
    path = save(record(row(), kind="another"))
    assert find("rows", str(path))[0].kind == "another"
    with pytest.raises(PastError, match="is no record of instructions"):
        find("instructions", str(path))


def test_what_is_not_there_is_said(saved, records, monkeypatch):
    with pytest.raises(
        PastError, match=r"no records of rows of 'dddd'; there are: bbbbbbbbbb with changes, bbb"
    ):
        find("rows", "dddd")
    monkeypatch.setattr(past, "folder", lambda: records / "none")
    with pytest.raises(PastError, match=r"for this kind of machine: .*bench rows --save"):
        find("rows", "")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": [], "part": "rows"}', '{"kind": 1', "\0"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "past.json").write_text(content)
    with pytest.raises(PastError, match=r"past\.json holds no record"):
        read(tmp_path / "past.json")


def test_commits_are_named_as_git_names_them():
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no repository")
    commit, subject, _ = past.commit_here()
    assert commit == done.stdout.strip() and subject
    save(record(row(), commit=commit))
    assert find("rows", "HEAD")[0].commit == commit


# --------------------------------------------------------------------------------------------------- commands


def options(**given):
    return argparse.Namespace(**({"save": False, "compare": None, "only": []} | given))


def compared(made, **given):
    return past.compare_and_save(options(**given), made, {"eval": "the eval", "other": "the other"})


@pytest.fixture
def of_this_machine():
    save(record(row(ours=1e-6), row("other", ours=1e-6)))


@pytest.mark.parametrize(
    ("ours", "status", "word"), [(1e-6, 0, "2 level"), (2e-6, 3, "slower"), (4e-7, 0, "faster")]
)
def test_the_exit_status_says_whether_something_is_slower(of_this_machine, capsys, ours, status, word):
    made = record(row(ours=ours), row("other", ours=1e-6), commit="b" * 40)
    assert compared(made, compare="") == status
    text = capsys.readouterr().out
    assert word in text and "Since aaaaaaaaaa (a subject)" in text
    if ours != 1e-6:
        assert "the eval" in text and "null" in text and "1.00 us" in text and "the other" not in text


@pytest.mark.parametrize(
    ("times", "status", "tries"), [([2e-6, 2e-6], 3, 2), ([2e-6, 1e-6], 0, 2), ([1e-6], 0, 1)]
)
def test_what_seems_slower_is_measured_again(of_this_machine, capsys, times, status, tries):
    asked = []

    def again(moves):
        asked.append([(move.name, move.driver) for move in moves])
        return [row(ours=times[len(asked) - 1])]

    made = record(row(ours=3e-6), row("other", ours=1e-6), commit="b" * 40, day=2)
    given = options(compare="", save=True)
    assert past.compare_and_save(given, made, {}, again=again) == status
    assert asked == [[("eval", "null")]] * tries
    shown = capsys.readouterr().out
    assert ("2.00 us" in shown) == (status == 3) and "3.00 us" not in shown  # the fastest is judged
    assert kept("rows")[-1] == made  # and the first is kept


def test_figures_that_were_not_asked_for_are_not_missed(of_this_machine, capsys):
    made = record(row(ours=1e-6), commit="b" * 40)
    assert compared(made, compare="") == 0
    assert "No longer measured: other on null" in capsys.readouterr().out
    assert compared(made, compare="", only=["eval"]) == 0
    assert "No longer" not in capsys.readouterr().out


def test_save_keeps_the_record(of_this_machine, capsys):
    made = record(row(), commit="b" * 40, day=2)
    assert compared(made, save=True) == 0
    assert len(kept("rows")) == 2 and kept("rows")[-1] == made
    assert capsys.readouterr().err.count("saved in") == 1


def test_a_run_is_compared_with_the_past_and_not_with_itself(of_this_machine):
    made = record(row(ours=3e-6), commit="b" * 40, day=2)
    assert compared(made, compare="", save=True) == 3


def test_quick_runs_are_not_kept(capsys):
    with pytest.raises(SystemExit):
        measure._parse(["--quick", "--save"])
    assert "leave out --quick" in capsys.readouterr().err


def test_nothing_is_measured_if_there_is_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(measure, "_measure", lambda *given: pytest.fail("measured"))
    monkeypatch.setattr(callgrind, "count_all", lambda *given: pytest.fail("counted"))
    assert measure.main(["--only", "eval", "--compare"]) == 2
    assert callgrind.main(["--only", "eval", "--compare"]) == 2
    assert capsys.readouterr().err.count("there are no records of") == 2


def test_a_run_of_the_command_compares():
    """From end to end: a record in which `record` took no time at all makes today's slower."""
    measured = row("record", ours=1e-12, spread=0.0, driver="null")
    here = dataclasses.replace(
        record(measured), machine={"python": sys.version.split()[0], "numpy": "?", "system": "?"}
    )
    path = save(here)
    words = ["--quick", "--only", "record", "--driver", "null", "--compare", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 3, done.stderr
    assert "1 slower, 0 faster, 0 level" in done.stdout and REGISTRY.figures["record"].title in done.stdout


def test_two_records_are_compared_without_measuring(capsys):
    paths = [str(save(record(row(ours=ours)))) for ours in (1e-6, 2e-6)]
    assert past.main(paths) == 3
    assert "eval of a recorded one-dispatch sequence" in capsys.readouterr().out
    assert past.main(paths[::-1]) == 0
    assert past.main([paths[0], "no-such-commit"]) == 2
    assert "there are no records of rows of 'no-such-commit'" in capsys.readouterr().err


def test_records_are_listed(of_this_machine, capsys):
    assert past.main([]) == 0
    assert "aaaaaaaaaa (a subject), 2026-01-01T00:00:00+00:00, 2 figures" in capsys.readouterr().out


def test_parts_are_named(capsys):
    assert command.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {part} " in text for part in command.PARTS)
    assert command.main(["rowz"]) == 2
    assert "'rowz'" in capsys.readouterr().err
    for page in ("dev", "CONTRIBUTING.md"):
        help_text = (ROOT / page).read_text()
        assert all(f"bench {part}" in help_text for part in command.PARTS), page
    for module in command.PARTS.values():
        assert callable(importlib.import_module(module).main)
