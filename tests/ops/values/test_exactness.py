"""Numbers at the ends of dtypes, and dtypes of results."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.errors import InvalidArgumentError
from tests.support.subnormals import flushes


def _has(mgr: kp.Manager, *dtypes: str) -> bool:
    needs = {"float64": "shaderFloat64", "int64": "shaderInt64", "uint64": "shaderInt64"}
    return all(needs.get(each) is None or needs[each] in mgr.enabled_features for each in dtypes)


@pytest.mark.parametrize(
    "dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool"]
)
def test_sigmoid_and_erf_of_ints(mgr: kp.Manager, dtype: str) -> None:
    kind = np.exp(np.zeros(1, dtype)).dtype
    if not _has(mgr, dtype, kind.name):
        return
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = np.unique(
        np.array([*limits, 0, 1, *((-3, 3, 8) if limits[0] else (3, 8) if limits[1] > 1 else ())], dtype)
    )
    x = mgr.tensor_t(values)
    exact = values.astype(np.float64)
    for name, expected in (
        ("sigmoid", 1 / (1 + np.exp(-np.clip(exact, -700, 700)))),
        ("erf", [math.erf(each) for each in exact]),
    ):
        found = getattr(kp.ops, name)(x)
        assert found.dtype == kind
        np.testing.assert_allclose(
            found.read().astype(np.float64), expected, rtol=2e-3 if kind.itemsize == 2 else 1e-5, atol=1e-7
        )


def test_erf_of_doubles(mgr: kp.Manager) -> None:
    if not _has(mgr, "float64"):
        return
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=20_000) * scale for scale in (1e-9, 0.1, 0.8, 1, 3, 6)])
    x = np.concatenate([x, [0.84375, 1.25, 1 / 0.35, 6, np.inf, -np.inf, 0.0, -0.0, np.nan, 1e-310]])
    found, expected = kp.ops.erf(mgr.tensor_t(x)).read(), np.array([math.erf(each) for each in x])
    assert found.dtype == np.float64
    if found[-1] == 0 and flushes(mgr):
        expected[-1] = 0
    np.testing.assert_array_less(
        np.abs(found - expected)[~np.isnan(x)], 3 * np.spacing(np.abs(expected[~np.isnan(x)]))
    )
    assert (
        np.isnan(found[np.isnan(x)]).all()
        and np.signbit(found[x == 0]).tolist() == np.signbit(x[x == 0]).tolist()
    )


def test_doubles_are_rounded_once_to_halves(mgr: kp.Manager) -> None:
    if not _has(mgr, "float64"):
        return
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16)
    between = (halves[:-1].astype(np.float64) + halves[1:].astype(np.float64)) / 2
    x = np.concatenate(
        [halves.astype(np.float64), between, np.nextafter(between, 1e9), np.nextafter(between, -1)]
    )
    x = np.concatenate([x, -x, [np.inf, -np.inf, 65519.99, 65520, 1e300, 1e-300, np.nan]])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(kp.ops.astype(mgr.tensor_t(x), "float16").read(), expected)


@pytest.mark.parametrize("a", ["int8", "uint8", "int16", "uint16", "float16", "float32", "bool"])
@pytest.mark.parametrize("b", ["int8", "uint8", "int16", "uint16", "float16", "float32", "bool"])
def test_dtypes_of_functions_of_two(mgr: kp.Manager, a: str, b: str) -> None:
    x, y = np.ones(2, a), np.ones(2, b)
    for name in ("hypot", "arctan2", "logaddexp", "copysign"):
        expected = getattr(np, name)(x, y).dtype
        found = getattr(kp.ops, name).meta(kp.TensorSpec((2,), a), kp.TensorSpec((2,), b)).dtype
        assert found == expected, name


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "float32"])
def test_dot_has_numpys_dtype(mgr: kp.Manager, dtype: str) -> None:
    if not _has(mgr, dtype):
        return
    x, y = (
        (np.array([100, 3, 1, 0]) % (2 if dtype == "bool" else 128)).astype(dtype),
        np.array([2, 1, 0, 0]).astype(dtype),
    )
    for one in (x, y * 0 if dtype != "bool" else np.zeros(4, bool)):
        with np.errstate(over="ignore"):
            expected = np.dot(one, y)
        found = kp.ops.dot(mgr.tensor_t(one), mgr.tensor_t(y))
        assert found.dtype == expected.dtype and found.item() == expected


def test_means_of_bfloat16(mgr: kp.Manager) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = mgr.tensor_t(np.arange(8).astype(bfloat16))
    for name in ("mean", "var", "std", "sum", "norm"):
        assert getattr(kp.ops, name)(x).dtype == bfloat16, name
    assert float(kp.ops.mean(x)) == 3.5


@pytest.mark.parametrize("name", ["multiply", "add", "divide"])
def test_all_numbers_of_bfloat16(mgr: kp.Manager, name: str) -> None:
    """Devices without bfloat16 in shaders, too, round as ml_dtypes does: infinities, NaN and all."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    every = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    left = every[~_is_subnormal(every)]
    right = np.random.default_rng(0).permutation(left)
    with np.errstate(all="ignore"):
        wide = getattr(np, name)(left, right)
    given = [mgr.tensor_t(each.astype(ml_dtypes.bfloat16)) for each in (left, right)]
    found = getattr(kp.ops, name)(*given).read()
    kept = ~_is_subnormal(wide)  # devices may give 0 for these
    got, expected = (each.astype(np.float32)[kept] for each in (found, wide.astype(found.dtype)))
    assert found.dtype == ml_dtypes.bfloat16
    # GLSL's quotient may be off by 2.5 ulp of float32: near a tie, by one of bfloat16.
    np.testing.assert_allclose(got, expected, 2.0**-7 if name == "divide" else 0)


