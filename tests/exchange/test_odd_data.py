"""Every way in which data enters, with every kind of array and buffer: the right numbers, or a refusal; never
other numbers.
"""

from __future__ import annotations

import array
import collections
import ctypes
import warnings

import numpy as np
import pytest

import kompute_py as kp

TWICE = """#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) b[i] = a[i] * 2.0; }
"""
IN_PLACE = """#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] = a[i] * 2.0; }
"""
PUSH = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(push_constant) uniform P { vec4 v; };
void main() { for (int i = 0; i < 4; ++i) a[i] = v[i]; }
"""
SPECIAL = """#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const float c0 = 0;
layout(constant_id = 1) const float c1 = 0;
layout(constant_id = 2) const float c2 = 0;
layout(constant_id = 3) const float c3 = 0;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[0] = c0; a[1] = c1; a[2] = c2; a[3] = c3; }
"""
NUMBERS = np.array([1, 2, 3, 4], np.float32)
NUMBERS.flags.writeable = False  # each call gets a copy, which a kernel may write


def masked(mask=(True, False, False, False)):
    return np.ma.masked_array(NUMBERS.copy(), mask)


class Pair:
    """A sequence of a class of its own."""

    def __init__(self, *parts):
        self._parts = parts

    def __len__(self):
        return len(self._parts)

    def __getitem__(self, index):
        return self._parts[index]


class Convertible:
    """Becomes the array that it was given."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


def read_only():
    made = NUMBERS.copy()
    made.flags.writeable = False
    return made


MASKED = {
    "masked": masked,
    "masked nowhere": lambda: masked(False),
    "masked in a list": lambda: [masked()[:2], masked()[2:]],
    "masked in lists": lambda: [[masked()]],
    "masked in a tuple": lambda: (1.0, np.ma.masked, 3.0, 4.0),
    "masked number in a list": lambda: [1.0, np.ma.masked, 3.0, 4.0],
    "masked in a deque": lambda: collections.deque([masked()[:2], masked()[2:]]),
    "masked number in a deque": lambda: collections.deque([1.0, np.ma.masked, 3.0, 4.0]),
    "masked in a sequence": lambda: Pair(masked()[:2], [masked()[2], 4.0]),
    "masked by conversion": lambda: Convertible(masked()),
}
# What shares its memory: taken everywhere, also as numbers of kernels, and where the dtype is the shader's as
# its output.
BUFFERS = {
    "ctypes": lambda: (ctypes.c_float * 4)(1, 2, 3, 4),
    "memoryview": lambda: memoryview(array.array("f", [1, 2, 3, 4])),
    "memoryview strided": lambda: memoryview(array.array("f", [1, 9, 2, 9, 3, 9, 4, 9]))[::2],
    "memoryview reversed": lambda: memoryview(array.array("f", [4, 3, 2, 1]))[::-1],
    "array.array": lambda: array.array("f", [1, 2, 3, 4]),
}
OTHERS = {
    "ctypes of two axes": lambda: ((ctypes.c_float * 2) * 2)((1, 2), (3, 4)),
    "ctypes of ints": lambda: (ctypes.c_int * 4)(1, 2, 3, 4),
    "ctypes big-endian": lambda: (ctypes.c_float.__ctype_be__ * 4)(1, 2, 3, 4),
    "memoryview of two axes": lambda: memoryview(np.array([[1, 2], [3, 4]], np.float32)),
    "memoryview read-only": lambda: memoryview(NUMBERS.tobytes()).cast("f"),
    "memoryview big-endian": lambda: memoryview(NUMBERS.astype(">f4")),
    "array.array of doubles": lambda: array.array("d", [1, 2, 3, 4]),
    "array.array of ints": lambda: array.array("i", [1, 2, 3, 4]),
    "bytes": lambda: NUMBERS.tobytes(),
    "negative stride": lambda: NUMBERS[::-1].copy()[::-1],
    "big-endian": lambda: NUMBERS.astype(">f4"),
    "objects": lambda: NUMBERS.astype(object),
    "matrix": lambda: np.matrix(NUMBERS),
    "doubles": lambda: NUMBERS.astype("f8"),
    "ints": lambda: NUMBERS.astype("i8"),
    "structured": lambda: NUMBERS.copy().view([("x", "f4")]),
    "Fortran order": lambda: np.asfortranarray(NUMBERS.copy().reshape(2, 2)),
    "read-only": read_only,
    "unaligned": lambda: np.frombuffer(bytearray(b"x" + NUMBERS.tobytes()), np.float32, 4, 1),
    "recarray": lambda: np.rec.array(NUMBERS.copy()),
    "list of memoryviews": lambda: [memoryview(NUMBERS[:2].copy()), memoryview(NUMBERS[2:].copy())],
    "list of ctypes": lambda: [(ctypes.c_float * 2)(1, 2), (ctypes.c_float * 2)(3, 4)],
    "range": lambda: range(1, 5),
    "deque": lambda: collections.deque([1, 2, 3, 4]),
    "generator": lambda: (number for number in (1.0, 2.0, 3.0, 4.0)),
    "set": lambda: {1, 2, 3, 4},
    "str": lambda: "1234",
}


