"""Every way to learn that work is done makes its results visible, on memory that only flush and invalidate
carry over.

Each case runs on the null driver's memory without a coherent type, where a host copy that was not invalidated
shows noise.
"""

from __future__ import annotations

import asyncio
import gc
import time

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

CONFIG = "memory=noncoherent,gpu_us=300"


def in_child(function, *arguments):
    assert run_child(function, *arguments, driver="null", config=CONFIG) == []


def finished(mgr):
    mgr.destroy()
    del mgr
    gc.collect()
    return [str(each) for each in null_control().violations()]


def uploaded(mgr, kind=kp.MemoryTypes.device, count=64):
    tensor = mgr.tensor_t(np.zeros(count, np.uint32), kind)
    mgr.sequence().eval(kp.OpSyncDevice([tensor]))
    return tensor


def writer(mgr, tensor, value=7, queue=0):
    return mgr.sequence(queue).record(kp.OpFill([tensor], value), kp.OpSyncLocal([tensor]))


def until(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end


def loop(coroutine):
    asyncio.run(coroutine)


async def wait_in_loop(what):
    await what


def temporary(mgr, tensor):
    """The fence of a sequence that nobody holds."""
    fence = writer(mgr, tensor).eval_async().fence
    gc.collect()
    return fence


def signalling(mgr, tensor):
    semaphore = mgr.semaphore()
    sequence = writer(mgr, tensor)
    sequence.eval_async(signal=[(semaphore, 1)])
    return semaphore, sequence


def by_eval(mgr, tensor):
    writer(mgr, tensor).eval()


def by_eval_await(mgr, tensor):
    writer(mgr, tensor).eval_async().eval_await()


def by_await_of_sequence(mgr, tensor):
    loop(wait_in_loop(writer(mgr, tensor).eval_async()))


def by_fence(mgr, tensor):
    temporary(mgr, tensor).wait()


def by_fence_of_submit(mgr, tensor):
    mgr.submit([writer(mgr, tensor)]).wait()


def by_poll_of_fence(mgr, tensor):
    until(temporary(mgr, tensor).done)


def by_future(mgr, tensor):
    temporary(mgr, tensor).future().result(60)


def by_callback(mgr, tensor):
    seen = []
    future = temporary(mgr, tensor).future()
    future.add_done_callback(lambda _: seen.append(tensor.data().copy()))
    until(lambda: seen)
    np.testing.assert_array_equal(seen[0], 7)


def by_await_of_fence(mgr, tensor):
    loop(wait_in_loop(temporary(mgr, tensor)))


def by_join(mgr, tensor):
    kp.Fence.join(temporary(mgr, tensor), temporary(mgr, uploaded(mgr))).wait()


def by_poll_of_sequence(mgr, tensor):
    sequence = writer(mgr, tensor).eval_async()
    until(sequence.is_complete)


def by_synchronize(mgr, tensor):
    sequence = writer(mgr, tensor).eval_async()
    mgr.synchronize()
    assert sequence.is_complete()


def by_synchronize_of_dropped(mgr, tensor):
    writer(mgr, tensor).eval_async()
    gc.collect()
    mgr.synchronize()


def by_destroy(mgr, tensor):
    writer(mgr, tensor).eval_async().destroy()


def by_semaphore(mgr, tensor):
    semaphore, sequence = signalling(mgr, tensor)
    semaphore.wait(1, 60)
    del sequence


def by_query_of_semaphore(mgr, tensor):
    semaphore, sequence = signalling(mgr, tensor)
    until(lambda: semaphore.query() == 1)
    del sequence


def by_moment_of_semaphore(mgr, tensor):
    semaphore, sequence = signalling(mgr, tensor)
    semaphore.at(1).wait(60)
    del sequence


def by_later_work(mgr, tensor):
    sequence = writer(mgr, tensor).eval_async()
    mgr.sequence().eval(kp.OpFill([mgr.empty(4)], 0))
    del sequence


def by_dependent_work_of_another_queue(mgr, tensor):
    sequence = writer(mgr, tensor, queue=1).eval_async()
    mgr.sequence(2).eval(kp.OpCopy([tensor, mgr.empty(64, np.uint32)]))
    del sequence


def by_work_behind_a_semaphore(mgr, tensor):
    semaphore, sequence = signalling(mgr, tensor)
    other = mgr.sequence(2).record(kp.OpFill([mgr.empty(4)], 0))
    other.eval_async(wait=[(semaphore, 1)]).eval_await()
    del sequence


def by_held_work(mgr, tensor):
    semaphore = mgr.semaphore()
    sequence = writer(mgr, tensor)
    sequence.eval_async(wait=[(semaphore, 1)])
    semaphore.signal(1)
    mgr.synchronize()
    del sequence


def by_read(mgr, tensor):
    sequence = writer(mgr, tensor).eval_async()
    tensor.read()
    del sequence


def by_mapping(mgr, tensor):
    sequence = writer(mgr, tensor).eval_async()
    with tensor.map(read=True):
        pass
    del sequence


WAYS = {name: value for name, value in list(globals().items()) if name.startswith("by_")}


def learn(names, kind):
    mgr = kp.Manager(0, [0, 0, 1])
    for name in names:
        tensor = uploaded(mgr, kp.MemoryTypes(kind))
        before = tensor.data()
        WAYS[name](mgr, tensor)
        np.testing.assert_array_equal(before, 7, err_msg=name)
        np.testing.assert_array_equal(tensor.data(), 7, err_msg=name)
    mgr.synchronize()
    del tensor, before
    return finished(mgr)


@pytest.mark.own_driver
@pytest.mark.parametrize("kind", ["device", "host"])
def test_every_way_to_learn(kind):
    in_child(learn, list(WAYS), getattr(kp.MemoryTypes, kind).value)


def array_of_destroyed():
    mgr = kp.Manager(0)
    tensor = uploaded(mgr)
    array = tensor.data()
    sequence = writer(mgr, tensor).eval_async()
    tensor.destroy()
    sequence.fence.wait()
    np.testing.assert_array_equal(array, 7)
    del sequence, tensor, array
    return finished(mgr)


@pytest.mark.own_driver
def test_arrays_of_a_tensor_that_was_destroyed_meanwhile():
    in_child(array_of_destroyed)


def host_writes_survive():
    mgr = kp.Manager(0, [0, 0])
    # A host copy that a recording does not write, collected after something else of it was destroyed.
    t, u, v = uploaded(mgr), uploaded(mgr), uploaded(mgr)
    t.data()[:] = 42
    sequence = mgr.sequence().record(kp.OpCopy([v, t]), kp.OpFill([u], 1), kp.OpSyncLocal([v])).eval_async()
    u.destroy()
    sequence.eval_await()
    np.testing.assert_array_equal(t.data(), 42)

    # What the host writes once it has learned of the end stays when the sequence is collected after that.
    sequence = writer(mgr, t).eval_async()
    fence = mgr.submit([])
    mgr.synchronize()
    t.data()[:] = 43
    sequence.eval_await() if sequence.is_running() else None
    fence.wait()
    np.testing.assert_array_equal(t.data(), 43)

    # OpSyncLocal of memory that host and device share writes nothing.
    h = uploaded(mgr, kp.MemoryTypes.host)
    sequence = mgr.sequence().record(kp.OpSyncLocal([h]), kp.OpFill([v], 3)).eval_async()
    h.data()[:] = 44
    sequence.eval_await()
    np.testing.assert_array_equal(h.data(), 44)
    np.testing.assert_array_equal(h.read(), 44)
    del sequence, fence, t, u, v, h
    return finished(mgr)


@pytest.mark.own_driver
def test_what_the_host_wrote_stays():
    in_child(host_writes_survive)


def parts():
    mgr = kp.Manager(0, [0, 0])
    t = uploaded(mgr)
    bring = mgr.sequence().record(kp.OpFill([t], 7), kp.OpSyncLocal([t[8:24]]))

    # The host works beside the part, in the same atom of 64 bytes.
    bring.eval_async()
    t.data()[:8] = 5
    t.data()[24:] = 6
    bring.eval_await()
    expected = np.array([5] * 8 + [7] * 16 + [6] * 40, np.uint32)
    np.testing.assert_array_equal(t.data(), expected)

    # An upload that comes after finds what was brought and what the host wrote.
    t.data()[8:24] = 0
    bring.eval_async()
    t.data()[:8] = 8
    expected[:8] = 8
    send = mgr.sequence(1).record(kp.OpSyncDevice([t])).eval_async()
    send.eval_await()
    np.testing.assert_array_equal(t.data(), expected)
    np.testing.assert_array_equal(t.read(), expected)
    bring.eval_await() if bring.is_running() else None

    # Down and up again in one recording.
    both = mgr.sequence().record(
        kp.OpFill([t], 9), kp.OpSyncLocal([t[3:30]]), kp.OpFill([t], 1), kp.OpSyncDevice([t[:32]])
    )
    both.eval()
    expected[3:30] = 9
    np.testing.assert_array_equal(t.data(), expected)
    np.testing.assert_array_equal(t.read(), np.r_[expected[:32], [1] * 32])

    # Two downloads into one atom, in flight together, on two queues.
    mgr.sequence().eval(kp.OpFill([t], 2))
    one = mgr.sequence().record(kp.OpSyncLocal([t[4:6]])).eval_async()
    two = mgr.sequence(1).record(kp.OpSyncLocal([t[6:9]])).eval_async()
    kp.Fence.join(one.fence, two.fence).wait()
    expected[4:9] = 2
    np.testing.assert_array_equal(t.data(), expected)
    del bring, send, both, one, two, t
    return finished(mgr)


@pytest.mark.own_driver
def test_parts_that_share_an_atom_with_what_the_host_writes():
    in_child(parts)


def refused():
    mgr = kp.Manager(0, [0, 0])
    t = uploaded(mgr)
    t.name = "weights"
    down = mgr.sequence().record(kp.OpFill([t], 7), kp.OpSyncLocal([t[8:16]]))
    up = mgr.sequence().record(kp.OpSyncDevice([t]))
    semaphore = mgr.semaphore()
    down.eval_async(wait=[(semaphore, 1)])
    with pytest.raises(kp.FailedPreconditionError, match=r"weights.*nonCoherentAtomSize"):
        up.eval_async()
    assert not up.is_running()
    # Parts of whole atoms are free of that.
    other = mgr.sequence().record(kp.OpSyncDevice([t[32:]])).eval_async()
    semaphore.signal(1)
    up.eval()
    kp.Fence.join(down.fence, other.fence).wait()
    np.testing.assert_array_equal(t.data()[8:16], 7)
    with pytest.raises(kp.FailedPreconditionError, match=r"weights.*nonCoherentAtomSize"):
        mgr.submit([down, up])
    mgr.submit([up, down]).wait()
    np.testing.assert_array_equal(t.read(), 7)
    # Of several queues: none is submitted.
    beside = mgr.sequence(1).record(kp.OpFill([u := uploaded(mgr)], 3))
    with pytest.raises(kp.FailedPreconditionError, match=r"weights.*nonCoherentAtomSize"):
        mgr.submit([beside, down, up])
    assert not beside.is_running() and u.read().max() != 3
    # What comes on another queue waits on the host, unless the first is held.
    again = mgr.sequence(1).record(kp.OpSyncDevice([t]))
    with pytest.raises(kp.FailedPreconditionError, match=r"weights.*nonCoherentAtomSize"):
        mgr.submit([beside, down, again], wait=[(semaphore, 2)])
    assert not any(each.is_running() for each in (beside, down, again)) and u.read().max() != 3
    mgr.submit([beside, down, again]).wait()
    assert u.read().min() == 3
    del down, up, other, t, semaphore, beside, again, u
    return finished(mgr)


@pytest.mark.own_driver
def test_uploads_that_cannot_wait_for_a_part_are_refused():
    in_child(refused)


def reuse():
    mgr = kp.Manager(0, memory_block_size="1 MiB")
    kinds = (kp.MemoryTypes.host, kp.MemoryTypes.deviceAndHost, kp.MemoryTypes.device)
    for old in kinds:
        for new in kinds:
            gone = uploaded(mgr, old)
            gone.data()[:] = 5
            del gone
            t = mgr.empty(64, np.uint32, memory_type=new)
            t.fill(7).wait()
            np.testing.assert_array_equal(t.read(), 7)
            mgr.sequence().eval(kp.OpSyncLocal([t]))
            np.testing.assert_array_equal(t.data(), 7)
    del t
    return finished(mgr)


@pytest.mark.own_driver
def test_memory_that_another_tensor_left_unflushed():
    in_child(reuse)
