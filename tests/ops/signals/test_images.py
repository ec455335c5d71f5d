"""Images as arguments and results of operations, against the same calls over NumPy's arrays."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.errors import InvalidArgumentError

FORMATS = {
    "rgba8": (4, np.uint8), "rgba8ui": (4, np.uint8), "rg8": (2, np.uint8), "r8": (1, np.uint8),
    "rgba32f": (4, np.float32), "r32f": (1, np.float32), "rgba16f": (4, np.float16), "r16i": (1, np.int16),
    "r32ui": (1, np.uint32),
}  # fmt: skip


def _pixels(name: str, shape: tuple[int, ...] = (5, 7), seed: int = 0) -> np.ndarray:
    channels, dtype = FORMATS[name]
    whole = (*shape, channels) if channels > 1 else shape
    values = np.random.default_rng(seed).random(whole) * 200
    return values.astype(dtype)


@pytest.mark.parametrize("name", FORMATS)
def test_by_elements(mgr: kp.Manager, name: str) -> None:
    pixels = _pixels(name)
    image = mgr.image_t(pixels, format=name)
    expected = kp.ops.clip(mgr.tensor_t(pixels), 20, 90).read()
    for _ in range(4):  # prepared calls, too
        result = kp.ops.clip(image, 20, 90)
        assert isinstance(result, kp.Image) and result.format == name
        assert result.dtype == pixels.dtype and np.array_equal(result.read(), expected)
    assert np.array_equal(image.read(), pixels)


def test_dtypes_without_a_format_are_tensors(mgr: kp.Manager) -> None:
    image = mgr.image_t(_pixels("rgba8"))
    bools = kp.ops.greater(image, 100)
    assert isinstance(bools, kp.Tensor) and np.array_equal(bools.read(), image.read() > 100)
    floats = kp.ops.multiply(image, np.float32(0.5))
    assert isinstance(floats, kp.Image) and floats.format == "rgba32f"
    assert np.array_equal(floats.read(), image.read() * np.float32(0.5))


def test_broadcasting_beyond_the_picture_is_a_tensor(mgr: kp.Manager) -> None:
    image = mgr.image_t(_pixels("rgba8"))
    several = np.arange(3, dtype=np.uint8).reshape(3, 1, 1, 1)
    result = kp.ops.add(image, mgr.tensor_t(several))
    assert isinstance(result, kp.Tensor) and np.array_equal(result.read(), image.read() + several)


def test_reductions_and_all_else_give_tensors(mgr: kp.Manager) -> None:
    pixels = _pixels("rgba8")
    image = mgr.image_t(pixels)
    for call, expected in (
        (kp.ops.sum(image, axis=(0, 1)), pixels.sum((0, 1))),
        (kp.ops.mean(image, axis=2), pixels.mean(2)),
        (kp.ops.sort(image, axis=0), np.sort(pixels, 0)),
        (kp.ops.transpose(image), pixels.T),
        (kp.ops.cumsum(image, axis=1), pixels.cumsum(1)),
        (kp.ops.flip(image, 0), pixels[::-1]),
        (kp.ops.bincount(kp.ops.ascontiguousarray(image).reshape(-1)), np.bincount(pixels.ravel())),
        (kp.ops.flatnonzero(image), np.flatnonzero(pixels)),
        (kp.ops.unique(image), np.unique(pixels)),
        (kp.ops.histogram(image, 8)[0], np.histogram(pixels, 8)[0]),
        (kp.ops.ptp(image, axis=0), np.ptp(pixels, 0)),
        (kp.ops.average(image, axis=0, weights=mgr.tensor([1, 2, 3, 4, 5])), None),
        (kp.ops.diff(image, axis=1), np.diff(pixels, axis=1)),
        (kp.ops.nonzero(image)[1], np.nonzero(pixels)[1]),
    ):
        assert isinstance(call, kp.Tensor)
        if expected is not None:
            assert np.allclose(call.read(), expected)


def test_pictures(mgr: kp.Manager) -> None:
    pixels = _pixels("rgba8", (12, 9))
    image = mgr.image(pixels, format="rgba8")
    gray = kp.ops.rgb_to_gray(image)
    assert isinstance(gray, kp.Image) and gray.format == "r8" and (gray.height, gray.width) == (12, 9)
    assert np.array_equal(gray.read(), kp.ops.rgb_to_gray(mgr.tensor_t(pixels)).read())
    small = kp.ops.resize(image, (6, 5, 4), "area")
    assert isinstance(small, kp.Image) and small.format == "rgba8" and (small.height, small.width) == (6, 5)
    assert np.array_equal(small.read(), kp.ops.resize(mgr.tensor_t(pixels), (6, 5, 4), "area").read())
    soft = kp.ops.gaussian_filter1d(image, 1.5, axis=0)
    assert isinstance(soft, kp.Image) and soft.format == "rgba32f"
    assert np.array_equal(soft.read(), kp.ops.gaussian_filter1d(mgr.tensor_t(pixels), 1.5, axis=0).read())
    for one in (kp.ops.rgb_to_hsv, kp.ops.srgb_to_linear, kp.ops.premultiply_alpha, kp.ops.rgb_to_ycbcr):
        result = one(image)
        assert isinstance(result, kp.Image) and np.array_equal(
            result.read(), one(mgr.tensor_t(pixels)).read()
        )


def test_a_result_is_sampled(mgr: kp.Manager) -> None:
    """The results are images like any other."""
    image = mgr.image(_pixels("rgba8", (4, 4)), format="rgba8")
    doubled = kp.ops.resize(image, (8, 8, 4), "nearest")
    kernel = mgr.kernel("""#version 450
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(binding = 0) uniform sampler2D s;
        layout(binding = 1) buffer O { vec4 o[]; };
        void main() {
            ivec2 p = ivec2(gl_GlobalInvocationID.xy);
            o[p.y * 8 + p.x] = texelFetch(s, p, 0);
        }""")
    out = mgr.zeros((8, 8, 4))
    kernel(doubled.sampled(), out, grid=(8, 8))
    assert np.allclose(out.read() * 255, np.repeat(np.repeat(image.read(), 2, 0), 2, 1), atol=1e-3)


@pytest.mark.parametrize("memory_type", ["device", "deviceAndHost", "host", "storage"])
def test_memory_types(mgr: kp.Manager, memory_type: str) -> None:
    pixels = _pixels("rgba32f")
    image = mgr.image_t(pixels, memory_type=memory_type)
    result = kp.ops.negative(image)
    assert result.memory_type() == image.memory_type()
    assert np.array_equal(np.asarray(result.read()), -pixels)


def test_out(mgr: kp.Manager) -> None:
    pixels = _pixels("rgba8")
    image, out = mgr.image_t(pixels), mgr.image_empty((5, 7), "rgba8ui")
    assert kp.ops.invert(image, out=out) is out and np.array_equal(out.read(), ~pixels)
    tensor = mgr.tensor_t(np.zeros_like(pixels))
    assert kp.ops.invert(image, out=tensor) is tensor and np.array_equal(tensor.read(), ~pixels)
    kp.ops.invert(tensor, out=out)  # from a tensor into an image
    assert np.array_equal(out.read(), pixels)
    kp.ops.invert(image, out=image)  # in place
    assert np.array_equal(image.read(), ~pixels)
    array = np.empty_like(pixels)
    kp.ops.invert(image, out=array)
    assert np.array_equal(array, pixels)
    with pytest.raises(InvalidArgumentError, match="result"):
        kp.ops.invert(image, out=mgr.image_empty((5, 6), "rgba8ui"))


@kp.CustomOp.register
class count_up(kp.CustomOp):
    signature = "count_up(Tensor(a!) x) -> Tensor(a!)"

    def select(self, ksel: kp.FunctionSelection) -> None:
        ksel.return_tensor(ksel.arg_tensor("x", inplace_tied=True))

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        kb.workgroup(64)
        kb.groups(kb.ceil_div(kb.arg_value("x").size, 64))
        kb.emit("uint i = gl_GlobalInvocationID.x; if (i < x_size) x_store(i, x_load(i) + 1);")


def test_arguments_that_are_written(mgr: kp.Manager) -> None:
    pixels = _pixels("rgba8", (5, 7))
    image = mgr.image_t(pixels)
    for number in range(1, 5):
        assert count_up(image) is image
        assert np.array_equal(image.read(), pixels + number)
    seq = mgr.sequence().record(count_up.op(image))
    for number in range(5, 8):
        seq.eval()
        assert np.array_equal(image.read(), pixels + number)


def test_recorded(mgr: kp.Manager) -> None:
    image, out = mgr.image_t(_pixels("rgba8")), mgr.image_empty((5, 7), "rgba8ui")
    first = kp.ops.invert.op(image, out=out)
    second = kp.ops.rgb_to_gray.op(out)
    (gray,) = second.results
    assert isinstance(gray, kp.Image)
    seq = mgr.sequence().record(first).record(second)
    for seed in range(3):
        pixels = _pixels("rgba8", seed=seed)
        image.write(pixels)
        seq.eval()
        assert np.array_equal(out.read(), ~pixels)
        assert np.array_equal(gray.read(), kp.ops.rgb_to_gray(mgr.tensor_t(~pixels)).read())
    mgr.sequence().eval(kp.ops.invert.op(out, out=image))
    assert np.array_equal(image.read(), pixels)
    kp.ops.invert.submit(image, out=out).wait()
    assert np.array_equal(out.read(), ~pixels)


@pytest.mark.parametrize("options", [{"dims": 1}, {"dims": 3}, {"layers": True}, {"dims": 1, "layers": True}])
def test_other_dimensions(mgr: kp.Manager, options: dict) -> None:
    shape = (6,) if options == {"dims": 1} else (3, 6) if options.get("dims") == 1 else (3, 4, 6)
    pixels = _pixels("rgba8", shape)
    image = mgr.image_t(pixels, **options)
    result = kp.ops.invert(image)
    assert isinstance(result, kp.Image)
    assert (result.dims, result.layers) == (image.dims, image.layers)
    assert np.array_equal(result.read(), ~pixels)


def test_one_channel_with_an_axis(mgr: kp.Manager) -> None:
    pixels = _pixels("r32f")[..., None]
    image = mgr.image_t(pixels)
    assert image.shape == (5, 7, 1)
    assert np.array_equal(kp.ops.negative(image).read(), -pixels)


def test_a_list_of_images(mgr: kp.Manager) -> None:
    a, b = _pixels("rgba8"), _pixels("rgba8", seed=1)
    result = kp.ops.concatenate([mgr.image_t(a), mgr.tensor_t(b)], axis=0)
    assert np.array_equal(result.read(), np.concatenate([a, b]))
    result = kp.ops.stack([mgr.image_t(a), mgr.image_t(b)])
    assert np.array_equal(result.read(), np.stack([a, b]))


def test_beyond_a_binding(mgr: kp.Manager) -> None:
    """More bytes than shaders see of one binding, which images may have."""
    most = mgr.get_device_properties()["limits"]["maxStorageBufferRange"]
    side = mgr.get_device_properties()["limits"]["maxImageDimension2D"]
    rows = most // (16 * side) + 1
    if rows > side or rows * side * 16 > 2**29:
        rows = 0  # nothing to test: this device binds what images can have
    if not rows:
        assert most >= 2**28
        return
    pixels = np.zeros((rows, side, 4), np.float32)
    pixels[::7, ::5] = 3
    result = kp.ops.add(mgr.image_t(pixels), np.float32(1))
    assert isinstance(result, kp.Image) and np.array_equal(result.read(), pixels + 1)
    with pytest.raises(InvalidArgumentError, match="maxStorageBufferRange"):
        kp.ops.cumsum(mgr.image_t(pixels), axis=0)


def test_refused(mgr: kp.Manager) -> None:
    image = mgr.image_t(_pixels("rgba8"))
    other = kp.Manager()
    with pytest.raises(InvalidArgumentError, match="two Managers"):
        kp.ops.add(image, other.image_t(_pixels("rgba8")))
    with pytest.raises(InvalidArgumentError, match="donated"):
        kp.ops.invert(image, donate="x")
    gone = mgr.image_t(_pixels("rgba8"))
    gone.destroy()
    for _ in range(3):
        with pytest.raises(kp.errors.FailedPreconditionError, match="destroyed"):
            kp.ops.invert(gone)
    other.destroy()


def test_specs_and_preload(mgr: kp.Manager) -> None:
    image = mgr.image_t(_pixels("rgba8"))
    assert kp.ops.rgb_to_gray.meta(image) == kp.TensorSpec((5, 7), np.uint8)
    kp.ops.rgb_to_hsv.preload(image)
    kp.tune(kp.ops.reduction(), image)
    assert kp.ops.reduction()(image).item() == image.read().sum()
