"""A child process after fork(): the parent's objects are refused, and a new Manager works."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child
from tests.support.threads import beside

pytestmark = [
    pytest.mark.own_driver,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def forked(work, limit=60.0):
    """Runs `work` in a fork of this process, which then ends as an interpreter does; raises if that fails or
    hangs.

    It would hang in an exit handler of Mesa's, which joins threads that the child does not have.
    """
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with status {status}"
            return
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError(f"the child did not end in {limit:g} s")


def check_refusals(busy):
    mgr = kp.Manager()
    default = kp.manager()
    tensor, image = mgr.tensor([1, 2, 3]), mgr.image(np.zeros((4, 4), np.float32))
    view = tensor.data()
    seq = mgr.sequence().record(kp.OpSyncDevice([tensor]), kp.OpSyncLocal([tensor]))
    seq.eval()
    sem = mgr.semaphore()
    fence, pending = seq.fence, sem.at(1)
    driver_name = mgr.get_device_properties()["driver_name"]
    sem.at(1).future()  # starts the waiting thread
    if busy:
        seq.eval_async()

    def child():
        assert not mgr.is_init() and not tensor.is_init() and not seq.is_init()
        # What is still running writes to the host's side at an unknown time.
        assert busy or view.tolist() == [1, 2, 3]
        for use in (
            lambda: mgr.tensor([1]), lambda: mgr.sequence(), lambda: mgr.semaphore(), mgr.synchronize,
            tensor.data,
            tensor.read, lambda: tensor.write(np.zeros(3, np.float32)), lambda: tensor.fill(0), image.read,
            seq.eval,
            seq.eval_async, lambda: seq.record(kp.OpSyncDevice([tensor])), lambda: mgr.submit([seq]),
            sem.query,
            lambda: sem.signal(1), lambda: sem.wait(1), pending.wait, pending.done, lambda: mgr.submit([]),
            lambda: pending.future().result(5),
        ):  # fmt: skip
            with pytest.raises(kp.FailedPreconditionError, match="parent process"):
                use()
        fence.done()
        for thing in (mgr, tensor, image, seq, sem, fence, pending):
            assert repr(thing)
        for thing in (tensor, image, seq, mgr):
            thing.destroy()
        gc.collect()
        assert kp.alive() == 0
        if "SwiftShader" in driver_name:
            for make in (kp.manager, kp.Manager):
                with pytest.raises(kp.FailedPreconditionError, match="'spawn'"):
                    make()
            assert kp.alive() == 0
            return
        fresh = kp.manager()
        assert fresh is not default
        again = fresh.tensor([4, 5])
        again.data()[:] = 6
        fresh.sequence().record(kp.OpSyncDevice([again]), kp.OpSyncLocal([again])).eval()
        assert again.read().tolist() == [6, 6]
        assert fresh.semaphore(3).at(3).future().result(10).done()
        if "llvmpipe" in driver_name:
            assert kp.ops.add(again, 1).read().tolist() == [7, 7]

    forked(child)
    # The parent's are as they were.
    if busy:
        seq.eval_await(timeout=30)
    seq.eval()
    assert tensor.read().tolist() == [1, 2, 3]
    sem.signal(1)
    pending.wait(10)
    # What the child does not touch goes without a sound.
    forked(lambda: None)
    mgr.destroy()
    default.destroy()


@pytest.mark.parametrize("driver", ["lavapipe", "swiftshader", "null"])
def test_a_parents_objects_are_refused(driver):
    config = "gpu_us=50000" if driver == "null" else None
    run_child(check_refusals, driver == "null", driver=driver, config=config)


def check_while_threads_work():
    mgr = kp.Manager()
    stop = threading.Event()

    def work(_):
        t = mgr.tensor(np.arange(256))
        seq = mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpSyncLocal([t]))
        while not stop.is_set():
            seq.eval()
            mgr.tensor([1]).destroy()

    def child():
        with pytest.raises(kp.FailedPreconditionError, match="parent process"):
            mgr.tensor([1])
        fresh = kp.Manager()
        assert fresh.tensor([1, 2]).data().tolist() == [1, 2]
        fresh.destroy()

    with beside(work, range(3)):
        for _ in range(10):
            forked(child)
        stop.set()
    mgr.destroy()


def test_fork_while_other_threads_work():
    run_child(check_while_threads_work, driver="null")


def _double(values):
    mgr = kp.manager()
    t = mgr.tensor(values)
    copy = mgr.tensor(np.zeros_like(values))
    mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpCopy([t, copy]), kp.OpSyncLocal([copy])).eval()
    return (copy.data() * 2).tolist()


def check_pool(method):
    kp.manager().tensor([1])
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(_double, [np.full(3, i, np.float32) for i in range(6)])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method):
    assert run_child(check_pool, method, driver="lavapipe") == [[2.0 * i] * 3 for i in range(6)]
