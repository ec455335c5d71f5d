"""The demo: a recorded pipeline on a photograph, checked stage by stage against NumPy and SciPy.

Needs Pillow, SciPy, Matplotlib and rich, and scikit-image for the default picture:
``pip install "kompute-py[demo]"``.
"""

from __future__ import annotations

from .checks import Check
from .pipeline import PhotoPipeline, Settings
from .run import DemoResult, run_demo

__all__ = ["Check", "DemoResult", "PhotoPipeline", "Settings", "run_demo"]
