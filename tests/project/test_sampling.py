"""What the suite takes samples of, and what the drivers share."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import sampling, sanitized
from tests.support.sampling import groups, mark_products, places, sampled, shared, spread

pytestmark = pytest.mark.own_driver


def case(place, test="tests/ops/test_them.py::test_it", name="float32", marks=None):
    """A test's case as pytest describes it: two names in one mark share an index."""
    names = ("dtype", ("shape", "axis"), "flag")[: len(place)]
    all_marks = [pytest.mark.parametrize(each, []).mark for each in names]
    indices = {}
    for each, index in zip(names, place, strict=True):
        indices |= dict.fromkeys([each] if isinstance(each, str) else each, index)
    item = SimpleNamespace(
        iter_markers=lambda _: all_marks,
        get_closest_marker=dict(marks or {}).get,
        nodeid=f"{test}[{name}-{place}]",
        place=place,
    )
    if place:
        item.callspec = SimpleNamespace(indices=indices)
    return item


def product(*lengths, **given):
    return [case(place, **given) for place in itertools.product(*map(range, lengths))]


def of_shares(items, shares=2):
    return [[each.place for each in shared(items, f"{n}/{shares}")[0]] for n in range(shares)]


def test_names_in_one_mark_are_one_parameter():
    assert places(case((3, 1, 0))) == [3, 1, 0] and places(case(())) == []


def test_each_case_of_a_parameter_has_one_driver():
    assert of_shares(product(5)) == [[(0,), (2,), (4,)], [(1,), (3,)]]


def test_one_of_so_many_cases_and_with_each_commit_others():
    cases = product(12, marks={"sampled": pytest.mark.sampled(every=3).mark})
    turns = [[place for (place,) in (each.place for each in shared(cases, f"{n}/2")[0])] for n in range(6)]
    assert [len(each) for each in turns] == [2] * 6 and sorted(itertools.chain(*turns)) == list(range(12))
    assert turns[1] == [5, 11]


@pytest.mark.parametrize("lengths", [(12, 5, 2), (2, 12), (3, 3), (4, 4, 4), (1, 6), (7, 3)], ids=str)
def test_the_sample_of_a_product_has_each_value(lengths):
    found = list(itertools.chain(*of_shares(product(*lengths))))
    assert len(found) == len(set(found)) == max(lengths)
    assert [len({place[n] for place in found}) for n in range(len(lengths))] == list(lengths)


def test_pairs_of_a_sample_are_of_all_kinds():
    pairs = of_shares(product(12, 12), 1)[0]
    assert {(a % 2, b % 2) for a, b in pairs} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_numbers_of_64_bits_and_cases_of_each_driver_are_on_each():
    for name in ("int64-0", "3-uint64", "complex128", "float64"):
        assert of_shares(product(4, name=name)) == [[(0,), (1,), (2,), (3,)]] * 2
    assert of_shares(product(4, marks={"each_driver": True})) == [[(0,), (1,), (2,), (3,)]] * 2


def test_alone_a_pass_takes_samples_of_products():
    assert of_shares(product(4), 1) == [[(0,), (1,), (2,), (3,)]]
    assert len(of_shares(product(4, 3), 1)[0]) == 4


def test_those_without_parameters_run_on_both_where_the_subject_is_the_device():
    def drivers_of(test):
        return [len(share) for share in of_shares([case((), test)])]

    assert drivers_of("tests/sync/test_fence.py::test_it") == [1, 1]
    found = {tuple(drivers_of(f"tests/ops/values/test_sums.py::test_{n}")) for n in range(20)}
    assert found == {(1, 0), (0, 1)}


def test_products_are_marked():
    marked = []
    for item in (case((1, 2)), case((1,)), case(())):
        item.add_marker = lambda mark, item=item: marked.append((item.place, mark))
        mark_products([item])
    assert marked == [((1, 2), "sampled")]


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
