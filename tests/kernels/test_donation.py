"""Kernels that are given tensors: `donate=` ends them after the call, and frees their memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp

SCALE = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = factor * x[i]; }
"""
X = np.arange(100_000, dtype=np.float32)


@pytest.fixture
def scale(mgr):
    return mgr.kernel(SCALE, name="scale")


@pytest.mark.parametrize("donate", ["x", 0, True, ["x"], [True]])
@pytest.mark.parametrize("earlier", [0, 1, 3])
def test_its_memory_is_free_after_the_call(mgr, scale, donate, earlier):
    x, y = mgr.tensor_t(X), mgr.zeros(X.shape)
    for _ in range(earlier):
        scale(x, y, factor=1.0)
    view, before = x[1:3], mgr.memory.used
    assert scale(x, out=y, factor=3.0, donate=donate) is None
    assert mgr.memory.used <= before - X.nbytes
    np.testing.assert_array_equal(y.read(), X * 3)
    for use in (x.read, view.read, lambda: scale(x, y, factor=1.0), lambda: scale(x=x, factor=1.0, donate=0)):
        with pytest.raises(kp.errors.DonatedTensorError, match="was donated to scale"):
            use()
    again = mgr.tensor_t(X + 1)
    scale(again, y, factor=2.0)
    np.testing.assert_array_equal(y.read(), (X + 1) * 2)


def test_with_a_new_result_and_after_a_semaphore(mgr, scale):
    x, semaphore = mgr.tensor_t(X), mgr.semaphore()
    timer = threading.Timer(0.05, semaphore.signal, [1])
    timer.start()
    made = scale(x, factor=2.0, donate="x", wait=semaphore.at(1), signal=(semaphore, 2))
    timer.join()
    assert semaphore.query() == 2
    np.testing.assert_array_equal(made.read(), X * 2)
    with pytest.raises(kp.errors.DonatedTensorError):
        x.read()


def test_a_call_that_fails_gives_it_back(mgr, scale):
    x, y = mgr.tensor_t(X), mgr.zeros(X.shape)
    failures = (
        lambda: scale(x, y, donate="x"),  # without its push constant
        lambda: scale(x, y, factor=1.0, grid=-1, donate="x"),
        lambda: scale(x, y, factor=1.0, bind={"x": x}, donate="x"),
    )
    for fail in failures:
        with pytest.raises(kp.KomputeError):
            fail()
        np.testing.assert_array_equal(x.read(), X)
    scale(x, y, factor=2.0)
    np.testing.assert_array_equal(y.read(), X * 2)


def test_what_cannot_be_donated(mgr, scale):
    x, y = mgr.tensor_t(X), mgr.zeros(X.shape)
    wrong = {
        "y": "'y' cannot be donated: give names or positions of Tensor arguments that it does not write",
        1: "1 cannot be donated",
        "z": "'z' cannot be donated",
        "factor": "'factor' cannot be donated",
    }
    for donate, why in wrong.items():
        with pytest.raises(kp.InvalidArgumentError, match=why):
            scale(x, y, factor=1.0, donate=donate)
    with pytest.raises(kp.ArgumentTypeError, match="donate is a dict"):
        scale(x, y, factor=1.0, donate={})
    with pytest.raises(kp.InvalidArgumentError, match="this call has none"):
        scale(X, y, factor=1.0, donate="x")
    with pytest.raises(kp.InvalidArgumentError, match="others may see its memory"):
        scale(x[:5], y[:5], factor=1.0, donate="x")
    for target in (x, x[:]):
        with pytest.raises(kp.InvalidArgumentError, match="shares memory with a result"):
            scale(x, target, factor=1.0, donate="x")
    with pytest.raises(kp.InvalidArgumentError, match="donate"):
        scale.bind(x, y, factor=1.0, donate="x")
    for nothing in ((), None, False, []):
        scale(x, y, factor=1.0, donate=nothing)
        scale.submit(x, y, factor=1.0, donate=nothing)
    np.testing.assert_array_equal(x.read(), X)


def test_submitted_work_takes_tensors(mgr, scale):
    gate = mgr.semaphore()
    for number in range(1, 4):  # the table knows the later ones
        x, y = mgr.tensor([1, 2, 3]), mgr.zeros(3)
        fence = scale.submit(x, y, factor=3.0, donate="x", wait=(gate, number))
        with pytest.raises(kp.errors.DonatedTensorError, match="was donated to scale"):
            x.read()
        others = [mgr.tensor([7, 7, 7]) for _ in range(4)]  # that want its memory
        assert not fence.done()
        gate.signal(number)
        assert y.tolist() == [3.0, 6.0, 9.0]
        assert all(each.tolist() == [7.0] * 3 for each in others)
    x = mgr.tensor([1, 2, 3])
    for wrong in ({"factor": 1.0, "grid": -1}, {}):
        with pytest.raises(kp.InvalidArgumentError):
            scale.submit(x, donate="x", **wrong)
    assert x.tolist() == [1.0, 2.0, 3.0]
