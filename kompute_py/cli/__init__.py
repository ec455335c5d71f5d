"""The command line ``kompute-py``.

All commands except ``info`` need typer and rich: ``pip install "kompute-py[cli]"``.
"""

from __future__ import annotations

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
    else:
        return run(argv)
    from .plain import run as run_plain

    return run_plain(argv, missing)
