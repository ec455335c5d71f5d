"""Which elements an index names: against NumPy's own indexing of a real array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from kompute_py._base.regions import locate, reshaped, retyped

pytestmark = pytest.mark.own_driver  # none at all


@given(st.data())
def test_an_index_names_what_numpy_names(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=5))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    array = np.arange(int(np.prod(shape))).reshape(shape)
    keys = key if isinstance(key, tuple) else (key,)
    # With an Ellipsis the result is an array even where every axis has an int.
    part = array[keys if any(each is Ellipsis for each in keys) else (*keys, ...)]
    if part.size == 0:
        assert locate(shape, key, "x", "fix")[1] == part.shape
    elif not part.flags.c_contiguous:
        with pytest.raises(kp.UnimplementedError, match=r"not dense.*fix"):
            locate(shape, key, "x", "fix")
    else:
        first, found = locate(shape, key, "x", "fix")
        assert found == part.shape
        np.testing.assert_array_equal(array.reshape(-1)[first : first + part.size], part.reshape(-1))


def test_shapes_beyond_any_memory():
    first, shape = locate((2**20, 2**20, 8), np.s_[2**19, 5:7], "x", "fix")
    assert (first, shape) == ((2**39 + 5) * 8, (2, 8))


@pytest.mark.parametrize("key", [[1, 2], np.array([True, False]), 1.5, "a", (0, [1]), True])
def test_other_indices_are_refused_by_type(key):
    with pytest.raises(kp.ArgumentTypeError, match=r"t\.read\(\)"):
        locate((4, 4), key, "x", "fix")


@pytest.mark.parametrize("key", [4, -5, (0, 4), (0, 0, 0)])
def test_indices_beyond_the_shape(key):
    with pytest.raises(kp.OutOfRangeError, match="x has no"):
        locate((4, 4), key, "x", "fix")


def test_reshaped():
    assert reshaped((2, 3), (3, -1), 6, "x") == (3, 2)
    assert reshaped((6,), (), 1, "x") == ()
    for wanted in ((4,), (-1, -1), (0, 6), (-2, 3), (4, -1)):
        with pytest.raises(kp.InvalidArgumentError, match="x "):
            reshaped((2, 3), wanted, 6, "x")


@given(hnp.array_shapes(max_side=8), st.sampled_from("bhilfdFD"), st.sampled_from("bhilfdFD"))
def test_retyped_as_ndarray_view(shape, old, new):
    array = np.zeros(shape, old)
    try:
        wanted = array.view(new).shape
    except ValueError:
        with pytest.raises(kp.InvalidArgumentError):
            retyped(shape, array.dtype, np.dtype(new), "x")
    else:
        assert retyped(shape, array.dtype, np.dtype(new), "x") == wanted


@pytest.mark.parametrize("key", [slice("a", "b"), slice(0.5, 2), slice(None, None, 0), (0, slice("a", None))])
@pytest.mark.parametrize("shape", [(8,), (4, 8)])
def test_slices_of_what_is_no_int(shape, key):
    with pytest.raises(kp.KomputeError, match=r"slices take ints|too many indices"):
        locate(shape, key, "it", "fix")


def test_more_axes_than_an_array_can_have():
    with pytest.raises(kp.InvalidArgumentError, match="70 axes"):
        reshaped((8,), (1,) * 69 + (8,), 8, "it")
