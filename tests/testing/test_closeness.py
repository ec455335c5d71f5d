"""kompute_py.testing.assert_allclose."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.testing import assert_allclose

EPS = {np.float16: 2.0**-10, np.float32: 2.0**-23, np.float64: 2.0**-52}
RTOL = {np.float16: 2e-3, np.float32: 1e-5, np.float64: 1e-12}


@pytest.mark.parametrize("dtype", RTOL)
def test_tolerances_by_dtype(dtype):
    for size in (1.0, 1000.0, 3e-3):
        wanted = np.full(5, size, dtype)
        inside, outside = wanted.copy(), wanted.copy()
        inside[3] = dtype(size * (1 + RTOL[dtype] / 2))
        outside[3] = dtype(size * (1 + RTOL[dtype] * 2))
        assert_allclose(inside, wanted)
        with pytest.raises(AssertionError, match=r"1 of 5 elements .*\nworst at \[3\]"):
            assert_allclose(outside, wanted)


def test_the_coarser_dtype_decides_and_python_numbers_follow():
    third = np.float16(1 / 3)
    assert_allclose(np.array([third]), np.array([1 / 3]))
    assert_allclose(np.array([third]), [1 / 3])
    assert_allclose(np.array([third]), 1 / 3)
    with pytest.raises(AssertionError, match="of float32"):
        assert_allclose(np.float32([third]), [1 / 3])
    with pytest.raises(AssertionError, match="of float64"):
        assert_allclose(np.array([1 / 3 + 1e-9]), [1 / 3])
    with pytest.raises(AssertionError, match="of float64"):
        assert_allclose(np.array([3]), [3 + 1e-9])


def test_special_values():
    x = np.float32([np.nan, np.inf, -np.inf, 0, 1e-45])
    assert_allclose(x, x)
    flushed = np.float32([np.nan, np.inf, -np.inf, -0.0, 0])
    assert_allclose(x, flushed)
    with pytest.raises(AssertionError, match=r"worst at \[4\]: 1e-45, expected 0.0 \(off by .*, 1 ulps"):
        assert_allclose(x, flushed, atol=0)
    for at, other in ((0, 1), (1, -np.inf), (1, 3e38), (2, np.nan), (3, np.inf), (3, 1e-30), (4, np.nan)):
        wrong = x.copy()
        wrong[at] = other
        for pair in ((x, wrong), (wrong, x)):
            with pytest.raises(AssertionError, match=rf"1 of 5 .*\nworst at \[{at}\]"):
                assert_allclose(*pair)


def test_whole_numbers_are_compared_exactly():
    big = np.array([2**63 - 1, 2**62], np.int64)
    assert_allclose(big, big.astype(np.uint64))
    with pytest.raises(AssertionError, match=r"off by 1\)"):
        assert_allclose(big, big.astype(np.uint64) + np.uint64([1, 0]))
    with pytest.raises(AssertionError, match=r"worst at \[0\].*off by 1\)"):
        assert_allclose(big, big - np.array([1, 0]))
    assert_allclose(big, big - 1, rtol=1e-15)
    with pytest.raises(AssertionError):
        assert_allclose(np.array([True, False]), [True, True])
    with pytest.raises(AssertionError, match=r"the only element: 2, expected 3"):
        assert_allclose(2, 3)


def test_the_worst_element_is_the_one_furthest_beyond_its_tolerance():
    wanted = np.float32([[1, 1000], [2, 3]])
    found = wanted + np.float32([[0.01, 0.1], [0, 0]])
    with pytest.raises(AssertionError, match=r"2 of 4 elements .*\nworst at \[0, 0\]: 1.01") as caught:
        assert_allclose(found, wanted, name="blurred")
    assert str(caught.value).startswith("blurred: ")
    with pytest.raises(AssertionError, match=r"worst at \[0, 1\]: 1000.1"):
        assert_allclose(found, wanted, rtol=0, atol=0)


def test_complex_numbers_and_small_floats():
    z = np.array([1 + 2j, 3 - 1e-7j], np.complex64)
    assert_allclose(z, [1 + 2j, 3])
    with pytest.raises(AssertionError, match="of float32"):
        assert_allclose(z, [1 - 2j, 3])
    dtypes = pytest.importorskip("ml_dtypes")
    b = np.array([1.0, 2.0, 3.0], dtypes.bfloat16)
    assert_allclose(b, [1.01, 2.0, 3.0])
    with pytest.raises(AssertionError, match=r"worst at \[0\]: 1, expected 1.05 .*6.4 ulps"):
        assert_allclose(b, [1.05, 2.0, 3.0])
    assert_allclose(np.array([1.0], dtypes.float8_e4m3fn), [1.125])


def test_tensors_images_and_views_are_read(mgr):
    t = mgr.tensor([1, 2, 3, 4])
    mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpFill([t], 7.0)).eval()
    assert_allclose(t, 7)
    assert_allclose(t[::2], [7, 7])
    assert_allclose([7, 7, 7, 7], t)
    assert_allclose(mgr.image(np.ones((2, 3), np.float32)), np.ones((2, 3)))
    with pytest.raises(AssertionError, match="every element is wrong"):
        assert_allclose(t, 8)


@pytest.mark.parametrize("value", ["text", None, [{}], np.array(["a"]), np.zeros(2, "M8[s]")])
def test_what_are_not_numbers(value):
    with pytest.raises(kp.ArgumentTypeError, match=r"actual is .* give numbers"):
        assert_allclose(value, 1)
