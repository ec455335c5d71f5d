"""Inventories of other projects' sites, kept as text: the lines of the format's second version, compressed
before a build.
"""

from __future__ import annotations

import zlib
from pathlib import Path


def write_inventory(text: Path, folder: Path) -> Path:
    """Writes `text` as an ``objects.inv`` into `folder` and returns its path. Lines with # are comments."""
    lines = [
        line for line in text.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    head = f"# Sphinx inventory version 2\n# Project: {text.stem}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{text.stem}.inv"
    made.write_bytes(head.encode() + zlib.compress(("\n".join(lines) + "\n").encode(), 9))
    return made
