"""What functions take in place of arrays: lists and numbers, as NumPy does, in NumPy's common dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")

LIST, REALS, ROWS, NUMBER = [2, 0, 1], [3.0, 1.0, 2.0], [[1, 2, 3], [4, 5, 6]], 2
SMALL = np.array([3, 1, 2], np.float32)
BYTES = np.array([2, 0, 1], np.uint8)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (LIST, SMALL)), ("add", (REALS, BYTES)), ("multiply", (ROWS, SMALL)),
        ("arctan2", (REALS, LIST)),
        ("sum", (ROWS,)), ("sum", (NUMBER,)), ("mean", (LIST,)), ("std", (REALS,)), ("cumsum", (LIST,)),
        ("argmax", (REALS,)), ("sort", (REALS,)), ("argsort", (LIST,)), ("median", (ROWS,)),
        ("quantile", (REALS, 0.5)), ("where", ([True, False, True], SMALL, LIST)),
        ("clip", (LIST, BYTES, SMALL)),
        ("take", (REALS, LIST)), ("take", (SMALL, BYTES)), ("take", (LIST, 1)), ("isin", (LIST, [1, 2.5])),
        ("searchsorted", ([0, 1, 2], REALS)), ("searchsorted", ([0, 1, 2], 1.5)), ("unique", (LIST,)),
        ("bincount", (LIST,)), ("bincount", (LIST, REALS)), ("histogram", (REALS, 2)), ("nonzero", (LIST,)),
        ("matmul", (ROWS, SMALL)), ("dot", (LIST, SMALL)), ("vdot", (REALS, LIST)),
        ("einsum", ("ij,j", ROWS, LIST)),
        ("concatenate", ([LIST, SMALL],)), ("concatenate", (np.ones((2, 3)),)), ("stack", ([REALS, LIST],)),
        ("transpose", (ROWS,)), ("flip", (LIST,)), ("repeat", (LIST, BYTES)), ("tile", (REALS, 2)),
        ("roll", (LIST, 1)), ("pad", (LIST, 1)), ("diff", (REALS,)), ("convolve", (LIST, REALS)),
        ("percentile", (LIST, 30)),
    ],
)  # fmt: skip
def test_lists_and_numbers_are_arrays_as_in_numpy(name, args, needs):
    for feature in ("shaderInt64", "shaderFloat64"):
        needs(kp.manager(), feature)
    got, want = getattr(kp.ops, name)(*args), getattr(np, name)(*args)
    several = isinstance(want, (tuple, list))
    for a, b in zip(got if several else [got], want if several else [want], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert a.dtype == np.asarray(b).dtype


def test_rows_of_a_tensor_are_joined(mgr):
    t = mgr.tensor(ROWS)
    assert kp.ops.concatenate(t).tolist() == [1, 2, 3, 4, 5, 6]
    assert kp.ops.stack(t, 1).tolist() == [[1, 4], [2, 5], [3, 6]]


def test_lists_that_are_no_numbers(mgr):
    t = mgr.tensor(LIST)
    for call, match in [
        (lambda: kp.ops.sum([t, t]), r"kp.ops.stack\(a\)"),
        (lambda: kp.ops.sum([[1], [1, 2]]), "not an array of numbers"),
        (lambda: kp.ops.add(t, ["1"]), "not numbers"),
        (lambda: kp.ops.add(t, [2**70]), "not numbers"),
        (lambda: kp.ops.sum([np.ma.ones(2)]), "masked array"),
    ]:
        with pytest.raises(kp.ArgumentTypeError, match=match):
            call()
