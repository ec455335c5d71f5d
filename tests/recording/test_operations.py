"""Operations: the built-in ones against NumPy, and operations written in Python."""

from __future__ import annotations

import gc
import itertools
import warnings

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

MEMORY_TYPES = list(kp.MemoryTypes.__members__)
COUNT = 1000


@pytest.mark.capability("K76", "names of Kompute's versions", "kp.OpTensorCopy", "reference/recording")
def test_older_names():
    assert kp.OpTensorSyncDevice is kp.OpSyncDevice
    assert kp.OpTensorSyncLocal is kp.OpSyncLocal
    assert kp.OpTensorCopy is kp.OpCopy


@pytest.mark.parametrize("op", [kp.OpSyncDevice, kp.OpSyncLocal, kp.OpCopy, kp.OpFill, kp.OpMult])
def test_what_operations_take(mgr, op):
    t = mgr.tensor([1])
    for wrong in (t, [1], [np.zeros(1)], None, 5, [t, None]):
        with pytest.raises(kp.ArgumentTypeError, match=op.__name__):
            op(wrong)
    with pytest.raises(kp.InvalidArgumentError, match="empty"):
        op([])


@pytest.mark.capability(
    "K66 K67",
    "host copies sent and fetched within a recording",
    "kp.OpSyncDevice, kp.OpSyncLocal",
    "concepts/recording",
)
def test_sync_of_several(mgr):
    tensors = [mgr.tensor(np.full(5, i), kind) for i, kind in enumerate(MEMORY_TYPES)]
    mgr.sequence().record(kp.OpSyncDevice(tuple(tensors))).record(kp.OpSyncLocal(tensors)).eval()
    for i, t in enumerate(tensors):
        np.testing.assert_array_equal(t.read(), np.full(5, i))


@pytest.mark.capability(
    "K64 K65", "copies of one tensor into others, in all memories", "kp.OpCopy", "concepts/recording"
)
@pytest.mark.parametrize(("source", "target"), list(itertools.product(MEMORY_TYPES, MEMORY_TYPES)))
def test_copy(mgr, source, target):
    data = np.arange(COUNT)
    a, b, c = (
        mgr.tensor(data, source),
        mgr.zeros(COUNT, memory_type=target),
        mgr.zeros(COUNT, memory_type=target),
    )
    mgr.sequence().record(kp.OpSyncDevice([a])).record(kp.OpCopy([a, b, c])).eval()
    np.testing.assert_array_equal(b.read(), data)
    np.testing.assert_array_equal(c.read(), data)


def test_copy_leaves_host_copies(mgr):
    a, b = mgr.tensor([1, 2]), mgr.tensor([8, 9])
    mgr.sequence().record(kp.OpSyncDevice([a])).eval()
    a.data()[:] = 5
    mgr.sequence().record(kp.OpCopy([a, b])).eval()
    np.testing.assert_array_equal(b.data(), [8, 9])
    np.testing.assert_array_equal(b.read(), [1, 2])


def test_copy_checks(mgr):
    a = mgr.tensor([1, 2])
    with pytest.raises(kp.InvalidArgumentError, match="at least two"):
        kp.OpCopy([a])
    with pytest.raises(kp.InvalidArgumentError, match=r"2 elements.*3"):
        kp.OpCopy([a, mgr.tensor([1, 2, 3])])
    with pytest.raises(kp.ArgumentTypeError, match="dtype"):
        kp.OpCopy([a, mgr.tensor_t(np.zeros(2, np.int32))])


@pytest.mark.capability("I17 I37", "filling a range within a recording", "kp.OpFill", "concepts/recording")
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 1.5), ("int32", -7), ("uint32", 2**32 - 1), ("uint8", 200), ("int8", -3),
        ("uint16", 40000), ("float16", 0.5),
        ("int64", -1), ("float64", 0.0), ("bool", True), ("uint64", 2**33 + 2), ("complex64", 2 + 2j),
    ],
)  # fmt: skip
@pytest.mark.parametrize("memory_type", MEMORY_TYPES)
def test_fill(mgr, dtype, value, memory_type):
    tensors = [mgr.zeros(count, dtype, memory_type) for count in (1, 3, COUNT)]
    mgr.sequence().record(kp.OpFill(tensors, value)).eval()
    for t in tensors:
        np.testing.assert_array_equal(t.read(), np.full(t.shape, value, dtype))


def test_fill_checks(mgr):
    with pytest.raises(kp.InvalidArgumentError, match="range"):
        kp.OpFill([mgr.zeros(2, "uint8")], 256)
    with pytest.raises(kp.ArgumentTypeError):
        kp.OpFill([mgr.zeros(2, "int32")], 1.5)
    for part in (mgr.zeros(4)[::2], np.zeros(2), mgr.image(np.zeros((2, 2))).sampled()):
        with pytest.raises(kp.ArgumentTypeError, match=type(part).__name__):
            kp.OpFill([part], 0)


