"""The environment in which a process sees one driver only."""

from __future__ import annotations

from tests.drivers import environment

# By default the null driver plays a discrete GPU with non-coherent host memory and compares every byte of a
# flush, some 6 us for 12 KiB that no real driver takes. With coherent memory what is left is the overhead of
# who calls it.
_NULL_CONFIG = "memory=unified"


def driver_environment(driver: str) -> dict[str, str]:
    """Environment variables for "lavapipe", "swiftshader" or "null".

    Raises tests.drivers.DriverUnavailableError.
    """
    return environment(driver, None, _NULL_CONFIG if driver == "null" else None)
