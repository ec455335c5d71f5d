"""Sequence.stream: frames in flight, against NumPy and against the same frames one by one."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import kompute_py as kp

N = 1000

HEAD = "#version 450\nlayout(local_size_x = 64) in;\n"
DOUBLE = (
    HEAD
    + """layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) b[i] = a[i] * 2.0; }
"""
)
ADD = (
    HEAD
    + """layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) buffer S { float s[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) s[i] += a[i]; }
"""
)
SUM = (
    HEAD
    + """layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) c[i] = a[i] + b[i]; }
"""
)

BRIGHTEN = """#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0, r32f) readonly uniform image2D source;
layout(set = 0, binding = 1, r32f) writeonly uniform image2D target;
layout(set = 0, binding = 2) readonly buffer Bias { float bias; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(source)))) imageStore(target, at, imageLoad(source, at) + bias);
}
"""


def frames(count, length=N):
    return [np.full(length, i, np.float32) + np.arange(length, dtype=np.float32) for i in range(count)]


@pytest.fixture(params=["in place", "one queue", "two queues"])
def device(request, make_manager):
    """CPU drivers share their memory with the host; told otherwise, they move frames as other devices do."""
    options = {} if request.param == "in place" else {"force_staging": True}
    if request.param == "two queues":  # where there is one, they share it
        family = make_manager(**options).queues[0]["family"]
        options["family_queue_indices"] = [family, family]
    manager = make_manager(**options)
    return manager


def stream(seq, items, **options):
    if len(seq.manager.queues) > 1:
        options.setdefault("transfer_queue", 1)
    return seq.stream(items, **options)


def doubling(mgr, sync=True):
    src, dst = mgr.zeros(N), mgr.zeros(N)
    seq = mgr.sequence()
    if sync:
        seq.record(kp.OpSyncDevice([src]))
    seq.record(mgr.kernel(DOUBLE).bind(src, dst))
    if sync:
        seq.record(kp.OpSyncLocal([dst]))
    return seq, src, dst


@pytest.mark.capability("", "frames in flight", "Sequence.stream", "guides/streaming")
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_results_in_order(device, depth, sync):
    seq, src, dst = doubling(device, sync)
    data = frames(11)
    results = [out.copy() for out in stream(seq, data, inputs=[src], outputs=[dst], depth=depth)]
    assert len(results) == 11
    for out, item in zip(results, data, strict=True):
        np.testing.assert_array_equal(out, item * 2)
    assert not src.data().any() and not dst.data().any()  # the slots have their own
    seq.eval()


def test_results_stay_for_depth_yields(device):
    seq, src, dst = doubling(device)
    data = frames(20)
    kept = []
    for n, out in enumerate(stream(seq, data, inputs=[src], outputs=[dst], depth=3)):
        kept.append(out)
        for back in range(min(n, 3) + 1):
            np.testing.assert_array_equal(kept[n - back], data[n - back] * 2)
    np.testing.assert_array_equal(kept[-1], data[-1] * 2)


def test_several_inputs_and_outputs_and_an_intermediate(device):
    mgr = device
    a, b, middle, c = (mgr.zeros(N) for _ in range(4))
    a.name, b.name = "a", "b"
    seq = mgr.sequence()
    seq.record(mgr.kernel(DOUBLE).bind(a, middle))
    seq.record(mgr.kernel(SUM).bind(middle, b, c))
    x, y = frames(8), [f[::-1].copy() for f in frames(8)]
    items = [
        (x[i], y[i]) if i % 3 == 0 else {"a": x[i], "b": y[i]} if i % 3 == 1 else {a: x[i], b: y[i]}
        for i in range(8)
    ]
    for i, (m, out) in enumerate(stream(seq, items, inputs=[a, b], outputs=[middle, c])):
        np.testing.assert_array_equal(m, x[i] * 2)
        np.testing.assert_array_equal(out, x[i] * 2 + y[i])


def test_state_is_carried_in_order(device):
    """What is read before it is written stays one, as when frames are evaluated one by one."""
    mgr = device
    src, total, out = mgr.zeros(N), mgr.full(N, 5.0), mgr.zeros(N)
    seq = mgr.sequence()
    seq.record(mgr.kernel(ADD).bind(src, total)).record(mgr.kernel(DOUBLE).bind(total, out))
    data = frames(9)
    expected = np.full(N, 5.0, np.float32)
    results = stream(seq, data, inputs=[src], outputs=[total, out])
    for item, (t, o) in zip(data, results, strict=True):
        expected = expected + item
        np.testing.assert_array_equal(t, expected)
        np.testing.assert_array_equal(o, expected * 2)
    np.testing.assert_array_equal(total.read(), expected)


def test_shared_stays_the_users(device):
    seq, src, dst = doubling(device)
    data = frames(7)
    for item, out in zip(data, stream(seq, data, inputs=src, outputs=dst, shared=[src, dst]), strict=True):
        np.testing.assert_array_equal(out, item * 2)
    np.testing.assert_array_equal(src.read(), data[-1])
    np.testing.assert_array_equal(dst.read(), data[-1] * 2)


def test_views_copies_and_fills_keep_their_places(device):
    mgr = device
    src, middle, dst = mgr.zeros(1024), mgr.zeros(1024), mgr.zeros(1024)
    seq = mgr.sequence()
    seq.record(kp.OpFill([middle], 7.0)).record(kp.OpCopy([src[:256], middle[512:768]]))
    seq.record(mgr.kernel(DOUBLE).bind(middle[512:], dst[:512]))
    data = frames(5, 1024)
    for item, out in zip(data, stream(seq, data, inputs=[src], outputs=[dst]), strict=True):
        np.testing.assert_array_equal(out[:256], item[:256] * 2)
        np.testing.assert_array_equal(out[256:512], np.full(256, 14.0))
        np.testing.assert_array_equal(out[512:], np.zeros(512))


@pytest.mark.parametrize("sync", [True, False])
def test_views_as_inputs_and_outputs(device, sync):
    """They are parts of the user's memory: what lies beside them stays, and frames are in order."""
    mgr, size = device, 1024  # where a part may be bound on any device
    a, b = mgr.full(3 * size, 9.0), mgr.full(3 * size, 4.0)
    whole_a, whole_b = a.data().copy(), b.data().copy()
    low, high, out = a[:size], a[2 * size :], b[size : 2 * size]
    seq = mgr.sequence()
    if sync:
        seq.record(kp.OpSyncDevice([a, b]))
    seq.record(mgr.kernel(SUM).bind(low, high, out))
    if sync:
        seq.record(kp.OpSyncLocal([b]))
    x, y = frames(9, size), [f[::-1].copy() for f in frames(9, size)]
    results = stream(seq, list(zip(x, y, strict=True)), inputs=[low, high], outputs=[out])
    for i, result in enumerate(results):
        assert result.shape == (size,)
        np.testing.assert_array_equal(result, x[i] + y[i])
    assert (a.data() == whole_a).all() and (b.data() == whole_b).all()  # the host copies
    np.testing.assert_array_equal(a.read(), np.concatenate([x[-1], np.full(size, 9.0), y[-1]]))
    assert (b.read()[:size] == 4).all() and (b.read()[2 * size :] == 4).all()
    # Two rows of a matrix, one of them in and one out, whatever is recorded around them.
    table = mgr.zeros((4, size))
    seq = mgr.sequence().record(mgr.kernel(DOUBLE).bind(table[1], table[2]))
    for item, result in zip(x, stream(seq, x, inputs=table[1], outputs=table[2], depth=2), strict=True):
        np.testing.assert_array_equal(result, item * 2)
    assert not table.read()[[0, 3]].any()


