"""What calls keep for later ones: one bound for a Manager, given back before memory runs out."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._device import kept

MIB = 1 << 20
ADD = (
    "layout(local_size_x = 64) in; layout(binding = 0) buffer X { float x[]; };"
    "void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] += 1; }"
)


@pytest.fixture
def own():
    """Its kept memory is at most 5 MiB."""
    with kp.Manager(memory_limit="20 MiB", pipeline_cache_dir="", memory_block_size="1 MiB") as mgr:
        yield mgr


def test_one_bound_for_operations_and_kernels(own):
    """An array of 256 KiB and the result take twice that in an operation, and the array once in a kernel."""
    kernel = own.kernel(ADD)
    calls = (kp.ops.exp, kp.ops.square, kp.ops.cumsum, kp.ops.negative, lambda x: kernel(x.copy()))
    for n in range(12):
        x = np.full(1 << 16, n % 3, np.float32)[: (1 << 16) - n]
        for call in calls:
            call(x)
            assert own.memory.kept <= 5 * MIB, n
    assert own.memory.kept > 2 * MIB and "for later calls" in str(own.memory)
    x = np.full(1 << 16, 2, np.float32)
    np.testing.assert_array_equal(kp.ops.square(x), x * 2)
    own.memory.trim()
    assert own.memory.kept == 0
    np.testing.assert_array_equal(kp.ops.square(x), x * 2)


def test_kept_memory_is_given_back_before_memory_runs_out(own):
    for call in (kp.ops.exp, kp.ops.square, kp.ops.negative):
        call(np.zeros(1 << 17, np.float32))
    own.kernel(ADD)(np.zeros(1 << 18, np.float32))
    assert own.memory.kept > 2 * MIB
    large = own.empty(4 * MIB + (1 << 19), memory_type="storage")  # 18 MiB
    assert own.memory.kept == 0
    large.destroy()
    with pytest.raises(kp.OutOfMemoryError):
        own.empty(6 * MIB)


def test_sizes_in_turn_fit_under_a_limit(own):
    for n in range(40):
        x = np.full((1 << 18) - 1024 * n, 2, np.float32)
        assert kp.ops.square(x)[-1] == 4 and kp.ops.negative(x)[0] == -2
        assert own.memory.reserved <= 20 * MIB
    y = np.full(3 << 18, 2, np.float32)  # more than is kept
    for _ in range(3):
        assert kp.ops.square(y)[-1] == 4
    assert own.memory.kept <= 5 * MIB


def test_a_kernel_takes_more_than_is_kept(own):
    kernel, x = own.kernel(ADD), np.zeros(2 * MIB, np.float32)
    for n in range(1, 4):
        kernel(x)
        assert x[0] == x[-1] == n and own.memory.kept == 0
    small = np.zeros(100, np.float32)
    for _ in range(3):
        kernel(small)
    assert small[99] == 3 and own.memory.kept > 0


def test_prepared_calls_have_one_bound(own, monkeypatch):
    monkeypatch.setattr(kept, "MOST_CALLS", 20)
    operations = kp.ops.exp, kp.ops.square, kp.ops.elementwise("x + 1")
    for each in operations:
        each.cache_clear()
    for n in range(1, 40):
        for each in operations:
            each(own.zeros(n))
    assert 3 <= sum(each.cache_info().prepared for each in operations) <= 20


def test_threads_make_room_for_each_other(own):
    """Each call is right, whatever others drop meanwhile."""
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x = np.full(int(rng.integers(1, 1 << 17)), rng.integers(5), np.float32)
            t = own.tensor(x)
            found = (kp.ops.square, kp.ops.cumsum)[seed % 2](t if rng.integers(2) else t[:])
            right = x * x if seed % 2 == 0 else np.cumsum(x, dtype=np.float64)
            if not np.allclose(found.read(), right):
                wrong.append((seed, x.size))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_without_a_limit_the_bound_is_half_a_gibibyte(mgr, own):
    assert kept.most_kept(mgr) == 512 * MIB and kept.most_kept(own) == 5 * MIB
