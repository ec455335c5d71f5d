"""The shaders' computations in NumPy and SciPy: a function for each stage, with equal inputs and outputs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from .pipeline import BINS, Settings

_FULL = 65535
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722], np.float32)  # Rec. 709


def blur(pixels: np.ndarray, axis: int, settings: Settings) -> np.ndarray:
    """One pass of the Gaussian blur along rows (axis 1) or columns (axis 0) of RGBA uint16 pixels.

    Alpha stays.
    """
    made = pixels.copy()
    for channel in range(3):
        blurred = ndimage.gaussian_filter1d(
            pixels[..., channel],
            settings.sigma,
            axis=axis,
            mode="nearest",
            output=np.float32,
            radius=settings.radius,
        )
        made[..., channel] = np.rint(blurred)
    return made


def edges(pixels: np.ndarray) -> np.ndarray:
    """The length of the luminance's Sobel gradient as float32; 1 for a step from black to white.

    `pixels` are RGBA uint16.
    """
    luminance = (pixels[..., :3] @ _LUMINANCE) / np.float32(_FULL)
    across = ndimage.sobel(luminance, axis=1, mode="nearest")
    down = ndimage.sobel(luminance, axis=0, mode="nearest")
    return np.hypot(across, down) / np.float32(4)


def tone(pixels: np.ndarray, edge: np.ndarray, settings: Settings) -> np.ndarray:
    """The tone curve with edges as ink: RGBA uint8 from RGBA uint16 pixels and their edges."""
    color = pixels[..., :3].astype(np.float32) / np.float32(_FULL)
    color = np.minimum(color * np.float32(2.0**settings.exposure), np.float32(1))
    curve = color * color * (np.float32(3) - np.float32(2) * color)
    color += (curve - color) * np.float32(settings.contrast)
    grey = (color @ _LUMINANCE)[..., np.newaxis]
    color = grey + (color - grey) * np.float32(settings.saturation)
    color *= (np.float32(1) - np.minimum(np.float32(settings.ink) * edge, np.float32(1)))[..., np.newaxis]
    made = np.empty(pixels.shape, np.uint8)
    made[..., :3] = np.rint(np.clip(color, 0, 1) * np.float32(255))
    made[..., 3] = np.rint(pixels[..., 3] * np.float32(255 / _FULL))
    return made


def histogram(pixels: np.ndarray) -> np.ndarray:
    """The numbers of RGBA uint8 pixels for each luminance from 0 to 255, as uint32."""
    red, green, blue = (pixels[..., channel].astype(np.uint32) for channel in range(3))
    luminance = (2126 * red + 7152 * green + 722 * blue + 5000) // 10000
    return np.bincount(luminance.ravel(), minlength=BINS).astype(np.uint32)


@dataclass(frozen=True)
class ReferenceRun:
    """The results of the whole chain on the host, and the seconds for each stage."""

    toned: np.ndarray
    histogram: np.ndarray
    seconds: dict[str, float]


def run_reference(pixels: np.ndarray, settings: Settings) -> ReferenceRun:
    """Runs the whole chain from the photo, without results from the device."""
    seconds: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], np.ndarray]) -> np.ndarray:
        start = time.perf_counter()
        made = work()
        seconds[stage] = time.perf_counter() - start
        return made

    rows = timed("blur rows", lambda: blur(pixels, 1, settings))
    blurred = timed("blur columns", lambda: blur(rows, 0, settings))
    edge = timed("edges", lambda: edges(blurred))
    toned = timed("tone curve", lambda: tone(blurred, edge, settings))
    counted = timed("histogram", lambda: histogram(toned))
    return ReferenceRun(toned, counted, seconds)
