"""Texel buffers: tensors as texels of a format, which the shader declares or the tensor decides."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.languages import COMPILERS, dxc_is_old, needs_dxc, needs_slang

pytestmark = pytest.mark.each_driver

HEAD = "#version 450\nlayout(local_size_x = 8) in;\n"
DOUBLED = """
layout(binding = 0) uniform %(p)ssamplerBuffer x;
layout(binding = 1, rgba32%(f)s) uniform %(p)simageBuffer y;
void main() {
    int i = int(gl_GlobalInvocationID.x);
    if (i < textureSize(x) && i < imageSize(y)) imageStore(y, i, texelFetch(x, i) + texelFetch(x, i));
}
"""


def supported(run):
    """The call's result; skips the test if the device lacks the format, which it says by name."""
    try:
        return run()
    except kp.UnimplementedError as error:
        assert "does not have" in str(error)
        pytest.skip(str(error))


@pytest.mark.capability("", "texel buffers", "Manager.kernel", "reference/image_rules")
@pytest.mark.parametrize("channels", [0, 1, 2, 4])
@pytest.mark.parametrize(
    "name", ["float16", "float32", "uint8", "int8", "uint16", "int16", "i:int8", "i:int16", "i:int32",
             "u:uint8", "u:uint16", "u:uint32"],
)  # fmt: skip
def test_the_tensor_decides_the_format(mgr, name, channels):
    prefix, _, name = name.rpartition(":")
    dtype = np.dtype(name)
    kernel = mgr.kernel(HEAD + DOUBLED % {"p": prefix, "f": {"": "f", "i": "i", "u": "ui"}[prefix]})
    shape = (20, channels) if channels else (20,)
    x = np.random.default_rng(3).integers(0, 100, shape).astype(dtype)
    y = np.zeros((20, 4), {"": np.float32, "i": np.int32, "u": np.uint32}[prefix])
    supported(lambda: kernel(x, y, grid=20))
    wide = np.zeros((20, 4), np.float64)
    wide[:, 3] = 1  # what a missing alpha is
    full = 1.0 if prefix or dtype.kind == "f" else float(np.iinfo(dtype).max)
    wide[:, : max(1, channels)] = x.reshape(20, -1) / full
    np.testing.assert_allclose(y, 2 * wide, rtol=1e-6)


def test_one_tensor_in_two_shapes(mgr):
    """The descriptors of a call are not those of another shape of the same memory."""
    kernel = mgr.kernel(HEAD + DOUBLED % {"p": "", "f": "f"})
    flat = mgr.tensor(np.arange(40))
    rows = flat.reshape(10, 4)
    by_rows, by_one = mgr.tensor(np.zeros((10, 4))), mgr.tensor(np.zeros((40, 4)))
    other = mgr.tensor(np.arange(10)).reshape(5, 2)
    for _ in range(4):  # the same calls are prepared
        by_rows[:] = by_one[:] = -1
        kernel(rows, by_rows, groups=5)
        kernel(flat, by_one, groups=5)
        np.testing.assert_array_equal(np.ravel(by_rows), 2 * np.arange(40))
        np.testing.assert_array_equal(np.asarray(by_one), [[2 * i, 0, 0, 2] for i in range(40)])
        kernel(other, by_one, groups=5)
        np.testing.assert_array_equal(np.asarray(by_one)[:5], [[4 * i, 4 * i + 2, 0, 2] for i in range(5)])
        arrays = np.zeros((40, 4), np.float32)
        kernel(np.arange(40, dtype=np.float32), arrays, groups=5)
        np.testing.assert_array_equal(arrays, [[2 * i, 0, 0, 2] for i in range(40)])
        kernel(np.arange(40, dtype=np.float32).reshape(10, 4), arrays, groups=5)
        np.testing.assert_array_equal(arrays[:10].ravel(), 2 * np.arange(40))


