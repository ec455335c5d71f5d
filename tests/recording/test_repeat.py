"""Operations that run many times in one submission."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.operations import Like

HEAT = """
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
layout(push_constant) uniform P { float rate; };
void main() {
    uint i = gl_GlobalInvocationID.x, n = a.length();
    if (i >= n) return;
    float left = a[i == 0 ? 0 : i - 1], right = a[i + 1 == n ? i : i + 1];
    b[i] = a[i] + rate * (left - 2.0 * a[i] + right);
}
"""
ADD = """
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform P { uint by; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] = x[i] * 3 + by; }
"""
RECURRENCE = """
layout(local_size_x = 64) in;
layout(binding = 0) buffer Old { float old[]; };
layout(binding = 1) buffer Now { float now[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < old.length()) old[i] = 1.5 * now[i] - old[i]; }
"""
BOTH = """
layout(local_size_x = 2) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) { b[i] = a[i]; a[i] = 2.0 * b[i]; } }
"""
SUM = """
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) buffer C { uint c[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + 2 * b[i] + c[i]; }
"""
TIMES = [0, 1, 2, 3, 4, 5, 31, 32, 33, 64, 65, 100, 1001, 4096, 5000]


def heat(x, rate, times):
    x = x.astype(np.float32)
    rate = np.float32(rate)
    for _ in range(times):
        padded = np.pad(x, 1, mode="edge")
        x = x + rate * (padded[:-2] - np.float32(2) * x + padded[2:])
    return x


def added(x, by, times):
    for _ in range(times):
        x = x * np.uint32(3) + np.uint32(by)
    return x


def uints(mgr, *shape, kind="device"):
    return mgr.tensor_t(np.arange(np.prod(shape), dtype=np.uint32).reshape(shape), kind)


@pytest.mark.capability("", "steps repeated, with tensors exchanged", "kp.OpRepeat", "concepts/recording")
@pytest.mark.parametrize("times", TIMES)
def test_the_heat_equation(mgr, times):
    start = np.random.default_rng(times).random(200, np.float32)
    a, b = mgr.tensor(start), mgr.zeros(200)
    step = mgr.kernel(HEAT).bind(a, b, rate=0.2)
    repeat = kp.OpRepeat([step], times, swap=[(a, b)])
    assert repeat.results == (b if times % 2 else a,)
    mgr.sequence().record(repeat).eval()
    np.testing.assert_allclose(repeat.results[0].read(), heat(start, 0.2, times), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("times", [0, 1, 2, 3, 64, 65, 101])
@pytest.mark.parametrize("layout", ["shader", "function", "copied", "views"])
def test_results_of_operations_that_write_the_first_of_a_pair(mgr, layout, times):
    """A recurrence of two steps, in place: the step before the last becomes the one after it."""
    before, now = np.zeros(5), np.arange(5.0)
    a, b = mgr.tensor(before), mgr.tensor(now)
    if layout == "views":
        t = mgr.tensor(np.concatenate([[0, 0, 0], before, [0], now]))
        a, b = t[3:8], t[9:]
    if layout == "shader":
        step = mgr.kernel(RECURRENCE).bind(a, b)
    elif layout == "copied":
        c = mgr.zeros(5)
        step = [kp.ops.elementwise("1.5 * now - old").op(b, a, out=c), kp.OpCopy([c, a])]
    else:
        step = kp.ops.elementwise("1.5 * now - old").op(b, a, out=a)
    repeat = kp.OpRepeat(step, times, swap=[(a, b)])
    assert repeat.results == (a if times % 2 else b,)
    mgr.sequence().record(repeat).eval()
    for _ in range(times):
        before, now = now, 1.5 * now - before
    np.testing.assert_allclose(repeat.results[0].read(), now, rtol=1e-3, atol=1e-3)


def test_results_of_operations_that_write_both_of_a_pair(mgr):
    """The last operation decides; of one that writes both, the second is the result."""
    a, b = mgr.tensor([1, 2]), mgr.zeros(2)
    double = kp.ops.elementwise("2 * x")
    there, back = double.op(a, out=b), double.op(b, out=a)
    assert kp.OpRepeat([there, back], 3, swap=[(a, b)]).results == (a,)
    assert kp.OpRepeat([back, there], 3, swap=[(a, b)]).results == (b,)
    both = mgr.kernel(BOTH).bind(a, b)
    assert kp.OpRepeat(both, 1, swap=[(a, b)]).results == (b,)
    neither = double.op(a)
    assert kp.OpRepeat(neither, 1, swap=[(a, b)]).results == (b,)


def test_groups_of_three_say_how_to_take_turns(mgr):
    a, b, c = mgr.zeros(4), mgr.zeros(4), mgr.zeros(4)
    step = kp.ops.add.op(a, b, out=c)
    with pytest.raises(kp.InvalidArgumentError, match="write the turns out"):
        kp.OpRepeat(step, 3, swap=[(a, b, c)])
    with pytest.raises(kp.InvalidArgumentError, match="once for each turn"):
        kp.OpRepeat(step, 3, swap=[(a, b), (b, c)])


@pytest.mark.parametrize("times", TIMES)
def test_one_tensor_in_place(mgr, times):
    x = uints(mgr, 70)
    expected = added(x.data().copy(), 5, times)
    sequence = mgr.sequence().record(kp.OpRepeat(mgr.kernel(ADD).bind(x, by=5), times)).eval()
    np.testing.assert_array_equal(x.read(), expected)
    sequence.eval()
    np.testing.assert_array_equal(x.read(), added(expected, 5, times))


@pytest.mark.parametrize("times", [0, 1, 2, 7, 50, 333])
def test_several_operations_with_work_before_and_after(mgr, times):
    """Kernels, copies and fills that depend on each other, within a repetition and from one to the next."""
    a, b, c, d = (uints(mgr, 70) for _ in range(4))
    add, total = mgr.kernel(ADD), mgr.kernel(SUM)
    sequence = mgr.sequence().record(
        kp.OpFill([b], 7),
        kp.OpRepeat(
            [
                add.bind(a, by=1),
                kp.OpCopy([a, d]),
                total.bind(a, b, c),
                kp.OpFill([a[:3]], 9),
                kp.OpCopyRange(c, b, source_offset=2, target_offset=10, count=30),
            ],
            times,
        ),
        add.bind(c, by=2),
        kp.OpSyncLocal([a, b, c, d]),
    )
    sequence.eval()
    na, nb, nc, nd = (np.arange(70, dtype=np.uint32) for _ in range(4))
    nb[:] = 7
    for _ in range(times):
        na = added(na, 1, 1)
        nd = na.copy()
        nc = na + 2 * nb + nc
        na[:3] = 9
        nb[10:40] = nc[2:32]
    nc = added(nc, 2, 1)
    for tensor, expected in ((a, na), (b, nb), (c, nc), (d, nd)):
        np.testing.assert_array_equal(tensor.data(), expected)


@pytest.mark.parametrize("times", [1, 2, 101])
def test_two_pairs_and_a_tensor_that_stays(mgr, times):
    a, b, c, d, total = (uints(mgr, 70) for _ in range(5))
    for number, each in enumerate((a, b, c, d)):
        each.write(np.full(70, number + 1, np.uint32))
    sum_of = mgr.kernel(SUM)
    operations = [sum_of.bind(a, total, b), sum_of.bind(c, a, d), sum_of.bind(b, d, total)]
    repeat = kp.OpRepeat(operations, times, swap=[(a, b), (c, d)])
    mgr.sequence().record(repeat).eval()
    v = {id(t): np.full(70, n + 1, np.uint32) for n, t in enumerate((a, b, c, d))}
    v[id(total)] = np.arange(70, dtype=np.uint32)
    a_, b_, c_, d_ = map(id, (a, b, c, d))
    t_ = id(total)
    for _ in range(times):
        v[b_] = v[a_] + 2 * v[t_] + v[b_]
        v[d_] = v[c_] + 2 * v[a_] + v[d_]
        v[t_] = v[b_] + 2 * v[d_] + v[t_]
        a_, b_, c_, d_ = b_, a_, d_, c_
    for tensor in (a, b, c, d, total):
        np.testing.assert_array_equal(tensor.read(), v[id(tensor)])
    assert repeat.results == ((b, d) if times % 2 else (a, c))


def test_views_of_one_tensor_are_exchanged(mgr):
    start = np.random.default_rng(0).random(256, np.float32)
    grid = mgr.tensor(np.stack([start, np.zeros(256, np.float32)]))
    old, new = grid[0], grid[1]
    step = mgr.kernel(HEAT).bind(old, new, rate=0.1)
    repeat = kp.OpRepeat(step, 101, swap=[(old, new)])
    mgr.sequence().record(repeat).eval()
    np.testing.assert_allclose(grid.read()[1], heat(start, 0.1, 101), rtol=2e-4)
    assert repeat.results == (new,)


def test_images_are_exchanged(mgr):
    shift = mgr.kernel("""
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(binding = 0, r32f) readonly uniform image2D a;
        layout(binding = 1, r32f) writeonly uniform image2D b;
        void main() {
            ivec2 p = ivec2(gl_GlobalInvocationID.xy), size = imageSize(a);
            if (any(greaterThanEqual(p, size))) return;
            imageStore(b, p, imageLoad(a, ivec2((p.x + 1) % size.x, p.y)));
        }
    """)
    texels = np.arange(60, dtype=np.float32).reshape(6, 10)
    a, b = mgr.image(texels), mgr.image(np.zeros_like(texels))
    repeat = kp.OpRepeat(shift.bind(a, b), 33, swap=[(a, b)])
    mgr.sequence().record(repeat).eval()
    np.testing.assert_array_equal(repeat.results[0].read().squeeze(), np.roll(texels, -33, axis=1))


@pytest.mark.parametrize("times", [4, 200])
def test_changes_reach_all_repetitions(mgr, times):
    """Push constants, also of the exchanged half; a rebuilt algorithm; a destroyed tensor."""
    start = np.random.default_rng(1).random(100, np.float32)
    a, b = mgr.tensor(start), mgr.zeros(100)
    step = mgr.kernel(HEAT).bind(a, b, rate=0.2)
    repeat = kp.OpRepeat(step, times, swap=[(a, b)])
    sequence = mgr.sequence().record(repeat).eval()
    for rate in (0.1, 0.05, 0.05, 0.3):
        step.set(rate=rate)
        a.write(start)
        sequence.eval()
        np.testing.assert_allclose(a.read(), heat(start, rate, times), rtol=1e-3, atol=1e-4)
    b.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        sequence.eval()


def test_an_algorithm_that_changes(mgr):
    spirv = kp.compile(HEAT)
    start = np.random.default_rng(1).random(100, np.float32)
    a, b, c = mgr.tensor(start), mgr.zeros(100), mgr.tensor(start)
    algorithm = mgr.algorithm([a, b], spirv, (2, 1, 1), push_consts=[0.2])
    repeat = kp.OpRepeat(kp.OpAlgoDispatch(algorithm), 6, swap=[(a, b)])
    sequence = mgr.sequence().record(repeat).eval()
    np.testing.assert_allclose(a.read(), heat(start, 0.2, 6), rtol=1e-4)
    algorithm.push_consts = [0.1]
    a.write(start)
    sequence.eval()
    np.testing.assert_allclose(a.read(), heat(start, 0.1, 6), rtol=1e-4)
    # Now c is read only, and b and a are written in turn.
    algorithm.rebuild([c, b], push_consts=[0.1])
    a.write(start)
    sequence.rerecord()
    sequence.eval()
    for each in (a, b):
        np.testing.assert_allclose(each.read(), heat(start, 0.1, 1), rtol=1e-4)


def test_threads_change_it_while_others_build(mgr):
    """A recording never mixes the constants of two settings."""
    a, b = uints(mgr, 64), uints(mgr, 64)
    twice = mgr.kernel("""
        layout(local_size_x = 64) in;
        layout(binding = 0) readonly buffer A { uint a[]; };
        layout(binding = 1) writeonly buffer B { uint b[]; };
        layout(push_constant) uniform P { uint by; };
        void main() { uint i = gl_GlobalInvocationID.x; b[i] = a[i] + by; }
    """)
    step = twice.bind(a, b, by=1)
    sequence = mgr.sequence().record(kp.OpRepeat(step, 2, swap=[(a, b)]))
    stop = threading.Event()

    def change():
        by = 0
        while not stop.is_set():
            by = by % 1000 + 1
            step.set(by=by)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(60):
            a.write(np.zeros(64, np.uint32))
            sequence.eval()
            found = a.read()
            assert (found == found[0]).all() and found[0] % 2 == 0, found
            assert found[0] == 2 * b.read()[0]
    finally:
        stop.set()
        thread.join()


def test_generated_operations_and_indirect_dispatches(mgr):
    @kp.CustomOp.register
    class next_of(Like):
        signature = "next_of(Tensor x) -> Tensor"

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i) * 2 + 1")

    x, y = uints(mgr, 9), uints(mgr, 9)
    repeat = kp.OpRepeat(next_of.op(x, out=y), 5, swap=[(x, y)])
    mgr.sequence().record(repeat).eval()
    np.testing.assert_array_equal(repeat.results[0].read(), (np.arange(9) + 1) * 32 - 1)
    groups = mgr.tensor_t(np.array([1, 1, 1], np.uint32))
    z = uints(mgr, 100)
    mgr.sequence().record(kp.OpRepeat(mgr.kernel(ADD).bind(z, by=0, indirect=groups), 3)).eval()
    np.testing.assert_array_equal(z.read(), np.arange(100) * np.where(np.arange(100) < 64, 27, 1))


@pytest.mark.parametrize("first, second", [(0, 67), (3, 64), (5, 70)])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_views_that_begin_at_different_bytes(mgr, dtype, first, second):
    """Shaders bind one of them where it is, and a copy of the other."""
    t = mgr.tensor_t(np.zeros(128, dtype))
    a, b = t[first : first + 9], t[second : second + 9]
    step = kp.ops.elementwise("2 * x + 1")
    both = kp.OpRepeat([step.op(a, out=b), kp.OpCopy([b, a])], 2)
    expected = np.zeros(128, dtype)
    expected[first : first + 9] = expected[second : second + 9] = 3
    mgr.sequence().record(both).eval()
    np.testing.assert_array_equal(t.read(), expected)
    a.fill(0).wait()
    repeat = kp.OpRepeat(step.op(a, out=b), 5, swap=[(a, b)])
    assert repeat.results == (b,)
    mgr.sequence().record(repeat).eval()
    expected[first : first + 9], expected[second : second + 9] = 15, 31
    np.testing.assert_array_equal(t.read(), expected)
    a.fill(0).wait()
    made = step.op(a)  # its result is its own
    repeat = kp.OpRepeat(made, 2, swap=[(a, made.results[0])])
    mgr.sequence().record(repeat).eval()
    assert a.tolist() == [3] * 9 and made.results[0].tolist() == [1] * 9


def test_operations_in_place_of_views_that_change(mgr):
    t = mgr.zeros(64)
    a, b = t[1:5], t[16:20]
    drawn = kp.random.Generator(1).integers_op(a.view(np.int32), 1, 10)
    mgr.sequence().record(kp.OpRepeat(drawn, 2, swap=[(a.view(np.int32), b.view(np.int32))])).eval()
    for each in (a, b):
        numbers = each.view(np.int32).read()
        assert ((numbers > 0) & (numbers < 10)).all()
    assert np.count_nonzero(t.read()) == 8


def test_timestamps_names_and_graph(mgr):
    a, b = mgr.zeros(100), mgr.zeros(100)
    step = mgr.kernel(HEAT, name="heat").bind(a, b, rate=0.2)
    repeat = kp.OpRepeat(step, 1000, swap=[(a, b)])
    sequence = mgr.sequence(timestamps=True).record(kp.OpFill([a], 1.0), repeat, kp.OpSyncLocal([a])).eval()
    assert [name for name, _ in sequence.timings()] == ["OpFill", "1000 x heat", "OpSyncLocal"]
    assert "1000 x heat" in sequence.mermaid()
    assert repr(repeat) == "<kp.OpRepeat 1000 x heat>"
    assert repr(kp.OpRepeat([step, kp.OpFill([a])], 2)) == "<kp.OpRepeat 2 x (heat, OpFill)>"
    assert (repeat.times, repeat.swap, repeat.operations) == (1000, ((a, b),), (step,))


def test_it_streams(mgr):
    a, b = mgr.zeros(50), mgr.zeros(50)
    step = mgr.kernel(HEAT).bind(a, b, rate=0.2)
    sequence = mgr.sequence().record(kp.OpRepeat(step, 9, swap=[(a, b)]))
    frames = list(np.random.default_rng(3).random((5, 50), np.float32))
    results = [each.copy() for each in sequence.stream(frames, inputs=[a], outputs=[b])]
    for frame, result in zip(frames, results, strict=True):
        np.testing.assert_allclose(result, heat(frame, 0.2, 9), rtol=1e-4)


def test_asynchronous_and_several_sequences(mgr):
    x, done = uints(mgr, 70), mgr.semaphore()
    add = mgr.kernel(ADD)
    first = mgr.sequence().record(kp.OpRepeat(add.bind(x, by=1), 100))
    second = mgr.sequence().record(kp.OpRepeat(add.bind(x, by=2), 3))
    first.eval_async(signal=(done, 1))
    second.eval_async(wait=(done, 1)).eval_await()
    first.eval_await()
    expected = added(added(np.arange(70, dtype=np.uint32), 1, 100), 2, 3)
    np.testing.assert_array_equal(x.read(), expected)
    mgr.submit([first, second]).wait()
    np.testing.assert_array_equal(x.read(), added(added(expected, 1, 100), 2, 3))


def check_structure():
    """One submission; the commands grow with the root; the same driver calls for each evaluation."""
    mgr = kp.Manager(validation=False)
    a, b = mgr.zeros(64), mgr.zeros(64)
    control = null_control()
    control.count()
    step = mgr.kernel(HEAT).bind(a, b, rate=0.2)
    plain = mgr.sequence().record(step).eval()
    control.clear()
    plain.eval()
    asked = control.total_calls
    for times in (0, 1, 2, 7, 60, 1000, 12345, 1_000_000, 1_000_001):
        sequence = mgr.sequence().record(kp.OpRepeat(step, times, swap=[(a, b)]))
        before = control.dispatches
        control.clear()
        sequence.eval()
        assert control.dispatches - before == times
        assert control.calls("vkQueueSubmit") == 1
        recorded = control.calls("vkCmdDispatch")
        assert recorded <= max(32, 3 * times**0.5)
        assert control.calls("vkCmdPipelineBarrier") <= recorded + 2
        if times <= 7:
            assert (recorded, control.calls("vkCmdExecuteCommands")) == (times, 0)
        control.clear()
        sequence.eval()
        assert control.total_calls == asked
        # Built again, no command buffer is left behind.
        step.set(rate=0.1)
        live = control.live("VkCommandBuffer")
        sequence.eval()
        assert control.live("VkCommandBuffer") == live
    assert not control.violations()


def test_the_structure_of_the_submission():
    run_child(check_structure, driver="null")


def check_barriers():
    """What the null driver executes, in order: a barrier between any two dispatches, and no other."""
    mgr = kp.Manager(validation=False)
    a, b = mgr.zeros(64), mgr.zeros(64)
    step = mgr.kernel(HEAT).bind(a, b, rate=0.2)
    control = null_control()
    for times in (3, 100):
        sequence = mgr.sequence().record(kp.OpRepeat(step, times, swap=[(a, b)])).eval()
        with control.logging():
            sequence.eval()
        found = [entry["op"] for entry in control.commands() if entry["op"] in ("dispatch", "barrier")]
        assert found.count("dispatch") == times
        places = [i for i, op in enumerate(found) if op == "dispatch"]
        assert all(j - i == 2 for i, j in itertools.pairwise(places))


def test_one_barrier_between_two_repetitions():
    run_child(check_barriers, driver="null")


def check_failures():
    """Each failing call of the driver while it is recorded: an error, and the next evaluation works."""
    mgr = kp.Manager(validation=False)
    a, b = mgr.zeros(64), mgr.zeros(64)
    control = null_control()
    step = mgr.kernel(HEAT).bind(a, b, rate=0.2)
    for entry in ("vkAllocateCommandBuffers", "vkBeginCommandBuffer", "vkEndCommandBuffer", "vkQueueSubmit"):
        for nth in (1, 2):
            sequence = mgr.sequence().record(kp.OpRepeat(step, 1000, swap=[(a, b)]))
            control.fail(entry, nth)
            try:
                sequence.eval()
            except kp.OutOfMemoryError:
                sequence.eval()
            control.clear()
            before = control.dispatches
            sequence.eval()
            assert control.dispatches - before == 1000, (entry, nth)
    assert not control.violations()


def test_failures_while_it_is_recorded():
    run_child(check_failures, driver="null")


class TestErrors:
    @pytest.fixture
    def step(self, mgr):
        a, b = mgr.zeros(8), mgr.zeros(8)
        return mgr.kernel(HEAT).bind(a, b, rate=0.2), a, b

    def test_times(self, step):
        operation, _, _ = step
        for times in (-1, 2**32, -(10**30)):
            with pytest.raises(kp.InvalidArgumentError, match="times is"):
                kp.OpRepeat(operation, times)
        for times in (1.5, "2", None, [1]):
            with pytest.raises(kp.ArgumentTypeError):
                kp.OpRepeat(operation, times)

    def test_operations(self, mgr, step):
        operation, a, _ = step
        with pytest.raises(kp.InvalidArgumentError, match="no operation"):
            kp.OpRepeat([], 3)
        for given in (None, 3, "x", a, [None], [operation, 3], mgr.kernel(HEAT), [mgr.kernel(HEAT)]):
            with pytest.raises(kp.ArgumentTypeError):
                kp.OpRepeat(given, 3)
        with pytest.raises(kp.InvalidArgumentError, match="record it before or after"):
            kp.OpRepeat([operation, kp.OpSyncLocal([a])], 3)
        with pytest.raises(kp.UnimplementedError, match="repeated already"):
            kp.OpRepeat(kp.OpRepeat(operation, 2), 3)

        class Own(kp.OpBase):
            def record(self, cmd):
                pass

        class Hooked(kp.OpFill):
            def pre_eval(self):
                pass

        for given in (Own(), Hooked([a])):
            with pytest.raises(kp.UnimplementedError, match="runs Python code"):
                kp.OpRepeat([given], 3)
        with kp.Manager() as other:
            with pytest.raises(kp.UnimplementedError, match="between Managers"):
                kp.OpRepeat(kp.OpCopy([a, other.zeros(8)]), 3)
            with pytest.raises(kp.InvalidArgumentError, match="different Managers"):
                kp.OpRepeat([operation, kp.OpFill([other.zeros(8)])], 3)
            with pytest.raises(kp.InvalidArgumentError, match="another Manager"):
                kp.OpRepeat(operation, 3, swap=[(a, other.zeros(8))])

    def test_pairs(self, mgr, step):
        operation, a, b = step
        for swap, error, match in [
            ((a, b), kp.ArgumentTypeError, "give pairs"),
            (a, kp.ArgumentTypeError, "list of pairs"),
            (3, kp.ArgumentTypeError, "list of pairs"),
            ([(a,)], kp.InvalidArgumentError, "group of 1"),
            ([(a, b, a)], kp.InvalidArgumentError, "group of 3"),
            ([(a, 3)], kp.ArgumentTypeError, "tensors and images"),
            ([(a, mgr.zeros(9))], kp.InvalidArgumentError, "one size and dtype"),
            ([(a, mgr.zeros(8, np.int32))], kp.InvalidArgumentError, "one size and dtype"),
            ([(a, mgr.image(np.zeros((2, 4), np.float32)))], kp.InvalidArgumentError, "one size and dtype"),
            ([(a, a)], kp.InvalidArgumentError, "is in swap twice"),
            ([(a, b), (b, mgr.zeros(8))], kp.InvalidArgumentError, "is in swap twice"),
            ([(a[:4], a[2:6])], kp.InvalidArgumentError, "overlaps"),
            ([(a[:4], b[:4])], kp.InvalidArgumentError, "only a part of it is exchanged"),
        ]:
            with pytest.raises(error, match=match):
                kp.OpRepeat(operation, 3, swap=swap)
        b.destroy()
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            kp.OpRepeat(operation, 3, swap=[(a, b)])
