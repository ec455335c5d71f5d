"""kompute-py run: shaders on arrays and pictures, and what is said about arguments that do not fit."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import kompute_py as kp
from kompute_py.cli import main
from kompute_py.cli.running import RUN_HELP
from tests.drivers import environment
from tests.support.languages import COMPILERS

MULTIPLY = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform P { float scale; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = scale * a[i] * b[i]; }
"""

# A box filter that samples an image and stores another.
BLUR = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D src;
layout(binding = 1, rgba8) writeonly uniform image2D dst;
layout(push_constant) uniform P { int radius; };
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy), size = imageSize(dst);
    if (any(greaterThanEqual(p, size))) return;
    vec4 sum = vec4(0);
    for (int y = -radius; y <= radius; ++y)
        for (int x = -radius; x <= radius; ++x)
            sum += texture(src, (vec2(p + ivec2(x, y)) + 0.5) / vec2(size));
    imageStore(dst, p, sum / float((2 * radius + 1) * (2 * radius + 1)));
}
"""


def negative(declarations, value, local="local_size_x = 8, local_size_y = 8"):
    return f"""#version 450
layout({local}) in;
{declarations}
void main() {{
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    int i = p.y * int(gl_NumWorkGroups.x * gl_WorkGroupSize.x) + p.x;
    {value}
}}"""


@pytest.fixture
def folder(tmp_path, monkeypatch, mgr):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KOMPUTE_PY_VALIDATION", "1")
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "1")
    Path("multiply.comp").write_text(MULTIPLY)
    Path("blur.comp").write_text(BLUR)
    return tmp_path


def photo(height=16, width=24, channels=3, seed=0):
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


# -- arrays --------------------------------------------------------------------------------------------------


def test_numbers_in_and_printed(folder, capsys):
    command = ["run", "multiply.comp", "--in", "a=1,2,3", "--in", "b=4,5,6", "--set", "scale=2"]
    assert main([*command, "--out", "c=-"]) == 0
    assert capsys.readouterr() == ("[ 8. 20. 36.]\n", "")
    assert main(command) == 0
    assert capsys.readouterr().out == "c  3 float32, 8 to 36, mean 21.33  not kept; --out keeps it\n"


def test_a_guessed_shape_is_told(folder, capsys):
    """Outputs take the first input's shape, with a note where a call would be refused."""
    head = """#version 450
    layout(local_size_x = 64) in;
    layout(binding = 0) readonly buffer X { float x[]; };
    layout(binding = 1) writeonly buffer Y { float y[]; };
    void main() { uint i = gl_GlobalInvocationID.x; """
    Path("pairs.comp").write_text(head + "if (2 * i + 1 < x.length()) y[i] = x[2 * i] + x[2 * i + 1]; }")
    Path("each.comp").write_text(head + "if (i < y.length()) y[i] = x[i]; }")
    command = ["run", "pairs.comp", "--in", "x=1,2,3,4", "--out", "y=-"]
    assert main(command) == 0
    told = (
        "note: y has the shape of x, 4, which does not follow from the code: --shape y=4 if that is meant\n"
    )
    assert capsys.readouterr() == ("[3. 7. 0. 0.]\n", told)
    assert main([*command, "--shape", "y=2"]) == 0
    assert capsys.readouterr() == ("[3. 7.]\n", "")
    for more in [], ["--grid", "4"]:
        assert main(["run", "each.comp", "--in", "x=1,2,3,4", "--out", "y=-", *more]) == 0
        assert capsys.readouterr() == ("[1. 2. 3. 4.]\n", "")


def test_array_files(folder, capsys):
    a = np.arange(10.0)  # float64, as NumPy makes them
    np.save("a.npy", a)
    np.savez("both.npz", a=a + 1, b=a, other=a)
    command = ["run", "multiply.comp", "--set", "scale=0.5"]
    assert main([*command, "--in", "a=a.npy", "--in", "b=both.npz", "--out", "c.npy"]) == 0
    assert np.load("c.npy").tolist() == (0.5 * a * a).tolist() and np.load("c.npy").dtype == np.float32
    assert main([*command, "--in", "a=both.npz:other", "--in", "b=ones:10", "--out", "c=out.npz"]) == 0
    assert np.load("out.npz")["c"].tolist() == (0.5 * a).tolist()
    assert "out.npz" in capsys.readouterr().out


