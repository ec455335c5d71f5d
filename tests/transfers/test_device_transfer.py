"""Copies between Managers: on one device, and between two drivers in one process."""

from __future__ import annotations

import gc
import logging
import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import PROFILES
from tests.support.child import run_child
from tests.support.threads import on_threads

TWO = "lavapipe+swiftshader"
TYPES = list(kp.MemoryTypes.__members__.values())
STEP = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { float a[]; };
layout(push_constant) uniform P { float scale; float offset; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < a.length()) a[i] = a[i] * scale + offset;
}
"""


def step(memory, scale, offset):
    """An operation: memory * scale + offset."""
    algorithm = memory.manager.algorithm(
        [memory], kp.compile(STEP), (-(-memory.size() // 64), 1, 1), [], np.array([scale, offset], np.float32)
    )
    return kp.OpAlgoDispatch(algorithm)


def filled(manager, array, memory_type="device"):
    """A tensor with `array` on the device."""
    tensor = manager.tensor_t(np.zeros_like(array), memory_type)
    tensor.write(array)
    return tensor


# -- what must hold between any two Managers; each runs on one device and on two -----------------------------


def check_to(here, there):
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.uint8, np.int64, np.complex64, np.dtype([("a", "<f4"), ("b", "<u2", (3,))])):
        array = rng.integers(0, 256, 24 * np.dtype(dtype).itemsize, np.uint8).view(dtype).reshape(2, 3, 4)
        if array.dtype.kind in "fc":
            array = np.nan_to_num(array)
        for memory_type in TYPES:
            source = filled(here, array, memory_type)
            made = source.to(there)
            assert made is not source and made.manager is there and source.manager is here
            assert made.shape == array.shape and made.dtype == array.dtype
            assert made.memory_type() is memory_type
            assert made.read().tobytes() == array.tobytes()
            for other in TYPES:
                assert source.to(there, other).read().tobytes() == array.tobytes()
                assert source.to(there, other).memory_type() is other


def check_host_copies(here, there):
    source = here.tensor([1, 2, 3])
    made = source.to(there)  # nothing was brought to the device yet: what the host has goes over
    assert made.data().tolist() == made.read().tolist() == [1, 2, 3]
    here.sequence().record(kp.OpSyncDevice([source])).eval()
    source.data()[:] = 7
    made = source.to(there)
    assert made.data().tolist() == [7, 7, 7] and made.read().tolist() == [1, 2, 3]
    for single in ("host", "deviceAndHost"):
        assert source.to(there, single).data().tolist() == [1, 2, 3]
    assert here.full(5, 2.5).to(there).read().tolist() == [2.5] * 5
    assert here.tensor([4, 5], "storage").to(there, "host").data().tolist() == [4, 5]


def check_views(here, there):
    array = np.arange(60, dtype=np.int32).reshape(6, 10)
    source = filled(here, array)
    target = there.zeros((6, 10), np.int32)
    assert np.array_equal(source[2:4].to(there).read(), array[2:4])
    assert np.array_equal(source[1, 3:7].to(there).read(), array[1, 3:7])
    kp.Fence.join(target[1:3].copy_from(source[4:6]), source[0].copy_to(target[5])).wait()
    expected = np.zeros_like(array)
    expected[1:3], expected[5] = array[4:6], array[0]
    assert np.array_equal(target.read(), expected)


def check_images(here, there):
    for shape, dtype in [((5, 7, 4), np.uint8), ((3, 9), np.float32), ((1, 1, 2), np.float32)]:
        array = (np.arange(np.prod(shape)) % 251).astype(dtype).reshape(shape)
        for memory_type in ("device", "storage", "host"):
            source = here.image_t(array, memory_type=memory_type)
            source.write(array)
            made = source.to(there)
            assert made.shape == source.shape and made.format == source.format and made.manager is there
            assert np.array_equal(made.read(), array)
            if memory_type == "host":
                assert np.array_equal(made.numpy(), array)
            tensor = there.zeros(array.shape, array.dtype)
            tensor.copy_from(source).wait()
            assert np.array_equal(tensor.read(), array)
            back = here.image_t(np.zeros_like(array), memory_type=memory_type)
            back.copy_from(tensor).wait()
            assert np.array_equal(back.read(), array)
    cube = here.image_empty((2, 3, 4), "r32f", dims=3)
    cube.write(np.arange(24, dtype=np.float32))
    assert cube.to(there).depth == 2 and np.array_equal(cube.to(there).read(), cube.read())


def check_sequence(here, there):
    """Each evaluation runs the whole chain: here, over, there, back."""
    for home in (here, there):
        a, b = here.tensor(np.arange(1000)), there.zeros(1000)
        c = here.zeros(1000)
        sequence = home.sequence()
        sequence.record(kp.OpSyncDevice([a])) if home is here else here.sequence().record(
            kp.OpSyncDevice([a])
        ).eval()
        if home is here:
            sequence.record(step(a, 2, 1))
        sequence.record(kp.OpCopy([a, b, c]))
        if home is here:
            sequence.record(step(a, 0, -1), step(c, 1, 0.5))
        else:
            sequence.record(step(b, 1, 0.5), kp.OpSyncLocal([b]))
        assert sequence.is_recording() and not sequence.is_running()
        for n in range(4):
            a.data()[:] = np.arange(1000) + n
            if home is there:
                here.sequence().record(kp.OpSyncDevice([a])).eval()
            assert sequence.eval() is sequence
            expected = (np.arange(1000, dtype=np.float32) + n) * (2 if home is here else 1) + (
                1 if home is here else 0
            )
            if home is here:
                assert np.array_equal(b.read(), expected)
                assert np.array_equal(c.read(), expected + 0.5)
                assert np.all(a.read() == -1)
            else:
                assert np.array_equal(b.data(), expected + 0.5)
                assert np.array_equal(c.read(), expected)
            assert not sequence.is_running() and sequence.is_complete() and not sequence.is_recording()
        assert "OpCopy" in repr(sequence)
        sequence.eval_async()
        assert sequence.fence.wait().done() and not sequence.is_running()
        sequence.rerecord()
        sequence.eval()
        # A fresh recording without copies between Managers is an ordinary one.
        plain = home.zeros(8)
        sequence.record(kp.OpFill([plain], 3)).eval()
        assert plain.read().tolist() == [3] * 8
        sequence.eval(kp.OpCopy([a, b]))
        assert np.array_equal(a.read(), b.read())
        sequence.clear()
        sequence.record(kp.OpFill([plain], 4)).eval()
        assert plain.read().tolist() == [4] * 8


def check_ping_pong(here, there):
    """The copies are ordered with what other sequences do on both devices, without a wait between."""
    a, b = filled(here, np.zeros(5000, np.float32)), there.zeros(5000)
    up = here.sequence().record(step(a, 1, 1))
    over = here.sequence().record(kp.OpCopy([a, b]))
    double = there.sequence().record(step(b, 2, 0))
    back = there.sequence().record(kp.OpCopy([b, a]))
    expected = 0
    for _ in range(6):
        up.eval_async()
        over.eval_async()
        double.eval_async()
        back.eval_async()
        expected = (expected + 1) * 2
        for sequence in (up, over, double, back):
            sequence.eval_await()
    assert np.all(a.read() == expected) and np.all(b.read() == expected)
    up.eval_async()
    fence = b.copy_from(a)
    double.eval_async()
    fence.wait()
    double.eval_await()
    up.eval_await()
    assert np.all(b.read() == (expected + 1) * 2)


def check_large(here, there):
    """Several steps of 16 MiB, and a rest."""
    array = np.arange((35 << 20) // 4 + 3, dtype=np.uint32)
    source = here.empty(array.shape, np.uint32, "storage")
    source.write(array)
    made = source.to(there)
    assert np.array_equal(made.read(), array)
    target = here.zeros(array.shape, np.uint32, "storage")
    sequence = there.sequence().record(kp.OpCopy([made, target]))
    for n in range(2):
        made[n].fill(5)
        sequence.eval()
        array[n] = 5
        assert np.array_equal(target.read(), array)


def check_semaphores(here, there):
    a, b = filled(here, np.ones(100, np.float32)), there.zeros(100)
    begin, end = here.semaphore(), here.semaphore()
    begin.signal(1)
    sequence = here.sequence().record(step(a, 3, 0), kp.OpCopy([a, b]))
    sequence.eval_async(wait=(begin, 1), signal=(end, 4)).eval_await()
    end.wait(4, timeout=10)
    assert b.read()[0] == 3
    before, after = here.sequence().record(step(a, 1, 1)), here.sequence().record(step(a, 0, 0))
    here.submit([before, sequence, after], signal=(end, 5)).wait()
    end.wait(5, timeout=10)
    assert b.read()[0] == 12 and a.read()[0] == 0
    with pytest.raises(kp.InvalidArgumentError, match="given twice"):
        here.submit([sequence, sequence])


def check_await(here, there):
    import asyncio

    a, b = filled(here, np.ones(100, np.float32)), there.zeros(100)
    sequence = here.sequence().record(step(a, 3, 0), kp.OpCopy([a, b]))

    async def main():
        await sequence.eval_async()
        await b.copy_from(a)

    asyncio.run(main())
    assert not sequence.is_running() and b.read()[0] == 3


def check_errors(here, there):
    a, b = here.tensor([1, 2, 3]), there.tensor([0, 0, 0])
    with pytest.raises(kp.InvalidArgumentError, match=r"4 elements.* 3"):
        b.copy_from(here.zeros(4))
    with pytest.raises(kp.ArgumentTypeError, match="differ in dtype"):
        b.copy_from(here.zeros(3, np.int32))
    with pytest.raises(kp.ArgumentTypeError, match="Manager"):
        a.to("cpu")
    with pytest.raises(kp.InvalidArgumentError, match="memory type"):
        a.to(there, "nowhere")
    with pytest.raises(kp.FailedPreconditionError, match="timestamps"):
        here.sequence(timestamps=True).record(kp.OpCopy([a, b]))
    sequence = here.sequence().record(kp.OpFill([a], 1))
    with kp.Manager(here.get_device_properties()) as third:
        other = third.tensor([1, 2, 3])
        with pytest.raises(kp.InvalidArgumentError, match="of one of their Managers"):
            sequence.record(kp.OpCopy([b, other]))
        sequence.eval()  # the recording stayed
        assert a.read().tolist() == [1, 1, 1]
        gone = here.sequence().record(kp.OpCopy([a, b, other]))
        gone.eval()
        kept = there.sequence().record(kp.OpCopy([other, b]))
    for broken in (gone, kept):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            broken.eval()
        assert not broken.is_running()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        a.to(third)
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        other.to(here)
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        kp.OpCopy([a, other])
    copy = kp.OpCopy([a, b])
    sequence = here.sequence().record(copy)
    sequence.eval()
    b.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        sequence.eval()
    assert not sequence.is_running()
    sequence.destroy()
    sequence.destroy()
    assert not sequence.is_init()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        sequence.eval()


def check_mapped(here, there):
    a, b = filled(here, np.ones(10, np.float32)), there.zeros(10)
    sequence = here.sequence().record(kp.OpCopy([a, b]))
    for memory in (a, b):
        with memory.map(write=True), pytest.raises(kp.FailedPreconditionError, match="mapped"):
            sequence.eval()
    sequence.eval()
    assert np.all(b.read() == 1)


def check_threads(here, there):
    """Copies both ways at once, each thread with its own sequences."""

    def work(n):
        source, target = (there, here) if n % 2 else (here, there)
        a, b = filled(source, np.full(3000, 100 * n, np.float32)), target.zeros(3000)
        sequence = source.sequence().record(step(a, 1, 1), kp.OpCopy([a, b]))
        for turn in range(20):
            sequence.eval()
            assert np.all(b.read() == 100 * n + turn + 1)

    on_threads(work, range(4))


CHECKS = [
    check_to, check_host_copies, check_views, check_images, check_sequence, check_ping_pong, check_semaphores,
    check_await, check_errors, check_mapped, check_threads,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize(
    "staged", [(False, False), (True, False), (True, True)], ids=["direct", "half", "staged"]
)
def test_between_managers_of_one_device(make_manager, check, staged):
    here, there = (make_manager(force_staging=each) for each in staged)
    check(here, there)


def test_large_contents_go_in_steps(make_manager):
    check_large(make_manager(force_staging=True), make_manager(force_staging=True))


def test_memory_that_must_be_flushed(make_manager):
    managers = [make_manager(force_staging=True, force_non_coherent=True) for _ in range(2)]
    check_sequence(*managers)


def test_routes(make_manager):
    """Which way the bytes go: the host's memory under both devices where both import it."""
    staged, other = make_manager(force_staging=True), make_manager(force_staging=True)
    a, b = staged.tensor([1, 2]), other.tensor([3, 4])

    def route(source, target):
        from kompute_py import _native

        copy = _native.PeerCopy(source._native, target._native)
        assert copy.route == "undecided"
        copy.submit()
        while not copy.poll():
            pass
        return copy.route

    both_import = staged.host_import_alignment is not None
    assert route(a, b) == ("shared" if both_import else "bounced")
    assert route(a, staged.tensor([0, 0])) == "same device"
    assert route(a, other.tensor([0, 0], "host")) == "direct"
    assert route(staged.tensor([0, 0], "host"), b) == "direct"


