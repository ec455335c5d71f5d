"""Images of every dimension, as arrays of layers, of every format; regions of them, and copies of regions."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._base.texels import parse_format
from tests.drivers import null_control
from tests.support.child import run_child

KINDS = [
    ({"dims": 1}, (9,)), ({"dims": 1, "layers": True}, (4, 9)), ({}, (5, 7)), ({"layers": True}, (3, 5, 7)),
    ({"dims": 3}, (3, 4, 5)),
]  # fmt: skip
compiled = functools.cache(kp.compile)


def counting(*shape, dtype=np.float32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize(("kind", "axes"), KINDS)
def test_there_and_back(mgr, kind, axes, channels, memory_type):
    data = counting(*axes, channels)
    image = mgr.image_t(data, memory_type=memory_type, **kind)
    assert image.shape == data.shape and image.num_channels == channels and image.dims == kind.get("dims", 2)
    assert image.layers == (axes[0] if kind.get("layers") else None) and image.width == axes[-1]
    seq = mgr.sequence().record(kp.OpSyncDevice([image])).eval()
    np.testing.assert_array_equal(image.read(), data)
    image.write(data + 1)
    seq.eval(kp.OpSyncLocal([image]))
    np.testing.assert_array_equal(image.read(), data + 1)
    if memory_type is not kp.MemoryTypes.storage:
        np.testing.assert_array_equal(image.numpy(), data + 1)


@pytest.mark.parametrize(("kind", "axes"), KINDS)
def test_regions(mgr, kind, axes):
    data = counting(*axes, 2)
    image = mgr.image_t(data, **kind)
    mgr.sequence().eval(kp.OpSyncDevice([image]))
    parts = [slice(1, 3), slice(-2, None), 1, slice(None)]
    for key in itertools.product(parts, repeat=len(axes)):
        np.testing.assert_array_equal(image.read(region=key), data[key])
        image.write(data[key] + 0.5, region=key)
        data[key] += 0.5
    np.testing.assert_array_equal(image.read(), data)
    np.testing.assert_array_equal(image.read(region=-1), data[-1])
    np.testing.assert_array_equal(image.read(region=np.s_[..., 2]), data[..., 2, :])
    out = np.empty_like(data[1])
    assert image.read(out, region=1) is out
    np.testing.assert_array_equal(out, data[1])


def test_wrong_regions(mgr):
    image = mgr.image(np.zeros((5, 7)))
    image.name = "picture"
    for region, error in (
        (5, kp.OutOfRangeError),
        (np.s_[0, 0, 0], kp.OutOfRangeError),
        (np.s_[3:3], kp.InvalidArgumentError),
        (np.s_[::2], kp.UnimplementedError),
        ([1, 2], kp.ArgumentTypeError),
        (True, kp.ArgumentTypeError),
        (1.0, kp.ArgumentTypeError),
    ):
        with pytest.raises(error, match="'picture'"):
            image.read(region=region)
        with pytest.raises(error, match="'picture'"):
            image.write(0, region=region)
    with pytest.raises(kp.InvalidArgumentError, match="4 elements"):
        image.write([1, 2], region=np.s_[0:2, 0:2])


@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_images_beyond_the_staging_ring(mgr, memory_type):
    """11 MiB, in rows that are no power of two: the pieces begin and end in the middle of planes."""
    data = np.random.default_rng(1).integers(0, 2**16, (3, 601, 1571, 2), np.uint16)
    image = mgr.image_t(data, memory_type=memory_type, layers=True)
    image.write(data)
    np.testing.assert_array_equal(image.read(), data)
    key = np.s_[1:3, 5:600, 3:1570]
    image.write(data[key][::-1], region=key)
    np.testing.assert_array_equal(image.read(region=key), data[key][::-1])
    np.testing.assert_array_equal(image.read(region=0), data[0])


FORMATS = [
    "r8", "r8_snorm", "r8ui", "r8i", "r16", "r16_snorm", "r16ui", "r16i", "r16f", "r32ui", "r32i", "r32f",
    "rg8", "rg8_snorm", "rg8ui", "rg8i", "rg16", "rg16_snorm", "rg16ui", "rg16i", "rg16f", "rg32ui", "rg32i",
    "rg32f", "rgba8", "rgba8_snorm", "rgba8ui", "rgba8i", "rgba16", "rgba16_snorm", "rgba16ui", "rgba16i",
    "rgba16f", "rgba32ui", "rgba32i", "rgba32f", "r64ui", "r64i", "sr8", "srg8", "srgba8", "bgra8", "sbgra8",
    "rgb10_a2", "rgb10_a2ui", "r11f_g11f_b10f", "rgb9_e5",
]  # fmt: skip


def test_every_format_of_the_device(mgr):
    offered = mgr.image_formats()
    assert "store" in offered["rgba32f"] and "sample" in offered["rgba8"]
    made = 0
    assert set(offered) <= set(FORMATS)
    for form in map(parse_format, FORMATS):
        shape = (3, 4) if form.channels == 1 else (3, 4, form.channels)
        data = np.random.default_rng(2).integers(0, 100, shape).astype(form.component)
        if not {"store", "sample"} & set(offered.get(form.name, ())):
            with pytest.raises(kp.UnimplementedError, match=form.name):
                mgr.image_t(data, format=form.name)
            continue
        made += 1
        image = mgr.image_t(data, format=form.vulkan, memory_type="storage")
        assert image.format == form.name and image.storable is ("store" in offered[form.name])
        np.testing.assert_array_equal(image.read(), data)
    assert made > 20


def test_shape_only(mgr):
    image = mgr.image_empty((4, 6), "rgba8")
    assert image.shape == (4, 6, 4) and image.dtype == np.uint8 and image.format == "rgba8"
    image.write(np.full((4, 6, 4), 9))
    assert set(image.read().reshape(-1)) == {9}
    assert mgr.image_empty(5, "r32f", dims=1).shape == (5,)
    assert mgr.image_empty((2, 3, 4), "r32f", dims=3).depth == 2
    assert mgr.image_empty((2, 3, 4), "r32f", layers=True).layers == 2
    with pytest.raises(kp.InvalidArgumentError, match="axes"):
        mgr.image_empty((2, 3, 4), "r32f")
    with pytest.raises(kp.InvalidArgumentError, match="no image format"):
        mgr.image_empty((2, 3), "rgb8")


def test_sizes_that_contradict(mgr):
    data = counting(4, 6)
    for arguments, match in (
        ({"data": counting(4, 6, 1), "width": 4, "height": 6}, "contradicts"),
        ({"data": data, "dims": 4}, "1, 2 or 3"),
        ({"data": data, "dims": 3, "layers": 2}, "no layers"),
        ({"data": data, "dims": 1, "height": 4}, "no height"),
        ({"data": data, "depth": 4}, "no depth"),
        ({"data": counting(24), "dims": 3, "width": 4, "height": 3}, "depth"),
        ({"data": data, "layers": 0}, "layers is 0"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=match):
            mgr.image(**arguments)
    assert mgr.image(counting(24), 2, 3, depth=4, dims=3).shape == (4, 3, 2)
    assert mgr.image(counting(24), 4, 3, layers=2).shape == (2, 3, 4)
    limit = mgr.get_device_properties()["limits"]["maxImageArrayLayers"]
    with pytest.raises(kp.InvalidArgumentError, match="maxImageArrayLayers"):
        mgr.image_empty((limit + 1, 1, 1), "r32f", layers=True)


# -- copies of regions ---------------------------------------------------------------------------------------


def test_copies_of_regions(mgr):
    a, b = counting(6, 8), np.zeros((3, 6, 8), np.float32)
    source, target = mgr.image_t(a), mgr.image_t(b, layers=True)
    t = mgr.tensor(np.zeros(40))
    mgr.sequence().eval(kp.OpSyncDevice([source, target, t]))
    (
        mgr.sequence()
        .record(
            kp.OpCopyRegion(source, target, source_region=np.s_[1:3, 2:6], target_region=np.s_[2, 4:6, 0:4])
        )
        .record(kp.OpCopyRegion(source, t[4:12], source_region=np.s_[4:6, 4:8]))
        .record(kp.OpCopyRegion(t[4:10], target, target_region=np.s_[0, 0:3, 6:8]))
        .record(kp.OpCopyRegion(target, target, source_region=np.s_[0, 0:3], target_region=np.s_[1, 3:6]))
        .record(kp.OpCopyRegion(source, source, source_region=np.s_[0:1], target_region=np.s_[5:6]))
        .eval()
    )
    flat = np.zeros(40, np.float32)
    b[2, 4:6, 0:4] = a[1:3, 2:6]
    flat[4:12] = a[4:6, 4:8].reshape(-1)
    b[0, 0:3, 6:8] = flat[4:10].reshape(3, 2)
    b[1, 3:6] = b[0, 0:3]
    a[5] = a[0]
    np.testing.assert_array_equal(target.read(), b)
    np.testing.assert_array_equal(t.read(), flat)
    np.testing.assert_array_equal(source.read(), a)


def test_copies_that_cannot_be(mgr):
    a, b = mgr.image_t(counting(6, 8)), mgr.image_t(counting(6, 8, dtype=np.uint8))
    t = mgr.zeros(8)
    for arguments, error, match in (
        ((a, a), kp.InvalidArgumentError, "onto itself"),
        ((a, b), kp.InvalidArgumentError, "texels of different size"),
        ((a, t), kp.InvalidArgumentError, "equal sizes"),
        ((t, t), kp.ArgumentTypeError, "OpCopy"),
        ((a, np.zeros(3)), kp.ArgumentTypeError, "target is an ndarray"),
    ):
        with pytest.raises(error, match=match):
            kp.OpCopyRegion(*arguments)
    with pytest.raises(kp.ArgumentTypeError, match="view"):
        kp.OpCopyRegion(a, t, target_region=np.s_[0:1])
    with pytest.raises(kp.InvalidArgumentError, match="one size"):
        kp.OpCopyRegion(a, mgr.image_t(counting(6, 9)), source_region=np.s_[0:2])
    with pytest.raises(kp.InvalidArgumentError, match="multiple of 4"):
        kp.OpCopyRegion(b, mgr.zeros(9, np.uint8)[1:], source_region=np.s_[0:1])


# -- what shaders see ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "axes"), KINDS)
def test_storage_images_of_every_kind(mgr, kind, axes):
    name = f"image{kind.get('dims', 2)}D{'Array' if kind.get('layers') else ''}"
    at = {"image1D": "int(p.x)", "image1DArray": "ivec2(p.xy)", "image2D": "ivec2(p.xy)"}.get(
        name, "ivec3(p)"
    )
    double = mgr.kernel(
        f"""
        #version 450
        layout(set = 0, binding = 0, r32f) uniform {name} texels;
        void main() {{ uvec3 p = gl_GlobalInvocationID;
        imageStore(texels, {at}, 2.0 * imageLoad(texels, {at})); }}
        """
    )
    data = counting(*axes)
    image = mgr.image_t(data, **kind)
    double(image)
    np.testing.assert_array_equal(image.read(), data * 2)
    other = mgr.image_t(counting(2, 2, 2), dims=3) if name != "image3D" else mgr.image_t(counting(2, 2))
    with pytest.raises(kp.InvalidArgumentError, match=r"is image\dD(Array)?; .* is image\dD"):
        double(other)


def test_pillow(mgr):
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(3).integers(0, 256, (6, 9, 4), np.uint8)
    picture = pillow.fromarray(pixels)
    image = mgr.image(picture, format="rgba8")
    mgr.sequence().eval(kp.OpSyncDevice([image]))
    np.testing.assert_array_equal(np.asarray(image.to_pil()), pixels)
    grey = mgr.image(pillow.fromarray(pixels[..., 0]))
    mgr.sequence().eval(kp.OpSyncDevice([grey]))
    assert grey.to_pil().mode == "L"
    np.testing.assert_array_equal(np.asarray(grey.to_pil()), pixels[..., 0])
    floats = mgr.image(np.array([[0, 0.5], [1, 2]]))
    floats.write(np.array([[0, 0.5], [1, 2]]))
    assert np.asarray(floats.to_pil()).tolist() == [[0, 128], [255, 255]]
    with pytest.raises(kp.InvalidArgumentError, match="8 bits"):
        mgr.image_t(counting(2, 2, dtype=np.int32)).to_pil()
    with pytest.raises(kp.InvalidArgumentError, match="not a single picture"):
        mgr.image_empty((2, 2, 2), "rgba8", layers=True).to_pil()


@pytest.mark.parametrize("memory_type", ["host", "deviceAndHost"])
@pytest.mark.parametrize(
    ("shape", "options"),
    [((7,), {"dims": 1}), ((3, 7), {"dims": 1, "layers": True}), ((5, 6, 2), {}), ((3, 5, 6), {"dims": 3}),
    ((3, 5, 6, 2), {"layers": True})],
)  # fmt: skip
def test_both_sides_hold_what_a_region_wrote(mgr, shape, options, memory_type):
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    image = mgr.image(data, memory_type=memory_type, **options)
    image.write(data)
    for region in (np.s_[1:3], 2):
        data[region] += 100
        image.write(data[region], region=region)
        np.testing.assert_array_equal(image.numpy(), data)
    mgr.sequence().eval(kp.OpSyncDevice([image]))  # uploads the host's side, where there are two
    np.testing.assert_array_equal(image.read(), data)


def test_sizes_that_turn_the_data_are_refused(mgr):
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    for channels in (None, 1):
        with pytest.raises(kp.InvalidArgumentError, match="contradicts"):
            mgr.image(data, 2, 3, channels)
    assert mgr.image(data, 3, 2).shape == (2, 3)
    many = np.arange(24, dtype=np.float32)
    assert mgr.image(many.reshape(6, 4), 3, 2, 4).shape == (2, 3, 4)  # a row for each texel
    assert mgr.image(many.reshape(2, 12), 3, 2, 4).shape == (2, 3, 4)  # a row for each row
    assert mgr.image(many.reshape(24, 1), 6, 4).shape == (4, 6)


# -- making an image does not wait ---------------------------------------------------------------------------


def check_no_wait():
    """Each submission takes 0.3 s: images are made while the queue is busy, and their work comes in order."""
    with kp.Manager() as mgr:
        t = mgr.empty(16)
        seq = mgr.sequence().record(kp.OpFill([t], 1.0))
        seq.eval_async()
        images = [mgr.image(np.full((4, 4), i)) for i in range(3)]
        assert not seq.is_complete()
        images.pop().destroy()
        mgr.sequence().eval(kp.OpSyncDevice(images))
        assert images[1].read().tolist() == np.full((4, 4), 1).tolist()
    control = null_control()
    assert not control.violations() and control.live("VkImage") == 0 == control.live("VkCommandPool")


@pytest.mark.own_driver
def test_making_an_image_does_not_wait():
    run_child(check_no_wait, driver="null", config="gpu_us=300000")


@pytest.mark.parametrize("shape", [(2**32, 4), (4, 2**40), (2**64, 2**64)])
def test_a_size_that_no_number_of_vulkans_holds_is_named_as_given(mgr, shape):
    with pytest.raises(kp.InvalidArgumentError, match=f"is {max(shape)}; no image"):
        mgr.image_empty(shape)