@pytest.mark.parametrize("sync", [True, False])
def test_images_as_inputs_and_outputs(device, sync):
    mgr = device
    shape = (9, 16)
    source = mgr.image(np.zeros(shape, np.float32))
    target = mgr.image(np.zeros(shape, np.float32))
    bias = mgr.full(1, 0.5)
    seq = mgr.sequence()
    if sync:
        seq.record(kp.OpSyncDevice([source, target]))
    seq.record(mgr.kernel(BRIGHTEN).bind(source, target, bias, grid=(16, 9)))
    if sync:
        seq.record(kp.OpSyncLocal([target]))
    rng = np.random.default_rng(3)
    data = [rng.random(shape, np.float32) for _ in range(8)]
    for item, out in zip(data, stream(seq, data, inputs=[source], outputs=[target]), strict=True):
        assert out.shape == shape
        np.testing.assert_array_equal(out, item + np.float32(0.5))
    np.testing.assert_array_equal(source.read(), data[-1])
    # A short last item is padded and trimmed, as a tensor's.
    *_, last = stream(seq, [data[0], data[1][:3]], inputs=[source], outputs=[target])
    np.testing.assert_array_equal(last, data[1][:3] + np.float32(0.5))


def test_host_memory_and_in_place(device):
    mgr = device
    src, dst = mgr.zeros(N, memory_type="host"), mgr.zeros(N, memory_type="deviceAndHost")
    seq = mgr.sequence().record(mgr.kernel(DOUBLE).bind(src, dst)).record(mgr.kernel(ADD).bind(dst, src))
    data = frames(5)
    for item, (d, s) in zip(data, stream(seq, data, inputs=[src], outputs=[dst, src]), strict=True):
        np.testing.assert_array_equal(d, item * 2)
        np.testing.assert_array_equal(s, item * 3)


