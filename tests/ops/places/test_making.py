"""New tensors: filled, ranges, diagonals, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

ops = kp.ops


def check(got, expected, dtype):
    assert isinstance(got, kp.Tensor) and got.dtype == dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got.read(), expected.astype(dtype))


DTYPES = ["float32", "int32", "uint32", "int8", "uint8", "int16", "uint16", "float16"]
WIDE = {"float64": "shaderFloat64", "int64": "shaderInt64", "uint64": "shaderInt64"}


@pytest.fixture(params=[*DTYPES, *WIDE])
def dtype(request, mgr):
    name = request.param
    if name in WIDE and WIDE[name] not in mgr.enabled_features:
        with pytest.raises(kp.UnimplementedError, match=f"dtype is {name}, which this device does not have"):
            ops.full(2, 1, name)
        pytest.skip(f"the device lacks {WIDE[name]}")
    return name


def test_each_dtype(dtype):
    low = 0 if dtype.startswith("u") else -100
    check(ops.full((3, 2), low + 7, dtype), np.full((3, 2), low + 7), dtype)
    check(ops.arange(low, 90, 7, dtype), np.arange(low, 90, 7), dtype)
    check(ops.arange(90, low, -7, dtype), np.arange(90, low, -7), dtype)
    check(ops.eye(4, 5, -1, dtype), np.eye(4, 5, -1), dtype)


def test_wide_ints(mgr, needs):
    needs(mgr, "shaderInt64")
    check(ops.arange(-(2**52), -(2**52) + 9, 3, int), np.arange(-(2**52), -(2**52) + 9, 3), "int64")
    check(ops.full(2, 2**53, "uint64"), np.full(2, 2**53), "uint64")


def test_shapes_and_bools():
    check(ops.full((), 2.5), np.full((), 2.5), "float32")
    check(ops.full((0, 3), 2.5), np.full((0, 3), 2.5), "float32")
    check(ops.full(3, 2, bool), np.full(3, True), "bool")
    check(ops.eye(3, dtype=np.bool_), np.eye(3), "bool")
    check(ops.eye(0), np.eye(0), "float32")
    check(ops.arange(5), np.arange(5), "float32")
    check(ops.arange(3, 1), np.arange(3, 1), "float32")
    assert np.isnan(ops.full(2, np.nan).read()).all()


def test_more_elements_than_one_axis_of_a_grid_has():
    n = 65_536 * 64 + 3
    check(ops.arange(n, dtype="int32"), np.arange(n), "int32")


@pytest.mark.parametrize(
    "start, stop, num", [(0, 1, 5), (-3, 7.3, 1001), (1e30, -1e30, 7), (2, 3, 1), (0, 1, 0)]
)
def test_linspace(start, stop, num):
    for endpoint in (True, False):
        got = ops.linspace(start, stop, num, endpoint).read()
        exact = np.linspace(start, stop, num, endpoint)
        assert got.shape == exact.shape and got.dtype == np.float32
        assert (np.abs(got - exact) <= 4 * 2.0**-24 * max(abs(start), abs(stop))).all()
        if endpoint and num > 1:
            assert (got[0], got[-1]) == (np.float32(start), np.float32(stop))


@pytest.mark.parametrize(
    "start, stop, num, endpoint",
    [(0, 1 + 2j, 5, True), (-3j, 7, 101, False), (1j, 1j, 1, True), (0, 1j, 0, True)],
)
def test_linspace_of_complex_numbers(mgr, start, stop, num, endpoint):
    exact = np.linspace(start, stop, num, endpoint)
    got = ops.linspace(start, stop, num, endpoint)
    assert got.dtype == np.complex64 and got.shape == exact.shape
    np.testing.assert_allclose(got.read(), exact, atol=4e-6)
    operation = ops.linspace.op(start, stop, num, endpoint, dtype="complex64")
    mgr.sequence().record(operation).eval()
    np.testing.assert_array_equal(operation.results[0].read(), got.read())
    assert ops.linspace(0, 1, 3, dtype="complex64").tolist() == [0, 0.5, 1]


def test_values_are_no_part_of_the_kernels(mgr):
    for name in ("arange", "full", "linspace"):
        getattr(ops, name).cache_clear()
    for n in range(1, 6):
        assert ops.arange(n, 2 * n).tolist() == list(range(n, 2 * n))
        assert ops.full(n, n).tolist() == [n] * n
        assert ops.linspace(0, n, 3).tolist() == [0, n / 2, n]
    assert {getattr(ops, name).cache_info().misses for name in ("arange", "full", "linspace")} <= {1, 5}


def test_ints_beyond_the_default_dtype():
    """They are refused, and rounded only if the dtype is given."""
    start = 2**24 - 1
    assert ops.arange(start, start + 2).tolist() == [start, start + 1]
    assert ops.arange(start, start + 3, dtype="int32").tolist() == [start, start + 1, start + 2]
    assert ops.arange(start, start + 3, dtype="float32").tolist() == [start, start + 1, start + 1]


def test_recorded_and_into_given_memory(mgr):
    operation = ops.arange.op(4, 0, -1)
    mgr.sequence().record(operation).eval()
    assert operation.results[0].tolist() == [4, 3, 2, 1]
    out = mgr.zeros(3)
    assert ops.linspace(0, 1, 3, out=out) is out and out.tolist() == [0, 0.5, 1]
    array = np.zeros(3, np.float32)
    assert ops.arange(3, out=array) is array and array.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ops.full(2, 2.5, "int32"), "fill_value is 2.5, and dtype is int32"),
        (lambda: ops.full(2, 300, "uint8"), "fill_value is 300, and uint8 has 0 to 255"),
        (lambda: ops.full(-1, 3), "negative length"),
        (lambda: ops.full(2, 2**64, "int64"), "fill_value is 18446744073709551616, and int64 has"),
        (lambda: ops.full(2, 1, "complex64"), "make real numbers"),
        (lambda: ops.arange(1, 5, 0), "a step that is not 0"),
        (lambda: ops.arange(0, np.inf), "give finite numbers"),
        (lambda: ops.arange(0, 300, dtype="uint8"), "the last number is 299, and uint8 has 0 to 255"),
        (lambda: ops.arange(2**33), "count with 32 bits"),
        (lambda: ops.arange(2**24 + 2), "16777217, and float32, the default.*give dtype='int32'"),
        (lambda: ops.arange(-(2**24) - 1, 0, 2**24), "give dtype='int32'"),
        (lambda: ops.linspace(0, 1, -1), "num -1"),
        (lambda: ops.linspace(0, 1, dtype=int), "it gives floats"),
        (lambda: ops.linspace(0, 1j, dtype="float32"), "the numbers are complex"),
        (lambda: ops.linspace(0, 1j, donate=True), "leave donate= out"),
        (lambda: ops.eye(-1), "negative length"),
        (lambda: ops.eye(2, [1, 2]), "give one int, the number of columns"),
    ],
)
def test_refusals(mgr, needs, call, words):
    needs(mgr, "shaderInt64")
    with pytest.raises(kp.InvalidArgumentError, match=words):
        call()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("endpoint", [True, False])
def test_logspace_and_geomspace(mgr, needs, dtype, endpoint):
    if dtype == "float64":
        needs(mgr, "shaderFloat64")
    far = 4 if dtype == "float16" else 30
    eps = np.finfo(dtype).eps
    wide = dtype != "float64" and "shaderFloat64" in mgr.enabled_features
    allowed = 4 * eps if wide else (16 + 4 * 2.303 * far) * min(eps, 2.0**-23) + eps
    for args, named in [((-far, far, 60), {}), ((0, 3, 1), {}), ((2, 5, 7), {"base": 2.5}), ((1, 2, 0), {})]:
        got = kp.ops.logspace(*args, endpoint=endpoint, dtype=dtype, **named)
        want = np.logspace(*args, endpoint=endpoint, **named)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.read(), want, rtol=allowed, atol=1e-7 * (dtype == "float16"))
    for args in [(10.0**-far, 10.0**far, 41), (-3, -700, 5), (5, 2, 1), (8, 1, 4)]:
        got, want = kp.ops.geomspace(*args, endpoint, dtype), np.geomspace(*args, endpoint)
        np.testing.assert_allclose(got.read(), want, rtol=allowed, atol=1e-7 * (dtype == "float16"))
        assert got.read()[0] == np.dtype(dtype).type(args[0])
        assert not endpoint or args[2] == 1 or got.read()[-1] == np.dtype(dtype).type(args[1])


def test_spaces_that_are_refused():
    for call, match in [
        (lambda: kp.ops.logspace(0, 1, base=0), "base is 0"),
        (lambda: kp.ops.logspace(0, 1, dtype="int32"), "use kp.ops.astype after"),
        (lambda: kp.ops.geomspace(-1, 1), "numbers of one sign"),
        (lambda: kp.ops.geomspace(0, 1), "neither of them 0"),
        (lambda: kp.ops.geomspace(1, 2, -1), "num -1"),
    ]:
        with pytest.raises(kp.InvalidArgumentError, match=match):
            call()
