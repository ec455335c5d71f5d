"""For notebooks: rich representations, the magics of ``%load_ext kompute_py``, `kp.plot`, sliders for push
constants, and pictures that play.

All modules are imported on first use. Representations need only NumPy; `kp.plot` needs matplotlib (the
extra ``plot``); the magics need IPython, `sliders` ipywidgets, and `play` anywidget (all in the extra
``notebook``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .._base.public import offer

if TYPE_CHECKING:
    from .live import Sliders, sliders
    from .playing import Play, play

__all__ = ["Play", "Sliders", "play", "sliders"]
_HOMES = {"Play": "playing", "Sliders": "live", "play": "playing", "sliders": "live"}


def _load(name: str) -> object:
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


if not TYPE_CHECKING:  # so that a checker of types knows the names that there are
    __getattr__, __dir__ = offer(__name__, __all__, _load)
