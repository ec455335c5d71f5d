"""Deadlines beside timeouts; fences that the host signals or fails; what can wait for a semaphore."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import errors

SECOND = 10**9


def held(mgr):
    """A semaphore, and a sequence whose work waits for its value 1."""
    semaphore = mgr.semaphore()
    t = mgr.tensor([1.0, 2.0])
    sequence = mgr.sequence().record(kp.OpSyncLocal([t]))
    sequence.eval_async(wait=[(semaphore, 1)])
    return semaphore, sequence


WAITS = {
    "Fence.wait": lambda semaphore, sequence, **limit: sequence.fence.wait(**limit),
    "Semaphore.wait": lambda semaphore, sequence, **limit: semaphore.wait(1, **limit),
    "Sequence.eval_await": lambda semaphore, sequence, **limit: sequence.eval_await(**limit),
}


@pytest.mark.capability(
    "I43 I50", "timeouts and deadlines", "Fence.wait, Semaphore.wait", "reference/synchronization"
)
@pytest.mark.parametrize("wait", WAITS)
def test_every_wait_takes_a_deadline(mgr, wait):
    semaphore, sequence = held(mgr)
    wait = WAITS[wait]
    for over in (time.monotonic_ns() - SECOND, 0, -(10**30), time.monotonic_ns() + 1000):
        with pytest.raises(kp.EvalTimeoutError):
            wait(semaphore, sequence, deadline=over)
    with pytest.raises(kp.InvalidArgumentError, match="not both"):
        wait(semaphore, sequence, deadline=time.monotonic_ns(), timeout=1)
    for bad in (1.5, "1", None, True):
        if bad is not None:
            with pytest.raises(kp.ArgumentTypeError):
                wait(semaphore, sequence, deadline=bad)
    threading.Timer(0.05, lambda: semaphore.signal(1)).start()
    wait(semaphore, sequence, deadline=time.monotonic_ns() + 60 * SECOND)
    sequence.eval_await() if sequence.is_running() else None
    wait(semaphore, sequence, deadline=10**40) if wait is not WAITS["Sequence.eval_await"] else None


def test_milliseconds_and_a_deadline_are_two_limits(mgr):
    semaphore, sequence = held(mgr)
    with pytest.raises(kp.InvalidArgumentError, match="not both"):
        sequence.eval_await(5, deadline=time.monotonic_ns())
    semaphore.signal(1)
    sequence.eval_await()


@pytest.mark.capability(
    "I49",
    "a fence's points, signalled or failed by the host",
    "Fence.signal, Fence.fail, Fence.points",
    "reference/synchronization",
)
def test_a_fence_of_semaphores_is_signalled_by_the_host(mgr):
    one, two = mgr.semaphore(), mgr.semaphore(5)
    fence = kp.Fence.join(one.at(3), two.at(2), one.at(1))
    assert fence.timepoint_count == len(fence.points) == 2
    assert sorted(value for _, value in fence.points) == [2, 3]
    assert {handle for handle, _ in fence.points} <= {one.vk_semaphore, two.vk_semaphore}
    assert not fence.done()
    fence.signal()
    assert fence.done() and (one.query(), two.query()) == (3, 5)
    fence.signal()  # nothing is left to raise
    assert (one.query(), two.query()) == (3, 5)


def test_a_fence_is_failed_by_the_host(mgr):
    semaphore = mgr.semaphore()
    fence = semaphore.at(1)
    with pytest.raises(kp.ArgumentTypeError):
        fence.fail(3)
    assert not fence.done()
    fence.fail("no more frames")
    for wait in (fence.wait, lambda: semaphore.wait(1), semaphore.at(7).wait):
        with pytest.raises(kp.AbortedError, match="no more frames"):
            wait()


def test_the_end_of_work_is_not_the_hosts_to_signal(mgr):
    semaphore, sequence = held(mgr)
    joined = kp.Fence.join(sequence.fence, semaphore.at(9))
    for fence in (sequence.fence, joined):
        assert fence.timepoint_count >= 1
        for call in (fence.signal, lambda fence=fence: fence.fail("x")):
            with pytest.raises(kp.FailedPreconditionError, match="the end of submitted work"):
                call()
    assert semaphore.query() == 0
    semaphore.signal(1)
    sequence.eval_await()
    semaphore.signal(9)
    assert joined.wait(5).done()


@pytest.mark.capability(
    "I45",
    "whether host and device can wait for a semaphore",
    "Semaphore.compatibility",
    "reference/synchronization",
)
def test_who_can_wait_and_signal(mgr):
    assert mgr.semaphore().compatibility is kp.SemaphoreCompatibility.ALL
    parts = kp.SemaphoreCompatibility.HOST_ONLY | kp.SemaphoreCompatibility.DEVICE_ONLY
    assert parts is kp.SemaphoreCompatibility.ALL and kp.SemaphoreCompatibility(5).name == "HOST_ONLY"


def test_cancelled_work_has_its_error(mgr):
    recorded = mgr.sequence().record(kp.OpSyncDevice([mgr.zeros(2)]))
    with pytest.warns(kp.KomputeWarning, match="did not run"):
        fence = mgr.submit([recorded], wait=[(mgr.semaphore(), 1)])
    with pytest.raises(errors.CancelledError) as caught:
        fence.wait(5)
    assert isinstance(caught.value, kp.AbortedError) and caught.value.code is kp.ErrorCode.CANCELLED


@pytest.mark.capability(
    "I33 S1", "sizes and NumPy dtypes of Kompute's names", "kp.DataTypes", "reference/memory"
)
@pytest.mark.parametrize("member", [each for each in kp.DataTypes if each.name != "custom"])
def test_members_of_data_types_are_dtypes(mgr, member):
    assert np.dtype(member.dtype) == member.dtype and member.bits == 8 * member.itemsize
    made = mgr.zeros((2, 3), member)
    assert made.dtype == member.dtype and kp.TensorSpec((2,), member).dtype == member.dtype
    assert made.view(member).dtype == member.dtype
    if made.data_type() is not member:  # names of one dtype
        assert made.data_type().dtype == member.dtype


def test_custom_has_no_dtype():
    with pytest.raises(kp.ArgumentTypeError, match="give a NumPy dtype"):
        kp.DataTypes.custom.dtype  # noqa: B018
