"""Functions that are submitted: results that wait when they are looked at, and donated arguments."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

from .operations import compact, softmax
from .test_custom_op import compacted, softmax_of

pytestmark = pytest.mark.usefixtures("current")


def test_submitted(mgr):
    x, out = mgr.tensor_t(np.arange(8, dtype=np.float32)), mgr.zeros(8)
    gate, done = mgr.semaphore(), mgr.semaphore()
    fence = softmax.submit(x, out=out, wait=(gate, 1), signal=(done, 1))
    assert not fence.done()
    gate.signal(1)
    fence.wait()
    done.wait(1, timeout=10)
    np.testing.assert_allclose(out.read(), softmax_of(x.read(), 0), rtol=1e-6)
    assert fence.results == ()


def test_submitted_calls_make_their_results(mgr):
    x, keep = mgr.tensor_t(np.arange(8, dtype=np.float32)), mgr.tensor_t(np.arange(8) % 2 == 1)
    for _ in range(3):  # the first is prepared in Python, the others by the table
        fences = []
        for number in range(4):
            x.write(np.arange(8, dtype=np.float32) * number)
            fences += [softmax.submit(x), compact.submit(x, keep)]
        for number in range(4):
            (y,), (kept, count) = (each.results for each in fences[2 * number : 2 * number + 2])
            given = np.arange(8, dtype=np.float32) * number
            np.testing.assert_allclose(y.read(), softmax_of(given, 0), rtol=1e-6)
            np.testing.assert_array_equal(kept.read(), compacted(given, keep.read()))
            assert count.read() == 4
    with pytest.raises(kp.ArgumentTypeError, match="works on Tensors"):
        softmax.submit(np.zeros(3, np.float32))


@pytest.mark.parametrize("earlier", [0, 2], ids=["first call", "prepared call"])
def test_submitted_work_takes_donated_arguments(mgr, earlier):
    for _ in range(earlier):
        softmax.submit(mgr.zeros(8)).wait()
    x, gate = mgr.tensor_t(np.arange(8, dtype=np.float32)), mgr.semaphore()
    expected = softmax_of(x.read(), 0)
    fence = softmax.submit(x, donate="x", wait=(gate, 1))
    with pytest.raises(kp.errors.DonatedTensorError, match="donated to softmax"):
        x.read()
    others = [mgr.tensor_t(np.full(8, 7, np.float32)) for _ in range(4)]  # that want its memory
    assert not fence.done()
    gate.signal(1)
    np.testing.assert_allclose(fence.results[0].read(), expected, rtol=1e-6)
    assert all((each.read() == 7).all() for each in others)
    t = mgr.zeros(3)
    with pytest.raises(kp.InvalidArgumentError, match="shares memory with a result"):
        softmax.submit(t, out=t, donate="x")
    assert t.is_init()
