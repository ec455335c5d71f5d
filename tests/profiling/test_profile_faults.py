"""Profiles where something goes wrong meanwhile: failing calls, lost devices, forks, threads, short counters.

Each check runs in a process of its own, on the null driver.
"""

from __future__ import annotations

import gc
import itertools
import os
import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.sampling import sampled
from tests.support.threads import beside

pytestmark = pytest.mark.own_driver

MEASURED = "noext=VK_EXT_calibrated_timestamps"
"""Tiny submissions relate the clocks."""


def copying(mgr):
    source, target = mgr.tensor(np.ones(100)), mgr.tensor(np.zeros(100))
    return source, target, mgr.sequence().record(kp.OpCopy([source, target]), kp.OpSyncLocal([target]))


def nothing_is_left(control):
    gc.collect()
    assert kp.alive() == 0 == control.live(), control.live_report()
    assert not control.violations()


def check_failing_calls():
    """Any call of the driver fails once: the block ends, work goes on, and the next profile is whole."""
    control = null_control()
    for nth in itertools.count(1, sampled(3, 1)):
        mgr = kp.Manager(force_staging=True)
        source, target, sequence = copying(mgr)
        source.read()
        control.clear()
        control.fail("*", nth)
        p = mgr.profile()
        try:
            with p:
                source.write(np.full(100, 2.0))
                source.read()
                sequence.eval()
                source.read()
        except kp.errors.KomputeError:
            pass
        failed, last = control.last_failed, control.armed_failures
        control.clear()
        if repr(p).endswith("not begun>"):
            p = mgr.profile()
            with p:
                pass
        assert len(p.records) <= 5, failed
        source.write(np.full(100, 3.0))
        with mgr.profile(operations=False) as p:  # the former one has ended
            sequence.eval()
            np.testing.assert_array_equal(source.read(), 3)
        np.testing.assert_array_equal(target.data(), 3)
        assert p.records["name"].tolist() == ["sequence", "download"], failed
        assert not np.isnan(p.records["seconds"]).any(), failed
        mgr.destroy()
        del mgr, source, target, sequence, p
        nothing_is_left(control)
        if last:
            return nth


@pytest.mark.sampled
@pytest.mark.parametrize("config", ["gpu_us=10", MEASURED])
def test_any_call_fails(config):
    assert run_child(check_failing_calls, driver="null", config=config) > 20


def check_lost():
    control = null_control()
    for finds_out in ("the block", "its end", "destroy"):
        mgr = kp.Manager()
        source, target, sequence = copying(mgr)
        sequence.eval()
        p = mgr.profile()
        with pytest.raises(kp.DeviceLostError), p:
            sequence.eval()
            control.lose_device(1)
            sequence.eval_async()
            if finds_out == "the block":
                sequence.eval_await()
            if finds_out == "destroy":
                mgr.destroy()
                raise kp.DeviceLostError("for this test")
        assert p.records["name"].tolist()[:2] == ["OpCopy", "OpSyncLocal"]
        with pytest.raises(kp.KomputeError):
            sequence.eval()
        mgr.destroy()
        del mgr, source, target, sequence, p
        control.clear()
        nothing_is_left(control)


def test_a_lost_device():
    run_child(check_lost, driver="null", config=f"gpu_us=2000,{MEASURED}")


def check_destroy_without_clocks():
    control = null_control()
    mgr = kp.Manager()
    source, target, sequence = copying(mgr)
    sequence.eval()
    with mgr.profile() as p:
        sequence.eval()
        control.fail("vkCreateCommandPool")
        mgr.destroy()
    assert p.records["name"].tolist() == ["OpCopy", "OpSyncLocal"]
    assert np.isnan(p.records["seconds"]).all()
    del mgr, source, target, sequence
    nothing_is_left(control)  # although the profile is alive


def test_destroy_whose_clocks_cannot_be_read():
    run_child(check_destroy_without_clocks, driver="null", config=MEASURED)


