"""What a kernel takes in place of tensors: results are in the memory that was given, or the argument is
refused.
"""

from __future__ import annotations

import array
import ctypes

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import SCALE

X = np.arange(6, dtype=np.float32)
INOUT = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) { b[i] = a[i]; a[i] *= 2; } }
"""


@pytest.fixture
def scale(mgr):
    return mgr.kernel(SCALE, name="scale")


class Interface:
    """Shares its memory through NumPy's __array_interface__."""

    def __init__(self, values):
        self.values = np.array(values, np.float32)
        self.__array_interface__ = self.values.__array_interface__


class Capsules:
    """Shares its memory through DLPack alone."""

    def __init__(self, values):
        self.values = np.array(values, np.float32)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Elsewhere(Capsules):
    def __dlpack_device__(self):
        return 2, 0


class Copies:
    """Converts to an array that is a copy."""

    def __init__(self, values):
        self.values = np.array(values, np.float32)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class Own(np.ndarray):
    """A subclass."""


WRITABLE = {
    "array": lambda: np.zeros(6, np.float32),
    "strided": lambda: np.zeros((6, 3), np.float32)[:, 1],
    "backwards": lambda: np.zeros(6, np.float32)[::-1],
    "byte-swapped": lambda: np.zeros(6, np.dtype(np.float32).newbyteorder()),
    "Fortran": lambda: np.zeros((2, 3), np.float32, "F"),
    "subclass": lambda: np.zeros(6, np.float32).view(Own),
    "matrix": lambda: np.zeros((6, 1), np.float32).view(np.matrix),
    "memmap": lambda: np.zeros(6, np.float32).view(np.memmap),
    "array.array": lambda: array.array("f", [0] * 6),
    "memoryview": lambda: memoryview(bytearray(24)).cast("f"),
    "strided memoryview": lambda: memoryview(array.array("f", [0] * 12))[::2],
    "ctypes": lambda: (ctypes.c_float * 6)(),
    "__array_interface__": lambda: Interface([0] * 6),
    "DLPack": lambda: Capsules([0] * 6),
}


def contents(value):
    value = getattr(value, "values", value)
    return np.asarray(value).reshape(-1).tolist()


@pytest.mark.parametrize("kind", WRITABLE)
def test_results_are_in_the_memory_that_was_given(scale, kind):
    for call in (
        lambda out: scale(X, out=out, factor=2, grid=6),
        lambda out: scale(X, y=out, factor=2, grid=6),
        lambda out: scale(X, out, factor=2, grid=6),
        lambda out: scale(X, bind={"y": out}, factor=2, grid=6),
    ):
        out = WRITABLE[kind]()
        assert call(out) is out  # what is returned is what was given
        assert contents(out) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("kind", WRITABLE)
def test_all_that_the_shader_writes_is_written_back_whatever_its_name(mgr, kind):
    kernel = mgr.kernel(INOUT, name="inout")
    a, b, c = (WRITABLE[kind]() for _ in range(3))
    t = mgr.tensor(X)
    assert kernel(t, a, grid=6) is a
    assert contents(a) == X.tolist() and t.read().tolist() == (2 * X).tolist()
    given, copied = kernel(a, b, grid=6)
    assert given is a and copied is b
    assert contents(a) == (2 * X).tolist() and contents(b) == X.tolist()
    assert kernel(t, b=c, grid=6) is c
    assert contents(c) == (2 * X).tolist()


