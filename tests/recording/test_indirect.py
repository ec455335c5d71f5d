"""Dispatches whose numbers of groups the device reads from memory."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child
from tests.support.threads import on_threads

COUNT = """
layout(local_size_x = 4) in;
layout(binding = 0) buffer X { uint x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1; }
"""
# The numbers of groups, which a kernel computes.
GROUPS = """
layout(local_size_x = 1) in;
layout(binding = 0) buffer G { uint g[]; };
layout(push_constant) uniform P { uint at; uint n; };
void main() { g[at] = (n + 3) / 4; g[at + 1] = 1; g[at + 2] = 1; }
"""
WHERE = """
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { uint x[]; };
void main() { atomicAdd(x[gl_WorkGroupID.x + 10 * gl_WorkGroupID.y + 100 * gl_WorkGroupID.z], 1); }
"""


@pytest.fixture(scope="module")
def spirv():
    return kp.compile(COUNT)


def groups_of(mgr, *numbers, memory_type="device"):
    return mgr.tensor_t(np.array(numbers, np.uint32), memory_type)


def zeros(mgr, count=64):
    return mgr.tensor_t(np.zeros(count, np.uint32))


def ran(tensor):
    """The number of elements that were counted, each once."""
    found = tensor.read().tolist()
    n = sum(found)
    assert found == [1] * n + [0] * (len(found) - n)
    return n


@pytest.mark.capability(
    "I3", "numbers of workgroups from the device", "kp.OpAlgoDispatch", "concepts/recording"
)
@pytest.mark.parametrize("memory_type", ["device", "host", "deviceAndHost", "storage"])
@pytest.mark.parametrize("groups", [(3, 1, 1), (0, 1, 1), (3, 0, 1), (16, 1, 1)])
def test_the_device_reads_the_numbers_of_groups(mgr, spirv, groups, memory_type):
    x = zeros(mgr)
    given = groups_of(mgr, *groups, memory_type=memory_type)
    operation = kp.OpAlgoDispatch(mgr.algorithm([x], spirv, (1, 1, 1)), indirect=given)
    sequence = mgr.sequence().record(operation).eval()
    assert ran(x) == 4 * groups[0] * groups[1] * groups[2]
    # The recording stays; the numbers are read again.
    x.write(np.zeros(64, np.uint32))
    given.write(np.array([5, 1, 1], np.uint32))
    sequence.eval()
    assert ran(x) == 20


def test_all_axes_count(mgr):
    x = zeros(mgr, 500)
    mgr.kernel(WHERE)(x, indirect=groups_of(mgr, 3, 2, 4))
    expected = [int(i % 10 < 3 and i // 10 % 10 < 2 and i // 100 < 4) for i in range(500)]
    assert x.read().tolist() == expected


@pytest.mark.parametrize("offset", range(4))
def test_the_numbers_begin_at_an_offset_or_in_a_view(mgr, spirv, offset):
    numbers = groups_of(mgr, *([9] * offset), 2, 1, 1, *([9] * (3 - offset)))
    for given, at in ((numbers, offset), (numbers[offset : offset + 3], 0), (numbers[offset:], 0)):
        x = zeros(mgr)
        algorithm = mgr.algorithm([x], spirv, (1, 1, 1))
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm, indirect=given, offset=at)).eval()
        assert ran(x) == 8


def test_work_before_it_writes_the_numbers(mgr):
    """Each dispatch reads what the kernel before it wrote, in one recording without a read by the host."""
    x, numbers = zeros(mgr), groups_of(mgr, 0, 0, 0, 0, 0, 0)
    give, count = mgr.kernel(GROUPS), mgr.kernel(COUNT)
    sequence = mgr.sequence()
    for n in (16, 32, 8):
        sequence.record(give.bind(numbers, at=3, n=n, groups=1), count.bind(x, indirect=numbers[3:]))
    sequence.eval()
    assert x.read().tolist() == [3] * 8 + [2] * 8 + [1] * 16 + [0] * 32


def test_a_fill_and_a_copy_write_the_numbers(mgr):
    x, numbers, source = zeros(mgr), groups_of(mgr, 0, 0, 0), groups_of(mgr, 2, 1, 1)
    count = mgr.kernel(COUNT).bind(x, indirect=numbers)
    mgr.sequence().record(
        kp.OpFill([numbers], 1), count, kp.OpCopy([source, numbers]), count, kp.OpFill([numbers], 0), count
    ).eval()
    assert x.read().tolist() == [2] * 4 + [1] * 4 + [0] * 56


def test_the_shader_may_change_the_numbers_that_it_runs_with(mgr):
    """The same buffer as an argument: it is read before the shader writes it."""
    numbers = groups_of(mgr, 2, 1, 1, 0, 0, 0, 0, 0)
    sequence = mgr.sequence().record(mgr.kernel(COUNT).bind(numbers, indirect=numbers))
    assert sequence.eval() is sequence
    assert numbers.read().tolist() == [3, 2, 2, 1, 1, 1, 1, 1]


def test_the_barrier_names_the_stage_that_reads_the_numbers(mgr):
    x, numbers = zeros(mgr), groups_of(mgr, 0, 0, 0)
    sequence = mgr.sequence().record(
        mgr.kernel(GROUPS).bind(numbers, at=0, n=4, groups=1),
        mgr.kernel(COUNT).bind(x, indirect=numbers),
        mgr.kernel(GROUPS).bind(numbers, at=0, n=4, groups=1),
    )
    sequence.eval()
    inner = [each for each in sequence._native.barriers() if each[0] in (1, 2)]
    assert inner == [(1, 0x800, 0x40, 0x2, 0x1), (2, 0x2, 0, 0x800, 0)]
    assert "shader write → indirect read" in sequence.mermaid()


def test_kernels_take_it_in_all_forms(mgr):
    count = mgr.kernel(COUNT)
    x, numbers = zeros(mgr), groups_of(mgr, 2, 1, 1)
    for _ in range(3):
        count(x, indirect=numbers)
    count.submit(x, indirect=numbers).wait()
    assert x.read().tolist() == [4] * 8 + [0] * 56
    other = groups_of(mgr, 3, 1, 1)
    count(x, indirect=other)
    count(x, groups=1)
    assert x.read().tolist() == [6] * 4 + [5] * 4 + [1] * 4 + [0] * 52
    operation = count.bind(x, indirect=numbers)
    assert operation.groups is None and operation.indirect is numbers
    assert "groups=indirect" in repr(operation)
    assert count.bind(x, groups=2).indirect is None
    array = np.zeros(64, np.uint32)
    assert count(array, indirect=numbers) is array
    assert array.tolist() == [1] * 8 + [0] * 56


def test_repeated_calls_keep_their_numbers_apart(mgr):
    """Calls with one argument and other numbers of groups, in turn, also after some are gone."""
    count = mgr.kernel(COUNT)
    x = zeros(mgr)
    all_numbers = [groups_of(mgr, n, 1, 1) for n in range(5)]
    expected = np.zeros(64, np.uint32)
    for n in (1, 2, 3, 4, 0, 2, 2, 4, 1):
        count(x, indirect=all_numbers[n])
        expected[: 4 * n] += 1
    all_numbers[2].destroy()
    for n in (1, 3, 1, 4):
        count(x, indirect=all_numbers[n])
        expected[: 4 * n] += 1
    np.testing.assert_array_equal(x.read(), expected)


def test_a_binding_of_that_name_is_bound_by_name(mgr):
    double = mgr.kernel("""
        layout(local_size_x = 4) in;
        layout(binding = 0) buffer B { uint indirect[]; };
        void main() { indirect[gl_GlobalInvocationID.x] *= 2; }
    """)
    x, numbers = mgr.tensor_t(np.arange(16, dtype=np.uint32)), groups_of(mgr, 2, 1, 1)
    double(x, indirect=numbers)
    double(bind={"indirect": x}, indirect=numbers)
    double(bind={"indirect": x}, groups=1)
    assert x.read().tolist() == [i * (8 if i < 4 else 4 if i < 8 else 1) for i in range(16)]


def test_push_constants_change_and_the_groups_stay(mgr):
    numbers, target = groups_of(mgr, 1, 1, 1), groups_of(mgr, *[0] * 6)
    operation = mgr.kernel(GROUPS).bind(target, at=0, n=4, indirect=numbers)
    sequence = mgr.sequence().record(operation).eval()
    operation.set(at=3, n=8)
    sequence.eval()
    assert target.read().tolist() == [1, 1, 1, 2, 1, 1]
    with pytest.raises(kp.InvalidArgumentError, match="the device reads the groups of this operation"):
        operation.set(groups=2)


def test_an_algorithm_is_rebuilt_and_the_numbers_stay(mgr, spirv):
    x, y, numbers = zeros(mgr), zeros(mgr), groups_of(mgr, 2, 1, 1)
    algorithm = mgr.algorithm([x], spirv, (7, 1, 1))
    sequence = mgr.sequence().record(kp.OpAlgoDispatch(algorithm, indirect=numbers)).eval()
    algorithm.rebuild([y])
    sequence.rerecord()
    sequence.eval()
    assert ran(x) == ran(y) == 8


def check_other_queues():
    """The numbers are beyond the limit, which the null driver reports, until the work of another queue is
    done.
    """
    mgr = kp.Manager(family_queue_indices=[0, 0, 1], validation=True)
    x, numbers = zeros(mgr), groups_of(mgr, *[2**32 - 1] * 3)
    mgr.sequence().eval(kp.OpSyncDevice([x, numbers]))
    writers = [mgr.sequence(queue).record(kp.OpFill([numbers], queue)) for queue in (1, 2)]
    reader = mgr.sequence(0).record(mgr.kernel(COUNT).bind(x, indirect=numbers))
    for writer in (*writers, *writers):
        numbers.write(np.full(3, 2**32 - 1, np.uint32))
        writer.eval_async()
        reader.eval_async()
        reader.eval_await()
        writer.eval_await()
    control = null_control()
    assert not control.violations()
    numbers.write(np.full(3, 2**32 - 1, np.uint32))
    reader.eval()
    assert "exceed maxComputeWorkGroupCount" in control.violations()[0]


def test_other_queues_wait_for_the_numbers():
    run_child(check_other_queues, driver="null", layer="newer", config="gpu_us=20000")


def check_calls():
    """A dispatch is one command, and a repeated call records nothing and asks no more of the driver."""
    mgr = kp.Manager(validation=False)
    x, numbers = zeros(mgr), groups_of(mgr, 2, 1, 1)
    count, control = mgr.kernel(COUNT), null_control()
    sequence = mgr.sequence().record(count.bind(x, indirect=numbers))
    control.clear()
    control.count()
    sequence.eval()
    assert control.calls("vkCmdDispatchIndirect") == 1
    assert control.calls("vkCmdDispatch") == 0
    asked = []
    for run in (sequence.eval, lambda: count(x, indirect=numbers), lambda: count(x, groups=2)):
        run()
        run()
        control.clear()
        run()
        asked.append(control.total_calls)
        assert control.calls("vkCmdDispatchIndirect") == 0
    assert asked[0] == asked[1] == asked[2]
    assert not control.violations()


def test_what_the_driver_is_asked():
    run_child(check_calls, driver="null")


def test_frames_bring_their_own_numbers(mgr):
    x, y = zeros(mgr, 16), groups_of(mgr, 0, 0, 0)
    out = zeros(mgr, 16)
    sequence = mgr.sequence().record(
        kp.OpFill([out], 0), mgr.kernel(COUNT).bind(out, indirect=y), kp.OpCopy([out, x])
    )
    frames = [np.array([n, 1, 1], np.uint32) for n in (1, 3, 2, 0, 4)]
    results = [each.sum() for each in sequence.stream(frames, inputs=[y], outputs=[x])]
    assert results == [4, 12, 8, 0, 16]


def test_threads_use_it_at_once(mgr):
    count = mgr.kernel(COUNT)
    tensors = [zeros(mgr) for _ in range(4)]

    def work(number):
        numbers = groups_of(mgr, number + 1, 1, 1)
        for _ in range(10):
            count(tensors[number], indirect=numbers)

    on_threads(work, range(4))
    for number, tensor in enumerate(tensors):
        assert tensor.read().tolist() == [10] * (4 * number + 4) + [0] * (60 - 4 * number)


class TestErrors:
    def make(self, mgr, spirv):
        x = zeros(mgr)
        return x, mgr.algorithm([x], spirv, (1, 1, 1)), mgr.kernel(COUNT)

    @pytest.mark.parametrize(
        ("make", "error", "match"),
        [
            (lambda m: np.zeros(3, np.uint32), kp.ArgumentTypeError, "give a uint32 Tensor"),
            (lambda m: [1, 1, 1], kp.ArgumentTypeError, "give a uint32 Tensor"),
            (lambda m: m.image(np.zeros((2, 2), np.float32)), kp.ArgumentTypeError, "give a uint32 Tensor"),
            (lambda m: m.zeros(3), kp.ArgumentTypeError, "of float32; the numbers of workgroups are uint32"),
            (lambda m: m.tensor_t(np.zeros(3, np.int32)), kp.ArgumentTypeError, "of int32"),
            (lambda m: groups_of(m, 1, 1), kp.InvalidArgumentError, "with 2 elements"),
            (lambda m: groups_of(m, 1, 1, 1)[1:], kp.InvalidArgumentError, "with 2 elements"),
        ],
    )
    def test_what_holds_no_numbers(self, mgr, spirv, make, error, match):
        x, algorithm, kernel = self.make(mgr, spirv)
        given = make(mgr)
        for use in (
            lambda: kp.OpAlgoDispatch(algorithm, indirect=given),
            lambda: kernel(x, indirect=given),
            lambda: kernel.bind(x, indirect=given),
            lambda: kernel.submit(x, indirect=given),
        ):
            with pytest.raises(error, match=match):
                use()
        assert ran(x) == 0

    def test_offsets(self, mgr, spirv):
        _, algorithm, _ = self.make(mgr, spirv)
        numbers = groups_of(mgr, *range(5))
        for offset in (-1, 3, 10**30):
            with pytest.raises(kp.OutOfRangeError, match="begin at 0 to 2 of"):
                kp.OpAlgoDispatch(algorithm, indirect=numbers, offset=offset)
        with pytest.raises(kp.ArgumentTypeError):
            kp.OpAlgoDispatch(algorithm, indirect=numbers, offset="1")
        with pytest.raises(kp.InvalidArgumentError, match="not given"):
            kp.OpAlgoDispatch(algorithm, offset=1)

    def test_a_view_that_begins_within_a_word(self, mgr, spirv):
        _, algorithm, _ = self.make(mgr, spirv)
        raw = mgr.tensor_t(np.zeros(16, np.uint8))
        try:
            view = raw[1:13].view(np.uint32)
        except kp.KomputeError:
            return  # refused earlier
        with pytest.raises(kp.InvalidArgumentError, match="multiples of 4"):
            kp.OpAlgoDispatch(algorithm, indirect=view)

    def test_grid_and_indirect(self, mgr, spirv):
        x, algorithm, kernel = self.make(mgr, spirv)
        numbers = groups_of(mgr, 1, 1, 1)
        with pytest.raises(kp.InvalidArgumentError, match="not both"):
            kp.OpAlgoDispatch(algorithm, grid=4, indirect=numbers)
        for given in ({"grid": 4}, {"groups": 1}):
            with pytest.raises(kp.InvalidArgumentError, match="not both"):
                kernel(x, indirect=numbers, **given)
        with pytest.raises(kp.ArgumentTypeError, match="give it as indirect="):
            kernel(x, groups=numbers)

    def test_outputs_are_not_left_out(self, mgr):
        double = mgr.kernel("""
            layout(local_size_x = 1) in;
            layout(binding = 0) readonly buffer A { float a[]; };
            layout(binding = 1) writeonly buffer B { float b[]; };
            void main() { b[gl_GlobalInvocationID.x] = 2.0 * a[gl_GlobalInvocationID.x]; }
        """)
        with pytest.raises(kp.InvalidArgumentError, match=r"outputs cannot be left out.*give b"):
            double(mgr.tensor([1, 2]), indirect=groups_of(mgr, 2, 1, 1))

    def test_other_managers(self, mgr, spirv):
        x, algorithm, kernel = self.make(mgr, spirv)
        with kp.Manager() as other:
            numbers = groups_of(other, 1, 1, 1)
            with pytest.raises(kp.InvalidArgumentError, match="belongs to"):
                kp.OpAlgoDispatch(algorithm, indirect=numbers)
            with pytest.raises(kp.InvalidArgumentError, match="belongs to"):
                kernel(x, indirect=numbers)

    def test_destroyed(self, mgr, spirv):
        x, algorithm, kernel = self.make(mgr, spirv)
        numbers = groups_of(mgr, 1, 1, 1)
        operations = [kp.OpAlgoDispatch(algorithm, indirect=numbers), kernel.bind(x, indirect=numbers)]
        sequences = [mgr.sequence().record(each).eval() for each in operations]
        unused = mgr.sequence().record(operations[0])
        kernel(x, indirect=numbers)
        numbers.destroy()
        for sequence in (*sequences, unused):
            with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
                sequence.eval()
        for use in (
            lambda: kernel(x, indirect=numbers),
            lambda: kp.OpAlgoDispatch(algorithm, indirect=numbers),
        ):
            with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
                use()
        kernel(x, groups=1)  # goes on

    def test_an_algorithm_without_a_shader(self, mgr):
        numbers = groups_of(mgr, 1, 1, 1)
        with pytest.raises(kp.FailedPreconditionError):
            kp.OpAlgoDispatch(kp.Algorithm(mgr), indirect=numbers)
        with pytest.raises(kp.ArgumentTypeError):
            kp.OpAlgoDispatch(None, indirect=numbers)
