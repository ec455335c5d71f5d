"""A long recording is built without the interpreter lock: other threads run meanwhile, and may do anything.

The null driver holds the build inside vkEndCommandBuffer until the other thread says so. With the lock held,
that thread would never get a turn, and the child would run out of time.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

LONG = 3000
END = "vkEndCommandBuffer"


class Held:
    """`eval` of a long recording in a thread of its own, held by the driver."""

    def __init__(self, operations=None):
        self.mgr = kp.Manager(validation=False)
        self.a, self.b = (self.mgr.tensor_t(np.full(16, i, np.int32)) for i in (1, 2))
        self.mgr.sequence().eval(kp.OpSyncDevice([self.a, self.b]))
        self.seq = self.mgr.sequence()
        for operation in operations(self) if operations else [kp.OpCopy([self.a, self.b])] * LONG:
            self.seq.record(operation)
        self.control, self.errors = null_control(), []

    def __enter__(self):
        self._holding = self.control.holding(END)
        self._holding.__enter__()
        self.thread = threading.Thread(target=self._eval)
        self.thread.start()
        while self.control.waiting == 0:
            time.sleep(0.001)
        return self

    def _eval(self):
        try:
            self.seq.eval()
        except kp.KomputeError as error:
            self.errors.append(error)

    def go_on(self):
        self._holding.__exit__(None, None, None)

    def __exit__(self, *_):
        self.thread.join()


def check_other_threads_run():
    with Held() as held:
        with pytest.raises(kp.FailedPreconditionError, match="another thread"):
            held.seq.record(kp.OpCopy([held.b, held.a]))
        with pytest.raises(kp.FailedPreconditionError, match="another thread"):
            held.seq.eval()
        # Other objects of the same Manager, memory that the recording uses among them.
        held.a.write(np.full(16, 5, np.int32))
        assert held.a.read()[0] == 5 and held.b.read()[0] == 2
        # What reads the recording waits for it, without the lock.
        names = []
        looking = threading.Thread(target=lambda: names.append(repr(held.seq)))
        looking.start()
        time.sleep(0.02)
        assert not names
        held.go_on()
        looking.join()
        assert "OpCopy" in names[0]
    assert not held.errors and held.b.read()[0] == 5
    assert not held.control.violations()


def check_destroying_meanwhile(what):
    with Held() as held:
        target = {"tensor": held.b, "sequence": held.seq, "manager": held.mgr}[what]
        ending = threading.Thread(target=target.destroy)
        ending.start()
        time.sleep(0.02)
        held.go_on()
        ending.join()
    # The evaluation came first, or was refused.
    for error in held.errors:
        assert isinstance(error, kp.FailedPreconditionError), error
    assert not target.is_init()
    held.mgr.destroy()
    assert not held.control.violations()


def check_one_long_operation():
    def one(held):
        held.parts = held.mgr.tensor_t(np.zeros(2 * LONG, np.int32))
        return [kp.OpSyncDevice([held.parts[i : i + 1] for i in range(0, 2 * LONG, 2)])]

    with Held(one) as held:
        held.go_on()
    assert not held.errors and not held.control.violations()


def test_other_threads_run_while_a_long_recording_is_built():
    run_child(check_other_threads_run, driver="null", config="memory=unified")


@pytest.mark.parametrize("what", ["tensor", "sequence", "manager"])
def test_objects_are_destroyed_while_a_recording_with_them_is_built(what):
    run_child(check_destroying_meanwhile, what, driver="null")


def test_one_operation_may_take_long_by_itself():
    run_child(check_one_long_operation, driver="null")
