"""Sampled images: filters and what lies beyond the edge, against NumPy; bindings of several sets and arrays
of bindings.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.each_driver

SAMPLE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 1) readonly buffer At { vec2 at[]; };
layout(set = 0, binding = 2) writeonly buffer Out { vec4 result[]; };
void main() { uint i = gl_GlobalInvocationID.x;
if (i < at.length()) result[i] = textureLod(picture, at[i], 0.0); }
"""
SEPARATE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform texture2D picture;
layout(set = 0, binding = 1) uniform sampler how;
layout(set = 0, binding = 2) readonly buffer At { vec2 at[]; };
layout(set = 0, binding = 3) writeonly buffer Out { vec4 result[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < at.length()) result[i] = textureLod(sampler2D(picture, how), at[i], 0.0);
}
"""
POINTS = np.random.default_rng(5).uniform(-1.5, 2.5, (200, 2)).astype(np.float32)


@pytest.fixture
def picture(mgr):
    image = mgr.image(np.random.default_rng(4).random((5, 8, 4), dtype=np.float32))
    mgr.sequence().eval(kp.OpSyncDevice([image]))
    return image


def wrapped(index, length, mode):
    match mode:
        case "clamp_to_edge":
            return np.clip(index, 0, length - 1)
        case "repeat":
            return index % length
        case "mirrored_repeat":
            turn = index % (2 * length)
            return np.where(turn < length, turn, 2 * length - 1 - turn)
    return np.where((index < 0) | (index >= length), length, index)  # the border


def fetched(texels, x, y, modes, border):
    h, w, _ = texels.shape
    framed = np.full((h + 1, w + 1, 4), border, np.float64)
    framed[:h, :w] = texels
    return framed[wrapped(y, h, modes[1]), wrapped(x, w, modes[0])]


def sampled(texels, points, linear, modes, border=(0, 0, 0, 0)):
    """Vulkan's "Texel filtering", for two dimensions and no levels."""
    h, w, _ = texels.shape
    u, v = points[:, 0].astype(np.float64) * w, points[:, 1].astype(np.float64) * h
    if not linear:
        return fetched(texels, np.floor(u).astype(int), np.floor(v).astype(int), modes, border)
    u, v = u - 0.5, v - 0.5
    x, y = np.floor(u).astype(int), np.floor(v).astype(int)
    a, b = (u - x)[:, None], (v - y)[:, None]
    return (
        (1 - a) * (1 - b) * fetched(texels, x, y, modes, border)
        + a * (1 - b) * fetched(texels, x + 1, y, modes, border)
        + (1 - a) * b * fetched(texels, x, y + 1, modes, border)
        + a * b * fetched(texels, x + 1, y + 1, modes, border)
    )


def away_from_edges(points, shape):
    """Where rounding cannot choose another texel."""
    scaled = points * np.array(shape[1::-1])
    return (np.abs(scaled - np.round(scaled)) > 1e-2).all(axis=1)


@pytest.mark.capability("", "samplers", "Manager.sampler", "guides/images")
@pytest.mark.parametrize("mode", ["clamp_to_edge", "repeat", "mirrored_repeat", "clamp_to_border"])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
def test_filters_and_address_modes(mgr, picture, filter, mode):
    points = POINTS[away_from_edges(POINTS, picture.shape)]
    result = mgr.kernel(SAMPLE)(
        picture.sampled(filter, mode), points, np.zeros((len(points), 4), np.float32), grid=len(points)
    )
    wanted = sampled(picture.read(), points, filter == "linear", (mode, mode))
    np.testing.assert_allclose(result, wanted, atol=0.02 if filter == "linear" else 1e-6)


@pytest.mark.parametrize("mode", ["clamp_to_edge", "repeat", "mirrored_repeat", "clamp_to_border"])
def test_linear_samples_of_bytes_are_as_near_as_the_page_on_faults_says(mgr, mode):
    texels = np.random.default_rng(4).integers(0, 256, (5, 8, 4), np.uint8)
    image = mgr.image(texels, format="rgba8").sampled("linear", mode)
    result = mgr.kernel(SAMPLE)(image, POINTS, np.zeros((len(POINTS), 4), np.float32), grid=len(POINTS))
    wanted = sampled(texels / 255, POINTS, True, (mode, mode))
    exact = "llvmpipe" in str(mgr) and mode in ("mirrored_repeat", "clamp_to_border")
    np.testing.assert_allclose(result, wanted, atol=1e-4 if exact else 1.5 / 255)


def test_a_mode_for_each_axis_and_a_border(mgr, picture):
    points = POINTS[away_from_edges(POINTS, picture.shape)]
    sampler = mgr.sampler("nearest", ("repeat", "clamp_to_border"), border="opaque_white")
    result = mgr.kernel(SAMPLE)(
        picture.sampled(sampler), points, np.zeros((len(points), 4), np.float32), grid=len(points)
    )
    wanted = sampled(picture.read(), points, False, ("repeat", "clamp_to_border"), (1, 1, 1, 1))
    np.testing.assert_allclose(result, wanted, atol=1e-6)


