"""Arrays that the device uses in place: alignment, lifetimes, semantics, fall-backs."""

from __future__ import annotations

import gc
import logging
import mmap
import threading
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.each_driver

S = kp.HostBufferSemantics


@pytest.fixture
def importing(mgr):
    if mgr.host_import_alignment is None:
        pytest.skip("this device does not import memory of the process")
    return mgr


# -- aligned_empty -------------------------------------------------------------------------------------------


@pytest.mark.capability("P34", "arrays whose memory can be shared", "kp.aligned_empty", "guides/exchange")
@pytest.mark.own_driver
@pytest.mark.parametrize(
    "shape, dtype", [(1, "u1"), (5, "u1"), ((3, 4), "f4"), (4096, "u1"), (1_000_001, "f8")]
)
@pytest.mark.parametrize("alignment", [None, 64, 4096, 1 << 16])
def test_aligned_arrays(shape, dtype, alignment):
    for make in (kp.aligned_empty, kp.aligned_zeros):
        a = make(shape, dtype, alignment)
        assert a.shape == ((shape,) if isinstance(shape, int) else shape) and a.dtype == np.dtype(dtype)
        assert a.ctypes.data % max(alignment or 0, mmap.PAGESIZE) == 0
        assert a.flags.c_contiguous and a.flags.writeable
    assert not a.any()
    a[:] = 7
    assert (a == 7).all()


@pytest.mark.own_driver
def test_aligned_arrays_refuse():
    with pytest.raises(kp.InvalidArgumentError, match="power of two"):
        kp.aligned_empty(3, alignment=48)
    with pytest.raises(kp.ArgumentTypeError):
        kp.aligned_empty(3, object)
    with pytest.raises(kp.InvalidArgumentError):
        kp.aligned_empty((3, -1))
    with pytest.raises(kp.OutOfMemoryError):
        kp.aligned_empty(1 << 62, np.uint8)


# -- importing -----------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "P31 P32",
    "an array of the process as a tensor, without a copy",
    "Manager.from_host, Tensor.is_shared",
    "guides/exchange",
)
@pytest.mark.parametrize(
    "count, dtype", [(1, "u1"), (5, "u1"), (100, "f4"), (4096, "u1"), (4097, "u1"), (1 << 20, "f8")]
)
def test_device_and_array_are_one_memory(importing, count, dtype):
    mgr = importing
    array = kp.aligned_empty(count, dtype)
    array[:] = np.arange(count).astype(dtype)
    t = mgr.from_host(array, copy="never")
    assert t.memory_type() == kp.MemoryTypes.host and t.shape == (count,) and t.dtype == array.dtype
    assert t.data().ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(t.read(), array)
    out = mgr.empty(count, dtype)
    mgr.sequence().record(kp.OpCopy([t, out])).eval()
    np.testing.assert_array_equal(out.read(), array)
    source = mgr.tensor_t(np.full(count, 3).astype(dtype))
    mgr.sequence().record(kp.OpSyncDevice([source])).record(kp.OpCopy([source, t])).eval()
    assert (array == 3).all()
    array[-1] = 9
    assert t.read()[-1] == 9


def test_shaders_work_in_place(importing):
    a, b, out = (kp.aligned_empty(1000) for _ in range(3))
    a[:], b[:], out[:] = np.arange(1000), 2, 0
    tensors = [importing.from_host(x, copy="never") for x in (a, b, out)]
    sequence = importing.sequence().record(kp.OpMult(tensors)).eval()
    np.testing.assert_array_equal(out, a * 2)
    b[:] = 5
    sequence.eval()
    np.testing.assert_array_equal(out, a * 5)


