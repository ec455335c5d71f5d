"""The pipeline on the device: one recorded Sequence from the upload to the download."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import kompute_py as kp

BYTES_PER_PIXEL = 8
"""Bytes per pixel (RGBA, 16 bits per channel) of the largest buffers, which maxStorageBufferRange limits."""

BINS = 256
_LARGEST_RADIUS = 31  # so that blur.comp's strip fits the 16 KiB of shared memory of every device
_STRIP_LENGTH, _STRIP_LINES = 64, 8  # the output of one group of blur.comp
_HISTOGRAM_PIXELS = 4096  # the pixels that one group of histogram.comp counts


@cache
def _shader(name: str) -> bytes:
    """The SPIR-V of ``shaders/<name>.comp`` in this package."""
    return kp.compile(Path(__file__).parent / "shaders" / f"{name}.comp")


@dataclass(frozen=True)
class Settings:
    """The parameters of the pipeline."""

    sigma: float = 2.0
    """The sigma of the Gaussian blur, in pixels."""
    exposure: float = 0.15
    """The exposure of the tone curve, in stops: 1 doubles the light."""
    contrast: float = 0.6
    """0 keeps the tones, 1 is the full S curve."""
    saturation: float = 1.2
    """0 is grey, 1 keeps the colours."""
    ink: float = 2.0
    """The amount by which an edge of 1 (a step from black to white) darkens."""

    def __post_init__(self) -> None:
        if not self.sigma > 0 or self.radius > _LARGEST_RADIUS:
            raise kp.InvalidArgumentError(
                f"sigma is {self.sigma:g}; it must be more than 0 and at most {_LARGEST_RADIUS / 4:g} "
                f"(the blur reads 4 sigma to each side, at most {_LARGEST_RADIUS} pixels)"
            )

    @property
    def radius(self) -> int:
        """The number of pixels that the blur reads on each side: 4 sigma, as in SciPy."""
        return max(1, int(4.0 * self.sigma + 0.5))


class PhotoPipeline:
    """Blur, edges, tone curve and histogram of a photograph, recorded once and run any number of times.

    `pixels` is a uint16 array of shape (height, width, 4). After `run()` the results are in the tensors
    `blurred` (uint16, like the photo), `edges` (float32, height x width), `toned` (uint8, height x width x 4)
    and `histogram` (uint32, 256 bins of luminance). Raises InvalidArgumentError if `pixels` has another shape
    or dtype, or exceeds the device's limits.
    """

    def __init__(self, mgr: kp.Manager, pixels: np.ndarray, settings: Settings | None = None) -> None:
        if pixels.ndim != 3 or pixels.shape[2] != 4 or pixels.dtype != np.uint16 or pixels.size == 0:
            raise kp.InvalidArgumentError(
                f"The photo is an array of shape {pixels.shape}, {pixels.dtype}; "
                "give (height, width, 4), uint16"
            )
        self.settings = settings or Settings()
        device = mgr.get_device_properties()
        limit = device["limits"]["maxStorageBufferRange"]
        if pixels.nbytes > limit:
            raise kp.InvalidArgumentError(
                f"The photo has {pixels.nbytes} bytes ({pixels.shape[1]} x {pixels.shape[0]} pixels); "
                f"buffers of {device['device_name']} have at most {limit} (maxStorageBufferRange): "
                "scale it down"
            )
        height, width = pixels.shape[:2]
        most_groups = device["max_work_group_count"][0]

        self.photo = mgr.tensor_t(pixels)
        self.rows = mgr.empty(pixels.shape, np.uint16, kp.MemoryTypes.storage)
        self.blurred = mgr.empty(pixels.shape, np.uint16)
        self.edges = mgr.empty((height, width), np.float32)
        self.toned = mgr.empty(pixels.shape, np.uint8)
        self.histogram = mgr.empty(BINS, np.uint32)

        size = [width, height]
        blur, sobel = _shader("blur"), _shader("sobel")
        kernel = [self.settings.radius, self.settings.sigma]
        across_rows = (math.ceil(width / _STRIP_LENGTH), math.ceil(height / _STRIP_LINES), 1)
        across_columns = (math.ceil(width / _STRIP_LINES), math.ceil(height / _STRIP_LENGTH), 1)
        blur_rows = mgr.algorithm([self.photo, self.rows], blur, across_rows, [0, *kernel], size)
        blur_columns = mgr.algorithm([self.rows, self.blurred], blur, across_columns, [1, *kernel], size)
        edges = mgr.algorithm(
            [self.blurred, self.edges],
            sobel,
            (math.ceil(width / 16), math.ceil(height / 16), 1),
            push_consts=size,
        )
        tone = mgr.algorithm(
            [self.blurred, self.edges, self.toned],
            _shader("tone"),
            _spread(math.ceil(width * height / 256), most_groups),
            push_consts=[
                self.settings.exposure,
                self.settings.contrast,
                self.settings.saturation,
                self.settings.ink,
            ],
        )
        count = mgr.algorithm(
            [self.toned, self.histogram],
            _shader("histogram"),
            _spread(math.ceil(width * height / _HISTOGRAM_PIXELS), most_groups),
        )

        operations: list[tuple[str, kp.OpBase]] = [
            ("upload", kp.OpSyncDevice([self.photo])),
            _dispatch("blur rows", blur_rows),
            _dispatch("blur columns", blur_columns),
            _dispatch("edges", edges),
            _dispatch("tone curve", tone),
            ("clear histogram", kp.OpFill([self.histogram], 0)),
            _dispatch("histogram", count),
            ("download", kp.OpSyncLocal([self.blurred, self.edges, self.toned, self.histogram])),
        ]
        self.steps = [name for name, _ in operations]
        self._timed = bool(device["timestamps_supported"])
        self.sequence = mgr.sequence(timestamps=self._timed)
        for _, operation in operations:
            self.sequence.record(operation)

    def run(self) -> None:
        """Runs the pipeline on the device and waits until the results are on the host."""
        self.sequence.eval()

    def timings(self) -> dict[str, float]:
        """Seconds on the device for each of the `steps` of the last run; empty if it has no timestamps."""
        if not self._timed:
            return {}
        return {step: seconds for step, (_, seconds) in zip(self.steps, self.sequence.timings(), strict=True)}


def _dispatch(name: str, algorithm: kp.Algorithm) -> tuple[str, kp.OpBase]:
    algorithm.name = name  # profiles and messages of validation use it
    return name, kp.OpAlgoDispatch(algorithm)


def _spread(groups: int, most: int) -> tuple[int, int, int]:
    """`groups` over two axes, because many devices allow only 65535 groups on one axis."""
    across = min(groups, most)
    return across, math.ceil(groups / across), 1
