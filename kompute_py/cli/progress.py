"""A progress bar that appears only if the work takes longer than a second."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_PATIENCE = 1.0  # seconds


class LateProgress:
    """A bar of `total` steps. It appears on a terminal after a second and vanishes at the end."""

    def __init__(self, console: Console, total: int) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=total)
        self._steps = 0
        self._over = False
        # Guards the bar between the timer, which starts it, and the end, which stops it.
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE, self._start)
        self._timer.daemon = True

    def step(self, name: str) -> None:
        """Starts the step `name` and ends the previous one."""
        self._bar.update(self._task, description=name, completed=self._steps)
        self._steps += 1

    def _start(self) -> None:
        with self._lock:
            if not self._over:
                self._bar.start()

    def __enter__(self) -> LateProgress:
        if self._bar.console.is_terminal:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._over = True
            self._timer.cancel()
            if self._bar.live.is_started:
                self._bar.stop()