def written(mgr, value):
    t = mgr.zeros(4)
    t.write(value)
    return t.read()


def written_to_a_part(mgr, value):
    t = mgr.zeros(8)
    t[2:6].write(value)
    return t[2:6].read()


def image_written(mgr, value):
    image = mgr.image(np.zeros((2, 2), np.float32))
    image.write(value)
    return image.read()


def kernel_input(mgr, value):
    out = np.zeros(4, np.float32)
    mgr.kernel(TWICE)(value, out)
    return out / 2


def kernel_output(mgr, value):
    mgr.kernel(IN_PLACE)(value)
    return np.asarray(value).view(np.ndarray) if isinstance(value, np.recarray) else np.asarray(value)


def kernel_push(mgr, value):
    t = mgr.zeros(4)
    mgr.kernel(PUSH)(t, v=value)
    return t.read()


def algorithm_push(mgr, value):
    t = mgr.zeros(4)
    mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([t], kp.compile(PUSH), (1, 1, 1), push_consts=value)))
    return t.read()


def algorithm_spec(mgr, value):
    t = mgr.zeros(4)
    mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([t], kp.compile(SPECIAL), (1, 1, 1), value)))
    return t.read()


def streamed(mgr, value):
    a, b = mgr.zeros(4), mgr.zeros(4)
    sequence = mgr.sequence().record(mgr.kernel(TWICE).bind(a, b))
    return np.array(next(iter(sequence.stream([value], inputs=a, outputs=b)))) / 2


WAYS = {
    "tensor": lambda mgr, value: mgr.tensor(value).read(),
    "tensor_t": lambda mgr, value: mgr.tensor_t(value).read(),
    "write": written,
    "write to a part": written_to_a_part,
    "full": lambda mgr, value: mgr.full(4, value).read(),
    "fill": lambda mgr, value: mgr.zeros(4).fill(value).read(),
    "image": lambda mgr, value: mgr.image(value, 2, 2, 1).read(),
    "image_t": lambda mgr, value: mgr.image_t(value, 2, 2, 1).read(),
    "write to an image": image_written,
    "from_host": lambda mgr, value: mgr.from_host(value).read(),
    "from_dlpack": lambda mgr, value: kp.from_dlpack(value, mgr).read(),
    "kernel's input": kernel_input,
    "kernel's output": kernel_output,
    "kernel's push constant": kernel_push,
    "push constants": algorithm_push,
    "specialization constants": algorithm_spec,
    "stream": streamed,
}
# Where NumPy's own arrays alone are taken, or one element.
_ONLY_ARRAYS = {"from_host", "from_dlpack", "fill"}


@pytest.mark.parametrize("way", WAYS)
def test_masked_arrays_are_refused(mgr, way):
    for name, make in MASKED.items():
        with warnings.catch_warnings(), pytest.raises(kp.KomputeError) as caught:
            warnings.simplefilter("ignore")
            WAYS[way](mgr, make())
        if name in ("masked by conversion", "masked in a sequence") and "constant" in way:
            continue  # they take none of these
        if way not in _ONLY_ARRAYS and way != "kernel's output":
            assert "masked array" in str(caught.value), (name, str(caught.value))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in _ONLY_ARRAYS])
def test_buffers_are_taken(mgr, way):
    expected = NUMBERS * 2 if way == "kernel's output" else NUMBERS
    for name, make in BUFFERS.items():
        np.testing.assert_array_equal(np.ravel(WAYS[way](mgr, make())), expected, err_msg=name)


