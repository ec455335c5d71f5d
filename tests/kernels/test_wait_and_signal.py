"""`wait=` and `signal=` mean the same in each verb that submits: calls of kernels and functions, fills and
copies."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp

DOUBLE = """
    layout(local_size_x = 64) in;
    layout(binding = 0) readonly buffer X { float x[]; };
    layout(binding = 1) writeonly buffer Y { float y[]; };
    void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = 2.0 * x[i]; }
"""


@pytest.fixture(params=["kernel", "function"])
def double(request: pytest.FixtureRequest, mgr: kp.Manager, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kompute_py._functions.preparing.default_manager", lambda: mgr)
    if request.param == "kernel":
        return mgr.kernel(DOUBLE)
    return kp.ops.elementwise("2 * x")


def test_a_call_waits_and_then_signals(mgr: kp.Manager, double) -> None:
    counter, x = mgr.semaphore(), np.ones(3, np.float32)
    want = double(np.full(3, 4.0, np.float32))

    def later() -> None:
        x[:] = 4.0  # the call looks at it after the wait
        counter.signal(1)

    timer = threading.Timer(0.2, later)
    timer.start()
    found = double(x, wait=[(counter, 1), mgr.zeros(3).fill(0)], signal=(counter, 2))
    np.testing.assert_array_equal(found, want)
    assert counter.query() == 2
    timer.join()
    np.testing.assert_array_equal(double(x, wait=(counter, 2), signal=[(counter, 3)]), want)
    assert counter.query() == 3


def test_a_call_that_fails_signals_nothing(mgr: kp.Manager, double) -> None:
    counter, x = mgr.semaphore(3), np.ones(3, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match=r"the value 3 for a semaphore that is at 3"):
        double(x, signal=(counter, 3))
    with pytest.raises(kp.ArgumentTypeError):
        double("text", signal=(counter, 4))
    with pytest.raises(kp.ArgumentTypeError, match=r"wait takes fences, sequences and .* not ndarray"):
        double(x, wait=[x], signal=(counter, 4))
    assert counter.query() == 3
    counter.fail("the camera is gone")
    with pytest.raises(kp.AbortedError, match="the camera is gone"):
        double(x, wait=(counter, 4))


def test_a_function_of_several_operations(mgr: kp.Manager) -> None:
    counter, x = mgr.semaphore(1), mgr.tensor([1, 2, 3])
    assert kp.ops.quantile(x, 0.5, wait=(counter, 1), signal=(counter, 2)).tolist() == 2.0
    assert counter.query() == 2


def test_a_binding_of_such_a_name_is_given_by_bind(mgr: kp.Manager) -> None:
    kernel = mgr.kernel("""
        layout(local_size_x = 1) in;
        layout(binding = 0) buffer Wait { float wait[]; };
        layout(push_constant) uniform P { float signal; };
        void main() { wait[gl_GlobalInvocationID.x] += signal; }
    """)
    counter, t = mgr.semaphore(), mgr.zeros(3)
    for number in range(1, 5):
        kernel(bind={"wait": t}, push={"signal": 1.0}, signal=(counter, number))
        kernel.submit(t, push={"signal": 1.0}, wait=(counter, number)).wait()
        mgr.sequence().record(kernel.bind(wait=t, signal=1.0)).eval()
        kernel(t, push={"signal": 1.0})
        with pytest.raises(
            kp.ArgumentTypeError, match=r"signal takes .*, not float; .*push=\{\"signal\": 1\.0\}"
        ):
            kernel(t, signal=1.0)
    assert t.tolist() == [16, 16, 16] and counter.query() == 4


def test_fills_and_copies(mgr: kp.Manager) -> None:
    counter = mgr.semaphore()
    x, y, array = mgr.zeros(4), mgr.zeros(4), np.zeros(4, np.float32)
    x.fill(2, wait=(counter, 1), signal=(counter, 2))
    y.copy_from(x, wait=(counter, 2), signal=(counter, 3))
    assert counter.query() == 0
    counter.signal(1)
    x.copy_to(array, wait=(counter, 3), signal=(counter, 4))
    assert array.tolist() == y.tolist() == [2, 2, 2, 2] and counter.query() == 4
    y.copy_from(np.arange(4, dtype=np.float32), wait=(counter, 4), signal=(counter, 5))
    y[::2].fill(7, wait=(counter, 5), signal=(counter, 6))
    assert y.tolist() == [7, 1, 7, 3] and counter.query() == 6


def test_copies_between_managers(mgr: kp.Manager) -> None:
    other = kp.Manager()
    here, there = mgr.semaphore(1), other.semaphore()
    x, y = mgr.tensor([1, 2]), other.zeros(2)
    y.copy_from(x, wait=(here, 1), signal=iter([(there, 1), (here, 2)]))
    assert y.tolist() == [1, 2] and (here.query(), there.query()) == (2, 1)
    other.destroy()