def test_padding_is_never_a_neighbours(importing):
    array = kp.aligned_zeros(8192, np.uint8)
    array[:] = 1
    first = array[:4093]  # not a multiple of 4, and what follows is the array's
    with pytest.raises(kp.InvalidArgumentError, match="no multiple of 4"):
        importing.from_host(first, copy="never")
    t = importing.from_host(array[:4092], copy="never")
    importing.sequence().eval(kp.OpFill([t], 0))
    assert not array[:4092].any() and (array[4092:] == 1).all()
    tail = importing.from_host(array[4096:], copy="never")
    assert tail.read().tolist() == [1] * 4096


@pytest.mark.parametrize("offset", [64, 4096 + 256, 2 * 4096 - 256])
def test_parts_of_an_aligned_array_share_its_memory(importing, offset):
    """In any order, with what the device wants at the beginning of a binding."""
    array = kp.aligned_zeros(12288, np.uint8)
    array[:] = 1
    if offset % importing.get_device_properties()["limits"]["minStorageBufferOffsetAlignment"]:
        pytest.skip("such parts cannot be bound on this device")
    calls = []
    part = array[offset : offset + 400].view(np.float32)[:99].reshape(3, 33)
    t = importing.from_host(part, copy="never", on_done=lambda: calls.append(1))
    whole = importing.from_host(array, copy="never")
    assert t.is_shared and (t.shape, t.dtype, t.data().ctypes.data) == (
        (3, 33),
        np.float32,
        part.ctypes.data,
    )
    sequence = importing.sequence().record(kp.OpFill([t], 7.0), kp.OpFill([whole[offset + 396 :]], 9))
    sequence.eval_async()
    assert (importing.from_host(part).read() == 7).all() and (part == 7).all()  # it waited
    sequence.eval_await()
    array[: offset + 396].view(np.float32)[offset // 4 :] = 1
    assert (array[:offset] == 1).all() and (t.read() == 1).all() and (whole.read()[offset + 396 :] == 9).all()
    fixed = part.view()
    fixed.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match="read-only"):
        importing.from_host(fixed, copy="never")
    readable = importing.from_host(fixed, copy="never", semantics=kp.HostBufferSemantics.IMMUTABLE_ZERO_COPY)
    with pytest.raises(kp.FailedPreconditionError, match="read-only"):
        readable.write(fixed)
    del sequence, t
    gc.collect()
    importing.synchronize()
    assert calls == []  # the others are over its import
    del whole, readable
    gc.collect()
    importing.synchronize()
    assert calls == [1]


def test_misaligned_arrays_are_copied_or_refused(importing, caplog):
    array = kp.aligned_zeros(4096)[1:1001]
    with pytest.raises(kp.InvalidArgumentError, match=r"4 bytes after a multiple of \d+.*aligned_empty"):
        importing.from_host(array, copy="never")
    with caplog.at_level(logging.DEBUG, logger="kompute_py"):
        t = importing.from_host(array)
    assert "from_host copies" in caplog.text
    array[0] = 5
    assert t.read()[0] == 0 and t.memory_type() == kp.MemoryTypes.host


@pytest.mark.parametrize("copy", ["auto", "never", "always"])
def test_masks_are_refused_where_memory_could_be_shared(importing, copy):
    array = np.ma.masked_array(kp.aligned_zeros(1024), np.arange(1024) % 2)
    with pytest.raises(kp.ArgumentTypeError, match="masked array"):
        importing.from_host(array, copy=copy)


@pytest.mark.capability("P40", "strided arrays", "Manager.from_host", "guides/exchange")
@pytest.mark.parametrize("make", [lambda a: a.T, lambda a: a[:, ::2], lambda a: a.astype(">f4")])
def test_other_layouts_are_copied(importing, make):
    base = kp.aligned_zeros((32, 64))
    base[:] = np.arange(2048).reshape(32, 64)
    array = make(base)
    with pytest.raises(kp.InvalidArgumentError, match=r"C-contiguous|byte order"):
        importing.from_host(array, copy="never")
    np.testing.assert_array_equal(importing.from_host(array).read(), array)


