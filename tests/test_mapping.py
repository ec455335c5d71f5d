"""Mapping: the host at work in device memory, against what the device then holds."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.child import run_child
from tests.drivers import null_control


def counting(*shape):
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_reading_and_writing(mgr, memory_type):
    t = mgr.tensor_t(counting(3, 4), memory_type)
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    with t.map(read=True) as array:
        assert array.shape == (3, 4) and array.dtype == np.int32 and not array.flags.writeable
        np.testing.assert_array_equal(array, counting(3, 4))
    with t.map(read=True, write=True) as array:
        array += 10
        array[1, 2:] = 0
    wanted = counting(3, 4) + 10
    wanted[1, 2:] = 0
    np.testing.assert_array_equal(t.read(), wanted)
    with t.map(write=True) as array:
        array[0, 0] = -1  # what is not written stays
    wanted[0, 0] = -1
    np.testing.assert_array_equal(t.read(), wanted)
    with t.map(discard=True) as array:
        array[:] = 5
    assert set(t.read().reshape(-1)) == {5}


def test_host_visible_memory_is_mapped_in_place(mgr):
    t = mgr.tensor_t(counting(8), "deviceAndHost")
    assert t.mappable
    with t.map(write=True, staging=False) as array:
        array[3] = 77
        assert t.data()[3] == 77


def test_a_part(mgr):
    t = mgr.tensor_t(counting(4, 4), "host")
    with t[1:3].map(read=True, write=True) as array:
        assert array.shape == (2, 4)
        array[0] = array[1]
    assert t.read()[1].tolist() == [8, 9, 10, 11]


def test_a_mapping_says_what_for(mgr):
    t = mgr.zeros(4)
    with pytest.raises(kp.InvalidArgumentError, match=r"map\(read=True\)"):
        t.map()
    with pytest.raises(TypeError):
        t.map(True)
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        t.map(read=True)


# -- the array ends with the mapping ----------------------------------------------------------------------------------------------


def test_views_end_with_the_mapping(mgr):
    t = mgr.tensor_t(counting(4, 4), "deviceAndHost")
    mapping = t.map(read=True, write=True)
    array = mapping.array
    views = [array[1], array.T, array.reshape(-1)[3:], array.view(np.float32), array[1][2:], array[...]]
    results = [array + 1, array * array, np.sqrt(array), array.copy(), array[[0, 1]], array.sum(axis=0)]
    assert all(
        type(each) is np.ndarray for each in results if each is not results[3] and each is not results[4]
    )
    kept = [np.array(each) for each in results]
    assert mapping.valid
    mapping.close()
    mapping.close()
    assert not mapping.valid
    with pytest.raises(kp.FailedPreconditionError, match="closed"):
        _ = mapping.array
    for view in (array, *views):
        assert view.size == 0
        with pytest.raises(IndexError):
            view[0]
    for result, wanted in zip(results, kept, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_views_that_escape_look_at_memory_that_stays(mgr):
    t = mgr.tensor_t(counting(1 << 20), "deviceAndHost")
    with t.map(read=True) as array:
        plain, buffer = np.asarray(array), memoryview(array)
        piece = plain[5:10]
    t.destroy()
    del t, array, plain
    gc.collect()
    assert piece.tolist() == [5, 6, 7, 8, 9] and buffer[7] == 7


def test_a_mapped_array_pickles_as_an_array(mgr):
    t = mgr.tensor_t(counting(4), "host")
    with t.map(read=True) as array:
        text = pickle.dumps(array)
    loaded = pickle.loads(text)
    assert type(loaded) is np.ndarray and loaded.tolist() == [0, 1, 2, 3]


def test_the_memory_stays_while_it_is_mapped(mgr):
    t = mgr.tensor_t(counting(1 << 20), "storage")
    mapping = t.map(read=True, write=True)
    array = mapping.array
    t.destroy()
    array[:] += 1
    assert array[7] == 8
    mapping.close()
    assert array.size == 0


def test_after_the_manager_is_destroyed(make_manager):
    mgr = make_manager()
    mapping = mgr.tensor_t(counting(16), "deviceAndHost").map(read=True, write=True)
    mgr.destroy()
    mapping.array[:] = 3
    assert mapping.array.tolist() == [3] * 16
    mapping.close()


def test_a_mapping_that_is_dropped_warns_and_lets_go(mgr):
    t = mgr.tensor_t(counting(4), "host")
    with pytest.warns(ResourceWarning, match="dropped while open"):
        array = t.map(write=True).array
        gc.collect()
    assert array.size == 0
    with t.map(write=True):
        pass


def test_many_views_leave_nothing(mgr):
    t = mgr.tensor_t(counting(64), "host")
    with t.map(read=True) as array:
        assert sum(int(array[i : i + 1][0]) for i in range(64)) == 64 * 63 // 2
        gone = weakref.ref(array[3:5])
        gc.collect()
        assert gone() is None


# -- order with the device's work ---------------------------------------------------------------------------------------------------


def test_what_would_get_in_its_way_is_held_back(mgr):
    t, other = mgr.tensor_t(counting(8), "deviceAndHost"), mgr.tensor_t(counting(8))
    t.name = "field"
    writes = mgr.sequence().record(kp.OpFill([t], 1))
    reads = mgr.sequence().record(kp.OpCopy([t, other]))
    apart = mgr.sequence().record(kp.OpFill([other], 2))
    for seq in (writes, reads, apart):
        seq.eval()
    with t.map(read=True) as array:
        reads.eval()
        apart.eval()
        with pytest.raises(kp.FailedPreconditionError, match=r"'field' is mapped to read.*Close the mapping"):
            writes.eval()
        with pytest.raises(kp.FailedPreconditionError, match="mapped to read"):
            t.fill(4)
        assert array[0] == 1
    with t.map(write=True) as array:
        array[:] = 9
        apart.eval()
        for seq in (reads, writes, mgr.sequence().record(kp.OpCopy([t, other]))):
            with pytest.raises(kp.FailedPreconditionError, match="'field' is mapped to write"):
                seq.eval()
    reads.eval()
    assert set(other.read()) == {9}
    writes.eval()
    assert set(t.read()) == {1}


def test_recordings_that_change_meanwhile(mgr):
    t, other = mgr.tensor_t(counting(8), "host"), mgr.tensor_t(counting(8), "host")
    seq = mgr.sequence().record(kp.OpFill([t], 1))
    seq.eval()
    first, second = t.map(write=True), other.map(read=True)
    seq.record(kp.OpFill([other], 2))
    with pytest.raises(kp.FailedPreconditionError, match="mapped"):
        seq.eval()
    first.close()
    with pytest.raises(kp.FailedPreconditionError, match="mapped"):
        seq.eval()
    second.close()
    seq.eval()
    assert set(other.read()) == {2}
    for _ in range(3):
        with t.map(write=True):
            seq.clear()
            seq.record(kp.OpFill([t], 5))
            with pytest.raises(kp.FailedPreconditionError):
                seq.eval()
        seq.eval()
        assert set(t.read()) == {5}


def test_mappings_of_one_tensor(mgr):
    t = mgr.tensor_t(counting(16), "host")
    with t.map(read=True) as one, t.map(read=True) as two:
        assert one[5] == two[5] == 5
        with pytest.raises(kp.FailedPreconditionError, match="mapped to read already"):
            t.map(write=True)
    with t[0:8].map(write=True) as low, t[8:].map(write=True) as high:
        low[:], high[:] = 1, 2
        with pytest.raises(kp.FailedPreconditionError, match="mapped to write already"):
            t[4:12].map(read=True)
    assert t.read().tolist() == [1] * 8 + [2] * 8


@pytest.mark.parametrize("options", [{}, {"force_staging": True}, {"force_non_coherent": True}])
def test_the_hosts_other_ways_are_held_back(make_manager, options):
    """What a mapping is to bring to the device at its end would silently replace what came in between."""
    mgr = make_manager(**options)
    t, other = mgr.full(16, 1, np.int32), mgr.full(8, 5, np.int32)
    t.name = "field"
    with t[0:8].map(write=True) as array:
        array[:] = 9
        for write in (t.write, t.copy_from):
            with pytest.raises(
                kp.FailedPreconditionError, match=r"'field' is mapped to write.*cannot be written"
            ):
                write(counting(16))
        with pytest.raises(kp.FailedPreconditionError, match=r"mapped to write.*cannot be read"):
            t.read()
        with pytest.raises(kp.FailedPreconditionError, match=r"mapped to write.*cannot be read"):
            t.read(region=7)
        t.write(np.full(8, 3), region=np.s_[8:16])
        assert t[8:].read().tolist() == [3] * 8
    assert t.read().tolist() == [9] * 8 + [3] * 8
    with t[0:8].map(read=True) as array:
        with pytest.raises(kp.FailedPreconditionError, match=r"'field' is mapped to read.*cannot be written"):
            t.write(counting(8), region=np.s_[0:8])
        assert t.read()[0] == array[0] == 9
    t[0:8].write(other.read())
    assert t.read().tolist() == [5] * 8 + [3] * 8


def test_a_mapping_waits_for_pending_work(mgr):
    t = mgr.zeros(1 << 22, np.uint32, "deviceAndHost")
    seq = mgr.sequence()
    for value in range(1, 9):
        seq.record(kp.OpFill([t], value))
    seq.eval()
    for _ in range(5):
        seq.eval_async()
        with t.map(read=True) as array:
            assert array[0] == array[-1] == 8
        seq.eval_await()


def test_threads_map_and_evaluate(mgr):
    """What is refused is refused with the right error; nothing is lost or locked up."""
    t = mgr.tensor_t(np.zeros(256, np.int64), "deviceAndHost")
    errors, evaluated = [], []

    def evaluate():
        seq = mgr.sequence().record(kp.OpFill([t[128:]], 1))
        for _ in range(200):
            try:
                seq.eval()
                evaluated.append(1)
            except kp.FailedPreconditionError as error:
                if "mapped" not in str(error):
                    errors.append(error)

    def count():
        for _ in range(200):
            with t.map(read=True, write=True) as array:
                array[0] += 1

    threads = [threading.Thread(target=evaluate), threading.Thread(target=count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and t.read()[0] == 200 and (not evaluated or t.read()[200] == 1)


# -- memory that only flushes carry over, and memory that the host does not see ------------------------------------------------------


def check_discrete():
    with kp.Manager() as mgr:
        for kind in ("device", "storage", "host", "deviceAndHost"):
            t = mgr.tensor_t(counting(1000), kind)
            mgr.sequence().eval(kp.OpSyncDevice([t]))
            copy = mgr.zeros(1000, np.int32, "storage")
            if not t.mappable:
                try:
                    t.map(read=True, staging=False)
                except kp.FailedPreconditionError as error:
                    assert "staging=True" in str(error)
                else:
                    raise AssertionError("a mapping without staging must be refused")
            with t[100:200].map(read=True, write=True) as array:
                assert array.tolist() == list(range(100, 200)), kind
                array += 1000
            copy.copy_from(t)
            wanted = counting(1000)
            wanted[100:200] += 1000
            np.testing.assert_array_equal(copy.read(), wanted)
            t[0:500].fill(7)
            with t.map(read=True) as array:
                assert array[:500].tolist() == [7] * 500 and array[500] == 500, kind
            with t.map(discard=True) as array:
                array[:] = 3
            copy.copy_from(t)
            assert set(copy.read()) == {3}, kind
        assert any(not mgr.zeros(1, memory_type=kind).mappable for kind in ("device", "storage"))
    assert not null_control().violations()


@pytest.mark.own_driver
def test_discrete_memory():
    run_child(check_discrete, driver="null", config="memory=discrete")
