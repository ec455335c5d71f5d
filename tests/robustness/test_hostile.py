"""A sample of ``./dev hostile``: processes that share all files give right numbers, end, and leave nothing."""

from __future__ import annotations

import sys

import pytest

from tests.hostile.running import crowd, full_disk, hostile, hostile_cases, scratch

pytestmark = [
    pytest.mark.own_driver,
    pytest.mark.skipif(sys.platform == "win32", reason="the files are those of POSIX"),
]
_PATIENCE = 120.0


def test_processes_that_are_killed_harm_no_others():
    with scratch() as folder:
        report = crowd(folder, 3, 4, seed=1, patience=_PATIENCE, full=False)
    assert report.faults == []
    assert report.killed > 0


def test_a_full_disk_harms_no_numbers():
    with full_disk() as folder:
        if folder is None:
            pytest.skip("this user cannot mount a file system")
        report = crowd(folder, 2, 4, seed=2, patience=_PATIENCE, full=True)
    assert report.faults == []


@pytest.mark.parametrize("case", hostile_cases(3, 4), ids=str)
def test_hostile_files_are_ignored(case):
    assert hostile(case, _PATIENCE).faults == []