class _Derived(np.ndarray):
    pass


FORMS = {
    "array": lambda a: a, "tuple": lambda a: (a,), "list of numbers": lambda a: a.tolist(),
    "list of a list": lambda a: (a.tolist(),), "every second": lambda a: np.repeat(a, 2)[::2],
    "backwards": lambda a: a[::-1].copy()[::-1], "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "a class of its own": lambda a: a.view(_Derived), "memoryview": lambda a: memoryview(a),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype), "by tensor": lambda a: {"tensor": a},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_items(device, form):
    seq, src, dst = doubling(device)
    data = frames(7)
    items = [FORMS[form](item) for item in data]
    if form == "by tensor":
        items = [{src: item["tensor"]} for item in items]
    results = [out.copy() for out in stream(seq, items, inputs=src, outputs=dst)]
    np.testing.assert_array_equal(results, np.stack(data) * 2)
    mixed = [each for pair in zip(data, items, strict=True) for each in pair]
    results = [out.copy() for out in stream(seq, mixed, inputs=src, outputs=dst)]
    np.testing.assert_array_equal(results, np.repeat(np.stack(data) * 2, 2, axis=0))


def test_a_result_whose_shape_is_changed_leaves_later_ones_alone(device):
    seq, src, dst = doubling(device)
    data = frames(9)
    kept = None
    for out, item in zip(stream(seq, data, inputs=src, outputs=dst, depth=1), data, strict=True):
        assert out.shape == (N,) and out is not kept
        np.testing.assert_array_equal(out, item * 2)
        kept = out
        kept.shape = (2, N // 2)


def test_the_manager_is_destroyed_meanwhile(make_manager):
    manager = make_manager()
    seq, src, dst = doubling(manager)
    results = iter(seq.stream(frames(9), inputs=src, outputs=dst))
    first = next(results)
    before = first.copy()
    manager.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        list(results)
    np.testing.assert_array_equal(first, before)


def test_next_takes_one_result(device):
    seq, src, dst = doubling(device)
    results = seq.stream(frames(5), inputs=src, outputs=dst)
    firsts = [next(results).copy(), next(results).copy()]
    found = [*firsts, *(each.copy() for each in results)]
    for each, frame in zip(found, frames(5), strict=True):
        np.testing.assert_array_equal(each, 2 * frame)
    with pytest.raises(kp.FailedPreconditionError, match="once"):
        next(results)


def test_short_last_item(device):
    mgr = device
    src, dst, total = mgr.zeros((10, 3)), mgr.zeros((10, 3)), mgr.zeros(30)
    seq = mgr.sequence().record(mgr.kernel(DOUBLE).bind(src, dst)).record(mgr.kernel(DOUBLE).bind(src, total))
    whole, short = np.ones((10, 3), np.float32), np.full((4, 3), 2.0, np.float32)
    outs = [(a.copy(), b.copy()) for a, b in stream(seq, [whole, short], inputs=[src], outputs=[dst, total])]
    assert outs[0][0].shape == (10, 3) and outs[1][0].shape == (4, 3)
    np.testing.assert_array_equal(outs[1][0], short * 2)
    np.testing.assert_array_equal(outs[1][1], np.r_[np.full(12, 4.0), np.zeros(18)])
    got = []
    with pytest.raises(kp.InvalidArgumentError, match=r"items\[1\] is shorter .*items\[2\]"):
        got.extend(stream(seq, [whole, short, whole], inputs=[src], outputs=[total]))
    assert len(got) == 2


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        (np.zeros(N + 1, np.float32), kp.InvalidArgumentError, r"items\[2\] has shape \(1001,\)"),
        (np.zeros((N, 1), np.float32), kp.InvalidArgumentError, r"items\[2\]"),
        (np.zeros(0, np.float32), kp.InvalidArgumentError, r"items\[2\]"),
        (np.zeros(N), kp.ArgumentTypeError, r"items\[2\] has dtype float64"),
        ("text", kp.ArgumentTypeError, r"items\[2\]"),
        (None, kp.KomputeError, r"items\[2\]"),
        ({"unknown": 1}, kp.InvalidArgumentError, r"items\[2\]: missing"),
    ],
)
def test_wrong_items_come_after_the_results_before_them(device, bad, error, text):
    seq, src, dst = doubling(device)
    data = frames(2)
    got = []
    with pytest.raises(error, match=text):
        for out in stream(seq, [*data, bad, *data], inputs=[src], outputs=[dst]):
            got.append(out.copy())
    assert len(got) == 2
    np.testing.assert_array_equal(got[1], data[1] * 2)


