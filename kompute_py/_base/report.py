"""Colours for the shader compiler's messages, in terminals and notebooks.

Works on the plain text, in the layout that the core defines (compiler/diagnostics.hpp):

    blur.comp:12:9: error: 'foo' : undeclared identifier
       12 |     x = foo;
          |         ^
"""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Callable

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
