"""What the suite takes samples of, and what the drivers share."""

from __future__ import annotations

import collections
import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import sampling, sanitized
from tests.support.sampling import groups, mark_samples, sampled, shared, spread, values

pytestmark = pytest.mark.own_driver


_VALUES = [object() for _ in range(12)]


def case(place, test="tests/ops/test_them.py::test_it", name="float32", marks=None):
    """A test's case as pytest describes it, see `test_real_cases`."""
    names = ("dtype", ("shape", "axis"), "flag")[: len(place)]
    all_marks = [pytest.mark.parametrize(each, []).mark for each in names]
    params = {}
    for each, index in zip(names, place, strict=True):
        params |= dict.fromkeys([each] if isinstance(each, str) else each, _VALUES[index])
    item = SimpleNamespace(
        iter_markers=lambda _: all_marks,
        get_closest_marker=dict(marks or {}).get,
        nodeid=f"{test}[{name}-{place}]",
        place=place,
    )
    if place:
        item.callspec = SimpleNamespace(params=params)
    return item


def product(*lengths, **given):
    return [case(place, **given) for place in itertools.product(*map(range, lengths))]


def of_shares(items, shares=2):
    return [[each.place for each in shared(items, f"{n}/{shares}")[0]] for n in range(shares)]


def test_names_in_one_mark_are_one_parameter():
    assert len(values(case((3, 1, 0)))) == 3 and values(case(())) == []


REAL = """import pytest
@pytest.fixture(params=["on", "off"])
def switch(request): return request.param
@pytest.mark.parametrize("shape, dtype", [(1, "u1"), (5, "u1"), ((3, 4), "f4"), (4096, "u1"), (9, "f8")])
@pytest.mark.parametrize("alignment", [None, 64, 4096])
def test_product(shape, dtype, alignment, switch): ...
@pytest.mark.parametrize("n", range(4))
def test_one(n): ...
@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("c", [1, 2])
def test_cube(a, b, c): ...
"""


def test_real_cases(tmp_path):
    """Of what pytest collects, each value of each parameter is in the sample."""
    (tmp_path / "test_real.py").write_text(REAL)
    found = []
    collected = SimpleNamespace(pytest_collection_modifyitems=lambda items: found.extend(items))
    options = ["--collect-only", "-q", f"--rootdir={tmp_path}", "-c", os.devnull]
    options += ["-p", "no:cacheprovider", "-p", "no:zarr"]
    assert pytest.main([*options, str(tmp_path)], plugins=[collected]) == 0
    assert len(found) == 30 + 4 + 8
    chosen = [
        (each.originalname, each.callspec.params) for n in range(2) for each in shared(found, f"{n}/2")[0]
    ]
    counts = collections.Counter(test for test, _ in chosen)
    assert counts == {"test_product": 5, "test_one": 4, "test_cube": 2}
    product = [params for test, params in chosen if test == "test_product"]
    assert [len({str(each[name]) for each in product}) for name in ("shape", "alignment", "switch")] == [
        5,
        3,
        2,
    ]


def test_a_pass_reads_files_that_have_cases_of_it():
    own, others = "own_driver", "not own_driver"
    whole = "pytestmark = [pytest.mark.own_driver, pytest.mark.slow]\n"
    part = "@pytest.mark.own_driver\ndef test_it(): ...\n"
    for source, passes in ((whole, [own]), (part, [own, others]), ("def test_it(): ...", [others])):
        assert [each for each in (own, others) if sampling.has_cases(source, each)] == passes, source


def test_each_file_is_of_one_part():
    files = [f"tests/{room}/test_it.py" for room in ("base", "dask", "docs", "sync")]
    parts = [[sampling.of_part(file, part) for part in ("1/2", "2/2")] for file in files]
    assert all(sum(of_parts) == 1 for of_parts in parts) and len({tuple(each) for each in parts}) == 2
    assert all(sampling.of_part(file, "") for file in files)


def test_variants_are_taken_in_turn(monkeypatch):
    monkeypatch.setattr(sampling, "_turns", collections.Counter())
    ran = []

    def prepare(name):
        if name == "impossible":
            raise NotImplementedError
        return lambda: ran.append(name)

    def turn(*names):
        (taken,) = sampling.next_variant({name: lambda n=name: prepare(n) for name in names}, False)[0]
        return taken

    assert [turn("a", "b") for _ in range(4)] == ["b", "a", "b", "a"]
    assert [turn("a", "impossible") for _ in range(2)] == ["a", "a"]
    assert ran == ["b", "a", "b", "a", "a", "a"]
    with pytest.raises(NotImplementedError):
        turn("impossible")


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


@pytest.mark.parametrize(
    ("lengths", "marks", "every"),
    [
        ((2, 2), "", {1}), ((5,), "", set()), ((6,), "", {2}), ((3, 10), "", {2}),
        ((6,), "own_driver", set()), ((6,), "sampled", set()),
    ],
)  # fmt: skip
def test_products_and_many_values_are_marked(lengths, marks, every):
    marked = []
    items = product(*lengths, marks=dict.fromkeys(filter(None, [marks]), True))
    for item in items:
        item.add_marker = marked.append
    mark_samples(items)
    assert len(marked) == (len(items) if every else 0)
    assert {mark.kwargs["every"] for mark in marked} == every


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
