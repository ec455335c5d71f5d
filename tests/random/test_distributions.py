"""Distributions with a shape: against SciPy's, with parameters as numbers, arrays and Tensors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import kompute_py as kp
from kompute_py.errors import ArgumentTypeError, InvalidArgumentError

COUNT = 20_000
LEAST = 1e-5  # probability of a draw that far off; the seed is fixed, so each case holds always or never

CONTINUOUS = {
    "exponential": [((3.0,), stats.expon(scale=3)), ((1e-30,), stats.expon(scale=1e-30))],
    "laplace": [((2.0, 3.0), stats.laplace(2, 3))],
    "cauchy": [((2.0, 3.0), stats.cauchy(2, 3))],
    "lognormal": [((1.0, 0.5), stats.lognorm(0.5, scale=np.e)), ((0.0, 0.0), None)],
    "gamma": [((shape, 2.0), stats.gamma(shape, scale=2)) for shape in (0.05, 0.5, 1, 2.5, 100, 1e5, 1e7)],
    "chisquare": [((3.0,), stats.chi2(3)), ((1.0,), stats.chi2(1))],
    "beta": [(each, stats.beta(*each)) for each in [(0.5, 0.5), (1, 3), (0.3, 5), (50, 20), (1e5, 1e5)]],
}
DISCRETE = {
    "poisson": [((lam,), stats.poisson(lam)) for lam in (0.1, 3, 9.9, 10, 25, 1000, 1e6, 1.6e7)],
    "binomial": [
        (each, stats.binom(*each))
        for each in [
            (10, 0.3), (1, 0.5), (100, 0.01), (100, 0.99), (50, 0.5), (1000, 0.3), (2**24, 0.4),
            (2**24, 1e-6), (2**24, 1 - 1e-7), (2**24, 0.999),
        ]
    ],
    "geometric": [((p,), stats.geom(p)) for p in (0.9, 0.5, 0.1, 1e-3, 2.0**-20)],
}  # fmt: skip


def cases(kinds):
    return [(name, *case) for name, each in kinds.items() for case in each]


@pytest.fixture
def generator(mgr):
    return kp.random.default_rng(kp.random.Generator(2026, manager=mgr))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "parameters", "expected"), cases(CONTINUOUS))
def test_continuous_numbers(mgr, generator, name, parameters, expected, dtype):
    if dtype == "float64" and "shaderFloat64" not in mgr.enabled_features:
        pytest.skip("no float64")
    numbers = getattr(generator, name)(*parameters, COUNT, dtype).read()
    assert numbers.dtype == dtype and np.isfinite(numbers).all()
    if expected is None:
        assert (numbers == 1).all()
    else:
        assert stats.kstest(numbers.astype(np.float64), expected.cdf).pvalue > LEAST


def chances_of(numbers, expected):
    low, high = expected.ppf([1e-4, 1 - 1e-4])
    edges = np.unique(np.round(np.linspace(low - 1, high, 40)))
    wanted = np.diff([0, *expected.cdf(edges), 1]) * len(numbers)
    found = np.histogram(numbers, [-np.inf, *(edges + 0.5), np.inf])[0]
    often = wanted > 5
    return stats.chi2.sf(((found - wanted)[often] ** 2 / wanted[often]).sum(), max(often.sum() - 1, 1))


@pytest.mark.parametrize(("name", "parameters", "expected"), cases(DISCRETE))
def test_counts(generator, name, parameters, expected):
    numbers = getattr(generator, name)(*parameters, COUNT).read()
    assert numbers.dtype == np.int32
    low, high = expected.support()
    assert numbers.min() >= low and numbers.max() <= high
    assert chances_of(numbers, expected) > LEAST


def test_counts_that_are_certain(generator):
    assert generator.poisson(0, 9).tolist() == [0] * 9
    assert generator.binomial([0, 7, 7, 2**24], [0.5, 0, 1, 1]).tolist() == [0, 0, 7, 2**24]
    assert generator.geometric(1, 5).tolist() == [1] * 5
    assert generator.exponential(0, 3).tolist() == [0] * 3


def test_gamma_numbers_next_to_zero_are_above_it(mgr, generator):
    """Of 2**18 draws less than one is expected below the bound, and none below 0."""
    for shape, bound in ((1.0, 1e-7), (1.001, 1e-7), (0.5, 1e-13)):
        assert generator.gamma(shape, size=2**18).read().min() > bound
    assert generator.beta(1, 1, 2**18).read().min() > 1e-7
    assert generator.beta(0.7, 100, 2**18).read().max() < 0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shapes_at_the_ends_of_floats(mgr, generator, dtype):
    if dtype == "float64" and "shaderFloat64" not in mgr.enabled_features:
        pytest.skip("no float64")
    ends = np.finfo(dtype)
    for least in (float(ends.tiny), float(ends.tiny) * 8):
        ones = generator.beta(least, least, 1000, dtype).read()
        assert set(ones.tolist()) == {0, 1} and 400 < ones.sum() < 600
        assert set(generator.dirichlet([least, least], 100, dtype).read().ravel().tolist()) == {0, 1}
    most = float(ends.max)
    assert generator.beta(most, most, 3, dtype).tolist() == [0.5] * 3
    assert generator.gamma(most, size=3, dtype=dtype).tolist() == pytest.approx([most] * 3)


def test_halves_are_rounded_at_the_end(generator):
    assert abs(generator.gamma(1e6, 1e-4, 100, "float16").read() - 100).max() < 2
    numbers = generator.cauchy(0, 1e-3, 2**18, "float16").read()
    assert (
        np.isfinite(numbers).all() and stats.kstest(numbers[:2000], stats.cauchy(0, 1e-3).cdf).pvalue > LEAST
    )


def test_rows(generator):
    rows = generator.multinomial(20, [0.1, 0.2, 0.3, 0.4], COUNT).read()
    assert rows.shape == (COUNT, 4) and (rows.sum(1) == 20).all() and rows.min() >= 0
    for column, p in enumerate((0.1, 0.2, 0.3, 0.4)):
        assert chances_of(rows[:, column], stats.binom(20, p)) > LEAST
    rare = generator.multinomial(2**24, [0.5, 0.5 - 1e-7, 1e-7], COUNT).read()[:, 2]
    assert chances_of(rare, stats.binom(2**24, 1e-7)) > LEAST
    assert generator.multinomial(5, [0, 1, 0]).tolist() == [0, 5, 0]
    alpha = np.array([0.5, 2, 3])
    parts = generator.dirichlet(alpha, COUNT).read()
    assert parts.shape == (COUNT, 3) and parts.min() >= 0
    np.testing.assert_allclose(parts.sum(1), 1, rtol=1e-5)
    for column, a in enumerate(alpha):
        assert stats.kstest(parts[:, column], stats.beta(a, alpha.sum() - a).cdf).pvalue > LEAST


ARRAYS = [
    ("normal", ([0, 100], [1, 2]), stats.norm),
    ("uniform", ([0, 10], [1, 20]), lambda low, high: stats.uniform(low, high - low)),
    ("exponential", ([1, 10],), lambda scale: stats.expon(scale=scale)),
    ("gamma", ([0.5, 9], [1, 2]), lambda a, scale: stats.gamma(a, scale=scale)),
    ("beta", ([0.5, 9], [1, 2]), stats.beta),
    ("laplace", ([0, 9], [1, 2]), stats.laplace),
]


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize(("name", "parameters", "expected"), ARRAYS)
def test_parameters_are_arrays(mgr, generator, name, parameters, expected, tensors):
    given = [mgr.tensor(each) if tensors else each for each in parameters]
    numbers = getattr(generator, name)(*given, (4000, 2))
    for column, each in enumerate(zip(*parameters, strict=True)):
        assert stats.kstest(numbers.read()[:, column], expected(*each).cdf).pvalue > LEAST
    assert getattr(generator, name)(*given).shape == (2,)
    with pytest.raises(InvalidArgumentError, match="broadcast"):
        getattr(generator, name)(*given, (2, 3))


def test_counts_of_arrays(mgr, generator):
    lam = np.float32([[1], [1000]])
    for given in (lam, mgr.tensor(lam)):
        rows = generator.poisson(given, (2, 4000)).read()
        assert all(
            chances_of(row, stats.poisson(each)) > LEAST for row, each in zip(rows, lam[:, 0], strict=True)
        )


def test_elements_of_tensors_outside_of_what_a_distribution_allows(mgr, generator):
    wrong = mgr.tensor([-1, np.nan, 2**25])
    assert generator.poisson(wrong).tolist() == [-1] * 3
    assert generator.binomial(mgr.tensor([-1, 5.5, 2**25]), 0.5).tolist() == [-1] * 3
    assert generator.binomial(5, mgr.tensor([-0.1, 1.1, np.nan])).tolist() == [-1] * 3
    assert generator.geometric(mgr.tensor([0, 1e-30, 1.5])).tolist() == [-1] * 3
    for draw, bad in {
        generator.normal: (0, [-1, np.nan]),
        generator.exponential: ([-1, np.nan],),
        generator.lognormal: (0, [-1, np.nan]),
        generator.gamma: ([-1, 0, np.nan, np.inf],),
        generator.chisquare: ([-1, 0, np.nan, np.inf],),
        generator.beta: ([-1, 0, np.nan, np.inf], 1),
        generator.dirichlet: ([np.inf, 1],),
        generator.uniform: ([-3e38, np.nan, np.inf], 3e38),
    }.items():
        given = [mgr.tensor(each) if isinstance(each, list) else each for each in bad]
        assert np.isnan(draw(*given).read()).all(), draw


RECORDED = [
    ("exponential", (3.0,), stats.expon(scale=3)), ("laplace", (2.0, 3.0), stats.laplace(2, 3)),
    ("cauchy", (2.0, 3.0), stats.cauchy(2, 3)), ("lognormal", (1.0, 0.5), stats.lognorm(0.5, scale=np.e)),
    ("gamma", (2.5, 2.0), stats.gamma(2.5, scale=2)), ("chisquare", (3.0,), stats.chi2(3)),
    ("beta", (2.0, 3.0), stats.beta(2, 3)), ("normal", ([1.0], [2.0]), stats.norm(1, 2)),
    ("uniform", ([1.0], [2.0]), stats.uniform(1, 1)), ("poisson", (25,), stats.poisson(25)),
    ("binomial", (50, 0.3), stats.binom(50, 0.3)), ("geometric", (0.1,), stats.geom(0.1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "expected"), RECORDED)
def test_recorded_draws_go_on(mgr, generator, name, parameters, expected):
    counts = name in DISCRETE
    out = mgr.zeros(4000, np.int32 if counts else np.float32)
    sequence = mgr.sequence().record(getattr(generator, f"{name}_op")(out, *parameters))
    draws = [out.read() for _ in range(3) if sequence.eval()]
    assert not np.array_equal(draws[0], draws[1])
    judge = chances_of if counts else lambda x, d: stats.kstest(x, d.cdf).pvalue
    assert judge(np.concatenate(draws), expected) > LEAST


def test_recorded_rows(mgr, generator):
    parts, rows = mgr.zeros((500, 3)), mgr.zeros((500, 3), np.int32)
    one, two = generator.dirichlet_op(parts, [1, 2, 3]), generator.multinomial_op(rows, 9, [0.2, 0.3, 0.5])
    sequence = mgr.sequence().record(one).record(two)
    draws = [(parts.read(), rows.read()) for _ in range(2) if sequence.eval()]
    for found, counted in draws:
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
        assert (counted.sum(1) == 9).all()
    assert not np.array_equal(draws[0][1], draws[1][1])


def test_numbers_depend_on_their_position_alone(mgr):
    whole = kp.random.Generator(3, manager=mgr).gamma(0.7, size=1000).read()
    part = kp.random.Generator(3, manager=mgr).gamma(0.7, size=10).read()
    np.testing.assert_array_equal(whole[:10], part)
    out = np.zeros((2, 5), np.float32)
    assert kp.random.Generator(3, manager=mgr).gamma(0.7, out=out) is out
    np.testing.assert_array_equal(out.ravel(), part)
    assert type(kp.random.Generator(3, manager=mgr).gamma(0.7)) is float
    assert type(kp.random.Generator(3, manager=mgr).poisson(7)) is int


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_never_gives_high(mgr, generator, dtype):
    if dtype == "float64" and "shaderFloat64" not in mgr.enabled_features:
        pytest.skip("no float64")
    kind = np.dtype(dtype).type
    next_to_one = np.nextafter(kind(1), kind(2))
    for low, high in [(1, next_to_one), (0, 0.1), (-1, 1), (100, 100.5), (3, 3), (1, -1), (next_to_one, 1)]:
        bounds = float(low), float(high)
        for numbers in (
            generator.uniform(*bounds, 5000, dtype).read(),
            generator.uniform(np.array([bounds[0]]), bounds[1], 5000, dtype).read(),
        ):
            if bounds[0] == bounds[1]:
                assert (numbers == low).all()
            elif bounds[0] < bounds[1]:
                assert kind(low) <= numbers.min() and float(numbers.max()) < bounds[1]
            else:
                assert kind(low) >= numbers.max() and float(numbers.min()) > bounds[1]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda g: g.gamma(0), InvalidArgumentError, "shape has 0"),
        (lambda g: g.gamma([1, np.nan]), InvalidArgumentError, "shape has nan"),
        (lambda g: g.exponential(-1), InvalidArgumentError, "scale has -1"),
        (lambda g: g.poisson(2**24), InvalidArgumentError, "lam has"),
        (lambda g: g.uniform([-3e38], 3e38), InvalidArgumentError, "further apart"),
        (lambda g: g.uniform([0], 1e39), InvalidArgumentError, "high has 1e.39, out of bounds for float32"),
        (lambda g: g.exponential(1e39), InvalidArgumentError, "scale has 1e.39, out of bounds for float32"),
        (lambda g: g.normal([1e5], 1, dtype="float16"), InvalidArgumentError, "out of bounds for float16"),
        (lambda g: g.beta(1e-50, 1), InvalidArgumentError, "a has 1e-50, out of bounds for float32"),
        (lambda g: g.binomial(2.5, 0.5), InvalidArgumentError, "n has 2.5"),
        (lambda g: g.binomial(2, 1.5), InvalidArgumentError, "p has 1.5"),
        (lambda g: g.geometric(0), InvalidArgumentError, "p has 0"),
        (lambda g: g.multinomial(3, [0.9, 0.9, 0.1]), InvalidArgumentError, "sum"),
        (lambda g: g.multinomial(3, [[1.0]]), InvalidArgumentError, "one axis"),
        (lambda g: g.dirichlet([]), InvalidArgumentError, "one axis"),
        (lambda g: g.poisson(3, 3, "float32"), ArgumentTypeError, "int32"),
        (lambda g: g.gamma(3, 1, 3, "int32"), ArgumentTypeError, "float32"),
        (lambda g: g.gamma("3"), ArgumentTypeError, "shape"),
        (lambda g: g.gamma(True), ArgumentTypeError, "shape"),
        (lambda g: g.gamma(np.ma.masked_array([1.0], [True])), ArgumentTypeError, "masked"),
        (lambda g: g.normal([1, 2], [1, 2, 3]), InvalidArgumentError, "broadcast"),
        (lambda g: g.gamma_op(np.zeros(3, np.float32), 1), ArgumentTypeError, "Tensor"),
        (lambda g: g.gamma(1, size=3, out=np.zeros(4, np.float32)), InvalidArgumentError, "shape"),
    ],
)
def test_refusals(generator, call, error, says):
    with pytest.raises(error, match=says):
        call(generator)


@pytest.mark.parametrize("draw", ["integers", "uniform", "normal", "random", "standard_normal"])
def test_read_only_arrays_are_refused(generator, draw):
    out = np.zeros(3, np.int32 if draw == "integers" else np.float32)
    out.flags.writeable = False
    with pytest.raises(InvalidArgumentError, match="read-only"):
        getattr(generator, draw)(*((5,) if draw == "integers" else ()), out=out)
