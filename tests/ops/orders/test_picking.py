"""Tensors indexed with arrays and masks, and written there, against NumPy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from tests.support.sampling import sampled

DTYPES = ["f4", "i4", "u1", "?", "f2", "F"]
HUGE = np.broadcast_to(np.int32(1), (2**40,))


def key_for(chosen: random.Random, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A key of any parts, with at least one array."""
    key: list[Any] = []
    axis = 0
    while axis < len(shape):
        n, kind = shape[axis], chosen.random()
        if kind < 0.08:
            key.append(None)
        elif kind < 0.14 and Ellipsis not in [each for each in key if not isinstance(each, np.ndarray)]:
            key.append(Ellipsis)
            axis += chosen.randint(0, len(shape) - axis)
        elif kind < 0.3:
            key.append(slice(chosen.choice([None, 1, -2]), None, chosen.choice([None, 2, -1])))
            axis += 1
        elif kind < 0.4 and n:
            key.append(chosen.choice([int, np.int64, np.array])(chosen.randint(-n, n - 1)))
            axis += 1
        elif kind < 0.75 and n:
            places = rng.integers(-n, n, chosen.choice([(3,), (3,), (1,), (2, 3), (2, 1), ()]))
            key.append(
                places.astype(chosen.choice(["i4", "i2", "u1"] if (places >= 0).all() else ["i4", "i2"]))
            )
            axis += 1
        elif kind < 0.96:
            span = chosen.randint(1, len(shape) - axis)
            mask = np.zeros(shape[axis : axis + span], bool)
            mask.reshape(-1)[rng.permutation(mask.size)[: chosen.choice([0, 1, 3])]] = True
            key.append(mask)
            axis += span
        else:
            key.append(chosen.choice([True, False]))
    return (*key, [0] * 3) if not key and shape == () else tuple(key)


@pytest.mark.parametrize("seed", range(sampled(2, 40)))
def test_any_key(mgr, seed):
    chosen, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(60):
        shape = tuple(
            chosen.choice([1, 2, 3, 4, 0 if chosen.random() < 0.1 else 5])
            for _ in range(chosen.randint(1, 4))
        )
        x = rng.integers(0, 100, (*shape[:-1], shape[-1] * 2)).astype(chosen.choice(DTYPES))
        t = mgr.tensor_t(x)
        if chosen.random() < 0.5:
            x, t = x[..., ::2], t[..., ::2]
        else:
            x = x[..., : shape[-1]].copy()
            t = mgr.tensor_t(x)
        key = key_for(chosen, rng, shape)
        theirs = tuple(
            mgr.tensor_t(each)
            if isinstance(each, np.ndarray) and each.dtype != np.int64 and chosen.random() < 0.4
            else each
            for each in key
        )
        try:
            expected = np.asarray(x[key])
        except IndexError:
            with pytest.raises((kp.OutOfRangeError, kp.InvalidArgumentError)):
                t[theirs]
            continue
        got = np.asarray(t[theirs].read())
        assert got.shape == expected.shape and got.dtype == expected.dtype, (shape, key)
        np.testing.assert_array_equal(got, expected, str((shape, key)))
        values = rng.integers(0, 100, chosen.choice([expected.shape, (), expected.shape[-1:]])).astype(
            x.dtype
        )
        wanted = x.copy()
        wanted[key] = values
        t[theirs] = chosen.choice([values, mgr.tensor_t(values)])
        np.testing.assert_array_equal(np.asarray(t.read()), wanted, str((shape, key)))


def test_lists_ranges_and_repeated_places(mgr):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    t = mgr.tensor_t(x)
    for key in ([2, 0], [], [True, False, True], range(2), ((0, 1),), ([0, 1], [1, 2])):
        np.testing.assert_array_equal(t[key].read(), x[key])
    copy = t[[0]]
    t[[0, 0, 0], 1] = [5, 6, 7]
    assert t.read()[0, 1] == 7 and copy.tolist() == [[0, 1, 2, 3]]
    t[x > 100] = 1
    t[x > 8] = mgr.tensor_t(np.float32([1, 2, 3]))
    assert t.read()[2].tolist() == [8, 1, 2, 3]
    t[[0, 1]] = t[1]
    assert t.read()[:2].tolist() == [[4, 5, 6, 7]] * 2
    t[[2]] = np.ones((1, 1, 4))
    assert t.read()[2].tolist() == [1] * 4


def test_wrong_keys_and_values_change_nothing(mgr):
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    t = mgr.tensor_t(x)
    gone = mgr.zeros(3, np.int32)
    gone.destroy()
    with kp.Manager() as other:
        for key, error in (
            ([0, 3], kp.OutOfRangeError),
            (mgr.tensor_t(np.int32([0, -4])), kp.OutOfRangeError),
            (np.ones((3, 3), bool), kp.OutOfRangeError),
            ((0, 0, [0]), kp.OutOfRangeError),
            (([1, 2], [0, 1, 2]), kp.InvalidArgumentError),
            (np.float32([0]), kp.ArgumentTypeError),
            ([[0], [1, 2]], kp.InvalidArgumentError),
            (np.ma.masked_array([0, 1], [True, False]), kp.ArgumentTypeError),
            (other.tensor_t(np.int32([0])), kp.InvalidArgumentError),
            (gone, kp.FailedPreconditionError),
            (HUGE, kp.InvalidArgumentError),
            (np.broadcast_to(np.True_, HUGE.shape), kp.OutOfRangeError),
        ):
            for use in (lambda key=key: t[key], lambda key=key: t.__setitem__(key, 1)):
                with pytest.raises(error):
                    use()
        for value, error in (
            (2.5, kp.ArgumentTypeError),
            (2**40, kp.InvalidArgumentError),
            ([1, 2, 3], kp.InvalidArgumentError),
            (mgr.full(1, 1.0), kp.InvalidArgumentError),
            (other.zeros(4, np.int32), kp.InvalidArgumentError),
            (gone, kp.FailedPreconditionError),
        ):
            with pytest.raises(error):
                t[[0, 1]] = value
    np.testing.assert_array_equal(t.read(), x)
    with pytest.raises(kp.FailedPreconditionError):
        gone[[0]]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_axes_longer_than_the_dtype_of_the_key_counts(mgr, needs, dtype):
    if dtype[1] == "8":
        needs(mgr, "shaderInt64")
    most = np.iinfo(dtype).max
    for n in (127, 128, 255, 256, 257, 65535, 65537):
        x = np.arange(n, dtype=np.int32)
        places = [0, min(n - 1, most), *([-1, -n // 2 if n < most else -2] if dtype[0] == "i" else [])]
        places, t = np.array(places, dtype), mgr.tensor_t(x)
        key = mgr.tensor_t(places)
        np.testing.assert_array_equal(t[key].read(), x[places])
        t[key] = 7
        x[places] = 7
        np.testing.assert_array_equal(t.read(), x)
