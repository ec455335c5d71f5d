"""Calls that are repeated exactly and make new results: no result has memory that anything can still see."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest

import kompute_py as kp

COUNT = 64
FURTHER = 12


class Doubler:
    """Calls with the same tensor, whose contents change from call to call."""

    def __init__(self, mgr, memory_type=None):
        self.mgr = mgr
        self.x = mgr.tensor_t(np.zeros(COUNT, np.int32), memory_type=memory_type)
        self.op = kp.ops.elementwise("2 * x + 1", dtype="int32")
        for n in range(3):
            assert int(self(n)[0]) == 2 * n + 1
        again = self.op._prepared.current.table.call((self.x,), {})
        assert again is not NotImplemented, "the calls below take another way"

    def __call__(self, n):
        self.x.write(np.full(COUNT, n, np.int32))
        return self.op(self.x)

    def further(self):
        """Many more calls: two with results that live on for a while, and those whose results end at once."""
        last = [self(-n) for n in range(2)]
        for n in range(FURTHER):
            self(-n - 2)
            last[n % 2] = self(-n - 3)
        assert last[0].read().tolist() == [2 * (-FURTHER - 1) + 1] * COUNT


@pytest.fixture
def double(mgr):
    return Doubler(mgr)


class Capsule:
    """A capsule that somebody will consume."""

    def __init__(self, tensor):
        self.device = tensor.__dlpack_device__()
        self.capsule = tensor.__dlpack__()

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def recorded(tensor):
    target = tensor.manager.empty(COUNT, np.int32)
    sequence = tensor.manager.sequence().record(kp.OpCopy([tensor, target]))

    def read():
        sequence.eval()
        return target.read()

    return read


def prepared(tensor):
    """A recorded operation, a kernel's call and an operation's call on the result."""
    mgr, same = tensor.manager, kp.ops.elementwise("x", dtype="int32")
    kernel = mgr.kernel(
        "layout(local_size_x = 64) in; layout(binding = 0) readonly buffer X { int x[]; };"
        "layout(binding = 1) writeonly buffer Y { int y[]; };"
        "void main() { y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x]; }"
    )
    targets = [mgr.empty(COUNT, np.int32) for _ in range(3)]
    sequence = mgr.sequence().record(kernel.bind(tensor, targets[0]), same.op(tensor, out=targets[1]))
    same(tensor, out=targets[2])

    def read():
        sequence.eval()
        found = [each.read() for each in targets]
        assert all(np.array_equal(each, found[0]) for each in found)
        return found[0]

    return read


def submitted(tensor):
    """Work in flight that nothing else keeps."""
    target = tensor.manager.empty(COUNT, np.int32)
    kp.ops.elementwise("x", dtype="int32").submit(tensor, out=target)
    return target.read


def in_a_traceback(tensor):
    def fail(result):
        raise ValueError("kept")

    try:
        fail(tensor)
    except ValueError as error:
        kept = error
    return lambda: kept.__traceback__.tb_next.tb_frame.f_locals["result"].read()


def host_copy(tensor):
    array = tensor.data()
    tensor.manager.sequence().eval(kp.OpSyncLocal([tensor]))
    return lambda: array


def mapped(tensor):
    mapping = tensor.map(read=True)
    array = mapping.__enter__()

    def read():
        found = np.array(array)
        mapping.close()
        return found

    return read


def copied(tensor):
    target = tensor.manager.empty(COUNT, np.int32)
    fence = target.copy_from(tensor)
    return lambda: (fence.wait(), target.read())[1]


WAYS = {
    "the result": lambda t: t.read,
    "reshape": lambda t: t.reshape(8, 8).read,
    "view": lambda t: t.view(np.uint32).read,
    "slice": lambda t: t[16:32].read,
    "strided": lambda t: t[::-3].read,
    "slice of a slice": lambda t: t[16:][4:].read,
    "array": lambda t: (lambda found: lambda: found)(np.asarray(t)),
    "data": host_copy,
    "recorded": recorded,
    "prepared": prepared,
    "submitted": submitted,
    "copied": copied,
    "traceback": in_a_traceback,
    "cycle": lambda t: (lambda found: found.append(found) or (lambda: found[0].read()))([t]),
    "named": lambda t: (setattr(t, "name", "kept"), t.read)[1],
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_of_a_result_stays(double, way):
    kept = []
    for n in range(4):
        kept.append((2 * n + 1, WAYS[way](double(n))))
        double.further()
    for value, read in kept:
        found = np.asarray(read())
        assert found.size and (found.view(np.int32) == value).all(), way
    assert double(9).name == ""


SHARED = {
    "mapping": mapped,
    "buffer": lambda t: (lambda found: lambda: np.asarray(found))(memoryview(t)),
    "interface": lambda t: (lambda found: lambda: found)(np.asarray(t)),
    "capsule": lambda t: (lambda found: lambda: np.from_dlpack(found))(Capsule(t)),
    "consumed capsule": lambda t: (lambda found: lambda: found)(np.from_dlpack(t)),
    "own capsule": lambda t: kp.from_dlpack(Capsule(t), t.manager).read,
}


@pytest.mark.parametrize("way", SHARED)
def test_what_shows_the_memory_itself_keeps_it(mgr, way):
    double = Doubler(mgr, "deviceAndHost")
    kept = []
    for n in range(4):
        kept.append((2 * n + 1, SHARED[way](double(n))))
        double.further()
    for value, read in kept:
        assert (np.asarray(read()) == value).all(), way
    del kept, read
    gc.collect()


def test_capsules_that_nobody_consumed_let_go(mgr):
    double = Doubler(mgr, "deviceAndHost")
    for n in range(4):
        ended = weakref.ref(double(n))
        assert ended() is None
        double(n).__dlpack__()
    held = mgr.memory.used
    for n in range(20):
        double(n).__dlpack__()
    assert mgr.memory.used <= held


def test_memory_of_results_that_ended_is_given_back(double):
    memory = double.mgr.memory
    kept, used = memory.kept, memory.used
    results = [double(n) for n in range(50)]
    assert len({each._native.host_address or id(each._native) for each in results}) == 50
    del results
    assert (memory.kept, memory.used) == (kept, used)


def test_destroyed_and_donated_results(double):
    ended, given = [], []
    for n in range(4):
        result = double(n)
        result.destroy()
        ended.append(result)
        given.append(double(n))
        assert (double.op(given[-1], donate="x").read() == 4 * n + 3).all()
        double.further()
    for each in ended:
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            each.read()
    for each in given:
        with pytest.raises(kp.errors.DonatedTensorError):
            each.read()
    double.x.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        double.op(double.x)


def test_a_donated_argument_of_a_repeated_call(double):
    x, op = double.x, double.op
    assert (op(x, donate="x").read() == 2 * 2 + 1).all()
    for _ in range(3):
        with pytest.raises(kp.errors.DonatedTensorError):
            op(x)


def test_another_tensor_with_the_id_of_an_earlier_one(mgr):
    op = kp.ops.elementwise("x + 1", dtype="int32")
    for n in range(40):
        x, y = mgr.tensor_t(np.full(n % 3 + 1, n, np.int32)), mgr.zeros(n % 3 + 1, np.int32)
        for _ in range(n % 4 + 1):
            assert op(x).tolist() == op(x, out=y).tolist() == [n + 1] * (n % 3 + 1)
        assert len(op._prepared.current.table) == 2 * (n % 4 > 0)
        del x, y
    assert not op._prepared.current.table


@kp.CustomOp.register
class both(kp.CustomOp):
    signature = "both(Tensor x, int k) -> (Tensor total, Tensor product)"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.arg_int("k")
        ksel.return_new_tensor(x.shape, x.dtype)
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        kb.yield_results("x_load(i) + k", "x_load(i) * k")


def test_several_and_given_results(mgr):
    t, out = mgr.tensor_t(np.arange(5, dtype=np.int32)), mgr.empty(5, np.int32)
    kept = []
    for n in range(6):
        for k in (2, 3):
            kept.append((n, k, both(t, k)))
            several = both(t, k, out=(out, mgr.empty(5, np.int32)))
            assert several[0] is out and not (several[0].read() - np.arange(5) - n - k).any()
        t.write(np.arange(5) + n + 1)
    for n, k, (total, product) in kept:
        np.testing.assert_array_equal(total.read(), np.arange(5) + n + k)
        np.testing.assert_array_equal(product.read(), (np.arange(5) + n) * k)


@pytest.mark.parametrize("memory_type", ["device", "host", "deviceAndHost", "storage"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_results_are_like_those_of_the_first_call(mgr, memory_type, shape):
    x = mgr.tensor_t(np.full(shape, 3, np.int32), memory_type=memory_type)
    op = kp.ops.elementwise("x + 1", dtype="int32")
    results = [op(x) for _ in range(5)]
    for each in results:
        assert each.shape == shape and each.dtype == np.int32 and each.manager is mgr
        assert each.memory_type() is results[0].memory_type()
        np.testing.assert_array_equal(each.read(), np.full(shape, 4))


def test_results_of_several_threads(double):
    """They call at once with one tensor, which nobody changes."""
    (expected,) = {2 * 2 + 1}
    wrong, results = [], []

    def work():
        mine = [double.op(double.x) for _ in range(30)]
        for each in mine:
            if not (each.read() == expected).all():
                wrong.append(each)
            each.fill(len(results)).wait()  # visible to others, if they share memory
        results.extend(mine[::3])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and len(results) == 40
    assert (double.op(double.x).read() == expected).all()


def test_results_beside_awaited_work(double):
    target = [double.mgr.empty(COUNT, np.int32) for _ in range(6)]
    same = kp.ops.elementwise("x", dtype="int32")

    async def one(n):
        await same.submit(double(n), out=target[n])
        double.further()

    async def work():
        await asyncio.gather(*map(one, range(6)))

    asyncio.run(work())
    for n, each in enumerate(target):
        assert (each.read() == 2 * n + 1).all()


def test_results_after_what_was_kept_is_given_back(double):
    kept = []
    for n in range(4):
        kept.append(double(n))
        if n % 2:
            double.mgr.memory.trim()
            assert not double.op.cache_info().prepared
        else:
            double.op.cache_clear()
        for _ in range(3):
            kept.append(double(n))
    for place, each in enumerate(kept):
        assert (each.read() == 2 * (place // 4) + 1).all()


def test_without_memory_for_a_result():
    with kp.Manager(memory_limit="20 MiB", memory_block_size="1 MiB", pipeline_cache_dir="") as own:
        x = own.zeros(1 << 20, np.int32, memory_type="storage")
        op = kp.ops.elementwise("x + 1", dtype="int32")
        for _ in range(4):
            assert int(op(x)[0]) == 1
        held = [op(x), op(x)]
        with pytest.raises(kp.OutOfMemoryError):
            held.extend(op(x) for _ in range(3))
        del held
        assert int(op(x)[-1]) == 1


def test_a_manager_that_ends():
    op = kp.ops.elementwise("x + 1", dtype="int32")
    with kp.Manager(pipeline_cache_dir="") as own:
        x = own.tensor_t(np.arange(4, dtype=np.int32))
        results = [op(x) for _ in range(5)]
        arrays = [np.asarray(each) for each in results]
        ended = weakref.ref(own)
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        op(x)
    assert all(each.tolist() == [1, 2, 3, 4] for each in arrays)
    del own, x, results
    gc.collect()
    assert ended() is None and op._prepared.current is None


def test_repeated_calls_are_told_apart_by_all_that_they_are_given(mgr):
    x, y = mgr.tensor_t(np.arange(4, dtype=np.int32)), mgr.tensor_t(np.arange(4, dtype=np.int32)[::-1].copy())
    where = mgr.tensor_t(np.array([5, -1], np.int32))
    times = kp.ops.elementwise("x * number")
    numbers = [0.0, -0.0, 2, 2.0, np.float32(2), np.int16(2), True, 2**31 - 1]
    calls = [lambda each=each: times(x, each) for each in numbers]
    calls += [lambda mode=mode: kp.ops.take(x, where, mode=mode) for mode in ("wrap", "clip")]
    calls += [lambda axis=axis: kp.ops.transpose(x.reshape(2, 2), axis) for axis in ((0, 1), (1, 0))]
    calls += [lambda pair=pair: kp.ops.concatenate(pair) for pair in ((x, y), (y, x), (x, x))]
    first = [call().read() for call in calls]
    for number, found in zip(numbers, first, strict=False):
        assert np.array_equal(found, x.read() * number) and np.signbit(found[0]) == np.signbit(number * 0.0)
    for _ in range(3):
        for call, expected in zip(calls, first, strict=True):
            found = call().read()
            assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
