"""Tensors over the same memory, such as imports of one array, are ordered as one tensor."""

from __future__ import annotations

import gc
import mmap
import threading

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.each_driver

WORDS = 1 << 14
SLOW = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { float d[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    float v = d[i];
    for (int j = 0; j < 2000; ++j) v = fract(v * 1.0001 + 0.5);
    d[i] = v > 2 ? 0 : d[i] + 8;
}"""


@pytest.fixture
def two(make_manager):
    """A Manager with two queues that imports arrays."""
    made = make_manager(0, [0, 0])
    if made.host_import_alignment is None:
        pytest.skip("this device does not import memory of the process")
    return made


def again(mgr, a):
    return a, mgr.from_host(a), mgr.from_host(a)


def part_of_the_whole(mgr, a):
    first = mgr.from_host(a, copy="never")
    return a[4096:8192], first, mgr.from_host(a[4096:8192], copy="never")


def whole_of_the_part(mgr, a):
    first = mgr.from_host(a[4096:8192], copy="never")
    return a[4096:8192], first, mgr.from_host(a, copy="never")[4096:8192]


def parts_that_overlap(mgr, a):
    first = mgr.from_host(a[:8192], copy="never")
    return a[4096:8192], first, lambda: mgr.from_host(a[4096:], copy="never")[:4096]


def part_of_a_part(mgr, a):
    """The tensor over the whole is gone, and what it imported is still there."""
    whole = mgr.from_host(a, copy="never")
    first = mgr.from_host(a[:8192], copy="never")
    whole.destroy()
    return a[4096:8192], first, mgr.from_host(a[4096:], copy="never")[:4096]


def of_another_import(mgr, a):
    return a, mgr.from_host(a), lambda: mgr.from_host(a)


def by_dlpack(mgr, a):
    return a, kp.from_dlpack(a, mgr), lambda: kp.from_dlpack(a, mgr)


def of_a_tensors_array(mgr, a):
    t = mgr.tensor(a, "host")
    return np.asarray(t), t, lambda: mgr.from_host(np.asarray(t), copy="never")


def of_a_tensors_capsule(mgr, a):
    t = mgr.tensor(a, "deviceAndHost")
    return np.asarray(t), t[:4096], lambda: kp.from_dlpack(np.from_dlpack(t)[:4096], mgr, copy=False)


def of_a_tensor(mgr, a):
    t = mgr.tensor(a, "device")
    return None, t, lambda: kp.from_dlpack(t)


WAYS = [
    again, part_of_the_whole, whole_of_the_part, parts_that_overlap, part_of_a_part, of_another_import,
    by_dlpack, of_a_tensors_array, of_a_tensors_capsule, of_a_tensor,
]  # fmt: skip


def read(mgr, t):
    return t.read()


def read_part(mgr, t):
    return t[10:].read()


def mapping(mgr, t):
    with t.map(read=True) as array:
        return array.copy()


def copied(mgr, t):
    b = mgr.empty(t.shape)
    b.copy_from(t)
    return b.read()


def copied_on_the_other_queue(mgr, t):
    b = mgr.empty(t.shape)
    mgr.sequence(1).record(kp.OpCopy([t, b])).eval()
    return b.read()


def of_an_operation(mgr, t):
    return kp.ops.add(t, 0).read()


def recorded_operation(mgr, t):
    out = mgr.empty(t.shape)
    mgr.sequence().record(kp.ops.add.op(t, 0, out=out)).eval()
    return out.read()


def copied_array(mgr, t):
    in_place = t.memory_type() is not kp.MemoryTypes.device
    return mgr.from_host(t.numpy(), copy="always").read() if in_place else t.read()


READS = [
    read, read_part, mapping, copied, copied_on_the_other_queue, of_an_operation, recorded_operation,
    copied_array,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_reads_come_after_work_through_the_other(two, way):
    for how in READS:
        a = kp.aligned_zeros(WORDS)
        a[:] = 1
        _, first, second = way(two, a)
        work = two.kernel(SLOW).submit(first)
        if callable(second):
            second = second()
        got = how(two, second)
        assert (got == 9).all() and got.size, how.__name__
        work.wait()


@pytest.mark.parametrize("way", WAYS)
def test_writes_come_after_work_through_the_other(two, way):
    """By the host, by operations on either queue, and by a fill."""
    a = kp.aligned_zeros(WORDS)
    a[:] = 1
    _, first, second = way(two, a)
    kernel = two.kernel(SLOW)
    for write, expected in (
        (lambda t: t.write(np.full(t.shape, 5, np.float32)), 13),
        (lambda t: t.fill(5), 13),
        (lambda t: kp.ops.add(t, 1, out=t), 30),
        (lambda t: two.sequence(0).record(kp.OpFill([t], 2)).eval(), 10),
        (lambda t: two.sequence(1).record(kp.OpFill([t], 2)).eval(), 10),
        (lambda t: t.copy_from(two.full(t.shape, 3)), 11),
    ):
        kernel.submit(first)
        if callable(second):
            second = second()
        write(second)
        kernel(first)
        size = min(first.size(), second.size())
        assert (second.read()[:size] == expected).all(), expected
        if way is part_of_the_whole:
            assert (first.read()[4096:8192] == expected).all()


@pytest.mark.parametrize("way", WAYS)
def test_one_recording_has_the_barriers_of_one_tensor(two, way):
    a = kp.aligned_zeros(WORDS)
    _, first, second = way(two, a)
    second = second() if callable(second) else second

    def barriers(written, read):
        copy = kp.OpCopy([read, two.empty(read.shape)])
        return two.sequence().record(two.kernel(SLOW).bind(written), copy).eval().mermaid().count("{{")

    apart = two.from_host(kp.aligned_zeros(WORDS))
    assert barriers(first, second) == barriers(first, first) == barriers(first, apart) + 1


def test_held_work_holds_work_through_the_other(two):
    a = kp.aligned_zeros(WORDS)
    first, second, out = two.from_host(a), two.from_host(a[4096:]), two.zeros(WORDS - 4096)
    gate = two.semaphore()
    fill = two.submit([two.sequence().record(kp.OpFill([first], 3))], wait=[(gate, 1)])
    copy = two.submit([two.sequence(1).record(kp.OpCopy([second, out]))])
    assert not fill.done() and not copy.done()
    gate.signal(1)
    copy.wait()
    assert (out.read() == 3).all()


@pytest.mark.parametrize("copy", ["never", "auto"])
def test_overlapping_memory_that_none_contains_is_refused(two, copy):
    """A GPU may reorder writes through two imports of one page, whatever barrier stands between them."""
    a = np.frombuffer(mmap.mmap(-1, 4 * WORDS), np.float32)  # its extent is not known
    first = two.from_host(a[4096:8192])
    sequence = two.sequence().record(kp.OpFill([first], 3))
    for part, of_it in ((a, 16384), (a[:8192], 16384), (a[1024:5120], 4096)):
        with pytest.raises(kp.FailedPreconditionError, match=rf"{of_it} of its .* let go of the other"):
            two.from_host(part, copy=copy)
        with pytest.raises(kp.FailedPreconditionError, match="over the whole array first"):
            kp.from_dlpack(part, two)
    assert two.from_host(a, copy="always").read().sum() == 0
    beside = two.from_host(a[8192:])
    beside.fill(5)
    sequence.eval()
    two.synchronize()
    assert (a[4096:8192] == 3).all() and (a[8192:] == 5).all()
    first.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="32768 of its"):
        two.from_host(a)
    del beside
    whole = two.from_host(a, copy=copy)
    whole.fill(7)
    assert (whole.read() == 7).all() and (a == 7).all()


def test_memory_kept_for_later_calls_stands_in_no_ones_way(two):
    a = np.frombuffer(mmap.mmap(-1, 4 * WORDS), np.float32)
    kernel = two.kernel(SLOW)
    for _ in range(3):
        kernel(two.from_host(a[:4096]))
        kp.ops.add(two.from_host(a[:4096]), 1, out=two.zeros(4096))
    kernel(two.from_host(a))
    assert (a[:4096] == 32).all() and (a[4096:] == 8).all()


def test_mappings_hold_the_bytes_and_not_the_tensor(two):
    a = kp.aligned_zeros(WORDS)
    one, other = two.from_host(a[:8192]), two.from_host(a[4096:])
    with one[4096:].map(write=True) as array:
        array[:] = 5
        calls = (
            other.read,
            lambda: other.write(np.zeros(other.shape)),
            lambda: other.map(read=True).__enter__(),
        )
        for call in calls:
            with pytest.raises(kp.FailedPreconditionError, match="mapped to write"):
                call()
        with pytest.raises(kp.FailedPreconditionError, match="mapped to write"):
            two.sequence().record(kp.OpFill([other], 1)).eval()
        assert (other[4096:].read() == 0).all()  # bytes beside it
        two.sequence().record(kp.OpFill([other[4096:]], 1)).eval()
    assert (other[:4096].read() == 5).all() and (other[4096:].read() == 1).all()
    with one.map(read=True), other.map(read=True) as array:
        assert (array[:4096] == 5).all()


def test_read_only_imports_need_no_order(two):
    a = kp.aligned_zeros(WORDS)
    one, other, apart = (
        two.from_host(each, semantics=kp.HostBufferSemantics.IMMUTABLE_ZERO_COPY)
        for each in (a, a, kp.aligned_zeros(WORDS))
    )
    out = two.zeros(WORDS), two.zeros(WORDS)
    both, neither = (
        two.sequence().record(kp.OpCopy([one, out[0]]), kp.OpCopy([each, out[1]])).eval()
        for each in (other, apart)
    )
    assert both.mermaid() == neither.mermaid()
    with pytest.raises(kp.FailedPreconditionError, match="read-only"):
        other.write(np.ones(WORDS))


def test_lifetimes_stay_apart(two):
    """Each import ends for itself; the order with its work stays."""
    a = kp.aligned_zeros(WORDS)
    a[:] = 1
    done = []
    first = two.from_host(a, on_done=lambda: done.append(1))
    second = two.from_host(a, on_done=lambda: done.append(2))
    recording = two.sequence().record(kp.OpFill([second], 4))
    work = two.kernel(SLOW).submit(first)
    first.destroy()
    assert (second.read() == 9).all()
    recording.eval()
    assert (second.read() == 4).all()
    work.wait()
    del work
    two.synchronize()
    gc.collect()
    two.from_host(kp.aligned_zeros(4))  # lets go of what is done
    recording.destroy()
    second.destroy()
    del first, second, recording
    gc.collect()
    two.synchronize()
    two.from_host(kp.aligned_zeros(4))
    assert sorted(done) == [1, 2]


def test_new_imports_after_tensors_that_are_gone(two):
    a = kp.aligned_zeros(WORDS)
    for step in range(3):
        two.kernel(SLOW).submit(two.from_host(a))
        assert (two.from_host(a[4096:]).read() == 8 * (step + 1)).all()


def test_operations_refuse_or_copy_what_overlaps(two):
    a = kp.aligned_zeros(WORDS, np.uint32)
    a[:] = np.arange(WORDS)
    one, other = two.from_host(a[:8192]), two.from_host(a[4096:])
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpCopy([one, other[:8192]])
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpCopy([two.zeros(8192, np.uint32), one, other[:8192]])
    with pytest.raises(kp.InvalidArgumentError, match="overlap"):
        kp.OpFill([one, other], np.uint32(1))
    with pytest.raises(kp.InvalidArgumentError, match="exchanged"):
        kp.OpRepeat(kp.OpFill([one], np.uint32(1)), 2, swap=[(one, other[:8192])])
    shifted = kp.ops.flip(one, out=other[:8192])
    np.testing.assert_array_equal(shifted.read(), np.arange(8192)[::-1])


def test_an_exchange_exchanges_memory(two):
    """The operation uses the memory through another tensor than the exchange names."""
    a = kp.aligned_zeros(WORDS, np.uint32)
    one, again, other = two.from_host(a), two.from_host(a), two.full(WORDS, 5, np.uint32)
    two.sequence().record(kp.OpRepeat(kp.OpFill([again], np.uint32(7)), 2, swap=[(one, other)])).eval()
    assert (one.read() == 7).all() and (other.read() == 7).all()


def test_streams_of_two_tensors_over_one_array(two):
    a = kp.aligned_zeros(WORDS)
    given, again, result = two.from_host(a), two.from_host(a), two.zeros(WORDS)
    sequence = two.sequence().record(kp.OpCopy([given, two.empty(WORDS)]), kp.OpCopy([again, result]))
    frames = [np.full(WORDS, n, np.float32) for n in range(5)]
    shown = [each.copy() for each in sequence.stream(frames, inputs=given, outputs=result)]
    np.testing.assert_array_equal(shown, frames)


def test_threads_import_one_array(two):
    a = kp.aligned_zeros(WORDS)
    kernel, failed = two.kernel(SLOW), []

    def work():
        try:
            for _ in range(5):
                two.from_host(a[4096:])[:64].fill(1)
                kernel(two.from_host(a[:8192]))
                two.from_host(a).read()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == [] and (a[:4096] == 3 * 5 * 8).all()


def test_from_dlpack_of_a_tensor(make_manager):
    mgr, other = make_manager(), make_manager()
    for kind in ("device", "storage", "host", "deviceAndHost"):
        t = mgr.tensor_t(np.arange(6, dtype=np.int16).reshape(2, 3), kind)
        seen = kp.from_dlpack(t)
        assert seen.manager is mgr and seen.base is t and seen.shape == (2, 3) and seen.dtype == np.int16
        seen.fill(7)
        assert (t.read() == 7).all()
        seen.destroy()
        assert t.is_init()
        copy = kp.from_dlpack(t, copy=True)
        t.fill(8)
        assert copy.base is None and (copy.read() == 7).all()
        there = kp.from_dlpack(t, other)
        assert there.manager is other and (there.read() == 8).all()
        with pytest.raises(kp.ExchangeError, match="another Manager"):
            kp.from_dlpack(t, other, copy=False)
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        kp.from_dlpack(t)


def test_arrays_over_the_memory_of_tensors(mgr):
    t = mgr.tensor_t(np.arange(8, dtype=np.uint32), "host")
    done = []
    part = mgr.from_host(np.asarray(t)[2:6], copy="never", on_done=lambda: done.append(1))
    assert part.base is t and part.is_shared
    part.fill(9)
    assert t.tolist() == [0, 1, 9, 9, 9, 9, 6, 7]
    del part
    gc.collect()
    assert done == [1]
    semantics = kp.HostBufferSemantics.IMMUTABLE_ZERO_COPY
    with pytest.raises(kp.UnimplementedError, match="may be written"):
        mgr.from_host(np.asarray(t), copy="never", semantics=semantics)
    assert mgr.from_host(np.asarray(t)[::2]).base is None  # copied
    for thing in (
        mgr.tensor_t(np.arange(1024.0)),
        mgr.image_t(np.ones((32, 32), np.float32), memory_type="host"),
    ):
        with pytest.raises(kp.UnimplementedError, match="host's side"):
            mgr.from_host(thing.data(), copy="never")
        np.testing.assert_array_equal(mgr.from_host(thing.data()).read(), thing.data())
