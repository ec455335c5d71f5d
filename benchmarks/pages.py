"""Tables in the documentation that the benchmarks print.

A page marks the place of each:

    <!-- printed by ./dev bench NAME -->
    | ... |
    <!-- end -->

`--write` of a part puts what it measured between these lines.
"""

from __future__ import annotations

import re
from pathlib import Path

from .paths import ROOT

ADVICE = ROOT / "docs" / "inside" / "advice.md"
DASK = ROOT / "docs" / "guides" / "dask.md"
INSIDE = ROOT / "docs" / "inside" / "performance.md"


def places(page: Path) -> dict[str, str]:
    """What stands in each place of the page now, by name."""
    return {found[1]: found[2] for found in _PLACE.finditer(page.read_text())}


def put(page: Path, name: str, content: str) -> None:
    """Replaces what stands in the place `name` of the page.

    Raises ValueError if the page has no such place, or several.
    """
    text = page.read_text()
    found = [match for match in _PLACE.finditer(text) if match[1] == name]
    if len(found) != 1:
        raise ValueError(f"{page.name} has {len(found)} places for {name!r}")
    start, end = found[0].span(2)
    page.write_text(text[:start] + content.strip() + "\n" + text[end:])


_PLACE = re.compile(
    r"^<!-- printed by \./dev bench ([^>]+?) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL
)
