"""The first upload happens once, takes the host copy as it is then, and never goes over what was computed
since.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.manager.test_first_use import ADD, DATA, PIXELS, N, soil
from tests.support.threads import on_threads


def test_the_first_upload_takes_the_host_copy_and_later_edits_need_a_sync(mgr):
    t = mgr.tensor(DATA)
    t.data()[:] = 7
    assert np.all(t.read() == 7)
    t.data()[:] = 8
    assert np.all(t.read() == 7)
    mgr.sequence().eval(kp.OpCopy([t, mgr.empty(N)]))
    assert np.all(t.read() == 7)
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    assert np.all(t.read() == 8)
    t.write(np.full(N, 9, np.float32))
    assert np.all(t.read() == 9) and np.all(t.data() == 8)


def test_the_hosts_edits_do_not_reach_an_upload_that_is_on_its_way(mgr):
    for make in (lambda: mgr.tensor(DATA), lambda: mgr.image(PIXELS)):
        t = make()
        holds = t.data().copy()
        target = mgr.empty(t.size())
        fence = target.copy_from(t) if not isinstance(t, kp.Image) else t.copy_to(target)
        t.data()[:] = 42
        fence.wait()
        np.testing.assert_array_equal(target.read(), holds)


def test_edits_of_zeros_count_where_nothing_was_on_the_device(mgr):
    t = mgr.zeros(N)
    t.data()[:] = 5
    assert np.all(t.read() == 5)
    untouched = mgr.zeros(N)
    assert not untouched.read().any()
    untouched.data()[:] = 5
    assert not untouched.read().any()


def test_a_recording_that_syncs_first_brings_the_data(mgr):
    add = mgr.kernel(ADD)
    t = mgr.tensor(DATA)
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(add.bind(t))
    seq.eval()
    t.data()[:] = 42  # of no concern to what was uploaded
    result = DATA + (DATA > 64)
    np.testing.assert_array_equal(t.read(), result)
    seq.destroy()
    np.testing.assert_array_equal(t.read(), result)
    # The same where what syncs is gone before anybody looks.
    t = mgr.tensor(DATA)
    mgr.sequence().record(kp.OpSyncDevice([t])).record(add.bind(t)).eval()
    np.testing.assert_array_equal(t.read(), result)
    t = mgr.tensor(DATA)
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(add.bind(t))
    seq.eval_async()
    seq.eval_await()
    seq.clear()
    other = mgr.empty(N)
    mgr.sequence(0).eval(kp.OpCopy([t, other]))
    np.testing.assert_array_equal(other.read(), result)


def test_what_is_held_uploads_nothing_before_it_runs(make_manager):
    mgr = make_manager(family_queue_indices=[0, 0])
    add = mgr.kernel(ADD)
    t = mgr.tensor(DATA)
    go = mgr.semaphore()
    held = mgr.sequence().record(kp.OpSyncDevice([t])).record(add.bind(t))
    held.eval_async(wait=(go, 1))
    # Signals what the other one waits for, and so comes before it.
    early = mgr.empty(N)
    mgr.sequence(1).record(kp.OpCopy([t, early])).eval_async(signal=(go, 1)).eval_await()
    np.testing.assert_array_equal(early.read(), DATA)
    held.eval_await()
    np.testing.assert_array_equal(t.read(), DATA + (DATA > 64))


def test_what_is_cancelled_uploads_nothing(mgr):
    t = mgr.tensor(DATA)
    soil(mgr)
    go = mgr.semaphore()
    seq = mgr.sequence().record(kp.OpSyncDevice([t]))
    seq.eval_async(wait=(go, 1))
    go.fail("not today")
    with pytest.raises(kp.KomputeError, match="not today"):
        seq.eval_await()
    np.testing.assert_array_equal(t.read(), DATA)
    # It did run once: what it left is not overwritten when a second run of it is cancelled.
    t = mgr.tensor(DATA)
    go = mgr.semaphore()
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpFill([t], 3.0))
    seq.eval()
    seq.eval_async(wait=(go, 1))
    go.fail("not today")
    with pytest.raises(kp.KomputeError, match="not today"):
        seq.eval_await()
    assert np.all(t.read() == 3)


def test_threads_that_use_what_is_fresh(make_manager):
    mgr = make_manager(family_queue_indices=[0, 0, 0])
    for _ in range(20):
        tensors = [mgr.tensor(DATA + i) for i in range(4)]
        images = [mgr.image(PIXELS + i) for i in range(2)]
        begin = threading.Barrier(6)

        def work(number: int, tensors=tensors, images=images, begin=begin) -> None:
            begin.wait()
            for i in range(4):
                at = (i + number) % 4
                t = tensors[at]
                if number % 3 == 0:
                    seen = t.read()
                elif number % 3 == 1:
                    target = mgr.empty(N)
                    mgr.sequence(number % 2).eval(kp.OpCopy([t, target]))
                    seen = target.read()
                else:
                    # Overwrites with the same, so that what it brings is what all others are to see; on
                    # the queue of reads, because nothing orders those with other threads' work elsewhere.
                    mgr.sequence(0).record(kp.OpSyncDevice([t])).eval()
                    seen = t.read()
                np.testing.assert_array_equal(seen, DATA + at)
            for i, image in enumerate(images):
                np.testing.assert_array_equal(image.read(), PIXELS + i)

        on_threads(work, range(6))