COUNTED = """
layout(binding = 0, r32ui) uniform uimageBuffer total;
layout(binding = 1, r32f) uniform imageBuffer x;
void main() {
    int i = int(gl_GlobalInvocationID.x);
    if (i >= imageSize(x)) return;
    imageAtomicAdd(total, 0, 1u);
    imageStore(x, i, imageLoad(x, i) * 2.0);
}
"""


def test_a_declared_format_and_atomics(mgr):
    kernel = mgr.kernel(HEAD + COUNTED)
    assert kernel.signature.text("k") == "k(inout uimageBuffer total, inout imageBuffer x)"
    total, x = np.zeros(1, np.uint32), np.arange(20, dtype=np.float32)
    for turn in range(1, 4):  # the first call, and prepared ones
        kernel(total, x, grid=20)
        assert total[0] == 20 * turn
    np.testing.assert_array_equal(x, 8 * np.arange(20))
    with pytest.raises(kp.ArgumentTypeError, match=r"'x' is imageBuffer, which holds float32; .* has int32"):
        kernel(total, x.astype(np.int32))


def test_work_through_texels_is_ordered_with_other_work(mgr):
    texels = mgr.kernel(HEAD + COUNTED)
    plain = mgr.kernel(
        HEAD
        + "layout(binding = 0) buffer X { float x[]; };\n"
        + "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1.0; }"
    )
    x, total = mgr.tensor(np.arange(512)), mgr.tensor_t(np.zeros(1, np.uint32))
    by_texels = mgr.algorithm([total, x], texels, (64, 1, 1))
    by_plain = mgr.algorithm([x], plain, (64, 1, 1))
    sequence = mgr.sequence()
    for _ in range(3):
        sequence.record(kp.OpAlgoDispatch(by_texels)).record(kp.OpAlgoDispatch(by_plain))
    sequence.eval()
    expected = np.arange(512.0)
    for _ in range(3):
        expected = 2 * expected + 1
    np.testing.assert_array_equal(x.read(), expected)
    assert total.read()[0] == 3 * 512


def test_an_algorithm_by_position(mgr):
    x, y = mgr.tensor(np.arange(16).reshape(4, 4)), mgr.zeros((4, 4))
    spirv = kp.compile(HEAD + DOUBLED % {"p": "", "f": "f"})
    mgr.sequence().eval(kp.OpAlgoDispatch(mgr.algorithm([x, y], spirv, (1, 1, 1))))
    np.testing.assert_array_equal(y.read(), 2 * x.read())


def test_what_no_texel_buffer_can_be(mgr):
    kernel = mgr.kernel(HEAD + DOUBLED % {"p": "", "f": "f"})
    y = mgr.zeros((8, 4))
    for x, said in (
        (np.zeros((8, 3), np.float32), "1, 2 or 4 numbers.* has 3"),
        (np.zeros((8, 4), np.int32), "float16, float32, or integers of 8 or 16 bits.* has int32"),
        (np.zeros(8, np.float64), "float16, float32.* has float64"),
    ):
        with pytest.raises(kp.ArgumentTypeError, match=f"of 'x' .samplerBuffer. are .*{said}"):
            kernel(x, y, grid=8)
    with pytest.raises(kp.InvalidArgumentError, match=r"'x' is a uniform texel buffer .* not .*Image"):
        kernel(mgr.image(np.zeros((4, 4))), y, grid=8)
    step = mgr.get_device_properties()["limits"]["minTexelBufferOffsetAlignment"]
    flat = mgr.tensor(np.arange(2048))
    if step > 4:
        with pytest.raises(kp.InvalidArgumentError, match="minTexelBufferOffsetAlignment"):
            kernel(flat[1:9], y, grid=8)
    rows = np.zeros((8, 4), np.float32)
    kernel(flat[step : step + 8], rows, grid=8)
    np.testing.assert_array_equal(rows[:, 0], 2 * np.arange(step, step + 8))
    most = mgr.get_device_properties()["limits"]["maxTexelBufferElements"]
    if most < 1 << 20:
        with pytest.raises(kp.InvalidArgumentError, match=f"at most {most} .maxTexelBufferElements"):
            kernel(mgr.zeros(most + 1), y, grid=8)
    with pytest.raises(kp.InvalidArgumentError, match="at least one"):
        kernel(mgr.zeros(0), y, grid=8)