def test_to_the_same_manager(mgr):
    tensor = filled(mgr, np.arange(6, dtype=np.float32))
    assert tensor.to(mgr) is tensor and tensor.to(mgr, "device") is tensor
    part = tensor[2:4]
    assert part.to(mgr) is part
    copy = tensor.to(mgr, copy=True)
    assert copy is not tensor and copy.read().tolist() == list(range(6))
    copy.write(np.zeros(6))
    assert tensor.read().tolist() == list(range(6))
    other = tensor.to(mgr, "storage")
    assert other.memory_type() is kp.MemoryTypes.storage and other.read().tolist() == list(range(6))


def test_hooks_and_subclasses(make_manager):
    here, there = make_manager(), make_manager()
    calls = []

    class Loud(kp.OpCopy):
        def pre_eval(self):
            calls.append("before")

        def post_eval(self):
            calls.append("after")

    a, b = filled(here, np.arange(4, dtype=np.float32)), there.zeros(4)
    sequence = here.sequence().record(Loud([a, b])).eval()
    sequence.eval()
    assert calls == ["before", "after"] * 2 and b.read().tolist() == [0, 1, 2, 3]


def test_one_thread_at_a_time(make_manager):
    """A sequence with such copies refuses a second thread, as others do, also while the first one copies."""
    near, far = make_manager(), make_manager()
    source, target = near.full(64, 3.0), far.zeros(64)
    near.sequence().eval(kp.OpSyncDevice([source]))
    inside, go = threading.Event(), threading.Event()

    class Slow(kp.OpBase):
        reads, writes = (), (source,)

        def record(self, cmd):
            inside.set()
            assert go.wait(60)

    seq = near.sequence().record(Slow(), kp.OpCopy([source, target]))
    errors = []

    def run():
        try:
            seq.eval()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert inside.wait(60)
        for call in (
            seq.eval,
            seq.eval_async,
            seq.clear,
            seq.rerecord,
            lambda: seq.record(kp.OpSyncLocal([source])),
        ):
            with pytest.raises(kp.FailedPreconditionError, match="another thread"):
                call()
        assert "OpCopy" in repr(seq) or "another thread" in repr(seq)
    finally:
        go.set()
        thread.join()
    assert not errors
    assert (target.read() == 3).all()
    # Without the slow operation, from many threads: each evaluation is done or refused.
    seq.clear()
    seq.record(kp.OpCopy([source, target]))
    done, refused = [], []

    def many(_):
        for _ in range(25):
            try:
                done.append(seq.eval())
            except kp.FailedPreconditionError:
                refused.append(seq.is_running())

    on_threads(many, range(4), within=60)
    assert done and len(done) + len(refused) == 100
    assert (target.read() == 3).all()


