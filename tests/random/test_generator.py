"""Random numbers: the published vectors, the bits of each draw, and the statistics of all."""

from __future__ import annotations

import json
import math
import pickle
import threading

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.errors import InvalidArgumentError
from kompute_py.random.philox import DRAWS

from . import philox

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.fixture
def generator(mgr):
    return kp.random.Generator(2026, manager=mgr)


def needs(mgr, dtype):
    features = mgr.get_device_properties()["features"]
    if dtype == "float64" and not features["shaderFloat64"]:
        return False
    return not (dtype in ("int64", "uint64") and not features["shaderInt64"])


def signed(word):
    return word - 2**32 if word >= 2**31 else word


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF,) * 4,
            (0xFFFFFFFF,) * 2,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_the_published_vectors(mgr, counter, key, expected):
    """Random123's known answers. The third word of a counter is the attempt: the device draws those of 0."""
    np.testing.assert_array_equal(philox.philox(np.array([counter]), key)[0], expected)
    low, high, attempt, jump = counter
    numbers = mgr.empty(4, np.uint32)
    DRAWS["words"](numbers, *map(signed, (*key, low, high, jump)))
    words = philox.philox(np.array([[low, high, 0, jump]]), key)[0]
    np.testing.assert_array_equal(numbers.read(), expected if attempt == 0 else words)


def test_all_published_vectors_on_the_device(mgr):
    """With the third word, through a kernel of its own."""
    from kompute_py.random.philox import PHILOX

    source = f"""#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer B {{ uint w[]; }};
{PHILOX}
void main() {{
    uvec4 r = philox(uvec4(w[0], w[1], w[2], w[3]), uvec2(w[4], w[5]));
    for (int i = 0; i < 4; ++i) w[i] = r[i];
}}"""
    given = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    tensor = mgr.tensor_t(np.array(given, np.uint32))
    mgr.kernel(source)(tensor, groups=1)
    np.testing.assert_array_equal(tensor.read()[:4], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])


