"""The part `advice`: a figure for each advice of docs/guides/performance.md, on lavapipe.

Prints the page's tables: the least processor time of all threads, over rounds in which the ways take turns.
`--write` puts them into the page.
"""

from __future__ import annotations

import sys
from typing import Any

from ..pages import GUIDE, put
from ..workers import measure, options_of, parsed
from .measuring import Table


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if a table could not be measured."""
    from .tables import TABLES

    parser = options_of("advice", __doc__, "table", "put the tables into docs/guides/performance.md")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as the page has it")
    options = parsed(parser, arguments)

    def show(answer: dict[str, Any]) -> None:
        table = Table(tuple(answer["header"]), tuple(map(tuple, answer["rows"])))
        print(f"\n{answer['name']}:\n{table.text(options.markdown)}", flush=True)
        if options.write:
            put(GUIDE, f"advice {answer['name']}", table.text(as_markdown=True))

    return measure("advice", "table", TABLES, options, show)


if __name__ == "__main__":
    sys.exit(main())
