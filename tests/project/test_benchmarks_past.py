"""Counts of earlier commits: what --save keeps, and what --compare says takes more."""

from __future__ import annotations

import argparse
import importlib
import subprocess

import pytest

from benchmarks import __main__ as command
from benchmarks import past
from benchmarks.callgrind import __main__ as callgrind
from benchmarks.past import KEPT, PastError, Record, compare, find, read, save
from benchmarks.paths import ROOT

pytestmark = pytest.mark.own_driver


def record(counts=None, *, commit="a" * 40, changed=False, day=1, python="3.11.7"):
    date = f"2026-01-{day:02}T00:00:00.{day:06}+00:00"
    return Record(commit, "a subject", changed, date, python, "2.1.0", counts or {"eval": 1000.0})


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    """The folder of records, which is empty."""
    monkeypatch.setattr(past, "folder", lambda: tmp_path / "past")
    return tmp_path / "past"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (10000.0, 10090.0, "level"), (10000.0, 10110.0, "more"), (10000.0, 9800.0, "fewer"),
        (430.0, 448.0, "level"), (430.0, 452.0, "more"),
    ],
)  # fmt: skip
def test_counts_move_by_a_hundredth_and_twenty(before, after, said):
    (move,) = compare([record({"eval": before})], record({"eval": after}))
    assert move.verdict == said


def test_the_least_of_several_records_is_compared():
    runs = [record({"eval": value}) for value in (2000.0, 2500.0)]
    assert compare(runs, record({"eval": 2400.0}))[0].verdict == "more"


def test_what_only_one_side_counted_is_not_compared():
    before, after = record({"old": 1.0, "both": 1.0}), record({"both": 1.0, "new": 1.0})
    moves = compare([before], after)
    assert [move.name for move in moves] == ["both"]
    assert "New: new" in past.text([before], after, moves, {})


def test_another_python_is_not_compared():
    with pytest.raises(PastError, match=r"Python was 3\.11, is 3\.12"):
        compare([record()], record(python="3.12.0"))
    assert compare([record()], record(python="3.11.9"))


def test_what_is_saved_is_read_again(records):
    made = [record(day=1), record({"eval": 2197.5}, commit="b" * 40, day=2)]
    paths = [save(each) for each in made]
    assert [read(path) for path in paths] == made and sorted(records.iterdir()) == paths


def test_the_oldest_records_go(records):
    for number in range(KEPT + 2):
        save(record(commit=f"{number:040}", day=number + 1))
    assert len(list(records.iterdir())) == KEPT
    assert read(min(records.iterdir())).commit == f"{2:040}"


@pytest.fixture
def saved():
    """Records: commit a twice, then b, then b with changes."""
    for made in (
        record({"eval": 1.0}, day=1),
        record({"eval": 2.0}, day=2),
        record({"eval": 3.0}, commit="b" * 40, day=3),
        record({"eval": 4.0}, commit="b" * 40, day=4, changed=True),
    ):
        save(made)


@pytest.mark.parametrize(
    ("asked", "before", "counts"),
    [
        ("a" * 12, "", [1.0, 2.0]),  # all runs of a commit
        ("b" * 12, "", [3.0]),  # the commit itself, not what had changes
        ("", "", [4.0]),  # the newest
        ("", "b" * 40, [4.0]),  # a commit's changes are not the commit
    ],
)
def test_a_commit_is_found(saved, asked, before, counts):
    assert [each.counts["eval"] for each in find(asked, before=before)] == counts


def test_by_default_the_newest_other_commit_is_found(records):
    for day, commit in enumerate("ab", 1):
        save(record(commit=commit * 40, day=day))
    assert find("", before="b" * 40)[0].commit == "a" * 40
    assert find("", before="c" * 40)[0].commit == "b" * 40
    min(records.iterdir()).unlink()  # b is the only one that there is
    assert find("", before="b" * 40)[0].commit == "b" * 40


def test_what_is_not_there_is_said(saved, records, monkeypatch):
    with pytest.raises(PastError, match=r"no records of 'dddd'; there are: bbbbbbbbbb with changes, bbb"):
        find("dddd")
    monkeypatch.setattr(past, "folder", lambda: records / "none")
    with pytest.raises(PastError, match="bench instructions --save"):
        find("")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"commit": 1', "\0"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "past.json").write_text(content)
    with pytest.raises(PastError, match=r"past\.json holds no record"):
        find(str(tmp_path / "past.json"))


def test_commits_are_named_as_git_names_them():
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no repository")
    commit, subject, _ = past.commit_here()
    assert commit == done.stdout.strip() and subject
    save(record(commit=commit))
    assert find("HEAD")[0].commit == commit


@pytest.mark.parametrize(
    ("count", "status", "word"), [(1000.0, 0, "1 level"), (2000.0, 3, "more"), (400.0, 0, "fewer")]
)
def test_the_exit_status_says_whether_something_takes_more(monkeypatch, capsys, count, status, word):
    monkeypatch.setattr(past, "commit_here", lambda: ("b" * 40, "another", False))
    save(Record.of_now({"eval": 1000.0}))
    options = argparse.Namespace(save=True, compare="b" * 40)
    assert past.compare_and_save(options, {"eval": count}, {"eval": "the eval"}) == status
    printed = capsys.readouterr()
    assert word in printed.out and "Since bbbbbbbbbb (another)" in printed.out
    assert ("the eval" in printed.out) == (count != 1000.0) and printed.err.count("saved in") == 1


def test_nothing_is_counted_if_there_is_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(callgrind, "count_all", lambda *given: pytest.fail("counted"))
    assert callgrind.main(["--only", "eval", "--compare"]) == 2
    assert "there are no records" in capsys.readouterr().err


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
