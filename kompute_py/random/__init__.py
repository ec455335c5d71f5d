"""Random numbers, drawn on the device: ``kp.random.Generator(seed)``.

The generator is Philox 4x32-10, so the same seed gives the same integers and uniform numbers on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._base.public import offer
from .filling import default_generator, fill_randint, fill_randn, fill_uniform
from .generator import Generator, default_rng

__all__ = ["Generator", "default_generator", "default_rng", "fill_randint", "fill_randn", "fill_uniform"]

if not TYPE_CHECKING:  # so that a checker of types knows the names that there are
    _find, __dir__ = offer(__name__, __all__)

    def __getattr__(name: str) -> Any:
        if name == "seed" or (name[0] != "_" and hasattr(Generator, name)):
            code = "Generator(seed)" if name == "seed" else f"Generator(seed).{name}(...)"
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: write {code}", name=name)
        return _find(name)
