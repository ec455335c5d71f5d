"""Which elements an index names: against NumPy's own indexing of a real array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from kompute_py._memory.regions import locate, reshaped, retyped, runs_of, transposed

pytestmark = pytest.mark.own_driver  # none at all


def drawn_part(data, array):
    """A basic index and the part of `array` that NumPy gives for it."""
    key = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))
    keys = key if isinstance(key, tuple) else (key,)
    # With an Ellipsis the result is an array even if every axis has an int.
    return key, array[keys if any(each is Ellipsis for each in keys) else (*keys, ...)]


def elements(count, located):
    """The elements that a located part consists of, each as its number."""
    first, shape, strides = located
    if strides is None:
        return np.arange(first, first + int(np.prod(shape))).reshape(shape)
    return np.lib.stride_tricks.as_strided(np.arange(count)[first:], shape, [8 * each for each in strides])


@settings(deadline=None)
@given(st.data())
def test_an_index_names_what_numpy_names(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=5))
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    key, part = drawn_part(data, array)
    located = locate(shape, key, "x")
    assert located[1] == part.shape and (located[2] is None) == (part.flags.c_contiguous or not part.size)
    if not part.size:
        return
    np.testing.assert_array_equal(elements(array.size, located), part)
    # And a part of this part.
    first, found, strides = located
    key, inner = drawn_part(data, part)
    again = locate(found, key, "x", strides)
    assert again[1] == inner.shape
    if inner.size:
        np.testing.assert_array_equal(elements(array.size, (first + again[0], *again[1:])), inner)


@given(st.data(), st.sampled_from([1, 2, 3, 8]))
def test_runs_are_the_bytes_of_the_part_in_order(data, itemsize):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=5))
    count = int(np.prod(shape))
    array = np.arange(count, dtype=np.int64).reshape(shape)
    key, part = drawn_part(data, array)
    located = locate(shape, key, "x")
    if data.draw(st.booleans()):
        first, found, strides = located
        located, part = transposed(found, first, strides), part.T
    if located[2] is None:
        return
    runs = runs_of(*located, itemsize)
    begins = [runs.offset]
    for number, step in runs.axes:
        begins = [begin + i * step for begin in begins for i in range(number)]
    assert begins == sorted(set(begins))  # each byte once, in the order of memory
    packed = np.concatenate([np.arange(begin, begin + runs.length) for begin in begins])
    numbers = packed.reshape(-1, itemsize)[:, 0] // itemsize
    in_order = numbers.reshape([part.shape[axis] for axis in runs.order])
    np.testing.assert_array_equal(runs.unsorted(in_order), part)
    np.testing.assert_array_equal(runs.sorted(part), in_order)
    assert all(step > runs.length for _, step in runs.axes[-1:])  # runs are as long as they can be


def test_shapes_beyond_any_memory():
    assert locate((2**20, 2**20, 8), np.s_[2**19, 5:7], "x") == ((2**39 + 5) * 8, (2, 8), None)
    assert locate((2**20, 2**20, 8), np.s_[:, 5, 2], "x") == (42, (2**20,), (2**23,))


@pytest.mark.parametrize("key", [[1, 2], np.array([True, False]), 1.5, "a", (0, [1]), True])
def test_other_indices_are_refused_by_type(key):
    with pytest.raises(kp.ArgumentTypeError, match=r"t\.read\(\)"):
        locate((4, 4), key, "x")


@pytest.mark.parametrize("key", [4, -5, (0, 4), (0, 0, 0)])
def test_indices_beyond_the_shape(key):
    with pytest.raises(kp.OutOfRangeError, match="x has no"):
        locate((4, 4), key, "x")


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
        locate(shape, key, "it")


def test_more_axes_than_an_array_can_have():
    with pytest.raises(kp.InvalidArgumentError, match="70 axes"):
        reshaped((8,), (1,) * 69 + (8,), 8, "it")
