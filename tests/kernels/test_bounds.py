"""bounds="zero": arrays that end before the invocations of a grid that is given."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.each_driver

ADD = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(binding = 2) buffer Z { float z[]; };
void main() { uint i = gl_GlobalInvocationID.x; z[i] = x[i] + y[i]; }
"""


def zeroing(mgr, source=ADD, **options):
    """The kernel, if the device promises zeros; else it says what it lacks."""
    if "robustBufferAccess2" in mgr.enabled_features:
        return mgr.kernel(source, bounds="zero", **options)
    with pytest.raises(kp.UnimplementedError, match=r"'robustBufferAccess2'.*VK_EXT_robustness2"):
        mgr.kernel(source, bounds="zero", **options)
    pytest.skip("the device lacks robustBufferAccess2")


@pytest.mark.parametrize("kind", ["tensors", "arrays"])
def test_beyond_the_end_are_zeros(mgr, kind):
    kernel = zeroing(mgr)
    x, y = np.arange(1, 301, dtype=np.float32), np.arange(1, 101, dtype=np.float32)
    expected = x.copy()
    expected[:100] += y
    for _ in range(3):  # also when the call is prepared
        z = np.zeros(300, np.float32)
        if kind == "arrays":
            kernel(x, y, z, grid=300)
        else:
            held = mgr.tensor(z)
            kernel(mgr.tensor(x), mgr.tensor(y), held, grid=300)
            z = held.read()
        np.testing.assert_array_equal(z, expected)
        short = np.zeros(100, np.float32)  # writes beyond it do nothing
        kernel(x, x, short, grid=300)
        np.testing.assert_array_equal(short, 2 * x[:100])


def test_a_part_of_a_tensor_ends_where_it_ends(mgr):
    kernel = zeroing(mgr)
    whole, z = mgr.tensor(np.ones(1024)), mgr.zeros(1024)
    kernel.specialize()(whole, whole[0:256], z, grid=1024)
    np.testing.assert_array_equal(z.read(), np.repeat([2.0, 1, 1, 1], 256))


def test_what_stays_refused(mgr):
    kernel = zeroing(mgr)
    x, y, z = np.ones(300, np.float32), np.ones(100, np.float32), np.zeros(300, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="'y' has 100 elements"):
        kernel(x, y, z)  # no grid is given
    with pytest.raises(kp.InvalidArgumentError, match="'y' has 100 elements"):
        mgr.kernel(ADD)(x, y, z, grid=300)
    bytewise = zeroing(
        mgr,
        ADD.replace("450\n", "450\n#extension GL_EXT_shader_explicit_arithmetic_types : enable\n").replace(
            "float ", "uint8_t "
        ),
    )
    with pytest.raises(
        kp.InvalidArgumentError, match="whole words of 4 bytes; it is a storage buffer of 101"
    ):
        bytewise(*(np.ones(n, np.uint8) for n in (300, 101, 300)), grid=300)


def test_other_values_are_refused(mgr, make_manager):
    with pytest.raises(kp.InvalidArgumentError, match="bounds is 'wrap'; choose"):
        mgr.kernel(ADD, bounds="wrap")
    with pytest.raises(kp.UnimplementedError, match="robustBufferAccess2"):
        make_manager(robust_access=False).kernel(ADD, bounds="zero")
