"""kp.benchmark(): how long a call takes, on the host and on the device."""

from __future__ import annotations

import time

import numpy as np
import pytest

import kompute_py as kp

DOUBLE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }"""


@pytest.mark.capability("I73", "repeatable measurements", "kp.benchmark", "guides/timing")
def test_a_sequence(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.tensor(np.ones(100_000))
    sequence = mgr.sequence().record(mgr.kernel(DOUBLE).bind(t), mgr.kernel(DOUBLE).bind(t))
    found = kp.benchmark(sequence.eval, seconds=0.05)
    assert len(found.host) >= 5
    assert 5 <= len(found.device) <= 1000
    assert (found.host > 0).all()
    assert (found.device > 0).all()
    assert str(found).startswith("host ")
    assert ", device " in str(found)
    doublings = np.log2(t.read())
    assert (doublings == doublings[0]).all()
    assert doublings[0] >= 2 * 12  # two in each of at least 5 + 5 calls, and of one before each


def test_arguments_and_calls_without_work(mgr):
    seen = []
    found = kp.benchmark(lambda a, b=None: seen.append((a, b)), 1, b=2, seconds=0.01)
    assert set(seen) == {(1, 2)}
    assert len(found.device) == 0
    assert np.isnan(found.device_median)
    assert "device" not in str(found)


def test_slow_calls_run_few_times():
    calls = []

    def slow():
        calls.append(1)
        time.sleep(0.05)

    found = kp.benchmark(slow, seconds=0.01)
    assert len(found.host) == 3
    assert len(calls) <= 12


def test_misuse(mgr):
    with pytest.raises(kp.ArgumentTypeError, match="not callable"):
        kp.benchmark(mgr.zeros(3))
    for seconds in (0, -1, float("inf"), float("nan")):
        with pytest.raises(kp.InvalidArgumentError, match="seconds is"):
            kp.benchmark(print, seconds=seconds)
    with pytest.raises(kp.ArgumentTypeError, match="seconds is"):
        kp.benchmark(print, seconds="long")
    with pytest.raises(kp.ArgumentTypeError, match="seconds is"):
        kp.benchmark(print, seconds=10**400)
    with pytest.raises(ZeroDivisionError):
        kp.benchmark(lambda: 1 / 0)


def test_inside_of_a_profile(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.zeros(1000)
    sequence = mgr.sequence().record(kp.OpSyncLocal([t]))
    with mgr.profile() as p:
        found = kp.benchmark(sequence.eval, seconds=0.01)
    assert len(found.device) >= 5
    assert len(p.records) >= len(found.device)
    with mgr.profile(operations=False), pytest.raises(kp.FailedPreconditionError, match="operations=False"):
        kp.benchmark(sequence.eval, seconds=0.01)


def test_another_manager_that_cannot_be_profiled_is_named(mgr, make_manager):
    other = make_manager(debug="nans")
    with pytest.raises(kp.FailedPreconditionError) as caught:
        kp.benchmark(kp.ops.exp, mgr.zeros(10), seconds=0.01)
    assert repr(other) in str(caught.value) and "values of its operations" in str(caught.value)