def test_an_error_of_the_items_comes_after_the_results_before_it(device):
    seq, src, dst = doubling(device)

    def items():
        yield from frames(4)
        raise RuntimeError("camera gone")

    got = []
    with pytest.raises(RuntimeError, match="camera gone"):
        got.extend(stream(seq, items(), inputs=[src], outputs=[dst]))
    assert len(got) == 4
    assert list(stream(seq, [], inputs=[src], outputs=[dst])) == []


def test_leaving_early(device):
    seq, src, dst = doubling(device)
    before = kp.alive()
    taken = []

    def items():
        for frame in frames(100):
            taken.append(1)
            yield frame

    for out in stream(seq, items(), inputs=[src], outputs=[dst], depth=3):
        np.testing.assert_array_equal(out, frames(1)[0] * 2)
        break
    assert len(taken) == 3
    unused = stream(seq, items(), inputs=[src], outputs=[dst])
    del unused, out
    device.synchronize()
    assert kp.alive() <= before
    seq.eval()


def test_the_sequence_may_be_used_meanwhile(device):
    seq, src, dst = doubling(device)
    data = frames(6)
    src.data()[:] = 100.0
    for item, out in zip(data, stream(seq, data, inputs=[src], outputs=[dst]), strict=True):
        np.testing.assert_array_equal(out, item * 2)
        seq.eval()
        np.testing.assert_array_equal(dst.data(), np.full(N, 200.0))
        if item is data[3]:
            seq.clear()
            seq.record(kp.OpSyncDevice([src, dst]))


def test_async_for(device):
    seq, src, dst = doubling(device)
    data = frames(9)

    async def camera():
        for frame in data:
            await asyncio.sleep(0)
            yield frame

    async def main(items):
        return [out.copy() async for out in stream(seq, items, inputs=[src], outputs=[dst])]

    for items in (data, camera()):
        for out, item in zip(asyncio.run(main(items)), data, strict=True):
            np.testing.assert_array_equal(out, item * 2)


def test_cancelled_async_for(device):
    seq, src, dst = doubling(device)
    sem = device.semaphore()
    count = 0

    async def loop():
        nonlocal count
        async for _ in stream(seq, frames(50), inputs=[src], outputs=[dst], shared=[dst]):
            count += 1

    async def main():
        # Holds what uses dst back, so that the stream waits when it is cancelled.
        hold = device.sequence().record(kp.OpSyncDevice([dst])).eval_async(wait=(sem, 1))
        task = asyncio.create_task(loop())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        sem.signal(1)
        await hold

    asyncio.run(main())
    assert count == 0
    device.synchronize()
    np.testing.assert_array_equal(
        next(iter(stream(seq, frames(1), inputs=[src], outputs=[dst]))), frames(1)[0] * 2
    )


class Own(kp.OpBase):
    def record(self, cmd):
        pass


