"""Progress of a transfer of bytes, reported to a function or shown as a bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._base.errors import ArgumentTypeError, kind_of

__all__ = ["ByteProgress", "Progress"]

Progress = Callable[[int, int, str], object]
"""Called with the bytes done, the total bytes, and the name of the current item."""

_PATIENCE = 1.0  # seconds


class ByteProgress:
    """Reports the progress of `total` bytes of work; `what` names the work.

    `progress` is a function (see `Progress`), False for no report, or None for a bar on stderr. The bar
    appears after a second if stderr is a terminal and the package rich is installed, and disappears at the
    end. Shorter work imports nothing and starts no thread. Raises ArgumentTypeError for any other `progress`.
    """

    def __init__(self, what: str, total: int, progress: Progress | bool | None) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise ArgumentTypeError(
                f"progress is {kind_of(progress)}; give a function of (bytes done, total bytes, "
                "name), "
                "False for no bar, or None for a bar"
            )
        self._what = what
        self._total = total
        self._call = progress if callable(progress) else None
        self._begins = time.monotonic() + _PATIENCE
        self._wants_bar = progress is not False and self._call is None
        self._bar: Any = None
        self._task: Any = None

    def at(self, done: int, name: str) -> None:
        """Reports that `done` bytes are done; `name` is the current item."""
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
            # The name comes from a file, so markup in it is ignored.
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