@pytest.mark.parametrize("way", WAYS)
def test_other_data_is_right_or_refused(mgr, way):
    expected = NUMBERS * 2 if way == "kernel's output" else NUMBERS
    taken = 0
    for name, make in OTHERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = WAYS[way](mgr, make())
        except kp.KomputeError:
            continue
        found = found["x"] if found.dtype.names else found
        np.testing.assert_array_equal(np.ravel(found), expected, err_msg=name)
        taken += 1
    assert taken >= (0 if way == "fill" else 3)


def test_reading_into_a_masked_array_is_refused(mgr):
    with pytest.raises(kp.ArgumentTypeError, match="out is a masked array"):
        mgr.tensor(NUMBERS).read(masked())


# -- numbers that do not fit ---------------------------------------------------------------------------------

UNFIT = {
    np.uint8: (
        [1.5, 2, 3, 4], [300, 2, 3, 4], [-1, 2, 3, 4], ["1", "2", "3", "4"], [None, 2, 3, 4], [1j, 2, 3, 4],
    ),
    np.int32: ([1.5, 2, 3, 4], [2**31, 2, 3, 4], range(2**31, 2**31 + 4), ["1", "2", "3", "4"]),
    np.float32: ([1e300, 2, 3, 4], [None, 2, 3, 4], ["1", "2", "3", "4"], [1j, 2, 3, 4]),
    bool: ([2, 0, 1, 1], [0.5, 0, 1, 1], [None, 0, 1, 1], ["", "a", "b", "c"]),
}  # fmt: skip


def write_of(mgr, dtype, value):
    mgr.zeros(4, dtype).write(value)


def stream_of(mgr, dtype, value):
    t, u = mgr.zeros(4, dtype), mgr.zeros(4, dtype)
    list(mgr.sequence().record(kp.OpCopy([t, u])).stream([value], inputs=t, outputs=u))


@pytest.mark.parametrize("way", [write_of, stream_of])
def test_numbers_that_do_not_fit_are_refused(mgr, way):
    """They were cut, wrapped, made infinite or taken from text in streams."""
    for dtype, values in UNFIT.items():
        for value in values:
            with pytest.raises((kp.ArgumentTypeError, kp.InvalidArgumentError)):
                way(mgr, dtype, value)
    for dtype in (np.uint8, np.int32, np.float32):
        way(mgr, dtype, [1, 2, 3, 4])
        way(mgr, dtype, range(4))
    way(mgr, bool, [True, False, 1, 0])
    # What has a dtype of its own is compared in streams, as NumPy's arrays are.
    if way is stream_of:
        for value in (
            array.array("d", [1, 2, 3, 4]),
            memoryview(NUMBERS.astype("f8")),
            (ctypes.c_int * 4)(1),
        ):
            with pytest.raises(kp.ArgumentTypeError, match="needs float32"):
                way(mgr, np.float32, value)


def test_a_stream_takes_either_byte_order(mgr):
    np.testing.assert_array_equal(streamed(mgr, NUMBERS.astype(">f4")), NUMBERS)
    np.testing.assert_array_equal(streamed(mgr, memoryview(NUMBERS.astype(">f4"))), NUMBERS)


RECORD = np.dtype([("i", "i4"), ("f", "f4"), ("s", [("b", "u1"), ("v", "f4", (2,))])])


@pytest.mark.parametrize(
    "element",
    [
        (1.5, 2.0, (3, [4, 5])), (2**31, 2.0, (3, [4, 5])), (1, 1e300, (3, [4, 5])), (1, 2.0, (3.5, [4, 5])),
        (1, 2.0, (256, [4, 5])), (1, 2.0, (3, [4, 1e300])), ("1", 2.0, (3, [4, 5])),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit_a_field_are_refused(mgr, element):
    t = mgr.zeros(2, RECORD)
    for work in (
        lambda: t.write([element] * 2),
        lambda: t.fill(element),
        lambda: kp.OpFill([t], element),
        lambda: mgr.full(2, element, RECORD),
        lambda: stream_of(mgr, RECORD, [element] * 4),
    ):
        with pytest.raises((kp.ArgumentTypeError, kp.InvalidArgumentError)):
            work()
    right = (1, 2.5, (3, [4.5, 5]))
    t.write([right, np.array(right, RECORD)[()]])
    assert t.read().tobytes() == np.array([right] * 2, RECORD).tobytes()
    stream_of(mgr, RECORD, [right] * 4)