def test_unnormalized_coordinates(mgr, picture):
    points = np.array([[0.5, 0.5], [7.5, 4.5], [3.2, 2.9]], np.float32)
    result = mgr.kernel(SAMPLE)(
        picture.sampled(unnormalized=True), points, np.zeros((3, 4), np.float32), grid=3
    )
    texels = picture.read()
    np.testing.assert_allclose(result, [texels[0, 0], texels[4, 7], texels[2, 3]])
    with pytest.raises(kp.InvalidArgumentError, match="clamps"):
        mgr.sampler(address="repeat", unnormalized=True)


def test_separate_textures_and_samplers(mgr, picture):
    points = POINTS[away_from_edges(POINTS, picture.shape)]
    out = mgr.zeros((len(points), 4))
    at = mgr.tensor(points)
    algorithm = mgr.algorithm(
        [picture, mgr.sampler("nearest", "repeat"), at, out],
        kp.compile(SEPARATE),
        (-(-len(points) // 64), 1, 1),
    )
    mgr.sequence().record(kp.OpSyncDevice([at])).record(kp.OpAlgoDispatch(algorithm)).eval()
    np.testing.assert_allclose(
        out.read(), sampled(picture.read(), points, False, ("repeat", "repeat")), atol=1e-6
    )
    assert isinstance(algorithm.get_tensors()[1], kp.Sampler)


def test_normalized_texels(mgr):
    texels = np.array([[[0, 51, 255, 102]]], np.uint8)
    for form, wanted in (("rgba8", texels / 255), ("srgba8", None)):
        if "sample" not in mgr.image_formats().get(form, ()):
            continue
        image = mgr.image(texels, format=form)
        mgr.sequence().eval(kp.OpSyncDevice([image]))
        result = mgr.kernel(SAMPLE)(image.sampled(), [[0.5, 0.5]], np.zeros((1, 4), np.float32), grid=1)
        if wanted is None:
            linear = np.array([0, 51, 255]) / 255
            wanted = [
                *np.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4),
                102 / 255,
            ]
        np.testing.assert_allclose(result.reshape(-1), np.reshape(wanted, -1), atol=2e-3)


def test_samplers_are_shared(mgr):
    assert (
        mgr.sampler("linear").vk_sampler
        == mgr.sampler("linear").vk_sampler
        != mgr.sampler("nearest").vk_sampler
    )
    for i in range(50):
        mgr.sampler(("nearest", "linear")[i % 2], ("repeat", "clamp_to_edge")[i % 2])


def test_wrong_samplers(mgr, picture):
    for arguments, error, match in (
        ({"filter": "cubic"}, kp.InvalidArgumentError, "'cubic'"),
        ({"address": "wrap"}, kp.InvalidArgumentError, "'wrap'"),
        ({"address": []}, kp.InvalidArgumentError, "address"),
        ({"border": "pink"}, kp.InvalidArgumentError, "'pink'"),
        ({"filter": 1}, kp.ArgumentTypeError, "filter"),
    ):
        with pytest.raises(error, match=match):
            mgr.sampler(**arguments)
    k = mgr.kernel(SAMPLE)
    t = mgr.zeros((1, 4))
    for wrong, match in (
        (picture, r"combined image sampler.*sampled"),
        (mgr.sampler(), r"combined image sampler.*sampled"),
        (t, r"sampled"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=match):
            k(wrong, mgr.zeros((1, 2)), t, grid=1)
    algorithm = [picture, picture, mgr.zeros(2), t]
    with pytest.raises(kp.InvalidArgumentError, match=r"mgr\.sampler"):
        mgr.algorithm(algorithm, kp.compile(SEPARATE), (1, 1, 1))
    with pytest.raises(kp.InvalidArgumentError, match=r"'picture'.*sampled"):
        mgr.algorithm([picture, mgr.zeros(2), t], kp.compile(SAMPLE), (1, 1, 1))
    integers = mgr.image(np.zeros((2, 2), np.uint8))
    with pytest.raises(kp.InvalidArgumentError, match=r"usampler2D|uimage2D"):
        k(integers.sampled(), mgr.zeros((1, 2)), t, grid=1)


def test_another_managers_sampler(make_manager):
    one, other = make_manager(), make_manager()
    with pytest.raises(kp.InvalidArgumentError, match="belongs to"):
        one.image(np.zeros((2, 2))).sampled(other.sampler())


def test_sampled_images_are_ordered(mgr, picture):
    """Written as a storage image, then sampled, then written again, with nothing said."""
    fill = mgr.kernel(
        "#version 450\nlayout(binding = 0, rgba32f) uniform image2D picture;\n"
        "layout(push_constant) uniform P { float value; };\n"
        "void main() { imageStore(picture, ivec2(gl_GlobalInvocationID.xy), vec4(value)); }"
    )
    k = mgr.kernel(SAMPLE)
    at, results = mgr.tensor([[0.5, 0.5]]), [mgr.zeros((1, 4)) for _ in range(5)]
    seq = mgr.sequence().record(kp.OpSyncDevice([at]))
    for i, out in enumerate(results):
        seq.record(fill.bind(picture, value=float(i))).record(
            k.bind(picture.sampled("linear"), at, out, grid=1)
        )
    seq.eval()
    assert [out.read()[0, 0] for out in results] == [0, 1, 2, 3, 4]


# -- sets and arrays of bindings -----------------------------------------------------------------------------


def test_several_sets(mgr):
    k = mgr.kernel(
        """
        #version 450
        layout(set = 0, binding = 0) readonly buffer A { float a[]; };
        layout(set = 1, binding = 2) readonly uniform U { float factor; };
        layout(set = 3, binding = 1) writeonly buffer B { float b[]; };
        void main() { uint i = gl_GlobalInvocationID.x; b[i] = a[i] * factor; }
        """
    )
    assert [(p.set, p.binding) for p in k.signature.parameters] == [(0, 0), (1, 2), (3, 1)]
    assert k([1, 2, 3], factor=[2], b=np.zeros(3, np.float32)).tolist() == [2, 4, 6]
    a, f, b = mgr.tensor([1, 2]), mgr.tensor([5]), mgr.zeros(2)
    k(a, f, b)
    assert b.read().tolist() == [5, 10]
    with pytest.raises(kp.UnimplementedError, match=r"set \d.*mgr\.kernel"):
        mgr.algorithm([a, f, b], k.to_spirv())


def test_arrays_of_bindings(mgr, needs):
    needs(mgr, "shaderStorageBufferArrayDynamicIndexing")
    k = mgr.kernel(
        """
        #version 450
        layout(set = 0, binding = 0) readonly buffer A { float x[]; } parts[3];
        layout(set = 0, binding = 1) writeonly buffer B { float sum[]; };
        layout(push_constant) uniform P { uint count; };
        void main() {
            uint i = gl_GlobalInvocationID.x;
            float total = 0.0;
            for (uint p = 0; p < count; ++p) total += parts[p].x[i];
            sum[i] = total;
        }
        """
    )
    parts, total = [mgr.tensor(np.arange(4) * 10.0**i) for i in range(3)], mgr.zeros(4)
    k(parts, total, count=3)
    np.testing.assert_array_equal(total.read(), np.arange(4) * 111)
    k(parts[::-1], total, count=1)
    np.testing.assert_array_equal(total.read(), np.arange(4) * 100)
    seq = mgr.sequence().record(kp.OpFill([parts[1]], 1)).record(k.bind(parts, total, count=2)).eval()
    np.testing.assert_array_equal(total.read(), np.arange(4) + 1)
    parts[0].destroy()
    with pytest.raises(kp.FailedPreconditionError):
        seq.eval()
    for wrong, error, match in (
        (parts[1:], kp.InvalidArgumentError, r"takes 3, not 2"),
        (parts[1], kp.ArgumentTypeError, "list of tensors"),
        ([1, 2, 3], kp.ArgumentTypeError, "list of tensors"),
    ):
        with pytest.raises(error, match=match):
            k(wrong, total, count=1)


def test_arrays_of_any_length(mgr, needs):
    needs(mgr, "runtimeDescriptorArray")
    # In loops of groups of one, Mesa 26.1 reads the descriptor behind the last, and crashes.
    k = mgr.kernel(
        """
        #version 450
        #extension GL_EXT_nonuniform_qualifier : require
        layout(local_size_x = 4) in;
        layout(set = 0, binding = 1) readonly buffer A { float x[]; } parts[];
        layout(set = 0, binding = 0) writeonly buffer B { float sum[]; };
        layout(push_constant) uniform P { uint count; };
        void main() {
            float total = 0.0;
            for (uint p = 0; p < count; ++p) total += parts[p].x[gl_GlobalInvocationID.x];
            sum[gl_GlobalInvocationID.x] = total;
        }
        """
    )
    for n in (1, 2, 5):
        total = mgr.zeros(4)
        k(bind={"sum": total, "parts": [mgr.tensor(np.arange(4) * 10.0**i) for i in range(n)]}, count=n)
        np.testing.assert_array_equal(total.read(), np.arange(4) * float("1" * n))
    with pytest.raises(kp.InvalidArgumentError, match="at least 1"):
        k(bind={"sum": mgr.zeros(4), "parts": []}, count=0)
