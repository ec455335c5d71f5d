"""Functions, options and the progress bar that several commands use."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .._base.errors import KomputeError

_PATIENCE = 1.0  # seconds
_wants_traceback = False


def wants_traceback() -> bool:
    """Whether this run was given ``--traceback``, before or after the command's name."""
    return _wants_traceback


def set_traceback(value: bool) -> None:
    """Callback of ``--traceback``."""
    global _wants_traceback
    _wants_traceback = _wants_traceback or value


def forget_options() -> None:
    """Resets the options at the start of a run: one process may run several commands."""
    global _wants_traceback
    _wants_traceback = False


Traceback = Annotated[
    bool,
    typer.Option("--traceback", callback=set_traceback, help="Show where in the code an error comes from."),
]
Rtol = Annotated[float, typer.Option("--rtol", help="A relative difference up to this one does not count.")]
Atol = Annotated[float, typer.Option("--atol", help="An absolute difference up to this one does not count.")]


def output_console() -> Console:
    """A console for stdout."""
    console = Console()
    # A file or a pipe has no width to fit, and wrapped tables are hard to search.
    return console if console.is_terminal else Console(width=max(console.width, 120))


def device_of(text: str | None) -> Any:
    """``--device`` as an argument for `Manager`: a number is an index."""
    return int(text) if text is not None and text.isdecimal() else text


_DISTRIBUTIONS = {"PIL": "pillow", "skimage": "scikit-image"}


def require(extra: str, modules: Sequence[str]) -> None:
    """Raises KomputeError, naming the `extra` to install, if one of `modules` is not installed."""
    missing = [_DISTRIBUTIONS.get(name, name) for name in modules if find_spec(name) is None]
    if missing:
        raise KomputeError(f'this command needs {", ".join(missing)}: pip install "kompute-py[{extra}]"')


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