def test_a_sequence_without_such_copies_is_not_touched(mgr):
    sequence = mgr.sequence().record(kp.OpFill([mgr.zeros(4)], 1))
    assert type(sequence._native).__name__ == "Stream"
    assert sequence._eval.__self__ is sequence._native


def test_nothing_is_left_behind(make_manager):
    here, there = make_manager(force_staging=True), make_manager(force_staging=True)
    before = kp.alive()
    for _ in range(3):
        a = filled(here, np.arange(100, dtype=np.float32))
        b = a.to(there)
        sequence = here.sequence().record(kp.OpCopy([a, b]))
        sequence.eval_async()
        sequence.eval_await()
        b.copy_from(a)  # dropped while it may run
        del a, b, sequence
    here.synchronize()
    there.synchronize()
    assert kp.alive() == before


# -- two drivers ---------------------------------------------------------------------------------------------


class _Messages(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        if hasattr(record, "validation_id"):
            self.texts.append(record.getMessage())


def check_between_drivers(staging):
    handler = _Messages()
    logging.getLogger("kompute_py").addHandler(handler)
    options = {"validation": True, "strict": True, "force_staging": staging}
    with kp.Manager("lavapipe", **options) as here, kp.Manager("swiftshader", **options) as there:
        for check in CHECKS:
            check(here, there)
            check(there, here)
    assert handler.texts == [], handler.texts[:3]
    gc.collect()
    return {kind: count for kind, count in kp.alive(detail=True).items() if count and kind != "context"}


@pytest.mark.capability(
    "P36 S30",
    "tensors copied between the devices of a process",
    "Tensor.to, kp.OpCopy",
    "guides/several_devices",
)
@pytest.mark.own_driver
@pytest.mark.parametrize("staging", [False, True])
def test_between_two_drivers(staging):
    assert run_child(check_between_drivers, staging, driver=TWO, layer="newer", timeout=300) == {}


def check_null(config):
    """Contents that are moved by a driver that runs no shaders, to one that does; memory that only flushes
    carry over.
    """
    from tests.drivers import null_control

    with kp.Manager("lavapipe") as here, kp.Manager("gpu") as there:
        for check in (check_to, check_host_copies, check_views, check_images, check_large):
            check(here, there)
            check(there, here)
    assert null_control().violations() == []


@pytest.mark.sampled(every=3)
@pytest.mark.own_driver
@pytest.mark.parametrize(
    "config",
    ["memory=discrete", "memory=noncoherent", "memory=unified", "gpu_us=300"]
    + [f"profile={profile}" for profile in PROFILES],
)
def test_with_the_null_driver(config):
    run_child(check_null, config, driver="lavapipe+null", config=config)


def check_between_gpus():
    with (
        kp.Manager("discrete", force_staging=True) as here,
        kp.Manager("integrated", force_staging=True) as there,
    ):
        array = np.arange(10_000_000, dtype=np.float32)
        a = filled(here, array)
        assert np.array_equal(a.to(there).read(), array)


@pytest.mark.own_driver
def test_between_two_gpus_that_the_host_does_not_see_into():
    run_child(check_between_gpus, driver="null", config="devices=2,memory=discrete,gpu_us=200")


def check_interrupt():
    """Ctrl-C breaks a copy off while it waits; a later evaluation is whole."""
    import signal

    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    with kp.Manager("discrete") as here, kp.Manager("integrated") as there:
        a, b = here.tensor(np.arange(100)), there.zeros(100)
        sequence = here.sequence().record(kp.OpSyncDevice([a]), kp.OpCopy([a, b]))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            sequence.eval()
        assert sequence.is_running()
        sequence.eval_await()
        assert not sequence.is_running()
        a.data()[:] = 5
        sequence.eval()
        assert np.all(b.read() == 5)


@pytest.mark.own_driver
def test_an_interrupted_copy():
    run_child(check_interrupt, driver="null", config="devices=2,gpu_us=1000000")


def check_lost(which):
    from tests.drivers import null_control

    here, there = (kp.Manager(kind, force_staging=True) for kind in ("discrete", "integrated"))
    a, b = filled(here, np.arange(100, dtype=np.float32)), there.zeros(100)
    sequence = here.sequence().record(kp.OpCopy([a, b]))
    sequence.eval()
    null_control().lose_device(after_submits=which)  # of each device
    for _ in range(which):
        sequence.eval()
    with pytest.raises(kp.DeviceLostError, match=r"Copying the tensor of .* to the tensor of "):
        sequence.eval()
    assert not sequence.is_running()
    with pytest.raises(kp.DeviceLostError):
        b.copy_from(a).wait()
    for manager in (here, there):
        manager.destroy()
    assert not any(each.is_init() for each in (a, b, sequence))


@pytest.mark.own_driver
@pytest.mark.parametrize("which", [0, 1])
def test_a_lost_device(which):
    run_child(check_lost, which, driver="null", config="devices=2,gpu_us=300")
