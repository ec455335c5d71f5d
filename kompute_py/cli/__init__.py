"""The command line ``kompute-py``. Needs typer and rich: ``pip install "kompute-py[cli]"``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

_LIBRARIES = ("typer", "rich")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status: 0, 1 for an error, 2 for wrong usage.

    By default it takes the arguments of this process.
    """
    try:
        from .app import run
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _LIBRARIES:
            raise
        print(
            f'kompute-py: error: the command line needs {missing}: pip install "kompute-py[cli]"',
            file=sys.stderr,
        )
        return 1
    return run(argv)
