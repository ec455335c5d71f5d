"""The demo: its reference against results worked out by hand, its pipeline against the reference, its photos
and pictures.
"""

from __future__ import annotations

import io
import math
import time

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import kompute_py as kp
from kompute_py._base.text import binary_size, duration
from kompute_py_demo import Check, PhotoPipeline, Settings, checks, reference, run, run_demo
from kompute_py_demo.photo import load_photo
from kompute_py_demo.report import print_report

RNG = np.random.default_rng(3)
NEUTRAL = Settings(exposure=0.0, contrast=0.0, saturation=1.0, ink=0.0)


def random_photo(height, width):
    return RNG.integers(0, 65536, (height, width, 4), dtype=np.uint16)


def grey(values):
    """RGBA pixels of these 16-bit grey values."""
    pixels = np.full((*np.shape(values), 4), 65535, np.uint16)
    pixels[..., :3] = np.asarray(values)[..., np.newaxis]
    return pixels


# -- the reference -------------------------------------------------------------------------------------------


def test_reference_blur_of_a_line_is_the_gaussian():
    settings = Settings(sigma=1.5)
    line = np.zeros((1, 41))
    line[0, 20] = 65535
    blurred = reference.blur(grey(line), 1, settings)[0, :, 0]
    distance = np.arange(41) - 20
    weights = np.exp(-0.5 * (distance / 1.5) ** 2) * (np.abs(distance) <= settings.radius)
    assert np.max(np.abs(blurred - 65535 * weights / weights.sum())) <= 0.51
    assert np.array_equal(
        reference.blur(grey(line), 0, settings), grey(line)
    )  # across the line nothing changes


def test_reference_edges_of_a_step_are_one():
    step = np.zeros((5, 8))
    step[:, 4:] = 65535
    for pixels in (grey(step), grey(step.T)):
        edges = reference.edges(pixels)
        edges = edges if edges.shape == step.shape else edges.T
        assert np.allclose(edges[:, 3:5], 1.0, atol=1e-6)
        assert not edges[:, :3].any() and not edges[:, 5:].any()


def test_reference_tone_curve():
    pixels = grey([[0, 16384, 32768, 65535]])
    none = np.zeros((1, 4), np.float32)
    assert reference.tone(pixels, none, NEUTRAL)[0, :, 0].tolist() == [0, 64, 128, 255]
    brighter = Settings(exposure=1.0, contrast=0.0, saturation=1.0, ink=0.0)
    assert reference.tone(pixels, none, brighter)[0, :, 0].tolist() == [0, 128, 255, 255]
    curved = Settings(exposure=0.0, contrast=1.0, saturation=1.0, ink=0.0)
    assert reference.tone(pixels, none, curved)[0, :, 0].tolist() == [0, round(255 * 0.15625), 128, 255]
    inked = Settings(exposure=0.0, contrast=0.0, saturation=1.0, ink=2.0)
    edges = np.array([[0.0, 0.25, 0.5, 0.25]], np.float32)
    assert reference.tone(pixels, edges, inked)[0, :, 0].tolist() == [0, 32, 0, 128]
    red = np.array([[[65535, 0, 0, 65535]]], np.uint16)
    pale = Settings(exposure=0.0, contrast=0.0, saturation=0.0, ink=0.0)
    assert reference.tone(red, none[:, :1], pale)[0, 0].tolist() == [54, 54, 54, 255]


def test_reference_histogram():
    pixels = np.array([[[0, 0, 0, 255], [255, 255, 255, 0]], [[255, 0, 0, 255], [0, 255, 0, 255]]], np.uint8)
    counts = reference.histogram(pixels)
    assert counts.dtype == np.uint32 and counts.sum() == 4
    assert np.flatnonzero(counts).tolist() == [0, 54, 182, 255]


# -- the pipeline on the device ------------------------------------------------------------------------------


@pytest.fixture
def device(mgr):
    """A Manager whose driver runs shaders."""
    return mgr


