"""Memory that is given up while work uses it: freed when all of that work is done, and not looked through
meanwhile.
"""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.threads import on_threads

pytestmark = pytest.mark.own_driver

KIB = 1 << 10


class Work:
    """Recordings on several queues that use tensors of their own, each held until it is signalled."""

    def __init__(self, queues: int) -> None:
        self.mgr = kp.Manager(family_queue_indices=[0] * queues)
        self.queues = queues
        self.mgr.memory.trim()

    def used(self) -> int:
        self.mgr.empty(1, np.uint8, "storage")  # frees what is due
        gc.collect()
        return self.mgr.memory.used

    def hold(self, tensor: kp.Tensor, queue: int) -> tuple[kp.Sequence, kp.Semaphore]:
        semaphore = self.mgr.semaphore()
        seq = self.mgr.sequence(queue, disjoint=[tensor])
        seq.record(kp.OpFill([tensor[queue : queue + 1]], queue + 1.0)).eval_async(wait=(semaphore, 1))
        return seq, semaphore


def free_in_any_order() -> None:
    work = Work(3)
    base = work.used()
    for order in itertools.permutations(range(3)):
        tensor = work.mgr.empty(KIB, np.float32, "storage")
        held = [work.hold(tensor, queue) for queue in range(3)]
        full = work.used()
        assert full >= base + 4 * KIB
        tensor.destroy()
        for done, queue in enumerate(order):
            assert work.used() >= base + 4 * KIB, (order, done)
            seq, semaphore = held[queue]
            semaphore.signal(1)
            seq.eval_await()
        del held, seq, semaphore
        assert work.used() == base, order
    work.mgr.destroy()
    assert not null_control().violations()


def test_memory_is_freed_when_the_last_of_its_queues_is_done():
    run_child(free_in_any_order, driver="null")


def free_many() -> None:
    work = Work(2)
    base = work.used()
    # Two groups: one whose work ends first, and one that waits.
    first, second = ([work.mgr.empty(KIB, np.float32, "storage") for _ in range(200)] for _ in range(2))
    ends = []
    for tensors, queue in ((first, 0), (second, 1)):
        semaphore = work.mgr.semaphore()
        seq = work.mgr.sequence(queue)
        seq.record(kp.OpFill(tensors, 1.0)).eval_async(wait=(semaphore, 1))
        ends.append((seq, semaphore))
    for a, b in zip(first, second, strict=True):
        a.destroy()
        b.destroy()
    assert work.used() >= base + 400 * 4 * KIB
    ends[0][1].signal(1)
    ends[0][0].eval_await()
    assert base + 200 * 4 * KIB <= work.used() < base + 250 * 4 * KIB
    ends[1][1].signal(1)
    ends[1][0].eval_await()
    ends.clear()
    del seq, semaphore
    assert work.used() == base
    work.mgr.destroy()
    assert not null_control().violations()


def test_each_group_is_freed_with_its_own_work():
    run_child(free_many, driver="null")


def free_what_was_cancelled() -> None:
    work = Work(2)
    base = work.used()
    tensor = work.mgr.empty(KIB, np.float32, "storage")
    held = [work.hold(tensor, queue) for queue in range(2)]
    tensor.destroy()
    held[0][1].fail("no longer wanted")
    with pytest.raises(kp.AbortedError):
        held[0][0].eval_await()
    assert work.used() >= base + 4 * KIB
    held[1][1].signal(1)
    held[1][0].eval_await()
    del held
    assert work.used() == base
    work.mgr.destroy()
    assert not null_control().violations()


def test_memory_of_cancelled_work_is_freed():
    run_child(free_what_was_cancelled, driver="null")


def count_questions() -> dict[str, list[int]]:
    control = null_control()
    counts = {}
    for retired in (10, 1000):
        mgr = kp.Manager()
        tensors = [mgr.empty(4, np.float32, "storage") for _ in range(retired)]
        seq = mgr.sequence().record(kp.OpFill(tensors, 1.0))
        seq.eval_async()
        for tensor in tensors:
            tensor.destroy()
        made = [mgr.empty(4, np.float32, "storage")]
        control.clear()
        made += [mgr.empty(4, np.float32, "storage") for _ in range(10)]
        assert seq.is_running() and mgr.memory.used >= 16 * retired
        counts[str(retired)] = [control.calls("vkGetSemaphoreCounterValue"), control.total_calls]
        seq.eval_await()
        mgr.destroy()
    assert not control.violations()
    return counts


def test_a_new_tensor_asks_once_for_all_that_is_retired():
    """However much memory waits for a queue, a new tensor costs the same."""
    few, many = run_child(count_questions, driver="null", config="gpu_us=500000").values()
    assert few == many and many[0] <= 10, (few, many)


def free_while_others_make() -> int:
    """Threads make, use and drop tensors on queues of their own."""
    mgr = kp.Manager(family_queue_indices=[0, 0, 0])
    base_of: list[int] = []
    for round_ in range(2):

        def run(queue: int) -> None:
            seq = mgr.sequence(queue)
            shared = mgr.empty(4)
            for i in range(150):
                made = mgr.full(64, i)
                seq.clear()
                seq.record(kp.OpCopy([made[:4], shared])).eval_async()
                made.destroy()
                seq.eval_await()
                assert shared.read()[0] == i

        on_threads(run, range(3))
        gc.collect()
        mgr.synchronize()
        base_of.append(mgr.memory.used)
        assert round_ == 0 or base_of[0] == base_of[1]
    mgr.destroy()
    assert not null_control().violations()
    return base_of[0]


def test_threads_retire_and_free():
    run_child(free_while_others_make, driver="null", config="gpu_us=50")
