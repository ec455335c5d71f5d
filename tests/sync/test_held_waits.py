"""Waits behind work that is held until a semaphore is signalled: each ends with Ctrl-C, and says what it
waits for.
"""

from __future__ import annotations

import _thread
import threading
import warnings

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import _native
from tests.drivers import null_control
from tests.support.child import run_child


@pytest.fixture
def soon():
    """Waits warn after a tenth of a second."""
    before = _native.warn_of_waits_after(0.1)
    yield
    _native.warn_of_waits_after(before)


class Held:
    """A tensor that held work fills with 7 once the semaphore 'frames', now at 3, reaches 5."""

    def __init__(self, mgr):
        self.mgr = mgr
        self.sem = mgr.semaphore(3)
        self.sem.name = "frames"
        self.t = mgr.tensor(np.ones(64))
        self.other = mgr.tensor(np.zeros(64))
        mgr.sequence().eval(kp.OpSyncDevice([self.t, self.other]))
        self.seq = mgr.sequence().record(kp.OpFill([self.t], 7))
        self.later = mgr.sequence().record(kp.OpSyncLocal([self.t]))
        self.seq.eval_async(wait=(self.sem, 5))


def mapped(held):
    with held.t.map(read=True) as array:
        return array[0]


def copied(held):
    held.t.copy_to(held.other).wait()
    return held.other.read()[0]


def evaluated(held):
    held.later.eval()
    return held.t.data()[0]


def after(held, wait):
    wait()
    return held.t.read()[0]


WAITS = {
    "eval_await": lambda held: after(held, held.seq.eval_await),
    "fence.wait": lambda held: after(held, held.seq.fence.wait),
    "sem.wait": lambda held: after(held, lambda: held.sem.wait(5)),
    "at.wait": lambda held: after(held, held.sem.at(5).wait),
    "submit.wait": lambda held: after(held, held.mgr.submit([], wait=(held.sem, 5)).wait),
    "read": lambda held: held.t.read()[0],
    "part.read": lambda held: held.t[:32].read()[0],
    "asarray": lambda held: np.asarray(held.t)[0],
    "item": lambda held: held.t[0].item(),
    "write": lambda held: (held.t.write(np.full(64, 7)), held.t.read()[0])[1],
    "map": mapped,
    "copy_to": copied,
    "eval": evaluated,
}


@pytest.mark.parametrize("way", WAITS)
def test_a_long_wait_says_once_what_it_waits_for(mgr, soon, way):
    held = Held(mgr)
    timer = threading.Timer(0.45, held.sem.signal, [5])
    timer.start()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert WAITS[way](held) == 7
    timer.join()
    said = [str(each.message) for each in told]
    assert len(said) == 1 and "the semaphore 'frames' to reach 5 (it is at 3)" in said[0], said
    assert told[0].category is kp.KomputeWarning and told[0].filename == __file__


