"""Random numbers, drawn on the device: ``kp.random.Generator(seed)``.

The generator is Philox 4x32-10, so the same seed gives the same integers and uniform numbers on every device.
"""

from __future__ import annotations

from .generator import Generator, default_generator, default_rng, fill_randint, fill_randn, fill_uniform

__all__ = ["Generator", "default_generator", "default_rng", "fill_randint", "fill_randn", "fill_uniform"]


def __dir__() -> list[str]:
    return sorted(__all__)
