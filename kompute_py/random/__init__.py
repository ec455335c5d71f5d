"""Random numbers, drawn on the device: ``kp.random.Generator(seed)``.

The generator is Philox 4x32-10, so the same seed gives the same integers and uniform numbers on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.public import offer
from .generator import Generator, default_generator, default_rng, fill_randint, fill_randn, fill_uniform

__all__ = ["Generator", "default_generator", "default_rng", "fill_randint", "fill_randn", "fill_uniform"]

if not TYPE_CHECKING:  # so that a checker of types knows the names that there are
    __getattr__, __dir__ = offer(__name__, __all__)
