"""Sequences: recording, evaluating, waiting, timing, and life."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import kompute_py as kp

ADD_ONE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer V { float v[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < v.length()) v[i] += 1.0; }
"""

SLOW = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer V { uint v[]; };
void main() {
    uint x = gl_GlobalInvocationID.x;
    for (uint k = 0; k < v[0]; ++k) x = x * 1664525u + 1013904223u;
    if (x == 0u) v[1] = x;
}
"""


@pytest.fixture
def plus_one(mgr):
    t = mgr.tensor(np.zeros(100))
    return t, mgr.algorithm([t], kp.compile(ADD_ONE), (2, 1, 1))


@pytest.mark.capability("K22 K40", "calls in a chain", "Sequence.record", "concepts/recording")
def test_methods_chain(mgr):
    t = mgr.tensor([1, 2])
    seq = mgr.sequence()
    assert isinstance(seq, kp.Sequence)
    assert seq.record(kp.OpSyncDevice([t])) is seq
    assert seq.eval() is seq and seq.eval(kp.OpSyncLocal([t])) is seq
    assert seq.eval_async() is seq and seq.eval_await() is seq
    assert seq.eval_async(kp.OpSyncLocal([t])) is seq and seq.eval_await(10_000) is seq
    assert seq.clear() is None and seq.rerecord() is None and seq.destroy() is None


def test_several_operations_at_once(mgr, plus_one):
    t, algorithm = plus_one
    mgr.sequence().record(
        kp.OpSyncDevice([t]), kp.OpAlgoDispatch(algorithm), kp.OpAlgoDispatch(algorithm), kp.OpSyncLocal([t])
    ).eval()
    np.testing.assert_array_equal(t.data(), np.full(100, 2))


@pytest.mark.capability("K21 K25", "recorded once, evaluated often", "Sequence.eval", "concepts/recording")
def test_replay(mgr, plus_one):
    t, algorithm = plus_one
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm))
    for _ in range(10):
        seq.eval()
    mgr.sequence().eval(kp.OpSyncLocal([t]))
    np.testing.assert_array_equal(t.data(), np.full(100, 10))


def test_uploads_what_the_host_copy_holds_at_each_eval(mgr):
    t = mgr.tensor([1, 2])
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    t.data()[:] = [3, 4]
    seq.eval()
    np.testing.assert_array_equal(t.read(), [3, 4])


def test_a_record_after_an_eval_starts_afresh(mgr, plus_one):
    t, algorithm = plus_one
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpAlgoDispatch(algorithm)).eval()
    seq.record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_array_equal(t.read(), np.full(100, 2))
    seq.rerecord()
    seq.eval()
    np.testing.assert_array_equal(t.read(), np.full(100, 3))


@pytest.mark.capability(
    "K26 K28",
    "one operation evaluated without a recording",
    "Sequence.eval, Sequence.eval_async",
    "concepts/recording",
)
def test_eval_with_an_operation_drops_the_rest(mgr, plus_one):
    t, algorithm = plus_one
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpAlgoDispatch(algorithm))
    seq.eval(kp.OpSyncDevice([t]))
    np.testing.assert_array_equal(t.read(), np.zeros(100))
    seq.eval()
    np.testing.assert_array_equal(t.read(), np.zeros(100))


@pytest.mark.capability("K34", "a recording emptied", "Sequence.clear", "concepts/recording")
def test_clear(mgr, plus_one):
    t, algorithm = plus_one
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    seq.record(kp.OpAlgoDispatch(algorithm))
    seq.clear()
    assert not seq.is_recording()
    seq.eval()
    np.testing.assert_array_equal(t.read(), np.zeros(100))


@pytest.mark.capability(
    "K36-K38",
    "whether a recording is alive, open, running or done",
    "Sequence.is_init, Sequence.is_recording, Sequence.is_running, Sequence.is_complete",
    "reference/recording",
)
def test_states(mgr):
    t = mgr.tensor([1])
    seq = mgr.sequence()
    assert seq.is_init() and not seq.is_recording() and not seq.is_running() and seq.is_complete()
    seq.record(kp.OpSyncDevice([t]))
    assert seq.is_recording() and not seq.is_running()
    seq.eval()
    assert not seq.is_recording() and not seq.is_running() and seq.is_complete()
    seq.eval_async()
    assert seq.is_running()
    seq.eval_await()
    assert not seq.is_running()
    seq.record(kp.OpSyncDevice([t]))
    seq.clear()
    assert not seq.is_recording()


def test_eval_of_nothing(mgr):
    seq = mgr.sequence()
    assert seq.eval() is seq and not seq.is_running()


@pytest.mark.capability(
    "K27 K29",
    "submitted without waiting, one evaluation at a time",
    "Sequence.eval_async",
    "guides/asynchronous",
)
def test_running(mgr):
    t = mgr.tensor([1])
    op = kp.OpSyncDevice([t])
    seq = mgr.sequence().record(op).eval_async()
    for use in (
        seq.eval,
        seq.eval_async,
        lambda: seq.record(op),
        lambda: seq.eval(op),
        seq.clear,
        seq.rerecord,
    ):
        with pytest.raises(kp.FailedPreconditionError):
            use()
    assert seq.is_running()
    seq.eval_await()
    seq.eval()


def test_await_with_nothing_running_warns(mgr):
    seq = mgr.sequence()
    with pytest.warns(kp.KomputeWarning, match="nothing running") as caught:
        assert seq.eval_await() is seq
    assert caught[0].filename == __file__


_first = 16
"""The number of groups that `slow_sequence` tries first: a quarter of those that were enough before."""


def slow_sequence(mgr, seconds):
    """A sequence that runs for `seconds` to about three times that."""
    global _first
    # By groups, since llvmpipe ends loops after 65535 rounds.
    t = mgr.tensor_t(np.array([20_000, 0], np.uint32), "host")
    algorithm = mgr.algorithm([t], kp.compile(SLOW), (1, 1, 1))
    seq, groups = mgr.sequence(), _first
    seq.record(kp.OpAlgoDispatch(algorithm, grid=64)).eval()  # makes the pipeline
    while True:
        begin = time.perf_counter()
        seq.record(kp.OpAlgoDispatch(algorithm, grid=64 * groups)).eval()
        if time.perf_counter() - begin >= seconds:
            _first = max(groups // 4, 16)
            return seq
        # Small steps: on a busy machine one measurement says little about the next.
        if groups < 65535:
            groups = min(2 * groups, 65535)
        else:  # a GPU
            t.write(t.read() * np.uint32([2, 1]))


@pytest.mark.capability(
    "K31", "waits with a limit, after which the work still runs", "Sequence.eval_await", "guides/asynchronous"
)
def test_time_out(mgr):
    seq = slow_sequence(mgr, 0.3)
    seq.eval_async()
    begin = time.perf_counter()
    with pytest.raises(kp.EvalTimeoutError, match="still running"):
        seq.eval_await(20)
    assert time.perf_counter() - begin > 0.015
    assert seq.is_running()
    with pytest.raises(TimeoutError):
        seq.eval_await(timeout=0.01)
    with pytest.raises(kp.EvalTimeoutError):
        seq.eval_await(0)
    assert seq.is_running()
    seq.eval_await(timeout=60)
    assert not seq.is_running() and seq.is_complete()
    seq.eval()


@pytest.mark.capability(
    "K30", "waits in which other threads run", "Sequence.eval_await", "guides/asynchronous"
)
def test_other_threads_run_while_one_waits(mgr):
    seq = slow_sequence(mgr, 0.15)
    count, done = 0, threading.Event()

    def work():
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.005)

    thread = threading.Thread(target=work)
    thread.start()
    # A wait that holds the interpreter lock lets the thread run once or twice, at its begin and end, however
    # often it is tried; one that releases it does so many times, but on a busy machine not at each try.
    most = 0
    for _ in range(5):
        before = count
        seq.eval()
        most = max(most, count - before)
        if most >= 10:
            break
    done.set()
    thread.join()
    assert most >= 10


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no Ctrl-C there")
def test_ctrl_c_while_waiting(mgr):
    seq = slow_sequence(mgr, 0.4)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        seq.eval()
        time.sleep(10)  # a signal that comes late must not end the test run
    assert seq.is_running()
    seq.eval_await()
    assert not seq.is_running()
    seq.eval()


@pytest.mark.parametrize(
    ("args", "keywords", "error"),
    [
        ((-1,), {}, kp.InvalidArgumentError), ((), {"timeout": -1}, kp.InvalidArgumentError),
        ((float("nan"),), {}, kp.InvalidArgumentError), (("soon",), {}, kp.ArgumentTypeError),
        ((1,), {"timeout": 1}, kp.InvalidArgumentError),
    ],
)  # fmt: skip
def test_bad_waits(mgr, args, keywords, error):
    with pytest.raises(error):
        mgr.sequence().eval_await(*args, **keywords)


@pytest.mark.parametrize("wrong", [None, 5, "op", kp.OpSyncDevice, object()])
def test_what_is_no_operation(mgr, wrong):
    seq = mgr.sequence()
    with pytest.raises(kp.ArgumentTypeError, match=r"kp\.OpBase"):
        seq.record(wrong)
    if wrong is not None:
        with pytest.raises(kp.ArgumentTypeError, match=r"kp\.OpBase"):
            seq.eval(wrong)
    assert not seq.is_recording()


@pytest.mark.capability(
    "K23 K24", "operations checked when they are recorded", "Sequence.record", "reference/recording"
)
def test_a_failed_record_leaves_the_recording(mgr, make_manager):
    t = mgr.tensor([1, 2])
    foreign = make_manager().tensor([1, 2])
    seq = mgr.sequence().record(kp.OpSyncDevice([t]))
    with pytest.raises(kp.InvalidArgumentError):
        seq.record(kp.OpSyncDevice([foreign]))
    seq.eval()
    np.testing.assert_array_equal(t.read(), [1, 2])


@pytest.mark.capability(
    "K16",
    "the queue that a sequence uses",
    "Manager.sequence, Sequence.queue_index",
    "guides/several_devices",
)
@pytest.mark.parametrize("index", [1, 7, -1, 2**40])
def test_queue_index(mgr, index):
    with pytest.raises(kp.OutOfRangeError, match=str(index)):
        mgr.sequence(index)


@pytest.mark.capability("K15", "recordings for one queue", "Manager.sequence", "reference/manager")
def test_sequence_arguments(mgr):
    for bad in ("0", 0.5, None):
        with pytest.raises(kp.ArgumentTypeError):
            mgr.sequence(bad)
    with pytest.raises(kp.InvalidArgumentError):
        mgr.sequence(0, -1)
    assert mgr.sequence(queue_index=0, total_timestamps=5).queue_index == 0
    assert kp.Sequence(mgr, 0, timestamps=True).is_init()


@pytest.mark.capability(
    "K33", "times of each operation", "Sequence.get_timestamps, Sequence.timings", "guides/timing"
)
def test_timestamps(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.tensor(np.zeros(1 << 16))
    seq = mgr.sequence(0, 100).record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t])).eval()
    ticks = seq.get_timestamps()
    assert len(ticks) == 3 and all(isinstance(tick, int) for tick in ticks) and sorted(ticks) == ticks
    timings = seq.timings()
    assert [name for name, _ in timings] == ["OpSyncDevice", "OpSyncLocal"]
    assert all(0 <= seconds < 10 for _, seconds in timings)
    period = mgr.get_device_properties().timestamp_period
    assert timings[0][1] == pytest.approx((ticks[1] - ticks[0]) * period * 1e-9)
    seq.eval()
    assert seq.get_timestamps()[0] >= ticks[-1]


@pytest.mark.capability(
    "K17", "room for as many timestamps as there are operations", "Sequence.get_timestamps", "guides/timing"
)
def test_timestamps_size_themselves(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.tensor([1])
    seq = mgr.sequence(timestamps=True)
    for count in (1, 40, 300):
        for _ in range(count):
            seq.record(kp.OpSyncDevice([t]))
        seq.eval()
        assert len(seq.get_timestamps()) == count + 1


def test_timestamps_overflow(mgr, needs):
    needs(mgr, "timestamps")
    t = mgr.tensor([1, 2])
    seq = mgr.sequence(0, 2).record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t]))
    with pytest.raises(kp.OutOfRangeError, match="2"):
        seq.record(kp.OpSyncLocal([t]))
    seq.eval()
    assert len(seq.get_timestamps()) == 3


def test_no_timestamps(mgr):
    seq = mgr.sequence()
    for use in (seq.get_timestamps, seq.timings):
        with pytest.raises(kp.FailedPreconditionError, match="timestamps=True"):
            use()


@pytest.mark.capability(
    "K39", "a recording's memory given back early", "Sequence.destroy", "reference/recording"
)
def test_destroy(mgr):
    t = mgr.tensor([1])
    op = kp.OpSyncDevice([t])
    seq = mgr.sequence().record(op).eval_async()
    seq.destroy()
    seq.destroy()
    assert not seq.is_init() and not seq.is_running() and "destroyed" in repr(seq)
    for use in (seq.eval, seq.eval_async, lambda: seq.record(op), seq.eval_await, seq.clear, seq.rerecord):
        with pytest.raises(kp.FailedPreconditionError):
            use()


def test_dropping_a_running_sequence_warns_and_does_not_wait(mgr):
    seq = slow_sequence(mgr, 0.3).eval_async()
    fence = seq.fence
    with pytest.warns(ResourceWarning, match="eval_await"):
        del seq
    assert not fence.done()


def test_dropping_a_submitted_sequence_is_silent(mgr):
    """`mgr.submit` gave a fence for its end. Only a `post_eval` would be lost."""
    t, gate = mgr.zeros(4), mgr.semaphore()
    sequence = mgr.sequence().record(kp.OpFill([t], 7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.submit([sequence]).wait(30)
        fence = mgr.submit([mgr.sequence().record(kp.OpFill([t], 5))], wait=(gate, 1))
        gc.collect()
    sequence.eval_async(wait=(gate, 1))
    with pytest.warns(ResourceWarning, match="eval_await"):
        del sequence

    class Called(kp.OpSyncLocal):
        def post_eval(self):
            pass

    with pytest.warns(ResourceWarning, match="eval_await"):
        mgr.submit([mgr.sequence().record(Called([t]))], wait=(gate, 1))
        gc.collect()
    gate.signal(1)
    assert fence.wait(30).done() and t.read().tolist() == [7] * 4


def test_dropping_an_idle_sequence_is_silent(mgr):
    seq = mgr.sequence().record(kp.OpSyncDevice([mgr.tensor([1])])).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del seq
        gc.collect()


@pytest.mark.capability("K69", "a recording keeps what it uses", "Sequence.record", "concepts/lifetimes")
def test_a_sequence_keeps_what_it_uses(mgr):
    out = mgr.zeros(3)
    seq = mgr.sequence().record(kp.OpCopy([mgr.tensor([1, 2, 3], "host"), out])).record(kp.OpSyncLocal([out]))
    gc.collect()
    seq.eval()
    np.testing.assert_array_equal(out.data(), [1, 2, 3])


def test_names_and_handles(mgr):
    seq = mgr.sequence().record(kp.OpSyncDevice([mgr.tensor([1])]))
    seq.name = "upload"
    assert (
        seq.name == "upload"
        and "upload" in repr(seq)
        and "recording" in repr(seq)
        and "OpSyncDevice" in repr(seq)
    )
    seq.eval()
    assert seq.vk_command_buffer > 0 and seq.vk_semaphore > 0 and seq.last_value > 0 and seq.manager is mgr
    before = seq.last_value
    seq.eval()
    assert seq.last_value > before


def test_a_class_is_no_operation(mgr):
    sequence = mgr.sequence()
    for call in (sequence.record, sequence.eval, sequence.eval_async):
        with pytest.raises(kp.ArgumentTypeError, match=r"make one: kp\.OpSyncDevice\(\.\.\.\)"):
            call(kp.OpSyncDevice)
    sequence.record(kp.OpSyncDevice([mgr.zeros(1)])).eval()


class _Hooked(kp.OpBase):
    """Counts the ends that it was told of."""

    def __init__(self):
        super().__init__()
        self.ends = 0

    def record(self, commands):
        pass

    def post_eval(self):
        self.ends += 1


@pytest.mark.parametrize("learn", ["synchronize", "later work", "semaphore", "held", "join", "Manager"])
@pytest.mark.filterwarnings("error")
def test_whoever_learns_that_work_is_done_ends_it(make_manager, learn):
    """It may be evaluated, recorded, cleared and dropped then; a wait for it returns at once and does not
    warn.
    """
    mgr = make_manager()
    a, b = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    sem = mgr.semaphore()
    sequences = [mgr.sequence().record(kp.OpSyncDevice([a]), kp.OpCopy([a, b])) for _ in range(5)]
    later = mgr.sequence().record(kp.OpSyncLocal([b]))
    for seq in sequences:
        seq.eval_async(**({"wait": (sem, 1)} if learn == "held" else {}))
    assert all(seq.is_running() for seq in sequences)
    if learn == "synchronize":
        mgr.synchronize()
    elif learn == "later work":
        later.eval_async().eval_await()
    elif learn == "semaphore":
        later.eval_async(signal=(sem, 1))
        sem.wait(1)
        assert later.fence.done()
    elif learn == "held":
        sem.signal(1)
        mgr.synchronize()
    elif learn == "join":
        kp.Fence.join(*(seq.fence for seq in sequences)).wait()
    else:
        later.eval()
    assert not any(seq.is_running() for seq in sequences)
    evaluated, recorded, cleared, dropped, awaited = sequences
    del sequences, seq
    evaluated.eval()
    evaluated.eval_async()
    evaluated.eval_await()
    recorded.record(kp.OpSyncLocal([b])).eval()
    cleared.clear()
    del dropped
    if learn != "join":
        awaited.eval_await()
    assert awaited.eval() is awaited
    np.testing.assert_array_equal(b.read(), [1, 2, 3])


def test_hooks_are_called_once_whoever_learns(mgr):
    op = _Hooked()
    seq, later = mgr.sequence().record(op), mgr.sequence().record(kp.OpSyncDevice([mgr.zeros(3)]))
    seq.eval_async()
    mgr.synchronize()
    assert not seq.is_running()
    seq.eval_await()
    assert op.ends == 1
    seq.eval_async()
    later.eval()
    seq.eval()
    assert op.ends == 3
    seq.eval_async()
    seq.fence.wait()
    assert op.ends == 4
