"""How errors look: compilers' messages in colours, and notebooks' tracebacks without this package's frames.

Colours work on the plain text, in the layout that the core defines (compiler/diagnostics.hpp):

    blur.comp:12:9: error: 'foo' : undeclared identifier
       12 |     x = foo;
          |         ^
"""

from __future__ import annotations

import html
import os
import re
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

_HEADING = re.compile(r"^(?P<place>.*?:\s)??(?P<severity>error|warning|note): (?P<message>.*)$")
_CARET = re.compile(r"^(?P<margin> *\| )(?P<space>\s*)(?P<caret>\^)$")
_SOURCE = re.compile(r"^(?P<margin> *\d+ \| )(?P<source>.*)$")

_ANSI = {"place": "1", "error": "1;31", "warning": "1;33", "note": "1;36", "margin": "2", "caret": "1;32"}
# White on a dark colour: notebooks show errors on red, which is light in one theme and dark in another.
_ANSI_ON_ANY = {
    "place": "1", "error": "1;38;2;255;255;255;48;2;198;40;40", "warning": "1;38;2;255;255;255;48;2;145;85;0",
    "note": "1;38;2;255;255;255;48;2;0;105;115", "margin": "2", "caret": "1",
}  # fmt: skip
# Legible on white and on black.
_CSS = {
    "place": "font-weight:bold",
    "error": "font-weight:bold;color:#e53935",
    "warning": "font-weight:bold;color:#c27400",
    "note": "font-weight:bold;color:#0097a7",
    "margin": "opacity:0.6",
    "caret": "font-weight:bold;color:#389a3d",
}


def terminal_shows_color() -> bool:
    """Whether stderr is a terminal that shows colours and NO_COLOR is not set (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def colored(text: str, *, on_any: bool = False) -> str:
    """The text with ANSI escapes; with `on_any`, escapes that are legible on any background.

    Escapes from the shader's source are removed.
    """
    codes = _ANSI_ON_ANY if on_any else _ANSI

    def style(kind: str, part: str) -> str:
        part = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", part)
        return f"\x1b[{codes[kind]}m{part}\x1b[0m" if kind in codes and part else part

    return _styled(text, style)


def as_html(text: str) -> str:
    """The text as an HTML fragment."""

    def style(kind: str, part: str) -> str:
        escaped = html.escape(part)
        return f'<span style="{_CSS[kind]}">{escaped}</span>' if kind in _CSS and part else escaped

    return f'<pre style="white-space:pre;overflow-x:auto">{_styled(text, style)}</pre>'


def _styled(text: str, style: Callable[[str, str], str]) -> str:
    lines = []
    for line in text.split("\n"):
        if match := _CARET.match(line):
            parts = (("margin", match["margin"]), ("", match["space"]), ("caret", match["caret"]))
        elif match := _SOURCE.match(line):
            parts = (("margin", match["margin"]), ("", match["source"]), ("", ""))
        elif match := _HEADING.match(line):
            severity = match["severity"]
            parts = (
                ("place", match["place"] or ""),
                (severity, f"{severity}: "),
                ("", match["message"]),
            )
        else:
            parts = (("", line), ("", ""), ("", ""))
        lines.append("".join(style(kind, part) for kind, part in parts))
    return "\n".join(lines)


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def without_package(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames of this package; unchanged if it has no other frames."""
    kept = []
    each = trace
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(each)
        each = each.tb_next
    made: TracebackType | None = None
    for each in reversed(kept):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return trace if made is None else made


def _is_inside(error: BaseException) -> bool:
    """Whether the error passed only through code of this package."""
    each = error.__traceback__
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            return False
        each = each.tb_next
    return True


def _before(error: BaseException) -> BaseException | None:
    """The error that tracebacks show before `error`."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class _Shown:
    """Removes the package's frames and internal errors from an error's chain, until `restore`."""

    def __init__(self, error: BaseException) -> None:
        self._kept: list[tuple[BaseException, TracebackType | None, Any, Any, bool]] = []
        each: BaseException | None = error
        while each is not None and all(each is not known for known, *_ in self._kept):
            self._kept.append(
                (each, each.__traceback__, each.__cause__, each.__context__, each.__suppress_context__)
            )
            each = _before(each)
        shown = [known for known, *_ in self._kept if known is error or not _is_inside(known)]
        for one, other in zip(shown, [*shown[1:], None], strict=True):
            if _before(one) is not other:
                one.__cause__, one.__context__, one.__suppress_context__ = None, other, False
            one.__traceback__ = without_package(one.__traceback__)

    def restore(self) -> None:
        """Restores the chain and its tracebacks."""
        for each, trace, cause, context, suppressed in self._kept:
            each.__traceback__ = trace
            each.__cause__, each.__context__, each.__suppress_context__ = cause, context, suppressed


def render(error: BaseException) -> list[str]:
    """The lines that IPython shows for `error`, without the package's frames in it and in earlier errors.

    All frames are shown if ``get_ipython().InteractiveTB.skip_hidden`` is False. The error keeps its whole
    traceback, so ``%debug`` sees every frame.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    show = None if shell is None else shell.InteractiveTB
    shown = _Shown(error) if getattr(show, "skip_hidden", True) else None
    try:
        if show is None:
            return traceback.format_exception(type(error), error, error.__traceback__)
        lines: list[str] = show.structured_traceback(type(error), error, error.__traceback__)
        return lines
    finally:
        if shown is not None:
            shown.restore()
