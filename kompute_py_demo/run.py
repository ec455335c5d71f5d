"""Runs the demo on a photograph: runs, measures and checks the pipeline, and writes the pictures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kompute_py as kp

from .checks import Check, check_stages
from .photo import load_photo
from .pipeline import BYTES_PER_PIXEL, PhotoPipeline, Settings
from .reference import run_reference

# The time for all runs of a median, because the time of a single run varies too much.
_MEASURE_SECONDS = 1.0
_MOST_RUNS, _MOST_REFERENCE_RUNS = 20, 5

STEP_COUNT = 12
"""The number of times that `run_demo` calls its `progress`, for the length of a progress bar."""


@dataclass
class DemoResult:
    """The results of a run of the demo."""

    photo: str
    width: int
    height: int
    scaled_from: tuple[int, int] | None
    """The picture's original width and height, if it was too large for the device."""
    settings: Settings
    device: kp.DeviceInfo
    steps: list[str]
    device_seconds: dict[str, float]
    """The median time of each step by the device's timestamps. Empty if it has none."""
    eval_seconds: float
    """The median time of an eval by the host's clock."""
    runs: int
    reference_seconds: dict[str, float]
    """The median time of each stage in NumPy and SciPy, over `reference_runs` runs."""
    reference_runs: int
    checks: list[Check]
    files: list[Path] = field(default_factory=list)

    @property
    def failed(self) -> list[Check]:
        """The checks with a difference beyond their tolerance."""
        return [check for check in self.checks if not check.passed]


def run_demo(
    image: Path | str | None = None,
    *,
    device: int | str | None = None,
    out: Path | str = "kompute-demo",
    settings: Settings | None = None,
    progress: Callable[[str], Any] = lambda step: None,
) -> DemoResult:
    """Runs the pipeline on a picture, checks the results and writes the pictures to `out`.

    The default picture is scikit-image's astronaut. `device` is an argument for `kp.Manager`. `progress` is
    called with the name of each step before it starts. Failed checks are part of the result; the pictures are
    written anyway, because they show the error.

    Raises NotFoundError or InvalidArgumentError if the picture cannot be read, InvalidArgumentError if the
    folder `out` cannot be created, OSError if it is not writable, and the errors of `kp.Manager`.
    """
    settings = settings or Settings()
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)  # before the work, so that a wrong path fails early
    except OSError as error:
        # For a file of that name mkdir only reports "File exists".
        reason = "there is a file of that name" if folder.is_file() else error.strerror or error
        raise kp.InvalidArgumentError(
            f"The pictures cannot be written to the folder {folder}: {reason}; choose another one (--out)"
        ) from error
    progress("reading the picture")
    original = load_photo(None if image is None else Path(image))
    progress("opening the device")
    with kp.Manager(device) as mgr:
        info = mgr.get_device_properties()
        photo = original.fitted(info["limits"]["maxStorageBufferRange"] // BYTES_PER_PIXEL)
        pixels = photo.pixels()
        progress("recording the pipeline")
        pipeline = PhotoPipeline(mgr, pixels, settings)
        progress("running on the device")
        eval_seconds, step_seconds = _measure_device(pipeline)
        progress("running NumPy and SciPy")
        whole, stage_seconds = _measure_reference(pixels, settings)
        checks = check_stages(pipeline, whole, progress)
        result = DemoResult(
            photo=photo.name,
            width=photo.width,
            height=photo.height,
            scaled_from=None if photo is original else (original.width, original.height),
            settings=settings,
            device=info,
            steps=pipeline.steps,
            device_seconds=_medians(step_seconds),
            eval_seconds=statistics.median(eval_seconds),
            runs=len(eval_seconds),
            reference_seconds=_medians(stage_seconds),
            reference_runs=len(stage_seconds),
            checks=checks,
        )
        progress("writing the pictures")
        from .pictures import write_pictures  # Matplotlib loads slowly

        result.files = write_pictures(folder, pipeline, result)
    return result


def _measure_device(pipeline: PhotoPipeline) -> tuple[list[float], list[dict[str, float]]]:
    pipeline.run()  # the first run builds the command buffer and lets the driver compile
    whole: list[float] = []
    steps = []
    while not whole or (len(whole) < _MOST_RUNS and sum(whole) < _MEASURE_SECONDS):
        start = time.perf_counter()
        pipeline.run()
        whole.append(time.perf_counter() - start)
        steps.append(pipeline.timings())
    return whole, steps


def _measure_reference(pixels: Any, settings: Settings) -> tuple[Any, list[dict[str, float]]]:
    runs: list[dict[str, float]] = []
    spent = 0.0
    while True:
        run = run_reference(pixels, settings)
        runs.append(run.seconds)
        spent += sum(run.seconds.values())
        if len(runs) >= _MOST_REFERENCE_RUNS or spent >= _MEASURE_SECONDS:
            return run, runs


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}