def test_misuse(device):
    mgr = device
    seq, src, dst = doubling(mgr)
    data = frames(2)

    def attempt(sequence=seq, items=data, **options):
        return stream(sequence, items, **{"inputs": [src], "outputs": [dst], **options})

    with pytest.raises(kp.FailedPreconditionError, match="nothing recorded"):
        attempt(mgr.sequence())
    with pytest.raises(kp.InvalidArgumentError, match="no recorded operation writes"):
        attempt(outputs=[mgr.zeros(3)])
    with pytest.raises(kp.InvalidArgumentError, match="no recorded operation reads"):
        attempt(inputs=[dst])
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        attempt(inputs=[src[:10], src[9:]])
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        attempt(inputs=[src[8:], src])
    with pytest.raises(kp.InvalidArgumentError, match="no recorded operation writes"):
        attempt(outputs=[mgr.zeros(9)[2:5]])
    with pytest.raises(kp.InvalidArgumentError, match="twice"):
        attempt(inputs=[src, src])
    with pytest.raises(kp.InvalidArgumentError, match="empty"):
        attempt(outputs=[])
    with pytest.raises(
        kp.ArgumentTypeError, match=r"takes one or a list of Tensor or Image; inputs\[0\] is 3"
    ):
        attempt(inputs=[3])
    with pytest.raises(kp.InvalidArgumentError, match="depth"):
        attempt(depth=0)
    with pytest.raises(kp.OutOfRangeError, match="transfer_queue"):
        attempt(transfer_queue=9)
    with pytest.raises(kp.UnimplementedError, match="Own"):
        attempt(mgr.sequence().record(Own()))
    with pytest.raises(kp.ArgumentTypeError, match="items"):
        iter(attempt(items=3))
    once = attempt()
    assert len(list(once)) == 2
    with pytest.raises(kp.FailedPreconditionError, match="once"):
        iter(once)
    sem = mgr.semaphore()
    seq.eval_async(wait=(sem, 1))
    with pytest.raises(kp.FailedPreconditionError, match="running"):
        attempt()
    sem.signal(1)
    seq.eval_await()


def several_queues(make_manager):
    """A Manager with a queue that computes and the most dedicated other one for transfers that there is."""
    families = make_manager().get_device_properties().queue_families
    compute = next(f["index"] for f in families if f["compute"])
    dedicated = [f["index"] for f in families if f["transfer"] and not f["compute"]]
    others = [*dedicated, *(f["index"] for f in families if f["compute"] and f["index"] != compute), compute]
    return make_manager(family_queue_indices=[compute, others[0]]), bool(dedicated)


@pytest.mark.parametrize("shared", [False, True])
def test_copies_on_a_queue_for_transfers(make_manager, shared):
    """No shader, so that drivers without them show their queue families."""
    mgr, _ = several_queues(make_manager)
    src, middle, dst = mgr.zeros(N), mgr.zeros(2 * N), mgr.zeros(N)
    seq = mgr.sequence()
    seq.record(kp.OpFill([middle], 3.0)).record(kp.OpCopy([src[: N // 2], middle[N : N + N // 2]]))
    seq.record(kp.OpCopy([middle[N:], dst]))
    data = frames(12)
    kept = [src, dst] if shared else []
    results = seq.stream(data, inputs=[src], outputs=[dst], shared=kept, transfer_queue=1)
    for item, out in zip(data, results, strict=True):
        np.testing.assert_array_equal(out[: N // 2], item[: N // 2])
        np.testing.assert_array_equal(out[N // 2 :], np.full(N // 2, 3.0))


def test_a_queue_for_transfers_moves_and_does_not_compute(make_manager):
    mgr, dedicated = several_queues(make_manager)
    if not dedicated:
        pytest.skip("all queues of the driver compute")
    a, b = mgr.full(N, 2.0), mgr.zeros(N)
    seq = mgr.sequence(1).record(kp.OpCopy([a, b])).record(kp.OpSyncLocal([b]))
    seq.eval()
    np.testing.assert_array_equal(b.data(), np.full(N, 2.0))
    dispatch = kp.OpAlgoDispatch(mgr.algorithm([a, b], kp.compile(DOUBLE), (16, 1, 1)))
    with pytest.raises(kp.FailedPreconditionError, match="only moves memory"):
        seq.record(dispatch)
    family = mgr.queues[1]["family"]
    with pytest.raises(kp.InvalidArgumentError, match="no compute queues, which the first must be"):
        make_manager(family_queue_indices=[family])