def test_a_view_of_a_page(importing):
    t = importing.from_host(kp.aligned_zeros((4, 1024)), copy="never")
    t[1].write(np.ones(1024))
    assert t.data().reshape(4, 1024).sum(axis=1).tolist() == [0, 1024, 0, 0]


# -- lifetimes -----------------------------------------------------------------------------------------------


def test_the_array_lives_as_long_as_the_tensor(importing):
    array = kp.aligned_zeros(100)
    gone = weakref.ref(array)
    t = importing.from_host(array, copy="never")
    view, part = t.data(), t[10:]
    del array
    gc.collect()
    assert gone() is not None
    t.destroy()
    del t
    assert gone() is not None and not view.any()  # the view looks at it
    del view, part
    gc.collect()
    assert gone() is None


def test_arrays_go_while_the_main_thread_is_busy(importing):
    """A thread that imports arrays lets go of the earlier ones. Their `on_done` waits for the main thread."""
    alive: list[weakref.ref[np.ndarray]] = []
    calls: list[int | None] = []
    most = 0

    def run() -> None:
        nonlocal most
        for _ in range(200):
            array = kp.aligned_zeros(1000)
            alive.append(weakref.ref(array.base))
            t = importing.from_host(array, copy="never", on_done=lambda: calls.append(threading.get_ident()))
            assert t.read()[-1] == 0
            del array, t
            most = max(most, sum(ref() is not None for ref in alive))

    thread = threading.Thread(target=run)
    thread.start()
    # In one call, so that the main thread does nothing else meanwhile.
    thread.join()
    assert most <= 3
    gc.collect()
    assert all(ref() is None for ref in alive[:-1])
    assert calls == [threading.main_thread().ident] * 200


@pytest.mark.capability(
    "P39", "a callback when the host's memory is free again", "Manager.from_host", "guides/exchange"
)
def test_on_done_is_called_once(importing):
    calls = []
    array = kp.aligned_zeros(100)
    t = importing.from_host(array, copy="never", on_done=lambda: calls.append(threading.get_ident()))
    sequence = importing.sequence().record(kp.OpFill([t], 1.0)).eval()
    assert calls == []
    t.destroy()
    sequence.destroy()
    del t, sequence
    gc.collect()
    assert calls == [threading.main_thread().ident]
    assert (array == 1).all()
    importing.destroy()
    assert len(calls) == 1


@pytest.mark.parametrize("ends", ["tensor", "manager"])
def test_on_done_after_work_in_flight(make_manager, ends):
    mgr = make_manager()
    if mgr.host_import_alignment is None:
        pytest.skip("this device does not import memory of the process")
    calls = []
    array = kp.aligned_zeros(1 << 20)
    t = mgr.from_host(array, copy="never", on_done=lambda: calls.append(float(array[-1])))
    sequence = mgr.sequence().record(kp.OpFill([t], 5.0))
    sequence.eval_async()
    (t if ends == "tensor" else mgr).destroy()
    mgr.destroy()
    assert calls == [5.0]


def test_destroyed_by_another_thread(importing):
    calls = []
    tensors = [
        importing.from_host(kp.aligned_zeros(64), copy="never", on_done=lambda: calls.append(1))
        for _ in range(20)
    ]
    thread = threading.Thread(target=lambda: [t.destroy() for t in tensors])
    thread.start()
    thread.join()
    assert len(calls) == 20


def test_an_error_in_on_done_reaches_the_hook(importing, monkeypatch):
    import sys

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hint: seen.append(hint.exc_type))
    t = importing.from_host(kp.aligned_zeros(8), copy="never", on_done=lambda: 1 / 0)
    t.destroy()
    assert seen == [ZeroDivisionError]


# -- semantics -----------------------------------------------------------------------------------------------


