"""Functions with arguments fixed by `specialize`."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import kompute_py as kp


def test_it_has_the_verbs_of_the_whole(mgr: kp.Manager) -> None:
    x = mgr.tensor([[1, 2], [3, 4]])
    total = kp.ops.sum.specialize(axis=0)
    spec = kp.TensorSpec((2, 3))
    total.preload(x)
    out = mgr.zeros(2)
    for _ in range(3):
        assert total(x).tolist() == [4, 6] and total(x, keepdims=True).shape == (1, 2)
        total.submit(x, out=out).wait()
        assert out.tolist() == [4, 6]
    mgr.sequence().record(operation := total.bind(x)).eval()
    assert operation.results[0].tolist() == [4, 6]
    assert total.meta(spec) == kp.TensorSpec((3,)) and total.sources(spec) == kp.ops.sum.sources(spec, axis=0)
    assert kp.Program.record(total, kp.TensorSpec((2, 2)), portable=True).on(mgr).main(x).tolist() == [4, 6]
    assert pickle.loads(pickle.dumps(total))(x).tolist() == [4, 6]
    assert list(inspect.signature(total).parameters)[:3] == ["a", "dtype", "keepdims"]
    assert inspect.signature(total).parameters["dtype"].kind is inspect.Parameter.KEYWORD_ONLY
    assert repr(total).endswith("-> Tensor, axis=0>")


def test_the_same_values_are_the_same_function(mgr: kp.Manager) -> None:
    x = mgr.tensor([[1, 2], [3, 4]])
    total = kp.ops.sum.specialize(axis=0)
    assert total is total.specialize(axis=1).specialize(axis=0)
    assert total.specialize() is total is not kp.ops.sum.specialize(axis=1)
    assert total.specialize(axis=1)(x).tolist() == [3, 7]
    fresh = kp.ops.elementwise("a * x")
    fresh(2, x)
    kept = fresh.cache_info().specializations
    for factor in (2, 3):
        assert fresh.specialize(a=factor)(x=x).tolist() == [[factor, 2 * factor], [3 * factor, 4 * factor]]
    assert fresh.cache_info().specializations == kept  # nothing is compiled twice


def test_functions_that_run_several_operations(mgr: kp.Manager) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for axis in (0, 1, None):
        order = kp.ops.argsort.specialize(axis=axis)
        np.testing.assert_array_equal(order(mgr.tensor_t(x)).read(), np.argsort(x, axis=axis))


def test_what_is_refused(mgr: kp.Manager) -> None:
    x = mgr.zeros((2, 2))
    total = kp.ops.sum.specialize(axis=0)
    with pytest.raises(kp.InvalidArgumentError, match=r"axis is fixed, 0: leave it out"):
        total(x, axis=1)
    with pytest.raises(kp.ArgumentTypeError, match="'axis' is given twice"):
        total(x, 1)
    with pytest.raises(kp.InvalidArgumentError, match="sum: a is memory, which each call gives"):
        kp.ops.sum.specialize(a=x)
    with pytest.raises(kp.ArgumentTypeError, match="sum has no parameter 'axes'"):
        kp.ops.sum.specialize(axes=0)
    with pytest.raises(kp.ArgumentTypeError, match="sum: axis is a str"):
        kp.ops.sum.specialize(axis="0")(x)