def test_what_is_rounded_is_said_and_what_would_change_is_refused(folder, capsys, one_line):
    """The rule of docs/reference/kernel_rules.md: what the shader of floats gets of each file."""
    command = ["run", "multiply.comp", "--set", "scale=1", "--in", "b=ones:2", "--out", "c=-"]
    rounded = "note: a: a.npy is {} and becomes float32: its numbers are rounded\n"
    for data, note in (
        (np.array([0.1, 2]), rounded.format("float64")),
        (np.array([0.1, np.inf]), rounded.format("float64")),
        (np.array([1, 2**24]), ""),
        (np.array([1, 2**24 + 2]), ""),
        (np.array([True, False]), ""),
        (np.array([1, 255], np.uint8), ""),
        (np.array([0.5, 2], np.float16), ""),
        (np.array([0.5, 2], ">f4"), ""),
    ):
        np.save("a.npy", data)
        assert main([*command, "--in", "a=a.npy"]) == 0
        out, err = capsys.readouterr()
        assert err == note
        np.testing.assert_allclose(
            np.array(out.strip("[]\n").split(), float), data.astype(np.float32), rtol=1e-6
        )
    for data, why in (
        (np.array([1, 1e300]), "float32; the array has values beyond its range"),
        (np.array([1, 2**24 + 1]), "float32, which has no 16777217"),
        (np.array([2**63 - 1, 0]), "which has no 9223372036854775807"),
        (np.array([1, 2j]), "the array is complex128"),
    ):
        np.save("a.npy", data)
        assert main([*command, "--in", "a=a.npy"]) == 1
        assert why in one_line()
    assert main([*command, "--in", "a=0.1,2"]) == 0  # as typed
    assert capsys.readouterr().err == ""
    assert main([*command, "--in", "a=1,1e300"]) == 1
    assert "beyond its range" in one_line()
    assert "float64 to float32" in " ".join(RUN_HELP.split())


def test_arrays_without_an_element_run(folder, capsys):
    for dtype in (np.float32, np.float64, np.int64):
        np.save("none.npy", np.zeros((0, 3), dtype))
        assert (
            main(
                [
                    "run", "multiply.comp", "--set", "scale=1", "--in", "a=none.npy", "--in", "b=none.npy",
                    "--out", "c.npy",
                ]
            )
            == 0
        )  # fmt: skip
        assert np.load("c.npy").shape == (0, 3) and np.load("c.npy").dtype == np.float32
        assert "c  0 x 3 float32" in capsys.readouterr().out


def test_several_outputs_share_an_npz(folder):
    Path("two.comp").write_text(
        "#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer A { int a[]; };\n"
        "layout(binding = 1) buffer B { uvec2 b[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; a[i] += int(i); b[i] = uvec2(i, 7); }"
    )
    command = [
        "run", "two.comp", "--in", "a=1,1,1,1", "--out", "a=r.npz", "--out", "b=r.npz", "--repeat", "3",
    ]  # fmt: skip
    assert main(command) == 0
    found = np.load("r.npz")
    assert found["a"].tolist() == [1, 4, 7, 10] and found["a"].dtype == np.int32
    assert found["b"].tolist() == [[0, 7], [1, 7], [2, 7], [3, 7]] and found["b"].dtype == np.uint32


def test_made_on_the_spot(folder):
    command = ["run", "multiply.comp", "--set", "scale=1", "--out", "c.npy"]
    assert main([*command, "--in", "a=random:2,5", "--in", "b=arange:10"]) == 0
    found = np.load("c.npy")
    expected = np.random.default_rng(0).random((2, 5), np.float32) * np.arange(10).reshape(2, 5)
    assert found.shape == (2, 5) and np.allclose(found, expected)


