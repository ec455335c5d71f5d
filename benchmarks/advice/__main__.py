"""The part `advice`: a figure for each advice of docs/inside/advice.md, on lavapipe.

Prints the page's tables: the least processor time of all threads, over rounds in which the ways take turns.
`--write` puts them into the page.
"""

from __future__ import annotations

import sys

from ..pages import ADVICE, put
from ..parts import DRIVERS, chosen, options_of, parsed, part, take_driver
from .measuring import Measuring
from .tables import TABLES


@part
def main(arguments: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 if the driver is missing, 2 for a table that there is not."""
    parser = options_of("advice", __doc__, "table", page=ADVICE.name, drivers=DRIVERS)
    options = parsed(parser, arguments, "quick", driver=DRIVERS[0])
    names = chosen("table", TABLES, options.only)
    take_driver(options)
    measuring = Measuring(options.quick)
    for name in names:
        table = measuring.repeated(TABLES[name])
        print(f"\n{name}:\n{table.text(options.markdown)}", flush=True)
        if options.write:
            put(ADVICE, f"advice {name}", table.text(as_markdown=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
