"""What an await does in its event loop before it hands the wait over to a thread.

On the null driver, which takes as long for a submission as it is told to. No test depends on how fast the
machine is: limits of time are set so high, or work so long, that only one course is possible.
"""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver  # one pass of the suite is enough

FOR_EVER = 60.0


def sequences(mgr, count):
    tensors = [mgr.zeros(16) for _ in range(count)]
    made = [mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpSyncLocal([t])) for t in tensors]
    for each in made:
        each.eval()
    return made


def has_thread():
    return any(thread.name.startswith("kompute_py waiting") for thread in threading.enumerate())


def note_looks(monkeypatch):
    """The seconds that each look of a queued await was given."""
    from kompute_py._sync.waiting import Wake

    looks, look = [], Wake.look
    monkeypatch.setattr(Wake, "look", lambda wake, seconds: (looks.append(seconds), look(wake, seconds))[1])
    return looks


def check_short_work_starts_no_thread():
    from kompute_py._sync import turns

    turns.LOOK = FOR_EVER
    mgr = kp.Manager()
    one, two = sequences(mgr, 2)

    async def main():
        for _ in range(5):
            assert await one.eval_async() is one and not one.is_running()
            fence = two.eval_async().fence
            assert await fence is fence and not two.is_running()
            await mgr.submit([one, two])
            await asyncio.gather(*(each.fence for each in (one.eval_async(), two.eval_async())))

    asyncio.run(main())
    assert not has_thread()


def test_short_work_starts_no_thread():
    run_child(check_short_work_starts_no_thread, driver="null", config="gpu_us=2000")


def check_long_work_is_handed_over():
    from kompute_py._sync.turns import LOOK

    assert LOOK <= 1e-3
    mgr = kp.Manager()
    (seq,) = sequences(mgr, 1)
    order = []

    async def main():
        asyncio.get_running_loop().call_later(0.01, order.append, "timer")
        await seq.eval_async()
        order.append("work")

    asyncio.run(main())
    assert order == ["timer", "work"] and has_thread()


def test_long_work_is_handed_over_and_delays_no_timer():
    run_child(check_long_work_is_handed_over, driver="null", config="gpu_us=300000")


def check_a_busy_loop():
    from kompute_py._sync import turns

    turns.LOOK = FOR_EVER
    mgr = kp.Manager()
    (seq,) = sequences(mgr, 1)
    with pytest.MonkeyPatch.context() as monkeypatch:
        looks = note_looks(monkeypatch)

        async def main():
            going, turns_made = True, 0

            async def other():
                nonlocal turns_made
                while going:
                    turns_made += 1
                    await asyncio.sleep(0)

            task = asyncio.create_task(other())
            await asyncio.sleep(0)
            await seq.eval_async()
            going = False
            await task
            return turns_made

        assert asyncio.run(main()) > len(looks)
    assert not any(looks) and has_thread()


def test_an_await_does_not_block_while_others_are_ready():
    run_child(check_a_busy_loop, driver="null", config="gpu_us=200000")


def check_a_loop_that_shows_nothing():
    from kompute_py._sync import turns

    turns.LOOK = FOR_EVER
    mgr = kp.Manager()
    seqs = sequences(mgr, 20)
    with pytest.MonkeyPatch.context() as monkeypatch:
        looks = note_looks(monkeypatch)

        async def main():
            turns.turns_of(asyncio.get_running_loop())._ready = None
            await seqs[0].eval_async()
            await asyncio.gather(*(each.eval_async().fence for each in seqs))

        asyncio.run(main())
    assert looks and not any(looks)
    assert not any(each.is_running() for each in seqs)


def test_a_loop_that_does_not_show_what_is_ready():
    run_child(check_a_loop_that_shows_nothing, driver="null", config="gpu_us=3000")


def check_many():
    mgr = kp.Manager()
    seqs = sequences(mgr, 300)

    async def one(seq):
        await seq.eval_async()
        assert not seq.is_running()

    async def most_in_a_turn():
        tasks = [asyncio.create_task(one(seq)) for seq in seqs]
        ended = [0]
        while ended[-1] < len(tasks):
            await asyncio.sleep(0)
            ended.append(sum(task.done() for task in tasks))
        return max(after - before for before, after in itertools.pairwise(ended))

    # On a busy machine some go to the thread, which may end more in a turn.
    assert min(asyncio.run(most_in_a_turn()) for _ in range(8)) <= 64


def test_many_awaits_end_a_part_in_each_turn():
    run_child(check_many, driver="null", config="gpu_us=100")


def check_cancelled():
    mgr = kp.Manager()
    one, two = sequences(mgr, 2)

    async def wait(seq):
        await seq.eval_async()

    async def main():
        first, second = asyncio.create_task(wait(one)), asyncio.create_task(wait(two))
        await asyncio.sleep(0)  # both are queued
        first.cancel()
        done = await asyncio.gather(first, second, return_exceptions=True)
        assert isinstance(done[0], asyncio.CancelledError) and done[1] is None
        await one.fence
        assert not one.is_running()

    asyncio.run(main())


@pytest.mark.parametrize("microseconds", [200, 100_000])
def test_a_queued_await_is_cancelled(microseconds):
    run_child(check_cancelled, driver="null", config=f"gpu_us={microseconds}")


def check_loops_in_turn():
    mgr = kp.Manager()
    one, two = sequences(mgr, 2)
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()

    async def wait(seq):
        await seq.eval_async()

    # The first loop stops with an await in its queue.
    task = first.create_task(wait(one))
    first.call_soon(first.stop)
    first.run_forever()
    assert not task.done()
    second.run_until_complete(wait(two))
    first.run_until_complete(task)
    assert not one.is_running() and not two.is_running()
    first.close()
    second.close()


def test_loops_of_one_thread_in_turn():
    run_child(check_loops_in_turn, driver="null", config="gpu_us=20000")


def check_lost():
    from kompute_py._sync import turns

    turns.LOOK = FOR_EVER
    control = null_control()
    mgr = kp.Manager()
    one, two = sequences(mgr, 2)

    async def main():
        threading.Timer(0.1, control.lose_device).start()
        works = (one.eval_async(), two.eval_async())
        for error in await asyncio.gather(*(each.fence for each in works), return_exceptions=True):
            assert isinstance(error, kp.DeviceLostError)
        with pytest.raises(kp.DeviceLostError):
            await one

    asyncio.run(main())


def test_a_device_that_is_lost_during_a_look():
    run_child(check_lost, driver="null", config="gpu_us=300000")


def check_held():
    from kompute_py._sync import turns

    turns.LOOK = FOR_EVER  # a look at work that waits for a signal would not end
    mgr = kp.Manager()
    (seq,) = sequences(mgr, 1)
    sem = mgr.semaphore()

    async def main():
        asyncio.get_running_loop().call_later(0.02, sem.signal, 1)
        await seq.eval_async(wait=(sem, 1))
        await sem.at(1)
        seq.eval_async(wait=(sem, 2))
        asyncio.get_running_loop().call_later(0.02, sem.fail, "no signal")
        with pytest.raises(kp.AbortedError, match="no signal"):
            await seq

    asyncio.run(main())


def test_held_work_is_not_looked_at():
    run_child(check_held, driver="null")
