"""Whole images and regions of more than 1 MiB: CPU drivers copy them from and to the caller's own pages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

CASES = {
    "rgba8": ((701, 997, 4), np.uint8, {}), "r8": ((1401, 997), np.uint8, {}),
    "r16": ((1401, 997), np.uint16, {}), "rgba32f": ((301, 499, 4), np.float32, {}),
    "3d": ((33, 120, 301), np.uint16, {"dims": 3}), "layers": ((5, 301, 299, 4), np.uint8, {"layers": True}),
}  # fmt: skip


def some(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 255, shape).astype(dtype)


def moved(array, by):
    """A copy that begins `by` bytes after a multiple of 64."""
    room = np.empty(array.nbytes + 128, np.uint8)
    begin = -room.ctypes.data % 64 + by
    made = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return room, made


@pytest.mark.parametrize("by", [0, 4, 16, 2])
@pytest.mark.parametrize("case", CASES)
def test_texels_are_moved_and_nothing_else(mgr, case, by):
    shape, dtype, options = CASES[case]
    if by % np.dtype(dtype).itemsize:
        by = 0
    array = some(shape, dtype)
    assert array.nbytes > 1 << 20
    image = mgr.image_t(np.zeros(shape, dtype), **options)
    room, given = moved(array, by)
    image.write(given)
    room[...] = 255
    np.testing.assert_array_equal(image.read(), array)
    room[...] = 77
    out = given
    assert image.read(out) is out
    np.testing.assert_array_equal(out, array)
    at = out.ctypes.data - room.ctypes.data
    assert (room[:at] == 77).all() and (room[at + out.nbytes :] == 77).all()

    region = np.s_[1:, 2:] if len(shape) == 2 or (shape[-1] == 4 and len(shape) == 3) else np.s_[1:, 2:, 3:]
    part = some(array[region].shape, dtype, 1)
    assert part.nbytes > 1 << 20
    image.write(part, region=region)
    array[region] = part
    np.testing.assert_array_equal(image.read(region=region), part)
    np.testing.assert_array_equal(image.read(), array)


def test_arrays_that_only_read(mgr, tmp_path):
    array = some((701, 997, 4), np.uint8)
    image = mgr.image_t(np.zeros_like(array))
    np.save(tmp_path / "a.npy", array)
    image.write(np.load(tmp_path / "a.npy", mmap_mode="r"))
    np.testing.assert_array_equal(image.read(), array)
    image.write(np.frombuffer(bytes(array[::-1].copy()), np.uint8).reshape(array.shape))
    np.testing.assert_array_equal(image.read(), array[::-1])


def test_it_is_ordered_after_work(mgr):
    kernel = mgr.kernel("""#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8ui) uniform uimage2D pixels;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(pixels)))) imageStore(pixels, at, imageLoad(pixels, at) + uvec4(1));
}
""")
    image = mgr.image_t(np.zeros((701, 997, 4), np.uint8))
    for value in range(3):
        image.write(np.full((701, 997, 4), 10 * value, np.uint8))
        for _ in range(3):
            kernel.submit(image, groups=(125, 88, 1))
        assert (image.read() == 10 * value + 3).all()


def test_imports_do_not_stay(mgr):
    array = some((701, 997, 4), np.uint8)
    image = mgr.image_t(array)
    image.read()
    before = [(heap.used, heap.imported, heap.allocations) for heap in mgr.memory.heaps]
    for _, out in itertools.repeat(moved(array, 16), 5):
        image.write(out)
        image.read(out)
    assert [(heap.used, heap.imported, heap.allocations) for heap in mgr.memory.heaps] == before
