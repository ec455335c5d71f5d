"""Films: `kp.write_video`, and `kp.show` with a path. Files are read again by Pillow and PyAV."""

from __future__ import annotations

import av
import numpy as np
import pytest
from PIL import Image as pillow

import kompute_py as kp
from kompute_py.cli import main
from tests.support.child import python

WAVES = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform P { float time; int frame; float speed; bool flip; };
void main() {
    uvec2 p = gl_GlobalInvocationID.xy;
    if (p.x >= 24 || p.y >= 17) return;
    y[p.y * 24 + p.x] = vec4(frame / 16.0, fract(time * speed), p.x / 24.0, 1);
}
"""


def decoded(path):
    with av.open(str(path)) as container:
        rate = container.streams.video[0].average_rate
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)], rate


def gray(count, rows=16, columns=24):
    return [np.full((rows, columns, 3), 10 * k, np.uint8) for k in range(count)]


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv", "webm", "avi"])
def test_videos_hold_each_frame(tmp_path, suffix):
    path = tmp_path / f"film.{suffix}"
    assert kp.write_video(path, gray(12), fps=12) == 12
    frames, rate = decoded(path)
    assert len(frames) == 12 and rate == 12
    for k, frame in enumerate(frames):
        np.testing.assert_allclose(frame, 10 * k, atol=6)  # codecs lose some


def test_odd_sizes_get_a_copy_of_the_last_line(tmp_path):
    kp.write_video(tmp_path / "film.mp4", gray(3, 15, 33))
    assert decoded(tmp_path / "film.mp4")[0][0].shape == (16, 34, 3)


def test_gifs_and_numbered_pictures_are_exact(tmp_path):
    pictures = [np.random.default_rng(k).integers(0, 2, (9, 10), np.uint8) * 255 for k in range(5)]
    assert kp.write_video(tmp_path / "film.gif", iter(pictures), fps=25) == 5
    made = pillow.open(tmp_path / "film.gif")
    assert made.n_frames == 5 and made.info["duration"] == 40 and made.info["loop"] == 0
    for k, picture in enumerate(pictures):
        made.seek(k)
        np.testing.assert_array_equal(np.asarray(made.convert("L")), picture)
    kp.write_video(tmp_path / "at-%03d.png", pictures)
    for k, picture in enumerate(pictures):
        np.testing.assert_array_equal(
            np.asarray(pillow.open(tmp_path / f"at-{k:03d}.png").convert("L")), picture
        )


def test_frames_are_tensors_images_and_arrays(mgr, tmp_path):
    picture = np.random.default_rng(3).integers(0, 256, (8, 9, 4), np.uint8)
    floats = picture[..., 0].astype(np.float32) / 255
    frames = [mgr.image_t(picture), mgr.tensor_t(floats), floats[..., None]]
    kp.write_video(tmp_path / "%d.png", frames)
    first, second, third = (np.asarray(pillow.open(tmp_path / f"{k}.png")) for k in range(3))
    np.testing.assert_array_equal(first, picture[..., :3])
    np.testing.assert_array_equal(second[..., 1], picture[..., 0])
    np.testing.assert_array_equal(third, second)
    kp.write_video(tmp_path / "%d.png", [mgr.tensor_t(floats)], limits=(0, 2))
    np.testing.assert_allclose(
        np.asarray(pillow.open(tmp_path / "0.png"))[..., 0], picture[..., 0] / 2, atol=0.51
    )


def test_one_frame_is_a_picture(tmp_path):
    assert kp.write_video(tmp_path / "still.png", gray(1)) == 1
    assert pillow.open(tmp_path / "still.png").size == (24, 16)


def test_what_is_not_a_film_is_refused(tmp_path):
    for name, message in (
        ("a.txt", "not a film's name"),
        ("a.png", r"a-%03d\.png"),
        ("a%d-%d.png", "two places"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=message):
            kp.write_video(tmp_path / name, gray(2))
    for path in (np.zeros(()), 3, None, b"a.gif"):
        with pytest.raises(kp.errors.ArgumentTypeError, match="path is"):
            kp.write_video(path, gray(2))
    with pytest.raises(kp.NotFoundError, match="there is no folder"):
        kp.write_video(tmp_path / "no" / "a.mp4", gray(2))
    for frames, message in (
        ([], "there are no frames"),
        ([*gray(1), *gray(1, 18)], "frame 1 has 18 rows and 24 columns, and the first has 16 and 24"),
        ([np.zeros(5)], r"frame 0 .* shape \(5,\)"),
        (["picture"], "frame 0 is"),
    ):
        for name in ("a.mp4", "a.gif", "a-%d.png"):
            with pytest.raises(kp.InvalidArgumentError, match=message):
                kp.write_video(tmp_path / name, frames)
    for options, message in (
        ({"fps": 0}, "above 0"),
        ({"fps": 1000}, "at most 240"),
        ({"limits": (1, 1)}, "two different"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=message):
            kp.write_video(tmp_path / "a.gif", gray(2), **options)
    with pytest.raises(OSError, match="No space"):
        kp.write_video(_full(tmp_path), gray(4))


def _full(tmp_path):
    """A video on a device without space."""
    path = tmp_path / "full.avi"
    path.symlink_to("/dev/full")
    return path


def test_a_kernel_as_a_film(mgr, tmp_path):
    y, seen = mgr.zeros((17, 24, 4)), []
    kernel = mgr.kernel(WAVES, name="waves")
    kp.show(
        kernel, y, grid=(24, 17), speed=(0.0, 2.0, 0.5, 1.5), before=lambda: seen.append(1), fps=10, frames=4,
        path=tmp_path / "%d.png",
    )  # fmt: skip
    assert len(seen) == 4
    for k in range(4):
        frame = np.asarray(pillow.open(tmp_path / f"{k}.png"))
        expected = np.empty((17, 24, 3))
        expected[:] = np.stack(np.broadcast_arrays(k / 16, k / 10 * 1.5 % 1, np.arange(24) / 24), axis=-1)
        np.testing.assert_allclose(frame / 255, expected, atol=0.51 / 255)


def test_watch_writes_a_film_of_so_many_groups(mgr, tmp_path):
    (tmp_path / "w.comp").write_text(
        "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n"
        "layout(binding = 0, rgba8) uniform writeonly image2D i;\n"
        "void main() { imageStore(i, ivec2(gl_GlobalInvocationID.xy), vec4(1)); }\n"
    )
    command = ["watch", str(tmp_path / "w.comp"), "--shape", "i=8,16", "--groups", "1,1", "--frames", "1"]
    assert main([*command, "--out", str(tmp_path / "%d.png")]) == 0
    frame = np.asarray(pillow.open(tmp_path / "0.png"))[..., 0]
    np.testing.assert_array_equal(frame, np.repeat([[255, 0]], 8, axis=1).repeat(8, axis=0))


def test_a_sequence_as_a_film(mgr, tmp_path):
    y = mgr.tensor_t(np.zeros((8, 9), np.float32))
    one = mgr.tensor_t(np.full((8, 9), 0.25, np.float32))
    seq = mgr.sequence().record(kp.OpSyncDevice([y, one])).record(kp.OpCopy([one, y]))
    kp.show(seq, show=y, frames=2, path=tmp_path / "%d.png")
    np.testing.assert_array_equal(np.asarray(pillow.open(tmp_path / "1.png")), 64)


def test_what_cannot_be_shown(mgr, tmp_path):
    y = mgr.zeros((17, 24, 4))
    kernel, seq = mgr.kernel(WAVES), mgr.sequence().record(kp.OpSyncDevice([y]))
    film = {"path": tmp_path / "a.gif", "frames": 2}
    for keywords, message in (
        ({"path": "a.gif"}, "give frames="),
        ({"frames": 0}, "whole number from 1"),
        ({**film, "path": "a.txt"}, "not a film's name"),
        ({**film, "fps": -1}, "show: fps"),
        ({**film, "show": mgr.zeros(5)}, r"show shows a picture|\(5,\)"),
        ({**film, "nobody": 1}, "nobody"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=message):
            kp.show(kernel, y, grid=(24, 17), **keywords)
    with pytest.raises(kp.InvalidArgumentError, match="give show="):
        kp.show(seq, **film)
    with pytest.raises(kp.InvalidArgumentError, match="arguments already"):
        kp.show(seq, y, show=y, **film)
    with pytest.raises(kp.ArgumentTypeError, match=r"kp\.Kernel or a kp\.Sequence"):
        kp.show(y, **film)
    assert not list(tmp_path.iterdir())


@pytest.mark.own_driver
def test_without_the_extra_it_is_named(tmp_path):
    script = (
        "import sys\nfor name in ('av', 'PIL', 'dearpygui'): sys.modules[name] = None\n"
        "import numpy as np, kompute_py as kp\n"
        "def told(call):\n    try: call()\n    except kp.FailedPreconditionError as e: print(e)\n"
        "frames = [np.zeros((8, 8))]\n"
        "for name in ('a.mp4', 'a.gif', '%d.png'): told(lambda: kp.write_video(name, frames))\n"
        "m = kp.Manager(); y = m.zeros((8, 8)); s = m.sequence().record(kp.OpSyncDevice([y]))\n"
        "told(lambda: kp.show(s, show=y))"
    )
    done = python("-c", script, cwd=tmp_path)
    told = done.stdout.splitlines()
    assert len(told) == 4 and not done.returncode, done.stderr
    assert all("pip install 'kompute-py[video]'" in line for line in told[:3])
    assert "pip install 'kompute-py[show]'" in told[3] and "path= and frames=" in told[3]
