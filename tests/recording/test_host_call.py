"""OpHostCall: a function on the host between two operations, in all ways to run a recording."""

from __future__ import annotations

import asyncio
import signal
import threading

import numpy as np
import pytest

import kompute_py as kp

ADD = """
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float by; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += by; }
"""
TYPES = list(kp.MemoryTypes.__members__.values())


def awaited(mgr, seq):
    async def main():
        await seq.eval_async()

    asyncio.run(main())


def awaited_fence(mgr, seq):
    async def main():
        await seq.eval_async().fence

    asyncio.run(main())


def signalled(mgr, seq):
    semaphore = mgr.semaphore()
    seq.eval_async(wait=mgr.zeros(2).fill(1), signal=(semaphore, 3))
    try:
        semaphore.wait(3, timeout=20)
    finally:
        seq.eval_await()


# Each runs the recording once and waits.
WAYS = {
    "eval": lambda mgr, seq: seq.eval(),
    "eval_await": lambda mgr, seq: seq.eval_async().eval_await(),
    "timed": lambda mgr, seq: seq.eval_async().eval_await(timeout=20),
    "await": awaited,
    "await fence": awaited_fence,
    "fence.wait": lambda mgr, seq: seq.eval_async().fence.wait(timeout=20),
    "fence.done": lambda mgr, seq: seq.eval_async().fence.wait() and seq.fence.done(),
    "future": lambda mgr, seq: seq.eval_async().fence.future().result(20),
    "joined": lambda mgr, seq: kp.Fence.join(mgr.zeros(2).fill(1), seq.eval_async().fence).wait(timeout=20),
    "submit": lambda mgr, seq: mgr.submit([seq]).wait(timeout=20),
    "semaphores": signalled,
    "rerecorded": lambda mgr, seq: (seq.rerecord(), seq.eval()),
}


@pytest.fixture
def add(mgr):
    return mgr.kernel(ADD)


@pytest.mark.capability("I71", "Python between two operations", "kp.OpHostCall", "guides/custom_operations")
@pytest.mark.parametrize("way", WAYS)
def test_a_function_between_operations(mgr, add, way):
    t = mgr.tensor_t(np.arange(1000, dtype=np.float32))
    seen = []

    def square():
        seen.append(t.read())
        t.write(seen[-1] ** 2)

    seq = mgr.sequence().record(add.bind(t, by=1.0), kp.OpHostCall(square), add.bind(t, by=10.0))
    seq.record(kp.OpSyncLocal([t]))
    expected = np.arange(1000, dtype=np.float32)
    for turn in range(3):
        t.write(expected)
        WAYS[way](mgr, seq)
        assert not seq.is_running() and seq.is_complete()
        assert len(seen) == turn + 1
        np.testing.assert_array_equal(seen[-1], expected + 1)
        expected = (expected + 1) ** 2 + 10
        np.testing.assert_array_equal(t.data(), expected)
        expected = expected % 7


@pytest.mark.parametrize("memory_type", TYPES)
@pytest.mark.parametrize("declared", [True, False])
def test_host_copies_are_fresh_on_both_sides(mgr, add, memory_type, declared):
    t = mgr.tensor_t(np.zeros(100, np.float32), memory_type)
    seen = []

    def double():
        if t.memory_type() is kp.MemoryTypes.storage:
            seen.append(t.read())
            t.write(seen[-1] * 2)
            return
        seen.append(t.data().copy())
        t.data()[:] *= 2

    lists = {"reads": [t], "writes": [t]} if declared else {}
    seq = mgr.sequence().record(add.bind(t, by=1.0))
    if memory_type is not kp.MemoryTypes.storage:
        seq.record(kp.OpSyncLocal([t]))
    seq.record(kp.OpHostCall(double, **lists))
    if memory_type is not kp.MemoryTypes.storage:
        seq.record(kp.OpSyncDevice([t]))
    seq.record(add.bind(t, by=0.5))
    expected = 0.0
    for _ in range(4):
        seq.eval_async().eval_await()
        assert (seen[-1] == expected + 1).all()
        expected = (expected + 1) * 2 + 0.5
        assert (t.read() == expected).all()


@pytest.mark.parametrize("way", WAYS)
def test_an_exception_arrives_at_the_wait(mgr, way):
    t = mgr.zeros(4)
    fails = True

    class OwnError(Exception):
        pass

    def check():
        if fails:
            try:
                raise KeyError("inner")
            except KeyError:
                raise OwnError("the function's") from None

    later = []
    seq = mgr.sequence().record(
        kp.OpFill([t], 1), kp.OpHostCall(check), kp.OpFill([t], 2), kp.OpHostCall(lambda: later.append(1))
    )
    for _ in range(2):
        with pytest.raises(OwnError, match="the function's"):
            WAYS[way](mgr, seq)
        assert not seq.is_running()
        assert (t.read() == 1).all() and not later
    fails = False
    WAYS[way](mgr, seq)
    assert (t.read() == 2).all() and later == [1]