@pytest.mark.own_driver
def test_the_semantics_have_pjrts_values():
    assert [(s.name, int(s)) for s in S] == [
        ("IMMUTABLE_ONLY_DURING_CALL", 0), ("IMMUTABLE_UNTIL_TRANSFER_COMPLETES", 1),
        ("IMMUTABLE_ZERO_COPY", 2), ("MUTABLE_ZERO_COPY", 3),
    ]  # fmt: skip


@pytest.mark.parametrize("semantics", [S.IMMUTABLE_ONLY_DURING_CALL, "IMMUTABLE_UNTIL_TRANSFER_COMPLETES", 0])
def test_copying_semantics_copy(mgr, semantics):
    calls = []
    array = kp.aligned_zeros(100)
    t = mgr.from_host(array, semantics=semantics, on_done=lambda: calls.append(1))
    assert calls == [1]
    array[:] = 4
    assert not t.read().any()
    with pytest.raises(kp.InvalidArgumentError, match="contradict"):
        mgr.from_host(array, copy="never", semantics=semantics)
    del t
    gc.collect()
    assert calls == [1]


@pytest.mark.capability(
    "P38", "the times at which the host may touch its memory", "kp.HostBufferSemantics", "reference/memory"
)
def test_immutable_memory_is_never_written(importing):
    mgr = importing
    array = kp.aligned_zeros(100)
    array[:] = 2
    array.flags.writeable = False
    with pytest.raises(kp.InvalidArgumentError, match="IMMUTABLE_ZERO_COPY"):
        mgr.from_host(array, copy="never")
    assert mgr.from_host(array).data().flags.writeable  # a copy
    t = mgr.from_host(array, copy="never", semantics=S.IMMUTABLE_ZERO_COPY)
    t.name = "weights"
    assert t.data().ctypes.data == array.ctypes.data and not t.data().flags.writeable
    assert not np.asarray(t).flags.writeable and memoryview(t).readonly
    other = mgr.tensor(np.ones(100))
    writes = (
        lambda: t.write(np.zeros(100)), lambda: t[:4].write(np.zeros(4)),
        lambda: t.map(write=True).__enter__(),
        lambda: mgr.sequence().record(kp.OpFill([t], 0)).eval(),
        lambda: mgr.sequence().record(kp.OpCopy([other, t])).eval(),
    )  # fmt: skip
    for write in writes:
        with pytest.raises(kp.FailedPreconditionError, match=r"'weights'.*read-only"):
            write()
    assert (array == 2).all()
    mgr.sequence().record(kp.OpCopy([t, other])).eval()  # reading is fine
    assert (other.read() == 2).all()
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert not np.from_dlpack(t).flags.writeable


def test_shaders_that_write_immutable_memory_are_refused(importing):
    array = kp.aligned_zeros(16)
    fixed = importing.from_host(array, copy="never", semantics=S.IMMUTABLE_ZERO_COPY)
    two = importing.tensor(np.full(16, 2))
    with pytest.raises(kp.FailedPreconditionError, match="read-only"):
        importing.sequence().record(kp.OpMult([two, two, fixed])).eval()
    assert not array.any()
    out = importing.zeros(16)
    importing.sequence().record(kp.OpSyncDevice([two])).record(kp.OpMult([fixed, two, out])).eval()
    # The refused recording left nothing behind that would keep it from working.
    assert not out.read().any()


def test_arguments_are_checked(mgr):
    array = np.zeros(4, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="copy is 'maybe'"):
        mgr.from_host(array, copy="maybe")
    with pytest.raises(kp.InvalidArgumentError, match="semantics"):
        mgr.from_host(array, semantics=9)
    with pytest.raises(kp.ArgumentTypeError, match="on_done"):
        mgr.from_host(array, on_done=5)
    with pytest.raises(kp.ArgumentTypeError, match="from_dlpack"):
        mgr.from_host([1, 2, 3])
    with pytest.raises(kp.InvalidArgumentError, match="no element"):
        mgr.from_host(np.zeros((0, 3)), copy="never")
    with pytest.raises(kp.ArgumentTypeError):
        mgr.from_host(np.array([None]))
    mgr.destroy()
    for copy in ("auto", "always"):
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            mgr.from_host(kp.aligned_zeros(4), copy=copy)


