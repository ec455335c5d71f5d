"""Mapping: the host at work in device memory, against what the device then holds."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.threads import on_threads


def counting(*shape):
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@pytest.mark.capability(
    "I9 S7-S10 S22", "access in place, with read, write and discard", "Tensor.map", "guides/tensors"
)
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


@pytest.mark.capability("I18 S11", "whether memory can be mapped", "Tensor.mappable", "guides/tensors")
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


# -- the array ends with the mapping -------------------------------------------------------------------------


@pytest.mark.capability("S12", "a mapping ends with its block", "kp.Mapping", "reference/memory")
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
        assert view.size == 0 and "ended" in repr(view)
        for use in (
            lambda v: v[0],
            np.sum,
            lambda v: v + 1,
            list,
            len,
            np.copy,
            lambda v: v.tolist(),
            lambda v: v.sum(),
            np.sort,
        ):
            with pytest.raises(kp.FailedPreconditionError, match="Mapping that has ended"):
                use(view)
        with pytest.raises(kp.FailedPreconditionError, match="ended"):
            view[...] = 1
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
        mapping = t.map(write=True)
        array = mapping.array
        del mapping
        gc.collect()
    with pytest.raises(kp.FailedPreconditionError, match="ended"):
        array[0] = 1
    with t.map(write=True):
        pass


def test_an_array_of_a_mapping_that_nothing_holds_is_an_error(mgr):
    t = mgr.tensor_t(counting(4), "host")
    kept = t.map(read=True)

    def given():
        return kept

    def keeps():
        mapping = t.map(read=True)
        return mapping.array, mapping

    for _ in range(40):  # more often than Python takes to specialize the code
        with pytest.raises(kp.FailedPreconditionError, match=r"t\.map\(\.\.\.\)\.array.*with t\.map"):
            np.asarray(t.map(read=True).array)
        with pytest.raises(kp.FailedPreconditionError, match="ends with the expression"):
            t.map(
                read=True,
            ).array.sum()
        assert given().array.sum() == kept.array.sum() == 6
        array, mapping = keeps()
        assert array.sum() == 6
        mapping.close()
        with (mapping := t.map(read=True)):
            assert mapping.array[1] == 1
    with pytest.raises(AttributeError, match="cannot be replaced"):
        kept.array = None
    kept.close()
    with t.map(write=True):  # nothing is left mapped
        pass


def test_many_views_leave_nothing(mgr):
    t = mgr.tensor_t(counting(64), "host")
    with t.map(read=True) as array:
        assert sum(int(array[i : i + 1][0]) for i in range(64)) == 64 * 63 // 2
        gone = weakref.ref(array[3:5])
        gc.collect()
        assert gone() is None


# -- order with the device's work ----------------------------------------------------------------------------


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


@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_only_what_overlaps_is_held_back(mgr, memory_type):
    t, out = mgr.tensor_t(counting(256), memory_type), mgr.zeros(64, np.int32)
    t.name = "field"
    t.write(counting(256))
    reads, writes = (
        mgr.sequence().record(op) for op in (kp.OpCopy([t[64:128], out]), kp.OpFill([t[192:]], 5))
    )
    both = mgr.sequence().record(kp.OpFill([t[0:64]], 6)).record(kp.OpFill([t[192:]], 7))
    for seq in (reads, writes):
        seq.eval()
    with t[0:64].map(write=True) as array:
        array[:] = 1
        reads.eval()
        writes.eval()
        t[64:128].fill(4)
        mgr.sequence().record(kp.OpFill([t[128:192]], 8)).eval()
        with pytest.raises(
            kp.FailedPreconditionError,
            match=r"'field' is mapped to write \(bytes 0 to 256\): work that uses these bytes",
        ):
            both.eval()
        with pytest.raises(kp.FailedPreconditionError, match="mapped to write"):
            t[63:64].fill(1)
    both.eval()
    wanted = np.concatenate([np.full(64, n) for n in (6, 4, 8, 7)])
    np.testing.assert_array_equal(t.read(), wanted)
    assert out.read().tolist() == list(range(64, 128))
    reads.eval()
    assert set(out.read()) == {4}


@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_what_only_reads_goes_on_while_the_host_reads(mgr, memory_type):
    t = mgr.tensor_t(counting(8), memory_type)
    t.write(counting(8) + 1)
    down, up = (mgr.sequence().record(op([t])) for op in (kp.OpSyncLocal, kp.OpSyncDevice))
    with t.map(read=True) as array:
        down.eval()  # it writes the host copy, not what is mapped
        if memory_type is kp.MemoryTypes.device:
            assert t.data().tolist() == array.tolist()
            with pytest.raises(kp.FailedPreconditionError, match="mapped to read: work that writes it"):
                up.eval()
        else:
            up.eval()  # nothing moves


def check_atoms():
    with kp.Manager() as mgr:
        t = mgr.tensor_t(counting(64), "host")
        t.name = "field"
        beside, apart = (mgr.sequence().record(kp.OpFill([t[a : a + 4]], 9)) for a in (4, 32))
        with t[0:4].map(write=True) as array:
            array[:] = 5
            apart.eval()
            try:
                beside.eval()
            except kp.FailedPreconditionError as error:
                assert "bytes 0 to 64, which this memory moves as a whole (nonCoherentAtomSize)" in str(
                    error
                ), error
            else:
                raise AssertionError("memory that is not coherent moves whole atoms")
        beside.eval()
        wanted = counting(64)
        wanted[:4], wanted[4:8], wanted[32:36] = 5, 9, 9
        np.testing.assert_array_equal(t.read(), wanted)
    assert not null_control().violations()


@pytest.mark.own_driver
def test_memory_that_moves_in_atoms_is_held_back_in_atoms():
    run_child(check_atoms, driver="null", config="memory=noncoherent")


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
    evaluated = []

    def evaluate():
        seq = mgr.sequence().record(kp.OpFill([t[128:]], 1))
        for _ in range(200):
            try:
                seq.eval()
                evaluated.append(1)
            except kp.FailedPreconditionError as error:
                assert "mapped" in str(error)

    def count():
        for _ in range(200):
            with t.map(read=True, write=True) as array:
                array[0] += 1

    on_threads(lambda run: run(), [evaluate, count])
    assert t.read()[0] == 200 and (not evaluated or t.read()[200] == 1)


# -- memory that only flushes carry over, and memory that the host does not see ------------------------------


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


def test_numpy_copies_a_mapping(mgr):
    t = mgr.tensor([1, 2, 3])
    np.testing.assert_array_equal(np.array(t.map(read=True)), [1, 2, 3])
    with pytest.raises(ValueError, match="must be a copy"):
        t.map(read=True).__array__(copy=False)