def _is_subnormal(x: np.ndarray) -> np.ndarray:
    return (x != 0) & (np.abs(x) < 2.0**-126)


def test_ints_beyond_floats(mgr: kp.Manager) -> None:
    if _has(mgr, "int64"):
        big = 2**53 + 1
        with mgr.current():
            assert kp.ops.full(2, big, "int64").tolist() == [big] * 2
            assert kp.ops.full(2, 2**64 - 1, "uint64").tolist() == [2**64 - 1] * 2
            assert kp.ops.full(2, -(2**63), "int64").tolist() == [-(2**63)] * 2
            assert kp.ops.arange(big, big + 3, 1, "int64").tolist() == list(range(big, big + 3))
            assert kp.ops.arange(2**63 - 1, 2**63 - 8, -3, "int64").tolist() == list(
                range(2**63 - 1, 2**63 - 8, -3)
            )
            assert kp.ops.arange(2**64 - 4, 2**64 - 1, 2, "uint64").tolist() == [2**64 - 4, 2**64 - 2]
    with pytest.raises(InvalidArgumentError):
        kp.ops.full.meta(2, 2**64, "uint32")
    with pytest.raises(InvalidArgumentError, match="beyond all floats"):
        kp.ops.full.meta(2, 10**400)


@pytest.mark.parametrize("ends", [(-3e38, 3e38), (3e38, -3.2e38), (0, 3.4e38), (1, 1), (5, 2)])
@pytest.mark.parametrize("num", [1, 2, 5, 1000])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_between_all_numbers(
    mgr: kp.Manager, ends: tuple[float, float], num: int, endpoint: bool
) -> None:
    with mgr.current():
        found = kp.ops.linspace(*ends, num, endpoint).read()
    expected = np.linspace(*ends, num, endpoint)
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * np.spacing(np.float32(np.abs(ends).max())))
    assert found[0] == np.float32(ends[0]) and (not endpoint or num == 1 or found[-1] == np.float32(ends[1]))


@pytest.mark.parametrize("exponent", [2, 3, 4, 5, 16, -1, -2, -7])
def test_whole_powers(mgr: kp.Manager, exponent: int) -> None:
    x = np.random.default_rng(0).random(5000, dtype=np.float32) * 20 - 10
    found = kp.ops.power(mgr.tensor(x), mgr.full(x.shape, exponent)).read()
    exact = x.astype(np.float64) ** exponent
    found, exact = found[np.abs(exact) > 1e-37], exact[np.abs(exact) > 1e-37]  # some devices have no less
    assert (
        np.abs(found - exact) <= max(abs(exponent), 1) * np.spacing(np.abs(exact).astype(np.float32))
    ).all()
    assert kp.ops.power(mgr.tensor([10]), mgr.tensor([3])).tolist() == [1000]


@pytest.mark.parametrize("shape", [(20_003, 3), (3, 20_003), (300_000,), (2, 300, 7)])
def test_first_calls_try_nothing_dear_on_processors(mgr: kp.Manager, shape: tuple[int, ...]) -> None:
    """Workgroups with barriers take seconds for many lines there."""
    if mgr.get_device_properties()["type"] != "cpu" or np.prod(shape) <= 5000:
        return
    x = np.random.default_rng(0).random(shape, dtype=np.float32)
    for name in ("sum", "cumsum", "argmax", "var"):
        operation = getattr(kp.ops, name)
        np.testing.assert_allclose(
            operation(mgr.tensor(x), axis=0).read(), getattr(np, name)(x, axis=0), rtol=1e-3
        )
        if name != "argmax" and shape[0] == 3:  # as told
            found = operation.variant("shared")(mgr.tensor(x[:, :500]), axis=0).read()
            np.testing.assert_allclose(found, getattr(np, name)(x[:, :500], axis=0), rtol=1e-3)
