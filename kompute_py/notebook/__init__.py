"""For notebooks: rich representations, the magics of ``%load_ext kompute_py``, `kp.plot`, sliders for push
constants, and pictures that play.

All modules are imported on first use. Representations need only NumPy; `kp.plot` needs matplotlib (the
extra ``plot``); the magics need IPython, `sliders` ipywidgets, and `play` anywidget (all in the extra
``notebook``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .live import Sliders, sliders
    from .playing import Play, play

__all__ = ["Play", "Sliders", "play", "sliders"]


def __getattr__(name: str) -> Any:
    if name in ("Sliders", "sliders"):
        from . import live

        return getattr(live, name)
    if name in ("Play", "play"):
        from . import playing

        return getattr(playing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