# -- bits ----------------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "S26", "generators with seeds, the same numbers on each device", "random.default_rng", "reference/random"
)
@pytest.mark.parametrize("position", [0, 5, 2**32 - 3, 2**40])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 257])
def test_uniform_numbers_bit_by_bit(mgr, generator, count, position):
    generator.state = {**generator.state, "position": position, "jump": 3}
    for dtype, shift, each in (("float32", 8, 4), ("float16", 21, 4), ("float64", 0, 2)):
        if not needs(mgr, dtype):
            continue
        state = generator.state
        words = philox.words(state, -(-count // each)).astype(np.float64)
        if dtype == "float64":
            pairs = words.reshape(-1, 2)
            expected = (pairs[:, 0] // 32 * 2**26 + pairs[:, 1] // 64) / 2**53
        else:
            expected = (words.ravel() // 2**shift) / 2 ** (32 - shift)
        numbers = generator.random(count, dtype)
        assert numbers.dtype == dtype
        np.testing.assert_array_equal(numbers.read(), expected[:count].astype(dtype))
        assert generator.state["position"] == state["position"] + -(-count // each)


def test_uniform_bounds_bit_by_bit(generator):
    state = generator.state
    units = (philox.words(state, 50).ravel() >> 8).astype(np.float32) * np.float32(2**-24)
    numbers = generator.uniform(-3.3, 7.1, 200).read()
    expected = np.float32(-3.3) + np.float32(7.1 - -3.3) * units
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_bit_by_bit(generator, dtype):
    info = np.iinfo(dtype)
    for least, most in [(info.min, info.max), (0, 2), (5, 5), (info.min // 3, info.max - 7), (1, 100)]:
        state = generator.state
        numbers = generator.integers(least, most, 41, dtype, endpoint=True)
        assert numbers.dtype == dtype
        assert numbers.read().tolist() == philox.integers(state, 41, least, most)


def test_words_that_are_drawn_again(generator):
    """Of 2**32 words, nearly half lead to another attempt."""
    span = 2**31 + 1
    state = generator.state
    numbers = generator.integers(0, span, 200, "uint32").read()
    assert numbers.tolist() == philox.integers(state, 200, 0, span - 1)
    first = [int(word) * span >> 32 for word in philox.words(state, 50).ravel()]
    assert sum(a != b for a, b in zip(numbers.tolist(), first, strict=True)) > 30


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_of_64_bits(mgr, generator, dtype):
    if not needs(mgr, dtype):
        with pytest.raises(kp.KomputeError, match=r"shaderInt64|64"):
            generator.integers(0, 9, 3, dtype)
        return
    info = np.iinfo(dtype)
    for least, most in [
        (info.min, info.max),
        (3, 3),
        (0, 5),
        (0, 2**32),
        (-(2**40) if info.min else 7, 2**50),
    ]:
        state = generator.state
        numbers = generator.integers(least, most, 300, dtype, endpoint=True).read()
        assert numbers.min() >= least
        assert numbers.max() <= most
        words = philox.words(state, 150).reshape(-1, 2).astype(np.uint64)
        given = [int(low) | int(high) << 32 for low, high in words]
        mask = 2 ** (most - least).bit_length() - 1
        for number, word in zip(numbers.tolist(), given, strict=True):
            if word & mask <= most - least:  # else another word was drawn
                assert number == least + (word & mask)
        if most > least:
            assert len(set(numbers.tolist())) > 1


def test_truth_values(generator):
    numbers = generator.integers(0, 2, 4001, bool).read()
    assert numbers.dtype == bool
    assert 0.45 < numbers.mean() < 0.55


def test_normal_numbers_against_their_formula(generator, mgr):
    state = generator.state
    numbers = generator.standard_normal(4000).read()
    a, b = philox.words(state, 1000).reshape(-1, 2).astype(np.float64).T
    radius = np.sqrt(-2 * np.log((a + 1) / 2**32))
    angle = 2 * np.pi * b / 2**32
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
    np.testing.assert_allclose(numbers, expected, rtol=3e-6, atol=3e-6)
    if needs(mgr, "float64"):
        state = generator.state
        numbers = generator.normal(3, 2, 4000, "float64").read()
        w = philox.words(state, 2000).astype(np.float64)
        radius = np.sqrt(-2 * np.log((w[:, 0] * 2**32 + w[:, 1] + 1) / 2**64))
        angle = 2 * np.pi * (w[:, 2] / 2**32 + w[:, 3] / 2**64)
        expected = 3 + 2 * np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
        np.testing.assert_allclose(numbers, expected, rtol=1e-13, atol=1e-13)


# -- statistics ----------------------------------------------------------------------------------------------

COUNT = 200_000


def moments_are(numbers, mean, variance, fourth):
    """Within five standard errors."""
    n = numbers.size
    centred = numbers.astype(np.float64) - mean
    assert abs(centred.mean()) < 5 * math.sqrt(variance / n)
    assert abs((centred**2).mean() - variance) < 5 * math.sqrt((fourth - variance**2) / n)
    for lag in (1, 2, 3, 4, 7, 64, 256, 1000):
        product = (centred[:-lag] * centred[lag:]).mean()
        assert abs(product) < 5 * variance / math.sqrt(n - lag), lag


def chi_square(counts, expected):
    """The statistic in standard deviations of its distribution, which is nearly normal for many classes."""
    freedom = len(counts) - 1
    return (((counts - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_numbers_are_uniform(mgr, generator, dtype):
    if not needs(mgr, dtype):
        pytest.skip(f"the device has no {dtype}")
    numbers = generator.random(COUNT, dtype).read().astype(np.float64)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    step = 2.0**-11 if dtype == "float16" else 0
    moments_are(numbers + step / 2, 0.5, 1 / 12, 1 / 80)
    counts = np.bincount((numbers * 256).astype(int), minlength=256)
    assert abs(chi_square(counts, COUNT / 256)) < 5
    pairs = (numbers[::2] * 16).astype(int) * 16 + (numbers[1::2] * 16).astype(int)
    assert abs(chi_square(np.bincount(pairs, minlength=256), COUNT / 512)) < 5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normal_numbers_are_normal(mgr, generator, dtype):
    if not needs(mgr, dtype):
        pytest.skip(f"the device has no {dtype}")
    numbers = generator.normal(2.0, 3.0, COUNT, dtype).read().astype(np.float64)
    moments_are((numbers - 2) / 3, 0, 1, 3)
    z = (numbers - 2) / 3
    assert abs((z**3).mean()) < 5 * math.sqrt(15 / COUNT)
    assert abs((z**4).mean() - 3) < 5 * math.sqrt(96 / COUNT)
    cdf = np.array([0.5 * (1 + math.erf(each / math.sqrt(2))) for each in z])
    counts = np.bincount(np.minimum((cdf * 100).astype(int), 99), minlength=100)
    assert abs(chi_square(counts, COUNT / 100)) < 5
    assert 3.5 < np.abs(z).max() < 6.7


@pytest.mark.parametrize("count", [2, 3, 10, 97, 1000])
def test_integers_are_all_alike(generator, count):
    numbers = generator.integers(count, size=COUNT).read()
    counts = np.bincount(numbers, minlength=count)
    assert len(counts) == count
    freedom = count - 1
    statistic = ((counts - COUNT / count) ** 2 / (COUNT / count)).sum()
    assert statistic < freedom + 6 * math.sqrt(2 * freedom) + 12


def test_bits_are_fair(generator):
    words = generator.integers(0, 2**32, COUNT // 8, "uint32").read()
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 4), axis=1)
    assert (np.abs(bits.mean(0) - 0.5) < 5 * 0.5 / math.sqrt(len(words))).all()
    correlation = np.corrcoef(bits.T.astype(float)) - np.eye(32)
    assert np.abs(correlation).max() < 6 / math.sqrt(len(words))


# -- shapes and ways -----------------------------------------------------------------------------------------


def test_shapes_do_not_change_the_numbers(mgr):
    flat = kp.random.Generator(5, manager=mgr).random(24).read()
    for shape in [(24,), (2, 12), (2, 3, 4), (1, 24, 1)]:
        numbers = kp.random.Generator(5, manager=mgr).random(shape)
        assert numbers.shape == shape
        np.testing.assert_array_equal(numbers.read().ravel(), flat)
    assert kp.random.Generator(5, manager=mgr).random((0, 3)).shape == (0, 3)
    number = kp.random.Generator(5, manager=mgr).random()
    assert type(number) is float
    assert number == flat[0]
    assert type(kp.random.Generator(5, manager=mgr).integers(9)) is int


def test_results_in_given_memory(mgr, generator):
    twin = kp.random.Generator(2026, manager=mgr)
    tensor, array = mgr.zeros((3, 5)), np.zeros((3, 5), np.float32)
    assert generator.standard_normal(out=tensor) is tensor
    assert twin.standard_normal(out=array) is array
    np.testing.assert_array_equal(tensor.read(), array)
    whole = mgr.zeros(20)
    generator.random(out=whole[4:9])
    expected = twin.random(5).read()
    np.testing.assert_array_equal(whole.read(), np.concatenate([np.zeros(4), expected, np.zeros(11)]))


@pytest.mark.capability("S27", "tensors filled with random numbers", "random.fill_randn", "guides/random")
def test_functions_that_fill(mgr):
    generator = kp.random.Generator(1, manager=mgr)
    tensor = mgr.zeros((4, 4))
    assert kp.random.fill_randn(tensor, generator) is tensor
    assert tensor.read().std() > 0.3
    kp.random.fill_uniform(tensor, 5, 6, generator)
    assert ((tensor.read() >= 5) & (tensor.read() <= 6)).all()
    numbers = mgr.zeros(50, "int32")
    kp.random.fill_randint(numbers, -3, 3, generator)
    assert set(numbers.read().tolist()) <= set(range(-3, 3))
    kp.random.fill_randn(tensor)  # the process's generator
    assert kp.random.default_generator() is kp.random.default_generator()


def test_recorded_draws_differ_in_each_evaluation(mgr, generator):
    numbers, integers, normal = mgr.zeros(10), mgr.zeros(9, "int32"), mgr.zeros(6)
    sequence = mgr.sequence()
    sequence.record(generator.uniform_op(numbers, 2, 3), generator.integers_op(integers, 100))
    sequence.record(generator.normal_op(normal, 1, 0.5), generator.random_op(mgr.zeros(3)))
    seen = []
    for _ in range(4):
        sequence.eval()
        seen.append(np.concatenate([numbers.read(), integers.read(), normal.read()]))
    assert len({each.tobytes() for each in seen}) == 4
    twin = kp.random.Generator(2026, manager=mgr)
    again = mgr.zeros(10)
    other = mgr.sequence().record(twin.uniform_op(again, 2, 3))
    for each in seen:
        other.eval()
        np.testing.assert_array_equal(again.read(), each[:10])


def test_the_recorded_position_carries(mgr, generator):
    numbers = mgr.zeros(40)
    operation = generator.random_op(numbers)
    state = operation.results[1]
    state.write(np.array([2**32 - 5, 6], np.uint32))
    mgr.sequence().record(operation).eval()
    assert state.read().tolist() == [5, 7]


# -- streams and state ---------------------------------------------------------------------------------------


def test_streams_do_not_meet(mgr):
    generator = kp.random.Generator(3, manager=mgr)
    streams = [generator, *generator.spawn(3), generator.jumped(), generator.jumped(2), *generator.spawn(1)]
    drawn = [each.integers(0, 2**32, 1000, "uint32").read() for each in streams]
    everything = np.concatenate(drawn)
    assert len(np.unique(everything)) > len(everything) - 30
    same = kp.random.Generator(3, manager=mgr)
    np.testing.assert_array_equal(same.spawn(3)[1].integers(0, 2**32, 1000, "uint32").read(), drawn[2])
    np.testing.assert_array_equal(same.jumped(2).integers(0, 2**32, 1000, "uint32").read(), drawn[5])


def test_states_can_be_saved(mgr, generator):
    generator.random(7)
    saved = json.loads(json.dumps(generator.state))
    copy = pickle.loads(pickle.dumps(generator))
    expected = generator.random(9).read()
    assert copy.state == saved
    other = kp.random.Generator(1, manager=mgr)
    other.state = saved
    np.testing.assert_array_equal(other.random(9).read(), expected)
    np.testing.assert_array_equal(other.spawn(1)[0].random(9).read(), generator.spawn(1)[0].random(9).read())


def test_threads_draw_different_numbers(generator):
    found: list[np.ndarray] = []

    def draw():
        found.extend(generator.integers(0, 2**32, 400, "uint32").read() for _ in range(10))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 40
    assert len(np.unique(np.concatenate(found))) > 16_000 - 30


def test_seeds():
    a, b = kp.random.Generator(), kp.random.Generator()
    assert a.state["key"] != b.state["key"]
    assert kp.random.Generator([1, 2]).state == kp.random.Generator([1, 2]).state
    assert kp.random.Generator(2**100).state != kp.random.Generator(2**100 + 1).state
    sequence = np.random.SeedSequence(7)
    assert kp.random.Generator(sequence).state == kp.random.Generator(7).state
    # Written down, so that no change of the method goes unseen.
    assert kp.random.Generator(7).state["key"] == [2083679832, 3939563265]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: kp.random.Generator(-1), kp.InvalidArgumentError, "not negative"),
        (lambda g: kp.random.Generator("x"), kp.ArgumentTypeError, "seed is an int"),
        (lambda g: g.random(3, "int32"), kp.ArgumentTypeError, "float16, float32, float64"),
        (lambda g: g.integers(3, 3, 2), kp.InvalidArgumentError, "no integer from 3 to 2"),
        (lambda g: g.integers(0, 300, 2, "uint8"), kp.InvalidArgumentError, "out of bounds for uint8"),
        (lambda g: g.integers(0, 3, 2, "float32"), kp.ArgumentTypeError, "not float32"),
        (lambda g: g.uniform(0, float("inf"), 2), kp.InvalidArgumentError, "high is inf"),
        (lambda g: g.uniform(-(10**5000), 0, 2), kp.InvalidArgumentError, "out of bounds"),
        (lambda g: g.uniform(-1e308, 1e308, 2), kp.InvalidArgumentError, "too wide"),
        (lambda g: g.normal(0, -1, 2), kp.InvalidArgumentError, "scale is -1"),
        (lambda g: g.random(3, out=np.zeros(4, np.float32)), kp.InvalidArgumentError, "out has the shape"),
        (lambda g: g.random(out=[1.0]), kp.ArgumentTypeError, "out is a Tensor or an array"),
        (lambda g: g.random_op(np.zeros(3)), kp.ArgumentTypeError, "writes a Tensor"),
        (lambda g: g.jumped(0), kp.InvalidArgumentError, "once or more"),
        (lambda g: g.jumped(2**32), kp.OutOfRangeError, "jumps"),
        (lambda g: g.spawn(-1), kp.InvalidArgumentError, "0 to 1048576"),
        (lambda g: g.spawn(2**62), kp.InvalidArgumentError, "0 to 1048576"),
        (lambda g: setattr(g, "state", {}), kp.InvalidArgumentError, "Philox4x32-10"),
        (
            lambda g: setattr(g, "state", {**g.state, "position": -1}),
            kp.InvalidArgumentError,
            "position is -1",
        ),
        (lambda g: kp.random.fill_randn(None), kp.ArgumentTypeError, "not None"),
        (lambda g: kp.random.fill_randn(np.zeros(2, np.float32), 3), kp.ArgumentTypeError, "Generator"),
    ],
)
def test_errors(generator, call, error, words):
    before = generator.state
    with pytest.raises(error, match=words):
        call(generator)
    assert generator.state == before


def test_the_last_numbers(generator):
    generator.state = {**generator.state, "position": 2**64 - 1}
    generator.random(4)
    with pytest.raises(kp.OutOfRangeError, match="drawn all"):
        generator.random(1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_bounds_beyond_the_dtype_are_refused(mgr, dtype):
    generator, out = kp.random.Generator(1, manager=mgr), mgr.empty(64, dtype)
    if dtype == "float64" and "shaderFloat64" not in mgr.enabled_features:
        return
    largest = float(np.finfo(dtype).max)
    for low, high in (
        (-largest, largest),
        (0, largest * 1.01 if dtype != "float64" else np.inf),
        (-np.inf, 0),
    ):
        for draw in (
            lambda low=low, high=high: generator.uniform(low, high, 8, dtype),
            lambda low=low, high=high: generator.uniform(low, high, out=out),
            lambda low=low, high=high: generator.uniform_op(out, low, high),
        ):
            with pytest.raises(InvalidArgumentError):
                draw()
    for loc, scale in ((0, largest * 1.01), (-largest * 1.01, 1), (np.nan, 1)):
        if dtype == "float64" and np.isfinite(loc):
            continue
        with pytest.raises(InvalidArgumentError):
            generator.normal(loc, scale, 8, dtype)
        with pytest.raises(InvalidArgumentError):
            generator.normal_op(out, loc, scale)
    drawn = generator.uniform(-largest / 2, largest / 2, 1000, dtype).read()
    assert np.isfinite(drawn).all() and drawn.min() < -largest / 4 and drawn.max() > largest / 4


def test_a_restored_generator_goes_on(mgr):
    """Spawned generators and recorded draws are those that the saved one would have made."""
    for seed in (7, [1, 2], np.random.SeedSequence(3, spawn_key=(4,))):
        generator = kp.random.Generator(seed, manager=mgr)
        generator.spawn(2), generator.random(5)
        saved = json.loads(json.dumps(generator.state))
        expected = [each.random(3).tolist() for each in generator.spawn(2)]
        first, second = mgr.zeros(9), mgr.zeros(9)
        mgr.sequence().eval(generator.normal_op(first))
        other = kp.random.Generator(99, manager=mgr)
        other.state = saved
        assert [each.random(3).tolist() for each in other.spawn(2)] == expected
        mgr.sequence().eval(other.normal_op(second))
        assert first.tolist() == second.tolist()
    del saved["seed"]
    other = kp.random.Generator(99, manager=mgr)
    other.state = saved
    with pytest.raises(kp.FailedPreconditionError, match="seed"):
        other.spawn(1)
    for wrong in ({"entropy": "x"}, 3, {"entropy": 1, "spawn_key": 2, "children": 0}):
        with pytest.raises(InvalidArgumentError, match="seed"):
            other.state = {**generator.state, "seed": wrong}
