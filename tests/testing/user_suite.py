"""Tests as users write them, for the plugin. Those with a line "FAULT:" have a fault of that kind; the
line says what its report must say.
"""

import ctypes
import functools

import numpy as np
import pytest
import vulkan as vk

import kompute_py as kp
from kompute_py.testing import assert_allclose

HEAD = "#version 450\nlayout(local_size_x = 64) in;\n"
SCALE = (
    HEAD
    + """layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = 2.0 * x[i]; }"""
)
SUBTRACT = (
    HEAD
    + """layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] - b[i]; }"""
)
X = np.arange(1000, dtype=np.float32)
CACHE = []


class Write(kp.OpBase):
    """Fills a tensor with a raw command of `size` bytes."""

    def __init__(self, tensor, size, writes):
        self.tensor, self.size, self.reads, self.writes = tensor, size, [], writes

    def record(self, cmd):
        t = self.tensor
        vk.vkCmdFillBuffer(cmd.vk_command_buffer, t.vk_buffer, t.vk_offset, self.size, 0)


class Model:
    weights = None


@functools.cache
def table(manager):
    return manager.tensor(np.zeros(7))


@pytest.fixture
def scale(manager):
    return manager.kernel(SCALE)


def test_01_right(scale):
    assert_allclose(scale(X), 2 * X)


def test_02_too_few_invocations(scale):
    # FAULT: 40 of 1,000 elements; worst at \[960\]: -1.0, expected 1920.0; the last 40 elements are wrong
    y = scale.manager.full(1000, -1.0)
    scale(scale.manager.tensor(X), y, groups=(15, 1, 1))
    assert_allclose(y, 2 * X)


def test_03_never_run(scale):
    # FAULT: 999 of 1,000 elements; all wrong elements are 0: were they written
    y = scale.manager.zeros(1000)
    scale.bind(scale.manager.tensor(X), y)
    assert_allclose(y, 2 * X)


def test_04_nan(manager):
    # FAULT: worst at \[0\]: nan, expected 0; all wrong elements are NaN
    assert_allclose(kp.ops.divide(manager.tensor(X), manager.tensor(X * (X > 0))), np.minimum(X, 1))


def test_05_arguments_swapped(manager):
    # FAULT: worst at \[\d+\]: -999.0, expected 999.0 .*ulps; first at \[1\]: -1.0, expected 1.0
    c = manager.kernel(SUBTRACT)(X * 0, X)
    assert_allclose(c, X, name="difference", atol=1e-5, rtol=0)


def test_06_last_place(manager):
    # FAULT: root: 1 of 4 elements; worst at \[2\]: 3.0, expected 3.00\d+ \(off by 4.7\d+e-07, 2 ulps\)
    wanted = np.array([1, 2, 3 + 2 * np.spacing(np.float32(3)), 4], np.float32)
    assert_allclose(manager.tensor([1, 2, 3, 4]), wanted, rtol=0, atol=0, name="root")


def test_07_one_integer(manager):
    # FAULT: 1 of 6 elements are not equal exactly; worst at \[1, 2\]: 9, expected 5 \(off by 4\)
    t = manager.tensor_t(np.array([[0, 1, 2], [3, 4, 9]], np.int64))
    assert_allclose(t, np.arange(6).reshape(2, 3))


def test_08_shape(manager):
    # FAULT: has shape \(2, 3\), expected \(3, 2\)
    assert_allclose(manager.zeros((2, 3)), np.zeros((3, 2)))


def test_09_kept_in_a_list(manager):
    # FAULT: still alive after the test: 1 of kind 'buffer'; kept by test_user.CACHE
    CACHE.append(manager.tensor(X))


def test_10_kept_by_a_class(manager):
    # FAULT: 1 x weights: 8,000 bytes; kept by test_user.Model
    Model.weights = manager.tensor(X)
    Model.weights.name = "weights"


def test_11_kept_by_a_cache(manager):
    # FAULT: still alive after the test: 1 of kind 'buffer'; shape=\(7,\).*kept by test_user.table
    table(manager)


def test_12_kept_sequence(manager):
    # FAULT: kind 'stream'; <kp.Sequence.*kept by test_user.CACHE
    t = manager.tensor(X)
    CACHE.append(manager.sequence().record(kp.OpSyncLocal([t])).eval())


def test_13_command_is_not_valid(manager):
    # FAULT: VUID-vkCmdFillBuffer-size-00028
    t = manager.tensor(X)
    manager.sequence().record(Write(t, 6, [t])).eval()


def test_14_mistake_is_swallowed(manager):
    # FAULT: validation: VUID-vkCmdFillBuffer-size-00028
    t = manager.tensor(X)
    try:
        manager.sequence().record(Write(t, 6, [t])).eval()
    except kp.KomputeError:
        pass


def test_15_hazard(manager):
    # FAULT: SYNC-HAZARD-(WRITE-AFTER-WRITE|READ-AFTER-WRITE)
    t, other = manager.tensor(X), manager.tensor(X)
    both = manager.sequence().record(Write(t, 4000, [other])).record(kp.OpCopy([t, other]))
    both.eval()


def test_16_bytes_beyond_the_tensor(manager):
    # FAULT: tensor 'victim' \(4000 bytes\) was overrun: .*4 of those behind
    t = manager.tensor_t(X, "host")
    t.name = "victim"
    ctypes.memset(t.data().__array_interface__["data"][0] + 4000, 0, 4)


@pytest.mark.needs("shaderFloat65")
def test_17_unknown_feature(manager):
    # FAULT: shaderFloat65.*did you mean 'shaderFloat64'
    raise AssertionError


@pytest.mark.needs("VK_NV_ray_tracing_motion_blur")
def test_18_absent_feature(manager):
    raise AssertionError


@pytest.mark.needs("timelineSemaphore")
@pytest.mark.manager_options(robust_access=False, memory_debug=False)
def test_19_options(manager):
    assert not manager.config.memory_debug.value
    x = manager.tensor_t(np.arange(9, dtype=np.float32))
    assert_allclose(kp.ops.sqrt(x), np.sqrt(np.arange(9, dtype=np.float32)), rtol=1e-7)


def test_20_calls_with_arrays_run_on_it(manager):
    assert kp.manager() is manager
    assert_allclose(kp.ops.sort(X[::-1].copy()), X)


@pytest.mark.manager_options(debug="bounds")
def test_21_writes_beyond_an_array(manager):
    # FAULT: A shader's bounds: .*(reads element \d+ of x|writes element \d+ of y)\[\], which has 10
    kernel = manager.kernel(SCALE.replace("if (i < y.length())", ""))
    kernel(manager.zeros(10), manager.zeros(10), groups=1)
