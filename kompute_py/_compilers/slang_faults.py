"""Code that Slang compiles to other numbers than the source says, which its SPIR-V does not show: refused by
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A literal of 32 bits, which one l leaves it, at the beginning of an operand, and a literal amount.
_SHIFT = re.compile(
    r"(?:[=(,?:|&^;{}\[]|\breturn\b)\s*((?:0[xX][0-9a-fA-F]+|\d+)(?:[uU]?[lL]?|[lL][uU]))\s*<<\s*(\d+)[uU]?\b"
)


def misread(code: str) -> Iterator[str]:
    """A sentence for each literal in `code`, without comments, that is shifted out: ``1l << 40`` is 0."""
    for number, amount in _SHIFT.findall(code):
        if int(amount) >= 32:
            yield f"{number} << {amount} is 0 in Slang, where {number} has 32 bits: write ll or ull for 64"
