"""Orders and choices: the bits of each, on every driver the same, and the statistics of all."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.random.orders import ORDERS
from tests.support.sampling import sampled

from . import philox


class _OrderInGroups(ORDERS["order"].__wrapped__):
    def variants(self, ksel):
        return ["subgroup"]


order_in_groups = kp.CustomOp.register(_OrderInGroups)
P = [0.1, 0.0, 0.25, 0.05, 0.6]


@pytest.fixture
def generator(mgr):
    return kp.random.Generator(2026, manager=mgr)


def double(mgr):
    return mgr.get_device_properties()["features"]["shaderFloat64"]


def like(counts, expected):
    """Whether counts are those of classes with these expected counts: chi-square, within six deviations."""
    counts, expected = np.asarray(counts, float).ravel(), np.asarray(expected, float).ravel()
    assert (counts[expected == 0] == 0).all()
    counts, expected = counts[expected > 0], expected[expected > 0]
    freedom = len(counts) - 1
    return ((counts - expected) ** 2 / expected).sum() < freedom + 6 * math.sqrt(2 * freedom)


# -- bits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3, 97, 255, 256, 257, 1009, 100_003, 1_000_000])
def test_orders_bit_by_bit(generator, count):
    """Of a million upper words, about a hundred pairs are equal."""
    generator.random(3)
    state = generator.state
    order = generator.permutation(count)
    assert order.shape == (count,)
    assert order.dtype == np.int32
    found = order.read()
    np.testing.assert_array_equal(np.sort(found), np.arange(count))
    np.testing.assert_array_equal(found, philox.order(state, count))
    assert generator.state["position"] == state["position"] + -(-count // 2)


@pytest.mark.parametrize("count", [257, 5000, 100_003])
def test_orders_by_subgroups(mgr, generator, count):
    """The variant for devices with subgroups, on processors, too."""
    state = generator.state
    low, high = state["position"] % 2**32, state["position"] >> 32
    key = [int(np.uint32(word).astype(np.int32)) for word in state["key"]]
    order = mgr.empty(count, "int32")
    order_in_groups(order, *key, low, high, 0)
    np.testing.assert_array_equal(order.read(), philox.order(state, count))


def test_orders_of_jumped_and_distant_positions(generator):
    generator = generator.jumped(5)
    for position in (2**32 - 3, 2**40, 2**64 - 200):
        for count in (20, 300):
            generator.state = {**generator.state, "position": position}
            expected = philox.order(generator.state, count)
            np.testing.assert_array_equal(generator.permutation(count).read(), expected)


@pytest.mark.parametrize("count", [1, 5, 256, 600])
def test_races_bit_by_bit(mgr, generator, count):
    chances = np.random.default_rng(count).random(count).astype(np.float32) ** 9
    chances[1::7] = 0
    chances[0] = 1e-30
    chances /= chances.sum(dtype=np.float64)
    possible = int((chances > 0).sum())
    for p in (chances, mgr.tensor_t(chances)):
        state = generator.state
        found = generator.choice(count, possible, replace=False, p=p).read()
        assert found.tolist() == philox.race(state, chances)[:possible]
        assert generator.state["position"] == state["position"] + count


def test_the_model_of_races_orders_by_the_quotients(generator):
    rng = np.random.default_rng(3)
    for number in range(300):
        e = philox.exponential(generator.state, number) >> int(rng.integers(0, 40))
        w = int(rng.integers(1, 2**62)) >> int(rng.integers(0, 61))
        key = philox.quotient(max(e, 1), max(w, 1))
        value = (1 + (key % 2**56) / 2**56) * 2.0 ** ((key >> 56) - 128)
        assert value == pytest.approx(max(e, 1) / 2**64 / max(w, 1), rel=2**-23)


def test_exponential_numbers_are_exponential(generator):
    numbers = np.array([philox.exponential(generator.state, n) / 2**64 for n in range(4000)])
    counts = np.bincount((np.exp(-numbers) * 40).astype(int), minlength=40)
    assert like(counts, np.full(40, 100))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_choices_by_probabilities_bit_by_bit(mgr, generator, dtype):
    chances = np.random.default_rng(8).random(300).astype(dtype)
    chances[2::5] = 0
    chances /= chances.sum()
    chances = chances.astype(dtype)
    given = [chances]
    if dtype != "float64" or double(mgr):
        given.append(mgr.tensor_t(chances))
    for p in given:
        state = generator.state
        found = generator.choice(300, (3, 41), p=p)
        assert found.shape == (3, 41)
        assert found.read().ravel().tolist() == philox.categories(state, 123, chances)
        assert generator.state["position"] == state["position"] + 62


@pytest.mark.parametrize("count", [1, 63, 64, 65, 70_000, 1_100_000])
def test_sums_of_probabilities_are_exact(mgr, count):
    from kompute_py.random.chances import sums_of

    chances = np.random.default_rng(count).random(count)
    chances = (chances / chances.sum()).astype(np.float32)
    chances[:: count // 3 + 1] *= np.float32(1 + 1e-5)
    on_host, possible = sums_of(chances, count, mgr)
    on_device, same = sums_of(mgr.tensor_t(chances), count, mgr)
    assert possible == same == int((chances > 0).sum())
    np.testing.assert_array_equal(on_device.read(), on_host.read())


def test_numbers_written_down(mgr):
    """The same on every driver, and in every version: a change of these is one that users see."""
    generator = kp.random.Generator(7, manager=mgr)
    array = np.arange(3000, dtype=np.float32).reshape(30, 100)
    chances = np.arange(100) / 4950

    def shuffled():
        x = mgr.tensor_t(array)
        generator.shuffle(x, axis=1)
        return x

    drawn = {
        "few": generator.permutation(100),
        "many": generator.permutation(100_003),
        "parts": generator.permutation(mgr.tensor_t(array)),
        "shuffle": shuffled(),
        "again": generator.choice(100, 1000),
        "once": generator.choice(1000, 100, replace=False),
        "p again": generator.choice(100, 1000, p=chances),
        "p once": generator.choice(100, 50, replace=False, p=mgr.tensor_t(chances.astype(np.float32))),
        "p many": generator.choice(30_000, 999, replace=False, p=np.full(30_000, 1 / 30_000)),
    }
    found = {name: hashlib.sha256(each.read().tobytes()).hexdigest()[:12] for name, each in drawn.items()}
    assert found == {
        "few": "393dc730b28d", "many": "9c91e53a5d0e", "parts": "33990145f662", "shuffle": "5fa6c457e3b1",
        "again": "1d962b8cf522", "once": "98491112252d", "p again": "2118b0ae365b", "p once": "d4bc24ef2230",
        "p many": "c3ca06786f1f",
    }  # fmt: skip


# -- statistics ----------------------------------------------------------------------------------------------


def test_all_orders_are_equally_likely(generator):
    orders = [tuple(generator.permutation(4).read().tolist()) for _ in range(2400)]
    counts = [orders.count(each) for each in set(orders)]
    assert len(counts) == 24
    assert like(counts, np.full(24, 100))


def test_all_numbers_are_in_all_places(generator):
    counts = np.zeros((100, 100))
    for _ in range(1000):
        counts[np.arange(100), generator.permutation(100).read()] += 1
    assert like(counts, np.full((100, 100), 10))


def test_choices_have_their_probabilities(mgr, generator):
    for p in (P, np.float32(P), mgr.tensor(P)):
        counts = np.bincount(generator.choice(5, 40_000, p=p).read(), minlength=5)
        assert like(counts, np.array(P) * 40_000)
    counts = np.bincount(generator.choice(7, 40_000).read(), minlength=7)
    assert like(counts, np.full(7, 40_000 / 7))


def test_choices_without_replacement(generator):
    counts = np.zeros(10)
    for _ in range(1000):
        found = generator.choice(10, 3, replace=False).read()
        assert len(set(found.tolist())) == 3
        counts[found] += 1
    # Of a part that is in a sample with the probability 0.3.
    assert (np.abs(counts - 300) < 5 * math.sqrt(1000 * 0.3 * 0.7)).all()


@pytest.mark.sampled
@pytest.mark.parametrize("on_device", [False, True])
def test_choices_without_replacement_have_their_probabilities(mgr, generator, on_device):
    """One after the other, each with its probability among those that are left."""
    p = mgr.tensor(P) if on_device else P
    counts, expected = np.zeros((5, 5)), np.zeros((5, 5))
    times = sampled(400, 1500)
    for _ in range(times):
        first, second = generator.choice(5, 2, replace=False, p=p).read()
        counts[first, second] += 1
    for first in range(5):
        for second in range(5):
            if first != second:
                expected[first, second] = times * P[first] * P[second] / (1 - P[first])
    assert like(counts, expected)
    frequencies, inclusion = counts.sum(0) + counts.sum(1), expected.sum(0) + expected.sum(1)
    assert (np.abs(frequencies - inclusion) <= 5 * np.sqrt(inclusion * (1 - inclusion / times) + 1e-9)).all()


def test_rare_and_equal_elements(generator):
    """Zeros are never chosen, however many, and tiny probabilities still are probabilities."""
    p = np.zeros(70_000)
    p[[3, 60_000]] = 1 - 1e-12, 1e-12
    assert generator.choice(70_000, 2, replace=False, p=p).read().tolist() == [3, 60_000]
    assert set(generator.choice(70_000, 500, p=p).read().tolist()) == {3}
    p[60_000] = 1e-300
    assert generator.choice(70_000, 2, replace=False, p=p).read().tolist() == [3, 60_000]
    assert generator.choice(1, 3, p=[1.0]).read().tolist() == [0, 0, 0]


# -- shapes and ways -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "complex64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_along_an_axis(mgr, dtype, axis):
    array = (np.arange(7 * 5 * 3) % 50).reshape(7, 5, 3).astype(dtype)
    orders = kp.random.Generator(4, manager=mgr)
    order = orders.permutation(array.shape[axis]).read()
    expected = np.take(array, order, axis)
    for made in (mgr.tensor_t(array), array):
        found = kp.random.Generator(4, manager=mgr).permutation(made, axis)
        assert type(found) is type(made)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)
        assert kp.random.Generator(4, manager=mgr).shuffle(made, axis) is None
        np.testing.assert_array_equal(np.asarray(made), expected)


def test_parts_of_tensors_are_shuffled(mgr, generator):
    whole = mgr.tensor(np.arange(20))
    generator.shuffle(whole[5:15])
    found = whole.read()
    assert found[:5].tolist() == [0, 1, 2, 3, 4]
    assert found[15:].tolist() == [15, 16, 17, 18, 19]
    assert sorted(found[5:15].tolist()) == list(range(5, 15))
    grid = mgr.tensor(np.arange(12).reshape(4, 3))
    assert sorted(generator.permutation(grid[:, 1]).tolist()) == [1, 4, 7, 10]
    assert set(generator.choice(grid[:, 1], 6).tolist()) <= {1, 4, 7, 10}
    assert generator.choice(2, 3, p=mgr.tensor([[1, 5], [0, 5]])[:, 0]).tolist() == [0, 0, 0]


def test_nothing_to_order(mgr, generator):
    state = generator.state
    for shape, axis in [((0,), 0), ((0, 3), 0), ((2, 0), 1)]:
        for made in (mgr.zeros(shape), np.zeros(shape, np.float32)):
            assert generator.permutation(made, axis).shape == shape
            generator.shuffle(made, axis)
    assert generator.permutation(mgr.zeros((3, 0))).shape == (3, 0)
    generator.shuffle(mgr.zeros((3, 0)))
    generator.state = state
    assert generator.choice(0, 0).shape == (0,)
    assert generator.choice(0, (2, 0), replace=False).shape == (2, 0)
    assert generator.choice(mgr.zeros((0, 4)), 0).shape == (0, 4)
    assert generator.choice(3, 0, p=[0.5, 0.25, 0.25]).shape == (0,)
    assert generator.choice(3, 0, replace=False, p=mgr.tensor([0.5, 0.25, 0.25])).shape == (0,)
    for p in ([], mgr.zeros(0)):
        with pytest.raises(kp.InvalidArgumentError, match="sum 0"):
            generator.choice(0, 0, p=p)


def test_shapes_of_choices(mgr, generator):
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    for made in (array, mgr.tensor_t(array)):
        for options in ({}, {"replace": False}, {"p": [0.25] * 4}, {"p": [0.25] * 4, "replace": False}):
            rows = generator.choice(made, (2, 2), **options)
            assert type(rows) is type(made)
            assert rows.shape == (2, 2, 3)
            assert (np.diff(np.asarray(rows)) == 1).all()
        columns = generator.choice(made, 2, axis=1, replace=False, shuffle=False)
        assert columns.shape == (4, 2)
        assert (np.diff(np.asarray(columns), axis=0) == 3).all()
        assert generator.choice(made, axis=-1).shape == (4,)
    assert generator.choice(3) in range(3)
    assert type(generator.choice(9, replace=False)) is int
    assert generator.choice(3, p=[0, 1, 0]) == 1
    assert sorted(generator.choice(9, (3, 3), replace=False).read().ravel().tolist()) == list(range(9))
    assert sorted(generator.choice(9, 9, False, np.full(9, 1 / 9)).tolist()) == list(range(9))


def test_tensors_are_not_read_back(mgr, generator, monkeypatch):
    """But for the four words that say whether `p` has probabilities."""
    x, p = mgr.tensor(np.arange(5000).reshape(1000, 5)), mgr.tensor(np.full(1000, 1e-3))
    read, sizes = kp.Tensor.read, []
    monkeypatch.setattr(
        kp.Tensor, "read", lambda self, *a, **k: sizes.append(self.size()) or read(self, *a, **k)
    )
    generator.permutation(x)
    generator.shuffle(x)
    generator.choice(x, 10)
    generator.choice(x, 10, replace=False)
    assert sizes == []
    generator.choice(x, 10, p=p)
    generator.choice(x, 10, replace=False, p=p)
    assert sizes == [4, 4]


def test_states_are_saved_between_orders(mgr, generator):
    calls = [
        lambda g: g.permutation(500),
        lambda g: g.choice(50, 20, replace=False),
        lambda g: g.choice(5, 20, p=P),
        lambda g: g.choice(5, 3, replace=False, p=P),
    ]
    for first in calls:
        first(generator)
        saved = json.loads(json.dumps(generator.state))
        expected = [call(generator).read() for call in calls]
        other = kp.random.Generator(1, manager=mgr)
        other.state = saved
        for call, each in zip(calls, expected, strict=True):
            np.testing.assert_array_equal(call(other).read(), each)
        assert other.state == generator.state
    streams = [generator, generator.spawn(1)[0], generator.jumped()]
    assert len({each.permutation(100).read().tobytes() for each in streams}) == 3


# -- recorded ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 200, 1001])
def test_recorded_orders(mgr, generator, count):
    """Those of the stream that the operation takes: the next child of the seed."""
    own = kp.random.Generator(2026, manager=mgr).spawn(1)[0]
    order = mgr.zeros(count, "int32")
    sequence = mgr.sequence().record(generator.permutation_op(order))
    for _ in range(3):
        sequence.eval()
        np.testing.assert_array_equal(order.read(), own.permutation(count).read())


def test_the_recorded_position_carries(mgr, generator):
    order = mgr.zeros(40, "int32")
    operation = generator.permutation_op(order)
    state = operation.results[1]
    state.write(np.array([2**32 - 5, 6], np.uint32))
    mgr.sequence().record(operation).eval()
    assert state.read().tolist() == [15, 7]


@pytest.mark.parametrize("count", [6, 400])
def test_recorded_shuffles(mgr, generator, count):
    own = kp.random.Generator(2026, manager=mgr).spawn(1)[0]
    array = np.arange(count * 6, dtype=np.float32).reshape(2, count, 3)
    x = mgr.tensor_t(array)
    sequence = mgr.sequence().record(generator.shuffle_op(x, axis=1))
    for _ in range(3):
        sequence.eval()
        own.shuffle(array, axis=1)
        np.testing.assert_array_equal(x.read(), array)
    nothing = mgr.zeros((3, 0))
    mgr.sequence().record(generator.shuffle_op(nothing)).eval()


@pytest.mark.parametrize("options", [{}, {"replace": False}, {"p": P}, {"p": P, "replace": False}])
@pytest.mark.parametrize("on_device", [False, True])
def test_recorded_choices(mgr, generator, options, on_device):
    twin = kp.random.Generator(2026, manager=mgr)
    given = dict(options)
    if "p" in given and on_device:
        given["p"] = mgr.tensor(P)
        options = {**options, "p": np.float32(P)}
    numbers = mgr.zeros((2, 2), "int32")
    x = mgr.tensor(np.arange(20).reshape(4, 5))
    parts = mgr.zeros((4, 2, 2))
    sequence = mgr.sequence()
    sequence.record(generator.choice_op(numbers, 5, **given), generator.choice_op(parts, x, axis=1, **given))
    first, second = twin.spawn(1)[0], twin.spawn(1)[0]
    for _ in range(3):
        sequence.eval()
        np.testing.assert_array_equal(numbers.read(), first.choice(5, (2, 2), **options).read())
        np.testing.assert_array_equal(parts.read(), second.choice(x, (2, 2), axis=1, **options).read())


def test_orders_in_repetitions(mgr, generator):
    order = mgr.zeros(300, "int32")
    own = kp.random.Generator(2026, manager=mgr).spawn(1)[0]
    mgr.sequence().record(kp.OpRepeat(generator.permutation_op(order), 5)).eval()
    for _ in range(5):
        expected = own.permutation(300).read()
    np.testing.assert_array_equal(order.read(), expected)


# -- errors --------------------------------------------------------------------------------------------------

INVALID, TYPE = kp.InvalidArgumentError, kp.ArgumentTypeError


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g, m: g.permutation(-1), INVALID, "from 0"),
        (lambda g, m: g.permutation(2**31), kp.OutOfRangeError, "at most 2147483647"),
        (lambda g, m: g.permutation(np.zeros(())), INVALID, "first axis"),
        (lambda g, m: g.permutation(m.zeros((2, 3)), 2), INVALID, "axis is 2, and x has 2 axes"),
        (lambda g, m: g.permutation("abc"), TYPE, "x"),
        (lambda g, m: g.permutation(3, "a"), TYPE, "axis"),
        (lambda g, m: g.shuffle(m.zeros(())), INVALID, "first axis"),
        (lambda g, m: g.shuffle([1, 2]), TYPE, "a Tensor or an array"),
        (lambda g, m: g.shuffle_op(m.zeros((3, 2))[:, 0]), TYPE, "takes a Tensor, not a"),
        (lambda g, m: g.shuffle(np.broadcast_to(1, 3)), INVALID, "read-only"),
        (lambda g, m: g.choice(3, 4, replace=False), INVALID, "take fewer"),
        (lambda g, m: g.choice(0, 4), INVALID, "nothing to choose"),
        (lambda g, m: g.choice(0), INVALID, "nothing to choose"),
        (lambda g, m: g.choice(-2, 0), INVALID, "negative"),
        (lambda g, m: g.choice(m.zeros((0, 3)), 1), INVALID, "nothing to choose"),
        (lambda g, m: g.choice(m.zeros((2, 3)), 1, axis=-3), INVALID, "axis is -3"),
        (lambda g, m: g.choice(2, 4, p="ab"), TYPE, "probability for each"),
        (lambda g, m: g.choice(2, 4, p=range(2**40)), INVALID, "one number for each of 2"),
        (lambda g, m: g.choice(2, 4, p=range(2**80, 0, -3)), INVALID, "one number for each of 2"),
        (lambda g, m: g.choice(2, 4, p=["a", None]), TYPE, "probability for each"),
        (lambda g, m: g.choice(2, 4, p=[0.5, 10**400]), TYPE, "probability for each"),
        (lambda g, m: g.choice(2, 4, p=np.broadcast_to(0.5, 2**40)), INVALID, "one number for each of 2"),
        (lambda g, m: g.choice(2, 4, p=0.5), INVALID, "one number for each of 2"),
        (lambda g, m: g.choice(2, 4, p=np.ma.array([0.5, 0.5], mask=[0, 1])), TYPE, "masked"),
        (lambda g, m: g.choice(2**31 + 1, 4), INVALID, "out of bounds for int32"),
        (lambda g, m: g.choice(2**31, 4, replace=False), kp.OutOfRangeError, "at most"),
        (lambda g, m: g.choice(2, 4, p=[0.5, 0.5j]), TYPE, "probability for each"),
        (lambda g, m: g.choice(2, 4, p=m.tensor_t(np.complex64([0.5, 0.5]))), TYPE, "probability for each"),
        (lambda g, m: g.choice(3, 2, replace=False, p=[1, 0, 0]), INVALID, "1 elements above 0"),
        (lambda g, m: g.choice(3, 2, replace=False, p=m.tensor([1, 0, 0])), INVALID, "1 elements above 0"),
        (lambda g, m: g.choice(2, 4, replace=np.zeros(2)), TYPE, "replace"),
        (lambda g, m: g.choice(2, 4, shuffle=np.zeros(2)), TYPE, "shuffle"),
        (lambda g, m: g.permutation_op(m.zeros(3)), TYPE, "int32"),
        (lambda g, m: g.permutation_op(m.zeros((3, 1), "int32")), INVALID, "one axis"),
        (lambda g, m: g.permutation_op(np.zeros(3, np.int32)), TYPE, "writes a Tensor"),
        (lambda g, m: g.shuffle_op(np.zeros(3)), TYPE, "writes a Tensor"),
        (lambda g, m: g.shuffle_op(m.zeros(3), 1), INVALID, "axis is 1"),
        (lambda g, m: g.choice_op(m.zeros(3), 5), TYPE, "out is of float32"),
        (lambda g, m: g.choice_op(m.zeros(3), np.zeros(3)), TYPE, "a number or a Tensor"),
        (lambda g, m: g.choice_op(m.zeros((3, 4)), m.zeros((5, 3))), INVALID, "along axis 0 have"),
        (lambda g, m: g.choice_op(m.zeros(3), m.zeros((5, 3, 2))), INVALID, "along axis 0 have"),
        (lambda g, m: g.choice_op(m.zeros(6, "int32"), 5, replace=False), INVALID, "take fewer"),
        (lambda g, m: g.choice_op(m.zeros(6, "int32"), 2, p=[0.5, 0.6]), INVALID, "sum 1"),
    ],
)
def test_errors(mgr, generator, call, error, words):
    before = generator.state
    with pytest.raises(error, match=words):
        call(generator, mgr)
    assert generator.state == before


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(
    ("p", "words"),
    [
        ([0.5, 0.6], "sum 1"), ([0.5, 0.49], "sum 1"), ([0, 0], "sum 0; probabilities have the sum 1"),
        ([2, 0], "sum 1"), ([3e38, 3e38], "sum 1"), ([4.0, 1.0], "sum 1"),
        ([-0.5, 1.5], "1 of its elements are negative"), ([np.nan, 1], "not finite"),
        ([np.inf, -np.inf], "2 of its elements"), ([1.0], "one number for each of 2"),
        ([[0.5, 0.5]], "one number for each of 2"), ([], "one number for each of 2"),
    ],
)  # fmt: skip
def test_what_is_no_probability(mgr, generator, p, words, replace):
    before = generator.state
    given = [p, np.float64(p), np.float32(p), mgr.tensor_t(np.float32(p))]
    if double(mgr):
        given.append(mgr.tensor_t(np.float64(p)))
    for each in given:
        with pytest.raises(kp.InvalidArgumentError, match=words):
            generator.choice(2, 1, replace, each)
    assert generator.state == before


def test_sums_that_would_overflow(mgr, generator):
    for p in (np.ones(5, np.float32), np.full(9, 0.5, np.float32), np.full(4096, 1.5, np.float32)):
        for each in (p, mgr.tensor_t(p)):
            with pytest.raises(kp.InvalidArgumentError, match="have the sum 1"):
                generator.choice(len(p), 1, p=each)


def test_sums_next_to_one(mgr, generator):
    """float32 has rounding errors that float64 has not."""
    p = np.float32([0.5, 0.50005])
    for each in (p, mgr.tensor_t(p)):
        assert generator.choice(2, 5, p=each).shape == (5,)
    with pytest.raises(kp.InvalidArgumentError, match="sum 1"):
        generator.choice(2, 5, p=p.astype(np.float64))


def test_the_last_numbers(generator):
    generator.state = {**generator.state, "position": 2**64 - 2}
    with pytest.raises(kp.OutOfRangeError, match="drawn all"):
        generator.permutation(5)
    generator.permutation(4)
    with pytest.raises(kp.OutOfRangeError, match="drawn all"):
        generator.choice(4, 2, replace=False)