def test_an_error_is_kept_until_a_wait_raises_it(mgr):
    def fail():
        raise ValueError("kept")

    t = mgr.zeros(3)
    seq = mgr.sequence().record(kp.OpHostCall(fail), kp.OpFill([t], 1))
    seq.eval_async()
    fence = seq.fence
    assert seq.is_running()
    for call in (seq.eval, seq.eval_async, seq.clear, seq.rerecord, lambda: seq.record(kp.OpFill([t], 2))):
        with pytest.raises(kp.FailedPreconditionError, match="eval_await"):
            call()
    with pytest.raises(ValueError, match="kept"):
        seq.is_complete()
    assert not seq.is_running()
    with pytest.warns(kp.KomputeWarning, match="nothing running"):
        seq.eval_await()
    for _ in range(2):
        with pytest.raises(ValueError, match="kept"):
            fence.wait()
    assert "kept" in repr(fence)
    seq.clear()
    seq.record(kp.OpFill([t], 3)).eval()
    assert (t.read() == 3).all()


def test_a_failure_cancels_what_was_submitted_after_it(mgr):
    t = mgr.zeros(3)
    ran = []

    def fail():
        raise ValueError("first")

    failing = mgr.sequence().record(kp.OpHostCall(fail, name="load"))
    plain = mgr.sequence().record(kp.OpFill([t], 1))
    split = mgr.sequence().record(kp.OpHostCall(lambda: ran.append(1)), kp.OpFill([t], 2))
    semaphore = mgr.semaphore()
    fence = mgr.submit([failing, plain, split], signal=(semaphore, 1))
    text = "OpHostCall load raised ValueError: first"
    for wait in (plain.eval_await, split.eval_await, lambda: semaphore.wait(1, timeout=20)):
        with pytest.raises(kp.AbortedError, match=text):
            wait()
    with pytest.raises(ValueError, match="first"):
        failing.eval_await()
    with pytest.raises(ValueError, match="first"):
        fence.wait()
    assert (t.read() == 0).all() and not ran
    mgr.submit([plain, split]).wait()
    assert (t.read() == 2).all() and ran == [1]
    # A sequence that waits for a failed one.
    failing.eval_async()
    with pytest.raises(kp.AbortedError, match=text):
        plain.eval_async(wait=failing)
    split.eval_async(wait=failing)
    with pytest.raises(kp.AbortedError, match=text):
        split.eval_await()
    with pytest.raises(ValueError, match="first"):
        failing.eval_await()
    assert ran == [1]


def test_hooks_of_a_failed_evaluation(mgr):
    calls = []
    fails = True

    class Hook(kp.OpFill):
        def pre_eval(self):
            calls.append("pre")

        def post_eval(self):
            calls.append("post")

    def check():
        calls.append("call")
        if fails:
            raise ValueError

    seq = mgr.sequence().record(Hook([mgr.zeros(2)], 1), kp.OpHostCall(check))
    for way in ("eval", "eval_await", "fence.wait", "submit"):
        with pytest.raises(ValueError):
            WAYS[way](mgr, seq)
    assert calls == ["pre", "call"] * 4
    fails = False
    for way in ("eval", "eval_await", "fence.wait", "submit"):
        calls.clear()
        WAYS[way](mgr, seq)
        assert calls == ["pre", "call", "post"]


def test_only_host_calls_and_several_in_a_row(mgr):
    order = []
    t = mgr.zeros(2)
    calls = [kp.OpHostCall(lambda i=i: order.append(i)) for i in range(3)]
    mgr.sequence().record(*calls).eval()
    seq = mgr.sequence().record(calls[0], calls[1], kp.OpFill([t], 4), calls[2], calls[0])
    seq.eval()
    assert order == [0, 1, 2, 0, 1, 2, 0]
    seq.clear()
    seq.record(kp.OpFill([t], 5)).eval()
    assert len(order) == 7 and (t.read() == 5).all()
    seq.eval(calls[1])
    assert order[-1] == 1


def test_the_function_uses_other_sequences_and_kernels(mgr, add):
    t, u = mgr.zeros(64), mgr.zeros(64)
    inner = mgr.sequence().record(
        add.bind(u, by=1.0), kp.OpHostCall(lambda: add(u, by=2.0)), kp.OpCopy([u, t])
    )

    def use():
        inner.eval()
        add(t, by=100.0)
        mgr.synchronize()

    mgr.sequence().record(add.bind(u, by=10.0), kp.OpHostCall(use), add.bind(t, by=1000.0)).eval()
    assert (t.read() == 1113).all()


