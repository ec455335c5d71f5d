"""Awaiting fences and sequences, and their futures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import itertools
import threading
import time

import pytest

import kompute_py as kp
from tests.support.child import python
from tests.support.kernel_sources import ADD
from tests.support.threads import beside


@pytest.fixture
def seq(mgr):
    t = mgr.zeros(64, memory_type="host")
    return mgr.sequence().record(mgr.kernel(ADD).bind(t)).record(kp.OpSyncLocal([t]))


def waiting_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("kompute_py waiting")]


@pytest.mark.capability("P52 S45", "work in asyncio", "kp.Fence", "guides/asynchronous")
def test_await(mgr, seq):
    async def main():
        assert await seq.eval_async() is seq
        assert not seq.is_running()
        fence = seq.eval_async().fence
        assert await fence is fence
        assert not seq.is_running()
        await mgr.submit([seq])
        await mgr.zeros(16).fill(1.0)

    asyncio.run(main())


def test_await_never_submits(mgr, seq):
    async def main():
        with pytest.raises(kp.FailedPreconditionError, match="eval_async"):
            await seq

    asyncio.run(main())


@pytest.mark.capability("I51", "semaphores in asyncio", "Semaphore.at", "reference/synchronization")
def test_await_a_semaphore(mgr):
    sem = mgr.semaphore()

    async def main():
        asyncio.get_running_loop().call_later(0.02, sem.signal, 2)
        await sem.at(2)
        assert sem.query() == 2
        await kp.Fence.join()

    asyncio.run(main())


def test_thousand_awaits_on_one_thread(mgr):
    sem = mgr.semaphore()
    cancelled = 0

    async def wait(value):
        nonlocal cancelled
        try:
            await sem.at(value)
        except asyncio.CancelledError:
            cancelled += 1
            raise

    async def main():
        before = kp.alive()
        tasks = [asyncio.create_task(wait(1 + i % 50)) for i in range(1000)]
        await asyncio.sleep(0.05)
        assert len(waiting_threads()) == 1
        for task in tasks[::2]:
            task.cancel()
        for value in range(1, 51):
            await asyncio.sleep(0)
            sem.signal(value)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(each, asyncio.CancelledError) for each in done) == cancelled == 500
        assert kp.alive() == before

    asyncio.run(main())
    from kompute_py._sync import waiting

    service = waiting._services[mgr]
    assert not service._calls


def test_a_thousand_awaits_are_spread_over_turns_of_the_loop(mgr):
    from kompute_py._sync import waiting

    sem = mgr.semaphore()
    begun, ended = [0], [0]

    async def wait():
        await sem.at(1)

    async def main():
        tasks = [asyncio.create_task(wait()) for _ in range(1000)]
        while ended[-1] < len(tasks):
            await asyncio.sleep(0)
            begun.append(len(waiting._services[mgr]._calls) if mgr in waiting._services else 0)
            ended.append(sum(task.done() for task in tasks))
            if begun[-1] == len(tasks) and sem.query() == 0:
                sem.signal(1)

    asyncio.run(main())
    assert max(begun) == 1000
    for counts in (begun, ended):
        assert max(after - before for before, after in itertools.pairwise(counts)) <= 64


def test_cancelled_await_leaves_the_work_tracked(mgr, seq):
    sem = mgr.semaphore()

    async def main():
        seq.eval_async(wait=[(sem, 1)])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(seq.fence, 0.02)
        assert seq.is_running()
        sem.signal(1)
        await seq

    asyncio.run(main())


def test_errors_come_out_of_the_await(mgr, seq):
    sem = mgr.semaphore()

    async def main():
        seq.eval_async(wait=[(sem, 1)])
        task = asyncio.ensure_future(asyncio.gather(seq.fence, sem.at(3), return_exceptions=True))
        await asyncio.sleep(0.01)
        sem.fail("no signal")
        for error in await asyncio.wait_for(task, 10):
            assert isinstance(error, kp.AbortedError) and str(error) == "no signal"
        with pytest.raises(kp.AbortedError):
            await seq.fence

    asyncio.run(main())


def test_several_loops_in_several_threads(mgr, seq):
    sem = mgr.semaphore()
    results = []

    async def main():
        await asyncio.wait_for(asyncio.gather(*(sem.at(value) for value in (1, 2, 3))), 30)
        results.append(sem.query())

    with beside(lambda _: asyncio.run(main()), range(4)):
        time.sleep(0.05)
        for value in (1, 2, 3):
            sem.signal(value)
    assert results == [3] * 4 and len(waiting_threads()) == 1


def test_a_loop_that_ends_while_it_waits(mgr):
    sem = mgr.semaphore()
    left = []

    async def main():
        left.append(asyncio.ensure_future(_wait()))
        await asyncio.sleep(0.01)

    async def _wait():
        await sem.at(1)

    asyncio.run(main())
    sem.signal(1)
    assert sem.at(1).future().result(10).done()


@pytest.mark.capability(
    "S48", "a future with the result or the failure of work", "Fence.future", "guides/asynchronous"
)
def test_futures(mgr, seq):
    future = seq.eval_async().fence.future()
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(30).done() and not seq.is_running()
    sem = mgr.semaphore()
    futures = [sem.at(value).future() for value in (1, 2, 3)]
    assert futures[1].cancel()
    sem.signal(1)
    done, waiting = concurrent.futures.wait(
        [futures[0], futures[2]], 30, return_when=concurrent.futures.FIRST_COMPLETED
    )
    assert done == {futures[0]} and waiting == {futures[2]}
    sem.fail("never")
    with pytest.raises(kp.AbortedError, match="never"):
        futures[2].result(30)
    assert kp.Fence.join().future().result(1).done()


def test_the_waiting_thread_sleeps(mgr):
    # A wait for any of several semaphores spins in some drivers, and takes a core from the shaders.
    sem = mgr.semaphore()
    future = sem.at(1).future()
    for waits in (True, False):
        before = time.process_time()
        time.sleep(0.3)
        assert time.process_time() - before < 0.15
        if waits:
            sem.signal(1)
            assert future.result(10).done()


def test_fences_of_two_managers(mgr, make_manager):
    other = make_manager()
    a, b = mgr.semaphore(), other.semaphore()
    joined = kp.Fence.join(a.at(1), b.at(1))

    async def main():
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, a.signal, 1)
        loop.call_later(0.04, b.signal, 1)
        await asyncio.wait_for(joined, 30)
        assert a.query() == b.query() == 1

    asyncio.run(main())
    assert joined.future().result(5) is joined


def test_the_thread_ends_with_its_manager(make_manager):
    for drop in (True, False):
        mgr = kp.Manager()
        semaphore = mgr.semaphore()  # a dropped one ends its waits
        semaphore.at(1).future()
        assert waiting_threads()
        pending = semaphore.at(2).future()
        if drop:
            mgr.destroy()
            with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
                pending.result(5)
        else:
            pending.cancel()
            mgr.destroy()
        del mgr, pending, semaphore
        gc.collect()
        assert not waiting_threads()


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "mgr.destroy()", "del mgr, future, sem"])
def test_clean_exit(ending):
    script = f"""
import kompute_py as kp
mgr = kp.Manager()
sem = mgr.semaphore()
future = sem.at(1).future()
{ending}
"""
    run = python("-c", script)
    assert run.returncode == 0 and run.stderr == ""