def test_padding_of_vectors_and_uniform_arrays_is_not_the_users(folder):
    Path("pad.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) readonly buffer V { vec3 v[]; };\n"
        "layout(binding = 1) uniform W { float w[3]; };\nlayout(binding = 2) writeonly buffer O { vec3 o[]; "
        "};\n"
        "void main() { uint i = gl_GlobalInvocationID.x; o[i] = v[i] * w[i]; }"
    )
    v = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.save("v.npy", v)
    assert main(["run", "pad.comp", "--in", "v=v.npy", "--in", "w=1,10,100", "--out", "o.npy"]) == 0
    assert np.load("o.npy").tolist() == (v * [[1], [10], [100]]).tolist()


def test_uniform_blocks_take_values(folder, capsys, one_line):
    Path("block.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) uniform Params { float gain; ivec2 "
        "at; } p;\n"
        "layout(binding = 1) writeonly buffer O { float o[]; };\n"
        "void main() { o[gl_GlobalInvocationID.x] = p.gain * float(p.at.x + 10 * p.at.y); }"
    )
    command = ["run", "block.comp", "--grid", "2", "--out", "o=-", "--set", "gain=0.5"]
    assert main([*command, "--set", "p.at=1,2"]) == 0
    assert capsys.readouterr().out == "[10.5 10.5]\n"
    assert main(command) == 1
    assert "'p' lacks at: give --set at=VALUE" in one_line()


def test_structs(folder):
    Path("struct.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nstruct S { float x; int n; };\n"
        "layout(binding = 0) writeonly buffer O { S o[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; o[i].x = 0.5 * i; o[i].n = -int(i); }"
    )
    assert main(["run", "struct.comp", "--shape", "o=3", "--out", "o.npy"]) == 0
    assert np.load("o.npy").tolist() == [(0.0, 0), (0.5, -1), (1.0, -2)]


def test_grid_groups_constants_defines(folder, capsys):
    Path("ids.comp").write_text(
        "#version 450\nlayout(local_size_x_id = 3) in;\nlayout(constant_id = 4) const int ADD = 0;\n#include "
        '"by.glsl"\n'
        "layout(binding = 0) writeonly buffer O { uint o[]; };\n"
        "void main() { o[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x * BY + ADD; }"
    )
    Path("more").mkdir()
    Path("more/by.glsl").write_text("uint unused() { return 0u; }\n")
    command = [
        "run", "ids.comp", "-I", "more", "-D", "BY=3", "--spec", "3=2", "--spec", "ADD=1", "--out", "o=-",
    ]  # fmt: skip
    assert main([*command, "--groups", "2"]) == 0
    assert capsys.readouterr().out == "[ 1  4  7 10]\n"
    assert main([*command, "--grid", "2", "--shape", "o=3"]) == 0
    assert capsys.readouterr().out == "[1 4 0]\n"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_hlsl_assembly_and_binaries(folder, capsys, compiler):
    Path("twice.hlsl").write_text(
        "RWStructuredBuffer<float> data : register(u0);\n"
        "[numthreads(1, 1, 1)] void twice(uint3 id : SV_DispatchThreadID) { data[id.x] *= 2; }"
    )
    spirv = kp.compile(Path("twice.hlsl"), entry="twice", compiler=compiler)
    Path("twice.spv").write_bytes(spirv)
    Path("twice.bin").write_bytes(spirv)
    Path("twice.spvasm").write_text(kp.disassemble(spirv))
    of_source = ["twice.hlsl", "--entry", "twice", "--compiler", compiler]
    for command in (of_source, ["twice.spv"], ["twice.bin"], ["twice.spvasm"]):
        assert main(["run", *command, "--in", "data=1,2,3", "--out", "data=-"]) == 0, command
        assert capsys.readouterr().out == "[2. 4. 6.]\n"


def test_source_from_standard_input(folder):
    ran = subprocess.run(
        [sys.executable, "-m", "kompute_py", "run", "-", "-i", "a=2", "-i", "b=3", "-s", "scale=7", "-o",
        "-"],
        input=MULTIPLY, capture_output=True, text=True, env=os.environ, timeout=500,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "42.0\n", "")


