"""What the suite takes samples of, and what the drivers share."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import sampling, sanitized
from tests.support.sampling import groups, is_mine, sampled, spread

pytestmark = pytest.mark.own_driver

DTYPES, SHAPES, FLAGS = 12, 5, 2


def case(dtype, shape, flag, name="float32"):
    """A test's case as pytest describes it: two names in one mark share an index."""
    marks = [pytest.mark.parametrize(names, []).mark for names in ("dtype", ("shape", "axis"), "flag")]
    indices = {"dtype": dtype, "shape": shape, "axis": shape, "flag": flag}
    return SimpleNamespace(
        iter_markers=lambda name: marks, callspec=SimpleNamespace(indices=indices), nodeid=f"test_it[{name}]"
    )


def test_each_case_has_one_driver_and_each_value_both():
    every = list(itertools.product(range(DTYPES), range(SHAPES), range(FLAGS)))
    shares = [{each for each in every if is_mine(case(*each), f"{n}/2")} for n in range(2)]
    assert not shares[0] & shares[1] and sorted(shares[0] | shares[1]) == every
    for share in shares:
        # Any two values of two parameters meet on each driver.
        for a, b in itertools.combinations(range(3), 2):
            assert len({(each[a], each[b]) for each in share}) == len({(each[a], each[b]) for each in every})


def test_pairs_of_equal_and_of_odd_numbers_are_on_each_driver():
    pairs = itertools.product(range(DTYPES), repeat=2)
    mine = [pair for pair in pairs if is_mine(case(*pair, 0), "0/2")]
    assert len({(a % 2, b % 2) for a, b in mine}) == 4 and len(mine) == DTYPES**2 // 2


def test_numbers_of_64_bits_are_on_each_driver():
    for name in ("int64-0", "3-uint64", "complex128", "float64"):
        assert all(is_mine(case(dtype, 0, 0, name), f"{n}/2") for n in range(2) for dtype in range(2))


def test_alone_a_driver_runs_all():
    assert all(is_mine(case(dtype, 0, 0), "") for dtype in range(DTYPES))


def test_those_without_parameters_are_shared_where_numbers_are_judged():
    def drivers_of(nodeid):
        return [is_mine(SimpleNamespace(nodeid=nodeid), f"{n}/2") for n in range(2)]

    assert drivers_of("tests/sync/test_fence.py::test_it") == [True, True]
    assert drivers_of("tests/ops/test_sums.py::test_of_int64") == [True, True]
    found = {tuple(drivers_of(f"tests/ops/values/test_sums.py::test_{n}")) for n in range(20)}
    assert found == {(True, False), (False, True)}


def test_samples(monkeypatch):
    monkeypatch.setattr(sampling, "WHOLE", False)
    assert spread(range(1, 11), 4) == [1, 5, 9, 10] and spread([7], 4) == [7] and spread([], 4) == []
    assert sampled(3, 50) == 3
    monkeypatch.setattr(sampling, "WHOLE", True)
    assert spread(range(1, 11), 4) == list(range(1, 11)) and sampled(3, 50) == 50
    assert groups([1, 2, 3], 2) == [[1, 2], [3]]


def test_the_sanitizers_files_are_there():
    folder = Path(__file__).resolve().parents[1]
    assert [name for name in sanitized.FILES if not (folder / name).is_file()] == []