def test_the_function_cannot_use_its_own_sequence(mgr):
    t = mgr.zeros(2)
    uses = [
        lambda: seq.eval(), lambda: seq.eval_async(), lambda: seq.eval_await(), lambda: seq.fence,
        lambda: seq.clear(), lambda: seq.rerecord(), lambda: seq.record(kp.OpFill([t], 1)),
        lambda: mgr.submit([seq]), lambda: seq.eval_async().fence,
    ]  # fmt: skip
    errors = []

    def use():
        assert seq.is_running() and not seq.is_complete()
        for each in uses:
            with pytest.raises(
                kp.FailedPreconditionError, match="by the function of its own OpHostCall"
            ) as e:
                each()
            errors.append(e)

    seq = mgr.sequence().record(kp.OpHostCall(use), kp.OpFill([t], 3))
    seq.eval()
    assert len(errors) == len(uses) and (t.read() == 3).all()


def test_work_of_other_queues_and_sequences_comes_before(make_manager, needs):
    manager = make_manager()
    t, u = manager.zeros(1 << 16), manager.zeros(1 << 16)
    semaphore = manager.semaphore()
    for declared, held in ((None, True), ([u], False), ([t], True)):
        seen = []
        seq = manager.sequence().record(
            kp.OpHostCall(lambda seen=seen: seen.append(t.read()[0]), reads=declared)
        )
        other = manager.sequence().record(kp.OpFill([t], semaphore.query() + 1))
        other.eval_async(wait=(semaphore, semaphore.query() + 1))
        if held:
            with pytest.raises(kp.FailedPreconditionError, match="held work"):
                seq.eval_async()
            with pytest.raises(kp.FailedPreconditionError, match="held work"):
                manager.submit([seq])
            assert not seen and not seq.is_running()
            timer = threading.Timer(0.1, lambda: semaphore.signal(semaphore.query() + 1))
            timer.start()
            seq.eval()
            timer.join()
            assert seen == [semaphore.query()]
        else:
            called = []
            seq = manager.sequence().record(
                kp.OpHostCall(lambda called=called: called.append(1), reads=declared)
            )
            seq.eval_async().eval_await()
            assert called == [1]
            semaphore.signal(semaphore.query() + 1)
        other.eval_await()


def test_a_signal_does_not_wait_for_other_work(mgr):
    t, u = mgr.zeros(2), mgr.zeros(2)
    gate, done = mgr.semaphore(), mgr.semaphore()
    held = mgr.sequence().record(kp.OpFill([u], 1)).eval_async(wait=(gate, 1))
    seq = mgr.sequence().record(kp.OpFill([t], 2), kp.OpHostCall(lambda: None, reads=[t]))
    # Opens the gate late, so that a wait for all work ends, too.
    late = threading.Timer(5, lambda: gate.signal(1))
    late.start()
    seq.eval_async(signal=(done, 1))
    done.wait(1, timeout=20)
    assert held.is_running() and not held.is_complete()
    late.cancel()
    late.join()  # it has the semaphore
    gate.signal(1)
    held.eval_await()
    seq.eval_await()


def test_held_work_of_its_own_is_refused(mgr):
    semaphore = mgr.semaphore()
    called = []
    seq = mgr.sequence().record(kp.OpFill([mgr.zeros(2)], 1), kp.OpHostCall(lambda: called.append(1)))
    with pytest.raises(kp.FailedPreconditionError, match="held work"):
        seq.eval_async(wait=(semaphore, 1))
    assert not called and not seq.is_running()
    semaphore.signal(1)
    seq.eval_async(wait=(semaphore, 1)).eval_await()
    assert called == [1]


def test_other_threads_wait_for_the_whole_recording(mgr):
    t = mgr.zeros(2)
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert go_on.wait(20)

    seq = mgr.sequence().record(kp.OpHostCall(slow), kp.OpFill([t], 6))
    thread = threading.Thread(target=seq.eval_async)
    thread.start()
    assert begun.wait(20)
    assert seq.is_running() and not seq.is_complete() and "running" in repr(seq)
    with pytest.raises(kp.EvalTimeoutError):
        seq.eval_await(timeout=0.05)
    with pytest.raises(kp.FailedPreconditionError, match="another thread"):
        _ = seq.fence
    with pytest.raises(kp.FailedPreconditionError, match="another thread"):
        seq.eval()
    threading.Timer(0.1, go_on.set).start()
    seq.eval_await()
    assert (t.read() == 6).all() and not seq.is_running()
    thread.join()


