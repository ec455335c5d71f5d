"""How far a transfer of bytes is: told to a function, or shown by a bar where people wait for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._base.errors import ArgumentTypeError

__all__ = ["ByteProgress", "Progress"]

Progress = Callable[[int, int, str], object]
"""Called with the bytes done, the bytes in all, and the name of what is being moved."""

_PATIENCE = 1.0  # seconds


class ByteProgress:
    """Reports on `total` bytes of the work that `what` names.

    `progress` is a function to call (see `Progress`), False for no report, or None for a bar: it appears after a second, on
    stderr where that is a terminal and the package rich is installed, and vanishes at the end. Nothing is imported, and no
    thread runs, for what takes less. Raises ArgumentTypeError for any other `progress`.
    """

    def __init__(self, what: str, total: int, progress: Progress | bool | None) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise ArgumentTypeError(
                f"progress is a {type(progress).__name__}; give a function of (bytes done, bytes in all, name), "
                "False for no bar, or None"
            )
        self._what = what
        self._total = total
        self._call = progress if callable(progress) else None
        self._begins = time.monotonic() + _PATIENCE
        self._wants_bar = progress is not False and self._call is None
        self._bar: Any = None
        self._task: Any = None

    def at(self, done: int, name: str) -> None:
        """`done` bytes are done; what is moved is called `name`."""
        if self._call is not None:
            self._call(done, self._total, name)
        elif self._bar is not None:
            self._bar.update(self._task, completed=done, name=name)
        elif self._wants_bar and time.monotonic() >= self._begins:
            self._wants_bar = False
            self._show(done, name)

    def _show(self, done: int, name: str) -> None:
        if sys.stderr is None or not sys.stderr.isatty():
            return
        try:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
        except ImportError:
            return
        self._bar = Progress(
            TextColumn(escape(self._what)),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            # The name comes from a file: no markup in it counts.
            TextColumn("{task.fields[name]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._what, total=self._total, completed=done, name=name)
        self._bar.start()

    def __enter__(self) -> ByteProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