def test_time(folder, capsys, mgr, needs):
    needs(mgr, "timestamps")
    command = [
        "run", "multiply.comp", "--in", "a=1,2", "--in", "b=1,2", "--set", "scale=1", "--out", "c.npy",
        "--time",
    ]  # fmt: skip
    assert main(command) == 0
    device = kp.list_devices()[0]["device_name"]
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"on {device} (by the device's timestamps)")
    assert main([*command, "--repeat", "5"]) == 0
    assert "least of 5 runs on" in capsys.readouterr().out


# -- pictures ------------------------------------------------------------------------------------------------


def test_a_picture_through_images(folder, capsys):
    pixels = photo()
    Image.fromarray(pixels).save("photo.png")
    command = ["run", "blur.comp", "--in", "src=photo.png", "--out", "dst=blurred.png", "--grid", "24,16"]
    assert main([*command, "--set", "radius=0"]) == 0
    found = np.asarray(Image.open("blurred.png"))
    assert np.array_equal(found[..., :3], pixels) and (found[..., 3] == 255).all()

    assert main([*command, "--set", "radius=1"]) == 0
    edge = np.pad(pixels.astype(float), ((1, 1), (1, 1), (0, 0)), "edge")
    expected = sum(edge[y : y + 16, x : x + 24] for y in range(3) for x in range(3)) / 9
    assert np.abs(np.asarray(Image.open("blurred.png"))[..., :3] - expected).max() <= 1
    assert "dst  16 x 24 x 4 uint8" in capsys.readouterr().out


def test_the_grid_is_the_pictures_where_none_is_given(folder):
    Image.fromarray(photo(9, 13)).save("photo.png")
    assert main(["run", "blur.comp", "--in", "photo.png", "--out", "out.png", "--set", "radius=0"]) == 0
    assert np.array_equal(np.asarray(Image.open("out.png").convert("RGB")), photo(9, 13))