# -- without the extension, and when the driver refuses ------------------------------------------------------


def check_without_the_extension():
    calls = []
    with kp.Manager() as mgr:
        assert mgr.host_import_alignment is None
        assert "VK_EXT_external_memory_host" not in mgr.enabled_extensions
        array = kp.aligned_zeros(100)
        with pytest.raises(kp.UnimplementedError, match="VK_EXT_external_memory_host"):
            mgr.from_host(array, copy="never", on_done=lambda: calls.append("never"))
        for semantics in (None, *S):
            t = mgr.from_host(array, semantics=semantics, on_done=lambda: calls.append("done"))
            assert t.read().tolist() == [0] * 100
            t.write(np.ones(100))
            assert not array.any()
        assert calls == ["done"] * 5
        with pytest.raises(kp.ExchangeError, match="copy=False"):
            kp.from_dlpack(array, mgr, copy=False)
        assert kp.from_dlpack(array, mgr).size() == 100


@pytest.mark.own_driver
def test_without_the_extension():
    run_child(check_without_the_extension, driver="null", config="noext=VK_EXT_external_memory_host")


def check_refusals():
    control = null_control()
    with kp.Manager() as mgr:
        for entry in ("vkAllocateMemory", "vkGetMemoryHostPointerPropertiesEXT"):
            for result, error in ((-1000072003, kp.UnimplementedError), (-2, kp.OutOfMemoryError)):
                calls = []
                array = kp.aligned_zeros(1 << 20)
                before = control.live()
                control.fail(entry, 1, result)
                with pytest.raises(error) as caught:
                    mgr.from_host(array, copy="never", on_done=lambda: calls.append(1))  # noqa: B023
                assert caught.value.vk_result == result
                assert control.live() == before and calls == []
                control.fail(entry, 1, result)
                t = mgr.from_host(array, on_done=lambda: calls.append(1))  # noqa: B023
                assert calls == [1] and t.data().ctypes.data != array.ctypes.data
                control.clear()
                shared = mgr.from_host(array, copy="never", on_done=lambda: calls.append(2))  # noqa: B023
                assert shared.data().ctypes.data == array.ctypes.data
                shared.destroy()
                assert calls == [1, 2]
        del t, shared
        # Freed before the array, and before the device.
        kept = mgr.from_host(kp.aligned_zeros(100), copy="never").data()
    assert control.live("VkDeviceMemory") == 1 and not kept.any()
    del kept, caught
    gc.collect()
    assert control.live("VkDeviceMemory") == 0 and control.violations() == []


@pytest.mark.own_driver
def test_refusals_by_the_driver():
    run_child(check_refusals, driver="null")


def check_noncoherent():
    with kp.Manager() as mgr:
        assert mgr.host_import_alignment is not None
        with pytest.raises(kp.UnimplementedError, match="memory type"):
            mgr.from_host(kp.aligned_zeros(8), copy="never")
        assert mgr.from_host(kp.aligned_zeros(8)).read().tolist() == [0] * 8


@pytest.mark.own_driver
def test_no_coherent_memory_to_import_as():
    run_child(check_noncoherent, driver="null", config="memory=noncoherent")


def check_at_exit():
    global left_over
    mgr = kp.Manager()
    array = kp.aligned_zeros(1 << 16)
    t = mgr.from_host(array, on_done=lambda: None)
    sequence = mgr.sequence().record(kp.OpFill([t], 1.0))
    sequence.eval_async()
    left_over = [t, t.data(), memoryview(t), np.from_dlpack(t), sequence]


def test_interpreter_exit_with_imported_memory():
    run_child(check_at_exit)