def check_other_threads():
    """Others submit while profiles end and begin: no command buffer is freed while it runs."""
    control = null_control()
    mgr = kp.Manager(force_staging=True)
    done = threading.Event()

    def work(_):
        t = mgr.tensor(np.zeros(1000))
        for i in itertools.count():
            if done.is_set():
                break
            t.write(np.full(1000, i))
            assert t.read()[-1] == i

    with beside(work, range(3)):
        for _ in range(300):
            with mgr.profile() as p:
                pass
            assert not np.isnan(p.records["seconds"]).any()
        done.set()
    mgr.destroy()
    assert not control.violations()


def test_other_threads_submit_at_the_end():
    run_child(check_other_threads, driver="null", config="gpu_us=200")


def check_short_counters():
    mgr = kp.Manager()
    _, _, sequence = copying(mgr)
    with mgr.profile() as p:
        for _ in range(20):
            sequence.eval()
            threading.Event().wait(0.01)
    late = p.records["begin"] - p.records["submitted"]
    assert p.seconds > 0.2  # the counter has begun anew several times
    assert (late >= -p.clock_uncertainty).all()
    assert (p.records["begin"] + p.records["seconds"] <= p.seconds).all()
    assert (np.diff(p.records["begin"]) > 0).all()
    assert late.max() < 0.01


def test_counters_of_few_bits():
    run_child(check_short_counters, driver="null", config="timestamp_bits=25")  # 34 ms


def check_no_timestamps():
    mgr = kp.Manager(family_queue_indices=[0, 2])
    source, target, _ = copying(mgr)
    on_transfers = mgr.sequence(1).record(kp.OpCopy([source, target]))
    with mgr.profile() as p:
        on_transfers.eval()
        mgr.sequence(0).record(kp.OpCopy([target, source])).eval()
    assert [bool(each) for each in np.isnan(p.records["seconds"])[-2:]] == [True, False]


def test_a_queue_without_timestamps():
    run_child(check_no_timestamps, driver="null")
    run_child(check_all_without, driver="null", config="timestamp_bits=0")


def check_all_without():
    mgr = kp.Manager()
    _, _, sequence = copying(mgr)
    with mgr.profile() as p:
        sequence.eval()
    assert np.isnan(p.records["seconds"]).all()
    assert len(p.records) >= 2
    assert "no times: the queues have no timestamps" in str(p)


def check_fork():
    mgr = kp.Manager()
    _, _, sequence = copying(mgr)
    with mgr.profile() as p:
        sequence.eval()
        child = os.fork()
    if child == 0:
        # The parent's runs are the parent's; a Manager of the child is profiled as ever.
        own = kp.Manager()
        _, _, another = copying(own)
        with own.profile() as q:
            another.eval()
        good = len(p.records) == 0 and q.records["name"].tolist()[-2:] == ["OpCopy", "OpSyncLocal"]
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert p.records["name"].tolist()[-2:] == ["OpCopy", "OpSyncLocal"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
def test_a_fork_within_a_profile():
    run_child(check_fork, driver="null", timeout=120)


def check_interrupt():
    """Ctrl-C ends the wait at the end; the records are there."""
    mgr = kp.Manager()
    _, _, sequence = copying(mgr)
    sequence.eval()
    control = null_control()
    with control.pausing():
        threading.Timer(0.3, os.kill, (os.getpid(), 2)).start()
        with pytest.raises(KeyboardInterrupt), mgr.profile() as p:
            sequence.eval_async()
    assert p.records["name"].tolist() == ["OpCopy", "OpSyncLocal"]
    assert np.isnan(p.records["seconds"]).all()
    sequence.eval_await()
    with mgr.profile(operations=False) as p:
        sequence.eval()
    assert len(p.records) == 1


def test_an_interrupt_at_the_end():
    run_child(check_interrupt, driver="null", config="gpu_us=1000", timeout=120)
