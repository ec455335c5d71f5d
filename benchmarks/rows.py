"""Importing this registers all figures, in the order of the table."""

from __future__ import annotations

# isort: off
from . import rows_calls  # noqa: F401
from . import rows_memory  # noqa: F401
from . import rows_work  # noqa: F401

# isort: on
from .figures import FIGURES

__all__ = ["FIGURES"]
