"""Checks of the device's results.

Each stage is compared with NumPy and SciPy on its actual input from the device. The check therefore names the
wrong stage, and rounding does not accumulate. Finally, the toned picture is compared with the whole chain on
the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import reference
from .pipeline import PhotoPipeline
from .reference import ReferenceRun


@dataclass(frozen=True)
class Check:
    """The largest and the allowed difference between the device and the reference in one stage's result."""

    stage: str
    difference: float
    tolerance: float
    unit: str

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance. A NaN is not."""
        return self.difference <= self.tolerance


# One level: device and host may round a value halfway between two levels differently.
_ONE_LEVEL = 1.0
# Sums of float32 values up to 4 in another order, and a square root that may differ in the last digits.
_EDGES = 1e-5


def largest_difference(result: np.ndarray, expected: np.ndarray) -> float:
    """The largest absolute difference of two arrays of the same shape; NaN if one of them contains a NaN.

    Raises ValueError if the shapes differ.
    """
    if result.shape != expected.shape:
        raise ValueError(f"shapes differ: {result.shape} and {expected.shape}")
    return float(np.max(np.abs(result.astype(np.float64) - expected)))


def check_stages(
    pipeline: PhotoPipeline, whole: ReferenceRun, progress: Callable[[str], Any] = lambda step: None
) -> list[Check]:
    """Checks each stage of a pipeline that has run; `whole` is the reference's run on the same photo.

    `progress` is called with a description of each check before it starts.
    """
    settings = pipeline.settings
    photo, blurred, edges, toned, counted = (
        tensor.numpy()
        for tensor in (pipeline.photo, pipeline.blurred, pipeline.edges, pipeline.toned, pipeline.histogram)
    )
    rows = pipeline.rows.read()  # on the device only
    stages: list[tuple[str, np.ndarray, Callable[[], np.ndarray], float, str]] = [
        ("blur rows", rows, lambda: reference.blur(photo, 1, settings), _ONE_LEVEL, "of 65535"),
        ("blur columns", blurred, lambda: reference.blur(rows, 0, settings), _ONE_LEVEL, "of 65535"),
        ("edges", edges, lambda: reference.edges(blurred), _EDGES, "of 1"),
        ("tone curve", toned, lambda: reference.tone(blurred, edges, settings), _ONE_LEVEL, "of 255"),
        ("histogram", counted, lambda: reference.histogram(toned), 0.0, "pixels"),
        ("whole chain", toned, lambda: whole.toned, _ONE_LEVEL, "of 255"),
    ]
    checks = []
    for stage, result, expected, tolerance, unit in stages:
        progress(f"checking: {stage}")
        checks.append(Check(stage, largest_difference(result, expected()), tolerance, unit))
    return checks
