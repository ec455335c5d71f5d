"""Measures tables on the one driver that this process sees; prints a JSON object for each, a line."""

from __future__ import annotations

import json
import sys

from .measuring import Measuring
from .tables import TABLES


def main(arguments: list[str]) -> None:
    """ARGUMENTS: `quick` or `full`, then names of tables."""
    measuring = Measuring(arguments[0] == "quick")
    for name in arguments[1:]:
        table = measuring.repeated(TABLES[name])
        print(json.dumps({"name": name, "header": table.header, "rows": table.rows}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
