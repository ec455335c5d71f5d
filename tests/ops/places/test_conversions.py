"""Operations that convert on their way, between all dtypes, against NumPy; and complex128."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import kompute_py as kp

pytestmark = [pytest.mark.each_driver, pytest.mark.usefixtures("current")]

ops = kp.ops
DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
    "float64", "complex64",
]  # fmt: skip
EVERY = [*map(np.dtype, DTYPES), np.dtype(np.complex128), np.dtype(ml_dtypes.bfloat16)]
WIDE = {
    "int64": "shaderInt64",
    "uint64": "shaderInt64",
    "float64": "shaderFloat64",
    "complex128": "shaderFloat64",
}
WANTED = [each for each in EVERY if each.name != "bfloat16"]


def numbers(dtype):
    """Numbers of the dtype that others have too, but for parts of complex ones."""
    if dtype.kind == "c":
        return np.array([3 - 2j, 0, -1 + 5j], dtype)
    return np.array([3, 0, 1 if dtype.kind in "ub" else -1]).astype(dtype)


def check(got, expected):
    got = np.asarray(got)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_joined_arrays_take_the_common_dtype(mgr, needs, wanted):
    if wanted.name in WIDE:
        needs(mgr, WIDE[wanted.name])
    narrower = [e for e in EVERY[:-1] if np.promote_types(e, wanted) == wanted and e.name not in WIDE]
    arrays = [numbers(wanted), *map(numbers, narrower)]
    check(ops.concatenate(arrays), np.concatenate(arrays))
    check(ops.stack(arrays, axis=1), np.stack(arrays, axis=1))


@pytest.mark.parametrize("wanted", ["int8", "int64", "float16", "float32", "complex64", "complex128"])
def test_values_that_are_put_are_converted(mgr, needs, wanted):
    if wanted in WIDE:
        needs(mgr, WIDE[wanted])
    x = np.zeros(4, wanted)
    places = np.array([2, 0, 1], np.int32)
    for given in EVERY:
        if (given.name in WIDE and WIDE[given.name] not in mgr.enabled_features) or not np.can_cast(
            np.float16 if given.name == "bfloat16" else given, wanted, "same_kind"
        ):
            continue
        values = numbers(given) if given.kind == "c" else (numbers(given) * 43).astype(given)
        expected = x.copy()
        expected[places] = values.astype(wanted)
        check(ops.put(x, places, values, "clip"), expected)


def test_float64_put_into_float16_is_rounded_once(mgr, needs):
    needs(mgr, "shaderFloat64")
    values = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-40])
    check(ops.put(np.zeros(3, np.float16), np.arange(3), values, "clip"), values.astype(np.float16))


def test_complex128_is_multiplied_as_complex(mgr, needs):
    needs(mgr, "shaderFloat64")
    rng = np.random.default_rng(1)
    a = rng.normal(size=(9, 20)) + 1j * rng.normal(size=(9, 20))
    b = rng.normal(size=(20, 7)) + 1j * rng.normal(size=(20, 7))
    for left, right in ((a, b), (a.astype(np.complex64), b), (a, b.real.copy()), (a.imag.copy(), b)):
        for got in (ops.matmul(left, right), ops.einsum("ij,jk", left, right)):
            assert got.dtype == np.complex128
            np.testing.assert_allclose(got, left @ right, rtol=1e-13, atol=1e-12)
    long_ = np.tile(a, (1, 1000))  # several parts
    np.testing.assert_allclose(ops.inner(long_, long_), long_ @ long_.T, rtol=1e-9, atol=1e-9)


def test_conversions_and_truth_of_complex128(mgr, needs):
    needs(mgr, "shaderFloat64")
    a = np.array([[1 + 2j, 0], [-3j, 4]])
    check(ops.astype(a, "complex64"), a.astype(np.complex64))
    check(ops.astype(a, "bool"), a != 0)
    check(ops.astype(a, "complex128"), a)
    check(ops.logical_and(a, np.array([1j, 1])), np.logical_and(a, np.array([1j, 1])))
    for reduce in ("any", "all", "count_nonzero"):
        for axis in (None, 0):
            check(getattr(ops, reduce)(a, axis=axis), np.asarray(getattr(np, reduce)(a, axis=axis)))
    check(ops.astype(np.float32([1]), "complex128"), np.array([1 + 0j]))


def test_devices_without_doubles_refuse_complex128(mgr):
    if "shaderFloat64" in mgr.enabled_features:
        pytest.skip("the device has shaderFloat64")
    a = np.array([[1 + 2j]])
    for call in (
        lambda: ops.logical_not(a),
        lambda: ops.matmul(a, a),
        lambda: ops.any(a),
        lambda: ops.sum(a),
    ):
        with pytest.raises(kp.UnimplementedError, match="shaderFloat64"):
            call()


@pytest.mark.parametrize(
    "dtype, value",
    [
        ("float64", 0.1), ("complex128", 0.1), ("int64", 2**62 + 1), ("int64", -(2**63)),
        ("uint64", 2**64 - 1), ("int32", 2**31 - 1), ("int8", -128), ("float16", 0.1),
    ],
)  # fmt: skip
def test_pad_with_a_number_that_is_exact(mgr, needs, dtype, value):
    if dtype in WIDE:
        needs(mgr, WIDE[dtype])
    x = np.ones((2, 1), dtype)
    check(ops.pad(x, 1, constant_values=value), np.pad(x, 1, constant_values=value))


@pytest.mark.parametrize("k", [-(2**31), -(2**31) + 2, 2**31 - 1])
def test_triangles_far_beyond_the_matrix(k):
    x = np.ones((3, 4), np.float32)
    check(ops.tril(x, k), np.tril(x, k))
    check(ops.triu(x, k), np.triu(x, k))
