"""Images: sizes, formats, transfers, and what shaders see."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._base.texels import parse_format

MEMORY_TYPES = list(kp.MemoryTypes.__members__)


def pattern(height, width, channels, dtype):
    values = np.arange(height * width * channels).reshape(height, width, channels)
    return (values % 100).astype(dtype)


@pytest.mark.capability("I5 K71", "images", "Manager.image, Manager.image_t", "guides/images")
@pytest.mark.parametrize("memory_type", MEMORY_TYPES)
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32"])
def test_there_and_back(mgr, dtype, channels, memory_type):
    data = pattern(5, 7, channels, dtype)
    image = mgr.image_t(data, memory_type=memory_type)
    assert (image.width, image.height, image.num_channels) == (7, 5, channels)
    assert (
        image.size() == data.size == len(image) and image.dtype == data.dtype and image.nbytes == data.nbytes
    )
    assert image.memory_type() is kp.MemoryTypes[memory_type]
    seq = mgr.sequence().record(kp.OpSyncDevice([image])).eval()
    np.testing.assert_array_equal(image.read(), data)
    if memory_type == "device":
        image.data()[:] = 0
        seq.eval(kp.OpSyncLocal([image]))
        np.testing.assert_array_equal(image.numpy(), data)
    image.write(data[::-1])
    np.testing.assert_array_equal(image.read(), data[::-1])


def test_forms_of_arguments(mgr):
    flat = np.arange(24, dtype=np.float32)
    image = mgr.image(flat, 3, 2, 4, kp.MemoryTypes.host)
    assert image.shape == (2, 3, 4) and image.memory_type() is kp.MemoryTypes.host
    np.testing.assert_array_equal(image.data(), flat)
    assert image.data().base is image and isinstance(image, kp.Memory)
    assert mgr.image(flat, width=6, height=4).num_channels == 1
    assert mgr.image(flat.reshape(4, 6)).shape == (4, 6)
    assert (
        mgr.image(flat.reshape(4, 6), num_channels=1, tensor_type="host").memory_type() is kp.MemoryTypes.host
    )
    assert mgr.image([[1, 2], [3, 4]]).dtype == np.float32
    assert kp.Image(mgr, flat.reshape(2, 3, 4), memory_type="storage").num_channels == 4


def test_uint8_stays_integer(mgr):
    data = pattern(2, 2, 4, np.uint8)
    assert mgr.image(data).dtype == np.uint8
    assert mgr.image(data).vk_format != mgr.image(data, format="rgba8").vk_format
    assert mgr.image(data.astype(np.uint16)).dtype == np.float32


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rgba8", (4, "uint8", True)), ("r8", (1, "uint8", True)), ("rg8_snorm", (2, "int8", True)),
        ("rgba8ui", (4, "uint8", False)), ("r16i", (1, "int16", False)), ("rgba16", (4, "uint16", True)),
        ("rg16f", (2, "float16", False)), ("r32f", (1, "float32", False)), ("rgba32ui", (4, "uint32", False)),
    ],
)  # fmt: skip
def test_format_names(name, expected):
    found = parse_format(name)
    normalized = found.scalar == "float" and not found.component.startswith("float")
    assert (found.channels, found.component, normalized) == expected
    assert parse_format(found.vulkan) is found is parse_format(f"VK_FORMAT_{found.vulkan}")


@pytest.mark.parametrize(
    ("name", "dtype", "scaled"),
    [
        ("r8", "float64", "(data * 255).astype(np.uint8)"),
        ("r16", "float32", "(data * 65535).astype(np.uint16)"),
        ("rgba8", "bool", "(data * 255).astype(np.uint8)"),
        ("r8", "uint16", None), ("r8ui", "float64", None), ("r16f", "float64", None),
    ],
)  # fmt: skip
def test_floats_for_a_normalized_format_are_scaled(mgr, name, dtype, scaled):
    with pytest.raises(kp.ArgumentTypeError, match="the data has") as caught:
        mgr.image_t(np.ones((2, 2, 4) if name == "rgba8" else (2, 2), dtype), format=name)
    assert (scaled or ".astype(np.") in str(caught.value)
    assert ("from 0 to 1" in str(caught.value)) == (scaled is not None)


@pytest.mark.parametrize(
    "name", ["", "rgb8", "rgba8f", "r32", "r32_snorm", "rgba", "RGBA8", "r64f", "rgba8 "]
)
def test_unknown_formats(mgr, name):
    with pytest.raises(kp.InvalidArgumentError, match="GLSL"):
        mgr.image(np.zeros((1, 1), np.uint8), format=name)


def test_checks(mgr):
    with pytest.raises(kp.InvalidArgumentError, match="1, 2 or 4"):
        mgr.image(np.zeros((2, 2, 5)))
    with pytest.raises(kp.InvalidArgumentError, match="width and height"):
        mgr.image(np.zeros(4))
    with pytest.raises(kp.InvalidArgumentError, match=r"12 components.*16"):
        mgr.image(np.zeros(16), 4, 3, 1)
    with pytest.raises(kp.InvalidArgumentError, match="width is 0"):
        mgr.image(np.zeros(4), 0, 3, 1)
    with pytest.raises(kp.ArgumentTypeError, match="width"):
        mgr.image(np.zeros(4), 2.0, 2, 1)
    with pytest.raises(kp.InvalidArgumentError, match="empty"):
        mgr.image(np.zeros((0, 2)))
    with pytest.raises(kp.ArgumentTypeError, match="float64"):
        mgr.image_t(np.zeros((2, 2)))
    with pytest.raises(kp.ArgumentTypeError, match="uint8"):
        mgr.image(np.zeros((2, 2, 4)), format="rgba8")
    with pytest.raises(kp.InvalidArgumentError, match="4 channels"):
        mgr.image(np.zeros((2, 2), np.uint8), format="rgba8")
    limit = mgr.get_device_properties().limits["maxImageDimension2D"]
    with pytest.raises(kp.InvalidArgumentError, match="maxImageDimension2D"):
        mgr.image(np.zeros(limit + 1), limit + 1, 1, 1)


OPAQUE = {"uint8": 255, "int8": 127, "uint16": 65535, "int16": 32767, "uint32": 2**32 - 1, "int32": 2**31 - 1,
          "float16": 1, "float32": 1}  # fmt: skip


@pytest.mark.parametrize("dtype", OPAQUE)
def test_three_channels_become_four_with_an_opaque_alpha(mgr, dtype):
    photo = pattern(4, 5, 3, np.dtype(dtype))
    wanted = np.concatenate([photo, np.full((4, 5, 1), OPAQUE[dtype], dtype)], axis=-1)
    kept = mgr.image_t if dtype != "uint8" else mgr.image
    images = [
        kept(photo), kept(photo, 5, 4, 3), kept(photo.reshape(-1), 5, 4, 3), kept(photo, num_channels=4),
    ]  # fmt: skip
    images += [kp.Image(mgr, photo, memory_type="storage"), kept(photo[:, ::-1])]
    for image in images:
        assert image.num_channels == 4 and image.shape == (4, 5, 4) and image.dtype == dtype
        flipped = image is images[-1]
        np.testing.assert_array_equal(image.read(), wanted[:, ::-1] if flipped else wanted)
    image = images[0]
    np.testing.assert_array_equal(image.numpy(), wanted)
    image.write(photo[::-1])
    np.testing.assert_array_equal(image.read(), wanted[::-1])
    image.write(photo[:2, 1], region=np.s_[2:, 3])
    image.write(photo[0, 0], region=(0, 0))
    now = wanted[::-1].copy()
    now[2:, 3], now[0, 0] = wanted[:2, 1], wanted[0, 0]
    np.testing.assert_array_equal(image.read(), now)


def test_three_channels_in_each_format_and_of_each_kind(mgr):
    photo = pattern(4, 5, 3, np.uint8)
    for name, data, alpha in (
        ("rgba8", photo, 255),
        ("rgba8_snorm", photo.astype(np.int8), 127),
        ("rgba16", photo.astype(np.uint16), 65535),
        ("rgba32f", photo.astype(np.float32), 1),
    ):
        try:
            image = mgr.image(data, format=name)
        except kp.UnimplementedError:
            continue
        assert image.format == name and (image.read()[..., 3] == alpha).all()
        np.testing.assert_array_equal(image.read()[..., :3], data)
    converted = mgr.image(photo.astype(np.float64))  # converted to float32 first
    assert converted.dtype == np.float32 and (converted.read()[..., 3] == 1).all()
    layers = mgr.image_t(np.stack([photo, photo + 1]), layers=True)
    assert layers.shape == (2, 4, 5, 4) and (layers.read()[..., 3] == 255).all()
    with pytest.raises(kp.InvalidArgumentError, match="rg8 has 2 channels; the data has 3"):
        mgr.image(photo, format="rg8")
    with pytest.raises(kp.InvalidArgumentError, match=r"rgba8 has 4 channels; the data has one.*np.stack"):
        mgr.image(photo[..., 0], format="rgba8")
    stacked = mgr.image(np.stack([photo[..., 0]] * 3, axis=-1), format="rgba8")
    assert stacked.shape == (4, 5, 4)
    with pytest.raises(kp.InvalidArgumentError, match="45 components; the data has 60"):
        mgr.image_t(photo.reshape(-1), 5, 3, 3)
    grey = mgr.image_t(np.ones((4, 3), np.uint8))  # three texels in a row, not three channels
    assert grey.shape == (4, 3) and grey.num_channels == 1
    four = mgr.image_t(np.zeros((2, 3, 4), np.uint8))
    with pytest.raises(kp.InvalidArgumentError, match="24 elements"):
        four.write(np.zeros((3, 2, 3), np.uint8))
    with pytest.raises(kp.InvalidArgumentError, match="does not fit"):
        four.write(np.full((2, 3, 3), 300))


def test_pillow_photographs_become_images(mgr):
    pillow = pytest.importorskip("PIL.Image")
    photo = pattern(4, 5, 3, np.uint8)
    image = mgr.image(pillow.fromarray(photo), format="rgba8")
    np.testing.assert_array_equal(np.asarray(image.to_pil().convert("RGB")), photo)
    assert image.to_pil().mode == "RGBA" and (np.asarray(image.to_pil())[..., 3] == 255).all()


def test_a_filtered_photograph_is_no_picture_from_0_to_1(mgr):
    pytest.importorskip("PIL")
    floats = mgr.image(np.full((4, 4, 4), 200, np.float32))
    with pytest.warns(kp.KomputeWarning, match="values up to 200, and to_pil takes floats from 0 to 1"):
        assert np.asarray(floats.to_pil()).min() == 255
    again = kp.ops.astype(kp.ops.rint(floats), np.uint8)
    np.testing.assert_array_equal(np.asarray(again.to_pil()), 200)


def test_copies(mgr):
    data = pattern(3, 4, 1, np.float32)
    a, b, t = mgr.image_t(data), mgr.image_t(np.zeros_like(data)), mgr.zeros(12)
    mgr.sequence().record(kp.OpSyncDevice([a])).record(kp.OpCopy([a, b, t])).eval()
    np.testing.assert_array_equal(b.read(), data)
    np.testing.assert_array_equal(t.read(), data.ravel())
    t.write(np.arange(12) + 50)
    mgr.sequence().record(kp.OpCopy([t, b])).eval()
    np.testing.assert_array_equal(b.read().ravel(), np.arange(12) + 50)


INVERT = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, rgba8) readonly uniform image2D source;
layout(set = 0, binding = 1, rgba8) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, 1.0 - imageLoad(source, at));
}
"""
ADD = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2D picture;
layout(set = 0, binding = 1) buffer Sum { uint sum; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    uint value = imageLoad(picture, at).r;
    atomicAdd(sum, value);
    imageStore(picture, at, uvec4(value + 1));
}
"""


def test_unorm_images_in_a_shader(mgr):
    data = pattern(6, 5, 4, np.uint8)
    source = mgr.image(data, format="rgba8")
    target = mgr.image(np.zeros_like(data), format="rgba8", memory_type="storage")
    algorithm = mgr.algorithm([source, target], kp.compile(INVERT), (5, 6, 1))
    mgr.sequence().record(kp.OpSyncDevice([source])).record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_array_equal(target.read(), 255 - data)


@pytest.mark.parametrize("memory_type", MEMORY_TYPES)
def test_integer_images_in_a_shader(mgr, memory_type):
    data = pattern(4, 3, 1, np.uint32)
    picture, total = mgr.image_t(data, memory_type=memory_type), mgr.zeros(1, np.uint32)
    algorithm = mgr.algorithm([picture, total], kp.compile(ADD), (3, 4, 1))
    dispatch = kp.OpAlgoDispatch(algorithm)
    seq = mgr.sequence().record(kp.OpSyncDevice([picture, total])).record(dispatch).record(dispatch)
    seq.record(kp.OpSyncLocal([total])).eval()
    assert total.data()[0] == 2 * data.sum() + data.size
    np.testing.assert_array_equal(picture.read(), data + 2)


def test_after_destroy(mgr):
    image = mgr.image(np.ones((2, 2)))
    view = image.data()
    assert image.vk_image > 0 and image.vk_image_view > 0 and image.vk_format > 0 and "(2, 2)" in repr(image)
    image.destroy()
    assert not image.is_init() and image.size() == 0
    with pytest.raises(kp.FailedPreconditionError):
        image.data()
    np.testing.assert_array_equal(view, np.ones(4))


def test_pictures_with_a_palette(mgr):
    """Their numbers are indices of colours, which an image would show as grey."""
    from PIL import Image

    picture = Image.new("RGB", (6, 4), (200, 100, 50))
    made = mgr.image(picture)
    assert made.read().shape == (4, 6, 4) and made.read()[0, 0].tolist() == [200, 100, 50, 255]
    for mode in ("P", "PA"):
        for call in (mgr.image, mgr.image_t, made.write):
            with pytest.raises(kp.ArgumentTypeError, match=r"palette.*convert"):
                call(picture.convert("P").convert(mode))
    made.write(picture.convert("RGBA"))
    assert made.read()[0, 0].tolist() == [200, 100, 50, 255]