@pytest.mark.capability("K63", "a ready product of two tensors", "kp.OpMult", "concepts/recording")
@pytest.mark.parametrize("count", [1, 255, 256, 257, 100_003])
def test_mult(mgr, count):
    rng = np.random.default_rng(count)
    x, y = rng.random((2, count), dtype=np.float32)
    a, b, out = mgr.tensor(x), mgr.tensor(y), mgr.zeros(count)
    mgr.sequence().record(kp.OpSyncDevice([a, b])).record(kp.OpMult([a, b, out])).record(
        kp.OpSyncLocal([out])
    ).eval()
    np.testing.assert_array_equal(out.data(), x * y)


def test_mult_takes_over_an_algorithm(mgr):
    tensors = [mgr.tensor([2, 4, 6]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    algorithm = mgr.algorithm()
    op = kp.OpMult(tensors, algorithm)
    assert op.algorithm is algorithm and algorithm.get_tensors() == tensors and algorithm.is_init()
    mgr.sequence().record(kp.OpTensorSyncDevice(tensors)).record(op).record(
        kp.OpTensorSyncLocal(tensors)
    ).eval()
    np.testing.assert_array_equal(tensors[2].data(), [2, 8, 18])


def test_mult_checks(mgr):
    a = mgr.zeros(4)
    with pytest.raises(kp.InvalidArgumentError, match="three"):
        kp.OpMult([a, a])
    with pytest.raises(kp.InvalidArgumentError, match="one size"):
        kp.OpMult([a, a, mgr.zeros(5)])
    with pytest.raises(kp.ArgumentTypeError, match="float32"):
        kp.OpMult([a, a, mgr.zeros(4, np.int32)])
    with pytest.raises(kp.ArgumentTypeError, match="Algorithm"):
        kp.OpMult([a, a, a], "algorithm")


def test_dispatch_checks(mgr):
    t = mgr.tensor([1])
    algorithm = kp.OpMult([t, t, t]).algorithm
    for wrong in (None, t, "algorithm"):
        with pytest.raises(kp.ArgumentTypeError, match="Algorithm"):
            kp.OpAlgoDispatch(wrong)
    for grid in ((1, 1, 1, 1), (1, -1), (-1,)):
        with pytest.raises(kp.InvalidArgumentError, match="grid"):
            kp.OpAlgoDispatch(algorithm, grid=grid)
    with pytest.raises(kp.ArgumentTypeError, match="grid"):
        kp.OpAlgoDispatch(algorithm, grid=1.5)
    limit = mgr.get_device_properties().max_work_group_count[0]
    with pytest.raises(kp.InvalidArgumentError, match="maxComputeWorkGroupCount"):
        kp.OpAlgoDispatch(algorithm, grid=(limit * 256 + 1, 1, 1))


class Recorded(kp.OpBase):
    """Records nothing; keeps a log of what it is asked."""

    def __init__(self, log, name="op", fail=""):
        self.log, self.name, self.fail = log, name, fail

    def step(self, step):
        self.log.append((self.name, step))
        if self.fail == step:
            raise LookupError(f"{self.name} fails in {step}")

    def record(self, cmd):
        assert isinstance(cmd, kp.CommandRecorder)
        assert cmd.vk_command_buffer > 0 and cmd.vk_device == cmd.manager.vk_device
        self.step("record")

    def pre_eval(self):
        self.step("pre_eval")

    def post_eval(self):
        self.step("post_eval")


@pytest.mark.capability(
    "K32 K58 I35",
    "operations in Python, with raw Vulkan commands",
    "kp.OpBase, kp.CommandRecorder",
    "reference/recording",
)
def test_custom_operations_are_called_in_order(mgr):
    log = []
    seq = mgr.sequence().record(Recorded(log, "a")).record(Recorded(log, "b"))
    assert log == []
    seq.eval()
    first = [step for step in log if step[1] != "record"]
    assert first == [("a", "pre_eval"), ("b", "pre_eval"), ("a", "post_eval"), ("b", "post_eval")]
    assert [step for step in log if step[1] == "record"] == [("a", "record"), ("b", "record")]
    log.clear()
    seq.eval()
    assert log == first
    log.clear()
    seq.eval_async()
    assert log == first[:2]
    seq.eval_await()
    assert log == first


def test_hooks_stop_with_a_fresh_recording(mgr):
    log = []
    t = mgr.tensor([1])
    seq = mgr.sequence().record(Recorded(log)).eval()
    log.clear()
    seq.record(kp.OpSyncDevice([t])).eval()
    assert log == []
    seq.eval(Recorded(log))
    assert log
    log.clear()
    seq.clear()
    seq.eval()
    assert log == []


@pytest.mark.parametrize("fail", ["record", "pre_eval", "post_eval"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_exception_leaves_the_sequence_usable(mgr, fail, asynchronous):
    log = []
    t = mgr.tensor([1, 2])
    op = Recorded(log, fail=fail)
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(op)

    def evaluate():
        if asynchronous:
            seq.eval_async().eval_await()
        else:
            seq.eval()

    with pytest.raises(LookupError, match=fail):
        evaluate()
    assert not seq.is_running()
    log.clear()
    op.fail = ""
    t.data()[:] = [3, 4]
    evaluate()
    assert ("op", "post_eval") in log
    np.testing.assert_array_equal(t.read(), [3, 4])


def test_an_exception_in_pre_eval_cancels_the_submission(mgr):
    log = []
    t = mgr.tensor([1, 2])
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    t.data()[:] = 9
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(Recorded(log, fail="pre_eval"))
    with pytest.raises(LookupError):
        seq.eval()
    np.testing.assert_array_equal(t.read(), [1, 2])


def test_hooks_do_not_run_for_a_refused_evaluation(mgr):
    log = []
    seq = mgr.sequence().record(Recorded(log)).eval_async()
    log.clear()
    with pytest.raises(kp.FailedPreconditionError):
        seq.eval()
    with pytest.raises(kp.FailedPreconditionError):
        seq.eval_async()
    assert log == []
    seq.eval_await()
    assert log == [("op", "post_eval")]


def test_hooks_around_a_built_in_operation(mgr):
    log = []

    class Counted(kp.OpSyncDevice):
        def pre_eval(self):
            log.append("pre")

    t = mgr.tensor([1, 2])
    seq = mgr.sequence().record(Counted([t])).eval()
    assert log == ["pre"]
    np.testing.assert_array_equal(t.read(), [1, 2])
    seq.eval()
    assert log == ["pre", "pre"]


def test_operations_that_record_nothing(mgr):
    class Forgetful(kp.OpSyncDevice):
        def __init__(self):
            pass

    for op in (kp.OpBase(), Forgetful()):
        with pytest.raises(kp.FailedPreconditionError, match="records nothing"):
            mgr.sequence().record(op)


def test_a_custom_operation_is_kept_alive(mgr):
    log = []
    seq = mgr.sequence().record(Recorded(log))
    gc.collect()
    seq.eval()
    seq.rerecord()
    gc.collect()
    seq.eval()
    assert ("op", "post_eval") in log


class Copy(kp.OpBase):
    """Copies one tensor to another through the PyPI package `vulkan`."""

    def __init__(self, source, target, declare):
        self.source, self.target = source, target
        if declare:
            self.reads, self.writes = [source], [target]

    def record(self, cmd):
        import vulkan as vk

        region = vk.VkBufferCopy(
            srcOffset=self.source.vk_offset, dstOffset=self.target.vk_offset, size=self.source.nbytes
        )
        vk.vkCmdCopyBuffer(cmd.vk_command_buffer, self.source.vk_buffer, self.target.vk_buffer, 1, [region])


@pytest.mark.parametrize("declare", [False, True], ids=["undeclared", "declared"])
def test_raw_vulkan_commands(mgr, declare):
    pytest.importorskip("vulkan")
    a, b = mgr.tensor(np.arange(100)), mgr.zeros(100)
    seq = (
        mgr.sequence()
        .record(kp.OpSyncDevice([a]))
        .record(Copy(a, b, declare))
        .record(kp.OpSyncLocal([b]))
        .eval()
    )
    np.testing.assert_array_equal(b.data(), np.arange(100))
    a.data()[:] = 5
    seq.eval()
    np.testing.assert_array_equal(b.data(), np.full(100, 5))


def test_declared_uses_are_checked(mgr, make_manager):
    class Uses(kp.OpBase):
        def record(self, cmd):
            pass

    foreign = make_manager().zeros(2)
    gone = mgr.zeros(2)
    gone.destroy()
    for uses, error in (
        ([foreign], kp.InvalidArgumentError),
        ([gone], kp.FailedPreconditionError),
        ([1], kp.ArgumentTypeError),
    ):
        op = Uses()
        op.writes = uses
        with pytest.raises(error):
            mgr.sequence().record(op).eval()


def test_declared_uses_may_be_properties(mgr):
    t = mgr.tensor([1])

    class Uses(kp.OpBase):
        asked = 0

        @property
        def reads(self):
            type(self).asked += 1
            return [t]

        def record(self, cmd):
            pass

    mgr.sequence().record(Uses()).eval()
    assert Uses.asked >= 1


# -- operations that do not say what they use ----------------------------------------------------------------


class FillRaw(kp.OpBase):
    """Fills a tensor through the PyPI package `vulkan`, and declares nothing."""

    def __init__(self, tensor, value):
        self.tensor, self.value = tensor, value

    def record(self, cmd):
        import vulkan as vk

        vk.vkCmdFillBuffer(
            cmd.vk_command_buffer, self.tensor.vk_buffer, self.tensor.vk_offset, self.tensor.vk_size,
            self.value,
        )  # fmt: skip


def check_undeclared_work_counts_as_a_user_of_everything():
    mgr = kp.Manager()
    target, freed = (mgr.tensor_t(np.zeros(1024, np.uint32)) for _ in range(2))
    seq = mgr.sequence().record(FillRaw(target, 7)).record(FillRaw(freed, 8))
    seq.eval_async()
    used = mgr.memory.used
    freed.destroy()
    assert seq.is_running() and mgr.memory.used == used  # the device may be writing it
    np.testing.assert_array_equal(target.read(), 7)  # waits for the work that may write it
    seq.eval_await()
    assert not null_control().violations()

    # Also where nobody calls destroy(), and when the sequence is gone before the work.
    gone = mgr.tensor_t(np.zeros(1024, np.uint32))
    kept = Keeps(gone)
    seq = mgr.sequence().record(kept)
    seq.eval_async()
    del kept.tensor, gone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del seq, kept
    gc.collect()
    mgr.tensor_t(np.ones(1024, np.uint32)).write(np.ones(1024, np.uint32))
    mgr.destroy()
    assert not null_control().violations()


class Keeps(FillRaw):
    def __init__(self, tensor):
        super().__init__(tensor, 9)


@pytest.mark.own_driver
def test_undeclared_work_counts_as_a_user_of_everything():
    pytest.importorskip("vulkan")
    run_child(check_undeclared_work_counts_as_a_user_of_everything, driver="null", config="gpu_us=100000")


def check_undeclared_work_is_carried_over_to_the_host(memory_type):
    mgr = kp.Manager()
    source = mgr.tensor_t(np.arange(1024, dtype=np.uint32), memory_type)
    target = mgr.tensor_t(np.zeros(1024, np.uint32), memory_type)
    untouched = mgr.tensor_t(np.arange(1024, dtype=np.uint32), memory_type)
    seq = mgr.sequence().record(Copy(source, target, False))
    for value in (3, 4):
        source.data()[:] = value
        untouched.data()[0] = value  # what the host wrote meanwhile stays
        seq.eval()
        np.testing.assert_array_equal(target.data(), value)
        assert untouched.data()[:2].tolist() == [value, 1]
    mgr.destroy()
    assert not null_control().violations()


@pytest.mark.own_driver
@pytest.mark.parametrize("memory_type", ["host", "deviceAndHost"])
def test_undeclared_work_is_carried_over_to_the_host(memory_type):
    """Memory that is not coherent: what the host writes before, and what the commands write, must be flushed
    and fetched.
    """
    pytest.importorskip("vulkan")
    check = check_undeclared_work_is_carried_over_to_the_host
    run_child(check, memory_type, driver="null", config="memory=noncoherent")


def test_a_recording_names_what_was_destroyed(mgr):
    a, b = mgr.tensor([1, 2, 3]), mgr.tensor([1, 2, 3, 4])
    seq = mgr.sequence().record(kp.OpSyncDevice([a])).record(kp.OpSyncLocal([b])).eval()
    b.destroy()
    with pytest.raises(kp.FailedPreconditionError, match=r"OpSyncLocal, operation 2 of .*tensor of 16 bytes"):
        seq.eval()


NOTHING = """
layout(local_size_x = 1) in;
layout(binding = 0) buffer A { float a[]; };
void main() { a[0] = 1; }
"""


@pytest.mark.parametrize("grid", [0, (4, 0), (4, 1, 0), (0, 4)])
def test_a_dispatch_of_no_invocations_runs_nothing(mgr, grid):
    t = mgr.zeros(4)
    source = (
        "layout(local_size_x = 4) in; layout(binding = 0) buffer A { float a[]; }; void main() { a[0] = 1; }"
    )
    algorithm = mgr.algorithm([t], kp.compile("#version 450\n" + source), (1, 1, 1))
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm, grid=grid))
    assert not t.read().any()


@pytest.mark.parametrize("grid", [-1, (1, -1), ()])
def test_a_dispatch_of_fewer_than_no_invocations_is_refused(mgr, grid):
    algorithm = mgr.algorithm([mgr.zeros(4)], kp.compile(NOTHING), (1, 1, 1))
    with pytest.raises(kp.InvalidArgumentError, match="grid"):
        kp.OpAlgoDispatch(algorithm, grid=grid)
