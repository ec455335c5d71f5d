"""Threads: a Manager is anybody's at any time, a Sequence one thread's at a time.

``KOMPUTE_PY_TEST_EVALS`` says how many evaluations the long tests make in all, over all threads (100000 for
the full run).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import warnings

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.threads import on_threads

THREADS = 8
EVALS = int(os.environ.get("KOMPUTE_PY_TEST_EVALS", "8000"))

ADD_TABLE = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Mine { int mine[]; };
layout(set = 0, binding = 1) readonly buffer Table { int table[]; };
void main() { mine[gl_GlobalInvocationID.x] += table[gl_GlobalInvocationID.x]; }
"""
ADD_ONE = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Total { int total[]; };
void main() { total[gl_GlobalInvocationID.x] += 1; }
"""


@pytest.fixture
def in_the_middle(mgr):
    """A sequence that another thread is just evaluating: it records an operation that waits for `go`."""
    inside, go = threading.Event(), threading.Event()
    tensor = mgr.zeros(4)

    class Slow(kp.OpBase):
        reads, writes = (), (tensor,)

        def record(self, cmd):
            inside.set()
            assert go.wait(60)

    seq = mgr.sequence().record(Slow())
    errors = []

    def run():
        try:
            seq.eval()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(60)
    yield seq, tensor, go, thread, errors
    go.set()
    thread.join()


def test_a_second_thread_is_refused(mgr, in_the_middle):
    seq, tensor, go, thread, errors = in_the_middle
    other = mgr.sequence().record(kp.OpSyncDevice([tensor]))
    for call in (
        lambda: seq.record(kp.OpSyncDevice([tensor])),
        lambda: seq.eval(kp.OpSyncDevice([tensor])),
        seq.eval,
        seq.eval_async,
        seq.clear,
        seq.rerecord,
        lambda: mgr.submit([other, seq]),
    ):
        with pytest.raises(kp.FailedPreconditionError, match=r"another thread .* one thread at a time"):
            call()
    assert not seq.is_running() and seq.is_complete()
    assert "another thread is recording it" in repr(seq)
    other.eval()  # nothing of it was held on to
    go.set()
    thread.join()
    assert not errors
    seq.eval()
    assert "Slow" in repr(seq)


def test_another_thread_may_destroy(in_the_middle):
    seq, _, go, thread, errors = in_the_middle
    seq.destroy()
    assert not seq.is_init()
    go.set()
    thread.join()
    assert len(errors) == 1 and isinstance(errors[0], kp.FailedPreconditionError)
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        seq.eval()


@pytest.mark.parametrize("by", ["an operation", "another thread"])
def test_a_sequence_may_go_while_one_submitted_with_it_is_recorded(mgr, by):
    tensor = mgr.zeros(4)
    gone = mgr.sequence().record(kp.OpSyncDevice([tensor]))
    names = []

    class Destroys(kp.OpBase):
        reads, writes = (), (tensor,)

        def record(self, cmd):
            names.append(repr(gone))
            if by == "an operation":
                gone.destroy()
            else:
                on_threads(lambda i: gone.destroy(), range(1))

    seq = mgr.sequence().record(Destroys())
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        mgr.submit([seq, gone])
    assert not gone.is_init() and not seq.is_running()
    # It could be looked at from inside its own submission.
    assert "OpSyncDevice" in names[0] or "another thread" in names[0]
    mgr.sequence().record(kp.OpSyncDevice([tensor])).eval()


def test_what_is_recorded_is_seen_from_other_threads(mgr):
    """Looking never disturbs the thread that drives, and is never told half of a change."""
    tensor = mgr.zeros(64)
    sync, back = kp.OpSyncDevice([tensor]), kp.OpSyncLocal([tensor])
    seq = mgr.sequence(timestamps=True).record(sync, back)
    seq.eval()
    stop = threading.Event()

    def look():
        while not stop.is_set():
            names = [name for name, _ in seq.timings()] if not seq.is_running() else []
            assert names in ([], ["OpSyncDevice", "OpSyncLocal"])
            assert repr(seq).endswith(("[]>", "[OpSyncDevice]>", "[OpSyncDevice, OpSyncLocal]>"))
            assert seq.name in ("", "a", "b")
            seq.mermaid()

    def body(i):
        if i == 0:
            try:
                for turn in range(300):
                    seq.clear()
                    seq.record(sync, back)
                    seq.name = "ab"[turn % 2]
                    seq.eval()
            finally:
                stop.set()
            return
        while not stop.is_set():
            try:
                look()
            except kp.FailedPreconditionError as error:
                assert "running" in str(error) or "record" in str(error) or "evaluated" in str(error), error

    on_threads(body, range(3))


def test_one_sequence_and_many_threads(mgr):
    """Whatever they try at once is done or refused; the sequence stays whole."""
    tensor = mgr.zeros(64)
    seq = mgr.sequence(timestamps=True)
    sync = kp.OpSyncDevice([tensor])
    refused = []

    def body(i):
        calls = (
            lambda: seq.record(sync), seq.eval, seq.clear, seq.eval_async, seq.rerecord, seq.get_timestamps,
            lambda: repr(seq), lambda: seq.eval_await(timeout=10) if seq.is_running() else None,
            lambda: seq.fence.wait(10), seq.is_complete, seq.timings,
        )  # fmt: skip
        for turn in range(200):
            try:
                calls[(i + turn * 7) % len(calls)]()
            except kp.FailedPreconditionError as error:
                refused.append(str(error))

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # eval_await warns where another thread was a moment faster
            on_threads(body, range(THREADS))
    finally:
        sys.setswitchinterval(old)
    if seq.is_running():
        seq.eval_await()
    tensor.data()[:] = 3
    seq.clear()
    seq.record(sync).eval()
    assert tensor.read().tolist() == [3] * 64


def evaluate_from_threads(mgr, queues, evals):
    """Own sequences over shared and private tensors; integers, so that sums are exact."""
    table_of = np.arange(64, dtype=np.int32)
    table, total = mgr.tensor_t(table_of), mgr.tensor_t(np.zeros(64, np.int32))
    mgr.sequence().eval(kp.OpSyncDevice([table, total]))
    add_table, add_one = mgr.kernel(ADD_TABLE), mgr.kernel(ADD_ONE)
    turns = evals // THREADS // 3

    def body(i):
        queue = i % queues
        mine, seen = mgr.tensor_t(np.zeros(64, np.int32)), mgr.tensor_t(np.zeros(64, np.int32))
        mgr.sequence(queue).eval(kp.OpSyncDevice([mine, seen]))
        private = mgr.sequence(queue).record(add_table.bind(mine, table))
        shared = mgr.sequence((i + 1) % queues).record(add_one.bind(total))
        look = mgr.sequence((i + 2) % queues).record(kp.OpCopy([total, seen]), kp.OpSyncLocal([seen]))
        before = 0
        for turn in range(turns):
            private.eval_async()
            if turn % 64 == 63:
                shared.clear()
                shared.record(add_one.bind(total))
            shared.eval()
            look.eval()
            now = seen.data()
            assert (now == now[0]).all() and now[0] > before, (
                "a moment's total is one moment's, with our own in it"
            )
            before = int(now[0])
            private.eval_await()
        assert (mine.read() == turns * table_of).all()

    on_threads(body, range(THREADS))
    assert (total.read() == THREADS * turns).all()


@pytest.mark.parametrize("queues", [1, 3])
def test_eight_threads(make_manager, queues):
    mgr = make_manager(family_queue_indices=[0] * queues)
    evaluate_from_threads(mgr, queues, EVALS // 2)


def check_families(evals, config):
    """The null driver has families and queues of its own; it copies and fills, and notes what must not be
    done.
    """
    mgr = kp.Manager(family_queue_indices=[0, 0, 1, 1], validation=True)
    total = mgr.tensor_t(np.zeros(64, np.int32))
    mgr.sequence().eval(kp.OpSyncDevice([total]))
    turns = evals // THREADS // 3

    def body(i):
        mine, seen = mgr.tensor_t(np.full(64, i + 1, np.int32)), mgr.tensor_t(np.zeros(64, np.int32))
        mgr.sequence(i % 4).eval(kp.OpSyncDevice([mine, seen]))
        shared = mgr.sequence((i + 1) % 4).record(kp.OpCopy([mine, total]))
        look = mgr.sequence((i + 2) % 4).record(kp.OpCopy([total, seen]), kp.OpSyncLocal([seen]))
        private = mgr.sequence(i % 4).record(kp.OpSyncDevice([mine]))
        for _ in range(turns):
            private.eval_async()
            shared.eval_async()
            look.eval()
            now = seen.data()
            assert (now == now[0]).all() and 1 <= now[0] <= THREADS
            shared.eval_await()
            private.eval_await()

    on_threads(body, range(THREADS))
    mgr.synchronize()
    mgr.destroy()
    assert not null_control().violations()


@pytest.mark.own_driver
@pytest.mark.parametrize("config", ["memory=discrete", "memory=noncoherent,gpu_us=30"])
def test_eight_threads_and_queue_families(config):
    evals = EVALS // 2 if "gpu_us" not in config else EVALS // 8
    run_child(check_families, evals, config, driver="null", layer="newer", config=config, timeout=600)


def test_a_manager_is_everybodys(mgr):
    """Objects are made, named, moved, listed and destroyed on all threads at once."""

    def body(i):
        for turn in range(25):
            t = mgr.tensor(np.full(256, i, np.float32), memory_type=kp.MemoryTypes(turn % 4))
            t.write(np.full(256, i, np.float32))
            t.name = f"of thread {i}"
            u = mgr.zeros(256)
            t.copy_to(u)
            assert (u.read() == i).all()
            sem = mgr.semaphore()
            mgr.submit([], signal=(sem, 1)).wait()
            assert sem.wait(1) is sem
            mgr.memory.labels()
            if turn % 5 == i % 5:
                mgr.memory.trim()
            if turn % 2:
                t.destroy()

    on_threads(body, range(THREADS))


def test_fences_of_other_threads(mgr):
    """Any thread waits for any work, in any way; it is collected once."""
    tensors = [mgr.zeros(256) for _ in range(THREADS)]
    sequences = [mgr.sequence().record(kp.OpSyncDevice([t])) for t in tensors]
    fences = [None] * THREADS
    meet = threading.Barrier(THREADS)

    async def wait(fence):
        await fence

    def body(i):
        for turn in range(25):
            tensors[i].data()[:] = turn
            fences[i] = sequences[i].eval_async().fence
            meet.wait(60)
            for fence in fences:
                if i % 3 == 0:
                    asyncio.run(wait(fence))
                else:
                    fence.wait() if i % 3 == 1 else fence.future().result(60)
            assert not any(seq.is_running() for seq in sequences)
            assert (tensors[i].read() == turn).all()
            meet.wait(60)

    on_threads(body, range(THREADS))