def run_checks(pipeline, pixels):
    return checks.check_stages(pipeline, reference.run_reference(pixels, pipeline.settings))


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (17, 3), (16, 64), (65, 130), (211, 97)])
def test_every_stage_is_right_at_any_size(device, size):
    pixels = random_photo(*size)
    pipeline = PhotoPipeline(device, pixels)
    pipeline.run()
    failed = [check for check in run_checks(pipeline, pixels) if not check.passed]
    assert failed == []
    # Alpha is not part of it: it passes through.
    assert np.array_equal(pipeline.blurred.numpy()[..., 3], pixels[..., 3])


@pytest.mark.parametrize(
    "settings",
    [
        Settings(sigma=0.2),
        Settings(sigma=7.75, exposure=-2.0, contrast=1.0, saturation=0.0, ink=0.0),
        Settings(exposure=1.5, contrast=0.0, saturation=2.0, ink=9.0),
    ],
)
def test_every_stage_is_right_with_any_settings(device, settings):
    pixels = random_photo(70, 81)
    pipeline = PhotoPipeline(device, pixels, settings)
    pipeline.run()
    assert [check for check in run_checks(pipeline, pixels) if not check.passed] == []


def test_runs_again_with_a_new_photo_and_a_fresh_histogram(device):
    pixels = random_photo(40, 50)
    pipeline = PhotoPipeline(device, pixels)
    pipeline.run()
    pipeline.run()
    assert pipeline.histogram.data().sum() == 40 * 50
    other = random_photo(40, 50)
    pipeline.photo.numpy()[...] = other
    pipeline.run()
    assert [check for check in run_checks(pipeline, other) if not check.passed] == []


def test_a_profile_adds_up_to_the_whole(device, needs):
    """Within 5 % in the run that other work has disturbed least."""
    needs(device, "timestamps")
    pipeline = PhotoPipeline(device, random_photo(300, 200))
    pipeline.run()
    whole = []
    with device.profile() as p:
        pipeline.run()  # is built anew
        for _ in range(10):
            begin = time.perf_counter()
            pipeline.run()
            whole.append(time.perf_counter() - begin)
    steps = p.records["seconds"].reshape(-1, len(pipeline.steps))
    ratios = steps.sum(axis=1)[1:] / whole
    # On a GPU, submission and wait take longer than steps of so small a photo.
    least = 0.95 if device.get_device_properties()["type"] == "cpu" else 0
    assert ratios.max() > least and (ratios < 1.01).all()
    named = {"blur rows", "blur columns", "edges", "tone curve", "histogram"}
    assert set(p.records["name"]) == named | {"OpSyncDevice", "OpFill", "OpSyncLocal"}


def test_timings_have_every_step(device, needs):
    needs(device, "timestamps")
    pipeline = PhotoPipeline(device, random_photo(64, 64))
    pipeline.run()
    timings = pipeline.timings()
    assert list(timings) == pipeline.steps
    assert all(seconds >= 0 for seconds in timings.values()) and sum(timings.values()) > 0


@pytest.mark.parametrize(
    ("tensor", "named"),
    [("blurred", "blur columns"), ("edges", "edges"), ("toned", "tone curve"), ("histogram", "histogram")],
)
def test_a_wrong_stage_is_named(device, tensor, named):
    pixels = random_photo(30, 30)
    pipeline = PhotoPipeline(device, pixels)
    pipeline.run()
    values = getattr(pipeline, tensor).data()
    values[0] = values[0] + 64 if values[0] < 128 else values[0] - 64
    failed = [check.stage for check in run_checks(pipeline, pixels) if not check.passed]
    assert failed[0] == named


def test_no_number_is_within_tolerance():
    assert not Check("edges", math.nan, 1.0, "of 1").passed
    assert not Check("edges", 1.1, 1.0, "of 1").passed
    assert Check("edges", 1.0, 1.0, "of 1").passed


@pytest.mark.own_driver
@pytest.mark.parametrize("sigma", [0.0, -1.0, 7.9, math.nan])
def test_sigma_beyond_what_the_shader_takes(sigma):
    with pytest.raises(kp.InvalidArgumentError, match="sigma is"):
        Settings(sigma=sigma)