NEGATIVES = {
    "float[]": ("layout(binding=0) buffer A { float a[]; }; layout(binding=1) buffer B { float b[]; };",
    "b[i] = 1 - a[i];"),
    "vec4[]": (
        "layout(binding=0) buffer A { vec4 a[]; }; layout(binding=1) buffer B { vec4 b[]; };",
        "b[i] = vec4(1 - a[i].rgb, a[i].a);",
    ),
    "vec3[]": ("layout(binding=0) buffer A { vec3 a[]; }; layout(binding=1) buffer B { vec3 b[]; };",
    "b[i] = 1 - a[i];"),
    "uint[]": ("layout(binding=0) buffer A { uint a[]; }; layout(binding=1) buffer B { uint b[]; };",
    "b[i] = 255 - a[i];"),
    "ivec4[]": (
        "layout(binding=0) buffer A { ivec4 a[]; }; layout(binding=1) buffer B { ivec4 b[]; };",
        "b[i] = ivec4(255 - a[i].rgb, a[i].a);",
    ),
    "rgba8": (
        "layout(binding=0, rgba8) uniform image2D a; layout(binding=1, rgba8) uniform image2D b;",
        "vec4 v = imageLoad(a, p); imageStore(b, p, vec4(1 - v.rgb, v.a));",
    ),
    "rgba32f": (
        "layout(binding=0, rgba32f) uniform image2D a; layout(binding=1, rgba32f) uniform image2D b;",
        "vec4 v = imageLoad(a, p); imageStore(b, p, vec4(1 - v.rgb, v.a));",
    ),
    "rgba8ui": (
        "layout(binding=0, rgba8ui) uniform uimage2D a; layout(binding=1, rgba8ui) uniform uimage2D b;",
        "uvec4 v = imageLoad(a, p); imageStore(b, p, uvec4(255 - v.rgb, v.a));",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NEGATIVES)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pixels_of_every_kind(folder, kind, channels):
    declarations, value = NEGATIVES[kind]
    scalars = kind in ("float[]", "uint[]")
    Path("negative.comp").write_text(
        negative(declarations, value, "local_size_x = 1" if scalars else "local_size_x = 1, local_size_y = 1")
    )
    pixels = photo(6, 8, channels)
    Image.fromarray(pixels).save("in.png")
    grid = ["--grid", str(pixels.size) if scalars else "8,6"]
    assert main(["run", "negative.comp", "--in", "a=in.png", "--out", "b=out.png", *grid]) == 0
    found = Image.open("out.png")
    expected = 255 - pixels
    if channels == 4 and not scalars:
        expected[..., 3] = pixels[..., 3]
    if channels == 1 and not scalars:
        assert np.array_equal(np.asarray(found)[..., 1], expected)
    elif channels == 4 and kind == "vec3[]":
        assert np.array_equal(np.asarray(found), expected[..., :3])
    elif not scalars and channels == 3:
        assert np.array_equal(np.asarray(found.convert("RGB")), expected)
    else:
        assert np.array_equal(np.asarray(found), expected)


def test_packed_pixels(folder):
    Path("swap.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer A { uint a[]; };\n"
        "layout(binding = 1) buffer B { uint b[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; b[i] = packUnorm4x8(unpackUnorm4x8(a[i]).bgra); }"
    )
    pixels = photo(4, 8)
    Image.fromarray(pixels).save("in.png")
    command = [
        "run", "swap.comp", "--in", "a=in.png", "--dtype", "a=rgba8", "--dtype", "b=rgba8", "--grid", "32",
    ]  # fmt: skip
    assert main([*command, "--out", "b=out.png"]) == 0
    assert np.array_equal(np.asarray(Image.open("out.png"))[..., :3], pixels[..., ::-1])


def test_sixteen_bits_and_grey(folder):
    Path("copy.comp").write_text(negative("layout(binding=0, r32f) uniform readonly image2D a;"
        "layout(binding=1, r32f) uniform image2D b;", "imageStore(b, p, imageLoad(a, p));"))  # fmt: skip
    values = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    Image.fromarray(values).save("in.png")
    assert main(["run", "copy.comp", "--in", "a=in.png", "--out", "b.npy"]) == 0
    assert np.allclose(np.load("b.npy"), values / 65535, atol=1e-6)
    Image.fromarray(photo(8, 8)).save("in.png")  # colours become their luminance
    assert main(["run", "copy.comp", "--in", "a=in.png", "--out", "b=grey.png"]) == 0
    expected = np.asarray(Image.fromarray(photo(8, 8)).convert("L"), int)
    assert np.abs(np.asarray(Image.open("grey.png"), int) - expected).max() <= 1


def test_images_of_open_format_and_arrays(folder):
    Path("fill.comp").write_text(
        negative("layout(binding = 1) uniform writeonly image2D dst;", "imageStore(dst, p, vec4(p, 0.6, 1));")
    )
    assert main(["run", "fill.comp", "--grid", "8,8", "--out", "dst.npy"]) == 0
    found = np.load("dst.npy")
    assert found.dtype == np.float32 and found[3, 5].tolist() == [5, 3, np.float32(0.6), 1]
    assert (
        main(["run", "fill.comp", "--shape", "dst=16,8,4", "--dtype", "dst=rgba8", "--out", "dst.npy"]) == 0
    )
    found = np.load("dst.npy")
    assert (
        found.shape == (16, 8, 4) and found.dtype == np.uint8 and found[2, 0].tolist() == [0, 255, 153, 255]
    )


def test_an_array_into_a_sampled_image(folder):
    array = np.random.default_rng(1).random((16, 24, 3))
    np.save("in.npy", array)
    assert main(["run", "blur.comp", "--in", "src=in.npy", "--set", "radius=0", "--out", "dst.npy"]) == 0
    assert np.abs(np.load("dst.npy")[..., :3] / 255 - array).max() < 0.51 / 255


def test_clipping_is_said(folder, capsys):
    command = ["run", "multiply.comp", "--in", "a=ones:4,4", "--in", "b=arange:16", "--set", "scale=0.1"]
    assert main([*command, "--out", "c=out.png"]) == 0
    assert (
        "note: c: 31.2 % of the values lie outside 0 to 1 and were clipped in out.png"
        in capsys.readouterr().err
    )
    expected = np.rint(np.clip(np.arange(16, dtype=np.float32) * np.float32(0.1), 0, 1) * 255).reshape(4, 4)
    assert np.abs(np.asarray(Image.open("out.png"), int) - expected).max() <= 1


def test_arrays_of_images(folder):
    Path("mix.comp").write_text(
        negative("layout(binding=0) uniform sampler2D parts[2]; layout(binding=1, rgba8) uniform image2D "
        "dst;",
        "imageStore(dst, p, 0.5 * (texelFetch(parts[0], p, 0) + texelFetch(parts[1], p, 0)));")
    )  # fmt: skip
    Image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save("a.png")
    Image.fromarray(np.full((8, 8, 3), 200, np.uint8)).save("b.png")
    command = ["run", "mix.comp", "--in", "parts=a.png", "--in", "parts=b.png", "--out", "dst=out.png"]
    assert main(command) == 0
    assert (np.asarray(Image.open("out.png"))[..., :3] == 150).all()


# -- what is wrong -------------------------------------------------------------------------------------------

BOTH = ["--in", "a=1,2", "--in", "b=3,4"]
WRONG = {
    "unknown input": ([*BOTH, "--in", "A=5", "--set", "scale=1"],
    ["no binding 'A': did you mean 'a'?", "a, b, c"]),
    "unknown output": ([*BOTH, "--set", "scale=1", "--out", "cc=x.npy"], ["no binding 'cc': did you mean "
    "'c'?"]),
    "unknown value": ([*BOTH, "--set", "scales=1"], ["'scales': did you mean 'scale'?"]),
    "unknown constant": ([*BOTH, "--set", "scale=1", "--spec", "TILE=1"], ["no specialization constant "
    "'TILE'", "has no specialization constants"]),
    "missing input": (["--in", "a=1", "--set", "scale=1"], ["missing 'b' (float[])", "--in b="]),
    "missing value": (BOTH, ["missing push constant scale", "--set scale=VALUE"]),
    "no number": ([*BOTH, "--set", "scale=fast"], ["'fast' is not a number"]),
    "vector for a scalar": ([*BOTH, "--set", "scale=1,2"], ["multiply: scale"]),
    "out of range": ([*BOTH, "--set", "scale=1e300"], ["scale", "1e+300"]),
    "no name": ([*BOTH, "--in", "none.png", "--set", "scale=1"], ["name the binding, NAME=none.png"]),
    "no file": (["--in", "a=none.png", "--in", "b=1", "--set", "scale=1"],
    ["a: none.png is not a file", "zeros:SHAPE"]),
    "a folder": (["--in", "a=.", "--in", "b=1", "--set", "scale=1"], ["a: . is a folder"]),
    "no picture": (["--in", "a=multiply.comp", "--in", "b=1", "--set", "scale=1"], ["no picture that Pillow "
    "can read"]),
    "no npy": (["--in", "a=text.npy", "--in", "b=1", "--set", "scale=1"],
    ["text.npy cannot be read as .npy"]),
    "no npz": (["--in", "a=text.npz", "--in", "b=1", "--set", "scale=1"],
    ["text.npz cannot be read as .npz"]),
    "no key": (["--in", "a=two.npz", "--in", "b=1", "--set", "scale=1"],
    ["no array 'a'; it has x, y", "two.npz:KEY"]),
    "wrong type": (["--in", "a=complex.npy", "--in", "b=1", "--set", "scale=1"], ["float32", "complex128"]),
    "bad shape": (["--in", "a=zeros:0", "--in", "b=1", "--set", "scale=1"], ["'0' is not a shape"]),
    "bad dtype": (["--in", "a=zeros:4:color", "--in", "b=1", "--set", "scale=1"], ["'color' is not a dtype"]),
    "other dtype": ([*BOTH, "--set", "scale=1", "--dtype", "c=int32"], ["c (float[]) holds float32, not "
    "int32"]),
    "huge": (["--in", "a=zeros:1000000,1000000,1000000", "--in", "b=1", "--set", "scale=1"], ["memory"]),
    "grid below zero": ([*BOTH, "--set", "scale=1", "--grid=-1"], ["grid is (-1,)", "0 or more"]),
    "negative grid": ([*BOTH, "--set", "scale=1", "--grid", "-2"], ["grid"]),
    "grid beyond limits": ([*BOTH, "--set", "scale=1", "--groups", "70000,70000,1"],
    ["65535", "more than one axis"]),
    "bad grid": ([*BOTH, "--set", "scale=1", "--grid", "a,b"],
    ["--grid a,b: give one to three whole numbers"]),
    "grid and groups": ([*BOTH, "--set", "scale=1", "--grid", "2", "--groups", "1"], ["not both"]),
    "output of a read": ([*BOTH, "--set", "scale=1", "--out", "a=x.npy"],
    ["does not write 'a'; it writes c"]),
    "twice": ([*BOTH, "--in", "a=1", "--set", "scale=1"], ["twice for 'a'"]),
    "no suffix": ([*BOTH, "--set", "scale=1", "--out", "c=result"], ["does not determine a file type"]),
    "no such folder": ([*BOTH, "--set", "scale=1", "--out", "c=none/c.npy"], ["there is no folder none"]),
    "no picture's shape": ([*BOTH, "--set", "scale=1", "--out", "c=c.png"],
    ["c has shape (2,)", "--shape c=H,W,C"]),
    "no device": ([*BOTH, "--set", "scale=1", "--device", "no such device"], ["no such device"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_said_in_one_line(folder, one_line, case):
    options, words = WRONG[case]
    Path("text.npy").write_text("text")
    Path("text.npz").write_text("text")
    np.savez("two.npz", x=np.ones(1), y=np.ones(1))
    np.save("complex.npy", np.ones(2, complex))
    assert main(["run", "multiply.comp", *options]) == 1
    text = one_line()
    for word in words:
        assert word in text


def test_integers_that_do_not_fit(folder, one_line):
    Path("int.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer A { int a[]; };\nvoid main() "
        "{ a[0] = 1; }"
    )
    np.save("a.npy", np.array([2**40]))
    assert main(["run", "int.comp", "--in", "a=a.npy"]) == 1
    assert "a (int[]) holds int32; the array has values from 1099511627776" in one_line()
    assert main(["run", "int.comp", "--in", "a=0.5"]) == 1
    assert "int32; the array is float64" in one_line()


def test_nothing_tells_the_shape(folder, one_line):
    Path("fill.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer A { int a[]; };\nvoid main() "
        "{ a[0] = 1; }"
    )
    assert main(["run", "fill.comp", "--out", "a=-"]) == 1
    assert "nothing determines the shape of a (int[]): give --shape a=N" in one_line()


def test_compile_errors_are_shown_with_their_lines(folder, capsys):
    Path("multiply.comp").write_text(MULTIPLY.replace("scale * a[i]", "scales * a[i]"))
    assert main(["run", "multiply.comp", *BOTH]) == 1
    assert "multiply.comp:7:" in capsys.readouterr().err


def test_wrong_usage(capsys):
    for wrong in (
        ["run"],
        ["run", "a.comp", "--repeat", "0"],
        ["run", "a.comp", "--nonsense"],
        ["run", "a", "b"],
    ):
        assert main(wrong) == 2
        assert "Usage" in capsys.readouterr().err


# -- Ctrl-C --------------------------------------------------------------------------------------------------


@pytest.mark.own_driver
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_waits_for_the_device_and_again_does_not(tmp_path, presses):
    """On the null driver, whose submissions take the time that they are told to."""
    (tmp_path / "fill.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer A { int a[]; };\nvoid main() "
        "{ a[0] = 1; }"
    )
    took = 1 if presses == 1 else 60
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "run", "fill.comp", "--in", "a=zeros:4"],
        env=os.environ | environment("null", config=f"gpu_us={took * 1_000_000}"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "evaluating\n"
        time.sleep(0.2)  # into the wait
        child.send_signal(signal.SIGINT)
        said = child.stderr.readline()
        assert "interrupted; waiting for the device (press Ctrl-C again to stop at once)" in said
        if presses == 2:
            child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
    finally:
        child.kill()
        child.communicate()


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from kompute_py.cli import main, running
timed = running.timed_runs
def told(*arguments):
    print("evaluating", flush=True)
    return timed(*arguments)
running.timed_runs = told
sys.exit(main())
"""


PIPED = """
import io, os, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from kompute_py.cli import main
pipe = sys.argv[-1].rpartition("=")[2]
os.mkfifo(pipe)
opens = io.open
def told(path, *arguments, **options):
    if str(path) == pipe:
        print("opening", flush=True)
    return opens(path, *arguments, **options)
io.open = told
sys.exit(main())
"""
PIPES = ("ones.npy", "ones.npz", "ones.png", "module.spv")


def piped(name):
    shader = "#version 450\nlayout(binding = 0) buffer A { float a[]; };\nvoid main() { a[0] = 1; }"
    Path("ones.comp").write_text(shader)
    if name == "module.spv":
        command = ["compile", "ones.comp", "--out", name]
    else:
        command = ["run", "ones.comp", "--in", "a=ones:2,2,1", "--groups", "1", "--out", f"a={name}"]
    return subprocess.Popen(
        [sys.executable, "-c", PIPED, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
@pytest.mark.parametrize("name", PIPES)
def test_an_output_may_be_a_pipe(folder, name):
    with piped(name) as child:
        assert "opening\n" in child.stdout, child.stderr.read()
        content = io.BytesIO(Path(name).read_bytes())
        assert child.wait(60) == 0, child.stderr.read()
    if name == "module.spv":
        assert kp.ShaderModule(content.getvalue()).signature.text("k") == "k(out float[] a)"
    elif name == "ones.png":
        assert np.asarray(Image.open(content)).tolist() == [[255, 255], [255, 255]]
    else:
        loaded = np.load(content)
        np.testing.assert_array_equal((loaded["a"] if name == "ones.npz" else loaded).ravel(), np.ones(4))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
@pytest.mark.parametrize("name", ["ones.npy", "module.spv"])
def test_ctrl_c_ends_the_wait_for_the_reader_of_a_pipe(folder, name):
    with piped(name) as child:
        assert "opening\n" in child.stdout, child.stderr.read()
        time.sleep(0.2)  # into the wait
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
    assert stat.S_ISFIFO(os.stat(name).st_mode)


def test_warnings_of_the_library_are_told_in_one_line(folder, capsys, monkeypatch):
    import warnings

    monkeypatch.delenv("KOMPUTE_PY_STRICT")

    def warns(*args, **kwargs):
        warnings.warn("the grid is grid=(64, 2), or groups=(3,)", kp.KomputeWarning, stacklevel=1)
        warnings.warn("not ours", UserWarning, stacklevel=1)

    monkeypatch.setattr("kompute_py.cli.running.opened", warns)
    before = warnings.showwarning
    main(["run", "multiply.comp", "--in", "a=1", "--in", "b=4"])
    text = capsys.readouterr().err
    assert "kompute-py: warning: the grid is --grid 64,2, or --groups 3\n" in text
    assert "UserWarning: not ours" in text
    assert warnings.showwarning is before


def test_sizes_that_differ_name_the_option(folder, one_line):
    Path("add.comp").write_text("""#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + b[i]; }""")
    assert main(["run", "add.comp", "--in", "a=1,2,3,4", "--in", "b=4,5"]) == 1
    text = one_line()
    assert "--grid" in text and "grid=" not in text


def test_a_constant_with_two_defaults_names_the_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("two.comp").write_text("""#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint L = 32;
layout(binding = 0) buffer X { float x[]; };
void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] *= float(L); }""")
    assert main(["run", "two.comp", "--in", "x=1,2", "--out", "x=-"]) == 1
    assert "--spec L=32" in capsys.readouterr().err
    assert main(["run", "two.comp", "--in", "x=1,2", "--out", "x=-", "--spec", "L=32"]) == 0


def test_the_only_binding_needs_no_name(tmp_path, monkeypatch, capsys):
    """Also if the shader reads and writes it."""
    monkeypatch.chdir(tmp_path)
    Path("scale.comp").write_text("""#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] *= 2; }""")
    assert main(["run", "scale.comp", "--in", "1,2,3", "--out", "-"]) == 0
    assert capsys.readouterr().out == "[2. 4. 6.]\n"
