"""mgr.memory, limits, refusals and debug modes of device memory."""

from __future__ import annotations

import ctypes
import logging

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.sampling import sampled

MIB = 2**20
SLOW = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Total { uint total[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, x = i;
    for (uint turn = 0; turn < 1000; ++turn) x = x * 1664525u + 1013904223u;
    if (i == 0) total[0] = x;  // so that nothing is left out
    if (i == 1) total[1] += 1;
}
"""
LIMIT_TEXT = "Out of memory under the limit"


# -- what mgr.memory says ------------------------------------------------------------------------------------


def test_heaps_are_the_devices(mgr):
    heaps = mgr.memory.heaps
    described = mgr.get_device_properties()["memory_heaps"]
    assert [(h.number, h.size, h.device_local) for h in heaps] == [
        (i, d["size"], d["device_local"]) for i, d in enumerate(described)
    ]
    for heap in heaps:
        assert heap.used <= heap.reserved and heap.used <= heap.peak
        assert heap.largest_free <= heap.reserved - heap.used
        assert heap.budget is None or heap.budget > 0


@pytest.mark.capability(
    "I13 I59",
    "memory in use, reserved and at its peak, with its holders",
    "Manager.memory",
    "concepts/memory_types",
)
def test_used_reserved_and_peak_follow_tensors(mgr):
    memory = mgr.memory
    before = memory.used
    t = mgr.empty(8 * MIB, np.uint8, "storage")
    assert memory.used >= before + 8 * MIB and memory.reserved >= memory.used
    at_most = memory.peak
    assert at_most >= before + 8 * MIB
    t.destroy()
    assert memory.used == before and memory.peak == at_most
    memory.reset_peak()
    assert memory.peak == memory.used


def child_beyond_32_bits():
    size = 3 * 2**29
    with kp.Manager() as mgr:  # memory that nobody touches costs the machine none
        held = [mgr.empty(size, np.uint8, "storage") for _ in range(4)]
        heap = mgr.memory.heaps[0]
        return len(held) * size, heap.used, heap.peak, mgr.memory.labels()["(unnamed tensor)"].bytes


@pytest.mark.own_driver
def test_sizes_beyond_32_bits_add_up():
    size, *found = run_child(child_beyond_32_bits, driver="null", config="memory=discrete")
    assert size > 2**32 and found == [size] * 3


def test_labels_and_largest(mgr):
    # Each of these has a host copy, which counts.
    small = [mgr.tensor(np.zeros(1000)) for _ in range(3)]
    for t in small:
        t.name = "layer"
    large = mgr.empty(1000_000, np.uint8, "storage")
    large.name = "weights"
    picture = mgr.image(np.zeros((8, 8), np.float32), memory_type="storage")
    labels = mgr.memory.labels()
    assert next(iter(labels)) == "weights" and labels["weights"] == (1000_000, 1)
    assert labels["layer"].objects == 3 and labels["layer"].bytes == 3 * 2 * 4000
    assert labels["(unnamed image)"] == (256, 1)
    assert mgr.memory.largest(2) == [("weights", 1000_000), ("layer", 8000)]
    assert mgr.memory.largest(0) == []
    small[0].destroy()
    assert mgr.memory.labels()["layer"].objects == 2
    assert picture.is_init()


def test_readable_table(mgr):
    t = mgr.tensor(np.zeros(1000))
    t.name = "<weights>"
    text = str(mgr.memory)
    assert text.splitlines()[0].split()[:3] == ["heap", "kind", "size"] and "<weights>" in text
    assert "&lt;weights&gt;" in mgr.memory._repr_html_() and "<weights>" not in mgr.memory._repr_html_()
    assert "used" in repr(mgr.memory)
    for i in range(20):
        small = mgr.tensor([i])
        small.name = f"t{i}"
    assert len(str(mgr.memory).splitlines()) < 30


@pytest.mark.parametrize("mebibytes", [4.5, 5, 9, 17, 24.1, 31, 32, 33, 100])
def test_a_lone_large_tensor_takes_what_it_needs(make_manager, mebibytes):
    mgr = make_manager()
    count = int(mebibytes * MIB)
    t = mgr.empty(count, np.uint8, "storage")
    # On a CPU driver, it begins at the boundary of a huge page.
    spare = MIB // 16 + (2 * MIB if mgr.get_device_properties()["type"] == "cpu" else 0)
    assert count <= mgr.memory.reserved <= count + spare
    t.write(np.full(count, 7, np.uint8))
    assert t.read(region=np.s_[-3:]).tolist() == [7] * 3
    # Dropped and made again, it needs no memory of the driver, if it does not stand alone.
    if mebibytes <= 32:
        mgr.memory.trim()
        reserved = mgr.memory.reserved
        for _ in range(3):
            t.destroy()
            t = mgr.empty(count, np.uint8, "storage")
            assert mgr.memory.reserved == reserved


def lone_tensors() -> list[int]:
    taken = []
    for mebibytes in (1, 3, 5, 9, 17, 33):
        mgr = kp.Manager()
        made = mgr.empty(mebibytes * MIB, np.uint8, "storage")
        taken.append(mgr.memory.reserved // MIB)
        del made
        mgr.destroy()
    assert not null_control().violations()
    return taken


def test_a_lone_tensor_on_a_gpu_takes_its_size():
    assert run_child(lone_tensors, driver="null") == [1, 4, 5, 9, 17, 33]


def in_odd_blocks() -> None:
    """Blocks that begin inside their memory serve requests of other alignments and sizes, too."""
    mgr = kp.Manager()
    random = np.random.default_rng(3)
    made = {}
    for i in range(300):
        size = int(
            random.choice(
                [100, 5000, MIB // 3, 3 * MIB, 9 * MIB, 17 * MIB], p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]
            )
        )
        t = mgr.empty(size, np.uint8, str(random.choice(["storage", "device", "host"])))
        t.write(np.full(size, i % 251, np.uint8))
        made[i] = t
        for old in [each for each in made if random.random() < 0.1]:
            t = made.pop(old)
            assert (t.read() == old % 251).all()
            t.destroy()
    for i, t in made.items():
        assert (t.read() == i % 251).all()
    mgr.destroy()


@pytest.mark.capability(
    "K41", "tensors share blocks of device memory", "Manager.memory", "concepts/memory_types"
)
def test_tensors_in_blocks_of_any_size(make_manager):
    in_odd_blocks()


@pytest.mark.capability(
    "I14", "empty memory given back to the driver", "DeviceMemory.trim", "concepts/memory_types"
)
def test_trim_gives_back_what_is_empty(mgr):
    keep = mgr.tensor(np.arange(10.0))
    mgr.empty(100_000, np.uint8, "storage").destroy()
    mgr.memory.trim()
    assert mgr.memory.trim() == 0  # nothing is left to give
    reserved = mgr.memory.reserved
    made = [mgr.empty(300_000, np.uint8, "storage") for _ in range(20)]
    for t in made:
        t.destroy()
    grown = mgr.memory.reserved
    assert grown > reserved
    assert mgr.memory.trim() == grown - mgr.memory.reserved > 0
    assert mgr.memory.reserved == reserved
    assert keep.data().tolist() == list(range(10))
    keep.write(np.ones(10))
    assert keep.read().tolist() == [1.0] * 10  # the staging ring comes back


def test_memory_after_destroy(make_manager):
    mgr = make_manager()
    view = mgr.tensor(np.arange(1000.0)).data()
    mgr.destroy()
    assert mgr.memory.labels() == {} and mgr.memory.trim() == 0
    assert view[999] == 999 and str(mgr.memory)


# -- limits --------------------------------------------------------------------------------------------------


def fill(mgr, size=MIB - 4096):
    held = []
    while True:
        try:
            held.append(mgr.empty(size, np.uint8, "storage"))
        except kp.OutOfMemoryError as error:
            assert LIMIT_TEXT in str(error) and error.vk_result == 0
            return held


def test_a_limited_heap_fills_the_same_a_hundred_times(make_manager):
    mgr = make_manager(memory_limit=32 * MIB)
    counts = set()
    for _ in range(100):
        held = fill(mgr)
        assert mgr.memory.reserved <= 32 * MIB
        counts.add(len(held))
        for t in held:
            t.destroy()
    assert len(counts) == 1 and counts.pop() >= 28
    assert mgr.memory.used == 0 and mgr.memory.trim() <= 32 * MIB and mgr.memory.reserved == 0


def test_what_is_empty_makes_room_under_a_limit(make_manager):
    mgr = make_manager(memory_limit=16 * MIB)
    for t in fill(mgr, 200_000):
        t.destroy()
    # Blocks of small tensors and a tensor's own block compete for the same bytes.
    assert mgr.empty(15 * MIB, np.uint8, "storage").is_init()


@pytest.mark.sampled
def test_tensors_of_random_sizes_leave_a_limit_usable(make_manager):
    """What is free in pieces does not help large tensors, so blocks are small beside the limit."""
    mgr, rng, kept = make_manager(memory_limit=600 * MIB), np.random.default_rng(1), []
    for _ in range(sampled(8, 300)):
        for _ in range(4):
            t = mgr.empty(int(10 ** rng.uniform(4, 7.6)), np.uint8, "storage")
            if rng.random() < 0.5:
                kept.append(t)
            del t
        while sum(t.nbytes for t in kept) > 200 * MIB:
            kept.pop(int(rng.integers(len(kept))))
        large = [mgr.empty(80 * MIB, np.uint8, "storage") for _ in range(3)]
        del large


@pytest.mark.parametrize("limit", [5 * MIB, 16 * MIB, 64 * MIB])
@pytest.mark.parametrize("parts", [1, 3, 7, 16, 33])
def test_what_fits_by_the_numbers_fits_under_a_limit(make_manager, limit, parts):
    """Blocks begin where their tensors do, and are small beside the limit."""
    mgr = make_manager(memory_limit=limit)
    small = mgr.empty(1000, np.uint8, "storage")
    each = (limit - limit // 32) // parts // 256 * 256
    held = [mgr.empty(each, np.uint8, "storage") for _ in range(parts)]
    assert mgr.memory.reserved <= limit and all(t.is_init() for t in [small, *held])


def test_refusal_names_the_largest_and_leaves_all_working(make_manager):
    mgr = make_manager(memory_limit=16 * MIB)
    t = mgr.empty(9 * MIB, np.uint8, "storage")
    t.name = "activations"
    kept = mgr.tensor(np.arange(100.0))
    alive = kp.alive()
    for _ in range(3):
        with pytest.raises(kp.OutOfMemoryError) as caught:
            mgr.empty(12 * MIB, np.uint8, "storage")
        text = str(caught.value)
        assert "needs 12.0 MiB" in text and "tensor 'activations' 9.0 MiB" in text
        assert "memory_limit" in text and "heap 0" in text
    del caught
    assert kp.alive() == alive
    kept.write(np.ones(100))
    assert kept.read().sum() == 100
    t.destroy()
    assert mgr.empty(12 * MIB, np.uint8, "storage").is_init()


def test_host_copies_keep_to_the_limit(make_manager):
    mgr = make_manager(memory_limit=20 * MIB)
    t = mgr.empty(11 * MIB, np.uint8)  # with 4 MiB each for writing and for reading through the staging ring
    with pytest.raises(kp.OutOfMemoryError, match="host copy"):
        t.data()
    t.write(np.full(11 * MIB, 7, np.uint8))
    assert t.read()[-1] == 7


@pytest.mark.parametrize("kind", ["tensors", "images", "host copies", "shared"])
def test_memory_of_work_in_flight_is_waited_for(make_manager, kind):
    """Dropped objects are free after the work that uses them: more of it than fits is submitted."""
    mgr = make_manager(memory_limit=32 * MIB)
    slow = mgr.kernel(SLOW)

    def one():
        if kind == "images":
            return mgr.image_empty((1024, 1024), "rgba8")
        if kind == "shared":
            return mgr.shared(MIB, np.uint32)
        t = mgr.empty(MIB, np.float32, "device" if kind == "host copies" else "storage")
        if kind == "host copies":
            t.data()[:] = 1
        return t

    total = mgr.zeros(64, np.uint32, "storage")
    for _ in range(20):
        made = one()
        if kind == "images":
            slow.submit(total, groups=500)
            mgr.sequence().record(kp.OpSyncDevice([made])).eval_async()
        else:
            slow.submit(total, uses=[made], groups=500)
        del made
    assert total.read()[1] == 20


# -- options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8 MiB", 8 * MIB), ("8388608", 8 * MIB), ("0.5GiB", 512 * MIB), ("3 MB", 3_000_000),
        (9 * MIB, 9 * MIB),
    ],
)  # fmt: skip
def test_sizes_as_text(make_manager, monkeypatch, text, size):
    monkeypatch.setenv("KOMPUTE_PY_MEMORY_LIMIT", str(text))
    for mgr in (make_manager(), make_manager(memory_limit=text)):
        held = fill(mgr)
        assert size * 0.6 < mgr.memory.reserved <= size
        del held


def test_keyword_beats_environment(make_manager, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_MEMORY_LIMIT", "1 MiB")
    mgr = make_manager(memory_limit=0)
    assert mgr.empty(8 * MIB, np.uint8, "storage").is_init()


@pytest.mark.parametrize("wrong", ["much", "12 parsecs", -1, "", "nan MiB", 2**63])
def test_sizes_that_make_no_sense(wrong):
    with pytest.raises(kp.InvalidArgumentError, match="memory_limit"):
        kp.Manager(memory_limit=wrong)


@pytest.mark.parametrize("wrong", [1.5, True, [1]])
def test_sizes_of_a_wrong_type(wrong):
    with pytest.raises(kp.ArgumentTypeError, match="memory_limit"):
        kp.Manager(memory_limit=wrong)


def test_block_size(make_manager):
    with pytest.raises(kp.InvalidArgumentError, match="1 MiB"):
        kp.Manager(memory_block_size=4096)
    mgr = make_manager(memory_block_size="2 MiB")
    held = [mgr.empty(500_000, np.uint8, "storage") for _ in range(40)]
    # A first block of 1 MiB, then blocks of 2 MiB with 4 tensors each.
    assert max(h.blocks for h in mgr.memory.heaps) >= 10 and len(held) == 40


# -- debug modes ---------------------------------------------------------------------------------------------


def overrun(t, at, count=4):
    """Writes past the memory of a tensor, as foreign code with its address would."""
    address = t.data().__array_interface__["data"][0]
    ctypes.memset(address + at, 0, count)


@pytest.fixture
def guarded(make_manager):
    return make_manager(memory_debug=True)


def test_guards_are_silent_for_what_stays_inside(guarded, messages):
    mgr = guarded
    for where in kp.MemoryTypes:
        for size in (1, 64, 1000, 5_000_000):
            t = mgr.empty(size, np.uint8, where)
            t.write(np.full(size, 3, np.uint8))
            assert t.read().tolist() == [3] * size if size < 2000 else t.read().min() == 3
    mgr.memory.check()
    image = mgr.image(np.ones((5, 7), np.float32))
    mgr.sequence().eval(kp.OpSyncDevice([image]))
    mgr.memory.check()
    assert image.read().sum() == 35
    mgr.destroy()
    assert messages == []


@pytest.mark.capability(
    "S52",
    "memory with guards, fill patterns and the paths of other devices",
    "DeviceMemory.check",
    "reference/devices",
)
@pytest.mark.parametrize("at", [1024, -4])
def test_an_overrun_is_found_by_check(guarded, at):
    t = guarded.tensor_t(np.zeros(1024, np.uint8), "host")
    t.name = "victim"
    overrun(t, at)
    with pytest.raises(
        kp.InternalError, match=r"tensor 'victim' \(1024 bytes\) was overrun: .*4 of"
    ) as caught:
        guarded.memory.check()
    del caught
    guarded.memory.check()  # once


@pytest.mark.parametrize("where", ["device", "host", "deviceAndHost"])
@pytest.mark.parametrize("size", [1, 40, 1000])
def test_the_first_word_behind_the_end_is_guarded(guarded, where, size):
    """Also where memory is handed out in larger steps: an index that is one too high is what happens most."""
    t = guarded.tensor_t(np.zeros(size, np.uint8), where)
    # A shader may write whole words of a tensor's buffer; a host copy ends with its last byte.
    end = size if where == "device" else -(-size // 4) * 4
    if guarded.config.force_non_coherent.value and end % 64:
        pytest.skip("between the end and the next atom stands no guard in memory that is not coherent")
    guarded.memory.check()
    overrun(t, end)
    with pytest.raises(kp.InternalError, match=r"was overrun: 0 of .* and 4 of"):
        guarded.memory.check()


def test_an_overrun_is_logged_on_release(guarded, caplog):
    t = guarded.tensor_t(np.zeros(1024, np.uint8))
    t.name = "victim"
    overrun(t, 1024)
    with caplog.at_level(logging.ERROR, "kompute_py"):
        t.destroy()
        guarded.synchronize()
    assert "host copy of tensor 'victim'" in caplog.text
    # The message counts as one of validation: take it, so that the fixture does not fail the test for it.
    logging.getLogger("kompute_py").handlers[-1].of_validation.clear()


def test_an_overrun_raises_when_strict(make_manager):
    mgr = make_manager(memory_debug=True, strict=True)
    t = mgr.tensor_t(np.zeros(1024, np.uint8), "host")
    overrun(t, 1024)
    del t
    with pytest.raises(kp.ValidationError, match="overrun"):
        mgr.synchronize()
    logging.getLogger("kompute_py").handlers[-1].of_validation.clear()


def test_released_memory_is_poisoned(guarded):
    keep = guarded.tensor_t(np.zeros(1024, np.uint8), "host")
    t = guarded.tensor_t(np.full(1024, 7, np.uint8), "host")
    address = t.data().__array_interface__["data"][0]
    t.destroy()  # the block stays: `keep` is in it
    assert ctypes.string_at(address, 1024) == b"\xdd" * 1024
    assert keep.read().sum() == 0


def test_without_the_option_there_is_nothing_to_check(mgr):
    t = mgr.tensor_t(np.zeros(1024, np.uint8), "host")
    mgr.memory.check()
    assert t.is_init()


def test_force_staging(make_manager, needs):
    mgr = make_manager(force_staging=True)
    t = mgr.tensor(np.arange(1000.0))
    t.write(np.ones(1000))
    assert t.read().sum() == 1000
    # Data moves by copies only: what is written to the host copy is not on the device until it is synced.
    t.data()[:] = 5
    assert t.read().sum() == 1000
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    assert t.read().sum() == 5000
    with pytest.raises(kp.ExchangeError):
        np.from_dlpack(mgr.empty(10, memory_type="storage"))


def test_force_non_coherent_runs_all_memory_types(make_manager):
    mgr = make_manager(force_non_coherent=True)
    for where in kp.MemoryTypes:
        t = mgr.tensor(np.arange(1000.0), where)
        out = mgr.zeros(1000, memory_type=where)
        mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpCopy([t, out])).eval()
        assert out.read().tolist() == list(range(1000))


# -- on the null driver: heaps that are full, calls that fail ------------------------------------------------


def child_falls_back_across_heaps():
    texts = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: texts.append(record.getMessage())
    logging.getLogger("kompute_py").addHandler(handler)
    with kp.Manager() as mgr:
        held = [mgr.empty(12 * MIB, np.uint8, "storage") for _ in range(12)]
        heaps = mgr.memory.heaps
        for t in held:
            t.write(np.full(12 * MIB, 9, np.uint8))
            assert t.read()[-1] == 9
        return [h.used for h in heaps], [h.budget for h in heaps], texts, mgr.memory.used


@pytest.mark.own_driver
def test_a_full_heap_hands_over_to_the_next_with_a_note():
    used, budget, texts, total = run_child(
        child_falls_back_across_heaps, driver="null", config="memory=discrete,heap_mib=64"
    )
    assert used[0] == 5 * 12 * MIB and sum(used) == 12 * 12 * MIB <= total
    assert budget[0] == 64 * MIB
    assert len(texts) == 1 and "heap 0 (64.0 MiB)" in texts[0]


def child_counts_driver_calls():
    with kp.Manager() as mgr:
        control = null_control()
        control.clear()
        held = [mgr.empty(1000, memory_type="storage") for _ in range(2000)]
        return (
            control.calls("vkGetPhysicalDeviceMemoryProperties2"),
            control.calls("vkAllocateMemory"),
            len(held),
        )


@pytest.mark.own_driver
def test_the_budget_is_asked_for_rarely():
    budget, allocations, _ = run_child(child_counts_driver_calls, driver="null", config="memory=discrete")
    assert budget <= allocations <= 10


def capacity(mgr):
    """How many tensors of 3 MiB fit on the device and the host together."""
    held = []
    with pytest.raises(kp.OutOfMemoryError):
        while True:
            held.append(mgr.empty(3 * MIB, np.uint8, "storage"))
    return len(held)


def child_refuses_at_every_allocation(result):
    control = null_control()
    data = np.arange(1000, dtype=np.float32)

    def work(mgr):
        made = [mgr.tensor(data, where) for where in kp.MemoryTypes]
        made += [mgr.empty(3 * MIB, np.uint8, where) for where in kp.MemoryTypes]
        image = mgr.image(data[:64].reshape(8, 8))
        made[4].data()[:] = 1  # its host copy
        mgr.sequence().eval(kp.OpSyncDevice([*made[:4], image]))
        assert [t.read().tolist() for t in made[:4]] == [data.tolist()] * 4
        return made

    with kp.Manager() as mgr:
        fits = capacity(mgr)
        mgr.memory.trim()
        control.clear()
        work(mgr)
        mgr.memory.trim()
        allocations = control.calls("vkAllocateMemory")
        refused = 0
        for nth in range(1, allocations + 1):
            alive = kp.alive()
            control.clear()
            for _ in range(
                64
            ):  # smaller blocks and other heaps are refused as well: each serves one call, in turn
                control.fail("vkAllocateMemory", nth, result)
            try:
                work(mgr)
            except kp.OutOfMemoryError as error:
                refused += 1
                assert "needs" in str(error) and "heap 0" in str(error), error
            control.clear()
            assert kp.alive() == alive
            mgr.memory.trim()  # the staging ring too
            assert mgr.memory.used == 0, str(mgr.memory)
            assert mgr.memory.reserved == 0 and control.live("VkDeviceMemory") == 0
            assert capacity(mgr) == fits
            mgr.memory.trim()
        assert control.violations() == []
        return allocations, refused, fits


@pytest.mark.own_driver
@pytest.mark.parametrize("memory", ["discrete", "unified"])
@pytest.mark.parametrize("result", [-1, -2])
def test_a_refusal_at_any_allocation_leaves_the_same_capacity(memory, result):
    allocations, refused, fits = run_child(
        child_refuses_at_every_allocation,
        result,
        driver="null",
        config=f"memory={memory},heap_mib=64,host_heap_mib=64",
    )
    # On the discrete device a block of another heap that has room survives some of them.
    assert allocations >= 6 and fits >= 16
    assert refused == allocations if memory == "unified" else refused >= allocations // 2


def child_refuses_for_good():
    with kp.Manager() as mgr:
        first = mgr.empty(20 * MIB, np.uint8, "storage")
        first.name = "weights"
        fits = capacity(mgr)
        texts = set()
        for _ in range(5):
            with pytest.raises(kp.OutOfMemoryError) as caught:
                mgr.empty(300 * MIB, np.uint8, "storage")
            texts.add(str(caught.value))
            assert caught.value.vk_result == -2
        del caught
        assert capacity(mgr) == fits
        return sorted(texts)


@pytest.mark.own_driver
def test_the_error_lists_heaps_budgets_and_largest():
    texts = run_child(
        child_refuses_for_good, driver="null", config="memory=discrete,heap_mib=64,host_heap_mib=64"
    )
    assert len(texts) == 1
    assert "a tensor needs 300.0 MiB" in texts[0] and "tensor 'weights' 20.0 MiB" in texts[0]
    assert "(budget 64.0 MiB)" in texts[0]


def capacity_after_a_transfer(transfer):
    """How many MiB of `storage` tensors a Manager with a limit of 32 MiB holds."""
    mgr = kp.Manager(memory_limit=32 << 20, memory_block_size=1 << 20)
    held = [mgr.empty(1 << 18, memory_type="storage")]
    if transfer:
        held[0].write(np.zeros(1 << 18, np.float32))  # through the staging ring, which then stays
    with pytest.raises(kp.OutOfMemoryError):
        for _ in range(64):
            held.append(mgr.empty(1 << 18, memory_type="storage"))
    return len(held)


@pytest.mark.own_driver
def test_the_staging_ring_goes_before_a_tensor_is_refused():
    config = "memory=discrete"
    without = run_child(capacity_after_a_transfer, False, driver="null", config=config)
    with_ring = run_child(capacity_after_a_transfer, True, driver="null", config=config)
    assert without == with_ring


@pytest.mark.capability(
    "S51", "limits of memory: in all, and kept while idle", "Manager.memory", "guides/options"
)
def test_idle_memory_has_a_bound(make_manager):
    def idle(**options):
        mgr = make_manager(validation=False, **options)
        for _ in range(2):
            kept = [mgr.zeros(1 << 20, memory_type="storage") for _ in range(12)]  # 48 MiB
            mgr.synchronize()
            del kept
        heaps = mgr.memory.heaps
        return sum(heap.reserved for heap in heaps) - sum(heap.used for heap in heaps), mgr

    usual, _ = idle()
    none, mgr = idle(memory_idle_limit=0)
    some, _ = idle(memory_idle_limit="4 MiB")
    assert usual >= 4 << 20 and mgr.config.memory_idle_limit.value == 0
    # What is in part of a block that something else uses is not idle: such blocks have less than 4 MiB here.
    assert none < 4 << 20 and some < 8 << 20
    t = mgr.tensor([1, 2])
    assert t.read().tolist() == [1, 2]
    with pytest.raises(kp.InvalidArgumentError, match="memory_idle_limit"):
        kp.config_report(memory_idle_limit=-1)
