"""The bytes of plain numbers: those that the general rules give, for every dtype and value."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kompute_py as kp
from kompute_py._base import arrays
from kompute_py._base.arrays import packed

pytestmark = pytest.mark.own_driver

DTYPES = [np.dtype(code) for code in ("?", *"bBhHiIqQlLefdFD", "V4", "i4,f4")]
DTYPES += [np.dtype(code).newbyteorder() for code in ("i4", "f8")]
POWERS = [2**n + d for n in (0, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 54, 62, 63, 64, 70) for d in (-1, 0, 1)]
INTS = sorted({sign * each for each in POWERS for sign in (-1, 1)})
# The ends of each float's range, halfway between two numbers, subnormal numbers.
EDGES = [65504.0, 65519.99, 65520.0, 3.4028234663852886e38, 3.4028235677973366e38, 1.7976931348623157e308]
EDGES += [0.1, 1e-45, 7e-46, 5e-324, 2.0**-24, 2.0**-25, 1 + 2.0**-11, 1 + 2.0**-24, 1 + 3 * 2.0**-24]
FLOATS = [0.0, -0.0, 1.0, 2.0, 1e300, math.inf, -math.inf, math.nan, *EDGES, *[-each for each in EDGES]]
OTHERS = [True, False, 1j, None, "1", b"12", (1, 2), [1], np.array(3.0), np.array([1, 2]), np.ma.masked]
SCALARS = [np.dtype(code).type(value) for code in "bBhHiIqQefd" for value in (0, 1, 100)]
SCALARS += [np.float32("nan"), np.float64(1e300), np.float32(-0.0), np.int64(-1), np.bool_(True)]


def general(monkeypatch: pytest.MonkeyPatch, call: Any, *arguments: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "packed", lambda value, dtype: None)
        return outcome(call, *arguments)


def outcome(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except kp.KomputeError as error:
        return type(error), str(error)


def check(monkeypatch: pytest.MonkeyPatch, value: Any, dtype: np.dtype[Any]) -> None:
    for call, rest in ((arrays.element_bytes, ("It",)), (arrays.fill_bytes, ((3,),))):
        expected = general(monkeypatch, call, value, dtype, *rest)
        assert outcome(call, value, dtype, *rest) == expected, (call, value, dtype)
    made = packed(value, dtype)
    if made is not None:
        assert expected == made


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_plain_numbers_give_the_bytes_of_the_general_rules(monkeypatch):
    for dtype, value in itertools.product(DTYPES, [*INTS, *FLOATS, *SCALARS, *OTHERS]):
        check(monkeypatch, value, dtype)


@given(value=st.one_of(st.integers(), st.floats()), position=st.integers(0, len(DTYPES) - 1))
def test_any_number_gives_the_bytes_of_the_general_rules(value, position):
    with pytest.MonkeyPatch.context() as patch:
        check(patch, value, DTYPES[position])


def test_the_usual_numbers_take_one_step():
    for dtype in map(np.dtype, "bBhHiIqQefd"):
        for value in (0, 1, 100, dtype.type(1)):
            assert packed(value, dtype) == np.full((), value, dtype).tobytes()
    for dtype in map(np.dtype, "efd"):
        assert packed(0.5, dtype) == np.full((), 0.5, dtype).tobytes()
    big = 2**53 + 1
    assert packed(big, np.dtype(np.int64)) is not None and packed(big, np.dtype(np.float32)) is None


def test_types_stand_for_their_dtypes():
    for dtype in (np.dtype(code) for code in "?bBhHiIqQlLefdFD"):
        assert arrays.to_element(dtype.type) == (dtype, ()) == arrays.to_element(dtype)
    for each in (float, int, bool, complex):
        assert arrays.to_element(each) == (np.dtype(each), ())
    assert arrays.to_element("3f4") == (np.dtype(np.float32), (3,))

    class Odd(np.float32):
        pass

    with pytest.raises(kp.ArgumentTypeError):
        arrays.to_element(str)
    assert outcome(arrays.to_element, Odd)[0] in (np.dtype(np.float32), kp.ArgumentTypeError)


@pytest.mark.parametrize(
    "shape",
    [0, 1, 7, True, np.int64(3), (), (2, 3), [2, 3], (np.uint8(2), 3), range(3), iter((1, 2))],
    ids=repr,
)
def test_shapes(shape):
    expected = shape
    if not isinstance(shape, (int, np.integer)):
        expected = tuple(shape) if not hasattr(shape, "__next__") else (1, 2)
    else:
        expected = (int(shape),)
    made = arrays.as_shape(shape)
    assert made == expected and all(type(each) is int for each in made)


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        (-1, kp.InvalidArgumentError), ((2, -1), kp.InvalidArgumentError), (1 << 1100, kp.OutOfRangeError),
        ((1, 1 << 1100), kp.OutOfRangeError), ((1,) * 65, kp.InvalidArgumentError),
        ((1,) * 2000, kp.InvalidArgumentError), (1.0, kp.ArgumentTypeError),
        ((1, None), kp.ArgumentTypeError), ({1, 2}, kp.ArgumentTypeError), ({1: 2}, kp.ArgumentTypeError),
        ("12", kp.ArgumentTypeError),
    ],
)  # fmt: skip
def test_shapes_that_are_refused(shape, error):
    with pytest.raises(error):
        arrays.as_shape(shape)
