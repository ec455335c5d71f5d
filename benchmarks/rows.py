"""Importing this registers all figures, in the order of the table."""

from __future__ import annotations

# isort: off
from . import rows_sequence  # noqa: F401
from . import rows_calls  # noqa: F401
from . import rows_operations  # noqa: F401
from . import rows_async  # noqa: F401
from . import rows_await  # noqa: F401
from . import rows_streaming  # noqa: F401
from . import rows_memory  # noqa: F401
from . import rows_creation  # noqa: F401
from . import rows_growth  # noqa: F401
from . import rows_transfer  # noqa: F401
from . import rows_access  # noqa: F401
from . import rows_start  # noqa: F401

# isort: on
from .figures import REGISTRY

__all__ = ["REGISTRY"]
