"""How often the system takes the processor away.

Imports nothing else: processes that time an import use it.
"""

from __future__ import annotations

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def interruptions() -> int:
    """How often the system has taken the processor away from a thread of this process; 0 where it does not
    say.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource is not None else 0