def test_eval_raises_an_error_that_another_thread_has_heard_of(mgr):
    begun, go_on = threading.Event(), threading.Event()
    heard = []

    def fail():
        begun.set()
        assert go_on.wait(20)
        raise ValueError("for both")

    def wait():
        try:
            seq.eval_await()
        except ValueError as error:
            heard.append(error)

    def evaluate():
        with pytest.raises(ValueError, match="for both"):
            seq.eval()
        heard.append("eval")

    seq = mgr.sequence().record(kp.OpHostCall(fail))
    for _ in range(20):
        begun.clear()
        go_on.clear()
        heard.clear()
        evaluating = threading.Thread(target=evaluate)
        evaluating.start()
        assert begun.wait(20)
        waiting = threading.Thread(target=wait)
        waiting.start()
        go_on.set()
        evaluating.join()
        waiting.join()
        assert "eval" in heard and not seq.is_running()


@pytest.mark.parametrize("what", ["sequence", "manager"])
@pytest.mark.parametrize("how", ["own thread", "another thread", "and fails"])
def test_destroyed_while_the_function_runs(make_manager, what, how):
    manager = make_manager()
    after = []

    def destroy():
        victim = manager if what == "manager" else seq
        if how == "another thread":
            thread = threading.Thread(target=victim.destroy)
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
        else:
            victim.destroy()
        if how == "and fails":
            raise ValueError("its own")

    seq = manager.sequence().record(kp.OpHostCall(destroy), kp.OpHostCall(lambda: after.append(1)))
    with pytest.raises(ValueError if how == "and fails" else kp.FailedPreconditionError):
        seq.eval()
    assert not after and not seq.is_init() and not seq.is_running()


def test_ctrl_c_in_the_function(mgr):
    t = mgr.zeros(2)
    interrupts = True

    def interrupted():
        if interrupts:
            signal.raise_signal(signal.SIGINT)

    seq = mgr.sequence().record(kp.OpHostCall(interrupted), kp.OpFill([t], 2))
    for run in (seq.eval, seq.eval_async):
        with pytest.raises(KeyboardInterrupt):
            run()
        assert not seq.is_running() and (t.read() == 0).all()
    interrupts = False
    seq.eval()
    assert (t.read() == 2).all()


def test_several_managers(make_manager):
    here, there = make_manager(), make_manager()
    a, b = here.tensor([1, 2, 3]), there.zeros(3)
    seen = []
    seq = here.sequence().record(kp.OpCopy([a, b]), kp.OpHostCall(lambda: seen.append(b.read().tolist())))
    seq.record(kp.OpFill([a], 7), kp.OpCopy([a, b]))
    seq.eval()
    seq.eval_async().fence.wait()
    assert seen == [[1, 2, 3], [7, 7, 7]] and (b.read() == 7).all()
    assert "OpCopy, OpHostCall" in repr(seq)
    with pytest.raises(kp.InvalidArgumentError, match="another Manager"):
        seq.record(kp.OpHostCall(print, reads=[b]))
    with pytest.raises(kp.InvalidArgumentError, match="several Managers"):
        kp.OpHostCall(print, reads=[a], writes=[b])


def test_refusals(mgr):
    t = mgr.zeros(3)
    call = kp.OpHostCall(print, reads=[t], name="show")
    timed = mgr.sequence(timestamps=True).record(kp.OpFill([t], 1))
    with pytest.raises(kp.FailedPreconditionError, match="timestamps cannot hold an OpHostCall"):
        timed.record(call)
    timed.eval()
    assert len(timed.timings()) == 1
    with pytest.raises(kp.UnimplementedError, match="for _ in range"):
        kp.OpRepeat([kp.OpFill([t], 1), call], 3)
    seq = mgr.sequence().record(kp.OpFill([t], 1), call)
    with pytest.raises(kp.UnimplementedError, match="OpHostCall"):
        seq.stream([np.zeros(3, np.float32)], inputs=[t], outputs=[t])
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        seq.eval()


def test_arguments(mgr):
    async def coroutine():
        pass

    def generator():
        yield

    for wrong in (None, 3, print()):
        with pytest.raises(kp.ArgumentTypeError, match="not callable"):
            kp.OpHostCall(wrong)
    for wrong in (coroutine, generator):
        with pytest.raises(kp.ArgumentTypeError, match="plain function"):
            kp.OpHostCall(wrong)
    for lists in ({"reads": 3}, {"writes": [np.zeros(3)]}, {"name": 3}):
        with pytest.raises(kp.ArgumentTypeError):
            kp.OpHostCall(print, **lists)
    t = mgr.zeros(3)
    call = kp.OpHostCall(print, reads=iter([t]))
    assert call.reads == (t,) and call.writes == () and call.name == "print" and call.function is print
    assert repr(call) == "<kp.OpHostCall print>"
    assert kp.OpHostCall(print).reads is None
    assert "OpHostCall print" in mgr.sequence().record(call).mermaid()
