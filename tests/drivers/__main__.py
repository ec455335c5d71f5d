"""`python -m tests.drivers`: prints every driver's manifest as JSON;
what is missing is explained on stderr."""

from __future__ import annotations

import json
import sys

from .locate import drivers


def main() -> int:
    """Print the drivers; exit with 1 only when there is none at all."""
    found = drivers(explain=lambda text: print(text, file=sys.stderr))
    print(json.dumps(found, indent=2))
    return 0 if any(found.get(name) for name in ("lavapipe", "swiftshader", "null")) else 1


if __name__ == "__main__":
    sys.exit(main())