@pytest.mark.parametrize(
    "language", [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]
)
def test_declared_types(mgr, language):
    """The declared type is the format, also in arrays, and in Slang without an argument."""
    kernel = mgr.kernel(
        """
RWBuffer<float4> a; Buffer<float> b; RWBuffer<uint> c; RWBuffer<int2> d; Buffer<float2> e;
RWTexture2D%s image; RWTexture2D<float2> images[2];
[shader("compute")] [numthreads(4, 1, 1)] void main(uint3 t : SV_DispatchThreadID) {
    uint n;
    a.GetDimensions(n);
    if (t.x >= n) return;
    a[t.x] = a[t.x] + b[t.x] * 2;
    d[t.x] = int2(t.x, -1);
    InterlockedAdd(c[0], 1u);
    image[t.xy] = image[t.xy] + e[t.x].y;
    images[1][t.xy] = images[0][t.xy] * 2;
}
"""
        % ("" if language == "slang" else "<float4>"),
        language=language,
    )
    formats = {
        p.name: p.texels if p.image is None else p.image["format"] for p in kernel.signature.parameters
    }
    assert formats == {
        "a": "rgba32f", "b": "r32f", "c": "r32ui", "d": "rg32i", "e": "rg32f",
        "image": "rgba32f", "images": "rg32f",
    }  # fmt: skip
    a, b, c = np.ones((4, 4), np.float32), np.arange(4, dtype=np.float32), np.zeros(1, np.uint32)
    d, e = np.zeros((4, 2), np.int32), np.arange(8, dtype=np.float32).reshape(4, 2)
    image = mgr.image(np.ones((1, 4, 4), np.float32), format="rgba32f")
    images = [mgr.image(np.full((1, 4, 2), k + 1, np.float32), format="rg32f") for k in range(2)]
    kernel(a, b, c, d, e, image=image, images=images, groups=1)
    np.testing.assert_array_equal(a, 1 + 2 * np.arange(4)[:, None] + np.zeros((4, 4)))
    np.testing.assert_array_equal(d, [[i, -1] for i in range(4)])
    assert c[0] == 4
    np.testing.assert_array_equal(image.read()[0, :, 0], 1 + e[:, 1])
    np.testing.assert_array_equal(images[1].read(), np.full((1, 4, 2), 2.0))


@pytest.mark.own_driver
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("declared", "form"),
    [("Buffer<float3> a;", "rgba8"), ("RWBuffer<int3> b, a;", "rgba8i"), ("Buffer<uint3> a[2];", "rgba8ui"),
     ("Buffer<V> a;", "rg16f"), ("RWBuffer<unorm float3> a;", "rgba8")],
)  # fmt: skip
def test_three_channels_need_a_format(declared, form, compiler):
    """A flat array would give one number and two zeros, where that for float2 gives pairs."""
    if compiler == "slang" and "V" in declared:
        pytest.skip("the source of Slang is searched for float3 itself")
    a = "a[1]" if "[2]" in declared else "a"

    def compiled(head):
        source = (
            f"typedef float3 V; {head}{declared} RWBuffer<float> o;\n"
            f"[numthreads(1, 1, 1)] void main() {{ o[0] = {a}[7].z; }}"
        )
        return kp.compile(source, language="hlsl", compiler=compiler)

    with pytest.raises(kp.ShaderCompileError, match="'a' has texels of three channels, and no format has"):
        compiled("")
    if "[2]" in declared and compiler == "dxc" and dxc_is_old():
        with pytest.raises(kp.ShaderCompileError, match="attribute only applies to"):
            compiled(f'[[vk::image_format("{form}")]] ')
        return
    assert compiled(f'[[vk::image_format("{form}")]] ')