@pytest.mark.parametrize("way", WAITS)
def test_ctrl_c_ends_the_wait(mgr, way):
    held = Held(mgr)
    timer = threading.Timer(0.15, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        WAITS[way](held)
    timer.join()
    held.sem.signal(5)
    assert held.t.read()[0] == 7


def test_waits_that_end_by_themselves_say_nothing(mgr):
    before = _native.warn_of_waits_after(0)
    try:
        t = mgr.tensor(np.zeros(1 << 16))
        seq = mgr.sequence()
        for i in range(50):
            seq.record(kp.OpFill([t], i))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(20):
                seq.eval_async()
                assert t.read()[0] == 49
                seq.eval_await()
            with pytest.raises(kp.EvalTimeoutError):
                mgr.semaphore().wait(1, timeout=0)
    finally:
        _native.warn_of_waits_after(before)


def test_a_chain_of_held_work_names_the_semaphore_at_its_end(mgr, soon):
    held = Held(mgr)
    next_sem = mgr.semaphore()
    doubled = mgr.sequence().record(kp.OpFill([held.other], 2))
    doubled.name = "second"
    held.mgr.submit([], wait=held.seq, signal=(next_sem, 1))
    doubled.eval_async(wait=(next_sem, 1))
    timer = threading.Timer(0.3, held.sem.signal, [5])
    timer.start()
    with pytest.warns(kp.KomputeWarning, match="'second'.* waits for the semaphore 'frames' to reach 5"):
        doubled.eval_await()
    timer.join()


# -- copies between Managers: the host does them -------------------------------------------------------------


@pytest.fixture
def two(make_manager):
    here, there = make_manager(), make_manager()
    return Held(here), there


REFUSED = "behind held work.*semaphore 'frames' to reach 5 .it is at 3."


def test_a_copy_that_would_wait_for_its_own_thread_is_refused(two):
    held, there = two
    target = there.tensor(np.zeros(64))
    source = held.mgr.tensor(np.full(64, 4))
    behind = held.mgr.sequence().record(kp.OpCopy([held.t, target]))
    apart = held.mgr.sequence().record(kp.OpCopy([source, target]))
    # Work that is held for memory that is not copied, and a copy behind it.
    mixed = held.mgr.sequence().record(kp.OpFill([held.t], 8)).record(kp.OpCopy([source, target]))
    for attempt in (
        behind.eval_async,
        mixed.eval_async,
        lambda: held.mgr.submit([behind]),
        lambda: apart.eval_async(wait=(held.sem, 5)),
        lambda: apart.eval_async(wait=held.seq),
        lambda: held.t.copy_to(target),
        lambda: target.copy_from(held.t),
    ):
        with pytest.raises(kp.FailedPreconditionError, match=REFUSED):
            attempt()
    assert target.read()[0] == 0
    apart.eval_async().eval_await()  # what shares nothing with held work goes
    assert target.read()[0] == 4
    held.sem.signal(5)
    apart.eval_async(wait=(held.sem, 5)).eval_await()
    behind.eval_async().eval_await()
    assert target.read()[0] == 7
    mixed.eval()
    assert held.t.read()[0] == 8 and target.read()[0] == 4


@pytest.mark.parametrize("way", ["eval", "to"])
def test_a_copy_that_waits_says_what_for(two, soon, way):
    held, there = two
    target = there.tensor(np.zeros(64))
    timer = threading.Timer(0.4, held.sem.signal, [5])
    timer.start()
    with pytest.warns(kp.KomputeWarning, match="semaphore 'frames' to reach 5"):
        if way == "to":
            target = held.t.to(there)
        else:
            held.mgr.sequence().eval(kp.OpCopy([held.t, target]))
    timer.join()
    assert target.read()[0] == 7


def check_other_queues_after_a_cancellation():
    """What was cancelled did not run: work of other queues has nothing to come after, whether somebody was
    told or not.
    """
    mgr = kp.Manager(0, [0, 0, 1])
    for told in ("nobody", "fence", "await", "poll"):
        for destroys in (False, True):
            t = mgr.tensor_t(np.arange(64, dtype=np.uint32))
            gate = mgr.semaphore()
            held = mgr.sequence(0).record(kp.OpFill([t], 3), kp.OpSyncLocal([t]))
            other = mgr.sequence(2).record(kp.OpFill([t[:32]], 7), kp.OpSyncLocal([t]))
            held.eval_async(wait=[(gate, 1)])
            fence = held.fence
            if destroys:
                with pytest.warns(kp.KomputeWarning, match="did not run"):
                    held.destroy()
            else:
                gate.fail("cancelled")
                tell = {
                    "fence": lambda f=fence: f.wait(5),
                    "await": held.eval_await,
                    "poll": held.is_complete,
                }
                if told in tell:
                    with pytest.raises(kp.AbortedError, match="cancelled"):
                        tell[told]()
            mgr.submit([other]).wait(5.0)
            other.eval()
            assert (t.data() == np.where(np.arange(64) < 32, 7, np.arange(64))).all()
    mgr.destroy()
    assert null_control().violations() == []


@pytest.mark.own_driver
def test_other_queues_after_a_cancellation():
    run_child(check_other_queues_after_a_cancellation, driver="null", config="gpu_us=20")
