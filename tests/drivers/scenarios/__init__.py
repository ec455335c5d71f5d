"""Checks of the null driver. Each runs in a process of its own: `python -m tests.drivers.scenarios NAME`.

All must end with no violation, unless the check has looked at it and cleared it, and with the live objects
that it says.
"""

from . import advertised, failures, images, memory, shaders, synchronisation
from .registry import scenarios

__all__ = ["advertised", "failures", "images", "memory", "scenarios", "shaders", "synchronisation"]
