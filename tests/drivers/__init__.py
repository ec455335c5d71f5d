"""The Vulkan drivers and validation layers that the tests run on.

`python -m tests.drivers` prints them as JSON and fetches or builds what is missing.
"""

from .control import NullControl, Result, null_control
from .locate import (
    LAYERS,
    PROFILES,
    SYSTEM,
    DriverUnavailableError,
    drivers,
    environment,
    layer_directory,
    manifest,
)

__all__ = [
    "LAYERS", "PROFILES", "SYSTEM", "DriverUnavailableError", "NullControl", "Result", "drivers",
    "environment", "layer_directory", "manifest", "null_control",
]  # fmt: skip
