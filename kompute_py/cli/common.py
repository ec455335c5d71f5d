"""Functions and options that several commands use."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import Console

from .._base.errors import KomputeError

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
