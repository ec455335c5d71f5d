"""OpFill and fill() of images: each format, kind and size, and the order with other work."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

DRAW = """
#version 450
layout(local_size_x = 8) in;
layout(binding = 0, rgba8) uniform writeonly image2D picture;
void main() { imageStore(picture, ivec2(gl_GlobalInvocationID.x, 1), vec4(1)); }"""


def test_texels_have_the_bytes_of_the_value_in_each_format(mgr, clean):
    random = np.random.default_rng(1)
    formats = mgr.image_formats()
    assert {"rgba8", "r32f", "rgba32ui"} <= formats.keys()
    for format in formats:
        image = mgr.image_empty((3, 5), format)
        bits = random.integers(0, 100, (image.num_channels, image.dtype.itemsize), np.uint8)
        texel = bits.view(image.dtype)[:, 0]
        image.fill(texel)
        found = image.read().reshape(15, -1)
        np.testing.assert_array_equal(found, np.broadcast_to(texel, found.shape), format)
        image.fill(0)
        assert not image.read().any()
        image.fill(3)
        assert (image.read() == 3).all()


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((700,), {"dims": 1}),
        ((700, 900), {}),  # more than a piece: in rows
        ((5, 300, 400), {"layers": True}),
        ((70, 80, 90), {"dims": 3}),
        ((6, 20), {"dims": 1, "layers": True}),
    ],
)
def test_kinds_and_sizes(mgr, clean, shape, options):
    image = mgr.image(np.ones((*shape, 4), np.uint8), format="rgba8", **options)
    mgr.sequence().record(kp.OpFill([image], [1, 20, 255, 4])).eval()
    np.testing.assert_array_equal(image.read(), np.broadcast_to(np.uint8([1, 20, 255, 4]), (*shape, 4)))
    assert (image.data() == 1).all()  # the host copy


@pytest.mark.capability("", "images filled on the device", "OpFill, Image.fill", "guides/images")
def test_a_recording_clears_and_draws(mgr, clean):
    picture, sums = mgr.image(np.full((3, 8, 4), 9, np.uint8), format="rgba8"), mgr.zeros(4)
    draw = mgr.kernel(DRAW).bind(picture)
    sequence = mgr.sequence().record(kp.OpFill([picture, sums], 0), draw)
    for _ in range(2):
        picture.fill([1, 2, 3, 4])
        sequence.eval()
        found = picture.read()
        assert (found[1] == 255).all() and not found[[0, 2]].any()
    after = mgr.sequence().record(draw, kp.OpFill([picture], (5, 6, 7)))
    after.eval()
    assert (picture.read() == (5, 6, 7, 255)).all()
    program = kp.Program.record(kp.OpFill([picture], b"\1\2\3\4"), outputs={"picture": picture})
    assert (program.on(mgr).main() == (1, 2, 3, 4)).all()


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (b"12345678", kp.InvalidArgumentError, "pattern of 8: the pattern must fit a texel"),
        ([1, 2], kp.InvalidArgumentError, "holds 4 elements; the data has 2"),
        ([1, 2, 3, 256], kp.InvalidArgumentError, "range 1 to 256 does not fit"),
        (256, kp.InvalidArgumentError, "256"),
        (np.zeros((2, 2)), kp.ArgumentTypeError, "not a single element"),
    ],
)
def test_values_that_do_not_fit(mgr, clean, value, kind, message):
    image = mgr.image(np.ones((2, 2, 4), np.uint8), format="rgba8")
    with pytest.raises(kind, match=message):
        image.fill(value)
    with pytest.raises(kind, match=message):
        kp.OpFill([image], value)
    assert (image.read() == 1).all()


def test_the_same_image_twice_with_other_values(mgr, clean):
    image = mgr.image(np.ones((2, 2), np.float32))
    mgr.sequence().record(kp.OpFill([image, image], 2)).eval()
    assert (image.read() == 2).all()
    with pytest.raises(kp.ArgumentTypeError, match=r"t\.fill\(value\) for all"):
        image[...] = 0
