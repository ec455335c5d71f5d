"""For notebooks: rich representations, the magics of ``%load_ext kompute_py``, `kp.plot`, and sliders for
push constants.

All modules are imported on first use. Representations need only NumPy; `kp.plot` needs matplotlib (the extra
``plot``); the magics need IPython and `sliders` ipywidgets (both in the extra ``notebook``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .live import Sliders, sliders

__all__ = ["Sliders", "sliders"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import live

        return getattr(live, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