@pytest.mark.parametrize("kind", [*WRITABLE, "bytes", "read-only array", "Copies", "list", "tuple"])
def test_what_the_shader_reads_may_be_a_copy(scale, kind):
    more = {
        "bytes": lambda: memoryview(bytes(24)).cast("f"),
        "read-only array": lambda: np.broadcast_to(np.float32(0), 6),
        "Copies": lambda: Copies([0] * 6),
        "list": lambda: [0] * 6,
        "tuple": lambda: (0.0,) * 6,
    }
    x = (WRITABLE | more)[kind]()
    out = np.ones(6, np.float32)
    scale(x, out, factor=2, grid=1)
    assert out[0] == 0


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (
            [0] * 6,
            kp.ArgumentTypeError,
            r"cannot be put into a list: give .*np\.zeros\(\(6,\), np\.float32\)",
        ),
        ((0,) * 6, kp.ArgumentTypeError, "cannot be put into a tuple"),
        (1.0, kp.ArgumentTypeError, "cannot be put into a float"),
        (np.float32(1), kp.ArgumentTypeError, "cannot be put into a float32"),
        (
            Copies([0] * 6),
            kp.ArgumentTypeError,
            "cannot be put into a Copies, which converts to an array by a copy",
        ),
        (bytes(24), kp.InvalidArgumentError, "the bytes is read-only"),
        (memoryview(bytes(24)).cast("f"), kp.InvalidArgumentError, "the memoryview is read-only"),
        (np.broadcast_to(np.float32(0), 6), kp.InvalidArgumentError, "the array is read-only"),
        (
            np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (6,), (0,)),
            kp.InvalidArgumentError,
            "elements of the array share memory",
        ),
        (np.ma.masked_array(np.zeros(6, np.float32)), kp.ArgumentTypeError, "masked array.*filled"),
        (Elsewhere([0] * 6), kp.ArgumentTypeError, "DLPack device type 2"),
        (array.array("d", [0] * 6), kp.ArgumentTypeError, "float64"),
        ({"y": [0] * 6}, kp.ArgumentTypeError, "is written by the shader: give an array"),
        ("000000", kp.ArgumentTypeError, "is a str; give"),
        (None, kp.ArgumentTypeError, "is None; give"),
        (object(), kp.ArgumentTypeError, "is an object; give"),
    ],
    ids=str,
)
def test_what_results_cannot_be_put_into_is_refused(scale, out, error, text):
    for call in (
        lambda: scale(X, out=out, factor=2),
        lambda: scale(X, y=out, factor=2),
        lambda: scale(X, out, factor=2),
    ):
        with pytest.raises(error, match=f"scale: 'y' is .*{text}|scale: 'y' {text}"):
            call()


def test_a_mask_is_not_dropped_from_what_the_shader_reads(scale):
    x = np.ma.masked_array(X, X > 3)
    with pytest.raises(kp.ArgumentTypeError, match="'x' is a masked array"):
        scale(x, np.zeros(6, np.float32), factor=2)
    out = np.zeros(6, np.float32)
    assert scale(x.filled(0), out, factor=2).tolist() == [0, 2, 4, 6, 0, 0]


def test_mapped_memory_is_read_and_written_in_place(mgr, scale):
    t = mgr.tensor(np.zeros(6), "host")
    with t.map(write=True) as mapped:
        assert scale(X, out=mapped, factor=3) is mapped
    assert t.read().tolist() == (3 * X).tolist()


def test_a_part_that_is_not_dense_is_copied_and_written_back(mgr):
    double = mgr.kernel("""
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }""")
    t = mgr.tensor([[1, 2], [3, 4]])
    view = t[:, 0]
    with pytest.raises(kp.ArgumentTypeError, match=r"strides \(8,\).*ascontiguousarray.*view\.copy_from"):
        double(view)
    part = kp.ops.ascontiguousarray(view)
    double(part)
    view.copy_from(part).wait()
    assert t.tolist() == [[2, 2], [6, 4]]


# -- parts that begin where no descriptor can ----------------------------------------------------------------

ADD_TWICE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] += 2.0 * x[i]; }
"""


def test_parts_at_odd_places_are_copied(mgr):
    """Also after calls of the same shapes, which are prepared, and whatever the elements around them are."""
    add = mgr.kernel(ADD_TWICE)
    x, y = np.arange(40, dtype=np.float32), np.linspace(1, 2, 40, dtype=np.float32)
    xs, ys = mgr.tensor(x), mgr.tensor(y)
    for first, second in [(0, 0), (3, 5), (0, 7), (1, 0), (0, 0), (3, 5), (5, 1)]:
        assert add(xs[first : first + 32], ys[second : second + 32]) is None
        y[second : second + 32] += 2 * x[first : first + 32]
        np.testing.assert_allclose(ys.read(), y, rtol=1e-6)
    assert np.array_equal(xs.read(), x)
    add(xs[1:5], out=ys[36:])
    add(xs[::8], ys[3:8])
    y[36:] += 2 * x[1:5]
    y[3:8] += 2 * x[::8]
    np.testing.assert_allclose(ys.read(), y, rtol=1e-6)
    assert add.memory_needs(xs[1:5], ys[5:9])


def test_parts_at_odd_places_that_meet_what_is_written_are_refused(mgr):
    """A copy of them would lose what the shader writes through the other argument."""
    add, t = mgr.kernel(ADD_TWICE), mgr.tensor(np.arange(40.0))
    for x, y in [(t[1:9], t[8:16]), (t[0:8], t[7:15]), (t[1:9], t[1:9])]:
        with pytest.raises(kp.InvalidArgumentError, match="must be a multiple of"):
            add(x, y)
    for way in (add.bind, add.submit):
        with pytest.raises(kp.InvalidArgumentError, match="call a kernel with the part alone"):
            way(t[1:9], t[16:24])
    assert t.read().tolist() == list(range(40))