def test_refuses_other_arrays(device):
    for wrong in (
        np.zeros((4, 4, 3), np.uint16),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 4), np.uint16),
    ):
        with pytest.raises(kp.InvalidArgumentError, match="uint16"):
            PhotoPipeline(device, wrong)


def test_refuses_a_photo_beyond_the_largest_buffer(device):
    limit = device.get_device_properties()["limits"]["maxStorageBufferRange"]
    huge = np.broadcast_to(np.zeros(4, np.uint16), (limit // (4096 * 8) + 1, 4096, 4))  # no memory behind it
    with pytest.raises(kp.InvalidArgumentError, match="maxStorageBufferRange"):
        PhotoPipeline(device, huge)


# -- photographs ---------------------------------------------------------------------------------------------


def saved(tmp_path, image, name="photo.png", **options):
    path = tmp_path / name
    image.save(path, **options)
    return path


def test_the_default_photo_is_the_astronaut():
    from skimage.data import astronaut

    photo = load_photo(None)
    assert np.array_equal(photo.pixels()[..., :3], astronaut().astype(np.uint16) * 257)


@pytest.mark.own_driver
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_photos_of_any_mode(tmp_path, mode):
    if mode == "I;16":
        image = Image.fromarray(np.full((3, 5), 40000, np.uint16))
        expected = [40000] * 3
    else:
        image = Image.new("RGB", (5, 3), (255, 255, 255)).convert(mode)
        expected = [65535] * 3
    photo = load_photo(saved(tmp_path, image))
    assert (photo.width, photo.height) == (5, 3)
    pixels = photo.pixels()
    assert pixels.shape == (3, 5, 4) and pixels.dtype == np.uint16
    assert (pixels[..., :3] == expected).all() and (pixels[..., 3] == 65535).all()


def test_transparent_parts_stand_on_white(tmp_path):
    image = Image.new("RGBA", (2, 1), (200, 0, 0, 255))
    image.putpixel((1, 0), (200, 0, 0, 0))
    pixels = load_photo(saved(tmp_path, image)).pixels()
    assert (pixels[0, :, :3] // 257).tolist() == [[200, 0, 0], [255, 255, 255]]


def test_a_jpeg_is_turned_upright(tmp_path):
    image = Image.new("RGB", (40, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn by 90 degrees
    photo = load_photo(saved(tmp_path, image, "photo.jpg", exif=exif))
    assert (photo.width, photo.height) == (20, 40)


def test_cmyk_jpeg(tmp_path):
    photo = load_photo(saved(tmp_path, Image.new("CMYK", (8, 8)), "photo.jpg"))
    assert (photo.pixels() == 65535).all()


def test_photos_that_are_none(tmp_path):
    with pytest.raises(kp.NotFoundError, match="does not exist"):
        load_photo(tmp_path / "missing.png")
    with pytest.raises(kp.NotFoundError, match="is a folder"):
        load_photo(tmp_path)
    text = tmp_path / "text.png"
    text.write_text("not a picture")
    with pytest.raises(kp.InvalidArgumentError, match="no picture"):
        load_photo(text)
    whole = saved(tmp_path, Image.fromarray(RNG.integers(0, 255, (64, 64, 3), dtype=np.uint8)))
    whole.write_bytes(whole.read_bytes()[:2000])
    with pytest.raises(kp.InvalidArgumentError, match="cannot be read"):
        load_photo(whole)


def test_a_photo_is_fitted_in_its_proportions(tmp_path):
    photo = load_photo(saved(tmp_path, Image.new("RGB", (400, 200), (10, 20, 30))))
    assert photo.fitted(400 * 200) is photo
    small = photo.fitted(1000)
    assert small.width * small.height <= 1000 and small.width == 2 * small.height
    assert (small.pixels()[..., :3] // 257 == [10, 20, 30]).all()
    deep = load_photo(saved(tmp_path, Image.fromarray(np.full((50, 50), 12345, np.uint16))))
    assert (deep.fitted(100).pixels()[..., :3] == 12345).all()
    with pytest.raises(kp.InvalidArgumentError, match="no picture of these proportions"):
        load_photo(saved(tmp_path, Image.new("RGB", (5000, 1)))).fitted(100)


# -- the whole demo ------------------------------------------------------------------------------------------

FILES = ["blurred.png", "edges.png", "toned.png", "histogram.png", "contact_sheet.png"]


@pytest.fixture
def validated(device, monkeypatch):
    """Validation that raises, in Managers that the tested code makes."""
    monkeypatch.setenv("KOMPUTE_PY_VALIDATION", "1")
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "1")


def reported(result):
    text = io.StringIO()
    print_report(result, Console(file=text, width=120))
    return text.getvalue()


def test_demo_of_the_astronaut(validated, tmp_path):
    steps = []
    result = run_demo(out=tmp_path / "new" / "folder", progress=steps.append)
    assert result.failed == [] and len(result.checks) == 6
    assert len(steps) == run.STEP_COUNT
    assert [file.name for file in result.files] == FILES
    for file in result.files:
        with Image.open(file) as picture:
            picture.load()
            if file.name in ("blurred.png", "edges.png", "toned.png"):
                assert picture.size == (512, 512)
    photo = load_photo(None).pixels()
    settings = result.settings
    blurred = reference.blur(reference.blur(photo, 1, settings), 0, settings)[..., :3] / 257
    written = np.asarray(Image.open(tmp_path / "new" / "folder" / "blurred.png"))
    assert np.max(np.abs(written - blurred)) <= 0.6
    assert result.eval_seconds > 0 and result.runs >= 1
    assert set(result.reference_seconds) <= set(result.steps)
    if result.device_seconds:
        assert list(result.device_seconds) == result.steps
        assert 0 < sum(result.device_seconds.values()) < 2 * result.eval_seconds

    text = reported(result)
    assert result.device["device_name"] in text and "512 × 512" in text
    for step in result.steps:
        assert step in text
    assert duration(result.eval_seconds) in text and "wrong" not in text


def test_report_tells_what_it_is_given(validated, tmp_path):
    path = saved(tmp_path, Image.fromarray(RNG.integers(0, 255, (33, 47, 3), dtype=np.uint8)), "a[b]$c$.png")
    result = run_demo(path, out=tmp_path)
    result.checks[2] = Check("edges", 0.4321, 1e-5, "of 1")
    result.device_seconds = {}
    result.eval_seconds = 1.875
    text = reported(result)
    assert "edges is wrong" in text and "0.432" in text and "1.88 s" in text
    assert "has no timestamps" in text and "a[b]$c$.png" in text


def test_demo_scales_a_photo_that_is_too_large(validated, tmp_path, monkeypatch):
    path = saved(tmp_path, Image.fromarray(RNG.integers(0, 255, (60, 90, 3), dtype=np.uint8)))
    limit = kp.list_devices()[0]["limits"]["maxStorageBufferRange"]
    monkeypatch.setattr(run, "BYTES_PER_PIXEL", limit // 1000)
    result = run_demo(path, out=tmp_path / "out")
    assert result.failed == []
    assert result.scaled_from == (90, 60) and result.width * result.height <= 1001
    assert "Scaled down from 90 × 60" in reported(result)


def test_demo_of_extreme_photos(validated, tmp_path):
    for number, size in enumerate([(1, 1), (300, 2), (2, 300)]):
        path = saved(tmp_path, Image.new("RGB", size, (0, 0, 0)))
        result = run_demo(path, out=tmp_path / str(number))
        assert result.failed == [] and all(file.is_file() for file in result.files)


def test_units():
    assert [duration(s) for s in (0.0, 3.2e-8, 1.5e-6, 0.0123, 0.5, 2.0, 123.4)] == [
        "0 ns", "32 ns", "1.50 µs", "12.3 ms", "500 ms", "2.00 s", "123 s",
    ]  # fmt: skip
    assert [binary_size(n) for n in (0, 128, 32768, 1 << 27, 3 << 29)] == [
        "0 bytes", "128 bytes", "32 KiB", "128 MiB", "1.5 GiB",
    ]  # fmt: skip
